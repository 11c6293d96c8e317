// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a soak prints: a line for each job, the sums, the findings, and the command that repeats
//! one.
//!
//! Called by the run. Results go to standard output, talk to standard error.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;

use crate::control::Progress;
use crate::fault::FaultSet;
use crate::finding::{Finding, Kind};
use crate::job::Outcome;
use crate::network::Counts;
use crate::options::Options;
use crate::schedule::{self, Job};

/// Findings of one job and kind that are printed. Chosen: the first ones tell.
const PRINTED: usize = 4;

#[derive(Debug, Serialize)]
struct Found {
    job: u64,
    round: u16,
    #[serde(flatten)]
    finding: Finding,
    repeat: String,
}

/// The sums of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    seed: u64,
    route: &'static str,
    ranks: u8,
    faults: String,
    seconds: f64,
    jobs: u64,
    rounds: u64,
    done: Progress,
    packets: Counts,
    injected: BTreeMap<&'static str, u64>,
    counts: BTreeMap<&'static str, u64>,
    findings: Vec<Found>,
}

impl Report {
    /// An empty one. `faults`: those that can come here.
    pub fn new(options: &Options, seed: u64, faults: &FaultSet) -> Self {
        Self {
            seed,
            route: options.route.word(),
            ranks: options.ranks,
            faults: faults.to_string(),
            seconds: 0.0,
            jobs: 0,
            rounds: 0,
            done: Progress::default(),
            packets: Counts::default(),
            injected: BTreeMap::new(),
            counts: Kind::ALL.iter().map(|kind| (kind.word(), 0)).collect(),
            findings: Vec::new(),
        }
    }

    /// Says what begins.
    pub fn head(&self, options: &Options, bar: &ProgressBar) {
        let text = format!(
            "seed {}, {} minutes, route {}, {} ranks, faults {}",
            self.seed, options.minutes, self.route, self.ranks, self.faults
        );
        say(bar, &text);
    }

    /// Adds what a job did.
    pub fn add(&mut self, job: &Job, outcome: &Outcome) {
        self.jobs += 1;
        self.rounds += outcome.rounds;
        let (to, from) = (&mut self.done, &outcome.progress);
        to.sent += from.sent;
        to.received += from.received;
        to.bytes += from.bytes;
        to.one_sided += from.one_sided;
        to.other += from.other;
        self.packets.add(&outcome.packets);
        for (word, count) in &outcome.faults {
            *self.injected.entry(word).or_default() += count;
        }
        for (round, finding) in &outcome.findings {
            *self.counts.entry(finding.kind.word()).or_default() += 1;
            self.findings.push(Found {
                job: job.number,
                round: *round,
                finding: finding.clone(),
                repeat: self.repeat(job),
            });
        }
    }

    fn repeat(&self, job: &Job) -> String {
        format!(
            "weft soak --seed {} --job {} --route {} --ranks {} --faults {}",
            self.seed, job.number, self.route, self.ranks, self.faults
        )
    }

    /// Whether anything was found.
    pub fn has_findings(&self) -> bool {
        !self.findings.is_empty()
    }

    /// A line about one job, and its findings.
    pub fn line(&self, job: &Job, outcome: &Outcome, faults: &FaultSet, bar: &ProgressBar) {
        let text = format!(
            "job {}: route {}, {} hosts, up to {} bytes, {} messages, {} packets, {} findings",
            job.number,
            job.route,
            job.hosts,
            job.longest_bytes,
            outcome.progress.received,
            outcome.packets.carried,
            outcome.findings.len()
        );
        bar.set_message(format!("{} messages", self.done.received));
        say(bar, &text);
        if outcome.findings.is_empty() {
            return;
        }
        for kind in Kind::ALL {
            let of_kind = outcome.findings.iter().filter(|(_, one)| one.kind == kind);
            for (round, finding) in of_kind.clone().take(PRINTED) {
                say(
                    bar,
                    &format!("  round {round}, {}: {}", kind.word(), finding.text),
                );
            }
            let more = of_kind.count().saturating_sub(PRINTED);
            if more > 0 {
                say(bar, &format!("  and {more} more {}", kind.word()));
            }
        }
        if !outcome.talk.trim().is_empty() {
            say(
                bar,
                &format!("  the workers said:\n{}", outcome.talk.trim_end()),
            );
        }
        let rounds: Vec<u16> = outcome.findings.iter().map(|(round, _)| *round).collect();
        if let Some(round) = rounds.first() {
            let events = schedule::round(job, *round, self.ranks, faults);
            let events: Vec<String> = events.iter().map(ToString::to_string).collect();
            say(bar, &format!("  schedule: {}", events.join("; ")));
        }
        let (settings, repeat) = (
            serde_json::to_string(job).unwrap_or_default(),
            self.repeat(job),
        );
        say(bar, &format!("  settings: {settings}\n  again: {repeat}"));
    }

    /// Prints the sums; returns the exit code.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn end(&mut self, options: &Options, length: Duration) -> io::Result<u8> {
        self.seconds = length.as_secs_f64();
        let text = if options.json {
            serde_json::to_string_pretty(self)?
        } else {
            self.text()
        };
        writeln!(io::stdout(), "{text}")?;
        Ok(u8::from(self.has_findings()))
    }

    fn text(&self) -> String {
        let counts = Kind::ALL.iter().map(|kind| {
            let count = self.counts.get(kind.word()).copied().unwrap_or(0);
            format!("{} {count}", kind.word())
        });
        let injected = self
            .injected
            .iter()
            .map(|(word, count)| format!("{word} {count}"));
        let injected: Vec<String> = injected.collect();
        let packets = &self.packets;
        let mut text = format!(
            "seed {}: {:.1} minutes, {} jobs, {} rounds\n\
             messages {}, bytes {}, one-sided operations {}\n\
             packets {}: lost {}, doubled {}, reordered {}, corrupted {}, replayed {}, \
             swallowed {}, firewalled {}\n\
             injected: {}\n\
             found: {}",
            self.seed,
            self.seconds / 60.0,
            self.jobs,
            self.rounds,
            self.done.received,
            self.done.bytes,
            self.done.one_sided,
            packets.carried,
            packets.lost,
            packets.doubled,
            packets.reordered,
            packets.corrupted,
            packets.replayed,
            packets.swallowed,
            packets.firewalled,
            if injected.is_empty() {
                "nothing".to_owned()
            } else {
                injected.join(", ")
            },
            counts.collect::<Vec<_>>().join(", ")
        );
        if let Some(found) = self.findings.first() {
            text.push_str(&format!("\nagain: {}", found.repeat));
        }
        text
    }
}

/// To standard error, above the bar if there is one.
fn say(bar: &ProgressBar, text: &str) {
    if bar.is_hidden() {
        eprintln!("{text}");
    } else {
        bar.println(text);
    }
}
