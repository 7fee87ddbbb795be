//! The types of the declared kernel are those of its configuration, whatever names are in scope.
#![allow(non_camel_case_types, dead_code)]

use spmv_runtime::{DeclaredKernel, KernelConfig, ValueType, spmv_kernel};

struct f32;
struct f64;
struct str;
struct Result;
mod core {}

#[spmv_kernel(algorithm = csr_vector, value = f32, x = f64, y = f32, accumulator = f64)]
pub struct Mixed;

#[spmv_kernel(algorithm = csr_vector, value = i8, x = f16, y = bf16, accumulator = f32)]
pub struct Quantized;

#[spmv_kernel(algorithm = csr_scalar, value = f32, x = c32, y = c64, beta = 0)]
pub struct Complex;

#[spmv_kernel(algorithm = csr_vector, value = bool, semiring = or_and)]
pub struct Reachable;

#[spmv_kernel(algorithm = light_vector, value = u32, y = i64)]
pub struct Counts;

fn is<A: 'static, B: 'static>() -> bool {
    std::any::TypeId::of::<A>() == std::any::TypeId::of::<B>()
}

fn of<K: DeclaredKernel>() -> (KernelConfig, String) {
    (K::config(), K::SOURCE.to_owned())
}

fn main() {
    assert!(is::<<Mixed as DeclaredKernel>::Value, ::core::primitive::f32>());
    assert!(is::<<Mixed as DeclaredKernel>::X, ::core::primitive::f64>());
    assert!(is::<<Mixed as DeclaredKernel>::Y, ::core::primitive::f32>());
    assert!(is::<<Mixed as DeclaredKernel>::Accumulator, ::core::primitive::f64>());
    assert!(is::<<Quantized as DeclaredKernel>::Value, ::core::primitive::i8>());
    assert!(is::<<Quantized as DeclaredKernel>::X, spmv_runtime::matrix::f16>());
    assert!(is::<<Quantized as DeclaredKernel>::Y, spmv_runtime::matrix::bf16>());
    assert!(is::<<Complex as DeclaredKernel>::X, spmv_runtime::matrix::Complex32>());
    assert!(is::<<Complex as DeclaredKernel>::Accumulator, spmv_runtime::matrix::Complex64>());
    assert!(is::<<Reachable as DeclaredKernel>::Accumulator, ::core::primitive::bool>());
    assert!(is::<<Counts as DeclaredKernel>::Accumulator, ::core::primitive::i64>());
    assert_eq!(of::<Mixed>(), (Mixed::config(), Mixed::SOURCE.to_owned()));
    assert_eq!(Mixed::config().types().x, ValueType::F64);
}
