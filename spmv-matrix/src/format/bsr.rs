//! Dense blocks, compressed by rows of blocks.

use super::blocks::{BlockSize, Blocks};
use super::runs::{array_bytes, csr_of_rows};
use super::{Footprint, Format, FormatKind};
use crate::{CsrMatrix, Entry, MatrixError, Offset};

/// A matrix in dense blocks, compressed by rows of blocks (block compressed sparse rows).
///
/// Row `i` of blocks holds the blocks `block_offsets[i] .. block_offsets[i + 1]`, columns ascending; a block with more
/// than one entry at a place is stored again for the second of them. Block `b` begins at column
/// `block_cols[b] * block_shape.1`, and the value at row `r` and column `c` of it is
/// `values[(b * block_shape.0 + r) * block_shape.1 + c]`. Bit `r * block_shape.1 + c` of `mask[b]` says whether there is
/// an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct BsrMatrix<V, O = u32> {
    num_rows: usize,
    num_cols: usize,
    nnz: usize,
    size: BlockSize,
    block_offsets: Vec<O>,
    block_cols: Vec<u32>,
    values: Vec<V>,
    mask: Vec<u64>,
}

/// What may be chosen of [`BsrMatrix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BsrParameters {
    /// Rows of a block: 1 to 8.
    pub block_rows: usize,
    /// Columns of a block: 1 to 8.
    pub block_cols: usize,
}

impl Default for BsrParameters {
    fn default() -> Self {
        Self { block_rows: 2, block_cols: 2 }
    }
}

impl BsrParameters {
    fn check(self) -> Result<BlockSize, MatrixError> {
        BlockSize { rows: self.block_rows, cols: self.block_cols }.check(8, "1 to 8")
    }
}

impl<V: Entry, O: Offset> BsrMatrix<V, O> {
    /// A matrix of its blocks.
    pub(super) fn from_blocks(
        num_rows: usize,
        num_cols: usize,
        nnz: usize,
        size: BlockSize,
        blocks: Blocks<V, O>,
    ) -> Self {
        let Blocks { block_offsets, block_cols, values, mask } = blocks;
        Self { num_rows, num_cols, nnz, size, block_offsets, block_cols, values, mask }
    }

    /// Rows and columns of a block.
    pub fn block_shape(&self) -> (usize, usize) {
        (self.size.rows, self.size.cols)
    }

    /// The number of stored blocks.
    pub fn num_blocks(&self) -> usize {
        self.block_cols.len()
    }

    /// The first block of each row of blocks, and the number of blocks.
    pub fn block_offsets(&self) -> &[O] {
        &self.block_offsets
    }

    /// The column of each block, in blocks.
    pub fn block_cols(&self) -> &[u32] {
        &self.block_cols
    }

    /// The values of each block, row by row; 0 where there is no entry.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// One bit a place of each block: whether it holds an entry.
    pub fn mask(&self) -> &[u64] {
        &self.mask
    }

    /// The entries of a row as slots with columns, block by block.
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, usize)> {
        let [first, last] = [0, 1].map(|next| self.block_offsets[row / self.size.rows + next].to_usize());
        let place = row % self.size.rows * self.size.cols;
        (first..last).flat_map(move |block| {
            let holds = move |col: &usize| self.mask[block] >> (place + col) & 1 == 1;
            (0..self.size.cols).filter(holds).map(move |col| {
                let first_col = self.block_cols[block] as usize * self.size.cols;
                (block * self.size.places() + place + col, first_col + col)
            })
        })
    }
}

impl<V: Entry, O: Offset> Format<V, O> for BsrMatrix<V, O> {
    type Parameters = BsrParameters;
    const KIND: FormatKind = FormatKind::Bsr;
    const KEEPS_ORDER: bool = false;

    fn predict_with(a: &CsrMatrix<V, O>, parameters: BsrParameters) -> Result<Footprint, MatrixError> {
        let size = parameters.check()?;
        let blocks: u64 = size.count(a)?.iter().map(|&count| count as u64).sum();
        Ok(Footprint {
            nnz: a.nnz() as u64,
            slots: blocks * size.places() as u64,
            offsets: size.block_rows(a.num_rows()) as u64 + 1,
            index_bytes: blocks * 12,
        })
    }

    fn from_csr_with(a: &CsrMatrix<V, O>, parameters: BsrParameters) -> Result<Self, MatrixError> {
        Self::predict_with(a, parameters)?.admit(FormatKind::Bsr, a)?;
        let size = parameters.check()?;
        Ok(Self::from_blocks(a.num_rows(), a.num_cols(), a.nnz(), size, size.blocks(a)?))
    }

    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        let mut a: CsrMatrix<V, O> = csr_of_rows(
            self.num_rows,
            self.num_cols,
            |row| self.row(row).count(),
            |row, cols, values| {
                for ((slot, of_slot), (col, value)) in self.row(row).zip(cols.iter_mut().zip(values)) {
                    (*col, *value) = (of_slot as u32, self.values[slot]);
                }
            },
        )?;
        // A block that is stored again begins anew.
        a.sort_columns();
        Ok(a)
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
        array_bytes(&self.block_offsets)
            + array_bytes(&self.block_cols)
            + array_bytes(&self.values)
            + array_bytes(&self.mask)
    }

    fn for_each_entry(&self, mut entry: impl FnMut(usize, usize, V)) {
        for row in 0..self.num_rows {
            for (slot, col) in self.row(row) {
                entry(row, col, self.values[slot]);
            }
        }
    }
}
