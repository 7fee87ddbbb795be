use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = , value = f16)]
pub struct Kernel;

fn main() {}
