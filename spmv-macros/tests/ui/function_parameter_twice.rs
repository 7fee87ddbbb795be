use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, combine = |a, a| a)]
pub struct Kernel;

fn main() {}
