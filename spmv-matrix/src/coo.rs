//! Entries with their coordinates.

use crate::assemble::{self, Buckets, Keyed};
use crate::csr::{check_dimensions, first_outside};
use crate::{CsrMatrix, Entry, MatrixError, Offset, parallel};

/// How many entries are sorted by bucket at a time.
const CHUNK: usize = 1 << 15;

/// A matrix as a list of entries in any order; entries of the same place add.
#[derive(Clone, Debug, PartialEq)]
pub struct CooMatrix<V> {
    num_rows: usize,
    num_cols: usize,
    row_indices: Vec<u32>,
    col_indices: Vec<u32>,
    values: Vec<V>,
}

impl<V: Entry> CooMatrix<V> {
    /// Makes a matrix of as many rows, columns and values as there are entries; indices count from 0.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with the parts.
    pub fn new(
        num_rows: usize,
        num_cols: usize,
        row_indices: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<V>,
    ) -> Result<Self, MatrixError> {
        check_dimensions(num_rows, num_cols)?;
        let expected = values.len();
        for (name, found) in [("row_indices", row_indices.len()), ("col_indices", col_indices.len())] {
            if found != expected {
                return Err(MatrixError::Length { name, found, like: "values", expected });
            }
        }
        if let Some(position) = first_outside(&row_indices, num_rows as u32) {
            return Err(MatrixError::RowOutOfRange { position, index: row_indices[position], num_rows });
        }
        if let Some(position) = first_outside(&col_indices, num_cols as u32) {
            return Err(MatrixError::ColumnOutOfRange { position, index: col_indices[position], num_cols });
        }
        Ok(Self { num_rows, num_cols, row_indices, col_indices, values })
    }

    /// Parts that are known to be right.
    pub(crate) fn from_checked(
        num_rows: usize,
        num_cols: usize,
        row_indices: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<V>,
    ) -> Self {
        debug_assert!(row_indices.len() == values.len() && col_indices.len() == values.len());
        debug_assert!(row_indices.iter().all(|&row| (row as usize) < num_rows));
        debug_assert!(col_indices.iter().all(|&col| (col as usize) < num_cols));
        Self { num_rows, num_cols, row_indices, col_indices, values }
    }

    /// The number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// The number of columns.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// The number of entries.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// The row of each entry.
    pub fn row_indices(&self) -> &[u32] {
        &self.row_indices
    }

    /// The column of each entry.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// The value of each entry.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// The same matrix in compressed sparse rows, with ascending columns in each row.
    ///
    /// Every entry is kept, stored zeros and duplicates too, and entries of the same place keep their
    /// order. Runs in parallel; the result does not depend on the number of threads.
    ///
    /// # Errors
    ///
    /// [`MatrixError::OffsetOverflow`] where `O` cannot count the entries, and [`MatrixError::OutOfMemory`];
    /// besides the result it takes 8 bytes an entry more than the values do.
    pub fn to_csr<O: Offset>(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        let buckets = Buckets::new(self.num_rows, self.nnz() / CHUNK);
        let chunks = parallel::map(parallel::blocks(self.nnz(), CHUNK), |range| {
            let entries: Vec<_> = self.row_indices[range.clone()]
                .iter()
                .zip(&self.col_indices[range.clone()])
                .zip(&self.values[range])
                .map(|((&row, &col), &value)| Keyed { row, col, value })
                .collect();
            buckets.sort(&entries)
        });
        assemble::assemble(self.num_rows, self.num_cols, &buckets, chunks, |_, value| value)
    }
}
