//! The simulator against a GPU: artifacts of one compile run on both, the machine code on the GPU and the PTX in
//! the simulator, and must leave the same bits, but for what tensor cores add of halves. Without a GPU everything shows as ignored, and as failed with
//! `SPMV_REQUIRE_GPU=1`. The program needs nothing beside itself, so it travels to a GPU machine alone.

mod cover;
mod cuda;
mod structures;
mod typed;

use std::ffi::{CString, c_void};
use std::process::ExitCode;
use std::sync::Arc;

use cuda::expressions::{Table, as_bytes, as_words, tables};
use cuda::kernels::{Kernel, kernels, settings};
use libtest_mimic::{Arguments, Failed, Trial};
use ptx_sim::{Arg, Launch, Module, Simulator};
use spmv_codegen::{Algorithm, KernelConfig, ValueKind, ValueType};
use spmv_matrix::generate::Generator;
use spmv_matrix::{Complex64, CsrMatrix, bf16, f16};
use spmv_runtime::cudarc::driver::result;
use spmv_runtime::{Artifact, Device, Error, RealElement, Vector};
use structures::random;
use typed::AnyVector;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let required = std::env::var("SPMV_REQUIRE_GPU").is_ok_and(|value| value == "1");
    let simulator = Device::simulator();
    let gpu = Device::cuda(0).map_err(|error| error.to_string());
    let same_arch = gpu.clone().and_then(|gpu| {
        let (real, simulated) = (&gpu.properties().arch, &simulator.properties().arch);
        let differ =
            format!("the GPU is {real} and the simulated device {simulated}: no artifact runs on both");
        if real == simulated { Ok(gpu) } else { Err(differ) }
    });
    let mut trials = Vec::new();
    let mut add = |name: String, missing: bool, test: Box<dyn FnOnce() -> Result<(), Failed> + Send>| {
        trials.push(Trial::test(name, test).with_ignored_flag(missing && !required));
    };
    for matrix in MATRICES {
        for config in configs() {
            let (gpu, simulator) = (same_arch.clone(), simulator.clone());
            let name = format!("product/{}/{config}", matrix.class);
            let test = move || matrix.compare(&gpu?, &simulator, &config);
            add(name, same_arch.is_err(), Box::new(test));
        }
    }
    for len in [1usize, 31, 257, 1025, 300_000] {
        let (gpu, simulator) = (same_arch.clone(), simulator.clone());
        let test = move || {
            let gpu = gpu?;
            compare_vectors::<f16>(&gpu, &simulator, len)?;
            compare_vectors::<bf16>(&gpu, &simulator, len)?;
            compare_vectors::<f32>(&gpu, &simulator, len)?;
            compare_vectors::<i32>(&gpu, &simulator, len)?;
            compare_vectors::<f64>(&gpu, &simulator, len)
        };
        add(format!("vectors/{len}"), same_arch.is_err(), Box::new(test));
    }
    for table in tables() {
        let device = gpu.clone();
        let name = format!("expressions/{}", table.name);
        add(name, gpu.is_err(), Box::new(move || compare_expressions(&device?, &table)));
    }
    for kernel in kernels() {
        let device = gpu.clone();
        let name = format!("kernels/{}", kernel.name);
        add(name, gpu.is_err(), Box::new(move || compare_kernel(&device?, &kernel)));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(missing) = same_arch.err() {
        println!("cuda: {missing}");
    }
    conclusion.exit_code()
}

/// Every algorithm: its default in half, single, double and mixed precision, every eighth configuration of the cover, and
/// integers, truth values and complex numbers.
fn configs() -> Vec<KernelConfig> {
    let mut configs = Vec::new();
    for spec in Algorithm::ALL {
        let with = |value, x, y, accumulator| {
            let builder = KernelConfig::builder((spec.default)());
            builder.value(value).x(x).y(y).accumulator(accumulator).build()
        };
        let (f16, bf16, f32, f64) = (ValueType::F16, ValueType::Bf16, ValueType::F32, ValueType::F64);
        let uniform = [with(f32, f32, f32, f32), with(f64, f64, f64, f64), with(f16, f16, f32, f32)];
        configs.extend(uniform.map(|config| config.expect("defaults are allowed")));
        // Some algorithms sum in y's own type only.
        configs.extend(with(f32, f32, f32, f64));
        configs.extend(with(bf16, bf16, bf16, f32));
        configs.extend(cover::pairwise(spec).into_iter().step_by(8));
        configs.extend(cover::over_types(spec));
    }
    configs.retain(|config| config.program().guarantees.bit_reproducible && !adds_halves_in_tiles(config));
    configs
}

/// Whether tensor cores add products of halves, in an order and with a rounding that is not documented and not the simulator's
/// (`ptx-sim`): these are compared with the bound of their sums, by `tests/conformance.rs`.
fn adds_halves_in_tiles(config: &KernelConfig) -> bool {
    let types = config.types();
    config.algorithm().name() == "dasp"
        && [ValueType::F16, ValueType::Bf16].contains(&types.value)
        && types.x == types.value
        && types.accumulator == ValueType::F32
}

/// A generated matrix.
struct Generated {
    class: &'static str,
    settings: &'static [(&'static str, f64)],
}

static MATRICES: &[Generated] = &[
    Generated { class: "diagonal", settings: &[("n", 5000.0)] },
    Generated { class: "dense", settings: &[("rows", 150.0), ("cols", 333.0)] },
    Generated { class: "stencil_5", settings: &[("nx", 120.0), ("ny", 97.0)] },
    Generated { class: "fem", settings: &[("nx", 9.0), ("ny", 8.0), ("nz", 7.0)] },
    Generated { class: "gaussian", settings: &[("n", 20000.0), ("sigma", 300.0)] },
    Generated { class: "power_law", settings: &[("n", 20000.0), ("longest", 4000.0)] },
    Generated { class: "rmat", settings: &[("scale", 14.0)] },
    Generated { class: "circuit", settings: &[("n", 8000.0), ("dense_length", 3000.0)] },
    Generated { class: "giant_row", settings: &[("n", 9000.0), ("giant", 8000.0)] },
    Generated { class: "rail", settings: &[("rows", 60.0), ("cols", 20000.0), ("per_row", 2500.0)] },
];

impl Generated {
    /// Two products on each device, the second upon the first.
    fn compare(&self, gpu: &Device, simulator: &Device, config: &KernelConfig) -> Result<(), Failed> {
        let generator = Generator::new(self.class)?;
        let set = |generator: Generator, (name, value): &(&str, f64)| generator.set(name, *value);
        let a: CsrMatrix<f64> = self.settings.iter().try_fold(generator, set)?.seed(11).generate()?;
        let types = config.types();
        let (x_length, y_length) = match config.operation().is_of_triangle() {
            // A matrix is folded into a square one.
            true => (a.num_rows().max(a.num_cols()), a.num_rows().max(a.num_cols())),
            false => config.operation().vector_lengths(a.num_rows(), a.num_cols()),
        };
        let numbers = |value: ValueType, length: usize, seed: u64| {
            let parts = if value.kind() == ValueKind::Complex { 2 } else { 1 };
            typed::spread(value, &random(parts * length, seed))
        };
        let (x, old) = (numbers(types.x, x_length, 5), numbers(types.y, y_length, 6));
        let any = match types.accumulator.kind() {
            ValueKind::Integer => [3.0, 2.0],
            _ => [1.25, -0.75],
        };
        let alpha = config.scaling().alpha.known().unwrap_or(any[0]);
        let beta = config.scaling().beta.known().unwrap_or(any[1]);
        let (values, imaginary) = (numbers(types.value.part(), a.nnz(), 7), random(a.nnz(), 8));
        let a = structures::with_values(&a, |place| Complex64::new(values[place], imaginary[place]));
        if let Err(Error::Fill { .. } | Error::Misfit { .. }) = typed::complex_plan(gpu, &a, *config) {
            return Ok(());
        }
        let mut artifacts = Vec::new();
        let mut product = |device: &Device| -> Result<Vec<f64>, Failed> {
            let (mut plan, _) = typed::complex_plan(device, &a, *config)?;
            let (x, mut y) = (AnyVector::new(device, types.x, &x)?, AnyVector::new(device, types.y, &old)?);
            typed::apply(&mut plan, alpha, &x, beta, &mut y)?;
            typed::apply(&mut plan, alpha, &x, beta, &mut y)?;
            artifacts.push(std::ptr::from_ref::<Artifact>(plan.kernel().artifact()));
            Ok(y.to_vec()?)
        };
        let (real, simulated) = (product(gpu)?, product(simulator)?);
        if artifacts[0] != artifacts[1] {
            return Err("the two devices ran artifacts of different compiles".into());
        }
        same_bits(&real, &simulated).map_err(Failed::from)
    }
}

/// The same bits, zeros and NaN included: f64 holds every f32.
fn same_bits<T: RealElement>(real: &[T], simulated: &[T]) -> Result<(), String> {
    let differ = |(real, simulated): &(&T, &T)| real.to_f64().to_bits() != simulated.to_f64().to_bits();
    let count = real.iter().zip(simulated).filter(differ).count();
    match real.iter().zip(simulated).position(|pair| differ(&pair)) {
        None if real.len() == simulated.len() => Ok(()),
        None => Err(format!("{} entries on the GPU and {} in the simulator", real.len(), simulated.len())),
        Some(row) => Err(format!(
            "{count} of {} entries differ, the first is {row}: {:e} on the GPU, {:e} in the simulator",
            real.len(),
            real[row].to_f64(),
            simulated[row].to_f64()
        )),
    }
}

fn compare_vectors<T: RealElement>(gpu: &Device, simulator: &Device, len: usize) -> Result<(), Failed> {
    let entries = |seed| random(len, seed).into_iter().map(T::from_f64).collect::<Vec<T>>();
    let run = |device: &Device| -> Result<(Vec<T>, Vec<f64>), Failed> {
        let x = Vector::from_slice(device, &entries(1))?;
        let mut y = Vector::from_slice(device, &entries(2))?;
        let mut z = Vector::from_slice(device, &entries(3))?;
        y.axpy(T::from_f64(0.3), &x)?;
        y.scale(T::from_f64(-1.7))?;
        y.aypx(T::from_f64(0.7), &x)?;
        let numbers = vec![x.dot(&y)?, y.norm()?, x.norm()?, y.amax()?];
        let mut all = y.to_vec()?;
        z.copy_from(&y)?;
        all.extend(z.to_vec()?);
        z.fill(T::from_f64(0.1))?;
        all.extend(z.to_vec()?);
        Ok((all, numbers))
    };
    let (real, simulated) = (run(gpu)?, run(simulator)?);
    same_bits(&real.0, &simulated.0)?;
    Ok(same_bits(&real.1, &simulated.1)?)
}

/// A kernel with one array to read and one, zero before, to write.
struct Raw<'a> {
    kernel: &'a str,
    blocks: u32,
    threads: u32,
    shared_bytes: u32,
    words: &'a [u64],
    outputs: usize,
    /// The arguments, given the addresses of both arrays.
    args: &'a dyn Fn(u64, u64) -> Vec<Vec<u8>>,
}

impl Raw<'_> {
    fn on_gpu(&self, device: &Device, artifact: &Artifact) -> Result<Vec<u64>, Failed> {
        let (context, stream) = device.as_cuda().ok_or("not a CUDA device")?;
        context.bind_to_thread()?;
        let name = CString::new(self.kernel)?;
        let mut output = vec![0u64; self.outputs];
        // SAFETY: the image is a complete cubin; every allocation is as large as what is copied; the arguments
        // have the sizes of the kernel's parameters and live through the launch; memory is freed once, after
        // the stream is done with it.
        unsafe {
            let module = result::module::load_data(artifact.images[0].cubin.as_ptr().cast::<c_void>())?;
            let function = result::module::get_function(module, name)?;
            // On the kernel's stream: a copy without one may still be under way when it returns.
            let input = result::malloc_sync(size_of_val(self.words))?;
            result::memcpy_htod_async(input, self.words, stream.cu_stream())?;
            let target = result::malloc_sync(self.outputs * 8)?;
            result::memcpy_htod_async(target, &output, stream.cu_stream())?;
            let mut args = (self.args)(input, target);
            let mut pointers: Vec<*mut c_void> = args.iter_mut().map(|arg| arg.as_mut_ptr().cast()).collect();
            let (grid, block) = ((self.blocks, 1, 1), (self.threads, 1, 1));
            result::launch_kernel(
                function,
                grid,
                block,
                self.shared_bytes,
                stream.cu_stream(),
                &mut pointers,
            )?;
            stream.synchronize()?;
            result::memcpy_dtoh_sync(&mut output, target)?;
            result::free_sync(input)?;
            result::free_sync(target)?;
            result::module::unload(module)?;
        }
        Ok(output)
    }

    fn in_simulator(&self, artifact: &Artifact) -> Result<Vec<u64>, Failed> {
        let module = Module::load(&artifact.images[0].ptx)?;
        let mut simulator = Simulator::new();
        let input = simulator.allocate(self.words.len() as u64 * 8)?;
        simulator.write(input, &as_bytes(self.words))?;
        let target = simulator.allocate(self.outputs as u64 * 8)?;
        let mut bytes = vec![0; self.outputs * 8];
        simulator.write(target, &bytes)?;
        let launch = Launch {
            shared_bytes: self.shared_bytes,
            args: (self.args)(input, target).into_iter().map(Arg::Bytes).collect(),
            ..Launch::new(self.blocks, self.threads)
        };
        simulator.launch(&module, self.kernel, &launch)?;
        simulator.read(target, &mut bytes)?;
        Ok(as_words(&bytes))
    }
}

fn arch_number(device: &Device) -> u32 {
    device.properties().arch.trim_start_matches("sm_").parse().unwrap_or(0)
}

fn compare_expressions(device: &Device, table: &Table) -> Result<(), Failed> {
    const THREADS: usize = 1 << 17;
    if table.since > arch_number(device) {
        return Ok(());
    }
    let artifact = Arc::new(cuda::compile(&table.source(), &device.properties().arch)?);
    let words = table.words(THREADS);
    let args = |input: u64, output: u64| {
        vec![
            (THREADS as u32).to_le_bytes().to_vec(),
            input.to_le_bytes().to_vec(),
            output.to_le_bytes().to_vec(),
        ]
    };
    let raw = Raw {
        kernel: &table.kernel(),
        blocks: (THREADS / 256) as u32,
        threads: 256,
        shared_bytes: 0,
        words: &words,
        outputs: table.expressions.len() * THREADS,
        args: &args,
    };
    let (real, simulated) = (raw.on_gpu(device, &artifact)?, raw.in_simulator(&artifact)?);
    let mut problems = Vec::new();
    for (index, (cuda, _)) in table.expressions.iter().enumerate().filter(|(index, _)| table.is_exact(*index))
    {
        let at = index * THREADS..(index + 1) * THREADS;
        let differs = |(thread, (real, simulated)): (usize, (&u64, &u64))| {
            (real != simulated).then_some((thread, *real, *simulated))
        };
        let mut different = real[at.clone()].iter().zip(&simulated[at]).enumerate().filter_map(differs);
        if let Some((thread, real, simulated)) = different.next() {
            problems.push(format!(
                "{cuda}: of {:#x?} is {real:#x} on the GPU and {simulated:#x} in the simulator, and {} more differ",
                &words[3 * thread..3 * thread + 3],
                different.count()
            ));
        }
    }
    // The expected values, computed on the CPU, hold on the GPU too.
    problems.extend(table.check(&words, &real).err());
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

fn compare_kernel(device: &Device, kernel: &Kernel) -> Result<(), Failed> {
    if kernel.since > arch_number(device) {
        return Ok(());
    }
    let artifact = Arc::new(cuda::compile(&kernel.source(), &device.properties().arch)?);
    let words = kernel.words();
    let args = |input: u64, output: u64| {
        let count = (words.len() as u32).to_le_bytes().to_vec();
        vec![input.to_le_bytes().to_vec(), output.to_le_bytes().to_vec(), count, settings()]
    };
    let raw = Raw {
        kernel: kernel.name,
        blocks: kernel.blocks,
        threads: kernel.threads,
        shared_bytes: kernel.shared_bytes,
        words: &words,
        outputs: kernel.outputs,
        args: &args,
    };
    let (real, simulated) = (raw.on_gpu(device, &artifact)?, raw.in_simulator(&artifact)?);
    let expected = (kernel.expected)(&words);
    match (0..expected.len()).find(|at| real[*at] != simulated[*at] || real[*at] != expected[*at]) {
        None => Ok(()),
        Some(at) => Err(format!(
            "word {at} is {:#x} on the GPU, {:#x} in the simulator, and must be {:#x}",
            real[at], simulated[at], expected[at]
        )
        .into()),
    }
}
