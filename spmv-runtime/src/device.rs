//! A device: memory, kernels loaded into it, and the stream that they run on.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, CudaStream};
use ptx_sim::{Counters, Schedule};
use spmv_codegen::{
    AnalysisProgram, FingerprintProgram, IndexType, KernelConfig, Pass, Program, ValueType, VectorProgram,
};

use crate::artifact::Artifact;
use crate::backend::{self, Allocation, Backend, DeviceProperties, LoadError, Module, Order, StreamHandle};
use crate::compiler::{Compiler, Origin, ProgramKey, Provenance, SingleFlight, Target};
use crate::cuda::{Cuda, one_stream, stream_handle};
use crate::error::Error;
use crate::launcher::Found;
use crate::nvrtc::Nvrtc;
use crate::planner::analysis::AnalysisWorkspace;
use crate::simulator::{ARCH, MEMORY_BYTES, Simulated};

/// A device. Clones are handles to the same one; whatever opens one makes another, with a stream and kernels of its own, and what
/// lives on one is not for the other, of the same GPU too. Open one, and clone it.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

/// Most of what is printed anywhere has a device in it.
impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({:?}, {})", self.backend(), self.properties().arch)
    }
}

struct Inner {
    products: SingleFlight<KernelConfig, Arc<Kernel>>,
    vectors: SingleFlight<ValueType, Arc<VectorKernels>>,
    analyses: SingleFlight<(IndexType, IndexType), Arc<AnalysisKernels>>,
    fingerprint: SingleFlight<(), Arc<FingerprintKernel>>,
    reduction: Mutex<Option<Arc<Vec<Allocation>>>>,
    analysis: Mutex<Option<AnalysisWorkspace>>,
    target: OnceLock<Target>,
    compiler: Arc<Compiler>,
    native: Native,
    backend: Arc<dyn Backend>,
}

/// What the backend is beside a backend.
#[derive(Clone, Debug)]
pub(crate) enum Native {
    Cuda(Arc<Cuda>),
    Simulated(Arc<Simulated>),
    #[cfg(test)]
    Recorder,
}

/// A product's program, compiled and loaded into a device.
pub struct Kernel {
    program: Program,
    artifact: Arc<Artifact>,
    pub(crate) module: Arc<dyn Module>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passes: Vec<_> = self.program.multiply.iter().map(|pass| &pass.kernel).collect();
        f.debug_struct("Kernel").field("multiply", &passes).field("artifact", &self.artifact).finish()
    }
}

impl Kernel {
    #[cfg(test)]
    pub(crate) fn of(program: Program, artifact: Arc<Artifact>, module: Arc<dyn Module>) -> Kernel {
        Kernel { program, artifact, module }
    }

    /// Source, passes, buffers and guarantees.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Machine code, PTX, log and resources; on a simulated device PTX alone.
    pub fn artifact(&self) -> &Artifact {
        &self.artifact
    }

    /// Blocks of a pass of the program that are resident on one multiprocessor at a time.
    ///
    /// # Errors
    /// [`Error::MissingKernel`] where the program has no such pass.
    pub fn resident_blocks(&self, pass: &Pass) -> Result<u32, Error> {
        let function = self.module.function(&pass.kernel)?;
        self.module.resident_blocks(function, pass.threads_per_block, pass.shared_bytes)
    }
}

/// A module in the device's context and where it came from.
struct Loaded {
    module: Arc<dyn Module>,
    artifact: Arc<Artifact>,
    provenance: Provenance,
}

/// The vector operations on entries of one type, compiled and loaded.
#[derive(Debug)]
pub(crate) struct VectorKernels {
    pub(crate) program: VectorProgram,
    pub(crate) module: Arc<dyn Module>,
}

/// The analysis of structures with row offsets of one type, compiled and loaded.
#[derive(Debug)]
pub(crate) struct AnalysisKernels {
    pub(crate) program: AnalysisProgram,
    pub(crate) structure: [Found; 2],
    pub(crate) columns: [Found; 2],
    /// What the kernels are part of.
    _module: Arc<dyn Module>,
}

/// The hash of structures, compiled and loaded.
#[derive(Debug)]
pub(crate) struct FingerprintKernel {
    pub(crate) program: FingerprintProgram,
    pub(crate) module: Arc<dyn Module>,
}

impl Device {
    /// The CUDA device of this ordinal: its primary context and a stream of its own.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where there is no driver, no device or no such ordinal; [`Error::DriverNotStarted`].
    pub fn cuda(ordinal: usize) -> Result<Device, Error> {
        Ok(Self::from_cuda_backend(Cuda::open(ordinal)?, Compiler::shared()))
    }

    /// The embedded device: it runs the same kernels on the CPU, slowly, and reports what they do wrong.
    pub fn simulator() -> Device {
        Self::simulator_with(Schedule::Natural)
    }

    /// The embedded device with a schedule: an adversarial one finds what depends on the order in which things
    /// run.
    pub fn simulator_with(schedule: Schedule) -> Device {
        Self::from_simulated(Simulated::new(ARCH, schedule, MEMORY_BYTES))
    }

    /// The embedded device with a schedule, of another architecture than `sm_90`: it runs the PTX that kernels become
    /// there, `sm_75` for example.
    ///
    /// # Errors
    /// [`Error::Nvrtc`] where NVRTC is missing or does not know the architecture.
    pub fn simulator_of(arch: &str, schedule: Schedule) -> Result<Device, Error> {
        Nvrtc::find()?.check_arch(arch)?;
        Ok(Self::from_simulated(Simulated::new(arch, schedule, MEMORY_BYTES)))
    }

    /// The embedded device with so many bytes of memory, to see what happens where there is little.
    pub fn simulator_with_memory(bytes: u64) -> Device {
        Self::from_simulated(Simulated::new(ARCH, Schedule::Natural, bytes))
    }

    fn from_simulated(simulated: Simulated) -> Device {
        let simulated = Arc::new(simulated);
        Self::new(simulated.clone(), Native::Simulated(simulated), Compiler::shared())
    }

    /// The best device there is: the first CUDA device, or the embedded one where there is none: no driver, one that is older than
    /// CUDA 12, or one that sees no device.
    ///
    /// # Errors
    /// [`Error::DriverNotStarted`] where there is a driver and it does not start; [`Error::Driver`] and [`Error::Fault`] where there
    /// is a CUDA device and it does not work.
    pub fn open() -> Result<Device, Error> {
        match Self::cuda(0) {
            Err(Error::NoDevice { reason, .. }) => {
                tracing::info!(reason, "no CUDA device: the embedded device is used");
                Ok(Self::simulator())
            }
            other => other,
        }
    }

    /// Whether kernels run on the embedded device.
    pub fn is_simulator(&self) -> bool {
        matches!(self.inner.native, Native::Simulated(_))
    }

    /// On the embedded device, what launches counted since this was last asked.
    pub fn take_counters(&self) -> Option<Counters> {
        match &self.inner.native {
            Native::Simulated(simulated) => Some(simulated.take_counters()),
            _ => None,
        }
    }

    /// A device in the user's own CUDA context. Copies, vector operations and [`Spmv::apply`](crate::Spmv::apply)
    /// run on `stream`.
    ///
    /// # Errors
    /// [`Error::OtherDevice`] where the stream belongs to another context, [`Error::PerThreadStream`], [`Error::Driver`] where the
    /// driver does not answer.
    pub fn from_cuda(context: Arc<CudaContext>, stream: Arc<CudaStream>) -> Result<Device, Error> {
        Ok(Self::from_cuda_backend(Cuda::from_parts(context, stream)?, Compiler::shared()))
    }

    /// The same device with another compiler, so with another kernel cache. Nothing is loaded into it yet.
    pub fn with_compiler(&self, compiler: Arc<Compiler>) -> Device {
        Self::new(self.inner.backend.clone(), self.inner.native.clone(), compiler)
    }

    fn from_cuda_backend(cuda: Cuda, compiler: Arc<Compiler>) -> Device {
        let cuda = Arc::new(cuda);
        Self::new(cuda.clone(), Native::Cuda(cuda), compiler)
    }

    pub(crate) fn new(backend: Arc<dyn Backend>, native: Native, compiler: Arc<Compiler>) -> Device {
        Device {
            inner: Arc::new(Inner {
                products: SingleFlight::default(),
                vectors: SingleFlight::default(),
                analyses: SingleFlight::default(),
                fingerprint: SingleFlight::default(),
                reduction: Mutex::new(None),
                analysis: Mutex::default(),
                target: OnceLock::new(),
                compiler,
                native,
                backend,
            }),
        }
    }

    /// Name, architecture, multiprocessors, memory.
    pub fn properties(&self) -> &DeviceProperties {
        self.backend().properties()
    }

    /// Bytes of device memory that are free now.
    ///
    /// # Errors
    /// [`Error::Driver`] and [`Error::Fault`].
    pub fn free_bytes(&self) -> Result<u64, Error> {
        self.backend().free_bytes()
    }

    /// Waits until everything launched on the device's own stream has finished.
    ///
    /// # Errors
    /// [`Error::Fault`] where a kernel faulted.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.backend().synchronize(StreamHandle::default())
    }

    /// The CUDA context and stream, for use with cudarc.
    pub fn as_cuda(&self) -> Option<(&Arc<CudaContext>, &Arc<CudaStream>)> {
        match &self.inner.native {
            Native::Cuda(cuda) => Some((cuda.context(), cuda.stream())),
            _ => None,
        }
    }

    /// The compiler that this device's kernels come from.
    pub fn compiler(&self) -> &Arc<Compiler> {
        &self.inner.compiler
    }

    /// A configuration's kernel: generated, compiled or taken from the cache, loaded into this device; and
    /// where it came from. From memory this costs less than 2 µs.
    ///
    /// # Errors
    /// [`Error::Nvrtc`], [`Error::Compile`], [`Error::Driver`].
    pub fn kernel(&self, config: &KernelConfig) -> Result<(Arc<Kernel>, Provenance), Error> {
        let mut provenance = IN_MEMORY;
        let kernel = self.inner.products.get_or_make(*config, || {
            let loaded = self.load(ProgramKey::Product(*config))?;
            provenance = loaded.provenance;
            let Loaded { module, artifact, .. } = loaded;
            Ok::<_, Error>(Arc::new(Kernel { program: config.program(), artifact, module }))
        })?;
        Ok((kernel, provenance))
    }

    /// The kernel of a configuration with another text: the generated one as somebody edited it. Its passes, buffers
    /// and guarantees are those of the configuration. Machine code is cached by the text.
    pub(crate) fn edited_kernel(
        &self,
        config: &KernelConfig,
        source: &str,
    ) -> Result<(Arc<Kernel>, Provenance), Error> {
        let Loaded { module, artifact, provenance } = self.load(ProgramKey::Edited(source.into()))?;
        let program = Program { source: source.to_owned(), ..config.program() };
        Ok((Arc::new(Kernel { program, artifact, module }), provenance))
    }

    pub(crate) fn vector_kernels(&self, entry: ValueType) -> Result<Arc<VectorKernels>, Error> {
        self.inner.vectors.get_or_make(entry, || {
            let Loaded { module, .. } = self.load(ProgramKey::Vector(entry))?;
            Ok(Arc::new(VectorKernels { program: VectorProgram::new(entry), module }))
        })
    }

    pub(crate) fn analysis_kernels(
        &self,
        offset: IndexType,
        index: IndexType,
    ) -> Result<Arc<AnalysisKernels>, Error> {
        self.inner.analyses.get_or_make((offset, index), || {
            let Loaded { module, .. } = self.load(ProgramKey::Analysis(offset, index))?;
            let program = AnalysisProgram::new(offset, index);
            let found = |passes: &[Pass; 2]| {
                let [first, last] = passes;
                Ok::<_, Error>([Found::new(first, &*module)?, Found::new(last, &*module)?])
            };
            let (structure, columns) = (found(&program.structure)?, found(&program.columns)?);
            Ok(Arc::new(AnalysisKernels { program, structure, columns, _module: module }))
        })
    }

    pub(crate) fn fingerprint_kernel(&self) -> Result<Arc<FingerprintKernel>, Error> {
        self.inner.fingerprint.get_or_make((), || {
            let Loaded { module, .. } = self.load(ProgramKey::Fingerprint)?;
            Ok(Arc::new(FingerprintKernel { program: FingerprintProgram::new(), module }))
        })
    }

    /// The workspace of operations that give a number, with the lock that keeps it to one of them at a time.
    pub(crate) fn reduction_workspace(&self) -> &Mutex<Option<Arc<Vec<Allocation>>>> {
        &self.inner.reduction
    }

    /// The workspace of analyses, with the lock that keeps it to one of them at a time.
    pub(crate) fn analysis_workspace(&self) -> &Mutex<Option<AnalysisWorkspace>> {
        &self.inner.analysis
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.inner.backend
    }

    pub(crate) fn is(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.inner.backend, &other.inner.backend)
    }

    /// What its kernels are compiled for.
    pub(crate) fn target(&self) -> Result<Target, Error> {
        if let Some(target) = self.inner.target.get() {
            return Ok(target.clone());
        }
        let properties = self.properties();
        let target = match self.is_simulator() {
            true => Target::Simulated(properties.arch.clone()),
            false => self.inner.compiler.target_for(&properties.arch, properties.driver_version)?,
        };
        Ok(self.inner.target.get_or_init(|| target).clone())
    }

    /// Loads a program. An artifact that the driver rejects is forgotten and compiled again, once; where fresh
    /// machine code is rejected too, the driver is given PTX.
    fn load(&self, key: ProgramKey) -> Result<Loaded, Error> {
        let properties = self.properties();
        let compiler = &self.inner.compiler;
        let native = self.target()?;
        let mut attempts = vec![native.clone()];
        if let Target::Real(arch) = native {
            attempts.push(Target::Virtual { arch, driver: properties.driver_version });
        }
        let mut rejection = None;
        for target in attempts {
            let mut fresh = false;
            while !fresh {
                let started = Instant::now();
                let (artifact, origin) = compiler.artifact(key.clone(), target.clone())?;
                let compile = started.elapsed();
                let started = Instant::now();
                let modules = artifact.images.iter().map(|image| self.backend().load(image));
                match modules.collect::<Result<Vec<_>, _>>() {
                    Ok(modules) => {
                        let module = backend::together(&artifact, modules);
                        let provenance = Provenance { origin, compile, load: started.elapsed() };
                        return Ok(Loaded { module, artifact, provenance });
                    }
                    Err(LoadError::Failed(error)) => return Err(error),
                    Err(LoadError::Rejected(error)) => {
                        tracing::warn!(%error, origin = origin.name(), "the driver rejected a kernel");
                        compiler.forget(key.clone(), target.clone());
                        fresh = origin == Origin::Compiled;
                        rejection.get_or_insert(error);
                    }
                }
            }
        }
        Err(rejection.expect("the loop ends early unless an attempt was rejected"))
    }

    /// A new stream of this device, which does not wait for the device's own.
    ///
    /// # Errors
    /// [`Error::NoDevice`] on a device that is not a CUDA device, [`Error::Driver`], [`Error::Fault`].
    pub fn new_stream(&self) -> Result<Stream, Error> {
        let stream = self.cuda_backend()?.new_stream()?;
        self.stream(stream)
    }

    /// The user's own stream, for [`Spmv::apply_on`](crate::Spmv::apply_on).
    ///
    /// # Errors
    /// [`Error::OtherDevice`] where the stream belongs to another context, [`Error::PerThreadStream`].
    pub fn stream(&self, stream: Arc<CudaStream>) -> Result<Stream, Error> {
        if stream.context() != self.cuda_backend()?.context() {
            return Err(Error::OtherDevice { what: "the stream", with: "the device" });
        }
        one_stream(&stream)?;
        let ordered = OrderedStream { handle: stream_handle(&stream), _alive: Some(stream.clone()) };
        Ok(Stream { device: self.clone(), ordered, cuda: stream })
    }

    fn cuda_backend(&self) -> Result<&Arc<Cuda>, Error> {
        match &self.inner.native {
            Native::Cuda(cuda) => Ok(cuda),
            _ => Err(Error::NoDevice {
                reason: "this device is not a CUDA device".into(),
                help: "streams belong to CUDA devices; use the device's own".into(),
            }),
        }
    }
}

const IN_MEMORY: Provenance =
    Provenance { origin: Origin::Memory, compile: Duration::ZERO, load: Duration::ZERO };

/// A CUDA stream to run products on.
#[derive(Clone, Debug)]
pub struct Stream {
    device: Device,
    ordered: OrderedStream,
    cuda: Arc<CudaStream>,
}

/// A stream that a later product is ordered behind: one of the user's is kept until then, the default is the device's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct OrderedStream {
    pub(crate) handle: StreamHandle,
    _alive: Option<Arc<CudaStream>>,
}

/// Streams with products of one plan that what follows is to be ordered behind: the last one, and those of before that could
/// not be waited for then.
#[derive(Debug)]
pub(crate) struct Unordered(Vec<OrderedStream>);

impl Default for Unordered {
    fn default() -> Unordered {
        Unordered(vec![OrderedStream::default()])
    }
}

impl Unordered {
    /// Orders a stream, which is to have a product now, behind the others.
    pub(crate) fn follow_on(
        &mut self,
        stream: &OrderedStream,
        order: impl Fn(StreamHandle, StreamHandle) -> Result<Order, Error>,
    ) -> Result<(), Error> {
        if self.0.len() == 1 && self.0[0].handle == stream.handle {
            return Ok(());
        }
        for before in &mut self.0 {
            if before.handle != stream.handle {
                match order(before.handle, stream.handle)? {
                    Order::Made => *before = stream.clone(),
                    Order::BeforeIsCaptured => {}
                    Order::AfterIsCaptured => return Ok(()),
                }
            }
        }
        let mut is_known = false;
        self.0.retain(|one| one.handle != stream.handle || !std::mem::replace(&mut is_known, true));
        if !is_known {
            self.0.push(stream.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
impl OrderedStream {
    /// A stream that is no more than its handle.
    pub(crate) fn unowned(handle: u64) -> OrderedStream {
        OrderedStream { handle: StreamHandle(handle), _alive: None }
    }
}

impl Stream {
    /// The stream as cudarc knows it.
    pub fn as_cuda(&self) -> &Arc<CudaStream> {
        &self.cuda
    }

    /// Waits until everything launched on the stream has finished.
    ///
    /// # Errors
    /// [`Error::Fault`] where a kernel faulted.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.device.backend().synchronize(self.ordered.handle)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn ordered(&self) -> &OrderedStream {
        &self.ordered
    }
}
