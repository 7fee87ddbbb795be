//! A thread a row.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::{Guarantees, Pass};
use crate::source::csr_product_args;

/// The most threads that one multiprocessor of any architecture holds.
const THREADS_PER_MULTIPROCESSOR: u32 = 2048;

parameters! {
    /// A thread computes a row (Bell and Garland's scalar kernel).
    pub struct CsrScalar {
        /// Independent accumulators a thread; all loads of a step are in flight together.
        unroll = 4, one of [1, 2, 4, 8];
        /// Blocks that must fit on a multiprocessor at once, bounding registers; 0 leaves it to the compiler.
        min_blocks = 0, one of [0, 1, 2, 4, 8, 16];
    }
}

impl Plans for CsrScalar {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        let threads = self.min_blocks * config.threads_per_block();
        if threads > THREADS_PER_MULTIPROCESSOR {
            return Err(ConfigError::Combination {
                key: "min_blocks",
                reason: format!(
                    "min_blocks = {} blocks of threads_per_block = {} are {threads} threads, and a multiprocessor \
                     holds at most {THREADS_PER_MULTIPROCESSOR}; lower one of them",
                    self.min_blocks,
                    config.threads_per_block()
                ),
            });
        }
        Ok(())
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        Plan {
            prepare: vec![],
            multiply: vec![Pass {
                kernel: "spmv_csr_scalar".into(),
                grid: Expr::from(Variable::NumRows).div_ceil(config.threads_per_block()),
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
                // A chain of products and sums, the tree over the chains, then alpha, beta and two conversions.
                summation_depth: Expr::from(Variable::RowNnz).div_ceil(self.unroll) + self.unroll.ilog2() + 4,
                operation: config.operation(),
            },
        }
    }
}
