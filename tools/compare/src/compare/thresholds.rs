// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What must not get worse: a file of limits, checked after a comparison, for continuous
//! integration.
//!
//! Called by compare. docs/report.md specifies the file. A limit is crossed when the whole
//! confidence interval lies beyond it, unless the rule asks for the figure itself. A rule for which
//! nothing was measured also counts as crossed, so that a missing measurement cannot pass.

use super::analysis::Analysis;
use super::configuration::{Configuration, Workload};
use super::record::{Record, unit};
use crate::error::Error;
use serde::Deserialize;
use std::path::Path;
use weft_chart::axis::{bytes, figure};
use weft_statistics::interval::{self, Interval, percent};

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// The rules.
    pub thresholds: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The benchmark, or `*`.
    pub benchmark: String,
    /// The MPI, or `*`.
    #[serde(default = "anything")]
    pub mpi: String,
    /// The transport, or `*`.
    #[serde(default = "weft")]
    pub transport: String,
    /// Ranks; any when absent.
    pub ranks: Option<usize>,
    /// Smallest message size in bytes.
    pub from_bytes: Option<usize>,
    /// Largest message size in bytes.
    pub to_bytes: Option<usize>,
    /// What the figure is divided by: `native`, `best`, `previous` or MPI/TRANSPORT; absent for the
    /// figure itself.
    pub against: Option<String>,
    /// The figure, or the ratio, may be at most this.
    pub at_most: Option<f64>,
    /// It must be at least this.
    pub at_least: Option<f64>,
    /// Whether the figure alone decides (`value`) or all of its interval (`surely`).
    #[serde(default)]
    pub judge: Judge,
}

/// What decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Judge {
    /// All of the interval must lie beyond the limit.
    #[default]
    Surely,
    /// The figure alone.
    Value,
}

fn anything() -> String {
    "*".to_owned()
}

fn weft() -> String {
    "weft".to_owned()
}

/// A rule and what came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The rule in a few words.
    pub rule: String,
    /// Figures that it was held against.
    pub checked: usize,
    /// What is wrong, a sentence each.
    pub crossed: Vec<String>,
}

/// Reads and checks a file.
///
/// # Errors
/// A sentence with the path, the rule and what is wrong with it.
pub fn read(path: &Path) -> Result<Thresholds, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
    let bad = |place: &str, problem: String| Err(Error::content(path, place, problem));
    let thresholds: Thresholds = match serde_json::from_str(&text) {
        Ok(thresholds) => thresholds,
        Err(error) => return bad("", format!("{error}; docs/report.md describes the file")),
    };
    if thresholds.thresholds.is_empty() {
        return bad("", "holds no threshold".to_owned());
    }
    for (place, rule) in thresholds.thresholds.iter().enumerate() {
        let complaint = |text: &str| bad(&format!(", threshold {}", place + 1), text.to_owned());
        let limits: Vec<f64> = [rule.at_most, rule.at_least]
            .into_iter()
            .flatten()
            .collect();
        if limits.is_empty() {
            return complaint("needs at_most or at_least");
        }
        if limits
            .iter()
            .any(|limit| !(limit.is_finite() && *limit > 0.0))
        {
            return complaint("limits must be numbers above 0");
        }
        if let Some(against) = rule.against.as_deref().filter(|against| {
            !matches!(*against, "native" | "own" | "best" | "previous") && !against.contains('/')
        }) {
            return complaint(&format!(
                "against \"{against}\" must be native, best, previous or MPI/TRANSPORT"
            ));
        }
    }
    Ok(thresholds)
}

/// Holds all rules against a comparison.
///
/// # Errors
/// When a rule needs an earlier comparison and none was given.
pub fn check(
    thresholds: &Thresholds,
    analysis: &Analysis<'_>,
    previous: Option<&Record>,
) -> Result<Vec<Outcome>, Error> {
    let earlier = previous.map(Analysis::of);
    if earlier.is_none()
        && thresholds
            .thresholds
            .iter()
            .any(|rule| rule.against.as_deref() == Some("previous"))
    {
        return Err(Error::Missing(
            "a threshold is against `previous`; name the earlier comparison with --previous"
                .to_owned(),
        ));
    }
    let outcomes = thresholds
        .thresholds
        .iter()
        .map(|rule| one(rule, analysis, earlier.as_ref()));
    Ok(outcomes.collect())
}

fn one(rule: &Rule, analysis: &Analysis<'_>, earlier: Option<&Analysis<'_>>) -> Outcome {
    let mut outcome = Outcome {
        rule: rule.to_string(),
        checked: 0,
        crossed: Vec::new(),
    };
    for workload in &analysis.record.matrix.workloads {
        for configuration in analysis.record.configurations(workload) {
            if !rule.is_about(workload, configuration) {
                continue;
            }
            for size in analysis
                .sizes(workload, configuration)
                .into_iter()
                .filter(|size| rule.holds_size(*size))
            {
                let Some(interval) =
                    rule.interval(workload, configuration, size, analysis, earlier)
                else {
                    continue;
                };
                outcome.checked += 1;
                outcome
                    .crossed
                    .extend(rule.crossed(workload, configuration, size, &interval));
            }
        }
    }
    if outcome.checked == 0 {
        outcome
            .crossed
            .push(format!("nothing was measured for it: {rule}"));
    }
    outcome
}

impl Rule {
    fn is_about(&self, workload: &Workload, configuration: &Configuration) -> bool {
        let fits = |pattern: &str, name: &str| pattern == "*" || pattern == name;
        fits(&self.benchmark, &workload.benchmark)
            && fits(&self.mpi, &configuration.mpi)
            && fits(&self.transport, &configuration.transport)
            && self.ranks.is_none_or(|ranks| ranks == workload.ranks)
    }

    fn holds_size(&self, size: usize) -> bool {
        (self.from_bytes.unwrap_or(0)..=self.to_bytes.unwrap_or(usize::MAX)).contains(&size)
    }

    fn interval(
        &self,
        workload: &Workload,
        configuration: &Configuration,
        size: usize,
        analysis: &Analysis<'_>,
        earlier: Option<&Analysis<'_>>,
    ) -> Option<Interval> {
        let figures = analysis.figures(workload, configuration, size)?;
        let ratio = match self.against.as_deref() {
            None => return interval::of_median(&figures.medians),
            Some("previous") => {
                let before = earlier?.figures(workload, configuration, size)?;
                return interval::of_unpaired_ratio(&figures.medians, &before.medians);
            }
            // "own" is how it was called at first.
            Some("native" | "own") => analysis.to_native(workload, configuration, size),
            Some("best") => analysis.to_best(workload, configuration, size),
            Some(other) => {
                let (mpi, transport) = other.split_once('/')?;
                let other = Configuration::new(mpi, transport);
                analysis.ratio(workload, configuration, &other, size)
            }
        };
        Some(ratio?.of_medians)
    }

    /// What is wrong, by how much, how surely.
    fn crossed(
        &self,
        workload: &Workload,
        configuration: &Configuration,
        size: usize,
        interval: &Interval,
    ) -> Option<String> {
        let sure = self.judge == Judge::Surely;
        let above = self
            .at_most
            .filter(|limit| (if sure { interval.low } else { interval.value }) > *limit);
        let below = self
            .at_least
            .filter(|limit| (if sure { interval.high } else { interval.value }) < *limit);
        let (limit, words) = match (above, below) {
            (Some(limit), _) => (limit, "at most"),
            (None, Some(limit)) => (limit, "at least"),
            (None, None) => return None,
        };
        let what = match &self.against {
            Some(against) => format!("times {against}"),
            None => unit(&workload.benchmark).to_owned(),
        };
        let size = if size == 0 {
            String::new()
        } else {
            format!(", {} bytes", bytes(size as f64))
        };
        Some(format!(
            "{configuration}: {workload}{size}: {} {what} ({} to {} with {} confidence), allowed \
             is {words} {limit}: {:.0} % beyond",
            figure(interval.value),
            figure(interval.low),
            figure(interval.high),
            percent(interval.confidence),
            (interval.value / limit - 1.0).abs() * 100.0
        ))
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "{} over {}: {}",
            self.mpi, self.transport, self.benchmark
        )?;
        if let Some(ranks) = self.ranks {
            write!(formatter, ", {ranks} ranks")?;
        }
        let limit = |name, limit: Option<f64>| {
            limit.map_or(String::new(), |limit| format!(", {name} {limit}"))
        };
        write!(
            formatter,
            "{}{}",
            limit("at most", self.at_most),
            limit("at least", self.at_least)
        )?;
        match &self.against {
            Some(against) => write!(formatter, " times {against}"),
            None if self.benchmark == "*" => Ok(()),
            None => write!(formatter, " {}", unit(&self.benchmark)),
        }
    }
}

#[cfg(test)]
mod tests;
