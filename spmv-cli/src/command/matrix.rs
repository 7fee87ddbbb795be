//! `spmv matrix`: makes matrices of the usual classes and converts files.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use spmv_runtime::codegen::ValueType;
use spmv_runtime::matrix::generate::{self, ClassSpec, Generator, Values};
use spmv_runtime::matrix::{
    Complex32, Complex64, CsrMatrix, Entry, Statistics, Value, bf16, f16, matrix_market, scipy,
};

use crate::failure::{Failure, Kind};
use crate::files;
use crate::memory;
use crate::progress::Progress;
use crate::quantity;
use crate::reading::{self, MatrixFacts};
use crate::report::{OutputArgs, Report, fact, print_table, table};
use crate::settings::{check_repeated, key_and_value, real_types, value_types};

/// Make a matrix of a usual class, or convert a file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  spmv matrix classes
  spmv matrix make stencil_27 --set nx=64 --set ny=64 --set nz=64 -o stencil.mtx.gz
  spmv matrix convert symmetric.mtx general.mtx.gz")]
pub struct Matrix {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Make(Make),
    Convert(Convert),
    Classes(Classes),
}

/// Make a matrix of a class, the same for a seed on every machine
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  spmv matrix make stencil_5 --set nx=500 --set ny=500 -o stencil.mtx
  spmv matrix make rmat --set scale=18 --seed 7 --value f64 -o rmat.mtx.gz

JSON (--json), one object:
  class, seed, values, make_ms, write_ms, file_bytes, matrix (as `spmv inspect`)")]
struct Make {
    /// The class (`spmv matrix classes` lists them)
    #[arg(value_parser = class_names())]
    class: String,
    /// A parameter of the class; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    settings: Vec<(String, String)>,
    /// The file: as SciPy reads it where its name ends in .npz, compressed with gzip where it ends in .gz; - is standard
    /// output
    #[arg(short = 'o', long = "output", value_name = "FILE", value_parser = files::output())]
    file: PathBuf,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = quantity::parse_whole::<u64>)]
    seed: u64,
    /// What the entries are: random, single (random numbers that f32 holds), ones, integers from -4 to 4, or laplacian (-1
    /// beside the diagonal, on it the number of these in the longest row: definite where the structure is symmetric). Without
    /// signs integers from 1 to 4, and 1 beside the diagonal
    #[arg(long, default_value = "random", value_parser = PossibleValuesParser::new(Values::NAMES.map(|(name, _)| name)))]
    values: String,
    /// Type of the entries
    #[arg(long, value_name = "TYPE", default_value = "f64", value_parser = real_types())]
    value: ValueType,
    #[command(flatten)]
    output: OutputArgs,
}

/// Read a matrix and write it in coordinate format with every entry, mirrored ones too
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  spmv matrix convert symmetric.mtx general.mtx.gz
  spmv matrix convert A.mtx.gz A.mtx --value f32
  spmv matrix convert A.npz A.mtx

JSON (--json), one object:
  written_to, read_ms, write_ms, file_bytes, matrix (as `spmv inspect`)")]
struct Convert {
    /// The file to read: Matrix Market, plain or compressed with gzip, or a .npz file of SciPy's; - is standard input
    #[arg(value_name = "IN", value_parser = files::input())]
    input: PathBuf,
    /// The file to write: as SciPy reads it where its name ends in .npz, compressed with gzip where it ends in .gz; - is
    /// standard output
    #[arg(value_name = "OUT", value_parser = files::output())]
    file: PathBuf,
    /// Type that entries are rounded to [default: f64, c64 of complex matrices, i64 of whole numbers]
    #[arg(long, value_name = "TYPE", value_parser = value_types())]
    value: Option<ValueType>,
    #[command(flatten)]
    output: OutputArgs,
}

/// List the classes with their parameters
#[derive(Debug, clap::Args)]
#[command(after_help = "\
JSON (--json), one object:
  classes (name, summary, parameters (name, about, default, min, max, whole))")]
struct Classes {
    /// The class to list, or all
    #[arg(value_parser = class_names())]
    name: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

fn class_names() -> PossibleValuesParser {
    PossibleValuesParser::new(generate::ALL.iter().map(|class| class.name))
}

impl Matrix {
    pub fn json(&self) -> bool {
        match &self.action {
            Action::Make(make) => make.output.json,
            Action::Convert(convert) => convert.output.json,
            Action::Classes(classes) => classes.output.json,
        }
    }

    pub fn run(self) -> Result<(), Failure> {
        match self.action {
            Action::Make(make) => match make.value {
                ValueType::F16 => make.run::<f16>(),
                ValueType::Bf16 => make.run::<bf16>(),
                ValueType::F32 => make.run::<f32>(),
                ValueType::I8 => make.run::<i8>(),
                ValueType::I32 => make.run::<i32>(),
                ValueType::I64 => make.run::<i64>(),
                ValueType::U32 => make.run::<u32>(),
                ValueType::Bool => make.run::<bool>(),
                _ => make.run::<f64>(),
            },
            Action::Convert(convert) => {
                check_writable(&convert.file)?;
                let header = reading::header(&convert.input)?;
                memory::check(header.as_ref(), memory::READING_ROW_BYTES, 0)?;
                let is_complex = reading::is_complex(header.as_ref());
                let usual = match header.as_ref().is_some_and(|header| header.whole) {
                    _ if is_complex => ValueType::C64,
                    true => ValueType::I64,
                    false => ValueType::F64,
                };
                match convert.value.unwrap_or(usual) {
                    ValueType::C32 => convert.run::<Complex32>(),
                    ValueType::C64 => convert.run::<Complex64>(),
                    value if is_complex => {
                        let message = format!("the matrix is complex, and {value} has no imaginary part");
                        Err(Failure::new(Kind::Usage, message).help("--value takes c32 and c64 here"))
                    }
                    ValueType::F16 => convert.run::<f16>(),
                    ValueType::Bf16 => convert.run::<bf16>(),
                    ValueType::F32 => convert.run::<f32>(),
                    ValueType::I8 => convert.run::<i8>(),
                    ValueType::I32 => convert.run::<i32>(),
                    ValueType::I64 => convert.run::<i64>(),
                    ValueType::U32 => convert.run::<u32>(),
                    ValueType::Bool => convert.run::<bool>(),
                    _ => convert.run::<f64>(),
                }
            }
            Action::Classes(classes) => classes.run(),
        }
    }
}

#[derive(Debug, Serialize)]
struct MakeReport {
    class: String,
    seed: u64,
    values: String,
    make_ms: f64,
    write_ms: f64,
    file_bytes: Option<u64>,
    matrix: MatrixFacts,
}

impl Make {
    fn run<V: Value>(self) -> Result<(), Failure> {
        check_repeated(self.settings.iter().map(|(key, _)| key.as_str()).collect())?;
        check_writable(&self.file)?;
        let mut generator = Generator::new(&self.class)?.seed(self.seed).values(self.values.parse()?);
        for (key, value) in &self.settings {
            generator = generator.set_text(key, value)?;
        }
        if let Some(bytes) = memory::available() {
            generator = generator.max_bytes(bytes);
        }
        let started = Instant::now();
        let making = Progress::start(format!("making {}", self.class));
        let a: CsrMatrix<V, u64> = generator.generate()?;
        drop(making);
        let make_ms = quantity::in_ms(started.elapsed());
        let (write_ms, file_bytes) = write(&self.file, &a)?;
        let path = self.file.display().to_string();
        let matrix = MatrixFacts::new(path, None, Statistics::of(&a));
        let takes_stdout = files::is_stdout(&self.file);
        let Make { class, seed, values, output, .. } = self;
        output.print_beside(
            takes_stdout,
            &MakeReport { class, seed, values, make_ms, write_ms, file_bytes, matrix },
        )
    }
}

/// Refuses a file that cannot be written, before what is written is made.
fn check_writable(path: &Path) -> Result<(), Failure> {
    if let Some(ending) = files::other_packing(path, &["gz", "npz"]) {
        let message = format!("matrices are written as .mtx, .mtx.gz and .npz, and not as .{ending}");
        return Err(Failure::new(Kind::Usage, message).help("write .mtx, and pack that"));
    }
    match files::is_stdout(path) {
        true => Ok(()),
        false => files::check_writable(path).map_err(|error| Failure::unwritable(path, error)),
    }
}

/// Writes a matrix; milliseconds, and the length of the file where it is one.
fn write<V: Entry>(path: &Path, a: &CsrMatrix<V, u64>) -> Result<(f64, Option<u64>), Failure> {
    let _progress = Progress::start(format!("writing {}", path.display()));
    let started = Instant::now();
    match path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz")) {
        true => scipy::write_file(path, a)?,
        false if files::is_stdout(path) => matrix_market::write(io::stdout().lock(), a)?,
        false => matrix_market::write_file(path, a)?,
    }
    let file_bytes = fs::metadata(path).ok().filter(|data| data.is_file()).map(|data| data.len());
    Ok((quantity::in_ms(started.elapsed()), file_bytes))
}

impl Report for MakeReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.matrix.text(out)?;
        fact(
            out,
            "made",
            format_args!(
                "{} from seed {} in {}",
                self.class,
                self.seed,
                quantity::milliseconds(self.make_ms)
            ),
        )?;
        written_text(out, self.write_ms, self.file_bytes)
    }
}

fn written_text(out: &mut dyn Write, write_ms: f64, file_bytes: Option<u64>) -> io::Result<()> {
    let size = file_bytes.map_or(String::new(), |bytes| format!("{} ", quantity::bytes(bytes)));
    fact(out, "written", format_args!("{size}in {}", quantity::milliseconds(write_ms)))
}

#[derive(Debug, Serialize)]
struct ConvertReport {
    written_to: String,
    read_ms: f64,
    write_ms: f64,
    file_bytes: Option<u64>,
    matrix: MatrixFacts,
}

impl Convert {
    fn run<V: Entry>(self) -> Result<(), Failure> {
        let header = reading::header(&self.input)?;
        let (a, read_ms) = reading::read::<V, u64>(&self.input)?;
        let (write_ms, file_bytes) = write(&self.file, &a)?;
        let path = self.input.display().to_string();
        let matrix = MatrixFacts::new(path, header.as_ref(), Statistics::of(&a));
        let written_to = self.file.display().to_string();
        let report = ConvertReport { written_to, read_ms, write_ms, file_bytes, matrix };
        self.output.print_beside(files::is_stdout(&self.file), &report)
    }
}

impl Report for ConvertReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.matrix.text(out)?;
        fact(out, "read in", quantity::milliseconds(self.read_ms))?;
        fact(out, "written to", &self.written_to)?;
        written_text(out, self.write_ms, self.file_bytes)
    }
}

#[derive(Debug, Serialize)]
struct ClassesReport {
    classes: Vec<ClassFacts>,
}

#[derive(Debug, Serialize)]
struct ClassFacts {
    name: &'static str,
    summary: &'static str,
    parameters: Vec<ClassParameter>,
}

#[derive(Debug, Serialize)]
struct ClassParameter {
    name: &'static str,
    about: &'static str,
    default: f64,
    min: f64,
    max: f64,
    whole: bool,
}

impl Classes {
    fn run(self) -> Result<(), Failure> {
        let named = |class: &&ClassSpec| self.name.as_deref().is_none_or(|name| name == class.name);
        let classes = generate::ALL.iter().filter(named).map(ClassFacts::of).collect();
        self.output.print(&ClassesReport { classes })
    }
}

impl ClassFacts {
    fn of(class: &ClassSpec) -> ClassFacts {
        let parameter = |parameter: &generate::ParameterSpec| ClassParameter {
            name: parameter.name,
            about: parameter.summary,
            default: parameter.default,
            min: parameter.min,
            max: parameter.max,
            whole: parameter.integer,
        };
        ClassFacts {
            name: class.name,
            summary: class.summary,
            parameters: class.parameters.iter().map(parameter).collect(),
        }
    }
}

impl Report for ClassesReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for (index, class) in self.classes.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            writeln!(out, "{}: {}", class.name, class.summary)?;
            let mut table = table(&["setting", "default", "allowed", "what it is"]);
            for ClassParameter { name, about, default, min, max, .. } in &class.parameters {
                let allowed = format!("{min} to {max}");
                table.add_row([*name, &default.to_string(), &allowed, *about]);
            }
            print_table(out, table)?;
        }
        Ok(())
    }
}
