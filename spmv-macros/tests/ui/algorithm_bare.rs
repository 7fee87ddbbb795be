use spmv_runtime::spmv_kernel;

#[spmv_kernel(csr_vector)]
pub struct Alone;

#[spmv_kernel(csr_vector, threads_per_vector = 3)]
pub struct WithOthers;

#[spmv_kernel(algorithm = csr_scalar, csr_vector)]
pub struct Second;

fn main() {}
