//! The types a matrix may hold: entries, values and offsets.

use std::cmp::Ordering;
use std::fmt::{Debug, Display};

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};
use spmv_codegen::{IndexType, SemiringNumber, ValueType};

use crate::reference::Compensated;

pub(crate) mod sealed {
    pub trait Sealed {}

    /// Numbers as text.
    pub trait Decimal: Sized {
        /// The nearest value to the decimal number that `text` starts with, and the number's length.
        fn parse_prefix(text: &[u8]) -> Option<(Self, usize)>;

        /// Appends the shortest decimal number that reads back as this value.
        fn format(self, text: &mut Vec<u8>);

        /// The value of a whole number; none where the type does not have exactly that.
        fn of_integer(integer: i128) -> Option<Self>;

        /// The whole number that this is, where its type has no others.
        fn to_integer(self) -> Option<i128>;

        /// Appends the value as memory has it, the last byte first.
        fn to_bytes(self, bytes: &mut Vec<u8>);
    }

    /// Fused arithmetic, and coefficients.
    pub trait MulAdd: super::Entry {
        /// self · factor + sum with one rounding.
        fn mul_add(self, factor: Self, sum: Self) -> Self;

        /// A coefficient times a number: one that is real scales both parts of a complex number, infinite ones too.
        #[inline(always)]
        fn scales(self, number: Self) -> Self {
            self.times(number)
        }
    }

    /// A sum of products that is rounded once: in doubled double precision, or modulo a power of two.
    pub trait Exact<Sum>: Sized {
        /// The sum on the way.
        type Total: Copy + Default + Send + Sync;

        /// Adds a·b.
        fn add_product(total: &mut Self::Total, a: Self, b: Self);

        /// Multiplies the sum by a factor.
        fn scale(total: &mut Self::Total, factor: Sum);

        /// Adds factor·number.
        fn add_scaled(total: &mut Self::Total, factor: Sum, number: Self);

        /// The sum, rounded.
        fn round(total: Self::Total) -> Self;
    }

    /// Arithmetic of offsets that are known to fit.
    pub trait Position: Sized {
        /// The offset of a position that fits.
        fn of(position: usize) -> Self;
    }

    impl Sealed for super::f16 {}
    impl Sealed for super::bf16 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for super::Complex32 {}
    impl Sealed for super::Complex64 {}
    impl Sealed for i8 {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
    impl Sealed for bool {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// Anything that an entry of a matrix can be: `f16`, `bf16`, `f32`, `f64`, `i8`, `i32`, `i64`, `u32`, `bool`,
/// `Complex32`, `Complex64`.
pub trait Entry:
    sealed::Sealed + Copy + Debug + Display + Default + PartialEq + Send + Sync + 'static
{
    /// The real type of each part; `Self` where the entry is real.
    type Real: Value;

    /// Whether an entry has an imaginary part.
    const COMPLEX: bool;

    /// Whether an entry may have a fraction: all but integers and truth values.
    const FRACTIONS: bool;

    /// Whether an entry may be negative.
    const SIGNED: bool;

    /// The type's name in configurations, on the command line and in messages: that of its
    /// [`ValueType`].
    const NAME: &'static str;

    /// Puts an entry together; the imaginary part is dropped where the entry is real.
    fn from_parts(re: Self::Real, im: Self::Real) -> Self;

    /// The real part.
    fn re(self) -> Self::Real;

    /// The imaginary part, zero where the entry is real.
    fn im(self) -> Self::Real;

    /// The complex conjugate; the entry itself where it is real.
    fn conj(self) -> Self;

    /// The bytes of the entry as a number, the first byte lowest: equal for entries that are the same bit by bit.
    fn bits(self) -> u128;

    /// The sum. Integers wrap around; of truth values it is whether one of them is true.
    fn plus(self, other: Self) -> Self;

    /// The product. Integers wrap around; of truth values it is whether both are true.
    fn times(self, other: Self) -> Self;

    /// What gives zero with the entry; the entry itself where it is a truth value, or the least of integers.
    fn negated(self) -> Self;

    /// Whether the entry's negative is a number of the type: all have one but the least of integers, and of unsigned ones
    /// and truth values zero alone.
    fn has_negative(self) -> bool {
        self == Self::default() || (Self::SIGNED && self.negated() != self)
    }
}

/// A number that kernels and the products on the CPU take: every [`Entry`].
pub trait Number: Entry + sealed::Exact<Self::Sum> {
    /// The type in the vocabulary of configurations.
    const TYPE: ValueType;

    /// What numbers are summed in, also the type of α and β: the type itself, `f32` for `f16` and `bf16`, `i32` for `i8`.
    type Sum: Number<Sum = Self::Sum> + sealed::MulAdd;

    /// The same number, exactly.
    fn to_sum(self) -> Self::Sum;

    /// The nearest number, ties to even; of integers the one with the same last bits.
    fn from_sum(sum: Self::Sum) -> Self;
}

/// A number with a place among the real ones: all but `Complex32` and `Complex64`.
pub trait Value:
    Number<Sum = <Self as Value>::RealSum> + Entry<Real = Self> + PartialOrd + sealed::Decimal
{
    /// What values are summed in, [`Number::Sum`], which has a place among the real numbers too.
    type RealSum: Value<RealSum = Self::RealSum> + SemiringNumber;

    /// The nearest value, ties to even. Integers are rounded to whole numbers in range; a truth value is whether there is
    /// more or less than nothing.
    fn from_f64(value: f64) -> Self;

    /// The same number; the nearest where an `i64` has more than 53 digits.
    fn to_f64(self) -> f64;
}

/// The type of a row offset: `u32` or `u64`.
pub trait Offset:
    sealed::Sealed + sealed::Position + Copy + Debug + Display + Default + Ord + Send + Sync + 'static
{
    /// The type in the vocabulary of configurations.
    const TYPE: IndexType;

    /// The largest number of nonzeros that offsets of this type can count.
    const MAX: u64;

    /// The offset as a position in memory. Offsets of a matrix never exceed `usize::MAX`.
    fn to_usize(self) -> usize;

    /// The offset of a position, or `None` where it does not fit.
    fn from_usize(position: usize) -> Option<Self>;
}

macro_rules! real {
    ($real:ident, $complex:ident, $name:literal, $complex_name:literal, $type:ident, $complex_type:ident) => {
        impl Entry for $real {
            type Real = $real;
            const COMPLEX: bool = false;
            const FRACTIONS: bool = true;
            const SIGNED: bool = true;
            const NAME: &'static str = $name;

            #[inline(always)]
            fn from_parts(re: $real, _: $real) -> Self {
                re
            }

            #[inline(always)]
            fn re(self) -> $real {
                self
            }

            #[inline(always)]
            fn im(self) -> $real {
                0.0
            }

            #[inline(always)]
            fn conj(self) -> Self {
                self
            }

            #[inline(always)]
            fn bits(self) -> u128 {
                self.to_bits().into()
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }

            #[inline(always)]
            fn negated(self) -> Self {
                -self
            }
        }

        impl sealed::Decimal for $real {
            #[inline(always)]
            fn parse_prefix(text: &[u8]) -> Option<(Self, usize)> {
                fast_float2::parse_partial(text).ok()
            }

            fn format(self, text: &mut Vec<u8>) {
                if self.is_finite() {
                    text.extend_from_slice(ryu::Buffer::new().format_finite(self).as_bytes());
                } else if self.is_nan() {
                    text.extend_from_slice(b"nan");
                } else {
                    text.extend_from_slice(if self > 0.0 { b"inf" } else { b"-inf" });
                }
            }

            fn of_integer(integer: i128) -> Option<Self> {
                let nearest = <$real as Value>::from_f64(integer as f64);
                (Value::to_f64(nearest) as i128 == integer).then_some(nearest)
            }

            fn to_integer(self) -> Option<i128> {
                None
            }

            fn to_bytes(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }

        impl sealed::MulAdd for $real {
            #[inline(always)]
            fn mul_add(self, factor: Self, sum: Self) -> Self {
                self.mul_add(factor, sum)
            }
        }

        impl sealed::Exact<$real> for $real {
            type Total = Compensated;

            #[inline(always)]
            fn add_product(total: &mut Compensated, a: Self, b: Self) {
                total.add_product(a.to_f64(), b.to_f64());
            }

            #[inline(always)]
            fn scale(total: &mut Compensated, factor: $real) {
                *total = total.scaled(factor.into());
            }

            #[inline(always)]
            fn add_scaled(total: &mut Compensated, factor: $real, number: Self) {
                total.add_product(factor.into(), number.to_f64());
            }

            #[inline(always)]
            fn round(total: Compensated) -> Self {
                <$real as Value>::from_f64(total.value())
            }
        }

        impl Number for $real {
            const TYPE: ValueType = ValueType::$type;
            type Sum = $real;

            #[inline(always)]
            fn to_sum(self) -> $real {
                self
            }

            #[inline(always)]
            fn from_sum(sum: $real) -> Self {
                sum
            }
        }

        impl Value for $real {
            type RealSum = $real;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $real
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
        }

        impl Entry for $complex {
            type Real = $real;
            const COMPLEX: bool = true;
            const FRACTIONS: bool = true;
            const SIGNED: bool = true;
            const NAME: &'static str = $complex_name;

            #[inline(always)]
            fn from_parts(re: $real, im: $real) -> Self {
                $complex::new(re, im)
            }

            #[inline(always)]
            fn re(self) -> $real {
                self.re
            }

            #[inline(always)]
            fn im(self) -> $real {
                self.im
            }

            #[inline(always)]
            fn conj(self) -> Self {
                $complex::new(self.re, -self.im)
            }

            #[inline(always)]
            fn bits(self) -> u128 {
                self.re.bits() | self.im.bits() << (8 * size_of::<$real>())
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }

            #[inline(always)]
            fn negated(self) -> Self {
                -self
            }
        }

        impl sealed::MulAdd for $complex {
            #[inline(always)]
            fn mul_add(self, factor: Self, sum: Self) -> Self {
                $complex::new(
                    (-self.im).mul_add(factor.im, self.re.mul_add(factor.re, sum.re)),
                    self.im.mul_add(factor.re, self.re.mul_add(factor.im, sum.im)),
                )
            }

            #[inline(always)]
            fn scales(self, number: Self) -> Self {
                if self.im == 0.0 {
                    return $complex::new(self.re * number.re, self.re * number.im);
                }
                self * number
            }
        }

        impl sealed::Exact<$complex> for $complex {
            type Total = [Compensated; 2];

            #[inline(always)]
            fn add_product([re, im]: &mut [Compensated; 2], a: Self, b: Self) {
                re.add_product(a.re.into(), b.re.into());
                re.add_product((-a.im).into(), b.im.into());
                im.add_product(a.re.into(), b.im.into());
                im.add_product(a.im.into(), b.re.into());
            }

            #[inline(always)]
            fn scale([re, im]: &mut [Compensated; 2], factor: Self) {
                if factor.im == 0.0 {
                    (*re, *im) = (re.scaled(factor.re.into()), im.scaled(factor.re.into()));
                    return;
                }
                let scaled = |by_re: Compensated, by_im: Compensated, sign: f64| {
                    let mut part = by_re.scaled(factor.re.into());
                    part.add(by_im.scaled(sign * f64::from(factor.im)));
                    part
                };
                (*re, *im) = (scaled(*re, *im, -1.0), scaled(*im, *re, 1.0));
            }

            #[inline(always)]
            fn add_scaled(total: &mut [Compensated; 2], factor: Self, number: Self) {
                if factor.im != 0.0 {
                    return Self::add_product(total, factor, number);
                }
                let [re, im] = total;
                re.add_product(factor.re.into(), number.re.into());
                im.add_product(factor.re.into(), number.im.into());
            }

            #[inline(always)]
            fn round([re, im]: [Compensated; 2]) -> Self {
                $complex::new(<$real as Value>::from_f64(re.value()), <$real as Value>::from_f64(im.value()))
            }
        }

        impl Number for $complex {
            const TYPE: ValueType = ValueType::$complex_type;
            type Sum = $complex;

            #[inline(always)]
            fn to_sum(self) -> $complex {
                self
            }

            #[inline(always)]
            fn from_sum(sum: $complex) -> Self {
                sum
            }
        }
    };
}

/// A number that is rounded to 16 bits as `value` is: what is cut off stays in the last bit, so that it does not look
/// like a tie that it is not.
#[inline(always)]
fn rounded_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || value.is_nan() {
        return nearest;
    }
    let away = f64::from(nearest).abs() > value.abs();
    f32::from_bits((nearest.to_bits() - u32::from(away)) | 1)
}

/// As [`rounded_to_odd`], a decimal number in f64, where `nearest` is the nearest number to it.
#[cold]
fn read_to_odd(text: &[u8], nearest: f64) -> f64 {
    // As most of them are: both have no more than 15 digits, and f64 tells all such numbers apart.
    if text.len() <= 15 && nearest.abs() < 1e5 && (nearest * 1024.0).fract() == 0.0 {
        return nearest;
    }
    // Numbers near the middle between two halves, the smallest of which is 2^-133, have no more digits.
    let exact = format!("{nearest:.200e}");
    match digits(text).cmp(&digits(exact.as_bytes())) {
        Ordering::Equal => nearest,
        order => f64::from_bits((nearest.to_bits() - u64::from(order == Ordering::Less)) | 1),
    }
}

/// The power of ten of the first digit of a decimal number that is not 0, and the digits from it to the last that is not 0.
/// In their order, numbers ascend.
fn digits(text: &[u8]) -> (i64, Vec<u8>) {
    let (number, exponent) = match text.iter().position(|byte| byte.eq_ignore_ascii_case(&b'e')) {
        Some(at) => {
            (&text[..at], std::str::from_utf8(&text[at + 1..]).ok().and_then(|text| text.parse().ok()))
        }
        None => (text, Some(0)),
    };
    let whole = number.split(|&byte| byte == b'.').next().unwrap_or(number);
    let count = |digits: &[u8]| digits.iter().filter(|byte| byte.is_ascii_digit()).count() as i64;
    let mut digits: Vec<u8> = number.iter().copied().filter(u8::is_ascii_digit).collect();
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    let power = exponent.unwrap_or(0) + count(whole) - 1 - zeros as i64;
    digits.drain(..zeros);
    digits.truncate(digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1));
    (power, digits)
}

/// A type of 16 bits that entries have in memory and that nobody sums in. Its own arithmetic is that of `f32`, rounded.
macro_rules! half {
    ($half:ident, $name:literal, $type:ident) => {
        impl Entry for $half {
            type Real = $half;
            const COMPLEX: bool = false;
            const FRACTIONS: bool = true;
            const SIGNED: bool = true;
            const NAME: &'static str = $name;

            #[inline(always)]
            fn from_parts(re: $half, _: $half) -> Self {
                re
            }

            #[inline(always)]
            fn re(self) -> $half {
                self
            }

            #[inline(always)]
            fn im(self) -> $half {
                $half::ZERO
            }

            #[inline(always)]
            fn conj(self) -> Self {
                self
            }

            #[inline(always)]
            fn bits(self) -> u128 {
                self.to_bits().into()
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }

            #[inline(always)]
            fn negated(self) -> Self {
                -self
            }
        }

        impl sealed::Decimal for $half {
            #[inline(always)]
            fn parse_prefix(text: &[u8]) -> Option<(Self, usize)> {
                let (number, length) = fast_float2::parse_partial::<f64, _>(text).ok()?;
                let nearest = <$half as Value>::from_f64;
                // Near the middle between two halves the text decides: f64 has rounded it already.
                let is_near_middle = nearest(number.next_down()) != nearest(number.next_up());
                let number = if is_near_middle { read_to_odd(&text[..length], number) } else { number };
                Some((nearest(number), length))
            }

            fn format(self, text: &mut Vec<u8>) {
                if !self.is_finite() {
                    return f32::from(self).format(text);
                }
                // Five digits tell all numbers of 11 bits apart.
                let number = f64::from(self);
                let shortest = (0..5).map(|digits| format!("{number:.digits$e}")).find(|decimal| {
                    let read = decimal.parse().map(<$half as Value>::from_f64);
                    read.is_ok_and(|read| read.to_bits() == self.to_bits())
                });
                text.extend_from_slice(shortest.expect("five digits are enough").as_bytes());
            }

            fn of_integer(integer: i128) -> Option<Self> {
                let nearest = <$half as Value>::from_f64(integer as f64);
                (Value::to_f64(nearest) as i128 == integer).then_some(nearest)
            }

            fn to_integer(self) -> Option<i128> {
                None
            }

            fn to_bytes(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }

        impl sealed::MulAdd for $half {
            #[inline(always)]
            fn mul_add(self, factor: Self, sum: Self) -> Self {
                <$half as Value>::from_f64(f64::from(self).mul_add(factor.into(), sum.into()))
            }
        }

        impl sealed::Exact<f32> for $half {
            type Total = Compensated;

            #[inline(always)]
            fn add_product(total: &mut Compensated, a: Self, b: Self) {
                total.add_product(a.to_f64(), b.to_f64());
            }

            #[inline(always)]
            fn scale(total: &mut Compensated, factor: f32) {
                *total = total.scaled(factor.into());
            }

            #[inline(always)]
            fn add_scaled(total: &mut Compensated, factor: f32, number: Self) {
                total.add_product(factor.into(), number.to_f64());
            }

            #[inline(always)]
            fn round(total: Compensated) -> Self {
                <$half as Value>::from_f64(total.value())
            }
        }

        impl Number for $half {
            const TYPE: ValueType = ValueType::$type;
            type Sum = f32;

            #[inline(always)]
            fn to_sum(self) -> f32 {
                self.to_f32()
            }

            #[inline(always)]
            fn from_sum(sum: f32) -> Self {
                $half::from_f32(sum)
            }
        }

        impl Value for $half {
            type RealSum = f32;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                $half::from_f32(rounded_to_odd(value))
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.to_f64()
            }
        }
    };
}

half!(f16, "f16", F16);
half!(bf16, "bf16", Bf16);
real!(f32, Complex32, "f32", "c32", F32, C32);
real!(f64, Complex64, "f64", "c64", F64, C64);

/// Whole numbers, which wrap around.
macro_rules! integer {
    ($integer:ident, $sum:ident, $signed:literal, $type:ident) => {
        impl Entry for $integer {
            type Real = $integer;
            const COMPLEX: bool = false;
            const FRACTIONS: bool = false;
            const SIGNED: bool = $signed;
            const NAME: &'static str = stringify!($integer);

            #[inline(always)]
            fn from_parts(re: $integer, _: $integer) -> Self {
                re
            }

            #[inline(always)]
            fn re(self) -> $integer {
                self
            }

            #[inline(always)]
            fn im(self) -> $integer {
                0
            }

            #[inline(always)]
            fn conj(self) -> Self {
                self
            }

            #[inline(always)]
            fn bits(self) -> u128 {
                let mut bytes = [0; 16];
                bytes[..size_of::<$integer>()].copy_from_slice(&self.to_le_bytes());
                u128::from_le_bytes(bytes)
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn negated(self) -> Self {
                self.wrapping_neg()
            }
        }

        impl sealed::Decimal for $integer {
            fn parse_prefix(text: &[u8]) -> Option<(Self, usize)> {
                let (number, length) = whole_number(text)?;
                Some((Self::of_integer(number)?, length))
            }

            fn format(self, text: &mut Vec<u8>) {
                text.extend_from_slice(itoa::Buffer::new().format(self).as_bytes());
            }

            fn of_integer(integer: i128) -> Option<Self> {
                $integer::try_from(integer).ok()
            }

            fn to_integer(self) -> Option<i128> {
                Some(self.into())
            }

            fn to_bytes(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }

        impl sealed::MulAdd for $integer {
            #[inline(always)]
            fn mul_add(self, factor: Self, sum: Self) -> Self {
                self.wrapping_mul(factor).wrapping_add(sum)
            }
        }

        impl sealed::Exact<$sum> for $integer {
            type Total = $sum;

            #[inline(always)]
            fn add_product(total: &mut $sum, a: Self, b: Self) {
                *total = total.wrapping_add($sum::from(a).wrapping_mul($sum::from(b)));
            }

            #[inline(always)]
            fn scale(total: &mut $sum, factor: $sum) {
                *total = total.wrapping_mul(factor);
            }

            #[inline(always)]
            fn add_scaled(total: &mut $sum, factor: $sum, number: Self) {
                *total = total.wrapping_add(factor.wrapping_mul(number.into()));
            }

            #[inline(always)]
            fn round(total: $sum) -> Self {
                total as $integer
            }
        }

        impl Number for $integer {
            const TYPE: ValueType = ValueType::$type;
            type Sum = $sum;

            #[inline(always)]
            fn to_sum(self) -> $sum {
                self.into()
            }

            #[inline(always)]
            fn from_sum(sum: $sum) -> Self {
                sum as $integer
            }
        }

        impl Value for $integer {
            type RealSum = $sum;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value.round_ties_even() as $integer
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    };
}

/// The whole number that `text` starts with, with or without a sign, and its length; none where it is beyond any type.
fn whole_number(text: &[u8]) -> Option<(i128, usize)> {
    let negative = text.first() == Some(&b'-');
    let sign = usize::from(negative || text.first() == Some(&b'+'));
    let digits = text[sign..].iter().take_while(|byte| byte.is_ascii_digit());
    let (number, count) = digits.fold((0_i128, 0), |(number, count), digit| {
        (number.saturating_mul(10).saturating_add(i128::from(digit - b'0')), count + 1)
    });
    (count > 0).then_some((if negative { -number } else { number }, sign + count))
}

integer!(i8, i32, true, I8);
integer!(i32, i32, true, I32);
integer!(i64, i64, true, I64);
integer!(u32, u32, false, U32);

impl Entry for bool {
    type Real = bool;
    const COMPLEX: bool = false;
    const FRACTIONS: bool = false;
    const SIGNED: bool = false;
    const NAME: &'static str = "bool";

    fn from_parts(re: bool, _: bool) -> Self {
        re
    }

    fn re(self) -> bool {
        self
    }

    fn im(self) -> bool {
        false
    }

    fn conj(self) -> Self {
        self
    }

    fn bits(self) -> u128 {
        u128::from(self)
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self || other
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self && other
    }

    fn negated(self) -> Self {
        self
    }
}

impl sealed::Decimal for bool {
    fn parse_prefix(text: &[u8]) -> Option<(Self, usize)> {
        let (number, length) = whole_number(text)?;
        Some((Self::of_integer(number)?, length))
    }

    fn format(self, text: &mut Vec<u8>) {
        text.push(b'0' + u8::from(self));
    }

    fn of_integer(integer: i128) -> Option<Self> {
        (0..=1).contains(&integer).then_some(integer == 1)
    }

    fn to_integer(self) -> Option<i128> {
        Some(self.into())
    }

    fn to_bytes(self, bytes: &mut Vec<u8>) {
        bytes.push(self.into());
    }
}

impl sealed::MulAdd for bool {
    #[inline(always)]
    fn mul_add(self, factor: Self, sum: Self) -> Self {
        self && factor || sum
    }
}

impl sealed::Exact<bool> for bool {
    type Total = bool;

    #[inline(always)]
    fn add_product(total: &mut bool, a: Self, b: Self) {
        *total |= a && b;
    }

    #[inline(always)]
    fn scale(total: &mut bool, factor: bool) {
        *total &= factor;
    }

    #[inline(always)]
    fn add_scaled(total: &mut bool, factor: bool, number: Self) {
        *total |= factor && number;
    }

    #[inline(always)]
    fn round(total: bool) -> Self {
        total
    }
}

impl Number for bool {
    const TYPE: ValueType = ValueType::Bool;
    type Sum = bool;

    #[inline(always)]
    fn to_sum(self) -> bool {
        self
    }

    #[inline(always)]
    fn from_sum(sum: bool) -> Self {
        sum
    }
}

impl Value for bool {
    type RealSum = bool;

    fn from_f64(value: f64) -> Self {
        value != 0.0
    }

    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }
}

macro_rules! offset {
    ($offset:ident, $type:ident) => {
        impl sealed::Position for $offset {
            #[inline(always)]
            fn of(position: usize) -> Self {
                debug_assert!($offset::try_from(position).is_ok());
                position as $offset
            }
        }

        impl Offset for $offset {
            const TYPE: IndexType = IndexType::$type;
            const MAX: u64 = $offset::MAX as u64;

            #[inline(always)]
            fn to_usize(self) -> usize {
                self as usize
            }

            #[inline(always)]
            fn from_usize(position: usize) -> Option<Self> {
                $offset::try_from(position).ok()
            }
        }
    };
}

offset!(u32, U32);
offset!(u64, U64);

#[cfg(test)]
mod tests {
    use super::*;

    fn every_number_survives_text<V: Value>(of_bits: fn(u16) -> V, bits: fn(V) -> u16) {
        for pattern in 0..=u16::MAX {
            let number = of_bits(pattern);
            let mut text = Vec::new();
            number.format(&mut text);
            if number.to_f64().is_finite() {
                let read = V::parse_prefix(&text);
                assert_eq!(read.map(|(read, len)| (bits(read), len)), Some((pattern, text.len())));
                assert!(text.len() <= "-9.7656e-4".len(), "{}", String::from_utf8_lossy(&text));
                assert_eq!(bits(V::from_f64(number.to_f64())), pattern);
            }
        }
    }

    /// The middle between two neighbours, with more digits than f64 tells apart: above it, below it, and exactly there.
    #[test]
    fn halves_are_rounded_once_from_text() {
        fn check<V: Value>(of_bits: fn(u16) -> V, bits: fn(V) -> u16, finite: u16) {
            for low in (0..finite).step_by(7) {
                let [below, above] = [low, low + 1].map(|pattern| of_bits(pattern).to_f64());
                let middle = format!("{:.160e}", (below + above) / 2.0);
                let (digits, exponent) = middle.split_once('e').unwrap();
                let read = |text: &str| {
                    let (number, length) = V::parse_prefix(text.as_bytes()).unwrap();
                    assert_eq!(length, text.len());
                    bits(number) & 0x7fff
                };
                let even = low + low % 2;
                for sign in ["", "-", "+"] {
                    assert_eq!(read(&format!("{sign}{middle}")), even);
                    assert_eq!(read(&format!("{sign}{digits}01E{exponent}")), low + 1);
                    assert_eq!(read(&format!("{sign}000{digits}01e{exponent}")), low + 1);
                }
                // The last digit that is not 0, less 1, and nines.
                let kept = digits.trim_end_matches('0');
                let (kept, last) = kept.split_at(kept.len() - 1);
                let last = last.parse::<u8>().unwrap() - 1;
                assert_eq!(read(&format!("{kept}{last}{:9<200}e{exponent}", "")), low);
            }
            let number = |text: &[u8]| V::parse_prefix(text).unwrap().0;
            assert_eq!([&b"0"[..], b"-0.0", b"1e-400"].map(|text| bits(number(text))), [0, 0x8000, 0]);
            assert!(number(b"nan").to_f64().is_nan() && number(b"-inf").to_f64() == f64::NEG_INFINITY);
        }
        check::<f16>(f16::from_bits, f16::to_bits, 0x7bff);
        check::<bf16>(bf16::from_bits, bf16::to_bits, 0x7f7f);
    }

    #[test]
    fn halves_survive_text() {
        every_number_survives_text::<f16>(f16::from_bits, f16::to_bits);
        every_number_survives_text::<bf16>(bf16::from_bits, bf16::to_bits);
    }

    /// Numbers around the middle between two neighbours, closer to it than f32 can tell.
    #[test]
    fn halves_are_rounded_once() {
        fn check<V: Value>(of_bits: fn(u16) -> V, bits: fn(V) -> u16, finite: u16) {
            for low in (0..finite).step_by(7) {
                let [below, above] = [low, low + 1].map(|pattern| of_bits(pattern).to_f64());
                let middle = (below + above) / 2.0;
                let nearest = |value: f64| [1.0, -1.0].map(|sign| bits(V::from_f64(sign * value)) & 0x7fff);
                assert_eq!(nearest(middle), [low + low % 2; 2]);
                assert_eq!(nearest(f64::from_bits(middle.to_bits() - 1)), [low; 2]);
                assert_eq!(nearest(f64::from_bits(middle.to_bits() + 1)), [low + 1; 2]);
                // The first number of 32 bits beyond the middle, and what is rounded to it.
                let beyond = f64::from(f32::from_bits((middle as f32).to_bits() + 1));
                assert_eq!(nearest(f64::from_bits(beyond.to_bits() + 1)), [low + 1; 2]);
            }
            assert_eq!(V::from_f64(f64::MAX).to_f64(), f64::INFINITY);
            assert_eq!(V::from_f64(-1e-300).to_f64().to_bits(), (-0.0f64).to_bits());
            assert!(V::from_f64(f64::NAN).to_f64().is_nan());
        }
        check::<f16>(f16::from_bits, f16::to_bits, 0x7bff);
        check::<bf16>(bf16::from_bits, bf16::to_bits, 0x7f7f);
    }
}
