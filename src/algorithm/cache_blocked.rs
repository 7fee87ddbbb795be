//! Cells of rows and columns whose x and y lie in shared memory.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::planning::{Planning, count, size};
use crate::primitive::{RadixSort, ValueEncoding};
use crate::program::{Arg, Buffer, Pass, Slots};
use crate::types::{IndexType, ValueType};

parameters! {
    /// Cells of a row tile and a column tile whose x and y lie in shared memory, for columns that reach far.
    pub struct CacheBlocked {
        /// Shared memory of a block, in KiB; more than 48 needs a device whose blocks may have as much.
        shared_kib = 96, one of [16, 48, 96, 224];
        /// Blocks that share the matrix, one a multiprocessor (264 of an H200: two, which 2-byte values like); results depend on it.
        blocks = 132, one of [20, 64, 108, 132, 148, 264];
        /// Values: 0 as they are, 1 as f32 where every f64 is one, 3 whole ones up to 127 as bytes.
        encoding = 0, one of [0, 1, 3];
    }
}

/// Numbers that `prepare` passes find out, in their order.
const SLOTS: u8 = 0;
const LONG_ROWS: u8 = 1;
const CELLS: u8 = 2;
const UNITS: u8 = 3;

/// Warps of a block, and the buckets of a cell.
const WARPS: u32 = 16;
/// Column tiles in shared memory.
const STAGES: u32 = 2;
/// Columns that places of 16 bits distinguish.
const WIDE_COLS: u32 = 65_536;
/// Tiles up to which the warps of a block share rows, of which each has a sum for every block that works on its tile.
const FEW_TILES: u32 = 8;
/// Entries of a lane that lie side by side.
const ROUND: u32 = 4;

impl CacheBlocked {
    /// Bytes of a column tile in shared memory.
    fn stage_bytes(&self) -> u32 {
        1024 * match self.shared_kib {
            224.. => 32,
            96.. => 16,
            48.. => 8,
            _ => 2,
        }
    }

    /// Rows of a tile, whose sums are in shared memory.
    pub fn tile_rows(&self, accumulator: ValueType) -> u32 {
        let accumulator = accumulator.size() as u32;
        let in_room = (self.shared_kib * 1024 - STAGES * self.stage_bytes()) / (WARPS * accumulator);
        // Places in shared memory have 16 bits.
        let of_warp = in_room.min(0xffff / WARPS);
        WARPS * ((of_warp - 1) / 32 * 32)
    }
}

impl Plans for CacheBlocked {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        ValueEncoding::check(self.encoding, config)?;
        RadixSort::check_offset(config, "cache_blocked", "merge_path")
    }

    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        Some(Slots { number: count(UNITS) * ROUND, bytes: 4 + config.types().value.size() as u32 })
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let accumulator = types.accumulator;
        let tile_rows = self.tile_rows(config.types().accumulator);
        let tiles_per_wide = WIDE_COLS / (self.stage_bytes() / types.x.size() as u32);
        let [num_rows, num_cols, nnz] = [Variable::NumRows, Variable::NumCols, Variable::Nnz].map(Expr::from);
        let num_wide = num_cols.clone().div_ceil(WIDE_COLS);
        let num_tiles = count(SLOTS).div_ceil(tile_rows);
        let num_stretches = num_tiles.clone() * num_wide.clone();
        let num_places = num_stretches.clone() * (tiles_per_wide + 1);
        let num_buckets = count(CELLS) * WARPS;
        let num_blocks = Expr::from(self.blocks);
        let stride = count(SLOTS).min(tile_rows);
        let mut plan = Planning::new("spmv_cache_blocked", config.threads_per_block());
        let buffer = Arg::Buffer;

        // Slots.
        let slot_begins = plan.kept("slot_begins", num_rows.clone() + 1, 4);
        let mark_slots = vec![size(nnz.clone()), Arg::RowOffsets];
        plan.ranks("slots", num_rows.clone(), mark_slots, slot_begins, Some("row_slots"));
        let long_ranks = plan.scratch("long_ranks", num_rows.clone() + 1, 4);
        plan.ranks("long", num_rows.clone(), vec![buffer(slot_begins)], long_ranks, Some("long_rows"));
        let long_rows = plan.kept("long_rows", count(LONG_ROWS), 4);
        plan.prepare("list_long", num_rows.clone(), [long_ranks, long_rows].map(buffer).into());
        let rows = plan.scratch("rows", nnz.clone(), 4);
        let cell_entries = num_stretches.clone() * tiles_per_wide * 4;
        let counts = plan.buffer(Buffer::new("cell_entries", cell_entries).zeroed().scratch());
        let shape =
            [vec![size(num_rows.clone()), size(num_wide.clone())], vec![Arg::RowOffsets, Arg::ColIndices]];
        plan.prepare(
            "count",
            nnz.clone(),
            [shape.concat(), [slot_begins, rows, counts].map(buffer).into()].concat(),
        );

        // Cells, and their entries.
        let cell_ranks = plan.scratch("cell_ranks", num_places.clone() + 1, 4);
        // Places in the plane of rows and columns, which may be more than entries.
        let wide_size = |size: &Expr| Arg::Size(size.clone(), IndexType::U64);
        let mark_cells = vec![wide_size(&num_stretches), buffer(counts), buffer(cell_ranks)];
        plan.prepare.push(plan.pass("mark_cells", num_stretches, mark_cells));
        plan.scan(num_places.clone(), cell_ranks, Some("cells"));
        let cells = plan.kept("cells", count(CELLS), 8);
        let list_cells =
            vec![wide_size(&num_places), size(num_wide.clone()), buffer(cell_ranks), buffer(cells)];
        plan.prepare.push(plan.pass("list_cells", num_places, list_cells));
        let [pairs, other_pairs] = ["pairs", "other_pairs"].map(|name| plan.scratch(name, nnz.clone(), 8));
        let entries = [
            vec![size(num_wide), Arg::RowOffsets, Arg::ColIndices],
            [slot_begins, rows, cell_ranks, pairs].map(buffer).into(),
        ];
        plan.prepare("entries", nnz.clone(), entries.concat());
        plan.sort([pairs, other_pairs], nnz.clone(), num_buckets.clone());

        // Buckets, and what they store.
        let begins = plan.scratch("bucket_begins", num_buckets.clone() + 1, 4);
        let bucket_begins = vec![size(num_buckets.clone()), size(nnz.clone()), buffer(pairs), buffer(begins)];
        plan.prepare.push(plan.pass("bucket_begins", num_buckets.clone() + 1, bucket_begins));
        let slots = plan.scratch("slots", nnz.clone(), 2);
        let find_slots =
            [vec![Arg::RowOffsets], [slot_begins, rows, cells, pairs, begins, slots].map(buffer).into()];
        plan.prepare("slots", nnz.clone(), find_slots.concat());
        let lane_begins = plan.scratch("lane_begins", num_buckets.clone() * 32, 4);
        let buckets = plan.buffer(Buffer::new("buckets", num_buckets.clone() * 8).zeroed());
        let units = plan.scratch("units_before", num_buckets.clone() + 1, 4);
        let mark_units = [begins, slots, lane_begins, buckets].map(buffer).into();
        plan.ranks("units", num_buckets, mark_units, units, Some("units"));
        // The first unit is fill.
        let stored = (count(UNITS) + 1) * ROUND;
        let words = plan.buffer(Buffer::new("words", stored.clone() * 4).zeroed());
        let encoding = plan.encode(self.encoding, config);
        let [slot_values, encoded_values] = plan.values(&stored, &encoding, config);
        let fill = [
            vec![Arg::ColIndices, Arg::Values],
            [cells, pairs, slots, lane_begins, units, buckets, words].map(buffer).into(),
            vec![size(encoding.if_encoded()), buffer(slot_values), buffer(encoded_values)],
        ];
        plan.prepare("fill", nnz.clone(), fill.concat());

        // Shares of blocks.
        let costs = plan.scratch("costs_before", count(CELLS) + 1, 4);
        plan.ranks("costs", count(CELLS), [cells, buckets, begins].map(buffer).into(), costs, None);
        let shares = plan.kept("shares", num_blocks.clone() + 1, 8);
        let cut = vec![size(num_blocks.clone()), size(count(CELLS)), buffer(costs), buffer(shares)];
        plan.prepare.push(plan.pass("cut_shares", num_blocks.clone() + 1, cut));
        let tile_blocks = plan.kept("tile_blocks", num_tiles.clone(), 8);
        let find_blocks = [
            vec![size(count(CELLS)), size(num_blocks.clone())],
            [cells, shares, tile_blocks].map(buffer).into(),
        ];
        plan.prepare("tile_blocks", num_tiles.clone(), find_blocks.concat());

        // Products.
        let sums = (num_blocks.clone() + num_tiles.clone()) * stride.clone();
        let partials = plan.kept("tile_sums", sums, accumulator.size() as u32);
        let product = |kernel: &str, values: usize, condition: Expr| {
            let args = [
                vec![
                    size(num_cols.clone()),
                    size(count(SLOTS)),
                    size(stride.clone()),
                    Arg::Alpha(accumulator),
                ],
                [cells, buckets, shares, words, values].map(buffer).into(),
                vec![Arg::X, buffer(partials)],
            ];
            Pass {
                kernel: kernel.into(),
                grid: num_blocks.clone() * count(CELLS).min(1) * condition,
                threads_per_block: 32 * WARPS,
                shared_bytes: self.shared_kib * 1024,
                args: args.concat(),
            }
        };
        let scaled = || vec![size(stride.clone()), Arg::Y, Arg::Alpha(accumulator), Arg::Beta(accumulator)];
        let sums = |rows: &[usize]| -> Vec<Arg> {
            rows.iter().chain(&[slot_begins, tile_blocks, partials]).copied().map(buffer).collect()
        };
        // A thread a row; where few tiles are shared by many blocks, a thread of each warp of a block.
        let threads_per_block = plan.threads_per_block;
        let many = num_tiles.div_ceil(FEW_TILES).minus(1).min(1);
        let few = Expr::from(1).minus(many.clone());
        let rows_per_block = many.clone() * (threads_per_block - 32) + 32;
        let row_blocks =
            many * num_rows.clone().div_ceil(threads_per_block) + few * num_rows.clone().div_ceil(32);
        let mut multiply = vec![product("spmv_cache_blocked", slot_values, encoding.if_as_given())];
        if encoding.is_any() {
            multiply.push(product("spmv_cache_blocked_encoded", encoded_values, encoding.if_encoded()));
        }
        multiply.extend([
            Pass {
                grid: row_blocks,
                ..plan.pass(
                    "rows",
                    0.into(),
                    [vec![size(num_rows), size(rows_per_block)], scaled(), sums(&[])].concat(),
                )
            },
            Pass {
                grid: count(LONG_ROWS),
                ..plan.pass("long_rows", 0.into(), [scaled(), sums(&[long_rows])].concat())
            },
        ]);
        // In whatever order they are added, alpha, beta and two conversions.
        plan.finish(multiply, Expr::from(Variable::RowNnz) + 5, config)
    }
}
