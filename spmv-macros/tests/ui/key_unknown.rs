use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, block_size = 128)]
pub struct Kernel;

fn main() {}
