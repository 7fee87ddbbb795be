use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr-vector)]
pub struct Kernel;

fn main() {}
