//! ELLPACK: rows of one length, column by column.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::{Arg, Buffer, Count, Guarantees, Pass, Slots};
use crate::types::IndexType;

parameters! {
    /// Rows of one length, stored column by column (ELLPACK).
    pub struct Ell {}
}

/// Entries of `buffers`.
const SLOT_COLS: usize = 0;
const SLOT_VALUES: usize = 1;
const COUNTS: usize = 2;

/// The longest row, the only count.
const WIDTH: Variable = Variable::Count(0);

/// Rows of a thread of the product; `kEllRows` of the template.
const ROWS_PER_THREAD: u32 = 2;

/// Rows that a thread looks at for the longest.
const ROWS_PER_SEARCHER: u32 = 16;

/// Rows with those that fill up the last warp.
fn stride() -> Expr {
    Expr::from(Variable::NumRows).div_ceil(32) * 32
}

impl Plans for Ell {
    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        let types = config.types();
        Some(Slots { number: stride() * WIDTH, bytes: (types.index.size() + types.value.size()) as u32 })
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let num_rows = || Expr::from(Variable::NumRows);
        let size = |size: Expr| Arg::Size(size, IndexType::U32);
        let pass = |kernel: &str, threads: Expr, args: Vec<Arg>| {
            Pass::of_threads(kernel, threads, threads_per_block, args)
        };
        let slots = |size: usize| stride() * WIDTH * size as u32;
        let width = pass(
            "spmv_ell_width",
            num_rows().div_ceil(ROWS_PER_SEARCHER),
            vec![size(num_rows()), Arg::RowOffsets, Arg::Buffer(COUNTS)],
        );
        let convert = pass(
            "spmv_ell_convert",
            stride(),
            vec![
                size(num_rows()),
                Arg::RowOffsets,
                Arg::ColIndices,
                Arg::Values,
                size(WIDTH.into()),
                Arg::Buffer(SLOT_COLS),
                Arg::Buffer(SLOT_VALUES),
            ],
        );
        let product = pass(
            "spmv_ell",
            num_rows().div_ceil(ROWS_PER_THREAD),
            vec![
                size(num_rows()),
                size(WIDTH.into()),
                Arg::Buffer(SLOT_COLS),
                Arg::Buffer(SLOT_VALUES),
                Arg::X,
                Arg::Y,
                Arg::Alpha(types.accumulator),
                Arg::Beta(types.accumulator),
            ],
        );
        Plan {
            prepare: vec![width, convert],
            multiply: vec![product],
            buffers: vec![
                Buffer::new("slot_cols", slots(types.index.size())),
                Buffer::new("slot_values", slots(types.value.size())),
                Buffer::new("counts", 8).zeroed().scratch(),
            ],
            counts: vec![Count { name: "width", buffer: COUNTS, entry: 0, after: 0 }],
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
