//! Dense blocks, compressed by rows of blocks.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::{GridScan, RadixSort};
use crate::program::{Arg, Buffer, Count, Guarantees, Pass, Slots};
use crate::types::IndexType;

parameters! {
    /// Dense blocks with one column index each, rows of blocks compressed as rows are in CSR (BSR).
    pub struct Bsr {
        /// Rows of a block.
        block_rows = 3, one of [2, 3, 4, 6, 8];
        /// Columns of a block; 0 takes as many as rows.
        block_cols = 0, one of [0, 1, 2, 3, 4];
    }
}

/// Entries of `buffers`.
const BLOCK_OFFSETS: usize = 0;
const BLOCK_COLS: usize = 1;
const BLOCK_VALUES: usize = 2;
const PAIRS: usize = 3;
const OTHER_PAIRS: usize = 4;
const PLACES: usize = 5;
const RANKS: usize = 6;
const MORE_LAYERS: usize = 7;
const FIRST_BLOCKS: usize = 8;
const PARTIALS: usize = 9;
const TOTAL: usize = 10;
const NUM_FOUND: usize = 11;
const NUM_STORED: usize = 12;

/// Blocks that hold an entry; blocks with those that are stored again for positions that are there several times.
const NUM_OCCUPIED: Variable = Variable::Count(0);
const NUM_BLOCKS: Variable = Variable::Count(1);

/// Blocks of the product that share a multiprocessor's part of the rows of blocks, over those that are resident: with fewer, groups
/// wait for the longest; with more, there is less to be loaded ahead.
const WAVES: u32 = 8;

/// Halves of a warp's steps below which a row of blocks is short on average: steps are long where a lane has a column of a block.
const LONG_HALF_STEPS: u32 = 4;
const LONG_HALF_STEPS_BY_ROWS: u32 = 3;

/// How a warp reads blocks of one shape.
struct Lanes {
    /// Lanes that share a block; `kLanesPerBlock` of the template.
    per_block: u32,
    /// Whether values lie by rows of the matrix; `kByRows` of the template.
    by_rows: bool,
}

impl Lanes {
    /// Blocks that a warp reads at a time.
    fn blocks_per_warp(&self) -> u32 {
        32 / self.per_block
    }

    /// Blocks on average from which on a row of blocks is long.
    fn long_from(&self) -> u32 {
        let half_steps = if self.by_rows { LONG_HALF_STEPS_BY_ROWS } else { LONG_HALF_STEPS };
        half_steps * self.blocks_per_warp() / 2
    }

    /// Groups of a warp where rows of blocks are short, each of which reads a block or as many as 8 lanes do.
    fn short_groups_per_warp(&self) -> u32 {
        32 / (self.per_block * (8 / self.per_block).max(1))
    }
}

impl Bsr {
    /// Rows and columns of a block.
    pub fn block_shape(&self) -> (u32, u32) {
        (self.block_rows, self.cols())
    }

    fn cols(&self) -> u32 {
        if self.block_cols == 0 { self.block_rows } else { self.block_cols }
    }

    fn places(&self) -> u32 {
        self.block_rows * self.cols()
    }

    fn num_block_rows(&self) -> Expr {
        Expr::from(Variable::NumRows).div_ceil(self.block_rows)
    }

    /// A lane has a column of a block where columns are odd in number; else the values of one load, where that leaves few lanes
    /// idle, or those of a row of the block.
    fn lanes(&self, config: &KernelConfig) -> Lanes {
        if self.cols() % 2 == 1 {
            return Lanes { per_block: self.cols(), by_rows: true };
        }
        let power_of_two = 1 << self.cols().trailing_zeros();
        let per_load = u32::min(power_of_two, 16 / config.types().value.size() as u32);
        let per_block = self.places() / per_load;
        let used = 32 / per_block * per_block;
        Lanes { per_block: if used >= 27 { per_block } else { self.block_rows }, by_rows: false }
    }

    fn prepare(&self, config: &KernelConfig) -> Vec<Pass> {
        let threads_per_block = config.threads_per_block();
        let [num_rows, num_cols, nnz] = [Variable::NumRows, Variable::NumCols, Variable::Nnz].map(Expr::from);
        let pass = |kernel: &str, threads: &Expr, sizes: &[&Expr], matrix: &[Arg], buffers: &[usize]| {
            let sizes = sizes.iter().map(|size| Arg::Size((*size).clone(), IndexType::U32));
            let buffers = buffers.iter().copied().map(Arg::Buffer);
            let args = sizes.chain(matrix.iter().cloned()).chain(buffers).collect();
            Pass::of_threads(format!("spmv_bsr_{kernel}"), threads.clone(), threads_per_block, args)
        };
        let sort = |key_bound: Expr| RadixSort {
            num_pairs: nnz.clone(),
            key_bound,
            low_bits: 0,
            threads_per_block,
            pairs: PAIRS,
            other_pairs: OTHER_PAIRS,
            places: PLACES,
            partials: PARTIALS,
            total: TOTAL,
        };
        let scan = |kernel: &str, length: Expr, entry_args: Vec<Arg>, out: usize, total: usize| GridScan {
            kernel: format!("spmv_bsr_{kernel}"),
            length,
            threads_per_block,
            entry_args,
            partials: PARTIALS,
            out,
            total,
        };
        let pattern = [Arg::RowOffsets, Arg::ColIndices];
        let mut passes = vec![pass("entries", &nnz, &[&nnz], &[Arg::ColIndices], &[PAIRS])];
        passes.extend(sort(num_cols).passes());
        passes.push(pass("rows", &nnz, &[&num_rows, &nnz], &[Arg::RowOffsets], &[PAIRS]));
        passes.extend(sort(self.num_block_rows()).passes());
        let sorted = [pattern.to_vec(), vec![Arg::Buffer(PAIRS)]].concat();
        passes.extend(scan("heads", nnz.clone(), sorted, RANKS, NUM_FOUND).passes());
        passes.push(pass("layers", &nnz, &[&nnz], &pattern, &[PAIRS, RANKS, MORE_LAYERS]));
        let layers = vec![Arg::Buffer(MORE_LAYERS)];
        passes.extend(scan("blocks", NUM_OCCUPIED.into(), layers, FIRST_BLOCKS, NUM_STORED).passes());
        let whole = [pattern.as_slice(), &[Arg::Values]].concat();
        passes.push(pass(
            "offsets",
            &(self.num_block_rows() + 1),
            &[&num_rows],
            &[Arg::RowOffsets],
            &[RANKS, FIRST_BLOCKS, BLOCK_OFFSETS],
        ));
        passes.push(pass(
            "convert",
            &nnz,
            &[&nnz],
            &whole,
            &[PAIRS, RANKS, FIRST_BLOCKS, BLOCK_OFFSETS, BLOCK_COLS, BLOCK_VALUES],
        ));
        passes
    }

    /// One of the two passes has no blocks: the one for long rows of blocks where they are short on average.
    fn multiply(&self, config: &KernelConfig) -> Vec<Pass> {
        let accumulator = config.types().accumulator;
        let lanes = self.lanes(config);
        let long_from = self.num_block_rows() * lanes.long_from();
        let if_long = Expr::from(1).min((Expr::from(NUM_BLOCKS) + 1).minus(long_from));
        let if_short = Expr::from(1).minus(if_long.clone());
        let pass = |kernel: &str, groups_per_warp: u32, condition: Expr| {
            let warps = self.num_block_rows().div_ceil(groups_per_warp);
            let args = vec![
                Arg::Size(Variable::NumRows.into(), IndexType::U32),
                Arg::Size(Variable::NumCols.into(), IndexType::U64),
                Arg::Buffer(BLOCK_OFFSETS),
                Arg::Buffer(BLOCK_COLS),
                Arg::Buffer(BLOCK_VALUES),
                Arg::X,
                Arg::Y,
                Arg::Alpha(accumulator),
                Arg::Beta(accumulator),
            ];
            let pass = Pass::of_threads(kernel, warps * 32 * condition, config.threads_per_block(), args);
            let resident = Expr::from(Variable::Multiprocessors) * Expr::from(Variable::ResidentBlocks);
            Pass { grid: pass.grid.min(resident * WAVES), ..pass }
        };
        vec![pass("spmv_bsr", 1, if_long), pass("spmv_bsr_short", lanes.short_groups_per_warp(), if_short)]
    }
}

impl Plans for Bsr {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        RadixSort::check_offset(config, "bsr", "sell_c_sigma")
    }

    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        let blocks = Expr::from(NUM_OCCUPIED).max(NUM_BLOCKS);
        Some(Slots { number: blocks * self.places(), bytes: config.types().value.size() as u32 })
    }

    fn fill_touches_x(&self) -> bool {
        true
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let nnz = || Expr::from(Variable::Nnz);
        let prepare = self.prepare(config);
        let pass_of = |kernel: &str| {
            prepare.iter().position(|pass| pass.kernel == kernel).expect("the scan has this pass")
        };
        let counts = vec![
            Count {
                name: "occupied_blocks",
                buffer: NUM_FOUND,
                entry: 0,
                after: pass_of("spmv_bsr_heads_partials"),
            },
            Count {
                name: "blocks",
                buffer: NUM_STORED,
                entry: 0,
                after: pass_of("spmv_bsr_blocks_partials"),
            },
        ];
        let values = Expr::from(NUM_BLOCKS) * (self.places() * types.value.size() as u32);
        Plan {
            prepare,
            multiply: self.multiply(config),
            buffers: vec![
                Buffer::new("block_offsets", (self.num_block_rows() + 1) * 4),
                Buffer::new("block_cols", Expr::from(NUM_BLOCKS) * types.index.size() as u32),
                Buffer::new("block_values", values).zeroed(),
                Buffer::new("pairs", nnz() * 8).scratch(),
                Buffer::new("other_pairs", nnz() * 8).scratch(),
                Buffer::new("places", (RadixSort::PLACES + 1) * 4).scratch(),
                Buffer::new("ranks", (nnz() + 1) * 4).scratch(),
                Buffer::new("more_layers", Expr::from(NUM_OCCUPIED) * 4).zeroed().scratch(),
                Buffer::new("first_blocks", (Expr::from(NUM_OCCUPIED) + 1) * 4).scratch(),
                Buffer::new("partials", GridScan::MAX_PARTIALS_BYTES).scratch(),
                Buffer::new("total", 8).scratch(),
                Buffer::new("occupied_blocks", 8).scratch(),
                Buffer::new("blocks", 8).scratch(),
            ],
            counts,
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: self.fill_touches_x(),
                splits_rows: false,
                // Whatever the tree over lanes, fill adds exact zeros; alpha, beta and two conversions.
                summation_depth: Expr::from(Variable::RowNnz) + 4,
                operation: config.operation(),
            },
        }
    }
}
