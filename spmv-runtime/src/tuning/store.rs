//! What tuning found, kept from one run to the next.

use std::fmt;

use spmv_codegen::{
    AlgorithmSpec, ConfigError, IndexType, KernelConfig, Operation, StorageFormat, Types, ValueType,
};

use crate::cache::{CacheProblem, DiskCache};
use crate::device::Device;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::matrix_source::{DeviceMatrix, MatrixSource};
use crate::planner::{Constraints, usual_types};

use super::Unit;

/// What a kernel was found for: another structure, type, operation, constraint, device or version of this crate is another
/// question. Values do not count: a kernel that was found for values that can be encoded stores others as they are.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// The structure of the arrays.
    pub fingerprint: Fingerprint,
    /// How the matrix is stored.
    pub storage: StorageFormat,
    /// op(A).
    pub operation: Operation,
    /// Types of matrix and vectors.
    pub types: Types,
    /// What the kernel must respect.
    pub constraints: Constraints,
    /// The device's architecture.
    pub arch: String,
    /// The device's name.
    pub device: String,
    /// The version of this crate.
    pub version: String,
}

/// A question and the kernel that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What it was found for.
    pub question: Question,
    /// The kernel.
    pub config: KernelConfig,
    /// What a product took.
    pub product: f64,
    /// What making the plan took.
    pub prepare: f64,
    /// What both are in.
    pub unit: Unit,
}

/// Why a text has no choices.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// The line of names is another one.
    #[error("line 1: expected the names {NAMES:?}, with tabs between them")]
    Names,
    /// A line does not have a value for each name.
    #[error("line {line}: expected {} values with tabs between them, and there are {found}", NAMES.len())]
    Values {
        /// The line, from 1.
        line: usize,
        /// Values of the line.
        found: usize,
    },
    /// A value is not one of its name.
    #[error("line {line}: {value:?} is no {name}")]
    Value {
        /// The line, from 1.
        line: usize,
        /// The name.
        name: &'static str,
        /// The value.
        value: String,
    },
    /// There is no such configuration.
    #[error("line {line}: {source}")]
    Config {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: ConfigError,
    },
}

/// The values of a choice, those of the question first.
const NAMES: [&str; 22] = [
    "fingerprint",
    "storage",
    "operation",
    "value",
    "x",
    "y",
    "accumulator",
    "offset",
    "deterministic",
    "max_extra_bytes",
    "fill_touches_x",
    "values_change",
    "products",
    "arch",
    "device",
    "version",
    "index",
    "algorithm",
    "settings",
    "product",
    "prepare",
    "unit",
];

/// Of them, those of the question.
const NUM_ASKED: usize = 17;

impl Question {
    /// What to ask for a product with this matrix on its device.
    ///
    /// # Errors
    /// Those of [`DeviceMatrix::fingerprint`].
    pub fn new(
        device: &Device,
        matrix: &std::sync::Arc<DeviceMatrix>,
        operation: Operation,
        constraints: &Constraints,
    ) -> Result<Question, Error> {
        let types = usual_types(matrix)?;
        Ok(Self::of(device, matrix.fingerprint_by(device)?, matrix.storage(), operation, types, constraints))
    }

    /// What to ask for a product of these types with a matrix whose arrays have this fingerprint.
    pub fn of(
        device: &Device,
        fingerprint: Fingerprint,
        storage: StorageFormat,
        operation: Operation,
        types: Types,
        constraints: &Constraints,
    ) -> Question {
        let properties = device.properties();
        Question {
            fingerprint,
            storage,
            operation,
            types,
            constraints: *constraints,
            arch: properties.arch.clone(),
            device: properties.name.replace(['\t', '\n', '\r'], " "),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// What was found before and kept in this cache. What cannot be read, or names a kernel that does not exist, is none.
    pub fn choice(&self, disk: &DiskCache) -> Option<Choice> {
        let asked = self.text();
        let answer = String::from_utf8(disk.answer(asked.as_bytes())?).ok()?;
        Choice::parse(1, &format!("{asked}\t{answer}")).ok()
    }

    /// The values of [`NAMES`] that are asked with.
    fn text(&self) -> String {
        let Question { fingerprint, storage, operation, types, constraints, arch, device, version } = self;
        let Types { value, x, y, accumulator, offset, index, .. } = types;
        let Constraints { deterministic, max_extra_bytes, fill_touches_x, values_change, products } =
            constraints;
        let most = max_extra_bytes.map_or("any".to_owned(), |bytes| bytes.to_string());
        format!(
            "{fingerprint}\t{storage}\t{operation}\t{value}\t{x}\t{y}\t{accumulator}\t{offset}\t{deterministic}\t{most}\t\
             {fill_touches_x}\t{values_change}\t{products}\t{arch}\t{device}\t{version}\t{index}"
        )
    }
}

impl Choice {
    /// Keeps the choice in this cache, and says whether it is on disk now. One whose kernel has a semiring, functions of the user's or
    /// a known α or β is not kept: questions are those for sums of products.
    pub fn keep(&self, disk: &DiskCache) -> bool {
        self.can_be_kept() && disk.note(self.question.text().as_bytes(), self.answer().as_bytes())
    }

    /// All that this cache keeps.
    ///
    /// # Errors
    /// [`CacheProblem`] where the folder cannot be read.
    pub fn kept(disk: &DiskCache) -> Result<Vec<Choice>, CacheProblem> {
        let choice = |(question, answer): (Vec<u8>, Vec<u8>)| {
            let text = [String::from_utf8(question).ok()?, String::from_utf8(answer).ok()?].join("\t");
            Choice::parse(1, &text).ok()
        };
        Ok(disk.notes()?.into_iter().filter_map(choice).collect())
    }

    /// Choices as text: a line of names, then a line each, values with tabs between them. Those that no cache
    /// [keeps](Self::keep) are left out.
    pub fn export(choices: &[Choice]) -> String {
        let kept = choices.iter().filter(|choice| choice.can_be_kept());
        let lines = kept.map(|choice| format!("{}\t{}", choice.question.text(), choice.answer()));
        std::iter::once(NAMES.join("\t")).chain(lines).map(|line| line + "\n").collect()
    }

    /// The choices of a text that [`export`](Self::export) wrote.
    ///
    /// # Errors
    /// [`ChoiceError`] with the line that is none.
    pub fn import(text: &str) -> Result<Vec<Choice>, ChoiceError> {
        let mut lines = text.lines().enumerate();
        match lines.next() {
            Some((_, names)) if names.split('\t').eq(NAMES) => {}
            _ => return Err(ChoiceError::Names),
        }
        lines.map(|(index, line)| Choice::parse(index + 1, line)).collect()
    }

    /// Whether its kernel is the same when it is read again: it is not where it has a semiring, functions of the user's or a known α
    /// or β, which no question asks for.
    pub(super) fn can_be_kept(&self) -> bool {
        let untimed = Choice { product: 0.0, prepare: 0.0, ..self.clone() };
        let text = format!("{}\t{}", untimed.question.text(), untimed.answer());
        Choice::parse(1, &text).is_ok_and(|read| read == untimed)
    }

    fn answer(&self) -> String {
        let spec = self.config.algorithm().spec();
        let settings = self.config.settings().into_iter().filter(|(key, _)| is_told(spec, key));
        let settings: Vec<String> = settings.map(|(key, value)| format!("{key}={value}")).collect();
        let unit = self.unit.name();
        let (algorithm, settings) = (spec.name, settings.join(" "));
        format!("{algorithm}\t{settings}\t{}\t{}\t{unit}", self.product, self.prepare)
    }

    fn parse(line: usize, text: &str) -> Result<Choice, ChoiceError> {
        let values: Vec<&str> = text.split('\t').collect();
        if values.len() != NAMES.len() {
            return Err(ChoiceError::Values { line, found: values.len() });
        }
        let wrong =
            |index: usize| ChoiceError::Value { line, name: NAMES[index], value: values[index].to_owned() };
        let value_type = |index: usize| values[index].parse::<ValueType>().map_err(|_| wrong(index));
        let flag = |index: usize| values[index].parse::<bool>().map_err(|_| wrong(index));
        let whole = |index: usize| values[index].parse::<u64>().map_err(|_| wrong(index));
        let time = |index: usize| match values[index].parse::<f64>() {
            Ok(time) if time.is_finite() && time >= 0.0 => Ok(time),
            _ => Err(wrong(index)),
        };
        let storage: StorageFormat = values[1].parse().map_err(|_| wrong(1))?;
        let operation: Operation = values[2].parse().map_err(|_| wrong(2))?;
        let offset: IndexType = values[7].parse().map_err(|_| wrong(7))?;
        let index: IndexType = values[16].parse().map_err(|_| wrong(16))?;
        let failed = |source| ChoiceError::Config { line, source };
        let typed = |builder: spmv_codegen::KernelConfigBuilder| {
            let builder =
                builder.offset(offset).index(index).value(value_type(3)?).x(value_type(4)?).y(value_type(5)?);
            Ok(builder.accumulator(value_type(6)?))
        };
        let types =
            typed(KernelConfig::named("csr_vector").map_err(failed)?)?.build().map_err(failed)?.types();
        let mut builder = typed(KernelConfig::named(values[NUM_ASKED]).map_err(failed)?)?;
        let spec = AlgorithmSpec::find(values[NUM_ASKED]).ok_or_else(|| wrong(NUM_ASKED))?;
        for setting in values[NUM_ASKED + 1].split_whitespace() {
            let (key, value) = setting.split_once('=').ok_or_else(|| wrong(NUM_ASKED + 1))?;
            builder.set(key, value).map_err(failed)?;
            if !is_told(spec, key) {
                return Err(wrong(NUM_ASKED + 1));
            }
        }
        let unit = Unit::ALL.into_iter().find(|unit| unit.name() == values[NUM_ASKED + 4]);
        let max_extra_bytes = if values[9] == "any" { None } else { Some(whole(9)?) };
        Ok(Choice {
            question: Question {
                fingerprint: Fingerprint::from_hex(values[0]).ok_or_else(|| wrong(0))?,
                storage,
                operation,
                types,
                constraints: Constraints {
                    deterministic: flag(8)?,
                    max_extra_bytes,
                    fill_touches_x: flag(10)?,
                    values_change: flag(11)?,
                    products: whole(12)?,
                },
                arch: values[13].to_owned(),
                device: values[14].to_owned(),
                version: values[15].to_owned(),
            },
            config: builder.build().map_err(failed)?,
            product: time(NUM_ASKED + 2)?,
            prepare: time(NUM_ASKED + 3)?,
            unit: unit.ok_or_else(|| wrong(NUM_ASKED + 4))?,
        })
    }
}

/// Whether a choice has this setting of its kernel: the question has the types, and products are sums, scaled by any α and β.
fn is_told(spec: &AlgorithmSpec, key: &str) -> bool {
    ["threads_per_block", "operation", "loads"].contains(&key)
        || spec.parameters.iter().any(|parameter| parameter.name == key)
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fingerprint = self.question.fingerprint.to_string();
        write!(f, "{} on {}: {}", &fingerprint[..12], self.question.device, self.config)
    }
}
