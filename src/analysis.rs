//! The generated kernels that find the [`Features`] of a matrix on a device.

use crate::expr::{Expr, Variable};
use crate::features::{Degrees, Features, Lengths};
use crate::program::{Arg, Buffer, Pass};
use crate::source::analysis_source;
use crate::types::IndexType;

/// Generated CUDA text that counts a structure's features, for one type of row offsets and one of column indices, and how to run it: `structure`,
/// then, where the features say that diagonals are worth counting, `diagonals`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalysisProgram {
    /// CUDA C++17 text, complete in itself.
    pub source: String,
    /// The counters, a bit a diagonal, which only `diagonals` uses, the length of every column, which only `columns` does, and
    /// the entries that samples have in columns, which only `structure` does.
    pub buffers: [Buffer; 4],
    /// Passes that look at row offsets, at samples of column indices, at groups of rows and at what samples have in columns.
    pub structure: [Pass; 4],
    /// Passes that look at all column indices.
    pub diagonals: [Pass; 2],
    /// Passes that count the lengths of columns where other passes count those of rows.
    pub columns: [Pass; 2],
}

const THREADS_PER_BLOCK: u32 = 1024;

/// Counters of 64 bits: the longest row, rows of each length, steps of each width, marked bits, diagonals, entries of groups,
/// blocks of each shape, most diagonals of a group, columns and entries of each degree.
const COUNTERS: u32 = (DEGREES + 2 * Degrees::CLASSES) as u32;

/// Where the columns of each degree are.
const DEGREES: usize = 44 + Features::BLOCK_SHAPES.len() + 1;

impl AnalysisProgram {
    /// Index in [`AnalysisProgram::buffers`] of the counters.
    pub const COUNTERS: usize = 0;
    /// Index in [`AnalysisProgram::buffers`] of the bits of the diagonals.
    pub const DIAGONALS: usize = 1;
    /// Index in [`AnalysisProgram::buffers`] of the lengths of columns.
    pub const LENGTHS: usize = 2;
    /// Index in [`AnalysisProgram::buffers`] of the entries that samples have in columns.
    pub const DEGREES: usize = 3;
    /// How many counters there are, of 64 bits each.
    pub const NUM_COUNTERS: usize = COUNTERS as usize;

    /// Generates the program for row offsets and column indices of these types.
    pub fn new(offset: IndexType, index: IndexType) -> AnalysisProgram {
        let (rows, nnz) = (Expr::from(Variable::NumRows), Expr::from(Variable::Nnz));
        let words = (rows.clone() + Expr::from(Variable::NumCols)).div_ceil(32);
        let pass = |name: &str, grid: Expr, args: Vec<Arg>| Pass {
            kernel: format!("spmv_analysis_{name}"),
            grid,
            threads_per_block: THREADS_PER_BLOCK,
            shared_bytes: 0,
            args,
        };
        let num_rows = || Arg::Size(Variable::NumRows.into(), IndexType::U32);
        let of_all = |items: Expr| items.div_ceil(THREADS_PER_BLOCK);
        let stride = |items: Expr| {
            of_all(items).min(Expr::from(Variable::Multiprocessors) * Expr::from(Variable::ResidentBlocks))
        };
        let samples =
            nnz.clone().div_ceil(1 << Features::STRETCH[1].ilog2()).min(Features::MAX_SAMPLES as u32);
        let groups = rows.clone().div_ceil(Features::ROWS_PER_GROUP).min(Features::MAX_GROUPS as u32);
        let counters = || Arg::Buffer(Self::COUNTERS);
        let bits = || Arg::Buffer(Self::DIAGONALS);
        let lengths = || Arg::Buffer(Self::LENGTHS);
        let cols = Expr::from(Variable::NumCols);
        let places = cols.clone().min(1 << Features::LOG_DEGREE_PLACES);
        let degrees = || Arg::Buffer(Self::DEGREES);
        AnalysisProgram {
            source: analysis_source(offset, index, THREADS_PER_BLOCK),
            buffers: [
                Buffer::new("counters", COUNTERS * 8).zeroed(),
                Buffer::new("diagonals", words.clone() * 4).zeroed(),
                Buffer::new("lengths", cols.clone() * 4).zeroed(),
                Buffer::new("degrees", places.clone() * 4).zeroed(),
            ],
            structure: [
                pass("rows", stride(rows.clone()), vec![num_rows(), Arg::RowOffsets, counters()]),
                pass(
                    "columns",
                    samples,
                    vec![
                        Arg::Size(nnz.clone(), IndexType::U64),
                        Arg::Size(cols.clone(), IndexType::U64),
                        Arg::ColIndices,
                        degrees(),
                        counters(),
                    ],
                ),
                pass("blocks", groups, vec![num_rows(), Arg::RowOffsets, Arg::ColIndices, counters()]),
                pass(
                    "degrees",
                    stride(places.clone()),
                    vec![Arg::Size(places, IndexType::U32), degrees(), counters()],
                ),
            ],
            diagonals: [
                pass("diagonals", of_all(rows), vec![num_rows(), Arg::RowOffsets, Arg::ColIndices, bits()]),
                pass(
                    "count",
                    stride(words.clone()),
                    vec![Arg::Size(words, IndexType::U64), bits(), counters()],
                ),
            ],
            columns: [
                pass(
                    "entries",
                    stride(nnz.clone()),
                    vec![Arg::Size(nnz, IndexType::U64), Arg::ColIndices, lengths()],
                ),
                pass(
                    "lengths",
                    stride(cols.clone()),
                    vec![Arg::Size(cols, IndexType::U32), lengths(), counters()],
                ),
            ],
        }
    }

    /// The features of a matrix of this size from its counters; `num_diagonals` where diagonals were counted.
    pub fn features(
        size: (u64, u64),
        nnz: u64,
        counters: &[u64; Self::NUM_COUNTERS],
        diagonals: bool,
    ) -> Features {
        let mut features = Features::of_size(size, nnz);
        features.longest_row = counters[0];
        features.row_lengths.copy_from_slice(&counters[1..34]);
        features.warp_steps.copy_from_slice(&counters[34..40]);
        features.marked.copy_from_slice(&counters[40..42]);
        features.num_diagonals = diagonals.then_some(counters[42]);
        features.grouped = counters[43];
        features.blocks.copy_from_slice(&counters[44..44 + Features::BLOCK_SHAPES.len()]);
        features.group_diagonals = counters[44 + Features::BLOCK_SHAPES.len()];
        let (cols, entries) = counters[DEGREES..].split_at(Degrees::CLASSES);
        features.degrees.cols.copy_from_slice(cols);
        features.degrees.entries.copy_from_slice(entries);
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
