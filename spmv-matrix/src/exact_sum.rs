//! Sums that are exact until they are rounded once.

/// The sum of numbers of type f64, whatever their order and their magnitudes: exact, and rounded to nearest, ties to even,
/// where it is asked for. What the `dot` of a kernel must be, computed in another way: a counter for every bit.
///
/// ```
/// use spmv_matrix::ExactSum;
///
/// let sum: ExactSum = [1e300, 1.0, -1e300, 2f64.powi(-53)].into_iter().collect();
/// assert_eq!(sum.value(), 1.0);
/// ```
#[derive(Clone, Debug)]
pub struct ExactSum {
    /// How often each bit was added, less how often it was subtracted: bit 0 is 2^-1074.
    bits: Box<[i64]>,
    /// The sum of what is not finite.
    not_finite: f64,
}

/// Bits of finite numbers, and what 2^63 of them carry.
const NUM_BITS: usize = 2046 + 52 + 64;

impl Default for ExactSum {
    fn default() -> Self {
        ExactSum { bits: vec![0; NUM_BITS].into(), not_finite: 0.0 }
    }
}

impl ExactSum {
    /// Adds a number.
    pub fn add(&mut self, number: f64) {
        if !number.is_finite() {
            self.not_finite += number;
            return;
        }
        let exponent = (number.to_bits() >> 52 & 0x7ff) as usize;
        let fraction = number.to_bits() & ((1 << 52) - 1);
        let whole = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let (lowest, sign) = (exponent.max(1) - 1, if number < 0.0 { -1 } else { 1 });
        for (bit, count) in self.bits[lowest..lowest + 53].iter_mut().enumerate() {
            *count += sign * (whole >> bit & 1) as i64;
        }
    }

    /// The sum, rounded; infinite or NaN where adding what is not finite gives that, 0 without numbers.
    pub fn value(&self) -> f64 {
        if self.not_finite != 0.0 {
            return self.not_finite;
        }
        let carried = |sign: i64| {
            let mut carry = 0i64;
            let digit = |count: &i64| {
                carry += sign * count;
                let digit = carry & 1;
                carry >>= 1;
                digit as u64
            };
            let digits: Vec<u64> = self.bits.iter().map(digit).collect();
            (carry == 0).then_some(digits)
        };
        let (digits, sign) = match carried(1) {
            Some(digits) => (digits, 1.0),
            None => (carried(-1).expect("one of a number and its negative is not negative"), -1.0),
        };
        let Some(highest) = digits.iter().rposition(|digit| *digit == 1) else { return 0.0 };
        let kept = highest.saturating_sub(52);
        let whole = digits[kept..=highest].iter().rev().fold(0u64, |whole, digit| whole << 1 | digit);
        let (half, rest) = match digits[..kept].split_last() {
            Some((half, rest)) => (*half == 1, rest.contains(&1)),
            None => (false, false),
        };
        let rounded = whole + u64::from(half && (rest || whole & 1 == 1));
        if kept >= 2046 {
            return sign * f64::INFINITY;
        }
        // A carry out of the fraction is one to the exponent, beyond the largest of which infinity follows.
        sign * f64::from_bits(((kept as u64) << 52) + rounded)
    }
}

impl FromIterator<f64> for ExactSum {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Self {
        let mut sum = ExactSum::default();
        numbers.into_iter().for_each(|number| sum.add(number));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[f64]) -> f64 {
        numbers.iter().copied().collect::<ExactSum>().value()
    }

    #[test]
    fn sums_are_rounded_once() {
        assert_eq!(sum(&[]), 0.0);
        assert_eq!(sum(&[1.5, 2.25, -4.0]), -0.25);
        // One number comes back as it is, subnormal or large.
        for number in [f64::MIN_POSITIVE, 5e-324, 1e-310, f64::MAX, -f64::MAX, 0.1, -3e-308] {
            assert_eq!(sum(&[number]), number);
            assert_eq!(sum(&[number, 1.0, -1.0]), number);
        }
        let (one, half_ulp) = (1.0f64, 2f64.powi(-53));
        assert_eq!(sum(&[one, half_ulp]), 1.0);
        assert_eq!(sum(&[one, half_ulp, 5e-324]), 1.0 + 2.0 * half_ulp);
        assert_eq!(sum(&[one + 2.0 * half_ulp, half_ulp]), 1.0 + 4.0 * half_ulp);
        assert_eq!(sum(&[-one, -half_ulp, -5e-324]), -1.0 - 2.0 * half_ulp);
        assert_eq!(sum(&[2.0 - 2.0 * half_ulp, half_ulp]), 2.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[-f64::MAX, -f64::MAX]), f64::NEG_INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    }

    #[test]
    fn sums_of_whole_numbers_are_those_of_integers() {
        let number = |i: i64| (i * 7_919 % 1_000_003) - 500_000;
        let exact: i64 = (0..10_000).map(number).sum();
        assert_eq!(sum(&(0..10_000).map(|i| number(i) as f64).collect::<Vec<_>>()), exact as f64);
    }
}
