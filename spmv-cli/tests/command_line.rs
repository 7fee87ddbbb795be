//! What the command prints, and what it exits with: reviewed text in `snapshots/`.
//!
//! `TRYCMD=overwrite cargo test -p spmv-cli --test command_line` writes what it prints now.

use std::path::Path;

fn snapshots(folder: &str) -> trycmd::TestCases {
    let cases = trycmd::TestCases::new();
    cases
        .case(format!("tests/snapshots/{folder}/*.trycmd"))
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .default_bin_name("spmv");
    cases
}

#[test]
fn help() {
    snapshots("help").run();
}

/// These need NVRTC, and fail without it.
#[test]
fn answers_and_errors() {
    let cache = tempfile::tempdir().unwrap();
    let cases = snapshots("answers");
    cases.case("tests/snapshots/errors/*.trycmd");
    cases.env("SPMV_CACHE_DIR", cache.path().join("cache").to_str().unwrap());
    cases.run();
}

#[test]
fn without_nvrtc() {
    let nowhere = "/nonexistent";
    assert!(!Path::new(nowhere).exists());
    snapshots("without_nvrtc").env("SPMV_NVRTC", nowhere).env("SPMV_CACHE_DIR", "off").run();
}
