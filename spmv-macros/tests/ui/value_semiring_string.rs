use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, semiring = "min_plus")]
pub struct Kernel;

fn main() {}
