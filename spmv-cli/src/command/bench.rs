//! `spmv bench`: products side by side, of our kernels, cuSPARSE and the CPU.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use spmv_bench::bench::{self, Event};
use spmv_bench::experiment::{self, Experiment, ExperimentError};
use spmv_bench::geomean;
use spmv_bench::record::{Head, Record, Row};
use spmv_bench::request::{Configuration, Effort, Operation, Place, Request, Selection, Variants};
use spmv_bench::suite::{self, Entry, SuiteError};
use spmv_runtime::codegen::{AlgorithmSpec, KernelConfig, ValueType};
use spmv_runtime::matrix::generate::Values;
use spmv_runtime::ptx_sim::Schedule;

use crate::device::{DeviceChoice, Opened, open, parse_device};
use crate::failure::{Failure, Kind};
use crate::files;
use crate::progress::Progress;
use crate::quantity;
use crate::report::{OutputArgs, fact, print_json};
use crate::settings::{check_repeated, float_types, key_and_value};

/// Measure products side by side: generated kernels, cuSPARSE and the CPU
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Bench {
    /// Matrix Market and SciPy files, and folders, whose files and folders are searched for .mtx, .mtx.gz and .npz
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A suite of generated matrices, or one matrix of it as SUITE/MATRIX; may be repeated
    #[arg(long = "suite", value_name = "NAME")]
    suites: Vec<String>,
    /// A generated matrix (`spmv matrix classes` lists classes and parameters); may be repeated
    #[arg(long = "class", value_name = "NAME[:KEY=VALUE,...]")]
    classes: Vec<String>,
    /// Values of generated matrices: random, single (random numbers that f32 holds), ones (graphs, constant
    /// coefficients), integers from -4 to 4, or laplacian (-1 beside the diagonal, on it the number of these in the longest row)
    #[arg(long, default_value = "random", value_parser = PossibleValuesParser::new(Values::NAMES.map(|(name, _)| name)).try_map(|name| name.parse::<Values>()))]
    values: Values,
    /// A paper's experiment: its matrices, types, operations and contenders, and its tables beside the paper's
    /// figures; `list` tells which there are
    #[arg(long, value_name = "NAME|list", conflicts_with_all = ["files", "suites", "classes", "value", "operation", "contenders", "variants", "values"])]
    paper: Option<String>,
    /// A folder with the paper's matrices as files of their SuiteSparse names; without it, matrices of their shape
    /// are generated
    #[arg(long, value_name = "FOLDER", requires = "paper", conflicts_with_all = ["files", "suites", "classes"])]
    matrices: Option<PathBuf>,
    /// Types of values, x and y
    #[arg(long, value_name = "TYPE,...", value_delimiter = ',', default_value = "f32,f64", value_parser = float_types())]
    value: Vec<ValueType>,
    /// A itself, its transpose, and the symmetric matrix with the lower triangle of A, which kernels for one triangle get
    /// as it is and others with both
    #[arg(long, value_name = "non_transpose,transpose,symmetric", value_delimiter = ',', default_value = "non_transpose", value_parser = parse_operation)]
    operation: Vec<Operation>,
    /// Who takes part; * stands for any text [default: ours:*,auto,cusparse:*,cpu:parallel]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    contenders: Vec<String>,
    /// Configurations of our algorithms: the default one; and each value of each of its parameters, one at a
    /// time; and all block sizes
    #[arg(long, value_name = "default|each|all", default_value = "default", value_parser = parse_variants)]
    variants: Variants,
    /// A further configuration of an algorithm of ours that takes part; may be repeated
    #[arg(long = "configuration", value_name = "NAME:KEY=VALUE,...", value_parser = parse_configuration)]
    configurations: Vec<Configuration>,
    /// A cuSPARSE library, its file, its folder or the name that the dynamic loader knows; may be repeated
    /// [default: the one that the loader finds]
    #[arg(long, value_name = "PATH")]
    cusparse: Vec<PathBuf>,
    /// Where kernels run: a GPU, the simulator, which times nothing, or nowhere. `auto` takes the first GPU, and the
    /// simulator where there is none
    #[arg(long, value_name = "auto|cuda[:N]|sim|cpu", default_value = "auto", value_parser = parse_device)]
    device: DeviceChoice,
    /// Samples that a median is taken of; who is 30 times slower than the best gets 3
    #[arg(long, value_name = "N", default_value_t = 15, allow_negative_numbers = true, value_parser = quantity::between::<u32>(3, 1000))]
    samples: u32,
    /// Milliseconds that a contender may take on a matrix; it gets 3 samples all the same
    #[arg(long, value_name = "MS", default_value_t = 500, allow_negative_numbers = true, value_parser = quantity::between::<u64>(1, 600_000))]
    time_limit_per_contender: u64,
    /// alpha
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_parser = quantity::parse_number)]
    alpha: f64,
    /// beta; 0 stores y without reading it
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true, value_parser = quantity::parse_number)]
    beta: f64,
    /// Seed of x, and of y where beta is not 0
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = quantity::parse_whole::<u64>)]
    seed: u64,
    /// Also count on the simulator how well our kernels use warps and loads, and print a line of
    /// each contender
    #[arg(long)]
    metrics: bool,
    /// The most nonzeros of a matrix that the simulator runs
    #[arg(long, value_name = "NNZ", default_value_t = 300_000, allow_negative_numbers = true, value_parser = quantity::parse_whole::<usize>)]
    simulated_nnz: usize,
    /// Compute and check one product of each contender and time nothing: for profilers
    #[arg(long)]
    once: bool,
    /// Write the record to this file; - is standard output, where nothing else goes then
    #[arg(long, value_name = "FILE", value_parser = files::output())]
    csv: Option<PathBuf>,
    /// Write the record below FOLDER, in a CSV file named by GPU, date and commit
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
Examples:
  spmv bench A.mtx B.mtx.gz C.npz
  spmv bench --suite standard --record benches/record
  spmv bench --class stencil_27:nx=128,ny=128,nz=128 --variants each --value f64
  spmv bench matrices/ --contenders 'ours:csr_*,cusparse:*' --cusparse /usr/local/cuda/lib64 -v
  spmv bench --paper 004-fig7
  spmv bench --paper 001-fig4 --matrices suitesparse/
  ncu --clock-control none spmv bench A.mtx --contenders ours:csr_vector --value f32 --once

Contenders:
  ours:<algorithm>      generated kernels, with alpha and beta known where they are 1, -1 or 0
  auto                  what the planner chooses for the matrix; its preparation is all that making
                        the plan takes beside compiling
  cusparse:csr_alg1     and csr_alg2, coo_alg1, coo_alg2, csc (for the transpose), sell, bsr, op
                        (plans of cusparseSpMVOp): with and without preprocess
  cpu:parallel          and, where it is asked for, cpu:serial

Time:
  Contenders take turns, sample by sample, on the same matrix in one process. Cold: the L2 cache
  is flushed before each product, and events around the product are all that is timed. Warm:
  products follow one another. Medians; the spread is the distance of the quartiles over the
  median. The roof is what a copy kernel moves in the same run; the part of it that a product
  reaches counts the matrix as stored, x once, y once. Analysis, conversion, compiling and
  loading are timed apart. CPU contenders are timed warm.

Verification:
  As `spmv run`; for cuSPARSE and the CPU with the depth of a sum in any order. Exit code 1 if a
  result of ours is wrong, 2 if nothing was measured or checked. -v tells of every contender.

JSON (--json), one object; figures that were not measured are null:
  head          date, commit, gpu, arch, driver, cuda, nvrtc, cusparse, cpu, cpu_threads,
                l2_bytes, copy_gb_per_s, launch_ms, command, wall_s, notes
  rows          matrix, class, rows, cols, nnz, value, operation, contender, params, cold_ms,
                warm_ms, spread, samples, prepare_ms, convert_ms, compile_ms, load_ms,
                extra_bytes, moved_bytes, roof_fraction, err_over_bound, deterministic, held_out,
                occupancy, registers, warp_execution_efficiency, global_load_efficiency,
                break_even (products), status (ok, wrong: ..., failed: ..., skipped: ...)
  A record is the same as CSV; its first line is `# ` and the head.";

fn parse_operation(text: &str) -> Result<Operation, String> {
    text.parse().map_err(|_| format!("allowed: {}", Operation::ALL.map(Operation::name).join(", ")))
}

fn parse_configuration(text: &str) -> Result<Configuration, String> {
    let (algorithm, settings) =
        text.split_once(':').ok_or("a configuration is written NAME:KEY=VALUE,...")?;
    let settings = settings.split(',').map(key_and_value).collect::<Result<Vec<_>, _>>()?;
    let mut builder = KernelConfig::named(algorithm).map_err(|error| error.to_string())?;
    check_repeated(settings.iter().map(|(key, _)| key.as_str()).collect())
        .map_err(|error| error.to_string())?;
    let own = AlgorithmSpec::find(algorithm).map_or(&[][..], |spec| spec.parameters);
    let own = own.iter().map(|parameter| parameter.name);
    let allowed: Vec<&str> = own.chain(["threads_per_block", "loads"]).collect();
    for (key, value) in &settings {
        if !allowed.contains(&key.as_str()) {
            let allowed = allowed.join(", ");
            return Err(format!("`{key}` is not for a configuration of {algorithm}; allowed: {allowed}"));
        }
        builder.set(key, value).map_err(|error| error.to_string())?;
    }
    Ok(Configuration { algorithm: algorithm.to_owned(), settings })
}

/// Each once, in the order in which they are given.
fn without_repeats<T: Copy + PartialEq>(given: &[T]) -> Vec<T> {
    let mut found = Vec::new();
    given.iter().for_each(|one| {
        if !found.contains(one) {
            found.push(*one)
        }
    });
    found
}

fn parse_variants(text: &str) -> Result<Variants, String> {
    let found = Variants::NAMES.into_iter().find(|(name, _)| *name == text);
    found
        .map(|(_, variants)| variants)
        .ok_or_else(|| format!("allowed: {}", Variants::NAMES.map(|(name, _)| name).join(", ")))
}

impl Bench {
    pub fn run(self, verbose: bool) -> Result<(), Failure> {
        if self.output.json && self.csv_takes_stdout() {
            return Err(Failure::new(Kind::Usage, "--json and --csv - both write to standard output"));
        }
        if self.paper.as_deref() == Some("list") {
            let list = experiment::list();
            return match self.output.json {
                true => print_json(&list),
                false => Ok(write!(io::stdout().lock(), "{list}")?),
            };
        }
        if let Some(file) = self.csv.as_deref().filter(|file| !files::is_stdout(file)) {
            files::refuse_inputs("--csv", file, &self.files)?;
            files::prepare(file).map_err(|error| Failure::unwritable(file, error))?;
        }
        if let Some(folder) = &self.record {
            files::prepare_folder(folder).map_err(|error| Failure::unwritable(folder, error))?;
        }
        let experiment = self.paper.as_deref().map(experiment::find).transpose().map_err(no_experiment)?;
        let request = match experiment {
            Some(experiment) => self.request_of(experiment)?,
            None => self.request(self.entries()?)?,
        };
        self.measure(&request, experiment, verbose)
    }

    /// What an experiment asks for; times, device and libraries are those of the command line.
    fn request_of(&self, experiment: &Experiment) -> Result<Request, Failure> {
        let entries = experiment.entries(self.matrices.as_deref()).map_err(no_experiment)?;
        let parts = experiment.request_parts();
        let usage = |error: String| Failure::new(Kind::Usage, error);
        let operations = parts.operations.iter().map(|name| parse_operation(name)).collect::<Result<_, _>>();
        Ok(Request {
            values: parts.values.to_vec(),
            operations: operations.map_err(usage)?,
            contenders: Selection::new(parts.contenders).map_err(|error| usage(error.to_string()))?,
            variants: if parts.each_parameter { Variants::Each } else { Variants::Default },
            metrics: self.metrics || parts.counters,
            ..self.request(entries)?
        })
    }

    fn request(&self, entries: Vec<Entry>) -> Result<Request, Failure> {
        let contenders = match &self.contenders[..] {
            [] => Selection::default(),
            patterns => Selection::new(patterns.to_vec())
                .map_err(|error| Failure::new(Kind::Usage, error.to_string()))?,
        };
        let operations = without_repeats(&self.operation);
        if let Some((pattern, computed)) = contenders.idle(&operations) {
            let names = |operations: &[Operation]| {
                operations.iter().map(|operation| operation.name()).collect::<Vec<_>>().join(",")
            };
            let message =
                format!("--contenders {pattern} computes no product of --operation {}", names(&operations));
            return Err(Failure::new(Kind::Usage, message).help(format!("it computes {}", names(&computed))));
        }
        let given = [
            ("--variants", "ours", self.variants != Variants::Default),
            ("--cusparse", "cusparse", !self.cusparse.is_empty()),
        ];
        if let Some((option, family, _)) =
            given.iter().find(|(_, family, is_given)| *is_given && !contenders.has_of(family))
        {
            let message = format!("{option} is for {family}:*, and --contenders leaves them out");
            return Err(Failure::new(Kind::Usage, message).help("name one of them among --contenders, too"));
        }
        let takes_part = |algorithm: &str| contenders.has(&format!("ours:{algorithm}"));
        if let Some(other) = self.configurations.iter().find(|given| !takes_part(&given.algorithm)) {
            let message =
                format!("--configuration is for {0}, and --contenders leaves out ours:{0}", other.algorithm);
            return Err(Failure::new(Kind::Usage, message).help("name it among --contenders, too"));
        }
        let [alpha, beta] = [("alpha", self.alpha), ("beta", self.beta)].map(|(name, number)| {
            let allowed = number.is_finite() && (number as f32).is_finite();
            let message = format!("--{name} {number:?}: not a finite number of type f32");
            allowed.then_some(number).ok_or_else(|| Failure::new(Kind::Usage, message))
        });
        let place = match open(self.device, Schedule::Natural)? {
            Opened::Device(device, _) => Place::Device(device),
            Opened::Cpu(_) => Place::Cpu,
        };
        Ok(Request {
            values: without_repeats(&self.value),
            operations,
            contenders,
            variants: self.variants,
            configurations: self.configurations.clone(),
            cusparse: self.cusparse.clone(),
            effort: Effort {
                samples: self.samples as usize,
                limit: Duration::from_millis(self.time_limit_per_contender),
            },
            alpha: alpha?,
            beta: beta?,
            seed: self.seed,
            metrics: self.metrics,
            simulated_nnz: self.simulated_nnz,
            once: self.once,
            command: command_line(
                std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()),
            ),
            ..Request::new(entries, place)
        })
    }

    fn entries(&self) -> Result<Vec<Entry>, Failure> {
        if self.files.is_empty() && self.suites.is_empty() && self.classes.is_empty() {
            let suites: Vec<_> = suite::ALL.iter().map(|suite| suite.name).collect();
            let message = "no matrix is named: give files or folders, --suite or --class";
            return Err(Failure::new(Kind::Usage, message)
                .help(format!("suites are {}; `spmv matrix classes` lists classes", suites.join(", "))));
        }
        let mut entries = Vec::new();
        for name in &self.suites {
            entries.extend(suite::named(name).map_err(|error| unusable(&error))?);
        }
        for class in &self.classes {
            entries.push(Entry::named(class)?);
        }
        if entries.is_empty() && self.values != Values::Random {
            let message = "--values says what values generated matrices get, and files have their own";
            return Err(
                Failure::new(Kind::Usage, message).help("leave --values out, or give --suite or --class")
            );
        }
        let mut entries: Vec<_> = entries.into_iter().map(|entry| entry.with_values(self.values)).collect();
        if self.files.iter().any(|file| file == Path::new("-")) {
            let message = "- is standard input, and `spmv bench` reads its matrices from files and folders";
            return Err(Failure::new(Kind::Usage, message).help("a file of that name is ./-"));
        }
        if !self.files.is_empty() {
            entries.extend(suite::files(&self.files).map_err(|error| unusable(&error))?);
        }
        Ok(entries)
    }

    /// Runs a request, tells what comes of it, writes the records that are asked for.
    fn measure(
        &self,
        request: &Request,
        experiment: Option<&Experiment>,
        verbose: bool,
    ) -> Result<(), Failure> {
        let tell = !self.output.json && !self.csv_takes_stdout();
        let mut doing: Option<Progress> = None;
        let mut what = String::new();
        let mut first_unreadable = None;
        // Written after each matrix, so that a run that is broken off leaves what it has measured.
        let mut recorded_in = None;
        let mut save_all = |record: &Record| {
            // Nothing takes the place of a record of before until there is something to record.
            if record.rows.is_empty() {
                return Ok(());
            }
            if let (Some(folder), None) = (&self.record, &recorded_in) {
                recorded_in = Some(new_file(folder, &record.head)?);
            }
            let csv = self.csv.iter().filter(|file| !files::is_stdout(file));
            csv.chain(&recorded_in).try_for_each(|file| save(record, file))
        };
        let mut told: io::Result<()> = if tell { heading(&mut io::stdout().lock()) } else { Ok(()) };
        let record = bench::run(request, &mut |event| {
            drop(doing.take());
            match event {
                Event::Matrix { name, number, of } => {
                    what = format!("{number} of {of}: {name}");
                    doing = Some(Progress::start(format!("{what}: reading")));
                }
                Event::Step(step) => doing = Some(Progress::start(format!("{what}: {step}"))),
                Event::Rows(rows) if tell && told.is_ok() => {
                    told = summary(&mut io::stdout().lock(), rows, verbose || request.metrics);
                }
                Event::Unreadable { name, error } => {
                    let message = error.to_string();
                    if tell && told.is_ok() {
                        told = writeln!(io::stdout().lock(), "{name:<24} left out: {message}");
                    }
                    first_unreadable.get_or_insert_with(|| unusable(error));
                }
                // What cannot be written now is tried again at the end, and told then.
                Event::Record(record) => drop(save_all(record)),
                _ => {}
            }
        });
        save_all(&record)?;
        // The verdict counts whether or not somebody reads to the end.
        let told =
            told.map_err(Failure::from).and_then(|()| self.end(&record, recorded_in.as_deref(), experiment));
        let wrong = record.rows.iter().find(|row| row.is_generated() && row.status.starts_with("wrong"));
        if let Some(row) = wrong {
            let message = format!("{} of {} {}: {}", row.label(), row.value, row.matrix, row.status);
            return Err(Failure::new(Kind::Verification, message));
        }
        if let Some(failure) = first_unreadable {
            return Err(failure);
        }
        told.and_then(|()| check_measured(&record))
    }

    fn csv_takes_stdout(&self) -> bool {
        self.csv.as_deref().is_some_and(files::is_stdout)
    }

    /// Tells what is told at the end.
    fn end(
        &self,
        record: &Record,
        recorded_in: Option<&Path>,
        experiment: Option<&Experiment>,
    ) -> Result<(), Failure> {
        if self.output.json {
            return print_json(record);
        }
        if let Some(stdout) = self.csv.as_deref().filter(|file| files::is_stdout(file)) {
            return save(record, stdout);
        }
        let mut out = io::stdout().lock();
        if let Some(file) = recorded_in {
            fact(&mut out, "recorded in", file.display())?;
        }
        ending(&mut out, record)?;
        for table in experiment.iter().flat_map(|experiment| experiment.tables(record)) {
            write!(out, "\n{table}")?;
        }
        Ok(())
    }
}

/// Refuses a record in which nothing was measured or checked.
fn check_measured(record: &Record) -> Result<(), Failure> {
    if record.rows.iter().any(|row| row.err_over_bound.is_some()) {
        return Ok(());
    }
    let why = match record.rows.first() {
        Some(row) => row.status.split_once(": ").map_or(&*row.status, |(_, why)| why),
        None => record.head.notes.first().map_or("nobody takes part", |note| note),
    };
    Err(Failure::new(Kind::Usage, format!("nothing was measured: {why}")))
}

fn unusable(error: &SuiteError) -> Failure {
    let kind = match error {
        SuiteError::UnknownSuite { .. } | SuiteError::UnknownMatrix { .. } => Kind::Usage,
        error if error.is_of_memory() => Kind::Memory,
        _ => Kind::Input,
    };
    Failure::new(kind, error.to_string())
}

fn no_experiment(error: ExperimentError) -> Failure {
    match error {
        ExperimentError::Suite(error) => unusable(&error),
        ExperimentError::Unknown { .. } => Failure::new(Kind::Usage, error.to_string()),
        error => Failure::new(Kind::Input, error.to_string()),
    }
}

fn save(record: &Record, file: &Path) -> Result<(), Failure> {
    let mut text = Vec::new();
    record.write(&mut text).map_err(|error| Failure::new(Kind::Environment, error.to_string()))?;
    let folder = file.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder)
        .and_then(|()| files::write(file, &text))
        .map_err(|error| Failure::unwritable(file, error))
}

/// An empty file of this record's own, `nvidia-h200/2026-01-31T12-00-00-0123456.csv`; `-2` and so on follow where there is one
/// of the same second.
fn new_file(folder: &Path, head: &Head) -> Result<PathBuf, Failure> {
    let gpu = head.gpu.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let folder = folder.join(gpu);
    let date = head.date.trim_end_matches('Z').replace(':', "-");
    let commit = head.short_commit(7);
    let mut number = 1;
    loop {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let file = folder.join(format!("{date}-{commit}{suffix}.csv"));
        match std::fs::create_dir_all(&folder).and_then(|()| std::fs::File::create_new(&file)) {
            Ok(_) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && file.exists() => number += 1,
            Err(error) => return Err(Failure::unwritable(&file, error)),
        }
    }
}

/// The command with its arguments, but for where the record goes, of which no number depends.
fn command_line(arguments: impl Iterator<Item = String>) -> String {
    let places = ["--csv", "--record"];
    let mut words = vec!["spmv".to_owned()];
    let mut is_place = false;
    for word in arguments {
        let of_place = std::mem::take(&mut is_place);
        is_place = places.contains(&&*word);
        let (option, _) = word.split_once('=').unwrap_or((&word, ""));
        match word.contains(char::is_whitespace) {
            _ if of_place || places.contains(&option) => {}
            true => words.push(format!("'{word}'")),
            false => words.push(word),
        }
    }
    words.join(" ")
}

fn heading(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<24} {:<4} {:<13} {:>12}  {:<20} {:>9} {:>5}  {:<20} {:>9} {:>8}",
        "matrix",
        "type",
        "operation",
        "nonzeros",
        "best of ours",
        "time",
        "roof",
        "best other",
        "time",
        "speed-up"
    )
}

/// The fastest right one of a side.
fn best<'r>(rows: &'r [Row], side: &str) -> Option<&'r Row> {
    let right = rows.iter().filter(|row| row.side() == side && row.is_ok() && row.time_ms().is_some());
    right.min_by(|a, b| a.time_ms().unwrap_or(f64::MAX).total_cmp(&b.time_ms().unwrap_or(f64::MAX)))
}

/// The best of ours that is named; where none took part, what the planner chose.
fn best_of_ours(rows: &[Row]) -> Option<&Row> {
    best(rows, "ours").or_else(|| best(rows, "auto"))
}

/// The best of cuSPARSE, of the CPU where there is none.
fn best_other(rows: &[Row]) -> Option<&Row> {
    best(rows, "cusparse").or_else(|| best(rows, "cpu"))
}

fn speed_up(rows: &[Row]) -> Option<f64> {
    Some(best_other(rows)?.time_ms()? / best_of_ours(rows)?.time_ms()?)
}

/// One line of a matrix, type and operation; with details, one more of each contender.
fn summary(out: &mut dyn Write, rows: &[Row], details: bool) -> io::Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let name = |row: Option<&Row>| row.map_or("-".to_owned(), |row| row.contender.clone());
    let time = |row: Option<&Row>| row.and_then(Row::time_ms).map_or("-".to_owned(), quantity::milliseconds);
    let (ours, other) = (best_of_ours(rows), best_other(rows));
    let line = format!(
        "{:<24} {:<4} {:<13} {:>12}  {:<20} {:>9} {:>5}  {:<20} {:>9} {:>8}  {}",
        first.matrix,
        first.value,
        first.operation,
        quantity::count(first.nnz as usize),
        name(ours).trim_start_matches("ours:"),
        time(ours),
        percent(ours.and_then(|row| row.roof_fraction)),
        name(other),
        time(other),
        speed_up(rows).map_or("-".to_owned(), |ratio| format!("{ratio:.2}x")),
        outcome(rows)
    );
    writeln!(out, "{}", line.trim_end())?;
    // Where nobody was measured or checked, why.
    if let Some(why) = first.status.strip_prefix("skipped: ").filter(|_| outcome(rows).is_empty())
        && rows.iter().all(|row| row.time_ms().is_none())
    {
        let who = first.label();
        let separator = if who.is_empty() { "" } else { ": " };
        writeln!(out, "  nothing was measured: {who}{separator}{why}")?;
    }
    for row in rows.iter().filter(|row| details || row.status.starts_with("wrong")) {
        detail(out, row)?;
    }
    out.flush()
}

fn percent(part: Option<f64>) -> String {
    part.map_or("-".to_owned(), |part| format!("{:.0}%", part * 100.0))
}

/// What did not go well, and what was not timed though it is right.
fn outcome(rows: &[Row]) -> String {
    let count = |what: &str, starts: &str| {
        let number = rows.iter().filter(|row| row.status.starts_with(starts)).count();
        (number > 0).then(|| format!("{number} {what}"))
    };
    let parts = [
        count("wrong", "wrong"),
        count("failed", "failed"),
        count("right on the simulator", "skipped: checked on the simulator"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn detail(out: &mut dyn Write, row: &Row) -> io::Result<()> {
    let mut parts = Vec::new();
    let mut tell = |what: &str, ms: Option<f64>| {
        parts.extend(ms.map(|ms| format!("{what} {}", quantity::milliseconds(ms))));
    };
    tell("cold", row.cold_ms);
    tell("warm", row.warm_ms);
    tell("prepared in", row.prepare_ms.filter(|ms| *ms > 0.0));
    tell("converted in", row.convert_ms);
    parts.extend(row.spread.map(|spread| format!("spread {:.1}%", spread * 100.0)));
    parts.extend(row.samples.map(|samples| format!("{samples} samples")));
    parts.extend(row.roof_fraction.map(|part| format!("{:.0}% of the roof", part * 100.0)));
    parts.extend(row.occupancy.map(|part| format!("occupancy {:.0}%", part * 100.0)));
    parts.extend(row.warp_execution_efficiency.map(|part| format!("warps {:.0}%", part * 100.0)));
    parts.extend(row.global_load_efficiency.map(|part| format!("loads {:.0}%", part * 100.0)));
    if !row.is_ok() {
        parts.push(row.status.clone());
    }
    writeln!(out, "    {:<56} {}", row.label(), parts.join(", "))
}

/// Roof, mean speed-up a type, and notes.
fn ending(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let head = &record.head;
    if head.copy_gb_per_s > 0.0 {
        let launch = quantity::milliseconds(head.launch_ms);
        fact(out, "roof", format_args!("{:.0} GB/s copied; a launch takes {launch}", head.copy_gb_per_s))?;
    }
    let same = |a: &Row, b: &Row| (&a.matrix, &a.value, &a.operation) == (&b.matrix, &b.value, &b.operation);
    let of_sides = |side: &str, over: &str, rows: &[Row]| {
        Some(best(rows, over)?.time_ms()? / best(rows, side)?.time_ms()?)
    };
    let compared = [
        ("speed-up", "ours", "cusparse", "of the best of ours over cuSPARSE"),
        ("", "auto", "cusparse", "of what the planner chooses over cuSPARSE"),
        ("", "auto", "ours", "of what the planner chooses over the best of ours"),
    ];
    let kinds = ValueType::ALL.iter().flat_map(|value| Operation::ALL.iter().map(move |op| (value, op)));
    for (value, operation) in kinds {
        for (name, side, over, whose) in compared {
            let of_kind =
                |rows: &&[Row]| rows[0].value == value.name() && rows[0].operation == operation.name();
            let groups = record.rows.chunk_by(same).filter(of_kind);
            let ratios: Vec<f64> = groups.filter_map(|rows| of_sides(side, over, rows)).collect();
            let (Some(mean), Some(least)) =
                (geomean(ratios.iter().copied()), ratios.iter().copied().reduce(f64::min))
            else {
                continue;
            };
            let number = ratios.len();
            let operation = match operation {
                Operation::NonTranspose => String::new(),
                other => format!(" {}", other.name()),
            };
            let text = format_args!(
                "{mean:.2}x {whose} in {value}{operation}, geometric mean of {number}; least {least:.2}x"
            );
            fact(out, name, text)?;
        }
    }
    for note in &head.notes {
        fact(out, "note", note)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(contender: &str, ms: f64, status: &str) -> Row {
        Row {
            matrix: "a".into(),
            value: "f32".into(),
            operation: "non_transpose".into(),
            nnz: 1000,
            contender: contender.into(),
            cold_ms: Some(ms),
            status: status.into(),
            ..Row::default()
        }
    }

    #[test]
    fn the_best_right_ones_are_compared() {
        let rows = [
            row("ours:a", 2.0, "ok"),
            row("ours:b", 0.1, "wrong: 1 of 2 rows"),
            row("cusparse:sell", 3.0, "ok"),
            row("cusparse:bsr", 0.5, "failed: x"),
            row("cpu:parallel", 1.0, "ok"),
        ];
        assert_eq!(speed_up(&rows), Some(1.5));
        let mut out = Vec::new();
        summary(&mut out, &rows, false).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().next().unwrap().ends_with("1.50x  1 wrong, 1 failed"), "{text}");
        assert!(text.contains("ours:b") && !text.contains("cusparse:bsr"), "{text}");
    }

    #[test]
    fn means_are_of_one_type_and_operation() {
        let transposed =
            |ms, contender: &str| Row { operation: "transpose".into(), ..row(contender, ms, "ok") };
        let rows = vec![
            row("ours:a", 2.0, "ok"),
            row("cusparse:csr", 3.0, "ok"),
            transposed(1.0, "ours:b"),
            transposed(8.0, "cusparse:csr"),
        ];
        let mut out = Vec::new();
        ending(&mut out, &Record { rows, ..Record::default() }).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("1.50x of the best of ours over cuSPARSE in f32, geometric mean of 1"),
            "{text}"
        );
        assert!(text.contains("8.00x of the best of ours over cuSPARSE in f32 transpose, geo"), "{text}");
    }

    #[test]
    fn records_are_named_by_machine_and_commit() {
        let head = Head {
            gpu: "NVIDIA H200".into(),
            date: "2026-01-31T12:00:00Z".into(),
            commit: "0123456789".into(),
            ..Head::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let [first, second, third] = [(); 3].map(|()| new_file(folder.path(), &head).unwrap());
        let named = |name: &str| folder.path().join("nvidia-h200").join(name);
        assert_eq!(first, named("2026-01-31T12-00-00-0123456.csv"));
        assert_eq!(second, named("2026-01-31T12-00-00-0123456-2.csv"));
        assert_eq!(third, named("2026-01-31T12-00-00-0123456-3.csv"));
        let changed = Head { commit: "0123456789-dirty".into(), ..head };
        let changed = new_file(folder.path(), &changed).unwrap();
        assert_eq!(changed, named("2026-01-31T12-00-00-0123456-dirty.csv"));
    }

    #[test]
    fn the_command_of_a_record_says_what_was_measured_and_not_where_it_went() {
        let words = [
            "bench",
            "A B.mtx",
            "--csv",
            "/a.csv",
            "--value",
            "f64",
            "--record=/out",
            "--record",
            "/out",
            "-v",
        ];
        let words = words.into_iter().map(String::from);
        assert_eq!(command_line(words), "spmv bench 'A B.mtx' --value f64 -v");
    }
}
