//! The roofline: what memory allows, and how near each contender comes.

use super::axis::Axis;
use super::chart::{AREA, Chart, Frame, Sample};
use super::palette::BLACK;
use super::svg::Stroke;
use super::{Group, Picture, PlotError};

const WHAT: &str = "Roofline";

const ABOUT: &str = "A point is a matrix: GFLOP/s of a contender with its best parameters, over flop per byte that \
    must move (2 nnz over the matrix as the contender stores it, x once and y once). The line is the copy roof, \
    measured in the same run; no point passes it unless a cache serves it. The arithmetic peak is far above and not \
    measured, so it is not drawn.";

const ROOF: Stroke = Stroke { colour: BLACK, width: 2.0, dash: "" };
const HALF: Stroke = Stroke { colour: BLACK, width: 1.0, dash: "6 4" };

pub(super) fn draw(group: &Group<'_>) -> Result<Picture, PlotError> {
    let roof = group.head.copy_gb_per_s;
    if !(roof.is_finite() && roof > 0.0) {
        return Err(group.nothing(WHAT, "the head has no copy roof"));
    }
    let entrants: Vec<_> =
        group.entrants().into_iter().filter(|entrant| !entrant.name.starts_with("CPU")).collect();
    let mut points = Vec::new();
    for (index, entrant) in entrants.iter().enumerate() {
        for problem in &group.problems {
            let Some(best) = problem.fastest(&entrant.asked) else { continue };
            let Some(bytes) = best.row.moved_bytes.filter(|bytes| *bytes > 0) else { continue };
            if best.row.nnz > 0 {
                let intensity = 2.0 * best.row.nnz as f64 / bytes as f64;
                let share = best.gflops() / (intensity * roof);
                let hint = format!("{}\n{}\n{:.2} of the roof", problem.matrix, best.row.label(), share);
                points.push((index, intensity, best.gflops(), hint));
            }
        }
    }
    if points.is_empty() {
        return Err(
            group.nothing(WHAT, "no row of a GPU has a right result, a time, nonzeros and moved bytes")
        );
    }
    let mut legend = vec![
        (Sample::Line(ROOF), format!("copy roof, {roof:.0} GB/s")),
        (Sample::Line(HALF), "half of it".to_owned()),
    ];
    legend.extend(entrants.iter().map(|entrant| (Sample::Point(entrant.style), entrant.name.clone())));
    let x = Axis::log_around("flop per byte that must move", points.iter().map(|point| point.1));
    let (low, high) = (x.low(), x.high());
    let tops = [low * roof / 2.0, high * roof];
    let mut chart = Chart::new(Frame {
        title: &group.title(WHAT),
        subtitle: &group.subtitle(),
        x,
        y: Axis::log_around("GFLOP/s", points.iter().map(|point| point.2).chain(tops)),
        legend: &legend,
        area: AREA,
    });
    chart.path(&[(low, low * roof), (high, high * roof)], ROOF, "");
    chart.path(&[(low, low * roof / 2.0), (high, high * roof / 2.0)], HALF, "");
    // cuSPARSE comes first among the entrants and is drawn on top.
    for (index, intensity, gflops, hint) in points.into_iter().rev() {
        chart.point(intensity, gflops, entrants[index].style, &hint);
    }
    Ok(group.picture("roofline", WHAT, ABOUT, chart.finish()))
}
