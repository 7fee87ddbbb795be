use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, epilogue = |row, sum, y| sum, vectors = [d])]
pub struct Kernel;

fn main() {}
