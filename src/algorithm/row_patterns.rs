//! Rows that are equal but for their place, stored once.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::{Arg, Buffer, Count, Guarantees, Misfits, Pass};
use crate::types::IndexType;

parameters! {
    /// Rows that are equal but for their place are stored once, and a byte a row.
    pub struct RowPatterns {
        /// Rows of a lane, a warp apart, whose loads are in flight together.
        rows_per_lane = 4, one of [1, 2, 4, 8];
    }
}

/// Entries of `buffers`.
const PATTERN_OFFSETS: usize = 0;
const ENTRIES: usize = 1;
const ROW_PATTERNS: usize = 2;
const KEYS: usize = 3;
const INVERTED_ROWS: usize = 4;
const ROW_ENTRIES: usize = 5;
const NUMBERS: usize = 6;
const FIRST_ROWS: usize = 7;
const NUM_PATTERNS_FOUND: usize = 8;
const NUM_ENTRIES_FOUND: usize = 9;
const NUM_MISFITS_FOUND: usize = 10;

/// Different rows; entries of one of each; rows that are taken for others.
const NUM_PATTERNS: Variable = Variable::Count(0);
const NUM_ENTRIES: Variable = Variable::Count(1);
const NUM_MISFITS: Variable = Variable::Count(2);

/// `kMostPatterns` and `kHashEntries` of the template.
const MOST_PATTERNS: u32 = 256;
const HASH_ENTRIES: u32 = 4 * MOST_PATTERNS;

/// One where the patterns have numbers of a byte, else zero.
fn if_few() -> Expr {
    Expr::from(1).minus(Expr::from(NUM_PATTERNS).minus(MOST_PATTERNS))
}

/// Bytes of an entry of a pattern: `PatternEntry` of the template.
fn entry_bytes(config: &KernelConfig) -> u32 {
    match config.types().value.size() {
        ..=4 => 8,
        5..=8 => 16,
        _ => 32,
    }
}

impl Plans for RowPatterns {
    fn misfits(&self, _config: &KernelConfig) -> Option<Misfits> {
        let wanted =
            "at most 256 different rows, each with the same values at the same distance from the diagonal";
        Some(Misfits { number: Expr::from(NUM_PATTERNS).minus(MOST_PATTERNS) + NUM_MISFITS, wanted })
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let rows = || Expr::from(Variable::NumRows);
        let size = |size: Expr| Arg::Size(size, IndexType::U32);
        let pass = |kernel: &str, threads: Expr, args: Vec<Arg>, buffers: &[usize]| {
            let args = args.into_iter().chain(buffers.iter().copied().map(Arg::Buffer)).collect();
            Pass::of_threads(format!("spmv_row_patterns{kernel}"), threads, threads_per_block, args)
        };
        let matrix = |number: Expr| vec![size(number), Arg::RowOffsets, Arg::ColIndices, Arg::Values];
        let of_offsets = |entries: Expr| entries * types.offset.size() as u32;
        let found = [KEYS, INVERTED_ROWS, ROW_ENTRIES, NUM_PATTERNS_FOUND];
        let numbered = [KEYS, INVERTED_ROWS, NUMBERS, FIRST_ROWS, PATTERN_OFFSETS, NUM_ENTRIES_FOUND];
        let compared = [ROW_ENTRIES, NUMBERS, FIRST_ROWS, ROW_PATTERNS, NUM_MISFITS_FOUND];
        let stored = [FIRST_ROWS, PATTERN_OFFSETS, ENTRIES];
        let prepare = vec![
            pass("_find", rows(), matrix(rows()), &found),
            pass("_number", if_few() * threads_per_block, vec![Arg::RowOffsets], &numbered),
            pass("_compare", rows() * if_few(), matrix(rows()), &compared),
            pass("_store", Expr::from(NUM_PATTERNS) * if_few() * 32, matrix(NUM_PATTERNS.into()), &stored),
        ];
        let mut multiply = pass(
            "",
            rows().div_ceil(self.rows_per_lane),
            vec![size(rows())],
            &[PATTERN_OFFSETS, ENTRIES, ROW_PATTERNS],
        );
        // A warp's rows follow one another: the last ones may need a warp more than their number says.
        multiply.grid = rows().div_ceil(threads_per_block * self.rows_per_lane);
        multiply.args.extend([Arg::X, Arg::Y, Arg::Alpha(types.accumulator), Arg::Beta(types.accumulator)]);
        Plan {
            prepare,
            multiply: vec![multiply],
            buffers: vec![
                Buffer::new("pattern_offsets", of_offsets((MOST_PATTERNS + 1).into())),
                // Between a distance and a value there may be bytes that are neither, and are read with them.
                Buffer::new("entries", Expr::from(NUM_ENTRIES) * entry_bytes(config)).zeroed(),
                Buffer::new("row_patterns", rows()),
                Buffer::new("keys", Expr::from(HASH_ENTRIES * 8)).zeroed().scratch(),
                Buffer::new("inverted_rows", Expr::from(HASH_ENTRIES * 4)).zeroed().scratch(),
                Buffer::new("row_entries", rows() * 2).scratch(),
                Buffer::new("numbers", Expr::from(HASH_ENTRIES * 4)).scratch(),
                Buffer::new("first_rows", Expr::from(MOST_PATTERNS * 4)).scratch(),
                Buffer::new("patterns_found", 8).zeroed().scratch(),
                Buffer::new("entries_found", 8).zeroed().scratch(),
                Buffer::new("misfits_found", 8).zeroed().scratch(),
            ],
            counts: vec![
                Count { name: "patterns", buffer: NUM_PATTERNS_FOUND, entry: 0, after: 0 },
                Count { name: "pattern_entries", buffer: NUM_ENTRIES_FOUND, entry: 0, after: 1 },
                Count { name: "misfits", buffer: NUM_MISFITS_FOUND, entry: 0, after: 2 },
            ],
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: false,
                // A chain, alpha, beta and two conversions.
                summation_depth: Expr::from(Variable::RowNnz) + 4,
                operation: config.operation(),
            },
        }
    }
}
