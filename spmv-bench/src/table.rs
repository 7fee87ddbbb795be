//! The table of results beside cuSPARSE, in Markdown.

use std::fmt::Write;

use spmv_runtime::codegen::{Algorithm, Operation};

use crate::geomean;
use crate::problem::{Problem, Timed, problems};
use crate::record::{Head, Record};
use crate::request::ours_name;

/// What matrices from files are called as a class; they share a line, generated ones have one each.
const FILES: &str = "file";

/// The table: for each matrix and value type the best cuSPARSE path, our best, the speed-up and our share of the copy
/// roof; before it the geometric means and who won, after it what a reader must know about the run. Matrices from files
/// share a line of geometric means. Ends with a newline.
///
/// Says so where the record has no problem that both sides solved.
pub fn markdown(record: &Record) -> String {
    let problems = problems(&record.rows);
    let mut text = String::new();
    let mut operations: Vec<&str> = Vec::new();
    for problem in &problems {
        if !operations.contains(&problem.operation) {
            operations.push(problem.operation);
        }
    }
    put(&mut text, format_args!("{}\n", cell(&provenance(&record.head))));
    if !problems.iter().any(|problem| problem.speed_up().is_some()) {
        put(
            &mut text,
            format_args!("\nThe record has no matrix on which both sides have a right result and a time.\n"),
        );
        return text;
    }
    for operation in operations {
        let of: Vec<_> = problems.iter().filter(|problem| problem.operation == operation).collect();
        if of.iter().all(|problem| problem.speed_up().is_none()) {
            put(&mut text, format_args!("\n{}: no matrix has times of both sides.\n", title(operation)));
            continue;
        }
        let cold = if of.iter().all(|problem| problem.is_cold()) {
            ", caches flushed before each product"
        } else {
            ""
        };
        put(
            &mut text,
            format_args!(
                "\n**{}**{cold}. Speed-up is the time of the best cuSPARSE path, whatever format it wants, over that of our best; the last two columns leave out paths that first convert the CSR matrix.\n\n",
                title(operation)
            ),
        );
        means(&mut text, &of);
        if operation == "transpose" {
            put(&mut text, format_args!("\n{}\n", without_copy(&of)));
        }
        put(
            &mut text,
            format_args!(
                "\n| matrix | values | cuSPARSE ms | ours ms | speed-up | of the roof |\n|---|---|---|---|---|---|\n"
            ),
        );
        for line in lines(&of) {
            line.write(&mut text);
        }
    }
    let broken =
        record.rows.iter().filter(|row| row.status.starts_with("wrong") || row.status.starts_with("failed"));
    let broken = broken.count();
    if broken > 0 {
        put(
            &mut text,
            format_args!(
                "\n{broken} of {} rows of the record are wrong or failed; they count for nobody.\n",
                record.rows.len()
            ),
        );
    }
    text
}

/// GPU, libraries, date and commit of a run, as the record has them, in a line.
pub fn provenance(head: &Head) -> String {
    let known = |name: &str, fact: &str| if fact.is_empty() { None } else { Some(format!("{name}{fact}")) };
    let parts = [
        known("", &head.gpu),
        known("driver ", &head.driver),
        known("NVRTC ", &head.nvrtc),
        known("cuSPARSE ", &head.cusparse.join(" and ")),
        (head.copy_gb_per_s > 0.0).then(|| format!("copy roof {:.0} GB/s", head.copy_gb_per_s)),
        known("", head.date.split('T').next().unwrap_or("")),
        known("commit ", &head.short_commit(12)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "Of unknown origin.".to_owned() } else { format!("{}.", parts.join(", ")) }
}

fn title(operation: &str) -> String {
    match operation {
        "non_transpose" => "y ← Ax".to_owned(),
        "transpose" => "y ← Aᵀx".to_owned(),
        "symmetric" => "y ← Ax, A symmetric".to_owned(),
        other => cell(other),
    }
}

/// What the algorithms reach that take the matrix as it is: the others compute the transpose from a copy.
fn without_copy(problems: &[&Problem<'_>]) -> String {
    let own = Algorithm::ALL.iter().filter(|spec| spec.operations[0] == Operation::Transpose);
    let names: Vec<&str> = own.map(|spec| spec.name).collect();
    let means = values(problems).into_iter().filter_map(|value| {
        let of = problems.iter().filter(|problem| problem.value == value);
        let ratios = of.filter_map(|problem| {
            let ours = problem.fastest(|row| names.iter().any(|name| row.contender == ours_name(name)))?;
            Some(problem.best("cusparse")?.ms / ours.ms)
        });
        let ratios: Vec<f64> = ratios.collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = geomean(ratios.iter().copied())?;
        Some(format!("{} {mean:.2} (least {least:.2}, {} matrices)", cell(value), ratios.len()))
    });
    let means: Vec<String> = means.collect();
    let reached = if means.is_empty() { "no time".to_owned() } else { means.join(", ") };
    format!(
        "Algorithms of the plain product take part with a transposed copy of the matrix, which a plan makes and keeps. Those without one ({}): {reached}.",
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    )
}

/// Geometric means by value type.
fn means(text: &mut String, problems: &[&Problem<'_>]) {
    put(
        text,
        format_args!(
            "| values | matrices | geometric mean | least | most | slower than cuSPARSE | not both solved | mean over cuSPARSE on CSR | slower |\n|---|---|---|---|---|---|---|---|---|\n"
        ),
    );
    for value in values(problems) {
        let of: Vec<_> = problems.iter().filter(|problem| problem.value == value).collect();
        let ratios: Vec<f64> = of.iter().filter_map(|problem| problem.speed_up()).collect();
        let unsolved = of.len() - ratios.len();
        let losses = ratios.iter().filter(|ratio| **ratio < 1.0).count();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let on_csr: Vec<f64> = of.iter().filter_map(|problem| problem.speed_up_on_csr()).collect();
        let csr_losses = on_csr.iter().filter(|ratio| **ratio < 1.0).count();
        let csr_mean = geomean(on_csr.iter().copied()).map_or("—".to_owned(), |mean| format!("{mean:.2}"));
        match geomean(ratios.iter().copied()) {
            Some(mean) => put(
                text,
                format_args!(
                    "| {} | {} | **{mean:.2}** | {least:.2} | {most:.2} | {losses} | {unsolved} | {csr_mean} | {csr_losses} |\n",
                    cell(value),
                    ratios.len()
                ),
            ),
            None => put(
                text,
                format_args!(
                    "| {} | 0 | — | — | — | 0 | {unsolved} | {csr_mean} | {csr_losses} |\n",
                    cell(value)
                ),
            ),
        }
    }
}

fn values<'a>(problems: &[&Problem<'a>]) -> Vec<&'a str> {
    let mut values: Vec<&str> = Vec::new();
    for problem in problems {
        if !values.contains(&problem.value) {
            values.push(problem.value);
        }
    }
    values
}

/// A line of the table.
struct Line<'a> {
    name: String,
    value: &'a str,
    cusparse: Option<(f64, String)>,
    ours: Option<(f64, String)>,
    speed_up: Option<f64>,
    roof: Option<f64>,
}

fn lines<'a>(problems: &[&Problem<'a>]) -> Vec<Line<'a>> {
    let (files, generated): (Vec<&Problem<'a>>, Vec<&Problem<'a>>) =
        problems.iter().partition(|problem| problem.class == FILES);
    let mut lines: Vec<Line<'a>> = generated.into_iter().map(of_problem).collect();
    for value in values(&files) {
        let of: Vec<_> = files.iter().copied().filter(|problem| problem.value == value).collect();
        lines.push(of_files(value, &of));
    }
    lines
}

/// Geometric means over the matrices from files that both sides solved.
fn of_files<'a>(value: &'a str, files: &[&Problem<'a>]) -> Line<'a> {
    let solved: Vec<(Timed<'_>, Timed<'_>)> =
        files.iter().filter_map(|problem| Some((problem.best("cusparse")?, problem.ours()?))).collect();
    let mut name = match solved.len() {
        1 => "1 matrix from a file".to_owned(),
        count => format!("{count} matrices from files"),
    };
    if solved.len() < files.len() {
        name = format!("{name}, {} more not solved by both", files.len() - solved.len());
    }
    let losses = solved.iter().filter(|(theirs, ours)| theirs.ms < ours.ms).count();
    let mean = |of: &dyn Fn(&(Timed<'_>, Timed<'_>)) -> f64| geomean(solved.iter().map(of));
    let roofs: Option<Vec<f64>> = solved.iter().map(|(_, ours)| ours.row.roof_fraction).collect();
    Line {
        name,
        value,
        cusparse: mean(&|(theirs, _)| theirs.ms).map(|ms| (ms, "geometric mean".to_owned())),
        ours: mean(&|(_, ours)| ours.ms).map(|ms| (ms, format!("slower on {losses}"))),
        speed_up: mean(&|(theirs, ours)| theirs.ms / ours.ms),
        roof: roofs.and_then(geomean),
    }
}

fn of_problem<'a>(problem: &Problem<'a>) -> Line<'a> {
    let told = |best: Timed<'_>| (best.ms, format!("`{}`", short(&best.row.contender).replace('`', "'")));
    Line {
        name: cell(problem.matrix),
        value: problem.value,
        cusparse: problem.best("cusparse").map(told),
        ours: problem.ours().map(told),
        speed_up: problem.speed_up(),
        roof: problem.ours().and_then(|best| best.row.roof_fraction),
    }
}

impl Line<'_> {
    fn write(&self, text: &mut String) {
        let time = |time: &Option<(f64, String)>| match time {
            Some((ms, who)) => format!("{} {}", significant(*ms), cell(who)),
            None => "—".to_owned(),
        };
        let speed_up = match self.speed_up {
            Some(ratio) if ratio < 1.0 => format!("{ratio:.2} (slower)"),
            Some(ratio) => format!("**{ratio:.2}**"),
            None => "—".to_owned(),
        };
        let roof = self.roof.map_or("—".to_owned(), |share| format!("{share:.2}"));
        let (cusparse, ours) = (time(&self.cusparse), time(&self.ours));
        put(
            text,
            format_args!(
                "| {} | {} | {cusparse} | {ours} | {speed_up} | {roof} |\n",
                self.name,
                cell(self.value)
            ),
        );
    }
}

/// The contender without its side.
fn short(contender: &str) -> &str {
    contender.split_once(':').map_or(contender, |(_, name)| name)
}

/// Three digits that count.
pub(crate) fn significant(ms: f64) -> String {
    let digits = (2.0 - ms.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{ms:.digits$}")
}

/// Text that stays in its cell and is not markup.
fn cell(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.replace('\\', "\\\\").replace('|', "\\|").replace('&', "&amp;").replace('<', "&lt;")
}

fn put(to: &mut String, text: std::fmt::Arguments<'_>) {
    to.write_fmt(text).expect("a text in memory takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Row;

    fn row(matrix: &str, class: &str, contender: &str, cold_ms: f64) -> Row {
        Row {
            matrix: matrix.into(),
            class: class.into(),
            value: "f32".into(),
            operation: "non_transpose".into(),
            contender: contender.into(),
            cold_ms: Some(cold_ms),
            roof_fraction: Some(0.5),
            status: "ok".into(),
            ..Row::default()
        }
    }

    #[test]
    fn losses_are_in_the_table() {
        let mut rows = vec![
            row("won | <b>", "stencil_5", "cusparse:csr_alg2", 0.2),
            row("won | <b>", "stencil_5", "ours:csr_vector", 0.1),
            row("lost", "rmat", "cusparse:spmvop", 0.1),
            row("lost", "rmat", "ours:csr_vector", 0.125),
            row("a.mtx", "file", "cusparse:csr_alg1", 0.4),
            row("a.mtx", "file", "ours:csr_scalar", 0.1),
            row("b.mtx", "file", "cusparse:csr_alg1", 0.1),
            row("b.mtx", "file", "ours:csr_scalar", 0.1),
            row("c.mtx", "file", "ours:csr_scalar", 0.1),
            row("alone", "dense", "ours:csr_scalar", 12.345),
        ];
        rows.push(Row { status: "wrong: 1 row".into(), ..row("alone", "dense", "cusparse:csr_alg1", 0.1) });
        let head = Head {
            gpu: "NVIDIA <H200>".into(),
            driver: "580.95".into(),
            cusparse: vec!["12.6".into(), "12.9.4".into()],
            date: "2026-01-02T03:04:05Z".into(),
            commit: "0123456789abcdef".into(),
            copy_gb_per_s: 4253.4,
            ..Head::default()
        };
        let text = markdown(&Record { head, rows });
        for line in [
            "NVIDIA &lt;H200>, driver 580.95, cuSPARSE 12.6 and 12.9.4, copy roof 4253 GB/s, 2026-01-02, commit 0123456789ab.",
            "| f32 | 4 | **1.59** | 0.80 | 4.00 | 1 | 2 | 1.59 | 1 |",
            "| won \\| &lt;b> | f32 | 0.200 `csr_alg2` | 0.100 `csr_vector` | **2.00** | 0.50 |",
            "| lost | f32 | 0.100 `spmvop` | 0.125 `csr_vector` | 0.80 (slower) | 0.50 |",
            "| alone | f32 | — | 12.3 `csr_scalar` | — | 0.50 |",
            "| 2 matrices from files, 1 more not solved by both | f32 | 0.200 geometric mean | 0.100 slower on 0 | **2.00** | 0.50 |",
            "1 of 11 rows of the record are wrong or failed; they count for nobody.",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n\n{text}");
        }
    }

    #[test]
    fn copies_are_told_apart() {
        let transposed = |matrix, contender, ms| Row {
            operation: "transpose".into(),
            ..row(matrix, "rmat", contender, ms)
        };
        let rows = vec![
            transposed("a", "cusparse:csr_alg1", 0.4),
            transposed("a", "ours:hola", 0.1),
            transposed("a", "ours:planned_t", 0.2),
            transposed("b", "cusparse:csr_alg1", 0.4),
            transposed("b", "ours:naive_t", 0.8),
            transposed("c", "cusparse:csr_alg1", 0.4),
            transposed("c", "ours:hola", 0.1),
        ];
        let text = markdown(&Record { head: Head::default(), rows });
        assert!(text.contains("`planned_t`): f32 1.00 (least 0.50, 2 matrices)."), "{text}");
        assert!(text.contains("| f32 | 3 | **2.00** | 0.50 |"), "{text}");
    }

    #[test]
    fn records_without_results() {
        let none = "The record has no matrix on which both sides have a right result and a time.";
        assert_eq!(markdown(&Record::default()), format!("Of unknown origin.\n\n{none}\n"));
        let failed = Row { status: "failed: no device".into(), ..row("m", "c", "ours:a", 1.0) };
        assert!(markdown(&Record { rows: vec![failed], ..Record::default() }).contains(none));
    }
}
