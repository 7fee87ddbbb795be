//! What measures on a CUDA device: events, memory of one's own, and the kernels of `instruments.cu`.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use spmv_runtime::cudarc::driver::result::{self, DriverError};
use spmv_runtime::cudarc::driver::{CudaContext, CudaStream, sys};
use spmv_runtime::{CompileRequest, Device, Image, Nvrtc};

use crate::quartiles::Quartiles;

const SOURCE: &str = include_str!("instruments.cu");

/// Threads of a block of every kernel here.
const THREADS: u32 = 512;

/// The buffer that flushes the L2 cache is so many times as large.
const FLUSH_FACTOR: u64 = 4;

/// Bytes that the copy kernel reads, and writes as many: far beyond any cache.
const COPY_BYTES: u64 = 1 << 30;

const COPY_SAMPLES: usize = 15;

/// Empty launches that follow one another in a sample.
const LAUNCHES: u32 = 200;

/// What the stream is kept busy for while the host launches a kernel, with what it records about it.
const LAUNCH_NANOSECONDS: u64 = 20_000;

/// A CUDA device with what measures on it. Everything runs on the device's own stream.
pub(crate) struct Instruments {
    device: Device,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    module: Module,
    flush: Memory,
    sink: Memory,
    multiprocessors: u32,
}

/// An error of the driver with the call that met it.
fn check<T>(call: &str, result: Result<T, DriverError>) -> Result<T, String> {
    let text = |text: Result<&std::ffi::CStr, DriverError>| {
        text.map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned())
    };
    result.map_err(|error| {
        format!("{call} failed: {} ({})", text(error.error_name()), text(error.error_string()))
    })
}

/// Memory of the device, freed when dropped.
#[derive(Debug)]
pub(crate) struct Memory {
    context: Arc<CudaContext>,
    address: u64,
    bytes: u64,
}

impl Memory {
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0 && binds_for_drop(&self.context) {
            // SAFETY: the address was allocated in this context and its owner goes away; cuMemFree waits for what
            // uses it. Where the context is lost there is nothing left to free.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}

struct Module {
    context: Arc<CudaContext>,
    handle: sys::CUmodule,
    empty: sys::CUfunction,
    copy: sys::CUfunction,
    flush: sys::CUfunction,
    pause: sys::CUfunction,
    differing: sys::CUfunction,
}

impl Drop for Module {
    fn drop(&mut self) {
        if binds_for_drop(&self.context) {
            // SAFETY: the module was loaded in this context, and its functions go away with it.
            let _ = unsafe { result::module::unload(self.handle) };
        }
    }
}

/// A pair of events on a stream.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    context: Arc<CudaContext>,
    events: [sys::CUevent; 2],
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        if binds_for_drop(&self.context) {
            for event in self.events {
                // SAFETY: the events were created in this context and are destroyed once.
                let _ = unsafe { result::event::destroy(event) };
            }
        }
    }
}

/// Memory of the host that the device copies to at full speed.
pub(crate) struct Pinned<V> {
    context: Arc<CudaContext>,
    start: *mut V,
    len: usize,
}

impl<V: Copy + Default> Pinned<V> {
    pub(crate) fn as_mut_slice(&mut self) -> &mut [V] {
        // SAFETY: `start` points to `len` entries that were written when it was allocated, and belongs to this alone.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl<V> Drop for Pinned<V> {
    fn drop(&mut self) {
        if binds_for_drop(&self.context) {
            // SAFETY: the memory came from cuMemHostAlloc, and nothing copies to it any more.
            let _ = unsafe { result::free_host(self.start.cast()) };
        }
    }
}

impl Instruments {
    /// Compiles and loads the kernels, and takes the memory that a flush needs.
    pub(crate) fn new(device: &Device) -> Result<Instruments, String> {
        let (context, stream) = device.as_cuda().ok_or("not a CUDA device")?;
        let (context, stream) = (context.clone(), stream.clone());
        let properties = device.properties();
        let cubin = compile(&properties.arch)?;
        check("cuCtxSetCurrent", context.bind_to_thread())?;
        let module = load(&context, &cubin)?;
        let allocate = |bytes: u64| allocate(&context, bytes);
        let flush = allocate((properties.l2_bytes * FLUSH_FACTOR).max(64 << 20))?;
        let sink = allocate(16)?;
        let instruments = Instruments {
            multiprocessors: properties.multiprocessors,
            device: device.clone(),
            flush,
            sink,
            module,
            context,
            stream,
        };
        instruments.set(&instruments.flush, 0)?;
        instruments.synchronize()?;
        Ok(instruments)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The stream, as cuSPARSE takes it.
    pub(crate) fn raw_stream(&self) -> *mut c_void {
        self.stream.cu_stream().cast()
    }

    /// Makes the context current on this thread: libraries of the CUDA runtime take the one that is.
    pub(crate) fn bind(&self) -> Result<(), String> {
        check("cuCtxSetCurrent", self.context.bind_to_thread())
    }

    pub(crate) fn synchronize(&self) -> Result<(), String> {
        self.bind()?;
        // SAFETY: the stream is alive.
        check("cuStreamSynchronize", unsafe { result::stream::synchronize(self.stream.cu_stream()) })
    }

    /// Memory with undefined content.
    pub(crate) fn allocate(&self, bytes: u64) -> Result<Memory, String> {
        allocate(&self.context, bytes)
    }

    /// Memory that holds a copy of a slice.
    pub(crate) fn upload<T: Copy>(&self, source: &[T]) -> Result<Memory, String> {
        let memory = self.allocate(size_of_val(source) as u64)?;
        if !source.is_empty() {
            // SAFETY: the memory was made for the slice, which outlives the copy: it is waited for.
            let copied =
                unsafe { result::memcpy_htod_async(memory.address, source, self.stream.cu_stream()) };
            check("cuMemcpyHtoD", copied)?;
            self.synchronize()?;
        }
        Ok(memory)
    }

    /// Host memory that the device copies to directly.
    pub(crate) fn pinned<V: Copy + Default>(&self, len: usize) -> Result<Pinned<V>, String> {
        self.bind()?;
        let bytes = (len * size_of::<V>()).max(1);
        // SAFETY: a plain allocation; the driver aligns it to pages.
        let start: *mut V = check("cuMemHostAlloc", unsafe { result::malloc_host(bytes, 0) })?.cast();
        for index in 0..len {
            // SAFETY: the allocation holds `len` entries.
            unsafe { start.add(index).write(V::default()) };
        }
        Ok(Pinned { context: self.context.clone(), start, len })
    }

    /// Sets every byte, in stream order.
    pub(crate) fn set(&self, memory: &Memory, byte: u8) -> Result<(), String> {
        self.set_raw(memory.address, memory.bytes, byte)
    }

    /// As [`Instruments::set`], for memory of others: `bytes` from `address` on belong to it.
    pub(crate) fn set_raw(&self, address: u64, bytes: u64, byte: u8) -> Result<(), String> {
        if bytes == 0 {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the caller names bytes of one allocation of this device.
        let set = unsafe { result::memset_d8_async(address, byte, bytes as usize, self.stream.cu_stream()) };
        check("cuMemsetD8", set)
    }

    /// Copies between allocations of the device, in stream order.
    pub(crate) fn copy_raw(&self, to: u64, from: u64, bytes: u64) -> Result<(), String> {
        if bytes == 0 {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the caller names bytes of two allocations of this device.
        let copied = unsafe { result::memcpy_dtod_async(to, from, bytes as usize, self.stream.cu_stream()) };
        check("cuMemcpyDtoD", copied)
    }

    pub(crate) fn stopwatch(&self) -> Result<Stopwatch, String> {
        self.bind()?;
        let event = || check("cuEventCreate", result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT));
        Ok(Stopwatch { context: self.context.clone(), events: [event()?, event()?] })
    }

    pub(crate) fn start(&self, watch: &Stopwatch) -> Result<(), String> {
        self.record(watch.events[0])
    }

    pub(crate) fn stop(&self, watch: &Stopwatch) -> Result<(), String> {
        self.record(watch.events[1])
    }

    fn record(&self, event: sys::CUevent) -> Result<(), String> {
        self.bind()?;
        // SAFETY: event and stream are alive and of one context.
        check("cuEventRecord", unsafe { result::event::record(event, self.stream.cu_stream()) })
    }

    /// Milliseconds between start and stop, which are over.
    pub(crate) fn elapsed_ms(&self, watch: &Stopwatch) -> Result<f64, String> {
        self.bind()?;
        // SAFETY: both events are alive.
        let ms = unsafe { result::event::elapsed(watch.events[0], watch.events[1]) };
        Ok(f64::from(check("cuEventElapsedTime", ms)?))
    }

    /// Empties the L2 cache of everything else, in stream order.
    pub(crate) fn flush(&self) -> Result<(), String> {
        let (quads, never) = (self.flush.bytes / 16, 1u32);
        let args = [self.flush.address, quads, never.into(), self.sink.address];
        self.launch(self.module.flush, self.multiprocessors * 4, &args)
    }

    /// Keeps the stream busy while the host fills it.
    pub(crate) fn pause(&self, nanoseconds: u64) -> Result<(), String> {
        self.launch_shape(self.module.pause, 1, 1, &[nanoseconds])
    }

    /// How many 32-bit words of two allocations differ, which hold so many bytes, an even number. Waits.
    pub(crate) fn differing(&self, a: u64, b: u64, bytes: u64) -> Result<u32, String> {
        self.set(&self.sink, 0)?;
        self.launch(self.module.differing, self.multiprocessors * 4, &[a, b, bytes, self.sink.address])?;
        let mut found = [0u32];
        // SAFETY: the sink holds the word, and `found` outlives the copy: it is waited for.
        let copied =
            unsafe { result::memcpy_dtoh_async(&mut found[..], self.sink.address, self.stream.cu_stream()) };
        check("cuMemcpyDtoH", copied)?;
        self.synchronize()?;
        Ok(found[0])
    }

    /// GB/s that a copy of [`COPY_BYTES`] moves, reads and writes counted: the best median of several grids.
    pub(crate) fn copy_gb_per_s(&self) -> Result<f64, String> {
        let (from, to) = (self.allocate(COPY_BYTES)?, self.allocate(COPY_BYTES)?);
        self.set(&from, 1)?;
        let quads = COPY_BYTES / 16;
        let all = quads.div_ceil(THREADS.into()) as u32;
        let grids = [1, 2, 4, 8, 16].map(|blocks| self.multiprocessors * blocks);
        let watch = self.stopwatch()?;
        let mut best = f64::INFINITY;
        for grid in grids.into_iter().chain([all]) {
            let mut times = Vec::with_capacity(COPY_SAMPLES);
            // The first one warms up.
            for sample in 0..=COPY_SAMPLES {
                self.pause(LAUNCH_NANOSECONDS)?;
                self.start(&watch)?;
                self.launch(self.module.copy, grid, &[from.address, to.address, quads])?;
                self.stop(&watch)?;
                self.synchronize()?;
                if sample > 0 {
                    times.push(self.elapsed_ms(&watch)?);
                }
            }
            best = best.min(Quartiles::of(times).map_or(f64::INFINITY, |times| times.median));
        }
        Ok(2.0 * COPY_BYTES as f64 / (best * 1e6))
    }

    /// Milliseconds of a launch of an empty kernel among launches that follow one another, which the GPU has before it begins.
    pub(crate) fn launch_ms(&self) -> Result<f64, String> {
        let watch = self.stopwatch()?;
        let mut times = Vec::with_capacity(COPY_SAMPLES);
        for _ in 0..=COPY_SAMPLES {
            self.pause(u64::from(LAUNCHES) * LAUNCH_NANOSECONDS)?;
            self.start(&watch)?;
            for _ in 0..LAUNCHES {
                self.launch_shape(self.module.empty, 1, 32, &[])?;
            }
            self.stop(&watch)?;
            self.synchronize()?;
            times.push(self.elapsed_ms(&watch)? / f64::from(LAUNCHES));
        }
        Ok(Quartiles::of(times).map_or(0.0, |times| times.median))
    }

    /// The most threads that a multiprocessor holds.
    pub(crate) fn threads_per_multiprocessor(&self) -> Result<u32, String> {
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR;
        let number = check("cuDeviceGetAttribute", self.context.attribute(attribute))?;
        Ok(u32::try_from(number).unwrap_or(0))
    }

    fn launch(&self, function: sys::CUfunction, grid: u32, args: &[u64]) -> Result<(), String> {
        self.launch_shape(function, grid, THREADS, args)
    }

    fn launch_shape(
        &self,
        function: sys::CUfunction,
        grid: u32,
        threads: u32,
        args: &[u64],
    ) -> Result<(), String> {
        self.bind()?;
        let mut pointers: Vec<*mut c_void> =
            args.iter().map(|arg| std::ptr::from_ref(arg).cast_mut().cast()).collect();
        // SAFETY: every kernel here takes arguments of at most 8 bytes, little-endian in their slots, in the order
        // in which they are given; the driver copies them before it returns.
        let launched = unsafe {
            result::launch_kernel(
                function,
                (grid.max(1), 1, 1),
                (threads, 1, 1),
                0,
                self.stream.cu_stream(),
                &mut pointers,
            )
        };
        check("cuLaunchKernel", launched)
    }
}

/// Makes the context current for a drop. A first call may return the error of a drop before it, which cudarc keeps until then.
fn binds_for_drop(context: &CudaContext) -> bool {
    context.bind_to_thread().or_else(|_| context.bind_to_thread()).is_ok()
}

fn allocate(context: &Arc<CudaContext>, bytes: u64) -> Result<Memory, String> {
    check("cuCtxSetCurrent", context.bind_to_thread())?;
    let address = match bytes {
        0 => 0,
        // SAFETY: a plain allocation in the current context.
        _ => check(&format!("cuMemAlloc of {bytes} bytes"), unsafe { result::malloc_sync(bytes as usize) })?,
    };
    Ok(Memory { context: context.clone(), address, bytes })
}

/// Machine code of `instruments.cu`, or PTX where NVRTC does not know the architecture.
fn compile(arch: &str) -> Result<Vec<u8>, String> {
    let nvrtc = Nvrtc::find().map_err(|error| error.to_string())?;
    let arch = match nvrtc.check_arch(arch) {
        Ok(()) => arch.to_owned(),
        Err(_) => format!("compute_{}", nvrtc.archs().iter().max().copied().unwrap_or_default()),
    };
    let version = nvrtc.version();
    let request = CompileRequest {
        source: SOURCE.to_owned(),
        options: vec![format!("--gpu-architecture={arch}"), "--std=c++17".to_owned()],
        arch,
        nvrtc_version: (version.major, version.minor),
        nvrtc_bytes: nvrtc.bytes(),
        driver_version: None,
    };
    let mut images = nvrtc.compile(&request).map_err(|error| error.to_string())?.images;
    let Image { cubin, ptx } = images.pop().unwrap_or_default();
    Ok(match cubin.is_empty() {
        true => CString::new(ptx).unwrap_or_default().into_bytes_with_nul(),
        false => cubin,
    })
}

fn load(context: &Arc<CudaContext>, image: &[u8]) -> Result<Module, String> {
    // SAFETY: the image is a complete cubin or a C string of PTX.
    let handle = check("cuModuleLoadData", unsafe { result::module::load_data(image.as_ptr().cast()) })?;
    let function = |name: &str| {
        // SAFETY: the module is loaded.
        let function =
            unsafe { result::module::get_function(handle, CString::new(name).unwrap_or_default()) };
        check("cuModuleGetFunction", function)
    };
    Ok(Module {
        empty: function("bench_empty")?,
        copy: function("bench_copy")?,
        flush: function("bench_flush")?,
        pause: function("bench_pause")?,
        differing: function("bench_differing")?,
        context: context.clone(),
        handle,
    })
}

#[cfg(test)]
mod tests {
    use spmv_runtime::ptx_sim::{Arg, Launch, Module, Simulator};

    use super::*;

    /// The kernels on the simulator; the pause, which waits for a clock, is for GPUs.
    #[test]
    fn kernels_do_what_they_say() {
        let nvrtc = Nvrtc::find().expect("the test needs NVRTC");
        let version = nvrtc.version();
        let request = CompileRequest {
            source: SOURCE
                .replace("asm volatile", "// asm volatile")
                .replace("start, now;", "start = 0, now = 0;"),
            options: vec!["--gpu-architecture=sm_90".to_owned(), "--std=c++17".to_owned()],
            arch: "sm_90".to_owned(),
            nvrtc_version: (version.major, version.minor),
            nvrtc_bytes: nvrtc.bytes(),
            driver_version: None,
        };
        let module = Module::load(&nvrtc.compile(&request).unwrap().images[0].ptx).unwrap();
        let mut simulator = Simulator::new();
        let words: Vec<u8> = (0..4000u32).flat_map(|word| word.to_le_bytes()).collect();
        let [from, to, sink] = [16_000, 16_000, 4].map(|bytes| simulator.allocate(bytes).unwrap());
        simulator.write(from, &words).unwrap();
        simulator.write(to, &words).unwrap();
        simulator.write(to + 4 * 1234, &[0; 8]).unwrap();
        simulator.write(sink, &[0; 4]).unwrap();
        // As many of the bytes as a parameter has.
        let arg = |word: &u64| Arg::Bytes(word.to_le_bytes().to_vec());
        let launch = |args: &[u64]| args.iter().map(arg).fold(Launch::new(3, 128), Launch::arg);
        let differing = |simulator: &mut Simulator, bytes: u64| {
            simulator.write(sink, &[0; 4]).unwrap();
            simulator.launch(&module, "bench_differing", &launch(&[from, to, bytes, sink])).unwrap();
            let mut found = [0; 4];
            simulator.read(sink, &mut found).unwrap();
            u32::from_le_bytes(found)
        };
        assert_eq!(differing(&mut simulator, 16_000), 2);
        assert_eq!(differing(&mut simulator, 4 * 1234 + 2), 1);
        assert_eq!(differing(&mut simulator, 4 * 1234), 0);
        simulator.launch(&module, "bench_copy", &launch(&[from, to, 1000])).unwrap();
        assert_eq!(differing(&mut simulator, 16_000), 0);
        let report = simulator.launch(&module, "bench_flush", &launch(&[from, 1000, 1, sink])).unwrap();
        assert_eq!(report.counters.global_load_bytes, 16_000);
        simulator.launch(&module, "bench_empty", &launch(&[])).unwrap();
    }
}
