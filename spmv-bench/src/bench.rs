//! Measures contenders side by side: all of them on one matrix in one process, sample by sample in turn.

use std::time::Instant;

use rayon::prelude::*;
use spmv_runtime::codegen::{IndexType, ValueType};
use spmv_runtime::matrix::{self, CsrMatrix, SymmetricCsr, Symmetry, Value, Verification, bf16, f16};
use spmv_runtime::{Device, DeviceMatrix, RealElement, Vector, planner};

use crate::auto::{self, Auto};
use crate::check::{self, Expected};
use crate::contender::{
    Absent, Contender, Converted, DeviceProduct, Facts, HostProduct, OnDevice, Product, Task,
};
use crate::cusparse::Libraries;
use crate::instruments::{Instruments, Pinned};
use crate::machine;
use crate::ours::{self, Kernels, Ours};
use crate::record::{Head, Record, Row};
use crate::request::{Operation, Place, Request};
use crate::suite::Entry;
use crate::timing::{self, Lane};
use crate::{cpu, cusparse};

/// Products that are compared with the first one bit by bit where nothing is promised of bits.
const REPEATS: usize = 4;

/// Those where it is: one alone may be held up, and how long a product takes decides how often it is measured.
const TIMED: usize = 2;

/// What happens while a request is run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A matrix is next: number `number` of `of`.
    Matrix {
        /// Its name.
        name: &'a str,
        /// From 1 on.
        number: usize,
        /// All of them.
        of: usize,
    },
    /// Something is being done with the matrix.
    Step(&'a str),
    /// A contender has been measured.
    Row(&'a Row),
    /// The contenders of a matrix, type and operation have been measured.
    Rows(&'a [Row]),
    /// All of a matrix has been measured: what there is so far.
    Record(&'a Record),
    /// A matrix cannot be made or read; the others are measured all the same.
    Unreadable {
        /// Its name.
        name: &'a str,
        /// Why.
        error: &'a crate::suite::SuiteError,
    },
}

/// Measures what is asked for. What goes wrong with a contender is in its row, what is missing altogether in the notes.
pub fn run(request: &Request, on: &mut dyn FnMut(Event<'_>)) -> Record {
    let started = Instant::now();
    let mut record = Record { head: machine::head(request), rows: Vec::new() };
    let mut session = Session::new(request, &mut record.head);
    for (index, entry) in request.entries.iter().enumerate() {
        on(Event::Matrix { name: &entry.name, number: index + 1, of: request.entries.len() });
        // One structure for all types.
        let wide = match entry.load::<f64>() {
            Ok(matrix) => matrix,
            Err(error) => {
                on(Event::Unreadable { name: &entry.name, error: &error });
                record.head.notes.push(error.to_string());
                continue;
            }
        };
        let rows = &mut record.rows;
        for value in &request.values {
            match value {
                ValueType::F16 => session.measure(entry, &wide, &wide.convert::<f16>(), rows, on),
                ValueType::Bf16 => session.measure(entry, &wide, &wide.convert::<bf16>(), rows, on),
                ValueType::F32 => session.measure(entry, &wide, &wide.convert::<f32>(), rows, on),
                _ => session.measure(entry, &wide, &wide, rows, on),
            }
        }
        record.head.wall_s = started.elapsed().as_secs_f64();
        on(Event::Record(&record));
    }
    record
}

/// What lasts for all matrices.
struct Session<'r> {
    request: &'r Request,
    instruments: Option<Instruments>,
    libraries: Option<Libraries>,
    kernels: Kernels,
    simulator: Option<Device>,
    copy_gb_per_s: f64,
}

impl<'r> Session<'r> {
    fn new(request: &'r Request, head: &mut Head) -> Session<'r> {
        let mut session = Session {
            request,
            instruments: None,
            libraries: None,
            kernels: Kernels::default(),
            simulator: None,
            copy_gb_per_s: 0.0,
        };
        match &request.place {
            Place::Cpu => {}
            Place::Device(device) if device.is_simulator() => session.simulator = Some(device.clone()),
            Place::Device(device) => {
                if request.metrics {
                    session.simulator = Some(Device::simulator());
                }
                match Instruments::new(device) {
                    Ok(instruments) => session.instruments = Some(instruments),
                    Err(error) => head.notes.push(format!("nothing is measured on the GPU: {error}")),
                }
            }
        }
        let wanted = cusparse::names().any(|name| request.contenders.has(name));
        match &session.instruments {
            Some(instruments) => {
                if !request.once {
                    match instruments.copy_gb_per_s().and_then(|copy| Ok((copy, instruments.launch_ms()?))) {
                        Ok((copy, launch)) => (head.copy_gb_per_s, head.launch_ms) = (copy, launch),
                        Err(error) => head.notes.push(format!("no roof was measured: {error}")),
                    }
                }
                if wanted {
                    let (libraries, notes) = Libraries::load(&request.cusparse, instruments);
                    head.cusparse = libraries.versions();
                    head.notes.extend(notes);
                    session.libraries = Some(libraries);
                }
            }
            None if wanted => head.notes.push("cuSPARSE is left out: it needs a GPU".into()),
            None => {}
        }
        session.copy_gb_per_s = head.copy_gb_per_s;
        session
    }

    fn measure<V: RealElement>(
        &mut self,
        entry: &Entry,
        wide: &CsrMatrix<f64, u32>,
        a: &CsrMatrix<V, u32>,
        rows: &mut Vec<Row>,
        on: &mut dyn FnMut(Event<'_>),
    ) {
        let values = wide.values().par_iter().zip(a.values());
        let beyond = values.find_first(|(wide, value)| wide.is_finite() && !value.to_f64().is_finite());
        let beyond = beyond.map(|(wide, _)| format!("{wide:e} is outside the range of {}", V::TYPE));
        for operation in &self.request.operations {
            let measured = match (&beyond, operation) {
                (Some(why), _) => Err(why.clone()),
                (None, Operation::Symmetric) => {
                    symmetric_of(a).map(|symmetric| self.measure_operation(entry, &symmetric, *operation, on))
                }
                (None, _) => Ok(self.measure_operation(entry, a, *operation, on)),
            };
            let measured = measured.unwrap_or_else(|why| {
                let status = Absent::Skipped(why).status();
                vec![Row { status, ..blank_row(entry, a, *operation) }]
            });
            for row in &measured {
                on(Event::Row(row));
            }
            on(Event::Rows(&measured));
            rows.extend(measured);
        }
    }

    fn measure_operation<V: RealElement>(
        &mut self,
        entry: &Entry,
        a: &CsrMatrix<V, u32>,
        operation: Operation,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Vec<Row> {
        let request = self.request;
        // Of a transpose they are not looked at: they take a copy.
        let features = (operation == Operation::NonTranspose).then(|| matrix::features(a));
        let device = self.instruments.as_ref().map(Instruments::device).or(self.simulator.as_ref());
        let l2_bytes = device.map_or(planner::MEASURED_L2_BYTES, planner::l2_bytes);
        let found = ours::configs(request, V::TYPE, operation, features.as_ref(), l2_bytes);
        on(Event::Step("compiling"));
        if let Some(instruments) = &self.instruments {
            self.kernels.make(instruments.device(), &found.configs);
        }
        if let Some(simulator) = self.simulator.as_ref().filter(|_| a.nnz() <= request.simulated_nnz) {
            match &self.instruments {
                None => self.kernels.make(simulator, &found.configs),
                Some(_) => Kernels::default().make(simulator, &found.configs),
            }
        }
        let mut contenders: Vec<Box<dyn Contender<V> + '_>> = Vec::new();
        for config in &found.configs {
            let usual = features.as_ref().map(|features| planner::loads(*config, features, l2_bytes));
            contenders.push(Box::new(Ours::new(*config, usual, &self.kernels)));
        }
        if request.contenders.has(auto::NAME) {
            contenders.push(Box::new(Auto));
        }
        if let Some(libraries) = &self.libraries {
            let ways = libraries.contenders(operation).into_iter();
            for way in ways.filter(|way| request.contenders.has(way.name())) {
                contenders.push(Box::new(way));
            }
        }
        for product in cpu::contenders::<V>(&request.contenders) {
            contenders.push(Box::new(product));
        }
        let stage = Stage {
            request,
            instruments: self.instruments.as_ref(),
            simulator: self.simulator.as_ref(),
            copy_gb_per_s: self.copy_gb_per_s,
        };
        let blank = blank_row(entry, a, operation);
        let mut rows = stage.measure(a, operation, &contenders, &blank, on);
        rows.extend(found.refused.into_iter().map(|(name, why)| Row {
            contender: name,
            status: Absent::Skipped(why).status(),
            ..blank.clone()
        }));
        rows
    }
}

/// Both triangles of the symmetric matrix that has the lower one of A.
fn symmetric_of<V: RealElement>(a: &CsrMatrix<V, u32>) -> Result<CsrMatrix<V, u32>, String> {
    let symmetric = SymmetricCsr::from_lower_of(Symmetry::Symmetric, a);
    symmetric.and_then(|symmetric| symmetric.to_csr()).map_err(|error| error.to_string())
}

fn blank_row<V: RealElement>(entry: &Entry, a: &CsrMatrix<V, u32>, operation: Operation) -> Row {
    Row {
        matrix: entry.name.clone(),
        class: entry.class.clone(),
        rows: a.num_rows() as u64,
        cols: a.num_cols() as u64,
        nnz: a.nnz() as u64,
        value: V::TYPE.name().into(),
        operation: operation.name().into(),
        held_out: entry.held_out,
        ..Row::default()
    }
}

/// Where contenders meet for one matrix.
struct Stage<'a> {
    request: &'a Request,
    instruments: Option<&'a Instruments>,
    simulator: Option<&'a Device>,
    copy_gb_per_s: f64,
}

impl Stage<'_> {
    /// One row a contender, in their order.
    fn measure<V: RealElement>(
        &self,
        a: &CsrMatrix<V, u32>,
        operation: Operation,
        contenders: &[Box<dyn Contender<V> + '_>],
        blank: &Row,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Vec<Row> {
        let row = |contender: &dyn Contender<V>| Row {
            contender: contender.name().into(),
            params: contender.params().into(),
            ..blank.clone()
        };
        let mut rows: Vec<Row> = contenders.iter().map(|contender| row(&**contender)).collect();
        if let Err(error) = self.fill(a, operation, contenders, &mut rows, on) {
            for row in rows.iter_mut().filter(|row| row.status.is_empty()) {
                row.status = Absent::Failed(error.clone()).status();
            }
        }
        rows
    }

    fn fill<V: RealElement>(
        &self,
        a: &CsrMatrix<V, u32>,
        operation: Operation,
        contenders: &[Box<dyn Contender<V> + '_>],
        rows: &mut [Row],
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), String> {
        let request = self.request;
        on(Event::Step("computing what is right"));
        let transposed = match operation {
            Operation::NonTranspose | Operation::Symmetric => None,
            Operation::Transpose => Some(a.transpose().map_err(|error| error.to_string())?),
        };
        let op_a = transposed.as_ref().unwrap_or(a);
        let [alpha, beta] = [request.alpha, request.beta].map(|number| V::Sum::from_f64(number).to_f64());
        let x = check::random::<V>(op_a.num_cols(), request.seed);
        let y = match beta {
            0.0 => vec![V::from_f64(f64::NAN); op_a.num_rows()],
            _ => check::random::<V>(op_a.num_rows(), request.seed ^ 1),
        };
        let expected = Expected::of(op_a, (alpha, beta), &x, &y).map_err(|error| error.to_string())?;
        drop(transposed);
        let operands = Operands { x, y, expected };
        let new_task = |device| Task { a, operation, alpha, beta, device, converted: Converted::default() };

        if let Some(simulator) = self.simulator {
            on(Event::Step("simulating"));
            if a.nnz() <= request.simulated_nnz {
                let (on_device, mut y) = on_device(simulator, None, a, &operands)?;
                let task = new_task(Some(on_device));
                for (contender, row) in
                    contenders.iter().zip(&mut *rows).filter(|(_, row)| row.is_generated())
                {
                    self.simulate(&task, &**contender, row, &mut y, &operands);
                }
            }
        }
        let (mut task, mut y) = (new_task(None), None);
        if let Some(instruments) = self.instruments {
            match on_device(instruments.device(), Some(instruments), a, &operands) {
                Ok((on_device, y_device)) => (task.device, y) = (Some(on_device), Some(y_device)),
                Err(error) => {
                    for row in rows.iter_mut().filter(|row| row.side() != "cpu") {
                        row.status = Absent::Failed(error.clone()).status();
                    }
                }
            }
        }
        on(Event::Step("checking"));
        self.check_and_time(&task, y.as_mut(), contenders, rows, &operands, on)
    }

    /// Gets every contender ready, checks a product of each, then times all of them in turn; those before the others where the
    /// device has no room for all.
    fn check_and_time<V: RealElement>(
        &self,
        task: &Task<'_, V>,
        mut y_device: Option<&mut Vector<V>>,
        contenders: &[Box<dyn Contender<V> + '_>],
        rows: &mut [Row],
        operands: &Operands<V>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), String> {
        let mut y_host = operands.y.clone();
        let mut on_gpu = match (self.instruments, &task.device) {
            (Some(instruments), Some(_)) => Some(OnGpu::new(instruments, &operands.y)?),
            _ => None,
        };
        let mut lanes = Vec::new();
        let mut pace = Pace::default();
        for index in firsts_first(rows) {
            let (contender, row) = (&contenders[index], &mut rows[index]);
            if !row.status.is_empty() {
                continue;
            }
            if let Some(times) = pace.hopeless(&row.contender) {
                let why = format!("its first variant took {times:.0} times as long as the fastest");
                row.status = Absent::Skipped(why).status();
                continue;
            }
            if task.device.is_none() && row.side() != "cpu" {
                row.status = Absent::Skipped(self.why_no_kernels(task.a.nnz())).status();
                continue;
            }
            let mut ready = contender.prepare(task);
            if matches!(ready, Err(Absent::NoRoom(_))) && !lanes.is_empty() {
                self.time_lanes(
                    &mut lanes,
                    task,
                    y_device.as_deref_mut(),
                    (&operands.x, &mut y_host),
                    rows,
                    on,
                );
                ready = contender.prepare(task);
            }
            let row = &mut rows[index];
            let mut prepared = match ready {
                Ok(prepared) => prepared,
                Err(absent) => {
                    row.status = absent.status();
                    continue;
                }
            };
            fill_facts(row, &prepared.facts);
            let checked = match (&mut prepared.product, &mut on_gpu, &mut y_device, &task.device) {
                (Product::OnHost(product), ..) => {
                    check_on_host(product, operands, &mut y_host, &prepared.depth)
                }
                (Product::OnDevice(product), Some(on_gpu), Some(y), Some(device)) => {
                    let repeats = match (self.request.once, prepared.facts.deterministic) {
                        (true, _) => 0,
                        (_, Some(_)) => TIMED,
                        (_, None) => REPEATS,
                    };
                    on_gpu.check(product, &device.x, y, operands, &prepared.depth, repeats)
                }
                _ => Err("there is no device".to_owned()),
            };
            match checked {
                Ok(checked) => {
                    fill_checked(row, &checked, prepared.facts.deterministic);
                    pace.took(&row.contender, checked.ms);
                    lanes.push(Lane::new(index, prepared.product, checked.ms));
                }
                Err(error) => row.status = Absent::Failed(error).status(),
            }
        }
        self.time_lanes(&mut lanes, task, y_device, (&operands.x, &mut y_host), rows, on);
        if !self.request.once {
            fill_break_even(rows);
        }
        Ok(())
    }

    /// Times those that are ready, in turn, and drops them with what they keep.
    fn time_lanes<'t, V: RealElement>(
        &self,
        lanes: &mut Vec<Lane<'t, V>>,
        task: &'t Task<'_, V>,
        y_device: Option<&mut Vector<V>>,
        host: (&[V], &mut [V]),
        rows: &mut [Row],
        on: &mut dyn FnMut(Event<'_>),
    ) {
        if !self.request.once {
            on(Event::Step("timing"));
            let device = task.device.as_ref().zip(y_device).map(|(device, y)| (&device.x, y));
            timing::time(lanes, self.request.effort, self.instruments, device, host);
            lanes.iter().for_each(|lane| self.fill_times(&mut rows[lane.index], lane));
        }
        lanes.clear();
    }

    /// One product on the simulator: counted; and where there is no GPU, checked.
    fn simulate<V: RealElement>(
        &self,
        task: &Task<'_, V>,
        contender: &dyn Contender<V>,
        row: &mut Row,
        y: &mut Vector<V>,
        operands: &Operands<V>,
    ) {
        let simulated = simulate(task, contender, row, y, operands);
        if self.instruments.is_some() {
            return;
        }
        let (verification, facts) = match simulated {
            Ok(done) => done,
            Err(absent) => {
                row.status = absent.status();
                return;
            }
        };
        fill_facts(row, &facts);
        row.err_over_bound = Some(verification.max_error_over_bound);
        row.status = match verification.passed {
            true => "skipped: checked on the simulator; there is no GPU to time it on".into(),
            false => check::status(&verification),
        };
    }

    fn why_no_kernels(&self, nnz: usize) -> String {
        let limit = self.request.simulated_nnz;
        match (&self.request.place, self.instruments) {
            (Place::Cpu, _) => "the CPU runs no kernels".into(),
            (Place::Device(device), _) if device.is_simulator() && nnz > limit => {
                format!("there is no GPU, and the simulator runs matrices of at most {limit} nonzeros")
            }
            (_, None) => "there is no GPU".into(),
            _ => "the matrix is not on the GPU".into(),
        }
    }

    fn fill_times<V>(&self, row: &mut Row, lane: &Lane<'_, V>) {
        if let Some(error) = &lane.error {
            row.status = Absent::Failed(error.clone()).status();
            return;
        }
        let (cold, warm) = (lane.cold(), lane.warm());
        row.cold_ms = cold.map(|cold| cold.median);
        row.warm_ms = warm.map(|warm| warm.median);
        row.spread = cold.or(warm).map(|times| times.spread());
        row.samples = Some(lane.samples_taken() as u32);
        if let (Some(bytes), Some(ms), true, false) =
            (row.moved_bytes, row.time_ms(), self.copy_gb_per_s > 0.0, row.side() == "cpu")
        {
            row.roof_fraction = Some(bytes as f64 / (self.copy_gb_per_s * 1e6) / ms);
        }
    }
}

/// The first variant of each contender, then the others.
fn firsts_first(rows: &[Row]) -> Vec<usize> {
    let is_first =
        |index: &usize| rows[..*index].iter().all(|earlier| earlier.contender != rows[*index].contender);
    let (mut firsts, others): (Vec<_>, Vec<_>) = (0..rows.len()).partition(is_first);
    firsts.extend(others);
    firsts
}

/// How long the first variants took, to leave the others of a contender out that is far too slow.
#[derive(Default)]
struct Pace {
    firsts: Vec<(String, f64)>,
}

impl Pace {
    /// A contender whose first variant takes this many times as long as the fastest has no other that matters.
    const FAR: f64 = 50.0;

    fn took(&mut self, contender: &str, ms: f64) {
        if self.firsts.iter().all(|(name, _)| name != contender) {
            self.firsts.push((contender.to_owned(), ms));
        }
    }

    /// How many times as long as the fastest first variant this contender's took, where that is too far.
    fn hopeless(&self, contender: &str) -> Option<f64> {
        let (_, ms) = self.firsts.iter().find(|(name, _)| name == contender)?;
        let fastest = self.firsts.iter().map(|(_, ms)| *ms).min_by(f64::total_cmp)?;
        (ms / fastest > Pace::FAR).then_some(ms / fastest)
    }
}

/// Both sides of the product, and what it must be.
struct Operands<V> {
    x: Vec<V>,
    y: Vec<V>,
    expected: Expected,
}

/// What came of checking a product.
struct Checked {
    status: String,
    err_over_bound: f64,
    /// Whether all products had the same bits; `None` where there was but one.
    same_bits: Option<bool>,
    /// About how long a product takes.
    ms: f64,
}

fn fill_facts(row: &mut Row, facts: &Facts) {
    row.prepare_ms = facts.prepare_ms;
    row.convert_ms = facts.convert_ms;
    row.compile_ms = facts.compile_ms;
    row.load_ms = facts.load_ms;
    row.extra_bytes = Some(facts.extra_bytes);
    row.moved_bytes = Some(facts.moved_bytes);
    row.deterministic = facts.deterministic;
    row.occupancy = facts.occupancy;
    row.registers = facts.registers;
    let params = [&row.params, &facts.params].into_iter().filter(|params| !params.is_empty());
    row.params = params.map(String::as_str).collect::<Vec<_>>().join(";");
}

fn fill_checked(row: &mut Row, checked: &Checked, promised: Option<bool>) {
    row.err_over_bound = Some(checked.err_over_bound);
    row.status.clone_from(&checked.status);
    match (promised, checked.same_bits) {
        (None, seen) => row.deterministic = seen,
        (Some(true), Some(false)) if row.is_ok() => {
            row.status = "wrong: the bits changed from run to run, and the same are promised".into();
        }
        _ => {}
    }
}

/// Products until preparation and conversion are paid for by being faster than the best way of cuSPARSE.
fn fill_break_even(rows: &mut [Row]) {
    let peers = rows.iter().filter(|row| row.side() == "cusparse" && row.is_ok());
    let Some(peer) = peers.filter_map(Row::time_ms).min_by(f64::total_cmp) else { return };
    for row in rows.iter_mut().filter(|row| row.is_generated() && row.is_ok()) {
        let gain = row.time_ms().map_or(0.0, |ms| peer - ms);
        let paid = row.prepare_ms.unwrap_or(0.0) + row.convert_ms.unwrap_or(0.0);
        row.break_even = (gain > 0.0).then(|| (paid / gain).ceil());
    }
}

fn check_on_host<V: RealElement>(
    product: &mut HostProduct<'_, V>,
    operands: &Operands<V>,
    y: &mut [V],
    depth: &(dyn Fn(u64) -> u64 + Sync),
) -> Result<Checked, String> {
    y.copy_from_slice(&operands.y);
    product(&operands.x, y)?;
    let first = y.to_vec();
    let verification = operands.expected.verify(&first, depth);
    y.copy_from_slice(&operands.y);
    let started = Instant::now();
    product(&operands.x, y)?;
    let ms = started.elapsed().as_secs_f64() * 1e3;
    let same = |(a, b): (&V, &V)| a.to_f64().to_bits() == b.to_f64().to_bits();
    Ok(Checked {
        status: check::status(&verification),
        err_over_bound: verification.max_error_over_bound,
        same_bits: Some(first.iter().zip(&*y).all(same)),
        ms,
    })
}

/// What checking on a GPU takes beside the operands.
struct OnGpu<'i, V> {
    instruments: &'i Instruments,
    /// y before the product, where beta is not 0; and a product to compare others with.
    before: crate::instruments::Memory,
    snapshot: crate::instruments::Memory,
    host: Pinned<V>,
}

impl<'i, V: RealElement> OnGpu<'i, V> {
    fn new(instruments: &'i Instruments, y: &[V]) -> Result<OnGpu<'i, V>, String> {
        Ok(OnGpu {
            before: instruments.upload(y)?,
            snapshot: instruments.allocate(size_of_val(y) as u64)?,
            host: instruments.pinned(y.len())?,
            instruments,
        })
    }

    /// One product that is verified, and others that are compared with it, the last of which is verified too where its bits are
    /// others. y is NaN before, where it is not read.
    fn check(
        &mut self,
        product: &mut DeviceProduct<'_, V>,
        x: &Vector<V>,
        y: &mut Vector<V>,
        operands: &Operands<V>,
        depth: &(dyn Fn(u64) -> u64 + Sync),
        repeats: usize,
    ) -> Result<Checked, String> {
        let instruments = self.instruments;
        let bytes = self.before.bytes();
        let watch = instruments.stopwatch()?;
        let mut once = |before: u64, y: &mut Vector<V>| {
            instruments.copy_raw(y.address(), before, bytes)?;
            instruments.synchronize()?;
            instruments.start(&watch)?;
            product(x, y)?;
            instruments.stop(&watch)?;
            instruments.synchronize()?;
            instruments.elapsed_ms(&watch)
        };
        let mut ms = once(self.before.address(), y)?;
        let host = self.host.as_mut_slice();
        y.copy_to_slice(host).map_err(|error| error.to_string())?;
        let mut verification = operands.expected.verify(host, depth);
        let (mut same_bits, mut last_differs) = (None, false);
        if repeats > 0 {
            instruments.copy_raw(self.snapshot.address(), y.address(), bytes)?;
        }
        for _ in 0..repeats {
            // The first one loads kernels, so it is no measure of time.
            let again = once(self.before.address(), y)?;
            ms = if same_bits.is_none() { again } else { ms.min(again) };
            let differing = instruments.differing(y.address(), self.snapshot.address(), bytes)?;
            last_differs = differing != 0;
            same_bits = Some(same_bits.unwrap_or(true) && !last_differs);
        }
        if last_differs && verification.passed {
            y.copy_to_slice(host).map_err(|error| error.to_string())?;
            let last = operands.expected.verify(host, depth);
            if !last.passed || last.max_error_over_bound > verification.max_error_over_bound {
                verification = last;
            }
        }
        Ok(Checked {
            status: check::status(&verification),
            err_over_bound: verification.max_error_over_bound,
            same_bits,
            ms,
        })
    }
}

/// Copies the operands to a device. y is the contenders' to write.
fn on_device<'s, V: RealElement>(
    device: &Device,
    instruments: Option<&'s Instruments>,
    a: &CsrMatrix<V, u32>,
    operands: &Operands<V>,
) -> Result<(OnDevice<'s, V>, Vector<V>), String> {
    let made = || {
        let y = Vector::from_slice(device, &operands.y)?;
        let on_device = OnDevice {
            device: device.clone(),
            matrix: DeviceMatrix::upload(device, a, IndexType::U32)?.into(),
            x: Vector::from_slice(device, &operands.x)?,
            y_address: y.address(),
            instruments,
        };
        Ok::<_, spmv_runtime::Error>((on_device, y))
    };
    made().map_err(|error| error.to_string())
}

/// One product on the simulator, with what that counts.
fn simulate<V: RealElement>(
    task: &Task<'_, V>,
    contender: &dyn Contender<V>,
    row: &mut Row,
    y: &mut Vector<V>,
    operands: &Operands<V>,
) -> Result<(Verification, Facts), Absent> {
    let on = task.device.as_ref().ok_or_else(|| Absent::Failed("there is no device".into()))?;
    let mut prepared = contender.prepare(task)?;
    let Product::OnDevice(product) = &mut prepared.product else {
        return Err(Absent::Failed("it computes on the host".into()));
    };
    y.copy_from_slice(&operands.y)?;
    on.device.take_counters();
    product(&on.x, y).map_err(Absent::Failed)?;
    on.device.synchronize()?;
    if let Some(counters) = on.device.take_counters() {
        let of = |happened: u64, metric: f64| (happened > 0).then_some(metric);
        row.warp_execution_efficiency = of(counters.warp_instructions, counters.warp_execution_efficiency());
        row.global_load_efficiency = of(counters.global_load_requests, counters.global_load_efficiency());
    }
    let verification = operands.expected.verify(&y.to_vec()?, &prepared.depth);
    Ok((verification, prepared.facts))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use spmv_runtime::matrix::generate::Generator;

    use super::*;
    use crate::contender::{Prepared, any_order_depth};
    use crate::request::{Effort, Selection};

    fn entry() -> Entry {
        Entry::generated("small", Generator::new("uniform").unwrap().set("rows", 500.0).unwrap())
    }

    fn quick(request: Request) -> Request {
        Request { effort: Effort { samples: 3, limit: Duration::from_millis(20) }, ..request }
    }

    #[test]
    fn variants_of_the_hopeless_are_left_out() {
        let named = |contender: &str| Row { contender: contender.into(), ..Row::default() };
        let rows = ["a", "a", "b", "a", "c", "b"].map(named);
        assert_eq!(firsts_first(&rows), [0, 2, 4, 1, 3, 5]);
        let mut pace = Pace::default();
        for (name, ms) in [("a", 1.0), ("b", 49.0), ("c", 51.0), ("c", 1.0)] {
            pace.took(name, ms);
        }
        assert_eq!(["a", "b", "c", "d"].map(|name| pace.hopeless(name)), [None, None, Some(51.0), None]);
    }

    type Spoil = Box<dyn Fn(&mut [f32]) + Sync>;

    /// A product that is right but for what `spoil` does to it, on the device or on the host.
    struct Spoilt<F> {
        name: &'static str,
        on_host: bool,
        spoil: F,
    }

    impl<V: RealElement, F: Fn(&mut [V]) + Sync> Contender<V> for Spoilt<F> {
        fn name(&self) -> &str {
            self.name
        }

        fn params(&self) -> &str {
            "made=up"
        }

        fn prepare<'t>(&'t self, task: &'t Task<'_, V>) -> Result<Prepared<'t, V>, Absent> {
            let multiply = move |x: &[V], y: &mut [V]| {
                let [alpha, beta] = [1.0, 0.0].map(V::Sum::from_f64);
                spmv_runtime::matrix::cpu_serial(alpha, task.a, x, beta, y).unwrap();
                (self.spoil)(y);
            };
            let product: Product<'t, V> = match self.on_host {
                true => Product::OnHost(Box::new(move |x, y| {
                    multiply(x, y);
                    Ok(())
                })),
                false => Product::OnDevice(Box::new(move |x, y| {
                    let mut made = y.to_vec().map_err(|error| error.to_string())?;
                    multiply(&x.to_vec().map_err(|error| error.to_string())?, &mut made);
                    y.copy_from_slice(&made).map_err(|error| error.to_string())
                })),
            };
            let facts = Facts { deterministic: Some(true), ..Facts::default() };
            Ok(Prepared { product, facts, depth: Box::new(any_order_depth) })
        }
    }

    fn staged(contenders: &[Box<dyn Contender<f32> + '_>]) -> Vec<Row> {
        let simulator = Device::simulator();
        let request = quick(Request::new(Vec::new(), Place::Device(simulator.clone())));
        let stage =
            Stage { request: &request, instruments: None, simulator: Some(&simulator), copy_gb_per_s: 0.0 };
        let a = entry().load::<f32>().unwrap();
        let blank = blank_row(&entry(), &a, Operation::NonTranspose);
        stage.measure(&a, Operation::NonTranspose, contenders, &blank, &mut |_| {})
    }

    #[test]
    fn what_is_wrong_is_told() {
        let calls = std::sync::atomic::AtomicU32::new(0);
        let spoilt = |name, on_host, spoil: Spoil| Box::new(Spoilt { name, on_host, spoil });
        let contenders: Vec<Box<dyn Contender<f32> + '_>> = vec![
            spoilt("ours:right", false, Box::new(|_| {})),
            spoilt("ours:wrong", false, Box::new(|y| y[7] *= 1.01)),
            spoilt("ours:lazy", false, Box::new(|y| y[499] = f32::NAN)),
            spoilt("cpu:right", true, Box::new(|_| {})),
            spoilt("cpu:wrong", true, Box::new(|y| y[3] += 1.0)),
            Box::new(Spoilt {
                name: "cpu:changing",
                on_host: true,
                spoil: |y: &mut [f32]| {
                    let call = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let largest = y.iter_mut().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap();
                    *largest = f32::from_bits(largest.to_bits() + call % 2);
                },
            }),
        ];
        let rows = staged(&contenders);
        let status: Vec<&str> = rows.iter().map(|row| &*row.status).collect();
        assert!(status[0].starts_with("skipped: checked on the simulator"), "{status:?}");
        assert!(rows[0].err_over_bound.unwrap() < 1.0);
        assert!(status[1].starts_with("wrong: 1 of 500 rows; row 7 is "), "{status:?}");
        assert!(rows[1].err_over_bound.unwrap() > 1.0);
        assert!(status[2].starts_with("wrong: 1 of 500 rows; row 499 is NaN"), "{status:?}");
        assert_eq!(status[3], "ok");
        assert!(rows[3].warm_ms.unwrap() > 0.0 && rows[3].samples == Some(3));
        assert!(status[4].starts_with("wrong: 1 of 500 rows; row 3 is "), "{status:?}");
        assert!(status[5].starts_with("wrong: the bits changed"), "{status:?}");
        assert_eq!((&*rows[5].label(), rows[5].nnz > 0), ("cpu:changing made=up", true));
    }

    /// A product that needs one of few places while it is ready, and there may be none.
    struct Cramped<'p>(&'p std::cell::Cell<u32>);

    /// A place, which is free again when this is dropped.
    struct Held<'p>(&'p std::cell::Cell<u32>);

    impl Drop for Held<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    impl Contender<f32> for Cramped<'_> {
        fn name(&self) -> &str {
            "cpu:cramped"
        }

        fn params(&self) -> &str {
            ""
        }

        fn prepare<'t>(&'t self, task: &'t Task<'_, f32>) -> Result<Prepared<'t, f32>, Absent> {
            let left =
                self.0.get().checked_sub(1).ok_or_else(|| Absent::NoRoom("no place is free".into()))?;
            self.0.set(left);
            let held = Held(self.0);
            let product = Product::OnHost(Box::new(move |x, y| {
                let Held(free) = &held;
                assert!(free.get() < 2);
                spmv_runtime::matrix::cpu_serial(1.0, task.a, x, 0.0, y).map_err(|error| error.to_string())
            }));
            let facts = Facts { deterministic: Some(true), ..Facts::default() };
            Ok(Prepared { product, facts, depth: Box::new(any_order_depth) })
        }
    }

    #[test]
    fn those_that_there_is_room_for_are_timed_before_the_others() {
        for (places, expected) in [(2, "ok"), (1, "ok"), (0, "failed: no place is free")] {
            let free = std::cell::Cell::new(places);
            let contenders: Vec<Box<dyn Contender<f32> + '_>> =
                (0..5).map(|_| Box::new(Cramped(&free)) as Box<dyn Contender<f32> + '_>).collect();
            for row in staged(&contenders) {
                assert_eq!(
                    (&*row.status, row.warm_ms.is_some()),
                    (expected, expected == "ok"),
                    "{places} places"
                );
            }
            assert_eq!(free.get(), places);
        }
    }

    #[test]
    fn kernels_are_checked_and_counted_without_a_gpu() {
        let request = quick(Request::new(vec![entry()], Place::Device(Device::simulator())));
        let contenders =
            Selection::new(["ours:csr_vector", "auto", "cusparse:*", "cpu:*"].map(Into::into).to_vec());
        let request = Request { contenders: contenders.unwrap(), ..request };
        let mut told = 0;
        let record = run(&request, &mut |event| told += usize::from(matches!(event, Event::Row(_))));
        assert_eq!(told, record.rows.len());
        assert_eq!(record.head.gpu, "simulator");
        assert_eq!(record.head.notes, ["cuSPARSE is left out: it needs a GPU"]);
        let names = |value: &str| {
            let rows = record.rows.iter().filter(|row| row.value == value);
            rows.map(|row| row.contender.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names("f32"), names("f64"));
        assert!(names("f32").contains(&"ours:csr_vector".to_owned()));
        for row in &record.rows {
            match row.side() {
                side @ ("ours" | "auto") => {
                    assert_eq!(row.params.starts_with("algorithm="), side == "auto", "{row:?}");
                    assert!(row.status.starts_with("skipped: checked on the simulator"), "{row:?}");
                    assert!(row.warp_execution_efficiency.unwrap() <= 1.0 && row.time_ms().is_none());
                    assert!(row.registers.is_none() && row.moved_bytes.unwrap() > 12 * row.nnz / 2);
                }
                _ => assert!(row.is_ok() && row.warm_ms.unwrap() > 0.0, "{row:?}"),
            }
        }
    }

    #[test]
    fn the_simulator_takes_small_matrices_only() {
        let request = quick(Request::new(vec![entry()], Place::Device(Device::simulator())));
        let contenders = Selection::new(vec!["ours:csr_vector".into()]).unwrap();
        let request = Request { contenders, simulated_nnz: 10, values: vec![ValueType::F32], ..request };
        let record = run(&request, &mut |_| {});
        assert!(record.rows[0].status.contains("at most 10 nonzeros"), "{:?}", record.rows);
        let record = run(&Request { place: Place::Cpu, ..request }, &mut |_| {});
        assert_eq!(record.rows[0].status, "skipped: the CPU runs no kernels");
    }

    #[test]
    fn matrices_that_cannot_be_read_are_noted() {
        let gone = Entry::file("gone", "/nonexistent/gone.mtx".into());
        let contenders = Selection::new(vec!["cpu:serial".into()]).unwrap();
        let request = Request { contenders, ..quick(Request::new(vec![gone, entry()], Place::Cpu)) };
        let (mut unreadable, mut so_far) = (Vec::new(), Vec::new());
        let record = run(&request, &mut |event| match event {
            Event::Unreadable { name, .. } => unreadable.push(name.to_owned()),
            Event::Record(record) => so_far.push(record.clone()),
            _ => {}
        });
        assert_eq!(unreadable, ["gone"]);
        assert_eq!(so_far.as_slice(), std::slice::from_ref(&record));
        assert!(
            record.head.notes[0].starts_with("/nonexistent/gone.mtx: could not be read"),
            "{:?}",
            record.head.notes
        );
        assert_eq!(record.rows.len(), 2);
    }

    #[test]
    fn preparation_is_paid_for_by_being_faster() {
        let row = |contender: &str, ms: f64, prepare_ms| Row {
            contender: contender.into(),
            cold_ms: Some(ms),
            prepare_ms,
            status: "ok".into(),
            ..Row::default()
        };
        let mut rows = [
            row("cusparse:csr_alg1", 2.0, None),
            row("cusparse:sell", 1.0, None),
            Row { status: "wrong: x".into(), ..row("cusparse:bsr", 0.1, None) },
            row("ours:a", 0.5, Some(10.2)),
            row("ours:b", 1.5, Some(10.0)),
            row("ours:c", 0.9, None),
        ];
        rows[3].convert_ms = Some(1.0);
        fill_break_even(&mut rows);
        let products: Vec<_> = rows.iter().map(|row| row.break_even).collect();
        assert_eq!(products, [None, None, None, Some(23.0), None, Some(0.0)]);
    }
}
