//! Matrix Market files: `.mtx`, plain or compressed with gzip.
//!
//! The format is that of R. F. Boisvert, R. Pozo and K. A. Remington, *The Matrix Market Exchange Formats:
//! Initial Design* (NISTIR 5935, 1996), section 2. Read are all fields (`real`, which may be called
//! `double`, `integer`, `unsigned-integer`, `complex`, `pattern`), all symmetries (`general`, `symmetric`, `skew-symmetric`,
//! `hermitian`) and both formats (`coordinate`, `array`), in any letter case, with either line ending, and
//! with blank lines and lines of comment anywhere below the first.
//!
//! - Every entry of the file is kept, stored zeros and duplicates too; an `array` gives all entries of a
//!   dense matrix. A pattern gives ones.
//! - An entry off the diagonal of a symmetric matrix gives its mirror image too, negated where the matrix
//!   is skew-symmetric, conjugated where it is hermitian.
//!   [`read_symmetric_file`] keeps to one triangle.
//! - Decimal numbers are rounded to the nearest value. A number beyond the largest one is an error, unless
//!   it is written as `inf`.
//! - A line may have up to 1 MiB ([`MAX_LINE`]), comments above the line of sizes any length. In a compressed file all
//!   text together may have 64 MiB, and 4 KiB more for each entry: so a small file cannot expand forever.
//!
//! Nothing is allocated on the word of the header: entries are gathered as they are read, and the matrix is
//! allocated when they are all there. Memory stays below 64 MiB, the matrix, and 16 bytes for each entry
//! (after mirroring); the text is not held, except where entries are `Complex64`.

mod body;
mod diagnose;
mod error;
mod header;
mod lines;
mod source;
mod token;
mod write;

use std::fs::File;
use std::path::Path;

pub use self::error::{Fault, Problem, ReadError, WriteError};
pub use self::header::{Field, Format, Header, Symmetry};
pub use self::lines::MAX_LINE;
pub use self::write::{write, write_file};
use crate::{CsrMatrix, Entry, Offset, SymmetricCsr};

/// How far reading has come, in bytes of the file as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read so far.
    pub done: u64,
    /// Bytes there are; `None` where that is not known, as with a pipe.
    pub total: Option<u64>,
}

/// What may be asked of reading.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct ReadOptions<'a> {
    /// Is called now and then (after each piece of text, at most every 256 KiB), by one thread at a time.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// The most bytes that the matrix itself may take; a larger one is refused before it is allocated.
    pub max_bytes: Option<u64>,
}

impl<'a> ReadOptions<'a> {
    /// No progress and no limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `progress` after each piece of text.
    pub fn progress(self, progress: &'a (dyn Fn(Progress) + Sync)) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// Refuses a matrix whose arrays take more than `bytes`.
    pub fn max_bytes(self, bytes: u64) -> Self {
        Self { max_bytes: Some(bytes), ..self }
    }
}

/// Reads a matrix from a file, which may be compressed with gzip whatever its name.
///
/// # Errors
///
/// [`ReadError`]: [`ReadError::Invalid`] says where the text is wrong, and what is allowed there.
pub fn read_file<V: Entry, O: Offset>(path: impl AsRef<Path>) -> Result<CsrMatrix<V, O>, ReadError> {
    read_file_with(path, &ReadOptions::new())
}

/// Reads a matrix from a file, with progress or limits.
///
/// # Errors
///
/// As [`read_file`].
pub fn read_file_with<V: Entry, O: Offset>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<CsrMatrix<V, O>, ReadError> {
    with_source(path.as_ref(), options, body::read)
}

/// Reads one triangle of a symmetric, skew-symmetric or Hermitian matrix from a file: its entries are not mirrored. An entry above
/// the diagonal stands for its mirror image below.
///
/// # Errors
///
/// As [`read_file`]; [`ReadError::Symmetry`] where the file says that the matrix is something else.
pub fn read_symmetric_file<V: Entry, O: Offset>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<SymmetricCsr<V, O>, ReadError> {
    with_source(path.as_ref(), options, body::read_symmetric)
}

/// Calls `read` for a file, or for the text where it cannot be read twice.
fn with_source<T>(
    path: &Path,
    options: &ReadOptions,
    read: impl Fn(&source::Source, &ReadOptions) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let io = |source| ReadError::Io { path: Some(path.to_owned()), source };
    let file = File::open(path).map_err(io)?;
    if file.metadata().map_err(io)?.is_file() {
        return read(&source::Source::File { path, file: &file }, options);
    }
    // What cannot be read twice is held, so that an error can still say where it is.
    let text = source::drain(&file, options).map_err(io)?;
    read(&source::Source::Bytes(&text), &ReadOptions { progress: None, ..*options })
}

/// Reads a matrix from the bytes of a file, which may be compressed with gzip.
///
/// # Errors
///
/// As [`read_file`].
pub fn read_bytes<V: Entry, O: Offset>(text: &[u8]) -> Result<CsrMatrix<V, O>, ReadError> {
    read_bytes_with(text, &ReadOptions::new())
}

/// Reads a matrix from the bytes of a file, with progress or limits.
///
/// # Errors
///
/// As [`read_file`].
pub fn read_bytes_with<V: Entry, O: Offset>(
    text: &[u8],
    options: &ReadOptions,
) -> Result<CsrMatrix<V, O>, ReadError> {
    body::read(&source::Source::Bytes(text), options)
}

/// Reads one triangle from the bytes of a file, as [`read_symmetric_file`].
///
/// # Errors
///
/// As [`read_symmetric_file`].
pub fn read_symmetric_bytes<V: Entry, O: Offset>(
    text: &[u8],
    options: &ReadOptions,
) -> Result<SymmetricCsr<V, O>, ReadError> {
    body::read_symmetric(&source::Source::Bytes(text), options)
}
