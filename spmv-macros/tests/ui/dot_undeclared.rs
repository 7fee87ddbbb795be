use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, dot = |row, result, p| result * p)]
pub struct Kernel;

fn main() {}
