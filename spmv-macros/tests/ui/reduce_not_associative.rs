use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, reduce = |s, t| (s + t) / 2.0, identity = 0.0)]
pub struct Kernel;

fn main() {}
