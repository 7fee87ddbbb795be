//! Virtual registers of PTX, of which there are as many as a program likes, onto few: those that are never live together
//! share one. A warp is then small enough for the cache of the core that runs it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::mma::Mma;
use crate::op::*;

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    W32,
    W64,
    Pred,
}

impl Class {
    fn of(is_wide: bool) -> Class {
        if is_wide { Class::W64 } else { Class::W32 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Read,
    Written,
    ReadAndWritten,
}

/// Bits of all sets of live registers together; where there would be more, registers stay as they are.
const MOST_BITS: usize = 1 << 26;
/// The same for ways from returns to calls and through tables.
const MOST_WAYS: usize = 1 << 20;

/// Renumbers registers: how many of each class there are before and after. `constant` ones hold something from the
/// beginning, are never written, and come first.
pub(crate) fn allocate(
    ops: &mut [Op],
    guards: &mut [Guard],
    counts: [u32; 3],
    constant: &mut [(Class, &mut R)],
) -> [u32; 3] {
    let firsts = [0, counts[0], counts[0] + counts[1]];
    let number = |class: Class, register: R| (firsts[class as usize] + u32::from(register)) as usize;
    let total = counts.iter().sum::<u32>() as usize;
    let Some(spans) = spans(ops, guards, total, number) else { return counts };

    // In the order in which they begin to live; those that hold something from the beginning before all others.
    let mut fixed = vec![false; total];
    constant.iter().for_each(|(class, register)| fixed[number(*class, **register)] = true);
    let mut order: Vec<usize> =
        (0..total).filter(|register| fixed[*register] || spans[*register].is_some()).collect();
    let begin = |register: usize| spans[register].filter(|_| !fixed[register]).map(|(first, _)| first);
    order.sort_by_key(|register| (begin(*register), *register));

    let mut slots = vec![NONE; total];
    let mut used = [0u32; 3];
    // Slots that are free, and those that will be, by where.
    let mut free: [Vec<R>; 3] = Default::default();
    let mut ending: [BinaryHeap<Reverse<(u32, R)>>; 3] = Default::default();
    for register in order {
        let class = firsts.iter().rposition(|first| *first as usize <= register).expect("classes begin at 0");
        if let Some(first) = begin(register) {
            while ending[class].peek().is_some_and(|Reverse((last, _))| *last < first) {
                free[class].extend(ending[class].pop().map(|Reverse((_, slot))| slot));
            }
        }
        let slot = free[class].pop().unwrap_or_else(|| {
            used[class] += 1;
            (used[class] - 1) as R
        });
        slots[register] = slot;
        if let Some((_, last)) = spans[register].filter(|_| !fixed[register]) {
            ending[class].push(Reverse((last, slot)));
        }
    }

    for (op, guard) in ops.iter_mut().zip(guards) {
        each_register(op, guard, &mut |class, register, _| *register = slots[number(class, *register)]);
    }
    for (class, register) in constant {
        **register = slots[number(*class, **register)];
    }
    used
}

/// The first and the last operation at which each register is live; none for one that is never named. None at all where
/// finding them would take too much memory.
fn spans(
    ops: &mut [Op],
    guards: &mut [Guard],
    total: usize,
    number: impl Fn(Class, R) -> usize,
) -> Option<Vec<Option<(u32, u32)>>> {
    let blocks = Blocks::of(ops, guards)?;
    let words = total.div_ceil(64);
    if blocks.starts.len().saturating_mul(words * 64) > MOST_BITS {
        return None;
    }
    let mut spans: Vec<Option<(u32, u32)>> = vec![None; total];
    let mut reaches = |register: usize, at: usize| {
        let at = at as u32;
        let span = spans[register].get_or_insert((at, at));
        *span = (span.0.min(at), span.1.max(at));
    };
    // Of every block: what it reads before it writes it, and what it surely writes.
    let mut live_in = vec![vec![0u64; words]; blocks.starts.len()];
    let mut kills = live_in.clone();
    for (block, (read, killed)) in live_in.iter_mut().zip(&mut kills).enumerate() {
        for at in blocks.range(block, ops.len()) {
            let is_sure = guards[at] == Guard::ALWAYS;
            let mut written = Vec::new();
            each_register(&mut ops[at], &mut guards[at], &mut |class, register, role| {
                let register = number(class, *register);
                reaches(register, at);
                let (word, bit) = (register / 64, 1 << (register % 64));
                if role != Role::Written {
                    read[word] |= bit & !killed[word];
                }
                if role != Role::Read && is_sure {
                    written.push((word, bit));
                }
            });
            written.iter().for_each(|(word, bit)| killed[*word] |= bit);
        }
    }
    // Backwards until nothing is new.
    let mut live_out = vec![vec![0u64; words]; blocks.starts.len()];
    let mut waiting: Vec<usize> = (0..blocks.starts.len()).collect();
    let mut is_waiting = vec![true; waiting.len()];
    while let Some(block) = waiting.pop() {
        is_waiting[block] = false;
        for next in &blocks.successors[block] {
            live_out[block].iter_mut().zip(&live_in[*next]).for_each(|(out, of_next)| *out |= of_next);
        }
        let mut is_new = false;
        for word in 0..words {
            let through = live_out[block][word] & !kills[block][word];
            is_new |= through & !live_in[block][word] != 0;
            live_in[block][word] |= through;
        }
        if is_new {
            for before in &blocks.predecessors[block] {
                if !is_waiting[*before] {
                    is_waiting[*before] = true;
                    waiting.push(*before);
                }
            }
        }
    }
    for block in 0..blocks.starts.len() {
        let range = blocks.range(block, ops.len());
        for (set, at) in [(&live_in[block], range.start), (&live_out[block], range.end - 1)] {
            for (word, bits) in set.iter().enumerate() {
                let mut left = *bits;
                while left != 0 {
                    reaches(word * 64 + left.trailing_zeros() as usize, at);
                    left &= left - 1;
                }
            }
        }
    }
    Some(spans)
}

/// Operations that only run one after the other.
struct Blocks {
    starts: Vec<usize>,
    successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
}

impl Blocks {
    fn of(ops: &[Op], guards: &[Guard]) -> Option<Blocks> {
        // A function returns behind any call, as far as is known here.
        let behind_calls: Vec<usize> =
            (0..ops.len()).filter(|at| matches!(ops[*at], Op::Call { .. })).map(|at| at + 1).collect();
        let returns = ops.iter().filter(|op| matches!(op, Op::Return)).count();
        let through_tables = ops.iter().map(|op| match op {
            Op::BranchIndex { targets, .. } => targets.len(),
            _ => 0,
        });
        let ways = through_tables.fold(returns.saturating_mul(behind_calls.len()), usize::saturating_add);
        if ways > MOST_WAYS {
            return None;
        }
        let nexts = |at: usize| -> Option<Vec<usize>> {
            let mut nexts: Vec<usize> = match &ops[at] {
                Op::Branch { target } | Op::Call { target, .. } => vec![*target as usize],
                Op::BranchIndex { targets, .. } => targets.iter().map(|target| *target as usize).collect(),
                Op::Return => behind_calls.clone(),
                Op::Exit | Op::Trap => Vec::new(),
                _ => return None,
            };
            nexts.extend((guards[at] != Guard::ALWAYS).then_some(at + 1));
            nexts.retain(|next| *next < ops.len());
            Some(nexts)
        };
        let mut starts: Vec<usize> = (0..ops.len())
            .filter_map(|at| {
                nexts(at).map(|nexts| nexts.into_iter().chain((at + 1 < ops.len()).then_some(at + 1)))
            })
            .flatten()
            .chain((!ops.is_empty()).then_some(0))
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let block_at = |at: usize| starts.binary_search(&at).expect("a block begins wherever something goes");
        let mut blocks = Blocks {
            successors: vec![Vec::new(); starts.len()],
            predecessors: vec![Vec::new(); starts.len()],
            starts: Vec::new(),
        };
        for block in 0..starts.len() {
            let last = starts.get(block + 1).map_or(ops.len(), |next| *next) - 1;
            let nexts = nexts(last)
                .unwrap_or_else(|| (last + 1 < ops.len()).then_some(last + 1).into_iter().collect());
            for next in nexts.into_iter().map(block_at) {
                blocks.successors[block].push(next);
                blocks.predecessors[next].push(block);
            }
        }
        blocks.starts = starts;
        Some(blocks)
    }

    fn range(&self, block: usize, end: usize) -> std::ops::Range<usize> {
        self.starts[block]..self.starts.get(block + 1).map_or(end, |next| *next)
    }
}

/// Shows every register that an operation or its guard names, each place once.
fn each_register(op: &mut Op, guard: &mut Guard, see: &mut impl FnMut(Class, &mut R, Role)) {
    use Class::{Pred, W32, W64};
    use Role::{Read, ReadAndWritten, Written};
    let mut see = |class: Class, register: &mut R, role: Role| {
        if *register != NONE {
            see(class, register, role);
        }
    };
    see(Pred, &mut guard.register, Read);
    let address = match op {
        Op::Load(access) | Op::Store(access) => Some(&mut access.address),
        Op::Atomic(atomic) => Some(&mut atomic.address),
        Op::AsyncCopy(copy) => {
            each_base(&mut copy.to, &mut see);
            Some(&mut copy.from)
        }
        Op::BulkCopy(copy) => {
            each_base(&mut copy.to, &mut see);
            each_base(&mut copy.barrier, &mut see);
            Some(&mut copy.from)
        }
        Op::MemoryBarrier(barrier) => Some(&mut barrier.address),
        _ => None,
    };
    if let Some(address) = address {
        each_base(address, &mut see);
    }
    match op {
        Op::Alu { f, d, sources } => {
            let (classes, result) = f.classes();
            classes.iter().zip(sources).for_each(|(class, source)| see(*class, source, Read));
            see(result, d, Written);
        }
        Op::Compare { f, p, q, a, b, combine: _, c } => {
            let (classes, _) = f.classes();
            classes.iter().zip([a, b]).for_each(|(class, source)| see(*class, source, Read));
            see(Pred, &mut c.register, Read);
            see(Pred, p, Written);
            see(Pred, q, Written);
        }
        Op::Select32 { d, a, b, p } => {
            [a, b].into_iter().for_each(|source| see(W32, source, Read));
            see(Pred, &mut p.register, Read);
            see(W32, d, Written);
        }
        Op::Select64 { d, a, b, p } => {
            [a, b].into_iter().for_each(|source| see(W64, source, Read));
            see(Pred, &mut p.register, Read);
            see(W64, d, Written);
        }
        Op::Pred { f: _, d, a, b } => {
            [a, b].into_iter().for_each(|source| see(Pred, &mut source.register, Read));
            see(Pred, d, Written);
        }
        Op::Copy32 { d, a } => {
            see(W32, a, Read);
            see(W32, d, Written);
        }
        Op::Copy64 { d, a } => {
            see(W64, a, Read);
            see(W64, d, Written);
        }
        Op::Clock { d, wide, part: _ } => see(Class::of(*wide), d, Written),
        Op::Carry(Carry { kind, wide, signed: _, takes, gives, d, a, b, c, flag }) => {
            let class = Class::of(*wide);
            see(class, a, Read);
            see(class, b, Read);
            if matches!(kind, CarryKind::LowProduct | CarryKind::HighProduct) {
                see(class, c, Read);
            }
            see(class, d, Written);
            match (*takes, *gives) {
                (true, true) => see(Pred, flag, ReadAndWritten),
                (true, false) => see(Pred, flag, Read),
                (false, true) => see(Pred, flag, Written),
                (false, false) => {}
            }
        }
        Op::Load(access) => {
            let values = &mut access.values[..usize::from(access.lanes)];
            values.iter_mut().for_each(|value| see(Class::of(value.wide), &mut value.register, Written));
        }
        Op::Store(access) => {
            let values = &mut access.values[..usize::from(access.lanes)];
            values.iter_mut().for_each(|value| see(Class::of(value.wide), &mut value.register, Read));
        }
        Op::Atomic(atomic) => {
            let class = Class::of(atomic.bytes == 8);
            see(class, &mut atomic.a, Read);
            see(class, &mut atomic.b, Read);
            see(class, &mut atomic.d, Written);
        }
        Op::AsyncCopy(copy) => see(W32, &mut copy.source_bytes, Read),
        Op::BulkCopy(copy) => see(W32, &mut copy.bytes, Read),
        Op::MemoryBarrier(barrier) => {
            see(W32, &mut barrier.a, Read);
            see(Pred, &mut barrier.d, Written);
        }
        Op::Shuffle { mode: _, d, p, a, b, c, mask } => {
            [a, b, c, mask].into_iter().for_each(|source| see(W32, source, Read));
            see(W32, d, Written);
            see(Pred, p, Written);
        }
        Op::Vote { mode, d, a, mask } => {
            see(Pred, &mut a.register, Read);
            see(W32, mask, Read);
            see(if *mode == VoteMode::Ballot { W32 } else { Pred }, d, Written);
        }
        Op::Match { all: _, wide, d, p, a, mask } => {
            see(Class::of(*wide), a, Read);
            see(W32, mask, Read);
            see(W32, d, Written);
            see(Pred, p, Written);
        }
        Op::Redux { f: _, d, a, mask } => {
            [a, mask].into_iter().for_each(|source| see(W32, source, Read));
            see(W32, d, Written);
        }
        Op::Mma(mma) => {
            let class = Class::of(mma.is_wide());
            let Mma { shape: _, a, b, c, d } = &mut **mma;
            [a, b, c].into_iter().flatten().for_each(|source| see(class, source, Read));
            d.iter_mut().for_each(|sum| see(class, sum, Written));
        }
        Op::ActiveMask { d } => see(W32, d, Written),
        Op::Barrier(barrier) => {
            see(W32, &mut barrier.id, Read);
            see(W32, &mut barrier.threads, Read);
            see(Pred, &mut barrier.a.register, Read);
            match barrier.kind {
                BarrierKind::Count => see(W32, &mut barrier.d, Written),
                BarrierKind::And | BarrierKind::Or => see(Pred, &mut barrier.d, Written),
                BarrierKind::Sync | BarrierKind::Arrive => {}
            }
        }
        Op::WarpBarrier { mask } => see(W32, mask, Read),
        Op::BranchIndex { index, targets: _ } => see(W32, index, Read),
        Op::CommitCopies
        | Op::WaitForCopies { .. }
        | Op::CopyLocal { .. }
        | Op::Branch { .. }
        | Op::Call { .. }
        | Op::Return
        | Op::Exit
        | Op::Trap
        | Op::Nop => {}
    }
}

fn each_base(address: &mut Address, see: &mut impl FnMut(Class, &mut R, Role)) {
    match &mut address.base {
        Base::None => {}
        Base::W32(register) => see(Class::W32, register, Role::Read),
        Base::W64(register) => see(Class::W64, register, Role::Read),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::warp::Random;

    /// Registers that a program has at first, of each class; the first two of 32 bits are constants.
    const COUNTS: [u32; 3] = [14, 6, 5];

    struct Program {
        ops: Vec<Op>,
        guards: Vec<Guard>,
    }

    /// Copies, selections, logic, jumps and calls of the function behind `main` operations.
    fn program(random: &mut Random, main: usize, function: usize) -> Program {
        let mut program = Program { ops: Vec::new(), guards: Vec::new() };
        let (begin, end) = (main as u32, (main + function) as u32);
        for at in 0..end {
            let [source, other, source_64, first, second] =
                [14, 14, 6, 5, 5].map(|count| random.below(count) as R);
            let [d, d_64, d_pred] =
                [2 + random.below(12), random.below(6), random.below(5)].map(|register| register as R);
            let pred = |register: R| PredSource { register, negated: false };
            let target = match at < begin {
                true => random.below(main) as u32,
                false => begin + random.below(function) as u32,
            };
            let is_guarded = random.below(3) == 0;
            let op = match random.below(12) {
                _ if at + 1 == begin => Op::Exit,
                _ if at + 1 == end => Op::Return,
                0..4 => Op::Copy32 { d, a: source },
                4 => Op::Copy64 { d: d_64, a: source_64 },
                5 | 6 => Op::Select32 { d, a: source, b: other, p: pred(first) },
                7 => Op::Pred { f: PredOp::And, d: d_pred, a: pred(first), b: pred(second) },
                8 | 9 => Op::Branch { target },
                10 if at < begin => Op::Call { target: begin, locals: 0..0 },
                _ => Op::BranchIndex { index: source, targets: [target, at + 1].into() },
            };
            let last = at + 1 == begin || at + 1 == end;
            program.guards.push(match is_guarded && !last {
                true => Guard { register: second, negated: false },
                false => Guard::ALWAYS,
            });
            program.ops.push(op);
        }
        program
    }

    fn registers(program: &mut Program, at: usize) -> Vec<(Class, R, Role)> {
        let mut all = Vec::new();
        let see = &mut |class, register: &mut R, role| all.push((class, *register, role));
        each_register(&mut program.ops[at], &mut program.guards[at], see);
        all
    }

    /// Walks through both programs side by side: whoever reads a register finds in its slot what was last written to the
    /// register.
    fn walk(before: &mut Program, after: &mut Program, constants: [R; 2], random: &mut Random) -> usize {
        let (mut in_register, mut in_slot) = (HashMap::new(), HashMap::new());
        for (register, slot) in constants.into_iter().enumerate() {
            in_register.insert((Class::W32 as u8, register as R), register);
            in_slot.insert((Class::W32 as u8, slot), register);
        }
        let (mut at, mut calls, mut checked) = (0, Vec::new(), 0);
        for step in 2..400 {
            let (named, found) = (registers(before, at), registers(after, at));
            assert_eq!(named.len(), found.len());
            let runs = before.guards[at] == Guard::ALWAYS || random.below(2) == 0;
            for ((class, register, role), (_, slot, _)) in named.iter().zip(&found) {
                if let Some(value) =
                    in_register.get(&(*class as u8, *register)).filter(|_| *role != Role::Written)
                {
                    assert_eq!(
                        in_slot.get(&(*class as u8, *slot)),
                        Some(value),
                        "{class:?} {register} at {at}"
                    );
                    checked += 1;
                }
            }
            for ((class, register, role), (_, slot, _)) in named.into_iter().zip(found) {
                if role != Role::Read && runs {
                    in_register.insert((class as u8, register), step);
                    in_slot.insert((class as u8, slot), step);
                }
            }
            at = match &before.ops[at] {
                _ if !runs => at + 1,
                Op::Branch { target } => *target as usize,
                Op::BranchIndex { targets, .. } => targets[random.below(2)] as usize,
                Op::Call { target, .. } => {
                    calls.push(at + 1);
                    *target as usize
                }
                Op::Return => calls.pop().expect("only a call leads into the function"),
                Op::Exit => break,
                _ => at + 1,
            };
        }
        checked
    }

    #[test]
    fn whoever_reads_a_register_finds_what_was_written_to_it() {
        let (mut checked, mut fewer) = (0, 0);
        for seed in 0..400 {
            let (main, function) = (4 + seed as usize % 40, 1 + seed as usize % 7);
            let mut before = program(&mut Random(seed), main, function);
            let mut after = program(&mut Random(seed), main, function);
            let [mut zero, mut one] = [0, 1];
            let constant = &mut [(Class::W32, &mut zero), (Class::W32, &mut one)];
            let used = allocate(&mut after.ops, &mut after.guards, COUNTS, constant);
            assert!(used.iter().zip(COUNTS).all(|(used, before)| *used <= before), "{used:?}");
            fewer += usize::from(used != COUNTS);
            let random = &mut Random(seed + 1);
            checked += (0..20).map(|_| walk(&mut before, &mut after, [zero, one], random)).sum::<usize>();
        }
        println!("{checked} reads checked, in {fewer} of 400 programs there are fewer registers");
        assert!(checked > 10_000 && fewer > 100, "{checked} {fewer}");
    }

    #[test]
    fn a_chain_of_registers_takes_two() {
        let mut ops: Vec<Op> = (1..1000).map(|d| Op::Copy32 { d, a: d - 1 }).collect();
        let mut guards = vec![Guard::ALWAYS; ops.len()];
        assert_eq!(allocate(&mut ops, &mut guards, [1000, 0, 0], &mut [(Class::W32, &mut 0)]), [3, 0, 0]);
    }
}
