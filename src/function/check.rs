//! Types: what a function's names and literals are, and that operators and methods fit them.

use super::method::ResultType;
use super::{Expression, Function, FunctionError, Node, Operator, Type};

/// A function whose types are known and fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// The types of the parameters.
    pub(super) parameters: Vec<Local>,
    /// What `let` binds, in the places behind the parameters.
    pub(super) lets: Vec<Local>,
    pub(super) body: Term,
    pub(super) result: Type,
    /// The literals without a suffix: where they stand, and the suffixes of their types.
    pub(super) literals: Vec<(std::ops::Range<usize>, &'static str)>,
}

impl Typed {
    pub(crate) fn num_parameters(&self) -> usize {
        self.parameters.len()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Local {
    pub(super) name: String,
    pub(super) of: Type,
}

/// An expression whose type is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    pub(super) of: Type,
    pub(super) kind: TermKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TermKind {
    F32(f32),
    F64(f64),
    U32(u32),
    Bool(bool),
    /// A parameter or what a `let` binds, by its place.
    Local(usize),
    Negate(Box<Term>),
    Not(Box<Term>),
    Binary(Operator, Box<Term>, Box<Term>),
    Cast(Box<Term>),
    Call(usize, Vec<Term>),
    /// The last is the exponent.
    Power(Box<Term>, i32),
    If(Box<Term>, Box<Term>, Box<Term>),
    /// A place, its value, and what is made with it.
    Let(usize, Box<Term>, Box<Term>),
}

impl Typed {
    /// The suffix that says the type of each literal without one, in the text that was read; of exponents of `powi` `i32`.
    pub fn literals(&self) -> &[(std::ops::Range<usize>, &'static str)] {
        &self.literals
    }
}

impl Function {
    /// The function for arguments of these types and a result of this one. Literals without a suffix are of type
    /// `float`, `f32` or `f64`, where nothing else says what they are.
    ///
    /// # Errors
    /// What does not fit, at the words that do not.
    pub fn typed(&self, parameters: &[Type], float: Type, result: Type) -> Result<Typed, FunctionError> {
        let named = self.parameters.iter().zip(parameters);
        let locals: Vec<_> =
            named.map(|(parameter, of)| Local { name: parameter.name.clone(), of: *of }).collect();
        let mut check = Check {
            text: &self.text,
            float,
            scope: (0..locals.len()).collect(),
            num_parameters: locals.len(),
            locals,
            literals: Vec::new(),
        };
        let body = check.term(&self.body, Some(result))?;
        if body.of != result {
            let message = format!("this is {}, and the function gives {result}", body.of);
            return Err(check.wrong(&self.body, message));
        }
        let lets = check.locals.split_off(check.num_parameters);
        Ok(Typed { parameters: check.locals, lets, body, result, literals: check.literals })
    }
}

struct Check<'a> {
    text: &'a str,
    float: Type,
    locals: Vec<Local>,
    num_parameters: usize,
    /// Places of the names that can be seen, the innermost last.
    scope: Vec<usize>,
    literals: Vec<(std::ops::Range<usize>, &'static str)>,
}

impl Check<'_> {
    fn wrong(&self, at: &Expression, message: String) -> FunctionError {
        FunctionError::new(self.text, &at.at, message)
    }

    /// The expression, with its literals of the type that is expected where it is a floating-point one.
    fn term(&mut self, expression: &Expression, expected: Option<Type>) -> Result<Term, FunctionError> {
        match &expression.node {
            Node::Float(digits, suffix) => {
                let of = suffix.or(expected.filter(|expected| expected.is_float())).unwrap_or(self.float);
                if suffix.is_none() {
                    self.literals.push((expression.at.clone(), of.name()));
                }
                self.float_literal(expression, digits, of)
            }
            Node::Integer(number) => match expected {
                Some(of) if of.is_float() => Err(self.wrong(
                    expression,
                    format!("this is a whole number, and {of} is needed; write `{number}.0`"),
                )),
                _ => {
                    self.integer_literal(expression, Type::U32.name());
                    Ok(Term { of: Type::U32, kind: TermKind::U32(*number) })
                }
            },
            Node::Bool(value) => Ok(Term { of: Type::Bool, kind: TermKind::Bool(*value) }),
            Node::Constant(of, place) => {
                let constant = &super::eval::CONSTANTS[*place];
                let kind =
                    if *of == Type::F32 { TermKind::F32(constant.f32) } else { TermKind::F64(constant.f64) };
                Ok(Term { of: *of, kind })
            }
            Node::Name(name) => self.name(expression, name),
            Node::Negate(operand) => {
                let operand_term = self.term(operand, expected)?;
                if !operand_term.of.is_float() {
                    return Err(
                        self.wrong(operand, format!("`-` needs f32 or f64, and this is {}", operand_term.of))
                    );
                }
                Ok(Term { of: operand_term.of, kind: TermKind::Negate(Box::new(operand_term)) })
            }
            Node::Not(operand) => {
                let term = self.of_type(operand, Type::Bool, "`!` needs bool")?;
                Ok(Term { of: Type::Bool, kind: TermKind::Not(Box::new(term)) })
            }
            Node::Binary(operator, left, right) => self.binary(expression, *operator, left, right, expected),
            Node::Cast(operand, to) => self.cast(expression, operand, *to),
            Node::Call(..) => self.call(expression, expected),
            Node::If(condition, then, otherwise) => {
                let condition = self.of_type(condition, Type::Bool, "a condition is bool")?;
                let (then, otherwise) =
                    self.alike(then, otherwise, expected, "both branches have one type")?;
                let of = then.of;
                Ok(Term { of, kind: TermKind::If(condition.into(), then.into(), otherwise.into()) })
            }
            Node::Block(lets, value) => {
                let visible = self.scope.len();
                let mut bound = Vec::new();
                for binding in lets {
                    let term = self.term(&binding.value, binding.declared)?;
                    if let Some(declared) = binding.declared.filter(|declared| *declared != term.of) {
                        let message =
                            format!("this is {}, and `{}` is {declared}", term.of, binding.name.name);
                        return Err(self.wrong(&binding.value, message));
                    }
                    let place = self.locals.len();
                    self.locals.push(Local { name: binding.name.name.clone(), of: term.of });
                    self.scope.push(place);
                    bound.push((place, term));
                }
                let value = self.term(value, expected)?;
                self.scope.truncate(visible);
                Ok(bound.into_iter().rev().fold(value, |body, (place, term)| Term {
                    of: body.of,
                    kind: TermKind::Let(place, Box::new(term), Box::new(body)),
                }))
            }
        }
    }

    fn integer_literal(&mut self, at: &Expression, suffix: &'static str) {
        if !self.text[at.at.clone()]
            .trim_end_matches(|c: char| c == ')' || c.is_whitespace())
            .ends_with("u32")
        {
            self.literals.push((at.at.clone(), suffix));
        }
    }

    fn float_literal(&self, at: &Expression, digits: &str, of: Type) -> Result<Term, FunctionError> {
        let (kind, is_finite) = match of {
            Type::F32 => {
                let number: f32 = digits.parse().unwrap_or(f32::INFINITY);
                (TermKind::F32(number), number.is_finite())
            }
            _ => {
                let number: f64 = digits.parse().unwrap_or(f64::INFINITY);
                (TermKind::F64(number), number.is_finite())
            }
        };
        if is_finite {
            Ok(Term { of, kind })
        } else {
            Err(self.wrong(
                at,
                format!("this is greater than every {of}; write `{of}::INFINITY` where it is meant"),
            ))
        }
    }

    fn name(&self, at: &Expression, name: &str) -> Result<Term, FunctionError> {
        let place = self.scope.iter().rev().find(|place| self.locals[**place].name == name);
        match place {
            Some(&place) => Ok(Term { of: self.locals[place].of, kind: TermKind::Local(place) }),
            None => {
                let visible: Vec<_> =
                    self.scope.iter().map(|place| self.locals[*place].name.as_str()).collect();
                let known = if visible.is_empty() { "nothing".into() } else { visible.join(", ") };
                Err(self.wrong(at, format!("there is no `{name}` here; known are {known}")))
            }
        }
    }

    fn of_type(&mut self, operand: &Expression, wanted: Type, rule: &str) -> Result<Term, FunctionError> {
        let term = self.term(operand, Some(wanted))?;
        if term.of == wanted {
            Ok(term)
        } else {
            Err(self.wrong(operand, format!("{rule}, and this is {}", term.of)))
        }
    }

    /// Two expressions of one type: a literal takes that of the other.
    fn alike(
        &mut self,
        left: &Expression,
        right: &Expression,
        expected: Option<Type>,
        rule: &str,
    ) -> Result<(Term, Term), FunctionError> {
        let (left_term, right_term) = if is_literal(left) && !is_literal(right) {
            let right_term = self.term(right, expected)?;
            (self.term(left, Some(right_term.of))?, right_term)
        } else {
            let left_term = self.term(left, expected)?;
            let right_term = self.term(right, Some(left_term.of))?;
            (left_term, right_term)
        };
        if left_term.of != right_term.of {
            let message = format!("{rule}: the left is {} and this is {}", left_term.of, right_term.of);
            return Err(self.wrong(right, message));
        }
        Ok((left_term, right_term))
    }

    fn binary(
        &mut self,
        at: &Expression,
        operator: Operator,
        left: &Expression,
        right: &Expression,
        expected: Option<Type>,
    ) -> Result<Term, FunctionError> {
        let text = operator.text();
        if operator.is_logical() {
            let rule = format!("`{text}` needs bool");
            let left = self.of_type(left, Type::Bool, &rule)?;
            let right = self.of_type(right, Type::Bool, &rule)?;
            return Ok(Term { of: Type::Bool, kind: TermKind::Binary(operator, left.into(), right.into()) });
        }
        let expected = if operator.is_comparison() { None } else { expected };
        let rule = format!("`{text}` needs two of one type, `as` converts");
        let (left_term, right_term) = self.alike(left, right, expected, &rule)?;
        let of = left_term.of;
        let is_equality = matches!(operator, Operator::Equal | Operator::NotEqual);
        if of == Type::Bool && !is_equality {
            return Err(self.wrong(at, format!("`{text}` needs numbers, and these are bool")));
        }
        let divides = matches!(operator, Operator::Divide | Operator::Remainder);
        if of == Type::U32 && divides && !matches!(right_term.kind, TermKind::U32(divisor) if divisor != 0) {
            return Err(self.wrong(right, "whole numbers are divided by a constant other than 0".into()));
        }
        let of = if operator.is_comparison() { Type::Bool } else { of };
        Ok(Term { of, kind: TermKind::Binary(operator, left_term.into(), right_term.into()) })
    }

    fn cast(&mut self, at: &Expression, operand: &Expression, to: Type) -> Result<Term, FunctionError> {
        let term = self.term(
            operand,
            Some(to).filter(|to| to.is_float() && !matches!(operand.node, Node::Integer(_))),
        )?;
        let is_allowed = match to {
            Type::Bool => term.of == Type::Bool,
            Type::U32 => true,
            Type::F32 | Type::F64 => term.of != Type::Bool,
        };
        match (is_allowed, to) {
            (true, _) => Ok(Term { of: to, kind: TermKind::Cast(Box::new(term)) }),
            (false, Type::Bool) => {
                Err(self.wrong(at, "numbers are compared, not cast to bool: `a != 0.0`".into()))
            }
            (false, _) => Err(self.wrong(at, format!("bool is cast to u32 first: `… as u32 as {to}`"))),
        }
    }

    fn call(&mut self, call: &Expression, expected: Option<Type>) -> Result<Term, FunctionError> {
        let Node::Call(method, name_at, arguments) = &call.node else {
            unreachable!("asked for calls alone")
        };
        let expected = expected.filter(|_| method.result == ResultType::Receiver);
        let receiver =
            self.term(&arguments[0], expected.filter(|_| !matches!(arguments[0].node, Node::Integer(_))))?;
        let of = receiver.of;
        if !method.is_of(of) {
            let message = format!(
                "{of} has no method `{}`; `as f32` or `as f64` makes a number that has it",
                method.name
            );
            return Err(FunctionError::new(self.text, name_at, message));
        }
        if method.name == "powi" {
            let exponent = exponent(&arguments[1])
                .filter(|exponent| exponent.abs() <= MAX_EXPONENT)
                .ok_or_else(|| self.wrong(&arguments[1], format!("`powi` takes a whole number that is written out, from -{MAX_EXPONENT} to {MAX_EXPONENT}")))?;
            let mut written = &arguments[1];
            while let Node::Negate(operand) = &written.node {
                written = operand;
            }
            self.integer_literal(written, "i32");
            return Ok(Term { of, kind: TermKind::Power(receiver.into(), exponent) });
        }
        let rule = format!("`{}` takes {of} here", method.name);
        let mut terms = vec![receiver];
        for argument in &arguments[1..] {
            terms.push(self.of_type(argument, of, &rule)?);
        }
        let place =
            super::METHODS.iter().position(|known| known.name == method.name).expect("it is one of them");
        let of = if method.result == ResultType::Bool { Type::Bool } else { of };
        Ok(Term { of, kind: TermKind::Call(place, terms) })
    }
}

/// The largest exponent: exact in every type that a power is computed in.
const MAX_EXPONENT: i32 = 1024;

/// Whether a number is written out.
fn is_literal(expression: &Expression) -> bool {
    match &expression.node {
        Node::Float(_, suffix) => suffix.is_none(),
        Node::Negate(operand) => is_literal(operand),
        Node::Integer(_) => true,
        _ => false,
    }
}

/// The number that is written out, with a sign where it has one.
fn exponent(expression: &Expression) -> Option<i32> {
    match &expression.node {
        Node::Integer(number) => i32::try_from(*number).ok(),
        Node::Negate(operand) => exponent(operand)?.checked_neg(),
        _ => None,
    }
}
