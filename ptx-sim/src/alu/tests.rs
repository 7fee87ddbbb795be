//! Known answers by hand, and independent formulas: wider integers, loops over bits, the definition of rounding
//! against the host's arithmetic, and the `half` crate.

use super::exact::{self, Exact, Format, Number, Rounding};
use super::{Alu, Conversion, L32, L64, Mnemonic, atomic, atomic_flushing, find};

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
    // Those that are tried with anything get as many as there can be.
    assert!(operands.len() == count || operands.len() == 4, "{} operands, not {count}", operands.len());
    if width == 64 { out64[7] } else { u64::from(out32[7]) }
}

fn bit(mask: u32) -> u64 {
    u64::from(mask >> 7 & 1)
}

/// An operation's name and the same on the host.
type Function = (&'static str, fn(f64) -> f64);

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
        infinity + least / 2,
        infinity + least / 2 + 1,
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

const ROUNDINGS: [(&str, Rounding); 4] =
    [("rn", Rounding::Nearest), ("rz", Rounding::Zero), ("rm", Rounding::Down), ("rp", Rounding::Up)];

fn finite(format: Format, bits: u64) -> Option<Exact> {
    match format.decode(bits) {
        Number::Finite(value) => Some(value),
        _ => None,
    }
}

/// The definition of rounding to nearest agrees with the host, on which the other modes then rest.
#[test]
fn exact_arithmetic_is_the_hosts() {
    let nearest = Rounding::Nearest;
    macro_rules! compare {
        ($T:ty, $format:expr, $values:expr) => {
            let values = $values;
            for (k, &a) in values.iter().enumerate() {
                let x = <$T>::from_bits(a as _);
                let Some(exact_x) = finite($format, a) else { continue };
                assert_eq!($format.encode(exact_x, nearest), a);
                if x >= 0.0 {
                    assert_eq!(
                        $format.encode(exact_x.square_root(), nearest),
                        u64::from(x.sqrt().to_bits()),
                        "√{x:e}"
                    );
                }
                for (l, &b) in values.iter().enumerate() {
                    let y = <$T>::from_bits(b as _);
                    let Some(exact_y) = finite($format, b) else { continue };
                    let check = |exact: Exact, host: $T, op: &str| {
                        let bits = u64::from(host.to_bits());
                        assert_eq!($format.encode(exact, nearest), bits, "{op} of {x:e} and {y:e}: {host:e}");
                    };
                    check(exact_x.plus(exact_y, nearest), x + y, "sum");
                    check(exact_x.plus(exact_y.negated(), nearest), x - y, "difference");
                    check(exact_x.times(exact_y), x * y, "product");
                    if y != 0.0 {
                        check(exact_x.over(exact_y), x / y, "quotient");
                    }
                    // Addends near the product, where digits cancel, and others.
                    let near = (-(x * y)).to_bits();
                    for c in
                        [near, near ^ 1, near.wrapping_add(2), values[(k * 31 + l * 17) % values.len()] as _]
                    {
                        let z = <$T>::from_bits(c);
                        let Some(exact_z) = finite($format, c.into()) else { continue };
                        check(exact_x.times(exact_y).plus(exact_z, nearest), x.mul_add(y, z), "fma");
                    }
                }
            }
        };
    }
    compare!(f32, exact::F32, f32s(160));
    compare!(f64, exact::F64, f64s(120));
}

#[test]
fn fused_multiply_add_rounds_once() {
    let values = f32s(200);
    for (k, &a) in values.iter().enumerate() {
        for (l, &b) in values.iter().enumerate() {
            let (x, y) = (single(a), single(b));
            let near = f(-(x * y));
            for c in [near, near ^ 1, near.wrapping_add(1), values[(k * 31 + l * 17) % values.len()]] {
                let expected = x.mul_add(y, single(c));
                let expected = if expected.is_nan() { NAN_32 } else { f(expected) };
                let operands = [a, b, c & 0xffff_ffff];
                assert_eq!(run("fma.rn.f32", &operands), expected, "{x:e} · {y:e} + {:e}", single(c));
            }
        }
    }
    // Just above a tie in double precision already: rounding twice would give 1.
    let (a, b, c) = (1.0_f32, 1.0, 2_f32.powi(-24) + 2_f32.powi(-47));
    assert_eq!(run("fma.rn.f32", &[f(a), f(b), f(c)]), f(1.0) + 1);
    let tiny = 2_f32.powi(-80);
    assert_eq!(run("fma.rn.f32", &[f(tiny), f(tiny), f(1.0)]), f(1.0));
    assert_eq!(run("fma.rp.f32", &[f(tiny), f(tiny), f(1.0)]), f(1.0) + 1);
    assert_eq!(run("fma.rm.f32", &[f(-tiny), f(tiny), f(1.0)]), f(1.0) - 1);
    assert_eq!(run("mad.rn.f32", &[f(2.0), f(3.0), f(4.0)]), f(10.0));
    assert_eq!(run("fma.rn.f64", &[d(2.0), d(3.0), d(4.0)]), d(10.0));
    assert_eq!(run("fma.rz.f64", &[d(2_f64.powi(-80)), d(-1.0), d(1.0)]), d(1.0) - 1);
}

/// Whatever the mode, the result is one of two neighbours of the value, and the modes differ as they should.
#[test]
fn directed_roundings_enclose_the_value() {
    macro_rules! enclose {
        ($T:ty, $ty:literal, $values:expr) => {
            let values = $values;
            let x = |bits: u64| <$T>::from_bits(bits as _);
            for (k, &a) in values.iter().enumerate() {
                for &b in values.iter().skip(k % 7).step_by(7) {
                    for (op, count) in
                        [("add", 2), ("sub", 2), ("mul", 2), ("div", 2), ("fma", 3), ("rcp", 1), ("sqrt", 1)]
                    {
                        let operands = [a, b, values[(k * 13 + b as usize % 101) % values.len()]];
                        let results = ROUNDINGS
                            .map(|(mode, _)| run(&format!("{op}.{mode}.{}", $ty), &operands[..count]));
                        let [nearest, zero, down, up] = results.map(x);
                        let context = format!("{op}.{} {:e} {:e}: {:e} … {:e}", $ty, x(a), x(b), down, up);
                        if nearest.is_nan() || operands[..count].iter().any(|&bits| x(bits).is_infinite()) {
                            let bits = results[0];
                            assert!(
                                results.iter().all(|&other| other == bits || x(other) == nearest),
                                "{context}"
                            );
                            continue;
                        }
                        assert!(down <= nearest && nearest <= up, "{context}");
                        assert!(nearest == down || nearest == up, "{context}");
                        assert!(up == down || up == down.next_up(), "{context}");
                        let toward_zero = if down.is_sign_negative() { up } else { down };
                        assert_eq!(zero.abs(), toward_zero.abs(), "{context}");
                    }
                }
            }
        };
    }
    enclose!(f32, "f32", f32s(60));
    enclose!(f64, "f64", f64s(60));
    // Products and quotients of single precision, whose exact place double precision knows.
    for &a in &f32s(60) {
        for &b in &f32s(60) {
            let product = f64::from(single(a)) * f64::from(single(b));
            if !product.is_finite() {
                continue;
            }
            let down = f64::from(single(run("mul.rm.f32", &[a, b])));
            let up = f64::from(single(run("mul.rp.f32", &[a, b])));
            assert!(down <= product && product <= up);
            assert_eq!(f64::from(product as f32) == product, down == up);
            let y = f64::from(single(b));
            let quotient = single(run("div.rz.f32", &[a, b]));
            if y != 0.0 && quotient.is_finite() {
                assert!((f64::from(quotient) * y).abs() <= f64::from(single(a)).abs());
            }
        }
    }
}

#[test]
fn known_floats() {
    let max = f32::MAX;
    let least = f(f32::MIN_POSITIVE);
    let nan = 0x7f80_0001;
    let negative_zero = f(-0.0);
    let rows: &[(&str, &[u64], u64)] = &[
        ("add.f32", &[f(1.5), f(2.25)], f(3.75)),
        ("add.rn.f32", &[f(1.0), f(2_f32.powi(-24))], f(1.0)),
        ("add.rp.f32", &[f(1.0), f(2_f32.powi(-24))], f(1.0) + 1),
        ("add.rm.f32", &[f(-1.0), f(-(2_f32.powi(-60)))], f(-1.0) + 1),
        ("add.rz.f32", &[f(1.0), f(-(2_f32.powi(-60)))], f(1.0) - 1),
        ("add.rm.f32", &[f(1.0), f(-1.0)], negative_zero),
        ("add.f32", &[f(1.0), f(-1.0)], 0),
        ("add.f32", &[negative_zero, negative_zero], negative_zero),
        ("add.f32", &[f(INF), f(-INF)], NAN_32),
        ("add.f32", &[nan, f(1.0)], NAN_32),
        ("add.f32", &[f(1.0), 0xffc0_0000], NAN_32),
        ("add.f32", &[1, 1], 2),
        ("add.ftz.f32", &[1, 1], 0),
        ("add.ftz.f32", &[0x8000_0001, 0x8000_0001], negative_zero),
        ("sub.ftz.f32", &[least + 1, least], 0),
        ("sub.f32", &[least + 1, least], 1),
        ("add.sat.f32", &[f(1.0), f(2.0)], f(1.0)),
        ("add.sat.f32", &[f(-1.0), f(-2.0)], 0),
        ("add.sat.f32", &[negative_zero, negative_zero], 0),
        ("add.ftz.sat.f32", &[f(INF), f(-INF)], 0),
        ("mul.sat.f32", &[f(0.5), f(0.5)], f(0.25)),
        ("fma.rn.sat.f32", &[f(0.5), f(0.5), f(0.5)], f(0.75)),
        ("fma.rn.ftz.f32", &[least, f(0.5), 1], 0),
        ("fma.rn.f32", &[f(INF), 0, f(1.0)], NAN_32),
        ("mul.f32", &[f(max), f(2.0)], f(INF)),
        ("mul.rz.f32", &[f(max), f(2.0)], f(max)),
        ("mul.rm.f32", &[f(-max), f(2.0)], f(-INF)),
        ("mul.rp.f32", &[f(-max), f(2.0)], f(-max)),
        ("mul.rp.f32", &[1, 1], 1),
        ("mul.rn.f32", &[1, 1], 0),
        ("mul.f32", &[0, f(-INF)], NAN_32),
        ("div.rn.f32", &[f(1.0), f(3.0)], 0x3eaa_aaab),
        ("div.rm.f32", &[f(1.0), f(3.0)], 0x3eaa_aaaa),
        ("div.rz.f32", &[f(1.0), f(-3.0)], 0xbeaa_aaaa),
        ("div.rp.f32", &[f(1.0), 0], f(INF)),
        ("div.rn.f32", &[f(1.0), negative_zero], f(-INF)),
        ("div.rn.f32", &[0, 0], NAN_32),
        ("div.approx.f32", &[f(6.0), f(3.0)], f(2.0)),
        ("div.full.ftz.f32", &[f(6.0), 1], f(INF)),
        ("rcp.rn.f32", &[f(3.0)], 0x3eaa_aaab),
        ("rcp.rz.ftz.f32", &[f(3.0)], 0x3eaa_aaaa),
        ("rcp.approx.ftz.f32", &[0x8000_0001], f(-INF)),
        ("rcp.rp.f32", &[negative_zero], f(-INF)),
        ("rcp.approx.f32", &[f(4.0)], f(0.25)),
        ("sqrt.rn.f32", &[f(2.0)], 0x3fb5_04f3),
        ("sqrt.rp.f32", &[f(2.0)], 0x3fb5_04f4),
        ("sqrt.rn.f32", &[f(-1.0)], NAN_32),
        ("sqrt.rz.f32", &[negative_zero], negative_zero),
        ("sqrt.rm.f32", &[f(INF)], f(INF)),
        ("sqrt.approx.ftz.f32", &[f(16.0)], f(4.0)),
        ("rsqrt.approx.f32", &[f(16.0)], f(0.25)),
        ("rsqrt.approx.ftz.f32", &[0], f(INF)),
        ("rsqrt.approx.f32", &[f(-1.0)], NAN_32),
        ("sin.approx.f32", &[0], 0),
        ("sin.approx.ftz.f32", &[f(INF)], NAN_32),
        ("cos.approx.f32", &[0], f(1.0)),
        ("lg2.approx.f32", &[f(8.0)], f(3.0)),
        ("lg2.approx.f32", &[0], f(-INF)),
        ("lg2.approx.f32", &[f(-1.0)], NAN_32),
        ("ex2.approx.f32", &[f(-3.0)], f(0.125)),
        ("ex2.approx.ftz.f32", &[f(-127.0)], 0),
        ("ex2.approx.f32", &[f(-127.0)], least >> 1),
        ("ex2.approx.f32", &[f(200.0)], f(INF)),
        ("tanh.approx.f32", &[f(-INF)], f(-1.0)),
        ("abs.f32", &[f(-2.0)], f(2.0)),
        ("abs.f32", &[0xffc0_0000], NAN_32),
        ("abs.ftz.f32", &[0x8000_0001], 0),
        ("neg.f32", &[0], negative_zero),
        ("neg.ftz.f32", &[1], negative_zero),
        ("neg.f32", &[nan], NAN_32),
        ("copysign.f32", &[negative_zero, f(3.0)], f(-3.0)),
        ("copysign.f32", &[f(1.0), 0xffff_ffff], NAN_32),
        ("min.f32", &[0, negative_zero], negative_zero),
        ("min.f32", &[negative_zero, 0], negative_zero),
        ("max.f32", &[negative_zero, 0], 0),
        ("max.f32", &[0, negative_zero], 0),
        ("max.f32", &[f(-1.0), f(-2.0)], f(-1.0)),
        ("min.f32", &[f(-1.0), f(-2.0)], f(-2.0)),
        ("min.f32", &[nan, f(1.0)], f(1.0)),
        ("min.f32", &[f(1.0), 0xffff_ffff], f(1.0)),
        ("max.f32", &[nan, 0xffff_ffff], NAN_32),
        ("max.NaN.f32", &[nan, f(1.0)], NAN_32),
        ("min.ftz.NaN.f32", &[f(1.0), nan], NAN_32),
        ("max.ftz.f32", &[1, 0x8000_0001], 0),
        ("min.xorsign.abs.f32", &[f(-3.0), f(2.0)], f(-2.0)),
        ("max.xorsign.abs.f32", &[f(-3.0), f(-2.0)], f(3.0)),
        ("add.f64", &[d(1.0), d(2_f64.powi(-53))], d(1.0)),
        ("add.rp.f64", &[d(1.0), d(2_f64.powi(-53))], d(1.0) + 1),
        ("div.rn.f64", &[d(1.0), d(3.0)], 0x3fd5_5555_5555_5555),
        ("div.rp.f64", &[d(1.0), d(3.0)], 0x3fd5_5555_5555_5556),
        ("rcp.rm.f64", &[d(-3.0)], 0xbfd5_5555_5555_5556),
        ("sqrt.rn.f64", &[d(2.0)], 0x3ff6_a09e_667f_3bcd),
        ("sqrt.rz.f64", &[d(2.0)], 0x3ff6_a09e_667f_3bcc),
        ("mul.rz.f64", &[d(f64::MAX), d(-2.0)], d(-f64::MAX)),
        ("sub.rm.f64", &[d(1.0), d(1.0)], d(-0.0)),
        ("rsqrt.approx.f64", &[d(4.0)], d(0.5)),
        ("rsqrt.approx.ftz.f64", &[d(4.0) | 0xffff_ffff], d(0.5)),
        ("rcp.approx.ftz.f64", &[d(4.0) | 0xffff_ffff], d(0.25)),
        ("rcp.approx.ftz.f64", &[1], d(f64::INFINITY)),
        ("rcp.approx.ftz.f64", &[0xfff0_0001_0000_0000], 0x7fff_ffff_0000_0000),
        // Of double precision, NaN made of numbers and NaN handed on.
        ("sub.f64", &[d(f64::INFINITY), d(f64::INFINITY)], 0xfff8_0000_0000_0000),
        ("sqrt.rn.f64", &[d(-1.0)], 0xfff8_0000_0000_0000),
        ("mul.f64", &[0x7ff0_0000_0000_0123, d(1.0)], 0x7ff8_0000_0000_0123),
        ("add.rz.f64", &[d(1.0), 0xfff8_0000_0000_0123], 0xfff8_0000_0000_0123),
        ("abs.f64", &[0xfff0_0000_0000_0123], 0xfff8_0000_0000_0123),
        ("neg.f64", &[0x7ff0_0000_0000_0123], 0x7ff8_0000_0000_0123),
        ("abs.f64", &[d(-2.0)], d(2.0)),
        ("neg.f64", &[d(0.0)], d(-0.0)),
        ("copysign.f64", &[d(-1.0), d(3.0)], d(-3.0)),
        ("min.f64", &[d(0.0), d(-0.0)], d(-0.0)),
        ("max.f64", &[d(-0.0), d(0.0)], d(0.0)),
        ("max.f64", &[0x7ff8_0000_0000_0001, d(-1.0)], d(-1.0)),
        ("min.f64", &[d(-1.0), 0x7ff8_0000_0000_0001], d(-1.0)),
        ("min.f64", &[0x7ff0_0000_0000_0001, 0x7ff8_0000_0000_0002], 0x7ff8_0000_0000_0001),
        ("add.rn.f32x2", &[f(1.0) << 32 | f(2.0), f(3.0) << 32 | f(4.0)], f(4.0) << 32 | f(6.0)),
        ("sub.f32x2", &[f(1.0) << 32 | nan, f(3.0) << 32 | f(4.0)], f(-2.0) << 32 | NAN_32),
        ("mul.ftz.f32x2", &[f(3.0) << 32 | 1, f(3.0) << 32 | f(4.0)], f(9.0) << 32),
        ("fma.rz.f32x2", &[f(1.0) << 32 | f(2.0), f(3.0) << 32 | f(4.0), f(1.0)], f(3.0) << 32 | f(9.0)),
    ];
    for &(opcode, operands, expected) in rows {
        assert_eq!(run(opcode, operands), expected, "{opcode} {operands:x?}");
    }
}

#[test]
fn approximations_are_close() {
    let ops: [Function; 7] = [
        ("sin.approx.f32", f64::sin),
        ("cos.approx.ftz.f32", f64::cos),
        ("ex2.approx.f32", f64::exp2),
        ("lg2.approx.f32", f64::log2),
        ("tanh.approx.f32", f64::tanh),
        ("sqrt.approx.f32", f64::sqrt),
        ("rsqrt.approx.f32", |x| x.powf(-0.5)),
    ];
    for (opcode, function) in ops {
        for k in 1..500 {
            let x = k as f32 * 0.037;
            let result = f64::from(single(run(opcode, &[f(x)])));
            let expected = function(f64::from(x));
            assert!(
                (result - expected).abs() <= 2_f64.powi(-22) * expected.abs().max(1e-3),
                "{opcode} {x}: {result}"
            );
        }
    }
}

/// A comparison by name, from what IEEE 754 has four outcomes for.
fn holds(name: &str, order: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let Some(order) = order else { return name == "nan" || name.len() == 3 && name.ends_with('u') };
    match name.trim_end_matches('u') {
        "eq" => order == Equal,
        "ne" => order != Equal,
        "lt" | "lo" => order == Less,
        "le" | "ls" => order != Greater,
        "gt" | "hi" => order == Greater,
        "ge" | "hs" => order != Less,
        "num" | "n" => true,
        _ => false,
    }
}

const FLOAT_COMPARISONS: [&str; 14] =
    ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];

#[test]
fn comparisons() {
    let values = integers(30);
    for (ty, bits, signed) in INTEGERS {
        let names = ["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"];
        for name in if signed { &names[..6] } else { &names } {
            for &a in &values {
                for &b in &values {
                    let (x, y) = (number(a, bits, signed), number(b, bits, signed));
                    let operands = [low(x, bits), low(y, bits)];
                    let expected = holds(name, Some(x.cmp(&y)));
                    assert_eq!(
                        run(&format!("setp.{name}.{ty}"), &operands),
                        u64::from(expected),
                        "{name}.{ty} {x} {y}"
                    );
                    let set = if expected { (0xffff_ffff, f(1.0)) } else { (0, 0) };
                    assert_eq!(run(&format!("set.{name}.u32.{ty}"), &operands), set.0);
                    assert_eq!(run(&format!("set.{name}.f32.{ty}"), &operands), set.1);
                }
            }
        }
    }
    assert_eq!(run("setp.eq.b64", &[1 << 32, 0]), 0);
    assert_eq!(run("setp.ne.b16", &[1, 0]), 1);
    for name in FLOAT_COMPARISONS {
        let check = |ty: &str, operands: [u64; 2], order: Option<std::cmp::Ordering>| {
            let opcode = format!("setp.{name}.{ty}");
            assert_eq!(run(&opcode, &operands), u64::from(holds(name, order)), "{opcode} {operands:x?}");
            let set = if holds(name, order) { 0xffff_ffff } else { 0 };
            let opcode = format!("set.{name}.s32.{ty}");
            assert_eq!(run(&opcode, &operands), set, "{opcode} {operands:x?}");
        };
        for &a in &f32s(12) {
            for &b in &f32s(12) {
                check("f32", [a, b], single(a).partial_cmp(&single(b)));
            }
        }
        for &a in &f64s(12) {
            for &b in &f64s(12) {
                check("f64", [a, b], f64::from_bits(a).partial_cmp(&f64::from_bits(b)));
            }
        }
        for &a in &floats(5, 10, 12) {
            for &b in &floats(5, 10, 12) {
                let (x, y) = (half::f16::from_bits(a as u16), half::f16::from_bits(b as u16));
                let order = x.partial_cmp(&y);
                check("f16", [a, b], order);
                // Both halves, exchanged.
                let mirrored = holds(name, y.partial_cmp(&x));
                let pair = [a << 16 | b, b << 16 | a];
                let halves = u64::from(holds(name, order)) << 16 | u64::from(mirrored);
                let expected = |one: u64| halves * one;
                assert_eq!(run(&format!("set.{name}.f16x2.f16x2"), &pair), expected(0x3c00));
                assert_eq!(run(&format!("set.{name}.u32.f16x2"), &pair), expected(0xffff));
                assert_eq!(run(&format!("set.{name}.u16.f16"), &[a, b]), expected(0xffff) >> 16);
                assert_eq!(run(&format!("set.{name}.f16.f16"), &[a, b]), expected(0x3c00) >> 16);
            }
        }
        for &a in &floats(8, 7, 12) {
            for &b in &floats(8, 7, 12) {
                let (x, y) = (half::bf16::from_bits(a as u16), half::bf16::from_bits(b as u16));
                check("bf16", [a, b], x.partial_cmp(&y));
                let expected = if holds(name, x.partial_cmp(&y)) { 0x3f80 } else { 0 };
                assert_eq!(run(&format!("set.{name}.bf16.bf16"), &[a, b]), expected);
                assert_eq!(run(&format!("set.{name}.bf16x2.bf16x2"), &[a << 16, b << 16]) >> 16, expected);
            }
        }
    }
    assert_eq!(run("setp.gt.f32", &[1, 0]), 1);
    assert_eq!(run("setp.gt.ftz.f32", &[1, 0]), 0);
    assert_eq!(run("setp.eq.ftz.f16", &[1, 0x8001]), 1);
    let rows: [(&str, u64, u64); 12] = [
        ("testp.finite.f32", f(1.0), 1),
        ("testp.finite.f32", f(INF), 0),
        ("testp.infinite.f32", f(-INF), 1),
        ("testp.number.f32", NAN_32, 0),
        ("testp.notanumber.f32", NAN_32, 1),
        ("testp.normal.f32", f(-0.0), 1),
        ("testp.normal.f32", 1, 0),
        ("testp.subnormal.f32", 1, 1),
        ("testp.subnormal.f64", 0, 0),
        ("testp.subnormal.f64", 1, 1),
        ("testp.notanumber.f64", d(f64::NAN), 1),
        ("testp.normal.f64", d(1e-310), 0),
    ];
    for (opcode, operand, expected) in rows {
        assert_eq!(run(opcode, &[operand]), expected, "{opcode} {operand:x}");
    }
}

/// A format of 16 bits, its name and what any NaN becomes.
const NARROW: [(&str, Format); 2] = [("f16", exact::F16), ("bf16", exact::BF16)];

/// Rounded by definition, NaN being canonical; `None` where an operand is not finite.
fn narrow_result(format: Format, value: Option<Exact>) -> Option<u64> {
    value.map(|value| format.encode(value, Rounding::Nearest))
}

#[test]
fn narrow_conversions_of_all_numbers() {
    for bits in 0..=u16::MAX {
        let operand = [u64::from(bits)];
        let x = half::f16::from_bits(bits);
        let expected = if x.is_nan() { NAN_32 } else { f(x.to_f32()) };
        assert_eq!(run("cvt.f32.f16", &operand), expected, "{bits:x}");
        let expected = if x.is_nan() { 0x7fff } else { u64::from(bits) };
        assert_eq!(run("cvt.rn.f16.f32", &[f(x.to_f32())]), expected);
        let nan = u64::from(bits & 0x8000) << 48 | 0x7ff8 << 48 | u64::from(bits & 0x3ff) << 42;
        assert_eq!(run("cvt.f64.f16", &operand), if x.is_nan() { nan } else { d(x.to_f64()) });
        // As seen on an H200: 0xfff07c00 as a float, widened to double, becomes 0xff83.
        assert_eq!(run("cvt.rn.f16.f64", &[run("cvt.f64.f32", &[0xfff0_7c00])]), 0xff83);
        assert_eq!(run("cvt.f32.bf16", &operand), u64::from(bits) << 16);
        let y = half::bf16::from_bits(bits);
        let expected = if y.is_nan() { 0x7fff } else { u64::from(bits) };
        assert_eq!(run("cvt.rn.bf16.f32", &[u64::from(bits) << 16]), expected);
        for (ty, is_nan) in [("f16", x.is_nan()), ("bf16", y.is_nan())] {
            let sign_only = |bits: u16| if is_nan { 0x7fff } else { u64::from(bits) };
            assert_eq!(run(&format!("neg.{ty}"), &operand), sign_only(bits ^ 0x8000));
            assert_eq!(run(&format!("abs.{ty}"), &operand), sign_only(bits & 0x7fff));
            let pair = [u64::from(bits) << 16 | 0x3c00];
            assert_eq!(run(&format!("neg.{ty}x2"), &pair), sign_only(bits ^ 0x8000) << 16 | 0xbc00);
        }
        let subnormal = bits & 0x7c00 == 0;
        let expected = if x.is_nan() { 0x7fff } else { u64::from(if subnormal { 0 } else { bits & 0x7fff }) };
        assert_eq!(run("abs.ftz.f16", &operand), expected);
        // Around every number of 16 bits and every tie between two.
        for near in [0, 1, 0xfff, 0x1000, 0x1001, 0x1fff_u32] {
            let wide = (u32::from(bits & 0x7fff) << 13 | near).wrapping_add(0x3800_0000)
                | u32::from(bits & 0x8000) << 16;
            let wide = f32::from_bits(wide);
            let expected = if wide.is_nan() { 0x7fff } else { half::f16::from_f32(wide).to_bits() };
            assert_eq!(run("cvt.rn.f16.f32", &[f(wide)]), u64::from(expected), "{wide:e}");
        }
        for near in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff_u32] {
            let wide = f32::from_bits(u32::from(bits) << 16 | near);
            let expected = if wide.is_nan() { 0x7fff } else { half::bf16::from_f32(wide).to_bits() };
            assert_eq!(run("cvt.rn.bf16.f32", &[f(wide)]), u64::from(expected), "{wide:e}");
        }
    }
    // Subnormal results of f16, from the definition.
    let mut random = Random(6);
    for _ in 0..200_000 {
        let bits = (random.next() as u32 & 0x87ff_ffff) + (90 << 23) + ((random.next() as u32 % 24) << 23);
        for (ty, format) in NARROW {
            let Some(value) = finite(exact::F32, bits.into()) else { continue };
            let expected = format.encode(value, Rounding::Nearest);
            assert_eq!(run(&format!("cvt.rn.{ty}.f32"), &[bits.into()]), expected, "{ty} {bits:x}");
        }
    }
}

#[test]
fn narrow_arithmetic_rounds_once() {
    let mut random = Random(7);
    let n = Rounding::Nearest;
    for (ty, format) in NARROW {
        let values = if ty == "f16" { floats(5, 10, 150) } else { floats(8, 7, 150) };
        let number = |bits: u64| finite(format, bits);
        let check = |op: &str, operands: &[u64], expected: Option<u64>| {
            let Some(expected) = expected else { return };
            let opcode = format!("{op}.{ty}");
            assert_eq!(run(&opcode, operands), expected, "{opcode} {operands:x?}");
        };
        for &a in &values {
            for &b in &values {
                let (x, y) = (number(a), number(b));
                let both = x.zip(y);
                check("add", &[a, b], narrow_result(format, both.map(|(x, y)| x.plus(y, n))));
                check("sub", &[a, b], narrow_result(format, both.map(|(x, y)| x.plus(y.negated(), n))));
                check("mul", &[a, b], narrow_result(format, both.map(|(x, y)| x.times(y))));
                // Addends of all magnitudes, and some that nearly cancel the product.
                let near = both.map_or(0, |(x, y)| format.encode(x.times(y).negated(), n));
                for c in [
                    near,
                    near ^ 1,
                    random.next() & 0xffff,
                    random.next() & 0x83ff,
                    values[(a ^ b) as usize % 100],
                ] {
                    let sum = both.zip(number(c)).map(|((x, y), z)| x.times(y).plus(z, n));
                    check("fma.rn", &[a, b, c], narrow_result(format, sum));
                    let relu =
                        narrow_result(format, sum).map(|bits| if bits & 0x8000 == 0 { bits } else { 0 });
                    check("fma.rn.relu", &[a, b, c], relu);
                }
            }
        }
        // Overflow, infinity and NaN.
        let (one, max, infinity) = (format.one(), format.infinity() - 1, format.infinity());
        let nan = infinity + 1;
        check("add", &[max, max], Some(infinity));
        check("mul", &[max, max | 0x8000], Some(infinity | 0x8000));
        check("fma.rn", &[max, max, infinity | 0x8000], Some(infinity | 0x8000));
        check("fma.rn", &[max, one, max], Some(infinity));
        check("fma.rn", &[infinity, 0, one], Some(0x7fff));
        check("fma.rn.relu", &[nan, one, one], Some(0x7fff));
        check("sub", &[infinity, infinity], Some(0x7fff));
        check("add", &[one, nan | 0x8000], Some(0x7fff));
        check("add", &[one, one | 0x8000], Some(0));
        check("mul", &[0, one | 0x8000], Some(0x8000));
        check("min", &[0, 0x8000], Some(0x8000));
        check("max", &[0x8000, 0], Some(0));
        check("max", &[nan, one], Some(one));
        check("min", &[one, nan], Some(one));
        check("min", &[nan, nan], Some(0x7fff));
        check("max.NaN", &[one, nan], Some(0x7fff));
        check("min.xorsign.abs", &[max | 0x8000, one], Some(one | 0x8000));
        check("max", &[max | 0x8000, one], Some(one));
        check("tanh.approx", &[infinity], Some(one));
    }
    let rows: &[(&str, &[u64], u64)] = &[
        ("add.sat.f16", &[0x3c00, 0x3c00], 0x3c00),
        ("sub.sat.f16", &[0x3c00, 0x4000], 0),
        ("mul.sat.f16", &[0x7c00, 0], 0),
        ("fma.rn.sat.f16", &[0x3800, 0x3800, 0x3800], 0x3a00),
        ("add.ftz.f16", &[0x0001, 0x8002], 0),
        ("mul.ftz.f16", &[0x0400, 0x3800], 0),
        ("mul.f16", &[0x0400, 0x3800], 0x0200),
        ("fma.rn.ftz.f16x2", &[0x0001_3c00, 0x3c00_3c00, 0x3c00_3c00], 0x3c00_4000),
        ("add.f16x2", &[0x3c00_4000, 0x3c00_4000], 0x4000_4400),
        ("add.rn.bf16x2", &[0x3f80_4000, 0x3f80_4000], 0x4000_4080),
        ("mul.bf16x2", &[0x4000_3f80, 0x4000_7fc0], 0x4080_7fff),
        ("fma.rn.bf16x2", &[0x4000_3f80, 0x4000_3f80, 0x3f80_3f80], 0x40a0_4000),
        ("max.f16x2", &[0x3c00_bc00, 0x4000_b800], 0x4000_b800),
        ("min.NaN.bf16x2", &[0x3f80_7fc0, 0x4000_3f80], 0x3f80_7fff),
        ("ex2.approx.f16", &[0x4200], 0x4800),
        ("ex2.approx.f16x2", &[0x4200_fc00], 0x4800_0000),
        ("ex2.approx.ftz.bf16", &[0x4040], 0x4100),
        ("ex2.approx.ftz.bf16x2", &[0x0001_ff80], 0x3f80_0000),
        ("tanh.approx.f16x2", &[0x0000_fc00], 0x0000_bc00),
        ("tanh.approx.bf16x2", &[0x8000_ff80], 0x8000_bf80),
        ("add.f32.f16", &[0x3c00, f(0.5)], f(1.5)),
        ("sub.rn.f32.bf16", &[0x3f80, f(0.5)], f(0.5)),
        ("fma.rn.sat.f32.f16", &[0x3c00, 0x4000, f(0.5)], f(1.0)),
        ("fma.rn.f32.bf16", &[0x3f80, 0x4000, NAN_32 ^ 1], NAN_32),
    ];
    for &(opcode, operands, expected) in rows {
        assert_eq!(run(opcode, operands), expected, "{opcode} {operands:x?}");
    }
}

const ALL: [(&str, u32, bool); 8] = [
    ("u8", 8, false),
    ("s8", 8, true),
    ("u16", 16, false),
    ("s16", 16, true),
    ("u32", 32, false),
    ("s32", 32, true),
    ("u64", 64, false),
    ("s64", 64, true),
];

/// Bits of a result: an `s8` is extended to 16.
fn stored(value: i128, bits: u32, signed: bool) -> u64 {
    if bits == 8 && signed { low(number(low(value, 8), 8, true), 16) } else { low(value, bits) }
}

#[test]
fn integers_to_integers_and_floats() {
    let values = integers(200);
    for (from, from_bits, from_signed) in ALL {
        for &a in &values {
            let x = number(a, from_bits, from_signed);
            for (to, to_bits, to_signed) in ALL {
                assert_eq!(
                    run(&format!("cvt.{to}.{from}"), &[a]),
                    stored(x, to_bits, to_signed),
                    "{to}.{from} {a:x}"
                );
                let (least, most) = if to_signed {
                    (-1 << (to_bits - 1), (1 << (to_bits - 1)) - 1)
                } else {
                    (0, (1 << to_bits) - 1)
                };
                let clamped = stored(x.clamp(least, most), to_bits, to_signed);
                assert_eq!(run(&format!("cvt.sat.{to}.{from}"), &[a]), clamped, "sat.{to}.{from} {a:x}");
            }
            assert_eq!(run(&format!("cvt.rn.f32.{from}"), &[a]), f(x as f32), "{x}");
            assert_eq!(run(&format!("cvt.rn.f64.{from}"), &[a]), d(x as f64));
            for (to, format) in
                [("f16", exact::F16), ("bf16", exact::BF16), ("f32", exact::F32), ("f64", exact::F64)]
            {
                for (mode, rounding) in ROUNDINGS {
                    let expected = format.encode(Exact::integer(x), rounding);
                    assert_eq!(
                        run(&format!("cvt.{mode}.{to}.{from}"), &[a]),
                        expected,
                        "{mode}.{to}.{from} {x}"
                    );
                }
            }
        }
    }
    assert_eq!(run("cvt.rn.f32.u64", &[u64::MAX]), f(18_446_744_073_709_551_615.0));
    assert_eq!(run("cvt.rz.f32.u64", &[u64::MAX]), f(18_446_744_073_709_551_615.0) - 1);
    assert_eq!(run("cvt.rn.f16.u32", &[65_520]), 0x7c00);
    assert_eq!(run("cvt.rz.f16.s32", &[low(-70_000, 32)]), 0xfbff);
    assert_eq!(run("cvt.sat.rn.f32.s32", &[low(-5, 32)]), 0);
}

#[test]
fn floats_to_integers() {
    let modes: [Function; 4] =
        [("rni", f64::round_ties_even), ("rzi", f64::trunc), ("rmi", f64::floor), ("rpi", f64::ceil)];
    let halves = (-20..20).flat_map(|k| [f64::from(k) * 0.5, f64::from(k) * 0.5 + 0.25]);
    let bounds = [7, 8, 15, 16, 31, 32, 63, 64].into_iter().flat_map(|k| {
        let x = 2_f64.powi(k);
        [x, -x, x - 1.0, x + 1.0, -x - 1.0, x - 0.5, -x - 0.5, x.next_down(), (-x).next_up()]
    });
    let numbers: Vec<f64> = halves.chain(bounds).chain(f64s(60).into_iter().map(f64::from_bits)).collect();
    for (to, bits, signed) in ALL {
        let (least, most) =
            if signed { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        for (mode, round) in modes {
            let expected = |x: f64, from_f64: bool| {
                if x.is_nan() {
                    // PTX ISA, cvt, integer notes.
                    let value = if from_f64 || bits == 64 { 1 << (bits - 1) } else { 0 };
                    return stored(value, bits, signed);
                }
                stored((round(x) as i128).clamp(least, most), bits, signed)
            };
            for &x in &numbers {
                assert_eq!(
                    run(&format!("cvt.{mode}.{to}.f64"), &[d(x)]),
                    expected(x, true),
                    "{mode}.{to} {x:e}"
                );
                let y = x as f32;
                let wide = f64::from(y);
                assert_eq!(
                    run(&format!("cvt.{mode}.{to}.f32"), &[f(y)]),
                    expected(wide, false),
                    "{mode}.{to} {y:e}"
                );
                assert_eq!(run(&format!("cvt.{mode}.sat.{to}.f32"), &[f(y)]), expected(wide, false));
                let ftz = if y.is_subnormal() { 0.0 } else { wide };
                assert_eq!(run(&format!("cvt.{mode}.ftz.{to}.f32"), &[f(y)]), expected(ftz, false));
                let h = half::f16::from_f32(y);
                assert_eq!(
                    run(&format!("cvt.{mode}.{to}.f16"), &[h.to_bits().into()]),
                    expected(h.to_f64(), false)
                );
                let h = half::bf16::from_f32(y);
                assert_eq!(
                    run(&format!("cvt.{mode}.{to}.bf16"), &[h.to_bits().into()]),
                    expected(h.to_f64(), false)
                );
            }
            for &a in &f32s(100) {
                let x = single(a);
                let expected = if x.is_nan() { NAN_32 } else { f(round(f64::from(x)) as f32) };
                assert_eq!(run(&format!("cvt.{mode}.f32.f32"), &[a]), expected, "{mode} {x:e}");
                let h = half::f16::from_f32(x);
                let expected =
                    if h.is_nan() { 0x7fff } else { half::f16::from_f32(round(h.to_f64()) as f32).to_bits() };
                assert_eq!(run(&format!("cvt.{mode}.f16.f16"), &[h.to_bits().into()]), u64::from(expected));
            }
            for &a in &f64s(100) {
                let x = f64::from_bits(a);
                let expected = if x.is_nan() { a | 1 << 51 } else { d(round(x)) };
                assert_eq!(run(&format!("cvt.{mode}.f64.f64"), &[a]), expected, "{mode} {x:e}");
            }
        }
    }
}

#[test]
fn floats_to_floats() {
    let formats = [("f16", exact::F16), ("bf16", exact::BF16), ("f32", exact::F32), ("f64", exact::F64)];
    let values = [floats(5, 10, 200), floats(8, 7, 200), f32s(200), f64s(400)];
    for ((from, source), values) in formats.into_iter().zip(values) {
        for (to, target) in formats {
            for (mode, rounding) in ROUNDINGS {
                if from == to {
                    continue;
                }
                for &a in &values {
                    let Some(value) = finite(source, a) else { continue };
                    let opcode = format!("cvt.{mode}.{to}.{from}");
                    assert_eq!(run(&opcode, &[a]), target.encode(value, rounding), "{opcode} {a:x}");
                }
            }
        }
    }
    for &a in &f64s(400) {
        let x = f64::from_bits(a);
        // A NaN keeps its sign and the upper bits of its payload, and becomes quiet.
        let nan = a >> 32 & 0x8000_0000 | 0x7fc0_0000 | a >> 29 & 0x007f_ffff;
        assert_eq!(run("cvt.rn.f32.f64", &[a]), if x.is_nan() { nan } else { f(x as f32) });
    }
    for &a in &f32s(400) {
        let x = single(a);
        if !x.is_nan() {
            assert_eq!(run("cvt.f64.f32", &[a]), d(x.into()));
        }
    }
    let rows: &[(&str, &[u64], u64)] = &[
        ("cvt.f64.f32", &[0x7f80_0001], 0x7ff8_0000_2000_0000),
        ("cvt.f64.f32", &[0xffff_ffff], 0xffff_ffff_e000_0000),
        ("cvt.f64.ftz.f32", &[0x8000_0001], d(-0.0)),
        ("cvt.rn.ftz.f32.f64", &[d(1e-40)], 0),
        ("cvt.rn.f32.f64", &[d(1e-40)], f(1e-40)),
        ("cvt.rp.f32.f64", &[d(1e300)], f(INF)),
        ("cvt.rz.f32.f64", &[d(1e300)], f(f32::MAX)),
        ("cvt.rz.f32.f64", &[d(f64::INFINITY)], f(INF)),
        ("cvt.rz.f32.f64", &[0x7ff0_0000_0000_0001], 0x7fc0_0000),
        ("cvt.rm.f32.f64", &[d(1.0 + 1e-12)], f(1.0)),
        ("cvt.f32.f32", &[1], 1),
        ("cvt.ftz.f32.f32", &[0x8000_0001], f(-0.0)),
        ("cvt.ftz.f32.f32", &[0xff80_0001], NAN_32),
        ("cvt.sat.f32.f32", &[f(-3.0)], 0),
        ("cvt.sat.f32.f32", &[f(3.0)], f(1.0)),
        ("cvt.sat.f32.f32", &[f(0.3)], f(0.3)),
        ("cvt.ftz.sat.f32.f32", &[NAN_32], 0),
        ("cvt.sat.f64.f64", &[d(7.0)], d(1.0)),
        ("cvt.sat.f64.f32", &[NAN_32], 0),
        ("cvt.rni.ftz.f32.f32", &[f(2.5)], f(2.0)),
        ("cvt.rpi.f32.f32", &[f(-0.5)], f(-0.0)),
        ("cvt.rpi.f32.f32", &[1], f(1.0)),
        ("cvt.rpi.ftz.f32.f32", &[1], 0),
        ("cvt.rni.sat.f32.f32", &[f(-0.75)], 0),
        ("cvt.rmi.bf16.bf16", &[0x3fc0], 0x3f80),
        ("cvt.rzi.f16.f16", &[0x7e01], 0x7fff),
        ("cvt.rn.f16.f32", &[f(65519.0)], 0x7bff),
        ("cvt.rn.f16.f32", &[f(65520.0)], 0x7c00),
        ("cvt.rn.f16.f64", &[d(2_f64.powi(-25) * (1.0 + 1e-15))], 0x0001),
        ("cvt.rn.f16.f64", &[d(2_f64.powi(-25))], 0),
        ("cvt.rn.satfinite.f16.f32", &[f(-1e9)], 0xfbff),
        ("cvt.rn.satfinite.f16.f32", &[f(INF)], 0x7bff),
        ("cvt.rn.satfinite.bf16.f32", &[NAN_32], 0x7fff),
        ("cvt.rn.relu.f16.f32", &[f(-1.0)], 0),
        ("cvt.rn.relu.f16.f32", &[0xffff_ffff], 0x7fff),
        ("cvt.rz.relu.bf16.f32", &[f(1.999)], 0x3fff),
        ("cvt.rn.sat.f16.f32", &[f(7.0)], 0x3c00),
        ("cvt.rn.f16.ftz.f32", &[1], 0),
        ("cvt.rp.f16.f32", &[1], 1),
        ("cvt.rp.ftz.f16.f32", &[1], 0),
        ("cvt.rz.bf16.f16", &[0x3fff], 0x3fff),
        ("cvt.rn.bf16.f16", &[0x3fff], 0x4000),
        // The first operand is in the upper half (PTX ISA, cvt).
        ("cvt.rn.f16x2.f32", &[f(1.0), f(2.0)], 0x3c00_4000),
        ("cvt.rn.bf16x2.f32", &[f(1.0), f(2.0)], 0x3f80_4000),
        ("cvt.rn.bf16x2.f32", &[NAN_32, f(-0.0)], 0x7fff_8000),
        ("cvt.rz.f16x2.f32", &[f(65519.0), f(-1e9)], 0x7bff_fbff),
        ("cvt.rn.relu.f16x2.f32", &[f(-1.0), f(1.0)], 0x0000_3c00),
        ("cvt.rz.satfinite.relu.bf16x2.f32", &[f(INF), f(-INF)], 0x7f7f_0000),
        ("cvt.rna.tf32.f32", &[0x3f80_1000], 0x3f80_2000),
        ("cvt.rna.tf32.f32", &[0x3f80_0fff], 0x3f80_0000),
        ("cvt.rna.tf32.f32", &[0xbf80_1000], 0xbf80_2000),
        ("cvt.rn.tf32.f32", &[0x3f80_1000], 0x3f80_0000),
        ("cvt.rz.relu.tf32.f32", &[0x3f80_1fff], 0x3f80_0000),
        ("cvt.rna.tf32.f32", &[0x7f80_0001], NAN_32),
        ("cvt.rna.tf32.f32", &[f(f32::MAX)], f(INF)),
        ("cvt.rna.satfinite.tf32.f32", &[f(f32::MAX)], 0x7f7f_e000),
    ];
    for &(opcode, operands, expected) in rows {
        assert_eq!(run(opcode, operands), expected, "{opcode} {operands:x?}");
    }
}

/// A function of its own does what the conversion in words does.
#[test]
fn common_conversions_are_conversions() {
    let mut compared = 0;
    for mnemonic in
        PATTERNS.iter().filter(|pattern| pattern.starts_with("cvt")).flat_map(|pattern| expanded(pattern))
    {
        let Some(conversion) = Mnemonic::parse(&mnemonic).and_then(Conversion::named) else { continue };
        let alu = find(&mnemonic).expect("what has a conversion is known");
        if matches!(alu, Alu::Convert(_)) {
            continue;
        }
        compared += 1;
        let values: Vec<u64> = match mnemonic.rsplit('.').next() {
            Some("f64") => f64s(60),
            Some("f32") => f32s(60),
            Some("f16") => floats(5, 10, 60),
            Some("bf16") => floats(8, 7, 60),
            _ => integers(60),
        };
        for a in values {
            // An f32 of bf16 keeps the payload of NaN, which the ISA leaves open.
            let nan = mnemonic.ends_with("f32.bf16") && half::bf16::from_bits(a as u16).is_nan();
            if !nan {
                assert_eq!(run(&mnemonic, &[a]), conversion.apply(a), "{mnemonic} {a:x}");
            }
        }
    }
    assert!(compared > 150, "{compared}");
}

/// Every pair of mantissas where products of bf16 leave the range of single precision.
#[test]
fn smallest_products() {
    for x in 0x80..0x100_u64 {
        for y in 0x80..0x100_u64 {
            for exponent in 105..135 {
                // x · 2^-71 and y · 2^(exponent - 205) in bf16.
                let (a, b) = (63 << 7 | (x & 0x7f), (exponent - 71) << 7 | (y & 0x7f));
                let value = |bits| finite(exact::BF16, bits).expect("finite");
                let expected = exact::BF16.encode(value(a).times(value(b)), Rounding::Nearest);
                assert_eq!(run("mul.bf16", &[a, b]), expected, "{a:x} {b:x}");
            }
        }
    }
}

#[test]
fn widths_of_conversions() {
    for (opcode, widths) in [
        ("cvt.rz.f32.f64", (true, false)),
        ("cvt.sat.u64.s32", (false, true)),
        ("cvt.rz.f64.s64", (true, true)),
        ("cvt.rz.f16.f32", (false, false)),
    ] {
        let Some(Alu::Convert(conversion)) = find(opcode) else { panic!("{opcode} has a function") };
        assert_eq!(conversion.widths(), widths, "{opcode}");
    }
    for common in [
        "cvt.u64.u32",
        "cvt.u32.u64",
        "cvt.s64.s32",
        "cvt.u16.u32",
        "cvt.s32.s8",
        "cvt.rn.f32.s32",
        "cvt.rn.f32.u32",
        "cvt.rn.f64.u32",
        "cvt.rzi.s32.f32",
        "cvt.rzi.u32.f64",
        "cvt.f64.f32",
        "cvt.rn.f32.f64",
        "cvt.f32.f16",
        "cvt.rn.f16.f32",
        "cvt.f32.bf16",
        "cvt.rn.bf16.f32",
        "cvt.rmi.f32.f32",
        "cvt.rni.ftz.f32.f32",
    ] {
        assert!(!matches!(find(common), None | Some(Alu::Convert(_))), "{common} has no function of its own");
    }
}

#[test]
fn atomics() {
    let m1 = u64::MAX;
    let rows: &[(&str, &str, u64, u64, u64)] = &[
        ("add", "u32", 0xffff_ffff, 2, 1),
        ("add", "s32", 0x7fff_ffff, 1, 0x8000_0000),
        ("add", "u64", m1, 2, 1),
        ("add", "s64", m1, 2, 1),
        ("min", "u32", 0xffff_ffff, 1, 1),
        ("min", "s32", 0xffff_ffff, 1, 0xffff_ffff),
        ("max", "u32", 0xffff_ffff, 1, 0xffff_ffff),
        ("max", "s32", 0xffff_ffff, 1, 1),
        ("min", "u64", m1, 1, 1),
        ("min", "s64", m1, 1, m1),
        ("max", "u64", m1, 1, m1),
        ("max", "s64", m1, 1, 1),
        ("and", "b32", 0b1100, 0b1010, 0b1000),
        ("or", "b64", 0b1100, 0b1010, 0b1110),
        ("xor", "b32", 0b1100, 0b1010, 0b0110),
        ("exch", "b32", 5, 7, 7),
        ("exch", "b64", 5, m1, m1),
        ("inc", "u32", 4, 5, 5),
        ("inc", "u32", 5, 5, 0),
        ("inc", "u32", 9, 5, 0),
        ("dec", "u32", 4, 5, 3),
        ("dec", "u32", 0, 5, 5),
        ("dec", "u32", 9, 5, 5),
        ("add", "f32", f(1.5), f(2.0), f(3.5)),
        ("add", "f32", f(INF), f(-INF), NAN_32),
        ("add", "f32", 1, 1, 2),
        ("add", "f64", d(1.5), d(2.0), d(3.5)),
        ("add", "f64", 1, 1, 2),
        ("add", "f16", 0x3c00, 0x3c00, 0x4000),
        ("add", "f16", 1, 1, 2),
        ("add", "bf16", 0x3f80, 0x3f80, 0x4000),
        ("add", "f16x2", 0x3c00_4000, 0x3c00_4000, 0x4000_4400),
        ("add", "bf16x2", 0x3f80_ff80, 0x3f80_7f80, 0x4000_7fff),
        ("min", "f16x2", 0x3c00_4000, 0x4000_3c00, 0x3c00_3c00),
        ("max", "bf16", 0x7fc0, 0x3f80, 0x3f80),
    ];
    for &(op, ty, old, operand, expected) in rows {
        let function = atomic(op, ty).unwrap_or_else(|| panic!("{op}.{ty} is not known"));
        assert_eq!(function(old, operand), expected, "{op}.{ty} {old:x} {operand:x}");
        if (op, ty, old) != ("add", "f32", 1) {
            assert_eq!(atomic_flushing(op, ty).expect("both know the same")(old, operand), expected);
        }
    }
    let flushing = atomic_flushing("add", "f32").expect("known");
    assert_eq!(flushing(1, 1), 0);
    assert_eq!(flushing(f(f32::MIN_POSITIVE) + 1, f(-f32::MIN_POSITIVE)), 0);
    assert_eq!(flushing(f(1.0), 0x8000_0001), f(1.0));
    for (op, ty) in
        [("add", "b32"), ("inc", "u64"), ("min", "f32"), ("and", "f32"), ("sub", "u32"), ("cas", "b32")]
    {
        assert!(atomic(op, ty).is_none(), "{op}.{ty}");
    }
}

/// Every mnemonic that a pattern stands for: `{a|b}` is a choice, of which one may be empty.
fn expanded(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let (choices, after) = rest.split_once('}').expect("braces are closed");
    let tails = expanded(after);
    let each =
        choices.split('|').flat_map(|choice| tails.iter().map(move |tail| format!("{before}{choice}{tail}")));
    each.collect()
}

/// All that is known but for the order of modifiers.
const PATTERNS: &[&str] = &[
    "{add|sub|mul.lo|mul.hi|mad.lo|mad.hi|sad|div|rem|min|max}.{u16|s16|u32|s32|u64|s64}",
    "{mul|mad}.wide.{u16|s16|u32|s32}",
    "{add|sub|mad.hi}.sat.s32",
    "{mul24|mad24}.{lo|hi}.{u32|s32}",
    "mad24.hi.sat.s32",
    "{abs|neg}.{s16|s32|s64|f32|ftz.f32|f64|f16|ftz.f16|f16x2|ftz.f16x2|bf16|bf16x2}",
    "{min|max}.relu.{s32|s16x2}",
    "{add|min|max}.{u16x2|s16x2}",
    "{and|or|xor|not|cnot|shl}.{b16|b32|b64}",
    "shr.{b16|u16|s16|b32|u32|s32|b64|u64|s64}",
    "{popc|clz|brev}.{b32|b64}",
    "bfind{|.shiftamt}.{u32|s32|u64|s64}",
    "bfe.{u32|s32|u64|s64}",
    "bfi.{b32|b64}",
    "prmt.b32{|.f4e|.b4e|.rc8|.ecl|.ecr|.rc16}",
    "lop3.b32",
    "shf.{l|r}.{wrap|clamp}.b32",
    "dp4a.{u32|s32}.{u32|s32}",
    "dp2a.{lo|hi}.{u32|s32}.{u32|s32}",
    "szext.{wrap|clamp}.{u32|s32}",
    "bmsk.{wrap|clamp}.b32",
    "fns.b32",
    "{add|sub|mul}{|.rn|.rz|.rm|.rp}{|.ftz}{|.sat}.f32",
    "{fma|mad}{.rn|.rz|.rm|.rp}{|.ftz}{|.sat}.f32",
    "{div|rcp|sqrt}{.rn|.rz|.rm|.rp}{|.ftz}.f32",
    "{div|rcp|sqrt|rsqrt|sin|cos|lg2|ex2}.approx{|.ftz}.f32",
    "div.full{|.ftz}.f32",
    "tanh.approx.{f32|f16|f16x2|bf16|bf16x2}",
    "{add|sub|mul}{|.rn|.rz|.rm|.rp}.f64",
    "{fma|mad|div|rcp|sqrt}{.rn|.rz|.rm|.rp}.f64",
    "{rcp.approx.ftz|rsqrt.approx|rsqrt.approx.ftz}.f64",
    "{min|max}{|.ftz}{|.NaN}{|.xorsign.abs}.{f32|f16|f16x2}",
    "{min|max}{|.NaN}{|.xorsign.abs}.{bf16|bf16x2}",
    "{min|max|copysign}.f64",
    "copysign.f32",
    "{add|sub|mul}{|.rn|.rz|.rm|.rp}{|.ftz}.f32x2",
    "fma{.rn|.rz|.rm|.rp}{|.ftz}.f32x2",
    "{add|sub|mul|fma.rn}{|.ftz}{|.sat}.{f16|f16x2}",
    "{add|sub|mul}{|.rn}.{f16|f16x2|bf16|bf16x2}",
    "fma.rn{|.relu}.{f16|f16x2|bf16|bf16x2}",
    "ex2.approx.{f16|f16x2|ftz.bf16|ftz.bf16x2}",
    "{add|sub|fma.rn}{|.sat}.f32.{f16|bf16}",
    "setp.{eq|ne}.{b16|b32|b64}",
    "set.{eq|ne|lt|le|gt|ge}.{u32|s32|f32}.{u16|s16|u32|s32|u64|s64}",
    "setp.{eq|ne|lt|le|gt|ge}.{u16|s16|u32|s32|u64|s64}",
    "setp.{lo|ls|hi|hs}.{u16|u32|u64}",
    "setp.{eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan}.{f32|ftz.f32|f64|f16|ftz.f16|bf16}",
    "set.{eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan}{|.ftz}.{u32|s32|f32}.f32",
    "set.{eq|lt|geu|nan}.{u32|s32|f32}.f64",
    "set.{eq|lt|geu|nan}{|.ftz}.{u32|s32|u16|s16|f16}.f16",
    "set.{eq|lt|geu|nan}{|.ftz}.{u32|s32|f16x2}.f16x2",
    "set.{eq|lt|geu|nan}.{u32|s32|u16|s16|bf16}.bf16",
    "set.{eq|lt|geu|nan}.{u32|s32|bf16x2}.bf16x2",
    "testp.{finite|infinite|number|notanumber|normal|subnormal}.{f32|f64}",
    "slct.{b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64}.{s32|f32}",
    "slct.ftz.b32.f32",
    "cvt{|.sat}.{u8|s8|u16|s16|u32|s32|u64|s64}.{u8|s8|u16|s16|u32|s32|u64|s64}",
    "cvt{.rni|.rzi|.rmi|.rpi}.{u8|s8|u16|s16|u32|s32|u64|s64}.{f16|bf16|f32|f64}",
    "cvt{.rni|.rzi|.rmi|.rpi}.{ftz|sat|ftz.sat}.{u32|s32|u64|s64}.f32",
    "cvt{.rn|.rz|.rm|.rp}.{f16|bf16|f32|f64}.{u8|s8|u16|s16|u32|s32|u64|s64}",
    "cvt{|.rni|.rzi|.rmi|.rpi}{|.ftz}{|.sat}.f32.f32",
    "cvt{|.rni|.rzi|.rmi|.rpi}.{f16.f16|f64.f64|bf16.bf16}",
    "cvt{.rn|.rz|.rm|.rp}{|.ftz}{|.sat}.f32.f64",
    "cvt{|.ftz}.{f64.f32|f32.f16|f32.bf16}",
    "cvt{.rn|.rz|.rm|.rp}.{f16.f32|bf16.f32|f16.f64|bf16.f64|bf16.f16|f16.bf16}",
    "cvt.{f64.f16|f64.bf16}",
    "cvt{.rn|.rz}{|.relu}{|.satfinite}.{f16|bf16|f16x2|bf16x2|tf32}.f32",
    "cvt.rna{|.satfinite}.tf32.f32",
];

#[test]
fn all_mnemonics_are_known_and_never_panic() {
    let (special, mut random) = (integers(0), Random(8));
    let mnemonics: Vec<String> = PATTERNS.iter().flat_map(|pattern| expanded(pattern)).collect();
    assert!(mnemonics.len() > 900, "{}", mnemonics.len());
    for mnemonic in mnemonics {
        let alu = find(&mnemonic).unwrap_or_else(|| panic!("{mnemonic} is not known"));
        for _ in 0..40 {
            let operands: [u64; 4] = std::array::from_fn(|_| match random.next() % 4 {
                0 => special[random.next() as usize % special.len()],
                1 => f64s(0)[random.next() as usize % 36],
                2 => f32s(0)[random.next() as usize % 36],
                _ => random.next(),
            });
            run_with(alu, &operands, |lane, operand| operand.rotate_left(lane as u32));
        }
    }
}

#[test]
fn other_mnemonics_are_not_known() {
    for mnemonic in [
        "",
        ".",
        "add",
        "add.",
        "add.s33",
        "add.s32.s32",
        "add.sat.u32",
        "add.cc.s32",
        "addc.s32",
        "add.b32",
        "add.lo.s32",
        "add.f32.f32",
        "add.rn.rn.f32",
        "add.rni.f32",
        "add.relu.f16",
        "add.sat.bf16",
        "add.rz.f16",
        "mul.s32",
        "mul.lo.hi.s32",
        "mul.wide.u64",
        "mul.hi.sat.s32",
        "mad.hi.sat.u32",
        "mad.s32",
        "mad.f32",
        "fma.f32",
        "fma.f64",
        "fma.rn.s32",
        "fma.f16",
        "fma.rn.ftz.f64",
        "fma.rn.sat.relu.f16",
        "fma.rn.ftz.bf16",
        "div.f32",
        "div.f64",
        "div.approx.f64",
        "div.rn.sat.f32",
        "rcp.f32",
        "sqrt.f64",
        "rsqrt.f32",
        "rsqrt.rn.f32",
        "sin.f32",
        "sin.approx.f64",
        "ex2.approx.bf16",
        "ex2.approx.ftz.f16",
        "tanh.approx.ftz.f32",
        "abs.u32",
        "neg.u32",
        "abs.sat.f32",
        "min.relu.u32",
        "min.NaN.f64",
        "min.xorsign.f32",
        "min.abs.f32",
        "and.s32",
        "and.pred",
        "not.u32",
        "shl.s32",
        "shl.u32",
        "shr.b8",
        "popc.u32",
        "clz.b16",
        "bfind.b32",
        "bfind.u16",
        "bfe.b32",
        "bfe.u16",
        "bfi.u32",
        "prmt.b64",
        "prmt.b32.foo",
        "lop3.b64",
        "shf.l.b32",
        "shf.wrap.b32",
        "shf.l.r.wrap.b32",
        "dp4a.u32",
        "dp4a.lo.u32.u32",
        "dp2a.u32.u32",
        "szext.u32",
        "bmsk.b32",
        "copysign.f16",
        "testp.f32",
        "testp.finite.f16",
        "testp.nan.f32",
        "slct.b32",
        "slct.b32.u32",
        "slct.ftz.b32.s32",
        "setp.lt",
        "setp.lt.b32",
        "setp.lo.s32",
        "setp.equ.u32",
        "setp.hi.f32",
        "setp.ftz.f32",
        "setp.lt.ftz.f64",
        "setp.lt.and.s32",
        "setp.lt.f16x2",
        "set.lt.u32",
        "set.lt.u64.u32",
        "set.lt.f16.f32",
        "cvt.f32.s32",
        "cvt.s32.f32",
        "cvt.rn.s32.f32",
        "cvt.rni.f32.s32",
        "cvt.f32.f64",
        "cvt.f16.f32",
        "cvt.bf16.f32",
        "cvt.rn.f32.f32",
        "cvt.rni.f32.f64",
        "cvt.rn.u32.u64",
        "cvt.rzi.u32.u64",
        "cvt.ftz.u32.u64",
        "cvt.rn.ftz.f16.f64",
        "cvt.f16x2.f32",
        "cvt.rp.f16x2.f32",
        "cvt.rna.f32.f64",
        "cvt.rna.relu.tf32.f32",
        "cvt.tf32.f32",
        "cvt.rm.tf32.f32",
        "cvt.f32.tf32",
        "cvt.relu.f32.f16",
        "cvt.rn.relu.f16.f64",
        "cvt.u32",
        "cvt.u4.u32",
        "cvt.u32.b32",
        "cvt.rn.sat.bf16.f32",
        "cvt.pack.sat.u16.s32",
        "mov.b32",
        "selp.b32",
        "ld.global.u32",
        "frob.u32",
    ] {
        assert!(find(mnemonic).is_none(), "{mnemonic} is known");
    }
}
