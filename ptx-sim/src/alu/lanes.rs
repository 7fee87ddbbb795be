//! From a function of one lane to a function of 32, the type of a lane chosen by the type of an instruction.

use super::{Alu, L32, L64};

/// A value as it lies in a lane: narrow types in the low bits, zero above.
pub(super) trait Lane: Copy {
    type Register: Register;
    fn read(bits: Self::Register) -> Self;
    fn write(self) -> Self::Register;
}

macro_rules! lane {
    ($($T:ty, $register:ty: $read:expr, $write:expr;)+) => { $(
        impl Lane for $T {
            type Register = $register;
            #[inline(always)]
            fn read(bits: $register) -> $T {
                let read: fn($register) -> $T = $read;
                read(bits)
            }
            #[inline(always)]
            fn write(self) -> $register {
                let write: fn($T) -> $register = $write;
                write(self)
            }
        }
    )+ };
}

lane! {
    u8, u32: |bits| bits as u8, u32::from;
    // PTX has no registers of 8 bits: a signed byte is extended to the 16 bits of the narrowest.
    i8, u32: |bits| bits as i8, |value| u32::from(value as i16 as u16);
    u16, u32: |bits| bits as u16, u32::from;
    i16, u32: |bits| bits as i16, |value| u32::from(value as u16);
    u32, u32: |bits| bits, |value| value;
    i32, u32: |bits| bits as i32, |value| value as u32;
    f32, u32: f32::from_bits, f32::to_bits;
    u64, u64: |bits| bits, |value| value;
    i64, u64: |bits| bits as i64, |value| value as u64;
    f64, u64: f64::from_bits, f64::to_bits;
}

type Lanes<T> = [T; 32];
type Ternary<T> = fn(&Lanes<T>, &Lanes<T>, &Lanes<T>, &mut Lanes<T>);

/// A register's width: which [`Alu`] takes a function on such registers only.
pub(super) trait Register: Copy + Sized {
    fn unary(function: fn(&Lanes<Self>, &mut Lanes<Self>)) -> Alu;
    fn binary(function: fn(&Lanes<Self>, &Lanes<Self>, &mut Lanes<Self>)) -> Alu;
    fn ternary(function: Ternary<Self>) -> Alu;
    /// The result is 32 bits wide whatever the operand.
    fn count(function: fn(&Lanes<Self>, &mut L32)) -> Alu;
    /// The result is 32 bits wide whatever the operands.
    fn flag(function: fn(&Lanes<Self>, &Lanes<Self>, &mut L32)) -> Alu;
    /// The second and third operands are 32 bits wide whatever the first.
    fn extract(function: fn(&Lanes<Self>, &L32, &L32, &mut Lanes<Self>)) -> Alu;
    /// The third operand is 32 bits wide whatever the first two.
    fn select(function: fn(&Lanes<Self>, &Lanes<Self>, &L32, &mut Lanes<Self>)) -> Alu;
    /// The third and fourth operands are 32 bits wide whatever the first two.
    fn insert(function: fn(&Lanes<Self>, &Lanes<Self>, &L32, &L32, &mut Lanes<Self>)) -> Alu;
    fn test(function: fn(&Lanes<Self>) -> u32) -> Alu;
    fn compare(function: fn(&Lanes<Self>, &Lanes<Self>) -> u32) -> Alu;
}

macro_rules! register {
    ($T:ty, $L:ty: $unary:ident $binary:ident $ternary:ident $count:ident $flag:ident $extract:ident
        $select:ident $insert:ident $test:ident $compare:ident) => {
        impl Register for $T {
            fn unary(function: fn(&$L, &mut $L)) -> Alu {
                Alu::$unary(function)
            }
            fn binary(function: fn(&$L, &$L, &mut $L)) -> Alu {
                Alu::$binary(function)
            }
            fn ternary(function: fn(&$L, &$L, &$L, &mut $L)) -> Alu {
                Alu::$ternary(function)
            }
            fn count(function: fn(&$L, &mut L32)) -> Alu {
                Alu::$count(function)
            }
            fn flag(function: fn(&$L, &$L, &mut L32)) -> Alu {
                Alu::$flag(function)
            }
            fn extract(function: fn(&$L, &L32, &L32, &mut $L)) -> Alu {
                Alu::$extract(function)
            }
            fn select(function: fn(&$L, &$L, &L32, &mut $L)) -> Alu {
                Alu::$select(function)
            }
            fn insert(function: fn(&$L, &$L, &L32, &L32, &mut $L)) -> Alu {
                Alu::$insert(function)
            }
            fn test(function: fn(&$L) -> u32) -> Alu {
                Alu::$test(function)
            }
            fn compare(function: fn(&$L, &$L) -> u32) -> Alu {
                Alu::$compare(function)
            }
        }
    };
}

register!(u32, L32: A1 A2 A3 A1 A2 A3 A3 A4 T32x1 T32);
register!(u64, L64: B1 B2 B3 N1 N2 S3 S5 S4 T64x1 T64);

/// `lanes!(W2, |a: i32, b: i32| -> i64 { … })`: the named variant of [`Alu`], with this on every lane.
macro_rules! lanes {
    ($variant:ident, |$($x:ident: $T:ty),+| -> $R:ty { $($body:tt)* }) => {
        $crate::alu::Alu::$variant($crate::alu::lanes::on_lanes!(|$($x: $T),+| -> $R { $($body)* }))
    };
}

/// The closure on whole registers that applies a body to every lane.
macro_rules! on_lanes {
    (|$($x:ident: $T:ty),+| -> $R:ty { $($body:tt)* }) => {
        |$($x),+, out| {
            for lane in 0..32 {
                $(let $x = <$T as $crate::alu::lanes::Lane>::read($x[lane]);)+
                let result: $R = { $($body)* };
                out[lane] = <$R as $crate::alu::lanes::Lane>::write(result);
            }
        }
    };
}

/// `map!(binary, T, |a: T, b: T| -> T { … })`: the variant of [`Alu`] that a constructor of [`Register`] gives for
/// the width of `T`.
macro_rules! map {
    ($constructor:ident, $W:ty, |$($x:ident: $T:ty),+| -> $R:ty { $($body:tt)* }) => {
        <<$W as $crate::alu::lanes::Lane>::Register as $crate::alu::lanes::Register>::$constructor(
            $crate::alu::lanes::on_lanes!(|$($x: $T),+| -> $R { $($body)* }),
        )
    };
}

/// `test!(compare, T, |a: T, b: T| a < b)`: a bit a lane.
macro_rules! test {
    ($constructor:ident, $W:ty, |$($x:ident: $T:ty),+| $body:expr) => {
        <<$W as $crate::alu::lanes::Lane>::Register as $crate::alu::lanes::Register>::$constructor(|$($x),+| {
            let mut mask = 0_u32;
            for lane in 0..32 {
                $(let $x = <$T as $crate::alu::lanes::Lane>::read($x[lane]);)+
                mask |= if $body { 1 << lane } else { 0 };
            }
            mask
        })
    };
}

/// `choose!(type, T: { "u32" => u32, … } in expression)`: the expression with `T` the type of that name. A name that
/// is not listed returns `None` from the enclosing function.
macro_rules! choose {
    ($name:expr, $T:ident: { $($literal:pat => $type:ty),+ $(,)? } in $body:expr) => {
        match $name {
            $($literal => {
                type $T = $type;
                $body
            })+
            _ => return None,
        }
    };
}

/// `switch!(FTZ = ftz, SAT = sat; expression)`: the expression with constants of the values that variables have, so
/// that each combination is a function of its own.
macro_rules! switch {
    ($name:ident = $value:expr $(, $more:ident = $more_value:expr)*; $body:expr) => {
        if $value {
            const $name: bool = true;
            $crate::alu::lanes::switch!($($more = $more_value),*; $body)
        } else {
            const $name: bool = false;
            $crate::alu::lanes::switch!($($more = $more_value),*; $body)
        }
    };
    (; $body:expr) => { $body };
}

/// `choose!` among the integers of registers. Bit-size types count as unsigned.
macro_rules! integer {
    ($name:expr, $T:ident => $body:expr) => {
        $crate::alu::lanes::choose!($name, $T: {
            "u16" | "b16" => u16, "s16" => i16,
            "u32" | "b32" => u32, "s32" => i32,
            "u64" | "b64" => u64, "s64" => i64,
        } in $body)
    };
}

pub(super) use {choose, integer, lanes, map, on_lanes, switch, test};
