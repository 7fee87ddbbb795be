use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_value = |a| a + 1e50)]
pub struct Kernel;

fn main() {}
