//! What atomic operations leave in memory.

use super::float::{canonical, flush};
use super::narrow::{Bf16, F16, Narrow};

type Update = fn(u64, u64) -> u64;

/// What an atomic operation of this name and type makes of the value in memory and its operand, both in the low
/// bits. Subnormal numbers are kept.
pub(crate) fn atomic(op: &str, ty: &str) -> Option<Update> {
    Some(match op {
        "exch" => match ty {
            "b64" | "u64" | "s64" | "f64" => |_, operand| operand,
            "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16x2" => |_, operand| operand & 0xffff_ffff,
            "b16" | "f16" | "bf16" => |_, operand| operand & 0xffff,
            _ => return None,
        },
        "and" => bits(ty, |a, b| a & b)?,
        "or" => bits(ty, |a, b| a | b)?,
        "xor" => bits(ty, |a, b| a ^ b)?,
        "inc" if ty == "u32" => |old, limit| {
            let (old, limit) = (old as u32, limit as u32);
            if old >= limit { 0 } else { u64::from(old + 1) }
        },
        "dec" if ty == "u32" => |old, limit| {
            let (old, limit) = (old as u32, limit as u32);
            if old == 0 || old > limit { u64::from(limit) } else { u64::from(old - 1) }
        },
        "min" | "max" => {
            let max = op == "max";
            match ty {
                "f16" | "bf16" | "f16x2" | "bf16x2" => return narrow_extreme(max, ty),
                _ => integer_extreme(max, ty)?,
            }
        }
        "add" => match ty {
            "u32" | "s32" => |old, operand| u64::from((old as u32).wrapping_add(operand as u32)),
            "u64" | "s64" => |old, operand| old.wrapping_add(operand),
            "f32" => |old, operand| {
                let sum = f32::from_bits(old as u32) + f32::from_bits(operand as u32);
                u64::from(canonical(sum).to_bits())
            },
            "f64" => |old, operand| super::float::sum_64(old, operand),
            "f16" => |old, operand| halves::<false>(old, operand, sum::<F16>),
            "bf16" => |old, operand| halves::<false>(old, operand, sum::<Bf16>),
            "f16x2" => |old, operand| halves::<true>(old, operand, sum::<F16>),
            "bf16x2" => |old, operand| halves::<true>(old, operand, sum::<Bf16>),
            _ => return None,
        },
        _ => return None,
    })
}

/// The same, where single-precision sums flush subnormal operands and results, as they do in global memory.
pub(crate) fn atomic_flushing(op: &str, ty: &str) -> Option<Update> {
    match (op, ty) {
        ("add", "f32") => Some(|old, operand| {
            let sum = flush(f32::from_bits(old as u32)) + flush(f32::from_bits(operand as u32));
            u64::from(canonical(flush(sum)).to_bits())
        }),
        _ => atomic(op, ty),
    }
}

fn bits(ty: &str, function: Update) -> Option<Update> {
    matches!(ty, "b32" | "b64" | "u32" | "u64" | "s32" | "s64").then_some(function)
}

fn integer_extreme(max: bool, ty: &str) -> Option<Update> {
    Some(match (ty, max) {
        ("u32", true) => |old, operand| u64::from((old as u32).max(operand as u32)),
        ("u32", false) => |old, operand| u64::from((old as u32).min(operand as u32)),
        ("s32", true) => |old, operand| u64::from((old as i32).max(operand as i32) as u32),
        ("s32", false) => |old, operand| u64::from((old as i32).min(operand as i32) as u32),
        ("u64", true) => |old, operand| old.max(operand),
        ("u64", false) => |old, operand| old.min(operand),
        ("s64", true) => |old, operand| (old as i64).max(operand as i64) as u64,
        ("s64", false) => |old, operand| (old as i64).min(operand as i64) as u64,
        _ => return None,
    })
}

fn halves<const PAIR: bool>(old: u64, operand: u64, f: fn(u32, u32) -> u32) -> u64 {
    let half = |shift: u32| u64::from(f((old >> shift) as u32 & 0xffff, (operand >> shift) as u32 & 0xffff));
    if PAIR { half(16) << 16 | half(0) } else { half(0) }
}

fn sum<T: Narrow>(a: u32, b: u32) -> u32 {
    T::narrow(T::widen(a) + T::widen(b))
}

fn narrow_extreme(max: bool, ty: &str) -> Option<Update> {
    fn extreme<T: Narrow, const MAX: bool>(a: u32, b: u32) -> u32 {
        T::narrow(super::float::extreme::<MAX, false, false>(T::widen(a), T::widen(b)))
    }
    Some(match (ty, max) {
        ("f16", true) => |old, operand| halves::<false>(old, operand, extreme::<F16, true>),
        ("f16", false) => |old, operand| halves::<false>(old, operand, extreme::<F16, false>),
        ("bf16", true) => |old, operand| halves::<false>(old, operand, extreme::<Bf16, true>),
        ("bf16", false) => |old, operand| halves::<false>(old, operand, extreme::<Bf16, false>),
        ("f16x2", true) => |old, operand| halves::<true>(old, operand, extreme::<F16, true>),
        ("f16x2", false) => |old, operand| halves::<true>(old, operand, extreme::<F16, false>),
        ("bf16x2", true) => |old, operand| halves::<true>(old, operand, extreme::<Bf16, true>),
        _ => |old, operand| halves::<true>(old, operand, extreme::<Bf16, false>),
    })
}
