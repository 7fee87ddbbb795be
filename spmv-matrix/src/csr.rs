//! Compressed sparse rows.

use std::ops::Range;

use crate::assemble::{self, Buckets, Keyed};
use crate::{Entry, MAX_DIMENSION, MAX_ROW_NNZ, MatrixError, Offset, Value, parallel};

/// How many entries a task checks or converts at a time.
const BLOCK: usize = 1 << 16;

/// How many entries a transpose sorts by bucket at a time.
const CHUNK: usize = 1 << 15;

/// A matrix in compressed sparse rows.
///
/// Row `i` holds the entries `row_offsets[i] .. row_offsets[i + 1]` of `col_indices` and `values`. What is
/// checked once, in [`CsrMatrix::new`], holds as long as the matrix lives: offsets start at 0, never
/// decrease and end at the number of nonzeros; columns are below `num_cols`. Columns may be in any order
/// within a row, and a row may hold a column more than once.
#[derive(Clone, Debug, PartialEq)]
pub struct CsrMatrix<V, O = u32> {
    num_cols: usize,
    row_offsets: Vec<O>,
    col_indices: Vec<u32>,
    values: Vec<V>,
}

impl<V: Entry, O: Offset> CsrMatrix<V, O> {
    /// Makes a matrix of its parts: `num_rows + 1` offsets, and as many columns as values.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with the parts. They are checked in parallel.
    pub fn new(
        num_rows: usize,
        num_cols: usize,
        row_offsets: Vec<O>,
        col_indices: Vec<u32>,
        values: Vec<V>,
    ) -> Result<Self, MatrixError> {
        check_dimensions(num_rows, num_cols)?;
        if row_offsets.len() != num_rows + 1 {
            return Err(MatrixError::OffsetsLength { found: row_offsets.len(), expected: num_rows + 1 });
        }
        if values.len() != col_indices.len() {
            return Err(MatrixError::Length {
                name: "values",
                found: values.len(),
                like: "col_indices",
                expected: col_indices.len(),
            });
        }
        check_offsets(&row_offsets, col_indices.len())?;
        check_columns(&col_indices, num_cols)?;
        Ok(Self { num_cols, row_offsets, col_indices, values })
    }

    /// Parts that are known to be right.
    pub(crate) fn from_checked(
        num_cols: usize,
        row_offsets: Vec<O>,
        col_indices: Vec<u32>,
        values: Vec<V>,
    ) -> Self {
        debug_assert!(check_offsets(&row_offsets, col_indices.len()).is_ok());
        debug_assert!(check_columns(&col_indices, num_cols).is_ok());
        debug_assert_eq!(col_indices.len(), values.len());
        Self { num_cols, row_offsets, col_indices, values }
    }

    /// The number of rows.
    #[inline]
    pub fn num_rows(&self) -> usize {
        self.row_offsets.len() - 1
    }

    /// The number of columns.
    #[inline]
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// The number of stored entries, duplicates and stored zeros included.
    #[inline]
    pub fn nnz(&self) -> usize {
        self.col_indices.len()
    }

    /// Where each row starts, and the number of nonzeros at the end; `num_rows + 1` entries.
    #[inline]
    pub fn row_offsets(&self) -> &[O] {
        &self.row_offsets
    }

    /// The column of each entry, row by row.
    #[inline]
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// The value of each entry, row by row.
    #[inline]
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// The values, to be changed in place.
    #[inline]
    pub fn values_mut(&mut self) -> &mut [V] {
        &mut self.values
    }

    /// The positions that row `row` has in `col_indices` and `values`.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    #[inline]
    pub fn row_range(&self, row: usize) -> Range<usize> {
        self.row_offsets[row].to_usize()..self.row_offsets[row + 1].to_usize()
    }

    /// The columns and values of row `row`.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    #[inline]
    pub fn row(&self, row: usize) -> (&[u32], &[V]) {
        let range = self.row_range(row);
        (&self.col_indices[range.clone()], &self.values[range])
    }

    /// `row_offsets`, `col_indices` and `values`.
    pub fn into_parts(self) -> (Vec<O>, Vec<u32>, Vec<V>) {
        (self.row_offsets, self.col_indices, self.values)
    }

    /// Bytes that the three arrays hold.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.row_offsets[..])
            + size_of_val(&self.col_indices[..])
            + size_of_val(&self.values[..])
    }

    /// Puts the columns of each row in ascending order; entries of the same column stay in their order.
    pub fn sort_columns(&mut self) {
        assemble::sort_rows(&self.row_offsets, &mut self.col_indices, &mut self.values);
    }

    /// Sorts the columns of each row and adds up the entries of the same column, in their order.
    pub fn sum_duplicates(&mut self) {
        self.sort_columns();
        let distinct =
            parallel::collect(self.num_rows(), 1024, |row| self.row(row).0.chunk_by(|a, b| a == b).count());
        let nnz: usize = distinct.iter().sum();
        if nnz == self.nnz() {
            return;
        }
        let mut write = 0;
        let mut read = 0;
        for (row, distinct) in distinct.into_iter().enumerate() {
            let end = self.row_offsets[row + 1].to_usize();
            let first = write;
            while read < end {
                let (col, value) = (self.col_indices[read], self.values[read]);
                if write > first && self.col_indices[write - 1] == col {
                    self.values[write - 1] = self.values[write - 1].plus(value);
                } else {
                    self.col_indices[write] = col;
                    self.values[write] = value;
                    write += 1;
                }
                read += 1;
            }
            debug_assert_eq!(write - first, distinct);
            self.row_offsets[row + 1] = O::of(write);
        }
        self.col_indices.truncate(nnz);
        self.values.truncate(nnz);
        self.col_indices.shrink_to_fit();
        self.values.shrink_to_fit();
    }

    /// Aᵀ, with ascending columns in each row; entries of the same place stay in their order.
    ///
    /// # Errors
    ///
    /// [`MatrixError::OutOfMemory`]; besides the result it takes 8 bytes an entry more than the values do.
    pub fn transpose(&self) -> Result<Self, MatrixError> {
        let buckets = Buckets::new(self.num_cols, self.nnz() / CHUNK);
        let chunks = parallel::map(parallel::blocks(self.nnz(), CHUNK), |range| {
            let mut row = self.row_offsets.partition_point(|end| end.to_usize() <= range.start) - 1;
            let entry = |position: usize| {
                while self.row_offsets[row + 1].to_usize() <= position {
                    row += 1;
                }
                Keyed { row: self.col_indices[position], col: row as u32, value: self.values[position] }
            };
            buckets.sort(&range.map(entry).collect::<Vec<_>>())
        });
        assemble::assemble(self.num_cols, self.num_rows(), &buckets, chunks, |_, value| value)
    }

    /// The same structure with other values.
    pub fn map_values<W: Entry>(&self, map: impl Fn(V) -> W + Sync) -> CsrMatrix<W, O> {
        let mut values = vec![W::default(); self.nnz()];
        let blocks = values.chunks_mut(BLOCK).zip(self.values.chunks(BLOCK));
        parallel::for_each(blocks, |(values, given)| {
            values.iter_mut().zip(given).for_each(|(value, &given)| *value = map(given));
        });
        CsrMatrix {
            num_cols: self.num_cols,
            row_offsets: self.row_offsets.clone(),
            col_indices: self.col_indices.clone(),
            values,
        }
    }

    /// The same matrix with offsets of another type.
    ///
    /// # Errors
    ///
    /// [`MatrixError::OffsetOverflow`] where the nonzeros cannot be counted by that type.
    pub fn to_offsets<P: Offset>(&self) -> Result<CsrMatrix<V, P>, MatrixError> {
        check_offset_type::<P>(self.nnz() as u64)?;
        Ok(CsrMatrix {
            num_cols: self.num_cols,
            row_offsets: parallel::collect(self.row_offsets.len(), BLOCK, |row| {
                P::of(self.row_offsets[row].to_usize())
            }),
            col_indices: self.col_indices.clone(),
            values: self.values.clone(),
        })
    }

    /// Ranges of rows with about `entries` rows and nonzeros each; a long row is never cut.
    pub(crate) fn row_blocks(&self, entries: usize) -> Vec<Range<usize>> {
        row_blocks(&self.row_offsets, entries)
    }

    /// The entries of a range of rows.
    pub(crate) fn range_of(&self, rows: &Range<usize>) -> Range<usize> {
        self.row_offsets[rows.start].to_usize()..self.row_offsets[rows.end].to_usize()
    }
}

impl<V: Value, O: Offset> CsrMatrix<V, O> {
    /// The same matrix with values of another type: the same numbers where that type has them, else rounded as
    /// [`Value::from_f64`] does.
    pub fn convert<W: Value>(&self) -> CsrMatrix<W, O> {
        self.map_values(|value| {
            let kept = value.to_integer().and_then(W::of_integer);
            kept.unwrap_or_else(|| W::from_f64(value.to_f64()))
        })
    }
}

/// Ranges of rows with about `entries` rows and nonzeros each; a long row is never cut.
pub(crate) fn row_blocks<O: Offset>(row_offsets: &[O], entries: usize) -> Vec<Range<usize>> {
    let num_rows = row_offsets.len() - 1;
    let total = num_rows + row_offsets[num_rows].to_usize();
    let first_row = |block: usize| first_row_from(row_offsets, block * entries);
    (0..total.div_ceil(entries))
        .map(|block| first_row(block)..first_row(block + 1))
        .filter(|rows| !rows.is_empty())
        .collect()
}

/// The first row that starts at `position` or later, where a row takes one place more than it has entries.
pub(crate) fn first_row_from<O: Offset>(row_offsets: &[O], position: usize) -> usize {
    first_row_within(row_offsets, position, 0..row_offsets.len() - 1)
}

/// As [`first_row_from`], where the row is known to lie in `rows` or right behind.
pub(crate) fn first_row_within<O: Offset>(row_offsets: &[O], position: usize, rows: Range<usize>) -> usize {
    let (mut low, mut high) = (rows.start, rows.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if row_offsets[middle].to_usize() + middle < position {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Whether rows and columns can be counted.
pub(crate) fn check_dimensions(num_rows: usize, num_cols: usize) -> Result<(), MatrixError> {
    if num_rows > MAX_DIMENSION {
        return Err(MatrixError::TooManyRows(num_rows as u64));
    }
    if num_cols > MAX_DIMENSION {
        return Err(MatrixError::TooManyColumns(num_cols as u64));
    }
    Ok(())
}

/// Whether the offset type can count the nonzeros.
pub(crate) fn check_offset_type<O: Offset>(nnz: u64) -> Result<(), MatrixError> {
    if nnz > O::MAX {
        return Err(MatrixError::OffsetOverflow { nnz, offset: O::TYPE.name(), max: O::MAX });
    }
    Ok(())
}

/// Whether offsets start at 0, never decrease, have fewer than 2³² entries in a row and end at the number of nonzeros.
pub(crate) fn check_offsets<O: Offset>(row_offsets: &[O], nnz: usize) -> Result<(), MatrixError> {
    let as_u64 = |o: O| o.to_usize() as u64;
    if row_offsets[0] != O::default() {
        return Err(MatrixError::OffsetsStart(as_u64(row_offsets[0])));
    }
    let decreases = |row: usize| row_offsets[row + 1] < row_offsets[row];
    let decrease = parallel::find_first(row_offsets.len() - 1, BLOCK, decreases);
    if let Some(index) = decrease {
        return Err(MatrixError::OffsetsDecrease {
            index: index + 1,
            value: as_u64(row_offsets[index + 1]),
            previous: as_u64(row_offsets[index]),
        });
    }
    let end = as_u64(row_offsets[row_offsets.len() - 1]);
    let most = u64::from(MAX_ROW_NNZ);
    if end > most {
        let entries = |row: usize| as_u64(row_offsets[row + 1]) - as_u64(row_offsets[row]);
        let too_long = parallel::find_first(row_offsets.len() - 1, BLOCK, |row| entries(row) > most);
        if let Some(row) = too_long {
            return Err(MatrixError::RowTooLong { row, entries: entries(row) });
        }
    }
    if end != nnz as u64 {
        return Err(MatrixError::OffsetsEnd { found: end, nnz });
    }
    Ok(())
}

/// Whether columns are in range.
pub(crate) fn check_columns(col_indices: &[u32], num_cols: usize) -> Result<(), MatrixError> {
    let bound = num_cols as u32;
    match first_outside(col_indices, bound) {
        Some(position) => {
            Err(MatrixError::ColumnOutOfRange { position, index: col_indices[position], num_cols })
        }
        None => Ok(()),
    }
}

/// The first index that is not below a bound.
pub(crate) fn first_outside(indices: &[u32], bound: u32) -> Option<usize> {
    let blocks = indices.len().div_ceil(BLOCK);
    let is_outside = |block: usize| {
        let block = &indices[block * BLOCK..indices.len().min((block + 1) * BLOCK)];
        block.iter().fold(false, |any, &index| any | (index >= bound))
    };
    let start = parallel::find_first(blocks, 1, is_outside)? * BLOCK;
    Some(start + indices[start..].iter().position(|&index| index >= bound)?)
}
