//! `spmv demo`: a tour from a file to a verified product.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use spmv_runtime::codegen::{
    Algorithm, AlgorithmSpec, Coefficient, KernelConfig, KernelConfigBuilder, Operation, ValueType,
};
use spmv_runtime::matrix::matrix_market::{self, Header};
use spmv_runtime::matrix::{CsrMatrix, Statistics, cpu_parallel, cpu_serial, features};
use spmv_runtime::planner::MEASURED_L2_BYTES;
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Constraints, Device, DeviceMatrix, Error, Spmv};

use crate::choice;
use crate::command::inspect::histogram_text;
use crate::counters::{CounterFacts, percent};
use crate::device::{DeviceChoice, DeviceFacts, Opened, open};
use crate::expected::{Expected, Promise, Verification};
use crate::failure::{Failure, Kind};
use crate::kernel::{CompiledFacts, config_text};
use crate::measure::{Effort, Performance};
use crate::on_cpu::{Multiply, OnCpu};
use crate::on_device::OnDevice;
use crate::operands::Operands;
use crate::product::compute;
use crate::quantity;
use crate::reading::MatrixFacts;
use crate::report::{OutputArgs, fact, print_json, print_table, table};
use crate::settings::SettingArgs;

/// A real matrix; `matrices/README.md` says where it comes from.
const MATRIX: &[u8] = include_bytes!("../../matrices/gemat12.mtx.gz");

const MATRIX_NAME: &str = "gemat12.mtx";

/// Enough for a table; `spmv run` measures longer.
const EFFORT: Effort = Effort { samples: 15, limit: Duration::from_millis(500) };

/// Take a tour on a real matrix that comes with the command
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Demo {
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
Works without a GPU: the kernels then run on the simulator, which counts what they do and says
nothing of a GPU's time.

JSON (--json), one object:
  matrix (as `spmv inspect`), device (as `spmv run`), kernel (config, reason, source_lines,
  compiled), product (computed_by, first_ms, verification), table (name, processor (cpu, gpu,
  sim), verified, and of `spmv run` performance, null on the simulator, and report, null
  elsewhere; speed_up over cpu_serial, null on the simulator)";

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
    compiled: CompiledFacts,
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
    name: &'static str,
    processor: &'static str,
    verified: bool,
    /// Over `cpu_serial`.
    speed_up: Option<f64>,
    performance: Option<Performance>,
    report: Option<CounterFacts>,
}

/// The matrix with operands and what comes of them.
struct Example {
    a: CsrMatrix<f32>,
    operands: Operands,
    expected: Expected,
    expected_transposed: Expected,
}

impl Demo {
    pub fn run(self) -> Result<(), Failure> {
        self.tell(|out| title(out, "1. A matrix", MATRIX_ABOUT))?;
        let started = Instant::now();
        let header = Header::read_bytes(MATRIX)?;
        let a: CsrMatrix<f32> = matrix_market::read_bytes(MATRIX)?;
        let read_ms = quantity::in_ms(started.elapsed());
        let matrix = MatrixFacts::new(MATRIX_NAME.to_owned(), Some(&header.into()), Statistics::of(&a));
        self.tell(|out| {
            matrix.text(out)?;
            fact(out, "read in", quantity::milliseconds(read_ms))?;
            writeln!(out)?;
            histogram_text(out, &matrix.statistics)
        })?;

        self.tell(|out| title(out, "2. A kernel for it", KERNEL_ABOUT))?;
        let types = KernelConfig::named("csr_vector")?.build()?.types();
        let constraints = Constraints::default();
        let mut found = choice::choose(
            Operation::NonTranspose,
            &features(&a),
            types,
            MEASURED_L2_BYTES,
            &constraints,
            &SettingArgs::default(),
        )?;
        let choice = found.swap_remove(0);
        let config = plain_product(choice.config.to_builder()).build()?;
        let source = config.program().source;
        let source_lines = source.lines().count();
        self.tell(|out| kernel_text(out, &config, &choice.reason(), &source))?;

        let Opened::Device(device, facts) = open(DeviceChoice::Auto, Schedule::Natural)? else {
            unreachable!("`auto` is a GPU or the simulator");
        };
        self.tell(|out| title(out, "3. Machine code", COMPILE_ABOUT))?;
        let (loaded, provenance) = device.kernel(&config)?;
        let compiled = CompiledFacts::new(&device.properties().arch, provenance.origin, loaded.artifact());
        self.tell(|out| compiled.text(out))?;
        let kernel =
            KernelFacts { config: config_text(&config), reason: choice.reason(), source_lines, compiled };

        let about = match device.is_simulator() {
            true => "y <- A x with random x, by this kernel on the simulator.",
            false => "y <- A x with random x, by this kernel on the GPU.",
        };
        self.tell(|out| {
            title(out, "4. The product", about)?;
            facts.text(out)
        })?;
        // The matrix is square: x and y have the right lengths for its transpose too.
        let operands = Operands::new((a.num_cols(), a.num_rows()), config.types(), 1.0, 0.0, 0)?;
        let expected = Expected::of(&a, Operation::NonTranspose, &operands)?;
        let expected_transposed = Expected::of(&a, Operation::Transpose, &operands)?;
        let example = Example { a, operands, expected, expected_transposed };
        let matrix_there = Arc::new(DeviceMatrix::upload(&device, &example.a, config.types().offset)?);
        let (product, _) = by_kernel(&device, &matrix_there, config, &example)?;
        self.tell(|out| product_text(out, &product, &facts))?;

        let table = rows(&device, &matrix_there, &example)?;
        let wrong: Vec<&str> = table.iter().filter(|row| !row.verified).map(|row| row.name).collect();
        let mut outcome = product.verification.outcome();
        if let (Ok(()), false) = (&outcome, wrong.is_empty()) {
            let message = format!("the product is wrong by {}", wrong.join(", "));
            outcome = Err(Failure::new(Kind::Verification, message));
        }
        self.tell(|out| {
            table_text(out, &table, device.is_simulator())?;
            next_text(out)
        })?;
        if self.output.json {
            print_json(&DemoReport { matrix, device: facts, kernel, product, table })?;
        }
        outcome
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

fn by_kernel(
    device: &Device,
    matrix: &Arc<DeviceMatrix>,
    config: KernelConfig,
    example: &Example,
) -> Result<(ProductFacts, Row), Failure> {
    let Example { a, operands, expected, expected_transposed } = example;
    let expected = match config.operation() {
        Operation::Transpose => expected_transposed,
        _ => expected,
    };
    let mut on_device = OnDevice::new(Spmv::with(device, matrix, config)?, operands)?;
    let computed = compute(&mut on_device, operands, a.nnz(), Some(EFFORT))?;
    let promise = Promise::of_kernel(config, &on_device.plan().program().guarantees);
    let verification = computed.verify(expected, &promise);
    let row = Row {
        name: config.algorithm().name(),
        processor: if device.is_simulator() { "sim" } else { "gpu" },
        verified: verification.passed,
        speed_up: None,
        performance: computed.performance,
        report: computed.counters.map(CounterFacts::from),
    };
    Ok((ProductFacts { computed_by: row.name, first_ms: computed.first_ms, verification }, row))
}

fn by_cpu(name: &'static str, multiply: Multiply<f32, u32>, example: &Example) -> Result<Row, Failure> {
    let Example { a, operands, expected, .. } = example;
    let computed = compute(&mut OnCpu::new(multiply, a, operands), operands, a.nnz(), Some(EFFORT))?;
    let verified = computed.verify(expected, &Promise::of_cpu(ValueType::F32)).passed;
    let performance = computed.performance;
    Ok(Row { name, processor: "cpu", verified, speed_up: None, performance, report: None })
}

/// The CPU products, then every algorithm with its usual parameters, but for layouts that would be mostly fill or are for
/// other matrices. Speed-ups are over the first.
fn rows(device: &Device, matrix: &Arc<DeviceMatrix>, example: &Example) -> Result<Vec<Row>, Failure> {
    let mut rows =
        vec![by_cpu("cpu_serial", cpu_serial, example)?, by_cpu("cpu_parallel", cpu_parallel, example)?];
    let both_triangles = |spec: &&AlgorithmSpec| !spec.operations[0].is_of_triangle();
    for spec in Algorithm::ALL.iter().filter(both_triangles) {
        let config = plain_product(KernelConfig::builder((spec.default)())).build()?;
        if matches!(Spmv::with(device, matrix, config), Err(Error::Fill { .. } | Error::Misfit { .. })) {
            continue;
        }
        rows.push(by_kernel(device, matrix, config, example)?.1);
    }
    let median_ms = |row: &Row| row.performance.as_ref().map(|performance| performance.samples.median_ms);
    let first = median_ms(&rows[0]);
    for row in &mut rows {
        row.speed_up = first.zip(median_ms(row)).map(|(first, median)| first / median);
    }
    Ok(rows)
}

const MATRIX_ABOUT: &str = "\
A basis of an optimal power flow problem, from the Harwell-Boeing collection. It comes with this command as a
Matrix Market file compressed with gzip; `spmv inspect` shows the same of any matrix.";

const KERNEL_ABOUT: &str = "\
A configuration becomes CUDA text: constants and types in front of an unchanged template. Nothing that is known
now is left to be decided while the kernel runs.";

const COMPILE_ABOUT: &str = "\
NVRTC, NVIDIA's run-time compiler, makes of the text what the device runs, machine code on a GPU and PTX on the
simulator; a cache on disk keeps it for the next time.";

fn title(out: &mut dyn Write, title: &str, about: &str) -> io::Result<()> {
    let first = title.starts_with("1.");
    let space = if first { "" } else { "\n" };
    writeln!(out, "{space}== {title} {}\n{about}\n", "=".repeat(90usize.saturating_sub(title.len())))
}

/// What was generated for this configuration, and the kernel; of the helpers between them what the kernel ends with.
fn kernel_text(out: &mut dyn Write, config: &KernelConfig, reason: &str, source: &str) -> io::Result<()> {
    fact(out, "kernel", config_text(config))?;
    fact(out, "", format_args!("because {reason}"))?;
    writeln!(out)?;
    let (constants, kernel) = excerpts(source);
    for line in constants {
        writeln!(out, "  {line}")?;
    }
    writeln!(out, "  ...")?;
    if let Some(helper) = last_helper(source) {
        helper.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        writeln!(out, "  ...")?;
    }
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

/// The function that the last kernel ends with, with the lines in front of it that belong to it; none where it ends otherwise.
fn last_helper(source: &str) -> Option<Vec<&str>> {
    let lines: Vec<&str> = source.lines().collect();
    let end = lines.iter().rposition(|line| *line == "}")?;
    let statement = lines[..end].last()?.strip_prefix("  ")?;
    let name = statement.strip_suffix(");")?.split(['<', '(']).next()?;
    let named = format!("__device__ __forceinline__ void {name}(");
    let at = lines.iter().position(|line| line.starts_with(&named))?;
    let begins = |line: &&&str| line.starts_with("//") || line.starts_with("template ");
    let first = at - lines[..at].iter().rev().take_while(begins).count();
    let last = at + lines[at..].iter().position(|line| *line == "}")?;
    Some(lines[first..=last].to_vec())
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

fn product_text(out: &mut dyn Write, product: &ProductFacts, device: &DeviceFacts) -> io::Result<()> {
    let no_gpu = if device.kind == "sim" { ", the simulator's time, not a GPU's" } else { "" };
    fact(
        out,
        "first product",
        format_args!("{} by {}{no_gpu}", quantity::milliseconds(product.first_ms), product.computed_by),
    )?;
    title(
        out,
        "5. Is it right?",
        "Every row is compared with a product in doubled precision. What a row may differ follows from how many\n\
         roundings lie on the way to its sum; an error of 1 would be all of that.",
    )?;
    product.verification.text(out)
}

const FAST_ABOUT: &str = "\
The CPU products, and every algorithm with its usual parameters on the GPU; those that end in _t multiply with the
transpose, and layouts that would be mostly fill or are for other matrices are left out. The matrix is small,
so it stays in the caches, and much of a GPU's time is the launch of the kernel.";

const COUNTED_ABOUT: &str = "\
The CPU products are timed, and every algorithm with its usual parameters ran on the simulator, which counts; those
that end in _t multiply with the transpose, and layouts that would be mostly fill or are for other matrices are left
out. It has no model of time, so kernels have neither a time nor a speed-up here: those need a GPU.";

fn table_text(out: &mut dyn Write, rows: &[Row], simulated: bool) -> io::Result<()> {
    match simulated {
        true => title(out, "6. What do the kernels do?", COUNTED_ABOUT)?,
        false => title(out, "6. How fast?", FAST_ABOUT)?,
    }
    let counted = ["warp instr.", "warps filled", "loads used", "sectors/load", "atomics"];
    let timed = ["GFLOP/s", "GB/s"];
    let mut head = vec!["product", "on", "right", "time", "speed-up"];
    head.extend_from_slice(if simulated { &counted } else { &timed });
    let mut table = table(&head);
    for row in rows {
        let timed = |cell: &dyn Fn(&Performance) -> String| row.performance.as_ref().map(cell);
        let counted = |cell: &dyn Fn(&CounterFacts) -> String| row.report.as_ref().map(cell);
        let mut cells = vec![
            Some(row.name.to_owned()),
            Some(row.processor.to_uppercase()),
            Some(if row.verified { "yes" } else { "NO" }.to_owned()),
            timed(&|performance| quantity::milliseconds(performance.samples.median_ms)),
            row.speed_up.map(|speed_up| format!("{} x", quantity::significant(speed_up))),
        ];
        match simulated {
            true => cells.extend([
                counted(&|report| quantity::count(report.warp_instructions as usize)),
                counted(&|report| percent(report.warp_execution_efficiency)),
                counted(&|report| percent(report.global_load_efficiency)),
                counted(&|report| report.sectors_per_load_request.map_or("-".into(), quantity::significant)),
                counted(&|report| quantity::count((report.global_atomics + report.shared_atomics) as usize)),
            ]),
            false => cells.extend([
                timed(&|performance| quantity::significant(performance.gflops)),
                timed(&|performance| quantity::significant(performance.gb_per_s)),
            ]),
        }
        table.add_row(cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned())));
    }
    print_table(out, table)?;
    writeln!(
        out,
        "\ncpu_serial adds in doubled precision on one thread: it is the reference, not a fast product."
    )?;
    match simulated {
        true => writeln!(out, "{COUNTED_LEGEND}"),
        false => Ok(()),
    }
}

const COUNTED_LEGEND: &str = "\
warps filled: lanes that took part (warp execution efficiency). loads used: bytes asked for over bytes of the 32-byte
sectors moved (global load efficiency). sectors/load: sectors that a warp's load touches; fewer is better.";

fn next_text(out: &mut dyn Write) -> io::Result<()> {
    title(out, "Next", "Four commands to try:")?;
    writeln!(out, "  spmv run A.mtx                    the same for a matrix of yours")?;
    writeln!(out, "  spmv run A.mtx --report           what the simulator counts of it")?;
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
            assert!(kernel.count() >= 6, "{}", spec.name);
        }
    }

    #[test]
    fn what_a_kernel_ends_with_is_shown() {
        let source = |name| KernelConfig::named(name).unwrap().build().unwrap().program().source;
        let of_vector = source("csr_vector");
        let helper = last_helper(&of_vector).unwrap();
        assert!(helper[0].starts_with("//") && helper[1].starts_with("template "), "{helper:?}");
        assert!(helper.iter().any(|line| line.contains("multiply_row_by_group<")), "{helper:?}");
        assert_eq!(helper.iter().filter(|line| **line == "}").count(), 1);
        assert_eq!(last_helper(&source("csr_scalar")), None);
    }
}
