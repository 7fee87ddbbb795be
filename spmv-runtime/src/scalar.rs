//! α and β, and the types that vectors hold.

use std::fmt;
use std::ops::RangeInclusive;

use spmv_codegen::{ValueKind, ValueType};
use spmv_matrix::{Complex32, Complex64, Number, Value, bf16, f16};

use crate::backend::Bytes;

/// A type that device vectors hold: `f16`, `bf16`, `f32`, `f64`, `i8`, `i32`, `i64`, `u32`, `bool`, `Complex32`,
/// `Complex64`.
pub trait Element: Number + Bytes {
    /// The entry as a scalar; exact.
    fn to_scalar(self) -> Scalar;
}

/// An [`Element`] with a place among the real numbers: all but `Complex32` and `Complex64`.
pub trait RealElement: Element + Value {}

impl<T: Element + Value> RealElement for T {}

macro_rules! element {
    ($($type:ty => |$value:ident| $scalar:expr),+ $(,)?) => {
        $(impl Element for $type {
            fn to_scalar(self) -> Scalar {
                let $value = self;
                $scalar
            }
        })+
    };
}

element! {
    f16 => |value| Scalar::F32(value.into()),
    bf16 => |value| Scalar::F32(value.into()),
    f32 => |value| Scalar::F32(value),
    f64 => |value| Scalar::F64(value),
    i8 => |value| Scalar::Integer(value.into()),
    i32 => |value| Scalar::Integer(value.into()),
    i64 => |value| Scalar::Integer(value),
    u32 => |value| Scalar::Integer(value.into()),
    bool => |value| Scalar::Integer(value.into()),
    Complex32 => |value| Scalar::C32(value),
    Complex64 => |value| Scalar::C64(value),
}

/// α or β of a product, in the configuration's accumulator type when it is passed to a kernel: rounded where that has
/// fractions, refused where it does not hold the number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scalar {
    /// From an `f32`.
    F32(f32),
    /// From an `f64`.
    F64(f64),
    /// From an integer or a truth value.
    Integer(i64),
    /// From a `Complex32`.
    C32(Complex32),
    /// From a `Complex64`.
    C64(Complex64),
}

impl Scalar {
    /// The real and the imaginary part; the nearest to an integer of more than 53 digits.
    pub fn to_c64(self) -> Complex64 {
        match self {
            Scalar::F32(value) => Complex64::new(value.into(), 0.0),
            Scalar::F64(value) => Complex64::new(value, 0.0),
            Scalar::Integer(value) => Complex64::new(value as f64, 0.0),
            Scalar::C32(value) => Complex64::new(value.re.into(), value.im.into()),
            Scalar::C64(value) => value,
        }
    }

    /// Whether it is this number.
    pub(crate) fn is(self, number: f64) -> bool {
        self.to_c64() == Complex64::new(number, 0.0)
    }

    /// The number in a type that has whole numbers only; `None` where it does not hold it.
    fn to_integer(self, in_type: ValueType) -> Option<i64> {
        let number = match self {
            Scalar::Integer(value) => value,
            other => {
                let Complex64 { re, im } = other.to_c64();
                // 2⁶³ and more is no i64.
                let is_whole = im == 0.0 && re.fract() == 0.0 && re.abs() < -(i64::MIN as f64);
                if !is_whole {
                    return None;
                }
                re as i64
            }
        };
        integers(in_type).contains(&number).then_some(number)
    }

    /// Whether a type of sums has a number for it: a real one no imaginary part, one of integers no fraction either and
    /// only what is in range.
    pub(crate) fn fits(self, accumulator: ValueType) -> bool {
        match accumulator.kind() {
            ValueKind::Complex => true,
            ValueKind::Float => !matches!(self, Scalar::C32(_) | Scalar::C64(_)),
            _ => self.to_integer(accumulator).is_some(),
        }
    }

    /// The bits of the number in a type that it fits, as a kernel argument: the first slot, and a second for a type of
    /// more than 8 bytes.
    pub(crate) fn bits(self, as_type: ValueType) -> [u64; 2] {
        let float = |value: f64| u64::from((value as f32).to_bits());
        let number = self.to_c64();
        match (as_type, self) {
            (ValueType::F32, Scalar::F32(value)) => [value.to_bits().into(), 0],
            (ValueType::F32, _) => [float(number.re), 0],
            (ValueType::F64, _) => [number.re.to_bits(), 0],
            (ValueType::C32, _) => [float(number.re) | float(number.im) << 32, 0],
            (ValueType::C64, _) => [number.re.to_bits(), number.im.to_bits()],
            (integer, _) => [self.to_integer(integer).unwrap_or_default() as u64, 0],
        }
    }
}

/// The numbers of a type that has whole numbers only.
fn integers(value: ValueType) -> RangeInclusive<i64> {
    match value {
        ValueType::Bool => 0..=1,
        ValueType::U32 => 0..=u32::MAX.into(),
        ValueType::I32 => i32::MIN.into()..=i32::MAX.into(),
        _ => i64::MIN..=i64::MAX,
    }
}

/// The numbers that [fit](Scalar::fits), in words.
pub(crate) fn numbers(accumulator: ValueType) -> String {
    match accumulator.kind() {
        ValueKind::Complex => "complex numbers".into(),
        ValueKind::Float => "real numbers".into(),
        _ => {
            let integers = integers(accumulator);
            format!("whole numbers from {} to {}", integers.start(), integers.end())
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // No rows of zeros.
            Scalar::F32(value) if value.abs() >= 1e17 => write!(f, "{value:e}"),
            Scalar::F64(value) if value.abs() >= 1e17 => write!(f, "{value:e}"),
            Scalar::F32(value) => value.fmt(f),
            Scalar::F64(value) => value.fmt(f),
            Scalar::Integer(value) => value.fmt(f),
            Scalar::C32(value) => value.fmt(f),
            Scalar::C64(value) => value.fmt(f),
        }
    }
}

impl From<f32> for Scalar {
    fn from(value: f32) -> Scalar {
        value.to_scalar()
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Scalar {
        value.to_scalar()
    }
}

impl From<i32> for Scalar {
    fn from(value: i32) -> Scalar {
        value.to_scalar()
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Scalar {
        value.to_scalar()
    }
}

impl From<u32> for Scalar {
    fn from(value: u32) -> Scalar {
        value.to_scalar()
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Scalar {
        value.to_scalar()
    }
}

impl From<Complex32> for Scalar {
    fn from(value: Complex32) -> Scalar {
        value.to_scalar()
    }
}

impl From<Complex64> for Scalar {
    fn from(value: Complex64) -> Scalar {
        value.to_scalar()
    }
}
