//! A record as one HTML file that needs nothing else: no script, no style, font or picture from elsewhere.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::geomean;
use crate::plot::{Gallery, Picture};
use crate::problem::{Problem, problems};
use crate::record::{Record, Row};
use crate::table::{provenance, significant};

const STYLE: &str = "
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,'DejaVu Sans',Verdana,sans-serif;max-width:1180px;margin:2rem auto;padding:0 1rem}
figure{margin:1.5rem 0;padding:.6rem;background:#fff;color:#222;border:1px solid #8886;border-radius:6px;overflow-x:auto}
figure svg{max-width:100%;height:auto}
figcaption{font-size:.85rem;margin:.3rem .4rem}
table{border-collapse:collapse;font-size:.82rem;margin:1rem 0}
th,td{padding:.2rem .6rem;text-align:left;border-bottom:1px solid #8885;overflow-wrap:break-word}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
tr.loss{background:#d55e0028}
.wide{overflow-x:auto}
";

/// The report: where and when, geometric means, pictures, a line for each problem with losses marked, the notes, and
/// every row that is wrong, failed or left out.
pub fn html(record: &Record, gallery: &Gallery) -> String {
    let problems = problems(&record.rows);
    let heading = match &*record.head.gpu {
        "" => "Sparse matrix–vector products".to_owned(),
        gpu => format!("Sparse matrix–vector products on {gpu}"),
    };
    let (skipped, broken): (Vec<&Row>, Vec<&Row>) =
        record.rows.iter().filter(|row| !row.is_ok()).partition(|row| row.status.starts_with("skipped"));
    let untimed: Vec<&Row> = problems
        .iter()
        .flat_map(|problem| {
            problem.rows.iter().copied().filter(|row| row.is_ok() && problem.timed(row).is_none())
        })
        .collect();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (heading) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (heading) }
                p { (provenance(&record.head)) }
                (head(record))
                h2 { "Geometric means of the speed-up" }
                (means(&problems))
                @if !gallery.pictures.is_empty() { h2 { "Pictures" } }
                @for picture in &gallery.pictures { (figure(picture)) }
                @if !gallery.left_out.is_empty() {
                    h2 { "Pictures that are missing" }
                    ul { @for why in &gallery.left_out { li { (why) } } }
                }
                h2 { "Matrices" }
                (matrices(&problems))
                @if !record.head.notes.is_empty() {
                    h2 { "Notes of the run" }
                    ul { @for note in &record.head.notes { li { (note) } } }
                }
                @let all = record.rows.len();
                (rest("Wrong results and failures", all, &broken))
                (rest("Left out", all, &skipped))
                (rest("Right, but without a time that counts", all, &untimed))
            }
        }
    }
    .into_string()
}

fn head(record: &Record) -> Markup {
    let head = &record.head;
    let measured = |number: f64, unit: &str| {
        if number > 0.0 { format!("{} {unit}", significant(number)) } else { String::new() }
    };
    let facts = [
        ("Date", head.date.clone()),
        ("Commit", head.commit.clone()),
        ("GPU", head.gpu.clone()),
        ("Architecture", head.arch.clone()),
        ("Driver", head.driver.clone()),
        ("CUDA of the driver", head.cuda.clone()),
        ("NVRTC", head.nvrtc.clone()),
        ("cuSPARSE", head.cusparse.join(", ")),
        ("CPU", head.cpu.clone()),
        ("CPU threads", if head.cpu_threads > 0 { head.cpu_threads.to_string() } else { String::new() }),
        ("L2 cache", measured(head.l2_bytes as f64 / f64::from(1 << 20), "MiB")),
        ("Copy roof", measured(head.copy_gb_per_s, "GB/s")),
        ("Launch of an empty kernel", measured(head.launch_ms, "ms")),
        ("Command", head.command.clone()),
        ("The whole run", measured(head.wall_s, "s")),
    ];
    html! {
        table { @for (name, fact) in facts.iter().filter(|fact| !fact.1.is_empty()) {
            tr { th { (name) } td { (fact) } }
        } }
    }
}

/// By value type and operation, then each class with them.
fn means(problems: &[Problem<'_>]) -> Markup {
    let mut groups: Vec<(Option<&str>, &str, &str, Vec<&Problem<'_>>)> = Vec::new();
    for by_class in [false, true] {
        for problem in problems {
            let key = (by_class.then_some(problem.class), problem.value, problem.operation);
            match groups.iter_mut().find(|group| (group.0, group.1, group.2) == key) {
                Some(group) => group.3.push(problem),
                None => groups.push((key.0, key.1, key.2, vec![problem])),
            }
        }
    }
    html! {
        p { "Time of the best cuSPARSE path over that of our best kernel, on the matrices that both solved; above 1 ours is faster." }
        div.wide { table {
            tr {
                th { "class" } th { "values" } th { "operation" } th.n { "matrices" } th.n { "not both solved" }
                th.n { "geometric mean" } th.n { "least" } th.n { "most" } th.n { "losses" }
            }
            @for (class, value, operation, of) in &groups {
                @let ratios: Vec<f64> = of.iter().filter_map(|problem| problem.speed_up()).collect();
                @let mean = geomean(ratios.iter().copied());
                tr.loss[mean.is_some_and(|mean| mean < 1.0)] {
                    td { @match class { Some(class) => (class), None => b { "all" } } }
                    td { (value) } td { (operation) }
                    td.n { (ratios.len()) } td.n { (of.len() - ratios.len()) }
                    td.n { (ratio(mean)) }
                    td.n { (ratio(ratios.iter().copied().reduce(f64::min))) }
                    td.n { (ratio(ratios.iter().copied().reduce(f64::max))) }
                    td.n { (ratios.iter().filter(|ratio| **ratio < 1.0).count()) }
                }
            }
        } }
    }
}

fn figure(picture: &Picture) -> Markup {
    html! {
        figure id=(picture.name) {
            (PreEscaped(&picture.svg))
            figcaption { (picture.about) }
        }
    }
}

fn matrices(problems: &[Problem<'_>]) -> Markup {
    html! {
        div.wide { table {
            tr {
                th { "matrix" } th { "class" } th { "values" } th { "operation" } th.n { "rows" } th.n { "nonzeros" }
                th.n { "cuSPARSE ms" } th { "which" } th.n { "ours ms" } th { "which" }
                th.n { "speed-up" } th.n { "of the roof" } th.n { "pays after" } th { "" }
            }
            @for problem in problems {
                @let (theirs, ours) = (problem.best("cusparse"), problem.ours());
                @let loss = problem.speed_up().is_some_and(|ratio| ratio < 1.0);
                @let ours_row = ours.map(|best| best.row);
                tr.loss[loss] {
                    td { (problem.matrix) } td { (problem.class) } td { (problem.value) } td { (problem.operation) }
                    td.n { (problem.rows.first().map_or(0, |row| row.rows)) }
                    td.n { (problem.rows.first().map_or(0, |row| row.nnz)) }
                    td.n { (time(theirs.map(|best| best.ms))) } td { (theirs.map_or(String::new(), |best| best.row.label())) }
                    td.n { (time(ours.map(|best| best.ms))) } td { (ours.map_or(String::new(), |best| best.row.label())) }
                    td.n { (ratio(problem.speed_up())) }
                    td.n { (ratio(ours_row.and_then(|row| row.roof_fraction))) }
                    td.n { (ours_row.and_then(|row| row.break_even).map_or("—".to_owned(), |products| format!("{products:.0}"))) }
                    td { @if loss { "loss" } }
                }
            }
        } }
        p { "Of the roof: bytes that must move at the copy roof over the time. Pays after: products until preparation is paid for." }
    }
}

fn rest(title: &str, all: usize, rows: &[&Row]) -> Markup {
    html! {
        @if !rows.is_empty() {
            h2 { (title) ": " (rows.len()) " of " (all) " rows" }
            div.wide { table {
                tr { th { "matrix" } th { "values" } th { "operation" } th { "contender" } th.n { "error / bound" } th { "status" } }
                @for row in rows {
                    tr {
                        td { (row.matrix) } td { (row.value) } td { (row.operation) } td { (row.label()) }
                        td.n { (row.err_over_bound.map_or("—".to_owned(), |error| format!("{error:.3}"))) }
                        td { (row.status) }
                    }
                }
            } }
        }
    }
}

fn time(ms: Option<f64>) -> String {
    ms.map_or("—".to_owned(), significant)
}

fn ratio(number: Option<f64>) -> String {
    number.map_or("—".to_owned(), |number| format!("{number:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::gallery;
    use crate::record::Head;

    fn row(contender: &str, cold_ms: Option<f64>, status: &str) -> Row {
        Row {
            matrix: "<script>alert(1)</script>&\"'".into(),
            class: "</style><img src=x>".into(),
            value: "f32".into(),
            operation: "non_transpose".into(),
            contender: contender.into(),
            params: "a=<b>".into(),
            rows: 100,
            nnz: 1000,
            moved_bytes: Some(8400),
            cold_ms,
            status: status.into(),
            ..Row::default()
        }
    }

    fn of(rows: Vec<Row>) -> String {
        let head = Head {
            gpu: "<script src=\"http://example.org/a.js\">".into(),
            copy_gb_per_s: 4000.0,
            notes: vec!["<iframe>".into()],
            ..Head::default()
        };
        let record = Record { head, rows };
        html(&record, &gallery(&record))
    }

    #[test]
    fn hostile_names_stay_text_and_nothing_is_loaded() {
        let text = of(vec![
            row("ours:<i>", Some(0.2), "ok"),
            row("cusparse:x", Some(0.1), "ok"),
            row("ours:w", None, "wrong: <object>"),
            row("ours:s", None, "skipped: <embed>"),
            row("ours:t", None, "ok"),
        ]);
        for tag in
            ["<script", "<img", "<iframe", "<object", "<embed", "<i>", "<b>", "<link", "@import", "url("]
        {
            assert!(!text.replace("<b>all</b>", "").contains(tag), "{tag}");
        }
        for attribute in ["src=\"", " href=\"http", " onload="] {
            assert!(!text.contains(attribute), "{attribute}");
        }
        for part in [
            "&lt;script&gt;alert(1)",
            "<p>&lt;script src=&quot;http://example.org/a.js&quot;&gt;, copy roof",
            "wrong: &lt;object&gt;",
            "Left out: 1 of 5",
            "<td>loss</td>",
            "&lt;iframe&gt;",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(text.contains("Right, but without a time that counts: 1 of 5"));
        assert_eq!(text.matches("<svg").count(), 4);
    }

    #[test]
    fn records_without_figures() {
        assert!(of(vec![]).contains("Sparse matrix–vector products"));
        let text = of(vec![row("ours:a", None, "failed: it fell"), row("cusparse:b", Some(0.0), "ok")]);
        assert!(
            text.contains("nothing to draw") && text.contains("failed: it fell") && !text.contains("<svg")
        );
    }
}
