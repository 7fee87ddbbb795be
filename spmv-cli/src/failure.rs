//! What went wrong, told to a person or a program, and the exit code that follows.

use std::error::Error as StdError;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use miette::{Diagnostic, GraphicalReportHandler};
use serde::Serialize;
use spmv_runtime::cache::CacheProblem;
use spmv_runtime::codegen::ConfigError;
use spmv_runtime::matrix::generate::GenerateError;
use spmv_runtime::matrix::matrix_market::{Problem, ReadError, WriteError};
use spmv_runtime::matrix::{MatrixError, scipy};
use spmv_runtime::{Error, ErrorKind, NvrtcError};

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Nobody reads the output any more; nothing to tell.
    OutputClosed,
    /// The product was computed, and it is wrong.
    Verification,
    /// A record is slower than allowed.
    Slower,
    /// What was asked for is not allowed.
    Usage,
    /// A file is missing or malformed.
    Input,
    /// The machine lacks something.
    Environment,
    /// Too little memory, of the host or the device.
    Memory,
    /// A kernel faulted.
    Fault,
}

impl Kind {
    /// The process's exit code.
    pub const fn code(self) -> u8 {
        match self {
            Kind::OutputClosed => 0,
            Kind::Verification | Kind::Slower => 1,
            Kind::Usage => 2,
            Kind::Input => 3,
            Kind::Environment => 4,
            Kind::Memory => 5,
            Kind::Fault => 6,
        }
    }

    pub fn exit_code(self) -> ExitCode {
        self.code().into()
    }

    const fn name(self) -> &'static str {
        match self {
            Kind::OutputClosed => "output_closed",
            Kind::Verification => "verification",
            Kind::Slower => "slower",
            Kind::Usage => "usage",
            Kind::Input => "input",
            Kind::Environment => "environment",
            Kind::Memory => "memory",
            Kind::Fault => "fault",
        }
    }
}

/// Why a command failed, and what to do about it.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
    help: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Failure {
    pub fn new(kind: Kind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), help: None, source: None }
    }

    /// A file or folder that could not be written.
    pub fn unwritable(path: &Path, source: io::Error) -> Failure {
        if source.kind() == io::ErrorKind::BrokenPipe {
            return source.into();
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let source = match folder {
            Some(folder) => io::Error::other(format!("there is no folder {}", folder.display())),
            None if source.raw_os_error().is_some() => source,
            // The kind alone where the text would name a temporary file.
            None => source.kind().into(),
        };
        Failure::new(Kind::Environment, format!("{}: could not be written", path.display())).because(source)
    }

    /// With the error behind it.
    pub fn because(mut self, source: impl StdError + Send + Sync + 'static) -> Failure {
        self.source = Some(Box::new(source));
        self
    }

    /// With what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }

    /// With the file that the message is about in front.
    pub fn in_file(mut self, path: &Path) -> Failure {
        self.message = format!("{}: {}", path.display(), self.message);
        self
    }

    /// A complex matrix, where real values are to be read.
    fn complex() -> Failure {
        Failure::new(
            Kind::Input,
            "the matrix is complex, and the type of values that it is read with has no imaginary part",
        )
        .help("`spmv run`, `explain` and `tune` take it with --value c32 or c64; `spmv inspect` and `spmv matrix convert` read it too")
    }

    /// A value of a matrix that is beyond the type that it is read with.
    fn too_large(message: String, value: &str) -> Failure {
        let failure = Failure::new(Kind::Input, message);
        match value {
            "f64" | "c64" => failure,
            "c32" => failure.help("--value c64 holds larger ones"),
            "bool" => failure.help("allowed are 0 and 1; --value f64 holds other numbers"),
            _ => failure.help("--value f64 holds larger ones"),
        }
    }

    /// What to do about it, where that is known.
    pub fn what_to_do(&self) -> Option<&str> {
        self.help.as_deref()
    }

    #[cfg(test)]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Tells standard error, and says what to exit with.
    pub fn tell(&self, json: bool) -> ExitCode {
        if self.kind != Kind::OutputClosed {
            let text = if json {
                format!("{}\n", self.as_json())
            } else if io::stderr().is_terminal() {
                self.as_picture()
            } else {
                self.as_text()
            };
            // Where standard error is closed too, the exit code has to do.
            let _ = io::stderr().write_all(text.as_bytes());
        }
        self.kind.exit_code()
    }

    /// The texts of the errors behind this one.
    fn causes(&self) -> Vec<String> {
        std::iter::successors(self.source(), |&error| error.source()).map(ToString::to_string).collect()
    }

    fn as_text(&self) -> String {
        let mut text = format!("error: {}\n", self.message);
        for cause in self.causes() {
            text += &format!("  because: {cause}\n");
        }
        if let Some(help) = &self.help {
            text += &format!("  help: {help}\n");
        }
        text
    }

    fn as_picture(&self) -> String {
        let mut picture = String::new();
        match GraphicalReportHandler::new().with_cause_chain().render_report(&mut picture, self) {
            Ok(()) => picture,
            Err(fmt::Error) => self.as_text(),
        }
    }

    fn as_json(&self) -> String {
        #[derive(Serialize)]
        struct Json<'a> {
            error: Body<'a>,
        }
        #[derive(Serialize)]
        struct Body<'a> {
            kind: &'static str,
            exit_code: u8,
            message: &'a str,
            causes: Vec<String>,
            help: Option<&'a str>,
        }
        let error = Body {
            kind: self.kind.name(),
            exit_code: self.kind.code(),
            message: &self.message,
            causes: self.causes(),
            help: self.help.as_deref(),
        };
        serde_json::to_string(&Json { error }).expect("text and numbers can be written as JSON")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Failure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl Diagnostic for Failure {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(format!("{} (exit code {})", self.kind.name(), self.kind.code())))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as _)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let kind = match error.kind() {
            ErrorKind::Usage => Kind::Usage,
            ErrorKind::Input => Kind::Input,
            ErrorKind::Environment => Kind::Environment,
            ErrorKind::Memory => Kind::Memory,
            ErrorKind::Fault => Kind::Fault,
        };
        match error {
            Error::Matrix(error) => error.into(),
            Error::Config(error) => error.into(),
            Error::NoDevice { reason, help } => {
                Failure::new(kind, format!("no CUDA device: {reason}")).help(help)
            }
            Error::DriverNotStarted { code, name, message, help } => Failure::new(
                kind,
                format!(
                    "the CUDA driver does not start: cuInit failed with {name}, error {code} ({message})"
                ),
            )
            .help(help),
            error => Failure::new(kind, error.to_string()),
        }
    }
}

impl From<NvrtcError> for Failure {
    fn from(error: NvrtcError) -> Failure {
        Error::from(error).into()
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::new(Kind::Usage, error.to_string())
            .help("`spmv algorithms` lists every algorithm, setting and allowed value")
    }
}

impl From<MatrixError> for Failure {
    fn from(error: MatrixError) -> Failure {
        match error {
            MatrixError::OutOfMemory { .. } => Failure::new(Kind::Memory, error.to_string()),
            MatrixError::OffsetOverflow { .. } => {
                Failure::new(Kind::Input, error.to_string()).help("ask for 64-bit offsets: --set offset=u64")
            }
            // Rows and columns of a file count from 1.
            MatrixError::NotSymmetric { .. } => {
                Failure::new(Kind::Input, format!("{error}; rows and columns are counted from 0"))
            }
            error => Failure::new(Kind::Input, error.to_string()),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        match error.fault().map(|fault| &fault.problem) {
            Some(Problem::Complex(_)) => return Failure::complex(),
            Some(Problem::ValueTooLarge(value)) => return Failure::too_large(error.to_string(), value),
            _ => {}
        }
        match error {
            ReadError::Matrix(error) => error.into(),
            ReadError::TooLarge { .. } => Failure::new(Kind::Memory, error.to_string()),
            ReadError::Io { path, source } => {
                let name = path.map_or_else(|| "the matrix".to_owned(), |path| path.display().to_string());
                Failure::new(Kind::Input, format!("{name}: could not be read")).because(source)
            }
            ReadError::Gzip { bytes, source } => {
                let message = format!("the gzip data are damaged or cut off after {bytes} bytes of text");
                Failure::new(Kind::Input, message).because(source)
            }
            error => Failure::new(Kind::Input, error.to_string()),
        }
    }
}

impl From<scipy::ReadError> for Failure {
    fn from(error: scipy::ReadError) -> Failure {
        match error {
            scipy::ReadError::Complex { .. } => Failure::complex(),
            scipy::ReadError::Matrix(error) => error.into(),
            scipy::ReadError::ValueTooLarge { into, .. } => Failure::too_large(error.to_string(), into),
            scipy::ReadError::TooLarge { .. } => Failure::new(Kind::Memory, error.to_string()),
            scipy::ReadError::Io { path, source } => {
                let name = path.map_or_else(|| "the matrix".to_owned(), |path| path.display().to_string());
                Failure::new(Kind::Input, format!("{name}: could not be read")).because(source)
            }
            error => Failure::new(Kind::Input, error.to_string()),
        }
    }
}

impl From<scipy::WriteError> for Failure {
    fn from(error: scipy::WriteError) -> Failure {
        match error {
            scipy::WriteError::Io { path: Some(path), source } => Failure::unwritable(&path, source),
            error => Failure::new(Kind::Environment, error.to_string()),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        match error {
            WriteError::Io { path: Some(path), source } => Failure::unwritable(&path, source),
            WriteError::Io { path: None, source } => source.into(),
            error => Failure::new(Kind::Environment, error.to_string()),
        }
    }
}

impl From<GenerateError> for Failure {
    fn from(error: GenerateError) -> Failure {
        match error {
            GenerateError::Matrix(error @ MatrixError::OutOfMemory { .. }) => error.into(),
            GenerateError::TooLarge { .. } => Failure::new(Kind::Memory, error.to_string()),
            error => Failure::new(Kind::Usage, error.to_string())
                .help("`spmv matrix classes` lists every class, parameter and allowed value"),
        }
    }
}

impl From<CacheProblem> for Failure {
    fn from(problem: CacheProblem) -> Failure {
        Failure::new(Kind::Environment, problem.to_string())
    }
}

/// Errors of writing to standard output; files have their own messages.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::new(Kind::OutputClosed, "the reader of the output is gone"),
            _ => Failure::new(Kind::Environment, format!("cannot write to standard output: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use spmv_runtime::ptx_sim::{self, Arg, Launch, Module, Simulator};

    use super::*;

    #[test]
    fn every_kind_of_error_has_its_exit_code() {
        let fault =
            Error::Fault { call: "cuStreamSynchronize", name: "X".into(), message: "y".into(), kernel: None };
        let lost = Error::DeviceLost { name: "X".into(), kernel: Some("spmv_coo".into()) };
        let memory = Error::OutOfMemory { what: "the matrix".into(), needed: 2, free: 1 };
        let device = Error::NoDevice { reason: "none".into(), help: "get one".into() };
        let length = Error::Length { what: "x", expected: 1, got: 2 };
        let host_memory = MatrixError::OutOfMemory { bytes: 1, what: "values" };
        let codes: Vec<(Failure, u8)> = vec![
            (fault.into(), 6),
            (lost.into(), 6),
            (memory.into(), 5),
            (Error::Matrix(host_memory.clone()).into(), 5),
            (ReadError::Matrix(host_memory).into(), 5),
            (ReadError::TooLarge { bytes: 2, max_bytes: 1 }.into(), 5),
            (GenerateError::TooLarge { bytes: 2, max_bytes: 1 }.into(), 5),
            (device.into(), 4),
            (CacheProblem::NoHome.into(), 4),
            (io::Error::from(io::ErrorKind::StorageFull).into(), 4),
            (MatrixError::OffsetsStart(1).into(), 3),
            (ReadError::Changed.into(), 3),
            (length.into(), 2),
            (GenerateError::UnknownValues("x".into()).into(), 2),
            (io::Error::from(io::ErrorKind::BrokenPipe).into(), 0),
        ];
        for (failure, code) in codes {
            assert_eq!(failure.kind().code(), code, "{failure}");
        }
    }

    #[test]
    fn a_fault_on_the_simulator_says_where_and_exits_with_6() {
        let ptx = r#"
            .version 8.0
            .target sm_90
            .address_size 64
            .visible .entry fill(.param .u64 data) {
              .reg .b32 %r<2>;
              .reg .b64 %rd<4>;
              .loc 1 7 0
              ld.param.u64 %rd1, [data];
              mov.u32 %r1, %tid.x;
              mul.wide.u32 %rd2, %r1, 4;
              add.s64 %rd3, %rd1, %rd2;
              .loc 1 9 0
              st.global.u32 [%rd3], %r1;
              ret;
            }
            .file 1 "fill.cu"
        "#;
        let module = Module::load(ptx).unwrap();
        let mut simulator = Simulator::new();
        let data = simulator.allocate(4 * 40).unwrap();
        let launch = Launch::new(1, 64).arg(Arg::U64(data));
        let Err(ptx_sim::Error::Fault(fault)) = simulator.launch(&module, "fill", &launch) else {
            panic!("thread 40 writes behind the allocation");
        };
        let failure = Failure::from(Error::SimulatedFault(fault));
        assert_eq!(failure.kind().code(), 6);
        let text = failure.as_text();
        for part in ["out of bounds", "fill.cu:9", "block (0, 0, 0)", "thread (40, 0, 0)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json: serde_json::Value = serde_json::from_str(&failure.as_json()).unwrap();
        assert_eq!((&json["error"]["kind"], &json["error"]["exit_code"]), (&"fault".into(), &6.into()));
    }

    #[test]
    fn causes_are_told() {
        let source = io::Error::from(io::ErrorKind::NotFound);
        let failure =
            Failure::from(ReadError::Io { path: Some("a.mtx".into()), source }).help("look elsewhere");
        assert_eq!(
            failure.as_text(),
            "error: a.mtx: could not be read\n  because: entity not found\n  help: look elsewhere\n"
        );
        assert!(failure.as_picture().contains("entity not found"));
        let json: serde_json::Value = serde_json::from_str(&failure.as_json()).unwrap();
        assert_eq!(json["error"]["causes"], serde_json::json!(["entity not found"]));
    }
}
