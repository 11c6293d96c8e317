// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SVG elements as text. Colours are CSS classes (figure.css), so a drawing follows the page's
//! theme. Everything else is an attribute, so the drawing stays correct without the page.
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

/// A point of the drawing, in pixels from its left and upper edges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// From the left.
    pub x: f64,
    /// From the top.
    pub y: f64,
}

/// The point of the drawing with these coordinates.
pub fn at(x: f64, y: f64) -> Position {
    Position { x, y }
}

/// A straight line between two points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Where it begins.
    pub from: Position,
    /// Where it ends.
    pub to: Position,
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

    /// The line across it at the height `y`.
    pub fn across(&self, y: f64) -> Segment {
        Segment {
            from: at(self.left, y),
            to: at(self.right(), y),
        }
    }

    /// The line down it at `x`.
    pub fn down(&self, x: f64) -> Segment {
        Segment {
            from: at(x, self.top),
            to: at(x, self.bottom()),
        }
    }
}

/// What has been drawn so far.
#[derive(Debug)]
pub struct Canvas {
    text: String,
    font_size: f64,
}

/// A finished drawing.
#[derive(Debug)]
pub struct Drawing {
    /// Its SVG elements.
    pub elements: String,
    /// How wide it is, in pixels.
    pub width: f64,
    /// How high it is, in pixels.
    pub height: f64,
}

impl Canvas {
    /// Empty; `font_size` in pixels.
    pub fn new(font_size: f64) -> Self {
        Self {
            text: String::new(),
            font_size,
        }
    }

    /// What was drawn, so many pixels wide and high.
    pub fn finish(self, width: f64, height: f64) -> Drawing {
        Drawing {
            elements: self.text,
            width,
            height,
        }
    }

    /// A drawing of no point, which says so, from `left` on.
    pub fn finish_empty(mut self, left: f64, width: f64) -> Drawing {
        let text = "nothing was measured";
        self.text("axis-name", at(left, 40.0), Anchor::Start, text);
        self.finish(width, 70.0)
    }

    /// The font's size in pixels.
    pub fn font_size(&self) -> f64 {
        self.font_size
    }

    /// About how wide a text is, in pixels.
    pub fn width_of(&self, text: &str) -> f64 {
        text.chars().count() as f64 * CHARACTER * self.font_size
    }

    /// A straight line; `dash` is SVG's pattern of dashes, empty for a solid line.
    pub fn line(&mut self, class: &str, segment: Segment, dash: &str) {
        let Segment { from, to } = segment;
        let _ = write!(
            self.text,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>",
            short(from.x),
            short(from.y),
            short(to.x),
            short(to.y),
            dashes(dash)
        );
    }

    /// A line through points.
    pub fn curve(&mut self, class: &str, points: &[Position], dash: &str) {
        let _ = write!(
            self.text,
            "<path class=\"{class}\" fill=\"none\" d=\"{}\"{}/>",
            path(points),
            dashes(dash)
        );
    }

    /// A filled outline.
    pub fn shape(&mut self, class: &str, points: &[Position]) {
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
    pub fn dot(&mut self, class: &str, place: Position, radius: f64, tip: &str) {
        let _ = write!(
            self.text,
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\">{}</circle>",
            short(place.x),
            short(place.y),
            short(radius),
            title(tip)
        );
    }

    /// A text with its baseline on the point.
    pub fn text(&mut self, class: &str, place: Position, anchor: Anchor, text: &str) {
        let _ = write!(
            self.text,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>",
            short(place.x),
            short(place.y),
            anchor.name(),
            escaped(text)
        );
    }

    /// A text that reads upwards, centred on the point.
    pub fn upright(&mut self, class: &str, place: Position, text: &str) {
        let (x, y) = (short(place.x), short(place.y));
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

fn path(points: &[Position]) -> String {
    let mut text = String::new();
    for (index, point) in points.iter().enumerate() {
        let _ = write!(
            text,
            "{}{} {}",
            if index == 0 { "M" } else { "L" },
            short(point.x),
            short(point.y)
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
        canvas.curve("ours", &[at(0.0, 1.04), at(2.0, 3.55)], "4 2");
        canvas.dot("ours", at(1.0, 2.0), 2.0, "a < b");
        canvas.text("label", at(0.0, 0.0), Anchor::End, "<MPI>");
        assert_eq!(
            canvas.finish(100.0, 100.0).elements,
            "<path class=\"ours\" fill=\"none\" d=\"M0 1L2 3.5\" stroke-dasharray=\"4 2\"/>\
             <circle class=\"ours\" cx=\"1\" cy=\"2\" r=\"2\"><title>a &lt; b</title></circle>\
             <text class=\"label\" x=\"0\" y=\"0\" text-anchor=\"end\">&lt;MPI&gt;</text>"
        );
    }
}
