use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_scalar, crate, value = f46)]
pub struct Kernel;

fn main() {}
