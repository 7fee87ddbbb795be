//! Groups of lanes that take rows from a global counter.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::{Arg, Buffer, Guarantees, Pass};
use crate::source::{csr_product_args, group_depth};

parameters! {
    /// Groups of lanes take rows from a global counter (LightSpMV, vector level).
    pub struct LightVector {
        /// Lanes that share a row.
        threads_per_vector = 8, one of [2, 4, 8, 16, 32];
        /// Rows that a group takes from the counter at once; 0 takes some for each group of a block together.
        rows_per_fetch = 0, one of [0, 1, 2, 4, 8, 16];
        /// Terms of a lane whose loads are in flight together.
        unroll = 4, one of [1, 2, 4];
        /// 1 starts a row at a multiple of threads_per_vector entries, so that later accesses are aligned.
        aligned = 0, one of [0, 1];
        /// 1: as many blocks as are resident take rows until none is left; 0: a block a turn, which the hardware hands out.
        resident = 1, one of [0, 1];
    }
}

impl Plans for LightVector {
    fn plan(&self, config: &KernelConfig) -> Plan {
        fetching_plan(config, self.threads_per_vector, self.rows_per_fetch, self.unroll, self.resident)
    }
}

/// A kernel whose fetchers share a counter: no more blocks than there are rows for, and where these are to stay, no more than
/// are resident.
pub(super) fn fetching_plan(
    config: &KernelConfig,
    threads_per_vector: u32,
    rows_per_fetch: u32,
    unroll: u32,
    resident: u32,
) -> Plan {
    let rows_per_block = config.threads_per_block() / threads_per_vector * rows_per_fetch.max(1);
    // Of a row that is left to a block, the tree over its lanes and one over its warps.
    let block_trees = if rows_per_fetch == 0 { 2 * 5 } else { 0 };
    let for_rows = Expr::from(Variable::NumRows).div_ceil(rows_per_block);
    let at_once = Expr::from(Variable::Multiprocessors) * Variable::ResidentBlocks;
    let mut args = csr_product_args(config);
    args.push(Arg::Buffer(0));
    Plan {
        prepare: vec![],
        multiply: vec![Pass {
            kernel: format!("spmv_{}", config.algorithm().name()),
            grid: if resident == 0 { for_rows } else { at_once.min(for_rows) },
            threads_per_block: config.threads_per_block(),
            shared_bytes: 0,
            args,
        }],
        buffers: vec![Buffer::new("next_ticket", 4).zeroed()],
        counts: vec![],
        guarantees: Guarantees {
            bit_reproducible: true,
            fill_touches_x: false,
            splits_rows: false,
            summation_depth: group_depth(threads_per_vector, unroll) + block_trees,
            operation: config.operation(),
        },
    }
}
