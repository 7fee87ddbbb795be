use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = naive_t, dot = |row, result| result * result)]
pub struct Kernel;

fn main() {}
