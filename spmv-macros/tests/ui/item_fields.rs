use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector)]
pub struct Named {
    pub threads_per_vector: u32,
}

#[spmv_kernel(algorithm = csr_vector)]
pub struct Tuple(u32);

#[spmv_kernel(algorithm = csr_vector)]
pub struct Braces {}

fn main() {}
