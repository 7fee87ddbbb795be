use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, threads_per_vector = 3, threads_per_block = 100)]
pub struct Kernel;

fn main() {}
