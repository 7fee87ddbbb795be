//! Products of matrices by a warp, against the plain product and the layouts that the PTX ISA documents, written
//! down here as the manual gives them: lane and index to row and column.

mod harness;

use half::{bf16, f16};
use harness::{Kernel, SCHEDULES};
use ptx_sim::{FaultKind, Schedule};

type Layout = fn(usize, usize) -> (usize, usize);

/// One product: the mnemonic's end, sizes, elements a lane of A, B and C, and where they stand.
struct Product {
    mnemonic: &'static str,
    rows: usize,
    depth: usize,
    a: (usize, Layout),
    b: (usize, Layout),
    c: (usize, Layout),
}

const PRODUCTS: [Product; 9] = [
    Product {
        mnemonic: "m8n8k4.row.col.f64.f64.f64.f64",
        rows: 8,
        depth: 4,
        a: (1, |lane, _| (lane >> 2, lane % 4)),
        b: (1, |lane, _| (lane % 4, lane >> 2)),
        c: (2, |lane, i| (lane >> 2, lane % 4 * 2 + i)),
    },
    Product {
        mnemonic: "m16n8k4.row.col.f64.f64.f64.f64",
        rows: 16,
        depth: 4,
        a: (2, |lane, i| (if i == 0 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4)),
        b: (1, |lane, _| (lane % 4, lane >> 2)),
        c: (4, |lane, i| (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))),
    },
    Product {
        mnemonic: "m16n8k8.row.col.f64.f64.f64.f64",
        rows: 16,
        depth: 8,
        a: (4, |lane, i| {
            (
                if i == 0 || i == 2 { lane >> 2 } else { (lane >> 2) + 8 },
                if i < 2 { lane % 4 } else { lane % 4 + 4 },
            )
        }),
        b: (2, |lane, i| (if i == 0 { lane % 4 } else { lane % 4 + 4 }, lane >> 2)),
        c: (4, |lane, i| (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))),
    },
    Product {
        mnemonic: "m16n8k16.row.col.f64.f64.f64.f64",
        rows: 16,
        depth: 16,
        a: (8, |lane, i| match i % 2 {
            0 => (lane >> 2, i * 2 + lane % 4),
            _ => ((lane >> 2) + 8, i * 2 - 2 + lane % 4),
        }),
        b: (4, |lane, i| (lane % 4 + i * 4, lane >> 2)),
        c: (4, |lane, i| (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))),
    },
    Product {
        mnemonic: "m16n8k8.row.col.f32.f16.f16.f32",
        rows: 16,
        depth: 8,
        a: (4, |lane, i| (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))),
        b: (2, |lane, i| (lane % 4 * 2 + i, lane >> 2)),
        c: (4, |lane, i| (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))),
    },
    Product {
        mnemonic: "m16n8k16.row.col.f32.f16.f16.f32",
        rows: 16,
        depth: 16,
        a: (8, |lane, i| {
            let row = if i < 2 || (4..6).contains(&i) { lane >> 2 } else { (lane >> 2) + 8 };
            (row, if i < 4 { lane % 4 * 2 + (i & 1) } else { lane % 4 * 2 + (i & 1) + 8 })
        }),
        b: (4, |lane, i| {
            (if i < 2 { lane % 4 * 2 + (i & 1) } else { lane % 4 * 2 + (i & 1) + 8 }, lane >> 2)
        }),
        c: (4, |lane, i| (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))),
    },
    Product {
        mnemonic: "m16n8k16.row.col.f16.f16.f16.f16",
        rows: 16,
        depth: 16,
        a: (8, |lane, i| {
            let row = if i < 2 || (4..6).contains(&i) { lane >> 2 } else { (lane >> 2) + 8 };
            (row, if i < 4 { lane % 4 * 2 + (i & 1) } else { lane % 4 * 2 + (i & 1) + 8 })
        }),
        b: (4, |lane, i| {
            (if i < 2 { lane % 4 * 2 + (i & 1) } else { lane % 4 * 2 + (i & 1) + 8 }, lane >> 2)
        }),
        c: (4, |lane, i| (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))),
    },
    Product {
        mnemonic: "m16n8k8.row.col.f32.bf16.bf16.f32",
        rows: 16,
        depth: 8,
        a: (4, |lane, i| (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))),
        b: (2, |lane, i| (lane % 4 * 2 + i, lane >> 2)),
        c: (4, |lane, i| (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))),
    },
    Product {
        mnemonic: "m16n8k16.row.col.f32.bf16.bf16.f32",
        rows: 16,
        depth: 16,
        a: (8, |lane, i| {
            let row = if i < 2 || (4..6).contains(&i) { lane >> 2 } else { (lane >> 2) + 8 };
            (row, if i < 4 { lane % 4 * 2 + (i & 1) } else { lane % 4 * 2 + (i & 1) + 8 })
        }),
        b: (4, |lane, i| {
            (if i < 2 { lane % 4 * 2 + (i & 1) } else { lane % 4 * 2 + (i & 1) + 8 }, lane >> 2)
        }),
        c: (4, |lane, i| (if i < 2 { lane >> 2 } else { (lane >> 2) + 8 }, lane % 4 * 2 + (i & 1))),
    },
];

fn element(kind: &str, value: f64) -> Vec<u8> {
    match kind {
        "f64" => value.to_le_bytes().into(),
        "f32" => (value as f32).to_le_bytes().into(),
        "f16" => f16::from_f64(value).to_le_bytes().into(),
        _ => bf16::from_f64(value).to_le_bytes().into(),
    }
}

fn value(kind: &str, bytes: &[u8]) -> f64 {
    match kind {
        "f64" => f64::from_le_bytes(bytes.try_into().unwrap()),
        "f32" => f32::from_le_bytes(bytes.try_into().unwrap()).into(),
        "f16" => f16::from_le_bytes(bytes.try_into().unwrap()).into(),
        _ => bf16::from_le_bytes(bytes.try_into().unwrap()).into(),
    }
}

/// A product whose fragments are loaded from `in`, lane by lane, and whose results replace C there. `types` are those
/// of D, A, B and C; the registers of a lane in `counts`.
struct Instruction {
    mnemonic: String,
    types: [String; 4],
    counts: [usize; 4],
    bytes: usize,
}

impl Instruction {
    fn new(mnemonic: &str, elements: [usize; 4]) -> Instruction {
        let mut types: Vec<String> = mnemonic.rsplit('.').take(4).map(str::to_owned).collect();
        types.reverse();
        let types: [String; 4] = types.try_into().unwrap();
        let per_register = |kind: &str| if kind.ends_with("16") { 2 } else { 1 };
        let counts = std::array::from_fn(|at| elements[at] / per_register(&types[at]));
        let bytes = if types[0] == "f64" { 8 } else { 4 };
        Instruction { mnemonic: mnemonic.to_owned(), types, counts, bytes }
    }

    fn registers(&self, matrix: usize) -> Vec<String> {
        let first: usize = if matrix == 0 { 3 } else { matrix - 1 };
        let name = match (self.bytes, self.types[matrix].as_str()) {
            (8, _) => "m",
            (_, "f32") => "s",
            _ => "h",
        };
        (0..self.counts[matrix]).map(|at| format!("%{name}{}", first * 8 + at)).collect()
    }

    fn kernel(&self, guard: &str) -> Kernel {
        let [d, a, b, c] = [0, 1, 2, 3].map(|matrix| self.registers(matrix));
        let lane_bytes = (a.len() + b.len() + c.len().max(d.len())) * self.bytes;
        let size = self.bytes * 8;
        let mut body = format!(
            ".reg .f64 %m<32>; .reg .b32 %h<32>; .reg .f32 %s<32>; mad.wide.u32 %rd1, %lane, {lane_bytes}, %in;\n"
        );
        for (at, register) in a.iter().chain(&b).chain(&c).enumerate() {
            body.push_str(&format!("ld.global.b{size} {register}, [%rd1+{}];\n", at * self.bytes));
        }
        let list = |registers: &[String]| format!("{{{}}}", registers.join(", "));
        let lists = [&d, &a, &b, &c].map(|registers| list(registers)).join(", ");
        body.push_str(&format!("{guard}mma.sync.aligned.{} {lists};\n", self.mnemonic));
        for (at, register) in d.iter().enumerate() {
            let at = (a.len() + b.len() + at) * self.bytes;
            body.push_str(&format!("st.global.b{size} [%rd1+{at}], {register};\n"));
        }
        // The harness has registers of 16 bits by that name.
        Kernel::new(format!("{{\n{body}}}"))
    }
}

/// The small numbers of a test, exact in every format, so that every order of sums gives the same.
fn number(seed: usize) -> f64 {
    ((seed * 7919 + 13) % 31) as f64 - 15.0
}

fn check(
    instruction: &Instruction,
    elements: [usize; 3],
    places: [&dyn Fn(usize, usize) -> (usize, usize, usize); 3],
    rows: usize,
    depth: usize,
) {
    let [_, a_type, b_type, c_type] = instruction.types.each_ref().map(String::as_str);
    let a = |product: usize, row: usize, k: usize| number(product * 1000 + row * 16 + k);
    let b = |product: usize, k: usize, column: usize| number(product * 1000 + 300 + k * 8 + column) / 4.0;
    let c = |product: usize, row: usize, column: usize| number(product * 1000 + 500 + row * 8 + column) * 2.0;
    let d_bytes = instruction.counts[0] * instruction.bytes;
    let mut input = Vec::new();
    for lane in 0..32 {
        let mut put = |kind: &str,
                       count: usize,
                       place: &dyn Fn(usize, usize) -> (usize, usize, usize),
                       of: &dyn Fn(usize, usize, usize) -> f64| {
            for index in 0..count {
                let (product, row, column) = place(lane, index);
                input.extend(element(kind, of(product, row, column)));
            }
        };
        put(a_type, elements[0], places[0], &a);
        put(b_type, elements[1], places[1], &b);
        put(c_type, elements[2], places[2], &c);
        let c_bytes = instruction.counts[3] * instruction.bytes;
        input.extend(std::iter::repeat_n(0, d_bytes.saturating_sub(c_bytes)));
    }
    let out = instruction.kernel("").input(input.clone()).run();
    let lane_bytes = input.len() / 32;
    let d_at = (instruction.counts[1] + instruction.counts[2]) * instruction.bytes;
    let d_type = &instruction.types[0];
    let size = d_bytes / elements[2];
    for lane in 0..32 {
        for index in 0..elements[2] {
            // D lies as C of its type does.
            let (product, row, column) = places[2](lane, index);
            let expected: f64 = c(product, row, column)
                + (0..depth).map(|k| a(product, row, k) * b(product, k, column)).sum::<f64>();
            let at = lane * lane_bytes + d_at + index * size;
            let actual = value(d_type, &out.input[at..at + size]);
            let expected = value(d_type, &element(d_type, expected));
            assert_eq!(actual, expected, "{}: lane {lane}, index {index}, rows {rows}", instruction.mnemonic);
        }
    }
}

#[test]
fn products_of_every_shape() {
    for product in &PRODUCTS {
        let elements = [product.a.0, product.b.0, product.c.0];
        let instruction =
            Instruction::new(product.mnemonic, [elements[2], elements[0], elements[1], elements[2]]);
        let place = |layout: Layout| move |lane, index| (0, layout(lane, index).0, layout(lane, index).1);
        let places: [&dyn Fn(usize, usize) -> (usize, usize, usize); 3] =
            [&place(product.a.1), &place(product.b.1), &place(product.c.1)];
        check(&instruction, elements, places, product.rows, product.depth);
    }
}

/// Four products, one for lanes 0 to 3 and 16 to 19, and so on.
#[test]
fn products_of_quarters_in_every_layout() {
    let upper = |lane: usize| if lane < 16 { 0 } else { 4 };
    let quarter = |lane: usize| lane % 16 / 4;
    for a_layout in ["row", "col"] {
        for b_layout in ["row", "col"] {
            for sums in ["f16", "f32"] {
                let a = |lane: usize, i: usize| match a_layout {
                    "row" => (quarter(lane), lane % 4 + upper(lane), i),
                    _ => (quarter(lane), i % 4 + upper(lane), lane % 4),
                };
                let b = |lane: usize, i: usize| match b_layout {
                    "row" => (quarter(lane), lane % 4, i + upper(lane)),
                    _ => (quarter(lane), i, lane % 4 + upper(lane)),
                };
                let c = |lane: usize, i: usize| match sums {
                    "f16" => (quarter(lane), lane % 4 + upper(lane), i),
                    _ => (quarter(lane), (lane & 1) + (i & 2) + upper(lane), (i & 4) + (lane & 2) + (i & 1)),
                };
                let mnemonic = format!("m8n8k4.{a_layout}.{b_layout}.{sums}.f16.f16.{sums}");
                let instruction = Instruction::new(&mnemonic, [8, 4, 4, 8]);
                check(&instruction, [4, 4, 8], [&a, &b, &c], 8, 4);
            }
        }
    }
}

/// An 8×4 by 4×8 product in double precision of matrices of one number each but for the first element of A and C.
fn sum_of(c: f64, factors: [f64; 4], with: f64) -> f64 {
    let instruction = Instruction::new("m8n8k4.row.col.f64.f64.f64.f64", [2, 1, 1, 2]);
    let input = (0..32).flat_map(|lane| [factors[lane % 4], with, c, c]).flat_map(f64::to_le_bytes);
    let out = instruction.kernel("").input(input.collect::<Vec<u8>>()).run_natural();
    f64::from_le_bytes(out.input[16..24].try_into().unwrap())
}

#[test]
fn sums_are_chains_of_fused_multiply_adds() {
    // 2⁵³ swallows a one that comes alone; in order of k, from C.
    let large = 9_007_199_254_740_992.0;
    assert_eq!(sum_of(large, [1.0, 1.0, 0.0, 0.0], 1.0), large);
    assert_eq!(sum_of(0.0, [1.0, 1.0, large, 0.0], 1.0), large + 2.0);
    assert_eq!(sum_of(0.0, [large, 1.0, 1.0, -large], 1.0), 0.0);
    // The product is not rounded before the sum.
    let third = 1.0 + f64::EPSILON;
    assert_eq!(sum_of(-(third * third), [third, 0.0, 0.0, 0.0], third), f64::EPSILON * f64::EPSILON);
    assert!(sum_of(f64::INFINITY, [f64::NEG_INFINITY, 0.0, 0.0, 0.0], 1.0).is_nan());
}

#[test]
fn sums_of_halves_are_in_single_precision() {
    let instruction = Instruction::new("m16n8k8.row.col.f32.f16.f16.f32", [4, 4, 2, 4]);
    let run = |c: f32, a: f32, b: f32| {
        let halves = |x: f32| u32::from(f16::from_f32(x).to_bits()) * 0x1_0001;
        let words: Vec<u32> = (0..32)
            .flat_map(|_| {
                [halves(a), halves(a), halves(b), c.to_bits(), c.to_bits(), c.to_bits(), c.to_bits()]
            })
            .collect();
        f32::from_bits(instruction.kernel("").words(&words).run_natural().input_words()[3])
    };
    // Beyond the range and the precision of f16.
    assert_eq!(run(0.0, 32768.0, 32768.0), 2f32.powi(33));
    let odd = 1.0 + 1.0 / 1024.0;
    assert_eq!(run(0.5, odd, odd), 0.5 + 8.0 * (odd * odd));
    // The smallest number of f16 has a square in single precision.
    let least = 2f32.powi(-24);
    assert_eq!(run(0.0, least, least), 2f32.powi(-45));
    assert!(run(f32::NAN, 1.0, 1.0).is_nan());
}

#[test]
fn every_lane_of_the_warp_takes_part() {
    let instruction = Instruction::new("m8n8k4.row.col.f64.f64.f64.f64", [2, 1, 1, 2]);
    let input = vec![0; 32 * 32];
    for (before, guard, waiting) in [
        ("setp.ne.u32 %p1, %lane, 5;", "@%p1 ", !(1u32 << 5)),
        ("setp.eq.u32 %p1, %lane, 5; @%p1 exit;", "", !(1 << 5)),
        ("setp.lt.u32 %p1, %lane, 16; @%p1 bra END;", "", 0xffff_0000),
    ] {
        let mut kernel = instruction.kernel(guard).input(input.clone());
        kernel.body = format!("{before}\n{}\nEND: bar.warp.sync -1;", kernel.body);
        let line = 1 + kernel.ptx().lines().position(|line| line.contains("mma.sync")).unwrap();
        for schedule in SCHEDULES {
            let fault = kernel.fault(schedule);
            let FaultKind::SyncDeadlock { waiting: found, missing } = fault.kind else { panic!("{fault}") };
            let place = fault.location.ptx_line as usize;
            // Who waits elsewhere may be found first.
            let here = place == line && (found, missing) == (waiting, !waiting);
            let elsewhere = before.contains("bra") && (found, missing) == (!waiting, waiting);
            assert!(here || elsewhere && schedule != Schedule::Natural, "{schedule:?}: {fault}");
        }
    }
    // The last warp is not full.
    let fault = instruction.kernel("").input(vec![0; 32 * 32]).block(48).fault(Schedule::Natural);
    assert_eq!(fault.kind, FaultKind::SyncDeadlock { waiting: 0xffff, missing: 0xffff_0000 }, "{fault}");
    assert_eq!(fault.thread, [32, 0, 0]);
    // Lanes that come on two ways meet first.
    let mut kernel = instruction.kernel("").input(input);
    kernel.body =
        format!("setp.lt.u32 %p1, %lane, 16; @%p1 bra HERE; mov.u32 %r1, 1; HERE:\n{}", kernel.body);
    kernel.run();
}
