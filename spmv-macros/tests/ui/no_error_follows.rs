use spmv_runtime::spmv_kernel;

use spmv_runtime::{DeclaredKernel, Device, Error, MatrixSource, Plan};

#[spmv_kernel(algorithm = csr_vectr, value = f64)]
pub struct Kernel;

#[spmv_kernel(algorithm = csr_vector, value = f64, accumulator = f32)]
pub struct Narrow;

pub fn source<K: DeclaredKernel>() -> &'static str {
    K::SOURCE
}

pub fn plan(device: &Device, a: &impl MatrixSource) -> Result<Plan<Kernel>, Error> {
    let _: f64 = <Kernel as DeclaredKernel>::Value::default();
    Kernel::plan(device, a)
}

fn main() {
    println!("{} {} {}", source::<Kernel>(), Kernel::SOURCE, Narrow::config());
}
