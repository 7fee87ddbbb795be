//! The contract of every kernel on every device: each algorithm, a pairwise cover of its settings, every
//! structure, several α and β. NVRTC compiles all of it for the architectures in turn, a part to machine code, and the
//! simulator runs a part as that architecture. A device that is not there shows as ignored, and as failed with `SPMV_REQUIRE_GPU=1`. The program
//! needs nothing beside itself, so it travels to a GPU machine alone.

mod compiled;
mod cover;
mod structures;
mod typed;

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use compiled::ARCHS;
use libtest_mimic::{Arguments, Failed, Trial};
use rayon::prelude::*;
use spmv_codegen::{
    Algorithm, AlgorithmSpec, Coefficient, KernelConfig, Operation, Pass, Semiring, Slots, Types, ValueKind,
    ValueType,
};
use spmv_matrix::{
    Accumulate, Complex32, Complex64, CscMatrix, CsrMatrix, Entry, MatrixError, Reference, SymmetricCsr,
    Symmetry, Value, cpu_serial, f16, reference, reference_of_complex, verify,
};
use spmv_runtime::cache::{CacheLocation, DiskCache};
use spmv_runtime::cudarc::driver::{CudaGraph, sys};
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Compiler, Device, Element, Error, RealElement, Scalar, Spmv, Stream, Vector};
use structures::{Numbers, Structure};
use typed::AnyVector;

/// What every structure is filled with, in turn.
const NUMBERS: [Numbers; 2] = [Numbers::Integers, Numbers::Random];

static CASES: AtomicUsize = AtomicUsize::new(0);

/// A device that every configuration is checked on.
struct Target {
    name: &'static str,
    /// Configurations take turns; the first of an algorithm and what does not depend on one have the first.
    devices: Vec<Result<Device, String>>,
    /// Shown as ignored instead of failing.
    may_be_missing: bool,
    /// Which of an algorithm's configurations are checked.
    covers: fn(usize) -> bool,
    /// Whether this configuration is checked with this structure.
    meets: fn(usize, usize) -> bool,
    /// Whether a configuration meets every structure that it is checked with in both [`NUMBERS`], and every α with every β.
    /// Else they take turns, so that over the structures every two meet: the first configuration has both numbers, and each
    /// structure meets each α and each β.
    is_whole: bool,
}

/// The first configuration of an algorithm, which has every setting at its default, meets every structure, the others a
/// third each: every value of a setting meets every structure.
fn takes_turns(config: usize, structure: usize) -> bool {
    config == 0 || (config / 3 + structure).is_multiple_of(3)
}

/// Both numbers for the first configuration, one of them for the others, in turn.
fn numbers_in_turn(config: usize, structure: usize) -> &'static [Numbers] {
    let turn = (config / 3 + structure) / 3 % NUMBERS.len();
    if config == 0 { &NUMBERS } else { &NUMBERS[turn..=turn] }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let required = std::env::var("SPMV_REQUIRE_GPU").is_ok_and(|value| value == "1");
    let cuda = Device::cuda(0).map_err(|error| error.to_string());
    let missing = cuda.as_ref().err().cloned();
    let part = std::env::var(PART).ok().map(|part| {
        let numbers = part.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        numbers.filter(|&(k, n): &(usize, usize)| k < n).expect("a part is k/n with k from 0 to n - 1")
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let is_whole = arguments.filter.is_none() && arguments.test_threads.is_none() && !arguments.list;
    if missing.is_some() && is_whole && part.is_none() && cores > 1 {
        return in_processes(cores);
    }
    // A third of the configurations in the natural schedule, a part of them in two adversarial ones.
    let every_structure = std::env::var("SPMV_EVERY_STRUCTURE").is_ok_and(|value| value == "1");
    let every_config = std::env::var("SPMV_EVERY_CONFIGURATION").is_ok_and(|value| value == "1");
    let becomes_machine_code = |place: usize| every_config || place.is_multiple_of(MACHINE_CODE);
    let simulated = |name, schedule, covers| Target {
        name,
        devices: ARCHS
            .map(|arch| Device::simulator_of(arch, schedule).map_err(|error| error.to_string()))
            .into(),
        may_be_missing: false,
        covers,
        meets: if every_structure { |_, _| true } else { takes_turns },
        is_whole: every_structure,
    };
    let targets = [
        Target {
            name: "cuda",
            devices: vec![cuda.clone()],
            may_be_missing: !required,
            covers: |_| true,
            meets: |_, _| true,
            is_whole: true,
        },
        simulated("sim", Schedule::Natural, if every_config { |_| true } else { |index| index % 3 == 0 }),
        simulated("sim_adversarial_1", Schedule::Adversarial(1), |index| index % 16 == 0),
        simulated("sim_adversarial_2", Schedule::Adversarial(2), |index| index % 16 == 8),
        // What compute-sanitizer runs, with each of its tools: an eighth of the configurations with a quarter of the structures
        // each.
        Target {
            name: "sanitizer",
            devices: vec![cuda],
            may_be_missing: !required,
            covers: |index| index % 8 == 0,
            meets: |config, structure| (config / 8 + structure).is_multiple_of(4),
            is_whole: true,
        },
    ];
    let structures = Arc::new(structures::all());
    let configs: Vec<_> = Algorithm::ALL.par_iter().map(configs_of).collect();
    let mut trials = Vec::new();
    let mut planned = Vec::new();
    for target in &targets {
        let mut cases = 0;
        let ignored = target.devices[0].is_err() && target.may_be_missing;
        for configs in &configs {
            let covered = configs.iter().copied().enumerate().filter(|(index, _)| (target.covers)(*index));
            for (place, ((index, config), device)) in covered.zip(target.devices.iter().cycle()).enumerate() {
                let to_machine_code = becomes_machine_code(place);
                let numbers = if target.is_whole { |_, _| &NUMBERS[..] } else { numbers_in_turn };
                let met = (0..structures.len()).filter(|structure| (target.meets)(index, *structure));
                let met = met.map(|structure| numbers(index, structure).len()).sum::<usize>();
                let (alphas, betas) = scalars_to_try(&config);
                let is_whole = target.is_whole;
                cases += met * pairs(&alphas, &betas, (!is_whole).then_some(0)).len();
                let (device, roomy) = (device.clone(), target.devices[0].clone());
                let (structures, meets) = (structures.clone(), target.meets);
                let trial = Trial::test(format!("{}/{config}", target.name), move || {
                    let (device, roomy) = (device?, roomy?);
                    if device.is_simulator() {
                        compiles(device.compiler(), &config, &device.properties().arch, to_machine_code)?;
                    }
                    let mut met = structures.iter().enumerate().filter(|(number, _)| meets(index, *number));
                    met.try_for_each(|(number, structure)| {
                        check(&device, &roomy, &config, structure, numbers(index, number), is_whole)
                    })
                });
                trials.push(trial.with_ignored_flag(ignored));
            }
        }
        for (name, needs_cuda, test) in OTHERS {
            if target.name == "sanitizer" || *needs_cuda && target.name != "cuda" {
                continue;
            }
            let device = target.devices[0].clone();
            let trial = Trial::test(format!("{}/{name}", target.name), move || test(&device?));
            trials.push(trial.with_ignored_flag(ignored));
        }
        planned.push(format!("{} {cases}", target.name));
    }
    let is_simulated =
        |index: usize| targets.iter().any(|target| target.name.starts_with("sim") && (target.covers)(index));
    for configs in &configs {
        let others = configs.iter().enumerate().filter(|(index, _)| !is_simulated(*index));
        let others = others.map(|(_, config)| config).zip(ARCHS.into_iter().cycle());
        // The defaults of the other architectures: what is no triangle's has known answers there.
        let is_triangular = configs[0].operation().is_of_triangle();
        let defaults = ARCHS[1..].iter().filter(|_| is_triangular).map(|arch| (&configs[0], *arch));
        for (place, (config, arch)) in others.chain(defaults).enumerate() {
            let config = *config;
            let to_machine_code = becomes_machine_code(place);
            let trial = Trial::test(format!("nvrtc_{arch}/{config}"), move || {
                // A compiler a program: nothing is kept that nobody asks for again.
                compiles(
                    &Compiler::new(DiskCache::open(&CacheLocation::off())),
                    &config,
                    arch,
                    to_machine_code,
                )
            });
            trials.push(trial);
        }
    }
    for device in &targets[1].devices[1..] {
        let arch = device.as_ref().map_or("sm_?", |device| &device.properties().arch);
        let device = device.clone();
        trials.push(Trial::test(format!("sim_{arch}/known_answers"), move || known_answers(&device?)));
    }
    if let Some((part, parts)) = part {
        arguments.test_threads = Some(1);
        trials = trials.into_iter().skip(part).step_by(parts).collect();
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    println!(
        "{} cases ran: configuration x structure x numbers x (alpha, beta)",
        CASES.load(Ordering::Relaxed)
    );
    println!("at most, where no layout is refused or mostly fill: {}", planned.join(", "));
    if let Some(missing) = missing {
        println!("cuda: {missing}");
    }
    conclusion.exit_code()
}

/// Which part of the trials a process runs, `k/n`.
const PART: &str = "SPMV_CONFORMANCE_PART";

/// Parts for each core: one that takes longer than others leaves no core idle for long.
const PARTS_PER_CORE: usize = 4;

/// Runs the trials in so many processes at a time: in one, NVRTC compiles one program at a time.
fn in_processes(count: usize) -> ExitCode {
    let program = std::env::current_exe().expect("the path of this program");
    let parts = count * PARTS_PER_CORE;
    let next = AtomicUsize::new(0);
    let run_parts = || {
        let taken = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let ends = taken.take_while(|part| *part < parts).map(|part| {
            let mut command = Command::new(&program);
            command.args(std::env::args_os().skip(1)).env(PART, format!("{part}/{parts}"));
            command.status().expect("a process").success()
        });
        ends.filter(|success| !success).count()
    };
    let failed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(run_parts)).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
    });
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One configuration in so many becomes machine code, the default among them: making it of PTX takes as long as all before it.
/// Architectures take turns, and with this number each has those of all places.
const MACHINE_CODE: usize = 5;

/// Whether a configuration becomes PTX for an architecture that loads in the simulator, or machine code with such PTX.
fn compiles(
    compiler: &Compiler,
    config: &KernelConfig,
    arch: &str,
    to_machine_code: bool,
) -> Result<(), Failed> {
    if to_machine_code {
        let (artifact, _) = compiler.compile(config, arch)?;
        return Ok(compiled::check(config, arch, &artifact)?);
    }
    let (artifact, _) = compiler.compile_ptx(config, arch)?;
    Ok(compiled::check_ptx(&artifact.images[0].ptx, arch)?)
}

/// What is checked of an algorithm, its default first.
fn configs_of(spec: &AlgorithmSpec) -> Vec<KernelConfig> {
    let mut configs = vec![KernelConfig::builder((spec.default)()).build().expect("defaults are allowed")];
    configs.extend(cover::pairwise(spec));
    configs.extend(cover::over_semirings(spec));
    configs.extend(cover::over_types(spec));
    configs.extend(cover::over_functions(spec));
    configs
}

/// One configuration on one structure: exact integers, then random numbers against the bound, or spread over the range of
/// integers, which wrap around.
fn check(
    device: &Device,
    roomy: &Device,
    config: &KernelConfig,
    structure: &Structure,
    all_numbers: &[Numbers],
    is_whole: bool,
) -> Result<(), Failed> {
    let types = config.types();
    for &numbers in all_numbers {
        let told = |error: Error| describe(structure, &error);
        let is_complex = types.accumulator.kind() == ValueKind::Complex;
        let a = structure.matrix(numbers);
        let values = match numbers {
            Numbers::Integers => a.values().to_vec(),
            Numbers::Random => typed::spread(types.value, a.values()),
        };
        let imaginary = numbers.vector(values.len() * usize::from(is_complex), 37);
        let value = |place: usize| match (values[place], imaginary.get(place)) {
            // A stored zero is one.
            (0.0, _) | (_, None) => Complex64::from(values[place]),
            (re, Some(&im)) => Complex64::new(re, im),
        };
        let a = structures::with_values(&a, value);
        let (mut plan, a) = match typed::complex_plan(device, &a, *config) {
            // A layout may be refused where it would be mostly fill: no product is wrong.
            Err(Error::Fill { slots, nnz, .. }) if is_mostly_fill(config, slots, nnz) => continue,
            Err(Error::Misfit { .. }) if !config.program().misfits.is_empty() => continue,
            // Blocks of the architecture have less shared memory; there are others.
            Err(error)
                if device.properties().arch != roomy.properties().arch && has_no_room(device, &error) =>
            {
                return check(roomy, roomy, config, structure, all_numbers, is_whole);
            }
            planned => planned.map_err(told)?,
        };
        let op_a = op(&a, config.operation());
        let vector = |value: ValueType, length: usize, seed: u64| {
            let numbers = match numbers {
                Numbers::Integers => numbers.vector(length * parts(value), seed),
                Numbers::Random => typed::spread(value, &numbers.vector(length * parts(value), seed)),
            };
            typed::rounded(value.part(), &numbers)
        };
        let x = vector(types.x, op_a.num_cols(), 29);
        let y = vector(types.y, op_a.num_rows(), 31);
        let bound = typed::bind(&mut plan, &numbers.vector(op_a.num_rows(), 37)).map_err(told)?;
        let device_x = AnyVector::new(device, types.x, &x).map_err(told)?;
        // Layouts that are mostly fill take the simulator long, and blocks that clear much shared memory: one product of each,
        // of one kind of numbers where blocks do, shows what they add.
        let clears_much = device.is_simulator() && cleared_bytes(&plan) > MOST_CLEARED;
        let is_large = plan.slots().is_some_and(|slots| slots > LARGEST_LAYOUT) || clears_much;
        let (alphas, betas) = scalars_to_try(config);
        // Structures take turns, and what they are filled with.
        let is_next = structure.name.len().is_multiple_of(2) == (numbers == Numbers::Random);
        if clears_much && all_numbers.len() > 1 && !is_next {
            continue;
        }
        let turn = structure.name.len() + if numbers == Numbers::Random { 5 } else { 0 };
        let mut pairs = pairs(&alphas, &betas, (!is_whole).then_some(turn));
        if is_large {
            pairs = vec![pairs[turn % pairs.len()]];
        }
        for (index, (alpha, beta)) in pairs.into_iter().enumerate() {
            CASES.fetch_add(1, Ordering::Relaxed);
            // Every product that follows shows what one leaves behind; on the simulator one is repeated, too.
            let repeats = index == 0 || !device.is_simulator();
            let case = Case { alpha, beta, numbers, op_a: &op_a, x: &x, y: &y, bound: &bound, repeats };
            case.check(device, &mut plan, &device_x).map_err(|problem| {
                format!("{} {numbers:?} alpha={alpha} beta={beta}: {problem}", structure.name)
            })?;
        }
    }
    Ok(())
}

/// How many numbers an entry of a type is made of.
fn parts(value: ValueType) -> usize {
    if value.kind() == ValueKind::Complex { 2 } else { 1 }
}

/// α and β to try: those that the kernel was generated for, or several of the type of sums.
fn scalars_to_try(config: &KernelConfig) -> (Vec<Complex64>, Vec<Complex64>) {
    let accumulator = config.types().accumulator;
    let is_scaled = config.replaces_sums().is_none();
    let (alphas, betas): (&[[f64; 2]], &[[f64; 2]]) = match (is_scaled, accumulator, accumulator.kind()) {
        (true, ValueType::U32, _) => (&[[1., 0.], [0., 0.], [3., 0.]], &[[0., 0.], [1., 0.], [2., 0.]]),
        (true, _, ValueKind::Integer) => {
            (&[[1., 0.], [-1., 0.], [0., 0.], [3., 0.]], &[[0., 0.], [1., 0.], [-2., 0.]])
        }
        (true, _, ValueKind::Complex) => {
            (&[[1., 0.], [-1., 0.], [0., 0.], [2.5, -0.5]], &[[0., 0.], [1., 0.], [-2., 1.]])
        }
        (true, ..) => (&[[1., 0.], [-1., 0.], [0., 0.], [2.5, 0.]], &[[0., 0.], [1., 0.], [-2., 0.]]),
        _ => (&[[1., 0.]], &[[0., 0.], [1., 0.]]),
    };
    let of = |known: Coefficient, any: &[[f64; 2]]| match known.known() {
        Some(known) => vec![Complex64::from(known)],
        None => any.iter().map(|[re, im]| Complex64::new(*re, *im)).collect(),
    };
    (of(config.scaling().alpha, alphas), of(config.scaling().beta, betas))
}

/// Every α with every β; or, where structures take turns, so few that each α and each β is there, others in each turn.
fn pairs(alphas: &[Complex64], betas: &[Complex64], turn: Option<usize>) -> Vec<(Complex64, Complex64)> {
    match turn {
        None => alphas.iter().flat_map(|alpha| betas.iter().map(move |beta| (*alpha, *beta))).collect(),
        Some(turn) => (0..alphas.len().max(betas.len()))
            .map(|index| (alphas[index % alphas.len()], betas[(index + turn) % betas.len()]))
            .collect(),
    }
}

/// Slots up to which every α and β is tried.
const LARGEST_LAYOUT: u64 = 1 << 18;

/// Bytes of shared memory of all blocks, for a matrix of one entry, up to which the simulator tries every α and β.
const MOST_CLEARED: u64 = 1 << 20;

/// Dynamic shared memory of the blocks that a matrix of one entry has.
fn cleared_bytes(plan: &Spmv) -> u64 {
    let of_pass = |pass: &Pass| pass.grid.eval(&|_| 1) * u64::from(pass.shared_bytes);
    plan.program().multiply.iter().map(of_pass).sum()
}

fn is_mostly_fill(config: &KernelConfig, slots: u64, nnz: u64) -> bool {
    let types = config.types();
    config.program().slots.is_some()
        && Slots::are_refused(slots, nnz, types.index.size() + types.value.size())
}

fn describe(structure: &Structure, error: &Error) -> Failed {
    format!("{}: {error}", structure.name).into()
}

/// Numbers are exact in the types of the configuration; those of complex types are two each.
struct Case<'a> {
    alpha: Complex64,
    beta: Complex64,
    numbers: Numbers,
    op_a: &'a CsrMatrix<Complex64>,
    x: &'a [f64],
    y: &'a [f64],
    /// What the epilogue takes of vectors and scalars, row by row.
    bound: &'a [Vec<f64>],
    /// Whether it is computed twice where that must give the same bits.
    repeats: bool,
}

impl Case<'_> {
    fn check(&self, device: &Device, plan: &mut Spmv, x: &AnyVector) -> Result<(), String> {
        let types = plan.config().types();
        // Where y must not be read, it holds what would be seen if it were.
        let user = plan.config().user_functions();
        let unread = if types.y.unit_roundoff() > 0.0 { f64::NAN } else { 77.0 };
        let is_stored = self.beta == Complex64::ZERO && user.epilogue.is_none();
        let old = if is_stored { vec![unread; self.y.len()] } else { self.y.to_vec() };
        let first = self.product(device, plan, x, &old)?;
        let told = |error: Error| error.to_string();
        let found = first.to_vec().map_err(told)?;
        if self.repeats && plan.program().guarantees.bit_reproducible {
            let second = self.product(device, plan, x, &old)?.to_vec().map_err(told)?;
            let bits = |y: &[f64]| y.iter().map(|entry| entry.to_bits()).collect::<Vec<_>>();
            if bits(&found) != bits(&second) {
                return Err(
                    "two products of one plan differ, and the kernel is said to be reproducible".into()
                );
            }
        }
        let real = || self.op_a.map_values(|value| value.re);
        typed::check_dot(plan, self.bound, &found)?;
        if user.combine.is_some() || user.reduce.is_some() || user.epilogue.is_some() {
            return self.check_functions(plan, &real(), &found);
        }
        let mapped = user.changes_product().then(|| typed::mapped(plan.config(), &real(), self.x));
        if plan.config().semiring() != Semiring::PlusTimes {
            let accumulate =
                if self.beta == Complex64::ZERO { Accumulate::Store } else { Accumulate::Reduce };
            let (op_a, x) = mapped.unwrap_or_else(|| (real(), self.x.to_vec()));
            return expect_same(&found, &typed::over_semiring(plan.config(), &op_a, &x, accumulate, self.y));
        }
        if types.accumulator.kind() == ValueKind::Integer {
            let expected = self.in_integers(types.accumulator, types.y);
            return expect_same(&first.to_integers().map_err(told)?, &expected);
        }
        let references = match mapped {
            Some((op_a, x)) => reference(self.alpha.re, &op_a, &x, self.beta.re, self.y).map(|one| vec![one]),
            None => self.references(types),
        };
        let references = references.map_err(|error| error.to_string())?;
        let step = if references.len() == 1 { 1 } else { 2 };
        for (part, reference) in references.iter().enumerate() {
            let actual: Vec<f64> = found.iter().copied().skip(part).step_by(step).collect();
            self.compare(plan, &actual, reference, step as u64)?;
        }
        Ok(())
    }

    /// The product in doubled precision, part by part.
    fn references(&self, types: Types) -> Result<Vec<Reference>, MatrixError> {
        if types.accumulator.kind() != ValueKind::Complex {
            let real = self.op_a.map_values(|value| value.re);
            return Ok(vec![reference(self.alpha.re, &real, self.x, self.beta.re, self.y)?]);
        }
        let complex = |value: ValueType, numbers: &[f64]| -> Vec<Complex64> {
            let entries = numbers.chunks(parts(value));
            entries.map(|entry| Complex64::new(entry[0], entry.get(1).copied().unwrap_or(0.0))).collect()
        };
        let (x, y) = (complex(types.x, self.x), complex(types.y, self.y));
        Ok(reference_of_complex(self.alpha, self.op_a, &x, self.beta, &y)?.into())
    }

    /// A part of the product with its reference; a step of the sum is so many of a real one.
    fn compare(&self, plan: &Spmv, actual: &[f64], expected: &Reference, step: u64) -> Result<(), String> {
        let types = plan.config().types();
        if self.numbers == Numbers::Integers {
            // Whole numbers are exact in any order; halves of alpha = 2.5 are too. y may be too narrow for them.
            return expect_same(actual, &typed::rounded(types.y.part(), &expected.y));
        }
        let guarantees = &plan.program().guarantees;
        let accumulator = types.accumulator;
        let longest = expected.row_nnz.iter().copied().max().unwrap_or(0) as f64;
        let underflow = 4.0 * (longest + 4.0) * step as f64 * accumulator.smallest_subnormal()
            + types.y.smallest_subnormal();
        let verification = verify(
            actual,
            expected,
            |row_nnz| step * guarantees.depth(row_nnz),
            accumulator.unit_roundoff(),
            types.y,
            underflow,
        );
        if verification.passed { Ok(()) } else { Err(format!("{verification:?}")) }
    }

    /// With what the user writes: the same numbers where rows are not rounded, because numbers are whole or because
    /// nothing is added; else sums against the bound, and an epilogue is not looked at, because what it makes of a rounding
    /// is its own.
    fn check_functions(&self, plan: &Spmv, op_a: &CsrMatrix<f64>, actual: &[f64]) -> Result<(), String> {
        let config = plan.config();
        let accumulate = if self.beta == Complex64::ZERO { Accumulate::Store } else { Accumulate::Reduce };
        let (reference, stored) = typed::over_functions(config, op_a, self.x, accumulate, self.bound, self.y);
        if self.numbers == Numbers::Integers || !config.operators().adds() {
            return expect_same(actual, &stored);
        }
        if config.user_functions().epilogue.is_some() {
            Ok(())
        } else {
            self.compare(plan, actual, &reference, 1)
        }
    }

    /// The product modulo a power of two.
    fn in_integers(&self, accumulator: ValueType, y_type: ValueType) -> Vec<i64> {
        let cut_off = |number: i64, to: ValueType| match to {
            ValueType::I8 => i64::from(number as i8),
            ValueType::I32 => i64::from(number as i32),
            ValueType::U32 => i64::from(number as u32),
            _ => number,
        };
        let (alpha, beta) = (self.alpha.re as i64, self.beta.re as i64);
        let row = |row: usize| {
            let (cols, values) = self.op_a.row(row);
            let products = cols
                .iter()
                .zip(values)
                .map(|(&col, value)| (value.re as i64).wrapping_mul(self.x[col as usize] as i64));
            let sum = products.fold(0i64, i64::wrapping_add);
            let scaled = alpha.wrapping_mul(sum).wrapping_add(beta.wrapping_mul(self.y[row] as i64));
            cut_off(cut_off(scaled, accumulator), y_type)
        };
        (0..self.op_a.num_rows()).map(row).collect()
    }

    fn product(
        &self,
        device: &Device,
        plan: &mut Spmv,
        x: &AnyVector,
        old: &[f64],
    ) -> Result<AnyVector, String> {
        let scalar = |number: Complex64| match number.im {
            0.0 => Scalar::from(number.re),
            _ => Scalar::from(number),
        };
        let result = AnyVector::new(device, plan.config().types().y, old).and_then(|mut y| {
            typed::apply(plan, scalar(self.alpha), x, scalar(self.beta), &mut y)?;
            Ok(y)
        });
        result.map_err(|error| error.to_string())
    }
}

fn expect_same<T: PartialEq + std::fmt::Display>(actual: &[T], expected: &[T]) -> Result<(), String> {
    match actual.iter().zip(expected).position(|(actual, expected)| actual != expected) {
        Some(row) => Err(format!("row {row} is {} and must be exactly {}", actual[row], expected[row])),
        None => Ok(()),
    }
}

type Test = fn(&Device) -> Result<(), Failed>;

/// What does not depend on a configuration: name, whether only CUDA has what it tests, test.
const OTHERS: &[(&str, bool, Test)] = &[
    ("nothing_leaks_through_alpha_zero", false, nothing_leaks_through_alpha_zero),
    ("structural_zeros_do_not_touch_x", false, structural_zeros_do_not_touch_x),
    ("stored_zeros_touch_x", false, stored_zeros_touch_x),
    ("real_coefficients_scale_both_parts", false, real_coefficients_scale_both_parts),
    ("known_answers", false, known_answers),
    ("semirings_touch_what_they_name", false, semirings_touch_what_they_name),
    ("stored_by_columns", false, stored_by_columns),
    ("one_triangle", false, one_triangle),
    ("triangles_touch_what_they_name", false, triangles_touch_what_they_name),
    ("a_matrix_and_its_transpose", false, a_matrix_and_its_transpose),
    ("vector_operations", false, vector_operations),
    ("norm_keeps_its_range", false, norm_keeps_its_range),
    ("dot_is_reproducible", false, dot_is_reproducible),
    ("vectors_at_any_address", false, vectors_at_any_address),
    ("streams", true, streams),
    ("chains", true, chains),
    ("graph_capture", true, graph_capture),
    ("graph_capture_of_factors", true, graph_capture_of_factors),
    ("users_context_and_memory", true, users_context_and_memory),
    ("misuse_is_refused", false, misuse_is_refused),
    ("one_hermitian_triangle", false, one_hermitian_triangle),
    ("out_of_memory_leaves_the_device_usable", false, out_of_memory_leaves_the_device_usable),
];

/// The default of every algorithm for a matrix of which both triangles are stored.
fn every_default() -> impl Iterator<Item = KernelConfig> {
    let defaults =
        Algorithm::ALL.iter().map(|spec| KernelConfig::builder((spec.default)()).build().expect("defaults"));
    defaults.filter(|config| !config.operation().is_of_triangle())
}

/// As [`every_triangular`], and a few of those that compute from a copy with both, all of which the cover has.
fn several_for_triangles() -> impl Iterator<Item = KernelConfig> {
    let is_one = |config: &KernelConfig| {
        ["csr_vector", "csc", "sell_c_sigma", "row_patterns"].contains(&config.algorithm().name())
    };
    every_triangular().chain(every_default().filter(is_one))
}

/// The default of every algorithm for one triangle alone.
fn every_triangular() -> impl Iterator<Item = KernelConfig> {
    let defaults =
        Algorithm::ALL.iter().map(|spec| KernelConfig::builder((spec.default)()).build().expect("defaults"));
    defaults.filter(|config| config.operation().is_of_triangle())
}

/// The matrix that the product is with.
fn op<V: Entry>(a: &CsrMatrix<V>, operation: Operation) -> CsrMatrix<V> {
    match operation {
        Operation::Transpose => a.transpose().expect("its transpose is no larger"),
        _ => a.clone(),
    }
}

/// The plan of a configuration for the matrix with which its product is one with `op_a`: the transpose's transpose is
/// the matrix.
fn plan<V: Element>(device: &Device, op_a: &CsrMatrix<V>, config: KernelConfig) -> Result<Spmv, Failed> {
    Ok(Spmv::with(device, &op(op_a, config.operation()), config)?)
}

fn csr<V: Value>(num_cols: usize, rows: &[&[(u32, f64)]]) -> CsrMatrix<V> {
    structures::from_rows(num_cols, rows.iter().map(|row| row.to_vec())).convert()
}

fn expect_eq<T: PartialEq + std::fmt::Debug>(actual: T, expected: T) -> Result<(), Failed> {
    if actual == expected { Ok(()) } else { Err(format!("{actual:?} and must be {expected:?}").into()) }
}

fn nothing_leaks_through_alpha_zero(device: &Device) -> Result<(), Failed> {
    let a = csr::<f32>(2, &[&[(0, f64::NAN), (1, f64::INFINITY)], &[(0, 1.0)], &[]]);
    let x = Vector::from_slice(device, &[f32::NAN, f32::INFINITY])?;
    for config in every_default() {
        let mut y = Vector::from_slice(device, &[1.0f32, 2.0, 3.0])?;
        let mut product = plan(device, &a, config)?;
        product.apply(0.0, &x, 2.0, &mut y)?;
        expect_eq(y.to_vec()?, vec![2.0, 4.0, 6.0])?;
        product.apply(0.0, &x, 0.0, &mut y)?;
        expect_eq(y.to_vec()?, vec![0.0; 3])?;
    }
    Ok(())
}

fn structural_zeros_do_not_touch_x(device: &Device) -> Result<(), Failed> {
    let a = csr::<f64>(5, &[&[(1, 2.0)], &[], &[(3, 1.0), (1, 1.0)], &[(1, -1.0)]]);
    let x = Vector::from_slice(device, &[f64::NAN, 3.0, f64::NAN, 5.0, f64::INFINITY])?;
    for config in every_default().filter(|config| !config.program().guarantees.fill_touches_x) {
        let config = config.to_builder();
        let config =
            config.value(ValueType::F64).x(ValueType::F64).y(ValueType::F64).accumulator(ValueType::F64);
        let mut y = Vector::from_slice(device, &[f64::NAN; 4])?;
        plan(device, &a, config.build()?)?.apply(1.0, &x, 0.0, &mut y)?;
        expect_eq(y.to_vec()?, vec![6.0, 0.0, 8.0, -3.0])?;
    }
    Ok(())
}

fn stored_zeros_touch_x(device: &Device) -> Result<(), Failed> {
    // Far enough apart that no fill of any layout is in between.
    let mut rows: [&[(u32, f64)]; 10] = [&[]; 10];
    (rows[0], rows[9]) = (&[(0, 0.0), (1, 1.0)], &[(9, 1.0)]);
    let a = csr::<f32>(10, &rows);
    let mut x = [1.0f32; 10];
    x[0] = f32::INFINITY;
    let x = Vector::from_slice(device, &x)?;
    for config in every_default() {
        let mut y = Vector::<f32>::zeros(device, 10)?;
        plan(device, &a, config)?.apply(1.0, &x, 0.0, &mut y)?;
        let y = y.to_vec()?;
        expect_eq((y[0].is_nan(), y[9]), (true, 1.0))?;
    }
    Ok(())
}

/// A coefficient without an imaginary part is a real number, also when it is known to no kernel: 2 times an infinite part is
/// infinite, and not the number that 0 times it would make of both.
fn real_coefficients_scale_both_parts(device: &Device) -> Result<(), Failed> {
    let infinity = f32::INFINITY;
    let of = |re: f32, im: f32| Complex32::new(re, im);
    let a = CsrMatrix::<Complex32>::new(1, 1, vec![0, 1], vec![0], vec![of(1.0, 2.0)])?;
    let types = ValueType::C32;
    let mut tried = 0;
    for config in every_default() {
        let config = config.to_builder().value(types).x(types).y(types).accumulator(types).build();
        let Ok(config) = config else { continue };
        tried += 1;
        let name = config.algorithm().name();
        let mut product = plan(device, &a, config)?;
        let mut y = Vector::from_slice(device, &[of(-1.0, 5.0)])?;
        // Fill times an infinite part is no number.
        if !config.program().guarantees.fill_touches_x {
            let x = Vector::from_slice(device, &[of(infinity, 1.0)])?;
            product.apply(2.0, &x, 3.0, &mut y)?;
            expect_eq((name, y.to_vec()?), (name, vec![of(infinity, infinity)]))?;
        }
        let x = Vector::from_slice(device, &[of(1.0, 0.0)])?;
        y.copy_from_slice(&[of(infinity, 5.0)])?;
        product.apply(2.0, &x, 3.0, &mut y)?;
        expect_eq((name, y.to_vec()?), (name, vec![of(infinity, 19.0)]))?;
    }
    if tried < 20 { Err(format!("{tried} algorithms").into()) } else { Ok(()) }
}

/// Whether the blocks of the architecture have less shared memory than is needed, by the table of the CUDA programming guide. What
/// kernels declare beside it is no more than 48 KiB.
fn has_no_room(device: &Device, error: &Error) -> bool {
    let most = match &*device.properties().arch {
        "sm_75" => 64 << 10,
        "sm_80" => 163 << 10,
        _ => 227 << 10,
    };
    match error {
        Error::SharedMemory { needed, available, .. } => {
            needed > available && (most - (48 << 10)..=most).contains(available)
        }
        _ => false,
    }
}

/// The algorithm with no more shared memory than every architecture has.
fn with_small_blocks(config: KernelConfig) -> Result<KernelConfig, Failed> {
    let with = |key| KernelConfig::from_settings(config.algorithm().name(), [(key, "48")]).ok();
    let found = ["shared_kib", "tile_kib"].into_iter().find_map(with);
    found.ok_or_else(|| format!("{config} has no smaller blocks").into())
}

fn known_answers(device: &Device) -> Result<(), Failed> {
    let a = csr::<f32>(3, &[&[(0, 1.0), (1, 3.0), (2, 2.0)], &[(1, 5.0)]]);
    let x = Vector::from_slice(device, &[2.0f32, 1.0, 4.0])?;
    for config in every_default() {
        if device.is_simulator() {
            compiles(device.compiler(), &config, &device.properties().arch, true)?;
        }
        let mut product = match Spmv::with(device, &op(&a, config.operation()), config) {
            Err(error) if has_no_room(device, &error) => plan(device, &a, with_small_blocks(config)?)?,
            product => product?,
        };
        let mut y = Vector::from_slice(device, &[f32::NAN; 2])?;
        product.apply(1.0, &x, 0.0, &mut y)?;
        expect_eq(y.to_vec()?, vec![13.0, 5.0])?;
        y.copy_from_slice(&[1.0, 2.0])?;
        product.apply(-1.0, &x, 2.0, &mut y)?;
        expect_eq(y.to_vec()?, vec![-11.0, -1.0])?;
    }
    Ok(())
}

/// Empty rows are the identity, fill has no part, and y is reduced with where beta is 1.
fn semirings_touch_what_they_name(device: &Device) -> Result<(), Failed> {
    let a = csr::<f32>(5, &[&[(1, 2.0)], &[], &[(3, 1.0), (1, 0.0), (1, -1.0)], &[(1, -1.0)]]);
    let x = Vector::from_slice(device, &[f32::INFINITY, 3.0, f32::INFINITY, 5.0, f32::NAN])?;
    let least = f32::NEG_INFINITY;
    let results = [
        (Semiring::MaxPlus, [5.0, least, 6.0, 2.0], [7.0, 7.0, 7.0, 7.0]),
        (Semiring::PlusPair, [1.0, 0.0, 3.0, 1.0], [8.0, 7.0, 10.0, 8.0]),
    ];
    for (semiring, stored, reduced) in results {
        for name in AlgorithmSpec::over(semiring) {
            let config = KernelConfig::named(name)?.semiring(semiring).build()?;
            let mut y = Vector::from_slice(device, &[f32::NAN; 4])?;
            let mut product = plan(device, &a, config)?;
            product.apply(1.0, &x, 0.0, &mut y)?;
            expect_eq(y.to_vec()?, stored.to_vec())?;
            y.copy_from_slice(&[7.0; 4])?;
            product.apply(1.0, &x, 1.0, &mut y)?;
            expect_eq(y.to_vec()?, reduced.to_vec())?;
        }
    }
    Ok(())
}

/// A matrix in CSC is its transpose in CSR, for every algorithm: the product with A is that of one for transposes.
fn stored_by_columns(device: &Device) -> Result<(), Failed> {
    let a = csr::<f32>(3, &[&[(0, 1.0), (1, 3.0), (2, 2.0)], &[(1, 5.0)]]);
    let by_columns = CscMatrix::from_csr(&a)?;
    let (x, x_t) =
        (Vector::from_slice(device, &[2.0f32, 1.0, 4.0])?, Vector::from_slice(device, &[2.0f32, 1.0])?);
    for config in every_default() {
        let operation = match config.operation() {
            Operation::Transpose => Operation::NonTranspose,
            _ => Operation::Transpose,
        };
        let not_computed = |operation: Operation, storage, of_arrays: Operation| {
            let (name, spec) = (config.algorithm().name(), config.algorithm().spec());
            let product = format!("does not compute the {operation} product of a matrix in {storage}");
            match spec.operations.contains(&of_arrays) {
                true => {
                    format!("this configuration of {name} {product}; set `operation = {of_arrays}` in it")
                }
                false => format!("{name} {product}; these do: "),
            }
        };
        let with_a = Spmv::with(device, &by_columns, config);
        let mut product = Spmv::with_operation(device, &by_columns, operation, config)?;
        expect_eq(product.operation(), operation)?;
        if operation == Operation::NonTranspose {
            for mut product in [product, with_a?] {
                let mut y = Vector::from_slice(device, &[1.0f32, 2.0])?;
                product.apply(-1.0, &x, 2.0, &mut y)?;
                expect_eq(y.to_vec()?, vec![-11.0, -1.0])?;
            }
        } else {
            let mut y = Vector::from_slice(device, &[f32::NAN; 3])?;
            product.apply(1.0, &x_t, 0.0, &mut y)?;
            expect_eq(y.to_vec()?, vec![2.0, 11.0, 4.0])?;
            let said = with_a.err().map(|error| error.to_string()).unwrap_or_default();
            let wanted = not_computed(Operation::NonTranspose, "csc", Operation::Transpose);
            let names_others = said.contains("these do: ");
            expect_eq(said.starts_with(&wanted) && names_others == said.contains("hola_t"), true)?;
        }
        let refused =
            Spmv::with_operation(device, &a, operation, config).err().map(|error| error.to_string());
        let wanted = not_computed(operation, "csr", operation);
        expect_eq(refused.unwrap_or_default().starts_with(&wanted), true)?;
    }
    Ok(())
}

/// What lies above the diagonal of a Hermitian matrix is the conjugate of what lies below.
fn one_hermitian_triangle(device: &Device) -> Result<(), Failed> {
    let of = |re: f32, im: f32| Complex32::new(re, im);
    let values = vec![of(3.0, 0.0), of(2.0, 1.0), of(0.0, -3.0), of(-5.0, 0.0)];
    let lower = CsrMatrix::<Complex32>::new(3, 3, vec![0, 1, 2, 4], vec![0, 0, 1, 2], values)?;
    let a = SymmetricCsr::new(Symmetry::Hermitian, lower)?;
    let x = Vector::from_slice(device, &[of(1.0, 1.0), of(0.0, 10.0), of(100.0, 0.0)])?;
    let product = vec![of(13.0, 23.0), of(1.0, 303.0), of(-470.0, 0.0)];
    for config in several_for_triangles() {
        let config = config.to_builder().value(ValueType::C32).x(ValueType::C32).y(ValueType::C32);
        let config = config.accumulator(ValueType::C32).build()?;
        let mut plan = Spmv::with(device, &a, config)?;
        expect_eq(
            (plan.operation(), plan.config().operation()),
            (Operation::NonTranspose, Operation::Hermitian),
        )?;
        let mut y = Vector::from_slice(device, &[of(f32::NAN, 0.0); 3])?;
        plan.apply(1.0, &x, 0.0, &mut y)?;
        expect_eq(y.to_vec()?, product.clone())?;
        let mut second = Spmv::with(device, plan.matrix(), config)?;
        second.apply(-2.0, &x, 3.0, &mut y)?;
        expect_eq(y.to_vec()?, product.clone())?;
        let said = Spmv::with_operation(device, &a, Operation::Transpose, config).err();
        let wanted = "no algorithm computes the transpose product of a matrix in hermitian; allowed: non_transpose, which \
                      is that of the conjugate transpose too";
        expect_eq(said.map(|error| error.to_string()).as_deref(), Some(wanted))?;
    }
    Ok(())
}

/// One triangle is the matrix: those that are made for it have no other, those for transposed products not this one.
fn one_triangle(device: &Device) -> Result<(), Failed> {
    let lower = csr::<f32>(3, &[&[], &[(0, 2.0)], &[(1, -3.0), (0, 5.0)]]);
    let x = Vector::from_slice(device, &[1.0f32, 10.0, 100.0])?;
    for (symmetry, product, storage) in [
        (Symmetry::Symmetric, vec![520.0f32, -298.0, -25.0], "symmetric"),
        (Symmetry::SkewSymmetric, vec![-520.0, 302.0, -25.0], "skew_symmetric"),
    ] {
        let a = SymmetricCsr::new(symmetry, lower.clone())?;
        for config in several_for_triangles() {
            let name = config.algorithm().name();
            let mut plan = Spmv::with(device, &a, config)?;
            expect_eq((plan.operation(), plan.vector_lengths()), (Operation::NonTranspose, (3, 3)))?;
            let mut y = Vector::from_slice(device, &[f32::NAN; 3])?;
            plan.apply(1.0, &x, 0.0, &mut y)?;
            expect_eq(y.to_vec()?, product.clone())?;
            // The plan's matrix is a triangle to other plans too.
            let mut second = Spmv::with(device, plan.matrix(), config)?;
            second.apply(-2.0, &x, 3.0, &mut y)?;
            expect_eq(y.to_vec()?, product.clone())?;

            let transposed = Spmv::with_operation(device, &a, Operation::Transpose, config);
            match symmetry {
                Symmetry::Symmetric => {
                    let mut y = Vector::<f32>::zeros(device, 3)?;
                    transposed?.apply(1.0, &x, 0.0, &mut y)?;
                    expect_eq(y.to_vec()?, product.clone())?;
                }
                _ => {
                    let said = transposed.err().map(|error| error.to_string());
                    let wanted = "no algorithm computes the transpose product of a matrix in skew_symmetric; allowed: \
                                  non_transpose, with -alpha for the transpose";
                    expect_eq(said.as_deref(), Some(wanted))?;
                }
            }
            if !config.operation().is_of_triangle() {
                continue;
            }
            let said = Spmv::with(device, &lower, config).err().map(|error| error.to_string());
            let wanted = format!(
                "{name} is not for a matrix in csr storage, of which both triangles are stored; for it: "
            );
            expect_eq(said.unwrap_or_default().starts_with(&wanted), true)?;
        }
        let of_transposes = every_default().filter(|config| config.operation() == Operation::Transpose);
        for config in of_transposes {
            let name = config.algorithm().name();
            let said = Spmv::with_operation(device, &a, Operation::NonTranspose, config).err();
            let computing = AlgorithmSpec::computing(Operation::Symmetric).join(", ");
            let wanted = format!(
                "{name} is not for a matrix in {storage} storage, of which one triangle is stored; for it: {computing}"
            );
            expect_eq(said.map(|error| error.to_string()), Some(wanted))?;
        }
    }
    Ok(())
}

/// Structural zeros, NaN and infinity, on both sides of the diagonal.
fn triangles_touch_what_they_name(device: &Device) -> Result<(), Failed> {
    let lower = csr::<f32>(4, &[&[], &[(0, 2.0)], &[], &[(3, 0.0), (0, 1.0)]]);
    for config in every_triangular() {
        let a = SymmetricCsr::new(Symmetry::Symmetric, lower.clone())?;
        let mut plan = Spmv::with(device, &a, config)?;
        let x = Vector::from_slice(device, &[1.0f32, 3.0, f32::NAN, 5.0])?;
        let mut y = Vector::from_slice(device, &[f32::NAN; 4])?;
        plan.apply(1.0, &x, 0.0, &mut y)?;
        expect_eq(y.to_vec()?, vec![11.0, 2.0, 0.0, 1.0])?;
        let x = Vector::from_slice(device, &[1.0f32, 3.0, 2.0, f32::INFINITY])?;
        plan.apply(1.0, &x, 0.0, &mut y)?;
        let y_now = y.to_vec()?;
        expect_eq((y_now[0], y_now[1], y_now[2], y_now[3].is_nan()), (f32::INFINITY, 2.0, 0.0, true))?;
        let x = Vector::from_slice(device, &[f32::NAN; 4])?;
        y.copy_from_slice(&[1.0, 2.0, 3.0, 4.0])?;
        plan.apply(0.0, &x, 2.0, &mut y)?;
        expect_eq(y.to_vec()?, vec![2.0, 4.0, 6.0, 8.0])?;
    }
    Ok(())
}

/// One copy of a matrix serves both, whether it is stored by rows or by columns.
fn a_matrix_and_its_transpose(device: &Device) -> Result<(), Failed> {
    let structure = structures::all().into_iter().find(|s| s.name == "wide").ok_or("no wide matrix")?;
    let a: CsrMatrix<f64> = structure.matrix(Numbers::Integers);
    let by_columns = CscMatrix::from_csr(&a)?;
    let config =
        |algorithm| KernelConfig::named(algorithm).and_then(|config| config.value(ValueType::F64).build());
    let (plain, transposed) = (config("csr_vector")?, config("hola_t")?);
    let x = Numbers::Integers.vector(a.num_cols(), 29);
    let x_t = Numbers::Integers.vector(a.num_rows(), 31);
    let expected = reference(1.0, &a, &x, 0.0, &vec![0.0; a.num_rows()])?.y;
    let expected_t = reference(1.0, &a.transpose()?, &x_t, 0.0, &vec![0.0; a.num_cols()])?.y;
    let pairs =
        [Spmv::pair(device, &a, plain, transposed)?, Spmv::pair(device, &by_columns, transposed, plain)?];
    for (mut product, mut product_t) in pairs {
        expect_eq(Arc::ptr_eq(product.matrix(), product_t.matrix()), true)?;
        let mut y = Vector::<f64>::zeros(device, a.num_rows())?;
        let mut y_t = Vector::<f64>::zeros(device, a.num_cols())?;
        for _ in 0..2 {
            product.apply(1.0, &Vector::from_slice(device, &x)?, 0.0, &mut y)?;
            product_t.apply(1.0, &Vector::from_slice(device, &x_t)?, 0.0, &mut y_t)?;
            expect_eq(y.to_vec()? == expected, true)?;
            expect_eq(y_t.to_vec()? == expected_t, true)?;
        }
    }
    let swapped = Spmv::pair(device, &a, transposed, plain).err().map(|error| error.to_string());
    let wanted =
        "hola_t does not compute the non_transpose product of a matrix in csr; these do: csr_scalar, ";
    expect_eq(swapped.unwrap_or_default().starts_with(wanted), true)
}

fn vector_operations(device: &Device) -> Result<(), Failed> {
    fn with<T: RealElement>(device: &Device) -> Result<(), Failed> {
        for len in [0usize, 1, 31, 255, 256, 257, 1024, 1025, 300_000] {
            let entries: Vec<f64> = (0..len).map(|i| ((i * 7 + 3) % 11) as f64 - 5.0).collect();
            let typed = |f: &dyn Fn(usize) -> f64| (0..len).map(|i| T::from_f64(f(i))).collect::<Vec<T>>();
            let x = Vector::from_slice(device, &typed(&|i| entries[i]))?;
            let mut y = Vector::<T>::zeros(device, len)?;
            expect_eq(y.to_vec()?, typed(&|_| 0.0))?;
            y.fill(T::from_f64(3.0))?;
            expect_eq(y.to_vec()?, typed(&|_| 3.0))?;
            y.axpy(T::from_f64(-2.0), &x)?;
            expect_eq(y.to_vec()?, typed(&|i| 3.0 - 2.0 * entries[i]))?;
            y.scale(T::from_f64(0.5))?;
            expect_eq(y.to_vec()?, typed(&|i| 1.5 - entries[i]))?;
            let dot: f64 = entries.iter().map(|e| e * (1.5 - e)).sum();
            expect_eq(x.dot(&y)?, dot)?;
            expect_eq(x.norm()?, entries.iter().map(|e| e * e).sum::<f64>().sqrt())?;
            expect_eq(x.amax()?, entries.iter().fold(0.0, |m: f64, e| m.max(e.abs())))?;
            y.copy_from(&x)?;
            expect_eq(y.to_vec()?, x.to_vec()?)?;
            let quarters = Vector::from_slice(device, &typed(&|_| 0.25))?;
            y.multiply(&quarters)?;
            expect_eq(y.to_vec()?, typed(&|i| entries[i] * 0.25))?;
            let mut copy = y.try_clone()?;
            copy.aypx(T::from_f64(-8.0), &quarters)?;
            expect_eq(copy.to_vec()?, typed(&|i| 0.25 - 2.0 * entries[i]))?;
            expect_eq(y.to_vec()?, typed(&|i| entries[i] * 0.25))?;
        }
        Ok(())
    }
    fn of_complex<T: Element>(device: &Device, of: fn(f64, f64) -> T) -> Result<(), Failed> {
        for len in [0usize, 1, 31, 257, 1025, 300_000] {
            let parts = |i: usize, by: usize| ((i * by + 3) % 11) as f64 - 5.0;
            let numbers = |by: usize| (0..len).map(move |i| Complex64::new(parts(i, by), parts(i, by + 1)));
            let typed = |by: usize| numbers(by).map(|number| of(number.re, number.im)).collect::<Vec<T>>();
            let [x, y] = [Vector::from_slice(device, &typed(7))?, Vector::from_slice(device, &typed(4))?];
            let dot: Complex64 = numbers(7).zip(numbers(4)).map(|(x, y)| x.conj() * y).sum();
            expect_eq(x.dotc(&y)?, dot)?;
            expect_eq(y.dotc(&x)?, dot.conj())?;
            expect_eq(x.dot(&y)?, dot.re)?;
            expect_eq(x.dotc(&x)?, Complex64::new(numbers(7).map(|x| x.norm_sqr()).sum(), 0.0))?;
        }
        Ok(())
    }
    with::<f32>(device)?;
    with::<f64>(device)?;
    of_complex(device, |re, im| Complex32::new(re as f32, im as f32))?;
    of_complex(device, Complex64::new)?;
    let real = Vector::from_slice(device, &[1.0f32, 2.0])?;
    expect_eq(real.dotc(&real)?, Complex64::new(5.0, 0.0))
}

fn norm_keeps_its_range(device: &Device) -> Result<(), Failed> {
    for (entry, norm) in [(3e200, 5e200), (3e-200, 5e-200), (3e307, 5e307), (3e-320, 5e-320)] {
        let x = Vector::from_slice(device, &[entry, entry / 3.0 * 4.0])?;
        let actual = x.norm()?;
        if (actual - norm).abs() > 1e-3 * norm {
            return Err(format!("the norm is {actual} and must be about {norm}").into());
        }
    }
    let x = Vector::from_slice(device, &[1.0, f64::NAN])?;
    expect_eq((x.norm()?.is_nan(), x.amax()?.is_nan()), (true, true))?;
    expect_eq(Vector::from_slice(device, &[1.0, f64::INFINITY])?.norm()?, f64::INFINITY)?;
    let beyond_f32 = Vector::<f32>::from_slice(device, &[3e38, 3e38])?.norm()?;
    expect_eq(beyond_f32 > 4.2e38 && beyond_f32 < 4.3e38, true)
}

fn dot_is_reproducible(device: &Device) -> Result<(), Failed> {
    let numbers: Vec<f32> = structures::random(1_000_003, 5).into_iter().map(|n| n as f32).collect();
    let x = Vector::from_slice(device, &numbers)?;
    let y = Vector::from_slice(device, &numbers.iter().rev().copied().collect::<Vec<_>>())?;
    let first = x.dot(&y)?.to_bits();
    for _ in 0..10 {
        expect_eq(x.dot(&y)?.to_bits(), first)?;
    }
    // The order of summation is the kernel's own, so this says that it did not change with the device either.
    let exact: f64 =
        numbers.iter().zip(numbers.iter().rev()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    expect_eq((f64::from_bits(first) - exact).abs() < 1e-9, true)
}

/// Products of one plan on changing streams do not race for its workspace.
/// x and y are aligned to their entries, however many of them a kernel loads at a time.
fn vectors_at_any_address(device: &Device) -> Result<(), Failed> {
    fn with<V: RealElement>(device: &Device, configs: &[KernelConfig]) -> Result<(), Failed> {
        // Full blocks of 2, 3, 4 and 6 next to the diagonal.
        const ROWS: u32 = 12 * 9;
        let row = |row: u32| {
            let first = (row / 12 * 12).saturating_sub(12);
            (first..(first + 36).min(ROWS)).map(|col| (col, f64::from((row + 2 * col) % 3) - 1.0)).collect()
        };
        let a = structures::from_rows(ROWS as usize, (0..ROWS).map(row));
        let numbers: Vec<f64> = (0..=ROWS).map(|i| f64::from(i % 5) - 2.0).collect();
        let mut expected = vec![7.0; ROWS as usize + 2];
        cpu_serial(1.0, &a, &numbers[1..], 0.0, &mut expected[1..=ROWS as usize])?;
        let a: CsrMatrix<V> = a.convert();
        let entries: Vec<V> = numbers.iter().map(|number| V::from_f64(*number)).collect();
        let x = Vector::from_slice(device, &entries)?;
        for config in configs {
            let y = Vector::from_slice(device, &vec![V::from_f64(7.0); expected.len()])?;
            // SAFETY: both lie within vectors that live as long, and nothing else uses that of y meanwhile.
            let [x, mut y_inside] = unsafe {
                [&x, &y].map(|all| {
                    Vector::<V>::from_raw(device, all.address() + size_of::<V>() as u64, ROWS as usize)
                })
            };
            plan(device, &a, *config)?.apply(1.0, &x, 0.0, &mut y_inside)?;
            let actual: Vec<f64> = y.to_vec()?.into_iter().map(V::to_f64).collect();
            expect_same(&actual, &expected).map_err(|error| format!("{config}: {error}"))?;
        }
        Ok(())
    }
    let of_type = |config: KernelConfig, entry: ValueType| {
        let config = config.to_builder().value(entry).x(entry).y(entry);
        config.accumulator(entry.max(ValueType::F32)).build().ok()
    };
    let mut in_blocks = Vec::new();
    for spec in Algorithm::ALL.iter().filter(|spec| spec.name != "cache_blocked") {
        for shape in spec.parameters.iter().filter(|parameter| parameter.name.starts_with("block")) {
            for value in shape.allowed {
                let mut config = KernelConfig::named(spec.name)?;
                config.set(shape.name, &value.to_string())?;
                in_blocks.push(config.build()?);
            }
        }
    }
    let configs = |entry| in_blocks.iter().copied().filter_map(move |config| of_type(config, entry));
    let halves: Vec<_> = every_default()
        .filter_map(|config| of_type(config, ValueType::F16))
        .chain(configs(ValueType::F16))
        .collect();
    with::<f16>(device, &halves)?;
    with::<f32>(device, &configs(ValueType::F32).collect::<Vec<_>>())
}

fn streams(device: &Device) -> Result<(), Failed> {
    let structure = structures::all().into_iter().find(|s| s.name == "power_law").ok_or("no power law")?;
    let a: CsrMatrix<f32> = structure.matrix(Numbers::Integers).convert();
    let x: Vec<f32> = Numbers::Integers.vector(a.num_cols(), 29).iter().map(|x| *x as f32).collect();
    let device_x = Vector::from_slice(device, &x)?;
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    for config in every_default() {
        let mut product = match Spmv::with(device, &op(&a, config.operation()), config) {
            Err(spmv_runtime::Error::Fill { .. } | spmv_runtime::Error::Misfit { .. }) => continue,
            product => product?,
        };
        let mut expected = Vector::<f32>::zeros(device, a.num_rows())?;
        product.apply(1.0, &device_x, 0.0, &mut expected)?;
        let expected = expected.to_vec()?;
        let mut results: Vec<_> =
            (0..40).map(|_| Vector::<f32>::zeros(device, a.num_rows())).collect::<Result<_, _>>()?;
        device.synchronize()?;
        for (index, y) in results.iter_mut().enumerate() {
            match index % 3 {
                0 => product.apply_on(&first, 1.0, &device_x, 0.0, y)?,
                1 => product.apply_on(&second, 1.0, &device_x, 0.0, y)?,
                _ => product.apply(1.0, &device_x, 0.0, y)?,
            }
        }
        first.synchronize()?;
        second.synchronize()?;
        // A stream that the user drops is there until the next product is ordered behind it.
        let gone = device.new_stream()?;
        product.apply_on(&gone, 1.0, &device_x, 0.0, &mut results[0])?;
        gone.synchronize()?;
        drop(gone);
        product.apply(1.0, &device_x, 0.0, &mut results[1])?;
        // After one that is captured, the next is ordered behind the one before that.
        let graph = captured(&first, || product.apply_on(&first, 1.0, &device_x, 0.0, &mut results[2]))?;
        product.apply_on(&first, 1.0, &device_x, 0.0, &mut results[3])?;
        graph.launch()?;
        first.synchronize()?;
        for y in &results {
            expect_eq(y.to_vec()? == expected, true)?;
        }
    }
    Ok(())
}

/// Products of which each takes what the one before stored, without a wait between them: none begins too early, and none
/// finds old entries in a cache. Three vectors take turns, and the matrix swaps neighbours, so that what a vector held
/// three products ago is wrong.
fn chains(device: &Device) -> Result<(), Failed> {
    let (num_rows, products) = (40_000u32, 300);
    let row = |r: u32| {
        let swapped = (r ^ 1, 1.0);
        let others = [r.wrapping_sub(200) & !1, (r + 200) & !1].into_iter().filter(|col| *col < num_rows);
        let mut row: Vec<_> = others.map(|col| (col, 0.0)).chain([swapped]).collect();
        row.sort_by_key(|entry| entry.0);
        row
    };
    let a = structures::from_rows(num_rows as usize, (0..num_rows).map(row)).convert::<f32>();
    let x: Vec<f32> = (0..num_rows).map(|row| row as f32).collect();
    let swapped: Vec<f32> = (0..num_rows).map(|row| (row ^ 1) as f32).collect();
    for config in every_default() {
        let mut product = match Spmv::with(device, &op(&a, config.operation()), config) {
            Err(Error::Fill { .. } | Error::Misfit { .. }) => continue,
            product => product?,
        };
        let vector = || Vector::from_slice(device, &x);
        let (mut first, mut second, mut third) = (vector()?, vector()?, vector()?);
        for _ in 0..products / 3 {
            product.apply(1.0, &first, 0.0, &mut second)?;
            product.apply(1.0, &second, 0.0, &mut third)?;
            product.apply(1.0, &third, 0.0, &mut first)?;
        }
        let expected = if products % 2 == 0 { &x } else { &swapped };
        expect_eq(&first.to_vec()? == expected, true)
            .map_err(|_| format!("{config}: products overtake another"))?;
    }
    Ok(())
}

/// What is launched on a stream, as a CUDA graph.
fn captured(stream: &Stream, launch: impl FnOnce() -> Result<(), Error>) -> Result<CudaGraph, Failed> {
    // Other tests allocate meanwhile, which a capture in the global mode forbids.
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    stream.as_cuda().begin_capture(mode)?;
    launch()?;
    let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    Ok(stream.as_cuda().end_capture(flags)?.ok_or("nothing was captured")?)
}

/// A product can be captured in a CUDA graph and replayed.
fn graph_capture(device: &Device) -> Result<(), Failed> {
    let a = csr::<f32>(3, &[&[(0, 1.0), (1, 3.0), (2, 2.0)], &[(1, 5.0)]]);
    let x = Vector::from_slice(device, &[2.0f32, 1.0, 4.0])?;
    for config in every_default() {
        let mut product = plan(device, &a, config)?;
        let mut y = Vector::from_slice(device, &[1.0f32, 1.0])?;
        let stream = device.new_stream()?;
        device.synchronize()?;
        let graph = captured(&stream, || product.apply_on(&stream, 1.0, &x, 1.0, &mut y))?;
        for _ in 0..3 {
            graph.launch()?;
        }
        stream.synchronize()?;
        expect_eq(y.to_vec()?, vec![40.0, 16.0])?;
    }
    Ok(())
}

/// A captured product takes α and β as they are in memory when it is replayed.
fn graph_capture_of_factors(device: &Device) -> Result<(), Failed> {
    let a = csr::<f32>(3, &[&[(0, 1.0), (1, 3.0), (2, 2.0)], &[(1, 5.0)]]);
    let x = Vector::from_slice(device, &[2.0f32, 1.0, 4.0])?;
    for config in every_default() {
        let config = config.to_builder().alpha(Coefficient::OnDevice).beta(Coefficient::OnDevice).build()?;
        let mut product = plan(device, &a, config)?;
        let [mut alpha, mut beta] = [Vector::<f32>::zeros(device, 1)?, Vector::zeros(device, 1)?];
        let mut y = Vector::from_slice(device, &[f32::NAN; 2])?;
        let stream = device.new_stream()?;
        device.synchronize()?;
        let graph = captured(&stream, || product.apply_on(&stream, &alpha, &x, &beta, &mut y))?;
        for (factors, expected) in
            [([1.0, 0.0], [13.0, 5.0]), ([2.0, -1.0], [13.0, 5.0]), ([0.0, 3.0], [39.0, 15.0])]
        {
            alpha.copy_from_slice(&factors[..1])?;
            beta.copy_from_slice(&factors[1..])?;
            device.synchronize()?;
            graph.launch()?;
            stream.synchronize()?;
            expect_eq(y.to_vec()?, expected.to_vec())?;
        }
    }
    Ok(())
}

fn users_context_and_memory(_: &Device) -> Result<(), Failed> {
    use spmv_runtime::cudarc::driver::CudaContext;
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let own = Device::from_cuda(context.clone(), stream.clone())?;
    let a = csr::<f32>(3, &[&[(0, 1.0), (1, 3.0), (2, 2.0)], &[(1, 5.0)]]);
    // Of a stream other than the device's own: what runs is waited for before the memory is freed.
    let others = context.new_stream()?;
    let x = Vector::from_cuda_slice(&own, others.clone_htod(&[2.0f32, 1.0, 4.0])?)?;
    let memory = Vector::from_slice(&own, &[1.0f32, 2.0, 99.0])?;
    for config in every_default() {
        // SAFETY: the memory holds three entries and is used by nothing else while `y` lives.
        let mut y = unsafe { Vector::<f32>::from_raw(&own, memory.address(), 2) };
        y.copy_from_slice(&[1.0, 2.0])?;
        plan(&own, &a, config)?.apply(-1.0, &x, 2.0, &mut y)?;
        drop(y);
        expect_eq(memory.to_vec()?, vec![-11.0, -1.0, 99.0])?;
        let mut y = Vector::from_cuda_slice(&own, others.clone_htod(&[1.0f32, 2.0])?)?;
        plan(&own, &a, config)?.apply(1.0, &x, 1.0, &mut y)?;
        let mut copied = Vector::<f32>::zeros(&own, 2)?;
        copied.copy_from(&y)?;
        drop(y);
        expect_eq(copied.to_vec()?, vec![14.0, 7.0])?;
    }
    Ok(())
}

fn misuse_is_refused(device: &Device) -> Result<(), Failed> {
    let a = csr::<f32>(3, &[&[(0, 1.0), (1, 3.0), (2, 2.0)], &[(1, 5.0)]]);
    let config = KernelConfig::named("csr_vector")?.build()?;
    let mut plan = Spmv::with(device, &a, config)?;
    let (short, x) = (Vector::<f32>::zeros(device, 2)?, Vector::<f32>::zeros(device, 3)?);
    let mut y = Vector::<f32>::zeros(device, 2)?;
    let mut wide = Vector::<f64>::zeros(device, 2)?;
    let said = |result: Result<(), Error>| result.err().map(|error| error.to_string());
    expect_eq(said(plan.apply(1.0, &short, 0.0, &mut y)), Some("x has 2 entries and must have 3".into()))?;
    let message = said(plan.apply(1.0, &x, 0.0, &mut wide)).unwrap_or_default();
    expect_eq(message.starts_with("y holds f64 and the kernel was generated for f32"), true)?;
    let narrow = KernelConfig::named("csr_vector")?.value(ValueType::F64).build()?;
    let message = Spmv::with(device, &a, narrow).err().map(|error| error.to_string()).unwrap_or_default();
    expect_eq(message.starts_with("value holds f32 and the kernel was generated for f64"), true)?;
    let fixed = KernelConfig::named("csr_vector")?.beta(Coefficient::Zero).build()?;
    let message = said(Spmv::with(device, &a, fixed)?.apply(1.0, &x, 1.0, &mut y)).unwrap_or_default();
    expect_eq(message.starts_with("the kernel was generated for beta = 0 and the product asks for 1"), true)?;
    let mut least =
        Spmv::with(device, &a, KernelConfig::named("csr_vector")?.semiring(Semiring::MinPlus).build()?)?;
    for (alpha, beta, wanted) in [(2.0, 0.0, "alpha = 2"), (1.0, -1.0, "beta = -1")] {
        let message = said(least.apply(alpha, &x, beta, &mut y)).unwrap_or_default();
        expect_eq(message.starts_with(&format!("{wanted} would scale a product over min_plus")), true)?;
    }
    // Nothing was launched: y is as it was.
    expect_eq(y.to_vec()?, vec![0.0, 0.0])
}

fn out_of_memory_leaves_the_device_usable(device: &Device) -> Result<(), Failed> {
    let entries = usize::try_from(device.properties().memory_bytes)? / 4;
    match Vector::<f64>::zeros(device, entries) {
        Err(Error::OutOfMemory { needed, free, .. }) => {
            expect_eq((needed, free > 0), (entries as u64 * 8, true))?;
        }
        other => return Err(format!("twice the device's memory gave {other:?}").into()),
    }
    known_answers(device)
}
