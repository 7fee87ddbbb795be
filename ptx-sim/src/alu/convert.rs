//! `cvt`: from a number of one type to one of another.

use super::exact::{self, Exact, Format, Number, Rounding};
use super::float::{canonical, flush, quiet};
use super::lanes::{choose, lanes, switch};
use super::narrow::{self, Bf16, F16, Narrow};
use super::{Alu, Mnemonic};

/// A type that `cvt` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Integer(Integer),
    Float(Format),
}

impl Type {
    fn named(name: &str) -> Option<Type> {
        let format = match name {
            "f16" => exact::F16,
            "bf16" => exact::BF16,
            "tf32" => exact::TF32,
            "f32" => exact::F32,
            "f64" => exact::F64,
            _ => {
                let signed = name.starts_with('s');
                let bits = name.strip_prefix(if signed { 's' } else { 'u' })?.parse().ok()?;
                return matches!(bits, 8 | 16 | 32 | 64).then_some(Type::Integer(Integer { bits, signed }));
            }
        };
        Some(Type::Float(format))
    }

    fn is_64(self) -> bool {
        self == Type::Float(exact::F64) || matches!(self, Type::Integer(Integer { bits: 64, .. }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Integer {
    bits: u32,
    signed: bool,
}

impl Integer {
    /// The number in the low bits.
    fn read(self, from: u64) -> i128 {
        let up = 64 - self.bits;
        if self.signed { i128::from((from << up) as i64 >> up) } else { i128::from((from << up) >> up) }
    }

    /// The low bits of a number.
    fn write(self, value: i128) -> u64 {
        match (self.bits, self.signed) {
            (8, true) => u64::from(i16::from(value as i8) as u16),
            (bits, _) => value as u64 & (u64::MAX >> (64 - bits)),
        }
    }

    fn clamp(self, value: i128) -> i128 {
        let (least, most) = match self.signed {
            true => (-1 << (self.bits - 1), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        };
        value.clamp(least, most)
    }
}

/// A conversion in words: what to convert from and to, and how. Slow; the usual ones have functions of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    to: Type,
    from: Type,
    rounding: Rounding,
    /// Round to an integer, whatever the type of the result.
    integral: bool,
    ftz: bool,
    /// Clamp integers to the range of their type, floats to 0 … 1.
    sat: bool,
    relu: bool,
    /// No infinity: the largest number instead.
    satfinite: bool,
}

impl Conversion {
    /// Whether the source and the destination are 64 bits wide rather than 32.
    pub(crate) fn widths(self) -> (bool, bool) {
        (self.from.is_64(), self.to.is_64())
    }

    /// Converts the value in the low bits. Bits above the result are zero, but above an `s8` extended to 16 bits.
    pub(crate) fn apply(self, from: u64) -> u64 {
        match (self.from, self.to) {
            (Type::Integer(source), Type::Integer(target)) => {
                let value = source.read(from);
                target.write(if self.sat { target.clamp(value) } else { value })
            }
            (Type::Integer(source), Type::Float(format)) => {
                self.float(format, Number::Finite(Exact::integer(source.read(from))))
            }
            (Type::Float(format), to) => {
                let from = from & (format.sign() | (format.sign() - 1));
                let flushed = self.ftz && format == exact::F32 && format.is_subnormal(from);
                let from = if flushed { from & format.sign() } else { from };
                let number = format.decode(from);
                match to {
                    Type::Integer(target) => self.float_to_integer(format, number, target),
                    Type::Float(target)
                        if number == Number::Nan
                            && (format == exact::F64 || target == exact::F64)
                            && !(self.sat || self.relu || self.satfinite) =>
                    {
                        carried_nan(format, from, target)
                    }
                    Type::Float(format) => self.float(format, number),
                }
            }
        }
    }

    fn float_to_integer(self, source: Format, number: Number, target: Integer) -> u64 {
        let value = match number {
            // PTX ISA, cvt, integer notes.
            Number::Nan if source == exact::F64 || target.bits == 64 => {
                return target.write(1 << (target.bits - 1));
            }
            Number::Nan => 0,
            Number::Infinite { negative: true } => i128::MIN,
            Number::Infinite { negative: false } => i128::MAX,
            Number::Finite(value) => value.to_integer(self.rounding),
        };
        target.write(target.clamp(value))
    }

    fn float(self, format: Format, number: Number) -> u64 {
        let bits = match number {
            Number::Nan => format.nan(),
            Number::Infinite { negative } => (if negative { format.sign() } else { 0 }) | format.infinity(),
            Number::Finite(value) if self.integral => {
                // From one type to the same, where an integer has no more digits than the number.
                let integral = if value.exponent >= 0 {
                    value
                } else {
                    Exact { negative: value.negative, ..Exact::integer(value.to_integer(self.rounding)) }
                };
                format.encode(integral, Rounding::Zero)
            }
            Number::Finite(value) => format.encode(value, self.rounding),
        };
        let is_nan = number == Number::Nan;
        let negative = bits & format.sign() != 0;
        let magnitude = bits & !format.sign();
        let bits = if self.ftz && format == exact::F32 && format.is_subnormal(bits) {
            bits & format.sign()
        } else if self.satfinite && !is_nan && magnitude == format.infinity() {
            bits - 1
        } else {
            bits
        };
        let bits = match (self.sat, self.relu) {
            (true, _) if is_nan || negative => 0,
            (true, _) => bits.min(format.one()),
            (_, true) if negative => 0,
            _ => bits,
        };
        // TF32 lies in the upper bits of a register of single precision.
        if format != exact::TF32 {
            bits
        } else if is_nan {
            exact::F32.nan()
        } else {
            bits << 13
        }
    }
}

/// Conversions from and to double precision keep a NaN's sign and the upper bits of its payload, and quiet it, as an
/// H200 does.
fn carried_nan(from: Format, bits: u64, to: Format) -> u64 {
    let sign = if bits & from.sign() != 0 { to.sign() } else { 0 };
    let payload = bits & !from.sign() & !from.infinity();
    let payload = match to.mantissa_bits().checked_sub(from.mantissa_bits()) {
        Some(wider) => payload << wider,
        None => payload >> (from.mantissa_bits() - to.mantissa_bits()),
    };
    sign | to.infinity() | 1 << (to.mantissa_bits() - 1) | payload
}

const INTEGRAL: [(&str, Rounding); 4] =
    [("rni", Rounding::Nearest), ("rzi", Rounding::Zero), ("rmi", Rounding::Down), ("rpi", Rounding::Up)];
const ROUNDINGS: [(&str, Rounding); 5] = [
    ("rn", Rounding::Nearest),
    ("rna", Rounding::NearestAway),
    ("rz", Rounding::Zero),
    ("rm", Rounding::Down),
    ("rp", Rounding::Up),
];

pub(super) fn find(m: Mnemonic) -> Option<Alu> {
    let [to, from] = m.types[..] else { return None };
    if let ("f16x2" | "bf16x2", "f32") = (to, from) {
        return pack(m, to);
    }
    let conversion = Conversion::named(m)?;
    Some(fast(conversion, to, from).unwrap_or(Alu::Convert(conversion)))
}

impl Conversion {
    pub(super) fn named(mut m: Mnemonic) -> Option<Conversion> {
        let [to, from] = m.types[..] else { return None };
        let (to, from) = (Type::named(to)?, Type::named(from)?);
        let ftz = m.take("ftz");
        let sat = m.take("sat");
        let relu = m.take("relu");
        let satfinite = m.take("satfinite");
        let integral = m.take_any(&INTEGRAL);
        let rounding = m.take_any(&ROUNDINGS);
        m.done()?;
        // Rounding has to be asked for where it is needed, and may not be where there is nothing to round.
        let asked = match (from, to) {
            (Type::Integer(_), Type::Integer(_)) => integral.is_none() && rounding.is_none(),
            (Type::Float(_), Type::Integer(_)) => integral.is_some() && rounding.is_none(),
            (Type::Integer(_), Type::Float(_)) => integral.is_none() && rounding.is_some(),
            (Type::Float(a), Type::Float(b)) if a == b => rounding.is_none(),
            (Type::Float(a), Type::Float(b)) => integral.is_none() && (rounding.is_some() || contains(b, a)),
        };
        let rounding = integral.or(rounding).unwrap_or(Rounding::Nearest);
        let single = Type::Float(exact::F32);
        let allowed = match to {
            _ if from == Type::Float(exact::TF32) => false,
            Type::Float(exact::TF32) => {
                let away = rounding == Rounding::NearestAway && !relu;
                from == single
                    && !sat
                    && !ftz
                    && (away || matches!(rounding, Rounding::Nearest | Rounding::Zero))
            }
            _ if rounding == Rounding::NearestAway || ftz && to != single && from != single => false,
            Type::Float(exact::F16) => from == single || !relu && !satfinite,
            Type::Float(exact::BF16) => !sat && (from == single || !relu && !satfinite),
            _ => !relu && !satfinite,
        };
        let integral = integral.is_some();
        (asked && allowed).then_some(Conversion { to, from, rounding, integral, ftz, sat, relu, satfinite })
    }
}

/// Whether a format has all numbers of another.
fn contains(large: Format, small: Format) -> bool {
    large == exact::F64 || large == exact::F32 && (small == exact::F16 || small == exact::BF16)
}

/// The function of a conversion that is common enough to have one.
fn fast(conversion: Conversion, to: &str, from: &str) -> Option<Alu> {
    let Conversion { rounding, integral, ftz, sat, relu, satfinite, .. } = conversion;
    let nearest = rounding == Rounding::Nearest;
    match (conversion.from, conversion.to) {
        (Type::Integer(_), Type::Integer(_)) => (!sat).then(|| integers(to, from))?,
        (Type::Float(_), Type::Integer(_)) => floats_to_integers(to, from, rounding, ftz),
        (Type::Integer(_), Type::Float(_)) => {
            (nearest && !sat && !ftz).then(|| integers_to_floats(to, from))?
        }
        (Type::Float(_), Type::Float(_)) => {
            if sat || relu || satfinite {
                return None;
            }
            match (from, to) {
                ("f32", "f32") if integral => Some(switch!(FTZ = ftz; integral_32::<FTZ>(rounding))),
                ("f64", "f64") if integral => integral_64(rounding),
                ("f32", "f32") if ftz => Some(lanes!(A1, |a: f32| -> f32 { canonical(flush(a)) })),
                ("f32", "f64") => Some(switch!(FTZ = ftz; lanes!(W1, |a: u32| -> u64 {
                    let x = f32::from_bits(a);
                    let x = if FTZ { flush(x) } else { x };
                    if x.is_nan() {
                        carried_nan(exact::F32, u64::from(a), exact::F64)
                    } else {
                        f64::from(x).to_bits()
                    }
                }))),
                ("f64", "f32") if nearest => Some(switch!(FTZ = ftz; lanes!(N1, |a: f64| -> f32 {
                    if a.is_nan() {
                        f32::from_bits(carried_nan(exact::F64, a.to_bits(), exact::F32) as u32)
                    } else if FTZ {
                        flush(a as f32)
                    } else {
                        a as f32
                    }
                }))),
                _ if integral || !nearest => None,
                _ => narrow::convert(from, to, ftz),
            }
        }
    }
}

/// The expression with `T` the integer type of a name.
macro_rules! any_integer {
    ($name:expr, $T:ident => $body:expr) => {
        choose!($name, $T: {
            "u8" => u8, "u16" => u16, "u32" => u32, "u64" => u64, "s8" => i8, "s16" => i16, "s32" => i32, "s64" => i64
        } in $body)
    };
}

/// The expression with `S` the type of one name and `D` that of another, and `lanes` for their widths.
macro_rules! widths {
    ($from:expr, $to:expr, |$a:ident: $S:ty| -> $D:ty $body:block) => {
        match ($from.ends_with("64"), $to.ends_with("64")) {
            (false, false) => across!(A1, u32, u32, |$a: $S| -> $D $body),
            (false, true) => across!(W1, u32, u64, |$a: $S| -> $D $body),
            (true, false) => across!(N1, u64, u32, |$a: $S| -> $D $body),
            (true, true) => across!(B1, u64, u64, |$a: $S| -> $D $body),
        }
    };
}

/// A function between registers of widths that the compiler knows only per arm: all but one arm are dead code.
macro_rules! across {
    ($variant:ident, $from:ty, $to:ty, |$a:ident: $S:ty| -> $D:ty $body:block) => {
        lanes!($variant, |bits: $from| -> $to {
            let $a = <$S as Bits>::of(u64::from(bits));
            let result: $D = $body;
            Bits::bits(result) as $to
        })
    };
}

/// A number as the low bits of 64.
trait Bits: Copy {
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! bits {
    ($($T:ty: $of:expr, $bits:expr;)+) => { $(
        impl Bits for $T {
            #[inline(always)]
            fn of(bits: u64) -> $T {
                let of: fn(u64) -> $T = $of;
                of(bits)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                let bits: fn($T) -> u64 = $bits;
                bits(self)
            }
        }
    )+ };
}

bits! {
    u8: |bits| bits as u8, u64::from;
    i8: |bits| bits as i8, |x| u64::from(x as i16 as u16);
    u16: |bits| bits as u16, u64::from;
    i16: |bits| bits as i16, |x| u64::from(x as u16);
    u32: |bits| bits as u32, u64::from;
    i32: |bits| bits as i32, |x| u64::from(x as u32);
    u64: |bits| bits, |x| x;
    i64: |bits| bits as i64, |x| x as u64;
    f32: |bits| f32::from_bits(bits as u32), |x| u64::from(x.to_bits());
    f64: f64::from_bits, f64::to_bits;
}

fn integers(to: &str, from: &str) -> Option<Alu> {
    Some(any_integer!(from, S => any_integer!(to, D => widths!(from, to, |a: S| -> D { a as D }))))
}

fn integers_to_floats(to: &str, from: &str) -> Option<Alu> {
    Some(any_integer!(from, S => choose!(to, D: { "f32" => f32, "f64" => f64 } in {
        widths!(from, to, |a: S| -> D { a as D })
    })))
}

/// Saturating, as Rust's `as` is, but for NaN: PTX ISA, cvt, integer notes.
fn floats_to_integers(to: &str, from: &str, rounding: Rounding, ftz: bool) -> Option<Alu> {
    macro_rules! rounded {
        (|$x:ident| $body:expr) => {
            any_integer!(to, D => match from {
                "f32" => switch!(FTZ = ftz; widths!(from, to, |a: f32| -> D {
                    let $x = if FTZ { flush(a) } else { a };
                    if D::BITS == 64 && $x.is_nan() { (1 as D) << (D::BITS - 1) } else { $body as D }
                })),
                "f64" => widths!(from, to, |$x: f64| -> D {
                    if $x.is_nan() { (1 as D) << (D::BITS - 1) } else { $body as D }
                }),
                _ => return None,
            })
        };
    }
    Some(match rounding {
        Rounding::Zero => rounded!(|x| x),
        Rounding::Nearest => rounded!(|x| x.round_ties_even()),
        Rounding::Down => rounded!(|x| x.floor()),
        _ => rounded!(|x| x.ceil()),
    })
}

fn integral_32<const FTZ: bool>(rounding: Rounding) -> Alu {
    macro_rules! rounded {
        ($round:expr) => {
            lanes!(A1, |a: f32| -> f32 { canonical($round(if FTZ { flush(a) } else { a })) })
        };
    }
    match rounding {
        Rounding::Zero => rounded!(f32::trunc),
        Rounding::Down => rounded!(f32::floor),
        Rounding::Up => rounded!(f32::ceil),
        _ => rounded!(f32::round_ties_even),
    }
}

fn integral_64(rounding: Rounding) -> Option<Alu> {
    macro_rules! rounded {
        ($round:expr) => {
            lanes!(B1, |a: f64| -> f64 { if a.is_nan() { quiet(a) } else { $round(a) } })
        };
    }
    Some(match rounding {
        Rounding::Zero => rounded!(f64::trunc),
        Rounding::Down => rounded!(f64::floor),
        Rounding::Up => rounded!(f64::ceil),
        _ => rounded!(f64::round_ties_even),
    })
}

/// Two numbers of single precision in the halves of a register: the first in the upper one.
fn pack(mut m: Mnemonic, to: &str) -> Option<Alu> {
    let relu = m.take("relu");
    let satfinite = m.take("satfinite");
    let zero = m.take("rz");
    if !zero && !m.take("rn") {
        return None;
    }
    m.done()?;
    Some(choose!(to, T: { "f16x2" => F16, "bf16x2" => Bf16 } in if !zero && !relu && !satfinite {
        lanes!(A2, |a: f32, b: f32| -> u32 { T::narrow(a) << 16 | T::narrow(b) })
    } else {
        switch!(ZERO = zero, RELU = relu, SATFINITE = satfinite; lanes!(A2, |a: u32, b: u32| -> u32 {
            const CONVERSION: Conversion = Conversion {
                to: Type::Float(T::FORMAT),
                from: Type::Float(exact::F32),
                rounding: if ZERO { Rounding::Zero } else { Rounding::Nearest },
                integral: false,
                ftz: false,
                sat: false,
                relu: RELU,
                satfinite: SATFINITE,
            };
            let half = |bits: u32| CONVERSION.apply(u64::from(bits)) as u32;
            half(a) << 16 | half(b)
        }))
    }))
}
