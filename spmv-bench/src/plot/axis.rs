//! Axes: from numbers to places between 0 and 1, and the ticks that people read.

/// How numbers are spread over an axis.
#[derive(Clone, Debug, PartialEq)]
enum Scale {
    Linear,
    Log,
    /// Named places, the middle of the first one at 0.5, of the second at 1.5.
    Names(Vec<String>),
}

/// A named range of numbers.
#[derive(Clone, Debug)]
pub struct Axis {
    pub label: String,
    scale: Scale,
    low: f64,
    high: f64,
    turned_over: bool,
}

/// A number on an axis and its text.
pub type Tick = (f64, String);

impl Axis {
    /// From `low` to `high`.
    pub fn linear(label: impl Into<String>, low: f64, high: f64) -> Axis {
        let high = if high > low { high } else { low + 1.0 };
        Axis { label: label.into(), scale: Scale::Linear, low, high, turned_over: false }
    }

    /// From `low` to `high`, both above 0; equal factors are equally long.
    pub fn log(label: impl Into<String>, low: f64, high: f64) -> Axis {
        let low = low.max(f64::MIN_POSITIVE);
        let high = if high > low { high } else { low * 10.0 };
        Axis { label: label.into(), scale: Scale::Log, low, high, turned_over: false }
    }

    /// A place for each name.
    pub fn names(label: impl Into<String>, names: Vec<String>) -> Axis {
        let high = names.len().max(1) as f64;
        Axis { label: label.into(), scale: Scale::Names(names), low: 0.0, high, turned_over: false }
    }

    /// With the high end where the low one was.
    pub fn turned_over(self) -> Axis {
        Axis { turned_over: true, ..self }
    }

    /// A logarithmic axis with room for all of the numbers above 0; from 1 to 10 where there are none.
    pub fn log_around(label: impl Into<String>, numbers: impl IntoIterator<Item = f64>) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for number in numbers.into_iter().filter(|number| number.is_finite() && *number > 0.0) {
            (low, high) = (low.min(number), high.max(number));
        }
        if high == 0.0 {
            return Axis::log(label, 1.0, 10.0);
        }
        let room = (high / low).powf(0.06).max(1.25);
        Axis::log(label, low / room, high * room)
    }

    /// Where a number is: 0 at the low end, 1 at the high one.
    pub fn at(&self, number: f64) -> f64 {
        let at = match self.scale {
            Scale::Log => (number / self.low).ln() / (self.high / self.low).ln(),
            Scale::Linear | Scale::Names(_) => (number - self.low) / (self.high - self.low),
        };
        if self.turned_over { 1.0 - at } else { at }
    }

    pub fn has_names(&self) -> bool {
        matches!(self.scale, Scale::Names(_))
    }

    pub fn low(&self) -> f64 {
        self.low
    }

    pub fn high(&self) -> f64 {
        self.high
    }

    /// At most about `most` numbers on the axis that are easy to read, rising; all names.
    pub fn ticks(&self, most: usize) -> Vec<Tick> {
        let most = most.max(2);
        let numbers = match &self.scale {
            Scale::Names(names) => {
                return names.iter().enumerate().map(|(i, name)| (i as f64 + 0.5, name.clone())).collect();
            }
            Scale::Linear => self.linear_ticks(most),
            Scale::Log => self.log_ticks(most),
        };
        numbers.into_iter().map(|number| (number, tick_text(number))).collect()
    }

    fn linear_ticks(&self, most: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / most as f64;
        let magnitude = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|digit| digit * magnitude)
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * magnitude);
        let (first, last) =
            ((self.low / step - 1e-9).ceil() as i64, (self.high / step + 1e-9).floor() as i64);
        (first..=last).map(|index| index as f64 * step).collect()
    }

    /// The finest of several sets of digits that is not too many.
    fn log_ticks(&self, most: usize) -> Vec<f64> {
        const DIGITS: [&[f64]; 4] = [
            &[1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            &[1.0, 2.0, 5.0],
            &[1.0],
        ];
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let (low, high) = (self.low * (1.0 - 1e-9), self.high * (1.0 + 1e-9));
        for digits in DIGITS {
            let ticks: Vec<f64> = (first..=last)
                .flat_map(|decade| digits.iter().map(move |digit| digit * 10f64.powi(decade)))
                .filter(|tick| (low..=high).contains(tick))
                .collect();
            if ticks.len() <= most {
                return ticks;
            }
        }
        let every = ((last - first) as usize).div_ceil(most).max(1);
        (first..=last)
            .step_by(every)
            .map(|decade| 10f64.powi(decade))
            .filter(|tick| (low..=high).contains(tick))
            .collect()
    }
}

/// A tick as text: `0.05`, `20`, `5k`, `2M`, `1e-7`.
pub fn tick_text(number: f64) -> String {
    let magnitude = number.abs();
    let short = |scaled: f64| {
        let text = format!("{scaled:.4}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    match magnitude {
        0.0 => "0".to_owned(),
        _ if !(1e-3..1e12).contains(&magnitude) => format!("{number:.0e}"),
        _ if magnitude >= 1e9 => format!("{}G", short(number / 1e9)),
        _ if magnitude >= 1e6 => format!("{}M", short(number / 1e6)),
        _ if magnitude >= 1e4 => format!("{}k", short(number / 1e3)),
        _ => short(number),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_easy_to_read() {
        let texts = |axis: Axis, most| {
            axis.ticks(most).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(texts(Axis::linear("", 0.0, 1.0), 6), "0 0.2 0.4 0.6 0.8 1");
        assert_eq!(texts(Axis::log("", 0.08, 0.6), 8), "0.1 0.15 0.2 0.3 0.5");
        assert_eq!(texts(Axis::log("", 1.0, 1e6), 8), "1 10 100 1000 10k 100k 1M");
        assert_eq!(texts(Axis::log("", 1e-9, 1e9), 5), "1e-9 1e-5 0.1 1000 10M");
    }

    proptest! {
        #[test]
        fn ticks_rise_on_the_axis_and_are_few(low in -9.0..9.0f64, length in 0.01..9.0f64, most in 2usize..12) {
            for axis in [Axis::log("", 10f64.powf(low), 10f64.powf(low + length)), Axis::linear("", low, low + length)] {
                let ticks = axis.ticks(most);
                prop_assert!(ticks.len() <= most + 1, "{ticks:?}");
                prop_assert!(ticks.windows(2).all(|pair| pair[0].0 < pair[1].0));
                prop_assert!(ticks.iter().all(|tick| (-1e-6..=1.0 + 1e-6).contains(&axis.at(tick.0))));
            }
        }
    }
}
