//! The transposed product with equal shares of nonzeros for blocks and threads.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::{Arg, Buffer, Guarantees, Pass};
use crate::shared_memory;
use crate::transposed;
use crate::types::IndexType;

parameters! {
    /// The transposed product with equal shares of nonzeros for blocks and threads (Hola-SpMV, transposed).
    pub struct HolaT computes [Transpose] {
        /// Nonzeros a thread.
        nnz_per_thread = 8, one of [4, 8, 16];
        /// 1 chooses for every block how its products meet before they are added to y; 0 adds a thread's to y, as published.
        combine = 1, one of [0, 1];
        /// 1 sorts the columns of a thread, so that equal ones meet before the atomic, as published; with combine = 0.
        sort_columns = 0, one of [0, 1];
    }
}

impl Plans for HolaT {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        transposed::check_types(config)?;
        if self.combine == 1 && self.sort_columns == 1 {
            return Err(ConfigError::Combination {
                key: "sort_columns",
                reason: "sort_columns = 1 is for combine = 0: with combine = 1 equal columns meet in shared memory"
                    .into(),
            });
        }
        let sum_bytes = config.types().accumulator.size() as u32;
        let threads = config.threads_per_block();
        let nnz_per_block = threads * self.nnz_per_thread;
        // Two sums a nonzero, and less than two bytes for what tells where they are.
        let bytes = match self.combine {
            0 => nnz_per_block * sum_bytes + nnz_per_block * 2,
            _ => nnz_per_block * 2 * sum_bytes + nnz_per_block * 2,
        };
        shared_memory::check(config, "nnz_per_thread", bytes)
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let offset = config.types().offset;
        let threads_per_block = config.threads_per_block();
        let num_blocks = Expr::from(Variable::Nnz).div_ceil(threads_per_block * self.nnz_per_thread);
        let pass = |kernel: &str, grid: Expr, args: Vec<Arg>| Pass {
            kernel: kernel.into(),
            grid,
            threads_per_block,
            shared_bytes: 0,
            args,
        };
        let assign_rows = vec![
            Arg::Size(Variable::NumRows.into(), IndexType::U32),
            Arg::Size(num_blocks.clone(), IndexType::U32),
            Arg::RowOffsets,
            Arg::Buffer(0),
        ];
        let rows = Expr::from(Variable::NumRows).div_ceil(threads_per_block);
        let mut prepare = vec![pass("spmv_hola_t_assign_rows", rows, assign_rows)];
        if self.combine == 1 {
            let choose_ways = vec![
                Arg::Size(Variable::NumRows.into(), IndexType::U32),
                Arg::Size(Variable::Nnz.into(), offset),
                Arg::RowOffsets,
                Arg::ColIndices,
                Arg::Buffer(0),
                Arg::Buffer(1),
            ];
            prepare.push(pass("spmv_hola_t_choose_ways", num_blocks.clone(), choose_ways));
        }
        let mut args = transposed::product_args(config);
        args.insert(1, Arg::Size(Variable::Nnz.into(), offset));
        args.extend([0, 1].map(Arg::Buffer));
        Plan {
            prepare,
            multiply: vec![
                transposed::scale_pass(config, "spmv_hola_t_scale", Variable::NumCols),
                pass("spmv_hola_t", num_blocks.clone(), args),
            ],
            buffers: vec![
                Buffer::new("block_rows", (num_blocks.clone() + 1) * 4),
                Buffer::new("ways", num_blocks * (8 * self.combine)),
            ],
            counts: vec![],
            guarantees: Guarantees {
                bit_reproducible: false,
                fill_touches_x: false,
                splits_rows: true,
                summation_depth: transposed::chain_depth(),
                operation: config.operation(),
            },
        }
    }
}
