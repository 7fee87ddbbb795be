use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, combine = |a, x| a.powi(x))]
pub struct Kernel;

fn main() {}
