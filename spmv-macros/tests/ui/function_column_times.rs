use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_x = |x, col| x * col)]
pub struct Kernel;

fn main() {}
