//! Text into functions: words first, then expressions by how closely operators bind.

use std::ops::Range;

use super::eval::CONSTANTS;
use super::method::{METHODS, Method};
use super::{COMPARISON, Expression, Function, FunctionError, Let, Node, Operator, Parameter, Type};

/// Words of a function, at most. Trees are no deeper, so whoever walks one has enough stack.
const MAX_WORDS: usize = 250;

/// Parentheses, blocks and signs within each other, at most.
const MAX_DEPTH: usize = 50;

/// One word of a text.
#[derive(Clone, Debug)]
struct Word<'a> {
    kind: Kind,
    text: &'a str,
    at: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Name,
    Integer,
    Float,
    Mark,
    End,
}

/// Marks of two characters; every other mark is one.
const PAIRS: [&str; 16] =
    ["||", "&&", "==", "!=", "<=", ">=", "::", "->", "=>", "..", "<<", ">>", "+=", "-=", "*=", "/="];

pub(super) fn function(text: &str) -> Result<Function, FunctionError> {
    let function = read(text)?;
    // Its canonical text is what is passed on.
    match read(&function.canonical) {
        Ok(_) => Ok(function),
        Err(error) => {
            let message =
                format!("with all of its parentheses it is too long or too deep: {}", error.message);
            Err(FunctionError::whole(&function, message))
        }
    }
}

fn read(text: &str) -> Result<Function, FunctionError> {
    let mut parser = Parser::new(text)?;
    let parameters = parser.parameters()?;
    let body = parser.expression(0)?;
    parser.end("an operator")?;
    let canonical = super::print::canonical(&parameters, &body);
    Ok(Function { parameters, body, text: text.to_owned(), canonical })
}

/// Reads a list of names: `[d, b]`, or without the brackets.
///
/// # Errors
/// What is not a name, and a name that stands twice.
pub fn names(text: &str) -> Result<Vec<String>, FunctionError> {
    let mut parser = Parser::new(text)?;
    let bracketed = parser.take("[");
    let mut names: Vec<String> = Vec::new();
    while parser.word().kind != Kind::End && parser.word().text != "]" {
        let name = parser.name("a name")?;
        if names.contains(&name.name) {
            return Err(parser.error_at(&name.at, format!("`{}` stands twice", name.name)));
        }
        names.push(name.name);
        if !parser.take(",") {
            break;
        }
    }
    if bracketed {
        parser.expect("]", "`,` or `]`")?;
    }
    parser.end("`,` or the end")?;
    Ok(names)
}

fn words(text: &str) -> Result<Vec<Word<'_>>, FunctionError> {
    let mut words = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    while start < bytes.len() {
        let rest = &text[start..];
        let first = rest.chars().next().expect("there is a rest");
        if first.is_whitespace() {
            start += first.len_utf8();
            continue;
        }
        let run = |holds: fn(&u8) -> bool| rest.bytes().take_while(holds).count();
        let (kind, length) = if first.is_ascii_alphabetic() || first == '_' {
            (Kind::Name, run(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'))
        } else if first.is_ascii_digit() {
            number(rest)
        } else if PAIRS.iter().any(|pair| rest.starts_with(pair)) {
            (Kind::Mark, 2)
        } else if first.is_ascii_punctuation() && first != '\'' && first != '"' {
            (Kind::Mark, 1)
        } else {
            let at = start..start + first.len_utf8();
            let message = "functions are written in ASCII letters, digits and marks";
            return Err(FunctionError::new(text, &at, message));
        };
        let at = start..start + length;
        words.push(Word { kind, text: &text[at.clone()], at });
        start += length;
    }
    if words.len() > MAX_WORDS {
        let at = words[MAX_WORDS].at.clone();
        return Err(FunctionError::new(text, &at, format!("a function has at most {MAX_WORDS} words")));
    }
    words.push(Word { kind: Kind::End, text: "", at: text.len()..text.len() });
    Ok(words)
}

/// The kind and the length of the number that a text begins with, as Rust reads it: `1.max` is a whole number.
fn number(text: &str) -> (Kind, usize) {
    let bytes = text.as_bytes();
    let at = |place: usize| bytes.get(place).copied().unwrap_or(0);
    let digits =
        |from: usize| from + bytes[from..].iter().take_while(|b| b.is_ascii_digit() || **b == b'_').count();
    let mut end = digits(0);
    let mut kind = Kind::Integer;
    if at(end) == b'.' && at(end + 1) != b'.' && !(at(end + 1).is_ascii_alphabetic() || at(end + 1) == b'_') {
        kind = Kind::Float;
        end = digits(end + 1);
    }
    if matches!(at(end), b'e' | b'E') {
        let sign = usize::from(matches!(at(end + 1), b'+' | b'-'));
        if at(end + 1 + sign).is_ascii_digit() {
            kind = Kind::Float;
            end = digits(end + 1 + sign);
        }
    }
    let suffix = bytes[end..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    if matches!(&text[end..end + suffix], "f32" | "f64" | "_f32" | "_f64") {
        kind = Kind::Float;
    }
    (kind, end + suffix)
}

struct Parser<'a> {
    text: &'a str,
    words: Vec<Word<'a>>,
    next: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, FunctionError> {
        Ok(Parser { text, words: words(text)?, next: 0, depth: 0 })
    }

    fn word(&self) -> &Word<'a> {
        &self.words[self.next]
    }

    fn advance(&mut self) -> Word<'a> {
        let word = self.word().clone();
        self.next = (self.next + 1).min(self.words.len() - 1);
        word
    }

    fn is(&self, mark: &str) -> bool {
        self.word().text == mark && self.word().kind != Kind::End
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = self.is(mark);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, mark: &str, wanted: &str) -> Result<(), FunctionError> {
        if self.take(mark) { Ok(()) } else { Err(self.expected(wanted)) }
    }

    fn error_at(&self, at: &Range<usize>, message: impl Into<String>) -> FunctionError {
        FunctionError::new(self.text, at, message)
    }

    fn expected(&self, wanted: &str) -> FunctionError {
        let word = self.word();
        let found = if word.kind == Kind::End { "nothing".into() } else { format!("`{}`", word.text) };
        self.error_at(&word.at, format!("expected {wanted}, found {found}"))
    }

    fn end(&mut self, wanted: &str) -> Result<(), FunctionError> {
        match self.word().text {
            "" => Ok(()),
            "=" => Err(self.not_allowed("assignments are not allowed; bind a new name with `let`")),
            "&" | "|" | "^" | "<<" | ">>" => {
                Err(self.not_allowed("allowed are + - * / %, comparisons, && || !"))
            }
            "?" | ".." => Err(self.not_allowed("allowed are + - * / %, comparisons, && || !")),
            _ => Err(self.expected(wanted)),
        }
    }

    fn not_allowed(&self, what: &str) -> FunctionError {
        let word = self.word();
        self.error_at(&word.at, format!("`{}` is not allowed in a function; {what}", word.text))
    }

    /// A name that may be bound.
    fn name(&mut self, wanted: &str) -> Result<Parameter, FunctionError> {
        let word = self.word().clone();
        match word.text {
            _ if word.kind != Kind::Name => Err(self.expected(wanted)),
            "_" => {
                Err(self.error_at(&word.at, "every parameter has a name; write `_name` where it is not used"))
            }
            text if KEYWORDS.contains(&text) => {
                Err(self.error_at(&word.at, format!("`{text}` is a word of Rust's and cannot be a name")))
            }
            text => {
                self.advance();
                Ok(Parameter { name: text.to_owned(), at: word.at })
            }
        }
    }

    /// `|a, x|`, or nothing.
    fn parameters(&mut self) -> Result<Vec<Parameter>, FunctionError> {
        let mut parameters: Vec<Parameter> = Vec::new();
        if self.is("move") {
            return Err(self.not_allowed("it takes nothing with it but its parameters"));
        }
        if self.take("||") || !self.take("|") {
            return Ok(parameters);
        }
        while !self.take("|") {
            let parameter = self.name("a parameter")?;
            if self.is(":") {
                let message = "parameters have the types of the kernel and are written without one";
                return Err(self.error_at(&self.word().at, message));
            }
            if parameters.iter().any(|earlier| earlier.name == parameter.name) {
                return Err(self.error_at(&parameter.at, format!("`{}` stands twice", parameter.name)));
            }
            parameters.push(parameter);
            if !self.take(",") && !self.is("|") {
                return Err(self.expected("`,` or `|`"));
            }
        }
        if self.is("->") {
            return Err(self.not_allowed("its result has the type of the kernel's sums"));
        }
        Ok(parameters)
    }

    /// An expression whose operators bind at least so closely.
    fn expression(&mut self, closest: u8) -> Result<Expression, FunctionError> {
        let mut left = self.cast()?;
        loop {
            let word = self.word().clone();
            let found =
                Operator::ALL.iter().find(|(_, text, _)| *text == word.text && word.kind == Kind::Mark);
            let Some(&(operator, _, precedence)) = found else { return Ok(left) };
            if precedence < closest {
                return Ok(left);
            }
            if precedence == COMPARISON
                && matches!(&left.node, Node::Binary(other, ..) if other.is_comparison())
                && !self.text[..left.at.end].ends_with(')')
            {
                let message = "comparisons cannot be chained; join them with `&&`";
                return Err(self.error_at(&word.at, message));
            }
            self.advance();
            let right = self.expression(precedence + 1)?;
            let at = left.at.start..right.at.end;
            left = Expression { node: Node::Binary(operator, Box::new(left), Box::new(right)), at };
        }
    }

    fn unary(&mut self) -> Result<Expression, FunctionError> {
        let word = self.word().clone();
        let node: fn(Box<Expression>) -> Node = match word.text {
            "-" => Node::Negate,
            "!" => Node::Not,
            "&" | "*" => return Err(self.not_allowed("there are no references")),
            "&&" => return Err(self.not_allowed("there are no references")),
            "|" | "||" => return Err(self.not_allowed("a function holds no other")),
            _ => return self.operand(),
        };
        self.advance();
        let operand = self.nested(Self::unary)?;
        let at = word.at.start..operand.at.end;
        Ok(Expression { node: node(Box::new(operand)), at })
    }

    /// An operand and the types that it is cast to.
    fn cast(&mut self) -> Result<Expression, FunctionError> {
        let mut operand = self.unary()?;
        while self.take("as") {
            let word = self.word().clone();
            let to = self.type_name("a type")?;
            let at = operand.at.start..word.at.end;
            operand = Expression { node: Node::Cast(Box::new(operand), to), at };
        }
        Ok(operand)
    }

    fn type_name(&mut self, wanted: &str) -> Result<Type, FunctionError> {
        let word = self.word().clone();
        if word.kind != Kind::Name {
            return Err(self.expected(wanted));
        }
        let found = Type::ALL.into_iter().find(|known| known.name() == word.text);
        self.advance();
        found.ok_or_else(|| {
            let message =
                format!("there is no type `{}` in a function; allowed: f32, f64, u32, bool", word.text);
            self.error_at(&word.at, message)
        })
    }

    fn nested(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Expression, FunctionError>,
    ) -> Result<Expression, FunctionError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("a function is nested at most {MAX_DEPTH} deep");
            return Err(self.error_at(&self.word().at, message));
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// A primary expression and the methods that are called on it.
    fn operand(&mut self) -> Result<Expression, FunctionError> {
        let mut receiver = self.nested(Self::primary)?;
        while self.take(".") {
            let word = self.word().clone();
            if word.kind != Kind::Name {
                return Err(self.expected("a method"));
            }
            self.advance();
            let method = Method::find(word.text).ok_or_else(|| self.no_method(&word))?;
            if self.is("::") {
                return Err(self.not_allowed("methods have no type arguments"));
            }
            self.expect("(", "`(`")?;
            let mut arguments = vec![receiver];
            let end = self.arguments(&mut arguments)?;
            let given = arguments.len() - 1;
            if given != method.arguments {
                let wanted = match method.arguments {
                    0 => "no arguments".to_owned(),
                    1 => "1 argument".to_owned(),
                    several => format!("{several} arguments"),
                };
                return Err(self.error_at(&word.at, format!("`{}` takes {wanted}, not {given}", word.text)));
            }
            let at = arguments[0].at.start..end;
            receiver = Expression { node: Node::Call(method, word.at, arguments), at };
        }
        Ok(receiver)
    }

    /// Arguments behind `(`, and where the `)` behind them ends.
    fn arguments(&mut self, arguments: &mut Vec<Expression>) -> Result<usize, FunctionError> {
        loop {
            let at = self.word().at.clone();
            if self.take(")") {
                return Ok(at.end);
            }
            arguments.push(self.nested(|parser| parser.expression(0))?);
            if !self.take(",") && !self.is(")") {
                return Err(self.expected("`,` or `)`"));
            }
        }
    }

    fn no_method(&self, word: &Word<'_>) -> FunctionError {
        let names: Vec<_> = METHODS.iter().map(|method| method.name).collect();
        let message =
            format!("there is no method `{}` in a function; allowed: {}", word.text, names.join(", "));
        self.error_at(&word.at, message)
    }

    fn primary(&mut self) -> Result<Expression, FunctionError> {
        let word = self.word().clone();
        let node = match (word.kind, word.text) {
            (Kind::Float, _) => self.float(&word)?,
            (Kind::Integer, _) => self.integer(&word)?,
            (Kind::Name, "true" | "false") => Node::Bool(word.text == "true"),
            (Kind::Name, "if") => return self.condition(),
            (Kind::Name, text) if KEYWORDS.contains(&text) => {
                return Err(self.not_allowed("allowed are `let`, `if` with `else`, and expressions"));
            }
            (Kind::Name, _) => return self.path(),
            (Kind::Mark, "(") => return self.parenthesised(),
            (Kind::Mark, "{") => return self.block(),
            (Kind::Mark, "[") => return Err(self.not_allowed("a function is of single numbers")),
            _ => return Err(self.expected("an expression")),
        };
        self.advance();
        Ok(Expression { node, at: word.at })
    }

    fn float(&self, word: &Word<'_>) -> Result<Node, FunctionError> {
        let plain = word.text.replace('_', "");
        let suffix = [Type::F32, Type::F64].into_iter().find(|of| plain.ends_with(of.name()));
        let digits = suffix.map_or(plain.as_str(), |of| &plain[..plain.len() - of.name().len()]);
        match digits.parse::<f64>() {
            // `2.` cannot have a method behind it.
            Ok(_) if digits.ends_with('.') => Ok(Node::Float(format!("{digits}0"), suffix)),
            Ok(_) => Ok(Node::Float(digits.to_owned(), suffix)),
            Err(_) => {
                Err(self.error_at(&word.at, "this is no number; write it as `0.5`, `1e-6` or `0.5f64`"))
            }
        }
    }

    fn integer(&self, word: &Word<'_>) -> Result<Node, FunctionError> {
        let plain = word.text.replace('_', "");
        match plain.strip_suffix("u32").unwrap_or(&plain).parse() {
            Ok(number) => Ok(Node::Integer(number)),
            Err(_) => Err(self.error_at(
                &word.at,
                "this is no whole number of 32 bits; write it in decimal, without a suffix or with `u32`",
            )),
        }
    }

    /// A name, or a constant of a type.
    fn path(&mut self) -> Result<Expression, FunctionError> {
        let word = self.advance();
        if self.is("(") {
            let message = match Method::find(word.text) {
                Some(method) => format!("functions are called as methods: `a.{}(…)`", method.name),
                None => format!("there is no function `{}`; allowed are methods, as in `a.abs()`", word.text),
            };
            return Err(self.error_at(&word.at, message));
        }
        if self.is("!") && self.words.get(self.next + 1).is_some_and(|after| "([{".contains(after.text)) {
            return Err(self.error_at(&word.at, "macros are not allowed in a function"));
        }
        if !self.take("::") {
            return Ok(Expression { node: Node::Name(word.text.to_owned()), at: word.at });
        }
        let constant = self.advance();
        let at = word.at.start..constant.at.end;
        let of = [Type::F32, Type::F64].into_iter().find(|of| of.name() == word.text);
        let place = CONSTANTS.iter().position(|known| known.name == constant.text);
        if self.is("(") && Method::find(constant.text).is_some() {
            let message = format!("functions are called as methods: `a.{}(…)`", constant.text);
            return Err(self.error_at(&at, message));
        }
        match (of, place) {
            (Some(of), Some(place)) => Ok(Expression { node: Node::Constant(of, place), at }),
            _ => {
                let names: Vec<_> = CONSTANTS.iter().map(|known| known.name).collect();
                let message =
                    format!("there is no such constant; allowed are, of f32 and f64: {}", names.join(", "));
                Err(self.error_at(&at, message))
            }
        }
    }

    fn parenthesised(&mut self) -> Result<Expression, FunctionError> {
        let start = self.advance().at.start;
        let inner = self.expression(0)?;
        if self.is(",") {
            return Err(self.not_allowed("there are no tuples"));
        }
        let end = self.word().at.end;
        self.expect(")", "`)` or an operator")?;
        Ok(Expression { at: start..end, ..inner })
    }

    /// `if a { b } else { c }`.
    fn condition(&mut self) -> Result<Expression, FunctionError> {
        let start = self.advance().at.start;
        if self.is("let") {
            return Err(self.not_allowed("a condition is true or false"));
        }
        let condition = self.expression(0)?;
        if !self.is("{") {
            return Err(self.expected("`{` or an operator"));
        }
        let then = self.nested(Self::block)?;
        if !self.is("else") {
            let at = start..self.words[self.next - 1].at.end;
            return Err(self.error_at(&at, "an `if` has an `else`: a function gives a number in any case"));
        }
        self.advance();
        let otherwise = match self.word().text {
            "if" => self.nested(Self::condition)?,
            "{" => self.nested(Self::block)?,
            _ => return Err(self.expected("`if` or `{`")),
        };
        let at = start..otherwise.at.end;
        Ok(Expression { node: Node::If(Box::new(condition), Box::new(then), Box::new(otherwise)), at })
    }

    /// `{ let a = b; c }`; without its braces where it binds nothing.
    fn block(&mut self) -> Result<Expression, FunctionError> {
        let start = self.word().at.start;
        self.expect("{", "`{`")?;
        let mut lets = Vec::new();
        while self.take("let") {
            if self.is("mut") {
                return Err(self.not_allowed("names are bound once; a second `let` may bind one anew"));
            }
            let name = self.name("a name")?;
            let declared = if self.take(":") { Some(self.type_name("a type")?) } else { None };
            self.expect("=", "`=`")?;
            let value = self.expression(0)?;
            self.expect(";", "`;` or an operator")?;
            lets.push(Let { name, declared, value });
        }
        if self.is("}") {
            return Err(self.error_at(&self.word().at.clone(), "a block ends with its value, without `;`"));
        }
        let value = self.expression(0)?;
        if self.is(";") {
            return Err(self.not_allowed("only `let` ends with it; a block ends with its value"));
        }
        if self.is("=") {
            self.end("")?;
        }
        let end = self.word().at.end;
        self.expect("}", "`}` or an operator")?;
        if lets.is_empty() {
            return Ok(value);
        }
        Ok(Expression { node: Node::Block(lets, Box::new(value)), at: start..end })
    }
}

/// Words that Rust keeps for itself.
const KEYWORDS: [&str; 52] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "Self",
    "static", "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];
