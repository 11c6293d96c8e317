// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Everything that a comparison measured, as it is kept: the machine, the configurations, every
//! run.
//!
//! Filled by compare, kept by journal, read by analysis and by all reports. docs/report.md
//! describes the fields.

use super::configuration::{Configuration, Run, Workload};
use super::environment::Environment;
use super::place::Place;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use weft_osu::catalogue;
use weft_osu::description::Measure;
use weft_statistics::interval::Better;
use weft_statistics::median;
use weft_statistics::speed::{Speed, around};

/// Runs of one run that may fail before it is left alone (chosen: one accident is forgiven).
const FAILURES_FORGIVEN: usize = 1;

/// A run that takes longer than this, in seconds, and [`SLOW_FACTOR`] times as long as those that
/// it is compared with, is slow (chosen).
const SLOW_SECONDS: f64 = 5.0;
/// Times the median run of the same workload (chosen).
const SLOW_FACTOR: f64 = 4.0;
/// Rounds in which a slow series takes part (chosen: what is so far behind needs no narrow
/// interval, and would take most of the time).
const SLOW_ROUNDS: usize = 2;

/// What takes part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Matrix {
    /// Rounds that were asked for.
    pub rounds: usize,
    /// Factor on the default iterations.
    pub repeat_scale: f64,
    /// What a size may take in a run, in seconds; 0 in comparisons from before there was such a
    /// limit.
    pub size_seconds: f64,
    /// Message sizes, as -m takes them.
    pub sizes: Option<String>,
    /// Who takes part.
    #[serde(rename = "configurations", alias = "entrants")]
    pub entrants: Vec<Entrant>,
    /// Why others do not.
    pub left_out: Vec<String>,
    /// What they are compared in.
    #[serde(rename = "benchmarks", alias = "disciplines")]
    pub workloads: Vec<Workload>,
    /// The command line of each run.
    pub commands: Vec<Command>,
}

impl Matrix {
    /// Whether a variant of some transport takes part.
    pub fn has_variant(&self, variant: &str) -> bool {
        let mut entrants = self.entrants.iter();
        entrants.any(|entrant| entrant.configuration.variant() == Some(variant))
    }

    /// Whether some runs took place between the hosts of a testbed.
    pub fn has_testbed(&self) -> bool {
        self.workloads.iter().any(|one| one.place.is_testbed())
    }
}

/// Somebody who takes part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entrant {
    /// Who.
    #[serde(flatten)]
    pub configuration: Configuration,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// The launcher's command line, as the dry run printed it.
    pub launch: String,
}

/// A command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Who runs.
    #[serde(flatten)]
    pub configuration: Configuration,
    /// What runs.
    #[serde(flatten)]
    pub workload: Workload,
    /// The words, quoted for a shell.
    pub command: String,
    /// How `weft run` starts the launcher for it, as its dry run printed it; empty in comparisons
    /// from before it was kept.
    #[serde(default)]
    pub launch: String,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Who ran.
    #[serde(flatten)]
    pub configuration: Configuration,
    /// What ran.
    #[serde(flatten)]
    pub workload: Workload,
    /// Round, from 0.
    pub round: usize,
    /// 0, or 1 for a run again because the machine had another speed.
    pub attempt: usize,
    /// Seconds since 1970 when it began.
    pub unix_seconds: u64,
    /// How long it took, in seconds, with starting and ending the job.
    pub wall_seconds: f64,
    /// Speed of the machine before it.
    pub before: Speed,
    /// And after it.
    pub after: Speed,
    /// What the MPI calls itself; empty when it failed.
    #[serde(default)]
    pub mpi_version: String,
    /// The MPI's library file.
    #[serde(default)]
    pub library: String,
    /// What was measured.
    #[serde(default)]
    pub rows: Vec<Row>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Turn {
    /// Speed of the machine around it.
    pub fn speed(&self) -> Speed {
        around(self.before, self.after)
    }
}

/// One message size of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Message size.
    pub size_bytes: usize,
    /// Mean over all iterations: microseconds or MB/s.
    pub value: f64,
    /// The same of the median block of iterations, which the comparison uses.
    pub median: f64,
    /// Processor time of all ranks for a message, or for an operation of a collective, in
    /// microseconds; `None` in comparisons from before it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<f64>,
    /// Percentiles of its iterations in microseconds, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// That of one in a thousand.
    #[serde(default, rename = "p99.9", skip_serializing_if = "Option::is_none")]
    pub p999: Option<f64>,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The machine.
    pub environment: Environment,
    /// What takes part.
    pub matrix: Matrix,
    /// The runs, in the order in which they ran.
    pub turns: Vec<Turn>,
}

/// Whether a small figure is the good one.
pub fn better(benchmark: &str) -> Better {
    match catalogue::find(benchmark) {
        Some(description) if description.measure != Measure::Latency => Better::More,
        _ => Better::Less,
    }
}

/// Unit of a benchmark's figure.
pub fn unit(benchmark: &str) -> &'static str {
    match better(benchmark) {
        Better::Less => "us",
        Better::More => "MB/s",
    }
}

/// What it measures, for an axis.
pub fn quantity(benchmark: &str) -> &'static str {
    match better(benchmark) {
        Better::More => "bandwidth",
        Better::Less if benchmark.contains("lat") => "one-way latency",
        Better::Less => "time per operation",
    }
}

impl Record {
    /// Whether a run has failed too often to try it again.
    pub fn gave_up_on(&self, run: &Run) -> bool {
        let failed = |turn: &&Turn| {
            turn.failure.is_some()
                && turn.configuration == run.configuration
                && turn.workload == run.workload
        };
        self.turns.iter().filter(failed).count() > FAILURES_FORGIVEN
    }

    /// Whether a run is so much slower than what it is compared with that the rounds it has had are
    /// enough.
    pub fn has_enough_of(&self, configuration: &Configuration, workload: &Workload) -> bool {
        let walls = |mine: bool| -> Vec<f64> {
            let ran = self.turns.iter().filter(|turn| {
                turn.failure.is_none()
                    && turn.workload == *workload
                    && (!mine || turn.configuration == *configuration)
            });
            ran.map(|turn| turn.wall_seconds).collect()
        };
        let own = walls(true);
        if own.len() < SLOW_ROUNDS {
            return false;
        }
        let (own, usual) = (median(&own), median(&walls(false)));
        own > SLOW_SECONDS && own > SLOW_FACTOR * usual
    }

    /// The series that are measured in fewer rounds for that.
    pub fn slow_series(&self) -> Vec<String> {
        let series: BTreeSet<(&Workload, &Configuration)> = self
            .turns
            .iter()
            .map(|turn| (&turn.workload, &turn.configuration))
            .collect();
        let slow = series
            .into_iter()
            .filter(|(workload, configuration)| self.has_enough_of(configuration, workload));
        slow.map(|(workload, configuration)| format!("{configuration}: {workload}"))
            .collect()
    }

    /// Whether a run has had its turn in a round.
    pub fn has(&self, run: &Run, round: usize) -> bool {
        self.turns.iter().any(|turn| {
            turn.round == round
                && turn.configuration == run.configuration
                && turn.workload == run.workload
        })
    }

    /// One sentence for each run that failed: the rounds, and the last reason.
    pub fn failures(&self) -> Vec<String> {
        let mut by_run: BTreeMap<(&Workload, &Configuration), (Vec<String>, &str)> =
            BTreeMap::new();
        for turn in &self.turns {
            if let Some(reason) = &turn.failure {
                let entry = by_run
                    .entry((&turn.workload, &turn.configuration))
                    .or_default();
                entry.0.push((turn.round + 1).to_string());
                entry.1 = reason;
            }
        }
        by_run
            .into_iter()
            .map(|((workload, configuration), (rounds, reason))| {
                format!(
                    "{configuration}: {workload}, round {}: {reason}",
                    rounds.join(" and ")
                )
            })
            .collect()
    }

    /// Version and library file of an MPI, once one of its runs has worked.
    pub fn version(&self, mpi: &str) -> Option<(&str, &str)> {
        self.turns
            .iter()
            .find(|turn| turn.configuration.mpi == mpi && !turn.mpi_version.is_empty())
            .map(|turn| (turn.mpi_version.as_str(), turn.library.as_str()))
    }

    /// Name and version of an MPI, without what it says besides: release dates, packages.
    pub fn short_version(&self, mpi: &str) -> Option<&str> {
        let (whole, _) = self.version(mpi)?;
        let ends = [",", " MPICH ", "\n"].map(|end| whole.find(end).unwrap_or(whole.len()));
        ends.into_iter().min().map(|end| whole[..end].trim_end())
    }

    /// MPIs in the order in which they were named.
    pub fn mpis(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for entrant in &self.matrix.entrants {
            if !names.contains(&entrant.configuration.mpi.as_str()) {
                names.push(&entrant.configuration.mpi);
            }
        }
        names
    }

    /// Configurations of a workload, in the order in which they were named.
    pub fn configurations(&self, workload: &Workload) -> Vec<&Configuration> {
        self.matrix
            .entrants
            .iter()
            .filter(|entrant| entrant.place == workload.place)
            .map(|entrant| &entrant.configuration)
            .collect()
    }
}

#[cfg(test)]
pub(super) mod tests;
