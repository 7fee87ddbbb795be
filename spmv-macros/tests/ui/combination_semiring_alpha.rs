use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, semiring = min_plus, alpha = -1)]
pub struct Kernel;

fn main() {}
