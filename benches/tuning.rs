//! How good `Spmv::auto` and `Spmv::tune` are on this GPU: the kernels that they take beside the fastest of all configurations,
//! and what it costs to look at a structure and to hash it. The fastest is found by measuring every algorithm with every value
//! of every parameter, then the fastest of those with every block size and both ways to load, then what is a step from the best
//! of all that is known, what `auto` and `tune` take included, until nothing is faster. What plans of these compute is compared
//! with the CPU's product.
//!
//! `cargo bench --bench tuning -- [--budget N] [--repeat N] [--record FILE] [--report | --analysis | --turns] [NAME…]`;
//! with `--repeat` each matrix is tuned so many times, with `--analysis` nothing is tuned, and with `--turns` it is measured what
//! a turn of few products says of a kernel.

mod record;

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use spmv_runtime::codegen::{Algorithm, COMMON_KEYS, IndexType, KernelConfig, Operation, ValueType};
use spmv_runtime::cudarc::driver::{result, sys::CUevent_flags};
use spmv_runtime::matrix::generate::Generator;
use spmv_runtime::matrix::{CsrMatrix, reference};
use spmv_runtime::planner::{self, Candidate};
use spmv_runtime::tuning::{Outcome, Tried, TuningReport};
use spmv_runtime::{Budget, Constraints, Device, DeviceMatrix, Element, Error, RealElement, Spmv, Vector};

/// A name, a class of matrices and its parameters.
type Problem = (&'static str, &'static str, &'static [(&'static str, f64)]);

const PROBLEMS: &[Problem] = &[
    ("stencil_5", "stencil_5", &[("nx", 2048.0), ("ny", 2048.0)]),
    ("tridiagonal", "tridiagonal", &[("n", 5e6)]),
    ("stencil_27", "stencil_27", &[("nx", 100.0), ("ny", 100.0), ("nz", 100.0)]),
    ("fem_3", "fem", &[("nx", 60.0), ("ny", 60.0), ("nz", 60.0), ("unknowns", 3.0)]),
    ("fem_6", "fem", &[("nx", 30.0), ("ny", 30.0), ("nz", 30.0), ("unknowns", 6.0)]),
    ("gaussian_1e2", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 1e2)]),
    ("gaussian_1e5", "gaussian", &[("n", 6e5), ("per_row", 45.0), ("sigma", 1e5)]),
    ("rmat", "rmat", &[("scale", 20.0), ("per_row", 16.0)]),
    ("uniform_8", "uniform", &[("rows", 2e6), ("cols", 2e6), ("per_row", 8.0)]),
    ("road", "road", &[("n", 4e6)]),
    ("circuit", "circuit", &[("n", 2e6), ("per_row", 5.0), ("dense_rows", 10.0), ("dense_length", 1e5)]),
    ("giant_row", "giant_row", &[("n", 5e6), ("giant", 2e6), ("empty", 0.488)]),
    ("rail", "rail", &[("rows", 4284.0), ("cols", 1.1e6), ("per_row", 2633.0)]),
    ("tall", "tall", &[("rows", 4e6), ("cols", 5e5), ("per_row", 7.0), ("stretch", 1000.0)]),
    ("chemistry", "chemistry", &[("n", 1e5), ("per_row", 150.0)]),
    ("small_stencil_27", "stencil_27", &[("nx", 34.0), ("ny", 34.0), ("nz", 34.0)]),
    ("small_fem_3", "fem", &[("nx", 15.0), ("ny", 15.0), ("nz", 15.0), ("unknowns", 3.0)]),
    ("small_road", "road", &[("n", 2e5)]),
    ("small_rmat", "rmat", &[("scale", 17.0), ("per_row", 16.0)]),
];

const HEAD: &str = "matrix,value,best_ms,best,tuned_over_best,tuned,auto_over_best,auto,tuning_products,tuning_candidates,\
                    tuning_stop,tuning_prepare_products,alone_ms,analysis_ms,ranking_ms,fingerprint_ms,best_spread,\
                    found_over_best";

/// Products of a turn.
const TURNS: [u32; 4] = [1, 4, 12, 24];

const TURNS_HEAD: &str = "matrix,value,kernel,product_us,turn_1_us,deviation_1_us,turn_4_us,deviation_4_us,turn_12_us,\
                          deviation_12_us,turn_24_us,deviation_24_us";

/// Products of a batch, with which a kernel is known.
const BATCH: u32 = 50;

const ANALYSIS_HEAD: &str = "matrix,auto,product_us,analysis_us,analysis_products,fingerprint_us,ranking_us";

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut budget, mut to, mut names, mut report) = (200, None, Vec::new(), false);
    let (mut analysis, mut turns, mut repeat) = (false, false, 1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--budget" => budget = arguments.next().and_then(|text| text.parse().ok()).expect("--budget N"),
            "--repeat" => repeat = arguments.next().and_then(|text| text.parse().ok()).expect("--repeat N"),
            "--record" => to = Some(arguments.next().expect("--record FILE")),
            "--report" => report = true,
            "--analysis" => analysis = true,
            "--turns" => turns = true,
            _ => names.push(argument),
        }
    }
    let device = Device::open().expect("a device");
    if device.is_simulator() {
        println!("no GPU: nothing is timed");
        return;
    }
    let columns = match (analysis, turns) {
        (true, _) => ANALYSIS_HEAD,
        (_, true) => TURNS_HEAD,
        _ => HEAD,
    };
    println!("{columns}");
    let mut lines = vec![columns.to_owned()];
    let benchmark = if turns { "turns" } else { "tuning" };
    let head = record::head(benchmark, &device).expect("what is known of the machine");
    // The head is at the end: what begins with it is a record of `spmv bench`.
    let save = |lines: &[String]| {
        let text = lines.iter().cloned().chain([format!("# {head}\n")]).collect::<Vec<_>>().join("\n");
        to.iter().for_each(|path| std::fs::write(path, &text).expect("the record can be written"));
    };
    let mut ratios = [Vec::new(), Vec::new(), Vec::new()];
    let started = Instant::now();
    for (name, class, parameters) in PROBLEMS {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        let set = |generator: Generator, (key, value): &(&str, f64)| {
            generator.set(key, *value).expect("a parameter")
        };
        let generator = Generator::new(class).expect("a class").seed(11);
        let generator = parameters.iter().fold(generator, set);
        let wide: CsrMatrix<f64, u32> = generator.generate().expect("a matrix");
        if analysis {
            match looked_at(&device, &wide.convert::<f32>()) {
                Ok(line) => println!("{name},{line}"),
                Err(error) => println!("{name}: {error}"),
            }
            continue;
        }
        if turns {
            let measured = [
                (ValueType::F32, what_turns_say(&device, &wide.convert::<f32>())),
                (ValueType::F64, what_turns_say(&device, &wide)),
            ];
            for (value, measured) in measured {
                for line in measured.expect("turns are measured") {
                    println!("{name},{value},{line}");
                    lines.push(format!("{name},{value},{line}"));
                }
            }
            save(&lines);
            continue;
        }
        let mut took = Vec::new();
        for value in [ValueType::F32, ValueType::F64] {
            let measured = match value {
                ValueType::F32 => measure(&device, &wide.convert::<f32>(), budget, repeat),
                _ => measure(&device, &wide, budget, repeat),
            };
            match measured {
                Ok(found) => took.extend(found.into_iter().map(|found| (value, found))),
                Err(error) => println!("{name},{value}: {error}"),
            }
        }
        for (value, found) in took {
            let line = format!("{name},{value},{}", found.line);
            println!("{line}");
            if report {
                found
                    .report
                    .tried
                    .iter()
                    .for_each(|tried| println!("#   {}: {:?}", short(tried.config), tried.outcome));
            }
            lines.push(line);
            ratios.iter_mut().zip(found.ratios).for_each(|(all, ratio)| all.push(ratio));
        }
        // A run that is broken off leaves what it has measured.
        save(&lines);
    }
    for (what, ratios) in ["tuned", "auto", "found"].into_iter().zip(&ratios) {
        if ratios.is_empty() {
            continue;
        }
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let worst = ratios.iter().copied().fold(1.0, f64::max);
        println!("# {what} over the best of all: {mean:.4} (geometric mean), {worst:.4} (largest)");
    }
    println!("# {:.1} s", started.elapsed().as_secs_f64());
}

/// Plans of a configuration that are measured.
const PLANS: usize = 3;

struct Found {
    line: String,
    report: TuningReport,
    /// Of the plan that was tuned, of what `auto` takes and of other plans of the configuration that tuning found, over the best.
    ratios: [f64; 3],
}

fn measure<V: RealElement>(
    device: &Device,
    a: &CsrMatrix<V, u32>,
    budget: u32,
    repeat: usize,
) -> Result<Vec<Found>, Error> {
    let matrix = Arc::new(DeviceMatrix::upload(device, a, IndexType::U32)?);
    let operation = Operation::NonTranspose;
    // Making plans does not count: kernels are compared.
    let mut constraints = Constraints::default();
    constraints.products = u64::MAX;
    let features = matrix.features()?;
    let types = KernelConfig::named("csr_vector")?.value(V::TYPE).build()?.types();
    let l2_bytes = planner::l2_bytes(device);
    let auto = planner::candidates(&features, types, operation, l2_bytes, &constraints)?[0].config;
    let budget = Budget::Products(budget);
    let mut plans = Vec::new();
    let mut reports = Vec::new();
    for _ in 0..repeat {
        let tuned = Spmv::tune_anew(device, &matrix, operation, &constraints, budget)?;
        plans.push(tuned.plan);
        reports.push(tuned.report);
    }
    let tune = |configs: &[KernelConfig], budget| {
        let candidates = configs.iter().map(|config| Candidate::new(*config, "")).collect();
        Spmv::tune_among(device, &matrix, operation, &constraints, candidates, budget)
            .map(|tuned| tuned.report)
    };
    let thorough = Budget::Products(1_000_000);
    let first = tune(&all(types.value), thorough)?;
    let mut close = with_blocks_and_loads(&fastest(&first, 6));
    let taken = reports.iter().map(|report| report.config).chain([auto]);
    close.extend(taken.filter(|config| !close.contains(config)).collect::<Vec<_>>());
    let mut best = tune(&close, thorough)?.config;
    loop {
        let around: Vec<_> = std::iter::once(best).chain(planner::neighbours(best)).collect();
        let better = tune(&around, thorough)?.config;
        if better == best || close.contains(&better) {
            break;
        }
        close.push(best);
        best = better;
    }
    // Where arrays lie decides a few per cent: the plan that was tuned is measured, not another with its kernel; of every
    // configuration, what was found included, the median of three plans. How far those of the best are apart is what no choice
    // can be blamed for.
    let mut compared = vec![auto, best];
    compared.extend(reports.iter().map(|report| report.config));
    let compared: Vec<_> = (0..compared.len())
        .filter(|i| !compared[..*i].contains(&compared[*i]))
        .map(|i| compared[i])
        .collect();
    for config in &compared {
        for _ in 0..PLANS {
            plans.push(Spmv::with_operation(device, &matrix, operation, *config)?);
        }
    }
    check(device, a, &mut plans);
    let times = side_by_side::<V>(device, &matrix, &mut plans)?;
    let (of_tuned, of_compared) = times.split_at(repeat);
    let of_compared: Vec<[f64; PLANS]> = of_compared
        .chunks_exact(PLANS)
        .map(|times| {
            let mut times = <[f64; PLANS]>::try_from(times).expect("so many plans");
            times.sort_by(f64::total_cmp);
            times
        })
        .collect();
    let of = |config: KernelConfig| {
        of_compared[compared.iter().position(|other| *other == config).expect("it was compared")]
    };
    let median = |config: KernelConfig| of(config)[PLANS / 2];
    // What the thorough search took is not always faster than what was measured beside it in the end.
    let best_found_ms = compared.iter().map(|config| median(*config)).fold(f64::INFINITY, f64::min);
    let best_ms = of_tuned.iter().copied().fold(best_found_ms, f64::min);
    let auto_ms = median(auto);
    let best_spread = of(best)[PLANS - 1] / of(best)[0];
    // A product that is waited for, as the analysis is.
    let x = Vector::<V>::zeros(device, matrix.num_cols())?;
    let mut y = Vector::<V>::zeros(device, matrix.num_rows())?;
    let plan_of_auto = &mut plans[repeat];
    let alone = least(|| {
        plan_of_auto.apply(1.0, &x, 0.0, &mut y)?;
        device.synchronize()
    })?;
    let analysis = least(|| matrix.features().map(drop))?;
    let ranking = least(|| {
        planner::candidates(&features, types, operation, l2_bytes, &constraints)?;
        Ok(())
    })?;
    let fingerprint = least(|| matrix.fingerprint().map(drop))?;
    let found = reports.into_iter().zip(of_tuned).map(|(tuned, tuned_ms)| {
        let ratios = [tuned_ms / best_ms, auto_ms / best_ms, median(tuned.config) / best_found_ms];
        let line = format!(
            "{best_ms:.6},{},{:.4},{},{:.4},{},{:.0},{},{:?},{:.0},{alone:.4},{analysis:.4},{ranking:.4},{fingerprint:.4},{best_spread:.4},{:.4}",
            short(best),
            ratios[0],
            short(tuned.config),
            ratios[1],
            short(auto),
            tuned.spent / best_ms,
            tuned.tried.iter().filter(|tried| matches!(tried.outcome, Outcome::Measured { .. })).count(),
            tuned.stop,
            tuned.prepared / best_ms,
            ratios[2],
        );
        Found { line, report: tuned, ratios }
    });
    Ok(found.collect())
}

/// What it takes to look at a structure and to rank candidates for it, beside a product of what is taken.
fn looked_at<V: Element>(device: &Device, a: &CsrMatrix<V, u32>) -> Result<String, Error> {
    let matrix = Arc::new(DeviceMatrix::upload(device, a, IndexType::U32)?);
    let mut plan = Spmv::auto(device, &matrix)?;
    let x = Vector::<V>::zeros(device, matrix.num_cols())?;
    let mut y = Vector::<V>::zeros(device, matrix.num_rows())?;
    let many = 50;
    let product = least(|| {
        (0..many).try_for_each(|_| plan.apply(1.0, &x, 0.0, &mut y))?;
        device.synchronize()
    })? / f64::from(many);
    let features = matrix.features()?;
    assert_eq!(features, spmv_runtime::matrix::features(a), "the device counts what the host counts");
    let analysis = least(|| matrix.features().map(drop))?;
    let fingerprint = least(|| matrix.fingerprint().map(drop))?;
    let (types, l2_bytes) = (plan.config().types(), planner::l2_bytes(device));
    let (operation, constraints) = (Operation::NonTranspose, Constraints::default());
    let ranking = least(|| {
        planner::candidates(&features, types, operation, l2_bytes, &constraints)?;
        Ok(())
    })?;
    Ok(format!(
        "{},{:.1},{:.1},{:.2},{:.1},{:.1}",
        short(*plan.config()),
        product * 1e3,
        analysis * 1e3,
        analysis / product,
        fingerprint * 1e3,
        ranking * 1e3
    ))
}

/// What whole turns of each of [`TURNS`] take the fastest kernels, in microseconds: the mean of [`ROUNDS`] and their standard
/// deviation, behind the median of what a product takes in as many batches.
fn what_turns_say<V: Element>(device: &Device, a: &CsrMatrix<V, u32>) -> Result<Vec<String>, Error> {
    const KERNELS: usize = 9;
    const ROUNDS: usize = 24;
    let matrix = Arc::new(DeviceMatrix::upload(device, a, IndexType::U32)?);
    let operation = Operation::NonTranspose;
    let mut constraints = Constraints::default();
    constraints.products = u64::MAX;
    let candidates = all(V::TYPE).into_iter().map(|config| Candidate::new(config, "")).collect();
    let thorough = Budget::Products(1_000_000);
    let report = Spmv::tune_among(device, &matrix, operation, &constraints, candidates, thorough)?.report;
    let plan = |config: KernelConfig| Spmv::with_operation(device, &matrix, operation, config);
    let mut plans = fastest(&report, KERNELS).into_iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    let x = Vector::<V>::zeros(device, matrix.num_cols())?;
    let mut y = Vector::<V>::zeros(device, matrix.num_rows())?;
    plans.iter_mut().try_for_each(|plan| plan.apply(1.0, &x, 0.0, &mut y))?;
    device.synchronize()?;
    let mut batches = vec![Vec::new(); plans.len()];
    let mut turns = vec![[const { Vec::new() }; TURNS.len()]; plans.len()];
    for _ in 0..ROUNDS {
        for (products, kind) in TURNS.into_iter().zip(0..) {
            for (plan, turns) in plans.iter_mut().zip(&mut turns) {
                let product = queued(device, products, || plan.apply(1.0, &x, 0.0, &mut y))?;
                turns[kind].push(product * 1e3 * f64::from(products));
            }
        }
        for (plan, batches) in plans.iter_mut().zip(&mut batches) {
            batches.push(queued(device, BATCH, || plan.apply(1.0, &x, 0.0, &mut y))? * 1e3);
        }
    }
    let line = |((plan, mut batches), turns): ((&Spmv, Vec<f64>), &[Vec<f64>; TURNS.len()])| {
        batches.sort_by(f64::total_cmp);
        let mut line = format!("{},{:.4}", short(*plan.config()), batches[ROUNDS / 2]);
        for turns in turns {
            let mean = turns.iter().sum::<f64>() / ROUNDS as f64;
            let squares = turns.iter().map(|turn| (turn - mean).powi(2)).sum::<f64>();
            line.push_str(&format!(",{mean:.3},{:.3}", (squares / (ROUNDS - 1) as f64).sqrt()));
        }
        line
    };
    Ok(plans.iter().zip(batches).zip(&turns).map(line).collect())
}

/// Every algorithm as it is, and with each value of each parameter.
fn all(value: ValueType) -> Vec<KernelConfig> {
    let mut found = Vec::new();
    for spec in Algorithm::ALL {
        let with = |changes: &[(&str, String)]| {
            let builder = KernelConfig::builder((spec.default)()).value(value);
            let mut builder = builder.operation(Operation::NonTranspose);
            changes.iter().try_for_each(|(key, text)| builder.set(key, text))?;
            builder.build()
        };
        let changes = spec.parameters.iter().flat_map(|parameter| {
            parameter.allowed.iter().map(|value| vec![(parameter.name, value.to_string())])
        });
        for config in std::iter::once(Vec::new()).chain(changes).filter_map(|changes| with(&changes).ok()) {
            if !found.contains(&config) {
                found.push(config);
            }
        }
    }
    found
}

/// So many of those that were the fastest.
fn fastest(report: &TuningReport, count: usize) -> Vec<KernelConfig> {
    let measured = |tried: &Tried| match tried.outcome {
        Outcome::Measured { product, .. } => Some((product, tried.config)),
        _ => None,
    };
    let mut found: Vec<_> = report.tried.iter().filter_map(measured).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.into_iter().take(count).map(|(_, config)| config).collect()
}

/// Each with every block size and every way to load.
fn with_blocks_and_loads(configs: &[KernelConfig]) -> Vec<KernelConfig> {
    let each = |configs: Vec<KernelConfig>, name: &str| -> Vec<KernelConfig> {
        let key = COMMON_KEYS.iter().find(|key| key.name == name).expect("a setting of every algorithm");
        let with = |config: &KernelConfig, value: &str| {
            let mut builder = config.to_builder();
            builder.set(name, value).ok()?;
            builder.build().ok()
        };
        let values = (key.allowed)();
        configs.iter().flat_map(|config| values.iter().filter_map(move |value| with(config, value))).collect()
    };
    each(each(configs.to_vec(), "threads_per_block"), "loads")
}

/// Panics where a plan's product is not that of the CPU: what is wrong may be quick.
fn check<V: RealElement>(device: &Device, a: &CsrMatrix<V, u32>, plans: &mut [Spmv]) {
    let x: Vec<V> = (0..a.num_cols()).map(|col| V::from_f64((col % 7) as f64 - 3.0)).collect();
    let y = vec![V::from_f64(0.0); a.num_rows()];
    let expected = reference(1.0, a, &x, 0.0, &y).expect("the sizes fit");
    let x = Vector::from_slice(device, &x).expect("a vector");
    let mut y = Vector::from_slice(device, &y).expect("a vector");
    let allowed = match V::TYPE {
        ValueType::F64 => 1e-11,
        _ => 1e-3,
    };
    for plan in plans {
        plan.apply(1.0, &x, 0.0, &mut y).expect("a product");
        let found = y.to_vec().expect("a copy");
        for (row, (y, (expected, size))) in
            found.iter().zip(expected.y.iter().zip(&expected.magnitude)).enumerate()
        {
            assert!((y.to_f64() - expected).abs() <= allowed * size, "{}: row {row} is wrong", plan.config());
        }
    }
}

/// What a product of each plan takes, in milliseconds: the median of batches that alternate. Some have other vectors than others do,
/// for where those lie decides what else L2 has room for.
fn side_by_side<V: Element>(
    device: &Device,
    matrix: &DeviceMatrix,
    plans: &mut [Spmv],
) -> Result<Vec<f64>, Error> {
    const BATCHES: usize = 21;
    const VECTORS: usize = 3;
    let vectors =
        |length| (0..VECTORS).map(|_| Vector::<V>::zeros(device, length)).collect::<Result<Vec<_>, _>>();
    let (x, mut y) = (vectors(matrix.num_cols())?, vectors(matrix.num_rows())?);
    let mut times = vec![[0.0; BATCHES]; plans.len()];
    // Loading a kernel may wait for the device, which waits for the host below.
    plans.iter_mut().try_for_each(|plan| plan.apply(1.0, &x[0], 0.0, &mut y[0]))?;
    device.synchronize()?;
    for batch in 0..BATCHES {
        let (x, y) = (&x[batch % VECTORS], &mut y[batch % VECTORS]);
        for (plan, times) in plans.iter_mut().zip(&mut times) {
            times[batch] = queued(device, BATCH, || plan.apply(1.0, x, 0.0, y))?;
        }
    }
    let median = |mut times: [f64; BATCHES]| {
        times.sort_by(f64::total_cmp);
        times[BATCHES / 2]
    };
    Ok(times.into_iter().map(median).collect())
}

/// What each of so many products takes the device, in milliseconds, behind one that brings them into the caches. The device begins when
/// all are queued: the host takes as long to launch one as a small one takes the device.
fn queued(
    device: &Device,
    products: u32,
    mut multiply: impl FnMut() -> Result<(), Error>,
) -> Result<f64, Error> {
    let (context, stream) = device.as_cuda().expect("a GPU");
    let event = || context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).expect("an event");
    let (before, after) = (event(), event());
    let all_queued = AtomicBool::new(false);
    let gate = std::ptr::from_ref(&all_queued).cast_mut().cast();
    // SAFETY: the flag outlives the wait, because the device is waited for below, whatever comes of the launches.
    unsafe { result::stream::launch_host_function(stream.cu_stream(), wait, gate) }.expect("a host function");
    // Nothing here may panic: the device would wait for ever.
    let mut recorded = Vec::new();
    let launched = multiply().and_then(|()| {
        recorded.push(before.record(stream));
        let launched = (0..products).try_for_each(|_| multiply());
        recorded.push(after.record(stream));
        launched
    });
    all_queued.store(true, Ordering::Release);
    device.synchronize()?;
    launched?;
    recorded.into_iter().for_each(|recorded| recorded.expect("an event is recorded"));
    Ok(f64::from(before.elapsed_ms(&after).expect("both were recorded")) / f64::from(products))
}

/// Returns once the flag at `flag` is set.
unsafe extern "C" fn wait(flag: *mut c_void) {
    // SAFETY: whoever launches this keeps the flag until it has returned.
    let flag = unsafe { &*flag.cast::<AtomicBool>() };
    while !flag.load(Ordering::Acquire) {
        std::hint::spin_loop();
    }
}

/// The least of some runs, in milliseconds on the host's clock: what is measured waits for the device.
fn least(mut run: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut least = Duration::MAX;
    for _ in 0..5 {
        let started = Instant::now();
        run()?;
        least = least.min(started.elapsed());
    }
    Ok(least.as_secs_f64() * 1e3)
}

/// The algorithm and its parameters, the block size where it is not the usual one, and loads where they are not streaming.
fn short(config: KernelConfig) -> String {
    let own = config.algorithm().spec().parameters.len();
    let is_usual_block = config.threads_per_block() == KernelConfig::USUAL_THREADS_PER_BLOCK;
    let is_told = |index: usize, key: &str| {
        index < own || key == "loads" || (key == "threads_per_block" && !is_usual_block)
    };
    let settings = config.settings().into_iter().enumerate();
    let settings = settings.filter(|(index, (key, _))| is_told(*index, key));
    let settings = settings.map(|(_, (key, value))| format!(" {key}={value}"));
    std::iter::once(config.algorithm().name().to_owned()).chain(settings).collect()
}
