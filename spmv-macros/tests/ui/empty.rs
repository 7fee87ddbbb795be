use spmv_runtime::spmv_kernel;

#[spmv_kernel]
pub struct Bare;

#[spmv_kernel()]
pub struct Empty;

fn main() {}
