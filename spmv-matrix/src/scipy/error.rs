//! What can be wrong with a file of SciPy's.

use std::io;
use std::path::PathBuf;

use super::Layout;
use super::npy::HeaderProblem;
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

    /// The file is no zip archive, or a damaged one.
    #[error("no .npz file, or a damaged one: {0}")]
    Archive(String),

    /// An array of the archive is damaged or cut off.
    #[error("{array}.npy is damaged or cut off after {values} values: {source}")]
    Damaged {
        /// The array.
        array: &'static str,
        /// Values before the damage.
        values: u64,
        /// What the decompressor said.
        source: io::Error,
    },

    /// An array is not there.
    #[error("there is no {array}.npy in the file; needed are {needed}")]
    Missing {
        /// The array.
        array: &'static str,
        /// All arrays that are needed.
        needed: &'static str,
    },

    /// An array is not in NumPy's format.
    #[error("{array}.npy: {problem}")]
    Header {
        /// The array.
        array: &'static str,
        /// What is wrong.
        problem: HeaderProblem,
    },

    /// An array holds something else.
    #[error("{array}.npy holds {found}; allowed are {allowed}")]
    Type {
        /// The array.
        array: &'static str,
        /// The type it has.
        found: String,
        /// The types that are allowed.
        allowed: &'static str,
    },

    /// The layout is another.
    #[error("the format is {0:?}; allowed are csr, csc, coo, bsr, dia")]
    Format(String),

    /// An array does not have the shape that others ask for.
    #[error(
        "{array}.npy has shape {found}; as {layout} with {num_rows} rows and {num_cols} columns it must be {expected}"
    )]
    Shape {
        /// The array.
        array: &'static str,
        /// The shape it has.
        found: String,
        /// How entries are stored.
        layout: Layout,
        /// Rows of the matrix.
        num_rows: usize,
        /// Columns of the matrix.
        num_cols: usize,
        /// The shape it should have.
        expected: String,
    },

    /// The matrix has too many rows or columns, or not two sizes.
    #[error("shape.npy says {0}; allowed are two whole numbers from 0 to {MAX_DIMENSION}")]
    Sizes(String),

    /// The blocks do not make up the matrix.
    #[error("blocks of {block_rows} × {block_cols} do not divide {num_rows} rows and {num_cols} columns")]
    Blocks {
        /// Rows of a block.
        block_rows: u64,
        /// Columns of a block.
        block_cols: u64,
        /// Rows of the matrix.
        num_rows: usize,
        /// Columns of the matrix.
        num_cols: usize,
    },

    /// Complex values where real ones were asked for.
    #[error("{value_type} values do not fit in {into}; read them as c32 or c64")]
    Complex {
        /// NumPy's name for their type.
        value_type: String,
        /// What was asked for.
        into: &'static str,
    },

    /// Real values where whole numbers or truth values were asked for.
    #[error(
        "{value_type} values may have fractions, which {into} has not; read them as f16, bf16, f32, f64, c32 or c64"
    )]
    Fractions {
        /// NumPy's name for their type.
        value_type: String,
        /// What was asked for.
        into: &'static str,
    },

    /// An index is out of range.
    #[error("{array}[{position}] is {value}; allowed are whole numbers from {} to {}", allowed.0, allowed.1)]
    Index {
        /// The array.
        array: &'static str,
        /// Position in the array.
        position: u64,
        /// The index.
        value: i128,
        /// The smallest and the largest that is allowed.
        allowed: (i128, i128),
    },

    /// A value is larger than the largest one.
    #[error("data[{position}] is {value:e}, outside the range of {into}")]
    ValueTooLarge {
        /// Position in the array, as it is stored.
        position: u64,
        /// The value.
        value: f64,
        /// What was asked for.
        into: &'static str,
    },

    /// An array is longer than it says.
    #[error("{array}.npy goes on after its {values} values")]
    Excess {
        /// The array.
        array: &'static str,
        /// The values it says it has.
        values: u64,
    },

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

    /// SciPy's blocks make up all of a matrix.
    #[error(
        "blocks of {block_rows} × {block_cols} do not divide {num_rows} rows and {num_cols} columns, as SciPy has it; write the matrix as CsrMatrix"
    )]
    Blocks {
        /// Rows of a block.
        block_rows: usize,
        /// Columns of a block.
        block_cols: usize,
        /// Rows of the matrix.
        num_rows: usize,
        /// Columns of the matrix.
        num_cols: usize,
    },

    /// SciPy stores a diagonal once.
    #[error(
        "diagonal {0} is stored more than once, for several entries at a place; write the matrix as CsrMatrix"
    )]
    RepeatedDiagonal(i64),
}

impl From<io::Error> for WriteError {
    fn from(source: io::Error) -> Self {
        WriteError::Io { path: None, source }
    }
}
