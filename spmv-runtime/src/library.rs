//! Finding CUDA's shared libraries: where they are looked for, in which order, and how one was found.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// How a library was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// Named by an environment variable.
    Environment,
    /// The dynamic loader knows it by name.
    Loader,
    /// A CUDA toolkit's folder.
    Toolkit,
    /// An installed Python wheel.
    Wheel,
    /// The user's data folder, where `make` puts it.
    DataFolder,
}

impl fmt::Display for FoundBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FoundBy::Environment => "environment variable",
            FoundBy::Loader => "dynamic loader",
            FoundBy::Toolkit => "CUDA toolkit",
            FoundBy::Wheel => "Python wheel",
            FoundBy::DataFolder => "data folder",
        })
    }
}

/// A file or bare name that may be the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) found_by: FoundBy,
}

/// What to look for: `libnvrtc.so`, its known major versions from the newest, and the wheels that hold it.
pub(crate) struct Wanted {
    pub(crate) stem: &'static str,
    pub(crate) majors: &'static [u32],
    pub(crate) wheel_folders: &'static [&'static str],
}

impl Wanted {
    /// Every place, in order: the dynamic loader, toolkits, wheels, the data folder. Bare names first because
    /// what the user's environment says goes before what lies about.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let mut add = |path: PathBuf, found_by| candidates.push(Candidate { path, found_by });
        for name in self.names() {
            add(PathBuf::from(name), FoundBy::Loader);
        }
        let mut folders = |folder: &Path, found_by| {
            for path in self.files_in(folder) {
                add(path, found_by);
            }
        };
        for root in toolkit_roots() {
            for below in ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"] {
                folders(&root.join(below), FoundBy::Toolkit);
            }
        }
        for site in site_packages() {
            for wheel in self.wheel_folders {
                folders(&site.join(wheel), FoundBy::Wheel);
            }
        }
        if let Some(data) = data_folder() {
            let mut versions = subfolders(&data.join("nvrtc"));
            versions.sort_by_key(|folder| std::cmp::Reverse(version_of(folder)));
            for folder in versions {
                folders(&folder, FoundBy::DataFolder);
            }
        }
        candidates
    }

    /// Files of this library in one folder, the newest major first.
    pub(crate) fn files_in(&self, folder: &Path) -> Vec<PathBuf> {
        self.names().map(|name| folder.join(name)).filter(|path| path.is_file()).collect()
    }

    fn names(&self) -> impl Iterator<Item = String> {
        let versioned = self.majors.iter().map(|major| format!("{}.{major}", self.stem));
        versioned.chain([self.stem.to_owned()])
    }
}

/// `$XDG_DATA_HOME/spmv`, else `$HOME/.local/share/spmv`.
pub fn data_folder() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(base.join("spmv"))
}

fn toolkit_roots() -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].iter().filter_map(env::var_os).map(PathBuf::from);
    let mut installed: Vec<_> = subfolders(Path::new("/usr/local"))
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cuda")))
        .collect();
    installed.sort_by_key(|folder| std::cmp::Reverse(version_of(folder)));
    named
        .chain(installed)
        .chain([PathBuf::from("/opt/cuda"), PathBuf::from("/usr/lib/x86_64-linux-gnu")])
        .collect()
}

fn site_packages() -> Vec<PathBuf> {
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(env::var_os).map(PathBuf::from);
    let user = env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    let prefixes = environments.chain(user).chain([PathBuf::from("/usr/local"), PathBuf::from("/usr")]);
    let mut sites = Vec::new();
    for lib in prefixes.map(|prefix| prefix.join("lib")) {
        let pythons = subfolders(&lib).into_iter().filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
        });
        for python in pythons {
            sites.extend([python.join("site-packages"), python.join("dist-packages")]);
        }
    }
    sites
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut folders: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// The numbers in a folder's name, for ordering versions: `cuda-12.9` → [12, 9].
fn version_of(folder: &Path) -> Vec<u32> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_order_by_number() {
        let mut folders = ["nvrtc/12.9.86", "nvrtc/13.10.1", "nvrtc/13.5.37"].map(PathBuf::from);
        folders.sort_by_key(|folder| std::cmp::Reverse(version_of(folder)));
        assert_eq!(folders, ["nvrtc/13.10.1", "nvrtc/13.5.37", "nvrtc/12.9.86"].map(PathBuf::from));
    }

    #[test]
    fn the_loader_is_asked_first_and_for_the_newest() {
        let wanted = Wanted { stem: "libnvrtc.so", majors: &[13, 12], wheel_folders: &[] };
        let candidates = wanted.candidates();
        let names: Vec<_> = candidates.iter().take(3).map(|c| c.path.to_str().unwrap()).collect();
        assert_eq!(names, ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]);
        assert!(candidates.iter().take(3).all(|c| c.found_by == FoundBy::Loader));
    }
}
