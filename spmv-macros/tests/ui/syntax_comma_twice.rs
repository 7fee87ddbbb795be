use spmv_runtime::spmv_kernel;

#[spmv_kernel(, algorithm = csr_vector,, value = f32)]
pub struct Kernel;

fn main() {}
