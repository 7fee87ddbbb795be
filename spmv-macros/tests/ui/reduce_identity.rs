use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, reduce = |s, t| s.max(t), identity = f32::INFINITY)]
pub struct Kernel;

fn main() {}
