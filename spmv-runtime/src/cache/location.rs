use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::problem::CacheProblem;

/// Bytes a cache folder holds where `SPMV_CACHE_MAX_BYTES` does not say otherwise: 256 MiB, about five thousand
/// kernels.
pub const DEFAULT_MAX_BYTES: u64 = 256 << 20;

/// Which folder to use, and how much of it.
#[derive(Clone, Debug)]
pub struct CacheLocation {
    pub(super) folder: Option<PathBuf>,
    pub(super) max_bytes: u64,
    pub(super) problem: Option<CacheProblem>,
}

impl CacheLocation {
    /// This folder, with [`DEFAULT_MAX_BYTES`].
    pub fn folder(path: impl AsRef<Path>) -> CacheLocation {
        let path = path.as_ref();
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // Without a trailing separator, which would make the system follow a link.
        let folder = Some(absolute.components().collect());
        CacheLocation { folder, max_bytes: DEFAULT_MAX_BYTES, problem: None }
    }

    /// No folder: kernels are kept in memory only.
    pub fn off() -> CacheLocation {
        CacheLocation { folder: None, max_bytes: DEFAULT_MAX_BYTES, problem: None }
    }

    /// With another cap.
    #[must_use]
    pub fn max_bytes(self, max_bytes: u64) -> CacheLocation {
        CacheLocation { max_bytes, ..self }
    }

    /// What the environment says: `SPMV_CACHE_DIR` (empty or `off`: none), else `XDG_CACHE_HOME/spmv`, else
    /// `HOME/.cache/spmv` (on Windows `LOCALAPPDATA/spmv/cache`), never the shared temporary folder;
    /// `SPMV_CACHE_MAX_BYTES` is a number of bytes, or one with `K`, `M` or `G` behind it.
    pub fn from_env() -> CacheLocation {
        CacheLocation::from_variables(|name| std::env::var_os(name))
    }

    /// [`from_env`](Self::from_env) with the environment given as a function.
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> CacheLocation {
        let base = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let location = match variable("SPMV_CACHE_DIR") {
            Some(folder) if folder.is_empty() || folder == "off" => CacheLocation::off(),
            Some(folder) => CacheLocation::folder(folder),
            None => {
                let folder = if cfg!(windows) {
                    base("LOCALAPPDATA").map(|local| local.join("spmv").join("cache"))
                } else {
                    let cache = base("XDG_CACHE_HOME").or_else(|| Some(base("HOME")?.join(".cache")));
                    cache.map(|cache| cache.join("spmv"))
                };
                match folder {
                    Some(folder) => CacheLocation::folder(folder),
                    None => CacheLocation { problem: Some(CacheProblem::NoHome), ..CacheLocation::off() },
                }
            }
        };
        match variable("SPMV_CACHE_MAX_BYTES") {
            None => location,
            Some(text) => match parse_bytes(&text.to_string_lossy()) {
                Some(max_bytes) => location.max_bytes(max_bytes),
                None => {
                    let value = text.to_string_lossy().into_owned();
                    let problem = location.problem.clone().or(Some(CacheProblem::MaxBytes { value }));
                    CacheLocation { problem, ..location }
                }
            },
        }
    }
}

fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1 << 10),
        (at, 'm' | 'M') => (&text[..at], 1 << 20),
        (at, 'g' | 'G') => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
