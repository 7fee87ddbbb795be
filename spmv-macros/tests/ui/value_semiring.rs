use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, semiring = min_times)]
pub struct Kernel;

fn main() {}
