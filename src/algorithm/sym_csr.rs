//! The product with a symmetric, skew-symmetric or Hermitian matrix from its lower triangle.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::copies::UpperTriangle;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::{GridScan, RadixSort};
use crate::program::{Arg, Buffer, Count, Guarantees, Pass};
use crate::types::IndexType;

parameters! {
    /// A thread takes a row of the lower triangle and its mirror image: every nonzero comes from memory once, for both.
    pub struct SymCsr computes [Symmetric, SkewSymmetric, Hermitian] {
        /// Nonzeros of each part of a row that are under way at once.
        unroll = 4, one of [2, 4];
    }
}

impl Plans for SymCsr {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        RadixSort::check_offset(config, "sym_csr", "the full matrix")
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let [num_rows, nnz] = [Variable::NumRows, Variable::Nnz].map(Expr::from);
        let num_slices = num_rows.clone().div_ceil(32);
        let wide = Expr::from(Variable::Count(0)).min(1);
        let narrow = Expr::from(1).minus(wide.clone());

        let mut buffers = vec![];
        let columns = UpperTriangle::new(config, true, &mut buffers);
        let (pairs, col_offsets) = (columns.pairs, columns.col_offsets);
        let mut buffer = |buffer: Buffer| {
            buffers.push(buffer);
            buffers.len() - 1
        };
        let scratch = |name, entries: Expr, bytes: u32| Buffer::new(name, entries * bytes).scratch();
        let kept = |name, entries: Expr, bytes: Expr| Buffer::new(name, entries * bytes);
        let places = buffer(scratch("places", nnz.clone(), 4));
        let is_wide = buffer(scratch("wide", 1.into(), 8).zeroed());
        let lengths = buffer(kept("lengths", num_rows.clone(), 2.into()));
        let slices = buffer(kept("slices", num_slices.clone(), 16.into()));
        let lower_begins = buffer(scratch("lower_begins", num_slices.clone() + 1, 4));
        let upper_begins = buffer(scratch("upper_begins", num_slices.clone() + 1, 4));
        // Each slice begins at a multiple of 32.
        let room = nnz.clone() + num_slices.clone() * 31;
        let copy = buffer(kept("copied_values", room.clone(), (types.value.size() as u32).into()));
        let lower = buffer(kept("lower", room.clone(), wide.clone() * 2 + 2));
        let upper = buffer(kept("upper", room, wide.clone() * 4 + 4));

        let pass = |kernel: &str, threads: Expr, sizes: &[&Expr], matrix: &[Arg], buffers: &[usize]| {
            let sizes = sizes.iter().map(|size| Arg::Size((*size).clone(), IndexType::U32));
            let buffers = buffers.iter().copied().map(Arg::Buffer);
            Pass {
                kernel: format!("spmv_sym_csr{kernel}"),
                grid: threads.div_ceil(threads_per_block),
                threads_per_block,
                shared_bytes: 0,
                args: sizes.chain(matrix.iter().cloned()).chain(buffers).collect(),
            }
        };
        let (row_offsets, col_indices) = (Arg::RowOffsets, Arg::ColIndices);
        let pattern = [row_offsets.clone(), col_indices.clone()];
        let mut prepare = columns.passes;
        prepare.push(pass(
            "_slices",
            num_rows.clone(),
            &[&num_rows],
            std::slice::from_ref(&row_offsets),
            &[col_offsets, slices, lengths, lower_begins, upper_begins],
        ));
        for begins in [lower_begins, upper_begins] {
            let (partials, total) = (columns.partials, columns.total);
            let scan = GridScan::in_place(begins, num_slices.clone(), threads_per_block, partials, total);
            prepare.extend(scan.passes());
        }
        prepare.extend([
            pass("_begins", num_slices.clone(), &[&num_slices], &[], &[lower_begins, upper_begins, slices]),
            pass(
                "_place",
                num_rows.clone(),
                &[&num_rows],
                &[row_offsets.clone(), col_indices, Arg::Values],
                &[slices, places, copy, is_wide],
            ),
        ]);
        let counts = vec![Count { name: "wide", buffer: is_wide, entry: 0, after: prepare.len() - 1 }];

        // Of each pair of passes one has no blocks.
        let formats = [("", narrow), ("_wide", wide)].map(|(suffix, used)| (suffix, num_rows.clone() * used));
        for (suffix, threads) in &formats {
            let by_row = std::slice::from_ref(&row_offsets);
            let fill = |part: &str| format!("_fill_{part}{suffix}");
            prepare.extend([
                pass(&fill("lower"), threads.clone(), &[&num_rows], &pattern, &[places, lower]),
                pass(
                    &fill("upper"),
                    threads.clone(),
                    &[&num_rows],
                    by_row,
                    &[col_offsets, pairs, slices, places, upper],
                ),
            ]);
        }
        let (alpha, beta) = (Arg::Alpha(types.accumulator), Arg::Beta(types.accumulator));
        let operands = [row_offsets, Arg::X, Arg::Y, alpha, beta];
        let plan = [col_offsets, lengths, slices, copy, lower, upper];
        let multiply = formats.map(|(suffix, threads)| pass(suffix, threads, &[&num_rows], &operands, &plan));
        Plan {
            prepare,
            multiply: multiply.into(),
            buffers,
            counts,
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: false,
                // A chain for each part, which are added; a warp's chains and tree are no longer.
                summation_depth: Expr::from(Variable::RowNnz) + 6,
                operation: config.operation(),
            },
        }
    }
}
