//! Products of real matrices, verified by the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

fn matrices() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/matrices");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|name| name == "mtx")).collect();
    paths.sort();
    assert!(paths.len() >= 10, "{paths:?}");
    paths
}

fn spmv(cache: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spmv"));
    command.env("SPMV_CACHE_DIR", cache.path().join("cache"));
    command
}

fn run(cache: &TempDir, matrix: &Path, arguments: &[&str]) -> Value {
    let output = spmv(cache)
        .arg("run")
        .arg(matrix)
        .args(arguments)
        .args(["--repeat", "0", "--json"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {arguments:?}: {errors}", matrix.display());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_cpu_is_right_on_every_matrix() {
    let cache = tempfile::tempdir().unwrap();
    for matrix in matrices() {
        for arguments in
            [&["--value", "f32"][..], &["--value", "f64", "--alpha", "-1.5", "--beta", "0.3"][..]]
        {
            let report = run(&cache, &matrix, &[arguments, &["--device", "cpu"]].concat());
            assert_eq!(report["verification"]["passed"], true);
            assert_eq!(report["verification"]["rows"], report["matrix"]["num_rows"]);
        }
    }
}

/// The algorithms, and with each what sets its sums to f64: those of the transpose add in y's own type.
fn algorithms(cache: &TempDir) -> Vec<(String, &'static [&'static str])> {
    let listed = spmv(cache).args(["algorithms", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let all = listed["algorithms"].as_array().unwrap().iter();
    let with_sums = all.map(|algorithm| {
        let wide_sums: &[&str] = match algorithm["operations"][0].as_str().unwrap() {
            "transpose" => &["--set", "accumulator=f64", "--set", "y=f64"],
            _ => &["--set", "accumulator=f64", "--set", "offset=u64"],
        };
        (algorithm["name"].as_str().unwrap().to_owned(), wide_sums)
    });
    with_sums.collect()
}

/// On the GPU where there is one, else on the simulator.
#[test]
fn every_algorithm_is_right() {
    let cache = tempfile::tempdir().unwrap();
    for (algorithm, wide_sums) in algorithms(&cache) {
        for matrix in matrices() {
            let types = [&["--value", "f32"][..], &["--value", "f64"][..], wide_sums];
            for arguments in types {
                let report = run(&cache, &matrix, &[&["--algorithm", &algorithm], arguments].concat());
                assert_eq!(report["verification"]["passed"], true);
                assert_eq!(report["kernel"]["algorithm"], algorithm);
                assert_ne!(report["device"]["kind"], "cpu");
            }
        }
    }
}

#[test]
fn every_algorithm_is_right_in_any_order_on_the_simulator() {
    let cache = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/matrices");
    for (algorithm, wide_sums) in algorithms(&cache) {
        let types = [
            &["--value", "f32", "--beta", "1"][..],
            &["--value", "f64", "--alpha", "-1.5", "--beta", "0.3"][..],
            wide_sums,
        ];
        for name in ["karate", "lp_afiro", "LFAT5_hypersparse", "USAir97"] {
            let matrix = folder.join(name).with_extension("mtx");
            for arguments in types {
                for schedule in ["natural", "1", "2"] {
                    let device = ["--device", "sim", "--schedule", schedule, "--algorithm", &algorithm];
                    let report = run(&cache, &matrix, &[&device, arguments].concat());
                    assert_eq!(report["verification"]["passed"], true);
                    assert_eq!(report["device"]["schedule"], schedule);
                }
            }
        }
    }
}

#[test]
fn pipes_are_read_too() {
    let cache = tempfile::tempdir().unwrap();
    let matrix = Path::new(env!("CARGO_MANIFEST_DIR")).join("matrices/gemat12.mtx.gz");
    let mut command = spmv(&cache);
    command.args(["run", "/dev/stdin", "--device", "cpu", "--repeat", "0", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::copy(&mut fs::File::open(matrix).unwrap(), &mut child.stdin.take().unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["matrix"]["nnz"], &report["matrix"]["field"]), (&33111.into(), &Value::Null));
    assert_eq!(report["verification"]["passed"], true);
}

/// As in `spmv gen ... | head -1`.
#[test]
fn a_reader_that_leaves_is_no_error() {
    let cache = tempfile::tempdir().unwrap();
    let commands =
        [&["gen", "--algorithm", "csr_vector"][..], &["completions", "bash"], &["run", "--help"], &["demo"]];
    for arguments in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = spmv(&cache).args(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {} {errors}", output.status);
    }
}

#[test]
fn manual_pages_and_completions_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert!(spmv(&folder).arg("man").arg(&pages).status().unwrap().success());
    for page in ["spmv.1", "spmv-run.1", "spmv-cache-gc.1"] {
        assert!(pages.join(page).is_file(), "{page}");
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = spmv(&folder).args(["completions", shell]).output().unwrap();
        assert!(
            script.status.success() && String::from_utf8_lossy(&script.stdout).contains("algorithms"),
            "{shell}"
        );
    }
}
