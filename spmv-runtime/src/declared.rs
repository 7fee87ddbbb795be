//! Kernels declared with `#[spmv_kernel]`: the same plan, with its types known to the compiler.

use std::marker::PhantomData;

use spmv_codegen::KernelConfig;

use crate::device::{Device, Stream};
use crate::error::Error;
use crate::factor::Factor;
use crate::matrix_source::MatrixSource;
use crate::scalar::{Element, Scalar};
use crate::spmv::Spmv;
use crate::vector::Vector;

/// A kernel declared with [`#[spmv_kernel]`](crate::spmv_kernel). The attribute implements it.
pub trait DeclaredKernel {
    /// Type of the matrix values.
    type Value: Element;
    /// Type of the entries of x.
    type X: Element;
    /// Type of the entries of y.
    type Y: Element;
    /// Type in which rows are summed, and of α and β.
    type Accumulator: Element + Into<Scalar>;
    /// α of a product: a number, or a reference to a vector of one where the kernel reads it from device memory.
    type Alpha<'a>: Into<Factor<'a>>;
    /// β of a product, likewise.
    type Beta<'a>: Into<Factor<'a>>;
    /// The generated CUDA text.
    const SOURCE: &'static str;

    /// The configuration.
    fn config() -> KernelConfig;
}

/// The plan of a declared kernel for one matrix: an [`Spmv`] whose vectors and scalars have the declared types.
#[derive(Debug)]
pub struct Plan<K> {
    spmv: Spmv,
    kernel: PhantomData<K>,
}

impl<K: DeclaredKernel> Plan<K> {
    /// Makes the plan for `a` on `device`.
    ///
    /// # Errors
    /// Those of [`Spmv::with`].
    pub fn new(device: &Device, a: &impl MatrixSource) -> Result<Self, Error> {
        Ok(Plan { spmv: Spmv::with(device, a, K::config())?, kernel: PhantomData })
    }

    /// y ← α·op(A)·x + β·y, as [`Spmv::apply`].
    ///
    /// # Errors
    /// Those of [`Spmv::apply`].
    pub fn apply<'a>(
        &mut self,
        alpha: K::Alpha<'a>,
        x: &Vector<K::X>,
        beta: K::Beta<'a>,
        y: &mut Vector<K::Y>,
    ) -> Result<(), Error> {
        self.spmv.apply(alpha, x, beta, y)
    }

    /// As [`Plan::apply`], on a stream of the user's, as [`Spmv::apply_on`].
    ///
    /// # Errors
    /// Those of [`Spmv::apply_on`].
    pub fn apply_on<'a>(
        &mut self,
        stream: &Stream,
        alpha: K::Alpha<'a>,
        x: &Vector<K::X>,
        beta: K::Beta<'a>,
        y: &mut Vector<K::Y>,
    ) -> Result<(), Error> {
        self.spmv.apply_on(stream, alpha, x, beta, y)
    }

    /// Binds a vector to the parameter of this name of the kernel's epilogue or dot, as [`Spmv::set_vector`].
    ///
    /// # Errors
    /// Those of [`Spmv::set_vector`].
    pub fn set_vector(&mut self, name: &str, vector: &Vector<K::Y>) -> Result<(), Error> {
        self.spmv.set_vector(name, vector)
    }

    /// Binds a number to the parameter of this name of the kernel's epilogue or dot, as [`Spmv::set_scalar`].
    ///
    /// # Errors
    /// Those of [`Spmv::set_scalar`].
    pub fn set_scalar(&mut self, name: &str, number: K::Accumulator) -> Result<(), Error> {
        self.spmv.set_scalar(name, number)
    }

    /// What the kernel's dot added up in the last product, as [`Spmv::dot`].
    pub fn dot(&self) -> Option<&Vector<f64>> {
        self.spmv.dot()
    }

    /// Copies the matrix's values again where they were replaced, as [`Spmv::refresh`].
    ///
    /// # Errors
    /// Those of [`Spmv::refresh`].
    pub fn refresh(&mut self) -> Result<(), Error> {
        self.spmv.refresh()
    }

    /// The plan without its types.
    pub fn as_spmv(&self) -> &Spmv {
        &self.spmv
    }
}
