//! Arrays filled from compressed sparse rows, slot by slot, and rows gathered back.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::slice::ParallelSliceMut;

use super::NO_COLUMN;
use crate::assemble::zeroed;
use crate::csr::{check_offset_type, row_blocks};
use crate::{CsrMatrix, Entry, MatrixError, Offset, parallel};

/// Slots or rows that a task takes at a time.
pub(super) const BLOCK: usize = 1 << 14;

/// Slots that lie in runs, one after the other.
pub(super) struct Runs<P, S> {
    pub count: usize,
    /// The first slot of a run; of `count`, the number of slots.
    pub start: P,
    /// The position in the matrix of the entry at a place of a run; none where there is no entry.
    pub source: S,
}

impl<P, S> Runs<P, S>
where
    P: Fn(usize) -> usize + Sync,
    S: Fn(usize, usize) -> Option<usize> + Sync,
{
    /// Columns and values of all slots.
    pub fn fill<V: Entry, O: Offset>(&self, a: &CsrMatrix<V, O>) -> Result<(Vec<u32>, Vec<V>), MatrixError> {
        let slots = (self.start)(self.count);
        let mut col_indices = zeroed(slots, "col_indices")?;
        let mut values = zeroed(slots, "values")?;
        let blocks = col_indices.chunks_mut(BLOCK).zip(values.chunks_mut(BLOCK)).enumerate();
        parallel::for_each(blocks, |(block, (cols, values))| {
            let mut run = self.run_of(block * BLOCK);
            let (mut start, mut end) = ((self.start)(run), (self.start)(run + 1));
            for (slot, (col, value)) in (block * BLOCK..).zip(cols.iter_mut().zip(values)) {
                while end <= slot {
                    run += 1;
                    (start, end) = (end, (self.start)(run + 1));
                }
                *col = NO_COLUMN;
                if let Some(source) = (self.source)(run, slot - start) {
                    (*col, *value) = (a.col_indices()[source], a.values()[source]);
                }
            }
        });
        Ok((col_indices, values))
    }

    /// The run that holds a slot.
    fn run_of(&self, slot: usize) -> usize {
        partition_point(self.count, |run| (self.start)(run + 1) <= slot)
    }
}

/// The first of `0..count` for which `before` is false; it is true for all that come before.
pub(super) fn partition_point(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// A matrix put together row by row: `row_nnz` counts the entries of a row and `row` writes them.
pub(crate) fn csr_of_rows<V: Entry, O: Offset>(
    num_rows: usize,
    num_cols: usize,
    row_nnz: impl Fn(usize) -> usize + Sync,
    row: impl Fn(usize, &mut [u32], &mut [V]) + Sync,
) -> Result<CsrMatrix<V, O>, MatrixError> {
    let mut counts: Vec<usize> = zeroed(num_rows, "row_offsets")?;
    parallel::fill(&mut counts, 1024, row_nnz);
    let row_offsets: Vec<O> = offsets_of(counts.into_iter(), "row_offsets")?;
    let nnz = row_offsets[num_rows].to_usize();
    let mut col_indices = zeroed(nnz, "col_indices")?;
    let mut values = zeroed(nnz, "values")?;
    let blocks = row_blocks(&row_offsets, BLOCK);
    let entries = |rows: &Range<usize>| row_offsets[rows.end].to_usize() - row_offsets[rows.start].to_usize();
    let cols_of = split(&mut col_indices, blocks.iter().map(entries));
    let values_of = split(&mut values, blocks.iter().map(entries));
    let parts = blocks.iter().zip(cols_of).zip(values_of);
    parallel::for_each(parts, |((rows, cols), values)| {
        let first = row_offsets[rows.start].to_usize();
        for index in rows.clone() {
            let range = row_offsets[index].to_usize() - first..row_offsets[index + 1].to_usize() - first;
            row(index, &mut cols[range.clone()], &mut values[range]);
        }
    });
    Ok(CsrMatrix::from_checked(num_cols, row_offsets, col_indices, values))
}

/// Where each part starts, and the sum of all at the end.
pub(super) fn offsets_of<O: Offset>(
    counts: impl ExactSizeIterator<Item = usize>,
    what: &'static str,
) -> Result<Vec<O>, MatrixError> {
    let mut offsets: Vec<O> = zeroed(counts.len() + 1, what)?;
    let mut end = 0_usize;
    for (offset, count) in offsets[1..].iter_mut().zip(counts) {
        end += count;
        check_offset_type::<O>(end as u64)?;
        *offset = O::of(end);
    }
    Ok(offsets)
}

/// An array in parts of the given lengths.
pub(super) fn split<T>(mut array: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    lengths.map(|length| array.split_off_mut(..length).expect("the parts make up the array")).collect()
}

/// The number of entries of each row.
pub(super) fn row_lengths<V: Entry, O: Offset>(a: &CsrMatrix<V, O>) -> Vec<usize> {
    parallel::collect(a.num_rows(), BLOCK, |row| a.row_range(row).len())
}

/// The number of entries of the longest row.
pub(super) fn longest_row<V: Entry, O: Offset>(a: &CsrMatrix<V, O>) -> usize {
    let longest = |rows: Range<usize>| rows.map(|row| a.row_range(row).len()).max().unwrap_or(0);
    parallel::map(parallel::blocks(a.num_rows(), BLOCK), longest).into_iter().max().unwrap_or(0)
}

/// The rows by falling length, equal ones in their order, inside windows of `window` rows.
pub(super) fn by_falling_length<V: Entry, O: Offset>(a: &CsrMatrix<V, O>, window: usize) -> Vec<u32> {
    sorted_by_falling(&row_lengths(a), window)
}

fn sorted_by_falling(lengths: &[usize], window: usize) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..lengths.len() as u32).collect();
    let key = |&row: &u32| std::cmp::Reverse(lengths[row as usize]);
    if window >= rows.len() {
        rows.par_sort_by_key(key);
    } else if window > 1 {
        let windows = BLOCK.div_ceil(window);
        parallel::for_each(rows.chunks_mut(windows * window), |rows| {
            rows.chunks_mut(window).for_each(|rows| rows.sort_by_key(key));
        });
    }
    rows
}

/// The place of each row in a permutation.
pub(super) fn places(permutation: &[u32]) -> Result<Vec<u32>, MatrixError> {
    let places: Vec<u32> = zeroed(permutation.len(), "permutation")?;
    let places: Vec<AtomicU32> = places.into_iter().map(AtomicU32::new).collect();
    parallel::for_each(permutation.chunks(BLOCK).enumerate(), |(block, rows)| {
        for (place, &row) in (block * BLOCK..).zip(rows) {
            places[row as usize].store(place as u32, Ordering::Relaxed);
        }
    });
    Ok(places.into_iter().map(AtomicU32::into_inner).collect())
}

/// Bytes of an array.
pub(super) fn array_bytes<T>(array: &[T]) -> u64 {
    size_of_val(array) as u64
}
