//! faer.

use faer::sparse::{SparseRowMat, SparseRowMatRef, SymbolicSparseRowMat, SymbolicSparseRowMatRef};

use super::{check_canonical, narrow, widen};
use crate::{CsrMatrix, Entry, MatrixError, Offset};

const LIBRARY: &str = "faer";

/// Whether faer can have the matrix with `u32` indices: it counts with as many bits less one.
fn check_u32<V: Entry>(a: &CsrMatrix<V, u32>) -> Result<(), MatrixError> {
    let (nnz, max) = (a.nnz() as u64, i32::MAX as u64);
    if nnz > max {
        return Err(MatrixError::OffsetOverflow { nnz, offset: "u32", max });
    }
    check_canonical(a, LIBRARY)
}

impl<V: Entry> TryFrom<CsrMatrix<V, u32>> for SparseRowMat<u32, V> {
    type Error = MatrixError;

    /// Moves the arrays.
    fn try_from(a: CsrMatrix<V, u32>) -> Result<Self, MatrixError> {
        check_u32(&a)?;
        let (num_rows, num_cols) = (a.num_rows(), a.num_cols());
        let (offsets, cols, values) = a.into_parts();
        Ok(Self::new(SymbolicSparseRowMat::new_checked(num_rows, num_cols, offsets, None, cols), values))
    }
}

impl<'a, V: Entry> TryFrom<&'a CsrMatrix<V, u32>> for SparseRowMatRef<'a, u32, V> {
    type Error = MatrixError;

    /// Borrows the arrays.
    fn try_from(a: &'a CsrMatrix<V, u32>) -> Result<Self, MatrixError> {
        check_u32(a)?;
        let (num_rows, num_cols) = (a.num_rows(), a.num_cols());
        let structure =
            SymbolicSparseRowMatRef::new_checked(num_rows, num_cols, a.row_offsets(), None, a.col_indices());
        Ok(Self::new(structure, a.values()))
    }
}

impl<V: Entry, O: Offset> TryFrom<CsrMatrix<V, O>> for SparseRowMat<usize, V> {
    type Error = MatrixError;

    /// Moves the values and copies the indices.
    fn try_from(a: CsrMatrix<V, O>) -> Result<Self, MatrixError> {
        check_canonical(&a, LIBRARY)?;
        let (num_rows, num_cols) = (a.num_rows(), a.num_cols());
        let (offsets, cols) = widen(a.row_offsets(), a.col_indices());
        let (_, _, values) = a.into_parts();
        Ok(Self::new(SymbolicSparseRowMat::new_checked(num_rows, num_cols, offsets, None, cols), values))
    }
}

impl<V: Entry> TryFrom<SparseRowMat<u32, V>> for CsrMatrix<V, u32> {
    type Error = MatrixError;

    /// Moves the arrays; rows that have gaps between them are moved together.
    fn try_from(a: SparseRowMat<u32, V>) -> Result<Self, MatrixError> {
        let (structure, values) = a.into_parts();
        let (num_rows, num_cols, offsets, lengths, cols) = structure.into_parts();
        let Some(lengths) = lengths else {
            return CsrMatrix::new(num_rows, num_cols, offsets, cols, values);
        };
        let rows = offsets.iter().zip(lengths).map(|(&start, len)| (start as usize, len as usize));
        let (offsets, places) = together(rows);
        let cols: Vec<usize> = places.iter().map(|&place| cols[place] as usize).collect();
        narrow(num_rows, num_cols, &offsets, &cols, places.iter().map(|&place| values[place]).collect())
    }
}

impl<V: Entry, O: Offset> TryFrom<SparseRowMat<usize, V>> for CsrMatrix<V, O> {
    type Error = MatrixError;

    /// Moves the values and copies the indices; rows that have gaps between them are moved together.
    fn try_from(a: SparseRowMat<usize, V>) -> Result<Self, MatrixError> {
        let (structure, values) = a.into_parts();
        let (num_rows, num_cols, offsets, lengths, cols) = structure.into_parts();
        let Some(lengths) = lengths else {
            return narrow(num_rows, num_cols, &offsets, &cols, values);
        };
        let (offsets, places) = together(offsets.iter().copied().zip(lengths));
        let cols: Vec<usize> = places.iter().map(|&place| cols[place]).collect();
        narrow(num_rows, num_cols, &offsets, &cols, places.iter().map(|&place| values[place]).collect())
    }
}

/// Offsets without gaps of rows that start somewhere and have a length, and where their entries were.
fn together(rows: impl Iterator<Item = (usize, usize)>) -> (Vec<usize>, Vec<usize>) {
    let (mut offsets, mut places) = (vec![0], Vec::new());
    for (start, len) in rows {
        places.extend(start..start + len);
        offsets.push(places.len());
    }
    (offsets, places)
}
