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
    /// Numbers that `prepare` passes find out and that later sizes depend on, in the order in which they become
    /// known: [`Variable::Count`] of an index is the entry here.
    pub counts: Vec<Count>,
    /// What the user's epilogue and dot take beside the row, in order: what [`Arg::Operands`] passes.
    pub operands: Vec<Operand>,
    /// Index into [`Program::buffers`] of the one that holds, after a product, what the user's dot adds up: an f64.
    pub dot: Option<usize>,
    /// Entries of the matrix as the product's kernels have it: those that are stored, or those of a copy that holds both triangles.
    pub entries: Expr,
    /// What the program's own layout of the matrix stores, where it may store more than the matrix does.
    pub slots: Option<Slots>,
    /// What keeps a matrix from the program's own layout, where not every matrix has it.
    pub misfits: Vec<Misfits>,
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

impl Pass {
    /// A pass of at least so many threads, without dynamic shared memory.
    pub(crate) fn of_threads(
        kernel: impl Into<String>,
        threads: impl Into<Expr>,
        threads_per_block: u32,
        args: Vec<Arg>,
    ) -> Pass {
        let grid = threads.into().div_ceil(threads_per_block);
        Pass { kernel: kernel.into(), grid, threads_per_block, shared_bytes: 0, args }
    }
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
    /// Pointer to α, a number of this type.
    AlphaOnDevice(ValueType),
    /// Pointer to β, a number of this type.
    BetaOnDevice(ValueType),
    /// What the user's epilogue and dot take beside the row, by value: 8 bytes for each of [`Program::operands`], a pointer
    /// or a number, or one byte that means nothing where there are none.
    Operands,
    /// Pointer to the workspace buffer of this index in [`Program::buffers`].
    Buffer(usize),
    /// Pointer to where the host looks for numbers that a kernel tells it.
    Inbox,
}

/// What a user's epilogue or dot takes beside the row. Vectors and numbers are bound to a plan by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A vector with an entry for each row.
    Vector {
        /// The name of the parameter.
        name: String,
        /// The type of its entries.
        value: ValueType,
    },
    /// A number.
    Scalar {
        /// The name of the parameter.
        name: String,
        /// Its type.
        value: ValueType,
    },
    /// The workspace buffer of this index in [`Program::buffers`], which the plan binds.
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
    /// Whether only `prepare` passes use it, so that it is freed after them.
    pub scratch: bool,
}

impl Buffer {
    /// Workspace that holds anything when a plan is made and lives as long as the plan.
    pub fn new(name: &'static str, bytes: impl Into<Expr>) -> Buffer {
        Buffer { name, bytes: bytes.into(), zeroed: false, scratch: false }
    }

    /// The same workspace, zero when a plan is made.
    pub fn zeroed(self) -> Buffer {
        Buffer { zeroed: true, ..self }
    }

    /// The same workspace, freed after the `prepare` passes.
    pub fn scratch(self) -> Buffer {
        Buffer { scratch: true, ..self }
    }
}

/// A number that a `prepare` pass leaves in a buffer. A launcher reads it back once that pass has finished, before
/// it evaluates a size that depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Name, for listings.
    pub name: &'static str,
    /// Index into [`Program::buffers`] of the buffer that holds it, as an array of 64-bit unsigned integers.
    pub buffer: usize,
    /// Its place in that array.
    pub entry: u32,
    /// Index into [`Program::prepare`] of the pass after which it is there.
    pub after: usize,
}

/// The slots of a layout: each holds an entry of the matrix or fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    /// How many. Never falls as a count grows, so that counts that are not known yet, taken as zero, give a lower
    /// bound.
    pub number: Expr,
    /// Bytes of a slot.
    pub bytes: u32,
}

impl Slots {
    /// Slots a nonzero beyond which a layout is refused, where its fill, counted with columns, takes more than
    /// [`Slots::MAX_FILL_BYTES`] too.
    pub const MAX_SLOTS_PER_NONZERO: u64 = 8;

    /// Bytes of fill up to which a layout is never refused.
    pub const MAX_FILL_BYTES: u64 = 64 << 20;

    /// Algorithms that store no fill, or little whatever the matrix is: what suits one whose fill is refused.
    pub const WITHOUT_FILL: &'static [&'static str] = &["sell_c_sigma", "hyb", "jds", "csr5", "merge_path"];

    /// Whether a layout of so many slots is refused for a matrix of so many nonzeros, of these bytes each with their
    /// columns.
    pub fn are_refused(number: u64, nnz: u64, entry_bytes: usize) -> bool {
        let fill_bytes = number.saturating_sub(nnz).saturating_mul(entry_bytes as u64);
        number > nnz.saturating_mul(Self::MAX_SLOTS_PER_NONZERO) && fill_bytes > Self::MAX_FILL_BYTES
    }
}

/// A layout that only some matrices have: a plan is refused where anything is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfits {
    /// How many parts of the matrix do not fit, as `prepare` passes count them.
    pub number: Expr,
    /// What all of them would have to be.
    pub wanted: &'static str,
}

/// What holds of every result of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// The same inputs give the same bits in every run, on every device of one architecture. Kernels are compiled for each
    /// architecture, and those of two may differ in the last bits.
    pub bit_reproducible: bool,
    /// The layout multiplies padding with x, so that a non-finite x entry may reach rows that do not name it.
    pub fill_touches_x: bool,
    /// Several groups or blocks share a long row. Where they do not, one row that holds a large part of all
    /// nonzeros decides how long a product takes.
    pub splits_rows: bool,
    /// h in |ŷ − y| ≤ γ_h·(|α||op(A)||x| + |β||y|) + …, for a row of op(A) with [`Variable::RowNnz`] entries: the
    /// most roundings that any term passes through.
    pub summation_depth: Expr,
    /// op(A) that the program computes.
    pub operation: Operation,
}

impl Guarantees {
    /// The declared depth for a row of op(A) with `row_nnz` entries.
    pub fn depth(&self, row_nnz: u64) -> u64 {
        self.summation_depth.eval(&|variable| if variable == Variable::RowNnz { row_nnz } else { 0 })
    }
}
