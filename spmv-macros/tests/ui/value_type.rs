use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, value = i16, x = int, offset = i32, index = u64)]
pub struct Kernel;

fn main() {}
