//! A checked configuration: one algorithm, its parameters, types, operation, scaling and block size.

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use crate::algorithm::{Algorithm, AlgorithmSpec};
use crate::copies::MatrixCopy;
use crate::dot::DotBins;
use crate::error::UnknownName;
use crate::expr::{Expr, Variable};
use crate::function::FunctionError;
use crate::operators::Operators;
use crate::program::{Arg, Operand, Program, Slots};
use crate::semiring::Semiring;
use crate::source;
use crate::types::{IndexType, Operation, StorageFormat, ValueKind, ValueType};
use crate::user::{FUNCTION_KEYS, FunctionKey, UserFunctions};

/// Types of everything a product touches, each named on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Types {
    /// Matrix values.
    pub value: ValueType,
    /// Entries of x.
    pub x: ValueType,
    /// Entries of y.
    pub y: ValueType,
    /// What a row is summed in; also the type of α and β.
    pub accumulator: ValueType,
    /// Row offsets.
    pub offset: IndexType,
    /// Column indices.
    pub index: IndexType,
}

/// What is known of α or β when a kernel is generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Coefficient {
    /// Nothing: it is passed by value to every product.
    #[default]
    Any,
    /// Nothing: it lies in device memory, as a number of the type of sums, and kernels read it there.
    OnDevice,
    /// It is 0. As β: y is stored without being read.
    Zero,
    /// It is 1.
    One,
    /// It is −1.
    MinusOne,
}

/// How a kernel loads what a product reads once: the matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Loads {
    /// As data that is not needed again soon (`__ldcs`), so that caches keep x: where the L2 cache has no room for the matrix.
    #[default]
    Streaming,
    /// As what may be needed again (`__ldg`): where it has, and products follow one another.
    Cached,
}

impl Loads {
    /// Both, as they are written in a configuration.
    pub const NAMES: &'static [(&'static str, Loads)] =
        &[("streaming", Loads::Streaming), ("cached", Loads::Cached)];

    /// As it is written in a configuration: `streaming` or `cached`.
    pub fn name(self) -> &'static str {
        let entry = Self::NAMES.iter().find(|(_, loads)| *loads == self);
        entry.expect("both have a name").0
    }
}

impl Coefficient {
    /// Every coefficient, as it is written in a configuration.
    pub const NAMES: &'static [(&'static str, Coefficient)] = &[
        ("any", Coefficient::Any),
        ("device", Coefficient::OnDevice),
        ("0", Coefficient::Zero),
        ("1", Coefficient::One),
        ("-1", Coefficient::MinusOne),
    ];

    /// As it is written in a configuration: `any`, `device`, `0`, `1` or `-1`.
    pub fn name(self) -> &'static str {
        let entry = Self::NAMES.iter().find(|(_, coefficient)| *coefficient == self);
        entry.expect("every coefficient has a name").0
    }

    /// The value where it is known.
    pub fn known(self) -> Option<f64> {
        match self {
            Coefficient::Any | Coefficient::OnDevice => None,
            Coefficient::Zero => Some(0.0),
            Coefficient::One => Some(1.0),
            Coefficient::MinusOne => Some(-1.0),
        }
    }

    pub(crate) fn cuda(self) -> &'static str {
        match self {
            Coefficient::Any | Coefficient::OnDevice => "kAny",
            Coefficient::Zero => "kZero",
            Coefficient::One => "kOne",
            Coefficient::MinusOne => "kMinusOne",
        }
    }

    /// The type of a kernel's parameter for it.
    pub(crate) fn cuda_type(self) -> &'static str {
        match self {
            Coefficient::OnDevice => "OnDevice<AccumT>",
            _ => "AccumT",
        }
    }
}

/// What is known of α and β when a kernel is generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scaling {
    /// α. Never [`Coefficient::Zero`].
    pub alpha: Coefficient,
    /// β.
    pub beta: Coefficient,
}

impl Scaling {
    /// Whether α or β is read from device memory.
    pub(crate) fn is_on_device(self) -> bool {
        [self.alpha, self.beta].contains(&Coefficient::OnDevice)
    }
}

/// What the user writes who writes nothing.
static NO_FUNCTIONS: LazyLock<UserFunctions> = LazyLock::new(UserFunctions::default);

/// A configuration that is allowed: whatever holds one can generate a [`Program`] without failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelConfig {
    algorithm: Algorithm,
    types: Types,
    operation: Operation,
    semiring: Semiring,
    /// `None` where the user writes nothing.
    user: Option<&'static UserFunctions>,
    scaling: Scaling,
    threads_per_block: u32,
    loads: Loads,
}

impl KernelConfig {
    /// Starts a configuration. Everything has a default: f32 throughout, 32-bit offsets, any α and β.
    ///
    /// ```
    /// use spmv_codegen::{CsrVector, KernelConfig, ValueType};
    ///
    /// let config = KernelConfig::builder(CsrVector { threads_per_vector: 4, ..CsrVector::default() }).value(ValueType::F64).build()?;
    /// assert!(config.program().source.contains("kThreadsPerVector = 4"));
    /// # Ok::<(), spmv_codegen::ConfigError>(())
    /// ```
    pub fn builder(algorithm: impl Into<Algorithm>) -> KernelConfigBuilder {
        KernelConfigBuilder {
            algorithm: algorithm.into(),
            value: ValueType::F32,
            x: None,
            y: None,
            accumulator: None,
            offset: IndexType::U32,
            index: IndexType::U32,
            operation: None,
            semiring: Semiring::default(),
            user: None,
            alpha: None,
            beta: None,
            threads_per_block: None,
            loads: Loads::default(),
        }
    }

    /// Starts a configuration from an algorithm's name, with its parameters at their defaults.
    ///
    /// # Errors
    /// [`ConfigError::Algorithm`] where there is no algorithm of that name.
    pub fn named(algorithm: &str) -> Result<KernelConfigBuilder, ConfigError> {
        match AlgorithmSpec::find(algorithm) {
            Some(spec) => Ok(Self::builder((spec.default)())),
            None => Err(ConfigError::Algorithm(UnknownName {
                what: "algorithm",
                name: algorithm.to_owned(),
                allowed: Algorithm::ALL.iter().map(|spec| spec.name).collect(),
            })),
        }
    }

    /// The configuration that an algorithm's name and settings in text describe; the inverse of
    /// [`settings`](Self::settings). Of several for one key the last counts.
    ///
    /// # Errors
    /// The first of what [`named`](Self::named), [`set`](KernelConfigBuilder::set) and
    /// [`build`](KernelConfigBuilder::build) refuse.
    pub fn from_settings<'a>(
        algorithm: &str,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<KernelConfig, ConfigError> {
        let mut builder = Self::named(algorithm)?;
        settings.into_iter().try_for_each(|(key, value)| builder.set(key, value))?;
        builder.build()
    }

    /// The algorithm and its parameters.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The types.
    pub fn types(&self) -> Types {
        self.types
    }

    /// op(A).
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// What it combines and reduces with.
    pub fn semiring(&self) -> Semiring {
        self.semiring
    }

    /// What of the product the user writes.
    pub fn user_functions(&self) -> &'static UserFunctions {
        self.user.unwrap_or(&NO_FUNCTIONS)
    }

    /// What is known of α and β.
    pub fn scaling(&self) -> Scaling {
        self.scaling
    }

    /// Threads a block.
    pub fn threads_per_block(&self) -> u32 {
        self.threads_per_block
    }

    /// How what a product reads once is loaded.
    pub fn loads(&self) -> Loads {
        self.loads
    }

    /// The same with the matrix loaded so, which every kernel can.
    #[must_use]
    pub fn with_loads(self, loads: Loads) -> KernelConfig {
        KernelConfig { loads, ..self }
    }

    /// What is computed in place of sums of products; `None` where they are what is computed, maps or none.
    pub fn replaces_sums(&self) -> Option<&'static str> {
        let user = self.user_functions();
        match self.semiring {
            _ if user.combine.is_some() || user.reduce.is_some() => Some("functions of the user's"),
            Semiring::PlusTimes => None,
            semiring => Some(semiring.name()),
        }
    }

    /// The most rows and columns that the column indices serve, of the matrix whose arrays kernels are given. The columns of
    /// a transposed copy are its rows.
    pub fn max_size(&self) -> (u64, u64) {
        let narrow = u64::from(self.algorithm.spec().narrow_columns);
        match self.types.index {
            IndexType::U16 => match MatrixCopy::of(self) {
                Some(copy) => copy.max_size(narrow, IndexType::MAX_NARROW_COLUMNS),
                None => (u64::MAX, narrow),
            },
            _ => (u64::MAX, u64::MAX),
        }
    }

    /// What of α and β, in this order, a product may not have, and what it may: only sums of products are scaled, and with
    /// an epilogue or a dot the user says what is stored.
    pub fn refused_scaling(&self, alpha: f64, beta: f64) -> Option<(&'static str, f64, &'static str)> {
        let user_stores = self.user_functions().stores();
        match self.replaces_sums() {
            None if !user_stores => None,
            _ if alpha != 1.0 => Some(("alpha", alpha, "1")),
            _ if beta != 0.0 && user_stores => Some(("beta", beta, "0")),
            _ if beta != 0.0 && beta != 1.0 => Some(("beta", beta, "0, 1")),
            _ => None,
        }
    }

    /// Generates the program: a pure function, the same bytes every time.
    pub fn program(&self) -> Program {
        Program { source: source::program_source(self), ..self.outline() }
    }

    /// The program with an empty source, which takes longer to generate than everything else.
    pub fn outline(&self) -> Program {
        let mut plan = self.algorithm.plans().plan(self);
        let mut slots = self.algorithm.plans().slots(self);
        let mut misfits: Vec<_> = self.algorithm.plans().misfits(self).into_iter().collect();
        let mut entries = Expr::from(Variable::Nnz);
        if let Some(copy) = MatrixCopy::of(self) {
            plan = copy.serve(plan, self);
            entries = copy.size(&entries);
            slots = slots.map(|slots| Slots { number: copy.size(&slots.number), ..slots });
            misfits.iter_mut().for_each(|misfits| misfits.number = copy.size(&misfits.number));
            misfits.extend(copy.misfits());
        }
        let mut operands = self.operands();
        if self.user_functions().stores() {
            let args = plan.multiply.iter_mut().flat_map(|pass| &mut pass.args);
            args.filter(|arg| matches!(arg, Arg::Beta(_))).for_each(|beta| *beta = Arg::Operands);
        }
        let dot = self.user_functions().dot.as_ref().map(|_| {
            let (dot, bins) = (DotBins::of(self.types.accumulator), plan.buffers.len());
            plan.buffers.extend(dot.buffers());
            plan.multiply.push(dot.pass(bins, bins + 1));
            operands.push(Operand::Buffer(bins));
            bins + 1
        });
        for arg in plan.multiply.iter_mut().flat_map(|pass| &mut pass.args) {
            match *arg {
                Arg::Alpha(value) if self.scaling.alpha == Coefficient::OnDevice => {
                    *arg = Arg::AlphaOnDevice(value);
                }
                Arg::Beta(value) if self.scaling.beta == Coefficient::OnDevice => {
                    *arg = Arg::BetaOnDevice(value);
                }
                _ => {}
            }
        }
        Program {
            source: String::new(),
            operands,
            dot,
            prepare: plan.prepare,
            multiply: plan.multiply,
            buffers: plan.buffers,
            counts: plan.counts,
            entries,
            slots,
            misfits,
            storage: match self.operation {
                Operation::Symmetric => StorageFormat::Symmetric,
                Operation::SkewSymmetric => StorageFormat::SkewSymmetric,
                Operation::Hermitian => StorageFormat::Hermitian,
                _ => StorageFormat::Csr,
            },
            guarantees: plan.guarantees,
        }
    }

    /// Every setting as (key, value): the algorithm's parameters first, then the common keys; the semiring where it is
    /// not plus_times, loads where they are not streaming; the functions that are written.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let parameters = self.algorithm.spec().parameters.iter().zip(self.algorithm.parameter_values());
        let mut settings: Vec<_> = parameters.map(|(spec, value)| (spec.name, value.to_string())).collect();
        let told = |key: &&CommonKey| match key.name {
            SEMIRING => self.semiring != Semiring::PlusTimes,
            LOADS => self.loads != Loads::Streaming,
            _ => true,
        };
        settings.extend(COMMON_KEYS.iter().filter(told).map(|key| (key.name, (key.get)(self))));
        if let Some(user) = self.user {
            settings.extend(FUNCTION_KEYS.iter().filter_map(|key| Some((key.name, key.of(user)?))));
        }
        settings
    }

    /// What epilogue and dot take beside the row.
    fn operands(&self) -> Vec<Operand> {
        let operand = |(name, is_vector): (&str, bool)| match is_vector {
            true => Operand::Vector { name: name.to_owned(), value: self.types.y },
            false => Operand::Scalar { name: name.to_owned(), value: self.types.accumulator },
        };
        self.user_functions().operands().map(operand).collect()
    }

    /// A builder that starts from this configuration.
    pub fn to_builder(&self) -> KernelConfigBuilder {
        KernelConfigBuilder {
            algorithm: self.algorithm,
            value: self.types.value,
            x: Some(self.types.x),
            y: Some(self.types.y),
            accumulator: Some(self.types.accumulator),
            offset: self.types.offset,
            index: self.types.index,
            operation: Some(self.operation),
            semiring: self.semiring,
            user: self.user.map(|user| Box::new(user.clone())),
            alpha: Some(self.scaling.alpha)
                .filter(|alpha| *alpha != usual_scaling(self.semiring, self.user_functions()).alpha),
            beta: Some(self.scaling.beta)
                .filter(|beta| *beta != usual_scaling(self.semiring, self.user_functions()).beta),
            threads_per_block: Some(self.threads_per_block),
            loads: self.loads,
        }
    }
}

impl KernelConfig {
    /// Threads of a block where a configuration names no other number. An algorithm as it is whose kernels have no room for so many in
    /// shared memory, because sums are of a large type, has half as many, or half of those.
    pub const USUAL_THREADS_PER_BLOCK: u32 = 256;

    /// A Hermitian matrix of real values is a symmetric one, which has kernels of its own.
    fn hermitian_problem(&self) -> Option<ConfigError> {
        let value = self.types.value;
        if self.operation != Operation::Hermitian || value.kind() == ValueKind::Complex {
            return None;
        }
        let complex = ValueType::ALL.iter().filter(|value| value.kind() == ValueKind::Complex);
        let complex = complex.map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let reason = format!(
            "operation = hermitian mirrors conjugates, and value = {value} has no imaginary part: use operation = symmetric, \
             which is the same there, or value = {complex}"
        );
        Some(ConfigError::Combination { key: "operation", reason })
    }

    /// Column indices of 16 bits are for algorithms whose kernels read columns as the matrix has them.
    fn index_problem(&self) -> Option<ConfigError> {
        let spec = self.algorithm.spec();
        if self.types.index != IndexType::U16 || spec.narrow_columns > 0 {
            return None;
        }
        let able = Algorithm::ALL.iter().filter(|spec| spec.narrow_columns > 0);
        let able: Vec<_> = able.map(|spec| spec.name).collect();
        let reason = format!(
            "{} keeps columns in a form of its own, which index = u16 makes no smaller; use index = u32, or one of {}",
            spec.name,
            able.join(", ")
        );
        Some(ConfigError::Combination { key: "index", reason })
    }

    /// What the semiring excludes: an algorithm that sums, and α and β that would scale.
    fn semiring_problem(&self) -> Option<ConfigError> {
        let (spec, semiring) = (self.algorithm.spec(), self.semiring);
        if !spec.semirings.contains(&semiring) {
            return Some(ConfigError::Semiring {
                algorithm: spec.name,
                semiring,
                computed: spec.semirings,
                algorithms: AlgorithmSpec::over(semiring),
            });
        }
        let over = self.replaces_sums().filter(|_| !self.user_functions().stores())?;
        let (key, found, allowed) = match self.scaling {
            Scaling { alpha, .. } if alpha != Coefficient::One => ("alpha", alpha, "1"),
            Scaling { beta: Coefficient::MinusOne, .. } => {
                ("beta", Coefficient::MinusOne, "any, device, 0, 1")
            }
            _ => return None,
        };
        let found = found.name();
        let reason = format!(
            "{key} = {found} would scale a product over {over}, which is stored or reduced with y; allowed: {allowed}"
        );
        Some(ConfigError::Combination { key, reason })
    }

    /// What the user's functions exclude, and what is wrong with them, at places in their own text.
    fn user_problems(&self, user: &UserFunctions) -> Vec<ConfigError> {
        let spec = self.algorithm.spec();
        let mut problems = Vec::new();
        let mut refuse =
            |key: &'static str, reason: String| problems.push(ConfigError::Combination { key, reason });
        match (&user.reduce, &user.identity) {
            (Some(_), None) => refuse(
                "reduce",
                "reduce needs `identity`, the result of an empty row: `identity = 0.0`".into(),
            ),
            (None, Some(_)) => refuse(
                "identity",
                "identity is what `reduce` leaves as it is; write `reduce = |s, t| …`".into(),
            ),
            _ => {}
        }
        if self.semiring != Semiring::PlusTimes && (user.combine.is_some() && user.reduce.is_some()) {
            let reason = format!(
                "semiring = {} is not used where combine and reduce are both written; leave it out",
                self.semiring
            );
            refuse("semiring", reason);
        }
        for (key, listed) in [("vectors", &user.vectors), ("scalars", &user.scalars)] {
            if let Some(unused) =
                listed.iter().find(|name| !user.operands().any(|(operand, _)| operand == *name))
            {
                refuse(
                    key,
                    format!(
                        "`{unused}` is no parameter of epilogue or dot; write it behind the first ones: `|row, sum, y, {unused}| …`"
                    ),
                );
            }
        }
        let able = AlgorithmSpec::over(Semiring::MinPlus);
        let written = |key: &&FunctionKey| key.function(user).is_some();
        let changed = FUNCTION_KEYS.iter().filter(|key| key.changes_product()).find(written);
        if let Some(key) = changed.filter(|_| !able.contains(&spec.name)) {
            let reason = format!(
                "{} sums products by additions alone and takes no {}; these take it: {}",
                spec.name,
                key.name,
                able.join(", ")
            );
            refuse(key.name, reason);
        }
        if let Some(key) = FUNCTION_KEYS.iter().filter(|key| key.takes_operands()).find(written) {
            if !spec.takes_epilogue() {
                let able: Vec<_> = Algorithm::ALL
                    .iter()
                    .filter(|spec| spec.takes_epilogue())
                    .map(|spec| spec.name)
                    .collect();
                let reason = format!(
                    "{} adds to y more than once a row and takes no {}; these store each row once: {}",
                    spec.name,
                    key.name,
                    able.join(", ")
                );
                refuse(key.name, reason);
            }
            let how = match key.name {
                "dot" => "what is stored with dot, and an epilogue can say it",
                _ => "what epilogue stores, which can say it itself",
            };
            for (factor, found, allowed) in [
                ("alpha", self.scaling.alpha, Coefficient::One),
                ("beta", self.scaling.beta, Coefficient::Zero),
            ] {
                if found != allowed {
                    let (found, allowed) = (found.name(), allowed.name());
                    let reason = format!("{factor} = {found} has no part in {how}; allowed: {allowed}");
                    refuse(factor, reason);
                }
            }
        }
        if !matches!(self.types.accumulator, ValueType::F32 | ValueType::F64) {
            let accumulator = self.types.accumulator;
            let reason =
                format!("accumulator = {accumulator}: functions compute in f32 or f64; allowed: f32, f64");
            problems.push(ConfigError::Combination { key: "accumulator", reason });
            return problems;
        }
        if let Err((key, error)) = Operators::new(self.semiring, user, self.types.accumulator) {
            problems.push(ConfigError::Function { key: key.name, error });
        }
        problems
    }
}

impl fmt::Display for KernelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm.name())?;
        self.settings().iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
    }
}

/// A setting that every algorithm has.
pub struct CommonKey {
    /// Name, the same in the macro and on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// Every value that is allowed, in text.
    pub allowed: fn() -> Vec<String>,
    get: fn(&KernelConfig) -> String,
    /// Whether what a configuration has is allowed, without text; where types allow nothing else, always.
    is_allowed: fn(&KernelConfig) -> bool,
    set: fn(&mut KernelConfigBuilder, &str) -> bool,
}

impl CommonKey {
    /// What a configuration has for it, in text.
    pub fn of(&self, config: &KernelConfig) -> String {
        (self.get)(config)
    }
}

/// The settings that every algorithm has.
pub const COMMON_KEYS: &[CommonKey] = &[
    CommonKey {
        name: "threads_per_block",
        doc: "Threads a block.",
        allowed: || THREADS_PER_BLOCK.iter().map(u32::to_string).collect(),
        get: |config| config.threads_per_block.to_string(),
        is_allowed: |config| THREADS_PER_BLOCK.contains(&config.threads_per_block),
        set: |builder, text| text.parse().map(|threads| builder.threads_per_block = Some(threads)).is_ok(),
    },
    CommonKey {
        name: "value",
        doc: "Type of the matrix values, and of x, y and the accumulator where they are not named.",
        allowed: value_types,
        get: |config| config.types.value.to_string(),
        is_allowed: |_| true,
        set: |builder, text| text.parse().map(|value| builder.value = value).is_ok(),
    },
    CommonKey {
        name: "x",
        doc: "Type of the entries of x.",
        allowed: value_types,
        get: |config| config.types.x.to_string(),
        is_allowed: |_| true,
        set: |builder, text| text.parse().map(|x| builder.x = Some(x)).is_ok(),
    },
    CommonKey {
        name: "y",
        doc: "Type of the entries of y; that of the values, or of x where sums of both are of its kind.",
        allowed: value_types,
        get: |config| config.types.y.to_string(),
        is_allowed: |_| true,
        set: |builder, text| text.parse().map(|y| builder.y = Some(y)).is_ok(),
    },
    CommonKey {
        name: "accumulator",
        doc: "Type in which a row is summed, and of alpha and beta; the narrowest that holds every number of the others.",
        allowed: accumulators,
        get: |config| config.types.accumulator.to_string(),
        is_allowed: |config| ValueType::sums().any(|sum| sum == config.types.accumulator),
        set: |builder, text| text.parse().map(|accumulator| builder.accumulator = Some(accumulator)).is_ok(),
    },
    CommonKey {
        name: "offset",
        doc: "Type of the row offsets; u32 serves up to 2^31 - 1 nonzeros.",
        allowed: || IndexType::OFFSETS.iter().map(|t| t.to_string()).collect(),
        get: |config| config.types.offset.to_string(),
        is_allowed: |config| IndexType::OFFSETS.contains(&config.types.offset),
        set: |builder, text| text.parse().map(|offset| builder.offset = offset).is_ok(),
    },
    CommonKey {
        name: "index",
        doc: "Type of the column indices; u16 serves up to 65,536 columns, one less in layouts with fill.",
        allowed: || IndexType::INDICES.iter().map(|t| t.to_string()).collect(),
        get: |config| config.types.index.to_string(),
        is_allowed: |config| IndexType::INDICES.contains(&config.types.index),
        set: |builder, text| text.parse().map(|index| builder.index = index).is_ok(),
    },
    CommonKey {
        name: "operation",
        doc: "op(A) in y <- alpha * op(A) * x + beta * y; the algorithm's own where it is not named.",
        allowed: || Operation::ALL.iter().map(|o| o.to_string()).collect(),
        get: |config| config.operation.to_string(),
        is_allowed: |_| true,
        set: |builder, text| text.parse().map(|operation| builder.operation = Some(operation)).is_ok(),
    },
    CommonKey {
        name: SEMIRING,
        doc: "What entries are combined and rows reduced with; with any but plus_times, alpha is 1 and beta 0 or 1.",
        allowed: || Semiring::ALL.iter().map(|s| s.to_string()).collect(),
        get: |config| config.semiring.to_string(),
        is_allowed: |_| true,
        set: |builder, text| text.parse().map(|semiring| builder.semiring = semiring).is_ok(),
    },
    CommonKey {
        name: "alpha",
        doc: "What is known of alpha when the kernel is generated, or that it is read from device memory; 1 where the semiring is not plus_times.",
        allowed: || vec!["any".into(), "device".into(), "1".into(), "-1".into()],
        get: |config| config.scaling.alpha.name().into(),
        is_allowed: |config| config.scaling.alpha != Coefficient::Zero,
        set: |builder, text| coefficient(text).map(|alpha| builder.alpha = Some(alpha)).is_some(),
    },
    CommonKey {
        name: "beta",
        doc: "What is known of beta when the kernel is generated, or that it is read from device memory.",
        allowed: || Coefficient::NAMES.iter().map(|(name, _)| name.to_string()).collect(),
        get: |config| config.scaling.beta.name().into(),
        is_allowed: |_| true,
        set: |builder, text| coefficient(text).map(|beta| builder.beta = Some(beta)).is_some(),
    },
    CommonKey {
        name: LOADS,
        doc: "How the matrix is loaded: streaming leaves caches to x; cached is for products that follow one another where the L2 cache has room for all.",
        allowed: || Loads::NAMES.iter().map(|(name, _)| name.to_string()).collect(),
        get: |config| config.loads.name().into(),
        is_allowed: |_| true,
        set: |builder, text| {
            let named = Loads::NAMES.iter().find(|(name, _)| *name == text);
            named.map(|(_, loads)| builder.loads = *loads).is_some()
        },
    },
];

const SEMIRING: &str = "semiring";
const LOADS: &str = "loads";

/// Allowed block sizes: whole warps, powers of two, so that every group width divides them.
const THREADS_PER_BLOCK: &[u32] = &[32, 64, 128, 256, 512, 1024];

fn value_types() -> Vec<String> {
    ValueType::ALL.iter().map(|t| t.to_string()).collect()
}

fn accumulators() -> Vec<String> {
    ValueType::sums().map(|t| t.to_string()).collect()
}

fn coefficient(text: &str) -> Option<Coefficient> {
    Coefficient::NAMES.iter().find(|(name, _)| *name == text).map(|(_, coefficient)| *coefficient)
}

/// Collects settings; [`build`](Self::build) checks them.
#[derive(Clone, Debug)]
#[must_use]
pub struct KernelConfigBuilder {
    algorithm: Algorithm,
    value: ValueType,
    x: Option<ValueType>,
    y: Option<ValueType>,
    accumulator: Option<ValueType>,
    offset: IndexType,
    index: IndexType,
    operation: Option<Operation>,
    semiring: Semiring,
    /// Large, and mostly there are none.
    user: Option<Box<UserFunctions>>,
    alpha: Option<Coefficient>,
    beta: Option<Coefficient>,
    threads_per_block: Option<u32>,
    loads: Loads,
}

impl KernelConfigBuilder {
    /// Another algorithm, or other parameters of it.
    pub fn algorithm(mut self, algorithm: impl Into<Algorithm>) -> Self {
        self.algorithm = algorithm.into();
        self
    }

    /// Type of the matrix values, and of x, y and the accumulator where they are not named.
    pub fn value(mut self, value: ValueType) -> Self {
        self.value = value;
        self
    }

    /// Type of the entries of x.
    pub fn x(mut self, x: ValueType) -> Self {
        self.x = Some(x);
        self
    }

    /// Type of the entries of y; without it that of the values, or of x where sums of both cannot go into that: f32 where i8 is
    /// multiplied with f32.
    pub fn y(mut self, y: ValueType) -> Self {
        self.y = Some(y);
        self
    }

    /// Type in which a row is summed, and of α and β.
    pub fn accumulator(mut self, accumulator: ValueType) -> Self {
        self.accumulator = Some(accumulator);
        self
    }

    /// Type of the row offsets.
    pub fn offset(mut self, offset: IndexType) -> Self {
        self.offset = offset;
        self
    }

    /// Type of the column indices.
    pub fn index(mut self, index: IndexType) -> Self {
        self.index = index;
        self
    }

    /// op(A). Every algorithm computes its own ([`AlgorithmSpec::operations`]), which is the default.
    pub fn operation(mut self, operation: Operation) -> Self {
        self.operation = Some(operation);
        self
    }

    /// What it combines and reduces with.
    pub fn semiring(mut self, semiring: Semiring) -> Self {
        self.semiring = semiring;
        self
    }

    /// What of the product the user writes.
    pub fn user_functions(mut self, user: UserFunctions) -> Self {
        self.user = Some(Box::new(user));
        self
    }

    /// What is known of α.
    pub fn alpha(mut self, alpha: Coefficient) -> Self {
        self.alpha = Some(alpha);
        self
    }

    /// What is known of β.
    pub fn beta(mut self, beta: Coefficient) -> Self {
        self.beta = Some(beta);
        self
    }

    /// Threads a block.
    pub fn threads_per_block(mut self, threads_per_block: u32) -> Self {
        self.threads_per_block = Some(threads_per_block);
        self
    }

    /// How what a product reads once is loaded.
    pub fn loads(mut self, loads: Loads) -> Self {
        self.loads = loads;
        self
    }

    /// Sets one key from text, as the macro and the command line do: a parameter of the algorithm, one of
    /// [`COMMON_KEYS`] or one of [`FUNCTION_KEYS`].
    ///
    /// # Errors
    /// [`ConfigError::Key`], [`ConfigError::Value`] or [`ConfigError::Function`], with what is allowed. The builder is
    /// then unchanged.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let spec = self.algorithm.spec();
        let wrong = |key, allowed| ConfigError::Value {
            key,
            value: value.to_owned(),
            allowed,
            why: why_not(key, value),
        };
        if let Some(parameter) = spec.parameters.iter().find(|parameter| parameter.name == key) {
            let parsed = value.parse().ok().filter(|number| parameter.allowed.contains(number));
            let number = parsed.ok_or_else(|| wrong(parameter.name, numbers(parameter.allowed)))?;
            *self.algorithm.parameter_slot(key).expect("a listed parameter has a slot") = number;
            return Ok(());
        }
        if let Some(function) = FunctionKey::find(key) {
            let set = function.set(self.user.get_or_insert_default(), value);
            return set.map_err(|error| ConfigError::Function { key: function.name, error });
        }
        let Some(common) = COMMON_KEYS.iter().find(|common| common.name == key) else {
            let parameters = spec.parameters.iter().map(|parameter| parameter.name);
            let functions = FUNCTION_KEYS.iter().map(|function| function.name);
            return Err(ConfigError::Key {
                algorithm: spec.name,
                key: key.to_owned(),
                allowed: parameters
                    .chain(COMMON_KEYS.iter().map(|common| common.name))
                    .chain(functions)
                    .collect(),
            });
        };
        let allowed = (common.allowed)();
        if !allowed.iter().any(|name| name == value) || !(common.set)(self, value) {
            return Err(wrong(common.name, allowed));
        }
        Ok(())
    }

    /// Of the function of this key, the literals without a suffix: where they stand in its text, and the suffixes of their
    /// types. None where it is not written or something is wrong with it.
    pub fn literals(&self, key: &str) -> Vec<(Range<usize>, &'static str)> {
        let types = self.resolved(KernelConfig::USUAL_THREADS_PER_BLOCK).types;
        let operators = Operators::new(self.semiring, self.user(), types.accumulator);
        let typed = operators.ok().and_then(|operators| operators.typed(key).cloned());
        let mut literals = typed.map(|typed| typed.literals().to_vec()).unwrap_or_default();
        literals.sort_by_key(|(at, _)| at.start);
        literals
    }

    /// Everything that is wrong with the settings, in no more than one line each.
    pub fn problems(&self) -> Vec<ConfigError> {
        self.checked().1
    }

    fn problems_of(&self, config: &KernelConfig) -> Vec<ConfigError> {
        let mut problems = Vec::new();
        let mut refuse = |key, value: String, allowed: Vec<String>| {
            let why = why_not(key, &value);
            problems.push(ConfigError::Value { key, value, allowed, why });
        };
        for (parameter, number) in
            config.algorithm.spec().parameters.iter().zip(config.algorithm.parameter_values())
        {
            if !parameter.allowed.contains(&number) {
                refuse(parameter.name, number.to_string(), numbers(parameter.allowed));
            }
        }
        for common in COMMON_KEYS.iter().filter(|common| !(common.is_allowed)(config)) {
            refuse(common.name, (common.get)(config), (common.allowed)());
        }
        let spec = config.algorithm.spec();
        if !spec.operations.contains(&config.operation) {
            problems.push(ConfigError::Operation {
                algorithm: spec.name,
                operation: config.operation,
                computed: spec.operations,
                algorithms: AlgorithmSpec::computing(config.operation),
            });
        }
        problems.extend(config.hermitian_problem());
        problems.extend(config.index_problem());
        problems.extend(config.semiring_problem());
        if config.user.is_some() {
            problems.extend(config.user_problems(self.user()));
        }
        problems.extend(type_problem(config.types, config.scaling, config.semiring));
        if problems.is_empty()
            && let Some(copy) = MatrixCopy::of(config)
        {
            problems.extend(copy.check(config).err());
        }
        if problems.is_empty() {
            problems.extend(config.algorithm.plans().check(config).err());
        }
        problems
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The first of [`problems`](Self::problems).
    pub fn build(self) -> Result<KernelConfig, ConfigError> {
        let (config, problems) = self.checked();
        match problems.into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(config),
        }
    }

    fn user(&self) -> &UserFunctions {
        self.user.as_deref().unwrap_or(&NO_FUNCTIONS)
    }

    /// What the settings say, and everything that is wrong with it.
    fn checked(&self) -> (KernelConfig, Vec<ConfigError>) {
        let with = |threads: u32| {
            let config = self.resolved(threads);
            (config, self.problems_of(&config))
        };
        let most = self.threads_per_block.unwrap_or(KernelConfig::USUAL_THREADS_PER_BLOCK);
        let usual = with(most);
        let is_free = self.threads_per_block.is_none() && self.algorithm == (self.algorithm.spec().default)();
        if usual.1.is_empty() || !is_free {
            return usual;
        }
        let mut fewer =
            THREADS_PER_BLOCK.iter().rev().filter(|threads| **threads < most).map(|threads| with(*threads));
        fewer.find(|(_, problems)| problems.is_empty()).unwrap_or(usual)
    }

    fn resolved(&self, threads_per_block: u32) -> KernelConfig {
        let x = self.x.unwrap_or(self.value);
        let sums_into = |y: &ValueType| ValueType::narrowest_sum(&[self.value, x], *y).is_some();
        let y = self.y.or_else(|| [self.value, x].into_iter().find(sums_into)).unwrap_or(self.value);
        // One that holds all that is named, so that naming `y = f64` alone does not lose digits.
        let narrowest = || ValueType::narrowest_sum(&[self.value, x], y);
        let accumulator = self.accumulator.or_else(narrowest).unwrap_or(self.value.narrowest_accumulator());
        let usual = usual_scaling(self.semiring, self.user());
        KernelConfig {
            algorithm: self.algorithm,
            types: Types { value: self.value, x, y, accumulator, offset: self.offset, index: self.index },
            operation: self.operation.unwrap_or(self.algorithm.spec().operations[0]),
            semiring: self.semiring,
            user: self.user.as_deref().and_then(|user| user.clone().interned()),
            scaling: Scaling {
                alpha: self.alpha.unwrap_or(usual.alpha),
                beta: self.beta.unwrap_or(usual.beta),
            },
            threads_per_block,
            loads: self.loads,
        }
    }
}

/// What is wrong with the types: sums must hold every entry, y is of their kind, and the semiring has a meaning for them.
fn type_problem(types: Types, scaling: Scaling, semiring: Semiring) -> Option<ConfigError> {
    use ValueKind::{Bool, Complex, Float, Integer};
    let problem = |key, reason| Some(ConfigError::Combination { key, reason });
    let names = |allowed: &mut dyn Iterator<Item = ValueType>| {
        allowed.map(|t| t.to_string()).collect::<Vec<_>>().join(", ")
    };
    let accumulator = types.accumulator;
    for (key, entry) in [("value", types.value), ("x", types.x), ("y", types.y)] {
        if accumulator.holds(entry) {
            continue;
        }
        let why = match (accumulator.kind(), entry.kind()) {
            (Float, Float) | (Complex, Complex) => {
                return problem(
                    "accumulator",
                    format!("accumulator = {accumulator} is narrower than {key} = {entry}; allowed: {entry}"),
                );
            }
            (_, Complex) => "has no imaginary part",
            (Integer, Float) => "has no fractions",
            (Bool, _) => "has truth values only",
            _ => "does not hold all of its numbers",
        };
        let allowed = names(&mut ValueType::sums().filter(|sum| sum.holds(entry)));
        let reason =
            format!("accumulator = {accumulator} cannot sum {key} = {entry}: it {why}; allowed: {allowed}");
        return problem("accumulator", reason);
    }
    if types.y.kind() != accumulator.kind() {
        let is_result = |y: &ValueType| y.kind() == accumulator.kind() && accumulator.holds(*y);
        let allowed = names(&mut ValueType::ALL.iter().copied().filter(is_result));
        let reason = format!(
            "y = {} is {} and sums in {accumulator} are {}; allowed: {allowed}",
            types.y,
            types.y.kind(),
            accumulator.kind()
        );
        return problem("y", reason);
    }
    for (key, coefficient) in [("alpha", scaling.alpha), ("beta", scaling.beta)] {
        if coefficient == Coefficient::MinusOne && matches!(accumulator, ValueType::U32 | ValueType::Bool) {
            return problem(
                key,
                format!(
                    "{key} = -1 is no {accumulator}, which sums are in; allowed: any, device, {}1",
                    if key == "beta" { "0, " } else { "" }
                ),
            );
        }
    }
    let reason = semiring.type_problem(accumulator, types.y)?;
    problem("accumulator", reason)
}

/// What is known of α and β where nothing is said.
fn usual_scaling(semiring: Semiring, user: &UserFunctions) -> Scaling {
    let sums_products = semiring == Semiring::PlusTimes && user.combine.is_none() && user.reduce.is_none();
    match user.stores() {
        true => Scaling { alpha: Coefficient::One, beta: Coefficient::Zero },
        false if sums_products => Scaling::default(),
        false => Scaling { alpha: Coefficient::One, beta: Coefficient::default() },
    }
}

/// Why a value is not allowed that one could expect.
fn why_not(key: &str, value: &str) -> Option<&'static str> {
    let is_wide_index = key == "index" && value == IndexType::U64.name();
    is_wide_index.then_some("a matrix has fewer than 2^31 columns, so no index needs 64 bits")
}

fn numbers(allowed: &[u32]) -> Vec<String> {
    allowed.iter().map(u32::to_string).collect()
}

/// Why a configuration was refused, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no algorithm of this name.
    #[error(transparent)]
    Algorithm(UnknownName),
    /// The algorithm has no such setting.
    #[error("{algorithm} has no setting `{key}`; allowed: {}", allowed.join(", "))]
    Key {
        /// The algorithm.
        algorithm: &'static str,
        /// What was given.
        key: String,
        /// Its parameters and the common keys.
        allowed: Vec<&'static str>,
    },
    /// A setting has a value that is not allowed.
    #[error("`{key}` cannot be `{value}`{}; allowed: {}", why.map(|why| format!(": {why}")).unwrap_or_default(), allowed.join(", "))]
    Value {
        /// The setting.
        key: &'static str,
        /// What was given.
        value: String,
        /// What would be accepted.
        allowed: Vec<String>,
        /// Why it is not, where one could expect it.
        why: Option<&'static str>,
    },
    /// The algorithm does not compute this operation.
    #[error(
        "{algorithm} computes {}, not {operation}, which is computed by {}",
        computed.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "),
        algorithms.join(", ")
    )]
    Operation {
        /// The algorithm.
        algorithm: &'static str,
        /// What was asked for.
        operation: Operation,
        /// What it computes.
        computed: &'static [Operation],
        /// The algorithms that compute what was asked for.
        algorithms: Vec<&'static str>,
    },
    /// The algorithm does not compute over this semiring.
    #[error(
        "{algorithm} computes over {}, not {semiring}, over which {} compute",
        computed.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "),
        algorithms.join(", ")
    )]
    Semiring {
        /// The algorithm.
        algorithm: &'static str,
        /// What was asked for.
        semiring: Semiring,
        /// What it computes over.
        computed: &'static [Semiring],
        /// The algorithms that compute over what was asked for.
        algorithms: Vec<&'static str>,
    },
    /// A function is not in the language, or its types do not fit.
    #[error("`{key}`: {error}")]
    Function {
        /// The setting.
        key: &'static str,
        /// What is wrong, and where in its text.
        error: FunctionError,
    },
    /// Settings that are allowed one by one exclude each other.
    #[error("{reason}")]
    Combination {
        /// The setting to change first.
        key: &'static str,
        /// What excludes what, and a way out.
        reason: String,
    },
}

impl ConfigError {
    /// The setting that the error is about; `algorithm` where that is the name itself.
    pub fn key(&self) -> &str {
        match self {
            ConfigError::Algorithm(_) => "algorithm",
            ConfigError::Key { key, .. } => key,
            ConfigError::Operation { .. } => "operation",
            ConfigError::Semiring { .. } => SEMIRING,
            ConfigError::Value { key, .. }
            | ConfigError::Function { key, .. }
            | ConfigError::Combination { key, .. } => key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{CsrScalar, CsrVector, HolaT};

    #[test]
    fn defaults_follow_the_value_type() {
        let config = KernelConfig::builder(CsrVector::default()).value(ValueType::F64).build().unwrap();
        let types = config.types();
        assert_eq!([types.value, types.x, types.y, types.accumulator], [ValueType::F64; 4]);
        let config = KernelConfig::builder(CsrVector::default()).y(ValueType::F64).build().unwrap();
        assert_eq!(config.types().accumulator, ValueType::F64);
    }

    #[test]
    fn y_is_of_a_type_that_sums_go_into() {
        let y = |value, x| {
            KernelConfig::builder(CsrVector::default()).value(value).x(x).build().unwrap().types().y
        };
        use ValueType::{Bool, C32, C64, F16, F32, F64, I8};
        for (value, x, wanted) in [
            (I8, F32, F32),
            (Bool, F64, F64),
            (F32, C64, C64),
            (F64, F32, F64),
            (F16, F32, F16),
            (C32, F32, C32),
        ] {
            assert_eq!(y(value, x), wanted, "{value} and {x}");
        }
        let builder = KernelConfig::builder(CsrVector::default()).value(I8).x(F32).y(F64);
        assert_eq!(builder.build().unwrap().types().y, F64);
    }

    #[test]
    fn sums_follow_what_is_named() {
        let sums = |settings: &[(&str, &str)]| {
            KernelConfig::from_settings("csr_vector", settings.iter().copied()).unwrap().types().accumulator
        };
        assert_eq!(sums(&[("value", "i8")]), ValueType::I32);
        assert_eq!(sums(&[("value", "i8"), ("x", "f32")]), ValueType::F32);
        assert_eq!(sums(&[("value", "i8"), ("x", "f32"), ("y", "f32")]), ValueType::F32);
        assert_eq!(sums(&[("value", "i32"), ("x", "f32"), ("y", "f64")]), ValueType::F64);
        assert_eq!(sums(&[("value", "u32"), ("y", "i64")]), ValueType::I64);
        assert_eq!(sums(&[("value", "bool"), ("y", "u32")]), ValueType::U32);
        assert_eq!(sums(&[("value", "bool"), ("semiring", "or_and")]), ValueType::Bool);
        assert_eq!(sums(&[("value", "f32"), ("x", "c32"), ("y", "c32")]), ValueType::C32);
        assert_eq!(sums(&[("value", "f64"), ("x", "c32"), ("y", "c32")]), ValueType::C64);
    }

    #[test]
    fn types_that_make_no_sense_are_refused_with_the_reason() {
        let refused = |settings: &[(&str, &str)]| {
            let error = KernelConfig::from_settings("csr_vector", settings.iter().copied()).unwrap_err();
            (error.key().to_owned(), error.to_string())
        };
        for (settings, key, reason) in [
            (
                &[("value", "c32"), ("y", "f32"), ("accumulator", "f32")][..],
                "accumulator",
                "accumulator = f32 cannot sum value = c32: it has no imaginary part; allowed: c32, c64",
            ),
            (
                &[("value", "f32"), ("y", "i32"), ("accumulator", "i32")],
                "accumulator",
                "accumulator = i32 cannot sum value = f32: it has no fractions; allowed: f32, f64, c32, c64",
            ),
            (
                &[("value", "i32"), ("x", "u32"), ("accumulator", "i32")],
                "accumulator",
                "accumulator = i32 cannot sum x = u32: it does not hold all of its numbers; allowed: f64, i64, u32, c64",
            ),
            (
                &[("value", "i32"), ("accumulator", "f64")],
                "y",
                "y = i32 is integer and sums in f64 are real; allowed: f16, bf16, f32, f64",
            ),
            (
                &[("value", "c64"), ("accumulator", "c32")],
                "accumulator",
                "accumulator = c32 is narrower than value = c64; allowed: c64",
            ),
            (
                &[("value", "bool")],
                "accumulator",
                "use semiring = or_and, or y and accumulator of a type of numbers",
            ),
            (&[("value", "c32"), ("semiring", "min_plus")], "accumulator", "use types that are not complex"),
            (&[("value", "i8"), ("semiring", "min_plus")], "accumulator", "use y = i32"),
            (&[("value", "u32"), ("semiring", "max_plus")], "accumulator", "allowed: f32, f64, i32, i64"),
            (
                &[("value", "u32"), ("alpha", "-1")],
                "alpha",
                "alpha = -1 is no u32, which sums are in; allowed: any, device, 1",
            ),
        ] {
            let (found, text) = refused(settings);
            assert!(found == key && text.ends_with(reason), "{found}: {text}");
        }
        let error = KernelConfig::named("dia").unwrap().value(ValueType::I32).build().unwrap_err();
        assert!(error.key() == "value" && error.to_string().contains("use ell, sell_c_sigma or"), "{error}");
    }

    #[test]
    fn text_and_methods_say_the_same() {
        let mut by_text = KernelConfig::named("csr_scalar").unwrap();
        for (key, value) in
            [("unroll", "8"), ("value", "f64"), ("offset", "u64"), ("beta", "0"), ("alpha", "-1")]
        {
            by_text.set(key, value).unwrap();
        }
        let by_method = KernelConfig::builder(CsrScalar { unroll: 8, ..CsrScalar::default() })
            .value(ValueType::F64)
            .offset(IndexType::U64)
            .alpha(Coefficient::MinusOne)
            .beta(Coefficient::Zero);
        assert_eq!(by_text.build().unwrap(), by_method.build().unwrap());
    }

    #[test]
    fn settings_round_trip() {
        let config = KernelConfig::builder(CsrVector { threads_per_vector: 32, ..CsrVector::default() })
            .accumulator(ValueType::F64)
            .threads_per_block(64)
            .build()
            .unwrap();
        let mut again = KernelConfig::named(config.algorithm().name()).unwrap();
        for (key, value) in config.settings() {
            again.set(key, &value).unwrap();
        }
        assert_eq!(again.build().unwrap(), config);
        let settings = config.settings();
        let pairs = settings.iter().map(|(key, value)| (*key, value.as_str()));
        assert_eq!(KernelConfig::from_settings(config.algorithm().name(), pairs).unwrap(), config);
        assert_eq!(config.to_builder().build().unwrap(), config);
    }

    #[test]
    fn refusals_say_what_is_allowed() {
        let error = KernelConfig::named("csr_vectr").unwrap_err();
        let allowed: Vec<_> = Algorithm::ALL.iter().map(|spec| spec.name).collect();
        let allowed = allowed.join(", ");
        assert_eq!(error.to_string(), format!("unknown algorithm `csr_vectr`; allowed: {allowed}"));
        let mut builder = KernelConfig::builder(CsrVector::default());
        let error = builder.set("min_blocks", "4").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("csr_vector has no setting `min_blocks`; allowed: threads_per_vector, ")
        );
        for text in ["3", "64", "-8", "", "eight", "4294967304"] {
            let error = builder.set("threads_per_vector", text).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("`threads_per_vector` cannot be `{text}`; allowed: 2, 4, 8, 16, 32")
            );
        }
        let error = builder.set("alpha", "0").unwrap_err();
        assert_eq!(error.to_string(), "`alpha` cannot be `0`; allowed: any, device, 1, -1");
        assert_eq!(
            builder.set("index", "u64").unwrap_err().to_string(),
            "`index` cannot be `u64`: a matrix has fewer than 2^31 columns, so no index needs 64 bits; allowed: u16, u32"
        );
    }

    #[test]
    fn operations_are_the_algorithms_own() {
        for spec in Algorithm::ALL {
            let builder = KernelConfig::builder((spec.default)());
            assert_eq!(builder.clone().build().unwrap().operation(), spec.operations[0]);
            for &operation in Operation::ALL {
                let able = AlgorithmSpec::computing(operation);
                assert!(!able.is_empty(), "{operation}");
                // Of real values it is another operation.
                let value = if operation == Operation::Hermitian { ValueType::C32 } else { ValueType::F32 };
                match builder.clone().operation(operation).value(value).build() {
                    Ok(config) => {
                        assert!(able.contains(&spec.name));
                        assert_eq!(config.program().guarantees.operation, operation);
                    }
                    // As it is, it is for real values.
                    Err(error) if able.contains(&spec.name) => {
                        assert_eq!((error.key(), operation), ("value", Operation::Hermitian));
                    }
                    Err(error) => {
                        assert_eq!(error.key(), "operation");
                        let wanted = format!("not {operation}, which is computed by {}", able.join(", "));
                        assert!(error.to_string().ends_with(&wanted), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_semiring_is_a_setting_like_others() {
        let usual = KernelConfig::builder(CsrVector::default()).build().unwrap();
        assert_eq!(usual.scaling().alpha, Coefficient::Any);
        assert!(!usual.to_string().contains("semiring"), "{usual}");
        let least = usual.to_builder().semiring(Semiring::MinPlus).beta(Coefficient::One).build().unwrap();
        assert_eq!(least.scaling().alpha, Coefficient::One);
        assert!(least.to_string().contains("semiring=min_plus alpha=1 beta=1"), "{least}");
        let settings = least.settings();
        let again = settings.iter().map(|(key, value)| (*key, value.as_str()));
        assert_eq!(KernelConfig::from_settings("csr_vector", again).unwrap(), least);
        assert_eq!(
            least.to_builder().semiring(Semiring::PlusTimes).build().unwrap().scaling().alpha,
            Coefficient::Any
        );
    }

    #[test]
    fn loads_are_a_setting_like_others() {
        let usual = KernelConfig::builder(CsrVector::default()).build().unwrap();
        assert_eq!(usual.loads(), Loads::Streaming);
        assert!(!usual.to_string().contains("loads"), "{usual}");
        let cached = usual.to_builder().loads(Loads::Cached).build().unwrap();
        assert!(cached.to_string().ends_with("loads=cached"), "{cached}");
        let settings = cached.settings();
        let settings = settings.iter().map(|(key, value)| (*key, value.as_str()));
        assert_eq!(KernelConfig::from_settings("csr_vector", settings).unwrap(), cached);
        let text = cached.program().source;
        let place = |line: &str| text.lines().position(|found| found == line);
        assert!(place("#define __ldcs __ldg") < place("#line 1 \"prelude/group.cuh\""));
        assert!(!usual.program().source.contains("#define __ldcs"));
        let error = usual.to_builder().set("loads", "twice").unwrap_err().to_string();
        assert!(error.contains("streaming, cached"), "{error}");
    }

    #[test]
    fn what_a_semiring_excludes_is_refused() {
        let over = |semiring| KernelConfig::builder(CsrVector::default()).semiring(semiring);
        let refused = |builder: KernelConfigBuilder| {
            let error = builder.build().unwrap_err();
            (error.key().to_owned(), error.to_string())
        };
        let (key, text) = refused(over(Semiring::MaxTimes).alpha(Coefficient::Any));
        assert!(key == "alpha" && text.ends_with("allowed: 1"), "{text}");
        let (key, text) = refused(over(Semiring::OrAnd).beta(Coefficient::MinusOne));
        assert!(key == "beta" && text.ends_with("allowed: any, device, 0, 1"), "{text}");
        for spec in Algorithm::ALL {
            for &semiring in Semiring::ALL {
                let built = KernelConfig::builder((spec.default)()).semiring(semiring).build();
                assert_eq!(
                    built.is_ok(),
                    AlgorithmSpec::over(semiring).contains(&spec.name),
                    "{}",
                    spec.name
                );
                if let Err(error) = built {
                    assert_eq!(error.key(), "semiring");
                    assert!(error.to_string().contains("over which csr_scalar, csr_vector, "), "{error}");
                }
            }
        }
    }

    /// What is asked of every configuration of a choice says what the texts say.
    #[test]
    fn what_is_allowed_is_what_the_texts_allow() {
        let usual = KernelConfig::named("csr_vector").unwrap().build().unwrap();
        let types = ValueType::ALL.iter().flat_map(|value| {
            let with = |types| KernelConfig { types, ..usual };
            [
                with(Types { value: *value, ..usual.types }),
                with(Types { x: *value, ..usual.types }),
                with(Types { y: *value, ..usual.types }),
                with(Types { accumulator: *value, ..usual.types }),
            ]
        });
        let indices = [IndexType::U16, IndexType::U32, IndexType::U64].into_iter().flat_map(|index| {
            let with = |types| KernelConfig { types, ..usual };
            [with(Types { offset: index, ..usual.types }), with(Types { index, ..usual.types })]
        });
        let scalings = Coefficient::NAMES.iter().flat_map(|(_, coefficient)| {
            let with = |scaling| KernelConfig { scaling, ..usual };
            [
                with(Scaling { alpha: *coefficient, ..usual.scaling }),
                with(Scaling { beta: *coefficient, ..usual.scaling }),
            ]
        });
        let blocks =
            [0, 16, 32, 96, 1024, 2048].map(|threads| KernelConfig { threads_per_block: threads, ..usual });
        let operations =
            Operation::ALL.iter().map(|operation| KernelConfig { operation: *operation, ..usual });
        let semirings = Semiring::ALL.iter().map(|semiring| KernelConfig { semiring: *semiring, ..usual });
        let loads = Loads::NAMES.iter().map(|(_, loads)| KernelConfig { loads: *loads, ..usual });
        let (mut allowed, mut refused) = (0, 0);
        for config in
            types.chain(indices).chain(scalings).chain(blocks).chain(operations).chain(semirings).chain(loads)
        {
            for common in COMMON_KEYS {
                let is_allowed = (common.is_allowed)(&config);
                assert_eq!(
                    is_allowed,
                    (common.allowed)().contains(&(common.get)(&config)),
                    "{}",
                    common.name
                );
                *(if is_allowed { &mut allowed } else { &mut refused }) += 1;
            }
        }
        assert!(allowed > 500 && refused > 8, "{allowed} {refused}");
    }

    #[test]
    fn the_usual_block_is_what_shared_memory_allows() {
        let threads = |value| {
            let builder = KernelConfig::named("hola_t").unwrap().value(value);
            builder.build().map(|config| config.threads_per_block())
        };
        assert_eq!((threads(ValueType::F64), threads(ValueType::C64)), (Ok(256), Ok(128)));
        let named = KernelConfig::named("hola_t").unwrap().value(ValueType::C64).threads_per_block(256);
        assert!(matches!(named.build(), Err(ConfigError::Combination { key: "nnz_per_thread", .. })));
        // Whoever names a parameter is told what it does not go with.
        let named = KernelConfig::builder(HolaT { nnz_per_thread: 16, ..HolaT::default() });
        let error = named.value(ValueType::C64).build().unwrap_err().to_string();
        assert!(error.contains("threads_per_block = 256"), "{error}");
    }

    #[test]
    fn problems_are_found_all_at_once() {
        let problems = KernelConfig::builder(CsrVector { threads_per_vector: 5, ..CsrVector::default() })
            .threads_per_block(100)
            .value(ValueType::F64)
            .accumulator(ValueType::F32)
            .alpha(Coefficient::Zero)
            .problems();
        let keys: Vec<_> = problems.iter().map(ConfigError::key).collect();
        assert_eq!(keys, ["threads_per_vector", "threads_per_block", "alpha", "accumulator"]);
        let crowded = KernelConfig::builder(CsrScalar { min_blocks: 16, unroll: 1 }).build().unwrap_err();
        assert_eq!(crowded.key(), "min_blocks");
        assert!(crowded.to_string().contains("4096 threads"), "{crowded}");
    }
}
