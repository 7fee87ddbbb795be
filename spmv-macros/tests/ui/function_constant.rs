use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_value = |a| a * f32::PI)]
pub struct Kernel;

fn main() {}
