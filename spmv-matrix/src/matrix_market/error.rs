//! What can be wrong with a Matrix Market file.

use std::io;
use std::path::PathBuf;

use super::header::{Field, Format, Symmetry};
use super::lines::MAX_LINE;
use crate::{MAX_DIMENSION, MatrixError};

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system would not open or read the file.
    #[error("{}could not be read: {source}", path.as_ref().map(|p| format!("{}: ", p.display())).unwrap_or_default())]
    Io {
        /// The file, where there is one.
        path: Option<PathBuf>,
        /// What the system said.
        source: io::Error,
    },

    /// The compressed data are damaged or cut off.
    #[error("the gzip data are damaged or cut off after {bytes} bytes of text: {source}")]
    Gzip {
        /// Bytes of text before the damage.
        bytes: u64,
        /// What the decompressor said.
        source: io::Error,
    },

    /// The text is not a Matrix Market file, or not a right one.
    #[error(transparent)]
    Invalid(#[from] Box<Fault>),

    /// The entries are right but make no matrix of the wanted types.
    #[error(transparent)]
    Matrix(#[from] MatrixError),

    /// The matrix is larger than [`max_bytes`](super::ReadOptions::max_bytes) allows.
    #[error("the matrix takes {bytes} bytes: at most {max_bytes} are allowed")]
    TooLarge {
        /// Bytes of the three arrays.
        bytes: u64,
        /// The limit.
        max_bytes: u64,
    },

    /// One triangle was asked for, and the file does not say that it holds one.
    #[error("the file says {found}; read as one triangle are symmetric, skew-symmetric and hermitian")]
    Symmetry {
        /// What the file says.
        found: Symmetry,
    },

    /// The file was not the same when it was looked at again.
    #[error("the file changed while it was read")]
    Changed,
}

impl ReadError {
    /// The place and nature of what is wrong with the text, where that is what is wrong.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            ReadError::Invalid(fault) => Some(fault),
            _ => None,
        }
    }
}

/// A place in a file and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {}{problem}", if text.is_empty() { String::new() } else { format!("`{text}`: ") })]
#[non_exhaustive]
pub struct Fault {
    /// The line, counted from 1.
    pub line: u64,
    /// The byte in the line, counted from 1.
    pub column: u64,
    /// The text at that place, at most 40 characters of it; empty where something is missing.
    pub text: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with the text, and what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No text at all.
    #[error("the file is empty; a Matrix Market file starts with %%MatrixMarket")]
    Empty,

    /// The first word is another.
    #[error("not a Matrix Market file; it would start with %%MatrixMarket")]
    NotMatrixMarket,

    /// Compressed or packed in a way that is not read.
    #[error("the file is packed as {0}; unpack it first (only gzip is read as it is)")]
    Packed(&'static str),

    /// The first line has too few or too many words.
    #[error("the first line must have five words: %%MatrixMarket matrix FORMAT FIELD SYMMETRY")]
    BannerWords,

    /// The second word of the first line.
    #[error("not an object that is read; allowed is matrix")]
    Object,

    /// The third word of the first line.
    #[error("not a format; allowed are coordinate, array")]
    Format,

    /// The fourth word of the first line.
    #[error("not a field; allowed are real, double, integer, unsigned-integer, complex, pattern")]
    Field,

    /// The fifth word of the first line.
    #[error("not a symmetry; allowed are general, symmetric, skew-symmetric, hermitian")]
    Symmetry,

    /// The words of the first line do not go together.
    #[error(
        "{format} {field} {symmetry} does not exist; a pattern is coordinate and general or symmetric, \
         hermitian matrices are complex"
    )]
    Combination {
        /// The third word.
        format: Format,
        /// The fourth word.
        field: Field,
        /// The fifth word.
        symmetry: Symmetry,
    },

    /// The file ends before the line of sizes.
    #[error("the line of sizes is missing: {}", sizes(*.0))]
    SizesMissing(Format),

    /// The line of sizes has too few or too many words.
    #[error("the line of sizes must be: {}", sizes(*.0))]
    SizesWords(Format),

    /// A size is no number.
    #[error("not a size; allowed are whole numbers from 0 to {0}")]
    Size(u64),

    /// A symmetric matrix has as many rows as columns.
    #[error("a {symmetry} matrix must be square, not {num_rows} × {num_cols}")]
    NotSquare {
        /// The symmetry.
        symmetry: Symmetry,
        /// Rows.
        num_rows: usize,
        /// Columns.
        num_cols: usize,
    },

    /// Complex entries where real ones were asked for.
    #[error("complex entries do not fit in {0}; read them as c32 or c64")]
    Complex(&'static str),

    /// Real entries where whole numbers or truth values were asked for.
    #[error(
        "real entries may have fractions, which {0} has not; read them as f16, bf16, f32, f64, c32 or c64"
    )]
    Fractions(&'static str),

    /// An entry of a skew-symmetric matrix whose mirror image is no number of the type.
    #[error("mirror images are negatives, and that of an entry is no {0}; read them as another type")]
    NoNegative(&'static str),

    /// A row is no number or out of range.
    #[error("not a row of the matrix; allowed are whole numbers from 1 to {0}")]
    Row(usize),

    /// A column is no number or out of range.
    #[error("not a column of the matrix; allowed are whole numbers from 1 to {0}")]
    Column(usize),

    /// There are no rows or columns for an entry to be in.
    #[error("an entry in a matrix of {num_rows} × {num_cols}; none is allowed")]
    NoPlace {
        /// Rows.
        num_rows: usize,
        /// Columns.
        num_cols: usize,
    },

    /// A line ends too soon.
    #[error("the line ends here; it must be: {}", entry(*format, *field))]
    Incomplete {
        /// The format.
        format: Format,
        /// The field.
        field: Field,
    },

    /// A line has too many words.
    #[error("more than belongs on the line; it must be: {}", entry(*format, *field))]
    Excess {
        /// The format.
        format: Format,
        /// The field.
        field: Field,
    },

    /// A value is not a number of the field.
    #[error("not a value; allowed are {}", if matches!(.0, Field::Integer) { "whole numbers" } else { "decimal numbers such as -1.5e-3" })]
    Value(Field),

    /// A value is larger than the largest one.
    #[error("outside the range of {0}")]
    ValueTooLarge(&'static str),

    /// A skew-symmetric matrix has zeros on its diagonal, which are not stored.
    #[error("an entry on the diagonal; a skew-symmetric matrix stores none")]
    SkewDiagonal,

    /// The diagonal of a Hermitian matrix is real.
    #[error(
        "an imaginary part on the diagonal; that of a hermitian matrix is real, each entry its own conjugate"
    )]
    HermitianDiagonal,

    /// More entries than the line of sizes says.
    #[error("more entries than the {0} that the line of sizes promises")]
    TooMany(u64),

    /// Fewer entries than the line of sizes says.
    #[error("the text ends after {found} entries; the line of sizes promises {promised}")]
    TooFew {
        /// What the line of sizes says.
        promised: u64,
        /// What there is.
        found: u64,
    },

    /// A line that never ends.
    #[error("the line has more than {MAX_LINE} bytes")]
    LineTooLong,

    /// A compressed file that is mostly nothing.
    #[error("the compressed text is mostly filler; allowed are 64 MiB, and 4 KiB more for each entry")]
    Filler,
}

/// The largest number of rows or columns.
pub(super) const MAX_SIZE: u64 = MAX_DIMENSION as u64;

fn sizes(format: Format) -> &'static str {
    match format {
        Format::Coordinate => "ROWS COLUMNS ENTRIES",
        Format::Array => "ROWS COLUMNS",
    }
}

fn entry(format: Format, field: Field) -> &'static str {
    match (format, field) {
        (Format::Coordinate, Field::Pattern) => "ROW COLUMN",
        (Format::Coordinate, Field::Complex) => "ROW COLUMN REAL IMAGINARY",
        (Format::Coordinate, _) => "ROW COLUMN VALUE",
        (Format::Array, Field::Complex) => "REAL IMAGINARY",
        (Format::Array, _) => "VALUE",
    }
}

/// Why a matrix could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system would not create, write or rename the file. What was there before is unchanged.
    #[error("{}could not be written: {source}", path.as_ref().map(|p| format!("{}: ", p.display())).unwrap_or_default())]
    Io {
        /// The file, where there is one.
        path: Option<PathBuf>,
        /// What the system said.
        source: io::Error,
    },
}
