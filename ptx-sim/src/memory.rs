//! Memory with a shadow: what is allocated, what is initialised, and whose accesses of shared memory collide.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The address of the first byte of global memory.
pub(crate) const GLOBAL_BASE: u64 = 0x0000_7000_0000_0000;
/// Where shared memory lies among generic addresses.
pub(crate) const SHARED_BASE: u64 = 0x0000_6000_0000_0000;
/// Where local memory lies among generic addresses.
pub(crate) const LOCAL_BASE: u64 = 0x0000_5000_0000_0000;
/// Where a module's variables lie among global and generic addresses.
pub(crate) const MODULE_BASE: u64 = 0x0000_4000_0000_0000;
/// How far each of the windows reaches.
pub(crate) const WINDOW: u64 = 1 << 40;

/// Alignment of allocations, and the least distance between two of them.
const GRANULE: u64 = 256;

const FREE: u8 = 0;
const ALLOCATED: u8 = 1;
const INITIALISED: u8 = 2;

/// What is wrong with an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    OutOfBounds,
    Misaligned,
    Uninitialised,
}

/// A block of memory with one shadow byte a byte. Accesses are relaxed atomics, so that blocks may run on several
/// threads; what two of them do to the same bytes is as undefined as on a GPU, but not undefined for Rust.
#[derive(Debug)]
pub(crate) struct Memory {
    data: Vec<AtomicU64>,
    shadow: Vec<AtomicU64>,
    len: u64,
}

impl Memory {
    pub(crate) fn new(len: u64) -> Memory {
        let words = len.div_ceil(8) as usize;
        let zeroed = || std::iter::repeat_with(|| AtomicU64::new(0)).take(words).collect();
        Memory { data: zeroed(), shadow: zeroed(), len }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn grow(&mut self, len: u64) {
        let words = len.div_ceil(8) as usize;
        self.data.resize_with(words, || AtomicU64::new(0));
        self.shadow.resize_with(words, || AtomicU64::new(0));
        self.len = len;
    }

    /// Marks bytes as allocated and not initialised, whatever they were.
    pub(crate) fn mark_allocated(&self, at: u64, bytes: u64) {
        self.fill_shadow(at, bytes, ALLOCATED);
    }

    pub(crate) fn mark_free(&self, at: u64, bytes: u64) {
        self.fill_shadow(at, bytes, FREE);
    }

    pub(crate) fn mark_initialised(&self, at: u64, bytes: u64) {
        self.fill_shadow(at, bytes, INITIALISED);
    }

    fn fill_shadow(&self, at: u64, bytes: u64, state: u8) {
        let mut at = at;
        let end = at + bytes;
        while at < end {
            if at.is_multiple_of(8) && end - at >= 8 {
                self.shadow[(at / 8) as usize].store(u64::from(state) * 0x0101_0101_0101_0101, Relaxed);
                at += 8;
            } else {
                self.byte(&self.shadow, at).store(state, Relaxed);
                at += 1;
            }
        }
    }

    pub(crate) fn write_bytes(&self, at: u64, source: &[u8]) {
        let mut offset = 0;
        while offset < source.len() {
            let here = at + offset as u64;
            if here.is_multiple_of(8) && source.len() - offset >= 8 {
                let word = u64::from_le_bytes(source[offset..offset + 8].try_into().expect("eight bytes"));
                self.data[(here / 8) as usize].store(word, Relaxed);
                offset += 8;
            } else {
                self.byte(&self.data, here).store(source[offset], Relaxed);
                offset += 1;
            }
        }
        self.mark_initialised(at, source.len() as u64);
    }

    pub(crate) fn read_bytes(&self, at: u64, target: &mut [u8]) {
        let mut offset = 0;
        while offset < target.len() {
            let here = at + offset as u64;
            if here.is_multiple_of(8) && target.len() - offset >= 8 {
                let word = self.data[(here / 8) as usize].load(Relaxed);
                target[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
                offset += 8;
            } else {
                target[offset] = self.byte(&self.data, here).load(Relaxed);
                offset += 1;
            }
        }
    }

    fn byte<'a>(&self, words: &'a [AtomicU64], at: u64) -> &'a AtomicU8 {
        let word = &words[(at / 8) as usize];
        // SAFETY: a byte of a word that is borrowed, with the word's lifetime; little-endian like the target.
        unsafe { &*word.as_ptr().cast::<AtomicU8>().add((at % 8) as usize) }
    }

    /// Checks that an access lies inside, is aligned, and touches nothing that is free.
    #[inline(always)]
    fn locate(&self, at: u64, bytes: u32) -> Result<(), Bad> {
        if at.checked_add(u64::from(bytes)).is_none_or(|end| end > self.len) {
            return Err(Bad::OutOfBounds);
        }
        if at & u64::from(bytes - 1) != 0 {
            return Err(Bad::Misaligned);
        }
        Ok(())
    }

    /// The value of `bytes` (1, 2, 4 or 8) at an offset, zero-extended.
    #[inline(always)]
    pub(crate) fn load(&self, at: u64, bytes: u32) -> Result<u64, Bad> {
        self.locate(at, bytes)?;
        let (value, shadow, whole) = match bytes {
            8 => (self.u64_at(&self.data, at), self.u64_at(&self.shadow, at), 0x0202_0202_0202_0202),
            4 => (self.u32_at(&self.data, at).into(), self.u32_at(&self.shadow, at).into(), 0x0202_0202),
            2 => (self.u16_at(&self.data, at).into(), self.u16_at(&self.shadow, at).into(), 0x0202),
            _ => (
                self.byte(&self.data, at).load(Relaxed).into(),
                self.byte(&self.shadow, at).load(Relaxed).into(),
                0x02u64,
            ),
        };
        if shadow != whole {
            return Err(if touches_free(shadow, whole) { Bad::OutOfBounds } else { Bad::Uninitialised });
        }
        Ok(value)
    }

    /// An aligned, initialised value of 4 or 8 bytes; none where anything about the access needs a closer look.
    #[inline(always)]
    pub(crate) fn load_plain<const BYTES: u64>(&self, at: u64) -> Option<u64> {
        if at & (BYTES - 1) != 0 {
            return None;
        }
        let index = (at / 8) as usize;
        let (word, shadow) = (self.data.get(index)?.load(Relaxed), self.shadow.get(index)?.load(Relaxed));
        // Bytes behind the end are free in the shadow.
        if BYTES == 8 {
            (shadow == 0x0202_0202_0202_0202).then_some(word)
        } else {
            let shift = (at & 4) * 8;
            ((shadow >> shift) as u32 == 0x0202_0202).then_some(word >> shift & 0xffff_ffff)
        }
    }

    /// Stores the low `bytes` of a value; says whether memory changed.
    #[inline(always)]
    pub(crate) fn store(&self, at: u64, bytes: u32, value: u64) -> Result<bool, Bad> {
        self.locate(at, bytes)?;
        let index = (at / 8) as usize;
        let within = (at % 8) as usize;
        // SAFETY: the access lies inside the words (`locate`) and is aligned to its size; the shadow is as long
        // as the data.
        unsafe {
            let data = self.data[index].as_ptr().cast::<u8>().add(within);
            let shadow = self.shadow[index].as_ptr().cast::<u8>().add(within);
            macro_rules! store {
                ($atomic:ty, $int:ty) => {{
                    let whole = (u64::MAX / 255 * u64::from(INITIALISED)) as $int;
                    let shadow = &*shadow.cast::<$atomic>();
                    let state = shadow.load(Relaxed);
                    if state != whole {
                        if touches_free(state.into(), whole.into()) {
                            return Err(Bad::OutOfBounds);
                        }
                        shadow.store(whole, Relaxed);
                    }
                    let data = &*data.cast::<$atomic>();
                    let changed = state != whole || data.load(Relaxed) != value as $int;
                    data.store(value as $int, Relaxed);
                    Ok(changed)
                }};
            }
            match bytes {
                8 => store!(AtomicU64, u64),
                4 => store!(AtomicU32, u32),
                2 => store!(AtomicU16, u16),
                _ => store!(AtomicU8, u8),
            }
        }
    }

    /// Replaces a value by a function of it, atomically; returns the old one.
    pub(crate) fn update(&self, at: u64, bytes: u32, new: impl Fn(u64) -> u64) -> Result<(u64, bool), Bad> {
        let old = self.load(at, bytes)?;
        let index = (at / 8) as usize;
        let within = (at % 8) as usize;
        // SAFETY: as in `store`; `load` checked the place.
        unsafe {
            let data = self.data[index].as_ptr().cast::<u8>().add(within);
            macro_rules! update {
                ($atomic:ty, $int:ty) => {{
                    let data = &*data.cast::<$atomic>();
                    let mut old = old as $int;
                    loop {
                        let next = new(old.into()) as $int;
                        match data.compare_exchange_weak(old, next, Relaxed, Relaxed) {
                            Ok(_) => return Ok((old.into(), old != next)),
                            Err(seen) => old = seen,
                        }
                    }
                }};
            }
            match bytes {
                8 => update!(AtomicU64, u64),
                4 => update!(AtomicU32, u32),
                2 => update!(AtomicU16, u16),
                _ => update!(AtomicU8, u8),
            }
        }
    }

    /// As [`Memory::update`], where nobody else has the memory.
    #[inline(always)]
    pub(crate) fn update_alone(
        &mut self,
        at: u64,
        bytes: u32,
        new: impl Fn(u64) -> u64,
    ) -> Result<(u64, bool), Bad> {
        let old = self.load(at, bytes)?;
        let changed = self.store(at, bytes, new(old))?;
        Ok((old, changed))
    }

    #[inline(always)]
    fn u64_at(&self, words: &[AtomicU64], at: u64) -> u64 {
        words[(at / 8) as usize].load(Relaxed)
    }

    #[inline(always)]
    fn u32_at(&self, words: &[AtomicU64], at: u64) -> u32 {
        // SAFETY: a half of a word that is borrowed; `at` is a multiple of four.
        unsafe {
            (*words[(at / 8) as usize].as_ptr().cast::<AtomicU32>().add((at % 8 / 4) as usize)).load(Relaxed)
        }
    }

    #[inline(always)]
    fn u16_at(&self, words: &[AtomicU64], at: u64) -> u16 {
        // SAFETY: a quarter of a word that is borrowed; `at` is a multiple of two.
        unsafe {
            (*words[(at / 8) as usize].as_ptr().cast::<AtomicU16>().add((at % 8 / 2) as usize)).load(Relaxed)
        }
    }
}

/// Whether any byte of a shadow is [`FREE`]; the others are 1 or 2.
fn touches_free(shadow: u64, whole: u64) -> bool {
    let ones = whole >> 1;
    (shadow | (shadow >> 1)) & ones != ones
}

/// Global memory: allocations with room between them.
#[derive(Debug)]
pub(crate) struct Global {
    pub(crate) memory: Memory,
    allocations: Vec<(u64, u64)>,
}

impl Global {
    pub(crate) fn new() -> Global {
        Global { memory: Memory::new(GRANULE), allocations: Vec::new() }
    }

    pub(crate) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let at = self.allocations.last().map_or(GRANULE, |(at, bytes)| at + bytes);
        let at = (at + GRANULE).next_multiple_of(GRANULE);
        let end = at.checked_add(bytes)?.checked_add(GRANULE)?;
        if end > WINDOW {
            return None;
        }
        if end > self.memory.len() {
            self.memory.grow(end.max(self.memory.len() * 2).min(end + (1 << 28)));
        }
        self.memory.mark_allocated(at, bytes);
        self.allocations.push((at, bytes));
        Some(GLOBAL_BASE + at)
    }

    /// Frees what was allocated at an address; says whether it was.
    pub(crate) fn free(&mut self, address: u64) -> bool {
        let at = address.wrapping_sub(GLOBAL_BASE);
        let Some(index) = self.allocations.iter().position(|(start, _)| *start == at) else { return false };
        let (at, bytes) = self.allocations.remove(index);
        self.memory.mark_free(at, bytes);
        true
    }

    pub(crate) fn used(&self) -> u64 {
        self.allocations.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The offset of bytes that lie inside one allocation.
    pub(crate) fn inside(&self, address: u64, bytes: u64) -> Option<u64> {
        let at = address.checked_sub(GLOBAL_BASE)?;
        let end = at.checked_add(bytes)?;
        let holds = |(start, len): &(u64, u64)| at >= *start && end <= start + len;
        self.allocations.iter().any(holds).then_some(at)
    }

    /// The allocation nearest to an address: its start and size.
    pub(crate) fn nearest(&self, address: u64) -> Option<(u64, u64)> {
        let at = address.wrapping_sub(GLOBAL_BASE);
        let distance = |(start, bytes): &(u64, u64)| {
            if at < *start { start - at } else { at.saturating_sub(start + bytes - 1) }
        };
        let (start, bytes) = self.allocations.iter().min_by_key(|allocation| distance(allocation))?;
        Some((GLOBAL_BASE + start, *bytes))
    }
}

/// Who touched a cell of shared memory last, and when.
#[derive(Clone, Copy, Debug, Default)]
struct Touch {
    /// A thread in the block; with [`OF_WARP`], that one and others of its warp; or [`MANY`].
    who: u32,
    /// The block's interval between barriers; unique over all blocks.
    interval: u32,
    /// The warp's interval between warp-wide synchronisations.
    warp_interval: u32,
    /// The instruction, to name both sides of a race.
    pc: u32,
}

/// Several threads of a warp, between the same warp-wide synchronisations.
const OF_WARP: u32 = 1 << 31;
/// Threads of several warps.
const MANY: u32 = u32::MAX;

impl Touch {
    fn thread(&self) -> Option<u32> {
        (self.who != MANY).then_some(self.who & !OF_WARP)
    }

    #[inline(always)]
    fn in_warp_of(&self, access: &Access) -> bool {
        // Of [`MANY`] bits are left that no thread has.
        (self.who ^ access.thread) & !(OF_WARP | 31) == 0
    }

    /// Whether somebody else was here in this interval whom no synchronisation of the warp orders before an access.
    #[inline(always)]
    fn by_another(&self, access: &Access) -> bool {
        self.interval == access.interval
            && match self.in_warp_of(access) {
                true => self.warp_interval == access.warp_interval && self.who != access.thread,
                false => true,
            }
    }

    #[cold]
    fn race(&self, other_wrote: bool) -> Option<Race> {
        Some(Race { other_thread: self.thread(), other_pc: self.pc, other_wrote })
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
}

/// One access, as the detector sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) thread: u32,
    pub(crate) interval: u32,
    pub(crate) warp_interval: u32,
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

impl RaceDetector {
    /// For so many bytes in cells of `1 << shift` bytes, at most the smallest unit that is accessed.
    pub(crate) fn new(bytes: u64, shift: u32) -> RaceDetector {
        RaceDetector { shift, cells: vec![Cell::default(); (bytes >> shift) as usize + 1] }
    }

    /// The last write of a byte, as the other side of a race with something that is not in the records.
    pub(crate) fn last_write(&self, at: u64) -> Option<Race> {
        self.cells.get((at >> self.shift) as usize)?.write.race(true)
    }

    /// Forgets every access, so that intervals may count from the beginning.
    pub(crate) fn forget(&mut self) {
        self.cells.fill(Cell::default());
    }

    #[inline(always)]
    pub(crate) fn access(&mut self, at: u64, bytes: u32, kind: AccessKind, access: &Access) -> Option<Race> {
        let first = (at >> self.shift) as usize;
        let last = ((at + u64::from(bytes) - 1) >> self.shift) as usize;
        if first == last {
            return self.cells.get_mut(first)?.access(kind, access);
        }
        let mut race = None;
        for cell in self.cells.get_mut(first..=last)? {
            race = race.or(cell.access(kind, access));
        }
        race
    }
}

impl Cell {
    #[inline(always)]
    fn access(&mut self, kind: AccessKind, access: &Access) -> Option<Race> {
        let mut race = None;
        if kind != AccessKind::SameWrite && self.write.by_another(access) {
            race = self.write.race(true);
        }
        if kind != AccessKind::Atomic && self.atomic.by_another(access) {
            race = race.or(self.atomic.race(true));
        }
        if kind != AccessKind::Read && self.read.by_another(access) {
            race = race.or(self.read.race(false));
        }
        let record = match kind {
            AccessKind::Write | AccessKind::SameWrite => &mut self.write,
            AccessKind::Read => &mut self.read,
            AccessKind::Atomic => &mut self.atomic,
        };
        // Two readers, or two atomics, do not collide, and both are remembered.
        let who = match kind != AccessKind::Write && record.by_another(access) {
            true if record.in_warp_of(access) => access.thread | OF_WARP,
            true => MANY,
            false => access.thread,
        };
        let Access { interval, warp_interval, pc, .. } = *access;
        *record = Touch { who, interval, warp_interval, pc };
        race
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shadow_knows_free_allocated_and_initialised() {
        let mut global = Global::new();
        let address = global.allocate(10).unwrap();
        let at = address - GLOBAL_BASE;
        let memory = &global.memory;
        assert_eq!(memory.load(at, 4), Err(Bad::Uninitialised));
        assert_eq!(memory.store(at, 4, 7), Ok(true));
        assert_eq!(memory.store(at, 4, 7), Ok(false));
        assert_eq!(memory.load(at, 4), Ok(7));
        assert_eq!(memory.load(at, 8), Err(Bad::Uninitialised));
        assert_eq!(memory.store(at + 8, 2, 0xffff), Ok(true));
        assert_eq!(memory.store(at + 8, 4, 1), Err(Bad::OutOfBounds));
        assert_eq!(memory.load(at + 10, 1), Err(Bad::OutOfBounds));
        assert_eq!(memory.load(at + 1, 2), Err(Bad::Misaligned));
        assert_eq!(memory.load(u64::MAX - 2, 4), Err(Bad::OutOfBounds));
        assert!(global.free(address));
        assert!(!global.free(address));
        assert_eq!(global.memory.load(at, 4), Err(Bad::OutOfBounds));
    }

    #[test]
    fn races_are_between_threads_without_a_barrier() {
        let access = |thread, interval, warp_interval| Access { thread, interval, warp_interval, pc: 1 };
        let mut detector = RaceDetector::new(64, 2);
        assert_eq!(detector.access(0, 4, AccessKind::Write, &access(1, 1, 1)), None);
        assert_eq!(detector.access(0, 4, AccessKind::Read, &access(1, 1, 1)), None);
        // Another lane of the warp, after a warp-wide synchronisation; then without; then another warp.
        assert_eq!(detector.access(0, 4, AccessKind::Read, &access(2, 1, 2)), None);
        assert!(detector.access(0, 4, AccessKind::Read, &access(2, 1, 1)).is_some());
        assert!(detector.access(0, 4, AccessKind::Read, &access(40, 1, 9)).is_some());
        // Writers of one value do not collide, unless somebody else read before.
        assert_eq!(detector.access(40, 4, AccessKind::Write, &access(1, 2, 1)), None);
        assert_eq!(detector.access(40, 4, AccessKind::SameWrite, &access(70, 2, 1)), None);
        assert!(detector.access(40, 4, AccessKind::Write, &access(99, 2, 1)).is_some());
        assert_eq!(detector.access(44, 4, AccessKind::Read, &access(1, 2, 1)), None);
        assert!(detector.access(44, 4, AccessKind::SameWrite, &access(70, 2, 1)).is_some());
        // Behind a barrier.
        assert_eq!(detector.access(0, 4, AccessKind::Write, &access(40, 2, 9)), None);
        // Readers do not collide with each other, a writer collides with many.
        assert_eq!(detector.access(8, 4, AccessKind::Read, &access(1, 2, 1)), None);
        assert_eq!(detector.access(8, 4, AccessKind::Read, &access(70, 2, 1)), None);
        assert!(detector.access(8, 4, AccessKind::Write, &access(70, 2, 1)).is_some());
        // Several lanes of a warp read before its synchronisation, one writes behind it.
        assert_eq!(detector.access(24, 4, AccessKind::Read, &access(1, 2, 1)), None);
        assert_eq!(detector.access(24, 4, AccessKind::Read, &access(2, 2, 1)), None);
        assert!(detector.access(24, 4, AccessKind::Write, &access(2, 2, 1)).is_some());
        assert_eq!(detector.access(28, 4, AccessKind::Read, &access(1, 2, 1)), None);
        assert_eq!(detector.access(28, 4, AccessKind::Read, &access(2, 2, 1)), None);
        assert_eq!(detector.access(28, 4, AccessKind::Write, &access(1, 2, 2)), None);
        assert!(detector.access(28, 4, AccessKind::Read, &access(33, 2, 1)).is_some());
        // Atomics do not collide with each other.
        assert_eq!(detector.access(16, 8, AccessKind::Atomic, &access(1, 2, 1)), None);
        assert_eq!(detector.access(20, 4, AccessKind::Atomic, &access(70, 2, 1)), None);
        assert!(detector.access(20, 4, AccessKind::Read, &access(99, 2, 1)).is_some());
    }
}
