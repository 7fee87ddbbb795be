//! Median and spread of samples.

/// Quartiles of samples, with linear interpolation between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// A quarter of the samples is smaller.
    pub lower: f64,
    /// The middle.
    pub median: f64,
    /// A quarter of the samples is larger.
    pub upper: f64,
}

impl Quartiles {
    /// Those of some samples; none of no samples.
    pub fn of(mut samples: Vec<f64>) -> Option<Quartiles> {
        samples.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let position = part * (samples.len() - 1) as f64;
            let (low, high) = (samples[position.floor() as usize], samples[position.ceil() as usize]);
            low + (high - low) * position.fract()
        };
        (!samples.is_empty()).then(|| Quartiles { lower: at(0.25), median: at(0.5), upper: at(0.75) })
    }

    /// Distance of the quartiles over the median.
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 { (self.upper - self.lower) / self.median } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_between_the_samples() {
        let quartiles = Quartiles::of(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(quartiles, Quartiles { lower: 1.75, median: 2.5, upper: 3.25 });
        assert_eq!(quartiles.spread(), 0.6);
        assert_eq!(Quartiles::of(Vec::new()), None);
        assert_eq!(Quartiles::of(vec![7.0]).unwrap().spread(), 0.0);
    }
}
