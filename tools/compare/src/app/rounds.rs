// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All runs, the transports in turn, and whether their results agree.
//!
//! Called by app; calls job for each run. A failed run is reported, and the other runs go on. After
//! a second failure its transport is not run again.

use super::arguments::{Entrant, Settings};
use super::folder::{copy, left};
use super::job;
use super::program::{Measured, Outcome, Program};
use crate::compare::configuration::{Configuration, PLAIN};
use crate::compare::job_start::JobStart;
use crate::compare::launches::{dry_run, run_options};
use crate::compare::measure::Interrupt;
use crate::error::Error;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use weft_statistics::interval::Column;

/// Failures after which a transport is left alone (chosen: one may be an accident).
const PATIENCE: usize = 2;
/// Added to the limit that `weft run` keeps, for the case that it does not.
const SPARE: Duration = Duration::from_secs(30);

/// What was run and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The program and its input, in words.
    pub title: String,
    /// What its result is called.
    pub result_name: String,
    /// Ranks.
    pub ranks: u16,
    /// Where they ran, as ` on a,b`; empty for this machine.
    pub place: String,
    /// The MPI.
    pub mpi: String,
    /// Transports that ran, in the order of the command line.
    pub transports: Vec<String>,
    /// Rounds asked for.
    pub rounds: usize,
    /// Figures of the runs that succeeded.
    pub runs: Vec<Run>,
    /// Lines of the result in which all runs agree; `None` when some differ or none ran.
    pub agreed_lines: Option<usize>,
    /// Transports that cannot run here, with the reason.
    pub left_out: Vec<String>,
    /// Everything that makes the exit code 1, a sentence each.
    pub troubles: Vec<String>,
    /// A command line per transport.
    pub commands: Vec<String>,
}

/// A run that succeeded.
#[derive(Clone, Debug)]
pub struct Run {
    /// What carried the messages.
    pub transport: String,
    /// Counted from 0.
    pub round: usize,
    /// What the program reported.
    pub figures: Vec<Measured>,
}

impl Record {
    /// The figures that the program reports, by example.
    pub fn figures(&self) -> &[Measured] {
        self.runs.first().map_or(&[], |run| &run.figures)
    }

    /// A figure over a transport, round by round.
    pub fn column(&self, transport: &str, name: &str) -> Column {
        let mut column = vec![None; self.rounds];
        for run in self.runs.iter().filter(|run| run.transport == transport) {
            let found = run.figures.iter().find(|figure| figure.name == name);
            column[run.round] = found.map(|figure| figure.value);
        }
        column
    }

    /// What others are compared with: the MPI's own transport when it took part, else the last that
    /// is not Weft, else the last that is Weft set up in another way.
    pub fn base(&self) -> Option<&str> {
        let own = self.transports.iter().find(|name| *name == "native");
        let last = |takes: fn(&str) -> bool| self.transports.iter().rev().find(|name| takes(name));
        let other = last(|name| !Configuration::new("", name).is_weft());
        let variant = last(|name| name != "weft");
        own.or(other).or(variant).map(String::as_str)
    }
}

/// Runs everything.
///
/// # Errors
/// When no transport can run here, or this program cannot be found.
pub fn all(
    settings: &Settings,
    program: &dyn Program,
    folder: &Path,
    job_start: &JobStart,
) -> Result<Record, Error> {
    let weft = std::env::current_exe().map_err(Error::start("weft"))?;
    let mut record = Record {
        title: format!("{}, {}", program.title(), program.input(settings.size())),
        place: settings.place().to_string(),
        result_name: program.result_name().to_owned(),
        ranks: settings.ranks,
        mpi: settings.mpi.clone(),
        rounds: settings.rounds(),
        ..Record::default()
    };
    let mut entrants = settings.entrants();
    entrants.retain(|entrant| {
        let configuration = entrant.configuration(&settings.mpi);
        let can = dry_run(&weft, &configuration, job_start, 2);
        match &can {
            Ok(_) => record.transports.push(entrant.name.clone()),
            Err(reason) => record.left_out.push(format!("{}: {reason}", entrant.name)),
        }
        can.is_ok()
    });
    if record.transports.is_empty() {
        let reasons = record.left_out.join("; ");
        return Err(Error::Missing(format!("nothing can run here. {reasons}")));
    }
    let mut rounds = Rounds {
        settings,
        program,
        folder,
        job_start,
        weft: &weft,
        reference: None,
        differ: false,
        failures: BTreeMap::new(),
        interrupt: Interrupt::catch(),
    };
    rounds.run(&mut record, &entrants);
    if !rounds.differ {
        record.agreed_lines = rounds.reference.map(|(_, result)| result.len());
    }
    let missing: Vec<String> = record
        .left_out
        .iter()
        .map(|line| format!("left out: {line}"))
        .collect();
    record.troubles.extend(missing);
    Ok(record)
}

struct Rounds<'a> {
    settings: &'a Settings,
    program: &'a dyn Program,
    folder: &'a Path,
    job_start: &'a JobStart,
    weft: &'a Path,
    /// The first run's name and result: all others must have the same.
    reference: Option<(String, Vec<String>)>,
    differ: bool,
    failures: BTreeMap<String, usize>,
    interrupt: Interrupt,
}

impl Rounds<'_> {
    fn run(&mut self, record: &mut Record, entrants: &[Entrant]) {
        let bar = bar(record.rounds * record.transports.len());
        for round in 0..record.rounds {
            let mut order: Vec<&Entrant> = entrants.iter().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for entrant in order {
                if self.interrupt.came() {
                    record
                        .troubles
                        .push("interrupted; these are the figures until then".into());
                    return;
                }
                if self.failures.get(&entrant.name).copied().unwrap_or(0) < PATIENCE {
                    bar.set_message(format!("round {} over {}", round + 1, entrant.name));
                    self.turn(record, entrant, round);
                }
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
    }

    fn turn(&mut self, record: &mut Record, entrant: &Entrant, round: usize) {
        let name = format!("{}, round {}", entrant.name, round + 1);
        let outcome = match self.one(record, entrant, round) {
            Ok(outcome) => outcome,
            Err(reason) => {
                *self.failures.entry(entrant.name.clone()).or_default() += 1;
                record.troubles.push(format!("{name}: {reason}"));
                return;
            }
        };
        match &self.reference {
            None => self.reference = Some((name, outcome.result)),
            Some((first, expected)) => {
                if let Some(line) = difference(expected, &outcome.result) {
                    self.differ = true;
                    record.troubles.push(format!(
                        "the results differ between {first} and {name}: {line}"
                    ));
                }
            }
        }
        record.runs.push(Run {
            transport: entrant.name.clone(),
            round,
            figures: outcome.figures,
        });
    }

    fn one(&self, record: &mut Record, entrant: &Entrant, round: usize) -> Result<Outcome, Error> {
        // Names may hold a colon or a slash, as ofi:PROVIDER.
        let plain: String = entrant
            .name
            .chars()
            .map(|letter| {
                if letter.is_ascii_alphanumeric() {
                    letter
                } else {
                    '-'
                }
            })
            .collect();
        let folder = self.folder.join(format!("{plain}-{}", round + 1));
        copy(&self.folder.join("input"), &folder)?;
        let words = self
            .program
            .command(&folder, self.settings.ranks, self.settings.size())?;
        let command = self.command(entrant, &words);
        if round == 0 {
            let text: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
            record.commands.push(text.join(" "));
        }
        let limit = Duration::from_secs(self.settings.timeout) + SPARE;
        job::run(&command, &folder, limit)?;
        let mut outcome = self.program.read(&folder)?;
        outcome.figures.push(whole_job(&folder)?);
        Ok(outcome)
    }

    fn command(&self, entrant: &Entrant, words: &[String]) -> Vec<OsString> {
        let mut command = self.job_start.enter.clone();
        command.extend([self.weft.into(), "run".into()]);
        let configuration = entrant.configuration(&self.settings.mpi);
        let ranks = self.settings.ranks.into();
        command.extend(run_options(&configuration, self.job_start, ranks));
        let seconds = self.settings.timeout.to_string();
        command.extend(["--quiet", "--timeout", &seconds].map(OsString::from));
        // A single rank has nobody to send to.
        if configuration.is_weft() && self.settings.ranks > 1 {
            command.push("--require-weft".into());
        }
        let other = self.settings.libfabric.as_ref();
        let takes = configuration.is_weft() && configuration.variant() != Some(PLAIN);
        if let Some(file) = other.filter(|_| takes) {
            command.extend(["--libfabric".into(), file.into()]);
        }
        let shared = self.settings.environment.iter();
        for variable in shared.chain(&entrant.environment) {
            command.extend(["--env", variable].map(OsString::from));
        }
        command.push("--".into());
        command.extend(words.iter().map(OsString::from));
        command
    }
}

/// How long the job took by the wall clock, from the start of `weft run` to its end.
fn whole_job(folder: &Path) -> Result<Measured, Error> {
    let seconds = left(&folder.join(job::SECONDS))?;
    let seconds = seconds.trim().parse();
    let seconds = seconds.map_err(|_| Error::result("the run's duration was not kept"))?;
    Ok(Measured::duration_s("whole job", seconds))
}

fn bar(runs: usize) -> ProgressBar {
    let bar = ProgressBar::new(runs as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}, {eta} left") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// The first line that differs, in both forms.
fn difference(expected: &[String], found: &[String]) -> Option<String> {
    if expected == found {
        return None;
    }
    let at = expected
        .iter()
        .zip(found)
        .position(|(first, second)| first != second);
    Some(match at {
        Some(at) => format!("line {}: '{}' and '{}'", at + 1, expected[at], found[at]),
        None => format!("{} lines and {} lines", expected.len(), found.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_is_native_then_another_transport_then_another_way_of_weft() {
        for (transports, base) in [
            (&["weft", "native", "tcp"][..], Some("native")),
            (&["weft", "tcp", "weft+mpi"], Some("tcp")),
            (&["weft", "weft+mpi"], Some("weft+mpi")),
            (&["one", "two"], Some("two")),
            (&["weft"], None),
        ] {
            let transports = transports.iter().map(|name| (*name).to_owned()).collect();
            let record = Record {
                transports,
                ..Record::default()
            };
            assert_eq!(record.base(), base);
        }
    }

    #[test]
    fn first_difference_is_shown_from_both_sides() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(difference(&lines("a\nb"), &lines("a\nb")), None);
        let shown = difference(&lines("a\nb"), &lines("a\nc")).expect("differ");
        assert!(shown.contains("line 2") && shown.contains("'b'") && shown.contains("'c'"));
        assert_eq!(
            difference(&lines("a\nb"), &lines("a")),
            Some("2 lines and 1 lines".into())
        );
    }
}
