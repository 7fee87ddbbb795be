//! `spmv compare`: two records side by side.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use spmv_bench::compare::{Alone, Comparison, Key, Pair, Verdict, compare};

use crate::failure::{Failure, Kind};
use crate::files;
use crate::quantity::significant;
use crate::records;
use crate::report::{OutputArgs, Report, print_table, table};

/// Set two records side by side: what became faster, what slower, what noise explains
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rows are paired by matrix, value type, operation, contender and parameters. The ratio is the
new median over the old one, cold where both have it. With s the spread (distance of the
quartiles over the median) and n the samples of each side, noise explains a ratio up to 1 + b
and down to 1 / (1 + b):

  b = 0.01 + sqrt((c_old s_old)^2 / n_old + (c_new s_new)^2 / n_new)

that is the 95 % band of two medians, and a percent for what differs between runs. c is 3.2 for
3 samples, 2.95 for 4, 2.15 for 10 and 1.85 for many. Without spread or samples the verdict is
`unknown`. Nothing is corrected for other GPUs, drivers or clocks; heads that differ are told.

Exit code 1 with --fail-on-slower where a row is slower by more than that and more than noise
explains (where the noise is unknown it excuses nothing), or was right and is wrong or failed
now.

Examples:
  spmv compare old.csv new.csv
  spmv compare old.csv new.csv --fail-on-slower 5 --json

JSON (--json), one object:
  warnings, overall (contender, pairs, geomean, faster, slower), contenders (the same of
  each), pairs (matrix, value, operation, contender, params, caches, old_ms, new_ms, ratio,
  band, verdict), broken and alone (matrix, value, operation, contender, params, old, new),
  too_slow (as pairs; empty without --fail-on-slower)")]
pub struct Compare {
    /// The record to compare with
    #[arg(value_parser = files::input())]
    old: PathBuf,
    /// The record that is judged
    #[arg(value_parser = files::input())]
    new: PathBuf,
    /// Exit with 1 where a row is slower by more than this, or broken, or nothing can be compared
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_on_slower: Option<f64>,
    /// List pairs that noise explains too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("allowed are numbers from 0 on, such as 5".to_owned()),
    }
}

#[derive(Debug, Serialize)]
struct CompareReport {
    #[serde(flatten)]
    comparison: Comparison,
    too_slow: Vec<Pair>,
    #[serde(skip)]
    all: bool,
}

impl Compare {
    pub fn run(self) -> Result<(), Failure> {
        let comparison = compare(&records::open(&self.old)?, &records::open(&self.new)?);
        let too_slow: Vec<Pair> = self
            .fail_on_slower
            .map_or(Vec::new(), |percent| comparison.slower_by(percent / 100.0).cloned().collect());
        let report = CompareReport { comparison, too_slow, all: self.all };
        // The verdict counts whether or not somebody reads to the end.
        let printed = self.output.print(&report);
        self.fail_on_slower.map_or(Ok(()), |percent| report.judge(percent))?;
        printed
    }
}

impl CompareReport {
    fn judge(&self, percent: f64) -> Result<(), Failure> {
        let (slow, broken) = (self.too_slow.len(), self.comparison.broken.len());
        if slow + broken == 0 {
            let nothing = "nothing was compared: no row has a right result and a time in both records";
            let compared = self.comparison.overall.is_some();
            return compared.then_some(()).ok_or_else(|| Failure::new(Kind::Slower, nothing));
        }
        let rows = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 row is {what}")),
            _ => Some(format!("{count} rows are {what}")),
        };
        let parts = [
            rows(slow, &format!("slower by more than {percent} %")),
            rows(broken, "wrong or failed that used to be right"),
        ];
        let message = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
        Err(Failure::new(Kind::Slower, message))
    }
}

impl Report for CompareReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let found = &self.comparison;
        for warning in &found.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        if !found.warnings.is_empty() {
            writeln!(out)?;
        }
        let Some(overall) = &found.overall else {
            writeln!(out, "no row has a right result and a time in both records")?;
            return self.lonely(out);
        };
        let mut means = table(&["contender", "pairs", "new / old", "faster", "slower"]);
        for summary in found.contenders.iter().chain([overall]) {
            means.add_row([
                summary.contender.clone(),
                summary.pairs.to_string(),
                format!("{:.3}", summary.geomean),
                summary.faster.to_string(),
                summary.slower.to_string(),
            ]);
        }
        print_table(out, means)?;
        writeln!(
            out,
            "\nnew / old is the geometric mean of the times' ratios; below 1 the new record is faster"
        )?;
        self.changed(out)?;
        self.lonely(out)
    }
}

impl CompareReport {
    fn changed(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut shown: Vec<&Pair> =
            self.comparison.pairs.iter().filter(|pair| self.all || pair.verdict != Verdict::Same).collect();
        shown.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
        if shown.is_empty() {
            return writeln!(out, "no pair differs by more than noise explains");
        }
        writeln!(out)?;
        let mut pairs = table(&["row", "old ms", "new ms", "new / old", "noise", "verdict"]);
        for pair in shown {
            let verdict = match pair.verdict {
                Verdict::Faster => "faster",
                Verdict::Slower => "SLOWER",
                Verdict::Same => "same",
                Verdict::Unknown => "unknown",
            };
            pairs.add_row([
                name(&pair.key),
                significant(pair.old_ms),
                significant(pair.new_ms),
                format!("{:.3}", pair.ratio),
                pair.band.map_or("unknown".to_owned(), |band| format!("{:.1} %", 100.0 * band)),
                verdict.to_owned(),
            ]);
        }
        print_table(out, pairs)
    }

    /// Rows that have no partner.
    fn lonely(&self, out: &mut dyn Write) -> io::Result<()> {
        let found = &self.comparison;
        let list = |out: &mut dyn Write, title: &str, rows: &[&Alone]| {
            if rows.is_empty() {
                return Ok(());
            }
            writeln!(out, "\n{title}")?;
            let mut table = table(&["row", "old", "new"]);
            for row in rows {
                let status = |status: &Option<String>| status.clone().unwrap_or_else(|| "-".to_owned());
                table.add_row([name(&row.key), status(&row.old), status(&row.new)]);
            }
            print_table(out, table)
        };
        let alone = |which: &dyn Fn(&&Alone) -> bool| found.alone.iter().filter(which).collect::<Vec<_>>();
        list(out, "BROKEN: right before, not now", &found.broken.iter().collect::<Vec<_>>())?;
        list(out, "only in the new record", &alone(&|row| row.old.is_none()))?;
        list(out, "only in the old record", &alone(&|row| row.new.is_none()))?;
        list(out, "not compared", &alone(&|row| row.old.is_some() && row.new.is_some()))
    }
}

fn name(key: &Key) -> String {
    let parts = [&key.matrix, &key.value, &key.operation, &key.contender, &key.params];
    parts.into_iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}
