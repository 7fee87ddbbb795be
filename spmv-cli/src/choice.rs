//! Which kernel a matrix gets where nobody says.

use spmv_runtime::codegen::{
    Algorithm, COMMON_KEYS, FUNCTION_KEYS, Features, KernelConfig, KernelConfigBuilder, Operation, Types,
    ValueKind, ValueType,
};
use spmv_runtime::planner::{self, Candidate};
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::tuning::{Choice, Question, Unit};
use spmv_runtime::{Constraints, Device};

use crate::device::{DeviceChoice, Opened, open};
use crate::failure::{Failure, Kind};
use crate::quantity;
use crate::settings::SettingArgs;

/// What a choice must respect.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ConstraintArgs {
    /// Choose only among kernels that give the same bits in every run, on every device of one architecture
    #[arg(long)]
    pub deterministic: bool,
    /// Choose only among kernels that take any values: those of the matrix will be replaced
    #[arg(long)]
    pub values_change: bool,
    /// Choose a kernel that pays off over so many products [default: 1000]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = quantity::parse_whole::<u64>)]
    pub products: Option<u64>,
    /// Choose only among kernels that take at most so much memory beside the matrix: 0, 64M, 2G
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = quantity::parse_bytes)]
    pub max_extra_bytes: Option<u64>,
}

impl ConstraintArgs {
    /// Whether any is given.
    pub fn is_given(&self) -> bool {
        self.deterministic || self.values_change || self.products.is_some() || self.max_extra_bytes.is_some()
    }

    pub fn constraints(&self) -> Constraints {
        let mut constraints = Constraints::default();
        constraints.deterministic = self.deterministic;
        constraints.values_change = self.values_change;
        constraints.products = self.products.unwrap_or(constraints.products);
        constraints.max_extra_bytes = self.max_extra_bytes;
        constraints
    }
}

/// The configurations for a product of the arrays with these features, the best first, all of which have these settings;
/// `types` are those of matrix and vectors, `l2_bytes` is the device's L2 cache.
pub fn choose(
    operation: Operation,
    features: &Features,
    types: Types,
    l2_bytes: u64,
    constraints: &Constraints,
    settings: &SettingArgs,
) -> Result<Vec<Candidate>, Failure> {
    // Of truth values there are no sums, for which the planner chooses; numbers of their size take as long.
    let types = match types.accumulator.kind() {
        ValueKind::Bool => {
            let builder = KernelConfig::named("csr_vector")?.value(ValueType::I8).offset(types.offset);
            builder.build()?.types()
        }
        _ => types,
    };
    let mut found = planner::candidates(features, types, operation, l2_bytes, constraints)?;
    let semiring = settings.get("semiring").and_then(|name| name.parse().ok()).unwrap_or_default();
    let has = |config: &KernelConfig, key: &String| {
        let mut own = config.algorithm().spec().parameters.iter().map(|parameter| parameter.name);
        let mut common = COMMON_KEYS.iter().map(|common| common.name);
        let mut written = FUNCTION_KEYS.iter().map(|function| function.name);
        own.any(|known| known == key) || common.any(|known| known == key) || written.any(|known| known == key)
    };
    found.retain(|candidate| {
        settings.settings.iter().all(|(key, _)| has(&candidate.config, key))
            && candidate.config.algorithm().spec().semirings.contains(&semiring)
    });
    if !found.is_empty() {
        return Ok(found);
    }
    let given: Vec<_> = settings.settings.iter().map(|(key, _)| format!("`{key}`")).collect();
    let constrained = *constraints != Constraints::default();
    let has = format!("has all of {}", given.join(", "));
    let wanted = match (given.is_empty(), constrained) {
        (true, _) => "keeps the constraints".to_owned(),
        (false, true) => format!("{has} and keeps the constraints"),
        (false, false) => has,
    };
    let help = match constrained {
        true => "allow more, or leave the constraints out and name a kernel with --algorithm",
        false => "name one with --algorithm",
    };
    Err(Failure::new(Kind::Usage, format!("no kernel that would be chosen {wanted}")).help(help))
}

/// Refuses kernels whose products nothing verifies.
pub fn check_verifiable(config: &KernelConfig) -> Result<(), Failure> {
    if !config.user_functions().stores() {
        return Ok(());
    }
    let message =
        "what an epilogue or a dot makes of a row's rounding is its own, so nothing verifies such a product";
    Err(Failure::new(Kind::Usage, message)
        .help("`spmv gen` prints the kernel, `spmv compile` compiles it, and the library runs it"))
}

/// The device that `spmv run` would take, where it could.
pub fn device_of_run() -> Option<Device> {
    match open(DeviceChoice::Auto, Schedule::Natural) {
        Ok(Opened::Device(device, _)) => Some(device),
        _ => None,
    }
}

/// Of a device; where there is none, of the GPU that the prices were measured on.
pub fn l2_bytes(device: Option<&Device>) -> u64 {
    device.map_or(planner::MEASURED_L2_BYTES, planner::l2_bytes)
}

/// The algorithm with its parameters, block size and loads; all else is by default.
pub fn by_default(config: &KernelConfig) -> KernelConfigBuilder {
    let builder = KernelConfig::builder(config.algorithm()).threads_per_block(config.threads_per_block());
    builder.loads(config.loads())
}

/// What `spmv tune` found on this device, and what to say of it.
pub fn tuned(device: &Device, question: &Question) -> Option<(Choice, String)> {
    let choice = question.choice(device.compiler().disk())?;
    let time = match choice.unit {
        Unit::Milliseconds => quantity::milliseconds(choice.product),
        _ => format!("{} counted", quantity::count(choice.product as usize)),
    };
    Some((choice, format!("`spmv tune` found it to be the fastest, {time} a product")))
}

/// What `spmv tune` found for the structure on this device, and what to say of it for a matrix with these features: its values may
/// be others than those that were tuned with.
pub fn tuned_for(device: &Device, question: &Question, features: &Features) -> Option<(Choice, String)> {
    let (choice, mut reason) = tuned(device, question)?;
    if matches!(choice.config.algorithm(), Algorithm::RowPatterns(_)) && !features.rows_repeat() {
        reason += "; rows do not repeat here, so `spmv run` may pass it over";
    }
    Some((choice, reason))
}
