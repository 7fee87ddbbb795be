use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_scalar, crate, value = i16)]
pub struct Kernel;

fn main() {}
