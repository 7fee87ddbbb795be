//! Dense vectors on a device, and the operations that an iterative solver needs beside the product.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::{Arc, PoisonError};

use cudarc::driver::{CudaSlice, DevicePtr};
use spmv_codegen::{ValueKind, VectorOp};
use spmv_matrix::Complex64;

use crate::backend::{Allocation, StreamHandle, as_bytes, as_bytes_mut};
use crate::device::Device;
use crate::error::Error;
use crate::launcher::{Bindings, BoundPass, Operands};
use crate::scalar::{Element, Scalar};

/// A dense vector in device memory. All operations run on the device's own stream, in order; those that
/// return a number, and copies to the host, wait for it.
pub struct Vector<T> {
    device: Device,
    address: u64,
    len: usize,
    owner: Arc<Owner>,
    entries: PhantomData<T>,
}

/// Whose memory it is; held to keep it alive.
pub(crate) enum Owner {
    Ours(#[expect(dead_code, reason = "held for its Drop")] Allocation),
    Users(#[expect(dead_code, reason = "held for its Drop")] Box<dyn Any + Send + Sync>),
    Borrowed,
}

/// Memory that cudarc allocated, and frees in the order of its own stream, which knows nothing of products on others: so these
/// are waited for first.
struct UsersSlice<T>(ManuallyDrop<CudaSlice<T>>);

impl<T> Drop for UsersSlice<T> {
    fn drop(&mut self) {
        let context = self.0.context();
        // A first call may return the error of a drop before it, which cudarc keeps until then.
        match context.synchronize().or_else(|_| context.synchronize()) {
            // SAFETY: the slice is dropped once, here.
            Ok(()) => unsafe { ManuallyDrop::drop(&mut self.0) },
            Err(error) => {
                tracing::warn!(%error, "memory of a vector stays allocated: what uses it could not be waited for");
            }
        }
    }
}

impl<T> fmt::Debug for Vector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vector of {} {} on {:?}", self.len, std::any::type_name::<T>(), self.device.backend())
    }
}

impl<T: Element> Vector<T> {
    /// A vector of zeros. Waits until they are there, for any stream.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Fault`].
    pub fn zeros(device: &Device, len: usize) -> Result<Self, Error> {
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        let allocation = Allocation::zeroed(device.backend(), bytes, "a vector")?;
        device.synchronize()?;
        Ok(Self::in_allocation(device, len, allocation))
    }

    /// A vector with these entries.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn from_slice(device: &Device, entries: &[T]) -> Result<Self, Error> {
        Ok(Self::in_allocation(
            device,
            entries.len(),
            Allocation::holding(device.backend(), entries, "a vector")?,
        ))
    }

    /// A vector in memory that cudarc allocated. What was launched on the slice's stream before is waited for, and whatever runs
    /// in its context before it is freed.
    ///
    /// # Errors
    /// [`Error::OtherDevice`] where the slice belongs to another context than the device.
    pub fn from_cuda_slice(device: &Device, slice: CudaSlice<T>) -> Result<Self, Error>
    where
        CudaSlice<T>: Send + Sync + 'static,
    {
        if device.as_cuda().is_none_or(|(context, _)| context != slice.context()) {
            return Err(Error::OtherDevice { what: "the slice", with: "the device" });
        }
        let stream = slice.stream().clone();
        // The slice's stream waits for what cudarc knows others to have written.
        let (address, len) = (slice.device_ptr(&stream).0, slice.len());
        device.stream(stream)?.synchronize()?;
        let owner = Owner::Users(Box::new(UsersSlice(ManuallyDrop::new(slice))));
        Ok(Vector { device: device.clone(), address, len, owner: Arc::new(owner), entries: PhantomData })
    }

    /// A vector in the user's own device memory, which is not freed.
    ///
    /// # Safety
    /// `address` points to `len` entries of type `T` in memory of `device`, aligned to the size of `T`. The
    /// memory outlives the vector and every product launched with it, and while one of those writes it nothing
    /// else reads or writes it.
    pub unsafe fn from_raw(device: &Device, address: u64, len: usize) -> Self {
        Vector {
            device: device.clone(),
            address,
            len,
            owner: Arc::new(Owner::Borrowed),
            entries: PhantomData,
        }
    }

    /// A vector of so many entries in memory that has room for them.
    pub(crate) fn in_allocation(device: &Device, len: usize, allocation: Allocation) -> Self {
        let address = allocation.address();
        Vector {
            device: device.clone(),
            address,
            len,
            owner: Arc::new(Owner::Ours(allocation)),
            entries: PhantomData,
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that holds the vector.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The address of the first entry in device memory.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// What keeps the memory.
    pub(crate) fn owner(&self) -> Arc<Owner> {
        self.owner.clone()
    }

    /// The entries, copied to the host. Waits for the device's own stream; synchronise other streams that
    /// write the vector first.
    ///
    /// # Errors
    /// [`Error::Fault`] where a kernel faulted.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let mut entries = vec![T::default(); self.len];
        self.copy_to_slice(&mut entries)?;
        Ok(entries)
    }

    /// As [`Vector::to_vec`], into a slice of the same length.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Fault`].
    pub fn copy_to_slice(&self, entries: &mut [T]) -> Result<(), Error> {
        check_length("the slice", self.len, entries.len())?;
        if self.len == 0 {
            return Ok(());
        }
        // SAFETY: the vector holds exactly these bytes.
        unsafe { self.device.backend().read(as_bytes_mut(entries), self.address) }
    }

    /// Overwrites the entries with those of a slice of the same length.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Fault`].
    pub fn copy_from_slice(&mut self, entries: &[T]) -> Result<(), Error> {
        check_length("the slice", self.len, entries.len())?;
        if self.len == 0 {
            return Ok(());
        }
        // SAFETY: the vector holds exactly these bytes.
        unsafe { self.device.backend().write(self.address, as_bytes(entries)) }
    }

    /// x ← α.
    ///
    /// # Errors
    /// Those of compiling and launching, here and in the other operations.
    pub fn fill(&mut self, alpha: T) -> Result<(), Error> {
        self.run(VectorOp::Fill, alpha.to_scalar(), self.address, 0, &[])
    }

    /// x ← α·x.
    ///
    /// # Errors
    /// As [`Vector::fill`].
    pub fn scale(&mut self, alpha: T) -> Result<(), Error> {
        self.run(VectorOp::Scale, alpha.to_scalar(), self.address, 0, &[])
    }

    /// Another vector with the same entries, in memory of its own.
    ///
    /// # Errors
    /// As [`Vector::zeros`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let mut copy = Self::zeros(&self.device, self.len)?;
        copy.copy_from(self)?;
        Ok(copy)
    }

    /// This vector becomes a copy of `x`.
    ///
    /// # Errors
    /// As [`Vector::fill`]; [`Error::Length`], [`Error::OtherDevice`].
    pub fn copy_from(&mut self, x: &Vector<T>) -> Result<(), Error> {
        self.check(x)?;
        self.run(VectorOp::Copy, Scalar::F64(0.0), x.address, self.address, &[])
    }

    /// y ← α·x + y, where y is this vector.
    ///
    /// # Errors
    /// As [`Vector::copy_from`].
    pub fn axpy(&mut self, alpha: T, x: &Vector<T>) -> Result<(), Error> {
        self.check(x)?;
        self.run(VectorOp::Axpy, alpha.to_scalar(), x.address, self.address, &[])
    }

    /// y ← α·y + x, where y is this vector: the next direction of a conjugate-gradient method.
    ///
    /// # Errors
    /// As [`Vector::copy_from`].
    pub fn aypx(&mut self, alpha: T, x: &Vector<T>) -> Result<(), Error> {
        self.check(x)?;
        self.run(VectorOp::Aypx, alpha.to_scalar(), x.address, self.address, &[])
    }

    /// y ← x · y, entry by entry, where y is this vector.
    ///
    /// # Errors
    /// As [`Vector::copy_from`].
    pub fn multiply(&mut self, x: &Vector<T>) -> Result<(), Error> {
        self.check(x)?;
        self.run(VectorOp::Multiply, Scalar::F64(0.0), x.address, self.address, &[])
    }

    /// The dot product with `y`, summed in double precision; of complex vectors the real part of it ([`Vector::dotc`]). The same
    /// vectors give the same bits in every run, on every device of one architecture.
    ///
    /// # Errors
    /// As [`Vector::copy_from`].
    pub fn dot(&self, y: &Vector<T>) -> Result<f64, Error> {
        self.check(y)?;
        self.reduce(VectorOp::Dot, 1.0, y.address)
    }

    /// conj(x)·y of complex vectors, where x is this vector, each part summed as by [`Vector::dot`]; of real ones the dot product.
    ///
    /// # Errors
    /// As [`Vector::copy_from`].
    pub fn dotc(&self, y: &Vector<T>) -> Result<Complex64, Error> {
        let re = self.dot(y)?;
        match T::TYPE.kind() {
            ValueKind::Complex => {
                Ok(Complex64::new(re, self.reduce(VectorOp::DotImaginary, 0.0, y.address)?))
            }
            _ => Ok(Complex64::new(re, 0.0)),
        }
    }

    /// As [`Vector::dot`], into the only entry of a vector: the number stays on the device, where a product whose sums are in f64
    /// may read it as α or β ([`Factor`](crate::Factor)), and nothing is waited for. Runs on the device's own stream, as all
    /// operations on vectors do; what reads the number on another one is the user's to order.
    ///
    /// The workspace is that of the device's handle and its clones, for all operations that give a number. They are one behind
    /// another on the device's own stream, except while that is being captured: order a captured graph against other dots, norms
    /// and [`amax`](Self::amax) by the same handle. The first of them compiles and allocates, so let one run before a capture.
    ///
    /// # Errors
    /// As [`Vector::copy_from`].
    pub fn dot_into(&self, y: &Vector<T>, result: &mut Vector<f64>) -> Result<(), Error> {
        self.check(y)?;
        check_length("the result", 1, result.len)?;
        if !self.device.is(&result.device) {
            return Err(Error::OtherDevice { what: "the result", with: "the vectors" });
        }
        let copied = |sum| result.run(VectorOp::Copy, Scalar::F64(0.0), sum, result.address, &[]);
        self.reduced(VectorOp::Dot, 1.0, y.address, copied)
    }

    /// The Euclidean norm, as reproducible as [`Vector::dot`]. Squares that would leave the range of double
    /// precision are scaled by a power of two.
    ///
    /// # Errors
    /// As [`Vector::fill`].
    pub fn norm(&self) -> Result<f64, Error> {
        /// Sums of squares in this range have lost nothing to underflow that rounding would have kept.
        const SAFE: std::ops::Range<f64> = 1e-280..1e300;
        let squares = self.reduce(VectorOp::Dot, 1.0, self.address)?;
        if SAFE.contains(&squares) || squares.is_nan() {
            return Ok(squares.sqrt());
        }
        let largest = self.amax()?;
        if largest == 0.0 || !largest.is_finite() {
            return Ok(largest);
        }
        // 2^-e with e the exponent of the largest entry, kept where both it and its inverse are normal.
        let scale = f64::exp2(-largest.log2().floor().clamp(-1000.0, 1000.0));
        Ok(self.reduce(VectorOp::Dot, scale, self.address)?.sqrt() / scale)
    }

    /// The largest magnitude, of complex entries that of a part; NaN where there is one, 0 where there are no entries.
    ///
    /// # Errors
    /// As [`Vector::fill`].
    pub fn amax(&self) -> Result<f64, Error> {
        self.reduce(VectorOp::Amax, 1.0, 0)
    }

    fn reduce(&self, op: VectorOp, factor: f64, y: u64) -> Result<f64, Error> {
        self.reduced(op, factor, y, |address| {
            let mut result = [0.0f64];
            // SAFETY: the result buffer holds one f64.
            unsafe { self.device.backend().read(as_bytes_mut(&mut result), address)? };
            Ok(result[0])
        })
    }

    /// Launches a reduction, and then what is to be done with the address of its result before another one takes its place.
    fn reduced<R>(
        &self,
        op: VectorOp,
        factor: f64,
        y: u64,
        then: impl FnOnce(u64) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut workspace = self.device.reduction_workspace().lock().unwrap_or_else(PoisonError::into_inner);
        let buffers = match &*workspace {
            Some(buffers) => buffers.clone(),
            None => {
                let kernels = self.device.vector_kernels(T::TYPE)?;
                let allocate = |buffer: &spmv_codegen::Buffer| {
                    let bytes = Bindings::default().eval(&buffer.bytes, || 0);
                    Allocation::new(self.device.backend(), bytes, buffer.name)
                };
                let buffers: Vec<_> =
                    kernels.program.buffers.iter().map(allocate).collect::<Result<_, _>>()?;
                workspace.insert(Arc::new(buffers)).clone()
            }
        };
        self.run(op, Scalar::F64(factor), self.address, y, &buffers)?;
        then(buffers[spmv_codegen::VectorProgram::RESULT].address())
    }

    fn run(&self, op: VectorOp, alpha: Scalar, x: u64, y: u64, buffers: &[Allocation]) -> Result<(), Error> {
        let kernels = self.device.vector_kernels(T::TYPE)?;
        let bindings = Bindings { length: self.len as u64, buffers, ..Bindings::default() };
        let operands = Operands { x, y, alpha: alpha.into(), ..Operands::default() };
        for pass in kernels.program.passes(op) {
            let mut bound = BoundPass::new(&pass, &*kernels.module, &bindings)?;
            // SAFETY: x, y and the workspace are alive and of the length that was bound. Memory is freed only
            // after what was launched has finished.
            unsafe { bound.launch(&**self.device.backend(), StreamHandle::default(), &operands)? };
        }
        Ok(())
    }

    fn check(&self, other: &Vector<T>) -> Result<(), Error> {
        if !self.device.is(&other.device) {
            return Err(Error::OtherDevice { what: "a vector", with: "the vector it is combined with" });
        }
        check_length("a vector", self.len, other.len)
    }
}

pub(crate) fn check_length(what: &'static str, expected: usize, got: usize) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::Length { what, expected, got }) }
}
