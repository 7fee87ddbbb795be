use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = hola, semiring = min_plus)]
pub struct Kernel;

fn main() {}
