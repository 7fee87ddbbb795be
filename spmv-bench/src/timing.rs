//! Times of contenders that take turns, sample by sample.

use std::time::{Duration, Instant};

use spmv_runtime::{RealElement, Vector};

use crate::contender::Product;
use crate::instruments::{Instruments, Stopwatch};
use crate::quartiles::Quartiles;
use crate::request::Effort;

/// Samples of what is much slower than the best.
const FEW: usize = 3;

/// How much slower that is.
const MUCH_SLOWER: f64 = 30.0;

/// How long a batch of products on the GPU is at least: hundreds of times what events resolve.
const GPU_BATCH_MS: f64 = 0.2;

/// The same on the host, whose clock and scheduler are less exact.
const HOST_BATCH_MS: f64 = 1.0;

const MAX_BATCH: f64 = 64.0;

/// The stream is kept busy while the host fills it, for this part longer than filling took before.
const PAUSE_MARGIN: f64 = 1.5;

const PAUSE_NS: std::ops::RangeInclusive<f64> = 20_000.0..=3_000_000.0;

/// A contender while it is timed.
pub(crate) struct Lane<'t, V> {
    /// Its row.
    pub(crate) index: usize,
    product: Product<'t, V>,
    /// About how long a product takes.
    ms: f64,
    samples: usize,
    batch: u32,
    cold: Vec<f64>,
    warm: Vec<f64>,
    /// How long the host takes to launch a product, in nanoseconds.
    launch_ns: Vec<f64>,
    /// Why it was not timed to the end.
    pub(crate) error: Option<String>,
}

impl<'t, V> Lane<'t, V> {
    pub(crate) fn new(index: usize, product: Product<'t, V>, ms: f64) -> Lane<'t, V> {
        Lane {
            index,
            product,
            ms,
            samples: 0,
            batch: 1,
            cold: Vec::new(),
            warm: Vec::new(),
            launch_ns: Vec::new(),
            error: None,
        }
    }

    pub(crate) fn cold(&self) -> Option<Quartiles> {
        Quartiles::of(self.cold.clone())
    }

    pub(crate) fn warm(&self) -> Option<Quartiles> {
        Quartiles::of(self.warm.clone())
    }

    /// Samples of the kind that ranks: cold where there are any.
    pub(crate) fn samples_taken(&self) -> usize {
        if self.cold.is_empty() { self.warm.len() } else { self.cold.len() }
    }

    fn on_host(&self) -> bool {
        matches!(self.product, Product::OnHost(_))
    }

    /// How often and how long it is sampled, beside others of which the best takes `best_ms`.
    fn plan(&mut self, effort: Effort, best_ms: f64) {
        let batch_ms = if self.on_host() { HOST_BATCH_MS } else { GPU_BATCH_MS };
        self.batch = (batch_ms / self.ms.max(1e-6)).ceil().clamp(1.0, MAX_BATCH) as u32;
        let limit_ms = effort.limit.as_secs_f64() * 1e3;
        let affordable = limit_ms / (self.ms * (1.0 + f64::from(self.batch))).max(1e-6);
        self.samples = match self.ms > MUCH_SLOWER * best_ms {
            true => FEW.min(effort.samples),
            false => effort.samples.min((affordable as usize).max(FEW)),
        };
    }
}

/// Times all lanes: on the GPU cold, then warm, each in turn; then on the host.
pub(crate) fn time<V: RealElement>(
    lanes: &mut [Lane<'_, V>],
    effort: Effort,
    instruments: Option<&Instruments>,
    device: Option<(&Vector<V>, &mut Vector<V>)>,
    host: (&[V], &mut [V]),
) {
    let best = lanes.iter().map(|lane| lane.ms).fold(f64::INFINITY, f64::min);
    for lane in lanes.iter_mut() {
        lane.plan(effort, best);
    }
    let (mut on_host, mut on_gpu): (Vec<_>, Vec<_>) = lanes.iter_mut().partition(|lane| lane.on_host());
    if let (Some(instruments), Some((x, y))) = (instruments, device) {
        time_on_gpu(&mut on_gpu, instruments, effort.limit, x, y);
    }
    time_on_host(&mut on_host, host.0, host.1);
}

fn rounds<V>(lanes: &[&mut Lane<'_, V>]) -> usize {
    lanes.iter().map(|lane| lane.samples).max().unwrap_or(0)
}

fn time_on_host<V: RealElement>(lanes: &mut [&mut Lane<'_, V>], x: &[V], y: &mut [V]) {
    for round in 0..rounds(lanes) {
        for lane in lanes.iter_mut().filter(|lane| round < lane.samples && lane.error.is_none()) {
            let Product::OnHost(product) = &mut lane.product else { continue };
            let started = Instant::now();
            let done = (0..lane.batch).try_for_each(|_| product(x, y));
            let ms = started.elapsed().as_secs_f64() * 1e3 / f64::from(lane.batch);
            match done {
                Ok(()) => lane.warm.push(ms),
                Err(error) => lane.error = Some(error),
            }
        }
    }
}

fn time_on_gpu<V: RealElement>(
    lanes: &mut [&mut Lane<'_, V>],
    instruments: &Instruments,
    limit: Duration,
    x: &Vector<V>,
    y: &mut Vector<V>,
) {
    let watch = match instruments.stopwatch() {
        Ok(watch) => watch,
        Err(error) => {
            lanes.iter_mut().for_each(|lane| lane.error = Some(error.clone()));
            return;
        }
    };
    for round in 0..rounds(lanes) {
        for lane in lanes.iter_mut().filter(|lane| round < lane.samples && lane.error.is_none()) {
            match lane.sample_cold(instruments, &watch, x, y) {
                Ok(ms) => lane.cold.push(ms),
                Err(error) => lane.error = Some(error),
            }
        }
    }
    for round in 0..rounds(lanes) {
        let affordable = |lane: &Lane<'_, V>| lane.ms <= limit.as_secs_f64() * 1e3;
        for lane in
            lanes.iter_mut().filter(|lane| round < lane.samples && lane.error.is_none() && affordable(lane))
        {
            match lane.sample_warm(instruments, &watch, x, y) {
                Ok(ms) => lane.warm.push(ms),
                Err(error) => lane.error = Some(error),
            }
        }
    }
}

impl<V: RealElement> Lane<'_, V> {
    fn launch(&mut self, x: &Vector<V>, y: &mut Vector<V>) -> Result<(), String> {
        match &mut self.product {
            Product::OnDevice(product) => product(x, y),
            Product::OnHost(_) => Err("a product of the host is not launched".into()),
        }
    }

    /// Milliseconds of a product after a flush, which hides how long launching takes. Nothing else is launched before it
    /// is over: what the host sends meanwhile makes a product of some microseconds half a microsecond longer.
    fn sample_cold(
        &mut self,
        instruments: &Instruments,
        watch: &Stopwatch,
        x: &Vector<V>,
        y: &mut Vector<V>,
    ) -> Result<f64, String> {
        instruments.flush()?;
        instruments.start(watch)?;
        let started = Instant::now();
        self.launch(x, y)?;
        self.launch_ns.push(started.elapsed().as_nanos() as f64);
        instruments.stop(watch)?;
        instruments.synchronize()?;
        instruments.elapsed_ms(watch)
    }

    /// Milliseconds of a product in a batch that follows another product.
    fn sample_warm(
        &mut self,
        instruments: &Instruments,
        watch: &Stopwatch,
        x: &Vector<V>,
        y: &mut Vector<V>,
    ) -> Result<f64, String> {
        let launch_ns = Quartiles::of(self.launch_ns.clone()).map_or(10_000.0, |ns| ns.median);
        let filling = launch_ns * f64::from(self.batch + 1) * PAUSE_MARGIN;
        instruments.pause(filling.clamp(*PAUSE_NS.start(), *PAUSE_NS.end()) as u64)?;
        self.launch(x, y)?;
        instruments.start(watch)?;
        for _ in 0..self.batch {
            self.launch(x, y)?;
        }
        instruments.stop(watch)?;
        instruments.synchronize()?;
        Ok(instruments.elapsed_ms(watch)? / f64::from(self.batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(ms: f64) -> Lane<'static, f32> {
        Lane::new(0, Product::OnHost(Box::new(|_, _| Ok(()))), ms)
    }

    #[test]
    fn slow_ones_get_fewer_samples() {
        let effort = Effort { samples: 21, limit: Duration::from_millis(500) };
        let planned = |ms: f64, best: f64| {
            let mut lane = lane(ms);
            lane.plan(effort, best);
            (lane.samples, lane.batch)
        };
        assert_eq!(planned(0.1, 0.1), (21, 10));
        assert_eq!(planned(2.9, 0.1), (21, 1));
        assert_eq!(planned(3.1, 0.1), (3, 1));
        assert_eq!(planned(50.0, 40.0), (5, 1));
        assert_eq!(planned(900.0, 900.0), (3, 1));
    }

    #[test]
    fn lanes_take_turns() {
        use std::cell::RefCell;
        let order = RefCell::new(Vec::new());
        let product = |name: &'static str| {
            let order = &order;
            Product::OnHost(Box::new(move |_: &[f32], _: &mut [f32]| {
                order.borrow_mut().push(name);
                if name == "c" { Err("broken".to_owned()) } else { Ok(()) }
            }))
        };
        let mut lanes: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .enumerate()
            .map(|(index, name)| Lane::new(index, product(name), 2.0))
            .collect();
        let effort = Effort { samples: 3, limit: Duration::from_secs(1) };
        time(&mut lanes, effort, None, None, (&[], &mut []));
        assert_eq!(lanes[0].samples_taken(), 3);
        assert_eq!(lanes[2].error.as_deref(), Some("broken"));
        drop(lanes);
        assert_eq!(order.into_inner(), ["a", "b", "c", "a", "b", "a", "b"]);
    }
}
