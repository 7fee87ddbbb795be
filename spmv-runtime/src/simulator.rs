//! The embedded device: PTX run by `ptx-sim`, on the CPU.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ptx_sim::{Arg, Counters, Schedule, Simulator};
use spmv_codegen::Pass;

use crate::artifact::Image;
use crate::backend::{
    Backend, DeviceProperties, Function, Launch, LoadError, Module, Order, StreamHandle, as_bytes,
};
use crate::error::Error;

/// What the simulated device is like where nothing is said.
pub(crate) const ARCH: &str = "sm_90";
/// They only decide how many blocks a persistent grid has.
const MULTIPROCESSORS: u32 = 4;
const THREADS_PER_MULTIPROCESSOR: u32 = 2048;
const BLOCKS_PER_MULTIPROCESSOR: u32 = 32;
pub(crate) const MEMORY_BYTES: u64 = 16 << 30;

/// A kernel of a loaded module.
type Kernel = (Arc<ptx_sim::Module>, String);

/// A simulated device.
pub(crate) struct Simulated {
    properties: DeviceProperties,
    state: Mutex<State>,
    functions: Arc<Mutex<Vec<Kernel>>>,
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.properties.name)
    }
}

struct State {
    simulator: Simulator,
    schedule: Schedule,
    launches: u64,
    counters: Counters,
}

thread_local! {
    /// What all launches of this thread cost.
    static COST: Cell<u64> = const { Cell::new(0) };
}

/// What stands in for time where kernels are compared with each other: a sector of global memory counts 4, an atomic on
/// global memory as well, and a warp's instruction 1. It says nothing of a GPU's time.
fn cost(counters: &Counters) -> u64 {
    let sectors = counters.global_load_sectors + counters.global_store_sectors + counters.global_atomics;
    4 * sectors + counters.warp_instructions
}

impl Simulated {
    pub(crate) fn new(arch: &str, schedule: Schedule, memory_bytes: u64) -> Simulated {
        Simulated {
            properties: DeviceProperties {
                name: "ptx-sim (simulated on the CPU)".into(),
                arch: arch.into(),
                multiprocessors: MULTIPROCESSORS,
                memory_bytes,
                l2_bytes: 0,
                driver_version: (u32::MAX, 0),
            },
            state: Mutex::new(State {
                simulator: Simulator::new().capacity(memory_bytes),
                schedule,
                launches: 0,
                counters: Counters::default(),
            }),
            functions: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was counted since this was last asked.
    pub(crate) fn take_counters(&self) -> Counters {
        std::mem::take(&mut self.state().counters)
    }
}

/// The simulator's errors in the runtime's terms.
fn error(call: &'static str, error: ptx_sim::Error) -> Error {
    match error {
        ptx_sim::Error::Fault(fault) => Error::SimulatedFault(fault),
        ptx_sim::Error::OutOfMemory { bytes, free } => {
            Error::OutOfMemory { what: call.to_owned(), needed: bytes, free }
        }
        other => Error::Driver { call, name: "simulator".into(), message: other.to_string() },
    }
}

impl Backend for Simulated {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn free_bytes(&self) -> Result<u64, Error> {
        Ok(self.state().simulator.free_bytes())
    }

    fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        self.state().simulator.allocate(bytes).map_err(|problem| error("allocate", problem))
    }

    unsafe fn free(&self, address: u64) {
        if let Err(problem) = self.state().simulator.free(address) {
            tracing::debug!(%problem, "device memory was not freed");
        }
    }

    unsafe fn write(&self, address: u64, source: &[u8]) -> Result<(), Error> {
        self.state().simulator.write(address, source).map_err(|problem| error("write", problem))
    }

    unsafe fn read(&self, target: &mut [u8], address: u64) -> Result<(), Error> {
        self.state().simulator.read(address, target).map_err(|problem| error("read", problem))
    }

    unsafe fn zero(&self, address: u64, bytes: u64) -> Result<(), Error> {
        let zeros = [0; 1 << 16];
        let mut state = self.state();
        (0..bytes).step_by(zeros.len()).try_for_each(|done| {
            let part = &zeros[..(bytes - done).min(zeros.len() as u64) as usize];
            state.simulator.write(address + done, part).map_err(|problem| error("zero", problem))
        })
    }

    fn synchronize(&self, _: StreamHandle) -> Result<(), Error> {
        Ok(())
    }

    fn order(&self, _: StreamHandle, _: StreamHandle) -> Result<Order, Error> {
        Ok(Order::Made)
    }

    fn load(&self, image: &Image) -> Result<Arc<dyn Module>, LoadError> {
        let module = ptx_sim::Module::load(&image.ptx).map_err(|problem| {
            let message = problem.to_string();
            LoadError::Failed(Error::Driver { call: "load", name: "simulator".into(), message })
        })?;
        Ok(Arc::new(SimulatedModule { module: Arc::new(module), functions: self.functions.clone() }))
    }

    unsafe fn launch(&self, launch: Launch<'_>, _: StreamHandle) -> Result<(), Error> {
        let (module, kernel) = {
            let functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
            functions[launch.function.handle as usize].clone()
        };
        let mut state = self.state();
        state.launches += 1;
        // Another order for every launch, the same for the same sequence of launches.
        let schedule = match state.schedule {
            Schedule::Natural => Schedule::Natural,
            Schedule::Adversarial(seed) => Schedule::Adversarial(seed.wrapping_add(state.launches)),
        };
        let launch = ptx_sim::Launch {
            shared_bytes: launch.shared_bytes,
            args: launch.arguments().map(|slots| Arg::Bytes(as_bytes(slots).to_vec())).collect(),
            ..ptx_sim::Launch::new(launch.grid, launch.threads_per_block).schedule(schedule)
        };
        let report =
            state.simulator.launch(&module, &kernel, &launch).map_err(|problem| error("launch", problem))?;
        state.counters += report.counters;
        COST.set(COST.get() + cost(&report.counters));
        Ok(())
    }

    fn time(&self, _: u32, _: u32, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<f64, Error> {
        // The work is the calling thread's; others may use the device meanwhile.
        let before = COST.get();
        work()?;
        Ok((COST.get() - before) as f64)
    }

    fn counts_cost(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct SimulatedModule {
    module: Arc<ptx_sim::Module>,
    functions: Arc<Mutex<Vec<Kernel>>>,
}

impl Module for SimulatedModule {
    fn function(&self, name: &str) -> Result<Function, Error> {
        if self.module.kernel(name).is_none() {
            return Err(Error::MissingKernel { kernel: name.to_owned() });
        }
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            functions.iter().position(|(module, kernel)| Arc::ptr_eq(module, &self.module) && kernel == name);
        let index = known.unwrap_or_else(|| {
            functions.push((self.module.clone(), name.to_owned()));
            functions.len() - 1
        });
        Ok(Function { handle: index as u64, awaits_stream: false })
    }

    fn allow_shared(&self, function: Function, pass: &Pass) -> Result<(), Error> {
        let (kernel, bytes) = (&pass.kernel, pass.shared_bytes);
        let functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let info = functions[function.handle as usize].0.kernel(kernel);
        let available = info.map_or(0, |info| info.max_dynamic_shared_bytes) as u32;
        if bytes <= available {
            return Ok(());
        }
        Err(Error::SharedMemory { kernel: kernel.clone(), needed: bytes, available })
    }

    fn resident_blocks(&self, _: Function, threads: u32, _: u32) -> Result<u32, Error> {
        Ok((THREADS_PER_MULTIPROCESSOR / threads.max(1)).clamp(1, BLOCKS_PER_MULTIPROCESSOR))
    }
}
