use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, thread_per_vector = 8, treads_per_block = 128)]
pub struct Kernel;

fn main() {}
