//! Random edits of inputs, and running a target on very many of them.
//!
//! A seed gives the same inputs every time. Edits go on from inputs that were taken, and from those of which something was
//! said for the first time, so they reach what lies behind the first check.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

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

/// How many edits: one as often as more.
pub fn how_many(random: &mut Random) -> usize {
    if random.below(2) == 0 { 1 } else { 2 + random.below(3) }
}

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

/// Changes a text in one place, or in up to four: a byte, a word, a line. `words` are put in that it may not have.
pub fn mutate_text(text: &[u8], words: &[impl AsRef<[u8]>], random: &mut Random) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..how_many(random) {
        edit_text(&mut bytes, words, random);
    }
    bytes
}

fn edit_text(bytes: &mut Vec<u8>, words: &[impl AsRef<[u8]>], random: &mut Random) {
    if bytes.is_empty() {
        bytes.push(random.next() as u8);
        return;
    }
    let kind = random.below(13);
    if kind < 3 {
        let at = random.below(bytes.len());
        match kind {
            0 => bytes[at] = random.next() as u8,
            1 => bytes.insert(at, (32 + random.below(95)) as u8),
            _ => drop(bytes.remove(at)),
        }
        return;
    }
    let parts = if kind < 10 { tokens(bytes) } else { lines(bytes) };
    if parts.is_empty() {
        return;
    }
    let (start, end) = parts[random.below(parts.len())];
    let other = parts[random.below(parts.len())];
    let other = bytes[other.0..other.1].to_vec();
    match kind {
        3..=5 => drop(bytes.splice(start..end, other)),
        6 => drop(bytes.splice(start..end, words[random.below(words.len())].as_ref().iter().copied())),
        7 => drop(
            bytes
                .splice(start..start, words[random.below(words.len())].as_ref().iter().copied().chain(*b" ")),
        ),
        // A modifier less, or a digit more.
        8 => match bytes[start..end].iter().rposition(|byte| *byte == b'.') {
            Some(dot) if dot > 0 => drop(bytes.drain(start + dot..end)),
            _ => bytes.insert(end, b'0' + random.below(10) as u8),
        },
        // Many of a word, now and then so many that whoever calls itself for each would run out of stack.
        9 if random.below(4) == 0 => {
            let most = if random.below(64) == 0 { 14 } else { 6 };
            drop(bytes.splice(start..start, other.repeat(1 << random.below(most))));
        }
        9 | 10 => drop(bytes.splice(start..end, other)),
        11 => drop(bytes.splice(start..start, other)),
        _ if random.below(20) == 0 => bytes.truncate(start),
        _ => drop(bytes.drain(start..end)),
    }
}

/// Changes one byte, or the length.
pub fn edit_byte(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(4) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, random.next() as u8),
        2 if !bytes.is_empty() => drop(bytes.remove(at)),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

/// What came of an input.
pub enum Outcome {
    Taken,
    /// With what was said.
    Refused(String),
}

/// What is fuzzed.
pub struct Target<'a> {
    pub name: &'static str,
    /// Inputs to start from.
    pub seeds: Vec<Vec<u8>>,
    pub mutate: &'a dyn Fn(&[u8], &mut Random) -> Vec<u8>,
    /// Panics where anything is wrong.
    pub run: &'a mut dyn FnMut(&[u8]) -> Outcome,
}

/// Inputs that are kept to go on from.
const MAX_KEPT: usize = 2000;

/// The longest of these.
const MAX_KEPT_BYTES: usize = 1 << 16;

/// Findings after which it is enough.
const MAX_FINDINGS: usize = 20;

impl Target<'_> {
    /// Runs `usual` inputs, or as many as `SPMV_FUZZ_INPUTS` says, from the seed `SPMV_FUZZ_SEED`, and prints what came of
    /// them. What panics is written to the temporary folder.
    pub fn fuzz(self, usual: u64) {
        let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
        let inputs: u64 = number("SPMV_FUZZ_INPUTS").unwrap_or(usual);
        let seed: u64 = number("SPMV_FUZZ_SEED").unwrap_or(1);
        let (mut sound, mut kept, mut said) = (self.seeds, Vec::new(), HashSet::new());
        let (mut taken, mut refused) = (0u64, 0u64);
        let mut slowest = (Duration::ZERO, 0);
        let mut findings = Vec::new();
        let began = Instant::now();
        let mut run = |input: &[u8], number: u64| {
            let started = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| (self.run)(input)));
            slowest = slowest.max((started.elapsed(), number));
            outcome
        };
        for seed in &sound {
            assert!(run(seed, 0).is_ok(), "{}: what it starts from: {}", self.name, seed.escape_ascii());
        }
        for number in 0..inputs {
            let mut random =
                Random(seed.wrapping_shl(40).wrapping_add(number).wrapping_mul(0x2545_f491_4f6c_dd1d));
            let from: &Vec<Vec<u8>> = if random.below(3) == 0 && !kept.is_empty() { &kept } else { &sound };
            let input = (self.mutate)(&from[random.below(from.len())], &mut random);
            match run(&input, number) {
                Ok(Outcome::Taken) => {
                    taken += 1;
                    if sound.len() < MAX_KEPT && input.len() <= MAX_KEPT_BYTES && random.below(32) == 0 {
                        sound.push(input);
                    }
                }
                Ok(Outcome::Refused(message)) => {
                    refused += 1;
                    assert!(
                        !message.is_empty(),
                        "{}: nothing is said of {}",
                        self.name,
                        input.escape_ascii()
                    );
                    let is_new = kept.len() < MAX_KEPT && said.insert(gist(&message));
                    if is_new && input.len() <= MAX_KEPT_BYTES {
                        kept.push(input);
                    }
                }
                Err(_) => {
                    let file = std::env::temp_dir().join(format!("spmv-fuzz-{}-{seed}-{number}", self.name));
                    std::fs::write(&file, &input).expect("the temporary folder can be written");
                    println!("fuzz {}: input {number} panics: {}", self.name, file.display());
                    findings.push(number);
                    if findings.len() == MAX_FINDINGS {
                        break;
                    }
                }
            }
        }
        let took = began.elapsed();
        println!(
            "fuzz {}: {} inputs in {:.1} s, {:.0} a second: {taken} taken, {refused} refused in {} ways, {} panics; the \
             slowest, {}, took {:.1?}",
            self.name,
            taken + refused + findings.len() as u64,
            took.as_secs_f64(),
            inputs as f64 / took.as_secs_f64(),
            said.len(),
            findings.len(),
            slowest.1,
            slowest.0,
        );
        assert!(findings.is_empty(), "inputs {findings:?} of {}", self.name);
        assert!(taken > 0 && refused > 0 && said.len() > 2, "edits reach too little of {}", self.name);
    }
}

/// A message without what it quotes and its numbers.
fn gist(message: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (index, part) in message.split('`').enumerate() {
        if index % 2 == 0 {
            let letters = part.chars().filter(|letter| letter.is_alphabetic());
            letters.take(120).for_each(|letter| letter.hash(&mut hasher));
        }
    }
    hasher.finish()
}
