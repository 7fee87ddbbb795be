//! A canvas that writes SVG text: no identifiers, no scripts, nothing from elsewhere, the same bytes every time.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const FONT: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/// Width of a character of the font over its size, on the large side of what texts have.
const CHARACTER_WIDTH: f64 = 0.6;

/// Pixels that a line of text is wide, at the most.
pub fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * CHARACTER_WIDTH
}

/// The text, cut to a number of characters.
pub fn shortened(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    text.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

/// Which point of a text its position names.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text is set.
#[derive(Clone, Copy, Debug)]
pub struct Type {
    pub size: f64,
    pub anchor: Anchor,
    /// Degrees, clockwise, around the position.
    pub turned: f64,
    pub colour: &'static str,
    pub bold: bool,
}

impl Type {
    pub const fn new(size: f64, anchor: Anchor) -> Type {
        Type { size, anchor, turned: 0.0, colour: "#222222", bold: false }
    }
}

/// How a line is drawn; `dash` is an SVG dash array, empty for a solid line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    pub colour: &'static str,
    pub width: f64,
    pub dash: &'static str,
}

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Down,
    Plus,
    Cross,
    Ring,
}

/// A picture that is being drawn; positions in pixels from the upper left corner.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    /// White paper.
    pub fn new(width: f64, height: f64) -> Svg {
        let mut svg = Svg { width, height, body: String::new() };
        svg.rect(0.0, 0.0, width, height, "#ffffff", "");
        svg
    }

    /// A filled rectangle; where `hint` is not empty, a viewer shows it under the pointer.
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str, hint: &str) {
        let shape = format!(
            r#"<rect x="{}" y="{}" width="{}" height="{}" fill="{fill}""#,
            pixels(x),
            pixels(y),
            pixels(width),
            pixels(height)
        );
        self.shape("rect", &shape, hint);
    }

    /// An empty rectangle.
    pub fn outline(&mut self, x: f64, y: f64, width: f64, height: f64, stroke: Stroke) {
        let corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)];
        self.polyline(&corners, stroke, "");
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.polyline(&[from, to], stroke, "");
    }

    pub fn polyline(&mut self, points: &[(f64, f64)], stroke: Stroke, hint: &str) {
        let mut shape = String::from(r#"<polyline points=""#);
        for (index, (x, y)) in points.iter().enumerate() {
            let blank = if index == 0 { "" } else { " " };
            put(&mut shape, format_args!("{blank}{},{}", pixels(*x), pixels(*y)));
        }
        put(
            &mut shape,
            format_args!(
                r#"" fill="none" stroke="{}" stroke-width="{}""#,
                stroke.colour,
                pixels(stroke.width)
            ),
        );
        if !stroke.dash.is_empty() {
            put(&mut shape, format_args!(r#" stroke-dasharray="{}""#, stroke.dash));
        }
        self.shape("polyline", &shape, hint);
    }

    pub fn text(&mut self, x: f64, y: f64, text: &str, how: Type) {
        let anchor = match how.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (pixels(x), pixels(y));
        let turned = match how.turned {
            0.0 => String::new(),
            degrees => format!(r#" transform="rotate({} {x} {y})""#, pixels(degrees)),
        };
        let weight = if how.bold { r#" font-weight="bold""# } else { "" };
        let (size, colour, text) = (pixels(how.size), how.colour, escape(text));
        put(
            &mut self.body,
            format_args!(
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\"{weight}{turned}>{text}</text>\n"
            ),
        );
    }

    /// A point; where `hint` is not empty, a viewer shows it under the pointer.
    pub fn marker(&mut self, marker: Marker, (x, y): (f64, f64), colour: &str, hint: &str) {
        const R: f64 = 4.0;
        let polygon = |corners: &[(f64, f64)]| {
            let corners: Vec<String> =
                corners.iter().map(|(dx, dy)| format!("{},{}", pixels(x + dx), pixels(y + dy))).collect();
            format!(
                r##"<polygon points="{}" fill="{colour}" stroke="#ffffff" stroke-width="0.5""##,
                corners.join(" ")
            )
        };
        let strokes = |d: String| format!(r#"<path d="{d}" fill="none" stroke="{colour}" stroke-width="2""#);
        let (cx, cy) = (pixels(x), pixels(y));
        let (name, shape) = match marker {
            Marker::Circle => (
                "circle",
                format!(
                    r##"<circle cx="{cx}" cy="{cy}" r="4" fill="{colour}" stroke="#ffffff" stroke-width="0.5""##
                ),
            ),
            Marker::Ring => (
                "circle",
                format!(
                    r##"<circle cx="{cx}" cy="{cy}" r="3.5" fill="#ffffff" stroke="{colour}" stroke-width="1.8""##
                ),
            ),
            Marker::Square => ("polygon", polygon(&[(-R, -R), (R, -R), (R, R), (-R, R)])),
            Marker::Diamond => {
                ("polygon", polygon(&[(0.0, -R - 1.5), (R + 1.5, 0.0), (0.0, R + 1.5), (-R - 1.5, 0.0)]))
            }
            Marker::Triangle => ("polygon", polygon(&[(0.0, -R - 1.0), (R + 1.0, R), (-R - 1.0, R)])),
            Marker::Down => ("polygon", polygon(&[(0.0, R + 1.0), (R + 1.0, -R), (-R - 1.0, -R)])),
            Marker::Plus => {
                ("path", strokes(format!("M{} {cy}h9M{cx} {}v9", pixels(x - 4.5), pixels(y - 4.5))))
            }
            Marker::Cross => (
                "path",
                strokes(format!(
                    "M{} {}l8 8M{} {}l8 -8",
                    pixels(x - R),
                    pixels(y - R),
                    pixels(x - R),
                    pixels(y + R)
                )),
            ),
        };
        self.shape(name, &shape, hint);
    }

    /// A PNG image, its pixels kept sharp.
    pub fn image(&mut self, x: f64, y: f64, width: f64, height: f64, png: &[u8]) {
        let (x, y, width, height) = (pixels(x), pixels(y), pixels(width), pixels(height));
        put(
            &mut self.body,
            format_args!(
                "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>\n",
                STANDARD.encode(png)
            ),
        );
    }

    /// The text of the file; `title` says what the picture shows.
    pub fn finish(self, title: &str) -> String {
        let (width, height) = (pixels(self.width), pixels(self.height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"{FONT}\" role=\"img\">\n<title>{}</title>\n{}</svg>\n",
            escape(title),
            self.body
        )
    }

    fn shape(&mut self, name: &str, open: &str, hint: &str) {
        self.body.push_str(open);
        match hint {
            "" => self.body.push_str("/>\n"),
            hint => put(&mut self.body, format_args!("><title>{}</title></{name}>\n", escape(hint))),
        }
    }
}

/// Text as the content or a quoted attribute of XML; characters that XML cannot hold are replaced.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                escaped.push('\u{fffd}');
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// A position with at most two decimals.
fn pixels(number: f64) -> String {
    let text = format!("{number:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn put(to: &mut String, text: std::fmt::Arguments<'_>) {
    to.write_fmt(text).expect("a text in memory takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("<a href=\"x\">'&\u{1}\n"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\u{fffd}\n");
        let mut svg = Svg::new(10.0, 10.0);
        svg.text(1.0, 2.0, "</text><script>", Type::new(10.0, Anchor::End));
        svg.marker(Marker::Plus, (5.0, 5.0), "#000000", "</title>");
        let text = svg.finish("<b>");
        assert!(!text.contains("<script>") && !text.contains("<b>"), "{text}");
        let tree = roxmltree::Document::parse(&text).unwrap();
        let texts: Vec<_> =
            tree.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect();
        assert!(texts.contains(&"</text><script>") && texts.contains(&"</title>"), "{texts:?}");
    }

    #[test]
    fn positions_are_short() {
        assert_eq!(
            ["1", "1.5", "0.33", "0", "-2", "100"],
            [1.0, 1.5, 1.0 / 3.0, -0.001, -2.0, 100.0].map(pixels)[..]
        );
        assert_eq!((shortened("abcdef", 4), shortened("äöü", 3)), ("abc…".into(), "äöü".into()));
    }
}
