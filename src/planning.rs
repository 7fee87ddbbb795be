//! Plans that several `prepare` passes make: passes and buffers under construction, and scans between them.

use crate::algorithm::Plan;
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::primitive::{GridScan, RadixSort, ValueEncoding};
use crate::program::{Arg, Buffer, Count, Guarantees, Pass};
use crate::types::IndexType;

/// The passes and buffers of an algorithm under construction.
pub(crate) struct Planning {
    /// What the names of the algorithm's kernels begin with.
    prefix: &'static str,
    pub(crate) threads_per_block: u32,
    pub(crate) prepare: Vec<Pass>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) counts: Vec<Count>,
    /// Where scans keep sums between their passes.
    partials: usize,
    /// Where sorts keep places between their passes, and their sum.
    places: Option<[usize; 2]>,
}

impl Planning {
    pub(crate) fn new(prefix: &'static str, threads_per_block: u32) -> Planning {
        Planning {
            prefix,
            threads_per_block,
            prepare: vec![],
            buffers: vec![Buffer::new("partials", GridScan::MAX_PARTIALS_BYTES).scratch()],
            counts: vec![],
            partials: 0,
            places: None,
        }
    }

    pub(crate) fn buffer(&mut self, buffer: Buffer) -> usize {
        self.buffers.push(buffer);
        self.buffers.len() - 1
    }

    /// Workspace of `prepare` passes: `entries` of so many bytes.
    pub(crate) fn scratch(&mut self, name: &'static str, entries: Expr, bytes: u32) -> usize {
        self.buffer(Buffer::new(name, entries * bytes).scratch())
    }

    /// What products read: `entries` of so many bytes.
    pub(crate) fn kept(&mut self, name: &'static str, entries: Expr, bytes: u32) -> usize {
        self.buffer(Buffer::new(name, entries * bytes))
    }

    pub(crate) fn pass(&self, kernel: &str, threads: Expr, args: Vec<Arg>) -> Pass {
        Pass::of_threads(format!("{}_{kernel}", self.prefix), threads, self.threads_per_block, args)
    }

    /// A pass with a thread for each of `threads`, which is its first argument.
    pub(crate) fn prepare(&mut self, kernel: &str, threads: Expr, args: Vec<Arg>) {
        let args = [vec![size(threads.clone())], args].concat();
        self.prepare.push(self.pass(kernel, threads, args));
    }

    /// Marks `length` entries of buffer `out`, which has one more, and scans the marks.
    pub(crate) fn ranks(
        &mut self,
        of: &str,
        length: Expr,
        mut args: Vec<Arg>,
        out: usize,
        count: Option<&'static str>,
    ) {
        args.push(Arg::Buffer(out));
        self.prepare(&format!("mark_{of}"), length.clone(), args);
        self.scan(length, out, count);
    }

    /// Sorts `num_pairs` pairs of a buffer by keys that are below `key_bound`; the other buffer has room for as many.
    pub(crate) fn sort(&mut self, pairs: [usize; 2], num_pairs: Expr, key_bound: Expr) {
        self.sort_above(0, pairs, num_pairs, key_bound);
    }

    /// The same by keys without their lowest `low_bits`.
    pub(crate) fn sort_above(
        &mut self,
        low_bits: u32,
        [pairs, other_pairs]: [usize; 2],
        num_pairs: Expr,
        key_bound: Expr,
    ) {
        let [places, total] = self.places.unwrap_or_else(|| {
            let places = self.scratch("places", Expr::from(RadixSort::PLACES) + 1, 4);
            [places, self.scratch("places_total", 1.into(), 8)]
        });
        self.places = Some([places, total]);
        let (threads_per_block, partials) = (self.threads_per_block, self.partials);
        let sort = RadixSort {
            num_pairs,
            key_bound,
            low_bits,
            threads_per_block,
            pairs,
            other_pairs,
            places,
            partials,
            total,
        };
        self.prepare.extend(sort.passes());
    }

    /// Finds out whether values can be stored by this encoding, without a table.
    pub(crate) fn encode(&mut self, encoding: u32, config: &KernelConfig) -> ValueEncoding {
        let total = self.buffer(ValueEncoding::found());
        let found = count(self.counts.len() as u8);
        let encoding = ValueEncoding::new(encoding, config, None, total, found);
        if let Some((look, name)) = encoding.look() {
            self.prepare.push(look);
            self.counts.push(Count { name, buffer: total, entry: 0, after: self.prepare.len() - 1 });
        }
        encoding
    }

    /// Values as they are and encoded ones, `number` of each, in memory full of zeros where the other is empty.
    pub(crate) fn values(
        &mut self,
        number: &Expr,
        encoding: &ValueEncoding,
        config: &KernelConfig,
    ) -> [usize; 2] {
        let given = config.types().value.size() as u32;
        let as_given = number.clone() * given * encoding.if_as_given();
        let encoded = number.clone() * encoding.bytes() * encoding.if_encoded();
        [("slot_values", as_given), ("encoded_values", encoded)]
            .map(|(name, bytes)| self.buffer(Buffer::new(name, bytes).zeroed()))
    }

    /// The plan, with the passes of a product: each row is summed in an order that follows from the plan, though in several
    /// threads or blocks, and of fill there is nothing to multiply.
    pub(crate) fn finish(self, multiply: Vec<Pass>, summation_depth: Expr, config: &KernelConfig) -> Plan {
        let Planning { prepare, buffers, counts, .. } = self;
        let guarantees = Guarantees {
            bit_reproducible: true,
            fill_touches_x: false,
            splits_rows: true,
            summation_depth,
            operation: config.operation(),
        };
        Plan { prepare, multiply, buffers, counts, guarantees }
    }

    /// Scans `length` entries of buffer `entries`, which has one more; their sum becomes the next count where it has a
    /// name.
    pub(crate) fn scan(&mut self, length: Expr, entries: usize, count: Option<&'static str>) {
        let total = self.scratch(count.unwrap_or("total"), 1.into(), 8);
        let scan = GridScan::in_place(entries, length, self.threads_per_block, self.partials, total);
        self.prepare.extend(scan.passes());
        if let Some(name) = count {
            self.counts.push(Count { name, buffer: total, entry: 0, after: self.prepare.len() - 1 });
        }
    }
}

/// A size of 32 bits, by value.
pub(crate) fn size(value: Expr) -> Arg {
    Arg::Size(value, IndexType::U32)
}

/// The count of this index.
pub(crate) fn count(index: u8) -> Expr {
    Variable::Count(index).into()
}
