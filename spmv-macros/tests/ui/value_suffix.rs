use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, threads_per_vector = 8u32, threads_per_block = 100usize)]
pub struct Kernel;

fn main() {}
