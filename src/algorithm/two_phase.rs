//! Copies of x by column tiles that have theirs in shared memory, then sums of bins of rows that have their copies there.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::features::Features;
use crate::parameter::parameters;
use crate::planning::{Planning, count, size};
use crate::primitive::{RadixSort, ValueEncoding};
use crate::program::{Arg, Buffer, Count, Pass, Slots};
use crate::types::{IndexType, ValueType};

parameters! {
    /// Copies of x by column tiles whose x lies in shared memory, then sums of bins of rows whose copies do.
    pub struct TwoPhase {
        /// KiB of x of a column tile; more than 48 needs a device whose blocks may have as much.
        tile_kib = 48, one of [16, 32, 48, 96, 192];
        /// KiB of x of a bin's entries; 48 and more needs a device whose blocks may have as much.
        bin_kib = 32, one of [32, 48, 64, 96, 128];
        /// Copies of x between the phases: 0 one for each entry, 1 one for all entries of a bin in the same column.
        distinct = 0, one of [0, 1];
        /// Values: 0 as they are, 1 as f32 where every f64 is one, 3 whole ones up to 127 as bytes.
        encoding = 0, one of [0, 1, 3];
    }
}

/// Numbers that `prepare` passes find out, in their order.
const EMPTY_ITEMS: u8 = 0;
const BINS: u8 = 1;
const RUNS: u8 = 2;
/// Where entries share copies.
const COPIES: u8 = 3;

/// Columns that places of 16 bits distinguish.
const MOST_COLS: u32 = 65_536;
/// Entries of a packet.
const PACKET: u32 = 4;
/// Items that a warp sums at once.
const STEP: u32 = 256;
/// Shares of the entries in the first phase, over the blocks that are resident, at most.
const MOST_SHARES: u32 = 8;

impl TwoPhase {
    /// Part of the copies above which sharing them saves less than it costs to find out who may, half of the time of a plan more.
    const MOST_DISTINCT: f64 = 0.95;

    /// Copies of x that an entry needs in a matrix with these features where entries share them, x having this type.
    pub fn copies_per_entry(&self, features: &Features, x: ValueType) -> f64 {
        if self.distinct == 0 {
            return 1.0;
        }
        let by_chance = features.degrees.distinct_share(self.bin_copies(x), features.nnz);
        // The columns of all sectors that fewer entries read than a bin has.
        let together = f64::from(Features::COLS_PER_SECTOR) * features.sectors_per_entry(0);
        if together > 0.0 { by_chance.min(together) } else { by_chance }
    }

    /// Whether entries share copies where a matrix has these features.
    pub(super) fn suited_to(self, features: &Features, x: ValueType) -> TwoPhase {
        let shared = TwoPhase { distinct: 1, ..self };
        TwoPhase { distinct: (shared.copies_per_entry(features, x) <= Self::MOST_DISTINCT).into(), ..self }
    }

    /// Entries of x that a bin has room for.
    fn bin_copies(&self, x: ValueType) -> u64 {
        u64::from(self.bin_kib) * 1024 / x.size() as u64
    }

    /// Columns of a tile, of which a block has as many entries of x in shared memory.
    fn tile_cols(&self, config: &KernelConfig) -> u32 {
        (self.tile_kib * 1024 / config.types().x.size() as u32).min(MOST_COLS)
    }

    /// Packets of copies.
    fn packets(&self) -> Expr {
        count(if self.distinct != 0 { COPIES + 1 } else { RUNS + 1 })
    }

    /// Bytes of an entry of x between the two phases.
    fn gathered_size(&self, config: &KernelConfig) -> u32 {
        let types = config.types();
        (if config.operators().maps_x() { types.accumulator } else { types.x }).size() as u32
    }
}

impl Plans for TwoPhase {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        ValueEncoding::check(self.encoding, config)?;
        RadixSort::check_offset(config, "two_phase", "merge_path")
    }

    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        // A column and a value, a place in the bin, a quarter of a packet's place.
        Some(Slots { number: self.packets() * PACKET, bytes: 5 + config.types().value.size() as u32 })
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let accumulator = types.accumulator;
        let tile_cols = self.tile_cols(config);
        let [num_rows, num_cols, nnz] = [Variable::NumRows, Variable::NumCols, Variable::Nnz].map(Expr::from);
        let num_tiles = num_cols.clone().div_ceil(tile_cols);
        let mut plan = Planning::new("spmv_two_phase", config.threads_per_block());
        let buffer = Arg::Buffer;
        let tiles = || size(num_tiles.clone());

        // Items and bins.
        let empty_before = plan.scratch("empty_before", num_rows.clone() + 1, 4);
        let has_items = plan.kept("has_items", num_rows.clone().div_ceil(32), 4);
        let mark_empty = vec![Arg::RowOffsets, buffer(has_items)];
        plan.ranks("empty", num_rows.clone(), mark_empty, empty_before, Some("empty_items"));
        let num_items = nnz.clone() + count(EMPTY_ITEMS);
        let num_steps = num_items.clone().div_ceil(STEP);
        let num_bins = plan.scratch("num_bins", 1.into(), 8);
        let count_bins = vec![Arg::Size(num_items.clone(), IndexType::U64), tiles(), buffer(num_bins)];
        plan.prepare.push(plan.pass("count_bins", 1.into(), count_bins));
        plan.counts.push(Count { name: "bins", buffer: num_bins, entry: 0, after: plan.prepare.len() - 1 });
        let rows = || vec![size(num_rows.clone()), Arg::RowOffsets];
        let step_rows = plan.kept("step_rows", num_steps.clone() + 1, 4);
        let find_rows = [vec![size(num_steps.clone())], rows(), [empty_before, step_rows].map(buffer).into()];
        plan.prepare.push(plan.pass("step_rows", num_steps.clone() + 1, find_rows.concat()));

        // Entries in the order of tiles, and their runs.
        let bin_entries = plan.scratch("bin_entries", count(BINS) + 1, 4);
        let find_entries = [empty_before, step_rows, bin_entries].map(buffer).into();
        let find_entries = [vec![size(count(BINS)), tiles(), size(nnz.clone())], find_entries].concat();
        plan.prepare.push(plan.pass("bin_entries", count(BINS) + 1, find_entries));
        let bins = || vec![tiles(), size(count(EMPTY_ITEMS)), buffer(bin_entries)];
        let [pairs, other_pairs] = ["pairs", "other_pairs"].map(|name| plan.scratch(name, nnz.clone(), 8));
        let order = || [bins(), vec![buffer(pairs)]].concat();
        plan.prepare("entries", nnz.clone(), vec![Arg::ColIndices, buffer(pairs)]);
        let col_bits = tile_cols.next_power_of_two().ilog2();
        if self.distinct != 0 {
            plan.sort([pairs, other_pairs], nnz.clone(), tile_cols.into());
            plan.prepare("by_bin", nnz.clone(), order());
            plan.sort([pairs, other_pairs], nnz.clone(), count(BINS));
            plan.prepare("by_col", nnz.clone(), vec![Arg::ColIndices, buffer(pairs)]);
        }
        plan.sort_above(col_bits, [pairs, other_pairs], nnz.clone(), num_tiles.clone());
        let ranks = plan.scratch("run_ranks", nnz.clone() + 1, 4);
        plan.ranks("runs", nnz.clone(), order(), ranks, Some("runs"));
        let copy_ranks = plan.scratch("copy_ranks", (nnz.clone() + 1) * self.distinct, 4);
        let num_copies = if self.distinct != 0 {
            plan.ranks("copies", nnz.clone(), order(), copy_ranks, Some("copies"));
            count(COPIES)
        } else {
            nnz.clone()
        };
        let firsts = plan.scratch("run_firsts", count(RUNS), 4);
        let [bin_pairs, other_bin_pairs] =
            ["bin_pairs", "other_bin_pairs"].map(|name| plan.scratch(name, count(RUNS), 8));
        let list_runs = [order(), [ranks, copy_ranks, firsts, bin_pairs].map(buffer).into()];
        plan.prepare("list_runs", nnz.clone(), list_runs.concat());

        // Packets in the order of tiles and in that of bins.
        let packet_begins = plan.scratch("packet_begins", count(RUNS) + 1, 4);
        let mark_packets = vec![size(num_copies), buffer(firsts)];
        plan.ranks("packets", count(RUNS), mark_packets, packet_begins, Some("packets"));
        let tile_packets = plan.kept("tile_packets", num_tiles.clone() + 1, 4);
        let find_tiles = [
            vec![tiles(), size(nnz.clone())],
            [pairs, ranks, packet_begins, tile_packets].map(buffer).into(),
        ];
        plan.prepare.push(plan.pass("tile_packets", num_tiles.clone() + 1, find_tiles.concat()));
        plan.sort([bin_pairs, other_bin_pairs], count(RUNS), count(BINS));
        let places = plan.scratch("packets_before", count(RUNS) + 1, 4);
        plan.ranks("places", count(RUNS), [packet_begins, bin_pairs].map(buffer).into(), places, None);
        let run_places = plan.scratch("run_places", count(RUNS), 4);
        plan.prepare("place_runs", count(RUNS), [bin_pairs, places, run_places].map(buffer).into());
        let bin_packets = plan.kept("bin_packets", count(BINS) + 1, 4);
        let find_bins =
            [vec![size(count(BINS)), size(count(RUNS))], [bin_pairs, places, bin_packets].map(buffer).into()];
        plan.prepare.push(plan.pass("bin_packets", count(BINS) + 1, find_bins.concat()));

        // What products read.
        let stored = self.packets() * PACKET;
        let tile_col_places = plan.buffer(Buffer::new("tile_cols", stored.clone() * 2).zeroed());
        let packet_places = plan.kept("packet_places", self.packets(), 4);
        let item_slots = plan.buffer(Buffer::new("item_slots", num_steps.clone() * (2 * STEP)).zeroed());
        let encoding = plan.encode(self.encoding, config);
        let [item_values, encoded_values] = plan.values(&(num_steps.clone() * STEP), &encoding, config);
        let entry_slots = plan.scratch("entry_slots", nnz.clone(), 2);
        let fill_copies = [
            order(),
            [ranks, copy_ranks, firsts, packet_begins, run_places, bin_packets].map(buffer).into(),
            [tile_col_places, packet_places, entry_slots].map(buffer).into(),
        ];
        plan.prepare("fill_copies", nnz, fill_copies.concat());
        let fill_items = [
            vec![Arg::RowOffsets, Arg::Values],
            [empty_before, step_rows, entry_slots, item_slots].map(buffer).into(),
            vec![size(encoding.if_encoded()), buffer(item_values), buffer(encoded_values)],
        ];
        plan.prepare("fill_items", num_items, fill_items.concat());

        // The product.
        let sum_bytes = accumulator.size() as u32;
        let gathered = plan.kept("gathered", stored, self.gathered_size(config));
        let [bin_firsts, bin_tails] =
            ["bin_firsts", "bin_tails"].map(|name| plan.kept(name, count(BINS), sum_bytes));
        let bin_ends = plan.kept("bin_ends", count(BINS), 4);
        let result = || vec![Arg::Y, Arg::Alpha(accumulator), Arg::Beta(accumulator)];
        let left = || [bin_firsts, bin_tails, bin_ends].map(buffer).to_vec();
        let gather_args = [
            vec![size(num_cols), tiles(), size(self.packets()), Arg::Alpha(accumulator)],
            [tile_packets, tile_col_places].map(buffer).into(),
            vec![Arg::X, buffer(gathered)],
        ];
        let sums_args = |values: usize| {
            let read = [item_slots, values, step_rows, has_items, bin_packets, packet_places, gathered];
            let sizes = vec![size(num_steps.clone()), tiles()];
            [sizes, result(), read.map(buffer).into(), left()].concat()
        };
        let first_rows_args = [vec![size(count(BINS)), tiles()], result(), vec![buffer(step_rows)], left()];
        let threads_per_block = plan.threads_per_block;
        // As the template has them.
        let tile_threads = match self.tile_kib {
            192.. => 1024,
            96.. => 512,
            _ => 256,
        };
        let resident = Expr::from(Variable::Multiprocessors) * Variable::ResidentBlocks;
        let sum_threads = if self.bin_kib >= 64 { 512 } else { 256 } / if sum_bytes > 8 { 2 } else { 1 };
        let pass = |kernel: &str, threads_per_block, grid: Expr, shared_bytes: u32, args: Vec<Arg>| Pass {
            kernel: format!("spmv_two_phase_{kernel}"),
            grid,
            threads_per_block,
            shared_bytes,
            args,
        };
        // Multiprocessors are not equally fast: as many entries a share as a tile has columns, of which each copies one or two.
        let by_tiles = (self.packets() * PACKET).div_ceil(tile_cols).min(resident.clone() * MOST_SHARES);
        let share = self.packets().div_ceil(tile_threads).min(by_tiles.max(resident));
        let sums = |kernel: &str, values: usize, condition: Expr| {
            pass(kernel, sum_threads, count(BINS) * condition, self.bin_kib * 1024, sums_args(values))
        };
        let mut multiply = vec![
            pass("gather", tile_threads, share, tile_cols * types.x.size() as u32, gather_args.concat()),
            sums("sums", item_values, encoding.if_as_given()),
        ];
        if encoding.is_any() {
            multiply.push(sums("sums_encoded", encoded_values, encoding.if_encoded()));
        }
        multiply.push(pass(
            "first_rows",
            threads_per_block,
            count(BINS).div_ceil(threads_per_block / 32),
            0,
            first_rows_args.concat(),
        ));
        // In whatever order they are added, alpha, beta and two conversions.
        plan.finish(multiply, Expr::from(Variable::RowNnz) + 5, config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_shared_where_columns_are() {
        let suited = |marked: u64, hot: u64| {
            let mut features = Features::of_size((1 << 20, 1 << 20), 8 << 20);
            features.marked[0] = marked;
            (0..1 << 20).for_each(|_| features.degrees.add(7));
            (0..hot).for_each(|_| features.degrees.add((1 << 20) / hot));
            TwoPhase::default().suited_to(&features, ValueType::F32).distinct
        };
        let sampled = Features::samples(8 << 20).num_entries();
        // Columns of a few entries each; an eighth of the entries in 64 columns, and in 64 times as many as a bin has entries.
        assert_eq!([0, 64, 1 << 19].map(|hot| suited(sampled, hot)), [0, 1, 0]);
        // Entries that read few sectors share columns, however many these have.
        assert_eq!(suited(sampled / 100, 0), 1);
    }
}
