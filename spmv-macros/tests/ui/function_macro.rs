use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_value = |a| max![a, 1.0])]
pub struct Kernel;

fn main() {}
