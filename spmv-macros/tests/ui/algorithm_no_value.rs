use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = , value = i16)]
pub struct Kernel;

fn main() {}
