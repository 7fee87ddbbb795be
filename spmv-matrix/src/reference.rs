//! A product to compare others with, and the bound that a right one keeps.

use std::ops::Range;

use spmv_codegen::ValueKind;

use crate::product::{check_lengths, cpu_parallel, cpu_serial};
use crate::{Complex64, CsrMatrix, Entry, MatrixError, Offset, Value, ValueType, parallel};

/// How many rows a task takes at a time.
const BLOCK: usize = 1024;

/// What rows are multiplied by whose sums leave f64, 2^-128: no row has entries enough to leave it then too.
const DOWN: f64 = f64::from_bits((1023 - 128) << 52);

/// α·A·x + β·y in doubled precision, row by row, with what bounds the error of others.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reference {
    /// α·A·x + β·y, from sums in doubled double precision; of `whole`, the nearest numbers.
    pub y: Vec<f64>,
    /// The same where sums are of integers: f64 does not tell those beyond 2⁵³ apart.
    pub whole: Option<Vec<i64>>,
    /// |α||A||x| + |β||y|, the sum of the absolute values of what is added up.
    pub magnitude: Vec<f64>,
    /// The number of entries of each row.
    pub row_nnz: Vec<u64>,
    /// Rows whose magnitude is infinite and whose sum is not, and `DOWN` times that magnitude.
    beyond: Vec<(usize, f64)>,
}

/// Computes α·A·x + β·y in doubled precision.
///
/// α and β are the numbers that the compared product used: those rounded to its type. `x` has `num_cols`
/// entries and `y`, the vector before the product, has `num_rows`. Sums that leave f64 on the way are finite where they are in
/// the end.
///
/// # Errors
///
/// [`MatrixError::VectorLength`] where `x` or `y` does not fit the matrix.
pub fn reference<V: Value, O: Offset>(
    alpha: f64,
    a: &CsrMatrix<V, O>,
    x: &[V],
    beta: f64,
    y: &[V],
) -> Result<Reference, MatrixError> {
    check_lengths(a, x, y)?;
    let scaled = |row: usize, scale: f64| {
        let (mut sum, mut magnitude) = (Compensated::default(), 0.0);
        let (cols, values) = a.row(row);
        if alpha != 0.0 {
            for (&col, value) in cols.iter().zip(values) {
                let (value, x) = (scale * value.to_f64(), x[col as usize].to_f64());
                sum.add_product(value, x);
                magnitude += (value * x).abs();
            }
            sum = sum.scaled(alpha);
            magnitude *= alpha.abs();
        }
        if beta != 0.0 {
            let y = scale * y[row].to_f64();
            sum.add_product(beta, y);
            magnitude += (beta * y).abs();
        }
        (sum.value(), magnitude)
    };
    let rows = parallel::collect(a.num_rows(), BLOCK, |row| scaled(row, 1.0)).into_iter().unzip();
    let mut reference = Reference::new(rows, row_nnz(a));
    for row in (0..a.num_rows()).filter(|&row| reference.magnitude[row] == f64::INFINITY) {
        let (sum, magnitude) = scaled(row, DOWN);
        if (sum / DOWN).is_finite() {
            reference.y[row] = sum / DOWN;
            reference.beyond.push((row, magnitude));
        }
    }
    Ok(reference)
}

/// The sum of numbers in doubled precision, and that of their absolute values.
pub(crate) fn sum_of(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut sum, mut magnitude) = (Compensated::default(), 0.0);
    for number in numbers {
        sum.add_product(number, 1.0);
        magnitude += number.abs();
    }
    (sum.value(), magnitude)
}

/// Computes α·A·x + β·y in integers, which wrap around in a sum of type `sums` and are then cut off to the type of `y`: a
/// right product has exactly these numbers, whatever its order. `x` and `y` are as in [`reference()`].
///
/// # Errors
///
/// [`MatrixError::VectorLength`] where `x` or `y` does not fit the matrix.
pub fn reference_of_integers<O: Offset>(
    alpha: i64,
    a: &CsrMatrix<i64, O>,
    x: &[i64],
    beta: i64,
    y: &[i64],
    (sums, y_type): (ValueType, ValueType),
) -> Result<Reference, MatrixError> {
    let mut product = y.to_vec();
    cpu_parallel(alpha, a, x, beta, &mut product)?;
    product.iter_mut().for_each(|number| *number = cut_off(cut_off(*number, sums), y_type));
    Ok(Reference::exact(product, row_nnz(a)))
}

/// What a type of integers holds of a number: its last bits, which in sums and products do not depend on the others.
fn cut_off(number: i64, to: ValueType) -> i64 {
    match to {
        ValueType::I8 => i64::from(number as i8),
        ValueType::I32 => i64::from(number as i32),
        ValueType::U32 => i64::from(number as u32),
        _ => number,
    }
}

impl Reference {
    /// One of numbers and their magnitudes.
    pub(crate) fn new((y, magnitude): (Vec<f64>, Vec<f64>), row_nnz: Vec<u64>) -> Reference {
        Reference { y, whole: None, magnitude, row_nnz, beyond: Vec::new() }
    }

    /// One of numbers that nothing was rounded for.
    pub(crate) fn exact<V: Value>(product: Vec<V>, row_nnz: Vec<u64>) -> Reference {
        let whole = |number: &V| number.to_integer().map(|number| number as i64);
        let whole = product.iter().map(whole).collect();
        let y: Vec<f64> = product.into_iter().map(Value::to_f64).collect();
        let magnitude = vec![0.0; y.len()];
        Reference { whole, ..Reference::new((y, magnitude), row_nnz) }
    }

    /// A reference of whole numbers as it is stored in a type of integers, which keeps their last bits.
    pub fn stored_in(self, y: ValueType) -> Reference {
        let Some(whole) = self.whole else { return self };
        Reference::exact(whole.into_iter().map(|number| cut_off(number, y)).collect(), self.row_nnz)
    }

    /// γ times the magnitude of a row.
    fn sum_error(&self, row: usize, gamma: f64) -> f64 {
        match self.beyond(row) {
            Some(magnitude) => gamma * magnitude / DOWN,
            None if self.magnitude[row] == 0.0 => 0.0,
            None => gamma * self.magnitude[row],
        }
    }

    /// `DOWN` times the magnitude of a row where that is infinite and the sum is not.
    fn beyond(&self, row: usize) -> Option<f64> {
        let found = self.beyond.binary_search_by_key(&row, |&(row, _)| row);
        found.ok().map(|place| self.beyond[place].1)
    }
}

/// The absolute error of a row by numbers that underflow, as [`verify`] takes it: every product may underflow, and again
/// where α multiplies it before it is added, then α times the sum and β times y, and what is stored in y. A part of a
/// complex product is two real ones.
pub fn underflow(alpha: f64, longest_row: u64, accumulator: ValueType, y: ValueType) -> f64 {
    let parts = if accumulator.kind() == ValueKind::Complex { 2.0 } else { 1.0 };
    let times = parts * ((1.0 + alpha.abs()) * longest_row as f64 + 2.0);
    accumulator.smallest_subnormal() * times + y.smallest_subnormal()
}

/// The number of entries of each row.
pub(crate) fn row_nnz<V: Entry, O: Offset>(a: &CsrMatrix<V, O>) -> Vec<u64> {
    (0..a.num_rows()).map(|row| a.row_range(row).len() as u64).collect()
}

/// Computes α·A·x + β·y of complex numbers in doubled precision: the real and the imaginary parts, each with the
/// magnitudes of the complex numbers. A step of a complex sum is two of a real one, so the depth of a part is twice that of
/// a real product. `alpha`, `beta`, `x` and `y` are as in [`reference()`].
///
/// # Errors
///
/// [`MatrixError::VectorLength`] where `x` or `y` does not fit the matrix.
pub fn reference_of_complex<O: Offset>(
    alpha: Complex64,
    a: &CsrMatrix<Complex64, O>,
    x: &[Complex64],
    beta: Complex64,
    y: &[Complex64],
) -> Result<[Reference; 2], MatrixError> {
    let mut product = y.to_vec();
    cpu_serial(alpha, a, x, beta, &mut product)?;
    let zero = Complex64::default();
    let magnitude = parallel::collect(a.num_rows(), BLOCK, |row| {
        let (cols, values) = a.row(row);
        let terms = cols.iter().zip(values).map(|(&col, value)| value.norm() * x[col as usize].norm());
        let sum = if alpha == zero { 0.0 } else { alpha.norm() * terms.sum::<f64>() };
        let before = if beta == zero { 0.0 } else { beta.norm() * y[row].norm() };
        sum + before
    });
    let row_nnz = row_nnz(a);
    let part = |of: fn(&Complex64) -> f64| {
        Reference::new((product.iter().map(of).collect(), magnitude.clone()), row_nnz.clone())
    };
    Ok([part(|number| number.re), part(|number| number.im)])
}

/// How a product compares with a [`Reference`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Verification {
    /// The number of rows.
    pub rows: usize,
    /// Rows whose error exceeds the bound.
    pub failed_rows: usize,
    /// The largest error of a row, as a multiple of that row's bound; infinite where a row is not finite
    /// and should be.
    pub max_error_over_bound: f64,
    /// The row of that error; none where there are no rows.
    pub worst_row: Option<usize>,
    /// What that row should be; a whole number beyond 2⁵³ is rounded here, and so is `actual`.
    pub expected: f64,
    /// What it is.
    pub actual: f64,
    /// Whether no row exceeds its bound.
    pub passed: bool,
}

/// Compares ŷ with a reference, row by row: |ŷ − y| ≤ γ_h(`u_acc`)·(|α||A||x| + |β||y|) + `u_y`·|y| +
/// `underflow`, where γ_h(u) = (1 + u)^h − 1 and h = `depth(row_nnz)`.
///
/// `depth` is how many roundings lie one after the other on the way to a sum of that many products;
/// `u_acc` is the unit roundoff of the accumulator and `u_y` that of the type of y, whatever type holds ŷ;
/// `underflow` is an absolute error.
/// A value that is not finite passes only where the reference has the same, and an infinite one also where a number
/// within the bound rounds to it; where |α||A||x| + |β||y| is beyond f64 and the reference is not, any passes, as sums of some
/// of the terms may be beyond it too. Whole numbers of a type of integers are compared exactly with those of the reference.
///
/// # Panics
///
/// Where `y_hat` has another length than the reference.
pub fn verify<V: Value>(
    y_hat: &[V],
    reference: &Reference,
    depth: impl Fn(u64) -> u64 + Sync,
    u_acc: f64,
    y: ValueType,
    underflow: f64,
) -> Verification {
    assert_eq!(y_hat.len(), reference.y.len(), "y_hat must have as many entries as the reference");
    let off_by = |row: usize| {
        let expected = i128::from(reference.whole.as_ref()?[row]);
        Some(y_hat[row].to_integer()?.abs_diff(expected) as f64)
    };
    verify_parts([reference], |row| [y_hat[row].to_f64()], off_by, depth, u_acc, y, underflow)
}

/// Compares a complex ŷ with the references of its parts as [`verify`] does: a row is as far off as the worse of its parts,
/// which `expected` and `actual` then tell. `depth` is that of a part.
///
/// # Panics
///
/// Where `y_hat` has another length than the references.
pub fn verify_of_complex(
    y_hat: &[Complex64],
    references: &[Reference; 2],
    depth: impl Fn(u64) -> u64 + Sync,
    u_acc: f64,
    y: ValueType,
    underflow: f64,
) -> Verification {
    let [re, im] = references;
    assert_eq!(
        [y_hat.len(); 2],
        [re.y.len(), im.y.len()],
        "y_hat must have as many entries as the references"
    );
    verify_parts([re, im], |row| [y_hat[row].re, y_hat[row].im], |_| None, depth, u_acc, y, underflow)
}

/// Compares rows of one or more parts, each with its reference; `off_by` says how far off a whole number is.
fn verify_parts<const PARTS: usize>(
    references: [&Reference; PARTS],
    actual: impl Fn(usize) -> [f64; PARTS] + Sync,
    off_by: impl Fn(usize) -> Option<f64> + Sync,
    depth: impl Fn(u64) -> u64 + Sync,
    u_acc: f64,
    y: ValueType,
    underflow: f64,
) -> Verification {
    // What rounds to infinity: half a unit beyond the largest number.
    let u_y = y.unit_roundoff();
    let overflow = y.largest() * ((1.0 - u_y / 2.0) / (1.0 - u_y));
    let error_of_part = |row: usize, part: usize| {
        let reference = references[part];
        let (expected, actual) = (reference.y[row], actual(row)[part]);
        let gamma = (depth(reference.row_nnz[row]) as f64 * u_acc.ln_1p()).exp_m1();
        let sum = reference.sum_error(row, gamma);
        if !actual.is_finite() && reference.beyond(row).is_some() {
            return 0.0;
        }
        if expected.is_finite() && actual.is_infinite() {
            let reached = expected.abs() + sum >= overflow && expected.signum() == actual.signum();
            return if reached { 0.0 } else { f64::INFINITY };
        }
        if !expected.is_finite() || !actual.is_finite() {
            let same = expected == actual || (expected.is_nan() && actual.is_nan());
            return if same { 0.0 } else { f64::INFINITY };
        }
        let error = off_by(row).unwrap_or_else(|| (actual - expected).abs());
        let bound = sum + u_y * expected.abs() + underflow;
        let ratio = if error == 0.0 { 0.0 } else { error / bound };
        // A ratio that is no number, as with a bound that is none, fails too.
        if ratio.is_nan() { f64::INFINITY } else { ratio }
    };
    let worst_part = |row: usize| {
        let errors = (0..PARTS).map(|part| (error_of_part(row, part), part));
        errors.max_by(|a, b| a.0.total_cmp(&b.0)).expect("a row has a part")
    };
    let worse = |a: (f64, usize, usize), b: (f64, usize, usize)| {
        let failed = a.2 + b.2;
        let a_first = a.0 > b.0 || (a.0 == b.0 && a.1 <= b.1);
        let (ratio, row) = if a_first { (a.0, a.1) } else { (b.0, b.1) };
        (ratio, row, failed)
    };
    let rows = references[0].y.len();
    let none = (0.0, usize::MAX, 0);
    let worst_of = |rows: Range<usize>| {
        let ratios = rows.map(|row| (worst_part(row).0, row));
        ratios.map(|(ratio, row)| (ratio, row, usize::from(ratio > 1.0))).fold(none, worse)
    };
    let worst = parallel::map(parallel::blocks(rows, BLOCK), worst_of);
    let (max_error_over_bound, row, failed_rows) = worst.into_iter().fold(none, worse);
    let worst_row = (row < rows).then_some(row);
    let worst = worst_row.map(|row| (row, worst_part(row).1));
    Verification {
        rows,
        failed_rows,
        max_error_over_bound,
        worst_row,
        expected: worst.map_or(0.0, |(row, part)| references[part].y[row]),
        actual: worst.map_or(0.0, |(row, part)| actual(row)[part]),
        passed: failed_rows == 0,
    }
}

/// A sum in doubled precision: T. Ogita, S. M. Rump and S. Oishi, *Accurate Sum and Dot Product* (SIAM J.
/// Sci. Comput. 26, 2005), algorithm 5.3.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compensated {
    sum: f64,
    error: f64,
}

impl Compensated {
    /// Adds a·b.
    #[inline(always)]
    pub fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        let product_error = a.mul_add(b, -product);
        let sum = self.sum + product;
        let part = sum - self.sum;
        let sum_error = (self.sum - (sum - part)) + (product - part);
        self.sum = sum;
        self.error += product_error + sum_error;
    }

    /// Adds a sum.
    pub fn add(&mut self, other: Self) {
        self.add_product(other.sum, 1.0);
        self.error += other.error;
    }

    /// The sum times a factor.
    pub fn scaled(self, factor: f64) -> Self {
        let sum = self.sum * factor;
        Self { sum, error: self.sum.mul_add(factor, -sum) + self.error * factor }
    }

    /// The sum, rounded.
    pub fn value(self) -> f64 {
        // Where the sum is not finite the error means nothing.
        if self.sum.is_finite() && self.error.is_finite() { self.sum + self.error } else { self.sum }
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn what_is_too_large_for_y_is_infinite() {
        let one = |y: f64| Reference::new((vec![y], vec![y.abs()]), vec![1]);
        let passes = |y_hat: f64, y: f64| {
            let y_hat = [f16::from_f64(y_hat)];
            verify(&y_hat, &one(y), |_| 4, ValueType::F32.unit_roundoff(), ValueType::F16, 0.0).passed
        };
        assert!(passes(65504.0, 65519.0) && passes(f64::INFINITY, 65520.0) && passes(f64::INFINITY, 1e9));
        assert!(passes(f64::NEG_INFINITY, -65520.0));
        // The bound reaches the middle between the largest number and what would follow it.
        assert!(passes(f64::INFINITY, 65519.99));
        assert!(!passes(f64::INFINITY, 65519.0) && !passes(f64::NEG_INFINITY, 65520.0));
        assert!(!passes(f64::INFINITY, f64::NAN) && !passes(65504.0, 1e9));
    }
}
