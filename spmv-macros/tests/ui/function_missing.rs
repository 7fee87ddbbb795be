use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, combine =)]
pub struct Kernel;

fn main() {}
