// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One job of a soak: starts hosts and workers, runs rounds of traffic under the schedule's faults,
//! and has the checker
//! judge each round.
//!
//! Called by the run. `crew` owns the processes, which `starter` starts; `events` carries out the
//! schedule.

mod crew;
mod events;
mod process;
mod setting;
mod starter;

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use crate::checker::{Checker, Round};
use crate::control::{Order, Progress, Role};
use crate::finding::{Finding, Kind};
use crate::ledger::{self, Ledger};
use crate::network::{Counts, Host, Relay, Weather};
use crate::schedule::{self, DEAD_AFTER_S};
use crate::traffic::Stream;
use crew::Crew;
use events::Events;
use process::Process;
pub use setting::Setting;

/// A round ends when all is sent, and after this time anyhow. Chosen.
const ROUND_MOST: Duration = Duration::from_secs(10);
/// Nothing has moved for so long: it hangs. Chosen: far more than the death of a remote takes.
const PATIENCE: Duration = Duration::from_secs(30 + 2 * DEAD_AFTER_S);
/// What moves must end by then all the same. Chosen: a window of the longest messages on a machine
/// that does much else.
const PATIENCE_MOST: Duration = Duration::from_secs(900);

/// What a job did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What was found, with the round.
    pub findings: Vec<(u16, Finding)>,
    /// Rounds that ended.
    pub rounds: u64,
    /// What its processes did, together.
    pub progress: Progress,
    /// What was done to packets.
    pub packets: Counts,
    /// How often each fault of processes was injected, by its word.
    pub faults: HashMap<&'static str, u64>,
    /// What the workers said on standard error, if something was found.
    pub talk: String,
}

/// Runs a job.
///
/// # Errors
/// It could not be set up: no process, no namespace, no file.
pub fn run(setting: &Setting, job: &schedule::Job) -> io::Result<Outcome> {
    let folder = tempfile::tempdir_in(&setting.folder)?;
    let (hosts, relay) = hosts(setting, job)?;
    let mut setting = setting.clone();
    setting.folder = folder.path().to_owned();
    let mut crew = Crew::new(setting, job.clone(), hosts);
    let mut outcome = Outcome::default();
    let mut checker = Checker::new(job.traffic());
    crew.start_all()?;
    for number in job.rounds() {
        let ended = run_round(&mut crew, relay.as_ref(), number, &mut outcome)?;
        let round = read_round(&crew, number, ended.posted)?;
        let found = checker
            .check(&round)
            .into_iter()
            .chain(std::mem::take(&mut crew.said.found));
        outcome.findings.extend(found.map(|one| (number, one)));
        outcome.rounds += 1;
        if ended.is_hung || !outcome.findings.is_empty() {
            break;
        }
    }
    crew.quit();
    let last = job.rounds().end;
    let found = std::mem::take(&mut crew.said.found).into_iter();
    outcome.findings.extend(found.map(|one| (last, one)));
    outcome.progress = crew.total();
    outcome.packets = relay.map(|relay| relay.counts()).unwrap_or_default();
    if !outcome.findings.is_empty() {
        outcome.talk = crew.starter.talk();
    }
    Ok(outcome)
}

/// The hosts of a job, and what joins them.
fn hosts(setting: &Setting, job: &schedule::Job) -> io::Result<(Vec<Host>, Option<Relay>)> {
    if !setting.is_divided {
        return Ok((vec![Host::loopback()?], None));
    }
    let mut hosts = Vec::new();
    let mut devices = Vec::new();
    for number in 0..job.hosts {
        let (host, device) = Host::start(number, job.mtu)?;
        devices.push((host.address, device));
        hosts.push(host);
    }
    Ok((hosts, Some(Relay::start(devices, job.seed)?)))
}

/// How a round ended.
struct Ended {
    posted: HashMap<Stream, u32>,
    is_hung: bool,
}

fn run_round(
    crew: &mut Crew,
    relay: Option<&Relay>,
    number: u16,
    outcome: &mut Outcome,
) -> io::Result<Ended> {
    let list = schedule::round(
        &crew.starter.job,
        number,
        crew.starter.setting.ranks,
        &crew.starter.setting.faults,
    );
    let mut events = Events::new(list, relay);
    crew.begin(number);
    // What comes before a process is prepared would go to the ledger of the round before.
    let mut stopped = settle(crew, |process| process.has_begun).err();
    crew.send_all(&Order::Go);
    let begin = Instant::now();
    // Traffic, until all is sent and all events are over.
    loop {
        crew.listen(events.pause());
        events.fire(crew, begin.elapsed())?;
        let is_over = crew.all(|process| process.progress.is_idle) || begin.elapsed() > ROUND_MOST;
        if (is_over && events.are_over() && crew.all(|process| process.is_ready))
            || crew.said.has_failed
        {
            break;
        }
        if begin.elapsed() > ROUND_MOST + PATIENCE {
            break;
        }
    }
    for (word, count) in events.counts() {
        *outcome.faults.entry(word).or_default() += count;
    }
    if let Some(relay) = relay {
        // What is under way comes to its end under faults that leave a way through.
        let calm = Weather {
            dead_paths: 0,
            ..events.weather()
        };
        relay.set(calm);
    }
    crew.send_all(&Order::Stop);
    let posting = settle(crew, |process| process.posted.is_some());
    stopped = stopped.or(posting.err());
    let posted = crew.posted();
    if stopped.is_none() {
        crew.drain(&posted);
        stopped = settle(crew, |process| process.is_quiet).err();
    }
    let is_hung = stopped.is_some();
    if let Some(why) = stopped {
        give_up(crew, number, &why, outcome);
    }
    Ok(Ended { posted, is_hung })
}

/// Waits until something is so of all processes; answers why not when nothing has moved for too
/// long, or it takes too long in all.
fn settle(crew: &mut Crew, is_so: impl Fn(&Process) -> bool) -> Result<(), String> {
    let begin = Instant::now();
    let (mut moved, mut steps) = (begin, 0);
    while !crew.all(&is_so) && !crew.said.has_failed {
        crew.listen(Duration::from_millis(20));
        if crew.steps() != steps {
            steps = crew.steps();
            moved = Instant::now();
        }
        if moved.elapsed() > PATIENCE {
            return Err(format!("nothing has moved for {} s", PATIENCE.as_secs()));
        }
        if begin.elapsed() > PATIENCE_MOST {
            let limit_s = PATIENCE_MOST.as_secs();
            return Err(format!(
                "bytes move, but have not all come after {limit_s} s"
            ));
        }
    }
    Ok(())
}

/// Notes what everybody waits for, and has them write down what did not end.
fn give_up(crew: &mut Crew, number: u16, why: &str, outcome: &mut Outcome) {
    crew.send_all(&Order::Describe);
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        crew.listen(Duration::from_millis(50));
    }
    let states = &crew.said.states;
    let silent = if states.is_empty() {
        "no process answers".to_owned()
    } else {
        states.join("\n    ")
    };
    let text = format!("{why}:\n    {silent}");
    outcome
        .findings
        .push((number, Finding::new(Kind::Hung, text)));
    crew.send_all(&Order::Abandon);
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until && !crew.all(|process| process.is_quiet) {
        crew.listen(Duration::from_millis(50));
    }
}

fn read_round(crew: &Crew, number: u16, posted: HashMap<Stream, u32>) -> io::Result<Round> {
    let mut ledgers = Vec::new();
    for (life, is_cut_short) in crew.lives_of_round() {
        let path = Role::ledger(&crew.starter.setting.folder, life, number);
        // One that was killed before it began has none.
        let entries = match ledger::read(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let _ = std::fs::remove_file(path);
        ledgers.push(Ledger {
            life,
            is_cut_short,
            entries,
        });
    }
    Ok(Round {
        number,
        ledgers,
        posted,
    })
}
