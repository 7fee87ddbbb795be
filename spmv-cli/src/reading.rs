//! Matrix files: read with a progress bar, and what is known of them afterwards.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::Serialize;
use spmv_runtime::codegen::{IndexType, ValueType};
use spmv_runtime::matrix;
use spmv_runtime::matrix::matrix_market::{self, Field, ReadOptions, Symmetry};
use spmv_runtime::matrix::{CsrMatrix, Entry, Offset, Statistics, SymmetricCsr, scipy};

use crate::failure::{Failure, Kind};
use crate::memory::FileSize;
use crate::progress::Progress;
use crate::report::fact;
use crate::{files, memory, quantity};

/// The most nonzeros that kernels count with 32-bit offsets.
const MAX_NNZ_U32: u64 = i32::MAX as u64;

/// What a file says of itself.
#[derive(Clone, Debug)]
pub struct Header {
    pub format: &'static str,
    /// The type of the values.
    pub field: String,
    /// None where the format knows of none.
    pub symmetry: Option<&'static str>,
    pub num_rows: usize,
    pub num_cols: usize,
    /// Entries after mirroring, at most.
    pub num_entries: u64,
    pub complex: bool,
    /// Whether all values are whole numbers, those of a pattern too.
    pub whole: bool,
}

impl From<matrix_market::Header> for Header {
    fn from(header: matrix_market::Header) -> Header {
        let copies = if header.symmetry == Symmetry::General { 1 } else { 2 };
        Header {
            format: header.format.name(),
            field: header.field.name().to_owned(),
            symmetry: Some(header.symmetry.name()),
            num_rows: header.num_rows,
            num_cols: header.num_cols,
            num_entries: header.num_stored.saturating_mul(copies),
            complex: header.field == Field::Complex,
            whole: matches!(header.field, Field::Integer | Field::Pattern),
        }
    }
}

impl From<scipy::Header> for Header {
    fn from(header: scipy::Header) -> Header {
        Header {
            format: header.layout.name(),
            field: header.value_type,
            symmetry: None,
            num_rows: header.num_rows,
            num_cols: header.num_cols,
            num_entries: header.num_stored,
            complex: header.complex,
            whole: header.whole,
        }
    }
}

/// What came through pipes: each can be read only once, and a matrix is read twice, its head first.
static PIPED: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());

/// The regular file that a matrix is read from: the file itself, or what came through a pipe, in a file without a name.
fn regular(path: &Path) -> Result<PathBuf, Failure> {
    // Whoever opens a descriptor's place in /proc reads its file from the beginning; elsewhere it is what was read so far.
    let is_pipe = cfg!(target_os = "linux")
        && std::fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir());
    if !is_pipe {
        return Ok(path.to_owned());
    }
    let failed =
        |error| Failure::new(Kind::Input, format!("{}: could not be read", path.display())).because(error);
    let mut piped = PIPED.lock().unwrap_or_else(PoisonError::into_inner);
    if !piped.contains_key(path) {
        let mut file = tempfile::tempfile().map_err(|error| {
            let folder = std::env::temp_dir();
            let message =
                format!("{}: no file could be made in this folder for temporary ones", folder.display());
            Failure::new(Kind::Environment, message).help("set TMPDIR to another folder").because(error)
        })?;
        let copied = match files::is_stdin(path) {
            // What is no file to be opened, as a socket is, can be read.
            true => keep(&mut io::stdin().lock(), &mut file),
            false => File::open(path).and_then(|mut pipe| keep(&mut pipe, &mut file)),
        };
        copied.map_err(failed)?;
        piped.insert(path.to_owned(), file);
    }
    Ok(format!("/proc/self/fd/{}", piped[path].as_raw_fd()).into())
}

/// Copies what comes through a pipe: all of it where it may be a matrix by what it begins with, else enough to say that it is none.
fn keep(pipe: &mut impl Read, file: &mut File) -> io::Result<()> {
    const BEGINNING: u64 = 4096;
    let mut beginning = Vec::new();
    pipe.take(BEGINNING).read_to_end(&mut beginning)?;
    file.write_all(&beginning)?;
    let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&beginning).trim_ascii_start();
    let is_packed = PACKED.iter().any(|start| beginning.starts_with(start));
    if is_packed || text.len() < 2 || text.starts_with(b"%%") {
        io::copy(pipe, file)?;
    }
    Ok(())
}

/// The head of a file; none of a pipe where that can be read only once.
pub fn header(path: &Path) -> Result<Option<Header>, Failure> {
    let from = &regular(path)?;
    match std::fs::metadata(from) {
        Ok(data) if data.is_dir() => {
            Err(Failure::new(Kind::Input, format!("{}: is a folder, not a matrix", path.display())))
        }
        Ok(data) if !data.is_file() => Ok(None),
        _ if is_scipy(from, path)? => scipy::Header::read_file(from)
            .map(|header| Some(header.into()))
            .map_err(|error| in_scipy_file(path, error)),
        _ => matrix_market::Header::read_file(from)
            .map(|header| Some(header.into()))
            .map_err(|error| in_file(path, error)),
    }
}

/// Whether a regular file is one of SciPy's, whatever its name; errors name the path.
fn is_scipy(from: &Path, path: &Path) -> Result<bool, Failure> {
    let regular = std::fs::metadata(from).is_ok_and(|data| data.is_file());
    Ok(regular && scipy::is_archive(from).map_err(|error| in_scipy_file(path, error))?)
}

/// The offset type that serves however many entries a file has.
pub fn offset_type(header: Option<&Header>) -> IndexType {
    let entries = header.map_or(0, |header| header.num_entries);
    if entries > MAX_NNZ_U32 { IndexType::U64 } else { IndexType::U32 }
}

/// Whether a file holds complex entries.
pub fn is_complex(header: Option<&Header>) -> bool {
    header.is_some_and(|header| header.complex)
}

/// The type that values are read as where nobody names one.
pub fn usual_value(header: Option<&Header>) -> ValueType {
    if is_complex(header) { ValueType::C64 } else { ValueType::F32 }
}

/// Reads a matrix, and says how many milliseconds that took.
pub fn read<V: Entry, O: Offset>(path: &Path) -> Result<(CsrMatrix<V, O>, f64), Failure> {
    let progress = Progress::start(format!("reading {}", path.display()));
    let tell = |read: matrix_market::Progress| progress.bytes(read.done, read.total);
    let started = Instant::now();
    let options = ReadOptions::new().progress(&tell);
    let from = &regular(path)?;
    if let Some(header) = header(path)? {
        check_memory::<V>(&header, from, path)?;
    }
    let matrix = match is_scipy(from, path)? {
        true => scipy::read_file_with(from, &options).map_err(|error| in_scipy_file(path, error))?,
        false => matrix_market::read_file_with(from, &options).map_err(|error| in_file(path, error))?,
    };
    Ok((matrix, quantity::in_ms(started.elapsed())))
}

/// Refuses a file whose entries take more memory than there is; errors name the path.
fn check_memory<V: Entry>(header: &Header, from: &Path, path: &Path) -> Result<(), Failure> {
    let mut start = [0; 2];
    let read = File::open(from).and_then(|mut file| file.read(&mut start));
    let packed = read.is_ok() && PACKED.contains(&start);
    let bytes = std::fs::metadata(from).map_or(u64::MAX, |data| data.len());
    memory::check_entries(header, FileSize { bytes, packed }, size_of::<V>())
        .map_err(|failure| failure.in_file(path))
}

/// What files of gzip and archives of SciPy begin with.
const PACKED: [[u8; 2]; 2] = [[0x1f, 0x8b], *b"PK"];

/// Whether one triangle of a matrix of this symmetry, as a file names it, is the whole of it.
pub fn has_triangle(symmetry: &str) -> bool {
    symmetry != Symmetry::General.name()
}

/// Reads the lower triangle of a symmetric, skew-symmetric or Hermitian matrix, and says how many milliseconds that took. Where the
/// file does not say that it is one, both triangles are read and compared.
pub fn read_symmetric<V: Entry, O: Offset>(path: &Path) -> Result<(SymmetricCsr<V, O>, f64), Failure> {
    let progress = Progress::start(format!("reading {}", path.display()));
    let tell = |read: matrix_market::Progress| progress.bytes(read.done, read.total);
    let started = Instant::now();
    let header = header(path)?;
    let matrix = match &header {
        Some(header) if header.symmetry.is_some_and(has_triangle) => {
            // Nothing is mirrored.
            let stored = Header { num_entries: header.num_entries / 2, ..header.clone() };
            check_memory::<V>(&stored, &regular(path)?, path)?;
            matrix_market::read_symmetric_file(&regular(path)?, &ReadOptions::new().progress(&tell))
                .map_err(|error| in_file(path, error))?
        }
        _ => SymmetricCsr::from_csr(matrix::Symmetry::Symmetric, &read(path)?.0)
            .map_err(|error| Failure::from(error).in_file(path))?,
    };
    Ok((matrix, quantity::in_ms(started.elapsed())))
}

/// Names the file in errors that speak of its content.
fn in_file(path: &Path, error: matrix_market::ReadError) -> Failure {
    let named = matches!(error, matrix_market::ReadError::Io { path: Some(_), .. });
    let failure = Failure::from(error);
    if named { failure } else { failure.in_file(path) }
}

/// Names the file in errors that speak of its content.
fn in_scipy_file(path: &Path, error: scipy::ReadError) -> Failure {
    let named = matches!(error, scipy::ReadError::Io { path: Some(_), .. });
    let failure = Failure::from(error);
    if named { failure } else { failure.in_file(path) }
}

/// What is known of a matrix.
#[derive(Debug, Serialize)]
pub struct MatrixFacts {
    pub path: String,
    /// What the file says of itself; absent for a pipe.
    pub format: Option<&'static str>,
    pub field: Option<String>,
    pub symmetry: Option<&'static str>,
    #[serde(flatten)]
    pub statistics: Statistics,
}

impl MatrixFacts {
    pub fn new(path: String, header: Option<&Header>, statistics: Statistics) -> MatrixFacts {
        MatrixFacts {
            path,
            format: header.map(|header| header.format),
            field: header.map(|header| header.field.clone()),
            symmetry: header.and_then(|header| header.symmetry),
            statistics,
        }
    }

    /// Two lines.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Statistics {
            num_rows, num_cols, nnz, row_nnz_min, row_nnz_mean, row_nnz_max, empty_rows, ..
        } = self.statistics;
        let kind: Vec<&str> = [self.field.as_deref(), self.symmetry].into_iter().flatten().collect();
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
