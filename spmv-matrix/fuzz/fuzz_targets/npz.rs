//! Any bytes as a file of SciPy's: `cargo +nightly fuzz run npz`.
#![no_main]

#[path = "../mutation.rs"]
#[allow(dead_code, reason = "this target makes no edits of its own")]
mod mutation;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    mutation::read(bytes);
});
