//! The features of a structure, counted on the host.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use spmv_codegen::{Degrees, Features, Lengths, SampledValues};

use crate::{CsrMatrix, Entry, Offset, parallel};

/// Rows and nonzeros of one task.
const BLOCK: usize = 1 << 16;

/// Rows of a warp whose threads take a row each.
const WARP: usize = 32;

/// Looks at a structure, in parallel: at every row's length, at samples of the columns and of the values, at some rows in the
/// middle, and at every column where rows may lie on few diagonals.
pub fn features<V: Entry, O: Offset>(a: &CsrMatrix<V, O>) -> Features {
    let (num_rows, num_cols, nnz) = (a.num_rows() as u64, a.num_cols() as u64, a.nnz() as u64);
    let rows = Rows::of_lengths(a.num_rows(), |row| a.row_range(row).len() as u64);
    let mut features = Features::of_size((num_rows, num_cols), nnz);
    features.longest_row = rows.longest;
    features.row_lengths = rows.lengths;
    features.warp_steps = rows.warp_steps;
    features.marked = marked(a.col_indices());
    features.degrees = degrees(a.num_cols(), a.col_indices());
    Groups {
        entries: features.grouped,
        blocks: features.blocks,
        diagonals: features.group_diagonals,
        gathered: features.gathered,
        gathers: features.gathers,
    } = groups(a);
    let diagonals = features.group_diagonals;
    let may_be_diagonal = Features::may_be_diagonal(num_rows, nnz, rows.longest, diagonals);
    features.num_diagonals = may_be_diagonal.then(|| num_diagonals(a));
    features.different_rows = features.compared_rows().map(|rows| {
        let rows = rows.start as usize..rows.end as usize;
        let row = |row: usize| {
            let (cols, values) = a.row(row);
            let distances = cols.iter().map(|col| i64::from(*col) - row as i64);
            distances.zip(values.iter().map(|value| value.bits())).collect::<Vec<_>>()
        };
        rows.map(row).collect::<HashSet<_>>().len() as u64
    });
    features.values = sampled_values(a.values());
    features
}

/// What samples of these values are.
fn sampled_values<V: Entry>(values: &[V]) -> SampledValues {
    let nnz = values.len() as u64;
    if size_of::<V>() > 8 {
        return SampledValues::default();
    }
    let count = nnz.min(Features::SAMPLED_VALUES);
    let bits = (0..count).map(|number| values[Features::sampled_value(number, nnz) as usize].bits());
    let is_wide = |bits: &u128| {
        let number = f64::from_bits(*bits as u64);
        size_of::<V>() == 8 && f64::from(number as f32) != number
    };
    // Zero with a sign is not the whole number that it is equal to.
    let is_uneven = |bits: &u128| {
        let (whole, is_same) = match size_of::<V>() {
            4 => {
                let whole = f32::from_bits(*bits as u32) as i8;
                (whole, f32::from(whole).to_bits() == *bits as u32)
            }
            8 => {
                let whole = f64::from_bits(*bits as u64) as i8;
                (whole, f64::from(whole).to_bits() == *bits as u64)
            }
            _ => return false,
        };
        whole == i8::MIN || !is_same
    };
    let wide = bits.clone().filter(is_wide).count() as u64;
    let uneven = bits.clone().filter(is_uneven).count() as u64;
    SampledValues { count, different: bits.collect::<HashSet<_>>().len() as u64, wide, uneven }
}

/// The features of the transpose, as far as they follow from those of the structure and from the lengths of its columns.
pub fn features_of_transpose<V: Entry, O: Offset>(a: &CsrMatrix<V, O>) -> Features {
    let lengths: Vec<AtomicU32> = (0..a.num_cols()).map(|_| AtomicU32::new(0)).collect();
    count(a.col_indices(), &lengths);
    let length = |col: usize| u64::from(lengths[col].load(Ordering::Relaxed));
    let Rows { longest, lengths: classes, warp_steps } = Rows::of_lengths(a.num_cols(), length);
    features(a).transposed(&Lengths { longest, classes, warp_steps })
}

/// Adds how often each column occurs.
fn count(cols: &[u32], lengths: &[AtomicU32]) {
    parallel::for_each(cols.chunks(BLOCK), |cols| {
        for col in cols {
            lengths[*col as usize].fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// What is known of some rows.
struct Rows {
    longest: u64,
    lengths: [u64; 33],
    warp_steps: [u64; 6],
}

impl Default for Rows {
    fn default() -> Rows {
        Rows { longest: 0, lengths: [0; 33], warp_steps: [0; 6] }
    }
}

impl Rows {
    fn of_lengths(num_rows: usize, length_of: impl Fn(usize) -> u64 + Sync) -> Rows {
        let of_some = |warps: Range<usize>| {
            let rows = warps.map(|warp| Rows::of_warp(num_rows, warp, &length_of));
            rows.fold(Rows::default(), Rows::merge)
        };
        let rows = parallel::map(parallel::blocks(num_rows.div_ceil(WARP), 1024), of_some);
        rows.into_iter().fold(Rows::default(), Rows::merge)
    }

    fn of_warp(num_rows: usize, warp: usize, length_of: impl Fn(usize) -> u64) -> Rows {
        let mut lengths = [0u64; WARP];
        let rows = warp * WARP..((warp + 1) * WARP).min(num_rows);
        for (length, row) in lengths.iter_mut().zip(rows.clone()) {
            *length = length_of(row);
        }
        let known = &lengths[..rows.len()];
        let mut found = Rows { longest: known.iter().copied().max().unwrap_or(0), ..Rows::default() };
        for length in known {
            found.lengths[(u64::BITS - length.leading_zeros()).min(32) as usize] += 1;
        }
        for (steps, threads) in found.warp_steps.iter_mut().zip(Features::THREADS_PER_ROW) {
            let groups = lengths.chunks(WARP / threads as usize);
            *steps =
                groups.map(|rows| rows.iter().max().copied().unwrap_or(0).div_ceil(threads.into())).sum();
        }
        found
    }

    fn merge(mut self, other: Rows) -> Rows {
        self.longest = self.longest.max(other.longest);
        self.lengths.iter_mut().zip(other.lengths).for_each(|(mine, theirs)| *mine += theirs);
        self.warp_steps.iter_mut().zip(other.warp_steps).for_each(|(mine, theirs)| *mine += theirs);
        self
    }
}

/// Diagonals that hold an entry.
fn num_diagonals<V: Entry, O: Offset>(a: &CsrMatrix<V, O>) -> u64 {
    let words = (a.num_rows() + a.num_cols()).div_ceil(64);
    let mark = |blocks: &[Range<usize>]| {
        let mut bits = vec![0u64; words];
        for row in blocks.iter().cloned().flatten() {
            for &col in a.row(row).0 {
                let number = a.num_rows() - 1 - row + col as usize;
                bits[number / 64] |= 1 << (number % 64);
            }
        }
        bits
    };
    let either = |mut mine: Vec<u64>, theirs: Vec<u64>| {
        mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
        mine
    };
    let blocks = a.row_blocks(BLOCK);
    let some = blocks.len().div_ceil(rayon::current_num_threads()).max(1);
    let bits = parallel::map(blocks.chunks(some), mark).into_iter().reduce(either).unwrap_or_default();
    bits.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// The bits that the samples mark, those of short stretches and those of long ones.
fn marked(cols: &[u32]) -> [u64; 2] {
    let samples = Features::samples(cols.len() as u64);
    let of_sample = |number: u64| {
        let sample = sample(cols, number, samples.length);
        let count = |kind| {
            let mut bits = vec![0u64; 1usize << (Features::LOG_BITS[kind] - 6)];
            let stretches = sample.chunks(Features::STRETCH[kind] as usize);
            let of_stretch = |stretch: &[u32]| {
                bits.fill(0);
                for col in stretch {
                    let bit = Features::bit(kind, *col);
                    bits[bit as usize / 64] |= 1 << (bit % 64);
                }
                bits.iter().map(|word| u64::from(word.count_ones())).sum::<u64>()
            };
            stretches.map(of_stretch).sum::<u64>()
        };
        [count(0), count(1)]
    };
    let marked = parallel::map(0..samples.count, of_sample);
    marked.into_iter().fold([0, 0], |a, b| [a[0] + b[0], a[1] + b[1]])
}

/// What the samples have in each column.
fn degrees(num_cols: usize, cols: &[u32]) -> Degrees {
    let num_places = num_cols.min(1 << Features::LOG_DEGREE_PLACES);
    let entries: Vec<AtomicU32> = (0..num_places).map(|_| AtomicU32::new(0)).collect();
    let samples = Features::samples(cols.len() as u64);
    parallel::for_each(0..samples.count, |number| {
        for col in sample(cols, number, samples.degree_sample()) {
            let place = Features::degree_place(num_cols as u64, *col);
            entries[place as usize].fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut degrees = Degrees::default();
    entries.into_iter().for_each(|entries| degrees.add(entries.into_inner().into()));
    degrees
}

/// The first entries of the sample of this number, so many at most.
fn sample(cols: &[u32], number: u64, length: u64) -> &[u32] {
    let begin = Features::samples(cols.len() as u64).begin(number) as usize;
    &cols[begin..(begin + length as usize).min(cols.len())]
}

/// What is known of some groups of rows.
#[derive(Default)]
struct Groups {
    entries: u64,
    /// Of each shape.
    blocks: [u64; Features::BLOCK_SHAPES.len()],
    /// Of the group with most of them.
    diagonals: u64,
    /// As [`Features::gathered`].
    gathered: [u64; 7],
    /// As [`Features::gathers`].
    gathers: [u64; 2],
}

impl Groups {
    fn of_group<V: Entry, O: Offset>(a: &CsrMatrix<V, O>, first: usize) -> Groups {
        let (gathered, gathers) = Groups::gathers(a, first);
        let of_rows = |num_rows: u32| {
            let rows = first..(first + num_rows as usize).min(a.num_rows());
            let entries = (a.row_range(rows.end - 1).end - a.row_range(first).start) as u64;
            (entries <= Features::MAX_GROUP_ENTRIES).then_some((rows, entries))
        };
        let whole = of_rows(Features::ROWS_PER_GROUP);
        let Some((rows, entries)) = whole.or_else(|| of_rows(Features::ROWS_PER_GROUP / 2)) else {
            return Groups { gathered, gathers, ..Groups::default() };
        };
        let places = |row: usize| a.row(row).0.iter().map(move |col| ((row - first) as u32, *col));
        let places: Vec<(u32, u32)> = rows.flat_map(places).collect();
        let different = |of: &dyn Fn(u32, u32) -> u32| {
            let mut found: Vec<_> = places.iter().map(|(row, col)| of(*row, *col)).collect();
            found.sort_unstable();
            found.dedup();
            found.len() as u64
        };
        Groups {
            entries,
            blocks: Features::BLOCK_SHAPES
                .map(|(rows, cols)| different(&|row, col| Features::block_key(row / rows, col / cols))),
            diagonals: different(&|row, col| col + Features::ROWS_PER_GROUP - row),
            gathered,
            gathers,
        }
    }

    /// Sectors of x that a warp reads from this row on, and entries that it does it for.
    fn gathers<V: Entry, O: Offset>(a: &CsrMatrix<V, O>, first: usize) -> ([u64; 7], [u64; 2]) {
        let sectors = |cols: &mut dyn Iterator<Item = u32>| {
            let mut sectors: Vec<u32> = cols.map(|col| col / Features::COLS_PER_SECTOR).collect();
            sectors.sort_unstable();
            sectors.dedup();
            sectors.len() as u64
        };
        let last = (first + Features::ROWS_PER_GATHER as usize).min(a.num_rows());
        let rows: Vec<&[u32]> = (first..last)
            .map(|row| a.row(row).0)
            .map(|cols| &cols[..cols.len().min(Features::GATHERS_PER_ROW as usize)])
            .collect();
        let longest = rows.iter().map(|cols| cols.len()).max().unwrap_or(0);
        let mut gathered = [0; 7];
        for (gathered, threads) in gathered.iter_mut().zip(Features::THREADS_PER_ROW) {
            let threads = threads as usize;
            for rows in rows.chunks(WARP / threads) {
                let of_step = |step: usize| {
                    let taken = |cols: &&'_ [u32]| {
                        let end = ((step + 1) * threads).min(cols.len());
                        cols[(step * threads).min(end)..end].to_vec()
                    };
                    sectors(&mut rows.iter().flat_map(taken))
                };
                *gathered += (0..longest.div_ceil(threads)).map(of_step).sum::<u64>();
            }
        }
        let begin = a.row_range(first).start;
        let end = a.row_range(last - 1).end.min(begin + Features::GATHERS_IN_ORDER as usize);
        let in_order = &a.col_indices()[begin..end];
        gathered[6] = in_order.chunks(WARP).map(|cols| sectors(&mut cols.iter().copied())).sum();
        (gathered, [rows.iter().map(|cols| cols.len() as u64).sum(), in_order.len() as u64])
    }

    fn merge(mut self, other: Groups) -> Groups {
        self.entries += other.entries;
        self.blocks.iter_mut().zip(other.blocks).for_each(|(mine, theirs)| *mine += theirs);
        self.diagonals = self.diagonals.max(other.diagonals);
        self.gathered.iter_mut().zip(other.gathered).for_each(|(mine, theirs)| *mine += theirs);
        self.gathers.iter_mut().zip(other.gathers).for_each(|(mine, theirs)| *mine += theirs);
        self
    }
}

/// Looks at groups of rows that are spread over the matrix.
fn groups<V: Entry, O: Offset>(a: &CsrMatrix<V, O>) -> Groups {
    let rows_per_group = Features::ROWS_PER_GROUP as usize;
    let groups = a.num_rows().div_ceil(rows_per_group) as u64;
    let looked_at = Features::num_groups(a.num_rows() as u64, a.nnz() as u64);
    let first = |number: u64| (number * groups / looked_at) as usize * rows_per_group;
    let of_some = |numbers: Range<usize>| {
        let groups = numbers.map(|number| Groups::of_group(a, first(number as u64)));
        groups.fold(Groups::default(), Groups::merge)
    };
    let groups = parallel::map(parallel::blocks(looked_at as usize, 16), of_some);
    groups.into_iter().fold(Groups::default(), Groups::merge)
}
