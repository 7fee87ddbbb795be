use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_value = |a| if 0.0 < a < 1.0 { a } else { 1.0 })]
pub struct Kernel;

fn main() {}
