//! `spmv fit`: the planner's prices from a record.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use spmv_bench::fit::{self, Choice, FitError, Judged, Made, Since};
use spmv_bench::geomean;

use crate::failure::{Failure, Kind};
use crate::files;
use crate::progress::Progress;
use crate::quantity::significant;
use crate::records;
use crate::report::{OutputArgs, Report, print_table, table};

/// Fit the prices by which kernels are chosen to records, and tell how good the choices are
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The structure of every matrix of the records is looked at again, so they must be those of a
suite or named by how they are made. A model is a line of prices for each configuration that is
worth choosing, or measuring where it is tuned: what a GB of the matrix, a read of x, a step of
a lane cost (`spmv explain` shows them on a matrix). It is fitted to relative errors with no
price below 0; configurations are dropped, added and exchanged as long as the choices get
better, and those added for `spmv tune` without which some matrix would lack a kernel nearly as
fast as its fastest. `left out` are the choices for a matrix with prices fitted to the others.
Times are cold ones, and halfway (geometrically) between cold and warm for matrices that fit
the L2 cache. What several of the records measured counts as in the last of them.
With --judge, what the model chooses for matrices that it was not fitted to is told too.

Examples:
  spmv fit STANDARD.csv SMALL.csv -o spmv-runtime/src/planner/sm_90.csv
  spmv fit STANDARD.csv --judge HELD_OUT.csv

JSON (--json), one object:
  model (the text), geomean and largest (of fitted and left_out: chosen time over the best),
  choices (matrix, value, and label and ms of fitted, left_out and best),
  judged (matrix, value, and label and ms of chosen and best)")]
pub struct Fit {
    /// Records of `spmv bench --variants each`, all of one GPU
    #[arg(required = true)]
    records: Vec<PathBuf>,
    /// Write the model to this file; - is standard output, where nothing else goes then
    #[arg(short = 'o', long = "output", value_name = "FILE", value_parser = files::output())]
    out: Option<PathBuf>,
    /// What records older than this date say of an algorithm does not count: its kernels have changed; may be repeated
    #[arg(long, value_name = "ALGORITHM=DATE")]
    since: Vec<Since>,
    /// Another record; what the model chooses among its problems is told and noted in the model
    #[arg(long, value_name = "RECORD")]
    judge: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Serialize)]
struct FitReport {
    model: String,
    geomean: Both,
    largest: Both,
    choices: Vec<Choice>,
    judged: Vec<Judged>,
}

#[derive(Debug, Serialize)]
struct Both {
    fitted: f64,
    left_out: f64,
}

impl Fit {
    pub fn run(self) -> Result<(), Failure> {
        let failed =
            |error: FitError, path: &Path| Failure::new(Kind::Input, error.to_string()).in_file(path);
        if let Some(path) = &self.out {
            files::refuse_inputs("-o", path, self.records.iter().chain(&self.judge))?;
        }
        let mut opened =
            self.records.iter().map(|path| records::open(path)).collect::<Result<Vec<_>, _>>()?;
        self.since.iter().for_each(|since| since.leave_out_older(&mut opened));
        let other =
            self.judge.as_ref().map(|path| records::open(path).map(|other| (path, other))).transpose()?;
        let progress = Progress::start("looking at the structures");
        // A record that judges nothing is told before the fit, which takes minutes.
        let judge = other
            .as_ref()
            .map(|(path, other)| fit::Judge::new(other).map_err(|error| failed(error, path)))
            .transpose()?;
        let mut fitted = fit::fit(opened).map_err(|error| match &self.records[..] {
            [only] => failed(error, only),
            _ => Failure::new(Kind::Input, error.to_string()),
        })?;
        for Since { algorithm, date } in &self.since {
            let comment = format!("What was measured of {algorithm} before {date} does not count.");
            fitted.model.comments.push(comment);
        }
        let mut judged = Vec::new();
        if let (Some((_, other)), Some(judge)) = (&other, judge) {
            judged = judge.judge(&fitted.model);
            let of_choices = judged_line(&judged);
            fitted.model.comments.push(format!(
                "The choice over the best of all that was measured on the {} problems of the record of {}: {of_choices}.",
                judged.len(),
                other.head.date
            ));
        }
        drop(progress);
        let model = fitted.model.to_string();
        if let Some(path) = &self.out {
            files::write(path, model.as_bytes()).map_err(|error| Failure::unwritable(path, error))?;
        }
        let both = |of: &dyn Fn(usize) -> f64| Both { fitted: of(0), left_out: of(1) };
        let ratios = |kind: usize| fitted.choices.iter().map(move |choice| choice.ratios()[kind]);
        let report = FitReport {
            model,
            geomean: both(&|kind| geomean(ratios(kind)).unwrap_or(f64::NAN)),
            largest: both(&|kind| ratios(kind).fold(0.0, f64::max)),
            choices: fitted.choices,
            judged,
        };
        self.output.print_beside(self.out.as_deref().is_some_and(files::is_stdout), &report)
    }
}

/// How good choices are.
fn judged_line(judged: &[Judged]) -> String {
    let ratios = || judged.iter().map(Judged::ratio);
    let mean = geomean(ratios()).unwrap_or(f64::NAN);
    format!("{mean:.3} (geometric mean), {:.2} (largest)", ratios().fold(0.0, f64::max))
}

impl Report for FitReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut choices = table(&["matrix", "best", "us", "chosen", "over", "left out", "over"]);
        for choice in &self.choices {
            let [fitted, left_out] = choice.ratios().map(|ratio| format!("{ratio:.2}"));
            choices.add_row([
                format!("{} {}", choice.matrix, choice.value),
                short(&choice.best),
                significant(choice.best.ms * 1e3),
                short(&choice.fitted),
                fitted,
                short(&choice.left_out),
                left_out,
            ]);
        }
        print_table(out, choices)?;
        if !self.judged.is_empty() {
            let mut judged = table(&["matrix", "best", "us", "chosen", "over"]);
            for choice in &self.judged {
                judged.add_row([
                    format!("{} {}", choice.matrix, choice.value),
                    short(&choice.best),
                    significant(choice.best.ms * 1e3),
                    short(&choice.chosen),
                    format!("{:.2}", choice.ratio()),
                ]);
            }
            writeln!(out)?;
            print_table(out, judged)?;
            writeln!(out, "\njudged: {}", judged_line(&self.judged))?;
        }
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

/// A configuration without what all of them have.
fn short(made: &Made) -> String {
    let label = made.label.trim_start_matches("ours:");
    label.replace(";threads_per_block=256", "").replace(" threads_per_block=256", "")
}
