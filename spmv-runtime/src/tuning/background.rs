//! Kernels that are compiled while others run, and taken when it is asked for.

use std::sync::Arc;
use std::thread::JoinHandle;

use spmv_codegen::{KernelConfig, Operation};

use crate::compiler::ProgramKey;
use crate::device::Device;
use crate::error::Error;
use crate::matrix_source::MatrixSource;
use crate::planner::{
    Candidate, Constraints, candidates_for_any, candidates_to_measure, l2_bytes, ranked, refusal, usual_types,
};
use crate::spmv::Spmv;

use super::contest::{Contest, Entrants, Went};
use super::race::Race;
use super::{Budget, Compiling, limit, on_device};

/// Faster plans that are being looked for. Threads compile, and touch no device: what else there is to do is done by whoever asks
/// for the plan, on the thread that asks.
#[derive(Debug)]
pub(crate) struct Pending {
    helpers: Helpers,
    /// `None` when it is over, though threads may still end what they began.
    contest: Option<Contest>,
}

/// Threads that compile, and what they compile; dropping them waits for what has begun.
#[derive(Debug)]
struct Helpers {
    device: Device,
    queue: Arc<Compiling>,
    threads: Vec<JoinHandle<()>>,
}

impl Helpers {
    fn start(device: &Device, programs: impl IntoIterator<Item = ProgramKey>) -> Helpers {
        let mut helpers =
            Helpers { device: device.clone(), queue: Arc::new(Compiling::new(device)), threads: Vec::new() };
        helpers.add(programs);
        helpers
    }

    fn add(&mut self, programs: impl IntoIterator<Item = ProgramKey>) {
        for _ in 0..self.queue.add(programs) {
            let (queue, device) = (self.queue.clone(), self.device.clone());
            match std::thread::Builder::new().spawn(move || queue.work(&device)) {
                Ok(thread) => self.threads.push(thread),
                // The system has no thread to give: others do it, or this one.
                Err(_) if !self.threads.is_empty() => {}
                Err(error) => {
                    tracing::warn!("no thread compiles kernels ahead: {error}");
                    self.queue.work(&self.device);
                }
            }
        }
    }

    fn wait(&mut self) {
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::warn!(
                    "a thread that compiled kernels panicked; they are compiled when they are needed"
                );
            }
        }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        self.queue.stop();
        self.wait();
    }
}

impl Pending {
    /// Gives the plan of the fastest for this one, where it is another: whether it did.
    fn upgrade(&mut self, spmv: &mut Spmv) -> Result<bool, Error> {
        let Some(mut contest) = self.contest.take() else { return Ok(false) };
        let helpers = &mut self.helpers;
        let queue = helpers.queue.clone();
        let compile = |configs: Vec<KernelConfig>| helpers.add(configs.into_iter().map(ProgramKey::Product));
        let went = contest.run(|index| queue.is_ready(index), compile, Some(spmv));
        let went = went.inspect_err(|_| queue.stop())?;
        let swapped = contest.swap_best(spmv);
        match went {
            Went::Waiting => self.contest = Some(contest),
            // What is known to be the fastest needs nobody any more.
            Went::Over(_) => queue.stop(),
        }
        swapped
    }
}

impl Spmv {
    /// A plan that is ready after one compile, with a kernel that does for any structure, and that [`upgrade`](Self::upgrade)
    /// makes faster. The candidates of [`tune_with`](Self::tune_with) are compiled by threads in the background, which do
    /// nothing else: nothing is measured, and nothing changes, before it is asked for. Dropping the plan waits for compiles that
    /// have begun.
    ///
    /// ```no_run
    /// use spmv_runtime::{Budget, Constraints, Device, Operation, Spmv, Vector, matrix::CsrMatrix, matrix::matrix_market};
    ///
    /// let a: CsrMatrix<f32> = matrix_market::read_file("A.mtx")?;
    /// let device = Device::open()?;
    /// let (op, constraints) = (Operation::NonTranspose, Constraints::default());
    /// let mut spmv = Spmv::tune_in_background(&device, &a, op, &constraints, Budget::default())?;
    /// let x = Vector::from_slice(&device, &vec![1.0f32; a.num_cols()])?;
    /// let mut y = Vector::<f32>::zeros(&device, a.num_rows())?;
    /// for step in 0..1000 {
    ///     spmv.apply(1.0, &x, 0.0, &mut y)?;
    ///     if step % 100 == 0 && spmv.upgrade()? {
    ///         println!("from here on with {}", spmv.config());
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Spmv::auto_with`].
    pub fn tune_in_background(
        device: &Device,
        a: &impl MatrixSource,
        operation: Operation,
        constraints: &Constraints,
        budget: Budget,
    ) -> Result<Spmv, Error> {
        let matrix = on_device(device, a)?;
        let types = usual_types(&matrix)?;
        let Some(of_arrays) = matrix.storage().of_arrays(operation) else {
            return Spmv::auto_with(device, &matrix, operation, constraints);
        };
        // Compiled beside the first kernel, so that there is one compile to wait for.
        let mut analysis =
            Helpers::start(device, [ProgramKey::Analysis(matrix.offset_type(), matrix.index_type())]);
        let (num_rows, num_cols) = matrix.stored_size();
        let (size, nnz) = ((num_rows as u64, num_cols as u64), matrix.nnz() as u64);
        let simple = candidates_for_any(size, nnz, types, of_arrays, l2_bytes(device), constraints)?;
        let made = |candidate: Candidate| {
            let plan = Spmv::with_operation(device, &matrix, operation, candidate.config).ok()?;
            refusal(&plan, constraints).is_none().then_some((plan, candidate))
        };
        let found = simple.into_iter().find_map(made);
        analysis.wait();
        let Some((mut plan, first)) = found else {
            return Spmv::auto_with(device, &matrix, operation, constraints);
        };
        let (_, mut candidates) = ranked(device, &matrix, operation, constraints, candidates_to_measure)?;
        candidates.retain(|candidate| candidate.config != first.config);
        candidates.insert(0, first);
        let race = Race::new(limit(budget), device.backend().counts_cost());
        let entrants = Entrants::AndNeighbours;
        let mut contest = Contest::new(&matrix, operation, *constraints, candidates, entrants, race)?;
        contest.lend(0);
        let helpers = Helpers::start(device, contest.configs().into_iter().map(ProgramKey::Product));
        plan.pending = Some(Box::new(Pending { helpers, contest: Some(contest) }));
        Ok(plan)
    }

    /// Measures the kernels that have become ready since this was last asked, within the budget, and takes the fastest where it
    /// is not the one that the plan has: whether it did. Where the plan's own cannot have the values by which those of the matrix
    /// were replaced, it takes another that can, the first one if no other was measured. Waits for the device's own stream, and never for a compile. What it measures are
    /// products of this plan, too: graphs that captured some must have finished. Products
    /// after it may have other bits, and graphs that captured products before it must be captured again: what they launch is
    /// gone. Does nothing where all is known, and for a plan that was not made by
    /// [`tune_in_background`](Self::tune_in_background).
    ///
    /// # Errors
    /// [`Error::Fault`] where a kernel faults; those of [`Spmv::with`] that are not for the kernel to refuse; those of
    /// [`refresh`](Self::refresh) where values were replaced that the plan cannot have, and nothing is tuned any more.
    pub fn upgrade(&mut self) -> Result<bool, Error> {
        let Some(mut pending) = self.pending.take() else { return Ok(false) };
        let upgraded = pending.upgrade(self);
        self.pending = Some(pending);
        let better = upgraded?;
        self.refresh()?;
        Ok(better)
    }

    /// Whether [`upgrade`](Self::upgrade) may still find a faster kernel.
    pub fn is_tuning(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.contest.is_some())
    }
}
