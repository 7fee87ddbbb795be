//! Covers of an algorithm's configurations: every one, or few in which every pair of settings occurs.

#![allow(dead_code, reason = "each program that includes this uses its part")]

use std::collections::{BTreeMap, BTreeSet};

use spmv_codegen::{
    Algorithm, AlgorithmSpec, COMMON_KEYS, KernelConfig, Operation, Semiring, ValueKind, ValueType,
};

/// One setting and its values, as text.
pub struct Dimension {
    pub key: &'static str,
    pub values: Vec<String>,
}

/// Everything that a configuration of this algorithm can say of sums of products.
pub fn dimensions(spec: &AlgorithmSpec) -> Vec<Dimension> {
    let parameters = spec.parameters.iter().map(|parameter| Dimension {
        key: parameter.name,
        values: parameter.allowed.iter().map(u32::to_string).collect(),
    });
    let common = COMMON_KEYS.iter().filter(|key| key.name != "semiring").map(|key| match key.name {
        // No other configuration is allowed; a search for one would be long.
        "operation" => {
            Dimension { key: key.name, values: spec.operations.iter().map(ToString::to_string).collect() }
        }
        "index" if spec.narrow_columns == 0 => Dimension { key: key.name, values: vec!["u32".into()] },
        // Others are covered by lists of their own.
        "value" | "x" | "y" | "accumulator" => {
            let is_float =
                |name: &String| name.parse().is_ok_and(|value: ValueType| value.kind() == ValueKind::Float);
            Dimension { key: key.name, values: (key.allowed)().into_iter().filter(is_float).collect() }
        }
        _ => Dimension { key: key.name, values: (key.allowed)() },
    });
    parameters.chain(common).collect()
}

/// Types of a product over a semiring: value, x, y, accumulator.
const SEMIRING_TYPES: &[[&str; 4]] = &[
    ["f32", "f32", "f32", "f32"],
    ["f64", "f64", "f64", "f64"],
    ["f16", "f16", "f16", "f32"],
    ["bf16", "f32", "f64", "f64"],
    ["f32", "bf16", "f16", "f32"],
    ["f32", "f64", "f32", "f64"],
    ["i32", "i32", "i32", "i32"],
    ["bool", "bool", "bool", "bool"],
    ["i8", "i64", "i64", "i64"],
];

/// Those that functions of the user compute in.
const FLOAT_TYPES: &[[&str; 4]] = SEMIRING_TYPES.split_at(6).0;

/// Types of a sum of products beside floating-point ones; those that follow are taken in turn.
const TYPES: &[[&str; 4]] = &[
    ["i32", "i32", "i32", "i32"],
    ["i64", "i64", "i64", "i64"],
    ["c32", "c32", "c32", "c32"],
    ["c64", "c64", "c64", "c64"],
];
const MIXED_TYPES: &[[&str; 4]] = &[
    ["u32", "u32", "u32", "u32"],
    ["i8", "i8", "i32", "i32"],
    ["f32", "c32", "c32", "c32"],
    ["i8", "f32", "f32", "f32"],
    ["bool", "i32", "i64", "i64"],
    ["c32", "f64", "c64", "c64"],
    ["bool", "f16", "bf16", "f64"],
    ["i8", "i8", "i8", "i32"],
];

/// A configuration of these types for each, over the semirings in turn and the other settings in theirs: every semiring that
/// the algorithm computes over, and over all algorithms every semiring with every type that it has a meaning for.
pub fn over_semirings(spec: &AlgorithmSpec) -> Vec<KernelConfig> {
    let others: Vec<_> =
        spec.semirings.iter().copied().filter(|semiring| *semiring != Semiring::PlusTimes).collect();
    let types = if others.is_empty() { &[][..] } else { SEMIRING_TYPES };
    types.iter().enumerate().filter_map(|(index, types)| in_turn(spec, index, &others, types)).collect()
}

/// A configuration for each of `TYPES` and for two of `MIXED_TYPES`, or for each with `SPMV_EVERY_TYPE=1`; the other
/// settings in turn.
pub fn over_types(spec: &AlgorithmSpec) -> Vec<KernelConfig> {
    let turn = turn_of(spec);
    let every = std::env::var("SPMV_EVERY_TYPE").is_ok_and(|value| value == "1");
    let count = if every { MIXED_TYPES.len() } else { 2 };
    let mixed = (0..count).map(|more| &MIXED_TYPES[(2 * turn + more) % MIXED_TYPES.len()]);
    let types = TYPES.iter().chain(mixed).enumerate();
    types.filter_map(|(index, types)| in_turn(spec, index, &[Semiring::PlusTimes], types)).collect()
}

fn turn_of(spec: &AlgorithmSpec) -> usize {
    Algorithm::ALL.iter().position(|other| other.name == spec.name).expect("a registered algorithm")
}

/// The first configuration of these types that is allowed when semirings and other settings take turns.
fn in_turn(
    spec: &AlgorithmSpec,
    index: usize,
    semirings: &[Semiring],
    types: &[&str; 4],
) -> Option<KernelConfig> {
    const TURNS: usize = 48;
    (0..TURNS).find_map(|later| {
        let turn = turn_of(spec) + index + later;
        let mut settings = vec![("semiring", semirings[turn % semirings.len()].to_string())];
        settings.extend(["value", "x", "y", "accumulator"].into_iter().zip(types.map(str::to_owned)));
        settings.extend(dimensions(spec).into_iter().filter_map(|dimension| {
            let values = match dimension.key {
                "threads_per_block" => ["64", "128", "256"].map(str::to_owned).to_vec(),
                "alpha" | "beta" if semirings == [Semiring::PlusTimes] => dimension.values,
                "beta" => ["any", "0", "1"].map(str::to_owned).to_vec(),
                "alpha" | "value" | "x" | "y" | "accumulator" => return None,
                _ => dimension.values,
            };
            let by = 1 + dimension.key.len() % 2;
            Some((dimension.key, values[(turn + index * (by - 1)) % values.len()].clone()))
        }));
        let settings = settings.iter().map(|(key, value)| (*key, value.as_str()));
        KernelConfig::from_settings(spec.name, settings).ok()
    })
}

/// What the user may write, with small whole numbers for small whole numbers; the last ones leave the product as it is.
const WRITTEN: [&[(&str, &str)]; 13] = [
    &[("combine", "|a, x| (a - x).abs()"), ("reduce", "|s, t| s.max(t)"), ("identity", "-1e30")],
    &[("map_value", "|a| a.abs()"), ("map_x", "|x, col| if col % 2 == 0 { x } else { -x }")],
    &[("combine", "|a, x| a.mul_add(x, 1.0)")],
    &[
        ("semiring", "min_plus"),
        ("map_value", "|a| { let b = a.max(0.0); b + b }"),
        ("map_x", "|x, col| x - (col / 2) as ACCUMULATOR"),
    ],
    &[
        ("reduce", "|s, t| if s < t { s } else { t }"),
        ("identity", "ACCUMULATOR::INFINITY"),
        ("epilogue", "|row, sum, y, b| if b < sum { b } else { sum - row as ACCUMULATOR }"),
        ("vectors", "[b]"),
    ],
    &[("map_x", "|x, col| x.powi(2).clamp(1.0, 4.0)"), ("epilogue", "|row, sum, y| sum + 2.0 * y")],
    &[("epilogue", "|row, sum, y| sum.max(0.0)")],
    &[
        ("epilogue", "|row, sum, y, d, omega| y + omega * (sum - d)"),
        ("vectors", "[d]"),
        ("scalars", "[omega]"),
    ],
    &[
        ("epilogue", "|row, sum, y, c, mask| if mask > 0.0 && row % 3 != 1 { c * sum } else { y }"),
        ("vectors", "[mask]"),
        ("scalars", "[c]"),
    ],
    &[
        ("epilogue", "|row, sum, y, d, e, c, int| { let s = d * c - e; s.signum() * (sum - int) }"),
        ("vectors", "[e, d]"),
        ("scalars", "[c, int]"),
    ],
    &[("dot", "|row, result, p| result * p"), ("vectors", "[p]")],
    &[
        ("epilogue", "|row, sum, y, b, c| b - c * sum"),
        ("dot", "|row, r, d, b| if row % 2 == 0 { r * r } else { d * b }"),
        ("vectors", "[b]"),
        ("scalars", "[c, d]"),
    ],
    &[("dot", "|row, result| (result * 0.37).powi(2) - 1e-3 * result")],
];

/// Of `WRITTEN`, those that leave the product as it is.
const EPILOGUES: std::ops::Range<usize> = 6..13;

/// Some of what the user may write with some types, in turn: over all algorithms everything with every type. With
/// `SPMV_EVERY_FUNCTION=1` every combination.
pub fn over_functions(spec: &AlgorithmSpec) -> Vec<KernelConfig> {
    if std::env::var("SPMV_EVERY_FUNCTION").is_ok_and(|value| value == "1") {
        return every_combination(spec);
    }
    let turn =
        Algorithm::ALL.iter().position(|other| other.name == spec.name).expect("a registered algorithm");
    let written: Vec<_> = match (spec.semirings.len(), spec.takes_epilogue()) {
        (1, false) => return vec![],
        (1, true) => WRITTEN[EPILOGUES].iter().collect(),
        _ => WRITTEN.iter().collect(),
    };
    let number = if written.len() == WRITTEN.len() { 5 } else { 2 };
    let configure = |index: usize| {
        let types = &FLOAT_TYPES[(turn + index * 5) % FLOAT_TYPES.len()];
        let functions = written[(turn * number + index) % written.len()];
        let transposed = spec.operations.len() > 1 && index % 4 == 3;
        let operation = spec.operations[usize::from(transposed)];
        let threads = ["64", "128", "256"][(turn + index) % 3];
        let with = |parameters: &[(&'static str, String)]| {
            let mut settings = parameters.to_vec();
            settings.push(("threads_per_block", threads.to_owned()));
            of_written(spec, operation, types, functions, &settings)
        };
        // `tests/functions.rs` has matrices of blocks.
        let parameters = spec.parameters.iter().filter(|parameter| parameter.name != "block");
        let in_turn: Vec<_> = parameters
            .enumerate()
            .map(|(place, parameter)| {
                let allowed = parameter.allowed;
                (parameter.name, allowed[(turn + index + place * index) % allowed.len()].to_string())
            })
            .collect();
        with(&in_turn).or_else(|| with(&[])).expect("what the tables have is allowed")
    };
    (0..number).map(configure).collect()
}

/// Every operation, semiring and entry of `WRITTEN` that the algorithm takes, with each other and with all types that they
/// have; the rest is the default.
fn every_combination(spec: &AlgorithmSpec) -> Vec<KernelConfig> {
    let nothing: &[(&str, &str)] = &[];
    let mut configs = Vec::new();
    for &operation in spec.operations {
        for semiring in spec.semirings {
            for functions in WRITTEN.into_iter().chain([nothing]) {
                let semiring = [("semiring", semiring.name().to_owned())];
                let of_types = |types| of_written(spec, operation, types, functions, &semiring);
                configs.extend(SEMIRING_TYPES.iter().filter_map(of_types));
            }
        }
    }
    // What says its own semiring comes once for each.
    let mut seen = BTreeSet::new();
    configs.retain(|config| seen.insert(config.to_string()));
    configs
}

/// The configuration of these choices, where it is allowed; what is written comes last.
fn of_written(
    spec: &AlgorithmSpec,
    operation: Operation,
    types: &[&str; 4],
    functions: &[(&str, &str)],
    others: &[(&'static str, String)],
) -> Option<KernelConfig> {
    let mut builder = KernelConfig::named(spec.name).expect("a registered algorithm");
    let types_of = ["value", "x", "y", "accumulator"].into_iter().zip(types.iter().copied());
    let others = others.iter().map(|(key, value)| (*key, value.as_str()));
    for (key, value) in types_of.chain([("operation", operation.name())]).chain(others) {
        builder.set(key, value).expect("a value of the tables");
    }
    // Functions compute in two of the types.
    for (key, text) in functions {
        builder.set(key, &text.replace("ACCUMULATOR", types[3])).ok()?;
    }
    builder.build().ok()
}

/// The configuration of these choices, one a dimension, where it is allowed.
fn configure(spec: &AlgorithmSpec, dimensions: &[Dimension], choice: &[usize]) -> Option<KernelConfig> {
    let mut builder = KernelConfig::named(spec.name).expect("a registered algorithm");
    for (dimension, &value) in dimensions.iter().zip(choice) {
        builder.set(dimension.key, &dimension.values[value]).expect("a listed value");
    }
    builder.build().ok()
}

/// Every configuration that is allowed.
pub fn all(spec: &AlgorithmSpec) -> Vec<KernelConfig> {
    within(spec, &dimensions(spec), usize::MAX)
}

/// Every configuration of these values that is allowed; those of `most` choices at random where there are more choices.
pub fn within(spec: &AlgorithmSpec, dimensions: &[Dimension], most: usize) -> Vec<KernelConfig> {
    let total = dimensions.iter().map(|dimension| dimension.values.len()).product::<usize>();
    let configs = (0..total.min(most)).filter_map(|number| {
        // SplitMix64.
        let mix = |z: u64, shift: u32, factor: u64| (z ^ z >> shift).wrapping_mul(factor);
        let z = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = mix(mix(z, 30, 0xbf58_476d_1ce4_e5b9), 27, 0x94d0_49bb_1331_11eb);
        let random = (z ^ z >> 31) as usize % total;
        let mut left = if total > most { random } else { number };
        let choice = dimensions.iter().map(|dimension| {
            let value = left % dimension.values.len();
            left /= dimension.values.len();
            value
        });
        configure(spec, dimensions, &choice.collect::<Vec<_>>())
    });
    configs.collect()
}

type Pair = ((usize, usize), (usize, usize));

/// What the search takes for impossible: pairs that need a third setting which is not the default.
const NOT_FOUND: [(&str, [(&str, &str); 3]); 2] = [
    ("special", [("block", "4"), ("rows_per_lane", "4"), ("entries_per_step", "1")]),
    ("special", [("block", "6"), ("rows_per_lane", "2"), ("entries_per_step", "1")]),
];

/// Few configurations in which every pair of values that is allowed at all occurs, of the algorithm's own operation; and
/// every tenth of them for its others, which have the same kernels on a copy. Greedy, the same every time.
pub fn pairwise(spec: &AlgorithmSpec) -> Vec<KernelConfig> {
    let mut dimensions = dimensions(spec);
    dimensions.iter_mut().filter(|d| d.key == "operation").for_each(|d| d.values.truncate(1));
    // Types, offsets and threads are what combinations are refused for: those that are chosen last vary first.
    dimensions.sort_by_key(|d| {
        matches!(d.key, "threads_per_block" | "offset" | "value" | "x" | "y" | "accumulator")
    });
    let mut open: BTreeSet<Pair> = BTreeSet::new();
    for a in 0..dimensions.len() {
        for b in a + 1..dimensions.len() {
            for i in 0..dimensions[a].values.len() {
                open.extend((0..dimensions[b].values.len()).map(|j| ((a, i), (b, j))));
            }
        }
    }
    let mut choices: Vec<Vec<usize>> = Vec::new();
    while let Some(&(first, second)) = open.iter().next() {
        let Some(choice) = search(spec, &dimensions, &BTreeMap::from([first, second]), &open) else {
            // No configuration that is allowed holds this pair, or none that is found soon; perhaps none holds one of the two.
            open.remove(&(first, second));
            for alone in [first, second] {
                let stands = choices.iter().any(|choice| choice[alone.0] == alone.1);
                if !stands && search(spec, &dimensions, &BTreeMap::from([alone]), &open).is_none() {
                    open.retain(|(a, b)| *a != alone && *b != alone);
                }
            }
            continue;
        };
        open.retain(|&((a, i), (b, j))| choice[a] != i || choice[b] != j);
        choices.push(choice);
    }
    let mut configs: Vec<KernelConfig> = choices
        .iter()
        .map(|choice| configure(spec, &dimensions, choice).expect("completions are allowed"))
        .collect();
    let tenths: Vec<_> = configs.iter().step_by(10).map(KernelConfig::to_builder).collect();
    for &operation in &spec.operations[1..] {
        configs.extend(tenths.iter().filter_map(|builder| builder.clone().operation(operation).build().ok()));
    }
    for (_, settings) in NOT_FOUND.iter().filter(|(name, _)| *name == spec.name) {
        let mut builder = KernelConfig::named(spec.name).expect("a registered algorithm");
        settings.iter().for_each(|(key, value)| builder.set(key, value).expect("a listed value"));
        configs.push(builder.build().expect("settings that go together"));
    }
    configs
}

/// Configurations that are tried for a pair: all types several times over.
const MAX_TRIALS: usize = 2048;

/// A configuration with these choices, of those values that occur in most open pairs. Choices are given up as soon as they
/// are not allowed with the rest left as it is; where that finds nothing, with types too left as they are; then every one
/// is tried. All but the first up to a number.
fn search(
    spec: &AlgorithmSpec,
    dimensions: &[Dimension],
    fixed: &BTreeMap<usize, usize>,
    open: &BTreeSet<Pair>,
) -> Option<Vec<usize>> {
    let is_type = |d: usize| matches!(dimensions[d].key, "value" | "x" | "y" | "accumulator");
    let enough = |trials: &mut usize, fixed: &BTreeMap<usize, usize>| {
        *trials += usize::from(fixed.len() == dimensions.len());
        *trials > MAX_TRIALS
    };
    let mut refused = |fixed: &BTreeMap<usize, usize>| !is_allowed(spec, dimensions, fixed);
    let (mut trials_of_types, mut trials) = (0, 0);
    let mut refused_but_for_types = |fixed: &BTreeMap<usize, usize>| {
        let others = fixed.iter().filter(|(d, _)| !is_type(**d)).map(|(d, value)| (*d, *value));
        enough(&mut trials_of_types, fixed) || !is_allowed(spec, dimensions, &others.collect())
    };
    let mut tried_enough = |fixed: &BTreeMap<usize, usize>| enough(&mut trials, fixed);
    // Two types that no types go with need no search of the rest.
    let searches: &mut [Hopeless<'_>] = match fixed.keys().all(|d| is_type(*d)) {
        true => &mut [&mut refused, &mut refused_but_for_types],
        false => &mut [&mut refused, &mut refused_but_for_types, &mut tried_enough],
    };
    let mut found = searches
        .iter_mut()
        .filter_map(|is_hopeless| complete(spec, dimensions, fixed.clone(), open, *is_hopeless));
    found.next()
}

/// Whether a configuration of these choices alone is allowed, the rest as the builder has it.
fn is_allowed(spec: &AlgorithmSpec, dimensions: &[Dimension], fixed: &BTreeMap<usize, usize>) -> bool {
    let mut builder = KernelConfig::named(spec.name).expect("a registered algorithm");
    for (&dimension, &value) in fixed {
        let dimension = &dimensions[dimension];
        builder.set(dimension.key, &dimension.values[value]).expect("a listed value");
    }
    builder.build().is_ok()
}

/// Whether choices are not worth completing.
type Hopeless<'a> = &'a mut dyn FnMut(&BTreeMap<usize, usize>) -> bool;

/// Fills in the dimensions that are not fixed, those values first that occur in most open pairs.
fn complete(
    spec: &AlgorithmSpec,
    dimensions: &[Dimension],
    fixed: BTreeMap<usize, usize>,
    open: &BTreeSet<Pair>,
    is_hopeless: Hopeless<'_>,
) -> Option<Vec<usize>> {
    let Some(free) = (0..dimensions.len()).find(|d| !fixed.contains_key(d)) else {
        let choice: Vec<usize> = fixed.into_values().collect();
        return configure(spec, dimensions, &choice).map(|_| choice);
    };
    let gain = |value: usize| {
        let new = fixed.iter().filter(|&(&d, &v)| {
            let pair = if d < free { ((d, v), (free, value)) } else { ((free, value), (d, v)) };
            open.contains(&pair)
        });
        new.count()
    };
    let mut values: Vec<usize> = (0..dimensions[free].values.len()).collect();
    values.sort_by_key(|&value| std::cmp::Reverse(gain(value)));
    values.into_iter().find_map(|value| {
        let mut fixed = fixed.clone();
        fixed.insert(free, value);
        if is_hopeless(&fixed) {
            return None;
        }
        complete(spec, dimensions, fixed, open, is_hopeless)
    })
}
