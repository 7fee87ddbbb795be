use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_scalar, crate: spmv_runtime)]
pub struct Colon;

#[spmv_kernel(algorithm = csr_scalar, crate spmv_runtime)]
pub struct Nothing;

#[spmv_kernel(algorithm = csr_scalar, crate = Vec<f32>)]
pub struct Type;

#[spmv_kernel(algorithm = csr_scalar, crate = ::spmv_runtime, crate = ::spmv_runtime)]
pub struct Twice;

fn main() {}
