//! Functions as CUDA C++.

use std::fmt::Write;

use super::check::{Local, Term, TermKind};
use super::method::{Cuda, METHODS, POWI};
use super::{Operator, Type, Typed, Value};

/// How closely signs bind, and what needs no parentheses anywhere. A conditional expression binds least.
const UNARY: u8 = 6;
const ATOM: u8 = 7;

/// The text of helper functions that some functions call, each once.
pub(crate) fn helpers<'a>(functions: impl IntoIterator<Item = &'a Typed>) -> String {
    let mut needed: Vec<&'static str> = Vec::new();
    for function in functions {
        called(&function.body, &mut |text| {
            if !needed.contains(&text) {
                needed.push(text);
            }
        });
    }
    needed.concat()
}

fn called(term: &Term, need: &mut impl FnMut(&'static str)) {
    match &term.kind {
        TermKind::Power(base, _) => {
            need(POWI);
            called(base, need);
        }
        TermKind::Call(method, arguments) => {
            if let Cuda::Helper(_, text) = METHODS[*method].cuda {
                need(text);
            }
            arguments.iter().for_each(|argument| called(argument, need));
        }
        TermKind::Cast(a) => {
            if term.of == Type::U32 && a.of == Type::F64 {
                need(TO_U32);
            }
            called(a, need);
        }
        TermKind::Negate(a) | TermKind::Not(a) => called(a, need),
        TermKind::Binary(_, a, b) | TermKind::Let(_, a, b) => {
            called(a, need);
            called(b, need);
        }
        TermKind::If(a, b, c) => [a, b, c].into_iter().for_each(|part| called(part, need)),
        TermKind::F32(_) | TermKind::F64(_) | TermKind::U32(_) | TermKind::Bool(_) | TermKind::Local(_) => {}
    }
}

const TO_U32: &str = "// Saturates; NaN is 0.\n__device__ __forceinline__ uint32_t to_u32(double a) { return a == a ? __double2uint_rz(a) : 0u; }\n";

impl Typed {
    /// A device function of this name with those parameters that are kept, which must be all that it reads; and the names
    /// of all of them in it.
    pub(crate) fn cuda(&self, name: &str, keeps: impl Fn(usize) -> bool) -> (String, Vec<String>) {
        let mut writer = Writer { names: Vec::new(), lines: String::new() };
        for local in &self.parameters {
            let name = writer.fresh(&local.name);
            writer.names.push(name);
        }
        let names = writer.names.clone();
        writer.names.resize(names.len() + self.lets.len(), String::new());
        let value = writer.term(&self.body, 0, &self.lets, names.len());
        let declared = self.parameters.iter().zip(&names).enumerate().filter(|(place, _)| keeps(*place));
        let declared: Vec<_> =
            declared.map(|(_, (local, name))| format!("{} {name}", type_name(local.of))).collect();
        let result = type_name(self.result);
        let head = format!("__device__ __forceinline__ {result} {name}({})", declared.join(", "));
        let text = match writer.lines.as_str() {
            "" => format!("{head} {{ return {value}; }}\n"),
            lines => format!("{head} {{\n{lines}  return {value};\n}}\n"),
        };
        (text, names)
    }
}

/// A value as a constant expression.
pub(crate) fn constant(value: Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::U32(number) => format!("{number}u"),
        Value::F32(number) => float(number.into(), format!("{number:?}"), "f"),
        Value::F64(number) => float(number, format!("{number:?}"), ""),
    }
}

/// Digits that read back as the same number, or a quotient that is infinite or no number.
fn float(number: f64, digits: String, suffix: &str) -> String {
    match () {
        () if number.is_nan() => format!("(0.0{suffix} / 0.0{suffix})"),
        () if number == f64::INFINITY => format!("(1.0{suffix} / 0.0{suffix})"),
        () if number == f64::NEG_INFINITY => format!("(-1.0{suffix} / 0.0{suffix})"),
        () => digits + suffix,
    }
}

fn type_name(of: Type) -> &'static str {
    match of {
        Type::Bool => "bool",
        Type::U32 => "uint32_t",
        Type::F32 => "float",
        Type::F64 => "double",
    }
}

struct Writer {
    /// The name in CUDA of every local.
    names: Vec<String>,
    /// What is bound before the value.
    lines: String,
}

impl Writer {
    /// The name where it means nothing else in CUDA, or with underscores behind it.
    fn fresh(&self, name: &str) -> String {
        let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase());
        let is_ours = METHODS.iter().any(|method| match method.cuda {
            Cuda::Builtin(called) => name.trim_end_matches('f') == called.trim_end_matches('f'),
            Cuda::Helper(called, _) => name == called,
            Cuda::Powi => name == "powi",
        });
        let mut fresh = if is_plain { name.to_owned() } else { format!("v{name}") };
        if is_ours || CPP_WORDS.contains(&name) {
            fresh.push('_');
        }
        while self.names.contains(&fresh) {
            fresh.push('_');
        }
        fresh
    }

    /// The expression, in parentheses where it binds less closely than asked for.
    fn term(&mut self, term: &Term, precedence: u8, lets: &[Local], num_parameters: usize) -> String {
        let mut part = |term: &Term, precedence| self.term(term, precedence, lets, num_parameters);
        let (own, text) = match &term.kind {
            TermKind::F32(number) => literal(Value::F32(*number)),
            TermKind::F64(number) => literal(Value::F64(*number)),
            TermKind::U32(number) => literal(Value::U32(*number)),
            TermKind::Bool(value) => literal(Value::Bool(*value)),
            TermKind::Local(place) => (ATOM, self.names[*place].clone()),
            // Two signs would be one operator.
            TermKind::Negate(operand) => (UNARY, format!("-{}", part(operand, ATOM))),
            TermKind::Not(operand) => (UNARY, format!("!{}", part(operand, ATOM))),
            TermKind::Binary(Operator::Remainder, a, b) if term.of != Type::U32 => {
                let suffix = if term.of == Type::F32 { "f" } else { "" };
                (ATOM, format!("fmod{suffix}({}, {})", part(a, 0), part(b, 0)))
            }
            TermKind::Binary(operator, a, b) => {
                let own = operator.precedence();
                let (a, b) =
                    (part(a, if operator.is_comparison() { own + 1 } else { own }), part(b, own + 1));
                (own, format!("{a} {} {b}", operator.text()))
            }
            TermKind::Cast(operand) => {
                let inner = part(operand, 0);
                let call = match (operand.of, term.of) {
                    (Type::F32, Type::U32) => "__float2uint_rz",
                    (Type::F64, Type::U32) => "to_u32",
                    _ => type_name(term.of),
                };
                (ATOM, format!("{call}({inner})"))
            }
            TermKind::Call(method, arguments) => {
                let of = arguments[0].of;
                let arguments: Vec<_> = arguments.iter().map(|argument| part(argument, 0)).collect();
                let called = match METHODS[*method].cuda {
                    Cuda::Builtin(name) if of == Type::U32 => name.trim_start_matches('f').to_owned(),
                    Cuda::Builtin(name) if of == Type::F32 => format!("{name}f"),
                    Cuda::Builtin(name) | Cuda::Helper(name, _) => name.to_owned(),
                    Cuda::Powi => unreachable!("powers are terms of their own"),
                };
                (ATOM, format!("{called}({})", arguments.join(", ")))
            }
            TermKind::Power(base, exponent) => (ATOM, format!("powi<{exponent}>({})", part(base, 0))),
            TermKind::If(condition, then, otherwise) => {
                let (condition, then) = (part(condition, 1), part(then, 1));
                (0, format!("{condition} ? {then} : {}", part(otherwise, 0)))
            }
            TermKind::Let(place, value, body) => {
                let value = part(value, 0);
                let local = &lets[*place - num_parameters];
                self.names[*place] = self.fresh(&local.name);
                writeln!(self.lines, "  const {} {} = {value};", type_name(local.of), self.names[*place])
                    .expect("writing to a String succeeds");
                return self.term(body, precedence, lets, num_parameters);
            }
        };
        if own < precedence { format!("({text})") } else { text }
    }
}

/// A constant, and how closely it binds: a sign may stand in front.
fn literal(value: Value) -> (u8, String) {
    let text = constant(value);
    (if text.starts_with('-') { UNARY } else { ATOM }, text)
}

/// Words that a variable cannot have as its name in CUDA C++, where they can in Rust, and names of ours.
const CPP_WORDS: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "concept",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "decltype",
    "default",
    "delete",
    "double",
    "dynamic_cast",
    "explicit",
    "export",
    "float",
    "fmod",
    "fmodf",
    "friend",
    "goto",
    "inline",
    "int",
    "int32_t",
    "int64_t",
    "linux",
    "long",
    "max",
    "min",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "short",
    "signed",
    "sizeof",
    "static_assert",
    "static_cast",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "to_u32",
    "typedef",
    "typeid",
    "typename",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "union",
    "unix",
    "unsigned",
    "using",
    "void",
    "volatile",
    "wchar_t",
    "xor",
    "xor_eq",
];
