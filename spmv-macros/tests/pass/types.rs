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
    assert_eq!(of::<Mixed>(), (Mixed::config(), Mixed::SOURCE.to_owned()));
    assert_eq!(Mixed::config().types().x, ValueType::F64);
}
