//! Functions of numbers that the user writes, in a part of Rust: what a product combines, reduces, maps and stores with.
//!
//! A [`Function`] is read from text, `|a, x| (a - x).abs()`, by the macro and at run time alike. Its types are checked
//! where it is known what it is for ([`Function::typed`]); what comes of that is printed as CUDA and evaluated on the CPU
//! ([`Typed`]), with the same roundings: every operation rounds once, and nothing is contracted but `mul_add`.
//!
//! | allowed | |
//! |---|---|
//! | numbers | `0.85`, `1e-6`, `2.0f64`; whole numbers `3` for `row`, `col` and the exponent of `powi`; `f32::INFINITY` and other constants of `f32` and `f64` |
//! | operators | `+ - * / %`, comparisons, `&& \|\| !` |
//! | forms | `let name = …;`, `if … { … } else { … }`, blocks, `as f32`, `as f64`, `as u32` |
//! | methods | those of [`METHODS`] |
//!
//! `abs`, `sqrt`, `recip`, `floor`, `ceil`, `trunc`, `round`, `min`, `max`, `clamp`, `mul_add`, `powi`, `signum` and
//! `copysign` give the same bits on the CPU and on every device. `exp`, `ln`, `sin` and the other functions that are not
//! algebraic come from libraries that differ in their last bits. `clamp` with its bounds the wrong way round, or with NaN for one,
//! panics in Rust; a kernel takes the lower bound of what is below it, the upper of what is above, and lets a NaN for one be. Of two zeros of different signs `min` gives −0 and `max`
//! +0, which Rust leaves open.

mod check;
mod cuda;
mod eval;
mod method;
mod parse;
mod print;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

pub use check::Typed;
pub(crate) use cuda::{constant, helpers};
pub use eval::{Float, Value};
pub use method::{METHODS, Method};
pub use parse::names;

/// A function that was read from text. Equal where the canonical text is, which [`Display`](fmt::Display) prints and
/// [`parse`](Function::parse) reads again.
#[derive(Clone, Debug)]
pub struct Function {
    parameters: Vec<Parameter>,
    body: Expression,
    /// What was read, which errors point into.
    text: String,
    canonical: String,
}

/// The name of an argument, and where it stands.
#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    at: Range<usize>,
}

/// What an expression is, and where it stands in the text.
#[derive(Clone, Debug)]
struct Expression {
    node: Node,
    at: Range<usize>,
}

#[derive(Clone, Debug)]
enum Node {
    /// Digits, and the suffix where there is one.
    Float(String, Option<Type>),
    Integer(u32),
    Bool(bool),
    Name(String),
    /// A constant of a type: its place in [`eval::CONSTANTS`].
    Constant(Type, usize),
    Negate(Box<Expression>),
    Not(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    Cast(Box<Expression>, Type),
    /// The receiver is the first argument; the range is where the method's name stands.
    Call(&'static Method, Range<usize>, Vec<Expression>),
    If(Box<Expression>, Box<Expression>, Box<Expression>),
    Block(Vec<Let>, Box<Expression>),
}

#[derive(Clone, Debug)]
struct Let {
    name: Parameter,
    declared: Option<Type>,
    value: Expression,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// True or false.
    Bool,
    /// A row or a column.
    U32,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Type {
    const ALL: [Type; 4] = [Type::Bool, Type::U32, Type::F32, Type::F64];

    /// The name in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::U32 => "u32",
            Type::F32 => "f32",
            Type::F64 => "f64",
        }
    }

    const fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    const ALL: [(Operator, &'static str, u8); 13] = [
        (Operator::Or, "||", 1),
        (Operator::And, "&&", 2),
        (Operator::Equal, "==", 3),
        (Operator::NotEqual, "!=", 3),
        (Operator::Less, "<", 3),
        (Operator::LessEqual, "<=", 3),
        (Operator::Greater, ">", 3),
        (Operator::GreaterEqual, ">=", 3),
        (Operator::Add, "+", 4),
        (Operator::Subtract, "-", 4),
        (Operator::Multiply, "*", 5),
        (Operator::Divide, "/", 5),
        (Operator::Remainder, "%", 5),
    ];

    /// As it is written, in Rust and in CUDA alike.
    fn text(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// How closely it binds.
    fn precedence(self) -> u8 {
        Self::ALL[self as usize].2
    }

    fn is_logical(self) -> bool {
        self.precedence() < COMPARISON
    }

    fn is_comparison(self) -> bool {
        self.precedence() == COMPARISON
    }
}

/// How closely comparisons bind; they cannot be chained.
const COMPARISON: u8 = 3;

/// What is wrong with a function, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}, at `{found}`")]
pub struct FunctionError {
    /// What is wrong and what is allowed.
    pub message: String,
    /// The bytes of the text that it is about; empty at the end where something is missing.
    pub at: Range<usize>,
    /// The text there.
    pub found: String,
}

impl FunctionError {
    fn new(text: &str, at: &Range<usize>, message: impl Into<String>) -> FunctionError {
        let found = text.get(at.clone()).filter(|found| !found.is_empty());
        let found = found.map_or_else(|| "the end".into(), |found| found.chars().take(40).collect());
        FunctionError { message: message.into(), at: at.clone(), found }
    }

    /// About a function's parameter of this place, or its body where there is none.
    pub(crate) fn parameter(function: &Function, place: usize, message: String) -> FunctionError {
        let at = function.parameters.get(place).map_or(&function.body.at, |parameter| &parameter.at);
        FunctionError::new(&function.text, at, message)
    }

    /// About a function as a whole.
    pub(crate) fn whole(function: &Function, message: String) -> FunctionError {
        FunctionError::new(&function.text, &(0..function.text.len()), message)
    }
}

impl Function {
    /// Reads a function: `|a, x| a * x`, or an expression alone where it has no parameters.
    ///
    /// ```
    /// use spmv_codegen::function::Function;
    ///
    /// let distance = Function::parse("|a, x| ((a - x)).abs()")?;
    /// assert_eq!(distance.to_string(), "|a, x| (a - x).abs()");
    /// let refused = Function::parse("|a, x| a.gamma() + x").unwrap_err();
    /// assert_eq!(refused.found, "gamma");
    /// # Ok::<(), spmv_codegen::function::FunctionError>(())
    /// ```
    ///
    /// # Errors
    /// What is not in the language, at the words that are not.
    pub fn parse(text: &str) -> Result<Function, FunctionError> {
        parse::function(text)
    }

    /// The names of the parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|parameter| parameter.name.as_str())
    }

    /// Whether the body reads the parameter of this place.
    pub(crate) fn reads(&self, index: usize) -> bool {
        fn mentions(expression: &Expression, name: &str) -> bool {
            let any = |parts: &[&Expression]| parts.iter().any(|part| mentions(part, name));
            match &expression.node {
                Node::Name(found) => found == name,
                Node::Float(..) | Node::Integer(_) | Node::Bool(_) | Node::Constant(..) => false,
                Node::Negate(a) | Node::Not(a) | Node::Cast(a, _) => mentions(a, name),
                Node::Binary(_, a, b) => any(&[a, b]),
                Node::Call(_, _, arguments) => arguments.iter().any(|argument| mentions(argument, name)),
                Node::If(condition, a, b) => any(&[condition, a, b]),
                Node::Block(lets, value) => {
                    lets.iter().any(|binding| mentions(&binding.value, name)) || mentions(value, name)
                }
            }
        }
        self.parameters.get(index).is_some_and(|parameter| mentions(&self.body, &parameter.name))
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical.hash(state);
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical)
    }
}

#[cfg(test)]
mod tests;
