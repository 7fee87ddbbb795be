use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, combine = |a, x| a * x as f64)]
pub struct Kernel;

fn main() {}
