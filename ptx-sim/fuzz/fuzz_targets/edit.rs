//! Edits of real PTX: `cargo +nightly fuzz run edit`. The input says which kernel and, eight bytes each, the edits.
#![no_main]

#[path = "../mutation.rs"]
mod mutation;

use libfuzzer_sys::fuzz_target;
use mutation::{FIXTURES, MIXTURE, Random, load_and_launch, mutate};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, seeds)) = bytes.split_first() else { return };
    let mut text = FIXTURES.get(usize::from(first % 12)).unwrap_or(&MIXTURE).to_string();
    for seed in seeds.chunks_exact(8).take(16) {
        text = mutate(&text, &mut Random(u64::from_le_bytes(seed.try_into().expect("eight bytes"))));
    }
    load_and_launch(&text, u64::from(*first));
});
