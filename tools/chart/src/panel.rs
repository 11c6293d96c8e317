// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One panel: grid, axes, bands, curves.
//!
//! Called by draw, once for the curves and once for the ratios below them.

use super::axis::{self, Span};
use super::canvas::{Anchor, Area, Canvas, Position, Segment, at};
use super::figure::{Axis, Point, Ratio, Role, Series};

/// Dashes by which peers are told apart without colour; Weft's under several MPIs likewise.
const DASHES: [&str; 6] = ["", "7 3", "2 3", "10 3 2 3", "4 2", "1 2"];
/// Greys, from dark to light, all with a contrast above 3 on their background (figure.css).
const GREYS: usize = 4;

/// Class and dash of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Class of its elements in figure.css.
    pub class: String,
    /// Stroke dash; empty for a solid line.
    pub dash: &'static str,
}

/// Looks of a figure's series, each with its own.
pub fn looks(series: &[Series]) -> Vec<Look> {
    let (mut ours, mut peers) = (0, 0);
    series
        .iter()
        .map(|series| match series.role {
            Role::Ours => {
                ours += 1;
                Look {
                    class: "ours".into(),
                    dash: DASHES[(ours - 1) % DASHES.len()],
                }
            }
            Role::Peer => {
                peers += 1;
                Look {
                    class: format!("peer peer-{}", (peers - 1) % GREYS),
                    dash: DASHES[(peers - 1) % DASHES.len()],
                }
            }
            Role::Faint => Look {
                class: "faint".into(),
                dash: "",
            },
            Role::Limit => Look {
                class: "limit".into(),
                dash: "1.5 3",
            },
        })
        .collect()
}

/// A panel's place and scales.
#[derive(Clone, Copy, Debug)]
pub struct Panel {
    /// Where it lies.
    pub area: Area,
    /// Horizontal scale.
    pub x: Span,
    /// Vertical scale.
    pub y: Span,
}

impl Panel {
    /// Where a point lies.
    pub fn place(&self, x: f64, y: f64) -> Position {
        at(self.column(x), self.row(y))
    }

    /// How far from the left a value of the horizontal axis lies, in pixels.
    fn column(&self, x: f64) -> f64 {
        self.area.left + self.x.place(x) * self.area.width
    }

    /// How far from the top a value of the vertical axis lies, in pixels.
    fn row(&self, y: f64) -> f64 {
        self.area.bottom() - self.y.place(y) * self.area.height
    }

    /// Grid, frame and the texts of the vertical axis.
    pub fn frame(&self, canvas: &mut Canvas, y: &Axis) {
        let size = canvas.font_size();
        for tick in self.x.ticks((self.area.width / (size * 3.4)) as usize) {
            canvas.line("grid", self.area.down(self.column(tick.value)), "");
        }
        let mut widest = 0.0_f64;
        for tick in self.y.ticks((self.area.height / (size * 1.5)) as usize) {
            let y = self.row(tick.value);
            let class = if tick.text.is_empty() {
                "grid fine"
            } else {
                "grid"
            };
            canvas.line(class, self.area.across(y), "");
            widest = widest.max(canvas.width_of(&tick.text));
            canvas.text(
                "tick",
                at(self.area.left - 6.0, y + size * 0.35),
                Anchor::End,
                &tick.text,
            );
        }
        let middle = self.area.top + self.area.height / 2.0;
        let left = (self.area.left - widest - size * 1.1).max(size * 0.9);
        canvas.upright("axis-name", at(left, middle), &y.text());
        canvas.line("axis", self.area.across(self.area.bottom()), "");
    }

    /// Ticks and name of the horizontal axis.
    pub fn foot(&self, canvas: &mut Canvas, x: &Axis) {
        let size = canvas.font_size();
        let below = self.area.bottom() + size * 1.4;
        for tick in self.x.ticks((self.area.width / (size * 3.4)) as usize) {
            let place = at(self.column(tick.value), below);
            canvas.text("tick", place, Anchor::Middle, &tick.text);
        }
        let middle = self.area.left + self.area.width / 2.0;
        canvas.text(
            "axis-name",
            at(middle, below + size * 1.5),
            Anchor::Middle,
            &x.text(),
        );
    }

    /// The spread of a series as a band.
    pub fn band(&self, canvas: &mut Canvas, series: &Series, look: &Look) {
        let points: Vec<&Point> = series
            .points
            .iter()
            .filter(|point| point.is_sound())
            .collect();
        if points.len() < 2 || points.iter().all(|point| point.low == point.high) {
            return;
        }
        let upper = points.iter().map(|point| self.place(point.x, point.high));
        let lower = points
            .iter()
            .rev()
            .map(|point| self.place(point.x, point.low));
        let outline: Vec<_> = upper.chain(lower).collect();
        canvas.shape(&format!("band {}", look.class), &outline);
    }

    /// The line of a series, and a dot with its figures for each point.
    pub fn curve(
        &self,
        canvas: &mut Canvas,
        series: &Series,
        look: &Look,
        tip: &dyn Fn(&Point) -> String,
    ) {
        let points: Vec<&Point> = series
            .points
            .iter()
            .filter(|point| point.is_sound())
            .collect();
        let line: Vec<_> = points
            .iter()
            .map(|point| self.place(point.x, point.y))
            .collect();
        canvas.curve(&format!("line {}", look.class), &line, look.dash);
        if matches!(series.role, Role::Ours | Role::Peer) {
            for (point, place) in points.iter().zip(&line) {
                let radius = if series.role == Role::Ours { 2.4 } else { 1.7 };
                canvas.dot(&format!("dot {}", look.class), *place, radius, &tip(point));
            }
        }
    }

    /// The half in which ours is ahead, the line at 1 and the target.
    pub fn sides(&self, canvas: &mut Canvas, ratio: &Ratio) {
        let one = self.row(1.0);
        let (top, bottom) = (self.area.top, self.area.bottom());
        let half = if ratio.less_is_ahead {
            (one, bottom)
        } else {
            (top, one)
        };
        let area = Area {
            top: half.0,
            height: half.1 - half.0,
            ..self.area
        };
        canvas.rectangle("ahead", area, "");
        canvas.line("one", self.area.across(one), "");
        if let Some(y) = self.target(ratio) {
            canvas.line("limit", self.area.across(y), "1.5 3");
        }
    }

    /// Height of the target's line, unless it is the one at 1 or out of sight.
    fn target(&self, ratio: &Ratio) -> Option<f64> {
        let target = ratio
            .target
            .filter(|target| (target - 1.0).abs() > 1e-9 && self.y.holds(*target))?;
        Some(self.row(target))
    }

    /// The words of [`Self::sides`], which lie on top of the curves.
    pub fn words(&self, canvas: &mut Canvas, ratio: &Ratio) {
        let (top, bottom) = (self.area.top, self.area.bottom());
        let size = canvas.font_size();
        let word = if ratio.less_is_ahead {
            bottom - size * 0.45
        } else {
            top + size * 1.1
        };
        canvas.text(
            "side",
            at(self.area.left + 6.0, word),
            Anchor::Start,
            &ratio.ahead,
        );
        if !ratio.note.is_empty() {
            let note = if ratio.less_is_ahead {
                top + size * 1.1
            } else {
                bottom - size * 0.45
            };
            let right = self.area.right() - 4.0;
            canvas.text("side", at(right, note), Anchor::End, &ratio.note);
        }
        if let (Some(y), Some(target)) = (self.target(ratio), ratio.target) {
            let text = format!("goal {}", axis::number(target));
            // On the side away from 1, whose line would run through it.
            let beside = if target < 1.0 { y + size } else { y - 4.0 };
            canvas.text(
                "side",
                at(self.area.right() - 4.0, beside),
                Anchor::End,
                &text,
            );
        }
    }

    /// Whiskers for the spread of ratios.
    pub fn whiskers(&self, canvas: &mut Canvas, series: &Series, look: &Look) {
        for point in series.points.iter().filter(|point| point.is_sound()) {
            let spread = Segment {
                from: self.place(point.x, point.low),
                to: self.place(point.x, point.high),
            };
            canvas.line(&format!("whisker {}", look.class), spread, "");
        }
    }
}
