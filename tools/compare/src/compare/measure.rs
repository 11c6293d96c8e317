// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rounds of a comparison. Each run takes its turn, the machine's speed is measured beside it,
//! and both go into the journal at once.
//!
//! Called by compare; calls run. A failed run is recorded with its message; the other runs go on.
// structure: allow atomics because a signal handler may only set a flag

use super::configuration::Run;
use super::cores::Calibration;
use super::journal::Journal;
use super::plan::Plan;
use super::record::{Record, Turn};
use super::{environment, run};
use crate::error::Error;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weft_statistics::speed::{Speed, Usual};

/// Runs that must have been seen before a speed can be called another than usual (chosen).
const FEWEST_SPEEDS: usize = 5;
/// At most one in this many runs of a round is repeated for the machine's speed (chosen): a machine
/// that changes all the time would never be done.
const REPEATED_PART: usize = 4;

/// Whether somebody wants it to end.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT and SIGTERM end the comparison after the run at hand; a second one ends
    /// it at once.
    pub fn catch() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // Failing to catch a signal leaves what it does without us: the end, with the journal
            // kept.
            let _ =
                signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag));
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        Self(flag)
    }

    /// Whether one came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs all rounds that the record does not hold yet.
///
/// # Errors
/// When the journal cannot be written; the record holds what was measured until then.
pub fn all(
    plan: &Plan,
    journal: &mut Journal,
    record: &mut Record,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let mut rounds = Rounds {
        plan,
        journal,
        calibration: Calibration::on(&record.environment.cores),
        bar: bar((plan.runs.len() * plan.matrix.rounds) as u64),
        interrupt,
    };
    let result = rounds.run(record);
    rounds.bar.finish_and_clear();
    result
}

struct Rounds<'a> {
    plan: &'a Plan,
    journal: &'a mut Journal,
    calibration: Calibration,
    bar: ProgressBar,
    interrupt: &'a Interrupt,
}

impl Rounds<'_> {
    fn run(&mut self, record: &mut Record) -> Result<(), Error> {
        let count = self.plan.matrix.rounds;
        let begin = Instant::now();
        for round in 0..count {
            if self.bar.is_hidden() {
                // Without a terminal there is no bar; a log should still show that it moves.
                eprintln!(
                    "weft bench compare: round {} of {count}, {} runs{}",
                    round + 1,
                    self.plan.runs.len(),
                    left(begin, round, count)
                );
            }
            for run in self.plan.runs_of_round(round) {
                if self.interrupt.came() {
                    return Ok(());
                }
                let over = record.gave_up_on(run)
                    || record.has_enough_of(&run.configuration, &run.workload);
                if !record.has(run, round) && !over {
                    self.bar
                        .set_message(format!("round {} of {count}: {run}", round + 1));
                    self.turn(record, run, round, 0)?;
                }
                self.bar.inc(1);
            }
            self.repeat(record, round)?;
        }
        Ok(())
    }

    fn turn(
        &mut self,
        record: &mut Record,
        run: &Run,
        round: usize,
        attempt: usize,
    ) -> Result<(), Error> {
        let before = self.calibration.measure();
        let unix_seconds = environment::now();
        let start = Instant::now();
        let result = run::run(run);
        let wall_seconds = start.elapsed().as_secs_f64();
        // What is cut off by the signal that ends us has not failed.
        if self.interrupt.came() && result.is_err() {
            return Ok(());
        }
        let (outcome, failure) = match result {
            Ok(outcome) => (outcome, None),
            Err(error) => (run::Outcome::default(), Some(error.to_string())),
        };
        let turn = Turn {
            configuration: run.configuration.clone(),
            workload: run.workload.clone(),
            round,
            attempt,
            unix_seconds,
            wall_seconds,
            before,
            after: self.calibration.measure(),
            mpi_version: outcome.mpi,
            library: outcome.library,
            rows: outcome.rows,
            failure,
        };
        let kept = self.journal.add(&turn);
        record.turns.push(turn);
        kept
    }

    /// Runs again what ran while the machine had another speed, once.
    fn repeat(&mut self, record: &mut Record, round: usize) -> Result<(), Error> {
        let again = to_repeat(record, round);
        let most = self.plan.runs.len().div_ceil(REPEATED_PART);
        let runs: Vec<&Run> = self
            .plan
            .runs
            .iter()
            .filter(|run| {
                again.iter().any(|(configuration, workload)| {
                    *configuration == run.configuration && *workload == run.workload
                })
            })
            .filter(|run| !record.has_enough_of(&run.configuration, &run.workload))
            .take(most)
            .collect();
        for run in runs {
            if self.interrupt.came() {
                return Ok(());
            }
            self.bar.set_message(format!(
                "round {}: again, at the machine's usual speed: {run}",
                round + 1
            ));
            self.turn(record, run, round, 1)?;
        }
        Ok(())
    }
}

type Who = (
    super::configuration::Configuration,
    super::configuration::Workload,
);

/// The runs of a round that took place at another speed than usual, and were not repeated yet.
fn to_repeat(record: &Record, round: usize) -> Vec<Who> {
    let speeds: Vec<Speed> = record
        .turns
        .iter()
        .flat_map(|turn| [turn.before, turn.after])
        .collect();
    let Some(usual) = Usual::of(&speeds).filter(|_| speeds.len() >= FEWEST_SPEEDS) else {
        return Vec::new();
    };
    let mine = || {
        record
            .turns
            .iter()
            .filter(|turn| turn.round == round && turn.failure.is_none())
    };
    let repeated = |turn: &Turn| {
        mine().any(|other| {
            other.attempt > 0
                && other.configuration == turn.configuration
                && other.workload == turn.workload
        })
    };
    mine()
        .filter(|turn| turn.attempt == 0 && usual.differs(&turn.speed()) && !repeated(turn))
        .map(|turn| (turn.configuration.clone(), turn.workload.clone()))
        .collect()
}

fn bar(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    let form = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({eta} left)");
    bar.set_style(form.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

fn left(begin: Instant, done: usize, count: usize) -> String {
    if done == 0 {
        return String::new();
    }
    let seconds = begin.elapsed().as_secs_f64() / done as f64 * (count - done) as f64;
    format!(", about {:.0} min left", (seconds / 60.0).ceil())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::record::tests::{SPEED, filled, run as named};

    fn scripted(name: &str, script: &str) -> Run {
        Run {
            command: ["sh", "-c", script].map(Into::into).to_vec(),
            limit: Duration::from_secs(30),
            ..named(name, "native", "latency")
        }
    }

    const GOOD: &str = r#"echo '{"type":"row","size_bytes":8,"value":0.9,"median":0.5}'"#;

    #[test]
    fn failing_run_is_recorded_and_the_others_go_on() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut record = Record::default();
        record.matrix.rounds = 3;
        let plan = Plan {
            matrix: record.matrix.clone(),
            runs: vec![
                scripted("bad", "echo broken >&2; kill -9 $$"),
                scripted("good", GOOD),
            ],
        };
        let mut journal =
            Journal::begin(folder.path(), &record.environment, &plan.matrix).expect("begun");
        let never = Interrupt(Arc::new(AtomicBool::new(false)));
        all(&plan, &mut journal, &mut record, &never).expect("measured");
        let counted = |record: &Record, name: &str| {
            record
                .turns
                .iter()
                .filter(|turn| turn.configuration.mpi == name && turn.attempt == 0)
                .count()
        };
        assert_eq!(
            (counted(&record, "bad"), counted(&record, "good")),
            (2, 3),
            "given up after the second failure"
        );
        assert!(
            record.failures()[0].contains("signal: 9") && record.failures()[0].contains("broken"),
            "{:?}",
            record.failures()
        );
        all(&plan, &mut journal, &mut record, &never).expect("nothing is left to do");
        assert_eq!((counted(&record, "bad"), counted(&record, "good")), (2, 3));
    }

    #[test]
    fn interruption_ends_it_before_the_next_run() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut record = Record::default();
        record.matrix.rounds = 3;
        let plan = Plan {
            matrix: record.matrix.clone(),
            runs: vec![scripted("good", GOOD)],
        };
        let mut journal =
            Journal::begin(folder.path(), &record.environment, &plan.matrix).expect("begun");
        let now = Interrupt(Arc::new(AtomicBool::new(true)));
        all(&plan, &mut journal, &mut record, &now).expect("ended");
        assert!(record.turns.is_empty());
    }

    #[test]
    fn run_at_another_speed_is_repeated_once() {
        let mut record = filled();
        assert!(to_repeat(&record, 2).is_empty());
        let slow = Speed {
            copy_ns: SPEED.copy_ns * 2.0,
            ..SPEED
        };
        let place = record
            .turns
            .iter()
            .position(|turn| turn.round == 2)
            .expect("there");
        (record.turns[place].before, record.turns[place].after) = (slow, slow);
        assert_eq!(to_repeat(&record, 2).len(), 1);
        let again = Turn {
            attempt: 1,
            ..record.turns[place].clone()
        };
        record.turns.push(again);
        assert!(to_repeat(&record, 2).is_empty());
    }
}
