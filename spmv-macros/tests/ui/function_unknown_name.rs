use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, combine = |a, x| a * z)]
pub struct Kernel;

fn main() {}
