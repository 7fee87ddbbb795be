//! Kernels that are compiled while others run, and taken when it is asked for.

use std::sync::Arc;
use std::thread::Builder;

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

/// Faster plans that are being looked for. Threads compile, and have no device: what else there is to do is done by whoever asks
/// for the plan, on the thread that asks. When it is dropped, threads begin nothing more.
#[derive(Debug)]
pub(crate) struct Pending {
    queue: Arc<Compiling>,
    contest: Contest,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.queue.stop();
    }
}

/// Adds programs that threads of their own compile.
fn compile(queue: &Arc<Compiling>, programs: impl IntoIterator<Item = ProgramKey>) {
    queue.add(programs, || {
        let queue = queue.clone();
        Builder::new().spawn(move || queue.work()).map(drop)
    });
}

impl Spmv {
    /// A plan that is ready after one compile, with a kernel that does for any structure, and that [`upgrade`](Self::upgrade)
    /// makes faster. The candidates of [`tune_with`](Self::tune_with) are compiled by threads in the background, which do
    /// nothing else: nothing is measured, and nothing changes, before it is asked for. Dropping the plan stops them as
    /// [`stop_tuning`](Self::stop_tuning) does.
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
        let analysis = Arc::new(Compiling::new(device)?);
        compile(&analysis, [ProgramKey::Analysis(matrix.offset_type(), matrix.index_type())]);
        let (num_rows, num_cols) = matrix.stored_size();
        let (size, nnz) = ((num_rows as u64, num_cols as u64), matrix.nnz() as u64);
        let simple = candidates_for_any(size, nnz, types, of_arrays, l2_bytes(device), constraints)?;
        let made = |candidate: Candidate| {
            let plan = Spmv::with_operation(device, &matrix, operation, candidate.config).ok()?;
            refusal(&plan, constraints).is_none().then_some((plan, candidate))
        };
        let found = simple.into_iter().find_map(made);
        let Some((mut plan, first)) = found else {
            return Spmv::auto_with(device, &matrix, operation, constraints);
        };
        let (_, mut candidates) = ranked(device, &matrix, operation, constraints, candidates_to_measure)?;
        candidates.retain(|candidate| candidate.config != first.config);
        candidates.insert(0, first);
        let race = Race::new(limit(budget), device.backend().counts_cost());
        let entrants = Entrants::AndNeighbours;
        let mut contest = Contest::new(device, &matrix, operation, *constraints, candidates, entrants, race)?;
        contest.lend(0);
        let queue = Arc::new(Compiling::new(device)?);
        compile(&queue, contest.configs().into_iter().map(ProgramKey::Product));
        plan.pending = Some(Box::new(Pending { queue, contest }));
        Ok(plan)
    }

    /// Measures the kernels that have become ready since this was last asked, within the budget, and takes the fastest where it
    /// is not the one that the plan has: whether it did. Where the plan's own cannot have the values by which those of the matrix
    /// were replaced, it takes another that can, the first one if no other was measured. Waits for the device's own stream, and for a
    /// compile only where the system has no thread to give for it. What it measures are products of this plan, too: graphs that
    /// captured some must have finished. Products after it may have other bits, and graphs that captured products before it must be
    /// captured again: what they launch is gone. Does nothing where all is known, and for a plan that was not made by
    /// [`tune_in_background`](Self::tune_in_background).
    ///
    /// # Errors
    /// [`Error::Fault`] where a kernel faults; those of [`Spmv::with`] that are not for the kernel to refuse; those of
    /// [`refresh`](Self::refresh) where values were replaced that the plan cannot have, and nothing is tuned any more.
    pub fn upgrade(&mut self) -> Result<bool, Error> {
        let Some(mut pending) = self.pending.take() else { return Ok(false) };
        let Pending { queue, contest } = &mut *pending;
        let added = |configs: Vec<KernelConfig>| compile(queue, configs.into_iter().map(ProgramKey::Product));
        let went = contest.run(|index| queue.is_ready(index), added, Some(self))?;
        let swapped = contest.swap_best(self);
        if went == Went::Waiting {
            self.pending = Some(pending);
        }
        let better = swapped?;
        self.refresh()?;
        Ok(better)
    }

    /// Whether [`upgrade`](Self::upgrade) may still find a faster kernel.
    pub fn is_tuning(&self) -> bool {
        self.pending.is_some()
    }

    /// Looks for no faster kernel any more: the plan stays as it is, and what was made to be measured is freed. Waits for no
    /// compile. A thread ends the one that it has begun, without the device, which may be gone by then; the end of the process
    /// waits for that. Does nothing for a plan that is not [being tuned](Self::is_tuning).
    pub fn stop_tuning(&mut self) {
        self.pending = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use spmv_matrix::CsrMatrix;
    use spmv_matrix::generate::Generator;

    use super::*;
    use crate::cache::{CacheLocation, DiskCache};
    use crate::compiler::Compiler;

    /// A plan is stopped and dropped, and its device with it, while a thread compiles for it.
    #[test]
    fn nobody_waits_for_what_a_thread_has_begun() {
        let a: CsrMatrix<f32> = Generator::new("stencil_5").unwrap().generate().unwrap();
        let begin = |compiler: &Arc<Compiler>| {
            let device = Device::simulator().with_compiler(compiler.clone());
            let (constraints, budget) = (Constraints::default(), Budget::default());
            Spmv::tune_in_background(&device, &a, Operation::NonTranspose, &constraints, budget).unwrap()
        };
        let fresh = || Arc::new(Compiler::new(DiskCache::open(&CacheLocation::off())));
        let mut plan = begin(&fresh());
        let (config, target) = (*plan.config(), plan.device().target().unwrap());
        let second = ProgramKey::Product(plan.pending.as_ref().unwrap().contest.configs()[1]);
        assert!(plan.is_tuning());
        plan.stop_tuning();
        assert!(!plan.is_tuning() && !plan.upgrade().unwrap() && *plan.config() == config);

        let compiler = fresh();
        let (end, ends) = mpsc::channel();
        let compiling = thread::spawn({
            let compiler = compiler.clone();
            move || compiler.compiling(second, target, || ends.recv_timeout(Duration::from_secs(60)).is_ok())
        });
        let mut plan = begin(&compiler);
        let queue = plan.pending.as_ref().unwrap().queue.clone();
        while queue.queue().next < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        let device = Arc::downgrade(plan.device().backend());
        plan.stop_tuning();
        assert!(!queue.is_ready(1));
        drop(plan);
        assert!(device.upgrade().is_none(), "threads have no part in the device");
        end.send(()).unwrap();
        assert!(compiling.join().unwrap(), "it was still being compiled");
    }
}
