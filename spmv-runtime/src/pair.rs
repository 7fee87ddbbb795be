//! Products with a matrix and with its transpose, from one copy of it.

use spmv_codegen::{KernelConfig, Operation};

use crate::device::{Device, Stream};
use crate::error::Error;
use crate::matrix_source::MatrixSource;
use crate::scalar::{Element, Scalar};
use crate::spmv::Spmv;
use crate::vector::Vector;

/// A plan for y ← α·A·x + β·y and y ← α·Aᵀ·x + β·y, what least squares, BiCG and HITS ask for. A is on the device once;
/// each of the two kernels has a workspace of its own.
///
/// ```no_run
/// use spmv_runtime::{Device, KernelConfig, SpmvPair, Vector, matrix::CooMatrix};
///
/// let a = CooMatrix::new(2, 3, vec![0, 0, 0, 1], vec![0, 1, 2, 1], vec![1.0f32, 3.0, 2.0, 5.0])?.to_csr::<u32>()?;
/// let device = Device::open()?;
/// let named = |algorithm| KernelConfig::named(algorithm)?.build();
/// let mut a = SpmvPair::with(&device, &a, named("csr_vector")?, named("hola_t")?)?;
/// let mut y = Vector::<f32>::zeros(&device, 2)?;
/// a.apply(1.0, &Vector::from_slice(&device, &[2.0f32, 1.0, 4.0])?, 0.0, &mut y)?;
/// assert_eq!(y.to_vec()?, [13.0, 5.0]);
/// let mut z = Vector::<f32>::zeros(&device, 3)?;
/// a.apply_transpose(1.0, &y, 0.0, &mut z)?;
/// assert_eq!(z.to_vec()?, [13.0, 64.0, 26.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SpmvPair {
    plain: Spmv,
    transposed: Spmv,
}

impl SpmvPair {
    /// Makes the plan: `config` for the products with A, `config_t` for those with Aᵀ. For a matrix in CSC the first is
    /// that of a transposed product of its arrays and the second is not.
    ///
    /// # Errors
    /// Those of [`Spmv::with_operation`]; [`Error::ValueType`] and [`Error::OffsetType`] where the configurations differ
    /// in the types that the matrix is stored with.
    pub fn with(
        device: &Device,
        a: &impl MatrixSource,
        config: KernelConfig,
        config_t: KernelConfig,
    ) -> Result<SpmvPair, Error> {
        let plain = Spmv::with_operation(device, a, Operation::NonTranspose, config)?;
        let transposed = Spmv::with_operation(device, plain.matrix(), Operation::Transpose, config_t)?;
        Ok(SpmvPair { plain, transposed })
    }

    /// y ← α·A·x + β·y, as [`Spmv::apply`].
    ///
    /// # Errors
    /// Those of [`Spmv::apply`].
    pub fn apply<X: Element, Y: Element>(
        &mut self,
        alpha: impl Into<Scalar>,
        x: &Vector<X>,
        beta: impl Into<Scalar>,
        y: &mut Vector<Y>,
    ) -> Result<(), Error> {
        self.plain.apply(alpha, x, beta, y)
    }

    /// y ← α·Aᵀ·x + β·y, as [`Spmv::apply`].
    ///
    /// # Errors
    /// Those of [`Spmv::apply`].
    pub fn apply_transpose<X: Element, Y: Element>(
        &mut self,
        alpha: impl Into<Scalar>,
        x: &Vector<X>,
        beta: impl Into<Scalar>,
        y: &mut Vector<Y>,
    ) -> Result<(), Error> {
        self.transposed.apply(alpha, x, beta, y)
    }

    /// y ← α·A·x + β·y on a stream of the user's, as [`Spmv::apply_on`].
    ///
    /// # Errors
    /// Those of [`Spmv::apply_on`].
    pub fn apply_on<X: Element, Y: Element>(
        &mut self,
        stream: &Stream,
        alpha: impl Into<Scalar>,
        x: &Vector<X>,
        beta: impl Into<Scalar>,
        y: &mut Vector<Y>,
    ) -> Result<(), Error> {
        self.plain.apply_on(stream, alpha, x, beta, y)
    }

    /// y ← α·Aᵀ·x + β·y on a stream of the user's, as [`Spmv::apply_on`].
    ///
    /// # Errors
    /// Those of [`Spmv::apply_on`].
    pub fn apply_transpose_on<X: Element, Y: Element>(
        &mut self,
        stream: &Stream,
        alpha: impl Into<Scalar>,
        x: &Vector<X>,
        beta: impl Into<Scalar>,
        y: &mut Vector<Y>,
    ) -> Result<(), Error> {
        self.transposed.apply_on(stream, alpha, x, beta, y)
    }

    /// The plan for A.
    pub fn plain(&self) -> &Spmv {
        &self.plain
    }

    /// The plan for Aᵀ.
    pub fn transposed(&self) -> &Spmv {
        &self.transposed
    }
}
