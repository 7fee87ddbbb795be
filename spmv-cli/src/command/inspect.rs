//! `spmv inspect`: what a matrix is like.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use spmv_runtime::codegen::{IndexType, KernelConfig, Operation, StorageFormat, ValueKind, ValueType};
use spmv_runtime::matrix::format::{Fit, FormatKind};
use spmv_runtime::matrix::{Complex64, CsrMatrix, Entry, Statistics, Value, features};
use spmv_runtime::tuning::Question;
use spmv_runtime::{Constraints, DeviceMatrix, Element, Fingerprint};

use crate::choice::{self, device_of_run, l2_bytes};
use crate::failure::Failure;
use crate::files;
use crate::kernel::config_text;
use crate::memory;
use crate::quantity;
use crate::reading::{self, Header, MatrixFacts};
use crate::report::{OutputArgs, Report, fact, print_table, table};
use crate::settings::SettingArgs;

/// Tell what a matrix is like, what each layout takes, and which kernel `spmv run` would choose
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Inspect {
    /// A Matrix Market file, plain or compressed with gzip, or a .npz file of SciPy's; - is standard input
    #[arg(value_name = "A.mtx", value_parser = files::input())]
    matrix: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
Example:
  spmv inspect A.mtx

JSON (--json), one object:
  path, format, field, symmetry, num_rows, num_cols, nnz, density, empty_rows, row_nnz_min,
  row_nnz_mean, row_nnz_max, row_nnz_std, row_nnz_histogram (rows with 0 entries, 1, 2-3, 4-7,
  8-15, ...), lower_bandwidth, upper_bandwidth, diagonal_entries, stored_zeros, sorted_columns,
  adjacent_duplicates, bytes, read_ms, csr_bytes_f32, csr_bytes_f64, csr_bytes_c32,
  csr_bytes_c64 (null where values are real), triangle_bytes_f32, triangle_bytes_f64 (null where
  values are complex, or the file does not say that the matrix is symmetric, skew-symmetric or
  hermitian), triangle_bytes_c32, triangle_bytes_c64 (the same for complex values), chosen (config,
  reason), layouts (name, slots, fill, bytes_f32, bytes_f64, bytes_c32, bytes_c64, fit: suits; pads
  beyond half as much again as CSR with f32 or c32 values; refused where it would be mostly fill)";

#[derive(Debug, Serialize)]
struct InspectReport {
    #[serde(flatten)]
    matrix: MatrixFacts,
    read_ms: f64,
    csr_bytes_f32: u64,
    csr_bytes_f64: u64,
    /// Where values are complex.
    csr_bytes_c32: Option<u64>,
    csr_bytes_c64: Option<u64>,
    /// The lower triangle in CSR, where the file says that the matrix is symmetric, skew-symmetric or Hermitian.
    triangle_bytes_f32: Option<u64>,
    triangle_bytes_f64: Option<u64>,
    triangle_bytes_c32: Option<u64>,
    triangle_bytes_c64: Option<u64>,
    chosen: ChosenFacts,
    layouts: Vec<LayoutFacts>,
}

#[derive(Debug, Serialize)]
struct LayoutFacts {
    name: &'static str,
    slots: u64,
    fill: u64,
    bytes_f32: u64,
    bytes_f64: u64,
    /// Where values are complex.
    bytes_c32: Option<u64>,
    bytes_c64: Option<u64>,
    fit: &'static str,
}

#[derive(Debug, Serialize)]
struct ChosenFacts {
    config: String,
    reason: String,
}

impl Inspect {
    pub fn run(self) -> Result<(), Failure> {
        let header = reading::header(&self.matrix)?;
        memory::check(header.as_ref(), memory::READING_ROW_BYTES, memory::READING_ROW_BYTES)?;
        let report = match reading::is_complex(header.as_ref()) {
            true => self.look::<Complex64, Complex64>(header)?,
            false => self.look::<f64, f32>(header)?,
        };
        self.output.print(&report)
    }

    /// Values are read as `V`, and a kernel is chosen for them as `Usual`, as `spmv run` reads them.
    fn look<V: Element, Usual: Element>(&self, header: Option<Header>) -> Result<InspectReport, Failure> {
        let (a, read_ms) = reading::read::<V, u64>(&self.matrix)?;
        let offset = reading::offset_type(header.as_ref());
        let bytes = |value| DeviceMatrix::predict_bytes(a.num_rows(), a.nnz(), value, offset, IndexType::U32);
        let statistics = Statistics::of(&a);
        let of_complex = |value: ValueType| V::COMPLEX.then(|| bytes(value));
        let of_triangle = |value: ValueType| {
            let is_complex = value.kind() == ValueKind::Complex;
            let header = header.as_ref().filter(|_| V::COMPLEX == is_complex)?;
            let has_triangle = header.symmetry.is_some_and(reading::has_triangle);
            let nnz = (statistics.nnz + statistics.diagonal_entries) / 2;
            has_triangle
                .then(|| DeviceMatrix::predict_bytes(a.num_rows(), nnz, value, offset, IndexType::U32))
        };
        let value = reading::usual_value(header.as_ref());
        let types = KernelConfig::named("csr_vector")?.value(value).offset(offset).build()?.types();
        let constraints = Constraints::default();
        let device = device_of_run();
        let operation = Operation::NonTranspose;
        let usual = |part: V::Real| <Usual::Real as Value>::from_f64(part.to_f64());
        let features =
            features(&a.map_values(|value| Usual::from_parts(usual(value.re()), usual(value.im()))));
        let tuned = device.as_ref().and_then(|device| {
            let fingerprint = Fingerprint::of(&a, offset);
            let storage = StorageFormat::Csr;
            let question = Question::of(device, fingerprint, storage, operation, types, &constraints);
            choice::tuned_for(device, &question, &features)
        });
        let chosen = match tuned {
            Some((choice, reason)) => ChosenFacts { config: config_text(&choice.config), reason },
            None => {
                let (l2_bytes, settings) = (l2_bytes(device.as_ref()), SettingArgs::default());
                let found = choice::choose(operation, &features, types, l2_bytes, &constraints, &settings)?;
                ChosenFacts { config: config_text(&found[0].config), reason: found[0].reason() }
            }
        };
        Ok(InspectReport {
            read_ms,
            csr_bytes_f32: bytes(ValueType::F32),
            csr_bytes_f64: bytes(ValueType::F64),
            csr_bytes_c32: of_complex(ValueType::C32),
            csr_bytes_c64: of_complex(ValueType::C64),
            triangle_bytes_f32: of_triangle(ValueType::F32),
            triangle_bytes_f64: of_triangle(ValueType::F64),
            triangle_bytes_c32: of_triangle(ValueType::C32),
            triangle_bytes_c64: of_triangle(ValueType::C64),
            chosen,
            layouts: layouts(&a, offset)?,
            matrix: MatrixFacts::new(self.matrix.display().to_string(), header.as_ref(), statistics),
        })
    }
}

/// What the matrix takes in each layout, with offsets that suffice.
fn layouts<V: Entry>(a: &CsrMatrix<V, u64>, offset: IndexType) -> Result<Vec<LayoutFacts>, Failure> {
    let narrow = if V::COMPLEX { ValueType::C32 } else { ValueType::F32 };
    let csr_bytes = DeviceMatrix::predict_bytes(a.num_rows(), a.nnz(), narrow, offset, IndexType::U32);
    let facts = |kind: &FormatKind| {
        let footprint = kind.predict(a)?;
        let bytes = |value: ValueType| footprint.bytes(value.size(), offset.size());
        Ok(LayoutFacts {
            name: kind.name(),
            slots: footprint.slots,
            fill: footprint.fill(),
            bytes_f32: bytes(ValueType::F32),
            bytes_f64: bytes(ValueType::F64),
            bytes_c32: V::COMPLEX.then(|| bytes(ValueType::C32)),
            bytes_c64: V::COMPLEX.then(|| bytes(ValueType::C64)),
            fit: match footprint.fit(narrow.size(), offset.size(), csr_bytes) {
                Fit::Suits => "suits",
                Fit::Pads => "pads",
                Fit::Refused => "refused",
            },
        })
    };
    FormatKind::ALL.iter().map(facts).collect()
}

impl Report for InspectReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.matrix.text(out)?;
        statistics_text(out, &self.matrix.statistics)?;
        let (names, csr, triangle) = match (self.csr_bytes_c32, self.csr_bytes_c64) {
            (Some(c32), Some(c64)) => {
                (["c32", "c64"], [c32, c64], [self.triangle_bytes_c32, self.triangle_bytes_c64])
            }
            _ => (
                ["f32", "f64"],
                [self.csr_bytes_f32, self.csr_bytes_f64],
                [self.triangle_bytes_f32, self.triangle_bytes_f64],
            ),
        };
        let told = |bytes: [u64; 2]| {
            let [narrow, wide] = bytes.map(quantity::bytes);
            format!("{narrow} with {} values, {wide} with {}", names[0], names[1])
        };
        fact(out, "as CSR", told(csr))?;
        if let [Some(narrow), Some(wide)] = triangle {
            let hint = "`run --storage symmetric` holds no more, and refuses a triangle that is none";
            fact(out, "one triangle", format_args!("{}: {hint}", told([narrow, wide])))?;
        }
        fact(out, "read in", quantity::milliseconds(self.read_ms))?;
        fact(out, "run chooses", &self.chosen.config)?;
        fact(out, "", format_args!("because {}", self.chosen.reason))?;
        writeln!(out)?;
        histogram_text(out, &self.matrix.statistics)?;
        writeln!(out)?;
        self.layouts_text(out)
    }
}

impl InspectReport {
    fn layouts_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let is_complex = self.csr_bytes_c32.is_some();
        let [narrow, wide] = if is_complex { ["c32", "c64"] } else { ["f32", "f64"] };
        let mut rows = table(&["layout", narrow, wide, "fill", ""]);
        for layout in &self.layouts {
            let fill = match layout.fill {
                0 => "none".to_owned(),
                fill => format!("{} %", quantity::significant(fill as f64 / layout.slots as f64 * 100.0)),
            };
            let bytes = match (layout.bytes_c32, layout.bytes_c64) {
                (Some(narrow), Some(wide)) => [narrow, wide],
                _ => [layout.bytes_f32, layout.bytes_f64],
            };
            let [narrow, wide] = bytes.map(quantity::bytes);
            rows.add_row([layout.name, &narrow, &wide, &fill, layout.fit]);
        }
        print_table(out, rows)
    }
}

fn statistics_text(out: &mut dyn Write, statistics: &Statistics) -> io::Result<()> {
    let row_nnz_std = quantity::significant(statistics.row_nnz_std);
    fact(out, "row lengths", format_args!("standard deviation {row_nnz_std}"))?;
    fact(out, "density", quantity::significant(statistics.density))?;
    let [lower, upper, diagonal] =
        [statistics.lower_bandwidth, statistics.upper_bandwidth, statistics.diagonal_entries]
            .map(quantity::count);
    fact(
        out,
        "bandwidth",
        format_args!("{lower} below the diagonal, {upper} above, {diagonal} entries on it"),
    )?;
    let [zeros, duplicates] = [statistics.stored_zeros, statistics.adjacent_duplicates].map(quantity::count);
    fact(out, "stored zeros", zeros)?;
    match statistics.sorted_columns {
        true => fact(out, "duplicates", duplicates),
        false => fact(out, "duplicates", format_args!("{duplicates} at least; columns are in no order")),
    }
}

/// How many rows have how many entries, as bars.
pub fn histogram_text(out: &mut dyn Write, statistics: &Statistics) -> io::Result<()> {
    const WIDTH: f64 = 50.0;
    let most = statistics.row_nnz_histogram.iter().copied().max().unwrap_or(0).max(1);
    writeln!(out, "{:>14}  {:>11}", "entries a row", "rows")?;
    for (bin, &rows) in statistics.row_nnz_histogram.iter().enumerate() {
        // A bar is never invisible where there is a row.
        let bar = "#".repeat((rows as f64 / most as f64 * WIDTH).ceil() as usize);
        let line = format!("{:>14}  {:>11}  {bar}", lengths(bin), quantity::count(rows));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Row lengths of a bin: 0, 1, 2-3, 4-7 and so on.
fn lengths(bin: usize) -> String {
    match bin {
        0 | 1 => bin.to_string(),
        _ => format!("{}-{}", 1u64 << (bin - 1), (1u128 << bin) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_names() {
        assert_eq!([0, 1, 2, 3, 10].map(lengths)[..], ["0", "1", "2-3", "4-7", "512-1023"]);
        assert_eq!(lengths(64), "9223372036854775808-18446744073709551615");
    }
}
