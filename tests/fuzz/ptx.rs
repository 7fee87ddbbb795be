//! Random edits of PTX, and running whatever of it still loads.

use ptx_sim::{Arg, Launch, Module, Schedule, Simulator};

use super::mutation::{Random, mutate_text};

/// Words that the fixtures may not have, or not where an edit puts them.
const WORDS: [&str; 60] = [
    "0",
    "1",
    "-1",
    "31",
    "32",
    "255",
    "4294967295",
    "9223372036854775807",
    "18446744073709551615",
    "0x",
    "0f3F800000",
    "0d7FF0000000000000",
    "_",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    ";",
    ",",
    ":",
    "|",
    "!",
    "@",
    "=",
    "+",
    "-",
    "\"",
    "/*",
    "//",
    "bra",
    "bra.uni",
    "ret",
    "exit",
    "trap",
    "call",
    "bar.sync",
    "bar.warp.sync",
    "bar.arrive",
    "brx.idx",
    "vote.sync.ballot.b32",
    "shfl.sync.idx.b32",
    "atom.global.add.u32",
    "redux.sync.add.u32",
    "ld.shared.u32",
    "st.local.u8",
    "ld.param.v4.u32",
    "cp.async.ca.shared.global",
    "%tid.x",
    "%laneid",
    "%clock64",
    "%r1",
    "%rd1",
    "%p1",
    ".shared .align 4 .b8 s[64];",
    ".local .align 8 .b8 l[64];",
    "\u{e9}",
];

/// Changes a text in one place, or in up to four.
pub fn mutate(text: &str, random: &mut Random) -> String {
    String::from_utf8_lossy(&mutate_text(text.as_bytes(), &WORDS, random)).into_owned()
}

/// What became of a text, and what was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launched {
    NotLoaded(String),
    NotRun(String),
    Ran,
}

/// Loads a text and launches its first kernel: two small blocks, a few thousand instructions.
pub fn load_and_launch(ptx: &str, seed: u64) -> Launched {
    let module = match Module::load(ptx) {
        Ok(module) => module,
        Err(error) => return Launched::NotLoaded(error.to_string()),
    };
    let Some(name) = module.kernels().first() else { return Launched::NotRun("no kernel".into()) };
    let info = module.kernel(name).expect("the module names its kernels");
    let mut simulator =
        Simulator::new().capacity(1 << 16).threads(1 + (seed % 2) as usize).instruction_limit(5_000);
    let buffer = simulator.allocate(4096).expect("there is room");
    let words: Vec<u8> = (0..1024u32).flat_map(|word| (word % 7).to_le_bytes()).collect();
    simulator.write(buffer, &words).expect("the buffer holds them");
    let args = info.param_bytes.iter().map(|bytes| match bytes {
        8 => Arg::U64(buffer),
        4 => Arg::U32(9),
        bytes => Arg::Bytes(vec![1; *bytes as usize]),
    });
    let launch = Launch {
        grid: [2, 1, 1],
        block: [if seed.is_multiple_of(3) { 64 } else { 33 }, 1, 1],
        shared_bytes: 64,
        args: args.collect(),
        schedule: if seed.is_multiple_of(5) { Schedule::Adversarial(seed) } else { Schedule::Natural },
    };
    match simulator.launch(&module, name, &launch) {
        Ok(_) => Launched::Ran,
        Err(error) => Launched::NotRun(error.to_string()),
    }
}

/// PTX of real kernels.
pub const FIXTURES: [&str; 6] = [
    include_str!("../../ptx-sim/tests/data/csr_scalar_f32_sm_90.ptx"),
    include_str!("../../ptx-sim/tests/data/csr_scalar_f64_sm_75.ptx"),
    include_str!("../../ptx-sim/tests/data/csr_vector_f32_sm_75.ptx"),
    include_str!("../../ptx-sim/tests/data/csr_vector_f64_sm_90.ptx"),
    include_str!("../../ptx-sim/tests/data/light_vector_f32_sm_90.ptx"),
    include_str!("../../ptx-sim/tests/data/light_vector_f64_sm_75.ptx"),
];

/// Hand-written PTX with what the kernels above do not have.
pub const MIXTURE: &str = include_str!("../../ptx-sim/tests/data/mixture.ptx");
