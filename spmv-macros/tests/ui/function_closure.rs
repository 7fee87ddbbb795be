use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_value = |a| |b| b)]
pub struct Kernel;

fn main() {}
