//! CUDA expressions of one thread, in tables: each beside what it must give, computed in Rust. A table becomes a
//! kernel that evaluates all of its expressions on three inputs a thread.

use half::{bf16, f16};

use super::{from_bytes, to_bytes};

/// What an expression must give.
#[derive(Clone, Copy)]
pub enum Expected {
    Int(fn(&In) -> u64),
    F32(fn(&In) -> f32),
    F64(fn(&In) -> f64),
    /// A number of these bits; a NaN for any NaN.
    F16(fn(&In) -> f16),
    Bf16(fn(&In) -> bf16),
    /// Close to this, relatively; what the hardware approximates has other last bits.
    Near(fn(&In) -> f64, f64),
    /// Known to the hardware alone.
    Device,
}

/// A table: the CUDA text that declares the variables, and the expressions.
pub struct Table {
    pub name: &'static str,
    pub variables: &'static str,
    pub inputs: Inputs,
    /// The first architecture that has the instructions.
    pub since: u32,
    pub expressions: Vec<(&'static str, Expected)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Inputs {
    F32,
    F64,
    F16,
    Bf16,
    I32,
    I64,
}

/// The inputs of a thread, as bits.
pub struct In(pub [u64; 3]);

impl In {
    fn f(&self, index: usize) -> f32 {
        f32::from_bits(self.0[index] as u32)
    }
    fn d(&self, index: usize) -> f64 {
        f64::from_bits(self.0[index])
    }
    fn h(&self, index: usize) -> f16 {
        f16::from_bits(self.0[index] as u16)
    }
    fn b(&self, index: usize) -> bf16 {
        bf16::from_bits(self.0[index] as u16)
    }
    fn u(&self, index: usize) -> u32 {
        self.0[index] as u32
    }
    fn i(&self, index: usize) -> i32 {
        self.0[index] as i32
    }
    fn w(&self, index: usize) -> u64 {
        self.0[index]
    }
    fn l(&self, index: usize) -> i64 {
        self.0[index] as i64
    }
}

const HELPERS: &str = r#"
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using int64_t = long long;
__device__ uint64_t bits(float value) { return __float_as_uint(value); }
__device__ uint64_t bits(double value) { return uint64_t(__double_as_longlong(value)); }
__device__ uint64_t bits(int value) { return uint32_t(value); }
__device__ uint64_t bits(bool value) { return value; }
__device__ uint64_t bits(uint32_t value) { return value; }
__device__ uint64_t bits(unsigned short value) { return value; }
__device__ uint64_t bits(int64_t value) { return uint64_t(value); }
__device__ uint64_t bits(uint64_t value) { return value; }
#define ASM(type, constraint, text, ...) ([&] { type result; asm(text : "=" constraint(result) : __VA_ARGS__); return result; }())
#define HALF(text, ...) ASM(unsigned short, "h", text, __VA_ARGS__)
"#;

impl Table {
    pub fn kernel(&self) -> String {
        format!("table_{}", self.name)
    }

    /// The kernel (int count, const uint64_t* in, uint64_t* out): thread i takes in[3 * i ...] and gives out[k * count + i].
    pub fn source(&self) -> String {
        let mut source = HELPERS.to_owned();
        source += &format!(
            "extern \"C\" __global__ void {}(int count, const uint64_t* in, uint64_t* out) {{\n  \
             const int thread = blockIdx.x * blockDim.x + threadIdx.x;\n  if (thread >= count) return;\n  \
             const uint64_t a_bits = in[3 * thread], b_bits = in[3 * thread + 1], c_bits = in[3 * thread + 2];\n  {}\n",
            self.kernel(),
            self.variables
        );
        for (index, (cuda, _)) in self.expressions.iter().enumerate() {
            source += &format!("  out[{index} * count + thread] = bits({cuda});\n");
        }
        source + "}\n"
    }

    /// Three words a thread: special values against each other first, then random ones.
    pub fn words(&self, threads: usize) -> Vec<u64> {
        let special = self.inputs.special();
        let mut state = 0x5851_f42d_4c95_7f2d_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) ^ state
        };
        let mut words = Vec::with_capacity(3 * threads);
        for thread in 0..threads {
            let any = random() as usize;
            let pairs = special.len() * special.len();
            if thread < pairs {
                words.extend([special[thread / special.len()], special[thread % special.len()]]);
                words.push(special[any % special.len()]);
            } else {
                words.extend((0..3).map(|_| self.inputs.random(random(), random())));
            }
        }
        words
    }

    /// Says which results differ from what they must be.
    pub fn check(&self, words: &[u64], results: &[u64]) -> Result<(), String> {
        let threads = words.len() / 3;
        let mut problems = Vec::new();
        for (index, (cuda, expected)) in self.expressions.iter().enumerate() {
            let wrong = (0..threads).find_map(|thread| {
                let input = In(words[3 * thread..3 * thread + 3].try_into().expect("three words"));
                let actual = results[index * threads + thread];
                let must = expected.rejects(&input, actual)?;
                let [a, b, c] = input.0;
                Some(format!(
                    "{cuda}: of a = {a:#x}, b = {b:#x}, c = {c:#x} is {actual:#x} and must be {must}"
                ))
            });
            problems.extend(wrong);
        }
        if problems.is_empty() { Ok(()) } else { Err(format!("{}:\n{}", self.name, problems.join("\n"))) }
    }

    /// Whether the same bits come of it on every device.
    pub fn is_exact(&self, index: usize) -> bool {
        !matches!(self.expressions[index].1, Expected::Near(..))
    }
}

impl Expected {
    /// What must have come, where something else did.
    fn rejects(&self, input: &In, actual: u64) -> Option<String> {
        let (wrong, must) = match self {
            Expected::Int(f) => (f(input) != actual, format!("{:#x}", f(input))),
            Expected::F32(f) => {
                let (actual, must) = (f32::from_bits(actual as u32), f(input));
                let same = actual.to_bits() == must.to_bits() || actual.is_nan() && must.is_nan();
                (!same, format!("{must:e} = {:#x}", must.to_bits()))
            }
            Expected::F64(f) => {
                let (actual, must) = (f64::from_bits(actual), f(input));
                let same = actual.to_bits() == must.to_bits() || actual.is_nan() && must.is_nan();
                (!same, format!("{must:e} = {:#x}", must.to_bits()))
            }
            Expected::F16(f) => {
                let (actual, must) = (f16::from_bits(actual as u16), f(input));
                let same = actual.to_bits() == must.to_bits() || actual.is_nan() && must.is_nan();
                (!same, format!("{must} = {:#x}", must.to_bits()))
            }
            Expected::Bf16(f) => {
                let (actual, must) = (bf16::from_bits(actual as u16), f(input));
                let same = actual.to_bits() == must.to_bits() || actual.is_nan() && must.is_nan();
                (!same, format!("{must} = {:#x}", must.to_bits()))
            }
            Expected::Near(f, tolerance) => {
                let (actual, must) = (f64::from(f32::from_bits(actual as u32)), f(input));
                let near = (actual - must).abs() <= tolerance * must.abs().max(1e-30);
                (
                    !(near || actual.is_nan() && must.is_nan() || actual == must as f32 as f64),
                    format!("near {must:e}"),
                )
            }
            Expected::Device => (false, String::new()),
        };
        wrong.then_some(must)
    }
}

impl Inputs {
    fn special(self) -> Vec<u64> {
        let f32s = [
            0.0f32,
            -0.0,
            1.0,
            -1.0,
            0.5,
            1.5,
            2.5,
            -2.5,
            3.0,
            1e-45,
            -1e-45,
            1e-40,
            f32::MIN_POSITIVE,
            f32::MAX,
            f32::MIN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            2147483648.0,
            4294967296.0,
            -2147483904.0,
            9.223_372e18,
            1.8446744e19,
            0.99999994,
            16777217.0,
            65504.0,
            65520.0,
            6e-8,
            3e-8,
        ];
        let f64s = [
            0.0f64,
            -0.0,
            1.0,
            -1.0,
            0.5,
            1.5,
            2.5,
            -2.5,
            3.0,
            5e-324,
            -5e-324,
            1e-310,
            f64::MIN_POSITIVE,
            f64::MAX,
            f64::MIN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            2147483647.5,
            2147483648.0,
            4294967295.5,
            -2147483648.5,
            9.223372036854775e18,
            9.223372036854776e18,
            1.8446744073709552e19,
            1e-45,
            3.4028235677973366e38,
            1e-40,
        ];
        let f16s = [
            0u16, 0x8000, 0x3c00, 0xbc00, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
            0x3800, 0x4100,
        ];
        let bf16s = [
            0u16, 0x8000, 0x3f80, 0xbf80, 1, 0x8001, 0x7f, 0x80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0,
            0x3f00, 0x4020,
        ];
        let ints = [
            0u64,
            1,
            2,
            3,
            7,
            31,
            32,
            33,
            63,
            64,
            255,
            256,
            0x7fff,
            0x8000,
            0xffff,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
        ];
        match self {
            Inputs::F32 => f32s.iter().map(|value| u64::from(value.to_bits())).collect(),
            Inputs::F64 => f64s.iter().map(|value| value.to_bits()).collect(),
            Inputs::F16 => f16s.iter().map(|bits| u64::from(*bits)).collect(),
            Inputs::Bf16 => bf16s.iter().map(|bits| u64::from(*bits)).collect(),
            Inputs::I32 => {
                ints.iter().chain(&[u64::MAX, u64::MAX - 6]).map(|bits| bits & 0xffff_ffff).collect()
            }
            Inputs::I64 => {
                let wide = [1 << 32, (1 << 32) - 1, i64::MAX as u64, i64::MIN as u64, u64::MAX, u64::MAX - 6];
                ints.iter().copied().chain(wide).collect()
            }
        }
    }

    /// Any bits, or numbers of everyday size.
    fn random(self, bits: u64, kind: u64) -> u64 {
        let unit = (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        let everyday = unit * [1.0, 100.0, 1e5, 1e10][(kind >> 8 & 3) as usize];
        let any = kind.is_multiple_of(3);
        match self {
            Inputs::F32 if any => bits & 0xffff_ffff,
            Inputs::F32 => u64::from((everyday as f32).to_bits()),
            Inputs::F64 if any => bits,
            Inputs::F64 => everyday.to_bits(),
            Inputs::F16 if any => bits & 0xffff,
            Inputs::F16 => u64::from(f16::from_f64(everyday).to_bits()),
            Inputs::Bf16 if any => bits & 0xffff,
            Inputs::Bf16 => u64::from(bf16::from_f64(everyday).to_bits()),
            Inputs::I32 => (bits & 0xffff_ffff) >> if any { 0 } else { kind >> 8 & 31 },
            Inputs::I64 => bits >> if any { 0 } else { kind >> 8 & 63 },
        }
    }
}

/// Where a rounding goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Zero,
    Up,
    Down,
}

/// The f32 of exact + tail, where the tail is less than half of the exact part's last place in f64.
fn directed(value: f64, tail: f64, to: To) -> f32 {
    let nearest = value as f32;
    if value.is_nan() || value.is_infinite() || value == 0.0 && tail == 0.0 {
        return nearest;
    }
    // Whether the nearest lies above or below what it stands for.
    let over = if f64::from(nearest) == value { -tail } else { f64::from(nearest) - value };
    let lower = over > 0.0 && (to == To::Down || to == To::Zero && value > 0.0);
    let raise = over < 0.0 && (to == To::Up || to == To::Zero && value < 0.0);
    match (lower, raise) {
        (true, _) => nearest.next_down(),
        (_, true) => nearest.next_up(),
        _ => nearest,
    }
}

fn sum_to(a: f64, b: f64, to: To) -> f32 {
    let sum = a + b;
    if sum == 0.0 && to == To::Down && (a != 0.0 || a.is_sign_positive() != b.is_sign_positive()) {
        return -0.0;
    }
    let b_part = sum - a;
    let tail = if sum.is_finite() { (a - (sum - b_part)) + (b - b_part) } else { 0.0 };
    directed(sum, tail, to)
}

fn div_to(a: f32, b: f32, to: To) -> f32 {
    let (a, b) = (f64::from(a), f64::from(b));
    let quotient = a / b;
    let rest = if quotient.is_finite() && b != 0.0 && b.is_finite() {
        quotient.mul_add(-b, a) * b.signum()
    } else {
        0.0
    };
    // Only its sign matters.
    directed(quotient, rest.signum() * if rest == 0.0 { 0.0 } else { f64::MIN_POSITIVE }, to)
}

fn sqrt_to(a: f32, to: To) -> f32 {
    let a = f64::from(a);
    let root = a.sqrt();
    let rest = if root.is_finite() { root.mul_add(-root, a) } else { 0.0 };
    directed(root, rest, to)
}

fn fma_to(v: &In, to: To) -> f32 {
    let (product, c) = (f64::from(v.f(0)) * f64::from(v.f(1)), f64::from(v.f(2)));
    sum_to(product, c, to)
}

/// A float as an integer of these bits: saturated; NaN is 0 from f32 to 32 bits, else the highest bit alone.
fn to_int(value: f64, bits: u32, signed: bool, from_f64: bool) -> u64 {
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    if value.is_nan() {
        return if from_f64 || bits == 64 { 1 << (bits - 1) } else { 0 };
    }
    match (signed, bits) {
        (true, 32) => u64::from(value as i32 as u32),
        (true, _) => value as i64 as u64,
        (false, 32) => u64::from(value as u32),
        (false, _) => value as u64 & mask,
    }
}

/// An integer as f32, rounded.
fn from_int(value: i128, to: To) -> f32 {
    let nearest = value as f32;
    let back = nearest as i128;
    match to {
        To::Zero if value > 0 && back > value => nearest.next_down(),
        To::Zero if value < 0 && back < value => nearest.next_up(),
        To::Down if back > value => nearest.next_down(),
        To::Up if back < value => nearest.next_up(),
        _ => nearest,
    }
}

fn wide_from_int(value: i128, to: To) -> f64 {
    let nearest = value as f64;
    let back = nearest as i128;
    match to {
        To::Zero if value > 0 && back > value => nearest.next_down(),
        To::Zero if value < 0 && back < value => nearest.next_up(),
        To::Down if back > value => nearest.next_down(),
        To::Up if back < value => nearest.next_up(),
        _ => nearest,
    }
}

fn minimum<T: PartialOrd + Copy>(a: T, b: T, is_nan: fn(T) -> bool, negative: fn(T) -> bool) -> T {
    match () {
        () if is_nan(a) => b,
        () if is_nan(b) => a,
        () if a == b => {
            if negative(a) {
                a
            } else {
                b
            }
        }
        () => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

fn maximum<T: PartialOrd + Copy>(a: T, b: T, is_nan: fn(T) -> bool, negative: fn(T) -> bool) -> T {
    match () {
        () if is_nan(a) => b,
        () if is_nan(b) => a,
        () if a == b => {
            if negative(a) {
                b
            } else {
                a
            }
        }
        () => {
            if a > b {
                a
            } else {
                b
            }
        }
    }
}

/// A finite f16 in units of 2^-24.
fn fixed(value: f16) -> i128 {
    (value.to_f64() * (1u64 << 24) as f64) as i128
}

/// a * b + c rounded once: the exact value in units of 2^-48 becomes an f64 whose last bit tells of a rest.
fn half_fma(a: f16, b: f16, c: f16) -> f16 {
    if !(a.is_finite() && b.is_finite() && c.is_finite()) {
        return f16::from_f64(a.to_f64() * b.to_f64() + c.to_f64());
    }
    let exact = fixed(a) * fixed(b) + (fixed(c) << 24);
    if exact == 0 {
        return f16::from_f64(a.to_f64() * b.to_f64() + c.to_f64());
    }
    let magnitude = exact.unsigned_abs();
    let dropped = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let mut kept = (magnitude >> dropped) as u64;
    if (u128::from(kept) << dropped) != magnitude {
        kept |= 1;
    }
    let value = kept as f64 * 2f64.powi(dropped as i32 - 48);
    f16::from_f32(to_odd(if exact < 0 { -value } else { value }))
}

/// As f16, towards zero.
fn half_to_zero(value: f32) -> f16 {
    let nearest = f16::from_f32(value);
    if nearest.to_f32().abs() > value.abs() { f16::from_bits(nearest.to_bits() - 1) } else { nearest }
}

fn bf16_to_zero(value: f32) -> bf16 {
    if value.is_nan() { bf16::NAN } else { bf16::from_bits((value.to_bits() >> 16) as u16) }
}

/// a * b + c rounded once to bf16: the product of two is exact in f32's double.
fn bf16_fma(a: bf16, b: bf16, c: bf16) -> bf16 {
    let (product, c) = (a.to_f64() * b.to_f64(), c.to_f64());
    let sum = product + c;
    if !sum.is_finite() || sum == 0.0 {
        return bf16::from_f64(sum);
    }
    let part = sum - product;
    let tail = (product - (sum - part)) + (c - part);
    // Rounded to odd: what is left shows in the last bit.
    let odd = match tail {
        0.0 => sum,
        _ if sum.to_bits() & 1 == 1 => sum,
        _ if (tail > 0.0) == (sum > 0.0) => f64::from_bits(sum.to_bits() + 1),
        _ => f64::from_bits(sum.to_bits() - 1),
    };
    nearest_bf16(odd)
}

/// Ties to even, from f64 at once.
fn nearest_bf16(value: f64) -> bf16 {
    bf16::from_f32(to_odd(value))
}

/// An f32 whose last bit tells of a rest, so that rounding it further rounds once.
fn to_odd(value: f64) -> f32 {
    let narrow = value as f32;
    let narrow =
        if f64::from(narrow).abs() > value.abs() { f32::from_bits(narrow.to_bits() - 1) } else { narrow };
    if f64::from(narrow) != value { f32::from_bits(narrow.to_bits() | 1) } else { narrow }
}

pub fn tables() -> Vec<Table> {
    vec![
        floats(),
        float_conversions(),
        functions(),
        doubles(),
        double_conversions(),
        words(),
        wide_words(),
        halves(),
        halves_since_80(),
        bfloats(),
        bfloats_since_90(),
    ]
}

fn floats() -> Table {
    use Expected::{F32, Int};
    Table {
        name: "f32",
        variables: "const float a = __uint_as_float(a_bits), b = __uint_as_float(b_bits), c = __uint_as_float(c_bits);",
        inputs: Inputs::F32,
        since: 75,
        expressions: vec![
            ("a + b", F32(|v| v.f(0) + v.f(1))),
            ("a - b", F32(|v| v.f(0) - v.f(1))),
            ("a * b", F32(|v| v.f(0) * v.f(1))),
            ("a / b", F32(|v| v.f(0) / v.f(1))),
            ("__fmaf_rn(a, b, c)", F32(|v| v.f(0).mul_add(v.f(1), v.f(2)))),
            ("__fmaf_rz(a, b, c)", F32(|v| fma_to(v, To::Zero))),
            ("__fmaf_ru(a, b, c)", F32(|v| fma_to(v, To::Up))),
            ("__fmaf_rd(a, b, c)", F32(|v| fma_to(v, To::Down))),
            ("__fadd_rz(a, b)", F32(|v| sum_to(v.f(0).into(), v.f(1).into(), To::Zero))),
            ("__fadd_ru(a, b)", F32(|v| sum_to(v.f(0).into(), v.f(1).into(), To::Up))),
            ("__fadd_rd(a, b)", F32(|v| sum_to(v.f(0).into(), v.f(1).into(), To::Down))),
            ("__fmul_rz(a, b)", F32(|v| directed(f64::from(v.f(0)) * f64::from(v.f(1)), 0.0, To::Zero))),
            ("__fmul_ru(a, b)", F32(|v| directed(f64::from(v.f(0)) * f64::from(v.f(1)), 0.0, To::Up))),
            ("__fmul_rd(a, b)", F32(|v| directed(f64::from(v.f(0)) * f64::from(v.f(1)), 0.0, To::Down))),
            ("__fdiv_rn(a, b)", F32(|v| v.f(0) / v.f(1))),
            ("__fdiv_rz(a, b)", F32(|v| div_to(v.f(0), v.f(1), To::Zero))),
            ("__fdiv_ru(a, b)", F32(|v| div_to(v.f(0), v.f(1), To::Up))),
            ("__fdiv_rd(a, b)", F32(|v| div_to(v.f(0), v.f(1), To::Down))),
            ("sqrtf(a)", F32(|v| v.f(0).sqrt())),
            ("__fsqrt_rz(a)", F32(|v| sqrt_to(v.f(0), To::Zero))),
            ("__fsqrt_ru(a)", F32(|v| sqrt_to(v.f(0), To::Up))),
            ("__fsqrt_rd(a)", F32(|v| sqrt_to(v.f(0), To::Down))),
            ("__frcp_rn(b)", F32(|v| 1.0 / v.f(1))),
            ("__frcp_rz(b)", F32(|v| div_to(1.0, v.f(1), To::Zero))),
            ("__frcp_ru(b)", F32(|v| div_to(1.0, v.f(1), To::Up))),
            ("__frcp_rd(b)", F32(|v| div_to(1.0, v.f(1), To::Down))),
            ("fminf(a, b)", F32(|v| minimum(v.f(0), v.f(1), f32::is_nan, f32::is_sign_negative))),
            ("fmaxf(a, b)", F32(|v| maximum(v.f(0), v.f(1), f32::is_nan, f32::is_sign_negative))),
            ("fabsf(a)", F32(|v| v.f(0).abs())),
            ("-a", F32(|v| -v.f(0))),
            ("floorf(a)", F32(|v| v.f(0).floor())),
            ("ceilf(a)", F32(|v| v.f(0).ceil())),
            ("truncf(a)", F32(|v| v.f(0).trunc())),
            ("rintf(a)", F32(|v| v.f(0).round_ties_even())),
            ("roundf(a)", F32(|v| v.f(0).round())),
            ("copysignf(a, b)", F32(|v| v.f(0).copysign(v.f(1)))),
            ("__saturatef(a)", F32(|v| if v.f(0).is_nan() || v.f(0) <= 0.0 { 0.0 } else { v.f(0).min(1.0) })),
            ("a < b", Int(|v| (v.f(0) < v.f(1)).into())),
            ("a <= b", Int(|v| (v.f(0) <= v.f(1)).into())),
            ("a == b", Int(|v| (v.f(0) == v.f(1)).into())),
            ("a != b", Int(|v| (v.f(0) != v.f(1)).into())),
            ("!(a >= b)", Int(|v| (v.f(0) < v.f(1) || v.f(0).is_nan() || v.f(1).is_nan()).into())),
            ("isnan(a)", Int(|v| v.f(0).is_nan().into())),
            ("isinf(a) || isfinite(b)", Int(|v| (v.f(0).is_infinite() || v.f(1).is_finite()).into())),
            ("signbit(a)", Int(|v| v.f(0).is_sign_negative().into())),
            ("a < b ? a : c", F32(|v| if v.f(0) < v.f(1) { v.f(0) } else { v.f(2) })),
        ],
    }
}

macro_rules! roundings {
    ($list:ident, $input:ident, $from_f64:literal; $($name:literal $bits:literal $signed:literal),+ $(,)?) => {
        $(
            $list.push((concat!("__", $name, "_rn(a)"), Expected::Int(|v| to_int(v.$input(0).round_ties_even().into(), $bits, $signed, $from_f64))));
            $list.push((concat!("__", $name, "_rz(a)"), Expected::Int(|v| to_int(v.$input(0).trunc().into(), $bits, $signed, $from_f64))));
            $list.push((concat!("__", $name, "_ru(a)"), Expected::Int(|v| to_int(v.$input(0).ceil().into(), $bits, $signed, $from_f64))));
            $list.push((concat!("__", $name, "_rd(a)"), Expected::Int(|v| to_int(v.$input(0).floor().into(), $bits, $signed, $from_f64))));
        )+
    };
}

fn float_conversions() -> Table {
    use Expected::{F32, F64, Int};
    let mut expressions = vec![
        ("double(a)", F64(|v| v.f(0).into())),
        ("float(double(a) * 3.0)", F32(|v| (f64::from(v.f(0)) * 3.0) as f32)),
        ("__float_as_int(a)", Int(|v| u64::from(v.f(0).to_bits()))),
        (
            "fabsf(a) < 100.f ? int(static_cast<signed char>(a)) : 0",
            Int(|v| if v.f(0).abs() < 100.0 { v.f(0) as i8 as i32 as u32 as u64 } else { 0 }),
        ),
        (
            "fabsf(a) < 30000.f ? int(static_cast<short>(a)) : 0",
            Int(|v| if v.f(0).abs() < 30000.0 { v.f(0) as i16 as i32 as u32 as u64 } else { 0 }),
        ),
        (
            "a >= 0.f && a < 255.f ? int(static_cast<unsigned char>(a)) : 0",
            Int(|v| if v.f(0) >= 0.0 && v.f(0) < 255.0 { v.f(0) as u8 as u64 } else { 0 }),
        ),
        ("bool(a)", Int(|v| (v.f(0) != 0.0).into())),
    ];
    roundings!(expressions, f, false; "float2int" 32 true, "float2uint" 32 false, "float2ll" 64 true, "float2ull" 64 false);
    Table {
        name: "f32_conversions",
        variables: "const float a = __uint_as_float(a_bits);",
        inputs: Inputs::F32,
        since: 75,
        expressions,
    }
}

/// Functions that the compiler expands to code of its own, or that the hardware approximates.
fn functions() -> Table {
    use Expected::Near;
    let within = |f: fn(&In) -> f64| Near(f, 4e-6);
    Table {
        name: "functions",
        variables: "const float wild = __uint_as_float(a_bits), a = fabsf(wild) < 1e4f ? wild : 0.75f, p = fabsf(a) + 0.01f;",
        inputs: Inputs::F32,
        since: 75,
        expressions: vec![
            ("expf(fminf(a, 80.f))", Near(|v| tame(v).min(80.0).exp(), 1e-5)),
            ("logf(p) + 20.f", within(|v| f64::from((v_f32(v).abs()) + 0.01f32).ln() + 20.0)),
            ("exp2f(fminf(a, 100.f))", Near(|v| tame(v).min(100.0).exp2(), 1e-5)),
            ("log2f(p) + 20.f", within(|v| f64::from((v_f32(v).abs()) + 0.01f32).log2() + 20.0)),
            ("rsqrtf(p)", within(|v| 1.0 / f64::from((v_f32(v).abs()) + 0.01f32).sqrt())),
            ("tanhf(a)", within(|v| tame(v).tanh())),
            ("powf(p, 1.5f)", Near(|v| f64::from((v_f32(v).abs()) + 0.01f32).powf(1.5), 1e-5)),
            ("__fdividef(a, p)", within(|v| tame(v) / f64::from((v_f32(v).abs()) + 0.01f32))),
            ("float(exp(double(fminf(a, 80.f))))", Near(|v| tame(v).min(80.0).exp(), 1e-6)),
            (
                "float(log(double(p)) + 20.0)",
                Near(|v| f64::from((v_f32(v).abs()) + 0.01f32).ln() + 20.0, 1e-6),
            ),
            ("hypotf(a, p)", within(|v| tame(v).hypot(f64::from((v_f32(v).abs()) + 0.01f32)))),
            (
                "fabsf(a) < 30.f ? sinf(a) + 2.f : 2.f",
                within(|v| if tame(v).abs() < 30.0 { tame(v).sin() + 2.0 } else { 2.0 }),
            ),
            ("cosf(a) + 2.f", within(|v| tame(v).cos() + 2.0)),
            ("sinf(a * 1e8f) + 2.f", Near(|v| f64::from(v_f32(v) * 1e8f32).sin() + 2.0, 4e-6)),
            ("float(sin(double(a)) + 2.0)", Near(|v| tame(v).sin() + 2.0, 1e-6)),
            ("fmodf(a, 0.7f) + 1.f", Near(|v| (tame(v) % f64::from(0.7f32)) + 1.0, 1e-6)),
        ],
    }
}

fn v_f32(v: &In) -> f32 {
    if v.f(0).abs() < 1e4 { v.f(0) } else { 0.75 }
}

fn tame(v: &In) -> f64 {
    v_f32(v).into()
}

fn doubles() -> Table {
    use Expected::{Device, F64, Int};
    Table {
        name: "f64",
        variables: "const double a = __longlong_as_double(a_bits), b = __longlong_as_double(b_bits), c = __longlong_as_double(c_bits);",
        inputs: Inputs::F64,
        since: 75,
        expressions: vec![
            ("a + b", F64(|v| v.d(0) + v.d(1))),
            ("a - b", F64(|v| v.d(0) - v.d(1))),
            ("a * b", F64(|v| v.d(0) * v.d(1))),
            ("a / b", F64(|v| v.d(0) / v.d(1))),
            ("__fma_rn(a, b, c)", F64(|v| v.d(0).mul_add(v.d(1), v.d(2)))),
            ("__fma_rz(a, b, c)", Device),
            ("__fma_ru(a, b, c)", Device),
            ("__fma_rd(a, b, c)", Device),
            ("__dadd_rz(a, b)", Device),
            ("__dadd_ru(a, b)", Device),
            ("__dadd_rd(a, b)", Device),
            ("__dmul_rz(a, b)", Device),
            ("__dmul_ru(a, b)", Device),
            ("__dmul_rd(a, b)", Device),
            ("__ddiv_rz(a, b)", Device),
            ("__ddiv_ru(a, b)", Device),
            ("__ddiv_rd(a, b)", Device),
            ("__dsqrt_rz(a)", Device),
            ("__dsqrt_ru(a)", Device),
            ("__dsqrt_rd(a)", Device),
            ("__drcp_rz(a)", Device),
            ("__drcp_ru(a)", Device),
            ("__drcp_rd(a)", Device),
            ("sqrt(a)", F64(|v| v.d(0).sqrt())),
            ("__drcp_rn(a)", F64(|v| 1.0 / v.d(0))),
            ("fmin(a, b)", F64(|v| minimum(v.d(0), v.d(1), f64::is_nan, f64::is_sign_negative))),
            ("fmax(a, b)", F64(|v| maximum(v.d(0), v.d(1), f64::is_nan, f64::is_sign_negative))),
            ("fabs(a)", F64(|v| v.d(0).abs())),
            ("-a", F64(|v| -v.d(0))),
            ("floor(a)", F64(|v| v.d(0).floor())),
            ("ceil(a)", F64(|v| v.d(0).ceil())),
            ("trunc(a)", F64(|v| v.d(0).trunc())),
            ("rint(a)", F64(|v| v.d(0).round_ties_even())),
            ("copysign(a, b)", F64(|v| v.d(0).copysign(v.d(1)))),
            ("a < b", Int(|v| (v.d(0) < v.d(1)).into())),
            ("a != b", Int(|v| (v.d(0) != v.d(1)).into())),
            ("!(a >= b)", Int(|v| (v.d(0) < v.d(1) || v.d(0).is_nan() || v.d(1).is_nan()).into())),
            ("a != a || b == c", Int(|v| (v.d(0).is_nan() || v.d(1) == v.d(2)).into())),
        ],
    }
}

fn narrowed(v: &In, to: To) -> f32 {
    directed(v.d(0), 0.0, to)
}

fn double_conversions() -> Table {
    use Expected::{F32, F64, Int};
    let mut expressions = vec![
        ("__double2float_rn(a)", F32(|v| v.d(0) as f32)),
        ("__double2float_rz(a)", F32(|v| narrowed(v, To::Zero))),
        ("__double2float_ru(a)", F32(|v| narrowed(v, To::Up))),
        ("__double2float_rd(a)", F32(|v| narrowed(v, To::Down))),
        ("__double2hiint(a)", Int(|v| v.w(0) >> 32)),
        ("__double2loint(a)", Int(|v| v.w(0) & 0xffff_ffff)),
        (
            "__hiloint2double(__double2hiint(a), int(b_bits))",
            F64(|v| f64::from_bits(v.w(0) >> 32 << 32 | v.w(1) & 0xffff_ffff)),
        ),
    ];
    roundings!(expressions, d, true; "double2int" 32 true, "double2uint" 32 false, "double2ll" 64 true, "double2ull" 64 false);
    Table {
        name: "f64_conversions",
        variables: "const double a = __longlong_as_double(a_bits);",
        inputs: Inputs::F64,
        since: 75,
        expressions,
    }
}

fn words() -> Table {
    use Expected::{F32, F64, Int};
    Table {
        name: "i32",
        variables: "const int a = int(a_bits), b = int(b_bits), c = int(c_bits); const uint32_t ua = a, ub = b, uc = c;",
        inputs: Inputs::I32,
        since: 75,
        expressions: vec![
            ("ua + ub", Int(|v| v.u(0).wrapping_add(v.u(1)).into())),
            ("ua * ub + uc", Int(|v| v.u(0).wrapping_mul(v.u(1)).wrapping_add(v.u(2)).into())),
            (
                "b == 0 || (b == -1 && ua == 0x80000000u) ? 0 : a / b",
                Int(|v| v.i(0).checked_div(v.i(1)).unwrap_or(0) as u32 as u64),
            ),
            (
                "b == 0 || (b == -1 && ua == 0x80000000u) ? 0 : a % b",
                Int(|v| v.i(0).checked_rem(v.i(1)).unwrap_or(0) as u32 as u64),
            ),
            ("ub == 0 ? 0u : ua / ub", Int(|v| v.u(0).checked_div(v.u(1)).unwrap_or(0).into())),
            ("ub == 0 ? 0u : ua % ub", Int(|v| v.u(0).checked_rem(v.u(1)).unwrap_or(0).into())),
            ("ua / 7u", Int(|v| (v.u(0) / 7).into())),
            ("a % 10", Int(|v| (v.i(0) % 10) as u32 as u64)),
            ("__mulhi(a, b)", Int(|v| ((i64::from(v.i(0)) * i64::from(v.i(1))) >> 32) as u32 as u64)),
            ("__umulhi(ua, ub)", Int(|v| (u64::from(v.u(0)) * u64::from(v.u(1))) >> 32)),
            (
                "int64_t(a) * b + c",
                Int(|v| (i64::from(v.i(0)) * i64::from(v.i(1))).wrapping_add(v.i(2).into()) as u64),
            ),
            ("uint64_t(ua) * ub", Int(|v| u64::from(v.u(0)) * u64::from(v.u(1)))),
            ("__mul24(a, b)", Int(|v| (v.i(0) << 8 >> 8).wrapping_mul(v.i(1) << 8 >> 8) as u32 as u64)),
            ("ua << (ub & 31)", Int(|v| v.u(0).wrapping_shl(v.u(1)).into())),
            ("ua >> (ub & 31)", Int(|v| v.u(0).wrapping_shr(v.u(1)).into())),
            ("a >> (ub & 31)", Int(|v| v.i(0).wrapping_shr(v.u(1)) as u32 as u64)),
            ("(ua & ub) ^ (~ua | uc)", Int(|v| ((v.u(0) & v.u(1)) ^ (!v.u(0) | v.u(2))).into())),
            ("min(a, b)", Int(|v| v.i(0).min(v.i(1)) as u32 as u64)),
            ("max(ua, ub)", Int(|v| v.u(0).max(v.u(1)).into())),
            ("abs(a)", Int(|v| v.i(0).wrapping_abs() as u32 as u64)),
            ("__popc(ua)", Int(|v| v.u(0).count_ones().into())),
            ("__clz(a)", Int(|v| v.u(0).leading_zeros().into())),
            ("__ffs(a)", Int(|v| if v.u(0) == 0 { 0 } else { u64::from(v.u(0).trailing_zeros()) + 1 })),
            ("__brev(ua)", Int(|v| v.u(0).reverse_bits().into())),
            ("__byte_perm(ua, ub, 0x5140)", Int(|v| byte_perm(v.u(0), v.u(1), 0x5140).into())),
            ("__byte_perm(ua, ub, uc & 0x7777)", Int(|v| byte_perm(v.u(0), v.u(1), v.u(2) & 0x7777).into())),
            (
                "__funnelshift_l(ua, ub, uc)",
                Int(|v| funnel(v).rotate_left(0).wrapping_shl(v.u(2) & 31) >> 32),
            ),
            ("__funnelshift_r(ua, ub, uc)", Int(|v| funnel(v) >> (v.u(2) & 31) & 0xffff_ffff)),
            (
                "__funnelshift_lc(ua, ub, uc)",
                Int(|v| ((u128::from(funnel(v)) << v.u(2).min(32)) >> 32) as u32 as u64),
            ),
            ("__funnelshift_rc(ua, ub, uc)", Int(|v| funnel(v) >> v.u(2).min(32) & 0xffff_ffff)),
            ("__sad(a, b, uc)", Int(|v| v.i(0).abs_diff(v.i(1)).wrapping_add(v.u(2)).into())),
            ("__usad(ua, ub, uc)", Int(|v| v.u(0).abs_diff(v.u(1)).wrapping_add(v.u(2)).into())),
            ("__hadd(a, b)", Int(|v| ((i64::from(v.i(0)) + i64::from(v.i(1))) >> 1) as u32 as u64)),
            ("__rhadd(a, b)", Int(|v| ((i64::from(v.i(0)) + i64::from(v.i(1)) + 1) >> 1) as u32 as u64)),
            ("__uhadd(ua, ub)", Int(|v| (u64::from(v.u(0)) + u64::from(v.u(1))) >> 1)),
            ("__int2float_rn(a)", F32(|v| v.i(0) as f32)),
            ("__int2float_rz(a)", F32(|v| from_int(v.i(0).into(), To::Zero))),
            ("__int2float_ru(a)", F32(|v| from_int(v.i(0).into(), To::Up))),
            ("__int2float_rd(a)", F32(|v| from_int(v.i(0).into(), To::Down))),
            ("__uint2float_rn(ua)", F32(|v| v.u(0) as f32)),
            ("__uint2float_rz(ua)", F32(|v| from_int(v.u(0).into(), To::Zero))),
            ("__uint2float_ru(ua)", F32(|v| from_int(v.u(0).into(), To::Up))),
            ("__uint2float_rd(ua)", F32(|v| from_int(v.u(0).into(), To::Down))),
            ("double(a)", F64(|v| v.i(0).into())),
            ("double(ua)", F64(|v| v.u(0).into())),
            ("float(static_cast<signed char>(a))", F32(|v| (v.i(0) as i8).into())),
            ("float(static_cast<unsigned short>(a))", F32(|v| (v.i(0) as u16).into())),
            ("int(static_cast<signed char>(a))", Int(|v| v.i(0) as i8 as i32 as u32 as u64)),
            (
                "int(static_cast<short>(a * b))",
                Int(|v| v.i(0).wrapping_mul(v.i(1)) as i16 as i32 as u32 as u64),
            ),
            ("int64_t(a)", Int(|v| v.i(0) as i64 as u64)),
            ("uint64_t(ua)", Int(|v| v.u(0).into())),
            ("a < b", Int(|v| (v.i(0) < v.i(1)).into())),
            ("ua < ub", Int(|v| (v.u(0) < v.u(1)).into())),
            (
                "a < b && ua != uc || b == c",
                Int(|v| (v.i(0) < v.i(1) && v.i(0) != v.i(2) || v.i(1) == v.i(2)).into()),
            ),
            ("(ua >> 5) & 0x3ff", Int(|v| (v.u(0) >> 5 & 0x3ff).into())),
            ("int(ua << 7) >> 19", Int(|v| ((v.u(0) << 7) as i32 >> 19) as u32 as u64)),
            ("__dp4a(a, b, c)", Int(|v| dp4a(v).into())),
            ("__vaddss2(ua, ub)", Int(|v| vaddss2(v.u(0), v.u(1)).into())),
        ],
    }
}

fn byte_perm(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    u32::from_le_bytes(std::array::from_fn(|i| bytes[(selector >> (4 * i) & 7) as usize]))
}

fn funnel(v: &In) -> u64 {
    u64::from(v.u(1)) << 32 | u64::from(v.u(0))
}

fn dp4a(v: &In) -> u32 {
    let (a, b) = (v.u(0).to_le_bytes(), v.u(1).to_le_bytes());
    let sum: i32 = (0..4).map(|i| i32::from(a[i] as i8) * i32::from(b[i] as i8)).sum();
    sum.wrapping_add(v.i(2)) as u32
}

fn vaddss2(a: u32, b: u32) -> u32 {
    let half = |shift: u32| (a >> shift) as i16;
    let low = half(0).saturating_add(b as i16) as u16;
    let high = half(16).saturating_add((b >> 16) as i16) as u16;
    u32::from(high) << 16 | u32::from(low)
}

fn wide_words() -> Table {
    use Expected::{F32, F64, Int};
    Table {
        name: "i64",
        variables: "const int64_t a = a_bits, b = b_bits, c = c_bits; const uint64_t ua = a_bits, ub = b_bits, uc = c_bits;",
        inputs: Inputs::I64,
        since: 75,
        expressions: vec![
            ("ua + ub", Int(|v| v.w(0).wrapping_add(v.w(1)))),
            ("ua * ub + uc", Int(|v| v.w(0).wrapping_mul(v.w(1)).wrapping_add(v.w(2)))),
            (
                "b == 0 || (b == -1 && ua == 1ull << 63) ? 0 : a / b",
                Int(|v| v.l(0).checked_div(v.l(1)).unwrap_or(0) as u64),
            ),
            (
                "b == 0 || (b == -1 && ua == 1ull << 63) ? 0 : a % b",
                Int(|v| v.l(0).checked_rem(v.l(1)).unwrap_or(0) as u64),
            ),
            ("ub == 0 ? 0ull : ua / ub", Int(|v| v.w(0).checked_div(v.w(1)).unwrap_or(0))),
            ("ub == 0 ? 0ull : ua % ub", Int(|v| v.w(0).checked_rem(v.w(1)).unwrap_or(0))),
            ("ua / 1000", Int(|v| v.w(0) / 1000)),
            ("a % 12345", Int(|v| (v.l(0) % 12345) as u64)),
            ("__mul64hi(a, b)", Int(|v| ((i128::from(v.l(0)) * i128::from(v.l(1))) >> 64) as u64)),
            ("__umul64hi(ua, ub)", Int(|v| ((u128::from(v.w(0)) * u128::from(v.w(1))) >> 64) as u64)),
            ("ua << (ub & 63)", Int(|v| v.w(0).wrapping_shl(v.u(1)))),
            ("ua >> (ub & 63)", Int(|v| v.w(0).wrapping_shr(v.u(1)))),
            ("a >> (ub & 63)", Int(|v| v.l(0).wrapping_shr(v.u(1)) as u64)),
            ("(ua & ub) ^ (~ua | uc)", Int(|v| (v.w(0) & v.w(1)) ^ (!v.w(0) | v.w(2)))),
            ("min(a, b)", Int(|v| v.l(0).min(v.l(1)) as u64)),
            ("max(ua, ub)", Int(|v| v.w(0).max(v.w(1)))),
            ("llabs(a)", Int(|v| v.l(0).wrapping_abs() as u64)),
            ("__popcll(ua)", Int(|v| v.w(0).count_ones().into())),
            ("__clzll(a)", Int(|v| v.w(0).leading_zeros().into())),
            ("__ffsll(a)", Int(|v| if v.w(0) == 0 { 0 } else { u64::from(v.w(0).trailing_zeros()) + 1 })),
            ("__brevll(ua)", Int(|v| v.w(0).reverse_bits())),
            ("__ll2float_rn(a)", F32(|v| v.l(0) as f32)),
            ("__ll2float_rz(a)", F32(|v| from_int(v.l(0).into(), To::Zero))),
            ("__ll2float_ru(a)", F32(|v| from_int(v.l(0).into(), To::Up))),
            ("__ll2float_rd(a)", F32(|v| from_int(v.l(0).into(), To::Down))),
            ("__ull2float_rn(ua)", F32(|v| v.w(0) as f32)),
            ("__ull2float_rz(ua)", F32(|v| from_int(v.w(0).into(), To::Zero))),
            ("__ull2float_ru(ua)", F32(|v| from_int(v.w(0).into(), To::Up))),
            ("__ull2float_rd(ua)", F32(|v| from_int(v.w(0).into(), To::Down))),
            ("__ll2double_rn(a)", F64(|v| v.l(0) as f64)),
            ("__ll2double_rz(a)", F64(|v| wide_from_int(v.l(0).into(), To::Zero))),
            ("__ll2double_ru(a)", F64(|v| wide_from_int(v.l(0).into(), To::Up))),
            ("__ll2double_rd(a)", F64(|v| wide_from_int(v.l(0).into(), To::Down))),
            ("__ull2double_rn(ua)", F64(|v| v.w(0) as f64)),
            ("__ull2double_rz(ua)", F64(|v| wide_from_int(v.w(0).into(), To::Zero))),
            ("__ull2double_ru(ua)", F64(|v| wide_from_int(v.w(0).into(), To::Up))),
            ("__ull2double_rd(ua)", F64(|v| wide_from_int(v.w(0).into(), To::Down))),
            ("int(a)", Int(|v| v.w(0) & 0xffff_ffff)),
            ("int(static_cast<short>(a))", Int(|v| v.w(0) as i16 as i32 as u32 as u64)),
            ("a < b", Int(|v| (v.l(0) < v.l(1)).into())),
            ("ua < ub ? uc : ua", Int(|v| if v.w(0) < v.w(1) { v.w(2) } else { v.w(0) })),
        ],
    }
}

fn halves() -> Table {
    use Expected::{F16, F32, F64, Int};
    Table {
        name: "f16",
        variables: "const unsigned short a = a_bits, b = b_bits, c = c_bits; const uint32_t ab = b << 16 | a, bc = c << 16 | b;",
        inputs: Inputs::F16,
        since: 75,
        expressions: vec![
            (
                r#"HALF("add.rn.f16 %0, %1, %2;", "h"(a), "h"(b))"#,
                F16(|v| f16::from_f64(v.h(0).to_f64() + v.h(1).to_f64())),
            ),
            (
                r#"HALF("sub.f16 %0, %1, %2;", "h"(a), "h"(b))"#,
                F16(|v| f16::from_f64(v.h(0).to_f64() - v.h(1).to_f64())),
            ),
            (
                r#"HALF("mul.rn.f16 %0, %1, %2;", "h"(a), "h"(b))"#,
                F16(|v| f16::from_f64(v.h(0).to_f64() * v.h(1).to_f64())),
            ),
            (
                r#"HALF("fma.rn.f16 %0, %1, %2, %3;", "h"(a), "h"(b), "h"(c))"#,
                F16(|v| half_fma(v.h(0), v.h(1), v.h(2))),
            ),
            (r#"HALF("neg.f16 %0, %1;", "h"(a))"#, F16(|v| -v.h(0))),
            (r#"HALF("abs.f16 %0, %1;", "h"(a))"#, F16(|v| f16::from_bits(v.h(0).to_bits() & 0x7fff))),
            (r#"ASM(float, "f", "cvt.f32.f16 %0, %1;", "h"(a))"#, F32(|v| v.h(0).to_f32())),
            (r#"ASM(double, "d", "cvt.f64.f16 %0, %1;", "h"(a))"#, F64(|v| v.h(0).to_f64())),
            (
                r#"HALF("cvt.rn.f16.f32 %0, %1;", "f"(__uint_as_float(ab)))"#,
                F16(|v| f16::from_f32(packed(v))),
            ),
            (r#"HALF("cvt.rz.f16.f32 %0, %1;", "f"(__uint_as_float(ab)))"#, F16(|v| half_to_zero(packed(v)))),
            (
                r#"HALF("cvt.rn.f16.f64 %0, %1;", "d"(double(__uint_as_float(ab))))"#,
                F16(|v| f16::from_f32(packed(v))),
            ),
            (
                r#"HALF("cvt.rn.f16.s32 %0, %1;", "r"(int(ab)))"#,
                F16(|v| f16::from_f64(f64::from(packed(v).to_bits() as i32))),
            ),
            (
                r#"HALF("cvt.rn.f16.u16 %0, %1;", "h"(a))"#,
                F16(|v| f16::from_f64(f64::from(v.h(0).to_bits()))),
            ),
            (
                r#"ASM(int, "r", "cvt.rzi.s32.f16 %0, %1;", "h"(a))"#,
                Int(|v| to_int(v.h(0).to_f64().trunc(), 32, true, false)),
            ),
            (
                r#"ASM(int, "r", "cvt.rni.s32.f16 %0, %1;", "h"(a))"#,
                Int(|v| to_int(v.h(0).to_f64().round_ties_even(), 32, true, false)),
            ),
            (
                r#"ASM(uint32_t, "r", "add.rn.f16x2 %0, %1, %2;", "r"(ab), "r"(bc))"#,
                Int(|v| pair(v, |x, y, _| f16::from_f64(x.to_f64() + y.to_f64()))),
            ),
            (
                r#"ASM(uint32_t, "r", "mul.rn.f16x2 %0, %1, %2;", "r"(ab), "r"(bc))"#,
                Int(|v| pair(v, |x, y, _| f16::from_f64(x.to_f64() * y.to_f64()))),
            ),
            (
                r#"ASM(uint32_t, "r", "fma.rn.f16x2 %0, %1, %2, %1;", "r"(ab), "r"(bc))"#,
                Int(|v| pair(v, half_fma)),
            ),
            (
                r#"ASM(int, "r", "{ .reg .pred p; setp.lt.f16 p, %1, %2; selp.s32 %0, 1, 0, p; }", "h"(a), "h"(b))"#,
                Int(|v| (v.h(0) < v.h(1)).into()),
            ),
            (
                r#"ASM(int, "r", "{ .reg .pred p; setp.neu.f16 p, %1, %2; selp.s32 %0, 1, 0, p; }", "h"(a), "h"(b))"#,
                Int(|v| (v.h(0) != v.h(1)).into()),
            ),
        ],
    }
}

fn packed(v: &In) -> f32 {
    f32::from_bits((v.0[1] as u32 & 0xffff) << 16 | v.0[0] as u32 & 0xffff)
}

/// Both halves of (a, b) with (b, c); any NaN as the one that arithmetic gives.
fn pair(v: &In, f: fn(f16, f16, f16) -> f16) -> u64 {
    let half = |x: f16, y: f16| {
        let result = f(x, y, x);
        if result.is_nan() { 0x7fff } else { u64::from(result.to_bits()) }
    };
    half(v.h(1), v.h(2)) << 16 | half(v.h(0), v.h(1))
}

fn halves_since_80() -> Table {
    use Expected::F16;
    Table {
        name: "f16_since_80",
        variables: "const unsigned short a = a_bits, b = b_bits;",
        inputs: Inputs::F16,
        since: 80,
        expressions: vec![
            (
                r#"HALF("min.f16 %0, %1, %2;", "h"(a), "h"(b))"#,
                F16(|v| minimum(v.h(0), v.h(1), f16::is_nan, f16::is_sign_negative)),
            ),
            (
                r#"HALF("max.f16 %0, %1, %2;", "h"(a), "h"(b))"#,
                F16(|v| maximum(v.h(0), v.h(1), f16::is_nan, f16::is_sign_negative)),
            ),
        ],
    }
}

fn bfloats() -> Table {
    use Expected::{Bf16, F32, Int};
    Table {
        name: "bf16",
        variables: "const unsigned short a = a_bits, b = b_bits, c = c_bits; const uint32_t ab = b << 16 | a;",
        inputs: Inputs::Bf16,
        since: 80,
        expressions: vec![
            (
                r#"HALF("fma.rn.bf16 %0, %1, %2, %3;", "h"(a), "h"(b), "h"(c))"#,
                Bf16(|v| bf16_fma(v.b(0), v.b(1), v.b(2))),
            ),
            (r#"HALF("neg.bf16 %0, %1;", "h"(a))"#, Bf16(|v| -v.b(0))),
            (r#"HALF("abs.bf16 %0, %1;", "h"(a))"#, Bf16(|v| bf16::from_bits(v.b(0).to_bits() & 0x7fff))),
            (
                r#"HALF("min.bf16 %0, %1, %2;", "h"(a), "h"(b))"#,
                Bf16(|v| minimum(v.b(0), v.b(1), bf16::is_nan, bf16::is_sign_negative)),
            ),
            (
                r#"HALF("max.bf16 %0, %1, %2;", "h"(a), "h"(b))"#,
                Bf16(|v| maximum(v.b(0), v.b(1), bf16::is_nan, bf16::is_sign_negative)),
            ),
            (
                r#"HALF("cvt.rn.bf16.f32 %0, %1;", "f"(__uint_as_float(ab)))"#,
                Bf16(|v| bf16::from_f32(packed(v))),
            ),
            (
                r#"HALF("cvt.rz.bf16.f32 %0, %1;", "f"(__uint_as_float(ab)))"#,
                Bf16(|v| bf16_to_zero(packed(v))),
            ),
            (
                r#"ASM(uint32_t, "r", "cvt.rn.bf16x2.f32 %0, %1, %2;", "f"(float(a)), "f"(float(b)))"#,
                Int(|v| {
                    let narrow = |bits: u64| u64::from(bf16::from_f32((bits & 0xffff) as f32).to_bits());
                    narrow(v.0[0]) << 16 | narrow(v.0[1])
                }),
            ),
            ("__uint_as_float(uint32_t(a) << 16)", F32(|v| v.b(0).to_f32())),
        ],
    }
}

fn bfloats_since_90() -> Table {
    use Expected::{Bf16, F32};
    Table {
        name: "bf16_since_90",
        variables: "const unsigned short a = a_bits, b = b_bits;",
        inputs: Inputs::Bf16,
        since: 90,
        expressions: vec![
            (
                r#"HALF("add.rn.bf16 %0, %1, %2;", "h"(a), "h"(b))"#,
                Bf16(|v| bf16_fma(v.b(0), bf16::ONE, v.b(1))),
            ),
            (
                r#"HALF("sub.bf16 %0, %1, %2;", "h"(a), "h"(b))"#,
                Bf16(|v| bf16_fma(v.b(0), bf16::ONE, -v.b(1))),
            ),
            (
                r#"HALF("mul.rn.bf16 %0, %1, %2;", "h"(a), "h"(b))"#,
                Bf16(|v| nearest_bf16(v.b(0).to_f64() * v.b(1).to_f64())),
            ),
            (r#"ASM(float, "f", "cvt.f32.bf16 %0, %1;", "h"(a))"#, F32(|v| v.b(0).to_f32())),
            (
                r#"HALF("cvt.rn.bf16.s32 %0, %1;", "r"(int(a) - 30000))"#,
                Bf16(|v| nearest_bf16(f64::from(v.b(0).to_bits()) - 30000.0)),
            ),
        ],
    }
}

/// Inputs and results as bytes of device memory.
pub fn as_bytes(words: &[u64]) -> Vec<u8> {
    to_bytes(words)
}

pub fn as_words(bytes: &[u8]) -> Vec<u64> {
    from_bytes(bytes)
}
