// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SVG elements as text. Colours are classes (figure.css), everything else are attributes, so that
//! a drawing follows the page's theme and still says the same when it is cut out.
//!
//! Called by draw, panel, bars and label.

use super::html::escaped;
use std::fmt::Write;

/// Width of a character relative to the font's size, for texts that must not collide (measured on
/// common sans-serif fonts, rounded up).
const CHARACTER: f64 = 0.64;

/// Where a text hangs on its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Area {
    /// Right edge.
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// What has been drawn so far.
#[derive(Debug)]
pub struct Canvas {
    text: String,
    font_size: f64,
}

impl Canvas {
    /// Empty; `font_size` in pixels.
    pub fn new(font_size: f64) -> Self {
        Self {
            text: String::new(),
            font_size,
        }
    }

    /// The elements.
    pub fn finish(self) -> String {
        self.text
    }

    /// The font's size in pixels.
    pub fn font_size(&self) -> f64 {
        self.font_size
    }

    /// About how wide a text is, in pixels.
    pub fn width_of(&self, text: &str) -> f64 {
        text.chars().count() as f64 * CHARACTER * self.font_size
    }

    /// A straight line; `from` and `to` are `(x, y)`.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64), dash: &str) {
        let _ = write!(
            self.text,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>",
            short(from.0),
            short(from.1),
            short(to.0),
            short(to.1),
            dashes(dash)
        );
    }

    /// A line through points.
    pub fn curve(&mut self, class: &str, points: &[(f64, f64)], dash: &str) {
        let _ = write!(
            self.text,
            "<path class=\"{class}\" fill=\"none\" d=\"{}\"{}/>",
            path(points),
            dashes(dash)
        );
    }

    /// A filled outline.
    pub fn shape(&mut self, class: &str, points: &[(f64, f64)]) {
        let _ = write!(
            self.text,
            "<path class=\"{class}\" stroke=\"none\" d=\"{}Z\"/>",
            path(points)
        );
    }

    /// A filled rectangle; `tip` is shown when the mouse rests on it.
    pub fn rectangle(&mut self, class: &str, area: Area, tip: &str) {
        let _ = write!(
            self.text,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{}</rect>",
            short(area.left),
            short(area.top),
            short(area.width.max(0.0)),
            short(area.height.max(0.0)),
            title(tip)
        );
    }

    /// A dot; `tip` is shown when the mouse rests on it.
    pub fn dot(&mut self, class: &str, at: (f64, f64), radius: f64, tip: &str) {
        let _ = write!(
            self.text,
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\">{}</circle>",
            short(at.0),
            short(at.1),
            short(radius),
            title(tip)
        );
    }

    /// A text with its baseline on the point.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let _ = write!(
            self.text,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
            short(at.0),
            short(at.1),
            anchor.name(),
            escaped(text)
        );
    }

    /// A text that reads upwards, centred on the point.
    pub fn upright(&mut self, class: &str, at: (f64, f64), text: &str) {
        let (x, y) = (short(at.0), short(at.1));
        let _ = write!(
            self.text,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 {x} {y})\">{}</text>",
            escaped(text)
        );
    }
}

fn title(tip: &str) -> String {
    if tip.is_empty() {
        String::new()
    } else {
        format!("<title>{}</title>", escaped(tip))
    }
}

fn dashes(dash: &str) -> String {
    if dash.is_empty() {
        String::new()
    } else {
        format!(" stroke-dasharray=\"{dash}\"")
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (place, (x, y)) in points.iter().enumerate() {
        let _ = write!(
            text,
            "{}{} {}",
            if place == 0 { "M" } else { "L" },
            short(*x),
            short(*y)
        );
    }
    text
}

/// A coordinate to a tenth of a pixel.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_well_formed_and_texts_escaped() {
        let mut canvas = Canvas::new(10.0);
        canvas.curve("ours", &[(0.0, 1.04), (2.0, 3.55)], "4 2");
        canvas.dot("ours", (1.0, 2.0), 2.0, "a < b");
        canvas.text("label", (0.0, 0.0), Anchor::End, "<MPI>");
        assert_eq!(
            canvas.finish(),
            "<path class=\"ours\" fill=\"none\" d=\"M0 1L2 3.5\" stroke-dasharray=\"4 2\"/>\
             <circle class=\"ours\" cx=\"1\" cy=\"2\" r=\"2\"><title>a &lt; b</title></circle>\
             <text class=\"label\" x=\"0\" y=\"0\" text-anchor=\"end\">&lt;MPI&gt;</text>"
        );
    }
}
