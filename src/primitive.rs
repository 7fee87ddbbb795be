//! Passes of the device primitives in `templates/primitives`, for algorithms that prepare with them. A kernel that an
//! algorithm declares for a primitive takes its arguments in the order given here.

use crate::config::{ConfigError, KernelConfig};
use crate::expr::Expr;
use crate::program::{Arg, Pass};
use crate::types::IndexType;

/// Blocks of the passes that read every entry: enough to fill a GPU, few enough for one block to scan what they
/// found.
const MAX_BLOCKS: u32 = 1024;

/// An exclusive scan (`primitives/grid_scan.cuh`) of what `entry_args` describe, in three passes.
#[derive(Clone, Debug)]
pub(crate) struct GridScan {
    /// The kernels are `{kernel}_sum_chunk`, `{kernel}_partials` and `{kernel}_chunk`.
    pub(crate) kernel: String,
    /// Entries.
    pub(crate) length: Expr,
    /// Threads a block.
    pub(crate) threads_per_block: u32,
    /// What entries are computed from.
    pub(crate) entry_args: Vec<Arg>,
    /// Buffer of [`GridScan::partials`] sums.
    pub(crate) partials: usize,
    /// Buffer of `length + 1` sums: the scan, and the sum of all entries.
    pub(crate) out: usize,
    /// Buffer whose first entry, of 64 bits, becomes the sum of all entries.
    pub(crate) total: usize,
}

impl GridScan {
    /// The most sums that a scan keeps between its passes.
    pub(crate) const MAX_PARTIALS: u32 = MAX_BLOCKS;

    /// Sums that one scan of so many entries keeps between its passes.
    pub(crate) fn partials(length: Expr, threads_per_block: u32) -> Expr {
        length.div_ceil(threads_per_block).min(MAX_BLOCKS)
    }

    /// The scan of `length` 32-bit integers in buffer `entries`, which has one more, where they are; its kernels are
    /// those of `primitives/grid_scan_kernels.cuh`.
    pub(crate) fn in_place(
        entries: usize,
        length: Expr,
        threads_per_block: u32,
        partials: usize,
        total: usize,
    ) -> GridScan {
        let entry_args = vec![Arg::Buffer(entries)];
        GridScan {
            kernel: "spmv_scan".into(),
            length,
            threads_per_block,
            entry_args,
            partials,
            out: entries,
            total,
        }
    }

    /// `sum_chunk(uint64 length, entry_args.., partials)`, `partials(uint32 num_partials, uint64 length, partials,
    /// out, uint64* total)`, `chunk(uint64 length, entry_args.., partials, out)`.
    pub(crate) fn passes(self) -> [Pass; 3] {
        let blocks = GridScan::partials(self.length.clone(), self.threads_per_block);
        let length = || Arg::Size(self.length.clone(), IndexType::U64);
        let [partials, out, total] = [self.partials, self.out, self.total].map(Arg::Buffer);
        let pass = |name: &str, grid: Expr, args: Vec<Arg>| Pass {
            kernel: format!("{}_{name}", self.kernel),
            grid,
            threads_per_block: self.threads_per_block,
            shared_bytes: 0,
            args,
        };
        let with_entries = |rest: Vec<Arg>| [vec![length()], self.entry_args.clone(), rest].concat();
        let num_partials = Arg::Size(blocks.clone(), IndexType::U32);
        [
            pass("sum_chunk", blocks.clone(), with_entries(vec![partials.clone()])),
            pass("partials", 1.into(), vec![num_partials, length(), partials.clone(), out.clone(), total]),
            pass("chunk", blocks, with_entries(vec![partials, out])),
        ]
    }
}

/// A stable sort of pairs of 32-bit integers, a key and what goes with it (`primitives/radix_sort.cuh`), in five passes
/// for each 8 bits of the keys; ten of the twenty are skipped where all keys are below 2^16. The kernels are those of
/// `primitives/radix_sort_kernels.cuh` and `primitives/grid_scan_kernels.cuh`; all sorts of a program share them.
#[derive(Clone, Debug)]
pub(crate) struct RadixSort {
    /// Pairs, fewer than 2^32.
    pub(crate) num_pairs: Expr,
    /// A bound that no key reaches.
    pub(crate) key_bound: Expr,
    /// Threads a block.
    pub(crate) threads_per_block: u32,
    /// Buffer of the pairs, which come back sorted.
    pub(crate) pairs: usize,
    /// Buffer of as many.
    pub(crate) other_pairs: usize,
    /// Buffer of [`RadixSort::PLACES`] + 1 32-bit integers.
    pub(crate) places: usize,
    /// Buffer of [`GridScan::MAX_PARTIALS`] 32-bit integers.
    pub(crate) partials: usize,
    /// Buffer whose first entry, of 64 bits, is overwritten.
    pub(crate) total: usize,
}

impl RadixSort {
    /// Refuses 64-bit offsets for what sorts nonzeros, which it numbers with 32 bits: `what` does so, `instead` is what
    /// else serves.
    pub(crate) fn check_offset(config: &KernelConfig, what: &str, instead: &str) -> Result<(), ConfigError> {
        if config.types().offset == IndexType::U32 {
            return Ok(());
        }
        Err(ConfigError::Combination {
            key: "offset",
            reason: format!(
                "{what} numbers nonzeros with 32 bits, so a matrix has at most 2^31 - 1; use offset = u32, or {instead}"
            ),
        })
    }

    /// The most places that a pass keeps: one for every digit and block.
    pub(crate) const PLACES: u32 = 256 * MAX_BLOCKS;

    pub(crate) fn passes(&self) -> Vec<Pass> {
        // An even number of digits, so that the pairs are back where they were.
        let high_digits = Expr::from(1).min(self.key_bound.clone().div_ceil(1 << 16).minus(1));
        let digits = [Expr::from(1), Expr::from(1), high_digits.clone(), high_digits];
        digits.into_iter().enumerate().flat_map(|(digit, needed)| self.digit(digit as u32, &needed)).collect()
    }

    fn digit(&self, digit: u32, needed: &Expr) -> Vec<Pass> {
        let blocks = self.num_pairs.clone().div_ceil(self.threads_per_block).min(MAX_BLOCKS);
        let (from, to) = if digit.is_multiple_of(2) {
            (self.pairs, self.other_pairs)
        } else {
            (self.other_pairs, self.pairs)
        };
        let arguments = |rest: &[usize]| {
            let shift = Arg::Size((8 * digit).into(), IndexType::U32);
            let num_pairs = Arg::Size(self.num_pairs.clone(), IndexType::U32);
            let mut args = vec![num_pairs, Arg::Buffer(from), shift, Arg::Buffer(self.places)];
            args.extend(rest.iter().copied().map(Arg::Buffer));
            args
        };
        let pass = |name: &str, args: Vec<Arg>| Pass {
            kernel: format!("spmv_sort_{name}"),
            grid: blocks.clone(),
            threads_per_block: self.threads_per_block,
            shared_bytes: 0,
            args,
        };
        let length = blocks.clone() * 256;
        let scan = GridScan::in_place(self.places, length, self.threads_per_block, self.partials, self.total);
        let mut passes = vec![pass("count", arguments(&[]))];
        passes.extend(scan.passes());
        passes.push(pass("scatter", arguments(&[to])));
        passes.iter_mut().for_each(|pass| pass.grid = pass.grid.clone() * needed.clone());
        passes
    }
}

/// A stable partition of items by a small key (`primitives/partition.cuh`), in three passes.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    /// The kernels are `{kernel}_count`, `{kernel}_offsets` and `{kernel}_scatter`.
    pub(crate) kernel: String,
    /// Items, fewer than 2^32.
    pub(crate) num_items: Expr,
    /// Threads a block.
    pub(crate) threads_per_block: u32,
    /// What keys are computed from.
    pub(crate) key_args: Vec<Arg>,
    /// Where items go.
    pub(crate) emit_args: Vec<Arg>,
    /// Buffer of [`Partition::offsets`] 32-bit integers.
    pub(crate) offsets: usize,
    /// Buffer whose first entries, of 64 bits, become the items of each bin.
    pub(crate) bin_counts: usize,
}

impl Partition {
    /// Offsets that a partition of so many items keeps between its passes.
    pub(crate) fn offsets(num_items: Expr, bins: u32, threads_per_block: u32) -> Expr {
        Partition::blocks(num_items, threads_per_block) * bins
    }

    /// A quarter of a scan's: one block scans a row of offsets for every bin.
    fn blocks(num_items: Expr, threads_per_block: u32) -> Expr {
        num_items.div_ceil(threads_per_block).min(MAX_BLOCKS / 4)
    }

    /// `count(uint32 num_items, key_args.., uint32* offsets)`, `offsets(uint32 num_blocks, uint32* offsets,
    /// uint64* bin_counts)`, `scatter(uint32 num_items, key_args.., const uint32* offsets, emit_args..)`.
    pub(crate) fn passes(self) -> [Pass; 3] {
        let blocks = Partition::blocks(self.num_items.clone(), self.threads_per_block);
        let num_items = Arg::Size(self.num_items, IndexType::U32);
        let [offsets, bin_counts] = [self.offsets, self.bin_counts].map(Arg::Buffer);
        let pass = |name: &str, grid: Expr, args: Vec<Arg>| Pass {
            kernel: format!("{}_{name}", self.kernel),
            grid,
            threads_per_block: self.threads_per_block,
            shared_bytes: 0,
            args,
        };
        let with_keys = |rest: Vec<Arg>| [vec![num_items.clone()], self.key_args.clone(), rest].concat();
        let num_blocks = Arg::Size(blocks.clone(), IndexType::U32);
        [
            pass("count", blocks.clone(), with_keys(vec![offsets.clone()])),
            pass("offsets", 1.into(), vec![num_blocks, offsets.clone(), bin_counts]),
            pass("scatter", blocks, with_keys([vec![offsets], self.emit_args].concat())),
        ]
    }
}
