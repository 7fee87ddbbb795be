use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = naive_t, epilogue = |row, sum, y| sum.max(0.0))]
pub struct Kernel;

fn main() {}
