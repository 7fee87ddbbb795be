use spmv_runtime::spmv_kernel;

/// Documented.
#[spmv_kernel(algorithm = csr_vector)]
pub fn product() {}

#[spmv_kernel(algorithm = csr_vectr)]
mod kernels {}

fn main() {
    product();
}
