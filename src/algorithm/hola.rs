//! Equal shares of nonzeros for blocks and threads.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::{Arg, Buffer, Guarantees, Pass};
use crate::shared_memory;
use crate::source::csr_product_args;
use crate::types::IndexType;

parameters! {
    /// Equal shares of nonzeros for blocks and threads (Hola-SpMV).
    pub struct Hola {
        /// Nonzeros a thread; published: 4 below 300,000 nonzeros, else 8.
        nnz_per_thread = 8, one of [4, 8, 16];
        /// 1 assigns rows to blocks once for a structure, 0 in every product, as published.
        prepared = 1, one of [0, 1];
        /// 1 sorts the columns of a thread before x is read, as published.
        sort_columns = 0, one of [0, 1];
    }
}

impl Plans for Hola {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        let (types, threads) = (config.types(), config.threads_per_block());
        let sum_bytes = types.accumulator.size() as u32;
        let nnz_per_block = threads * self.nnz_per_thread;
        let bytes = (nnz_per_block + nnz_per_block * sum_bytes / 128) * sum_bytes + threads * 8;
        shared_memory::check(config, "nnz_per_thread", bytes)?;
        if self.prepared == 0 && types.y != types.accumulator {
            return Err(ConfigError::Combination {
                key: "prepared",
                reason: format!(
                    "with prepared = 0 parts of a row are added in y's own type, which is {} where sums are {}: too \
                     coarse; use prepared = 1, or y of the type of sums",
                    types.y, types.accumulator
                ),
            });
        }
        Ok(())
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let nnz_per_block = threads_per_block * self.nnz_per_thread;
        // A matrix without nonzeros has a block too, which scales y; one without rows has none.
        let num_blocks =
            Expr::from(Variable::Nnz).div_ceil(nnz_per_block).max(Expr::from(Variable::NumRows).min(1));
        let assign = Pass {
            kernel: "spmv_hola_assign_rows".into(),
            grid: Expr::from(Variable::NumRows).div_ceil(threads_per_block),
            threads_per_block,
            shared_bytes: 0,
            args: vec![
                Arg::Size(Variable::NumRows.into(), IndexType::U32),
                Arg::Size(num_blocks.clone(), IndexType::U32),
                Arg::RowOffsets,
                Arg::Buffer(0),
                Arg::Y,
                Arg::Beta(types.accumulator),
            ],
        };
        let mut args = csr_product_args(config);
        args.insert(1, Arg::Size(Variable::Nnz.into(), types.offset));
        args.extend([0, 1, 2, 3].map(Arg::Buffer));
        let multiply = Pass {
            kernel: "spmv_hola".into(),
            grid: num_blocks.clone(),
            threads_per_block,
            shared_bytes: 0,
            args,
        };
        let sums = |bytes: u32| num_blocks.clone() * self.prepared * bytes;
        let buffers = vec![
            Buffer::new("block_rows", (num_blocks.clone() + 1) * 4),
            Buffer::new("tails", sums(types.accumulator.size() as u32)),
            Buffer::new("heads", sums(types.accumulator.size() as u32)),
            Buffer::new("meetings", sums(types.accumulator.piece_word_bytes())).zeroed(),
        ];
        let (prepare, multiply) = match self.prepared {
            0 => (vec![], vec![assign, multiply]),
            _ => (vec![assign], vec![multiply]),
        };
        // A thread's chain; the threads of a block one after the other; the blocks one after the other. No term
        // passes through more sums than there are terms.
        let along = Expr::from(Variable::RowNnz).div_ceil(nnz_per_block)
            + 1
            + threads_per_block
            + self.nnz_per_thread;
        Plan {
            prepare,
            multiply,
            buffers,
            counts: vec![],
            guarantees: Guarantees {
                bit_reproducible: false,
                fill_touches_x: false,
                splits_rows: true,
                summation_depth: Expr::from(Variable::RowNnz).min(along) + 5,
                operation: config.operation(),
            },
        }
    }
}
