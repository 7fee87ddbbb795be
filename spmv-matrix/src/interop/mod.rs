//! Matrices of other libraries, each behind the feature of its name.
//!
//! | feature | without a copy | with a copy of the indices |
//! |---|---|---|
//! | `sprs` | `CsMatI<V, u32, O>`, both ways; `CsMatViewI` borrows | `CsMat<V>`, whose indices are `usize` |
//! | `nalgebra-sparse` | | `CsrMatrix` and `CscMatrix`, whose indices are `usize`; values are moved |
//! | `faer` | `SparseRowMat<u32, V>`, both ways; `SparseRowMatRef` borrows | `SparseRowMat<usize, V>`; values are moved |
//!
//! These libraries want the columns of a row ascending and different. Another matrix is refused with
//! [`MatrixError::NotCanonical`];
//! [`CsrMatrix::sum_duplicates`] makes it so.

use crate::csr::check_offset_type;
use crate::{CsrMatrix, Entry, MatrixError, Offset, parallel};

#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "nalgebra-sparse")]
mod nalgebra_sparse;
#[cfg(feature = "sprs")]
mod sprs;

/// Rows or entries that a task takes at least.
const BLOCK: usize = 1 << 14;

/// Whether columns ascend without repetition in every row, as `library` has it.
fn check_canonical<V: Entry, O: Offset>(
    a: &CsrMatrix<V, O>,
    library: &'static str,
) -> Result<(), MatrixError> {
    let unordered = |row: usize| a.row(row).0.windows(2).any(|pair| pair[0] >= pair[1]);
    match parallel::find_first(a.num_rows(), BLOCK, unordered) {
        Some(row) => Err(MatrixError::NotCanonical { library, row }),
        None => Ok(()),
    }
}

/// Offsets and columns as `usize`.
fn widen<O: Offset>(row_offsets: &[O], col_indices: &[u32]) -> (Vec<usize>, Vec<usize>) {
    (
        parallel::collect(row_offsets.len(), BLOCK, |row| row_offsets[row].to_usize()),
        parallel::collect(col_indices.len(), BLOCK, |position| col_indices[position] as usize),
    )
}

/// A matrix of parts with `usize` indices.
fn narrow<V: Entry, O: Offset>(
    num_rows: usize,
    num_cols: usize,
    row_offsets: &[usize],
    col_indices: &[usize],
    values: Vec<V>,
) -> Result<CsrMatrix<V, O>, MatrixError> {
    crate::csr::check_dimensions(num_rows, num_cols)?;
    check_offset_type::<O>(col_indices.len() as u64)?;
    // What does not fit is out of range, and stays so.
    let offset =
        |offset: usize| O::from_usize(offset).unwrap_or(O::from_usize(u32::MAX as usize).unwrap_or_default());
    let col = |col: usize| u32::try_from(col).unwrap_or(u32::MAX);
    CsrMatrix::new(
        num_rows,
        num_cols,
        parallel::collect(row_offsets.len(), BLOCK, |row| offset(row_offsets[row])),
        parallel::collect(col_indices.len(), BLOCK, |position| col(col_indices[position])),
        values,
    )
}
