//! Arithmetic of `f16` and `bf16`, alone and in pairs. Computed in single or double precision and rounded once.

use super::exact::{self, Format};
use super::float::{canonical, extreme, flush, fused, odd_sum, saturate};
use super::lanes::{choose, lanes, switch};
use super::{Alu, Mnemonic};

/// A format of 16 bits, which lie in the low bits of a word.
pub(super) trait Narrow {
    const ONE: u32;
    const NAN: u32 = 0x7fff;
    const EXPONENT: u32;
    const FORMAT: Format;
    /// The same number in single precision.
    fn widen(bits: u32) -> f32;
    /// The nearest number, ties to even; any NaN becomes the canonical one.
    fn narrow(x: f32) -> u32;
    /// a·b + c such that `narrow` of it is rounded once.
    fn fused(a: f32, b: f32, c: f32) -> f32;

    /// A subnormal number as a zero of its sign.
    #[inline(always)]
    fn flush(bits: u32) -> u32 {
        if bits & Self::EXPONENT == 0 { bits & 0x8000 } else { bits }
    }
}

pub(super) struct F16;
pub(super) struct Bf16;

impl Narrow for F16 {
    const ONE: u32 = 0x3c00;
    const EXPONENT: u32 = 0x7c00;
    const FORMAT: Format = exact::F16;

    #[inline(always)]
    fn widen(bits: u32) -> f32 {
        // With the exponents' difference multiplied away, subnormal numbers need no care.
        let magnitude = (bits & 0x7fff) << 13;
        let number = (f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)).to_bits();
        let special = if magnitude >= 0x7c00 << 13 { 0x7f80_0000 } else { 0 };
        canonical(f32::from_bits(number | special | (bits & 0x8000) << 16))
    }

    #[inline(always)]
    fn narrow(x: f32) -> u32 {
        let bits = x.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        let rounded = magnitude.wrapping_add(0xfff + (magnitude >> 13 & 1));
        let normal = rounded.wrapping_sub(112 << 23) >> 13;
        // Added to 1/2 a subnormal number has its last bit where single precision has its own.
        let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
        let number = if magnitude < 113 << 23 { subnormal } else { normal };
        let number = if magnitude >= 143 << 23 { 0x7c00 } else { number };
        if magnitude > 0x7f80_0000 { Self::NAN } else { number | bits >> 16 & 0x8000 }
    }

    #[inline(always)]
    fn fused(a: f32, b: f32, c: f32) -> f32 {
        // The product is exact. The sum is rounded to odd, which keeps what decides ties.
        let product = a * b;
        let sum = product + c;
        let rest = sum - product;
        let error = (product - (sum - rest)) + (c - rest);
        odd(sum, error)
    }
}

impl Narrow for Bf16 {
    const ONE: u32 = 0x3f80;
    const EXPONENT: u32 = 0x7f80;
    const FORMAT: Format = exact::BF16;

    #[inline(always)]
    fn widen(bits: u32) -> f32 {
        f32::from_bits(bits << 16)
    }

    #[inline(always)]
    fn narrow(x: f32) -> u32 {
        let bits = x.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        if x.is_nan() { Self::NAN } else { rounded }
    }

    #[inline(always)]
    fn fused(a: f32, b: f32, c: f32) -> f32 {
        let sum = odd_sum(f64::from(a) * f64::from(b), f64::from(c));
        let nearest = sum as f32;
        odd(nearest, sum_error(sum, nearest))
    }
}

/// What rounding to single precision left out. Of an overflow it is the direction back.
#[inline(always)]
fn sum_error(sum: f64, nearest: f32) -> f32 {
    let error = sum - f64::from(nearest);
    // Only the sign counts, which single precision might flush away.
    if error > 0.0 {
        1.0
    } else if error < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// The number whose last bit is set on the error's side of an inexact result.
#[inline(always)]
fn odd(nearest: f32, error: f32) -> f32 {
    let bits = nearest.to_bits();
    let inexact = (error > 0.0) | (error < 0.0);
    let negative = bits >> 31 == 1;
    let step = if (error < 0.0) == negative { 1_u32 } else { u32::MAX };
    f32::from_bits(if inexact & (bits & 1 == 0) { bits.wrapping_add(step) } else { bits })
}

/// What modifiers make of a result before it is rounded, which changes nothing of their effect: their bounds are
/// numbers of every format.
#[inline(always)]
fn bound<const SAT: bool, const RELU: bool>(x: f32) -> f32 {
    let x = if SAT { saturate(x) } else { x };
    if RELU && x <= 0.0 { 0.0 } else { x }
}

/// Applies a function to one or both halves of registers.
#[inline(always)]
fn halves<const PAIR: bool, const N: usize>(registers: [u32; N], f: impl Fn([u32; N]) -> u32) -> u32 {
    let low = f(registers.map(|bits| bits & 0xffff));
    if PAIR { f(registers.map(|bits| bits >> 16)) << 16 | low } else { low }
}

/// The expression with `T` the format and `PAIR` whether there are two, by the name of the type.
macro_rules! narrow {
    ($name:expr, $T:ident, $PAIR:ident => $body:expr) => {
        match $name {
            "f16" => {
                type $T = F16;
                const $PAIR: bool = false;
                $body
            }
            "f16x2" => {
                type $T = F16;
                const $PAIR: bool = true;
                $body
            }
            "bf16" => {
                type $T = Bf16;
                const $PAIR: bool = false;
                $body
            }
            "bf16x2" => {
                type $T = Bf16;
                const $PAIR: bool = true;
                $body
            }
            _ => return None,
        }
    };
}

/// Instructions of one of the four types.
pub(super) fn find(mut m: Mnemonic) -> Option<Alu> {
    let ty = m.only_type()?;
    let bf16 = ty.starts_with('b');
    if m.op == "ex2" || m.op == "tanh" {
        return approximate(m, ty);
    }
    // Modifiers that bf16 lacks stay in place and are refused below.
    let ftz = !bf16 && m.take("ftz");
    let arithmetic = matches!(m.op, "add" | "sub" | "mul" | "fma");
    let sat = arithmetic && !bf16 && m.take("sat");
    let relu = m.op == "fma" && !sat && m.take("relu");
    let nearest = arithmetic && m.take("rn");
    let extremes = m.op == "min" || m.op == "max";
    let nan = extremes && m.take("NaN");
    let xorsign = extremes && m.take("xorsign");
    if xorsign && !m.take("abs") {
        return None;
    }
    m.done()?;
    if m.op == "fma" && !nearest {
        return None;
    }
    Some(narrow!(ty, T, PAIR => {
        /// An operand as the modifiers want it.
        #[inline(always)]
        fn operand<const FTZ: bool>(bits: u32) -> f32 {
            T::widen(if FTZ { T::flush(bits) } else { bits })
        }
        /// A result as the modifiers want it.
        #[inline(always)]
        fn result<const FTZ: bool>(x: f32) -> u32 {
            if FTZ { T::flush(T::narrow(x)) } else { T::narrow(x) }
        }
        macro_rules! binary {
            (|$a:ident, $b:ident| $body:expr) => {
                switch!(FTZ = ftz, SAT = sat; lanes!(A2, |a: u32, b: u32| -> u32 {
                    halves::<PAIR, 2>([a, b], |[a, b]| {
                        let ($a, $b) = (operand::<FTZ>(a), operand::<FTZ>(b));
                        result::<FTZ>(bound::<SAT, false>($body))
                    })
                }))
            };
        }
        match m.op {
            // Single precision has more than twice the digits and two, so that rounding twice does no harm. Products
            // are exact, but for those of bf16 that are too small for either.
            "add" => binary!(|a, b| a + b),
            "sub" => binary!(|a, b| a - b),
            "mul" => binary!(|a, b| a * b),
            "fma" => switch!(FTZ = ftz, SAT = sat, RELU = relu; lanes!(A3, |a: u32, b: u32, c: u32| -> u32 {
                halves::<PAIR, 3>([a, b, c], |operands| {
                    let [a, b, c] = operands.map(operand::<FTZ>);
                    result::<FTZ>(bound::<SAT, RELU>(T::fused(a, b, c)))
                })
            })),
            "neg" => switch!(FTZ = ftz; lanes!(A1, |a: u32| -> u32 {
                halves::<PAIR, 1>([a], |[a]| result::<FTZ>(-operand::<FTZ>(a)))
            })),
            "abs" => switch!(FTZ = ftz; lanes!(A1, |a: u32| -> u32 {
                halves::<PAIR, 1>([a], |[a]| result::<FTZ>(operand::<FTZ>(a).abs()))
            })),
            "min" | "max" => {
                let max = m.op == "max";
                switch!(MAX = max, FTZ = ftz, NAN = nan, XORSIGN = xorsign; lanes!(A2, |a: u32, b: u32| -> u32 {
                    halves::<PAIR, 2>([a, b], |[a, b]| {
                        result::<FTZ>(extreme::<MAX, NAN, XORSIGN>(operand::<FTZ>(a), operand::<FTZ>(b)))
                    })
                }))
            }
            _ => return None,
        }
    }))
}

/// `ex2` and `tanh`, which PTX has as approximations only.
fn approximate(mut m: Mnemonic, ty: &str) -> Option<Alu> {
    let bf16 = ty.starts_with('b');
    if !m.take("approx") || m.take("ftz") != (m.op == "ex2" && bf16) {
        return None;
    }
    m.done()?;
    Some(narrow!(ty, T, PAIR => match m.op {
        "ex2" => lanes!(A1, |a: u32| -> u32 {
            // bf16 flushes subnormal operands and results, f16 neither; an operand that small gives 1 all the same.
            halves::<PAIR, 1>([a], |[a]| {
                let bits = T::narrow(f64::from(T::widen(a)).exp2() as f32);
                if T::EXPONENT == Bf16::EXPONENT { T::flush(bits) } else { bits }
            })
        }),
        _ => lanes!(A1, |a: u32| -> u32 {
            halves::<PAIR, 1>([a], |[a]| T::narrow(f64::from(T::widen(a)).tanh() as f32))
        }),
    }))
}

/// Single-precision arithmetic with factors or an addend in 16 bits: `add.f32.f16`, `fma.rn.f32.bf16` and the like.
pub(super) fn mixed(mut m: Mnemonic) -> Option<Alu> {
    let ["f32", ty] = m.types[..] else { return None };
    let sat = m.take("sat");
    let nearest = m.take("rn");
    m.done()?;
    #[inline(always)]
    fn result<const SAT: bool>(x: f32) -> f32 {
        if SAT { saturate(x) } else { canonical(x) }
    }
    Some(choose!(ty, T: { "f16" => F16, "bf16" => Bf16 } in switch!(SAT = sat; match m.op {
        "add" => lanes!(A2, |a: u32, c: f32| -> f32 { result::<SAT>(T::widen(a & 0xffff) + c) }),
        "sub" => lanes!(A2, |a: u32, c: f32| -> f32 { result::<SAT>(T::widen(a & 0xffff) - c) }),
        "fma" if nearest => lanes!(A3, |a: u32, b: u32, c: f32| -> f32 {
            result::<SAT>(fused(T::widen(a & 0xffff), T::widen(b & 0xffff), c))
        }),
        _ => return None,
    })))
}

/// The number of the low 16 bits, in `f16`.
pub(crate) fn f16_to_f32(bits: u32) -> f32 {
    F16::widen(bits)
}

/// The number of the low 16 bits, in `bf16`.
pub(crate) fn bf16_to_f32(bits: u32) -> f32 {
    Bf16::widen(bits)
}

/// The nearest number in `f16`, ties to even.
pub(crate) fn f32_to_f16(x: f32) -> u32 {
    F16::narrow(x)
}

/// Conversions between a 16-bit format and single precision, to nearest.
pub(super) fn convert(from: &str, to: &str, ftz: bool) -> Option<Alu> {
    Some(match (from, to) {
        ("f32", _) => choose!(to, T: { "f16" => F16, "bf16" => Bf16 } in switch!(FTZ = ftz;
            lanes!(A1, |a: f32| -> u32 { T::narrow(if FTZ { flush(a) } else { a }) }))),
        (_, "f32") => choose!(from, T: { "f16" => F16, "bf16" => Bf16 } in switch!(FTZ = ftz;
        lanes!(A1, |a: u32| -> f32 {
            let x = T::widen(a & 0xffff);
            if FTZ { flush(x) } else { x }
        }))),
        _ => return None,
    })
}
