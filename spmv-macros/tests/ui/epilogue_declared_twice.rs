use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector, epilogue = |row, sum, y, d| sum / d, vectors = [d], scalars = [d])]
pub struct Kernel;

fn main() {}
