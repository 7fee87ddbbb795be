use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, accumulator = f32, y = f64)]
pub struct Kernel;

fn main() {}
