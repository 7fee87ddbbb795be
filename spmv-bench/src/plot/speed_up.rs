//! How the speed-ups of our best over cuSPARSE's best are distributed.

use super::axis::Axis;
use super::chart::{AREA, Chart, Frame, Sample};
use super::palette::{BLACK, HUES};
use super::svg::Stroke;
use super::{Picture, PlotError, file_name, operation_text, subtitle, times_text};
use crate::geomean;
use crate::problem::Problem;
use crate::record::Head;

const WHAT: &str = "Speed-up over cuSPARSE";

const ABOUT: &str = "How many matrices have which speed-up: time of the best cuSPARSE path over that of our best \
    kernel. Left of 1 cuSPARSE is faster. Dashed lines are geometric means.";

/// Bins that a doubling is divided into.
const BINS_A_DOUBLING: f64 = 4.0;

const ONE: Stroke = Stroke { colour: BLACK, width: 2.0, dash: "" };

/// The speed-ups of a value type.
struct Series<'a> {
    value: &'a str,
    colour: &'static str,
    ratios: Vec<f64>,
}

pub(super) fn draw(head: &Head, operation: &str, problems: &[&Problem<'_>]) -> Result<Picture, PlotError> {
    let title = format!("{WHAT}: {}", operation_text(operation));
    let series = series(problems);
    let bins: Vec<i32> =
        series.iter().flat_map(|series| series.ratios.iter().map(|ratio| bin(*ratio))).collect();
    let (Some(first), Some(last)) = (bins.iter().min(), bins.iter().max()) else {
        let why = "no matrix has a right result and a time of both ours and cuSPARSE";
        return Err(PlotError::Nothing { picture: title, why: why.to_owned() });
    };
    let (first, last) = ((*first).min(-1), (*last).max(0));
    let count =
        |series: &Series<'_>, index| series.ratios.iter().filter(|ratio| bin(**ratio) == index).count();
    let tallest = (first..=last).map(|index| bins.iter().filter(|other| **other == index).count()).max();
    let mean_stroke = |colour| Stroke { colour, width: 2.0, dash: "6 4" };
    let mut legend = vec![(Sample::Line(ONE), "1: as fast as cuSPARSE".to_owned())];
    for Series { value, colour, ratios } in &series {
        let losses = ratios.iter().filter(|ratio| **ratio < 1.0).count();
        legend.push((
            Sample::Area((*colour).to_owned()),
            format!("{value}: {} matrices, {losses} below 1", ratios.len()),
        ));
        if let Some(mean) = geomean(ratios.iter().copied()) {
            legend.push((Sample::Line(mean_stroke(colour)), format!("{value}: geometric mean {mean:.2}")));
        }
    }
    let top = tallest.unwrap_or(1).max(1) as f64;
    let mut chart = Chart::new(Frame {
        title: &title,
        subtitle: &format!("{}; {}", subtitle(head), times_text(problems)),
        x: Axis::log("time of the best cuSPARSE path / time of our best", edge(first - 1), edge(last + 2)),
        y: Axis::linear("matrices", 0.0, top * 1.08),
        legend: &legend,
        area: AREA,
    });
    for index in first..=last {
        let mut bottom = 0.0;
        for series in &series {
            let count = count(series, index) as f64;
            if count > 0.0 {
                let hint =
                    format!("{}: {count} from {:.2} to {:.2}", series.value, edge(index), edge(index + 1));
                chart.bar((edge(index), edge(index + 1)), (bottom, bottom + count), series.colour, &hint);
                bottom += count;
            }
        }
    }
    chart.mark(1.0, ONE);
    for series in &series {
        if let Some(mean) = geomean(series.ratios.iter().copied()) {
            chart.mark(mean, mean_stroke(series.colour));
        }
    }
    let name = file_name(&format!("speed_up-{operation}"));
    Ok(Picture { name, title, about: ABOUT.to_owned(), svg: chart.finish() })
}

fn series<'a>(problems: &[&Problem<'a>]) -> Vec<Series<'a>> {
    let mut series: Vec<Series<'a>> = Vec::new();
    for problem in problems {
        let Some(ratio) = problem.speed_up() else { continue };
        match series.iter_mut().find(|series| series.value == problem.value) {
            Some(series) => series.ratios.push(ratio),
            None => {
                let colour = HUES[[0, 3, 2, 4, 1, 5][series.len() % HUES.len()]];
                series.push(Series { value: problem.value, colour, ratios: vec![ratio] });
            }
        }
    }
    series
}

/// The bin of a ratio; bin 0 starts at 1.
fn bin(ratio: f64) -> i32 {
    (ratio.log2() * BINS_A_DOUBLING).floor() as i32
}

/// The smallest ratio of a bin.
fn edge(bin: i32) -> f64 {
    (f64::from(bin) / BINS_A_DOUBLING).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_an_edge() {
        assert_eq!((bin(1.0), bin(0.9999), bin(2.0), bin(1.9999)), (0, -1, 4, 3));
        assert_eq!((edge(0), edge(4), edge(-4)), (1.0, 2.0, 0.5));
    }
}
