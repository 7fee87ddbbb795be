//! What it costs to get to a product: compiling, loading from the disk cache, from memory, and the host's share
//! of a product beside the bare driver launch. Prints a table; with `--record` writes
//! `benches/record/<gpu>/latency.json` as well.
//!
//! usage: latency [--record FOLDER]

mod record;

use std::ffi::c_void;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spmv_codegen::{Algorithm, KernelConfig, ValueType};
use spmv_matrix::generate::Generator;
use spmv_runtime::cache::{CacheLocation, DiskCache};
use spmv_runtime::cudarc::driver::{result, sys};
use spmv_runtime::{Compiler, Device, Nvrtc, Origin, Spmv, Vector};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let device = match Device::open() {
        Ok(device) => device,
        Err(error) => {
            println!("nothing to measure: {error}");
            return Ok(());
        }
    };
    let nvrtc = Nvrtc::find()?;
    let configs = configs()?;
    let folder = std::env::temp_dir().join(format!("spmv-latency-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let rows = measure(&device, &configs, &folder);
    std::fs::remove_dir_all(&folder)?;
    let rows = rows?;
    let title = format!("{} kernels, NVRTC {}, {}", configs.len(), nvrtc.version(), device.properties().name);
    record::table(&title, &rows);
    record::write_if_asked("latency", &device, &rows)?;
    let missed: Vec<_> = rows.iter().filter(|row| !row.met()).map(|row| row.what).collect();
    if missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", missed.join(", ")).into()) }
}

/// The default configuration of every algorithm in f32 and f64.
fn configs() -> Outcome<Vec<KernelConfig>> {
    let types = [ValueType::F32, ValueType::F64];
    let both = Algorithm::ALL.iter().flat_map(|spec| types.map(|value| (spec.name, value)));
    both.map(|(name, value)| Ok(KernelConfig::named(name)?.value(value).build()?)).collect()
}

fn measure(device: &Device, configs: &[KernelConfig], folder: &std::path::Path) -> Outcome<Vec<record::Row>> {
    let uncached = || Arc::new(Compiler::new(DiskCache::open(&CacheLocation::off())));
    let cached = || Arc::new(Compiler::new(DiskCache::open(&CacheLocation::folder(folder))));
    let mut rows = Vec::new();

    // Cold: generated, compiled and loaded, the very first one included.
    let cold = configs.iter().map(|config| timed(|| device.with_compiler(uncached()).kernel(config)));
    rows.push(record::Row::of("cold compile and load", cold.collect::<Outcome<Vec<_>>>()?, 250e-3));

    // As a device loads it, whose texts may be compiled side by side, and as one image, which is another entry.
    for config in configs {
        device.with_compiler(cached()).kernel(config)?;
        cached().compile(config, &device.properties().arch)?;
    }
    let mut lookups = Vec::new();
    let mut loads = Vec::new();
    for config in configs {
        // A compiler of its own has nothing in memory; opening the cache is part of neither.
        let compiler = cached();
        let arch = &device.properties().arch;
        let started = Instant::now();
        let (artifact, origin) = compiler.compile(config, arch)?;
        lookups.push(started.elapsed());
        assert_eq!(origin, Origin::Disk);
        black_box(artifact);
        let fresh = device.with_compiler(cached());
        loads.push(timed(|| fresh.kernel(config))?);
    }
    rows.push(record::Row::of("from the disk cache", lookups, 1e-3));
    rows.push(record::Row::of("from the disk cache and loaded into the context", loads, 1e-3));

    let mut hits = Vec::new();
    for config in configs {
        device.kernel(config)?;
        const CALLS: u32 = 1000;
        let elapsed = timed(|| {
            (0..CALLS)
                .try_for_each(|_| device.kernel(black_box(config)).map(|kernel| drop(black_box(kernel))))
        })?;
        hits.push(elapsed / CALLS);
    }
    rows.push(record::Row::of("from memory", hits, 2e-6));

    let (apply, bare) = launches(device)?;
    let beyond = apply.iter().zip(&bare).map(|(apply, bare)| apply.saturating_sub(*bare)).collect();
    rows.push(record::Row::of("apply, host time", apply, f64::INFINITY));
    rows.push(record::Row::of("bare cuLaunchKernel, host time", bare, f64::INFINITY));
    rows.push(record::Row::of("apply beyond the bare launch", beyond, 1e-6));
    Ok(rows)
}

fn timed<T, E>(run: impl FnOnce() -> Result<T, E>) -> Outcome<Duration>
where
    Box<dyn std::error::Error>: From<E>,
{
    let started = Instant::now();
    run()?;
    Ok(started.elapsed())
}

/// Host time of one product and of the same kernel launched bare, in interleaved batches that never fill the
/// driver's queue.
fn launches(device: &Device) -> Outcome<(Vec<Duration>, Vec<Duration>)> {
    const BATCH: u32 = 200;
    const SAMPLES: usize = 101;
    let a = Generator::new("diagonal")?.set("n", 1000.0)?.generate::<f32, u32>()?;
    let config = KernelConfig::named("csr_scalar")?.build()?;
    let mut plan = Spmv::with(device, &a, config)?;
    let x = Vector::from_slice(device, &vec![1.0f32; a.num_cols()])?;
    let mut y = Vector::<f32>::zeros(device, a.num_rows())?;

    // The same kernel with arguments of its own: what a program without this library would launch.
    let (context, stream) = device.as_cuda().ok_or("not a CUDA device")?;
    context.bind_to_thread()?;
    let image = plan.kernel().artifact().images[0].cubin.as_ptr().cast::<c_void>();
    // SAFETY: the image is a complete cubin.
    let module = unsafe { result::module::load_data(image) }?;
    // SAFETY: the module was loaded just now.
    let function = unsafe { result::module::get_function(module, c"spmv_csr_scalar".into()) }?;
    let own = |entries: &[u32]| -> Outcome<sys::CUdeviceptr> {
        // SAFETY: the allocation is as large as what is copied into it; it lives as long as the process.
        unsafe {
            let address = result::malloc_sync(size_of_val(entries))?;
            result::memcpy_htod_sync(address, entries)?;
            Ok(address)
        }
    };
    let values: Vec<u32> = a.values().iter().map(|value| value.to_bits()).collect();
    let mut row_count = a.num_rows() as u32;
    let mut pointers =
        [own(a.row_offsets())?, own(a.col_indices())?, own(&values)?, x.address(), y.address()];
    // The copies may still be under way, and the stream does not wait for them.
    context.synchronize()?;
    let (mut alpha, mut beta) = (1.0f32, 0.0f32);
    let mut arguments: Vec<*mut c_void> = vec![(&raw mut row_count).cast()];
    arguments.extend(pointers.iter_mut().map(|pointer| (&raw mut *pointer).cast::<c_void>()));
    arguments.extend([(&raw mut alpha).cast::<c_void>(), (&raw mut beta).cast()]);
    let grid = (a.num_rows() as u32).div_ceil(256);

    let (mut apply, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        device.synchronize()?;
        let elapsed = timed(|| (0..BATCH).try_for_each(|_| plan.apply(1.0f32, &x, 0.0f32, &mut y)))?;
        apply.push(elapsed / BATCH);
        device.synchronize()?;
        let elapsed = timed(|| {
            (0..BATCH).try_for_each(|_| {
                // SAFETY: the arguments are those of the kernel, and all memory outlives the launches.
                unsafe {
                    result::launch_kernel(
                        function,
                        (grid, 1, 1),
                        (256, 1, 1),
                        0,
                        stream.cu_stream(),
                        &mut arguments,
                    )
                }
            })
        })?;
        bare.push(elapsed / BATCH);
    }
    device.synchronize()?;
    Ok((apply, bare))
}
