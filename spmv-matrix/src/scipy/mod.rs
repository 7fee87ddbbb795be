//! SciPy's files of sparse matrices: `.npz`, as `scipy.sparse.save_npz` writes and `load_npz` reads them.
//!
//! Such a file is a zip archive of arrays in NumPy's format. Read are `csr`, `csc`, `coo`, `bsr` and `dia`, stored or
//! deflated, with headers of version 1 to 3, little-endian values (`float16`, `float32`, `float64`, `complex64`,
//! `complex128`, integers and `bool`) and indices of any integer type.
//!
//! - Every entry of the file is kept, stored zeros and duplicates too, and so is all of a block. Of diagonals, SciPy
//!   drops zeros, and so does this. What lies in the arrays behind the last entry that `indptr` leads to is room that
//!   SciPy leaves until a matrix is pruned, and is no part of it.
//! - The entries of a row keep their order in `csr` and `bsr`; from the others, columns ascend.
//! - Numbers are rounded to the nearest value. One beyond the largest is an error, unless it is infinite.
//!
//! The shapes of all arrays are looked at before any is read, and what they promise is not allocated before it is there.
//! Memory stays below the arrays of the file, the matrix and, where it must be sorted, what
//! [`CooMatrix::to_csr`](crate::CooMatrix::to_csr) takes.
//!
//! ```
//! use spmv_matrix::{CsrMatrix, scipy};
//!
//! let a = CsrMatrix::new(2, 3, vec![0u32, 1, 3], vec![2, 0, 1], vec![1.0, 2.0, 3.0])?;
//! let mut file = Vec::new();
//! scipy::write(&mut file, &a)?;
//! let back: CsrMatrix<f64> = scipy::read_bytes(&file)?;
//! assert_eq!(back, a);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive;
mod error;
mod npy;
mod read;
mod write;

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

pub use self::error::{ReadError, WriteError};
pub use self::npy::HeaderProblem;
pub use self::write::{Save, write, write_file};
pub use crate::matrix_market::{Progress, ReadOptions};
use crate::{CsrMatrix, Entry, Offset};

/// How entries are stored in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Compressed sparse rows.
    Csr,
    /// Compressed sparse columns.
    Csc,
    /// Row, column and value of each entry.
    Coo,
    /// Dense blocks, compressed by rows of blocks.
    Bsr,
    /// Diagonals.
    Dia,
}

impl Layout {
    /// All of them.
    pub const ALL: &'static [Layout] = &[Layout::Csr, Layout::Csc, Layout::Coo, Layout::Bsr, Layout::Dia];

    /// SciPy's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Csr => "csr",
            Layout::Csc => "csc",
            Layout::Coo => "coo",
            Layout::Bsr => "bsr",
            Layout::Dia => "dia",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.pad(self.name())
    }
}

/// What a file says of itself before its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// How entries are stored.
    pub layout: Layout,
    /// NumPy's name for the type of the values: `float64`, `complex64`, `int8` and so on.
    pub value_type: String,
    /// Whether values have an imaginary part.
    pub complex: bool,
    /// Whether values are whole numbers: integers and truth values.
    pub whole: bool,
    /// The number of rows.
    pub num_rows: usize,
    /// The number of columns.
    pub num_cols: usize,
    /// The number of values in the file: entries, those of blocks and diagonals with what fills them.
    pub num_stored: u64,
}

impl Header {
    /// Reads the head of a file.
    ///
    /// # Errors
    ///
    /// As [`read_file`], as far as the head goes.
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Ok(read::Parts::open(open(path.as_ref())?)?.header)
    }

    /// Reads the head of a file from its bytes.
    ///
    /// # Errors
    ///
    /// As [`read_bytes`], as far as the head goes.
    pub fn read_bytes(file: &[u8]) -> Result<Self, ReadError> {
        Ok(read::Parts::open(Cursor::new(file))?.header)
    }
}

/// Whether a file begins like a zip archive.
///
/// # Errors
///
/// [`ReadError::Io`] where it cannot be read.
pub fn is_archive(path: impl AsRef<Path>) -> Result<bool, ReadError> {
    let path = path.as_ref();
    let mut start = Vec::new();
    let io = |source| ReadError::Io { path: Some(path.to_owned()), source };
    open(path)?.take(4).read_to_end(&mut start).map_err(io)?;
    Ok(start == b"PK\x03\x04" || start == b"PK\x05\x06")
}

/// Reads a matrix from a file.
///
/// # Errors
///
/// [`ReadError`], which says what is wrong with which array, and what is allowed.
pub fn read_file<V: Entry, O: Offset>(path: impl AsRef<Path>) -> Result<CsrMatrix<V, O>, ReadError> {
    read_file_with(path, &ReadOptions::new())
}

/// Reads a matrix from a file, with progress or limits. Progress counts the bytes of the unpacked arrays.
///
/// # Errors
///
/// As [`read_file`].
pub fn read_file_with<V: Entry, O: Offset>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<CsrMatrix<V, O>, ReadError> {
    let path = path.as_ref();
    read::Parts::open(open(path)?)?.matrix(options).map_err(|error| match error {
        ReadError::Io { path: None, source } => ReadError::Io { path: Some(path.to_owned()), source },
        error => error,
    })
}

/// Reads a matrix from the bytes of a file.
///
/// # Errors
///
/// As [`read_file`].
pub fn read_bytes<V: Entry, O: Offset>(file: &[u8]) -> Result<CsrMatrix<V, O>, ReadError> {
    read_bytes_with(file, &ReadOptions::new())
}

/// Reads a matrix from the bytes of a file, with progress or limits.
///
/// # Errors
///
/// As [`read_file`].
pub fn read_bytes_with<V: Entry, O: Offset>(
    file: &[u8],
    options: &ReadOptions,
) -> Result<CsrMatrix<V, O>, ReadError> {
    read::Parts::open(Cursor::new(file))?.matrix(options)
}

fn open(path: &Path) -> Result<BufReader<File>, ReadError> {
    let io = |source| ReadError::Io { path: Some(path.to_owned()), source };
    Ok(BufReader::with_capacity(1 << 16, File::open(path).map_err(io)?))
}
