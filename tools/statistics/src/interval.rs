// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Confidence intervals of a median, a ratio or a geometric mean of ratios. Their ends are order
//! statistics, and their confidence is exact.
//!
//! Called by compare, app and figures.
//!
//! - Each of n independent values lies below the true median with probability 1/2, however the
//!   values are distributed.
//! - So the interval from the k-th least to the k-th greatest value misses the median with
//!   probability 2 P(B < k), where B is binomial with n and 1/2. This is exact, and gives the
//!   reported confidence.
//! - k is the greatest for which the confidence is at least [`CONFIDENCE`]. If there is no such k,
//!   the interval is the whole range and its confidence is lower.
//!
//! Therefore every figure here is first made a median over rounds. Ratios are taken within rounds,
//! because a disturbance of one run of a round also disturbs its neighbours. Source: David and
//! Nagaraja, "Order Statistics", 2003, 7.1.

use super::{median, sort};
use std::iter::zip;

/// Confidence that is aimed at.
pub const CONFIDENCE: f64 = 0.95;

/// Figures of one configuration, one place per round; `None` where it failed or was excluded.
pub type Column = Vec<Option<f64>>;

/// An estimate and where the true figure lies.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// From all rounds.
    pub value: f64,
    /// Lower end: a measured value, or for ratios of two comparisons a ratio of two.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability that such an interval holds the true figure: 0.95 or more, or what is possible
    /// with few rounds.
    pub confidence: f64,
    /// Rounds that it rests on.
    pub rounds: usize,
}

impl Interval {
    /// Whether it holds a figure.
    pub fn holds(&self, figure: f64) -> bool {
        (self.low..=self.high).contains(&figure)
    }
}

/// Probability that the interval from the `rank`-th least (from 1) to the `rank`-th greatest of
/// `count` values holds the true median; 0 where there is no such interval.
pub fn confidence(count: usize, rank: usize) -> f64 {
    if rank == 0 || rank > count.div_ceil(2) {
        return 0.0;
    }
    // The logarithm of each term, since 1/2^n is no longer a number from n = 1075 on.
    let (mut below, mut term) = (0.0, -(count as f64) * std::f64::consts::LN_2);
    for chosen in 0..rank {
        below += term.exp();
        term += ((count - chosen) as f64 / (chosen + 1) as f64).ln();
    }
    (1.0 - 2.0 * below).clamp(0.0, 1.0)
}

/// The greatest confidence that so many values can carry: 0.75 with 3, 0.9375 with 5.
pub fn attainable(count: usize) -> f64 {
    confidence(count, 1)
}

/// The rank whose interval is the shortest of those with at least `wanted` confidence; 1 where none
/// has as much.
fn rank(count: usize, wanted: f64) -> usize {
    let ranks = 1..=count.div_ceil(2).max(1);
    let enough = ranks.take_while(|rank| confidence(count, *rank) >= wanted);
    enough.last().unwrap_or(1)
}

/// As people read it: `96.1 %`.
pub fn percent(confidence: f64) -> String {
    format!("{:.1} %", confidence * 100.0)
}

/// Median of the values that are there; `None` without any.
pub fn of_median(column: &Column) -> Option<Interval> {
    of_median_with(column, CONFIDENCE)
}

fn of_median_with(column: &Column, wanted: f64) -> Option<Interval> {
    let mut values: Vec<f64> = column.iter().flatten().copied().collect();
    if values.is_empty() {
        return None;
    }
    sort(&mut values);
    let (count, rank) = (values.len(), rank(values.len(), wanted));
    Some(Interval {
        value: median(&values),
        low: values[rank - 1],
        high: values[count - rank],
        confidence: confidence(count, rank),
        rounds: count,
    })
}

/// Median of the ratios `figure / base`, round by round; rounds in which one is missing say
/// nothing.
pub fn of_ratio(figure: &Column, base: &Column) -> Option<Interval> {
    of_median(&paired(figure, base))
}

/// Ratio of the medians of two columns from different comparisons, whose rounds have nothing to do
/// with each other: from the lower end of one over the upper end of the other to the opposite. Both
/// intervals hold together with the product of their confidences, so the ratio is held at least as
/// often.
pub fn of_unpaired_ratio(figure: &Column, base: &Column) -> Option<Interval> {
    let each = CONFIDENCE.sqrt();
    let (ours, theirs) = (of_median_with(figure, each)?, of_median_with(base, each)?);
    Some(Interval {
        value: ours.value / theirs.value,
        low: ours.low / theirs.high,
        high: ours.high / theirs.low,
        confidence: ours.confidence * theirs.confidence,
        rounds: ours.rounds.min(theirs.rounds),
    })
}

/// Which of several configurations counts as the best.
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

/// The best of ours over the best of theirs, round by round.
pub fn of_best_ratio(ours: &[&Column], theirs: &[&Column], better: Better) -> Option<Interval> {
    of_median(&best_paired(ours, theirs, better))
}

/// In each round the best of ours over the best of theirs. A round in which one of the two is
/// missing that have the best medians says nothing: otherwise a run that was excluded would make
/// the other side look better.
pub fn best_paired(ours: &[&Column], theirs: &[&Column], better: Better) -> Column {
    let (ours, theirs) = (best_of(ours, better), best_of(theirs, better));
    paired(&ours, &theirs)
}

/// The best of each round in which the column with the best median has a value.
pub fn best_of(columns: &[&Column], better: Better) -> Column {
    let medians = columns.iter().filter_map(|column| {
        let values: Vec<f64> = column.iter().flatten().copied().collect();
        (!values.is_empty()).then(|| (median(&values), *column))
    });
    let leader = medians.reduce(|first, second| {
        if better.of(first.0, second.0) == first.0 {
            first
        } else {
            second
        }
    });
    let Some((_, leader)) = leader else {
        return Column::new();
    };
    let best = |(round, own): (usize, &Option<f64>)| {
        let others = columns.iter().filter_map(|column| *column.get(round)?);
        Some(others.fold((*own)?, |best, value| better.of(best, value)))
    };
    leader.iter().enumerate().map(best).collect()
}

/// The columns of one size: ours and theirs.
pub type Sides<'a> = (Vec<&'a Column>, Vec<&'a Column>);

/// Geometric mean over sizes of the best of ours over the best of theirs, round by round. Where a
/// round lacks some sizes, it counts by how far the others lie from their own medians.
pub fn of_geometric_mean(sizes: &[Sides<'_>], better: Better) -> Option<Interval> {
    let logarithms: Vec<(f64, Column)> = sizes
        .iter()
        .filter_map(|(ours, theirs)| {
            let ratios = best_paired(ours, theirs, better);
            let column: Column = ratios
                .iter()
                .map(|ratio| ratio.map(|ratio| ratio.ln()))
                .collect();
            Some((of_median(&column)?.value, column))
        })
        .collect();
    let usual = mean(logarithms.iter().map(|(usual, _)| *usual))?;
    let rounds = logarithms.iter().map(|(_, column)| column.len()).max()?;
    let of_round = |round: usize| {
        let away = logarithms
            .iter()
            .filter_map(|(usual, column)| Some((*column.get(round)?)? - usual));
        Some((usual + mean(away)?).exp())
    };
    of_median(&(0..rounds).map(of_round).collect())
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

/// Ratios round by round.
pub fn paired(figure: &Column, base: &Column) -> Column {
    zip(figure, base)
        .map(|(figure, base)| Some((*figure)? / (*base)?))
        .collect()
}

/// Two columns with the rounds only that both have.
pub fn shared(one: &Column, other: &Column) -> (Column, Column) {
    zip(one, other)
        .map(|(one, other)| match (one, other) {
            (Some(_), Some(_)) => (*one, *other),
            _ => (None, None),
        })
        .unzip()
}

#[cfg(test)]
mod tests;
