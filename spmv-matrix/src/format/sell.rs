//! Slices of rows, each padded to its longest row.

use super::runs::{
    BLOCK, Runs, array_bytes, by_falling_length, csr_of_rows, offsets_of, partition_point, places,
};
use super::{Footprint, Format, FormatKind, NO_COLUMN};
use crate::{CsrMatrix, Entry, MatrixError, Offset, parallel};

/// Rows of a slice.
pub const SLICE_ROWS: usize = 32;

/// A matrix in slices of 32 rows, each padded to its longest row and stored by columns (SELL-C-σ of M. Kreutzer,
/// G. Hager, G. Wellein, H. Fehske and A. R. Bishop, 2014).
///
/// Rows are sorted by falling length inside windows of `sigma` rows: row `permutation[i]` is the `i`-th. Entry `k` of
/// the `i`-th row of slice `s` has slot `slice_offsets[s] + k * 32 + i`.
#[derive(Clone, Debug, PartialEq)]
pub struct SellMatrix<V, O = u32> {
    num_rows: usize,
    num_cols: usize,
    nnz: usize,
    sigma: usize,
    permutation: Vec<u32>,
    slice_offsets: Vec<O>,
    col_indices: Vec<u32>,
    values: Vec<V>,
}

/// What may be chosen of [`SellMatrix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SellParameters {
    /// Rows that are sorted together: 1 keeps the order of the matrix, otherwise a multiple of 32.
    pub sigma: usize,
}

impl Default for SellParameters {
    fn default() -> Self {
        Self { sigma: 256 }
    }
}

impl SellParameters {
    fn check(self) -> Result<Self, MatrixError> {
        match self.sigma {
            sigma if sigma == 1 || (sigma > 0 && sigma.is_multiple_of(SLICE_ROWS)) => Ok(self),
            sigma => Err(MatrixError::Parameter {
                name: "sigma",
                value: sigma as u64,
                allowed: "1 and the multiples of 32",
            }),
        }
    }
}

impl<V: Entry, O: Offset> SellMatrix<V, O> {
    /// Rows that are sorted together.
    pub fn sigma(&self) -> usize {
        self.sigma
    }

    /// The row at each place; `num_rows` entries.
    pub fn permutation(&self) -> &[u32] {
        &self.permutation
    }

    /// The first slot of each slice, and the number of slots.
    pub fn slice_offsets(&self) -> &[O] {
        &self.slice_offsets
    }

    /// The column of each slot; [`NO_COLUMN`] where there is no entry.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// The value of each slot; 0 where there is no entry.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// The first slot of the row at a place, and the slots of a row in its slice.
    fn row_at(&self, place: usize) -> (usize, usize) {
        let slice = place / SLICE_ROWS;
        let [start, end] = [slice, slice + 1].map(|slice| self.slice_offsets[slice].to_usize());
        (start + place % SLICE_ROWS, (end - start) / SLICE_ROWS)
    }
}

/// The length of the longest row of each slice.
fn widths<V: Entry, O: Offset>(a: &CsrMatrix<V, O>, permutation: &[u32]) -> Vec<usize> {
    let longest = |rows: &[u32]| rows.iter().map(|&row| a.row_range(row as usize).len()).max().unwrap_or(0);
    let of_some = |rows: &[u32]| rows.chunks(SLICE_ROWS).map(longest).collect::<Vec<_>>();
    parallel::map(permutation.chunks(BLOCK), of_some).concat()
}

impl<V: Entry, O: Offset> Format<V, O> for SellMatrix<V, O> {
    type Parameters = SellParameters;
    const KIND: FormatKind = FormatKind::SellCSigma;
    const KEEPS_ORDER: bool = true;

    fn predict_with(a: &CsrMatrix<V, O>, parameters: SellParameters) -> Result<Footprint, MatrixError> {
        let widths = widths(a, &by_falling_length(a, parameters.check()?.sigma));
        let slots = widths.iter().fold(0_u64, |sum, &width| sum + width as u64) * SLICE_ROWS as u64;
        Ok(Footprint {
            nnz: a.nnz() as u64,
            slots,
            offsets: widths.len() as u64 + 1,
            index_bytes: slots * 4 + a.num_rows() as u64 * 4,
        })
    }

    fn from_csr_with(a: &CsrMatrix<V, O>, parameters: SellParameters) -> Result<Self, MatrixError> {
        Self::predict_with(a, parameters)?.admit(FormatKind::SellCSigma, a)?;
        let permutation = by_falling_length(a, parameters.sigma);
        let widths = widths(a, &permutation);
        let slice_offsets: Vec<O> =
            offsets_of(widths.iter().map(|width| width * SLICE_ROWS), "slice_offsets")?;
        let runs = Runs {
            count: widths.len(),
            start: |slice: usize| slice_offsets[slice].to_usize(),
            source: |slice: usize, slot: usize| {
                let row = *permutation.get(slice * SLICE_ROWS + slot % SLICE_ROWS)?;
                let (range, k) = (a.row_range(row as usize), slot / SLICE_ROWS);
                (k < range.len()).then_some(range.start + k)
            },
        };
        let (col_indices, values) = runs.fill(a)?;
        Ok(Self {
            num_rows: a.num_rows(),
            num_cols: a.num_cols(),
            nnz: a.nnz(),
            sigma: parameters.sigma,
            permutation,
            slice_offsets,
            col_indices,
            values,
        })
    }

    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        let places = places(&self.permutation)?;
        csr_of_rows(
            self.num_rows,
            self.num_cols,
            |row| {
                let (first, width) = self.row_at(places[row] as usize);
                partition_point(width, |k| self.col_indices[first + k * SLICE_ROWS] != NO_COLUMN)
            },
            |row, cols, values| {
                let (first, _) = self.row_at(places[row] as usize);
                for (k, (col, value)) in cols.iter_mut().zip(values).enumerate() {
                    let slot = first + k * SLICE_ROWS;
                    (*col, *value) = (self.col_indices[slot], self.values[slot]);
                }
            },
        )
    }

    fn num_rows(&self) -> usize {
        self.num_rows
    }

    fn num_cols(&self) -> usize {
        self.num_cols
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn bytes(&self) -> u64 {
        array_bytes(&self.permutation)
            + array_bytes(&self.slice_offsets)
            + array_bytes(&self.col_indices)
            + array_bytes(&self.values)
    }

    fn for_each_entry(&self, mut entry: impl FnMut(usize, usize, V)) {
        for (slice, ends) in self.slice_offsets.windows(2).enumerate() {
            for slot in ends[0].to_usize()..ends[1].to_usize() {
                if self.col_indices[slot] != NO_COLUMN {
                    let row = self.permutation[slice * SLICE_ROWS + slot % SLICE_ROWS];
                    entry(row as usize, self.col_indices[slot] as usize, self.values[slot]);
                }
            }
        }
    }
}
