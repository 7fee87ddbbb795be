use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_value = |a| return a)]
pub struct Kernel;

fn main() {}
