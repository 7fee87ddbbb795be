//! sprs.

use sprs::{CsMat, CsMatI, CsMatViewI, SpIndex};

use super::{check_canonical, narrow, widen};
use crate::{CscMatrix, CsrMatrix, Entry, MatrixError, Offset};

const LIBRARY: &str = "sprs";

/// What sprs says of parts that were checked.
fn refused<T>(_: T) -> MatrixError {
    MatrixError::NotCanonical { library: LIBRARY, row: 0 }
}

impl<V: Entry, O: Offset + SpIndex> TryFrom<CsrMatrix<V, O>> for CsMatI<V, u32, O> {
    type Error = MatrixError;

    /// Moves the arrays.
    fn try_from(a: CsrMatrix<V, O>) -> Result<Self, MatrixError> {
        check_canonical(&a, LIBRARY)?;
        let shape = (a.num_rows(), a.num_cols());
        let (row_offsets, col_indices, values) = a.into_parts();
        CsMatI::try_new(shape, row_offsets, col_indices, values).map_err(refused)
    }
}

impl<'a, V: Entry, O: Offset + SpIndex> TryFrom<&'a CsrMatrix<V, O>> for CsMatViewI<'a, V, u32, O> {
    type Error = MatrixError;

    /// Borrows the arrays.
    fn try_from(a: &'a CsrMatrix<V, O>) -> Result<Self, MatrixError> {
        check_canonical(a, LIBRARY)?;
        let shape = (a.num_rows(), a.num_cols());
        CsMatViewI::try_new(shape, a.row_offsets(), a.col_indices(), a.values()).map_err(refused)
    }
}

impl<V: Entry, O: Offset> TryFrom<&CsrMatrix<V, O>> for CsMat<V> {
    type Error = MatrixError;

    /// Copies the arrays.
    fn try_from(a: &CsrMatrix<V, O>) -> Result<Self, MatrixError> {
        check_canonical(a, LIBRARY)?;
        let (row_offsets, col_indices) = widen(a.row_offsets(), a.col_indices());
        let shape = (a.num_rows(), a.num_cols());
        CsMat::try_new(shape, row_offsets, col_indices, a.values().to_vec()).map_err(refused)
    }
}

impl<V: Entry, O: Offset + SpIndex> TryFrom<CsMatI<V, u32, O>> for CsrMatrix<V, O> {
    type Error = MatrixError;

    /// Moves the arrays; what is stored by columns is sorted anew.
    fn try_from(a: CsMatI<V, u32, O>) -> Result<Self, MatrixError> {
        let ((num_rows, num_cols), is_csr) = (a.shape(), a.is_csr());
        let (mut offsets, indices, values) = a.into_raw_storage();
        // Those of a slice count from where it begins in the whole.
        let first = offsets.first().map_or(0, |first| first.index());
        if first > 0 {
            offsets
                .iter_mut()
                .for_each(|offset| *offset = <O as SpIndex>::from_usize(offset.index() - first));
        }
        match is_csr {
            true => CsrMatrix::new(num_rows, num_cols, offsets, indices, values),
            false => CscMatrix::new(num_rows, num_cols, offsets, indices, values)?.to_csr(),
        }
    }
}

impl<V: Entry, O: Offset> TryFrom<&CsMat<V>> for CsrMatrix<V, O> {
    type Error = MatrixError;

    /// Copies the arrays; what is stored by columns is sorted anew.
    fn try_from(a: &CsMat<V>) -> Result<Self, MatrixError> {
        let (num_rows, num_cols) = a.shape();
        let (outer, inner) = if a.is_csr() { (num_rows, num_cols) } else { (num_cols, num_rows) };
        let stored = narrow(outer, inner, &a.proper_indptr(), a.indices(), a.data().to_vec())?;
        if a.is_csr() { Ok(stored) } else { CscMatrix::from_transpose(stored).to_csr() }
    }
}
