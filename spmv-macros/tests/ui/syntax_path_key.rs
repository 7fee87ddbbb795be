use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, types.value = f32, types::x = f32)]
pub struct Kernel;

fn main() {}
