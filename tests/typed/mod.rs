//! Products whose types are known at run time. Numbers come and go as f64, which holds those of every type.

#![allow(dead_code, reason = "each program that includes this uses its part")]

use spmv_codegen::{KernelConfig, ValueType};
use spmv_matrix::{CsrMatrix, Value, bf16, f16};
use spmv_runtime::{Device, Error, Spmv, Vector};

/// A vector on a device.
pub enum AnyVector {
    F16(Vector<f16>),
    Bf16(Vector<bf16>),
    F32(Vector<f32>),
    F64(Vector<f64>),
}

macro_rules! from_vectors {
    ($($variant:ident: $type:ty),+) => {
        $(impl From<Vector<$type>> for AnyVector {
            fn from(vector: Vector<$type>) -> AnyVector {
                AnyVector::$variant(vector)
            }
        })+
    };
}
from_vectors!(F16: f16, Bf16: bf16, F32: f32, F64: f64);

/// Does the same whatever the type of a vector is.
macro_rules! of_any_type {
    ($any:expr, $vector:ident => $result:expr) => {
        match $any {
            AnyVector::F16($vector) => $result,
            AnyVector::Bf16($vector) => $result,
            AnyVector::F32($vector) => $result,
            AnyVector::F64($vector) => $result,
        }
    };
}

/// Does the same whatever a value type is: `$type` is the Rust type.
macro_rules! with_type {
    ($value:expr, $type:ident => $result:expr) => {
        match $value {
            ValueType::F16 => {
                type $type = f16;
                $result
            }
            ValueType::Bf16 => {
                type $type = bf16;
                $result
            }
            ValueType::F32 => {
                type $type = f32;
                $result
            }
            ValueType::F64 => {
                type $type = f64;
                $result
            }
            other => panic!("{other} is a value type without a Rust type here: give it one"),
        }
    };
}

impl AnyVector {
    /// A vector of these numbers, rounded to the type.
    pub fn new(device: &Device, value: ValueType, numbers: &[f64]) -> Result<AnyVector, Error> {
        with_type!(value, V => Ok(Vector::<V>::from_slice(device, &typed(numbers))?.into()))
    }

    pub fn to_vec(&self) -> Result<Vec<f64>, Error> {
        of_any_type!(self, vector => Ok(vector.to_vec()?.into_iter().map(Value::to_f64).collect()))
    }
}

/// The plan for a matrix whose values are rounded to the configuration's type, and the matrix as it is then.
pub fn plan(
    device: &Device,
    a: &CsrMatrix<f64>,
    config: KernelConfig,
) -> Result<(Spmv, CsrMatrix<f64>), Error> {
    with_type!(config.types().value, V => {
        let a = a.convert::<V>();
        Ok((Spmv::with(device, &a, config)?, a.convert()))
    })
}

/// y ← α·A·x + β·y.
pub fn apply(plan: &mut Spmv, alpha: f64, x: &AnyVector, beta: f64, y: &mut AnyVector) -> Result<(), Error> {
    of_any_type!(x, x => of_any_type!(y, y => plan.apply(alpha, x, beta, y)))
}

/// The numbers, rounded to a type.
pub fn rounded(value: ValueType, numbers: &[f64]) -> Vec<f64> {
    with_type!(value, V => typed::<V>(numbers).into_iter().map(Value::to_f64).collect())
}

fn typed<V: Value>(numbers: &[f64]) -> Vec<V> {
    numbers.iter().map(|&number| V::from_f64(number)).collect()
}
