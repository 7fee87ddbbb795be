//! Pictures of records and matrices as SVG: white paper, colours that everybody tells apart, nothing loaded from
//! elsewhere, and the same bytes for the same record.

mod axis;
mod chart;
mod density;
mod heat;
mod palette;
mod profile;
mod roofline;
mod speed_up;
mod svg;
mod throughput;

pub use self::density::density;
pub use self::heat::{Heat, heat};
use crate::problem::{Problem, problems};
use crate::record::{Head, Record};

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// A file name without its ending: lower-case letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// How it is read.
    pub about: String,
    /// The text of the file.
    pub svg: String,
}

/// The pictures that a record allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gallery {
    /// The pictures.
    pub pictures: Vec<Picture>,
    /// Pictures that the record has no figures for, and why.
    pub left_out: Vec<String>,
}

/// Why a picture cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// No row has what the picture shows.
    #[error("{picture}: nothing to draw: {why}")]
    Nothing {
        /// Which picture.
        picture: String,
        /// What is missing.
        why: String,
    },
    /// A heat map was asked for in other words than `CONTENDER,PARAMETER[,PARAMETER]`.
    #[error(
        "`{0}` is not CONTENDER,PARAMETER or CONTENDER,PARAMETER,PARAMETER, such as ours:csr_vector,threads_per_vector"
    )]
    HeatRequest(String),
    /// The record has no such contender.
    #[error("the record has no contender `{name}`; it has {known}")]
    Contender {
        /// What was asked for.
        name: String,
        /// The record's contenders.
        known: String,
    },
    /// The contender has no such parameter.
    #[error("`{contender}` has no parameter `{name}` in the record; it has {known}")]
    Parameter {
        /// Whose.
        contender: String,
        /// What was asked for.
        name: String,
        /// The contender's parameters.
        known: String,
    },
    /// Pixels could not be packed.
    #[error("{picture}: its pixels cannot be packed: {reason}")]
    Pixels {
        /// Which picture.
        picture: String,
        /// What the packer said.
        reason: String,
    },
}

/// Every picture that a record allows: for each value type and operation throughput over row length, roofline and
/// performance profile, and for each operation the distribution of speed-ups over cuSPARSE.
pub fn gallery(record: &Record) -> Gallery {
    let mut gallery = Gallery::default();
    let problems = problems(&record.rows);
    let styles = palette::styles(&record.rows);
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    let mut operations: Vec<&str> = Vec::new();
    for problem in &problems {
        if !kinds.contains(&(problem.operation, problem.value)) {
            kinds.push((problem.operation, problem.value));
        }
        if !operations.contains(&problem.operation) {
            operations.push(problem.operation);
        }
    }
    for (operation, value) in kinds {
        let all = problems.iter().filter(|problem| (problem.operation, problem.value) == (operation, value));
        let group = Group { head: &record.head, operation, value, styles: &styles, problems: all.collect() };
        gallery.add(throughput::draw(&group));
        gallery.add(roofline::draw(&group));
        gallery.add(profile::draw(&group));
    }
    for operation in operations {
        let all: Vec<_> = problems.iter().filter(|problem| problem.operation == operation).collect();
        gallery.add(speed_up::draw(&record.head, operation, &all));
    }
    gallery
}

impl Gallery {
    fn add(&mut self, drawn: Result<Picture, PlotError>) {
        match drawn {
            Ok(picture) => self.pictures.push(picture),
            Err(error) => self.left_out.push(error.to_string()),
        }
    }
}

/// The problems of one value type and operation, and what pictures of them share.
struct Group<'a> {
    head: &'a Head,
    operation: &'a str,
    value: &'a str,
    styles: &'a std::collections::BTreeMap<&'a str, palette::Style>,
    problems: Vec<&'a Problem<'a>>,
}

/// Contenders that are drawn as one: each of ours with its best parameters, of the other sides the best of all.
struct Entrant<'a> {
    name: String,
    style: palette::Style,
    asked: Box<dyn Fn(&crate::record::Row) -> bool + 'a>,
}

impl<'a> Group<'a> {
    fn picture(&self, name: &str, what: &str, about: &str, svg: String) -> Picture {
        Picture {
            name: file_name(&format!("{name}-{}-{}", self.value, self.operation)),
            title: self.title(what),
            about: about.to_owned(),
            svg,
        }
    }

    fn title(&self, what: &str) -> String {
        format!("{what}: {}, {}", self.value, operation_text(self.operation))
    }

    fn nothing(&self, what: &str, why: &str) -> PlotError {
        PlotError::Nothing { picture: self.title(what), why: why.to_owned() }
    }

    fn subtitle(&self) -> String {
        format!("{}; {}", subtitle(self.head), times_text(&self.problems))
    }

    fn entrants(&self) -> Vec<Entrant<'a>> {
        let mut entrants: Vec<Entrant<'a>> = Vec::new();
        let there = |asked: &dyn Fn(&crate::record::Row) -> bool| {
            self.problems.iter().any(|problem| problem.fastest(asked).is_some())
        };
        for (side, name, style) in
            [("cusparse", "cuSPARSE, best path", palette::CUSPARSE), ("cpu", "CPU, best", palette::CPU)]
        {
            if there(&|row| row.side() == side) {
                let asked = Box::new(move |row: &crate::record::Row| row.side() == side);
                entrants.push(Entrant { name: name.to_owned(), style, asked });
            }
        }
        for (&contender, &style) in self.styles {
            let rest = !contender.starts_with("cusparse:") && !contender.starts_with("cpu:");
            if rest && there(&|row| row.contender == contender) {
                let asked = Box::new(move |row: &crate::record::Row| row.contender == contender);
                entrants.push(Entrant { name: contender.to_owned(), style, asked });
            }
        }
        entrants
    }
}

/// Where and when, in a line.
fn subtitle(head: &Head) -> String {
    let mut parts = vec![head.gpu.clone()];
    if !head.driver.is_empty() {
        parts.push(format!("driver {}", head.driver));
    }
    parts.push(head.date.split('T').next().unwrap_or("").to_owned());
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// With which caches the times were taken.
fn times_text(problems: &[&Problem<'_>]) -> &'static str {
    match (problems.iter().any(|problem| problem.is_cold()), problems.iter().all(|problem| problem.is_cold()))
    {
        (_, true) => "caches flushed before each product",
        (false, _) => "products that follow one another",
        (true, false) => "caches flushed where that was measured",
    }
}

fn operation_text(operation: &str) -> &str {
    match operation {
        "non_transpose" => "plain product",
        "transpose" => "transposed product",
        "symmetric" => "product with a symmetric matrix",
        other => other,
    }
}

/// A name that any file system takes.
fn file_name(text: &str) -> String {
    let mut name = String::new();
    for character in text.chars().flat_map(char::to_lowercase) {
        let fits = character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
        match character {
            _ if fits => name.push(character),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    name.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Row;

    /// Many matrices with long names, two value types, many contenders, times over four decades, some failures.
    fn record() -> Record {
        let mut rows = Vec::new();
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 24)
        };
        for matrix in 0..21 {
            for value in ["f32", "f64"] {
                for contender in 0..20 {
                    let (side, name) = match contender {
                        0..4 => ("cusparse", format!("csr_alg{contender}_preprocess")),
                        4..6 => ("cpu", format!("threads_{contender}")),
                        _ => ("ours", format!("an_algorithm_with_a_very_long_name_{contender}")),
                    };
                    let nnz = 10f64.powf(3.0 + 4.0 * random()) as u64;
                    let failed = random() < 0.1;
                    let status = if failed { "failed: <it> & fell" } else { "ok" };
                    rows.push(Row {
                        matrix: format!("<group>/a matrix & its very long name, number {matrix}"),
                        value: value.into(),
                        operation: "non_transpose".into(),
                        contender: format!("{side}:{name}"),
                        rows: 1 + nnz / (1 + matrix * 10),
                        nnz,
                        cold_ms: (!failed).then(|| 10f64.powf(-3.0 + 4.0 * random())),
                        moved_bytes: Some(nnz * 8),
                        status: status.into(),
                        ..Row::default()
                    });
                }
            }
        }
        let head = Head { gpu: "NVIDIA <H200>".into(), copy_gb_per_s: 4253.0, ..Head::default() };
        Record { head, rows }
    }

    #[test]
    fn pictures_are_whole_and_the_same_each_time() {
        let record = record();
        let drawn = gallery(&record);
        let names: Vec<&str> = drawn.pictures.iter().map(|picture| &*picture.name).collect();
        let expected = ["throughput", "roofline", "profile"]
            .map(|kind| [format!("{kind}-f32-non_transpose"), format!("{kind}-f64-non_transpose")]);
        let [[a, b], [c, d], [e, f]] = &expected;
        assert_eq!(names, [a, c, e, b, d, f, "speed_up-non_transpose"]);
        assert!(drawn.left_out.is_empty());
        let mut text = Vec::new();
        record.write(&mut text).unwrap();
        assert_eq!(gallery(&Record::read(&text[..]).unwrap()), drawn);
    }

    #[test]
    fn nothing_leaves_the_paper_and_no_labels_meet() {
        for picture in gallery(&record()).pictures {
            let tree = roxmltree::Document::parse(&picture.svg).unwrap();
            let number = |node: &roxmltree::Node<'_, '_>, name| {
                node.attribute(name).and_then(|text| text.parse::<f64>().ok())
            };
            let root = tree.root_element();
            let (width, height) = (number(&root, "width").unwrap(), number(&root, "height").unwrap());
            let mut boxes: Vec<(f64, f64, f64, f64, &str)> = Vec::new();
            for node in tree.descendants().filter(|node| node.has_tag_name("text")) {
                let (x, y, size) = (
                    number(&node, "x").unwrap(),
                    number(&node, "y").unwrap(),
                    number(&node, "font-size").unwrap(),
                );
                let text = node.text().unwrap_or("");
                let length = svg::text_width(text, size);
                let start = match node.attribute("text-anchor") {
                    Some("start") => x,
                    Some("end") => x - length,
                    _ => x - length / 2.0,
                };
                if node.attribute("transform").is_none() {
                    assert!(
                        start >= 0.0 && start + length <= width && y <= height,
                        "{}: {text}",
                        picture.name
                    );
                    for (x0, x1, y0, y1, other) in &boxes {
                        let meet = start < *x1 && start + length > *x0 && y - size < *y1 && y > *y0;
                        assert!(!meet, "{}: `{text}` meets `{other}`", picture.name);
                    }
                    boxes.push((start, start + length, y - size, y, text));
                }
            }
            assert!(boxes.len() > 10, "{}", picture.name);
            for node in tree.descendants().filter(|node| node.has_tag_name("circle")) {
                let (x, y) = (number(&node, "cx").unwrap(), number(&node, "cy").unwrap());
                assert!((0.0..=width).contains(&x) && (0.0..=height).contains(&y), "{}", picture.name);
            }
        }
    }

    #[test]
    fn records_without_figures_have_no_pictures() {
        assert_eq!(gallery(&Record::default()), Gallery::default());
        let mut failed = record();
        failed.rows.iter_mut().for_each(|row| row.status = "wrong: all".into());
        let gallery = gallery(&failed);
        assert_eq!((gallery.pictures.len(), gallery.left_out.len()), (0, 7));
        assert!(
            gallery.left_out[0].contains("nothing to draw: no row has a right result"),
            "{:?}",
            gallery.left_out
        );
    }

    #[test]
    fn a_matrix_without_nonzeros_is_no_trouble() {
        let mut record = record();
        record.rows.iter_mut().for_each(|row| (row.nnz, row.rows) = (0, 0));
        let gallery = gallery(&record);
        assert!(
            gallery
                .pictures
                .iter()
                .all(|picture| !picture.svg.contains("NaN") && !picture.svg.contains("inf"))
        );
        assert_eq!(gallery.left_out.len(), 4);
    }
}
