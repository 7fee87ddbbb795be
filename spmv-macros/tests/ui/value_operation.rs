use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, operation = transpose)]
pub struct Kernel;

fn main() {}
