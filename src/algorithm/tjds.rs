//! Jagged diagonals of columns sorted by length.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::copies::TransposedCopy;
use crate::expr::Variable;
use crate::jagged_diagonals::{JaggedDiagonals, Rows};
use crate::parameter::parameters;
use crate::primitive::RadixSort;
use crate::program::{Arg, Guarantees, Pass};
use crate::transposed;

parameters! {
    /// Transposed jagged diagonals: columns sorted by falling length, their first entries together, then their second,
    /// scattered to y by atomics (TJDS).
    pub struct Tjds {}
}

impl Plans for Tjds {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        transposed::check_types(config)?;
        RadixSort::check_offset(config, "tjds", "jds")
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let threads_per_block = config.threads_per_block();
        let mut buffers = vec![];
        let copy = TransposedCopy::new(config, true, &mut buffers);
        let columns = Rows {
            number: Variable::NumCols,
            arrays: [copy.offsets, copy.indices, copy.values].map(Arg::Buffer),
        };
        let diagonals = JaggedDiagonals::new(config, columns, &mut buffers);
        let mut args = diagonals.args(Variable::NumCols);
        args.extend([Arg::X, Arg::Y, Arg::Alpha(config.types().accumulator)]);
        Plan {
            counts: vec![diagonals.count(copy.passes.len())],
            prepare: [copy.passes, diagonals.passes].concat(),
            multiply: vec![
                transposed::scale_pass(config, "spmv_tjds_scale", Variable::NumRows),
                Pass::of_threads("spmv_tjds", Variable::NumCols, threads_per_block, args),
            ],
            buffers,
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
