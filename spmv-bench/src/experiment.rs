//! The experiments of the papers that the algorithms come from, as data: each can be repeated with one command, and
//! its table stands beside the figures that the paper prints.
//!
//! The matrices of a paper are generated in their shape (rows, nonzeros, longest row, where the columns lie), or taken
//! from a folder that has them under the names of the SuiteSparse collection.
//!
//! ```
//! use spmv_bench::experiment;
//!
//! let sweep = experiment::find("004-fig7")?;
//! assert_eq!(sweep.paper.year, 2017);
//! let matrices = sweep.entries(None)?;
//! assert_eq!(matrices[0].class, "gaussian");
//! # Ok::<(), spmv_bench::experiment::ExperimentError>(())
//! ```

use std::path::{Path, PathBuf};

use spmv_runtime::{AlgorithmSpec, ValueType};

use crate::record::Row;
use crate::suite::{self, Entry, Spec, SuiteError};

mod lecture;
mod mazzucchi;
mod messa;
mod shapes;
mod steinberger;
mod survey;
mod table;

pub use self::table::{Table, list};

/// A paper.
#[derive(Debug)]
pub struct Paper {
    /// What the names of its experiments begin with.
    pub number: &'static str,
    /// Who wrote it.
    pub authors: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Where it appeared.
    pub venue: &'static str,
    /// When.
    pub year: u16,
    /// The GPU it was measured on.
    pub gpu: &'static str,
}

/// An experiment of a paper.
#[derive(Debug)]
pub struct Experiment {
    /// Its name on the command line: the paper's number and the figure or table.
    pub name: &'static str,
    /// The paper.
    pub paper: &'static Paper,
    /// What it is, in one line.
    pub title: &'static str,
    /// What the paper concludes from it.
    pub shows: &'static [&'static str],
    /// What is multiplied.
    pub matrices: Matrices,
    /// In which types.
    pub values: &'static [ValueType],
    /// `non_transpose`, `transpose`.
    pub operations: &'static [&'static str],
    /// Who takes part, in the order of the table's columns.
    pub contenders: &'static [Contender],
    /// What the table's rows are ordered by.
    pub axis: Axis,
    /// What is compared, a table each.
    pub metrics: &'static [Metric],
    /// Figures that the paper's text has.
    pub published: &'static [Published],
    /// Speed-ups over peers, where the paper summarises its experiment so.
    pub speed_ups: Option<SpeedUps>,
}

/// What an experiment multiplies.
#[derive(Debug)]
pub enum Matrices {
    /// The paper's matrices one by one.
    Shapes(&'static [Shape]),
    /// Whole [suites](suite), where the paper takes a whole collection.
    Suites(&'static [&'static str]),
}

/// A matrix of a paper: what is generated in its stead, and what it is called in the SuiteSparse collection.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The file's name without its ending; `None` where the paper made the matrix itself.
    pub file: Option<&'static str>,
    /// Where it stands on an [`Axis::Parameter`].
    pub x: Option<f64>,
    /// The label of the contender that the paper expects to be best.
    pub best: Option<&'static str>,
    spec: Spec,
}

/// What the rows of a table are ordered by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Axis {
    /// By nothing: as the paper has them.
    Matrix,
    /// By the nonzeros of a row on average.
    NonzerosPerRow,
    /// By a parameter of that name.
    Parameter(&'static str),
}

/// Who takes part in an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contender {
    /// What the paper calls it.
    pub label: &'static str,
    /// Its name in records; `cusparse` stands for the best of that library.
    pub name: &'static str,
    /// Settings that make it what the paper has; others are free, and the best of them counts.
    pub settings: &'static [(&'static str, &'static str)],
}

/// What a table compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Time of a product.
    Milliseconds,
    /// 2 nnz / t.
    Gflops,
    /// Bytes that must move / t.
    Bandwidth,
    /// Bytes that must move / t, of what copying reaches.
    OfTheRoof,
    /// Resident threads of those there can be.
    Occupancy,
    /// Active threads of a warp.
    WarpExecutionEfficiency,
    /// Bytes asked for of those that global loads moved.
    GlobalLoadEfficiency,
    /// Bytes beside the matrix, x and y for each nonzero.
    ExtraBytesPerNonzero,
}

/// A figure of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The matrix's file name, or `None` for the mean of all.
    pub matrix: Option<&'static str>,
    /// The contender's label.
    pub contender: &'static str,
    /// The value type, or `None` where the paper does not say.
    pub value: Option<ValueType>,
    /// What it is a figure of.
    pub metric: Metric,
    /// In the unit of the metric.
    pub figure: f64,
    /// Where the paper has it.
    pub place: &'static str,
}

/// Speed-ups of one contender over its peers, by size of the matrices.
#[derive(Debug)]
pub struct SpeedUps {
    /// The label of the contender whose speed-ups they are.
    pub of: &'static str,
    /// Where the paper has its own.
    pub place: &'static str,
    /// What the paper found.
    pub published: &'static [PublishedSpeedUp],
}

/// A row of a paper's table of speed-ups.
#[derive(Clone, Copy, Debug)]
pub struct PublishedSpeedUp {
    /// Matrices of more than 300,000 nonzeros, or of 10,000 to 300,000.
    pub large: bool,
    /// The type of the values.
    pub value: ValueType,
    /// The peer's label.
    pub peer: &'static str,
    /// The least speed-up; `None` where the paper's table cannot be read.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
    /// The harmonic mean.
    pub mean: Option<f64>,
    /// Percent of the matrices on which the peer was faster.
    pub peer_better: Option<f64>,
}

/// What an experiment asks of a measurement, beside its matrices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestParts {
    /// Types of the values.
    pub values: &'static [ValueType],
    /// `non_transpose`, `transpose`.
    pub operations: &'static [&'static str],
    /// Names of contenders that this version has; `cusparse:*` stands for all of that library.
    pub contenders: Vec<String>,
    /// Whether every value of each parameter must take part, not only the defaults.
    pub each_parameter: bool,
    /// Whether figures are wanted that the simulator counts.
    pub counters: bool,
}

/// Why an experiment cannot be named or its matrices found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// There is no such experiment.
    #[error("there is no experiment {name:?}; there are {}", allowed.join(", "))]
    Unknown {
        /// The name that was given.
        name: String,
        /// The names there are.
        allowed: Vec<&'static str>,
    },
    /// The folder has none of the paper's matrices.
    #[error("{}: none of {experiment}'s matrices is there; they are called {}", folder.display(), wanted.join(", "))]
    NotInFolder {
        /// The folder.
        folder: PathBuf,
        /// The experiment.
        experiment: &'static str,
        /// The names that were looked for, without what they end in.
        wanted: Vec<&'static str>,
    },
    /// A matrix cannot be found or described.
    #[error(transparent)]
    Suite(#[from] SuiteError),
}

/// Every experiment, by paper.
pub static ALL: &[&[Experiment]] = &[mazzucchi::ALL, messa::ALL, lecture::ALL, survey::ALL, steinberger::ALL];

/// Every experiment.
pub fn all() -> impl Iterator<Item = &'static Experiment> {
    ALL.iter().copied().flatten()
}

/// The experiment of that name.
///
/// # Errors
/// [`ExperimentError::Unknown`], with the names there are.
pub fn find(name: &str) -> Result<&'static Experiment, ExperimentError> {
    all().find(|experiment| experiment.name == name).ok_or_else(|| ExperimentError::Unknown {
        name: name.to_owned(),
        allowed: all().map(|experiment| experiment.name).collect(),
    })
}

impl Experiment {
    /// What is multiplied: generated matrices, or those that a folder has. Matrices that the paper made itself are
    /// generated in either case; where the paper takes a whole collection, so does the folder.
    ///
    /// # Errors
    /// [`ExperimentError::NotInFolder`] where the folder has none of the matrices, [`ExperimentError::Suite`] where it
    /// cannot be looked at.
    pub fn entries(&self, folder: Option<&Path>) -> Result<Vec<Entry>, ExperimentError> {
        let found = folder.map(|folder| suite::files(&[folder.to_owned()])).transpose()?;
        let shapes = match self.matrices {
            Matrices::Shapes(shapes) => shapes,
            Matrices::Suites(_) if found.is_some() => return Ok(found.unwrap_or_default()),
            Matrices::Suites(suites) => {
                let suites = suites.iter().map(|name| suite::named(name));
                return Ok(suites.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect());
            }
        };
        let wanted: Vec<&str> = shapes.iter().filter_map(|shape| shape.file).collect();
        let mut entries = Vec::new();
        for shape in shapes {
            match (&found, shape.file) {
                (Some(found), Some(file)) => {
                    entries.extend(found.iter().find(|entry| entry.name == file).cloned());
                }
                _ => entries.push(shape.spec.entry()?),
            }
        }
        match folder {
            Some(folder)
                if !wanted.is_empty() && !entries.iter().any(|entry| wanted.contains(&&*entry.name)) =>
            {
                Err(ExperimentError::NotInFolder { folder: folder.to_owned(), experiment: self.name, wanted })
            }
            _ => Ok(entries),
        }
    }

    /// What must be measured so that [`Experiment::tables`] finds its rows.
    pub fn request_parts(&self) -> RequestParts {
        let available = self.contenders.iter().filter(|contender| contender.is_available());
        let mut contenders: Vec<String> = available
            .map(|contender| {
                if contender.name.contains(':') {
                    contender.name.into()
                } else {
                    format!("{}:*", contender.name)
                }
            })
            .collect();
        contenders.sort();
        contenders.dedup();
        RequestParts {
            values: self.values,
            operations: self.operations,
            contenders,
            each_parameter: self.contenders.iter().any(|contender| !contender.settings.is_empty()),
            counters: self.metrics.iter().any(|metric| metric.is_counted()),
        }
    }

    /// Contenders that this version has no kernel for.
    pub fn unavailable(&self) -> impl Iterator<Item = &'static Contender> {
        self.contenders.iter().filter(|contender| !contender.is_available())
    }
}

impl Shape {
    /// The name of the matrix that is generated in its stead.
    pub fn generated_name(&self) -> &'static str {
        self.spec.name
    }
}

impl Contender {
    /// Whether this version can run it; cuSPARSE's library may still be missing.
    pub fn is_available(&self) -> bool {
        self.name.strip_prefix("ours:").is_none_or(|algorithm| AlgorithmSpec::find(algorithm).is_some())
    }

    /// Whether a row of a record is its.
    pub fn matches(&self, row: &Row) -> bool {
        let has = |(key, value): &(&str, &str)| {
            row.params.split(';').filter_map(|one| one.split_once('=')).any(|one| one == (*key, *value))
        };
        (row.contender == self.name || row.side() == self.name) && self.settings.iter().all(has)
    }
}

impl Metric {
    /// What it is called, with its unit.
    pub fn title(self) -> &'static str {
        match self {
            Metric::Milliseconds => "time, ms",
            Metric::Gflops => "throughput, GFLOP/s",
            Metric::Bandwidth => "effective bandwidth, GB/s",
            Metric::OfTheRoof => "share of the copy roof",
            Metric::Occupancy => "occupancy",
            Metric::WarpExecutionEfficiency => "warp execution efficiency",
            Metric::GlobalLoadEfficiency => "global load efficiency",
            Metric::ExtraBytesPerNonzero => "additional memory, bytes a nonzero",
        }
    }

    /// Whether the simulator counts it.
    pub fn is_counted(self) -> bool {
        matches!(self, Metric::WarpExecutionEfficiency | Metric::GlobalLoadEfficiency)
    }

    /// The figure of a row, where it was measured.
    pub fn of(self, row: &Row) -> Option<f64> {
        match self {
            Metric::Milliseconds => row.time_ms(),
            Metric::Gflops => row.gflops(),
            Metric::Bandwidth => row.gb_per_s(),
            Metric::OfTheRoof => row.roof_fraction,
            Metric::Occupancy => row.occupancy,
            Metric::WarpExecutionEfficiency => row.warp_execution_efficiency,
            Metric::GlobalLoadEfficiency => row.global_load_efficiency,
            Metric::ExtraBytesPerNonzero => (row.nnz > 0).then_some(row.extra_bytes? as f64 / row.nnz as f64),
        }
    }
}

/// A contender as the papers' modules write it.
const fn contender(
    label: &'static str,
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
) -> Contender {
    Contender { label, name, settings }
}

const CUSPARSE: Contender = contender("cuSPARSE", "cusparse", &[]);
const F32_AND_F64: &[ValueType] = &[ValueType::F32, ValueType::F64];
const NON_TRANSPOSE: &[&str] = &["non_transpose"];
const TRANSPOSE: &[&str] = &["transpose"];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use spmv_runtime::KernelConfig;

    use super::*;

    #[test]
    fn names_and_labels_are_unique_and_referred_to() {
        let mut names = HashSet::new();
        for experiment in all() {
            let name = experiment.name;
            assert!(names.insert(name), "{name} twice");
            assert!(name.starts_with(experiment.paper.number), "{name}");
            let labels: HashSet<&str> = experiment.contenders.iter().map(|one| one.label).collect();
            assert_eq!(labels.len(), experiment.contenders.len(), "{name}");
            let files: HashSet<&str> = match experiment.matrices {
                Matrices::Shapes(shapes) => shapes.iter().filter_map(|shape| shape.file).collect(),
                Matrices::Suites(_) => HashSet::new(),
            };
            for figure in experiment.published {
                assert!(labels.contains(figure.contender), "{name}: {}", figure.contender);
                assert!(figure.matrix.is_none_or(|matrix| files.contains(matrix)), "{name}: {figure:?}");
                assert!(experiment.metrics.contains(&figure.metric), "{name}: {figure:?}");
            }
            if let Some(speed_ups) = &experiment.speed_ups {
                assert!(labels.contains(speed_ups.of), "{name}");
                assert!(speed_ups.published.iter().all(|row| labels.contains(row.peer)), "{name}");
            }
            if let Matrices::Shapes(shapes) = experiment.matrices {
                let known = |shape: &Shape| shape.best.is_none_or(|best| labels.contains(best));
                assert!(shapes.iter().all(known), "{name}");
                let placed = |shape: &Shape| shape.x.is_some();
                assert!(
                    !matches!(experiment.axis, Axis::Parameter(_)) || shapes.iter().all(placed),
                    "{name}"
                );
            }
        }
        assert!(names.len() >= 12, "{names:?}");
        for number in ["000", "001", "002", "003", "004"] {
            assert!(all().any(|experiment| experiment.paper.number == number), "{number}");
        }
    }

    #[test]
    fn matrices_can_be_made_and_have_names_of_their_own() {
        let mut seen = std::collections::HashMap::new();
        for experiment in all() {
            let entries = experiment.entries(None).unwrap();
            assert!(!entries.is_empty());
            for entry in entries {
                let suite::Source::Generated(generator) = &entry.source else { panic!("{}", entry.name) };
                let size = generator.size::<f64, u32>().unwrap();
                assert!(size.bytes < 4 << 30, "{}: {size:?}", entry.name);
                // Experiments share matrices, but no two are called the same.
                let found = format!("{generator:?}");
                assert_eq!(seen.entry(entry.name.clone()).or_insert(found.clone()), &found, "{}", entry.name);
            }
        }
    }

    #[test]
    fn settings_of_kernels_there_are_exist() {
        let mut checked = 0;
        for contender in all().flat_map(|experiment| experiment.contenders) {
            let Some(algorithm) = contender.name.strip_prefix("ours:") else { continue };
            assert_eq!(contender.is_available(), AlgorithmSpec::find(algorithm).is_some());
            if contender.is_available() {
                let mut config = KernelConfig::named(algorithm).unwrap();
                for (key, value) in contender.settings {
                    config.set(key, value).unwrap();
                }
                config.build().unwrap_or_else(|error| panic!("{}: {error}", contender.label));
                checked += 1;
            }
        }
        assert!(checked > 5);
    }

    #[test]
    fn a_folder_gives_the_matrices_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = find("001-fig4").unwrap();
        let text = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n";
        std::fs::write(folder.path().join("other.mtx"), text).unwrap();
        let none = experiment.entries(Some(folder.path())).unwrap_err().to_string();
        assert!(none.contains("crankseg_1") && none.contains("001-fig4"), "{none}");
        std::fs::write(folder.path().join("inline_1.mtx"), text).unwrap();
        let found = experiment.entries(Some(folder.path())).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].name, &*found[0].class), ("inline_1", "file"));
        // What the paper generated is generated.
        assert!(find("004-fig7").unwrap().entries(Some(folder.path())).unwrap().len() > 5);
        // A whole collection is the whole folder.
        assert_eq!(find("004-table2").unwrap().entries(Some(folder.path())).unwrap().len(), 2);
    }

    #[test]
    fn requests_name_what_there_is() {
        let parts = find("001-fig4").unwrap().request_parts();
        for name in ["ours:csr_scalar", "ours:csr_vector", "cusparse:*"] {
            assert!(parts.contenders.iter().any(|contender| contender == name), "{parts:?}");
        }
        assert!(parts.each_parameter && !parts.counters);
        assert!(find("003-survey").unwrap().request_parts().counters);
        for experiment in all() {
            for name in experiment.request_parts().contenders {
                let known = name.strip_prefix("ours:").is_none_or(|name| AlgorithmSpec::find(name).is_some());
                assert!(known, "{}: {name}", experiment.name);
            }
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = find("004-fig77").unwrap_err().to_string();
        assert!(error.contains("\"004-fig77\"") && error.contains("004-fig7,"), "{error}");
    }
}
