//! Colours that people with any colour vision tell apart, and never a colour alone: contenders differ in marker and
//! dash too.

use std::collections::BTreeMap;

use super::svg::{Marker, Stroke};
use crate::record::Row;

/// Okabe and Ito's colours without yellow, which white paper swallows, and black, which is cuSPARSE's.
pub const HUES: [&str; 6] = ["#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9"];
pub const BLACK: &str = "#000000";
pub const GREY: &str = "#6b6b6b";
pub const LIGHT: &str = "#dddddd";

const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];
const MARKERS: [Marker; 5] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Down];

/// How a contender is drawn, the same in all pictures of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    pub colour: &'static str,
    pub marker: Marker,
    pub dash: &'static str,
}

impl Style {
    pub fn stroke(self, width: f64) -> Stroke {
        Stroke { colour: self.colour, width, dash: self.dash }
    }
}

pub const CUSPARSE: Style = Style { colour: BLACK, marker: Marker::Plus, dash: "" };
pub const CPU: Style = Style { colour: GREY, marker: Marker::Cross, dash: "2 3" };

/// A style for each contender of the rows, by name: cuSPARSE's are black, the CPU's grey, the others coloured.
pub fn styles(rows: &[Row]) -> BTreeMap<&str, Style> {
    let mut styles: BTreeMap<&str, Style> = rows.iter().map(|row| (&*row.contender, CPU)).collect();
    let (mut cusparse, mut cpu, mut others) = (0, 0, 0);
    for (contender, style) in &mut styles {
        let next = |count: &mut usize| {
            *count += 1;
            *count - 1
        };
        *style = if contender.starts_with("cusparse:") {
            let index = next(&mut cusparse);
            let marker = [Marker::Plus, Marker::Ring][index / DASHES.len() % 2];
            Style { marker, dash: DASHES[index % DASHES.len()], ..CUSPARSE }
        } else if contender.starts_with("cpu:") {
            let index = next(&mut cpu);
            Style { dash: DASHES[(index + 2) % DASHES.len()], ..CPU }
        } else {
            let index = next(&mut others);
            Style {
                colour: HUES[index % HUES.len()],
                marker: MARKERS[index % MARKERS.len()],
                dash: DASHES[index / HUES.len() % DASHES.len()],
            }
        };
    }
    styles
}

/// Viridis, from dark at 0 to light at 1.
pub fn viridis(at: f64) -> [u8; 3] {
    const ANCHORS: [[u8; 3]; 9] = [
        [68, 1, 84],
        [71, 44, 122],
        [59, 81, 139],
        [44, 113, 142],
        [33, 144, 141],
        [39, 173, 129],
        [92, 200, 99],
        [170, 220, 50],
        [253, 231, 37],
    ];
    let place = at.clamp(0.0, 1.0) * (ANCHORS.len() - 1) as f64;
    let index = (place as usize).min(ANCHORS.len() - 2);
    let part = place - index as f64;
    let (from, to) = (ANCHORS[index], ANCHORS[index + 1]);
    std::array::from_fn(|channel| {
        (f64::from(from[channel]) * (1.0 - part) + f64::from(to[channel]) * part).round() as u8
    })
}

/// A colour as SVG writes it.
pub fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_look_different() {
        let names = (0..20)
            .map(|index| format!("ours:{index}"))
            .chain((0..6).map(|index| format!("cusparse:{index}")))
            .chain(["cpu:serial".into(), "cpu:parallel".into()]);
        let rows: Vec<Row> = names.map(|contender| Row { contender, ..Row::default() }).collect();
        let styles = styles(&rows);
        let looks: Vec<Style> = styles.values().copied().collect();
        for (index, look) in looks.iter().enumerate() {
            assert!(!looks[..index].contains(look), "{look:?}");
        }
        assert_eq!((styles["cusparse:0"].colour, styles["cpu:serial"].colour), (BLACK, GREY));
    }

    #[test]
    fn viridis_grows_lighter() {
        let light = |at| viridis(at).iter().map(|channel| u32::from(*channel)).sum::<u32>();
        assert_eq!((viridis(-1.0), viridis(2.0)), ([68, 1, 84], [253, 231, 37]));
        assert!(light(0.2) < light(0.5) && light(0.5) < light(0.9));
        assert_eq!(hex([0, 255, 16]), "#00ff10");
    }
}
