//! Coordinates: a row, a column and a value for every entry.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::{Arg, Buffer, Count, Guarantees, Pass};
use crate::transposed;
use crate::types::IndexType;

parameters! {
    /// A warp takes 256 entries with their rows and sums them segment by segment (coordinate format).
    pub struct Coo {
        /// 0 sums the segments of a row in a fixed order; 1 adds them to y by atomics, as they come.
        reduction = 0, one of [0, 1];
    }
}

/// Nonzeros of a warp; `kTileNnz` of the template.
const TILE_NNZ: u32 = 256;

/// Neighbouring nonzeros of a lane; `kRun` of the template. Of a tile it has so many `RUNS`.
const RUN: u32 = 4;
const RUNS: u32 = TILE_NNZ / (32 * RUN);

/// Entries of `buffers`; those from `EMPTY_ROWS` on are of `reduction = 0`.
const ROW_INDICES: usize = 0;
const EMPTY_ROWS: usize = 1;
const TAILS: usize = 2;
const HEADS: usize = 3;
const MEETINGS: usize = 4;
const COUNTS: usize = 5;

/// Rows without nonzeros, the only count.
const NUM_EMPTY_ROWS: Variable = Variable::Count(0);

fn num_tiles() -> Expr {
    Expr::from(Variable::Nnz).div_ceil(TILE_NNZ)
}

fn num_rows() -> Arg {
    Arg::Size(Variable::NumRows.into(), IndexType::U32)
}

fn nnz(config: &KernelConfig) -> Arg {
    Arg::Size(Variable::Nnz.into(), config.types().offset)
}

fn pass(config: &KernelConfig, kernel: &str, grid: Expr, args: Vec<Arg>) -> Pass {
    let threads_per_block = config.threads_per_block();
    Pass { kernel: kernel.into(), grid, threads_per_block, shared_bytes: 0, args }
}

/// Finds the row of every nonzero.
fn rows_pass(config: &KernelConfig) -> Pass {
    let grid = Expr::from(Variable::Nnz).div_ceil(config.threads_per_block());
    let args = vec![num_rows(), nnz(config), Arg::RowOffsets, Arg::Buffer(ROW_INDICES)];
    pass(config, "spmv_coo_rows", grid, args)
}

impl Coo {
    fn segmented(&self, config: &KernelConfig) -> Plan {
        let threads_per_block = config.threads_per_block();
        let accumulator = config.types().accumulator;
        let a_thread_a_row = || Expr::from(Variable::NumRows).div_ceil(threads_per_block);
        let of_rows = || vec![num_rows(), Arg::RowOffsets, Arg::Buffer(COUNTS)];
        let mut args = vec![
            num_rows(),
            nnz(config),
            Arg::RowOffsets,
            Arg::ColIndices,
            Arg::Values,
            Arg::X,
            Arg::Y,
            Arg::Alpha(accumulator),
            Arg::Beta(accumulator),
            Arg::Size(num_tiles(), IndexType::U32),
            Arg::Buffer(ROW_INDICES),
            Arg::Size(NUM_EMPTY_ROWS.into(), IndexType::U32),
        ];
        args.extend([EMPTY_ROWS, TAILS, HEADS, MEETINGS].map(Arg::Buffer));
        let grid = num_tiles().div_ceil(threads_per_block / 32)
            + Expr::from(NUM_EMPTY_ROWS).div_ceil(threads_per_block);
        let sums = || num_tiles() * accumulator.size() as u32;
        Plan {
            prepare: vec![
                pass(config, "spmv_coo_count_empty", a_thread_a_row(), of_rows()),
                pass(
                    config,
                    "spmv_coo_list_empty",
                    a_thread_a_row(),
                    [of_rows(), vec![Arg::Buffer(EMPTY_ROWS)]].concat(),
                ),
                rows_pass(config),
            ],
            multiply: vec![pass(config, "spmv_coo", grid, args)],
            buffers: vec![
                Buffer::new("row_indices", Expr::from(Variable::Nnz) * 4),
                Buffer::new("empty_rows", Expr::from(NUM_EMPTY_ROWS) * 4),
                Buffer::new("tails", sums()),
                Buffer::new("heads", sums()),
                Buffer::new("meetings", num_tiles() * accumulator.piece_word_bytes()).zeroed(),
                Buffer::new("counts", 2 * 8).zeroed().scratch(),
            ],
            counts: vec![Count { name: "empty_rows", buffer: COUNTS, entry: 0, after: 0 }],
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: true,
                // A product; for each run what is open, the lane's chain, the tree and what is before; the trees of a
                // block; a lane's chain over the tiles of the row, with the head, and the tree; alpha, beta, two
                // conversions.
                summation_depth: Expr::from(Variable::RowNnz).div_ceil(32 * TILE_NNZ)
                    + (1 + RUNS * (1 + RUN + 5 + 1) + 5 + 5 + 2 + 5 + 4),
                operation: config.operation(),
            },
        }
    }

    fn atomic(&self, config: &KernelConfig) -> Plan {
        let threads_per_block = config.threads_per_block();
        let accumulator = config.types().accumulator;
        let scale = vec![num_rows(), Arg::Y, Arg::Beta(accumulator)];
        let add = vec![
            nnz(config),
            Arg::ColIndices,
            Arg::Values,
            Arg::X,
            Arg::Y,
            Arg::Alpha(accumulator),
            Arg::Buffer(ROW_INDICES),
        ];
        Plan {
            prepare: vec![rows_pass(config)],
            multiply: vec![
                pass(
                    config,
                    "spmv_coo_scale",
                    Expr::from(Variable::NumRows).div_ceil(threads_per_block),
                    scale,
                ),
                pass(config, "spmv_coo_add", num_tiles().div_ceil(threads_per_block / 32), add),
            ],
            buffers: vec![Buffer::new("row_indices", Expr::from(Variable::Nnz) * 4)],
            counts: vec![],
            guarantees: Guarantees {
                bit_reproducible: false,
                fill_touches_x: false,
                splits_rows: true,
                // A product, a lane's chain with what is before it, the tree, the sums of all segments, alpha, beta and
                // two conversions.
                summation_depth: Expr::from(Variable::RowNnz) + (1 + RUN + 1 + 5 + 4),
                operation: config.operation(),
            },
        }
    }
}

impl Plans for Coo {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        if self.reduction == 1 { transposed::check_types(config) } else { Ok(()) }
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        if self.reduction == 1 { self.atomic(config) } else { self.segmented(config) }
    }
}
