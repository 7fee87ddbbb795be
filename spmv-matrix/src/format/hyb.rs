//! Usual rows padded, what is longer as coordinates.

use super::compressed::row_indices;
use super::ell::stride;
use super::runs::{BLOCK, csr_of_rows, row_lengths};
use super::{EllMatrix, Footprint, Format, FormatKind};
use crate::{CooMatrix, CsrMatrix, Entry, MatrixError, Offset, parallel};

/// A matrix whose rows begin in [`EllMatrix`] and go on in [`CooMatrix`] (N. Bell and M. Garland, 2009).
///
/// The padded part is as wide as a third of the rows is long: the largest width that at least `num_rows / 3` rows, and
/// at least one, have entries for. The rest has the order of the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct HybMatrix<V> {
    ell: EllMatrix<V>,
    coo: CooMatrix<V>,
}

impl<V: Entry> HybMatrix<V> {
    /// The first entries of each row.
    pub fn ell(&self) -> &EllMatrix<V> {
        &self.ell
    }

    /// The other entries, row by row.
    pub fn coo(&self) -> &CooMatrix<V> {
        &self.coo
    }

    /// The other entries of a row.
    fn rest(&self, row: usize) -> std::ops::Range<usize> {
        let rows = self.coo.row_indices();
        let first = rows.partition_point(|&other| (other as usize) < row);
        first..first + rows[first..].partition_point(|&other| other as usize == row)
    }
}

/// The width of the padded part.
fn width(mut row_lengths: Vec<usize>) -> usize {
    let rows = (row_lengths.len() / 3).max(1);
    match row_lengths.len() {
        0 => 0,
        len => *row_lengths.select_nth_unstable(len - rows).1,
    }
}

/// The entries of each row from the `width`-th on.
fn rest_of<V: Entry, O: Offset>(a: &CsrMatrix<V, O>, width: usize) -> Result<CsrMatrix<V, O>, MatrixError> {
    let rest = |row: usize| {
        let range = a.row_range(row);
        range.start + range.len().min(width)..range.end
    };
    csr_of_rows(
        a.num_rows(),
        a.num_cols(),
        |row| rest(row).len(),
        |row, cols, values| {
            cols.copy_from_slice(&a.col_indices()[rest(row)]);
            values.copy_from_slice(&a.values()[rest(row)]);
        },
    )
}

impl<V: Entry, O: Offset> Format<V, O> for HybMatrix<V> {
    type Parameters = ();
    const KIND: FormatKind = FormatKind::Hyb;
    const KEEPS_ORDER: bool = true;

    fn predict_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Footprint, MatrixError> {
        let lengths = row_lengths(a);
        let width = width(lengths.clone());
        let padded = (width as u64).saturating_mul(stride(a.num_rows()) as u64);
        let rest = parallel::sum(lengths.len(), BLOCK, |row| lengths[row].saturating_sub(width) as u64);
        Ok(Footprint {
            nnz: a.nnz() as u64,
            slots: padded.saturating_add(rest),
            offsets: 0,
            index_bytes: padded.saturating_mul(4).saturating_add(rest * 8),
        })
    }

    fn from_csr_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Self, MatrixError> {
        <Self as Format<V, O>>::predict(a)?.admit(FormatKind::Hyb, a)?;
        let width = width(row_lengths(a));
        let rest = rest_of(a, width)?;
        let rows = row_indices(&rest)?;
        let (_, cols, values) = rest.into_parts();
        Ok(Self {
            ell: EllMatrix::of_width(a, width)?,
            coo: CooMatrix::from_checked(a.num_rows(), a.num_cols(), rows, cols, values),
        })
    }

    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        csr_of_rows(
            self.coo.num_rows(),
            self.coo.num_cols(),
            |row| self.ell.row_nnz(row) + self.rest(row).len(),
            |row, cols, values| {
                let rest = self.rest(row);
                let (cols, rest_cols) = cols.split_at_mut(cols.len() - rest.len());
                let (values, rest_values) = values.split_at_mut(cols.len());
                self.ell.copy_row(row, cols, values);
                rest_cols.copy_from_slice(&self.coo.col_indices()[rest.clone()]);
                rest_values.copy_from_slice(&self.coo.values()[rest]);
            },
        )
    }

    fn num_rows(&self) -> usize {
        self.coo.num_rows()
    }

    fn num_cols(&self) -> usize {
        self.coo.num_cols()
    }

    fn nnz(&self) -> usize {
        Format::<V, O>::nnz(&self.ell) + self.coo.nnz()
    }

    fn bytes(&self) -> u64 {
        Format::<V, O>::bytes(&self.ell) + Format::<V, O>::bytes(&self.coo)
    }

    fn for_each_entry(&self, mut entry: impl FnMut(usize, usize, V)) {
        Format::<V, O>::for_each_entry(&self.ell, &mut entry);
        Format::<V, O>::for_each_entry(&self.coo, entry);
    }
}
