//! Barriers in shared memory and the bulk copies that they count.

mod harness;

use std::time::{Duration, Instant};

use harness::{Kernel, SCHEDULES};
use ptx_sim::{Arg, FaultKind, Launch, Module, Schedule, Simulator};

const COPY: &str = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
const TILES: u32 = 7;

/// A ring of two tiles of 64 words: lane 0 of warp 0 fills it, warps 1 and 2 put three times each word and the tile's number
/// behind the input. The parts are left out by tests.
struct Pipeline {
    wait_full: &'static str,
    wait_empty: &'static str,
    meet: &'static str,
    meet_ready: &'static str,
}

const PIPELINE: Pipeline = Pipeline {
    wait_full: "FULL: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p4, [%r6], %r7; @!%p4 bra FULL;",
    wait_empty: "EMPTY: mbarrier.try_wait.parity.shared.b64 %p4, [%r6+16], %r8; @!%p4 bra EMPTY;",
    meet: "bar.warp.sync -1;",
    meet_ready: "bar.sync 0;",
};

impl Pipeline {
    fn kernel(&self) -> Kernel {
        let Pipeline { wait_full, wait_empty, meet, meet_ready } = self;
        let of_tile = "and.b32 %r4, %r3, 1; shl.b32 %r5, %r4, 3; add.u32 %r6, %r2, %r5; shr.u32 %r7, %r3, 1; and.b32 %r7, %r7, 1;
             xor.b32 %r8, %r7, 1; shl.b32 %r9, %r4, 8; add.u32 %r9, %r9, %r1; mul.wide.u32 %rd1, %r3, 256; add.s64 %rd1, %rd1, %in;";
        let body = format!(
            "mov.u32 %r1, ring; mov.u32 %r2, bars; mov.u32 %r3, 0; mov.u32 %r10, 128; setp.ne.u32 %p1, %tid, 0; @%p1 bra READY;
             mbarrier.init.shared.b64 [%r2], 1; mbarrier.init.shared::cta.b64 [%r2+8], 1;
             mbarrier.init.shared.b64 [bars+16], 2; mbarrier.init.shared.b64 [%r2+24], 2; fence.mbarrier_init.release.cluster;
             READY: {meet_ready}
             setp.ge.u32 %p2, %tid, 32; @%p2 bra CONSUME; setp.ne.u32 %p3, %lane, 0; @%p3 bra END;
             PRODUCE: {of_tile} {wait_empty}
             mbarrier.arrive.expect_tx.release.cta.shared.b64 _, [%r6], 256;
             {COPY} [%r9], [%rd1], 128, [%r6];
             cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r9+128], [%rd1+128], %r10, [%r6];
             add.u32 %r3, %r3, 1; setp.lt.u32 %p5, %r3, {TILES}; @%p5 bra PRODUCE; bra END;
             CONSUME: sub.u32 %r20, %tid, 32; shl.b32 %r20, %r20, 2; cvt.u64.u32 %rd2, %r20; setp.eq.u32 %p6, %lane, 0;
             NEXT: {of_tile} {wait_full}
             add.u32 %r11, %r9, %r20; ld.shared.u32 %r12, [%r11]; {meet}
             @%p6 mbarrier.arrive.release.cta.shared::cta.b64 _, [%r6+16];
             mad.lo.u32 %r12, %r12, 3, %r3; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3+{}], %r12;
             add.u32 %r3, %r3, 1; setp.lt.u32 %p5, %r3, {TILES}; @%p5 bra NEXT;
             END: ret;",
            TILES * 256
        );
        let words: Vec<u32> = (0..2 * 64 * TILES).map(|word| word * word + 5).collect();
        Kernel::new(body)
            .module(".shared .align 16 .b8 ring[512]; .shared .align 8 .b64 bars[4];")
            .words(&words)
            .block(96)
    }

    /// The faults in many schedules, the natural one first.
    #[track_caller]
    fn faults(&self) -> Vec<FaultKind> {
        let kernel = self.kernel();
        let seeds = (0..20).map(Schedule::Adversarial);
        std::iter::once(Schedule::Natural).chain(seeds).map(|schedule| kernel.fault(schedule).kind).collect()
    }
}

fn is_race(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::SharedRace { .. })
}

fn is_uninitialised(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::Uninitialised { space: "shared", .. })
}

#[test]
fn a_pipeline_of_two_stages() {
    let kernel = PIPELINE.kernel();
    let out = kernel.run();
    let words: Vec<u32> = kernel.input.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
    let (first, second) = words.split_at(64 * TILES as usize);
    let expected: Vec<u32> = (0..).zip(first).map(|(index, word)| word * 3 + index / 64).collect();
    assert_eq!(second.len(), expected.len());
    assert_eq!(out.input_words(), [first, &expected].concat());
    for seed in 0..200 {
        match kernel.run_with(Schedule::Adversarial(seed), 2) {
            Ok(other) => assert_eq!(other.input, out.input, "{seed}"),
            Err(error) => panic!("{seed}: {error}"),
        }
    }
    // Fourteen copies of 128 bytes; who waits lets others go on.
    let counters = out.report.counters;
    assert_eq!((counters.global_load_requests, counters.global_load_bytes), (14, 14 * 128));
    assert_eq!((counters.global_load_sectors, counters.global_load_efficiency()), (14 * 4, 1.0));
    assert!(counters.warp_instructions < 2000, "{counters:?}");
    // Blocks have barriers of their own.
    let two = kernel.grid(2).run_with(Schedule::Natural, 1).unwrap();
    assert_eq!(two.input, out.input);
}

#[test]
fn what_a_pipeline_must_not_leave_out() {
    // Readers that do not wait find nothing, or what they are not ordered behind.
    let faults = Pipeline { wait_full: "", ..PIPELINE }.faults();
    assert!(faults.iter().all(is_uninitialised), "{faults:?}");
    // Lanes that read when lane 0 has arrived already; some of them find that the next copy has begun.
    let faults = Pipeline { meet: "", ..PIPELINE }.faults();
    assert!(is_race(&faults[0]), "{faults:?}");
    assert!(faults.iter().all(|kind| is_race(kind) || is_uninitialised(kind)), "{faults:?}");
    // A producer that does not wait for readers arrives a second time in a phase whose copies nobody has waited for,
    // or copies to what is read.
    let faults = Pipeline { wait_empty: "", ..PIPELINE }.faults();
    assert!(matches!(faults[0], FaultKind::BadOperand { .. }), "{faults:?}");
    assert!(faults.iter().any(is_race), "{faults:?}");
    // Barriers that others use before they follow who made them.
    let faults = Pipeline { meet_ready: "", ..PIPELINE }.faults();
    assert!(is_race(&faults[0]), "{faults:?}");
    assert!(faults.iter().all(|kind| is_race(kind) || is_uninitialised(kind)), "{faults:?}");
}

/// Two warps with two barriers for one arrival, `bars` and `bars+8`; lane 0 of the first one does `first`, the second warp
/// `second`, whose lane 0 has %p2.
fn two(first: &str, second: &str) -> Kernel {
    Kernel::new(format!(
        "setp.eq.u32 %p2, %lane, 0; setp.ne.u32 %p1, %tid, 0; @%p1 bra READY;
         mbarrier.init.shared.b64 [bars], 1; mbarrier.init.shared.b64 [bars+8], 1;
         READY: bar.sync 0; setp.ge.u32 %p3, %tid, 32; @%p3 bra SECOND; @!%p2 bra END;
         {first}
         bra END; SECOND: mov.u32 %r20, sh; mad.lo.u32 %r20, %lane, 4, %r20;
         {second}
         END: ret;"
    ))
    .module(".shared .align 16 .b8 sh[256]; .shared .align 8 .b64 bars[2];")
    .words(&[7; 64])
    .block(64)
}

fn wait(label: &str, barrier: &str, parity: u32) -> String {
    format!("{label}: mbarrier.test_wait.parity.shared.b64 %p4, [{barrier}], {parity}; @!%p4 bra {label};")
}

/// Waits for a word of global memory, which orders nothing in shared memory.
fn spin(label: &str, at: u32) -> String {
    format!("{label}: ld.volatile.global.u32 %r1, [%in+{at}]; setp.eq.u32 %p4, %r1, 7; @%p4 bra {label};")
}

#[test]
fn copies_to_what_others_read_are_races() {
    let expect = "mbarrier.arrive.expect_tx.shared.b64 _, [bars], 128;";
    let copy = format!("{expect} {COPY} [sh], [%in+128], 128, [bars];");
    let read = "ld.shared.u32 %r2, [%r20];";
    let set = "@%p2 st.volatile.global.u32 [%in], 1;";
    let full = wait("FULL", "bars", 0);
    // Ordered by nothing but global memory, and by a barrier.
    let empty = wait("EMPTY", "bars+8", 0);
    let seen = spin("SEEN", 0);
    let release = "bar.warp.sync -1; @%p2 mbarrier.arrive.shared.b64 _, [bars+8];";
    let rest = wait("LAST", "bars", 1);
    let race = two(&format!("{copy} {seen} {copy} {rest}"), &format!("{full} {read} {set}"));
    for schedule in SCHEDULES {
        let fault = race.fault(schedule);
        assert!(is_race(&fault.kind), "{fault}");
        assert_eq!(fault.thread, [0, 0, 0], "{fault}");
    }
    two(&format!("{copy} {empty} {copy} {rest}"), &format!("{full} {read} {release}")).run();
    // A lane that arrives by itself is ordered with what it did, and with nothing that others did.
    let own = format!("@!%p2 bra END; {full} {read} mbarrier.arrive.shared.b64 _, [bars+8];");
    two(&format!("{copy} {empty} {copy} {rest}"), &own).run();
    let other = format!("{full} @!%p2 {read} {set} @%p2 mbarrier.arrive.shared.b64 _, [bars+8];");
    for schedule in SCHEDULES {
        let fault = two(&format!("{copy} {seen} {empty} {copy} {rest}"), &other).fault(schedule);
        assert!(is_race(&fault.kind) || is_uninitialised(&fault.kind), "{fault}");
    }
    // A reader that lets another wait for it; a barrier of the block makes it follow.
    let wait_and_tell = format!("{copy} {full} st.volatile.global.u32 [%in], 1;");
    for schedule in SCHEDULES {
        let fault = two(&wait_and_tell, &format!("{seen} {read}")).fault(schedule);
        assert!(is_race(&fault.kind), "{fault}");
        let FaultKind::SharedRace { other_thread, other_wrote, .. } = fault.kind else { unreachable!() };
        assert_eq!((other_thread, other_wrote), (Some(0), true));
    }
    two(&format!("{copy} {full} barrier.arrive 1, 64;"), &format!("barrier.sync 1, 64; {read}")).run();
}

#[test]
fn what_is_written_under_a_copy_is_a_race() {
    let copy = format!(
        "mbarrier.arrive.expect_tx.shared.b64 _, [bars], 256; {COPY} [sh], [%in], 128, [bars]; {COPY} [sh+128], [%in], 128, [bars];"
    );
    let full = wait("FULL", "bars", 0);
    let overlap = format!(
        "mbarrier.arrive.expect_tx.shared.b64 _, [bars], 256; {COPY} [sh], [%in], 128, [bars]; {COPY} [sh+112], [%in], 128, [bars]; {full}"
    );
    for body in [format!("{copy} st.shared.u8 [sh+131], 7; {full}"), overlap] {
        for schedule in SCHEDULES {
            let fault = two(&body, "").fault(schedule);
            let FaultKind::SharedRace { other_wrote: true, .. } = fault.kind else { panic!("{fault}") };
        }
    }
    // Read by the one who began it.
    for schedule in SCHEDULES {
        let fault = two(&format!("{copy} ld.shared.u32 %r1, [sh+4];"), "").fault(schedule);
        assert!(is_uninitialised(&fault.kind), "{fault}");
    }
}

#[test]
fn phases_count_arrivals_and_bytes() {
    // All lanes of a warp arrive at once, twice a phase.
    let body = format!(
        "setp.eq.u32 %p1, %lane, 0; @%p1 mbarrier.init.shared.b64 [bars], 64; bar.warp.sync -1;
         mbarrier.test_wait.parity.shared.b64 %p5, [bars], 1; selp.b32 %r2, 1, 0, %p5;
         mbarrier.arrive.shared.b64 _, [bars]; mbarrier.test_wait.parity.shared.b64 %p5, [bars], 0; selp.b32 %r3, 1, 0, %p5;
         mbarrier.arrive.shared.b64 _, [bars]; mbarrier.test_wait.parity.shared.b64 %p5, [bars], 0; selp.b32 %r4, 1, 0, %p5;
         {} mbarrier.test_wait.parity.shared.b64 %p5, [bars], 1; selp.b32 %r5, 1, 0, %p5;
         st.global.v4.u32 [%slot], {{%r2, %r3, %r4, %r5}};",
        wait("L", "bars", 0)
    );
    let module = ".shared .align 16 .b8 sh[256]; .shared .align 8 .b64 bars[2];";
    assert_eq!(Kernel::new(body).module(module).run().out, [[1, 0, 1, 0]; 32]);
    // A lane that does not ask keeps its predicate.
    let body = "setp.eq.u32 %p1, %lane, 0; @%p1 mbarrier.init.shared.b64 [bars], 1; bar.warp.sync -1; setp.gt.u32 %p5, %lane, 3;
                setp.lt.u32 %p2, %lane, 2; @%p2 mbarrier.try_wait.parity.shared.b64 %p5, [bars], 1; selp.b32 %r2, 1, 0, %p5;
                st.global.u32 [%slot], %r2;";
    assert_eq!(Kernel::new(body).module(module).run().words()[..5], [1, 1, 0, 0, 1]);
    // Copies of which the first was begun before their bytes are told, one of nothing.
    let first = format!(
        "mov.u32 %r2, bars; {COPY} [sh], [%in], 0, [%r2]; {COPY} [sh], [%in], 16, [%r2]; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 16; {}
         ld.shared.u32 %r3, [sh+12]; st.global.u32 [%slot], %r3;",
        wait("L", "bars", 0)
    );
    assert_eq!(two(&first, "").run().words()[0], 7);
    // Sectors at both ends.
    let first = format!(
        "mbarrier.arrive.expect_tx.shared.b64 _, [bars], 32; {COPY} [sh], [%in+16], 32, [bars]; {}",
        wait("L", "bars", 0)
    );
    let counters = two(&first, "").run().report.counters;
    assert_eq!((counters.global_load_sectors, counters.global_load_bytes), (2, 32));
}

#[test]
fn a_wait_that_never_ends_is_reported_soon() {
    let started = Instant::now();
    let expect = "mbarrier.arrive.expect_tx.shared.b64 _, [bars], 144;";
    let (for_ever, second) = (wait("L", "bars", 0), wait("M", "bars+8", 0));
    for (first, second) in [
        (for_ever.clone(), String::new()),
        (for_ever.clone(), second.clone()),
        (String::new(), second),
        // More bytes than come.
        (format!("{expect} {COPY} [sh], [%in], 128, [bars]; {for_ever}"), String::new()),
        // Lanes that wait while others of their warp compute.
        (
            for_ever,
            "@%p2 bra E; mov.u32 %r1, 0; K: add.u32 %r1, %r1, 1; setp.lt.u32 %p5, %r1, 5000; @%p5 bra K; E:"
                .into(),
        ),
    ] {
        for schedule in SCHEDULES {
            let fault = two(&first, &second).grid(2).fault(schedule);
            assert!(matches!(fault.kind, FaultKind::Livelock { .. }), "{first} {second}: {fault}");
        }
    }
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn lanes_of_a_warp_wait_for_each_other() {
    // Two groups of lanes wait for a third, which computes for long and then arrives.
    let body = format!(
        "setp.eq.u32 %p1, %lane, 0; @%p1 mbarrier.init.shared.b64 [bars], 1; bar.warp.sync -1;
         setp.eq.u32 %p1, %lane, 7; @%p1 bra LONG; setp.lt.u32 %p1, %lane, 7; @%p1 bra LOW; {} bra END; LOW: {} bra END;
         LONG: mov.u32 %r1, 0; K: add.u32 %r1, %r1, 1; setp.lt.u32 %p5, %r1, 3000; @%p5 bra K;
         mbarrier.arrive.shared.b64 _, [bars]; END: st.global.u32 [%slot], 1;",
        wait("L", "bars", 0),
        wait("M", "bars", 0)
    );
    let kernel = Kernel::new(body).module(".shared .align 8 .b64 bars[2];");
    assert_eq!(kernel.run().words(), [1; 32]);
}

#[test]
fn operands_that_are_not_allowed() {
    let copy = |operands: &str| format!("{COPY} {operands};");
    let expect = |bytes: u32| format!("mbarrier.arrive.expect_tx.shared.b64 _, [bars], {bytes};");
    for (body, value) in [
        ("mbarrier.init.shared.b64 [sh], 0;".into(), 0),
        ("mbarrier.init.shared.b64 [sh], 1048576;".into(), 1 << 20),
        // One that is in use.
        ("mbarrier.init.shared.b64 [bars], 1;".into(), 0),
        // No barrier is here, or none any more.
        ("st.shared.u64 [sh+8], 1; mbarrier.arrive.shared.b64 _, [sh+8];".into(), 8),
        ("st.shared.u64 [sh+8], 1; mbarrier.test_wait.parity.shared.b64 %p5, [sh+8], 0;".into(), 8),
        (format!("st.shared.u64 [sh+8], 1; {}", copy("[sh+16], [%in], 16, [sh+8]")), 8),
        ("st.shared.u8 [bars+3], 1; mbarrier.arrive.shared.b64 _, [bars];".into(), 0),
        // An arrival too many, bytes too many, a parity that is none.
        (format!("{} mbarrier.arrive.shared.b64 _, [bars];", expect(16)), 0),
        (expect(1 << 20), 1 << 20),
        ("mbarrier.try_wait.parity.shared.b64 %p5, [bars], 2;".into(), 2),
        (copy("[sh], [%in], 8, [bars]"), 8),
        (copy("[sh], [%in], 100, [bars]"), 100),
        // The block ends.
        (
            format!(
                "{} {} {}",
                expect(32),
                copy("[sh], [%in], 16, [bars]"),
                copy("[sh+16], [%in], 16, [bars]")
            ),
            2,
        ),
    ] {
        // Where `bars` lies is not said: it is asked for with 0.
        for schedule in SCHEDULES {
            let fault = two(&body, "").fault(schedule);
            let FaultKind::BadOperand { what, value: found } = fault.kind else { panic!("{body}: {fault}") };
            assert!(found == value || what.ends_with("at") && value == 0, "{body}: {fault}");
            assert_eq!(fault.thread, [0, 0, 0], "{body}: {fault}");
        }
    }
    // Barriers that could be used again after a store take no copies along.
    let again =
        "st.shared.u64 [bars], 1; mbarrier.init.shared.b64 [bars], 1; mbarrier.arrive.shared.b64 _, [bars];";
    two(&format!("{again} {}", wait("L", "bars", 0)), "").run();
    let body = format!("{} {} {again}", expect(16), copy("[sh], [%in], 16, [bars]"));
    assert!(matches!(two(&body, "").fault(Schedule::Natural).kind, FaultKind::BadOperand { .. }));
}

#[test]
fn accesses_that_are_not_allowed() {
    for (body, expected) in [
        ("mbarrier.init.shared.b64 [bars+4], 1;".into(), "misaligned shared"),
        ("mbarrier.arrive.shared.b64 _, [bars+4];".into(), "misaligned shared"),
        ("mbarrier.try_wait.parity.shared.b64 %p5, [bars+4], 0;".into(), "misaligned shared"),
        ("mbarrier.init.shared.b64 [bars+4096], 1;".into(), "out of bounds shared"),
        ("mbarrier.arrive.expect_tx.shared.b64 _, [bars+4096], 16;".into(), "out of bounds shared"),
        ("mbarrier.arrive.shared.b64 _, [sh];".into(), "uninitialised shared"),
        ("mbarrier.try_wait.parity.shared.b64 %p5, [sh], 0;".into(), "uninitialised shared"),
        (format!("{COPY} [sh+8], [%in], 16, [bars];"), "misaligned shared"),
        (format!("{COPY} [sh], [%in+8], 16, [bars];"), "misaligned global"),
        (format!("{COPY} [sh+256], [%in], 32, [bars];"), "out of bounds shared"),
        (format!("{COPY} [sh], [%in], 0xfffffff0, [bars];"), "out of bounds shared"),
        (format!("{COPY} [sh], [%in+240], 32, [bars];"), "out of bounds global"),
        (format!("{COPY} [sh], [%in+-16], 32, [bars];"), "out of bounds global"),
        (format!("{COPY} [sh], [%out], 16, [bars];"), "uninitialised global"),
        (format!("{COPY} [sh], [%in], 16, [sh+16];"), "uninitialised shared"),
    ] {
        for schedule in SCHEDULES {
            let fault = two(&body, "").fault(schedule);
            let found = match fault.kind {
                FaultKind::Misaligned { space, .. } => format!("misaligned {space}"),
                FaultKind::OutOfBounds { space, .. } => format!("out of bounds {space}"),
                FaultKind::Uninitialised { space, .. } => format!("uninitialised {space}"),
                _ => panic!("{body}: {fault}"),
            };
            assert_eq!(found, expected, "{body}: {fault}");
        }
    }
    // A block begins without barriers, and without the copies of one that ended in a fault.
    let kernel = two(&format!("{COPY} [sh], [%in], 16, [bars];"), "");
    let module = Module::load(&kernel.ptx()).unwrap();
    let idle = Module::load(&two("", "").ptx()).unwrap();
    let mut simulator = Simulator::new().threads(1);
    let data = simulator.allocate(256).unwrap();
    simulator.write(data, &[1; 256]).unwrap();
    let launch = Launch::new(1, 64).arg(Arg::U64(data)).arg(Arg::U64(data));
    simulator.launch(&module, "kernel", &launch).unwrap_err();
    simulator.launch(&idle, "kernel", &launch).unwrap();
    let kernel = Kernel::new(
        "setp.eq.u32 %p1, %bid, 0; @%p1 mbarrier.init.shared.b64 [bars], 1; mbarrier.arrive.shared.b64 _, [bars];",
    );
    let fault = kernel.module(".shared .align 8 .b64 bars[2];").block(1).grid(2).fault(Schedule::Natural);
    assert!(is_uninitialised(&fault.kind) && fault.block == [1, 0, 0], "{fault}");
}
