//! From a configuration to machine code: generated once, compiled once, cached in memory and on disk.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use spmv_codegen::{AnalysisProgram, FingerprintProgram, IndexType, KernelConfig, ValueType, VectorProgram};

use crate::artifact::{Artifact, CompileRequest};
use crate::cache::{DiskCache, Lookup};
use crate::error::Error;
use crate::nvrtc::{self, Nvrtc};

/// What is compiled: a product, a text that somebody edited, the vector operations for one type of entries, the analysis
/// for one type of row offsets, or the hash of structures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ProgramKey {
    Product(KernelConfig),
    Edited(Arc<str>),
    Vector(ValueType),
    Analysis(IndexType, IndexType),
    Fingerprint,
}

impl ProgramKey {
    fn source(&self) -> String {
        match self {
            ProgramKey::Product(config) => config.program().source,
            ProgramKey::Edited(source) => source.to_string(),
            ProgramKey::Vector(entry) => VectorProgram::new(*entry).source,
            ProgramKey::Analysis(offset, index) => AnalysisProgram::new(*offset, *index).source,
            ProgramKey::Fingerprint => FingerprintProgram::new().source,
        }
    }

    /// The kernels that every product launches.
    fn products(&self) -> Vec<String> {
        match self {
            ProgramKey::Product(config) => {
                config.program().multiply.into_iter().map(|pass| pass.kernel).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What machine code is made for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// Machine code for this architecture, `sm_90` for example.
    Real(String),
    /// PTX for the newest architecture that NVRTC knows and that is no newer than this one, which a driver of this version
    /// compiles on.
    Virtual {
        /// The device's architecture.
        arch: String,
        /// The driver's version.
        driver: (u32, u32),
    },
    /// PTX of this architecture, which the simulator runs: half of the time that machine code takes.
    Simulated(String),
}

/// How many images an artifact may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Images {
    /// One, as a file has it.
    One,
    /// As many as were compiled side by side, whenever that was.
    Any,
}

/// More are not compiled side by side: NVRTC reads one text at a time, 6 to 10 ms each, and makes code of several at once.
const MAX_IMAGES: usize = 4;

/// Compiles that are under way in this process.
static COMPILING: AtomicUsize = AtomicUsize::new(0);

/// What a compile has of the cores while it is under way.
struct Share {
    size: usize,
}

impl Share {
    fn of(cores: usize) -> Share {
        let compiling = COMPILING.fetch_add(1, Ordering::Relaxed) + 1;
        Share { size: (cores / compiling).max(1) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        COMPILING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where an artifact came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was in memory.
    Memory,
    /// It was on disk.
    Disk,
    /// NVRTC compiled it.
    Compiled,
}

impl Origin {
    /// `memory`, `disk` or `compiled`.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Memory => "memory",
            Origin::Disk => "disk",
            Origin::Compiled => "compiled",
        }
    }
}

/// Compiles programs with NVRTC and keeps what came of it, in memory and on disk. One compile a program at a
/// time: whoever asks for a program that is being compiled waits for it.
pub struct Compiler {
    disk: DiskCache,
    artifacts: SingleFlight<(ProgramKey, Target, Images), Arc<Artifact>>,
    /// What a driver rejected: the disk cache, which may be one that cannot be written, is not asked for it again.
    rejected: Mutex<HashSet<(ProgramKey, Target)>>,
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiler").field("disk", &self.disk).finish_non_exhaustive()
    }
}

impl Compiler {
    /// A compiler with this disk cache.
    pub fn new(disk: DiskCache) -> Compiler {
        Compiler { disk, artifacts: SingleFlight::default(), rejected: Mutex::default() }
    }

    /// The compiler of this process, with the disk cache that the environment names.
    pub fn shared() -> Arc<Compiler> {
        static SHARED: LazyLock<Arc<Compiler>> =
            LazyLock::new(|| Arc::new(Compiler::new(DiskCache::from_env())));
        SHARED.clone()
    }

    /// The disk level.
    pub fn disk(&self) -> &DiskCache {
        &self.disk
    }

    /// Machine code and PTX of a configuration for an architecture, `sm_90` for example, in one image; and where it came
    /// from. No device is needed.
    ///
    /// # Errors
    /// [`Error::Nvrtc`] where NVRTC is missing or does not know the architecture, [`Error::Compile`] where it
    /// refuses the source.
    pub fn compile(&self, config: &KernelConfig, arch: &str) -> Result<(Arc<Artifact>, Origin), Error> {
        self.one_image(ProgramKey::Product(*config), arch)
    }

    /// As [`Compiler::compile`], with PTX alone, which the simulator runs and a driver compiles on: half of the time that machine
    /// code takes. The artifact has no machine code and says nothing of resources.
    ///
    /// # Errors
    /// As [`Compiler::compile`], but for an architecture that NVRTC does not know there is the PTX of the newest that is no newer.
    pub fn compile_ptx(&self, config: &KernelConfig, arch: &str) -> Result<(Arc<Artifact>, Origin), Error> {
        self.images(ProgramKey::Product(*config), Target::Simulated(arch.to_owned()), Images::One)
    }

    /// As [`Compiler::compile`], for the vector operations on entries of one type.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn compile_vector(&self, entry: ValueType, arch: &str) -> Result<(Arc<Artifact>, Origin), Error> {
        self.one_image(ProgramKey::Vector(entry), arch)
    }

    /// As [`Compiler::compile`], for the analysis of structures with row offsets and column indices of these types.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn compile_analysis(
        &self,
        offset: IndexType,
        index: IndexType,
        arch: &str,
    ) -> Result<(Arc<Artifact>, Origin), Error> {
        self.one_image(ProgramKey::Analysis(offset, index), arch)
    }

    /// As [`Compiler::compile`], for the hash of structures.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn compile_fingerprint(&self, arch: &str) -> Result<(Arc<Artifact>, Origin), Error> {
        self.one_image(ProgramKey::Fingerprint, arch)
    }

    fn one_image(&self, key: ProgramKey, arch: &str) -> Result<(Arc<Artifact>, Origin), Error> {
        self.images(key, Target::Real(arch.to_owned()), Images::One)
    }

    pub(crate) fn artifact(&self, key: ProgramKey, target: Target) -> Result<(Arc<Artifact>, Origin), Error> {
        // Kernels of a text that somebody edited may have more in common than functions.
        let images = if matches!(key, ProgramKey::Edited(_)) { Images::One } else { Images::Any };
        self.images(key, target, images)
    }

    fn images(
        &self,
        key: ProgramKey,
        target: Target,
        images: Images,
    ) -> Result<(Arc<Artifact>, Origin), Error> {
        let mut origin = Origin::Memory;
        let artifact = self.artifacts.get_or_make((key.clone(), target.clone(), images), || {
            if let (Images::Any, Some(artifact)) =
                (images, self.artifacts.get(&(key.clone(), target.clone(), Images::One)))
            {
                return Ok(artifact);
            }
            // What has machine code has PTX beside it.
            if let Target::Simulated(arch) = &target
                && let Some(artifact) =
                    self.artifacts.get(&(key.clone(), Target::Real(arch.clone()), Images::One))
            {
                return Ok(artifact);
            }
            let nvrtc = Nvrtc::find()?;
            let request = request(&key, &target, &nvrtc)?;
            if !self.rejected().contains(&(key.clone(), target.clone()))
                && let Lookup::Hit(artifact) = self.disk.get(&request)
                && (images == Images::Any || artifact.images.len() == 1)
            {
                origin = Origin::Disk;
                return Ok(Arc::new(artifact));
            }
            origin = Origin::Compiled;
            let started = Instant::now();
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let share = Share::of(cores.min(MAX_IMAGES));
            let artifact = match images {
                Images::One => nvrtc.compile(&request)?,
                Images::Any => nvrtc.compile_split(&request, share.size, &key.products())?,
            };
            tracing::debug!(
                arch = request.arch, images = artifact.images.len(), elapsed = ?started.elapsed(), "compiled"
            );
            self.disk.put(&request, &artifact);
            Ok::<_, Error>(Arc::new(artifact))
        })?;
        Ok((artifact, origin))
    }

    /// Runs `meanwhile` as if the program were being compiled.
    #[cfg(test)]
    pub(crate) fn compiling<R>(&self, key: ProgramKey, target: Target, meanwhile: impl FnOnce() -> R) -> R {
        let mut ran = None;
        let _ = self.artifacts.get_or_make((key, target, Images::Any), || {
            ran = Some(meanwhile());
            Err(())
        });
        ran.expect("nobody has compiled the program")
    }

    fn rejected(&self) -> MutexGuard<'_, HashSet<(ProgramKey, Target)>> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets an artifact that a driver rejected, in memory and on disk.
    pub(crate) fn forget(&self, key: ProgramKey, target: Target) {
        self.rejected().insert((key.clone(), target.clone()));
        if let Ok(request) =
            Nvrtc::find().map_err(Error::from).and_then(|nvrtc| request(&key, &target, &nvrtc))
        {
            self.disk.remove(&request);
        }
        for images in [Images::One, Images::Any] {
            self.artifacts.remove(&(key.clone(), target.clone(), images));
        }
    }

    /// What a device of this architecture loads: machine code where NVRTC knows it, else PTX.
    pub(crate) fn target_for(&self, arch: &str, driver_version: (u32, u32)) -> Result<Target, Error> {
        let known = Nvrtc::find()?.check_arch(arch).is_ok();
        let arch = arch.to_owned();
        Ok(if known { Target::Real(arch) } else { Target::Virtual { arch, driver: driver_version } })
    }
}

fn request(key: &ProgramKey, target: &Target, nvrtc: &Nvrtc) -> Result<CompileRequest, Error> {
    let arch = match target {
        Target::Real(arch) => {
            nvrtc.check_arch(arch)?;
            arch.clone()
        }
        Target::Virtual { arch, .. } | Target::Simulated(arch) => {
            format!("compute_{}", nvrtc.newest_up_to(arch)?)
        }
    };
    Ok(CompileRequest {
        source: key.source(),
        options: nvrtc::options(&arch, nvrtc.version(), !matches!(key, ProgramKey::Edited(_))),
        arch,
        nvrtc_version: (nvrtc.version().major, nvrtc.version().minor),
        nvrtc_bytes: nvrtc.bytes(),
        driver_version: match target {
            Target::Real(_) | Target::Simulated(_) => None,
            Target::Virtual { driver, .. } => Some(*driver),
        },
    })
}

/// Where a kernel came from and what that took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Where the machine code came from.
    pub origin: Origin,
    /// Generating, looking up and, where need be, compiling.
    pub compile: Duration,
    /// Loading the module into the context; zero where it was loaded.
    pub load: Duration,
}

/// A map whose values are made at most once at a time each; a failure is not remembered.
pub(crate) struct SingleFlight<K, V> {
    slots: Mutex<HashMap<K, Arc<Mutex<Option<V>>>>>,
}

impl<K, V> Default for SingleFlight<K, V> {
    fn default() -> Self {
        SingleFlight { slots: Mutex::new(HashMap::new()) }
    }
}

impl<K: Eq + Hash, V: Clone> SingleFlight<K, V> {
    pub(crate) fn get_or_make<E>(&self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let slot = self.slots.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
        let mut value = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = &*value {
            return Ok(value.clone());
        }
        let made = make()?;
        *value = Some(made.clone());
        Ok(made)
    }

    /// What was made, unless somebody makes it just now.
    fn get(&self, key: &K) -> Option<V> {
        let slot = self.slots.lock().unwrap_or_else(PoisonError::into_inner).get(key)?.clone();
        let value = slot.try_lock().ok()?;
        value.clone()
    }

    pub(crate) fn remove(&self, key: &K) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::CacheLocation;
    use spmv_codegen::Algorithm;
    use std::thread;

    /// A product takes the same registers wherever it was compiled, and no kernel has variables in common with others.
    #[test]
    fn kernels_are_the_same_side_by_side() {
        let nvrtc = Nvrtc::find().unwrap();
        for spec in Algorithm::ALL {
            let config = KernelConfig::named(spec.name).unwrap().value(ValueType::F64).build().unwrap();
            let key = ProgramKey::Product(config);
            let request = request(&key, &Target::Real("sm_90".into()), &nvrtc).unwrap();
            let together = nvrtc.compile(&request).unwrap();
            let apart = nvrtc.compile_split(&request, usize::MAX, &key.products()).unwrap();
            let names =
                |artifact: &Artifact| artifact.kernels.iter().map(|k| k.name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&apart), names(&together), "{}", spec.name);
            let multiplies =
                |kernel: &str| config.program().multiply.iter().any(|pass| pass.kernel == kernel);
            let registers = |artifact: &Artifact| {
                let own = artifact.kernels.iter().filter(|kernel| multiplies(&kernel.name));
                own.map(|kernel| (kernel.registers, kernel.spill_store_bytes)).collect::<Vec<_>>()
            };
            assert_eq!(registers(&apart), registers(&together), "{}", spec.name);
            assert_eq!(
                [together.images.len(), apart.images.len()],
                [1, together.kernels.len()],
                "{}",
                spec.name
            );
            for image in &apart.images {
                assert!(
                    !image.cubin.is_empty() && image.ptx.matches(".entry ").count() == 1,
                    "{}",
                    spec.name
                );
            }
            let variable = |line: &&str| line.contains(".global ") && line.ends_with("];");
            assert_eq!(together.images[0].ptx.lines().find(variable), None, "{}", spec.name);
        }
    }

    #[test]
    fn the_simulator_runs_the_ptx_that_machine_code_has_beside_it() {
        for algorithm in ["csr_vector", "hola"] {
            let config = KernelConfig::named(algorithm).unwrap().build().unwrap();
            let compiler = || Compiler::new(DiskCache::open(&CacheLocation::off()));
            let (apart, beside) = (compiler(), compiler());
            let simulated = |compiler: &Compiler| {
                let target = Target::Simulated("sm_90".into());
                compiler.images(ProgramKey::Product(config), target, Images::One).unwrap().0
            };
            let (real, _) = beside.compile(&config, "sm_90").unwrap();
            let alone = simulated(&apart);
            // NVRTC lists constants that nothing reads in any order.
            let code = |artifact: &Artifact| {
                let lines = artifact.images[0].ptx.lines().filter(|line| !line.starts_with(".global "));
                lines.collect::<Vec<_>>().join("\n")
            };
            assert!(code(&alone) == code(&real), "{algorithm}");
            assert!(alone.images[0].cubin.is_empty() && alone.kernels.is_empty(), "{algorithm}");
            // Nothing is compiled that is there.
            assert!(Arc::ptr_eq(&simulated(&beside), &real), "{algorithm}");
        }
    }

    #[test]
    fn one_image_is_compiled_where_several_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let compiler = || Compiler::new(DiskCache::open(&CacheLocation::folder(folder.path().join("cache"))));
        let config = KernelConfig::named("two_phase").unwrap().build().unwrap();
        let (key, target) = (ProgramKey::Product(config), Target::Real("sm_90".into()));
        // As on a machine with three cores, whatever this one has.
        let nvrtc = Nvrtc::find().unwrap();
        let request = request(&key, &target, &nvrtc).unwrap();
        compiler().disk().put(&request, &nvrtc.compile_split(&request, 3, &key.products()).unwrap());
        let (several, origin) = compiler().artifact(key.clone(), target.clone()).unwrap();
        assert_eq!((several.images.len(), origin), (3, Origin::Disk));
        let (one, origin) = compiler().compile(&config, "sm_90").unwrap();
        assert_eq!((one.images.len(), origin), (1, Origin::Compiled));
        assert_eq!(one.kernels, several.kernels);
        let (any, origin) = compiler().artifact(key.clone(), target.clone()).unwrap();
        assert_eq!((any, origin), (one, Origin::Disk));
        // What is in memory serves without a disk as well.
        let alone = Compiler::new(DiskCache::open(&CacheLocation::off()));
        let (one, _) = alone.compile(&config, "sm_90").unwrap();
        let (any, origin) = alone.artifact(key, target).unwrap();
        assert!(Arc::ptr_eq(&any, &one) && origin == Origin::Memory);
    }

    #[test]
    fn what_is_wrong_is_said_of_the_whole_text() {
        let nvrtc = Nvrtc::find().unwrap();
        let kernel =
            |name: &str, body: &str| format!("extern \"C\" __global__ void {name}(int* a) {{\n{body}\n}}\n");
        let request = |source: String| CompileRequest {
            source,
            options: nvrtc::options("sm_90", nvrtc.version(), true),
            arch: "sm_90".into(),
            nvrtc_version: (nvrtc.version().major, nvrtc.version().minor),
            nvrtc_bytes: nvrtc.bytes(),
            driver_version: None,
        };
        let broken = request([kernel("first", "  *a = 1;"), kernel("second", "  *b = 2;")].concat());
        let error = nvrtc.compile_split(&broken, 2, &[]).unwrap_err();
        assert_eq!(error.log, nvrtc.compile(&broken).unwrap_err().log);
        assert!(error.log.contains("(5): error"), "{}", error.log);
        // A kernel that names another is compiled with it.
        let named =
            request([kernel("first", "  *a = 1;"), kernel("second", "  *a = first != nullptr;")].concat());
        let artifact = nvrtc.compile_split(&named, 2, &[]).unwrap();
        assert_eq!((artifact.images.len(), artifact.kernels.len()), (1, 2));
    }

    #[test]
    fn compiles_share_the_cores() {
        const CORES: usize = 1 << 20;
        let first = Share::of(CORES);
        let second = Share::of(CORES);
        // Other tests may be compiling, but not so many.
        assert!(first.size <= CORES && (CORES / 64..=CORES / 2).contains(&second.size), "{}", second.size);
        assert_eq!(Share::of(1).size, 1);
    }

    #[test]
    fn one_flight_a_key() {
        let flights = SingleFlight::default();
        let made = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let value = flights.get_or_make("key", || {
                        thread::sleep(Duration::from_millis(20));
                        Ok::<_, ()>(made.fetch_add(1, Ordering::SeqCst))
                    });
                    assert_eq!(value, Ok(0));
                });
            }
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn failures_are_tried_again() {
        let flights = SingleFlight::default();
        assert_eq!(flights.get_or_make(1, || Err::<u32, _>("no")), Err("no"));
        assert_eq!(flights.get_or_make(1, || Ok::<_, &str>(7)), Ok(7));
        assert_eq!(flights.get_or_make(1, || Err("never called")), Ok(7));
        flights.remove(&1);
        assert_eq!(flights.get_or_make(1, || Ok::<_, &str>(8)), Ok(8));
    }
}
