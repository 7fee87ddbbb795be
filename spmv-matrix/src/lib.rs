//! Sparse matrices on the host.
//!
//! - [`CsrMatrix`], [`CscMatrix`] and [`CooMatrix`], checked when they are made, and [`SymmetricCsr`] for one triangle;
//! - [`mod@format`]: other ways to store one, each with what it takes known before;
//! - [`matrix_market`]: a parallel reader and writer that stay calm on hostile files;
//! - [`scipy`]: SciPy's `.npz` files, read and written;
//! - [`generate`]: matrices of the usual classes, the same for a seed on every machine;
//! - [`Statistics`]: what there is to know about a structure in one pass;
//! - [`cpu_serial`] and [`cpu_parallel`]: y ← α·A·x + β·y;
//! - [`cpu_semiring`]: the product over another semiring, shortest paths and the like;
//! - [`cpu_operators`]: the product with what the user writes: operators, maps, an epilogue; [`cpu_dot`]: its dot;
//! - [`Reference`] and [`verify`]: a product in doubled precision and the bound it sets on others.
//!
//! The features `sprs`, `nalgebra-sparse` and `faer` turn these matrices into those of other libraries and back, without a
//! copy where the layout allows it.
//!
//! ```
//! use spmv_matrix::{CooMatrix, cpu_parallel};
//!
//! let a = CooMatrix::new(2, 3, vec![0, 0, 0, 1], vec![0, 1, 2, 1], vec![1.0, 3.0, 2.0, 5.0])?.to_csr::<u32>()?;
//! let mut y = [f64::NAN; 2];
//! cpu_parallel(1.0, &a, &[2.0, 1.0, 4.0], 0.0, &mut y)?;
//! assert_eq!(y, [13.0, 5.0]);
//! # Ok::<(), spmv_matrix::MatrixError>(())
//! ```
//!
//! # Semantics
//!
//! β = 0 stores, so NaN in y disappears; α = 0 leaves β·y, so NaN in A or x does not matter. Empty rows and
//! matrices without columns still scale y. Columns may be in any order within a row, entries of the same
//! row and column add, and stored zeros are entries like others.
#![deny(missing_docs)]

mod assemble;
mod coo;
mod csc;
mod csr;
mod error;
mod exact_sum;
mod features;
pub mod format;
pub mod generate;
#[cfg(any(feature = "sprs", feature = "nalgebra-sparse", feature = "faer"))]
pub mod interop;
pub mod matrix_market;
mod operators;
mod parallel;
mod product;
mod reference;
#[doc(hidden)]
pub mod replace;
mod scalar;
pub mod scipy;
mod semiring;
mod statistics;
mod symmetric;

pub use half::{bf16, f16};
pub use num_complex::{Complex32, Complex64};
pub use spmv_codegen::{IndexType, Semiring, ValueType};

pub use crate::coo::CooMatrix;
pub use crate::csc::CscMatrix;
pub use crate::csr::CsrMatrix;
pub use crate::error::MatrixError;
pub use crate::exact_sum::ExactSum;
pub use crate::features::{features, features_of_transpose};
pub use crate::operators::{EpilogueOperand, cpu_dot, cpu_operators, reference_over_operators};
pub use crate::product::{cpu_parallel, cpu_serial};
pub use crate::reference::{
    Reference, Verification, reference, reference_of_complex, reference_of_integers, underflow, verify,
    verify_of_complex,
};
pub use crate::scalar::{Entry, Number, Offset, Value};
pub use crate::semiring::{Accumulate, cpu_semiring, reference_over_semiring};
pub use crate::statistics::Statistics;
pub use crate::symmetric::{SymmetricCsr, Symmetry, cpu_serial_symmetric};

/// The most rows or columns a matrix may have: 2³¹ − 1, so that indices fit in signed 32-bit integers too.
pub const MAX_DIMENSION: usize = i32::MAX as usize;

/// Most entries of a row: kernels count them, and the steps that they fill, in 32 bits.
pub const MAX_ROW_NNZ: u32 = u32::MAX - 1023;
