//! Row blocks: many short rows, one long row, or a part of a very long row.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::GridScan;
use crate::program::{Arg, Buffer, Count, Guarantees, Pass};
use crate::shared_memory;
use crate::source::csr_product_args;
use crate::types::IndexType;

parameters! {
    /// Blocks of rows with about equally many nonzeros (Greathouse and Daga's CSR-Adaptive).
    pub struct CsrAdaptive {
        /// Nonzeros for which a block has room in shared memory.
        nnz_per_block = 1024, one of [512, 1024, 2048, 4096];
        /// Rows of 64 nonzeros and more, about equally long, that half a warp computes one after the other.
        rows_per_half_warp = 1, one of [1, 2, 4];
        /// Lanes of the smallest group; 4 also takes rows of 16 nonzeros and fewer from shared memory.
        fewest_lanes = 8, one of [4, 8];
    }
}

/// Products that a lane of a shared block adds one by one at most.
const LONGEST_CHAIN: u32 = 16;

// Buffers of the plan.
const NUM_BLOCKS: usize = 0;
const PARTIALS: usize = 1;
const FIRST_BLOCKS: usize = 2;
const BLOCK_ROWS: usize = 3;
const BLOCK_OFFSETS: usize = 4;
const PIECES: usize = 5;
const MEETINGS: usize = 6;
const OTHERS: usize = 7;

impl Plans for CsrAdaptive {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        let (nnz, size) = (self.nnz_per_block, config.types().accumulator.size() as u32);
        // Products with an unused place in every 128 bytes, rows that are left, and sums of warps.
        let bytes = (nnz + nnz * size / 128) * size + nnz / LONGEST_CHAIN * 4 + 33 * size;
        shared_memory::check(config, "nnz_per_block", bytes)
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let threads_per_block = config.threads_per_block();
        let types = config.types();
        let num_rows = || Expr::from(Variable::NumRows);
        let num_blocks = || Expr::from(Variable::Count(0));
        // 0: half warps compute all rows, or groups of the fewest lanes, and row blocks none.
        let are_not_for_halves = || Expr::from(Variable::Count(1));
        let are_not_for_fewest = || Expr::from(Variable::Count(2));
        let of_halves = || num_rows().div_ceil(threads_per_block / 16 * self.rows_per_half_warp);
        let of_fewest = || num_rows().div_ceil(threads_per_block / self.fewest_lanes);
        let pass = |kernel: &str, grid: Expr, args: Vec<Arg>| Pass {
            kernel: kernel.into(),
            grid,
            threads_per_block,
            shared_bytes: 0,
            args,
        };
        let scan = GridScan {
            kernel: "spmv_csr_adaptive".into(),
            length: num_rows(),
            threads_per_block,
            entry_args: vec![Arg::RowOffsets],
            partials: PARTIALS,
            out: FIRST_BLOCKS,
            total: NUM_BLOCKS,
        };
        let mut prepare = scan.passes().to_vec();
        let counted = prepare.len() - 1;
        let found = prepare.len();
        prepare.push(pass(
            "spmv_csr_adaptive_blocks",
            (num_blocks() + 1).div_ceil(threads_per_block),
            [
                vec![
                    Arg::Size(num_blocks(), IndexType::U32),
                    Arg::Size(num_rows(), IndexType::U32),
                    Arg::RowOffsets,
                ],
                [FIRST_BLOCKS, BLOCK_ROWS, BLOCK_OFFSETS, OTHERS].map(Arg::Buffer).into(),
            ]
            .concat(),
        ));
        let product = csr_product_args(config);
        let offset_bytes = types.offset.size() as u32;
        Plan {
            multiply: vec![
                pass(
                    "spmv_csr_adaptive_halves",
                    of_halves().minus(are_not_for_halves() * of_halves()),
                    product.clone(),
                ),
                pass(
                    "spmv_csr_adaptive_fewest",
                    of_fewest().minus(are_not_for_fewest() * of_fewest()),
                    product.clone(),
                ),
                pass(
                    "spmv_csr_adaptive",
                    num_blocks().min(are_not_for_halves() * are_not_for_fewest() * num_blocks()),
                    [product, [BLOCK_ROWS, BLOCK_OFFSETS, PIECES, MEETINGS].map(Arg::Buffer).into()].concat(),
                ),
            ],
            counts: vec![
                Count { name: "num_blocks", buffer: NUM_BLOCKS, entry: 0, after: counted },
                Count { name: "are_not_for_halves", buffer: OTHERS, entry: 0, after: found },
                Count { name: "are_not_for_fewest", buffer: OTHERS, entry: 1, after: found },
            ],
            prepare,
            buffers: vec![
                Buffer::new("num_blocks", 8).scratch(),
                Buffer::new("partials", GridScan::partials_bytes(num_rows(), threads_per_block)).scratch(),
                Buffer::new("first_blocks", (num_rows() + 1) * 4).scratch(),
                Buffer::new("block_rows", (num_blocks() + 1) * 4),
                Buffer::new("block_offsets", (num_blocks() + 1) * offset_bytes),
                Buffer::new("pieces", num_blocks() * types.accumulator.size() as u32),
                Buffer::new("meetings", num_blocks() * types.accumulator.piece_word_bytes()).zeroed(),
                Buffer::new("others", 2 * 8).zeroed().scratch(),
            ],
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: true,
                // A chain of a shared block and its tree; or a lane's steps of four of a row that half a warp has, or of one of
                // fewer than 256 nonzeros that the fewest lanes have; or a thread's share of a row, whole or in parts, of which a lane
                // of a warp adds every 32nd, and two trees; one step more where the first is aligned. Then alpha, beta and two
                // conversions.
                summation_depth: Expr::from(Variable::RowNnz).min(LONGEST_CHAIN)
                    + Expr::from(Variable::RowNnz).div_ceil(threads_per_block.min(4 * 16))
                    + (2 * 10 + 1 + 1 + 4 + 4),
                operation: config.operation(),
            },
        }
    }
}
