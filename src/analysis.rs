//! The generated kernels that find the [`Features`] of a matrix on a device.

use crate::expr::{Expr, Variable};
use crate::features::{Degrees, Features, Lengths, SampledValues};
use crate::program::{Arg, Pass};
use crate::source::{PARTS_OF_GROUP, analysis_source};
use crate::types::IndexType;

/// Generated CUDA text that counts a structure's features, for one type of row offsets and one of column indices, and how to
/// run it. Buffer 0 begins with the counters; it is zero before the first pass of either kind and after the last. Buffer 1 has a
/// bit a diagonal. The last pass of either kind writes what was counted into the inbox, [`AnalysisProgram::NUM_COUNTERS`] numbers,
/// and then something else than 0 behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalysisProgram {
    /// CUDA C++17 text, complete in itself.
    pub source: String,
    /// Bytes of buffer 0 for `structure`: the counters, the entries that samples have in columns, the bits that each sample marks.
    pub structure_bytes: Expr,
    /// Bytes of buffer 1 for `structure`, which `columns` does without.
    pub diagonals_bytes: Expr,
    /// Passes that look at row offsets, at samples of column indices, at groups of rows, at some rows in the middle with their
    /// values and at samples of the values, then at what samples have in columns and, where what was counted says that they
    /// are worth it, at the diagonals of all entries.
    pub structure: [Pass; 2],
    /// Bytes of buffer 0 for `columns`: the counters, the length of every column.
    pub columns_bytes: Expr,
    /// Passes that count the lengths of columns where other passes count those of rows.
    pub columns: [Pass; 2],
}

const THREADS_PER_BLOCK: u32 = 512;

/// Columns, or what is taken for one, whose entries a block counts.
const PLACES_PER_BLOCK: u32 = 2 * THREADS_PER_BLOCK;

/// Rows whose lengths a thread looks at, at least: blocks add to the same few counters.
const ROWS_PER_THREAD: u32 = 4;

/// Counters of 64 bits: the longest row, rows of each length, steps of each width, marked bits, diagonals, entries of groups,
/// blocks of each shape, most diagonals of a group, sectors that warps read together and entries that they read them for,
/// columns and entries of each degree, hashes of rows, values that differ and that are wide.
const COUNTERS: u32 = VALUES as u32 + 3;

/// Bytes of the counters, and of the number of blocks that are over.
const COUNTER_BYTES: u32 = (COUNTERS + 1) * 8;

/// Where the sectors are that warps read together.
const GATHERED: usize = 44 + Features::BLOCK_SHAPES.len() + 1;

/// Where the columns of each degree are.
const DEGREES: usize = GATHERED + 9;

/// Where the hashes of the rows are that may be compared.
const ROWS: usize = DEGREES + 2 * Degrees::CLASSES;

/// Where it is what values are.
const VALUES: usize = ROWS + Features::COMPARED_ROWS as usize;

/// Blocks that look at values: one at samples, the others at rows, a warp each.
const VALUE_BLOCKS: u32 = 1 + Features::COMPARED_ROWS as u32 / (THREADS_PER_BLOCK / 32);

/// How many of so few hashes differ. A set of the standard library takes longer than the rest of what the host does.
fn different(hashes: &[u64]) -> u64 {
    const PLACES: usize = 2 * Features::COMPARED_ROWS as usize;
    let mut found = [0u64; PLACES];
    let mut is_new = |hash: &u64| {
        // 0 says that nobody is there.
        let hash = (*hash).max(1);
        let mut place = hash as usize % PLACES;
        while found[place] != 0 && found[place] != hash {
            place = (place + 1) % PLACES;
        }
        std::mem::replace(&mut found[place], hash) != hash
    };
    hashes.iter().map(|hash| u64::from(is_new(hash))).sum()
}

impl AnalysisProgram {
    /// How many counters there are, of 64 bits each.
    pub const NUM_COUNTERS: usize = COUNTERS as usize;

    /// Generates the program for row offsets and column indices of these types.
    pub fn new(offset: IndexType, index: IndexType) -> AnalysisProgram {
        let [rows, cols, nnz] = [Variable::NumRows, Variable::NumCols, Variable::Nnz].map(Expr::from);
        let words = (rows.clone() + cols.clone()).div_ceil(32);
        let pass = |name: &str, grid: Expr, args: Vec<Arg>| Pass {
            kernel: format!("spmv_analysis_{name}"),
            grid,
            threads_per_block: THREADS_PER_BLOCK,
            shared_bytes: 0,
            args,
        };
        let stride = |items: Expr| {
            let resident = Expr::from(Variable::Multiprocessors) * Expr::from(Variable::ResidentBlocks);
            items.div_ceil(THREADS_PER_BLOCK).min(resident)
        };
        let samples = nnz.clone().div_ceil(Features::STRETCH[1] as u32).min(Features::MAX_SAMPLES as u32);
        // Blocks that share the samples: as many each as they have short stretches where they are few, 4 where they are many.
        let pieces = (samples.clone() * (Features::STRETCH[1] / Features::STRETCH[0]) as u32).min(256);
        let marks = samples.clone() * (1 << (Features::LOG_BITS[1] - 5));
        // The larger number where there are more entries than a small matrix has.
        let [few, many] = Features::MAX_GROUPS.map(|groups| groups as u32);
        let is_large = nnz.clone().minus(Features::SMALL as u32).min(1);
        let groups = rows.clone().div_ceil(Features::ROWS_PER_GROUP).min(is_large * (many - few) + few);
        let places = cols.clone().min(1 << Features::LOG_DEGREE_PLACES);
        let degree_blocks = places.clone().div_ceil(PLACES_PER_BLOCK);
        let number = |size: &Expr| Arg::Size(size.clone(), IndexType::U32);
        let wide = |size: &Expr| Arg::Size(size.clone(), IndexType::U64);
        let counters = || Arg::Buffer(0);
        let value_bytes = Expr::from(Variable::ValueBytes);
        let diagonals = Arg::Buffer(1);
        AnalysisProgram {
            source: analysis_source(offset, index, THREADS_PER_BLOCK),
            structure_bytes: Expr::from(COUNTER_BYTES) + (places.clone() + marks.clone()) * 4,
            diagonals_bytes: words * 4,
            structure: [
                pass(
                    "structure",
                    pieces.clone()
                        + groups.clone() * (PARTS_OF_GROUP + 1)
                        + stride(rows.clone().div_ceil(ROWS_PER_THREAD))
                        + VALUE_BLOCKS,
                    [
                        &[
                            number(&samples),
                            number(&pieces),
                            number(&groups),
                            number(&rows),
                            wide(&cols),
                            wide(&nnz),
                        ][..],
                        &[number(&value_bytes), Arg::RowOffsets, Arg::ColIndices, Arg::Values],
                        &[wide(&places), counters(), diagonals.clone()],
                    ]
                    .concat(),
                ),
                pass(
                    "details",
                    (degree_blocks.clone() + stride(rows.clone() * 4)).max(1),
                    [
                        &[number(&degree_blocks), number(&places), number(&rows), wide(&nnz)][..],
                        &[Arg::RowOffsets, Arg::ColIndices, wide(&marks), counters(), diagonals, Arg::Inbox],
                    ]
                    .concat(),
                ),
            ],
            columns_bytes: Expr::from(COUNTER_BYTES) + cols.clone() * 4,
            columns: [
                pass("entries", stride(nnz.clone()), vec![wide(&nnz), Arg::ColIndices, counters()]),
                pass("lengths", stride(cols.clone()).max(1), vec![number(&cols), counters(), Arg::Inbox]),
            ],
        }
    }

    /// The features of a matrix of this size, whose values take so many bytes each, from what `structure` counted.
    pub fn features(
        size: (u64, u64),
        nnz: u64,
        value_bytes: usize,
        counters: &[u64; Self::NUM_COUNTERS],
    ) -> Features {
        let mut features = Features::of_size(size, nnz);
        features.longest_row = counters[0];
        features.row_lengths.copy_from_slice(&counters[1..34]);
        features.warp_steps.copy_from_slice(&counters[34..40]);
        features.marked.copy_from_slice(&counters[40..42]);
        features.grouped = counters[43];
        features.blocks.copy_from_slice(&counters[44..44 + Features::BLOCK_SHAPES.len()]);
        features.group_diagonals = counters[44 + Features::BLOCK_SHAPES.len()];
        features.gathered.copy_from_slice(&counters[GATHERED..GATHERED + 7]);
        features.gathers.copy_from_slice(&counters[GATHERED + 7..DEGREES]);
        let (cols, entries) = counters[DEGREES..ROWS].split_at(Degrees::CLASSES);
        features.degrees.cols.copy_from_slice(cols);
        features.degrees.entries.copy_from_slice(entries);
        // Else they were not counted.
        let Features { longest_row, group_diagonals, .. } = features;
        if Features::may_be_diagonal(size.0, nnz, longest_row, group_diagonals) {
            features.num_diagonals = Some(counters[42]);
        }
        features.different_rows = features.compared_rows().map(|rows| {
            let hashes = &counters[ROWS..][..(rows.end - rows.start) as usize];
            different(hashes)
        });
        if value_bytes <= 8 {
            let count = nnz.min(Features::SAMPLED_VALUES);
            let [different, wide, uneven] = [0, 1, 2].map(|kind| counters[VALUES + kind]);
            features.values = SampledValues { count, different, wide, uneven };
        }
        features
    }

    /// What `columns` counted.
    pub fn lengths(counters: &[u64; Self::NUM_COUNTERS]) -> Lengths {
        let (mut classes, mut warp_steps) = ([0; 33], [0; 6]);
        classes.copy_from_slice(&counters[1..34]);
        warp_steps.copy_from_slice(&counters[34..40]);
        Lengths { longest: counters[0], classes, warp_steps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_that_differ_are_counted() {
        assert_eq!(different(&[]), 0);
        // Those of one place, and 0, which says that nobody is there.
        assert_eq!(different(&[5, 5, 5 + 1024, 5, 5 + 2048, 5 + 1024, 0, 0]), 4);
        let all: Vec<u64> = (1..=Features::COMPARED_ROWS).map(|row| row << 32).collect();
        assert_eq!(different(&all), Features::COMPARED_ROWS);
    }
}
