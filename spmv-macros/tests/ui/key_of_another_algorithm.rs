use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, rows_per_fetch = 2)]
pub struct Kernel;

fn main() {}
