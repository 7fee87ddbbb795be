//! Edits of SciPy's files, the same every time: nothing panics, and what is still read is right.

#[path = "../fuzz/mutation.rs"]
mod mutation;

use std::collections::BTreeMap;

use mutation::{FIXTURES, Outcome, Random, mutate, read};

#[test]
fn the_files_themselves_are_read() {
    for file in FIXTURES {
        assert_eq!(read(file), Outcome::Read);
    }
}

#[test]
fn edited_files_are_refused_or_read() {
    let mut outcomes = BTreeMap::<Outcome, u32>::new();
    for seed in 0..6_000_u64 {
        let mut random = Random(seed << 32);
        let mut file = FIXTURES[random.below(FIXTURES.len())].to_vec();
        for _ in 0..1 + random.below(3) {
            file = mutate(&file, &mut random);
        }
        *outcomes.entry(read(&file)).or_default() += 1;
    }
    // Edits reach what lies behind the first check.
    assert!(outcomes.len() == 2 && outcomes.values().all(|count| *count > 200), "{outcomes:?}");
}
