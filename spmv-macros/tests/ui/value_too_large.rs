use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, threads_per_vector = 4294967304)]
pub struct Kernel;

fn main() {}
