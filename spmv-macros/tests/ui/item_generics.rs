use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector)]
pub struct Group<const N: usize>;

#[spmv_kernel(algorithm = csr_vector)]
pub struct Bounded
where
    u32: Copy;

fn main() {}
