//! The transposed product, a thread a row.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::Variable;
use crate::parameter::parameters;
use crate::program::{Guarantees, Pass};
use crate::transposed;

parameters! {
    /// A thread takes a row and adds each of its products to y by an atomic: the transposed product as it comes.
    pub struct NaiveT computes [Transpose] {}
}

impl Plans for NaiveT {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        transposed::check_types(config)
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        Plan {
            prepare: vec![],
            multiply: vec![
                transposed::scale_pass(config, "spmv_naive_t_scale", Variable::NumCols),
                Pass::of_threads(
                    "spmv_naive_t",
                    Variable::NumRows,
                    config.threads_per_block(),
                    transposed::product_args(config),
                ),
            ],
            buffers: vec![],
            counts: vec![],
            guarantees: Guarantees {
                bit_reproducible: false,
                fill_touches_x: false,
                splits_rows: false,
                summation_depth: transposed::chain_depth(),
                operation: config.operation(),
            },
        }
    }
}
