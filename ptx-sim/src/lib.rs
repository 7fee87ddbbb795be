//! A functional simulator of PTX.
//!
//! Load a kernel's PTX, allocate memory, launch, read the result: no GPU is needed. What a kernel does wrong is
//! reported with the line of its CUDA text, the block and the thread: accesses out of bounds, misaligned or of
//! memory that nobody wrote, races on shared memory, warp-wide operations whose lanes are elsewhere, barriers
//! that not everybody reaches, launches that never end. What it does right is counted as a profiler would.
//!
//! ```
//! use ptx_sim::{Arg, Launch, Module, Simulator};
//!
//! let module = Module::load(
//!     ".version 8.0 .target sm_90 .address_size 64
//!      .visible .entry scale(.param .u64 data, .param .f32 factor) {
//!        .reg .u32 %r<2>; .reg .u64 %rd<4>; .reg .f32 %f<4>;
//!        ld.param.u64 %rd1, [data];
//!        ld.param.f32 %f1, [factor];
//!        mov.u32 %r1, %tid.x;
//!        mul.wide.u32 %rd2, %r1, 4;
//!        add.s64 %rd3, %rd1, %rd2;
//!        ld.global.f32 %f2, [%rd3];
//!        mul.rn.f32 %f3, %f2, %f1;
//!        st.global.f32 [%rd3], %f3;
//!        ret;
//!      }",
//! )?;
//! let mut simulator = Simulator::new();
//! let data = simulator.allocate(16)?;
//! let bytes: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
//! simulator.write(data, &bytes)?;
//! let launch = Launch::new(1, 4).arg(Arg::U64(data)).arg(Arg::F32(10.0));
//! let report = simulator.launch(&module, "scale", &launch)?;
//! let mut bytes = [0; 16];
//! simulator.read(data, &mut bytes)?;
//! assert_eq!(f32::from_le_bytes(bytes[12..].try_into()?), 40.0);
//! assert_eq!(report.counters.global_load_sectors, 1);
//! // A fifth thread reads behind the allocation.
//! let error = simulator.launch(&module, "scale", &Launch { block: [5, 1, 1], ..launch }).unwrap_err();
//! assert!(error.to_string().contains("out of bounds"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Schedules
//!
//! In the natural schedule blocks run in order, lanes that are apart run from the lowest instruction and meet
//! again at the first common one. An adversarial schedule, from a seed, runs lanes, warps and blocks in a random
//! order, to find what depends on it. Either gives the same result every time, on any number of cores, unless blocks
//! race on global memory with plain loads and stores, or by atomics of different kinds or widths on one word.
//!
//! # What differs from a GPU
//!
//! Time: there is no model of it, clocks count warp instructions of all launches. Memory is sequentially consistent, and
//! plain accesses of global memory that race are not reported: what depends on their order shows in adversarial schedules.
//! On shared memory only barriers order, those of the block and those that lie in shared memory (`mbarrier`): accesses of
//! two threads, one of which writes, without a barrier between are reported as a race even if they are strong
//! (`volatile`, `relaxed`, `acquire`, `release`), unless both are atomic operations. Copies to shared memory arrive when
//! somebody waits for them, and not before.
//! Registers that nobody wrote hold anything. `.approx`
//! functions are computed in double precision and rounded, so their last bits differ from the hardware's. The order
//! in which `mma.sync` adds is not documented: here products are added to C one after another, each by a fused
//! multiply-add to nearest, in double precision for `f64` and in single for `f16` and `bf16`.

mod alu;
mod block;
mod decode;
mod error;
mod memory;
mod mma;
mod op;
mod parse;
mod races;
mod registers;
mod report;
mod warp;

use std::collections::HashMap;
use std::fmt;

use crate::block::{Context, LaunchFault, Limits, Spare};
use crate::decode::{Globals, Kernel, Place};
use crate::memory::{Global, MODULE_BASE, Memory};
use crate::parse::Unit;

pub use crate::error::LoadError;
pub use crate::report::{Counters, Fault, FaultKind, Location};

/// A loaded module: kernels that are decoded, and its variables.
pub struct Module {
    kernels: HashMap<String, Kernel>,
    names: Vec<String>,
    files: HashMap<u32, String>,
    variables: Memory,
}

/// Without the code.
impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("kernels", &self.names).finish_non_exhaustive()
    }
}

impl Module {
    /// Parses and decodes PTX.
    ///
    /// # Errors
    /// [`LoadError`] names the line and, where one is not supported, the instruction.
    pub fn load(ptx: &str) -> Result<Module, LoadError> {
        let unit = parse::parse(ptx)?;
        let (addresses, variables) = variables(&unit)?;
        let mut kernels = HashMap::new();
        let mut names = Vec::new();
        for entry in decode::entries(&unit) {
            names.push(entry.name.clone());
            kernels.insert(entry.name.clone(), decode::decode(&unit, entry, &addresses)?);
        }
        Ok(Module { kernels, names, files: unit.files, variables })
    }

    /// Names of the kernels, in the order of the text.
    pub fn kernels(&self) -> &[String] {
        &self.names
    }

    /// What a kernel needs, or `None` where there is none of that name.
    pub fn kernel(&self, name: &str) -> Option<KernelInfo> {
        let kernel = self.kernels.get(name)?;
        Some(KernelInfo {
            param_bytes: kernel.params.iter().map(|param| param.bytes as u32).collect(),
            shared_bytes: kernel.shared_bytes,
            max_dynamic_shared_bytes: kernel.max_shared.saturating_sub(kernel.dynamic_shared_at()),
            local_bytes: kernel.local_bytes,
            blocks_in_parallel: !kernel.order_matters,
        })
    }

    fn location(&self, place: Place) -> Location {
        Location { file: self.files.get(&place.file).cloned(), line: place.line, ptx_line: place.ptx_line }
    }
}

/// Places the module's variables, `.const` and `.global`, in a memory of their own.
fn variables(unit: &Unit) -> Result<(Globals, Memory), LoadError> {
    let mut addresses = Globals::new();
    let mut bytes = 0u64;
    let mut placed = Vec::new();
    for variable in unit.variables.iter().filter(|variable| variable.space != "shared") {
        bytes = bytes.next_multiple_of(variable.align.max(16));
        addresses.insert(variable.name.clone(), MODULE_BASE + bytes);
        placed.push((bytes, variable));
        bytes += variable.bytes();
        if bytes > 1 << 30 {
            return Err(LoadError::syntax(variable.line, "more than 1 GiB of module variables"));
        }
    }
    let memory = Memory::new(bytes);
    for (at, variable) in &placed {
        // Variables without an initialiser are zero, as in CUDA.
        memory.mark_initialised(*at, variable.bytes());
        memory.write_bytes(*at, &variable.initial);
    }
    Ok((addresses, memory))
}

/// What a kernel needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelInfo {
    /// Bytes of each parameter.
    pub param_bytes: Vec<u32>,
    /// Static shared memory a block, in bytes.
    pub shared_bytes: u64,
    /// Most dynamic shared memory a block, in bytes, on the architecture that the module is for.
    pub max_dynamic_shared_bytes: u64,
    /// Local memory a thread, in bytes.
    pub local_bytes: u64,
    /// Whether blocks may run on several cores: the result does not depend on their order, unless they race on global memory
    /// with plain loads and stores.
    pub blocks_in_parallel: bool,
}

/// A kernel argument. One with a type has exactly the parameter's size.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Arg {
    /// A 32-bit integer.
    U32(u32),
    /// A 64-bit integer or a pointer.
    U64(u64),
    /// A single-precision number.
    F32(f32),
    /// A double-precision number.
    F64(f64),
    /// Any bytes; more than the parameter has are ignored.
    Bytes(Vec<u8>),
}

impl Arg {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Arg::U32(value) => value.to_le_bytes().into(),
            Arg::U64(value) => value.to_le_bytes().into(),
            Arg::F32(value) => value.to_le_bytes().into(),
            Arg::F64(value) => value.to_le_bytes().into(),
            Arg::Bytes(bytes) => bytes.clone(),
        }
    }
}

/// The order in which blocks, warps and lanes run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Blocks in order, lanes from the lowest instruction.
    #[default]
    Natural,
    /// A random order, the same for a seed.
    Adversarial(u64),
}

/// A launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads a block along x, y, z; at most 1,024 in all and 64 along z.
    pub block: [u32; 3],
    /// Dynamic shared memory a block, in bytes; at most [`KernelInfo::max_dynamic_shared_bytes`], as for a function whose
    /// attribute allows it.
    pub shared_bytes: u32,
    /// Arguments in the kernel's order.
    pub args: Vec<Arg>,
    /// The order in which things run.
    pub schedule: Schedule,
}

impl Launch {
    /// A launch in one dimension, without arguments, in the natural schedule.
    pub fn new(blocks: u32, threads_per_block: u32) -> Launch {
        Launch {
            grid: [blocks, 1, 1],
            block: [threads_per_block, 1, 1],
            shared_bytes: 0,
            args: Vec::new(),
            schedule: Schedule::Natural,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: Arg) -> Launch {
        self.args.push(arg);
        self
    }

    /// Sets the schedule.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Launch {
        self.schedule = schedule;
        self
    }
}

/// What a launch that ended did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What it counted.
    pub counters: Counters,
}

/// Why a launch did not end well, or did not begin.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel faulted. Memory is left as it was at that moment.
    #[error(transparent)]
    Fault(Box<Fault>),
    /// The module has no such kernel.
    #[error("the module has no kernel `{name}`; it has {}", allowed.join(", "))]
    UnknownKernel {
        /// The name.
        name: String,
        /// The kernels there are.
        allowed: Vec<String>,
    },
    /// The launch does not fit the kernel or the machine.
    #[error("{what}: {got}; allowed: {allowed}")]
    BadLaunch {
        /// What does not fit.
        what: &'static str,
        /// What was asked for.
        got: String,
        /// What is allowed.
        allowed: String,
    },
    /// Bytes outside every allocation were read, written or freed.
    #[error("{bytes} bytes at {address:#x} are not inside an allocation")]
    BadAddress {
        /// The address.
        address: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// There is no room for an allocation.
    #[error("{bytes} bytes cannot be allocated; {free} are free")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
        /// Bytes free; none where the host has no memory for them.
        free: u64,
    },
}

/// A device: its global memory, and limits of launches.
pub struct Simulator {
    global: Global,
    capacity: u64,
    threads: usize,
    resident_blocks: usize,
    instruction_limit: u64,
    /// Warp instructions of all launches, which clocks show.
    clock: u64,
    spare: Spare,
}

/// Without what its memory holds.
impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.global.used();
        f.debug_struct("Simulator")
            .field("capacity", &self.capacity)
            .field("used", &used)
            .finish_non_exhaustive()
    }
}

impl Default for Simulator {
    fn default() -> Self {
        Simulator::new()
    }
}

impl Simulator {
    /// A device with 16 GiB of memory that uses all cores.
    pub fn new() -> Simulator {
        Simulator {
            global: Global::new(),
            capacity: 16 << 30,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            resident_blocks: 64,
            instruction_limit: 1 << 36,
            clock: 0,
            spare: Spare::default(),
        }
    }

    /// Sets how many bytes may be allocated. Host memory is taken as it is allocated, twice that for the shadow.
    #[must_use]
    pub fn capacity(mut self, bytes: u64) -> Simulator {
        self.capacity = bytes;
        self
    }

    /// Sets how many threads of the host run blocks, where their order does not matter.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Simulator {
        self.threads = threads.max(1);
        self
    }

    /// Sets how many blocks take turns where one takes long.
    #[must_use]
    pub fn resident_blocks(mut self, blocks: usize) -> Simulator {
        self.resident_blocks = blocks.max(1);
        self
    }

    /// Sets how many warp instructions a launch may execute.
    #[must_use]
    pub fn instruction_limit(mut self, instructions: u64) -> Simulator {
        self.instruction_limit = instructions;
        self
    }

    /// Allocates bytes that are not initialised; the address is a multiple of 256.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn allocate(&mut self, bytes: u64) -> Result<u64, Error> {
        let free = self.free_bytes();
        if bytes > free {
            return Err(Error::OutOfMemory { bytes, free });
        }
        self.global.allocate(bytes).ok_or(Error::OutOfMemory { bytes, free: 0 })
    }

    /// Frees an allocation.
    ///
    /// # Errors
    /// [`Error::BadAddress`] where none begins there.
    pub fn free(&mut self, address: u64) -> Result<(), Error> {
        if self.global.free(address) { Ok(()) } else { Err(Error::BadAddress { address, bytes: 0 }) }
    }

    /// Bytes that can still be allocated.
    pub fn free_bytes(&self) -> u64 {
        self.capacity.saturating_sub(self.global.used())
    }

    /// Copies bytes into an allocation.
    ///
    /// # Errors
    /// [`Error::BadAddress`].
    pub fn write(&mut self, address: u64, source: &[u8]) -> Result<(), Error> {
        let at = self.inside(address, source.len() as u64)?;
        self.global.memory.write_bytes(at, source);
        Ok(())
    }

    /// Copies bytes out of an allocation. Bytes that nobody wrote are zero.
    ///
    /// # Errors
    /// [`Error::BadAddress`].
    pub fn read(&self, address: u64, target: &mut [u8]) -> Result<(), Error> {
        let at = self.inside(address, target.len() as u64)?;
        self.global.memory.read_bytes(at, target);
        Ok(())
    }

    fn inside(&self, address: u64, bytes: u64) -> Result<u64, Error> {
        self.global.inside(address, bytes).ok_or(Error::BadAddress { address, bytes })
    }

    /// Runs a kernel to its end.
    ///
    /// # Errors
    /// [`Error::Fault`] for what the kernel did wrong, [`Error::UnknownKernel`] and [`Error::BadLaunch`] where it
    /// did not begin.
    pub fn launch(&mut self, module: &Module, kernel: &str, launch: &Launch) -> Result<Report, Error> {
        let Some(kernel) = module.kernels.get(kernel) else {
            return Err(Error::UnknownKernel { name: kernel.to_owned(), allowed: module.names.clone() });
        };
        let threads = launch.block.iter().try_fold(1u32, |product, n| product.checked_mul(*n));
        let bad_block = |allowed: String| {
            let got = format!("{:?}", launch.block);
            Err(Error::BadLaunch { what: "threads a block", got, allowed })
        };
        let Some(threads @ 1..=1024) = threads.filter(|_| launch.block[2] <= 64) else {
            return bad_block("1 to 1024, at most 64 along z".into());
        };
        if let Some(most) = kernel.max_threads.filter(|most| u64::from(threads) > *most) {
            return bad_block(format!("{most}, which the kernel's .maxntid says"));
        }
        if let Some(block) = kernel.block.filter(|block| launch.block.map(u64::from) != *block) {
            return bad_block(format!("{block:?}, which the kernel's .reqntid says"));
        }
        let [x, y, z] = launch.grid;
        if !(1..=i32::MAX as u32).contains(&x) || ![y, z].iter().all(|n| (1..=65_535).contains(n)) {
            let got = format!("{:?}", launch.grid);
            let allowed = "1 to 2147483647 blocks along x, 1 to 65535 along y and z".into();
            return Err(Error::BadLaunch { what: "the grid", got, allowed });
        }
        let dynamic_shared_at = kernel.dynamic_shared_at();
        let shared_bytes = match launch.shared_bytes {
            0 => kernel.shared_bytes,
            bytes => dynamic_shared_at + u64::from(bytes),
        };
        if shared_bytes > kernel.max_shared {
            let got = format!("{shared_bytes} bytes");
            return Err(Error::BadLaunch {
                what: "shared memory a block",
                got,
                allowed: format!("{} bytes", kernel.max_shared),
            });
        }
        let params = self.params(kernel, launch)?;
        let context = Context {
            kernel,
            global: &self.global,
            variables: &module.variables,
            params: &params,
            grid: launch.grid,
            block: launch.block,
            threads_per_block: threads,
            shared_bytes,
            dynamic_shared_at,
            dynamic_shared_bytes: launch.shared_bytes.into(),
            clock: self.clock,
        };
        let limits = Limits {
            threads: self.threads,
            resident_blocks: self.resident_blocks,
            instructions: self.instruction_limit,
            seed: match launch.schedule {
                Schedule::Natural => None,
                Schedule::Adversarial(seed) => Some(seed),
            },
        };
        match block::run(&context, limits, &self.spare) {
            Ok(counters) => {
                self.clock = self.clock.wrapping_add(counters.warp_instructions);
                Ok(Report { counters })
            }
            Err(fault) => {
                // It went no further than that.
                self.clock = self.clock.wrapping_add(self.instruction_limit);
                Err(Error::Fault(Box::new(describe(module, kernel, *fault))))
            }
        }
    }

    fn params(&self, kernel: &Kernel, launch: &Launch) -> Result<Vec<u8>, Error> {
        if launch.args.len() != kernel.params.len() {
            let got = launch.args.len().to_string();
            return Err(Error::BadLaunch {
                what: "arguments",
                got,
                allowed: kernel.params.len().to_string(),
            });
        }
        let mut bytes = vec![0; kernel.param_bytes as usize];
        for (index, (arg, param)) in launch.args.iter().zip(&kernel.params).enumerate() {
            let arg_bytes = arg.bytes();
            let size = param.bytes as usize;
            let fits = matches!(arg, Arg::Bytes(_)) || arg_bytes.len() == size;
            let Some(arg_bytes) = arg_bytes.get(..size).filter(|_| fits) else {
                let got = format!("argument {index} of {} bytes", arg_bytes.len());
                return Err(Error::BadLaunch {
                    what: "an argument",
                    got,
                    allowed: format!("{} bytes", param.bytes),
                });
            };
            let at = param.offset as usize;
            bytes[at..at + arg_bytes.len()].copy_from_slice(arg_bytes);
        }
        Ok(bytes)
    }
}

fn describe(module: &Module, kernel: &Kernel, fault: LaunchFault) -> Fault {
    let location = |pc: u32| {
        let place = kernel.places.get(pc as usize).or(kernel.places.last()).copied().unwrap_or_default();
        module.location(place)
    };
    let mut kind = fault.fault.kind;
    if let (FaultKind::SharedRace { other, .. }, Some(pc)) = (&mut kind, fault.fault.other_pc) {
        *other = location(pc);
    }
    Fault {
        kind,
        kernel: kernel.name.clone(),
        location: location(fault.fault.pc),
        block: fault.block,
        thread: fault.thread,
    }
}

/// The README's example compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
