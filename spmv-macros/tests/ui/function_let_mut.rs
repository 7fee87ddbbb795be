use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_value = |a| { let mut b = a; b })]
pub struct Kernel;

fn main() {}
