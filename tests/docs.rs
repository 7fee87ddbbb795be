//! Tables in the documents come from the registry. `UPDATE_DOCS=1` writes them.

use std::fmt::Write;
use std::path::Path;

use spmv_codegen::{Algorithm, AlgorithmSpec, IndexType, KernelConfig};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");

fn row(spec: &AlgorithmSpec) -> String {
    let header = spec.header();
    let field = |name| header.iter().find(|(field, _)| *field == name).map_or("", |(_, text)| text);
    let parameters: Vec<_> = spec
        .parameters
        .iter()
        .map(|parameter| {
            let allowed: Vec<_> = parameter.allowed.iter().map(u32::to_string).collect();
            format!("`{}` {}", parameter.name, allowed.join(", "))
        })
        .collect();
    let papers = field("Paper").replace('|', "\\|");
    format!(
        "| `{}` | {} | {} | {} | {} |",
        spec.name,
        spec.summary(),
        parameters.join("; "),
        field("Suits"),
        papers
    )
}

#[test]
fn the_readme_lists_every_algorithm() {
    let mut table = String::from("| name | idea | parameters | suits | papers |\n|---|---|---|---|---|\n");
    for spec in Algorithm::ALL {
        writeln!(table, "{}", row(spec)).unwrap();
    }
    let text = std::fs::read_to_string(README).unwrap();
    let (before, rest) =
        text.split_once("<!-- algorithms -->\n").expect("the README has the table's beginning");
    let (written, after) = rest.split_once("<!-- /algorithms -->").expect("the README has the table's end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let updated = format!("{before}<!-- algorithms -->\n{table}<!-- /algorithms -->{after}");
        std::fs::write(README, updated).unwrap();
    } else {
        assert_eq!(written, table, "UPDATE_DOCS=1 cargo test --test docs writes the table");
    }
}

/// NVRTC before 13.5 takes a lambda with a parameter of any type for a function of the host, and the one that the tests have
/// does not.
#[test]
fn templates_have_no_generic_lambdas() {
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let found: usize = [".cu", ".cuh"]
        .iter()
        .map(|ending| {
            occurrences(&templates, ending, &["](auto", "](const auto", ", auto ", ", const auto&"])
        })
        .sum();
    assert_eq!(found, 0, "lambdas of the templates name the types of their parameters");
}

/// How often any of these stands in the files of a folder that end like this, or in a file.
fn occurrences(path: &Path, ending: &str, texts: &[&str]) -> usize {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        return entries.map(|path| occurrences(&path, ending, texts)).sum();
    }
    if !path.to_str().is_some_and(|path| path.ends_with(ending)) {
        return 0;
    }
    let content = std::fs::read_to_string(path).unwrap();
    texts.iter().map(|text| content.matches(text).count()).sum()
}

#[test]
fn figures_of_reliability_are_those_of_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let faults = text.split_once("| fault | tests |\n|---|---|\n").expect("the table of faults").1;
    let faults: Vec<&str> = faults.lines().take_while(|line| line.starts_with('|')).collect();
    let exits: Vec<String> = (1..=6).map(|code| format!("\n? {code}\n")).collect();
    let exits: Vec<&str> = exits.iter().map(String::as_str).collect();
    let in_file = |path: &str, texts: &[&str]| occurrences(&root.join(path), "", texts);
    let unsafe_blocks = |paths: &[&str]| -> usize {
        paths.iter().map(|path| occurrences(&root.join(path).join("src"), ".rs", &["unsafe {"])).sum()
    };
    let stay = in_file("tests/mutants/list.rs", &["\n    stays("]);
    let mutants = in_file("tests/mutants/list.rs", &["\n    found("]) + stay;
    let commands = ["errors", "without_nvrtc"]
        .map(|folder| occurrences(&root.join("spmv-cli/tests/snapshots").join(folder), ".trycmd", &exits));
    let with_wide_offsets =
        Algorithm::ALL.iter().flat_map(|spec| spec.operations.iter().map(move |op| (spec, op)));
    let with_wide_offsets = with_wide_offsets
        .map(|(spec, operation)| KernelConfig::builder((spec.default)()).operation(*operation))
        .filter(|builder| builder.clone().offset(IndexType::U64).build().is_ok())
        .count();
    let hostile = std::fs::read_to_string(root.join("spmv-matrix/tests/hostile.rs")).unwrap();
    let hostile = hostile.split("#[test]").next().unwrap();
    let counted = [
        ("Mutants of the templates", format!("{mutants}, {stay} explained")),
        ("Hostile Matrix Market files", hostile.matches("\"line ").count().to_string()),
        ("Products with 64-bit offsets", with_wide_offsets.to_string()),
        ("Faults of cache and machine", faults.len().to_string()),
        (
            "Bad calls of the library",
            in_file("spmv-runtime/tests/misuse.rs", &["\n            } => \"", ") => \""]).to_string(),
        ),
        ("Bad commands", commands.iter().sum::<usize>().to_string()),
        (
            "Faults of kernels",
            (in_file("ptx-sim/tests/faults.rs", &["#[test]"])
                + in_file("tests/simulator_faults.rs", &["#[test]"]))
            .to_string(),
        ),
        ("Blocks of `unsafe`: spmv-runtime", unsafe_blocks(&["spmv-runtime"]).to_string()),
        ("Blocks of `unsafe`: spmv-bench", unsafe_blocks(&["spmv-bench"]).to_string()),
        ("Blocks of `unsafe`: ptx-sim", unsafe_blocks(&["ptx-sim"]).to_string()),
        ("Blocks of `unsafe`: spmv-matrix", unsafe_blocks(&["spmv-matrix"]).to_string()),
        ("Blocks of `unsafe`: spmv-cli", unsafe_blocks(&["spmv-cli"]).to_string()),
        ("Blocks of `unsafe`: spmv-codegen", unsafe_blocks(&[".", "spmv-macros"]).to_string()),
    ];
    for (what, count) in counted {
        let row = text.lines().find(|line| line.starts_with(&format!("| {what}")));
        let found = row.and_then(|row| row.split('|').nth(2)).map(str::trim);
        assert_eq!(found, Some(count.as_str()), "{what}");
    }
    let packages = [".", "ptx-sim", "spmv-macros", "spmv-matrix", "spmv-runtime", "spmv-cli"];
    let source = |name: &str| packages.iter().map(|at| root.join(at).join(name)).find(|path| path.exists());
    // Every program of tests that is named, and every test of the table of faults.
    for name in text.split("--test ").skip(1).filter_map(|rest| rest.split([' ', '`']).next()) {
        assert!(source(&format!("tests/{name}.rs")).is_some(), "{name}");
    }
    for test in faults.iter().flat_map(|row| row.split('`')).filter(|text| text.contains("::")) {
        let (program, name) = test.split_once("::").unwrap();
        let folder = if program == "tests" { "spmv-runtime/src" } else { "spmv-runtime/tests" };
        let test = format!("#[test]\nfn {name}()");
        assert_eq!(in_file(&format!("{folder}/{program}.rs"), &[&test]), 1, "{program}::{name}");
    }
    // Every target of fuzzing is in its table, and nothing else.
    let mut written: Vec<&str> =
        text.split("| `fuzz_").skip(1).filter_map(|rest| rest.split('`').next()).collect();
    let programs = ["tests/fuzz.rs", "spmv-macros/src/tests.rs", "spmv-cli/src/cli.rs"];
    let programs = programs.map(|path| std::fs::read_to_string(root.join(path)).unwrap()).concat();
    let mut there: Vec<&str> =
        programs.split("fn fuzz_").skip(1).filter_map(|rest| rest.split('(').next()).collect();
    written.sort_unstable();
    there.sort_unstable();
    assert_eq!(written, there);
}
