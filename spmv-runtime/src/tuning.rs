//! Plans whose kernel is found by measuring.
//!
//! [`Spmv::tune`] lets the planner's candidates race on the matrix itself: the one that is expected to be the fastest is first,
//! kernels are compiled on all cores but one while others run, and whoever is clearly behind is measured no more.
//! [`Neighbours`](crate::planner::neighbours) of those that are near race too, then those of whoever is faster. Products that
//! follow one another are timed by events on a GPU, after another of the same plan, so that caches are as they are in a solver.
//! The simulator has no time: there, a product costs what it counts (sectors of global memory and atomics, 4 each, and warp
//! instructions), once, and with a budget of products the same matrix always gets the same kernel.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spmv_codegen::{KernelConfig, Operation};

use crate::compiler::{Compiler, ProgramKey, Target};
use crate::device::Device;
use crate::error::Error;
use crate::matrix_source::{DeviceMatrix, MatrixSource};
use crate::planner::{
    Candidate, Constraints, Prediction, candidates_to_measure, ranked, refusal, usual_types,
};
use crate::spmv::Spmv;

pub(crate) use background::Pending;
use contest::{Contest, Entrants, Went};
pub use race::Stop;
use race::{Limit, Race};
pub use store::{Choice, ChoiceError, Question};

mod background;
mod contest;
mod race;
mod store;

/// How long to look for the fastest kernel; compiling does not count.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Budget {
    /// The time of so many products of the fastest kernel; making the plans comes on top. On the simulator, which has no time and
    /// counts the same every time, every candidate multiplies once, whatever this says.
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
    /// All candidates: those of the planner, then those beside the fastest.
    pub tried: Vec<Tried>,
    /// Why it was over.
    pub stop: Stop,
    /// What all products took that were measured, and those that ran before them untimed, without what begins and ends a turn of them.
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
        /// What one of its products took, in its longest turns; what begins and ends a turn makes products of shorter ones longer.
        product: f64,
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
    /// and how it was found. x, y and the accumulator have the type of the values (sums of f16 and bf16 are in f32, of i8 in i32). While it
    /// looks, up to nine plans are on the device side by side: eight, and the one that enters.
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
    /// What was found is kept beside the compiled kernels ([`Question`] says what for), and found again in later runs: nothing
    /// is measured then, and the report has no candidates.
    ///
    /// # Errors
    /// As [`tune`](Self::tune); [`Error::Constraints`] where no kernel keeps them; that of a candidate where all are refused for
    /// other reasons.
    pub fn tune_with(
        device: &Device,
        a: &impl MatrixSource,
        operation: Operation,
        constraints: &Constraints,
        budget: Budget,
    ) -> Result<Tuned, Error> {
        let matrix = on_device(device, a)?;
        let disk = device.compiler().disk();
        let question = Question::new(device, &matrix, operation, constraints)?;
        if let Some(choice) = question.choice(disk)
            && let Ok(plan) = Self::with_operation(device, &matrix, operation, choice.config)
            && refusal(&plan, constraints).is_none()
        {
            return Ok(Tuned { plan, report: TuningReport::recalled(device, choice) });
        }
        Self::tune_anew(device, &matrix, operation, constraints, budget)
    }

    /// As [`tune_with`](Self::tune_with), measuring although the kernel may be known from before.
    ///
    /// # Errors
    /// As [`tune_with`](Self::tune_with).
    pub fn tune_anew(
        device: &Device,
        a: &impl MatrixSource,
        operation: Operation,
        constraints: &Constraints,
        budget: Budget,
    ) -> Result<Tuned, Error> {
        let (matrix, candidates) = ranked(device, a, operation, constraints, candidates_to_measure)?;
        let question = Question::new(device, &matrix, operation, constraints)?;
        let entrants = Entrants::AndNeighbours;
        let tuned = Self::raced(device, &matrix, operation, constraints, candidates, entrants, budget)?;
        if let Some(choice) = tuned.report.choice(question) {
            choice.keep(device.compiler().disk());
        }
        Ok(tuned)
    }

    /// As [`tune_with`](Self::tune_with), among these candidates, in their order; the matrix is stored with the types of the first,
    /// and those for others are refused. Nothing is kept, and nothing that was is looked at.
    ///
    /// # Errors
    /// As [`tune_with`](Self::tune_with); [`Error::Constraints`] where there are no candidates, too.
    pub fn tune_among(
        device: &Device,
        a: &impl MatrixSource,
        operation: Operation,
        constraints: &Constraints,
        candidates: Vec<Candidate>,
        budget: Budget,
    ) -> Result<Tuned, Error> {
        if candidates.is_empty() {
            return Err(Error::Constraints {
                operation,
                refused: Some("there are no candidates".to_owned()),
            });
        }
        Self::raced(device, a, operation, constraints, candidates, Entrants::Listed, budget)
    }

    fn raced(
        device: &Device,
        a: &impl MatrixSource,
        operation: Operation,
        constraints: &Constraints,
        candidates: Vec<Candidate>,
        entrants: Entrants,
        budget: Budget,
    ) -> Result<Tuned, Error> {
        let Some(first) = candidates.first() else {
            return Err(Error::Constraints { operation, refused: None });
        };
        let matrix = a.to_device(device, first.config.types())?;
        let race = Race::new(limit(budget), device.backend().counts_cost());
        let mut contest = Contest::new(device, &matrix, operation, *constraints, candidates, entrants, race)?;
        let queue = Compiling::new(device)?;
        let went = std::thread::scope(|scope| {
            let compile = |configs: Vec<KernelConfig>| {
                queue.add(configs.into_iter().map(ProgramKey::Product), || {
                    std::thread::Builder::new().spawn_scoped(scope, || queue.work()).map(drop)
                });
            };
            compile(contest.configs());
            // Whoever is next is waited for, so that the order does not depend on how long compiling takes.
            let went = contest.run(|_| true, compile, None);
            queue.stop();
            went
        })?;
        let stop = match went {
            Went::Over(stop) => stop,
            Went::Waiting => unreachable!("all are taken as they come"),
        };
        match (contest.report(stop), contest.take_best()) {
            (Some(report), Some(plan)) => Ok(Tuned { plan, report }),
            _ => Err(contest.nothing()),
        }
    }
}

impl TuningReport {
    /// That of a kernel which was found before.
    fn recalled(device: &Device, choice: Choice) -> TuningReport {
        TuningReport {
            unit: Unit::of(device),
            config: choice.config,
            tried: Vec::new(),
            stop: Stop::Recalled,
            spent: 0.0,
            prepared: 0.0,
            waited: Duration::ZERO,
        }
    }

    /// What is worth keeping: the kernel that was taken, and its time. None where it was not measured, and where its configuration
    /// has a semiring, functions of the user's or a known α or β: a question is that for sums of products.
    pub fn choice(&self, question: Question) -> Option<Choice> {
        let taken = self.tried.iter().find(|tried| tried.config == self.config)?;
        let Outcome::Measured { product, prepare, .. } = taken.outcome else { return None };
        let choice = Choice { question, config: self.config, product, prepare, unit: self.unit };
        choice.can_be_kept().then_some(choice)
    }
}

impl Unit {
    const ALL: [Unit; 2] = [Unit::Milliseconds, Unit::Counted];

    /// `ms` or `counted`.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Counted => "counted",
        }
    }

    fn of(device: &Device) -> Unit {
        match device.backend().counts_cost() {
            true => Unit::Counted,
            false => Unit::Milliseconds,
        }
    }
}

/// The matrix with values of its own type, on the device.
fn on_device(device: &Device, a: &impl MatrixSource) -> Result<Arc<DeviceMatrix>, Error> {
    a.to_device(device, usual_types(a)?)
}

fn limit(budget: Budget) -> Limit {
    match budget {
        Budget::Products(products) => Limit::Products(products.into()),
        Budget::Time(time) => Limit::Amount(time.as_secs_f64() * 1e3),
    }
}

/// Programs that are compiled one after the other, for a device and without it: threads may outlive it. Whoever needs a program
/// that is being compiled waits for it, and compiles it where nobody has begun.
#[derive(Debug)]
pub(crate) struct Compiling {
    compiler: Arc<Compiler>,
    target: Target,
    /// Threads at most.
    most: usize,
    queue: Mutex<Queue>,
    over: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    /// In the order in which they were added, and whether each is there, or cannot be.
    programs: Vec<(ProgramKey, bool)>,
    /// The first that nobody has begun.
    next: usize,
    /// Threads that compile, or are about to.
    workers: usize,
}

impl Compiling {
    /// As many threads as there are cores; where products are timed, one fewer: a thread that has to wait for a core queues what it
    /// measures too late.
    fn new(device: &Device) -> Result<Compiling, Error> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let most = most_threads(cores, device.backend().counts_cost());
        let (compiler, target) = (device.compiler().clone(), device.target()?);
        Ok(Compiling { compiler, target, most, queue: Mutex::default(), over: AtomicBool::new(false) })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds programs, and starts threads for them, each of which is to [work](Self::work). Where the system has none to give, they
    /// are compiled when they are needed.
    fn add(&self, programs: impl IntoIterator<Item = ProgramKey>, mut start: impl FnMut() -> io::Result<()>) {
        let new = {
            let mut queue = self.queue();
            queue.programs.extend(programs.into_iter().map(|program| (program, false)));
            let waiting = queue.programs.len() - queue.next;
            // Those that are there may all be busy.
            let workers = (queue.workers + waiting).min(self.most).max(queue.workers);
            workers - std::mem::replace(&mut queue.workers, workers)
        };
        for started in 0..new {
            if let Err(error) = start() {
                tracing::debug!(%error, "fewer threads compile kernels ahead");
                self.queue().workers -= new - started;
                return;
            }
        }
    }

    /// Compiles what nobody has begun, until there is nothing more or it is over.
    fn work(&self) {
        while !self.over.load(Ordering::Relaxed) {
            let (index, program) = {
                let mut queue = self.queue();
                let index = queue.next;
                let Some((program, _)) = queue.programs.get(index) else {
                    queue.workers -= 1;
                    return;
                };
                let program = program.clone();
                queue.next += 1;
                (index, program)
            };
            if let Err(error) = self.compiler.artifact(program.clone(), self.target.clone()) {
                // Whoever needs the kernel meets the error again.
                tracing::debug!(%error, ?program, "a candidate was not compiled");
            }
            self.queue().programs[index].1 = true;
        }
    }

    /// Whether the program of this index can be had without waiting, or there is no thread to wait for.
    fn is_ready(&self, index: usize) -> bool {
        let queue = self.queue();
        queue.programs[index].1 || queue.workers == 0
    }

    fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn most_threads(cores: usize, counts_cost: bool) -> usize {
    if counts_cost { cores } else { (cores - 1).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_left_to_whoever_measures_times() {
        assert_eq!([1, 2, 16].map(|cores| most_threads(cores, false)), [1, 1, 15]);
        assert_eq!([1, 2, 16].map(|cores| most_threads(cores, true)), [1, 2, 16]);
    }

    #[test]
    fn threads_are_started_for_what_is_new() {
        let device = Device::simulator();
        let programs = |count| {
            vec![ProgramKey::Product(KernelConfig::named("csr_scalar").unwrap().build().unwrap()); count]
        };
        let queue = Compiling { most: 3, ..Compiling::new(&device).unwrap() };
        let started = |count| {
            let mut started = 0;
            queue.add(programs(count), || {
                started += 1;
                Ok(())
            });
            started
        };
        assert_eq!([1, 100, 1].map(started), [1, 2, 0]);
        assert!((0..102).all(|index| !queue.is_ready(index)));
        (0..3).for_each(|_| queue.work());
        assert!((0..102).all(|index| queue.is_ready(index)));
        // Those that had nothing left to do are over.
        assert_eq!(started(1), 1);
    }

    /// Nobody waits for threads that the system did not give, and their places are free for others.
    #[test]
    fn threads_that_were_not_started_do_not_count() {
        let queue = Compiling { most: 3, ..Compiling::new(&Device::simulator()).unwrap() };
        let add = |allowed: usize| {
            let mut asked = 0;
            queue.add(vec![ProgramKey::Fingerprint; 4], || {
                asked += 1;
                if asked > allowed { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            (asked, queue.queue().workers)
        };
        assert_eq!(add(0), (1, 0));
        assert!((0..4).all(|index| queue.is_ready(index)), "they are compiled when they are needed");
        assert_eq!(add(1), (2, 1));
        assert!((0..8).all(|index| !queue.is_ready(index)), "a thread will come to them");
        assert_eq!(add(2), (2, 3));
    }
}
