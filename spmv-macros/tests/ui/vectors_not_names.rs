use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, epilogue = |row, sum, y| sum, vectors = [1])]
pub struct Kernel;

fn main() {}
