//! The first line and the line of sizes.

use std::fmt;
use std::io::BufRead;
use std::path::Path;

use super::error::{MAX_SIZE, Problem, ReadError};
use super::lines::{Lines, Word};
use super::source::Source;
use super::token;

/// How entries are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Row, column and value of each stored entry.
    Coordinate,
    /// All values, column by column.
    Array,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// A decimal number.
    Real,
    /// A whole number.
    Integer,
    /// Two decimal numbers.
    Complex,
    /// Nothing: each entry is one.
    Pattern,
}

/// What stored entries say of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symmetry {
    /// Nothing.
    General,
    /// A = Aᵀ.
    Symmetric,
    /// A = −Aᵀ.
    SkewSymmetric,
    /// A = Aᴴ.
    Hermitian,
}

macro_rules! words {
    ($type:ident { $($variant:ident = $name:literal $(| $alias:literal)?),+ }) => {
        impl $type {
            /// The word in the first line of a file.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }

            fn parse(word: &[u8]) -> Option<Self> {
                $(if word.eq_ignore_ascii_case($name.as_bytes()) $(|| word.eq_ignore_ascii_case($alias.as_bytes()))? {
                    return Some($type::$variant);
                })+
                None
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

words!(Format { Coordinate = "coordinate", Array = "array" });
words!(Field { Real = "real" | "double", Integer = "integer" | "unsigned-integer", Complex = "complex", Pattern = "pattern" });
words!(Symmetry {
    General = "general",
    Symmetric = "symmetric",
    SkewSymmetric = "skew-symmetric",
    Hermitian = "hermitian"
});

/// What a file says of itself before its entries; nothing of it is known to be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// How entries are listed.
    pub format: Format,
    /// What a value is.
    pub field: Field,
    /// What stored entries say of others.
    pub symmetry: Symmetry,
    /// The number of rows.
    pub num_rows: usize,
    /// The number of columns.
    pub num_cols: usize,
    /// The number of entries in the file, before mirroring.
    pub num_stored: u64,
}

impl Header {
    /// Reads the head of a file, which may be compressed with gzip.
    ///
    /// # Errors
    ///
    /// As [`read_file`](super::read_file), as far as the head goes.
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let io = |source| ReadError::Io { path: Some(path.to_owned()), source };
        let file = std::fs::File::open(path).map_err(io)?;
        Self::read_source(&Source::File { path, file: &file })
    }

    /// Reads the head of a file from its bytes.
    ///
    /// # Errors
    ///
    /// As [`read_file`](super::read_file), as far as the head goes.
    pub fn read_bytes(text: &[u8]) -> Result<Self, ReadError> {
        Self::read_source(&Source::Bytes(text))
    }

    fn read_source(source: &Source) -> Result<Self, ReadError> {
        Self::parse(&mut Lines::new(source.open()?))
    }

    pub(super) fn parse<R: BufRead>(lines: &mut Lines<R>) -> Result<Self, ReadError> {
        let (format, field, symmetry) = banner(lines)?;
        let count = if format == Format::Coordinate { 3 } else { 2 };
        let mut sizes = [0; 3];
        if !lines.next_data()? {
            return Err(lines.fault(Word::here(lines.text().len()), Problem::SizesMissing(format)));
        }
        for (index, size) in sizes[..count].iter_mut().enumerate() {
            let Some(word) = lines.words().nth(index) else {
                return Err(lines.fault(lines.end(), Problem::SizesWords(format)));
            };
            let most = if index < 2 { MAX_SIZE } else { i64::MAX as u64 };
            match token::whole_number(&lines.text()[word.range()]) {
                Some(number) if number <= most => *size = number,
                _ => return Err(lines.fault(word, Problem::Size(most))),
            }
        }
        if let Some(word) = lines.words().nth(count) {
            return Err(lines.fault(word, Problem::SizesWords(format)));
        }
        let [num_rows, num_cols] = [sizes[0] as usize, sizes[1] as usize];
        if symmetry != Symmetry::General && num_rows != num_cols {
            let problem = Problem::NotSquare { symmetry, num_rows, num_cols };
            return Err(lines.fault(lines.words().nth(1).unwrap_or(lines.end()), problem));
        }
        let num_stored = match (format, symmetry) {
            (Format::Coordinate, _) => sizes[2],
            (Format::Array, Symmetry::General) => sizes[0] * sizes[1],
            (Format::Array, Symmetry::SkewSymmetric) => sizes[0] * sizes[0].saturating_sub(1) / 2,
            (Format::Array, _) => sizes[0] * (sizes[0] + 1) / 2,
        };
        Ok(Header { format, field, symmetry, num_rows, num_cols, num_stored })
    }
}

/// The first line.
fn banner<R: BufRead>(lines: &mut Lines<R>) -> Result<(Format, Field, Symmetry), ReadError> {
    if !lines.next_line()? {
        return Err(lines.fault(Word::here(0), Problem::Empty));
    }
    let lines = &*lines;
    let text = lines.text();
    let mut words = lines.words();
    let first = words.next().unwrap_or(Word::here(0));
    let start = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    if first.start != 0
        || !text[first.range()][start.min(first.len)..].eq_ignore_ascii_case(b"%%MatrixMarket")
    {
        let problem = packed(text).map_or(Problem::NotMatrixMarket, Problem::Packed);
        return Err(lines.fault(first, problem));
    }
    let mut next = || words.next().ok_or_else(|| lines.fault(lines.end(), Problem::BannerWords));
    let (object, format, field, symmetry) = (next()?, next()?, next()?, next()?);
    if let Some(word) = words.next() {
        return Err(lines.fault(word, Problem::BannerWords));
    }
    if !text[object.range()].eq_ignore_ascii_case(b"matrix") {
        return Err(lines.fault(object, Problem::Object));
    }
    let wrong = |word, problem| move || lines.fault(word, problem);
    let of_format = Format::parse(&text[format.range()]).ok_or_else(wrong(format, Problem::Format))?;
    let of_field = Field::parse(&text[field.range()]).ok_or_else(wrong(field, Problem::Field))?;
    let of_symmetry =
        Symmetry::parse(&text[symmetry.range()]).ok_or_else(wrong(symmetry, Problem::Symmetry))?;
    let exists = match of_field {
        Field::Pattern => {
            of_format == Format::Coordinate && matches!(of_symmetry, Symmetry::General | Symmetry::Symmetric)
        }
        Field::Real | Field::Integer => of_symmetry != Symmetry::Hermitian,
        Field::Complex => true,
    };
    if !exists {
        let problem = Problem::Combination { format: of_format, field: of_field, symmetry: of_symmetry };
        return Err(lines.fault(format, problem));
    }
    Ok((of_format, of_field, of_symmetry))
}

/// The name of a packed format that the text is in.
fn packed(text: &[u8]) -> Option<&'static str> {
    let magic: [(&[u8], &str); 5] = [
        (b"\xfd7zXZ", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"BZh", "bzip2"),
        (b"PK\x03\x04", "zip"),
        (b"MATLAB 5.0", "a MATLAB file"),
    ];
    magic.iter().find(|(start, _)| text.starts_with(start)).map(|(_, name)| *name)
}
