//! `spmv tune`: a kernel that is found by measuring, kept, taken by `spmv run`, and carried to another machine.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const MATRIX: &str = "../tests/matrices/lp_afiro.mtx";

fn spmv(cache: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spmv"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("SPMV_CACHE_DIR", cache)
        // What `explain` and `inspect` tell is of the simulator, then, wherever that runs.
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap()
}

fn json(cache: &Path, arguments: &[&str]) -> Value {
    let output = spmv(cache, &[arguments, &["--json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(cache: &Path, arguments: &[&str]) -> String {
    let output = spmv(cache, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_is_tuned_is_kept_and_run() {
    let folder = TempDir::new().unwrap();
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    let run = |cache: &Path| json(cache, &["run", MATRIX, "--device", "sim"])["kernel"].clone();
    assert_eq!(run(&here)["chosen_by"], "planner");

    let tune = &["tune", MATRIX, "--device", "sim"];
    let first = json(&here, tune);
    assert_eq!((&first["unit"], &first["kept"]), (&Value::from("counted"), &Value::from(true)));
    assert!(first["candidates"].as_array().unwrap().len() > 4, "{first}");
    let again = json(&here, tune);
    assert_eq!((&again["stopped"], &again["config"]), (&Value::from("recalled"), &first["config"]));
    assert_eq!(again["product"], first["product"]);
    let anew = json(&here, &[tune, &["--again"][..]].concat());
    assert_eq!((&anew["stopped"] == "recalled", &anew["config"]), (false, &first["config"]));
    assert!(text(&here, tune).contains("it was found before"));

    let kernel = run(&here);
    assert_eq!(kernel["chosen_by"], "tuning");
    assert!(
        kernel["reason"].as_str().unwrap().starts_with("`spmv tune` found it to be the fastest"),
        "{kernel}"
    );
    assert!(first["config"].as_str().unwrap().starts_with(kernel["algorithm"].as_str().unwrap()));
    // Another constraint is another question.
    let other = json(&here, &["run", MATRIX, "--device", "sim", "--deterministic"]);
    assert_eq!(other["kernel"]["chosen_by"], "planner");

    let listed = json(&here, &["cache", "ls"]);
    assert_eq!(listed["choices"][0]["kernel"], first["config"]);
    assert!(text(&here, &["cache", "ls"]).contains("1 choices of spmv tune"));

    let file = folder.path().join("choices.tsv");
    let file = file.to_str().unwrap();
    assert_eq!(json(&here, &["tune", "--export", file])["choices"], 1);
    assert_eq!(json(&there, &["tune", "--import", file])["choices"], 1);
    assert_eq!(run(&there)["chosen_by"], "tuning");
    json(&there, &["cache", "clear"]);
    assert_eq!(run(&there)["chosen_by"], "planner");
}

#[test]
fn what_cannot_be_tuned_or_imported_is_told() {
    let folder = TempDir::new().unwrap();
    let told = |arguments: &[&str]| {
        let output = spmv(&folder.path().join("cache"), arguments);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = told(&["tune"]);
    assert!(code == 2 && error.contains("A.mtx"), "{error}");
    let (code, error) = told(&["tune", MATRIX, "--device", "cpu"]);
    assert!(code == 2 && error.contains("runs no kernel"), "{error}");
    let (code, error) = told(&["tune", MATRIX, "--time-limit", "-1"]);
    assert!(code == 2 && !error.is_empty(), "{error}");
    let (code, error) = told(&["tune", "--import", MATRIX]);
    assert!(code == 3 && error.contains("expected the names"), "{error}");
    let (code, error) = told(&["tune", "--import", "nowhere.tsv"]);
    assert!(code == 3 && error.contains("could not be read"), "{error}");
    let (code, error) = told(&[
        "tune",
        MATRIX,
        "--device",
        "sim",
        "--transpose",
        "--deterministic",
        "--max-extra-bytes",
        "0",
    ]);
    assert!(code == 2 && error.contains("keeps the constraints"), "{error}");
}

#[test]
fn a_kernel_that_takes_too_much_gives_way() {
    let folder = TempDir::new().unwrap();
    let cache = folder.path().join("cache");
    // How much is known when the plan has been made.
    let report = json(&cache, &["run", MATRIX, "--device", "sim", "--max-extra-bytes", "2K"]);
    assert!(report["memory_bytes"]["workspace"].as_u64().unwrap() <= 2048, "{report}");
    let kernel = &report["kernel"];
    let better = kernel["passed_over"].as_array().unwrap();
    assert!(better.iter().all(|why| why.as_str().unwrap().contains("are allowed")), "{kernel}");
}

#[test]
fn a_choice_is_for_the_storage_that_was_tuned() {
    let folder = TempDir::new().unwrap();
    let cache = folder.path().join("cache");
    let by_columns = &["--storage", "csc", "--max-extra-bytes", "0", "--device", "sim"][..];
    let run = |arguments: &[&str]| json(&cache, &[&["run", MATRIX], arguments].concat())["kernel"].clone();
    assert_eq!(run(by_columns)["chosen_by"], "planner");
    let tuned = json(&cache, &[&["tune", MATRIX], by_columns].concat());
    assert!(tuned["config"].as_str().unwrap().starts_with("naive_t"), "{tuned}");
    assert_eq!(run(by_columns)["chosen_by"], "tuning");
    let by_rows = run(&["--transpose", "--max-extra-bytes", "0", "--device", "sim"]);
    assert_eq!((&by_rows["chosen_by"], &by_rows["algorithm"]), (&"planner".into(), &"naive_t".into()));

    let first = |matrix: &str, storage: &[&str]| {
        let explained =
            json(&cache, &[&["explain", matrix, "--products", "1", "--storage"], storage].concat());
        explained["candidates"][0]["config"].as_str().unwrap().to_owned()
    };
    assert!(first(MATRIX, &["csc"]).starts_with("hola_t"));
    assert!(first(MATRIX, &["csc", "--transpose"]).starts_with("csr_"));
    assert!(first("../tests/matrices/karate.mtx", &["symmetric"]).contains("operation=symmetric"));
}

/// A choice is for a structure, and a layout for rows that repeat does not go with all values of it.
#[test]
fn a_choice_that_does_not_fit_is_passed_over() {
    let folder = TempDir::new().unwrap();
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    let matrix = "../tests/matrices/USAir97.mtx";
    json(&here, &["tune", matrix, "--device", "sim", "--budget", "1"]);
    let file = folder.path().join("choices.tsv");
    json(&here, &["tune", "--export", file.to_str().unwrap()]);
    let kept = std::fs::read_to_string(&file).unwrap();
    let (names, choice) = kept.trim_end().split_once('\n').unwrap();
    let mut values: Vec<&str> = choice.split('\t').collect();
    let settings = names.split('\t').position(|name| name == "settings").unwrap();
    (values[settings - 1], values[settings]) = ("row_patterns", "rows_per_lane=4");
    std::fs::write(&file, format!("{names}\n{}\n", values.join("\t"))).unwrap();
    assert_eq!(json(&there, &["tune", "--import", file.to_str().unwrap()])["choices"], 1);
    let run = json(&there, &["run", matrix, "--device", "sim"]);
    assert_ne!(run["kernel"]["algorithm"], "row_patterns");
    let passed_over = run["kernel"]["passed_over"][0].as_str().unwrap();
    assert!(passed_over.starts_with("row_patterns ") && passed_over.contains("different rows"), "{run}");
    assert_eq!(run["kernel"]["chosen_by"], "planner");
    assert_eq!(run["verification"]["passed"], true);
    // Whoever tells what would be run knows that.
    let inspected = json(&there, &["inspect", matrix]);
    let explained = json(&there, &["explain", matrix]);
    for reason in [&inspected["chosen"]["reason"], &explained["tuned"]["reason"]] {
        assert!(reason.as_str().unwrap().contains("may pass it over"), "{reason}");
    }
}

/// Values are looked at as `spmv run` reads them: what f32 does not tell apart repeats.
#[test]
fn inspect_and_explain_name_the_same_kernel() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("noise.mtx");
    let number = 100_000;
    let mut text =
        format!("%%MatrixMarket matrix coordinate real general\n{number} {number} {}\n", 3 * number - 2);
    for row in 1..=number {
        for col in (row - 1).max(1)..=(row + 1).min(number) {
            let value = if row == col { 4.0 } else { -1.0 };
            text += &format!("{row} {col} {}\n", value + 1e-12 * f64::from(row % 9973));
        }
    }
    std::fs::write(&file, text).unwrap();
    let (cache, file) = (folder.path().join("cache"), file.to_str().unwrap());
    let chosen = &json(&cache, &["inspect", file])["chosen"]["config"];
    assert_eq!(*chosen, json(&cache, &["explain", file])["candidates"][0]["config"]);
    assert!(chosen.as_str().unwrap().contains("encoding=3"), "{chosen}");
}
