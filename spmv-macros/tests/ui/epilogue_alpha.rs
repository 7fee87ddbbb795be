use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, epilogue = |row, sum, y| sum.max(0.0), alpha = any)]
pub struct Kernel;

fn main() {}
