//! Dense blocks with compressed coordinates.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::{GridScan, RadixSort};
use crate::program::{Arg, Buffer, Count, Guarantees, Pass, Slots};
use crate::types::IndexType;

parameters! {
    /// Small dense blocks with 16 bits for a column and one for the end of a row (yaSpMV's BCCOO).
    pub struct Bccoo {
        /// Rows of a block.
        block_rows = 2, one of [1, 2, 4];
        /// Columns of a block.
        block_cols = 2, one of [1, 2, 4];
    }
}

/// Entries of `buffers`.
const BIT_FLAGS: usize = 0;
const BLOCK_ROWS: usize = 1;
const TILE_ROWS: usize = 2;
const TILE_COLS: usize = 3;
const TILE_SPANS: usize = 4;
const COL_DELTAS: usize = 5;
const ESCAPE_OFFSETS: usize = 6;
const ESCAPED_COLS: usize = 7;
const BLOCK_VALUES: usize = 8;
const EMPTY_ROWS: usize = 9;
const TAILS: usize = 10;
const HEADS: usize = 11;
const MEETINGS: usize = 12;
const PAIRS: usize = 13;
const OTHER_PAIRS: usize = 14;
const PLACES: usize = 15;
const LAYERS: usize = 16;
const BLOCKS: usize = 17;
const RANKS: usize = 18;
const PARTIALS: usize = 19;
const SORTED: usize = 20;
const TOTAL_BLOCKS: usize = 21;
const TOTAL_ROWS: usize = 22;
const TOTAL_ESCAPES: usize = 23;
const LISTED: usize = 24;

/// Blocks, rows of blocks that have one, and blocks whose column is listed.
const NUM_BLOCKS: Variable = Variable::Count(0);
const NUM_FILLED_ROWS: Variable = Variable::Count(1);
const NUM_ESCAPES: Variable = Variable::Count(2);

/// Blocks of a lane, and of a tile; `kSteps` and `kTileBlocks` of the template.
const STEPS: u32 = 8;
const TILE_BLOCKS: u32 = 32 * STEPS;

fn num_tiles() -> Expr {
    Expr::from(NUM_BLOCKS).div_ceil(TILE_BLOCKS)
}

fn size(size: impl Into<Expr>) -> Arg {
    Arg::Size(size.into(), IndexType::U32)
}

/// The `prepare` passes so far, and the counts that they find out.
struct Preparation {
    threads_per_block: u32,
    passes: Vec<Pass>,
    counts: Vec<Count>,
}

impl Preparation {
    fn pass(&mut self, kernel: &str, threads: Expr, args: Vec<Arg>, buffers: &[usize]) {
        let args = args.into_iter().chain(buffers.iter().map(|buffer| Arg::Buffer(*buffer))).collect();
        let kernel = format!("spmv_bccoo_{kernel}");
        self.passes.push(Pass::of_threads(kernel, threads, self.threads_per_block, args));
    }

    fn sort(&mut self, key_bound: Expr) {
        let sort = RadixSort {
            num_pairs: Variable::Nnz.into(),
            key_bound,
            low_bits: 0,
            threads_per_block: self.threads_per_block,
            pairs: PAIRS,
            other_pairs: OTHER_PAIRS,
            places: PLACES,
            partials: PARTIALS,
            total: SORTED,
        };
        self.passes.extend(sort.passes());
    }

    /// The sum of the scan is the next count.
    fn scan(&mut self, scan: GridScan, count: &'static str) {
        let buffer = scan.total;
        // The second of the three passes knows it.
        self.passes.extend(scan.passes());
        self.counts.push(Count { name: count, buffer, entry: 0, after: self.passes.len() - 1 });
    }
}

impl Bccoo {
    fn places(&self) -> u32 {
        self.block_rows * self.block_cols
    }

    /// Rows of blocks.
    fn num_block_rows(&self) -> Expr {
        Expr::from(Variable::NumRows).div_ceil(self.block_rows)
    }

    fn num_empty_rows(&self) -> Expr {
        self.num_block_rows().minus(NUM_FILLED_ROWS)
    }

    fn prepare(&self, config: &KernelConfig) -> Preparation {
        let threads_per_block = config.threads_per_block();
        let nnz = || Expr::from(Variable::Nnz);
        let a_warp_a_tile = || num_tiles() * 32;
        let in_place = |entries: usize, length: Expr, total: usize| {
            GridScan::in_place(entries, length, threads_per_block, PARTIALS, total)
        };
        let matrix = || vec![size(Variable::NumRows), size(nnz()), Arg::RowOffsets, Arg::ColIndices];
        let mut preparation = Preparation { threads_per_block, passes: vec![], counts: vec![] };
        preparation.pass("entries", nnz(), vec![size(nnz()), Arg::ColIndices], &[PAIRS]);
        preparation.sort(Variable::NumCols.into());
        let rows = vec![size(Variable::NumRows), size(nnz()), Arg::RowOffsets];
        preparation.pass("rows", nnz(), rows, &[PAIRS]);
        preparation.sort(self.num_block_rows());
        preparation.pass("layers", nnz(), matrix(), &[PAIRS, LAYERS]);
        preparation.scan(in_place(LAYERS, nnz(), TOTAL_BLOCKS), "blocks");
        let fill = [matrix(), vec![Arg::Values]].concat();
        preparation.pass("fill", nnz(), fill, &[PAIRS, LAYERS, BLOCKS, BLOCK_VALUES]);
        let tiles_and_blocks = || vec![size(num_tiles()), size(NUM_BLOCKS)];
        preparation.pass("flags", num_tiles() * TILE_BLOCKS, tiles_and_blocks(), &[BLOCKS, BIT_FLAGS]);
        let ranks = GridScan {
            kernel: "spmv_bccoo_ranks".into(),
            length: NUM_BLOCKS.into(),
            threads_per_block,
            entry_args: vec![Arg::Buffer(BIT_FLAGS)],
            partials: PARTIALS,
            out: RANKS,
            total: TOTAL_ROWS,
        };
        preparation.scan(ranks, "filled_rows");
        preparation.pass(
            "describe",
            a_warp_a_tile(),
            tiles_and_blocks(),
            &[BLOCKS, RANKS, BLOCK_ROWS, TILE_ROWS, TILE_COLS, TILE_SPANS, COL_DELTAS, ESCAPE_OFFSETS],
        );
        preparation.scan(in_place(ESCAPE_OFFSETS, num_tiles(), TOTAL_ESCAPES), "escapes");
        let listed = [BLOCKS, COL_DELTAS, ESCAPE_OFFSETS, ESCAPED_COLS];
        preparation.pass("escapes", a_warp_a_tile(), vec![size(num_tiles())], &listed);
        let rows = vec![size(Variable::NumRows), Arg::RowOffsets];
        preparation.pass("list_empty", self.num_block_rows(), rows, &[LISTED, EMPTY_ROWS]);
        preparation
    }

    fn buffers(&self, config: &KernelConfig) -> Vec<Buffer> {
        let types = config.types();
        let nnz = || Expr::from(Variable::Nnz);
        let blocks = || Expr::from(NUM_BLOCKS);
        let sums = || num_tiles() * (self.block_rows * types.accumulator.size() as u32);
        let scratch = |name, bytes: Expr| Buffer::new(name, bytes).scratch();
        vec![
            Buffer::new("bit_flags", num_tiles() * (STEPS * 4)),
            Buffer::new("block_rows", Expr::from(NUM_FILLED_ROWS) * 4),
            Buffer::new("tile_rows", num_tiles() * 4),
            Buffer::new("tile_cols", num_tiles() * 4),
            Buffer::new("tile_spans", num_tiles() * 8),
            Buffer::new("col_deltas", num_tiles() * (TILE_BLOCKS * 2)),
            Buffer::new("escape_offsets", (num_tiles() + 1) * 4),
            Buffer::new("escaped_cols", Expr::from(NUM_ESCAPES) * 4),
            Buffer::new(
                "block_values",
                num_tiles() * (TILE_BLOCKS * self.places() * types.value.size() as u32),
            )
            .zeroed(),
            Buffer::new("empty_rows", self.num_empty_rows() * 4),
            Buffer::new("tails", sums()),
            Buffer::new("heads", sums()),
            Buffer::new("meetings", num_tiles() * (self.block_rows * types.accumulator.piece_word_bytes()))
                .zeroed(),
            scratch("pairs", nnz() * 8),
            scratch("other_pairs", nnz() * 8),
            scratch("places", (RadixSort::PLACES * 4 + 4).into()),
            scratch("layers", (nnz() + 1) * 4).zeroed(),
            scratch("blocks", blocks() * 8),
            scratch("ranks", (blocks() + 1) * 4),
            scratch("partials", GridScan::MAX_PARTIALS_BYTES.into()),
            scratch("sorted", 8.into()),
            scratch("total_blocks", 8.into()),
            scratch("total_rows", 8.into()),
            scratch("total_escapes", 8.into()),
            scratch("listed", 8.into()).zeroed(),
        ]
    }
}

impl Plans for Bccoo {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        RadixSort::check_offset(config, "bccoo", "csr5 or merge_path")
    }

    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        let number = Expr::from(NUM_BLOCKS) * self.places();
        Some(Slots { number, bytes: config.types().value.size() as u32 })
    }

    fn fill_touches_x(&self) -> bool {
        true
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let mut args = vec![
            size(Variable::NumRows),
            Arg::Size(Variable::NumCols.into(), IndexType::U64),
            Arg::X,
            Arg::Y,
            Arg::Alpha(types.accumulator),
            Arg::Beta(types.accumulator),
            size(num_tiles()),
            size(NUM_BLOCKS),
            size(self.num_empty_rows()),
        ];
        args.extend([BIT_FLAGS, BLOCK_ROWS, TILE_ROWS, TILE_COLS, TILE_SPANS, COL_DELTAS].map(Arg::Buffer));
        args.extend([ESCAPE_OFFSETS, ESCAPED_COLS, BLOCK_VALUES, EMPTY_ROWS].map(Arg::Buffer));
        args.extend([TAILS, HEADS, MEETINGS].map(Arg::Buffer));
        let product = Pass {
            kernel: "spmv_bccoo".into(),
            grid: num_tiles().div_ceil(threads_per_block / 32)
                + (self.num_empty_rows() * self.block_rows).div_ceil(threads_per_block),
            threads_per_block,
            shared_bytes: 0,
            args,
        };
        let Preparation { passes: prepare, counts, .. } = self.prepare(config);
        Plan {
            prepare,
            multiply: vec![product],
            buffers: self.buffers(config),
            counts,
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: self.fill_touches_x(),
                splits_rows: true,
                // A lane's chain of products, to which fill adds exact zeros, the tree, what is before; a lane's chain over
                // the tiles of the row that hold an entry, with the head, and the tree; alpha, beta, two conversions.
                summation_depth: Expr::from(Variable::RowNnz) + (STEPS * self.block_cols + 5 + 1 + 2 + 5 + 4),
                operation: config.operation(),
            },
        }
    }
}
