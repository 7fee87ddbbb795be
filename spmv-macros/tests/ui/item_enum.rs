use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector)]
pub enum Kernel {
    Wide,
}

#[spmv_kernel(algorithm = csr_vector)]
pub union Either {
    single: f32,
    double: f64,
}

fn main() {}
