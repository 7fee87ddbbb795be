//! What does not load says why and where, and nothing makes the loader or a launch fall over.

#[path = "../../tests/fuzz/mutation.rs"]
#[allow(dead_code, reason = "inputs are counted here, and run by a test of their own elsewhere")]
mod mutation;
#[path = "../../tests/fuzz/ptx.rs"]
mod ptx;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mutation::Random;
use ptx::{FIXTURES, Launched, MIXTURE, load_and_launch, mutate};
use ptx_sim::{Arg, Launch, LoadError, Module, Schedule, Simulator};

/// Counts bytes, to see that no text makes the simulator take much.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is left to the system's allocator, with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Far more than any edit of these kernels needs: registers of two blocks of 64 threads and 512 KiB of local memory.
const MOST_ALLOWED: usize = 512 << 20;

fn with_body(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .f64 %d<4>; \
         .shared .align 8 .b8 tile[8]; .local .align 8 .b8 depot[8];\n{body}\n}}\n"
    )
}

fn refusal(ptx: &str) -> LoadError {
    Module::load(ptx).expect_err(ptx)
}

#[test]
fn what_is_not_supported_is_named_with_its_line() {
    for instruction in [
        "frobnicate.b32 %r1, %r2",
        "ld.global.b24 %r1, [%rd1]",
        "ld.global.quickly.b32 %r1, [%rd1]",
        "ld.global.v8.b32 {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}, [%rd1]",
        "ld.global.b128 %rd1, [%rd2]",
        "ld.shared::cluster.b32 %r1, [%rd1]",
        "st.global.v3.b32 [%rd1], {%r1, %r2, %r3}",
        "st.global.pred [%rd1], %p1",
        "atom.global.mul.u32 %r1, [%rd1], 2",
        "atom.global.add.v2.f32 {%f1, %f2}, [%rd1], {%f1, %f2}",
        "atom.global.add.u8 %r1, [%rd1], 2",
        "atom.global.frob.add.u32 %r1, [%rd1], 2",
        "red.global.add.min.u32 [%rd1], 2",
        "mov.frob.u32 %r1, %r2",
        "mov.frob.pred %p1, %p2",
        "mov.b8 %h1, %h2",
        "atom.global.inc.u64 %rd1, [%rd1], 2",
        "red.async.relaxed.cluster.shared::cluster.add.u32 [%rd1], 2",
        "shfl.down.b32 %r1, %r2, 1, 31",
        "shfl.sync.down.b64 %rd1, %rd2, 1, 31, -1",
        "vote.ballot.b32 %r1, %p1",
        "vote.sync.most.pred %p1, %p1, -1",
        "match.some.sync.b32 %r1, %r2, -1",
        "redux.sync.mul.u32 %r1, %r2, -1",
        "redux.sync.min.f32 %f1, %f2, -1",
        "redux.sync.inc.u32 %r1, %r2, -1",
        "redux.sync.exch.b32 %r1, %r2, -1",
        "redux.sync.and.u32 %r1, %r2, -1",
        "redux.sync.add.u64 %rd1, %rd2, -1",
        "bar.red.xor.pred %p1, 0, %p2",
        "mbarrier.init.b64 [%rd1], 1",
        "mbarrier.init.shared.b64 [%rd1], 1, 1",
        "mbarrier.inval.shared.b64 [%rd1]",
        "mbarrier.arrive.noComplete.shared.b64 %rd2, [%rd1], 1",
        "mbarrier.arrive.shared.b64 %rd2, [%rd1]",
        "mbarrier.arrive.shared.b64 _, [%rd1], 2",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%rd1]",
        "mbarrier.arrive.expect_tx.relaxed.cta.shared.b64 _, [%rd1], 16",
        "mbarrier.expect_tx.relaxed.cta.shared.b64 [%rd1], 16",
        "mbarrier.try_wait.shared.b64 %p1, [%rd1], %rd2",
        "mbarrier.try_wait.parity.shared.b64 %p1, [%rd1], 0, 100",
        "mbarrier.test_wait.parity.acquire.cluster.shared.b64 %p1, [%rd1], 0",
        "cp.async.bulk.shared::cluster.global [%rd1], [%rd2], 16",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd1], [%rd2], 16",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%rd1], [%rd2], 16, [%rd1], %h1",
        "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%rd2], 16",
        "cp.async.bulk.prefetch.L2.global [%rd1], 16",
        "cp.async.bulk.commit_group",
        "cp.async.ca.shared.global [%rd1], [%rd2], 12",
        "cp.async.ca.shared.global [%rd1], [%rd2], 8, %p1",
        "cp.async.cg.shared.global [%rd1], [%rd2], 8",
        "cp.async.wait_group %r1",
        "cvt.rn.f32.b7 %f1, %r1",
        "add.u128 %r1, %r2, %r3",
        "add.rn.f24 %f1, %f2, %f3",
        "mov.b32 {%r1, %r2, %r3}, %r1",
        "cvta.cluster.u64 %rd1, %rd2",
        "cvta.param.u64 %rd1, %rd2",
        "isspacep.moon %p1, %rd1",
        "wgmma.fence.sync.aligned",
        "tex.2d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [%rd1, {%f1, %f1}]",
        "setp.most.u32 %p1, %r1, %r2",
        "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r1}, {%r1}, {%r1}, {%r1, %r1}",
        "mma.sync.aligned.m8n8k4.col.col.f64.f64.f64.f64 {%d1, %d1}, {%d1}, {%d1}, {%d1, %d1}",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32 {%f1, %f1, %f1, %f1}, {%r1, %r1}, {%r1}, {%f1, %f1, %f1, %f1}",
    ] {
        let name = instruction.split(' ').next().unwrap();
        for guard in ["", "@!%p2 "] {
            let error = refusal(&with_body(&format!("// a comment\n\n  {guard}{instruction};")));
            let text = error.to_string();
            // What takes an operand that PTX's grammar has only there is refused with its line.
            let named = matches!(&error, LoadError::Unsupported { instruction, .. } if instruction == name);
            assert!(named || name == "tex.2d.v4.f32.f32", "{instruction}: {text}");
            assert!(text.starts_with("PTX line 9: "), "{instruction}: {text}");
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    for (body, part) in [
        ("add.u32 %r1, %r2;", ": 2 operands"),
        ("add.u32 %r1, %r2, %r3, %r3;", ": 4 operands"),
        ("add.u32 %rd1|%p1, %r2, %r3;", "a result of the form"),
        ("add.u64 %r1, %rd2, %rd3;", "another width"),
        ("add.u32 %r1, [%rd2], %r3;", "an operand of the form"),
        ("add.u32 %r1, %r2, 0d3FF0000000000000;", "64-bit constant"),
        ("mov.b64 %rd1, 0f3F800000;", "32-bit constant"),
        ("mov.b32 %r1, 1.0;", "64-bit constant"),
        ("fma.rn.f32 %f1, 0f3F800000, 2, 0f3F800000;", "an integer for an operand of type .f32"),
        ("add.f64 %d1, %d1, 2;", "an integer for an operand of type .f64"),
        ("mov.f32 %f1, 0;", "an integer for"),
        ("setp.lt.f64 %p1, %d1, 0;", "an integer for"),
        ("set.lt.u32.f32 %r1, %f1, 2;", "an integer for"),
        ("selp.f32 %f1, 2, %f2, %p1;", "an integer for"),
        ("slct.f32.s32 %f1, %f2, 2, %r1;", "an integer for"),
        ("slct.b32.f32 %r1, %r2, %r3, 1;", "an integer for"),
        ("cvt.rzi.s32.f32 %r1, 2;", "an integer for"),
        ("st.global.v2.f32 [%rd1], {%f1, 2};", "an integer for"),
        ("atom.global.add.f32 %f1, [%rd1], 2;", "an integer for"),
        ("add.u32 %r3, %rd1, %r1;", "`%rd1`, which has 64 bits, for a 32-bit operand"),
        ("mov.u64 %rd1, %r1;", "`%r1`, which has 32 bits, for a 64-bit operand"),
        ("mul.wide.u32 %rd1, %rd1, 4;", "which has 64 bits"),
        ("setp.eq.u32 %p1, %rd1, 1;", "which has 64 bits"),
        ("red.global.add.u32 [%rd1], %rd2;", "which has 64 bits"),
        ("cvt.u32.u64 %r1, %r2;", "which has 32 bits"),
        ("ld.global.u32 %r3, [tile];", "a variable of another space"),
        ("st.global.u32 [depot+4], 1;", "a variable of another space"),
        ("atom.global.add.u32 %r3, [tile], 1;", "a variable of another space"),
        ("ld.shared.u32 %r3, [p];", "a variable of another space"),
        ("ld.param.u32 %r3, [tile];", "a variable of another space"),
        ("mov.u32 %r1, %r2+4;", "an operand of the form"),
        ("bar.arrive 1;", "an arrival without a number of threads"),
        ("ld.global.v2.b32 %r1, [%rd1];", "1 values"),
        ("ld.global.b32 %p1, [%rd1];", "a predicate as a value"),
        ("ld.global.b32 %r1, [%p1];", "a predicate as an address"),
        ("ld.global.b32 %r1;", "lacks an operand"),
        ("ld.global.b32 %r1, {%r1};", "an address of the form"),
        ("ld.global.b64 %r1, [%rd1];", "a register of 32 bits for a value of 64 bits"),
        ("ld.global.f64 %f1, [%rd1];", "a register of 32 bits for a value of 64 bits"),
        ("ld.global.b32 %h1, [%rd1];", "a register of 16 bits for a value of 32 bits"),
        ("ld.global.v2.b32 {%r1, %h1}, [%rd1];", "a register of 16 bits for a value of 32 bits"),
        ("ld.param.u64 %r1, [p];", "a register of 32 bits for a value of 64 bits"),
        ("st.global.b32 [%rd1], %h1;", "a register of 16 bits for a value of 32 bits"),
        ("st.shared.u64 [tile], %r1;", "a register of 32 bits for a value of 64 bits"),
        ("@%r1 ret;", "`%r1` is no predicate"),
        ("A: A: ret;", "the label `A` stands twice"),
        ("selp.b32 %r1, %r1, %r1, %r1;", "`%r1` is no predicate"),
        ("cp.async.ca.shared.global [%rd1], [tile], 8;", "a variable of another space"),
        ("cp.async.ca.shared.global [depot], [%rd1], 8;", "a variable of another space"),
        ("bra 5;", "a target that is no label"),
        ("call 5;", "an indirect call"),
        ("bar.red.popc.u32 %r1;", "popc"),
        ("mov.b32 5, %r1;", "a result of the form"),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f1}, {%r1, %r1}, {%r1}, {%f1, %f1, %f1, %f1};",
            "2 registers for a matrix that has 4 in a lane",
        ),
    ] {
        let text = refusal(&with_body(body)).to_string();
        assert!(text.contains(part) && text.starts_with("PTX line 7: "), "{body}: {text}");
    }
}

#[test]
fn undeclared_names_are_named_with_their_line() {
    for (body, name) in [
        ("add.u32 %r1, %r2, %r9;", "%r9"),
        ("add.u32 %x, %r2, %r2;", "%x"),
        ("ld.param.u64 %rd1, [q];", "q"),
        ("ld.global.u32 %r1, [nowhere+4];", "nowhere"),
        ("mov.u64 %rd1, nowhere;", "nowhere"),
        ("@%p9 ret;", "%p9"),
        ("bra NOWHERE;", "NOWHERE"),
        ("brx.idx %r1, TABLE;", "TABLE"),
        ("TABLE: .branchtargets A, B; A: brx.idx %r1, TABLE;", "B"),
        ("call nothing;", "nothing"),
        ("{ .reg .b32 inner; } mov.b32 %r1, inner;", "inner"),
        ("mov.u32 %r1, %nonsense.x;", "%nonsense.x"),
    ] {
        match refusal(&with_body(&format!("\n{body}"))) {
            LoadError::Undeclared { line: 8, name: found } => assert_eq!(found, name, "{body}"),
            other => panic!("{body}: {other}"),
        }
    }
}

#[test]
fn functions_must_not_call_themselves() {
    let text = ".version 8.0 .target sm_90 .address_size 64\n.func f();\n.func g() { call f; }\n.func f() { call g; }\n\
                .visible .entry k() { call f; }";
    let message = refusal(text).to_string();
    assert!(message.contains("recursive") && message.contains("`call`"), "{message}");
    let text = "\n.func f()\n{ call f; }\n.visible .entry k() { call f; }";
    let message = refusal(text).to_string();
    assert!(message.contains("PTX line 2: ") && message.contains("recursive"), "{message}");
    // Not even if there are many between.
    let chain: String = (0..5000).rev().map(|n| format!(".func f{n}() {{ call f{}; }}\n", n + 1)).collect();
    let text = format!(".func f5000() {{ ret; }}\n{chain}.visible .entry k() {{ call f0; }}");
    assert!(refusal(&text).to_string().contains("calls inside each other"));
}

#[test]
fn functions_without_a_body_are_not_called() {
    let text = "\n.extern .func f(.param .b32 a);\n.visible .entry k() { .param .b32 a;\ncall f, (a); }\n.visible .entry l() { }";
    let message = refusal(text).to_string();
    assert_eq!(message, "PTX line 4: the instruction `call` is not supported: `f` has no body");
    Module::load(&text.replace("call f, (a);", "")).unwrap();
    Module::load(&format!("{text}\n.func f(.param .b32 a) {{ ret; }}")).unwrap();
}

#[test]
fn wrong_syntax_is_refused_with_its_line() {
    let deep = format!("mov.b64 %rd1, {}", "{".repeat(100_000));
    let table = format!(".global .b8 a[4] = {}", "{".repeat(100_000));
    for (text, line, part) in [
        (with_body("add.u32 %r1, %r2, %r3"), 8, "expected `;`"),
        (with_body("add.u32 %r1 %r2, %r3;"), 7, "expected `;`, found `%r2`"),
        (with_body("mov.u32 %r1, 12x4;"), 7, "expected a number, found `12x4`"),
        (with_body("mov.u32 %r1, 99999999999999999999;"), 7, "expected a number"),
        (with_body("mov.u32 %r1, 4*;"), 7, "expected a name, found `;`"),
        (with_body("mov.f32 %f1, 1.0.0;"), 7, "expected a number, found `1.0.0`"),
        (with_body("ld.global.u32 %r1, [%rd1+];"), 7, "expected a name"),
        (with_body("ld.global.u32 %r1, [%rd1+%r1];"), 7, "expected a number"),
        (with_body("ld.global.u32 %r1, [%rd1;"), 7, "an address of this form"),
        (with_body(".reg .b32 %z<9999999>;"), 7, "registers are too many"),
        (with_body(".reg .b32 %z<70000>;"), 7, "more than 65534 registers"),
        (with_body(".reg .b99 %z;"), 7, ".b99"),
        (with_body(".nonsense 4;"), 7, "`.nonsense` is not known in a function"),
        (with_body(".local .b8 l[600000];"), 7, "512 KiB"),
        (with_body(".shared .b8 l[49145];"), 7, "more than 49152 bytes of static shared memory"),
        (with_body(".shared .align 3 .b8 l[2];"), 7, "alignment of 3"),
        (with_body("/* never closed"), 7, "a comment is not closed"),
        (with_body(".pragma \"never closed;"), 7, "a string is not closed"),
        (with_body(&deep), 7, "nested too deeply"),
        (table, 1, "nested too deeply"),
        (".global .b8 a[2] = {1, 2, 3};".into(), 1, "size of `a`"),
        (".global .b8 a[9999999999999];".into(), 1, "size of `a`"),
        (".global .b8 a[4294967296][4294967296];".into(), 1, "size of `a`"),
        ("\n\n.global .b8 a[4000000000];".into(), 3, "1 GiB of module variables"),
        (".global .u32 a = b;".into(), 1, "only numbers"),
        (".global a;".into(), 1, "lacks its type"),
        (".visible .entry k(.param .b8 a[40000]) { }".into(), 1, "32764 bytes of parameters"),
        (
            ".func f(.param .b8 a[600000]) { }\n.entry k() { .param .b8 a[4]; call f, (a); }".into(),
            1,
            "512 KiB",
        ),
        (
            ".func f(.reg .b32 a) { }\n.entry k() { .param .b32 a; call f, (a); }".into(),
            1,
            "parameters in registers",
        ),
        ("hello".into(), 1, "`hello` is not known here"),
        ("\n.entry k( { }".into(), 2, "expected a name"),
        (".entry k()\n{\n\n".into(), 2, "ends in the middle"),
        (".entry".into(), 1, "ends in the middle"),
        (".file 4294967296 \"a\"".into(), 1, "file number"),
    ] {
        let message = refusal(&text).to_string();
        let shown: String = text.chars().take(100).collect();
        assert!(message.contains(part), "{shown}: {message}");
        assert!(message.starts_with(&format!("PTX line {line}: ")), "{shown}: {message}");
    }
}

#[test]
fn many_branches_share_a_table() {
    // The table stands in the scope around, as do its labels.
    let labels: Vec<String> = (0..8000).map(|n| format!("L{n}")).collect();
    let branches: String = labels.iter().map(|label| format!("{label}: {{ brx.idx %r1, T; }}\n")).collect();
    let text = with_body(&format!("{{ T: .branchtargets {};\n{branches} }}", labels.join(", ")));
    let started = std::time::Instant::now();
    Module::load(&text).unwrap();
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    let error = refusal(&text.replace("L7999:", "L:"));
    assert_eq!(error.to_string(), "PTX line 8: `L7999` is not declared");
}

#[test]
fn real_kernels_load() {
    let mut count = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).unwrap() {
        let path = entry.unwrap().path();
        let module = Module::load(&std::fs::read_to_string(&path).unwrap());
        let module = module.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(module.kernels().len(), 1, "{}", path.display());
        let info = module.kernel(&module.kernels()[0]).unwrap();
        assert!(!info.param_bytes.is_empty());
        count += 1;
    }
    assert_eq!(count, 13);
    assert!(Module::load("").unwrap().kernels().is_empty());
}

/// The product of a small matrix, by each of the real kernels, in several schedules.
#[test]
fn real_kernels_multiply() {
    let rows: Vec<Vec<u32>> =
        (0..50u32).map(|row| (0..row % 7).map(|k| (row * 3 + k * 5) % 40).collect()).collect();
    let offsets: Vec<u32> = std::iter::once(0)
        .chain(rows.iter().scan(0, |sum, row| {
            *sum += row.len() as u32;
            Some(*sum)
        }))
        .collect();
    let indices: Vec<u32> = rows.iter().flatten().copied().collect();
    let values: Vec<f64> = (0..indices.len()).map(|k| (k % 5) as f64 - 2.0).collect();
    let x: Vec<f64> = (0..40).map(|k| f64::from(k % 9)).collect();
    let expected: Vec<f64> = (0..rows.len())
        .map(|row| {
            (offsets[row]..offsets[row + 1])
                .map(|k| values[k as usize] * x[indices[k as usize] as usize])
                .fold(0.0, |sum, term| sum + term)
        })
        .collect();
    for text in FIXTURES {
        let module = Module::load(text).unwrap();
        let name = &module.kernels()[0];
        let wide = text.contains(".param .f64");
        let bytes = |numbers: &[f64]| -> Vec<u8> {
            match wide {
                true => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
                false => numbers.iter().flat_map(|number| (*number as f32).to_le_bytes()).collect(),
            }
        };
        for schedule in [Schedule::Natural, Schedule::Adversarial(3), Schedule::Adversarial(4)] {
            let mut simulator = Simulator::new();
            let mut upload = |bytes: Vec<u8>| {
                let address = simulator.allocate(bytes.len() as u64).unwrap();
                simulator.write(address, &bytes).unwrap();
                Arg::U64(address)
            };
            let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
            let number = |value: f64| if wide { Arg::F64(value) } else { Arg::F32(value as f32) };
            let y = upload(bytes(&vec![0.0; rows.len()]));
            let mut args = vec![
                Arg::U32(rows.len() as u32),
                upload(words(&offsets)),
                upload(words(&indices)),
                upload(bytes(&values)),
                upload(bytes(&x)),
                y.clone(),
            ];
            args.extend([number(1.0), number(0.0)]);
            if name.contains("light") {
                args.extend([upload(words(&[0])), upload(words(&[0]))]);
            }
            let launch = Launch { args, schedule, ..Launch::new(4, 256) };
            simulator
                .launch(&module, name, &launch)
                .unwrap_or_else(|error| panic!("{name} {schedule:?}: {error}"));
            let mut found = bytes(&expected);
            let Arg::U64(address) = y else { unreachable!("y is an address") };
            simulator.read(address, &mut found).unwrap();
            assert_eq!(found, bytes(&expected), "{name} {schedule:?}");
        }
    }
}

#[test]
fn the_mixture_runs() {
    for seed in 0..30 {
        assert_eq!(load_and_launch(MIXTURE, seed), Launched::Ran, "seed {seed}");
    }
}

#[test]
fn a_text_may_end_anywhere() {
    for text in [FIXTURES[2], FIXTURES[4], MIXTURE] {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            load_and_launch(&text[..end], end as u64);
        }
    }
    assert!(MOST.load(Relaxed) < MOST_ALLOWED);
}

#[test]
fn a_text_may_be_edited_anywhere() {
    let mut loaded = 0;
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let from = random.below(2 * FIXTURES.len());
        let text = mutate(FIXTURES.get(from).unwrap_or(&MIXTURE), &mut random);
        let started = std::time::Instant::now();
        loaded += u32::from(!matches!(load_and_launch(&text, seed), Launched::NotLoaded(_)));
        assert!(started.elapsed().as_secs() < 20, "seed {seed} hangs");
    }
    assert!(loaded > 2_000, "only {loaded} of the edited texts load");
    assert!(MOST.load(Relaxed) < MOST_ALLOWED, "{} bytes", MOST.load(Relaxed));
}

#[test]
fn neither_memory_nor_code_is_printed() {
    let mut simulator = Simulator::new();
    simulator.allocate(1 << 20).unwrap();
    let text = ".version 8.0 .target sm_90 .address_size 64 .visible .entry k() { ret; }";
    let module = Module::load(text).unwrap();
    assert_eq!(format!("{simulator:?}"), "Simulator { capacity: 17179869184, used: 1048576, .. }");
    assert_eq!(format!("{module:?}"), "Module { kernels: [\"k\"], .. }");
}
