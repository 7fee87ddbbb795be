use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, combine = |a, x| a.gamma(x))]
pub struct Kernel;

fn main() {}
