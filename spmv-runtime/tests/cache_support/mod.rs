//! A folder of its own for every test, and requests and artifacts that tell themselves apart.
#![allow(dead_code)]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use spmv_runtime::cache::{CacheLocation, DiskCache, Key};
use spmv_runtime::{Artifact, CompileRequest, Image, KernelResources};
use tempfile::TempDir;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

pub struct Fixture {
    root: TempDir,
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture { root: TempDir::new().unwrap() }
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn folder(&self) -> PathBuf {
        self.root.path().join("cache")
    }

    pub fn location(&self) -> CacheLocation {
        CacheLocation::folder(self.folder())
    }

    pub fn cache(&self) -> DiskCache {
        let cache = DiskCache::open(&self.location());
        assert!(cache.status().folder.is_some(), "{:?}", cache.status().problem);
        cache
    }

    pub fn entry(&self, request: &CompileRequest) -> PathBuf {
        self.folder().join(format!("{}.spmv", Key::of(request)))
    }

    /// Puts these bytes where the entry of the request is.
    pub fn plant(&self, request: &CompileRequest, bytes: &[u8]) {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(self.entry(request)).unwrap().write_all(bytes).unwrap();
    }

    /// Names of all files in the folder that are not entries, nor the count of written blocks.
    pub fn leftovers(&self) -> Vec<String> {
        let names =
            fs::read_dir(self.folder()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.ends_with(".spmv") && name != ".written").collect()
    }

    pub fn entry_bytes(&self) -> u64 {
        let entries = fs::read_dir(self.folder()).unwrap().map(|e| e.unwrap());
        entries
            .filter(|e| e.file_name().to_str().unwrap().ends_with(".spmv"))
            .map(|e| e.metadata().unwrap().len())
            .sum()
    }
}

pub fn request(n: usize) -> CompileRequest {
    CompileRequest {
        source: format!("// kernel {n}\nextern \"C\" __global__ void spmv_{n}() {{}}\n"),
        options: vec!["-arch=sm_90".into(), "--fmad=false".into(), "-std=c++17".into()],
        arch: "sm_90".into(),
        nvrtc_version: (12, 8),
        nvrtc_bytes: 1 << 26,
        driver_version: None,
    }
}

pub fn artifact(n: usize) -> Artifact {
    sized_artifact(n, 300)
}

pub fn image(cubin: Vec<u8>, ptx: &str) -> Image {
    Image { cubin, ptx: ptx.into() }
}

/// Every byte depends on `n`.
pub fn sized_artifact(n: usize, cubin_bytes: usize) -> Artifact {
    Artifact {
        images: vec![image(
            (0..cubin_bytes).map(|i| (i.wrapping_mul(31) ^ n.wrapping_mul(7)) as u8).collect(),
            &format!(".version 8.0 // {n}\n"),
        )],
        log: format!("ptxas info : kernel {n}"),
        kernels: vec![KernelResources {
            name: format!("spmv_{n}"),
            registers: n as u32,
            spill_store_bytes: 8,
            spill_load_bytes: 16,
            shared_bytes: 1024,
        }],
    }
}

/// Some faults can only be made by root; a run that cannot says what it left out.
pub fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("SKIPPED (needs root): {test}");
    }
    root
}

/// This test program again, to run only the test `name`, with none of the variables the cache reads.
pub fn child(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(child_args(name)).env(CHILD, name);
    for variable in ["SPMV_CACHE_DIR", "SPMV_CACHE_MAX_BYTES", "XDG_CACHE_HOME", "HOME"] {
        command.env_remove(variable);
    }
    command
}

pub fn child_args(name: &str) -> [&str; 4] {
    ["--exact", name, "--nocapture", "--test-threads=1"]
}

/// Whether this process is the child that runs the test `name`; the test does nothing otherwise.
pub fn is_child(name: &str) -> bool {
    let child = std::env::var_os(CHILD).is_some_and(|role| role == name);
    if child {
        tracing::subscriber::set_global_default(PrintWarnings).unwrap();
    }
    child
}

const CHILD: &str = "SPMV_CACHE_TEST_CHILD";

/// Prints a line `warning: …` for every warning.
struct PrintWarnings;

impl Subscriber for PrintWarnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!(" {field}={value:?}");
            }
        }
        let mut line = Line(String::new());
        event.record(&mut line);
        println!("\nwarning:{}", line.0);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}
