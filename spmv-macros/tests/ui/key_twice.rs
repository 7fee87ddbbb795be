use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, value = f32, value = f64, algorithm = csr_scalar)]
pub struct Kernel;

fn main() {}
