//! One open folder. Everything goes through its descriptor, so what was checked when it was opened is what is
//! used, whatever happens to the path afterwards.

use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::entry::Damage;
use super::problem::CacheProblem;

const WRITABLE_BY_OTHERS: u32 = 0o022;

#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    fd: OwnedFd,
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
        let fd = match open_folder(path) {
            Err(Errno::NOENT) => {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(path)
                    .map_err(|source| CacheProblem::io("make", path, source))?;
                open_folder(path)
            }
            opened => opened,
        };
        let fd = fd.map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR if path.is_symlink() => {
                CacheProblem::Symlink { folder: path.to_owned() }
            }
            Errno::NOTDIR => CacheProblem::NotAFolder { folder: path.to_owned() },
            errno => CacheProblem::io("open", path, errno.into()),
        })?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| CacheProblem::io("open", path, errno.into()))?;
        let (owner, user) = (stat.st_uid, current_user());
        let mode = Mode::from_raw_mode(stat.st_mode).as_raw_mode() as u32;
        if owner != user {
            return Err(CacheProblem::ForeignOwner { folder: path.to_owned(), owner, user });
        }
        if mode & WRITABLE_BY_OTHERS != 0 {
            return Err(CacheProblem::WritableByOthers { folder: path.to_owned(), mode });
        }
        Ok(Folder { path: path.to_owned(), fd })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Asks, and writes nothing.
    pub(super) fn check_writable(&self) -> io::Result<()> {
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        Ok(rustix::fs::accessat(&self.fd, ".", wanted, AtFlags::empty())?)
    }

    /// A whole file in one read; `None` where there is none.
    pub(super) fn read(&self, name: &str, max_bytes: u64) -> Result<Option<Found>, ReadError> {
        // Without NONBLOCK, opening a pipe waits for its writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut file = match self.open_at(name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::MLINK) => return Err(ReadError::Damaged(Damage::Symlink)),
            Err(Errno::NXIO) => return Err(ReadError::Damaged(Damage::NotAFile)),
            Err(errno) => return Err(ReadError::Io(errno.into())),
        };
        let metadata = file.metadata().map_err(ReadError::Io)?;
        let (owner, user) = (metadata.uid(), current_user());
        let mode = metadata.mode() & 0o7777;
        let bytes = metadata.len();
        let damage = if !metadata.is_file() {
            Some(Damage::NotAFile)
        } else if owner != user {
            Some(Damage::ForeignOwner { owner, user })
        } else if mode & WRITABLE_BY_OTHERS != 0 {
            Some(Damage::WritableByOthers { mode })
        } else if bytes > max_bytes {
            Some(Damage::TooLarge { bytes, max_bytes })
        } else {
            None
        };
        if let Some(damage) = damage {
            return Err(ReadError::Damaged(damage));
        }
        let mut content = vec![0; bytes as usize];
        match file.read_exact(&mut content) {
            Ok(()) => {}
            // Someone shortens it while it is read.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(ReadError::Damaged(Damage::Checksum));
            }
            Err(error) => return Err(ReadError::Io(error)),
        }
        let modified = metadata.modified().map_err(ReadError::Io)?;
        Ok(Some(Found { bytes: content, modified, file }))
    }

    /// A new file that only this user may read and write.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        Ok(self.open_at(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, PRIVATE)?)
    }

    /// A file to append to, new or not.
    pub(super) fn append(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(self.open_at(name, flags, PRIVATE)?)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Whether there was one.
    pub(super) fn remove(&self, name: &str) -> io::Result<bool> {
        let removed = match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            // POSIX says PERM for a folder, Linux says ISDIR.
            Err(Errno::ISDIR | Errno::PERM) => rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR),
            removed => removed,
        };
        match removed {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// All files whose name passes. Links are listed as themselves.
    pub(super) fn list(&self, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<Listed>> {
        let mut listed = Vec::new();
        let folder = match rustix::fs::Dir::read_from(&self.fd) {
            Ok(folder) => folder,
            // Removed under this process.
            Err(Errno::NOENT) => return Ok(listed),
            Err(errno) => return Err(errno.into()),
        };
        for entry in folder {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().ok().filter(|name| wanted(name)) else { continue };
            let stat = match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let bytes = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => stat.st_size as u64,
                _ => 0,
            };
            listed.push(Listed { name: name.to_owned(), bytes, modified: modified(&stat) });
        }
        Ok(listed)
    }

    fn open_at(&self, name: &str, flags: OFlags, mode: Mode) -> Result<File, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(retry_on_intr(|| rustix::fs::openat(&self.fd, name, flags, mode))?))
    }
}

const PRIVATE: Mode = Mode::from_raw_mode(0o600);

fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
}

fn current_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn modified(stat: &rustix::fs::Stat) -> SystemTime {
    let since = Duration::new(u64::try_from(stat.st_mtime).unwrap_or(0), stat.st_mtime_nsec as u32);
    SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
}
