//! Races on shared memory: whose accesses of the same bytes no synchronisation orders.

/// Most warps of a block, and lanes of a warp.
const WIDTH: usize = 32;

/// What is ordered in a block. Its clock counts synchronisations: an access at some time is ordered before one of
/// another thread where the time is before the last synchronisation that leads from the one to the other.
#[derive(Debug)]
struct Order {
    /// Synchronisations so far; never the same in two blocks.
    now: u32,
    /// When all threads of the block last met.
    met: u32,
    /// For each warp: what each warp did before this time, its own too, is ordered before all that it does.
    warps: Box<[[u32; WIDTH]; WIDTH]>,
    /// The same for the lanes of a warp, from barriers of a part of it; only up to the last warp that had one.
    lanes: Vec<[[u32; WIDTH]; WIDTH]>,
}

impl Order {
    fn new() -> Order {
        Order { now: 0, met: 0, warps: Box::new([[0; WIDTH]; WIDTH]), lanes: Vec::new() }
    }

    /// Whether all who touched a cell did so before an access, or are who does it.
    #[inline(always)]
    fn follows(&self, access: &Access, touch: &Touch) -> bool {
        touch.time < self.met
            || touch.warp == access.warp && touch.set == 1 << access.lane
            || touch.time < self.now && self.follows_others(access, touch)
    }

    #[inline(never)]
    fn follows_others(&self, access: &Access, touch: &Touch) -> bool {
        let own = access.warp as usize % WIDTH;
        let seen = &self.warps[own];
        match touch.warp {
            warp if warp == access.warp => touch.time < seen[own] || self.follows_lanes(access, touch),
            MANY => (0..WIDTH).all(|warp| touch.set >> warp & 1 == 0 || touch.time < seen[warp]),
            warp => touch.time < seen[warp as usize % WIDTH],
        }
    }

    #[cold]
    fn follows_lanes(&self, access: &Access, touch: &Touch) -> bool {
        let Some(lanes) = self.lanes.get(access.warp as usize) else { return false };
        let seen = &lanes[access.lane as usize % WIDTH];
        let others = touch.set & !(1 << access.lane);
        (0..WIDTH).all(|lane| others >> lane & 1 == 0 || touch.time < seen[lane])
    }
}

/// Who touched a cell last, since those who are ordered before all of them, and when the last of them did.
#[derive(Clone, Copy, Debug, Default)]
struct Touch {
    /// A warp, or [`MANY`].
    warp: u32,
    /// Lanes of the warp; of several warps, which.
    set: u32,
    time: u32,
    /// The instruction, to name both sides of a race.
    pc: u32,
}

const MANY: u32 = u32::MAX;

impl Touch {
    /// The same with an access that is not ordered behind it.
    fn and(self, access: &Access, time: u32) -> Touch {
        let pc = access.pc;
        if self.warp == access.warp {
            return Touch { set: self.set | 1 << access.lane, time, pc, ..self };
        }
        let warps = if self.warp == MANY { self.set } else { 1 << self.warp };
        Touch { warp: MANY, set: warps | 1 << access.warp, time, pc }
    }

    /// As the other side of a race with an access.
    #[cold]
    fn race(&self, access: &Access, other_wrote: bool) -> Option<Race> {
        let own = if self.warp == access.warp { 1 << access.lane } else { 0 };
        let others = if self.set == own { own } else { self.set & !own };
        let other_thread = (self.warp != MANY).then(|| self.warp * 32 + 31 - others.leading_zeros().min(31));
        Some(Race { other_thread, other_pc: self.pc, other_wrote })
    }
}

/// The other side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Race {
    pub(crate) other_thread: Option<u32>,
    pub(crate) other_pc: u32,
    pub(crate) other_wrote: bool,
}

/// A few bytes of shared memory that are always accessed together.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    write: Touch,
    read: Touch,
    atomic: Touch,
}

/// Finds unordered accesses of shared memory.
#[derive(Debug)]
pub(crate) struct RaceDetector {
    /// Bytes a cell, as a shift.
    shift: u32,
    cells: Vec<Cell>,
    order: Order,
}

/// One access, as the detector sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    pub(crate) pc: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Read,
    Write,
    /// A write of what is there already: it does not collide with the write that put it there.
    SameWrite,
    Atomic,
}

/// What those who have arrived at a barrier follow, and they themselves: a time for each warp.
pub(crate) type Arrived = [u32; WIDTH];

impl RaceDetector {
    /// For no memory, until [`RaceDetector::fit`].
    pub(crate) fn new() -> RaceDetector {
        RaceDetector { shift: 0, cells: Vec::new(), order: Order::new() }
    }

    /// For so many bytes in cells of `1 << shift` bytes, at most the smallest unit that is accessed. What cells hold is of
    /// blocks before, which [`RaceDetector::block_meets`] ends.
    pub(crate) fn fit(&mut self, bytes: u64, shift: u32) {
        self.shift = shift;
        self.cells.resize((bytes >> shift) as usize + 1, Cell::default());
    }

    fn tick(&mut self) -> u32 {
        let now = self.order.now.checked_add(1).unwrap_or_else(|| {
            self.cells.fill(Cell::default());
            self.order = Order::new();
            1
        });
        self.order.now = now;
        now
    }

    /// All threads of the block meet, or another block begins.
    pub(crate) fn block_meets(&mut self) {
        self.order.met = self.tick();
    }

    /// A warp arrives at a barrier.
    pub(crate) fn warp_arrives(&mut self, warp: u32, arrived: &mut Arrived) {
        let now = self.tick();
        for (time, seen) in arrived.iter_mut().zip(&self.order.warps[warp as usize]) {
            *time = (*time).max(*seen);
        }
        arrived[warp as usize] = now;
    }

    /// A warp that has arrived at a barrier goes on.
    pub(crate) fn warp_leaves(&mut self, warp: u32, arrived: &Arrived) {
        self.order.warps[warp as usize] = *arrived;
    }

    /// Lanes of a warp meet.
    pub(crate) fn lanes_meet(&mut self, warp: u32, mask: u32) {
        let now = self.tick();
        let Order { warps, lanes, .. } = &mut self.order;
        let warp = warp as usize;
        if mask == u32::MAX {
            warps[warp][warp] = now;
            return;
        }
        if lanes.len() <= warp {
            lanes.resize(warp + 1, [[0; WIDTH]; WIDTH]);
        }
        let mut seen = [0; WIDTH];
        let takes_part = |lane: &usize| mask >> lane & 1 == 1;
        for lane in (0..WIDTH).filter(takes_part) {
            for (time, other) in seen.iter_mut().zip(&lanes[warp][lane]) {
                *time = (*time).max(*other);
            }
        }
        (0..WIDTH).filter(takes_part).for_each(|lane| seen[lane] = now);
        (0..WIDTH).filter(takes_part).for_each(|lane| lanes[warp][lane] = seen);
    }

    /// The last write of a byte, as the other side of a race with something that is not in the records.
    pub(crate) fn last_write(&self, at: u64, access: &Access) -> Option<Race> {
        self.cells.get((at >> self.shift) as usize)?.write.race(access, true)
    }

    #[inline(always)]
    pub(crate) fn access(&mut self, at: u64, bytes: u32, kind: AccessKind, access: &Access) -> Option<Race> {
        let first = (at >> self.shift) as usize;
        let last = ((at + u64::from(bytes) - 1) >> self.shift) as usize;
        if first == last {
            return self.cells.get_mut(first)?.access(kind, access, &self.order);
        }
        let mut race = None;
        for cell in self.cells.get_mut(first..=last)? {
            race = race.or(cell.access(kind, access, &self.order));
        }
        race
    }
}

impl Cell {
    #[inline(always)]
    fn access(&mut self, kind: AccessKind, access: &Access, order: &Order) -> Option<Race> {
        let mut race = None;
        if kind != AccessKind::SameWrite && !order.follows(access, &self.write) {
            race = self.write.race(access, true);
        }
        if kind != AccessKind::Atomic && !order.follows(access, &self.atomic) {
            race = race.or(self.atomic.race(access, true));
        }
        if kind != AccessKind::Read && !order.follows(access, &self.read) {
            race = race.or(self.read.race(access, false));
        }
        let record = match kind {
            AccessKind::Write | AccessKind::SameWrite => &mut self.write,
            AccessKind::Read => &mut self.read,
            AccessKind::Atomic => &mut self.atomic,
        };
        // Two readers, or two atomics, do not collide, and both are remembered.
        *record = match kind == AccessKind::Write || order.follows(access, record) {
            true => Touch { warp: access.warp, set: 1 << access.lane, time: order.now, pc: access.pc },
            false => record.and(access, order.now),
        };
        race
    }
}

#[cfg(test)]
mod tests {
    use super::AccessKind::{Atomic, Read, SameWrite, Write};
    use super::*;

    fn detector() -> RaceDetector {
        let mut detector = RaceDetector::new();
        detector.fit(64, 2);
        detector.block_meets();
        detector
    }

    /// Whether an access of four bytes by a thread makes a race.
    fn races(detector: &mut RaceDetector, at: u64, kind: AccessKind, thread: u32) -> bool {
        detector.access(at, 4, kind, &Access { warp: thread / 32, lane: thread % 32, pc: 1 }).is_some()
    }

    /// Warps that meet at a barrier of a number of threads.
    fn meet(detector: &mut RaceDetector, warps: &[u32]) {
        let mut arrived = Arrived::default();
        warps.iter().for_each(|warp| detector.warp_arrives(*warp, &mut arrived));
        warps.iter().for_each(|warp| detector.warp_leaves(*warp, &arrived));
    }

    #[test]
    fn a_block_orders_what_all_its_threads_did() {
        let mut detector = detector();
        assert!(!races(&mut detector, 0, Write, 1));
        assert!(!races(&mut detector, 0, Read, 1));
        assert!(races(&mut detector, 0, Read, 2));
        assert!(races(&mut detector, 0, Read, 40));
        detector.block_meets();
        assert!(!races(&mut detector, 0, Write, 40));
        // Writers of one value do not collide, unless somebody else read before.
        assert!(!races(&mut detector, 40, Write, 1));
        assert!(!races(&mut detector, 40, SameWrite, 70));
        assert!(races(&mut detector, 40, Write, 99));
        assert!(!races(&mut detector, 44, Read, 1));
        assert!(races(&mut detector, 44, SameWrite, 70));
        // Readers do not collide with each other, a writer collides with any of them.
        assert!(!races(&mut detector, 8, Read, 1));
        assert!(!races(&mut detector, 8, Read, 70));
        assert!(races(&mut detector, 8, Write, 70));
        assert!(!races(&mut detector, 24, Read, 1));
        assert!(!races(&mut detector, 24, Read, 2));
        assert!(races(&mut detector, 24, Write, 2));
        // Atomics do not collide with each other.
        assert!(!races(&mut detector, 16, Atomic, 1));
        assert!(!races(&mut detector, 16, Atomic, 70));
        assert!(races(&mut detector, 16, Read, 99));
    }

    #[test]
    fn a_warp_orders_what_the_lanes_of_a_mask_did() {
        let mut detector = detector();
        races(&mut detector, 0, Write, 1);
        detector.lanes_meet(0, 0b110);
        assert!(!races(&mut detector, 0, Read, 2));
        assert!(races(&mut detector, 0, Read, 3));
        // Lane 3 follows lane 1 by way of lane 2; lane 4, which met lane 2 before, does not.
        let mut detector = self::detector();
        races(&mut detector, 0, Write, 1);
        detector.lanes_meet(0, 0b1_0100);
        detector.lanes_meet(0, 0b0_0110);
        detector.lanes_meet(0, 0b0_1100);
        assert!(races(&mut detector, 0, Read, 4));
        assert!(!races(&mut detector, 0, Read, 3));
        // All lanes meet, for nobody else.
        races(&mut detector, 28, Read, 1);
        races(&mut detector, 28, Read, 2);
        races(&mut detector, 32, Read, 1);
        races(&mut detector, 32, Read, 2);
        detector.lanes_meet(0, u32::MAX);
        assert!(!races(&mut detector, 28, Write, 7));
        assert!(races(&mut detector, 32, Write, 33));
    }

    #[test]
    fn a_barrier_of_some_warps_orders_what_they_did() {
        let mut detector = detector();
        races(&mut detector, 0, Read, 0);
        races(&mut detector, 0, Read, 32);
        races(&mut detector, 4, Read, 0);
        races(&mut detector, 4, Read, 64);
        races(&mut detector, 8, Write, 64);
        meet(&mut detector, &[0, 1]);
        assert!(!races(&mut detector, 0, Write, 3));
        assert!(races(&mut detector, 4, Write, 33));
        // Warp 0 follows warp 2 by way of warp 1.
        meet(&mut detector, &[1, 2]);
        assert!(races(&mut detector, 8, Read, 0));
        let mut detector = self::detector();
        races(&mut detector, 8, Write, 64);
        meet(&mut detector, &[1, 2]);
        meet(&mut detector, &[0, 1]);
        assert!(!races(&mut detector, 8, Read, 0));
        // Who only arrives follows nobody, and what it does behind is ordered before nothing.
        let mut arrived = Arrived::default();
        races(&mut detector, 12, Write, 0);
        races(&mut detector, 16, Write, 32);
        detector.warp_arrives(0, &mut arrived);
        races(&mut detector, 20, Write, 0);
        detector.warp_arrives(1, &mut arrived);
        detector.warp_leaves(1, &arrived);
        assert!(!races(&mut detector, 12, Read, 32));
        assert!(races(&mut detector, 16, Read, 0));
        assert!(races(&mut detector, 20, Read, 32));
    }
}
