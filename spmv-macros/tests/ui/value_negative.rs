use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, threads_per_vector = -8, beta = -1, alpha = -2)]
pub struct Kernel;

fn main() {}
