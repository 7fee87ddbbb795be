//! Loads and launches random edits of real PTX: `cargo run --release --example fuzz -- [iterations] [seed]`.
//! Nothing may panic, hang or take much memory; what does is printed.

#[path = "../fuzz/mutation.rs"]
mod mutation;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use mutation::{FIXTURES, MIXTURE, Random, load_and_launch, mutate};

fn main() {
    let mut args = std::env::args().skip(1);
    let iterations: u64 = args.next().map_or(20_000, |arg| arg.parse().expect("a number of iterations"));
    let seed: u64 = args.next().map_or(1, |arg| arg.parse().expect("a seed"));
    let mut outcomes = BTreeMap::<String, u64>::new();
    let mut findings = 0;
    let mut slowest = (Duration::ZERO, 0);
    let start = Instant::now();
    for iteration in 0..iterations {
        let number = seed.wrapping_mul(1 << 32).wrapping_add(iteration);
        let mut random = Random(number);
        let from = random.below(2 * FIXTURES.len());
        let ptx = mutate(FIXTURES.get(from).unwrap_or(&MIXTURE), &mut random);
        let began = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| load_and_launch(&ptx, random.next()))) {
            Ok(outcome) => *outcomes.entry(format!("{outcome:?}")).or_default() += 1,
            Err(_) => {
                findings += 1;
                let file = std::env::temp_dir().join(format!("ptx-sim-panic-{number}.ptx"));
                std::fs::write(&file, &ptx).expect("the temporary directory can be written");
                println!("iteration {iteration} panics: {}", file.display());
            }
        }
        slowest = slowest.max((began.elapsed(), iteration));
    }
    println!("{iterations} iterations in {:.1?}: {outcomes:?}, {findings} panics", start.elapsed());
    println!("the slowest, {}, took {:.1?}", slowest.1, slowest.0);
    if findings > 0 {
        std::process::exit(1);
    }
}
