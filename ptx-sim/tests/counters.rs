//! What a launch counts, against what its definition gives for the addresses of the lanes.

mod harness;

use std::collections::HashSet;

use harness::Kernel;
use ptx_sim::Counters;

/// Lanes are at most so many accesses apart, all together.
const RANGE: u32 = 32 * 33;

/// Places of the lanes, in accesses.
fn patterns() -> Vec<[u32; 32]> {
    let of = |place: fn(u32) -> u32| std::array::from_fn(|lane| place(lane as u32));
    vec![
        of(|lane| lane),
        of(|lane| 31 - lane),
        of(|lane| 2 * lane),
        of(|lane| 32 * lane),
        of(|lane| lane * 13 % 32),
        of(|lane| lane * 37 % 101),
        of(|lane| lane % 2 * 64 + lane / 2),
        of(|lane| lane % 4 * 40 + lane),
    ]
}

/// What `access` counts where lanes below `lanes` take part (`%p1`), each with the address of its place in `%rd1`: `base` is
/// the register with the address of place 0 in global memory (`%rd2`), in shared memory (`%rd3`) or the generic one there
/// (`%rd4`). Every byte of both has been written.
fn counted(base: &str, access: &str, places: &[u32; 32], bytes: u32, lanes: u32) -> Counters {
    let run = |access: &str| {
        let size = RANGE * 16;
        let kernel = Kernel::new(format!(
            ".shared .align 16 .b8 sh[{size}];
            mov.u64 %rd3, sh; cvta.shared.u64 %rd4, %rd3; add.u64 %rd2, %in, 128;
            mov.u16 %h1, 0; mov.u32 %r2, 0; mul.lo.u32 %r3, %lane, 16;
            FILL: cvt.u64.u32 %rd5, %r3; add.u64 %rd5, %rd5, %rd3;
            st.shared.v4.u32 [%rd5], {{%r2, %r2, %r2, %r2}};
            add.u32 %r3, %r3, 512; setp.lt.u32 %p2, %r3, {size}; @%p2 bra FILL;
            bar.sync 0;
            mad.wide.u32 %rd5, %lane, 4, %in; ld.global.u32 %r1, [%rd5];
            mad.wide.u32 %rd1, %r1, {bytes}, {base}; setp.lt.u32 %p1, %lane, {lanes};
            {access}"
        ));
        let input = places.iter().copied().chain(std::iter::repeat_n(0, RANGE as usize * 4));
        kernel.words(&input.collect::<Vec<_>>()).run_natural().report.counters
    };
    let (with, without) = (run(access), run(""));
    let mut counted = Counters::default();
    macro_rules! subtract {
        ($($field:ident),*) => { $(counted.$field = with.$field - without.$field;)* };
    }
    subtract!(global_load_requests, global_load_sectors, global_load_bytes);
    subtract!(global_store_requests, global_store_sectors, global_store_bytes);
    subtract!(shared_requests, shared_bank_conflicts);
    subtract!(global_atomic_requests, global_atomics, shared_atomics);
    counted
}

/// Loads and stores: their text but for the space, and the bytes of a lane.
const ACCESSES: [(&str, &str, u32); 12] = [
    ("ld", "u8 %r4, [%rd1]", 1),
    ("ld", "u16 %h1, [%rd1]", 2),
    ("ld", "f32 %f1, [%rd1]", 4),
    ("ld", "u64 %rd6, [%rd1]", 8),
    ("ld", "v2.u32 {%r4, %r5}, [%rd1]", 8),
    ("ld", "v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]", 16),
    ("st", "u8 [%rd1], %r2", 1),
    ("st", "u16 [%rd1], %h1", 2),
    ("st", "u32 [%rd1], %r2", 4),
    ("st", "u64 [%rd1], %rd3", 8),
    ("st", "v2.u32 [%rd1], {%r2, %r2}", 8),
    ("st", "v4.u32 [%rd1], {%r2, %r2, %r2, %r2}", 16),
];

/// Compares what every access of these spaces counts, by all patterns and some lanes, with what is expected of its
/// operation, the places of the lanes that take part, and its bytes.
fn check(spaces: [(&str, &str); 2], expected: fn(&str, &[u32], u32) -> Counters) {
    for places in patterns() {
        for lanes in [32, 31, 16, 5, 1, 0] {
            for (operation, rest, bytes) in ACCESSES {
                let expected = expected(operation, &places[..lanes as usize], bytes);
                for (base, space) in spaces {
                    let text = format!("@%p1 {operation}{space}.{rest};");
                    assert_eq!(counted(base, &text, &places, bytes, lanes), expected, "{text} {places:?}");
                }
            }
        }
    }
}

#[test]
fn requests_sectors_and_bytes_of_global_memory() {
    check([("%rd2", ".global"), ("%rd2", "")], |operation, places, bytes| {
        let sectors: HashSet<u32> = places.iter().map(|place| place * bytes / 32).collect();
        let (requests, bytes) = (u64::from(!places.is_empty()), places.len() as u64 * u64::from(bytes));
        let mut counters = Counters::default();
        let counts = match operation {
            "ld" => [
                &mut counters.global_load_requests,
                &mut counters.global_load_sectors,
                &mut counters.global_load_bytes,
            ],
            _ => [
                &mut counters.global_store_requests,
                &mut counters.global_store_sectors,
                &mut counters.global_store_bytes,
            ],
        };
        for (count, number) in counts.into_iter().zip([requests, sectors.len() as u64, bytes]) {
            *count = number;
        }
        counters
    });
}

/// Passes of lanes that follow one another, as many as 128 bytes serve: the most different words of a bank.
fn conflicts(places: &[u32], bytes: u32) -> u64 {
    let words = bytes.div_ceil(4);
    let of_part = |part: &[u32]| {
        let touched = part.iter().flat_map(|place| (0..words).map(move |word| place * bytes / 4 + word));
        let touched: HashSet<u32> = touched.collect();
        let of_bank = |bank: u32| touched.iter().filter(|&word| word % 32 == bank).count();
        (0..32).map(of_bank).max().unwrap_or(0).saturating_sub(1) as u64
    };
    places.chunks((32 / words) as usize).map(of_part).sum()
}

#[test]
fn requests_and_conflicts_of_shared_memory() {
    check([("%rd3", ".shared"), ("%rd4", "")], |_, places, bytes| {
        let mut counters = Counters::default();
        counters.shared_requests = u64::from(!places.is_empty());
        counters.shared_bank_conflicts = conflicts(places, bytes);
        counters
    });
}

/// Lanes of one generic access that are in different spaces.
#[test]
fn a_generic_access_is_counted_in_both_spaces() {
    let places = std::array::from_fn(|lane| lane as u32);
    let split = "setp.ge.u32 %p3, %lane, 12; sub.u64 %rd7, %rd2, %rd4; @%p3 add.u64 %rd1, %rd1, %rd7;";
    let mut expected = Counters::default();
    // 12 to 31, 4 bytes each, of a place that begins a sector.
    (expected.global_load_requests, expected.global_load_sectors, expected.global_load_bytes) = (1, 3, 80);
    expected.shared_requests = 1;
    assert_eq!(counted("%rd4", &format!("{split} ld.u32 %r4, [%rd1];"), &places, 4, 32), expected);
}

#[test]
fn atomics_are_counted_by_request_and_by_thread() {
    let places = std::array::from_fn(|lane| lane as u32 / 2);
    for lanes in [32, 7, 0] {
        let mut global = Counters::default();
        (global.global_atomic_requests, global.global_atomics) = (u64::from(lanes > 0), lanes.into());
        for text in ["@%p1 atom.global.add.u32 %r4, [%rd1], 1;", "@%p1 red.global.add.u32 [%rd1], 1;"] {
            assert_eq!(counted("%rd2", text, &places, 4, lanes), global, "{text} {lanes}");
        }
        let mut shared = Counters::default();
        shared.shared_atomics = lanes.into();
        for text in ["@%p1 atom.shared.add.u32 %r4, [%rd1], 1;", "@%p1 red.shared.add.u32 [%rd1], 1;"] {
            assert_eq!(counted("%rd3", text, &places, 4, lanes), shared, "{text} {lanes}");
        }
    }
}

/// Everything is counted for each block, and ratios are of what was counted.
#[test]
fn blocks_add_up() {
    let kernel = Kernel::new(
        ".shared .align 8 .b8 sh[512];
        mov.u64 %rd1, sh; mad.wide.u32 %rd1, %tid, 8, %rd1; st.shared.u32 [%rd1], %tid;
        bar.sync 0; bar.sync 0;
        ld.shared.u32 %r1, [%rd1]; atom.shared.add.u32 %r1, [%rd1], 1;
        setp.lt.u32 %p1, %tid, 40; @!%p1 bra END;
        mad.wide.u32 %rd2, %tid, 8, %in; ld.global.u32 %r2, [%rd2];
        st.global.u16 [%slot], %r2; red.global.add.u32 [%in], 1;
        END: ret;",
    )
    .words(&[7; 128])
    .block(64);
    let one = kernel.clone().run_natural().report.counters;
    assert_eq!((one.blocks, one.barriers, one.shared_requests, one.shared_atomics), (1, 2, 4, 64));
    // Every second word: two lanes meet in each bank.
    assert_eq!(one.shared_bank_conflicts, 4);
    assert_eq!((one.global_load_requests, one.global_load_sectors, one.global_load_bytes), (2, 10, 160));
    assert_eq!((one.global_store_requests, one.global_store_sectors, one.global_store_bytes), (2, 20, 80));
    assert_eq!((one.global_atomic_requests, one.global_atomics), (2, 40));
    assert_eq!((one.global_load_efficiency(), one.global_store_efficiency()), (0.5, 0.125));
    assert_eq!(one.sectors_per_load_request(), 5.0);
    // No lane of the first warp branches and 8 of the second do not, which execute four instructions without the others.
    let idle = one.warp_instructions * 32 - one.thread_instructions;
    assert_eq!(idle, 32 + 8 + 4 * 24);
    assert_eq!(one.warp_execution_efficiency(), 1.0 - idle as f64 / (one.warp_instructions * 32) as f64);
    assert_eq!(Counters::default().warp_execution_efficiency(), 0.0);
    let mut expected = Counters::default();
    for _ in 0..3 {
        expected += one;
    }
    assert_eq!(expected.warp_instructions, 3 * one.warp_instructions);
    let three = kernel.grid(3).run_natural().report.counters;
    assert_eq!(three, expected);
    assert_eq!((three.blocks, three.barriers, three.global_atomics), (3, 6, 120));
}
