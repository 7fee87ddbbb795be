//! Sliced ELLPACK with rows sorted inside windows.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::GridScan;
use crate::program::{Arg, Buffer, Count, Guarantees, Pass, Slots};
use crate::types::IndexType;

parameters! {
    /// Slices of 32 rows, each as wide as its longest, rows sorted in windows (Kreutzer et al.'s SELL-C-σ).
    pub struct SellCSigma {
        /// Rows of a window, in which rows are sorted by falling length; 1 keeps the order of the matrix.
        sigma = 256, one of [1, 256, 4096];
    }
}

/// Entries of `buffers`.
const PERMUTATION: usize = 0;
const SLICE_OFFSETS: usize = 1;
const SLOT_COLS: usize = 2;
const SLOT_VALUES: usize = 3;
const WIDTHS: usize = 4;
const PARTIALS: usize = 5;
const COUNTS: usize = 6;
const TOTAL: usize = 7;

/// Entries of `counts`: rows that sorting moved, and slots.
const NUM_MOVED: Variable = Variable::Count(0);
const NUM_SLOTS: Variable = Variable::Count(1);

fn num_slices() -> Expr {
    Expr::from(Variable::NumRows).div_ceil(32)
}

impl SellCSigma {
    fn prepare(&self, config: &KernelConfig) -> Vec<Pass> {
        let threads_per_block = config.threads_per_block();
        let num_rows = || Expr::from(Variable::NumRows);
        let size = |size: Expr| Arg::Size(size, IndexType::U32);
        let pass = |kernel: &str, grid: Expr, args: Vec<Arg>| Pass {
            kernel: kernel.into(),
            grid,
            threads_per_block,
            shared_bytes: 0,
            args,
        };
        let a_thread_a_place = || (num_slices() * 32).div_ceil(threads_per_block);
        let windows = if self.sigma == 1 { 0.into() } else { num_rows().div_ceil(self.sigma) };
        let sort = pass(
            "spmv_sell_c_sigma_sort",
            windows,
            vec![size(num_rows()), Arg::RowOffsets, Arg::Buffer(PERMUTATION), Arg::Buffer(COUNTS)],
        );
        let widths = pass(
            "spmv_sell_c_sigma_widths",
            a_thread_a_place(),
            vec![
                size(num_rows()),
                Arg::RowOffsets,
                size(NUM_MOVED.into()),
                Arg::Buffer(PERMUTATION),
                Arg::Buffer(WIDTHS),
            ],
        );
        let scan = GridScan {
            kernel: "spmv_sell_c_sigma_slices".into(),
            length: num_slices(),
            threads_per_block,
            entry_args: vec![Arg::Buffer(WIDTHS)],
            partials: PARTIALS,
            out: SLICE_OFFSETS,
            total: TOTAL,
        };
        let convert = pass(
            "spmv_sell_c_sigma_convert",
            a_thread_a_place(),
            vec![
                size(num_rows()),
                Arg::RowOffsets,
                Arg::ColIndices,
                Arg::Values,
                size(NUM_MOVED.into()),
                Arg::Buffer(PERMUTATION),
                size(num_slices()),
                Arg::Buffer(SLICE_OFFSETS),
                Arg::Buffer(SLOT_COLS),
                Arg::Buffer(SLOT_VALUES),
            ],
        );
        let mut passes = vec![sort, widths];
        passes.extend(scan.passes());
        passes.push(convert);
        passes
    }
}

impl Plans for SellCSigma {
    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        let types = config.types();
        Some(Slots { number: NUM_SLOTS.into(), bytes: (types.index.size() + types.value.size()) as u32 })
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let slots = |size: usize| Expr::from(NUM_SLOTS) * size as u32;
        let sorted_rows = if self.sigma == 1 { 0.into() } else { Expr::from(Variable::NumRows) };
        let product = Pass {
            kernel: "spmv_sell_c_sigma".into(),
            grid: num_slices().div_ceil(threads_per_block / 32),
            threads_per_block,
            shared_bytes: 0,
            args: vec![
                Arg::Size(Variable::NumRows.into(), IndexType::U32),
                Arg::Size(NUM_MOVED.into(), IndexType::U32),
                Arg::Buffer(PERMUTATION),
                Arg::Size(num_slices(), IndexType::U32),
                Arg::Buffer(SLICE_OFFSETS),
                Arg::Buffer(SLOT_COLS),
                Arg::Buffer(SLOT_VALUES),
                Arg::X,
                Arg::Y,
                Arg::Alpha(types.accumulator),
                Arg::Beta(types.accumulator),
            ],
        };
        let prepare = self.prepare(config);
        let scanned = prepare.len() - 2;
        Plan {
            prepare,
            multiply: vec![product],
            buffers: vec![
                Buffer::new("permutation", sorted_rows * 4),
                Buffer::new("slice_offsets", (num_slices() + 1) * 8),
                Buffer::new("slot_cols", slots(types.index.size())),
                Buffer::new("slot_values", slots(types.value.size())),
                Buffer::new("widths", num_slices() * 4).scratch(),
                Buffer::new("partials", GridScan::partials_bytes(num_slices(), threads_per_block)).scratch(),
                Buffer::new("moved_rows", 8).zeroed().scratch(),
                Buffer::new("slots", 8).zeroed().scratch(),
            ],
            counts: vec![
                Count { name: "moved_rows", buffer: COUNTS, entry: 0, after: 0 },
                Count { name: "slots", buffer: TOTAL, entry: 0, after: scanned },
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
