//! What the documents say of measurements comes from the records. `UPDATE_DOCS=1` writes it.

use std::path::Path;

use spmv_bench::record::Record;
use spmv_bench::{experiment, table};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
const RECORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/record/nvidia-h200");

const BEGIN: &str = "<!-- results:begin -->\n";
const END: &str = "<!-- results:end -->\n";

/// The newest record of a folder by the date in its head. Other CSV files lie there too; a record starts with `# `.
fn newest_record(folder: &Path) -> Option<Record> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let csv = files.filter(|path| path.extension().is_some_and(|ending| ending == "csv"));
    let texts = csv.map(|path| (std::fs::read(&path).unwrap(), path));
    let records = texts.filter(|(text, _)| text.starts_with(b"# ")).map(|(text, path)| {
        let record = Record::read(&text[..]).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!record.head.date.is_empty(), "{}: its head has no date", path.display());
        (record, path)
    });
    records.max_by(|a, b| (&a.0.head.date, &a.1).cmp(&(&b.0.head.date, &b.1))).map(|(record, _)| record)
}

const FORMATS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/formats.md");

#[test]
fn the_page_of_formats_has_the_newest_measurement() {
    let folder = Path::new(RECORDS).join("formats");
    let record = newest_record(&folder).expect("there is a record of the formats");
    let tables = experiment::find("002-formats").unwrap().tables(&record);
    let tables: Vec<String> = tables.iter().map(experiment::Table::markdown).collect();
    let measured = format!("{}\n\n{}", table::provenance(&record.head), tables.join("\n"));
    let text = std::fs::read_to_string(FORMATS).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has the measurement's beginning");
    let (written, after) = rest.split_once(END).expect("the page has the measurement's end");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(FORMATS, format!("{before}{BEGIN}{measured}{END}{after}")).unwrap();
    } else {
        assert_eq!(
            written, measured,
            "UPDATE_DOCS=1 cargo test -p spmv-bench --test measured writes the measurement"
        );
    }
}

/// What stands around the section of results, and the section; without one, where it belongs: the end of what is said
/// under `## Results`.
fn split_results(readme: &str) -> (&str, Option<&str>, &str) {
    if let Some((before, rest)) = readme.split_once(BEGIN) {
        let (section, after) = rest.split_once(END).expect("the section of results ends");
        return (before, Some(section), after);
    }
    let heading = readme.find("## Results\n").expect("the README has a chapter of results");
    let end = readme[heading + 3..].find("\n## ").map_or(readme.len(), |at| heading + 3 + at);
    (&readme[..end], None, &readme[end..])
}

fn with_results(readme: &str, record: Option<&Record>) -> String {
    let (before, section, after) = split_results(readme);
    match (record, section) {
        (Some(record), Some(_)) => format!("{before}{BEGIN}{}{END}{after}", table::markdown(record)),
        (Some(record), None) => format!("{before}\n{BEGIN}{}{END}{after}", table::markdown(record)),
        (None, Some(_)) => format!("{}{after}", before.trim_end_matches('\n').to_owned() + "\n"),
        (None, None) => readme.to_owned(),
    }
}

#[test]
fn the_readme_has_the_newest_results() {
    let text = std::fs::read_to_string(README).unwrap();
    let expected = with_results(&text, newest_record(Path::new(RECORDS)).as_ref());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(README, expected).unwrap();
    } else {
        assert!(
            text == expected,
            "the section of results is not that of the newest record in {RECORDS} (none, where there is no record); \
             UPDATE_DOCS=1 cargo test -p spmv-bench --test measured writes it. It should be:\n{}",
            split_results(&expected).1.unwrap_or("nothing")
        );
    }
}

#[test]
fn the_section_of_results_comes_and_goes_with_the_record() {
    let readme = "# a\n\n## Results\n\nText.\n\n## How it works\n\n## Limits\n";
    let folder = tempfile::tempdir().unwrap();
    assert!(newest_record(folder.path()).is_none());
    for (name, date) in [("a.csv", "2026-03-01T00:00:00Z"), ("b.csv", "2026-01-01T00:00:00Z")] {
        let mut record = Record::default();
        record.head.date = date.into();
        record.write(std::fs::File::create(folder.path().join(name)).unwrap()).unwrap();
    }
    std::fs::write(folder.path().join("other.csv"), "kernel,matrix\n").unwrap();
    let record = newest_record(folder.path()).unwrap();
    assert_eq!(record.head.date, "2026-03-01T00:00:00Z");
    let with = with_results(readme, Some(&record));
    let section = table::markdown(&record);
    assert_eq!(
        with,
        format!("# a\n\n## Results\n\nText.\n\n{BEGIN}{section}{END}\n## How it works\n\n## Limits\n")
    );
    assert_eq!(with_results(&with, Some(&record)), with);
    assert_eq!(with_results(&with.replace("2026-03-01", "2025-03-01"), Some(&record)), with);
    assert_eq!(with_results(&with, None), readme);
    assert_eq!(with_results(readme, None), readme);
}
