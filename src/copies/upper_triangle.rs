//! Where what lies above the diagonal is stored, in a lower triangle.

use super::{pushed, size};
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::primitive::{GridScan, RadixSort};
use crate::program::{Arg, Buffer, Pass};

/// The passes that find it, and where they leave what: `pairs` of column and place in the triangle, sorted by columns, those
/// on the diagonal last, and where each column begins in them. `partials` and `total` are what scans need.
pub(crate) struct UpperTriangle {
    pub(crate) passes: Vec<Pass>,
    pub(crate) pairs: usize,
    pub(crate) col_offsets: usize,
    pub(crate) partials: usize,
    pub(crate) total: usize,
}

impl UpperTriangle {
    /// Its buffers go behind those that are there; all are freed after the `prepare` passes but `col_offsets` where it `is_kept`.
    pub(crate) fn new(config: &KernelConfig, is_kept: bool, buffers: &mut Vec<Buffer>) -> UpperTriangle {
        let threads_per_block = config.threads_per_block();
        let [num_rows, nnz] = [Variable::NumRows, Variable::Nnz].map(Expr::from);
        let mut scratch = |name, entries, bytes| pushed(buffers, name, entries, bytes, true);
        let sort = RadixSort {
            num_pairs: nnz.clone(),
            key_bound: num_rows.clone() + 1,
            low_bits: 0,
            threads_per_block,
            pairs: scratch("upper_pairs", nnz.clone(), 8),
            other_pairs: scratch("other_upper_pairs", nnz.clone(), 8),
            places: scratch("upper_places", Expr::from(RadixSort::PLACES) + 1, 4),
            partials: scratch("upper_partials", GridScan::MAX_PARTIALS_BYTES.into(), 1),
            total: scratch("upper_total", 1.into(), 8),
        };
        let col_offsets = pushed(buffers, "col_offsets", num_rows.clone() + 1, 4, !is_kept);
        let pass = |kernel: &str, threads: Expr, args: Vec<Arg>| {
            Pass::of_threads(format!("spmv_upper_triangle_{kernel}"), threads, threads_per_block, args)
        };
        let [pairs, columns] = [sort.pairs, col_offsets].map(Arg::Buffer);
        let entries = vec![size(&nnz), size(&num_rows), Arg::RowOffsets, Arg::ColIndices, pairs.clone()];
        let mut passes = vec![pass("entries", nnz.clone(), entries)];
        passes.extend(sort.passes());
        passes.push(pass("columns", num_rows.clone() + 1, vec![size(&num_rows), size(&nnz), pairs, columns]));
        UpperTriangle { passes, pairs: sort.pairs, col_offsets, partials: sort.partials, total: sort.total }
    }
}
