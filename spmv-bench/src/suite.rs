//! The matrices that are measured: named suites of generated ones, and files.
//!
//! ```
//! use spmv_bench::suite;
//!
//! let quick = suite::named("quick")?;
//! let stencil = &quick[0];
//! assert_eq!((&*stencil.name, &*stencil.class), ("quick_stencil_5", "stencil_5"));
//! assert_eq!(stencil.load::<f32>()?.num_rows(), 40_000);
//! # Ok::<(), spmv_bench::suite::SuiteError>(())
//! ```

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use spmv_runtime::matrix::generate::{GenerateError, Generator, Values};
use spmv_runtime::matrix::matrix_market::{self, ReadError};
use spmv_runtime::matrix::{CsrMatrix, MatrixError, Value, scipy};

use crate::memory;

mod tables;

/// What the names of matrix files end in.
const ENDINGS: [&str; 3] = [".mtx.gz", ".mtx", ".npz"];

/// The class of matrices that were read from a file.
pub const FILE_CLASS: &str = "file";

/// A matrix that is going to be measured.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name in records.
    pub name: String,
    /// The generator's class, or [`FILE_CLASS`].
    pub class: String,
    /// Whether it is kept out of whatever is fitted to records.
    pub held_out: bool,
    /// Where it comes from.
    pub source: Source,
}

/// Where a matrix comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A class with its parameters, seed and values.
    Generated(Generator),
    /// A Matrix Market file, which may be compressed with gzip, or one of SciPy's.
    File(PathBuf),
}

/// Why matrices cannot be named, found or loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// There is no such suite.
    #[error("there is no suite {name:?}; there are {}", allowed.join(", "))]
    UnknownSuite {
        /// The name that was given.
        name: String,
        /// The names there are.
        allowed: Vec<&'static str>,
    },
    /// The suite has no such matrix.
    #[error("the suite {suite} has no matrix {name:?}; it has {}", allowed.join(", "))]
    UnknownMatrix {
        /// The suite.
        suite: &'static str,
        /// The name that was given.
        name: String,
        /// The names there are.
        allowed: Vec<&'static str>,
    },
    /// A folder or file cannot be looked at.
    #[error("{}: {source}", path.display())]
    Path {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder holds no matrix.
    #[error("{}: no file of it or of its folders ends in .mtx, .mtx.gz or .npz", .0.display())]
    NoMatrices(PathBuf),
    /// A matrix and its vectors take more memory than there is.
    #[error(
        "{name}: {rows} rows and {cols} columns need {needed} bytes of memory, and {available} are available"
    )]
    Memory {
        /// The matrix.
        name: String,
        /// Its rows.
        rows: usize,
        /// Its columns.
        cols: usize,
        /// Bytes that rows and columns take.
        needed: u64,
        /// Bytes that there are.
        available: u64,
    },
    /// A matrix cannot be made.
    #[error("{name}: {source}")]
    Generate {
        /// The matrix.
        name: String,
        /// What is wrong.
        source: GenerateError,
    },
    /// The values of a matrix are complex, and the contenders multiply real ones.
    #[error("{}: its values are complex, and only real ones are measured; `spmv run` multiplies both", .0.display())]
    Complex(PathBuf),
    /// A matrix cannot be read.
    #[error("{}", with_path(path, source))]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ReadError,
    },
    /// A file of SciPy's cannot be read.
    #[error("{}", with_path(path, source))]
    ReadScipy {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<scipy::ReadError>,
    },
}

impl SuiteError {
    /// Whether the host has too little memory for it.
    pub fn is_of_memory(&self) -> bool {
        let matrix = |error: &MatrixError| matches!(error, MatrixError::OutOfMemory { .. });
        match self {
            SuiteError::Memory { .. } => true,
            SuiteError::Generate { source: GenerateError::Matrix(error), .. } => matrix(error),
            SuiteError::Generate { source, .. } => matches!(source, GenerateError::TooLarge { .. }),
            SuiteError::Read { source: ReadError::Matrix(error), .. } => matrix(error),
            SuiteError::Read { source, .. } => matches!(source, ReadError::TooLarge { .. }),
            SuiteError::ReadScipy { source, .. } => match &**source {
                scipy::ReadError::Matrix(error) => matrix(error),
                source => matches!(source, scipy::ReadError::TooLarge { .. }),
            },
            _ => false,
        }
    }
}

/// What is wrong with a file, after its name where that is not there already.
fn with_path(path: &Path, source: &impl fmt::Display) -> String {
    let (path, source) = (path.display().to_string(), source.to_string());
    if source.starts_with(&path) { source } else { format!("{path}: {source}") }
}

/// Matrices that are measured together.
#[derive(Debug)]
pub struct Suite {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    held_out: bool,
    matrices: &'static [Spec],
}

/// A generated matrix with random values, as data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub name: &'static str,
    pub class: &'static str,
    pub parameters: &'static [(&'static str, f64)],
    pub seed: u64,
}

/// Every suite.
pub static ALL: &[Suite] = &[
    Suite {
        name: "standard",
        summary: "21 matrices of the usual classes, most of them far larger than an L2 cache",
        held_out: false,
        matrices: tables::STANDARD,
    },
    Suite {
        name: "quick",
        summary: "the same classes with at most 300,000 nonzeros, for tests and the simulator",
        held_out: false,
        matrices: tables::QUICK,
    },
    Suite {
        name: "more",
        summary: "other sizes, parameters and seeds, and other classes",
        held_out: false,
        matrices: tables::MORE,
    },
    Suite {
        name: "small",
        summary: "20 to two million nonzeros, which an L2 cache holds",
        held_out: false,
        matrices: tables::SMALL,
    },
    Suite {
        name: "held_out",
        summary: "again other sizes, parameters and seeds, large and small: nothing is fitted to them",
        held_out: true,
        matrices: tables::HELD_OUT,
    },
];

/// The matrices of a suite, or the one that `SUITE/MATRIX` names.
///
/// # Errors
/// [`SuiteError::UnknownSuite`] and [`SuiteError::UnknownMatrix`], with the names there are.
pub fn named(name: &str) -> Result<Vec<Entry>, SuiteError> {
    let (suite, matrix) = name.split_once('/').map_or((name, None), |(suite, matrix)| (suite, Some(matrix)));
    let suite = ALL.iter().find(|known| known.name == suite).ok_or_else(|| SuiteError::UnknownSuite {
        name: suite.to_owned(),
        allowed: ALL.iter().map(|suite| suite.name).collect(),
    })?;
    let wanted = |spec: &&Spec| matrix.is_none_or(|matrix| matrix == spec.name);
    let entries: Vec<Entry> = suite
        .matrices
        .iter()
        .filter(wanted)
        .map(|spec| Ok(Entry { held_out: suite.held_out, ..spec.entry()? }))
        .collect::<Result<_, SuiteError>>()?;
    match matrix {
        Some(matrix) if entries.is_empty() => Err(SuiteError::UnknownMatrix {
            suite: suite.name,
            name: matrix.to_owned(),
            allowed: suite.matrices.iter().map(|spec| spec.name).collect(),
        }),
        _ => Ok(entries),
    }
}

/// Files, and all files of folders and of their folders that end in `.mtx`, `.mtx.gz` or `.npz`, sorted by path. Their
/// names are those of the files without the ending, or the whole path where two would be called the same.
///
/// # Errors
/// [`SuiteError::Path`] where a path cannot be looked at, [`SuiteError::NoMatrices`] where a folder has none.
pub fn files(paths: &[PathBuf]) -> Result<Vec<Entry>, SuiteError> {
    let mut found = Vec::new();
    for path in paths {
        let before = found.len();
        if metadata(path)?.is_dir() {
            gather(path, &mut found)?;
        } else {
            found.push(path.clone());
        }
        if found.len() == before {
            return Err(SuiteError::NoMatrices(path.clone()));
        }
    }
    found.sort();
    found.dedup();
    let mut times = HashMap::new();
    for path in &found {
        *times.entry(stem(path)).or_insert(0) += 1;
    }
    let entry = |path: &PathBuf| {
        let stem = stem(path);
        let name = if times[&stem] == 1 { stem } else { path.display().to_string() };
        Entry::file(name, path.clone())
    };
    Ok(found.iter().map(entry).collect())
}

impl Entry {
    /// A generated matrix; its class is the generator's.
    pub fn generated(name: impl Into<String>, generator: Generator) -> Entry {
        let class = generator.class().name.to_owned();
        Entry { name: name.into(), class, held_out: false, source: Source::Generated(generator) }
    }

    /// A generated matrix that is named by how it is made: `CLASS` or `CLASS:KEY=VALUE,...`.
    ///
    /// # Errors
    /// Those of the generator's [`FromStr`](std::str::FromStr).
    pub fn named(text: &str) -> Result<Entry, GenerateError> {
        Ok(Entry::generated(text, text.parse()?))
    }

    /// The same with other values, which its name says, where it is generated.
    #[must_use]
    pub fn with_values(self, values: Values) -> Entry {
        match self.source {
            Source::Generated(generator) if values != Values::Random => {
                let name = format!("{} {values}", self.name);
                Entry { name, source: Source::Generated(generator.values(values)), ..self }
            }
            source => Entry { source, ..self },
        }
    }

    /// A matrix that is in a file.
    pub fn file(name: impl Into<String>, path: PathBuf) -> Entry {
        Entry { name: name.into(), class: FILE_CLASS.to_owned(), held_out: false, source: Source::File(path) }
    }

    /// Makes or reads the matrix.
    ///
    /// # Errors
    /// [`SuiteError::Generate`] and [`SuiteError::Memory`] with the matrix's name, [`SuiteError::Complex`], [`SuiteError::Read`]
    /// and [`SuiteError::ReadScipy`] with the file's.
    pub fn load<V: Value>(&self) -> Result<CsrMatrix<V, u32>, SuiteError> {
        let name = || self.name.clone();
        match &self.source {
            Source::Generated(generator) => {
                generator.generate().map_err(|source| SuiteError::Generate { name: name(), source })
            }
            Source::File(path) => {
                let scipy = |error| SuiteError::ReadScipy { path: path.clone(), source: Box::new(error) };
                let fits = |is_complex: bool| match is_complex {
                    true => Err(SuiteError::Complex(path.clone())),
                    false => Ok(()),
                };
                // A pipe can be read only once, and is no archive.
                let read = |source| SuiteError::Read { path: path.clone(), source };
                if path.is_file() && scipy::is_archive(path).map_err(scipy)? {
                    let header = scipy::Header::read_file(path).map_err(scipy)?;
                    fits(header.complex)?;
                    self.check_memory(header.num_rows, header.num_cols)?;
                    return scipy::read_file(path).map_err(scipy);
                }
                if path.is_file() {
                    let header = matrix_market::Header::read_file(path).map_err(read)?;
                    fits(header.field == matrix_market::Field::Complex)?;
                    self.check_memory(header.num_rows, header.num_cols)?;
                }
                matrix_market::read_file(path).map_err(read)
            }
        }
    }
}

/// Bytes of the host for a row or column while a matrix is measured: offsets, x, y and what is expected of it, with copies.
const BYTES_PER_PLACE: u64 = 64;

impl Entry {
    /// Refuses what rows and columns alone take more memory for than there is; what is promised of entries is not allocated
    /// before they are read.
    fn check_memory(&self, rows: usize, cols: usize) -> Result<(), SuiteError> {
        let needed = (rows as u64).saturating_add(cols as u64).saturating_mul(BYTES_PER_PLACE);
        match memory::available() {
            Some(available) if needed > available => {
                Err(SuiteError::Memory { name: self.name.clone(), rows, cols, needed, available })
            }
            _ => Ok(()),
        }
    }
}

impl Spec {
    pub(crate) fn entry(&self) -> Result<Entry, SuiteError> {
        let set = |generator: Generator, &(name, value): &(&str, f64)| generator.set(name, value);
        let generator =
            Generator::new(self.class).and_then(|generator| self.parameters.iter().try_fold(generator, set));
        let failed = |source| SuiteError::Generate { name: self.name.to_owned(), source };
        Ok(Entry::generated(self.name, generator.map_err(failed)?.seed(self.seed)))
    }
}

fn metadata(path: &Path) -> Result<std::fs::Metadata, SuiteError> {
    path.metadata().map_err(|source| SuiteError::Path { path: path.to_owned(), source })
}

/// Links to folders are not followed, so that a ring of them ends.
fn gather(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), SuiteError> {
    let failed = |source| SuiteError::Path { path: folder.to_owned(), source };
    for entry in folder.read_dir().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        if entry.file_type().map_err(failed)?.is_dir() {
            gather(&path, found)?;
        } else if is_matrix(&path) && metadata(&path)?.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

fn is_matrix(path: &Path) -> bool {
    path.file_name().is_some_and(|name| {
        let name = name.to_string_lossy().to_ascii_lowercase();
        ENDINGS.iter().any(|ending| name.ends_with(ending))
    })
}

/// The file's name without its ending; the whole name where that is not a matrix's.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let lower = name.to_ascii_lowercase();
    let ending = ENDINGS.iter().find(|ending| lower.ends_with(**ending)).map_or("", |ending| ending);
    name[..name.len() - ending.len()].to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use spmv_runtime::matrix::generate;

    use super::*;

    fn size(entry: &Entry) -> generate::Size {
        match &entry.source {
            Source::Generated(generator) => generator.size::<f64, u32>().unwrap(),
            Source::File(path) => panic!("{}", path.display()),
        }
    }

    #[test]
    fn suites_are_what_they_say() {
        let mut names = HashSet::new();
        for suite in ALL {
            let entries = named(suite.name).unwrap();
            assert!(entries.iter().all(|entry| names.insert(entry.name.clone())), "{}", suite.name);
            assert!(entries.iter().all(|entry| entry.held_out == (suite.name == "held_out")));
            for entry in &entries {
                assert!(size(entry).bytes < 4 << 30, "{}: {:?}", entry.name, size(entry));
            }
        }
        let classes = |suite: &str| -> Vec<String> {
            named(suite).unwrap().into_iter().map(|entry| entry.class).collect()
        };
        let standard = classes("standard");
        assert_eq!(standard.len(), 21);
        assert_eq!(standard, classes("quick"));
        let held_out: HashSet<String> = classes("held_out").into_iter().collect();
        let known: HashSet<String> = standard.into_iter().collect();
        assert!(known.is_subset(&held_out), "{:?}", known.difference(&held_out));
        assert!(held_out.difference(&known).count() >= 4);
    }

    #[test]
    fn held_out_matrices_are_no_others() {
        let seeds = |suite: &str| -> HashSet<u64> {
            ALL.iter()
                .find(|known| known.name == suite)
                .unwrap()
                .matrices
                .iter()
                .map(|spec| spec.seed)
                .collect()
        };
        assert!(
            ["standard", "quick", "more", "small"]
                .iter()
                .all(|suite| seeds("held_out").is_disjoint(&seeds(suite)))
        );
    }

    #[test]
    fn quick_ones_are_small_and_load() {
        for entry in named("quick").unwrap() {
            let matrix = entry.load::<f64>().unwrap();
            assert!((1_000..=300_000).contains(&matrix.nnz()), "{}: {}", entry.name, matrix.nnz());
            assert_eq!(matrix.nnz(), entry.load::<f32>().unwrap().nnz());
        }
    }

    #[test]
    fn one_matrix_of_a_suite_can_be_named() {
        let one = named("standard/giant_row").unwrap();
        assert_eq!((one.len(), &*one[0].name), (1, "giant_row"));
        let wrong = named("standard/giant").unwrap_err().to_string();
        assert!(wrong.contains("\"giant\"") && wrong.contains("giant_row"), "{wrong}");
        let wrong = named("standart").unwrap_err().to_string();
        assert!(wrong.contains("standard, quick, more, small, held_out"), "{wrong}");
    }

    #[test]
    fn files_are_found_sorted_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let text = "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 1.5\n2 3 -2\n";
        for file in ["b.mtx", "a/c.MTX", "a/deep/b.mtx", "a/readme.txt", "a/x.mtx.gz"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = folder.path().to_owned();
        let entries = files(&[root.clone(), root.join("a/c.MTX")]).unwrap();
        let names: Vec<&str> = entries.iter().map(|entry| &*entry.name).collect();
        let twice =
            [root.join("a/deep/b.mtx").display().to_string(), root.join("b.mtx").display().to_string()];
        assert_eq!(names, ["c", &twice[0], "x", &twice[1]]);
        let matrix = entries[0].load::<f32>().unwrap();
        assert_eq!((matrix.num_cols(), matrix.values()), (3, &[1.5, -2.0][..]));

        scipy::write_file(root.join("a/y.npz"), &matrix).unwrap();
        let entries = files(&[root.join("a")]).unwrap();
        assert_eq!(entries.iter().map(|entry| &*entry.name).collect::<Vec<_>>(), ["c", "b", "x", "y"]);
        assert_eq!(entries[3].load::<f32>().unwrap(), matrix);
        let cut = std::fs::read(root.join("a/y.npz")).unwrap();
        std::fs::write(root.join("cut.npz"), &cut[..cut.len() / 2]).unwrap();
        let cut = files(&[root.join("cut.npz")]).unwrap()[0].load::<f32>().unwrap_err();
        let begins = |text: &str, file: &str| text.starts_with(&format!("{}: ", root.join(file).display()));
        assert!(matches!(cut, SuiteError::ReadScipy { .. }) && begins(&cut.to_string(), "cut.npz"), "{cut}");

        std::fs::create_dir(root.join("empty")).unwrap();
        let none = files(&[root.join("empty")]).unwrap_err();
        assert!(matches!(none, SuiteError::NoMatrices(_)) && none.to_string().contains("empty"));
        assert!(matches!(files(&[root.join("gone.mtx")]).unwrap_err(), SuiteError::Path { .. }));
        std::fs::write(root.join("bad.mtx"), "no matrix").unwrap();
        let bad = files(&[root.join("bad.mtx")]).unwrap()[0].load::<f64>().unwrap_err().to_string();
        assert!(begins(&bad, "bad.mtx"), "{bad}");
        let complex = "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 2 3\n";
        std::fs::write(root.join("complex.mtx"), complex).unwrap();
        let complex = &files(&[root.join("complex.mtx")]).unwrap()[0];
        assert!(matches!(complex.load::<f64>(), Err(SuiteError::Complex(_))));
    }
}
