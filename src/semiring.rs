//! What a product combines and reduces with: y\[r\] = ⊕ over j of values\[j\] ⊗ x\[col_indices\[j\]\].
//!
//! Each operator is said twice, once for a kernel and once for the CPU, side by side.

use std::fmt;
use std::str::FromStr;

use crate::error::UnknownName;
use crate::types::{ValueKind, ValueType, named};

/// The operators of a product. A row that holds nothing is the identity of ⊕.
///
/// | name | ⊕ | ⊗ | identity | what for |
/// |---|---|---|---|---|
/// | `plus_times` | a + b | a · x | 0 | linear algebra |
/// | `min_plus` | min | a + x | ∞ | shortest paths |
/// | `max_plus` | max | a + x | −∞ | longest paths, schedules |
/// | `max_times` | max | a · x | −∞ | most reliable paths; values that are not negative |
/// | `or_and` | or | and | 0 | reachability: what is not 0 is true, and results are 0 and 1 |
/// | `plus_pair` | a + b | 1 | 0 | entries of a row, whatever they are |
///
/// With any but `plus_times`, a product is stored (β = 0) or reduced with y (β = 1), and α is 1.
///
/// NaN has no part in min and max, so it never comes out of them; for `or_and` it is true. min and max of floating-point
/// numbers are exact, and a + x and a · x are rounded once, to the type of sums: every algorithm gives the same numbers.
/// `plus_pair` counts exactly up to 2²⁴ in f32.
///
/// Over integers, ∞ is the greatest number of the type of sums and −∞ the least: they stay what they are whatever is added
/// to them or multiplied with them, and other results that leave the type become its greatest or least. Sums of products
/// and counts wrap around. Truth values are combined by `or_and` alone, complex numbers by `plus_times`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Semiring {
    /// Sums of products.
    #[default]
    PlusTimes,
    /// The least sum.
    MinPlus,
    /// The greatest sum.
    MaxPlus,
    /// The greatest product.
    MaxTimes,
    /// Whether both are true anywhere.
    OrAnd,
    /// How many entries there are.
    PlusPair,
}

named!(Semiring, "semiring", {
    PlusTimes = "plus_times",
    MinPlus = "min_plus",
    MaxPlus = "max_plus",
    MaxTimes = "max_times",
    OrAnd = "or_and",
    PlusPair = "plus_pair",
});

/// ⊕.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reduce {
    Plus,
    Min,
    Max,
    Or,
}

/// ⊗.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combine {
    Times,
    Plus,
    And,
    Pair,
}

impl Semiring {
    const fn operators(self) -> (Reduce, Combine) {
        match self {
            Semiring::PlusTimes => (Reduce::Plus, Combine::Times),
            Semiring::MinPlus => (Reduce::Min, Combine::Plus),
            Semiring::MaxPlus => (Reduce::Max, Combine::Plus),
            Semiring::MaxTimes => (Reduce::Max, Combine::Times),
            Semiring::OrAnd => (Reduce::Or, Combine::And),
            Semiring::PlusPair => (Reduce::Plus, Combine::Pair),
        }
    }

    /// What changes nothing: the result of an empty row.
    pub fn identity<N: SemiringNumber>(self) -> N {
        match self.operators().0 {
            Reduce::Plus | Reduce::Or => N::ZERO,
            Reduce::Min => N::GREATEST,
            Reduce::Max => N::LEAST,
        }
    }

    /// a ⊕ b.
    pub fn reduce<N: SemiringNumber>(self, a: N, b: N) -> N {
        match self.operators().0 {
            Reduce::Plus => a.plus(b),
            Reduce::Min => a.least(b),
            Reduce::Max => a.greatest(b),
            Reduce::Or => truth(a != N::ZERO || b != N::ZERO),
        }
    }

    /// value ⊗ x.
    pub fn combine<N: SemiringNumber>(self, value: N, x: N) -> N {
        match self.operators().1 {
            Combine::Times if self.operators().0 == Reduce::Plus => value.times(x),
            Combine::Times => value.times_within(x, self.identity()),
            Combine::Plus => value.plus_within(x, self.identity()),
            Combine::And => truth(value != N::ZERO && x != N::ZERO),
            Combine::Pair => N::ONE,
        }
    }

    /// Why sums of this type, and a y of that one, have no meaning over the semiring; `None` where they have.
    pub(crate) fn type_problem(self, accumulator: ValueType, y: ValueType) -> Option<String> {
        let is_ordered = matches!(self.operators().0, Reduce::Min | Reduce::Max);
        match accumulator.kind() {
            ValueKind::Bool if self != Semiring::OrAnd => Some(format!(
                "accumulator = bool: truth values are combined by or_and, not by {self}; use semiring = or_and, or y and \
                 accumulator of a type of numbers"
            )),
            ValueKind::Complex if self != Semiring::PlusTimes => Some(format!(
                "accumulator = {accumulator}: complex numbers are combined by plus_times, not by {self}; use types that \
                 are not complex"
            )),
            ValueKind::Integer if is_ordered && y != accumulator => Some(format!(
                "y = {y} is narrower than accumulator = {accumulator}, whose limits are the results of empty rows over \
                 {self}; use y = {accumulator}"
            )),
            ValueKind::Integer if self == Semiring::MaxPlus && accumulator == ValueType::U32 => Some(
                "accumulator = u32: its least number is 0, which max_plus needs for -infinity; allowed: f32, f64, i32, i64"
                    .into(),
            ),
            _ => None,
        }
    }

    /// The identity of ⊕ in CUDA, for sums of this type.
    pub(crate) fn cuda_identity(self, accumulator: ValueType) -> &'static str {
        match self.operators().0 {
            Reduce::Plus | Reduce::Or => "0",
            Reduce::Min => accumulator.cuda_greatest(),
            Reduce::Max => accumulator.cuda_least(),
        }
    }

    /// a ⊕ b in CUDA.
    pub(crate) fn cuda_reduced(self, accumulator: ValueType) -> String {
        let is_integer = accumulator.kind() == ValueKind::Integer;
        let number = accumulator.cuda();
        match self.operators().0 {
            Reduce::Plus => "a + b".into(),
            Reduce::Min if is_integer => format!("AccumT(min({number}(a), {number}(b)))"),
            Reduce::Max if is_integer => format!("AccumT(max({number}(a), {number}(b)))"),
            Reduce::Min => "min(a, b)".into(),
            Reduce::Max => "max(a, b)".into(),
            Reduce::Or => "AccumT(a != AccumT(0) || b != AccumT(0))".into(),
        }
    }

    /// value ⊗ x in CUDA.
    pub(crate) fn cuda_combined(self, accumulator: ValueType, value: &str, x: &str) -> String {
        let is_integer = accumulator.kind() == ValueKind::Integer;
        let number = accumulator.cuda();
        let within =
            |what| format!("AccumT({what}_within({number}({value}), {number}({x}), {number}(kIdentity)))");
        match self.operators().1 {
            Combine::Times if is_integer && self != Semiring::PlusTimes => within("times"),
            Combine::Plus if is_integer => within("plus"),
            Combine::Times => format!("{value} * {x}"),
            Combine::Plus => format!("{value} + {x}"),
            Combine::And => format!("AccumT({value} != AccumT(0) && {x} != AccumT(0))"),
            Combine::Pair => "AccumT(1)".into(),
        }
    }

    /// Whether two zeros are combined to what changes nothing.
    pub(crate) fn zeros_add_nothing(self) -> bool {
        matches!(self, Semiring::PlusTimes | Semiring::OrAnd)
    }

    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Semiring::PlusTimes => "sum of value * x",
            Semiring::MinPlus => "least value + x",
            Semiring::MaxPlus => "greatest value + x",
            Semiring::MaxTimes => "greatest value * x",
            Semiring::OrAnd => "truth of value and x in any",
            Semiring::PlusPair => "number",
        }
    }
}

fn truth<N: SemiringNumber>(is_true: bool) -> N {
    if is_true { N::ONE } else { N::ZERO }
}

/// A number that products are computed in on the CPU as a kernel computes them.
pub trait SemiringNumber: Copy + PartialEq {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// What no number is greater than: ∞.
    const GREATEST: Self;
    /// What no number is less than: −∞.
    const LEAST: Self;

    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// The sum where `none` stands for a number without end, which stays what it is, and none is beyond the limits.
    fn plus_within(self, other: Self, none: Self) -> Self;
    /// The product, likewise.
    fn times_within(self, other: Self, none: Self) -> Self;
    /// The lesser number; the other where one is NaN.
    fn least(self, other: Self) -> Self;
    /// The greater number; the other where one is NaN.
    fn greatest(self, other: Self) -> Self;
}

macro_rules! float {
    ($float:ident) => {
        impl SemiringNumber for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const GREATEST: Self = $float::INFINITY;
            const LEAST: Self = $float::NEG_INFINITY;

            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn times(self, other: Self) -> Self {
                self * other
            }

            fn plus_within(self, other: Self, _: Self) -> Self {
                self + other
            }

            fn times_within(self, other: Self, _: Self) -> Self {
                self * other
            }

            fn least(self, other: Self) -> Self {
                self.min(other)
            }

            fn greatest(self, other: Self) -> Self {
                self.max(other)
            }
        }
    };
}

float!(f32);
float!(f64);

macro_rules! integer {
    ($integer:ident) => {
        impl SemiringNumber for $integer {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const GREATEST: Self = $integer::MAX;
            const LEAST: Self = $integer::MIN;

            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn plus_within(self, other: Self, none: Self) -> Self {
                if self == none || other == none { none } else { self.saturating_add(other) }
            }

            fn times_within(self, other: Self, none: Self) -> Self {
                if self == none || other == none { none } else { self.saturating_mul(other) }
            }

            fn least(self, other: Self) -> Self {
                self.min(other)
            }

            fn greatest(self, other: Self) -> Self {
                self.max(other)
            }
        }
    };
}

integer!(i32);
integer!(i64);
integer!(u32);

impl SemiringNumber for bool {
    const ZERO: Self = false;
    const ONE: Self = true;
    const GREATEST: Self = true;
    const LEAST: Self = false;

    fn plus(self, other: Self) -> Self {
        self || other
    }

    fn times(self, other: Self) -> Self {
        self && other
    }

    fn plus_within(self, other: Self, _: Self) -> Self {
        self || other
    }

    fn times_within(self, other: Self, _: Self) -> Self {
        self && other
    }

    fn least(self, other: Self) -> Self {
        self && other
    }

    fn greatest(self, other: Self) -> Self {
        self || other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_change_nothing() {
        for &semiring in Semiring::ALL {
            let numbers: &[f64] = match semiring {
                Semiring::OrAnd => &[0.0, 1.0],
                _ => &[0.0, 1.0, -2.5, f64::INFINITY, f64::NEG_INFINITY],
            };
            for &number in numbers {
                let identity: f64 = semiring.identity();
                assert_eq!(semiring.reduce(identity, number), number, "{semiring}");
                assert_eq!(semiring.reduce(number, identity), number, "{semiring}");
            }
        }
    }

    #[test]
    fn integers_have_limits_for_infinity() {
        fn check<N: SemiringNumber + std::fmt::Debug>(least: N, greatest: N, small: N) {
            let (min, max) = (Semiring::MinPlus, Semiring::MaxPlus);
            assert_eq!((min.identity::<N>(), max.identity::<N>()), (greatest, least));
            for (semiring, none) in [(min, greatest), (max, least)] {
                for x in [least, small, greatest] {
                    assert_eq!([semiring.combine(none, x), semiring.combine(x, none)], [none; 2]);
                    assert_eq!([semiring.reduce(none, x), semiring.reduce(x, none)], [x; 2]);
                }
            }
            // Beyond the limits there is nothing.
            assert_eq!(max.combine(greatest, small), greatest);
            assert_eq!(Semiring::MaxTimes.combine(greatest, greatest), greatest);
            assert_eq!(Semiring::MaxTimes.combine(least, small), least);
        }
        check(i32::MIN, i32::MAX, 5);
        check(i64::MIN, i64::MAX, 5);
        check(u32::MIN, u32::MAX, 5);
        assert_eq!(Semiring::MinPlus.combine(i32::MIN, -5), i32::MIN);
        assert_eq!(Semiring::PlusTimes.reduce(i32::MAX, 1), i32::MIN);
        assert!(Semiring::OrAnd.combine(true, true) && !Semiring::OrAnd.combine(true, false));
        assert!(Semiring::OrAnd.reduce(true, false) && !Semiring::OrAnd.identity::<bool>());
    }

    #[test]
    fn nan_has_no_part_in_min_and_max() {
        for semiring in [Semiring::MinPlus, Semiring::MaxPlus, Semiring::MaxTimes] {
            let identity: f32 = semiring.identity();
            assert_eq!(semiring.reduce(identity, semiring.combine(f32::NAN, 1.0)), identity);
        }
        assert_eq!(Semiring::OrAnd.combine(f32::NAN, 2.0), 1.0);
        assert_eq!(Semiring::PlusPair.combine(f32::NAN, f32::NAN), 1.0);
    }

    #[test]
    fn a_row_is_reduced_as_its_name_says() {
        let row = [(2.0, 3.0), (-1.0, 4.0), (0.0, 5.0)];
        let product = |semiring: Semiring| {
            let sums = row.iter().map(|&(value, x)| semiring.combine(value, x));
            sums.fold(semiring.identity(), |sum, term| semiring.reduce(sum, term))
        };
        let expected = [2.0, 3.0, 5.0, 6.0, 1.0, 3.0];
        assert_eq!(Semiring::ALL.iter().map(|&semiring| product(semiring)).collect::<Vec<f64>>(), expected);
    }
}
