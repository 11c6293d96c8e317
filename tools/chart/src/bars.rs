// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Horizontal bars with their name above, their figure at the end and their spread as a whisker.
//!
//! Called by draw. Names stand above the bars and not beside them, so that long ones fit on a phone
//! too.

use super::axis::{Span, figure as figures};
use super::canvas::{Anchor, Area, Canvas};
use super::figure::{Figure, Point, Series};
use super::label;
use super::panel::{self, Look};

/// Height of one bar with its name, in pixels.
const STEP: f64 = 38.0;
/// Height of the bar alone.
const BAR: f64 = 14.0;

/// The elements, width and height.
pub fn draw(figure: &Figure, width: f64, font_size: f64) -> (String, f64, f64) {
    let mut canvas = Canvas::new(font_size);
    let bars: Vec<_> = figure
        .series
        .iter()
        .zip(panel::looks(&figure.series))
        .filter_map(|(series, look)| {
            let point = series.points.first().filter(|point| point.is_sound())?;
            Some((series, look, *point))
        })
        .collect();
    let Some(span) = Span::from_zero(bars.iter().flat_map(|(_, _, point)| [point.y, point.high]))
    else {
        canvas.text(
            "axis-name",
            (8.0, 40.0),
            Anchor::Start,
            "nothing was measured",
        );
        return (canvas.finish(), width, 70.0);
    };
    let room = canvas.width_of("100,000") + 14.0;
    let area = Area {
        left: 8.0,
        top: 4.0,
        width: width - 8.0 - room,
        height: STEP * bars.len() as f64,
    };
    let x = |value: f64| area.left + span.place(value) * area.width;
    for tick in span.ticks((area.width / 60.0) as usize) {
        let place = x(tick.value);
        canvas.line("grid", (place, area.top), (place, area.bottom()), "");
        canvas.text(
            "tick",
            (place, area.bottom() + font_size * 1.3),
            Anchor::Middle,
            &tick.text,
        );
    }
    let fitting = (width / canvas.width_of("n")) as usize - 2;
    for (place, (series, look, point)) in bars.iter().enumerate() {
        let top = area.top + STEP * place as f64 + font_size + 6.0;
        canvas.text(
            &format!("name {}", look.class),
            (area.left, top - 4.0),
            Anchor::Start,
            &label::cut(&series.name, fitting),
        );
        let row = Area {
            top,
            height: BAR,
            ..area
        };
        bar(&mut canvas, (row, &span), (series, look), point);
    }
    let below = area.bottom() + font_size * 2.9;
    canvas.text(
        "axis-name",
        (area.left + area.width / 2.0, below),
        Anchor::Middle,
        &figure.x.text(),
    );
    (canvas.finish(), width, below + 8.0)
}

/// One bar with its whisker and its figure; `row` is as wide as the span.
fn bar(
    canvas: &mut Canvas,
    (row, span): (Area, &Span),
    (series, look): (&Series, &Look),
    point: &Point,
) {
    let x = |value: f64| row.left + span.place(value) * row.width;
    let tip = format!(
        "{}: {} ({} to {})",
        series.name,
        figures(point.y),
        figures(point.low),
        figures(point.high)
    );
    let drawn = Area {
        width: x(point.y) - row.left,
        ..row
    };
    canvas.rectangle(&format!("bar {}", look.class), drawn, &tip);
    let middle = row.top + row.height / 2.0;
    if point.high > point.low {
        canvas.line("error", (x(point.low), middle), (x(point.high), middle), "");
    }
    let end = x(point.y.max(point.high)) + 6.0;
    let below = middle + canvas.font_size() * 0.35;
    canvas.text("value", (end, below), Anchor::Start, &figures(point.y));
}
