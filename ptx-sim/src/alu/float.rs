//! Arithmetic of `f32` and `f64`.

use super::exact::{self, Exact, Format, Number, Rounding};
use super::lanes::{lanes, switch};
use super::{Alu, Mnemonic};

/// What every NaN result of single precision is: the ISA calls it unspecified, hardware has just this one.
const NAN_32: u32 = 0x7fff_ffff;
/// What operations of double precision give that make a NaN of numbers (`CUDART_NAN` of CUDA's `math_constants.h`).
const NAN_64: u64 = 0xfff8_0000_0000_0000;
const QUIET_64: u64 = 1 << 51;

/// The one NaN of single precision for any. Told by its bits: a compiler may hold one NaN as good as another, and
/// drop a replacement that it sees through, as LLVM does behind a square root.
#[inline(always)]
pub(super) fn canonical(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { NAN_32 } else { bits })
}

/// A result of double precision: NaN operands hand on their payload (PTX ISA, floating-point instructions). Of
/// several, the ISA does not say which; here it is the first.
#[inline(always)]
fn propagated<const N: usize>(result: f64, operands: [f64; N]) -> f64 {
    // Told by bits as in single precision, but only where there can be a root: it is slower.
    let bits = result.to_bits();
    let is_number = if N == 1 { bits & !(1 << 63) <= 0x7ff0_0000_0000_0000 } else { !result.is_nan() };
    if is_number {
        return result;
    }
    match operands.into_iter().find(|x| x.is_nan()) {
        Some(nan) => quiet(nan),
        None => f64::from_bits(NAN_64),
    }
}

/// The bits of the sum of two doubles.
pub(super) fn sum_64(a: u64, b: u64) -> u64 {
    let (a, b) = (f64::from_bits(a), f64::from_bits(b));
    propagated(a + b, [a, b]).to_bits()
}

#[inline(always)]
pub(super) fn quiet(nan: f64) -> f64 {
    f64::from_bits(nan.to_bits() | QUIET_64)
}

/// `.ftz`: a subnormal number becomes a zero of its sign.
#[inline(always)]
pub(super) fn flush(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

/// An operand as the modifiers want it.
#[inline(always)]
pub(super) fn operand<const FTZ: bool>(x: f32) -> f32 {
    if FTZ { flush(x) } else { x }
}

/// `.sat`: between 0 and 1, NaN being 0.
#[inline(always)]
pub(super) fn saturate(x: f32) -> f32 {
    let x = if x > 0.0 { x } else { 0.0 };
    if x < 1.0 { x } else { 1.0 }
}

/// A result as the modifiers want it.
#[inline(always)]
fn result<const FTZ: bool, const SAT: bool>(x: f32) -> f32 {
    let x = if FTZ { flush(x) } else { x };
    if SAT { saturate(x) } else { canonical(x) }
}

/// a·b + c rounded once, faster than a host without such an instruction: the product is exact in double precision,
/// and the sum is rounded to odd, so that rounding to single precision sees on which side of a tie it is (Boldo and
/// Melquiond, Emulation of FMA and correctly rounded sums, 2008).
#[inline(always)]
pub(super) fn fused(a: f32, b: f32, c: f32) -> f32 {
    odd_sum(f64::from(a) * f64::from(b), f64::from(c)) as f32
}

/// The sum, its last bit set where it is not exact.
#[inline(always)]
pub(super) fn odd_sum(x: f64, y: f64) -> f64 {
    let sum = x + y;
    let rest = sum - x;
    let error = (x - (sum - rest)) + (y - rest);
    let bits = sum.to_bits();
    // The exact sum is between the rounded one and its neighbour on the error's side. One of the two is odd.
    let inexact = (error > 0.0) | (error < 0.0);
    let outward = (error > 0.0) == (sum > 0.0);
    let step = if outward { 1_u64 } else { 0_u64.wrapping_sub(1) };
    f64::from_bits(if inexact & (bits & 1 == 0) { bits.wrapping_add(step) } else { bits })
}

const ROUNDINGS: [(&str, Rounding); 4] =
    [("rn", Rounding::Nearest), ("rz", Rounding::Zero), ("rm", Rounding::Down), ("rp", Rounding::Up)];

/// The expression with `ROUNDING` a constant.
macro_rules! rounded {
    ($rounding:expr; $ROUNDING:ident => $body:expr) => {
        match $rounding {
            Rounding::Zero => {
                const $ROUNDING: Rounding = Rounding::Zero;
                $body
            }
            Rounding::Down => {
                const $ROUNDING: Rounding = Rounding::Down;
                $body
            }
            _ => {
                const $ROUNDING: Rounding = Rounding::Up;
                $body
            }
        }
    };
}

/// An operation that IEEE 754 rounds.
#[derive(Clone, Copy, PartialEq)]
enum Op {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Rcp,
    Sqrt,
}

impl Op {
    /// The result on finite operands, exactly. `None` where it is not a finite number, or a root is of a negative.
    #[inline(always)]
    fn exactly(self, operands: [Number; 3], rounding: Rounding) -> Option<Exact> {
        let [Number::Finite(x), Number::Finite(y), Number::Finite(z)] = operands else { return None };
        Some(match self {
            Op::Add => x.plus(y, rounding),
            Op::Sub => x.plus(y.negated(), rounding),
            Op::Mul => x.times(y),
            Op::Fma => x.times(y).plus(z, rounding),
            Op::Div if y.significand != 0 => x.over(y),
            Op::Rcp if x.significand != 0 => Exact::integer(1).over(x),
            Op::Sqrt if !x.negative || x.significand == 0 => x.square_root(),
            _ => return None,
        })
    }

    #[inline(always)]
    fn round(self, format: Format, operands: [u64; 3], rounding: Rounding) -> Option<u64> {
        let value = self.exactly(operands.map(|bits| format.decode(bits)), rounding)?;
        Some(format.encode(value, rounding))
    }

    #[inline(always)]
    fn nearest_32(self, a: f32, b: f32, c: f32) -> f32 {
        match self {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Mul => a * b,
            Op::Fma => fused(a, b, c),
            Op::Div => a / b,
            Op::Rcp => 1.0 / a,
            Op::Sqrt => a.sqrt(),
        }
    }

    #[inline(always)]
    fn nearest_64(self, a: f64, b: f64, c: f64) -> f64 {
        match self {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Mul => a * b,
            Op::Fma => a.mul_add(b, c),
            Op::Div => a / b,
            Op::Rcp => 1.0 / a,
            Op::Sqrt => a.sqrt(),
        }
    }

    /// Rounded otherwise than to nearest. What is not a finite number needs no rounding and is the host's.
    fn directed_32(self, a: f32, b: f32, c: f32, rounding: Rounding) -> f32 {
        let operands = [a, b, c].map(|x| u64::from(x.to_bits()));
        match self.round(exact::F32, operands, rounding) {
            Some(bits) => f32::from_bits(bits as u32),
            None => self.nearest_32(a, b, c),
        }
    }

    fn directed_64(self, a: f64, b: f64, c: f64, rounding: Rounding) -> f64 {
        match self.round(exact::F64, [a, b, c].map(f64::to_bits), rounding) {
            Some(bits) => f64::from_bits(bits),
            None => self.nearest_64(a, b, c),
        }
    }
}

/// Fused multiply-add by the processor's own instruction, where it has one: the same results, sooner.
#[cfg(target_arch = "x86_64")]
mod hardware {
    use super::{canonical, propagated};
    use crate::alu::{Alu, L32, L64};

    fn present() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }

    pub(super) fn fma_32() -> Option<Alu> {
        #[target_feature(enable = "avx2,fma")]
        fn lanes(a: &L32, b: &L32, c: &L32, out: &mut L32) {
            for lane in 0..32 {
                let [a, b, c] = [a, b, c].map(|register| f32::from_bits(register[lane]));
                out[lane] = canonical(a.mul_add(b, c)).to_bits();
            }
        }
        // SAFETY: taken only where the processor has the features.
        present().then_some(Alu::A3(|a, b, c, out| unsafe { lanes(a, b, c, out) }))
    }

    pub(super) fn fma_64() -> Option<Alu> {
        #[target_feature(enable = "avx2,fma")]
        fn lanes(a: &L64, b: &L64, c: &L64, out: &mut L64) {
            for lane in 0..32 {
                let [a, b, c] = [a, b, c].map(|register| f64::from_bits(register[lane]));
                out[lane] = propagated(a.mul_add(b, c), [a, b, c]).to_bits();
            }
        }
        // SAFETY: taken only where the processor has the features.
        present().then_some(Alu::B3(|a, b, c, out| unsafe { lanes(a, b, c, out) }))
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod hardware {
    use crate::alu::Alu;

    pub(super) fn fma_32() -> Option<Alu> {
        None
    }

    pub(super) fn fma_64() -> Option<Alu> {
        None
    }
}

pub(super) fn find(m: Mnemonic) -> Option<Alu> {
    if m.types.len() == 2 {
        return super::narrow::mixed(m);
    }
    match m.only_type()? {
        "f32" => single(m),
        "f64" => double(m),
        _ => pair(m),
    }
}

fn single(mut m: Mnemonic) -> Option<Alu> {
    let ftz = m.take("ftz");
    if m.take("approx") || (m.op == "div" && m.take("full")) {
        return approximate(m, ftz);
    }
    Some(match m.op {
        "abs" => {
            m.done()?;
            switch!(FTZ = ftz; lanes!(A1, |a: f32| -> f32 { canonical(operand::<FTZ>(a).abs()) }))
        }
        "neg" => {
            m.done()?;
            switch!(FTZ = ftz; lanes!(A1, |a: f32| -> f32 { canonical(-operand::<FTZ>(a)) }))
        }
        "min" | "max" => {
            let nan = m.take("NaN");
            let xorsign = m.take("xorsign");
            if xorsign && !m.take("abs") {
                return None;
            }
            m.done()?;
            let max = m.op == "max";
            switch!(MAX = max, FTZ = ftz, NAN = nan, XORSIGN = xorsign; lanes!(A2, |a: f32, b: f32| -> f32 {
                extreme::<MAX, NAN, XORSIGN>(operand::<FTZ>(a), operand::<FTZ>(b))
            }))
        }
        "copysign" if !ftz => {
            m.done()?;
            lanes!(A2, |a: u32, b: u32| -> u32 { a & 0x8000_0000 | b & 0x7fff_ffff })
        }
        op => {
            let rounding = m.take_any(&ROUNDINGS);
            let saturates = matches!(op, "add" | "sub" | "mul" | "fma" | "mad") && m.take("sat");
            m.done()?;
            // Addition and multiplication round to nearest unless told otherwise; the others must be told.
            let rounding = match op {
                "add" | "sub" | "mul" => rounding.unwrap_or(Rounding::Nearest),
                _ => rounding?,
            };
            macro_rules! single {
                ($OP:expr, $variant:ident($($x:ident),+), [$($operand:expr),+]) => {
                    switch!(FTZ = ftz, SAT = saturates; {
                        const OP: Op = $OP;
                        if rounding == Rounding::Nearest {
                            lanes!($variant, |$($x: f32),+| -> f32 {
                                $(let $x = operand::<FTZ>($x);)+
                                result::<FTZ, SAT>(OP.nearest_32($($operand),+))
                            })
                        } else {
                            rounded!(rounding; ROUNDING => lanes!($variant, |$($x: f32),+| -> f32 {
                                $(let $x = operand::<FTZ>($x);)+
                                result::<FTZ, SAT>(OP.directed_32($($operand),+, ROUNDING))
                            }))
                        }
                    })
                };
            }
            match op {
                "add" => single!(Op::Add, A2(a, b), [a, b, 0.0]),
                "sub" => single!(Op::Sub, A2(a, b), [a, b, 0.0]),
                "mul" => single!(Op::Mul, A2(a, b), [a, b, 0.0]),
                "fma" | "mad" => match hardware::fma_32() {
                    Some(fma) if rounding == Rounding::Nearest && !ftz && !saturates => fma,
                    _ => single!(Op::Fma, A3(a, b, c), [a, b, c]),
                },
                "div" => single!(Op::Div, A2(a, b), [a, b, 0.0]),
                "rcp" => single!(Op::Rcp, A1(a), [a, 0.0, 0.0]),
                "sqrt" => single!(Op::Sqrt, A1(a), [a, 0.0, 0.0]),
                _ => return None,
            }
        }
    })
}

/// What PTX promises an approximation of.
fn approximate(m: Mnemonic, ftz: bool) -> Option<Alu> {
    m.done()?;
    macro_rules! unary {
        (|$x:ident| $body:expr) => {
            switch!(FTZ = ftz; lanes!(A1, |a: f32| -> f32 {
                let $x = f64::from(operand::<FTZ>(a));
                result::<FTZ, false>($body as f32)
            }))
        };
    }
    Some(match m.op {
        "div" => switch!(FTZ = ftz; lanes!(A2, |a: f32, b: f32| -> f32 {
            result::<FTZ, false>(operand::<FTZ>(a) / operand::<FTZ>(b))
        })),
        "rcp" => unary!(|x| 1.0 / x),
        "sqrt" => unary!(|x| x.sqrt()),
        "rsqrt" => unary!(|x| 1.0 / x.sqrt()),
        "sin" => unary!(|x| x.sin()),
        "cos" => unary!(|x| x.cos()),
        "lg2" => unary!(|x| x.log2()),
        "ex2" => unary!(|x| x.exp2()),
        "tanh" if !ftz => unary!(|x| x.tanh()),
        _ => return None,
    })
}

fn double(mut m: Mnemonic) -> Option<Alu> {
    if m.take("approx") {
        let ftz = m.take("ftz");
        m.done()?;
        /// The upper half of a double, as `.approx.ftz.f64` reads and gives it (PTX ISA, rcp.approx.ftz.f64).
        #[inline(always)]
        fn upper(x: f64) -> f64 {
            let x = f64::from_bits(x.to_bits() & 0xffff_ffff_0000_0000);
            if x.is_subnormal() { 0_f64.copysign(x) } else { x }
        }
        /// NaN as the ISA's table of these instructions has it, which keeps no payload.
        #[inline(always)]
        fn canonical(x: f64) -> f64 {
            if x.is_nan() { f64::from_bits(0x7fff_ffff_0000_0000) } else { x }
        }
        return Some(match (m.op, ftz) {
            ("rcp", true) => lanes!(B1, |a: f64| -> f64 { canonical(upper(1.0 / upper(a))) }),
            ("rsqrt", true) => lanes!(B1, |a: f64| -> f64 { canonical(upper(1.0 / upper(a).sqrt())) }),
            ("rsqrt", false) => lanes!(B1, |a: f64| -> f64 { propagated(1.0 / a.sqrt(), [a]) }),
            _ => return None,
        });
    }
    Some(match m.op {
        // NaN operands keep their sign and payload and become quiet, as on an H200.
        "abs" => {
            m.done()?;
            lanes!(B1, |a: f64| -> f64 { if a.is_nan() { quiet(a) } else { a.abs() } })
        }
        "neg" => {
            m.done()?;
            lanes!(B1, |a: f64| -> f64 { if a.is_nan() { quiet(a) } else { -a } })
        }
        "min" => {
            m.done()?;
            lanes!(B2, |a: f64, b: f64| -> f64 { extreme_64::<false>(a, b) })
        }
        "max" => {
            m.done()?;
            lanes!(B2, |a: f64, b: f64| -> f64 { extreme_64::<true>(a, b) })
        }
        "copysign" => {
            m.done()?;
            lanes!(B2, |a: u64, b: u64| -> u64 { a & (1 << 63) | b & !(1 << 63) })
        }
        op => {
            let rounding = m.take_any(&ROUNDINGS);
            m.done()?;
            let rounding = match op {
                "add" | "sub" | "mul" => rounding.unwrap_or(Rounding::Nearest),
                _ => rounding?,
            };
            macro_rules! double {
                ($OP:expr, $variant:ident($($x:ident),+), [$($operand:expr),+]) => {{
                    const OP: Op = $OP;
                    if rounding == Rounding::Nearest {
                        lanes!($variant, |$($x: f64),+| -> f64 {
                            propagated(OP.nearest_64($($operand),+), [$($x),+])
                        })
                    } else {
                        rounded!(rounding; ROUNDING => lanes!($variant, |$($x: f64),+| -> f64 {
                            propagated(OP.directed_64($($operand),+, ROUNDING), [$($x),+])
                        }))
                    }
                }};
            }
            match op {
                "add" => double!(Op::Add, B2(a, b), [a, b, 0.0]),
                "sub" => double!(Op::Sub, B2(a, b), [a, b, 0.0]),
                "mul" => double!(Op::Mul, B2(a, b), [a, b, 0.0]),
                "fma" | "mad" => match hardware::fma_64() {
                    Some(fma) if rounding == Rounding::Nearest => fma,
                    _ => double!(Op::Fma, B3(a, b, c), [a, b, c]),
                },
                "div" => double!(Op::Div, B2(a, b), [a, b, 0.0]),
                "rcp" => double!(Op::Rcp, B1(a), [a, 0.0, 0.0]),
                "sqrt" => double!(Op::Sqrt, B1(a), [a, 0.0, 0.0]),
                _ => return None,
            }
        }
    })
}

/// Two single-precision numbers in a 64-bit register.
fn pair(mut m: Mnemonic) -> Option<Alu> {
    let ftz = m.take("ftz");
    let rounding = m.take_any(&ROUNDINGS);
    m.done()?;
    let rounding = if m.op == "fma" { rounding? } else { rounding.unwrap_or(Rounding::Nearest) };
    #[inline(always)]
    fn halves<const FTZ: bool>(registers: [u64; 3], f: impl Fn([f32; 3]) -> f32) -> u64 {
        let half = |shift: u32| {
            let x = f(registers.map(|bits| operand::<FTZ>(f32::from_bits((bits >> shift) as u32))));
            u64::from(result::<FTZ, false>(x).to_bits())
        };
        half(32) << 32 | half(0)
    }
    macro_rules! pair {
        ($OP:expr, $variant:ident($($x:ident),+), [$($operand:expr),+]) => {
            switch!(FTZ = ftz; {
                const OP: Op = $OP;
                if rounding == Rounding::Nearest {
                    lanes!($variant, |$($x: u64),+| -> u64 {
                        halves::<FTZ>([$($operand),+], |[a, b, c]| OP.nearest_32(a, b, c))
                    })
                } else {
                    rounded!(rounding; ROUNDING => lanes!($variant, |$($x: u64),+| -> u64 {
                        halves::<FTZ>([$($operand),+], |[a, b, c]| OP.directed_32(a, b, c, ROUNDING))
                    }))
                }
            })
        };
    }
    Some(match m.op {
        "add" => pair!(Op::Add, B2(a, b), [a, b, 0]),
        "sub" => pair!(Op::Sub, B2(a, b), [a, b, 0]),
        "mul" => pair!(Op::Mul, B2(a, b), [a, b, 0]),
        "fma" => pair!(Op::Fma, B3(a, b, c), [a, b, c]),
        _ => return None,
    })
}

/// The smaller or larger of two numbers, -0 below +0. A NaN gives way to a number unless it is asked for; with
/// `XORSIGN` magnitudes are compared, and the result has the product's sign.
#[inline(always)]
pub(super) fn extreme<const MAX: bool, const NAN: bool, const XORSIGN: bool>(a: f32, b: f32) -> f32 {
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    let (a, b) = if XORSIGN { (a.abs(), b.abs()) } else { (a, b) };
    // In this order integers compare as the floats do, and -0 is below +0.
    let key = |x: f32| {
        let bits = x.to_bits() as i32;
        bits ^ ((bits >> 31) as u32 >> 1) as i32
    };
    let first = if MAX { key(a) > key(b) } else { key(a) < key(b) };
    let number = if first { a } else { b };
    let number = if b.is_nan() { a } else { number };
    let number = if a.is_nan() { b } else { number };
    let nan = if NAN { a.is_nan() | b.is_nan() } else { number.is_nan() };
    if nan {
        f32::from_bits(NAN_32)
    } else if XORSIGN {
        f32::from_bits(number.to_bits() | sign)
    } else {
        number
    }
}

#[inline(always)]
fn extreme_64<const MAX: bool>(a: f64, b: f64) -> f64 {
    if a.is_nan() | b.is_nan() {
        return if !a.is_nan() {
            a
        } else if !b.is_nan() {
            b
        } else {
            quiet(a)
        };
    }
    let key = |x: f64| {
        let bits = x.to_bits() as i64;
        bits ^ ((bits >> 63) as u64 >> 1) as i64
    };
    let first = if MAX { key(a) > key(b) } else { key(a) < key(b) };
    if first { a } else { b }
}
