//! Functions as canonical Rust.

use std::fmt::Write;

use super::eval::CONSTANTS;
use super::{COMPARISON, Expression, Node, Parameter};

/// How closely signs and casts bind, and what needs no parentheses anywhere.
const UNARY: u8 = 6;
const ATOM: u8 = 7;

pub(super) fn canonical(parameters: &[Parameter], body: &Expression) -> String {
    let mut text = String::new();
    if !parameters.is_empty() {
        let names: Vec<_> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        write!(text, "|{}| ", names.join(", ")).expect("writing to a String succeeds");
    }
    text + &expression(body)
}

fn expression(expression: &Expression) -> String {
    match &expression.node {
        Node::Float(digits, suffix) => digits.clone() + suffix.map_or("", |suffix| suffix.name()),
        Node::Integer(number) => number.to_string(),
        Node::Bool(value) => value.to_string(),
        Node::Name(name) => name.clone(),
        Node::Constant(of, place) => format!("{of}::{}", CONSTANTS[*place].name),
        Node::Negate(operand) => format!("-{}", within(operand, UNARY)),
        Node::Not(operand) => format!("!{}", within(operand, UNARY)),
        Node::Cast(operand, to) => format!("{} as {to}", within(operand, UNARY)),
        Node::Binary(operator, left, right) => {
            let precedence = operator.precedence();
            // Comparisons cannot be chained, so a comparison on the left needs parentheses too.
            let left = within(left, if precedence == COMPARISON { precedence + 1 } else { precedence });
            format!("{left} {} {}", operator.text(), within(right, precedence + 1))
        }
        Node::Call(method, _, arguments) => {
            let others: Vec<_> = arguments[1..].iter().map(self::expression).collect();
            format!("{}.{}({})", within(&arguments[0], ATOM), method.name, others.join(", "))
        }
        Node::If(condition, then, otherwise) => {
            let otherwise = match &otherwise.node {
                Node::If(..) => self::expression(otherwise),
                _ => block(otherwise),
            };
            format!("if {} {} else {otherwise}", within(condition, 1), block(then))
        }
        Node::Block(..) => block(expression),
    }
}

/// In braces.
fn block(expression: &Expression) -> String {
    let Node::Block(lets, value) = &expression.node else {
        return format!("{{ {} }}", self::expression(expression));
    };
    let mut text = String::from("{ ");
    for binding in lets {
        let declared = binding.declared.map(|declared| format!(": {declared}")).unwrap_or_default();
        let value = self::expression(&binding.value);
        write!(text, "let {}{declared} = {value}; ", binding.name.name)
            .expect("writing to a String succeeds");
    }
    text + &self::expression(value) + " }"
}

/// In parentheses where it binds less closely.
fn within(inner: &Expression, precedence: u8) -> String {
    let own = match &inner.node {
        Node::Binary(operator, ..) => operator.precedence(),
        // Rust reads `a as f32 < b` otherwise than it is meant.
        Node::Cast(..) | Node::If(..) | Node::Block(..) => 0,
        Node::Negate(_) | Node::Not(_) => UNARY,
        _ => ATOM,
    };
    let text = expression(inner);
    if own < precedence { format!("({text})") } else { text }
}
