use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, types.value = f32, scaling::alpha = 1)]
pub struct Kernel;

fn main() {}
