//! Files that are written whole or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Writes to a temporary file in the same folder, which takes the place of `path` when all of it is written: whatever
/// goes wrong, there is the old file or the new one. What is no regular file, as a pipe or a device, is written to as it
/// is.
pub fn replace_file<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    // Asked of the path as it is: what `/dev/stdout` and its like lead to may have no path of its own.
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|data| !data.is_file() && !data.is_dir()) {
        return write(&mut File::options().write(true).open(path)?);
    }
    if existing.as_ref().is_some_and(fs::Metadata::is_file) {
        // Whoever may not write it may not replace it either.
        File::options().write(true).open(path)?;
    }
    let target = end_of_links(path);
    let folder = match target.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => return Err(io::Error::from(io::ErrorKind::IsADirectory).into()),
    };
    let mut temporary = new_file(&folder, existing.as_ref())?;
    write(temporary.as_file_mut())?;
    temporary.persist(&target).map_err(io::Error::from)?;
    Ok(())
}

/// What symbolic links lead to, where there may be nothing yet: a link stays one, and what it points to is replaced or made.
pub fn end_of_links(path: &Path) -> PathBuf {
    const MOST_LINKS: usize = 40;
    let mut end = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(to) = fs::read_link(&end) else { break };
        end = end.parent().unwrap_or(Path::new("")).join(to);
    }
    end
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
