//! A dictionary of entries, to build matrices with.

use std::collections::BTreeMap;

use super::runs::offsets_of;
use crate::csr::check_dimensions;
use crate::{CooMatrix, CsrMatrix, Entry, MatrixError, Offset};

/// A matrix that is built entry by entry, in any order (dictionary of keys), and then frozen.
///
/// ```
/// use spmv_matrix::format::DokMatrix;
///
/// let mut a = DokMatrix::new(2, 3)?;
/// a.set(1, 2, 5.0)?;
/// a.add(0, 0, 1.0)?;
/// a.add(0, 0, 2.0)?;
/// assert_eq!((a.get(0, 0), a.get(0, 1)), (Some(3.0), None));
/// let a = a.to_csr::<u32>()?;
/// assert_eq!((a.row_offsets(), a.col_indices(), a.values()), (&[0, 1, 2][..], &[0, 2][..], &[3.0, 5.0][..]));
/// # Ok::<(), spmv_matrix::MatrixError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DokMatrix<V> {
    num_rows: usize,
    num_cols: usize,
    entries: BTreeMap<(u32, u32), V>,
}

impl<V: Entry> DokMatrix<V> {
    /// A matrix without entries.
    ///
    /// # Errors
    ///
    /// [`MatrixError::TooManyRows`] and [`MatrixError::TooManyColumns`].
    pub fn new(num_rows: usize, num_cols: usize) -> Result<Self, MatrixError> {
        check_dimensions(num_rows, num_cols)?;
        Ok(Self { num_rows, num_cols, entries: BTreeMap::new() })
    }

    /// The number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// The number of columns.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// The number of entries, zeros among them included.
    pub fn nnz(&self) -> usize {
        self.entries.len()
    }

    /// Puts an entry in its place, a zero too, and gives back what was there.
    ///
    /// # Errors
    ///
    /// [`MatrixError::NoPlace`] where the matrix has no such row or column.
    pub fn set(&mut self, row: usize, col: usize, value: V) -> Result<Option<V>, MatrixError> {
        Ok(self.entries.insert(self.key(row, col)?, value))
    }

    /// Adds to what is in a place, or puts the value there.
    ///
    /// # Errors
    ///
    /// [`MatrixError::NoPlace`] where the matrix has no such row or column.
    pub fn add(&mut self, row: usize, col: usize, value: V) -> Result<(), MatrixError> {
        let key = self.key(row, col)?;
        self.entries.entry(key).and_modify(|sum| *sum = sum.plus(value)).or_insert(value);
        Ok(())
    }

    /// Takes an entry out, and gives it back where there was one.
    pub fn remove(&mut self, row: usize, col: usize) -> Option<V> {
        self.key(row, col).ok().and_then(|key| self.entries.remove(&key))
    }

    /// The entry in a place, where there is one.
    pub fn get(&self, row: usize, col: usize) -> Option<V> {
        self.key(row, col).ok().and_then(|key| self.entries.get(&key).copied())
    }

    /// The entries as row, column and value, by rows and then columns.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, V)> {
        self.entries.iter().map(|(&(row, col), &value)| (row as usize, col as usize, value))
    }

    /// The same matrix in compressed sparse rows, with ascending columns in each row.
    ///
    /// # Errors
    ///
    /// [`MatrixError::OffsetOverflow`] where `O` cannot count the entries, and [`MatrixError::OutOfMemory`].
    pub fn to_csr<O: Offset>(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        let mut counts = vec![0; self.num_rows];
        for &(row, _) in self.entries.keys() {
            counts[row as usize] += 1;
        }
        let row_offsets = offsets_of(counts.into_iter(), "row_offsets")?;
        let (cols, values) = self.entries.iter().map(|(&(_, col), &value)| (col, value)).unzip();
        Ok(CsrMatrix::from_checked(self.num_cols, row_offsets, cols, values))
    }

    /// The same matrix as a list of entries, by rows and then columns.
    pub fn to_coo(&self) -> CooMatrix<V> {
        let (rows, cols) = self.entries.keys().copied().unzip();
        let values = self.entries.values().copied().collect();
        CooMatrix::from_checked(self.num_rows, self.num_cols, rows, cols, values)
    }

    fn key(&self, row: usize, col: usize) -> Result<(u32, u32), MatrixError> {
        if row >= self.num_rows || col >= self.num_cols {
            let (num_rows, num_cols) = (self.num_rows, self.num_cols);
            return Err(MatrixError::NoPlace { row, col, num_rows, num_cols });
        }
        Ok((row as u32, col as u32))
    }
}

impl<V: Entry, O: Offset> From<&CsrMatrix<V, O>> for DokMatrix<V> {
    /// Entries of the same place add.
    fn from(a: &CsrMatrix<V, O>) -> Self {
        let mut entries = BTreeMap::new();
        for row in 0..a.num_rows() {
            let (cols, values) = a.row(row);
            for (&col, &value) in cols.iter().zip(values) {
                entries
                    .entry((row as u32, col))
                    .and_modify(|sum: &mut V| *sum = sum.plus(value))
                    .or_insert(value);
            }
        }
        Self { num_rows: a.num_rows(), num_cols: a.num_cols(), entries }
    }
}
