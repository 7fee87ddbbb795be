use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm(csr_vector), threads_per_vector(3), value f32)]
pub struct Kernel;

fn main() {}
