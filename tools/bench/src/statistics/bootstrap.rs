// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How sure a median, a ratio of medians or a geometric mean of ratios is: the percentile bootstrap over rounds.
//!
//! Called by compare. Rounds are drawn anew with replacement, and all figures of a round are drawn together, for what disturbs one
//! run of a round disturbs its neighbours: so ratios are paired by round without any assumption about how noise is distributed.
//! Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13.

use super::{median, percentile, sort};
use std::iter::zip;

/// Draws (chosen: the ends of the interval then move by less than a hundredth of its width from seed to seed).
pub const DRAWS: usize = 1000;
/// Confidence that is aimed at.
pub const CONFIDENCE: f64 = 0.95;

/// Figures of one contender, one place per round; `None` where it failed or was excluded.
pub type Column = Vec<Option<f64>>;

/// An estimate and where the true figure lies.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// From all rounds.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability that the interval holds the true figure: 0.95, or less where the rounds are too few for it.
    pub confidence: f64,
}

impl Interval {
    /// Whether all of it lies at or below `limit`.
    pub fn surely_at_most(&self, limit: f64) -> bool {
        self.high <= limit
    }

    /// Whether all of it lies at or above `limit`.
    pub fn surely_at_least(&self, limit: f64) -> bool {
        self.low >= limit
    }
}

/// The confidence that so many values can carry for a median: no interval between measured values holds the true median with
/// more than 1 - 2^(1-n).
pub fn attainable(count: usize) -> f64 {
    match count {
        0 | 1 => 0.0,
        count => CONFIDENCE.min(1.0 - 0.5_f64.powi(count.min(64) as i32 - 1)),
    }
}

/// The interval of any figure that can be computed from a choice of rounds. `estimate` gets the numbers of the rounds drawn and
/// says `None` when they hold too little; `count` is how many rounds carry a value, for the confidence.
pub fn interval(
    rounds: usize,
    count: usize,
    estimate: impl Fn(&[usize]) -> Option<f64>,
) -> Option<Interval> {
    let all: Vec<usize> = (0..rounds).collect();
    let value = estimate(&all)?;
    // A fixed seed: the same measurements give the same report.
    let mut random = fastrand::Rng::with_seed(0x5745_4654);
    let mut drawn = vec![0; rounds];
    let mut values = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        drawn.fill_with(|| random.usize(..rounds));
        values.extend(estimate(&drawn));
    }
    sort(&mut values);
    let tail = (1.0 - CONFIDENCE) / 2.0 * 100.0;
    Some(Interval {
        value,
        low: percentile(&values, tail).min(value),
        high: percentile(&values, 100.0 - tail).max(value),
        confidence: attainable(count),
    })
}

/// Median of a column.
pub fn of_median(column: &Column) -> Option<Interval> {
    interval(column.len(), present(column), |drawn| {
        median_of(column, drawn)
    })
}

/// Median of the ratios `figure / base`, round by round; rounds in which one is missing say nothing.
pub fn of_ratio(figure: &Column, base: &Column) -> Option<Interval> {
    let ratios = paired(figure, base);
    of_median(&ratios)
}

/// Ratio of the medians of two columns from different comparisons, whose rounds have nothing to do with each other.
pub fn of_unpaired_ratio(figure: &Column, base: &Column) -> Option<Interval> {
    let (first, second) = (figure.len(), base.len());
    let count = present(figure).min(present(base));
    // One draw holds the rounds of both: below `first` those of the figure, above it those of the base.
    let mut both = interval(first + second, count, |drawn| {
        let ours: Vec<usize> = drawn.iter().copied().filter(|at| *at < first).collect();
        let theirs: Vec<usize> = drawn
            .iter()
            .filter(|at| **at >= first)
            .map(|at| at - first)
            .collect();
        Some(median_of(figure, &ours)? / median_of(base, &theirs)?)
    })?;
    both.confidence = attainable(count);
    Some(both)
}

/// Which of several contenders counts as the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The least, as with times.
    Less,
    /// The greatest, as with bandwidths.
    More,
}

impl Better {
    /// The better of two.
    pub fn of(self, first: f64, second: f64) -> f64 {
        match self {
            Self::Less => first.min(second),
            Self::More => first.max(second),
        }
    }

    /// Whether `ratio` (ours over theirs) is no worse than `limit`.
    pub fn reaches(self, ratio: f64, limit: f64) -> bool {
        match self {
            Self::Less => ratio <= limit,
            Self::More => ratio >= limit,
        }
    }
}

/// The best of ours over the best of theirs. Which one is best is decided anew in each draw, so the interval holds the doubt about
/// that as well.
pub fn of_best_ratio(ours: &[&Column], theirs: &[&Column], better: Better) -> Option<Interval> {
    let rounds = rounds_of(ours.iter().chain(theirs));
    let count = fewest(ours).min(fewest(theirs));
    interval(rounds, count, |drawn| {
        Some(best_of(ours, drawn, better)? / best_of(theirs, drawn, better)?)
    })
}

/// The columns of one size: ours and theirs.
pub type Sides<'a> = (Vec<&'a Column>, Vec<&'a Column>);

/// Geometric mean over sizes of the best of ours over the best of theirs.
pub fn of_geometric_mean(sizes: &[Sides<'_>], better: Better) -> Option<Interval> {
    let rounds = rounds_of(
        sizes
            .iter()
            .flat_map(|(ours, theirs)| ours.iter().chain(theirs)),
    );
    let count = sizes
        .iter()
        .map(|(ours, theirs)| fewest(ours).min(fewest(theirs)))
        .min()?;
    interval(rounds, count, |drawn| {
        let mut sum = 0.0;
        for (ours, theirs) in sizes {
            sum += (best_of(ours, drawn, better)? / best_of(theirs, drawn, better)?).ln();
        }
        Some((sum / sizes.len() as f64).exp())
    })
}

/// Ratios round by round.
pub fn paired(figure: &Column, base: &Column) -> Column {
    zip(figure, base)
        .map(|(figure, base)| Some((*figure)? / (*base)?))
        .collect()
}

fn median_of(column: &Column, drawn: &[usize]) -> Option<f64> {
    let values: Vec<f64> = drawn
        .iter()
        .filter_map(|at| column.get(*at).copied().flatten())
        .collect();
    (!values.is_empty()).then(|| median(&values))
}

fn best_of(columns: &[&Column], drawn: &[usize], better: Better) -> Option<f64> {
    columns
        .iter()
        .filter_map(|column| median_of(column, drawn))
        .reduce(|first, second| better.of(first, second))
}

fn present(column: &Column) -> usize {
    column.iter().flatten().count()
}

/// Values of the best-filled column: the one that decides is rarely one that failed.
fn fewest(columns: &[&Column]) -> usize {
    columns
        .iter()
        .map(|column| present(column))
        .max()
        .unwrap_or(0)
}

fn rounds_of<'a>(columns: impl Iterator<Item = &'a &'a Column>) -> usize {
    columns.map(|column| column.len()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
