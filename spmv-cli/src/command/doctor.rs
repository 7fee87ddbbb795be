//! `spmv doctor`: what this machine has, what it lacks and what to do.

use std::io::{self, Write};
use std::time::Instant;

use serde::Serialize;
use spmv_runtime::cache::{CacheLocation, DiskCache};
use spmv_runtime::codegen::{Algorithm, KernelConfig};
use spmv_runtime::{Compiler, Device, DeviceProperties, Nvrtc, devices, driver_version};

use crate::cusparse;
use crate::failure::{Failure, Kind};
use crate::quantity;
use crate::report::{OutputArgs, Report, fact};

/// Tell what this machine has, what it lacks and what to do about it
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Doctor {
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
Exits with 0 where kernels can be compiled and run, on a GPU or the simulator; with 4 where
NVRTC is missing or does not compile, or a GPU or its driver is there and does not work.

JSON (--json), one object:
  driver     cuda_version, problem, help
  devices    the GPUs: name, arch, multiprocessors, memory_bytes, l2_bytes
  default    what `--device auto` is: cuda:0 or sim; null where a GPU or its driver does not work
  nvrtc      version, path, found_by, archs, compile_ms, problem
  cusparse   version, library, problem
  cache      folder, max_bytes, entries, bytes, problem
  ready_for  compile, gpu, simulator, cpu";

/// What is compiled for where there is no GPU, as the simulator is.
const ARCH_WITHOUT_GPU: &str = "sm_90";

#[derive(Debug, Serialize)]
struct DoctorReport {
    driver: DriverFacts,
    devices: Vec<GpuFacts>,
    default: Option<&'static str>,
    nvrtc: NvrtcFacts,
    cusparse: CusparseFacts,
    cache: CacheFacts,
    ready_for: ReadyFor,
}

#[derive(Debug, Serialize)]
struct DriverFacts {
    cuda_version: Option<String>,
    problem: Option<String>,
    help: Option<String>,
}

#[derive(Debug, Serialize)]
struct GpuFacts {
    name: String,
    arch: String,
    multiprocessors: u32,
    memory_bytes: u64,
    l2_bytes: u64,
}

#[derive(Debug, Default, Serialize)]
struct NvrtcFacts {
    version: Option<String>,
    path: Option<String>,
    found_by: Option<String>,
    archs: Vec<String>,
    /// One kernel, compiled without the cache.
    compile_ms: Option<f64>,
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct CusparseFacts {
    version: Option<String>,
    library: Option<&'static str>,
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct CacheFacts {
    folder: Option<String>,
    max_bytes: u64,
    entries: usize,
    bytes: u64,
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct ReadyFor {
    compile: bool,
    gpu: bool,
    simulator: bool,
    cpu: bool,
}

impl Doctor {
    pub fn run(self) -> Result<(), Failure> {
        let opened = Device::open();
        let default = opened.as_ref().ok().map(|device| if device.is_simulator() { "sim" } else { "cuda:0" });
        // Why it is not a GPU, which opening the first says.
        let device_problem = match default {
            Some("cuda:0") => None,
            _ => Device::cuda(0).err().map(Failure::from),
        };
        let driver = DriverFacts {
            cuda_version: driver_version().ok().map(|version| version.to_string()),
            problem: device_problem.as_ref().map(Failure::to_string),
            help: device_problem.as_ref().and_then(Failure::what_to_do).map(str::to_owned),
        };
        let nvrtc = NvrtcFacts::find(opened.as_ref().ok());
        let cusparse = match cusparse::find() {
            Ok((library, version)) => {
                CusparseFacts { version: Some(version), library: Some(library), problem: None }
            }
            Err(problem) => CusparseFacts { version: None, library: None, problem: Some(problem) },
        };
        let compile = nvrtc.compile_ms.is_some();
        let printed = self.output.print(&DoctorReport {
            ready_for: ReadyFor {
                compile,
                gpu: compile && default == Some("cuda:0"),
                simulator: compile,
                cpu: true,
            },
            default,
            devices: devices().unwrap_or_default().into_iter().map(GpuFacts::from).collect(),
            driver,
            nvrtc,
            cusparse,
            cache: CacheFacts::of(&DiskCache::from_env()),
        });
        let message = match (compile, default) {
            (true, Some(_)) => return printed,
            (true, None) => "a GPU or its driver does not work; the report says what to do",
            (false, _) => "NVRTC is missing or does not compile; the report says what to do",
        };
        Err(Failure::new(Kind::Environment, message))
    }
}

impl From<DeviceProperties> for GpuFacts {
    fn from(properties: DeviceProperties) -> GpuFacts {
        let DeviceProperties { name, arch, multiprocessors, memory_bytes, l2_bytes, .. } = properties;
        GpuFacts { name, arch, multiprocessors, memory_bytes, l2_bytes }
    }
}

impl NvrtcFacts {
    /// Finds NVRTC and compiles one kernel with it: a library without its builtins is found and does not compile.
    fn find(device: Option<&Device>) -> NvrtcFacts {
        let nvrtc = match Nvrtc::find() {
            Ok(nvrtc) => nvrtc,
            Err(error) => return NvrtcFacts { problem: Some(error.to_string()), ..NvrtcFacts::default() },
        };
        let facts = NvrtcFacts {
            version: Some(nvrtc.version().to_string()),
            path: Some(nvrtc.path().display().to_string()),
            found_by: Some(nvrtc.found_by().to_string()),
            archs: nvrtc.archs().iter().map(|arch| format!("sm_{arch}")).collect(),
            ..NvrtcFacts::default()
        };
        let started = Instant::now();
        match compile_one(&nvrtc, device) {
            Ok(()) => NvrtcFacts { compile_ms: Some(quantity::in_ms(started.elapsed())), ..facts },
            Err(failure) => NvrtcFacts { problem: Some(failure.to_string()), ..facts },
        }
    }
}

fn compile_one(nvrtc: &Nvrtc, device: Option<&Device>) -> Result<(), Failure> {
    let known = |arch: &&str| nvrtc.check_arch(arch).is_ok();
    let arch =
        device.map(|device| device.properties().arch.as_str()).filter(known).unwrap_or(ARCH_WITHOUT_GPU);
    let Some(spec) = Algorithm::ALL.first() else { return Ok(()) };
    let config = KernelConfig::builder((spec.default)()).build()?;
    Compiler::new(DiskCache::open(&CacheLocation::off())).compile(&config, arch)?;
    Ok(())
}

impl CacheFacts {
    fn of(cache: &DiskCache) -> CacheFacts {
        let status = cache.status();
        let (entries, problem) = match cache.entries() {
            Ok(entries) => (entries, status.problem),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        CacheFacts {
            folder: status.folder.map(|folder| folder.display().to_string()),
            max_bytes: status.max_bytes,
            entries: entries.len(),
            bytes: entries.iter().map(|entry| entry.bytes).sum(),
            problem: problem.map(|problem| problem.to_string()),
        }
    }
}

impl Report for DoctorReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(version) = &self.driver.cuda_version {
            fact(out, "driver", format_args!("supports CUDA {version}"))?;
        }
        if let Some(problem) = &self.driver.problem {
            fact(out, if self.driver.cuda_version.is_some() { "" } else { "driver" }, problem)?;
        }
        if let Some(help) = &self.driver.help {
            fact(out, "", help)?;
        }
        for (ordinal, device) in self.devices.iter().enumerate() {
            let GpuFacts { name, arch, multiprocessors, memory_bytes, l2_bytes } = device;
            let [memory, l2] = [*memory_bytes, *l2_bytes].map(quantity::bytes);
            fact(
                out,
                &format!("cuda:{ordinal}"),
                format_args!("{name}, {arch}, {multiprocessors} multiprocessors, {memory}, {l2} L2"),
            )?;
        }
        match self.default {
            Some("sim") => {
                fact(out, "device", "the simulator, ptx-sim: without a GPU kernels run there, on the CPU")?;
            }
            Some(_) => {}
            None => fact(out, "device", "none unless it is named: with --device sim kernels run on the CPU")?,
        }
        self.nvrtc.text(out)?;
        match (&self.cusparse.version, self.cusparse.library) {
            (Some(version), Some(library)) => fact(out, "cuSPARSE", format_args!("{version} ({library})"))?,
            _ => fact(out, "cuSPARSE", "not found (only needed for comparisons)")?,
        }
        self.cache.text(out)?;
        writeln!(out)?;
        let ReadyFor { compile, gpu, .. } = self.ready_for;
        fact(
            out,
            "verdict",
            match (compile, gpu) {
                (true, false) if self.default.is_none() => {
                    "kernels are compiled, and the GPU or its driver does not work; only --device sim runs them"
                }
                (true, true) => "everything is there: kernels are compiled and run on the GPU",
                (true, false) => {
                    "kernels are compiled and run on the simulator; for speed it takes a GPU with a driver"
                }
                (false, _) => {
                    "kernels cannot be compiled; only `spmv run --device cpu` computes products, without a kernel"
                }
            },
        )
    }
}

impl NvrtcFacts {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if let (Some(version), Some(path), Some(found_by)) = (&self.version, &self.path, &self.found_by) {
            fact(out, "NVRTC", format_args!("{version}, {path} (found by: {found_by})"))?;
            fact(out, "", format_args!("compiles for {}", self.archs.join(", ")))?;
        }
        if let Some(ms) = self.compile_ms {
            fact(out, "", format_args!("compiled a kernel in {}", quantity::milliseconds(ms)))?;
        }
        match &self.problem {
            Some(problem) => fact(out, if self.version.is_some() { "" } else { "NVRTC" }, problem),
            None => Ok(()),
        }
    }
}

impl CacheFacts {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let CacheFacts { folder, max_bytes, entries, bytes, problem } = self;
        match folder {
            Some(folder) => {
                let (kernels, bytes, most) =
                    (quantity::count(*entries), quantity::bytes(*bytes), quantity::bytes(*max_bytes));
                fact(out, "cache", format_args!("{folder}: {kernels} kernels, {bytes} of at most {most}"))?;
            }
            None => fact(out, "cache", "none: kernels are compiled again in each process")?,
        }
        match problem {
            Some(problem) => fact(out, "", problem),
            None => Ok(()),
        }
    }
}
