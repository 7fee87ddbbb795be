use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector)]
#[spmv_kernel(algorithm = csr_scalar)]
pub struct Kernel;

fn main() {}
