//! Functions on the CPU: what a kernel computes, operation by operation.

use super::check::{Term, TermKind};
use super::{METHODS, Operator, Type, Typed};

/// A value of a function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A row or a column.
    U32(u32),
    /// A single.
    F32(f32),
    /// A double.
    F64(f64),
}

/// A type that functions compute in.
pub trait Float: Copy + Into<Value> {
    /// It.
    const TYPE: Type;

    /// The number of a value of this type; `None` where the value has another.
    fn of(value: Value) -> Option<Self>;
}

macro_rules! float {
    ($float:ident, $variant:ident) => {
        impl From<$float> for Value {
            fn from(number: $float) -> Value {
                Value::$variant(number)
            }
        }

        impl Float for $float {
            const TYPE: Type = Type::$variant;

            fn of(value: Value) -> Option<$float> {
                if let Value::$variant(number) = value { Some(number) } else { None }
            }
        }
    };
}

float!(f32, F32);
float!(f64, F64);

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::U32(number)
    }
}

/// A constant that `f32` and `f64` have.
pub(super) struct Constant {
    pub(super) name: &'static str,
    pub(super) f32: f32,
    pub(super) f64: f64,
}

macro_rules! constants {
    ($($name:ident),+) => {
        pub(super) const CONSTANTS: &[Constant] =
            &[$(Constant { name: stringify!($name), f32: f32::$name, f64: f64::$name }),+];
    };
}

constants!(INFINITY, NEG_INFINITY, NAN, MAX, MIN, MIN_POSITIVE, EPSILON);

impl Typed {
    /// The value for these arguments, which have the types that the function was checked for.
    ///
    /// # Panics
    /// Where the arguments are fewer or have other types.
    pub fn eval(&self, arguments: &[Value]) -> Value {
        let mut locals = Vec::with_capacity(self.parameters.len() + self.lets.len());
        locals.extend_from_slice(&arguments[..self.parameters.len()]);
        locals.resize(self.parameters.len() + self.lets.len(), Value::Bool(false));
        eval(&self.body, &mut locals)
    }
}

fn eval(term: &Term, locals: &mut [Value]) -> Value {
    match &term.kind {
        TermKind::F32(number) => Value::F32(*number),
        TermKind::F64(number) => Value::F64(*number),
        TermKind::U32(number) => Value::U32(*number),
        TermKind::Bool(value) => Value::Bool(*value),
        TermKind::Local(place) => locals[*place],
        TermKind::Negate(operand) => match eval(operand, locals) {
            Value::F32(a) => Value::F32(-a),
            Value::F64(a) => Value::F64(-a),
            other => unreachable!("types were checked, and {other:?} has no sign"),
        },
        TermKind::Not(operand) => Value::Bool(!truth(eval(operand, locals))),
        TermKind::Binary(Operator::And, left, right) => {
            Value::Bool(truth(eval(left, locals)) && truth(eval(right, locals)))
        }
        TermKind::Binary(Operator::Or, left, right) => {
            Value::Bool(truth(eval(left, locals)) || truth(eval(right, locals)))
        }
        TermKind::Binary(operator, left, right) => binary(*operator, eval(left, locals), eval(right, locals)),
        TermKind::Cast(operand) => cast(eval(operand, locals), term.of),
        TermKind::Call(method, arguments) => {
            let arguments: Vec<Value> = arguments.iter().map(|argument| eval(argument, locals)).collect();
            call(*method, &arguments, term.of)
        }
        TermKind::Power(base, exponent) => {
            let powi = METHODS.iter().find(|method| method.name == "powi").expect("it is in the table");
            match eval(base, locals) {
                Value::F32(a) => Value::F32((powi.f32)(&[a, *exponent as f32])),
                Value::F64(a) => Value::F64((powi.f64)(&[a, f64::from(*exponent)])),
                other => unreachable!("types were checked, and {other:?} has no powers"),
            }
        }
        TermKind::If(condition, then, otherwise) => {
            if truth(eval(condition, locals)) {
                eval(then, locals)
            } else {
                eval(otherwise, locals)
            }
        }
        TermKind::Let(place, value, body) => {
            locals[*place] = eval(value, locals);
            eval(body, locals)
        }
    }
}

fn truth(value: Value) -> bool {
    match value {
        Value::Bool(value) => value,
        other => unreachable!("types were checked, and {other:?} is no condition"),
    }
}

fn binary(operator: Operator, left: Value, right: Value) -> Value {
    macro_rules! of_floats {
        ($a:ident, $b:ident, $variant:ident) => {
            match operator {
                Operator::Add => Value::$variant($a + $b),
                Operator::Subtract => Value::$variant($a - $b),
                Operator::Multiply => Value::$variant($a * $b),
                Operator::Divide => Value::$variant($a / $b),
                Operator::Remainder => Value::$variant($a % $b),
                _ => Value::Bool(compare(operator, $a.partial_cmp(&$b))),
            }
        };
    }
    match (left, right) {
        (Value::F32(a), Value::F32(b)) => of_floats!(a, b, F32),
        (Value::F64(a), Value::F64(b)) => of_floats!(a, b, F64),
        (Value::U32(a), Value::U32(b)) => match operator {
            Operator::Add => Value::U32(a.wrapping_add(b)),
            Operator::Subtract => Value::U32(a.wrapping_sub(b)),
            Operator::Multiply => Value::U32(a.wrapping_mul(b)),
            Operator::Divide => Value::U32(a / b),
            Operator::Remainder => Value::U32(a % b),
            _ => Value::Bool(compare(operator, Some(a.cmp(&b)))),
        },
        (Value::Bool(a), Value::Bool(b)) => Value::Bool(compare(operator, Some(a.cmp(&b)))),
        other => unreachable!("types were checked, and {other:?} differ"),
    }
}

fn compare(operator: Operator, order: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    match operator {
        Operator::Equal => order == Some(Equal),
        Operator::NotEqual => order != Some(Equal),
        Operator::Less => order == Some(Less),
        Operator::LessEqual => matches!(order, Some(Less | Equal)),
        Operator::Greater => order == Some(Greater),
        Operator::GreaterEqual => matches!(order, Some(Greater | Equal)),
        other => unreachable!("{other:?} compares nothing"),
    }
}

fn cast(value: Value, to: Type) -> Value {
    match (value, to) {
        (Value::F32(a), Type::F64) => Value::F64(a.into()),
        (Value::F64(a), Type::F32) => Value::F32(a as f32),
        (Value::U32(a), Type::F32) => Value::F32(a as f32),
        (Value::U32(a), Type::F64) => Value::F64(a.into()),
        (Value::F32(a), Type::U32) => Value::U32(a as u32),
        (Value::F64(a), Type::U32) => Value::U32(a as u32),
        (Value::Bool(a), Type::U32) => Value::U32(a.into()),
        (same, _) => same,
    }
}

fn call(method: usize, arguments: &[Value], result: Type) -> Value {
    let method = &METHODS[method];
    let singles: Vec<f32> = arguments.iter().filter_map(|argument| f32::of(*argument)).collect();
    let doubles: Vec<f64> = arguments.iter().filter_map(|argument| f64::of(*argument)).collect();
    match (arguments[0], result) {
        (Value::F32(_), Type::Bool) => Value::Bool((method.f32)(&singles) != 0.0),
        (Value::F64(_), Type::Bool) => Value::Bool((method.f64)(&doubles) != 0.0),
        (Value::F32(_), _) => Value::F32((method.f32)(&singles)),
        (Value::F64(_), _) => Value::F64((method.f64)(&doubles)),
        (Value::U32(a), _) => match arguments[1] {
            Value::U32(b) => Value::U32(if method.name == "min" { a.min(b) } else { a.max(b) }),
            other => unreachable!("types were checked, and {other:?} is no whole number"),
        },
        (other, _) => unreachable!("types were checked, and {other:?} has no methods"),
    }
}
