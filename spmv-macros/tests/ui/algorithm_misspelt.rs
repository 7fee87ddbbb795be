use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vectr, threads_per_vector = 5, unroll = 4)]
pub struct Kernel;

fn main() {}
