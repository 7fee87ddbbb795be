//! `spmv plot`: pictures of records and matrices, and the report with all of them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use spmv_bench::plot::{self, Gallery, Heat, Picture, PlotError};
use spmv_bench::record::Record;
use spmv_bench::{join, report};
use spmv_runtime::codegen::IndexType;
use spmv_runtime::matrix::{Complex64, Entry, Offset};

use crate::failure::{Failure, Kind};
use crate::files;
use crate::report::{OutputArgs, Report};
use crate::{memory, reading, records};

/// Bytes of memory that drawing takes for each row.
const ROW_BYTES: u64 = 8;

/// Draw records as SVG files, or as one HTML report that needs nothing else
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("written").args(["out", "report"]).multiple(true).required(true),
    group = clap::ArgGroup::new("drawn").args(["records", "matrices"]).multiple(true).required(true),
    after_help = "\
Pictures of records, for each value type and operation:
  throughput   GFLOP/s over nonzeros a row: ours by algorithm, the best of cuSPARSE, the CPU
  roofline     GFLOP/s over flop per byte, under the measured copy roof
  profile      on which share of the matrices a contender is within a factor of the fastest
  speed_up     how the speed-ups over the best cuSPARSE path are distributed, for each operation
  heat         time by one or two parameters of a contender, where --heat asks for it
  density      where a matrix has entries, where --matrix asks for it

Contenders count with their best parameters on each matrix; wrong results count for nobody.
Pictures that the records have no figures for are left out, and that is said.

Examples:
  spmv plot record.csv --output pictures
  spmv plot plain.csv transpose.csv --report report.html
  spmv plot record.csv --output pictures --heat ours:light_vector,threads_per_vector,rows_per_fetch
  spmv plot --matrix A.mtx --output pictures

JSON (--json), one object:
  written, left_out"
)]
pub struct Plot {
    /// Records of the same GPU, drawn together
    #[arg(value_name = "RECORD", value_parser = files::input())]
    records: Vec<PathBuf>,
    /// Write an SVG file for each picture into this folder; it is made where there is none
    #[arg(short = 'o', long = "output", value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write everything into one HTML file: pictures, means, a line for each matrix, losses, failures; needs a record. - is
    /// standard output, where nothing else goes then
    #[arg(long, value_name = "FILE", value_parser = files::output())]
    report: Option<PathBuf>,
    /// Draw the time of a contender by one parameter, or by two; may be repeated
    #[arg(long, value_name = "CONTENDER,X[,Y]")]
    heat: Vec<Heat>,
    /// Draw where a matrix has entries; may be repeated
    #[arg(long = "matrix", value_name = "A.mtx", value_parser = files::input())]
    matrices: Vec<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Serialize)]
struct PlotReport {
    written: Vec<String>,
    left_out: Vec<String>,
}

impl Plot {
    pub fn run(self) -> Result<(), Failure> {
        let asked = [("--report", self.report.is_some()), ("--heat", !self.heat.is_empty())];
        if let (true, Some((option, _))) =
            (self.records.is_empty(), asked.iter().find(|(_, is_given)| *is_given))
        {
            let message = format!("{option} tells what was measured, so it needs a record");
            return Err(Failure::new(Kind::Usage, message)
                .help("name one that `spmv bench --csv` wrote; with --output, --matrix needs none"));
        }
        if let Some(path) = &self.report {
            files::refuse_inputs("--report", path, self.records.iter().chain(&self.matrices))?;
        }
        let record = if self.records.is_empty() { None } else { Some(self.record()?) };
        let mut gallery = record.as_ref().map_or_else(Gallery::default, plot::gallery);
        for heat in &self.heat {
            let record = record.as_ref().expect("--heat comes with records");
            gallery.pictures.push(plot::heat(record, heat)?);
        }
        for path in &self.matrices {
            gallery.pictures.push(density(path)?);
        }
        tell_apart(&mut gallery.pictures);
        let mut written = Vec::new();
        if let Some(folder) = &self.out {
            if gallery.pictures.is_empty() {
                return Err(Failure::new(
                    Kind::Input,
                    gallery.left_out.first().map_or_else(
                        || "the records have no rows; there is nothing to draw".to_owned(),
                        Clone::clone,
                    ),
                ));
            }
            files::prepare_folder(folder).map_err(|error| Failure::unwritable(folder, error))?;
            for picture in &gallery.pictures {
                written.push(write(&folder.join(format!("{}.svg", picture.name)), &picture.svg)?);
            }
        }
        if let (Some(path), Some(record)) = (&self.report, &record) {
            written.push(write(path, &report::html(record, &gallery))?);
        }
        let takes_stdout = self.report.as_deref().is_some_and(files::is_stdout);
        self.output.print_beside(takes_stdout, &PlotReport { written, left_out: gallery.left_out })
    }

    fn record(&self) -> Result<Record, Failure> {
        let records = self.records.iter().map(|path| records::open(path)).collect::<Result<Vec<_>, _>>()?;
        join(records).map_err(|error| Failure::new(Kind::Input, error.to_string()))
    }
}

/// Pictures of the same name would be one file.
fn tell_apart(pictures: &mut [Picture]) {
    for index in 0..pictures.len() {
        let name = pictures[index].name.clone();
        let mut number = 1;
        while pictures[..index].iter().any(|before| before.name == pictures[index].name) {
            number += 1;
            pictures[index].name = format!("{name}-{number}");
        }
    }
}

fn write(path: &Path, text: &str) -> Result<String, Failure> {
    files::write(path, text.as_bytes()).map_err(|error| Failure::unwritable(path, error))?;
    Ok(path.display().to_string())
}

fn density(path: &Path) -> Result<Picture, Failure> {
    let header = reading::header(path)?;
    memory::check(header.as_ref(), ROW_BYTES, 0)?;
    match (reading::is_complex(header.as_ref()), reading::offset_type(header.as_ref())) {
        (false, IndexType::U32) => density_of::<f32, u32>(path),
        (false, _) => density_of::<f32, u64>(path),
        (true, _) => density_of::<Complex64, u64>(path),
    }
}

fn density_of<V: Entry, O: Offset>(path: &Path) -> Result<Picture, Failure> {
    let (matrix, _) = reading::read::<V, O>(path)?;
    let name = path
        .file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    Ok(plot::density(&name, &matrix)?)
}

impl From<PlotError> for Failure {
    fn from(error: PlotError) -> Failure {
        let kind = match error {
            PlotError::Contender { .. } | PlotError::Parameter { .. } | PlotError::HeatRequest(_) => {
                Kind::Usage
            }
            _ => Kind::Input,
        };
        Failure::new(kind, error.to_string())
    }
}

impl Report for PlotReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.written.iter().try_for_each(|path| writeln!(out, "wrote {path}"))?;
        self.left_out.iter().try_for_each(|why| writeln!(out, "left out: {why}"))
    }
}
