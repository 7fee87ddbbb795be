//! What happens once for the structure of a matrix: workspace is allocated, `prepare` passes run, and the counts
//! that they find out are read back where a later size depends on them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use spmv_codegen::{Buffer, Misfits, Program, Slots};

use crate::backend::{Allocation, Backend, StreamHandle, as_bytes_mut};
use crate::device::{Device, Kernel};
use crate::error::Error;
use crate::launcher::{Bindings, BoundPass, Operands};

/// What a plan keeps of its preparation.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// One entry a buffer of the program; those that only `prepare` passes use are empty.
    pub(crate) workspace: Vec<Allocation>,
    /// Their bytes.
    pub(crate) buffer_bytes: Vec<u64>,
    /// Bytes that were freed when everything was prepared.
    pub(crate) scratch_bytes: u64,
    /// The program's counts.
    pub(crate) counts: Vec<u64>,
    /// Entries of the matrix as the product's kernels have it.
    pub(crate) entries: u64,
    /// The slots of its layout.
    pub(crate) slots: Option<u64>,
    /// What the `prepare` passes took, allocation and waiting counted; zero where there are none.
    pub(crate) time: Duration,
}

/// What a preparation is for, as errors tell it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    pub(crate) algorithm: &'static str,
    /// Bytes of the matrix that it starts from.
    pub(crate) matrix_bytes: u64,
    /// Bytes of one of its entries, with its column.
    pub(crate) entry_bytes: usize,
}

/// Allocates the workspace of a kernel and runs its `prepare` passes on the device's own stream. `sizes` has
/// everything but buffers and counts. Waits for the passes and for memory that is zeroed, and for nothing where there is none.
/// A layout that would be mostly fill, or that the matrix has not, is refused as soon as the counts tell, before anything of its
/// size is allocated.
pub(crate) fn prepare(
    device: &Device,
    kernel: &Kernel,
    sizes: Bindings<'_>,
    purpose: Purpose,
) -> Result<Prepared, Error> {
    let backend = device.backend();
    let program = kernel.program();
    let prepares = !program.prepare.is_empty();
    if prepares {
        backend.synchronize(StreamHandle::default())?;
    }
    let started = Instant::now();
    let mut workspace = Workspace::new(backend, program, format!("the workspace of {}", purpose.algorithm))?;
    let mut counts = Vec::with_capacity(program.counts.len());
    let mut slots = slots_of(program, &sizes, &counts, purpose)?;
    workspace.allocate(device, &Bindings { counts: &counts, ..sizes })?;
    for (index, pass) in program.prepare.iter().enumerate() {
        let bindings = Bindings { buffers: &workspace.allocations, counts: &counts, ..sizes };
        let mut bound = BoundPass::new(pass, &*kernel.module, &bindings)?;
        // SAFETY: the pass was bound to this matrix and this workspace, which outlive it: freeing waits for it.
        unsafe { bound.launch(&**backend, StreamHandle::default(), &Operands::default())? };
        let known = counts.len();
        for count in program.counts.iter().skip(known).take_while(|count| count.after == index) {
            let mut entry = [0u64];
            let address = workspace.allocations[count.buffer].address() + u64::from(count.entry) * 8;
            // SAFETY: the program says that the buffer is an array of 64-bit integers with this entry.
            unsafe { backend.read(as_bytes_mut(&mut entry), address)? };
            counts.push(entry[0]);
        }
        if counts.len() > known {
            check_fit(program, &sizes, &counts, purpose)?;
            slots = slots_of(program, &sizes, &counts, purpose)?;
            workspace.allocate(device, &Bindings { counts: &counts, ..sizes })?;
        }
    }
    let scratch_bytes = workspace.free_scratch();
    let entries = Bindings { counts: &counts, ..sizes }.eval(&program.entries, || 0);
    // A product that is captured next is ordered behind nothing.
    if prepares || program.buffers.iter().any(|buffer| buffer.zeroed) {
        backend.synchronize(StreamHandle::default())?;
    }
    Ok(Prepared {
        buffer_bytes: workspace.bytes.iter().map(|bytes| bytes.unwrap_or(0)).collect(),
        workspace: workspace.allocations,
        scratch_bytes,
        counts,
        entries,
        slots,
        time: if prepares { started.elapsed() } else { Duration::ZERO },
    })
}

/// Refuses a matrix that has not the layout that the program is for, as soon as the counts tell.
fn check_fit(program: &Program, sizes: &Bindings<'_>, counts: &[u64], purpose: Purpose) -> Result<(), Error> {
    let known = |misfits: &&Misfits| misfits.number.counts_needed() <= counts.len();
    program.misfits.iter().filter(known).try_for_each(|misfits| {
        match (Bindings { counts, ..*sizes }).eval(&misfits.number, || 0) {
            0 => Ok(()),
            number => Err(Error::Misfit { algorithm: purpose.algorithm, number, wanted: misfits.wanted }),
        }
    })
}

/// The slots of the program's layout as far as these counts tell: all of them, or at least so many.
///
/// # Errors
/// [`Error::Fill`] where they are too many already.
fn slots_of(
    program: &Program,
    sizes: &Bindings<'_>,
    counts: &[u64],
    purpose: Purpose,
) -> Result<Option<u64>, Error> {
    let Some(slots) = &program.slots else { return Ok(None) };
    let mut counts = counts.to_vec();
    counts.resize(program.counts.len(), 0);
    let [number, entries] =
        [&slots.number, &program.entries].map(|expr| Bindings { counts: &counts, ..*sizes }.eval(expr, || 0));
    if !Slots::are_refused(number, entries, purpose.entry_bytes) {
        return Ok(Some(number));
    }
    let alternatives = Slots::WITHOUT_FILL.iter().copied().filter(|name| *name != purpose.algorithm);
    Err(Error::Fill {
        algorithm: purpose.algorithm,
        slots: number,
        nnz: entries,
        bytes: number.saturating_mul(u64::from(slots.bytes)),
        matrix_bytes: purpose.matrix_bytes,
        alternatives: alternatives.collect(),
    })
}

/// Buffers that are allocated as their sizes become known.
struct Workspace<'a> {
    buffers: &'a [Buffer],
    allocations: Vec<Allocation>,
    /// Bytes of each buffer that has been allocated.
    bytes: Vec<Option<u64>>,
    what: String,
}

impl<'a> Workspace<'a> {
    fn new(backend: &Arc<dyn Backend>, program: &'a Program, what: String) -> Result<Self, Error> {
        let buffers = &*program.buffers;
        let allocations = buffers.iter().map(|buffer| Allocation::new(backend, 0, buffer.name));
        Ok(Workspace {
            buffers,
            allocations: allocations.collect::<Result<_, _>>()?,
            bytes: vec![None; buffers.len()],
            what,
        })
    }

    /// Allocates every buffer whose size is known by now and was not before.
    fn allocate(&mut self, device: &Device, bindings: &Bindings<'_>) -> Result<(), Error> {
        let ready = |(index, buffer): (usize, &Buffer)| {
            let known = buffer.bytes.counts_needed() <= bindings.counts.len();
            (self.bytes[index].is_none() && known).then(|| (index, bindings.eval(&buffer.bytes, || 0)))
        };
        let sizes: Vec<(usize, u64)> = self.buffers.iter().enumerate().filter_map(ready).collect();
        let needed = sizes.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        if needed == 0 {
            sizes.iter().for_each(|(index, _)| self.bytes[*index] = Some(0));
            return Ok(());
        }
        let free = device.free_bytes()?;
        if needed > free {
            return Err(Error::OutOfMemory { what: self.what.clone(), needed, free });
        }
        for (index, bytes) in sizes {
            let buffer = &self.buffers[index];
            self.allocations[index] = match buffer.zeroed {
                true => Allocation::zeroed(device.backend(), bytes, buffer.name)?,
                false => Allocation::new(device.backend(), bytes, buffer.name)?,
            };
            self.bytes[index] = Some(bytes);
        }
        Ok(())
    }

    /// Frees what only `prepare` passes use: its bytes.
    fn free_scratch(&mut self) -> u64 {
        let mut freed = 0;
        for (index, _) in self.buffers.iter().enumerate().filter(|(_, buffer)| buffer.scratch) {
            self.allocations[index].release();
            freed += self.bytes[index].take().unwrap_or(0);
        }
        freed
    }
}
