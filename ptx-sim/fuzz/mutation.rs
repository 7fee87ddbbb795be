//! Random edits of PTX, and running whatever of it still loads.

use ptx_sim::{Arg, Error, FaultKind, Launch, Module, Schedule, Simulator};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

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

/// Where the words and symbols of a text begin and end.
fn tokens(text: &[u8]) -> Vec<(usize, usize)> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.');
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let start = at;
        while at < text.len() && word(text[at]) {
            at += 1;
        }
        if at == start {
            at += 1;
            if text[start].is_ascii_whitespace() {
                continue;
            }
        }
        tokens.push((start, at));
    }
    tokens
}

fn lines(text: &[u8]) -> Vec<(usize, usize)> {
    let mut start = 0;
    let mut lines = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        lines.push((start, start + line.len()));
        start += line.len();
    }
    lines
}

/// Changes a text in one place, or in up to four.
pub fn mutate(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let edits = if random.below(2) == 0 { 1 } else { 2 + random.below(3) };
    for _ in 0..edits {
        edit(&mut bytes, random);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn edit(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        bytes.push(random.next() as u8);
        return;
    }
    let kind = random.below(12);
    if kind < 3 {
        let at = random.below(bytes.len());
        match kind {
            0 => bytes[at] = random.next() as u8,
            1 => bytes.insert(at, (32 + random.below(95)) as u8),
            _ => drop(bytes.remove(at)),
        }
        return;
    }
    let parts = if kind < 9 { tokens(bytes) } else { lines(bytes) };
    if parts.is_empty() {
        return;
    }
    let (start, end) = parts[random.below(parts.len())];
    let other = parts[random.below(parts.len())];
    let other = bytes[other.0..other.1].to_vec();
    match kind {
        3..=5 => drop(bytes.splice(start..end, other)),
        6 => drop(bytes.splice(start..end, WORDS[random.below(WORDS.len())].bytes())),
        7 => drop(bytes.splice(start..start, WORDS[random.below(WORDS.len())].bytes().chain(*b" "))),
        // A modifier less, or a digit more.
        8 => match bytes[start..end].iter().rposition(|byte| *byte == b'.') {
            Some(dot) if dot > 0 => drop(bytes.drain(start + dot..end)),
            _ => bytes.insert(end, b'0' + random.below(10) as u8),
        },
        9 => drop(bytes.splice(start..end, other)),
        10 => drop(bytes.splice(start..start, other)),
        _ if random.below(20) == 0 => bytes.truncate(start),
        _ => drop(bytes.drain(start..end)),
    }
}

/// What became of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Refused,
    NotLaunched,
    Faulted,
    /// Stopped by the limit of instructions, or as a livelock.
    Endless,
    Ran,
}

/// Loads a text and launches its first kernel: two small blocks, a few thousand instructions.
pub fn load_and_launch(ptx: &str, seed: u64) -> Outcome {
    let Ok(module) = Module::load(ptx) else { return Outcome::Refused };
    let Some(name) = module.kernels().first() else { return Outcome::NotLaunched };
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
    let result = simulator.launch(&module, name, &launch);
    match result {
        Ok(_) => Outcome::Ran,
        Err(Error::Fault(fault)) => {
            // What a person would read is made too.
            assert!(!fault.to_string().is_empty());
            match fault.kind {
                FaultKind::InstructionLimit { .. } | FaultKind::Livelock { .. } => Outcome::Endless,
                _ => Outcome::Faulted,
            }
        }
        Err(_) => Outcome::NotLaunched,
    }
}

/// PTX of real kernels.
pub const FIXTURES: [&str; 6] = [
    include_str!("../tests/data/csr_scalar_f32_sm_90.ptx"),
    include_str!("../tests/data/csr_scalar_f64_sm_75.ptx"),
    include_str!("../tests/data/csr_vector_f32_sm_75.ptx"),
    include_str!("../tests/data/csr_vector_f64_sm_90.ptx"),
    include_str!("../tests/data/light_vector_f32_sm_90.ptx"),
    include_str!("../tests/data/light_vector_f64_sm_75.ptx"),
];

/// Hand-written PTX with what the kernels above do not have.
pub const MIXTURE: &str = include_str!("../tests/data/mixture.ptx");
