//! What a device must be able to do. The launcher and everything above it know no more than this.

use std::fmt::Debug;
use std::sync::Arc;

use spmv_codegen::Pass;

use crate::artifact::{Artifact, Image};
use crate::error::Error;

/// A stream of the backend; 0 is its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamHandle(pub(crate) u64);

/// A kernel of a loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) handle: u64,
    /// Whether it waits itself for what is ahead of it in its stream (`await_stream` in the prelude), and may be launched
    /// while that still ends.
    pub(crate) awaits_stream: bool,
}

/// The most arguments that a kernel of ours takes.
pub(crate) const MAX_ARGS: usize = 32;

/// One launch. An argument is one slot of at most 8 bytes, little-endian, or several that follow one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) function: Function,
    pub(crate) grid: u32,
    pub(crate) threads_per_block: u32,
    pub(crate) shared_bytes: u32,
    pub(crate) args: &'a [u64],
    /// How many slots each argument takes, in order.
    pub(crate) widths: &'a [usize],
}

impl<'a> Launch<'a> {
    /// The slots of each argument.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &'a [u64]> {
        let mut rest = self.args;
        self.widths.iter().map(move |width| {
            let (argument, others) = rest.split_at(*width);
            rest = others;
            argument
        })
    }
}

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProperties {
    /// The device's name.
    pub name: String,
    /// Its architecture, for example `sm_90`.
    pub arch: String,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Device memory in bytes.
    pub memory_bytes: u64,
    /// Level-2 cache in bytes; 0 of the embedded device, which has none.
    pub l2_bytes: u64,
    /// The CUDA version that the driver supports, as (major, minor); of the embedded device, which takes any, (`u32::MAX`, 0).
    pub driver_version: (u32, u32),
}

/// What came of ordering one stream behind another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// It waits.
    Made,
    /// Nothing waits: the later one is being captured, so what is launched on it does not run now.
    AfterIsCaptured,
    /// Nothing waits: the earlier one is being captured, and a captured event cannot be waited for outside.
    BeforeIsCaptured,
}

pub(crate) trait Backend: Debug + Send + Sync {
    fn properties(&self) -> &DeviceProperties;

    /// Bytes free now.
    fn free_bytes(&self) -> Result<u64, Error>;

    /// Allocates; the address is aligned to 256 bytes. `bytes` is not 0.
    fn allocate(&self, bytes: u64) -> Result<u64, Error>;

    /// Frees what [`Backend::allocate`] returned, after everything that was launched before.
    ///
    /// # Safety
    /// `address` is allocated and nothing uses it any more.
    unsafe fn free(&self, address: u64);

    /// Copies host bytes to the device, after what the default stream holds, and waits.
    ///
    /// # Safety
    /// `address` points to at least `source.len()` bytes of device memory.
    unsafe fn write(&self, address: u64, source: &[u8]) -> Result<(), Error>;

    /// Copies device bytes to the host, after what the default stream holds, and waits.
    ///
    /// # Safety
    /// `address` points to at least `target.len()` bytes of device memory.
    unsafe fn read(&self, target: &mut [u8], address: u64) -> Result<(), Error>;

    /// Zeroes device bytes on the default stream.
    ///
    /// # Safety
    /// `address` points to at least `bytes` bytes of device memory.
    unsafe fn zero(&self, address: u64, bytes: u64) -> Result<(), Error>;

    /// Memory of the host that kernels write so many numbers to, and one behind them, where the device has such memory.
    fn shared_inbox(&self, _numbers: usize) -> Result<Option<Box<dyn Inbox>>, Error> {
        Ok(None)
    }

    /// Waits for everything on a stream.
    fn synchronize(&self, stream: StreamHandle) -> Result<(), Error>;

    /// Makes what is launched on `after` from now on wait for what was launched on `before` until now. Where one of them is being
    /// captured, nothing does.
    fn order(&self, before: StreamHandle, after: StreamHandle) -> Result<Order, Error>;

    /// Loads machine code or PTX.
    fn load(&self, image: &Image) -> Result<Arc<dyn Module>, LoadError>;

    /// Launches on a stream and returns at once.
    ///
    /// # Safety
    /// The arguments are those of the kernel, and the memory that they point to is as large as the kernel
    /// takes it to be and lives until the launch has finished.
    unsafe fn launch(&self, launch: Launch<'_>, stream: StreamHandle) -> Result<(), Error>;

    /// Does `work`, which launches on the default stream, `untimed` and then so many `times`, one after the other, and says what
    /// each of these took. A GPU is timed by events around all of them, in milliseconds, and begins when all are queued, so that
    /// it does not wait for the host. A device that says [`Backend::counts_cost`] gives what the launches counted, which is the same
    /// every time.
    fn time(
        &self,
        untimed: u32,
        times: u32,
        work: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<f64, Error>;

    /// Whether [`Backend::time`] counts instead of timing.
    fn counts_cost(&self) -> bool {
        false
    }
}

/// Where kernels on the default stream write numbers for the host, and then one behind them that is not 0.
pub(crate) trait Inbox: Debug + Send {
    /// Where they write.
    fn address(&self) -> u64;

    /// Forgets what was written, before the next kernel that writes is launched.
    fn clear(&mut self) -> Result<(), Error>;

    /// Waits until all was written, and gives the numbers.
    fn wait(&mut self, numbers: &mut [u64]) -> Result<(), Error>;
}

/// An inbox for so many numbers: of the host, so that nobody waits for a copy, or else of the device.
pub(crate) fn inbox(backend: &Arc<dyn Backend>, numbers: usize) -> Result<Box<dyn Inbox>, Error> {
    if let Some(shared) = backend.shared_inbox(numbers)? {
        return Ok(shared);
    }
    let bytes = (numbers as u64 + 1) * 8;
    Ok(Box::new(DeviceInbox(Allocation::new(backend, bytes, "the counts that the host reads back")?)))
}

#[derive(Debug)]
struct DeviceInbox(Allocation);

impl Inbox for DeviceInbox {
    fn address(&self) -> u64 {
        self.0.address
    }

    fn clear(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn wait(&mut self, numbers: &mut [u64]) -> Result<(), Error> {
        // SAFETY: the memory was made for as many numbers; reading waits for the kernels.
        unsafe { self.0.backend.read(as_bytes_mut(numbers), self.0.address) }
    }
}

/// Why an artifact was not loaded.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// The device does not accept the image; another compile may help.
    Rejected(Error),
    /// Something else went wrong.
    Failed(Error),
}

/// A loaded module; unloaded when dropped.
pub(crate) trait Module: Debug + Send + Sync {
    fn function(&self, name: &str) -> Result<Function, Error>;

    /// Lets launches of a pass's kernel, of any module of the device, have the shared memory that the pass asks for; the error
    /// says what the device has.
    fn allow_shared(&self, function: Function, pass: &Pass) -> Result<(), Error>;

    /// Blocks of a kernel, of any module of the device, that are resident on one multiprocessor at a time.
    fn resident_blocks(&self, function: Function, threads: u32, shared_bytes: u32) -> Result<u32, Error>;
}

/// The modules of an artifact's images as one.
#[derive(Debug)]
struct Modules {
    artifact: Arc<Artifact>,
    modules: Vec<Arc<dyn Module>>,
}

/// One module that has the kernels of all images.
pub(crate) fn together(artifact: &Arc<Artifact>, mut modules: Vec<Arc<dyn Module>>) -> Arc<dyn Module> {
    match modules.len() {
        1 => modules.remove(0),
        _ => Arc::new(Modules { artifact: artifact.clone(), modules }),
    }
}

impl Module for Modules {
    fn function(&self, name: &str) -> Result<Function, Error> {
        // Modules that have it not are not asked: tools that watch the driver would report that as an error.
        let entry = format!(".entry {name}(");
        let image = self.artifact.images.iter().position(|image| image.ptx.contains(&entry));
        let image = image.ok_or_else(|| Error::MissingKernel { kernel: name.to_owned() })?;
        self.modules[image].function(name)
    }

    fn allow_shared(&self, function: Function, pass: &Pass) -> Result<(), Error> {
        self.modules[0].allow_shared(function, pass)
    }

    fn resident_blocks(&self, function: Function, threads: u32, shared_bytes: u32) -> Result<u32, Error> {
        self.modules[0].resident_blocks(function, threads, shared_bytes)
    }
}

/// Device memory that is freed when dropped.
#[derive(Debug)]
pub(crate) struct Allocation {
    backend: Arc<dyn Backend>,
    address: u64,
}

impl Allocation {
    /// `bytes` of device memory; an error says how much was needed and free, and for `what`.
    pub(crate) fn new(backend: &Arc<dyn Backend>, bytes: u64, what: &str) -> Result<Allocation, Error> {
        if bytes == 0 {
            return Ok(Allocation { backend: backend.clone(), address: 0 });
        }
        let address = backend.allocate(bytes).map_err(|error| match error {
            Error::OutOfMemory { free, .. } => {
                Error::OutOfMemory { what: what.to_owned(), needed: bytes, free }
            }
            other => other,
        })?;
        Ok(Allocation { backend: backend.clone(), address })
    }

    /// As [`Allocation::new`], holding `source`.
    pub(crate) fn holding<T: Bytes>(
        backend: &Arc<dyn Backend>,
        source: &[T],
        what: &str,
    ) -> Result<Allocation, Error> {
        let bytes = as_bytes(source);
        let allocation = Self::new(backend, bytes.len() as u64, what)?;
        if !bytes.is_empty() {
            // SAFETY: the allocation was made for exactly these bytes.
            unsafe { backend.write(allocation.address, bytes)? };
        }
        Ok(allocation)
    }

    /// As [`Allocation::new`], all bytes zero.
    pub(crate) fn zeroed(backend: &Arc<dyn Backend>, bytes: u64, what: &str) -> Result<Allocation, Error> {
        let allocation = Self::new(backend, bytes, what)?;
        if bytes > 0 {
            // SAFETY: the allocation was made for exactly these bytes.
            unsafe { backend.zero(allocation.address, bytes)? };
        }
        Ok(allocation)
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Frees the memory now; nothing is left of the allocation.
    pub(crate) fn release(&mut self) {
        let address = std::mem::take(&mut self.address);
        if address != 0 {
            // SAFETY: the address was allocated by this backend, and nothing else frees it any more.
            unsafe { self.backend.free(address) };
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.release();
    }
}

/// Types without padding of which every bit pattern is valid, or every one that a kernel stores.
///
/// # Safety
/// Implemented for plain numbers, for two of them without anything between, and for truth values, which kernels store as
/// 0 or 1.
pub unsafe trait Bytes: Copy {}

// SAFETY: plain numbers have no padding, and every bit pattern is one of them.
unsafe impl Bytes for u16 {}
// SAFETY: as above.
unsafe impl Bytes for u32 {}
// SAFETY: as above.
unsafe impl Bytes for u64 {}
// SAFETY: as above.
unsafe impl Bytes for spmv_matrix::f16 {}
// SAFETY: as above.
unsafe impl Bytes for spmv_matrix::bf16 {}
// SAFETY: as above.
unsafe impl Bytes for f32 {}
// SAFETY: as above.
unsafe impl Bytes for f64 {}
// SAFETY: as above.
unsafe impl Bytes for i8 {}
// SAFETY: as above.
unsafe impl Bytes for i32 {}
// SAFETY: as above.
unsafe impl Bytes for i64 {}
// SAFETY: two numbers of one size, in `repr(C)`.
unsafe impl Bytes for spmv_matrix::Complex32 {}
// SAFETY: as above.
unsafe impl Bytes for spmv_matrix::Complex64 {}
// SAFETY: a byte; what is read into one was copied from a `bool` or stored by a kernel as a `bool`.
unsafe impl Bytes for bool {}

pub(crate) fn as_bytes<T: Bytes>(slice: &[T]) -> &[u8] {
    // SAFETY: `Bytes` promises that there is no padding; the length is that of the slice in bytes.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), size_of_val(slice)) }
}

pub(crate) fn as_bytes_mut<T: Bytes>(slice: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `as_bytes`, and every bit pattern that a device gives for a `T` is a valid one.
    unsafe { std::slice::from_raw_parts_mut(slice.as_mut_ptr().cast(), size_of_val(slice)) }
}
