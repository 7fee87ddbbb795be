//! `spmv explain`: why a kernel is chosen for a matrix.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use spmv_runtime::codegen::{Features, IndexType, KernelConfig, Operation, UnknownName, ValueType};
use spmv_runtime::matrix::{Complex32, Complex64, bf16, f16};
use spmv_runtime::planner::{Candidate, TERMS};
use spmv_runtime::tuning::Question;
use spmv_runtime::{DeviceOffset, Element};

use crate::choice::{self, ConstraintArgs, by_default, device_of_run, l2_bytes};
use crate::failure::{Failure, Kind};
use crate::files;
use crate::kernel::{config_text, config_words, in_common};
use crate::memory;
use crate::quantity::significant;
use crate::reading;
use crate::report::{OutputArgs, Report, fact, print_table, table};
use crate::settings::{SettingArgs, with_types};
use crate::stored::{Read, StorageArgs, of_arrays};

/// Bytes of memory that counting the entries of columns takes for each.
const COL_BYTES: u64 = 4;

/// Tell why `spmv run` chooses a kernel: what the structure is like, and what each candidate is expected to take
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Explain {
    /// A Matrix Market file, plain or compressed with gzip, or a .npz file of SciPy's; - is standard input
    #[arg(value_name = "A.mtx", value_parser = files::input())]
    matrix: PathBuf,
    #[command(flatten)]
    settings: SettingArgs,
    #[command(flatten)]
    constraints: ConstraintArgs,
    #[command(flatten)]
    storage: StorageArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
A candidate's time is a sum of terms: an amount that follows from the structure times a price
that was fitted to measurements (`spmv fit`). The amounts: launch, a product; matrix, rows and
x, bytes that move; near, far (near_wide and far_wide where an entry of x takes more than 4
bytes), spilled, spread and gathers, reads of x; steps and chain, what threads do one after the
other; alone, the longest row where few rows are left beside it; giant, what that has beyond its
share. Prices are
those of the GPU that was measured, with cold caches, or halfway to warm ones for matrices that
fit the L2 cache; on another GPU the order counts, not the times. Candidates
without a time are rules of thumb, for where nothing else keeps the constraints, or have been
changed by --set. What `spmv tune` found for this product comes before all of them.

Examples:
  spmv explain A.mtx
  spmv explain A.mtx --value f64 --deterministic --products 50
  spmv explain A.mtx --storage symmetric

JSON (--json), one object:
  path, features (num_rows, num_cols, nnz, longest_row, row_lengths: rows with 0 entries, 1,
  2-3, 4-7, ..., warp_steps for 1, 2, 4, ... 32 threads a row, num_diagonals: null where they
  were not counted, different_rows: among up to 512 of a regular grid, null for others,
  sampled_values, of these different_values, wide_values that no f32 is equal to and uneven_values
  that are no whole numbers from -127 to 127, near and far: sectors of x that an entry reads anew,
  hot: part of the entries in the 40,960 columns that have most), tuned (config, reason; null where
  `spmv tune` found nothing for this), candidates (config, reason, product_us, prepare_us, terms_us
  by name; null for rules of thumb and what --set changed), the best first";

#[derive(Debug, Serialize)]
struct ExplainReport {
    path: String,
    features: FeatureFacts,
    tuned: Option<TunedFacts>,
    candidates: Vec<CandidateFacts>,
}

/// What `spmv run` takes instead of the first candidate.
#[derive(Debug, Serialize)]
struct TunedFacts {
    config: String,
    reason: String,
}

#[derive(Debug, Serialize)]
struct FeatureFacts {
    num_rows: u64,
    num_cols: u64,
    nnz: u64,
    longest_row: u64,
    row_lengths: Vec<u64>,
    warp_steps: [u64; 6],
    num_diagonals: Option<u64>,
    different_rows: Option<u64>,
    sampled_values: u64,
    different_values: u64,
    wide_values: u64,
    uneven_values: u64,
    near: f64,
    far: f64,
    hot: f64,
}

/// Columns that are hot: those whose x, in f32, 160 KiB of shared memory hold.
const HOT_COLS: u64 = 40_960;

impl From<&Features> for FeatureFacts {
    fn from(features: &Features) -> FeatureFacts {
        FeatureFacts {
            num_rows: features.num_rows,
            num_cols: features.num_cols,
            nnz: features.nnz,
            longest_row: features.longest_row,
            row_lengths: features.row_lengths.to_vec(),
            warp_steps: features.warp_steps,
            num_diagonals: features.num_diagonals,
            different_rows: features.different_rows,
            sampled_values: features.values.count,
            different_values: features.values.different,
            wide_values: features.values.wide,
            uneven_values: features.values.uneven,
            near: features.sectors_per_entry(0),
            far: features.sectors_per_entry(1),
            hot: features.degrees.hot_share(HOT_COLS),
        }
    }
}

#[derive(Debug, Serialize)]
struct CandidateFacts {
    config: String,
    /// The words of the configuration.
    #[serde(skip)]
    words: Vec<String>,
    reason: String,
    product_us: Option<f64>,
    prepare_us: Option<f64>,
    terms_us: Option<Terms>,
}

/// Terms with their microseconds, in order; an object in JSON.
#[derive(Debug)]
struct Terms(Vec<(&'static str, f64)>);

impl Serialize for Terms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

impl CandidateFacts {
    /// A candidate as it becomes by settings; what it was expected to take is known where they change nothing.
    fn new(candidate: &Candidate, config: &KernelConfig) -> CandidateFacts {
        let is_changed = *config != candidate.config;
        let prediction = candidate.prediction.as_ref().filter(|_| !is_changed);
        let names = TERMS.iter().map(|(name, _)| *name);
        let changed = if is_changed { "; changed by --set" } else { "" };
        CandidateFacts {
            config: config_text(config),
            words: config_words(config),
            reason: format!("{}{changed}", candidate.reason()),
            product_us: prediction.map(|prediction| prediction.product_ms * 1e3),
            prepare_us: prediction.map(|prediction| prediction.prepare_ms * 1e3),
            terms_us: prediction
                .map(|prediction| Terms(names.zip(prediction.terms_ms.map(|ms| ms * 1e3)).collect())),
        }
    }
}

impl Explain {
    pub fn run(mut self) -> Result<(), Failure> {
        self.settings.check_keys()?;
        let header = reading::header(&self.matrix)?;
        let (value, offset) = self.settings.types_of_file(header.as_ref())?;
        memory::check(header.as_ref(), memory::READING_ROW_BYTES, COL_BYTES)?;
        let unknown = |error: UnknownName| Failure::new(Kind::Usage, error.to_string());
        let operation = self.settings.get("operation").map_or(Ok(Operation::NonTranspose), str::parse);
        let operation = operation.map_err(unknown)?;
        with_types!(value, offset, self.explain(operation))
    }

    fn explain<V: Element, O: DeviceOffset>(self, operation: Operation) -> Result<(), Failure> {
        let storage = self.storage.storage;
        let Read { by_rows: a, stored, .. } = storage.read::<V, O>(&self.matrix)?;
        let of_arrays = of_arrays(stored.format(), operation)?;
        let types = self.settings.types(O::TYPE)?;
        let features = stored.features(&a, of_arrays);
        let constraints = self.constraints.constraints();
        let device = device_of_run();
        let l2_bytes = l2_bytes(device.as_ref());
        let found = choice::choose(of_arrays, &features, types, l2_bytes, &constraints, &self.settings)?;
        let configured = |candidate: &Candidate| {
            let mut builder = by_default(&candidate.config).offset(O::TYPE);
            self.settings.apply(&mut builder)?;
            let config = builder.operation(of_arrays).build()?;
            choice::check_verifiable(&config)?;
            storage.check(&config)?;
            Ok(CandidateFacts::new(candidate, &config))
        };
        let mut candidates: Vec<CandidateFacts> = Vec::with_capacity(found.len());
        let mut problem: Option<Failure> = None;
        for candidate in &found {
            match configured(candidate) {
                Ok(facts) if candidates.iter().any(|other| other.config == facts.config) => {}
                Ok(facts) => candidates.push(facts),
                Err(failure) => problem = problem.or(Some(failure)),
            }
        }
        if let (true, Some(problem)) = (candidates.is_empty(), problem) {
            return Err(problem);
        }
        let tuned = device.filter(|_| self.settings.are_plain()).and_then(|device| {
            let (fingerprint, storage) = (stored.fingerprint(&a), stored.format());
            let question = Question::of(&device, fingerprint, storage, operation, types, &constraints);
            choice::tuned_for(&device, &question, &features)
        });
        self.output.print(&ExplainReport {
            path: self.matrix.display().to_string(),
            features: (&features).into(),
            tuned: tuned.map(|(choice, reason)| TunedFacts { config: config_text(&choice.config), reason }),
            candidates,
        })
    }
}

impl Report for ExplainReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let FeatureFacts { num_rows, num_cols, nnz, longest_row, num_diagonals, near, far, hot, .. } =
            &self.features;
        fact(out, "matrix", &self.path)?;
        fact(
            out,
            "size",
            format_args!("{num_rows} x {num_cols}, {nnz} nonzeros, {longest_row} in the longest row"),
        )?;
        match num_diagonals {
            Some(diagonals) => fact(out, "diagonals", diagonals)?,
            None => fact(out, "diagonals", "not counted: rows stored by diagonals would be mostly fill")?,
        }
        if let Some(different) = self.features.different_rows {
            fact(
                out,
                "rows",
                format_args!("{different} of those in the middle differ by more than their place"),
            )?;
        }
        if *nnz > 0 {
            let FeatureFacts { sampled_values, different_values, .. } = &self.features;
            if *sampled_values > 0 {
                fact(
                    out,
                    "values",
                    format_args!("{different_values} of {sampled_values} that were looked at differ"),
                )?;
            }
            fact(
                out,
                "reads of x",
                format_args!("{near:.3} a nonzero near by, {far:.3} far: 8 columns that are not at hand"),
            )?;
            fact(
                out,
                "hot columns",
                format_args!(
                    "{:.0} % of the nonzeros are in the {HOT_COLS} columns that have most",
                    hot * 100.0
                ),
            )?;
            let idle: Vec<String> = Features::THREADS_PER_ROW
                .iter()
                .zip(self.features.warp_steps)
                .map(|(threads, steps)| format!("{threads}: {:.1}", (steps * 32) as f64 / *nnz as f64))
                .collect();
            fact(out, "lane steps", format_args!("a nonzero, by threads a row: {}", idle.join(", ")))?;
        }
        if let Some(TunedFacts { config, reason }) = &self.tuned {
            fact(out, "run takes", config)?;
            fact(out, "", format_args!("because {reason}"))?;
        }
        writeln!(out)?;
        let words: Vec<_> = self.candidates.iter().map(|candidate| &candidate.words[..]).collect();
        let (shared, others) = in_common(&words);
        if !shared.is_empty() {
            fact(out, "all have", shared)?;
        }
        let mut candidates = table(&["", "algorithm", "us", "prepare us", "most of it", "settings"]);
        let each = self.candidates.iter().zip(others).enumerate();
        for (place, (candidate, [algorithm, settings])) in each {
            let number = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), significant);
            let most = candidate.terms_us.as_ref().map_or_else(
                || candidate.reason.clone(),
                |Terms(terms)| {
                    let mut terms: Vec<_> = terms.iter().filter(|(_, us)| *us > 0.0).collect();
                    terms.sort_by(|a, b| b.1.total_cmp(&a.1));
                    let terms = terms.iter().take(3).map(|(name, us)| format!("{name} {}", significant(*us)));
                    terms.collect::<Vec<_>>().join(", ")
                },
            );
            candidates.add_row([
                (place + 1).to_string(),
                algorithm,
                number(candidate.product_us),
                number(candidate.prepare_us),
                most,
                settings,
            ]);
        }
        print_table(out, candidates)
    }
}
