//! `spmv bench` without a GPU: kernels on the simulator, CPU products timed, records written.

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn bench(cache: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spmv"))
        .env("SPMV_CACHE_DIR", cache.path().join("cache"))
        .env("SPMV_COMMIT", "0123456789abcdef")
        .arg("bench")
        .args(["--class", "uniform:rows=300,cols=300,per_row=5", "--samples", "3"])
        .args(["--time-limit-per-contender", "5"])
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn kernels_are_checked_and_cpus_timed() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("out.csv");
    let record = folder.path().join("record");
    let output = bench(
        &folder,
        &[
            "--device",
            "sim",
            "--contenders",
            "ours:csr_vector,cusparse:*,cpu:*",
            "--value",
            "f32,f64",
            "--json",
            "--csv",
            csv.to_str().unwrap(),
            "--record",
            record.to_str().unwrap(),
        ],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["head"]["commit"], "0123456789abcdef");
    assert_eq!(told["head"]["notes"][0], "cuSPARSE is left out: it needs a GPU");
    let rows = told["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert_eq!(row["nnz"], 1500);
        match row["contender"].as_str().unwrap() {
            "ours:csr_vector" => {
                assert_eq!(row["status"], "skipped: checked on the simulator; there is no GPU to time it on");
                assert!(row["err_over_bound"].as_f64().unwrap() < 1.0);
                assert!(row["warp_execution_efficiency"].as_f64().unwrap() > 0.1);
            }
            cpu => {
                assert!(cpu.starts_with("cpu:"));
                assert_eq!((&row["status"], &row["samples"]), (&"ok".into(), &3.into()));
            }
        }
    }
    let written = std::fs::read_to_string(&csv).unwrap();
    assert!(written.starts_with("# {") && written.lines().count() == 2 + rows.len(), "{written}");
    let simulator = std::fs::read_dir(record.join("simulator")).unwrap().next().unwrap().unwrap();
    assert!(simulator.file_name().to_string_lossy().ends_with("-0123456.csv"));
    assert_eq!(std::fs::read_to_string(simulator.path()).unwrap(), written);
}

#[test]
fn people_get_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "--device",
        "sim",
        "--contenders",
        "ours:csr_scalar,ours:csr_vector,cpu:serial",
        "--value",
        "f64",
        "-v",
    ];
    let output = bench(&folder, &arguments);
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}{}", text(&output.stderr));
    assert!(told.contains("2 right on the simulator"), "{told}");
    assert!(told.contains("ours:csr_vector threads_per_vector="), "{told}");
    assert!(told.lines().any(|line| line.contains("cpu:serial") && line.contains("warm")), "{told}");
}

#[test]
fn what_is_counted_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--device", "sim", "--contenders", "ours:csr_scalar", "--value", "f32"];
    let told = |more: &[&str]| text(&bench(&folder, &[&arguments, more].concat()).stdout);
    let counted = told(&["--metrics"]);
    assert!(counted.contains("warps ") && counted.contains("loads "), "{counted}");
    assert!(!told(&[]).contains("warps "));
}

#[test]
fn a_bad_file_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.mtx");
    std::fs::write(&bad, "no matrix\n").unwrap();
    let arguments =
        [bad.to_str().unwrap(), "--device", "cpu", "--contenders", "cpu:serial", "--value", "f32"];
    let output = bench(&folder, &arguments);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(told.contains(&format!("bad                      left out: {}: ", bad.display())), "{told}");
    assert!(told.contains("uniform:rows=300") && told.contains("cpu:serial"), "{told}");
    assert!(text(&output.stderr).contains("bad.mtx: "));
}

#[test]
fn a_record_of_before_stays_where_nothing_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let [bad, csv] = ["bad.mtx", "record.csv"].map(|name| folder.path().join(name));
    std::fs::write(&bad, "no matrix\n").unwrap();
    std::fs::write(&csv, "of before").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spmv"));
    command.arg("bench").arg(&bad).args(["--device", "cpu", "--csv"]).arg(&csv);
    let output = command.arg("--record").arg(folder.path().join("records")).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(&csv).unwrap(), "of before");
    assert!(!folder.path().join("records/cpu").exists());
}

#[test]
fn values_beyond_a_type_are_not_measured_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.mtx");
    std::fs::write(&large, "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1e39\n2 2 1\n")
        .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spmv"));
    command.arg("bench").arg(&large).args(["--device", "cpu", "--contenders", "cpu:serial", "--json"]);
    let output = command.args(["--samples", "3", "--value", "f32,f64"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |place: usize| (told["rows"][place]["value"].clone(), told["rows"][place]["status"].clone());
    assert_eq!(of(0), ("f32".into(), "skipped: 1e39 is outside the range of f32".into()));
    assert_eq!(of(1), ("f64".into(), "ok".into()));
}

#[test]
fn the_cpu_has_no_transpose_and_runs_no_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["--device", "cpu", "--operation", "transpose", "--value", "f32", "--json", "--contenders"];
    let output = bench(&folder, &[&arguments[..], &["ours:naive_t,cpu:serial"]].concat());
    // The record is told all the same.
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("nothing was measured: "), "{}", text(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["rows"].as_array().unwrap().len(), 2);
    for row in told["rows"].as_array().unwrap() {
        assert_eq!(row["operation"], "transpose");
        assert!(row["status"].as_str().unwrap().starts_with("skipped: "), "{row}");
    }
}

#[test]
fn a_record_on_standard_output_is_alone_there() {
    let folder = tempfile::tempdir().unwrap();
    let cpu = ["--device", "cpu", "--contenders", "cpu:serial", "--csv", "-"];
    let output = bench(&folder, &cpu);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let record = spmv_bench::record::Record::read(&output.stdout[..]).unwrap();
    assert_eq!(record.rows.len(), 2);
    let output = bench(&folder, &[&cpu[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("both write to standard output"), "{}", text(&output.stderr));
}
