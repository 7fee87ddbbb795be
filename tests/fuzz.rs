//! Random edits of everything that is read from outside: nothing panics, what is refused is told, and what is taken is what
//! it says. `SPMV_FUZZ_INPUTS=10000000 cargo test --test fuzz -- --nocapture npz` runs that many inputs of a target; macro
//! and command line have theirs in their own packages, by the same names.

mod fuzz {
    pub mod cache;
    pub mod config;
    pub mod matrix_market;
    pub mod mutation;
    pub mod npz;
    pub mod ptx;
}

use fuzz::mutation::{Outcome, Target, mutate_text};
use fuzz::{cache, config, matrix_market, npz, ptx};
use spmv_runtime::tuning::Choice;

#[test]
fn fuzz_matrix_market() {
    Target {
        name: "matrix_market",
        seeds: matrix_market::SEEDS.iter().map(|text| text.as_bytes().to_vec()).collect(),
        mutate: &matrix_market::mutate,
        run: &mut matrix_market::read,
    }
    .fuzz(20_000);
}

#[test]
fn fuzz_npz() {
    Target {
        name: "npz",
        seeds: npz::FIXTURES.map(<[u8]>::to_vec).to_vec(),
        mutate: &npz::mutate,
        run: &mut npz::read,
    }
    .fuzz(6_000);
}

#[test]
fn fuzz_cache() {
    let folder = cache::Folder::new();
    Target {
        name: "cache",
        seeds: folder.seeds(),
        mutate: &cache::mutate,
        run: &mut |file| folder.read(file),
    }
    .fuzz(5_000);
}

#[test]
fn fuzz_tuning() {
    let seed = Choice::export(&[cache::choice()]);
    let words = config::words();
    Target {
        name: "tuning",
        seeds: vec![seed.into_bytes()],
        mutate: &|text, random| mutate_text(text, &words, random),
        run: &mut |text| {
            let text = String::from_utf8_lossy(text);
            match Choice::import(&text) {
                Ok(choices) => {
                    let again = Choice::import(&Choice::export(&choices)).expect("what was written is read");
                    assert_eq!(again, choices);
                    Outcome::Taken
                }
                Err(error) => Outcome::Refused(error.to_string()),
            }
        },
    }
    .fuzz(20_000);
}

#[test]
fn fuzz_config() {
    let words = config::words();
    Target {
        name: "config",
        seeds: config::seeds(),
        mutate: &|text, random| mutate_text(text, &words, random),
        run: &mut config::build,
    }
    .fuzz(10_000);
}

#[test]
fn fuzz_function() {
    let words = config::function_words();
    Target {
        name: "function",
        seeds: config::FUNCTIONS.iter().map(|text| text.as_bytes().to_vec()).collect(),
        mutate: &|text, random| mutate_text(text, &words, random),
        run: &mut config::function,
    }
    .fuzz(20_000);
}

#[test]
fn fuzz_ptx() {
    let mut launches = 0;
    Target {
        name: "ptx",
        seeds: ptx::FIXTURES.iter().chain([&ptx::MIXTURE; 6]).map(|text| text.as_bytes().to_vec()).collect(),
        mutate: &|text, random| ptx::mutate(&String::from_utf8_lossy(text), random).into_bytes(),
        run: &mut |text| {
            launches += 1;
            match ptx::load_and_launch(&String::from_utf8_lossy(text), launches) {
                ptx::Launched::Ran => Outcome::Taken,
                ptx::Launched::NotLoaded(said) | ptx::Launched::NotRun(said) => Outcome::Refused(said),
            }
        },
    }
    .fuzz(2_000);
}
