//! Kernels declared with `#[spmv_kernel]`: the same plan, with its types known to the compiler.

use std::fmt;
use std::marker::PhantomData;

use spmv_codegen::{KernelConfig, Operation};

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
pub struct Plan<K> {
    spmv: Spmv,
    kernel: PhantomData<K>,
}

/// A derived one would ask for kernels that can be printed too.
impl<K> fmt::Debug for Plan<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Plan").field(&self.spmv).finish()
    }
}

impl<K: DeclaredKernel> Plan<K> {
    /// Makes the plan for `a` on `device`.
    ///
    /// # Errors
    /// Those of [`Spmv::with`].
    pub fn new(device: &Device, a: &impl MatrixSource) -> Result<Self, Error> {
        Ok(Plan { spmv: Spmv::with(device, a, K::config())?, kernel: PhantomData })
    }

    /// As [`new`](Self::new), for this op(A): of a matrix in CSC, Aᵀ is what a kernel that is not for transposed products
    /// computes. BiCG declares two kernels for one copy of A on the device:
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use spmv_runtime::matrix::CscMatrix;
    /// use spmv_runtime::{Device, DeviceMatrix, IndexType, Operation, Plan, Vector, spmv_kernel};
    ///
    /// #[spmv_kernel(algorithm = naive_t)]
    /// struct Plain;
    ///
    /// #[spmv_kernel(algorithm = csr_vector)]
    /// struct Transposed;
    ///
    /// // [[1, 3, 2], [0, 5, 0]], column by column.
    /// let a = CscMatrix::new(2, 3, vec![0u32, 1, 3, 4], vec![0, 0, 1, 0], vec![1.0f32, 3.0, 5.0, 2.0])?;
    /// let device = Device::open()?;
    /// let a = Arc::new(DeviceMatrix::upload_csc(&device, &a, IndexType::U32)?);
    /// let mut plain = Plain::plan(&device, &a)?;
    /// let mut transposed = Plan::<Transposed>::with_operation(&device, &a, Operation::Transpose)?;
    /// let mut y = Vector::<f32>::zeros(&device, 2)?;
    /// plain.apply(1.0, &Vector::from_slice(&device, &[2.0f32, 1.0, 4.0])?, 0.0, &mut y)?;
    /// assert_eq!(y.to_vec()?, [13.0, 5.0]);
    /// let mut z = Vector::<f32>::zeros(&device, 3)?;
    /// transposed.apply(1.0, &y, 0.0, &mut z)?;
    /// assert_eq!(z.to_vec()?, [13.0, 64.0, 26.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Spmv::with_operation`].
    pub fn with_operation(
        device: &Device,
        a: &impl MatrixSource,
        operation: Operation,
    ) -> Result<Self, Error> {
        Ok(Plan { spmv: Spmv::with_operation(device, a, operation, K::config())?, kernel: PhantomData })
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
