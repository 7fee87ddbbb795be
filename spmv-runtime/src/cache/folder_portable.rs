//! One folder, by its path, where there are no Unix descriptors and owners.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::entry::Damage;
use super::problem::CacheProblem;

#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

pub(super) struct Found {
    pub(super) bytes: Vec<u8>,
    pub(super) modified: SystemTime,
    pub(super) file: File,
}

pub(super) enum ReadError {
    Damaged(Damage),
    Io(io::Error),
}

pub(super) struct Listed {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) modified: SystemTime,
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Folder, CacheProblem> {
        if path.is_symlink() {
            return Err(CacheProblem::Symlink { folder: path.to_owned() });
        }
        if path.exists() && !path.is_dir() {
            return Err(CacheProblem::NotAFolder { folder: path.to_owned() });
        }
        fs::create_dir_all(path).map_err(|source| CacheProblem::io("make", path, source))?;
        Ok(Folder { path: path.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn check_writable(&self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn read(&self, name: &str, max_bytes: u64) -> Result<Option<Found>, ReadError> {
        let path = self.path.join(name);
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => return Err(ReadError::Damaged(Damage::Symlink)),
            Ok(metadata) if !metadata.is_file() => return Err(ReadError::Damaged(Damage::NotAFile)),
            Ok(metadata) if metadata.len() > max_bytes => {
                return Err(ReadError::Damaged(Damage::TooLarge { bytes: metadata.len(), max_bytes }));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ReadError::Io(error)),
        }
        let read = || -> io::Result<Found> {
            // Renewing the time of last use needs the right to write.
            let file =
                OpenOptions::new().read(true).write(true).open(&path).or_else(|_| File::open(&path))?;
            let mut bytes = Vec::new();
            (&file).take(max_bytes).read_to_end(&mut bytes)?;
            Ok(Found { bytes, modified: file.metadata()?.modified()?, file })
        };
        match read() {
            Ok(found) => Ok(Some(found)),
            // Another process deleted it just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ReadError::Io(error)),
        }
    }

    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(self.path.join(name))
    }

    pub(super) fn append(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).open(self.path.join(name))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.path.join(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn list(&self, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<Listed>> {
        let mut listed = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().filter(|name| wanted(name)).map(str::to_owned) else {
                continue;
            };
            let Ok(metadata) = entry.metadata() else { continue };
            listed.push(Listed { name, bytes: metadata.len(), modified: metadata.modified()? });
        }
        Ok(listed)
    }
}
