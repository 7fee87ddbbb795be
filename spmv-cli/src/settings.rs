//! The settings of a kernel as they are given on the command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use spmv_runtime::codegen::{
    Algorithm, IndexType, KernelConfig, KernelConfigBuilder, Semiring, Types, ValueKind, ValueType,
};

use crate::failure::{Failure, Kind};

/// `--set`, `--value` and `--semiring`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SettingArgs {
    /// A parameter of the algorithm, a common setting or a function; may be repeated (`spmv algorithms` lists them)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub settings: Vec<(String, String)>,
    /// Type of the matrix values, and of x, y and sums where they are not set apart; short for --set value=TYPE
    /// [default: f32]
    #[arg(long, value_name = "TYPE", value_parser = value_types())]
    pub value: Option<ValueType>,
    /// What entries are combined and rows reduced with; short for --set semiring=NAME [default: plus_times]
    #[arg(long, value_name = "NAME", value_parser = semirings())]
    pub semiring: Option<Semiring>,
}

impl SettingArgs {
    /// The value of a key, where it is given.
    pub fn get(&self, key: &str) -> Option<&str> {
        if let Some((_, value)) = self.short().find(|(given, _)| *given == key) {
            return Some(value);
        }
        self.settings.iter().find(|(given, _)| given == key).map(|(_, value)| value.as_str())
    }

    /// The settings that have an option of their own.
    fn short(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let value = self.value.map(|value| ("value", value.name()));
        value.into_iter().chain(self.semiring.map(|semiring| ("semiring", semiring.name())))
    }

    /// The types that are given, with what follows from them, and offsets of this type.
    pub fn types(&self, offset: IndexType) -> Result<Types, Failure> {
        let mut builder = KernelConfig::named("csr_vector")?.offset(offset);
        for key in ["value", "x", "y", "accumulator", "offset", "index"] {
            if let Some(value) = self.get(key) {
                builder.set(key, value)?;
            }
        }
        Ok(builder.build()?.types())
    }

    /// Sets everything that is given.
    pub fn apply(&self, builder: &mut KernelConfigBuilder) -> Result<(), Failure> {
        self.check_repeated()?;
        for (key, value) in self.short() {
            builder.set(key, value)?;
        }
        for (key, value) in &self.settings {
            builder.set(key, value)?;
        }
        Ok(())
    }

    fn check_repeated(&self) -> Result<(), Failure> {
        let mut keys: Vec<&str> = self.settings.iter().map(|(key, _)| key.as_str()).collect();
        keys.extend(self.short().map(|(key, _)| key));
        check_repeated(keys)
    }
}

/// Whether every key is set once.
pub fn check_repeated(mut keys: Vec<&str>) -> Result<(), Failure> {
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Failure::new(Kind::Usage, format!("`{}` is set twice", pair[0]))),
        None => Ok(()),
    }
}

/// `--algorithm` and the settings, where an algorithm must be named.
#[derive(Clone, Debug, clap::Args)]
pub struct KernelArgs {
    /// The algorithm (`spmv algorithms` says what each is good for)
    #[arg(long, value_name = "NAME", value_parser = algorithm_names())]
    pub algorithm: String,
    #[command(flatten)]
    pub settings: SettingArgs,
}

impl KernelArgs {
    /// The configuration.
    pub fn config(&self) -> Result<KernelConfig, Failure> {
        let mut builder = KernelConfig::named(&self.algorithm)?;
        self.settings.apply(&mut builder)?;
        Ok(builder.build()?)
    }
}

/// Accepts the names of algorithms.
pub fn algorithm_names() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(Algorithm::ALL.iter().map(|spec| spec.name))
}

/// Accepts the names of value types.
pub fn value_types() -> impl TypedValueParser<Value = ValueType> {
    PossibleValuesParser::new(ValueType::ALL.iter().map(|value| value.name()))
        .try_map(|name| name.parse::<ValueType>())
}

/// Accepts the names of floating-point types, which others than kernels of ours take too.
pub fn float_types() -> impl TypedValueParser<Value = ValueType> {
    let floats = ValueType::ALL.iter().filter(|value| value.kind() == ValueKind::Float);
    PossibleValuesParser::new(floats.map(|value| value.name())).try_map(|name| name.parse::<ValueType>())
}

/// Accepts the names of types that are not complex.
pub fn real_types() -> impl TypedValueParser<Value = ValueType> {
    let reals = ValueType::ALL.iter().filter(|value| value.kind() != ValueKind::Complex);
    PossibleValuesParser::new(reals.map(|value| value.name())).try_map(|name| name.parse::<ValueType>())
}

/// Accepts the names of semirings.
fn semirings() -> impl TypedValueParser<Value = Semiring> {
    PossibleValuesParser::new(Semiring::ALL.iter().map(|semiring| semiring.name()))
        .try_map(|name| name.parse::<Semiring>())
}

/// Splits `key=value`.
pub fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("a setting is written key=value".to_owned()),
    }
}
