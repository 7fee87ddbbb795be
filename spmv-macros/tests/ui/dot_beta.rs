use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, beta = 1, dot = |row, result| result * result)]
pub struct Kernel;

fn main() {}
