//! Rows by length, medium ones as tiles for tensor cores.

use super::{Plan, Plans};
use crate::config::KernelConfig;
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

/// Kinds of rows: long, wide, narrow, of 4, 3, 2 and 1 entries, empty. Counts of these indices are their rows.
const KINDS: u8 = 8;
const LONG: u8 = 0;
const WIDE: u8 = 1;
const NARROW: u8 = 2;
const FIRST_SHORT: u8 = 3;
const NUM_COLUMNS_COUNT: u8 = KINDS;
const NUM_PARTS_COUNT: u8 = KINDS + 1;

const LOW_BINS: u32 = 32;
const SLICE_ROWS: u32 = 32;
const NNZ_PER_PART: u32 = 1024;
const MAX_PARTS: u32 = 4096;

// Buffers of the plan.
const FIRST_ORDER: usize = 0;
const ROW_ORDER: usize = 1;
const OFFSETS: usize = 2;
const BIN_COUNTS: usize = 3;
const KIND_ROWS: usize = 4;
const PARTIALS: usize = 5;
const FIRST_COLUMNS: usize = 6;
const NUM_COLUMNS: usize = 7;
const FIRST_PARTS: usize = 8;
const NUM_PARTS: usize = 9;
const PART_ROWS: usize = 10;
const PART_ENDS: usize = 11;
const PART_SUMS: usize = 12;
const FINISHED_PARTS: usize = 13;
const TILE_COLS: usize = 14;
const TILE_VALUES: usize = 15;

fn rows_of(kind: u8) -> Expr {
    Variable::Count(kind).into()
}

fn num_slices() -> Expr {
    (rows_of(WIDE) + rows_of(NARROW)).div_ceil(SLICE_ROWS)
}

fn num_parts() -> Expr {
    Variable::Count(NUM_PARTS_COUNT).into()
}

/// Entries in slices, padding counted; those of short rows lie behind them.
fn slice_entries() -> Expr {
    Expr::from(Variable::Count(NUM_COLUMNS_COUNT)) * SLICE_ROWS
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
        let short = FIRST_SHORT..FIRST_SHORT + 4;
        let short_entries = short.zip([4, 3, 2, 1]).map(|(kind, length)| rows_of(kind) * length);
        let entries = || short_entries.clone().fold(slice_entries(), |sum, entries| sum + entries);
        let offset_bytes = types.offset.size() as u32;
        Plan {
            prepare,
            multiply: vec![self.product(config)],
            buffers: vec![
                Buffer::new("first_order", num_rows() * 4).scratch(),
                Buffer::new("row_order", num_rows() * 4),
                Buffer::new("offsets", Partition::offsets(num_rows(), LOW_BINS, threads_per_block) * 4)
                    .scratch(),
                Buffer::new("bin_counts", 8 * LOW_BINS).scratch(),
                Buffer::new("kind_rows", 8 * u32::from(KINDS)).scratch(),
                Buffer::new(
                    "partials",
                    GridScan::partials(num_slices().max(rows_of(LONG)), threads_per_block) * 4,
                )
                .scratch(),
                Buffer::new("first_columns", (num_slices() + 1) * 4),
                Buffer::new("num_columns", 8).scratch(),
                Buffer::new("first_parts", (rows_of(LONG) + 1) * 4),
                Buffer::new("num_parts", 8).scratch(),
                Buffer::new("part_rows", num_parts() * 4),
                Buffer::new("part_ends", num_parts() * (2 * offset_bytes)),
                Buffer::new("part_sums", num_parts() * ValueType::F64.size() as u32),
                Buffer::new("finished_parts", rows_of(LONG) * 4).zeroed(),
                Buffer::new("tile_cols", entries() * types.index.size() as u32),
                Buffer::new("tile_values", entries() * types.value.size() as u32),
            ],
            counts,
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: true,
                summation_depth: self.depth(),
                operation: config.operation(),
            },
        }
    }
}

impl Dasp {
    /// A row in tiles is one chain at worst, then a tree over four. A part of a long row is two chains over tiles, each
    /// with four entries of every second; then a tree, eight chains a lane over parts, and a tree over these. Then
    /// alpha, beta and the conversions of a sum and of y.
    fn depth(&self) -> Expr {
        let row_nnz = || Expr::from(Variable::RowNnz);
        let part_chain = row_nnz().div_ceil(NNZ_PER_PART * MAX_PARTS) * (NNZ_PER_PART / 16);
        let over_parts = row_nnz().div_ceil(NNZ_PER_PART).min(MAX_PARTS).div_ceil(8 * 32);
        let of_parts = part_chain.min(row_nnz()) + (1 + 5) + over_parts + (3 + 5);
        row_nnz().min(self.long_row).max(of_parts) + (2 + 4)
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
        let scan = |name: &str, length: Expr, rest: Option<Arg>, out: usize, total: usize| GridScan {
            kernel: format!("spmv_dasp_{name}"),
            length,
            threads_per_block,
            entry_args: [Arg::RowOffsets, Arg::Buffer(ROW_ORDER)].into_iter().chain(rest).collect(),
            partials: PARTIALS,
            out,
            total,
        };
        let mut prepare = order("low", vec![Arg::RowOffsets], FIRST_ORDER).passes().to_vec();
        prepare.extend(order("high", vec![Arg::RowOffsets, Arg::Buffer(FIRST_ORDER)], ROW_ORDER).passes());
        let sorted = [size(num_rows()), Arg::RowOffsets, Arg::Buffer(ROW_ORDER), Arg::Buffer(KIND_ROWS)];
        prepare.push(pass("spmv_dasp_kinds", 1.into(), threads_per_block, sorted.to_vec()));
        let kinds_known = prepare.len() - 1;
        let first_row = size(rows_of(LONG));
        prepare.extend(scan("slices", num_slices(), Some(first_row), FIRST_COLUMNS, NUM_COLUMNS).passes());
        let columns_known = prepare.len() - 1;
        prepare.extend(scan("parts", rows_of(LONG), None, FIRST_PARTS, NUM_PARTS).passes());
        let parts_known = prepare.len() - 1;

        let mut parts = vec![size(num_parts()), size(rows_of(LONG)), Arg::RowOffsets];
        parts.extend([ROW_ORDER, FIRST_PARTS, PART_ROWS, PART_ENDS].map(Arg::Buffer));
        prepare.push(pass("spmv_dasp_parts", blocks(num_parts()), threads_per_block, parts));

        let csr = [Arg::RowOffsets, Arg::ColIndices, Arg::Values, Arg::Buffer(ROW_ORDER)];
        let tiles = [TILE_COLS, TILE_VALUES].map(Arg::Buffer);
        let mut slices = [num_slices(), rows_of(LONG), rows_of(WIDE) + rows_of(NARROW)].map(size).to_vec();
        slices.extend(csr.clone());
        slices.push(Arg::Buffer(FIRST_COLUMNS));
        slices.extend(tiles.clone());
        prepare.push(pass("spmv_dasp_fill_slices", blocks(num_slices() * 32), threads_per_block, slices));

        let first_short = rows_of(LONG) + rows_of(WIDE) + rows_of(NARROW);
        let mut short = vec![size(first_short), Arg::Size(slice_entries(), IndexType::U64)];
        short.extend((0..4).map(|i| size(rows_of(FIRST_SHORT + i))));
        short.extend(csr.into_iter().chain(tiles));
        let short_rows = (1..4).fold(rows_of(FIRST_SHORT), |sum, i| sum + rows_of(FIRST_SHORT + i));
        prepare.push(pass("spmv_dasp_fill_short", blocks(short_rows), threads_per_block, short));

        let kind_names = [
            "long_rows",
            "wide_rows",
            "narrow_rows",
            "rows_of_4",
            "rows_of_3",
            "rows_of_2",
            "rows_of_1",
            "empty_rows",
        ];
        let mut counts: Vec<Count> = (0..)
            .zip(kind_names)
            .map(|(entry, name)| Count { name, buffer: KIND_ROWS, entry, after: kinds_known })
            .collect();
        counts.push(Count { name: "num_columns", buffer: NUM_COLUMNS, entry: 0, after: columns_known });
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
        args.extend([LONG, WIDE, NARROW].map(|kind| size(rows_of(kind))));
        args.extend([FIRST_COLUMNS, TILE_COLS, TILE_VALUES].map(Arg::Buffer));
        args.push(Arg::Size(slice_entries(), IndexType::U64));
        args.extend((FIRST_SHORT..KINDS).map(|kind| size(rows_of(kind))));
        let warps_per_block = threads_per_block / 32;
        let grid = num_parts().div_ceil(warps_per_block)
            + (rows_of(WIDE).div_ceil(SLICE_ROWS) * 4).div_ceil(warps_per_block)
            + rows_of(NARROW).div_ceil(SLICE_ROWS).div_ceil(warps_per_block);
        // Rows a thread computes: of 4, 3, 2, 1 entries and none.
        let short = (FIRST_SHORT..KINDS).zip([2, 2, 4, 8, 8]);
        let grid =
            short.fold(grid, |sum, (kind, rows)| sum + rows_of(kind).div_ceil(rows * threads_per_block));
        pass("spmv_dasp", grid, threads_per_block, args)
    }
}
