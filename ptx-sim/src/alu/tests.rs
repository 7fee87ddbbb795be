//! Known answers by hand, and independent formulas: wider integers, loops over bits, the definition of rounding
//! against the host's arithmetic, and the `half` crate.

use super::exact::{self, Exact, Format, Number, Rounding};
use super::{Alu, L32, L64, atomic, atomic_flushing, find};

/// One lane's result of an instruction, its operands as bits. All lanes are given the operands first, then only one
/// lane is; immediates alone stay the same in all lanes.
fn run(opcode: &str, operands: &[u64]) -> u64 {
    let alu = find(opcode).unwrap_or_else(|| panic!("{opcode} is not known"));
    let uniform = run_with(alu, operands, |_, operand| operand);
    let table = opcode.starts_with("lop3");
    let alone = run_with(alu, operands, |lane, operand| {
        if lane == 7 || table { operand } else { operand.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ lane as u64 }
    });
    assert_eq!(uniform, alone, "{opcode} {operands:x?}: the result depends on other lanes");
    uniform
}

fn run_with(alu: Alu, operands: &[u64], in_lane: impl Fn(usize, u64) -> u64) -> u64 {
    let l64 = |k: usize| -> L64 { std::array::from_fn(|lane| in_lane(lane, operands[k])) };
    let l32 = |k: usize| -> L32 { l64(k).map(|bits| bits as u32) };
    let (mut out32, mut out64) = ([0xdead_beef_u32; 32], [0xdead_beef_dead_beef_u64; 32]);
    let (count, width) = match alu {
        Alu::A1(f) => {
            f(&l32(0), &mut out32);
            (1, 32)
        }
        Alu::A2(f) => {
            f(&l32(0), &l32(1), &mut out32);
            (2, 32)
        }
        Alu::A3(f) => {
            f(&l32(0), &l32(1), &l32(2), &mut out32);
            (3, 32)
        }
        Alu::A4(f) => {
            f(&l32(0), &l32(1), &l32(2), &l32(3), &mut out32);
            (4, 32)
        }
        Alu::B1(f) => {
            f(&l64(0), &mut out64);
            (1, 64)
        }
        Alu::B2(f) => {
            f(&l64(0), &l64(1), &mut out64);
            (2, 64)
        }
        Alu::B3(f) => {
            f(&l64(0), &l64(1), &l64(2), &mut out64);
            (3, 64)
        }
        Alu::N1(f) => {
            f(&l64(0), &mut out32);
            (1, 32)
        }
        Alu::N2(f) => {
            f(&l64(0), &l64(1), &mut out32);
            (2, 32)
        }
        Alu::W1(f) => {
            f(&l32(0), &mut out64);
            (1, 64)
        }
        Alu::W2(f) => {
            f(&l32(0), &l32(1), &mut out64);
            (2, 64)
        }
        Alu::W3(f) => {
            f(&l32(0), &l32(1), &l64(2), &mut out64);
            (3, 64)
        }
        Alu::S2(f) => {
            f(&l64(0), &l32(1), &mut out64);
            (2, 64)
        }
        Alu::S3(f) => {
            f(&l64(0), &l32(1), &l32(2), &mut out64);
            (3, 64)
        }
        Alu::S4(f) => {
            f(&l64(0), &l64(1), &l32(2), &l32(3), &mut out64);
            (4, 64)
        }
        Alu::S5(f) => {
            f(&l64(0), &l64(1), &l32(2), &mut out64);
            (3, 64)
        }
        Alu::T32(f) => return bit(f(&l32(0), &l32(1))),
        Alu::T64(f) => return bit(f(&l64(0), &l64(1))),
        Alu::T32x1(f) => return bit(f(&l32(0))),
        Alu::T64x1(f) => return bit(f(&l64(0))),
        Alu::Convert(conversion) => return conversion.apply(in_lane(7, operands[0])),
    };
    assert_eq!(operands.len(), count, "operands");
    if width == 64 { out64[7] } else { u64::from(out32[7]) }
}

fn bit(mask: u32) -> u64 {
    u64::from(mask >> 7 & 1)
}

/// Bits that look random and are the same in every run (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Integers worth trying and others.
fn integers(count: usize) -> Vec<u64> {
    let mut values = vec![0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, u64::MAX, u64::MAX - 1];
    for bit in [7, 8, 15, 16, 23, 31, 32, 47, 63] {
        values.extend([1 << bit, (1 << bit) - 1, (1_u64 << bit).wrapping_neg(), (1 << bit) + 1]);
    }
    let mut random = Random(1);
    values.extend((0..count).map(|k| random.next() >> (k % 64)));
    values
}

/// Bits of floats worth trying and others: all kinds of exponents, and close to one another.
fn floats(exponent_bits: u32, mantissa_bits: u32, count: usize) -> Vec<u64> {
    let sign = 1_u64 << (exponent_bits + mantissa_bits);
    let infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
    let one = ((1_u64 << (exponent_bits - 1)) - 1) << mantissa_bits;
    let least = 1 << mantissa_bits;
    let mut values = vec![
        0,
        1,
        2,
        3,
        least - 1,
        least,
        least + 1,
        one - 1,
        one,
        one + 1,
        one + least,
        one - least,
        one + least / 2,
        infinity - 1,
        infinity,
        infinity + 1,
        infinity | least / 2,
        infinity | least / 2 | 1,
    ];
    let mut random = Random(2);
    for k in 0..count {
        let mantissa = random.next() & (least - 1);
        // Few bits set make ties.
        let mantissa =
            if k % 2 == 0 { mantissa & random.next() & random.next() & random.next() } else { mantissa };
        let exponent = match k % 3 {
            0 => random.next() % (1 << exponent_bits),
            1 => (one >> mantissa_bits) + random.next() % 64 % (1 << (exponent_bits - 1)),
            _ => random.next() % 8 + if k % 2 == 0 { 0 } else { (one >> mantissa_bits) - 4 },
        };
        values.push(exponent << mantissa_bits | mantissa);
    }
    values.iter().flat_map(|&bits| [bits, bits | sign]).collect()
}

fn f32s(count: usize) -> Vec<u64> {
    floats(8, 23, count)
}

fn f64s(count: usize) -> Vec<u64> {
    floats(11, 52, count)
}

fn f(x: f32) -> u64 {
    u64::from(x.to_bits())
}

fn d(x: f64) -> u64 {
    x.to_bits()
}

fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

const NAN_32: u64 = 0x7fff_ffff;
const INF: f32 = f32::INFINITY;

/// The lower bits of a value.
fn low(value: i128, bits: u32) -> u64 {
    (value as u128 & (u128::MAX >> (128 - bits))) as u64
}

/// The lower bits of a value as a number.
fn number(value: u64, bits: u32, signed: bool) -> i128 {
    let value = i128::from(value) & ((1 << bits) - 1);
    if signed && value >> (bits - 1) == 1 { value - (1 << bits) } else { value }
}

const INTEGERS: [(&str, u32, bool); 6] = [
    ("u16", 16, false),
    ("s16", 16, true),
    ("u32", 32, false),
    ("s32", 32, true),
    ("u64", 64, false),
    ("s64", 64, true),
];

#[test]
fn integer_arithmetic_is_that_of_128_bits() {
    let values = integers(60);
    for (ty, bits, signed) in INTEGERS {
        let cut = |x: i128| low(x, bits);
        for &a in &values {
            for &b in &values {
                let (x, y) = (number(a, bits, signed), number(b, bits, signed));
                let c = a.rotate_left(17) ^ b;
                let z = number(c, bits, signed);
                let operands = [low(x, bits), low(y, bits), low(z, bits)];
                let two = &operands[..2];
                let check = |op: &str, operands: &[u64], expected: u64| {
                    assert_eq!(run(&format!("{op}.{ty}"), operands), expected, "{op}.{ty} {operands:x?}");
                };
                check("add", two, cut(x + y));
                check("sub", two, cut(x - y));
                // The products of two factors of 64 bits, unsigned, fit 128 bits if not an i128.
                let product = (x as u128).wrapping_mul(y as u128);
                let upper = if bits == 64 { (product >> 64) as i128 } else { (x * y) >> bits };
                check("mul.lo", two, product as u64 & (u64::MAX >> (64 - bits)));
                check("mul.hi", two, cut(upper));
                check("mad.lo", &operands, cut((product as i128 & i128::from(u64::MAX)) + z));
                check("mad.hi", &operands, cut(i128::from(cut(upper)) + z));
                if bits < 64 {
                    check("mul.wide", two, low(x * y, 2 * bits));
                    let wide = number(c, 2 * bits, signed);
                    check(
                        "mad.wide",
                        &[operands[0], operands[1], low(wide, 2 * bits)],
                        low(x * y + wide, 2 * bits),
                    );
                }
                check("div", two, if y == 0 { cut(-1) } else { cut(x / y) });
                check("rem", two, if y == 0 { cut(x) } else { cut(x % y) });
                check("min", two, cut(x.min(y)));
                check("max", two, cut(x.max(y)));
                check("sad", &operands, cut((x - y).abs() + z));
            }
            if signed {
                let x = number(a, bits, true);
                assert_eq!(run(&format!("abs.{ty}"), &[low(x, bits)]), cut(x.abs()));
                assert_eq!(run(&format!("neg.{ty}"), &[low(x, bits)]), cut(-x));
            }
        }
    }
}

#[test]
fn integer_saturation_and_short_factors() {
    let values = integers(40);
    for &a in &values {
        for &b in &values {
            let (a, b) = (a as u32, b as u32);
            let (x, y) = (i128::from(a as i32), i128::from(b as i32));
            let operands = [u64::from(a), u64::from(b)];
            let c = a.rotate_left(9) ^ b;
            let z = i128::from(c as i32);
            let clamped = |x: i128| low(x.clamp(i32::MIN.into(), i32::MAX.into()), 32);
            assert_eq!(run("add.sat.s32", &operands), clamped(x + y));
            assert_eq!(run("sub.sat.s32", &operands), clamped(x - y));
            assert_eq!(run("min.relu.s32", &operands), low(x.min(y).max(0), 32));
            assert_eq!(run("max.relu.s32", &operands), low(x.max(y).max(0), 32));
            let three = [operands[0], operands[1], u64::from(c)];
            assert_eq!(run("mad.hi.sat.s32", &three), clamped(((x * y) >> 32) + z));
            for (ty, signed) in [("u32", false), ("s32", true)] {
                let (x, y) = (number(a.into(), 24, signed), number(b.into(), 24, signed));
                assert_eq!(run(&format!("mul24.lo.{ty}"), &operands), low(x * y, 32));
                assert_eq!(run(&format!("mul24.hi.{ty}"), &operands), low((x * y) >> 16, 32));
                assert_eq!(run(&format!("mad24.lo.{ty}"), &three), low(x * y + z, 32));
                assert_eq!(run(&format!("mad24.hi.{ty}"), &three), low(((x * y) >> 16) + z, 32));
            }
            let (x, y) = (number(a.into(), 24, true), number(b.into(), 24, true));
            assert_eq!(run("mad24.hi.sat.s32", &three), clamped(i128::from(((x * y) >> 16) as i32) + z));
        }
    }
}

#[test]
fn dot_products() {
    let mut random = Random(3);
    for _ in 0..300 {
        let [a, b, c] = [random.next() as u32, random.next() as u32, random.next() as u32];
        let operands = [a.into(), b.into(), c.into()];
        let field =
            |x: u32, k: u32, bits: u32, signed: bool| number(u64::from(x >> (k * bits)), bits, signed);
        for (x, x_signed) in [("u32", false), ("s32", true)] {
            for (y, y_signed) in [("u32", false), ("s32", true)] {
                let four: i128 = (0..4).map(|k| field(a, k, 8, x_signed) * field(b, k, 8, y_signed)).sum();
                assert_eq!(run(&format!("dp4a.{x}.{y}"), &operands), low(four + i128::from(c), 32));
                for (half, first) in [("lo", 0), ("hi", 2)] {
                    let two: i128 =
                        (0..2).map(|k| field(a, k, 16, x_signed) * field(b, first + k, 8, y_signed)).sum();
                    assert_eq!(run(&format!("dp2a.{half}.{x}.{y}"), &operands), low(two + i128::from(c), 32));
                }
            }
        }
    }
}

#[test]
fn logic_and_bits_by_bit() {
    let values = integers(60);
    let bit_of = |x: u64, k: u32| x >> k & 1;
    let gather = |bits: u32, f: &dyn Fn(u32) -> u64| (0..bits).fold(0, |sum, k| sum | f(k) << k);
    for bits in [16, 32, 64] {
        let mask = u64::MAX >> (64 - bits);
        let name = |op: &str| format!("{op}.b{bits}");
        for &a in &values {
            let a = a & mask;
            for &b in &values {
                let b = b & mask;
                assert_eq!(run(&name("and"), &[a, b]), gather(bits, &|k| bit_of(a, k) * bit_of(b, k)));
                assert_eq!(run(&name("or"), &[a, b]), gather(bits, &|k| bit_of(a, k).max(bit_of(b, k))));
                assert_eq!(run(&name("xor"), &[a, b]), gather(bits, &|k| (bit_of(a, k) + bit_of(b, k)) % 2));
            }
            assert_eq!(run(&name("not"), &[a]), gather(bits, &|k| 1 - bit_of(a, k)));
            assert_eq!(run(&name("cnot"), &[a]), if a == 0 { 1 } else { 0 });
            for n in [0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 0x8000_0000, 0xffff_ffff_u64] {
                let at = |k: i64| if (0..i64::from(bits)).contains(&k) { bit_of(a, k as u32) } else { 0 };
                assert_eq!(run(&name("shl"), &[a, n]), gather(bits, &|k| at(i64::from(k) - n as i64)), "{n}");
                let right = gather(bits, &|k| at(i64::from(k) + n as i64));
                assert_eq!(run(&format!("shr.u{bits}"), &[a, n]), right);
                assert_eq!(run(&name("shr"), &[a, n]), right);
                let signed = gather(bits, &|k| bit_of(a, (u64::from(k) + n).min(u64::from(bits - 1)) as u32));
                assert_eq!(run(&format!("shr.s{bits}"), &[a, n]), signed);
            }
            if bits == 16 {
                continue;
            }
            assert_eq!(run(&name("popc"), &[a]), (0..bits).map(|k| bit_of(a, k)).sum::<u64>());
            assert_eq!(
                run(&name("clz"), &[a]),
                (0..bits).rev().take_while(|&k| bit_of(a, k) == 0).count() as u64
            );
            assert_eq!(run(&name("brev"), &[a]), gather(bits, &|k| bit_of(a, bits - 1 - k)));
            for signed in [false, true] {
                let sign = if signed { bit_of(a, bits - 1) } else { 0 };
                let ty = if signed { "s" } else { "u" };
                let found = (0..bits).rev().find(|&k| bit_of(a, k) != sign);
                let expected = found.map_or(0xffff_ffff, u64::from);
                assert_eq!(run(&format!("bfind.{ty}{bits}"), &[a]), expected);
                let expected = found.map_or(0xffff_ffff, |k| u64::from(bits - 1 - k));
                assert_eq!(run(&format!("bfind.shiftamt.{ty}{bits}"), &[a]), expected);
            }
        }
    }
}

#[test]
fn bit_fields_by_bit() {
    let mut random = Random(4);
    let amounts = [0, 1, 5, 8, 16, 31, 32, 33, 63, 64, 65, 127, 128, 200, 255, 256, 0x107, 0xffff_ff20_u64];
    for bits in [32_u32, 64] {
        for &position in &amounts {
            for &length in &amounts {
                let (a, b) =
                    (random.next() & (u64::MAX >> (64 - bits)), random.next() & (u64::MAX >> (64 - bits)));
                let (pos, len) = ((position & 0xff) as u32, (length & 0xff) as u32);
                let mut inserted = b;
                for i in 0..len {
                    if pos + i < bits {
                        let to = 1_u64 << (pos + i);
                        inserted = if a >> i & 1 == 1 { inserted | to } else { inserted & !to };
                    }
                }
                assert_eq!(
                    run(&format!("bfi.b{bits}"), &[a, b, position, length]),
                    inserted,
                    "{position} {length}"
                );
                for signed in [false, true] {
                    let sign = if signed && len > 0 { a >> (pos + len - 1).min(bits - 1) & 1 } else { 0 };
                    let extracted = (0..bits).fold(0, |sum, i| {
                        let bit = if i < len && pos + i < bits { a >> (pos + i) & 1 } else { sign };
                        sum | bit << i
                    });
                    let opcode = format!("bfe.{}{bits}", if signed { 's' } else { 'u' });
                    assert_eq!(
                        run(&opcode, &[a, position, length]),
                        extracted,
                        "{opcode} {position} {length}"
                    );
                }
            }
        }
    }
}

#[test]
fn bytes_and_tables() {
    let mut random = Random(5);
    for table in 0..256_u32 {
        let [a, b, c] = [random.next() as u32, random.next() as u32, random.next() as u32];
        let expected = (0..32).fold(0, |sum, k| {
            let row = (a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1);
            sum | u64::from(table >> row & 1) << k
        });
        assert_eq!(run("lop3.b32", &[a.into(), b.into(), c.into(), u64::from(table)]), expected);
    }
    // 0xE8 is the majority, 0x96 the parity (PTX ISA, lop3).
    assert_eq!(run("lop3.b32", &[0b1100, 0b1010, 0b1001, 0xe8]), 0b1000);
    assert_eq!(run("lop3.b32", &[0b1100, 0b1010, 0b1001, 0x96]), 0b1111);
    for _ in 0..2000 {
        let [a, b, c] = [random.next() as u32, random.next() as u32, random.next() as u32];
        let bytes: Vec<u8> = a.to_le_bytes().into_iter().chain(b.to_le_bytes()).collect();
        let operands = [a.into(), b.into(), c.into()];
        let word = |f: &dyn Fn(u32) -> u8| (0..4).fold(0, |sum, k| sum | u64::from(f(k)) << (8 * k));
        let general = word(&|k| {
            let selector = c >> (4 * k) & 0xf;
            let byte = bytes[(selector & 7) as usize];
            if selector < 8 {
                byte
            } else if byte >= 0x80 {
                0xff
            } else {
                0
            }
        });
        assert_eq!(run("prmt.b32", &operands), general);
        let c = c & 3;
        let at = |k: u32| bytes[(k % 8) as usize];
        assert_eq!(run("prmt.b32.f4e", &operands), word(&|k| at(c + k)));
        assert_eq!(run("prmt.b32.b4e", &operands), word(&|k| at(c + 8 - k)));
        assert_eq!(run("prmt.b32.rc8", &operands), word(&|_| at(c)));
        assert_eq!(run("prmt.b32.ecl", &operands), word(&|k| at(k.max(c))));
        assert_eq!(run("prmt.b32.ecr", &operands), word(&|k| at(k.min(c))));
        assert_eq!(run("prmt.b32.rc16", &operands), word(&|k| at(2 * (c & 1) + (k & 1))));
    }
}

#[test]
fn rare_integers() {
    let rows: &[(&str, &[u64], u64)] = &[
        ("shf.l.wrap.b32", &[0x8000_0001, 0x0000_0002, 1], 0x0000_0005),
        ("shf.l.wrap.b32", &[0x8000_0001, 0x0000_0002, 33], 0x0000_0005),
        ("shf.l.wrap.b32", &[0x8000_0001, 0x0000_0002, 32], 0x0000_0002),
        ("shf.l.clamp.b32", &[0x8000_0001, 0x0000_0002, 32], 0x8000_0001),
        ("shf.l.clamp.b32", &[0x8000_0001, 0x0000_0002, 99], 0x8000_0001),
        ("shf.r.wrap.b32", &[0x8000_0001, 0x0000_0003, 1], 0xc000_0000),
        ("shf.r.wrap.b32", &[0x8000_0001, 0x0000_0003, 0], 0x8000_0001),
        ("shf.r.wrap.b32", &[0x8000_0001, 0x0000_0003, 64], 0x8000_0001),
        ("shf.r.clamp.b32", &[0x8000_0001, 0x0000_0003, 32], 0x0000_0003),
        ("shf.r.clamp.b32", &[0x8000_0001, 0x0000_0003, 0xffff_ffff], 0x0000_0003),
        ("szext.wrap.s32", &[0x0000_00ff, 8], 0xffff_ffff),
        ("szext.wrap.u32", &[0xffff_ffff, 8], 0xff),
        ("szext.wrap.u32", &[0xffff_ffff, 0], 0),
        ("szext.wrap.u32", &[0xffff_ffff, 32], 0),
        ("szext.clamp.s32", &[0x8000_0001, 32], 0x8000_0001),
        ("szext.clamp.u32", &[0x8000_0001, 77], 0x8000_0001),
        ("szext.clamp.s32", &[0x0000_0001, 1], 0xffff_ffff),
        ("szext.clamp.s32", &[0xffff_ffff, 0], 0),
        ("bmsk.wrap.b32", &[1, 2], 6),
        ("bmsk.wrap.b32", &[33, 34], 6),
        ("bmsk.clamp.b32", &[32, 2], 0),
        ("bmsk.clamp.b32", &[4, 32], 0xffff_fff0),
        ("bmsk.clamp.b32", &[0, 0], 0),
        ("bmsk.clamp.b32", &[30, 5], 0xc000_0000),
        // The examples of PTX ISA, fns.
        ("fns.b32", &[0xaaaa_aaaa, 3, 1], 3),
        ("fns.b32", &[0xaaaa_aaaa, 3, 0xffff_ffff], 3),
        ("fns.b32", &[0xaaaa_aaaa, 2, 1], 3),
        ("fns.b32", &[0xaaaa_aaaa, 2, 0xffff_ffff], 1),
        ("fns.b32", &[0xaaaa_aaaa, 2, 0], 0xffff_ffff),
        ("fns.b32", &[0xaaaa_aaaa, 3, 0], 3),
        ("fns.b32", &[0xaaaa_aaaa, 0, 17], 0xffff_ffff),
        ("fns.b32", &[0xaaaa_aaaa, 0xffff_ffff, 0x8000_0000], 0xffff_ffff),
        ("add.u16x2", &[0xffff_0001, 0x0001_ffff], 0),
        ("add.s16x2", &[0x7fff_0001, 0x0001_0002], 0x8000_0003),
        ("min.u16x2", &[0xffff_0001, 0x0001_ffff], 0x0001_0001),
        ("min.s16x2", &[0xffff_0001, 0x0001_ffff], 0xffff_ffff),
        ("max.u16x2", &[0xffff_0001, 0x0001_ffff], 0xffff_ffff),
        ("max.s16x2", &[0xffff_0001, 0x0001_ffff], 0x0001_0001),
        ("min.relu.s16x2", &[0xffff_0005, 0x0001_0004], 0x0000_0004),
        ("max.s16x2.relu", &[0xffff_0005, 0xfff0_0004], 0x0000_0005),
        ("slct.b32.s32", &[1, 2, 0], 1),
        ("slct.u32.s32", &[1, 2, 0xffff_ffff], 2),
        ("slct.f64.s32", &[1 << 40, 2 << 40, 0x8000_0000], 2 << 40),
        ("slct.b16.f32", &[1, 2, 0x8000_0000], 1),
        ("slct.u64.f32", &[1, 2, NAN_32], 2),
        ("slct.b32.f32", &[1, 2, 0x8000_0001], 2),
        ("slct.ftz.b32.f32", &[1, 2, 0x8000_0001], 1),
    ];
    for &(opcode, operands, expected) in rows {
        assert_eq!(run(opcode, operands), expected, "{opcode} {operands:x?}");
    }
}
