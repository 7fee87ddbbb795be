//! From a configuration to machine code: generated once, compiled once, cached in memory and on disk.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
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
}

/// What machine code is made for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// Machine code for this architecture, `sm_90` for example.
    Real(String),
    /// PTX for the newest architecture that NVRTC knows, which a driver of this version compiles on.
    Virtual((u32, u32)),
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
#[derive(Debug)]
pub struct Compiler {
    disk: DiskCache,
    artifacts: SingleFlight<(ProgramKey, Target), Arc<Artifact>>,
}

impl Compiler {
    /// A compiler with this disk cache.
    pub fn new(disk: DiskCache) -> Compiler {
        Compiler { disk, artifacts: SingleFlight::default() }
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

    /// Machine code and PTX of a configuration for an architecture, `sm_90` for example; and where it came
    /// from. No device is needed.
    ///
    /// # Errors
    /// [`Error::Nvrtc`] where NVRTC is missing or does not know the architecture, [`Error::Compile`] where it
    /// refuses the source.
    pub fn compile(&self, config: &KernelConfig, arch: &str) -> Result<(Arc<Artifact>, Origin), Error> {
        self.artifact(ProgramKey::Product(*config), Target::Real(arch.to_owned()))
    }

    /// As [`Compiler::compile`], for the vector operations on entries of one type.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn compile_vector(&self, entry: ValueType, arch: &str) -> Result<(Arc<Artifact>, Origin), Error> {
        self.artifact(ProgramKey::Vector(entry), Target::Real(arch.to_owned()))
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
        self.artifact(ProgramKey::Analysis(offset, index), Target::Real(arch.to_owned()))
    }

    /// As [`Compiler::compile`], for the hash of structures.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn compile_fingerprint(&self, arch: &str) -> Result<(Arc<Artifact>, Origin), Error> {
        self.artifact(ProgramKey::Fingerprint, Target::Real(arch.to_owned()))
    }

    pub(crate) fn artifact(&self, key: ProgramKey, target: Target) -> Result<(Arc<Artifact>, Origin), Error> {
        let mut origin = Origin::Memory;
        let artifact = self.artifacts.get_or_make((key.clone(), target.clone()), || {
            let nvrtc = Nvrtc::find()?;
            let request = request(&key, &target, &nvrtc)?;
            if let Lookup::Hit(artifact) = self.disk.get(&request) {
                origin = Origin::Disk;
                return Ok(Arc::new(artifact));
            }
            origin = Origin::Compiled;
            let started = Instant::now();
            let artifact = nvrtc.compile(&request)?;
            tracing::debug!(arch = request.arch, elapsed = ?started.elapsed(), "compiled");
            self.disk.put(&request, &artifact);
            Ok::<_, Error>(Arc::new(artifact))
        })?;
        Ok((artifact, origin))
    }

    /// Forgets an artifact that a driver rejected, in memory and on disk.
    pub(crate) fn forget(&self, key: ProgramKey, target: Target) {
        if let Ok(request) =
            Nvrtc::find().map_err(Error::from).and_then(|nvrtc| request(&key, &target, &nvrtc))
        {
            self.disk.remove(&request);
        }
        self.artifacts.remove(&(key, target));
    }

    /// What a device of this architecture loads: machine code where NVRTC knows it, else PTX.
    pub(crate) fn target_for(&self, arch: &str, driver_version: (u32, u32)) -> Result<Target, Error> {
        let known = Nvrtc::find()?.check_arch(arch).is_ok();
        Ok(if known { Target::Real(arch.to_owned()) } else { Target::Virtual(driver_version) })
    }
}

fn request(key: &ProgramKey, target: &Target, nvrtc: &Nvrtc) -> Result<CompileRequest, Error> {
    let arch = match target {
        Target::Real(arch) => {
            nvrtc.check_arch(arch)?;
            arch.clone()
        }
        Target::Virtual(_) => format!("compute_{}", nvrtc.archs().iter().max().copied().unwrap_or_default()),
    };
    Ok(CompileRequest {
        source: key.source(),
        options: nvrtc::options(&arch, nvrtc.version()),
        arch,
        nvrtc_version: (nvrtc.version().major, nvrtc.version().minor),
        driver_version: match target {
            Target::Real(_) => None,
            Target::Virtual(version) => Some(*version),
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
#[derive(Debug)]
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

    pub(crate) fn remove(&self, key: &K) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

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
