//! Generates CUDA C++ for one sparse matrix–vector product y ← α·op(A)·x + β·y.
//!
//! A [`KernelConfig`] names an algorithm, its parameters, the types, the operation and what is known of α and β.
//! [`KernelConfig::program`] turns it into a [`Program`]: CUDA text, the passes that run it, the workspace they
//! need and what is guaranteed of the result. The crate is pure: no I/O, no GPU, no clock, no environment. The
//! `spmv-runtime` crate compiles and runs programs; `spmv-macros` generates them while Rust compiles.
//!
//! ```
//! use spmv_codegen::{KernelConfig, LightVector, ValueType};
//!
//! let config = KernelConfig::builder(LightVector { threads_per_vector: 16, ..LightVector::default() })
//!     .value(ValueType::F32)
//!     .accumulator(ValueType::F64)
//!     .build()?;
//! let program = config.program();
//! assert_eq!(program.multiply[0].kernel, "spmv_light_vector");
//! assert!(program.guarantees.bit_reproducible);
//! # Ok::<(), spmv_codegen::ConfigError>(())
//! ```
//!
//! # Adding an algorithm
//!
//! Write `templates/<name>.cu` with its header, `src/algorithm/<name>.rs` with its parameters and passes, and
//! one line in `algorithms!`. Everything else reads [`Algorithm::ALL`].

mod algorithm;
mod analysis;
mod config;
mod copies;
mod diagonals;
mod dot;
mod error;
mod expr;
mod features;
mod fingerprint;
pub mod function;
mod jagged_diagonals;
mod operators;
mod parameter;
mod planning;
mod primitive;
mod program;
mod semiring;
mod shared_memory;
mod source;
mod special_layout;
mod transposed;
mod types;
mod user;
mod vector;

pub use algorithm::*;
pub use analysis::AnalysisProgram;
pub use config::{
    COMMON_KEYS, Coefficient, CommonKey, ConfigError, KernelConfig, KernelConfigBuilder, Loads, Scaling,
    Types,
};
pub use error::UnknownName;
pub use expr::{Expr, Variable};
pub use features::{Degrees, Features, Lengths, SampledValues, Samples};
pub use fingerprint::FingerprintProgram;
pub use operators::Operators;
pub use parameter::ParameterSpec;
pub use program::{Arg, Buffer, Count, Guarantees, Misfits, Operand, Pass, Program, Slots};
pub use semiring::{Semiring, SemiringNumber};
pub use special_layout::{SpecialLayout, special_layout};
pub use types::{IndexType, Operation, StorageFormat, ValueKind, ValueType};
pub use user::{FUNCTION_KEYS, FunctionKey, UserFunctions};
pub use vector::{VectorOp, VectorProgram};
