//! Products whose types are known at run time. Numbers come and go as f64, complex ones as two of them.

#![allow(dead_code, reason = "each program that includes this uses its part")]

use spmv_codegen::function::Float;
use spmv_codegen::{
    Coefficient, KernelConfig, Operand, Operation, Operators, SemiringNumber, ValueKind, ValueType,
};
use spmv_matrix::{
    Accumulate, Complex32, Complex64, CsrMatrix, Entry, EpilogueOperand, Reference, SymmetricCsr, Symmetry,
    Value, bf16, cpu_dot, cpu_operators, cpu_semiring, f16, reference_over_operators,
};
use spmv_runtime::{Device, Element, Error, Factor, Scalar, Spmv, Vector};

/// A vector on a device.
pub enum AnyVector {
    F16(Vector<f16>),
    Bf16(Vector<bf16>),
    F32(Vector<f32>),
    F64(Vector<f64>),
    I8(Vector<i8>),
    I32(Vector<i32>),
    I64(Vector<i64>),
    U32(Vector<u32>),
    Bool(Vector<bool>),
    C32(Vector<Complex32>),
    C64(Vector<Complex64>),
}

macro_rules! from_vectors {
    ($($variant:ident: $type:ty),+) => {
        $(impl From<Vector<$type>> for AnyVector {
            fn from(vector: Vector<$type>) -> AnyVector {
                AnyVector::$variant(vector)
            }
        })+

        /// Does the same whatever the type of a vector is.
        macro_rules! of_any_type {
            ($any:expr, $vector:ident => $result:expr) => {
                match $any {
                    $(AnyVector::$variant($vector) => $result,)+
                }
            };
        }
    };
}
from_vectors!(
    F16: f16, Bf16: bf16, F32: f32, F64: f64, I8: i8, I32: i32, I64: i64, U32: u32, Bool: bool, C32: Complex32, C64: Complex64
);

/// Does the same whatever a value type is: `$type` is the Rust type.
macro_rules! with_types {
    ($value:expr, $type:ident => $result:expr, $($variant:ident: $rust:ty),+) => {
        match $value {
            $(ValueType::$variant => {
                type $type = $rust;
                $result
            })+
            other => panic!("{other} is a value type without a Rust type here"),
        }
    };
}

/// Of types with a place among real numbers.
macro_rules! with_type {
    ($value:expr, $type:ident => $result:expr) => {
        with_types!(
            $value, $type => $result,
            F16: f16, Bf16: bf16, F32: f32, F64: f64, I8: i8, I32: i32, I64: i64, U32: u32, Bool: bool
        )
    };
}

/// Of all types.
macro_rules! with_any_type {
    ($value:expr, $type:ident => $result:expr) => {
        match $value {
            ValueType::C32 | ValueType::C64 => with_types!($value, $type => $result, C32: Complex32, C64: Complex64),
            real => with_type!(real, $type => $result),
        }
    };
}

impl AnyVector {
    /// A vector of these numbers, rounded to the type; of complex ones, the parts of each one after the other.
    pub fn new(device: &Device, value: ValueType, numbers: &[f64]) -> Result<AnyVector, Error> {
        with_any_type!(value, V => Ok(Vector::<V>::from_slice(device, &entries(numbers))?.into()))
    }

    pub fn as_factor(&self) -> Factor<'_> {
        of_any_type!(self, vector => vector.into())
    }

    pub fn to_vec(&self) -> Result<Vec<f64>, Error> {
        of_any_type!(self, vector => Ok(vector.to_vec()?.into_iter().flat_map(parts).collect()))
    }

    /// The entries of a vector of integers.
    pub fn to_integers(&self) -> Result<Vec<i64>, Error> {
        let integer = |scalar| match scalar {
            Scalar::Integer(number) => number,
            other => panic!("{other} is no integer"),
        };
        of_any_type!(self, vector => {
            Ok(vector.to_vec()?.into_iter().map(|entry| integer(entry.to_scalar())).collect())
        })
    }
}

fn parts<V: Entry>(entry: V) -> impl Iterator<Item = f64> {
    let im = V::COMPLEX.then(|| entry.im().to_f64());
    [entry.re().to_f64()].into_iter().chain(im)
}

fn entries<V: Entry>(numbers: &[f64]) -> Vec<V> {
    let part = V::Real::from_f64;
    match V::COMPLEX {
        true => numbers.chunks(2).map(|parts| V::from_parts(part(parts[0]), part(parts[1]))).collect(),
        false => numbers.iter().map(|&number| V::from_parts(part(number), part(0.0))).collect(),
    }
}

/// The plan for a matrix whose values are rounded to the configuration's type, and the matrix as it is then. Where the
/// configuration is for one triangle, that of the matrix is folded, and the matrix is both triangles.
pub fn plan(
    device: &Device,
    a: &CsrMatrix<f64>,
    config: KernelConfig,
) -> Result<(Spmv, CsrMatrix<f64>), Error> {
    let (plan, a) = complex_plan(device, &a.map_values(Complex64::from), config)?;
    Ok((plan, a.map_values(|value| value.re)))
}

/// As [`plan`], of complex numbers; a type that is not complex has their real parts.
pub fn complex_plan(
    device: &Device,
    a: &CsrMatrix<Complex64>,
    config: KernelConfig,
) -> Result<(Spmv, CsrMatrix<Complex64>), Error> {
    with_any_type!(config.types().value, V => typed_plan::<V>(device, a, config))
}

fn typed_plan<V: Element>(
    device: &Device,
    a: &CsrMatrix<Complex64>,
    config: KernelConfig,
) -> Result<(Spmv, CsrMatrix<Complex64>), Error> {
    let symmetry = match config.operation() {
        Operation::Symmetric => Some(Symmetry::Symmetric),
        Operation::SkewSymmetric => Some(Symmetry::SkewSymmetric),
        Operation::Hermitian => Some(Symmetry::Hermitian),
        _ => None,
    };
    let part = V::Real::from_f64;
    let typed =
        |a: &CsrMatrix<Complex64>| a.map_values(|value| V::from_parts(part(value.re), part(value.im)));
    let wide =
        |a: &CsrMatrix<V>| a.map_values(|value| Complex64::new(value.re().to_f64(), value.im().to_f64()));
    if let Some(symmetry) = symmetry {
        let a = SymmetricCsr::new(symmetry, folded(&typed(a), symmetry))?;
        return Ok((Spmv::with(device, &a, config)?, wide(&a.to_csr()?)));
    }
    let a = typed(a);
    Ok((Spmv::with(device, &a, config)?, wide(&a)))
}

/// The lower triangle that has every entry of a matrix, in its order: those above the diagonal at their mirrored places.
pub fn folded<V: Entry>(a: &CsrMatrix<V>, symmetry: Symmetry) -> CsrMatrix<V> {
    let n = a.num_rows().max(a.num_cols());
    let (mut rows, mut cols, mut values) = (vec![], vec![], vec![]);
    for row in 0..a.num_rows() {
        for (&col, &value) in a.row(row).0.iter().zip(a.row(row).1) {
            // What a skew-symmetric matrix does not hold.
            if symmetry == Symmetry::SkewSymmetric && (col as usize == row || !value.has_negative()) {
                continue;
            }
            rows.push(col.max(row as u32));
            cols.push(col.min(row as u32));
            let is_real = symmetry == Symmetry::Hermitian && col as usize == row;
            values.push(if is_real { V::from_parts(value.re(), V::Real::default()) } else { value });
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

/// y ← α·A·x + β·y, with α and β in device memory where the plan's kernels read them there.
pub fn apply(
    plan: &mut Spmv,
    alpha: impl Into<Scalar>,
    x: &AnyVector,
    beta: impl Into<Scalar>,
    y: &mut AnyVector,
) -> Result<(), Error> {
    let (scaling, accumulator) = (plan.config().scaling(), plan.config().types().accumulator);
    let device = plan.device().clone();
    let placed = |coefficient: Coefficient, number: Scalar| -> Result<Option<AnyVector>, Error> {
        let Complex64 { re, im } = number.to_c64();
        let parts = if accumulator.kind() == ValueKind::Complex { &[re, im][..] } else { &[re] };
        (coefficient == Coefficient::OnDevice)
            .then(|| AnyVector::new(&device, accumulator, parts))
            .transpose()
    };
    let (alpha, beta) = (alpha.into(), beta.into());
    let (alpha_there, beta_there) = (placed(scaling.alpha, alpha)?, placed(scaling.beta, beta)?);
    let alpha = alpha_there.as_ref().map_or(alpha.into(), AnyVector::as_factor);
    let beta = beta_there.as_ref().map_or(beta.into(), AnyVector::as_factor);
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

/// Binds to each vector that the plan takes these numbers, from another one on for each, and to each scalar 2, 3 and so
/// on; the numbers that a row is given, in order.
pub fn bind(plan: &mut Spmv, numbers: &[f64]) -> Result<Vec<Vec<f64>>, Error> {
    let operands = plan.program().operands.clone();
    let (device, num_rows) = (plan.device().clone(), plan.vector_lengths().1);
    let mut bound = Vec::new();
    for (place, operand) in operands.iter().enumerate() {
        bound.push(match operand {
            Operand::Vector { name, value } => {
                let entries: Vec<f64> =
                    (0..num_rows).map(|row| numbers[(row + place + 1) % num_rows]).collect();
                let entries = rounded(*value, &entries);
                let vector = AnyVector::new(&device, *value, &entries)?;
                of_any_type!(&vector, vector => plan.set_vector(name, vector))?;
                entries
            }
            Operand::Scalar { name, .. } => {
                plan.set_scalar(name, place as f64 + 1.0)?;
                vec![place as f64 + 1.0; num_rows]
            }
            Operand::Buffer(_) => continue,
        });
    }
    Ok(bound)
}

/// The product with what the user writes on the CPU, in the type that the kernel reduces in: the reference without an
/// epilogue, and what is stored.
pub fn over_functions(
    config: &KernelConfig,
    op_a: &CsrMatrix<f64>,
    x: &[f64],
    accumulate: Accumulate,
    bound: &[Vec<f64>],
    y: &[f64],
) -> (Reference, Vec<f64>) {
    fn of<V: Value<RealSum = V> + Float + SemiringNumber>(
        operators: &Operators,
        op_a: &CsrMatrix<f64>,
        x: &[f64],
        accumulate: Accumulate,
        bound: &[Vec<f64>],
        y: &[f64],
    ) -> (Reference, Vec<f64>) {
        let (a, x, mut y) = (op_a.convert::<V>(), typed::<V>(x), typed::<V>(y));
        let bound: Vec<Vec<V>> = bound.iter().map(|numbers| typed(numbers)).collect();
        let bound: Vec<_> = bound.iter().map(|numbers| EpilogueOperand::Vector(numbers)).collect();
        let reference = reference_over_operators(operators, &a, &x, accumulate, &y).expect("lengths fit");
        cpu_operators(operators, &a, &x, accumulate, &bound, &mut y).expect("lengths fit");
        (reference, y.into_iter().map(Value::to_f64).collect())
    }
    let (operators, types) = (config.operators(), config.types());
    let (reference, stored) = match types.accumulator {
        ValueType::F64 => of::<f64>(&operators, op_a, x, accumulate, bound, y),
        _ => of::<f32>(&operators, op_a, x, accumulate, bound, y),
    };
    (reference, rounded(types.y, &stored))
}

/// Whether the last product of a plan left in its dot what the CPU adds up of this y, bit by bit.
pub fn check_dot(plan: &Spmv, bound: &[Vec<f64>], y: &[f64]) -> Result<(), String> {
    fn of<V: Value<RealSum = V> + Float>(operators: &Operators, bound: &[Vec<f64>], y: &[f64]) -> f64 {
        let bound: Vec<Vec<V>> = bound.iter().map(|numbers| typed(numbers)).collect();
        let bound: Vec<_> = bound.iter().map(|numbers| EpilogueOperand::Vector(numbers)).collect();
        cpu_dot(operators, &bound, &typed::<V>(y))
    }
    let Some(dot) = plan.dot() else { return Ok(()) };
    let operators = plan.config().operators();
    let expected = match plan.config().types().accumulator {
        ValueType::F64 => of::<f64>(&operators, bound, y),
        _ => of::<f32>(&operators, bound, y),
    };
    let found = dot.to_vec().map_err(|error| error.to_string())?[0];
    if found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan() {
        return Ok(());
    }
    Err(format!("the rows add up to {found:e} and must to exactly {expected:e}"))
}

/// The matrix and x with the maps of a configuration.
pub fn mapped(config: &KernelConfig, op_a: &CsrMatrix<f64>, x: &[f64]) -> (CsrMatrix<f64>, Vec<f64>) {
    let operators = config.operators();
    let one = |number: f64, col| match config.types().accumulator {
        ValueType::F64 => operators.map_x(number, col),
        _ => operators.map_x(number as f32, col).into(),
    };
    let x = x.iter().zip(0..).map(|(x, col)| one(*x, col)).collect();
    let value = |number: f64| match config.types().accumulator {
        ValueType::F64 => operators.map_value(number),
        _ => operators.map_value(number as f32).into(),
    };
    let values = op_a.values().iter().map(|number| value(*number)).collect();
    let (offsets, cols) = (op_a.row_offsets().to_vec(), op_a.col_indices().to_vec());
    let a = CsrMatrix::new(op_a.num_rows(), op_a.num_cols(), offsets, cols, values)
        .expect("its structure is the same");
    (a, x)
}

/// The numbers, rounded to a type.
pub fn rounded(value: ValueType, numbers: &[f64]) -> Vec<f64> {
    with_type!(value, V => typed::<V>(numbers).into_iter().map(Value::to_f64).collect())
}

/// Numbers in (−1, 1) spread over the range of a type of integers, with its limits among them; as they are for other
/// types. What f64 does not hold exactly is left out.
pub fn spread(value: ValueType, numbers: &[f64]) -> Vec<f64> {
    let largest = value.largest().min((1u64 << 53) as f64);
    let spread = |&number: &f64| match (value, value.kind()) {
        (ValueType::U32, _) => (number.abs() * 1.05 * largest).min(largest).round(),
        (_, ValueKind::Integer) => (number * 1.05 * largest).clamp(-largest - 1.0, largest).round(),
        (_, ValueKind::Bool) => f64::from(u8::from(number > 0.0)),
        _ => number,
    };
    numbers.iter().map(spread).collect()
}

fn typed<V: Value>(numbers: &[f64]) -> Vec<V> {
    numbers.iter().map(|&number| V::from_f64(number)).collect()
}
