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
use spmv_runtime::matrix::CooMatrix;
use spmv_runtime::{Compiler, Device, DeviceMatrix, Error, IndexType, KernelConfig, Nvrtc, Spmv, Vector};
use tempfile::TempDir;

/// A driver with the version, the devices and the trouble that the environment names. Its device runs nothing: launches
/// succeed, and where they fault, the next call that waits says so, and every call of the context after it.
const DRIVER: &str = r#"
#include <stdlib.h>
#include <string.h>
typedef unsigned long long address;
static int told(const char *name) { const char *text = getenv(name); return text ? atoi(text) : 0; }
static int launched, lost;
static int waits(void) { return lost = lost || launched ? told("DRIVER_FAULT") : 0; }
int cuInit(unsigned flags) { (void)flags; return told("DRIVER_INIT"); }
int cuDriverGetVersion(int *version) { *version = told("DRIVER_VERSION"); return 0; }
int cuDeviceGetCount(int *count) { *count = told("DRIVER_DEVICES"); return told("DRIVER_COUNT"); }
int cuGetErrorName(int error, const char **name) {
    *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : error == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
        : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
    return 0;
}
int cuGetErrorString(int error, const char **text) { (void)error; *text = "as it was told"; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int length, int device) { (void)device; strncpy(name, "none", length); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = 1 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 9 : attribute == 16 ? 4 : attribute == 97 ? 1 << 16 : 0;
    return 0;
}
static void *current;
int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = &current; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return 0; }
int cuCtxGetCurrent(void **context) { *context = current; return 0; }
int cuCtxSetCurrent(void *context) { current = context; return 0; }
int cuCtxSynchronize(void) { return waits(); }
/* Handles that are the same in every run: a library may keep what it knows of streams by their handles, a few to a place. */
int cuStreamCreate(void **stream, unsigned flags) {
    static unsigned long streams;
    (void)flags;
    *stream = (void *)(0x1000 * ++streams);
    return lost ? waits() : 0;
}
int cuStreamDestroy_v2(void *stream) { (void)stream; return lost ? waits() : 0; }
int cuStreamSynchronize(void *stream) { (void)stream; return waits(); }
int cuMemGetInfo_v2(size_t *free_bytes, size_t *bytes) { *free_bytes = *bytes = 1 << 30; return lost ? waits() : 0; }
int cuMemAlloc_v2(address *at, size_t bytes) { *at = (address)calloc(1, bytes); return lost ? waits() : 0; }
int cuMemFree_v2(address at) { free((void *)at); return lost ? waits() : 0; }
int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *stream) {
    (void)stream;
    memcpy((void *)to, from, bytes);
    return lost ? waits() : 0;
}
int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *stream) {
    (void)stream;
    memcpy(to, (void *)from, bytes);
    return lost ? waits() : 0;
}
int cuMemsetD8Async(address at, unsigned char value, size_t bytes, void *stream) {
    (void)stream;
    memset((void *)at, value, bytes);
    return lost ? waits() : 0;
}
int cuModuleLoadData(void **module, const void *image) { (void)image; *module = malloc(1); return lost ? waits() : 0; }
int cuModuleUnload(void *module) { (void)module; return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module; (void)name;
    *function = malloc(1);
    return lost ? waits() : 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared) {
    (void)function; (void)threads; (void)shared;
    *blocks = 1;
    return lost ? waits() : 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    (void)attribute; (void)function;
    *value = 90;
    return lost ? waits() : 0;
}
int cuLaunchKernelEx(const void *config, void *function, void **arguments, void **extra) {
    (void)config; (void)function; (void)arguments; (void)extra;
    launched = 1;
    return lost ? waits() : 0;
}
"#;

/// The driver, as a library in a folder of its own.
fn driver() -> TempDir {
    let folder = folder_with("driver.c", DRIVER.as_bytes());
    let at = |name: &str| folder.path().join(name);
    let linked = Command::new("cc")
        .args(["-Wall", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(at("libcuda.so.1"))
        .arg(at("driver.c"))
        .status();
    assert!(linked.is_ok_and(|status| status.success()), "cc, which links Rust too, makes the driver");
    fs::copy(at("libcuda.so.1"), at("libcuda.so")).unwrap();
    folder
}

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
    let folder = driver();
    for (variables, words) in [
        (&[("DRIVER_INIT", "100")][..], &["cuInit failed with CUDA_ERROR_NO_DEVICE", "12.0 or newer"][..]),
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
    // Nor is a driver passed over that does not start, or a device that fails.
    let start = "Environment: the CUDA driver does not start: cuInit failed with";
    let not_started = [
        (
            "34",
            [
                start,
                "CUDA_ERROR_OTHER, error 34 (as it was told)",
                "programs are linked against",
                "--device sim",
            ],
        ),
        ("803", [start, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, error 803", "nvidia-smi", "restarted"]),
        ("999", [start, "CUDA_ERROR_OTHER, error 999", "nvidia-smi", "Device::simulator()"]),
    ];
    for (error, words) in not_started {
        let mut command = with_libraries(folder.path());
        command.env("DRIVER_VERSION", "12040").env("DRIVER_INIT", error);
        let [cuda, best, ..] = said(command);
        has(&cuda, &words);
        assert_eq!(best, cuda);
    }
    for (error, words) in [
        ("700", &["Fault: cuDeviceGetCount failed", "the device is lost", "start a new process"][..]),
        ("220", &["Fault: cuDeviceGetCount failed", "the device is lost", "start a new process"]),
        ("226", &["Fault: cuDeviceGetCount failed", "the device is lost", "start a new process"]),
        ("719", &["Fault: cuDeviceGetCount failed", "the device is lost", "start a new process"]),
        ("720", &["Environment: cuDeviceGetCount failed: CUDA_ERROR_OTHER (as it was told)"]),
        ("721", &["Fault: cuDeviceGetCount failed", "the device is lost", "start a new process"]),
        ("999", &["Environment: cuDeviceGetCount failed: CUDA_ERROR_OTHER (as it was told)"]),
    ] {
        let mut command = with_libraries(folder.path());
        command.env("DRIVER_VERSION", "12040").env("DRIVER_COUNT", error);
        let [cuda, best, ..] = said(command);
        has(&cuda, words);
        assert_eq!(best, cuda);
    }
}

/// Runs in a child process: a product on a device whose kernels fault, which is told when somebody waits.
#[test]
fn uses_a_device_that_faults() {
    if !is_child("uses_a_device_that_faults") {
        return;
    }
    let said = |what: &str, result: Result<(), Error>| match result {
        Ok(()) => println!("\n{what}: no error"),
        Err(error) => println!("\n{what}: {:?}: {error}", error.kind()),
    };
    let device = Device::cuda(0).unwrap();
    let a = CooMatrix::new(1, 1, vec![0], vec![0], vec![1.0f32]).unwrap().to_csr::<u32>().unwrap();
    let config = |name| KernelConfig::named(name).unwrap().build().unwrap();
    let mut plans = ["csr_scalar", "csr_vector"].map(|name| Spmv::with(&device, &a, config(name)).unwrap());
    let x = Vector::from_slice(&device, &[1.0f32]).unwrap();
    let mut y = Vector::<f32>::zeros(&device, 1).unwrap();
    let streams = [(); 2].map(|()| device.new_stream().unwrap());
    for (plan, stream) in plans.iter_mut().zip(&streams) {
        plan.apply_on(stream, 1.0, &x, 0.0, &mut y).unwrap();
    }
    match std::env::var("DRIVER_WAIT").unwrap().as_str() {
        "first" => said("first", streams[0].synchronize()),
        "second" => said("first", streams[1].synchronize()),
        _ => said("first", device.synchronize()),
    }
    said("product", plans[0].apply(1.0, &x, 0.0, &mut y));
    said("product on a stream", plans[0].apply_on(&streams[1], 1.0, &x, 0.0, &mut y));
    said("wait", device.synchronize());
    said("wait for a stream", streams[0].synchronize());
    said("free memory", device.free_bytes().map(drop));
    said("vector", Vector::<f32>::zeros(&device, 4).map(drop));
    said("read", x.to_vec().map(drop));
    said("write", y.copy_from_slice(&[2.0]));
    said("sum", x.dot(&x).map(drop));
    said("matrix", DeviceMatrix::upload(&device, &a, IndexType::U32).map(drop));
    said("plan", Spmv::with(&device, &a, config("csr_scalar")).map(drop));
    said("another plan", Spmv::with(&device, &a, config("ell")).map(drop));
    said("stream", device.new_stream().map(drop));
    said("resident blocks", {
        let kernel = plans[0].kernel();
        kernel.resident_blocks(&kernel.program().multiply[0]).map(drop)
    });
    said("opened again", Device::cuda(0).map(drop));
    said("the best device", Device::open().map(drop));
    drop((plans, x, y, streams, device));
    println!("\nthe end: reached");
}

/// What is told at first names the kernel that ran last where the call waits; then every call says that the device is lost.
#[test]
fn a_fault_is_told_with_its_kernel_and_loses_the_device() {
    let folder = driver();
    let nvrtc = Nvrtc::find().expect("`make nvrtc` fetches it");
    let driver_version = format!("{}000", nvrtc.version().major);
    for (waits_for, kernel) in
        [("first", "spmv_csr_scalar"), ("second", "spmv_csr_vector"), ("device", "spmv_csr_vector")]
    {
        let mut command = child("uses_a_device_that_faults");
        command.env("LD_LIBRARY_PATH", folder.path()).env("DRIVER_WAIT", waits_for);
        // A driver takes machine code of its own major version.
        command.env("SPMV_NVRTC", nvrtc.path()).env("DRIVER_VERSION", &driver_version);
        command.envs([("DRIVER_DEVICES", "1"), ("DRIVER_FAULT", "700")]);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        let help = "nothing on it can be used any more; start a new process and open the device there";
        let told = text.lines().filter_map(|line| line.split_once(": "));
        let told: Vec<_> =
            told.filter(|(_, said)| *said == "no error" || said.starts_with("Fault: ")).collect();
        let expected = format!(
            "Fault: cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (as it was told) after the kernel `{kernel}`; \
             the device is lost, and {help}"
        );
        assert_eq!(told[0], ("first", expected.as_str()), "{waits_for}");
        let expected = format!(
            "Fault: the device is lost since CUDA_ERROR_ILLEGAL_ADDRESS after the kernel `{kernel}`; {help}"
        );
        assert_eq!(told.len(), 17, "{text}");
        for (what, said) in &told[1..] {
            assert_eq!(*said, expected, "{waits_for}: {what}");
        }
        assert!(text.contains("\nthe end: reached"), "{text}");
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
