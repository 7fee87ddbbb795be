//! Matrices as files: coordinate format, general symmetry.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::error::WriteError;
use crate::replace::replace_file;
use crate::scalar::sealed::Decimal;
use crate::{CsrMatrix, Entry, Offset, parallel};

/// How many entries a thread writes at a time.
const BLOCK: usize = 1 << 15;

/// How many blocks are held, for each thread.
const BLOCKS_PER_THREAD: usize = 4;

/// Writes a matrix as text: field `real`, `complex` for complex entries, `integer` for integers and for truth values,
/// which are 0 and 1; with the shortest decimal numbers that read back as the same values. Text is made in parallel.
///
/// # Errors
///
/// [`WriteError::Io`] where `output` fails.
pub fn write<V: Entry, O: Offset>(output: impl Write, matrix: &CsrMatrix<V, O>) -> Result<(), WriteError> {
    write_blocks(output, matrix, Ok).map_err(|source| WriteError::Io { path: None, source })
}

/// Writes a matrix to a file, compressed with gzip where the name ends in `.gz`.
///
/// The text goes to a temporary file in the same folder, which takes the place of `path` when all of it is
/// written: whatever goes wrong, there is the old file or the new one. What is no regular file, as a pipe
/// or a device, is written to as it is.
///
/// # Errors
///
/// [`WriteError::Io`] where the file cannot be created, written or renamed.
pub fn write_file<V: Entry, O: Offset>(
    path: impl AsRef<Path>,
    matrix: &CsrMatrix<V, O>,
) -> Result<(), WriteError> {
    let path = path.as_ref();
    replace_file(path, |file| write_compressed(path, file, matrix))
        .map_err(|source| WriteError::Io { path: Some(path.to_owned()), source })
}

fn write_compressed<V: Entry, O: Offset>(
    path: &Path,
    file: &mut File,
    matrix: &CsrMatrix<V, O>,
) -> io::Result<()> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz")) {
        // Each block is a gzip file of its own, and so is all of them one after the other (RFC 1952, 2.2).
        return write_blocks(file, matrix, |text| {
            let mut packed = GzEncoder::new(Vec::with_capacity(text.len() / 2), Compression::fast());
            packed.write_all(&text)?;
            packed.finish()
        });
    }
    write_blocks(file, matrix, Ok)
}

/// Makes blocks of text in parallel, packs them, and writes them in order.
fn write_blocks<V: Entry, O: Offset>(
    mut output: impl Write,
    matrix: &CsrMatrix<V, O>,
    pack: impl Fn(Vec<u8>) -> io::Result<Vec<u8>> + Sync,
) -> io::Result<()> {
    let field = match (V::COMPLEX, V::FRACTIONS) {
        (true, _) => "complex",
        (false, true) => "real",
        (false, false) => "integer",
    };
    let (num_rows, num_cols, nnz) = (matrix.num_rows(), matrix.num_cols(), matrix.nnz());
    let head = format!("%%MatrixMarket matrix coordinate {field} general\n{num_rows} {num_cols} {nnz}\n");
    output.write_all(&pack(head.into_bytes())?)?;
    let blocks: Vec<usize> = (0..nnz.div_ceil(BLOCK)).collect();
    for held in blocks.chunks(BLOCKS_PER_THREAD * rayon::current_num_threads()) {
        for text in parallel::map(held.iter(), |&block| pack(text(matrix, block))) {
            output.write_all(&text?)?;
        }
    }
    output.flush()
}

/// The text of one block of entries.
fn text<V: Entry, O: Offset>(matrix: &CsrMatrix<V, O>, block: usize) -> Vec<u8> {
    let range = block * BLOCK..matrix.nnz().min((block + 1) * BLOCK);
    let offsets = matrix.row_offsets();
    let mut row = offsets.partition_point(|start| start.to_usize() <= range.start) - 1;
    let mut text = Vec::with_capacity(32 * range.len());
    let mut number = itoa::Buffer::new();
    for position in range {
        while offsets[row + 1].to_usize() <= position {
            row += 1;
        }
        text.extend_from_slice(number.format(row + 1).as_bytes());
        text.push(b' ');
        text.extend_from_slice(number.format(u64::from(matrix.col_indices()[position]) + 1).as_bytes());
        text.push(b' ');
        let value = matrix.values()[position];
        value.re().format(&mut text);
        if V::COMPLEX {
            text.push(b' ');
            value.im().format(&mut text);
        }
        text.push(b'\n');
    }
    text
}
