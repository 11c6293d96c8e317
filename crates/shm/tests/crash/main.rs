// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two processes, one of which dies at each numbered step of every protocol: the other completes or
//! fails within a second, nothing is left behind, and a new process takes the address over and
//! talks.
//!
//! The steps are the `crash_point!`s of crates/ring and crates/shm; they exist only in a build with
//! `--cfg crash_points` (tests/crash/run.sh). Other builds run every scenario without a death. The
//! victim is this binary, started again.

#[path = "../shared/processes.rs"]
mod processes;
mod scenario;
mod side;
#[path = "../shared/transports.rs"]
mod transports;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use processes::{Other, command};
use scenario::{Part, SCENARIOS, Scenario};
use side::Side;
use transports::{own_address, region_of};
use weft_os::crash::{LOG_VARIABLE, STEP_VARIABLE};
use weft_ring::layout::{SLOT_BYTES, SLOT_COUNT, SLOTS_OFFSET};

/// Specified: the death of a remote is reported within a second (two_processes.rs). The rest is for
/// a machine that is busy, and stops now and then: each of hundreds of runs must keep to it.
const NOTICE: Duration = Duration::from_secs(60);
/// Descriptors of this process are counted: its tests run one at a time.
static ALONE: Mutex<()> = Mutex::new(());
const PATIENCE: Duration = Duration::from_secs(60);

/// What the victim is told: its own address, its parent's, the scenario, its part, and whether it
/// takes an address over.
fn victim_words() -> Option<Vec<String>> {
    let words = processes::words()?;
    Some(words.split(' ').map(str::to_owned).collect())
}

/// The victim's part; nothing unless this process was started as one.
#[test]
fn victim_role() {
    let Some(words) = victim_words() else {
        return;
    };
    let [own, parent, name, part, successor] = &words[..] else {
        panic!("five words");
    };
    let scenario = SCENARIOS
        .iter()
        .find(|one| one.name == name)
        .expect("a scenario");
    let part = if part == "Sends" {
        Part::Sends
    } else {
        Part::Receives
    };
    let mut side = Side::open(
        scenario.settings(own.parse().expect("address")),
        parent.parse().expect("address"),
    );
    println!("\nopen");
    if successor == "true" {
        scenario::say_hello(&mut side);
    }
    let play = |side: &mut Side| {
        let _ = scenario.play(side, part, PATIENCE);
    };
    if scenario.silent_remotes {
        scenario::with_silent_remotes(&mut side, play);
    } else {
        play(&mut side);
    }
}

/// Starts the victim of a run, or its successor.
fn start_victim(run: &Run, own: SocketAddr, parent: SocketAddr, successor: bool) -> Other {
    let Run { scenario, part, .. } = run;
    let words = format!("{own} {parent} {} {part:?} {successor}", scenario.name);
    let mut command = command("victim_role", &words);
    if let (Some((number, passage)), false) = (run.step, successor) {
        command.env(STEP_VARIABLE, format!("{number}:{passage}"));
    }
    if let (Some(log), false) = (run.log, successor) {
        command.env(LOG_VARIABLE, log);
    }
    Other::start(&mut command).expect("victim")
}

/// Waits for its end; its signal, if one ended it.
fn signal_at_end(mut victim: Other) -> Option<i32> {
    let status = victim.end();
    assert!(
        status.signal().is_some() || status.success(),
        "the victim failed: {status}"
    );
    status.signal()
}

/// One run: a scenario, the victim's part in it, and where it ends.
#[derive(Clone, Copy)]
struct Run<'a> {
    scenario: &'a Scenario,
    part: Part,
    step: Option<(u32, u32)>,
    log: Option<&'a Path>,
}

impl Run<'_> {
    /// Plays the survivor; true if the victim died of SIGKILL.
    fn play(&self) -> bool {
        let own = own_address();
        // Made once, and never freed.
        side::heap();
        let before = Surroundings::look();
        let theirs = own_address();
        let mut side = Side::open(self.scenario.settings(own), theirs);
        let mut victim = start_victim(self, theirs, own, false);
        let opened = victim.hear("open").is_some();
        scenario::watch(&mut side.transport);
        let outcome = self.scenario.play(&mut side, self.part.other(), PATIENCE);
        // The victim may still live, and its death be the next thing it does.
        if outcome.is_ok() {
            keep_going_until_its_end(&mut side, &mut victim);
        }
        let signal = signal_at_end(victim);
        await_notice(&mut side, signal.is_some(), opened);
        self.succeed(&mut side, theirs, own);
        await_free_slots(&mut side);
        drop(side);
        before.compare();
        signal == Some(9)
    }

    /// Another process at the victim's address plays the scenario to its end.
    fn succeed(&self, side: &mut Side, theirs: SocketAddr, own: SocketAddr) {
        side.ledger.start_over();
        let mut successor = start_victim(self, theirs, own, true);
        assert!(
            successor.hear("open").is_some(),
            "the address cannot be taken over"
        );
        let end = Instant::now() + PATIENCE;
        while side.ledger.hello == 0 {
            side.progress();
            assert!(Instant::now() < end, "the new process is not heard");
        }
        let played = self.scenario.play(side, self.part.other(), PATIENCE);
        assert_eq!(
            played,
            Ok(()),
            "the new process plays its part: {:?} lost, {} arrived, {} words",
            side.ledger.lost,
            side.ledger.arrived,
            side.ledger.done
        );
        keep_going_until_its_end(side, &mut successor);
        assert_eq!(signal_at_end(successor), None);
    }
}

fn keep_going_until_its_end(side: &mut Side, victim: &mut Other) {
    let end = Instant::now() + PATIENCE;
    while victim.child.try_wait().expect("child").is_none() {
        side.progress();
        assert!(Instant::now() < end, "the other process does not end");
    }
}

/// After a death everything that was under way ends within a second, and the survivor hears of it.
fn await_notice(side: &mut Side, died: bool, opened: bool) {
    let start = Instant::now();
    let mut refused = false;
    while !(side.is_idle() && (side.ledger.lost.is_some() || refused)) {
        side.progress();
        if !opened {
            refused |= side.post(7, 8, false).is_err();
        }
        assert!(
            start.elapsed() < NOTICE,
            "unnoticed after {NOTICE:?} (died {died}): {} sends, {} receives under way, lost {:?}",
            side.ledger.sending,
            side.ledger.landing.len(),
            side.ledger.lost
        );
    }
    if died || side.ledger.lost.is_some() {
        let again = side.post(7, 8, false);
        assert!(again.is_err(), "a send to the dead is taken: {again:?}");
    }
    side.ledger.lost = None;
}

/// Slots of the survivor's region that are not free.
fn taken_slots(side: &Side) -> usize {
    use std::os::unix::fs::FileExt;
    let Some(region) = region_of(&side.transport) else {
        return 0; // regions in a folder cannot be found by name
    };
    let mut slots = vec![0; SLOT_COUNT * SLOT_BYTES];
    region
        .read_exact_at(&mut slots, SLOTS_OFFSET as u64)
        .expect("the directory");
    slots
        .chunks(SLOT_BYTES)
        .filter(|slot| slot[..8] != [0; 8])
        .count()
}

fn await_free_slots(side: &mut Side) {
    let start = Instant::now();
    while taken_slots(side) > 0 {
        for _ in 0..1000 {
            side.progress();
        }
        assert!(
            start.elapsed() < NOTICE,
            "{} slots of the dead are still taken",
            taken_slots(side)
        );
    }
}

/// What a run must leave as it was.
#[derive(PartialEq, Eq, Debug)]
struct Surroundings {
    descriptors: usize,
    shared_files: BTreeSet<std::ffi::OsString>,
}

impl Surroundings {
    fn look() -> Self {
        let names = |path: &str| {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries
                .map(|entry| entry.file_name())
                .filter(|name| name.to_string_lossy().contains("weft"))
                .collect()
        };
        Self {
            descriptors: std::fs::read_dir("/proc/self/fd").expect("proc").count(),
            shared_files: names("/dev/shm"),
        }
    }

    fn compare(&self) {
        let after = Self::look();
        assert_eq!(
            self.descriptors, after.descriptors,
            "descriptors are left over"
        );
        let new: Vec<_> = after.shared_files.difference(&self.shared_files).collect();
        assert!(new.is_empty(), "left in /dev/shm: {new:?}");
    }
}

/// All crash points in the sources: number and text.
fn steps_in_sources() -> BTreeMap<u32, String> {
    let mut steps = BTreeMap::new();
    let mut folders = ["src", "../ring/src"]
        .map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
        .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("sources").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let text = std::fs::read_to_string(entry.path()).expect("a source");
            for rest in text.split("crash_point!(").skip(1) {
                let (number, rest) = rest.split_once(',').expect("number and text");
                let what = rest.split('"').nth(1).expect("a text").to_owned();
                let number = number.trim().parse().expect("a number comes first");
                assert_eq!(
                    steps.insert(number, what),
                    None,
                    "step {number} stands twice"
                );
            }
        }
    }
    steps
}

/// The steps that the victim passes in a scenario when nobody kills it, and how often.
fn steps_of(scenario: &Scenario, part: Part) -> BTreeMap<u32, u32> {
    let log = std::env::temp_dir().join(format!("weft-crash-{}", std::process::id()));
    let run = Run {
        scenario,
        part,
        step: None,
        log: Some(&log),
    };
    assert!(!run.play(), "nobody kills this one");
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    let mut steps = BTreeMap::new();
    for line in text.lines() {
        *steps.entry(line.parse().expect("a number")).or_default() += 1;
    }
    steps
}

/// Which steps were killed at, by the victim's part, and how often.
#[derive(Default)]
struct Coverage {
    first: BTreeMap<(u32, bool), u32>,
    later: BTreeSet<(u32, bool)>,
    all: bool,
}

impl Coverage {
    /// The passages of a step at which to kill in the next scenario: the first one in the first two
    /// scenarios that pass it, a later one once.
    fn passages(&self, number: u32, times: u32, part: Part) -> Vec<u32> {
        let key = (number, part == Part::Sends);
        let few = self.first.get(&key).is_none_or(|&times| times < 2);
        let mut passages = Vec::new();
        if self.all || few {
            passages.push(1);
        }
        if times >= 3 && (self.all || !self.later.contains(&key)) {
            passages.push(3);
        }
        passages
    }

    fn killed(&mut self, number: u32, part: Part, passage: u32) {
        let key = (number, part == Part::Sends);
        if passage == 1 {
            *self.first.entry(key).or_default() += 1;
        } else {
            self.later.insert(key);
        }
    }
}

#[test]
fn whoever_dies_at_any_step_the_other_goes_on() {
    if victim_words().is_some() {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut coverage = Coverage {
        all: std::env::var_os("WEFT_CRASH_ALL").is_some(),
        ..Coverage::default()
    };
    let mut runs = 0;
    for scenario in &SCENARIOS {
        for part in [Part::Sends, Part::Receives] {
            for (number, times) in steps_of(scenario, part) {
                for passage in coverage.passages(number, times, part) {
                    let run = Run {
                        scenario,
                        part,
                        step: Some((number, passage)),
                        log: None,
                    };
                    eprintln!(
                        "step {number}, passage {passage}, {}, the victim {part:?}",
                        scenario.name
                    );
                    runs += 1;
                    if run.play() {
                        coverage.killed(number, part, passage);
                    }
                }
            }
        }
    }
    let killed: BTreeSet<u32> = coverage.first.keys().map(|&(number, _)| number).collect();
    eprintln!("\n{runs} runs, killed at {} steps", killed.len());
    if cfg!(crash_points) {
        let steps = steps_in_sources();
        let missed: Vec<&u32> = steps
            .keys()
            .filter(|number| !killed.contains(number))
            .collect();
        assert!(missed.is_empty(), "no victim died at the steps {missed:?}");
    }
}

#[test]
fn the_documentation_lists_the_steps_of_the_sources() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let documentation = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/testing.md");
    let text = std::fs::read_to_string(documentation).expect("docs/testing.md");
    for (number, what) in steps_in_sources() {
        let row = format!("| {number} | {what} |");
        assert!(text.contains(&row), "docs/testing.md lacks the row {row}");
    }
}
