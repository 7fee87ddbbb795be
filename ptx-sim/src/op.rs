//! Decoded operations.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::alu::Alu;
use crate::mma::Mma;

/// Index of a register in its file.
pub(crate) type R = u16;

/// No register.
pub(crate) const NONE: R = u16::MAX;

/// Stands for the address of dynamic shared memory until a launch fixes it.
pub(crate) const DYNAMIC_SHARED: u64 = u64::MAX;

/// The predicate in front of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guard {
    pub(crate) register: R,
    pub(crate) negated: bool,
}

impl Guard {
    pub(crate) const ALWAYS: Guard = Guard { register: NONE, negated: false };
}

/// A predicate operand; [`NONE`] is false, negated true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PredSource {
    pub(crate) register: R,
    pub(crate) negated: bool,
}

impl PredSource {
    pub(crate) fn constant(value: bool) -> PredSource {
        PredSource { register: NONE, negated: value }
    }
}

/// What a 32-bit register holds when a warp starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Initial32 {
    Value(u32),
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    NumWarps,
    /// Lanes that compare so with the lane's own number; its own too.
    LaneMask(Ordering, bool),
    DynamicShared,
    DynamicSharedBytes,
    TotalSharedBytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Generic,
    Global,
    Shared,
    Local,
    /// Variables of the module, constant or not.
    Module,
    Param,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    None,
    W32(R),
    W64(R),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) base: Base,
    pub(crate) offset: u64,
}

/// A register that is loaded or stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    pub(crate) register: R,
    pub(crate) wide: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) space: Space,
    /// Bytes of each value: 1, 2, 4 or 8.
    pub(crate) bytes: u32,
    /// Values: 1, 2 or 4.
    pub(crate) lanes: u8,
    pub(crate) signed: bool,
    pub(crate) address: Address,
    pub(crate) values: [Value; 4],
}

#[derive(Clone, Copy)]
pub(crate) enum AtomicOp {
    Update(fn(u64, u64) -> u64),
    CompareAndSwap,
}

#[derive(Clone, Copy)]
pub(crate) struct Atomic {
    pub(crate) space: Space,
    pub(crate) bytes: u32,
    pub(crate) f: AtomicOp,
    /// The same on shared memory, which keeps subnormals.
    pub(crate) on_shared: AtomicOp,
    pub(crate) d: R,
    pub(crate) a: R,
    pub(crate) b: R,
    pub(crate) address: Address,
    /// Whether several give the same memory in any order.
    pub(crate) commutes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PredOp {
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VoteMode {
    All,
    Any,
    Uniform,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    Sync,
    Arrive,
    Count,
    And,
    Or,
}

/// A barrier of the block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockBarrier {
    pub(crate) kind: BarrierKind,
    /// Whether all lanes of a warp come to it at this instruction.
    pub(crate) aligned: bool,
    pub(crate) d: R,
    pub(crate) id: R,
    /// How many threads meet; [`NONE`] for all of the block.
    pub(crate) threads: R,
    pub(crate) a: PredSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Low,
    High,
}

/// What an instruction of extended precision computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarryKind {
    /// a + b
    Sum,
    /// a − b
    Difference,
    /// the lower half of a·b, plus c
    LowProduct,
    /// the upper half of a·b, plus c
    HighProduct,
}

/// An instruction of extended precision: `add.cc`, `subc`, `madc.hi.cc` and the like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carry {
    pub(crate) kind: CarryKind,
    pub(crate) wide: bool,
    pub(crate) signed: bool,
    /// Whether the carry goes into the result.
    pub(crate) takes: bool,
    /// Whether the carry is set to that of the result.
    pub(crate) gives: bool,
    pub(crate) d: R,
    pub(crate) a: R,
    pub(crate) b: R,
    pub(crate) c: R,
    /// The predicate register that holds the carry.
    pub(crate) flag: R,
}

/// A copy from global to shared memory that arrives when it is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsyncCopy {
    /// In shared memory.
    pub(crate) to: Address,
    pub(crate) from: Address,
    pub(crate) from_space: Space,
    /// 4, 8 or 16.
    pub(crate) bytes: u32,
    /// How many bytes are read, the others are zero; [`NONE`] for all.
    pub(crate) source_bytes: R,
}

/// What is done with a barrier that lies in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryBarrierKind {
    /// For so many arrivals a phase.
    Init,
    /// Of so many more bytes that copies are to bring, where that is told.
    Arrive,
    /// Whether the phase of a parity is complete.
    Wait,
}

/// A barrier that lies in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryBarrier {
    pub(crate) kind: MemoryBarrierKind,
    pub(crate) address: Address,
    /// The count, bytes or parity; [`NONE`] for no bytes.
    pub(crate) a: R,
    /// The predicate that a wait gives, else [`NONE`].
    pub(crate) d: R,
}

/// A copy of any size from global to shared memory, whose arrival a barrier in shared memory counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BulkCopy {
    /// In shared memory.
    pub(crate) to: Address,
    pub(crate) from: Address,
    pub(crate) from_space: Space,
    pub(crate) bytes: R,
    pub(crate) barrier: Address,
}

/// One operation of a warp.
pub(crate) enum Op {
    Alu {
        f: Alu,
        d: R,
        sources: [R; 4],
    },
    Compare {
        f: Alu,
        p: R,
        q: R,
        a: R,
        b: R,
        combine: PredOp,
        c: PredSource,
    },
    Select32 {
        d: R,
        a: R,
        b: R,
        p: PredSource,
    },
    Select64 {
        d: R,
        a: R,
        b: R,
        p: PredSource,
    },
    Pred {
        f: PredOp,
        d: R,
        a: PredSource,
        b: PredSource,
    },
    Copy32 {
        d: R,
        a: R,
    },
    Copy64 {
        d: R,
        a: R,
    },
    Clock {
        d: R,
        wide: bool,
        part: Clock,
    },
    Carry(Carry),
    Load(Access),
    Store(Access),
    Atomic(Atomic),
    AsyncCopy(AsyncCopy),
    CommitCopies,
    /// Waits for all groups of copies but so many of the youngest; for copies that are in no group too, where none.
    WaitForCopies {
        but: Option<u32>,
    },
    MemoryBarrier(MemoryBarrier),
    BulkCopy(BulkCopy),
    CopyLocal {
        from: u64,
        to: u64,
        bytes: u64,
    },
    Shuffle {
        mode: ShuffleMode,
        d: R,
        p: R,
        a: R,
        b: R,
        c: R,
        mask: R,
    },
    Vote {
        mode: VoteMode,
        d: R,
        a: PredSource,
        mask: R,
    },
    Match {
        all: bool,
        wide: bool,
        d: R,
        p: R,
        a: R,
        mask: R,
    },
    Redux {
        f: fn(u64, u64) -> u64,
        d: R,
        a: R,
        mask: R,
    },
    Mma(Box<Mma>),
    ActiveMask {
        d: R,
    },
    Barrier(BlockBarrier),
    WarpBarrier {
        mask: R,
    },
    Branch {
        target: u32,
    },
    BranchIndex {
        index: R,
        targets: Arc<[u32]>,
    },
    Call {
        target: u32,
        /// Local memory of the function, which is new in every call.
        locals: Range<u64>,
    },
    Return,
    Exit,
    Trap,
    Nop,
}

impl Op {
    pub(crate) fn alu(f: Alu, d: R, sources: &[R]) -> Op {
        let mut all = [0; 4];
        all[..sources.len()].copy_from_slice(sources);
        Op::Alu { f, d, sources: all }
    }
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Op::Alu { .. } => "arithmetic",
            Op::Compare { .. } => "compare",
            Op::Select32 { .. } | Op::Select64 { .. } => "select",
            Op::Pred { .. } => "predicate logic",
            Op::Copy32 { .. } | Op::Copy64 { .. } => "copy",
            Op::Clock { .. } => "clock",
            Op::Carry(_) => "extended precision",
            Op::Load(_) => "load",
            Op::Store(_) => "store",
            Op::Atomic(_) => "atomic",
            Op::AsyncCopy(_) => "asynchronous copy",
            Op::CommitCopies | Op::WaitForCopies { .. } => "group of copies",
            Op::MemoryBarrier(_) => "barrier in memory",
            Op::BulkCopy(_) => "bulk copy",
            Op::CopyLocal { .. } => "argument",
            Op::Shuffle { .. } => "shuffle",
            Op::Vote { .. } => "vote",
            Op::Match { .. } => "match",
            Op::Redux { .. } => "redux",
            Op::Mma(_) => "matrix product",
            Op::ActiveMask { .. } => "activemask",
            Op::Barrier(_) => "barrier",
            Op::WarpBarrier { .. } => "warp barrier",
            Op::Branch { .. } | Op::BranchIndex { .. } => "branch",
            Op::Call { .. } => "call",
            Op::Return => "return",
            Op::Exit => "exit",
            Op::Trap => "trap",
            Op::Nop => "nothing",
        })
    }
}
