use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, identity = 0.0)]
pub struct Kernel;

fn main() {}
