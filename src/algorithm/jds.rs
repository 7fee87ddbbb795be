//! Jagged diagonals of rows sorted by length.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::{GridScan, RadixSort};
use crate::program::{Arg, Buffer, Count, Guarantees, Pass};
use crate::types::IndexType;

parameters! {
    /// Jagged diagonals: rows sorted by falling length, their first entries together, then their second (JDS).
    pub struct Jds {}
}

/// Entries of `buffers`.
const PERMUTATION: usize = 0;
const DIAGONAL_OFFSETS: usize = 1;
const SLOT_COLS: usize = 2;
const SLOT_VALUES: usize = 3;
const PAIRS: usize = 4;
const OTHER_PAIRS: usize = 5;
const PLACES: usize = 6;
const SORT_PARTIALS: usize = 7;
const PARTIALS: usize = 8;
const LONGEST: usize = 9;
const TOTAL: usize = 10;

/// The longest row, the only count.
const WIDTH: Variable = Variable::Count(0);

/// Rows that a thread looks at for the longest.
const ROWS_PER_SEARCHER: u32 = 16;

fn prepare(config: &KernelConfig) -> Vec<Pass> {
    let threads_per_block = config.threads_per_block();
    let num_rows = || Expr::from(Variable::NumRows);
    let size = |size: Expr| Arg::Size(size, IndexType::U32);
    let pass = |kernel: &str, threads: Expr, args: Vec<Arg>| {
            Pass::of_threads(kernel, threads, threads_per_block, args)
        };
    let mut passes = vec![
        pass(
            "spmv_jds_width",
            num_rows().div_ceil(ROWS_PER_SEARCHER),
            vec![size(num_rows()), Arg::RowOffsets, Arg::Buffer(LONGEST)],
        ),
        pass(
            "spmv_jds_rows",
            num_rows(),
            vec![size(num_rows()), Arg::RowOffsets, size(WIDTH.into()), Arg::Buffer(PAIRS)],
        ),
    ];
    let sort = RadixSort {
        num_pairs: num_rows(),
        key_bound: Expr::from(WIDTH) + 1,
        threads_per_block,
        pairs: PAIRS,
        other_pairs: OTHER_PAIRS,
        places: PLACES,
        partials: SORT_PARTIALS,
        total: TOTAL,
    };
    passes.extend(sort.passes());
    let diagonals = GridScan {
        kernel: "spmv_jds_diagonals".into(),
        length: WIDTH.into(),
        threads_per_block,
        entry_args: vec![Arg::Buffer(PAIRS), size(num_rows()), size(WIDTH.into())],
        partials: PARTIALS,
        out: DIAGONAL_OFFSETS,
        total: TOTAL,
    };
    passes.extend(diagonals.passes());
    let mut convert = vec![size(num_rows()), Arg::RowOffsets, Arg::ColIndices, Arg::Values];
    convert.extend([PAIRS, DIAGONAL_OFFSETS, PERMUTATION, SLOT_COLS, SLOT_VALUES].map(Arg::Buffer));
    passes.push(pass("spmv_jds_convert", num_rows(), convert));
    passes
}

impl Plans for Jds {
    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let num_rows = || Expr::from(Variable::NumRows);
        let entries = |size: usize| Expr::from(Variable::Nnz) * size as u32;
        let offset_bytes = types.offset.size() as u32;
        let mut args = vec![Arg::Size(num_rows(), IndexType::U32), Arg::Size(WIDTH.into(), IndexType::U32)];
        args.extend([PERMUTATION, DIAGONAL_OFFSETS, SLOT_COLS, SLOT_VALUES].map(Arg::Buffer));
        args.extend([Arg::X, Arg::Y, Arg::Alpha(types.accumulator), Arg::Beta(types.accumulator)]);
        Plan {
            prepare: prepare(config),
            multiply: vec![Pass::of_threads("spmv_jds", num_rows(), threads_per_block, args)],
            buffers: vec![
                Buffer::new("permutation", num_rows() * 4),
                Buffer::new("diagonal_offsets", (Expr::from(WIDTH) + 1) * offset_bytes),
                Buffer::new("slot_cols", entries(types.index.size())),
                Buffer::new("slot_values", entries(types.value.size())),
                Buffer::new("pairs", num_rows() * 8).scratch(),
                Buffer::new("other_pairs", num_rows() * 8).scratch(),
                Buffer::new("places", (RadixSort::PLACES + 1) * 4).scratch(),
                Buffer::new("sort_partials", GridScan::MAX_PARTIALS * 4).scratch(),
                Buffer::new("partials", GridScan::MAX_PARTIALS * offset_bytes).scratch(),
                Buffer::new("longest_row", 8).zeroed().scratch(),
                Buffer::new("total", 8).scratch(),
            ],
            counts: vec![Count { name: "width", buffer: LONGEST, entry: 0, after: 0 }],
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
