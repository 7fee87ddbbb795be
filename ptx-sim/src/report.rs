//! What a launch counted, and what went wrong in it.

use std::fmt;
use std::ops::AddAssign;

/// What a launch counted: the metrics that a profiler gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Instructions that warps executed.
    pub warp_instructions: u64,
    /// Instructions that threads executed: a warp instruction counts once for each lane that takes part.
    pub thread_instructions: u64,
    /// Loads from global memory, one a warp instruction.
    pub global_load_requests: u64,
    /// 32-byte sectors that those loads touch.
    pub global_load_sectors: u64,
    /// Bytes that threads asked for in those loads.
    pub global_load_bytes: u64,
    /// Stores to global memory, one a warp instruction.
    pub global_store_requests: u64,
    /// 32-byte sectors that those stores touch.
    pub global_store_sectors: u64,
    /// Bytes that threads stored.
    pub global_store_bytes: u64,
    /// Loads and stores of shared memory, one a warp instruction.
    pub shared_requests: u64,
    /// Passes beyond those that the bytes need, because lanes met in a bank.
    pub shared_bank_conflicts: u64,
    /// Atomics on global memory, one a warp instruction.
    pub global_atomic_requests: u64,
    /// Atomics on global memory, one a thread.
    pub global_atomics: u64,
    /// Atomics on shared memory, one a thread.
    pub shared_atomics: u64,
    /// Barriers that blocks passed.
    pub barriers: u64,
    /// Blocks that ran.
    pub blocks: u64,
}

impl Counters {
    /// Lanes that took part, as a fraction of all lanes of the warps that executed (warp execution efficiency).
    pub fn warp_execution_efficiency(&self) -> f64 {
        ratio(self.thread_instructions, self.warp_instructions * 32)
    }

    /// Bytes that threads asked for over bytes of the sectors that were moved for them (global load efficiency).
    /// More than 1 where lanes share bytes.
    pub fn global_load_efficiency(&self) -> f64 {
        ratio(self.global_load_bytes, self.global_load_sectors * 32)
    }

    /// As [`Counters::global_load_efficiency`], for stores.
    pub fn global_store_efficiency(&self) -> f64 {
        ratio(self.global_store_bytes, self.global_store_sectors * 32)
    }

    /// Sectors a load request.
    pub fn sectors_per_load_request(&self) -> f64 {
        ratio(self.global_load_sectors, self.global_load_requests)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        let Counters {
            warp_instructions,
            thread_instructions,
            global_load_requests,
            global_load_sectors,
            global_load_bytes,
            global_store_requests,
            global_store_sectors,
            global_store_bytes,
            shared_requests,
            shared_bank_conflicts,
            global_atomic_requests,
            global_atomics,
            shared_atomics,
            barriers,
            blocks,
        } = other;
        self.warp_instructions += warp_instructions;
        self.thread_instructions += thread_instructions;
        self.global_load_requests += global_load_requests;
        self.global_load_sectors += global_load_sectors;
        self.global_load_bytes += global_load_bytes;
        self.global_store_requests += global_store_requests;
        self.global_store_sectors += global_store_sectors;
        self.global_store_bytes += global_store_bytes;
        self.shared_requests += shared_requests;
        self.shared_bank_conflicts += shared_bank_conflicts;
        self.global_atomic_requests += global_atomic_requests;
        self.global_atomics += global_atomics;
        self.shared_atomics += shared_atomics;
        self.barriers += barriers;
        self.blocks += blocks;
    }
}

/// What a thread did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access outside every allocation of its space.
    OutOfBounds {
        /// `global`, `shared`, `local`, `module` (variables) or `param`.
        space: &'static str,
        /// The address; in spaces other than global, the offset.
        address: u64,
        /// Bytes of the access.
        bytes: u32,
        /// Start and size of the nearest allocation.
        nearest: Option<(u64, u64)>,
    },
    /// An access at an address that is no multiple of its size.
    Misaligned {
        /// The space.
        space: &'static str,
        /// The address.
        address: u64,
        /// Bytes of the access.
        bytes: u32,
    },
    /// A load of bytes that nobody wrote.
    Uninitialised {
        /// The space.
        space: &'static str,
        /// The address.
        address: u64,
        /// Bytes of the access.
        bytes: u32,
    },
    /// Two threads of a block touch the same shared bytes, one of them writes, or its bulk copy does, and no barrier that both
    /// take part in, nor a chain of them, lies between.
    SharedRace {
        /// The offset in shared memory.
        address: u64,
        /// The other thread, where it is one.
        other_thread: Option<u32>,
        /// Where the other side stands.
        other: Location,
        /// Whether the other side wrote.
        other_wrote: bool,
    },
    /// A shuffle reads a lane that takes no part in it.
    AbsentLane {
        /// The lane read.
        lane: u32,
    },
    /// A lane executes a `.sync` instruction with a mask that does not hold it, or lanes of a mask disagree on it.
    SyncMask {
        /// The mask.
        mask: u32,
    },
    /// Lanes wait for others of their mask that wait elsewhere: nobody can go on.
    SyncDeadlock {
        /// Lanes that wait here.
        waiting: u32,
        /// Lanes that they wait for.
        missing: u32,
    },
    /// Lanes of a warp reach a barrier that others of the warp do not reach.
    DivergentBarrier {
        /// Lanes that arrived.
        arrived: u32,
        /// Lanes that did not.
        missing: u32,
    },
    /// Every warp that is left waits at a barrier, and none of the barriers can be passed.
    BarrierDeadlock,
    /// The launch went on for long without changing anything.
    Livelock {
        /// Warp instructions since memory last changed.
        instructions: u64,
    },
    /// The launch executed more warp instructions than it may.
    InstructionLimit {
        /// The limit.
        limit: u64,
    },
    /// A `trap` instruction.
    Trap,
    /// A barrier number beyond 15, a thread count that is no multiple of 32, a branch beyond its table, what a barrier in
    /// shared memory or a bulk copy must not be given, or a bulk copy that is in flight when its block ends.
    BadOperand {
        /// What it is.
        what: &'static str,
        /// Its value.
        value: u64,
    },
}

/// Where an instruction stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The CUDA file, where the PTX names it.
    pub file: Option<String>,
    /// The line in that file; 0 where it is unknown.
    pub line: u32,
    /// The line in the PTX, from 1.
    pub ptx_line: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) if self.line > 0 => write!(f, "{file}:{} (PTX line {})", self.line, self.ptx_line),
            _ => write!(f, "PTX line {}", self.ptx_line),
        }
    }
}

/// A fault: what, where, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// The kernel.
    pub kernel: String,
    /// The instruction.
    pub location: Location,
    /// The block's index.
    pub block: [u32; 3],
    /// The thread's index in its block.
    pub thread: [u32; 3],
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bx, by, bz] = self.block;
        let [tx, ty, tz] = self.thread;
        write!(
            f,
            "{} in {} at {}, block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})",
            self.kind, self.kernel, self.location
        )
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::OutOfBounds { space, address, bytes, nearest } => {
                write!(f, "{bytes}-byte access of {space} memory out of bounds at {address:#x}")?;
                match nearest {
                    Some((start, size)) => write!(f, " (nearest: {size} bytes at {start:#x})"),
                    None => Ok(()),
                }
            }
            FaultKind::Misaligned { space, address, bytes } => {
                write!(f, "misaligned {bytes}-byte access of {space} memory at {address:#x}")
            }
            FaultKind::Uninitialised { space, address, bytes } => {
                write!(f, "{bytes}-byte load of uninitialised {space} memory at {address:#x}")
            }
            FaultKind::SharedRace { address, other_thread, other, other_wrote } => {
                let did = if *other_wrote { "a write" } else { "a read" };
                write!(f, "race on shared memory at {address:#x} with {did} at {other}")?;
                match other_thread {
                    Some(thread) => write!(f, " by thread {thread} of the block"),
                    None => write!(f, " by several threads of the block"),
                }
            }
            FaultKind::AbsentLane { lane } => {
                write!(f, "a shuffle reads lane {lane}, which takes no part in it")
            }
            FaultKind::SyncMask { mask } => {
                write!(
                    f,
                    "a warp-wide operation whose mask {mask:#010x} does not fit the lanes that execute it"
                )
            }
            FaultKind::SyncDeadlock { waiting, missing } => write!(
                f,
                "lanes {waiting:#010x} wait in a warp-wide operation for lanes {missing:#010x}, which cannot reach it"
            ),
            FaultKind::DivergentBarrier { arrived, missing } => {
                write!(
                    f,
                    "lanes {arrived:#010x} of a warp reach a barrier that lanes {missing:#010x} do not reach"
                )
            }
            FaultKind::BarrierDeadlock => write!(f, "every warp waits at a barrier that cannot be passed"),
            FaultKind::Livelock { instructions } => {
                write!(f, "livelock: nothing changed for {instructions} warp instructions")
            }
            FaultKind::InstructionLimit { limit } => {
                write!(f, "the launch executed {limit} warp instructions, which is its limit")
            }
            FaultKind::Trap => write!(f, "trap"),
            FaultKind::BadOperand { what, value } => write!(f, "{what} {value} is not allowed"),
        }
    }
}
