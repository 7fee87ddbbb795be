//! Compressed sparse columns.

use crate::{CsrMatrix, Entry, MatrixError, Offset};

/// A matrix in compressed sparse columns.
///
/// Column `i` holds the entries `col_offsets[i] .. col_offsets[i + 1]` of `row_indices` and `values`. These are the
/// arrays of the transpose in compressed sparse rows, and everything that [`CsrMatrix`] promises holds of that one.
#[derive(Clone, Debug, PartialEq)]
pub struct CscMatrix<V, O = u32> {
    transpose: CsrMatrix<V, O>,
}

impl<V: Entry, O: Offset> CscMatrix<V, O> {
    /// Makes a matrix of its parts: `num_cols + 1` offsets, and as many rows as values.
    ///
    /// # Errors
    ///
    /// [`MatrixError::Columns`] with the first thing that is wrong with the parts.
    pub fn new(
        num_rows: usize,
        num_cols: usize,
        col_offsets: Vec<O>,
        row_indices: Vec<u32>,
        values: Vec<V>,
    ) -> Result<Self, MatrixError> {
        let transpose = CsrMatrix::new(num_cols, num_rows, col_offsets, row_indices, values);
        Ok(Self { transpose: transpose.map_err(|error| MatrixError::Columns(Box::new(error)))? })
    }

    /// The matrix whose transpose this is; nothing is copied.
    pub fn from_transpose(transpose: CsrMatrix<V, O>) -> Self {
        Self { transpose }
    }

    /// The same matrix, with ascending rows in each column.
    ///
    /// # Errors
    ///
    /// Those of [`CsrMatrix::transpose`].
    pub fn from_csr(a: &CsrMatrix<V, O>) -> Result<Self, MatrixError> {
        Ok(Self { transpose: a.transpose()? })
    }

    /// The same matrix, with ascending columns in each row.
    ///
    /// # Errors
    ///
    /// Those of [`CsrMatrix::transpose`].
    pub fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        self.transpose.transpose()
    }

    /// The transpose in compressed sparse rows: the same arrays.
    pub fn transpose(&self) -> &CsrMatrix<V, O> {
        &self.transpose
    }

    /// The transpose in compressed sparse rows; nothing is copied.
    pub fn into_transpose(self) -> CsrMatrix<V, O> {
        self.transpose
    }

    /// The number of rows.
    pub fn num_rows(&self) -> usize {
        self.transpose.num_cols()
    }

    /// The number of columns.
    pub fn num_cols(&self) -> usize {
        self.transpose.num_rows()
    }

    /// The number of stored entries, duplicates and stored zeros included.
    pub fn nnz(&self) -> usize {
        self.transpose.nnz()
    }

    /// Where each column starts, and the number of nonzeros at the end; `num_cols + 1` entries.
    pub fn col_offsets(&self) -> &[O] {
        self.transpose.row_offsets()
    }

    /// The row of each entry, column by column.
    pub fn row_indices(&self) -> &[u32] {
        self.transpose.col_indices()
    }

    /// The value of each entry, column by column.
    pub fn values(&self) -> &[V] {
        self.transpose.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CooMatrix;

    #[test]
    fn the_same_matrix_by_columns() {
        let a = CooMatrix::new(2, 3, vec![0, 0, 0, 1], vec![0, 1, 2, 1], vec![1.0, 3.0, 2.0, 5.0]).unwrap();
        let a = a.to_csr::<u32>().unwrap();
        let by_columns = CscMatrix::from_csr(&a).unwrap();
        assert_eq!((by_columns.num_rows(), by_columns.num_cols(), by_columns.nnz()), (2, 3, 4));
        assert_eq!(by_columns.col_offsets(), [0, 1, 3, 4]);
        assert_eq!(by_columns.row_indices(), [0, 0, 1, 0]);
        assert_eq!(by_columns.values(), [1.0, 3.0, 5.0, 2.0]);
        assert_eq!(by_columns.to_csr().unwrap(), a);
        let (offsets, rows, values) = by_columns.clone().into_transpose().into_parts();
        assert_eq!(CscMatrix::new(2, 3, offsets, rows, values).unwrap(), by_columns);
        assert_eq!(CscMatrix::from_transpose(by_columns.transpose().clone()), by_columns);
    }

    #[test]
    fn parts_that_make_no_matrix_are_refused() {
        let error = CscMatrix::new(2, 1, vec![0u32, 1], vec![2], vec![1.0]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "in compressed sparse columns, where rows are columns and columns are rows: col_indices[0] is 2: with 2 \
             columns it must be below 2"
        );
        assert!(CscMatrix::new(2, 1, vec![0u32], vec![], Vec::<f64>::new()).is_err());
    }
}
