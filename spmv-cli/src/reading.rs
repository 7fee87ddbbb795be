//! Matrix files: read with a progress bar, and what is known of them afterwards.

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use spmv_runtime::codegen::IndexType;
use spmv_runtime::matrix::matrix_market::{self, Field, Header, ReadOptions, Symmetry};
use spmv_runtime::matrix::{CsrMatrix, Entry, Offset, Statistics};

use crate::failure::{Failure, Kind};
use crate::progress::Progress;
use crate::quantity;
use crate::report::fact;

/// The most nonzeros that kernels count with 32-bit offsets.
const MAX_NNZ_U32: u64 = i32::MAX as u64;

/// The head of a file. A pipe can be read only once, so it has none.
pub fn header(path: &Path) -> Result<Option<Header>, Failure> {
    match std::fs::metadata(path) {
        Ok(data) if data.is_dir() => {
            Err(Failure::new(Kind::Input, format!("{}: is a folder, not a matrix", path.display())))
        }
        Ok(data) if !data.is_file() => Ok(None),
        _ => Header::read_file(path).map(Some).map_err(|error| in_file(path, error)),
    }
}

/// The offset type that serves however many entries a file has.
pub fn offset_type(header: Option<&Header>) -> IndexType {
    let entries = header.map_or(0, |header| {
        let copies = if header.symmetry == Symmetry::General { 1 } else { 2 };
        header.num_stored.saturating_mul(copies)
    });
    if entries > MAX_NNZ_U32 { IndexType::U64 } else { IndexType::U32 }
}

/// Whether a file holds complex entries.
pub fn is_complex(header: Option<&Header>) -> bool {
    header.is_some_and(|header| header.field == Field::Complex)
}

/// Reads a matrix, and says how many milliseconds that took.
pub fn read<V: Entry, O: Offset>(path: &Path) -> Result<(CsrMatrix<V, O>, f64), Failure> {
    let progress = Progress::start(format!("reading {}", path.display()));
    let tell = |read: matrix_market::Progress| progress.bytes(read.done, read.total);
    let started = Instant::now();
    let matrix = matrix_market::read_file_with(path, &ReadOptions::new().progress(&tell))
        .map_err(|error| in_file(path, error))?;
    Ok((matrix, quantity::in_ms(started.elapsed())))
}

/// Names the file in errors that speak of its content.
fn in_file(path: &Path, error: matrix_market::ReadError) -> Failure {
    let named = matches!(error, matrix_market::ReadError::Io { path: Some(_), .. });
    let failure = Failure::from(error);
    if named { failure } else { failure.in_file(path) }
}

/// What is known of a matrix.
#[derive(Debug, Serialize)]
pub struct MatrixFacts {
    pub path: String,
    /// What the file says of itself; absent for a pipe.
    pub format: Option<&'static str>,
    pub field: Option<&'static str>,
    pub symmetry: Option<&'static str>,
    #[serde(flatten)]
    pub statistics: Statistics,
}

impl MatrixFacts {
    pub fn new(path: String, header: Option<&Header>, statistics: Statistics) -> MatrixFacts {
        MatrixFacts {
            path,
            format: header.map(|header| header.format.name()),
            field: header.map(|header| header.field.name()),
            symmetry: header.map(|header| header.symmetry.name()),
            statistics,
        }
    }

    /// Two lines.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Statistics {
            num_rows, num_cols, nnz, row_nnz_min, row_nnz_mean, row_nnz_max, empty_rows, ..
        } = self.statistics;
        let kind: Vec<&str> = [self.field, self.symmetry].into_iter().flatten().collect();
        let kind = if kind.is_empty() { String::new() } else { format!(" ({})", kind.join(", ")) };
        fact(out, "matrix", format_args!("{}{kind}", self.path))?;
        let [rows, cols, nonzeros] = [num_rows, num_cols, nnz].map(quantity::count);
        fact(
            out,
            "",
            format_args!(
                "{rows} x {cols}, {nonzeros} nonzeros, {row_nnz_mean:.1} a row ({row_nnz_min} to {row_nnz_max}), {} empty rows",
                quantity::count(empty_rows)
            ),
        )
    }
}
