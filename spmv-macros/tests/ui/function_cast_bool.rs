use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_value = |a| (a > 0.0) as f32)]
pub struct Kernel;

fn main() {}
