//! Plans whose kernel is found by measuring.
//!
//! [`Spmv::tune`] lets the planner's candidates race on the matrix itself: the one that is expected to be the fastest is first,
//! kernels are compiled on all cores while others run, and whoever is clearly behind is measured no more. A product is timed by
//! events on a GPU, after another product of the same plan, so that caches are as they are in a solver. The simulator has no
//! time: there, a product costs what it counts (sectors of global memory and atomics, 4 each, and warp instructions), once,
//! and the same matrix always gets the same kernel.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use spmv_codegen::{KernelConfig, Operation};

use crate::compiler::ProgramKey;
use crate::device::Device;
use crate::error::Error;
use crate::matrix_source::MatrixSource;
use crate::planner::{Candidate, Constraints, Prediction, candidates_to_measure, ranked};
use crate::spmv::Spmv;

use contest::Contest;
pub use race::Stop;
use race::{Limit, Race};

mod contest;
mod race;

/// How long to look for the fastest kernel; compiling does not count.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Budget {
    /// The time of so many products of the fastest kernel; making the plans comes on top.
    Products(u32),
    /// So long on the host's clock, plans that are made and products; the first candidate is measured in any case.
    Time(Duration),
}

impl Default for Budget {
    /// 200 products.
    fn default() -> Budget {
        Budget::Products(200)
    }
}

/// What came of a tuning.
#[derive(Debug)]
#[non_exhaustive]
pub struct Tuned {
    /// The plan with the fastest kernel.
    pub plan: Spmv,
    /// How it was found.
    pub report: TuningReport,
}

/// How a kernel was found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TuningReport {
    /// What times are in.
    pub unit: Unit,
    /// The kernel that was taken.
    pub config: KernelConfig,
    /// All candidates, in the order in which they were tried.
    pub tried: Vec<Tried>,
    /// Why it was over.
    pub stop: Stop,
    /// What all products took that were measured, and those that ran before them untimed.
    pub spent: f64,
    /// What making all plans took.
    pub prepared: f64,
    /// How long nothing ran because a kernel was still being compiled.
    pub waited: Duration,
}

/// What the times of a [`TuningReport`] are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// What the simulator counts.
    Counted,
}

/// A candidate and what came of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tried {
    /// The configuration.
    pub config: KernelConfig,
    /// What the model expected.
    pub prediction: Option<Prediction>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a candidate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// Its products were measured.
    Measured {
        /// The median of its products.
        product: f64,
        /// Distance of the quartiles as a part of the median.
        spread: f64,
        /// Products measured.
        products: usize,
        /// Making the plan.
        prepare: f64,
        /// Whether it was not clearly behind in the end.
        stayed: bool,
    },
    /// There is no plan: why.
    Refused(String),
    /// The budget was spent before.
    NotTried,
}

impl Spmv {
    /// A plan for y ← α·A·x + β·y with the kernel that is the fastest for `a` of those that were measured within the budget,
    /// and how it was found. x, y and the accumulator have the type of the values (sums of f16 and bf16 are in f32). While it
    /// looks, up to six plans are on the device side by side.
    ///
    /// ```no_run
    /// use spmv_runtime::{Device, Spmv, matrix::CsrMatrix, matrix::matrix_market, tuning::Budget};
    ///
    /// let a: CsrMatrix<f32> = matrix_market::read_file("A.mtx")?;
    /// let tuned = Spmv::tune(&Device::open()?, &a, Budget::Products(200))?;
    /// println!("{} after {} candidates", tuned.report.config, tuned.report.tried.len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Spmv::auto`]; [`Error::Fault`] where a kernel faults.
    pub fn tune(device: &Device, a: &impl MatrixSource, budget: Budget) -> Result<Tuned, Error> {
        Self::tune_with(device, a, Operation::NonTranspose, &Constraints::default(), budget)
    }

    /// As [`tune`](Self::tune), for op(A) and within constraints. What is compared is a product with its share of making the
    /// plan, [`Constraints::products`] of them.
    ///
    /// # Errors
    /// As [`tune`](Self::tune); [`Error::Constraints`] where no kernel keeps them.
    pub fn tune_with(
        device: &Device,
        a: &impl MatrixSource,
        operation: Operation,
        constraints: &Constraints,
        budget: Budget,
    ) -> Result<Tuned, Error> {
        let (matrix, candidates) = ranked(device, a, operation, constraints, candidates_to_measure)?;
        Self::tune_among(device, &matrix, operation, constraints, candidates, budget)
    }

    /// As [`tune_with`](Self::tune_with), among these candidates, in their order.
    ///
    /// # Errors
    /// As [`tune_with`](Self::tune_with).
    pub fn tune_among(
        device: &Device,
        a: &impl MatrixSource,
        operation: Operation,
        constraints: &Constraints,
        candidates: Vec<Candidate>,
        budget: Budget,
    ) -> Result<Tuned, Error> {
        let Some(first) = candidates.first() else { return Err(Error::Constraints { operation }) };
        let matrix = a.to_device(device, first.config.types())?;
        let race = Race::new(limit(budget), device.backend().counts_cost());
        let mut contest = Contest::new(&matrix, operation, *constraints, candidates, race)?;
        let queue = Compiling::new(contest.configs());
        let stop = std::thread::scope(|scope| {
            for _ in 0..queue.helpers() {
                scope.spawn(|| queue.work(device));
            }
            let stop = contest.run();
            queue.stop();
            stop
        })?;
        contest.finish(stop)
    }
}

fn limit(budget: Budget) -> Limit {
    match budget {
        Budget::Products(products) => Limit::Products(products.into()),
        Budget::Time(time) => Limit::Amount(time.as_secs_f64() * 1e3),
    }
}

/// Kernels that are compiled one after the other by as many threads as there are cores. Whoever needs one that is being
/// compiled waits for it, and compiles it where nobody has begun.
#[derive(Debug)]
struct Compiling {
    configs: Vec<KernelConfig>,
    next: AtomicUsize,
    over: AtomicBool,
}

impl Compiling {
    fn new(configs: Vec<KernelConfig>) -> Compiling {
        Compiling { configs, next: AtomicUsize::new(0), over: AtomicBool::new(false) }
    }

    /// Threads that are worth starting.
    fn helpers(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from).min(self.configs.len())
    }

    /// Compiles what nobody has begun, until there is nothing more or it is over.
    fn work(&self, device: &Device) {
        while !self.over.load(Ordering::Relaxed) {
            let Some(config) = self.configs.get(self.next.fetch_add(1, Ordering::Relaxed)) else { return };
            if let Err(error) = device.compile(ProgramKey::Product(*config)) {
                // Whoever needs the kernel meets the error again.
                tracing::debug!(%error, %config, "a candidate was not compiled");
            }
        }
    }

    fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
