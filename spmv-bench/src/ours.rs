//! The generated kernels.

use std::collections::HashMap;
use std::time::Duration;

use rayon::prelude::*;
use spmv_runtime::codegen::{
    Algorithm, Arg, Buffer, Coefficient, ConfigError, Features, KernelConfig, Loads, Pass, Special, ValueType,
};
use spmv_runtime::{COMMON_KEYS, Device, MatrixSource, Origin, RealElement, Spmv, planner};

use crate::contender::{Absent, Contender, Facts, OnDevice, Prepared, Product, Task};
use crate::record::Row;
use crate::request::{Operation, Request, Variants, ours_name};

/// Configurations that take part, and why others do not.
pub(crate) struct Configs {
    pub(crate) configs: Vec<KernelConfig>,
    /// Algorithms that refuse their default configuration: name and reason.
    pub(crate) refused: Vec<(String, String)>,
}

/// The selected algorithms' configurations for a type and an operation. Where the features of a matrix are known, `special`
/// has the layout for it, and that is what its parameters are; and all have the loads for it unless the request says which.
pub(crate) fn configs(
    request: &Request,
    value: ValueType,
    operation: Operation,
    features: Option<&Features>,
    l2_bytes: u64,
) -> Configs {
    let mut found = Configs { configs: Vec::new(), refused: Vec::new() };
    for spec in Algorithm::ALL {
        let Some(operation) = operation.computed_by(spec) else { continue };
        let name = ours_name(spec.name);
        if !request.contenders.has(&name) {
            continue;
        }
        let with = |changes: &[(&str, &str)]| -> Result<KernelConfig, ConfigError> {
            let mut builder = KernelConfig::builder((spec.default)()).value(value).operation(operation);
            builder = builder.alpha(known(request.alpha)).beta(known(request.beta));
            if let Some(features) = features {
                let loads = planner::loads(builder.clone().build()?, features, l2_bytes);
                builder = builder.loads(loads);
            }
            for (key, text) in changes {
                builder.set(key, text)?;
            }
            builder.build()
        };
        let usual = with(&[]).and_then(|config| match features {
            Some(features) => planner::usually_laid_out(config, features, l2_bytes),
            None => Ok(config),
        });
        match usual {
            Ok(config) => found.configs.push(config),
            Err(error) => {
                found.refused.push((name, error.to_string()));
                continue;
            }
        }
        let mut changes = Vec::new();
        // A product with a copy is a plain one.
        let is_varied = !spec.takes_a_copy(operation) && request.variants != Variants::Default;
        // Of `special`, shapes are variants, and the other parameters are those for the matrix.
        let of_shapes =
            features.filter(|_| is_varied && spec.name == "special").map_or_else(Vec::new, |features| {
                let of_shape =
                    |shape: Special| with(&[])?.to_builder().algorithm(shape.for_values(value)).build();
                let laid_out = |shape| planner::laid_out(of_shape(shape)?, features, l2_bytes);
                Special::SHAPES.into_iter().filter_map(|shape| laid_out(shape).ok()).collect()
            });
        if is_varied && spec.name != "special" {
            for parameter in spec.parameters {
                changes.extend(parameter.allowed.iter().map(|value| (parameter.name, value.to_string())));
            }
        }
        if request.variants == Variants::All {
            let threads = COMMON_KEYS.iter().filter(|key| key.name == THREADS_PER_BLOCK);
            changes.extend(threads.flat_map(|key| (key.allowed)().into_iter().map(|text| (key.name, text))));
        }
        let named = request.configurations.iter().filter(|named| named.algorithm == spec.name);
        for settings in named.map(|named| &named.settings) {
            let settings: Vec<_> = settings.iter().map(|(key, text)| (&**key, &**text)).collect();
            match with(&settings) {
                Ok(config) if found.configs.contains(&config) => {}
                Ok(config) => found.configs.push(config),
                Err(error) => found.refused.push((name.clone(), error.to_string())),
            }
        }
        // What the algorithm refuses is no variant of it. What follows from the matrix does, but where that is what varies.
        let suited = |config: KernelConfig| match features.filter(|_| spec.name != "special") {
            Some(features) => planner::laid_out(config, features, l2_bytes),
            None => Ok(config),
        };
        let varied = changes.iter().filter_map(|(key, text)| {
            let varied = with(&[(key, text)]);
            if Algorithm::FOLLOWING.contains(key) { varied.ok() } else { varied.and_then(suited).ok() }
        });
        for config in varied.chain(of_shapes) {
            if !found.configs.contains(&config) {
                found.configs.push(config);
            }
        }
    }
    found
}

const THREADS_PER_BLOCK: &str = "threads_per_block";

/// What a kernel may know of alpha or beta. None is made for alpha = 0, which is no product.
fn known(number: f64) -> Coefficient {
    match number {
        1.0 => Coefficient::One,
        -1.0 => Coefficient::MinusOne,
        0.0 => Coefficient::Zero,
        _ => Coefficient::Any,
    }
}

/// Kernels of a device, compiled and loaded before anything is timed, with what that took.
#[derive(Default)]
pub(crate) struct Kernels {
    made: HashMap<KernelConfig, Result<Made, String>>,
}

#[derive(Clone, Copy)]
struct Made {
    /// Absent where the machine code was cached.
    compile: Option<Duration>,
    load: Duration,
}

impl Kernels {
    /// Compiles and loads what is new, in parallel.
    pub(crate) fn make(&mut self, device: &Device, configs: &[KernelConfig]) {
        let new: Vec<_> = configs.iter().filter(|config| !self.made.contains_key(config)).collect();
        let make = |config: &&KernelConfig| {
            let made = device.kernel(config).map_err(|error| error.to_string()).map(|(_, from)| Made {
                compile: (from.origin == Origin::Compiled).then_some(from.compile),
                load: from.load,
            });
            (**config, made)
        };
        let made: Vec<_> = new.par_iter().with_max_len(1).map(make).collect();
        self.made.extend(made);
    }
}

/// One configuration.
pub(crate) struct Ours<'k> {
    config: KernelConfig,
    name: String,
    params: String,
    kernels: &'k Kernels,
}

impl<'k> Ours<'k> {
    /// `usual` are the loads that follow from the matrix, where they do: others are told.
    pub(crate) fn new(config: KernelConfig, usual: Option<Loads>, kernels: &'k Kernels) -> Ours<'k> {
        let mut params = params(&config);
        if usual.is_some_and(|usual| usual != config.loads()) {
            params = format!("{params};loads={}", config.loads().name());
        }
        Ours { name: ours_name(config.algorithm().name()), params, config, kernels }
    }
}

/// Parameters of the algorithm, and the block size.
pub(crate) fn params(config: &KernelConfig) -> String {
    let own = config.algorithm().spec().parameters;
    let told = |key: &str| key == THREADS_PER_BLOCK || own.iter().any(|parameter| parameter.name == key);
    let settings = config.settings().into_iter().filter(|(key, _)| told(key));
    settings.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(";")
}

/// The parameters of a row, those too that its algorithm did not have yet when it was measured: with their default values, by
/// which the algorithm is what it was. As they stand where the row is not one of ours, or no configuration of today.
pub(crate) fn all_params(row: &Row) -> String {
    let of = |algorithm: &str, told: &str| {
        let mut builder = KernelConfig::named(algorithm).ok()?;
        let settings = || told.split(';').filter_map(|setting| setting.split_once('='));
        settings().try_for_each(|(key, value)| builder.set(key, value)).ok()?;
        let config = builder.value(row.value.parse().ok()?).build().ok()?;
        let loads = settings().find(|(key, _)| *key == "loads").map(|(_, loads)| format!(";loads={loads}"));
        Some(params(&config) + &loads.unwrap_or_default())
    };
    let all = match (row.contender.strip_prefix("ours:"), row.params.strip_prefix("algorithm=")) {
        (Some(algorithm), _) => of(algorithm, &row.params),
        (None, Some(chosen)) => {
            let (algorithm, told) = chosen.split_once(';').unwrap_or((chosen, ""));
            of(algorithm, told).map(|params| format!("algorithm={algorithm};{params}"))
        }
        (None, None) => None,
    };
    all.unwrap_or_else(|| row.params.clone())
}

impl<V: RealElement> Contender<V> for Ours<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn params(&self) -> &str {
        &self.params
    }

    fn prepare<'t>(&'t self, task: &'t Task<'_, V>) -> Result<Prepared<'t, V>, Absent> {
        let Some(on) = &task.device else {
            return Err(Absent::Skipped("there is no device to run kernels".into()));
        };
        let made = match self.kernels.made.get(&self.config) {
            Some(Ok(made)) => Some(*made),
            Some(Err(error)) => return Err(Absent::Failed(error.clone())),
            None => None,
        };
        let device = &on.device;
        let (matrix, convert_ms) = match self.config.operation().is_of_triangle() {
            true => task.triangle(device).map(|(matrix, ms)| (matrix, Some(ms)))?,
            false if self.config.types().index != on.matrix.index_type() => {
                (task.a.to_device(device, self.config.types())?, None)
            }
            false => (on.matrix.clone(), None),
        };
        let plan = Spmv::with(device, &matrix, self.config)?;
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        let on_gpu = on.instruments.is_some();
        let facts = Facts {
            prepare_ms: on_gpu.then(|| ms(plan.prepare_time())),
            compile_ms: made.and_then(|made| made.compile).map(ms),
            load_ms: made.filter(|_| on_gpu).map(|made| ms(made.load)),
            convert_ms: convert_ms.filter(|_| on_gpu),
            ..facts(&plan, on, task)?
        };
        Ok(prepared(plan, facts, task))
    }
}

/// What a plan tells of itself.
pub(crate) fn facts<V: RealElement>(
    plan: &Spmv,
    on: &OnDevice<'_, V>,
    task: &Task<'_, V>,
) -> Result<Facts, Absent> {
    let mut facts = Facts {
        extra_bytes: plan.workspace_bytes(),
        moved_bytes: stored_bytes(plan) + task.vector_bytes(),
        deterministic: Some(plan.program().guarantees.bit_reproducible),
        ..Facts::default()
    };
    if let Some(pass) = main_pass(plan) {
        let resources = plan.kernel().artifact().kernels.iter();
        facts.registers =
            resources.clone().find(|kernel| kernel.name == pass.kernel).map(|kernel| kernel.registers);
        if let Some(instruments) = on.instruments {
            let threads = plan.kernel().resident_blocks(pass)? * pass.threads_per_block;
            let most = instruments.threads_per_multiprocessor().map_err(Absent::Failed)?;
            facts.occupancy = Some(f64::from(threads) / f64::from(most.max(1)));
        }
    }
    Ok(facts)
}

/// A plan that takes part.
pub(crate) fn prepared<'t, V: RealElement>(
    mut plan: Spmv,
    facts: Facts,
    task: &Task<'_, V>,
) -> Prepared<'t, V> {
    let guarantees = plan.program().guarantees.clone();
    let (alpha, beta) = (task.alpha, task.beta);
    Prepared {
        product: Product::OnDevice(Box::new(move |x, y| {
            plan.apply(alpha, x, beta, y).map_err(|error| error.to_string())
        })),
        facts,
        depth: Box::new(move |row_nnz| guarantees.depth(row_nnz)),
    }
}

/// The pass that multiplies: of those that are launched the first that reads x and stores y, or, where none does both, that
/// reads x.
fn main_pass(plan: &Spmv) -> Option<&Pass> {
    let mut reading = plan.launched().filter(|pass| pass.args.contains(&Arg::X)).peekable();
    let first = reading.peek().copied();
    reading.find(|pass| pass.args.contains(&Arg::Y)).or(first)
}

/// Bytes of the matrix that a product reads, at least: row offsets where it takes them, entries, and what the plan keeps. Where the
/// plan keeps values of its own and a product takes those of CSR, or of a copy, too, as for rows of some lengths only, the larger of
/// both counts.
fn stored_bytes(plan: &Spmv) -> u64 {
    let matrix = plan.matrix();
    let reads = |wanted: fn(&Arg) -> bool| plan.launched().any(|pass| pass.args.iter().any(wanted));
    let (rows, nnz) = (matrix.num_rows() as u64, matrix.nnz() as u64);
    let of = |read: bool, bytes: u64| if read { bytes } else { 0 };
    let [mut offsets, mut entries, mut kept] = [
        of(reads(|arg| matches!(arg, Arg::RowOffsets)), (rows + 1) * matrix.offset_type().size() as u64),
        of(reads(|arg| matches!(arg, Arg::ColIndices)), nnz * matrix.index_type().size() as u64)
            + of(reads(|arg| matches!(arg, Arg::Values)), nnz * matrix.value_type().size() as u64),
        0,
    ];
    for (index, (buffer, bytes)) in plan.program().buffers.iter().zip(plan.buffer_bytes()).enumerate() {
        let is_read = plan.launched().any(|pass| pass.args.contains(&Arg::Buffer(index)));
        *match buffer.name {
            "transposed_offsets" | "expanded_offsets" => &mut offsets,
            "transposed_indices" | "transposed_values" | "expanded_indices" | "expanded_values" => {
                &mut entries
            }
            _ => &mut kept,
        } += of(is_read, *bytes);
    }
    let copied = |buffer: &Buffer| ["transposed_values", "expanded_values"].contains(&buffer.name);
    let copied = plan.program().buffers.iter().position(copied);
    // Of a copy's passes the one that makes its values reads the matrix's.
    let keeps_values = plan.program().prepare.iter().any(|pass| {
        let reads_values = pass.args.contains(&Arg::Values);
        copied.map_or(reads_values, |values| pass.args.contains(&Arg::Buffer(values)) && !reads_values)
    });
    offsets + if keeps_values { entries.max(kept) } else { entries + kept }
}

#[cfg(test)]
mod tests {
    use spmv_runtime::codegen::AlgorithmSpec;

    use super::*;
    use crate::request::{Configuration, Place, Selection};

    fn request(patterns: &[&str], variants: Variants) -> Request {
        let contenders =
            Selection::new(patterns.iter().map(|pattern| (*pattern).to_owned()).collect()).unwrap();
        Request { contenders, variants, ..Request::new(Vec::new(), Place::Cpu) }
    }

    #[test]
    fn parameters_that_came_later_have_their_defaults() {
        let told = |contender: &str, params: &str| {
            let (contender, params) = (contender.to_owned(), params.to_owned());
            all_params(&Row { contender, params, value: "f32".into(), ..Row::default() })
        };
        for (contender, params, expected) in [
            ("ours:dia", "threads_per_block=128", "encoding=0;threads_per_block=128"),
            ("ours:jds", "threads_per_block=256", "transposed=1;threads_per_block=256"),
            ("ours:jds", "transposed=0;threads_per_block=256", "transposed=0;threads_per_block=256"),
            ("ours:csr5", "sigma=8;loads=cached", "sigma=8;encoding=0;threads_per_block=256;loads=cached"),
            ("auto", "algorithm=csr5;sigma=8", "algorithm=csr5;sigma=8;encoding=0;threads_per_block=256"),
            ("auto", "algorithm=dia", "algorithm=dia;encoding=0;threads_per_block=256"),
            ("cusparse:sell", "preprocess=yes", "preprocess=yes"),
            ("ours:unheard_of", "sigma=8", "sigma=8"),
            ("ours:csr5", "sigma=7", "sigma=7"),
        ] {
            assert_eq!(told(contender, params), expected, "{contender} {params}");
        }
    }

    /// What is said of a plan is said of the kernels that its products launch.
    #[test]
    fn facts_are_of_what_is_launched() {
        let device = Device::simulator();
        let plan = |algorithm: &str, value: f64| {
            let values: Vec<f64> = (0..4000).map(|entry| value + f64::from(entry % 7)).collect();
            let cols = (0..4000).map(|entry| (entry * 37 % 1000) as u32);
            let mut cols: Vec<u32> = cols.collect();
            cols.chunks_mut(4).for_each(<[u32]>::sort_unstable);
            let offsets: Vec<u32> = (0..=1000).map(|row| row * 4).collect();
            let a = spmv_runtime::matrix::CsrMatrix::new(1000, 1000, offsets, cols, values).unwrap();
            let config = KernelConfig::from_settings(
                algorithm,
                [("encoding", "3"), ("value", "f64"), ("x", "f64"), ("y", "f64"), ("accumulator", "f64")],
            );
            Spmv::with(&device, &a, config.unwrap()).unwrap()
        };
        for algorithm in ["hot_columns", "csr5", "cache_blocked", "dia"] {
            for (value, name) in [(1.0, "_encoded"), (0.3, "")] {
                let found = plan(algorithm, value);
                assert_eq!(main_pass(&found).unwrap().kernel, format!("spmv_{algorithm}{name}"));
            }
        }
        // 4000 values of eight bytes are no part of what is read.
        let (encoded, given) = (plan("hot_columns", 1.0), plan("hot_columns", 0.3));
        assert_eq!(stored_bytes(&encoded), encoded.workspace_bytes());
        assert_eq!(stored_bytes(&given), given.workspace_bytes().max(32_000));
    }

    /// A plan that keeps no values keeps something to read beside them.
    #[test]
    fn rows_of_entries_are_read_beside_them() {
        let device = Device::simulator();
        let generator =
            spmv_runtime::matrix::generate::Generator::new("tridiagonal").unwrap().set("n", 1000.0).unwrap();
        let a = generator.generate::<f32, u32>().unwrap();
        let coo = Spmv::with(&device, &a, KernelConfig::named("coo").unwrap().build().unwrap()).unwrap();
        let (rows, entries) = (1001 * 4, a.nnz() as u64 * 8);
        assert!(coo.workspace_bytes() >= a.nnz() as u64 * 4);
        assert_eq!(stored_bytes(&coo), rows + entries + coo.workspace_bytes());
    }

    /// Arrays of a copy are counted as those of the matrix are.
    #[test]
    fn transposed_products_read_what_others_do() {
        let device = Device::simulator();
        let generator = spmv_runtime::matrix::generate::Generator::new("gaussian").unwrap();
        let a = generator.set("n", 1000.0).unwrap().generate::<f32, u32>().unwrap();
        for algorithm in ["csr_vector", "coo", "dasp", "sell_c_sigma"] {
            let bytes = |operation: &str| {
                let config = KernelConfig::from_settings(algorithm, [("operation", operation)]).unwrap();
                stored_bytes(&Spmv::with(&device, &a, config).unwrap()) as f64
            };
            let ratio = bytes("transpose") / bytes("non_transpose");
            assert!((0.9..1.1).contains(&ratio), "{algorithm}: {ratio}");
        }
    }

    #[test]
    fn variants_change_one_parameter_at_a_time() {
        let all = |variants| {
            let request = request(&["ours:csr_vector"], variants);
            let found = configs(&request, ValueType::F64, Operation::NonTranspose, None, 0);
            assert!(found.refused.is_empty());
            found.configs.iter().map(params).collect::<Vec<_>>()
        };
        assert_eq!(all(Variants::Default).len(), 1);
        let each = all(Variants::Each);
        let parameters =
            spmv_runtime::codegen::AlgorithmSpec::find("csr_vector").expect("there is one").parameters;
        let others: usize = parameters.iter().map(|parameter| parameter.allowed.len() - 1).sum();
        assert_eq!(each.len(), 1 + others);
        let changed = each.iter().find(|params| params.contains("threads_per_vector=2;")).expect("a variant");
        assert_eq!(changed.replace("vector=2;", "vector=8;"), each[0]);
        let with_blocks = all(Variants::All);
        assert!(with_blocks.len() > each.len());
        assert!(with_blocks.iter().any(|params| params.ends_with("threads_per_block=64")));
    }

    #[test]
    fn algorithms_take_part_in_the_operations_that_they_compute() {
        let request = request(&["ours:*"], Variants::Default);
        let names = |operation| {
            let found = configs(&request, ValueType::F32, operation, None, 0);
            assert!(found.refused.is_empty(), "{:?}", found.refused);
            found.configs.iter().map(|config| config.algorithm().name()).collect::<Vec<_>>()
        };
        for operation in Operation::ALL {
            let computes = |spec: &&AlgorithmSpec| operation.computed_by(spec).is_some();
            let computing: Vec<_> = Algorithm::ALL.iter().filter(computes).map(|spec| spec.name).collect();
            assert!(!computing.is_empty() && names(operation) == computing, "{operation}");
        }
    }

    #[test]
    fn configurations_can_be_named() {
        let named = |key: &str, value: &str| Configuration {
            algorithm: "csr_vector".into(),
            settings: vec![("threads_per_vector".into(), "4".into()), (key.into(), value.into())],
        };
        let request = Request {
            configurations: vec![named("threads_per_block", "128"), named("sigma", "4")],
            ..request(&["ours:csr_vector"], Variants::Default)
        };
        let found = configs(&request, ValueType::F32, Operation::NonTranspose, None, 0);
        let told = params(&found.configs[1]);
        assert!(
            told.starts_with("threads_per_vector=4;") && told.ends_with(";threads_per_block=128"),
            "{told}"
        );
        assert!(found.refused[0].1.contains("no setting `sigma`"), "{:?}", found.refused);
    }

    #[test]
    fn refused_combinations_are_left_out() {
        let request = request(&["ours:csr_scalar"], Variants::All);
        let found = configs(&request, ValueType::F32, Operation::NonTranspose, None, 0);
        let problems: Vec<_> =
            found.configs.iter().flat_map(|config| config.to_builder().problems()).collect();
        assert!(problems.is_empty(), "{problems:?}");
        assert!(found.configs.iter().all(|config| config.scaling().beta == Coefficient::Zero));
    }
}
