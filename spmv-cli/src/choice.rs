//! Which kernel a matrix gets where nobody says.

use spmv_runtime::Constraints;
use spmv_runtime::codegen::{COMMON_KEYS, FUNCTION_KEYS, Features, KernelConfig, Operation, Types};
use spmv_runtime::planner::{self, Candidate};

use crate::failure::{Failure, Kind};
use crate::quantity;
use crate::settings::SettingArgs;

/// What a choice must respect.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ConstraintArgs {
    /// Choose only among kernels that give the same bits in every run
    #[arg(long)]
    pub deterministic: bool,
    /// Choose only among kernels that take any values: those of the matrix will be replaced
    #[arg(long)]
    pub values_change: bool,
    /// Choose a kernel that pays off over so many products [default: 1000]
    #[arg(long, value_name = "N", value_parser = quantity::parse_whole::<u64>)]
    pub products: Option<u64>,
    /// Choose only among kernels that take at most so much memory beside the matrix: 0, 64M, 2G
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse_bytes)]
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
    match found.is_empty() {
        false => Ok(found),
        true => Err(Failure::new(
            Kind::Usage,
            "no kernel that would be chosen has these settings and constraints".to_owned(),
        )
        .help("name one with --algorithm, or allow more")),
    }
}
