// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Published numbers beside the numbers that were measured on this machine.
//!
//! Filled by list and called by figures: the table below each figure has both columns.

use weft_chart::axis::figure as digits;
use weft_chart::figure::{Figure, Point, Shape};
use weft_chart::table::{Cell, Table};

/// A published number.
#[derive(Debug)]
pub struct Claim {
    /// What it is.
    pub what: &'static str,
    /// The number, and on what machine; as the source states it.
    pub published: &'static str,
    /// What is measured here in its place.
    pub here: Here,
}

/// What is taken from a figure.
#[derive(Debug)]
pub enum Here {
    /// Geometric mean over the sizes from..=to of the first variant over the one at this place
    /// among the others.
    Mean(usize, u64, u64),
    /// The greatest advantage of the first variant over the second at any size, as a factor above
    /// 1.
    Most,
    /// The first variant over the second at one size.
    At(u64),
    /// The greatest point of the series at this place.
    Greatest(usize),
    /// The bar at this place.
    Bar(usize),
    /// The first bar over the second.
    Bars,
    /// Figures of both variants at one size.
    Both(u64),
}

/// The table of a figure's claims; `None` without any.
pub fn table(title: &str, claims: &[Claim], figure: &Figure) -> Option<Table> {
    let row = |claim: &Claim| {
        vec![
            Cell::text(claim.what),
            Cell::text(claim.published),
            Cell::text(here(&claim.here, figure).unwrap_or_else(|| "not measured".into())),
        ]
    };
    (!claims.is_empty()).then(|| Table {
        caption: format!("{title}: published and here"),
        columns: ["what", "published", "on this machine"]
            .map(str::to_owned)
            .to_vec(),
        rows: claims.iter().map(row).collect(),
    })
}

/// What was measured, in words; `None` when it is not in the figure.
pub fn here(here: &Here, figure: &Figure) -> Option<String> {
    let ratio = figure.ratio.as_ref();
    let ratios = |at: usize| Some(ratio?.series.get(at)?.points.as_slice());
    match here {
        Here::Mean(at, from, to) => {
            let inside: Vec<f64> = ratios(*at)?
                .iter()
                .filter(|point| (*from as f64..=*to as f64).contains(&point.x))
                .map(|point| point.y)
                .collect();
            let mean =
                (inside.iter().map(|value| value.ln()).sum::<f64>() / inside.len() as f64).exp();
            mean.is_finite()
                .then(|| format!("{mean:.2}, geometric mean of {} sizes", inside.len()))
        }
        Here::Most => {
            let less = ratio?.less_is_ahead;
            let factor = |point: &&Point| if less { 1.0 / point.y } else { point.y };
            let best = ratios(0)?
                .iter()
                .max_by(|one, other| factor(one).total_cmp(&factor(other)))?;
            Some(format!("{:.2} times, at {} bytes", factor(&best), best.x))
        }
        Here::At(size) => {
            let point = find(ratios(0)?, *size)?;
            Some(format!(
                "{:.2} ({:.2} to {:.2})",
                point.y, point.low, point.high
            ))
        }
        Here::Greatest(at) => {
            let points = &figure.series.get(*at)?.points;
            let best = points
                .iter()
                .max_by(|one, other| one.y.total_cmp(&other.y))?;
            Some(spread(best, &figure.y.unit) + &format!(", at {}", best.x))
        }
        Here::Bar(at) => Some(spread(
            figure.series.get(*at)?.points.first()?,
            &figure.x.unit,
        )),
        Here::Bars if figure.shape == Shape::Bars => {
            let value = |at: usize| Some(figure.series.get(at)?.points.first()?.y);
            match ratios(0).and_then(|points| points.first()) {
                Some(point) => Some(format!(
                    "{:.2} ({:.2} to {:.2})",
                    point.y, point.low, point.high
                )),
                None => Some(format!("{:.2}", value(0)? / value(1)?)),
            }
        }
        Here::Bars => None,
        Here::Both(size) => {
            let one = |at: usize| find(&figure.series.get(at)?.points, *size);
            let unit = &figure.y.unit;
            Some(format!(
                "{} and {}",
                spread(one(1)?, unit),
                spread(one(0)?, unit)
            ))
        }
    }
}

fn find(points: &[Point], size: u64) -> Option<&Point> {
    points.iter().find(|point| point.x == size as f64)
}

fn spread(point: &Point, unit: &str) -> String {
    if point.low == point.high {
        return format!("{} {unit}", digits(point.y));
    }
    let (low, high) = (digits(point.low), digits(point.high));
    format!("{} ({low} to {high}) {unit}", digits(point.y))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_chart::figure::{Ratio, Series};

    fn curves(less_is_ahead: bool) -> Figure {
        let series = |points: &[(f64, f64)]| Series {
            points: points.iter().map(|(x, y)| Point::plain(*x, *y)).collect(),
            ..Series::default()
        };
        Figure {
            series: vec![
                series(&[(8.0, 1.0), (16.0, 2.0)]),
                series(&[(8.0, 2.0), (16.0, 8.0)]),
            ],
            ratio: Some(Ratio {
                less_is_ahead,
                series: vec![series(&[(8.0, 0.5), (16.0, 0.25), (32.0, 2.0)])],
                ..Ratio::default()
            }),
            ..Figure::default()
        }
    }

    #[test]
    fn mean_is_geometric_and_within_its_sizes() {
        let said = here(&Here::Mean(0, 16, 32), &curves(true)).expect("measured");
        assert!(said.starts_with("0.71, geometric mean of 2"), "{said}");
        assert_eq!(here(&Here::Mean(0, 64, 64), &curves(true)), None);
        assert_eq!(here(&Here::Mean(1, 8, 64), &curves(true)), None);
    }

    #[test]
    fn greatest_advantage_counts_the_way_the_figure_does() {
        assert_eq!(
            here(&Here::Most, &curves(true)).expect("one"),
            "4.00 times, at 16 bytes"
        );
        assert_eq!(
            here(&Here::Most, &curves(false)).expect("one"),
            "2.00 times, at 32 bytes"
        );
    }

    #[test]
    fn what_was_not_measured_says_so_in_the_table() {
        let claims = [
            Claim {
                what: "one",
                published: "4",
                here: Here::At(16),
            },
            Claim {
                what: "other",
                published: "5",
                here: Here::At(64),
            },
        ];
        let table = table("x", &claims, &curves(true)).expect("claims");
        assert_eq!(table.rows[0][2].text, "0.25 (0.25 to 0.25)");
        assert_eq!(table.rows[1][2].text, "not measured");
    }
}
