//! `spmv bench --paper`: an experiment's matrices from a folder, its contenders, and its table.

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spmv")).arg("bench").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_papers_table_follows_the_measurement() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 1.5\n2 3 -2\n3 1 4\n3 3 1\n";
    std::fs::write(folder.path().join("cage14.mtx"), matrix).unwrap();
    let folder = folder.path().to_str().unwrap();
    let output = bench(&["--paper", "000-table1", "--matrices", folder, "--device", "cpu"]);
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}{}", text(&output.stderr));
    assert!(told.contains("000-table1: time, ms, f32, non_transpose"), "{told}");
    let row = told.lines().find(|line| line.trim_start().starts_with("cage14") && line.contains("73.7"));
    assert!(row.is_some_and(|row| row.contains("62.5")), "{told}");
}

#[test]
fn experiments_are_listed_and_unknown_ones_refused() {
    let told = text(&bench(&["--paper", "list"]).stdout);
    assert!(told.contains("004-fig7") && told.contains("003-survey"), "{told}");
    let output = bench(&["--paper", "004-fig77"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("004-fig7,"));
}
