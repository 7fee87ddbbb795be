use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, alpha = 1.0, beta = 0f32)]
pub struct Kernel;

fn main() {}
