use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = ellpack, slice_height = 32, rows_per_fetch = 3, unroll = 2)]
pub struct Kernel;

fn main() {}
