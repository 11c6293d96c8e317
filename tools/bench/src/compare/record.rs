// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Everything that a comparison found out, as it is kept: the machine, what takes part, every run.
//!
//! Filled by compare, kept by journal, read by analysis and by everything that is written. docs/report.md describes the fields.

use super::environment::Environment;
use super::plan::{Contender, Discipline, Leg};
use crate::catalogue::{self, Measure};
use crate::statistics::bootstrap::Better;
use crate::statistics::median;
use crate::statistics::speed::{Speed, around};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Runs of one leg that may fail before it is left alone (chosen: one accident is forgiven).
const FAILURES_FORGIVEN: usize = 1;

/// A run that takes longer than this, in seconds, and [`SLOW_FACTOR`] times as long as those that it is compared with, is slow (chosen).
const SLOW_SECONDS: f64 = 5.0;
/// Times the median run of the same discipline (chosen).
const SLOW_FACTOR: f64 = 4.0;
/// Rounds in which a slow series takes part (chosen: what is so far behind needs no narrow interval, and would take most of the time).
const SLOW_ROUNDS: usize = 2;

/// What takes part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Matrix {
    /// Rounds that were asked for.
    pub rounds: usize,
    /// Factor on the default iterations.
    pub repeat_scale: f64,
    /// What a size may take in a run, in seconds; 0 in comparisons from before there was such a limit.
    pub size_seconds: f64,
    /// Message sizes, as -m takes them.
    pub sizes: Option<String>,
    /// Who takes part.
    pub entrants: Vec<Entrant>,
    /// Why others do not.
    pub left_out: Vec<String>,
    /// What they are compared in.
    pub disciplines: Vec<Discipline>,
    /// The command line of each run.
    pub commands: Vec<Command>,
}

/// Somebody who takes part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entrant {
    /// Who.
    #[serde(flatten)]
    pub contender: Contender,
    /// Where; empty for this machine.
    #[serde(default)]
    pub hosts: String,
    /// The launcher's command line, as the dry run printed it.
    pub launch: String,
}

/// A command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Who runs.
    #[serde(flatten)]
    pub contender: Contender,
    /// What runs.
    #[serde(flatten)]
    pub discipline: Discipline,
    /// The words, quoted for a shell.
    pub command: String,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Who ran.
    #[serde(flatten)]
    pub contender: Contender,
    /// What ran.
    #[serde(flatten)]
    pub discipline: Discipline,
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Message size.
    pub size_bytes: usize,
    /// Mean over all iterations: microseconds or MB/s.
    pub value: f64,
    /// The same of the median block of iterations, which the comparison uses.
    pub median: f64,
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
    /// Whether a leg has failed too often to try it again.
    pub fn gave_up_on(&self, leg: &Leg) -> bool {
        let failed = |turn: &&Turn| {
            turn.failure.is_some()
                && turn.contender == leg.contender
                && turn.discipline == leg.discipline
        };
        self.turns.iter().filter(failed).count() > FAILURES_FORGIVEN
    }

    /// Whether a leg is so much slower than what it is compared with that the rounds it has had are enough.
    pub fn has_enough_of(&self, contender: &Contender, discipline: &Discipline) -> bool {
        let walls = |mine: bool| -> Vec<f64> {
            let ran = self.turns.iter().filter(|turn| {
                turn.failure.is_none()
                    && turn.discipline == *discipline
                    && (!mine || turn.contender == *contender)
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
        let series: BTreeSet<(&Discipline, &Contender)> = self
            .turns
            .iter()
            .map(|turn| (&turn.discipline, &turn.contender))
            .collect();
        let slow = series
            .into_iter()
            .filter(|(discipline, contender)| self.has_enough_of(contender, discipline));
        slow.map(|(discipline, contender)| format!("{contender}: {discipline}"))
            .collect()
    }

    /// Whether a leg has had its turn in a round.
    pub fn has(&self, leg: &Leg, round: usize) -> bool {
        self.turns.iter().any(|turn| {
            turn.round == round
                && turn.contender == leg.contender
                && turn.discipline == leg.discipline
        })
    }

    /// One sentence for each leg that failed: the rounds, and the last reason.
    pub fn failures(&self) -> Vec<String> {
        let mut by_leg: BTreeMap<(&Discipline, &Contender), (Vec<String>, &str)> = BTreeMap::new();
        for turn in &self.turns {
            if let Some(reason) = &turn.failure {
                let entry = by_leg
                    .entry((&turn.discipline, &turn.contender))
                    .or_default();
                entry.0.push((turn.round + 1).to_string());
                entry.1 = reason;
            }
        }
        by_leg
            .into_iter()
            .map(|((discipline, contender), (rounds, reason))| {
                format!(
                    "{contender}: {discipline}, round {}: {reason}",
                    rounds.join(" and ")
                )
            })
            .collect()
    }

    /// Version and library file of an MPI, once one of its runs has worked.
    pub fn version(&self, mpi: &str) -> Option<(&str, &str)> {
        self.turns
            .iter()
            .find(|turn| turn.contender.mpi == mpi && !turn.mpi_version.is_empty())
            .map(|turn| (turn.mpi_version.as_str(), turn.library.as_str()))
    }

    /// MPIs in the order in which they were named.
    pub fn mpis(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for entrant in &self.matrix.entrants {
            if !names.contains(&entrant.contender.mpi.as_str()) {
                names.push(&entrant.contender.mpi);
            }
        }
        names
    }

    /// Contenders of a discipline, in the order in which they were named.
    pub fn contenders(&self, discipline: &Discipline) -> Vec<&Contender> {
        self.matrix
            .entrants
            .iter()
            .filter(|entrant| entrant.hosts == discipline.hosts)
            .map(|entrant| &entrant.contender)
            .collect()
    }
}

#[cfg(test)]
pub(super) mod tests;
