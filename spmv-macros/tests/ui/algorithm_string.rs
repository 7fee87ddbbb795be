use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = "csr_vector", value = "f32", accumulator = "double")]
pub struct Kernel;

fn main() {}
