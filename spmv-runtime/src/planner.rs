//! Which kernel a matrix gets where nobody says.
//!
//! A small model predicts how long a product takes with each of a few configurations: amounts that follow from the
//! structure ([`terms`]) times prices that were fitted to recorded measurements. The prices are data, in a file for each
//! architecture that was measured. There is one so far, of sm_90; other devices take it, with their own L2 cache.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use spmv_codegen::{
    Algorithm, Arg, Bsr, ConfigError, CsrScalar, CsrVector, Features, Hola, HolaT, KernelConfig, Loads,
    NaiveT, Operation, PlannedT, Program, RowPatterns, Special, SpecialLayout, SymCsr, SymDia, Types,
    Variable, special_layout,
};

use crate::device::Device;

pub use auto::{broken, refusal};
pub(crate) use auto::{ranked, usual_types};
pub use model::{Footprint, Model, ModelError, Priced, Purpose};
pub use neighbours::neighbours;
pub(crate) use neighbours::{Setting, Step, step};
pub use terms::{NUM_TERMS, TERMS, multiplies_fill, terms};

pub(crate) mod analysis;
mod auto;
mod model;
mod neighbours;
mod terms;

/// The prices measured on an NVIDIA H200.
static SM_90: LazyLock<Model> =
    LazyLock::new(|| include_str!("planner/sm_90.csv").parse().expect("the file is checked by a test"));

/// Bytes of the L2 cache of the GPU that the prices were measured on.
pub const MEASURED_L2_BYTES: u64 = 62_914_560;

/// Bytes of the device's L2 cache; for the simulator, which has none, those of the GPU that the prices were measured on.
pub fn l2_bytes(device: &Device) -> u64 {
    match device.properties().l2_bytes {
        0 => MEASURED_L2_BYTES,
        bytes => bytes,
    }
}

/// What a choice must respect.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Constraints {
    /// Only kernels that give the same bits in every run, on every device of one architecture.
    pub deterministic: bool,
    /// Bytes of device memory that a plan may take beside the matrix.
    pub max_extra_bytes: Option<u64>,
    /// Whether a layout may multiply fill with x, so that an infinite entry of x may reach rows that do not name it.
    pub fill_touches_x: bool,
    /// Whether other values, whatever they are, will [replace](crate::DeviceMatrix::update_values) those of the matrix: kernels
    /// that are for values that repeat ([`RowPatterns`]) are left out, and values are stored as they are.
    pub values_change: bool,
    /// How many products the plan is for: what making it takes is shared out among them.
    pub products: u64,
}

impl Default for Constraints {
    /// Any order of sums, all memory there is, fill that never touches x, values that stay, a thousand products.
    fn default() -> Self {
        Constraints {
            deterministic: false,
            max_extra_bytes: None,
            fill_touches_x: false,
            values_change: false,
            products: 1000,
        }
    }
}

/// A configuration and what is expected of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The configuration.
    pub config: KernelConfig,
    /// What is predicted; `None` where a rule of thumb names the configuration.
    pub prediction: Option<Prediction>,
    /// Why it is here where nothing is predicted.
    rule: String,
}

impl Candidate {
    /// One that nothing is predicted of.
    pub fn new(config: KernelConfig, reason: impl Into<String>) -> Candidate {
        Candidate { config, prediction: None, rule: reason.into() }
    }

    /// Why it is here, in one line.
    pub fn reason(&self) -> String {
        match &self.prediction {
            Some(Prediction { product_ms, prepare_ms, .. }) => {
                let (product_us, prepare_us) = (product_ms * 1e3, prepare_ms * 1e3);
                format!("predicted {product_us:.1} us a product, {prepare_us:.0} us to prepare")
            }
            None => self.rule.clone(),
        }
    }
}

/// What a model expects, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// A product with cold caches; where the L2 cache has room for it, halfway (geometrically) between cold and warm.
    pub product_ms: f64,
    /// Making the plan on the device, compiling not counted.
    pub prepare_ms: f64,
    /// What the product's terms cost, in the order of [`TERMS`].
    pub terms_ms: [f64; NUM_TERMS],
}

impl Prediction {
    /// A product with its share of making the plan.
    pub fn ms_of_product(&self, products: u64) -> f64 {
        self.product_ms + self.prepare_ms / products.max(1) as f64
    }
}

/// Configurations for a product, the best first; none where nothing keeps the constraints. `operation` is that of the arrays
/// whose features these are, or those of whose transpose where the operation is [`Operation::Transpose`]; where a triangle is
/// stored, the features are those of the whole matrix. `types` are what the matrix and the vectors are made of; `l2_bytes` is
/// the device's L2 cache. What a plan takes beside the matrix is known in full only when it has been made: those are left out
/// that take too much whatever preparation finds out.
///
/// # Errors
/// [`ConfigError`] where no kernel takes these types.
pub fn candidates(
    features: &Features,
    types: Types,
    operation: Operation,
    l2_bytes: u64,
    constraints: &Constraints,
) -> Result<Vec<Candidate>, ConfigError> {
    listed(false, features, types, operation, l2_bytes, constraints)
}

/// As [`candidates`], for measuring them: what would be chosen, `bsr` where there are blocks without fill, then by what is expected
/// of them the others and the configurations without which some matrix would lack a kernel as fast as its fastest.
///
/// # Errors
/// As [`candidates`].
pub fn candidates_to_measure(
    features: &Features,
    types: Types,
    operation: Operation,
    l2_bytes: u64,
    constraints: &Constraints,
) -> Result<Vec<Candidate>, ConfigError> {
    let chosen = candidates(features, types, operation, l2_bytes, constraints)?.into_iter().next();
    let mut found = listed(true, features, types, operation, l2_bytes, constraints)?;
    // Whoever measures little has what would be chosen at least.
    let is_chosen =
        |candidate: &Candidate| chosen.as_ref().is_some_and(|chosen| chosen.config == candidate.config);
    if let Some(place) = found.iter().position(is_chosen) {
        found[..=place].rotate_right(1);
    }
    Ok(found)
}

/// A configuration that does for any structure, known by its size alone; the best first.
///
/// # Errors
/// As [`candidates`].
pub fn candidates_for_any(
    size: (u64, u64),
    nnz: u64,
    types: Types,
    operation: Operation,
    l2_bytes: u64,
    constraints: &Constraints,
) -> Result<Vec<Candidate>, ConfigError> {
    let features = Features::of_size(size, nnz);
    let equal_shares = (
        Hola { nnz_per_thread: 8, prepared: 1, ..Hola::default() }.into(),
        "equal shares for rows of any length".to_owned(),
    );
    let first = (operation != Operation::Transpose).then_some(equal_shares);
    let rules = first.into_iter().chain(rules(operation, &features, types, constraints));
    ruled(Vec::new(), rules, &features, types, operation, l2_bytes, constraints)
}

fn listed(
    to_measure: bool,
    features: &Features,
    types: Types,
    operation: Operation,
    l2_bytes: u64,
    constraints: &Constraints,
) -> Result<Vec<Candidate>, ConfigError> {
    let features = &if constraints.values_change { features.without_values() } else { *features };
    let mut found = predicted(to_measure, features, types, operation, l2_bytes, constraints);
    let is_beyond_l2 = Footprint::of(features, types, l2_bytes) == Footprint::BeyondL2;
    let pays = constraints.products >= WORTH_A_COPY;
    // It has no prices, and about half the bytes.
    if is_beyond_l2 && pays {
        let mirrored = mirrored_diagonals(operation, features, types);
        for (algorithm, reason) in mirrored.into_iter().rev() {
            if let Ok(config) = typed(KernelConfig::builder(algorithm).build()?, types, operation) {
                found.insert(0, Candidate::new(config, reason));
            }
        }
    }
    // Whether all rows do, only making the plan tells.
    let has_prices = !found.is_empty();
    if has_prices && pays && features.rows_repeat() {
        let patterns = KernelConfig::builder(RowPatterns::default()).build()?;
        let config = typed(patterns, types, operation).ok();
        let candidate =
            config.map(|config| Candidate::new(config, "rows repeat: a byte a row is all that is read"));
        if is_beyond_l2 || to_measure {
            found.splice(..0, candidate).for_each(drop);
        }
    }
    if to_measure && has_prices && pays {
        for (algorithm, reason) in blocks_without_fill(features) {
            let config = typed(KernelConfig::builder(algorithm).build()?, types, operation).ok();
            let Some(config) = config else { continue };
            // What would be chosen comes before them.
            match found.iter().position(|candidate| candidate.config == config) {
                Some(known) => found[..=known].rotate_right(1),
                None => found.insert(0, Candidate::new(config, reason)),
            }
        }
    }
    let rules = rules(operation, features, types, constraints).into_iter();
    let mut found = ruled(found, rules, features, types, operation, l2_bytes, constraints)?;
    // A single product of the others could take longer than all that is to be measured.
    let splits_rows = |candidate: &Candidate| candidate.config.outline().guarantees.splits_rows;
    if to_measure && has_giant_row(features) && found.iter().any(splits_rows) {
        found.retain(splits_rows);
    }
    if operation == Operation::Transpose && constraints.products < WORTH_A_COPY {
        found.sort_by_key(|candidate| candidate.prediction.is_some());
    }
    Ok(found)
}

/// Whether one row is so long, and holds so large a part of all entries, that it decides how long a product takes where nobody
/// splits rows: a GPU works on more than a hundred rows at once.
fn has_giant_row(features: &Features) -> bool {
    features.longest_row >= 1 << 14 && features.longest_row.saturating_mul(200) >= features.nnz
}

/// Products from which on a transposed copy of the matrix pays off, or looking for rows that repeat, which takes up to a
/// hundred products: before, what needs neither is first.
const WORTH_A_COPY: u64 = 200;

/// Milliseconds that a copy takes beside what else preparation does: once, and for each entry. Of an NVIDIA H200, from the
/// record of 2026-11-20: 0.8 to 1.4 times what was measured there for any matrix.
const COPY_MS: [f64; 2] = [0.4, 1.8e-7];

/// What was found, then what the rules of thumb name and was not; of both what keeps the constraints, with the loads that suit it.
fn ruled(
    mut found: Vec<Candidate>,
    rules: impl Iterator<Item = (Algorithm, String)>,
    features: &Features,
    types: Types,
    operation: Operation,
    l2_bytes: u64,
    constraints: &Constraints,
) -> Result<Vec<Candidate>, ConfigError> {
    let mut problem = None;
    for (algorithm, reason) in rules {
        match KernelConfig::builder(algorithm).build().and_then(|config| typed(config, types, operation)) {
            Ok(config) if found.iter().any(|candidate| candidate.config == config) => {}
            Ok(config) => found.push(Candidate::new(config, reason)),
            Err(error) => problem = Some(error),
        }
    }
    found.retain(|candidate| keeps(&candidate.config, features, constraints));
    for candidate in &mut found {
        candidate.config = with_loads(candidate.config, features, l2_bytes);
    }
    match (found.is_empty(), problem) {
        (true, Some(error)) => Err(error),
        _ => Ok(found),
    }
}

/// The configuration for a matrix with these features: with the loads that suit it, where it is `special`, with the
/// parameters and the block size that follow from them for its [`shape`](Special::shape), and of any other with those of
/// its own that do ([`Algorithm::suited_to`]).
///
/// # Errors
/// [`ConfigError`] where the layout does not go with the rest of the configuration.
pub fn laid_out(
    config: KernelConfig,
    features: &Features,
    l2_bytes: u64,
) -> Result<KernelConfig, ConfigError> {
    Ok(with_loads(of_shape(config, features)?, features, l2_bytes))
}

fn of_shape(config: KernelConfig, features: &Features) -> Result<KernelConfig, ConfigError> {
    match config.algorithm() {
        Algorithm::Special(special) => {
            let value = config.types().value;
            with_layout(config, special.shape(value).for_values(value).laid_out(features, value))
        }
        algorithm => match algorithm.suited_to(features, config.types().value, config.types().x) {
            same if same == algorithm => Ok(config),
            suited => config.to_builder().algorithm(suited).build(),
        },
    }
}

/// The loads that suit a matrix with these features. One that L2 has room for stays there from product to product unless it is
/// loaded as what is not needed again: products are 1.02 to 1.1 times as fast on an H200, those of `sell_c_sigma` up to 1.9. The
/// first phase of `two_phase` has its x in shared memory, and nothing to protect.
pub fn loads(config: KernelConfig, features: &Features, l2_bytes: u64) -> Loads {
    match Footprint::of(features, config.types(), l2_bytes) {
        Footprint::Small | Footprint::InL2 => Loads::Cached,
        Footprint::BeyondL2 if matches!(config.algorithm(), Algorithm::TwoPhase(_)) => Loads::Cached,
        Footprint::BeyondL2 => Loads::Streaming,
    }
}

fn with_loads(config: KernelConfig, features: &Features, l2_bytes: u64) -> KernelConfig {
    config.with_loads(loads(config, features, l2_bytes))
}

/// As [`laid_out`], where `special` has the shape that suits most matrices like this one ([`special_layout`]).
///
/// # Errors
/// As [`laid_out`].
pub fn usually_laid_out(
    config: KernelConfig,
    features: &Features,
    l2_bytes: u64,
) -> Result<KernelConfig, ConfigError> {
    let config = match config.algorithm() {
        Algorithm::Special(_) => with_layout(config, special_layout(features, config.types().value))?,
        _ => of_shape(config, features)?,
    };
    Ok(with_loads(config, features, l2_bytes))
}

fn with_layout(config: KernelConfig, layout: SpecialLayout) -> Result<KernelConfig, ConfigError> {
    config.to_builder().algorithm(layout.parameters).threads_per_block(layout.threads_per_block).build()
}

/// What prices of `special` are for: its shape, the rest of which follows from the matrix. None for every other.
pub fn shape(config: KernelConfig) -> Option<Special> {
    match config.algorithm() {
        Algorithm::Special(special) => Some(special.shape(config.types().value)),
        _ => None,
    }
}

/// The parameters that prices are for, with their values: the algorithm's and the block size where it is not the usual one, without
/// those that follow from a matrix.
pub fn own_settings(config: KernelConfig) -> Vec<(&'static str, String)> {
    let (following, usual) = match config.algorithm() {
        Algorithm::Special(_) => (&Special::FOLLOWING[..], config.threads_per_block()),
        _ => (&Algorithm::FOLLOWING[..], KernelConfig::USUAL_THREADS_PER_BLOCK),
    };
    let own = config.algorithm().spec().parameters.len();
    let is_own = |index: usize, key: &str| {
        index < own || (key == "threads_per_block" && config.threads_per_block() != usual)
    };
    let settings = config.settings().into_iter().enumerate();
    let own = settings.filter(|(index, (key, _))| is_own(*index, key) && !following.contains(key));
    own.map(|(_, setting)| setting).collect()
}

/// The same algorithm and parameters, or of `special` the shape, for these types and this operation.
pub(crate) fn typed(
    config: KernelConfig,
    types: Types,
    operation: Operation,
) -> Result<KernelConfig, ConfigError> {
    let mut builder = config.to_builder();
    if let Some(shape) = shape(config) {
        builder = builder.algorithm(shape.for_values(types.value));
    }
    let builder = builder.value(types.value).x(types.x).y(types.y).accumulator(types.accumulator);
    builder.offset(types.offset).index(types.index).operation(operation).build()
}

/// What the configurations that have prices are for these types, in their order; `None` where a kernel does not take them. Checked
/// once: matrices are of few types.
fn all_typed(types: Types, operation: Operation) -> Arc<[Option<KernelConfig>]> {
    type Known = Vec<((Types, Operation), Arc<[Option<KernelConfig>]>)>;
    static KNOWN: Mutex<Known> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = known.iter().find(|(key, _)| *key == (types, operation)) {
        return found.clone();
    }
    let typed = |priced: &Priced| typed(priced.config, types, operation).ok();
    let found: Arc<[_]> = SM_90.priced.iter().map(typed).collect();
    known.push(((types, operation), found.clone()));
    found
}

/// What the model knows, the fastest first; where candidates are measured, those too that are there for nothing else.
fn predicted(
    to_measure: bool,
    features: &Features,
    types: Types,
    operation: Operation,
    l2_bytes: u64,
    constraints: &Constraints,
) -> Vec<Candidate> {
    let candidate = |(priced, typed): (&Priced, &Option<KernelConfig>)| {
        let config = of_shape((*typed)?, features).ok()?;
        // The matrix may have no layout of this shape.
        if shape(config) != shape(priced.config) {
            return None;
        }
        let mut prediction = priced.predict(&terms(&config, features, l2_bytes)?);
        if operation != Operation::NonTranspose {
            prediction.prepare_ms += COPY_MS[0] + COPY_MS[1] * features.nnz as f64;
        }
        Some(Candidate { config, prediction: Some(prediction), rule: String::new() })
    };
    let footprint = Footprint::of(features, types, l2_bytes);
    let counts = |(priced, _): &(&Priced, _)| {
        priced.footprint == footprint && (to_measure || priced.purpose == Purpose::Choose)
    };
    let typed = all_typed(types, operation);
    let priced = SM_90.priced.iter().zip(&*typed).filter(counts);
    let mut found: Vec<_> = priced.filter_map(candidate).collect();
    let cost = |candidate: &Candidate| {
        candidate
            .prediction
            .map_or(f64::INFINITY, |prediction| prediction.ms_of_product(constraints.products))
    };
    found.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    found
}

/// Rules of thumb: for kernels and operations that the model does not cover, and for what is left where constraints leave
/// nothing else.
fn rules(
    operation: Operation,
    features: &Features,
    types: Types,
    constraints: &Constraints,
) -> Vec<(Algorithm, String)> {
    match operation {
        Operation::Transpose => {
            let planned =
                (PlannedT::default().into(), "no copy of the values, the same bits every time".to_owned());
            let direct = (
                HolaT::default().into(),
                "equal shares for rows of any length, no copy, little to prepare".to_owned(),
            );
            let mut found = match constraints.products {
                0..WORTH_A_COPY => vec![direct, planned],
                _ => vec![planned, direct],
            };
            if constraints.max_extra_bytes.is_some() {
                found.push((NaiveT::default().into(), "needs nothing beside the matrix".to_owned()));
            }
            found
        }
        operation if operation.is_of_triangle() => {
            let rows = (SymCsr::default().into(), "no copy with both triangles".to_owned());
            mirrored_diagonals(operation, features, types).into_iter().chain([rows]).collect()
        }
        _ => {
            let mean =
                if features.num_rows == 0 { 0.0 } else { features.nnz as f64 / features.num_rows as f64 };
            if mean < 4.0 {
                let reason = format!("{mean:.1} nonzeros a row on average are fewer than 4: a thread a row");
                return vec![(CsrScalar::default().into(), reason)];
            }
            let threads_per_vector = lightspmv_width(mean);
            let reason = format!(
                "{mean:.1} nonzeros a row on average: {threads_per_vector} threads a row (LightSpMV's rule)"
            );
            vec![(CsrVector { threads_per_vector, ..CsrVector::default() }.into(), reason)]
        }
    }
}

/// `bsr` in blocks without fill, the largest that all entries are in, and in columns of these: where there are such blocks, either may
/// be the fastest of a small matrix, of which prices know too few.
fn blocks_without_fill(features: &Features) -> Vec<(Algorithm, String)> {
    const ROWS: [u32; 5] = [8, 6, 4, 3, 2];
    let is_full = |rows: &u32| features.slots_per_entry((*rows, *rows)) == Some(1.0);
    let of = |rows: u32| [1, 0].map(|cols| Bsr { block_rows: rows, block_cols: cols });
    let found = ROWS.into_iter().find(is_full).map(of);
    let reason = |bsr: Bsr| format!("blocks of {0} x {0} without fill", bsr.block_rows);
    found.into_iter().flatten().map(|bsr| (bsr.into(), reason(bsr))).collect()
}

/// Where one triangle is stored and lies on few diagonals, what reads each of its values once; the best first.
fn mirrored_diagonals(operation: Operation, features: &Features, types: Types) -> Vec<(Algorithm, String)> {
    let Some(num_diagonals) = features.num_diagonals.filter(|_| operation.is_of_triangle()) else {
        return Vec::new();
    };
    // The main diagonal and those on one side of it.
    let diagonals = num_diagonals.div_ceil(2);
    let slots = diagonals.saturating_mul(features.num_rows);
    let (nnz, value) = (least_of_triangle(features), types.value.size() as u64);
    // Beside a value, rows would read where it is and where its mirror image is.
    let has_little_fill = slots.saturating_mul(value) <= nnz.saturating_mul(value + 6);
    let reason = format!("one triangle is stored, {slots} slots on its diagonals");
    // Rows of few diagonals are many: more warps, instead of more loads of each. By 3 to 15 % on an H200, and up to 13 % the other
    // way where there are more.
    let unroll = if diagonals <= 4 { 1 } else { SymDia::default().unroll };
    let plain = SymDia { unroll, ..SymDia::default() };
    // 4 % in f32 and 5 % in f64 on an H200 with 27 points; the kernel sees for itself whether diagonals lie so. Devices with less
    // shared memory refuse it, and get the next.
    let staged = SymDia { stage_kib: 224, ..plain };
    let is_staged = (9..32).contains(&diagonals) && value >= 4;
    let staged = is_staged.then(|| (staged.into(), format!("{reason}, which bulk copies bring")));
    staged.into_iter().chain([(plain.into(), reason)]).filter(|_| has_little_fill).collect()
}

/// Entries of the stored triangle of a matrix with these features, at least.
fn least_of_triangle(features: &Features) -> u64 {
    features.nnz.div_ceil(2)
}

/// Threads a row by the mean row length: Liu and Schmidt, *LightSpMV: Faster CSR-based Sparse Matrix-Vector
/// Multiplication on CUDA-enabled GPUs* (ASAP 2015).
fn lightspmv_width(row_nnz_mean: f64) -> u32 {
    match row_nnz_mean {
        mean if mean <= 2.0 => 2,
        mean if mean <= 4.0 => 4,
        mean if mean <= 64.0 => 8,
        _ => 32,
    }
}

/// Whether a configuration keeps the constraints, as far as its program and the size of the matrix tell.
fn keeps(config: &KernelConfig, features: &Features, constraints: &Constraints) -> bool {
    // Outlines take longer than the rest of a choice.
    (constraints.fill_touches_x || !multiplies_fill(config, features))
        && (!constraints.deterministic || config.outline().guarantees.bit_reproducible)
        && constraints
            .max_extra_bytes
            .is_none_or(|most| least_workspace(&config.outline(), config, features) <= most)
}

/// Bytes that a plan's workspace takes at least for a matrix of this size: what its buffers take with everything that
/// preparation will find out taken as zero, and all values where a product does not read those of the matrix, encoded where it
/// may encode them.
fn least_workspace(program: &Program, config: &KernelConfig, features: &Features) -> u64 {
    // Sizes are those of the arrays.
    let (num_rows, num_cols) = match config.operation() {
        Operation::Transpose => (features.num_cols, features.num_rows),
        _ => (features.num_rows, features.num_cols),
    };
    let nnz = match config.operation().is_of_triangle() {
        true => least_of_triangle(features),
        false => features.nnz,
    };
    let size = |variable: Variable| match variable {
        Variable::NumRows => num_rows,
        Variable::NumCols => num_cols,
        Variable::Nnz => nnz,
        _ => 0,
    };
    let kept = program.buffers.iter().filter(|buffer| !buffer.scratch);
    let buffers = kept.fold(0u64, |sum, buffer| sum.saturating_add(buffer.bytes.eval(&size)));
    let reads_values = program.multiply.iter().any(|pass| pass.args.contains(&Arg::Values));
    let value_bytes = config.algorithm().stored_value_bytes(config.types().value);
    match config.algorithm() {
        // What is read for all rows that repeat are the values of one.
        Algorithm::RowPatterns(_) => buffers,
        _ if reads_values => buffers,
        _ => buffers.max(nnz.saturating_mul(value_bytes as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prices_are_those_of_configurations_that_exist() {
        assert!(SM_90.priced.len() >= 4);
        for (place, priced) in SM_90.priced.iter().enumerate() {
            let is_same =
                |other: &Priced| other.config == priced.config && other.footprint == priced.footprint;
            assert!(!SM_90.priced[..place].iter().any(is_same), "{}", priced.config);
            assert!(
                priced.prices.iter().all(|price| price.is_finite() && *price >= 0.0),
                "{}",
                priced.config
            );
        }
    }

    #[test]
    fn candidates_are_laid_out_and_differ() {
        // Rows of 4 and of 200, 50 on average: pieces of 128 would cut them, and sorting takes away the fill.
        let mut features = Features::of_size((1 << 20, 1 << 20), 50 << 20);
        features.longest_row = 200;
        features.warp_steps = Features::THREADS_PER_ROW.map(|threads| (4 << 20) * u64::from(threads));
        let types = KernelConfig::named("csr_vector").unwrap().build().unwrap().types();
        let constraints = Constraints::default();
        let to_measure = |l2_bytes| {
            candidates_to_measure(&features, types, Operation::NonTranspose, l2_bytes, &constraints).unwrap()
        };
        let found = to_measure(50 << 20);
        for (place, candidate) in found.iter().enumerate() {
            assert!(
                !found[..place].iter().any(|other| other.config == candidate.config),
                "{}",
                candidate.config
            );
            assert_eq!(laid_out(candidate.config, &features, 50 << 20).unwrap(), candidate.config);
            let is_cached = matches!(candidate.config.algorithm(), Algorithm::TwoPhase(_));
            assert_eq!(candidate.config.loads() == Loads::Cached, is_cached, "{}", candidate.config);
            if let Algorithm::Special(special) = candidate.config.algorithm() {
                assert!(special.piece >= 200 && special.sigma > 1 && special.resident == 0, "{special:?}");
            }
        }
        let in_l2 = to_measure(2 << 30);
        assert!(in_l2.len() > 2 && in_l2.iter().all(|candidate| candidate.config.loads() == Loads::Cached));
        let to_choose =
            candidates(&features, types, Operation::NonTranspose, 50 << 20, &constraints).unwrap();
        let specials =
            |found: &[Candidate]| found.iter().filter(|candidate| shape(candidate.config).is_some()).count();
        assert!(specials(&found) > specials(&to_choose) && specials(&to_choose) > 2);
        // What would be chosen is measured first, then all in the order of what is expected of them.
        let expected =
            |candidate: &Candidate| candidate.prediction.map(|prediction| prediction.ms_of_product(1000));
        let predicted: Vec<f64> = found.iter().filter_map(expected).collect();
        assert!(predicted[1..].is_sorted() && predicted.len() > to_choose.len());
        assert_eq!(found[0].config, to_choose[0].config);
        let constraints = Constraints { max_extra_bytes: Some(1 << 16), deterministic: true, ..constraints };
        let first = [candidates, candidates_to_measure].map(|list| {
            list(&features, types, Operation::NonTranspose, 50 << 20, &constraints).unwrap()[0].config
        });
        assert_eq!(first[0], first[1]);
    }

    #[test]
    fn rows_that_repeat_are_measured_early() {
        let mut features = Features::of_size((1 << 16, 1 << 16), 5 << 16);
        (features.longest_row, features.num_diagonals, features.different_rows) = (5, Some(5), Some(1));
        features.warp_steps = Features::THREADS_PER_ROW.map(|threads| 5 * (2 << 10) * u64::from(threads));
        let types = KernelConfig::named("csr_vector").unwrap().build().unwrap().types();
        let constraints = Constraints::default();
        let place = |to_measure, l2_bytes| {
            let list = if to_measure { candidates_to_measure } else { candidates };
            let found = list(&features, types, Operation::NonTranspose, l2_bytes, &constraints);
            let repeats =
                |candidate: &Candidate| matches!(candidate.config.algorithm(), Algorithm::RowPatterns(_));
            found.unwrap().iter().position(repeats)
        };
        assert_eq!([place(true, 50 << 20), place(false, 50 << 20)], [Some(1), None]);
        assert_eq!([place(true, 1 << 20), place(false, 1 << 20)], [Some(0), Some(0)]);
    }

    #[test]
    fn blocks_without_fill_are_measured_early() {
        let mut features = Features::of_size((3 << 12, 3 << 12), 81 << 12);
        (features.longest_row, features.grouped) = (81, 900);
        features.warp_steps = Features::THREADS_PER_ROW.map(|threads| 81 * 96 * u64::from(threads));
        let types = KernelConfig::named("csr_vector").unwrap().build().unwrap().types();
        let constraints = Constraints::default();
        let places = |to_measure, features: &Features| {
            let list = if to_measure { candidates_to_measure } else { candidates };
            let found = list(features, types, Operation::NonTranspose, 50 << 20, &constraints).unwrap();
            let is_of_blocks = |cols, candidate: &Candidate| match candidate.config.algorithm() {
                Algorithm::Bsr(bsr) => (bsr.block_rows, bsr.block_cols) == (3, cols),
                _ => false,
            };
            [0, 1].map(|cols| found.iter().position(|candidate| is_of_blocks(cols, candidate)))
        };
        for (index, (rows, cols)) in Features::BLOCK_SHAPES.into_iter().enumerate() {
            let fill = if (rows, cols) == (3, 3) { 1 } else { 2 };
            features.blocks[index] = fill * 900 / u64::from(rows * cols);
        }
        // Behind what would be chosen, which is the first of them where prices say so; no price is of the second.
        let to_choose = places(false, &features);
        let first = usize::from(to_choose[0] != Some(0));
        assert_eq!(places(true, &features), [Some(first), Some(first + 1)]);
        assert_eq!(to_choose[1], None);
        features.blocks[1] += 1;
        assert_eq!(places(true, &features), [None, None]);
    }

    #[test]
    fn mirrored_diagonals_come_first_where_l2_has_no_room() {
        let mut features = Features::of_size((1 << 16, 1 << 16), 5 << 16);
        (features.longest_row, features.num_diagonals) = (5, Some(5));
        features.warp_steps = Features::THREADS_PER_ROW.map(|threads| 5 * (2 << 10) * u64::from(threads));
        let types = KernelConfig::named("csr_vector").unwrap().build().unwrap().types();
        let names = |features: &Features, l2_bytes, products| {
            let constraints = Constraints { products, ..Constraints::default() };
            let found = candidates(features, types, Operation::Symmetric, l2_bytes, &constraints).unwrap();
            assert!(found.iter().all(|candidate| candidate.config.operation() == Operation::Symmetric));
            found.iter().map(|candidate| candidate.config.algorithm().name()).collect::<Vec<_>>()
        };
        let (beyond, within) = (names(&features, 1 << 20, 1000), names(&features, 50 << 20, 1000));
        assert_eq!(beyond[0], "sym_dia");
        assert!(within[0] != "sym_dia" && within.ends_with(&["sym_dia", "sym_csr"]), "{within:?}");
        assert_ne!(names(&features, 1 << 20, 1)[0], "sym_dia");
        // Three of the five hold an entry in five.
        features.nnz = 2 << 16;
        let filled = names(&features, 1 << 20, 1000);
        assert!(!filled.contains(&"sym_dia") && filled.ends_with(&["sym_csr"]), "{filled:?}");
        let parameters = |diagonals: u64| {
            let mut features = features;
            (features.num_diagonals, features.nnz) = (Some(diagonals), diagonals << 16);
            let found = mirrored_diagonals(Operation::Symmetric, &features, types).into_iter();
            let parameters = found.map(|(algorithm, _)| match algorithm {
                Algorithm::SymDia(parameters) => (parameters.unroll, parameters.stage_kib),
                other => panic!("{other:?}"),
            });
            parameters.collect::<Vec<_>>()
        };
        assert_eq!([3, 7].map(parameters), [[(1, 0)], [(1, 0)]]);
        assert_eq!([9, 15, 63].map(parameters), [[(2, 0)], [(2, 0)], [(2, 0)]]);
        assert_eq!(
            [17, 27, 61].map(parameters),
            [[(2, 224), (2, 0)], [(2, 224), (2, 0)], [(2, 224), (2, 0)]]
        );
    }

    #[test]
    fn values_that_are_encoded_need_less_memory() {
        let features = Features::of_size((1 << 20, 1 << 20), 1 << 24);
        let least = |encoding: &str| {
            let config =
                KernelConfig::from_settings("special", [("value", "f64"), ("encoding", encoding)]).unwrap();
            least_workspace(&config.outline(), &config, &features) >> 24
        };
        assert_eq!(["0", "1", "2"].map(least), [8, 4, 1]);
    }

    #[test]
    fn rules_of_thumb_follow_the_mean_row_length() {
        assert_eq!([0.0, 2.0, 2.1, 4.0, 4.1, 64.0, 64.1].map(lightspmv_width), [2, 2, 4, 4, 8, 8, 32]);
    }
}
