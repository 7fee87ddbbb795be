//! `spmv fit`: the planner's prices from a record.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use spmv_bench::fit::{self, Choice};
use spmv_bench::geomean;

use crate::failure::{Failure, Kind};
use crate::progress::Progress;
use crate::quantity::significant;
use crate::records;
use crate::report::{OutputArgs, Report, print_table, table};

/// Fit the prices by which kernels are chosen to a record, and tell how good the choices are
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The structure of every matrix of the record is looked at again, so they must be those of a
suite. A model is a line of prices for each configuration that is worth choosing: what a GB of
the matrix, a read of x, a step of a lane cost (`spmv explain` shows them on a matrix). It is
fitted to relative errors with no price below 0; configurations are added as long as the
choices get better. `left out` are the choices for a matrix with prices fitted to the others.

Example:
  spmv fit benches/record/nvidia-h200/RECORD.csv -o spmv-runtime/src/planner/sm_90.csv

JSON (--json), one object:
  model (the text), geomean and largest (of fitted and left_out: chosen time over the best),
  choices (matrix, value, operation, and label and ms of fitted, left_out and best)")]
pub struct Fit {
    /// A record of `spmv bench --variants each`
    record: PathBuf,
    /// Write the model to this file
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Serialize)]
struct FitReport {
    model: String,
    geomean: Both,
    largest: Both,
    choices: Vec<Choice>,
}

#[derive(Debug, Serialize)]
struct Both {
    fitted: f64,
    left_out: f64,
}

impl Fit {
    pub fn run(self) -> Result<(), Failure> {
        let record = records::open(&self.record)?;
        let progress = Progress::start("looking at the structures");
        let fitted = fit::fit(&record)
            .map_err(|error| Failure::new(Kind::Input, error.to_string()).in_file(&self.record))?;
        drop(progress);
        let model = fitted.model.to_string();
        if let Some(path) = &self.out {
            std::fs::write(path, &model).map_err(|error| {
                Failure::new(Kind::Input, format!("{}: could not be written", path.display())).because(error)
            })?;
        }
        let both = |of: &dyn Fn(usize) -> f64| Both { fitted: of(0), left_out: of(1) };
        let ratios = |kind: usize| fitted.choices.iter().map(move |choice| choice.ratios()[kind]);
        let report = FitReport {
            model,
            geomean: both(&|kind| geomean(ratios(kind)).unwrap_or(f64::NAN)),
            largest: both(&|kind| ratios(kind).fold(0.0, f64::max)),
            choices: fitted.choices,
        };
        self.output.print(&report)
    }
}

impl Report for FitReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut choices = table(&["matrix", "best", "us", "chosen", "over", "left out", "over"]);
        for choice in &self.choices {
            let [fitted, left_out] = choice.ratios().map(|ratio| format!("{ratio:.2}"));
            let short = |label: &str| {
                label
                    .trim_start_matches("ours:")
                    .replace(";threads_per_block=256", "")
                    .replace(" threads_per_block=256", "")
            };
            choices.add_row([
                format!("{} {} {}", choice.matrix, choice.value, choice.operation),
                short(&choice.best.label),
                significant(choice.best.ms * 1e3),
                short(&choice.fitted.label),
                fitted,
                short(&choice.left_out.label),
                left_out,
            ]);
        }
        print_table(out, choices)?;
        let line = |what: &str, of: fn(&Both) -> f64| {
            format!("{what} {:.3} (largest {:.2})", of(&self.geomean), of(&self.largest))
        };
        writeln!(
            out,
            "\nchosen time over the best of all, geometric mean: {}; {}\n",
            line("fitted", |both| both.fitted),
            line("left out", |both| both.left_out)
        )?;
        write!(out, "{}", self.model)
    }
}
