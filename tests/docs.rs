//! Tables in the documents come from the registry. `UPDATE_DOCS=1` writes them.

use std::fmt::Write;

use spmv_codegen::{Algorithm, AlgorithmSpec};

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
