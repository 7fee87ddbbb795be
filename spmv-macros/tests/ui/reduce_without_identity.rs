use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, reduce = |s, t| s + t)]
pub struct Kernel;

fn main() {}
