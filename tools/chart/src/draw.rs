// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A figure as SVG, in two forms: a wide one with names at the ends of the curves, and a narrow one
//! for phones with a legend above the curves.
//!
//! Called by page (both forms inside the page), and for a picture alone ([`alone`]). There are two
//! forms because nobody can read the letters of one picture that is scaled down to a phone.

use super::axis::{Scale, Span, bytes, figure as figures, number};
use super::bars;
use super::canvas::{Anchor, Area, Canvas, Drawing, Position, Segment, at};
use super::figure::{Axis, Figure, Point, Ratio, Role, Series, Shape};
use super::html::escaped;
use super::label;
use super::panel::{self, Look, Panel};

/// The two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For screens and paper.
    Wide,
    /// For phones.
    Narrow,
}

impl Form {
    fn width(self) -> f64 {
        match self {
            Self::Wide => 600.0,
            Self::Narrow => 340.0,
        }
    }

    fn heights(self) -> (f64, f64) {
        match self {
            Self::Wide => (270.0, 100.0),
            Self::Narrow => (220.0, 90.0),
        }
    }

    /// Class of its element, by which the page shows the one that fits.
    pub fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }
}

/// Font size in pixels (chosen: the page's small print).
const FONT_PIXELS: f64 = 12.0;
/// Characters of a name at most; the whole one is in the table.
const NAME_CHARACTERS: usize = 26;
/// Height of a row of the legend in pixels.
const LEGEND_ROW: f64 = 17.0;
/// Space for the texts of the vertical axis, in pixels.
const LEFT: f64 = 64.0;
/// Space between the panels in pixels.
const BETWEEN: f64 = 14.0;

/// The drawing as an `<svg>` element for inside a page.
pub fn svg(figure: &Figure, form: Form) -> String {
    let Drawing {
        elements,
        width,
        height,
    } = draw(figure, form);
    format!(
        "<svg class=\"{}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"{}\">{elements}</svg>",
        form.class(),
        escaped(&spoken(figure))
    )
}

/// The drawing as an SVG document of its own, with its title above it.
pub fn alone(figure: &Figure) -> String {
    let Drawing {
        elements,
        width,
        height,
    } = draw(figure, Form::Wide);
    let title = escaped(&figure.title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{:.0}\" \
         viewBox=\"0 -30 {width:.0} {:.0}\">\
         <style>{}</style><rect class=\"paper\" x=\"0\" y=\"-30\" width=\"{width:.0}\" \
         height=\"{:.0}\"/>\
         <text class=\"figure-title\" x=\"8\" y=\"-10\">{title}</text>{elements}</svg>\n",
        height + 30.0,
        height + 30.0,
        include_str!("figure.css"),
        height + 30.0
    )
}

/// Several drawings in a grid, as one SVG document.
pub fn sheet(figures: &[Figure], columns: usize) -> String {
    let drawn: Vec<_> = figures
        .iter()
        .map(|figure| (figure, draw(figure, Form::Wide)))
        .collect();
    let cell = (
        Form::Wide.width() + 20.0,
        drawn
            .iter()
            .map(|(_, drawing)| drawing.height + 40.0)
            .fold(60.0, f64::max),
    );
    let columns = columns.clamp(1, figures.len().max(1));
    let rows = figures.len().div_ceil(columns).max(1);
    let (width, height) = (cell.0 * columns as f64, cell.1 * rows as f64);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\">\
         <style>{}</style><rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\"/>",
        include_str!("figure.css")
    );
    for (place, (figure, drawing)) in drawn.iter().enumerate() {
        let (x, y) = (
            (place % columns) as f64 * cell.0 + 10.0,
            (place / columns) as f64 * cell.1 + 30.0,
        );
        text.push_str(&format!(
            "<g transform=\"translate({x:.0} {y:.0})\"><text class=\"figure-title\" x=\"0\" \
             y=\"-10\">{}</text>{}</g>\n",
            escaped(&figure.title),
            drawing.elements
        ));
    }
    text + "</svg>\n"
}

/// What a screen reader says: the names and where each ends. The table below the figure has every
/// number.
fn spoken(figure: &Figure) -> String {
    let names: Vec<&str> = figure
        .series
        .iter()
        .filter(|series| series.role != Role::Faint)
        .map(|series| series.name.as_str())
        .collect();
    format!(
        "{}. {} for {}. The table below holds every figure.",
        figure.title,
        figure.y.text(),
        names.join(", ")
    )
}

fn draw(figure: &Figure, form: Form) -> Drawing {
    match figure.shape {
        Shape::Bars => bars::draw(figure, form.width(), FONT_PIXELS),
        Shape::Curves => curves(figure, form),
    }
}

/// Names of the series that have one: their places in the figure, and for the narrow form their
/// places in the legend.
struct Legend {
    named: Vec<usize>,
    names: Vec<String>,
    places: Vec<(f64, usize)>,
}

impl Legend {
    fn of(canvas: &Canvas, figure: &Figure, form: Form) -> Self {
        let named: Vec<usize> = (0..figure.series.len())
            .filter(|index| {
                figure.series[*index].role != Role::Faint
                    && !figure.series[*index].points.is_empty()
            })
            .collect();
        let names: Vec<String> = named
            .iter()
            .map(|index| label::cut(&figure.series[*index].name, NAME_CHARACTERS))
            .collect();
        let widths: Vec<f64> = names
            .iter()
            .map(|name| canvas.width_of(name) + 40.0)
            .collect();
        let places = label::rows(&widths, form.width() - 12.0);
        Self {
            named,
            names,
            places,
        }
    }

    fn draw(&self, canvas: &mut Canvas, looks: &[Look]) {
        for ((index, name), (x, row)) in self.named.iter().zip(&self.names).zip(&self.places) {
            let (y, look) = (14.0 + *row as f64 * LEGEND_ROW, &looks[*index]);
            let class = format!("line {}", look.class);
            let sample = Segment {
                from: at(x + 8.0, y - 4.0),
                to: at(x + 34.0, y - 4.0),
            };
            canvas.line(&class, sample, look.dash);
            canvas.text("name", at(x + 39.0, y), Anchor::Start, name);
        }
    }

    /// Space above the panel and right of it.
    fn margins(&self, canvas: &Canvas, form: Form) -> (f64, f64) {
        let widest = self
            .names
            .iter()
            .map(|name| canvas.width_of(name))
            .fold(0.0, f64::max);
        let rows = self.places.last().map_or(0, |(_, row)| row + 1);
        match form {
            Form::Wide => (8.0, widest + 18.0),
            Form::Narrow => (12.0 + rows as f64 * LEGEND_ROW, 10.0),
        }
    }
}

fn curves(figure: &Figure, form: Form) -> Drawing {
    let mut canvas = Canvas::new(FONT_PIXELS);
    let looks = panel::looks(&figure.series);
    let legend = Legend::of(&canvas, figure, form);
    let (top, margin) = legend.margins(&canvas, form);
    let area = Area {
        left: LEFT,
        top,
        width: form.width() - LEFT - margin,
        height: form.heights().0,
    };
    let Some(main) = main_panel(figure, area) else {
        return canvas.finish_empty(LEFT, form.width());
    };
    main.frame(&mut canvas, &figure.y);
    draw_series(&mut canvas, &main, figure, &looks);
    match form {
        Form::Wide => end_names(&mut canvas, &main, figure, &looks),
        Form::Narrow => legend.draw(&mut canvas, &looks),
    }
    let below = Area {
        top: area.bottom() + BETWEEN,
        height: form.heights().1,
        ..area
    };
    let ratios = figure
        .ratio
        .as_ref()
        .and_then(|ratio| ratio_panel(&mut canvas, &main, ratio, below));
    let last = ratios.unwrap_or(main);
    last.foot(&mut canvas, &figure.x);
    canvas.finish(form.width(), last.area.bottom() + 42.0)
}

fn main_panel(figure: &Figure, area: Area) -> Option<Panel> {
    let points = || {
        figure
            .series
            .iter()
            .flat_map(|series| &series.points)
            .filter(|point| point.is_sound())
    };
    let x = Span::around(figure.x.scale, points().map(|point| point.x), 0.015)?;
    let ends = points().flat_map(|point| [point.low, point.high, point.y]);
    let y = match figure.y.scale {
        Scale::Linear => Span::from_zero(ends)?,
        scale => Span::around(scale, ends, 0.04)?,
    };
    Some(Panel { area, x, y })
}

fn draw_series(canvas: &mut Canvas, main: &Panel, figure: &Figure, looks: &[Look]) {
    // Weft last, so that it lies on top.
    let order = |role: Role| match role {
        Role::Faint => 0,
        Role::Limit => 1,
        Role::Peer => 2,
        Role::Ours => 3,
    };
    let mut sequence: Vec<usize> = (0..figure.series.len()).collect();
    sequence.sort_by_key(|index| order(figure.series[*index].role));
    for index in &sequence {
        let series = &figure.series[*index];
        if series.role != Role::Faint {
            main.band(canvas, series, &looks[*index]);
        }
    }
    for index in &sequence {
        let series = &figure.series[*index];
        let tip = |point: &Point| tip(figure, series, point);
        main.curve(canvas, series, &looks[*index], &tip);
    }
}

fn tip(figure: &Figure, series: &Series, point: &Point) -> String {
    let x = position(&figure.x, point.x);
    format!(
        "{}, {x}: {} {} ({} to {})",
        series.name,
        figures(point.y),
        figure.y.unit,
        figures(point.low),
        figures(point.high)
    )
}

/// A place on the horizontal axis in words.
pub fn position(axis: &Axis, value: f64) -> String {
    match axis.scale {
        Scale::Bytes => bytes(value),
        _ => number(value),
    }
}

fn end_names(canvas: &mut Canvas, main: &Panel, figure: &Figure, looks: &[Look]) {
    let mut ends: Vec<(usize, Position)> = Vec::new();
    for (index, series) in figure.series.iter().enumerate() {
        if series.role == Role::Faint {
            continue;
        }
        if let Some(last) = series.points.iter().rev().find(|point| point.is_sound()) {
            ends.push((index, main.place(last.x, last.y)));
        }
    }
    let size = canvas.font_size();
    let wanted: Vec<f64> = ends.iter().map(|(_, end)| end.y).collect();
    let (low, high) = (main.area.top + size * 0.4, main.area.bottom() - size * 0.4);
    let places = label::apart(&wanted, size * 1.25, low, high);
    for ((index, end), place) in ends.iter().zip(places) {
        let start = main.area.right() + 4.0;
        // A short leader, where the name had to move or the curve ends early.
        if (place - end.y).abs() > 2.0 || start - end.x > 12.0 {
            let leader = Segment {
                from: at(end.x + 3.0, end.y),
                to: at(start + 6.0, place),
            };
            canvas.line(&format!("leader {}", looks[*index].class), leader, "");
        }
        let name = label::cut(&figure.series[*index].name, NAME_CHARACTERS);
        canvas.text(
            &format!("name {}", looks[*index].class),
            at(start + 9.0, place + size * 0.35),
            Anchor::Start,
            &name,
        );
    }
}

fn ratio_panel(canvas: &mut Canvas, main: &Panel, ratio: &Ratio, area: Area) -> Option<Panel> {
    let ends = ratio
        .series
        .iter()
        .flat_map(|series| &series.points)
        .flat_map(|point| [point.low, point.high]);
    // 1 is always in sight, with some room on both sides.
    let y = Span::around(Scale::Logarithmic, ends.chain([0.8, 1.25]), 0.06)?;
    let below = Panel { area, x: main.x, y };
    below.frame(canvas, &Axis::new(&ratio.label, "", Scale::Logarithmic));
    below.sides(canvas, ratio);
    let looks = panel::looks(&ratio.series);
    for (series, look) in ratio.series.iter().zip(&looks) {
        below.whiskers(canvas, series, look);
        let tip = |point: &Point| {
            format!(
                "{}: {} ({} to {})",
                bytes(point.x),
                figures(point.y),
                figures(point.low),
                figures(point.high)
            )
        };
        below.curve(canvas, series, look, &tip);
    }
    below.words(canvas, ratio);
    Some(below)
}

#[cfg(test)]
mod tests;
