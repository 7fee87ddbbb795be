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
        "plain" => "plain product",
        "transpose" => "transposed product",
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
