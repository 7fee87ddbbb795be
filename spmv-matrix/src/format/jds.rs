//! Jagged diagonals.

use super::runs::{Runs, array_bytes, by_falling_length, csr_of_rows, offsets_of, partition_point, places};
use super::{Footprint, Format, FormatKind};
use crate::{CsrMatrix, Entry, MatrixError, Offset};

/// A matrix in jagged diagonals (Y. Saad, *Krylov Subspace Methods on Supercomputers*, 1989): all rows sorted by
/// falling length, then the first entries of all rows, their second entries, and so on.
///
/// Row `permutation[i]` is the `i`-th. Its entry `k` has slot `diagonal_offsets[k] + i`. There is no fill.
#[derive(Clone, Debug, PartialEq)]
pub struct JdsMatrix<V, O = u32> {
    num_cols: usize,
    permutation: Vec<u32>,
    diagonal_offsets: Vec<O>,
    col_indices: Vec<u32>,
    values: Vec<V>,
}

impl<V: Entry, O: Offset> JdsMatrix<V, O> {
    /// The row at each place; `num_rows` entries.
    pub fn permutation(&self) -> &[u32] {
        &self.permutation
    }

    /// The first slot of each diagonal, and the number of entries; one more than the longest row has entries.
    pub fn diagonal_offsets(&self) -> &[O] {
        &self.diagonal_offsets
    }

    /// The column of each entry.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// The value of each entry.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// The slots of a diagonal.
    fn diagonal(&self, k: usize) -> std::ops::Range<usize> {
        self.diagonal_offsets[k].to_usize()..self.diagonal_offsets[k + 1].to_usize()
    }
}

impl<V: Entry, O: Offset> Format<V, O> for JdsMatrix<V, O> {
    type Parameters = ();
    const KIND: FormatKind = FormatKind::Jds;
    const KEEPS_ORDER: bool = true;

    fn predict_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Footprint, MatrixError> {
        let nnz = a.nnz() as u64;
        Ok(Footprint {
            nnz,
            slots: nnz,
            offsets: super::runs::longest_row(a) as u64 + 1,
            index_bytes: nnz * 4 + a.num_rows() as u64 * 4,
        })
    }

    fn from_csr_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Self, MatrixError> {
        Self::predict(a)?.admit(FormatKind::Jds, a)?;
        let permutation = by_falling_length(a, usize::MAX);
        let length = |place: usize| a.row_range(permutation[place] as usize).len();
        let width = if permutation.is_empty() { 0 } else { length(0) };
        let mut rows = permutation.len();
        let lengths = (0..width).map(|k| {
            while length(rows - 1) <= k {
                rows -= 1;
            }
            rows
        });
        let diagonal_offsets: Vec<O> = offsets_of(lengths, "diagonal_offsets")?;
        let runs = Runs {
            count: width,
            start: |k: usize| diagonal_offsets[k].to_usize(),
            source: |k: usize, place: usize| Some(a.row_range(permutation[place] as usize).start + k),
        };
        let (col_indices, values) = runs.fill(a)?;
        Ok(Self { num_cols: a.num_cols(), permutation, diagonal_offsets, col_indices, values })
    }

    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        let places = places(&self.permutation)?;
        csr_of_rows(
            self.permutation.len(),
            self.num_cols,
            |row| {
                let diagonals = self.diagonal_offsets.len() - 1;
                partition_point(diagonals, |k| (places[row] as usize) < self.diagonal(k).len())
            },
            |row, cols, values| {
                for (k, (col, value)) in cols.iter_mut().zip(values).enumerate() {
                    let slot = self.diagonal(k).start + places[row] as usize;
                    (*col, *value) = (self.col_indices[slot], self.values[slot]);
                }
            },
        )
    }

    fn num_rows(&self) -> usize {
        self.permutation.len()
    }

    fn num_cols(&self) -> usize {
        self.num_cols
    }

    fn nnz(&self) -> usize {
        self.values.len()
    }

    fn bytes(&self) -> u64 {
        array_bytes(&self.permutation)
            + array_bytes(&self.diagonal_offsets)
            + array_bytes(&self.col_indices)
            + array_bytes(&self.values)
    }

    fn for_each_entry(&self, mut entry: impl FnMut(usize, usize, V)) {
        for k in 0..self.diagonal_offsets.len() - 1 {
            for (slot, &row) in self.diagonal(k).zip(&self.permutation) {
                entry(row as usize, self.col_indices[slot] as usize, self.values[slot]);
            }
        }
    }
}
