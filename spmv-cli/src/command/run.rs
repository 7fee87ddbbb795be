//! `spmv run`: a matrix in, a verified product out.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use spmv_runtime::codegen::{
    AlgorithmSpec, ConfigError, CsrScalar, IndexType, KernelConfig, KernelConfigBuilder, Operation, Semiring,
    StorageFormat, Types, ValueType,
};
use spmv_runtime::matrix::{Complex32, Complex64, CsrMatrix, Statistics, bf16, cpu_parallel, f16};
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::tuning::Question;
use spmv_runtime::{Device, DeviceMatrix, DeviceOffset, Error, Nvrtc, Spmv, planner};

use crate::choice::{self, ConstraintArgs, by_default, l2_bytes};
use crate::counters::CounterFacts;
use crate::device::{DeviceChoice, DeviceFacts, Opened, open, parse_device, parse_schedule};
use crate::expected::{Multiplied, Promise, Verification};
use crate::failure::{Failure, Kind};
use crate::files;
use crate::kernel::{CompiledFacts, SettingFacts, config_text};
use crate::measure::{Effort, Performance};
use crate::memory;
use crate::on_cpu::OnCpu;
use crate::on_device::OnDevice;
use crate::operands::{Operands, number_of, parts};
use crate::product::{Computed, compute};
use crate::quantity;
use crate::reading::{self, Header, MatrixFacts};
use crate::report::{OutputArgs, Report, fact};
use crate::settings::{SettingArgs, algorithm_names, with_types};
use crate::stored::{Read, Storage, StorageArgs, Stored, of_arrays};
use crate::vectors;

/// Bytes of memory that a product and its verification take for each row: what reading takes, y before, y twice after, the
/// reference with its bound and row lengths, and y in its own type.
const ROW_BYTES: u64 = memory::READING_ROW_BYTES + 8 * 8;

/// For each column: x, also in its own type, for the product and for the reference.
const COL_BYTES: u64 = 3 * 8;

/// Read a matrix and compute y <- alpha A x + beta y with a generated kernel, verified and timed
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Run {
    /// A Matrix Market file, plain or compressed with gzip, or a .npz file of SciPy's; - is standard input; complex
    /// values are c64 where --value says nothing
    #[arg(value_name = "A.mtx", value_parser = files::input())]
    matrix: PathBuf,
    /// The algorithm; without it the one that `spmv tune` found for this matrix, else the one that is expected to be the
    /// fastest (`spmv explain` says why)
    #[arg(long, value_name = "NAME", value_parser = algorithm_names())]
    algorithm: Option<String>,
    #[command(flatten)]
    settings: SettingArgs,
    #[command(flatten)]
    constraints: ConstraintArgs,
    #[command(flatten)]
    storage: StorageArgs,
    /// Where to compute: a GPU, the simulator, which runs the same kernel without one, or the CPU, which runs
    /// none. `auto` takes the first GPU, and the simulator where there is none or an option asks for it
    #[arg(long, value_name = "auto|cuda[:N]|sim|cpu", default_value = "auto", value_parser = parse_device)]
    device: DeviceChoice,
    /// In which order the simulator runs blocks, warps and lanes: `natural`, or adversarial from a seed, which
    /// finds what depends on the order [default: natural]
    #[arg(long, value_name = "natural|SEED", allow_negative_numbers = true, value_parser = parse_schedule)]
    schedule: Option<Schedule>,
    /// Tell what the simulator counts of a product: how well warps, loads and shared memory are used
    #[arg(long)]
    report: bool,
    /// alpha, a real number, rounded to the type of sums
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_parser = quantity::parse_number)]
    alpha: f64,
    /// beta, a real number, rounded to the type of sums; 0 stores y without reading it
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true, value_parser = quantity::parse_number)]
    beta: f64,
    /// Seed of x, and of y where beta is not 0: uniform in [-1, 1), exact in their types; whole numbers from -8 to 7 for
    /// i8, i32 and i64, from 0 to 15 for u32; 0 or 1 for bool
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = quantity::parse_whole::<u64>)]
    seed: u64,
    /// Read x from a Matrix Market file of one column or one row, dense or sparse, instead of making it from the seed
    #[arg(long, value_name = "FILE", value_parser = files::input())]
    x: Option<PathBuf>,
    /// The same for the y that beta is multiplied with
    #[arg(long, value_name = "FILE", value_parser = files::input())]
    y: Option<PathBuf>,
    /// Write the product, where it is right, as a dense Matrix Market file of one column; - is standard output
    #[arg(short = 'o', long = "output", value_name = "FILE", value_parser = files::output())]
    file: Option<PathBuf>,
    /// Samples to time, at least 15; each is a batch of products that is long enough to time exactly. 0: no
    /// timing. Nothing is timed on the simulator
    #[arg(long, value_name = "N", default_value_t = 31, allow_negative_numbers = true, value_parser = quantity::between::<usize>(0, 1_000_000))]
    repeat: usize,
    /// Seconds to spend on timing; 15 samples are taken all the same
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, allow_negative_numbers = true, value_parser = quantity::parse_number)]
    time_limit: f64,
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
Examples:
  spmv run A.mtx
  spmv run A.mtx --value f64 --algorithm csr_vector --set threads_per_vector=16
  spmv run A.mtx.gz --alpha -1 --beta 0.5 --device cuda:1
  spmv run A.mtx --set value=f32 --set accumulator=f64 --json
  spmv run A.mtx --algorithm light_vector --device sim --schedule 7 --report
  spmv run A.mtx --storage symmetric
  spmv run A.mtx --semiring min_plus --algorithm merge_path --beta 1
  spmv run A.mtx --storage csc --transpose
  spmv run A.mtx --device cpu
  spmv run A.mtx --value f64 --x x.mtx -o y.mtx

Verification:
  Row by row, |error| <= g(h) (|alpha| |A| |x| + |beta| |y|) + u |y|, where h is the summation
  depth that the algorithm declares, u the unit roundoff of the type, g(h) = (1 + u)^h - 1,
  against a product in doubled precision. A second product, after all that were timed, is
  verified too, and must have the same bits where the algorithm promises that. Over min_plus,
  max_plus, max_times and or_and nothing but the conversion to the type of y may round. --set
  epilogue and --set dot are refused, because nothing tells what they make of a rounding.

Time:
  Products follow one another without pause, so what fits in the caches stays there (warm). On a
  GPU, CUDA events around each batch. GFLOP/s are 2 nnz / t, of complex numbers
  8 nnz / t; GB/s are the bytes that must move / t: the matrix as stored, x once, y once, and
  once more where beta is not 0.

Simulator:
  Runs the PTX that NVRTC makes for sm_90, on the CPU. A kernel that reads or writes out of
  bounds, reads what nobody wrote, races on shared memory, or waits for what cannot come is
  stopped; the fault names the CUDA line, the block and the thread (exit code 6). It has no
  model of a GPU's time: how long it takes says nothing of how long a GPU takes.

JSON (--json), one object; numbers that are not finite are null:
  matrix        path, format, field, symmetry, num_rows, num_cols, nnz, row_nnz_mean and the
                other fields of `spmv inspect`
  device        kind (cuda, sim, cpu), name, arch, multiprocessors, memory_bytes, l2_bytes,
                cuda_version, schedule, notice
  kernel        algorithm, chosen_by (user, tuning, planner), reason, passed_over (better ones
                that do not keep the constraints), warning (null where there is none), config, settings, source_bytes, compiled (origin, arch, cubin_bytes, ptx_bytes,
                resources; of the simulator, which takes PTX, there is no machine code, and
                `spmv compile` tells the resources); null with --device cpu
  product       computed_by, operation, semiring, storage, type, alpha, beta, seed, x, y and
                written_to (paths; null where there is none)
  times_ms      read, open_device, find_nvrtc, generate, compile, load_module, upload,
                prepare, first_product; null for what was not done; prepare is what the
                kernel does once for a matrix; compile is what loading took where
                kernel.compiled.origin is disk
  memory_bytes  matrix, vectors, workspace, scratch (freed when the plan is made)
  slots         number, per_nonzero: what the kernel's own layout of the matrix stores, fill
                counted; null where it has none that may hold fill
  verification  passed, rows, failed_rows, max_error_over_bound, worst_row, expected, actual,
                unit_roundoff, depth_of_longest_row, same_bits_again
  performance   samples, products_per_sample, median_ms, min_ms, max_ms, spread_percent, gflops,
                bytes, gb_per_s, cache; null if not timed
  simulation    warp_instructions, host_ms, warp_instructions_per_s: of one product, the
                simulator's own speed; null elsewhere
  report        with --report, of one product: warp_instructions, thread_instructions,
                warp_execution_efficiency, global_load_requests, global_load_sectors,
                global_load_bytes, global_load_efficiency, sectors_per_load_request,
                global_store_requests, global_store_sectors, global_store_bytes,
                global_store_efficiency, bytes_moved, shared_requests, shared_bank_conflicts,
                global_atomic_requests, global_atomics, shared_atomics, barriers, blocks;
                else null";

/// Everything that `spmv run` tells.
#[derive(Debug, Serialize)]
struct RunReport {
    matrix: MatrixFacts,
    device: DeviceFacts,
    kernel: Option<KernelFacts>,
    product: ProductFacts,
    times_ms: Times,
    memory_bytes: Memory,
    slots: Option<SlotFacts>,
    verification: Verification,
    performance: Option<Performance>,
    simulation: Option<Simulation>,
    report: Option<CounterFacts>,
}

/// The kernel: why this one, and what became of it.
#[derive(Debug, Serialize)]
struct KernelFacts {
    algorithm: &'static str,
    /// `user`, `tuning` or `planner`.
    chosen_by: &'static str,
    reason: String,
    /// Configurations that were better and turned out not to keep the constraints, and why.
    passed_over: Vec<String>,
    /// Why another algorithm would suit the matrix better.
    warning: Option<String>,
    /// The configuration in one line, without what is usual.
    config: String,
    settings: SettingFacts,
    source_bytes: usize,
    compiled: CompiledFacts,
}

/// Which kernel it will be.
struct Chosen {
    /// The configurations with their reasons, the best first: one that turns out not to keep the constraints gives way to the
    /// next. There is one at least.
    configs: Vec<(KernelConfig, String)>,
    /// op(A), which is the configuration's for a matrix by rows alone.
    operation: Operation,
    chosen_by: &'static str,
    /// Nonzeros of the matrix's longest row.
    longest_row: usize,
}

impl Chosen {
    fn first(&self) -> &KernelConfig {
        &self.configs[0].0
    }
}

/// What is to become a configuration, and who says so.
struct Named {
    builder: KernelConfigBuilder,
    reason: String,
}

#[derive(Debug, Serialize)]
struct ProductFacts {
    /// `cuda`, `sim` or `cpu_parallel`.
    computed_by: &'static str,
    /// op(A).
    operation: &'static str,
    /// What entries are combined and rows reduced with.
    semiring: &'static str,
    /// How the kernel gets the matrix.
    storage: &'static str,
    /// The type of sums.
    #[serde(rename = "type")]
    accumulator: &'static str,
    alpha: f64,
    beta: f64,
    seed: u64,
    /// Files that were read, and the one that was written.
    x: Option<String>,
    y: Option<String>,
    written_to: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Times {
    read: f64,
    open_device: Option<f64>,
    find_nvrtc: Option<f64>,
    generate: Option<f64>,
    compile: Option<f64>,
    load_module: Option<f64>,
    upload: Option<f64>,
    prepare: Option<f64>,
    first_product: f64,
}

#[derive(Debug, Default, Serialize)]
struct Memory {
    matrix: u64,
    vectors: u64,
    workspace: u64,
    scratch: u64,
}

/// What the kernel's own layout of the matrix stores.
#[derive(Debug, Serialize)]
struct SlotFacts {
    number: u64,
    per_nonzero: f64,
}

/// How fast the simulator was.
#[derive(Debug, Serialize)]
struct Simulation {
    warp_instructions: u64,
    host_ms: f64,
    warp_instructions_per_s: f64,
}

impl Run {
    pub fn run(mut self) -> Result<(), Failure> {
        self.check()?;
        let header = reading::header(&self.matrix)?;
        let (value, offset) = self.settings.types_of_file(header.as_ref())?;
        let numbers = parts(value) as u64;
        let (y_bytes, x_bytes) = (ROW_BYTES * numbers, COL_BYTES * numbers);
        match self.operation() {
            // Where A has a row, x has an entry and A an offset; where A has a column, the transpose has a row.
            Operation::Transpose => memory::check(header.as_ref(), x_bytes + 8, y_bytes)?,
            _ => memory::check(header.as_ref(), y_bytes, x_bytes)?,
        }
        with_types!(value, offset, self.run_typed(header))
    }

    /// What can be refused before anything is read.
    fn check(&self) -> Result<(), Failure> {
        if !(self.time_limit.is_finite() && (0.0..=86400.0).contains(&self.time_limit)) {
            let message = format!("--time-limit {}: allowed are 0 to 86400 seconds", self.time_limit);
            return Err(Failure::new(Kind::Usage, message));
        }
        let settings =
            self.settings.settings.iter().any(|(key, _)| key != "value") || self.settings.semiring.is_some();
        let chooses = self.algorithm.is_some() || settings || self.constraints.is_given();
        if self.device == DeviceChoice::Cpu && chooses {
            let message = "--algorithm, --set, --semiring, --deterministic, --values-change, --products and --max-extra-bytes choose a kernel, and --device cpu runs none";
            return Err(
                Failure::new(Kind::Usage, message).help("with --device sim the kernel runs, on any machine")
            );
        }
        if self.device == DeviceChoice::Cpu && self.storage.storage != Storage::Csr {
            let message = "--storage says how a kernel gets the matrix, and --device cpu runs none";
            return Err(
                Failure::new(Kind::Usage, message).help("with --device sim the kernel runs, on any machine")
            );
        }
        self.device_choice()?;
        if self.y.is_some() && self.beta == 0.0 {
            let message = "--y is what beta is multiplied with, and --beta 0 stores y without reading it";
            return Err(Failure::new(Kind::Usage, message).help("give --beta too"));
        }
        if let Some(ending) = self.file.as_deref().and_then(|path| files::other_packing(path, &[])) {
            let message = format!("-o writes Matrix Market text, and no .{ending}");
            return Err(
                Failure::new(Kind::Usage, message).help("name it .mtx; `spmv matrix convert` packs it")
            );
        }
        let inputs = [Some(&self.matrix), self.x.as_ref(), self.y.as_ref()];
        if inputs.into_iter().flatten().filter(|path| files::is_stdin(path)).count() > 1 {
            return Err(Failure::new(Kind::Usage, "two inputs are standard input, which can be read once")
                .help("name a file for one of them"));
        }
        self.settings.check_keys()?;
        if let Some(file) = self.file.as_deref().filter(|file| !files::is_stdout(file)) {
            // A vector may be replaced by what it becomes.
            files::refuse_inputs("-o", file, [&self.matrix])?;
            files::check_writable(file).map_err(|error| Failure::unwritable(file, error))?;
        }
        // Wrong names and values are told before a large file is read.
        match &self.algorithm {
            Some(name) => self.settings.apply(&mut KernelConfig::named(name)?),
            None => Ok(()),
        }
    }

    /// op(A): what is set, else what the named algorithm computes with a matrix by rows, and A itself with others. What is
    /// wrong is told elsewhere.
    fn operation(&self) -> Operation {
        let set = self.settings.get("operation").and_then(|name| name.parse().ok());
        if self.storage.storage != Storage::Csr {
            return set.unwrap_or(Operation::NonTranspose);
        }
        let spec = self.algorithm.as_deref().and_then(AlgorithmSpec::find);
        set.or(spec.map(|spec| spec.operations[0])).unwrap_or(Operation::NonTranspose)
    }

    /// Where to compute; some options choose the simulator.
    fn device_choice(&self) -> Result<DeviceChoice, Failure> {
        let mut choice = self.device;
        if self.report {
            choice = choice.with_simulator_option("--report", "counts what a kernel does")?;
        }
        if self.schedule.is_some() {
            choice = choice.with_simulator_option("--schedule", "runs a kernel in a chosen order")?;
        }
        Ok(choice)
    }

    fn run_typed<V: Multiplied, O: DeviceOffset>(self, header: Option<Header>) -> Result<(), Failure> {
        let Read { by_rows: a, stored, ms: read } = self.storage.storage.read::<V, O>(&self.matrix)?;
        let statistics = Statistics::of(&a);
        let path = self.matrix.display().to_string();
        let matrix = MatrixFacts::new(path, header.as_ref(), statistics);
        let storage = stored.format();
        let mut times = Times { read, ..Times::default() };
        let started = Instant::now();
        let opened = open(self.device_choice()?, self.schedule.unwrap_or_default())?;
        let opening = quantity::in_ms(started.elapsed());
        let device = match &opened {
            Opened::Device(device, _) => Some(device),
            Opened::Cpu(_) => None,
        };
        let chosen = self.choose(device, &stored, &a, matrix.statistics.row_nnz_max)?;
        let operation = chosen.operation;
        let lengths = operation.vector_lengths(a.num_rows(), a.num_cols());
        let types = chosen.first().types();
        let semiring = chosen.first().semiring();
        let over = chosen.first().replaces_sums();
        let mut operands = Operands::new(lengths, types, self.alpha, self.beta, self.seed)?;
        if let Some(path) = &self.x {
            operands.x = vectors::read(path, "x", lengths.0, types.x, over)?;
        }
        if let Some(path) = &self.y {
            operands.y = vectors::read(path, "y", lengths.1, types.y, over)?;
        }
        let (device, kernel, done) = match opened {
            Opened::Device(device, facts) => {
                times.open_device = Some(opening);
                let (kernel, done) = self.on_device(&device, &a, &stored, chosen, &operands, &mut times)?;
                (facts, Some(kernel), done)
            }
            Opened::Cpu(facts) => (facts, None, self.on_cpu(&a, operation, &operands)?),
        };
        let Done { memory_bytes, slots, verification, computed } = done;
        times.first_product = computed.first_ms;
        let outcome = verification.outcome();
        if let (Some(path), Ok(())) = (&self.file, &outcome) {
            vectors::write(path, &computed.first, types.y)?;
        }
        let path = |file: &Option<PathBuf>| file.as_ref().map(|file| file.display().to_string());
        let product = ProductFacts {
            operation: operation.name(),
            semiring: semiring.name(),
            storage: storage.name(),
            computed_by: if kernel.is_some() { device.kind } else { "cpu_parallel" },
            accumulator: types.accumulator.name(),
            alpha: operands.alpha,
            beta: operands.beta,
            seed: self.seed,
            x: path(&self.x),
            y: path(&self.y),
            written_to: path(&self.file).filter(|_| outcome.is_ok()),
        };
        let counters = computed.counters.map(CounterFacts::from);
        let takes_stdout = self.file.as_deref().is_some_and(files::is_stdout);
        let report = RunReport {
            matrix,
            device,
            kernel,
            product,
            times_ms: times,
            memory_bytes,
            slots: slots
                .map(|number| SlotFacts { number, per_nonzero: number as f64 / a.nnz().max(1) as f64 }),
            verification,
            simulation: counters.as_ref().map(|counters| Simulation::new(counters, computed.first_ms)),
            performance: computed.performance,
            report: counters.filter(|_| self.report),
        };
        // The verdict counts whether or not somebody reads to the end.
        let printed = self.output.print_beside(takes_stdout, &report);
        outcome?;
        printed
    }

    /// The configurations: what the user says, else what was tuned before, else the planner; alpha and beta where the text is
    /// shorter for knowing them.
    fn choose<V: Multiplied, O: DeviceOffset>(
        &self,
        device: Option<&Device>,
        stored: &Stored<V, O>,
        a: &CsrMatrix<V, O>,
        longest_row: usize,
    ) -> Result<Chosen, Failure> {
        let storage = stored.format();
        let of_arrays = storage.of_arrays(self.operation());
        let (found, chosen_by) = match &self.algorithm {
            Some(_) if self.constraints.is_given() => {
                let message = "--deterministic, --values-change, --products and --max-extra-bytes say what may be chosen, and --algorithm chooses";
                return Err(Failure::new(Kind::Usage, message.to_owned()).help("leave out --algorithm"));
            }
            Some(name) => {
                let mut builder = KernelConfig::named(name)?;
                let mut reason = "named on the command line".to_owned();
                if name == "special" {
                    let of_arrays = of_arrays.unwrap_or(Operation::NonTranspose);
                    let features = stored.features(a, of_arrays);
                    builder = by_default(&planner::usually_laid_out(
                        builder.value(V::TYPE).build()?,
                        &features,
                        l2_bytes(device),
                    )?);
                    reason.push_str("; its layout is that for the matrix, changed by --set");
                }
                (vec![Named { builder, reason }], "user")
            }
            None => self.planned(device, stored, a, of_arrays.unwrap_or(Operation::NonTranspose))?,
        };
        let mut configs = Vec::with_capacity(found.len());
        let mut problem = None;
        for Named { builder, reason } in found {
            match self.configured::<O>(builder, storage) {
                Ok(config) => configs.push((config, reason)),
                Err(failure) => problem = problem.or(Some(failure)),
            }
        }
        let Some((config, _)) = configs.first() else {
            return Err(problem.expect("a configuration that was found is one, or why not was told"));
        };
        let operation =
            if self.storage.storage == Storage::Csr { config.operation() } else { self.operation() };
        Ok(Chosen { configs, operation, chosen_by, longest_row })
    }

    /// What was tuned before for this matrix and device, else what the planner expects to be the fastest.
    fn planned<V: Multiplied, O: DeviceOffset>(
        &self,
        device: Option<&Device>,
        stored: &Stored<V, O>,
        a: &CsrMatrix<V, O>,
        of_arrays: Operation,
    ) -> Result<(Vec<Named>, &'static str), Failure> {
        let types = self.settings.types(O::TYPE)?;
        let constraints = self.constraints.constraints();
        let changed = if self.settings.settings.is_empty() { "" } else { "; changed by --set" };
        let found = choice::choose(
            of_arrays,
            &stored.features(a, of_arrays),
            types,
            l2_bytes(device),
            &constraints,
            &self.settings,
        )?;
        let planned = found.into_iter().map(|candidate| Named {
            builder: by_default(&candidate.config),
            reason: format!("{}{changed}", candidate.reason()),
        });
        let tuned = device.filter(|_| self.settings.are_plain()).and_then(|device| {
            let (storage, operation) = (stored.format(), self.operation());
            let fingerprint = stored.fingerprint(a);
            let question = Question::of(device, fingerprint, storage, operation, types, &constraints);
            choice::tuned(device, &question)
        });
        match tuned {
            Some((choice, reason)) => {
                let tuned = Named { builder: by_default(&choice.config), reason };
                Ok((std::iter::once(tuned).chain(planned).collect(), "tuning"))
            }
            None => Ok((planned.collect(), "planner")),
        }
    }

    /// The configuration with everything that the command line says.
    fn configured<O: DeviceOffset>(
        &self,
        mut builder: KernelConfigBuilder,
        storage: StorageFormat,
    ) -> Result<KernelConfig, Failure> {
        builder.set("offset", O::TYPE.name())?;
        let sums = self.settings.types(O::TYPE)?.accumulator;
        for (key, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            // What is no number of sums is refused with those that are.
            let is_one = number_of(sums, value).is_some();
            let known = ["1", "-1", "0"].into_iter().find(|known| is_one && known.parse() == Ok(value));
            // Kernels for alpha = 0 do not exist: there is nothing to gain.
            if let Some(known) = known.filter(|known| key == "beta" || *known != "0") {
                builder.set(key, known)?;
            }
        }
        self.settings.apply(&mut builder)?;
        if self.storage.storage != Storage::Csr {
            builder = builder.operation(of_arrays(storage, self.operation())?);
        }
        let config = builder.build().map_err(|error| match error {
            ConfigError::Operation { operation: of_arrays, .. } if self.storage.storage == Storage::Csc => {
                Failure::from(error).help(format!(
                    "with --storage csc the {} product is the {of_arrays} product of the arrays: name an \
                     algorithm of that",
                    self.operation()
                ))
            }
            error => error.into(),
        })?;
        choice::check_verifiable(&config)?;
        self.storage.storage.check(&config)?;
        if let (Some((what, got, allowed)), Some(over)) =
            (config.refused_scaling(self.alpha, self.beta), config.replaces_sums())
        {
            return Err(Error::SemiringScaling { what, over, got, allowed }.into());
        }
        let scaling = config.scaling();
        let coefficients = [("alpha", self.alpha, scaling.alpha), ("beta", self.beta, scaling.beta)];
        for (key, value, known) in coefficients {
            if known.known().is_some_and(|known| known != value) {
                let message = format!(
                    "--set {key}={} makes a kernel for that {key} alone, and --{key} is {value}",
                    known.name()
                );
                return Err(Failure::new(Kind::Usage, message)
                    .help(format!("leave out --set {key}: it follows --{key}")));
            }
        }
        Ok(config)
    }

    fn on_device<V: Multiplied, O: DeviceOffset>(
        &self,
        device: &Device,
        a: &CsrMatrix<V, O>,
        stored: &Stored<V, O>,
        chosen: Chosen,
        operands: &Operands,
        times: &mut Times,
    ) -> Result<(KernelFacts, Done), Failure> {
        let started = Instant::now();
        Nvrtc::find().map_err(|error| Failure::from(error).help(WITHOUT_NVRTC))?;
        times.find_nvrtc = Some(quantity::in_ms(started.elapsed()));
        let types = chosen.first().types();
        let entries = |numbers: &[f64], value| numbers.len() / parts(value) * value.size();
        let vectors = (entries(&operands.x, types.x) + entries(&operands.y, types.y)) as u64;
        if device.is_simulator() {
            let Types { value, offset, index, .. } = types;
            let matrix = DeviceMatrix::predict_bytes(a.num_rows(), a.nnz(), value, offset, index);
            memory::check_simulated(matrix + vectors)?;
        }
        let started = Instant::now();
        let matrix = stored.upload(device, a, types)?;
        device.synchronize()?;
        times.upload = Some(quantity::in_ms(started.elapsed()));
        let (mut on_device, facts) = self.plan(device, &matrix, chosen, a.nnz(), operands, times)?;
        let plan = on_device.plan();
        let (config, operation) = (*plan.config(), plan.operation());
        let prepares = !plan.program().prepare.is_empty();
        times.prepare = prepares.then(|| quantity::in_ms(plan.prepare_time()));
        let memory_bytes = Memory {
            matrix: matrix.bytes(),
            vectors,
            workspace: plan.workspace_bytes(),
            scratch: plan.scratch_bytes(),
        };
        let slots = plan.slots();
        let guarantees = plan.program().guarantees.clone();
        let promise = Promise::of_kernel(config, &guarantees);
        let multiplications = a.nnz() * multiplications(types);
        let computed = compute(&mut on_device, operands, multiplications, self.effort())?;
        let verification = computed.verify(&V::expected(&config, a, operation, operands)?, &promise);
        Ok((facts, Done { memory_bytes, slots, verification, computed }))
    }

    /// The plan of the first configuration that keeps the constraints, which is known of most when their plans are made.
    fn plan(
        &self,
        device: &Device,
        matrix: &Arc<DeviceMatrix>,
        chosen: Chosen,
        nnz: usize,
        operands: &Operands,
        times: &mut Times,
    ) -> Result<(OnDevice, KernelFacts), Failure> {
        let Chosen { configs, operation, chosen_by, longest_row } = chosen;
        let mut passed_over = Vec::new();
        for (config, reason) in configs {
            // For its size, time and guarantees; the compiler generates it again where it needs it.
            let started = Instant::now();
            let program = config.program();
            let source_bytes = program.source.len();
            times.generate = Some(quantity::in_ms(started.elapsed()));
            let made = device.kernel(&config).and_then(|compiled| {
                Ok((compiled, Spmv::with_operation(device, matrix, operation, config)?))
            });
            let ((kernel, provenance), plan) = match made {
                Ok(made) => made,
                Err(error)
                    if chosen_by != "user"
                        && (error.is_of_one_kernel() || matches!(error, Error::Compile(_))) =>
                {
                    passed_over.push(format!("{}: {error}", config_text(&config)));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            times.compile = Some(quantity::in_ms(provenance.compile));
            times.load_module = Some(quantity::in_ms(provenance.load));
            let refusal = planner::broken(&plan, &self.constraints.constraints());
            if let Some(why) = refusal.filter(|_| chosen_by != "user") {
                passed_over.push(format!("{}: {why}", config_text(&config)));
                continue;
            }
            let warning = (!program.guarantees.splits_rows).then(|| giant_row(longest_row, nnz)).flatten();
            let facts = KernelFacts {
                algorithm: config.algorithm().name(),
                // What was tuned is the first to be asked.
                chosen_by: if passed_over.is_empty() { chosen_by } else { "planner" },
                reason,
                passed_over,
                warning,
                config: config_text(&config),
                settings: SettingFacts(config.settings()),
                source_bytes,
                compiled: CompiledFacts::new(&device.properties().arch, provenance.origin, kernel.artifact()),
            };
            return Ok((OnDevice::new(plan, operands)?, facts));
        }
        let message =
            format!("no kernel that would be chosen keeps the constraints: {}", passed_over.join("; "));
        Err(Failure::new(Kind::Usage, message).help("name one with --algorithm, or allow more"))
    }

    /// Everything in the type of the values: other types need a kernel. A transposed product is that of a transposed copy.
    fn on_cpu<V: Multiplied, O: DeviceOffset>(
        &self,
        a: &CsrMatrix<V, O>,
        operation: Operation,
        operands: &Operands,
    ) -> Result<Done, Failure> {
        let transposed = (operation == Operation::Transpose).then(|| a.transpose()).transpose()?;
        let memory_bytes = Memory {
            matrix: a.bytes() as u64,
            vectors: ((a.num_cols() + a.num_rows()) * size_of::<V>()) as u64,
            workspace: transposed.as_ref().map_or(0, |copy| copy.bytes() as u64),
            scratch: 0,
        };
        let mut on_cpu = OnCpu::new(cpu_parallel, transposed.as_ref().unwrap_or(a), operands);
        let config = KernelConfig::builder(CsrScalar::default()).value(V::TYPE).build()?;
        let multiplications = a.nnz() * multiplications(config.types());
        let computed = compute(&mut on_cpu, operands, multiplications, self.effort())?;
        let expected = V::expected(&config, a, operation, operands)?;
        let verification = computed.verify(&expected, &Promise::of_cpu(V::TYPE));
        Ok(Done { memory_bytes, slots: None, verification, computed })
    }

    fn effort(&self) -> Option<Effort> {
        let limit = Duration::from_secs_f64(self.time_limit);
        (self.repeat > 0).then_some(Effort { samples: self.repeat, limit })
    }
}

/// Multiplications of real numbers, each with an addition, that a nonzero takes.
fn multiplications(types: Types) -> usize {
    parts(types.value) * parts(types.x)
}

const WITHOUT_NVRTC: &str = "with --device cpu the product is computed without a kernel";

/// What came of the product.
struct Done {
    memory_bytes: Memory,
    slots: Option<u64>,
    verification: Verification,
    computed: Computed,
}

impl Simulation {
    fn new(counters: &CounterFacts, host_ms: f64) -> Simulation {
        let warp_instructions = counters.warp_instructions;
        let warp_instructions_per_s =
            if host_ms > 0.0 { warp_instructions as f64 / host_ms * 1e3 } else { 0.0 };
        Simulation { warp_instructions, host_ms, warp_instructions_per_s }
    }

    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Simulation { warp_instructions, host_ms, warp_instructions_per_s } = *self;
        fact(
            out,
            "simulated",
            format_args!(
                "{} warp instructions in {}, {} million a second: the simulator's time, not a GPU's",
                quantity::count(warp_instructions as usize),
                quantity::milliseconds(host_ms),
                quantity::significant(warp_instructions_per_s / 1e6)
            ),
        )
    }
}

impl Report for RunReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.matrix.text(out)?;
        self.device.text(out)?;
        if let Some(kernel) = &self.kernel {
            fact(out, "kernel", &kernel.config)?;
            fact(out, "", format_args!("because {}", kernel.reason))?;
            for passed_over in &kernel.passed_over {
                fact(out, "passed over", passed_over)?;
            }
            if let Some(warning) = &kernel.warning {
                fact(out, "warning", warning)?;
            }
            kernel.compiled.text(out)?;
        }
        let ProductFacts {
            computed_by, operation, semiring, storage, accumulator, alpha, beta, seed, ..
        } = self.product;
        let from = match &self.product.x {
            Some(path) => path.clone(),
            None => format!("seed {seed}"),
        };
        let mut formula = formula(operation, alpha, beta);
        if semiring != Semiring::default().name() {
            formula += &format!(" over {semiring}");
        }
        fact(out, "product", format_args!("{formula} in {accumulator}, x from {from}, by {computed_by}"))?;
        self.times_ms.text(out, self.kernel.as_ref())?;
        let Memory { matrix, vectors, workspace, scratch } = self.memory_bytes;
        let [matrix, vectors, workspace] = [matrix, vectors, workspace].map(quantity::bytes);
        let as_stored = match storage {
            "csr" => String::new(),
            other => format!(" in {other} storage"),
        };
        let while_preparing = match scratch {
            0 => String::new(),
            scratch => format!(", and {} while preparing", quantity::bytes(scratch)),
        };
        fact(
            out,
            "memory",
            format_args!("matrix {matrix}{as_stored}, x and y {vectors}, extra {workspace}{while_preparing}"),
        )?;
        if let Some(SlotFacts { number, per_nonzero }) = self.slots {
            let (number, per_nonzero) =
                (quantity::count(number as usize), quantity::significant(per_nonzero));
            fact(out, "slots", format_args!("{number}, {per_nonzero} a nonzero: the others are fill"))?;
        }
        self.verification.text(out)?;
        if let Some(path) = &self.product.written_to {
            fact(out, "written to", path)?;
        }
        match (&self.performance, &self.simulation) {
            (_, Some(simulation)) => simulation.text(out)?,
            (Some(performance), None) => performance_text(out, performance)?,
            (None, None) => fact(out, "time", "not measured, as asked for")?,
        }
        match &self.report {
            Some(counters) => counters.text(out),
            None => Ok(()),
        }
    }
}

/// The nonzeros from which a row is a giant, if it holds a large part of the matrix too: fewer are a few
/// microseconds' work for one group of threads.
const GIANT_ROW: usize = 1 << 14;

/// What to say of a matrix whose longest row decides how long a product takes, where an algorithm does not split
/// rows.
fn giant_row(longest_row: usize, nnz: usize) -> Option<String> {
    // A GPU works on more than a hundred rows at once.
    let giant = longest_row >= GIANT_ROW && longest_row.saturating_mul(100) >= nnz;
    giant.then(|| {
        format!(
            "the longest row has {} of the {} nonzeros, and this algorithm does not split rows: the others wait \
             for it",
            quantity::count(longest_row),
            quantity::count(nnz)
        )
    })
}

/// y <- alpha op(A) x + beta y, without what is 1 or 0.
fn formula(operation: &str, alpha: f64, beta: f64) -> String {
    let a = if operation == Operation::Transpose.name() { "A^T" } else { "A" };
    let times = |factor: f64| match factor {
        1.0 => String::new(),
        -1.0 => "-".to_owned(),
        _ => format!("{factor} "),
    };
    match beta {
        0.0 => format!("y <- {}{a} x", times(alpha)),
        _ => format!("y <- {}{a} x + {}y", times(alpha), times(beta)),
    }
}

impl Times {
    fn text(&self, out: &mut dyn Write, kernel: Option<&KernelFacts>) -> io::Result<()> {
        let from_disk = kernel.is_some_and(|kernel| kernel.compiled.origin == "disk");
        let steps = [
            ("read", Some(self.read)),
            ("open device", self.open_device),
            ("find NVRTC", self.find_nvrtc),
            ("generate", self.generate),
            (if from_disk { "load from cache" } else { "compile" }, self.compile),
            ("load module", self.load_module),
            ("upload", self.upload),
            ("prepare", self.prepare),
            ("first product", Some(self.first_product)),
        ];
        let steps = steps
            .into_iter()
            .filter_map(|(name, ms)| Some(format!("{name} {}", quantity::milliseconds(ms?))));
        fact(out, "steps", steps.collect::<Vec<_>>().join(", "))
    }
}

fn performance_text(out: &mut dyn Write, performance: &Performance) -> io::Result<()> {
    let samples = &performance.samples;
    let [median, least, most] =
        [samples.median_ms, samples.min_ms, samples.max_ms].map(quantity::milliseconds);
    fact(
        out,
        "time",
        format_args!(
            "{median} a product: median of {} batches of {} ({least} to {most}, quartiles {} % apart), caches warm",
            samples.samples,
            samples.products_per_sample,
            quantity::significant(samples.spread_percent)
        ),
    )?;
    let [gflops, gb_per_s] = [performance.gflops, performance.gb_per_s].map(quantity::significant);
    let bytes = quantity::bytes(performance.bytes);
    fact(out, "speed", format_args!("{gflops} GFLOP/s, {gb_per_s} GB/s of the {bytes} that must move"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn giants_hold_a_large_part_of_the_matrix() {
        assert_eq!(giant_row(GIANT_ROW - 1, GIANT_ROW), None);
        assert_eq!(giant_row(GIANT_ROW, GIANT_ROW * 100 + 1), None);
        let warning = giant_row(20_000, 2_000_000).unwrap();
        assert!(warning.starts_with("the longest row has 20,000 of the 2,000,000 nonzeros, "), "{warning}");
    }

    #[test]
    fn formulas_are_short() {
        assert_eq!(formula("non_transpose", 1.0, 0.0), "y <- A x");
        assert_eq!(formula("transpose", -1.0, 1.0), "y <- -A^T x + y");
        assert_eq!(formula("non_transpose", 0.5, -2.0), "y <- 0.5 A x + -2 y");
    }
}
