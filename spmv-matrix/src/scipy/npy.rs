//! Arrays in NumPy's format (NEP 1): a header that describes them, then the values.

use std::fmt;
use std::io::{self, Read};

/// The longest header that is read; NumPy itself reads 10,000 bytes.
const MAX_HEADER: u32 = 1 << 16;

/// What kind of number an array holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int,
    Uint,
    Float,
    Complex,
    Bytes,
    Unicode,
}

/// The type of an array's values, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dtype {
    pub kind: Kind,
    /// Bytes of a value.
    pub size: usize,
}

impl fmt::Display for Dtype {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let bits = self.size * 8;
        match self.kind {
            Kind::Bool => out.write_str("bool"),
            Kind::Int => write!(out, "int{bits}"),
            Kind::Uint => write!(out, "uint{bits}"),
            Kind::Float => write!(out, "float{bits}"),
            Kind::Complex => write!(out, "complex{bits}"),
            Kind::Bytes => write!(out, "{} bytes of text", self.size),
            Kind::Unicode => write!(out, "{} letters of text", self.size / 4),
        }
    }
}

/// What an array says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Npy {
    pub dtype: Dtype,
    /// Whether the first index runs fastest.
    pub fortran: bool,
    pub shape: Vec<u64>,
}

/// What is wrong with the header of an array.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderProblem {
    /// It does not begin as it should.
    #[error("no array in NumPy's format; it would start with \\x93NUMPY")]
    Magic,

    /// The version is another.
    #[error("version {0} of NumPy's format; allowed are 1 to 3")]
    Version(u8),

    /// The header is too long.
    #[error("a header of {0} bytes; at most {MAX_HEADER} are allowed")]
    TooLong(u32),

    /// The array ends in its header.
    #[error("the header is cut off")]
    CutOff,

    /// The header's text is not as it should be.
    #[error("the header is not {{'descr': TYPE, 'fortran_order': False, 'shape': (SIZE, ...)}}: {0:?}")]
    Text(String),

    /// Values of a type that is not read.
    #[error("values of type {0:?}; allowed are little-endian numbers such as '<f8', '<i4' and '|b1'")]
    Type(String),

    /// More values than can be counted.
    #[error("more than 2^64 values")]
    Overflow,
}

/// A header that is not right, or cannot be read.
#[derive(Debug)]
pub(super) enum NoHeader {
    Problem(HeaderProblem),
    Io(io::Error),
}

impl From<HeaderProblem> for NoHeader {
    fn from(problem: HeaderProblem) -> Self {
        NoHeader::Problem(problem)
    }
}

impl Npy {
    /// Reads a header; what follows are the values.
    pub fn read(input: &mut impl Read) -> Result<Self, NoHeader> {
        let mut exactly = |bytes: &mut [u8]| match input.read_exact(bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(HeaderProblem::CutOff.into()),
            result => result.map_err(NoHeader::Io),
        };
        let mut magic = [0; 8];
        exactly(&mut magic)?;
        if &magic[..6] != b"\x93NUMPY" {
            return Err(HeaderProblem::Magic.into());
        }
        let mut length = [0; 4];
        match magic[6] {
            1 => exactly(&mut length[..2])?,
            2 | 3 => exactly(&mut length)?,
            version => return Err(HeaderProblem::Version(version).into()),
        }
        let length = u32::from_le_bytes(length);
        if length > MAX_HEADER {
            return Err(HeaderProblem::TooLong(length).into());
        }
        let mut text = vec![0; length as usize];
        exactly(&mut text)?;
        Ok(Self::parse(&text)?)
    }

    /// The number of values.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The shape as Python writes it.
    pub fn shape_text(&self) -> String {
        shape_text(&self.shape)
    }

    fn parse(text: &[u8]) -> Result<Self, HeaderProblem> {
        let wrong =
            || HeaderProblem::Text(String::from_utf8_lossy(&text[..text.len().min(200)]).into_owned());
        let mut rest = Text(text);
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        rest.expect(b'{').ok_or_else(wrong)?;
        while rest.expect(b'}').is_none() {
            let key = rest.string().ok_or_else(wrong)?;
            rest.expect(b':').ok_or_else(wrong)?;
            match key {
                b"descr" => descr = Some(rest.string().ok_or_else(wrong)?),
                b"fortran_order" => fortran = Some(rest.boolean().ok_or_else(wrong)?),
                b"shape" => shape = Some(rest.sizes().ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
            if rest.expect(b',').is_none() && rest.peek() != Some(b'}') {
                return Err(wrong());
            }
        }
        let (Some(descr), Some(fortran), Some(shape)) = (descr, fortran, shape) else {
            return Err(wrong());
        };
        let unknown = || HeaderProblem::Type(String::from_utf8_lossy(descr).into_owned());
        let dtype = dtype(descr).ok_or_else(unknown)?;
        let bytes = shape.iter().try_fold(dtype.size as u64, |product, &size| product.checked_mul(size));
        bytes.ok_or(HeaderProblem::Overflow)?;
        Ok(Self { dtype, fortran, shape })
    }
}

/// A shape as Python writes it.
pub(super) fn shape_text(shape: &[u64]) -> String {
    match shape {
        [one] => format!("({one},)"),
        sizes => format!("({})", sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn dtype(descr: &[u8]) -> Option<Dtype> {
    let [order, kind, digits @ ..] = descr else { return None };
    let number: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let (kind, sizes, size): (_, &[usize], _) = match kind {
        b'b' => (Kind::Bool, &[1], number),
        b'i' => (Kind::Int, &[1, 2, 4, 8], number),
        b'u' => (Kind::Uint, &[1, 2, 4, 8], number),
        b'f' => (Kind::Float, &[2, 4, 8], number),
        b'c' => (Kind::Complex, &[8, 16], number),
        b'S' => (Kind::Bytes, &[1, 2, 3, 4, 5, 6, 7, 8], number),
        b'U' => (Kind::Unicode, &[4, 8, 12, 16, 20, 24, 28, 32], number.checked_mul(4)?),
        _ => return None,
    };
    let little = *order == b'<' || (*order == b'|' && (size == 1 || kind == Kind::Bytes));
    (little && sizes.contains(&size)).then_some(Dtype { kind, size })
}

/// A header's text that is left.
struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    fn peek(&mut self) -> Option<u8> {
        self.0 = self.0.trim_ascii_start();
        self.0.first().copied()
    }

    fn expect(&mut self, letter: u8) -> Option<()> {
        (self.peek()? == letter).then(|| self.0 = &self.0[1..])
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let quote = self.peek().filter(|letter| matches!(letter, b'\'' | b'"'))?;
        let text = &self.0[1..];
        let end = memchr::memchr(quote, text)?;
        self.0 = &text[end + 1..];
        Some(&text[..end])
    }

    fn boolean(&mut self) -> Option<bool> {
        self.peek();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest;
                return Some(value);
            }
        }
        None
    }

    /// At most 32 sizes in parentheses, as NumPy allows.
    fn sizes(&mut self) -> Option<Vec<u64>> {
        let mut sizes = Vec::new();
        self.expect(b'(')?;
        while self.expect(b')').is_none() {
            self.peek();
            let digits = self.0.iter().take_while(|letter| letter.is_ascii_digit()).count();
            sizes.push(std::str::from_utf8(&self.0[..digits]).ok()?.parse().ok()?);
            // Python 2 marked long numbers.
            self.0 = self.0[digits..].strip_prefix(b"L").unwrap_or(&self.0[digits..]);
            if sizes.len() > 32 || (self.expect(b',').is_none() && self.peek() != Some(b')')) {
                return None;
            }
        }
        Some(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Npy, HeaderProblem> {
        Npy::parse(text.as_bytes())
    }

    #[test]
    fn headers_are_read() {
        let found = parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n").unwrap();
        let dtype = Dtype { kind: Kind::Float, size: 8 };
        assert_eq!(found, Npy { dtype, fortran: false, shape: vec![3, 4] });
        let found = parse("{\"shape\":(7L,),'fortran_order':True,'descr':'|b1'}").unwrap();
        assert_eq!((found.fortran, found.shape_text(), found.len()), (true, "(7,)".to_owned(), 7));
        assert_eq!(parse("{'descr':'|S3','fortran_order':False,'shape':()}").unwrap().len(), 1);
    }

    #[test]
    fn other_headers_are_refused() {
        for text in [
            "",
            "{",
            "{'descr': '<f8'}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3",
            "{'descr': 3}",
            "{'descr': '<f8', 'fortran_order': Maybe, 'shape': (3,)}",
            "{'x': 1}",
            "{'descr': '<f8' 'shape': ()}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': ()}",
        ] {
            assert!(matches!(parse(text), Err(HeaderProblem::Text(_))), "{text}");
        }
        for descr in
            [">f8", "|O", "<f16", "<i3", "f8", "<", "", "|f8", "<V8", "<M8[ns]", "<U4611686018427387904"]
        {
            let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ()}}");
            assert_eq!(parse(&text), Err(HeaderProblem::Type(descr.to_owned())));
        }
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}";
        assert_eq!(parse(huge), Err(HeaderProblem::Overflow));
    }
}
