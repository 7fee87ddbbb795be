use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, epilogue = |row, sum, y| y = sum)]
pub struct Kernel;

fn main() {}
