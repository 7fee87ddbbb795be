//! PTX text into statements. Knows the grammar, not what an instruction means.

use std::collections::HashMap;

use crate::error::LoadError;

/// A parsed translation unit.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    /// The number in `.target sm_90a`.
    pub(crate) target: u32,
    pub(crate) files: HashMap<u32, String>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: Vec<Function>,
}

/// A variable in some memory.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) space: String,
    pub(crate) name: String,
    pub(crate) align: u64,
    pub(crate) element_bytes: u64,
    /// Number of elements; none for `extern` arrays of open length.
    pub(crate) count: Option<u64>,
    /// Bytes that are known; the rest is zero.
    pub(crate) initial: Vec<u8>,
    pub(crate) line: u32,
}

impl Variable {
    pub(crate) fn bytes(&self) -> u64 {
        self.element_bytes * self.count.unwrap_or(0)
    }
}

/// An entry or a device function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) is_entry: bool,
    pub(crate) returns: Vec<Variable>,
    pub(crate) params: Vec<Variable>,
    pub(crate) body: Vec<Statement>,
    pub(crate) has_body: bool,
    /// `.maxntid`: threads a block, at most.
    pub(crate) max_threads: Option<u64>,
    /// `.reqntid`: threads a block along x, y, z.
    pub(crate) block: Option<[u64; 3]>,
    pub(crate) line: u32,
}

#[derive(Debug)]
pub(crate) enum Statement {
    /// `.reg .b32 %r<10>;` or a plain name: kind, name, how many (none for a plain name).
    Registers {
        kind: String,
        name: String,
        count: Option<u32>,
        line: u32,
    },
    Variable(Variable),
    Label {
        name: String,
        line: u32,
    },
    Instruction(Instruction),
    /// `.loc file line`: where the instructions that follow come from.
    Location {
        file: u32,
        line: u32,
    },
    /// `{` and `}` of an inner scope.
    Open,
    Close,
    /// `name: .branchtargets a, b;`
    Targets {
        name: String,
        labels: Vec<String>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) line: u32,
    /// Predicate register and whether it is negated.
    pub(crate) guard: Option<(String, bool)>,
    /// The whole mnemonic, `ld.global.nc.f32`.
    pub(crate) opcode: String,
    pub(crate) operands: Vec<Operand>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// A register, variable, label or special register.
    Name(String),
    /// A negated predicate, `!%p1`.
    Not(String),
    /// An integer, two's complement in 64 bits.
    Int(u64),
    /// `0f3F800000`
    F32(u32),
    /// `0d3FF0000000000000`
    F64(u64),
    /// `variable+4`, not in brackets
    Sum(String, u64),
    /// `[base + offset]`; the base is a name or absent.
    Address { base: Option<String>, offset: i64 },
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `a|b`
    Pair(String, String),
    /// `(a, b)` of a call
    List(Vec<Operand>),
    /// `_`
    Sink,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// Names, mnemonics with their dots, directives, numbers: whatever is one word.
    Word(String),
    Text(String),
    Symbol(char),
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    line: u32,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.') || byte >= 0x80
}

impl Lexer<'_> {
    fn next(&mut self) -> Result<Option<(Token, u32)>, LoadError> {
        loop {
            match self.text.get(self.at..).unwrap_or_default() {
                [] => return Ok(None),
                [b'\n', ..] => {
                    self.line += 1;
                    self.at += 1;
                }
                [byte, ..] if byte.is_ascii_whitespace() || *byte == 0 => self.at += 1,
                [b'/', b'/', ..] => {
                    while self.text.get(self.at).is_some_and(|byte| *byte != b'\n') {
                        self.at += 1;
                    }
                }
                [b'/', b'*', ..] => {
                    let start = self.line;
                    self.at += 2;
                    while self.text.get(self.at..self.at + 2) != Some(b"*/".as_slice()) {
                        match self.text.get(self.at) {
                            None => return Err(LoadError::syntax(start, "a comment is not closed")),
                            Some(b'\n') => self.line += 1,
                            Some(_) => {}
                        }
                        self.at += 1;
                    }
                    self.at += 2;
                }
                [b'"', ..] => {
                    let (start, line) = (self.at + 1, self.line);
                    self.at = start;
                    loop {
                        match self.text.get(self.at) {
                            None => return Err(LoadError::syntax(line, "a string is not closed")),
                            Some(b'"') => break,
                            Some(b'\n') => self.line += 1,
                            Some(b'\\') => self.at += 1,
                            Some(_) => {}
                        }
                        self.at += 1;
                    }
                    let text = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
                    self.at += 1;
                    return Ok(Some((Token::Text(text), line)));
                }
                [byte, ..] if is_word(*byte) => {
                    let start = self.at;
                    // `::` belongs to a mnemonic: ld.global.L1::no_allocate, createpolicy, cp.async.bulk.
                    while self.text.get(self.at).is_some_and(|byte| is_word(*byte))
                        || (self.text.get(self.at..self.at + 2) == Some(b"::".as_slice())
                            && self.text.get(self.at + 2).is_some_and(|byte| is_word(*byte)))
                    {
                        self.at += if self.text[self.at] == b':' { 2 } else { 1 };
                    }
                    let word = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
                    return Ok(Some((Token::Word(word), self.line)));
                }
                [byte, ..] => {
                    self.at += 1;
                    return Ok(Some((Token::Symbol(char::from(*byte)), self.line)));
                }
            }
        }
    }
}

/// Parses a whole unit.
pub(crate) fn parse(text: &str) -> Result<Unit, LoadError> {
    let mut lexer = Lexer { text: text.as_bytes(), at: 0, line: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        tokens.push(token);
    }
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let mut unit = Unit::default();
    while parser.peek().is_some() {
        parser.top_level(&mut unit)?;
    }
    Ok(unit)
}

struct Parser {
    tokens: Vec<(Token, u32)>,
    at: usize,
    /// Braces that are open around an operand or an initialiser.
    depth: u32,
}

/// Most braces inside each other in an operand or an initialiser.
const MAX_DEPTH: u32 = 32;

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn line(&self) -> u32 {
        let token = self.tokens.get(self.at).or(self.tokens.last());
        token.map_or(0, |(_, line)| *line)
    }

    fn next(&mut self) -> Result<Token, LoadError> {
        let line = self.line();
        let token = self.tokens.get(self.at).map(|(token, _)| token.clone());
        self.at += 1;
        token.ok_or_else(|| LoadError::syntax(line, "the text ends in the middle of a statement"))
    }

    fn is(&self, symbol: char) -> bool {
        self.peek() == Some(&Token::Symbol(symbol))
    }

    fn eat(&mut self, symbol: char) -> bool {
        let there = self.is(symbol);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, symbol: char) -> Result<(), LoadError> {
        let line = self.line();
        match self.next()? {
            Token::Symbol(found) if found == symbol => Ok(()),
            found => Err(LoadError::syntax(line, format!("expected `{symbol}`, found {}", show(&found)))),
        }
    }

    fn word(&mut self) -> Result<String, LoadError> {
        let line = self.line();
        match self.next()? {
            Token::Word(word) => Ok(word),
            found => Err(LoadError::syntax(line, format!("expected a name, found {}", show(&found)))),
        }
    }

    fn number(&mut self) -> Result<u64, LoadError> {
        let line = self.line();
        let (negative, inverted) = (self.eat('-'), self.eat('~'));
        let word = self.word()?;
        let value = integer(&word)
            .ok_or_else(|| LoadError::syntax(line, format!("expected a number, found `{word}`")))?;
        let value = if inverted { !value } else { value };
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    /// Sums and differences of products of numbers, the constant expressions that there are.
    fn sum(&mut self) -> Result<u64, LoadError> {
        let mut sum = self.product()?;
        while self.eat('+') || self.is('-') {
            sum = sum.wrapping_add(self.product()?);
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<u64, LoadError> {
        let mut product = self.number()?;
        while self.eat('*') {
            product = product.wrapping_mul(self.number()?);
        }
        Ok(product)
    }

    fn skip_to(&mut self, symbol: char) -> Result<(), LoadError> {
        while !self.eat(symbol) {
            self.next()?;
        }
        Ok(())
    }

    /// Skips `{ … }` with whatever is inside.
    fn skip_block(&mut self) -> Result<(), LoadError> {
        self.expect('{')?;
        let mut depth = 1;
        while depth > 0 {
            match self.next()? {
                Token::Symbol('{') => depth += 1,
                Token::Symbol('}') => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn top_level(&mut self, unit: &mut Unit) -> Result<(), LoadError> {
        let line = self.line();
        let word = self.word()?;
        match word.as_str() {
            ".version" | ".address_size" => {
                self.word()?;
            }
            ".target" => {
                let word = self.word()?;
                let number = word.strip_prefix("sm_").unwrap_or(&word).trim_end_matches(char::is_alphabetic);
                unit.target =
                    number.parse().map_err(|_| LoadError::syntax(line, format!("`{word}` is no target")))?;
                while self.eat(',') {
                    self.word()?;
                }
            }
            ".file" => self.file(unit)?,
            ".loc" => self.location().map(drop)?,
            ".section" => {
                self.word()?;
                self.skip_block()?;
            }
            ".pragma" => self.skip_to(';')?,
            ".visible" | ".extern" | ".weak" | ".common" => {}
            ".entry" | ".func" => {
                let function = self.function(word == ".entry", line)?;
                unit.functions.push(function);
            }
            ".global" | ".const" | ".shared" => {
                let space = word[1..].to_owned();
                self.variables(space, &mut unit.variables)?;
            }
            ".alias" => self.skip_to(';')?,
            other => return Err(LoadError::syntax(line, format!("`{other}` is not known here"))),
        }
        Ok(())
    }

    fn file(&mut self, unit: &mut Unit) -> Result<(), LoadError> {
        let line = self.line();
        let number = self.number()?;
        let number =
            u32::try_from(number).map_err(|_| LoadError::syntax(line, "a file number is too large"))?;
        if let Token::Text(name) = self.next()? {
            unit.files.insert(number, name);
        }
        while self.eat(',') {
            self.next()?;
        }
        Ok(())
    }

    /// `.loc file line column [, function_name label, inlined_at file line column]`
    fn location(&mut self) -> Result<(u32, u32), LoadError> {
        let location = (self.number()? as u32, self.number()? as u32);
        self.number()?;
        while self.eat(',') {
            if self.word()? == "inlined_at" {
                self.number()?;
                self.number()?;
                self.number()?;
            } else {
                self.word()?;
                if self.eat('+') {
                    self.number()?;
                }
            }
        }
        Ok(location)
    }

    /// `.align 4 .b8 name[16] = {…}, other;` behind the space.
    fn variables(&mut self, space: String, into: &mut Vec<Variable>) -> Result<(), LoadError> {
        let (align, element_bytes) = self.type_of_variable()?;
        loop {
            let variable = self.declarator(&space, align, element_bytes)?;
            into.push(variable);
            if !self.eat(',') {
                return self.expect(';');
            }
        }
    }

    /// Alignment and element size from `.align 4 .v2 .b32 .ptr …`.
    fn type_of_variable(&mut self) -> Result<(u64, u64), LoadError> {
        let (mut align, mut bytes, mut lanes) = (0, 0, 1);
        let mut is_pointer = false;
        loop {
            let line = self.line();
            match self.peek() {
                Some(Token::Word(word)) if word.starts_with('.') => {
                    let word = self.word()?;
                    match word.as_str() {
                        // Behind `.ptr` it is that of what the pointer points at.
                        ".align" if is_pointer => drop(self.number()?),
                        ".align" => align = self.number()?,
                        ".v2" => lanes = 2,
                        ".v4" => lanes = 4,
                        ".ptr" => is_pointer = true,
                        ".global" | ".const" | ".shared" | ".local" | ".attribute" => {
                            if word == ".attribute" {
                                self.expect('(')?;
                                self.skip_to(')')?;
                            }
                        }
                        other => {
                            bytes = type_bytes(other)
                                .ok_or_else(|| LoadError::syntax(line, format!("`{other}` is no type")))?;
                        }
                    }
                }
                _ if bytes == 0 => return Err(LoadError::syntax(line, "a variable lacks its type")),
                _ => {
                    let element = bytes * lanes;
                    let align = if align == 0 { element } else { align };
                    if !align.is_power_of_two() || align > 1 << 16 {
                        return Err(LoadError::syntax(
                            line,
                            format!("an alignment of {align} is not allowed"),
                        ));
                    }
                    return Ok((align, element));
                }
            }
        }
    }

    fn declarator(&mut self, space: &str, align: u64, element_bytes: u64) -> Result<Variable, LoadError> {
        let line = self.line();
        let name = self.word()?;
        let mut count = Some(1u64);
        while self.eat('[') {
            if self.eat(']') {
                count = None;
                continue;
            }
            let length = self.number()?;
            // Too large a product is refused below.
            count = count.map(|count| count.saturating_mul(length));
            self.expect(']')?;
        }
        let mut initial = Vec::new();
        if self.eat('=') {
            self.initialiser(element_bytes, &mut initial)?;
        }
        let total = count.unwrap_or(0).checked_mul(element_bytes).filter(|bytes| *bytes <= 1 << 32);
        if total.is_none() || initial.len() as u64 > total.unwrap_or(0) {
            return Err(LoadError::syntax(line, format!("the size of `{name}` is not allowed")));
        }
        Ok(Variable { space: space.to_owned(), name, align, element_bytes, count, initial, line })
    }

    fn initialiser(&mut self, element_bytes: u64, into: &mut Vec<u8>) -> Result<(), LoadError> {
        if self.eat('{') {
            self.enter()?;
            while !self.eat('}') {
                self.initialiser(element_bytes, into)?;
                if !self.eat(',') {
                    self.expect('}')?;
                    break;
                }
            }
            self.depth -= 1;
            return Ok(());
        }
        let line = self.line();
        let bits = match self.operand()? {
            Operand::Int(value) => value,
            Operand::F32(bits) if element_bytes == 4 => bits.into(),
            Operand::F64(bits) if element_bytes == 8 => bits,
            Operand::F32(bits) if element_bytes == 8 => f64::from(f32::from_bits(bits)).to_bits(),
            // A decimal number is one of double precision until it is known what it is for.
            Operand::F64(bits) if element_bytes == 4 => (f64::from_bits(bits) as f32).to_bits().into(),
            Operand::F32(_) | Operand::F64(_) => {
                return Err(LoadError::syntax(
                    line,
                    format!("a variable of {element_bytes} bytes holds no such number"),
                ));
            }
            _ => return Err(LoadError::syntax(line, "only numbers are understood in an initialiser")),
        };
        into.extend(bits.to_le_bytes().iter().take(element_bytes as usize));
        Ok(())
    }

    fn params(&mut self) -> Result<Vec<Variable>, LoadError> {
        let mut params = Vec::new();
        if !self.eat('(') {
            return Ok(params);
        }
        while !self.eat(')') {
            let line = self.line();
            let space = self.word()?;
            if space != ".param" && space != ".reg" {
                return Err(LoadError::syntax(line, format!("expected `.param`, found `{space}`")));
            }
            let (align, element_bytes) = self.type_of_variable()?;
            params.push(self.declarator(&space[1..], align, element_bytes)?);
            if !self.eat(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(params)
    }

    fn function(&mut self, is_entry: bool, line: u32) -> Result<Function, LoadError> {
        let returns = if is_entry { Vec::new() } else { self.params()? };
        let name = self.word()?;
        let params = self.params()?;
        // Directives of performance: .maxntid 256, 1, 1 .minnctapersm 2 …
        let (mut max_threads, mut block) = (None, None);
        while matches!(self.peek(), Some(Token::Word(word)) if word.starts_with('.')) {
            let directive = self.word()?;
            if directive == ".pragma" {
                self.skip_to(';')?;
                continue;
            }
            let mut numbers = Vec::new();
            while matches!(self.peek(), Some(Token::Word(word)) if integer(word).is_some()) {
                numbers.push(self.number()?);
                self.eat(',');
            }
            let along = |axis: usize| numbers.get(axis).copied().unwrap_or(1);
            match directive.as_str() {
                ".maxntid" => {
                    max_threads = Some(numbers.iter().fold(1, |all: u64, n| all.saturating_mul(*n)))
                }
                ".reqntid" => block = Some([along(0), along(1), along(2)]),
                _ => {}
            }
        }
        let has_body = !self.eat(';');
        let mut body = Vec::new();
        if has_body {
            self.expect('{')?;
            body = self.body()?;
        }
        Ok(Function { name, is_entry, returns, params, body, has_body, max_threads, block, line })
    }

    fn body(&mut self) -> Result<Vec<Statement>, LoadError> {
        let mut body = Vec::new();
        let mut depth = 0usize;
        loop {
            if self.eat('}') {
                if depth == 0 {
                    return Ok(body);
                }
                depth -= 1;
                body.push(Statement::Close);
            } else if self.eat('{') {
                depth += 1;
                body.push(Statement::Open);
            } else {
                self.statement(&mut body)?;
            }
        }
    }

    fn statement(&mut self, body: &mut Vec<Statement>) -> Result<(), LoadError> {
        let line = self.line();
        if self.eat(';') {
            return Ok(());
        }
        if self.eat('@') {
            let negated = self.eat('!');
            let guard = Some((self.word()?, negated));
            let opcode = self.word()?;
            body.push(Statement::Instruction(self.instruction(line, guard, opcode)?));
            return Ok(());
        }
        let word = self.word()?;
        if self.eat(':') {
            if self.peek() == Some(&Token::Word(".branchtargets".into())) {
                self.word()?;
                let mut labels = vec![self.word()?];
                while self.eat(',') {
                    labels.push(self.word()?);
                }
                self.expect(';')?;
                body.push(Statement::Targets { name: word, labels });
            } else if self.peek() == Some(&Token::Word(".callprototype".into())) {
                self.skip_to(';')?;
            } else {
                body.push(Statement::Label { name: word, line });
            }
            return Ok(());
        }
        match word.as_str() {
            ".reg" => self.registers(body)?,
            ".loc" => {
                let (file, line) = self.location()?;
                body.push(Statement::Location { file, line });
            }
            ".pragma" => self.skip_to(';')?,
            ".shared" | ".local" | ".param" | ".const" | ".global" => {
                let mut variables = Vec::new();
                self.variables(word[1..].to_owned(), &mut variables)?;
                body.extend(variables.into_iter().map(Statement::Variable));
            }
            _ if word.starts_with('.') => {
                return Err(LoadError::syntax(line, format!("`{word}` is not known in a function")));
            }
            _ => body.push(Statement::Instruction(self.instruction(line, None, word)?)),
        }
        Ok(())
    }

    fn registers(&mut self, body: &mut Vec<Statement>) -> Result<(), LoadError> {
        let kind = self.word()?;
        loop {
            let line = self.line();
            let name = self.word()?;
            let count = if self.eat('<') {
                let count = self.number()?;
                self.expect('>')?;
                let small = u32::try_from(count).ok().filter(|count| *count <= 1 << 20);
                Some(
                    small
                        .ok_or_else(|| LoadError::syntax(line, format!("{count} registers are too many")))?,
                )
            } else {
                None
            };
            body.push(Statement::Registers { kind: kind.clone(), name, count, line });
            if !self.eat(',') {
                return self.expect(';');
            }
        }
    }

    fn instruction(
        &mut self,
        line: u32,
        guard: Option<(String, bool)>,
        opcode: String,
    ) -> Result<Instruction, LoadError> {
        let mut operands = Vec::new();
        while !self.eat(';') {
            operands.push(self.operand()?);
            if !self.eat(',') {
                self.expect(';')?;
                break;
            }
        }
        Ok(Instruction { line, guard, opcode, operands })
    }

    fn enter(&mut self) -> Result<(), LoadError> {
        self.depth += 1;
        match self.depth {
            0..=MAX_DEPTH => Ok(()),
            _ => Err(LoadError::syntax(self.line(), "braces are nested too deeply")),
        }
    }

    fn list(&mut self, close: char) -> Result<Vec<Operand>, LoadError> {
        self.enter()?;
        let mut list = Vec::new();
        while !self.eat(close) {
            list.push(self.operand()?);
            if !self.eat(',') {
                self.expect(close)?;
                break;
            }
        }
        self.depth -= 1;
        Ok(list)
    }

    fn operand(&mut self) -> Result<Operand, LoadError> {
        if self.eat('{') {
            return Ok(Operand::Vector(self.list('}')?));
        }
        if self.eat('(') {
            return Ok(Operand::List(self.list(')')?));
        }
        if self.eat('[') {
            return self.address();
        }
        if self.eat('!') {
            return Ok(Operand::Not(self.word()?));
        }
        let sign = usize::from(self.is('-'));
        if let Some((Token::Word(word), _)) = self.tokens.get(self.at + sign)
            && let Some(value) = decimal(word)
        {
            self.at += sign + 1;
            return Ok(Operand::F64(if sign == 1 { -value } else { value }.to_bits()));
        }
        if self.is('-') || self.is('~') {
            return Ok(Operand::Int(self.sum()?));
        }
        let word = self.word()?;
        if word == "_" && !self.is('|') {
            return Ok(Operand::Sink);
        }
        if let Some(bits) = word.strip_prefix("0f").or(word.strip_prefix("0F"))
            && let (8, Ok(bits)) = (bits.len(), u32::from_str_radix(bits, 16))
        {
            return Ok(Operand::F32(bits));
        }
        if let Some(bits) = word.strip_prefix("0d").or(word.strip_prefix("0D"))
            && let (16, Ok(bits)) = (bits.len(), u64::from_str_radix(bits, 16))
        {
            return Ok(Operand::F64(bits));
        }
        if word.as_bytes().first().is_some_and(u8::is_ascii_digit) {
            self.at -= 1;
            return Ok(Operand::Int(self.sum()?));
        }
        if self.eat('|') {
            return Ok(Operand::Pair(word, self.word()?));
        }
        if self.eat('+') {
            return Ok(Operand::Sum(word, self.sum()?));
        }
        Ok(Operand::Name(word))
    }

    /// Behind `[`. The forms are [a], [a+8], [a+-8], [a-8], [a+4*3], [16].
    fn address(&mut self) -> Result<Operand, LoadError> {
        let line = self.line();
        let base = match self.peek() {
            Some(Token::Word(word)) if integer(word).is_none() => Some(self.word()?),
            _ => None,
        };
        let offset = match base {
            Some(_) if !self.eat('+') && !self.is('-') => 0,
            _ => self.sum()? as i64,
        };
        if !self.eat(']') {
            return Err(LoadError::syntax(line, "an address of this form is not understood"));
        }
        Ok(Operand::Address { base, offset })
    }
}

fn show(token: &Token) -> String {
    match token {
        Token::Word(word) => format!("`{word}`"),
        Token::Text(text) => format!("\"{text}\""),
        Token::Symbol(symbol) => format!("`{symbol}`"),
    }
}

/// A number with a decimal point or an exponent.
fn decimal(word: &str) -> Option<f64> {
    let begins = word.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    (begins && !word.starts_with("0x") && word.contains(['.', 'e', 'E'])).then(|| word.parse().ok()).flatten()
}

/// Decimal, 0x, 0b and octal integers, with an optional U.
fn integer(word: &str) -> Option<u64> {
    let word = word.strip_suffix(['U', 'u']).unwrap_or(word);
    if let Some(digits) = word.strip_prefix("0x").or(word.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = word.strip_prefix("0b").or(word.strip_prefix("0B")) {
        return u64::from_str_radix(digits, 2).ok();
    }
    if word.len() > 1 && word.starts_with('0') {
        return u64::from_str_radix(&word[1..], 8).ok();
    }
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

/// Size of a fundamental type, `.b32` for example.
pub(crate) fn type_bytes(name: &str) -> Option<u64> {
    Some(match name {
        ".b8" | ".u8" | ".s8" => 1,
        ".b16" | ".u16" | ".s16" | ".f16" | ".bf16" => 2,
        ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" | ".bf16x2" => 4,
        ".b64" | ".u64" | ".s64" | ".f64" => 8,
        ".b128" => 16,
        _ => return None,
    })
}
