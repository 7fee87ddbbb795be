//! What a kernel does wrong is found, with its place and thread; what it does right is not.

mod harness;

use std::time::{Duration, Instant};

use harness::{Kernel, SCHEDULES};
use ptx_sim::{Arg, Error, Fault, FaultKind, Launch, Location, Module, Schedule, Simulator};

/// The body of a kernel here begins at this line of the PTX.
const FIRST_LINE: u32 = 8;

/// A kernel whose module names a CUDA file.
fn kernel(body: &str) -> Kernel {
    Kernel::new(body).module(".file 1 \"broken.cu\"")
}

fn place(line: u32, ptx_line: u32) -> Location {
    Location { file: Some("broken.cu".into()), line, ptx_line }
}

/// The fault of a kernel in every schedule: the kind, line and PTX line.
#[track_caller]
fn assert_fault(
    kernel: &Kernel,
    line: u32,
    body_line: u32,
    thread: u32,
    holds: impl Fn(&FaultKind) -> bool,
) -> Fault {
    let mut natural = None;
    for schedule in SCHEDULES {
        let fault = kernel.fault(schedule);
        assert!(holds(&fault.kind), "{schedule:?}: {fault}");
        assert_eq!(fault.location, place(line, FIRST_LINE + body_line), "{schedule:?}: {fault}");
        assert_eq!(fault.kernel, "kernel");
        if schedule == Schedule::Natural {
            assert_eq!(fault.thread, [thread, 0, 0], "{fault}");
            assert_eq!(fault.block, [0, 0, 0], "{fault}");
            natural = Some(fault);
        }
    }
    natural.expect("the natural schedule is one of them")
}

#[test]
fn accesses_out_of_bounds() {
    // Kernels of one thread that do one access; the space and the address or offset that is reported.
    let shared = ".shared .align 16 .b8 sh[24];";
    let local = ".local .align 16 .b8 depot[32];";
    for (body, space) in [
        ("ld.global.u32 %r1, [%in+16];", "global"),
        ("ld.global.u32 %r1, [%in+-4];", "global"),
        ("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in+16];", "global"),
        ("ld.global.v2.u32 {%r1, %r2}, [%in+16];", "global"),
        ("st.global.u8 [%in+16], 1;", "global"),
        ("st.global.b64 [%in+-8], %rd1;", "global"),
        ("ld.u16 %r1, [%in+16];", "global"),
        ("atom.global.add.u32 %r1, [%in+16], 1;", "global"),
        ("red.global.add.u64 [%in+-8], 1;", "global"),
        ("mov.b64 %rd1, 0; ld.global.u32 %r1, [%rd1];", "global"),
        ("mov.b64 %rd1, 0; ld.u32 %r1, [%rd1];", "global"),
        ("mov.b64 %rd1, -4; ld.global.u32 %r1, [%rd1];", "global"),
        ("mov.b64 %rd1, -4; st.u32 [%rd1], 1;", "global"),
        ("mov.b64 %rd1, -8; ld.v2.u32 {%r1, %r2}, [%rd1];", "global"),
        ("mov.b64 %rd1, 0x7fffffffffffff00; ld.global.u64 %rd1, [%rd1];", "global"),
        ("ld.shared.u32 %r1, [sh+24];", "shared"),
        ("st.shared.u64 [sh+24], 1;", "shared"),
        ("mov.b64 %rd1, -4; ld.shared.u32 %r1, [%rd1];", "shared"),
        ("mov.u64 %rd1, sh; cvta.shared.u64 %rd2, %rd1; ld.u32 %r1, [%rd2+24];", "shared"),
        ("atom.shared.add.u32 %r1, [sh+24], 1;", "shared"),
        ("ld.local.u32 %r1, [depot+32];", "local"),
        ("st.local.u32 [depot+-4], 1;", "local"),
        ("mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1; st.u32 [%rd2+32], 1;", "local"),
        ("mov.b64 %rd1, -8; st.local.b64 [%rd1], 1;", "local"),
        ("ld.const.u32 %r1, [table+16];", "module"),
        ("mov.u64 %rd1, table; cvta.const.u64 %rd2, %rd1; ld.u32 %r1, [%rd2+16];", "module"),
        ("ld.param.u32 %r1, [in+16];", "param"),
        ("mov.b64 %rd1, -4; ld.param.u32 %r1, [%rd1];", "param"),
        ("cp.async.ca.shared.global [sh], [%in+16], 4;", "global"),
        ("cp.async.ca.shared.global [sh+24], [%in], 8;", "shared"),
    ] {
        let kernel = kernel(&format!(".loc 1 7 1\n{shared} {local}\n.loc 1 9 3\n{body}\n.loc 1 11 1"))
            .module(".file 1 \"broken.cu\" .const .align 4 .b32 table[4] = {1, 2, 3, 4};")
            .words(&[1, 2, 3, 4])
            .block(1);
        let fault = assert_fault(&kernel, 9, 3, 0, |kind| matches!(kind, FaultKind::OutOfBounds { .. }));
        let FaultKind::OutOfBounds { space: found, .. } = fault.kind else { unreachable!("checked above") };
        assert_eq!(found, space, "{body}: {fault}");
        let text = fault.to_string();
        assert!(text.contains("out of bounds") && text.contains("broken.cu:9 (PTX line 11)"), "{text}");
    }
}

#[test]
fn the_address_and_the_nearest_allocation_are_reported() {
    let kernel =
        kernel("mad.wide.u32 %rd1, %tid, 4, %in; ld.global.u32 %r1, [%rd1];").words(&[0; 40]).block(64);
    let fault = kernel.fault(Schedule::Natural);
    assert_eq!(fault.thread, [40, 0, 0]);
    let FaultKind::OutOfBounds { address, bytes: 4, nearest: Some((start, 160)), .. } = fault.kind else {
        panic!("{fault}")
    };
    assert_eq!(address, start + 160);
}

#[test]
fn freed_memory_is_out_of_bounds() {
    let module = Module::load(
        ".version 8.0 .target sm_90 .address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .b64 %rd1; .reg .b32 %r1;\n\
         ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\n}",
    )
    .unwrap();
    let mut simulator = Simulator::new();
    let [first, second] = [0, 1].map(|_| simulator.allocate(64).unwrap());
    simulator.write(first, &[0; 64]).unwrap();
    let launch = Launch::new(1, 1).arg(Arg::U64(first));
    simulator.launch(&module, "k", &launch).unwrap();
    simulator.free(first).unwrap();
    let Err(Error::Fault(fault)) = simulator.launch(&module, "k", &launch) else { panic!("no fault") };
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { space: "global", .. }), "{fault}");
    assert_eq!(fault.location, Location { file: None, line: 0, ptx_line: 5 });
    assert_eq!(simulator.free(first), Err(Error::BadAddress { address: first, bytes: 0 }));
    simulator.free(second).unwrap();
}

#[test]
fn misaligned_accesses() {
    for (body, space) in [
        ("ld.global.u32 %r1, [%in+2];", "global"),
        ("ld.global.u16 %r1, [%in+1];", "global"),
        ("st.global.b64 [%in+4], %rd1;", "global"),
        ("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%in+8];", "global"),
        ("st.global.v2.u32 [%in+4], {%r1, %r2};", "global"),
        ("ld.v2.u8 {%r1, %r2}, [%in+1];", "global"),
        ("atom.global.add.u32 %r1, [%in+2], 1;", "global"),
        ("red.global.add.u64 [%in+4], 1;", "global"),
        ("st.shared.u32 [sh+1], 1;", "shared"),
        ("st.shared.v2.f64 [sh+8], {%d1, %d1};", "shared"),
        ("cp.async.cg.shared.global [sh], [%in+8], 16;", "global"),
        ("cp.async.cg.shared.global [sh+8], [%in], 16;", "shared"),
        ("st.local.u64 [depot+4], 1;", "local"),
        ("ld.const.u32 %r1, [table+1];", "module"),
        ("ld.param.u32 %r1, [in+1];", "param"),
        ("ld.param.v2.u32 {%r1, %r2}, [in+4];", "param"),
    ] {
        let kernel = kernel(&format!(
            ".shared .align 16 .b8 sh[32]; .local .align 16 .b8 depot[32];\n.loc 1 30 3\n@!%p1 {body}"
        ))
        .module(".file 1 \"broken.cu\" .const .align 4 .b32 table[4] = {1, 2, 3, 4};")
        .words(&[0; 8])
        .block(1);
        let body_is_one = !body.contains("; ");
        assert!(body_is_one);
        let fault = assert_fault(&kernel, 30, 2, 0, |kind| matches!(kind, FaultKind::Misaligned { .. }));
        let FaultKind::Misaligned { space: found, .. } = fault.kind else { unreachable!("checked above") };
        assert_eq!(found, space, "{body}: {fault}");
        assert!(fault.to_string().contains("misaligned"), "{fault}");
    }
}

#[test]
fn reads_of_what_nobody_wrote() {
    for (body, space) in [
        ("ld.global.u32 %r1, [%out];", "global"),
        ("ld.u8 %r1, [%out+15];", "global"),
        ("ld.global.v2.u32 {%r1, %r2}, [%out+8];", "global"),
        ("atom.global.add.u32 %r1, [%out], 1;", "global"),
        ("ld.shared.u32 %r1, [sh];", "shared"),
        ("st.shared.u16 [sh], 1; ld.shared.u32 %r1, [sh];", "shared"),
        ("atom.shared.add.u32 %r1, [sh], 1;", "shared"),
        ("ld.local.u64 %rd1, [depot];", "local"),
        ("st.local.u32 [depot], 1; ld.local.u64 %rd1, [depot];", "local"),
        ("cp.async.ca.shared.global [sh], [%out], 4;", "global"),
    ] {
        let kernel = kernel(&format!(
            ".shared .align 16 .b8 sh[32]; .local .align 16 .b8 depot[32];\n.loc 1 40 3\n{body}\n.loc 1 41 3\nret;"
        ))
        .block(1);
        let fault = assert_fault(&kernel, 40, 2, 0, |kind| matches!(kind, FaultKind::Uninitialised { .. }));
        let FaultKind::Uninitialised { space: found, .. } = fault.kind else { unreachable!("checked above") };
        assert_eq!(found, space, "{body}: {fault}");
        assert!(fault.to_string().contains("uninitialised"), "{fault}");
    }
}

#[test]
fn local_memory_of_a_function_is_new_in_every_call() {
    let function = ".file 1 \"broken.cu\" .func (.param .b32 result) f(.param .b32 stores) { .reg .b32 %r1; .reg .pred %p1; \
                    .local .b32 kept; ld.param.b32 %r1, [stores]; setp.ne.u32 %p1, %r1, 0; @%p1 st.local.b32 [kept], %r1; \
                    ld.local.b32 %r1, [kept]; st.param.b32 [result], %r1; ret; }";
    let calls = |second| {
        let call =
            |stores: u32| format!("st.param.b32 [a], {stores}; call (r), f, (a); ld.param.b32 %r1, [r];");
        let body = format!(
            ".param .b32 a; .param .b32 r; .local .b32 own; st.local.b32 [own], 9; {} {} ld.local.b32 %r2, [own]; \
             add.u32 %r1, %r1, %r2; st.global.u32 [%slot], %r1;",
            call(7),
            call(second)
        );
        Kernel::new(body).module(function)
    };
    assert_eq!(calls(8).run().words(), [17; 32]);
    let fault = calls(0).fault(Schedule::Natural);
    assert!(matches!(fault.kind, FaultKind::Uninitialised { space: "local", .. }), "{fault}");
}

#[test]
fn memory_of_one_block_is_not_initialised_for_the_next() {
    let kernel = kernel(
        ".shared .align 4 .b32 sh; setp.eq.u32 %p1, %bid, 0; @%p1 st.shared.u32 [sh], 1;\n ld.shared.u32 %r1, [sh];",
    )
    .block(1)
    .grid(2);
    let fault = kernel.fault(Schedule::Natural);
    assert!(matches!(fault.kind, FaultKind::Uninitialised { space: "shared", .. }), "{fault}");
    assert_eq!(fault.block, [1, 0, 0]);
}

/// A kernel of two warps with shared memory; the address of the thread's own word in %rd2, of the word of the
/// neighbour across warps in %rd3, of the neighbour in the warp in %rd4, of the first word in %rd1.
fn sharing(body: &str) -> Kernel {
    kernel(&format!(
        ".shared .align 8 .b8 sh[256]; .shared .align 4 .b32 one; mov.u64 %rd1, sh; mad.wide.u32 %rd2, %tid, 4, %rd1; xor.b32 %r1, %tid, 32; \
         mad.wide.u32 %rd3, %r1, 4, %rd1; xor.b32 %r1, %tid, 1; mad.wide.u32 %rd4, %r1, 4, %rd1; setp.eq.u32 %p1, %tid, 0; \
         st.shared.u32 [%rd2], 12345; bar.sync 0;\n.loc 1 50 1\n{body}"
    ))
    .block(64)
}

#[test]
fn races_on_shared_memory() {
    for body in [
        // Write and write, in one instruction, in two, and across warps.
        "st.shared.u32 [%rd1], %tid;",
        "st.shared.u32 [%rd2], %tid; st.shared.u32 [%rd4], 99;",
        "st.shared.u32 [%rd2], %tid; st.shared.u32 [%rd3], 99;",
        // Write and read.
        "st.shared.u32 [%rd2], %tid; ld.shared.u32 %r2, [%rd4];",
        "st.shared.u32 [%rd2], %tid; ld.shared.u32 %r2, [%rd3];",
        "st.shared.u32 [%rd2], %tid; bar.warp.sync -1; ld.shared.u32 %r2, [%rd3];",
        "st.shared.u32 [%rd2], %tid; shfl.sync.idx.b32 %r9, %tid, 0, 31, -1; ld.shared.u32 %r2, [%rd3];",
        // Operations of a warp that are no barrier order nothing; a barrier orders those whom its mask names.
        "st.shared.u32 [%rd2], %tid; shfl.sync.idx.b32 %r9, %tid, 0, 31, -1; ld.shared.u32 %r2, [%rd4];",
        "st.shared.u32 [%rd2], %tid; vote.sync.ballot.b32 %r9, %p1, -1; ld.shared.u32 %r2, [%rd4];",
        "st.shared.u32 [%rd2], %tid; match.any.sync.b32 %r9, %tid, -1; ld.shared.u32 %r2, [%rd4];",
        "st.shared.u32 [%rd2], %tid; redux.sync.add.u32 %r9, %tid, -1; ld.shared.u32 %r2, [%rd4];",
        "and.b32 %r2, %lane, 1; mov.u32 %r9, 0x55555555; shl.b32 %r9, %r9, %r2; st.shared.u32 [%rd2], %tid; \
         bar.warp.sync %r9; ld.shared.u32 %r2, [%rd4];",
        // A barrier for one warp of two; one whose first warp only arrives.
        "shr.u32 %r2, %tid, 5; add.u32 %r2, %r2, 1; st.shared.u32 [%rd2], %tid; bar.sync %r2, 32; ld.shared.u32 %r2, [%rd3];",
        "setp.lt.u32 %p2, %tid, 32; st.shared.u32 [%rd2], %tid; @!%p2 bra LAST; bar.arrive 1, 64; ld.shared.u32 %r2, [%rd3]; ret; \
         LAST: bar.sync 1, 64;",
        "setp.lt.u32 %p2, %tid, 32; @!%p2 bra LAST; bar.arrive 1, 64; st.shared.u32 [%rd2], %tid; ret; \
         LAST: bar.sync 1, 64; ld.shared.u32 %r2, [%rd3];",
        // Read and write.
        "st.shared.u32 [%rd2], %tid; bar.sync 0; ld.shared.u32 %r2, [%rd3]; st.shared.u32 [%rd2], 99;",
        "st.shared.u32 [%rd2], %tid; bar.sync 0; ld.shared.u32 %r2, [%rd4]; st.shared.u32 [%rd2], 99;",
        "@%p1 st.shared.u32 [%rd1], 5; bar.sync 0; ld.shared.u32 %r2, [%rd1]; @%p1 st.shared.u32 [%rd1], 6;",
        "@%p1 st.shared.u32 [%rd1], 5; bar.sync 0; ld.shared.u32 %r2, [%rd1]; bar.warp.sync -1; @%p1 st.shared.u32 [%rd1], 6;",
        "setp.eq.u32 %p3, %lane, 1; setp.eq.u32 %p4, %lane, 2; setp.lt.u32 %p5, %lane, 2; @%p1 st.shared.u32 [one], 0; bar.sync 0; \
         @%p3 ld.shared.u32 %r2, [one]; @%p5 bar.warp.sync 3; @%p4 ld.shared.u32 %r2, [one]; @%p1 st.shared.u32 [one], 1;",
        // An atomic and what is none.
        "@%p1 st.shared.u32 [one], 0; atom.shared.add.u32 %r2, [one], 1;",
        "@%p1 st.shared.u32 [one], 0; bar.sync 0; red.shared.add.u32 [one], 1; ld.shared.u32 %r2, [one];",
        "@%p1 st.shared.u32 [one], 0; bar.sync 0; red.shared.add.u32 [one], 1; @%p1 st.shared.u32 [one], 9;",
        // Words that overlap, generic addresses, asynchronous copies.
        "st.shared.u32 [%rd2], %tid; and.b32 %r2, %tid, 62; mad.wide.u32 %rd5, %r2, 4, %rd1; ld.shared.u64 %rd6, [%rd5];",
        "cvta.shared.u64 %rd5, %rd2; st.u32 [%rd5], %tid; cvta.shared.u64 %rd6, %rd4; ld.u32 %r2, [%rd6];",
        "cp.async.ca.shared.global [%rd2], [%in], 4; cp.async.wait_all; ld.shared.u32 %r2, [%rd4];",
    ] {
        let kernel = sharing(body).words(&[3]);
        for schedule in SCHEDULES {
            // An atomic on memory that is not initialised yet is that before it is a race.
            let fault = match kernel.fault(schedule) {
                Fault { kind: FaultKind::Uninitialised { .. }, .. } if schedule != Schedule::Natural => {
                    continue;
                }
                fault => fault,
            };
            let FaultKind::SharedRace { other, .. } = &fault.kind else {
                panic!("{schedule:?} {body}: {fault}")
            };
            assert_eq!(fault.location, place(50, FIRST_LINE + 2), "{fault}");
            assert_eq!(*other, place(50, FIRST_LINE + 2), "{fault}");
            assert!(fault.to_string().starts_with("race on shared memory at 0x"), "{fault}");
        }
    }
}

#[test]
fn copies_have_not_arrived_before_they_are_waited_for() {
    let copy = "cp.async.ca.shared.global [%rd2], [%in], 4;";
    for body in [
        format!("{copy} ld.shared.u32 %r2, [%rd2];"),
        format!("{copy} cp.async.commit_group; ld.shared.u32 %r2, [%rd2];"),
        format!("{copy} cp.async.commit_group; cp.async.wait_group 1; ld.shared.u32 %r2, [%rd2];"),
        format!("{copy} cp.async.wait_group 0; ld.shared.u32 %r2, [%rd2];"),
        format!("{copy} bar.sync 0; ld.shared.u32 %r2, [%rd3];"),
    ] {
        let kernel = sharing(&body).words(&[3]);
        for schedule in SCHEDULES {
            let fault = kernel.fault(schedule);
            assert!(
                matches!(fault.kind, FaultKind::Uninitialised { space: "shared", .. }),
                "{body}: {fault}"
            );
        }
        sharing(&format!("{copy} cp.async.wait_all; bar.sync 0; ld.shared.u32 %r2, [%rd3];"))
            .words(&[3])
            .run();
    }
    // Written while a copy is on its way, by another thread behind a barrier and by the same.
    for body in [
        format!("{copy} bar.sync 0; st.shared.u32 [%rd3], 7; bar.sync 0;\n.loc 1 53 1\ncp.async.wait_all;"),
        format!("{copy} st.shared.u32 [%rd2], 7;\n.loc 1 53 1\ncp.async.wait_all;"),
        format!("{copy} {copy}\n.loc 1 53 1\ncp.async.wait_all;"),
    ] {
        for schedule in SCHEDULES {
            let fault = sharing(&body).words(&[3]).fault(schedule);
            assert!(matches!(fault.kind, FaultKind::SharedRace { other_wrote: true, .. }), "{body}: {fault}");
            assert_eq!(fault.location.line, 53, "{body}: {fault}");
        }
    }
    // A source of more bytes than are copied.
    let fault =
        sharing("cp.async.ca.shared.global [%rd2], [%in], 4, 5;").words(&[3]).fault(Schedule::Natural);
    assert!(matches!(fault.kind, FaultKind::BadOperand { value: 5, .. }), "{fault}");
}

#[test]
fn both_sides_of_a_race_are_named() {
    let kernel = sharing("st.shared.u32 [%rd2], %tid;\n.loc 1 53 1\nld.shared.u32 %r2, [%rd3];");
    let fault = kernel.fault(Schedule::Natural);
    // The second warp's first store finds that the first warp has read its word, or wrote one that was to be read.
    let FaultKind::SharedRace { other_thread: Some(thread), other, .. } = &fault.kind else {
        panic!("{fault}")
    };
    assert_eq!(thread ^ 32, fault.thread[0], "{fault}");
    assert_ne!(fault.location, *other);
    let sides = [fault.location.line, other.line];
    assert!(sides == [50, 53] || sides == [53, 50], "{fault}");
}

#[test]
fn no_race_where_accesses_are_ordered() {
    for body in [
        "st.shared.u32 [%rd2], %tid; bar.sync 0; ld.shared.u32 %r2, [%rd3]; bar.sync 0; st.shared.u32 [%rd2], 99;",
        "st.shared.u32 [%rd2], %tid; bar.warp.sync -1; ld.shared.u32 %r2, [%rd4]; bar.warp.sync -1; st.shared.u32 [%rd2], 99;",
        "@%p1 st.shared.u32 [one], 0; bar.sync 0; atom.shared.add.u32 %r2, [one], 1; red.shared.max.u32 [one], 5; bar.sync 0; \
         ld.shared.u32 %r2, [one];",
        // All lanes read, one writes behind the warp's barrier; and again.
        "setp.lt.u32 %p2, %tid, 32; @!%p2 ret; @%p1 st.shared.u32 [one], 1; bar.warp.sync -1; ld.shared.u32 %r2, [one]; \
         bar.warp.sync -1; @%p1 st.shared.u32 [one], 2; bar.warp.sync -1; ld.shared.u32 %r3, [one]; bar.warp.sync -1; \
         red.shared.add.u32 [one], 1; bar.warp.sync -1; ld.shared.u32 %r4, [one];",
        // Pairs of lanes, both warps, and one that arrives before the other goes on.
        "and.b32 %r2, %lane, 30; mov.u32 %r9, 3; shl.b32 %r9, %r9, %r2; st.shared.u32 [%rd2], %tid; \
         bar.warp.sync %r9; ld.shared.u32 %r2, [%rd4]; bar.warp.sync %r9; st.shared.u32 [%rd4], 1;",
        "st.shared.u32 [%rd2], %tid; bar.sync 1, 64; ld.shared.u32 %r2, [%rd3]; bar.sync 2, 64; st.shared.u32 [%rd3], 1;",
        "setp.lt.u32 %p2, %tid, 32; st.shared.u32 [%rd2], %tid; @!%p2 bra LAST; bar.arrive 1, 64; ret; \
         LAST: bar.sync 1, 64; ld.shared.u32 %r2, [%rd3]; st.shared.u32 [%rd3], 9;",
        // Warps, and lanes of a warp, that do the same before the one who is behind all of them, at different times.
        "@%p1 st.shared.u32 [one], 0; bar.sync 0; ld.shared.u32 %r3, [one]; bar.sync 1, 64; @%p1 st.shared.u32 [one], 9;",
        "@%p1 st.shared.u32 [one], 0; bar.sync 0; atom.shared.add.u32 %r3, [one], 1; bar.sync 1, 64; ld.shared.u32 %r4, [one];",
        "@%p1 st.shared.u32 [one], 0; bar.sync 0; ld.shared.u32 %r3, [one]; setp.lt.u32 %p2, %tid, 32; @!%p2 bra LAST; bar.arrive 1, 64; ret; \
         LAST: bar.sync 1, 64; setp.eq.u32 %p3, %tid, 32; @%p3 st.shared.u32 [one], 9;",
        "setp.lt.u32 %p2, %tid, 32; @!%p2 ret; setp.eq.u32 %p3, %lane, 1; setp.eq.u32 %p4, %lane, 2; setp.lt.u32 %p5, %lane, 2; \
         or.pred %p6, %p1, %p4; @%p1 st.shared.u32 [one], 0; bar.warp.sync -1; @%p3 ld.shared.u32 %r2, [one]; \
         @%p5 bar.warp.sync 3; @%p4 ld.shared.u32 %r2, [one]; @%p6 bar.warp.sync 5; @%p1 st.shared.u32 [one], 1;",
        // Threads of their own words, of every size.
        ".shared .b8 bytes[64]; mov.u64 %rd5, bytes; cvt.u64.u32 %rd6, %tid; add.u64 %rd5, %rd5, %rd6; st.shared.u8 [%rd5], %tid; \
         ld.shared.u8 %r2, [%rd5]; st.shared.u32 [%rd2], 1; ld.shared.u32 %r2, [%rd2];",
        "@%p1 st.shared.u32 [%rd1], 7; bar.red.popc.u32 %r2, 0, %p1; ld.shared.u32 %r3, [%rd1];",
        // Everybody reads.
        "@%p1 st.shared.u32 [%rd1], 7; bar.sync 3; ld.shared.u32 %r3, [%rd1]; ld.shared.u32 %r3, [%rd1];",
    ] {
        sharing(body).run();
    }
    // Blocks have memory of their own.
    sharing("st.shared.u32 [%rd2], %bid; ld.shared.u32 %r2, [%rd2];").grid(70).run();
}

#[test]
fn shuffles_that_read_an_absent_lane() {
    for (body, lane) in [
        (
            "setp.lt.u32 %p1, %lane, 16; @!%p1 bra DONE; shfl.sync.idx.b32 %r1, %tid, 20, 31, 0xffff;\nDONE: ret;",
            20,
        ),
        (
            "setp.lt.u32 %p1, %lane, 16; @!%p1 bra DONE; shfl.sync.down.b32 %r1, %tid, 1, 31, 0xffff;\nDONE: ret;",
            16,
        ),
        // It has exited, though the mask names it.
        ("setp.ge.u32 %p1, %lane, 16; @%p1 exit; shfl.sync.bfly.b32 %r1, %tid, 16, 31, -1;", 16),
    ] {
        let kernel = kernel(&format!(".loc 1 60 1\n{body}"));
        let fault = kernel.fault(Schedule::Natural);
        assert_eq!(fault.kind, FaultKind::AbsentLane { lane }, "{fault}");
        assert_eq!(fault.location, place(60, FIRST_LINE + 1));
        assert!(fault.thread[0] < 16);
    }
    // The last warp is not full.
    let fault = kernel("shfl.sync.bfly.b32 %r1, %tid, 8, 31, -1;").block(40).fault(Schedule::Natural);
    assert_eq!((&fault.kind, fault.thread), (&FaultKind::AbsentLane { lane: 8 }, [32, 0, 0]), "{fault}");
}

#[test]
fn masks_that_do_not_fit() {
    for (operation, mask) in [
        ("shfl.sync.idx.b32 %r1, %tid, 0, 31, 0xfffe;", 0xfffe),
        ("vote.sync.ballot.b32 %r1, %p2, 0x1;", 1),
        ("vote.sync.any.pred %p3, %p2, 0;", 0),
        ("match.any.sync.b32 %r1, %tid, 0xf0;", 0xf0),
        ("redux.sync.add.u32 %r1, %tid, 0xfffffffe;", 0xffff_fffe),
        ("bar.warp.sync 0xffff0000;", 0xffff_0000),
    ] {
        let kernel = kernel(&format!("mov.pred %p2, 1;\n.loc 1 70 1\n{operation}"));
        let thread = (0..32).find(|lane| mask >> lane & 1 == 0).unwrap();
        let found = assert_fault(&kernel, 70, 2, thread, |kind| *kind == FaultKind::SyncMask { mask });
        assert!(found.to_string().contains("mask"), "{found}");
    }
    // Lanes that name each other, but not the same others.
    let body = "setp.lt.u32 %p1, %lane, 16; selp.b32 %r1, 0xffffffff, 0xfffffffe, %p1; setp.eq.u32 %p2, %lane, 0; @%p2 mov.b32 %r1, 1;\n.loc 1 71 1\nbar.warp.sync %r1;";
    for schedule in SCHEDULES {
        let fault = kernel(body).fault(schedule);
        assert!(matches!(fault.kind, FaultKind::SyncMask { .. }), "{fault}");
    }
}

#[test]
fn lanes_that_wait_for_each_other_at_two_places() {
    let body = "setp.lt.u32 %p1, %lane, 16; @%p1 bra LOW;\n.loc 1 80 1\nbar.warp.sync -1;\nbra END;\n\
                LOW:\n.loc 1 84 1\nshfl.sync.idx.b32 %r1, %tid, 0, 31, -1;\nEND: ret;";
    for schedule in SCHEDULES {
        let fault = kernel(body).fault(schedule);
        let FaultKind::SyncDeadlock { waiting, missing } = fault.kind else { panic!("{fault}") };
        assert_eq!((waiting | missing, waiting & missing), (u32::MAX, 0), "{fault}");
        let high = waiting == 0xffff_0000;
        assert_eq!(fault.location.line, if high { 80 } else { 84 });
        assert_eq!(fault.thread[0], if high { 16 } else { 0 });
    }
    // A predicate keeps a lane away for ever.
    let body = "setp.ne.u32 %p1, %lane, 3;\n.loc 1 88 1\n@%p1 vote.sync.any.pred %p2, %p1, -1;";
    let waiting = !(1u32 << 3);
    // The lane that passed by exits, and the others are then complete.
    kernel(body).run();
    let body = format!("{body}\n.loc 1 90 1\nbar.warp.sync -1;");
    for schedule in SCHEDULES {
        let fault = kernel(&body).fault(schedule);
        assert!(
            fault.kind == FaultKind::SyncDeadlock { waiting, missing: 1 << 3 }
                || fault.kind == FaultKind::SyncDeadlock { waiting: 1 << 3, missing: waiting },
            "{fault}"
        );
    }
}

#[test]
fn barriers_that_a_part_of_a_warp_reaches() {
    for body in [
        "setp.lt.u32 %p1, %lane, 16;\n.loc 1 100 1\n@%p1 bar.sync 0;",
        "setp.lt.u32 %p1, %lane, 16;\n.loc 1 100 1\n@!%p1 bra ELSE; bar.sync 0; bra END; ELSE: bar.sync 0; END: ret;",
        "setp.lt.u32 %p1, %lane, 16;\n.loc 1 100 1\n@!%p1 bra ELSE; bar.sync 1; bra END; ELSE: bar.arrive 2, 64; END: ret;",
    ] {
        for threads in [32, 64] {
            for schedule in SCHEDULES {
                let fault = kernel(body).block(threads).fault(schedule);
                let FaultKind::DivergentBarrier { arrived, missing } = fault.kind else { panic!("{fault}") };
                assert_eq!((arrived | missing, arrived & missing), (u32::MAX, 0), "{fault}");
                assert_eq!(fault.location, place(100, FIRST_LINE + 2), "{fault}");
            }
        }
    }
    // Barriers that are not aligned, but not the same: another number, another kind, another count, an aligned one.
    for other in ["barrier.sync 1", "barrier.arrive 0, 32", "barrier.sync 0, 32", "bar.sync 0"] {
        let body = format!(
            "setp.lt.u32 %p1, %lane, 16;\n.loc 1 100 1\n@!%p1 bra ELSE; barrier.sync 0; bra END; ELSE: {other}; END: ret;"
        );
        for schedule in SCHEDULES {
            let fault = kernel(&body).fault(schedule);
            assert!(matches!(fault.kind, FaultKind::DivergentBarrier { .. }), "{other}: {fault}");
        }
    }
    for aligned in ["bar.sync 0", "barrier.sync.aligned 0", "barrier.cta.sync.aligned 0"] {
        let body = format!("setp.lt.u32 %p1, %lane, 16;\n@%p1 {aligned};\n@!%p1 {aligned};");
        let fault = kernel(&body).fault(Schedule::Natural);
        assert!(matches!(fault.kind, FaultKind::DivergentBarrier { .. }), "{aligned}: {fault}");
    }
    // A part of the warp waits for the other in a warp-wide operation, the other at a barrier for the block.
    let body =
        "setp.lt.u32 %p1, %lane, 16; @%p1 bra LOW; bar.sync 0; bra END; LOW: bar.warp.sync -1; END: ret;";
    for schedule in SCHEDULES {
        let fault = kernel(body).fault(schedule);
        assert!(
            matches!(fault.kind, FaultKind::DivergentBarrier { .. } | FaultKind::SyncDeadlock { .. }),
            "{fault}"
        );
    }
}

#[test]
fn barriers_that_wait_for_ever() {
    for body in [
        // Two warps at two barriers; a barrier for more threads than come; one that a warp leaves out.
        "shr.u32 %r1, %tid, 5;\n.loc 1 110 1\nbar.sync %r1;",
        "nanosleep.u32 1;\n.loc 1 110 1\nbar.sync 0, 96;",
        "setp.lt.u32 %p1, %tid, 32;\n.loc 1 110 1\n@%p1 bra END; bar.sync 1, 64; END: ret;",
        "setp.lt.u32 %p1, %tid, 32;\n.loc 1 110 1\n@%p1 bra END; bar.red.popc.u32 %r1, 1, 64, %p1; END: bar.sync 0;",
    ] {
        for schedule in SCHEDULES {
            let fault = kernel(body).block(64).fault(schedule);
            assert_eq!(fault.kind, FaultKind::BarrierDeadlock, "{fault}");
            assert_eq!(fault.location, place(110, FIRST_LINE + 2), "{body}: {fault}");
        }
    }
}

#[test]
fn traps_and_bad_operands() {
    let kernel_ = kernel("setp.eq.u32 %p1, %tid, 37;\n.loc 1 120 1\n@%p1 trap;").block(64);
    assert_fault(&kernel_, 120, 2, 37, |kind| *kind == FaultKind::Trap);
    for (body, value) in [
        ("mov.u32 %r1, 16; bar.sync %r1;", 16),
        ("mov.u32 %r1, 16;\n bar.sync 0, 33;", 33),
        ("mov.u32 %r1, 0;\n bar.sync 0, %r1;", 0),
        ("mov.u32 %r1, 3; TABLE: .branchtargets A, A; brx.idx %r1, TABLE; A: ret;", 3),
    ] {
        for schedule in SCHEDULES {
            let fault = kernel(body).fault(schedule);
            assert!(
                matches!(fault.kind, FaultKind::BadOperand { value: found, .. } if found == value),
                "{fault}"
            );
            assert_eq!(fault.thread, [0, 0, 0]);
        }
    }
}

const FOR_EVER: &str =
    ".loc 1 130 1\nSPIN: ld.volatile.global.u32 %r1, [%in]; setp.eq.u32 %p1, %r1, 0; @%p1 bra SPIN;";

#[test]
fn a_spin_on_a_flag_that_nobody_sets_is_reported_soon() {
    let started = Instant::now();
    for (blocks, threads) in [(1, 1), (1, 64), (3, 96)] {
        let kernel = kernel(FOR_EVER).words(&[0]).grid(blocks).block(threads);
        for schedule in SCHEDULES {
            let fault = kernel.fault(schedule);
            assert!(matches!(fault.kind, FaultKind::Livelock { .. }), "{fault}");
            assert_eq!(fault.location, place(130, FIRST_LINE + 1));
        }
    }
    // With a back-off, and between the lanes of a warp.
    for body in [
        "mov.u32 %r2, 1;\n.loc 1 130 1\nSPIN: ld.acquire.gpu.global.u32 %r1, [%in]; nanosleep.u32 %r2; shl.b32 %r2, %r2, 1; min.u32 %r2, %r2, 256; \
         setp.eq.u32 %p1, %r1, 0; @%p1 bra SPIN;",
        ".loc 1 130 1\nSPIN: atom.global.cas.b32 %r1, [%in], 1, 0; setp.ne.u32 %p1, %r1, 1; @%p1 bra SPIN;",
    ] {
        for schedule in SCHEDULES {
            let fault = kernel(body).words(&[0]).fault(schedule);
            assert!(matches!(fault.kind, FaultKind::Livelock { .. }), "{fault}");
            assert_eq!(fault.location.line, 130);
        }
    }
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn a_wait_for_a_clock_ends() {
    // Registers that nobody reads again hold the same in every round.
    let body = "L: mov.u32 %r1, %clock; setp.lt.u32 %p1, %r1, 3000000; mov.u32 %r2, 5; setp.ne.u32 %p2, %r2, 5; @%p1 bra L;
                st.global.u32 [%slot], 1;";
    assert_eq!(kernel(body).run_natural().words(), [1; 32]);
    // Whatever a fault before has made of the clock.
    let mut simulator = Simulator::new().instruction_limit(u64::MAX);
    let [input, out] = [4, 512].map(|bytes| simulator.allocate(bytes).unwrap());
    let mut launch = |body: &str| {
        let module = Module::load(&kernel(body).ptx()).unwrap();
        simulator.launch(&module, "kernel", &Launch::new(1, 32).arg(Arg::U64(input)).arg(Arg::U64(out)))
    };
    for _ in 0..2 {
        launch("trap;").unwrap_err();
        launch("mov.u32 %r1, %clock; st.global.u32 [%slot], %r1;").unwrap();
    }
}

#[test]
fn shared_memory_of_a_launch_before_is_out_of_bounds() {
    let mut simulator = Simulator::new();
    let [input, out] = [4, 512].map(|bytes| simulator.allocate(bytes).unwrap());
    let mut launch = |body: &str| {
        let module = Module::load(&kernel(body).ptx()).unwrap();
        simulator.launch(&module, "kernel", &Launch::new(1, 1).arg(Arg::U64(input)).arg(Arg::U64(out)))
    };
    launch(".shared .align 4 .b32 all[16]; st.shared.u32 [all+12], 7;").unwrap();
    let error = launch(".shared .align 4 .b32 few[3]; ld.shared.u32 %r1, [few+12];").unwrap_err();
    let Error::Fault(fault) = error else { panic!("{error}") };
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { .. }), "{fault}");
}

#[test]
fn a_spin_on_a_flag_that_a_later_block_sets_ends() {
    // Every block but the last waits for the next one: the first is done last.
    let body = "mul.wide.u32 %rd1, %bid, 4; add.s64 %rd1, %rd1, %in; mov.u32 %r9, %nctaid.x; sub.u32 %r9, %r9, 1;
                setp.eq.u32 %p2, %bid, %r9; @%p2 bra SET;
                SPIN: ld.acquire.gpu.global.u32 %r1, [%rd1+4]; setp.eq.u32 %p1, %r1, 0; @%p1 bra SPIN;
                SET: bar.sync 0; membar.gl; st.release.gpu.global.u32 [%rd1], 7; st.global.u32 [%slot], %bid;";
    for blocks in [2, 20] {
        let kernel = kernel(body).words(&[0; 64]).grid(blocks).block(64);
        let mut outs = Vec::new();
        for schedule in SCHEDULES {
            for host_threads in [1, 2, 8] {
                let result = kernel.run_with(schedule, host_threads);
                let outcome = result.unwrap_or_else(|error| panic!("{schedule:?} {host_threads}: {error}"));
                assert_eq!(outcome.input_words()[..blocks as usize], vec![7; blocks as usize]);
                outs.push(outcome.out);
            }
        }
        assert!(outs.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn lanes_of_a_warp_may_wait_for_each_other() {
    // One lane sets the flag on which the others spin, at a lower and at a higher address than theirs.
    for condition in ["setp.eq.u32 %p1, %lane, 7; @%p1 bra SET;", "setp.ne.u32 %p1, %lane, 7; @!%p1 bra SET;"]
    {
        let body = format!(
            "{condition} SPIN: ld.volatile.global.u32 %r1, [%in]; setp.eq.u32 %p1, %r1, 0; @%p1 bra SPIN; bra END;
             SET: st.volatile.global.u32 [%in], 1; mov.u32 %r1, 1; END: st.global.u32 [%slot], %r1;"
        );
        assert_eq!(kernel(&body).words(&[0]).run().words(), [1; 32]);
    }
    // A lock that every lane takes.
    let body = "mov.u32 %r2, 0;
                LOCK: atom.global.cas.b32 %r1, [%in], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra LOCK;
                ld.volatile.global.u32 %r3, [%in+4]; add.u32 %r3, %r3, 1; st.volatile.global.u32 [%in+4], %r3;
                atom.global.exch.b32 %r1, [%in], 0; st.global.u32 [%slot], 1;";
    let out = kernel(body).words(&[0, 0]).block(64).run();
    assert_eq!(out.input_words(), [0, 64]);
}

#[test]
fn the_limit_of_instructions_is_kept() {
    let body =
        ".loc 1 140 1\nmov.u32 %r1, 0; LOOP: add.u32 %r1, %r1, 1; st.global.u32 [%slot], %r1; bra LOOP;";
    for limit in [1, 100, 5000, 1_000_000] {
        let kernel = Kernel { instruction_limit: limit, ..kernel(body) };
        let started = Instant::now();
        for schedule in SCHEDULES {
            let fault = kernel.fault(schedule);
            assert_eq!(fault.kind, FaultKind::InstructionLimit { limit }, "{fault}");
            assert_eq!((fault.block, fault.thread), ([0, 0, 0], [0, 0, 0]));
        }
        assert!(started.elapsed() < Duration::from_secs(20));
    }
    let enough = Kernel { instruction_limit: 100, ..kernel("st.global.u32 [%slot], 1;") };
    enough.run();
}

#[test]
fn of_several_faults_the_first_block_counts() {
    // Blocks 3, 13, 23 … fault, each after a while of its own.
    let body = "rem.u32 %r1, %bid, 10; setp.ne.u32 %p1, %r1, 3; @%p1 bra END; sub.u32 %r2, 1000, %bid; mov.u32 %r3, 0;
                LOOP: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, %r2; @%p2 bra LOOP;
                trap; END: st.global.u32 [%slot], 1;";
    for _ in 0..10 {
        let fault = kernel(body).grid(100).block(40).fault(Schedule::Natural);
        assert_eq!((fault.kind, fault.block, fault.thread), (FaultKind::Trap, [3, 0, 0], [0, 0, 0]));
    }
}

#[test]
fn block_and_thread_have_three_coordinates() {
    let body = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z; mad.lo.u32 %r1, %r2, 10, %r1; mad.lo.u32 %r1, %r3, 100, %r1;
                mov.u32 %r4, %tid.y; mov.u32 %r5, %tid.z; mad.lo.u32 %r4, %r4, 10, %tid; mad.lo.u32 %r4, %r5, 100, %r4;
                setp.eq.u32 %p1, %r1, 321; setp.eq.and.u32 %p1, %r4, 234, %p1;\n@%p1 trap;";
    let kernel = Kernel { grid: [2, 3, 4], block: [5, 4, 3], ..kernel(body) };
    for schedule in SCHEDULES {
        let fault = kernel.fault(schedule);
        assert_eq!((fault.block, fault.thread), ([1, 2, 3], [4, 3, 2]), "{fault}");
        assert!(fault.to_string().contains("block (1, 2, 3), thread (4, 3, 2)"), "{fault}");
    }
}

#[test]
fn launches_that_do_not_fit_are_refused() {
    let module = Module::load(&kernel("ret;").ptx()).unwrap();
    let mut simulator = Simulator::new().capacity(1000);
    let args = vec![Arg::U64(0), Arg::U64(0)];
    let good = Launch { args, ..Launch::new(1, 32) };
    simulator.launch(&module, "kernel", &good).unwrap();
    for (launch, part) in [
        (Launch { block: [33, 32, 1], ..good.clone() }, "threads a block"),
        (Launch { block: [0, 1, 1], ..good.clone() }, "threads a block"),
        (Launch { block: [u32::MAX, u32::MAX, 2], ..good.clone() }, "threads a block"),
        (
            Launch { block: [1, 1, 65], ..good.clone() },
            "threads a block: [1, 1, 65]; allowed: 1 to 1024, at most 64 along z",
        ),
        (Launch { grid: [0, 1, 1], ..good.clone() }, "the grid"),
        (Launch { grid: [1, 1, 0], ..good.clone() }, "the grid"),
        (Launch { grid: [1, 70_000, 1], ..good.clone() }, "the grid"),
        (Launch { grid: [u32::MAX, 1, 1], ..good.clone() }, "the grid"),
        (Launch { shared_bytes: 300_000, ..good.clone() }, "shared memory a block"),
        (Launch { args: vec![Arg::U64(0)], ..good.clone() }, "arguments: 1; allowed: 2"),
        (Launch { args: vec![Arg::U64(0), Arg::U32(0)], ..good.clone() }, "argument 1 of 4 bytes"),
    ] {
        let text = simulator.launch(&module, "kernel", &launch).unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    }
    // A number of another type; bytes may be more.
    let number = ".version 8.0 .target sm_90 .address_size 64 .visible .entry k(.param .f32 x) { ret; }";
    let number = Module::load(number).unwrap();
    let text = simulator.launch(&number, "k", &Launch::new(1, 1).arg(Arg::F64(1.0))).unwrap_err().to_string();
    assert_eq!(text, "an argument: argument 0 of 8 bytes; allowed: 4 bytes");
    simulator.launch(&number, "k", &Launch::new(1, 1).arg(Arg::Bytes(vec![0; 8]))).unwrap();
    let text = simulator.launch(&module, "other", &good).unwrap_err().to_string();
    assert_eq!(text, "the module has no kernel `other`; it has kernel");
    assert_eq!(simulator.allocate(2000), Err(Error::OutOfMemory { bytes: 2000, free: 1000 }));
    let address = simulator.allocate(100).unwrap();
    assert_eq!(
        simulator.write(address + 90, &[0; 20]),
        Err(Error::BadAddress { address: address + 90, bytes: 20 })
    );
}

#[test]
fn limits_of_the_architecture_and_of_the_kernel() {
    let launch = |target: &str, directives: &str, block: [u32; 3], shared_bytes: u32| {
        let ptx = format!(
            ".version 8.0 .target {target} .address_size 64\n.shared .b8 unused[40000]; .shared .b8 fixed[1000];\n\
             .visible .entry k() {directives} {{ .reg .b32 %r1; mov.u32 %r1, fixed; ret; }}"
        );
        let module = Module::load(&ptx).unwrap();
        let launched =
            Simulator::new().launch(&module, "k", &Launch { block, shared_bytes, ..Launch::new(1, 1) });
        (module.kernel("k").unwrap(), launched.map_err(|error| error.to_string()))
    };
    for (target, kib) in [
        ("sm_75", 64),
        ("sm_80", 163),
        ("sm_86", 99),
        ("sm_87", 163),
        ("sm_89", 99),
        ("sm_90", 227),
        ("sm_90a", 227),
        ("sm_100", 227),
        ("sm_103a", 227),
        ("sm_120", 99),
    ] {
        let most = kib * 1024 - 1008;
        let (info, launched) = launch(target, "", [1, 1, 64], most);
        assert_eq!((info.shared_bytes, info.max_dynamic_shared_bytes), (1000, most.into()), "{target}");
        launched.unwrap();
        let refused = launch(target, "", [1; 3], most + 1).1.unwrap_err();
        let allowed =
            format!("shared memory a block: {} bytes; allowed: {} bytes", kib * 1024 + 1, kib * 1024);
        assert_eq!(refused, allowed, "{target}");
    }
    for (directives, block, part) in [
        (".maxntid 64", [65, 1, 1], "allowed: 64, which the kernel's .maxntid says"),
        (".maxntid 16, 2, 2 .minnctapersm 1", [65, 1, 1], "allowed: 64, which the kernel's .maxntid says"),
        (".reqntid 64", [32, 1, 1], "allowed: [64, 1, 1], which the kernel's .reqntid says"),
        (".minnctapersm 1 .reqntid 8, 4", [32, 1, 1], "allowed: [8, 4, 1], which the kernel's .reqntid says"),
    ] {
        let refused = launch("sm_90", directives, block, 0).1.unwrap_err();
        assert!(refused.starts_with("threads a block: [") && refused.contains(part), "{refused}");
    }
    for (directives, block) in
        [(".maxntid 16, 2, 2", [64, 1, 1]), (".reqntid 8, 4", [8, 4, 1]), (".reqntid 8, 4, 1", [8, 4, 1])]
    {
        launch("sm_90", directives, block, 0).1.unwrap();
    }
}

#[test]
fn memory_that_is_allocated_again_is_as_new() {
    let mut simulator = Simulator::new();
    let first = simulator.allocate(1001).unwrap();
    simulator.write(first, &[7; 1001]).unwrap();
    simulator.free(first).unwrap();
    let again = simulator.allocate(1001).unwrap();
    assert_eq!(again, first);
    let mut bytes = [1; 1001];
    simulator.read(again, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 1001]);
}

#[test]
fn freed_memory_is_used_again() {
    let mut simulator = Simulator::new();
    let mut before = simulator.allocate(1 << 20).unwrap();
    let (mut lowest, mut highest) = (before, before);
    for _ in 0..200 {
        let next = simulator.allocate(1 << 20).unwrap();
        simulator.write(next, &[3; 1 << 20]).unwrap();
        simulator.free(before).unwrap();
        (lowest, highest) = (lowest.min(next), highest.max(next));
        before = next;
    }
    assert!(highest - lowest < 8 << 20, "{lowest:#x} to {highest:#x}");
    // What lies in a gap is as new, and has room on both sides.
    let [first, gap, last] = [4096, 2048, 16 << 20].map(|bytes| simulator.allocate(bytes).unwrap());
    simulator.write(gap, &[3; 2048]).unwrap();
    simulator.free(gap).unwrap();
    let again = simulator.allocate(2048).unwrap();
    let mut bytes = [1; 2048];
    simulator.read(again, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 2048]);
    for address in [first, last, before, again] {
        let outside = simulator.read(address.wrapping_sub(1), &mut [0]);
        assert_eq!(outside, Err(Error::BadAddress { address: address - 1, bytes: 1 }));
    }
}
