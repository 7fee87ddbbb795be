use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = dasp, combine = |a, x| (a - x).abs())]
pub struct Kernel;

fn main() {}
