//! Memory with a shadow: what is allocated and what is initialised.

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

    /// As [`resize`](Self::resize), or not where the host has too little memory: whether it did.
    fn try_resize(&mut self, len: u64) -> bool {
        let more = (len.div_ceil(8) as usize).saturating_sub(self.data.len());
        let has_room = [&mut self.data, &mut self.shadow].map(|words| words.try_reserve_exact(more).is_ok());
        if has_room != [true; 2] {
            return false;
        }
        self.resize(len);
        true
    }

    pub(crate) fn resize(&mut self, len: u64) {
        let words = len.div_ceil(8) as usize;
        self.data.resize_with(words, || AtomicU64::new(0));
        self.shadow.resize_with(words, || AtomicU64::new(0));
        self.len = len;
        // What was longer before may have had these.
        self.mark_free(len, 8 * words as u64 - len);
    }

    /// Marks bytes as allocated and not initialised, whatever they were.
    pub(crate) fn mark_allocated(&self, at: u64, bytes: u64) {
        self.fill(&self.shadow, at, bytes, ALLOCATED);
    }

    pub(crate) fn mark_free(&self, at: u64, bytes: u64) {
        self.fill(&self.shadow, at, bytes, FREE);
    }

    pub(crate) fn mark_initialised(&self, at: u64, bytes: u64) {
        self.fill(&self.shadow, at, bytes, INITIALISED);
    }

    fn fill(&self, words: &[AtomicU64], at: u64, bytes: u64, byte: u8) {
        let mut at = at;
        let end = at + bytes;
        while at < end {
            if at.is_multiple_of(8) && end - at >= 8 {
                words[(at / 8) as usize].store(u64::from(byte) * 0x0101_0101_0101_0101, Relaxed);
                at += 8;
            } else {
                self.byte(words, at).store(byte, Relaxed);
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

    /// Initialised bytes; offset and number are multiples of 8.
    pub(crate) fn load_bytes(&self, at: u64, bytes: u64) -> Result<Vec<u8>, Bad> {
        let mut loaded = Vec::with_capacity(bytes as usize);
        for word in (0..bytes).step_by(8) {
            loaded.extend_from_slice(&self.load(at.wrapping_add(word), 8)?.to_le_bytes());
        }
        Ok(loaded)
    }

    /// The first byte that is initialised, of bytes inside; offset and number are multiples of 8.
    pub(crate) fn first_initialised(&self, at: u64, bytes: u64) -> Option<u64> {
        let shadow = |at: u64| self.u64_at(&self.shadow, at) & 0x0202_0202_0202_0202;
        let found = (at..at + bytes).step_by(8).find(|at| shadow(*at) != 0)?;
        Some(found + u64::from(shadow(found).trailing_zeros() / 8))
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
    /// Offsets and bytes, by offset.
    allocations: Vec<(u64, u64)>,
}

impl Global {
    pub(crate) fn new() -> Global {
        Global { memory: Memory::new(GRANULE), allocations: Vec::new() }
    }

    /// Behind all others as long as the memory reaches, so that what was freed stays free for a while and is found where
    /// it is used; then in the first gap. Who still uses what had its place there before is not found.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let last = self.allocations.len();
        // Where an allocation would lie in front of another, and where its room would end.
        let place = |index: usize| {
            let before = index.checked_sub(1).map_or(GRANULE, |before| {
                let (at, bytes) = self.allocations[before];
                at + bytes
            });
            let at = (before + GRANULE).next_multiple_of(GRANULE);
            Some((at, at.checked_add(bytes)?.checked_add(GRANULE)?))
        };
        let fits = |index: &usize| {
            let limit = self.allocations.get(*index).map_or(self.memory.len(), |(at, _)| *at);
            place(*index).is_some_and(|(_, end)| end <= limit)
        };
        let index = std::iter::once(last).chain(0..last).find(fits).unwrap_or(last);
        let (at, end) = place(index)?;
        if end > WINDOW {
            return None;
        }
        if end > self.memory.len() {
            let ahead = end.max(self.memory.len() * 2).min(end + (1 << 28));
            if !self.memory.try_resize(ahead) && !self.memory.try_resize(end) {
                return None;
            }
        }
        self.memory.mark_allocated(at, bytes);
        self.allocations.insert(index, (at, bytes));
        Some(GLOBAL_BASE + at)
    }

    /// Frees what was allocated at an address; says whether it was.
    pub(crate) fn free(&mut self, address: u64) -> bool {
        let at = address.wrapping_sub(GLOBAL_BASE);
        let Some(index) = self.allocations.iter().position(|(start, _)| *start == at) else { return false };
        let (at, bytes) = self.allocations.remove(index);
        // Whoever has this room next finds it as new.
        self.memory.fill(&self.memory.data, at, bytes, 0);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_the_host_has_not_is_not_given() {
        let mut memory = Memory::new(16);
        assert!(!memory.try_resize(1 << 62) && memory.len() == 16);
        assert!(memory.try_resize(32) && memory.len() == 32);
    }

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
}
