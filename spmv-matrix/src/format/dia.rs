//! Diagonals.

use std::sync::atomic::{AtomicU32, Ordering};

use super::runs::{BLOCK, array_bytes, csr_of_rows};
use super::{Footprint, Format, FormatKind};
use crate::assemble::zeroed;
use crate::{CsrMatrix, Entry, MatrixError, Offset, parallel};

/// Rows that a task takes at a time; a multiple of 32, so that no two tasks share a word of the mask.
const TILE_ROWS: usize = 1024;

/// The number of rows, rounded up to what a warp of a GPU takes at most.
fn stride(num_rows: usize) -> usize {
    num_rows.next_multiple_of(256)
}

/// A matrix stored by diagonals.
///
/// The slot of row `r` on the `d`-th diagonal is `d * stride + r`, its column is `r + offsets[d]`; `stride` is the number
/// of rows, rounded up to a multiple of 256. Offsets ascend; a diagonal with more than one entry at a place is stored
/// again for the second of them. Bit `slot % 32` of `mask[slot / 32]` says whether a slot holds an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct DiaMatrix<V> {
    num_rows: usize,
    num_cols: usize,
    nnz: usize,
    stride: usize,
    offsets: Vec<i64>,
    values: Vec<V>,
    mask: Vec<u32>,
}

impl<V: Entry> DiaMatrix<V> {
    /// Slots of a diagonal.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Column − row of each stored diagonal.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// The value of each slot; 0 where there is no entry.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// One bit a slot: whether it holds an entry.
    pub fn mask(&self) -> &[u32] {
        &self.mask
    }

    fn holds(&self, slot: usize) -> bool {
        self.mask[slot / 32] >> (slot % 32) & 1 == 1
    }

    /// The slots of a row that hold entries, with their columns.
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, usize)> {
        let slots = self.offsets.iter().enumerate().map(move |(d, &offset)| (d * self.stride + row, offset));
        slots
            .filter(|&(slot, _)| self.holds(slot))
            .map(move |(slot, offset)| (slot, (row as i64 + offset) as usize))
    }
}

/// How often each diagonal is stored, from the one of the last row's first column to the one of the first row's last.
fn layers<V: Entry, O: Offset>(a: &CsrMatrix<V, O>) -> Result<Vec<u32>, MatrixError> {
    let diagonals = if a.num_rows() == 0 { 0 } else { a.num_rows() - 1 + a.num_cols() };
    let layers: Vec<u32> = zeroed(diagonals, "diagonals")?;
    let layers: Vec<AtomicU32> = layers.into_iter().map(AtomicU32::new).collect();
    parallel::for_each(parallel::blocks(a.num_rows(), 1024), |rows| {
        let mut sorted = Vec::new();
        for row in rows {
            let mut cols = a.row(row).0;
            if !cols.is_sorted() {
                sorted.clear();
                sorted.extend_from_slice(cols);
                sorted.sort_unstable();
                cols = &sorted;
            }
            for same in cols.chunk_by(|a, b| a == b) {
                let count = u32::try_from(same.len()).unwrap_or(u32::MAX);
                layers[diagonal_of(a.num_rows(), row, same[0])].fetch_max(count, Ordering::Relaxed);
            }
        }
    });
    Ok(layers.into_iter().map(AtomicU32::into_inner).collect())
}

/// The diagonal of a place, counted from that of the last row's first column.
fn diagonal_of(num_rows: usize, row: usize, col: u32) -> usize {
    num_rows - 1 - row + col as usize
}

/// The slots of some rows, diagonal by diagonal.
struct Tile<'a, V> {
    values: Vec<&'a mut [V]>,
    mask: Vec<&'a mut [u32]>,
}

impl<V: Entry, O: Offset> Format<V, O> for DiaMatrix<V> {
    type Parameters = ();
    const KIND: FormatKind = FormatKind::Dia;
    const KEEPS_ORDER: bool = false;

    fn predict_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Footprint, MatrixError> {
        let layers = layers(a)?;
        let stored = parallel::sum(layers.len(), BLOCK, |diagonal| layers[diagonal].into());
        let slots = stored.saturating_mul(stride(a.num_rows()) as u64);
        Ok(Footprint {
            nnz: a.nnz() as u64,
            slots,
            offsets: 0,
            index_bytes: (slots / 8).saturating_add(stored * 8),
        })
    }

    fn from_csr_with(a: &CsrMatrix<V, O>, (): ()) -> Result<Self, MatrixError> {
        <Self as Format<V, O>>::predict(a)?.admit(FormatKind::Dia, a)?;
        let (num_rows, stride) = (a.num_rows(), stride(a.num_rows()));
        let mut offsets = Vec::new();
        let mut firsts = Vec::new();
        for (diagonal, layers) in layers(a)?.into_iter().enumerate() {
            firsts.push(offsets.len());
            let offset = diagonal as i64 + 1 - num_rows as i64;
            offsets.extend((0..layers).map(|_| offset));
        }
        let mut values: Vec<V> = zeroed(offsets.len() * stride, "values")?;
        let mut mask: Vec<u32> = zeroed(offsets.len() * stride / 32, "mask")?;
        let mut tiles: Vec<Tile<V>> = Vec::new();
        tiles.resize_with(num_rows.div_ceil(TILE_ROWS), || Tile { values: Vec::new(), mask: Vec::new() });
        let diagonals = values.chunks_mut(stride.max(1)).zip(mask.chunks_mut(stride.div_ceil(32).max(1)));
        for (values, mask) in diagonals {
            let parts = values.chunks_mut(TILE_ROWS).zip(mask.chunks_mut(TILE_ROWS / 32));
            for (tile, (values, mask)) in tiles.iter_mut().zip(parts) {
                tile.values.push(values);
                tile.mask.push(mask);
            }
        }
        parallel::for_each(tiles.into_iter().enumerate(), |(index, mut tile)| {
            let rows = index * TILE_ROWS..num_rows.min((index + 1) * TILE_ROWS);
            let mut order: Vec<usize> = Vec::new();
            for row in rows.clone() {
                let (place, (cols, values)) = (row - rows.start, a.row(row));
                order.clear();
                order.extend(0..cols.len());
                if !cols.is_sorted() {
                    // Stable: entries of the same place keep their order.
                    order.sort_by_key(|&entry| cols[entry]);
                }
                for same in order.chunk_by(|&a, &b| cols[a] == cols[b]) {
                    let first = firsts[diagonal_of(num_rows, row, cols[same[0]])];
                    for (layer, &entry) in (first..).zip(same) {
                        tile.mask[layer][place / 32] |= 1 << (place % 32);
                        tile.values[layer][place] = values[entry];
                    }
                }
            }
        });
        Ok(Self { num_rows, num_cols: a.num_cols(), nnz: a.nnz(), stride, offsets, values, mask })
    }

    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        csr_of_rows(
            self.num_rows,
            self.num_cols,
            |row| self.row(row).count(),
            |row, cols, values| {
                for ((slot, of_slot), (col, value)) in self.row(row).zip(cols.iter_mut().zip(values)) {
                    (*col, *value) = (of_slot as u32, self.values[slot]);
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
        array_bytes(&self.offsets) + array_bytes(&self.values) + array_bytes(&self.mask)
    }

    fn for_each_entry(&self, mut entry: impl FnMut(usize, usize, V)) {
        for (d, &offset) in self.offsets.iter().enumerate() {
            for row in 0..self.num_rows {
                let slot = d * self.stride + row;
                if self.holds(slot) {
                    entry(row, (row as i64 + offset) as usize, self.values[slot]);
                }
            }
        }
    }
}
