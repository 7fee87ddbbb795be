//! `spmv cache`: looks after the compiled kernels on disk, and what `spmv tune` found.

use std::io::{self, Write};
use std::time::SystemTime;

use clap::Subcommand;
use serde::Serialize;
use spmv_runtime::cache::{DiskCache, EntryInfo, SweepReport};
use spmv_runtime::codegen::KernelConfig;
use spmv_runtime::tuning::Choice;

use crate::failure::{Failure, Kind};
use crate::kernel::{ResourceFacts, config_text};
use crate::quantity;
use crate::report::{OutputArgs, Report, fact, print_table, table};

/// Look after the cache of compiled kernels
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Cache {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
Examples:
  spmv cache ls
  spmv cache gc --max-bytes 64M
  SPMV_CACHE_DIR=/elsewhere spmv cache path

JSON (--json), one object:
  path          folder, max_bytes, problem
  ls            folder, bytes, entries (key, path, bytes, last_used_s, arch, nvrtc_version,
                kernel, resources), choices of `spmv tune` (fingerprint, operation, device, version,
                kernel, product, unit)
  verify        folder, right, bytes, damaged (path, reason), which are deleted
  gc and clear  folder, removed_entries, removed_temporaries, removed_bytes, kept_entries,
                kept_bytes";

#[derive(Clone, Copy, Debug, Subcommand)]
enum Action {
    /// Print the folder
    Path,
    /// List the kernels, the most recently used first, and what `spmv tune` found
    Ls,
    /// Read every kernel and choice in full and delete damaged ones
    Verify,
    /// Delete the least recently used kernels and choices until the rest is small enough
    Gc {
        /// What may stay: 67108864, 64M, 1G; without it, the size of the cache
        #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = quantity::parse_bytes)]
        max_bytes: Option<u64>,
    },
    /// Delete all kernels and choices
    Clear,
}

impl Cache {
    pub fn run(self) -> Result<(), Failure> {
        let cache = DiskCache::from_env();
        let status = cache.status();
        let folder = status.folder.as_ref().map(|folder| folder.display().to_string());
        // As JSON the answer says that there is none; a shell would take a sentence for a path.
        if let Action::Path = self.action
            && (folder.is_some() || self.output.json)
        {
            let problem = status.problem.map(|problem| problem.to_string());
            return self.output.print(&PathReport { folder, max_bytes: status.max_bytes, problem });
        }
        let Some(folder) = folder else {
            return Err(match status.problem {
                Some(problem) => problem.into(),
                None => Failure::new(Kind::Environment, "there is no cache: SPMV_CACHE_DIR turns it off")
                    .help("set SPMV_CACHE_DIR to a folder, or unset it"),
            });
        };
        match self.action {
            Action::Path => unreachable!("answered above"),
            Action::Ls => {
                let entries: Vec<_> = cache.entries()?.into_iter().map(EntryFacts::from).collect();
                let bytes = entries.iter().map(|entry| entry.bytes).sum();
                let choices = Choice::kept(&cache)?.iter().map(ChoiceFacts::from).collect();
                self.output.print(&ListReport { folder, entries, bytes, choices })
            }
            Action::Verify => {
                let report = cache.verify()?;
                let damaged = report.damaged.iter().map(|(path, reason)| DamagedFacts {
                    path: path.display().to_string(),
                    reason: reason.to_string(),
                });
                let damaged = damaged.collect();
                self.output.print(&VerifyFacts { folder, right: report.ok, bytes: report.bytes, damaged })
            }
            Action::Gc { max_bytes } => {
                let swept = cache.gc(max_bytes.unwrap_or(status.max_bytes))?;
                self.output.print(&SweepFacts::new(folder, swept))
            }
            Action::Clear => self.output.print(&SweepFacts::new(folder, cache.clear()?)),
        }
    }
}

#[derive(Debug, Serialize)]
struct PathReport {
    folder: Option<String>,
    max_bytes: u64,
    problem: Option<String>,
}

impl Report for PathReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.folder.iter().try_for_each(|folder| writeln!(out, "{folder}"))
    }
}

#[derive(Debug, Serialize)]
struct ListReport {
    folder: String,
    entries: Vec<EntryFacts>,
    bytes: u64,
    choices: Vec<ChoiceFacts>,
}

#[derive(Debug, Serialize)]
struct ChoiceFacts {
    fingerprint: String,
    operation: &'static str,
    device: String,
    version: String,
    kernel: String,
    product: f64,
    unit: &'static str,
}

impl From<&Choice> for ChoiceFacts {
    fn from(choice: &Choice) -> ChoiceFacts {
        ChoiceFacts {
            fingerprint: choice.question.fingerprint.to_string(),
            operation: choice.question.operation.name(),
            device: choice.question.device.clone(),
            version: choice.question.version.clone(),
            kernel: config_text(&choice.config),
            product: choice.product,
            unit: choice.unit.name(),
        }
    }
}

#[derive(Debug, Serialize)]
struct EntryFacts {
    key: String,
    path: String,
    bytes: u64,
    /// Seconds since 1970.
    last_used_s: u64,
    arch: String,
    nvrtc_version: String,
    kernel: String,
    resources: Vec<ResourceFacts>,
}

impl From<EntryInfo> for EntryFacts {
    fn from(entry: EntryInfo) -> EntryFacts {
        let (major, minor) = entry.nvrtc_version;
        EntryFacts {
            key: entry.key.to_string(),
            path: entry.path.display().to_string(),
            bytes: entry.bytes,
            last_used_s: entry
                .last_used
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
            arch: entry.arch,
            nvrtc_version: format!("{major}.{minor}"),
            kernel: kernel(&entry.title),
            resources: entry.kernels.iter().map(ResourceFacts::from).collect(),
        }
    }
}

/// The first line of a source names its configuration; what is usual is left out.
fn kernel(title: &str) -> String {
    let title = title.trim_start_matches("//").trim();
    let mut words = title.split(' ');
    let algorithm = words.next().unwrap_or_default();
    let config = KernelConfig::from_settings(algorithm, words.filter_map(|word| word.split_once('=')));
    config.map_or_else(|_| title.to_owned(), |config| config_text(&config))
}

impl Report for ListReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.entries.is_empty() {
            let mut table = table(&["key", "size", "used", "for", "NVRTC", "kernel"]);
            for entry in &self.entries {
                table.add_row([
                    &entry.key[..12],
                    &quantity::bytes(entry.bytes),
                    &age(entry.last_used_s),
                    &entry.arch,
                    &entry.nvrtc_version,
                    &entry.kernel,
                ]);
            }
            print_table(out, table)?;
        }
        let (entries, bytes) = (quantity::count(self.entries.len()), quantity::bytes(self.bytes));
        writeln!(out, "{entries} kernels, {bytes} in {}", self.folder)?;
        if self.choices.is_empty() {
            return Ok(());
        }
        let mut table = table(&["structure", "operation", "device", "a product", "kernel"]);
        for choice in &self.choices {
            table.add_row([
                &choice.fingerprint[..12],
                choice.operation,
                &choice.device,
                &format!("{} {}", quantity::significant(choice.product), choice.unit),
                &choice.kernel,
            ]);
        }
        writeln!(out)?;
        print_table(out, table)?;
        writeln!(out, "{} choices of spmv tune", quantity::count(self.choices.len()))
    }
}

fn age(then_s: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    match now.saturating_sub(then_s) {
        0..60 => "now".to_owned(),
        seconds @ 60..3600 => format!("{} min ago", seconds / 60),
        seconds @ 3600..86400 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} d ago", seconds / 86400),
    }
}

#[derive(Debug, Serialize)]
struct VerifyFacts {
    folder: String,
    right: usize,
    bytes: u64,
    damaged: Vec<DamagedFacts>,
}

#[derive(Debug, Serialize)]
struct DamagedFacts {
    path: String,
    reason: String,
}

impl Report for VerifyFacts {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for DamagedFacts { path, reason } in &self.damaged {
            writeln!(out, "deleted {path}: {reason}")?;
        }
        let (right, damaged) = (quantity::count(self.right), quantity::count(self.damaged.len()));
        writeln!(out, "{right} entries are right ({}), {damaged} were damaged", quantity::bytes(self.bytes))
    }
}

#[derive(Debug, Serialize)]
struct SweepFacts {
    folder: String,
    removed_entries: usize,
    removed_temporaries: usize,
    removed_bytes: u64,
    kept_entries: usize,
    kept_bytes: u64,
}

impl SweepFacts {
    fn new(folder: String, swept: SweepReport) -> SweepFacts {
        SweepFacts {
            folder,
            removed_entries: swept.removed_entries,
            removed_temporaries: swept.removed_temporaries,
            removed_bytes: swept.removed_bytes,
            kept_entries: swept.kept_entries,
            kept_bytes: swept.kept_bytes,
        }
    }
}

impl Report for SweepFacts {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let [removed, left_over, kept] =
            [self.removed_entries, self.removed_temporaries, self.kept_entries].map(quantity::count);
        let [removed_bytes, kept_bytes] = [self.removed_bytes, self.kept_bytes].map(quantity::bytes);
        fact(out, "deleted", format_args!("{removed} entries and {left_over} leftovers, {removed_bytes}"))?;
        fact(out, "left", format_args!("{kept} entries, {kept_bytes}, in {}", self.folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_shortened() {
        let config = KernelConfig::named("csr_vector").unwrap().build().unwrap();
        assert_eq!(kernel(&format!("// {config}")), config_text(&config));
        assert_eq!(kernel("// vector threads_per_block=256 x=f32"), "vector threads_per_block=256 x=f32");
    }
}
