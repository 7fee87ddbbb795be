//! Matrices as files: coordinate format, general symmetry.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;

use super::error::WriteError;
use crate::scalar::sealed::Decimal;
use crate::{CsrMatrix, Entry, Offset};

/// How many entries a thread writes at a time.
const BLOCK: usize = 1 << 15;

/// How many blocks are held, for each thread.
const BLOCKS_PER_THREAD: usize = 4;

/// Writes a matrix as text: field `real`, or `complex` for complex entries, with the shortest decimal
/// numbers that read back as the same values. Text is made in parallel.
///
/// # Errors
///
/// [`WriteError::Io`] where `output` fails.
pub fn write<V: Entry, O: Offset>(output: impl Write, matrix: &CsrMatrix<V, O>) -> Result<(), WriteError> {
    write_blocks(output, matrix, Ok).map_err(|source| WriteError::Io { path: None, source })
}

/// Writes a matrix to a file, compressed with gzip where the name ends in `.gz`.
///
/// The text goes to a temporary file in the same folder, which takes the place of `path` when all of it is
/// written: whatever goes wrong, there is the old file or the new one. What is no regular file, as a pipe
/// or a device, is written to as it is.
///
/// # Errors
///
/// [`WriteError::Io`] where the file cannot be created, written or renamed.
pub fn write_file<V: Entry, O: Offset>(
    path: impl AsRef<Path>,
    matrix: &CsrMatrix<V, O>,
) -> Result<(), WriteError> {
    let path = path.as_ref();
    replace(path, matrix).map_err(|source| WriteError::Io { path: Some(path.to_owned()), source })
}

fn replace<V: Entry, O: Offset>(path: &Path, matrix: &CsrMatrix<V, O>) -> io::Result<()> {
    // A symbolic link stays one: what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let existing = fs::metadata(&target).ok();
    if existing.as_ref().is_some_and(|data| !data.is_file() && !data.is_dir()) {
        return write_compressed(path, &mut File::options().write(true).open(path)?, matrix);
    }
    let folder = match target.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => return Err(io::ErrorKind::IsADirectory.into()),
    };
    let mut temporary = new_file(&folder, existing.as_ref())?;
    write_compressed(path, temporary.as_file_mut(), matrix)?;
    temporary.persist(&target)?;
    Ok(())
}

/// A temporary file with the permissions of the file it replaces, or those of a new one.
#[cfg(unix)]
fn new_file(folder: &Path, existing: Option<&fs::Metadata>) -> io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let new = fs::Permissions::from_mode(0o666);
    let file = tempfile::Builder::new().prefix(".spmv-").permissions(new).tempfile_in(folder)?;
    if let Some(existing) = existing {
        file.as_file().set_permissions(existing.permissions())?;
    }
    Ok(file)
}

/// A temporary file.
#[cfg(not(unix))]
fn new_file(folder: &Path, _: Option<&fs::Metadata>) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(".spmv-").tempfile_in(folder)
}

fn write_compressed<V: Entry, O: Offset>(
    path: &Path,
    file: &mut File,
    matrix: &CsrMatrix<V, O>,
) -> io::Result<()> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz")) {
        // Each block is a gzip file of its own, and so is all of them one after the other (RFC 1952, 2.2).
        return write_blocks(file, matrix, |text| {
            let mut packed = GzEncoder::new(Vec::with_capacity(text.len() / 2), Compression::fast());
            packed.write_all(&text)?;
            packed.finish()
        });
    }
    write_blocks(file, matrix, Ok)
}

/// Makes blocks of text in parallel, packs them, and writes them in order.
fn write_blocks<V: Entry, O: Offset>(
    mut output: impl Write,
    matrix: &CsrMatrix<V, O>,
    pack: impl Fn(Vec<u8>) -> io::Result<Vec<u8>> + Sync,
) -> io::Result<()> {
    let field = if V::COMPLEX { "complex" } else { "real" };
    let (num_rows, num_cols, nnz) = (matrix.num_rows(), matrix.num_cols(), matrix.nnz());
    let head = format!("%%MatrixMarket matrix coordinate {field} general\n{num_rows} {num_cols} {nnz}\n");
    output.write_all(&pack(head.into_bytes())?)?;
    let blocks: Vec<usize> = (0..nnz.div_ceil(BLOCK)).collect();
    for held in blocks.chunks(BLOCKS_PER_THREAD * rayon::current_num_threads()) {
        let texts: Vec<_> = held.par_iter().with_max_len(1).map(|&block| pack(text(matrix, block))).collect();
        for text in texts {
            output.write_all(&text?)?;
        }
    }
    output.flush()
}

/// The text of one block of entries.
fn text<V: Entry, O: Offset>(matrix: &CsrMatrix<V, O>, block: usize) -> Vec<u8> {
    let range = block * BLOCK..matrix.nnz().min((block + 1) * BLOCK);
    let offsets = matrix.row_offsets();
    let mut row = offsets.partition_point(|start| start.to_usize() <= range.start) - 1;
    let mut text = Vec::with_capacity(32 * range.len());
    let mut number = itoa::Buffer::new();
    for position in range {
        while offsets[row + 1].to_usize() <= position {
            row += 1;
        }
        text.extend_from_slice(number.format(row + 1).as_bytes());
        text.push(b' ');
        text.extend_from_slice(number.format(u64::from(matrix.col_indices()[position]) + 1).as_bytes());
        text.push(b' ');
        let value = matrix.values()[position];
        value.re().format(&mut text);
        if V::COMPLEX {
            text.push(b' ');
            value.im().format(&mut text);
        }
        text.push(b'\n');
    }
    text
}
