//! From a matrix to arrays.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

use super::error::WriteError;
use super::npy::shape_text;
use crate::format::{BsrMatrix, DiaMatrix, Format};
use crate::replace::replace_file;
use crate::scalar::sealed::Decimal;
use crate::{CooMatrix, CscMatrix, CsrMatrix, Entry, Number, Offset, Value, ValueType};

/// Values that are written at a time.
const CHUNK: usize = 1 << 14;

/// A matrix that SciPy has a layout for: [`CsrMatrix`], [`CscMatrix`], [`CooMatrix`], [`BsrMatrix`] and [`DiaMatrix`].
pub trait Save: sealed::Arrays {}

impl<T: sealed::Arrays> Save for T {}

mod sealed {
    use super::*;

    pub trait Arrays {
        fn write_to<W: Write>(&self, out: &mut Out<W>) -> Result<(), WriteError>;
    }

    /// An archive that arrays are added to.
    pub struct Out<W: Write>(pub(super) ZipWriter<StreamWriter<W>>);
}

use sealed::{Arrays, Out};

/// Writes a matrix in its own layout, deflated, as `scipy.sparse.load_npz` reads it.
///
/// `f16` and `bf16` values are written as `float32`, which holds them exactly: SciPy has no matrix of either. Indices are `int32`, or `int64` where there are more
/// than 2³¹ − 1 entries. What fills blocks becomes entries, as SciPy has it.
///
/// # Errors
///
/// [`WriteError::Io`] where `output` fails; [`WriteError::Blocks`] and [`WriteError::RepeatedDiagonal`] where SciPy has
/// no such matrix.
pub fn write(output: impl Write, matrix: &impl Save) -> Result<(), WriteError> {
    let mut out = Out(ZipWriter::new_stream(output));
    matrix.write_to(&mut out)?;
    out.0.finish().map_err(io::Error::from)?.into_inner().flush()?;
    Ok(())
}

/// Writes a matrix to a file, which takes the place of `path` when all of it is written.
///
/// # Errors
///
/// As [`write()`].
pub fn write_file(path: impl AsRef<Path>, matrix: &impl Save) -> Result<(), WriteError> {
    let path = path.as_ref();
    let fill = |file: &mut File| write(BufWriter::with_capacity(1 << 16, file), matrix);
    replace_file(path, fill).map_err(|error| match error {
        WriteError::Io { path: None, source } => WriteError::Io { path: Some(path.to_owned()), source },
        error => error,
    })
}

impl<W: Write> Out<W> {
    /// Adds an array of `shape`; `value` appends the bytes of the value at a position.
    fn array(
        &mut self,
        name: &str,
        descr: &str,
        shape: &[u64],
        value: impl Fn(usize, &mut Vec<u8>),
    ) -> Result<(), WriteError> {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        self.0.start_file(format!("{name}.npy"), options.large_file(true)).map_err(io::Error::from)?;
        let shape_text = shape_text(shape);
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape_text}, }}");
        // The values begin at a multiple of 64 bytes, after a newline.
        let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(length as u16).to_le_bytes());
        bytes.extend_from_slice(format!("{text:<width$}\n", width = length - 1).as_bytes());
        let len = shape.iter().product::<u64>() as usize;
        for first in (0..len).step_by(CHUNK) {
            for position in first..len.min(first + CHUNK) {
                value(position, &mut bytes);
            }
            self.0.write_all(&bytes)?;
            bytes.clear();
        }
        self.0.write_all(&bytes)?;
        Ok(())
    }

    /// Adds what all layouts have.
    fn head(&mut self, layout: &str, num_rows: usize, num_cols: usize) -> Result<(), WriteError> {
        self.array("format", "|S3", &[], |_, bytes| bytes.extend_from_slice(layout.as_bytes()))?;
        let sizes = [num_rows as i64, num_cols as i64];
        self.array("shape", "<i8", &[2], |position, bytes| {
            bytes.extend_from_slice(&sizes[position].to_le_bytes());
        })
    }

    /// Adds an array of indices; `wide` ones have 64 bits.
    fn indices(
        &mut self,
        name: &str,
        len: usize,
        wide: bool,
        index: impl Fn(usize) -> usize,
    ) -> Result<(), WriteError> {
        if wide {
            return self.array(name, "<i8", &[len as u64], |position, bytes| {
                bytes.extend_from_slice(&(index(position) as u64).to_le_bytes());
            });
        }
        self.array(name, "<i4", &[len as u64], |position, bytes| {
            bytes.extend_from_slice(&(index(position) as u32).to_le_bytes());
        })
    }

    /// Adds the values.
    fn data<V: Entry>(&mut self, shape: &[u64], value: impl Fn(usize) -> V) -> Result<(), WriteError> {
        let descr = match (V::Real::TYPE, V::COMPLEX) {
            (ValueType::F64, false) => "<f8",
            (ValueType::F64, true) => "<c16",
            (ValueType::I8, _) => "|i1",
            (ValueType::I32, _) => "<i4",
            (ValueType::I64, _) => "<i8",
            (ValueType::U32, _) => "<u4",
            (ValueType::Bool, _) => "|b1",
            (_, false) => "<f4",
            (_, true) => "<c8",
        };
        self.array("data", descr, shape, |position, bytes| {
            let value = value(position);
            push(value.re(), bytes);
            if V::COMPLEX {
                push(value.im(), bytes);
            }
        })
    }

    /// Adds compressed rows or columns.
    fn compressed<V: Entry, O: Offset>(&mut self, a: &CsrMatrix<V, O>) -> Result<(), WriteError> {
        let wide = is_wide(a.nnz());
        self.indices("indptr", a.num_rows() + 1, wide, |row| a.row_offsets()[row].to_usize())?;
        self.indices("indices", a.nnz(), wide, |position| a.col_indices()[position] as usize)?;
        self.data(&[a.nnz() as u64], |position| a.values()[position])
    }
}

/// Whether positions need 64 bits.
fn is_wide(nnz: usize) -> bool {
    nnz > i32::MAX as usize
}

/// NumPy has no bf16: it is written as float32.
fn push<V: Value>(value: V, bytes: &mut Vec<u8>) {
    match V::TYPE {
        ValueType::F16 | ValueType::Bf16 => (value.to_f64() as f32).to_bytes(bytes),
        _ => value.to_bytes(bytes),
    }
}

impl<V: Entry, O: Offset> Arrays for CsrMatrix<V, O> {
    fn write_to<W: Write>(&self, out: &mut Out<W>) -> Result<(), WriteError> {
        out.head("csr", self.num_rows(), self.num_cols())?;
        out.compressed(self)
    }
}

impl<V: Entry, O: Offset> Arrays for CscMatrix<V, O> {
    fn write_to<W: Write>(&self, out: &mut Out<W>) -> Result<(), WriteError> {
        out.head("csc", self.num_rows(), self.num_cols())?;
        out.compressed(self.transpose())
    }
}

impl<V: Entry> Arrays for CooMatrix<V> {
    fn write_to<W: Write>(&self, out: &mut Out<W>) -> Result<(), WriteError> {
        out.head("coo", self.num_rows(), self.num_cols())?;
        out.indices("row", self.nnz(), false, |position| self.row_indices()[position] as usize)?;
        out.indices("col", self.nnz(), false, |position| self.col_indices()[position] as usize)?;
        out.data(&[self.nnz() as u64], |position| self.values()[position])
    }
}

impl<V: Entry, O: Offset> Arrays for BsrMatrix<V, O> {
    fn write_to<W: Write>(&self, out: &mut Out<W>) -> Result<(), WriteError> {
        let (num_rows, num_cols) = (self.num_rows(), self.num_cols());
        let (block_rows, block_cols) = self.block_shape();
        if !num_rows.is_multiple_of(block_rows) || !num_cols.is_multiple_of(block_cols) {
            return Err(WriteError::Blocks { block_rows, block_cols, num_rows, num_cols });
        }
        out.head("bsr", num_rows, num_cols)?;
        let wide = is_wide(self.values().len());
        out.indices("indptr", self.block_offsets().len(), wide, |row| self.block_offsets()[row].to_usize())?;
        out.indices("indices", self.num_blocks(), wide, |block| self.block_cols()[block] as usize)?;
        let shape = [self.num_blocks(), block_rows, block_cols].map(|size| size as u64);
        out.data(&shape, |slot| self.values()[slot])
    }
}

impl<V: Entry> Arrays for DiaMatrix<V> {
    /// SciPy places the values of a diagonal by their columns.
    fn write_to<W: Write>(&self, out: &mut Out<W>) -> Result<(), WriteError> {
        let sizes = (Format::<V, u64>::num_rows(self), Format::<V, u64>::num_cols(self));
        let (num_rows, num_cols) = sizes;
        if let Some(pair) = self.offsets().windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(WriteError::RepeatedDiagonal(pair[0]));
        }
        out.head("dia", num_rows, num_cols)?;
        out.array("offsets", "<i8", &[self.offsets().len() as u64], |diagonal, bytes| {
            bytes.extend_from_slice(&self.offsets()[diagonal].to_le_bytes());
        })?;
        out.data(&[self.offsets().len() as u64, num_cols as u64], |place| {
            let (diagonal, col) = (place / num_cols, place % num_cols);
            let row =
                usize::try_from(col as i64 - self.offsets()[diagonal]).ok().filter(|&row| row < num_rows);
            row.map_or(V::default(), |row| self.values()[diagonal * self.stride() + row])
        })
    }
}
