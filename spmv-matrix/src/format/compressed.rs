//! Coordinates and compressed sparse columns as layouts.

use super::runs::{BLOCK, array_bytes, csr_of_rows, split};
use super::{Footprint, Format, FormatKind};
use crate::assemble::zeroed;
use crate::{CooMatrix, CscMatrix, CsrMatrix, Entry, MatrixError, Offset, parallel};

/// The rows of the entries of a matrix.
pub(super) fn row_indices<V: Entry, O: Offset>(a: &CsrMatrix<V, O>) -> Result<Vec<u32>, MatrixError> {
    let mut row_indices = zeroed(a.nnz(), "row_indices")?;
    let blocks = a.row_blocks(BLOCK);
    let parts = split(&mut row_indices, blocks.iter().map(|rows| a.range_of(rows).len()));
    parallel::for_each(blocks.into_iter().zip(parts), |(rows, part)| {
        let first = a.range_of(&rows).start;
        for row in rows {
            let range = a.row_range(row);
            part[range.start - first..range.end - first].fill(row as u32);
        }
    });
    Ok(row_indices)
}

impl<V: Entry, O: Offset> Format<V, O> for CooMatrix<V> {
    type Parameters = ();
    const KIND: FormatKind = FormatKind::Coo;
    const KEEPS_ORDER: bool = true;

    fn predict_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Footprint, MatrixError> {
        let nnz = a.nnz() as u64;
        Ok(Footprint { nnz, slots: nnz, offsets: 0, index_bytes: nnz * 8 })
    }

    fn from_csr_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Self, MatrixError> {
        let (cols, values) = (a.col_indices().to_vec(), a.values().to_vec());
        Ok(CooMatrix::from_checked(a.num_rows(), a.num_cols(), row_indices(a)?, cols, values))
    }

    /// Where rows ascend, their entries keep their order; otherwise this is [`CooMatrix::to_csr`].
    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        let rows = self.row_indices();
        let descends = |position: usize| rows[position] > rows[position + 1];
        if parallel::find_first(rows.len().saturating_sub(1), BLOCK, descends).is_some() {
            return self.to_csr();
        }
        let range = |row: usize| {
            let first = rows.partition_point(|&other| (other as usize) < row);
            first..first + rows[first..].partition_point(|&other| other as usize == row)
        };
        csr_of_rows(
            CooMatrix::num_rows(self),
            CooMatrix::num_cols(self),
            |row| range(row).len(),
            |row, cols, values| {
                let range = range(row);
                cols.copy_from_slice(&self.col_indices()[range.clone()]);
                values.copy_from_slice(&self.values()[range]);
            },
        )
    }

    fn num_rows(&self) -> usize {
        self.num_rows()
    }

    fn num_cols(&self) -> usize {
        self.num_cols()
    }

    fn nnz(&self) -> usize {
        self.nnz()
    }

    fn bytes(&self) -> u64 {
        array_bytes(self.row_indices()) + array_bytes(self.col_indices()) + array_bytes(self.values())
    }

    fn for_each_entry(&self, mut entry: impl FnMut(usize, usize, V)) {
        for ((&row, &col), &value) in self.row_indices().iter().zip(self.col_indices()).zip(self.values()) {
            entry(row as usize, col as usize, value);
        }
    }
}

impl<V: Entry, O: Offset> Format<V, O> for CscMatrix<V, O> {
    type Parameters = ();
    const KIND: FormatKind = FormatKind::Csc;
    const KEEPS_ORDER: bool = false;

    fn predict_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Footprint, MatrixError> {
        let nnz = a.nnz() as u64;
        Ok(Footprint { nnz, slots: nnz, offsets: a.num_cols() as u64 + 1, index_bytes: nnz * 4 })
    }

    fn from_csr_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Self, MatrixError> {
        CscMatrix::from_csr(a)
    }

    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        self.to_csr()
    }

    fn num_rows(&self) -> usize {
        self.num_rows()
    }

    fn num_cols(&self) -> usize {
        self.num_cols()
    }

    fn nnz(&self) -> usize {
        self.nnz()
    }

    fn bytes(&self) -> u64 {
        self.transpose().bytes() as u64
    }

    fn for_each_entry(&self, mut entry: impl FnMut(usize, usize, V)) {
        for col in 0..self.num_cols() {
            let (rows, values) = self.transpose().row(col);
            for (&row, &value) in rows.iter().zip(values) {
                entry(row as usize, col, value);
            }
        }
    }
}
