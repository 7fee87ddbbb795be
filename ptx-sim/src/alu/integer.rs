//! Integer arithmetic, logic and bits.

use super::lanes::{Lane, choose, integer, lanes, map, switch};
use super::{Alu, L32, L64, Mnemonic};

/// An instruction whose only type is the last part of its mnemonic.
pub(super) fn find(mut m: Mnemonic) -> Option<Alu> {
    let ty = m.only_type()?;
    let op = m.op;
    let arithmetic = !ty.starts_with('b');
    let bits = ty.starts_with('b');
    if ty.ends_with("x2") {
        return packed(m, ty);
    }
    Some(match op {
        "add" | "sub" if arithmetic => {
            let saturate = m.take("sat");
            m.done()?;
            match (op, saturate) {
                ("add", false) => integer!(ty, T => map!(binary, T, |a: T, b: T| -> T { a.wrapping_add(b) })),
                ("sub", false) => integer!(ty, T => map!(binary, T, |a: T, b: T| -> T { a.wrapping_sub(b) })),
                _ if ty != "s32" => return None,
                ("add", true) => lanes!(A2, |a: i32, b: i32| -> i32 { a.saturating_add(b) }),
                _ => lanes!(A2, |a: i32, b: i32| -> i32 { a.saturating_sub(b) }),
            }
        }
        "mul" | "mad" if arithmetic => return product(m, ty),
        "mul24" | "mad24" => return product24(m, ty),
        "sad" if arithmetic => {
            m.done()?;
            integer!(ty, T => map!(ternary, T, |a: T, b: T, c: T| -> T {
                // The difference as unsigned bits, which is right where a signed one overflows.
                c.wrapping_add(if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) })
            }))
        }
        // PTX leaves a division by zero open; the hardware's routine gives all ones and the dividend.
        "div" if arithmetic => {
            m.done()?;
            integer!(ty, T => map!(binary, T, |a: T, b: T| -> T { if b == 0 { !0 } else { a.wrapping_div(b) } }))
        }
        "rem" if arithmetic => {
            m.done()?;
            integer!(ty, T => map!(binary, T, |a: T, b: T| -> T { if b == 0 { a } else { a.wrapping_rem(b) } }))
        }
        "abs" => {
            m.done()?;
            choose!(ty, T: { "s16" => i16, "s32" => i32, "s64" => i64 } in
                map!(unary, T, |a: T| -> T { a.wrapping_abs() }))
        }
        "neg" => {
            m.done()?;
            choose!(ty, T: { "s16" => i16, "s32" => i32, "s64" => i64 } in
                map!(unary, T, |a: T| -> T { a.wrapping_neg() }))
        }
        "min" | "max" if arithmetic => {
            let relu = m.take("relu");
            m.done()?;
            match (op, relu) {
                ("min", false) => {
                    integer!(ty, T => map!(binary, T, |a: T, b: T| -> T { if a < b { a } else { b } }))
                }
                ("max", false) => {
                    integer!(ty, T => map!(binary, T, |a: T, b: T| -> T { if a > b { a } else { b } }))
                }
                _ if ty != "s32" => return None,
                ("min", true) => lanes!(A2, |a: i32, b: i32| -> i32 { a.min(b).max(0) }),
                _ => lanes!(A2, |a: i32, b: i32| -> i32 { a.max(b).max(0) }),
            }
        }
        "and" | "or" | "xor" | "not" | "cnot" if bits => {
            m.done()?;
            match op {
                "and" => integer!(ty, T => map!(binary, T, |a: T, b: T| -> T { a & b })),
                "or" => integer!(ty, T => map!(binary, T, |a: T, b: T| -> T { a | b })),
                "xor" => integer!(ty, T => map!(binary, T, |a: T, b: T| -> T { a ^ b })),
                "not" => integer!(ty, T => map!(unary, T, |a: T| -> T { !a })),
                _ => integer!(ty, T => map!(unary, T, |a: T| -> T { T::from(a == 0) })),
            }
        }
        "shl" if bits => {
            m.done()?;
            match ty {
                "b16" => lanes!(A2, |a: u32, n: u32| -> u32 { if n < 16 { (a << n) & 0xffff } else { 0 } }),
                "b32" => Alu::A2(shift_left_32),
                "b64" => Alu::S2(shift_left_64),
                _ => return None,
            }
        }
        "shr" => {
            m.done()?;
            match ty {
                "b16" | "u16" => lanes!(A2, |a: u16, n: u32| -> u16 { if n < 16 { a >> n } else { 0 } }),
                "s16" => lanes!(A2, |a: i16, n: u32| -> i16 { a >> n.min(15) }),
                "b32" | "u32" => Alu::A2(shift_right_u32),
                "s32" => Alu::A2(shift_right_s32),
                "b64" | "u64" => Alu::S2(shift_right_u64),
                "s64" => Alu::S2(shift_right_s64),
                _ => return None,
            }
        }
        "popc" | "clz" | "brev" => {
            m.done()?;
            choose!(ty, T: { "b32" => u32, "b64" => u64 } in match op {
                "popc" => map!(count, T, |a: T| -> u32 { a.count_ones() }),
                "clz" => map!(count, T, |a: T| -> u32 { a.leading_zeros() }),
                _ => map!(unary, T, |a: T| -> T { a.reverse_bits() }),
            })
        }
        "bfind" if arithmetic && !ty.ends_with("16") => {
            let shift_amount = m.take("shiftamt");
            m.done()?;
            switch!(SHIFT = shift_amount; match ty {
                "u32" => lanes!(A1, |a: u32| -> u32 { found(a.leading_zeros(), 32, SHIFT) }),
                "u64" => lanes!(N1, |a: u64| -> u32 { found(a.leading_zeros(), 64, SHIFT) }),
                // Of a negative number the first zero is wanted.
                "s32" => lanes!(A1, |a: i32| -> u32 { found((a ^ (a >> 31)).leading_zeros(), 32, SHIFT) }),
                _ => lanes!(N1, |a: i64| -> u32 { found((a ^ (a >> 63)).leading_zeros(), 64, SHIFT) }),
            })
        }
        "bfe" if arithmetic && !ty.ends_with("16") => {
            m.done()?;
            integer!(ty, T => map!(extract, T, |a: T, position: u32, length: u32| -> T {
                let (position, length) = (position & 0xff, length & 0xff);
                if length == 0 {
                    0
                } else if position < T::BITS {
                    // To the top and back down, so that the way down copies the sign of the field.
                    let above = T::BITS - (position + length).min(T::BITS);
                    (a << above) >> (above + position)
                } else if T::MIN == 0 {
                    0
                } else {
                    a >> (T::BITS - 1)
                }
            }))
        }
        "bfi" if bits => {
            m.done()?;
            choose!(ty, T: { "b32" => u32, "b64" => u64 } in
            map!(insert, T, |a: T, b: T, position: u32, length: u32| -> T {
                let (position, length) = (position & 0xff, length & 0xff);
                let field = if length >= T::BITS { T::MAX } else { ((1 as T) << length) - 1 };
                if position >= T::BITS { b } else { b & !(field << position) | (a & field) << position }
            }))
        }
        "prmt" if ty == "b32" => return permute(m),
        "lop3" if ty == "b32" => {
            m.done()?;
            Alu::A4(logic3)
        }
        "shf" if ty == "b32" => {
            let clamp = m.take("clamp");
            if !clamp && !m.take("wrap") {
                return None;
            }
            let left = m.take("l");
            if !left && !m.take("r") {
                return None;
            }
            m.done()?;
            switch!(LEFT = left, CLAMP = clamp; lanes!(A3, |a: u32, b: u32, c: u32| -> u32 {
                let n = if CLAMP { c.min(32) } else { c & 31 };
                let both = u64::from(b) << 32 | u64::from(a);
                if LEFT { ((both << n) >> 32) as u32 } else { (both >> n) as u32 }
            }))
        }
        "szext" => {
            let clamp = m.take("clamp");
            if !clamp && !m.take("wrap") {
                return None;
            }
            m.done()?;
            choose!(ty, T: { "u32" => u32, "s32" => i32 } in switch!(CLAMP = clamp; lanes!(A2, |a: T, b: u32| -> T {
                let n = b & 31;
                if CLAMP && b >= 32 {
                    a
                } else if n == 0 {
                    0
                } else {
                    (a << (32 - n)) >> (32 - n)
                }
            })))
        }
        "bmsk" if ty == "b32" => {
            let clamp = m.take("clamp");
            if !clamp && !m.take("wrap") {
                return None;
            }
            m.done()?;
            switch!(CLAMP = clamp; lanes!(A2, |a: u32, b: u32| -> u32 {
                let (start, width) = if CLAMP { (a.min(32), b.min(32)) } else { (a & 31, b & 31) };
                ((((1_u64 << width) - 1) << start) & 0xffff_ffff) as u32
            }))
        }
        "fns" if ty == "b32" => {
            m.done()?;
            lanes!(A3, |mask: u32, base: u32, offset: i32| -> u32 { nth_set(mask, base, offset) })
        }
        _ => return None,
    })
}

/// `dp4a` and `dp2a`, which name the types of both factors.
pub(super) fn dot(mut m: Mnemonic) -> Option<Alu> {
    let [x, y] = m.types[..] else { return None };
    let four = m.op == "dp4a";
    let high = !four && m.take("hi");
    if !four && !high && !m.take("lo") {
        return None;
    }
    m.done()?;
    let signed = |ty| match ty {
        "s32" => Some(true),
        "u32" => Some(false),
        _ => None,
    };
    let (a_signed, b_signed) = (signed(x)?, signed(y)?);
    Some(
        switch!(FOUR = four, HIGH = high, A = a_signed, B = b_signed; lanes!(A3, |a: u32, b: u32, c: u32| -> u32 {
            let mut sum = c;
            for k in 0..if FOUR { 4 } else { 2 } {
                let x = match (FOUR, A) {
                    (true, true) => (a >> (8 * k)) as i8 as u32,
                    (true, false) => u32::from((a >> (8 * k)) as u8),
                    (false, true) => (a >> (16 * k)) as i16 as u32,
                    (false, false) => u32::from((a >> (16 * k)) as u16),
                };
                let byte = (b >> (8 * k + if HIGH { 16 } else { 0 })) as u8;
                let y = if B { byte as i8 as u32 } else { u32::from(byte) };
                sum = sum.wrapping_add(x.wrapping_mul(y));
            }
            sum
        })),
    )
}

fn product(mut m: Mnemonic, ty: &str) -> Option<Alu> {
    let add = m.op == "mad";
    let half = ["lo", "hi", "wide"].into_iter().find(|half| m.take(half))?;
    let saturate = m.take("sat");
    m.done()?;
    if saturate && (!add || half != "hi" || ty != "s32") {
        return None;
    }
    Some(match (half, add) {
        ("lo", false) => integer!(ty, T => map!(binary, T, |a: T, b: T| -> T { a.wrapping_mul(b) })),
        ("lo", true) => integer!(ty, T => map!(ternary, T, |a: T, b: T, c: T| -> T {
            a.wrapping_mul(b).wrapping_add(c)
        })),
        ("hi", false) => match ty {
            "u64" | "s64" => choose!(ty, T: { "u64" => u64, "s64" => i64 } in
            map!(binary, T, |a: T, b: T| -> T {
                ((i128::from(a) as u128).wrapping_mul(i128::from(b) as u128) >> 64) as T
            })),
            _ => choose!(ty, T: { "u16" => u16, "s16" => i16, "u32" => u32, "s32" => i32 } in
                map!(binary, T, |a: T, b: T| -> T { high(i64::from(a), i64::from(b), T::BITS) as T })),
        },
        ("hi", true) if saturate => lanes!(A3, |a: i32, b: i32, c: i32| -> i32 {
            (high(i64::from(a), i64::from(b), 32) as i32).saturating_add(c)
        }),
        ("hi", true) => match ty {
            "u64" | "s64" => choose!(ty, T: { "u64" => u64, "s64" => i64 } in
            map!(ternary, T, |a: T, b: T, c: T| -> T {
                (((i128::from(a) as u128).wrapping_mul(i128::from(b) as u128) >> 64) as T).wrapping_add(c)
            })),
            _ => choose!(ty, T: { "u16" => u16, "s16" => i16, "u32" => u32, "s32" => i32 } in
            map!(ternary, T, |a: T, b: T, c: T| -> T {
                (high(i64::from(a), i64::from(b), T::BITS) as T).wrapping_add(c)
            })),
        },
        (_, false) => match ty {
            "u16" => lanes!(A2, |a: u16, b: u16| -> u32 { u32::from(a) * u32::from(b) }),
            "s16" => lanes!(A2, |a: i16, b: i16| -> i32 { i32::from(a) * i32::from(b) }),
            "u32" => lanes!(W2, |a: u32, b: u32| -> u64 { u64::from(a) * u64::from(b) }),
            "s32" => lanes!(W2, |a: i32, b: i32| -> i64 { i64::from(a) * i64::from(b) }),
            _ => return None,
        },
        (_, true) => match ty {
            "u16" => {
                lanes!(A3, |a: u16, b: u16, c: u32| -> u32 { (u32::from(a) * u32::from(b)).wrapping_add(c) })
            }
            "s16" => {
                lanes!(A3, |a: i16, b: i16, c: i32| -> i32 { (i32::from(a) * i32::from(b)).wrapping_add(c) })
            }
            "u32" => {
                lanes!(W3, |a: u32, b: u32, c: u64| -> u64 { (u64::from(a) * u64::from(b)).wrapping_add(c) })
            }
            "s32" => {
                lanes!(W3, |a: i32, b: i32, c: i64| -> i64 { (i64::from(a) * i64::from(b)).wrapping_add(c) })
            }
            _ => return None,
        },
    })
}

/// The upper half of a product of factors of `bits` bits. Of unsigned factors of 32 bits the product does not fit,
/// but its bits do.
#[inline(always)]
fn high(a: i64, b: i64, bits: u32) -> u64 {
    (a as u64).wrapping_mul(b as u64) >> bits
}

fn product24(mut m: Mnemonic, ty: &str) -> Option<Alu> {
    let add = m.op == "mad24";
    let high = m.take("hi");
    if !high && !m.take("lo") {
        return None;
    }
    let saturate = m.take("sat");
    m.done()?;
    if saturate && !(add && high && ty == "s32") {
        return None;
    }
    /// The product of the lower 24 bits, its bits 31..0 or 47..16.
    #[inline(always)]
    fn product(a: u32, b: u32, signed: bool, high: bool) -> u32 {
        let factor =
            |x: u32| if signed { i64::from((x << 8) as i32 >> 8) } else { i64::from(x & 0x00ff_ffff) };
        ((factor(a) * factor(b)) >> if high { 16 } else { 0 }) as u32
    }
    let signed = match ty {
        "s32" => true,
        "u32" => false,
        _ => return None,
    };
    Some(match add {
        false => switch!(SIGNED = signed, HIGH = high;
            lanes!(A2, |a: u32, b: u32| -> u32 { product(a, b, SIGNED, HIGH) })),
        true if saturate => lanes!(A3, |a: u32, b: u32, c: i32| -> i32 {
            (product(a, b, true, true) as i32).saturating_add(c)
        }),
        true => switch!(SIGNED = signed, HIGH = high; lanes!(A3, |a: u32, b: u32, c: u32| -> u32 {
            product(a, b, SIGNED, HIGH).wrapping_add(c)
        })),
    })
}

/// Two 16-bit integers in a register.
fn packed(mut m: Mnemonic, ty: &str) -> Option<Alu> {
    let relu = m.op != "add" && ty == "s16x2" && m.take("relu");
    m.done()?;
    let signed = match ty {
        "s16x2" => true,
        "u16x2" => false,
        _ => return None,
    };
    /// Applies a function to both halves.
    #[inline(always)]
    fn halves<const SIGNED: bool>(a: u32, b: u32, f: impl Fn(i32, i32) -> i32) -> u32 {
        let extended = |half: u32| if SIGNED { i32::from(half as i16) } else { i32::from(half as u16) };
        let half = |shift: u32| f(extended(a >> shift), extended(b >> shift)) as u32 & 0xffff;
        half(16) << 16 | half(0)
    }
    Some(switch!(SIGNED = signed, RELU = relu; match m.op {
        "add" => lanes!(A2, |a: u32, b: u32| -> u32 { halves::<SIGNED>(a, b, |a, b| a + b) }),
        "min" => lanes!(A2, |a: u32, b: u32| -> u32 {
            halves::<SIGNED>(a, b, |a, b| if RELU { a.min(b).max(0) } else { a.min(b) })
        }),
        "max" => lanes!(A2, |a: u32, b: u32| -> u32 {
            halves::<SIGNED>(a, b, |a, b| if RELU { a.max(b).max(0) } else { a.max(b) })
        }),
        _ => return None,
    }))
}

/// `bfind`: where the bit behind some leading zeros is, or how far it is from the top.
#[inline(always)]
fn found(zeros: u32, bits: u32, shift: bool) -> u32 {
    if zeros == bits {
        u32::MAX
    } else if shift {
        zeros
    } else {
        bits - 1 - zeros
    }
}

/// Shifts are by the same amount in all lanes more often than not, and such are vector instructions on every host.
macro_rules! shifts {
    ($($name:ident($L:ty, $T:ty), |$a:ident, $n:ident| $body:expr;)+) => { $(
        fn $name(a: &$L, n: &L32, out: &mut $L) {
            let shift = |$a: $T, $n: u32| -> $T { $body };
            if n.iter().all(|&other| other == n[0]) {
                for lane in 0..32 {
                    out[lane] = shift(Lane::read(a[lane]), n[0]).write();
                }
            } else {
                for lane in 0..32 {
                    out[lane] = shift(Lane::read(a[lane]), n[lane]).write();
                }
            }
        }
    )+ };
}

shifts! {
    shift_left_32(L32, u32), |a, n| if n < 32 { a << n } else { 0 };
    shift_right_u32(L32, u32), |a, n| if n < 32 { a >> n } else { 0 };
    shift_right_s32(L32, i32), |a, n| a >> n.min(31);
    shift_left_64(L64, u64), |a, n| if n < 64 { a << n } else { 0 };
    shift_right_u64(L64, u64), |a, n| if n < 64 { a >> n } else { 0 };
    shift_right_s64(L64, i64), |a, n| a >> n.min(63);
}

/// Any function of three bits, from its truth table: the immediate, which all lanes share. Bit 4·a + 2·b + c of the
/// table is the result.
fn logic3(a: &L32, b: &L32, c: &L32, table: &L32, out: &mut L32) {
    let row = |k: u32| 0_u32.wrapping_sub((table[0] >> k) & 1);
    let rows: [u32; 8] = std::array::from_fn(|k| row(k as u32));
    for lane in 0..32 {
        let choose = |bit: u32, zero: u32, one: u32| zero ^ ((zero ^ one) & bit);
        let by_c: [u32; 4] = std::array::from_fn(|k| choose(c[lane], rows[2 * k], rows[2 * k + 1]));
        let by_b: [u32; 2] = std::array::from_fn(|k| choose(b[lane], by_c[2 * k], by_c[2 * k + 1]));
        out[lane] = choose(a[lane], by_b[0], by_b[1]);
    }
}

fn permute(mut m: Mnemonic) -> Option<Alu> {
    let Some(&mode) = m.modifiers.first() else {
        return Some(Alu::A3(permute_any));
    };
    m.take(mode);
    m.done()?;
    /// The bytes that a table of the mode names, for each value of the lower two bits of c.
    #[inline(always)]
    fn pick(a: u32, b: u32, c: u32, table: [[u32; 4]; 4]) -> u32 {
        let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
        u32::from_le_bytes(table[(c & 3) as usize].map(|k| bytes[k as usize]))
    }
    // Each row is the sources of bytes 0 to 3 (PTX ISA, prmt, which writes them the other way round).
    Some(match mode {
        "f4e" => lanes!(A3, |a: u32, b: u32, c: u32| -> u32 {
            pick(a, b, c, [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]])
        }),
        "b4e" => lanes!(A3, |a: u32, b: u32, c: u32| -> u32 {
            pick(a, b, c, [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]])
        }),
        "rc8" => {
            lanes!(A3, |a: u32, b: u32, c: u32| -> u32 { pick(a, b, c, [[0; 4], [1; 4], [2; 4], [3; 4]]) })
        }
        "ecl" => lanes!(A3, |a: u32, b: u32, c: u32| -> u32 {
            pick(a, b, c, [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]])
        }),
        "ecr" => lanes!(A3, |a: u32, b: u32, c: u32| -> u32 {
            pick(a, b, c, [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]])
        }),
        "rc16" => lanes!(A3, |a: u32, b: u32, c: u32| -> u32 {
            pick(a, b, c, [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]])
        }),
        _ => return None,
    })
}

/// `prmt` without a mode: each byte of the result is any of the eight, or its sign.
fn permute_any(a: &L32, b: &L32, c: &L32, out: &mut L32) {
    if c.iter().all(|&other| other == c[0]) {
        // The usual constant: byte after byte of all lanes.
        *out = [0; 32];
        for k in 0..4 {
            let selector = c[0] >> (4 * k);
            let source = if selector & 4 == 0 { a } else { b };
            let up = 24 - 8 * (selector & 3);
            if selector & 8 == 0 {
                for lane in 0..32 {
                    out[lane] |= (source[lane] << up) >> 24 << (8 * k);
                }
            } else {
                for lane in 0..32 {
                    out[lane] |= (((source[lane] << up) as i32 >> 31) as u32 & 0xff) << (8 * k);
                }
            }
        }
        return;
    }
    for lane in 0..32 {
        let bytes = u64::from(b[lane]) << 32 | u64::from(a[lane]);
        let mut word = 0;
        for k in 0..4 {
            let selector = c[lane] >> (4 * k);
            let byte = (bytes >> (8 * (selector & 7))) as u8;
            let byte = if selector & 8 == 0 { byte } else { (byte as i8 >> 7) as u8 };
            word |= u32::from(byte) << (8 * k);
        }
        out[lane] = word;
    }
}

/// `fns`: the position of the n-th set bit, counted up or down from a base.
fn nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    let step = if offset > 0 { 1 } else { -1 };
    let mut left = offset.unsigned_abs().max(1);
    let mut position = base as i32;
    while (0..32).contains(&position) {
        if mask >> position & 1 == 1 {
            left -= 1;
            if left == 0 {
                return position as u32;
            }
        }
        if offset == 0 {
            break;
        }
        position += step;
    }
    u32::MAX
}
