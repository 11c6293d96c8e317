// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What Weft aims at inside a node, and how far it is: every size against the best of all others and against each MPI's own transport,
//! and the shortest and the longest message against what the hardware allows.
//!
//! Called by table, files and pages. The aims are this project's own (chosen): nothing slower than the best there is, and clearly
//! faster on average.

use super::analysis::Analysis;
use super::plan::{Contender, Discipline};
use super::record::{Turn, better};
use crate::catalogue::{self, Ranks};
use crate::statistics::bootstrap::{Better, Column, Interval, of_median};
use crate::statistics::speed::Speed;
use serde::Serialize;

/// Latency and collectives at most this much of the best peer's, at every size.
const AIM_LATENCY: f64 = 1.0;
/// Geometric mean of latency over all sizes.
const AIM_LATENCY_MEAN: f64 = 0.8;
/// Bandwidth and message rate at least this much of the best peer's, at every size.
const AIM_BANDWIDTH: f64 = 1.0;
/// Geometric mean of bandwidth over all sizes.
const AIM_BANDWIDTH_MEAN: f64 = 1.25;
/// 8 bytes one way, in hand-overs of a cache line.
const AIM_HANDOVERS: f64 = 1.8;
/// 4 MiB one way, in copies of as much memory.
const AIM_COPIES: f64 = 1.5;
/// Message of the first limit, in bytes.
const SMALL_BYTES: usize = 8;
/// Message of the second limit, in bytes.
const LARGE_BYTES: usize = super::cores::COPY_BYTES;

/// How an aim stands.
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
    pub fn of(ratio: &Interval, aim: f64, better: Better) -> Self {
        let reaches = |value| better.reaches(value, aim);
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

    /// Whether the figure itself reaches the aim.
    pub fn is_met(self) -> bool {
        matches!(self, Self::Met | Self::LikelyMet)
    }
}

/// One aim.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What it is about, as `latency, 2 ranks`.
    pub group: String,
    /// What Weft is divided by, as `best peer`.
    pub against: String,
    /// Message size; `None` for a mean over sizes.
    pub size_bytes: Option<usize>,
    /// Who was the best of Weft's, and who of the others; empty for a mean.
    pub who: String,
    /// The ratio.
    pub ratio: Interval,
    /// The aim.
    pub aim: f64,
    /// How it stands.
    pub verdict: Verdict,
}

/// All aims of a discipline that figures are there for.
pub fn checks(analysis: &Analysis<'_>, discipline: &Discipline) -> Vec<Check> {
    let mut list = against_best(analysis, discipline);
    list.extend(mean(analysis, discipline));
    if pairs(discipline) {
        let ours = analysis.record.contenders(discipline);
        for contender in ours.into_iter().filter(|contender| contender.is_ours()) {
            list.extend(against_own(analysis, discipline, contender));
        }
    }
    if discipline.benchmark == "latency" && discipline.hosts.is_empty() {
        list.extend(limits(analysis, discipline));
    }
    list
}

/// Whether it is one of the point-to-point benchmarks.
pub fn pairs(discipline: &Discipline) -> bool {
    catalogue::find(&discipline.benchmark).is_some_and(|benchmark| benchmark.ranks != Ranks::All)
}

fn aim(discipline: &Discipline) -> f64 {
    match better(&discipline.benchmark) {
        Better::Less => AIM_LATENCY,
        Better::More => AIM_BANDWIDTH,
    }
}

/// The aim for the mean; collectives have none.
pub fn aim_of_mean(discipline: &Discipline) -> Option<f64> {
    pairs(discipline).then(|| match better(&discipline.benchmark) {
        Better::Less => AIM_LATENCY_MEAN,
        Better::More => AIM_BANDWIDTH_MEAN,
    })
}

fn against_best(analysis: &Analysis<'_>, discipline: &Discipline) -> Vec<Check> {
    let of_size = |size| {
        let ratio = analysis.ratio_to_best(discipline, size)?;
        let (ours, _) = analysis.leader(discipline, true, size)?;
        let (theirs, _) = analysis.leader(discipline, false, size)?;
        Some(Check {
            group: discipline.to_string(),
            against: "best peer".to_owned(),
            size_bytes: Some(size),
            who: format!("{} against {theirs}", ours.mpi),
            verdict: Verdict::of(&ratio, aim(discipline), better(&discipline.benchmark)),
            aim: aim(discipline),
            ratio,
        })
    };
    analysis
        .all_sizes(discipline)
        .into_iter()
        .filter_map(of_size)
        .collect()
}

fn mean(analysis: &Analysis<'_>, discipline: &Discipline) -> Option<Check> {
    let aim = aim_of_mean(discipline)?;
    let ratio = analysis.mean_to_best(discipline)?;
    Some(Check {
        group: discipline.to_string(),
        against: "best peer, geometric mean".to_owned(),
        size_bytes: None,
        who: String::new(),
        verdict: Verdict::of(&ratio, aim, better(&discipline.benchmark)),
        aim,
        ratio,
    })
}

fn against_own(analysis: &Analysis<'_>, discipline: &Discipline, ours: &Contender) -> Vec<Check> {
    let own = ours.own();
    let of_size = |size| {
        let ratio = analysis.ratio(discipline, (ours, &own), size)?;
        Some(Check {
            group: discipline.to_string(),
            against: format!("{}'s own transport", ours.mpi),
            size_bytes: Some(size),
            who: format!("{ours} against {own}"),
            verdict: Verdict::of(&ratio, aim(discipline), better(&discipline.benchmark)),
            aim: aim(discipline),
            ratio,
        })
    };
    analysis
        .sizes(discipline, ours)
        .into_iter()
        .filter_map(of_size)
        .collect()
}

fn limits(analysis: &Analysis<'_>, discipline: &Discipline) -> Vec<Check> {
    let handover = |speed: Speed| speed.handover_ns;
    let copy = |speed: Speed| Some(speed.copy_ns);
    [
        limit(analysis, discipline, SMALL_BYTES, &handover).map(|(who, ratio)| {
            (
                "one hand-over of a cache line",
                AIM_HANDOVERS,
                who,
                ratio,
                SMALL_BYTES,
            )
        }),
        limit(analysis, discipline, LARGE_BYTES, &copy).map(|(who, ratio)| {
            (
                "one copy of as much memory",
                AIM_COPIES,
                who,
                ratio,
                LARGE_BYTES,
            )
        }),
    ]
    .into_iter()
    .flatten()
    .map(|(against, aim, who, ratio, size)| Check {
        group: discipline.to_string(),
        against: against.to_owned(),
        size_bytes: Some(size),
        who,
        verdict: Verdict::of(&ratio, aim, Better::Less),
        aim,
        ratio,
    })
    .collect()
}

/// Weft's best MPI over what was measured beside each of its runs.
fn limit(
    analysis: &Analysis<'_>,
    discipline: &Discipline,
    size: usize,
    limit_ns: &dyn Fn(Speed) -> Option<f64>,
) -> Option<(String, Interval)> {
    let (leader, _) = analysis.leader(discipline, true, size)?;
    let figures = analysis.column(discipline, leader, size)?;
    let beside = |turn: &&Turn| {
        turn.discipline == *discipline && turn.contender == *leader && turn.failure.is_none()
    };
    let mut ratios: Column = vec![None; figures.len()];
    for turn in analysis.record.turns.iter().filter(beside) {
        if let (Some(Some(us)), Some(limit)) = (figures.get(turn.round), limit_ns(turn.speed())) {
            ratios[turn.round] = Some(us * 1000.0 / limit);
        }
    }
    Some((leader.to_string(), of_median(&ratios)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::tests::{discipline, filled};

    fn interval(low: f64, value: f64, high: f64) -> Interval {
        Interval {
            value,
            low,
            high,
            confidence: 0.95,
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
    fn latency_is_held_against_best_peer_own_transport_and_hardware() {
        let record = filled();
        let list = checks(&Analysis::of(&record), &discipline("latency"));
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
                "Some(8) best peer 0.67 met",
                "Some(4096) best peer 0.67 met",
                "None best peer, geometric mean 0.67 met",
                "Some(8) mpich's own transport 0.50 met",
                "Some(4096) mpich's own transport 0.50 met",
                // 0.3 us in hand-overs of 80 ns
                "Some(8) one hand-over of a cache line 3.75 missed",
            ]
        );
    }
}
