//! `spmv plot` writes pictures and reports that are whole, and the same each time.

use std::path::Path;
use std::process::{Command, Output};

fn spmv(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spmv")).args(arguments).output().unwrap()
}

fn plot(folder: &Path) -> (String, Vec<(String, String)>) {
    let (out, report) = (folder.join("pictures"), folder.join("report.html"));
    let plotted = spmv(&[
        "plot",
        "tests/files/new.csv",
        "--output",
        out.to_str().unwrap(),
        "--report",
        report.to_str().unwrap(),
        "--heat",
        "ours:csr_vector,threads_per_vector",
        "--matrix",
        "../tests/matrices/karate.mtx",
        "--json",
    ]);
    assert!(plotted.status.success(), "{}", String::from_utf8_lossy(&plotted.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&plotted.stdout).unwrap();
    assert_eq!(answer["left_out"], serde_json::json!([]));
    let mut pictures: Vec<_> = std::fs::read_dir(&out)
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read_to_string(&path).unwrap(),
            )
        })
        .collect();
    pictures.sort();
    assert_eq!(answer["written"].as_array().unwrap().len(), pictures.len() + 1);
    (std::fs::read_to_string(report).unwrap(), pictures)
}

#[test]
fn pictures_and_report() {
    let folder = tempfile::tempdir().unwrap();
    let (report, pictures) = plot(&folder.path().join("one"));
    let names: Vec<&str> = pictures.iter().map(|(name, _)| &**name).collect();
    assert_eq!(
        names,
        [
            "density-karate.mtx.svg",
            "heat-ours-csr_vector-threads_per_vector.svg",
            "profile-f32-non_transpose.svg",
            "roofline-f32-non_transpose.svg",
            "speed_up-non_transpose.svg",
            "throughput-f32-non_transpose.svg"
        ]
    );
    for (name, svg) in &pictures {
        assert!(report.contains(svg), "{name} is in the report");
    }
    assert!(report.contains("wrong: 2 rows miss their bound") && report.contains("SpMVOp left out"));
    assert_eq!(plot(&folder.path().join("two")), (report, pictures), "the same bytes each time");
}

#[test]
fn comparisons_judge() {
    let code = |limit: &str| {
        let files = ["compare", "tests/files/old.csv", "tests/files/new.csv"];
        spmv(&[&files[..], &["--fail-on-slower", limit]].concat()).status.code()
    };
    // A row is broken, however slow the others may be.
    assert_eq!((code("5"), code("50")), (Some(1), Some(1)));
    let same = spmv(&["compare", "tests/files/old.csv", "tests/files/old.csv", "--fail-on-slower", "0"]);
    assert_eq!(same.status.code(), Some(0));
}
