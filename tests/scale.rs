//! More nonzeros than 32 bits count: every algorithm that takes 64-bit offsets, its product compared with one that is computed
//! from the formula of the matrix, and device memory with what was predicted. On a GPU of enough memory there are more than
//! 2³¹ nonzeros, or `SPMV_SCALE_NONZEROS`; the same trials run on the simulator with few. A GPU that is not there shows as
//! ignored, and as failed with `SPMV_REQUIRE_GPU=1`; what there is too little memory for is told and left out. The program
//! needs nothing beside itself, so it travels to a GPU machine alone.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use libtest_mimic::{Arguments, Failed, Trial};
use rayon::prelude::*;
use spmv_codegen::{Algorithm, IndexType, KernelConfig, Operation, ValueType};
use spmv_matrix::{CsrMatrix, MatrixError, SymmetricCsr, Symmetry};
use spmv_runtime::{Device, DeviceMatrix, Error, Spmv, Vector};

/// Nonzeros on a GPU: what 32-bit offsets serve, and the last 131,000 rows more.
const MANY: usize = (1 << 31) + (1 << 25);

/// Nonzeros on the simulator, and bytes of its memory.
const FEW: usize = 40_000;
const FEW_BYTES: u64 = 16 << 20;

/// What the driver takes beside what is asked for: whole pages, and kernels that it loads.
const DRIVERS_OWN: u64 = 64 << 20;

static VERIFIED: AtomicUsize = AtomicUsize::new(0);
static LEFT_OUT: AtomicUsize = AtomicUsize::new(0);

fn main() -> ExitCode {
    // Trials share the matrix and the memory of the device.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let required = std::env::var("SPMV_REQUIRE_GPU").is_ok_and(|value| value == "1");
    let many = std::env::var("SPMV_SCALE_NONZEROS").map_or(MANY, |text| text.parse().expect("a number"));
    let cuda = Device::cuda(0);
    let missing = cuda.as_ref().err().map(ToString::to_string);
    let targets = [
        ("cuda", cuda.ok(), Band::of(many, 255), DRIVERS_OWN),
        ("sim", Some(Device::simulator_with_memory(FEW_BYTES)), Band::of(FEW, 17), 0),
    ];
    let mut trials = Vec::new();
    for (name, device, band, drivers_own) in targets {
        let ignored = device.is_none() && !required;
        let lab = device.map(|device| Arc::new(Lab::new(device, band, drivers_own)));
        let mut add = |what: String, test: Test| {
            let (name, lab) = (format!("{name}/{what}"), lab.clone());
            let told = name.clone();
            let trial = Trial::test(name, move || {
                let lab = lab.ok_or("no CUDA device")?;
                match test(&lab) {
                    Ok(()) => VERIFIED.fetch_add(1, Ordering::Relaxed),
                    Err(Outcome::LeftOut(reason)) => {
                        println!("LEFT OUT: {told}: {reason}");
                        LEFT_OUT.fetch_add(1, Ordering::Relaxed)
                    }
                    Err(Outcome::Failed(failed)) => return Err(failed),
                };
                Ok(())
            });
            trials.push(trial.with_ignored_flag(ignored));
        };
        for config in configs() {
            let what = format!("{} {}", config.algorithm().name(), config.operation());
            add(what, Box::new(move |lab| lab.check(config)));
        }
        add("out_of_memory".into(), Box::new(Lab::runs_out_of_memory));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    let count = |number: &AtomicUsize| number.load(Ordering::Relaxed);
    println!("{} trials of scale verified, {} left out", count(&VERIFIED), count(&LEFT_OUT));
    if let Some(missing) = missing {
        println!("cuda: {missing}");
    }
    conclusion.exit_code()
}

type Test = Box<dyn Fn(&Lab) -> Result<(), Outcome> + Send>;

/// Every algorithm with every operation that takes 64-bit offsets; the others refuse them.
fn configs() -> Vec<KernelConfig> {
    let all = Algorithm::ALL.iter().flat_map(|spec| {
        spec.operations.iter().map(|&operation| {
            KernelConfig::builder((spec.default)()).operation(operation).offset(IndexType::U64).build()
        })
    });
    all.filter_map(Result::ok).collect()
}

/// What else than the right product comes of a trial.
enum Outcome {
    LeftOut(String),
    Failed(Failed),
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Outcome {
        match error {
            Error::OutOfMemory { .. } | Error::Misfit { .. } | Error::Fill { .. } => {
                Outcome::LeftOut(error.to_string())
            }
            other => Outcome::Failed(other.into()),
        }
    }
}

impl From<String> for Outcome {
    fn from(problem: String) -> Outcome {
        Outcome::Failed(problem.into())
    }
}

/// A square lower triangle: a row has the `width` columns that end at its diagonal. Numbers are small and whole, so that sums
/// are exact in any order, and values of a diagonal are the same: up to 256 wide, rows repeat. Where one triangle is stored, it
/// is that one.
#[derive(Clone, Copy)]
struct Band {
    size: usize,
    width: usize,
}

impl Band {
    /// With so many nonzeros, or a part of a row more.
    fn of(nnz: usize, width: usize) -> Band {
        Band { size: (nnz + width * (width - 1) / 2).div_ceil(width).max(width), width }
    }

    fn first_col(self, row: usize) -> usize {
        (row + 1).saturating_sub(self.width)
    }

    /// Nonzeros of the rows before this one.
    fn offset(self, row: usize) -> usize {
        let short = row.min(self.width);
        short * (short + 1) / 2 + (row - short) * self.width
    }

    fn value(row: usize, col: usize) -> i64 {
        ((row * 7 + col * 3) % 5) as i64 - 2
    }

    fn x(col: usize) -> i64 {
        (col % 7) as i64 - 3
    }

    fn y(row: usize) -> i64 {
        (row % 3) as i64
    }
}

impl Band {
    /// The matrix, made on all cores.
    fn matrix(self) -> Result<CsrMatrix<f32, u64>, MatrixError> {
        let nnz = self.offset(self.size);
        let row_offsets: Vec<u64> =
            (0..=self.size).into_par_iter().map(|row| self.offset(row) as u64).collect();
        let (mut col_indices, mut values) = (vec![0u32; nnz], vec![0f32; nnz]);
        const CHUNK: usize = 1 << 18;
        let chunks = col_indices.par_chunks_mut(CHUNK).zip(values.par_chunks_mut(CHUNK)).enumerate();
        chunks.for_each(|(chunk, (cols, values))| {
            let first = (chunk * CHUNK) as u64;
            let mut row = row_offsets.partition_point(|offset| *offset <= first) - 1;
            let mut col = self.first_col(row) + (first - row_offsets[row]) as usize;
            for (place, value) in cols.iter_mut().zip(values) {
                (*place, *value) = (col as u32, Band::value(row, col) as f32);
                col += 1;
                if col > row {
                    row += 1;
                    col = self.first_col(row);
                }
            }
        });
        CsrMatrix::new(self.size, self.size, row_offsets, col_indices, values)
    }

    /// As [`matrix`](Self::matrix), of which only this triangle is stored; one that is skew-symmetric has zeros on its main
    /// diagonal.
    fn triangle(
        self,
        symmetry: Symmetry,
        lower: CsrMatrix<f32, u64>,
    ) -> Result<SymmetricCsr<f32, u64>, MatrixError> {
        let (row_offsets, col_indices, mut values) = lower.into_parts();
        if symmetry == Symmetry::SkewSymmetric {
            row_offsets[1..].iter().for_each(|end| values[*end as usize - 1] = 0.0);
        }
        SymmetricCsr::new(symmetry, CsrMatrix::new(self.size, self.size, row_offsets, col_indices, values)?)
    }

    /// 2·op(A)·x − y, from the formula alone.
    fn product(self, operation: Operation) -> Vec<f32> {
        let of_row = |row: usize| -> i64 {
            (self.first_col(row)..=row).map(|col| Band::value(row, col) * Band::x(col)).sum()
        };
        let of_col = |col: usize| -> i64 {
            let rows = col..(col + self.width).min(self.size);
            rows.map(|row| Band::value(row, col) * Band::x(row)).sum()
        };
        // The main diagonal is in both, and of a skew-symmetric matrix zero, which the difference is.
        let sum = |row: usize| match operation {
            Operation::Transpose => of_col(row),
            Operation::Symmetric => of_row(row) + of_col(row) - Band::value(row, row) * Band::x(row),
            Operation::SkewSymmetric => of_row(row) - of_col(row),
            _ => of_row(row),
        };
        (0..self.size).into_par_iter().map(|row| (2 * sum(row) - Band::y(row)) as f32).collect()
    }
}

/// A device and the matrix that its trials share.
struct Lab {
    device: Device,
    band: Band,
    drivers_own: u64,
    shared: Mutex<Shared>,
}

/// What is made when a trial needs it first.
#[derive(Default)]
struct Shared {
    on_host: Option<Arc<CsrMatrix<f32, u64>>>,
    /// One at a time: it fills a good part of the memory.
    on_device: Option<(Option<Symmetry>, Arc<DeviceMatrix>)>,
    /// By operation.
    products: Vec<(Operation, Arc<Vec<f32>>)>,
}

impl Lab {
    fn new(device: Device, band: Band, drivers_own: u64) -> Lab {
        Lab { device, band, drivers_own, shared: Mutex::default() }
    }

    /// Bytes of the matrix on the device.
    fn predicted(&self) -> u64 {
        let nnz = self.band.offset(self.band.size);
        DeviceMatrix::predict_bytes(self.band.size, nnz, ValueType::F32, IndexType::U64, IndexType::U32)
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_host(&self) -> Result<Arc<CsrMatrix<f32, u64>>, Outcome> {
        let mut shared = self.shared();
        if let Some(on_host) = &shared.on_host {
            return Ok(on_host.clone());
        }
        let (needed, has) = (self.predicted(), self.device.properties().memory_bytes);
        if needed > has {
            return Err(Outcome::LeftOut(format!(
                "the matrix takes {needed} bytes and the device has {has}"
            )));
        }
        if let Some(available) = host_memory().filter(|available| needed > *available) {
            return Err(Outcome::LeftOut(format!(
                "the matrix takes {needed} bytes and the host has {available}"
            )));
        }
        let started = Instant::now();
        let made = Arc::new(self.band.matrix().map_err(Error::from)?);
        println!("{} rows, {} nonzeros made in {:.1?}", self.band.size, made.nnz(), started.elapsed());
        Ok(shared.on_host.insert(made).clone())
    }

    /// The matrix on the device, or its triangle; what it takes is compared with what was predicted.
    fn on_device(&self, operation: Operation) -> Result<Arc<DeviceMatrix>, Outcome> {
        let on_host = self.on_host()?;
        let symmetry = match operation {
            Operation::Symmetric => Some(Symmetry::Symmetric),
            Operation::SkewSymmetric => Some(Symmetry::SkewSymmetric),
            _ => None,
        };
        let mut shared = self.shared();
        if let Some((of, there)) = &shared.on_device
            && *of == symmetry
        {
            return Ok(there.clone());
        }
        // What is there in another storage leaves first.
        shared.on_device = None;
        let triangle = symmetry.map(|symmetry| self.band.triangle(symmetry, (*on_host).clone()));
        let triangle = triangle.transpose().map_err(Error::from)?;
        let (before, started) = (self.device.free_bytes()?, Instant::now());
        let on_device = match &triangle {
            Some(triangle) => DeviceMatrix::upload_symmetric(&self.device, triangle, IndexType::U64)?,
            None => DeviceMatrix::upload(&self.device, &on_host, IndexType::U64)?,
        };
        let (predicted, used) = (self.predicted(), before - self.device.free_bytes()?);
        println!("uploaded in {:.1?}: {predicted} bytes predicted, {used} used", started.elapsed());
        self.compare_bytes("the matrix", predicted, used)?;
        Ok(shared.on_device.insert((symmetry, Arc::new(on_device))).1.clone())
    }

    fn product(&self, operation: Operation) -> Arc<Vec<f32>> {
        let mut shared = self.shared();
        if let Some((_, product)) = shared.products.iter().find(|(of, _)| *of == operation) {
            return product.clone();
        }
        let product = Arc::new(self.band.product(operation));
        shared.products.push((operation, product.clone()));
        product
    }

    /// Within 5 % of each other, and what the driver takes for itself.
    fn compare_bytes(&self, what: &str, predicted: u64, used: u64) -> Result<(), String> {
        match predicted.abs_diff(used) <= predicted / 20 + self.drivers_own {
            true => Ok(()),
            false => Err(format!("{what}: {predicted} bytes of device memory predicted and {used} used")),
        }
    }

    fn plan(&self, config: KernelConfig) -> Result<Spmv, Outcome> {
        Ok(Spmv::with(&self.device, &self.on_device(config.operation())?, config)?)
    }

    /// A plan takes the memory that it says, and its product is that of the formula.
    fn check(&self, config: KernelConfig) -> Result<(), Outcome> {
        let started = Instant::now();
        // What a plan takes is asked for where nothing is loaded or freed meanwhile.
        drop(self.plan(config)?);
        let before = self.device.free_bytes()?;
        let again = Instant::now();
        let mut plan = self.plan(config)?;
        let (prepared, said, used) =
            (again.elapsed(), plan.workspace_bytes(), before - self.device.free_bytes()?);
        self.compare_bytes("the plan", said, used)?;
        self.multiply(&mut plan)?;
        println!(
            "{} {}: {said} bytes said, {used} used, {} for a while; {prepared:.1?} for a plan, {:.1?} in all",
            config.algorithm().name(),
            config.operation(),
            plan.scratch_bytes(),
            started.elapsed(),
        );
        Ok(())
    }

    fn multiply(&self, plan: &mut Spmv) -> Result<(), Outcome> {
        let vector = |entry: fn(usize) -> i64| {
            let entries: Vec<f32> = (0..self.band.size).into_par_iter().map(|i| entry(i) as f32).collect();
            Vector::from_slice(&self.device, &entries)
        };
        let (x, mut y) = (vector(Band::x)?, vector(Band::y)?);
        plan.apply(2.0, &x, -1.0, &mut y)?;
        let found = y.to_vec()?;
        let expected = self.product(plan.config().operation());
        let wrong = found.par_iter().zip(&*expected).position_first(|(found, expected)| found != expected);
        match wrong {
            None => Ok(()),
            Some(row) => Err(format!("row {row} is {} and must be {}", found[row], expected[row]).into()),
        }
    }

    /// Where memory runs out while a plan is made, or before a matrix is copied, that is said, nothing is kept, and what was
    /// there before multiplies as it did.
    fn runs_out_of_memory(&self) -> Result<(), Outcome> {
        let wide =
            |name| KernelConfig::named(name).and_then(|builder| builder.offset(IndexType::U64).build());
        let [without_copy, with_copy] = ["csr_vector", "sell_c_sigma"].map(wide);
        let (without_copy, with_copy) = (without_copy.map_err(Error::from)?, with_copy.map_err(Error::from)?);
        let mut there = self.plan(without_copy)?;
        let plan = self.plan(with_copy)?;
        let needed = plan.workspace_bytes() + plan.scratch_bytes();
        drop(plan);
        let runs_out = |left: u64, attempt: &dyn Fn() -> Result<(), Error>| -> Result<(), Outcome> {
            let filler = self.leave(left)?;
            let before = self.device.free_bytes()?;
            match attempt() {
                Err(Error::OutOfMemory { needed, free, .. }) if needed > free => {}
                other => return Err(format!("where {before} bytes are free: {other:?}").into()),
            }
            let after = self.device.free_bytes()?;
            drop(filler);
            match after.abs_diff(before) <= self.drivers_own {
                true => Ok(()),
                false => Err(format!("{before} bytes were free before, and {after} after it").into()),
            }
        };
        let matrix = self.on_device(Operation::NonTranspose)?;
        for eighths in [1, 4, 7] {
            runs_out(needed / 8 * eighths, &|| Spmv::with(&self.device, &matrix, with_copy).map(drop))?;
        }
        let on_host = self.on_host()?;
        runs_out(self.predicted() / 2, &|| {
            DeviceMatrix::upload(&self.device, &on_host, IndexType::U64).map(drop)
        })?;
        self.multiply(&mut there)?;
        self.multiply(&mut self.plan(with_copy)?)
    }

    /// Takes all memory of the device but so many bytes, and as many as the driver takes for itself.
    fn leave(&self, bytes: u64) -> Result<Vec<Vector<i8>>, Error> {
        const MOST: u64 = 1 << 30;
        let mut filler = Vec::new();
        loop {
            let more = self.device.free_bytes()?.saturating_sub(bytes).min(MOST);
            if more <= self.drivers_own {
                return Ok(filler);
            }
            match Vector::zeros(&self.device, more as usize) {
                Ok(part) => filler.push(part),
                // What is left is in pieces.
                Err(Error::OutOfMemory { .. }) => return Ok(filler),
                Err(other) => return Err(other),
            }
        }
    }
}

/// Bytes that the host has to give, where it says so.
fn host_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}
