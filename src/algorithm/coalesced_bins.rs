//! A warp a bin of consecutive rows.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::GridScan;
use crate::program::{Arg, Buffer, Count, Guarantees, Pass};
use crate::source::csr_product_args;
use crate::types::IndexType;

parameters! {
    /// A warp computes a bin of consecutive rows (Messa's CoalescedBins).
    pub struct CoalescedBins {
        /// Nonzeros, and rows, after which a bin ends.
        nnz_per_bin = 256, one of [64, 128, 256, 512];
    }
}

// Buffers of the plan.
const COUNTS: usize = 0;
const PARTIALS: usize = 1;
const FIRST_BINS: usize = 2;
const BIN_ROWS: usize = 3;

impl Plans for CoalescedBins {
    fn plan(&self, config: &KernelConfig) -> Plan {
        let threads_per_block = config.threads_per_block();
        let num_rows = || Expr::from(Variable::NumRows);
        let num_bins = || Expr::from(Variable::Count(0));
        let pass = |kernel: &str, grid: Expr, args: Vec<Arg>| Pass {
            kernel: kernel.into(),
            grid,
            threads_per_block,
            shared_bytes: 0,
            args,
        };
        let scan = GridScan {
            kernel: "spmv_coalesced_bins".into(),
            length: num_rows(),
            threads_per_block,
            entry_args: vec![Arg::RowOffsets],
            partials: PARTIALS,
            out: FIRST_BINS,
            total: COUNTS,
        };
        let mut prepare = scan.passes().to_vec();
        let counts = vec![Count { name: "num_bins", buffer: COUNTS, entry: 0, after: prepare.len() - 1 }];
        prepare.push(pass(
            "spmv_coalesced_bins_rows",
            (num_bins() + 1).div_ceil(threads_per_block),
            vec![
                Arg::Size(num_bins(), IndexType::U32),
                Arg::Size(num_rows(), IndexType::U32),
                Arg::Buffer(FIRST_BINS),
                Arg::Buffer(BIN_ROWS),
            ],
        ));
        let mut product = csr_product_args(config);
        product.extend([Arg::Size(num_bins(), IndexType::U32), Arg::Buffer(BIN_ROWS)]);
        Plan {
            prepare,
            multiply: vec![pass("spmv_coalesced_bins", num_bins().div_ceil(threads_per_block / 32), product)],
            buffers: vec![
                Buffer::new("num_bins", 8).scratch(),
                Buffer::new("partials", GridScan::partials_bytes(num_rows(), threads_per_block)).scratch(),
                Buffer::new("first_bins", (num_rows() + 1) * 4).scratch(),
                Buffer::new("bin_rows", (num_bins() + 1) * 4),
            ],
            counts,
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: false,
                // A row alone in one lane, where its bin's mean is short, is summed in four chains; the tree over
                // these and the lanes, then alpha, beta and two conversions.
                summation_depth: Expr::from(Variable::RowNnz).div_ceil(4) + (2 + 5 + 4),
                operation: config.operation(),
            },
        }
    }
}
