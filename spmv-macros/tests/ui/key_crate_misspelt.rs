use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, crat = spmv_runtime)]
pub struct Kernel;

fn main() {}
