//! What a machine may lack: a typed error says what was looked for, where, and what to do, and nothing panics. The driver is
//! one of ours that says what it is told to, in a process of its own.

#![cfg(target_os = "linux")]

mod cache_support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use cache_support::{child, is_child};
use spmv_runtime::cache::{CacheLocation, DiskCache};
use spmv_runtime::{Compiler, Device, Error, KernelConfig, Nvrtc};
use tempfile::TempDir;

/// A driver with the version, the devices and the trouble that the environment names.
const DRIVER: &str = r#"
#include <stdlib.h>
static int told(const char *name) { const char *text = getenv(name); return text ? atoi(text) : 0; }
int cuInit(unsigned flags) { (void)flags; return told("DRIVER_INIT"); }
int cuDriverGetVersion(int *version) { *version = told("DRIVER_VERSION"); return 0; }
int cuDeviceGetCount(int *count) { *count = told("DRIVER_DEVICES"); return told("DRIVER_COUNT"); }
int cuGetErrorName(int error, const char **name) {
    *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : error == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : "CUDA_ERROR_OTHER";
    return 0;
}
int cuGetErrorString(int error, const char **text) { (void)error; *text = "as it was told"; return 0; }
"#;

/// Runs in a child process: opens the first CUDA device, the best one, and compiles.
#[test]
fn uses_the_machine() {
    if !is_child("uses_the_machine") {
        return;
    }
    let told = |what: &str, result: Result<(), Error>| match result {
        Ok(()) => println!("\n{what}: there"),
        Err(error) => {
            println!("\n{what}: {:?}: {}", error.kind(), error.to_string().replace('\n', " "));
        }
    };
    told("cuda", Device::cuda(0).map(drop));
    told("best", Device::open().map(|device| assert!(device.is_simulator())));
    let compiler = Arc::new(Compiler::new(DiskCache::open(&CacheLocation::off())));
    let config = KernelConfig::named("csr_scalar").unwrap().build().unwrap();
    told("kernel", compiler.compile(&config, "sm_90").map(drop));
    told("product", Device::simulator().with_compiler(compiler).kernel(&config).map(drop));
}

/// What the child says of each.
fn said(mut command: Command) -> [String; 4] {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    ["cuda", "best", "kernel", "product"].map(|what| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{what}: ")));
        line.unwrap_or_else(|| panic!("nothing is said of {what}: {text}")).to_owned()
    })
}

fn folder_with(name: &str, bytes: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(name), bytes).unwrap();
    folder
}

/// With this folder searched for libraries first.
fn with_libraries(folder: &Path) -> Command {
    let mut command = child("uses_the_machine");
    command.env("LD_LIBRARY_PATH", folder);
    command
}

fn has(text: &str, words: &[&str]) {
    assert!(words.iter().all(|word| text.contains(word)), "{words:?} are not all in: {text}");
}

#[test]
fn no_driver() {
    let folder = folder_with("libcuda.so.1", b"no library");
    fs::write(folder.path().join("libcuda.so"), "no library").unwrap();
    let [cuda, best, ..] = said(with_libraries(folder.path()));
    has(
        &cuda,
        &[
            "Environment: no CUDA device",
            "libcuda.so.1",
            "dynamic loader",
            "12.0 or newer",
            "LD_LIBRARY_PATH",
        ],
    );
    assert_eq!(best, "there");
}

#[test]
fn a_driver_that_is_of_no_use() {
    let folder = folder_with("driver.c", DRIVER.as_bytes());
    let at = |name: &str| folder.path().join(name);
    let linked = Command::new("cc")
        .arg("-shared")
        .arg("-fPIC")
        .arg("-o")
        .arg(at("libcuda.so.1"))
        .arg(at("driver.c"))
        .status();
    assert!(linked.is_ok_and(|status| status.success()), "cc, which links Rust too, makes the driver");
    fs::copy(at("libcuda.so.1"), at("libcuda.so")).unwrap();
    for (variables, words) in [
        (&[("DRIVER_INIT", "100")][..], &["cuInit failed with CUDA_ERROR_NO_DEVICE", "12.0 or newer"][..]),
        (&[("DRIVER_INIT", "803")], &["CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "install NVIDIA's driver"]),
        (
            &[("DRIVER_VERSION", "11040")],
            &["supports CUDA 11.4, and 12.0 is needed", "install NVIDIA's driver"],
        ),
        (
            &[("DRIVER_VERSION", "12040")],
            &["the driver sees no device", "nvidia-smi", "CUDA_VISIBLE_DEVICES"],
        ),
    ] {
        let mut command = with_libraries(folder.path());
        let [cuda, best, ..] = said({
            command.envs(variables.iter().copied());
            command
        });
        has(&cuda, &["Environment: no CUDA device"]);
        has(&cuda, words);
        assert_eq!(best, "there");
    }
    // A device that fails is not passed over.
    for (error, words) in [
        ("700", &["Fault: cuDeviceGetCount failed", "the CUDA context is lost", "must start again"][..]),
        ("719", &["Fault: cuDeviceGetCount failed", "the CUDA context is lost", "must start again"]),
        ("999", &["Environment: cuDeviceGetCount failed: CUDA_ERROR_OTHER (as it was told)"]),
    ] {
        let mut command = with_libraries(folder.path());
        command.env("DRIVER_VERSION", "12040").env("DRIVER_COUNT", error);
        let [cuda, best, ..] = said(command);
        has(&cuda, words);
        assert_eq!(best, cuda);
    }
}

/// With NVRTC looked for there.
fn with_nvrtc(path: &Path) -> Command {
    let mut command = child("uses_the_machine");
    command.env("SPMV_NVRTC", path);
    command
}

#[test]
fn no_nvrtc() {
    let empty = TempDir::new().unwrap();
    let damaged = folder_with("libnvrtc.so.12", b"no library");
    for path in [PathBuf::from("/nonexistent"), empty.path().into(), damaged.path().join("libnvrtc.so.12")] {
        let [_, best, kernel, product] = said(with_nvrtc(&path));
        assert_eq!(best, "there");
        for text in [kernel, product] {
            has(&text, &["Environment: ", "NVRTC", path.to_str().unwrap(), "make nvrtc", "SPMV_NVRTC"]);
        }
    }
}

#[test]
fn nvrtc_without_its_builtins() {
    let nvrtc = Nvrtc::find().expect("`make nvrtc` fetches it");
    let folder = TempDir::new().unwrap();
    let alone = folder.path().join(nvrtc.path().file_name().unwrap());
    fs::copy(nvrtc.path(), &alone).unwrap();
    let [_, _, kernel, _] = said(with_nvrtc(&alone));
    // Where the builtins are among the system's libraries they are found.
    if kernel != "there" {
        has(&kernel, &["Environment: ", "builtins", alone.to_str().unwrap(), "make nvrtc"]);
    }
}
