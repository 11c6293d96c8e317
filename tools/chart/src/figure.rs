// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a figure shows, but not how it is drawn.
//!
//! Filled by the code that measured something; read by draw, and by page for the table under the
//! figure.

use super::axis::Scale;

/// A figure with all that a reader needs to judge and to repeat it.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// Unique on its page: letters, digits and `-`; also the name of exported files.
    pub id: String,
    /// What it shows, in a few words.
    pub title: String,
    /// A sentence or two below the title; may be empty.
    pub note: String,
    /// The drawing.
    pub shape: Shape,
    /// The horizontal axis; of bars, the axis along which they grow.
    pub x: Axis,
    /// The vertical axis; not used by bars.
    pub y: Axis,
    /// The curves, or the bars.
    pub series: Vec<Series>,
    /// A panel below the curves with ratios, sharing their horizontal axis.
    pub ratio: Option<Ratio>,
    /// Where the figures come from, or which published figure this one repeats; may be empty.
    pub source: String,
    /// Command lines that measure it again.
    pub commands: Vec<String>,
}

/// How the series are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// A line through the points of each series, with its spread as a band.
    #[default]
    Curves,
    /// A horizontal bar for each series, which has a single point; its spread as a whisker.
    Bars,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it measures, as `one-way latency`.
    pub label: String,
    /// The unit, as `us`; may be empty.
    pub unit: String,
    /// How values are placed.
    pub scale: Scale,
}

impl Axis {
    /// An axis.
    pub fn new(label: &str, unit: &str, scale: Scale) -> Self {
        Self {
            label: label.to_owned(),
            unit: unit.to_owned(),
            scale,
        }
    }

    /// `label (unit)`.
    pub fn text(&self) -> String {
        if self.unit.is_empty() {
            self.label.clone()
        } else {
            format!("{} ({})", self.label, self.unit)
        }
    }
}

/// Whose figures they are, which decides the colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Weft: in colour.
    Ours,
    /// What it is compared with: a grey and a dash of its own.
    #[default]
    Peer,
    /// One of many in the background: thin, without a label.
    Faint,
    /// A limit or a model, not a configuration: a thin dotted line.
    Limit,
}

/// A curve or a bar.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Shown at its end or in the legend.
    pub name: String,
    /// Whose it is.
    pub role: Role,
    /// In ascending order of `x`.
    pub points: Vec<Point>,
}

/// A figure with its spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Place on the horizontal axis; not used by bars.
    pub x: f64,
    /// The figure.
    pub y: f64,
    /// Lower end of the spread; `y` where there is none.
    pub low: f64,
    /// Upper end of the spread.
    pub high: f64,
}

impl Point {
    /// A figure without a spread.
    pub fn plain(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            low: y,
            high: y,
        }
    }

    /// Whether it can be placed at all.
    pub fn is_sound(&self) -> bool {
        [self.x, self.y, self.low, self.high]
            .iter()
            .all(|value| value.is_finite())
    }
}

/// The panel of ratios.
#[derive(Clone, Debug, Default)]
pub struct Ratio {
    /// What is divided by what.
    pub label: String,
    /// Said in the half where ours is ahead, as `Weft faster`.
    pub ahead: String,
    /// How to tell the series apart, said in the other half; may be empty.
    pub note: String,
    /// Whether ours is ahead below 1.
    pub less_is_ahead: bool,
    /// A line at the ratio that is the goal, beside the one at 1.
    pub target: Option<f64>,
    /// The ratios; their spread is drawn as bars.
    pub series: Vec<Series>,
}
