//! What a product must be, and whether it is.

use std::io::{self, Write};

use serde::Serialize;
use spmv_runtime::codegen::{
    Guarantees, KernelConfig, Operation, Semiring, SemiringNumber, Types, ValueKind, ValueType,
};
use spmv_runtime::matrix::{
    self, Accumulate, Complex32, Complex64, CsrMatrix, MatrixError, Offset, Reference, Value, bf16, f16,
};
use spmv_runtime::{Element, RealElement, Scalar};

use crate::failure::{Failure, Kind};
use crate::operands::{Operands, entries, parts};
use crate::quantity;
use crate::report::fact;

/// The product in doubled precision, with the bound that a right one keeps.
pub struct Expected {
    reference: Parts,
    alpha: f64,
    longest_row: u64,
}

/// References of the product: one of real numbers, or those of the two parts of complex ones.
enum Parts {
    Real(Reference),
    Complex([Reference; 2]),
}

/// A type of matrix values that the command multiplies.
pub trait Multiplied: Element {
    /// What the product of a configuration must be.
    fn expected<O: Offset>(
        config: &KernelConfig,
        a: &CsrMatrix<Self, O>,
        operation: Operation,
        operands: &Operands,
    ) -> Result<Expected, Failure>;
}

macro_rules! multiplied {
    ($($value:ty),+ => $expected:path) => {
        $(impl Multiplied for $value {
            fn expected<O: Offset>(
                config: &KernelConfig,
                a: &CsrMatrix<Self, O>,
                operation: Operation,
                operands: &Operands,
            ) -> Result<Expected, Failure> {
                $expected(config, a, operation, operands)
            }
        })+
    };
}
multiplied!(f16, bf16, f32, f64, i8, i32, i64, u32, bool => Expected::over);
multiplied!(Complex32, Complex64 => Expected::of_complex);

/// What an algorithm promises of its products.
pub struct Promise<'a> {
    /// How many roundings a term of a row of so many nonzeros passes through at most.
    pub depth: Box<dyn Fn(u64) -> u64 + Sync + 'a>,
    /// The types that round.
    pub accumulator: ValueType,
    pub y: ValueType,
    /// The same bits every time.
    pub bit_reproducible: bool,
}

impl Promise<'_> {
    /// What a kernel promises.
    pub fn of_kernel(config: KernelConfig, guarantees: &Guarantees) -> Promise<'_> {
        let types = config.types();
        Promise {
            // A step of a complex sum is two of a real one.
            depth: Box::new(move |row_nnz| parts(types.accumulator) as u64 * guarantees.depth(row_nnz)),
            accumulator: types.accumulator,
            y: types.y,
            bit_reproducible: guarantees.bit_reproducible,
        }
    }

    /// What the CPU products promise: the same bits for any number of threads; nothing of the order of a sum.
    pub fn of_cpu(value: ValueType) -> Promise<'static> {
        let accumulator = value.narrowest_accumulator();
        let steps = parts(accumulator) as u64;
        let depth = Box::new(move |row_nnz| steps * any_order_depth(row_nnz));
        Promise { depth, accumulator, y: value, bit_reproducible: true }
    }
}

impl Expected {
    /// Computes it, on the CPU.
    pub fn of<V: Value, O: Offset>(
        a: &CsrMatrix<V, O>,
        operation: Operation,
        operands: &Operands,
    ) -> Result<Expected, Failure> {
        if operation == Operation::Transpose {
            return Self::of(&a.transpose()?, Operation::NonTranspose, operands);
        }
        // Converting to double precision is exact, and lets x and y have types of their own.
        let reference = match V::TYPE {
            ValueType::F32 if exact_in_f32(operands) => {
                let narrow = |numbers: &[f64]| numbers.iter().map(|&n| V::from_f64(n)).collect::<Vec<V>>();
                let (x, y) = (narrow(&operands.x), narrow(&operands.y));
                matrix::reference(operands.alpha, a, &x, operands.beta, &y)?
            }
            _ => {
                let wide = a.convert::<f64>();
                matrix::reference(operands.alpha, &wide, &operands.x, operands.beta, &operands.y)?
            }
        };
        let longest_row = reference.row_nnz.iter().copied().max().unwrap_or(0);
        Ok(Expected { reference: Parts::Real(reference), alpha: operands.alpha, longest_row })
    }

    /// Computes sums of products in these types: integers wrap.
    pub fn sums<V: RealElement, O: Offset>(
        types: Types,
        a: &CsrMatrix<V, O>,
        operation: Operation,
        operands: &Operands,
    ) -> Result<Expected, Failure> {
        if types.accumulator.kind() != ValueKind::Integer {
            return Self::of(a, operation, operands);
        }
        if operation == Operation::Transpose {
            return Self::sums(types, &a.transpose()?, Operation::NonTranspose, operands);
        }
        let reference = in_integers(types, a, operands)?;
        let longest_row = reference.row_nnz.iter().copied().max().unwrap_or(0);
        Ok(Expected { reference: Parts::Real(reference), alpha: operands.alpha, longest_row })
    }

    /// Computes it with what a configuration combines and reduces with, in the types of the kernel.
    pub fn over<V: RealElement, O: Offset>(
        config: &KernelConfig,
        a: &CsrMatrix<V, O>,
        operation: Operation,
        operands: &Operands,
    ) -> Result<Expected, Failure> {
        let types = config.types();
        if types.accumulator.kind() == ValueKind::Complex {
            return Self::of_complex(config, a, operation, operands);
        }
        if operation == Operation::Transpose {
            return Self::over(config, &a.transpose()?, Operation::NonTranspose, operands);
        }
        if config.user_functions().changes_product() {
            return Self::over_functions(config, a, operands);
        }
        let semiring = config.semiring();
        if semiring == Semiring::PlusTimes {
            return Self::sums(types, a, operation, operands);
        }
        let reference = match types.accumulator {
            ValueType::F32 => over_semiring::<f32, V, O>(semiring, a, operands)?,
            ValueType::I32 => over_semiring::<i32, V, O>(semiring, a, operands)?,
            ValueType::I64 => over_semiring::<i64, V, O>(semiring, a, operands)?,
            ValueType::U32 => over_semiring::<u32, V, O>(semiring, a, operands)?,
            ValueType::Bool => over_semiring::<bool, V, O>(semiring, a, operands)?,
            _ => over_semiring::<f64, V, O>(semiring, a, operands)?,
        };
        let reference = match types.y.kind() {
            ValueKind::Integer => reference.stored_in(types.y),
            _ => reference,
        };
        let longest_row = reference.row_nnz.iter().copied().max().unwrap_or(0);
        Ok(Expected { reference: Parts::Real(reference), alpha: operands.alpha, longest_row })
    }

    /// Computes sums of complex products; any of matrix, x and y may be real.
    pub fn of_complex<V: Element, O: Offset>(
        config: &KernelConfig,
        a: &CsrMatrix<V, O>,
        operation: Operation,
        operands: &Operands,
    ) -> Result<Expected, Failure> {
        if operation == Operation::Transpose {
            return Self::of_complex(config, &a.transpose()?, Operation::NonTranspose, operands);
        }
        let types = config.types();
        let complex = |value: ValueType, numbers: &[f64]| match parts(value) {
            1 => numbers.iter().map(|&number| Complex64::from(number)).collect(),
            _ => entries::<Complex64>(numbers),
        };
        let a = a.map_values(|value| Complex64::new(value.re().to_f64(), value.im().to_f64()));
        let [alpha, beta] = [operands.alpha, operands.beta].map(Complex64::from);
        let (x, y) = (complex(types.x, &operands.x), complex(types.y, &operands.y));
        let references = matrix::reference_of_complex(alpha, &a, &x, beta, &y)?;
        let longest_row = references[0].row_nnz.iter().copied().max().unwrap_or(0);
        Ok(Expected { reference: Parts::Complex(references), alpha: operands.alpha, longest_row })
    }

    /// Computes it with functions that the user wrote, in the type that the kernel reduces in.
    fn over_functions<V: RealElement, O: Offset>(
        config: &KernelConfig,
        a: &CsrMatrix<V, O>,
        operands: &Operands,
    ) -> Result<Expected, Failure> {
        let Operands { x, y, alpha, beta } = operands;
        let operators = config.operators();
        let is_scaled = config.replaces_sums().is_none();
        let accumulate = if is_scaled || *beta == 0.0 { Accumulate::Store } else { Accumulate::Reduce };
        let mut reference = match config.types().accumulator {
            ValueType::F32 => {
                let narrow = |numbers: &[f64]| numbers.iter().map(|&n| n as f32).collect::<Vec<f32>>();
                matrix::reference_over_operators(
                    &operators,
                    &a.convert(),
                    &narrow(x),
                    accumulate,
                    &narrow(y),
                )?
            }
            _ => matrix::reference_over_operators(&operators, &a.convert::<f64>(), x, accumulate, y)?,
        };
        if is_scaled {
            let rows = reference.y.iter_mut().zip(&mut reference.magnitude).zip(y);
            rows.for_each(|((sum, magnitude), y)| {
                let before = if *beta == 0.0 { 0.0 } else { beta * y };
                *sum = if *alpha == 0.0 { before } else { alpha * *sum + before };
                *magnitude = alpha.abs() * *magnitude + before.abs();
            });
        }
        let longest_row = reference.row_nnz.iter().copied().max().unwrap_or(0);
        Ok(Expected { reference: Parts::Real(reference), alpha: *alpha, longest_row })
    }

    /// Compares two products with it, row by row, and with each other. The worse one is told of; different bits
    /// where the same ones are promised are wrong.
    pub fn verify(&self, first: &[f64], second: &[f64], promise: &Promise) -> Verification {
        let same_bits = same_bits(first, second);
        let found = self.compare(first, promise);
        // The same bits would be found to be as wrong.
        let again = if same_bits { found.clone() } else { self.compare(second, promise) };
        let passed = found.passed && again.passed && (same_bits || !promise.bit_reproducible);
        let worst = if found.max_error_over_bound >= again.max_error_over_bound { found } else { again };
        Verification {
            passed,
            rows: worst.rows,
            failed_rows: worst.failed_rows,
            max_error_over_bound: worst.max_error_over_bound,
            worst_row: worst.worst_row,
            expected: worst.expected,
            actual: worst.actual,
            unit_roundoff: promise.accumulator.unit_roundoff(),
            depth_of_longest_row: (promise.depth)(self.longest_row),
            same_bits_again: same_bits,
        }
    }

    fn compare(&self, y: &[f64], promise: &Promise) -> matrix::Verification {
        let &Promise { ref depth, accumulator, y: y_type, .. } = promise;
        let underflow = matrix::underflow(self.alpha, self.longest_row, accumulator, y_type);
        let roundoff = accumulator.unit_roundoff();
        match &self.reference {
            Parts::Real(reference) => matrix::verify(y, reference, depth, roundoff, y_type, underflow),
            Parts::Complex(references) => {
                matrix::verify_of_complex(&entries(y), references, depth, roundoff, y_type, underflow)
            }
        }
    }
}

/// The product in integers.
fn in_integers<V: RealElement, O: Offset>(
    types: Types,
    a: &CsrMatrix<V, O>,
    operands: &Operands,
) -> Result<Reference, MatrixError> {
    let a = a.map_values(|value| match value.to_scalar() {
        Scalar::Integer(number) => number,
        _ => unreachable!("sums of integers have integers for entries"),
    });
    let whole = |numbers: &[f64]| numbers.iter().map(|&number| number as i64).collect::<Vec<i64>>();
    let (x, y, types) = (whole(&operands.x), whole(&operands.y), (types.accumulator, types.y));
    matrix::reference_of_integers(operands.alpha as i64, &a, &x, operands.beta as i64, &y, types)
}

/// The product over a semiring in a type.
fn over_semiring<S: Value<RealSum = S> + SemiringNumber, V: Value, O: Offset>(
    semiring: Semiring,
    a: &CsrMatrix<V, O>,
    operands: &Operands,
) -> Result<Reference, MatrixError> {
    let accumulate = if operands.beta == 0.0 { Accumulate::Store } else { Accumulate::Reduce };
    let typed = |numbers: &[f64]| numbers.iter().map(|&number| S::from_f64(number)).collect::<Vec<S>>();
    let (x, y) = (typed(&operands.x), typed(&operands.y));
    matrix::reference_over_semiring(semiring, &a.convert(), &x, accumulate, &y)
}

fn exact_in_f32(operands: &Operands) -> bool {
    let exact = |n: &f64| n.is_nan() || f64::from(*n as f32) == *n;
    operands.x.iter().chain(&operands.y).all(exact)
}

/// Roundings of a term where nothing is known of the order of a sum: the product, the additions of all others,
/// alpha, beta and their sum.
fn any_order_depth(row_nnz: u64) -> u64 {
    row_nnz + 3
}

/// How a product compares with the reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verification {
    pub passed: bool,
    pub rows: usize,
    pub failed_rows: usize,
    /// The largest error of a row as a part of what that row is allowed.
    pub max_error_over_bound: f64,
    pub worst_row: Option<usize>,
    pub expected: f64,
    pub actual: f64,
    /// u of the bound: half the distance from 1 to the next number of the accumulator's type.
    pub unit_roundoff: f64,
    /// h of the bound for the longest row.
    pub depth_of_longest_row: u64,
    /// Whether a second product, after all that were timed, had the same bits.
    pub same_bits_again: bool,
}

impl Verification {
    /// An error where the product is wrong.
    pub fn outcome(&self) -> Result<(), Failure> {
        if self.passed {
            return Ok(());
        }
        if self.failed_rows == 0 {
            let message = "the product changed from run to run, and its algorithm promises the same bits";
            return Err(Failure::new(Kind::Verification, message));
        }
        let Verification { rows, failed_rows, expected, actual, max_error_over_bound, .. } = self;
        let row = self.worst_row.unwrap_or_default();
        Err(Failure::new(
            Kind::Verification,
            format!(
                "the product is wrong in {failed_rows} of {rows} rows; in row {row}, counted from 0, it is {actual:e} \
                 instead of {expected:e}, {max_error_over_bound:.3e} times the bound"
            ),
        ))
    }
}

impl Verification {
    /// One line.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows = quantity::count(self.rows);
        let worst = match self.worst_row {
            Some(row) if self.max_error_over_bound > 0.0 => {
                format!(
                    "largest error {} times its bound, in row {row}, counted from 0",
                    quantity::significant(self.max_error_over_bound)
                )
            }
            _ => "no error at all".to_owned(),
        };
        let again = match self.same_bits_again {
            true => "the same bits in a second product",
            false => "other bits in a second product",
        };
        match (self.passed, self.failed_rows) {
            (true, _) => {
                fact(out, "verification", format_args!("right in all {rows} rows: {worst}; {again}"))
            }
            (false, 0) => {
                fact(out, "verification", format_args!("WRONG: {again}, and the same are promised"))
            }
            (false, failed) => {
                let failed = quantity::count(failed);
                fact(out, "verification", format_args!("WRONG in {failed} of {rows} rows: {worst}; {again}"))
            }
        }
    }
}

/// Whether two vectors have the same bits; all NaN are the same.
fn same_bits(a: &[f64], b: &[f64]) -> bool {
    let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    a.len() == b.len() && a.iter().zip(b).all(same)
}

#[cfg(test)]
mod tests {
    use spmv_runtime::codegen::CsrVector;
    use spmv_runtime::matrix::CooMatrix;

    use super::*;

    fn example() -> (Expected, Promise<'static>) {
        let a = CooMatrix::new(2, 3, vec![0, 0, 0, 1], vec![0, 1, 2, 1], vec![1.0f32, 3.0, 2.0, 5.0]);
        let a = a.unwrap().to_csr::<u32>().unwrap();
        let operands = Operands { alpha: 1.0, beta: 0.0, x: vec![2.0, 1.0, 4.0], y: vec![f64::NAN; 2] };
        (Expected::of(&a, Operation::NonTranspose, &operands).unwrap(), Promise::of_cpu(ValueType::F32))
    }

    #[test]
    fn a_right_product_passes() {
        let (expected, promise) = example();
        let verification = expected.verify(&[13.0, 5.0], &[13.0, 5.0], &promise);
        assert!(verification.passed && verification.outcome().is_ok() && verification.same_bits_again);
        assert_eq!(verification.max_error_over_bound, 0.0);
    }

    #[test]
    fn a_wrong_product_exits_with_1() {
        let (expected, promise) = example();
        for wrong in [[13.0, 5.1], [f64::NAN, 5.0], [13.0, 0.0]] {
            let verification = expected.verify(&wrong, &wrong, &promise);
            assert_eq!(verification.failed_rows, 1, "{wrong:?}");
            assert_eq!(verification.outcome().unwrap_err().kind().code(), 1);
        }
        let message =
            expected.verify(&[13.0, 6.0], &[13.0, 6.0], &promise).outcome().unwrap_err().to_string();
        assert!(
            message.contains("wrong in 1 of 2 rows; in row 1, counted from 0, it is 6e0 instead of 5e0"),
            "{message}"
        );
    }

    #[test]
    fn both_products_count() {
        let (expected, promise) = example();
        let (right, wrong) = ([13.0, 5.0], [13.0, 6.0]);
        for (first, second) in [(&right, &wrong), (&wrong, &right)] {
            let verification = expected.verify(first, second, &promise);
            assert!(!verification.passed && !verification.same_bits_again);
            assert_eq!(verification.failed_rows, 1);
        }
    }

    #[test]
    fn other_bits_are_wrong_where_the_same_are_promised() {
        let (expected, promise) = example();
        let (first, second) = ([13.0, 5.0], [13.0, 5.0f64.next_up()]);
        let failure = expected.verify(&first, &second, &promise).outcome().unwrap_err();
        assert_eq!(failure.kind().code(), 1);
        assert!(failure.to_string().contains("the same bits"), "{failure}");
        assert!(expected.verify(&first, &second, &Promise { bit_reproducible: false, ..promise }).passed);
    }

    #[test]
    fn every_product_with_alpha_may_underflow() {
        // 49 times the smallest subnormal, a hundredth of which is rounded to 0.
        let (value, x, alpha) = (49.0 * 2f32.powi(-74), 2f32.powi(-75), 0.01f32);
        let a = CooMatrix::new(1, 100, vec![0; 100], (0..100).collect(), vec![value; 100]);
        let a = a.unwrap().to_csr::<u32>().unwrap();
        let (alpha, x) = (f64::from(alpha), vec![f64::from(x); 100]);
        let operands = Operands { alpha, beta: 0.0, x, y: vec![f64::NAN] };
        let expected = Expected::of(&a, Operation::NonTranspose, &operands).unwrap();
        let promise = Promise::of_cpu(ValueType::F32);
        assert!(expected.verify(&[0.0], &[0.0], &promise).passed);
        let wrong = f64::from(f32::from_bits(512));
        assert!(!expected.verify(&[wrong], &[wrong], &promise).passed);
    }

    #[test]
    fn bits_are_compared_as_bits() {
        assert!(same_bits(&[f64::NAN, 1.0], &[-f64::NAN, 1.0]));
        assert!(!same_bits(&[0.0], &[-0.0]));
        assert!(!same_bits(&[0.0], &[0.0, 0.0]));
    }

    #[test]
    fn mixed_types_are_compared_exactly() {
        let a = CooMatrix::new(1, 1, vec![0], vec![0], vec![3.0f32]).unwrap().to_csr::<u32>().unwrap();
        let config = KernelConfig::builder(CsrVector::default()).x(ValueType::F64).build().unwrap();
        let x = 1.0 + f64::EPSILON;
        let operands = Operands { alpha: 1.0, beta: 0.0, x: vec![x], y: vec![f64::NAN] };
        let expected = Expected::of(&a, Operation::NonTranspose, &operands).unwrap();
        let guarantees = config.program().guarantees;
        let promise = Promise::of_kernel(config, &guarantees);
        let right = [f64::from((3.0 * x) as f32)];
        assert!(expected.verify(&right, &right, &promise).passed);
        assert!(!expected.verify(&[3.001], &[3.001], &promise).passed);
    }
}
