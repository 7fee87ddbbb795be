//! ELLPACK for what most rows have, coordinates for the rest.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::GridScan;
use crate::program::{Arg, Buffer, Count, Guarantees, Pass, Slots};
use crate::types::IndexType;

parameters! {
    /// ELLPACK as wide as a third of the rows is long, coordinates for the rest (Bell and Garland's HYB).
    pub struct Hyb {}
}

/// Entries of `buffers`.
const SLOT_COLS: usize = 0;
const SLOT_VALUES: usize = 1;
const TAIL_WORDS: usize = 2;
const TAIL_OFFSETS: usize = 3;
const ROW_INDICES: usize = 4;
const TAIL_COLS: usize = 5;
const TAIL_VALUES: usize = 6;
const ELL_SUMS: usize = 7;
const PIECES_AT_END: usize = 8;
const PIECES_AT_BEGIN: usize = 9;
const MEETINGS: usize = 10;
const SELECTION: usize = 11;
const HISTOGRAM: usize = 12;
const TAIL_BEGINS: usize = 13;
const RANKS: usize = 14;
const TAIL_ROWS: usize = 15;
const PARTIALS: usize = 16;
const SELECTED: usize = 17;
const TAIL_NNZ: usize = 18;
const TAILS: usize = 19;

/// Columns of the ELLPACK part; entries behind them; rows that have such entries.
const WIDTH: Variable = Variable::Count(0);
const NUM_COORDINATES: Variable = Variable::Count(1);
const NUM_TAIL_ROWS: Variable = Variable::Count(2);

/// Rows of a thread of the ELLPACK part; `kEllRows` of the template.
const ROWS_PER_THREAD: u32 = 2;

/// Coordinates of a lane and of a warp; `kLaneNnz` and `kTileNnz` of the template.
const LANE_NNZ: u32 = 8;
const TILE_NNZ: u32 = 32 * LANE_NNZ;

/// Rows that a thread looks at for their lengths.
const ROWS_PER_SEARCHER: u32 = 16;

/// Rows with those that fill up the last warp.
fn stride() -> Expr {
    Expr::from(Variable::NumRows).div_ceil(32) * 32
}

fn num_tiles() -> Expr {
    Expr::from(NUM_COORDINATES).div_ceil(TILE_NNZ)
}

fn size(size: impl Into<Expr>) -> Arg {
    Arg::Size(size.into(), IndexType::U32)
}

fn pass(config: &KernelConfig, kernel: &str, threads: Expr, args: Vec<Arg>, buffers: &[usize]) -> Pass {
    Pass {
        kernel: kernel.into(),
        grid: threads.div_ceil(config.threads_per_block()),
        threads_per_block: config.threads_per_block(),
        shared_bytes: 0,
        args: args.into_iter().chain(buffers.iter().map(|buffer| Arg::Buffer(*buffer))).collect(),
    }
}

/// The width, a digit after the other.
fn select(config: &KernelConfig) -> Vec<Pass> {
    let num_rows = || Expr::from(Variable::NumRows);
    let digit = |shift: u32| {
        let shift = || size(shift);
        [
            pass(
                config,
                "spmv_hyb_histogram",
                num_rows().div_ceil(ROWS_PER_SEARCHER),
                vec![size(num_rows()), Arg::RowOffsets, shift()],
                &[SELECTION, HISTOGRAM],
            ),
            pass(
                config,
                "spmv_hyb_select",
                1.into(),
                vec![size(num_rows()), shift()],
                &[SELECTION, HISTOGRAM, SELECTED],
            ),
        ]
    };
    [24, 16, 8, 0].into_iter().flat_map(digit).collect()
}

fn prepare(config: &KernelConfig) -> Vec<Pass> {
    let offset = config.types().offset;
    let scan = |kernel: &str, out: usize, total: usize| GridScan {
        kernel: kernel.into(),
        length: Variable::NumRows.into(),
        threads_per_block: config.threads_per_block(),
        entry_args: vec![Arg::RowOffsets, size(WIDTH)],
        partials: PARTIALS,
        out,
        total,
    };
    let mut passes = select(config);
    passes.extend(scan("spmv_hyb_tails", TAIL_BEGINS, TAIL_NNZ).passes());
    passes.extend(scan("spmv_hyb_ranks", RANKS, TAILS).passes());
    let num_coordinates = || Arg::Size(NUM_COORDINATES.into(), offset);
    passes.push(pass(
        config,
        "spmv_hyb_convert",
        stride(),
        vec![
            size(Variable::NumRows),
            Arg::RowOffsets,
            Arg::ColIndices,
            Arg::Values,
            size(WIDTH),
            num_coordinates(),
        ],
        &[TAIL_BEGINS, RANKS, TAIL_WORDS, TAIL_OFFSETS, TAIL_ROWS, SLOT_COLS, SLOT_VALUES],
    ));
    passes.push(pass(
        config,
        "spmv_hyb_coordinates",
        num_tiles() * TILE_NNZ,
        vec![
            num_coordinates(),
            size(NUM_TAIL_ROWS),
            size(WIDTH),
            Arg::RowOffsets,
            Arg::ColIndices,
            Arg::Values,
        ],
        &[TAIL_OFFSETS, TAIL_ROWS, ROW_INDICES, TAIL_COLS, TAIL_VALUES],
    ));
    passes
}

fn multiply(config: &KernelConfig) -> Vec<Pass> {
    let accumulator = config.types().accumulator;
    let operands = || vec![Arg::X, Arg::Y, Arg::Alpha(accumulator), Arg::Beta(accumulator)];
    let buffers = |buffers: &[usize]| buffers.iter().map(|buffer| Arg::Buffer(*buffer)).collect::<Vec<_>>();
    let ell = [
        vec![size(Variable::NumRows), size(WIDTH)],
        buffers(&[SLOT_COLS, SLOT_VALUES]),
        vec![size(NUM_TAIL_ROWS)],
        buffers(&[TAIL_WORDS, ELL_SUMS]),
        operands(),
    ];
    let tail = [
        vec![size(num_tiles())],
        buffers(&[ROW_INDICES, TAIL_COLS, TAIL_VALUES, TAIL_WORDS, TAIL_OFFSETS, ELL_SUMS]),
        operands(),
        buffers(&[PIECES_AT_END, PIECES_AT_BEGIN, MEETINGS]),
    ];
    let ell_threads = Expr::from(Variable::NumRows).div_ceil(ROWS_PER_THREAD);
    vec![
        pass(config, "spmv_hyb", ell_threads, ell.concat(), &[]),
        pass(config, "spmv_hyb_tail", num_tiles() * 32, tail.concat(), &[]),
    ]
}

impl Plans for Hyb {
    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        let types = config.types();
        let number = stride() * WIDTH + NUM_COORDINATES;
        Some(Slots { number, bytes: (types.index.size() + types.value.size()) as u32 })
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let num_rows = || Expr::from(Variable::NumRows);
        let offset = types.offset.size() as u32;
        let slots = |size: usize| stride() * WIDTH * size as u32;
        let coordinates = |size: usize| num_tiles() * (TILE_NNZ * size as u32);
        let sums = |name, number: Expr| Buffer::new(name, number * types.accumulator.size() as u32);
        let scratch = |name, bytes: Expr| Buffer::new(name, bytes).scratch();
        Plan {
            prepare: prepare(config),
            multiply: multiply(config),
            buffers: vec![
                Buffer::new("slot_cols", slots(types.index.size())),
                Buffer::new("slot_values", slots(types.value.size())),
                Buffer::new("tail_words", num_rows().div_ceil(32) * 8),
                Buffer::new("tail_offsets", (Expr::from(NUM_TAIL_ROWS) + 1) * offset),
                Buffer::new("row_indices", coordinates(4)),
                Buffer::new("tail_cols", coordinates(types.index.size())),
                Buffer::new("tail_values", coordinates(types.value.size())),
                sums("ell_sums", NUM_TAIL_ROWS.into()),
                sums("pieces_at_end", num_tiles()),
                sums("pieces_at_begin", num_tiles()),
                Buffer::new("meetings", num_tiles() * types.accumulator.piece_word_bytes()).zeroed(),
                scratch("selection", 8.into()),
                scratch("histogram", (256 * 4).into()).zeroed(),
                scratch("tail_begins", (num_rows() + 1) * offset),
                scratch("ranks", (num_rows() + 1) * 4),
                scratch("tail_rows", Expr::from(NUM_TAIL_ROWS) * 4),
                scratch("partials", GridScan::MAX_PARTIALS_BYTES.into()),
                scratch("width", 8.into()).zeroed(),
                scratch("coordinates", 8.into()).zeroed(),
                scratch("tails", 8.into()).zeroed(),
            ],
            counts: vec![
                Count { name: "width", buffer: SELECTED, entry: 0, after: 7 },
                Count { name: "coordinates", buffer: TAIL_NNZ, entry: 0, after: 10 },
                Count { name: "tail_rows", buffer: TAILS, entry: 0, after: 13 },
            ],
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: true,
                // The chain of the ELLPACK part; a lane's chain; the tree over the lanes and their carry; a lane's
                // chain over the tiles of the row, one longer where they are not aligned, with the head, and the
                // tree; alpha, beta, two conversions.
                summation_depth: Expr::from(Variable::RowNnz)
                    + Expr::from(Variable::RowNnz).div_ceil(32 * TILE_NNZ)
                    + (LANE_NNZ + 5 + 1 + 2 + 5 + 4),
                operation: config.operation(),
            },
        }
    }
}
