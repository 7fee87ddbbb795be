use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, threads_per_vector = 4 + 4, threads_per_block = (128), value = std::f32)]
pub struct Kernel;

fn main() {}
