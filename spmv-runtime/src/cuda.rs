//! CUDA through cudarc's driver interface.

use std::ffi::{CString, c_void};
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaContext, CudaStream, sys};
use spmv_codegen::Pass;

use crate::artifact::Image;
use crate::backend::{
    Backend, DeviceProperties, Function, Inbox, Launch, LoadError, MAX_ARGS, Module, Order, StreamHandle,
};
use crate::error::Error;
use crate::health::Health;
use crate::nvrtc::Version;

const INSTALL_DRIVER: &str = "install NVIDIA's driver (12.0 or newer), or use the embedded simulator (`Device::simulator()`, --device sim)";

const START_DRIVER: &str = "see what `nvidia-smi` says: after an update of the driver the machine is to be restarted, and a container \
     needs the libraries of its host's driver; or use the embedded simulator (`Device::simulator()`, --device sim)";

/// The oldest major version of CUDA whose drivers have every function that is called.
const OLDEST_MAJOR: u32 = 12;

/// The architecture that a kernel is compiled for, 90 for `compute_90`, from which on `await_stream` in the prelude waits.
const AWAITS_STREAM_FROM: i32 = 90;

/// The version of the driver from which on a launch that does not await its stream can be captured in a graph.
const CAPTURES_EARLY_LAUNCHES_FROM: (u32, u32) = (12, 3);

/// Longer reads do not go through page-locked memory: what the detour costs is little of them.
const STAGING_BYTES: usize = 16 << 10;

/// How long a device waits at most until the host has queued what is timed, which takes some microseconds a launch: a launch that
/// itself waits for the device ends then.
const LONGEST_QUEUEING: Duration = Duration::from_millis(10);

/// The newest CUDA version that the installed driver supports.
///
/// # Errors
/// [`Error::NoDevice`] where there is no driver, it sees no device or is too old; [`Error::DriverNotStarted`], [`Error::Driver`].
pub fn driver_version() -> Result<Version, Error> {
    initialise()
}

/// Properties of every CUDA device, by ordinal.
///
/// # Errors
/// As [`driver_version`]; none where the driver starts and counts no devices.
pub fn devices() -> Result<Vec<DeviceProperties>, Error> {
    let version = driver_version()?;
    let count = check("cuDeviceGetCount", result::device::get_count())?;
    (0..count)
        .map(|ordinal| properties(check("cuDeviceGet", result::device::get(ordinal))?, version))
        .collect()
}

/// Loads and initialises the driver, and says which CUDA version it supports. cudarc panics on a missing library, so its
/// presence is asked for first, and on functions that an old driver lacks, so such a driver is refused.
fn initialise() -> Result<Version, Error> {
    // SAFETY: the probe only loads libcuda.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::NoDevice {
            reason: "the CUDA driver (libcuda.so.1) was not found by the dynamic loader".into(),
            help: format!("{INSTALL_DRIVER}; where it is installed, its folder must be in LD_LIBRARY_PATH"),
        });
    }
    result::init().map_err(|error| {
        let (name, message) = describe(error);
        if error.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE {
            return Error::NoDevice {
                reason: format!("the CUDA driver was found and cuInit failed with {name} ({message})"),
                help: INSTALL_DRIVER.into(),
            };
        }
        let help = match error.0 {
            sys::CUresult::CUDA_ERROR_STUB_LIBRARY => {
                "the library of a toolkit that programs are linked against was loaded, and not the driver's: take its folder out of LD_LIBRARY_PATH, \
                 or use the embedded simulator (`Device::simulator()`, --device sim)"
            }
            _ => START_DRIVER,
        };
        Error::DriverNotStarted { code: error.0 as u32, name, message, help }
    })?;
    let mut number = 0;
    // SAFETY: the driver is loaded and writes one integer through a valid pointer.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut number) }.result())?;
    let number = u32::try_from(number).unwrap_or(0);
    let version = Version { major: number / 1000, minor: number % 1000 / 10 };
    if version.major < OLDEST_MAJOR {
        return Err(Error::NoDevice {
            reason: format!("the CUDA driver supports CUDA {version}, and {OLDEST_MAJOR}.0 is needed"),
            help: INSTALL_DRIVER.into(),
        });
    }
    Ok(version)
}

fn properties(device: sys::CUdevice, driver: Version) -> Result<DeviceProperties, Error> {
    use sys::CUdevice_attribute as A;
    let attribute = |attribute: A| {
        // SAFETY: the device handle comes from the driver.
        let value = unsafe { result::device::get_attribute(device, attribute) };
        Ok::<_, Error>(u32::try_from(check("cuDeviceGetAttribute", value)?).unwrap_or(0))
    };
    let major = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(DeviceProperties {
        name: check("cuDeviceGetName", result::device::get_name(device))?,
        arch: format!("sm_{major}{minor}"),
        multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        // SAFETY: as above.
        memory_bytes: check("cuDeviceTotalMem", unsafe { result::device::total_mem(device) })? as u64,
        l2_bytes: attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        driver_version: (driver.major, driver.minor),
    })
}

fn describe(error: DriverError) -> (String, String) {
    let text = |text: Result<&std::ffi::CStr, DriverError>| {
        text.map_or_else(
            |_| format!("CUDA error {}", error.0 as u32),
            |text| text.to_string_lossy().into_owned(),
        )
    };
    (text(error.error_name()), text(error.error_string()))
}

/// Whether nothing of the device can be used after this error: the context is gone, or CUDA says that the process is to be
/// relaunched. By number, since drivers have more than the interface that cudarc is pinned to.
fn loses_device(error: u32) -> bool {
    matches!(
        error,
        214 // ECC_UNCORRECTABLE
            | 220 // NVLINK_UNCORRECTABLE
            | 226 // CONTAINED
            | 700 // ILLEGAL_ADDRESS
            | 702 // LAUNCH_TIMEOUT
            | 709 // CONTEXT_IS_DESTROYED
            | 710 // ASSERT
            | 714
            ..=719 // HARDWARE_STACK_ERROR to LAUNCH_FAILED
            | 721 // TENSOR_MEMORY_LEAK
            | 810 // MPS_CLIENT_TERMINATED
            | 911 // EXTERNAL_DEVICE
    )
}

/// Sorts the driver's errors: memory, faults that lose the context, others.
pub(crate) fn check<T>(call: &'static str, result: Result<T, DriverError>) -> Result<T, Error> {
    result.map_err(|error| {
        let (name, message) = describe(error);
        match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::OutOfMemory {
                what: call.to_owned(),
                needed: 0,
                free: result::mem_get_info().map_or(0, |(free, _)| free as u64),
            },
            error if loses_device(error as u32) => Error::Fault { call, name, message, kernel: None },
            _ => Error::Driver { call, name, message },
        }
    })
}

/// A CUDA context, the stream that everything runs on unless another is named, and what the device is.
pub(crate) struct Cuda {
    context: Arc<CudaContext>,
    health: Arc<Health>,
    stream: Arc<CudaStream>,
    /// What short reads go through, from the first on.
    staging: Mutex<Option<PageLocked>>,
    properties: DeviceProperties,
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUDA device {} ({})", self.context.ordinal(), self.properties.name)
    }
}

impl Cuda {
    /// The device's primary context and a stream of its own.
    pub(crate) fn open(ordinal: usize) -> Result<Cuda, Error> {
        initialise()?;
        let count = check("cuDeviceGetCount", result::device::get_count())?;
        if ordinal >= usize::try_from(count).unwrap_or(0) {
            let reason = match count {
                0 => "the driver sees no device".to_owned(),
                _ => format!("there is no device {ordinal}"),
            };
            let help = match count {
                0 => "check `nvidia-smi` and CUDA_VISIBLE_DEVICES".to_owned(),
                _ => format!("allowed ordinals: 0 to {}", count - 1),
            };
            return Err(Error::NoDevice { reason, help });
        }
        let health = Health::of(ordinal);
        health.usable()?;
        let context = health.check("cuDevicePrimaryCtxRetain", None, CudaContext::new(ordinal))?;
        let stream = new_stream(&context, &health)?;
        Self::from_parts(context, stream)
    }

    /// The user's own context and stream.
    pub(crate) fn from_parts(context: Arc<CudaContext>, stream: Arc<CudaStream>) -> Result<Cuda, Error> {
        if stream.context() != &context {
            return Err(Error::OtherDevice { what: "the stream", with: "the context" });
        }
        one_stream(&stream)?;
        let health = Health::of(context.ordinal());
        health.usable()?;
        let properties = properties(context.cu_device(), driver_version()?)?;
        Ok(Cuda { context, health, stream, staging: Mutex::default(), properties })
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// A stream beside the device's own.
    pub(crate) fn new_stream(&self) -> Result<Arc<CudaStream>, Error> {
        new_stream(&self.context, &self.health)
    }

    /// Every call needs the context to be current on the calling thread, and not to be lost.
    fn bind(&self) -> Result<(), Error> {
        bind(&self.context, &self.health)
    }

    /// What came of a call that belongs to no stream.
    fn check<T>(&self, call: &'static str, result: Result<T, DriverError>) -> Result<T, Error> {
        self.health.check(call, None, result)
    }

    /// What came of a call on a stream.
    fn check_on<T>(
        &self,
        stream: StreamHandle,
        call: &'static str,
        result: Result<T, DriverError>,
    ) -> Result<T, Error> {
        self.health.check(call, Some(self.raw(stream)), result)
    }

    /// Lets the device's own stream wait until all that `queue` queues is there.
    fn queued(&self, queue: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let is_queued = Arc::new(AtomicBool::new(false));
        let of_stream = Arc::into_raw(is_queued.clone());
        // SAFETY: the function takes a flag that was made from an `Arc`, which is its own.
        let waits = unsafe {
            result::stream::launch_host_function(
                self.stream.cu_stream(),
                wait_until_queued,
                of_stream.cast_mut().cast(),
            )
        };
        if waits.is_err() {
            // SAFETY: nobody else has it: the function will not be called.
            drop(unsafe { Arc::from_raw(of_stream) });
        }
        self.check_on(StreamHandle::default(), "cuLaunchHostFunc", waits)?;
        let queued = queue();
        is_queued.store(true, Ordering::Release);
        queued
    }

    fn raw(&self, stream: StreamHandle) -> sys::CUstream {
        if stream == StreamHandle::default() { self.stream.cu_stream() } else { stream.0 as sys::CUstream }
    }
}

/// Page-locked memory of the host, into which a device writes without a detour.
#[derive(Debug)]
struct PageLocked {
    context: Arc<CudaContext>,
    memory: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is this value's own, and every thread may read it.
unsafe impl Send for PageLocked {}

impl PageLocked {
    /// `bytes` zeros, at a multiple of 8; the context is current.
    fn new(context: Arc<CudaContext>, health: &Health, bytes: usize) -> Result<PageLocked, Error> {
        // SAFETY: the context is current; the memory is initialised before anybody reads it.
        let memory = unsafe { result::malloc_host(bytes, sys::CU_MEMHOSTALLOC_DEVICEMAP) };
        let memory = health.check("cuMemHostAlloc", None, memory)?.cast::<u8>();
        // SAFETY: so many bytes were allocated.
        unsafe { memory.write_bytes(0, bytes) };
        let memory = NonNull::new(memory).expect("CUDA allocates no memory at zero");
        Ok(PageLocked { context, memory, bytes })
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes are there, initialised, as long as this value is, which is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.bytes) }
    }

    /// The number at this place, which a kernel may write meanwhile.
    fn number(&self, place: usize) -> &AtomicU64 {
        assert!((place + 1) * 8 <= self.bytes, "the memory was made for the number");
        // SAFETY: so many bytes are there, aligned as CUDA allocates, as long as this value is; whoever else writes there is a
        // kernel, or holds this value alone.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().cast::<u64>().add(place)) }
    }
}

/// Binds the context to the thread. A first call may return the error of a drop before it, which cudarc keeps until then.
fn bind_for_drop(context: &CudaContext) -> Result<(), DriverError> {
    context.bind_to_thread().or_else(|_| context.bind_to_thread())
}

impl Drop for PageLocked {
    fn drop(&mut self) {
        let bound = bind_for_drop(&self.context);
        // SAFETY: the memory was allocated in this context, and nothing writes there any more: each copy and each kernel that
        // does is waited for.
        if let Err(error) = bound.and_then(|()| unsafe { result::free_host(self.memory.as_ptr().cast()) }) {
            tracing::debug!(?error, "page-locked memory was not freed");
        }
    }
}

/// Called by the driver in the order of a stream: returns when the flag at `is_queued` is set, or after a while.
unsafe extern "C" fn wait_until_queued(is_queued: *mut c_void) {
    // SAFETY: `queued` made it from an `Arc` for this call.
    let is_queued = unsafe { Arc::from_raw(is_queued.cast_const().cast::<AtomicBool>()) };
    let began = Instant::now();
    while !is_queued.load(Ordering::Acquire) && began.elapsed() < LONGEST_QUEUEING {
        std::thread::yield_now();
    }
}

/// Numbers that kernels write to the host, and one behind them that says that all are there.
#[derive(Debug)]
struct SharedInbox {
    memory: PageLocked,
    numbers: usize,
    stream: Arc<CudaStream>,
    health: Arc<Health>,
}

impl SharedInbox {
    /// Looks at the memory between two questions to the driver, which tell of faults.
    const LOOKS: u32 = 4096;

    fn has_come(&self) -> bool {
        self.memory.number(self.numbers).load(Ordering::Acquire) != 0
    }
}

impl Inbox for SharedInbox {
    fn address(&self) -> u64 {
        // Of memory that is mapped, the host and the device have the same address.
        self.memory.memory.as_ptr() as u64
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.memory.number(self.numbers).store(0, Ordering::Release);
        Ok(())
    }

    fn wait(&mut self, numbers: &mut [u64]) -> Result<(), Error> {
        let stream = self.stream.cu_stream();
        while !self.has_come() {
            if (0..Self::LOOKS).any(|_| {
                std::hint::spin_loop();
                self.has_come()
            }) {
                break;
            }
            // SAFETY: the stream is alive.
            let state = unsafe { sys::cuStreamQuery(stream) };
            if state == sys::CUresult::CUDA_ERROR_NOT_READY {
                continue;
            }
            self.health.check("cuStreamQuery", Some(stream), state.result())?;
            if !self.has_come() {
                let message = "the kernel is over and has told nothing".to_owned();
                return Err(Error::Driver {
                    call: "cuStreamQuery",
                    name: "CUDA_SUCCESS".to_owned(),
                    message,
                });
            }
        }
        for (place, number) in numbers.iter_mut().enumerate() {
            *number = self.memory.number(place).load(Ordering::Relaxed);
        }
        Ok(())
    }
}

fn bind(context: &CudaContext, health: &Health) -> Result<(), Error> {
    health.usable()?;
    health.check("cuCtxSetCurrent", None, context.bind_to_thread())
}

fn new_stream(context: &Arc<CudaContext>, health: &Health) -> Result<Arc<CudaStream>, Error> {
    health.usable()?;
    health.check("cuStreamCreate", None, context.new_stream())
}

/// Refuses the default stream that each thread has one of: what is queued on one of them is not ordered behind what is on another.
pub(crate) fn one_stream(stream: &CudaStream) -> Result<(), Error> {
    const PER_THREAD_DEFAULT: u64 = 2;
    match stream.cu_stream() as u64 {
        PER_THREAD_DEFAULT => Err(Error::PerThreadStream),
        _ => Ok(()),
    }
}

/// The handle of a user's stream.
pub(crate) fn stream_handle(stream: &CudaStream) -> StreamHandle {
    /// The legacy default stream is the null pointer for cudarc, which is our own default; CUDA names it 1 too.
    const LEGACY_DEFAULT: u64 = 1;
    match stream.cu_stream() as u64 {
        0 => StreamHandle(LEGACY_DEFAULT),
        handle => StreamHandle(handle),
    }
}

impl Backend for Cuda {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn free_bytes(&self) -> Result<u64, Error> {
        self.bind()?;
        Ok(self.check("cuMemGetInfo", result::mem_get_info())?.0 as u64)
    }

    fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        self.bind()?;
        // SAFETY: a plain allocation in the current context.
        self.check("cuMemAlloc", unsafe { result::malloc_sync(bytes as usize) })
    }

    unsafe fn free(&self, address: u64) {
        // A first call may return the error of a drop before it, which cudarc keeps until then.
        let freed = self.bind().or_else(|_| self.bind()).and_then(|()| {
            // SAFETY: the caller owns the address; cuMemFree waits for what uses it.
            self.check("cuMemFree", unsafe { result::free_sync(address) })
        });
        if let Err(error) = freed {
            tracing::warn!(%error, "device memory was not freed");
        }
    }

    unsafe fn write(&self, address: u64, source: &[u8]) -> Result<(), Error> {
        self.bind()?;
        // SAFETY: the caller promises the room; the source outlives the copy, which is waited for.
        let copied = unsafe { result::memcpy_htod_async(address, source, self.stream.cu_stream()) };
        self.check_on(StreamHandle::default(), "cuMemcpyHtoD", copied)?;
        self.synchronize(StreamHandle::default())
    }

    unsafe fn read(&self, target: &mut [u8], address: u64) -> Result<(), Error> {
        self.bind()?;
        let copy = |target: &mut [u8]| {
            // SAFETY: the caller promises the bytes; the target outlives the copy, which is waited for.
            let copied = unsafe { result::memcpy_dtoh_async(target, address, self.stream.cu_stream()) };
            self.check_on(StreamHandle::default(), "cuMemcpyDtoH", copied)?;
            self.synchronize(StreamHandle::default())
        };
        if target.len() > STAGING_BYTES {
            return copy(target);
        }
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let staging = match &mut *staging {
            Some(staging) => staging,
            none => match PageLocked::new(self.context.clone(), &self.health, STAGING_BYTES) {
                // It only saves time.
                Err(Error::OutOfMemory { .. }) => return copy(target),
                memory => none.insert(memory?),
            },
        };
        let staged = &mut staging.as_mut_slice()[..target.len()];
        copy(staged)?;
        target.copy_from_slice(staged);
        Ok(())
    }

    unsafe fn zero(&self, address: u64, bytes: u64) -> Result<(), Error> {
        self.bind()?;
        // SAFETY: the caller promises the room.
        let zeroed = unsafe { result::memset_d8_async(address, 0, bytes as usize, self.stream.cu_stream()) };
        self.check_on(StreamHandle::default(), "cuMemsetD8", zeroed)
    }

    fn shared_inbox(&self, numbers: usize) -> Result<Option<Box<dyn Inbox>>, Error> {
        self.bind()?;
        let memory = match PageLocked::new(self.context.clone(), &self.health, (numbers + 1) * 8) {
            Err(Error::OutOfMemory { .. }) => return Ok(None),
            memory => memory?,
        };
        let (stream, health) = (self.stream.clone(), self.health.clone());
        Ok(Some(Box::new(SharedInbox { memory, numbers, stream, health })))
    }

    fn synchronize(&self, stream: StreamHandle) -> Result<(), Error> {
        self.bind()?;
        // SAFETY: the stream is this device's own or one that the user keeps alive.
        self.check_on(stream, "cuStreamSynchronize", unsafe { result::stream::synchronize(self.raw(stream)) })
    }

    fn order(&self, before: StreamHandle, after: StreamHandle) -> Result<Order, Error> {
        self.bind()?;
        let capturing = |stream: StreamHandle| {
            // SAFETY: as in `synchronize`.
            let status = unsafe { result::stream::is_capturing(self.raw(stream)) };
            Ok::<_, Error>(
                self.check("cuStreamIsCapturing", status)?
                    != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
            )
        };
        // The legacy default stream cannot be asked while a blocking stream is captured, and need not be where that is `after`.
        if capturing(after)? {
            return Ok(Order::AfterIsCaptured);
        }
        if capturing(before)? {
            return Ok(Order::BeforeIsCaptured);
        }
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
        let event = self.check("cuEventCreate", result::event::create(flags))?;
        // SAFETY: the event is alive until it is destroyed; CUDA defers that until it has been reached.
        unsafe {
            let recorded =
                self.check_on(before, "cuEventRecord", result::event::record(event, self.raw(before)));
            let waits = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
            let ordered = recorded.and_then(|()| {
                self.check_on(
                    after,
                    "cuStreamWaitEvent",
                    result::stream::wait_event(self.raw(after), event, waits),
                )
            });
            ordered.and(self.check("cuEventDestroy", result::event::destroy(event))).map(|()| Order::Made)
        }
    }

    fn load(&self, image: &Image) -> Result<Arc<dyn Module>, LoadError> {
        self.bind().map_err(LoadError::Failed)?;
        let ptx = image.cubin.is_empty().then(|| CString::new(image.ptx.as_bytes()).unwrap_or_default());
        let image = ptx.as_ref().map_or(image.cubin.as_ptr().cast(), |ptx| ptx.as_ptr().cast::<c_void>());
        // SAFETY: the image is a complete cubin, whose ELF header holds its size, or a C string of PTX.
        let loaded = unsafe { result::module::load_data(image) };
        use sys::CUresult as R;
        match loaded {
            Ok(handle) => Ok(Arc::new(CudaModule {
                context: self.context.clone(),
                health: self.health.clone(),
                handle,
                captures_early_launches: self.properties.driver_version >= CAPTURES_EARLY_LAUNCHES_FROM,
            })),
            Err(error) => {
                let rejected = matches!(
                    error.0,
                    R::CUDA_ERROR_INVALID_IMAGE
                        | R::CUDA_ERROR_NO_BINARY_FOR_GPU
                        | R::CUDA_ERROR_INVALID_PTX
                        | R::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                        | R::CUDA_ERROR_INVALID_SOURCE
                        | R::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
                        | R::CUDA_ERROR_INVALID_VALUE
                );
                let error = self.check::<()>("cuModuleLoadData", Err(error)).expect_err("an error stays one");
                Err(if rejected { LoadError::Rejected(error) } else { LoadError::Failed(error) })
            }
        }
    }

    unsafe fn launch(&self, launch: Launch<'_>, stream: StreamHandle) -> Result<(), Error> {
        self.bind()?;
        let mut pointers = [std::ptr::null_mut::<c_void>(); MAX_ARGS];
        for (pointer, argument) in pointers.iter_mut().zip(launch.arguments()) {
            *pointer = argument.as_ptr().cast_mut().cast();
        }
        // Taken only by a kernel that waits for what is ahead of it before it touches memory.
        let mut early = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: launch.grid,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: launch.threads_per_block,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: launch.shared_bytes,
            hStream: self.raw(stream),
            attrs: &raw mut early,
            numAttrs: launch.function.awaits_stream.into(),
        };
        // SAFETY: the caller promises that the arguments fit the kernel; the driver copies them and the attribute before
        // it returns.
        let launched = unsafe {
            sys::cuLaunchKernelEx(
                &raw const config,
                launch.function.handle as sys::CUfunction,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.check_on(stream, "cuLaunchKernelEx", launched.result())?;
        self.health.launched(self.raw(stream), launch.function);
        Ok(())
    }

    fn time(
        &self,
        untimed: u32,
        times: u32,
        work: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<f64, Error> {
        self.bind()?;
        let event = || self.check("cuEventCreate", Event::new());
        let (before, after) = (event()?, event()?);
        let record = |event: &Event| {
            // SAFETY: event and stream are alive.
            let recorded = unsafe { result::event::record(event.0, self.stream.cu_stream()) };
            self.check_on(StreamHandle::default(), "cuEventRecord", recorded)
        };
        self.queued(|| {
            (0..untimed).try_for_each(|_| work())?;
            record(&before)?;
            (0..times).try_for_each(|_| work())?;
            record(&after)
        })?;
        self.synchronize(StreamHandle::default())?;
        // SAFETY: both events were recorded and have been reached.
        let ms = unsafe { result::event::elapsed(before.0, after.0) };
        Ok(f64::from(self.check("cuEventElapsedTime", ms)?) / f64::from(times.max(1)))
    }
}

/// An event that takes the time.
struct Event(sys::CUevent);

impl Event {
    fn new() -> Result<Event, DriverError> {
        result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map(Event)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event is alive, and CUDA defers its end until it has been reached.
        if let Err(error) = unsafe { result::event::destroy(self.0) } {
            tracing::debug!(?error, "an event was not destroyed");
        }
    }
}

#[derive(Debug)]
struct CudaModule {
    context: Arc<CudaContext>,
    health: Arc<Health>,
    handle: sys::CUmodule,
    captures_early_launches: bool,
}

impl CudaModule {
    fn check<T>(&self, call: &'static str, result: Result<T, DriverError>) -> Result<T, Error> {
        self.health.check(call, None, result)
    }
}

// SAFETY: a module handle may be used from any thread that has its context current.
unsafe impl Send for CudaModule {}
// SAFETY: as above; the driver locks.
unsafe impl Sync for CudaModule {}

impl Module for CudaModule {
    fn function(&self, name: &str) -> Result<Function, Error> {
        use sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION as PTX_VERSION;
        bind(&self.context, &self.health)?;
        let kernel = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded.
        let function = unsafe { result::module::get_function(self.handle, kernel) };
        if function.as_ref().is_err_and(|error| error.0 == sys::CUresult::CUDA_ERROR_NOT_FOUND) {
            return Err(Error::MissingKernel { kernel: name.to_owned() });
        }
        let function = self.check("cuModuleGetFunction", function)?;
        // SAFETY: the function belongs to this module.
        let compiled_for = unsafe { result::function::get_function_attribute(function, PTX_VERSION) };
        let compiled_for = self.check("cuFuncGetAttribute", compiled_for)?;
        let awaits_stream = compiled_for >= AWAITS_STREAM_FROM && self.captures_early_launches;
        let function = Function { handle: function as u64, awaits_stream };
        self.health.loaded(function, name);
        Ok(function)
    }

    fn allow_shared(&self, function: Function, pass: &Pass) -> Result<(), Error> {
        use sys::CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN as PER_BLOCK,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR as PER_MULTIPROCESSOR,
            CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK as RESERVED,
        };
        use sys::CUfunction_attribute::{
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as DYNAMIC,
            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT as CARVEOUT,
            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES as STATIC,
        };
        bind(&self.context, &self.health)?;
        let kernel = function.handle as sys::CUfunction;
        let of_device = |attribute| {
            let value = self.check("cuDeviceGetAttribute", self.context.attribute(attribute))?;
            Ok::<u32, Error>(u32::try_from(value).unwrap_or(0))
        };
        let set = |attribute, value: u32| {
            // SAFETY: the function belongs to this module; the driver allows what the device has.
            let done = unsafe { result::function::set_function_attribute(kernel, attribute, value as i32) };
            self.check("cuFuncSetAttribute", done)
        };
        // SAFETY: the function belongs to this module.
        let fixed = unsafe { result::function::get_function_attribute(kernel, STATIC) };
        let fixed = u32::try_from(self.check("cuFuncGetAttribute", fixed)?).unwrap_or(0);
        if pass.shared_bytes > 0 {
            let available = of_device(PER_BLOCK)?.saturating_sub(fixed);
            if pass.shared_bytes > available {
                let (kernel, needed) = (pass.kernel.clone(), pass.shared_bytes);
                return Err(Error::SharedMemory { kernel, needed, available });
            }
            set(DYNAMIC, pass.shared_bytes)?;
        }
        // Shared memory and L1 are one memory, of which the driver may share more than the resident blocks use. It decides well
        // for blocks that use little, and a plan that sizes shared memory itself leaves nothing unused.
        if fixed < 1024 || pass.shared_bytes > 0 {
            return Ok(());
        }
        set(CARVEOUT, 100)?;
        let blocks = self.resident_blocks(function, pass.threads_per_block, 0)?;
        let used = blocks * (fixed.next_multiple_of(128) + of_device(RESERVED)?);
        let percent = (100 * u64::from(used)).div_ceil(u64::from(of_device(PER_MULTIPROCESSOR)?.max(1)));
        set(CARVEOUT, percent.min(100) as u32)
    }

    fn resident_blocks(&self, function: Function, threads: u32, shared_bytes: u32) -> Result<u32, Error> {
        bind(&self.context, &self.health)?;
        let function = function.handle as sys::CUfunction;
        // SAFETY: the function belongs to this module.
        let blocks = unsafe {
            result::occupancy::max_active_block_per_multiprocessor(
                function,
                threads as i32,
                shared_bytes as usize,
            )
        };
        Ok(u32::try_from(self.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", blocks)?).unwrap_or(0))
    }
}

impl Drop for CudaModule {
    fn drop(&mut self) {
        let bound = bind_for_drop(&self.context);
        // SAFETY: the module was loaded in this context and nothing holds its functions any more.
        if let Err(error) = bound.and_then(|()| unsafe { result::module::unload(self.handle) }) {
            tracing::debug!(?error, "a module was not unloaded");
        }
    }
}
