//! Fits the planner's prices to a record, and tells how good the choices are that follow from them.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use rayon::prelude::*;
use spmv_runtime::codegen::{Algorithm, ConfigError, Features, KernelConfig, Special, ValueType};
use spmv_runtime::matrix::features;
use spmv_runtime::matrix::generate::Values;
use spmv_runtime::planner::{
    Footprint, Model, NUM_TERMS, Priced, Purpose, laid_out, multiplies_fill, own_settings, terms,
};

use crate::geomean;
use crate::join::{JoinError, join, newest};
use crate::ours::all_params;
use crate::record::{Record, Row};
use crate::suite::{self, SuiteError};

/// Prices and how good they are.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The configurations that are worth choosing or measuring, with their prices.
    pub model: Model,
    /// Every choice that the model makes among the record's problems.
    pub choices: Vec<Choice>,
}

/// What is chosen for a matrix and a type of the record.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Choice {
    /// The matrix.
    pub matrix: String,
    /// Type of the values.
    pub value: String,
    /// The choice of prices fitted to all matrices.
    pub fitted: Made,
    /// The choice of prices fitted without this matrix.
    pub left_out: Made,
    /// The fastest of all that was measured.
    pub best: Made,
}

/// A configuration and its measured time.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Made {
    /// The configuration, as records name it.
    pub label: String,
    /// Milliseconds a product: cold, or the geometric mean of cold and warm where the L2 cache has room for the product.
    pub ms: f64,
}

impl Choice {
    /// The times of the choices over the best: with the matrix in the fit, and left out of it.
    pub fn ratios(&self) -> [f64; 2] {
        [&self.fitted, &self.left_out].map(|made| made.ms / self.best.ms)
    }
}

/// What a model chooses for a matrix and a type of a record.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Judged {
    /// The matrix.
    pub matrix: String,
    /// Type of the values.
    pub value: String,
    /// The choice.
    pub chosen: Made,
    /// The fastest of all that was measured.
    pub best: Made,
}

impl Judged {
    /// The time of the choice over the best.
    pub fn ratio(&self) -> f64 {
        self.chosen.ms / self.best.ms
    }
}

/// Why nothing can be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// A matrix of the record is in no suite, nor named by how it is made, so that its structure cannot be looked at.
    #[error(
        "{0}: the record's matrix is in no suite and no class with its parameters, so its structure cannot be looked at again"
    )]
    Matrix(String),
    /// The suite's matrix of this name is another one now.
    #[error("{matrix}: the record's has {recorded} nonzeros, the suite's {now}: it was changed since")]
    Changed {
        /// The matrix.
        matrix: String,
        /// Nonzeros in the record.
        recorded: u64,
        /// Nonzeros now.
        now: u64,
    },
    /// A matrix cannot be made.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// A configuration of the record does not exist any more.
    #[error("{label}: {source}")]
    Config {
        /// As the record names it.
        label: String,
        /// What is wrong.
        source: ConfigError,
    },
    /// The records are not of one GPU.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The record has no products of ours to fit to.
    #[error("the record has no correct product of a generated kernel with operation = non_transpose")]
    Nothing,
}

/// A measurement: where, what it consists of, and what was measured.
#[derive(Clone)]
struct Point {
    /// None where little else was measured, so that nothing can be chosen.
    problem: Option<usize>,
    /// The same for a matrix whatever values it has.
    matrix: usize,
    terms: [f64; NUM_TERMS],
    ms: f64,
    /// Milliseconds of the fastest of the problem.
    best_ms: f64,
    /// None where the matrix was transposed first.
    prepare_ms: Option<f64>,
}

impl Point {
    /// What its error counts, relative to the time: the less the farther the kernel is from the fastest of the problem.
    fn weight(&self) -> f64 {
        self.best_ms / (self.ms * self.ms)
    }
}

/// One configuration's measurements.
#[derive(Clone)]
struct Measured {
    config: KernelConfig,
    label: String,
    points: Vec<Point>,
}

/// Predictions of a configuration for a problem, by prices fitted to all matrices and without the problem's, and the
/// measured time.
#[derive(Clone, Copy)]
struct Tried {
    predicted: [f64; 2],
    ms: f64,
}

/// What every configuration is to the problem of the same index.
type Table = Vec<Vec<Option<Tried>>>;

/// What a record says of products.
struct Measurements<'a> {
    /// Matrix, type of values and operation, in order.
    problems: Vec<(&'a str, &'a str, &'a str)>,
    footprints: Vec<Footprint>,
    /// The fastest of each problem.
    best: Vec<Made>,
    measured: Vec<Measured>,
}

/// The measurements of the rows that count.
fn measurements(record: &Record, counts: impl Fn(&Row) -> bool) -> Result<Measurements<'_>, FitError> {
    let rows: Vec<&Row> = record.rows.iter().filter(|row| counts(row)).collect();
    if rows.is_empty() {
        return Err(FitError::Nothing);
    }
    let config = |row: &Row, value| {
        config(row, value).map_err(|source| FitError::Config { label: row.label(), source })
    };
    // Said before the matrices are made, which takes minutes.
    rows.iter().try_for_each(|row| config(row, ValueType::F32).map(drop))?;
    let names: BTreeSet<&str> = rows.iter().map(|row| &*row.matrix).collect();
    let mut structures = BTreeMap::new();
    for name in &names {
        for (operation, features) in structure(name)? {
            structures.insert((*name, operation), features);
        }
    }
    // A matrix with other values is left out with it: much of what was measured counts for both.
    let matrices: BTreeSet<&str> = names.iter().map(|name| named_with_values(name).0).collect();
    let matrices: Vec<&str> = matrices.into_iter().collect();
    let keys: BTreeSet<_> = rows.iter().map(|row| (&*row.matrix, &*row.value, &*row.operation)).collect();
    let problems: Vec<_> = keys.into_iter().collect();
    let mut best: Vec<Made> = vec![Made { label: String::new(), ms: f64::INFINITY }; problems.len()];
    let mut footprints = vec![Footprint::InL2; problems.len()];
    let mut measured: BTreeMap<String, Measured> = BTreeMap::new();
    for row in rows {
        let key = (&*row.matrix, &*row.value, &*row.operation);
        let problem = problems.binary_search(&key).expect("the keys are those of the rows");
        let Some(mut usual) = config(row, ValueType::F32)? else { continue };
        let Ok(value) = row.value.parse() else { continue };
        let Some(typed) = config(row, value)? else { continue };
        let mut label = row.label();
        let Some(features) = structures.get(&(&*row.matrix, &*row.operation)) else { continue };
        if features.nnz != row.nnz {
            return Err(FitError::Changed {
                matrix: row.matrix.clone(),
                recorded: row.nnz,
                now: features.nnz,
            });
        }
        // Nobody gets it who does not ask for it.
        if multiplies_fill(&typed, features) {
            continue;
        }
        footprints[problem] = Footprint::of(features, typed.types(), record.head.l2_bytes);
        // One product after the other finds there what the last one left, another program's does not.
        let cold_ms = row.time_ms().expect("rows without a time do not count");
        let ms = match footprints[problem] {
            Footprint::Small | Footprint::InL2 => (cold_ms * row.warm_ms.unwrap_or(cold_ms)).sqrt(),
            Footprint::BeyondL2 => cold_ms,
        };
        if ms < best[problem].ms {
            best[problem] = Made { label: label.clone(), ms };
        }
        // Where a layout follows from the matrix, of `special` for a shape, prices are those of the layouts that do.
        let laid_out = laid_out(typed, features, record.head.l2_bytes);
        if laid_out.map(|config| config.algorithm()) != Ok(typed.algorithm()) {
            continue;
        }
        match typed.algorithm() {
            Algorithm::Special(special) => {
                let shape = special.shape(value);
                if !Special::SHAPES.contains(&shape) {
                    continue;
                }
                usual = KernelConfig::builder(shape).build().expect("shapes are allowed");
                let settings: Vec<_> =
                    own_settings(usual).iter().map(|(key, value)| format!("{key}={value}")).collect();
                label = format!("{} {}", row.contender, settings.join(";"));
            }
            algorithm => {
                let suited_to_any = usual.to_builder().algorithm(algorithm.suited_to_any()).build();
                usual = suited_to_any.expect("usual values are allowed");
                let follows = |setting: &&str| {
                    setting.split_once('=').is_some_and(|(key, _)| Algorithm::FOLLOWING.contains(&key))
                };
                let params = row.params.split(';').filter(|setting| !follows(setting));
                label = format!("{} {}", row.contender, params.collect::<Vec<_>>().join(";"));
            }
        }
        let Some(terms) = terms(&typed, features, record.head.l2_bytes) else { continue };
        let point = Point {
            problem: Some(problem),
            matrix: matrices
                .binary_search(&named_with_values(&row.matrix).0)
                .expect("the names are those of the rows"),
            terms,
            ms,
            best_ms: ms,
            prepare_ms: if row.operation == NON_TRANSPOSE { row.prepare_ms } else { None },
        };
        let new = || Measured { config: usual, label: label.clone(), points: Vec::new() };
        measured.entry(label.clone()).or_insert_with(new).points.push(point);
    }
    let mut measured: Vec<Measured> = measured.into_values().collect();
    for point in measured.iter_mut().flat_map(|measured| &mut measured.points) {
        if let Some(problem) = point.problem {
            point.best_ms = best[problem].ms;
        }
    }
    Ok(Measurements { problems, footprints, best, measured })
}

/// Fits prices to the products of records of one GPU, and picks the configurations whose prices lead to the best choices. A
/// product that several of the records have counts as the last of them has it. Matrices that are held out are not looked at.
///
/// # Errors
/// Those of [`FitError`].
pub fn fit(records: impl IntoIterator<Item = Record>) -> Result<Fitted, FitError> {
    let mut records: Vec<Record> = records.into_iter().collect();
    // What was measured before its algorithm had a parameter is what it is with its default.
    for row in records.iter_mut().flat_map(|record| &mut record.rows) {
        row.params = all_params(row);
    }
    let dated = |record: &Record| format!("{} (commit {})", record.head.date, record.head.commit);
    let dates = records.iter().map(dated).collect::<Vec<_>>().join(", ");
    let record = &with_other_values(with_choices(join(newest(records))?));
    let Measurements { problems, footprints, best, measured } =
        measurements(record, |row| !row.held_out && counts(row))?;
    let mut model = Model::default();
    let mut missed: f64 = 1.0;
    let mut first_few: Vec<[f64; 2]> = Vec::new();
    let mut choices = vec![None; problems.len()];
    // Those with a product of a kernel that has terms.
    let predictable: BTreeSet<usize> =
        measured.iter().flat_map(|measured| &measured.points).filter_map(|point| point.problem).collect();
    let mut configurations = vec![0; problems.len()];
    let points = measured.iter().flat_map(|measured| &measured.points);
    points.filter_map(|point| point.problem).for_each(|problem| configurations[problem] += 1);
    let most = configurations.iter().copied().max().unwrap_or(0);
    for footprint in Footprint::ALL {
        // Of transposed products, and where not all variants took part, few configurations are measured: they tell prices, and
        // nothing of choices.
        let is_own = |problem: &usize| {
            let is_known = configurations[*problem] * FEW >= most && problems[*problem].2 == NON_TRANSPOSE;
            footprints[*problem] == footprint && is_known
        };
        let own: Vec<usize> = predictable.iter().copied().filter(is_own).collect();
        if own.is_empty() {
            continue;
        }
        let of_measured = |measured: &Measured| -> Measured {
            let point = |point: &Point| {
                let problem = point.problem.filter(|problem| footprints[*problem] == footprint)?;
                Some(Point { problem: own.binary_search(&problem).ok(), ..point.clone() })
            };
            Measured { points: measured.points.iter().filter_map(point).collect(), ..measured.clone() }
        };
        let measured: Vec<Measured> = measured.iter().map(of_measured).collect();
        let best_ms: Vec<f64> = own.iter().map(|problem| best[*problem].ms).collect();
        let is_bare = |measured: &Measured| measured.config.outline().prepare.is_empty();
        let bare: Vec<bool> = measured.iter().map(is_bare).collect();
        let related = Related::new(&measured);
        let attempt = |most: f64| {
            let tried = |measured| tried(measured, &related, own.len(), most);
            let table: Table = measured.par_iter().map(tried).collect();
            let aims = Aims::new(&table, &best_ms, &bare);
            let selected = select(&table, &aims);
            (loss(&table, &selected, &aims), most, table, selected)
        };
        let attempts = MOST.into_iter().map(attempt);
        let (_, most, table, selected) =
            attempts.min_by(|a, b| a.0.total_cmp(&b.0)).expect("there is one at least");
        for (place, problem) in own.iter().copied().enumerate() {
            let made = |kind| {
                let (index, tried) = chosen(&table, &selected, place, kind)?;
                Some(Made { label: measured[index].label.clone(), ms: tried.ms })
            };
            let (Some(fitted), Some(left_out)) = (made(0), made(1)) else { continue };
            let [matrix, value, _] = <[&str; 3]>::from(problems[problem]).map(str::to_owned);
            let best = best[problem].clone();
            choices[problem] = Some(Choice { matrix, value, fitted, left_out, best });
        }
        let (added, left) = cover(&table, &selected, &best_ms);
        missed = missed.max(left);
        let of = |index: &usize, purpose| priced(&measured[*index], &related, purpose, footprint, most);
        model.priced.extend(selected.iter().map(|index| of(index, Purpose::Choose)));
        model.priced.extend(added.iter().map(|index| of(index, Purpose::Tune)));
        let candidates: Vec<usize> = selected.iter().chain(&added).copied().collect();
        first_few.extend((0..own.len()).filter_map(|place| {
            let [fitted, left_out] = [0, 1].map(|kind| best_of_first(&table, &candidates, place, kind));
            Some([fitted? / best_ms[place], left_out? / best_ms[place]])
        }));
    }
    let choices: Vec<Choice> = choices.into_iter().flatten().collect();
    let of_kinds = |ratios: &[[f64; 2]]| {
        let of_kind = |kind: usize| {
            let of_kind = || ratios.iter().map(|ratios| ratios[kind]);
            format!(
                "{} (geometric mean), {:.2} (largest)",
                mean(geomean(of_kind())),
                of_kind().fold(0.0, f64::max)
            )
        };
        format!("{}; with each matrix left out of the fit in turn: {}", of_kind(0), of_kind(1))
    };
    let ratios: Vec<[f64; 2]> = choices.iter().map(Choice::ratios).collect();
    model.comments = vec![
        format!(
            "Prices in milliseconds, fitted by `spmv fit` to what was measured on {}: {dates}.",
            record.head.gpu
        ),
        format!("{} problems.", choices.len()),
        format!("The choice over the best of all that was measured: {}.", of_kinds(&ratios)),
        format!(
            "The best of the first {FIRST} candidates for tuning, by the time of a product alone, over it: {}.",
            of_kinds(&first_few)
        ),
        format!("The best of all of them over it: {missed:.3} (largest)."),
    ];
    Ok(Fitted { model, choices })
}

/// The record with what was chosen as what it is, a kernel of ours: where a choice was bad, that is known of no other row. What
/// preparing it took is left out, as looking at the matrix is in it.
fn with_choices(mut record: Record) -> Record {
    let key =
        |row: &Row| [&row.matrix, &row.value, &row.operation, &row.contender, &row.params].map(String::clone);
    let mut known: BTreeSet<_> = record.rows.iter().map(key).collect();
    for row in &mut record.rows {
        let chosen = row.params.strip_prefix("algorithm=").filter(|_| row.side() == "auto");
        let Some(chosen) = chosen.map(str::to_owned) else { continue };
        let (algorithm, params) = chosen.split_once(';').unwrap_or((&chosen, ""));
        let named = Row {
            contender: format!("ours:{algorithm}"),
            params: params.to_owned(),
            prepare_ms: None,
            ..row.clone()
        };
        if known.insert(key(&named)) {
            *row = named;
        }
    }
    record
}

/// What was measured on a matrix with the values that it usually has counts for the same matrix with others too, of kernels that take
/// as long whatever values are: a record of others need not have it all again.
fn with_other_values(mut record: Record) -> Record {
    let key = |matrix: &str, row: &Row| {
        [matrix, &row.value, &row.operation, &row.contender, &row.params].map(str::to_owned)
    };
    let known: BTreeSet<_> = record.rows.iter().map(|row| key(&row.matrix, row)).collect();
    let mut others: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    for row in record.rows.iter().filter(|row| row.side() == "ours") {
        if let (usual, Some(_)) = named_with_values(&row.matrix) {
            others.entry((usual, &*row.value, &*row.operation)).or_default().insert(&row.matrix);
        }
    }
    let takes_as_long = |row: &Row| {
        let spec = Algorithm::ALL.iter().find(|spec| row.contender.strip_prefix("ours:") == Some(spec.name));
        spec.is_some_and(|spec| {
            let algorithm = (spec.default)();
            algorithm.encoding().is_none() && !matches!(algorithm, Algorithm::RowPatterns(_))
        })
    };
    let mut added = Vec::new();
    for row in record.rows.iter().filter(|row| takes_as_long(row)) {
        for matrix in others.get(&(&*row.matrix, &*row.value, &*row.operation)).into_iter().flatten() {
            if !known.contains(&key(matrix, row)) {
                added.push(Row { matrix: (*matrix).to_owned(), ..row.clone() });
            }
        }
    }
    record.rows.extend(added);
    record
}

/// The name of a matrix without what it says of values, and what it says.
fn named_with_values(name: &str) -> (&str, Option<Values>) {
    match name.rsplit_once(' ').and_then(|(name, values)| Some((name, values.parse().ok()?))) {
        Some((name, values)) => (name, Some(values)),
        None => (name, None),
    }
}

/// Since when measurements of an algorithm count: its kernels were others before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// The algorithm.
    pub algorithm: &'static str,
    /// As the heads of records have it: `2026-11-23T02:56:05Z`.
    pub date: String,
}

impl FromStr for Since {
    type Err = String;

    /// From `ALGORITHM=DATE`.
    fn from_str(text: &str) -> Result<Since, String> {
        let (name, date) = text
            .split_once('=')
            .ok_or("ALGORITHM=DATE is expected, two_phase=2026-11-23T02:56:05Z for example")?;
        let algorithm = Algorithm::ALL.iter().map(|spec| spec.name).find(|known| *known == name);
        let algorithm = algorithm
            .ok_or_else(|| format!("there is no algorithm {name} (`spmv algorithms` lists them)"))?;
        humantime::parse_rfc3339(date)
            .map_err(|error| format!("{date}: {error}; a date is 2026-11-23T02:56:05Z for example"))?;
        Ok(Since { algorithm, date: date.to_owned() })
    }
}

impl Since {
    /// Leaves out of records that are older what they say of the algorithm, also where it was chosen.
    pub fn leave_out_older(&self, records: &mut [Record]) {
        let own = format!("ours:{}", self.algorithm);
        let is_own = |row: &Row| {
            let chosen = row.params.strip_prefix("algorithm=").filter(|_| row.side() == "auto");
            row.contender == own
                || chosen.is_some_and(|chosen| chosen.split(';').next() == Some(self.algorithm))
        };
        for record in records.iter_mut().filter(|record| record.head.date < self.date) {
            record.rows.retain(|row| !is_own(row));
        }
    }
}

/// A record by which choices are judged: of its problems, held out or not, what was measured there.
pub struct Judge<'a>(Measurements<'a>);

impl<'a> Judge<'a> {
    /// Looks at the matrices of a record.
    ///
    /// # Errors
    /// Those of [`FitError`].
    pub fn new(record: &'a Record) -> Result<Self, FitError> {
        Ok(Self(measurements(record, |row| counts(row) && row.operation == NON_TRANSPOSE)?))
    }

    /// What a model chooses by its prices, where any of its configurations were measured.
    pub fn judge(self, model: &Model) -> Vec<Judged> {
        let Measurements { problems, footprints, best, measured } = self.0;
        let mut chosen: Vec<Option<(f64, Made)>> = vec![None; problems.len()];
        for measured in &measured {
            for point in &measured.points {
                let Some(problem) = point.problem else { continue };
                let is_it = |priced: &&Priced| {
                    priced.config == measured.config
                        && priced.purpose == Purpose::Choose
                        && priced.footprint == footprints[problem]
                };
                let Some(priced) = model.priced.iter().find(is_it) else { continue };
                let predicted = priced.predict(&point.terms).product_ms;
                let least = &mut chosen[problem];
                if least.as_ref().is_none_or(|(least, _)| predicted < *least) {
                    *least = Some((predicted, Made { label: measured.label.clone(), ms: point.ms }));
                }
            }
        }
        let judged = problems.into_iter().zip(chosen).zip(best).filter_map(|((problem, chosen), best)| {
            let [matrix, value, _] = <[&str; 3]>::from(problem).map(str::to_owned);
            chosen.map(|(_, chosen)| Judged { matrix, value, chosen, best })
        });
        judged.collect()
    }
}

fn mean(mean: Option<f64>) -> String {
    mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.3}"))
}

/// How many times errors count at most for which a slow kernel would be chosen: whatever leads to the best choices.
const MOST: [f64; 3] = [1.0, 2.0, 3.0];

/// The part of the configurations that a problem must have been measured with for choices to be judged by it: one in so many.
const FEW: usize = 3;

/// As records name products that are not transposed.
const NON_TRANSPOSE: &str = "non_transpose";

/// Whether a row is a correct product of ours, by a kernel that works on rows: transposed products by other kernels are not
/// predicted, nor those with one triangle. An algorithm that is there no more, or has another name, cannot be chosen.
fn counts(row: &Row) -> bool {
    let other = ["naive_t", "hola_t", "planned_t", "sym_csr", "sym_dia"];
    let name = row.contender.strip_prefix("ours:").unwrap_or_default();
    let can_be_chosen = !other.contains(&name) && Algorithm::ALL.iter().any(|spec| spec.name == name);
    let known = row.operation == NON_TRANSPOSE || row.operation == "transpose";
    can_be_chosen && row.is_ok() && known && row.time_ms().is_some_and(|ms| ms > 0.0)
}

/// The features of a suite's matrix and of its transpose.
fn structure(name: &str) -> Result<[(&'static str, Features); 2], FitError> {
    let entries = suite::ALL.iter().map(|suite| suite::named(suite.name)).collect::<Result<Vec<_>, _>>()?;
    let (own, values) = named_with_values(name);
    let entry = entries.into_iter().flatten().find(|entry| entry.name == own);
    let entry = match entry {
        Some(entry) => entry,
        // A matrix that was named by how it is made.
        None => suite::Entry::named(own).map_err(|_| FitError::Matrix(name.to_owned()))?,
    };
    let entry = entry.with_values(values.unwrap_or_default());
    // Of f64, whose values may or may not be narrow, as those that were measured.
    let a = entry.load::<f64>()?;
    let plain = features(&a);
    let transposed = a.transpose().expect("the transpose of a matrix with 32-bit offsets has them too");
    Ok([(NON_TRANSPOSE, plain), ("transpose", features(&transposed))])
}

/// The configuration of a row for values of this type; `None` where it does not take them.
fn config(row: &Row, value: ValueType) -> Result<Option<KernelConfig>, ConfigError> {
    let name = row.contender.strip_prefix("ours:").unwrap_or(&row.contender);
    let settings = row.params.split(';').filter_map(|setting| setting.split_once('='));
    let mut builder = KernelConfig::named(name)?;
    settings.into_iter().try_for_each(|(key, value)| builder.set(key, value))?;
    Ok(builder.value(value).build().ok())
}

/// What was measured of all configurations of an algorithm. It counts beside the measurements of each of them as few of these do, so
/// that a configuration that was measured on few matrices has a price for what none of these has much of.
struct Related {
    /// Sums for each matrix, and of how many measurements.
    sums: BTreeMap<Kernels, BTreeMap<usize, (Sums<NUM_TERMS>, usize)>>,
}

/// An algorithm, and the size of the blocks that `special` was generated for.
type Kernels = (&'static str, u32);

impl Related {
    /// As many measurements the others count as.
    const COUNT: f64 = 3.0;

    fn new(measured: &[Measured]) -> Related {
        let mut related = Related { sums: BTreeMap::new() };
        for Measured { config, points, .. } in measured {
            let of_kernels = related.sums.entry(Self::kernels(*config)).or_default();
            for point in points {
                let (sums, count) = of_kernels.entry(point.matrix).or_default();
                sums.add(&point.terms, point.ms, point.weight());
                *count += 1;
            }
        }
        related
    }

    fn kernels(config: KernelConfig) -> Kernels {
        let block = match config.algorithm() {
            Algorithm::Special(layout) => layout.block,
            _ => 1,
        };
        (config.algorithm().name(), block)
    }

    /// Those that a configuration is fitted with, but for a matrix that is left out.
    fn without(&self, left_out: Option<usize>, config: KernelConfig) -> Sums<NUM_TERMS> {
        let of_kernels = self.sums.get(&Self::kernels(config)).into_iter().flatten();
        let others = of_kernels.filter(|(matrix, _)| Some(**matrix) != left_out).map(|(_, sums)| sums);
        let all: usize = others.clone().map(|(_, count)| count).sum();
        let mut found = Sums::default();
        others.for_each(|(sums, _)| found.add_all(sums, Self::COUNT / all as f64));
        found
    }
}

/// Predictions for every problem that the configuration was measured on. With a matrix left out, prices are fitted to the
/// others; a configuration says nothing then that was measured on no other, or on none with anything near as much of a term.
fn tried(measured: &Measured, related: &Related, problems: usize, most_weight: f64) -> Vec<Option<Tried>> {
    /// How many times the most that was measured is too far to say anything.
    const FAR: f64 = 10.0;
    let all = prices(measured.points.iter(), &related.without(None, measured.config), most_weight);
    let mut found = vec![None; problems];
    let matrices: BTreeSet<usize> = measured.points.iter().map(|point| point.matrix).collect();
    for matrix in matrices {
        let others = measured.points.iter().filter(|point| point.matrix != matrix);
        let without = prices(others.clone(), &related.without(Some(matrix), measured.config), most_weight);
        let most = others.fold([0.0; NUM_TERMS], |most, point| {
            std::array::from_fn(|term| point.terms[term].max(most[term]))
        });
        for point in measured.points.iter().filter(|point| point.matrix == matrix) {
            let is_far = point.terms.iter().zip(most).any(|(term, most)| *term > FAR * most);
            let without = without.as_ref().filter(|_| !is_far);
            let cost = |prices: &[f64; NUM_TERMS]| cost(prices, &point.terms);
            let left_out = without.map_or(f64::INFINITY, cost);
            let predicted = [all.as_ref().map_or(f64::INFINITY, cost), left_out];
            if let Some(problem) = point.problem {
                found[problem] = Some(Tried { predicted, ms: point.ms });
            }
        }
    }
    found
}

/// The configuration among `selected` that is predicted to be the fastest.
fn chosen(table: &Table, selected: &[usize], problem: usize, kind: usize) -> Option<(usize, Tried)> {
    let tried = selected.iter().filter_map(|index| Some((*index, table[*index][problem]?)));
    tried.min_by(|(_, a), (_, b)| a.predicted[kind].total_cmp(&b.predicted[kind]))
}

/// As many candidates as a budget of two hundred products lets multiply, more or less.
const FIRST: usize = 15;

/// What the best of the first of these configurations took, in the order in which prices have them.
fn best_of_first(table: &Table, candidates: &[usize], problem: usize, kind: usize) -> Option<f64> {
    let known = candidates.iter().filter_map(|index| table[*index][problem]);
    let mut tried: Vec<Tried> = known.filter(|tried| tried.predicted[kind].is_finite()).collect();
    tried.sort_by(|a, b| a.predicted[kind].total_cmp(&b.predicted[kind]));
    tried.iter().take(FIRST).map(|tried| tried.ms).min_by(f64::total_cmp)
}

/// What choices are compared with: the fastest of each problem, and the fastest of those that are bare, which prepare nothing;
/// infinite where none was measured.
struct Aims<'a> {
    best_ms: &'a [f64],
    bare: &'a [bool],
    best_bare_ms: Vec<f64>,
}

impl<'a> Aims<'a> {
    fn new(table: &Table, best_ms: &'a [f64], bare: &'a [bool]) -> Aims<'a> {
        let fastest = |problem: usize| {
            let of_bare = table.iter().zip(bare).filter(|(_, is_bare)| **is_bare);
            of_bare.filter_map(|(tried, _)| Some(tried[problem]?.ms)).fold(f64::INFINITY, f64::min)
        };
        Aims { best_ms, bare, best_bare_ms: (0..best_ms.len()).map(fastest).collect() }
    }
}

/// The configurations by which choices are best: of what is found from none on and from all on, the better.
fn select(table: &Table, aims: &Aims<'_>) -> Vec<usize> {
    let starts = [Vec::new(), (0..table.len()).collect()];
    let found = starts.map(|start| improved(start, table, aims));
    found.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or_else(Vec::new, |(_, selected)| selected)
}

/// Drops the configuration without which the choices are best, else adds the one with which they are, else exchanges one for
/// another, until nothing makes them better; and how good they are then.
fn improved(mut selected: Vec<usize>, table: &Table, aims: &Aims<'_>) -> (f64, Vec<usize>) {
    /// What a configuration must gain, in logarithms.
    const GAIN: f64 = 5e-4;
    let cost = |selected: &[usize]| loss(table, selected, aims) + GAIN * selected.len() as f64;
    let mut least = cost(&selected);
    loop {
        let others: Vec<usize> = (0..table.len()).filter(|index| !selected.contains(index)).collect();
        let places = 0..selected.len();
        let without = |place: usize| {
            let mut changed = selected.clone();
            changed.remove(place);
            changed
        };
        let with = |place: usize, index: usize| {
            let mut changed = selected.clone();
            changed.resize(changed.len().max(place + 1), index);
            changed[place] = index;
            changed
        };
        let better = |changes: Vec<Vec<usize>>| {
            let costs = changes.into_par_iter().map(|changed| (cost(&changed), changed));
            let best = costs.min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
            best.filter(|(cost, _)| *cost < least)
        };
        let added = |place: usize| others.iter().map(move |index| with(place, *index)).collect::<Vec<_>>();
        let found = better(places.clone().map(without).collect())
            .or_else(|| better(added(selected.len())))
            .or_else(|| better(places.flat_map(added).collect()));
        let Some((less, changed)) = found else { return (least, selected) };
        (least, selected) = (less, changed);
    }
}

/// How far choices are from the best: the mean logarithm and its square, so that few that are far count more than many that are
/// near, with the matrices in the fit and left out; a little for the worst; and a little for choices among those that are bare,
/// for products that are few. Where nothing is predicted, a choice counts three times the best.
fn loss(table: &Table, selected: &[usize], aims: &Aims<'_>) -> f64 {
    const NOTHING: f64 = 3.0;
    const WORST: f64 = 0.02;
    const BARE: f64 = 0.1;
    let of = |selected: &[usize], best_ms: &[f64], kind| {
        let known = best_ms.iter().enumerate().filter(|(_, best)| best.is_finite());
        let log = |(problem, best): (usize, &f64)| {
            let known =
                chosen(table, selected, problem, kind).filter(|(_, tried)| tried.predicted[kind].is_finite());
            known.map_or(NOTHING, |(_, tried)| tried.ms / best).ln()
        };
        let logs: Vec<f64> = known.map(log).collect();
        let mean = logs.iter().map(|log| log + log * log).sum::<f64>() / logs.len().max(1) as f64;
        mean + WORST * logs.iter().copied().fold(0.0, f64::max)
    };
    let bare: Vec<usize> = selected.iter().copied().filter(|index| aims.bare[*index]).collect();
    let of_all = (of(selected, aims.best_ms, 0) + of(selected, aims.best_ms, 1)) / 2.0;
    of_all + BARE * of(&bare, &aims.best_bare_ms, 0)
}

/// Configurations to measure beside those that are `selected`, so that none is much faster than all of them on any problem; and
/// how much that is at most.
fn cover(table: &Table, selected: &[usize], best_ms: &[f64]) -> (Vec<usize>, f64) {
    /// The largest difference that is left, in logarithms.
    const MOST: f64 = 0.01;
    let ratio = |index: usize, problem: usize| {
        table[index][problem].map_or(f64::INFINITY, |tried| (tried.ms / best_ms[problem]).ln())
    };
    let mut left: Vec<f64> = (0..best_ms.len())
        .map(|problem| selected.iter().map(|index| ratio(*index, problem)).fold(f64::INFINITY, f64::min))
        .collect();
    let mut added = Vec::new();
    while left.iter().any(|left| *left > MOST) {
        // What is nearly as good as the best counts as much.
        let gain = |index: usize| -> f64 {
            let gains = left.iter().enumerate().map(|(problem, left)| {
                (left.min(3.0) - MOST).max(0.0) - (ratio(index, problem).min(3.0) - MOST).max(0.0)
            });
            gains.map(|gain| gain.max(0.0)).sum()
        };
        let best = (0..table.len()).map(|index| (gain(index), index));
        let best = best.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let Some((_, index)) = best.filter(|(gain, _)| *gain > 0.0) else { break };
        added.push(index);
        left.iter_mut().enumerate().for_each(|(problem, left)| *left = left.min(ratio(index, problem)));
    }
    (added, left.into_iter().fold(0.0, f64::max).exp())
}

fn priced(
    measured: &Measured,
    related: &Related,
    purpose: Purpose,
    footprint: Footprint,
    most: f64,
) -> Priced {
    let points = measured.points.iter();
    let prices = prices(points.clone(), &related.without(None, measured.config), most).unwrap_or_default();
    let prepared = points.filter_map(|point| Some(([1.0, point.terms[1]], point.prepare_ms?, 1.0)));
    let mut sums = Sums::default();
    prepared.for_each(|(terms, ms, weight)| sums.add(&terms, ms, weight));
    let prepare = sums.nonnegative_prices();
    Priced {
        config: measured.config,
        purpose,
        footprint,
        prices: prices.map(rounded),
        prepare: prepare.map(rounded),
    }
}

/// Four digits are more than the measurements have.
fn rounded(price: f64) -> f64 {
    if price == 0.0 {
        return 0.0;
    }
    let scale = 10f64.powi(3 - price.log10().floor() as i32);
    (price * scale).round() / scale
}

/// Prices that come nearest to the measured times; `None` where there are no measurements. Errors are relative, and count the
/// less the farther the kernel is from the fastest of the problem: what is twice as slow is not chosen for an error of a tenth.
/// Where it would be chosen, they count in full, and more, up to so many times.
fn prices<'p>(
    points: impl Iterator<Item = &'p Point>,
    of_others: &Sums<NUM_TERMS>,
    most: f64,
) -> Option<[f64; NUM_TERMS]> {
    /// How often prices are fitted again where a slow kernel would be chosen, and how much more its errors count each time.
    const AGAIN: usize = 12;
    const MORE: f64 = 1.3;
    /// Times the fastest from which on a kernel is slow.
    const SLOW: f64 = 1.05;
    let points: Vec<&Point> = points.collect();
    let mut weights: Vec<f64> = points.iter().map(|point| point.weight()).collect();
    let fitted = |weights: &[f64]| {
        let mut sums = *of_others;
        points.iter().zip(weights).for_each(|(point, weight)| sums.add(&point.terms, point.ms, *weight));
        sums.nonnegative_prices()
    };
    let mut prices = (!points.is_empty()).then(|| fitted(&weights))?;
    for _ in 0..AGAIN {
        let mut changed = false;
        for (point, weight) in points.iter().zip(&mut weights) {
            let full = point.ms.recip();
            let is_slow = point.ms > point.best_ms * SLOW;
            if is_slow && *weight < most * full && cost(&prices, &point.terms) < point.best_ms {
                *weight = if *weight < full { full } else { (*weight * MORE).min(most * full) };
                changed = true;
            }
        }
        if !changed {
            break;
        }
        prices = fitted(&weights);
    }
    Some(prices)
}

/// What so much of each term costs.
fn cost(prices: &[f64; NUM_TERMS], terms: &[f64; NUM_TERMS]) -> f64 {
    prices.iter().zip(terms).map(|(price, term)| price * term).sum()
}

/// Weighted measurements, summed up as prices are fitted to them.
#[derive(Clone, Copy)]
struct Sums<const N: usize> {
    gram: [[f64; N]; N],
    right: [f64; N],
}

impl<const N: usize> Default for Sums<N> {
    fn default() -> Self {
        Sums { gram: [[0.0; N]; N], right: [0.0; N] }
    }
}

impl<const N: usize> Sums<N> {
    fn add(&mut self, terms: &[f64; N], ms: f64, weight: f64) {
        for i in 0..N {
            for j in 0..N {
                self.gram[i][j] += terms[i] * terms[j] * weight * weight;
            }
            self.right[i] += terms[i] * ms * weight * weight;
        }
    }

    /// Adds what others sum up, so many times.
    fn add_all(&mut self, others: &Sums<N>, times: f64) {
        for i in 0..N {
            for j in 0..N {
                self.gram[i][j] += others.gram[i][j] * times;
            }
            self.right[i] += others.right[i] * times;
        }
    }

    /// Non-negative least squares of `weight * (terms · prices − ms)`, by coordinate descent on the normal equations.
    fn nonnegative_prices(&self) -> [f64; N] {
        const SWEEPS: usize = 20_000;
        let Sums { gram, right } = self;
        let mut prices = [0.0; N];
        for _ in 0..SWEEPS {
            let mut moved: f64 = 0.0;
            for i in 0..N {
                if gram[i][i] <= 0.0 {
                    continue;
                }
                let others: f64 = (0..N).filter(|j| *j != i).map(|j| gram[i][j] * prices[j]).sum();
                let next = ((right[i] - others) / gram[i][i]).max(0.0);
                // What the change does to the predictions, in units of their error.
                moved = moved.max((next - prices[i]).abs() * gram[i][i].sqrt());
                prices[i] = next;
            }
            if moved < 1e-9 {
                break;
            }
        }
        prices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Head;

    fn nonnegative_prices<const N: usize>(points: impl Iterator<Item = ([f64; N], f64, f64)>) -> [f64; N] {
        let mut sums = Sums::default();
        points.for_each(|(terms, ms, weight)| sums.add(&terms, ms, weight));
        sums.nonnegative_prices()
    }

    #[test]
    fn prices_are_found_again() {
        let wanted = [0.25, 3.0, 0.0, 1e-3];
        let points = (0..40).map(|i| {
            let i = f64::from(i);
            let terms = [1.0, i, (i * 0.7).sin().abs() * 5.0, i * i];
            let ms = terms.iter().zip(wanted).map(|(term, price)| term * price).sum();
            (terms, ms, 1.0 / ms)
        });
        for (found, wanted) in nonnegative_prices(points).into_iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-4, "{found} is not {wanted}");
        }
    }

    #[test]
    fn kernels_that_take_as_long_whatever_values_are_count_for_others_too() {
        let row = |matrix: &str, contender: &str, params: &str| Row {
            matrix: matrix.into(),
            contender: contender.into(),
            params: params.into(),
            value: "f64".into(),
            operation: NON_TRANSPOSE.into(),
            ..Row::default()
        };
        let rows = vec![
            row("a", "ours:csr_scalar", "unroll=4"),
            row("a", "ours:csr_scalar", "unroll=1"),
            row("a", "ours:dia", "encoding=0"),
            row("a", "ours:row_patterns", ""),
            row("a", "cusparse:op", ""),
            row("b", "ours:csr_scalar", "unroll=4"),
            row("a integers", "ours:dia", "encoding=3"),
            row("a integers", "ours:csr_scalar", "unroll=1"),
            row("b ones", "cusparse:op", ""),
            Row { value: "f16".into(), ..row("a", "ours:csr_scalar", "unroll=4") },
            Row { operation: "transpose".into(), ..row("a", "ours:csr_scalar", "unroll=4") },
        ];
        let record = Record { head: Head::default(), rows: rows.clone() };
        let found = with_other_values(record).rows;
        assert_eq!(found[..rows.len()], rows);
        assert_eq!(found[rows.len()..], [row("a integers", "ours:csr_scalar", "unroll=4")]);
    }

    #[test]
    fn a_matrix_is_left_out_with_its_other_values() {
        let row = |matrix: &str| Row {
            matrix: matrix.into(),
            nnz: 199_200,
            value: "f64".into(),
            operation: NON_TRANSPOSE.into(),
            contender: "ours:csr_scalar".into(),
            cold_ms: Some(1.0),
            ..Row::default()
        };
        let head = Head { l2_bytes: 50 << 20, ..Head::default() };
        let record = Record { head, rows: vec![row("quick_stencil_5"), row("quick_stencil_5 integers")] };
        let found = measurements(&record, |_| true).unwrap();
        let [measured] = &found.measured[..] else { panic!("one configuration") };
        for tried in tried(measured, &Related::new(&found.measured), found.problems.len(), 1.0) {
            let [fitted, left_out] = tried.expect("it was measured on both").predicted;
            assert!(fitted.is_finite() && left_out.is_infinite(), "{fitted} {left_out}");
        }
    }

    /// What a configuration was not measured with has the price that it has for others of its algorithm, unless they were measured on
    /// a matrix that is left out.
    #[test]
    fn other_configurations_of_an_algorithm_tell_prices() {
        let point = |matrix: usize, terms: [f64; 2], ms: f64| {
            let terms = std::array::from_fn(|term| terms.get(term).copied().unwrap_or(0.0));
            Point { problem: Some(matrix), matrix, terms, ms, best_ms: ms, prepare_ms: None }
        };
        let measured = |unroll: &str, points: Vec<Point>| Measured {
            config: KernelConfig::from_settings("csr_scalar", [("unroll", unroll)]).unwrap(),
            label: unroll.to_owned(),
            points,
        };
        let one = measured("4", vec![point(0, [1.0, 0.0], 2.0), point(2, [2.0, 0.0], 4.0)]);
        let other = measured("8", vec![point(0, [1.0, 0.0], 2.0), point(1, [1.0, 1.0], 5.0)]);
        let related = Related::new(&[one.clone(), other]);
        let found = |left_out| {
            prices(one.points.iter(), &related.without(left_out, one.config), 1.0).expect("there are points")
        };
        for (price, wanted) in found(None).into_iter().zip([2.0, 3.0]) {
            assert!((price - wanted).abs() < 1e-4, "{price} is not {wanted}");
        }
        assert_eq!(found(Some(1))[1], 0.0);
        let alone = prices(one.points.iter(), &Sums::default(), 1.0).expect("there are points");
        assert_eq!(alone[1], 0.0);
        // Another algorithm's say nothing.
        let vector = KernelConfig::from_settings("csr_vector", [("unroll", "4")]).unwrap();
        assert_eq!(related.without(None, vector).gram, [[0.0; NUM_TERMS]; NUM_TERMS]);
    }

    #[test]
    fn rows_count_that_can_be_chosen() {
        let row = |contender: &str, operation: &str, ms| Row {
            contender: contender.into(),
            operation: operation.into(),
            status: "ok".into(),
            cold_ms: ms,
            ..Row::default()
        };
        assert!(
            counts(&row("ours:tjds", NON_TRANSPOSE, Some(1.0)))
                && counts(&row("ours:dia", "transpose", Some(1.0)))
        );
        let others = [
            row("ours:jds_t", NON_TRANSPOSE, Some(1.0)),
            row("ours:sym_dia", NON_TRANSPOSE, Some(1.0)),
            row("cusparse:op", NON_TRANSPOSE, Some(1.0)),
            row("ours:dia", "symmetric", Some(1.0)),
            row("ours:dia", NON_TRANSPOSE, None),
            Row { status: "wrong".into(), ..row("ours:dia", NON_TRANSPOSE, Some(1.0)) },
        ];
        others.iter().for_each(|row| assert!(!counts(row), "{}", row.label()));
    }

    #[test]
    fn what_older_records_say_of_an_algorithm_is_left_out() {
        let row = |contender: &str, params: &str| Row {
            contender: contender.into(),
            params: params.into(),
            ..Row::default()
        };
        let record = |date: &str| Record {
            head: Head { date: date.into(), ..Head::default() },
            rows: vec![
                row("ours:two_phase", "tile_kib=48"),
                row("ours:dia", ""),
                row("auto", "algorithm=two_phase;tile_kib=48"),
                row("auto", "algorithm=dia"),
                row("cusparse:op", "algorithm=two_phase"),
            ],
        };
        let mut records = ["2026-11-22T00:00:00Z", "2026-11-23T02:56:05Z"].map(record);
        "two_phase=2026-11-23T02:56:05Z".parse::<Since>().unwrap().leave_out_older(&mut records);
        let contenders =
            |record: &Record| record.rows.iter().map(|row| row.params.clone()).collect::<Vec<_>>();
        assert_eq!(contenders(&records[0]), ["", "algorithm=dia", "algorithm=two_phase"]);
        assert_eq!(records[1].rows.len(), 5);
        for (wrong, named) in [
            ("two_phase", "ALGORITHM=DATE"),
            ("three_phase=2026-11-23T02:56:05Z", "three_phase"),
            ("two_phase=yesterday", "yesterday"),
        ] {
            let message = wrong.parse::<Since>().unwrap_err();
            assert!(message.contains(named), "{message}");
        }
    }

    #[test]
    fn no_price_is_negative() {
        let points = [([1.0, 1.0], 1.0, 1.0), ([1.0, 2.0], 0.5, 1.0), ([1.0, 3.0], 0.1, 1.0)];
        let found = nonnegative_prices(points.into_iter());
        assert_eq!(found[1], 0.0);
        assert!((found[0] - 1.6 / 3.0).abs() < 1e-6);
    }

    /// Those that [`select`] finds, in ascending order.
    fn selected(table: &Table, best_ms: &[f64], bare: &[bool]) -> Vec<usize> {
        let mut selected = select(table, &Aims::new(table, best_ms, bare));
        selected.sort();
        selected
    }

    #[test]
    fn configurations_are_selected_by_the_choices_that_follow() {
        let tried = |predicted: f64, ms: f64| Some(Tried { predicted: [predicted; 2], ms });
        // The third is predicted to be the fastest everywhere and is not.
        let table = vec![
            vec![tried(1.0, 1.0), tried(4.0, 4.0)],
            vec![tried(2.0, 2.0), tried(2.0, 2.0)],
            vec![tried(0.5, 9.0), tried(0.5, 9.0)],
        ];
        assert_eq!(selected(&table, &[1.0, 2.0], &[false; 3]), [0, 1]);
    }

    #[test]
    fn configurations_are_exchanged() {
        let tried = |predicted: f64, ms: f64| Some(Tried { predicted: [predicted; 2], ms });
        // The first is the best alone, and in the way of the third where the second is there too.
        let table = vec![
            vec![tried(0.3, 1.2), tried(1.0, 1.2)],
            vec![tried(2.0, 5.0), tried(0.5, 1.0)],
            vec![tried(0.6, 1.0), tried(3.0, 9.0)],
        ];
        assert_eq!(selected(&table, &[1.0, 1.0], &[false; 3]), [1, 2]);
    }

    #[test]
    fn what_prepares_nothing_is_selected_although_others_are_faster() {
        let tried = |predicted: f64, ms: f64| Some(Tried { predicted: [predicted; 2], ms });
        let table = vec![
            vec![tried(1.0, 1.0), tried(1.0, 1.0)],
            vec![tried(9.0, 9.0), tried(1.5, 1.5)],
            vec![tried(2.0, 2.0), tried(2.0, 2.0)],
        ];
        let selected = |bare: &[bool]| selected(&table, &[1.0, 1.0], bare);
        assert_eq!(selected(&[false; 3]), [0]);
        assert_eq!(selected(&[false, true, true]), [0, 1, 2]);
        assert_eq!(selected(&[false, true, false]), [0, 1]);
    }

    #[test]
    fn of_candidates_for_tuning_the_first_by_their_prices_count() {
        let tried =
            |predicted: f64, left_out: f64, ms: f64| Some(Tried { predicted: [predicted, left_out], ms });
        let mut table: Table = (0..FIRST).map(|place| vec![tried(1.0 + place as f64, 2.0, 5.0)]).collect();
        table.push(vec![tried(100.0, 1.0, 3.0)]);
        table.push(vec![None]);
        let all: Vec<usize> = (0..table.len()).collect();
        assert_eq!([0, 1].map(|kind| best_of_first(&table, &all, 0, kind)), [Some(5.0), Some(3.0)]);
        assert_eq!(best_of_first(&table, &all[1..], 0, 0), Some(3.0));
        assert_eq!(best_of_first(&table, &all[FIRST + 1..], 0, 0), None);
    }

    #[test]
    fn what_is_slow_and_would_be_chosen_counts_in_full() {
        let mut terms = [0.0; NUM_TERMS];
        terms[0] = 1.0;
        let point =
            |ms: f64, best_ms: f64| Point { problem: None, matrix: 0, terms, ms, best_ms, prepare_ms: None };
        let price = |best_ms: f64| {
            prices([point(1.0, 1.0), point(4.0, best_ms)].iter(), &Sums::default(), 1.0).unwrap()[0]
        };
        // Of weights 1 and 1/4 where the best takes 2 and so little is predicted; of 1 and 1/16 where it takes 1.
        let mean = |weight: f64| (1.0 + 4.0 * weight * weight) / (1.0 + weight * weight);
        assert!((price(2.0) - mean(0.25)).abs() < 1e-6, "{}", price(2.0));
        assert!((price(1.0) - mean(0.0625)).abs() < 1e-6, "{}", price(1.0));
    }

    #[test]
    fn what_was_chosen_counts_as_what_it_is() {
        let row = |contender: &str, params: &str| Row {
            contender: contender.into(),
            params: params.into(),
            prepare_ms: Some(1.0),
            ..Row::default()
        };
        let rows = vec![
            row("ours:csr5", "sigma=8;threads_per_block=256"),
            row("auto", "algorithm=csr5;sigma=8;threads_per_block=256"),
            row("auto", "algorithm=csr5;sigma=16;threads_per_block=256"),
            row("cusparse:sell", "preprocess=yes"),
        ];
        let rows = with_choices(Record { rows, ..Record::default() }).rows;
        let found: Vec<_> = rows.iter().map(|row| (row.label(), row.prepare_ms)).collect();
        let expected = [
            ("ours:csr5 sigma=8;threads_per_block=256", Some(1.0)),
            ("auto algorithm=csr5;sigma=8;threads_per_block=256", Some(1.0)),
            ("ours:csr5 sigma=16;threads_per_block=256", None),
            ("cusparse:sell preprocess=yes", Some(1.0)),
        ];
        assert_eq!(found, expected.map(|(label, ms)| (label.to_owned(), ms)));
    }

    #[test]
    fn a_matrix_may_be_named_by_how_it_is_made() {
        let [(_, plain), (_, transposed)] = structure("tall:rows=300,cols=40,per_row=3,seed=5").unwrap();
        assert_eq!((plain.num_rows, plain.num_cols), (300, 40));
        assert_eq!((transposed.num_rows, transposed.nnz), (40, plain.nnz));
        assert!(matches!(structure("tall:rows"), Err(FitError::Matrix(_))));
    }

    #[test]
    fn a_model_is_judged_by_what_it_chooses() {
        let priced = |name: &str, launch: f64| {
            let mut prices = [0.0; NUM_TERMS];
            prices[0] = launch;
            let config = KernelConfig::named(name).unwrap().build().unwrap();
            Priced {
                config,
                purpose: Purpose::Choose,
                footprint: Footprint::Small,
                prices,
                prepare: [0.0; 2],
            }
        };
        let mut model = Model::default();
        // What is predicted to be the fastest was not measured, or not on this matrix; another is only there to be measured.
        let to_measure = Priced { purpose: Purpose::Tune, ..priced("hola", 0.7) };
        model.priced =
            vec![priced("coo", 0.5), to_measure, priced("csr_scalar", 1.0), priced("csr_vector", 2.0)];
        let row = |contender: &str, value: &str, ms: f64| Row {
            matrix: "quick_stencil_5".into(),
            nnz: 199_200,
            value: value.into(),
            operation: "non_transpose".into(),
            contender: contender.into(),
            params: "threads_per_block=256".into(),
            cold_ms: Some(ms),
            held_out: true,
            status: "ok".into(),
            ..Row::default()
        };
        let rows = vec![
            row("ours:csr_scalar", "f32", 3.0),
            row("ours:csr_vector", "f32", 2.0),
            row("ours:hola", "f32", 9.0),
            row("ours:csr_vector", "f64", 5.0),
            row("ours:light_vector", "f64", 4.0),
        ];
        let head = crate::record::Head { l2_bytes: 50 << 20, ..Default::default() };
        let record = Record { head, rows };
        let judged = Judge::new(&record).unwrap().judge(&model);
        let ratios: Vec<_> = judged.iter().map(|judged| (&*judged.value, judged.ratio())).collect();
        assert_eq!(ratios, [("f32", 1.5), ("f64", 1.25)]);
        // Held out, it is nothing to fit to.
        assert!(matches!(fit([record.clone()]), Err(FitError::Nothing)));
        let mut changed = record;
        changed.rows[0].nnz += 1;
        assert!(matches!(Judge::new(&changed).err(), Some(FitError::Changed { .. })));
    }

    #[test]
    fn four_digits_stay() {
        assert_eq!([0.0, 1.234_56, 123_456.0, 0.001_234_56].map(rounded), [0.0, 1.235, 123_500.0, 0.001_235]);
    }
}
