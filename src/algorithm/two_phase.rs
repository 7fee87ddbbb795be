//! Products by column tiles with x in shared memory, then sums by bins of rows with y in shared memory.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::planning::{Planning, count, size};
use crate::primitive::RadixSort;
use crate::program::{Arg, Buffer, Guarantees, Pass, Slots};

parameters! {
    /// Products by column tiles whose x lies in shared memory, then sums by bins of rows whose y does.
    pub struct TwoPhase {
        /// KiB of x of a column tile; more than 48 needs a device whose blocks may have as much.
        tile_kib = 48, one of [16, 32, 48, 96, 192];
        /// KiB of sums of a bin of rows.
        bin_kib = 4, one of [1, 2, 4];
    }
}

/// Numbers that `prepare` passes find out, in their order.
const PACKETS: u8 = 0;
const CHUNKS: u8 = 1;
const PARTS: u8 = 2;
const CUT_BINS: u8 = 3;

/// Columns that places of 16 bits distinguish.
const MOST_COLS: u32 = 65_536;
/// Entries of a packet.
const PACKET: u32 = 4;

impl TwoPhase {
    /// Columns of a tile, of which a block has as many entries of x in shared memory.
    fn tile_cols(&self, config: &KernelConfig) -> u32 {
        (self.tile_kib * 1024 / config.types().x.size() as u32).min(MOST_COLS)
    }

    /// Rows of a bin, of which a warp has as many sums in shared memory.
    fn bin_rows(&self, config: &KernelConfig) -> u32 {
        self.bin_kib * 1024 / config.types().accumulator.size() as u32
    }
}

impl Plans for TwoPhase {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        RadixSort::check_offset(config, "two_phase", "merge_path")
    }

    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        Some(Slots { number: count(PACKETS) * PACKET, bytes: 4 + config.types().value.size() as u32 })
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let accumulator = types.accumulator;
        let [tile_cols, bin_rows] = [self.tile_cols(config), self.bin_rows(config)];
        let [num_rows, num_cols, nnz] = [Variable::NumRows, Variable::NumCols, Variable::Nnz].map(Expr::from);
        let num_tiles = num_cols.clone().div_ceil(tile_cols);
        let num_bins = num_rows.clone().div_ceil(bin_rows);
        let mut plan = Planning::new("spmv_two_phase", config.threads_per_block());
        let buffer = Arg::Buffer;

        // Entries in the order of tiles.
        let rows = plan.scratch("rows", nnz.clone(), 4);
        let tile_pairs = plan.scratch("tile_pairs", nnz.clone(), 8);
        let shape = vec![size(num_rows.clone()), Arg::RowOffsets, Arg::ColIndices];
        plan.prepare("entries", nnz.clone(), [shape, [rows, tile_pairs].map(buffer).into()].concat());
        let by_tile = RadixSort {
            num_pairs: nnz.clone(),
            key_bound: num_tiles.clone(),
            threads_per_block: plan.threads_per_block,
            pairs: tile_pairs,
            other_pairs: plan.scratch("other_tile_pairs", nnz.clone(), 8),
            places: plan.scratch("places", Expr::from(RadixSort::PLACES) + 1, 4),
            partials: plan.partials,
            total: plan.scratch("places_total", 1.into(), 8),
        };
        plan.prepare.extend(by_tile.passes());
        let tile_begins = plan.scratch("tile_begins", num_tiles.clone() + 1, 4);
        let find_tiles =
            vec![size(num_tiles.clone()), size(nnz.clone()), buffer(tile_pairs), buffer(tile_begins)];
        plan.prepare.push(plan.pass("tile_begins", num_tiles.clone() + 1, find_tiles));
        let packet_begins = plan.kept("packet_begins", num_tiles.clone() + 1, 4);
        plan.ranks("packets", num_tiles.clone(), vec![buffer(tile_begins)], packet_begins, Some("packets"));
        let stored = count(PACKETS) * PACKET;
        let stored_of = |bytes: usize| stored.clone() * bytes as u32;
        let tile_col_places = plan.buffer(Buffer::new("tile_cols", stored_of(2)).zeroed());
        let bin_row_places = plan.buffer(Buffer::new("bin_rows", stored_of(2)).zeroed());
        let tile_values = plan.buffer(Buffer::new("tile_values", stored_of(types.value.size())).zeroed());
        let order = [rows, tile_pairs, tile_begins, packet_begins].map(buffer);
        let fill = [
            vec![Arg::ColIndices, Arg::Values],
            order.to_vec(),
            [tile_col_places, bin_row_places, tile_values].map(buffer).into(),
        ];
        plan.prepare("fill", nnz.clone(), fill.concat());

        // Chunks in the order of bins.
        let chunk_ranks = plan.scratch("chunk_ranks", nnz.clone() + 1, 4);
        plan.ranks("chunks", nnz.clone(), order.to_vec(), chunk_ranks, Some("chunks"));
        let bin_pairs = plan.scratch("bin_pairs", count(CHUNKS), 8);
        let firsts = plan.scratch("chunk_firsts", count(CHUNKS), 8);
        let list_chunks = [order.to_vec(), [chunk_ranks, bin_pairs, firsts].map(buffer).into()];
        plan.prepare("list_chunks", nnz.clone(), list_chunks.concat());
        let by_bin = RadixSort {
            num_pairs: count(CHUNKS),
            key_bound: num_bins.clone(),
            pairs: bin_pairs,
            other_pairs: plan.scratch("other_bin_pairs", count(CHUNKS), 8),
            ..by_tile
        };
        plan.prepare.extend(by_bin.passes());
        let chunks = plan.kept("chunks", count(CHUNKS), 8);
        let order_chunks = [vec![size(nnz.clone())], [bin_pairs, firsts, chunks].map(buffer).into()];
        plan.prepare("order_chunks", count(CHUNKS), order_chunks.concat());

        // Bins, and parts of them.
        let chunk_begins = plan.scratch("chunk_begins", num_bins.clone() + 1, 4);
        let bin_chunks =
            vec![size(num_bins.clone()), size(count(CHUNKS)), buffer(bin_pairs), buffer(chunk_begins)];
        plan.prepare.push(plan.pass("bin_chunks", num_bins.clone() + 1, bin_chunks));
        let part_begins = plan.scratch("part_begins", num_bins.clone() + 1, 4);
        let mark_parts = vec![size(count(CHUNKS)), buffer(chunk_begins)];
        plan.ranks("parts", num_bins.clone(), mark_parts, part_begins, Some("parts"));
        let cut_ranks = plan.scratch("cut_ranks", num_bins.clone() + 1, 4);
        plan.ranks("cut", num_bins.clone(), vec![buffer(part_begins)], cut_ranks, Some("cut_bins"));
        let parts = plan.kept("parts", count(PARTS), 16);
        let list_parts =
            [vec![size(num_bins.clone())], [chunk_begins, part_begins, cut_ranks, parts].map(buffer).into()];
        plan.prepare("list_parts", count(PARTS), list_parts.concat());
        let cut_bins = plan.kept("cut_bins", count(CUT_BINS), 16);
        plan.prepare("list_cut", num_bins.clone(), [part_begins, cut_ranks, cut_bins].map(buffer).into());

        // Products.
        let products = plan.kept("products", stored, accumulator.size() as u32);
        let cut_parts = (count(PARTS) + count(CUT_BINS)).minus(num_bins);
        let part_sums = plan.kept("part_sums", cut_parts * bin_rows, accumulator.size() as u32);
        let result = || vec![Arg::Y, Arg::Alpha(accumulator), Arg::Beta(accumulator)];
        let threads_per_block = plan.threads_per_block;
        let warps = threads_per_block / 32;
        let multiply_args = [
            vec![size(num_cols), size(num_tiles), size(count(PACKETS)), Arg::Alpha(accumulator)],
            [packet_begins, tile_col_places, tile_values].map(buffer).into(),
            vec![Arg::X, buffer(products)],
        ];
        let sums_args = [
            vec![size(count(PARTS)), size(num_rows.clone())],
            result(),
            [parts, chunks, bin_row_places, products, part_sums].map(buffer).into(),
        ];
        let add_args = [vec![size(num_rows)], result(), [cut_bins, part_sums].map(buffer).into()];
        let resident = Expr::from(Variable::Multiprocessors) * Variable::ResidentBlocks;
        let multiply = vec![
            Pass {
                kernel: "spmv_two_phase_products".into(),
                grid: count(PACKETS).div_ceil(threads_per_block).min(resident),
                threads_per_block,
                shared_bytes: tile_cols * types.x.size() as u32,
                args: multiply_args.concat(),
            },
            Pass {
                kernel: "spmv_two_phase_sums".into(),
                grid: count(PARTS).div_ceil(warps),
                threads_per_block,
                shared_bytes: warps * self.bin_kib * 1024,
                args: sums_args.concat(),
            },
            Pass {
                kernel: "spmv_two_phase_add_parts".into(),
                grid: count(CUT_BINS) * (bin_rows / 32),
                threads_per_block,
                shared_bytes: 0,
                args: add_args.concat(),
            },
        ];
        Plan {
            prepare: plan.prepare,
            multiply,
            buffers: plan.buffers,
            counts: plan.counts,
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: true,
                // In whatever order they are added, alpha, beta and two conversions.
                summation_depth: Expr::from(Variable::RowNnz) + 5,
                operation: config.operation(),
            },
        }
    }
}
