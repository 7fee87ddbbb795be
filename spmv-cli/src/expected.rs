//! What a product must be, and whether it is.

use serde::Serialize;
use spmv_runtime::codegen::ValueType;
use spmv_runtime::matrix::{self, CsrMatrix, Offset, Reference, Value};

use crate::failure::{Failure, Kind};
use crate::operands::Operands;

/// The product in doubled precision, with the bound that a right one keeps.
pub struct Expected {
    reference: Reference,
    alpha: f64,
    longest_row: u64,
}

/// How many roundings a term may pass through, and the types that round.
pub struct Rounding<'a> {
    pub depth: &'a (dyn Fn(u64) -> u64 + Sync),
    pub accumulator: ValueType,
    pub y: ValueType,
}

impl Expected {
    /// Computes it, on the CPU.
    pub fn of<V: Value, O: Offset>(a: &CsrMatrix<V, O>, operands: &Operands) -> Result<Expected, Failure> {
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
        Ok(Expected { reference, alpha: operands.alpha, longest_row })
    }

    /// Compares a product with it, row by row.
    pub fn verify(&self, y: &[f64], rounding: &Rounding) -> Verification {
        let &Rounding { depth, accumulator, y: y_type } = rounding;
        // Every product of a row may underflow, then alpha and the conversion to the type of y.
        let underflow = accumulator.smallest_subnormal() * (self.alpha.abs() * self.longest_row as f64 + 2.0)
            + y_type.smallest_subnormal();
        let found = matrix::verify(
            y,
            &self.reference,
            depth,
            accumulator.unit_roundoff(),
            y_type.unit_roundoff(),
            underflow,
        );
        Verification {
            passed: found.passed,
            rows: found.rows,
            failed_rows: found.failed_rows,
            max_error_over_bound: found.max_error_over_bound,
            worst_row: found.worst_row,
            expected: found.expected,
            actual: found.actual,
            unit_roundoff: accumulator.unit_roundoff(),
            depth_of_longest_row: depth(self.longest_row),
            checked_again_after_timing: false,
            same_bits_after_timing: None,
        }
    }
}

fn exact_in_f32(operands: &Operands) -> bool {
    let exact = |n: &f64| n.is_nan() || f64::from(*n as f32) == *n;
    operands.x.iter().chain(&operands.y).all(exact)
}

/// Roundings of a term where nothing is known of the order of a sum: the product, the additions of all others,
/// alpha, beta and their sum.
pub fn any_order_depth(row_nnz: u64) -> u64 {
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
    /// Whether one more product, after all that were timed, was verified too.
    pub checked_again_after_timing: bool,
    /// Whether that one had the same bits as the first.
    pub same_bits_after_timing: Option<bool>,
}

impl Verification {
    /// With what one more product after the timing gave; the worse of the two counts, and different bits where
    /// the same ones are promised are wrong.
    pub fn again(self, later: Verification, same_bits: bool, reproducible: bool) -> Verification {
        let first_is_worse = self.max_error_over_bound >= later.max_error_over_bound;
        let passed = self.passed && later.passed && (same_bits || !reproducible);
        Verification {
            passed,
            checked_again_after_timing: true,
            same_bits_after_timing: Some(same_bits),
            ..if first_is_worse { self } else { later }
        }
    }

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
                "the product is wrong in {failed_rows} of {rows} rows; in row {row} it is {actual:e} instead of \
                 {expected:e}, {max_error_over_bound:.3e} times the bound"
            ),
        ))
    }
}

/// Whether two vectors have the same bits; all NaN are the same.
pub fn same_bits(a: &[f64], b: &[f64]) -> bool {
    let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    a.len() == b.len() && a.iter().zip(b).all(same)
}

#[cfg(test)]
mod tests {
    use spmv_runtime::codegen::{CsrVector, KernelConfig};
    use spmv_runtime::matrix::CooMatrix;

    use super::*;

    fn example() -> (Expected, Rounding<'static>) {
        let a = CooMatrix::new(2, 3, vec![0, 0, 0, 1], vec![0, 1, 2, 1], vec![1.0f32, 3.0, 2.0, 5.0]);
        let a = a.unwrap().to_csr::<u32>().unwrap();
        let operands = Operands { alpha: 1.0, beta: 0.0, x: vec![2.0, 1.0, 4.0], y: vec![f64::NAN; 2] };
        let rounding = Rounding { depth: &any_order_depth, accumulator: ValueType::F32, y: ValueType::F32 };
        (Expected::of(&a, &operands).unwrap(), rounding)
    }

    #[test]
    fn a_right_product_passes() {
        let (expected, rounding) = example();
        let verification = expected.verify(&[13.0, 5.0], &rounding);
        assert!(verification.passed && verification.outcome().is_ok());
        assert_eq!(verification.max_error_over_bound, 0.0);
    }

    #[test]
    fn a_wrong_product_exits_with_1() {
        let (expected, rounding) = example();
        for wrong in [[13.0, 5.1], [f64::NAN, 5.0], [13.0, 0.0]] {
            let verification = expected.verify(&wrong, &rounding);
            assert_eq!(verification.failed_rows, 1, "{wrong:?}");
            assert_eq!(verification.outcome().unwrap_err().kind().code(), 1);
        }
        let message = expected.verify(&[13.0, 6.0], &rounding).outcome().unwrap_err().to_string();
        assert!(message.contains("wrong in 1 of 2 rows; in row 1 it is 6e0 instead of 5e0"), "{message}");
    }

    #[test]
    fn the_later_product_counts_too() {
        let (expected, rounding) = example();
        let right = expected.verify(&[13.0, 5.0], &rounding);
        let wrong = expected.verify(&[13.0, 6.0], &rounding);
        assert!(right.clone().again(right.clone(), true, true).passed);
        assert!(right.clone().again(right.clone(), false, false).passed);
        assert_eq!(right.clone().again(wrong, false, false).outcome().unwrap_err().kind().code(), 1);
        assert_eq!(right.clone().again(right, false, true).outcome().unwrap_err().kind().code(), 1);
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
        let expected = Expected::of(&a, &operands).unwrap();
        let guarantees = config.program().guarantees;
        let depth = |row_nnz| guarantees.depth(row_nnz);
        let rounding = Rounding { depth: &depth, accumulator: ValueType::F64, y: ValueType::F32 };
        assert!(expected.verify(&[f64::from((3.0 * x) as f32)], &rounding).passed);
        assert!(!expected.verify(&[3.001], &rounding).passed);
    }
}
