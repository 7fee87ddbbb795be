//! Entries in any order become compressed sparse rows.
//!
//! Chunks of entries are sorted by *bucket* (a range of rows) while they are in cache. Then each bucket
//! gathers its piece of every chunk, in order, and counts, places and checks its rows alone: the result has
//! the order of the input within each row, whatever the number of chunks and threads, and every scattered
//! write stays within the bucket's part of the matrix.

use rayon::slice::ParallelSliceMut;

use crate::csr::{check_offset_type, first_row_from};
use crate::{CsrMatrix, Entry, MatrixError, Offset, parallel};

/// The most buckets there are: enough to keep one's part of a large matrix in cache, few enough that the
/// pieces of a chunk are several cache lines long.
const MAX_BUCKETS: usize = 1024;

/// Rows longer than this are sorted by several threads.
const LONG_ROW: usize = 1 << 16;

/// An entry with its place; what it holds as a value may be less than the value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keyed<T> {
    pub row: u32,
    pub col: u32,
    pub value: T,
}

/// The division of rows into buckets of a power of two of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets {
    num_rows: usize,
    shift: u32,
}

/// A chunk of entries in the order of their buckets, and where each bucket ends.
pub(crate) struct Chunk<T> {
    entries: Vec<Keyed<T>>,
    ends: Box<[u32]>,
}

impl<T> Chunk<T> {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    fn piece(&self, bucket: usize) -> &[Keyed<T>] {
        let start = if bucket == 0 { 0 } else { self.ends[bucket - 1] as usize };
        &self.entries[start..self.ends[bucket] as usize]
    }
}

impl Buckets {
    /// Buckets for about `chunks` chunks, few enough that the chunks' tables stay below 16 MiB.
    pub fn new(num_rows: usize, chunks: usize) -> Self {
        let most = ((4 << 20) / chunks.max(1)).clamp(64, MAX_BUCKETS);
        let mut shift = 0;
        while num_rows.div_ceil(1 << shift) > most {
            shift += 1;
        }
        Self { num_rows, shift }
    }

    fn count(&self) -> usize {
        self.num_rows.div_ceil(1 << self.shift)
    }

    /// Sorts entries by bucket, keeping their order within each.
    pub fn sort<T: Copy + Default>(&self, entries: &[Keyed<T>]) -> Chunk<T> {
        assert!(entries.len() <= u32::MAX as usize, "a chunk's positions are 32-bit");
        let mut ends = vec![0_u32; self.count()].into_boxed_slice();
        let shift = self.shift;
        let mut previous = 0;
        let mut sorted = true;
        for entry in entries {
            ends[(entry.row >> shift) as usize] += 1;
            sorted &= previous <= entry.row >> shift;
            previous = entry.row >> shift;
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        if sorted {
            ends.rotate_left(usize::from(!ends.is_empty()));
            if let Some(last) = ends.last_mut() {
                *last = start;
            }
            return Chunk { entries: entries.to_vec(), ends };
        }
        let mut placed = vec![Keyed::default(); entries.len()];
        for entry in entries {
            let end = &mut ends[(entry.row >> shift) as usize];
            placed[*end as usize] = *entry;
            *end += 1;
        }
        Chunk { entries: placed, ends }
    }
}

/// Puts chunks together. `value(chunk, held)` is the value of an entry of that chunk.
///
/// Rows and columns of all entries must be in range. Columns become ascending in each row; rows where they
/// are already are not touched, and entries of the same place keep their order.
pub(crate) fn assemble<T, V, O>(
    num_rows: usize,
    num_cols: usize,
    buckets: &Buckets,
    chunks: Vec<Chunk<T>>,
    value: impl Fn(usize, T) -> V + Sync,
) -> Result<CsrMatrix<V, O>, MatrixError>
where
    T: Copy + Send + Sync,
    V: Entry,
    O: Offset,
{
    let nnz: usize = chunks.iter().map(Chunk::len).sum();
    check_offset_type::<O>(nnz as u64)?;
    let mut row_offsets: Vec<O> = zeroed(num_rows + 1, "row_offsets")?;
    let mut col_indices: Vec<u32> = zeroed(nnz, "col_indices")?;
    let mut values: Vec<V> = zeroed(nnz, "values")?;

    let mut parts = Vec::with_capacity(buckets.count());
    let mut start = 0;
    {
        let mut ends = &mut row_offsets[1..];
        let mut cols = &mut col_indices[..];
        let mut vals = &mut values[..];
        for bucket in 0..buckets.count() {
            let len: usize = chunks.iter().map(|chunk| chunk.piece(bucket).len()).sum();
            let rows = ends.len().min(1 << buckets.shift);
            parts.push(Part {
                start,
                first_row: (bucket << buckets.shift) as u32,
                ends: ends.split_off_mut(..rows).expect("rows of the bucket"),
                cols: cols.split_off_mut(..len).expect("columns of the bucket"),
                values: vals.split_off_mut(..len).expect("values of the bucket"),
            });
            start += len;
        }
    }
    let ascending =
        parallel::map(parts.into_iter().enumerate(), |(bucket, part)| part.fill(bucket, &chunks, &value));

    drop(chunks);
    if ascending.contains(&false) {
        sort_rows(&row_offsets, &mut col_indices, &mut values);
    }
    Ok(CsrMatrix::from_checked(num_cols, row_offsets, col_indices, values))
}

/// The part of a matrix that one bucket fills.
struct Part<'a, V, O> {
    /// The position of the part's first entry.
    start: usize,
    first_row: u32,
    ends: &'a mut [O],
    cols: &'a mut [u32],
    values: &'a mut [V],
}

impl<V: Entry, O: Offset> Part<'_, V, O> {
    /// Fills the part and says whether its columns are ascending in every row.
    fn fill<T: Copy>(self, bucket: usize, chunks: &[Chunk<T>], value: impl Fn(usize, T) -> V) -> bool {
        // `ends` counts the entries of each row, then says where the row's next entry goes, and in the end
        // where the row ends.
        let of_row = |entry: &Keyed<T>| (entry.row - self.first_row) as usize;
        for chunk in chunks {
            for entry in chunk.piece(bucket) {
                let count = &mut self.ends[of_row(entry)];
                *count = O::of(count.to_usize() + 1);
            }
        }
        let mut next = self.start;
        for end in &mut *self.ends {
            next += std::mem::replace(end, O::of(next)).to_usize();
        }
        for (index, chunk) in chunks.iter().enumerate() {
            for entry in chunk.piece(bucket) {
                let end = &mut self.ends[of_row(entry)];
                let place = end.to_usize() - self.start;
                self.cols[place] = entry.col;
                self.values[place] = value(index, entry.value);
                *end = O::of(self.start + place + 1);
            }
        }
        let mut first = 0;
        let mut ascending = true;
        for end in &*self.ends {
            let last = end.to_usize() - self.start;
            ascending &= self.cols[first..last].is_sorted();
            first = last;
        }
        ascending
    }
}

/// Puts the columns of each row in ascending order, in parallel; entries of the same column keep their
/// order. Takes 8 bytes an entry of the rows that are being sorted.
pub(crate) fn sort_rows<V: Entry, O: Offset>(row_offsets: &[O], cols: &mut [u32], values: &mut [V]) {
    sort_range(row_offsets, 0, row_offsets.len() - 1, cols, values);
}

/// Sorts rows `first .. last`, of which `cols` and `values` are the entries.
fn sort_range<V: Entry, O: Offset>(
    row_offsets: &[O],
    first: usize,
    last: usize,
    cols: &mut [u32],
    values: &mut [V],
) {
    let start = row_offsets[first].to_usize();
    if last - first > 1 && cols.len() + (last - first) > LONG_ROW {
        let position = start + first + (cols.len() + last - first) / 2;
        let middle = first_row_from(row_offsets, position).clamp(first + 1, last - 1);
        let (left_cols, right_cols) = cols.split_at_mut(row_offsets[middle].to_usize() - start);
        let (left_values, right_values) = values.split_at_mut(left_cols.len());
        parallel::join(
            || sort_range(row_offsets, first, middle, left_cols, left_values),
            || sort_range(row_offsets, middle, last, right_cols, right_values),
        );
        return;
    }
    let mut keys = Vec::new();
    for row in first..last {
        let range = row_offsets[row].to_usize() - start..row_offsets[row + 1].to_usize() - start;
        if !cols[range.clone()].is_sorted() {
            sort_row(&mut cols[range.clone()], &mut values[range], &mut keys);
        }
    }
}

/// Sorts one row by keys of column and position, so that no two keys are equal.
fn sort_row<V: Entry>(cols: &mut [u32], values: &mut [V], keys: &mut Vec<u64>) {
    if u32::try_from(cols.len()).is_err() {
        return sort_huge_row(cols, values);
    }
    keys.clear();
    keys.extend(cols.iter().zip(0_u64..).map(|(&col, position)| u64::from(col) << 32 | position));
    if keys.len() > LONG_ROW {
        keys.par_sort_unstable()
    } else {
        keys.sort_unstable()
    }
    for (col, key) in cols.iter_mut().zip(keys.iter()) {
        *col = (key >> 32) as u32;
    }
    // The values follow in place, cycle by cycle; a position is done when its key names itself.
    for first in 0..keys.len() {
        let held = values[first];
        let mut place = first;
        loop {
            let source = keys[place] as u32 as usize;
            keys[place] = place as u64;
            if source == first {
                values[place] = held;
                break;
            }
            values[place] = values[source];
            place = source;
        }
    }
}

/// Sorts a row of 2³² entries or more, which only duplicates can make.
#[cold]
fn sort_huge_row<V: Entry>(cols: &mut [u32], values: &mut [V]) {
    let mut order: Vec<(u32, u64)> = cols.iter().copied().zip(0..).collect();
    order.par_sort_unstable();
    let before = values.to_vec();
    for ((col, value), (of_entry, position)) in cols.iter_mut().zip(values).zip(order) {
        (*col, *value) = (of_entry, before[position as usize]);
    }
}

/// An array of zeros, or an error where the system has no memory for it.
///
/// Memory is asked for twice: a reservation may be refused where `vec!` would end the process, and `vec!`
/// takes pages that the system has zeroed already.
pub(crate) fn zeroed<T: Copy + Default>(len: usize, what: &'static str) -> Result<Vec<T>, MatrixError> {
    Vec::<T>::new()
        .try_reserve_exact(len)
        .map_err(|_| MatrixError::OutOfMemory { bytes: len as u64 * size_of::<T>() as u64, what })?;
    Ok(vec![T::default(); len])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_row_is_sorted_as_others_are() {
        let before: Vec<u32> = (0..1000).map(|place| place * 7919 % 61).collect();
        let numbers: Vec<f64> = (0..1000).map(f64::from).collect();
        let (mut cols, mut values) = (before.clone(), numbers.clone());
        sort_huge_row(&mut cols, &mut values);
        let (mut cols_of_row, mut values_of_row) = (before, numbers);
        sort_row(&mut cols_of_row, &mut values_of_row, &mut Vec::new());
        assert!(cols.is_sorted() && values != (0..1000).map(f64::from).collect::<Vec<_>>());
        assert_eq!((cols, values), (cols_of_row, values_of_row));
    }
}
