//! What a launcher needs to run a generated kernel, as data: no backend knows any algorithm.

use crate::expr::{Expr, Variable};
use crate::types::{IndexType, Operation, StorageFormat, ValueType};

/// Generated CUDA text and how to run it for one [`KernelConfig`](crate::KernelConfig).
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// CUDA C++17 text, complete in itself. The same configuration always gives the same bytes.
    pub source: String,
    /// Passes run once for the structure of a matrix, in order.
    pub prepare: Vec<Pass>,
    /// Passes run for every product, in order, on one stream.
    pub multiply: Vec<Pass>,
    /// Workspace that belongs to a plan.
    pub buffers: Vec<Buffer>,
    /// How the matrix must be stored.
    pub storage: StorageFormat,
    /// What holds of every result.
    pub guarantees: Guarantees,
}

/// One kernel launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Name of an `extern "C"` kernel in the program's source.
    pub kernel: String,
    /// Number of blocks, in one dimension. A launcher skips the pass where it is zero.
    pub grid: Expr,
    /// Threads a block.
    pub threads_per_block: u32,
    /// Dynamic shared memory a block, in bytes.
    pub shared_bytes: u32,
    /// Arguments in the kernel's order.
    pub args: Vec<Arg>,
}

/// One kernel argument.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arg {
    /// A size, evaluated when the pass is bound and passed by value.
    Size(Expr, IndexType),
    /// Pointer to the `num_rows + 1` row offsets.
    RowOffsets,
    /// Pointer to the `nnz` column indices.
    ColIndices,
    /// Pointer to the `nnz` values.
    Values,
    /// Pointer to x.
    X,
    /// Pointer to y.
    Y,
    /// α by value, converted to this type.
    Alpha(ValueType),
    /// β by value, converted to this type.
    Beta(ValueType),
    /// Pointer to the workspace buffer of this index in [`Program::buffers`].
    Buffer(usize),
}

/// Workspace on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Name, for listings.
    pub name: &'static str,
    /// Size in bytes.
    pub bytes: Expr,
    /// Whether it must be zero when a plan is made. Passes leave it zero again where they rely on it.
    pub zeroed: bool,
}

/// What holds of every result of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// The same inputs give the same bits in every run, on every device.
    pub bit_reproducible: bool,
    /// The layout multiplies padding with x, so that a non-finite x entry may reach rows that do not name it.
    pub fill_touches_x: bool,
    /// h in |ŷ − y| ≤ γ_h·(|α||A||x| + |β||y|) + …, for a row of [`Variable::RowNnz`] entries: the most
    /// roundings that any term passes through.
    pub summation_depth: Expr,
    /// op(A) that the program computes.
    pub operation: Operation,
}

impl Guarantees {
    /// The declared depth for a row of `row_nnz` entries.
    pub fn depth(&self, row_nnz: u64) -> u64 {
        self.summation_depth.eval(&|variable| if variable == Variable::RowNnz { row_nnz } else { 0 })
    }
}
