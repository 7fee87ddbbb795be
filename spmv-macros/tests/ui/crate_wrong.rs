use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_scalar, crate = crate::nowhere)]
pub struct Kernel;

fn main() {}
