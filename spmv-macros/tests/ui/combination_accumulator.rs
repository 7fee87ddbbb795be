use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, value = f64, accumulator = f32)]
pub struct Kernel;

fn main() {}
