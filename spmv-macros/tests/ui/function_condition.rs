use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, combine = |a, x| if a { x } else { 0.0 })]
pub struct Kernel;

fn main() {}
