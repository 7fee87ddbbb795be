//! Rows in bins by length, from a thread a row to several blocks a row.

use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::{GridScan, Partition};
use crate::program::{Arg, Buffer, Count, Guarantees, Pass};
use crate::source::csr_product_args;
use crate::types::IndexType;

parameters! {
    /// Rows in bins by length, from a thread a row to several blocks a row (Messa's Hybrid, logarithmic bins).
    pub struct Hybrid {
        /// Nonzeros up to which a row is a thread's; twice as many are two lanes', four times as many four lanes', and so on.
        nnz_per_lane = 4, one of [2, 4, 8, 16, 32];
        /// Lanes that a row has at least; rows short enough for fewer are not told apart.
        fewest_lanes = 1, one of [1, 2, 4, 8, 16, 32];
        /// Nonzeros up to which a row is a warp's; longer rows are a block's.
        nnz_per_warp = 512, one of [256, 512, 1024];
    }
}

/// Lanes of the rows of each bin but the last, which has the long rows.
const WIDTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

const BINS: u32 = WIDTHS.len() as u32 + 1;

/// Long rows are cut in parts of so many nonzeros a thread.
const NNZ_PER_THREAD: u32 = 8;

// Buffers of the plan.
const BIN_COUNTS: usize = 0;
const OFFSETS: usize = 1;
const ROW_ORDER: usize = 2;
const PARTIALS: usize = 3;
const FIRST_PARTS: usize = 4;
const NUM_PARTS: usize = 5;
const PART_ROWS: usize = 6;
const PART_ENDS: usize = 7;
const ROW_BEGINS: usize = 8;
const ROW_LENGTHS: usize = 9;
const PIECES: usize = 10;
const MEETINGS: usize = 11;

/// Parts into which the bins of short rows are cut, as in the template.
const STRIPES: u32 = 16;

impl Plans for Hybrid {
    fn plan(&self, config: &KernelConfig) -> Plan {
        let threads_per_block = config.threads_per_block();
        let types = config.types();
        let num_rows = || Expr::from(Variable::NumRows);
        // Counts: the rows of each bin, the parts of long rows.
        let bin_rows = |bin: usize| Expr::from(Variable::Count(bin as u8));
        let num_long = || bin_rows(WIDTHS.len());
        let first_long = || (1..WIDTHS.len()).fold(bin_rows(0), |sum, bin| sum + bin_rows(bin));
        let num_parts = || Expr::from(Variable::Count(BINS as u8));
        let size = |expr: Expr| Arg::Size(expr, IndexType::U32);
        let pass = |kernel: &str, grid: Expr, args: Vec<Arg>| Pass {
            kernel: kernel.into(),
            grid,
            threads_per_block,
            shared_bytes: 0,
            args,
        };
        let partition = Partition {
            kernel: "spmv_hybrid_bins".into(),
            num_items: num_rows(),
            threads_per_block,
            key_args: vec![Arg::RowOffsets],
            emit_args: [ROW_ORDER, ROW_BEGINS, ROW_LENGTHS].map(Arg::Buffer).into(),
            offsets: OFFSETS,
            bin_counts: BIN_COUNTS,
        };
        let scan = GridScan {
            kernel: "spmv_hybrid_parts".into(),
            length: num_long(),
            threads_per_block,
            entry_args: vec![Arg::RowOffsets, Arg::Buffer(ROW_ORDER), size(first_long())],
            partials: PARTIALS,
            out: FIRST_PARTS,
            total: NUM_PARTS,
        };
        let mut prepare = partition.passes().to_vec();
        let binned = prepare.len() - 1;
        prepare.extend(scan.passes());
        let scanned = prepare.len() - 1;
        let mut parts = vec![size(num_parts()), size(num_long()), Arg::RowOffsets, Arg::Buffer(ROW_ORDER)];
        parts.push(size(first_long()));
        parts.extend([FIRST_PARTS, PART_ROWS, PART_ENDS].map(Arg::Buffer));
        prepare.push(pass("spmv_hybrid_parts", num_parts().div_ceil(threads_per_block), parts));

        let alike = csr_product_args(config);
        let mut product = alike.clone();
        product.extend([ROW_ORDER, ROW_BEGINS, ROW_LENGTHS].map(Arg::Buffer));
        product.extend((0..WIDTHS.len()).map(|bin| size(bin_rows(bin))));
        let blocks_per_stripe =
            |bin: usize| bin_rows(bin).div_ceil(threads_per_block / WIDTHS[bin] * STRIPES);
        let all_per_stripe =
            (1..WIDTHS.len()).fold(blocks_per_stripe(0), |sum, bin| sum + blocks_per_stripe(bin));
        product.push(size(all_per_stripe.clone()));
        product.push(size(num_parts()));
        product.extend([PART_ROWS, PART_ENDS, PIECES, MEETINGS].map(Arg::Buffer));
        // Rows of the bin of the fewest lanes are in their own order where all are in it, and have a kernel of their own.
        let fewest = self.fewest_lanes.trailing_zeros() as usize;
        let of_alike = || num_rows().div_ceil(threads_per_block / self.fewest_lanes);
        let are_others = || Expr::from(1).min(num_rows().minus(bin_rows(fewest)));
        let of_bins = || num_parts() + all_per_stripe.clone() * STRIPES;
        let bins =
            (0..BINS).map(|bin| Count { name: "bin_rows", buffer: BIN_COUNTS, entry: bin, after: binned });
        let counts = bins.chain([Count { name: "num_parts", buffer: NUM_PARTS, entry: 0, after: scanned }]);
        let offset_bytes = types.offset.size() as u32;
        // Rows and parts of long ones are summed in steps of four terms a lane or thread, the parts of a row one after the
        // other in each lane of a warp.
        let row_nnz = || Expr::from(Variable::RowNnz);
        let of_a_group = row_nnz().div_ceil(4).min(self.nnz_per_lane.max(self.nnz_per_warp / 32).div_ceil(4));
        let of_parts = row_nnz().div_ceil(NNZ_PER_THREAD * threads_per_block * 32);
        Plan {
            multiply: vec![
                pass("spmv_hybrid_alike", of_alike().minus(are_others() * of_alike()), alike),
                pass("spmv_hybrid", of_bins().min(are_others() * of_bins()), product),
            ],
            prepare,
            counts: counts.collect(),
            buffers: vec![
                Buffer::new("bin_rows", 8 * BINS).scratch(),
                Buffer::new("offsets", Partition::offsets(num_rows(), BINS, threads_per_block) * 4).scratch(),
                Buffer::new("row_order", num_rows() * 4),
                Buffer::new("partials", GridScan::partials_bytes(num_long(), threads_per_block)).scratch(),
                Buffer::new("first_parts", (num_long() + 1) * 4).scratch(),
                Buffer::new("num_parts", 8).scratch(),
                Buffer::new("part_rows", num_parts() * 4),
                Buffer::new("part_ends", num_parts() * (2 * offset_bytes)),
                Buffer::new("row_begins", num_rows() * offset_bytes),
                Buffer::new("row_lengths", num_rows() * 2),
                Buffer::new("pieces", num_parts() * types.accumulator.size() as u32),
                Buffer::new("meetings", num_parts() * types.accumulator.piece_word_bytes()).zeroed(),
            ],
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: true,
                // Then a step more where the first is aligned, the terms of a step, trees over lanes or threads, the last
                // part's lane and the tree over parts, alpha, beta and two conversions.
                summation_depth: of_a_group + NNZ_PER_THREAD / 4 + (1 + 4 + 10) + of_parts + (1 + 5) + 4,
                operation: config.operation(),
            },
        }
    }
}
