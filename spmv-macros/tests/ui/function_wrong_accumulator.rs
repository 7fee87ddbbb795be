use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, value = f64, reduce = |s, t| s.max(t), identity = f32::NEG_INFINITY)]
pub struct Kernel;

fn main() {}
