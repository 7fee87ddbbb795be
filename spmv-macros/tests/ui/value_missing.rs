use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, threads_per_vector, value =, beta =)]
pub struct Kernel;

fn main() {}
