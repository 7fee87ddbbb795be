use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_value = |a| if a < 0.0 { -a } else { false })]
pub struct Kernel;

fn main() {}
