//! Figures of a benchmark: printed as a table, written with where, when and with what they were measured.

#![allow(dead_code, reason = "each benchmark uses its part")]

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use spmv_runtime::{Device, Nvrtc};

/// One quantity: its samples and what they must not exceed.
pub struct Row {
    pub what: &'static str,
    median: f64,
    largest: f64,
    samples: usize,
    limit: f64,
}

impl Row {
    pub fn of(what: &'static str, mut samples: Vec<Duration>, limit: f64) -> Row {
        samples.sort();
        let (median, largest) = (samples[samples.len() / 2], samples[samples.len() - 1]);
        Row {
            what,
            median: median.as_secs_f64(),
            largest: largest.as_secs_f64(),
            samples: samples.len(),
            limit,
        }
    }

    /// Whether the median keeps the limit.
    pub fn met(&self) -> bool {
        self.median < self.limit
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s.is_infinite() => "-".into(),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.3} us", s * 1e6),
    }
}

/// Prints the rows.
pub fn table(title: &str, rows: &[Row]) {
    println!("{title}");
    println!("{:<50} {:>12} {:>12} {:>12} {:>8}", "", "median", "largest", "limit", "samples");
    for row in rows {
        println!(
            "{:<50} {:>12} {:>12} {:>12} {:>8}{}",
            row.what,
            duration(row.median),
            duration(row.largest),
            duration(row.limit),
            row.samples,
            if row.met() { "" } else { "  MISSED" }
        );
    }
}

/// The folder behind `--record`.
fn folder() -> Option<PathBuf> {
    std::env::args().skip_while(|argument| argument != "--record").nth(1).map(PathBuf::from)
}

fn write(path: &std::path::Path, record: &serde_json::Value) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(path.parent().expect("the path has a folder"))?;
    std::fs::write(path, format!("{record:#}\n"))?;
    println!("recorded in {}", path.display());
    Ok(())
}

/// With `--record FOLDER`, writes `FOLDER/host/<name>.json`.
pub fn write_host_if_asked(
    name: &str,
    figures: &[serde_json::Value],
) -> Result<(), Box<dyn std::error::Error>> {
    let Some(folder) = folder() else { return Ok(()) };
    let record = serde_json::json!({
        "benchmark": name,
        "date": humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        "commit": commit(),
        "nvrtc_version": Nvrtc::find()?.version().to_string(),
        "cpu": cpu(),
        "figures": figures,
    });
    write(&folder.join("host").join(format!("{name}.json")), &record)
}

/// With `--record FOLDER`, writes `FOLDER/<gpu>/<name>.json`.
pub fn write_if_asked(name: &str, device: &Device, rows: &[Row]) -> Result<(), Box<dyn std::error::Error>> {
    let Some(folder) = folder() else { return Ok(()) };
    let gpu = device.properties().name.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let figures = rows.iter().map(|row| {
        serde_json::json!({
            "what": row.what,
            "median_seconds": row.median,
            "largest_seconds": row.largest,
            "samples": row.samples,
            "limit_seconds": if row.limit.is_finite() { Some(row.limit) } else { None },
            "met": row.met(),
        })
    });
    let mut record = head(name, device)?;
    record["figures"] = figures.collect::<Vec<_>>().into();
    write(&folder.join(gpu).join(format!("{name}.json")), &record)
}

/// Where, when and with what a benchmark measures.
pub fn head(name: &str, device: &Device) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let properties = device.properties();
    Ok(serde_json::json!({
        "benchmark": name,
        "date": humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        "commit": commit(),
        "gpu": properties.name,
        "arch": properties.arch,
        "driver_cuda_version": format!("{}.{}", properties.driver_version.0, properties.driver_version.1),
        "nvrtc_version": Nvrtc::find()?.version().to_string(),
        "cpu": cpu(),
    }))
}

/// `SPMV_COMMIT` where a binary travels without its repository, else what git says of the sources, with `-dirty` behind it where they
/// are others than those of the commit.
fn commit() -> String {
    if let Ok(commit) = std::env::var("SPMV_COMMIT") {
        return commit;
    }
    let describe = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"];
    let git =
        std::process::Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR")]).args(describe).output();
    let text = git.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".into())
}

fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| "unknown".into(), |(_, name)| name.to_owned())
}
