//! Passes of the device primitives in `templates/primitives`, for algorithms that prepare with them. A kernel that an
//! algorithm declares for a primitive takes its arguments in the order given here.

use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::program::{Arg, Buffer, Pass};
use crate::types::{IndexType, ValueKind, ValueType};

/// Blocks of the passes that read every entry: enough to fill a GPU, few enough for one block to scan what they
/// found.
const MAX_BLOCKS: u32 = 1024;

/// Values of a layout that are stored as less than they are where nothing is lost (`primitives/value_encoding.cuh`): what finds
/// out whether that is so, and what follows.
#[derive(Clone, Debug)]
pub(crate) struct ValueEncoding {
    /// 0 as they are, 1 as f32, 2 by places in a table, 3 as bytes.
    encoding: u32,
    threads_per_block: u32,
    /// Of an algorithm that has tables.
    table: Option<ValueTable>,
    /// Buffer of what is found.
    total: usize,
    /// How many values no f32, or no whole number of a byte, is equal to, or how many there are that differ.
    found: Expr,
}

/// A table of the values that differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueTable {
    /// Different values up to which they are stored by their places.
    pub(crate) most_distinct: u32,
    /// Buffer of the table.
    pub(crate) table: usize,
    /// Buffer of the hash table that it is made of.
    pub(crate) hashed: usize,
}

impl ValueEncoding {
    /// Entries of the table, of 8 bytes; `kMostDistinct` of the template.
    pub(crate) const TABLE: u32 = 256;

    /// The encoding of that name for such values; the buffer is that of what is found, which then is known as `found`. Without a
    /// table, values are not stored by their places.
    pub(crate) fn new(
        encoding: u32,
        config: &KernelConfig,
        table: Option<ValueTable>,
        total: usize,
        found: Expr,
    ) -> ValueEncoding {
        let threads_per_block = config.threads_per_block();
        let encoding = Self::of(encoding, config.types().value);
        ValueEncoding { encoding, threads_per_block, table, total, found }
    }

    /// Refuses to encode values that are no floating-point numbers.
    pub(crate) fn check(encoding: u32, config: &KernelConfig) -> Result<(), ConfigError> {
        let value = config.types().value;
        if encoding == 0 || value.kind() == ValueKind::Float {
            return Ok(());
        }
        let name = config.algorithm().name();
        Err(ConfigError::Combination {
            key: "encoding",
            reason: format!(
                "{name} encodes floating-point values, and value = {value} is none; use encoding = 0"
            ),
        })
    }

    /// What such values are encoded as: those of 4 bytes or fewer are not narrowed.
    pub(crate) fn of(encoding: u32, value: ValueType) -> u32 {
        if encoding == 1 && value != ValueType::F64 { 0 } else { encoding }
    }

    /// Whether there is anything to find out.
    pub(crate) fn is_any(&self) -> bool {
        self.encoding > 0
    }

    /// The pass that finds out, and what its count is called.
    pub(crate) fn look(&self) -> Option<(Pass, &'static str)> {
        let nnz = Expr::from(Variable::Nnz);
        let pass = |kernel: &str, threads: Expr, buffers: &[usize]| {
            let values = vec![Arg::Size(nnz.clone(), IndexType::U64), Arg::Values];
            let args = [values, buffers.iter().copied().map(Arg::Buffer).collect()].concat();
            Pass::of_threads(kernel, threads, self.threads_per_block, args)
        };
        match (self.encoding, self.table) {
            (0, _) => None,
            // A block has a table of its own, and should have values enough to pay for it.
            (2, Some(ValueTable { hashed, .. })) => {
                let kernel = "spmv_encoding_distinct";
                Some((pass(kernel, nnz.clone().div_ceil(64), &[hashed, self.total]), "distinct_values"))
            }
            _ => Some((pass("spmv_encoding_others", nnz.clone(), &[self.total]), "other_values")),
        }
    }

    /// The pass that makes the table.
    pub(crate) fn make_table(&self) -> Option<Pass> {
        let a_block = self.if_encoded() * self.threads_per_block;
        let ValueTable { table, hashed, .. } = self.table.filter(|_| self.encoding == 2)?;
        let args = [hashed, table].map(Arg::Buffer).into();
        Some(Pass::of_threads("spmv_encoding_table", a_block, self.threads_per_block, args))
    }

    /// Values that differ, where they are stored by places in a table.
    pub(crate) fn distinct(&self) -> Expr {
        if self.encoding == 2 { self.found.clone() } else { 0.into() }
    }

    /// One where values are stored as they are, else zero.
    pub(crate) fn if_as_given(&self) -> Expr {
        match (self.encoding, self.table) {
            (0, _) => 1.into(),
            (2, Some(table)) => Expr::from(1).min(self.found.clone().minus(table.most_distinct)),
            _ => Expr::from(1).min(self.found.clone()),
        }
    }

    pub(crate) fn if_encoded(&self) -> Expr {
        Expr::from(1).minus(self.if_as_given())
    }

    /// Bytes of an encoded value.
    pub(crate) fn bytes(&self) -> u32 {
        Self::stored_bytes(self.encoding)
    }

    pub(crate) fn stored_bytes(encoding: u32) -> u32 {
        if encoding == 1 { 4 } else { 1 }
    }

    /// What is found.
    pub(crate) fn found() -> Buffer {
        Buffer::new("other_values", 8).zeroed().scratch()
    }

    /// The table and the hash table.
    pub(crate) fn tables(&self) -> [Buffer; 2] {
        let if_table = |bytes: u32| if self.encoding == 2 { bytes } else { 0 };
        [
            Buffer::new("table", if_table(Self::TABLE * 8)),
            Buffer::new("hashed_values", if_table(Self::TABLE * 4 * 8)).zeroed().scratch(),
        ]
    }
}

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
    /// Buffer of [`GridScan::partials_bytes`].
    pub(crate) partials: usize,
    /// Buffer of `length + 1` sums: the scan, and the sum of all entries.
    pub(crate) out: usize,
    /// Buffer whose first entry, of 64 bits, becomes the sum of all entries.
    pub(crate) total: usize,
}

impl GridScan {
    /// Bytes of the sums that a scan keeps between its passes, at most.
    pub(crate) const MAX_PARTIALS_BYTES: u32 = MAX_BLOCKS * 8;

    /// Bytes of the sums that one scan of so many entries keeps between its passes.
    pub(crate) fn partials_bytes(length: Expr, threads_per_block: u32) -> Expr {
        GridScan::blocks(length, threads_per_block) * 8
    }

    fn blocks(length: Expr, threads_per_block: u32) -> Expr {
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
        let blocks = GridScan::blocks(self.length.clone(), self.threads_per_block);
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
    /// A bound that no key reaches, without its lowest bits.
    pub(crate) key_bound: Expr,
    /// How many of the lowest bits of a key do not count.
    pub(crate) low_bits: u32,
    /// Threads a block.
    pub(crate) threads_per_block: u32,
    /// Buffer of the pairs, which come back sorted.
    pub(crate) pairs: usize,
    /// Buffer of as many.
    pub(crate) other_pairs: usize,
    /// Buffer of [`RadixSort::PLACES`] + 1 32-bit integers.
    pub(crate) places: usize,
    /// Buffer of [`GridScan::MAX_PARTIALS_BYTES`].
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
            let shift = Arg::Size((self.low_bits + 8 * digit).into(), IndexType::U32);
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
