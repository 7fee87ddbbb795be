use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector value = f64 threads_per_vector = 3)]
pub struct Kernel;

fn main() {}
