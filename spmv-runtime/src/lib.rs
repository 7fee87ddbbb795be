//! Sparse matrix–vector products y ← α·op(A)·x + β·y with kernels that are generated for one configuration,
//! compiled by NVRTC at run time and cached.
//!
//! - [`Device`]: a CUDA device, its own or in the user's context, or the embedded simulator;
//! - [`Vector`] and [`DeviceMatrix`]: data on it;
//! - [`Spmv`]: the plan for one matrix, and the product;
//! - [`planner`] and [`tuning`]: kernels that nobody names, chosen by what is predicted and by what is measured;
//! - [`spmv_kernel`]: declares a kernel in a line, [`Plan`] runs it with its types known to the compiler;
//! - [`Compiler`] and [`cache`]: machine code for any architecture, with or without a device.
//!
//! What the other packages offer is here too: [`codegen`] and [`matrix`].

mod artifact;
mod backend;
pub mod cache;
mod compiler;
mod cuda;
mod declared;
mod device;
mod error;
mod factor;
mod fingerprint;
mod health;
mod launcher;
mod library;
mod matrix_source;
mod nvrtc;
mod operands;
pub mod planner;
mod prepare;
mod scalar;
mod simulator;
mod split;
mod spmv;
#[cfg(test)]
mod tests;
pub mod tuning;
mod vector;

/// cudarc, for contexts, streams and slices of the version that this crate was built with.
pub use cudarc;
/// The embedded device.
pub use ptx_sim;
/// Configurations and programs.
pub use spmv_codegen as codegen;
/// Matrices on the host.
pub use spmv_matrix as matrix;

pub use spmv_codegen::*;
pub use spmv_macros::spmv_kernel;

pub use artifact::{Artifact, CompileRequest, Image, KernelResources};
pub use backend::DeviceProperties;
pub use compiler::{Compiler, Origin, Provenance};
pub use cuda::{devices, driver_version};
pub use declared::{DeclaredKernel, Plan};
pub use device::{Device, Kernel, Stream};
pub use error::{Error, ErrorKind};
pub use factor::Factor;
pub use fingerprint::Fingerprint;
pub use library::{FoundBy, data_folder};
pub use matrix_source::{DeviceMatrix, DeviceOffset, MatrixSource};
pub use nvrtc::{CompileError, NVRTC_VARIABLE, Nvrtc, NvrtcError, Version};
pub use planner::Constraints;
pub use scalar::{Element, RealElement, Scalar};
pub use spmv::Spmv;
pub use tuning::{Budget, Tuned};
pub use vector::Vector;

/// The README's example compiles as it is written.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
