//! GFLOP/s over the mean row length.

use super::axis::Axis;
use super::chart::{AREA, Chart, Frame, Sample};
use super::{Group, Picture, PlotError};

const WHAT: &str = "Throughput over row length";

const ABOUT: &str = "A point is a matrix: 2 nnz / t of a contender with its best parameters, over the mean number of \
    nonzeros a row. Higher is faster.";

pub(super) fn draw(group: &Group<'_>) -> Result<Picture, PlotError> {
    let entrants = group.entrants();
    let mut points = Vec::new();
    for (index, entrant) in entrants.iter().enumerate() {
        for problem in &group.problems {
            let Some(best) = problem.fastest(&entrant.asked) else { continue };
            if best.row.nnz > 0 && best.row.rows > 0 {
                let length = best.row.nnz as f64 / best.row.rows as f64;
                let hint = format!("{}\n{}\n{:.4} ms", problem.matrix, best.row.label(), best.ms);
                points.push((index, length, best.gflops(), hint));
            }
        }
    }
    if points.is_empty() {
        return Err(group.nothing(WHAT, "no row has a right result, a time and nonzeros"));
    }
    let legend: Vec<_> =
        entrants.iter().map(|entrant| (Sample::Point(entrant.style), entrant.name.clone())).collect();
    let mut chart = Chart::new(Frame {
        title: &group.title(WHAT),
        subtitle: &group.subtitle(),
        x: Axis::log_around("nonzeros a row", points.iter().map(|point| point.1)),
        y: Axis::log_around("GFLOP/s", points.iter().map(|point| point.2)),
        legend: &legend,
        area: AREA,
    });
    // cuSPARSE comes first among the entrants and is drawn on top.
    for (index, length, gflops, hint) in points.into_iter().rev() {
        chart.point(length, gflops, entrants[index].style, &hint);
    }
    Ok(group.picture("throughput", WHAT, ABOUT, chart.finish()))
}
