//! A race of plans on a device.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spmv_codegen::{KernelConfig, Loads, Operation};

use crate::backend::Allocation;
use crate::device::{Device, OrderedStream};
use crate::error::{Error, ErrorKind};
use crate::matrix_source::DeviceMatrix;
use crate::planner::{Candidate, Constraints, Setting, Step, neighbours, refusal, step};
use crate::scalar::Scalar;
use crate::spmv::Spmv;

use super::race::{Next, Race, Stop};
use super::{Outcome, Tried, TuningReport, Unit};

/// Predicted times over that of the fastest, beyond which a candidate is not worth a plan.
const HOPELESS: f64 = 2.0;

/// The part of the budget after which what is beside the fastest enters before what is left of the list.
const LISTED: f64 = 0.45;

/// The time of an algorithm's fastest over that of all, up to which other block sizes and ways to load may make it the fastest.
const NEAR: f64 = 1.1;

/// Candidates of the list after which what is beside the fastest enters, however little is spent: the prices seldom rank the fastest
/// of a matrix behind them.
const FIRST_LISTED: usize = 15;

/// Predicted times over that of the fastest, from which on what is beside the fastest enters before the list: prices seldom err by
/// more.
const UNLIKELY: f64 = 1.4;

/// Times over that of the fastest, from which on what is beside it enters only after all else where steps measured elsewhere lead to
/// that: on an H200 two of 246 that were beyond turned out as fast as that.
const WORSE: f64 = 1.05;

/// Pairs of x and y where L2 holds the matrix: where they lie in it, and where a plan's arrays do, decides 1 to 2 per cent of what
/// a product takes there, and a mean over several pairs says more of a kernel.
const CACHED_PAIRS: usize = 3;

/// How long a device's memory is busy at most after a part of it was given or taken back, measured on an H200: 0.8 ms, in which what
/// is bound by it takes 1.1 times as long.
const SETTLING: Duration = Duration::from_millis(2);

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entrants {
    /// The candidates.
    Listed,
    /// The candidates, and what is beside the fastest ([`neighbours`]), beside what is faster still, and so on.
    AndNeighbours,
}

/// Candidates, those of them that have a plan, and what they are multiplied with.
#[derive(Debug)]
pub(crate) struct Contest {
    /// The handle whose kernels race.
    device: Device,
    matrix: Arc<DeviceMatrix>,
    operation: Operation,
    constraints: Constraints,
    entrants: Entrants,
    entries: Vec<Entry>,
    /// How many of them were there from the beginning.
    listed: usize,
    /// Whether kernels race that leave caches to x. Where none of the list does, L2 has room for the matrix, and how much of it such
    /// a kernel finds there, and how quick it is, follows from what else ran.
    streams: bool,
    /// The candidate that each runner is.
    runners: Vec<usize>,
    /// The candidate whose plan somebody else has, who lends it.
    lent: Option<usize>,
    /// Why the last candidate that has no plan has none, and why the last does not race that has one and keeps no constraints.
    refused: Option<Error>,
    constrained: Option<String>,
    race: Race,
    /// Whether plans were made or freed since.
    is_unsettled: bool,
    /// Pairs of x and y that products take in turn.
    vectors: Vec<[Allocation; 2]>,
    spent: f64,
    prepared: f64,
    waited: Duration,
}

#[derive(Debug)]
struct Entry {
    candidate: Candidate,
    /// All its settings, in order.
    settings: Vec<Setting>,
    /// What it is a neighbour of.
    of: Option<usize>,
    /// What a product is expected to take, with its share of making the plan: of a neighbour what that is neighbour of.
    expected: Option<f64>,
    plan: Option<Spmv>,
    prepare: f64,
    entered: bool,
    /// Those of its neighbours that are entries.
    neighbours: Vec<Beside>,
    outcome: Outcome,
}

impl Entry {
    fn new(candidate: Candidate, expected: Option<f64>, of: Option<usize>) -> Entry {
        let mut settings = candidate.config.settings();
        settings.sort_unstable();
        Entry {
            settings,
            candidate,
            of,
            expected,
            plan: None,
            prepare: 0.0,
            entered: false,
            neighbours: Vec::new(),
            outcome: Outcome::NotTried,
        }
    }
}

/// Which neighbours of a candidate race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    /// Those with another block size or another way to load: for the fastest of each algorithm that is near.
    OtherLaunches,
    /// Those with another parameter: for the fastest of all, and of each algorithm that may be as fast.
    OtherParameters,
}

/// How the race stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Went {
    /// It is over.
    Over(Stop),
    /// Those that have not entered are not ready.
    Waiting,
}

impl Contest {
    /// Makes x and y, all zero: their values do not count.
    pub(super) fn new(
        device: &Device,
        matrix: &Arc<DeviceMatrix>,
        operation: Operation,
        constraints: Constraints,
        candidates: Vec<Candidate>,
        entrants: Entrants,
        race: Race,
    ) -> Result<Contest, Error> {
        let (x_length, y_length) = operation.vector_lengths(matrix.num_rows(), matrix.num_cols());
        let bytes = |of: fn(&KernelConfig) -> usize, length: usize| {
            candidates.iter().map(|candidate| of(&candidate.config) as u64).max().unwrap_or(0) * length as u64
        };
        let x_bytes = bytes(|config| config.types().x.size(), x_length);
        let y_bytes = bytes(|config| config.types().y.size(), y_length);
        let backend = device.backend();
        let entry = |candidate: Candidate| {
            let expected =
                candidate.prediction.map(|prediction| prediction.ms_of_product(constraints.products));
            Entry::new(candidate, expected, None)
        };
        let streams = candidates.iter().any(|candidate| candidate.config.loads() == Loads::Streaming);
        let pairs = if streams || backend.counts_cost() { 1 } else { CACHED_PAIRS };
        let pair = |_| {
            let x = Allocation::zeroed(backend, x_bytes, "x, to measure with")?;
            Ok([x, Allocation::zeroed(backend, y_bytes, "y, to measure with")?])
        };
        Ok(Contest {
            vectors: (0..pairs).map(pair).collect::<Result<_, Error>>()?,
            device: device.clone(),
            matrix: matrix.clone(),
            operation,
            constraints,
            entrants,
            listed: candidates.len(),
            streams,
            entries: candidates.into_iter().map(entry).collect(),
            runners: Vec::new(),
            lent: None,
            refused: None,
            constrained: None,
            race,
            is_unsettled: true,
            spent: 0.0,
            prepared: 0.0,
            waited: Duration::ZERO,
        })
    }

    /// The configurations, in the order in which they enter.
    pub(super) fn configs(&self) -> Vec<KernelConfig> {
        self.entries.iter().map(|entry| entry.candidate.config).collect()
    }

    /// Lets all candidates race, those that are `ready` as the others are not, and has what joins them compiled. `lent` is the plan
    /// of the candidate that [`Contest::lend`] said.
    pub(super) fn run(
        &mut self,
        ready: impl Fn(usize) -> bool,
        mut compile: impl FnMut(Vec<KernelConfig>),
        mut lent: Option<&mut Spmv>,
    ) -> Result<Went, Error> {
        loop {
            let waiting = self.entries.iter().any(|entry| !entry.entered);
            let next_to = self.without_neighbours();
            match self.race.next(waiting || next_to.is_some()) {
                Next::Enter => {
                    let entered = self.entries[..self.listed].iter().filter(|entry| entry.entered).count();
                    let is_time =
                        self.race.left() < 1.0 - LISTED || entered >= FIRST_LISTED || self.is_rest_unlikely();
                    // Of an exact race all of the list are part.
                    let adds = !waiting || is_time && !self.race.is_exact();
                    if let Some((index, beside)) = next_to.filter(|_| adds) {
                        compile(self.add_neighbours(index, beside));
                        continue;
                    }
                    let Some(next) = self.next_to_enter(&ready) else { return Ok(Went::Waiting) };
                    self.entries[next].entered = true;
                    self.enter(next, lent.as_deref())?;
                }
                Next::Measure { runner, products } => {
                    let time = self.products(runner, products, lent.as_deref_mut())?;
                    self.race.record(runner, products, time);
                    self.free_those_behind();
                }
                Next::Stop(stop) => return Ok(Went::Over(stop)),
            }
        }
    }

    /// Whether the next of the list is expected to be far behind what is the fastest so far.
    fn is_rest_unlikely(&self) -> bool {
        let next = self.entries[..self.listed].iter().find(|entry| !entry.entered);
        let best = self.race.best().map(|best| &self.entries[self.runners[best]]);
        let expected = next.and_then(|next| next.expected).zip(best.and_then(|best| best.expected));
        expected.is_some_and(|(next, best)| next > UNLIKELY * best)
    }

    /// The next to enter of those that are ready: of what is beside others the one that is likely to be the fastest, then the next of
    /// the list, then what is likely to be behind.
    fn next_to_enter(&self, ready: impl Fn(usize) -> bool) -> Option<usize> {
        let enters = |index: &usize| !self.entries[*index].entered && ready(*index);
        let mut beside: Vec<_> = (self.listed..self.entries.len()).filter(enters).collect();
        let likely = self.likely(&beside);
        beside.sort_by(|a, b| likely[a].total_cmp(&likely[b]));
        let fast = beside.first().copied().filter(|index| likely[index] <= WORSE);
        fast.or_else(|| (0..self.listed).find(enters)).or(beside.first().copied())
    }

    /// What products of these are likely to take over what those of the fastest do, by steps that were measured; of one that no such
    /// step leads to, what the one takes that it is a neighbour of, where that is not behind.
    fn likely(&self, indices: &[usize]) -> HashMap<usize, f64> {
        let name = |index: usize| self.entries[index].candidate.config.algorithm().name();
        let behind = |runner: usize| self.race.behind(runner);
        let measured_of = |algorithm: &str| {
            let runners = self.runners.iter().enumerate().filter(|(_, index)| name(**index) == algorithm);
            let settings = runners.map(|(runner, index)| (runner, &self.entries[*index].settings[..]));
            Measured::new(settings.collect(), |to, from| self.race.over(to, from))
        };
        let mut of_algorithms = HashMap::new();
        let likely = |index: &usize| {
            let Entry { settings, of, .. } = &self.entries[*index];
            let measured = of_algorithms.entry(name(*index)).or_insert_with_key(|name| measured_of(name));
            let by_steps = measured.lead_to(settings, behind);
            let parent = || self.runners.iter().position(|runner| Some(*runner) == *of).and_then(behind);
            (*index, by_steps.unwrap_or_else(|| parent().unwrap_or(1.0).min(WORSE)))
        };
        indices.iter().map(likely).collect()
    }

    /// The candidate whose neighbours of this kind are to race next and do not yet.
    fn without_neighbours(&self) -> Option<(usize, Beside)> {
        if self.entrants == Entrants::Listed {
            return None;
        }
        let best = self.runners[self.race.best()?];
        let measured = self.runners.iter().enumerate();
        let measured = measured.filter_map(|(runner, index)| Some((self.race.behind(runner)?, *index)));
        let name = |index: usize| self.entries[index].candidate.config.algorithm().name();
        let mut all = with_neighbours(best, measured.collect(), self.race.alike(), name).into_iter();
        all.find(|(index, beside)| !self.entries[*index].neighbours.contains(beside))
    }

    /// Lets neighbours of a candidate race, and says which are new.
    fn add_neighbours(&mut self, of: usize, beside: Beside) -> Vec<KernelConfig> {
        let Entry { candidate, expected, neighbours: added, .. } = &mut self.entries[of];
        added.push(beside);
        let (config, expected) = (candidate.config, *expected);
        let mut new = neighbours(config);
        new.retain(|other| (other.algorithm() == config.algorithm()) == (beside == Beside::OtherLaunches));
        let is_kept = |config: &KernelConfig| {
            (self.streams || config.loads() == Loads::Cached)
                && (!self.constraints.deterministic || config.outline().guarantees.bit_reproducible)
        };
        new.retain(|config| {
            self.entries.iter().all(|entry| entry.candidate.config != *config) && is_kept(config)
        });
        let entry = |config: &KernelConfig| {
            Entry::new(
                Candidate::new(*config, format!("a step from {}", config.algorithm().name())),
                expected,
                Some(of),
            )
        };
        self.entries.extend(new.iter().map(entry));
        new
    }

    /// Says which candidate's plan is lent from now on.
    pub(super) fn lend(&mut self, index: usize) {
        self.lent = Some(index);
    }

    /// Gives the plan of the fastest candidate for the one that is lent, where that is another: whether it did. A plan that
    /// cannot have the values by which those of the matrix were replaced since, or does not keep the constraints with them, is
    /// refused, the one that is lent too, and the next fastest is asked.
    pub(super) fn swap_best(&mut self, lent: &mut Spmv) -> Result<bool, Error> {
        while let (Some(runner), Some(before)) = (self.race.best(), self.lent) {
            let best = self.runners[runner];
            let mut plan = self.entries[best].plan.take();
            let is_lent = plan.is_none();
            // What is there already stays where only memory for a copy of it is missing.
            let gives_way = |error: &Error| match is_lent {
                true => matches!(error, Error::Misfit { .. }),
                false => error.is_of_one_kernel(),
            };
            let asked = plan.as_mut().unwrap_or(lent);
            let reason = match asked.refresh() {
                Ok(()) => refusal(asked, &self.constraints),
                Err(error) if gives_way(&error) => Some(error.to_string()),
                Err(error) => {
                    self.entries[best].plan = plan;
                    return Err(error);
                }
            };
            if let Some(reason) = reason {
                self.entries[best].outcome = Outcome::Refused(reason);
                self.race.withdraw(runner);
                continue;
            }
            let Some(mut plan) = plan else { return Ok(false) };
            std::mem::swap(lent, &mut plan);
            let still_runs = self.runners.iter().position(|index| *index == before);
            if still_runs.is_some_and(|runner| self.race.runs(runner)) {
                self.entries[before].plan = Some(plan);
            }
            self.lent = Some(best);
            return Ok(true);
        }
        // Nobody is left in the race: the kernel that does for any structure can have any values.
        let can_stay = |lent: &mut Spmv| match lent.refresh() {
            Ok(()) => refusal(lent, &self.constraints).is_none(),
            Err(error) => !matches!(error, Error::Misfit { .. }),
        };
        if self.lent.is_some() && !can_stay(lent) {
            let config = self.entries[0].candidate.config;
            *lent = Spmv::with_operation(&self.device, &self.matrix, self.operation, config)?;
            self.lent = Some(0);
            return Ok(true);
        }
        Ok(false)
    }

    /// Makes the candidate's plan. One that cannot have its memory, whose layout is refused or that turns out not to keep the
    /// constraints does not enter.
    fn enter(&mut self, index: usize, lent: Option<&Spmv>) -> Result<(), Error> {
        if let Some(plan) = lent.filter(|_| self.lent == Some(index)) {
            let prepare = match plan.device().backend().counts_cost() {
                true => 0.0,
                false => plan.prepare_time().as_secs_f64() * 1e3,
            };
            self.race.enter(prepare / self.constraints.products.max(1) as f64);
            self.runners.push(index);
            self.entries[index].prepare = prepare;
            return Ok(());
        }
        let (config, expected) = (self.entries[index].candidate.config, self.entries[index].expected);
        let best = self.race.best().and_then(|best| self.entries[self.runners[best]].expected);
        if let (Some(expected), Some(best)) = (expected, best)
            && expected > HOPELESS * best
        {
            let reason = format!("expected to take {:.1} times as long as the fastest", expected / best);
            self.entries[index].outcome = Outcome::Refused(reason);
            return Ok(());
        }
        let device = self.device.clone();
        self.is_unsettled = true;
        let started = Instant::now();
        if let Err(error) = device.kernel(&config) {
            if error.kind() == ErrorKind::Fault {
                return Err(error);
            }
            self.refuse(index, error);
            return Ok(());
        }
        self.waited += started.elapsed();
        let (mut made, started) = (None, Instant::now());
        let make = &mut || {
            made = Some(Spmv::with_operation(&device, &self.matrix, self.operation, config));
            Ok(())
        };
        // A plan is made once, and its own clock is the host's where there is a time.
        let counted = match device.backend().counts_cost() {
            true => device.backend().time(0, 1, make)?,
            false => make().map(|()| 0.0)?,
        };
        if self.race.is_of_time() {
            self.race.spend(started.elapsed().as_secs_f64() * 1e3);
        }
        let plan = match made.expect("the plan was made, or not, above") {
            Ok(plan) => plan,
            // The matrix may be stored with other types, or in another way, than those of a caller's candidate.
            Err(error)
                if error.is_of_one_kernel()
                    || matches!(
                        error,
                        Error::ValueType { .. }
                            | Error::OffsetType { .. }
                            | Error::IndexType { .. }
                            | Error::Operation { .. }
                            | Error::Storage { .. }
                    ) =>
            {
                self.refuse(index, error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if let Some(reason) = refusal(&plan, &self.constraints) {
            self.constrained = Some(format!("{}: {reason}", config.algorithm().name()));
            self.entries[index].outcome = Outcome::Refused(reason);
            return Ok(());
        }
        let prepare = match device.backend().counts_cost() {
            true => counted,
            false => plan.prepare_time().as_secs_f64() * 1e3,
        };
        self.prepared += prepare;
        self.race.enter(prepare / self.constraints.products.max(1) as f64);
        self.runners.push(index);
        self.entries[index].plan = Some(plan);
        self.entries[index].prepare = prepare;
        Ok(())
    }

    fn refuse(&mut self, index: usize, error: Error) {
        self.entries[index].outcome = Outcome::Refused(error.to_string());
        self.refused = Some(error);
    }

    /// Why there is no plan where nothing was measured: that none keeps the constraints, or the last candidate's reason.
    pub(super) fn nothing(&mut self) -> Error {
        let refused = self.refused.take().filter(|_| self.constrained.is_none());
        refused.unwrap_or(Error::Constraints { operation: self.operation, refused: self.constrained.take() })
    }

    /// What each of so many products of a runner takes, after one that is not timed: others ran since its last, or its arrays are in
    /// no cache yet.
    fn products(&mut self, runner: usize, products: u32, lent: Option<&mut Spmv>) -> Result<f64, Error> {
        let device = self.device.clone();
        let mut vectors = self.vectors.iter().map(|pair| pair.each_ref().map(Allocation::address)).cycle();
        let (one, zero) = (Scalar::F64(1.0).into(), Scalar::F64(0.0).into());
        let entry = &mut self.entries[self.runners[runner]];
        let plan = entry.plan.as_mut().or(lent).expect("a runner that is measured has a plan, or it is lent");
        let started = Instant::now();
        if std::mem::take(&mut self.is_unsettled) && !device.backend().counts_cost() {
            std::thread::sleep(SETTLING);
        }
        let multiply = &mut || {
            let [x, y] = vectors.next().expect("there is a pair");
            plan.launch_on(&OrderedStream::default(), x, y, one, zero)
        };
        let time = device.backend().time(1, products, multiply)?;
        let of_host = started.elapsed().as_secs_f64() * 1e3;
        let took = self.race.of_products(products, time);
        self.spent += took;
        self.race.spend(if self.race.is_of_time() { of_host } else { took });
        Ok(time)
    }

    /// Frees the plans of those that are behind by now.
    fn free_those_behind(&mut self) {
        for (runner, index) in self.runners.iter().enumerate() {
            if !self.race.runs(runner) {
                self.is_unsettled |= self.entries[*index].plan.take().is_some();
            }
        }
    }

    /// The plan of the fastest candidate.
    pub(super) fn take_best(&mut self) -> Option<Spmv> {
        let best = self.race.best()?;
        self.entries[self.runners[best]].plan.take()
    }

    /// What came of all candidates; `None` where nothing was measured.
    pub(super) fn report(&mut self, stop: Stop) -> Option<TuningReport> {
        for (runner, index) in self.runners.iter().enumerate() {
            if let Some((product, products)) = self.race.measured(runner) {
                let entry = &mut self.entries[*index];
                let stayed = self.race.runs(runner);
                entry.outcome = Outcome::Measured { product, products, prepare: entry.prepare, stayed };
            }
        }
        let best = self.race.best()?;
        let tried = self.entries.iter().map(|entry| Tried {
            config: entry.candidate.config,
            prediction: entry.candidate.prediction,
            outcome: entry.outcome.clone(),
        });
        Some(TuningReport {
            unit: Unit::of(&self.device),
            config: self.entries[self.runners[best]].candidate.config,
            tried: tried.collect(),
            stop,
            spent: self.spent,
            prepared: self.prepared,
            waited: self.waited,
        })
    }
}

/// The candidates whose neighbours race, in their order: those of the `best`, then of candidates with how far they are `behind` the
/// fastest of each algorithm that is near, with other parameters where it is another algorithm's that may be as fast as the best.
fn with_neighbours(
    best: usize,
    behind: Vec<(f64, usize)>,
    alike: f64,
    algorithm: impl Fn(usize) -> &'static str,
) -> Vec<(usize, Beside)> {
    let up_to = |limit: f64| behind.iter().copied().filter(|(behind, _)| *behind <= limit).collect();
    let others = fastest_of_each(up_to(NEAR), alike, &algorithm).into_iter().filter(|index| *index != best);
    let rivals = fastest_of_each(up_to(alike), 1.0, &algorithm).into_iter();
    let rivals = rivals.filter(|index| algorithm(*index) != algorithm(best));
    let of_best = [(best, Beside::OtherLaunches), (best, Beside::OtherParameters)].into_iter();
    of_best
        .chain(others.map(|index| (index, Beside::OtherLaunches)))
        .chain(rivals.map(|index| (index, Beside::OtherParameters)))
        .collect()
}

/// Runners of an algorithm.
struct Measured<'a> {
    settings: Vec<(usize, &'a [Setting])>,
    /// What each step between two of them did to a product's time, as a factor: the least where several did the same step.
    effects: HashMap<Step<'a>, f64>,
}

impl<'a> Measured<'a> {
    /// Runners with all their settings, and what a product of one takes `over` what one of another does.
    fn new(
        settings: Vec<(usize, &'a [Setting])>,
        over: impl Fn(usize, usize) -> Option<f64>,
    ) -> Measured<'a> {
        let mut effects = HashMap::new();
        for (from, before) in &settings {
            for (to, after) in &settings {
                if let (Some(step), Some(over)) = (step(before, after), over(*to, *from)) {
                    let effect = effects.entry(step).or_insert(over);
                    *effect = over.min(*effect);
                }
            }
        }
        Measured { settings, effects }
    }

    /// What a product with these settings takes if a step there does what the same step did elsewhere: the least of what follows from
    /// the times of runners that are one step away.
    fn lead_to(&self, settings: &[Setting], time: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let from = |(runner, before): &(usize, &[Setting])| {
            Some(time(*runner)? * self.effects.get(&step(before, settings)?)?)
        };
        self.settings.iter().filter_map(from).min_by(f64::total_cmp)
    }
}

/// Of candidates with how far they are behind, the fastest of each algorithm and those that take up to `alike` times as long, the fastest of all
/// first.
fn fastest_of_each(
    mut candidates: Vec<(f64, usize)>,
    alike: f64,
    algorithm: impl Fn(usize) -> &'static str,
) -> Vec<usize> {
    candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut fastest: HashMap<&str, f64> = HashMap::new();
    candidates.retain(|(time, index)| *time <= alike * *fastest.entry(algorithm(*index)).or_insert(*time));
    candidates.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_algorithm_has_its_fastest() {
        let names = ["dasp", "special", "bsr", "special", "dasp"];
        let times = vec![(1.1, 0), (1.03, 1), (1.06, 2), (1.0, 3), (1.09, 4)];
        assert_eq!(fastest_of_each(times.clone(), 1.0, |index| names[index]), [3, 2, 4]);
        assert_eq!(fastest_of_each(times.clone(), 1.02, |index| names[index]), [3, 2, 4, 0]);
        assert_eq!(fastest_of_each(times, 1.03, |index| names[index]), [3, 1, 2, 4, 0]);
        assert_eq!(fastest_of_each(Vec::new(), 1.0, |index| names[index]), []);
    }

    #[test]
    fn steps_do_elsewhere_what_they_did() {
        let settings = |lanes: &str, block: &str| {
            let settings = [("lanes_per_row", lanes), ("threads_per_block", block), ("unroll", "2")];
            settings.map(|(name, value)| (name, value.to_owned())).to_vec()
        };
        let known = [settings("4", "256"), settings("8", "256"), settings("4", "128"), settings("4", "64")];
        let times = [1.0, 0.9, 1.1, 1.2];
        let measured = known.iter().enumerate().map(|(runner, settings)| (runner, &settings[..]));
        let measured = Measured::new(measured.collect(), |to, from| Some(times[to] / times[from]));
        let time = |runner: usize| Some(times[runner]);
        let likely = |lanes, block| measured.lead_to(&settings(lanes, block), time);
        let is = |likely: Option<f64>, time: f64| likely.is_some_and(|likely| (likely - time).abs() < 1e-9);
        assert!(is(likely("8", "128"), 0.9 * 1.1));
        assert!(is(likely("8", "64"), 0.9 * 1.2));
        assert_eq!(likely("16", "128"), None, "nobody went from 4 or 8 to 16");
        let others = [settings("4", "256"), vec![("x_kib", "1".to_owned())]].concat();
        assert_eq!(measured.lead_to(&others, time), None);
    }

    #[test]
    fn rivals_have_other_parameters() {
        use Beside::{OtherLaunches, OtherParameters};
        let names = ["dasp", "special", "csr5", "special", "csr5", "hola"];
        let behind = vec![(1.08, 0), (1.01, 1), (1.02, 2), (1.0, 3), (1.015, 4), (1.2, 5)];
        let found = with_neighbours(3, behind, 1.02, |index| names[index]);
        let launches = [1, 4, 2, 0].map(|index| (index, OtherLaunches));
        let of_best = [(3, OtherLaunches), (3, OtherParameters)];
        assert_eq!(found, [&of_best[..], &launches, &[(4, OtherParameters)]].concat());
    }
}
