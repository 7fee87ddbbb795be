//! What instructions compute: lanes in, lanes out.
//!
//! Semantics are those of the PTX ISA. Where it leaves a result open, what hardware is known to give is used, and
//! the place says so. Instructions that PTX only promises an approximation of (`.approx`, `.full`) are computed in
//! double precision and rounded: closer to the true value than hardware, and not its bits.

mod atomic;
mod compare;
mod convert;
mod exact;
mod float;
mod integer;
mod lanes;
mod narrow;
#[cfg(test)]
mod tests;

use crate::registers::Class;
pub(crate) use atomic::{atomic, atomic_flushing};

pub(crate) use convert::Conversion;
pub(crate) use narrow::{bf16_to_f32, f16_to_f32, f32_to_f16};

/// A 32-bit register of a warp: one value a lane. Narrower types lie in the low bits.
pub(crate) type L32 = [u32; 32];
/// A 64-bit register of a warp.
pub(crate) type L64 = [u64; 32];

/// A function on all 32 lanes, by the widths of its operands. Lanes that take no part are computed too and thrown
/// away by the caller, so nothing here may panic.
#[derive(Clone, Copy)]
pub(crate) enum Alu {
    /// 32 → 32
    A1(fn(&L32, &mut L32)),
    /// 32, 32 → 32
    A2(fn(&L32, &L32, &mut L32)),
    /// 32, 32, 32 → 32
    A3(fn(&L32, &L32, &L32, &mut L32)),
    /// 32, 32, 32, 32 → 32
    A4(fn(&L32, &L32, &L32, &L32, &mut L32)),
    /// 64 → 64
    B1(fn(&L64, &mut L64)),
    /// 64, 64 → 64
    B2(fn(&L64, &L64, &mut L64)),
    /// 64, 64, 64 → 64
    B3(fn(&L64, &L64, &L64, &mut L64)),
    /// 64 → 32
    N1(fn(&L64, &mut L32)),
    /// 64, 64 → 32
    N2(fn(&L64, &L64, &mut L32)),
    /// 32 → 64
    W1(fn(&L32, &mut L64)),
    /// 32, 32 → 64
    W2(fn(&L32, &L32, &mut L64)),
    /// 32, 32, 64 → 64
    W3(fn(&L32, &L32, &L64, &mut L64)),
    /// 64, 32 → 64
    S2(fn(&L64, &L32, &mut L64)),
    /// 64, 32, 32 → 64
    S3(fn(&L64, &L32, &L32, &mut L64)),
    /// 64, 64, 32, 32 → 64
    S4(fn(&L64, &L64, &L32, &L32, &mut L64)),
    /// 64, 64, 32 → 64
    S5(fn(&L64, &L64, &L32, &mut L64)),
    /// 32, 32 → a bit a lane
    T32(fn(&L32, &L32) -> u32),
    /// 64, 64 → a bit a lane
    T64(fn(&L64, &L64) -> u32),
    /// 32 → a bit a lane
    T32x1(fn(&L32) -> u32),
    /// 64 → a bit a lane
    T64x1(fn(&L64) -> u32),
    /// A conversion without a function of its own, see [`Conversion`].
    Convert(Conversion),
}

impl Alu {
    /// What the operands are, and the result.
    pub(crate) fn classes(&self) -> (&'static [Class], Class) {
        use Class::{Pred, W32, W64};
        match self {
            Alu::A1(_) => (&[W32], W32),
            Alu::A2(_) => (&[W32, W32], W32),
            Alu::A3(_) => (&[W32, W32, W32], W32),
            Alu::A4(_) => (&[W32, W32, W32, W32], W32),
            Alu::B1(_) => (&[W64], W64),
            Alu::B2(_) => (&[W64, W64], W64),
            Alu::B3(_) => (&[W64, W64, W64], W64),
            Alu::N1(_) => (&[W64], W32),
            Alu::N2(_) => (&[W64, W64], W32),
            Alu::W1(_) => (&[W32], W64),
            Alu::W2(_) => (&[W32, W32], W64),
            Alu::W3(_) => (&[W32, W32, W64], W64),
            Alu::S2(_) => (&[W64, W32], W64),
            Alu::S3(_) => (&[W64, W32, W32], W64),
            Alu::S4(_) => (&[W64, W64, W32, W32], W64),
            Alu::S5(_) => (&[W64, W64, W32], W64),
            Alu::T32(_) => (&[W32, W32], Pred),
            Alu::T64(_) => (&[W64, W64], Pred),
            Alu::T32x1(_) => (&[W32], Pred),
            Alu::T64x1(_) => (&[W64], Pred),
            Alu::Convert(conversion) => match conversion.widths() {
                (false, false) => (&[W32], W32),
                (false, true) => (&[W32], W64),
                (true, false) => (&[W64], W32),
                (true, true) => (&[W64], W64),
            },
        }
    }
}

/// The function of an instruction that computes registers from registers, by its whole mnemonic, but for a boolean
/// combiner of `setp` and `set`. Modifiers may stand in any order.
pub(crate) fn find(opcode: &str) -> Option<Alu> {
    let m = Mnemonic::parse(opcode)?;
    match m.op {
        "cvt" => convert::find(m),
        "setp" | "set" | "testp" | "slct" => compare::find(m),
        "dp4a" | "dp2a" => integer::dot(m),
        _ => match *m.types.first()? {
            "f16" | "f16x2" | "bf16" | "bf16x2" => narrow::find(m),
            "f32" | "f64" | "f32x2" => float::find(m),
            _ => integer::find(m),
        },
    }
}

/// A mnemonic, taken apart: an operation, its modifiers and its types.
struct Mnemonic<'a> {
    op: &'a str,
    modifiers: Vec<&'a str>,
    types: Vec<&'a str>,
}

impl<'a> Mnemonic<'a> {
    fn parse(opcode: &'a str) -> Option<Mnemonic<'a>> {
        const TYPES: [&str; 25] = [
            "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "u16x2",
            "s16x2", "f16", "f16x2", "bf16", "bf16x2", "tf32", "f32", "f32x2", "f64", "pred", "b128", "s128",
        ];
        let mut parts = opcode.split('.');
        let op = parts.next()?;
        let (types, modifiers) = parts.partition(|part| TYPES.contains(part));
        Some(Mnemonic { op, modifiers, types })
    }

    /// Whether a modifier is there; it is then used up.
    fn take(&mut self, modifier: &str) -> bool {
        let found = self.modifiers.iter().position(|&other| other == modifier);
        found.map(|index| self.modifiers.remove(index)).is_some()
    }

    /// The first of these modifiers that is there, used up.
    fn take_any<T: Copy>(&mut self, choices: &[(&str, T)]) -> Option<T> {
        choices.iter().find(|(modifier, _)| self.take(modifier)).map(|&(_, value)| value)
    }

    /// That no modifier is left.
    fn done(&self) -> Option<()> {
        self.modifiers.is_empty().then_some(())
    }

    fn only_modifier(&self) -> Option<&'a str> {
        match self.modifiers[..] {
            [modifier] => Some(modifier),
            _ => None,
        }
    }

    fn only_type(&self) -> Option<&'a str> {
        match self.types[..] {
            [ty] => Some(ty),
            _ => None,
        }
    }
}
