//! Both triangles in CSR.

use super::{Copied, UpperTriangle, pushed, size};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::program::{Arg, Buffer, Count, Pass};

/// What the copy's kernels include.
pub(super) const HELPERS: &[&str] = &[
    "primitives/block_scan.cuh",
    "primitives/grid_scan.cuh",
    "primitives/radix_sort.cuh",
    "primitives/grid_scan_kernels.cuh",
    "primitives/radix_sort_kernels.cuh",
    "prelude/search.cuh",
    "prelude/mirror.cuh",
    "prelude/upper_triangle.cuh",
    "prelude/expanded_copy.cuh",
];

/// Entries of `counts`: those above the diagonal.
pub(super) const NUM_COUNTS: u8 = 1;
const NUM_MIRRORED: Variable = Variable::Count(0);

/// Entries of the copy.
pub(super) fn num_entries() -> Expr {
    Expr::from(Variable::Nnz) + NUM_MIRRORED
}

/// The copy that takes the place of the matrix.
pub(super) fn copied(config: &KernelConfig, buffers: &mut Vec<Buffer>) -> Copied {
    let types = config.types();
    let [num_rows, nnz] = [Variable::NumRows, Variable::Nnz].map(Expr::from);
    let UpperTriangle { mut passes, pairs, col_offsets, .. } = UpperTriangle::new(config, false, buffers);
    let mut buffer = |name, entries, bytes, is_scratch| pushed(buffers, name, entries, bytes, is_scratch);
    let num_mirrored = buffer("num_mirrored", 1.into(), 8, true);
    let offsets = buffer("expanded_offsets", num_rows.clone() + 1, types.offset.size(), false);
    let indices = buffer("expanded_indices", num_entries(), types.index.size(), false);
    let values = buffer("expanded_values", num_entries(), types.value.size(), false);
    let mut pass = |kernel: &str, threads: Expr, matrix: &[Arg], used: &[usize]| {
        let used = used.iter().copied().map(Arg::Buffer);
        let args = matrix.iter().cloned().chain(used).collect();
        let kernel = format!("spmv_expanded_copy_{kernel}");
        passes.push(Pass::of_threads(kernel, threads, config.threads_per_block(), args));
    };
    let row_offsets = [size(&num_rows), Arg::RowOffsets];
    pass("offsets", num_rows.clone() + 1, &row_offsets, &[col_offsets, offsets, num_mirrored]);
    let matrix = [size(&num_rows), size(&nnz), Arg::RowOffsets, Arg::ColIndices, Arg::Values];
    pass("fill", nnz, &matrix, &[pairs, col_offsets, indices, values]);
    let counts = vec![Count { name: "mirrored", buffer: num_mirrored, entry: 0, after: passes.len() - 2 }];
    Copied { passes, counts, offsets, indices, values }
}
