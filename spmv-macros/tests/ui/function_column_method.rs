use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, map_x = |x, col| x * col.sqrt() as f32)]
pub struct Kernel;

fn main() {}
