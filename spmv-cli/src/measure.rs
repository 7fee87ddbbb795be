//! Time of a product: medians over batches that are long beside the clock's noise.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Progress;

/// The fewest samples that a median is taken of.
const MIN_SAMPLES: usize = 15;

/// The most products of one batch.
const MAX_BATCH: u32 = 1 << 16;

/// How long a batch is at least: thousands of times what clocks and events resolve.
const MIN_BATCH: Duration = Duration::from_millis(5);

/// How long products run before any is timed, at most.
const WARM_UP: Duration = Duration::from_millis(100);

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Samples to take; at least [`MIN_SAMPLES`].
    pub samples: usize,
    /// About how long all of it may take, beside the fewest samples.
    pub limit: Duration,
}

/// Times of batches, in ascending order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Samples {
    pub samples: usize,
    pub products_per_sample: u32,
    /// Milliseconds a product.
    pub median_ms: f64,
    pub min_ms: f64,
    pub max_ms: f64,
    /// Distance of the quartiles as a part of the median, in percent.
    pub spread_percent: f64,
}

/// Measures a product. `batch` computes it so many times one after the other and says how long that took.
pub fn measure(
    effort: Effort,
    mut batch: impl FnMut(u32) -> Result<Duration, Failure>,
) -> Result<Samples, Failure> {
    let _progress = Progress::start("timing");
    let started = Instant::now();
    let samples = effort.samples.max(MIN_SAMPLES);
    let budget = effort.limit / samples as u32;
    let mut products = 1;
    let mut took = batch(products)?;
    while took < MIN_BATCH && took * 2 <= budget && products < MAX_BATCH {
        products *= 2;
        took = batch(products)?;
    }
    // Clocks rise only under load.
    let (warm_up, warming) = (WARM_UP.min(effort.limit / 10), Instant::now());
    while warming.elapsed() < warm_up {
        batch(products)?;
    }
    let mut times = Vec::with_capacity(samples);
    while times.len() < samples && (times.len() < MIN_SAMPLES || started.elapsed() < effort.limit) {
        times.push(batch(products)?.as_secs_f64() * 1e3 / f64::from(products));
    }
    Ok(Samples::of(times, products))
}

impl Samples {
    fn of(mut times_ms: Vec<f64>, products_per_sample: u32) -> Samples {
        times_ms.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let position = part * (times_ms.len() - 1) as f64;
            let (low, high) = (times_ms[position.floor() as usize], times_ms[position.ceil() as usize]);
            low + (high - low) * position.fract()
        };
        let median_ms = at(0.5);
        Samples {
            samples: times_ms.len(),
            products_per_sample,
            median_ms,
            min_ms: at(0.0),
            max_ms: at(1.0),
            spread_percent: if median_ms > 0.0 { (at(0.75) - at(0.25)) / median_ms * 100.0 } else { 0.0 },
        }
    }
}

/// What a time means for a product of a matrix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Performance {
    #[serde(flatten)]
    pub samples: Samples,
    /// Multiplications of real numbers, each with an addition, / t.
    pub gflops: f64,
    /// Bytes that must move: the matrix as stored, x once, y once, and y once more where beta is not 0.
    pub bytes: u64,
    /// Those bytes / t.
    pub gb_per_s: f64,
    /// Products follow one another, so what fits in a cache stays there.
    pub cache: &'static str,
}

impl Performance {
    pub fn new(samples: Samples, multiplications: usize, bytes: u64) -> Performance {
        let per_second =
            |amount: f64| if samples.median_ms > 0.0 { amount / (samples.median_ms * 1e6) } else { 0.0 };
        Performance {
            gflops: per_second(2.0 * multiplications as f64),
            bytes,
            gb_per_s: per_second(bytes as f64),
            cache: "warm",
            samples,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spread() {
        let samples = Samples::of(vec![5.0, 1.0, 2.0, 4.0, 3.0], 7);
        assert_eq!((samples.min_ms, samples.median_ms, samples.max_ms), (1.0, 3.0, 5.0));
        assert!((samples.spread_percent - 200.0 / 3.0).abs() < 1e-9);
        let performance = Performance::new(samples, 3_000_000, 6_000_000);
        assert_eq!((performance.gflops, performance.gb_per_s), (2.0, 2.0));
    }

    #[test]
    fn batches_grow_until_they_are_long_enough() {
        let effort = Effort { samples: 20, limit: Duration::from_secs(1) };
        let samples = measure(effort, |products| Ok(Duration::from_micros(100) * products)).unwrap();
        assert_eq!((samples.samples, samples.products_per_sample), (20, 64));
        assert!((samples.median_ms - 0.1).abs() < 1e-9);
    }

    #[test]
    fn long_products_are_taken_one_by_one_and_often_enough() {
        let effort = Effort { samples: 100, limit: Duration::ZERO };
        let samples = measure(effort, |products| Ok(Duration::from_secs(5) * products)).unwrap();
        assert_eq!((samples.samples, samples.products_per_sample), (MIN_SAMPLES, 1));
    }
}
