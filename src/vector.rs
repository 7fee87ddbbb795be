//! The operations on vectors that an iterative solver needs beside the product.

use crate::expr::{Expr, Variable};
use crate::program::{Arg, Buffer, Pass};
use crate::source::vector_source;
use crate::types::{IndexType, ValueType};

/// An operation on one or two vectors of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VectorOp {
    /// x ← α.
    Fill,
    /// y ← x.
    Copy,
    /// x ← α·x.
    Scale,
    /// y ← α·x + y.
    Axpy,
    /// y ← α·y + x.
    Aypx,
    /// y ← y·x, entry by entry.
    Multiply,
    /// (α·x)·(α·y), summed in double precision in an order that depends on the length alone.
    Dot,
    /// The imaginary part of conj(x)·y, summed as [`VectorOp::Dot`] is, which is the real part: zero where entries are real.
    DotImaginary,
    /// max |x|.
    Amax,
}

impl VectorOp {
    /// Every operation.
    pub const ALL: &'static [VectorOp] = &[
        VectorOp::Fill,
        VectorOp::Copy,
        VectorOp::Scale,
        VectorOp::Axpy,
        VectorOp::Aypx,
        VectorOp::Multiply,
        VectorOp::Dot,
        VectorOp::DotImaginary,
        VectorOp::Amax,
    ];

    /// The operation's name, as in its kernel `spmv_<name>`.
    pub const fn name(self) -> &'static str {
        match self {
            VectorOp::Fill => "fill",
            VectorOp::Copy => "copy",
            VectorOp::Scale => "scale",
            VectorOp::Axpy => "axpy",
            VectorOp::Aypx => "aypx",
            VectorOp::Multiply => "multiply",
            VectorOp::Dot => "dot",
            VectorOp::DotImaginary => "dot_imaginary",
            VectorOp::Amax => "amax",
        }
    }
}

/// Generated CUDA text of all vector operations for one type of entries, and how to run them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorProgram {
    /// CUDA C++17 text, complete in itself.
    pub source: String,
    /// Workspace shared by the operations that give a number: partial results, and the result as one f64.
    pub buffers: Vec<Buffer>,
    entry: ValueType,
}

const THREADS_PER_BLOCK: u32 = 256;
const MAX_PARTIALS: u32 = 1024;
const PARTIALS: usize = 0;

impl VectorProgram {
    /// Index in [`VectorProgram::buffers`] of the f64 that dot and amax leave.
    pub const RESULT: usize = 1;

    /// Generates the program for vectors of `entry`.
    pub fn new(entry: ValueType) -> VectorProgram {
        let buffer = |name, bytes: u32| Buffer::new(name, bytes);
        VectorProgram {
            source: vector_source(entry, THREADS_PER_BLOCK),
            buffers: vec![buffer("partials", MAX_PARTIALS * 8), buffer("result", 8)],
            entry,
        }
    }

    /// The passes of one operation, in order.
    pub fn passes(&self, op: VectorOp) -> Vec<Pass> {
        let length = || Arg::Size(Variable::Length.into(), IndexType::U64);
        let alpha = Arg::Alpha(self.entry.narrowest_accumulator());
        let elementwise = |args| vec![pass(format!("spmv_{}", op.name()), blocks().min(u32::MAX >> 1), args)];
        match op {
            VectorOp::Fill | VectorOp::Scale => elementwise(vec![length(), Arg::X, alpha]),
            VectorOp::Copy | VectorOp::Multiply => elementwise(vec![length(), Arg::X, Arg::Y]),
            VectorOp::Axpy | VectorOp::Aypx => elementwise(vec![length(), Arg::X, Arg::Y, alpha]),
            VectorOp::Dot => {
                let partial =
                    vec![length(), Arg::X, Arg::Y, Arg::Alpha(ValueType::F64), Arg::Buffer(PARTIALS)];
                reduction(op, op, partial)
            }
            VectorOp::DotImaginary => {
                reduction(op, VectorOp::Dot, vec![length(), Arg::X, Arg::Y, Arg::Buffer(PARTIALS)])
            }
            VectorOp::Amax => reduction(op, op, vec![length(), Arg::X, Arg::Buffer(PARTIALS)]),
        }
    }
}

/// A thread an entry.
fn blocks() -> Expr {
    Expr::from(Variable::Length).div_ceil(THREADS_PER_BLOCK)
}

/// Blocks that leave a partial result each: a function of the length alone, so that the order of summation is
/// the same on every device.
fn partials() -> Expr {
    Expr::from(Variable::Length).div_ceil(THREADS_PER_BLOCK * 4).min(MAX_PARTIALS)
}

/// Partial results of one operation, combined as those of another.
fn reduction(op: VectorOp, combined: VectorOp, partial_args: Vec<Arg>) -> Vec<Pass> {
    let combine_args = vec![
        Arg::Size(partials(), IndexType::U32),
        Arg::Buffer(PARTIALS),
        Arg::Buffer(VectorProgram::RESULT),
    ];
    vec![
        pass(format!("spmv_{}_partial", op.name()), partials(), partial_args),
        pass(format!("spmv_{}", combined.name()), Expr::from(1), combine_args),
    ]
}

fn pass(kernel: String, grid: Expr, args: Vec<Arg>) -> Pass {
    Pass { kernel, grid, threads_per_block: THREADS_PER_BLOCK, shared_bytes: 0, args }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_names_a_kernel_of_the_source() {
        for &entry in ValueType::ALL {
            let program = VectorProgram::new(entry);
            for pass in VectorOp::ALL.iter().flat_map(|op| program.passes(*op)) {
                let declared = [format!(" {}(", pass.kernel), format!("\n{}(", pass.kernel)];
                assert!(declared.iter().any(|name| program.source.contains(name)), "{}", pass.kernel);
            }
        }
    }

    #[test]
    fn partial_results_fit_their_buffer() {
        let grid = partials();
        for length in [0, 1, 1024, 1025, 1 << 20, u64::MAX] {
            assert!(grid.eval(&|_| length) <= u64::from(MAX_PARTIALS));
        }
    }
}
