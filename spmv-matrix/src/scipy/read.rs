//! From arrays to a matrix.

use std::io::{Read, Seek};

use half::f16;

use super::archive::Archive;
use super::error::ReadError;
use super::npy::{Dtype, Kind, Npy, shape_text};
use super::{Header, Layout, ReadOptions};
use crate::csr::{check_columns, check_offset_type, check_offsets};
use crate::format::csr_of_rows;
use crate::{
    CooMatrix, CscMatrix, CsrMatrix, Entry, MAX_DIMENSION, MatrixError, Offset, Value, ValueType, parallel,
};

/// A file whose arrays fit together.
pub(super) struct Parts<R> {
    archive: Archive<R>,
    pub header: Header,
    data: Npy,
    /// Whether rows and columns of coordinates are one array.
    joined: bool,
    /// Bytes of all arrays that are read.
    total: u64,
}

/// The arrays of a layout besides `format`, `shape` and `data`.
fn arrays(layout: Layout) -> (&'static [&'static str], &'static str) {
    match layout {
        Layout::Csr | Layout::Csc | Layout::Bsr => {
            (&["indptr", "indices"], "format, shape, data, indices and indptr")
        }
        Layout::Coo => (&["row", "col"], "format, shape, data, row and col"),
        Layout::Dia => (&["offsets"], "format, shape, data and offsets"),
    }
}

impl<R: Read + Seek> Parts<R> {
    /// Looks at the headers of all arrays.
    pub fn open(input: R) -> Result<Self, ReadError> {
        const ANY: &str = "format, shape, data and those of the format";
        let mut archive = Archive::open(input)?;
        let layout = layout(&mut archive, ANY)?;
        let (num_rows, num_cols) = sizes(&mut archive, ANY)?;
        let (names, needed) = arrays(layout);
        let mut find = |array| archive.find(array)?.ok_or(ReadError::Missing { array, needed });
        let data = find("data")?;
        let joined = layout == Layout::Coo && matches!(find("row"), Err(ReadError::Missing { .. }));
        let names = if joined && find("coords").is_ok() { &["coords"] } else { names };
        let indices =
            names.iter().map(|&name| Ok((name, find(name)?))).collect::<Result<Vec<_>, ReadError>>()?;

        let wrong = |array, npy: &Npy, expected| {
            let order = if npy.fortran { " in Fortran order" } else { "" };
            let found = npy.shape_text() + order;
            Err(ReadError::Shape { array, found, layout, num_rows, num_cols, expected })
        };
        let (axes, expected) = match layout {
            Layout::Bsr => (3, "(BLOCKS, ROWS, COLUMNS)"),
            Layout::Dia => (2, "(DIAGONALS, LENGTH)"),
            _ => (1, "(ENTRIES,)"),
        };
        if data.shape.len() != axes {
            return wrong("data", &data, expected.to_owned());
        }
        let ends = match layout {
            Layout::Csc => num_cols,
            Layout::Bsr => {
                let (block_rows, block_cols) = (data.shape[1], data.shape[2]);
                let divides = |size: u64, all: usize| size > 0 && (all as u64).is_multiple_of(size);
                if !divides(block_rows, num_rows) || !divides(block_cols, num_cols) {
                    return Err(ReadError::Blocks { block_rows, block_cols, num_rows, num_cols });
                }
                num_rows / block_rows as usize
            }
            _ => num_rows,
        };
        for (name, npy) in &indices {
            if !matches!(npy.dtype.kind, Kind::Int | Kind::Uint) {
                let (array, found) = (*name, npy.dtype.to_string());
                return Err(ReadError::Type { array, found, allowed: "integers" });
            }
            let expected = match *name {
                "indptr" => vec![ends as u64 + 1],
                "coords" => vec![2, data.shape[0]],
                _ => vec![data.shape[0]],
            };
            if npy.shape != expected {
                return wrong(name, npy, shape_text(&expected));
            }
            if *name == "coords" && npy.fortran {
                return wrong(name, npy, format!("{} in C order", shape_text(&expected)));
            }
        }
        if matches!(data.dtype.kind, Kind::Bytes | Kind::Unicode) {
            let found = data.dtype.to_string();
            return Err(ReadError::Type { array: "data", found, allowed: "numbers" });
        }
        let bytes = |npy: &Npy| npy.len() * npy.dtype.size as u64;
        let total = indices.iter().map(|(_, npy)| bytes(npy)).fold(bytes(&data), u64::saturating_add);
        archive.done = 0;
        let header = Header {
            layout,
            value_type: data.dtype.to_string(),
            complex: data.dtype.kind == Kind::Complex,
            whole: matches!(data.dtype.kind, Kind::Int | Kind::Uint | Kind::Bool),
            num_rows,
            num_cols,
            num_stored: data.len(),
        };
        Ok(Self { archive, header, data, joined, total })
    }

    /// Reads the arrays and makes the matrix.
    pub fn matrix<V: Entry, O: Offset>(
        mut self,
        options: &ReadOptions,
    ) -> Result<CsrMatrix<V, O>, ReadError> {
        let Header { layout, num_rows, num_cols, num_stored, .. } = self.header;
        if self.header.complex && !V::COMPLEX {
            return Err(ReadError::Complex { value_type: self.header.value_type, into: V::NAME });
        }
        if self.data.dtype.kind == Kind::Float && !V::FRACTIONS {
            return Err(ReadError::Fractions { value_type: self.header.value_type, into: V::NAME });
        }
        if layout != Layout::Dia {
            check_offset_type::<O>(num_stored)?;
            check_bytes::<V, O>(num_rows, num_stored, options)?;
        }
        match layout {
            Layout::Csr | Layout::Csc => {
                let (rows, cols) =
                    if layout == Layout::Csr { (num_rows, num_cols) } else { (num_cols, num_rows) };
                let row_offsets: Vec<O> = self.offsets(options)?;
                let used = last(&row_offsets);
                let col_indices = self.indices("indices", cols, used, options)?;
                let a = CsrMatrix::new(rows, cols, row_offsets, col_indices, self.values(used, options)?)?;
                Ok(if layout == Layout::Csr { a } else { CscMatrix::from_transpose(a).to_csr()? })
            }
            Layout::Coo => {
                let (rows, cols) = if self.joined {
                    let mut rows = self.indices("coords", num_rows.max(num_cols), usize::MAX, options)?;
                    let cols = rows.split_off(rows.len() / 2);
                    (rows, cols)
                } else {
                    let all = usize::MAX;
                    (
                        self.indices("row", num_rows, all, options)?,
                        self.indices("col", num_cols, all, options)?,
                    )
                };
                let values = self.values(usize::MAX, options)?;
                Ok(CooMatrix::new(num_rows, num_cols, rows, cols, values)?.to_csr()?)
            }
            Layout::Bsr => self.blocks(options),
            Layout::Dia => self.diagonals(options),
        }
    }

    fn blocks<V: Entry, O: Offset>(&mut self, options: &ReadOptions) -> Result<CsrMatrix<V, O>, ReadError> {
        let Header { num_rows, num_cols, .. } = self.header;
        let [blocks, height, width] = [0, 1, 2].map(|axis| self.data.shape[axis] as usize);
        let block_offsets: Vec<O> = self.offsets(options)?;
        let used = last(&block_offsets);
        let block_cols = self.indices("indices", num_cols / width, used, options)?;
        check_offsets(&block_offsets, block_cols.len())?;
        check_columns(&block_cols, num_cols / width)?;
        let fortran = self.data.fortran;
        let place = |block: usize, row: usize, col: usize| match fortran {
            true => (col * height + row) * blocks + block,
            false => (block * height + row) * width + col,
        };
        // In Fortran order what is used lies between what is not.
        let used = if fortran { usize::MAX } else { used.saturating_mul(height.saturating_mul(width)) };
        let data: Vec<V> = self.values(used, options)?;
        let range = |row: usize| {
            let block_row = row / height;
            block_offsets[block_row].to_usize()..block_offsets[block_row + 1].to_usize()
        };
        Ok(csr_of_rows(
            num_rows,
            num_cols,
            |row| range(row).len() * width,
            |row, cols, values| {
                let places = range(row).flat_map(|block| (0..width).map(move |col| (block, col)));
                for ((block, of_block), (col, value)) in places.zip(cols.iter_mut().zip(values)) {
                    *col = block_cols[block] * width as u32 + of_block as u32;
                    *value = data[place(block, row % height, of_block)];
                }
            },
        )?)
    }

    fn diagonals<V: Entry, O: Offset>(
        &mut self,
        options: &ReadOptions,
    ) -> Result<CsrMatrix<V, O>, ReadError> {
        let Header { num_rows, num_cols, .. } = self.header;
        // Before every row is looked at: a short file may say that there are very many.
        check_bytes::<V, O>(num_rows, 0, options)?;
        let [diagonals, length] = [0, 1].map(|axis| self.data.shape[axis] as usize);
        let dtype = self.dtype("offsets")?;
        let bound = MAX_DIMENSION as i128;
        let offsets = self.archive.read("offsets", options, self.total, |position, bytes| {
            match integer(dtype, bytes) {
                offset if offset.abs() <= bound => Ok(offset as i64),
                value => {
                    Err(ReadError::Index { array: "offsets", position, value, allowed: (-bound, bound) })
                }
            }
        })?;
        let mut order: Vec<(i64, usize)> = offsets.into_iter().zip(0..).collect();
        order.sort_unstable();
        let fortran = self.data.fortran;
        let data: Vec<V> = self.values(usize::MAX, options)?;
        let entries = |row: usize| {
            // The diagonals that the row has a column on.
            let before = |col: usize| order.partition_point(|&(offset, _)| row as i64 + offset < col as i64);
            let data = &data;
            order[before(0)..before(num_cols.min(length))].iter().filter_map(move |&(offset, diagonal)| {
                let col = (row as i64 + offset) as usize;
                let value = data[if fortran { col * diagonals + diagonal } else { diagonal * length + col }];
                (value != V::default()).then_some((col as u32, value))
            })
        };
        let nnz = parallel::sum(num_rows, 1024, |row| entries(row).count() as u64);
        check_offset_type::<O>(nnz)?;
        check_bytes::<V, O>(num_rows, nnz, options)?;
        Ok(csr_of_rows(
            num_rows,
            num_cols,
            |row| entries(row).count(),
            |row, cols, values| {
                for ((of_entry, number), (col, value)) in entries(row).zip(cols.iter_mut().zip(values)) {
                    (*col, *value) = (of_entry, number);
                }
            },
        )?)
    }

    fn dtype(&mut self, array: &'static str) -> Result<Dtype, ReadError> {
        let missing = ReadError::Missing { array, needed: arrays(self.header.layout).1 };
        Ok(self.archive.find(array)?.ok_or(missing)?.dtype)
    }

    /// Positions of entries.
    fn offsets<O: Offset>(&mut self, options: &ReadOptions) -> Result<Vec<O>, ReadError> {
        let dtype = self.dtype("indptr")?;
        let most = i128::from(O::MAX.min(self.header.num_stored));
        self.archive.read("indptr", options, self.total, |position, bytes| {
            let value = integer(dtype, bytes);
            let offset = usize::try_from(value).ok().filter(|_| value <= most).and_then(O::from_usize);
            offset.ok_or(ReadError::Index { array: "indptr", position, value, allowed: (0, most) })
        })
    }

    /// Rows or columns below `bound`, the first `used` of them.
    fn indices(
        &mut self,
        array: &'static str,
        bound: usize,
        used: usize,
        options: &ReadOptions,
    ) -> Result<Vec<u32>, ReadError> {
        let dtype = self.dtype(array)?;
        let all =
            self.archive.read(array, options, self.total, |position, bytes| match integer(dtype, bytes) {
                _ if position >= used as u64 => Ok(0),
                value if (0..bound as i128).contains(&value) => Ok(value as u32),
                value => Err(ReadError::Index { array, position, value, allowed: (0, bound as i128 - 1) }),
            });
        Ok(first(all?, used))
    }

    /// The first `used` values.
    fn values<V: Entry>(&mut self, used: usize, options: &ReadOptions) -> Result<Vec<V>, ReadError> {
        let Dtype { kind, size } = self.data.dtype;
        let all = self.archive.read("data", options, self.total, |position, bytes| {
            if position >= used as u64 {
                return Ok(V::default());
            }
            let part = |dtype, bytes| {
                let too_large = |value| ReadError::ValueTooLarge { position, value, into: V::NAME };
                number::<V::Real>(dtype, bytes).map_err(too_large)
            };
            if kind != Kind::Complex {
                return Ok(V::from_parts(part(Dtype { kind, size }, bytes)?, V::Real::default()));
            }
            let dtype = Dtype { kind: Kind::Float, size: size / 2 };
            Ok(V::from_parts(part(dtype, &bytes[..size / 2])?, part(dtype, &bytes[size / 2..])?))
        });
        Ok(first(all?, used))
    }
}

/// How many entries offsets lead to. Arrays may be longer: SciPy leaves room behind them until a matrix is pruned.
fn last<O: Offset>(offsets: &[O]) -> usize {
    offsets.last().map_or(0, |last| last.to_usize())
}

fn first<T>(mut all: Vec<T>, used: usize) -> Vec<T> {
    if used < all.len() {
        all.truncate(used);
        all.shrink_to_fit();
    }
    all
}

/// The layout that `format.npy` names.
fn layout<R: Read + Seek>(archive: &mut Archive<R>, needed: &'static str) -> Result<Layout, ReadError> {
    let npy = archive.find("format")?.ok_or(ReadError::Missing { array: "format", needed })?;
    let is_text = matches!(npy.dtype.kind, Kind::Bytes | Kind::Unicode) && npy.len() == 1;
    if !is_text {
        return Err(ReadError::Format(format!("{} of shape {}", npy.dtype, npy.shape_text())));
    }
    let text = archive.read("format", &ReadOptions::new(), 0, |_, bytes| Ok(bytes.to_vec()))?.concat();
    // The letters of both kinds of text are ASCII, padded with zeros.
    let name: String = text.iter().filter(|&&letter| letter != 0).map(|&letter| char::from(letter)).collect();
    Layout::ALL.iter().copied().find(|layout| layout.name() == name).ok_or(ReadError::Format(name))
}

/// Rows and columns that `shape.npy` says.
fn sizes<R: Read + Seek>(
    archive: &mut Archive<R>,
    needed: &'static str,
) -> Result<(usize, usize), ReadError> {
    let npy = archive.find("shape")?.ok_or(ReadError::Missing { array: "shape", needed })?;
    if npy.shape != [2] || !matches!(npy.dtype.kind, Kind::Int | Kind::Uint) {
        return Err(ReadError::Sizes(format!("{} of shape {}", npy.dtype, npy.shape_text())));
    }
    let sizes = archive.read("shape", &ReadOptions::new(), 0, |_, bytes| Ok(integer(npy.dtype, bytes)))?;
    let size = |size: i128| usize::try_from(size).ok().filter(|&size| size <= MAX_DIMENSION);
    match (size(sizes[0]), size(sizes[1])) {
        (Some(num_rows), Some(num_cols)) => Ok((num_rows, num_cols)),
        _ => Err(ReadError::Sizes(format!("({}, {})", sizes[0], sizes[1]))),
    }
}

fn check_bytes<V: Entry, O: Offset>(
    num_rows: usize,
    nnz: u64,
    options: &ReadOptions,
) -> Result<(), ReadError> {
    let entry = (size_of::<V>() + size_of::<u32>()) as u64;
    let bytes = nnz.saturating_mul(entry).saturating_add((num_rows as u64 + 1) * size_of::<O>() as u64);
    match options.max_bytes {
        Some(max_bytes) if bytes > max_bytes => Err(ReadError::TooLarge { bytes, max_bytes }),
        _ if usize::try_from(bytes).is_err() => {
            Err(MatrixError::OutOfMemory { bytes, what: "the matrix" }.into())
        }
        _ => Ok(()),
    }
}

/// The bytes of a number, with zeros behind.
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded
}

/// A whole number.
fn integer(dtype: Dtype, bytes: &[u8]) -> i128 {
    let number = u64::from_le_bytes(padded(bytes));
    if dtype.kind != Kind::Int {
        return number.into();
    }
    let unused = 64 - 8 * dtype.size as u32;
    ((number << unused) as i64 >> unused).into()
}

/// The nearest number, or what is too large for one.
fn number<V: Value>(dtype: Dtype, bytes: &[u8]) -> Result<V, f64> {
    if !V::FRACTIONS {
        let integer = if dtype.kind == Kind::Bool { (bytes[0] != 0).into() } else { integer(dtype, bytes) };
        return V::of_integer(integer).ok_or(integer as f64);
    }
    let exact = match (dtype.kind, dtype.size) {
        (Kind::Float, 2) => f16::from_le_bytes(padded(bytes)).to_f64(),
        (Kind::Float, 4) => f32::from_le_bytes(padded(bytes)).into(),
        (Kind::Float, _) => f64::from_le_bytes(padded(bytes)),
        (Kind::Bool, _) => f64::from(u8::from(bytes[0] != 0)),
        _ => of_integer::<V>(integer(dtype, bytes)),
    };
    let nearest = V::from_f64(exact);
    if exact.is_finite() && !nearest.to_f64().is_finite() { Err(exact) } else { Ok(nearest) }
}

/// A number that is rounded to `V` as the whole number is: where that does not fit in 53 bits, what is cut off stays in
/// the last bit.
fn of_integer<V: Value>(integer: i128) -> f64 {
    let nearest = integer as f64;
    if V::TYPE == ValueType::F64 || nearest as i128 == integer {
        return nearest;
    }
    let away = (nearest as i128).abs() > integer.abs();
    f64::from_bits((nearest.to_bits() - u64::from(away)) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_rounded_once() {
        let int = Dtype { kind: Kind::Int, size: 8 };
        // Just above the middle between two neighbours in f32, closer to it than f64 can tell.
        let number_of = |value: i64| number::<f32>(int, &value.to_le_bytes()).unwrap();
        let middle = (1_i64 << 62) + (1 << 38);
        assert_eq!(number_of(middle), (1_i64 << 62) as f32);
        assert_eq!(number_of(middle + 1), ((1_i64 << 62) + (1 << 39)) as f32);
        assert_eq!(number_of(-middle - 1), -((1_i64 << 62) + (1 << 39)) as f32);
        // Just below the middle, which itself would be rounded up to the even neighbour.
        let middle = (1_i64 << 62) + (3 << 38);
        assert_eq!(number_of(middle), ((1_i64 << 62) + (1 << 40)) as f32);
        assert_eq!(number_of(middle - 1), ((1_i64 << 62) + (1 << 39)) as f32);
        assert_eq!(number::<f64>(int, &i64::MAX.to_le_bytes()), Ok(i64::MAX as f64));
        let byte = Dtype { kind: Kind::Int, size: 1 };
        assert_eq!(
            (integer(byte, &[0xff]), integer(Dtype { kind: Kind::Uint, size: 1 }, &[0xff])),
            (-1, 255)
        );
        assert_eq!(number::<f16>(int, &70_000_i64.to_le_bytes()), Err(70_000.0));
    }
}
