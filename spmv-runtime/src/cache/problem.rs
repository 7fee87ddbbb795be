use std::io;
use std::mem::{Discriminant, discriminant};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use super::location::DEFAULT_MAX_BYTES;

/// Why kernels are not kept on disk, and what to do about it.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum CacheProblem {
    /// The environment names no folder.
    #[error(
        "no folder for the kernel cache: none of SPMV_CACHE_DIR, XDG_CACHE_HOME and HOME is set to an absolute \
         path; set SPMV_CACHE_DIR to a folder, or to \"off\""
    )]
    NoHome,
    /// `SPMV_CACHE_MAX_BYTES` is not a size. The default holds instead.
    #[error(
        "SPMV_CACHE_MAX_BYTES is {value:?}, which is not a number of bytes (allowed: 268435456, 512M, 2G, …); \
         using {DEFAULT_MAX_BYTES}"
    )]
    MaxBytes {
        /// What it says.
        value: String,
    },
    /// The folder is a symbolic link.
    #[error("the cache folder {folder:?} is a symbolic link; set SPMV_CACHE_DIR to the folder itself")]
    Symlink {
        /// The folder.
        folder: PathBuf,
    },
    /// There is something else where the folder should be.
    #[error("the cache folder {folder:?} is not a folder; remove what is there or set SPMV_CACHE_DIR")]
    NotAFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder is another user's, who could put anything there.
    #[error(
        "the cache folder {folder:?} belongs to user {owner}, and this process runs as user {user}; \
         set SPMV_CACHE_DIR to a folder of your own"
    )]
    ForeignOwner {
        /// The folder.
        folder: PathBuf,
        /// Whose it is.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Other users may put anything there.
    #[error("others may write to the cache folder {folder:?} (mode {mode:04o}); run: chmod go-w {folder:?}")]
    WritableByOthers {
        /// The folder.
        folder: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The system refuses an operation.
    #[error(
        "cannot {action} the cache folder {folder:?}: {source}; kernels are compiled again in the next process. \
         Make the folder usable, or set SPMV_CACHE_DIR to another one or to \"off\""
    )]
    Io {
        /// What was tried: "make", "open", "read from", "write to", "delete from" or "list".
        action: &'static str,
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
}

impl CacheProblem {
    pub(super) fn io(action: &'static str, folder: &Path, source: io::Error) -> CacheProblem {
        CacheProblem::Io { action, folder: folder.to_owned(), source: Arc::new(source) }
    }

    /// One warning for the process and kind of problem: a full disk is not told again with every kernel.
    pub(super) fn warn_once(&self) {
        static WARNED: Mutex<Vec<Discriminant<CacheProblem>>> = Mutex::new(Vec::new());
        let kind = discriminant(self);
        let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
        if !warned.contains(&kind) {
            warned.push(kind);
            drop(warned);
            tracing::warn!("{self}");
        }
    }
}
