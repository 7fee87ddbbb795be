//! The methods that a function may call.

use std::fmt;
use std::ops::{Div, Mul};

use super::Type;

/// A method: its name and arguments are those of Rust's, and it rounds once where Rust's does.
pub struct Method {
    /// The name.
    pub name: &'static str,
    /// What its receiver is.
    pub receiver: Receiver,
    /// How many arguments it takes beside the receiver.
    pub arguments: usize,
    /// What it gives.
    pub result: ResultType,
    /// How CUDA calls it.
    pub(super) cuda: Cuda,
    pub(super) f32: fn(&[f32]) -> f32,
    pub(super) f64: fn(&[f64]) -> f64,
}

/// What has the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// `f32` and `f64`.
    Float,
    /// `f32`, `f64` and `u32`.
    Number,
}

/// What a method gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// What it is called on.
    Receiver,
    /// Whether something holds; a kernel of the table gives 1 or 0.
    Bool,
}

/// How a method is written in CUDA.
#[derive(Clone, Copy)]
pub(super) enum Cuda {
    /// A function of the language: for double, and for float with this `f` behind the name.
    Builtin(&'static str),
    /// A function of this name, whose text is put in front.
    Helper(&'static str, &'static str),
    /// The exponent is a constant.
    Powi,
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Method {
    pub(super) fn find(name: &str) -> Option<&'static Method> {
        METHODS.iter().find(|method| method.name == name)
    }

    /// Whether values of this type have it.
    pub(super) fn is_of(&self, receiver: Type) -> bool {
        receiver.is_float() || receiver == Type::U32 && self.receiver == Receiver::Number
    }
}

const RECIP: &str = "template <typename T>\n__device__ __forceinline__ T recip(T a) { return T(1) / a; }\n";
const SIGNUM: &str = "template <typename T>\n__device__ __forceinline__ T signum(T a) { return a != a ? a : copysign(T(1), a); }\n";
const CLAMP: &str = "template <typename T>\n__device__ __forceinline__ T clamp(T a, T low, T high) { return a < low ? low : a > high ? high : a; }\n";
const IS_NAN: &str =
    "template <typename T>\n__device__ __forceinline__ bool is_nan(T a) { return a != a; }\n";
const IS_FINITE: &str =
    "template <typename T>\n__device__ __forceinline__ bool is_finite(T a) { return a - a == T(0); }\n";
const IS_INFINITE: &str = "template <typename T>\n__device__ __forceinline__ bool is_infinite(T a) { return a == a && a - a != T(0); }\n";

/// The text of `powi`, which has the exponent as a constant.
pub(super) const POWI: &str = "// By squaring, the lowest bit of the exponent first.\n\
template <int kExponent, typename T>\n\
__device__ __forceinline__ T powi(T a) {\n  \
  T result = 1;\n\
#pragma unroll\n  \
  for (unsigned n = kExponent < 0 ? 0u - kExponent : kExponent; n > 0; n /= 2, a = a * a) {\n    \
    if (n % 2 == 1) result = result * a;\n  \
  }\n  \
  return kExponent < 0 ? T(1) / result : result;\n\
}\n";

macro_rules! methods {
    ($($name:ident: $receiver:ident, $arguments:literal, $result:ident, $cuda:expr, |$args:ident| $eval:expr;)+) => {
        /// Every method there is.
        pub const METHODS: &[Method] = &[$(Method {
            name: stringify!($name),
            receiver: Receiver::$receiver,
            arguments: $arguments,
            result: ResultType::$result,
            cuda: $cuda,
            f32: |$args| $eval,
            f64: |$args| $eval,
        },)+];
    };
}

methods! {
    abs: Float, 0, Receiver, Cuda::Builtin("fabs"), |a| a[0].abs();
    sqrt: Float, 0, Receiver, Cuda::Builtin("sqrt"), |a| a[0].sqrt();
    recip: Float, 0, Receiver, Cuda::Helper("recip", RECIP), |a| 1.0 / a[0];
    floor: Float, 0, Receiver, Cuda::Builtin("floor"), |a| a[0].floor();
    ceil: Float, 0, Receiver, Cuda::Builtin("ceil"), |a| a[0].ceil();
    trunc: Float, 0, Receiver, Cuda::Builtin("trunc"), |a| a[0].trunc();
    round: Float, 0, Receiver, Cuda::Builtin("round"), |a| a[0].round();
    signum: Float, 0, Receiver, Cuda::Helper("signum", SIGNUM), |a| a[0].signum();
    min: Number, 1, Receiver, Cuda::Builtin("fmin"),
        |a| if a[0] != a[1] { a[0].min(a[1]) } else if a[0].is_sign_negative() { a[0] } else { a[1] };
    max: Number, 1, Receiver, Cuda::Builtin("fmax"),
        |a| if a[0] != a[1] { a[0].max(a[1]) } else if a[0].is_sign_positive() { a[0] } else { a[1] };
    clamp: Float, 2, Receiver, Cuda::Helper("clamp", CLAMP),
        |a| if a[0] < a[1] { a[1] } else if a[0] > a[2] { a[2] } else { a[0] };
    copysign: Float, 1, Receiver, Cuda::Builtin("copysign"), |a| a[0].copysign(a[1]);
    mul_add: Float, 2, Receiver, Cuda::Builtin("fma"), |a| a[0].mul_add(a[1], a[2]);
    powi: Float, 1, Receiver, Cuda::Powi, |a| power(a[0], a[1] as i32);
    exp: Float, 0, Receiver, Cuda::Builtin("exp"), |a| a[0].exp();
    exp2: Float, 0, Receiver, Cuda::Builtin("exp2"), |a| a[0].exp2();
    exp_m1: Float, 0, Receiver, Cuda::Builtin("expm1"), |a| a[0].exp_m1();
    ln: Float, 0, Receiver, Cuda::Builtin("log"), |a| a[0].ln();
    ln_1p: Float, 0, Receiver, Cuda::Builtin("log1p"), |a| a[0].ln_1p();
    log2: Float, 0, Receiver, Cuda::Builtin("log2"), |a| a[0].log2();
    log10: Float, 0, Receiver, Cuda::Builtin("log10"), |a| a[0].log10();
    powf: Float, 1, Receiver, Cuda::Builtin("pow"), |a| a[0].powf(a[1]);
    cbrt: Float, 0, Receiver, Cuda::Builtin("cbrt"), |a| a[0].cbrt();
    hypot: Float, 1, Receiver, Cuda::Builtin("hypot"), |a| a[0].hypot(a[1]);
    sin: Float, 0, Receiver, Cuda::Builtin("sin"), |a| a[0].sin();
    cos: Float, 0, Receiver, Cuda::Builtin("cos"), |a| a[0].cos();
    tan: Float, 0, Receiver, Cuda::Builtin("tan"), |a| a[0].tan();
    atan: Float, 0, Receiver, Cuda::Builtin("atan"), |a| a[0].atan();
    atan2: Float, 1, Receiver, Cuda::Builtin("atan2"), |a| a[0].atan2(a[1]);
    sinh: Float, 0, Receiver, Cuda::Builtin("sinh"), |a| a[0].sinh();
    cosh: Float, 0, Receiver, Cuda::Builtin("cosh"), |a| a[0].cosh();
    tanh: Float, 0, Receiver, Cuda::Builtin("tanh"), |a| a[0].tanh();
    is_nan: Float, 0, Bool, Cuda::Helper("is_nan", IS_NAN), |a| u8::from(a[0].is_nan()).into();
    is_finite: Float, 0, Bool, Cuda::Helper("is_finite", IS_FINITE), |a| u8::from(a[0].is_finite()).into();
    is_infinite: Float, 0, Bool, Cuda::Helper("is_infinite", IS_INFINITE), |a| u8::from(a[0].is_infinite()).into();
}

/// By squaring as the kernel does, each product rounded once.
fn power<T: Copy + From<u8> + Mul<Output = T> + Div<Output = T>>(a: T, exponent: i32) -> T {
    let (mut result, mut square) = (T::from(1), a);
    let mut n = exponent.unsigned_abs();
    while n > 0 {
        if n % 2 == 1 {
            result = result * square;
        }
        square = square * square;
        n /= 2;
    }
    if exponent < 0 { T::from(1) / result } else { result }
}
