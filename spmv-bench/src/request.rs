//! What is to be measured: matrices, types, operations, contenders, and how long.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use spmv_runtime::Device;
use spmv_runtime::codegen::{self, Algorithm, AlgorithmSpec, UnknownName, ValueType};

use crate::suite::Entry;
use crate::{auto, cpu, cusparse};

/// Everything that a run of measurements needs to know.
#[derive(Clone, Debug)]
pub struct Request {
    /// The matrices.
    pub entries: Vec<Entry>,
    /// Types of values, x and y.
    pub values: Vec<ValueType>,
    /// op(A).
    pub operations: Vec<Operation>,
    /// Who takes part.
    pub contenders: Selection,
    /// Which configurations of our algorithms take part.
    pub variants: Variants,
    /// Configurations of selected algorithms that take part beside those.
    pub configurations: Vec<Configuration>,
    /// Where kernels run.
    pub place: Place,
    /// Libraries of cuSPARSE, files or folders; where none is named, the one that the dynamic loader finds.
    pub cusparse: Vec<PathBuf>,
    /// How long to measure.
    pub effort: Effort,
    /// alpha, which is rounded to each type.
    pub alpha: f64,
    /// beta, the same.
    pub beta: f64,
    /// Seed of x, and of y where beta is not 0.
    pub seed: u64,
    /// Whether our contenders also run on the simulator, which counts how well they use warps and loads.
    pub metrics: bool,
    /// The most nonzeros of a matrix that the simulator runs.
    pub simulated_nnz: usize,
    /// Whether every contender computes one product, with no other kernel before or after: for profilers.
    pub once: bool,
    /// What was asked for, for the record.
    pub command: String,
}

impl Request {
    /// A usual request: f32 and f64, A itself, every contender in its default configuration, on this device.
    pub fn new(entries: Vec<Entry>, place: Place) -> Request {
        Request {
            entries,
            values: vec![ValueType::F32, ValueType::F64],
            operations: vec![Operation::NonTranspose],
            contenders: Selection::default(),
            variants: Variants::Default,
            configurations: Vec::new(),
            place,
            cusparse: Vec::new(),
            effort: Effort::default(),
            alpha: 1.0,
            beta: 0.0,
            seed: 0,
            metrics: false,
            simulated_nnz: 300_000,
            once: false,
            command: String::new(),
        }
    }
}

/// An algorithm with settings that differ from its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Its name.
    pub algorithm: String,
    /// Keys and values, as on the command line.
    pub settings: Vec<(String, String)>,
}

/// Where kernels run.
#[derive(Clone, Debug)]
pub enum Place {
    /// On a GPU, where they are timed; or on the simulator, where they are checked and counted.
    Device(Device),
    /// Nowhere: only CPU contenders take part.
    Cpu,
}

/// op(A) in y <- alpha op(A) x + beta y.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A.
    NonTranspose,
    /// The transpose of A.
    Transpose,
    /// The symmetric matrix that has the lower triangle of A. Contenders for one triangle have that, the others both.
    Symmetric,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; 3] = [Operation::NonTranspose, Operation::Transpose, Operation::Symmetric];

    /// `non_transpose`, `transpose` or `symmetric`.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::NonTranspose => "non_transpose",
            Operation::Transpose => "transpose",
            Operation::Symmetric => "symmetric",
        }
    }

    /// The operation of an algorithm's configurations that compute it.
    pub(crate) fn computed_by(self, spec: &AlgorithmSpec) -> Option<codegen::Operation> {
        self.of_kernels().iter().copied().find(|operation| spec.operations.contains(operation))
    }

    /// The operations of configurations that compute it.
    pub(crate) fn of_kernels(self) -> &'static [codegen::Operation] {
        match self {
            Operation::NonTranspose => &[codegen::Operation::NonTranspose],
            Operation::Transpose => &[codegen::Operation::Transpose],
            Operation::Symmetric => &[codegen::Operation::NonTranspose, codegen::Operation::Symmetric],
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Operation {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Operation, UnknownName> {
        Operation::ALL.into_iter().find(|operation| operation.name() == name).ok_or_else(|| UnknownName {
            what: "operation",
            name: name.to_owned(),
            allowed: Operation::ALL.map(Operation::name).to_vec(),
        })
    }
}

/// Which configurations of an algorithm take part. One that computes the transposed product from a copy takes part in it by
/// its default alone: with other parameters it does what it does in the plain product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variants {
    /// The default one; of `special` the layout for the matrix.
    #[default]
    Default,
    /// And every allowed value of each parameter of its own, one at a time.
    Each,
    /// And every allowed number of threads a block.
    All,
}

impl Variants {
    /// Every choice, as it is written on the command line.
    pub const NAMES: [(&'static str, Variants); 3] =
        [("default", Variants::Default), ("each", Variants::Each), ("all", Variants::All)];
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Samples of each kind; one that is much slower than the best gets three.
    pub samples: usize,
    /// About how long a contender may take on a matrix; it gets three samples all the same.
    pub limit: Duration,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { samples: 15, limit: Duration::from_millis(500) }
    }
}

/// Contenders by patterns, in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    patterns: Vec<String>,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection { patterns: ["ours:*", "auto", "cusparse:*", "cpu:parallel"].map(str::to_owned).to_vec() }
    }
}

/// A pattern fits no contender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no contender is called `{pattern}`; there are {}", known.join(", "))]
pub struct UnknownContender {
    /// The pattern.
    pub pattern: String,
    /// Every contender.
    pub known: Vec<String>,
}

impl Selection {
    /// Every contender that one of the patterns fits.
    ///
    /// # Errors
    /// [`UnknownContender`] where a pattern fits none.
    pub fn new(patterns: Vec<String>) -> Result<Selection, UnknownContender> {
        let known = contender_names();
        match patterns.iter().find(|pattern| !known.iter().any(|name| fits(pattern, name))) {
            Some(pattern) => Err(UnknownContender { pattern: pattern.clone(), known }),
            None => Ok(Selection { patterns }),
        }
    }

    /// A pattern that fits nothing but algorithms which compute none of these operations, and those that they compute.
    pub fn idle(&self, operations: &[Operation]) -> Option<(&str, Vec<Operation>)> {
        let names = contender_names();
        let computed = |pattern: &str, operation: Operation| {
            let idle = Algorithm::ALL.iter().filter(|spec| operation.computed_by(spec).is_none());
            let idle: Vec<_> = idle.map(|spec| ours_name(spec.name)).collect();
            names.iter().any(|name| fits(pattern, name) && !idle.contains(name))
        };
        let is_idle = |pattern: &&String| !operations.iter().any(|operation| computed(pattern, *operation));
        let pattern = self.patterns.iter().find(is_idle)?;
        let others = Operation::ALL.into_iter().filter(|operation| computed(pattern, *operation));
        Some((pattern, others.collect()))
    }

    /// Whether any of `ours`, `cusparse` or `cpu` takes part.
    pub fn has_of(&self, family: &str) -> bool {
        contender_names().iter().any(|name| name.split(':').next() == Some(family) && self.has(name))
    }

    /// Whether a contender takes part.
    pub fn has(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| fits(pattern, name))
    }
}

/// The names of all contenders.
pub fn contender_names() -> Vec<String> {
    let ours = Algorithm::ALL.iter().map(|spec| ours_name(spec.name));
    let mut names: Vec<String> = ours
        .chain([auto::NAME].into_iter().chain(cusparse::names()).chain(cpu::NAMES).map(str::to_owned))
        .collect();
    names.dedup();
    names
}

/// `ours:csr_vector`.
pub(crate) fn ours_name(algorithm: &str) -> String {
    format!("ours:{algorithm}")
}

/// Whether a pattern fits a whole name.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, behind)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| fits(behind, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, name, expected) in [
            ("ours:*", "ours:csr_vector", true),
            ("*vector", "ours:csr_vector", true),
            ("ours:*_vector", "ours:csr_vector", true),
            ("*", "", true),
            ("ours:csr", "ours:csr_vector", false),
            ("csr*", "ours:csr_vector", false),
            ("*:*_*r", "ours:csr_vector", true),
            ("*x", "ours:csr_vector", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn unknown_contenders_are_refused() {
        let selection = Selection::new(vec!["ours:csr_*".into(), "cpu:serial".into()]).unwrap();
        assert!(selection.has("ours:csr_vector") && selection.has("cpu:serial"));
        assert!(!selection.has("cpu:parallel") && !selection.has("cusparse:sell"));
        let error = Selection::new(vec!["ours:*".into(), "cublas:*".into()]).unwrap_err();
        assert_eq!(error.pattern, "cublas:*");
        assert!(error.to_string().contains("cusparse:csr_alg1, cusparse:csr_alg2"), "{error}");
        assert!(Selection::default().has("cusparse:op") && !Selection::default().has("cpu:serial"));
    }

    #[test]
    fn operations_have_names() {
        assert_eq!("transpose".parse(), Ok(Operation::Transpose));
        assert!(
            "sideways".parse::<Operation>().unwrap_err().to_string().contains("non_transpose, transpose")
        );
        assert_eq!(Operation::NonTranspose.of_kernels(), [codegen::Operation::NonTranspose]);
        assert_eq!(Operation::Transpose.of_kernels(), [codegen::Operation::Transpose]);
    }
}
