//! The transpose in CSR.

use super::{Copied, pushed, size};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::primitive::{GridScan, RadixSort};
use crate::program::{Arg, Buffer, Pass};

/// What the copy's kernels include.
pub(super) const HELPERS: &[&str] = &[
    "primitives/block_scan.cuh",
    "primitives/grid_scan.cuh",
    "primitives/radix_sort.cuh",
    "primitives/grid_scan_kernels.cuh",
    "primitives/radix_sort_kernels.cuh",
    "prelude/search.cuh",
    "prelude/transposed_copy.cuh",
];

/// The copy that takes the place of the matrix.
pub(super) fn copied(config: &KernelConfig, buffers: &mut Vec<Buffer>) -> Copied {
    let TransposedCopy { passes, offsets, indices, values } = TransposedCopy::new(config, false, buffers);
    Copied { passes, counts: Vec::new(), offsets, indices, values }
}

/// The passes that make the copy, and where it lies among a plan's buffers.
pub(crate) struct TransposedCopy {
    pub(crate) passes: Vec<Pass>,
    pub(crate) offsets: usize,
    pub(crate) indices: usize,
    pub(crate) values: usize,
}

impl TransposedCopy {
    /// Its buffers go behind those that are there; it is freed after the `prepare` passes where it `is_scratch`.
    pub(crate) fn new(config: &KernelConfig, is_scratch: bool, buffers: &mut Vec<Buffer>) -> TransposedCopy {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let [num_rows, num_cols, nnz] = [Variable::NumRows, Variable::NumCols, Variable::Nnz].map(Expr::from);
        let mut buffer = |name, entries, bytes, is_scratch| pushed(buffers, name, entries, bytes, is_scratch);
        let offsets = buffer("transposed_offsets", num_cols.clone() + 1, types.offset.size(), is_scratch);
        let indices = buffer("transposed_indices", nnz.clone(), types.index.size(), is_scratch);
        let values = buffer("transposed_values", nnz.clone(), types.value.size(), is_scratch);
        let sort = RadixSort {
            num_pairs: nnz.clone(),
            key_bound: num_cols.clone(),
            low_bits: 0,
            threads_per_block,
            pairs: buffer("transposed_pairs", nnz.clone(), 8, true),
            other_pairs: buffer("other_transposed_pairs", nnz.clone(), 8, true),
            places: buffer("transposed_places", Expr::from(RadixSort::PLACES) + 1, 4, true),
            partials: buffer("transposed_partials", GridScan::MAX_PARTIALS_BYTES.into(), 1, true),
            total: buffer("transposed_total", 1.into(), 8, true),
        };
        let pass = |kernel: &str, threads: Expr, args: Vec<Arg>| {
            Pass::of_threads(format!("spmv_transposed_copy_{kernel}"), threads, threads_per_block, args)
        };
        let pairs = Arg::Buffer(sort.pairs);
        let mut passes = vec![pass("entries", nnz.clone(), vec![size(&nnz), Arg::ColIndices, pairs.clone()])];
        passes.extend(sort.passes());
        passes.push(pass(
            "offsets",
            num_cols.clone() + 1,
            vec![size(&num_cols), size(&nnz), pairs.clone(), Arg::Buffer(offsets)],
        ));
        let fill = vec![size(&num_rows), size(&nnz), Arg::RowOffsets, Arg::Values, pairs];
        let filled = [indices, values].map(Arg::Buffer);
        passes.push(pass("fill", nnz, [fill, filled.into()].concat()));
        TransposedCopy { passes, offsets, indices, values }
    }
}
