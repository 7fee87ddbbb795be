//! The algorithms: one declaration makes the enum and the registry that everything else reads.

use crate::config::{ConfigError, KernelConfig};
use crate::features::Features;
use crate::parameter::ParameterSpec;
use crate::primitive::ValueEncoding;
use crate::program::{Buffer, Count, Guarantees, Misfits, Pass, Slots};
use crate::semiring::Semiring;
use crate::types::{Operation, ValueType};

/// What an algorithm adds to the generated text: how its kernels are launched.
pub(crate) struct Plan {
    pub(crate) prepare: Vec<Pass>,
    pub(crate) multiply: Vec<Pass>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) counts: Vec<Count>,
    pub(crate) guarantees: Guarantees,
}

/// Implemented by every algorithm's parameter struct.
pub(crate) trait Plans {
    /// Combinations of parameters that each are allowed but not together.
    fn check(&self, _config: &KernelConfig) -> Result<(), ConfigError> {
        Ok(())
    }

    /// The slots of the layout that `prepare` passes make, where it may hold fill.
    fn slots(&self, _config: &KernelConfig) -> Option<Slots> {
        None
    }

    /// What keeps a matrix from the layout that `prepare` passes make, where not every matrix has it.
    fn misfits(&self, _config: &KernelConfig) -> Option<Misfits> {
        None
    }

    /// Whether fill is multiplied with x, as the guarantees of the plan say.
    fn fill_touches_x(&self) -> bool {
        false
    }

    /// Passes, buffers and guarantees.
    fn plan(&self, config: &KernelConfig) -> Plan;
}

/// What is known of an algorithm without a configuration.
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmSpec {
    /// Name in configurations, on the command line, in kernels and in the docs.
    pub name: &'static str,
    /// Tuning parameters beside the common ones.
    pub parameters: &'static [ParameterSpec],
    /// op(A) that it computes; the first where a configuration names none.
    pub operations: &'static [Operation],
    /// The semirings that it computes over.
    pub semirings: &'static [Semiring],
    /// The most columns that 16-bit indices serve in its kernels: 65,536, one less where one index names fill, 0 where they
    /// have no use.
    pub narrow_columns: u32,
    /// The CUDA template, with the header that describes the algorithm.
    pub template: &'static str,
    /// The algorithm with every parameter at its default.
    pub default: fn() -> Algorithm,
}

impl AlgorithmSpec {
    /// The algorithm of this name, or `None`.
    pub fn find(name: &str) -> Option<&'static AlgorithmSpec> {
        Algorithm::ALL.iter().find(|spec| spec.name == name)
    }

    /// The names of the algorithms that compute this operation.
    pub fn computing(operation: Operation) -> Vec<&'static str> {
        let able = Algorithm::ALL.iter().filter(|spec| spec.operations.contains(&operation));
        able.map(|spec| spec.name).collect()
    }

    /// The names of the algorithms that compute over this semiring.
    pub fn over(semiring: Semiring) -> Vec<&'static str> {
        let able = Algorithm::ALL.iter().filter(|spec| spec.semirings.contains(&semiring));
        able.map(|spec| spec.name).collect()
    }

    /// Whether it computes this operation as a plain product with a copy of the matrix: its transpose, or both triangles where
    /// one is stored.
    pub fn takes_a_copy(&self, operation: Operation) -> bool {
        operation != Operation::NonTranspose && self.operations[0] == Operation::NonTranspose
    }

    /// Whether it stores each row of y once and adds to none, so that an epilogue can take part: its kernels then take one
    /// in place of β.
    pub fn takes_epilogue(&self) -> bool {
        !self.template.contains("add_scaled(")
    }

    /// The first line of the template's header: what a thread, group or block does.
    pub fn summary(&self) -> &'static str {
        let line = self.template.lines().next().unwrap_or_default();
        line.split_once(": ").map_or(line, |(_, summary)| summary)
    }

    /// The template's header as (field, text): formula, paper, suits, suffers, bytes, guarantee, launch.
    pub fn header(&self) -> Vec<(&'static str, &'static str)> {
        let comments = self.template.lines().skip(1).map_while(|line| line.strip_prefix("//"));
        comments
            .filter_map(|line| line.split_once(':'))
            .map(|(field, text)| (field.trim(), text.trim()))
            .collect()
    }
}

/// The entries of the registry: the module, the parameters, the columns that 16-bit indices serve where its kernels read
/// columns as the matrix has them, and the semirings where the template reduces rows by the
/// functions of `prelude/plus_times.cuh` alone.
macro_rules! algorithms {
    (@narrow) => { 0 };
    (@narrow $columns:literal) => { $columns };
    (@semirings) => { &[Semiring::PlusTimes] };
    (@semirings $semirings:path) => { $semirings };
    ($($module:ident: $variant:ident $(narrow $columns:literal)? $(over $semirings:path)?,)+) => {
        $(mod $module;)+
        $(pub use $module::$variant;)+

        /// An algorithm with its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Algorithm {
            $(#[doc = concat!("`", stringify!($module), "`, see [`", stringify!($variant), "`].")]
            $variant($variant),)+
        }

        $(impl From<$variant> for Algorithm {
            fn from(parameters: $variant) -> Algorithm {
                Algorithm::$variant(parameters)
            }
        })+

        impl Algorithm {
            /// Every algorithm there is. The macro, the command, the tests and the docs list what is here.
            pub const ALL: &'static [AlgorithmSpec] = &[
                $(AlgorithmSpec {
                    name: stringify!($module),
                    parameters: $variant::PARAMETERS,
                    operations: $variant::OPERATIONS,
                    semirings: algorithms!(@semirings $($semirings)?),
                    narrow_columns: algorithms!(@narrow $($columns)?),
                    template: include_str!(concat!("../templates/", stringify!($module), ".cu")),
                    default: || Algorithm::$variant($variant::default()),
                },)+
            ];

            /// The algorithm's entry in [`Algorithm::ALL`].
            pub fn spec(&self) -> &'static AlgorithmSpec {
                /// The entries' places.
                enum Place { $($variant,)+ }
                match self { $(Algorithm::$variant(_) => &Self::ALL[Place::$variant as usize],)+ }
            }

            /// The parameters' values, in the order of [`AlgorithmSpec::parameters`].
            pub fn parameter_values(&self) -> Vec<u32> {
                match self { $(Algorithm::$variant(parameters) => parameters.values(),)+ }
            }

            pub(crate) fn parameter_slot(&mut self, name: &str) -> Option<&mut u32> {
                match self { $(Algorithm::$variant(parameters) => parameters.slot(name),)+ }
            }

            pub(crate) fn plans(&self) -> &dyn Plans {
                match self { $(Algorithm::$variant(parameters) => parameters,)+ }
            }
        }
    };
}

algorithms! {
    csr_scalar: CsrScalar narrow 65_536 over Semiring::ALL,
    csr_vector: CsrVector narrow 65_536 over Semiring::ALL,
    light_vector: LightVector narrow 65_536 over Semiring::ALL,
    hola: Hola narrow 65_536,
    merge_path: MergePath narrow 65_536 over Semiring::ALL,
    csr5: Csr5 narrow 65_536,
    light_warp: LightWarp narrow 65_536 over Semiring::ALL,
    pcsr: Pcsr narrow 65_536 over Semiring::ALL,
    csr_adaptive: CsrAdaptive narrow 65_536 over Semiring::ALL,
    coalesced_bins: CoalescedBins narrow 65_536 over Semiring::ALL,
    hybrid: Hybrid narrow 65_536,
    dasp: Dasp,
    coo: Coo narrow 65_536,
    ell: Ell narrow 65_535 over Semiring::ALL,
    sell_c_sigma: SellCSigma narrow 65_535 over Semiring::ALL,
    dia: Dia,
    hyb: Hyb narrow 65_535,
    jds: Jds narrow 65_535 over Semiring::ALL,
    bsr: Bsr,
    csc: Csc,
    tjds: Tjds,
    pkt: Pkt,
    cache_blocked: CacheBlocked over Semiring::ALL,
    two_phase: TwoPhase over Semiring::ALL,
    hot_columns: HotColumns over Semiring::ALL,
    bccoo: Bccoo,
    special: Special over Semiring::ALL,
    row_patterns: RowPatterns over Semiring::ALL,
    naive_t: NaiveT narrow 65_536,
    hola_t: HolaT narrow 65_536,
    planned_t: PlannedT,
    sym_csr: SymCsr,
    sym_dia: SymDia,
}

/// The parameter that says how values are stored.
const ENCODING: &str = "encoding";

/// The parameter that says whether entries share copies of x.
const DISTINCT: &str = "distinct";

impl Algorithm {
    /// The algorithm's name.
    pub fn name(&self) -> &'static str {
        self.spec().name
    }

    /// Whether its layout multiplies fill with x ([`Guarantees::fill_touches_x`]).
    pub fn fill_touches_x(&self) -> bool {
        self.plans().fill_touches_x()
    }

    /// How values are stored, its parameter `encoding`; `None` where there is no choice.
    pub fn encoding(mut self) -> Option<u32> {
        self.parameter_slot(ENCODING).copied()
    }

    /// The same with values stored so, where there is a choice.
    #[must_use]
    pub fn with_encoding(mut self, encoding: u32) -> Algorithm {
        if let Some(slot) = self.parameter_slot(ENCODING) {
            *slot = encoding;
        }
        self
    }

    /// Parameters that follow from a matrix ([`Algorithm::suited_to`]); those of `special` are [`Special::FOLLOWING`].
    pub const FOLLOWING: [&str; 2] = [ENCODING, DISTINCT];

    /// The same with the usual values of those that follow from a matrix.
    #[must_use]
    pub fn suited_to_any(mut self) -> Algorithm {
        for parameter in self.spec().parameters.iter().filter(|known| Self::FOLLOWING.contains(&known.name)) {
            if let Some(slot) = self.parameter_slot(parameter.name) {
                *slot = parameter.default;
            }
        }
        self
    }

    /// The same for a matrix with these features and such values. They are encoded where samples of them say that they can be and
    /// there is a choice; those of a matrix whose other values cannot are stored as they are. Entries of `two_phase` share copies
    /// of x where that saves some. For `special` see [`Special::laid_out`].
    #[must_use]
    pub fn suited_to(self, features: &Features, value: ValueType, x: ValueType) -> Algorithm {
        let algorithm = match self {
            Algorithm::TwoPhase(phases) => phases.suited_to(features, x).into(),
            other => other,
        };
        algorithm.encoded_for(features, value)
    }

    fn encoded_for(self, features: &Features, value: ValueType) -> Algorithm {
        let encodings = self.spec().parameters.iter().filter(|parameter| parameter.name == ENCODING);
        let values = &features.values;
        let suits = |encoding: u32| match (encoding, value) {
            (3, ValueType::F64 | ValueType::F32) => values.are_whole(),
            (2, ValueType::F64 | ValueType::F32) => values.are_few(),
            (1, ValueType::F64) => values.are_narrow(),
            (encoding, _) => encoding == 0,
        };
        // The fewest bytes last.
        let suited = encodings.flat_map(|parameter| parameter.allowed).rfind(|encoding| suits(**encoding));
        self.with_encoding(suited.copied().unwrap_or_default())
    }

    /// Bytes whose time a stored value of this type takes, where all can be encoded.
    pub fn value_bytes(&self, value: ValueType) -> usize {
        match (self, self.encoding()) {
            (Algorithm::Special(layout), _) => layout.value_bytes(value),
            // What is more than is stored is what decoding takes as long as, and reads of x that decide where values are few bytes.
            (_, Some(1)) if value == ValueType::F64 => 5,
            (Algorithm::Dia(_), Some(2)) => 3,
            (Algorithm::Dia(_), Some(3)) => 2,
            (_, Some(3)) => 2 + value.size() / 4,
            _ => value.size(),
        }
    }

    /// Bytes of a stored value of this type, where all can be encoded.
    pub fn stored_value_bytes(&self, value: ValueType) -> usize {
        match self.encoding() {
            None | Some(0) => value.size(),
            Some(encoding) => value.size().min(ValueEncoding::stored_bytes(encoding) as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_has_a_full_header() {
        for spec in Algorithm::ALL {
            let fields: Vec<_> = spec.header().iter().map(|(field, _)| *field).collect();
            let wanted = ["Formula", "Paper", "Suits", "Suffers", "Bytes", "Guarantee", "Launch"];
            assert_eq!(fields, wanted, "header of {}.cu", spec.name);
            assert!(
                spec.template.starts_with(&format!("// {}: ", spec.name)),
                "first line of {}.cu",
                spec.name
            );
            assert!(!spec.summary().is_empty());
        }
    }

    #[test]
    fn entries_are_found_and_say_what_plans_say() {
        for spec in Algorithm::ALL {
            let algorithm = (spec.default)();
            assert_eq!(algorithm.name(), spec.name);
            let config = KernelConfig::builder(algorithm).build().unwrap();
            let says = config.outline().guarantees.fill_touches_x;
            assert_eq!(algorithm.fill_touches_x(), says, "{}", spec.name);
        }
    }

    #[test]
    fn defaults_are_allowed_and_documented() {
        for spec in Algorithm::ALL {
            for (parameter, value) in spec.parameters.iter().zip((spec.default)().parameter_values()) {
                assert_eq!(value, parameter.default);
                assert!(parameter.allowed.contains(&value), "{} {}", spec.name, parameter.name);
                assert!(parameter.doc.ends_with('.'), "{} {}", spec.name, parameter.name);
            }
        }
    }
}
