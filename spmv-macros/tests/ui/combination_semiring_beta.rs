use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, semiring = or_and, beta = -1)]
pub struct Kernel;

fn main() {}
