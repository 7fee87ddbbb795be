//! What a product must be, and the operands that it is checked with.

use rayon::prelude::*;
use spmv_runtime::RealElement;
use spmv_runtime::matrix::{self, CsrMatrix, MatrixError, Reference, Verification};

/// The product in doubled precision.
pub(crate) struct Expected {
    reference: Reference,
    alpha: f64,
    longest_row: u64,
}

impl Expected {
    /// alpha op(A) x + beta y, where `a` is op(A).
    pub(crate) fn of<V: RealElement>(
        a: &CsrMatrix<V, u32>,
        (alpha, beta): (f64, f64),
        x: &[V],
        y: &[V],
    ) -> Result<Expected, MatrixError> {
        let reference = matrix::reference(alpha, a, x, beta, y)?;
        let longest_row = reference.row_nnz.par_iter().copied().max().unwrap_or(0);
        Ok(Expected { reference, alpha, longest_row })
    }

    /// Compares a product with it, row by row.
    pub(crate) fn verify<V: RealElement>(&self, y: &[V], depth: impl Fn(u64) -> u64 + Sync) -> Verification {
        let sum = V::TYPE.narrowest_accumulator();
        let underflow = matrix::underflow(self.alpha, self.longest_row, sum, V::TYPE);
        matrix::verify(y, &self.reference, depth, sum.unit_roundoff(), V::TYPE, underflow)
    }
}

/// `ok`, or what is wrong.
pub(crate) fn status(verification: &Verification) -> String {
    if verification.passed {
        return "ok".to_owned();
    }
    let Verification { rows, failed_rows, expected, actual, max_error_over_bound, .. } = verification;
    let row = verification.worst_row.unwrap_or_default();
    format!(
        "wrong: {failed_rows} of {rows} rows; row {row} is {actual:e} instead of {expected:e}, {max_error_over_bound:.3e} times the bound"
    )
}

/// Random entries in [-1, 1) that are exact in their type, the same for a seed on every machine.
pub(crate) fn random<V: RealElement>(len: usize, seed: u64) -> Vec<V> {
    let bits = V::TYPE.digits();
    let entry = |index: usize| {
        let number = splitmix64(seed.wrapping_add((index as u64 + 1).wrapping_mul(GOLDEN)));
        V::from_f64((number >> (64 - bits)) as f64 / (1u64 << (bits - 1)) as f64 - 1.0)
    };
    (0..len).into_par_iter().with_min_len(1 << 14).map(entry).collect()
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators* (OOPSLA 2014).
fn splitmix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use spmv_runtime::matrix::CooMatrix;

    use super::*;

    #[test]
    fn right_and_wrong_products() {
        let a = CooMatrix::new(2, 3, vec![0, 0, 0, 1], vec![0, 1, 2, 1], vec![1.0f32, 3.0, 2.0, 5.0]);
        let a = a.unwrap().to_csr::<u32>().unwrap();
        let expected = Expected::of(&a, (1.0, 0.0), &[2.0, 1.0, 4.0], &[f32::NAN; 2]).unwrap();
        let verify = |y: [f32; 2]| expected.verify(&y, |row_nnz| row_nnz + 8);
        assert_eq!(status(&verify([13.0, 5.0])), "ok");
        let wrong = status(&verify([13.0, 5.1]));
        assert!(wrong.starts_with("wrong: 1 of 2 rows; row 1 is "), "{wrong}");
        assert!(status(&verify([f32::NAN, 5.0])).starts_with("wrong: 1 of 2 rows; row 0 is NaN"));
    }

    #[test]
    fn every_product_with_alpha_may_underflow() {
        // 49 times the smallest subnormal, a hundredth of which is rounded to 0.
        let (value, x, alpha) = (49.0 * 2f32.powi(-74), 2f32.powi(-75), 0.01);
        let a = CooMatrix::new(1, 100, vec![0; 100], (0..100).collect(), vec![value; 100]);
        let a = a.unwrap().to_csr::<u32>().unwrap();
        let expected = Expected::of(&a, (f64::from(alpha), 0.0), &[x; 100], &[0.0]).unwrap();
        let product = (0..100).map(|_| alpha * (value * x)).sum::<f32>();
        assert_eq!(product, 0.0);
        assert_eq!(status(&expected.verify(&[product], |row_nnz| row_nnz + 8)), "ok");
        assert_ne!(status(&expected.verify(&[f32::from_bits(512)], |row_nnz| row_nnz + 8)), "ok");
    }

    #[test]
    fn operands_are_random_and_exact() {
        let x = random::<f32>(1000, 7);
        assert_eq!(x, random::<f32>(1000, 7));
        assert_ne!(x, random::<f32>(1000, 8));
        assert!(x.iter().all(|x| (-1.0..1.0).contains(x)));
        assert!(x.iter().sum::<f32>().abs() < 100.0);
        // The first output for seed 0 is 0xe220a8397b1dcdaf.
        let first = (0xe220_a839_7b1d_cdaf_u64 >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        assert_eq!(random::<f64>(1, 0), [first]);
    }
}
