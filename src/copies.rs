//! Algorithms of the plain product compute others from a copy: the transpose in CSR, or both triangles of a matrix of which one
//! is stored. The copy is made on the device when a plan is made, and takes the place of the matrix in all that they launch.

mod expanded;
mod transposed;
mod upper_triangle;

use crate::algorithm::Plan;
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::primitive::RadixSort;
use crate::program::{Arg, Buffer, Count, Misfits, Pass};
use crate::types::{IndexType, Operation};

pub(crate) use transposed::TransposedCopy;
pub(crate) use upper_triangle::UpperTriangle;

/// What a copy holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatrixCopy {
    /// The transpose.
    Transposed,
    /// Both triangles.
    Expanded,
}

/// The passes that make a copy, what they find out, and where it lies among a plan's buffers.
pub(crate) struct Copied {
    pub(crate) passes: Vec<Pass>,
    pub(crate) counts: Vec<Count>,
    pub(crate) offsets: usize,
    pub(crate) indices: usize,
    pub(crate) values: usize,
}

impl MatrixCopy {
    /// What the configuration's product is computed from, where that is a copy.
    pub(crate) fn of(config: &KernelConfig) -> Option<MatrixCopy> {
        match config.operation() {
            operation if !config.algorithm().spec().takes_a_copy(operation) => None,
            Operation::Transpose => Some(MatrixCopy::Transposed),
            _ => Some(MatrixCopy::Expanded),
        }
    }

    /// What its kernels include.
    pub(crate) fn helpers(self) -> &'static [&'static str] {
        match self {
            MatrixCopy::Transposed => transposed::HELPERS,
            MatrixCopy::Expanded => expanded::HELPERS,
        }
    }

    /// # Errors
    /// [`ConfigError::Combination`] where the configuration has offsets that it does not.
    pub(crate) fn check(self, config: &KernelConfig) -> Result<(), ConfigError> {
        let algorithm = config.algorithm().spec().name;
        let (what, instead) = match self {
            MatrixCopy::Transposed => (format!("the transposed copy of {algorithm}"), "naive_t"),
            MatrixCopy::Expanded => (format!("the expanded copy of {algorithm}"), "the full matrix"),
        };
        RadixSort::check_offset(config, &what, instead)
    }

    /// The most rows and columns of the matrix as it is stored, where the algorithm's column indices serve so many: `narrow` of
    /// the algorithm's own, `all` of a copy's.
    pub(crate) fn max_size(self, narrow: u64, all: u64) -> (u64, u64) {
        match self {
            // Its columns are the matrix's rows.
            MatrixCopy::Transposed => (narrow, all),
            MatrixCopy::Expanded => (narrow, narrow),
        }
    }

    /// The plan of a plain product, on the copy.
    pub(crate) fn serve(self, plan: Plan, config: &KernelConfig) -> Plan {
        // Behind the algorithm's buffers, which keep their numbers.
        let mut buffers: Vec<Buffer> = plan
            .buffers
            .into_iter()
            .map(|buffer| Buffer { bytes: self.size(&buffer.bytes), ..buffer })
            .collect();
        let Copied { passes: mut prepare, mut counts, offsets, indices, values } = match self {
            MatrixCopy::Transposed => transposed::copied(config, &mut buffers),
            MatrixCopy::Expanded => expanded::copied(config, &mut buffers),
        };
        let before = prepare.len();
        let on_copy = |pass: Pass| Pass {
            grid: self.size(&pass.grid),
            args: pass
                .args
                .into_iter()
                .map(|arg| match arg {
                    Arg::RowOffsets => Arg::Buffer(offsets),
                    Arg::ColIndices => Arg::Buffer(indices),
                    Arg::Values => Arg::Buffer(values),
                    Arg::Size(size, width) => Arg::Size(self.size(&size), width),
                    other => other,
                })
                .collect(),
            ..pass
        };
        prepare.extend(plan.prepare.into_iter().map(on_copy));
        counts.extend(plan.counts.into_iter().map(|count| Count { after: count.after + before, ..count }));
        let multiply: Vec<Pass> = plan.multiply.into_iter().map(on_copy).collect();
        // An algorithm with a layout of its own reads them when it makes that.
        for array in [offsets, indices, values] {
            buffers[array].scratch = !multiply.iter().any(|pass| pass.args.contains(&Arg::Buffer(array)));
        }
        Plan { prepare, multiply, buffers, counts, guarantees: plan.guarantees }
    }

    /// A size that depends on the matrix, of the copy.
    pub(crate) fn size(self, size: &Expr) -> Expr {
        size.map_variables(&|variable| match (self, variable) {
            (MatrixCopy::Transposed, Variable::NumRows) => Variable::NumCols.into(),
            (MatrixCopy::Transposed, Variable::NumCols) => Variable::NumRows.into(),
            (MatrixCopy::Expanded, Variable::Nnz) => expanded::num_entries(),
            // What the copy's passes find out comes first.
            (MatrixCopy::Expanded, Variable::Count(index)) => {
                Variable::Count(index + expanded::NUM_COUNTS).into()
            }
            (_, other) => other.into(),
        })
    }

    /// What keeps a matrix from a copy that offsets of 32 bits serve.
    pub(crate) fn misfits(self) -> Option<Misfits> {
        let most = Expr::from(i32::MAX as u32);
        let wanted = "a matrix that has at most 2^31 - 1 entries in both triangles";
        (self == MatrixCopy::Expanded)
            .then(|| Misfits { number: expanded::num_entries().minus(most), wanted })
    }
}

/// Where a copy's arrays and what making them takes go among a plan's buffers.
fn pushed(
    buffers: &mut Vec<Buffer>,
    name: &'static str,
    entries: Expr,
    bytes: usize,
    is_scratch: bool,
) -> usize {
    let buffer = Buffer::new(name, entries * bytes as u32);
    buffers.push(if is_scratch { buffer.scratch() } else { buffer });
    buffers.len() - 1
}

fn size(value: &Expr) -> Arg {
    Arg::Size(value.clone(), IndexType::U32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_that_no_product_reads_are_not_kept() {
        let kept = |algorithm, operation| {
            let config = KernelConfig::from_settings(algorithm, [("operation", operation)]).unwrap();
            let kept = config.outline().buffers.into_iter().filter(|buffer| !buffer.scratch);
            kept.map(|buffer| buffer.name).collect::<Vec<_>>()
        };
        for (operation, copy) in [("transpose", "transposed"), ("symmetric", "expanded")] {
            let arrays = ["offsets", "indices", "values"].map(|array| format!("{copy}_{array}"));
            assert_eq!(kept("csr_vector", operation), arrays, "{operation}");
            let of_patterns = ["pattern_offsets", "entries", "row_patterns"];
            assert_eq!(kept("row_patterns", operation), of_patterns, "{operation}");
        }
    }
}
