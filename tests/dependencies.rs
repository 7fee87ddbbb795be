//! Licences and sources of everything that is built are what deny.toml allows; `cargo deny` reads the same file.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use spdx::{Expression, ParseMode};
use toml::Table;

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deny.toml");

/// The texts of an array of deny.toml.
fn listed<'a>(rules: &'a Table, section: &str, key: &str) -> Vec<&'a str> {
    let array = rules[section][key].as_array().expect("an array");
    array.iter().map(|text| text.as_str().expect("a text")).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What is not allowed of these packages, as `cargo metadata` describes them.
fn forbidden(packages: &[Value], rules: &Table) -> Vec<String> {
    let licences = listed(rules, "licenses", "allow");
    let registries = listed(rules, "sources", "allow-registry");
    let is_denied = |section: &str, key: &str| rules[section][key].as_str() == Some("deny");
    let mut found = Vec::new();
    for package in packages {
        let mut wrong = |what: String| {
            found.push(format!("{} {}: {what}", text(&package["name"]), text(&package["version"])));
        };
        let licence = package["license"].as_str().unwrap_or("none");
        let is_allowed = Expression::parse_mode(licence, ParseMode::LAX)
            .is_ok_and(|parsed| parsed.evaluate(|part| licences.contains(&part.to_string().as_str())));
        if !is_allowed {
            wrong(format!("licence {licence}"));
        }
        let source = package["source"].as_str();
        let is_known = match source.and_then(|source| source.split_once('+')) {
            // A part of this workspace.
            None => source.is_none(),
            Some(("registry" | "sparse", registry)) => {
                registries.contains(&registry) || !is_denied("sources", "unknown-registry")
            }
            Some(("git", _)) => !is_denied("sources", "unknown-git"),
            Some(_) => false,
        };
        if !is_known {
            wrong(format!("source {}", source.unwrap_or_default()));
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let is_wildcard = dependency["req"] == "*" && dependency["path"].is_null();
            if source.is_none() && is_wildcard && is_denied("bans", "wildcards") {
                wrong(format!("any version of {}", text(&dependency["name"])));
            }
        }
    }
    found
}

fn rules() -> Table {
    std::fs::read_to_string(RULES).unwrap().parse().unwrap()
}

#[test]
fn every_dependency_is_allowed() {
    let rules = rules();
    let [target] = listed(&rules, "graph", "targets")[..] else { panic!("one target is built") };
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["metadata", "--format-version=1", "--locked", "--all-features", "--filter-platform", target]);
    let output = cargo.current_dir(Path::new(RULES).parent().unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let resolved = metadata["resolve"]["nodes"].as_array().unwrap();
    let is_built = |package: &&Value| resolved.iter().any(|node| node["id"] == package["id"]);
    let packages: Vec<Value> =
        metadata["packages"].as_array().unwrap().iter().filter(is_built).cloned().collect();
    println!("{} packages", packages.len());
    assert!(packages.len() > 100, "{}", packages.len());
    assert_eq!(forbidden(&packages, &rules), [""; 0]);
}

#[test]
fn what_is_not_allowed_is_found() {
    let package = |licence: Value, source: &str| json!({"name": "p", "version": "1.0.0", "license": licence, "source": source, "dependencies": []});
    let registry = "registry+https://github.com/rust-lang/crates.io-index";
    let own = json!({
        "name": "own", "version": "0.1.0", "license": "MIT", "source": null,
        "dependencies": [
            {"name": "any", "req": "*", "path": null},
            {"name": "beside", "req": "*", "path": "/beside"},
            {"name": "known", "req": "^1", "path": null},
        ],
    });
    let told = [
        (package(json!("MIT OR GPL-3.0-only"), registry), None),
        (package(json!("MIT/Apache-2.0"), registry), None),
        (package(json!("GPL-3.0-only"), registry), Some("licence GPL-3.0-only")),
        (package(json!("MIT AND GPL-3.0-only"), registry), Some("licence MIT AND GPL-3.0-only")),
        (package(json!("Apache-2.0 WITH LLVM-exception"), registry), None),
        (package(json!("MIT WITH LLVM-exception"), registry), Some("licence MIT WITH LLVM-exception")),
        (package(json!("Nonesuch-1.0"), registry), Some("licence Nonesuch-1.0")),
        (package(Value::Null, registry), Some("licence none")),
        (package(json!("MIT"), "git+https://example.org/p"), Some("source git+https://example.org/p")),
        (package(json!("MIT"), "registry+https://example.org"), Some("source registry+https://example.org")),
    ];
    let rules = rules();
    for (package, wrong) in told {
        let expected: Vec<String> = wrong.iter().map(|wrong| format!("p 1.0.0: {wrong}")).collect();
        assert_eq!(forbidden(&[package], &rules), expected);
    }
    assert_eq!(forbidden(&[own], &rules), ["own 0.1.0: any version of any"]);
}
