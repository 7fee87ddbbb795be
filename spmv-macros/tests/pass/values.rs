//! Every way to write a value.

use spmv_runtime::{Coefficient, spmv_kernel};

#[spmv_kernel(algorithm = csr_vector, threads_per_block = 0x80, alpha = -1, beta = any)]
struct Written;

macro_rules! kernel {
    ($name:ident, $algorithm:ident, $threads:literal, $lanes:tt, $value:ty, $alpha:expr) => {
        #[spmv_kernel(algorithm = $algorithm, threads_per_block = $threads, threads_per_vector = $lanes, value = $value, alpha = $alpha)]
        struct $name;
    };
}

kernel!(Forwarded, light_vector, 64, 16, f64, -1);

fn main() {
    assert_eq!(Written::config().threads_per_block(), 128);
    assert_eq!(Written::config().scaling().alpha, Coefficient::MinusOne);
    assert_eq!(Forwarded::config().scaling().alpha, Coefficient::MinusOne);
    assert!(Forwarded::SOURCE.contains("kThreadsPerVector = 16"));
}
