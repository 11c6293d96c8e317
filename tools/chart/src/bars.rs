// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Horizontal bars: the name above, the figure at the end, the spread as a whisker.
//!
//! Called by draw. Names stand above the bars and not beside them, so that long names fit on a
//! phone.

use super::axis::{Span, figure as figures};
use super::canvas::{Anchor, Area, Canvas, Drawing, Segment, at};
use super::figure::{Figure, Point};
use super::label;
use super::panel::{self, Look};

/// Height of one bar with its name, in pixels.
const STEP: f64 = 38.0;
/// Height of the bar alone.
const BAR: f64 = 14.0;

/// A series that was measured: one bar.
struct Bar<'a> {
    name: &'a str,
    look: Look,
    point: Point,
}

/// The bars, one below the other, `width` pixels wide.
pub fn draw(figure: &Figure, width: f64, font_size: f64) -> Drawing {
    let mut canvas = Canvas::new(font_size);
    let measured = figure.series.iter().zip(panel::looks(&figure.series));
    let bars: Vec<Bar<'_>> = measured
        .filter_map(|(series, look)| {
            let point = *series.points.first().filter(|point| point.is_sound())?;
            let name = &series.name;
            Some(Bar { name, look, point })
        })
        .collect();
    let ends = bars.iter().flat_map(|bar| [bar.point.y, bar.point.high]);
    let Some(span) = Span::from_zero(ends) else {
        return canvas.finish_empty(8.0, width);
    };
    let room = canvas.width_of("100,000") + 14.0;
    let area = Area {
        left: 8.0,
        top: 4.0,
        width: width - 8.0 - room,
        height: STEP * bars.len() as f64,
    };
    for tick in span.ticks((area.width / 60.0) as usize) {
        let x = area.left + span.place(tick.value) * area.width;
        canvas.line("grid", area.down(x), "");
        let below = at(x, area.bottom() + font_size * 1.3);
        canvas.text("tick", below, Anchor::Middle, &tick.text);
    }
    let fitting = (width / canvas.width_of("n")) as usize - 2;
    for (place, bar) in bars.iter().enumerate() {
        let top = area.top + STEP * place as f64 + font_size + 6.0;
        canvas.text(
            &format!("name {}", bar.look.class),
            at(area.left, top - 4.0),
            Anchor::Start,
            &label::cut(bar.name, fitting),
        );
        let row = Area {
            top,
            height: BAR,
            ..area
        };
        bar.draw(&mut canvas, row, &span);
    }
    let below = area.bottom() + font_size * 2.9;
    canvas.text(
        "axis-name",
        at(area.left + area.width / 2.0, below),
        Anchor::Middle,
        &figure.x.text(),
    );
    canvas.finish(width, below + 8.0)
}

impl Bar<'_> {
    /// The bar with its whisker and its figure; `row` is as wide as the span.
    fn draw(&self, canvas: &mut Canvas, row: Area, span: &Span) {
        let point = &self.point;
        let x = |value: f64| row.left + span.place(value) * row.width;
        let tip = format!(
            "{}: {} ({} to {})",
            self.name,
            figures(point.y),
            figures(point.low),
            figures(point.high)
        );
        let drawn = Area {
            width: x(point.y) - row.left,
            ..row
        };
        canvas.rectangle(&format!("bar {}", self.look.class), drawn, &tip);
        let middle = row.top + row.height / 2.0;
        if point.high > point.low {
            let spread = Segment {
                from: at(x(point.low), middle),
                to: at(x(point.high), middle),
            };
            canvas.line("error", spread, "");
        }
        let end = x(point.y.max(point.high)) + 6.0;
        let below = middle + canvas.font_size() * 0.35;
        canvas.text("value", at(end, below), Anchor::Start, &figures(point.y));
    }
}
