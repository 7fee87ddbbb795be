//! Compiled kernels on disk.
//!
//! A [`DiskCache`] is one folder with one file an entry. An entry's name is the [`Key`] of its
//! [`CompileRequest`]: BLAKE3 over every field that decides what the compiler produces. The file repeats the
//! request in full, so neither a collision nor a misplaced file can stand in for another kernel, and carries a
//! checksum over all of it, so a damaged file is found out, deleted and compiled again.
//!
//! The cache can be slow or absent, never wrong and never an error: what goes wrong with the folder leaves the
//! process without a disk cache, is told once through `tracing`, and stays readable in [`DiskCache::status`].
//!
//! # Notes
//!
//! The same folder keeps small answers to questions, for [`tuning`](crate::tuning): a file each, named by the hash of the
//! question, which it repeats, with a checksum. What holds of entries holds of notes.
//!
//! # Several processes
//!
//! There are no locks. An entry is written to a temporary file in the same folder and renamed, so a reader sees
//! a whole entry or none; two writers of one key write the same thing. A process killed while writing leaves a
//! temporary file, which is swept once it is an hour old. Nothing is flushed to the device on purpose: after a
//! power failure a renamed file may be short or empty, which the checksum finds.
//!
//! # Size
//!
//! Where a put would take the folder over its cap, the least recently used entries go first; the time of last
//! use is the file's modification time, renewed by a hit at most once a minute. A put does not list the folder:
//! all processes append one byte for each 4 KiB they write to one small file, and only the put that makes it as
//! long as a sixteenth of the cap empties it, lists the folder and evicts down to fifteen sixteenths. The cap
//! thus holds, except for what other processes are writing at that very moment.
//!
//! # Where
//!
//! `SPMV_CACHE_DIR`, else `XDG_CACHE_HOME/spmv`, else `HOME/.cache/spmv`; see [`CacheLocation::from_env`].

mod entry;
#[cfg_attr(not(unix), path = "cache/folder_portable.rs")]
mod folder;
mod key;
mod location;
mod manage;
mod note;
mod problem;

pub use entry::Damage;
pub use key::Key;
pub use location::{CacheLocation, DEFAULT_MAX_BYTES};
pub use manage::{EntryInfo, SweepReport, VerifyReport};
pub use problem::CacheProblem;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use crate::artifact::{Artifact, CompileRequest};
use folder::{Folder, Found, ReadError};

/// A hit renews an entry's time of last use when that is older than this.
const RENEW_AFTER: Duration = Duration::from_secs(60);

/// Larger entries are neither written nor read.
const MAX_ENTRY_BYTES: u64 = 64 << 20;

/// Names of files being written start so.
const TEMPORARY_PREFIX: &str = ".writing-";

/// What a lookup found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Lookup {
    /// The artifact of exactly this request.
    Hit(Artifact),
    /// No such entry, or no disk cache.
    Miss,
    /// There was an entry that could not be used; it is deleted. Compile again.
    Discarded {
        /// What was wrong with it.
        reason: Damage,
    },
}

/// Where the cache is and what is wrong with it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The folder in use; `None` where kernels are kept in memory only.
    pub folder: Option<PathBuf>,
    /// Bytes the folder may hold.
    pub max_bytes: u64,
    /// The first problem met. With a folder, it is in use as far as it goes; `None` without a folder means that
    /// the cache was turned off.
    pub problem: Option<CacheProblem>,
}

/// The disk level of the kernel cache; see the [module](self).
#[derive(Debug)]
pub struct DiskCache {
    /// Replaced where the folder was removed under a running process.
    folder: Option<RwLock<Arc<Folder>>>,
    max_bytes: u64,
    problem: OnceLock<CacheProblem>,
}

impl DiskCache {
    /// Opens the folder, and makes it where there is none. Never fails: where the folder cannot or must not be
    /// used, kernels are kept in memory only and [`status`](Self::status) says why.
    pub fn open(location: &CacheLocation) -> DiskCache {
        let mut cache = DiskCache { folder: None, max_bytes: location.max_bytes, problem: OnceLock::new() };
        if let Some(problem) = &location.problem {
            cache.report(problem.clone());
        }
        if let Some(path) = &location.folder {
            match Folder::open(path) {
                Ok(folder) => {
                    if let Err(source) = folder.check_writable() {
                        cache.report(CacheProblem::io("write to", path, source));
                    }
                    cache.folder = Some(RwLock::new(Arc::new(folder)));
                }
                Err(problem) => cache.report(problem),
            }
        }
        cache
    }

    /// Opens the folder that the environment names; see [`CacheLocation::from_env`].
    pub fn from_env() -> DiskCache {
        DiskCache::open(&CacheLocation::from_env())
    }

    /// Where the cache is and what is wrong with it.
    pub fn status(&self) -> Status {
        Status {
            folder: self.folder().map(|folder| folder.path().to_owned()),
            max_bytes: self.max_bytes,
            problem: self.problem.get().cloned(),
        }
    }

    /// The artifact of this request, if it is there and whole.
    pub fn get(&self, request: &CompileRequest) -> Lookup {
        let Some(folder) = self.folder() else { return Lookup::Miss };
        let request = key::encode(request);
        let name = Key::of_encoded(&request).file_name();
        let found = match self.read(&folder, &name) {
            Ok(Some(found)) => found,
            Ok(None) => return Lookup::Miss,
            Err(reason) => return Lookup::Discarded { reason: discard(&folder, &name, reason) },
        };
        match entry::decode_for(&found.bytes, &request) {
            Ok(artifact) => {
                found.renew();
                Lookup::Hit(artifact)
            }
            Err(reason) => Lookup::Discarded { reason: discard(&folder, &name, reason) },
        }
    }

    /// Stores an artifact and says whether it is on disk now. It is not where there is no disk cache, where the
    /// folder cannot be written, and where the entry is larger than 15/16 of the cap or than 64 MiB.
    pub fn put(&self, request: &CompileRequest, artifact: &Artifact) -> bool {
        let request = key::encode(request);
        let name = Key::of_encoded(&request).file_name();
        self.store(&name, &entry::encode(&request, artifact))
    }

    /// Writes a file, and says whether it is there now.
    fn store(&self, name: &str, bytes: &[u8]) -> bool {
        let Some(folder) = self.folder() else { return false };
        let len = bytes.len() as u64;
        if len > MAX_ENTRY_BYTES || len > manage::low_water(self.max_bytes) {
            tracing::debug!(bytes = len, max_bytes = self.max_bytes, "kernel too large for the cache");
            return false;
        }
        let stored = match self.write(&folder, name, bytes) {
            // The folder is gone: someone removed it while this process runs.
            Err(error) if error.kind() == io::ErrorKind::NotFound => match Folder::open(folder.path()) {
                Ok(fresh) => {
                    let fresh = Arc::new(fresh);
                    if let Some(slot) = &self.folder {
                        *slot.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&fresh);
                    }
                    self.write(&fresh, name, bytes)
                }
                Err(problem) => {
                    self.report(problem);
                    return false;
                }
            },
            stored => stored,
        };
        match stored {
            Ok(()) => true,
            Err(source) => {
                self.report(CacheProblem::io("write to", folder.path(), source));
                false
            }
        }
    }

    /// Deletes the entry of this request, for example because the driver rejects its machine code. Says whether
    /// there was one.
    pub fn remove(&self, request: &CompileRequest) -> bool {
        let Some(folder) = self.folder() else { return false };
        match folder.remove(&Key::of(request).file_name()) {
            Ok(removed) => removed,
            Err(source) => {
                self.report(CacheProblem::io("delete from", folder.path(), source));
                false
            }
        }
    }

    /// A whole file, where there is one; what the system refuses is reported, and no file.
    fn read(&self, folder: &Folder, name: &str) -> Result<Option<Found>, Damage> {
        match folder.read(name, MAX_ENTRY_BYTES) {
            Ok(found) => Ok(found),
            Err(ReadError::Damaged(reason)) => Err(reason),
            Err(ReadError::Io(source)) => {
                self.report(CacheProblem::io("read from", folder.path(), source));
                Ok(None)
            }
        }
    }

    fn write(&self, folder: &Folder, name: &str, bytes: &[u8]) -> io::Result<()> {
        manage::make_room(folder, bytes.len() as u64, self.max_bytes);
        let temporary = temporary_name();
        let written = folder
            .create(&temporary)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| folder.rename(&temporary, name));
        if written.is_err() {
            let _ = folder.remove(&temporary);
        }
        written
    }

    fn folder(&self) -> Option<Arc<Folder>> {
        let slot = self.folder.as_ref()?;
        Some(Arc::clone(&slot.read().unwrap_or_else(PoisonError::into_inner)))
    }

    fn report(&self, problem: CacheProblem) {
        problem.warn_once();
        let _ = self.problem.set(problem);
    }
}

impl Found {
    /// Says that the file was of use.
    fn renew(&self) {
        let now = SystemTime::now();
        if now.duration_since(self.modified).map_or(true, |age| age >= RENEW_AFTER) {
            // Only the order of eviction depends on it.
            let _ = self.file.set_modified(now);
        }
    }
}

fn discard(folder: &Folder, name: &str, reason: Damage) -> Damage {
    let _ = folder.remove(name);
    let path = folder.path().join(name);
    tracing::warn!(path = %path.display(), %reason, "deleted an unusable cache entry; what it held is made again");
    reason
}

/// Different in every call of every process; the standard library seeds its hashers from the system.
fn temporary_name() -> String {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{TEMPORARY_PREFIX}{:08x}-{:016x}", std::process::id(), hasher.finish())
}
