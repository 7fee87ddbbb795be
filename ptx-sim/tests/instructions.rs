//! Known answers for every instruction that moves data or steers threads; what computes is tested beside its code.

mod harness;

use harness::Kernel;
use ptx_sim::Arg;

/// Eight bytes whose halves, quarters and bytes are all negative and all different.
const PATTERN: u64 = 0x8182_8384_8586_8788;

const TYPES: [(&str, u32); 14] = [
    ("b8", 1),
    ("u8", 1),
    ("s8", 1),
    ("b16", 2),
    ("u16", 2),
    ("s16", 2),
    ("b32", 4),
    ("u32", 4),
    ("s32", 4),
    ("f32", 4),
    ("b64", 8),
    ("u64", 8),
    ("s64", 8),
    ("f64", 8),
];

/// What a load of a type at an offset of the pattern leaves in a 64-bit register.
fn loaded(kind: &str, bytes: u32, offset: u32) -> u64 {
    let left = 64 - 8 * bytes;
    let value = PATTERN >> (8 * offset) << left;
    if kind.starts_with('s') { (value as i64 >> left) as u64 } else { value >> left }
}

/// A space: its name in the mnemonic, declarations of the module and the body, and code that puts the address of
/// eight bytes that hold the pattern into %rd1.
struct Space {
    name: &'static str,
    module: &'static str,
    setup: &'static str,
    writable: bool,
}

const SPACES: [Space; 13] = [
    Space { name: "global", module: "", setup: "mad.wide.u32 %rd1, %tid, 8, %in;", writable: true },
    Space { name: "", module: "", setup: "mad.wide.u32 %rd1, %tid, 8, %in;", writable: true },
    Space {
        name: "shared",
        module: "",
        setup: ".shared .align 8 .b8 other[24]; .shared .align 8 .b8 sh[256];
                mov.u64 %rd2, sh; mad.wide.u32 %rd1, %tid, 8, %rd2; st.shared.b64 [%rd1], %rd20;",
        writable: true,
    },
    Space {
        name: "shared::cta",
        module: ".shared .align 8 .b64 sh[32];",
        setup: "mov.u64 %rd2, sh; mad.wide.u32 %rd1, %tid, 8, %rd2; st.shared.u64 [%rd1], %rd20;",
        writable: true,
    },
    Space {
        name: "shared",
        module: ".extern .shared .align 16 .b8 dynamic[];",
        setup: ".shared .align 4 .b8 before[20];
                mov.u64 %rd2, dynamic; mad.wide.u32 %rd1, %tid, 8, %rd2; st.shared.b64 [%rd1], %rd20;",
        writable: true,
    },
    Space {
        name: "",
        module: "",
        setup: ".shared .align 8 .b8 sh[256]; mov.u64 %rd2, sh; mad.wide.u32 %rd3, %tid, 8, %rd2;
                st.shared.b64 [%rd3], %rd20; cvta.shared.u64 %rd1, %rd3;",
        writable: true,
    },
    Space {
        name: "local",
        module: "",
        setup: ".local .align 8 .b8 depot[24]; mov.u64 %rd2, depot; add.u64 %rd1, %rd2, 16;
                st.local.b64 [%rd1], %rd20;",
        writable: true,
    },
    Space {
        name: "",
        module: "",
        setup: ".local .align 8 .b8 depot[24]; mov.u64 %rd2, depot; cvta.local.u64 %rd3, %rd2;
                add.u64 %rd1, %rd3, 8; st.b64 [%rd1], %rd20;",
        writable: true,
    },
    Space {
        name: "const",
        module: ".const .align 8 .b64 table[3] = {1, 0x8182838485868788, 2};",
        setup: "mov.u64 %rd2, table; add.u64 %rd1, %rd2, 8;",
        writable: false,
    },
    Space {
        name: "",
        module: ".const .align 8 .b64 table[3] = {1, 0x8182838485868788, 2};",
        setup: "mov.u64 %rd2, table; cvta.const.u64 %rd3, %rd2; add.u64 %rd1, %rd3, 8;",
        writable: false,
    },
    Space {
        name: "global",
        module: ".global .align 8 .b8 variable[16] = {0, 0, 0, 0, 0, 0, 0, 0,
                 0x88, 0x87, 0x86, 0x85, 0x84, 0x83, 0x82, 0x81};",
        setup: "mov.u64 %rd2, variable; add.u64 %rd1, %rd2, 8;",
        writable: false,
    },
    Space {
        name: "",
        module: ".global .align 8 .u64 variable = 0x8182838485868788;",
        setup: "mov.u64 %rd2, variable; cvta.global.u64 %rd1, %rd2;",
        writable: false,
    },
    Space {
        name: "param",
        module: "",
        setup: "mov.b64 %rd2, structure; add.s64 %rd1, %rd2, 8;",
        writable: false,
    },
];

fn in_space(space: &Space, body: &str) -> Kernel {
    let input: Vec<u8> = (0..32).flat_map(|_| PATTERN.to_le_bytes()).collect();
    let mut structure = vec![1, 2, 3, 4, 5, 6, 7, 8];
    structure.extend(PATTERN.to_le_bytes());
    Kernel::new(format!("mov.b64 %rd20, 0x8182838485868788;\n{}\n{body}", space.setup))
        .module(space.module)
        .param(".param .align 8 .b8 structure[16]", Arg::Bytes(structure))
        .shared_bytes(256)
        .input(input)
}

fn dotted(space: &str) -> String {
    if space.is_empty() { String::new() } else { format!(".{space}") }
}

#[test]
fn loads_of_every_width_from_every_space() {
    for space in &SPACES {
        let name = dotted(space.name);
        for (kind, bytes) in TYPES {
            for offset in (0..8).step_by(bytes as usize) {
                let expected = loaded(kind, bytes, offset);
                // Into a register of the size and, except for floats, into a wider one.
                let narrow = match (kind, bytes) {
                    ("f32", _) => "%f1",
                    ("f64", _) => "%d1",
                    (_, 8) => "%rd5",
                    (_, 4) => "%r5",
                    _ => "%h5",
                };
                let store = match bytes {
                    8 => format!("st.global.b64 [%slot], {narrow};"),
                    4 => format!("st.global.b32 [%slot], {narrow};"),
                    _ => format!("st.global.b16 [%slot], {narrow};"),
                };
                let out = in_space(space, &format!("ld{name}.{kind} {narrow}, [%rd1+{offset}]; {store}"))
                    .run_natural();
                let kept = if bytes == 1 { 16 } else { 8 * bytes };
                let mask = u64::MAX >> (64 - kept);
                assert_eq!(out.longs(), [expected & mask; 32], "ld{name}.{kind} {offset}: {}", space.setup);
                if !kind.starts_with('f') {
                    let body = format!("ld{name}.{kind} %rd5, [%rd1+{offset}]; st.global.b64 [%slot], %rd5;");
                    let out = in_space(space, &body).run_natural();
                    assert_eq!(out.longs(), [expected; 32], "ld{name}.{kind} wide {offset}: {}", space.setup);
                }
            }
        }
    }
}

#[test]
fn stores_of_every_width_change_only_their_bytes() {
    for space in SPACES.iter().filter(|space| space.writable) {
        let name = dotted(space.name);
        for (kind, bytes) in TYPES {
            for offset in (0..8).step_by(bytes as usize) {
                let value = match kind {
                    "f32" => "0f33221100",
                    "f64" => "0d7766554433221100",
                    _ => "%rd6",
                };
                let body = format!(
                    "mov.b64 %rd6, 0x7766554433221100; st{name}.{kind} [%rd1+{offset}], {value};
                     ld{name}.b64 %rd7, [%rd1]; st.global.b64 [%slot], %rd7;"
                );
                let mask = (u64::MAX >> (64 - 8 * bytes)) << (8 * offset);
                let expected = PATTERN & !mask | 0x7766_5544_3322_1100 << (8 * offset) & mask;
                let out = in_space(space, &body).run_natural();
                assert_eq!(out.longs(), [expected; 32], "st{name}.{kind} {offset}");
            }
        }
    }
}

#[test]
fn parameters_by_name_with_offsets() {
    let mut structure = 7u32.to_le_bytes().to_vec();
    structure.extend(PATTERN.to_le_bytes());
    let body = "ld.param.u32 %r1, [structure]; ld.param.s16 %r2, [structure+4]; ld.param.v2.u32 {%r3, %r4}, \
                [pair+8]; ld.param.f32 %f1, [scale]; ld.param.f64 %d1, [wide];
                cvt.rn.f32.f64 %f2, %d1; add.f32 %f1, %f1, %f2; add.s32 %r2, %r2, %r3;
                st.global.v4.b32 [%slot], {%r1, %r2, %r4, %f1};";
    let pair: Vec<u8> = [1u32, 2, 30, 40].iter().flat_map(|word| word.to_le_bytes()).collect();
    let out = Kernel::new(body)
        .param(".param .align 4 .b8 structure[12]", Arg::Bytes(structure))
        .param(".param .f32 scale", Arg::F32(1.5))
        .param(".param .align 16 .b8 pair[16]", Arg::Bytes(pair))
        .param(".param .f64 wide", Arg::F64(0.25))
        .run();
    let low = 0x8788u16 as i16;
    assert_eq!(out.out, [[7, (i32::from(low) + 30) as u32, 40, 1.75f32.to_bits()]; 32]);
}

#[test]
fn hints_of_loads_and_stores_change_nothing() {
    let loads = [
        "ca",
        "cg",
        "cs",
        "lu",
        "cv",
        "nc",
        "L1::no_allocate",
        "L1::evict_first",
        "L1::evict_last",
        "L1::evict_normal",
        "L1::evict_unchanged",
        "L2::64B",
        "L2::128B",
        "L2::256B",
        "volatile",
    ];
    let spaced: [&str; 16] = [
        "ld.volatile.global.u32",
        "ld.relaxed.cta.global.u32",
        "ld.relaxed.gpu.global.u32",
        "ld.relaxed.sys.global.u32",
        "ld.acquire.cta.global.u32",
        "ld.acquire.gpu.global.u32",
        "ld.acquire.sys.global.u32",
        "ld.weak.global.u32",
        "ld.relaxed.cluster.global.u32",
        "ld.acquire.gpu.u32",
        "ld.volatile.u32",
        "ld.mmio.relaxed.sys.global.u32",
        "ld.global.nc.L1::no_allocate.L2::128B.u32",
        "ld.global.nc.L1::evict_last.u32",
        "ld.weak.global.cs.u32",
        "ldu.global.u32",
    ];
    let mut opcodes: Vec<String> = spaced.map(String::from).into();
    opcodes.extend(loads.iter().map(|hint| format!("ld.global.{hint}.u32")));
    for opcode in opcodes {
        let body =
            format!("mad.wide.u32 %rd1, %tid, 4, %in; {opcode} %r1, [%rd1]; st.global.u32 [%slot], %r1;");
        let out = Kernel::new(body).words(&(100..132).collect::<Vec<_>>()).run_natural();
        assert_eq!(out.words(), (100..132).collect::<Vec<_>>(), "{opcode}");
    }
    let stores = [
        "st.global.wb.u32",
        "st.global.cg.u32",
        "st.global.cs.u32",
        "st.global.wt.u32",
        "st.volatile.global.u32",
        "st.relaxed.cta.global.u32",
        "st.relaxed.gpu.global.u32",
        "st.relaxed.sys.global.u32",
        "st.release.cta.global.u32",
        "st.release.gpu.global.u32",
        "st.release.sys.global.u32",
        "st.weak.global.u32",
        "st.global.L1::no_allocate.u32",
        "st.global.L1::evict_first.u32",
        "st.release.gpu.u32",
        "st.volatile.u32",
    ];
    for opcode in stores {
        let out = Kernel::new(format!("{opcode} [%slot], %tid;")).run_natural();
        assert_eq!(out.words(), (0..32).collect::<Vec<_>>(), "{opcode}");
    }
    let shared = "mov.u64 %rd2, sh; mad.wide.u32 %rd1, %tid, 4, %rd2; st.volatile.shared.u32 [%rd1], %tid;
                  ld.relaxed.cta.shared.u32 %r1, [%rd1]; st.release.cta.shared.u32 [%rd1], %r1;
                  ld.acquire.cta.shared::cta.u32 %r2, [%rd1]; ld.volatile.shared.u32 %r2, [%rd1];
                  st.global.u32 [%slot], %r2;";
    let out = Kernel::new(shared).module(".shared .align 4 .b8 sh[128];").run();
    assert_eq!(out.words(), (0..32).collect::<Vec<_>>());
    let policy = "createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;
                  createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %rd2, 0.5;
                  ld.global.L2::cache_hint.u32 %r1, [%in], %rd1;
                  ld.global.nc.L1::no_allocate.L2::cache_hint.v2.u32 {%r2, %r3}, [%in], %rd2;
                  add.u32 %r1, %r1, %r3; st.global.L2::cache_hint.u32 [%slot], %r1, %rd1;";
    // The fraction is a float in PTX.
    let policy = policy.replace("1.0", "0f3F800000").replace("0.5", "0f3F000000");
    assert_eq!(Kernel::new(policy).words(&[5, 6]).run().words(), [11; 32]);
}

#[test]
fn vectors_of_two_and_four_of_every_type() {
    for space in SPACES.iter().filter(|space| space.writable) {
        let name = dotted(space.name);
        for (kind, bytes) in TYPES {
            for lanes in [2u32, 4] {
                if bytes * lanes > 8 {
                    continue;
                }
                let registers: Vec<String> = (0..lanes)
                    .map(|lane| format!("{}{}", if kind == "f32" { "%f" } else { "%r" }, lane + 1))
                    .collect();
                let reversed: Vec<String> = registers.iter().rev().cloned().collect();
                let body = format!(
                    "ld{name}.v{lanes}.{kind} {{{}}}, [%rd1]; st{name}.v{lanes}.{kind} [%rd1], {{{}}};
                     ld{name}.b64 %rd7, [%rd1]; st.global.b64 [%slot], %rd7;",
                    registers.join(", "),
                    reversed.join(", ")
                );
                let part = |lane: u32| PATTERN >> (8 * bytes * lane) & u64::MAX >> (64 - 8 * bytes);
                let swapped =
                    (0..lanes).fold(0, |all, lane| all | part(lane) << (8 * bytes * (lanes - 1 - lane)));
                let rest = if bytes * lanes == 8 {
                    0
                } else {
                    PATTERN >> (8 * bytes * lanes) << (8 * bytes * lanes)
                };
                let out = in_space(space, &body).run_natural();
                assert_eq!(out.longs(), [rest | swapped; 32], "ld{name}.v{lanes}.{kind}");
            }
        }
    }
    // 16 and 32 bytes.
    let words: Vec<u32> = (0..8).map(|word| 0x1111_1111 * word).collect();
    for (kind, register) in [("b32", "%r"), ("u32", "%r"), ("s32", "%r"), ("f32", "%f")] {
        let body = format!(
            "ld.global.nc.v4.{kind} {{{register}1, {register}2, {register}3, {register}4}}, [%in+16];
             st.global.v4.{kind} [%slot], {{{register}4, {register}3, {register}2, {register}1}};"
        );
        assert_eq!(Kernel::new(body).words(&words).run().out, [[words[7], words[6], words[5], words[4]]; 32]);
    }
    for (kind, register) in [("b64", "%rd"), ("u64", "%rd"), ("s64", "%rd"), ("f64", "%d")] {
        let body = format!(
            "ld.global.v2.{kind} {{{register}1, {register}2}}, [%in+16];
             st.global.v2.{kind} [%slot], {{{register}2, {register}1}};"
        );
        assert_eq!(Kernel::new(body).words(&words).run().out, [[words[6], words[7], words[4], words[5]]; 32]);
    }
    // A result that nobody wants.
    let body = "ld.global.v4.u32 {_, %r1, _, %r2}, [%in]; st.global.v2.u32 [%slot], {%r1, %r2};";
    assert_eq!(Kernel::new(body).words(&words).run().out[0][..2], [words[1], words[3]]);
}

#[test]
fn module_variables_keep_their_initial_values() {
    let module =
        ".global .align 4 .f32 half = 0f3F000000; .global .align 8 .f64 third[2] = {0d3FF0000000000000};
                  .const .align 2 .b16 small[3] = {1, -2, 3}; .global .align 1 .b8 bytes[4] = {1, 2, 3, 4};
                  .global .align 4 .b32 matrix[2][2] = {{1, 2}, {3, 4}}; .global .align 4 .u32 zero;";
    let body = "ld.global.f32 %f1, [half]; ld.global.f64 %d1, [third]; cvt.rn.f32.f64 %f2, %d1;
                add.f32 %f1, %f1, %f2; ld.const.s16 %r1, [small+2]; ld.global.u32 %r2, [bytes];
                ld.global.u32 %r3, [matrix+8]; ld.global.u32 %r4, [zero]; ld.global.b64 %rd1, [third+8];
                add.u32 %r3, %r3, %r4; cvt.u32.u64 %r5, %rd1; add.u32 %r3, %r3, %r5;
                st.global.v4.b32 [%slot], {%f1, %r1, %r2, %r3};";
    let out = Kernel::new(body).module(module).run();
    assert_eq!(out.out, [[1.5f32.to_bits(), -2i32 as u32, 0x0403_0201, 3]; 32]);
    let module = ".const .align 4 .f32 bias[2] = {-1.5, 2.5}; .global .align 8 .f64 wide = 0f3F800000;";
    let body = "ld.const.f32 %f1, [bias]; ld.const.f32 %f2, [bias+4]; ld.global.f64 %d1, [wide];
                cvt.rn.f32.f64 %f3, %d1; st.global.v4.b32 [%slot], {%f1, %f2, %f3, %f3};";
    let out = Kernel::new(body).module(module).run();
    assert_eq!(out.out, [[-1.5f32, 2.5, 1.0, 1.0].map(f32::to_bits); 32]);
    // Stores to a variable last.
    let body = "add.u32 %r1, %tid, 5; mov.u64 %rd1, cell; mad.wide.u32 %rd1, %tid, 4, %rd1;
                st.global.u32 [%rd1], %r1; ld.global.u32 %r2, [%rd1]; st.global.u32 [%slot], %r2;";
    let out = Kernel::new(body).module(".global .align 4 .b8 cell[128];").run();
    assert_eq!(out.words(), (5..37).collect::<Vec<_>>());
}

#[test]
fn addresses_convert_between_spaces() {
    let body = "mov.u64 %rd1, sh; cvta.shared.u64 %rd2, %rd1; cvta.to.shared.u64 %rd3, %rd2;
                mov.u64 %rd4, depot; cvta.local.u64 %rd5, %rd4; cvta.to.local.u64 %rd6, %rd5;
                cvta.to.global.u64 %rd7, %in; cvta.global.u64 %rd8, %rd7; mov.u64 %rd9, table;
                cvta.const.u64 %rd10, %rd9; cvta.to.const.u64 %rd11, %rd10;
                setp.eq.u64 %p1, %rd1, %rd3; setp.eq.and.u64 %p1, %rd4, %rd6, %p1;
                setp.eq.and.u64 %p1, %in, %rd8, %p1; setp.eq.and.u64 %p1, %rd9, %rd11, %p1;
                selp.u32 %r1, 1, 0, %p1;
                isspacep.shared %p2, %rd2; selp.u32 %r2, 1, 0, %p2; isspacep.shared %p2, %rd5; selp.u32 %r3, 1, 0, %p2;
                mad.lo.u32 %r2, %r2, 2, %r3;
                isspacep.local %p2, %rd5; selp.u32 %r3, 1, 0, %p2; mad.lo.u32 %r2, %r2, 2, %r3;
                isspacep.local %p2, %in; selp.u32 %r3, 1, 0, %p2; mad.lo.u32 %r2, %r2, 2, %r3;
                isspacep.global %p2, %in; selp.u32 %r3, 1, 0, %p2; mad.lo.u32 %r2, %r2, 2, %r3;
                isspacep.global %p2, %rd2; selp.u32 %r3, 1, 0, %p2; mad.lo.u32 %r2, %r2, 2, %r3;
                isspacep.const %p2, %rd10; selp.u32 %r3, 1, 0, %p2; mad.lo.u32 %r2, %r2, 2, %r3;
                isspacep.shared::cta %p2, %rd2; selp.u32 %r3, 1, 0, %p2; mad.lo.u32 %r2, %r2, 2, %r3;
                st.global.v2.u32 [%slot], {%r1, %r2};";
    let body = format!(".shared .b32 sh[4]; .local .b32 depot[4]; {body}");
    let out = Kernel::new(body).module(".const .align 8 .b64 table[1] = {1};").run();
    assert_eq!(out.out, [[1, 0b1010_1011, 0, 0]; 32]);
    // A variable of the module lies in global memory.
    let body =
        "mov.u64 %rd1, cell; isspacep.global %p1, %rd1; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%slot], %r1;";
    assert_eq!(Kernel::new(body).module(".global .u32 cell;").run().words(), [1; 32]);
}

/// One atomic by one thread: the type, memory before, operands, memory after.
type AtomicCase = (&'static str, &'static str, u64, &'static [u64], u64);

const MINUS_ONE: u64 = u64::MAX;

const ATOMICS: &[AtomicCase] = &[
    ("add", "u32", 0xffff_fffe, &[5], 3),
    ("add", "s32", 0x7fff_ffff, &[1], 0x8000_0000),
    ("add", "u64", u64::MAX - 1, &[5], 3),
    ("add", "f32", 0x3fc0_0000, &[0x4020_0000], 0x4080_0000),
    ("add", "f64", 0x3ff8_0000_0000_0000, &[0x4004_0000_0000_0000], 0x4010_0000_0000_0000),
    ("add.noftz", "f16", 0x3c00, &[0x3800], 0x3e00),
    ("add.noftz", "bf16", 0x3f80, &[0x3f00], 0x3fc0),
    ("add.noftz", "f16x2", 0x4000_3c00, &[0x3c00_3800], 0x4200_3e00),
    ("add.noftz", "bf16x2", 0x4000_3f80, &[0x3f80_3f00], 0x4040_3fc0),
    ("min", "u32", 5, &[0xffff_ffff], 5),
    ("min", "s32", 5, &[0xffff_ffff], 0xffff_ffff),
    ("max", "u32", 5, &[0xffff_ffff], 0xffff_ffff),
    ("max", "s32", 5, &[0xffff_ffff], 5),
    ("min", "u64", 5, &[MINUS_ONE], 5),
    ("min", "s64", 5, &[MINUS_ONE], MINUS_ONE),
    ("max", "u64", 5, &[MINUS_ONE], MINUS_ONE),
    ("max", "s64", 5, &[MINUS_ONE], 5),
    ("and", "b32", 0xff00_ff00, &[0x0ff0_0ff0], 0x0f00_0f00),
    ("or", "b32", 0xff00_ff00, &[0x0ff0_0ff0], 0xfff0_fff0),
    ("xor", "b32", 0xff00_ff00, &[0x0ff0_0ff0], 0xf0f0_f0f0),
    ("and", "b64", PATTERN, &[0x0f0f_0f0f_0f0f_0f0f], PATTERN & 0x0f0f_0f0f_0f0f_0f0f),
    ("or", "b64", PATTERN, &[0x0f0f_0f0f_0f0f_0f0f], PATTERN | 0x0f0f_0f0f_0f0f_0f0f),
    ("xor", "b64", PATTERN, &[0x0f0f_0f0f_0f0f_0f0f], PATTERN ^ 0x0f0f_0f0f_0f0f_0f0f),
    ("exch", "b32", 1, &[0x8000_0007], 0x8000_0007),
    ("exch", "b64", 1, &[PATTERN], PATTERN),
    ("inc", "u32", 4, &[5], 5),
    ("inc", "u32", 5, &[5], 0),
    ("inc", "u32", 9, &[5], 0),
    ("dec", "u32", 4, &[5], 3),
    ("dec", "u32", 0, &[5], 5),
    ("dec", "u32", 9, &[5], 5),
    ("cas", "b32", 0x8000_0001, &[0x8000_0001, 9], 9),
    ("cas", "b32", 8, &[7, 9], 8),
    ("cas", "b64", PATTERN, &[PATTERN, 9], 9),
    ("cas", "b64", PATTERN, &[PATTERN & 0xffff_ffff, 9], PATTERN),
    ("cas", "b16", 0x8001, &[0x8001, 0x9234], 0x9234),
    ("cas", "b16", 0x8001, &[0x0001, 0x9234], 0x8001),
];

#[test]
fn atomics_of_every_operation_and_type() {
    let spaces = [
        ("global", "mov.b64 %rd1, %in;"),
        ("", "mov.b64 %rd1, %in;"),
        ("shared", "mov.u64 %rd1, sh; ld.global.b64 %rd9, [%in]; st.shared.b64 [%rd1], %rd9;"),
        (
            "",
            "mov.u64 %rd8, sh; ld.global.b64 %rd9, [%in]; st.shared.b64 [%rd8], %rd9; cvta.shared.u64 %rd1, %rd8;",
        ),
        ("shared::cta", "mov.u64 %rd1, sh; ld.global.b64 %rd9, [%in]; st.shared.b64 [%rd1], %rd9;"),
        ("global", "mov.u64 %rd1, cell; ld.global.b64 %rd9, [%in]; st.global.b64 [%rd1], %rd9;"),
    ];
    for (operation, kind, before, operands, after) in ATOMICS {
        for (index, (space, setup)) in spaces.iter().enumerate() {
            for modifiers in ["", ".relaxed.gpu", ".acq_rel.sys", ".release.cta", ".acquire.gpu"] {
                if index > 1 && !modifiers.is_empty() {
                    continue;
                }
                let wide = kind.contains("64");
                let register = if wide { "%rd1" } else { "%r1" };
                let operands: Vec<String> = (0..operands.len()).map(|n| format!("{register}{n}")).collect();
                let operands = operands.join(", ");
                let d = if wide { "%rd5" } else { "%r5" };
                let opcode = format!("{modifiers}{}.{operation}.{kind}", dotted(space));
                let red = match operation {
                    // Only `atom` has these.
                    &"cas" | &"exch" => format!("atom{opcode} _, [%rd1], {operands};"),
                    _ if modifiers.contains("acq") => format!("atom{opcode} _, [%rd1], {operands};"),
                    _ => format!("red{opcode} [%rd1], {operands};"),
                };
                for (instruction, returns) in
                    [(format!("atom{opcode} {d}, [%rd1], {operands};"), true), (red, false)]
                {
                    let body = format!(
                        "ld.global.b64 %rd10, [%in+8]; ld.global.b64 %rd11, [%in+16]; {setup} mov.b64 %rd5, 0;
                         mov.b32 %r5, 0; cvt.u32.u64 %r10, %rd10; cvt.u32.u64 %r11, %rd11; {instruction} ld{}.b64 %rd6, [%rd1]; st.global.b64 [%slot], %rd6;
                         {} st.global.b64 [%slot+8], %rd5;",
                        dotted(space),
                        if wide { "" } else { "cvt.u64.u32 %rd5, %r5;" }
                    );
                    let case = ATOMICS.iter().find(|case| {
                        case.0 == *operation && case.1 == *kind && case.2 == *before && case.4 == *after
                    });
                    let mut bytes = before.to_le_bytes().to_vec();
                    for operand in case.unwrap().3 {
                        bytes.extend(operand.to_le_bytes());
                    }
                    bytes.resize(24, 0);
                    let out = Kernel::new(body)
                        .module(".shared .align 8 .b64 sh; .global .align 8 .u64 cell;")
                        .block(1)
                        .input(bytes)
                        .run_natural();
                    assert_eq!(out.longs(), [*after], "{instruction}");
                    let old = u64::from(out.out[0][3]) << 32 | u64::from(out.out[0][2]);
                    assert_eq!(old, if returns { *before } else { 0 }, "{instruction} returns");
                }
            }
        }
    }
}

#[test]
fn atomics_of_many_threads_all_count() {
    let out = Kernel::new(
        "atom.global.add.u32 %r1, [%in], 1; red.global.add.u64 [%in+8], 3; red.global.max.u32 [%in+16], %gid;
         st.global.u32 [%slot], %r1;",
    )
    .words(&[0; 6])
    .grid(5)
    .block(96)
    .run_natural();
    let mut tickets = out.words();
    tickets.sort_unstable();
    assert_eq!(tickets, (0..480).collect::<Vec<_>>());
    assert_eq!(out.input_words(), [480, 0, 1440, 0, 479, 0]);
    // Without results any order gives the same.
    let kernel = Kernel::new(
        "red.global.add.u32 [%in], 1; red.global.or.b32 [%in+4], %gid; red.add.u64 [%in+8], 3;
         mov.u64 %rd1, sh; setp.eq.u32 %p1, %tid, 0; @%p1 st.shared.u32 [%rd1], 0; bar.sync 0;
         red.shared.add.u32 [%rd1], 2; bar.sync 0; ld.shared.u32 %r1, [%rd1]; st.global.u32 [%slot], %r1;",
    )
    .module(".shared .align 4 .b32 sh;")
    .words(&[0; 4])
    .grid(5)
    .block(96);
    let out = kernel.run();
    assert_eq!(out.input_words(), [480, 511, 1440, 0]);
    assert_eq!(out.words(), [192; 480]);
    assert_eq!(out.report.counters.shared_atomics, 480);
    assert_eq!(out.report.counters.global_atomics, 3 * 480);
    assert_eq!(out.report.counters.global_atomic_requests, 3 * 15);
}

#[test]
fn tickets_from_a_module_variable_do_not_depend_on_host_threads() {
    let kernel = Kernel::new("atom.global.add.u32 %r1, [ticket], 1; st.global.u32 [%slot], %r1;")
        .module(".global .align 4 .u32 ticket;")
        .grid(200);
    let one = kernel.run_with(ptx_sim::Schedule::Natural, 1).unwrap();
    assert_eq!(one.words(), (0..6400).collect::<Vec<_>>());
    for _ in 0..5 {
        assert_eq!(kernel.run_with(ptx_sim::Schedule::Natural, 8).unwrap(), one);
    }
}

#[test]
fn single_precision_sums_flush_subnormals_in_global_memory_only() {
    let body = "mov.u64 %rd1, sh; st.shared.b32 [%rd1], 0; red.global.add.f32 [%in], 0f00000001;
                red.shared.add.f32 [%rd1], 0f00000001; ld.shared.b32 %r1, [%rd1]; ld.global.b32 %r2, [%in];
                st.global.v2.b32 [%slot], {%r1, %r2};";
    let out = Kernel::new(body).module(".shared .align 4 .b32 sh;").words(&[0]).block(1).run_natural();
    assert_eq!(out.out[0][..2], [1, 0]);
    // Where an address lies decides, not how it is written.
    let body = "mov.u64 %rd1, sh; cvta.shared.u64 %rd2, %rd1; st.shared.b32 [%rd1], 0; red.add.f32 [%in], 0f00000001;
                atom.add.f32 %f1, [%rd2], 0f00000001; red.add.f32 [%rd2], 0f00000001; atom.add.f32 %f2, [%rd2], 0f3F800000;
                ld.shared.b32 %r1, [%rd1]; ld.global.b32 %r2, [%in]; mov.b32 %r3, %f1; mov.b32 %r4, %f2;
                st.global.v4.b32 [%slot], {%r1, %r2, %r3, %r4};";
    let out = Kernel::new(body).module(".shared .align 4 .b32 sh;").words(&[0]).block(1).run_natural();
    assert_eq!(out.out[0], [1.0f32.to_bits(), 0, 0, 2]);
}

#[test]
fn atomics_at_generic_addresses_go_to_shared_memory() {
    let body = "mov.u64 %rd1, sh; cvta.shared.u64 %rd2, %rd1; setp.eq.u32 %p1, %tid, 0; @%p1 st.shared.v2.b32 [%rd1], {0, 0};
                @%p1 st.shared.b64 [%rd1+8], 0; bar.sync 0; atom.add.u32 %r1, [%rd2], 2; red.max.u32 [%rd2+4], %tid;
                red.add.f64 [%rd2+8], 0d3FF0000000000000; atom.cas.b32 %r2, [%rd2+16], 0, 0; bar.sync 0;
                ld.shared.v2.b32 {%r3, %r4}, [%rd1]; ld.shared.f64 %d1, [%rd1+8]; cvt.rzi.u32.f64 %r5, %d1;
                st.global.v4.b32 [%slot], {%r3, %r4, %r5, 0};";
    let body = body.replace(
        "@%p1 st.shared.b64 [%rd1+8], 0;",
        "@%p1 st.shared.b64 [%rd1+8], 0; @%p1 st.shared.b32 [%rd1+16], 0;",
    );
    let out = Kernel::new(body).module(".shared .align 8 .b8 sh[24];").block(64).run();
    assert!(out.out.iter().all(|slot| *slot == [128, 63, 64, 0]), "{:?}", out.out);
}

#[test]
fn values_are_extended_to_wider_registers() {
    let body = "ld.global.b32 %rd1, [%in]; ld.global.s32 %rd2, [%in]; ld.global.s8 %rd3, [%in]; ld.global.u16 %rd4, [%in];
                st.global.v2.b64 [%slot], {%rd1, %rd2}; st.global.v2.b64 [%in+16], {%rd3, %rd4};
                ld.global.s8 %r1, [%in]; ld.global.s16 %r2, [%in]; ld.global.u8 %h1, [%in]; mov.b32 %r3, {%h1, %h1};
                ld.global.b64 %rd5, [%in]; st.global.u16 [%in+4], %rd5; st.global.v2.b32 [%in+32], {%r1, %r2}; st.global.b32 [%in+40], %r3;";
    let out = Kernel::new(body).words(&[0x8081_8283, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0]).block(1).run_natural();
    assert_eq!(out.out[0], [0x8081_8283, 0, 0x8081_8283, u32::MAX]);
    let words = out.input_words();
    assert_eq!(words[1..2], [0x8283]);
    assert_eq!(words[4..8], [0xffff_ff83, u32::MAX, 0x8283, 0]);
    assert_eq!(words[8..], [0xffff_ff83, 0xffff_8283, 0x0083_0083]);
}

#[test]
fn integers_are_converted_as_the_table_of_cvt_says() {
    // PTX ISA, cvt: the source is chopped and read as its type says, the result is chopped (or clamped) to its own type and
    // extended to the register as that says.
    let types =
        [("u8", 8), ("s8", 8), ("u16", 16), ("s16", 16), ("u32", 32), ("s32", 32), ("u64", 64), ("s64", 64)];
    let chopped = |bits: u128, width: u32| bits & ((1 << width) - 1);
    let read = |bits: u128, width: u32, ty: &str| {
        let bits = chopped(bits, width);
        if ty.starts_with('s') && bits >> (width - 1) == 1 {
            bits as i128 - (1 << width)
        } else {
            bits as i128
        }
    };
    let sources: Vec<u64> =
        [0u64, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]
            .into_iter()
            .flat_map(|low| {
                [low, low | 0x0123_4567 << 32, low | 0xffff_ffff << 32, low ^ 0x8000_0080_8080_8080]
            })
            .collect();
    let input: Vec<u8> = sources.iter().flat_map(|source| source.to_le_bytes()).collect();
    for (from, from_bits) in types {
        for (to, to_bits) in types {
            for (register, register_bits) in [("%h1", 16), ("%r1", 32), ("%rd1", 64)] {
                if register_bits < to_bits {
                    continue;
                }
                for sat in ["", ".sat"] {
                    let show = match register_bits {
                        16 => "mov.b32 %r2, {%h1, %h0}; mov.b64 %rd2, {%r2, %r0};",
                        32 => "mov.b64 %rd2, {%r1, %r0};",
                        _ => "mov.b64 %rd2, %rd1;",
                    };
                    let source = if from_bits == 64 { "%rd3" } else { "%r3" };
                    let body = format!(
                        "mov.b16 %h0, 0; mov.b32 %r0, 0; mad.wide.u32 %rd4, %tid, 8, %in; ld.global.b64 %rd3, [%rd4];
                         ld.global.b32 %r3, [%rd4]; cvt{sat}.{to}.{from} {register}, {source}; {show} st.global.b64 [%slot], %rd2;"
                    );
                    let out = Kernel::new(body).input(&input[..]).block(sources.len() as u32).run_natural();
                    for (source, found) in sources.iter().zip(out.longs()) {
                        let value = read((*source).into(), from_bits, from);
                        let (least, most) = match to.starts_with('s') {
                            true => (-(1i128 << (to_bits - 1)), (1i128 << (to_bits - 1)) - 1),
                            false => (0, (1i128 << to_bits) - 1),
                        };
                        let value = if sat.is_empty() { value } else { value.clamp(least, most) };
                        let result = read(chopped(value as u128, to_bits), to_bits, to);
                        let expected = chopped(result as u128, register_bits) as u64;
                        assert_eq!(found, expected, "cvt{sat}.{to}.{from} of {source:#x} in {register}");
                    }
                }
            }
        }
    }
}

#[test]
fn labels_belong_to_their_scope() {
    let body = "mov.u32 %r1, 0; bra A;
                { bra A; add.u32 %r1, %r1, 1000; A: add.u32 %r1, %r1, 1; }
                A: { bra A; add.u32 %r1, %r1, 1000; A: add.u32 %r1, %r1, 2; { bra B; } add.u32 %r1, %r1, 1000; B: }
                { TABLE: .branchtargets B, A; mov.u32 %r2, 1; brx.idx %r2, TABLE; A: add.u32 %r1, %r1, 4; bra END; }
                B: add.u32 %r1, %r1, 1000; END: call helper; st.global.u32 [%slot], %r1;";
    let out = Kernel::new(body).module(".func helper() { bra A; A: ret; }").run();
    assert_eq!(out.words(), [6; 32]);
}

#[test]
fn lanes_that_are_apart_meet_at_barriers_that_are_not_aligned() {
    let store = "mov.u64 %rd1, sh; mad.wide.u32 %rd2, %tid, 4, %rd1; st.shared.u32 [%rd2], %tid; xor.b32 %r1, %tid, 63;
                 mad.wide.u32 %rd3, %r1, 4, %rd1; setp.lt.u32 %p1, %lane, 16;";
    for (barrier, at) in [
        ("@%p1 barrier.sync 0; @!%p1 barrier.sync 0;", "all"),
        ("@%p1 barrier.cta.sync 1, 64; @!%p1 barrier.sync 1, 64;", "counted"),
        ("@%p1 bra LOW; barrier.sync 0; bra END; LOW: barrier.sync 0; END:", "branches"),
        ("@%p1 bra LOW; barrier.sync 2; bra END; LOW: mov.u32 %r9, 2; barrier.sync %r9; END:", "a register"),
        (
            "setp.ge.u32 %p2, %lane, 28; @%p2 exit; @%p1 bra LOW; barrier.sync 0; bra END; LOW: barrier.sync 0; END:",
            "fewer",
        ),
    ] {
        let body = format!("{store} {barrier} ld.shared.u32 %r2, [%rd3]; st.global.u32 [%slot], %r2;");
        let out = Kernel::new(body).module(".shared .align 4 .b8 sh[256];").block(64).run();
        for (thread, word) in out.words().into_iter().enumerate() {
            let there = at != "fewer" || thread % 32 < 28;
            assert_eq!(word, if there { 63 - thread as u32 } else { 0 }, "{at}");
        }
        assert_eq!(out.report.counters.barriers, 1, "{at}");
    }
    // Each part has its own operands and result.
    let body = "setp.lt.u32 %p1, %lane, 16; mov.u32 %r2, 0; mov.u32 %r3, 0; setp.lt.u32 %p2, %lane, 20; @%p1 bra LOW;
                barrier.red.popc.u32 %r2, 0, %p2; bra END; LOW: barrier.red.popc.u32 %r3, 0, %p2;
                END: st.global.v2.u32 [%slot], {%r2, %r3};";
    for (thread, slot) in Kernel::new(body).block(64).run().out.iter().enumerate() {
        assert_eq!(slot[..2], if thread % 32 < 16 { [0, 40] } else { [40, 0] });
    }
}

/// What PTX says about a shuffle: the lane that is read, and whether it lies in the segment.
fn shuffled(mode: &str, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (step, clamp, segment) = ((b & 31) as i32, (c & 31) as i32, (c >> 8 & 31) as i32);
    let lane = lane as i32;
    let max_lane = (lane & segment) | (clamp & !segment);
    let min_lane = lane & segment;
    let (from, inside) = match mode {
        "up" => (lane - step, lane - step >= max_lane),
        "down" => (lane + step, lane + step <= max_lane),
        "bfly" => (lane ^ step, (lane ^ step) <= max_lane),
        _ => {
            let from = min_lane | (step & !segment);
            (from, from <= max_lane)
        }
    };
    (if inside { from } else { lane } as u32, inside)
}

#[test]
fn shuffles_of_every_mode_width_and_distance() {
    for mode in ["up", "down", "bfly", "idx"] {
        for width in [1u32, 2, 4, 8, 16, 32] {
            let segment = (32 - width) << 8;
            let clamps = if mode == "up" { [0, 0] } else { [31, width / 2] };
            for clamp in clamps {
                let c = segment | clamp;
                for distance in [0u32, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33] {
                    let body = format!(
                        "mul.lo.u32 %r1, %lane, 3; add.u32 %r1, %r1, 100;
                         shfl.sync.{mode}.b32 %r2|%p1, %r1, {distance}, {c}, 0xffffffff; selp.u32 %r3, 1, 0, %p1;
                         shfl.sync.{mode}.b32 %r4, %r1, {distance}, {c}, -1; st.global.v4.u32 [%slot], {{%r2, %r3, %r4, %r1}};"
                    );
                    let out = Kernel::new(body).run_natural();
                    for lane in 0..32 {
                        let (from, inside) = shuffled(mode, lane, distance, c);
                        let expected = [100 + 3 * from, inside.into(), 100 + 3 * from, 100 + 3 * lane];
                        assert_eq!(out.out[lane as usize], expected, "{mode} {distance} {c:#x} lane {lane}");
                    }
                }
            }
        }
    }
}

#[test]
fn shuffles_with_operands_of_each_lane() {
    // Distance and width differ between lanes; the value's register is also the result's.
    let body =
        "xor.b32 %r1, %lane, 21; mul.lo.u32 %r2, %lane, 7; and.b32 %r3, %lane, 8; setp.ne.u32 %p2, %r3, 0;
                selp.u32 %r4, 0x1f, 0x181f, %p2; shfl.sync.idx.b32 %r2|%p1, %r2, %r1, %r4, 0xffffffff;
                selp.u32 %r5, 1, 0, %p1; st.global.v2.u32 [%slot], {%r2, %r5};";
    let out = Kernel::new(body).run();
    for lane in 0..32 {
        let c = if lane & 8 != 0 { 0x1f } else { 0x181f };
        let (from, inside) = shuffled("idx", lane, lane ^ 21, c);
        assert_eq!(out.out[lane as usize][..2], [from * 7, inside.into()], "lane {lane}");
    }
    // Floats, and a group that is a part of the warp.
    let body = "setp.ge.u32 %p1, %lane, 16; @%p1 bra DONE; cvt.rn.f32.u32 %f1, %lane; mov.b32 %r1, %f1;
                shfl.sync.down.b32 %r2, %r1, 1, 0x101f, 0xffff; mov.b32 %f2, %r2; st.global.f32 [%slot], %f2; DONE: ret;";
    let out = Kernel::new(body).run();
    for lane in 0..15 {
        assert_eq!(f32::from_bits(out.out[lane][0]), (lane + 1) as f32);
    }
    assert_eq!(f32::from_bits(out.out[15][0]), 15.0);
}

#[test]
fn two_halves_of_a_warp_shuffle_apart() {
    // Both halves stand at the same instruction with masks of their own.
    let body = "setp.lt.u32 %p1, %lane, 16; selp.b32 %r1, 0xffff, 0xffff0000, %p1; mov.u32 %r2, %lane; mov.u32 %r5, 8;
                LOOP: shfl.sync.bfly.b32 %r3, %r2, %r5, 31, %r1; add.u32 %r2, %r2, %r3; shr.u32 %r5, %r5, 1;
                setp.ne.u32 %p2, %r5, 0; @%p2 bra LOOP; st.global.u32 [%slot], %r2;";
    let out = Kernel::new(body).run();
    assert_eq!(out.words()[..16], [120; 16]);
    assert_eq!(out.words()[16..], [120 + 256; 16]);
}

#[test]
fn votes_of_every_form() {
    for (mask, condition) in
        [(u32::MAX, 0x0000_00ffu32), (u32::MAX, u32::MAX), (u32::MAX, 0), (0x00ff_ff00, 0x0000_1100)]
    {
        let body = format!(
            "mov.b32 %r1, {condition}; shr.u32 %r1, %r1, %lane; and.b32 %r1, %r1, 1; setp.eq.u32 %p1, %r1, 1;
             mov.b32 %r9, {mask}; shr.u32 %r9, %r9, %lane; and.b32 %r9, %r9, 1; setp.eq.u32 %p9, %r9, 0; @%p9 bra DONE;
             vote.sync.ballot.b32 %r2, %p1, {mask}; vote.sync.ballot.b32 %r3, !%p1, {mask};
             vote.sync.all.pred %p2, %p1, {mask}; vote.sync.any.pred %p3, %p1, {mask};
             vote.sync.uni.pred %p4, %p1, {mask}; selp.u32 %r4, 1, 0, %p2; selp.u32 %r5, 2, 0, %p3; selp.u32 %r6, 4, 0, %p4;
             vote.sync.all.pred %p2, !%p1, {mask}; selp.u32 %r7, 8, 0, %p2;
             or.b32 %r4, %r4, %r5; or.b32 %r4, %r4, %r6; or.b32 %r4, %r4, %r7;
             st.global.v4.u32 [%slot], {{%r2, %r3, %r4, %lane}}; DONE: ret;"
        );
        let yes = mask & condition;
        let bits = u32::from(yes == mask)
            | u32::from(yes != 0) << 1
            | u32::from(yes == mask || yes == 0) << 2
            | u32::from(yes == 0) << 3;
        let out = Kernel::new(body).run();
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            assert_eq!(out.out[lane as usize], [yes, mask & !condition, bits, lane]);
        }
    }
}

#[test]
fn matches_of_every_form() {
    for wide in [false, true] {
        let (kind, value) = if wide { ("b64", "%rd2") } else { ("b32", "%r1") };
        let body = format!(
            "and.b32 %r1, %lane, 3; cvt.u64.u32 %rd1, %r1; shl.b64 %rd2, %rd1, 40;
             match.any.sync.{kind} %r2, {value}, 0xffffffff; match.all.sync.{kind} %r3|%p1, {value}, 0xffffffff;
             selp.u32 %r4, 1, 0, %p1; mov.b64 %rd2, 77; mov.b32 %r1, 77;
             match.all.sync.{kind} %r5|%p1, {value}, 0xffffffff; selp.u32 %r6, 2, 0, %p1; or.b32 %r4, %r4, %r6;
             st.global.v4.u32 [%slot], {{%r2, %r3, %r4, %r5}};"
        );
        let out = Kernel::new(body).run();
        for lane in 0..32 {
            assert_eq!(out.out[lane], [0x1111_1111 << (lane & 3), 0, 2, u32::MAX], "{kind}");
        }
    }
    let body = "match.all.sync.b32 %r1, %tid, 0xffffffff; match.any.sync.b32 %r2, 5, 0xffffffff;
                match.all.sync.b32 _|%p1, 5, 0xffffffff; shfl.sync.up.b32 _|%p2, %tid, 1, 0, -1; @!%p1 trap;
                setp.eq.xor.u32 %p3, %tid, 0, %p2; @!%p3 trap; st.global.v2.u32 [%slot], {%r1, %r2};";
    assert_eq!(Kernel::new(body).run().out[9][..2], [0, u32::MAX]);
}

#[test]
fn reductions_over_a_warp() {
    let value = |lane: u32| (lane.wrapping_mul(0x9e37_79b9)) ^ 0x5555;
    let all: Vec<u32> = (0..32).map(value).collect();
    let fold = |f: fn(u32, u32) -> u32| all.iter().copied().reduce(f).unwrap();
    let cases: [(&str, u32); 9] = [
        ("add.u32", fold(u32::wrapping_add)),
        ("add.s32", fold(u32::wrapping_add)),
        ("min.u32", fold(u32::min)),
        ("max.u32", fold(u32::max)),
        ("min.s32", fold(|a, b| (a as i32).min(b as i32) as u32)),
        ("max.s32", fold(|a, b| (a as i32).max(b as i32) as u32)),
        ("and.b32", fold(|a, b| a & b)),
        ("or.b32", fold(|a, b| a | b)),
        ("xor.b32", fold(|a, b| a ^ b)),
    ];
    for (operation, expected) in cases {
        let body = format!(
            "mul.lo.u32 %r1, %lane, 0x9e3779b9; xor.b32 %r1, %r1, 0x5555;
             redux.sync.{operation} %r1, %r1, 0xffffffff; st.global.u32 [%slot], %r1;"
        );
        assert_eq!(Kernel::new(body).run().words(), [expected; 32], "{operation}");
    }
    let body = "and.b32 %r2, %lane, 1; setp.eq.u32 %p1, %r2, 1; selp.b32 %r3, 0xaaaaaaaa, 0x55555555, %p1;
                redux.sync.add.u32 %r1, %lane, %r3; st.global.u32 [%slot], %r1;";
    let out = Kernel::new(body).run();
    assert_eq!((out.words()[0], out.words()[1]), (240, 256));
}

#[test]
fn the_active_mask_is_that_of_the_group() {
    let body =
        "activemask.b32 %r1; setp.lt.u32 %p1, %lane, 12; @%p1 bra LOW; activemask.b32 %r2; bra.uni END;
                LOW: activemask.b32 %r2; END: @%p1 activemask.b32 %r3; st.global.v2.u32 [%slot], {%r1, %r2};";
    let out = Kernel::new(body).block(40).run_natural();
    for lane in 0..32 {
        assert_eq!(out.out[lane][..2], [u32::MAX, if lane < 12 { 0xfff } else { 0xffff_f000 }]);
    }
    assert_eq!(out.out[35][..2], [0xff, 0xff]);
}

#[test]
fn barriers_order_shared_memory() {
    for barrier in [
        "bar.sync 0;",
        "barrier.sync 0;",
        "barrier.sync.aligned 3;",
        "bar.cta.sync 1;",
        "bar.sync 15, 256;",
        "barrier.cta.sync.aligned 0, 256;",
    ] {
        let body = format!(
            "mov.u64 %rd1, sh; mad.wide.u32 %rd2, %tid, 4, %rd1; st.shared.u32 [%rd2], %tid; {barrier}
             xor.b32 %r1, %tid, 255; mad.wide.u32 %rd3, %r1, 4, %rd1; ld.shared.u32 %r2, [%rd3]; {barrier}
             st.shared.u32 [%rd3], %tid; {barrier} ld.shared.u32 %r3, [%rd2]; st.global.v2.u32 [%slot], {{%r2, %r3}};"
        );
        let out = Kernel::new(body).module(".shared .align 4 .b8 sh[1024];").block(256).grid(3).run();
        for (thread, slot) in out.out.iter().enumerate() {
            let other = (thread % 256) as u32 ^ 255;
            assert_eq!(slot[..2], [other, other], "{barrier}");
        }
        assert_eq!(out.report.counters.barriers, 9, "{barrier}");
    }
}

#[test]
fn barriers_reduce() {
    let body = "setp.lt.u32 %p1, %tid, 70; bar.red.popc.u32 %r1, 0, %p1; bar.red.popc.u32 %r2, 1, 96, !%p1;
                bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1; selp.u32 %r3, 1, 0, %p2; selp.u32 %r4, 2, 0, %p3;
                setp.lt.u32 %p4, %tid, 96; barrier.red.and.pred %p5, 2, %p4; setp.ge.u32 %p4, %tid, 96;
                barrier.cta.red.or.aligned.pred %p6, 2, %p4; selp.u32 %r5, 4, 0, %p5; selp.u32 %r6, 8, 0, %p6;
                or.b32 %r3, %r3, %r4; or.b32 %r3, %r3, %r5; or.b32 %r3, %r3, %r6; barrier.red.popc.aligned.u32 %r7, 0, %p1;
                st.global.v4.u32 [%slot], {%r1, %r2, %r3, %r7};";
    let out = Kernel::new(body).block(96).run();
    assert_eq!(out.out, [[70, 26, 2 | 4, 70]; 96]);
    // The last warp is not full.
    let out = Kernel::new(body.replace("96", "72")).block(72);
    let out = Kernel { body: out.body.replace("1, 72,", "1,"), ..out }.run();
    assert_eq!(out.out, [[70, 2, 2 | 4, 70]; 72]);
}

#[test]
fn a_producer_arrives_and_goes_on_while_a_consumer_waits() {
    // Warp 0 fills two buffers, warp 1 reads each after the producer has arrived.
    let body = "mov.u64 %rd1, sh; and.b32 %r1, %tid, 31; mad.wide.u32 %rd2, %r1, 4, %rd1; setp.ge.u32 %p1, %tid, 32;
                @%p1 bra CONSUMER; add.u32 %r2, %r1, 100; st.shared.u32 [%rd2], %r2; bar.arrive 1, 64;
                add.u32 %r2, %r1, 200; st.shared.u32 [%rd2+128], %r2; barrier.arrive 2, 64; st.global.u32 [%slot], 1; ret;
                CONSUMER: bar.sync 1, 64; ld.shared.u32 %r3, [%rd2]; bar.sync 2, 64; ld.shared.u32 %r4, [%rd2+128];
                st.global.v2.u32 [%slot], {%r3, %r4};";
    let out = Kernel::new(body).module(".shared .align 4 .b8 sh[256];").block(64).run();
    for lane in 0..32u32 {
        assert_eq!(out.out[lane as usize][0], 1);
        assert_eq!(out.out[32 + lane as usize][..2], [100 + lane, 200 + lane]);
    }
}

#[test]
fn a_part_of_the_block_meets_at_a_barrier_of_its_own() {
    // Warps 0 and 1 at barrier 1, warps 2 and 3 at barrier 2, then all.
    let body = "mov.u64 %rd1, sh; mad.wide.u32 %rd2, %tid, 4, %rd1; xor.b32 %r1, %tid, 32; mad.wide.u32 %rd3, %r1, 4, %rd1;
                st.shared.u32 [%rd2], %tid; shr.u32 %r2, %tid, 6; add.u32 %r2, %r2, 1; bar.sync %r2, 64;
                ld.shared.u32 %r3, [%rd3]; bar.sync 0; xor.b32 %r4, %tid, 64; mad.wide.u32 %rd4, %r4, 4, %rd1;
                ld.shared.u32 %r5, [%rd4]; st.global.v2.u32 [%slot], {%r3, %r5};";
    let out = Kernel::new(body).module(".shared .align 4 .b8 sh[512];").block(128).run();
    for thread in 0..128u32 {
        assert_eq!(out.out[thread as usize][..2], [thread ^ 32, thread ^ 64]);
    }
}

#[test]
fn warp_barriers_order_shared_memory() {
    let body = "mov.u64 %rd1, sh; mad.wide.u32 %rd2, %tid, 4, %rd1; xor.b32 %r1, %tid, 1; mad.wide.u32 %rd3, %r1, 4, %rd1;
                st.shared.u32 [%rd2], %tid; bar.warp.sync 0xffffffff; ld.shared.u32 %r2, [%rd3]; bar.warp.sync -1;
                st.shared.u32 [%rd3], %r2; bar.warp.sync 0xffffffff; ld.shared.u32 %r3, [%rd1]; bar.warp.sync -1;
                setp.eq.u32 %p1, %lane, 0; @%p1 st.shared.u32 [%rd1], 9; bar.warp.sync -1; ld.shared.u32 %r4, [%rd1];
                st.global.v4.u32 [%slot], {%r2, %r3, %r4, %r2};";
    let out = Kernel::new(body).module(".shared .align 4 .b8 sh[128];").run();
    for lane in 0..32u32 {
        assert_eq!(out.out[lane as usize][..3], [lane ^ 1, 0, 9]);
    }
}

#[test]
fn hints_and_fences_do_nothing() {
    let body = "membar.cta; membar.gl; membar.sys; fence.sc.gpu; fence.acq_rel.cta; fence.acq_rel.gpu; fence.sc.sys; fence.acquire.gpu;
                nanosleep.u32 100; nanosleep.u32 %tid; prefetch.global.L1 [%in]; prefetch.global.L2 [%in]; prefetch.L2 [%in];
                prefetch.global.L2::evict_last [%in]; prefetchu.L1 [%in]; discard.global.L2 [%in], 128;
                applypriority.global.L2::evict_normal [%in], 128; pmevent 1; st.global.u32 [%slot], %tid;";
    assert_eq!(Kernel::new(body).words(&[0; 32]).run().words(), (0..32).collect::<Vec<_>>());
}

#[test]
fn asynchronous_copies_of_every_size() {
    for (bytes, opcode) in [
        (4, "cp.async.ca.shared.global"),
        (8, "cp.async.ca.shared.global"),
        (16, "cp.async.ca.shared.global"),
        (16, "cp.async.cg.shared.global"),
        (16, "cp.async.cg.shared::cta.global.L2::128B"),
        (4, "cp.async.ca.shared.global.L2::64B"),
        (8, "cp.async.ca.shared::cta.global.L2::256B"),
    ] {
        for wait in
            ["cp.async.wait_group 0;", "cp.async.wait_all;", "cp.async.wait_group 1; cp.async.wait_group 0;"]
        {
            let body = format!(
                "mov.u64 %rd1, sh; mad.wide.u32 %rd2, %tid, 16, %rd1; mad.wide.u32 %rd3, %tid, 16, %in;
                 st.shared.v4.u32 [%rd2], {{0, 0, 0, 0}}; {opcode} [%rd2], [%rd3], {bytes}; cp.async.commit_group; {wait}
                 ld.shared.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd2]; st.global.v4.u32 [%slot], {{%r1, %r2, %r3, %r4}};"
            );
            let words: Vec<u32> = (0..128).map(|word| word * 3 + 1).collect();
            let out = Kernel::new(body).module(".shared .align 16 .b8 sh[512];").words(&words).run();
            for lane in 0..32 {
                let mut expected = [0; 4];
                expected[..bytes / 4].copy_from_slice(&words[4 * lane..4 * lane + bytes / 4]);
                assert_eq!(out.out[lane], expected, "{opcode} {bytes}");
            }
        }
    }
    // To an address in a 32-bit register, under a predicate.
    let body = "mov.u32 %r1, sh; mad.lo.u32 %r1, %tid, 4, %r1; st.shared.u32 [%r1], 7; mad.wide.u32 %rd3, %tid, 4, %in;
                setp.lt.u32 %p1, %tid, 5; @%p1 cp.async.ca.shared.global [%r1], [%rd3], 4; cp.async.wait_all;
                ld.shared.u32 %r2, [%r1]; st.global.u32 [%slot], %r2;";
    let out = Kernel::new(body).module(".shared .align 16 .b8 sh[512];").words(&[1; 32]).run().words();
    assert_eq!((&out[..5], &out[5..]), ([1; 5].as_slice(), [7; 27].as_slice()));
}

#[test]
fn asynchronous_copies_fill_up_with_zeros() {
    let words: Vec<u32> = (0..128).map(|word| 0x0101_0101 * (word + 1)).collect();
    let body = "mov.u64 %rd1, sh; mad.wide.u32 %rd2, %tid, 16, %rd1; mad.wide.u32 %rd3, %tid, 16, %in; and.b32 %r9, %tid, 15;
                createpolicy.fractional.L2::evict_first.b64 %rd4, 0f3F800000;
                cp.async.cg.shared.global.L2::cache_hint [%rd2], [%rd3], 16, %r9, %rd4; cp.async.wait_all;
                ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2]; st.global.v4.u32 [%slot], {%r1, %r2, %r3, %r4};";
    let out = Kernel::new(body).module(".shared .align 16 .b8 sh[512];").words(&words).run();
    for lane in 0..32 {
        let mut bytes: Vec<u8> =
            words[4 * lane..4 * lane + 4].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes[lane % 16..].fill(0);
        let found: Vec<u8> = out.out[lane].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(found, bytes, "lane {lane}");
    }
}

#[test]
fn groups_of_copies_arrive_in_order() {
    // The second group is still on its way when the first is read; what is in no group arrives with all.
    let body = "mov.u32 %r1, sh; mad.lo.u32 %r1, %tid, 4, %r1; mad.wide.u32 %rd3, %tid, 4, %in;
                cp.async.ca.shared.global [%r1], [%rd3], 4; cp.async.commit_group;
                cp.async.ca.shared.global [%r1+128], [%rd3+128], 4; cp.async.commit_group;
                cp.async.ca.shared.global [%r1+256], [%rd3+256], 4;
                cp.async.wait_group 1; ld.shared.u32 %r2, [%r1]; cp.async.wait_group 0; ld.shared.u32 %r3, [%r1+128];
                cp.async.wait_all; ld.shared.u32 %r4, [%r1+256]; st.global.v4.u32 [%slot], {%r2, %r3, %r4, %r2};";
    let words: Vec<u32> = (0..96).map(|word| word * 5).collect();
    let out = Kernel::new(body).module(".shared .align 16 .b8 sh[384];").words(&words).run();
    for lane in 0..32 {
        assert_eq!(out.out[lane][..3], [words[lane], words[lane + 32], words[lane + 64]]);
    }
    assert_eq!(out.report.counters.global_load_requests, 3);
}

#[test]
fn lanes_that_part_meet_again() {
    // Nested conditions, and loops whose trip count differs from lane to lane.
    let body = "mov.u32 %r1, 0; mov.u32 %r2, 0;
                OUTER: setp.ge.u32 %p1, %r2, %tid; @%p1 bra DONE;
                mov.u32 %r3, 0;
                INNER: add.u32 %r1, %r1, %r3; add.u32 %r3, %r3, 1; and.b32 %r4, %r2, 7; setp.lt.u32 %p2, %r3, %r4; @%p2 bra INNER;
                and.b32 %r5, %r1, 1; setp.eq.u32 %p3, %r5, 0; @!%p3 bra.uni ODD; add.u32 %r1, %r1, 5; bra NEXT;
                ODD: mul.lo.u32 %r1, %r1, 3;
                NEXT: add.u32 %r2, %r2, 1; bra OUTER;
                DONE: st.global.u32 [%slot], %r1; activemask.b32 %r6; st.global.u32 [%slot+4], %r6;";
    let plain = |tid: u32| {
        let mut sum = 0u32;
        for outer in 0..tid {
            let mut inner = 0;
            loop {
                sum = sum.wrapping_add(inner);
                inner += 1;
                if inner >= outer & 7 {
                    break;
                }
            }
            sum = if sum & 1 == 0 { sum.wrapping_add(5) } else { sum.wrapping_mul(3) };
        }
        sum
    };
    let out = Kernel::new(body).block(100).run_natural();
    for tid in 0..100u32 {
        // In the natural schedule all lanes of a warp meet behind the loop.
        let warp = if tid >= 96 { 0xf } else { u32::MAX };
        assert_eq!(out.out[tid as usize][..2], [plain(tid), warp], "thread {tid}");
    }
    let kernel = Kernel::new(body.replace("activemask.b32 %r6;", "mov.b32 %r6, 0;")).block(100);
    assert_eq!(kernel.run().words(), (0..100).map(plain).collect::<Vec<_>>());
}

#[test]
fn predicated_instructions_of_every_kind() {
    let body = "mov.u32 %r1, 1; and.b32 %r2, %tid, 1; setp.eq.u32 %p1, %r2, 1; @%p1 mov.u32 %r1, 2; @!%p1 add.u32 %r1, %r1, 10;
                @%p1 bra SKIP; add.u32 %r1, %r1, 100; SKIP: @%p1 ld.global.u32 %r3, [%in]; @!%p1 mov.u32 %r3, 6;
                @%p1 st.global.u32 [%slot+8], %r1; @!%p1 red.global.add.u32 [%in+4], 1; @%p1 mov.b64 {%r4, %r5}, %in; @!%p1 mov.b32 %r4, 3;
                @%p1 mov.b32 %r4, 4; @!%p1 mov.pred %p2, -1; @%p1 mov.pred %p2, 0; selp.u32 %r6, 1, 0, %p2;
                add.u32 %r1, %r1, %r3; mad.lo.u32 %r4, %r6, 16, %r4; st.global.v2.u32 [%slot], {%r1, %r4};";
    let out = Kernel::new(body).words(&[7, 0]).run();
    for (tid, slot) in out.out.iter().enumerate() {
        assert_eq!(slot[..3], if tid % 2 == 1 { [9, 4, 2] } else { [117, 19, 0] }, "thread {tid}");
    }
    assert_eq!(out.input_words()[1], 16);
}

#[test]
fn branches_through_tables() {
    for opcode in ["brx.idx", "brx.idx.uni"] {
        let index = if opcode.ends_with("uni") { "2" } else { "%r1" };
        let body = format!(
            "and.b32 %r1, %tid, 3; mov.u32 %r3, {index};
             TABLE: .branchtargets A, B, C, A;
             {opcode} %r3, TABLE;
             A: mov.u32 %r2, 10; bra END; B: mov.u32 %r2, 20; bra END; C: mov.u32 %r2, 30;
             END: activemask.b32 %r4; st.global.v2.u32 [%slot], {{%r2, %r4}};"
        );
        let out = Kernel::new(body).run_natural();
        for (tid, slot) in out.out.iter().enumerate() {
            let expected = if index == "2" { 30 } else { [10, 20, 30, 10][tid % 4] };
            assert_eq!(slot[..2], [expected, u32::MAX], "{opcode}");
        }
    }
}

const FUNCTIONS: &str = "
.func (.param .b32 result) twice(.param .b32 value);
.func (.param .b32 result) power(.param .b32 base, .param .b32 exponent)
{ .reg .b32 %r<9>; .reg .pred %p<3>;
  ld.param.b32 %r1, [base]; ld.param.b32 %r2, [exponent]; mov.b32 %r3, 1;
  LOOP: setp.eq.u32 %p1, %r2, 0; @%p1 bra END;
  mul.lo.u32 %r3, %r3, %r1; sub.u32 %r2, %r2, 1; bra LOOP;
  END: st.param.b32 [result], %r3; ret; }
.func (.param .b32 result) twice(.param .b32 value)
{ .reg .b32 %r<9>; .reg .pred %p<3>;
  ld.param.u32 %r1, [value];
  setp.gt.u32 %p1, %r1, 1000; @%p1 bra LARGE;
  { .param .b32 a; .param .b32 b; .param .b32 c;
    st.param.b32 [a], %r1; st.param.b32 [b], 1; call.uni (c), power, (a, b); ld.param.b32 %r2, [c]; }
  add.u32 %r1, %r1, %r2; st.param.b32 [result+0], %r1; ret;
  LARGE: st.param.b32 [result+0], 0; }
.func (.param .align 8 .b8 result[16]) swap(.param .align 8 .b8 pair[16])
{ .reg .b64 %rd<3>; ld.param.b64 %rd1, [pair]; ld.param.b64 %rd2, [pair+8];
  st.param.b64 [result], %rd2; st.param.b64 [result+8], %rd1; ret; }
.func store(.param .b64 address, .param .b32 value)
{ .reg .b64 %rd1; .reg .b32 %r1; ld.param.b64 %rd1, [address]; ld.param.b32 %r1, [value];
  st.global.u32 [%rd1], %r1; }
";

#[test]
fn calls_pass_parameters_and_results() {
    let body = "{ .param .align 8 .b8 p[16]; .param .align 8 .b8 q[16]; cvt.u64.u32 %rd1, %tid; st.param.b64 [p], %rd1;
                  st.param.b64 [p+8], 77; call (q), swap, (p); ld.param.b64 %rd2, [q]; ld.param.b64 %rd3, [q+8]; }
                cvt.u32.u64 %r1, %rd2; cvt.u32.u64 %r2, %rd3; st.global.v2.u32 [%slot], {%r1, %r2};
                { .param .b64 a; .param .b32 v; add.s64 %rd4, %slot, 8; st.param.b64 [a], %rd4; st.param.b32 [v], 5;
                  call store, (a, v); }";
    let out = Kernel::new(body).module(FUNCTIONS).run();
    for (tid, slot) in out.out.iter().enumerate() {
        assert_eq!(slot[..3], [77, tid as u32, 5]);
    }
}

#[test]
fn some_lanes_call_in_loops_and_from_two_places() {
    // Trip counts, arguments and callers differ from lane to lane.
    let body = "mov.u32 %r1, 0; mov.u32 %r2, 0; and.b32 %r3, %tid, 3;
                LOOP: setp.gt.u32 %p1, %r2, %r3; @%p1 bra DONE; and.b32 %r4, %tid, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra EVEN;
                { .param .b32 a; .param .b32 r; st.param.b32 [a], %r2; call (r), twice, (a); ld.param.b32 %r5, [r]; } bra NEXT;
                EVEN: { .param .b32 a; .param .b32 b; .param .b32 r; st.param.b32 [a], %tid; st.param.b32 [b], %r2;
                call.uni (r), power, (a, b); ld.param.b32 %r5, [r]; }
                NEXT: add.u32 %r1, %r1, %r5; add.u32 %r2, %r2, 1; bra LOOP; DONE: st.global.u32 [%slot], %r1;
                setp.eq.u32 %p3, %tid, 5; mov.b32 %r6, 2000; @!%p3 mov.b32 %r6, 21; mov.b32 %r7, 9;
                { .param .b32 a; .param .b32 r; st.param.b32 [a], %r6; @%p1 call (r), twice, (a); ld.param.b32 %r7, [r]; }
                st.global.u32 [%slot+4], %r7;";
    let out = Kernel::new(body).module(FUNCTIONS).block(64).run();
    for tid in 0..64u32 {
        let steps = 0..=(tid & 3);
        let sum = if tid & 1 == 0 {
            steps.map(|step| tid.wrapping_pow(step)).sum::<u32>()
        } else {
            steps.map(|step| 2 * step).sum()
        };
        assert_eq!(out.out[tid as usize][..2], [sum, if tid == 5 { 0 } else { 42 }], "thread {tid}");
    }
}

#[test]
fn a_part_of_a_warp_leaves_early() {
    for leave in ["ret;", "exit;", "ret.uni;"] {
        let body = format!(
            "setp.lt.u32 %p1, %tid, 40; @%p1 {leave} st.global.u32 [%slot], 1; setp.ge.u32 %p2, %tid, 70; @%p2 bra REST; {leave}
             REST: mov.u32 %r1, 2; bar.sync 0; st.global.u32 [%slot], %r1;"
        );
        let out = Kernel::new(body).block(96).run().words();
        assert_eq!(out[..40], [0; 40], "{leave}");
        assert_eq!(out[40..70], [1; 30], "{leave}");
        assert_eq!(out[70..], [2; 26], "{leave}");
    }
    // Those that are left shuffle among themselves, and meet at a barrier for all.
    let body = "setp.ge.u32 %p1, %lane, 8; @%p1 exit; shfl.sync.bfly.b32 %r1, %tid, 4, 31, 0xff; bar.sync 0;
                bar.red.popc.u32 %r2, 0, 1; st.global.v2.u32 [%slot], {%r1, %r2};";
    let out = Kernel::new(body).block(64).run();
    assert_eq!(out.out[3][..2], [7, 16]);
    assert_eq!(out.out[34][..2], [38, 16]);
}

#[test]
fn moves_pack_and_unpack() {
    let body = "ld.global.b64 %rd1, [%in]; mov.b64 {%r1, %r2}, %rd1; mov.b64 %rd2, {%r2, %r1}; mov.b64 {%h1, %h2, %h3, %h4}, %rd1;
                mov.b64 %rd3, {%h4, %h3, %h2, %h1}; mov.b32 {%h5, %h6}, %r1; mov.b32 %r3, {%h6, %h5};
                mov.b64 {_, %r4}, %rd1; mov.b64 {%r5, _}, %rd1;
                st.global.b64 [%slot], %rd2; st.global.b64 [%slot+8], %rd3; st.global.b32 [%out+512], %r3;
                st.global.b32 [%out+516], %r4; st.global.b32 [%out+520], %r5; mov.b32 {%h1, %h2, %h3, %h4}, %r1;
                mov.b32 %r6, {%h4, %h3, %h2, %h1}; st.global.b32 [%out+524], %r6;";
    let out = Kernel::new(body).input(PATTERN.to_le_bytes()).block(33).run();
    assert_eq!(out.out[0], [0x8182_8384, 0x8586_8788, 0x8384_8182, 0x8788_8586]);
    assert_eq!(out.out[32], [0x8788_8586, 0x8182_8384, 0x8586_8788, 0x8887_8685]);
    // One register is both source and target.
    let body = "mov.b32 %r1, 0x11112222; mov.b32 {%h1, %r1}, %r1; mov.b64 %rd1, 0x3333333344444444;
                mov.b64 {%r2, %r3}, %rd1; mov.b64 %rd1, {%r3, %r2}; mov.b64 {%r2, %r3}, %rd1; mov.f32 %f1, 0f3F800000;
                mov.b32 %r4, %f1; add.u32 %r3, %r3, %r4; cvt.u32.u16 %r5, %h1; add.u32 %r2, %r2, %r5; st.global.v4.b32 [%slot], {%r1, %r2, %r3, %r4};";
    let out = Kernel::new(body).run();
    assert_eq!(out.out[0], [0x1111, 0x3333_3333 + 0x2222, 0x4444_4444 + 0x3f80_0000, 0x3f80_0000]);
    // Plain moves of every type.
    for (kind, register, store) in [
        ("b16", "%h1", "b16"),
        ("u16", "%h1", "b16"),
        ("s16", "%h1", "b16"),
        ("b32", "%r1", "b32"),
        ("u32", "%r1", "b32"),
        ("s32", "%r1", "b32"),
        ("f32", "%f1", "b32"),
        ("b64", "%rd1", "b64"),
        ("u64", "%rd1", "b64"),
        ("s64", "%rd1", "b64"),
        ("f64", "%d1", "b64"),
    ] {
        let (value, bits) = match kind {
            "f32" => ("0f40490FDB", 0x4049_0fdb),
            "f64" => ("0d400921FB54442D18", 0x4009_21fb_5444_2d18),
            "b64" | "u64" | "s64" => ("-2", u64::MAX - 1),
            "b32" | "u32" | "s32" => ("-2", 0xffff_fffe),
            _ => ("-2", 0xfffe),
        };
        let body = format!("mov.{kind} {register}, {value}; st.global.{store} [%slot], {register};");
        assert_eq!(Kernel::new(body).run().longs(), [bits; 32], "mov.{kind}");
    }
}

#[test]
fn selections_of_every_type() {
    for (kind, register) in [
        ("b16", "%h"),
        ("u16", "%h"),
        ("s16", "%h"),
        ("b32", "%r"),
        ("u32", "%r"),
        ("s32", "%r"),
        ("f32", "%f"),
        ("b64", "%rd"),
        ("u64", "%rd"),
        ("s64", "%rd"),
        ("f64", "%d"),
    ] {
        let size = if kind.ends_with("16") {
            "b16"
        } else if kind.ends_with("64") {
            "b64"
        } else {
            "b32"
        };
        let body = format!(
            "ld.global.{size} {register}1, [%in]; ld.global.{size} {register}2, [%in+8]; and.b32 %r9, %tid, 1; setp.eq.u32 %p1, %r9, 1;
             selp.{kind} {register}3, {register}1, {register}2, %p1; st.global.{size} [%slot], {register}3;
             selp.{kind} {register}3, {register}1, {register}2, !%p1; st.global.{size} [%slot+8], {register}3;"
        );
        let mut input = PATTERN.to_le_bytes().to_vec();
        input.extend((!PATTERN).to_le_bytes());
        let out = Kernel::new(body).input(input).run();
        let mask = match size {
            "b16" => 0xffff,
            "b32" => 0xffff_ffff,
            _ => u64::MAX,
        };
        for (tid, slot) in out.out.iter().enumerate() {
            let (first, second) = if tid % 2 == 1 { (PATTERN, !PATTERN) } else { (!PATTERN, PATTERN) };
            let found = [0, 2].map(|at| u64::from(slot[at + 1]) << 32 | u64::from(slot[at]));
            assert_eq!(found, [first & mask, second & mask], "selp.{kind}");
        }
    }
}

#[test]
fn comparisons_combine_with_predicates_and_have_two_results() {
    for (combine, f) in
        [("and", (|a, b| a & b) as fn(bool, bool) -> bool), ("or", |a, b| a | b), ("xor", |a, b| a ^ b)]
    {
        for negated in ["", "!"] {
            let body = format!(
                "and.b32 %r1, %tid, 1; setp.eq.u32 %p1, %r1, 1; setp.lt.{combine}.u32 %p2|%p3, %tid, 10, {negated}%p1;
                 cvt.s64.s32 %rd1, %tid; setp.lt.{combine}.s64 %p4, %rd1, 10, {negated}%p1; cvt.rn.f32.u32 %f1, %tid;
                 setp.lt.{combine}.f32 _|%p5, %f1, 0f41200000, {negated}%p1; setp.lt.{combine}.u32 %p6|_, %tid, 10, {negated}%p1;
                 selp.u32 %r2, 1, 0, %p2; selp.u32 %r3, 1, 0, %p3; selp.u32 %r4, 1, 0, %p4; selp.u32 %r5, 1, 0, %p5;
                 selp.u32 %r6, 10, 0, %p6; add.u32 %r4, %r4, %r6; st.global.v4.u32 [%slot], {{%r2, %r3, %r4, %r5}};"
            );
            let out = Kernel::new(body).run();
            for (tid, slot) in out.out.iter().enumerate() {
                let c = (tid % 2 == 1) != (negated == "!");
                let (p, q) = (f(tid < 10, c), f(tid >= 10, c));
                assert_eq!(
                    *slot,
                    [p.into(), q.into(), 11 * u32::from(p), q.into()],
                    "{combine} {negated} {tid}"
                );
            }
        }
    }
}

#[test]
fn predicate_logic() {
    let body = "and.b32 %r1, %tid, 1; setp.ne.u32 %p1, %r1, 0; and.b32 %r1, %tid, 2; setp.ne.u32 %p2, %r1, 0;
                and.pred %p3, %p1, %p2; or.pred %p4, %p1, %p2; xor.pred %p5, %p1, %p2; not.pred %p6, %p1; mov.pred %p7, %p2;
                and.pred %p8, %p1, !%p2; mov.pred %p9, !%p1; mov.pred %p10, 1;
                selp.u32 %r2, 1, 0, %p3; selp.u32 %r3, 2, 0, %p4; selp.u32 %r4, 4, 0, %p5; selp.u32 %r5, 8, 0, %p6;
                selp.u32 %r6, 16, 0, %p7; selp.u32 %r7, 32, 0, %p8; selp.u32 %r8, 64, 0, %p9; selp.u32 %r9, 128, 0, %p10;
                or.b32 %r2, %r2, %r3; or.b32 %r2, %r2, %r4; or.b32 %r2, %r2, %r5; or.b32 %r2, %r2, %r6; or.b32 %r2, %r2, %r7;
                or.b32 %r2, %r2, %r8; or.b32 %r2, %r2, %r9; st.global.u32 [%slot], %r2;";
    let out = Kernel::new(body).run().words();
    for (tid, found) in out.into_iter().enumerate() {
        let (a, b) = (tid & 1 != 0, tid & 2 != 0);
        let bits = [a & b, a | b, a ^ b, !a, b, a & !b, !a, true];
        let expected = bits.iter().rev().fold(0, |all, bit| all << 1 | u32::from(*bit));
        assert_eq!(found, expected, "thread {tid}");
    }
}

/// Runs a body that knows nothing but `%out` and the thread's number over the grid in %r60, in three dimensions.
fn in_three_dimensions(grid: [u32; 3], block: [u32; 3], body: &str) -> harness::Outcome {
    let index = "mov.u32 %r50, %tid.x; mov.u32 %r51, %tid.y; mov.u32 %r52, %tid.z; mov.u32 %r53, %ntid.x; mov.u32 %r54, %ntid.y;
                 mov.u32 %r55, %ntid.z; mad.lo.u32 %r56, %r52, %r54, %r51; mad.lo.u32 %r56, %r56, %r53, %r50;
                 mul.lo.u32 %r57, %r53, %r54; mul.lo.u32 %r57, %r57, %r55; mov.u32 %r40, %ctaid.x; mov.u32 %r41, %ctaid.y;
                 mov.u32 %r42, %ctaid.z; mov.u32 %r43, %nctaid.x; mov.u32 %r44, %nctaid.y; mov.u32 %r45, %nctaid.z;
                 mad.lo.u32 %r46, %r42, %r44, %r41; mad.lo.u32 %r46, %r46, %r43, %r40; mad.lo.u32 %r60, %r46, %r57, %r56;
                 mad.wide.u32 %slot, %r60, 16, %out;";
    let kernel = Kernel::new(format!("{index}\n{body}"));
    Kernel { grid, block, ..kernel }.run()
}

#[test]
fn special_registers_in_three_dimensions() {
    let (grid, block) = ([3, 2, 4], [5, 3, 4]);
    let body = "shl.b32 %r1, %r51, 8; or.b32 %r1, %r1, %r50; shl.b32 %r2, %r52, 16; or.b32 %r1, %r1, %r2;
                shl.b32 %r3, %r41, 8; or.b32 %r3, %r3, %r40; shl.b32 %r4, %r42, 16; or.b32 %r3, %r3, %r4;
                mov.u32 %r5, %warpid; mov.u32 %r6, %laneid; mad.lo.u32 %r5, %r5, 32, %r6; mov.u32 %r7, %nwarpid;
                mad.lo.u32 %r5, %r7, 1000, %r5; mul.lo.u32 %r8, %r43, 1000; add.u32 %r8, %r8, %r44; mad.lo.u32 %r8, %r8, 1000, %r45;
                st.global.v4.u32 [%slot], {%r1, %r3, %r5, %r8};";
    let out = in_three_dimensions(grid, block, body);
    for (index, slot) in out.out.iter().enumerate() {
        let (index, threads) = (index as u32, 60);
        let (thread, number) = (index % threads, index / threads);
        let tid = (thread % 5) | ((thread / 5 % 3) << 8) | ((thread / 15) << 16);
        let ctaid = (number % 3) | ((number / 3 % 2) << 8) | ((number / 6) << 16);
        assert_eq!(*slot, [tid, ctaid, 2000 + thread, 3_002_004], "thread {index}");
    }
    assert_eq!(out.report.counters.blocks, 24);
}

#[test]
fn masks_of_lanes_and_clocks() {
    let body = "mov.u32 %r1, %lanemask_eq; mov.u32 %r2, %lanemask_lt; mov.u32 %r3, %lanemask_le; mov.u32 %r4, %lanemask_gt;
                mov.u32 %r5, %lanemask_ge; xor.b32 %r2, %r2, %r1; xor.b32 %r4, %r4, %r5; mov.u32 %r6, WARP_SZ; mov.u32 %r7, %nsmid;
                add.u32 %r6, %r6, %r7; st.global.v4.u32 [%slot], {%r1, %r2, %r3, %r4};
                setp.ne.u32 %p1, %r6, 33; @%p1 trap;";
    let out = Kernel::new(body).run();
    for lane in 0..32 {
        let (own, below) = (1u32 << lane, (1u32 << lane) - 1);
        assert_eq!(out.out[lane], [own, below | own, below | own, own]);
    }
    for (first, second, kind) in [
        ("%clock", "%clock", "u32"),
        ("%clock64", "%clock64", "u64"),
        ("%globaltimer", "%globaltimer", "u64"),
        ("%globaltimer_lo", "%clock", "u32"),
    ] {
        let register = if kind == "u64" { "%rd" } else { "%r" };
        let body = format!(
            "mov.u32 %r1, 0; LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 30000; @%p1 bra LOOP; mov.{kind} {register}5, {first};
             add.u32 %r1, %r1, 1; mov.{kind} {register}6, {second}; setp.gt.{kind} %p2, {register}6, {register}5;
             setp.gt.and.{kind} %p2, {register}5, 60000, %p2; selp.u32 %r2, 1, 0, %p2; st.global.u32 [%slot], %r2;"
        );
        assert_eq!(Kernel::new(body).run().words(), [1; 32], "{first}");
    }
    // In a long loop, from warp to warp and block to block in the order in which they run, and from launch to launch.
    let body = "mov.u32 %r1, 0; mov.u64 %rd5, %clock64; mov.u32 %r3, 0;
                LOOP: add.u32 %r1, %r1, 1; mov.u64 %rd6, %clock64; setp.le.u64 %p2, %rd6, %rd5; @%p2 trap; mov.u64 %rd5, %rd6;
                setp.lt.u32 %p1, %r1, 9000; @%p1 bra LOOP; mov.u64 %rd5, %globaltimer; st.global.u64 [%slot], %rd5;";
    let out = Kernel::new(body).block(64).grid(3).run_natural();
    assert!(out.longs().chunks(32).map(|warp| warp[0]).is_sorted_by(|a, b| a < b), "{:?}", out.longs());
    assert_eq!(Kernel::new(body).block(64).grid(3).run_with(ptx_sim::Schedule::Natural, 8).unwrap(), out);
    let module = ptx_sim::Module::load(
        ".version 8.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 p) { .reg .b64 %rd<3>;
         ld.param.u64 %rd1, [p]; mov.u64 %rd2, %globaltimer; st.global.u64 [%rd1], %rd2; }",
    );
    let (module, mut simulator) = (module.unwrap(), ptx_sim::Simulator::new());
    let at = simulator.allocate(8).unwrap();
    let times = [0u64; 3].map(|_| {
        simulator.launch(&module, "k", &ptx_sim::Launch::new(1, 1).arg(Arg::U64(at))).unwrap();
        let mut bytes = [0; 8];
        simulator.read(at, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    });
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    let body = "mov.u32 %r9, sh; mov.u32 %r1, %clock_hi; mov.u32 %r2, %dynamic_smem_size; mov.u32 %r3, %total_smem_size; st.global.v4.u32 [%slot], {%r1, %r2, %r3, %r1};";
    let out = Kernel::new(body).module(".shared .align 16 .b8 sh[48];").shared_bytes(100).run();
    assert_eq!(out.out[5], [0, 100, 148, 0]);
}

#[test]
fn blocks_of_every_size_up_to_1024_threads() {
    for threads in [1, 2, 31, 32, 33, 63, 100, 255, 512, 1000, 1023, 1024] {
        let body = "setp.ge.u32 %p1, %tid, %bdim; @%p1 trap; bar.sync 0; bar.red.popc.u32 %r1, 0, 1; vote.sync.ballot.b32 %r2, 1, -1;
                    st.global.v4.u32 [%slot], {%gid, %r1, %r2, %bid};";
        // A mask of all 32 lanes fits a warp that is not full: nobody waits for lanes that do not exist.
        let out = Kernel::new(body).block(threads).grid(3).run();
        for (index, slot) in out.out.iter().enumerate() {
            let thread = index as u32 % threads;
            let there = (threads - thread / 32 * 32).min(32);
            let mask = u32::MAX >> (32 - there);
            assert_eq!(*slot, [index as u32, threads, mask, index as u32 / threads], "{threads} threads");
        }
    }
}

#[test]
fn names_of_inner_scopes_hide_outer_ones() {
    let body = "mov.u32 %r1, 1; { .reg .b32 %r1; .reg .b32 named; mov.u32 %r1, 2; mov.u32 named, 3; { .reg .b32 named; mov.u32 named, 4; }
                add.u32 %r2, %r1, named; } st.global.v2.u32 [%slot], {%r1, %r2};";
    assert_eq!(Kernel::new(body).run().out[3][..2], [1, 5]);
}

#[test]
fn blocks_run_in_parallel_only_where_their_order_does_not_matter() {
    for (body, parallel) in [
        ("st.global.u32 [%slot], %tid;", true),
        ("red.global.add.u32 [%in], 1; red.global.max.s64 [%in], 1; red.or.b32 [cell], 1;", true),
        ("atom.global.add.u32 _, [%in], 1;", true),
        ("atom.shared.add.u32 %r1, [sh], 1; red.shared.add.f32 [sh], 0f3F800000;", true),
        // Who looks at what others write.
        ("ld.volatile.global.u32 %r1, [%in];", true),
        ("ld.volatile.shared.u32 %r1, [sh]; st.global.u32 [%slot], %r1;", true),
        ("ld.global.u32 %r1, [%in]; st.volatile.global.u32 [%slot], %r1;", true),
        ("ld.volatile.global.u32 %r1, [%in]; st.global.u32 [%slot], %r1;", false),
        ("ld.relaxed.gpu.global.u32 %r1, [%in]; red.global.add.u32 [%in], 1;", false),
        ("ld.acquire.gpu.u32 %r1, [%in]; st.u32 [%slot], %r1;", false),
        ("st.global.u32 [cell], 1; ld.relaxed.sys.global.u32 %r1, [cell];", false),
        ("mov.u32 %r1, %clock;", false),
        ("atom.global.add.u32 %r1, [%in], 1;", false),
        ("atom.global.add.u32 %r1, [cell], 1;", false),
        ("atom.add.u64 %rd1, [%in], 1;", false),
        ("red.global.add.f32 [%in], 0f3F800000;", false),
        ("red.global.add.f64 [%in], 0d3FF0000000000000;", false),
        ("red.global.add.f32 [cell], 0f3F800000;", false),
        ("red.global.add.noftz.f16x2 [%in], 1;", false),
        ("red.global.inc.u32 [%in], 7;", false),
        ("atom.global.exch.b32 _, [%in], 7;", false),
        ("atom.global.cas.b32 _, [%in], 7, 8;", false),
    ] {
        let kernel = Kernel::new(body).module(".global .align 4 .u32 cell; .shared .align 4 .b32 sh;");
        let module = ptx_sim::Module::load(&kernel.ptx()).unwrap();
        assert_eq!(module.kernel("kernel").unwrap().blocks_in_parallel, parallel, "{body}");
    }
}

/// Numbers of 128 bits from pieces of 32 and 64: sums, differences and products with every edge of a carry.
#[test]
fn extended_precision_hands_carries_on() {
    let edges: [u128; 8] = [
        0,
        1,
        u128::MAX,
        u128::from(u32::MAX),
        u128::from(u64::MAX),
        1 << 127,
        0x0123_4567_89ab_cdef_fedc_ba98_7654_3210,
        0xffff_ffff_0000_0000_ffff_ffff_0000_0001,
    ];
    for a in edges {
        for b in edges {
            let words = |value: u128| [0, 32, 64, 96].map(|shift| (value >> shift) as u32);
            let load = |first: usize, value: u128| {
                let words = words(value).into_iter().enumerate();
                words.map(|(i, word)| format!("mov.u32 %r{}, {word};", first + i)).collect::<String>()
            };
            let body = |op: &str| {
                format!(
                    "{}{} {op}.cc.u32 %r8, %r0, %r4; {op}c.cc.u32 %r9, %r1, %r5; {op}c.cc.u32 %r10, %r2, %r6; \
                     {op}c.u32 %r11, %r3, %r7; st.global.v4.u32 [%slot], {{%r8, %r9, %r10, %r11}};",
                    load(0, a),
                    load(4, b)
                )
            };
            for (op, expected) in [("add", a.wrapping_add(b)), ("sub", a.wrapping_sub(b))] {
                assert_eq!(Kernel::new(body(op)).run().out[31], words(expected), "{a:x} {op} {b:x}");
            }
            // The square of the 64-bit halves in one go, and the same from halves of 32 bits with a carry between.
            let (x, y) = (a as u64, b as u64);
            let product = u128::from(x) * u128::from(y);
            let wide = format!(
                "mov.u64 %rd0, {x}; mov.u64 %rd1, {y}; mov.u64 %rd4, 0; mad.lo.cc.u64 %rd2, %rd0, %rd1, %rd4; \
                 madc.hi.u64 %rd3, %rd0, %rd1, %rd4; st.global.v2.u64 [%slot], {{%rd2, %rd3}};"
            );
            assert_eq!(Kernel::new(wide).run().out[7], words(product), "{x:x} * {y:x}");
            let narrow = format!(
                "{}{} mov.u32 %r12, 0; mul.lo.u32 %r8, %r0, %r4; mul.hi.u32 %r9, %r0, %r4; \
                 mad.lo.cc.u32 %r9, %r0, %r5, %r9; madc.hi.u32 %r10, %r0, %r5, %r12; \
                 mad.lo.cc.u32 %r9, %r1, %r4, %r9; madc.hi.cc.u32 %r10, %r1, %r4, %r10; addc.u32 %r11, %r12, %r12; \
                 mad.lo.cc.u32 %r10, %r1, %r5, %r10; madc.hi.u32 %r11, %r1, %r5, %r11; \
                 st.global.v4.u32 [%slot], {{%r8, %r9, %r10, %r11}};",
                load(0, a),
                load(4, b)
            );
            assert_eq!(Kernel::new(narrow).run().out[0], words(product), "{x:x} * {y:x} in pieces");
        }
    }
}

/// A guard keeps lanes from changing the carry, and the upper half of a signed product is signed.
#[test]
fn carries_belong_to_lanes() {
    let kernel = Kernel::new(
        "setp.lt.u32 %p0, %lane, 5; mov.u32 %r0, 0xffffffff; mov.u32 %r1, 1; mov.u32 %r2, 0; \
         add.cc.u32 %r3, %r2, %r2; @%p0 add.cc.u32 %r3, %r0, %r1; addc.u32 %r4, %r2, %r2; \
         mov.u32 %r5, -3; mov.u32 %r6, 7; mad.lo.cc.s32 %r7, %r5, %r6, %r2; madc.hi.s32 %r8, %r5, %r6, %r2; \
         st.global.v4.u32 [%slot], {%r3, %r4, %r7, %r8};",
    );
    for (lane, out) in kernel.run().out.iter().enumerate() {
        let carry = u32::from(lane < 5);
        assert_eq!(*out, [0, carry, -21i32 as u32, u32::MAX], "lane {lane}");
    }
}

#[test]
fn dynamic_shared_memory_is_aligned_as_the_strictest_of_its_arrays() {
    for (arrays, at) in [
        (".extern .shared .align 128 .b8 dynamic[];", 128),
        (".extern .shared .align 4 .b8 dynamic[];", 16),
        (".extern .shared .align 4 .b8 dynamic[]; .extern .shared .align 64 .b8 other[];", 64),
    ] {
        let other = if arrays.contains("other") { "mov.u32 %r1, other;" } else { "" };
        let body = format!(
            ".shared .align 4 .b8 fixed[4]; {other} mov.u32 %r1, dynamic; st.global.u32 [%slot], %r1;"
        );
        let kernel = Kernel::new(body).module(arrays).shared_bytes(8);
        assert_eq!(kernel.run().words(), [at; 32], "{arrays}");
        let info = ptx_sim::Module::load(&kernel.ptx()).unwrap().kernel("kernel").unwrap();
        assert_eq!((info.shared_bytes, info.max_dynamic_shared_bytes), (4, 227 * 1024 - u64::from(at)));
    }
}

#[test]
fn constants_of_every_form() {
    for (instruction, expected) in [
        ("mov.f32 %f1, 1.0; mov.b32 %r1, %f1;", 1.0f32.to_bits()),
        ("mov.f32 %f1, -2.5; mov.b32 %r1, %f1;", (-2.5f32).to_bits()),
        ("add.f32 %f1, .5, 1e3; mov.b32 %r1, %f1;", 1000.5f32.to_bits()),
        ("add.f32 %f1, 0f3F800000, 0d4000000000000000; mov.b32 %r1, %f1;", 3.0f32.to_bits()),
        ("mov.f32 %f1, 0d3FB999999999999A; mov.b32 %r1, %f1;", 0.1f32.to_bits()),
        ("add.f64 %d1, 0f3F800000, 2.; cvt.rzi.u32.f64 %r1, %d1;", 3),
        (
            "setp.lt.f64 %p1, 0f3F800000, 1.5; selp.f32 %f1, 1.0, 2.0, %p1; mov.b32 %r1, %f1;",
            1.0f32.to_bits(),
        ),
        ("st.global.f32 [%slot+8], 1.5; ld.global.b32 %r1, [%slot+8];", 1.5f32.to_bits()),
        ("slct.b32.f32 %r1, 2, 3, -1.0;", 3),
        ("mov.b32 %r1, 0f3F800000;", 1.0f32.to_bits()),
        ("mov.u32 %r1, 4*3;", 12),
        ("mov.u32 %r1, 20-2*3+1;", 15),
        ("mov.u32 %r1, ~5;", !5),
        ("add.u32 %r1, -2*3, 7;", 1),
        ("mov.u32 %r1, sh+16;", 24),
        ("mov.u32 %r1, dynamic+4*2;", 56),
        ("mov.u64 %rd1, sh+4*2; ld.shared.u32 %r1, [%rd1];", 7),
        ("ld.shared.u32 %r1, [sh+4*3-4];", 7),
        ("mov.u64 %rd1, table+4; ld.const.u32 %r1, [%rd1];", 6),
        ("mov.u64 %rd1, %gridid; cvt.u32.u64 %r1, %rd1;", 0),
        ("cvt.u32.u8 %r1, %rd5;", 0x88),
        ("st.global.u32 [%slot+8], %rd5; ld.global.b32 %r1, [%slot+8];", 0x8586_8788),
    ] {
        let body = format!(
            ".shared .align 8 .b8 before[8]; .shared .align 4 .b8 sh[32]; mov.b64 %rd5, 0x8182838485868788;
             setp.eq.u32 %p2, %tid, 0; @%p2 st.shared.u32 [sh+8], 7; bar.sync 0; {instruction} st.global.u32 [%slot], %r1;"
        );
        let module = ".const .align 4 .b32 table[2] = {5, 2*3}; .extern .shared .align 16 .b8 dynamic[];";
        let out = Kernel::new(body).module(module).shared_bytes(64).run();
        assert_eq!(out.words(), [expected; 32], "{instruction}");
    }
}

#[test]
fn a_pointer_is_aligned_whatever_it_points_at() {
    let kernel = Kernel::new("ld.param.u64 %rd1, [pointer]; st.global.u64 [%slot], %rd1;")
        .param(".param .u32 count", Arg::U32(1))
        .param(".param .u64 .ptr .global .align 1 pointer", Arg::U64(PATTERN));
    assert_eq!(kernel.run().longs(), [PATTERN; 32]);
}
