use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_value = |a| a as i64)]
pub struct Kernel;

fn main() {}
