//! A warp: registers, groups of lanes that stand at the same instruction, and what one instruction does.

use crate::alu::{Alu, L32, L64};
use crate::block::{Arrival, Context, Shared, Trouble};
use crate::decode::Kernel;
use crate::memory::{self, Bad, GLOBAL_BASE, LOCAL_BASE, Memory, SHARED_BASE, WINDOW};
use crate::op::*;
use crate::races::{Access as SharedAccess, AccessKind, Race};
use crate::report::{Counters, FaultKind};

/// Lanes that stand at the same instruction.
#[derive(Clone, Copy, Debug)]
struct Group {
    pc: u32,
    mask: u32,
    /// Waiting in a `.sync` instruction for lanes that are elsewhere.
    parked: bool,
}

/// Why a warp stopped running.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Its slice is used up.
    Yield,
    /// All its lanes have reached a barrier: [`Warp::arrivals`].
    Barrier,
    /// All its lanes have exited.
    Done,
}

/// A fault before its place is filled in.
#[derive(Debug)]
pub(crate) struct WarpFault {
    pub(crate) kind: FaultKind,
    pub(crate) pc: u32,
    pub(crate) lane: u32,
    pub(crate) other_pc: Option<u32>,
}

pub(crate) struct Warp {
    index: u32,
    w32: Vec<L32>,
    w64: Vec<L64>,
    pred: Vec<u32>,
    pc: u32,
    mask: u32,
    others: Vec<Group>,
    exited: u32,
    /// Return addresses, one stack a lane.
    stacks: Vec<Vec<u32>>,
    local: Memory,
    local_bytes: u64,
    /// How its lanes reached a barrier, until the block has seen it.
    pub(crate) arrivals: Vec<Arrival>,
    /// Copies to shared memory that have not been waited for, in the order in which they began.
    copies: Vec<CopyInFlight>,
    /// Groups of copies that each lane has closed.
    groups: [u32; 32],
    /// Whether registers hold what does not change from block to block. Nothing writes those.
    started: bool,
    random: Option<Random>,
    /// Whether a slice ended while groups waited for their turn.
    starving: bool,
}

/// A copy of a lane to shared memory that has not arrived.
struct CopyInFlight {
    lane: usize,
    group: u32,
    at: u64,
    len: usize,
    bytes: [u8; 16],
}

/// Groups of a warp that get a turn though they are not the lowest: lanes may wait for each other.
struct Overdue {
    /// Where they stand.
    groups: Vec<u32>,
    /// Instructions that the running one still has.
    left: u32,
}

/// Instructions of such a turn.
const FAIR_TURN: u32 = 64;

/// SplitMix64, for adversarial schedules.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

const ALL: u32 = u32::MAX;

/// Lanes of a mask, from the lowest.
#[inline(always)]
fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let lane = left.trailing_zeros() as usize;
        left &= left - 1;
        Some(lane)
    })
}

#[inline(always)]
fn blend<T: Copy>(target: &mut [T; 32], source: &[T; 32], mask: u32) {
    if mask == ALL {
        *target = *source;
    } else {
        for lane in 0..32 {
            if mask >> lane & 1 != 0 {
                target[lane] = source[lane];
            }
        }
    }
}

impl Warp {
    /// A warp without registers, until [`Warp::fit`].
    pub(crate) fn new(index: u32) -> Warp {
        Warp {
            index,
            w32: Vec::new(),
            w64: Vec::new(),
            pred: Vec::new(),
            pc: 0,
            mask: 0,
            others: Vec::new(),
            exited: 0,
            stacks: Vec::new(),
            local: Memory::new(0),
            local_bytes: 0,
            arrivals: Vec::new(),
            copies: Vec::new(),
            groups: [0; 32],
            started: false,
            random: None,
            starving: false,
        }
    }

    /// Gives the warp a kernel's registers and local memory: registers hold zeros.
    pub(crate) fn fit(&mut self, kernel: &Kernel) {
        fn zeros<T: Copy>(registers: &mut Vec<T>, count: u16, zero: T) {
            registers.clear();
            registers.resize(count.into(), zero);
        }
        zeros(&mut self.w32, kernel.num_w32, [0; 32]);
        zeros(&mut self.w64, kernel.num_w64, [0; 32]);
        zeros(&mut self.pred, kernel.num_pred, 0);
        self.local.resize(kernel.local_bytes * 32);
        self.local_bytes = kernel.local_bytes;
        self.started = false;
    }

    /// Makes the warp ready for a block: `threads` of its lanes exist.
    pub(crate) fn start(&mut self, context: &Context<'_>, ctaid: [u32; 3], random: Option<Random>) {
        let threads = context.threads_per_block;
        let first = self.index * 32;
        let count = threads.saturating_sub(first).min(32);
        self.mask = if count == 32 { ALL } else { (1u32 << count) - 1 };
        self.exited = !self.mask;
        self.pc = 0;
        self.others.clear();
        self.stacks.clear();
        self.arrivals.clear();
        self.copies.clear();
        self.groups = [0; 32];
        self.random = random;
        self.starving = false;
        self.local.mark_allocated(0, self.local_bytes * 32);
        let [nx, ny, _] = context.block;
        for &(register, initial) in &context.kernel.initial32 {
            if self.started && !matches!(initial, Initial32::Ctaid(_)) {
                continue;
            }
            let values = &mut self.w32[usize::from(register)];
            for lane in 0..32u32 {
                let thread = first + lane;
                values[lane as usize] = match initial {
                    Initial32::Value(value) => value,
                    Initial32::Tid(0) => thread % nx,
                    Initial32::Tid(1) => thread / nx % ny,
                    Initial32::Tid(_) => thread / nx / ny,
                    Initial32::Ntid(axis) => context.block[usize::from(axis)],
                    Initial32::Ctaid(axis) => ctaid[usize::from(axis)],
                    Initial32::Nctaid(axis) => context.grid[usize::from(axis)],
                    Initial32::LaneId => lane,
                    Initial32::WarpId => self.index,
                    Initial32::NumWarps => threads.div_ceil(32),
                    Initial32::LaneMask(ordering, with_equal) => (0..32u32)
                        .filter(|other| other.cmp(&lane) == ordering || (with_equal && *other == lane))
                        .fold(0, |mask, other| mask | 1 << other),
                    Initial32::DynamicShared => context.dynamic_shared_at as u32,
                    Initial32::DynamicSharedBytes => context.dynamic_shared_bytes as u32,
                    Initial32::TotalSharedBytes => context.shared_bytes as u32,
                };
            }
        }
        for &(register, value) in &context.kernel.initial64 {
            if !self.started {
                self.w64[usize::from(register)] = [value; 32];
            }
        }
        self.started = true;
    }

    /// A number that is the same for the same registers, groups and position.
    pub(crate) fn fingerprint(&self) -> u64 {
        // Eight numbers side by side: in one, every product waits for the one before.
        let mut hashes: [u64; 8] = std::array::from_fn(|part| 0xcbf2_9ce4_8422_2325 ^ part as u64);
        let mut add = |part: usize, value: u64| {
            hashes[part % 8] = (hashes[part % 8] ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        };
        add(0, u64::from(self.pc) << 32 | u64::from(self.mask));
        self.others.iter().for_each(|group| add(1, u64::from(group.pc) << 32 | u64::from(group.mask)));
        for register in &self.w32 {
            (0..16)
                .for_each(|lane| add(lane, u64::from(register[lane]) << 32 | u64::from(register[lane + 16])));
        }
        for register in &self.w64 {
            (0..32).for_each(|lane| add(lane, register[lane]));
        }
        self.pred.iter().enumerate().for_each(|(index, register)| add(index, u64::from(*register)));
        hashes
            .into_iter()
            .fold(0, |hash, part| (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
    }

    /// A number for each lane, the same for the same registers and position.
    pub(crate) fn lane_states(&self) -> impl Iterator<Item = u64> {
        let mut hashes: [u64; 32] = std::array::from_fn(|lane| u64::from(self.index) << 32 | lane as u64);
        let mut add = |lane: usize, value: u64| {
            hashes[lane] = (hashes[lane] ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        };
        for group in self.others.iter().chain([&Group { pc: self.pc, mask: self.mask, parked: false }]) {
            lanes(group.mask).for_each(|lane| add(lane, group.pc.into()));
        }
        for register in &self.w32 {
            (0..32).for_each(|lane| add(lane, register[lane].into()));
        }
        for register in &self.w64 {
            (0..32).for_each(|lane| add(lane, register[lane]));
        }
        for register in &self.pred {
            (0..32).for_each(|lane| add(lane, (register >> lane & 1).into()));
        }
        hashes.into_iter()
    }

    fn fault(&self, lane: usize, kind: FaultKind) -> WarpFault {
        WarpFault { kind, pc: self.pc, lane: lane as u32, other_pc: None }
    }

    #[inline(always)]
    fn pred_source(&self, source: PredSource) -> u32 {
        let value = if source.register == NONE { 0 } else { self.pred[usize::from(source.register)] };
        if source.negated { !value } else { value }
    }

    /// Runs at most `slice` instructions.
    pub(crate) fn run(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        counters: &mut Counters,
        slice: u64,
    ) -> Result<Stop, WarpFault> {
        if self.mask == 0 && !self.pick()? {
            return Ok(Stop::Done);
        }
        let kernel = context.kernel;
        let (ops, guards) = (&kernel.ops[..], &kernel.guards[..]);
        let mut threads = 0u64;
        let mut left = slice;
        let mut overdue = self.overdue();
        let result = loop {
            if left == 0 {
                self.starving = !self.others.is_empty();
                break Ok(Stop::Yield);
            }
            if !self.others.is_empty() {
                match self.reconcile(&mut overdue) {
                    Ok(true) => {}
                    Ok(false) => break Ok(Stop::Done),
                    Err(fault) => break Err(fault),
                }
            }
            left -= 1;
            let at = self.pc as usize;
            let guard = guards[at];
            let exec = if guard.register == NONE {
                self.mask
            } else {
                let value = self.pred[usize::from(guard.register)];
                self.mask & if guard.negated { !value } else { value }
            };
            threads += u64::from(exec.count_ones());
            match self.step(context, shared, counters, &ops[at], exec) {
                Ok(Next::Advance) => self.pc += 1,
                Ok(Next::Elsewhere) => {
                    if self.mask == 0 {
                        match self.pick() {
                            Ok(true) => {}
                            Ok(false) => break Ok(Stop::Done),
                            Err(fault) => break Err(fault),
                        }
                    }
                }
                Ok(Next::Barrier) => {
                    self.pc += 1;
                    break Ok(Stop::Barrier);
                }
                Ok(Next::Wait) => {
                    self.pc += 1;
                    // Lanes that are elsewhere have their turn first, then other warps.
                    overdue.left = 0;
                    if overdue.groups.is_empty() {
                        self.starving = !self.others.is_empty();
                        break Ok(Stop::Yield);
                    }
                }
                Ok(Next::Clock) => {
                    let now = context.clock.wrapping_add(counters.warp_instructions + slice - left);
                    self.read_clock(&ops[at], now, exec);
                    self.pc += 1;
                }
                Err(fault) => break Err(fault),
            }
        };
        counters.warp_instructions += slice - left;
        counters.thread_instructions += threads;
        result
    }

    /// Puts the running group back among the others, merged with one that stands at the same place.
    fn put_back(&mut self, parked: bool) {
        if self.mask == 0 {
            return;
        }
        match self.others.iter_mut().find(|group| group.pc == self.pc) {
            Some(group) => {
                group.mask |= self.mask;
                // More lanes are there than before: what was waited for may have come.
                group.parked = false;
            }
            None => self.others.push(Group { pc: self.pc, mask: self.mask, parked }),
        }
        self.mask = 0;
    }

    /// Takes the group to run next: the lowest, or any in an adversarial schedule. False where all have exited.
    fn pick(&mut self) -> Result<bool, WarpFault> {
        let ready = self.others.iter().filter(|group| !group.parked).count();
        let chosen = match &mut self.random {
            Some(random) if ready > 1 => {
                let chosen = random.below(ready);
                self.others.iter().enumerate().filter(|(_, group)| !group.parked).map(|(i, _)| i).nth(chosen)
            }
            _ => {
                let ready = self.others.iter().enumerate().filter(|(_, group)| !group.parked);
                ready.min_by_key(|(_, group)| group.pc).map(|(index, _)| index)
            }
        };
        let Some(chosen) = chosen else {
            return match self.others.first() {
                None => Ok(false),
                Some(group) => {
                    let waiting = group.mask;
                    let missing = !self.exited & !waiting;
                    // The place is that of a group that waits.
                    self.pc = group.pc;
                    Err(self.fault(
                        waiting.trailing_zeros() as usize,
                        FaultKind::SyncDeadlock { waiting, missing },
                    ))
                }
            };
        };
        let group = self.others.swap_remove(chosen);
        self.pc = group.pc;
        self.mask = group.mask;
        Ok(true)
    }

    /// Groups that had no turn in the last slice, because a lower one never came to an end.
    fn overdue(&mut self) -> Overdue {
        let groups = match std::mem::take(&mut self.starving) && self.random.is_none() {
            true => self.others.iter().filter(|group| !group.parked).map(|group| group.pc).collect(),
            false => Vec::new(),
        };
        Overdue { groups, left: 0 }
    }

    /// Keeps to the schedule while lanes are apart. False where all have exited.
    fn reconcile(&mut self, overdue: &mut Overdue) -> Result<bool, WarpFault> {
        let meets = self.others.iter().any(|group| group.pc == self.pc);
        if overdue.left > 0 && !meets {
            overdue.left -= 1;
            return Ok(true);
        }
        if let Some(pc) = overdue.groups.pop() {
            if let Some(at) = self.others.iter().position(|group| group.pc == pc && !group.parked) {
                let group = self.others.swap_remove(at);
                self.put_back(false);
                (self.pc, self.mask) = (group.pc, group.mask);
                overdue.left = FAIR_TURN;
            }
            return Ok(true);
        }
        let switch = match &mut self.random {
            None => {
                self.others.iter().any(|group| !group.parked && group.pc <= self.pc || group.pc == self.pc)
            }
            Some(random) => self.others.iter().any(|group| group.pc == self.pc) || random.next() % 8 == 0,
        };
        if !switch {
            return Ok(true);
        }
        self.put_back(false);
        self.pick()
    }

    /// Lanes that have reached the instruction with everybody whom their masks name. The others are parked.
    fn gather(&mut self, exec: u32, mask: R) -> Result<u32, WarpFault> {
        let masks = &self.w32[usize::from(mask)];
        let (mut left, mut ready) = (exec, 0);
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let named = masks[lane];
            let disagrees = |other: usize| masks[other] != named;
            if named >> lane & 1 == 0 {
                return Err(self.fault(lane, FaultKind::SyncMask { mask: named }));
            }
            if named & !self.exited & !exec != 0 {
                left &= left - 1;
                continue;
            }
            if lanes(named & exec).any(disagrees) {
                return Err(self.fault(lane, FaultKind::SyncMask { mask: named }));
            }
            ready |= named & exec;
            left &= !named;
        }
        Ok(ready)
    }

    /// Parks lanes at the instruction that they stand at. Those that stay in the running group advance.
    fn park(&mut self, waiting: u32) {
        let staying = self.mask & !waiting;
        self.mask = waiting;
        self.put_back(true);
        self.mask = staying;
    }

    /// Ends a warp-wide instruction: who was not ready waits.
    fn after_sync(&mut self, exec: u32, ready: u32) -> Next {
        if ready == exec {
            return Next::Advance;
        }
        self.park(exec & !ready);
        if self.mask == 0 { Next::Elsewhere } else { Next::Advance }
    }

    #[inline(always)]
    fn step(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        counters: &mut Counters,
        op: &Op,
        exec: u32,
    ) -> Result<Next, WarpFault> {
        match op {
            Op::Alu { f, d, sources } => {
                self.alu(f, *d, sources, exec);
                Ok(Next::Advance)
            }
            Op::Compare { f, p, q, a, b, combine, c } => {
                let compared = match f {
                    Alu::T32(f) => f(&self.w32[usize::from(*a)], &self.w32[usize::from(*b)]),
                    Alu::T64(f) => f(&self.w64[usize::from(*a)], &self.w64[usize::from(*b)]),
                    _ => 0,
                };
                let with = self.pred_source(*c);
                let combined = |value: u32| match combine {
                    PredOp::And => value & with,
                    PredOp::Or => value | with,
                    PredOp::Xor => value ^ with,
                };
                let (first, second) = (combined(compared), combined(!compared));
                let p = &mut self.pred[usize::from(*p)];
                *p = *p & !exec | first & exec;
                if *q != NONE {
                    let q = &mut self.pred[usize::from(*q)];
                    *q = *q & !exec | second & exec;
                }
                Ok(Next::Advance)
            }
            Op::Load(access) => {
                self.load(context, shared, counters, access, exec)?;
                Ok(Next::Advance)
            }
            Op::Store(access) => {
                self.store(context, shared, counters, access, exec)?;
                Ok(Next::Advance)
            }
            Op::Branch { target } => {
                if exec == self.mask {
                    self.pc = *target;
                    return Ok(Next::Elsewhere);
                }
                if exec == 0 {
                    return Ok(Next::Advance);
                }
                let staying = self.mask & !exec;
                let here = self.pc;
                self.mask = exec;
                self.pc = *target;
                self.put_back(false);
                self.mask = staying;
                self.pc = here + 1;
                Ok(Next::Elsewhere)
            }
            Op::Copy32 { d, a } => {
                let source = self.w32[usize::from(*a)];
                blend(&mut self.w32[usize::from(*d)], &source, exec);
                Ok(Next::Advance)
            }
            Op::Copy64 { d, a } => {
                let source = self.w64[usize::from(*a)];
                blend(&mut self.w64[usize::from(*d)], &source, exec);
                Ok(Next::Advance)
            }
            Op::Select32 { d, a, b, p } => {
                let chosen = self.pred_source(*p);
                let mut value = self.w32[usize::from(*b)];
                blend(&mut value, &self.w32[usize::from(*a)], chosen);
                blend(&mut self.w32[usize::from(*d)], &value, exec);
                Ok(Next::Advance)
            }
            Op::Select64 { d, a, b, p } => {
                let chosen = self.pred_source(*p);
                let mut value = self.w64[usize::from(*b)];
                blend(&mut value, &self.w64[usize::from(*a)], chosen);
                blend(&mut self.w64[usize::from(*d)], &value, exec);
                Ok(Next::Advance)
            }
            Op::Pred { f, d, a, b } => {
                let (a, b) = (self.pred_source(*a), self.pred_source(*b));
                let value = match f {
                    PredOp::And => a & b,
                    PredOp::Or => a | b,
                    PredOp::Xor => a ^ b,
                };
                let d = &mut self.pred[usize::from(*d)];
                *d = *d & !exec | value & exec;
                Ok(Next::Advance)
            }
            Op::Exit => {
                self.exited |= exec;
                self.mask &= !exec;
                self.pc += 1;
                // Those that waited for the exited need not any more.
                self.others.iter_mut().for_each(|group| group.parked = false);
                Ok(Next::Elsewhere)
            }
            other => self.rare(context, shared, counters, other, exec),
        }
    }

    #[inline(always)]
    fn alu(&mut self, f: &Alu, d: R, sources: &[R; 4], exec: u32) {
        let [a, b, c, e] = sources.map(usize::from);
        let d = usize::from(d);
        let mut narrow = [0u32; 32];
        let mut wide = [0u64; 32];
        let (w32, w64) = (&self.w32, &self.w64);
        match f {
            Alu::A1(f) => f(&w32[a], &mut narrow),
            Alu::A2(f) => f(&w32[a], &w32[b], &mut narrow),
            Alu::A3(f) => f(&w32[a], &w32[b], &w32[c], &mut narrow),
            Alu::A4(f) => f(&w32[a], &w32[b], &w32[c], &w32[e], &mut narrow),
            Alu::N1(f) => f(&w64[a], &mut narrow),
            Alu::N2(f) => f(&w64[a], &w64[b], &mut narrow),
            Alu::B1(f) => f(&w64[a], &mut wide),
            Alu::B2(f) => f(&w64[a], &w64[b], &mut wide),
            Alu::B3(f) => f(&w64[a], &w64[b], &w64[c], &mut wide),
            Alu::W1(f) => f(&w32[a], &mut wide),
            Alu::W2(f) => f(&w32[a], &w32[b], &mut wide),
            Alu::W3(f) => f(&w32[a], &w32[b], &w64[c], &mut wide),
            Alu::S2(f) => f(&w64[a], &w32[b], &mut wide),
            Alu::S3(f) => f(&w64[a], &w32[b], &w32[c], &mut wide),
            Alu::S4(f) => f(&w64[a], &w64[b], &w32[c], &w32[e], &mut wide),
            Alu::S5(f) => f(&w64[a], &w64[b], &w32[c], &mut wide),
            Alu::T32(_) | Alu::T64(_) | Alu::T32x1(_) | Alu::T64x1(_) => {
                let value = match f {
                    Alu::T32(f) => f(&w32[a], &w32[b]),
                    Alu::T64(f) => f(&w64[a], &w64[b]),
                    Alu::T32x1(f) => f(&w32[a]),
                    Alu::T64x1(f) => f(&w64[a]),
                    _ => 0,
                };
                let d = &mut self.pred[d];
                *d = *d & !exec | value & exec;
                return;
            }
            Alu::Convert(conversion) => {
                let (from_wide, to_wide) = conversion.widths();
                for lane in lanes(exec) {
                    let from = if from_wide { w64[a][lane] } else { u64::from(w32[a][lane]) };
                    let to = conversion.apply(from);
                    if to_wide {
                        wide[lane] = to;
                    } else {
                        narrow[lane] = to as u32;
                    }
                }
                if to_wide {
                    blend(&mut self.w64[d], &wide, exec);
                } else {
                    blend(&mut self.w32[d], &narrow, exec);
                }
                return;
            }
        }
        match f {
            Alu::A1(_) | Alu::A2(_) | Alu::A3(_) | Alu::A4(_) | Alu::N1(_) | Alu::N2(_) => {
                blend(&mut self.w32[d], &narrow, exec);
            }
            _ => blend(&mut self.w64[d], &wide, exec),
        }
    }

    #[inline(always)]
    fn address(&self, address: &Address, lane: usize) -> u64 {
        let base = match address.base {
            Base::None => 0,
            // Addresses of 32 bits wrap around at 32 bits.
            Base::W32(register) => {
                return self.w32[usize::from(register)][lane].wrapping_add(address.offset as u32).into();
            }
            Base::W64(register) => self.w64[usize::from(register)][lane],
        };
        base.wrapping_add(address.offset)
    }

    #[cold]
    fn bad_access(
        &self,
        context: &Context<'_>,
        bad: Bad,
        space: Space,
        address: u64,
        bytes: u32,
        lane: usize,
    ) -> WarpFault {
        let space_name = match space {
            Space::Generic | Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Module => "module",
            Space::Param => "param",
        };
        let kind = match bad {
            Bad::OutOfBounds => {
                let nearest = match space {
                    Space::Global | Space::Generic => context.global.nearest(address),
                    Space::Shared => Some((0, context.shared_bytes)),
                    Space::Local => Some((0, self.local_bytes)),
                    Space::Module | Space::Param => None,
                };
                FaultKind::OutOfBounds { space: space_name, address, bytes, nearest }
            }
            Bad::Misaligned => FaultKind::Misaligned { space: space_name, address, bytes },
            Bad::Uninitialised => FaultKind::Uninitialised { space: space_name, address, bytes },
        };
        self.fault(lane, kind)
    }

    /// The space and the offset in it that an address means.
    #[inline(always)]
    fn resolve(space: Space, address: u64) -> (Space, u64) {
        match space {
            Space::Global if address >= GLOBAL_BASE => (Space::Global, address - GLOBAL_BASE),
            Space::Module => (Space::Module, address.wrapping_sub(memory::MODULE_BASE)),
            Space::Generic if address.wrapping_sub(SHARED_BASE) < WINDOW => {
                (Space::Shared, address - SHARED_BASE)
            }
            Space::Generic if address.wrapping_sub(LOCAL_BASE) < WINDOW => {
                (Space::Local, address - LOCAL_BASE)
            }
            Space::Global | Space::Generic if address.wrapping_sub(memory::MODULE_BASE) < WINDOW => {
                (Space::Module, address - memory::MODULE_BASE)
            }
            Space::Global | Space::Generic => (Space::Global, address.wrapping_sub(GLOBAL_BASE)),
            other => (other, address),
        }
    }

    /// The offset of a lane's local memory; out of range where the access leaves the lane's own.
    fn local_at(&self, at: u64, bytes: u32, lane: usize) -> u64 {
        if at.checked_add(u64::from(bytes)).is_some_and(|end| end <= self.local_bytes) {
            at + lane as u64 * self.local_bytes
        } else {
            u64::MAX / 2
        }
    }

    fn load(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        counters: &mut Counters,
        access: &Access,
        exec: u32,
    ) -> Result<(), WarpFault> {
        match (access.space, access.lanes, access.bytes) {
            (Space::Param, ..) => return self.load_param(context, access, exec),
            (Space::Global, 1, 4) if !access.values[0].wide => {
                if let Some(loaded) = self.load_plain::<4>(context, counters, access, exec) {
                    blend(
                        &mut self.w32[usize::from(access.values[0].register)],
                        &loaded.map(|v| v as u32),
                        exec,
                    );
                    return Ok(());
                }
            }
            (Space::Shared, ..) => {
                if let Some(done) = self.load_shared(shared, counters, access, exec) {
                    return done;
                }
            }
            (Space::Global, 1, 8) => {
                if let Some(loaded) = self.load_plain::<8>(context, counters, access, exec) {
                    blend(&mut self.w64[usize::from(access.values[0].register)], &loaded, exec);
                    return Ok(());
                }
            }
            _ => {}
        }
        self.load_any(context, shared, counters, access, exec)
    }

    #[inline(always)]
    fn addresses(&self, address: &Address) -> L64 {
        let mut all = match address.base {
            Base::None => [0; 32],
            // Addresses of 32 bits wrap around at 32 bits.
            Base::W32(register) => {
                let offset = address.offset as u32;
                return self.w32[usize::from(register)].map(|at| at.wrapping_add(offset).into());
            }
            Base::W64(register) => self.w64[usize::from(register)],
        };
        all.iter_mut().for_each(|at| *at = at.wrapping_add(address.offset));
        all
    }

    /// The usual load: one aligned, initialised value a lane from allocated memory; none where it is not that.
    #[inline(always)]
    fn load_plain<const BYTES: u64>(
        &self,
        context: &Context<'_>,
        counters: &mut Counters,
        access: &Access,
        exec: u32,
    ) -> Option<L64> {
        if access.values[0].register == NONE || exec == 0 {
            return None;
        }
        let memory = &context.global.memory;
        let mut at = self.addresses(&access.address);
        at.iter_mut().for_each(|at| *at = at.wrapping_sub(GLOBAL_BASE));
        let mut loaded = [0; 32];
        let sectors = if exec == ALL {
            for lane in 0..32 {
                loaded[lane] = memory.load_plain::<BYTES>(at[lane])?;
            }
            distinct_sectors(at.iter())
        } else {
            for lane in lanes(exec) {
                loaded[lane] = memory.load_plain::<BYTES>(at[lane])?;
            }
            distinct_sectors(lanes(exec).map(|lane| &at[lane]))
        };
        counters.global_load_requests += 1;
        counters.global_load_bytes += u64::from(exec.count_ones()) * BYTES;
        counters.global_load_sectors += sectors;
        Some(loaded)
    }

    /// The usual load of shared memory; none, and nothing done, where anything about it needs a closer look.
    fn load_shared(
        &mut self,
        shared: &mut Shared,
        counters: &mut Counters,
        access: &Access,
        exec: u32,
    ) -> Option<Result<(), WarpFault>> {
        match (access.bytes, access.lanes) {
            (4, 1) => self.load_shared_of::<4, 1>(shared, counters, access, exec),
            (4, 2) => self.load_shared_of::<4, 2>(shared, counters, access, exec),
            (4, 4) => self.load_shared_of::<4, 4>(shared, counters, access, exec),
            (8, 1) => self.load_shared_of::<8, 1>(shared, counters, access, exec),
            (8, 2) => self.load_shared_of::<8, 2>(shared, counters, access, exec),
            _ => None,
        }
    }

    #[inline(always)]
    fn load_shared_of<const BYTES: u64, const PARTS: usize>(
        &mut self,
        shared: &mut Shared,
        counters: &mut Counters,
        access: &Access,
        exec: u32,
    ) -> Option<Result<(), WarpFault>> {
        let total = BYTES * PARTS as u64;
        // A narrow value in a wide register may have to be extended.
        if access.values[..PARTS].iter().any(|value| value.register != NONE && value.wide != (BYTES == 8)) {
            return None;
        }
        let at = self.addresses(&access.address);
        let mut loaded = [[0; 32]; PARTS];
        {
            let memory = shared.memory();
            for lane in lanes(exec) {
                if at[lane] & (total - 1) != 0 {
                    return None;
                }
                for (part, loaded) in loaded.iter_mut().enumerate() {
                    loaded[lane] = memory.load_plain::<BYTES>(at[lane].wrapping_add(part as u64 * BYTES))?;
                }
            }
        }
        for lane in lanes(exec) {
            if let Some(race) = shared.touch(at[lane], total as u32, AccessKind::Read, self.access_by(lane)) {
                return Some(Err(self.race(race, at[lane], lane)));
            }
        }
        count_shared(counters, &at, exec, total as u32);
        for (value, loaded) in access.values.iter().zip(&loaded) {
            match value.register {
                NONE => {}
                register if BYTES == 8 => blend(&mut self.w64[usize::from(register)], loaded, exec),
                register => blend(&mut self.w32[usize::from(register)], &loaded.map(|v| v as u32), exec),
            }
        }
        Some(Ok(()))
    }

    fn load_any(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        counters: &mut Counters,
        access: &Access,
        exec: u32,
    ) -> Result<(), WarpFault> {
        let total = access.bytes * u32::from(access.lanes);
        let mut touched = Touched::default();
        let mut values = [[0u64; 32]; 4];
        for lane in lanes(exec) {
            let address = self.address(&access.address, lane);
            let (space, at) = Self::resolve(access.space, address);
            touched.add(space, at);
            let mut bad = if at & u64::from(total - 1) != 0 { Err(Bad::Misaligned) } else { Ok(()) };
            for (part, values) in values.iter_mut().enumerate().take(usize::from(access.lanes)) {
                let at = at.wrapping_add(part as u64 * u64::from(access.bytes));
                let loaded = match space {
                    Space::Global | Space::Generic => context.global.memory.load(at, access.bytes),
                    Space::Shared => shared.load(at, access.bytes, self.access_by(lane)),
                    Space::Local => self.local.load(self.local_at(at, access.bytes, lane), access.bytes),
                    Space::Module | Space::Param => context.variables.load(at, access.bytes),
                };
                match loaded {
                    Ok(value) => values[lane] = value,
                    Err(problem) => bad = bad.and(Err(problem)),
                }
            }
            if let Err(bad) = bad {
                return Err(self.bad_access(context, bad, space, address, total, lane));
            }
            if let Some(race) = shared.take_race() {
                return Err(self.race(race, at, lane));
            }
        }
        touched.count_load(counters, total);
        for (value, loaded) in access.values.iter().zip(&mut values).take(usize::from(access.lanes)) {
            if value.register == NONE {
                continue;
            }
            if access.signed && access.bytes < 8 {
                let shift = 64 - 8 * access.bytes;
                loaded.iter_mut().for_each(|value| *value = ((*value << shift) as i64 >> shift) as u64);
            }
            if value.wide {
                blend(&mut self.w64[usize::from(value.register)], loaded, exec);
            } else {
                blend(&mut self.w32[usize::from(value.register)], &loaded.map(|value| value as u32), exec);
            }
        }
        Ok(())
    }

    fn load_param(&mut self, context: &Context<'_>, access: &Access, exec: u32) -> Result<(), WarpFault> {
        for lane in lanes(exec) {
            let address = self.address(&access.address, lane);
            let total = access.bytes * u32::from(access.lanes);
            if address & u64::from(total - 1) != 0 {
                return Err(self.bad_access(context, Bad::Misaligned, Space::Param, address, total, lane));
            }
            for (part, value) in access.values.iter().enumerate().take(usize::from(access.lanes)) {
                let at = address.wrapping_add(part as u64 * u64::from(access.bytes));
                let bytes = usize::try_from(at)
                    .ok()
                    .and_then(|at| context.params.get(at..at.checked_add(access.bytes as usize)?));
                let Some(bytes) = bytes else {
                    return Err(self.bad_access(
                        context,
                        Bad::OutOfBounds,
                        Space::Param,
                        at,
                        access.bytes,
                        lane,
                    ));
                };
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                let mut loaded = u64::from_le_bytes(word);
                if access.signed && access.bytes < 8 {
                    let shift = 64 - 8 * access.bytes;
                    loaded = ((loaded << shift) as i64 >> shift) as u64;
                }
                if value.register == NONE {
                    continue;
                }
                if value.wide {
                    self.w64[usize::from(value.register)][lane] = loaded;
                } else {
                    self.w32[usize::from(value.register)][lane] = loaded as u32;
                }
            }
        }
        Ok(())
    }

    fn store(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        counters: &mut Counters,
        access: &Access,
        exec: u32,
    ) -> Result<(), WarpFault> {
        if access.space == Space::Shared
            && let Some(done) = self.store_shared(context, shared, counters, access, exec)
        {
            return done;
        }
        let total = access.bytes * u32::from(access.lanes);
        let mut touched = Touched::default();
        for lane in lanes(exec) {
            let address = self.address(&access.address, lane);
            let (space, at) = Self::resolve(access.space, address);
            touched.add(space, at);
            let mut bad = if at & u64::from(total - 1) != 0 { Err(Bad::Misaligned) } else { Ok(()) };
            for (part, value) in access.values.iter().enumerate().take(usize::from(access.lanes)) {
                let at = at.wrapping_add(part as u64 * u64::from(access.bytes));
                let value = match value.wide {
                    true => self.w64[usize::from(value.register)][lane],
                    false => self.w32[usize::from(value.register)][lane].into(),
                };
                let stored = match space {
                    Space::Global | Space::Generic => context.global.memory.store(at, access.bytes, value),
                    Space::Shared => shared.store(at, access.bytes, value, self.access_by(lane)),
                    Space::Local => {
                        self.local.store(self.local_at(at, access.bytes, lane), access.bytes, value)
                    }
                    Space::Module => context.variables.store(at, access.bytes, value),
                    Space::Param => Err(Bad::OutOfBounds),
                };
                match stored {
                    Ok(changed) => shared.progress |= changed,
                    Err(problem) => bad = bad.and(Err(problem)),
                }
            }
            if let Err(bad) = bad {
                return Err(self.bad_access(context, bad, space, address, total, lane));
            }
            if let Some(race) = shared.take_race() {
                return Err(self.race(race, at, lane));
            }
        }
        touched.count_store(counters, total);
        Ok(())
    }

    /// The usual store to shared memory; none, and nothing done, where anything about it needs a closer look.
    fn store_shared(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        counters: &mut Counters,
        access: &Access,
        exec: u32,
    ) -> Option<Result<(), WarpFault>> {
        match (access.bytes, access.lanes) {
            (4, 1) => self.store_shared_of::<4, 1>(context, shared, counters, access, exec),
            (4, 2) => self.store_shared_of::<4, 2>(context, shared, counters, access, exec),
            (4, 4) => self.store_shared_of::<4, 4>(context, shared, counters, access, exec),
            (8, 1) => self.store_shared_of::<8, 1>(context, shared, counters, access, exec),
            (8, 2) => self.store_shared_of::<8, 2>(context, shared, counters, access, exec),
            _ => None,
        }
    }

    #[inline(always)]
    fn store_shared_of<const BYTES: u64, const PARTS: usize>(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        counters: &mut Counters,
        access: &Access,
        exec: u32,
    ) -> Option<Result<(), WarpFault>> {
        let total = BYTES * PARTS as u64;
        let at = self.addresses(&access.address);
        let last = shared.memory().len().checked_sub(total)?;
        if lanes(exec).any(|lane| at[lane] & (total - 1) != 0 || at[lane] > last) {
            return None;
        }
        let mut progress = false;
        for lane in lanes(exec) {
            let mut race = None;
            for (part, value) in access.values.iter().enumerate().take(PARTS) {
                let value = match BYTES {
                    8 => self.w64[usize::from(value.register)][lane],
                    _ => self.w32[usize::from(value.register)][lane].into(),
                };
                let place = at[lane] + part as u64 * BYTES;
                let changed = match shared.memory().store(place, BYTES as u32, value) {
                    Ok(changed) => changed,
                    Err(bad) => {
                        let space = Space::Shared;
                        return Some(Err(self.bad_access(context, bad, space, at[lane], total as u32, lane)));
                    }
                };
                progress |= changed;
                let by = self.access_by(lane);
                race = race.or(match changed {
                    true => shared.touch(place, BYTES as u32, AccessKind::Write, by),
                    false => shared.touch(place, BYTES as u32, AccessKind::SameWrite, by),
                });
            }
            if let Some(race) = race {
                return Some(Err(self.race(race, at[lane], lane)));
            }
        }
        shared.progress |= progress;
        count_shared(counters, &at, exec, total as u32);
        Some(Ok(()))
    }

    #[inline(always)]
    fn access_by(&self, lane: usize) -> SharedAccess {
        SharedAccess { warp: self.index, lane: lane as u32, pc: self.pc }
    }

    #[cold]
    fn race(&self, race: Race, address: u64, lane: usize) -> WarpFault {
        let kind = FaultKind::SharedRace {
            address,
            other_thread: race.other_thread,
            other: Default::default(),
            other_wrote: race.other_wrote,
        };
        WarpFault { other_pc: Some(race.other_pc), ..self.fault(lane, kind) }
    }

    fn atomic(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        counters: &mut Counters,
        atomic: &Atomic,
        exec: u32,
    ) -> Result<(), WarpFault> {
        let wide = atomic.bytes == 8;
        let mut on_global = 0;
        // Lanes take turns from the lowest; from the highest in some adversarial schedules.
        let backwards = self.random.as_mut().is_some_and(|random| random.next() & 1 == 1);
        for turn in 0..32 {
            let lane = if backwards { 31 - turn } else { turn };
            if exec >> lane & 1 == 0 {
                continue;
            }
            let operand = |register: R| match wide {
                true => self.w64[usize::from(register)][lane],
                false => self.w32[usize::from(register)][lane].into(),
            };
            let a = operand(atomic.a);
            let b = if atomic.b == NONE { 0 } else { operand(atomic.b) };
            let address = self.address(&atomic.address, lane);
            let (space, at) = Self::resolve(atomic.space, address);
            let f = if space == Space::Shared { atomic.on_shared } else { atomic.f };
            let update = |old: u64| match f {
                AtomicOp::Update(f) => f(old, a),
                AtomicOp::CompareAndSwap => {
                    if old == a & (u64::MAX >> (64 - 8 * atomic.bytes)) {
                        b
                    } else {
                        old
                    }
                }
            };
            let updated = match space {
                Space::Global | Space::Generic => {
                    on_global += 1;
                    context.global.memory.update(at, atomic.bytes, update)
                }
                Space::Module => context.variables.update(at, atomic.bytes, update),
                Space::Shared => {
                    counters.shared_atomics += 1;
                    shared.update(at, atomic.bytes, update, self.access_by(lane))
                }
                _ => Err(Bad::OutOfBounds),
            };
            let (old, changed) =
                updated.map_err(|bad| self.bad_access(context, bad, space, address, atomic.bytes, lane))?;
            shared.progress |= changed;
            if let Some(race) = shared.take_race() {
                return Err(self.race(race, at, lane));
            }
            if atomic.d != NONE {
                match wide {
                    true => self.w64[usize::from(atomic.d)][lane] = old,
                    false => self.w32[usize::from(atomic.d)][lane] = old as u32,
                }
            }
        }
        if on_global > 0 {
            counters.global_atomic_requests += 1;
            counters.global_atomics += on_global;
        }
        Ok(())
    }

    /// Begins asynchronous copies: global memory is read now, shared memory is written when somebody waits.
    fn begin_copies(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        counters: &mut Counters,
        copy: &AsyncCopy,
        exec: u32,
    ) -> Result<(), WarpFault> {
        let mut touched = Touched::default();
        for lane in lanes(exec) {
            let address = self.address(&copy.from, lane);
            let (space, from) = Self::resolve(copy.from_space, address);
            touched.add(space, from);
            let source_bytes = match copy.source_bytes {
                NONE => copy.bytes,
                register => self.w32[usize::from(register)][lane],
            };
            if source_bytes > copy.bytes {
                let kind = FaultKind::BadOperand {
                    what: "a copy whose source has more bytes than it:",
                    value: source_bytes.into(),
                };
                return Err(self.fault(lane, kind));
            }
            let memory = match space {
                Space::Module => context.variables,
                _ => &context.global.memory,
            };
            let aligned = from & u64::from(copy.bytes - 1) == 0;
            let mut bad = if aligned { Ok(()) } else { Err(Bad::Misaligned) };
            let mut bytes = [0; 16];
            for (offset, byte) in bytes.iter_mut().enumerate().take(source_bytes as usize) {
                match memory.load(from.wrapping_add(offset as u64), 1) {
                    Ok(value) => *byte = value as u8,
                    Err(problem) => bad = bad.and(Err(problem)),
                }
            }
            if let Err(bad) = bad {
                return Err(self.bad_access(context, bad, space, address, copy.bytes, lane));
            }
            let at = self.address(&copy.to, lane);
            touched.add(Space::Shared, at);
            match shared.begin_copy(at, copy.bytes, self.access_by(lane)) {
                Ok(None) => {}
                Ok(Some(race)) => return Err(self.race(race, at, lane)),
                Err(bad) => return Err(self.bad_access(context, bad, Space::Shared, at, copy.bytes, lane)),
            }
            self.copies.push(CopyInFlight {
                lane,
                group: self.groups[lane],
                at,
                len: copy.bytes as usize,
                bytes,
            });
        }
        touched.count_load(counters, copy.bytes);
        Ok(())
    }

    /// Lets copies of lanes arrive, but for those of the youngest groups.
    fn end_copies(&mut self, shared: &mut Shared, but: Option<u32>, exec: u32) -> Result<(), WarpFault> {
        let mut copies = std::mem::take(&mut self.copies);
        let groups = self.groups;
        let arrives = |copy: &CopyInFlight| {
            // Groups that are closed and not among the youngest; the open one counts as one that is not closed.
            let closed = |but: u32| copy.group < groups[copy.lane].saturating_sub(but);
            exec >> copy.lane & 1 == 1 && but.is_none_or(closed)
        };
        for copy in copies.iter().filter(|copy| arrives(copy)) {
            let access = self.access_by(copy.lane);
            if let Some(race) = shared.end_copy(copy.at, &copy.bytes[..copy.len], access) {
                return Err(self.race(race, copy.at, copy.lane));
            }
        }
        copies.retain(|copy| !arrives(copy));
        self.copies = copies;
        Ok(())
    }

    #[cold]
    fn trouble(
        &self,
        context: &Context<'_>,
        trouble: Trouble,
        address: u64,
        bytes: u32,
        lane: usize,
    ) -> WarpFault {
        match trouble {
            Trouble::Bad(bad) => self.bad_access(context, bad, Space::Shared, address, bytes, lane),
            Trouble::Race { at, race } => self.race(race, at, lane),
            Trouble::Operand { what, value } => self.fault(lane, FaultKind::BadOperand { what, value }),
        }
    }

    /// What lanes do with a barrier in shared memory, one after the other.
    fn memory_barrier(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        barrier: &MemoryBarrier,
        exec: u32,
    ) -> Result<Next, WarpFault> {
        let whole = exec.count_ones() == (context.threads_per_block - self.index * 32).min(32);
        let mut complete = 0;
        for lane in lanes(exec) {
            let at = self.address(&barrier.address, lane);
            let a = if barrier.a == NONE { 0 } else { self.w32[usize::from(barrier.a)][lane] };
            let by = self.access_by(lane);
            let done = match barrier.kind {
                MemoryBarrierKind::Init => shared.init_barrier(at, a, by).map(|()| false),
                MemoryBarrierKind::Arrive => shared.arrive(at, a, whole, by).map(|()| false),
                MemoryBarrierKind::Wait => shared.wait(at, a, by, self.random.as_mut()),
            };
            match done {
                Ok(done) => complete |= u32::from(done) << lane,
                Err(trouble) => return Err(self.trouble(context, trouble, at, 8, lane)),
            }
        }
        if barrier.kind != MemoryBarrierKind::Wait {
            return Ok(Next::Advance);
        }
        let d = &mut self.pred[usize::from(barrier.d)];
        *d = *d & !exec | complete;
        Ok(if complete == exec { Next::Advance } else { Next::Wait })
    }

    /// Begins bulk copies: global memory is read now, shared memory is written when somebody waits for it.
    fn begin_bulk(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        counters: &mut Counters,
        copy: &BulkCopy,
        exec: u32,
    ) -> Result<(), WarpFault> {
        let (mut is_global, mut total, mut sectors) = (false, 0, 0);
        for lane in lanes(exec) {
            let bytes = self.w32[usize::from(copy.bytes)][lane];
            if !bytes.is_multiple_of(16) {
                let what = "a bulk copy of bytes that are no multiple of 16:";
                return Err(self.fault(lane, FaultKind::BadOperand { what, value: bytes.into() }));
            }
            let at = self.address(&copy.to, lane);
            if let Err(bad) = shared.takes_bulk(at, bytes) {
                return Err(self.bad_access(context, bad, Space::Shared, at, bytes, lane));
            }
            let address = self.address(&copy.from, lane);
            let (space, from) = Self::resolve(copy.from_space, address);
            let memory = match space {
                Space::Module => context.variables,
                _ => &context.global.memory,
            };
            let loaded = match from.is_multiple_of(16) {
                true => memory.load_bytes(from, bytes.into()),
                false => Err(Bad::Misaligned),
            };
            let loaded = loaded.map_err(|bad| self.bad_access(context, bad, space, address, bytes, lane))?;
            if space == Space::Global && bytes > 0 {
                is_global = true;
                total += u64::from(bytes);
                sectors += (from + u64::from(bytes)).div_ceil(32) - from / 32;
            }
            let barrier = self.address(&copy.barrier, lane);
            if let Err(trouble) = shared.begin_bulk(at, loaded, barrier, self.access_by(lane)) {
                return Err(self.trouble(context, trouble, barrier, 8, lane));
            }
        }
        counters.global_load_requests += u64::from(is_global);
        counters.global_load_bytes += total;
        counters.global_load_sectors += sectors;
        Ok(())
    }

    fn rare(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        counters: &mut Counters,
        op: &Op,
        exec: u32,
    ) -> Result<Next, WarpFault> {
        match op {
            Op::Atomic(atomic) => {
                self.atomic(context, shared, counters, atomic, exec)?;
                Ok(Next::Advance)
            }
            Op::AsyncCopy(copy) => {
                self.begin_copies(context, shared, counters, copy, exec)?;
                Ok(Next::Advance)
            }
            Op::CommitCopies => {
                lanes(exec).for_each(|lane| self.groups[lane] = self.groups[lane].wrapping_add(1));
                Ok(Next::Advance)
            }
            Op::WaitForCopies { but } => {
                self.end_copies(shared, *but, exec)?;
                Ok(Next::Advance)
            }
            Op::MemoryBarrier(barrier) => self.memory_barrier(context, shared, barrier, exec),
            Op::BulkCopy(copy) => {
                self.begin_bulk(context, shared, counters, copy, exec)?;
                Ok(Next::Advance)
            }
            Op::Shuffle { mode, d, p, a, b, c, mask } => {
                let ready = self.gather(exec, *mask)?;
                let (mut value, mut valid) = ([0u32; 32], 0u32);
                let (sources, steps) = (&self.w32[usize::from(*a)], &self.w32[usize::from(*b)]);
                let (bounds, masks) = (&self.w32[usize::from(*c)], &self.w32[usize::from(*mask)]);
                for lane in lanes(ready) {
                    let own = lane as u32;
                    let (step, clamp, segment) =
                        (steps[lane] & 31, bounds[lane] & 31, bounds[lane] >> 8 & 31);
                    let (low, high) = (own & segment, own & segment | clamp & !segment);
                    let (from, inside) = match mode {
                        ShuffleMode::Up => (own.wrapping_sub(step), own as i32 - step as i32 >= high as i32),
                        ShuffleMode::Down => (own + step, own + step <= high),
                        ShuffleMode::Butterfly => (own ^ step, own ^ step <= high),
                        ShuffleMode::Index => {
                            let from = low | step & !segment;
                            (from, from <= high)
                        }
                    };
                    let from = if inside { from } else { own };
                    if masks[lane] & ready & 1 << from == 0 {
                        return Err(self.fault(lane, FaultKind::AbsentLane { lane: from }));
                    }
                    value[lane] = sources[from as usize];
                    valid |= u32::from(inside) << lane;
                }
                blend(&mut self.w32[usize::from(*d)], &value, ready);
                if *p != NONE {
                    let p = &mut self.pred[usize::from(*p)];
                    *p = *p & !ready | valid & ready;
                }
                Ok(self.after_sync(exec, ready))
            }
            Op::Vote { mode, d, a, mask } => {
                let ready = self.gather(exec, *mask)?;
                let votes = self.pred_source(*a);
                for lane in lanes(ready) {
                    let named = self.w32[usize::from(*mask)][lane] & ready;
                    let yes = votes & named;
                    let holds = match mode {
                        VoteMode::Ballot => {
                            self.w32[usize::from(*d)][lane] = yes;
                            continue;
                        }
                        VoteMode::All => yes == named,
                        VoteMode::Any => yes != 0,
                        VoteMode::Uniform => yes == named || yes == 0,
                    };
                    let d = &mut self.pred[usize::from(*d)];
                    *d = *d & !(1 << lane) | u32::from(holds) << lane;
                }
                Ok(self.after_sync(exec, ready))
            }
            Op::Match { all, wide, d, p, a, mask } => {
                let ready = self.gather(exec, *mask)?;
                let value = |warp: &Warp, lane: usize| match wide {
                    true => warp.w64[usize::from(*a)][lane],
                    false => warp.w32[usize::from(*a)][lane].into(),
                };
                let mut result = [0; 32];
                let mut same = 0;
                for lane in lanes(ready) {
                    let named = self.w32[usize::from(*mask)][lane] & ready;
                    let own = value(self, lane);
                    let equal = lanes(named)
                        .filter(|other| value(self, *other) == own)
                        .fold(0, |m, other| m | 1 << other);
                    result[lane] = if !*all || equal == named { equal } else { 0 };
                    same |= u32::from(equal == named) << lane;
                }
                blend(&mut self.w32[usize::from(*d)], &result, ready);
                if *p != NONE {
                    let p = &mut self.pred[usize::from(*p)];
                    *p = *p & !ready | same & ready;
                }
                Ok(self.after_sync(exec, ready))
            }
            Op::Redux { f, d, a, mask } => {
                let ready = self.gather(exec, *mask)?;
                let sources = self.w32[usize::from(*a)];
                let mut result = [0; 32];
                for lane in lanes(ready) {
                    let named = self.w32[usize::from(*mask)][lane] & ready;
                    let mut terms = lanes(named).map(|other| u64::from(sources[other]));
                    let first = terms.next().unwrap_or(0);
                    result[lane] = terms.fold(first, f) as u32;
                }
                blend(&mut self.w32[usize::from(*d)], &result, ready);
                Ok(self.after_sync(exec, ready))
            }
            Op::WarpBarrier { mask } => {
                let ready = self.gather(exec, *mask)?;
                let mut left = ready;
                while left != 0 {
                    let named = self.w32[usize::from(*mask)][left.trailing_zeros() as usize];
                    shared.races.lanes_meet(self.index, named);
                    left &= !named;
                }
                Ok(self.after_sync(exec, ready))
            }
            Op::Mma(mma) => {
                // Of an aligned instruction every lane of the warp takes part.
                if exec != ALL && exec != 0 {
                    if self.mask != exec || self.exited != 0 {
                        let kind = FaultKind::SyncDeadlock { waiting: exec, missing: !exec };
                        return Err(self.fault(exec.trailing_zeros() as usize, kind));
                    }
                    self.park(exec);
                    return Ok(Next::Elsewhere);
                }
                if exec == ALL {
                    mma.run(&mut self.w32, &mut self.w64);
                }
                Ok(Next::Advance)
            }
            Op::ActiveMask { d } => {
                blend(&mut self.w32[usize::from(*d)], &[exec; 32], exec);
                Ok(Next::Advance)
            }
            Op::Barrier(barrier) => self.barrier(context.kernel, barrier, exec),
            Op::BranchIndex { index, targets } => {
                let here = self.pc;
                let staying = self.mask & !exec;
                for lane in lanes(exec) {
                    let index = self.w32[usize::from(*index)][lane];
                    let Some(target) = targets.get(index as usize) else {
                        let what = "an index into a branch table";
                        return Err(self.fault(lane, FaultKind::BadOperand { what, value: index.into() }));
                    };
                    self.pc = *target;
                    self.mask = 1 << lane;
                    self.put_back(false);
                    self.pc = here;
                }
                self.mask = staying;
                self.pc = here + 1;
                Ok(Next::Elsewhere)
            }
            Op::Call { target, locals } => {
                if self.stacks.is_empty() {
                    self.stacks = vec![Vec::new(); 32];
                }
                let here = self.pc;
                for lane in lanes(exec) {
                    self.stacks[lane].push(here + 1);
                    let at = lane as u64 * self.local_bytes + locals.start;
                    self.local.mark_allocated(at, locals.end - locals.start);
                }
                let staying = self.mask & !exec;
                self.mask = exec;
                self.pc = *target;
                self.put_back(false);
                self.mask = staying;
                self.pc = here + 1;
                Ok(Next::Elsewhere)
            }
            Op::Return => {
                let here = self.pc;
                let staying = self.mask & !exec;
                for lane in lanes(exec) {
                    match self.stacks.get_mut(lane).and_then(Vec::pop) {
                        Some(back) => {
                            self.pc = back;
                            self.mask = 1 << lane;
                            self.put_back(false);
                        }
                        None => self.exited |= 1 << lane,
                    }
                }
                self.mask = staying;
                self.pc = here + 1;
                Ok(Next::Elsewhere)
            }
            Op::Carry(carry) => {
                lanes(exec).for_each(|lane| self.carry(carry, lane));
                Ok(Next::Advance)
            }
            Op::CopyLocal { from, to, bytes } => {
                for lane in lanes(exec) {
                    for byte in 0..*bytes {
                        let value = self.local.load(self.local_at(from + byte, 1, lane), 1);
                        // Padding of a structure may never have been written.
                        if let Ok(value) = value {
                            let stored = self.local.store(self.local_at(to + byte, 1, lane), 1, value);
                            stored.map_err(|bad| {
                                self.bad_access(context, bad, Space::Local, to + byte, 1, lane)
                            })?;
                        }
                    }
                }
                Ok(Next::Advance)
            }
            Op::Clock { .. } => Ok(Next::Clock),
            Op::Trap => match exec {
                0 => Ok(Next::Advance),
                _ => Err(self.fault(exec.trailing_zeros() as usize, FaultKind::Trap)),
            },
            _ => Ok(Next::Advance),
        }
    }

    fn read_clock(&mut self, op: &Op, now: u64, exec: u32) {
        let Op::Clock { d, wide, part } = op else { return };
        let value = if *part == Clock::High { now >> 32 } else { now };
        match wide {
            true => blend(&mut self.w64[usize::from(*d)], &[value; 32], exec),
            false => blend(&mut self.w32[usize::from(*d)], &[value as u32; 32], exec),
        }
    }

    /// One lane of an instruction of extended precision.
    fn carry(&mut self, carry: &Carry, lane: usize) {
        let Carry { kind, wide, signed, takes, gives, d, a, b, c, flag } = *carry;
        let bits = if wide { 64 } else { 32 };
        let value = |register: R| match wide {
            true => i128::from(self.w64[usize::from(register)][lane]),
            false => i128::from(self.w32[usize::from(register)][lane]),
        };
        let extended = |value: i128| if signed { value << (128 - bits) >> (128 - bits) } else { value };
        // The product of two unsigned 64-bit numbers needs all 128 bits; wrapping keeps them.
        let product = extended(value(a)).wrapping_mul(extended(value(b))) as u128;
        let mask = u128::MAX >> (128 - bits);
        let carried = i128::from(takes && self.pred[usize::from(flag)] >> lane & 1 == 1);
        let full = match kind {
            CarryKind::Sum => value(a) + value(b) + carried,
            CarryKind::Difference => value(a) - value(b) - carried,
            CarryKind::LowProduct => (product & mask) as i128 + value(c) + carried,
            CarryKind::HighProduct => (product >> bits & mask) as i128 + value(c) + carried,
        };
        let result = full as u128 & mask;
        match wide {
            true => self.w64[usize::from(d)][lane] = result as u64,
            false => self.w32[usize::from(d)][lane] = result as u32,
        }
        if gives {
            // A sum beyond the width carries, a difference below zero borrows.
            let flag = &mut self.pred[usize::from(flag)];
            *flag = *flag & !(1 << lane) | u32::from(full >> bits != 0) << lane;
        }
    }

    /// Lanes come to a barrier of the block, where each waits for all others of its warp: at the same instruction if that is
    /// aligned, else at any for the same barrier.
    fn barrier(&mut self, kernel: &Kernel, barrier: &BlockBarrier, exec: u32) -> Result<Next, WarpFault> {
        if exec == 0 {
            return Ok(Next::Advance);
        }
        let lane = exec.trailing_zeros() as usize;
        let missing = !self.exited & !exec;
        let divergent = FaultKind::DivergentBarrier { arrived: exec, missing };
        if barrier.aligned && self.mask != exec {
            return Err(self.fault(lane, divergent));
        }
        // The rest of the warp may still come.
        if self.mask != exec || self.others.iter().any(|group| !group.parked) {
            self.park(exec);
            return Ok(if self.mask == 0 { Next::Elsewhere } else { Next::Advance });
        }
        self.arrivals.clear();
        self.arrivals.push(self.arrival(barrier, self.pc, exec)?);
        let here = self.arrivals[0];
        for group in &self.others {
            let there = match &kernel.ops[group.pc as usize] {
                Op::Barrier(other) if !barrier.aligned && !other.aligned => {
                    self.arrival(other, group.pc, group.mask)?
                }
                _ => return Err(self.fault(lane, divergent)),
            };
            if (there.kind, there.id, there.threads) != (here.kind, here.id, here.threads) {
                return Err(self.fault(lane, divergent));
            }
            self.arrivals.push(there);
        }
        for group in &mut self.others {
            group.pc += 1;
            group.parked = false;
        }
        Ok(Next::Barrier)
    }

    /// What lanes bring to a barrier.
    fn arrival(&self, barrier: &BlockBarrier, pc: u32, lanes: u32) -> Result<Arrival, WarpFault> {
        let lane = lanes.trailing_zeros();
        let operand = |register: R| self.w32[usize::from(register)][lane as usize];
        let bad = |what, value: u32| {
            let kind = FaultKind::BadOperand { what, value: value.into() };
            Err(WarpFault { kind, pc, lane, other_pc: None })
        };
        let id = operand(barrier.id);
        if id > 15 {
            return bad("the barrier", id);
        }
        let threads = (barrier.threads != NONE).then(|| operand(barrier.threads));
        if let Some(threads) = threads
            && (threads == 0 || threads % 32 != 0)
        {
            return bad("a barrier for threads:", threads);
        }
        let votes = self.pred_source(barrier.a) & lanes;
        Ok(Arrival { kind: barrier.kind, id, threads, votes, lanes, d: barrier.d })
    }

    /// Gives the result of a barrier that reduces.
    pub(crate) fn barrier_result(&mut self, arrival: &Arrival, count: u32, all: bool, any: bool) {
        let d = usize::from(arrival.d);
        match arrival.kind {
            BarrierKind::Count => blend(&mut self.w32[d], &[count; 32], arrival.lanes),
            BarrierKind::And | BarrierKind::Or => {
                let value = if arrival.kind == BarrierKind::And { all } else { any };
                let lanes = arrival.lanes;
                self.pred[d] = self.pred[d] & !lanes | if value { lanes } else { 0 };
            }
            BarrierKind::Sync | BarrierKind::Arrive => {}
        }
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    pub(crate) fn at(&self) -> u32 {
        self.pc
    }
}

/// Where a warp goes after an instruction.
enum Next {
    Advance,
    /// The position was set, or the group that ran is gone.
    Elsewhere,
    /// The warp has come to a barrier of the block.
    Barrier,
    /// What lanes wait for has not come: others go on before they look again.
    Wait,
    /// A clock is read: the run knows what it shows.
    Clock,
}

/// Distinct 32-byte sectors of accesses. An access is aligned to its size, at most 32 bytes, so it lies in one.
#[inline(always)]
fn distinct_sectors<'a>(offsets: impl Iterator<Item = &'a u64>) -> u64 {
    // Neighbouring lanes mostly share sectors or ascend; what is left is compared with all before it. The low
    // bits tell sectors apart: memory is smaller than what they reach.
    let mut distinct = [0u32; 32];
    let mut count = 0;
    let mut ascending = true;
    let mut last = 0;
    for at in offsets {
        let sector = (at >> 5) as u32;
        if count > 0 && last == sector {
            continue;
        }
        ascending &= count == 0 || last < sector;
        distinct[count & 31] = sector;
        last = sector;
        count += 1;
    }
    if ascending {
        return count as u64;
    }
    let distinct = &distinct[..count.min(32)];
    let repeated = (1..distinct.len())
        .filter(|index| distinct[..*index].iter().any(|other| *other == distinct[*index]))
        .count();
    (count - repeated) as u64
}

/// What a warp instruction touches, for the counters.
struct Touched {
    global: [u64; 32],
    num_global: usize,
    shared: [u64; 32],
    num_shared: usize,
}

impl Default for Touched {
    #[inline(always)]
    fn default() -> Self {
        Touched { global: [0; 32], num_global: 0, shared: [0; 32], num_shared: 0 }
    }
}

impl Touched {
    #[inline(always)]
    fn add(&mut self, space: Space, at: u64) {
        match space {
            Space::Global | Space::Generic => {
                self.global[self.num_global] = at;
                self.num_global += 1;
            }
            Space::Shared => {
                self.shared[self.num_shared] = at;
                self.num_shared += 1;
            }
            _ => {}
        }
    }

    fn count_load(&self, counters: &mut Counters, bytes: u32) {
        if self.num_global > 0 {
            counters.global_load_requests += 1;
            counters.global_load_bytes += self.num_global as u64 * u64::from(bytes);
            counters.global_load_sectors += distinct_sectors(self.global[..self.num_global].iter());
        }
        self.count_shared(counters, bytes);
    }

    fn count_store(&self, counters: &mut Counters, bytes: u32) {
        if self.num_global > 0 {
            counters.global_store_requests += 1;
            counters.global_store_bytes += self.num_global as u64 * u64::from(bytes);
            counters.global_store_sectors += distinct_sectors(self.global[..self.num_global].iter());
        }
        self.count_shared(counters, bytes);
    }

    fn count_shared(&self, counters: &mut Counters, bytes: u32) {
        if self.num_shared > 0 {
            counters.shared_requests += 1;
            counters.shared_bank_conflicts += bank_conflicts(&self.shared[..self.num_shared], bytes);
        }
    }
}

/// Counts an access of shared memory by some lanes at their offsets.
#[inline(always)]
fn count_shared(counters: &mut Counters, at: &L64, exec: u32, bytes: u32) {
    if exec == 0 {
        return;
    }
    counters.shared_requests += 1;
    if exec == ALL {
        counters.shared_bank_conflicts += bank_conflicts(at, bytes);
        return;
    }
    let (mut offsets, mut count) = ([0; 32], 0);
    for lane in lanes(exec) {
        offsets[count] = at[lane];
        count += 1;
    }
    counters.shared_bank_conflicts += bank_conflicts(&offsets[..count], bytes);
}

/// Passes beyond those that the bytes need: lanes that meet in a bank with different words wait for each other.
/// Accesses of 8 bytes go in halves of a warp, of 16 bytes in quarters.
#[inline(always)]
fn bank_conflicts(offsets: &[u64], bytes: u32) -> u64 {
    // Accesses are aligned to their size, so two of them share all of their banks or none.
    let size = bytes.max(4);
    let (shift, places) = (size.trailing_zeros(), 128 / size);
    let all_at_one = offsets.iter().fold(true, |one, at| one & (*at >> shift == offsets[0] >> shift));
    if all_at_one {
        return 0;
    }
    let mut conflicts = 0;
    for part in offsets.chunks(places as usize) {
        let taken = part.iter().fold(0u32, |taken, at| taken | 1 << ((at >> shift) as u32 & (places - 1)));
        if taken.count_ones() as usize != part.len() {
            conflicts += conflicts_of(part, shift, places);
        }
    }
    conflicts
}

/// The same for lanes that go together, some of which meet: the most different words in one place, less one.
fn conflicts_of(part: &[u64], shift: u32, places: u32) -> u64 {
    const END: u8 = u8::MAX;
    // The lanes with different words in each place, as lists.
    let (mut first, mut next, mut lengths) = ([END; 32], [END; 32], [0u8; 32]);
    for (lane, at) in part.iter().enumerate() {
        let word = at >> shift;
        let place = (word as u32 & (places - 1)) as usize;
        let mut other = first[place];
        while other != END && part[usize::from(other)] >> shift != word {
            other = next[usize::from(other)];
        }
        if other == END {
            next[lane] = first[place];
            first[place] = lane as u8;
            lengths[place] += 1;
        }
    }
    u64::from(lengths.into_iter().max().unwrap_or(1).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As they are defined: for each part of the warp the most different words of a bank, less one.
    fn conflicts_by_definition(offsets: &[u64], bytes: u32) -> u64 {
        let passes = |part: &[u64]| {
            let words: std::collections::HashSet<u64> = part
                .iter()
                .flat_map(|at| (0..u64::from(bytes.div_ceil(4))).map(move |word| at / 4 + word))
                .collect();
            (0..32).map(|bank| words.iter().filter(|word| *word % 32 == bank).count()).max().unwrap_or(0)
        };
        let parts = offsets.chunks((128 / bytes.max(4)) as usize);
        // A word that everybody reads is sent once.
        if offsets.iter().all(|at| at / u64::from(bytes.max(4)) == offsets[0] / u64::from(bytes.max(4))) {
            return 0;
        }
        parts.map(|part| passes(part).saturating_sub(1) as u64).sum()
    }

    #[test]
    fn bank_conflicts_are_those_of_the_definition() {
        let mut random = Random(3);
        for bytes in [1, 2, 4, 8, 16] {
            for (step, range) in [(0, 1), (1, 1), (2, 1), (3, 1), (32, 1), (33, 1), (1, 40), (1, 2000)] {
                for count in [1, 5, 16, 31, 32] {
                    let at = |lane: u64| (lane * step + random.below(range) as u64) * u64::from(bytes);
                    let offsets: Vec<u64> = (0..count).map(at).collect();
                    let expected = conflicts_by_definition(&offsets, bytes);
                    assert_eq!(bank_conflicts(&offsets, bytes), expected, "{bytes} bytes at {offsets:?}");
                }
            }
        }
    }
}
