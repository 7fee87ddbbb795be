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
        /// Rows that a group takes from the counter at once.
        rows_per_fetch = 1, one of [1, 2, 4, 8, 16];
    }
}

impl Plans for LightVector {
    fn plan(&self, config: &KernelConfig) -> Plan {
        let rows_per_block = config.threads_per_block() / self.threads_per_vector * self.rows_per_fetch;
        let counter = |name| Buffer::new(name, 4).zeroed();
        let mut args = csr_product_args(config);
        args.extend([Arg::Buffer(0), Arg::Buffer(1)]);
        Plan {
            prepare: vec![],
            multiply: vec![Pass {
                kernel: "spmv_light_vector".into(),
                // Persistent: no more blocks than are resident, no more than there are rows for.
                grid: (Expr::from(Variable::Multiprocessors) * Variable::ResidentBlocks)
                    .min(Expr::from(Variable::NumRows).div_ceil(rows_per_block)),
                threads_per_block: config.threads_per_block(),
                shared_bytes: 0,
                args,
            }],
            buffers: vec![counter("next_row"), counter("finished_blocks")],
            counts: vec![],
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                summation_depth: group_depth(self.threads_per_vector),
                operation: config.operation(),
            },
        }
    }
}
