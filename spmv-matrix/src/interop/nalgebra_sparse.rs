//! nalgebra-sparse.

use super::{check_canonical, narrow, widen};
use crate::{CscMatrix, CsrMatrix, Entry, MatrixError, Offset};

const LIBRARY: &str = "nalgebra-sparse";

/// What nalgebra-sparse says of parts that were checked.
fn refused<T>(_: T) -> MatrixError {
    MatrixError::NotCanonical { library: LIBRARY, row: 0 }
}

impl<V: Entry, O: Offset> TryFrom<CsrMatrix<V, O>> for nalgebra_sparse::CsrMatrix<V> {
    type Error = MatrixError;

    /// Moves the values and copies the indices.
    fn try_from(a: CsrMatrix<V, O>) -> Result<Self, MatrixError> {
        check_canonical(&a, LIBRARY)?;
        let (num_rows, num_cols) = (a.num_rows(), a.num_cols());
        let (offsets, indices) = widen(a.row_offsets(), a.col_indices());
        let (_, _, values) = a.into_parts();
        Self::try_from_csr_data(num_rows, num_cols, offsets, indices, values).map_err(refused)
    }
}

impl<V: Entry, O: Offset> TryFrom<nalgebra_sparse::CsrMatrix<V>> for CsrMatrix<V, O> {
    type Error = MatrixError;

    /// Moves the values and copies the indices.
    fn try_from(a: nalgebra_sparse::CsrMatrix<V>) -> Result<Self, MatrixError> {
        let (num_rows, num_cols) = (a.nrows(), a.ncols());
        let (offsets, indices, values) = a.disassemble();
        narrow(num_rows, num_cols, &offsets, &indices, values)
    }
}

impl<V: Entry, O: Offset> TryFrom<CscMatrix<V, O>> for nalgebra_sparse::CscMatrix<V> {
    type Error = MatrixError;

    /// Moves the values and copies the indices.
    fn try_from(a: CscMatrix<V, O>) -> Result<Self, MatrixError> {
        check_canonical(a.transpose(), LIBRARY)?;
        let (num_rows, num_cols) = (a.num_rows(), a.num_cols());
        let (offsets, indices) = widen(a.col_offsets(), a.row_indices());
        let (_, _, values) = a.into_transpose().into_parts();
        Self::try_from_csc_data(num_rows, num_cols, offsets, indices, values).map_err(refused)
    }
}

impl<V: Entry, O: Offset> TryFrom<nalgebra_sparse::CscMatrix<V>> for CscMatrix<V, O> {
    type Error = MatrixError;

    /// Moves the values and copies the indices.
    fn try_from(a: nalgebra_sparse::CscMatrix<V>) -> Result<Self, MatrixError> {
        let (num_rows, num_cols) = (a.nrows(), a.ncols());
        let (offsets, indices, values) = a.disassemble();
        Ok(CscMatrix::from_transpose(narrow(num_cols, num_rows, &offsets, &indices, values)?))
    }
}
