// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The goals of Weft inside a node, and how far each is reached. Every size is compared with the
//! best of all others and with each MPI's native transport; the shortest and the longest message
//! are also compared with what the hardware allows.
//!
//! Called by table, files and pages. The goals are this project's own (chosen): nothing slower than
//! the best there is, and clearly faster on average. Each goal is checked against the ratio of
//! medians and against the ratio of means.

use super::analysis::Analysis;
use super::analysis::Figures;
use super::configuration::{Configuration, Side, Workload};
use super::ratio::{Ratio, Ratios};
use super::record::{Turn, better};
use serde::Serialize;
use weft_osu::catalogue;
use weft_osu::description::Ranks;
use weft_statistics::interval::{Better, Interval};
use weft_statistics::speed::Speed;

/// Latency and collectives at most this much of the best peer's, at every size.
const GOAL_LATENCY: f64 = 1.0;
/// Geometric mean of latency over all sizes.
const GOAL_LATENCY_MEAN: f64 = 0.8;
/// Bandwidth and message rate at least this much of the best peer's, at every size.
const GOAL_BANDWIDTH: f64 = 1.0;
/// Geometric mean of bandwidth over all sizes.
const GOAL_BANDWIDTH_MEAN: f64 = 1.25;
/// 8 bytes one way, in hand-overs of a cache line.
const GOAL_HANDOVERS: f64 = 1.8;
/// 4 MiB one way, in copies of as much memory.
const GOAL_COPIES: f64 = 1.5;
/// Message of the first limit, in bytes.
const SMALL_BYTES: usize = 8;
/// Message of the second limit, in bytes.
const LARGE_BYTES: usize = super::cores::COPY_BYTES;

/// How a goal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval reaches it.
    Met,
    /// The figure does, the interval does not.
    LikelyMet,
    /// The figure misses it, a part of the interval does not.
    LikelyMissed,
    /// The whole interval misses it.
    Missed,
}

impl Verdict {
    /// Of a ratio.
    pub fn of(ratio: &Interval, goal: f64, better: Better) -> Self {
        let reaches = |value| better.reaches(value, goal);
        match (
            reaches(ratio.value),
            reaches(ratio.low) && reaches(ratio.high),
        ) {
            (true, true) => Self::Met,
            (true, false) => Self::LikelyMet,
            (false, _) if reaches(ratio.low) || reaches(ratio.high) => Self::LikelyMissed,
            (false, _) => Self::Missed,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::LikelyMet => "likely met",
            Self::LikelyMissed => "likely missed",
            Self::Missed => "missed",
        }
    }

    /// Whether the figure itself reaches the goal.
    pub fn is_met(self) -> bool {
        matches!(self, Self::Met | Self::LikelyMet)
    }
}

/// What a goal holds Weft against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The best of all others at a size.
    Best,
    /// The same over all sizes.
    BestOnAverage,
    /// What the same MPI has of its own.
    Own,
    /// The hardware, which has no better and no worse transport.
    Limit,
}

/// One goal.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What it is about, as `latency, 2 ranks`.
    pub group: String,
    /// What Weft is divided by, as `best of the others`.
    pub against: String,
    /// Of which kind that is.
    #[serde(skip)]
    pub kind: Against,
    /// Message size; `None` for a mean over sizes.
    pub size_bytes: Option<usize>,
    /// Who was the best of Weft's, and who of the others; empty for a mean.
    pub who: String,
    /// The ratio of medians.
    pub ratio: Interval,
    /// The ratio of means.
    pub ratio_of_means: Interval,
    /// The goal.
    pub goal: f64,
    /// Which side of it is the good one.
    #[serde(skip)]
    pub better: Better,
    /// How it stands by the ratio of medians.
    pub verdict: Verdict,
    /// How it stands by the ratio of means.
    pub verdict_of_means: Verdict,
}

impl Check {
    /// A goal held against both ratios; about a workload, with nobody named yet.
    fn of(workload: &Workload, kind: Against, ratios: Ratios, goal: f64) -> Self {
        let better = better(&workload.benchmark);
        let (ratio, ratio_of_means) = (ratios.of_medians, ratios.of_means);
        Self {
            group: workload.to_string(),
            against: String::new(),
            kind,
            size_bytes: None,
            who: String::new(),
            verdict: Verdict::of(&ratio, goal, better),
            verdict_of_means: Verdict::of(&ratio_of_means, goal, better),
            goal,
            better,
            ratio,
            ratio_of_means,
        }
    }

    /// Whether it is about the hardware, which has no better and no worse transport.
    pub fn is_limit(&self) -> bool {
        self.kind == Against::Limit
    }

    /// Whether it is about what the same MPI has of its own.
    pub fn is_own(&self) -> bool {
        self.kind == Against::Own
    }

    /// Whether the goal is an upper or a lower bound.
    pub fn bound(&self) -> &'static str {
        match self.better {
            Better::Less => "at most",
            Better::More => "at least",
        }
    }
}

/// All goals of a workload that figures are there for.
pub fn checks(analysis: &Analysis<'_>, workload: &Workload) -> Vec<Check> {
    let mut list = against_best(analysis, workload);
    list.extend(mean(analysis, workload));
    if pairs(workload) {
        let ours = analysis.record.configurations(workload);
        for configuration in ours
            .into_iter()
            .filter(|configuration| configuration.is_ours())
        {
            list.extend(against_own(analysis, workload, configuration));
        }
    }
    if workload.benchmark == "latency" && workload.place.is_here() {
        list.extend(limits(analysis, workload));
    }
    list
}

/// Whether it is one of the point-to-point benchmarks.
pub fn pairs(workload: &Workload) -> bool {
    catalogue::find(&workload.benchmark).is_some_and(|benchmark| benchmark.ranks != Ranks::All)
}

fn goal(workload: &Workload) -> f64 {
    match better(&workload.benchmark) {
        Better::Less => GOAL_LATENCY,
        Better::More => GOAL_BANDWIDTH,
    }
}

/// The goal for the mean; collectives have none.
pub fn goal_of_mean(workload: &Workload) -> Option<f64> {
    pairs(workload).then(|| match better(&workload.benchmark) {
        Better::Less => GOAL_LATENCY_MEAN,
        Better::More => GOAL_BANDWIDTH_MEAN,
    })
}

fn against_best(analysis: &Analysis<'_>, workload: &Workload) -> Vec<Check> {
    let of_size = |size| {
        let ratio = analysis.best_to_best(workload, size)?;
        let ours = analysis.leader(Side::Ours, workload, size)?;
        let theirs = analysis.leader(Side::Rivals, workload, size)?;
        Some(Check {
            against: workload.place.best().to_owned(),
            size_bytes: Some(size),
            who: format!("{ours} against {theirs}"),
            ..Check::of(workload, Against::Best, ratio.both(), goal(workload))
        })
    };
    analysis
        .all_sizes(workload)
        .into_iter()
        .filter_map(of_size)
        .collect()
}

fn mean(analysis: &Analysis<'_>, workload: &Workload) -> Option<Check> {
    let ratios = analysis.mean_to_best(workload)?;
    Some(Check {
        against: format!("{}, geometric mean", workload.place.best()),
        ..Check::of(
            workload,
            Against::BestOnAverage,
            ratios,
            goal_of_mean(workload)?,
        )
    })
}

fn against_own(analysis: &Analysis<'_>, workload: &Workload, ours: &Configuration) -> Vec<Check> {
    let Some(own) = analysis.baseline(workload, ours) else {
        return Vec::new();
    };
    let of_size = |size| {
        let ratio = analysis.ratio(workload, ours, &own, size)?;
        Some(Check {
            against: format!("{} {}", own.mpi, own.short()),
            size_bytes: Some(size),
            who: format!("{ours} against {own}"),
            ..Check::of(workload, Against::Own, ratio.both(), goal(workload))
        })
    };
    analysis
        .sizes(workload, ours)
        .into_iter()
        .filter_map(of_size)
        .collect()
}

fn limits(analysis: &Analysis<'_>, workload: &Workload) -> Vec<Check> {
    let handover = |speed: Speed| speed.handover_ns;
    let copy = |speed: Speed| Some(speed.copy_ns);
    let of = |against: &str, goal, size, limit_ns: &dyn Fn(Speed) -> Option<f64>| {
        let (who, ratio) = limit(analysis, workload, size, limit_ns)?;
        Some(Check {
            against: against.to_owned(),
            size_bytes: Some(size),
            who,
            ..Check::of(workload, Against::Limit, ratio.both(), goal)
        })
    };
    let handover = of(
        "one hand-over of a cache line",
        GOAL_HANDOVERS,
        SMALL_BYTES,
        &handover,
    );
    let copy = of(
        "one copy of as much memory",
        GOAL_COPIES,
        LARGE_BYTES,
        &copy,
    );
    handover.into_iter().chain(copy).collect()
}

/// Weft's best MPI over what was measured beside each of its runs.
fn limit(
    analysis: &Analysis<'_>,
    workload: &Workload,
    size: usize,
    limit_ns: &dyn Fn(Speed) -> Option<f64>,
) -> Option<(String, Ratio)> {
    let leader = analysis.leader(Side::Ours, workload, size)?;
    let figures = analysis.figures(workload, leader, size)?;
    let beside = |turn: &&Turn| {
        turn.workload == *workload && turn.configuration == *leader && turn.failure.is_none()
    };
    let mut limits = vec![None; figures.medians.len()];
    for turn in analysis.record.turns.iter().filter(beside) {
        if let (Some(place), Some(limit)) = (limits.get_mut(turn.round), limit_ns(turn.speed())) {
            *place = Some(limit / 1000.0);
        }
    }
    let limits = Figures {
        means: limits.clone(),
        medians: limits,
        ..Figures::default()
    };
    Some((leader.to_string(), Ratio::of(figures, &limits)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::tests::{filled, workload};

    fn interval(low: f64, value: f64, high: f64) -> Interval {
        Interval {
            value,
            low,
            high,
            confidence: 0.95,
            rounds: 10,
        }
    }

    #[test]
    fn verdict_says_how_sure_it_is() {
        let of = |low, value, high| Verdict::of(&interval(low, value, high), 1.0, Better::Less);
        assert_eq!(of(0.7, 0.8, 0.9), Verdict::Met);
        assert_eq!(of(0.7, 0.8, 1.1), Verdict::LikelyMet);
        assert_eq!(of(0.9, 1.1, 1.2), Verdict::LikelyMissed);
        assert_eq!(of(1.1, 1.2, 1.3), Verdict::Missed);
        assert_eq!(
            Verdict::of(&interval(1.1, 1.2, 1.3), 1.0, Better::More),
            Verdict::Met
        );
    }

    #[test]
    fn latency_is_held_best_and_hardware() {
        let record = filled();
        let list = checks(&Analysis::of(&record), &workload("latency"));
        let shown: Vec<String> = list
            .iter()
            .map(|check| {
                format!(
                    "{:?} {} {:.2} {}",
                    check.size_bytes,
                    check.against,
                    check.ratio.value,
                    check.verdict.words()
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "Some(8) best of the others 0.67 met",
                "Some(4096) best of the others 0.67 met",
                "None best of the others, geometric mean 0.67 met",
                "Some(8) mpich native 0.50 met",
                "Some(4096) mpich native 0.50 met",
                // 0.3 us in hand-overs of 80 ns
                "Some(8) one hand-over of a cache line 3.75 missed",
            ]
        );
    }
}
