use spmv_runtime::spmv_kernel;

#[spmv_kernel(threads_per_block = 128, value = f64)]
pub struct Kernel;

fn main() {}
