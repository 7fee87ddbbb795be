//! Compressed sparse columns.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::copies::TransposedCopy;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::RadixSort;
use crate::program::{Arg, Guarantees, Pass};
use crate::transposed;
use crate::types::IndexType;

parameters! {
    /// Columns one after the other, each scattered to y by atomics (CSC).
    pub struct Csc {
        /// Threads a column.
        threads_per_vector = 4, one of [1, 4, 32];
    }
}

impl Plans for Csc {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        transposed::check_types(config)?;
        RadixSort::check_offset(config, "csc", "csr_vector")
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let threads_per_block = config.threads_per_block();
        let num_cols = || Expr::from(Variable::NumCols);
        let mut buffers = vec![];
        let copy = TransposedCopy::new(config, false, &mut buffers);
        let mut args = vec![Arg::Size(num_cols(), IndexType::U32)];
        args.extend([copy.offsets, copy.indices, copy.values].map(Arg::Buffer));
        args.extend([Arg::X, Arg::Y, Arg::Alpha(config.types().accumulator)]);
        Plan {
            prepare: copy.passes,
            multiply: vec![
                transposed::scale_pass(config, "spmv_csc_scale", Variable::NumRows),
                Pass::of_threads("spmv_csc", num_cols() * self.threads_per_vector, threads_per_block, args),
            ],
            buffers,
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
