//! Algorithms of the plain product compute the transposed one from a copy: the transpose in CSR, made on the device
//! when a plan is made, takes the place of the matrix in all that they launch.

use crate::algorithm::Plan;
use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::primitive::{GridScan, RadixSort};
use crate::program::{Arg, Buffer, Pass, Slots};
use crate::types::IndexType;

/// What the copy's kernels include.
pub(crate) const HELPERS: &[&str] = &[
    "primitives/block_scan.cuh",
    "primitives/grid_scan.cuh",
    "primitives/radix_sort.cuh",
    "primitives/grid_scan_kernels.cuh",
    "primitives/radix_sort_kernels.cuh",
    "prelude/search.cuh",
    "prelude/transposed_copy.cuh",
];

/// Whether the configuration's product is one with a transposed copy.
pub(crate) fn is_needed(config: &KernelConfig) -> bool {
    config.algorithm().spec().takes_a_copy(config.operation())
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
        let mut buffer = |name, entries: Expr, bytes: usize, is_scratch: bool| {
            let buffer = Buffer::new(name, entries * bytes as u32);
            buffers.push(if is_scratch { buffer.scratch() } else { buffer });
            buffers.len() - 1
        };
        let offsets = buffer("transposed_offsets", num_cols.clone() + 1, types.offset.size(), is_scratch);
        let indices = buffer("transposed_indices", nnz.clone(), types.index.size(), is_scratch);
        let values = buffer("transposed_values", nnz.clone(), types.value.size(), is_scratch);
        let sort = RadixSort {
            num_pairs: nnz.clone(),
            key_bound: num_cols.clone(),
            threads_per_block,
            pairs: buffer("transposed_pairs", nnz.clone(), 8, true),
            other_pairs: buffer("other_transposed_pairs", nnz.clone(), 8, true),
            places: buffer("transposed_places", Expr::from(RadixSort::PLACES) + 1, 4, true),
            partials: buffer("transposed_partials", GridScan::MAX_PARTIALS.into(), 4, true),
            total: buffer("transposed_total", 1.into(), 8, true),
        };
        let pass = |kernel: &str, threads: Expr, args: Vec<Arg>| {
            Pass::of_threads(format!("spmv_transposed_copy_{kernel}"), threads, threads_per_block, args)
        };
        let size = |value: &Expr| Arg::Size(value.clone(), IndexType::U32);
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

/// The plan of a plain product, on the copy.
pub(crate) fn transpose(plan: Plan, config: &KernelConfig) -> Plan {
    // Behind the algorithm's buffers, which keep their numbers.
    let mut buffers: Vec<Buffer> =
        plan.buffers.into_iter().map(|buffer| Buffer { bytes: mirrored(&buffer.bytes), ..buffer }).collect();
    let TransposedCopy { passes: mut prepare, offsets, indices, values } =
        TransposedCopy::new(config, false, &mut buffers);
    let before = prepare.len();
    let on_copy = |pass: Pass| Pass {
        grid: mirrored(&pass.grid),
        args: pass
            .args
            .into_iter()
            .map(|arg| match arg {
                Arg::RowOffsets => Arg::Buffer(offsets),
                Arg::ColIndices => Arg::Buffer(indices),
                Arg::Values => Arg::Buffer(values),
                Arg::Size(size, width) => Arg::Size(mirrored(&size), width),
                other => other,
            })
            .collect(),
        ..pass
    };
    prepare.extend(plan.prepare.into_iter().map(on_copy));
    let mut counts = plan.counts;
    counts.iter_mut().for_each(|count| count.after += before);
    Plan {
        prepare,
        multiply: plan.multiply.into_iter().map(on_copy).collect(),
        buffers,
        counts,
        guarantees: plan.guarantees,
    }
}

/// The slots of the copy.
pub(crate) fn of_transpose(slots: Slots) -> Slots {
    Slots { number: mirrored(&slots.number), ..slots }
}

/// The same size of the transpose: rows are columns.
fn mirrored(size: &Expr) -> Expr {
    size.map_variables(&|variable| match variable {
        Variable::NumRows => Variable::NumCols,
        Variable::NumCols => Variable::NumRows,
        other => other,
    })
}
