//! Comparisons, tests and the choice by a sign.

use super::float::{flush, operand};
use super::lanes::{choose, integer, lanes, map, switch, test};
use super::narrow::{Bf16, F16, Narrow};
use super::{Alu, Mnemonic};

pub(super) fn find(m: Mnemonic) -> Option<Alu> {
    match m.op {
        "setp" => predicate(m),
        "set" => register(m),
        "testp" => property(m),
        _ => select(m),
    }
}

/// `$emit!` with the comparison of integers that has a name.
macro_rules! by_integer_comparison {
    ($name:expr, $ty:expr, $emit:ident) => {
        match ($name, $ty.as_bytes()[0]) {
            ("eq", _) => $emit!(|a, b| a == b),
            ("ne", _) => $emit!(|a, b| a != b),
            ("lt", b'u' | b's') | ("lo", b'u') => $emit!(|a, b| a < b),
            ("le", b'u' | b's') | ("ls", b'u') => $emit!(|a, b| a <= b),
            ("gt", b'u' | b's') | ("hi", b'u') => $emit!(|a, b| a > b),
            ("ge", b'u' | b's') | ("hs", b'u') => $emit!(|a, b| a >= b),
            _ => return None,
        }
    };
}

/// The same for floats: a comparison that is false of NaN, and with a `u` at the end one that is true of it.
macro_rules! by_float_comparison {
    ($name:expr, $emit:ident) => {
        match $name {
            "eq" => $emit!(|a, b| a == b),
            "ne" => $emit!(|a, b| (a < b) | (a > b)),
            "lt" => $emit!(|a, b| a < b),
            "le" => $emit!(|a, b| a <= b),
            "gt" => $emit!(|a, b| a > b),
            "ge" => $emit!(|a, b| a >= b),
            "equ" => $emit!(|a, b| !((a < b) | (a > b))),
            "neu" => $emit!(|a, b| a != b),
            "ltu" => $emit!(|a, b| (a < b) | a.is_nan() | b.is_nan()),
            "leu" => $emit!(|a, b| (a <= b) | a.is_nan() | b.is_nan()),
            "gtu" => $emit!(|a, b| (a > b) | a.is_nan() | b.is_nan()),
            "geu" => $emit!(|a, b| (a >= b) | a.is_nan() | b.is_nan()),
            "num" => $emit!(|a, b| !(a.is_nan() | b.is_nan())),
            "nan" => $emit!(|a, b| a.is_nan() | b.is_nan()),
            _ => return None,
        }
    };
}

fn predicate(mut m: Mnemonic) -> Option<Alu> {
    let ty = m.only_type()?;
    let ftz = matches!(ty, "f16" | "f32") && m.take("ftz");
    let comparison = m.only_modifier()?;
    Some(match ty {
        "f16" | "bf16" => choose!(ty, T: { "f16" => F16, "bf16" => Bf16 } in {
            macro_rules! emit {
                (|$a:ident, $b:ident| $body:expr) => {
                    switch!(FTZ = ftz; test!(compare, u32, |a: u32, b: u32| {
                        let ($a, $b) = (widen::<T, FTZ>(a), widen::<T, FTZ>(b));
                        $body
                    }))
                };
            }
            by_float_comparison!(comparison, emit)
        }),
        "f32" => {
            macro_rules! emit {
                (|$a:ident, $b:ident| $body:expr) => {
                    switch!(FTZ = ftz; test!(compare, f32, |a: f32, b: f32| {
                        let ($a, $b) = (operand::<FTZ>(a), operand::<FTZ>(b));
                        $body
                    }))
                };
            }
            by_float_comparison!(comparison, emit)
        }
        "f64" => {
            macro_rules! emit {
                (|$a:ident, $b:ident| $body:expr) => {
                    test!(compare, f64, |$a: f64, $b: f64| $body)
                };
            }
            by_float_comparison!(comparison, emit)
        }
        _ => integer!(ty, T => {
            macro_rules! emit {
                (|$a:ident, $b:ident| $body:expr) => { test!(compare, T, |$a: T, $b: T| $body) };
            }
            by_integer_comparison!(comparison, ty, emit)
        }),
    })
}

#[inline(always)]
fn widen<T: Narrow, const FTZ: bool>(bits: u32) -> f32 {
    let bits = bits & 0xffff;
    T::widen(if FTZ { T::flush(bits) } else { bits })
}

/// `set`: true is all ones for integers and 1 for floats.
fn register(mut m: Mnemonic) -> Option<Alu> {
    let [to, from] = m.types[..] else { return None };
    let ftz = matches!(from, "f16" | "f16x2" | "f32") && m.take("ftz");
    let comparison = m.only_modifier()?;
    // Of 16-bit floats, alone or in pairs: the bits of true in all lanes.
    macro_rules! narrow {
        ($T:ty, $pair:expr, $truth:expr) => {{
            macro_rules! emit {
                (|$a:ident, $b:ident| $body:expr) => {
                    switch!(FTZ = ftz; lanes!(A2, |a: u32, b: u32| -> u32 {
                        let holds = |a: u32, b: u32| {
                            let ($a, $b) = (widen::<$T, FTZ>(a), widen::<$T, FTZ>(b));
                            if $body { u32::MAX } else { 0 }
                        };
                        let mask = holds(a, b);
                        $truth & if $pair { holds(a >> 16, b >> 16) << 16 | mask & 0xffff } else { mask }
                    }))
                };
            }
            by_float_comparison!(comparison, emit)
        }};
    }
    Some(match (to, from) {
        ("u32" | "s32", "f16") => narrow!(F16, false, u32::MAX),
        ("u16" | "s16", "f16") => narrow!(F16, false, 0xffff),
        ("f16", "f16") => narrow!(F16, false, F16::ONE),
        ("u32" | "s32", "f16x2") => narrow!(F16, true, u32::MAX),
        ("f16x2", "f16x2") => narrow!(F16, true, F16::ONE << 16 | F16::ONE),
        ("u32" | "s32", "bf16") => narrow!(Bf16, false, u32::MAX),
        ("u16" | "s16", "bf16") => narrow!(Bf16, false, 0xffff),
        ("bf16", "bf16") => narrow!(Bf16, false, Bf16::ONE),
        ("u32" | "s32", "bf16x2") => narrow!(Bf16, true, u32::MAX),
        ("bf16x2", "bf16x2") => narrow!(Bf16, true, Bf16::ONE << 16 | Bf16::ONE),
        ("u32" | "s32", _) => wide_register::<{ u32::MAX }>(comparison, from, ftz)?,
        ("f32", _) => wide_register::<0x3f80_0000>(comparison, from, ftz)?,
        _ => return None,
    })
}

/// `set` of what is not 16-bit floats, with the bits of true.
fn wide_register<const TRUTH: u32>(comparison: &str, from: &str, ftz: bool) -> Option<Alu> {
    Some(match from {
        "f32" => {
            macro_rules! emit {
                (|$a:ident, $b:ident| $body:expr) => {
                    switch!(FTZ = ftz; lanes!(A2, |a: f32, b: f32| -> u32 {
                        let ($a, $b) = (operand::<FTZ>(a), operand::<FTZ>(b));
                        if $body { TRUTH } else { 0 }
                    }))
                };
            }
            by_float_comparison!(comparison, emit)
        }
        "f64" => {
            macro_rules! emit {
                (|$a:ident, $b:ident| $body:expr) => {
                    map!(flag, f64, |$a: f64, $b: f64| -> u32 { if $body { TRUTH } else { 0 } })
                };
            }
            by_float_comparison!(comparison, emit)
        }
        _ => integer!(from, T => {
            macro_rules! emit {
                (|$a:ident, $b:ident| $body:expr) => {
                    map!(flag, T, |$a: T, $b: T| -> u32 { if $body { TRUTH } else { 0 } })
                };
            }
            by_integer_comparison!(comparison, from, emit)
        }),
    })
}

fn property(m: Mnemonic) -> Option<Alu> {
    let property = m.only_modifier()?;
    Some(choose!(m.only_type()?, T: { "f32" => f32, "f64" => f64 } in match property {
        "finite" => test!(test, T, |a: T| a.is_finite()),
        "infinite" => test!(test, T, |a: T| a.is_infinite()),
        "number" => test!(test, T, |a: T| !a.is_nan()),
        "notanumber" => test!(test, T, |a: T| a.is_nan()),
        // Zeros count as normal (PTX ISA, testp).
        "normal" => test!(test, T, |a: T| a.is_normal() || a == 0.0),
        "subnormal" => test!(test, T, |a: T| a.is_subnormal()),
        _ => return None,
    }))
}

/// `slct`: the first where the third operand is at least 0, else the second.
fn select(mut m: Mnemonic) -> Option<Alu> {
    let [ty, sign] = m.types[..] else { return None };
    let ftz = sign == "f32" && m.take("ftz");
    m.done()?;
    Some(choose!(ty, T: {
        "b16" | "u16" | "s16" => u16, "b32" | "u32" | "s32" | "f32" => u32, "b64" | "u64" | "s64" | "f64" => u64
    } in match sign {
        "s32" => map!(select, T, |a: T, b: T, c: i32| -> T { if c >= 0 { a } else { b } }),
        "f32" => switch!(FTZ = ftz; map!(select, T, |a: T, b: T, c: f32| -> T {
            if (if FTZ { flush(c) } else { c }) >= 0.0 { a } else { b }
        })),
        _ => return None,
    }))
}
