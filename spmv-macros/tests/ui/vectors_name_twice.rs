use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, epilogue = |row, sum, y, d| d, vectors = [d, d])]
pub struct Kernel;

fn main() {}
