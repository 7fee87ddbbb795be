//! Rows sorted by length, as jagged diagonals or one after the other.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::jagged_diagonals::{JaggedDiagonals, Rows};
use crate::parameter::parameters;
use crate::program::{Arg, Guarantees, Pass};

parameters! {
    /// Rows sorted by falling length: jagged diagonals, all first entries together, then all second (JDS), or one row after the
    /// other.
    pub struct Jds {
        /// 1: jagged diagonals, which neighbours read together (JDS_T of the lecture); 0: a row after the other (its JDS).
        transposed = 1, one of [0, 1];
    }
}

impl Plans for Jds {
    fn plan(&self, config: &KernelConfig) -> Plan {
        let accumulator = config.types().accumulator;
        let threads_per_block = config.threads_per_block();
        let mut buffers = vec![];
        let rows =
            Rows { number: Variable::NumRows, arrays: [Arg::RowOffsets, Arg::ColIndices, Arg::Values] };
        let (diagonals, kernel) = match self.transposed {
            0 => (JaggedDiagonals::by_rows(config, rows, &mut buffers), "spmv_jds_rows"),
            _ => (JaggedDiagonals::new(config, rows, &mut buffers), "spmv_jds"),
        };
        let mut args = diagonals.args(Variable::NumRows);
        args.extend([Arg::X, Arg::Y, Arg::Alpha(accumulator), Arg::Beta(accumulator)]);
        Plan {
            counts: vec![diagonals.count(0)],
            prepare: diagonals.passes,
            multiply: vec![Pass::of_threads(kernel, Variable::NumRows, threads_per_block, args)],
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
