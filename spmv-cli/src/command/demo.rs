//! `spmv demo`: a tour from a file to a verified product.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use spmv_runtime::codegen::{Algorithm, Coefficient, KernelConfig, KernelConfigBuilder, ValueType};
use spmv_runtime::matrix::matrix_market::{self, Header};
use spmv_runtime::matrix::{CsrMatrix, Statistics, cpu_parallel, cpu_serial};
use spmv_runtime::{Compiler, Device, DeviceMatrix};

use crate::choice;
use crate::command::inspect::histogram_text;
use crate::command::run::{ARCH_WITHOUT_GPU, DeviceChoice, DeviceFacts, Opened, open, verification_text};
use crate::expected::{Expected, Rounding, Verification, any_order_depth, same_bits};
use crate::failure::{Failure, Kind};
use crate::kernel::{CompiledFacts, config_text};
use crate::measure::{Effort, Performance, measure};
use crate::on_cpu::{self, Multiply, OnCpu};
use crate::on_cuda::{self, OnCuda};
use crate::operands::Operands;
use crate::quantity;
use crate::reading::MatrixFacts;
use crate::report::{OutputArgs, fact, print_json, print_table, table};

/// A real matrix; `matrices/README.md` says where it comes from.
const MATRIX: &[u8] = include_bytes!("../../matrices/gemat12.mtx.gz");

const MATRIX_NAME: &str = "gemat12.mtx";

/// Enough for a table; `spmv run` measures longer.
const SAMPLES: usize = 15;
const TIME_LIMIT: Duration = Duration::from_millis(500);

/// Take a tour on a real matrix that comes with the command
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Demo {
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
Works without a GPU: the kernel is then compiled to real machine code all the same, and the
product is computed on the CPU.

JSON (--json), one object:
  matrix (as `spmv inspect`), device (as `spmv run`), kernel (config, reason, source_lines,
  compiled, problem), product (computed_by, first_ms, verification), table (name, processor,
  verified, speed_up and the performance of `spmv run`)";

#[derive(Debug, Serialize)]
struct DemoReport {
    matrix: MatrixFacts,
    device: DeviceFacts,
    kernel: KernelFacts,
    product: ProductFacts,
    table: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct KernelFacts {
    config: String,
    reason: String,
    source_lines: usize,
    compiled: Option<CompiledFacts>,
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct ProductFacts {
    computed_by: &'static str,
    first_ms: f64,
    verification: Verification,
}

/// One line of the table at the end.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    processor: &'static str,
    verified: bool,
    /// Over `cpu_serial`.
    speed_up: f64,
    #[serde(flatten)]
    performance: Performance,
}

/// The matrix with operands and what comes of them.
struct Example {
    a: CsrMatrix<f32>,
    operands: Operands,
    expected: Expected,
}

impl Demo {
    pub fn run(self) -> Result<(), Failure> {
        self.tell(|out| title(out, "1. A matrix", MATRIX_ABOUT))?;
        let started = Instant::now();
        let header = Header::read_bytes(MATRIX)?;
        let a: CsrMatrix<f32> = matrix_market::read_bytes(MATRIX)?;
        let read_ms = quantity::in_ms(started.elapsed());
        let matrix = MatrixFacts::new(MATRIX_NAME.to_owned(), Some(&header), Statistics::of(&a));
        self.tell(|out| {
            matrix.text(out)?;
            fact(out, "read in", quantity::milliseconds(read_ms))?;
            writeln!(out)?;
            histogram_text(out, &matrix.statistics)
        })?;

        self.tell(|out| title(out, "2. A kernel for it", KERNEL_ABOUT))?;
        let choice = choice::choose(matrix.statistics.row_nnz_mean);
        let config = plain_product(KernelConfig::builder(choice.algorithm)).build()?;
        let source = config.program().source;
        let source_lines = source.lines().count();
        self.tell(|out| kernel_text(out, &config, &choice.reason, &source))?;

        let opened = open(DeviceChoice::Auto)?;
        self.tell(|out| title(out, "3. Machine code", COMPILE_ABOUT))?;
        let (compiled, problem) = compile(&config, &opened);
        self.tell(|out| match (&compiled, &problem) {
            (Some(compiled), _) => compiled.text(out),
            (None, problem) => fact(out, "not compiled", problem.as_deref().unwrap_or_default()),
        })?;
        let kernel = KernelFacts {
            config: config_text(&config),
            reason: choice.reason,
            source_lines,
            compiled,
            problem,
        };

        let operands = Operands::new((a.num_rows(), a.num_cols()), config.types(), 1.0, 0.0, 0)?;
        let expected = Expected::of(&a, &operands)?;
        let example = Example { a, operands, expected };
        let (device, product, table) = match opened {
            Opened::Cuda(device, facts) => self.on_cuda(&device, facts, config, &example)?,
            Opened::Cpu(facts) => self.on_cpu(facts, &example)?,
        };
        let wrong = table.iter().filter(|row| !row.verified).map(|row| row.name.as_str()).collect::<Vec<_>>();
        let mut outcome = product.verification.outcome();
        if let (Ok(()), false) = (&outcome, wrong.is_empty()) {
            outcome = Err(Failure::new(
                Kind::Verification,
                format!("the product is wrong by {}", wrong.join(", ")),
            ));
        }
        self.tell(|out| {
            table_text(out, &table, &device)?;
            next_text(out)
        })?;
        if self.output.json {
            print_json(&DemoReport { matrix, device, kernel, product, table })?;
        }
        outcome
    }

    fn on_cuda(
        &self,
        device: &Device,
        facts: DeviceFacts,
        config: KernelConfig,
        example: &Example,
    ) -> Result<(DeviceFacts, ProductFacts, Vec<Row>), Failure> {
        self.tell(|out| {
            title(out, "4. The product", "y <- A x on the GPU, with random x.")?;
            facts.text(out)
        })?;
        let matrix = Arc::new(DeviceMatrix::upload(device, &example.a, config.types().offset)?);
        let (product, _) = timed_on_cuda(device, &matrix, config, example)?;
        self.tell(|out| product_text(out, &product))?;
        let mut rows = cpu_rows(example)?;
        for spec in Algorithm::ALL {
            let config = plain_product(KernelConfig::builder((spec.default)())).build()?;
            let (product, performance) = timed_on_cuda(device, &matrix, config, example)?;
            rows.push(Row::new(spec.name, "gpu", product.verification.passed, performance, rows.first()));
        }
        Ok((facts, product, rows))
    }

    fn on_cpu(
        &self,
        facts: DeviceFacts,
        example: &Example,
    ) -> Result<(DeviceFacts, ProductFacts, Vec<Row>), Failure> {
        self.tell(|out| {
            title(out, "4. The product", "y <- A x with random x.")?;
            facts.text(out)?;
            fact(
                out,
                "",
                "the kernel above was compiled, and not run; cpu_parallel computes the same product",
            )
        })?;
        let (product, _) = timed_on_cpu("cpu_parallel", cpu_parallel, example)?;
        self.tell(|out| product_text(out, &product))?;
        Ok((facts, product, cpu_rows(example)?))
    }

    /// Text for people, as it comes.
    fn tell(&self, text: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        if self.output.json {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        text(&mut out)?;
        Ok(out.flush()?)
    }
}

/// alpha = 1 and beta = 0, known when the kernel is generated.
fn plain_product(builder: KernelConfigBuilder) -> KernelConfigBuilder {
    builder.alpha(Coefficient::One).beta(Coefficient::Zero)
}

/// Compiles for the GPU that is there, else for a usual one.
fn compile(config: &KernelConfig, opened: &Opened) -> (Option<CompiledFacts>, Option<String>) {
    let compiled = match opened {
        Opened::Cuda(device, _) => device.kernel(config).map(|(kernel, provenance)| {
            CompiledFacts::new(&device.properties().arch, provenance.origin, kernel.artifact())
        }),
        Opened::Cpu(_) => Compiler::shared()
            .compile(config, ARCH_WITHOUT_GPU)
            .map(|(artifact, origin)| CompiledFacts::new(ARCH_WITHOUT_GPU, origin, &artifact)),
    };
    match compiled {
        Ok(compiled) => (Some(compiled), None),
        Err(error) => (None, Some(error.to_string())),
    }
}

fn timed_on_cuda(
    device: &Device,
    matrix: &Arc<DeviceMatrix>,
    config: KernelConfig,
    example: &Example,
) -> Result<(ProductFacts, Performance), Failure> {
    let Example { a, operands, expected } = example;
    let mut on_cuda = OnCuda::new(device, matrix, config, operands)?;
    let (first, first_ms) = on_cuda.product(operands)?;
    let effort = Effort { samples: SAMPLES, limit: TIME_LIMIT, batch: on_cuda::BATCH };
    let samples = measure(effort, |products| on_cuda.batch(products))?;
    let (last, _) = on_cuda.product(operands)?;
    let guarantees = &on_cuda.plan().program().guarantees;
    let depth = |row_nnz| guarantees.depth(row_nnz);
    let types = config.types();
    let rounding = Rounding { depth: &depth, accumulator: types.accumulator, y: types.y };
    let verification = expected.verify(&first, &rounding).again(
        expected.verify(&last, &rounding),
        same_bits(&first, &last),
        guarantees.bit_reproducible,
    );
    let performance = Performance::new(samples, a.nnz(), on_cuda.bytes());
    Ok((ProductFacts { computed_by: config.algorithm().name(), first_ms, verification }, performance))
}

fn timed_on_cpu(
    name: &'static str,
    multiply: Multiply<f32, u32>,
    example: &Example,
) -> Result<(ProductFacts, Performance), Failure> {
    let Example { a, operands, expected } = example;
    let mut on_cpu = OnCpu::new(multiply, a, operands);
    let (first, first_ms) = on_cpu.product(operands)?;
    let effort = Effort { samples: SAMPLES, limit: TIME_LIMIT, batch: on_cpu::BATCH };
    let samples = measure(effort, |products| on_cpu.batch(products))?;
    let (last, _) = on_cpu.product(operands)?;
    let value = ValueType::F32;
    let rounding = Rounding { depth: &any_order_depth, accumulator: value, y: value };
    let verification = expected.verify(&first, &rounding).again(
        expected.verify(&last, &rounding),
        same_bits(&first, &last),
        true,
    );
    let performance = Performance::new(samples, a.nnz(), on_cpu.bytes());
    Ok((ProductFacts { computed_by: name, first_ms, verification }, performance))
}

fn cpu_rows(example: &Example) -> Result<Vec<Row>, Failure> {
    let products: [(_, Multiply<f32, u32>); 2] = [("cpu_serial", cpu_serial), ("cpu_parallel", cpu_parallel)];
    let mut rows: Vec<Row> = Vec::new();
    for (name, multiply) in products {
        let (product, performance) = timed_on_cpu(name, multiply, example)?;
        rows.push(Row::new(name, "cpu", product.verification.passed, performance, rows.first()));
    }
    Ok(rows)
}

impl Row {
    /// The speed-up is over the first row.
    fn new(
        name: &str,
        processor: &'static str,
        verified: bool,
        performance: Performance,
        first: Option<&Row>,
    ) -> Row {
        let median_ms = performance.samples.median_ms;
        let speed_up = first.map_or(1.0, |first| first.performance.samples.median_ms / median_ms);
        Row { name: name.to_owned(), processor, verified, speed_up, performance }
    }
}

const MATRIX_ABOUT: &str = "\
A basis of an optimal power flow problem, from the Harwell-Boeing collection. It comes with this command as a
Matrix Market file compressed with gzip; `spmv inspect` shows the same of any matrix.";

const KERNEL_ABOUT: &str = "\
A configuration becomes CUDA text: constants and types in front of an unchanged template. Nothing that is known
now is left to be decided while the kernel runs.";

const COMPILE_ABOUT: &str = "\
NVRTC, NVIDIA's run-time compiler, makes machine code of the text; a cache on disk keeps it for the next time.";

fn title(out: &mut dyn Write, title: &str, about: &str) -> io::Result<()> {
    let first = title.starts_with("1.");
    let space = if first { "" } else { "\n" };
    writeln!(out, "{space}== {title} {}\n{about}\n", "=".repeat(90usize.saturating_sub(title.len())))
}

/// What was generated for this configuration, and the kernel; not the helpers between them.
fn kernel_text(out: &mut dyn Write, config: &KernelConfig, reason: &str, source: &str) -> io::Result<()> {
    fact(out, "kernel", config_text(config))?;
    fact(out, "", format_args!("because {reason}"))?;
    writeln!(out)?;
    let (constants, kernel) = excerpts(source);
    for line in constants {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "  ...")?;
    for line in kernel {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "\nAll {} lines of it:\n  {}", source.lines().count(), gen_command(config))
}

/// The generated lines, and those from the first kernel on.
fn excerpts(source: &str) -> (impl Iterator<Item = &str>, impl Iterator<Item = &str>) {
    let generated = source.lines().skip_while(|line| !line.starts_with("#line 1 \"generated\""));
    let constants = generated.skip(1).take_while(|line| !line.starts_with("#line "));
    let kernel = source.lines().skip_while(|line| !line.starts_with("extern \"C\" __global__"));
    (constants, kernel)
}

/// The command line that prints the text of a configuration.
fn gen_command(config: &KernelConfig) -> String {
    let algorithm = config.algorithm();
    let usual = KernelConfig::builder((algorithm.spec().default)()).build();
    let usual = usual.map(|usual| usual.settings()).unwrap_or_default();
    let changed = config.settings().into_iter().filter(|setting| !usual.contains(setting));
    let settings: String = changed.map(|(key, value)| format!(" --set {key}={value}")).collect();
    format!("spmv gen --algorithm {}{settings}", algorithm.name())
}

fn product_text(out: &mut dyn Write, product: &ProductFacts) -> io::Result<()> {
    fact(
        out,
        "first product",
        format_args!("{} by {}", quantity::milliseconds(product.first_ms), product.computed_by),
    )?;
    title(
        out,
        "5. Is it right?",
        "Every row is compared with a product in doubled precision. What a row may differ follows from how many\n\
         roundings lie on the way to its sum; an error of 1 would be all of that.",
    )?;
    verification_text(out, &product.verification)
}

fn table_text(out: &mut dyn Write, rows: &[Row], device: &DeviceFacts) -> io::Result<()> {
    let about = match device.kind {
        "cuda" => {
            "The CPU products, and every algorithm with its usual parameters on the GPU. The matrix is small, so it\n\
             stays in the caches, and much of a GPU's time is the launch of the kernel."
        }
        _ => {
            "The CPU products only: there is no GPU here to run kernels on. The matrix is small, so it stays in the\n\
             caches."
        }
    };
    title(out, "6. How fast?", about)?;
    let mut table = table(&["product", "on", "right", "time", "GFLOP/s", "GB/s", "speed-up"]);
    for Row { name, processor, verified, speed_up, performance } in rows {
        table.add_row([
            name.clone(),
            processor.to_uppercase(),
            if *verified { "yes" } else { "NO" }.to_owned(),
            quantity::milliseconds(performance.samples.median_ms),
            quantity::significant(performance.gflops),
            quantity::significant(performance.gb_per_s),
            format!("{} x", quantity::significant(*speed_up)),
        ]);
    }
    print_table(out, table)?;
    writeln!(
        out,
        "\ncpu_serial adds in doubled precision on one thread: it is the reference, not a fast product."
    )
}

fn next_text(out: &mut dyn Write) -> io::Result<()> {
    title(out, "Next", "Three commands to try:")?;
    writeln!(out, "  spmv run A.mtx                    the same for a matrix of yours")?;
    writeln!(out, "  spmv algorithms                   what there is, and what each is good for")?;
    writeln!(
        out,
        "  spmv matrix make stencil_27 --set nx=64 --set ny=64 --set nz=64 -o big.mtx && spmv run big.mtx"
    )?;
    writeln!(out, "                                    a larger matrix, where bandwidth counts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_shown_generates_the_text_shown() {
        for spec in Algorithm::ALL {
            let config = plain_product(KernelConfig::builder((spec.default)())).build().unwrap();
            let command = gen_command(&config);
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(words[..4], ["spmv", "gen", "--algorithm", spec.name]);
            let settings = words[4..].chunks(2).map(|pair| pair[1].split_once('=').unwrap());
            assert_eq!(KernelConfig::from_settings(spec.name, settings).unwrap(), config);
        }
    }

    #[test]
    fn excerpts_hold_what_is_special_about_a_kernel() {
        for spec in Algorithm::ALL {
            let source =
                plain_product(KernelConfig::builder((spec.default)())).build().unwrap().program().source;
            let (constants, kernel) = excerpts(&source);
            let constants: Vec<&str> = constants.collect();
            assert!(constants.iter().any(|line| line.contains("kThreadsPerBlock")), "{constants:?}");
            assert!(constants.len() < 30, "{constants:?}");
            assert!(kernel.count() > 10);
        }
    }
}
