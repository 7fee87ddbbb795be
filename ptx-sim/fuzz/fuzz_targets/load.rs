//! Any bytes as PTX: `cargo +nightly fuzz run load`.
#![no_main]

#[path = "../mutation.rs"]
#[allow(dead_code, reason = "this target makes no edits of its own")]
mod mutation;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    mutation::load_and_launch(&text, bytes.len() as u64);
});
