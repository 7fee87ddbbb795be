//! Means of ratios and times.

/// The geometric mean of numbers above 0. `None` where there are no numbers, or where one of them is not finite or
/// not above 0: a mean that leaves out what does not fit would be of something else.
///
/// ```
/// use spmv_bench::geomean;
///
/// assert_eq!(geomean([2.0, 8.0]), Some(4.0));
/// assert_eq!(geomean([]), None);
/// assert_eq!(geomean([1.0, 0.0]), None);
/// ```
pub fn geomean(numbers: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut logarithms, mut count) = (0.0, 0u32);
    for number in numbers {
        if !(number.is_finite() && number > 0.0) {
            return None;
        }
        logarithms += number.log2();
        count += 1;
    }
    (count > 0).then(|| (logarithms / f64::from(count)).exp2())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_has_no_mean() {
        for numbers in [&[][..], &[0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY]] {
            assert_eq!(geomean(numbers.iter().copied()), None, "{numbers:?}");
        }
    }

    proptest! {
        #[test]
        fn lies_between_and_turns_over(numbers in prop::collection::vec(1e-9..1e9f64, 1..40)) {
            let mean = geomean(numbers.iter().copied()).unwrap();
            let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            let most = numbers.iter().copied().fold(0.0, f64::max);
            prop_assert!(mean >= least * (1.0 - 1e-9) && mean <= most * (1.0 + 1e-9));
            let turned = geomean(numbers.iter().map(|number| 1.0 / number)).unwrap();
            prop_assert!((mean * turned - 1.0).abs() < 1e-9);
        }
    }
}
