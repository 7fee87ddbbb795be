//! The one launcher: binds the passes of a program to sizes and memory, and launches them.

use spmv_codegen::{Arg, Expr, IndexType, Pass, ValueType, Variable};

use crate::backend::{Allocation, Backend, Function, Launch, MAX_ARGS, Module, StreamHandle};
use crate::error::Error;
use crate::factor::Passed;

/// What passes are bound to when a plan is made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bindings<'a> {
    pub(crate) num_rows: u64,
    pub(crate) num_cols: u64,
    pub(crate) nnz: u64,
    pub(crate) length: u64,
    pub(crate) value_bytes: u64,
    pub(crate) multiprocessors: u32,
    pub(crate) row_offsets: u64,
    pub(crate) col_indices: u64,
    pub(crate) values: u64,
    pub(crate) buffers: &'a [Allocation],
    pub(crate) counts: &'a [u64],
    /// Where kernels tell the host numbers, of passes that do.
    pub(crate) inbox: u64,
    /// How many slots [`Arg::Operands`] takes.
    pub(crate) num_operands: usize,
}

impl Bindings<'_> {
    pub(crate) fn eval(&self, expr: &Expr, resident_blocks: impl Fn() -> u64) -> u64 {
        expr.eval(&|variable| match variable {
            Variable::NumRows => self.num_rows,
            Variable::NumCols => self.num_cols,
            Variable::Nnz => self.nnz,
            Variable::Length => self.length,
            Variable::ValueBytes => self.value_bytes,
            Variable::Multiprocessors => self.multiprocessors.into(),
            Variable::ResidentBlocks => resident_blocks(),
            Variable::Count(index) => self.counts[usize::from(index)],
            other => unreachable!("a launch does not depend on {}", other.name()),
        })
    }
}

/// What changes from product to product. Passes that are given nothing of it have the default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Operands<'a> {
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) alpha: Passed,
    pub(crate) beta: Passed,
    /// What kernels take beside the row where the user says what is stored: addresses and bits of numbers, one slot each.
    pub(crate) beside: &'a [u64],
}

#[derive(Clone, Copy, Debug)]
enum Patch {
    X,
    Y,
    Alpha(ValueType),
    Beta(ValueType),
    AlphaOnDevice,
    BetaOnDevice,
    /// So many slots.
    Beside(usize),
}

/// A pass with everything evaluated that does not change from product to product.
#[derive(Debug)]
pub(crate) struct BoundPass {
    function: Function,
    grid: u32,
    threads_per_block: u32,
    shared_bytes: u32,
    args: Box<[u64]>,
    /// How many slots each argument takes.
    widths: Box<[usize]>,
    patches: Box<[(usize, Patch)]>,
}

const MAX_BLOCKS: u64 = i32::MAX as u64;

/// What a module knows of a pass's kernel, whatever it is bound to: asking takes longer than launching.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    function: Function,
    /// Blocks that are resident on a multiprocessor.
    resident: u32,
}

impl Found {
    pub(crate) fn new(pass: &Pass, module: &dyn Module) -> Result<Found, Error> {
        let function = module.function(&pass.kernel)?;
        module.allow_shared(function, pass)?;
        let resident = module.resident_blocks(function, pass.threads_per_block, pass.shared_bytes)?;
        Ok(Found { function, resident })
    }
}

impl BoundPass {
    /// Whether there is anything to launch.
    pub(crate) fn has_blocks(&self) -> bool {
        self.grid != 0
    }

    pub(crate) fn new(pass: &Pass, module: &dyn Module, bindings: &Bindings<'_>) -> Result<BoundPass, Error> {
        Self::of(pass, Found::new(pass, module)?, bindings)
    }

    /// As [`BoundPass::new`], of a kernel that was found before.
    pub(crate) fn of(pass: &Pass, found: Found, bindings: &Bindings<'_>) -> Result<BoundPass, Error> {
        assert!(pass.args.len() <= MAX_ARGS, "{} takes more arguments than a launch holds", pass.kernel);
        let Found { function, resident } = found;
        let size = |expr: &Expr| bindings.eval(expr, || u64::from(resident.max(1)));
        let blocks = size(&pass.grid);
        if blocks > MAX_BLOCKS {
            return Err(Error::GridTooLarge { kernel: pass.kernel.clone(), blocks });
        }
        let mut patches = Vec::new();
        let mut args = Vec::with_capacity(pass.args.len());
        let mut widths = vec![1; pass.args.len()];
        for (width, arg) in widths.iter_mut().zip(&pass.args) {
            let index = args.len();
            let mut patched = |patch| {
                patches.push((index, patch));
                0
            };
            let word = match arg {
                Arg::Size(expr, width) => sized(size(expr), *width),
                Arg::RowOffsets => bindings.row_offsets,
                Arg::ColIndices => bindings.col_indices,
                Arg::Values => bindings.values,
                Arg::Inbox => bindings.inbox,
                Arg::Buffer(buffer) => bindings.buffers[*buffer].address(),
                Arg::X => patched(Patch::X),
                Arg::Y => patched(Patch::Y),
                Arg::Alpha(as_type) => {
                    *width = num_slots(*as_type);
                    patched(Patch::Alpha(*as_type))
                }
                Arg::Beta(as_type) => {
                    *width = num_slots(*as_type);
                    patched(Patch::Beta(*as_type))
                }
                Arg::AlphaOnDevice(_) => patched(Patch::AlphaOnDevice),
                Arg::BetaOnDevice(_) => patched(Patch::BetaOnDevice),
                Arg::Operands => {
                    // An argument of no members is a byte.
                    *width = bindings.num_operands.max(1);
                    patched(Patch::Beside(bindings.num_operands))
                }
                other => unreachable!("the launcher knows every argument, and {other:?} is new"),
            };
            args.push(word);
            args.resize(index + *width, 0);
        }
        Ok(BoundPass {
            function,
            grid: blocks as u32,
            threads_per_block: pass.threads_per_block,
            shared_bytes: pass.shared_bytes,
            args: args.into(),
            widths: widths.into(),
            patches: patches.into(),
        })
    }

    /// Patches the operands in and launches. Allocates nothing, waits for nothing.
    ///
    /// # Safety
    /// The operands and everything that the pass was bound to fit the kernel and live until it has finished.
    pub(crate) unsafe fn launch(
        &mut self,
        backend: &dyn Backend,
        stream: StreamHandle,
        operands: &Operands<'_>,
    ) -> Result<(), Error> {
        if !self.has_blocks() {
            return Ok(());
        }
        for &(index, patch) in &*self.patches {
            let slots = &mut self.args[index..];
            match patch {
                Patch::X => slots[0] = operands.x,
                Patch::Y => slots[0] = operands.y,
                Patch::Alpha(as_type) => put(slots, operands.alpha, as_type),
                Patch::Beta(as_type) => put(slots, operands.beta, as_type),
                Patch::AlphaOnDevice => slots[0] = address(operands.alpha),
                Patch::BetaOnDevice => slots[0] = address(operands.beta),
                Patch::Beside(num_operands) => slots[..num_operands].copy_from_slice(operands.beside),
            }
        }
        let launch = Launch {
            function: self.function,
            grid: self.grid,
            threads_per_block: self.threads_per_block,
            shared_bytes: self.shared_bytes,
            args: &self.args,
            widths: &self.widths,
        };
        // SAFETY: passed on to the caller.
        unsafe { backend.launch(launch, stream) }
    }
}

/// Slots that a number of this type takes.
fn num_slots(as_type: ValueType) -> usize {
    as_type.size().div_ceil(8)
}

fn put(slots: &mut [u64], factor: Passed, as_type: ValueType) {
    let width = num_slots(as_type);
    let number = factor.number().expect("what a kernel takes by value was checked to be a number");
    slots[..width].copy_from_slice(&number.bits(as_type)[..width]);
}

fn address(factor: Passed) -> u64 {
    match factor {
        Passed::Address(address) => address,
        Passed::Number(number) => unreachable!("{number} was checked to be on the device"),
    }
}

fn sized(value: u64, width: IndexType) -> u64 {
    debug_assert!(width != IndexType::U32 || u32::try_from(value).is_ok(), "{value} fits in its argument");
    value
}
