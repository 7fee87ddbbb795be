//! A chart: two axes with grid and ticks, a title, and a legend outside of them.

use super::axis::Axis;
use super::palette::{LIGHT, Style};
use super::svg::{Anchor, Stroke, Svg, Type, shortened, text_width};

/// Width and height of what the axes enclose, where nothing asks for others.
pub const AREA: (f64, f64) = (640.0, 400.0);

const LEFT: f64 = 76.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 58.0;
const ENTRY: f64 = 19.0;
const LEGEND_TEXT: f64 = 11.5;
const LEGEND_CHARACTERS: usize = 38;
const TITLE: f64 = 15.0;
const SUBTITLE: f64 = 11.5;
const LABEL: f64 = 12.5;
const TICK: f64 = 11.0;
const TICKS: usize = 10;

const FRAME: Stroke = Stroke { colour: "#444444", width: 1.0, dash: "" };
const THIN: Stroke = Stroke { colour: "#888888", width: 0.5, dash: "" };
const GRID: Stroke = Stroke { colour: LIGHT, width: 0.7, dash: "" };

/// What a legend shows in front of a name.
#[derive(Clone, Debug)]
pub enum Sample {
    Point(Style),
    Line(Stroke),
    PointOnLine(Style),
    Area(String),
}

/// A chart that is being drawn.
#[derive(Debug)]
pub struct Chart {
    svg: Svg,
    title: String,
    x: Axis,
    y: Axis,
    left: f64,
    width: f64,
    height: f64,
}

/// What a chart shows around its content.
#[derive(Debug)]
pub struct Frame<'a> {
    pub title: &'a str,
    pub subtitle: &'a str,
    pub x: Axis,
    pub y: Axis,
    pub legend: &'a [(Sample, String)],
    /// Width and height of what the axes enclose; it grows with the legend.
    pub area: (f64, f64),
}

impl Chart {
    /// Draws axes and legend.
    pub fn new(frame: Frame<'_>) -> Chart {
        let Frame { title, subtitle, x, y, legend, area: (width, height) } = frame;
        let longest = |texts: &mut dyn Iterator<Item = String>, size| {
            texts.map(|text| text_width(&text, size)).fold(0.0, f64::max)
        };
        let names =
            longest(&mut legend.iter().map(|(_, name)| shortened(name, LEGEND_CHARACTERS)), LEGEND_TEXT);
        let legend_width = if legend.is_empty() { 24.0 } else { 70.0 + names };
        let height = height.max(legend.len() as f64 * ENTRY);
        let left = LEFT.max(46.0 + longest(&mut y.ticks(TICKS).into_iter().map(|(_, text)| text), TICK));
        let x_ticks = longest(&mut x.ticks(TICKS).into_iter().map(|(_, text)| text), TICK);
        let turn = x_ticks > width / x.ticks(TICKS).len().max(1) as f64 && x.has_names();
        let bottom = if turn { BOTTOM + x_ticks * 0.75 } else { BOTTOM };
        let titles = text_width(title, TITLE).max(text_width(subtitle, SUBTITLE)) + left + 10.0;
        let svg = Svg::new((left + width + legend_width).max(titles), TOP + height + bottom);
        let mut chart = Chart { svg, title: title.to_owned(), x, y, left, width, height };
        chart.svg.text(left, 26.0, title, Type { bold: true, ..Type::new(TITLE, Anchor::Start) });
        chart.svg.text(
            left,
            46.0,
            subtitle,
            Type { colour: "#555555", ..Type::new(SUBTITLE, Anchor::Start) },
        );
        chart.x_axis(turn, bottom);
        chart.y_axis();
        chart.svg.outline(left, TOP, width, height, FRAME);
        chart.legend(legend);
        chart
    }

    /// Where a pair of numbers is.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + self.width * self.x.at(x), TOP + self.height * (1.0 - self.y.at(y)))
    }

    pub fn point(&mut self, x: f64, y: f64, style: Style, hint: &str) {
        let at = self.at(x, y);
        self.svg.marker(style.marker, at, style.colour, hint);
    }

    /// Lines from pair to pair.
    pub fn path(&mut self, pairs: &[(f64, f64)], stroke: Stroke, hint: &str) {
        let points: Vec<_> = pairs.iter().map(|(x, y)| self.at(*x, *y)).collect();
        self.svg.polyline(&points, stroke, hint);
    }

    /// A bar from `bottom` to `top` between two numbers of the x axis, with a narrow gap on each side.
    pub fn bar(&mut self, (from, to): (f64, f64), (bottom, top): (f64, f64), fill: &str, hint: &str) {
        let ((x0, y0), (x1, y1)) = (self.at(from, bottom), self.at(to, top));
        self.svg.rect(x0 + 1.0, y1, (x1 - x0 - 2.0).max(0.5), y0 - y1, fill, hint);
    }

    /// Fills the place of a pair of names, each by its index, but for narrow gaps.
    pub fn cell(&mut self, x: usize, y: usize, fill: &str) {
        let ((x0, y0), (x1, y1)) = (self.at(x as f64, y as f64), self.at(x as f64 + 1.0, y as f64 + 1.0));
        self.svg.rect(x0 + 1.0, y1 + 1.0, x1 - x0 - 2.0, y0 - y1 - 2.0, fill, "");
    }

    /// A text in the middle of a place.
    pub fn note(&mut self, x: f64, y: f64, text: &str, colour: &'static str) {
        let (x, y) = self.at(x, y);
        self.svg.text(x, y + 4.0, text, Type { colour, ..Type::new(TICK, Anchor::Middle) });
    }

    /// A PNG image over the whole area.
    pub fn image(&mut self, png: &[u8]) {
        self.svg.image(self.left, TOP, self.width, self.height, png);
        self.svg.outline(self.left, TOP, self.width, self.height, FRAME);
    }

    /// A vertical line over the whole height, with a white edge that sets it off from what it crosses.
    pub fn mark(&mut self, x: f64, stroke: Stroke) {
        let (x, _) = self.at(x, self.y.low());
        let edge = Stroke { colour: "#ffffff", width: stroke.width + 3.0, dash: "" };
        self.svg.line((x, TOP + 1.0), (x, TOP + self.height - 1.0), edge);
        self.svg.line((x, TOP), (x, TOP + self.height), stroke);
    }

    /// The text of the file.
    pub fn finish(self) -> String {
        self.svg.finish(&self.title)
    }

    fn x_axis(&mut self, turn: bool, space: f64) {
        let bottom = TOP + self.height;
        for (tick, text) in self.x.ticks(TICKS) {
            let x = self.left + self.width * self.x.at(tick);
            self.svg.line((x, TOP), (x, bottom), GRID);
            self.svg.line((x, bottom), (x, bottom + 5.0), FRAME);
            if turn {
                let how = Type { turned: -45.0, ..Type::new(TICK, Anchor::End) };
                self.svg.text(x + 4.0, bottom + 15.0, &text, how);
            } else {
                self.svg.text(x, bottom + 18.0, &text, Type::new(TICK, Anchor::Middle));
            }
        }
        let middle = self.left + self.width / 2.0;
        self.svg.text(middle, bottom + space - 16.0, &self.x.label, Type::new(LABEL, Anchor::Middle));
    }

    fn y_axis(&mut self) {
        for (tick, text) in self.y.ticks(TICKS) {
            let y = TOP + self.height * (1.0 - self.y.at(tick));
            self.svg.line((self.left, y), (self.left + self.width, y), GRID);
            self.svg.line((self.left - 5.0, y), (self.left, y), FRAME);
            self.svg.text(self.left - 9.0, y + 4.0, &text, Type::new(TICK, Anchor::End));
        }
        let middle = TOP + self.height / 2.0;
        let how = Type { turned: -90.0, ..Type::new(LABEL, Anchor::Middle) };
        self.svg.text(20.0, middle, &self.y.label, how);
    }

    fn legend(&mut self, entries: &[(Sample, String)]) {
        let left = self.left + self.width + 18.0;
        for (index, (sample, name)) in entries.iter().enumerate() {
            let y = TOP + ENTRY * (index as f64 + 0.5);
            let middle = (left + 14.0, y);
            let line = [(left, y), (left + 28.0, y)];
            match sample {
                Sample::Point(style) => self.svg.marker(style.marker, middle, style.colour, ""),
                Sample::Line(stroke) => self.svg.polyline(&line, *stroke, ""),
                Sample::PointOnLine(style) => {
                    self.svg.polyline(&line, style.stroke(2.0), "");
                    self.svg.marker(style.marker, middle, style.colour, "");
                }
                Sample::Area(fill) => {
                    self.svg.rect(left + 4.0, y - 6.0, 20.0, 12.0, fill, "");
                    self.svg.outline(left + 4.0, y - 6.0, 20.0, 12.0, THIN);
                }
            }
            let name = shortened(name, LEGEND_CHARACTERS);
            self.svg.text(left + 36.0, y + 4.0, &name, Type::new(LEGEND_TEXT, Anchor::Start));
        }
    }
}
