use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = "csr_vector", threads_per_vector = 3, valu = f32, alpha = 0, beta: 1, x)]
pub struct Kernel {
    threads_per_block: u32,
}

fn main() {}
