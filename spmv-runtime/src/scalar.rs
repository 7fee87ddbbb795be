//! α and β, and the types that vectors hold.

use spmv_codegen::ValueType;
use spmv_matrix::{Value, bf16, f16};

use crate::backend::Bytes;

/// A type that device vectors hold: `f16`, `bf16`, `f32` or `f64`.
pub trait Element: Value + Bytes {}

impl Element for f16 {}
impl Element for bf16 {}
impl Element for f32 {}
impl Element for f64 {}

/// α or β of a product, rounded to the configuration's accumulator type when it is passed to a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scalar {
    /// From an `f32`.
    F32(f32),
    /// From an `f64`.
    F64(f64),
}

impl Scalar {
    /// The value; exact.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::F32(value) => value.into(),
            Scalar::F64(value) => value,
        }
    }

    /// The bits of the value in a type, as a kernel argument.
    pub(crate) fn bits(self, as_type: ValueType) -> u64 {
        match (as_type, self) {
            (ValueType::F32, Scalar::F32(value)) => value.to_bits().into(),
            (ValueType::F64, scalar) => scalar.to_f64().to_bits(),
            (_, scalar) => (scalar.to_f64() as f32).to_bits().into(),
        }
    }
}

impl From<f32> for Scalar {
    fn from(value: f32) -> Scalar {
        Scalar::F32(value)
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Scalar {
        Scalar::F64(value)
    }
}
