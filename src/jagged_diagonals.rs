//! Jagged diagonals, made on the device when a plan is made: rows sorted by falling length, their first entries
//! together, then their second. The rows are those of the matrix, or those of a transposed copy, which are its columns.

use crate::config::KernelConfig;
use crate::expr::{Expr, Variable};
use crate::primitive::{GridScan, RadixSort};
use crate::program::{Arg, Buffer, Count, Pass};
use crate::types::IndexType;

/// The longest row, the only count of a program.
pub(crate) const WIDTH: Variable = Variable::Count(0);

/// Rows that a thread looks at for the longest.
const ROWS_PER_SEARCHER: u32 = 16;

/// The compressed rows that jagged diagonals are made from.
pub(crate) struct Rows {
    /// How many.
    pub(crate) number: Variable,
    /// Offsets, indices, values.
    pub(crate) arrays: [Arg; 3],
}

/// How the entries of sorted rows lie.
struct Layout {
    /// The buffer of offsets, of so many parts and the end.
    offsets: &'static str,
    number: Variable,
    /// The kernels that find them, and the one that writes entries.
    scan: &'static str,
    convert: &'static str,
}

/// The passes that sort rows by falling length and lay their entries out, and where these lie among a plan's buffers.
pub(crate) struct JaggedDiagonals {
    pub(crate) passes: Vec<Pass>,
    pub(crate) permutation: usize,
    /// Where each diagonal begins, or each of the sorted rows where these are stored one after the other.
    pub(crate) offsets: usize,
    pub(crate) slot_indices: usize,
    pub(crate) slot_values: usize,
    /// The buffer in which the first pass leaves the longest row.
    longest: usize,
}

impl JaggedDiagonals {
    /// Their buffers go behind those that are there. The kernels are those of `prelude/jagged_diagonals.cuh`.
    pub(crate) fn new(config: &KernelConfig, rows: Rows, buffers: &mut Vec<Buffer>) -> JaggedDiagonals {
        let diagonals = Layout {
            offsets: "diagonal_offsets",
            number: WIDTH,
            scan: "spmv_jagged_diagonals",
            convert: "spmv_jagged_convert",
        };
        Self::laid_out(config, rows, diagonals, buffers)
    }

    /// The sorted rows one after the other, as no diagonals. The kernels that are not of the prelude are those of `jds`.
    pub(crate) fn by_rows(config: &KernelConfig, rows: Rows, buffers: &mut Vec<Buffer>) -> JaggedDiagonals {
        let sorted_rows = Layout {
            offsets: "sorted_offsets",
            number: rows.number,
            scan: "spmv_jds_offsets",
            convert: "spmv_jds_copy",
        };
        Self::laid_out(config, rows, sorted_rows, buffers)
    }

    fn laid_out(
        config: &KernelConfig,
        rows: Rows,
        layout: Layout,
        buffers: &mut Vec<Buffer>,
    ) -> JaggedDiagonals {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let num_rows = || Expr::from(rows.number);
        let offset_bytes = types.offset.size() as u32;
        let entries = |size: usize| Expr::from(Variable::Nnz) * size as u32;
        let mut buffer = |buffer: Buffer| {
            buffers.push(buffer);
            buffers.len() - 1
        };
        let permutation = buffer(Buffer::new("permutation", num_rows() * 4));
        let offsets_bytes = (Expr::from(layout.number) + 1) * offset_bytes;
        let offsets = buffer(Buffer::new(layout.offsets, offsets_bytes));
        let slot_indices = buffer(Buffer::new("slot_cols", entries(types.index.size())));
        let slot_values = buffer(Buffer::new("slot_values", entries(types.value.size())));
        let pairs = buffer(Buffer::new("pairs", num_rows() * 8).scratch());
        let other_pairs = buffer(Buffer::new("other_pairs", num_rows() * 8).scratch());
        let places = buffer(Buffer::new("places", (RadixSort::PLACES + 1) * 4).scratch());
        let sort_partials = buffer(Buffer::new("sort_partials", GridScan::MAX_PARTIALS_BYTES).scratch());
        let partials = buffer(Buffer::new("partials", GridScan::MAX_PARTIALS_BYTES).scratch());
        let longest = buffer(Buffer::new("longest_row", 8).zeroed().scratch());
        let total = buffer(Buffer::new("total", 8).scratch());

        let size = |size: Expr| Arg::Size(size, IndexType::U32);
        let pass = |kernel: &str, threads: Expr, args: Vec<Arg>| {
            Pass::of_threads(kernel, threads, threads_per_block, args)
        };
        let [row_offsets, indices, values] = rows.arrays;
        let mut passes = vec![
            pass(
                "spmv_jagged_width",
                num_rows().div_ceil(ROWS_PER_SEARCHER),
                vec![size(num_rows()), row_offsets.clone(), Arg::Buffer(longest)],
            ),
            pass(
                "spmv_jagged_rows",
                num_rows(),
                vec![size(num_rows()), row_offsets.clone(), size(WIDTH.into()), Arg::Buffer(pairs)],
            ),
        ];
        let sort = RadixSort {
            num_pairs: num_rows(),
            key_bound: Expr::from(WIDTH) + 1,
            low_bits: 0,
            threads_per_block,
            pairs,
            other_pairs,
            places,
            partials: sort_partials,
            total,
        };
        passes.extend(sort.passes());
        let scan = GridScan {
            kernel: layout.scan.into(),
            length: layout.number.into(),
            threads_per_block,
            entry_args: vec![Arg::Buffer(pairs), size(num_rows()), size(WIDTH.into())],
            partials,
            out: offsets,
            total,
        };
        passes.extend(scan.passes());
        let mut convert = vec![size(num_rows()), row_offsets, indices, values];
        let made = [pairs, offsets, permutation, slot_indices, slot_values];
        convert.extend(made.map(Arg::Buffer));
        passes.push(pass(layout.convert, num_rows(), convert));
        JaggedDiagonals { passes, permutation, offsets, slot_indices, slot_values, longest }
    }

    /// The count, of a program in which `before` passes come before these.
    pub(crate) fn count(&self, before: usize) -> Count {
        Count { name: "width", buffer: self.longest, entry: 0, after: before }
    }

    /// What a product takes of them, with `number` rows.
    pub(crate) fn args(&self, number: Variable) -> Vec<Arg> {
        let sizes = [number, WIDTH].map(|size| Arg::Size(size.into(), IndexType::U32));
        let arrays = [self.permutation, self.offsets, self.slot_indices, self.slot_values];
        sizes.into_iter().chain(arrays.map(Arg::Buffer)).collect()
    }
}
