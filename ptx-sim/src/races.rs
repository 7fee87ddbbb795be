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
    /// For each warp: what it follows beyond that, of single threads, by their number, and of the copies to a barrier, by
    /// [`FIRST_COPIES`] and the barrier's number. Only as long as needed.
    more: Vec<Vec<u32>>,
    /// Of a touch whose touchers came [`APART`], by its place: when each of them did.
    times: Vec<Option<Box<[u32; WIDTH]>>>,
}

impl Order {
    fn new() -> Order {
        Order {
            now: 0,
            met: 0,
            warps: Box::new([[0; WIDTH]; WIDTH]),
            lanes: Vec::new(),
            more: vec![Vec::new(); WIDTH],
            times: Vec::new(),
        }
    }

    /// Whether all who touched a cell did so before an access, or are who does it.
    #[inline(always)]
    fn follows(&self, access: &Access, touch: &Touch, place: usize) -> bool {
        touch.time < self.met
            || touch.warp == access.warp && touch.set == 1 << access.lane
            || touch.time < self.now && self.follows_others(access, touch, place)
    }

    #[inline(never)]
    fn follows_others(&self, access: &Access, touch: &Touch, place: usize) -> bool {
        let own = access.warp as usize % WIDTH;
        let seen = &self.warps[own];
        match touch.who() {
            warp if warp == access.warp => {
                touch.time < seen[own]
                    || self.follows_lanes(access, touch, place)
                    || self.follows_threads(own, touch, place)
            }
            MANY => (0..WIDTH).all(|warp| {
                let time = || self.time(touch, place, warp);
                touch.set >> warp & 1 == 0
                    || time() < seen[warp]
                    || self.follows_all_threads(own, warp, time())
            }),
            COPIES => touch.time < self.seen(own, FIRST_COPIES + (touch.set >> THREAD_BITS) as usize),
            warp => touch.time < seen[warp as usize % WIDTH] || self.follows_threads(own, touch, place),
        }
    }

    /// Up to when a warp follows a thread or copies.
    fn seen(&self, warp: usize, what: usize) -> u32 {
        self.more[warp].get(what).copied().unwrap_or(0)
    }

    /// Whether a warp follows those lanes of another one, or of itself, that touched a cell.
    #[cold]
    fn follows_threads(&self, warp: usize, touch: &Touch, place: usize) -> bool {
        let first = touch.who() as usize * WIDTH;
        !self.more[warp].is_empty()
            && (0..WIDTH).all(|lane| {
                touch.set >> lane & 1 == 0 || self.time(touch, place, lane) < self.seen(warp, first + lane)
            })
    }

    /// Whether a warp follows what each lane of another one did at a time.
    #[cold]
    fn follows_all_threads(&self, warp: usize, other: usize, time: u32) -> bool {
        let threads = other * WIDTH..(other + 1) * WIDTH;
        self.more[warp].get(threads).is_some_and(|seen| seen.iter().all(|seen| time < *seen))
    }

    #[cold]
    fn follows_lanes(&self, access: &Access, touch: &Touch, place: usize) -> bool {
        let Some(lanes) = self.lanes.get(access.warp as usize) else { return false };
        let seen = &lanes[access.lane as usize % WIDTH];
        let others = touch.set & !(1 << access.lane);
        (0..WIDTH).all(|lane| others >> lane & 1 == 0 || self.time(touch, place, lane) < seen[lane])
    }

    /// Adds what a warp follows to what those who have arrived do.
    fn join_seen(&self, warp: u32, arrived: &mut Arrived) {
        latest(&mut arrived.warps, &self.warps[warp as usize]);
        latest_of_more(&mut arrived.more, &self.more[warp as usize]);
    }

    /// Adds a warp, and what it follows, to those who have arrived.
    fn join(&self, warp: u32, arrived: &mut Arrived, now: u32) {
        self.join_seen(warp, arrived);
        arrived.warps[warp as usize] = now;
    }

    /// When a lane or a warp of a touch did it.
    fn time(&self, touch: &Touch, place: usize, who: usize) -> u32 {
        if touch.warp & APART == 0 {
            return touch.time;
        }
        self.times[place].as_ref().expect("those who come apart have times")[who]
    }

    /// Adds an access to a touch that it is not ordered behind.
    #[inline(always)]
    fn add(&mut self, touch: &mut Touch, access: &Access, place: usize) {
        if touch.time != self.now || touch.warp & APART != 0 {
            self.set_apart(touch, access, place);
        }
        touch.add(access);
    }

    /// Gives each of those who touched a cell a time of its own.
    #[inline(never)]
    fn set_apart(&mut self, touch: &mut Touch, access: &Access, place: usize) {
        if self.times.len() <= place {
            self.times.resize_with(place + 1, || None);
        }
        let times = self.times[place].get_or_insert_default();
        let is_own = touch.who() == access.warp;
        // Of a warp as a whole the last time counts.
        if touch.warp & APART == 0 || touch.who() != MANY && !is_own {
            times.fill(touch.time);
            touch.warp |= APART;
        }
        times[if is_own { access.lane } else { access.warp } as usize % WIDTH] = self.now;
        touch.time = self.now;
    }
}

fn latest(times: &mut [u32], others: &[u32]) {
    times.iter_mut().zip(others).for_each(|(time, other)| *time = (*time).max(*other));
}

/// The same where any number of times may be known.
fn latest_of_more(times: &mut Vec<u32>, others: &[u32]) {
    if times.len() < others.len() {
        times.resize(others.len(), 0);
    }
    latest(times, others);
}

/// Who touched a cell last, since those who are ordered before all of them, and when the last of them did.
#[derive(Clone, Copy, Debug, Default)]
struct Touch {
    /// A warp, [`MANY`] or [`COPIES`]; with [`APART`].
    warp: u32,
    /// Lanes of the warp; of several warps, which; of a copy, its barrier's number and below that its thread.
    set: u32,
    time: u32,
    /// The instruction, to name both sides of a race.
    pc: u32,
}

/// Several warps.
const MANY: u32 = WIDTH as u32;
/// A bulk copy, which only those follow who wait for its barrier.
const COPIES: u32 = MANY + 1;
/// Bits of a thread's number in its block.
const THREAD_BITS: u32 = 10;
/// Where copies have their times, behind those of all threads of a block.
const FIRST_COPIES: usize = 1 << THREAD_BITS;
/// A flag: not all did it at one time, see [`Order::times`].
const APART: u32 = 1 << 31;

impl Touch {
    fn who(&self) -> u32 {
        self.warp & !APART
    }

    #[inline(always)]
    fn add(&mut self, access: &Access) {
        self.pc = access.pc;
        if self.who() == access.warp {
            self.set |= 1 << access.lane;
            return;
        }
        if self.who() != MANY {
            self.set = 1 << self.who();
            self.warp = self.warp & APART | MANY;
        }
        self.set |= 1 << access.warp;
    }

    /// As the other side of a race with an access.
    #[cold]
    fn race(&self, access: &Access, other_wrote: bool) -> Option<Race> {
        let warp = self.who();
        if warp == COPIES {
            let thread = self.set & ((1 << THREAD_BITS) - 1);
            return Some(Race { other_thread: Some(thread), other_pc: self.pc, other_wrote });
        }
        let own = if warp == access.warp { 1 << access.lane } else { 0 };
        let others = if self.set == own { own } else { self.set & !own };
        let other_thread = (warp != MANY).then(|| warp * 32 + 31 - others.leading_zeros().min(31));
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

/// What those who have arrived at a barrier follow, and they themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrived {
    /// A time for each warp.
    warps: [u32; WIDTH],
    /// Of threads and copies, see [`Order::more`].
    more: Vec<u32>,
}

impl Arrived {
    pub(crate) fn clear(&mut self) {
        self.warps = [0; WIDTH];
        self.more.clear();
    }

    /// All that a thread or copies did before a time.
    fn add(&mut self, what: usize, time: u32) {
        if self.more.len() <= what {
            self.more.resize(what + 1, 0);
        }
        self.more[what] = self.more[what].max(time);
    }
}

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
        self.order.times.clear();
    }

    fn tick(&mut self) -> u32 {
        let now = self.order.now.checked_add(1).unwrap_or_else(|| {
            self.cells.fill(Cell::default());
            // Cells are as nobody touched them, at a time before all have met.
            self.order = Order { met: 1, ..Order::new() };
            2
        });
        self.order.now = now;
        now
    }

    /// All threads of the block meet, or another block begins.
    pub(crate) fn block_meets(&mut self) {
        self.order.met = self.tick();
    }

    /// A warp arrives at a barrier and goes on.
    pub(crate) fn warp_arrives(&mut self, warp: u32, arrived: &mut Arrived) {
        let now = self.tick();
        self.order.join(warp, arrived, now);
    }

    /// Warps that waited at a barrier go on, behind each other and those who arrived.
    pub(crate) fn warps_meet(&mut self, warps: impl Iterator<Item = usize> + Clone, arrived: &mut Arrived) {
        // Who waits does nothing, so that one time is enough for all.
        let now = self.tick();
        warps.clone().for_each(|warp| self.order.join(warp as u32, arrived, now));
        warps.for_each(|warp| self.follow(warp as u32, arrived));
    }

    /// A warp goes on behind those who have arrived.
    pub(crate) fn follow(&mut self, warp: u32, arrived: &Arrived) {
        latest(&mut self.order.warps[warp as usize], &arrived.warps);
        latest_of_more(&mut self.order.more[warp as usize], &arrived.more);
    }

    /// A lane arrives at a barrier without the others of its warp, and goes on: with it arrives what it did itself, what it
    /// follows in its warp, and what the warp follows.
    pub(crate) fn lane_arrives(&mut self, access: &Access, arrived: &mut Arrived) {
        let now = self.tick();
        self.order.join_seen(access.warp, arrived);
        let first = access.warp as usize * WIDTH;
        if let Some(lanes) = self.order.lanes.get(access.warp as usize) {
            let seen = lanes[access.lane as usize % WIDTH];
            seen.iter().enumerate().for_each(|(lane, time)| arrived.add(first + lane, *time));
        }
        arrived.add(first + access.lane as usize, now);
    }

    /// A bulk copy that a thread began arrives, at the barrier of a number.
    pub(crate) fn copy_arrives(
        &mut self,
        at: u64,
        bytes: u64,
        by: &Access,
        barrier: u32,
        arrived: &mut Arrived,
    ) {
        let set = barrier << THREAD_BITS | by.warp << 5 | by.lane;
        let write = Touch { warp: COPIES, set, time: self.order.now, pc: by.pc };
        let cells = (at >> self.shift) as usize..((at + bytes) >> self.shift) as usize;
        self.cells.get_mut(cells).into_iter().flatten().for_each(|cell| cell.write = write);
        let now = self.tick();
        arrived.add(FIRST_COPIES + barrier as usize, now);
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
            return self.cells.get_mut(first)?.access(kind, access, first, &mut self.order);
        }
        let mut race = None;
        for (index, cell) in (first..).zip(self.cells.get_mut(first..=last)?) {
            race = race.or(cell.access(kind, access, index, &mut self.order));
        }
        race
    }
}

impl Cell {
    #[inline(always)]
    fn access(&mut self, kind: AccessKind, access: &Access, index: usize, order: &mut Order) -> Option<Race> {
        let [write, read, atomic] = [0, 1, 2].map(|touch| 3 * index + touch);
        let mut race = None;
        let may_be_same = kind == AccessKind::SameWrite && self.write.warp != COPIES;
        if !may_be_same && !order.follows(access, &self.write, write) {
            race = self.write.race(access, true);
        }
        if kind != AccessKind::Atomic && !order.follows(access, &self.atomic, atomic) {
            race = race.or(self.atomic.race(access, true));
        }
        if kind != AccessKind::Read && !order.follows(access, &self.read, read) {
            race = race.or(self.read.race(access, false));
        }
        let (record, place) = match kind {
            AccessKind::Write | AccessKind::SameWrite => (&mut self.write, write),
            AccessKind::Read => (&mut self.read, read),
            AccessKind::Atomic => (&mut self.atomic, atomic),
        };
        // Two readers, or two atomics, do not collide, and both are remembered.
        if kind == AccessKind::Write || order.follows(access, record, place) || record.warp == COPIES {
            *record = Touch { warp: access.warp, set: 1 << access.lane, time: order.now, pc: access.pc };
        } else {
            order.add(record, access, place);
        }
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
    fn meet(detector: &mut RaceDetector, warps: &[usize]) {
        detector.warps_meet(warps.iter().copied(), &mut Arrived::default());
    }

    #[test]
    fn time_that_begins_anew_makes_no_race() {
        let mut detector = detector();
        assert!(!races(&mut detector, 0, Write, 1));
        detector.order.now = u32::MAX;
        detector.lanes_meet(0, u32::MAX);
        for at in [0, 4] {
            assert!(!races(&mut detector, at, Read, 40), "{at}");
            assert!(races(&mut detector, at, Write, 70), "{at}");
        }
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
        detector.warps_meet([1].into_iter(), &mut arrived);
        assert!(!races(&mut detector, 12, Read, 32));
        assert!(races(&mut detector, 16, Read, 0));
        assert!(races(&mut detector, 20, Read, 32));
    }

    #[test]
    fn a_lane_that_arrives_alone_brings_what_it_follows() {
        let access = |thread: u32| Access { warp: thread / 32, lane: thread % 32, pc: 1 };
        let mut detector = detector();
        for (cell, thread) in [(0, 0), (4, 1), (8, 2), (12, 2), (12, 64), (16, 0), (20, 96)] {
            races(&mut detector, cell, Read, thread);
        }
        detector.lanes_meet(0, 0b011);
        let mut arrived = Arrived::default();
        detector.lane_arrives(&access(0), &mut arrived);
        races(&mut detector, 16, Read, 0);
        detector.follow(1, &arrived);
        // What the lane did and what another did that it met, but not what a third did, nor what it did behind.
        for (cell, is_race) in [(0, false), (4, false), (8, true), (12, true), (16, true), (20, true)] {
            assert_eq!(races(&mut detector, cell, Write, 32), is_race, "{cell}");
        }
        // The warp meets; its last lane arrives, after all others of another warp have, each by itself.
        let mut detector = self::detector();
        let mut arrived = Arrived::default();
        for thread in [3, 35, 36] {
            [0, 4, 8].into_iter().for_each(|cell| assert!(!races(&mut detector, cell, Read, thread)));
        }
        detector.lanes_meet(0, u32::MAX);
        races(&mut detector, 4, Read, 3);
        detector.lane_arrives(&access(0), &mut arrived);
        for thread in 32..63 {
            detector.lane_arrives(&access(thread), &mut arrived);
        }
        detector.follow(2, &arrived);
        assert!(races(&mut detector, 0, SameWrite, 64));
        detector.lane_arrives(&access(63), &mut arrived);
        detector.follow(3, &arrived);
        // Who meets a warp that follows does the same.
        meet(&mut detector, &[3, 4]);
        assert!(races(&mut detector, 4, Write, 128));
        assert!(!races(&mut detector, 8, Write, 128));
    }

    #[test]
    fn copies_are_followed_by_those_who_wait_for_their_barrier() {
        let by = Access { warp: 1, lane: 3, pc: 7 };
        let mut detector = detector();
        let mut barriers = [Arrived::default(), Arrived::default()];
        detector.copy_arrives(16, 32, &by, 0, &mut barriers[0]);
        detector.copy_arrives(48, 16, &by, 5, &mut barriers[1]);
        detector.follow(0, &barriers[0]);
        for (cell, is_race) in [(12, false), (16, false), (44, false), (48, true), (60, true)] {
            assert_eq!(races(&mut detector, cell, Read, 0), is_race, "{cell}");
        }
        // The thread that began it has to wait as well, and so has who writes the same.
        assert!(races(&mut detector, 28, Read, 35));
        assert!(races(&mut detector, 28, SameWrite, 35));
        let found = detector.access(56, 4, Write, &Access { warp: 2, lane: 0, pc: 9 });
        assert_eq!(found, Some(Race { other_thread: Some(35), other_pc: 7, other_wrote: true }));
        // A later copy is not followed by who waited for the one before.
        detector.copy_arrives(16, 16, &by, 0, &mut barriers[0]);
        assert!(races(&mut detector, 16, Read, 0));
        detector.follow(4, &barriers[0]);
        assert!(!races(&mut detector, 20, Read, 128));
        detector.block_meets();
        assert!(!races(&mut detector, 24, Write, 35));
    }

    #[test]
    fn those_who_come_apart_each_have_their_time() {
        // Warp 0 has arrived and gone on before warp 1 does the same as it.
        for kind in [Read, Atomic, SameWrite] {
            let mut detector = detector();
            let mut arrived = Arrived::default();
            for cell in [0, 4, 8] {
                races(&mut detector, cell, kind, 0);
            }
            detector.warp_arrives(0, &mut arrived);
            for (cell, thread) in [(0, 32), (0, 33), (4, 32), (4, 65), (8, 32), (8, 0)] {
                assert!(!races(&mut detector, cell, kind, thread));
            }
            detector.warps_meet([1].into_iter(), &mut arrived);
            assert!(!races(&mut detector, 0, Write, 40), "{kind:?}");
            assert!(races(&mut detector, 4, Write, 40), "{kind:?}");
            assert!(races(&mut detector, 8, Write, 40), "{kind:?}");
        }
        // Lanes of a warp.
        let mut detector = detector();
        for cell in [0, 4, 8] {
            races(&mut detector, cell, Read, 1);
        }
        detector.lanes_meet(0, 0b011);
        for cell in [0, 4, 8] {
            assert!(!races(&mut detector, cell, Read, 2));
        }
        assert!(!races(&mut detector, 8, Read, 32));
        assert!(races(&mut detector, 4, Write, 0));
        detector.lanes_meet(0, 0b101);
        assert!(!races(&mut detector, 0, Write, 0));
        meet(&mut detector, &[1, 2]);
        assert!(races(&mut detector, 8, Write, 64));
        meet(&mut detector, &[0, 2]);
        assert!(!races(&mut detector, 8, Write, 64));
    }
}
