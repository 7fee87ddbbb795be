//! Equal shares of row ends and nonzeros.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::{Arg, Buffer, Guarantees, Pass};
use crate::shared_memory;
use crate::source::csr_product_args;
use crate::types::IndexType;

parameters! {
    /// Equal shares of row ends and nonzeros a thread (Merrill and Garland's merge-based product).
    pub struct MergePath {
        /// Steps of the merge that a thread takes; odd numbers avoid bank conflicts.
        items_per_thread = 7, one of [5, 6, 7, 9, 11];
        /// Whether tile coordinates are searched once for a structure (1) or in every product (0).
        prepared = 1, one of [0, 1];
    }
}

impl MergePath {
    fn tile_items(&self, config: &KernelConfig) -> u32 {
        config.threads_per_block() * self.items_per_thread
    }
}

impl Plans for MergePath {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        let size = config.types().accumulator.size() as u32;
        let (threads, warps) = (config.threads_per_block(), config.threads_per_block() / 32);
        // Products, row ends by threads and warps, and what warps leave to those behind them.
        let bytes = self.tile_items(config) * size + (threads + warps) * 4 + warps * (size + 4);
        shared_memory::check(config, "items_per_thread", bytes)
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let tile_items = self.tile_items(config);
        let num_tiles = || (Expr::from(Variable::NumRows) + Variable::Nnz).div_ceil(tile_items);
        let nnz = Arg::Size(Variable::Nnz.into(), types.offset);
        let search = Pass {
            kernel: "spmv_merge_path_search".into(),
            grid: (num_tiles() + 1).div_ceil(threads_per_block),
            threads_per_block,
            shared_bytes: 0,
            args: vec![
                Arg::Size(Variable::NumRows.into(), IndexType::U32),
                nnz.clone(),
                Arg::RowOffsets,
                Arg::Size(num_tiles(), IndexType::U32),
                Arg::Buffer(0),
            ],
        };
        let mut args = csr_product_args(config);
        args.push(nnz);
        args.extend((0..4).map(Arg::Buffer));
        let product = Pass {
            kernel: "spmv_merge_path".into(),
            grid: num_tiles(),
            threads_per_block,
            shared_bytes: 0,
            args,
        };
        let (prepare, multiply) =
            if self.prepared == 1 { (vec![search], vec![product]) } else { (vec![], vec![search, product]) };
        let sums = |name| Buffer::new(name, num_tiles() * types.accumulator.size() as u32);
        Plan {
            prepare,
            multiply,
            buffers: vec![
                Buffer::new("tile_rows", (num_tiles() + 1) * 4),
                sums("tails"),
                sums("heads"),
                Buffer::new("meetings", num_tiles() * types.accumulator.piece_word_bytes()).zeroed(),
            ],
            counts: vec![],
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: true,
                // The product; the thread's chain; the trees over lanes and over warps with their two carries; a
                // lane's chain over the tiles of the row, one longer where they are not aligned, and the tree over
                // the lanes; alpha, beta and two conversions.
                summation_depth: Expr::from(Variable::RowNnz).div_ceil(32 * tile_items)
                    + (1 + self.items_per_thread + 5 + 5 + 2 + 2 + 5 + 4),
                operation: config.operation(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ValueType;

    #[test]
    fn tiles_that_exceed_shared_memory_are_refused() {
        let config = |items_per_thread, threads| {
            KernelConfig::builder(MergePath { items_per_thread, prepared: 1 })
                .value(ValueType::F64)
                .threads_per_block(threads)
                .build()
        };
        assert!(config(11, 512).is_ok() && config(5, 1024).is_ok());
        let refused = config(6, 1024).unwrap_err();
        assert_eq!(refused.key(), "items_per_thread");
        assert!(
            refused.to_string().contains("53760 bytes") && refused.to_string().contains("49152"),
            "{refused}"
        );
    }
}
