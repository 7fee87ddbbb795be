//! Dense blocks with compressed coordinates.

use super::blocks::{BlockSize, Blocks};
use super::runs::{BLOCK, array_bytes, offsets_of};
use super::{BsrMatrix, Footprint, Format, FormatKind};
use crate::assemble::zeroed;
use crate::{CsrMatrix, Entry, MatrixError, Offset, parallel};

/// Blocks whose columns are differences from one full column.
pub const BLOCKS_PER_TILE: usize = 256;

/// The difference of a block whose column is listed in full.
pub const ESCAPE: i16 = i16::MIN;

/// A matrix in dense blocks with compressed coordinates (BCCOO: S. Yan, C. Li, Y. Zhang and H. Zhou, *yaSpMV*, 2014).
///
/// Blocks come row by row, columns ascending; a block with more than one entry at a place is stored again for the
/// second of them. The value at row `r` and column `c` of block `b` is
/// `values[(b * block_shape.0 + r) * block_shape.1 + c]`; bit `r * block_shape.1 + c` of `mask[b]` says whether there is
/// an entry.
///
/// Rows of blocks: bit `b % 32` of `bit_flags[b / 32]` is 0 where block `b` is the last of its row, and 1 otherwise and
/// behind the last block. `block_rows` lists the rows that have blocks; tile `t` of 256 blocks begins in row
/// `block_rows[tile_rows[t]]`.
///
/// Columns of blocks: the first block of tile `t` has `tile_cols[t]`. Each other has that of the block before and
/// `col_deltas[b]` more, or where that is [`ESCAPE`] the next of `escaped_cols`, those of tile `t` from
/// `escape_offsets[t]` on.
#[derive(Clone, Debug, PartialEq)]
pub struct BccooMatrix<V, O = u32> {
    num_rows: usize,
    num_cols: usize,
    nnz: usize,
    size: BlockSize,
    bit_flags: Vec<u32>,
    block_rows: Vec<u32>,
    tile_rows: Vec<u32>,
    tile_cols: Vec<u32>,
    col_deltas: Vec<i16>,
    escape_offsets: Vec<O>,
    escaped_cols: Vec<u32>,
    values: Vec<V>,
    mask: Vec<u16>,
}

/// What may be chosen of [`BccooMatrix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BccooParameters {
    /// Rows of a block: 1 to 4.
    pub block_rows: usize,
    /// Columns of a block: 1 to 4.
    pub block_cols: usize,
}

impl Default for BccooParameters {
    fn default() -> Self {
        Self { block_rows: 2, block_cols: 2 }
    }
}

impl BccooParameters {
    fn check(self) -> Result<BlockSize, MatrixError> {
        BlockSize { rows: self.block_rows, cols: self.block_cols }.check(4, "1 to 4")
    }
}

impl<V: Entry, O: Offset> BccooMatrix<V, O> {
    /// Rows and columns of a block.
    pub fn block_shape(&self) -> (usize, usize) {
        (self.size.rows, self.size.cols)
    }

    /// The number of stored blocks.
    pub fn num_blocks(&self) -> usize {
        self.mask.len()
    }

    /// One bit a block: 0 where it is the last of its row of blocks.
    pub fn bit_flags(&self) -> &[u32] {
        &self.bit_flags
    }

    /// The rows of blocks that have blocks.
    pub fn block_rows(&self) -> &[u32] {
        &self.block_rows
    }

    /// The entry of `block_rows` that each tile begins in.
    pub fn tile_rows(&self) -> &[u32] {
        &self.tile_rows
    }

    /// The column of each tile's first block, in blocks.
    pub fn tile_cols(&self) -> &[u32] {
        &self.tile_cols
    }

    /// The difference of each block's column from the one before, in blocks; 0 for the first of a tile.
    pub fn col_deltas(&self) -> &[i16] {
        &self.col_deltas
    }

    /// The first entry of `escaped_cols` of each tile, and the number of them.
    pub fn escape_offsets(&self) -> &[O] {
        &self.escape_offsets
    }

    /// The columns, in blocks, that are no difference.
    pub fn escaped_cols(&self) -> &[u32] {
        &self.escaped_cols
    }

    /// The values of each block, row by row; 0 where there is no entry.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// One bit a place of each block: whether it holds an entry.
    pub fn mask(&self) -> &[u16] {
        &self.mask
    }

    /// Whether a block is the last of its row.
    fn ends_row(&self, block: usize) -> bool {
        self.bit_flags[block / 32] >> (block % 32) & 1 == 0
    }

    /// The columns of the blocks of a tile.
    fn cols_of(&self, tile: usize) -> impl Iterator<Item = u32> {
        let first = tile * BLOCKS_PER_TILE;
        let deltas = &self.col_deltas[first..self.col_deltas.len().min(first + BLOCKS_PER_TILE)];
        let mut escaped = self.escaped_cols[self.escape_offsets[tile].to_usize()..].iter();
        let mut col = self.tile_cols[tile];
        deltas.iter().map(move |&delta| {
            col = match delta {
                ESCAPE => *escaped.next().expect("a column for each escape"),
                delta => col.wrapping_add_signed(i32::from(delta)),
            };
            col
        })
    }

    /// The same blocks with full coordinates.
    fn to_bsr(&self) -> Result<BsrMatrix<V, O>, MatrixError> {
        let mut block_cols: Vec<u32> = zeroed(self.num_blocks(), "block_cols")?;
        parallel::for_each(block_cols.chunks_mut(BLOCKS_PER_TILE).enumerate(), |(tile, cols)| {
            for (col, of_block) in cols.iter_mut().zip(self.cols_of(tile)) {
                *col = of_block;
            }
        });
        let mut counts: Vec<usize> = zeroed(self.size.block_rows(self.num_rows), "block_offsets")?;
        let (mut row, mut first) = (0, 0);
        for block in (0..self.num_blocks()).filter(|&block| self.ends_row(block)) {
            counts[self.block_rows[row] as usize] = block + 1 - first;
            (row, first) = (row + 1, block + 1);
        }
        let blocks = Blocks {
            block_offsets: offsets_of(counts.into_iter(), "block_offsets")?,
            block_cols,
            values: self.values.clone(),
            mask: parallel::collect(self.num_blocks(), BLOCK, |block| self.mask[block].into()),
        };
        Ok(BsrMatrix::from_blocks(self.num_rows, self.num_cols, self.nnz, self.size, blocks))
    }
}

/// The difference of each block's column from the one before; [`ESCAPE`] where it has too many bits.
fn deltas(cols: &[u32]) -> impl Iterator<Item = i16> {
    let small = |delta: i64| i16::try_from(delta).ok().filter(|&delta| delta != ESCAPE).unwrap_or(ESCAPE);
    let differences = cols.windows(2).map(move |pair| small(i64::from(pair[1]) - i64::from(pair[0])));
    cols.first().map(|_| 0).into_iter().chain(differences)
}

/// The number of escapes of each tile.
fn escapes(block_cols: &[u32]) -> Vec<usize> {
    let count = |cols: &[u32]| deltas(cols).filter(|&delta| delta == ESCAPE).count();
    parallel::map(block_cols.chunks(BLOCKS_PER_TILE), count)
}

impl<V: Entry, O: Offset> Format<V, O> for BccooMatrix<V, O> {
    type Parameters = BccooParameters;
    const KIND: FormatKind = FormatKind::Bccoo;
    const KEEPS_ORDER: bool = false;

    fn predict_with(a: &CsrMatrix<V, O>, parameters: BccooParameters) -> Result<Footprint, MatrixError> {
        let size = parameters.check()?;
        let counts = size.count(a)?;
        let escapes = escapes(&size.cols(a, &counts)?);
        let sum = |counts: &[usize]| counts.iter().map(|&count| count as u64).sum::<u64>();
        let (blocks, tiles) = (sum(&counts), escapes.len() as u64);
        let rows = counts.iter().filter(|&&count| count > 0).count() as u64;
        Ok(Footprint {
            nnz: a.nnz() as u64,
            slots: blocks * size.places() as u64,
            offsets: tiles + 1,
            index_bytes: blocks * (2 + 2) + blocks.div_ceil(32) * 4 + (rows + tiles * 2 + sum(&escapes)) * 4,
        })
    }

    fn from_csr_with(a: &CsrMatrix<V, O>, parameters: BccooParameters) -> Result<Self, MatrixError> {
        Self::predict_with(a, parameters)?.admit(FormatKind::Bccoo, a)?;
        let size = parameters.check()?;
        let Blocks { block_offsets, block_cols, values, mask } = size.blocks(a)?;
        let num_blocks = block_cols.len();
        let mut bit_flags = vec![u32::MAX; num_blocks.div_ceil(32)];
        let mut block_rows = Vec::new();
        let mut tile_rows = Vec::with_capacity(num_blocks.div_ceil(BLOCKS_PER_TILE));
        for (row, ends) in block_offsets.windows(2).enumerate().filter(|(_, ends)| ends[0] < ends[1]) {
            let (first, last) = (ends[0].to_usize(), ends[1].to_usize() - 1);
            while tile_rows.len() * BLOCKS_PER_TILE <= last {
                debug_assert!(tile_rows.len() * BLOCKS_PER_TILE >= first);
                tile_rows.push(block_rows.len() as u32);
            }
            block_rows.push(row as u32);
            bit_flags[last / 32] &= !(1 << (last % 32));
        }
        let tiles = || block_cols.chunks(BLOCKS_PER_TILE);
        let escaped = |cols: &[u32]| {
            let listed = deltas(cols).zip(cols).filter(|&(delta, _)| delta == ESCAPE);
            listed.map(|(_, &col)| col).collect::<Vec<u32>>()
        };
        Ok(Self {
            num_rows: a.num_rows(),
            num_cols: a.num_cols(),
            nnz: a.nnz(),
            size,
            bit_flags,
            block_rows,
            tile_rows,
            tile_cols: tiles().map(|cols| cols[0]).collect(),
            col_deltas: parallel::map(tiles(), |cols| deltas(cols).collect::<Vec<i16>>()).concat(),
            escape_offsets: offsets_of(escapes(&block_cols).into_iter(), "escape_offsets")?,
            escaped_cols: parallel::map(tiles(), escaped).concat(),
            values,
            mask: parallel::collect(num_blocks, BLOCK, |block| mask[block] as u16),
        })
    }

    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        self.to_bsr()?.to_csr()
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
        [&self.bit_flags, &self.block_rows, &self.tile_rows, &self.tile_cols, &self.escaped_cols]
            .map(|array| array_bytes(array))
            .iter()
            .sum::<u64>()
            + array_bytes(&self.col_deltas)
            + array_bytes(&self.escape_offsets)
            + array_bytes(&self.values)
            + array_bytes(&self.mask)
    }

    fn for_each_entry(&self, mut entry: impl FnMut(usize, usize, V)) {
        for tile in 0..self.tile_cols.len() {
            let mut row = self.tile_rows[tile] as usize;
            for (block, col) in (tile * BLOCKS_PER_TILE..).zip(self.cols_of(tile)) {
                for place in (0..self.size.places()).filter(|place| self.mask[block] >> place & 1 == 1) {
                    entry(
                        self.block_rows[row] as usize * self.size.rows + place / self.size.cols,
                        col as usize * self.size.cols + place % self.size.cols,
                        self.values[block * self.size.places() + place],
                    );
                }
                row += usize::from(self.ends_row(block));
            }
        }
    }
}
