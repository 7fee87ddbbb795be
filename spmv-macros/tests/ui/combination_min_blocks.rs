use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_scalar, threads_per_block = 1024, min_blocks = 4)]
pub struct Kernel;

fn main() {}
