//! `spmv tune`: the fastest kernel for a matrix, found by measuring, and kept for `spmv run`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use spmv_runtime::cache::DiskCache;
use spmv_runtime::codegen::{IndexType, KernelConfig, Operation, ValueType};
use spmv_runtime::matrix::{Complex32, Complex64, bf16, f16};
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::tuning::{Choice, Outcome, Question, Stop, Tried, Tuned};
use spmv_runtime::{Budget, DeviceMatrix, DeviceOffset, Element, Spmv};

use crate::choice::ConstraintArgs;
use crate::device::{DeviceChoice, DeviceFacts, Opened, open, parse_device};
use crate::failure::{Failure, Kind};
use crate::files;
use crate::kernel::{config_text, config_words, in_common};
use crate::memory;
use crate::progress::Progress;
use crate::quantity;
use crate::reading::{self, Header};
use crate::report::{OutputArgs, Report, fact, print_table, table};
use crate::settings::{summed_types, with_types};
use crate::stored::{Read, StorageArgs};

/// What says how to tune, which is not done where choices are written or read.
const TUNING: [&str; 11] = [
    "value",
    "transpose",
    "deterministic",
    "values_change",
    "products",
    "max_extra_bytes",
    "storage",
    "budget",
    "time_limit",
    "again",
    "device",
];

/// Find the fastest kernel for a matrix by measuring, and keep it for `spmv run`
#[derive(Debug, clap::Args)]
#[command(
    after_help = AFTER_HELP,
    override_usage = "spmv tune [OPTIONS] <A.mtx>\n       spmv tune --export <FILE>\n       spmv tune --import <FILE>"
)]
pub struct Tune {
    /// A Matrix Market file, plain or compressed with gzip, or a .npz file of SciPy's; - is standard input
    #[arg(value_name = "A.mtx", value_parser = files::input(), required_unless_present_any = ["export", "import"])]
    matrix: Option<PathBuf>,
    /// Type of the matrix values, x, y and, unless it is half as wide, sums [default: f32, c64 of complex matrices]
    #[arg(long, value_name = "TYPE", value_parser = summed_types())]
    value: Option<ValueType>,
    /// Multiply with the transpose
    #[arg(long)]
    transpose: bool,
    #[command(flatten)]
    constraints: ConstraintArgs,
    #[command(flatten)]
    storage: StorageArgs,
    /// Spend the time of so many products of the fastest kernel on measuring; on the simulator every candidate multiplies
    /// once, whatever this says
    #[arg(long, value_name = "N", default_value_t = 200, allow_negative_numbers = true, value_parser = quantity::parse_whole::<u32>)]
    budget: u32,
    /// Spend so many seconds instead, making plans counted and compiling not
    #[arg(long, value_name = "SECONDS", conflicts_with = "budget", allow_negative_numbers = true, value_parser = quantity::parse_number)]
    time_limit: Option<f64>,
    /// Measure although the fastest kernel is known from before
    #[arg(long)]
    again: bool,
    /// Where to measure: a GPU, or the simulator, which counts
    #[arg(long, value_name = "auto|cuda[:N]|sim", default_value = "auto", value_parser = parse_device)]
    device: DeviceChoice,
    /// Write all that was kept to this file; - is standard output
    #[arg(long, value_name = "FILE", value_parser = files::output(), conflicts_with_all = ["matrix", "import"], conflicts_with_all = TUNING)]
    export: Option<PathBuf>,
    /// Keep what another machine found, from a file that --export wrote
    #[arg(long, value_name = "FILE", value_parser = files::input(), conflicts_with = "matrix", conflicts_with_all = TUNING)]
    import: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
The candidates are those of `spmv explain` and the configurations without which some measured
matrix would lack a kernel nearly as fast as its fastest; first comes what `spmv run` would
choose, then the others by what is expected of them. They are compiled on all cores but one while others
run. Products are timed by events, in turns of one, four and twelve, after another one of the same
kernel; whoever is clearly behind the fastest by turns of equal length is measured no more. What
is compared is a product with its share of making the plan (--products). The simulator has no
time: there a product costs what it counts, 4 for each sector of global memory and each atomic,
1 for each instruction of a warp.

What was found is kept beside the compiled kernels, for this structure, whatever its values (a
kernel that was found for values that are few stores others as they are), and these types,
operation, constraints, device and version; `spmv cache clear` deletes it.

Examples:
  spmv tune A.mtx
  spmv tune A.mtx --value f64 --budget 1000 --deterministic
  spmv tune --export choices.tsv
  spmv tune --import choices.tsv

JSON (--json), one object:
  tuning   path, device, unit (ms, counted), config, reason, product, prepare, stopped (one_left,
           alike, budget, recalled), spent, prepared, waited_ms, kept, candidates (config, outcome
           (stayed, behind, refused, not_tried), product, products, prepare, predicted_ms, why)
  others   path, choices";

#[derive(Debug, Serialize)]
struct TuneReport {
    path: String,
    device: DeviceFacts,
    /// `ms` or `counted`.
    unit: &'static str,
    config: String,
    reason: String,
    product: Option<f64>,
    prepare: Option<f64>,
    stopped: &'static str,
    spent: f64,
    prepared: f64,
    waited_ms: f64,
    /// Whether it will be found again.
    kept: bool,
    candidates: Vec<CandidateFacts>,
}

#[derive(Debug, Serialize)]
struct CandidateFacts {
    config: String,
    /// The words of the configuration.
    #[serde(skip)]
    words: Vec<String>,
    outcome: &'static str,
    product: Option<f64>,
    products: usize,
    prepare: Option<f64>,
    predicted_ms: Option<f64>,
    why: Option<String>,
}

impl From<&Tried> for CandidateFacts {
    fn from(tried: &Tried) -> CandidateFacts {
        let mut facts = CandidateFacts {
            config: config_text(&tried.config),
            words: config_words(&tried.config),
            outcome: "not_tried",
            product: None,
            products: 0,
            prepare: None,
            predicted_ms: tried.prediction.map(|prediction| prediction.product_ms),
            why: None,
        };
        match &tried.outcome {
            Outcome::Measured { product, products, prepare, stayed } => {
                facts.outcome = if *stayed { "stayed" } else { "behind" };
                facts.product = Some(*product);
                facts.products = *products;
                facts.prepare = Some(*prepare);
            }
            Outcome::Refused(why) => {
                facts.outcome = "refused";
                facts.why = Some(why.clone());
            }
            _ => {}
        }
        facts
    }
}

#[derive(Debug, Serialize)]
struct MovedReport {
    path: String,
    choices: usize,
    #[serde(skip)]
    done: &'static str,
}

impl Tune {
    pub fn run(self) -> Result<(), Failure> {
        if let Some(path) = &self.export {
            return self.export(path);
        }
        if let Some(path) = &self.import {
            return self.import(path);
        }
        let path = self.matrix.clone().expect("it is required where nothing is exported or imported");
        if let Some(limit) =
            self.time_limit.filter(|limit| !(limit.is_finite() && (0.0..=86400.0).contains(limit)))
        {
            let message = format!("--time-limit {limit}: allowed are 0 to 86400 seconds");
            return Err(Failure::new(Kind::Usage, message));
        }
        if self.device == DeviceChoice::Cpu {
            let message = "--device cpu runs no kernel, so there is nothing to find";
            return Err(Failure::new(Kind::Usage, message).help("with --device sim kernels are counted"));
        }
        let header = reading::header(&path)?;
        memory::check(header.as_ref(), memory::READING_ROW_BYTES, memory::READING_ROW_BYTES)?;
        let value = self.value.unwrap_or_else(|| reading::usual_value(header.as_ref()));
        let offset = reading::offset_type(header.as_ref());
        with_types!(value, offset, self.tune(&path, header))
    }
}

impl Tune {
    fn tune<V: Element, O: DeviceOffset>(&self, path: &Path, header: Option<Header>) -> Result<(), Failure> {
        let Read { by_rows: a, stored, .. } = self.storage.storage.read::<V, O>(path)?;
        drop(header);
        let Opened::Device(device, facts) = open(self.device, Schedule::Natural)? else {
            unreachable!("--device cpu was refused");
        };
        if device.is_simulator() {
            let index = IndexType::U32;
            let matrix = DeviceMatrix::predict_bytes(a.num_rows(), a.nnz(), V::TYPE, O::TYPE, index);
            memory::check_simulated(matrix)?;
        }
        let types = KernelConfig::named("csr_vector")?.value(V::TYPE).offset(O::TYPE).build()?.types();
        let matrix = stored.upload(&device, &a, types)?;
        let operation = if self.transpose { Operation::Transpose } else { Operation::NonTranspose };
        let constraints = self.constraints.constraints();
        let budget = match self.time_limit {
            Some(seconds) => Budget::Time(Duration::from_secs_f64(seconds)),
            None => Budget::Products(self.budget),
        };
        let progress = Progress::start("measuring candidates");
        let tune = if self.again { Spmv::tune_anew } else { Spmv::tune_with };
        let Tuned { report, .. } = tune(&device, &matrix, operation, &constraints, budget)?;
        drop(progress);
        let disk = device.compiler().disk();
        let kept = Question::new(&device, &matrix, operation, &constraints)?.choice(disk);
        let taken = report.tried.iter().find(|tried| tried.config == report.config).map(CandidateFacts::from);
        let of_kept = |of: fn(&Choice) -> f64| kept.as_ref().map(of);
        let reason = match report.stop {
            Stop::Recalled => "it was found before; --again measures once more",
            Stop::OneLeft => "all others are clearly slower",
            Stop::Alike => "those that stayed are alike, and it is the fastest of them",
            Stop::Budget => "it was the fastest when the budget was spent",
        };
        self.output.print(&TuneReport {
            path: path.display().to_string(),
            device: facts,
            unit: report.unit.name(),
            config: config_text(&report.config),
            reason: reason.to_owned(),
            product: taken.as_ref().and_then(|taken| taken.product).or(of_kept(|kept| kept.product)),
            prepare: taken.as_ref().and_then(|taken| taken.prepare).or(of_kept(|kept| kept.prepare)),
            stopped: match report.stop {
                Stop::Recalled => "recalled",
                Stop::OneLeft => "one_left",
                Stop::Alike => "alike",
                Stop::Budget => "budget",
            },
            spent: report.spent,
            prepared: report.prepared,
            waited_ms: quantity::in_ms(report.waited),
            kept: kept.is_some_and(|kept| kept.config == report.config),
            candidates: report.tried.iter().map(CandidateFacts::from).collect(),
        })
    }

    fn export(&self, path: &Path) -> Result<(), Failure> {
        let choices = Choice::kept(&DiskCache::from_env())?;
        files::write(path, Choice::export(&choices).as_bytes())
            .map_err(|error| Failure::unwritable(path, error))?;
        let takes_stdout = files::is_stdout(path);
        let path = path.display().to_string();
        self.output
            .print_beside(takes_stdout, &MovedReport { path, choices: choices.len(), done: "written to" })
    }

    fn import(&self, path: &Path) -> Result<(), Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::new(Kind::Input, format!("{}: could not be read", path.display())).because(error)
        })?;
        let choices = Choice::import(&text)
            .map_err(|error| Failure::new(Kind::Input, error.to_string()).in_file(path))?;
        let disk = DiskCache::from_env();
        if !choices.iter().all(|choice| choice.keep(&disk)) {
            return Err(match disk.status().problem {
                Some(problem) => problem.into(),
                None => Failure::new(Kind::Environment, "there is no cache to keep choices in")
                    .help("set SPMV_CACHE_DIR to a folder, or unset it"),
            });
        }
        let path = path.display().to_string();
        self.output.print(&MovedReport { path, choices: choices.len(), done: "kept from" })
    }
}

impl Report for TuneReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        fact(out, "matrix", &self.path)?;
        self.device.text(out)?;
        let time = |amount: f64| match self.unit {
            "ms" => quantity::milliseconds(amount),
            _ => format!("{} counted", quantity::count(amount as usize)),
        };
        if !self.candidates.is_empty() {
            let words: Vec<_> = self.candidates.iter().map(|candidate| &candidate.words[..]).collect();
            let (shared, others) = in_common(&words);
            if !shared.is_empty() {
                fact(out, "all have", shared)?;
            }
            let head = ["algorithm", "a product", "products", "to prepare", "outcome", "settings"];
            let mut table = table(&head);
            for (candidate, [algorithm, settings]) in self.candidates.iter().zip(others) {
                let CandidateFacts { outcome, product, products, prepare, .. } = candidate;
                let text = |amount: &Option<f64>| amount.map_or_else(String::new, time);
                table.add_row([
                    algorithm,
                    text(product),
                    if *products > 0 { products.to_string() } else { String::new() },
                    text(prepare),
                    candidate.why.clone().unwrap_or_else(|| outcome.replace('_', " ")),
                    settings,
                ]);
            }
            print_table(out, table)?;
            let waited = quantity::milliseconds(self.waited_ms);
            let [spent, prepared] = [self.spent, self.prepared].map(time);
            fact(
                out,
                "spent",
                format_args!("{spent} on products, {prepared} on plans, {waited} waiting for compiles"),
            )?;
        }
        fact(out, "kernel", &self.config)?;
        fact(out, "", format_args!("because {}", self.reason))?;
        if let (Some(product), Some(prepare)) = (self.product, self.prepare) {
            fact(out, "time", format_args!("{} a product, {} to prepare", time(product), time(prepare)))?;
        }
        match self.kept {
            true => {
                let asked = "the same types, operation, --storage, --products and constraints";
                fact(out, "kept", format_args!("spmv run with {asked} takes it from now on"))
            }
            false => fact(out, "kept", "not: there is no cache (`spmv doctor` says why)"),
        }
    }
}

impl Report for MovedReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} choices {} {}", quantity::count(self.choices), self.done, self.path)
    }
}
