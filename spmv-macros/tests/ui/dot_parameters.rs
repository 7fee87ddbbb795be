use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, dot = |result| result * result)]
pub struct Kernel;

fn main() {}
