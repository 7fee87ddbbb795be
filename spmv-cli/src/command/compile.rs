//! `spmv compile`: machine code and PTX of a kernel, without a GPU.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use spmv_runtime::{Compiler, Nvrtc};

use crate::failure::{Failure, Kind};
use crate::files;
use crate::kernel::{CompiledFacts, SettingFacts, config_text};
use crate::quantity;
use crate::report::{OutputArgs, Report, fact};
use crate::settings::KernelArgs;

/// Compile a kernel with NVRTC, or take it from the cache; needs no GPU
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Compile {
    #[command(flatten)]
    kernel: KernelArgs,
    /// The architecture (`spmv doctor` lists those that NVRTC knows)
    #[arg(long, default_value = "sm_90")]
    arch: String,
    /// Write the PTX instead of the machine code; without -o to standard output
    #[arg(long)]
    ptx: bool,
    /// Write the machine code (a cubin file), or with --ptx the PTX, to this file; - is standard output
    #[arg(short = 'o', long = "output", value_name = "FILE", value_parser = files::output())]
    file: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
Examples:
  spmv compile --algorithm csr_vector --arch sm_90
  spmv compile --algorithm light_vector --value f64 --arch sm_80 -o kernel.cubin
  spmv compile --algorithm csr_scalar --set unroll=8 --ptx | less

JSON (--json), one object:
  algorithm, config, settings, nvrtc_version, time_ms, compiled (origin, arch, cubin_bytes,
  ptx_bytes, resources), written_to, and with --ptx and no -o the text as ptx";

#[derive(Debug, Serialize)]
struct CompileReport {
    algorithm: &'static str,
    config: String,
    settings: SettingFacts,
    nvrtc_version: String,
    time_ms: f64,
    compiled: CompiledFacts,
    written_to: Option<String>,
    ptx: Option<String>,
}

impl Compile {
    pub fn run(self) -> Result<(), Failure> {
        let config = self.kernel.config()?;
        let nvrtc = Nvrtc::find()?;
        nvrtc.check_arch(&self.arch).map_err(|error| Failure::new(Kind::Usage, error.to_string()))?;
        let started = Instant::now();
        let (artifact, origin) = Compiler::shared().compile(&config, &self.arch)?;
        let time_ms = quantity::in_ms(started.elapsed());
        let [image] = &*artifact.images else { unreachable!("it was compiled to one image") };
        if let Some(path) = &self.file {
            let content = if self.ptx { image.ptx.as_bytes() } else { &image.cubin };
            files::write(path, content).map_err(|error| Failure::unwritable(path, error))?;
        }
        let takes_stdout = self.file.as_deref().is_some_and(files::is_stdout);
        self.output.print_beside(
            takes_stdout,
            &CompileReport {
                algorithm: config.algorithm().name(),
                config: config_text(&config),
                settings: SettingFacts(config.settings()),
                nvrtc_version: nvrtc.version().to_string(),
                time_ms,
                compiled: CompiledFacts::new(&self.arch, origin, &artifact),
                ptx: (self.ptx && self.file.is_none()).then(|| image.ptx.clone()),
                written_to: self.file.map(|path| path.display().to_string()),
            },
        )
    }
}

impl Report for CompileReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(ptx) = &self.ptx {
            return out.write_all(ptx.as_bytes());
        }
        fact(out, "kernel", &self.config)?;
        self.compiled.text(out)?;
        let time = quantity::milliseconds(self.time_ms);
        fact(out, "time", format_args!("{time}, NVRTC {}", self.nvrtc_version))?;
        match &self.written_to {
            Some(path) => fact(out, "written to", path),
            None => Ok(()),
        }
    }
}
