//! Blocks: shared memory, barriers, and the order in which warps and blocks run.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::decode::Kernel;
use crate::memory::{Bad, Global, Memory};
use crate::op::{BarrierKind, R};
use crate::races::{Access, AccessKind, Arrived, Race, RaceDetector};
use crate::report::{Counters, FaultKind};
use crate::warp::{Random, Stop, Warp, WarpFault};

/// What all blocks of a launch share.
pub(crate) struct Context<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) global: &'a Global,
    pub(crate) variables: &'a Memory,
    pub(crate) params: &'a [u8],
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) threads_per_block: u32,
    pub(crate) shared_bytes: u64,
    pub(crate) dynamic_shared_at: u64,
    pub(crate) dynamic_shared_bytes: u64,
    /// What clocks show when the launch begins.
    pub(crate) clock: u64,
}

/// The arrival of a warp, or of a part of it, at a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) kind: BarrierKind,
    pub(crate) id: u32,
    /// Threads that the barrier waits for; none for all of the block.
    pub(crate) threads: Option<u32>,
    /// Lanes whose predicate holds, of those that arrived.
    pub(crate) votes: u32,
    pub(crate) lanes: u32,
    pub(crate) d: R,
}

/// What is wrong with an operation on a barrier in shared memory or with a bulk copy.
pub(crate) enum Trouble {
    Bad(Bad),
    Race { at: u64, race: Race },
    Operand { what: &'static str, value: u64 },
}

impl From<Bad> for Trouble {
    fn from(bad: Bad) -> Trouble {
        Trouble::Bad(bad)
    }
}

/// A bulk copy that has not arrived.
struct BulkInFlight {
    at: u64,
    bytes: Vec<u8>,
    by: Access,
}

/// A barrier in shared memory.
struct MemoryBarrier {
    /// The same for the same address.
    number: u32,
    /// Arrivals of a phase, and those that are missing in this one.
    expected: u32,
    pending: u32,
    /// Bytes that copies are to bring in this phase.
    bytes: i64,
    /// Its parity.
    phase: u32,
    /// Those who have arrived in this phase, and in the one that was completed last.
    arrived: Arrived,
    completed: Arrived,
    copies: Vec<BulkInFlight>,
}

impl MemoryBarrier {
    /// Begins the next phase, where this one is complete.
    fn advance(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.phase ^= 1;
            self.pending = self.expected;
            std::mem::swap(&mut self.arrived, &mut self.completed);
            self.arrived.clear();
        }
    }
}

/// Most arrivals of a phase, and most bytes.
const MOST_ARRIVALS: u32 = (1 << 20) - 1;
const MOST_BYTES: i64 = (1 << 20) - 1;
/// What the bytes of a barrier in shared memory hold: whoever stores anything else there ends it.
const BARRIER_VALUE: u64 = 0x6d62_6172_7269_6572;

/// A block's shared memory and who touched it.
pub(crate) struct Shared {
    memory: Memory,
    pub(crate) races: RaceDetector,
    race: Option<Race>,
    /// By their addresses.
    barriers: BTreeMap<u64, MemoryBarrier>,
    /// Whether any memory changed since this was last cleared.
    pub(crate) progress: bool,
}

impl Shared {
    fn new() -> Shared {
        Shared {
            memory: Memory::new(0),
            races: RaceDetector::new(),
            race: None,
            barriers: BTreeMap::new(),
            progress: false,
        }
    }

    fn fit(&mut self, context: &Context<'_>) {
        self.memory.resize(context.shared_bytes);
        self.races.fit(context.shared_bytes, context.kernel.shared_cell);
        self.progress = false;
    }

    fn start(&mut self) {
        self.races.block_meets();
        self.race = None;
        self.barriers.clear();
        self.memory.mark_allocated(0, self.memory.len());
    }

    pub(crate) fn take_race(&mut self) -> Option<Race> {
        self.race.take()
    }

    /// The bytes, for accesses that the caller reports to [`Shared::touch`].
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// An access by a thread; the race that it makes, where it makes one.
    #[inline(always)]
    pub(crate) fn touch(&mut self, at: u64, bytes: u32, kind: AccessKind, access: Access) -> Option<Race> {
        self.races.access(at, bytes, kind, &access)
    }

    /// Begins a copy to some bytes by a thread. Until it arrives they hold nothing: whoever reads them faults.
    pub(crate) fn begin_copy(&mut self, at: u64, bytes: u32, access: Access) -> Result<Option<Race>, Bad> {
        if at & u64::from(bytes - 1) != 0 {
            return Err(Bad::Misaligned);
        }
        if at.checked_add(bytes.into()).is_none_or(|end| end > self.memory.len()) {
            return Err(Bad::OutOfBounds);
        }
        self.memory.mark_allocated(at, bytes.into());
        self.progress = true;
        Ok(self.touch(at, bytes, AccessKind::Write, access))
    }

    /// Ends a copy: the bytes arrive. What was written to them meanwhile is a race.
    pub(crate) fn end_copy(&mut self, at: u64, bytes: &[u8], access: Access) -> Option<Race> {
        let written = (at..).take(bytes.len()).find(|at| self.memory.load(*at, 1).is_ok());
        if let Some(at) = written {
            return self.races.last_write(at, &access);
        }
        self.memory.write_bytes(at, bytes);
        self.progress = true;
        self.touch(at, bytes.len() as u32, AccessKind::Write, access)
    }

    /// As [`Shared::touch`], with the race as trouble.
    fn touch_alone(&mut self, at: u64, bytes: u32, kind: AccessKind, by: Access) -> Result<(), Trouble> {
        self.touch(at, bytes, kind, by).map_or(Ok(()), |race| Err(Trouble::Race { at, race }))
    }

    /// Makes a barrier of eight bytes, for so many arrivals a phase.
    pub(crate) fn init_barrier(&mut self, at: u64, count: u32, by: Access) -> Result<(), Trouble> {
        let was_one = self.memory.load(at, 8) == Ok(BARRIER_VALUE) && self.barriers.contains_key(&at);
        self.memory.store(at, 8, BARRIER_VALUE)?;
        self.touch_alone(at, 8, AccessKind::Write, by)?;
        if count == 0 || count > MOST_ARRIVALS {
            return Err(Trouble::Operand { what: "a barrier for arrivals:", value: count.into() });
        }
        let old = self.barriers.get(&at);
        if was_one || old.is_some_and(|old| !old.copies.is_empty()) {
            return Err(Trouble::Operand { what: "to make a barrier of one that is in use, at", value: at });
        }
        let number = old.map_or(self.barriers.len() as u32, |old| old.number);
        let barrier = MemoryBarrier {
            number,
            expected: count,
            pending: count,
            bytes: 0,
            phase: 0,
            arrived: Arrived::default(),
            completed: Arrived::default(),
            copies: Vec::new(),
        };
        self.barriers.insert(at, barrier);
        self.progress = true;
        Ok(())
    }

    /// Looks for a barrier on behalf of a thread.
    fn touch_barrier(&mut self, at: u64, by: Access) -> Result<(), Trouble> {
        let holds = self.memory.load(at, 8)?;
        self.touch_alone(at, 8, AccessKind::Atomic, by)?;
        if holds != BARRIER_VALUE || !self.barriers.contains_key(&at) {
            return Err(Trouble::Operand { what: "shared memory that holds no barrier, at", value: at });
        }
        Ok(())
    }

    /// A thread arrives at a barrier, together with its whole warp or not, and tells of so many more bytes.
    pub(crate) fn arrive(&mut self, at: u64, bytes: u32, whole: bool, by: Access) -> Result<(), Trouble> {
        self.touch_barrier(at, by)?;
        let Some(barrier) = self.barriers.get_mut(&at) else { return Ok(()) };
        barrier.bytes += i64::from(bytes);
        if barrier.bytes > MOST_BYTES {
            let value = barrier.bytes as u64;
            return Err(Trouble::Operand { what: "a barrier for bytes:", value });
        }
        if barrier.pending == 0 {
            return Err(Trouble::Operand { what: "an arrival at a barrier that misses none, at", value: at });
        }
        match whole {
            true => self.races.warp_arrives(by.warp, &mut barrier.arrived),
            false => self.races.lane_arrives(&by, &mut barrier.arrived),
        }
        barrier.pending -= 1;
        barrier.advance();
        self.progress = true;
        Ok(())
    }

    /// Whether the phase of a parity is complete. Copies arrive where that is all that is missing: one, chosen at random,
    /// in an adversarial schedule, else as many as are needed.
    pub(crate) fn wait(
        &mut self,
        at: u64,
        parity: u32,
        by: Access,
        mut random: Option<&mut Random>,
    ) -> Result<bool, Trouble> {
        self.touch_barrier(at, by)?;
        if parity > 1 {
            return Err(Trouble::Operand { what: "a parity of", value: parity.into() });
        }
        let Some(barrier) = self.barriers.get_mut(&at) else { return Ok(false) };
        while barrier.phase == parity
            && barrier.pending == 0
            && barrier.bytes > 0
            && !barrier.copies.is_empty()
        {
            let index = random.as_mut().map_or(0, |random| random.below(barrier.copies.len()));
            let copy = barrier.copies.remove(index);
            let bytes = copy.bytes.len() as u64;
            // What was written meanwhile is a race.
            if let Some(at) = self.memory.first_initialised(copy.at, bytes)
                && let Some(race) = self.races.last_write(at, &by)
            {
                return Err(Trouble::Race { at, race });
            }
            self.memory.write_bytes(copy.at, &copy.bytes);
            self.races.copy_arrives(copy.at, bytes, &copy.by, barrier.number, &mut barrier.arrived);
            barrier.bytes -= bytes as i64;
            barrier.advance();
            self.progress = true;
            if random.is_some() {
                break;
            }
        }
        let is_complete = barrier.phase != parity;
        if is_complete {
            // The whole warp follows, where only some of its lanes wait too.
            self.races.follow(by.warp, &barrier.completed);
        }
        Ok(is_complete)
    }

    /// Whether bytes lie in here, at a multiple of 16.
    pub(crate) fn takes_bulk(&self, at: u64, bytes: u32) -> Result<(), Bad> {
        if !at.is_multiple_of(16) {
            return Err(Bad::Misaligned);
        }
        match at.checked_add(bytes.into()) {
            Some(end) if end <= self.memory.len() => Ok(()),
            _ => Err(Bad::OutOfBounds),
        }
    }

    /// Begins a bulk copy by a thread to where [`Shared::takes_bulk`] says. Until it arrives, the bytes hold nothing.
    pub(crate) fn begin_bulk(
        &mut self,
        at: u64,
        bytes: Vec<u8>,
        barrier: u64,
        by: Access,
    ) -> Result<(), Trouble> {
        self.touch_barrier(barrier, by)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.memory.mark_allocated(at, bytes.len() as u64);
        self.touch_alone(at, bytes.len() as u32, AccessKind::Write, by)?;
        if let Some(barrier) = self.barriers.get_mut(&barrier) {
            barrier.copies.push(BulkInFlight { at, bytes, by });
        }
        self.progress = true;
        Ok(())
    }

    /// How many bulk copies have not arrived, and who began the first of them.
    fn bulk_in_flight(&self) -> Option<(u64, Access)> {
        let mut copies = self.barriers.values().flat_map(|barrier| &barrier.copies);
        let first = copies.next()?.by;
        Some((1 + copies.count() as u64, first))
    }

    fn remember(&mut self, race: Option<Race>) {
        self.race = self.race.or(race);
    }

    pub(crate) fn load(&mut self, at: u64, bytes: u32, access: Access) -> Result<u64, Bad> {
        let value = self.memory.load(at, bytes)?;
        let race = self.touch(at, bytes, AccessKind::Read, access);
        self.remember(race);
        Ok(value)
    }

    pub(crate) fn store(&mut self, at: u64, bytes: u32, value: u64, access: Access) -> Result<bool, Bad> {
        let changed = self.memory.store(at, bytes, value)?;
        let race =
            self.touch(at, bytes, if changed { AccessKind::Write } else { AccessKind::SameWrite }, access);
        self.remember(race);
        Ok(changed)
    }

    #[inline(always)]
    pub(crate) fn update(
        &mut self,
        at: u64,
        bytes: u32,
        new: impl Fn(u64) -> u64,
        access: Access,
    ) -> Result<(u64, bool), Bad> {
        let updated = self.memory.update_alone(at, bytes, new)?;
        let race = self.touch(at, bytes, AccessKind::Atomic, access);
        self.remember(race);
        Ok(updated)
    }
}

#[derive(Default)]
struct Barrier {
    threads: Option<u32>,
    arrived: u32,
    count: u32,
    any: bool,
    not_all: bool,
    seen: Arrived,
    waiting: Vec<(usize, Arrival)>,
}

/// A block while it runs.
struct Block {
    index: u64,
    shared: Shared,
    warps: Vec<Warp>,
    waiting: Vec<bool>,
    done: Vec<bool>,
    barriers: Vec<Barrier>,
    next: usize,
    random: Option<Random>,
}

/// Blocks of launches before, whose memory the next ones use: to ask the system for it takes longer than small launches do.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Vec<Block>>);

/// As many are kept, at most.
const MOST_SPARE: usize = 16;

impl Spare {
    fn blocks(&self) -> std::sync::MutexGuard<'_, Vec<Block>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn take(&self, context: &Context<'_>) -> Block {
        let spare = self.blocks().pop();
        let mut block = spare.unwrap_or_else(Block::new);
        block.fit(context);
        block
    }

    fn give(&self, block: Block) {
        let mut blocks = self.blocks();
        if blocks.len() < MOST_SPARE {
            blocks.push(block);
        }
    }
}

impl std::fmt::Debug for Spare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Spare({} blocks)", self.blocks().len())
    }
}

/// Warp instructions that a warp runs before another has its turn.
const WARP_SLICE: u64 = 20_000;
/// Warp instructions that a block runs before another has its turn.
const BLOCK_SLICE: u64 = 400_000;
/// The same for each warp, where the last slice changed nothing: what repeats itself is then found sooner.
const IDLE_SLICE: u64 = 4096;
/// How many such short slices there are in a row, because to compare states takes time as well.
const IDLE_SLICES: u64 = 64;
/// Warp instructions without a change that are too many, whatever the registers do.
const MOST_IDLE: u64 = 1 << 30;

enum BlockStop {
    Yield,
    Done,
}

impl Block {
    fn new() -> Block {
        Block {
            index: 0,
            shared: Shared::new(),
            warps: Vec::new(),
            waiting: Vec::new(),
            done: Vec::new(),
            barriers: std::iter::repeat_with(Barrier::default).take(16).collect(),
            next: 0,
            random: None,
        }
    }

    /// Gives the block what those of a launch have.
    fn fit(&mut self, context: &Context<'_>) {
        let warps = context.threads_per_block.div_ceil(32) as usize;
        self.warps.truncate(warps);
        self.warps.extend((self.warps.len()..warps).map(|index| Warp::new(index as u32)));
        self.warps.iter_mut().for_each(|warp| warp.fit(context.kernel));
        self.waiting.resize(warps, false);
        self.done.resize(warps, false);
        self.shared.fit(context);
    }

    fn start(&mut self, context: &Context<'_>, index: u64, random: Option<Random>) {
        self.index = index;
        self.shared.start();
        self.waiting.fill(false);
        self.done.fill(false);
        self.barriers.iter_mut().for_each(|barrier| *barrier = Barrier::default());
        self.next = 0;
        let ctaid = coordinates(index, context.grid);
        self.random = random;
        for warp in &mut self.warps {
            let seed = self.random.as_mut().map(|random| Random(random.next()));
            warp.start(context, ctaid, seed);
        }
    }

    fn slice(&self, watch: &Watch) -> u64 {
        match watch.idle {
            1..=IDLE_SLICES => IDLE_SLICE * self.warps.len() as u64,
            _ => BLOCK_SLICE,
        }
    }

    fn fingerprint(&self) -> u64 {
        self.warps.iter().fold(self.index, |hash, warp| hash.rotate_left(7) ^ warp.fingerprint())
    }

    /// Runs warps in turn until the slice is used up or all are done.
    fn run(
        &mut self,
        context: &Context<'_>,
        counters: &mut Counters,
        slice: u64,
    ) -> Result<BlockStop, (usize, WarpFault)> {
        let before = counters.warp_instructions;
        loop {
            let Some(index) = self.choose() else {
                if self.done.iter().all(|done| *done) {
                    if let Some((value, Access { warp, lane, pc })) = self.shared.bulk_in_flight() {
                        let kind =
                            FaultKind::BadOperand { what: "a block that ends before bulk copies:", value };
                        return Err((warp as usize, WarpFault { kind, pc, lane, other_pc: None }));
                    }
                    counters.blocks += 1;
                    return Ok(BlockStop::Done);
                }
                let stuck = (0..self.warps.len()).find(|index| self.waiting[*index]).unwrap_or(0);
                let pc = self.warps[stuck].at().saturating_sub(1);
                let fault = WarpFault { kind: FaultKind::BarrierDeadlock, pc, lane: 0, other_pc: None };
                return Err((stuck, fault));
            };
            let warp_slice = match &mut self.random {
                None => WARP_SLICE.min((slice / self.warps.len() as u64).max(IDLE_SLICE)),
                Some(random) => 1 + random.below(48) as u64,
            };
            let warp_slice = warp_slice.min(slice - (counters.warp_instructions - before));
            let stop = self.warps[index].run(context, &mut self.shared, counters, warp_slice);
            match stop.map_err(|fault| (index, fault))? {
                Stop::Yield => self.next = index + 1,
                Stop::Done => {
                    self.done[index] = true;
                    self.shared.progress = true;
                    // A barrier for the whole block does not wait for warps that are gone.
                    (0..16).for_each(|id| self.release(id, counters));
                }
                Stop::Barrier => {
                    self.shared.progress = true;
                    self.arrive(index, counters);
                }
            }
            if counters.warp_instructions - before >= slice {
                return Ok(BlockStop::Yield);
            }
        }
    }

    fn choose(&mut self) -> Option<usize> {
        let count = self.warps.len();
        let runs = |index: &usize| !self.waiting[*index] && !self.done[*index];
        match &mut self.random {
            None => {
                let next = if self.next < count { self.next } else { 0 };
                (next..count).chain(0..next).find(runs)
            }
            Some(random) => {
                let ready: Vec<usize> = (0..count).filter(runs).collect();
                (!ready.is_empty()).then(|| ready[random.below(ready.len())])
            }
        }
    }

    fn arrive(&mut self, warp: usize, counters: &mut Counters) {
        let mut arrivals = std::mem::take(&mut self.warps[warp].arrivals);
        let Some(Arrival { id, threads, kind, .. }) = arrivals.first().copied() else { return };
        let barrier = &mut self.barriers[id as usize];
        barrier.threads = barrier.threads.or(threads);
        // A warp counts as a whole, whatever lanes of it exist.
        barrier.arrived += 32;
        if kind == BarrierKind::Arrive {
            self.shared.races.warp_arrives(warp as u32, &mut barrier.seen);
        }
        for arrival in arrivals.drain(..) {
            barrier.count += arrival.votes.count_ones();
            barrier.any |= arrival.votes != 0;
            barrier.not_all |= arrival.votes != arrival.lanes;
            if arrival.kind != BarrierKind::Arrive {
                barrier.waiting.push((warp, arrival));
                self.waiting[warp] = true;
            }
        }
        self.warps[warp].arrivals = arrivals;
        self.release(id as usize, counters);
    }

    /// Lets the warps at a barrier go on, if everybody is there.
    fn release(&mut self, id: usize, counters: &mut Counters) {
        let barrier = &mut self.barriers[id];
        if barrier.arrived == 0 {
            return;
        }
        let alive = || self.done.iter().filter(|done| !**done).count() as u32 * 32;
        if barrier.arrived < barrier.threads.unwrap_or_else(alive) {
            return;
        }
        let mut passed = std::mem::take(barrier);
        let warps = passed.waiting.iter().map(|(warp, _)| *warp);
        match passed.threads {
            Some(_) => self.shared.races.warps_meet(warps, &mut passed.seen),
            None => self.shared.races.block_meets(),
        }
        for (warp, arrival) in passed.waiting.drain(..) {
            self.waiting[warp] = false;
            self.warps[warp].barrier_result(&arrival, passed.count, !passed.not_all, passed.any);
        }
        // Its room is there for the next time.
        barrier.waiting = passed.waiting;
        counters.barriers += 1;
    }
}

fn coordinates(index: u64, grid: [u32; 3]) -> [u32; 3] {
    let [nx, ny, _] = grid.map(u64::from);
    [(index % nx) as u32, (index / nx % ny) as u32, (index / nx / ny) as u32]
}

/// A fault with its block and thread.
#[derive(Debug)]
pub(crate) struct LaunchFault {
    pub(crate) block_index: u64,
    pub(crate) block: [u32; 3],
    pub(crate) thread: [u32; 3],
    pub(crate) fault: WarpFault,
}

/// How blocks are run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) threads: usize,
    pub(crate) resident_blocks: usize,
    pub(crate) instructions: u64,
    pub(crate) seed: Option<u64>,
}

/// Runs every block of a launch.
pub(crate) fn run(
    context: &Context<'_>,
    limits: Limits,
    spare: &Spare,
) -> Result<Counters, Box<LaunchFault>> {
    let total = context.grid.iter().map(|n| u64::from(*n)).product::<u64>();
    if total == 0 {
        return Ok(Counters::default());
    }
    if limits.seed.is_none() && !context.kernel.order_matters {
        return run_parallel(context, limits, total, spare);
    }
    let mut scheduler = Scheduler::new(context, limits, total, spare);
    scheduler.run()?;
    Ok(scheduler.counters)
}

/// Blocks one after another; several at once, in turns, where one takes long or the schedule is adversarial.
struct Scheduler<'a> {
    context: &'a Context<'a>,
    limits: Limits,
    counters: Counters,
    /// Blocks that have not started, the next one last; none where they start in order.
    shuffled: Option<Vec<u64>>,
    started: u64,
    total: u64,
    active: Vec<Block>,
    /// Blocks that are done, which the next ones of the launch become as they are.
    done: Vec<Block>,
    spare: &'a Spare,
    random: Option<Random>,
}

impl Drop for Scheduler<'_> {
    fn drop(&mut self) {
        self.active.drain(..).chain(self.done.drain(..)).for_each(|block| self.spare.give(block));
    }
}

impl<'a> Scheduler<'a> {
    fn new(context: &'a Context<'a>, limits: Limits, total: u64, spare: &'a Spare) -> Self {
        let mut random = limits.seed.map(Random);
        // More blocks than that start in order.
        let shuffled = random.as_mut().filter(|_| total <= 1 << 24).map(|random| {
            let mut order: Vec<u64> = (0..total).collect();
            for index in (1..order.len()).rev() {
                order.swap(index, random.below(index + 1));
            }
            order
        });
        Scheduler {
            context,
            limits,
            counters: Counters::default(),
            shuffled,
            started: 0,
            total,
            active: Vec::new(),
            done: Vec::new(),
            spare,
            random,
        }
    }

    fn start_one(&mut self) -> bool {
        if self.started == self.total || self.active.len() >= self.limits.resident_blocks {
            return false;
        }
        let index = match &mut self.shuffled {
            Some(order) => order.pop().expect("as many as there are blocks"),
            None => self.started,
        };
        self.started += 1;
        let mut block = self.done.pop().unwrap_or_else(|| self.spare.take(self.context));
        let seed = self.random.as_mut().map(|random| Random(random.next()));
        block.start(self.context, index, seed);
        self.active.push(block);
        true
    }

    fn run(&mut self) -> Result<(), LaunchFault> {
        let at_once = if self.random.is_some() { 4 } else { 1 };
        let mut turn = 0;
        let mut watch = Watch { since: self.counters.warp_instructions, ..Watch::default() };
        loop {
            while self.active.len() < at_once && self.start_one() {}
            if self.active.is_empty() {
                return Ok(());
            }
            turn = match &mut self.random {
                Some(random) => random.below(self.active.len()),
                None => turn % self.active.len(),
            };
            let slice = match &mut self.random {
                Some(random) => 1 + random.below(600) as u64,
                None => self.active[turn].slice(&watch),
            };
            let left = self.limits.instructions.saturating_sub(self.counters.warp_instructions);
            let slice = slice.min(left.saturating_add(1));
            let block = &mut self.active[turn];
            let stop = block.run(self.context, &mut self.counters, slice);
            let progress = std::mem::take(&mut block.shared.progress);
            match stop {
                Ok(BlockStop::Done) => {
                    let block = self.active.swap_remove(turn);
                    self.done.push(block);
                    watch.progress(self.counters.warp_instructions);
                    continue;
                }
                Ok(BlockStop::Yield) => {}
                Err((warp, fault)) => return Err(place(self.context, &self.active[turn], warp, fault)),
            }
            let executed = self.counters.warp_instructions;
            if executed > self.limits.instructions {
                let kind = FaultKind::InstructionLimit { limit: self.limits.instructions };
                return Err(self.give_up(turn, kind));
            }
            let ran = turn;
            turn += 1;
            // A block that takes long may wait for one that has not started.
            let idle = executed - watch.since;
            let enough = self.random.is_none() || idle > ADVERSARIAL_IDLE;
            if progress || enough && self.start_one() {
                watch.progress(executed);
                continue;
            }
            let repeats = match self.random {
                _ if self.context.kernel.reads_clock => false,
                Some(_) => idle > ADVERSARIAL_IDLE && watch.knows(&self.active[ran]),
                None if turn < self.active.len() => false,
                None => {
                    let states = self.active.iter().map(Block::fingerprint);
                    watch.repeats(states.fold(0u64, |hash, state| hash.rotate_left(9) ^ state))
                }
            };
            if repeats || idle > MOST_IDLE {
                return Err(self.give_up(ran, FaultKind::Livelock { instructions: idle }));
            }
        }
    }

    fn give_up(&self, turn: usize, kind: FaultKind) -> LaunchFault {
        give_up(self.context, &self.active[turn], kind)
    }
}

/// A fault of a block that takes too long, at the first warp that is left.
fn give_up(context: &Context<'_>, block: &Block, kind: FaultKind) -> LaunchFault {
    let warp = (0..block.warps.len()).find(|index| !block.done[*index]).unwrap_or(0);
    place(context, block, warp, WarpFault { kind, pc: block.warps[warp].at(), lane: 0, other_pc: None })
}

/// Recognises a launch that repeats itself: nothing in memory changes, and all registers are as they were. The
/// state to compare with is renewed after ever longer whiles (Brent's algorithm), so any period is found. In an
/// adversarial schedule no state of all lanes returns soon; there every lane comes back to states of its own.
#[derive(Default)]
struct Watch {
    since: u64,
    /// Slices, or rounds of slices, since then.
    idle: u64,
    saved: Option<u64>,
    steps: u64,
    limit: u64,
    known: HashSet<u64>,
    /// Looks at lanes since one was in a state that was not known.
    stale: u32,
    /// Slices until the next look, and how many were let pass before the last one.
    pause: u32,
    paused: u32,
}

/// Warp instructions without a change before an adversarial schedule looks at lanes.
const ADVERSARIAL_IDLE: u64 = 20_000;
/// Slices without a new state of a lane, one after the other, that are a livelock.
const STALE_SLICES: u32 = 1000;
/// Slices between two looks, at most: a look takes longer than a slice, and whoever computes is always in new states.
const LONGEST_PAUSE: u32 = 255;
/// States of lanes that are remembered.
const KNOWN_STATES: usize = 1 << 16;

impl Watch {
    fn progress(&mut self, executed: u64) {
        *self = Watch { since: executed, ..Watch::default() };
    }

    fn repeats(&mut self, state: u64) -> bool {
        self.idle += 1;
        if self.saved == Some(state) {
            return true;
        }
        if self.steps >= self.limit {
            self.saved = Some(state);
            self.limit = (self.limit * 2).max(1);
            self.steps = 0;
        }
        self.steps += 1;
        false
    }

    fn knows(&mut self, block: &Block) -> bool {
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        if self.known.len() > KNOWN_STATES {
            self.known.clear();
        }
        let before = self.known.len();
        for warp in &block.warps {
            self.known.extend(warp.lane_states().map(|state| state ^ block.index.rotate_left(40)));
        }
        let is_new = self.known.len() > before;
        self.stale = if is_new { 0 } else { self.stale + 1 };
        self.paused = if is_new { (2 * self.paused + 1).min(LONGEST_PAUSE) } else { 0 };
        self.pause = self.paused;
        self.stale > STALE_SLICES
    }
}

fn place(context: &Context<'_>, block: &Block, warp: usize, fault: WarpFault) -> LaunchFault {
    let thread = block.warps[warp].index() * 32 + fault.lane;
    let [nx, ny, _] = context.block;
    LaunchFault {
        block_index: block.index,
        block: coordinates(block.index, context.grid),
        thread: [thread % nx, thread / nx % ny, thread / nx / ny],
        fault,
    }
}

/// Blocks whose order does not matter, over several threads. Of several faults the one in the lowest block is
/// reported: blocks are begun in order, so every lower one is finished too. Blocks that wait for others are set
/// aside and take turns when the others are done.
fn run_parallel(
    context: &Context<'_>,
    limits: Limits,
    total: u64,
    spare: &Spare,
) -> Result<Counters, Box<LaunchFault>> {
    let next = AtomicU64::new(0);
    let stopped = AtomicBool::new(false);
    let executed = AtomicU64::new(0);
    let outcome = Mutex::new((Counters::default(), None::<LaunchFault>, Vec::<Block>::new()));
    let lock = || outcome.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let work = || {
        let mut counters = Counters::default();
        let mut block = spare.take(context);
        let mut first: Option<LaunchFault> = None;
        while !stopped.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= total {
                break;
            }
            block.start(context, index, None);
            match run_alone(context, &mut block, &mut counters, &executed, limits) {
                Ok(BlockStop::Done) => {}
                Ok(BlockStop::Yield) => {
                    let waits = std::mem::replace(&mut block, spare.take(context));
                    let mut outcome = lock();
                    outcome.2.push(waits);
                    if outcome.2.len() >= limits.resident_blocks {
                        stopped.store(true, Ordering::Relaxed);
                    }
                }
                Err(fault) => {
                    stopped.store(true, Ordering::Relaxed);
                    first = Some(fault);
                }
            }
        }
        spare.give(block);
        let mut outcome = lock();
        outcome.0 += counters;
        if let Some(fault) = first
            && outcome.1.as_ref().is_none_or(|other| fault.block_index < other.block_index)
        {
            outcome.1 = Some(fault);
        }
    };
    match limits.threads.min(total as usize) {
        1 => work(),
        threads => std::thread::scope(|scope| {
            // Fewer do where the system has no more to give.
            (1..threads).for_each(|_| drop(std::thread::Builder::new().spawn_scoped(scope, work)));
            work();
        }),
    }
    let (counters, fault, mut waiting) =
        outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(fault) = fault {
        return Err(Box::new(fault));
    }
    waiting.sort_unstable_by_key(|block| block.index);
    let mut scheduler = Scheduler::new(context, limits, total, spare);
    scheduler.counters = counters;
    scheduler.active = waiting;
    scheduler.started = next.into_inner().min(total);
    match scheduler.run() {
        Ok(()) => Ok(scheduler.counters),
        Err(fault) => Err(Box::new(fault)),
    }
}

/// One block from its start to its end, or until it repeats itself and so waits for another.
fn run_alone(
    context: &Context<'_>,
    block: &mut Block,
    counters: &mut Counters,
    executed: &AtomicU64,
    limits: Limits,
) -> Result<BlockStop, LaunchFault> {
    let mut watch = Watch::default();
    let mut total = 0;
    loop {
        let before = counters.warp_instructions;
        let left = limits.instructions.saturating_sub(executed.load(Ordering::Relaxed));
        let stop = block.run(context, counters, block.slice(&watch).min(left.saturating_add(1)));
        let ran = counters.warp_instructions - before;
        total += ran;
        let all = executed.fetch_add(ran, Ordering::Relaxed) + ran;
        match stop {
            Ok(BlockStop::Done) => return Ok(BlockStop::Done),
            Ok(BlockStop::Yield) => {}
            Err((warp, fault)) => return Err(place(context, block, warp, fault)),
        }
        if all > limits.instructions {
            let kind = FaultKind::InstructionLimit { limit: limits.instructions };
            return Err(give_up(context, block, kind));
        }
        if std::mem::take(&mut block.shared.progress) {
            watch.progress(total);
        } else if watch.repeats(block.fingerprint()) || total - watch.since > MOST_IDLE {
            return Ok(BlockStop::Yield);
        }
    }
}
