//! Rows padded to the longest.

use super::runs::{Runs, array_bytes, csr_of_rows, longest_row, partition_point};
use super::{Footprint, Format, FormatKind, NO_COLUMN};
use crate::{CsrMatrix, Entry, MatrixError, Offset};

/// Rows are padded to a multiple of so many.
pub(super) const ROW_MULTIPLE: usize = 32;

/// A matrix whose rows are padded to one length and stored by columns (ELLPACK).
///
/// Entry `k` of row `r` has slot `k * stride + r`; `stride` is the number of rows, rounded up to a multiple of 32.
#[derive(Clone, Debug, PartialEq)]
pub struct EllMatrix<V> {
    num_rows: usize,
    num_cols: usize,
    nnz: usize,
    width: usize,
    stride: usize,
    col_indices: Vec<u32>,
    values: Vec<V>,
}

impl<V: Entry> EllMatrix<V> {
    /// The first `width` entries of each row.
    pub(super) fn of_width<O: Offset>(a: &CsrMatrix<V, O>, width: usize) -> Result<Self, MatrixError> {
        let stride = stride(a.num_rows());
        let runs = Runs {
            count: width,
            start: |k: usize| k * stride,
            source: |k: usize, row: usize| {
                let range = (row < a.num_rows()).then(|| a.row_range(row))?;
                (k < range.len()).then_some(range.start + k)
            },
        };
        let (col_indices, values) = runs.fill(a)?;
        let nnz = (0..a.num_rows()).map(|row| a.row_range(row).len().min(width)).sum();
        Ok(Self { num_rows: a.num_rows(), num_cols: a.num_cols(), nnz, width, stride, col_indices, values })
    }

    /// Slots of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Slots from an entry of a row to its next one.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The column of each slot; [`NO_COLUMN`] where there is no entry.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// The value of each slot; 0 where there is no entry.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// The number of entries of a row.
    pub(super) fn row_nnz(&self, row: usize) -> usize {
        partition_point(self.width, |k| self.col_indices[k * self.stride + row] != NO_COLUMN)
    }

    /// Writes the first entries of a row.
    pub(super) fn copy_row(&self, row: usize, cols: &mut [u32], values: &mut [V]) {
        for (k, (col, value)) in cols.iter_mut().zip(values).enumerate() {
            let slot = k * self.stride + row;
            (*col, *value) = (self.col_indices[slot], self.values[slot]);
        }
    }
}

/// The number of rows, rounded up to a multiple of 32.
pub(super) fn stride(num_rows: usize) -> usize {
    num_rows.next_multiple_of(ROW_MULTIPLE)
}

impl<V: Entry, O: Offset> Format<V, O> for EllMatrix<V> {
    type Parameters = ();
    const KIND: FormatKind = FormatKind::Ell;
    const KEEPS_ORDER: bool = true;

    fn predict_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Footprint, MatrixError> {
        let slots = (longest_row(a) as u64).saturating_mul(stride(a.num_rows()) as u64);
        Ok(Footprint { nnz: a.nnz() as u64, slots, offsets: 0, index_bytes: slots.saturating_mul(4) })
    }

    fn from_csr_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Self, MatrixError> {
        <Self as Format<V, O>>::predict(a)?.admit(FormatKind::Ell, a)?;
        Self::of_width(a, longest_row(a))
    }

    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        csr_of_rows(
            self.num_rows,
            self.num_cols,
            |row| self.row_nnz(row),
            |row, cols, values| self.copy_row(row, cols, values),
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
        array_bytes(&self.col_indices) + array_bytes(&self.values)
    }

    fn for_each_entry(&self, mut entry: impl FnMut(usize, usize, V)) {
        for (slot, (&col, &value)) in self.col_indices.iter().zip(&self.values).enumerate() {
            if col != NO_COLUMN {
                entry(slot % self.stride, col as usize, value);
            }
        }
    }
}
