//! Rows by length, medium ones as tiles for tensor cores.

use super::{Plan, Plans};
use crate::config::{KernelConfig, Types};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::{GridScan, Partition};
use crate::program::{Arg, Buffer, Count, Guarantees, Pass};
use crate::types::{IndexType, ValueType};

parameters! {
    /// Rows by length, medium ones as tiles for tensor cores (DASP, Lu and Liu 2023).
    pub struct Dasp {
        /// Nonzeros up to which a row lies in tiles; longer rows are cut in parts of a warp each.
        long_row = 256, one of [128, 256, 512];
        /// Nonzeros up to which a warp computes 32 rows of tiles; of longer rows it computes eight.
        wide_row = 32, one of [16, 32, 64];
    }
}

/// Kinds of rows: long, wide, narrow, short. Counts of these indices are their rows.
const KINDS: u8 = 4;
const LONG: u8 = 0;
const WIDE: u8 = 1;
const NARROW: u8 = 2;
const SHORT: u8 = 3;
const NUM_UNITS_COUNT: u8 = KINDS;
const NUM_PARTS_COUNT: u8 = KINDS + 1;

const LOW_BINS: u32 = 32;
const SLICE_ROWS: u32 = 32;
const SHORT_SLICE_ROWS: u32 = 128;
/// Short rows that are sorted together.
const WINDOW: u32 = 32 * SHORT_SLICE_ROWS;
/// Entries in which the sizes of slices are counted.
const UNIT: u32 = 32;
/// Entries that a warp loads at a time, eight a lane.
const BLOCK: u32 = 256;
/// First unit, smallest column, first row, columns and flags.
const SLICE_BYTES: u32 = 16;
const NNZ_PER_PART: u32 = 2048;
const MAX_PARTS: u32 = 4096;

// Buffers of the plan.
const FIRST_ORDER: usize = 0;
const KEY_ORDER: usize = 1;
const ROW_ORDER: usize = 2;
const OFFSETS: usize = 3;
const BIN_COUNTS: usize = 4;
const KIND_ROWS: usize = 5;
const PARTIALS: usize = 6;
const FIRST_UNITS: usize = 7;
const NUM_UNITS: usize = 8;
const SLICES: usize = 9;
const FIRST_PARTS: usize = 10;
const NUM_PARTS: usize = 11;
const PART_ROWS: usize = 12;
const PART_ENDS: usize = 13;
const PART_SUMS: usize = 14;
const FINISHED_PARTS: usize = 15;
const TILE_LOWS: usize = 16;
const TILE_HIGHS: usize = 17;
const TILE_VALUES: usize = 18;

fn rows_of(kind: u8) -> Expr {
    Variable::Count(kind).into()
}

fn medium_rows() -> Expr {
    rows_of(WIDE) + rows_of(NARROW)
}

fn medium_slices() -> Expr {
    medium_rows().div_ceil(SLICE_ROWS)
}

fn short_slices() -> Expr {
    rows_of(SHORT).div_ceil(SHORT_SLICE_ROWS)
}

fn num_slices() -> Expr {
    medium_slices() + short_slices()
}

fn num_parts() -> Expr {
    Variable::Count(NUM_PARTS_COUNT).into()
}

/// Entries in slices, padding counted.
fn slice_entries() -> Expr {
    Expr::from(Variable::Count(NUM_UNITS_COUNT)) * UNIT
}

fn size(expr: Expr) -> Arg {
    Arg::Size(expr, IndexType::U32)
}

fn pass(kernel: &str, grid: Expr, threads_per_block: u32, args: Vec<Arg>) -> Pass {
    Pass { kernel: kernel.into(), grid, threads_per_block, shared_bytes: 0, args }
}

impl Plans for Dasp {
    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let num_rows = || Expr::from(Variable::NumRows);
        let (prepare, counts) = self.preparation(threads_per_block);
        let offset_bytes = types.offset.size() as u32;
        Plan {
            prepare,
            multiply: vec![self.product(config)],
            buffers: vec![
                Buffer::new("first_order", num_rows() * 4).scratch(),
                Buffer::new("key_order", num_rows() * 4).scratch(),
                Buffer::new("row_order", num_rows() * 4),
                Buffer::new("offsets", Partition::offsets(num_rows(), LOW_BINS, threads_per_block) * 4)
                    .scratch(),
                Buffer::new("bin_counts", 8 * LOW_BINS).scratch(),
                Buffer::new("kind_rows", 8 * u32::from(KINDS)).scratch(),
                Buffer::new(
                    "partials",
                    GridScan::partials_bytes(num_slices().max(rows_of(LONG)), threads_per_block),
                )
                .scratch(),
                Buffer::new("first_units", (num_slices() + 1) * 4).scratch(),
                Buffer::new("num_units", 8).scratch(),
                Buffer::new("slices", num_slices() * SLICE_BYTES),
                Buffer::new("first_parts", (rows_of(LONG) + 1) * 4),
                Buffer::new("num_parts", 8).scratch(),
                Buffer::new("part_rows", num_parts() * 4),
                Buffer::new("part_ends", num_parts() * (2 * offset_bytes)),
                Buffer::new("part_sums", num_parts() * types.accumulator.size() as u32),
                Buffer::new("finished_parts", rows_of(LONG) * 4).zeroed(),
                Buffer::new("tile_lows", slice_entries() * 2),
                Buffer::new("tile_highs", slice_entries() * 2),
                Buffer::new("tile_values", slice_entries() * types.value.size() as u32),
            ],
            counts,
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: true,
                summation_depth: self.depth(&types),
                operation: config.operation(),
            },
        }
    }
}

impl Dasp {
    /// A row in tiles is one chain at worst, then a tree over four and the sum of the last columns. A part of a long row is
    /// a chain a lane, at worst of eight columns of four tiles each; then trees over tiles and lanes, eight chains a lane
    /// over parts, and a tree over these. Then alpha, beta and the conversions of a sum and of y.
    ///
    /// Tensor cores for halves align eight products and the sum so far to the largest and cut off what is behind its last
    /// bit, up to two units of roundoff a term and another few for the sum: 24 for eight columns at most.
    fn depth(&self, types: &Types) -> Expr {
        let halves = [ValueType::F16, ValueType::Bf16].contains(&types.value)
            && types.x == types.value
            && types.accumulator == ValueType::F32;
        let chain = |columns: Expr| match halves {
            true => columns.div_ceil(8) * 24,
            false => columns,
        };
        let row_nnz = || Expr::from(Variable::RowNnz);
        let part = (row_nnz().div_ceil(MAX_PARTS) + UNIT).max(NNZ_PER_PART);
        let part_chain = chain(part.div_ceil(BLOCK) * 8).min(chain(row_nnz()));
        let over_parts = row_nnz().div_ceil(NNZ_PER_PART).min(MAX_PARTS).div_ceil(8 * 32);
        let of_parts = part_chain + (2 + 5) + over_parts + (3 + 5);
        chain(row_nnz().min(self.long_row)).max(of_parts) + (3 + 4)
    }

    fn preparation(&self, threads_per_block: u32) -> (Vec<Pass>, Vec<Count>) {
        let num_rows = || Expr::from(Variable::NumRows);
        let blocks = |threads: Expr| threads.div_ceil(threads_per_block);
        let order = |name: &str, key_args: Vec<Arg>, out: usize| Partition {
            kernel: format!("spmv_dasp_{name}"),
            num_items: num_rows(),
            threads_per_block,
            key_args,
            emit_args: vec![Arg::Buffer(out)],
            offsets: OFFSETS,
            bin_counts: BIN_COUNTS,
        };
        let scan = |name: &str, length: Expr, rest: Vec<Arg>, out: usize, total: usize| GridScan {
            kernel: format!("spmv_dasp_{name}"),
            length,
            threads_per_block,
            entry_args: [Arg::RowOffsets, Arg::Buffer(ROW_ORDER)].into_iter().chain(rest).collect(),
            partials: PARTIALS,
            out,
            total,
        };
        let mut prepare = order("low", vec![Arg::RowOffsets], FIRST_ORDER).passes().to_vec();
        prepare.extend(order("high", vec![Arg::RowOffsets, Arg::Buffer(FIRST_ORDER)], KEY_ORDER).passes());
        let sorted = [size(num_rows()), Arg::RowOffsets, Arg::Buffer(KEY_ORDER), Arg::Buffer(KIND_ROWS)];
        prepare.push(pass("spmv_dasp_kinds", 1.into(), threads_per_block, sorted.to_vec()));
        let kinds_known = prepare.len() - 1;

        let warps_per_block = threads_per_block / 32;
        let first_short = || rows_of(LONG) + medium_rows();
        let windows = first_short().div_ceil(WINDOW) + rows_of(SHORT).div_ceil(WINDOW);
        let mut orders = vec![size(num_rows()), size(first_short()), Arg::RowOffsets];
        orders.extend([KEY_ORDER, ROW_ORDER].map(Arg::Buffer));
        let windows_grid = windows.div_ceil(warps_per_block);
        prepare.push(pass("spmv_dasp_windows", windows_grid, threads_per_block, orders));

        let sliced = vec![size(rows_of(LONG)), size(medium_rows())];
        prepare.extend(scan("slices", num_slices(), sliced, FIRST_UNITS, NUM_UNITS).passes());
        let units_known = prepare.len() - 1;
        prepare.extend(scan("parts", rows_of(LONG), vec![], FIRST_PARTS, NUM_PARTS).passes());
        let parts_known = prepare.len() - 1;

        let mut parts = vec![size(num_parts()), size(rows_of(LONG)), Arg::RowOffsets];
        parts.extend([ROW_ORDER, FIRST_PARTS, PART_ROWS, PART_ENDS].map(Arg::Buffer));
        prepare.push(pass("spmv_dasp_parts", blocks(num_parts()), threads_per_block, parts));

        let mut fill = |name: &str, slices: Expr, mut args: Vec<Arg>| {
            args.extend([Arg::RowOffsets, Arg::ColIndices, Arg::Values]);
            args.extend(
                [ROW_ORDER, FIRST_UNITS, SLICES, TILE_LOWS, TILE_HIGHS, TILE_VALUES].map(Arg::Buffer),
            );
            prepare.push(pass(name, slices.div_ceil(warps_per_block), threads_per_block, args));
        };
        let medium = [medium_slices(), rows_of(LONG), rows_of(WIDE), medium_rows()].map(size);
        fill("spmv_dasp_fill_medium", medium_slices(), medium.to_vec());
        let short = [short_slices(), medium_slices(), first_short(), num_rows()].map(size);
        fill("spmv_dasp_fill_short", short_slices(), short.to_vec());

        let kind_names = ["long_rows", "wide_rows", "narrow_rows", "short_rows"];
        let mut counts: Vec<Count> = (0..)
            .zip(kind_names)
            .map(|(entry, name)| Count { name, buffer: KIND_ROWS, entry, after: kinds_known })
            .collect();
        counts.push(Count { name: "num_units", buffer: NUM_UNITS, entry: 0, after: units_known });
        counts.push(Count { name: "num_parts", buffer: NUM_PARTS, entry: 0, after: parts_known });
        (prepare, counts)
    }

    fn product(&self, config: &KernelConfig) -> Pass {
        let threads_per_block = config.threads_per_block();
        let accumulator = config.types().accumulator;
        let mut args = vec![Arg::ColIndices, Arg::Values, Arg::X, Arg::Y];
        args.extend([
            Arg::Alpha(accumulator),
            Arg::Beta(accumulator),
            Arg::Buffer(ROW_ORDER),
            size(num_parts()),
        ]);
        args.extend([FIRST_PARTS, PART_ROWS, PART_ENDS, PART_SUMS, FINISHED_PARTS].map(Arg::Buffer));
        args.extend([LONG, WIDE, NARROW, SHORT].map(|kind| size(rows_of(kind))));
        args.extend([SLICES, TILE_LOWS, TILE_HIGHS, TILE_VALUES].map(Arg::Buffer));
        let warps_per_block = threads_per_block / 32;
        let units = num_parts() + num_slices() + rows_of(WIDE).div_ceil(SLICE_ROWS) * 3;
        let grid = units.div_ceil(warps_per_block);
        pass("spmv_dasp", grid, threads_per_block, args)
    }
}
