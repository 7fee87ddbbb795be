use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_scalar, crate = "spmv_runtime")]
pub struct Kernel;

fn main() {}
