//! Jagged diagonals of the columns.

use super::{Footprint, Format, FormatKind, JdsMatrix};
use crate::assemble::zeroed;
use crate::{CsrMatrix, Entry, MatrixError, Offset};

/// A matrix in transposed jagged diagonals: all columns sorted by falling length, then the first entries of all columns,
/// their second entries, and so on.
///
/// These are the arrays of the transpose in [`JdsMatrix`]: column `permutation[j]` is the `j`-th, and its entry `k`,
/// rows ascending, has slot `diagonal_offsets[k] + j`. There is no fill.
#[derive(Clone, Debug, PartialEq)]
pub struct TjdsMatrix<V, O = u32> {
    transpose: JdsMatrix<V, O>,
}

impl<V: Entry, O: Offset> TjdsMatrix<V, O> {
    /// The transpose in jagged diagonals: the same arrays.
    pub fn transpose(&self) -> &JdsMatrix<V, O> {
        &self.transpose
    }

    /// The column at each place; `num_cols` entries.
    pub fn permutation(&self) -> &[u32] {
        self.transpose.permutation()
    }

    /// The first slot of each diagonal, and the number of entries; one more than the longest column has entries.
    pub fn diagonal_offsets(&self) -> &[O] {
        self.transpose.diagonal_offsets()
    }

    /// The row of each entry.
    pub fn row_indices(&self) -> &[u32] {
        self.transpose.col_indices()
    }

    /// The value of each entry.
    pub fn values(&self) -> &[V] {
        self.transpose.values()
    }
}

impl<V: Entry, O: Offset> Format<V, O> for TjdsMatrix<V, O> {
    type Parameters = ();
    const KIND: FormatKind = FormatKind::Tjds;
    const KEEPS_ORDER: bool = false;

    fn predict_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Footprint, MatrixError> {
        let mut lengths: Vec<usize> = zeroed(a.num_cols(), "column lengths")?;
        for &col in a.col_indices() {
            lengths[col as usize] += 1;
        }
        let nnz = a.nnz() as u64;
        Ok(Footprint {
            nnz,
            slots: nnz,
            offsets: lengths.into_iter().max().unwrap_or(0) as u64 + 1,
            index_bytes: nnz * 4 + a.num_cols() as u64 * 4,
        })
    }

    fn from_csr_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Self, MatrixError> {
        Ok(Self { transpose: JdsMatrix::from_csr(&a.transpose()?)? })
    }

    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        self.transpose.to_csr()?.transpose()
    }

    fn num_rows(&self) -> usize {
        self.transpose.num_cols()
    }

    fn num_cols(&self) -> usize {
        self.transpose.num_rows()
    }

    fn nnz(&self) -> usize {
        self.transpose.nnz()
    }

    fn bytes(&self) -> u64 {
        self.transpose.bytes()
    }

    fn for_each_entry(&self, mut entry: impl FnMut(usize, usize, V)) {
        self.transpose.for_each_entry(|col, row, value| entry(row, col, value));
    }
}
