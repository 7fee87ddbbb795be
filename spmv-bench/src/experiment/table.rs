//! A record as an experiment's tables, beside the paper's figures.

use std::fmt;

use serde::Serialize;
use spmv_runtime::ValueType;

use super::{Axis, Contender, Experiment, Matrices, Metric, Published, Shape, SpeedUps, all};
use crate::record::{Record, Row};

/// The least and the most nonzeros of a small matrix; beyond, it is large.
const SMALL: std::ops::RangeInclusive<u64> = 10_000..=300_000;

/// A table of text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// What it is.
    pub title: String,
    /// The columns' names.
    pub head: Vec<String>,
    /// As many cells in each as there are columns.
    pub rows: Vec<Vec<String>>,
    /// What there is to say of it.
    pub notes: Vec<String>,
}

/// Every experiment: its name, paper, matrices and title.
pub fn list() -> Table {
    let row = |experiment: &Experiment| {
        let matrices = match experiment.matrices {
            Matrices::Shapes(shapes) => shapes.len().to_string(),
            Matrices::Suites(suites) => suites.join(" + "),
        };
        let paper = format!("{} {}", experiment.paper.authors, experiment.paper.year);
        vec![experiment.name.to_owned(), paper, matrices, experiment.title.to_owned()]
    };
    Table {
        title: "experiments".to_owned(),
        head: ["name", "paper", "matrices", "what"].map(str::to_owned).to_vec(),
        rows: all().map(row).collect(),
        notes: Vec::new(),
    }
}

impl Experiment {
    /// The record's figures as the paper has them: a table for each operation, value type and metric that has any,
    /// then the speed-ups. Rows of other matrices and contenders are passed over. Where several rows are a
    /// contender's, the fastest right one counts.
    pub fn tables(&self, record: &Record) -> Vec<Table> {
        let mut tables = Vec::new();
        for &operation in self.operations {
            for &value in self.values {
                let rows: Vec<&Row> = record
                    .rows
                    .iter()
                    .filter(|row| row.operation == operation && row.value == value.name())
                    .collect();
                let figures = |metric: &&Metric| rows.iter().any(|row| metric.of(row).is_some());
                tables.extend(
                    self.metrics
                        .iter()
                        .filter(figures)
                        .map(|&metric| self.table(operation, value, metric, &rows)),
                );
            }
        }
        tables.extend(self.speed_ups.iter().map(|speed_ups| self.speed_up_table(speed_ups, record)));
        tables
    }

    fn table(&self, operation: &str, value: ValueType, metric: Metric, rows: &[&Row]) -> Table {
        let lines = self.lines(rows);
        let published = |contender: &'static Contender| {
            let of = move |figure: &&Published| {
                figure.contender == contender.label
                    && figure.metric == metric
                    && figure.value.is_none_or(|known| known == value)
            };
            self.published.iter().filter(of)
        };
        let quoted: Vec<&'static Contender> =
            self.contenders.iter().filter(|contender| published(contender).next().is_some()).collect();
        let expects = lines.iter().any(|line| line.best.is_some());
        let axis = match self.axis {
            Axis::Parameter(name) => Some(name),
            Axis::NonzerosPerRow => Some("nnz/row"),
            Axis::Matrix => None,
        };

        let mut head = vec!["matrix".to_owned()];
        head.extend(axis.map(str::to_owned));
        head.extend(["rows".to_owned(), "nnz".to_owned()]);
        head.extend(self.contenders.iter().map(|contender| contender.label.to_owned()));
        head.push("best".to_owned());
        head.extend(expects.then(|| "paper expects".to_owned()));
        head.extend(quoted.iter().map(|contender| format!("{}, paper", contender.label)));

        let figure_of = |line: &Line, contender: &Contender| figure(metric, contender, &line.rows);
        let quote = |contender: &'static Contender, matrix: Option<&str>| {
            let figure = published(contender).find(|figure| figure.matrix == matrix && matrix.is_some());
            figure.map_or_else(String::new, |figure| significant(figure.figure))
        };
        let mut cells: Vec<Vec<String>> = Vec::new();
        for line in &lines {
            let Some(first) = line.rows.first() else { continue };
            let mut row = vec![line.name.to_owned()];
            row.extend(axis.map(|_| significant(line.x.unwrap_or(f64::NAN))));
            row.extend([first.rows.to_string(), first.nnz.to_string()]);
            row.extend(self.contenders.iter().map(|contender| match figure_of(line, contender) {
                Some(figure) => significant(figure),
                None => missing(contender, &line.rows),
            }));
            let measured = self.contenders.iter().filter_map(|one| Some((one, figure_of(line, one)?)));
            let best = measured.reduce(|best, one| if metric.prefers(one.1, best.1) { one } else { best });
            row.push(best.map_or_else(String::new, |best| best.0.label.to_owned()));
            row.extend(expects.then(|| line.best.unwrap_or_default().to_owned()));
            row.extend(quoted.iter().map(|contender| quote(contender, line.file)));
            cells.push(row);
        }
        if self.published.iter().any(|figure| figure.metric == metric && figure.matrix.is_none()) {
            let mut row = vec!["mean".to_owned()];
            row.resize(
                head.len() - self.contenders.len() - 1 - usize::from(expects) - quoted.len(),
                String::new(),
            );
            row.extend(self.contenders.iter().map(|contender| {
                let figures: Vec<f64> = lines.iter().filter_map(|line| figure_of(line, contender)).collect();
                match figures.len() {
                    0 => missing(contender, &[]),
                    count => significant(figures.iter().sum::<f64>() / count as f64),
                }
            }));
            row.resize(head.len() - quoted.len(), String::new());
            row.extend(quoted.iter().map(|contender| {
                let mean = published(contender).find(|figure| figure.matrix.is_none());
                mean.map_or_else(String::new, |figure| significant(figure.figure))
            }));
            cells.push(row);
        }

        let mut notes = self.notes();
        let absent: Vec<&str> =
            lines.iter().filter(|line| line.rows.is_empty()).map(|line| line.name).collect();
        if !absent.is_empty() {
            notes.push(format!("not in the record: {}", absent.join(", ")));
        }
        let mut places: Vec<&str> =
            quoted.iter().flat_map(|contender| published(contender)).map(|figure| figure.place).collect();
        places.sort_unstable();
        places.dedup();
        if !places.is_empty() {
            notes.push(format!("the paper's figures: {}, measured on {}", places.join(", "), self.paper.gpu));
        }
        let title = format!("{}: {}, {}, {operation}", self.name, metric.title(), value.name());
        Table { title, head, rows: cells, notes }
    }

    fn speed_up_table(&self, speed_ups: &SpeedUps, record: &Record) -> Table {
        let head = [
            "size",
            "value",
            "peer",
            "matrices",
            "min",
            "max",
            "h. mean",
            "peer ahead",
            "min, paper",
            "max, paper",
            "h. mean, paper",
            "peer ahead, paper",
        ];
        let mut rows = Vec::new();
        let of = self.contenders.iter().find(|contender| contender.label == speed_ups.of);
        for large in [false, true] {
            for &value in self.values {
                let measured: Vec<&Row> = record
                    .rows
                    .iter()
                    .filter(|row| row.value == value.name() && self.operations.contains(&&*row.operation))
                    .filter(|row| if large { row.nnz > *SMALL.end() } else { SMALL.contains(&row.nnz) })
                    .collect();
                let lines = self.lines(&measured);
                for peer in self.contenders.iter().filter(|contender| contender.label != speed_ups.of) {
                    let time = |contender: &Contender, line: &Line| {
                        figure(Metric::Milliseconds, contender, &line.rows)
                    };
                    let ratios: Vec<f64> = lines
                        .iter()
                        .filter_map(|line| Some(time(peer, line)? / time(of?, line)?))
                        .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
                        .collect();
                    let published = speed_ups.published.iter().find(|published| {
                        published.large == large && published.value == value && published.peer == peer.label
                    });
                    let mut row = vec![
                        if large { "large" } else { "small" }.to_owned(),
                        value.name().to_owned(),
                        peer.label.to_owned(),
                        ratios.len().to_string(),
                    ];
                    row.extend(summary(&ratios));
                    let paper = published.map(|paper| [paper.min, paper.max, paper.mean]).unwrap_or_default();
                    row.extend(paper.map(|figure| figure.map_or_else(String::new, significant)));
                    let ahead = published.and_then(|paper| paper.peer_better);
                    row.push(ahead.map_or_else(String::new, |percent| format!("{percent} %")));
                    rows.push(row);
                }
            }
        }
        let mut notes = vec![
            format!(
                "time of the peer over the time of {}: above 1, {} is faster",
                speed_ups.of, speed_ups.of
            ),
            "small: 10,000 to 300,000 nonzeros; large: more".to_owned(),
            format!("the paper's figures: {}, measured on {}", speed_ups.place, self.paper.gpu),
        ];
        notes.extend(self.notes());
        Table {
            title: format!("{}: {}", self.name, self.title),
            head: head.map(str::to_owned).to_vec(),
            rows,
            notes,
        }
    }

    /// The matrices in the order of the axis, each with its rows of the record.
    fn lines<'a>(&self, rows: &[&'a Row]) -> Vec<Line<'a>> {
        let mut lines: Vec<Line> = match self.matrices {
            Matrices::Shapes(shapes) => shapes.iter().map(|shape| Line::of_shape(shape, rows)).collect(),
            Matrices::Suites(_) => {
                let mut lines: Vec<Line> = Vec::new();
                for row in rows {
                    match lines.iter_mut().find(|line| line.name == row.matrix) {
                        Some(line) => line.rows.push(row),
                        None => {
                            let name = &*row.matrix;
                            lines.push(Line { name, file: None, x: None, best: None, rows: vec![row] });
                        }
                    }
                }
                lines
            }
        };
        if self.axis == Axis::NonzerosPerRow {
            for line in &mut lines {
                line.x = line.rows.first().map(|row| row.nnz as f64 / row.rows.max(1) as f64);
            }
        }
        if self.axis != Axis::Matrix {
            lines.sort_by(|a, b| a.x.unwrap_or(f64::MAX).total_cmp(&b.x.unwrap_or(f64::MAX)));
        }
        lines
    }

    fn notes(&self) -> Vec<String> {
        let missing: Vec<String> = self
            .unavailable()
            .map(|contender| {
                format!(
                    "{} ({})",
                    contender.label,
                    contender.name.strip_prefix("ours:").unwrap_or(contender.name)
                )
            })
            .collect();
        match &*missing {
            [] => Vec::new(),
            missing => vec![format!("not available in this version: {}", missing.join(", "))],
        }
    }
}

/// A matrix and the rows of the record that are its.
struct Line<'a> {
    name: &'a str,
    file: Option<&'static str>,
    x: Option<f64>,
    best: Option<&'static str>,
    rows: Vec<&'a Row>,
}

impl<'a> Line<'a> {
    /// Rows of the real matrix, or of the one that is generated in its stead.
    fn of_shape(shape: &Shape, rows: &[&'a Row]) -> Line<'a> {
        let named =
            |name: &str| -> Vec<&'a Row> { rows.iter().filter(|row| row.matrix == name).copied().collect() };
        let real = shape.file.map(|file| (file, named(file))).filter(|(_, rows)| !rows.is_empty());
        let (name, rows) = real.unwrap_or_else(|| (shape.spec.name, named(shape.spec.name)));
        Line { name, file: shape.file, x: shape.x, best: shape.best, rows }
    }
}

impl Metric {
    fn prefers(self, one: f64, other: f64) -> bool {
        match self {
            Metric::Milliseconds | Metric::ExtraBytesPerNonzero => one < other,
            _ => one > other,
        }
    }
}

/// The figure of the contender's fastest row that has one. What the simulator checked and counted has no time, and
/// counts too.
fn figure(metric: Metric, contender: &Contender, rows: &[&Row]) -> Option<f64> {
    let time = |row: &Row| row.time_ms().unwrap_or(f64::MAX);
    let usable = |row: &&&Row| row.is_ok() || (row.status.starts_with("skipped") && row.time_ms().is_none());
    rows.iter()
        .filter(|row| contender.matches(row) && metric.of(row).is_some())
        .filter(usable)
        .min_by(|a, b| time(a).total_cmp(&time(b)))
        .and_then(|row| metric.of(row))
}

/// Why there is no figure.
fn missing(contender: &Contender, rows: &[&Row]) -> String {
    let said = rows.iter().find(|row| contender.matches(row) && !row.is_ok());
    match said.and_then(|row| row.status.split(':').next()) {
        Some(status) => status.to_owned(),
        None if contender.is_available() => "-".to_owned(),
        None => "not available".to_owned(),
    }
}

/// The least, the greatest, the harmonic mean, and how often the peer was ahead.
fn summary(ratios: &[f64]) -> [String; 4] {
    if ratios.is_empty() {
        return ["-", "-", "-", "-"].map(str::to_owned);
    }
    let count = ratios.len() as f64;
    let min = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let max = ratios.iter().copied().fold(0.0, f64::max);
    let mean = count / ratios.iter().map(|ratio| 1.0 / ratio).sum::<f64>();
    let ahead = ratios.iter().filter(|ratio| **ratio < 1.0).count() as f64 / count;
    [significant(min), significant(max), significant(mean), format!("{:.0} %", 100.0 * ahead)]
}

/// Three significant digits, or the whole number where that is longer.
fn significant(figure: f64) -> String {
    if !figure.is_finite() {
        return "-".to_owned();
    }
    let digits = if figure == 0.0 { 0 } else { (2 - figure.abs().log10().floor() as i32).clamp(0, 9) };
    let text = format!("{figure:.*}", digits as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

impl Table {
    /// The table in Markdown. Ends with a newline.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = "|---".repeat(self.head.len());
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        let notes: String = self.notes.iter().map(|note| format!("\n{note}\n")).collect();
        format!("**{}**\n\n{}{rule}|\n{rows}{notes}", self.title, line(&self.head))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| {
            lines().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let number =
            |column: usize| self.rows.iter().any(|row| row[column].starts_with(|c: char| c.is_ascii_digit()));
        writeln!(f, "{}", self.title)?;
        for line in lines() {
            let cell =
                |(column, (cell, &width)): (usize, (&String, &usize))| match number(column) && column > 0 {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:<width$}"),
                };
            let cells: Vec<String> = line.iter().zip(&widths).enumerate().map(cell).collect();
            writeln!(f, "  {}", cells.join("  ").trim_end())?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    fn measured(matrix: &str, contender: &str, params: &str, ms: f64) -> Row {
        Row {
            matrix: matrix.into(),
            rows: 1000,
            nnz: 1_000_000,
            value: "f32".into(),
            operation: "non_transpose".into(),
            contender: contender.into(),
            params: params.into(),
            cold_ms: Some(ms),
            status: "ok".into(),
            ..Row::default()
        }
    }

    fn record(rows: Vec<Row>) -> Record {
        Record { rows, ..Record::default() }
    }

    fn cell<'a>(table: &'a Table, row: &str, column: &str) -> &'a str {
        let at =
            table.head.iter().position(|head| head == column).unwrap_or_else(|| panic!("{:?}", table.head));
        let row =
            table.rows.iter().find(|cells| cells[0] == row).unwrap_or_else(|| panic!("{:?}", table.rows));
        &row[at]
    }

    #[test]
    fn figures_stand_beside_the_papers() {
        let experiment = find("000-table1").unwrap();
        let record = record(vec![
            measured("like_cage14", "ours:csr_scalar", "unroll=1;threads_per_block=128", 2.0),
            measured("like_cage14", "ours:csr_scalar", "unroll=1;threads_per_block=256", 0.5),
            // Another kernel, faster: the paper's does not unroll.
            measured("like_cage14", "ours:csr_scalar", "unroll=4;threads_per_block=256", 0.1),
            measured("like_cage14", "ours:csr_vector", "threads_per_vector=32", 0.25),
            Row { status: "wrong: row 3".into(), ..measured("like_cage14", "cpu:serial", "", 9.0) },
            measured("somewhere_else", "ours:csr_vector", "threads_per_vector=32", 1.0),
            // The real matrix is preferred to the imitation.
            measured("rajat31", "ours:csr_scalar", "unroll=1", 4.0),
            measured("like_rajat31", "ours:csr_scalar", "unroll=1", 8.0),
        ]);
        let tables = experiment.tables(&record);
        let times = &tables[0];
        assert_eq!(times.title, "000-table1: time, ms, f32, non_transpose");
        assert_eq!(cell(times, "like_cage14", "Thread/Row"), "0.5");
        assert_eq!(cell(times, "like_cage14", "Warp/Row"), "0.25");
        assert_eq!(cell(times, "like_cage14", "best"), "Warp/Row");
        assert_eq!(cell(times, "like_cage14", "Naive CPU"), "wrong");
        assert_eq!(cell(times, "like_cage14", "OpenMP"), "-");
        assert_eq!(cell(times, "like_cage14", "Thread/Row, paper"), "73.7");
        assert_eq!(cell(times, "rajat31", "Thread/Row"), "4");
        assert_eq!(cell(times, "rajat31", "Warp/Row, paper"), "131");
        assert_eq!(times.rows.len(), 2);
        assert!(times.rows.iter().all(|row| row.len() == times.head.len()));
        let notes = times.notes.join("\n");
        assert!(notes.contains("not in the record: like_pkustk14") && notes.contains("Table I"), "{notes}");
        assert_eq!(tables.len(), 2, "milliseconds and GFLOP/s; nothing said what was moved, and no f64");
        assert_eq!(cell(&tables[1], "like_cage14", "Warp/Row"), "8");
    }

    #[test]
    fn means_are_over_what_was_measured() {
        let experiment = find("003-survey").unwrap();
        let record = record(vec![
            measured("like_cant", "ours:light_vector", "threads_per_vector=32", 0.02),
            measured("like_F1", "ours:light_vector", "threads_per_vector=32", 0.01),
            Row { nnz: 3_000, ..measured("like_webbase-1M", "ours:csr_scalar", "unroll=1", 0.001) },
        ]);
        let tables = experiment.tables(&record);
        let table = &tables[0];
        assert_eq!(cell(table, "mean", "LightSpMV"), "150");
        assert_eq!(cell(table, "mean", "LightSpMV, paper"), "34.9");
        assert_eq!(cell(table, "mean", "CSR Scalar"), "6");
        assert_eq!(cell(table, "like_F1", "LightSpMV, paper"), "");
        // What the simulator counted stands without a time, what is wrong does not.
        let counted = |status: &str| Row {
            cold_ms: None,
            warp_execution_efficiency: Some(0.75),
            status: status.into(),
            ..measured("like_cant", "ours:csr_scalar", "unroll=1", 1.0)
        };
        for (status, expected) in [("skipped: checked on the simulator", "0.75"), ("wrong: row 1", "wrong")] {
            let tables = experiment.tables(&Record { rows: vec![counted(status)], ..Record::default() });
            assert_eq!(cell(&tables[0], "like_cant", "CSR Scalar"), expected);
        }
        // By nonzeros a row, ascending.
        assert_eq!(table.rows[0][..2], ["like_webbase-1M", "3"]);
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()), "{table}");
    }

    #[test]
    fn speed_ups_are_summed_up_by_size() {
        let experiment = find("004-table2").unwrap();
        let rows = |matrix: &str, nnz: u64, hola: f64, library: [f64; 2]| {
            [
                Row { nnz, ..measured(matrix, "ours:hola", "", hola) },
                Row { nnz, ..measured(matrix, "cusparse:csr_alg1", "", library[0]) },
                Row { nnz, ..measured(matrix, "cusparse:csr_alg2", "", library[1]) },
            ]
        };
        let mut all = rows("a", 20_000, 1.0, [3.0, 2.0]).to_vec();
        all.extend(rows("b", 300_000, 1.0, [0.5, 7.0]));
        all.extend(rows("c", 300_001, 1.0, [4.0, 9.0]));
        all.extend(rows("tiny", 9_999, 1.0, [100.0, 100.0]));
        let tables = experiment.tables(&record(all));
        let table = tables.last().unwrap();
        let line = |size: &str| {
            let found = table.rows.iter().find(|row| row[..3] == [size, "f32", "cuSPARSE"]);
            found.unwrap_or_else(|| panic!("{table}")).clone()
        };
        // 2 / (1/2 + 1/0.5): the best of the library's algorithms on each matrix.
        assert_eq!(line("small")[3..8], ["2", "0.5", "2", "0.8", "50 %"]);
        assert_eq!(line("small")[8..], ["0.2", "119", "1.01", "60 %"]);
        assert_eq!(line("large")[3..8], ["1", "4", "4", "4", "0 %"]);
        let naive = table.rows.iter().find(|row| row[..3] == ["large", "f64", "naive"]).unwrap();
        assert_eq!(naive[3..8], ["0", "-", "-", "-", "-"]);
    }

    #[test]
    fn what_has_no_kernel_is_said() {
        for experiment in all().filter(|experiment| matches!(experiment.matrices, Matrices::Shapes(_))) {
            let Matrices::Shapes(shapes) = experiment.matrices else { continue };
            let entry = Row {
                operation: experiment.operations[0].into(),
                extra_bytes: Some(1),
                occupancy: Some(0.5),
                ..measured(shapes[0].generated_name(), "cusparse:csr_alg1", "", 1.0)
            };
            for table in experiment.tables(&record(vec![entry])) {
                for contender in experiment.unavailable() {
                    assert_eq!(cell(&table, shapes[0].generated_name(), contender.label), "not available");
                    let notes = table.notes.join("\n");
                    assert!(
                        notes.contains("not available in this version") && notes.contains(contender.label)
                    );
                }
            }
        }
    }

    #[test]
    fn expectations_stand_beside_what_was_best() {
        let record = record(vec![
            measured("banded", "ours:ell", "", 1.0),
            measured("banded", "ours:coo", "", 2.0),
            measured("triangular", "ours:coo", "", 2.0),
        ]);
        let table = &find("002-formats").unwrap().tables(&record)[0];
        assert_eq!((cell(table, "banded", "best"), cell(table, "banded", "paper expects")), ("ELL", "ELL"));
        assert_eq!(
            (cell(table, "triangular", "best"), cell(table, "triangular", "paper expects")),
            ("COO", "JDS_T")
        );
    }

    #[test]
    fn text_is_aligned_and_numbers_are_short() {
        let numbers = [0.0, 0.000_012_345, 0.002, 0.5, 1.0, 73.73, 130.73, 12345.6, 1e6, f64::NAN];
        assert_eq!(
            numbers.map(significant),
            ["0", "0.0000123", "0.002", "0.5", "1", "73.7", "131", "12346", "1000000", "-"]
        );
        let table = Table {
            title: "t".into(),
            head: vec!["matrix".into(), "ms".into(), "best".into()],
            rows: vec![
                vec!["a".into(), "10".into(), "x".into()],
                vec!["long".into(), "5".into(), String::new()],
            ],
            notes: vec!["n".into()],
        };
        assert_eq!(table.to_string(), "t\n  matrix  ms  best\n  a       10  x\n  long     5\n  n\n");
        assert_eq!(list().rows.len(), all().count());
    }
}
