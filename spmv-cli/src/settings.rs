//! The settings of a kernel as they are given on the command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use spmv_runtime::codegen::{
    Algorithm, COMMON_KEYS, FUNCTION_KEYS, IndexType, KernelConfig, KernelConfigBuilder, Operation, Semiring,
    Types, UnknownName, ValueKind, ValueType,
};

use crate::failure::{Failure, Kind};
use crate::reading::{self, Header};

/// `--set`, `--value`, `--semiring` and `--transpose`.
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
    /// Multiply with the transpose; short for --set operation=transpose
    #[arg(long)]
    pub transpose: bool,
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
        let semiring = self.semiring.map(|semiring| ("semiring", semiring.name()));
        let operation = self.transpose.then_some(("operation", Operation::Transpose.name()));
        [value, semiring, operation].into_iter().flatten()
    }

    /// The types that are given, with what follows from them, and offsets of this type.
    pub fn types(&self, offset: IndexType) -> Result<Types, Failure> {
        let mut builder = KernelConfig::named("csr_vector")?.offset(offset);
        for key in ["semiring", "value", "x", "y", "accumulator", "offset", "index"] {
            if let Some(value) = self.get(key) {
                builder.set(key, value)?;
            }
        }
        Ok(builder.build()?.types())
    }

    /// The types of values and offsets that a file is read with: what is given, else those that suffice for it, which count as
    /// given then.
    pub fn types_of_file(&mut self, header: Option<&Header>) -> Result<(ValueType, IndexType), Failure> {
        let usual = reading::usual_value(header);
        if usual != ValueType::F32 && self.get("value").is_none() {
            self.value = Some(usual);
        }
        let unknown = |error: UnknownName| Failure::new(Kind::Usage, error.to_string());
        let value = self.get("value").map_or(Ok(usual), str::parse).map_err(unknown)?;
        let offset =
            self.get("offset").map_or(Ok(reading::offset_type(header)), str::parse).map_err(unknown)?;
        Ok((value, offset))
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

    /// Whether every key is that of some algorithm, and set once.
    pub fn check_keys(&self) -> Result<(), Failure> {
        self.check_repeated()?;
        let own = Algorithm::ALL.iter().flat_map(|spec| spec.parameters).map(|parameter| parameter.name);
        let common = COMMON_KEYS.iter().map(|key| key.name);
        let all: Vec<&str> = own.chain(common).chain(FUNCTION_KEYS.iter().map(|key| key.name)).collect();
        let Some((key, _)) = self.settings.iter().find(|(key, _)| !all.contains(&key.as_str())) else {
            return Ok(());
        };
        let distance = |candidate: &str| strsim::osa_distance(key, candidate);
        let nearest = all.iter().copied().min_by_key(|candidate| distance(candidate));
        let meant = match nearest.filter(|nearest| distance(nearest) <= nearest.len() / 3) {
            Some(nearest) => format!("; did you mean `{nearest}`?"),
            None => String::new(),
        };
        Err(Failure::new(Kind::Usage, format!("no algorithm has a setting `{key}`{meant}"))
            .help("`spmv algorithms` lists every algorithm, setting and allowed value"))
    }

    /// Whether nothing but types and the operation is set: what `spmv tune` found is for those.
    pub fn are_plain(&self) -> bool {
        self.semiring.is_none_or(|semiring| semiring == Semiring::default())
            && self.settings.iter().all(|(key, _)| key == "value" || key == "operation")
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

/// Accepts the names of types whose sums of products there are: truth values have none.
pub fn summed_types() -> impl TypedValueParser<Value = ValueType> {
    let summed = ValueType::ALL.iter().filter(|value| value.kind() != ValueKind::Bool);
    PossibleValuesParser::new(summed.map(|value| value.name())).try_map(|name| name.parse::<ValueType>())
}

/// Calls a method with the types of values and of offsets, which are known at run time, as its parameters.
macro_rules! with_types {
    ($value:expr, $offset:expr, $object:ident.$method:ident $arguments:tt) => {
        match $value {
            ValueType::F16 => with_types!(@offset $offset, $object.$method::<f16> $arguments),
            ValueType::Bf16 => with_types!(@offset $offset, $object.$method::<bf16> $arguments),
            ValueType::F32 => with_types!(@offset $offset, $object.$method::<f32> $arguments),
            ValueType::F64 => with_types!(@offset $offset, $object.$method::<f64> $arguments),
            ValueType::I8 => with_types!(@offset $offset, $object.$method::<i8> $arguments),
            ValueType::I32 => with_types!(@offset $offset, $object.$method::<i32> $arguments),
            ValueType::I64 => with_types!(@offset $offset, $object.$method::<i64> $arguments),
            ValueType::U32 => with_types!(@offset $offset, $object.$method::<u32> $arguments),
            ValueType::Bool => with_types!(@offset $offset, $object.$method::<bool> $arguments),
            ValueType::C32 => with_types!(@offset $offset, $object.$method::<Complex32> $arguments),
            _ => with_types!(@offset $offset, $object.$method::<Complex64> $arguments),
        }
    };
    (@offset $offset:expr, $object:ident.$method:ident::<$value:ty> ($($argument:expr),*)) => {
        match $offset {
            IndexType::U32 => $object.$method::<$value, u32>($($argument),*),
            _ => $object.$method::<$value, u64>($($argument),*),
        }
    };
}
pub(crate) use with_types;

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
