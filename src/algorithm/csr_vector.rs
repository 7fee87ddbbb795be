//! A group of lanes a row.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::{Guarantees, Pass};
use crate::source::{csr_product_args, group_depth};

parameters! {
    /// A group of lanes computes a row (Bell and Garland's vector kernel).
    pub struct CsrVector {
        /// Lanes that share a row.
        threads_per_vector = 8, one of [2, 4, 8, 16, 32];
        /// Terms of a lane whose loads are in flight together.
        unroll = 4, one of [1, 2, 4];
        /// 1 starts a row at a multiple of threads_per_vector entries, so that later accesses are aligned.
        aligned = 0, one of [0, 1];
    }
}

impl Plans for CsrVector {
    fn plan(&self, config: &KernelConfig) -> Plan {
        Plan {
            prepare: vec![],
            multiply: vec![Pass {
                kernel: "spmv_csr_vector".into(),
                grid: Expr::from(Variable::NumRows)
                    .div_ceil(config.threads_per_block() / self.threads_per_vector),
                threads_per_block: config.threads_per_block(),
                shared_bytes: 0,
                args: csr_product_args(config),
            }],
            buffers: vec![],
            counts: vec![],
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: false,
                summation_depth: group_depth(self.threads_per_vector, self.unroll),
                operation: config.operation(),
            },
        }
    }
}
