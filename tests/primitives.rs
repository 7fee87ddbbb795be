//! The device primitives that `prepare` passes are made of, each alone: compiled by NVRTC, run in the simulator in
//! several schedules, against plain Rust.

mod cuda;

use cuda::{from_bytes, to_bytes};
use ptx_sim::{Arg, Launch, Module, Schedule, Simulator};

const SCHEDULES: [Schedule; 3] = [Schedule::Natural, Schedule::Adversarial(1), Schedule::Adversarial(2)];

const PRIMITIVES: [&str; 7] = [
    include_str!("../templates/prelude/types.cuh"),
    include_str!("../templates/primitives/block_scan.cuh"),
    include_str!("../templates/primitives/grid_scan.cuh"),
    include_str!("../templates/primitives/partition.cuh"),
    include_str!("../templates/primitives/radix_sort.cuh"),
    include_str!("../templates/primitives/grid_scan_kernels.cuh"),
    include_str!("../templates/primitives/radix_sort_kernels.cuh"),
];

const KERNELS: &str = r#"
struct Entries {
  const uint32_t* entries;
  __device__ uint32_t operator()(uint64_t i) const { return entries[i]; }
};

extern "C" __global__ void block_scan(const uint32_t* in, uint32_t* prefix, uint32_t* totals) {
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  uint32_t total;
  // Twice: the second call must not meet what the first still reads.
  prefix[i] = block_exclusive_scan(in[i], &total);
  prefix[i] += 1000000 * block_exclusive_scan(1u, &total);
  totals[i] = total;
}

extern "C" __global__ void sum_chunk(uint64_t length, const uint32_t* entries, uint64_t* partials) {
  scan_sum_chunk(length, partials, Entries{entries});
}
extern "C" __global__ void partials(uint32_t num_partials, uint64_t length, uint64_t* sums, SumT* out, uint64_t* total) {
  scan_partials(num_partials, length, sums, out, total);
}
extern "C" __global__ void chunk(uint64_t length, const uint32_t* entries, const uint64_t* partials, SumT* out) {
  scan_chunk(length, partials, out, Entries{entries});
}

struct Key {
  const uint32_t* entries;
  __device__ uint32_t operator()(uint32_t item) const { return entries[item] % kBins; }
};

extern "C" __global__ void count(uint32_t num_items, const uint32_t* entries, uint32_t* offsets) {
  partition_count<kBins>(num_items, offsets, Key{entries});
}
extern "C" __global__ void offsets(uint32_t num_blocks, uint32_t* offsets, uint64_t* bin_counts) {
  partition_offsets<kBins>(num_blocks, offsets, bin_counts);
}
extern "C" __global__ void scatter(uint32_t num_items, const uint32_t* entries, const uint32_t* offsets, uint32_t* out) {
  partition_scatter<kBins>(num_items, offsets, Key{entries}, [=](uint32_t place, uint32_t item) { out[place] = item; });
}
"#;

fn module(threads: u32, sum_type: &str, bins: u32, arch: &str) -> Module {
    let [types, primitives @ ..] = PRIMITIVES;
    let constants = format!(
        "constexpr int kThreadsPerBlock = {threads};\nusing SumT = {sum_type};\nconstexpr int kBins = {bins};\n"
    );
    let source = format!("{types}{constants}{}{KERNELS}", primitives.concat());
    let artifact = cuda::compile(&source, arch).unwrap_or_else(|error| panic!("{error}"));
    Module::load(&artifact.images[0].ptx).unwrap()
}

/// Device memory of one test, and launches on it.
struct Machine<'a> {
    simulator: Simulator,
    module: &'a Module,
    threads: u32,
    schedule: Schedule,
}

impl<'a> Machine<'a> {
    fn new(module: &'a Module, threads: u32, schedule: Schedule) -> Machine<'a> {
        Machine { simulator: Simulator::new(), module, threads, schedule }
    }

    /// Memory that nobody wrote: reading it is a fault.
    fn memory(&mut self, bytes: usize) -> Arg {
        Arg::U64(self.simulator.allocate(bytes.max(1) as u64).unwrap())
    }

    fn written<T: cuda::Plain>(&mut self, entries: &[T]) -> Arg {
        let memory = self.memory(entries.len() * T::BYTES);
        let Arg::U64(address) = memory else { unreachable!() };
        self.simulator.write(address, &to_bytes(entries)).unwrap();
        memory
    }

    fn launch(&mut self, kernel: &str, blocks: u32, args: &[&Arg]) {
        if blocks == 0 {
            return;
        }
        let launch = Launch::new(blocks, self.threads).schedule(self.schedule);
        let launch = args.iter().fold(launch, |launch, arg| launch.arg((*arg).clone()));
        self.simulator
            .launch(self.module, kernel, &launch)
            .unwrap_or_else(|error| panic!("{kernel}: {error}"));
    }

    fn read<T: cuda::Plain>(&mut self, memory: &Arg, entries: usize) -> Vec<T> {
        let Arg::U64(address) = memory else { unreachable!() };
        let mut bytes = vec![0; entries * T::BYTES];
        self.simulator.read(*address, &mut bytes).unwrap();
        from_bytes(&bytes)
    }
}

fn numbers(count: usize, below: u64) -> Vec<u32> {
    let mut state = 5u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below) as u32
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn a_scan_over_a_block() {
    for threads in [32, 64, 1024] {
        let module = module(threads, "uint32_t", 1, "sm_90");
        for schedule in SCHEDULES {
            let entries = numbers(3 * threads as usize, 9);
            let mut machine = Machine::new(&module, threads, schedule);
            let input = machine.written(&entries);
            let [prefix, totals] = [0, 1].map(|_| machine.memory(entries.len() * 4));
            machine.launch("block_scan", 3, &[&input, &prefix, &totals]);
            let mut expected = Vec::new();
            for block in entries.chunks(threads as usize) {
                let mut sum = 0;
                for (thread, entry) in block.iter().enumerate() {
                    expected.push(sum + 1_000_000 * thread as u32);
                    sum += entry;
                }
            }
            assert_eq!(machine.read::<u32>(&prefix, entries.len()), expected);
            assert_eq!(machine.read::<u32>(&totals, entries.len()), vec![threads; entries.len()]);
        }
    }
}

/// Sums of both widths, also in place; no entry, and entries around the edges of tiles and chunks.
#[test]
fn a_scan_over_the_grid() {
    fn check<T: cuda::Plain + From<u32> + std::ops::AddAssign>(
        module: &Module,
        threads: u32,
        in_place: bool,
        large: u32,
    ) {
        let tile = threads as usize;
        for (length, schedule) in [0, 1, tile - 1, tile, tile + 1, 5 * tile, 40 * tile + 7]
            .into_iter()
            .flat_map(|length| SCHEDULES.map(|schedule| (length, schedule)))
        {
            for max_blocks in [1, 3, 1024] {
                let blocks = length.div_ceil(tile).min(max_blocks) as u32;
                let mut entries = numbers(length, 1000);
                if let Some(first) = entries.first_mut() {
                    *first += large;
                }
                let mut machine = Machine::new(module, threads, schedule);
                // One entry more: in place, the sum lies behind the entries.
                let room: Vec<u32> = entries.iter().copied().chain([77]).collect();
                let input = machine.written(&room);
                let out = if in_place { input.clone() } else { machine.memory((length + 1) * T::BYTES) };
                let (partials, total) = (machine.memory(blocks as usize * 8), machine.memory(8));
                let length_arg = Arg::U64(length as u64);
                machine.launch("sum_chunk", blocks, &[&length_arg, &input, &partials]);
                machine.launch("partials", 1, &[&Arg::U32(blocks), &length_arg, &partials, &out, &total]);
                machine.launch("chunk", blocks, &[&length_arg, &input, &partials, &out]);
                let mut sum = T::from(0);
                let mut expected = vec![sum];
                for entry in &entries {
                    sum += T::from(*entry);
                    expected.push(sum);
                }
                let found = machine.read::<T>(&out, length + 1);
                assert!(found == expected, "{length} entries, {blocks} blocks of {threads}, {schedule:?}");
                let wide: u64 = entries.iter().map(|entry| u64::from(*entry)).sum();
                assert_eq!(machine.read::<u64>(&total, 1), [wide]);
            }
        }
    }
    for threads in [32, 256] {
        check::<u32>(&module(threads, "uint32_t", 1, "sm_90"), threads, true, 0);
        check::<u64>(&module(threads, "uint64_t", 1, "sm_75"), threads, false, u32::MAX - 1000);
    }
}

/// The sum of 32-bit integers that 32 bits do not hold is known all the same, and what comes before is right.
#[test]
fn a_sum_of_a_scan_that_has_no_room_for_it() {
    let (threads, large) = (32, u32::MAX - 5);
    let module = module(threads, "uint32_t", 1, "sm_90");
    // Within a thread, between threads, between blocks, and between what one block and the next find.
    for (length, max_blocks, others) in
        [(64, 1, [0, 32]), (64, 1, [3, 4]), (64, 2, [31, 32]), (2048, 64, [5, 2047])]
    {
        for schedule in SCHEDULES {
            let blocks = (length as u32 / threads).min(max_blocks);
            let mut entries = vec![0_u32; length + 1];
            others.iter().for_each(|place| entries[*place] = large);
            let mut machine = Machine::new(&module, threads, schedule);
            let input = machine.written(&entries);
            let (partials, total) = (machine.memory(blocks as usize * 8), machine.memory(8));
            let length_arg = Arg::U64(length as u64);
            machine.launch("spmv_scan_sum_chunk", blocks, &[&length_arg, &input, &partials]);
            machine.launch(
                "spmv_scan_partials",
                1,
                &[&Arg::U32(blocks), &length_arg, &partials, &input, &total],
            );
            machine.launch("spmv_scan_chunk", blocks, &[&length_arg, &input, &partials, &input]);
            assert_eq!(machine.read::<u64>(&total, 1), [2 * u64::from(large)], "{others:?}, {schedule:?}");
            let before = |place| if place <= others[0] { 0 } else { large };
            let expected: Vec<u32> = (0..=others[1]).map(before).collect();
            assert_eq!(machine.read::<u32>(&input, others[1] + 1), expected, "{others:?}, {schedule:?}");
        }
    }
}

#[test]
fn a_stable_partition() {
    for (threads, bins, arch) in
        [(32, 32, "sm_90"), (64, 1, "sm_90"), (256, 7, "sm_75"), (1024, 32, "sm_100")]
    {
        let module = module(threads, "uint32_t", bins, arch);
        let tile = threads as usize;
        for length in [0, 1, tile, tile + 1, 9 * tile + 5] {
            for (schedule, max_blocks) in SCHEDULES.into_iter().zip([1, 3, 256]) {
                let blocks = length.div_ceil(tile).min(max_blocks) as u32;
                // Few keys and many: the second half is all of one.
                let mut entries = numbers(length, u64::from(bins));
                entries[length / 2..].fill(bins / 2);
                let mut machine = Machine::new(&module, threads, schedule);
                let (items, input) = (Arg::U32(length as u32), machine.written(&entries));
                let offsets = machine.memory((blocks * bins) as usize * 4);
                let (counts, out) = (machine.memory(bins as usize * 8), machine.memory(length * 4));
                machine.launch("count", blocks, &[&items, &input, &offsets]);
                machine.launch("offsets", 1, &[&Arg::U32(blocks), &offsets, &counts]);
                machine.launch("scatter", blocks, &[&items, &input, &offsets, &out]);
                let mut expected: Vec<u32> = (0..length as u32).collect();
                expected.sort_by_key(|item| entries[*item as usize]);
                let found = machine.read::<u32>(&out, length);
                assert!(
                    found == expected,
                    "{length} items, {bins} bins, {blocks} blocks of {threads}, {schedule:?}"
                );
                let count = |bin| entries.iter().filter(|entry| **entry == bin).count() as u64;
                assert_eq!(
                    machine.read::<u64>(&counts, bins as usize),
                    (0..bins).map(count).collect::<Vec<_>>()
                );
            }
        }
    }
}

/// Four digits one after the other, with the scan of the counts in place, as plans do.
#[test]
fn a_radix_sort() {
    for (threads, arch) in [(32, "sm_90"), (256, "sm_75"), (1024, "sm_100")] {
        let module = module(threads, "uint32_t", 1, arch);
        let tile = threads as usize;
        for length in [0, 1, tile + 1, 9 * tile + 5] {
            for (schedule, max_blocks) in SCHEDULES.into_iter().zip([1, 3, 1024]) {
                let blocks = length.div_ceil(tile).min(max_blocks) as u32;
                // Keys of all sizes, many of them several times.
                let keys = numbers(length, 1 << 31);
                let key = |i: usize| if i.is_multiple_of(3) { keys[i] % 5 } else { keys[i] * 2 };
                let pairs: Vec<u32> = (0..length).flat_map(|i| [key(i), i as u32]).collect();
                let mut machine = Machine::new(&module, threads, schedule);
                let mut from = machine.written(&pairs);
                let mut to = machine.memory(pairs.len() * 4);
                let num_places = 256 * blocks as usize;
                let scan_blocks = num_places.div_ceil(tile).min(1024) as u32;
                let places = machine.memory((num_places + 1) * 4);
                let (sums, total) = (machine.memory(scan_blocks as usize * 8), machine.memory(8));
                let (items, num_places) = (Arg::U32(length as u32), Arg::U64(num_places as u64));
                for shift in [0, 8, 16, 24].map(Arg::U32) {
                    machine.launch("spmv_sort_count", blocks, &[&items, &from, &shift, &places]);
                    machine.launch("spmv_scan_sum_chunk", scan_blocks, &[&num_places, &places, &sums]);
                    let partials = [&Arg::U32(scan_blocks), &num_places, &sums, &places, &total];
                    machine.launch("spmv_scan_partials", 1, &partials);
                    machine.launch("spmv_scan_chunk", scan_blocks, &[&num_places, &places, &sums, &places]);
                    machine.launch("spmv_sort_scatter", blocks, &[&items, &from, &shift, &places, &to]);
                    std::mem::swap(&mut from, &mut to);
                }
                let mut expected: Vec<(u32, u32)> = (0..length).map(|i| (key(i), i as u32)).collect();
                expected.sort_by_key(|pair| pair.0);
                let expected: Vec<u32> = expected.into_iter().flat_map(|pair| [pair.0, pair.1]).collect();
                let found = machine.read::<u32>(&from, pairs.len());
                assert!(found == expected, "{length} pairs, {blocks} blocks of {threads}, {schedule:?}");
            }
        }
    }
}
