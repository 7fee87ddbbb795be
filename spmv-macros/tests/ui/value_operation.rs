use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = naive_t, operation = non_transpose)]
pub struct Kernel;

fn main() {}
