//! Products whose types are known at run time. Numbers come and go as f64, which holds those of every type.

#![allow(dead_code, reason = "each program that includes this uses its part")]

use spmv_codegen::{KernelConfig, Operation, ValueType};
use spmv_matrix::{Accumulate, CsrMatrix, SymmetricCsr, Symmetry, Value, bf16, cpu_semiring, f16};
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

/// The plan for a matrix whose values are rounded to the configuration's type, and the matrix as it is then. Where the
/// configuration is for one triangle, that of the matrix is folded, and the matrix is both triangles.
pub fn plan(
    device: &Device,
    a: &CsrMatrix<f64>,
    config: KernelConfig,
) -> Result<(Spmv, CsrMatrix<f64>), Error> {
    let symmetry = match config.operation() {
        Operation::Symmetric => Some(Symmetry::Symmetric),
        Operation::SkewSymmetric => Some(Symmetry::SkewSymmetric),
        _ => None,
    };
    with_type!(config.types().value, V => {
        if let Some(symmetry) = symmetry {
            let a = SymmetricCsr::new(symmetry, folded(a, symmetry).convert::<V>())?;
            return Ok((Spmv::with(device, &a, config)?, a.to_csr()?.convert()));
        }
        let a = a.convert::<V>();
        Ok((Spmv::with(device, &a, config)?, a.convert()))
    })
}

/// The lower triangle that has every entry of a matrix, in its order: those above the diagonal at their mirrored places.
pub fn folded(a: &CsrMatrix<f64>, symmetry: Symmetry) -> CsrMatrix<f64> {
    let n = a.num_rows().max(a.num_cols());
    let (mut rows, mut cols, mut values) = (vec![], vec![], vec![]);
    for row in 0..a.num_rows() {
        for (&col, &value) in a.row(row).0.iter().zip(a.row(row).1) {
            if col as usize == row && symmetry == Symmetry::SkewSymmetric {
                continue;
            }
            rows.push(col.max(row as u32));
            cols.push(col.min(row as u32));
            values.push(value);
        }
    }
    let mut counts = vec![0u32; n + 1];
    rows.iter().for_each(|&row| counts[row as usize + 1] += 1);
    (0..n).for_each(|row| counts[row + 1] += counts[row]);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&entry| rows[entry]);
    let cols = order.iter().map(|&entry| cols[entry]).collect();
    let values = order.iter().map(|&entry| values[entry]).collect();
    CsrMatrix::new(n, n, counts, cols, values).expect("a folded matrix is one")
}

/// y ← α·A·x + β·y.
pub fn apply(plan: &mut Spmv, alpha: f64, x: &AnyVector, beta: f64, y: &mut AnyVector) -> Result<(), Error> {
    of_any_type!(x, x => of_any_type!(y, y => plan.apply(alpha, x, beta, y)))
}

/// The product over the configuration's semiring on the CPU, in the type that the kernel reduces in.
pub fn over_semiring(
    config: &KernelConfig,
    op_a: &CsrMatrix<f64>,
    x: &[f64],
    accumulate: Accumulate,
    y: &[f64],
) -> Vec<f64> {
    let types = config.types();
    with_type!(types.accumulator, V => {
        let mut y: Vec<V> = typed(y);
        cpu_semiring(config.semiring(), &op_a.convert::<V>(), &typed::<V>(x), accumulate, &mut y).expect("lengths fit");
        rounded(types.y, &y.into_iter().map(Value::to_f64).collect::<Vec<_>>())
    })
}

/// The numbers, rounded to a type.
pub fn rounded(value: ValueType, numbers: &[f64]) -> Vec<f64> {
    with_type!(value, V => typed::<V>(numbers).into_iter().map(Value::to_f64).collect())
}

fn typed<V: Value>(numbers: &[f64]) -> Vec<V> {
    numbers.iter().map(|&number| V::from_f64(number)).collect()
}
