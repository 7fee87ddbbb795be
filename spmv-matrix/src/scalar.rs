//! The types a matrix may hold: entries, values and offsets.

use std::fmt::{Debug, Display};
use std::ops::{Add, AddAssign, Mul, Neg, Sub};

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};
use spmv_codegen::{IndexType, SemiringNumber, ValueType};

pub(crate) mod sealed {
    pub trait Sealed {}

    /// Numbers as text.
    pub trait Decimal: Sized {
        /// The nearest value to the decimal number that `text` starts with, and the number's length.
        fn parse_prefix(text: &[u8]) -> Option<(Self, usize)>;

        /// Appends the shortest decimal number that reads back as this value.
        fn format(self, text: &mut Vec<u8>);
    }

    /// Fused arithmetic.
    pub trait MulAdd {
        /// self · factor + sum with one rounding.
        fn mul_add(self, factor: Self, sum: Self) -> Self;
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
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// Anything that an entry of a Matrix Market file can become: `f16`, `bf16`, `f32`, `f64`, `Complex32`, `Complex64`.
pub trait Entry:
    sealed::Sealed
    + Copy
    + Debug
    + Display
    + Default
    + PartialEq
    + Send
    + Sync
    + Add<Output = Self>
    + AddAssign
    + Mul<Output = Self>
    + Neg<Output = Self>
    + Sub<Output = Self>
    + 'static
{
    /// The real type of each part; `Self` where the entry is real.
    type Real: Value;

    /// Whether an entry has an imaginary part.
    const COMPLEX: bool;

    /// The type's name: `f16`, `bf16`, `f32`, `f64`, `complex<f32>`, `complex<f64>`.
    const NAME: &'static str;

    /// Puts an entry together; the imaginary part is dropped where the entry is real.
    fn from_parts(re: Self::Real, im: Self::Real) -> Self;

    /// The real part.
    fn re(self) -> Self::Real;

    /// The imaginary part, zero where the entry is real.
    fn im(self) -> Self::Real;

    /// The complex conjugate; the entry itself where it is real.
    fn conj(self) -> Self;
}

/// A value that kernels take today: `f16`, `bf16`, `f32` or `f64`.
pub trait Value: Entry<Real = Self> + PartialOrd + sealed::Decimal + sealed::MulAdd {
    /// The type in the vocabulary of configurations.
    const TYPE: ValueType;

    /// What values are summed in, also the type of α and β: the type itself, and `f32` for `f16` and `bf16`.
    type Sum: Value<Sum = Self::Sum> + SemiringNumber;

    /// The same number, exactly.
    fn to_sum(self) -> Self::Sum;

    /// The nearest value, ties to even.
    fn from_sum(sum: Self::Sum) -> Self;

    /// The nearest value, ties to even.
    fn from_f64(value: f64) -> Self;

    /// The same number, exactly.
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
    ($real:ident, $complex:ident, $name:literal, $complex_name:literal, $type:ident) => {
        impl Entry for $real {
            type Real = $real;
            const COMPLEX: bool = false;
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
        }

        impl sealed::MulAdd for $real {
            #[inline(always)]
            fn mul_add(self, factor: Self, sum: Self) -> Self {
                self.mul_add(factor, sum)
            }
        }

        impl Value for $real {
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

/// A type of 16 bits that entries have in memory and that nobody sums in. Its own arithmetic is that of `f32`, rounded.
macro_rules! half {
    ($half:ident, $name:literal, $type:ident) => {
        impl Entry for $half {
            type Real = $half;
            const COMPLEX: bool = false;
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
        }

        impl sealed::Decimal for $half {
            #[inline(always)]
            fn parse_prefix(text: &[u8]) -> Option<(Self, usize)> {
                let (number, length) = fast_float2::parse_partial::<f64, _>(text).ok()?;
                Some((<$half as Value>::from_f64(number), length))
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
        }

        impl sealed::MulAdd for $half {
            #[inline(always)]
            fn mul_add(self, factor: Self, sum: Self) -> Self {
                <$half as Value>::from_f64(f64::from(self).mul_add(factor.into(), sum.into()))
            }
        }

        impl Value for $half {
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
real!(f32, Complex32, "f32", "complex<f32>", F32);
real!(f64, Complex64, "f64", "complex<f64>", F64);

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
            }
            assert_eq!(V::from_f64(f64::MAX).to_f64(), f64::INFINITY);
            assert_eq!(V::from_f64(-1e-300).to_f64().to_bits(), (-0.0f64).to_bits());
            assert!(V::from_f64(f64::NAN).to_f64().is_nan());
        }
        check::<f16>(f16::from_bits, f16::to_bits, 0x7bff);
        check::<bf16>(bf16::from_bits, bf16::to_bits, 0x7f7f);
    }
}
