//! Jagged diagonals of rows sorted by length.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::jagged_diagonals::{JaggedDiagonals, Rows};
use crate::parameter::parameters;
use crate::program::{Arg, Guarantees, Pass};

parameters! {
    /// Jagged diagonals: rows sorted by falling length, their first entries together, then their second (JDS).
    pub struct Jds {}
}

impl Plans for Jds {
    fn plan(&self, config: &KernelConfig) -> Plan {
        let accumulator = config.types().accumulator;
        let threads_per_block = config.threads_per_block();
        let mut buffers = vec![];
        let rows =
            Rows { number: Variable::NumRows, arrays: [Arg::RowOffsets, Arg::ColIndices, Arg::Values] };
        let diagonals = JaggedDiagonals::new(config, rows, &mut buffers);
        let mut args = diagonals.args(Variable::NumRows);
        args.extend([Arg::X, Arg::Y, Arg::Alpha(accumulator), Arg::Beta(accumulator)]);
        Plan {
            counts: vec![diagonals.count(0)],
            prepare: diagonals.passes,
            multiply: vec![Pass::of_threads("spmv_jds", Variable::NumRows, threads_per_block, args)],
            buffers,
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
