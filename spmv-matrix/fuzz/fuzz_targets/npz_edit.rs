//! Edits of SciPy's own files: `cargo +nightly fuzz run npz_edit`. The input says which file and, eight bytes each, the
//! edits.
#![no_main]

#[path = "../mutation.rs"]
mod mutation;

use libfuzzer_sys::fuzz_target;
use mutation::{FIXTURES, Random, mutate, read};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, seeds)) = bytes.split_first() else { return };
    let mut file = FIXTURES[usize::from(*first) % FIXTURES.len()].to_vec();
    for seed in seeds.chunks_exact(8).take(16) {
        file = mutate(&file, &mut Random(u64::from_le_bytes(seed.try_into().expect("eight bytes"))));
    }
    read(&file);
});
