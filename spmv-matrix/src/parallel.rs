//! Loops whose parts run on all threads of the current rayon pool.
//!
//! Rayon's iterators are compiled for whatever they are made of, and here that is each type of values and offsets: some
//! thousand functions a loop, in every program that uses matrices. So the loop itself is behind a reference to a function,
//! and what depends on types is small. Parts are listed before the loop begins: each should take some microseconds at least.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

/// Calls `work` for each part, in any order, on whichever thread is free.
pub(crate) fn for_each<P: Send>(parts: impl Iterator<Item = P>, work: impl Fn(P) + Sync) {
    let mut slots = Vec::new();
    for part in parts {
        slots.push(Mutex::new(Some(part)));
    }
    run(slots.len(), &|number| {
        if let Some(part) = lock(&slots[number]).take() {
            work(part);
        }
    });
}

/// What `work` makes of each part, in their order.
pub(crate) fn map<P: Send, R: Send>(parts: impl Iterator<Item = P>, work: impl Fn(P) -> R + Sync) -> Vec<R> {
    let mut slots = Vec::new();
    for part in parts {
        slots.push(Mutex::new((Some(part), None)));
    }
    run(slots.len(), &|number| {
        let mut slot = lock(&slots[number]);
        if let Some(part) = slot.0.take() {
            slot.1 = Some(work(part));
        }
    });
    let mut results = Vec::with_capacity(slots.len());
    for slot in slots {
        results.extend(slot.into_inner().unwrap_or_else(PoisonError::into_inner).1);
    }
    results
}

/// Fills an array, `block` entries at a time.
pub(crate) fn fill<T: Send>(array: &mut [T], block: usize, entry: impl Fn(usize) -> T + Sync) {
    update(array, block, |index, slot| *slot = entry(index));
}

/// Calls `update` with each entry of an array and its place, `block` entries at a time.
pub(crate) fn update<T: Send>(array: &mut [T], block: usize, update: impl Fn(usize, &mut T) + Sync) {
    for_each(array.chunks_mut(block).enumerate(), |(number, part)| {
        for (index, entry) in (number * block..).zip(part) {
            update(index, entry);
        }
    });
}

/// An array of what `entry` says, `block` entries at a time.
pub(crate) fn collect<T: Send + Copy + Default>(
    len: usize,
    block: usize,
    entry: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let mut array = vec![T::default(); len];
    fill(&mut array, block, entry);
    array
}

/// The sum of what `term` says of `0..len`, `block` at a time.
pub(crate) fn sum(len: usize, block: usize, term: impl Fn(usize) -> u64 + Sync) -> u64 {
    map(blocks(len, block), |range| range.map(&term).sum::<u64>()).into_iter().sum()
}

/// The first of `0..len` that is one, looking at `block` at a time.
pub(crate) fn find_first(len: usize, block: usize, is: impl Fn(usize) -> bool + Sync) -> Option<usize> {
    let first = AtomicUsize::new(usize::MAX);
    for_each(blocks(len, block), |range| {
        if range.start > first.load(Ordering::Relaxed) {
            return;
        }
        if let Some(found) = range.into_iter().find(|&index| is(index)) {
            first.fetch_min(found, Ordering::Relaxed);
        }
    });
    Some(first.into_inner()).filter(|&first| first < len)
}

/// `0..len` in ranges of `block`.
pub(crate) fn blocks(len: usize, block: usize) -> impl Iterator<Item = Range<usize>> + Send {
    (0..len.div_ceil(block)).map(move |number| number * block..len.min((number + 1) * block))
}

/// Calls both, perhaps at the same time.
pub(crate) fn join(left: impl FnOnce() + Send, right: impl FnOnce() + Send) {
    let (mut left, mut right) = (Some(left), Some(right));
    let mut once_left = || left.take().into_iter().for_each(|left| left());
    let mut once_right = || right.take().into_iter().for_each(|right| right());
    join_calls(&mut once_left, &mut once_right);
}

fn join_calls(left: &mut (dyn FnMut() + Send), right: &mut (dyn FnMut() + Send)) {
    rayon::join(left, right);
}

/// Calls `task` with each number.
fn run(count: usize, task: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().with_max_len(1).for_each(task);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With one thread, and with more than there are parts.
    fn in_pools(test: impl Fn() + Sync) {
        for threads in [1, 2, 7] {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(&test);
        }
    }

    #[test]
    fn each_part_once_and_in_order() {
        in_pools(|| {
            for len in [0, 1, 5, 1000] {
                let expected: Vec<usize> = (0..len).map(|index| index * index).collect();
                assert_eq!(map(0..len, |index| index * index), expected);
                assert_eq!(collect(len, 3, |index| index * index), expected);
                assert_eq!(sum(len, 3, |index| index as u64), (0..len as u64).sum());
                let ranges: Vec<usize> = blocks(len, 7).flatten().collect();
                assert_eq!(ranges, (0..len).collect::<Vec<_>>());
            }
        });
    }

    #[test]
    fn the_first_is_found() {
        in_pools(|| {
            assert_eq!(find_first(1000, 8, |index| index % 100 == 77), Some(77));
            assert_eq!(find_first(1000, 8, |_| false), None);
            assert_eq!(find_first(0, 8, |_| true), None);
            assert_eq!(find_first(9, 8, |index| index == 8), Some(8));
        });
    }

    #[test]
    fn loops_within_loops() {
        in_pools(|| {
            let sums = map(0..50u64, |outer| sum(100, 7, |inner| inner as u64 * outer));
            assert_eq!(sums, (0..50).map(|outer| 4950 * outer).collect::<Vec<u64>>());
            let (mut left, mut right) = (0, 0);
            join(|| left = 1, || right = 2);
            assert_eq!((left, right), (1, 2));
        });
    }

    #[test]
    fn a_panic_of_a_part_is_seen() {
        in_pools(|| {
            let outcome = std::panic::catch_unwind(|| for_each(0..100, |part| assert_ne!(part, 63)));
            assert!(outcome.is_err());
        });
    }
}
