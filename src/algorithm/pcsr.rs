//! Products into memory, then sums through shared memory.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::{Arg, Buffer, Guarantees, Pass};
use crate::types::IndexType;

parameters! {
    /// One kernel stores all products, another sums them row by row (He and Gao's PCSR).
    pub struct Pcsr {
        /// Products that a block holds in shared memory at once.
        products_per_step = 1024, one of [512, 1024, 2048];
    }
}

/// The kernel of the products strides over what a grid of so many blocks leaves.
const MAX_BLOCKS: u32 = 1 << 30;

impl Plans for Pcsr {
    fn plan(&self, config: &KernelConfig) -> Plan {
        let accumulator = config.types().accumulator;
        let pass = |kernel: &str, entries: Variable, args: Vec<Arg>| Pass {
            kernel: kernel.into(),
            grid: Expr::from(entries).div_ceil(config.threads_per_block()).min(MAX_BLOCKS),
            threads_per_block: config.threads_per_block(),
            shared_bytes: 0,
            args,
        };
        let products = vec![
            Arg::Size(Variable::Nnz.into(), IndexType::U64),
            Arg::ColIndices,
            Arg::Values,
            Arg::X,
            Arg::Alpha(accumulator),
            Arg::Buffer(0),
        ];
        let sums = vec![
            Arg::Size(Variable::NumRows.into(), IndexType::U32),
            Arg::RowOffsets,
            Arg::Buffer(0),
            Arg::Y,
            Arg::Alpha(accumulator),
            Arg::Beta(accumulator),
        ];
        Plan {
            prepare: vec![],
            multiply: vec![
                pass("spmv_pcsr_products", Variable::Nnz, products),
                pass("spmv_pcsr", Variable::NumRows, sums),
            ],
            buffers: vec![Buffer::new("products", Expr::from(Variable::Nnz) * accumulator.size() as u32)],
            counts: vec![],
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: false,
                // A product, the sums, then alpha, beta and two conversions.
                summation_depth: Expr::from(Variable::RowNnz) + 1 + 4,
                operation: config.operation(),
            },
        }
    }
}
