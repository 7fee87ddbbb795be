use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = ellpack)]
pub struct Kernel;

fn main() {}
