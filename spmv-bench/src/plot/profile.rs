//! Performance profiles (Dolan and Moré 2002): on which share of the problems a contender is within a factor of the
//! fastest.

use super::axis::Axis;
use super::chart::{AREA, Chart, Frame, Sample};
use super::palette::Style;
use super::{Group, Picture, PlotError};

const WHAT: &str = "Performance profile";

const ABOUT: &str = "A curve says on which share of the matrices a contender, with its best parameters on each, takes \
    at most so many times as long as the fastest of all. Where it starts is the share on which it is the fastest; a \
    contender without a right result on a matrix never gets there. Higher is better.";

/// The largest factor that is drawn.
const FARTHEST: f64 = 10.0;

/// A curve's share from a factor on.
type Step = (f64, f64);

pub(super) fn draw(group: &Group<'_>) -> Result<Picture, PlotError> {
    let fastest: Vec<f64> =
        group.problems.iter().filter_map(|problem| Some(problem.fastest(|_| true)?.ms)).collect();
    if fastest.is_empty() {
        return Err(group.nothing(WHAT, "no row has a right result and a time"));
    }
    let mut curves: Vec<(&str, Style, Vec<Step>)> = Vec::new();
    for (&contender, &style) in group.styles {
        let ratios = group
            .problems
            .iter()
            .filter_map(|problem| Some(problem.best_of(contender)?.ms / problem.fastest(|_| true)?.ms));
        let steps = steps(ratios.collect(), fastest.len());
        if !steps.is_empty() {
            curves.push((contender, style, steps));
        }
    }
    let within = |steps: &[Step], factor: f64| {
        steps.iter().take_while(|step| step.0 <= factor).last().map_or(0.0, |step| step.1)
    };
    let order = |steps: &[Step]| (within(steps, 1.0), within(steps, 1.5), within(steps, FARTHEST));
    curves.sort_by(|a, b| order(&b.2).partial_cmp(&order(&a.2)).unwrap_or(std::cmp::Ordering::Equal));
    let legend: Vec<_> = curves
        .iter()
        .map(|(name, style, steps)| {
            (Sample::PointOnLine(*style), format!("{:3.0} % {name}", 100.0 * within(steps, 1.0)))
        })
        .collect();
    let slowest = curves.iter().flat_map(|curve| &curve.2).map(|step| step.0).fold(1.0, f64::max);
    let end = slowest.clamp(1.5, FARTHEST);
    let mut chart = Chart::new(Frame {
        title: &group.title(WHAT),
        subtitle: &format!(
            "{}; {} matrices; the legend says how often each is the fastest",
            group.subtitle(),
            fastest.len()
        ),
        x: Axis::log("time over that of the fastest, at most", 1.0, end),
        y: Axis::linear("share of the matrices", 0.0, 1.02),
        legend: &legend,
        area: AREA,
    });
    for (index, (name, style, steps)) in curves.iter().enumerate().rev() {
        let corners = corners(steps, end);
        chart.path(&corners, style.stroke(2.0), name);
        // Markers of different curves stand at different places.
        for part in 0..3 {
            let at = end.powf((part as f64 + (index as f64 * 0.618).fract()) / 3.0);
            chart.point(at, within(steps, at), *style, name);
        }
    }
    Ok(group.picture("profile", WHAT, ABOUT, chart.finish()))
}

/// The shares of `count` problems that are reached at each factor, rising.
fn steps(mut ratios: Vec<f64>, count: usize) -> Vec<Step> {
    ratios.sort_by(f64::total_cmp);
    let mut steps: Vec<Step> = Vec::new();
    for (index, ratio) in ratios.into_iter().enumerate() {
        let share = (index + 1) as f64 / count as f64;
        match steps.last_mut() {
            Some(last) if last.0 == ratio => last.1 = share,
            _ => steps.push((ratio, share)),
        }
    }
    steps
}

/// The corners of the stairs from factor 1 to `end`.
fn corners(steps: &[Step], end: f64) -> Vec<(f64, f64)> {
    let mut share = 0.0;
    let mut corners = vec![(1.0, 0.0)];
    for (factor, reached) in steps.iter().take_while(|step| step.0 <= end) {
        if *factor > 1.0 {
            corners.push((*factor, share));
            corners.push((*factor, *reached));
        } else {
            corners[0].1 = *reached;
        }
        share = *reached;
    }
    corners.push((end, share));
    corners
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_missing_never_get_there() {
        let steps = steps(vec![2.0, 1.0, 1.0], 4);
        assert_eq!(steps, [(1.0, 0.5), (2.0, 0.75)]);
        assert_eq!(corners(&steps, 4.0), [(1.0, 0.5), (2.0, 0.5), (2.0, 0.75), (4.0, 0.75)]);
        assert_eq!(corners(&steps, 1.5), [(1.0, 0.5), (1.5, 0.5)]);
        assert_eq!(corners(&[(3.0, 1.0)], 2.0), [(1.0, 0.0), (2.0, 0.0)]);
    }

    proptest! {
        #[test]
        fn curves_rise_to_the_share_that_was_solved(
            ratios in prop::collection::vec(1.0..20.0f64, 0..30), missing in 0usize..5
        ) {
            let count = ratios.len() + missing;
            let solved = ratios.len();
            let steps = steps(ratios, count);
            prop_assert!(steps.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
            let last = steps.last().map_or(0.0, |step| step.1);
            prop_assert!(solved == 0 || (last - solved as f64 / count as f64).abs() < 1e-12);
            let corners = corners(&steps, 10.0);
            prop_assert!(corners.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
        }
    }
}
