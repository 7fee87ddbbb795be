//! A matrix cut into small dense blocks.

use super::runs::{offsets_of, split};
use crate::assemble::zeroed;
use crate::{CsrMatrix, Entry, MatrixError, Offset, parallel};

/// Rows of blocks that a task takes at a time.
const ROWS: usize = 64;

/// Bits of a key that name a place in a block.
const PLACE_BITS: u32 = 6;

/// Rows and columns of a block, which has at most 64 places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockSize {
    pub rows: usize,
    pub cols: usize,
}

/// An entry with its block and place: sorted, entries of a block come together, those of a place in their order.
struct Placed {
    /// The block's column, and the place in the block.
    key: u64,
    /// The position in the matrix.
    source: usize,
}

impl BlockSize {
    /// Whether both sizes are allowed.
    pub fn check(self, max: usize, allowed: &'static str) -> Result<Self, MatrixError> {
        for (name, value) in [("block_rows", self.rows), ("block_cols", self.cols)] {
            if value == 0 || value > max {
                return Err(MatrixError::Parameter { name, value: value as u64, allowed });
            }
        }
        Ok(self)
    }

    /// Places of a block.
    pub fn places(self) -> usize {
        self.rows * self.cols
    }

    /// Rows of blocks.
    pub fn block_rows(self, num_rows: usize) -> usize {
        num_rows.div_ceil(self.rows)
    }

    /// Sorts the entries of a row of blocks.
    fn sort<V: Entry, O: Offset>(self, a: &CsrMatrix<V, O>, block_row: usize, placed: &mut Vec<Placed>) {
        placed.clear();
        let first = block_row * self.rows;
        for row in first..a.num_rows().min(first + self.rows) {
            for source in a.row_range(row) {
                let col = a.col_indices()[source] as usize;
                let place = (row - first) * self.cols + col % self.cols;
                let key = ((col / self.cols) as u64) << PLACE_BITS | place as u64;
                placed.push(Placed { key, source });
            }
        }
        placed.sort_unstable_by_key(|placed| (placed.key, placed.source));
    }

    /// Calls `block` with the column and the layers of each block of a row, and its entries.
    fn for_each_block(placed: &[Placed], mut block: impl FnMut(u32, usize, &[Placed])) {
        for entries in placed.chunk_by(|a, b| a.key >> PLACE_BITS == b.key >> PLACE_BITS) {
            let layers = entries.chunk_by(|a, b| a.key == b.key).map(<[Placed]>::len).max();
            block((entries[0].key >> PLACE_BITS) as u32, layers.unwrap_or(0), entries);
        }
    }

    /// The number of blocks of each row of blocks; one with several entries at a place counts as often.
    pub fn count<V: Entry, O: Offset>(self, a: &CsrMatrix<V, O>) -> Result<Vec<usize>, MatrixError> {
        let mut counts: Vec<usize> = zeroed(self.block_rows(a.num_rows()), "block_offsets")?;
        parallel::for_each(counts.chunks_mut(ROWS).enumerate(), |(part, counts)| {
            let mut placed = Vec::new();
            for (row, count) in (part * ROWS..).zip(counts) {
                self.sort(a, row, &mut placed);
                Self::for_each_block(&placed, |_, layers, _| *count += layers);
            }
        });
        Ok(counts)
    }

    /// The column of each block.
    pub fn cols<V: Entry, O: Offset>(
        self,
        a: &CsrMatrix<V, O>,
        counts: &[usize],
    ) -> Result<Vec<u32>, MatrixError> {
        let mut block_cols: Vec<u32> = zeroed(counts.iter().sum(), "block_cols")?;
        let parts = split(&mut block_cols, counts.chunks(ROWS).map(|counts| counts.iter().sum()));
        parallel::for_each(
            parts.into_iter().zip(counts.chunks(ROWS)).enumerate(),
            |(part, (cols, counts))| {
                let (mut placed, mut next) = (Vec::new(), 0);
                for row in (part * ROWS..).take(counts.len()) {
                    self.sort(a, row, &mut placed);
                    Self::for_each_block(&placed, |col, layers, _| {
                        cols[next..next + layers].fill(col);
                        next += layers;
                    });
                }
            },
        );
        Ok(block_cols)
    }

    /// All blocks.
    pub fn blocks<V: Entry, O: Offset>(self, a: &CsrMatrix<V, O>) -> Result<Blocks<V, O>, MatrixError> {
        let counts = self.count(a)?;
        let num_blocks: usize = counts.iter().sum();
        let block_cols = self.cols(a, &counts)?;
        let mut values: Vec<V> = zeroed(num_blocks * self.places(), "values")?;
        let mut mask: Vec<u64> = zeroed(num_blocks, "mask")?;
        let of_part = counts.chunks(ROWS).map(|counts| counts.iter().sum::<usize>());
        let values_of = split(&mut values, of_part.clone().map(|blocks| blocks * self.places()));
        let parts = values_of.into_iter().zip(split(&mut mask, of_part)).zip(counts.chunks(ROWS));
        parallel::for_each(parts.enumerate(), |(part, ((values, mask), counts))| {
            let (mut placed, mut first) = (Vec::new(), 0);
            for row in (part * ROWS..).take(counts.len()) {
                self.sort(a, row, &mut placed);
                Self::for_each_block(&placed, |_, layers, entries| {
                    for same in entries.chunk_by(|a, b| a.key == b.key) {
                        let place = (same[0].key & ((1 << PLACE_BITS) - 1)) as usize;
                        for (block, entry) in (first..).zip(same) {
                            values[block * self.places() + place] = a.values()[entry.source];
                            mask[block] |= 1 << place;
                        }
                    }
                    first += layers;
                });
            }
        });
        Ok(Blocks {
            block_offsets: offsets_of(counts.into_iter(), "block_offsets")?,
            block_cols,
            values,
            mask,
        })
    }
}

/// The arrays of a matrix in blocks.
pub(super) struct Blocks<V, O> {
    pub block_offsets: Vec<O>,
    pub block_cols: Vec<u32>,
    pub values: Vec<V>,
    pub mask: Vec<u64>,
}
