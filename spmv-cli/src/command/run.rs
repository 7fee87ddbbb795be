//! `spmv run`: a matrix in, a verified product out.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;
use spmv_runtime::codegen::{IndexType, KernelConfig, UnknownName, ValueType};
use spmv_runtime::matrix::matrix_market::Header;
use spmv_runtime::matrix::{CsrMatrix, Statistics, Value, cpu_parallel};
use spmv_runtime::{Compiler, Device, DeviceMatrix, DeviceOffset, Element, Error, Nvrtc};

use crate::choice;
use crate::expected::{Expected, Rounding, Verification, any_order_depth, same_bits};
use crate::failure::{Failure, Kind};
use crate::kernel::{CompiledFacts, SettingFacts, config_text};
use crate::measure::{Effort, Performance, measure};
use crate::memory;
use crate::on_cpu::{self, OnCpu};
use crate::on_cuda::{self, OnCuda};
use crate::operands::Operands;
use crate::quantity;
use crate::reading::{self, MatrixFacts};
use crate::report::{OutputArgs, Report, fact};
use crate::settings::{SettingArgs, algorithm_names};

/// Where there is no GPU, kernels are compiled for this architecture all the same.
pub const ARCH_WITHOUT_GPU: &str = "sm_90";

/// Bytes of memory that a product and its verification take for each row: an offset, y before, y twice after, the
/// reference with its bound and row lengths, and y in its own type.
const ROW_BYTES: u64 = 8 * 8;

/// For each column: x, also in its own type, for the product and for the reference.
const COL_BYTES: u64 = 3 * 8;

/// Read a matrix and compute y <- alpha A x + beta y with a generated kernel, verified and timed
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Run {
    /// A Matrix Market file, plain or compressed with gzip
    #[arg(value_name = "A.mtx")]
    matrix: PathBuf,
    /// The algorithm; without it a rule of thumb chooses by the mean number of nonzeros a row
    #[arg(long, value_name = "NAME", value_parser = algorithm_names())]
    algorithm: Option<String>,
    #[command(flatten)]
    settings: SettingArgs,
    /// Where to compute: `auto` takes the first GPU and, where there is none, the CPU
    #[arg(long, value_name = "auto|cuda[:N]|cpu", default_value = "auto", value_parser = parse_device)]
    device: DeviceChoice,
    /// alpha, rounded to the type of sums
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    alpha: f64,
    /// beta, rounded to the type of sums; 0 stores y without reading it
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    beta: f64,
    /// Seed of x, and of y where beta is not 0: uniform in [-1, 1), exact in their types
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Samples to time, at least 15; each is a batch of products that is long enough to time exactly. 0: no timing
    #[arg(long, value_name = "N", default_value_t = 31)]
    repeat: usize,
    /// Seconds to spend on timing; 15 samples are taken all the same
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    time_limit: f64,
    /// What a product may differ from the reference in doubled precision: the error bound of the algorithm, row
    /// by row, or anything
    #[arg(long, value_enum, default_value_t = Tolerance::Bound)]
    tolerance: Tolerance,
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
Examples:
  spmv run A.mtx
  spmv run A.mtx --value f64 --algorithm csr_vector --set threads_per_vector=16
  spmv run A.mtx.gz --alpha -1 --beta 0.5 --device cuda:1
  spmv run A.mtx --set value=f32 --set accumulator=f64 --json
  spmv run A.mtx --device cpu

Verification:
  Row by row, |error| <= g(h) (|alpha| |A| |x| + |beta| |y|) + u |y|, where h is the summation
  depth that the algorithm declares, u the unit roundoff of the type, g(h) = h u / (1 - h u).
  A second product, after all that were timed, is verified too, and must have the same bits
  where the algorithm promises that.

Time:
  Products follow one another without pause, so what fits in the caches stays there (warm). On a
  GPU, CUDA events around each batch. GFLOP/s are 2 nnz / t; GB/s are the bytes that must move
  / t: the matrix as stored, x once, y once, and once more where beta is not 0.

JSON (--json), one object; numbers that are not finite are null:
  matrix        path, format, field, symmetry, num_rows, num_cols, nnz, row_nnz_mean and the
                other fields of `spmv inspect`
  device        kind (cuda, cpu), name, arch, multiprocessors, memory_bytes, l2_bytes,
                cuda_version, notice
  kernel        algorithm, chosen_by (user, rule), reason, config, settings, source_bytes, ran,
                problem, compiled (origin, arch, cubin_bytes, ptx_bytes, resources); null with
                --device cpu
  product       computed_by, type, alpha, beta, seed
  times_ms      read, open_device, find_nvrtc, generate, compile, load_module, upload,
                first_product; null for what was not done; compile is what loading took where
                kernel.compiled.origin is disk
  memory_bytes  matrix, vectors, workspace
  verification  passed, rows, failed_rows, max_error_over_bound, worst_row, expected, actual,
                unit_roundoff, depth_of_longest_row, checked_again_after_timing,
                same_bits_after_timing; null if not verified
  performance   samples, products_per_sample, median_ms, min_ms, max_ms, spread_percent, gflops,
                bytes, gb_per_s, cache; null if not timed";

/// What `--device` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    Auto,
    Cuda(usize),
    Cpu,
}

fn parse_device(text: &str) -> Result<DeviceChoice, String> {
    match text {
        "auto" => Ok(DeviceChoice::Auto),
        "cpu" => Ok(DeviceChoice::Cpu),
        "cuda" => Ok(DeviceChoice::Cuda(0)),
        _ => {
            let ordinal = text.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok());
            ordinal
                .map(DeviceChoice::Cuda)
                .ok_or_else(|| "allowed: auto, cuda, cuda:0, cuda:1, ..., cpu".into())
        }
    }
}

/// What `--tolerance` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tolerance {
    /// The algorithm's error bound
    Bound,
    /// Do not verify
    None,
}

/// Everything that `spmv run` tells.
#[derive(Debug, Serialize)]
struct RunReport {
    matrix: MatrixFacts,
    device: DeviceFacts,
    kernel: Option<KernelFacts>,
    product: ProductFacts,
    times_ms: Times,
    memory_bytes: Memory,
    verification: Option<Verification>,
    performance: Option<Performance>,
}

/// What computes.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceFacts {
    /// `cuda` or `cpu`.
    pub kind: &'static str,
    pub name: String,
    pub arch: Option<String>,
    pub multiprocessors: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub l2_bytes: Option<u64>,
    pub cuda_version: Option<String>,
    /// Why it is the CPU where a GPU would have been taken.
    pub notice: Option<String>,
}

/// The kernel: why this one, and what became of it.
#[derive(Debug, Serialize)]
struct KernelFacts {
    algorithm: &'static str,
    /// `user` or `rule`.
    chosen_by: &'static str,
    reason: String,
    /// The configuration in one line, without what is usual.
    config: String,
    settings: SettingFacts,
    source_bytes: usize,
    /// Whether it computed the product.
    ran: bool,
    compiled: Option<CompiledFacts>,
    /// Why it was not compiled.
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct ProductFacts {
    /// `cuda` or `cpu_parallel`.
    computed_by: &'static str,
    /// The type of sums.
    #[serde(rename = "type")]
    accumulator: &'static str,
    alpha: f64,
    beta: f64,
    seed: u64,
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
    first_product: f64,
}

#[derive(Debug, Default, Serialize)]
struct Memory {
    matrix: u64,
    vectors: u64,
    workspace: u64,
}

impl Run {
    pub fn run(self) -> Result<(), Failure> {
        self.check()?;
        let header = reading::header(&self.matrix)?;
        memory::check(header.as_ref(), ROW_BYTES, COL_BYTES)?;
        let unknown = |error: UnknownName| Failure::new(Kind::Usage, error.to_string());
        let value = self.settings.get("value").map_or(Ok(ValueType::F32), str::parse).map_err(unknown)?;
        let fitting = reading::offset_type(header.as_ref());
        let offset = self.settings.get("offset").map_or(Ok(fitting), str::parse).map_err(unknown)?;
        match (value, offset) {
            (ValueType::F32, IndexType::U32) => self.run_typed::<f32, u32>(header),
            (ValueType::F32, _) => self.run_typed::<f32, u64>(header),
            (_, IndexType::U32) => self.run_typed::<f64, u32>(header),
            (_, _) => self.run_typed::<f64, u64>(header),
        }
    }

    /// What can be refused before anything is read.
    fn check(&self) -> Result<(), Failure> {
        if !(self.time_limit.is_finite() && (0.0..=86400.0).contains(&self.time_limit)) {
            let message = format!("--time-limit {}: allowed are 0 to 86400 seconds", self.time_limit);
            return Err(Failure::new(Kind::Usage, message));
        }
        let settings = self.settings.settings.iter().any(|(key, _)| key != "value");
        if self.device == DeviceChoice::Cpu && (self.algorithm.is_some() || settings) {
            let message = "--algorithm and --set choose a kernel, and --device cpu runs none";
            return Err(Failure::new(Kind::Usage, message)
                .help("with --device auto the kernel is compiled, and run where there is a GPU"));
        }
        // Wrong names and values are told before a large file is read.
        match &self.algorithm {
            Some(name) => self.settings.apply(&mut KernelConfig::named(name)?),
            None => Ok(()),
        }
    }

    fn run_typed<V: Element, O: DeviceOffset>(self, header: Option<Header>) -> Result<(), Failure> {
        let (a, read) = reading::read::<V, O>(&self.matrix)?;
        let statistics = Statistics::of(&a);
        let path = self.matrix.display().to_string();
        let matrix = MatrixFacts::new(path, header.as_ref(), statistics);
        let (config, mut kernel) = self.config::<O>(&matrix.statistics)?;
        let sizes = (a.num_rows(), a.num_cols());
        let operands = Operands::new(sizes, config.types(), self.alpha, self.beta, self.seed)?;
        let mut times = Times { read, ..Times::default() };
        let started = Instant::now();
        let opened = open(self.device)?;
        let done = match &opened {
            Opened::Cuda(device, facts) => {
                times.open_device = Some(quantity::in_ms(started.elapsed()));
                let done = self.on_cuda(device, &a, config, &operands, &mut kernel, &mut times)?;
                (facts.clone(), "cuda", Some(kernel), done)
            }
            Opened::Cpu(facts) => {
                let kernel = (self.device != DeviceChoice::Cpu).then(|| {
                    compile_only(config, &mut kernel, &mut times);
                    kernel
                });
                // Sums in a wider type than the values': the CPU computes all of it in that type.
                let accumulator = config.types().accumulator;
                let done = match accumulator == V::TYPE {
                    true => self.on_cpu(&a, &operands, &mut times)?,
                    false => self.on_cpu(&a.convert::<f64>(), &operands, &mut times)?,
                };
                (facts.clone(), "cpu_parallel", kernel, done)
            }
        };
        let (device, computed_by, kernel, Done { memory_bytes, verification, performance }) = done;
        let product = ProductFacts {
            computed_by,
            accumulator: config.types().accumulator.name(),
            alpha: operands.alpha,
            beta: operands.beta,
            seed: self.seed,
        };
        let outcome = verification.as_ref().map_or(Ok(()), Verification::outcome);
        self.output.print(&RunReport {
            matrix,
            device,
            kernel,
            product,
            times_ms: times,
            memory_bytes,
            verification,
            performance,
        })?;
        outcome
    }

    /// The configuration: what the user says, else the rule of thumb; alpha and beta where the text is shorter
    /// for knowing them.
    fn config<O: DeviceOffset>(
        &self,
        statistics: &Statistics,
    ) -> Result<(KernelConfig, KernelFacts), Failure> {
        let (mut builder, chosen_by, reason) = match &self.algorithm {
            Some(name) => (KernelConfig::named(name)?, "user", "named on the command line".to_owned()),
            None => {
                let choice = choice::choose(statistics.row_nnz_mean);
                let changed = if self.settings.settings.is_empty() { "" } else { "; changed by --set" };
                (KernelConfig::builder(choice.algorithm), "rule", choice.reason + changed)
            }
        };
        builder.set("offset", O::TYPE.name())?;
        for (key, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            let known = ["1", "-1", "0"].into_iter().find(|known| known.parse() == Ok(value));
            // Kernels for alpha = 0 do not exist: there is nothing to gain.
            if let Some(known) = known.filter(|known| key == "beta" || *known != "0") {
                builder.set(key, known)?;
            }
        }
        self.settings.apply(&mut builder).map_err(|failure| match chosen_by {
            "rule" => failure.help("the rule of thumb chose this algorithm; name one with --algorithm"),
            _ => failure,
        })?;
        let config = builder.build()?;
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
        let facts = KernelFacts {
            algorithm: config.algorithm().name(),
            chosen_by,
            reason,
            config: config_text(&config),
            settings: SettingFacts(config.settings()),
            source_bytes: 0,
            ran: false,
            compiled: None,
            problem: None,
        };
        Ok((config, facts))
    }

    fn on_cuda<V: Element, O: DeviceOffset>(
        &self,
        device: &Device,
        a: &CsrMatrix<V, O>,
        config: KernelConfig,
        operands: &Operands,
        facts: &mut KernelFacts,
        times: &mut Times,
    ) -> Result<Done, Failure> {
        let started = Instant::now();
        Nvrtc::find()?;
        times.find_nvrtc = Some(quantity::in_ms(started.elapsed()));
        generate(config, facts, times);
        let (kernel, provenance) = device.kernel(&config)?;
        times.compile = Some(quantity::in_ms(provenance.compile));
        times.load_module = Some(quantity::in_ms(provenance.load));
        let arch = &device.properties().arch;
        facts.compiled = Some(CompiledFacts::new(arch, provenance.origin, kernel.artifact()));
        facts.ran = true;

        let started = Instant::now();
        let matrix = Arc::new(DeviceMatrix::upload(device, a, config.types().offset)?);
        device.synchronize()?;
        times.upload = Some(quantity::in_ms(started.elapsed()));
        let mut on_cuda = OnCuda::new(device, &matrix, config, operands)?;
        let types = config.types();
        let memory_bytes = Memory {
            matrix: on_cuda::matrix_bytes(&matrix),
            vectors: (a.num_cols() * types.x.size() + a.num_rows() * types.y.size()) as u64,
            workspace: on_cuda.plan().workspace_bytes(),
        };
        let (first, took) = on_cuda.product(operands)?;
        times.first_product = took;

        let guarantees = &kernel.program().guarantees;
        let depth = |row_nnz| guarantees.depth(row_nnz);
        let rounding = Rounding { depth: &depth, accumulator: types.accumulator, y: types.y };
        let expected = self.expected(a, operands)?;
        let mut verification = expected.as_ref().map(|expected| expected.verify(&first, &rounding));
        let performance = self.effort(on_cuda::BATCH).map(|effort| {
            let samples = measure(effort, |products| on_cuda.batch(products))?;
            Ok::<_, Failure>(Performance::new(samples, a.nnz(), on_cuda.bytes()))
        });
        let performance = performance.transpose()?;
        if let (Some(expected), Some(found), Some(_)) = (&expected, &mut verification, &performance) {
            let (last, _) = on_cuda.product(operands)?;
            let later = expected.verify(&last, &rounding);
            *found = found.clone().again(later, same_bits(&first, &last), guarantees.bit_reproducible);
        }
        Ok(Done { memory_bytes, verification, performance })
    }

    fn on_cpu<V: Value, O: DeviceOffset>(
        &self,
        a: &CsrMatrix<V, O>,
        operands: &Operands,
        times: &mut Times,
    ) -> Result<Done, Failure> {
        let mut on_cpu = OnCpu::new(cpu_parallel, a, operands);
        let memory_bytes = Memory {
            matrix: a.bytes() as u64,
            vectors: ((a.num_cols() + a.num_rows()) * size_of::<V>()) as u64,
            workspace: 0,
        };
        let (first, took) = on_cpu.product(operands)?;
        times.first_product = took;
        let rounding = Rounding { depth: &any_order_depth, accumulator: V::TYPE, y: V::TYPE };
        let expected = self.expected(a, operands)?;
        let mut verification = expected.as_ref().map(|expected| expected.verify(&first, &rounding));
        let performance = self.effort(on_cpu::BATCH).map(|effort| {
            let samples = measure(effort, |products| on_cpu.batch(products))?;
            Ok::<_, Failure>(Performance::new(samples, a.nnz(), on_cpu.bytes()))
        });
        let performance = performance.transpose()?;
        if let (Some(expected), Some(found), Some(_)) = (&expected, &mut verification, &performance) {
            let (last, _) = on_cpu.product(operands)?;
            // `cpu_parallel` promises the same bits for any number of threads.
            *found = found.clone().again(expected.verify(&last, &rounding), same_bits(&first, &last), true);
        }
        Ok(Done { memory_bytes, verification, performance })
    }

    fn expected<V: Value, O: DeviceOffset>(
        &self,
        a: &CsrMatrix<V, O>,
        operands: &Operands,
    ) -> Result<Option<Expected>, Failure> {
        (self.tolerance == Tolerance::Bound).then(|| Expected::of(a, operands)).transpose()
    }

    fn effort(&self, batch: Duration) -> Option<Effort> {
        let limit = Duration::from_secs_f64(self.time_limit);
        (self.repeat > 0).then_some(Effort { samples: self.repeat, limit, batch })
    }
}

/// What came of the product.
struct Done {
    memory_bytes: Memory,
    verification: Option<Verification>,
    performance: Option<Performance>,
}

/// What `--device` led to.
pub enum Opened {
    Cuda(Device, DeviceFacts),
    Cpu(DeviceFacts),
}

/// Opens the device that is asked for.
pub fn open(choice: DeviceChoice) -> Result<Opened, Failure> {
    let opened = match choice {
        DeviceChoice::Cpu => return Ok(Opened::Cpu(DeviceFacts::cpu(None))),
        DeviceChoice::Auto => Device::open(),
        DeviceChoice::Cuda(ordinal) => Device::cuda(ordinal),
    };
    match opened {
        Ok(device) => {
            let facts = DeviceFacts::cuda(&device);
            Ok(Opened::Cuda(device, facts))
        }
        Err(Error::NoDevice { reason, .. }) if choice == DeviceChoice::Auto => {
            Ok(Opened::Cpu(DeviceFacts::cpu(Some(reason))))
        }
        Err(error) => Err(error.into()),
    }
}

impl DeviceFacts {
    fn cuda(device: &Device) -> DeviceFacts {
        let properties = device.properties();
        let (major, minor) = properties.driver_version;
        DeviceFacts {
            kind: "cuda",
            name: properties.name.clone(),
            arch: Some(properties.arch.clone()),
            multiprocessors: Some(properties.multiprocessors),
            memory_bytes: Some(properties.memory_bytes),
            l2_bytes: Some(properties.l2_bytes),
            cuda_version: Some(format!("{major}.{minor}")),
            notice: None,
        }
    }

    fn cpu(no_gpu: Option<String>) -> DeviceFacts {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        DeviceFacts {
            kind: "cpu",
            name: format!("CPU, {threads} threads"),
            arch: None,
            multiprocessors: None,
            memory_bytes: None,
            l2_bytes: None,
            cuda_version: None,
            notice: no_gpu
                .map(|reason| format!("no GPU here ({reason}): the product is computed on the CPU")),
        }
    }

    /// One line, and the notice.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(notice) = &self.notice {
            fact(out, "notice", notice)?;
        }
        match (&self.arch, self.multiprocessors, self.memory_bytes, self.l2_bytes, &self.cuda_version) {
            (Some(arch), Some(multiprocessors), Some(memory), Some(l2), Some(version)) => fact(
                out,
                "device",
                format_args!(
                    "{} ({arch}, {multiprocessors} multiprocessors, {}, {} L2, CUDA {version})",
                    self.name,
                    quantity::bytes(memory),
                    quantity::bytes(l2),
                ),
            ),
            _ => fact(out, "device", &self.name),
        }
    }
}

/// Generates the text, for its size and time; the compiler generates it again where it needs it.
fn generate(config: KernelConfig, facts: &mut KernelFacts, times: &mut Times) {
    let started = Instant::now();
    facts.source_bytes = config.program().source.len();
    times.generate = Some(quantity::in_ms(started.elapsed()));
}

/// Compiles without a GPU. That the machine has no NVRTC does not keep the CPU from computing.
fn compile_only(config: KernelConfig, facts: &mut KernelFacts, times: &mut Times) {
    generate(config, facts, times);
    let started = Instant::now();
    let found = Nvrtc::find();
    times.find_nvrtc = Some(quantity::in_ms(started.elapsed()));
    let started = Instant::now();
    let compiled =
        found.map_err(Error::from).and_then(|_| Compiler::shared().compile(&config, ARCH_WITHOUT_GPU));
    match compiled {
        Ok((artifact, origin)) => {
            times.compile = Some(quantity::in_ms(started.elapsed()));
            facts.compiled = Some(CompiledFacts::new(ARCH_WITHOUT_GPU, origin, &artifact));
        }
        Err(error) => facts.problem = Some(error.to_string()),
    }
}

impl Report for RunReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.matrix.text(out)?;
        self.device.text(out)?;
        if let Some(kernel) = &self.kernel {
            fact(out, "kernel", &kernel.config)?;
            fact(out, "", format_args!("because {}", kernel.reason))?;
            if let Some(compiled) = &kernel.compiled {
                compiled.text(out)?;
            }
            if let Some(problem) = &kernel.problem {
                fact(out, "not compiled", problem)?;
            }
            if !kernel.ran {
                fact(out, "", "the kernel was not run")?;
            }
        }
        let ProductFacts { computed_by, accumulator, alpha, beta, seed } = self.product;
        fact(
            out,
            "product",
            format_args!("{} in {accumulator}, x from seed {seed}, by {computed_by}", formula(alpha, beta)),
        )?;
        self.times_ms.text(out, self.kernel.as_ref())?;
        let Memory { matrix, vectors, workspace } = self.memory_bytes;
        let [matrix, vectors, workspace] = [matrix, vectors, workspace].map(quantity::bytes);
        fact(out, "memory", format_args!("matrix {matrix}, x and y {vectors}, extra {workspace}"))?;
        match &self.verification {
            Some(verification) => verification_text(out, verification)?,
            None => fact(out, "verification", "none, as asked for")?,
        }
        match &self.performance {
            Some(performance) => performance_text(out, performance),
            None => fact(out, "time", "not measured, as asked for"),
        }
    }
}

/// y <- alpha A x + beta y, without what is 1 or 0.
fn formula(alpha: f64, beta: f64) -> String {
    let times = |factor: f64| match factor {
        1.0 => String::new(),
        -1.0 => "-".to_owned(),
        _ => format!("{factor} "),
    };
    match beta {
        0.0 => format!("y <- {}A x", times(alpha)),
        _ => format!("y <- {}A x + {}y", times(alpha), times(beta)),
    }
}

impl Times {
    fn text(&self, out: &mut dyn Write, kernel: Option<&KernelFacts>) -> io::Result<()> {
        let from_disk = kernel
            .and_then(|kernel| kernel.compiled.as_ref())
            .is_some_and(|compiled| compiled.origin == "disk");
        let steps = [
            ("read", Some(self.read)),
            ("open device", self.open_device),
            ("find NVRTC", self.find_nvrtc),
            ("generate", self.generate),
            (if from_disk { "load from cache" } else { "compile" }, self.compile),
            ("load module", self.load_module),
            ("upload", self.upload),
            ("first product", Some(self.first_product)),
        ];
        let steps = steps
            .into_iter()
            .filter_map(|(name, ms)| Some(format!("{name} {}", quantity::milliseconds(ms?))));
        fact(out, "steps", steps.collect::<Vec<_>>().join(", "))
    }
}

pub fn verification_text(out: &mut dyn Write, verification: &Verification) -> io::Result<()> {
    let rows = quantity::count(verification.rows);
    let worst = match verification.worst_row {
        Some(row) if verification.max_error_over_bound > 0.0 => {
            format!(
                "largest error {} times its bound, in row {row}",
                quantity::significant(verification.max_error_over_bound)
            )
        }
        _ => "no error at all".to_owned(),
    };
    let bits = match verification.same_bits_after_timing {
        Some(true) => "; the same bits again after timing",
        Some(false) => "; other bits, within the bound, after timing",
        None => "",
    };
    match verification.passed {
        true => fact(out, "verification", format_args!("right in all {rows} rows: {worst}{bits}")),
        false => {
            let failed = quantity::count(verification.failed_rows);
            fact(out, "verification", format_args!("WRONG in {failed} of {rows} rows: {worst}{bits}"))
        }
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
    fn formulas_are_short() {
        assert_eq!(formula(1.0, 0.0), "y <- A x");
        assert_eq!(formula(-1.0, 1.0), "y <- -A x + y");
        assert_eq!(formula(0.5, -2.0), "y <- 0.5 A x + -2 y");
    }

    #[test]
    fn devices_are_named() {
        assert_eq!(parse_device("auto"), Ok(DeviceChoice::Auto));
        assert_eq!(parse_device("cuda"), Ok(DeviceChoice::Cuda(0)));
        assert_eq!(parse_device("cuda:3"), Ok(DeviceChoice::Cuda(3)));
        assert_eq!(parse_device("cpu"), Ok(DeviceChoice::Cpu));
        for wrong in ["gpu", "cuda:", "cuda:-1", "cuda:x", ""] {
            assert!(parse_device(wrong).is_err(), "{wrong}");
        }
    }
}
