//! What can be wrong with the parts of a matrix or the lengths of vectors.

use crate::{MAX_DIMENSION, Symmetry};

/// Parts that do not make a matrix, or vectors that do not fit one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// More rows than a row index can count.
    #[error("{0} rows are too many: at most {MAX_DIMENSION} are allowed")]
    TooManyRows(u64),

    /// More columns than a column index can count.
    #[error("{0} columns are too many: at most {MAX_DIMENSION} are allowed")]
    TooManyColumns(u64),

    /// `row_offsets` must have one entry more than there are rows.
    #[error("row_offsets has {found} entries: {expected} are needed, one more than there are rows")]
    OffsetsLength {
        /// Entries there are.
        found: usize,
        /// Entries there should be.
        expected: usize,
    },

    /// The first offset must be zero.
    #[error("row_offsets starts at {0}: it must start at 0")]
    OffsetsStart(u64),

    /// An offset is smaller than the one before it.
    #[error("row_offsets[{index}] is {value}, less than {previous} before it: offsets never decrease")]
    OffsetsDecrease {
        /// Position in `row_offsets`.
        index: usize,
        /// The offset at that position.
        value: u64,
        /// The offset before it.
        previous: u64,
    },

    /// A row has more than [`MAX_ROW_NNZ`](crate::MAX_ROW_NNZ) entries; it has columns more than once, for there are fewer
    /// than that.
    #[error("row {row} has {entries} entries: at most {} are allowed", crate::MAX_ROW_NNZ)]
    RowTooLong {
        /// The row.
        row: usize,
        /// Its entries.
        entries: u64,
    },

    /// The last offset must be the number of nonzeros.
    #[error("row_offsets ends at {found}: it must end at the number of nonzeros, {nnz}")]
    OffsetsEnd {
        /// The last offset.
        found: u64,
        /// The length of `col_indices`.
        nnz: usize,
    },

    /// Two arrays must have the same length.
    #[error("{name} has {found} entries: {expected} are needed, as many as in {like}")]
    Length {
        /// The array of the wrong length.
        name: &'static str,
        /// Its length.
        found: usize,
        /// The array it must match.
        like: &'static str,
        /// The length of that one.
        expected: usize,
    },

    /// A row index is not below the number of rows.
    #[error("row_indices[{position}] is {index}: with {num_rows} rows it must be below {num_rows}")]
    RowOutOfRange {
        /// Position in `row_indices`.
        position: usize,
        /// The index there.
        index: u32,
        /// The number of rows.
        num_rows: usize,
    },

    /// A column index is not below the number of columns.
    #[error("col_indices[{position}] is {index}: with {num_cols} columns it must be below {num_cols}")]
    ColumnOutOfRange {
        /// Position in `col_indices`.
        position: usize,
        /// The index there.
        index: u32,
        /// The number of columns.
        num_cols: usize,
    },

    /// The nonzeros cannot be counted by the offset type.
    #[error("{nnz} nonzeros do not fit in {offset} row offsets (at most {max}): use u64 offsets")]
    OffsetOverflow {
        /// The number of nonzeros.
        nnz: u64,
        /// The offset type.
        offset: &'static str,
        /// The most it can count.
        max: u64,
    },

    /// Parts that do not make a matrix in compressed sparse columns: those of its transpose make none.
    #[error("in compressed sparse columns, where rows are columns and columns are rows: {0}")]
    Columns(Box<MatrixError>),

    /// A matrix that is not square cannot be symmetric.
    #[error("{num_rows} × {num_cols}: only a square matrix can be symmetric, skew-symmetric or hermitian")]
    NotSquare {
        /// Rows of the matrix.
        num_rows: usize,
        /// Columns of the matrix.
        num_cols: usize,
    },

    /// An entry above the diagonal of what should be a lower triangle.
    #[error(
        "col_indices[{position}] is {col}, in row {row}: above the diagonal; the lower triangle has columns up to the row's own"
    )]
    AboveDiagonal {
        /// Position in `col_indices`.
        position: usize,
        /// The row, counted from 0.
        row: usize,
        /// The column there.
        col: u32,
    },

    /// An entry other than zero on the diagonal of a skew-symmetric matrix.
    #[error("{value} at row {row}, column {row}: the diagonal of a skew-symmetric matrix is zero")]
    SkewDiagonal {
        /// The row and the column, counted from 0.
        row: usize,
        /// The entry.
        value: String,
    },

    /// An entry with an imaginary part on the diagonal of a Hermitian matrix.
    #[error(
        "{value} at row {row}, column {row}: the diagonal of a hermitian matrix is real, each entry its own conjugate"
    )]
    HermitianDiagonal {
        /// The row and the column, counted from 0.
        row: usize,
        /// The entry.
        value: String,
    },

    /// A Hermitian matrix of real entries is a symmetric one.
    #[error(
        "a hermitian matrix of {value_type}, which has no imaginary part, is symmetric; use Symmetry::Symmetric"
    )]
    RealHermitian {
        /// The type of entries.
        value_type: &'static str,
    },

    /// An entry of a skew-symmetric matrix whose mirror image, its negative, is no number of the type.
    #[error("{value} at row {row}, column {col}: the negative, its mirror image, is no {value_type}")]
    NoNegative {
        /// The row, counted from 0.
        row: usize,
        /// The column, counted from 0.
        col: u32,
        /// The entry.
        value: String,
        /// The type of entries.
        value_type: &'static str,
    },

    /// An entry whose mirror image is missing or another.
    #[error("not {symmetry}: {}", mirrors(*symmetry, *row, *col, value.as_deref(), mirror.as_deref()))]
    NotSymmetric {
        /// What the matrix should be.
        symmetry: Symmetry,
        /// The entry's row, counted from 0.
        row: usize,
        /// The entry's column, counted from 0.
        col: u32,
        /// What is stored there, if anything.
        value: Option<String>,
        /// What is stored in that column's row and that row's column, if anything.
        mirror: Option<String>,
    },

    /// A vector does not have the length that the matrix asks for.
    #[error("{name} has {found} entries: a {num_rows} × {num_cols} matrix needs {expected}")]
    VectorLength {
        /// `x` or `y`.
        name: &'static str,
        /// The vector's length.
        found: usize,
        /// The length it should have.
        expected: usize,
        /// Rows of the matrix.
        num_rows: usize,
        /// Columns of the matrix.
        num_cols: usize,
    },

    /// An entry would be outside the matrix.
    #[error(
        "there is no row {row} and column {col} in a matrix of {num_rows} × {num_cols}; they count from 0"
    )]
    NoPlace {
        /// The row.
        row: usize,
        /// The column.
        col: usize,
        /// Rows of the matrix.
        num_rows: usize,
        /// Columns of the matrix.
        num_cols: usize,
    },

    /// Another library cannot hold the matrix.
    #[error(
        "{library} needs columns that ascend without repetition, and row {row} has others: sum_duplicates makes them so"
    )]
    NotCanonical {
        /// The library.
        library: &'static str,
        /// The first row that is otherwise.
        row: usize,
    },

    /// A parameter of a layout has a value that is not allowed.
    #[error("{name} = {value} is not allowed; allowed are {allowed}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },

    /// A layout would be mostly fill.
    #[error(
        "{format} would store {slots} slots for {nnz} entries and take {bytes} bytes, against {csr_bytes} in compressed \
         sparse rows; more than 8 slots an entry are allowed for up to {limit_bytes} bytes of fill only; {}",
        suggestion(alternatives)
    )]
    Fill {
        /// The layout.
        format: &'static str,
        /// Slots it would have.
        slots: u64,
        /// Entries of the matrix.
        nnz: u64,
        /// Bytes it would take.
        bytes: u64,
        /// Bytes of the matrix in compressed sparse rows.
        csr_bytes: u64,
        /// Bytes of fill that are allowed.
        limit_bytes: u64,
        /// Layouts that take about as much as compressed sparse rows.
        alternatives: Vec<&'static str>,
    },

    /// The system has no memory for an array.
    #[error("out of memory: {bytes} bytes for {what} could not be allocated")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
        /// The array.
        what: &'static str,
    },
}

fn suggestion(alternatives: &[&str]) -> String {
    match alternatives {
        [] => "compressed sparse rows suit this matrix".to_owned(),
        names => format!("what suits this matrix: {}", names.join(", ")),
    }
}

fn mirrors(symmetry: Symmetry, row: usize, col: u32, value: Option<&str>, mirror: Option<&str>) -> String {
    let value = value.map_or("nothing".to_owned(), str::to_owned);
    if row == col as usize {
        let must_be = if symmetry == Symmetry::Hermitian { "real" } else { "zero" };
        return format!("{value} is stored at row {row}, column {row}, and the diagonal must be {must_be}");
    }
    let mirror = mirror.unwrap_or("nothing");
    format!("{value} is stored at row {row}, column {col}, and {mirror} at row {col}, column {row}")
}
