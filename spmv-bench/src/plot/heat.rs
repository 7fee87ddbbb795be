//! How the time of a contender depends on one or two of its parameters.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use super::axis::Axis;
use super::chart::{AREA, Chart, Frame, Sample};
use super::palette::{HUES, hex, viridis};
use super::{Picture, PlotError, file_name, subtitle};
use crate::geomean;
use crate::problem::{Problem, problems};
use crate::record::{Record, Row};

const ABOUT: &str = "Geometric mean over the problems (matrix, value type, operation) of the time with these \
    parameters over the contender's best time; 1 is always the best. What other parameters there are is at its best. \
    In brackets on how many of the problems, where not on all.";

/// Relative times from here on have the darkest colour.
const SLOWEST: f64 = 4.0;

/// A contender and the parameters to look at: `ours:csr_vector,threads_per_vector` or
/// `ours:light_vector,threads_per_vector,rows_per_fetch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heat {
    /// Whose rows.
    pub contender: String,
    /// The parameter along the picture.
    pub x: String,
    /// The parameter up the picture; bars where there is none.
    pub y: Option<String>,
}

impl FromStr for Heat {
    type Err = PlotError;

    fn from_str(text: &str) -> Result<Heat, PlotError> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let (contender, x, y) = match parts[..] {
            [contender, x] => (contender, x, None),
            [contender, x, y] if x != y => (contender, x, Some(y)),
            _ => return Err(PlotError::HeatRequest(text.to_owned())),
        };
        if parts.iter().any(|part| part.is_empty()) {
            return Err(PlotError::HeatRequest(text.to_owned()));
        }
        Ok(Heat { contender: contender.to_owned(), x: x.to_owned(), y: y.map(str::to_owned) })
    }
}

/// What a pair of parameter values (the second empty for bars) came to.
struct Cell {
    relative: f64,
    problems: usize,
}

/// Draws a heat map of two parameters, or bars of one.
///
/// # Errors
/// [`PlotError`] where the record has no such contender or parameter, or no right result with a time.
pub fn heat(record: &Record, heat: &Heat) -> Result<Picture, PlotError> {
    let rows: Vec<&Row> = record.rows.iter().filter(|row| row.contender == heat.contender).collect();
    if rows.is_empty() {
        let known: BTreeSet<&str> = record.rows.iter().map(|row| &*row.contender).collect();
        return Err(PlotError::Contender { name: heat.contender.clone(), known: listed(known) });
    }
    for name in [Some(&heat.x), heat.y.as_ref()].into_iter().flatten() {
        let known: BTreeSet<&str> = rows.iter().flat_map(|row| parameters(row)).map(|(key, _)| key).collect();
        if !known.contains(&**name) {
            let (contender, name) = (heat.contender.clone(), name.clone());
            return Err(PlotError::Parameter { contender, name, known: listed(known) });
        }
    }
    let found = problems(&record.rows);
    let solved: Vec<&Problem<'_>> =
        found.iter().filter(|problem| problem.best_of(&heat.contender).is_some()).collect();
    let cells = cells(heat, &solved);
    let parameters = heat.y.as_ref().map_or(heat.x.clone(), |y| format!("{} and {y}", heat.x));
    let title = format!("{} by {parameters}", heat.contender);
    if cells.is_empty() {
        let why = "no row of the contender has a right result and a time".to_owned();
        return Err(PlotError::Nothing { picture: title, why });
    }
    let subtitle = format!("{}; {} problems", subtitle(&record.head), solved.len());
    let svg = match &heat.y {
        Some(y) => map(&title, &subtitle, &heat.x, y, &cells, solved.len()),
        None => bars(&title, &subtitle, &heat.x, &cells, solved.len()),
    };
    let name = file_name(&format!("heat-{}-{parameters}", heat.contender));
    Ok(Picture { name, title, about: ABOUT.to_owned(), svg })
}

type Cells<'a> = BTreeMap<(&'a str, &'a str), Cell>;

fn cells<'a>(heat: &Heat, problems: &[&Problem<'a>]) -> Cells<'a> {
    let mut ratios: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for problem in problems {
        let Some(best) = problem.best_of(&heat.contender) else { continue };
        let mut fastest: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        for row in problem.rows.iter().filter(|row| row.contender == heat.contender) {
            let (Some(timed), Some(x)) = (problem.timed(row), parameter(row, &heat.x)) else { continue };
            let Some(y) = heat.y.as_ref().map_or(Some(""), |y| parameter(row, y)) else { continue };
            let ms = fastest.entry((x, y)).or_insert(f64::INFINITY);
            *ms = ms.min(timed.ms);
        }
        for (key, ms) in fastest {
            ratios.entry(key).or_default().push(ms / best.ms);
        }
    }
    let mean = |(key, ratios): (_, Vec<f64>)| {
        let problems = ratios.len();
        geomean(ratios).map(|relative| (key, Cell { relative, problems }))
    };
    ratios.into_iter().filter_map(mean).collect()
}

fn map(title: &str, subtitle: &str, x: &str, y: &str, cells: &Cells<'_>, all: usize) -> String {
    let columns = ordered(cells.keys().map(|key| key.0));
    let rows = ordered(cells.keys().map(|key| key.1));
    let legend: Vec<_> = [1.0, 1.1, 1.25, 1.5, 2.0, 3.0, SLOWEST]
        .map(|relative| {
            let more = if relative == SLOWEST { " and more" } else { "" };
            (Sample::Area(hex(colour(relative))), format!("{relative} times the best{more}"))
        })
        .into();
    let mut chart = Chart::new(Frame {
        title,
        subtitle,
        x: Axis::names(x, columns.iter().map(|name| (*name).to_owned()).collect()),
        y: Axis::names(y, rows.iter().map(|name| (*name).to_owned()).collect()),
        legend: &legend,
        area: (102.0 * columns.len().clamp(3, 12) as f64, 44.0 * rows.len().clamp(3, 16) as f64),
    });
    for (column, x) in columns.iter().enumerate() {
        for (row, y) in rows.iter().enumerate() {
            let Some(cell) = cells.get(&(*x, *y)) else { continue };
            let (left, bottom) = (column as f64, row as f64);
            chart.cell(column, row, &hex(colour(cell.relative)));
            let ink = if place(cell.relative) < 0.5 { "#ffffff" } else { "#000000" };
            chart.note(left + 0.5, bottom + 0.5, &cell.text(all), ink);
        }
    }
    chart.finish()
}

fn bars(title: &str, subtitle: &str, x: &str, cells: &Cells<'_>, all: usize) -> String {
    let columns = ordered(cells.keys().map(|key| key.0));
    let tallest = cells.values().map(|cell| cell.relative).fold(1.0, f64::max);
    let mut chart = Chart::new(Frame {
        title,
        subtitle,
        x: Axis::names(x, columns.iter().map(|name| (*name).to_owned()).collect()),
        y: Axis::linear("time over the contender's best", 0.0, tallest * 1.12),
        legend: &[],
        area: (102.0 * columns.len().max(4) as f64, AREA.1),
    });
    for (column, x) in columns.iter().enumerate() {
        if let Some(cell) = cells.get(&(*x, "")) {
            let left = column as f64;
            chart.bar((left + 0.15, left + 0.85), (0.0, cell.relative), HUES[0], "");
            chart.note(left + 0.5, cell.relative + tallest * 0.04, &cell.text(all), "#222222");
        }
    }
    chart.finish()
}

impl Cell {
    fn text(&self, all: usize) -> String {
        match self.problems == all {
            true => format!("{:.2}", self.relative),
            false => format!("{:.2} ({}/{all})", self.relative, self.problems),
        }
    }
}

/// Light at 1, dark at [`SLOWEST`].
fn place(relative: f64) -> f64 {
    1.0 - (relative.ln() / SLOWEST.ln()).clamp(0.0, 1.0)
}

fn colour(relative: f64) -> [u8; 3] {
    viridis(place(relative))
}

/// Numbers by size, then other texts.
fn ordered<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut values: Vec<&str> = values.collect::<BTreeSet<_>>().into_iter().collect();
    values.sort_by(|a, b| {
        let number = |text: &str| text.parse::<f64>().unwrap_or(f64::INFINITY);
        number(a).total_cmp(&number(b)).then(a.cmp(b))
    });
    values
}

fn parameters(row: &Row) -> impl Iterator<Item = (&str, &str)> {
    row.params.split(';').filter_map(|part| part.trim().split_once('='))
}

fn parameter<'a>(row: &'a Row, name: &str) -> Option<&'a str> {
    parameters(row).find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn listed(names: BTreeSet<&str>) -> String {
    if names.is_empty() { "none".to_owned() } else { names.into_iter().collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(matrix: &str, params: &str, ms: f64) -> Row {
        Row {
            matrix: matrix.into(),
            contender: "ours:a".into(),
            params: params.into(),
            cold_ms: Some(ms),
            status: "ok".into(),
            ..Row::default()
        }
    }

    #[test]
    fn a_cell_is_the_mean_over_problems_of_the_best_over_the_rest() {
        let rows = vec![
            row("m", "w=2;h=1;other=1", 4.0),
            row("m", "w=2;h=1;other=2", 2.0),
            row("m", "w=16;h=1;other=1", 1.0),
            row("n", "w=2;h=1;other=1", 8.0),
            row("n", "w=2;h=2", 1.0),
        ];
        let found = problems(&rows);
        let request: Heat = "ours:a, w, h".parse().unwrap();
        let cells = cells(&request, &found.iter().collect::<Vec<_>>());
        let facts: Vec<_> = cells.iter().map(|(key, cell)| (*key, cell.relative, cell.problems)).collect();
        assert_eq!(facts, [(("16", "1"), 1.0, 1), (("2", "1"), 4.0, 2), (("2", "2"), 1.0, 1)]);
        assert_eq!(ordered(["16", "auto", "2"].into_iter()), ["2", "16", "auto"]);
        let record = Record { rows: rows.clone(), ..Record::default() };
        assert!(heat(&record, &request).unwrap().svg.contains("1.00 (1/2)"));
        let bars = heat(&record, &"ours:a,w".parse().unwrap()).unwrap();
        assert_eq!(bars.name, "heat-ours-a-w");
        let says = |text: &str| heat(&record, &text.parse().unwrap()).unwrap_err().to_string();
        assert_eq!(says("ours:b,w"), "the record has no contender `ours:b`; it has ours:a");
        assert_eq!(says("ours:a,v"), "`ours:a` has no parameter `v` in the record; it has h, other, w");
    }

    #[test]
    fn requests_are_checked() {
        for text in ["", "ours:a", "ours:a,", "ours:a,w,w", "ours:a,w,h,d", ",w"] {
            assert!(matches!(text.parse::<Heat>(), Err(PlotError::HeatRequest(_))), "{text}");
        }
    }
}
