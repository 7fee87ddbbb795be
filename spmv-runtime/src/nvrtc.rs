//! NVRTC: found, loaded, and asked for machine code and PTX of one compile.
//!
//! The types are cudarc's. The library is loaded here, by absolute path where need be: cudarc's own loader
//! knows bare names of the pinned major version only, panics where it finds none, and its safe wrapper has no
//! getter for machine code and drops the log of a success.

use std::error::Error as _;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use cudarc::nvrtc::sys::{nvrtcProgram, nvrtcResult};
use libloading::Library;
use libloading::os::unix::{Library as UnixLibrary, RTLD_GLOBAL, RTLD_NOW};

use crate::artifact::{Artifact, CompileRequest, Image, KernelResources};
use crate::library::{Candidate, FoundBy, Wanted};
use crate::split::split;

/// Names NVRTC's file or its folder; nothing else is then looked at.
pub const NVRTC_VARIABLE: &str = "SPMV_NVRTC";

const NVRTC: Wanted = Wanted {
    stem: "libnvrtc.so",
    majors: &[14, 13, 12],
    wheel_folders: &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"],
};

/// The first version that compiles kernels on several cores, those of one text and several texts at once.
const SPLITS_FROM: Version = Version { major: 13, minor: 0 };

/// NVRTC cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NvrtcError {
    /// No library was found in any place.
    #[error(
        "NVRTC (libnvrtc) was not found; looked for {}. Run `make nvrtc`, install the wheel nvidia-cuda-nvrtc, or set \
         {NVRTC_VARIABLE} to the library's file or folder",
        looked.join(", ")
    )]
    NotFound {
        /// Names and places.
        looked: Vec<String>,
    },
    /// Libraries were found and none of them serves.
    #[error("no usable NVRTC: {}. {help}", problems.join("; "))]
    Unusable {
        /// One line a library that was tried.
        problems: Vec<String>,
        /// What to do.
        help: String,
    },
    /// The architecture is none that this NVRTC compiles for.
    #[error("NVRTC {version} does not compile for {arch}; allowed: {}", allowed.join(", "))]
    Arch {
        /// What was asked for.
        arch: String,
        /// NVRTC's version.
        version: Version,
        /// What it compiles for.
        allowed: Vec<String>,
    },
}

/// NVRTC refused a source, or failed while compiling it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("NVRTC {version} could not compile for {arch}: {reason}\n{log}")]
#[non_exhaustive]
pub struct CompileError {
    /// The architecture.
    pub arch: String,
    /// NVRTC's version.
    pub version: Version,
    /// NVRTC's name of the error.
    pub reason: String,
    /// NVRTC's log; files and lines are those of the templates.
    pub log: String,
}

/// A version as (major, minor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

type Compile = unsafe extern "C" fn(nvrtcProgram, c_int, *const *const c_char) -> nvrtcResult;
type Create = unsafe extern "C" fn(
    *mut nvrtcProgram,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> nvrtcResult;
type Get = unsafe extern "C" fn(nvrtcProgram, *mut c_char) -> nvrtcResult;
type GetSize = unsafe extern "C" fn(nvrtcProgram, *mut usize) -> nvrtcResult;

/// Calls of NVRTC. When the process ends NVRTC takes its memory down, under whoever is still in it: threads that compile are waited
/// for before, and nobody enters any more.
struct Calls {
    running: usize,
    ended: usize,
    are_over: bool,
}

static CALLS: Mutex<Calls> = Mutex::new(Calls { running: 0, ended: 0, are_over: false });
static CALL_ENDED: Condvar = Condvar::new();

/// How long the end of the process is put off at most.
const LONGEST_CALL: Duration = Duration::from_secs(30);

/// What NVRTC takes down first is what it made last, and some of that it makes when it is first needed: this many calls show all of
/// it.
const CALLS_THAT_SHOW_ALL: usize = 100;

/// A call that runs.
struct Call;

impl Call {
    /// None where the process ends.
    fn begin() -> Option<Call> {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.are_over {
            return None;
        }
        calls.running += 1;
        Some(Call)
    }

    /// Runs [`Call::end_all`] at the end of the process, before what there is now is taken down.
    fn end_all_at_exit() {
        // SAFETY: the function stays where it is, and neither unwinds nor exits.
        let registered = unsafe { libc::atexit(Call::end_all) };
        if registered != 0 {
            tracing::warn!("the end of the process does not wait for threads that compile");
        }
    }

    extern "C" fn end_all() {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut calls.are_over, true) {
            return;
        }
        let _ = CALL_ENDED.wait_timeout_while(calls, LONGEST_CALL, |calls| calls.running > 0);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        calls.running -= 1;
        calls.ended += 1;
        if calls.ended <= CALLS_THAT_SHOW_ALL {
            Call::end_all_at_exit();
        }
        CALL_ENDED.notify_all();
    }
}

/// A loaded NVRTC.
pub struct Nvrtc {
    path: PathBuf,
    bytes: u64,
    found_by: FoundBy,
    version: Version,
    archs: Vec<u32>,
    create: Create,
    compile: Compile,
    destroy: unsafe extern "C" fn(*mut nvrtcProgram) -> nvrtcResult,
    error_string: unsafe extern "C" fn(nvrtcResult) -> *const c_char,
    log_size: GetSize,
    log: Get,
    cubin_size: GetSize,
    cubin: Get,
    ptx_size: GetSize,
    ptx: Get,
    /// Keeps the code mapped that the pointers above lead to.
    _library: Library,
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NVRTC {} at {}", self.version, self.path.display())
    }
}

/// The number of an architecture's name. A letter behind it asks for the features of that architecture alone: sm_90a.
fn number_of(arch: &str) -> Option<u32> {
    arch.strip_prefix("sm_")?.trim_end_matches(['a', 'f']).parse().ok()
}

impl Nvrtc {
    /// The NVRTC of this process, found on the first call that succeeds. Where a driver is present NVRTC's
    /// major version must not exceed the driver's: machine code of a newer major does not load.
    ///
    /// # Errors
    /// [`NvrtcError::NotFound`] and [`NvrtcError::Unusable`], with what was tried.
    pub fn find() -> Result<Arc<Nvrtc>, NvrtcError> {
        static FOUND: Mutex<Option<Arc<Nvrtc>>> = Mutex::new(None);
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(nvrtc) = &*found {
            return Ok(nvrtc.clone());
        }
        let nvrtc = Arc::new(Self::search(crate::cuda::driver_version().ok())?);
        tracing::debug!(%nvrtc.version, path = %nvrtc.path.display(), "NVRTC found by {}", nvrtc.found_by);
        *found = Some(nvrtc.clone());
        Ok(nvrtc)
    }

    fn search(driver: Option<Version>) -> Result<Nvrtc, NvrtcError> {
        let named = std::env::var_os(NVRTC_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        let candidates = match &named {
            Some(path) => {
                let files = if path.is_dir() { NVRTC.files_in(path) } else { vec![path.clone()] };
                files.into_iter().map(|path| Candidate { path, found_by: FoundBy::Environment }).collect()
            }
            None => NVRTC.candidates(),
        };
        let mut problems = Vec::new();
        let mut looked = Vec::new();
        for candidate in candidates {
            looked.push(candidate.path.display().to_string());
            match Self::load(&candidate) {
                Ok(nvrtc) => match driver {
                    Some(driver) if nvrtc.version.major > driver.major => problems.push(format!(
                        "{} is NVRTC {}, newer than the driver's CUDA {driver}",
                        nvrtc.path.display(),
                        nvrtc.version
                    )),
                    _ => return Ok(nvrtc),
                },
                // A bare name that the loader does not know is no news.
                Err(_) if candidate.found_by == FoundBy::Loader => {}
                // What the dynamic loader said is the cause of what libloading says.
                Err(problem) => {
                    let cause = problem.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                    problems.push(format!("{}: {problem}{cause}", candidate.path.display()));
                }
            }
        }
        if let Some(path) = named.as_ref().filter(|_| looked.is_empty()) {
            problems.push(format!("{NVRTC_VARIABLE} = {}: no libnvrtc.so there", path.display()));
        }
        if problems.is_empty() {
            looked.push("CUDA toolkits, Python wheels and the data folder of spmv".into());
            return Err(NvrtcError::NotFound { looked });
        }
        let help = match driver {
            _ if named.is_some() => {
                format!(
                    "{NVRTC_VARIABLE} names it: name another library or its folder there, or unset it and run `make nvrtc`"
                )
            }
            Some(driver) => format!(
                "Run `make nvrtc`, or set {NVRTC_VARIABLE} to an NVRTC of CUDA {} or older",
                driver.major
            ),
            None => format!("Run `make nvrtc`, or set {NVRTC_VARIABLE} to another library"),
        };
        Err(NvrtcError::Unusable { problems, help })
    }

    fn load(candidate: &Candidate) -> Result<Nvrtc, libloading::Error> {
        let preload = |path: &Path| {
            // SAFETY: loading runs the initialisers of a CUDA library that the user's machine offers by name.
            unsafe { UnixLibrary::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }
        };
        let library = preload(&candidate.path)?;
        // SAFETY: the symbols have the types of NVRTC's documented interface, unchanged since CUDA 11.1.
        let (version_of, num_archs, supported_archs) = unsafe {
            type NumArchs = unsafe extern "C" fn(*mut c_int) -> nvrtcResult;
            (
                *library
                    .get::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> nvrtcResult>(b"nvrtcVersion\0")?,
                *library.get::<NumArchs>(b"nvrtcGetNumSupportedArchs\0")?,
                *library.get::<NumArchs>(b"nvrtcGetSupportedArchs\0")?,
            )
        };
        let path = loaded_from(version_of as *const c_void).unwrap_or_else(|| candidate.path.clone());
        // NVRTC opens its builtins by bare name; one that lies beside it must be in the process already.
        for builtins in builtins_beside(&path) {
            if let Ok(builtins) = preload(&builtins) {
                std::mem::forget(builtins);
            }
        }
        Call::end_all_at_exit();
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: the functions write one integer each, and then `count` integers, through valid pointers.
        let archs = unsafe {
            version_of(&mut major, &mut minor);
            num_archs(&mut count);
            let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
            if !archs.is_empty() {
                supported_archs(archs.as_mut_ptr());
            }
            archs
        };
        let number = |value: c_int| u32::try_from(value).unwrap_or(0);
        // SAFETY: as above.
        unsafe {
            Ok(Nvrtc {
                bytes: fs::metadata(&path).map_or(0, |file| file.len()),
                path,
                found_by: candidate.found_by,
                version: Version { major: number(major), minor: number(minor) },
                archs: archs.into_iter().map(number).collect(),
                create: *library.get(b"nvrtcCreateProgram\0")?,
                compile: *library.get(b"nvrtcCompileProgram\0")?,
                destroy: *library.get(b"nvrtcDestroyProgram\0")?,
                error_string: *library.get(b"nvrtcGetErrorString\0")?,
                log_size: *library.get(b"nvrtcGetProgramLogSize\0")?,
                log: *library.get(b"nvrtcGetProgramLog\0")?,
                cubin_size: *library.get(b"nvrtcGetCUBINSize\0")?,
                cubin: *library.get(b"nvrtcGetCUBIN\0")?,
                ptx_size: *library.get(b"nvrtcGetPTXSize\0")?,
                ptx: *library.get(b"nvrtcGetPTX\0")?,
                _library: library.into(),
            })
        }
    }

    /// The file that is loaded.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the file was found.
    pub fn found_by(&self) -> FoundBy {
        self.found_by
    }

    /// NVRTC's version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Bytes of the library's file, by which builds of one version are told apart; 0 where they are not known.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Architectures that this NVRTC compiles for, as in `sm_<number>`, ascending.
    pub fn archs(&self) -> &[u32] {
        &self.archs
    }

    /// The newest architecture that is known and no newer than this one: a driver compiles PTX for it on such a device.
    ///
    /// # Errors
    /// [`NvrtcError::Arch`] where all that are known are newer, or the name is none.
    pub(crate) fn newest_up_to(&self, arch: &str) -> Result<u32, NvrtcError> {
        let known =
            number_of(arch).and_then(|number| self.archs.iter().filter(|known| **known <= number).max());
        known.copied().ok_or_else(|| self.unknown(arch))
    }

    fn unknown(&self, arch: &str) -> NvrtcError {
        let allowed = self.archs.iter().map(|number| format!("sm_{number}")).collect();
        NvrtcError::Arch { arch: arch.to_owned(), version: self.version, allowed }
    }

    /// Checks an architecture's name, `sm_90` for example.
    ///
    /// # Errors
    /// [`NvrtcError::Arch`], with what this NVRTC compiles for.
    pub fn check_arch(&self, arch: &str) -> Result<(), NvrtcError> {
        match number_of(arch).is_some_and(|number| self.archs.contains(&number)) {
            true => Ok(()),
            false => Err(self.unknown(arch)),
        }
    }

    /// Compiles one request to machine code and PTX, in one image.
    ///
    /// # Errors
    /// [`CompileError`] with NVRTC's log.
    pub fn compile(&self, request: &CompileRequest) -> Result<Artifact, CompileError> {
        // Kernels become machine code side by side, on as many cores as there are; all before that is done one by one.
        let splits = self.version >= SPLITS_FROM;
        Ok(in_one(
            vec![self.image(request, &request.source, splits.then_some("--split-compile=0"))?],
            request,
        ))
    }

    /// As [`compile`](Self::compile), with the kernels in up to so many images, which are compiled side by side. Those of `products`
    /// are the kernels that every product launches.
    pub(crate) fn compile_split(
        &self,
        request: &CompileRequest,
        max_images: usize,
        products: &[String],
    ) -> Result<Artifact, CompileError> {
        let sources = match self.version >= SPLITS_FROM {
            true => split(&request.source, max_images, products),
            false => Vec::new(),
        };
        let [others @ .., last] = &*sources else { return self.compile(request) };
        if others.is_empty() {
            return self.compile(request);
        }
        let compiled = std::thread::scope(|scope| {
            let image = |text: &str| self.image(request, text, None);
            let beside = |text| std::thread::Builder::new().spawn_scoped(scope, move || image(text));
            let others: Vec<_> = others.iter().map(|text| (text, beside(text))).collect();
            let last = image(last);
            let others = others.into_iter().map(|(text, thread)| match thread {
                Ok(thread) => thread.join().expect("compiling does not panic"),
                // The system has no thread to give.
                Err(_) => image(text),
            });
            others.chain([last]).collect::<Result<Vec<_>, _>>()
        });
        match compiled {
            Ok(images) => Ok(in_one(images, request)),
            // What is wrong is said about the whole text, and a kernel that needs another is compiled with it.
            Err(_) => self.compile(request),
        }
    }

    /// Compiles `source` as `request` says; the log comes with it.
    fn image(
        &self,
        request: &CompileRequest,
        source: &str,
        option: Option<&str>,
    ) -> Result<(Image, String), CompileError> {
        let error = |reason: &str, log| CompileError {
            arch: request.arch.clone(),
            version: self.version,
            reason: reason.to_owned(),
            log,
        };
        let text =
            |text: &str| CString::new(text).map_err(|_| error("the source holds a NUL byte", String::new()));
        let source = text(source)?;
        let options = request.options.iter().map(String::as_str).chain(option);
        let options: Vec<CString> = options.map(text).collect::<Result<_, _>>()?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // Dropped behind the program.
        let Some(_call) = Call::begin() else {
            return Err(error("the process ends", String::new()));
        };
        let mut program = Program { nvrtc: self, handle: std::ptr::null_mut() };
        // SAFETY: every pointer is valid for the call: C strings and the array of them live until the end of
        // this function, no headers are passed, and the handle is written once.
        let (created, compiled) = unsafe {
            let created = (self.create)(
                &mut program.handle,
                source.as_ptr(),
                c"spmv.cu".as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            );
            if created != nvrtcResult::NVRTC_SUCCESS {
                (created, created)
            } else {
                (created, (self.compile)(program.handle, options.len() as c_int, options.as_ptr()))
            }
        };
        if created != nvrtcResult::NVRTC_SUCCESS {
            return Err(error(&self.describe(created), String::new()));
        }
        let log = String::from_utf8_lossy(&program.fetch(self.log_size, self.log))
            .trim_end_matches('\0')
            .to_owned();
        if compiled != nvrtcResult::NVRTC_SUCCESS {
            return Err(error(&self.describe(compiled), log));
        }
        let ptx = program.fetch(self.ptx_size, self.ptx);
        let ptx = String::from_utf8_lossy(&ptx).trim_end_matches('\0').to_owned();
        let cubin = program.fetch(self.cubin_size, self.cubin);
        Ok((Image { cubin, ptx: without_current_folder(ptx) }, log))
    }

    fn describe(&self, result: nvrtcResult) -> String {
        // SAFETY: NVRTC returns a static C string for every result.
        let name = unsafe { CStr::from_ptr((self.error_string)(result)) }.to_string_lossy();
        if result != nvrtcResult::NVRTC_ERROR_BUILTIN_OPERATION_FAILURE {
            return name.into_owned();
        }
        format!(
            "{name}: it lacks its builtins, libnvrtc-builtins.so.{} beside {}; run `make nvrtc`, or set {NVRTC_VARIABLE} to a \
             library that has them",
            self.version,
            self.path.display()
        )
    }
}

/// An NVRTC program, destroyed when dropped.
struct Program<'a> {
    nvrtc: &'a Nvrtc,
    handle: nvrtcProgram,
}

impl Program<'_> {
    /// One result of a compile; empty where NVRTC has none.
    fn fetch(&self, size: GetSize, get: Get) -> Vec<u8> {
        let mut bytes = 0;
        // SAFETY: the handle is a program that was created; `get` writes exactly the bytes that `size` names.
        unsafe {
            if size(self.handle, &mut bytes) != nvrtcResult::NVRTC_SUCCESS {
                return Vec::new();
            }
            let mut result = vec![0u8; bytes];
            if bytes > 0 && get(self.handle, result.as_mut_ptr().cast()) != nvrtcResult::NVRTC_SUCCESS {
                return Vec::new();
            }
            result
        }
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the handle was created by this NVRTC and is destroyed once.
            unsafe { (self.nvrtc.destroy)(&mut self.handle) };
        }
    }
}

/// NVRTC puts the current folder in front of the names of `#line`; an artifact is the same wherever it was made.
fn without_current_folder(ptx: String) -> String {
    match std::env::current_dir() {
        Ok(folder) if folder.parent().is_some() => ptx.replace(&format!("\"{}/", folder.display()), "\""),
        _ => ptx,
    }
}

/// The file that a loaded symbol comes from.
fn loaded_from(symbol: *const c_void) -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: dladdr fills the structure where it returns non-zero; the name is a C string that lives as long
    // as the library is loaded.
    let name = unsafe {
        if libc::dladdr(symbol, info.as_mut_ptr()) == 0 {
            return None;
        }
        let name = info.assume_init().dli_fname;
        if name.is_null() {
            return None;
        }
        CStr::from_ptr(name)
    };
    Path::new(name.to_str().ok()?).canonicalize().ok()
}

fn builtins_beside(nvrtc: &Path) -> Vec<PathBuf> {
    let Some(Ok(entries)) = nvrtc.parent().map(std::fs::read_dir) else { return Vec::new() };
    let is_builtins = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libnvrtc-builtins.so")
    };
    entries.flatten().map(|entry| entry.path()).filter(is_builtins).collect()
}

/// An artifact of images with their logs.
fn in_one(compiled: Vec<(Image, String)>, request: &CompileRequest) -> Artifact {
    let (images, logs): (_, Vec<String>) = compiled.into_iter().unzip();
    let log = logs.concat();
    let mut kernels = resources(&log);
    kernels.sort_by_key(|kernel| request.source.find(&format!("{}(", kernel.name)));
    Artifact { images, log, kernels }
}

/// Reads ptxas's resource report out of a log.
fn resources(log: &str) -> Vec<KernelResources> {
    let mut kernels: Vec<KernelResources> = Vec::new();
    let number_before = |line: &str, what: &str| -> Option<u32> {
        line.split_once(what)?.0.trim_end().rsplit(' ').next()?.parse().ok()
    };
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.push(KernelResources { name, ..KernelResources::default() });
        }
        let Some(kernel) = kernels.last_mut() else { continue };
        kernel.spill_store_bytes =
            number_before(line, "bytes spill stores").unwrap_or(kernel.spill_store_bytes);
        kernel.spill_load_bytes = number_before(line, "bytes spill loads").unwrap_or(kernel.spill_load_bytes);
        kernel.registers = number_before(line, "registers").unwrap_or(kernel.registers);
        kernel.shared_bytes = number_before(line, "bytes smem").unwrap_or(kernel.shared_bytes);
    }
    kernels
}

/// Options of every compile, in order. Contraction is off so that every rounding is in the text; line tables
/// let tools name CUDA lines; ptxas reports resources into the log. NVRTC's own cache, which 12.9 brought, would
/// return machine code without that report. What is generated needs no declarations of textures, launches from kernels and
/// the runtime's own types; reading them takes a third of the time of a small text.
pub(crate) fn options(arch: &str, version: Version, generated: bool) -> Vec<String> {
    let arch = format!("--gpu-architecture={arch}");
    let mut options =
        vec![&*arch, "--std=c++17", "--fmad=false", "--generate-line-info", "--ptxas-options=-v"];
    if version >= (Version { major: 12, minor: 9 }) {
        options.push("--no-cache");
    }
    if generated && version >= (Version { major: 12, minor: 4 }) {
        options.push("--minimal");
    }
    options.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_is_for_no_newer_architecture() {
        let nvrtc = Nvrtc::find().unwrap();
        let newest = *nvrtc.archs().iter().max().unwrap();
        for (arch, expected) in [("sm_90", 90), ("sm_90a", 90), ("sm_9999", newest)] {
            assert_eq!(nvrtc.newest_up_to(arch).unwrap(), expected);
        }
        for arch in ["sm_10", "compute_90", "sm_"] {
            assert!(matches!(nvrtc.newest_up_to(arch), Err(NvrtcError::Arch { .. })), "{arch}");
        }
    }

    #[test]
    fn options_are_those_that_a_version_knows() {
        let has = |option: &str, major, minor, generated| {
            options("sm_90", Version { major, minor }, generated).iter().any(|has| has == option)
        };
        let versions = [(12, 0), (12, 3), (12, 4), (12, 8), (12, 9), (13, 0)];
        let of = |option, generated| versions.map(|(major, minor)| has(option, major, minor, generated));
        assert_eq!(of("--no-cache", true), [false, false, false, false, true, true]);
        assert_eq!(of("--minimal", true), [false, false, true, true, true, true]);
        assert_eq!(of("--minimal", false), [false; 6]);
    }

    #[test]
    fn reads_the_resource_report() {
        let log = "ptxas info    : 20 bytes gmem\n\
                   ptxas info    : Compiling entry function 'spmv_a' for 'sm_90'\n\
                   ptxas info    : Function properties for spmv_a\n\
                   ptxas         .     8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n\
                   ptxas info    : Used 32 registers, used 1 barriers, 64 bytes smem\n\
                   ptxas info    : Compiling entry function 'spmv_b' for 'sm_90'\n\
                   ptxas info    : Used 20 registers, used 0 barriers\n";
        let expected = [
            KernelResources {
                name: "spmv_a".into(),
                registers: 32,
                spill_store_bytes: 16,
                spill_load_bytes: 24,
                shared_bytes: 64,
            },
            KernelResources { name: "spmv_b".into(), registers: 20, ..KernelResources::default() },
        ];
        assert_eq!(resources(log), expected);
        assert_eq!(resources("nothing of the kind"), []);
    }
}
