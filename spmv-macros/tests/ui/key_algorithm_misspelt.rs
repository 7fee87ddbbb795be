use spmv_runtime::spmv_kernel;

#[spmv_kernel(algoritm = csr_vector, value = f64)]
pub struct Kernel;

fn main() {}
