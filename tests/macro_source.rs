//! What `#[spmv_kernel]` puts into the binary is what the same configuration generates at run time.

use spmv_codegen::{Coefficient, CsrScalar, CsrVector, IndexType, KernelConfig, LightVector, ValueType};
use spmv_runtime::{DeclaredKernel, spmv_kernel};

/// The declared text and configuration beside those of the builder.
fn assert_same<K: DeclaredKernel>(built: KernelConfig) {
    assert_eq!(K::config(), built);
    assert!(K::SOURCE == built.program().source, "source of {built}");
}

#[test]
fn defaults() {
    #[spmv_kernel(algorithm = csr_scalar)]
    struct Scalar;
    #[spmv_kernel(algorithm = csr_vector)]
    struct Wide;
    #[spmv_kernel(algorithm = light_vector)]
    struct Light;

    assert_same::<Scalar>(KernelConfig::builder(CsrScalar::default()).build().unwrap());
    assert_same::<Wide>(KernelConfig::builder(CsrVector::default()).build().unwrap());
    assert_same::<Light>(KernelConfig::builder(LightVector::default()).build().unwrap());
}

#[test]
fn parameters() {
    #[spmv_kernel(algorithm = csr_scalar, unroll = 8, min_blocks = 4, threads_per_block = 512)]
    struct Scalar;
    #[spmv_kernel(threads_per_vector = 32, threads_per_block = 32, algorithm = csr_vector)]
    struct Wide;
    #[spmv_kernel(algorithm = light_vector, rows_per_fetch = 16, threads_per_vector = 2)]
    struct Light;

    let scalar = CsrScalar { unroll: 8, min_blocks: 4 };
    assert_same::<Scalar>(KernelConfig::builder(scalar).threads_per_block(512).build().unwrap());
    let wide = CsrVector { threads_per_vector: 32, ..CsrVector::default() };
    assert_same::<Wide>(KernelConfig::builder(wide).threads_per_block(32).build().unwrap());
    let light = LightVector { rows_per_fetch: 16, threads_per_vector: 2, ..LightVector::default() };
    assert_same::<Light>(KernelConfig::builder(light).build().unwrap());
}

#[test]
fn types() {
    #[spmv_kernel(algorithm = csr_scalar, value = f64)]
    struct Double;
    #[spmv_kernel(algorithm = csr_vector, value = f32, accumulator = f64, offset = u64, index = u32)]
    struct Careful;
    #[spmv_kernel(algorithm = light_vector, value = f32, x = f64, y = f64)]
    struct Mixed;

    let builder = KernelConfig::builder(CsrScalar::default());
    assert_same::<Double>(builder.value(ValueType::F64).build().unwrap());
    let builder = KernelConfig::builder(CsrVector::default());
    assert_same::<Careful>(builder.accumulator(ValueType::F64).offset(IndexType::U64).build().unwrap());
    let builder = KernelConfig::builder(LightVector::default());
    assert_same::<Mixed>(builder.x(ValueType::F64).y(ValueType::F64).build().unwrap());
}

#[test]
fn scaling() {
    #[spmv_kernel(algorithm = csr_scalar, alpha = 1, beta = 0)]
    struct Store;
    #[spmv_kernel(algorithm = csr_vector, alpha = -1, beta = 1, operation = non_transpose)]
    struct Residual;
    #[spmv_kernel(algorithm = light_vector, alpha = any, beta = -1)]
    struct Subtract;

    let builder = KernelConfig::builder(CsrScalar::default());
    assert_same::<Store>(builder.alpha(Coefficient::One).beta(Coefficient::Zero).build().unwrap());
    let builder = KernelConfig::builder(CsrVector::default());
    assert_same::<Residual>(builder.alpha(Coefficient::MinusOne).beta(Coefficient::One).build().unwrap());
    let builder = KernelConfig::builder(LightVector::default());
    assert_same::<Subtract>(builder.beta(Coefficient::MinusOne).build().unwrap());
}
