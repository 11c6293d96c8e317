// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What happens when: the settings of each job and the faults of each round, drawn from the seed.
//!
//! Called by the job. Pure: the same seed gives the same schedule.

use crate::fault::{Fault, FaultSet};
use crate::network::Weather;
use crate::options::Route;
use crate::random::seed_of;
use crate::traffic::Traffic;

/// FI_WEFT_DEAD_AFTER of all jobs, in seconds: its default.
pub const DEAD_AFTER_S: u64 = 5;
/// Rounds of a job. Chosen: what one round leaves behind meets the next.
const ROUNDS: u16 = 4;
/// How long faults come in a round, in milliseconds. Chosen.
const FAULTS_MS: u64 = 3_000;

/// How the processes of a job are set up.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Job {
    /// Its number in the run.
    pub number: u64,
    /// Seed of all that is drawn in it.
    pub seed: u64,
    /// Which way its messages go, by the words of FI_WEFT_ROUTE.
    pub route: &'static str,
    /// Hosts that its ranks live on, in turn.
    pub hosts: u8,
    /// A job key is set; without it the network is trusted.
    pub has_key: bool,
    /// FI_WEFT_ENCRYPT
    pub encrypts: bool,
    /// FI_WEFT_SINGLE_COPY
    pub single_copy: &'static str,
    /// The heap that receivers map is preloaded.
    pub has_heap: bool,
    /// Entries of completion queues; 0 leaves it to the provider.
    pub queue_entries: usize,
    /// No message is longer.
    pub longest_bytes: usize,
    /// Receives that each process keeps posted.
    pub receives: usize,
    /// Operations that each process has under way, at most.
    pub window: usize,
    /// Messages of each stream and round.
    pub budget: u32,
    /// MTU of the hosts' devices.
    pub mtu: u32,
}

impl Job {
    /// The job of this number. `is_divided`: hosts are possible, so that datagrams meet a network.
    pub fn draw(seed: u64, number: u64, route: Route, is_divided: bool) -> Self {
        let seed = seed_of(seed, &[number]);
        let mut random = fastrand::Rng::with_seed(seed);
        let (longest_bytes, receives, budget) = match random.u32(..4) {
            0 => (2_000, 32, 4_000),
            1 => (70_000, 24, 2_000),
            2 => (1 << 20, 12, 600),
            _ => (4 << 20, 6, 250),
        };
        let (route, hosts) = match (route, is_divided) {
            (Route::Shm, _) => ("shm", 1),
            (Route::Srd, true) => ("srd", random.u8(2..=3)),
            (Route::Both, true) => ("auto", 2),
            (Route::Srd, false) => ("srd", 1),
            // One network for all: shared memory and datagrams take turns.
            (Route::Both, false) => (
                if number.is_multiple_of(2) {
                    "shm"
                } else {
                    "srd"
                },
                1,
            ),
        };
        let has_key = random.u32(..4) != 0;
        Self {
            number,
            seed,
            route,
            hosts,
            has_key,
            encrypts: has_key && random.bool(),
            single_copy: ["auto", "always", "never"][random.usize(..3)],
            has_heap: random.bool(),
            queue_entries: [0, 8, 64][random.usize(..3)],
            longest_bytes,
            receives,
            window: [4, 32, 300][random.usize(..3)],
            budget,
            mtu: [1500, 9000][random.usize(..2)],
        }
    }

    /// Rounds of this job.
    pub fn rounds(&self) -> std::ops::Range<u16> {
        0..ROUNDS
    }

    /// What all messages of this job have in common.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            seed: self.seed,
            longest_bytes: self.longest_bytes,
        }
    }

    /// Faults that cannot be survived without a key: then nothing tells a changed packet from one
    /// of the sender's.
    fn bearable(&self, faults: &FaultSet) -> FaultSet {
        if self.has_key {
            return faults.clone();
        }
        faults.without(&[Fault::Corruption, Fault::Replay])
    }
}

/// Something that happens in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The weather changes.
    Weather(Weather),
    /// A rank is stopped for so many milliseconds.
    Pause(u8, u64),
    /// All are.
    Suspend(u64),
    /// A rank is killed, and started again after so many milliseconds.
    Kill(u8, u64),
    /// A rank forks a helper that lives so long, and perhaps closes what it inherited.
    Fork(u8, u64, bool),
    /// A rank stays away for so long.
    Away(u8, u64),
    /// A rank posts no receives for so long.
    Deaf(u8, u64),
    /// A rank hardly reads its queue for so long.
    Lazy(u8, u64),
}

/// When it happens, in milliseconds from the begin of the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at_ms: u64,
    /// What.
    pub what: What,
}

impl std::fmt::Display for Event {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} ms {:?}", self.at_ms, self.what)
    }
}

/// The faults of a round, in the order of their times.
pub fn round(job: &Job, round: u16, ranks: u8, faults: &FaultSet) -> Vec<Event> {
    let mut random = fastrand::Rng::with_seed(seed_of(job.seed, &[1, u64::from(round)]));
    let faults = job.bearable(faults);
    let mut events = Vec::new();
    for _ in 0..random.u32(1..=3) {
        let what = What::Weather(weather(&mut random, &faults));
        events.push(event(&mut random, what));
    }
    let may = |random: &mut fastrand::Rng, fault, one_in: u32| {
        let happens = random.u32(..one_in) == 0;
        happens && faults.has(fault)
    };
    for _ in 0..3 {
        let rank = random.u8(..ranks);
        let short = random.u64(1..1_500);
        if may(&mut random, Fault::Pause, 4) {
            events.push(event(&mut random, What::Pause(rank, short)));
        }
        if may(&mut random, Fault::Fork, 4) {
            let long = random.u64(1..8_000);
            events.push(event(&mut random, What::Fork(rank, long, false)));
        }
        if may(&mut random, Fault::Close, 8) {
            events.push(event(&mut random, What::Fork(rank, short, true)));
        }
        if may(&mut random, Fault::Away, 6) {
            let most = if random.u32(..3) == 0 { 7_000 } else { 1_500 };
            let length = random.u64(1..most);
            events.push(event(&mut random, What::Away(rank, length)));
        }
        if may(&mut random, Fault::Deaf, 5) {
            events.push(event(&mut random, What::Deaf(rank, 2 * short)));
        }
        if may(&mut random, Fault::Lazy, 5) {
            events.push(event(&mut random, What::Lazy(rank, 2 * short)));
        }
    }
    if may(&mut random, Fault::Suspend, 12) {
        let length = DEAD_AFTER_S * 1000 + 1_500;
        events.push(event(&mut random, What::Suspend(length)));
    }
    // Not in the first round, so that there is something to lose; one rank in a round.
    if round > 0 && may(&mut random, Fault::Kill, 3) {
        let what = What::Kill(random.u8(..ranks), random.u64(1..1_500));
        events.push(event(&mut random, what));
    }
    events.sort_by_key(|event| event.at_ms);
    events
}

fn event(random: &mut fastrand::Rng, what: What) -> Event {
    Event {
        at_ms: random.u64(..FAULTS_MS),
        what,
    }
}

fn weather(random: &mut fastrand::Rng, faults: &FaultSet) -> Weather {
    let mut share = |fault, most: u32| {
        let drawn = if random.bool() {
            random.u32(..=most)
        } else {
            0
        };
        if faults.has(fault) { drawn } else { 0 }
    };
    let (loss, duplication) = (share(Fault::Loss, 30), share(Fault::Duplication, 50));
    let (reordering, corruption) = (share(Fault::Reordering, 50), share(Fault::Corruption, 20));
    let replay = share(Fault::Replay, 20);
    let (dead, firewall) = (random.u32(..3) == 0, random.u32(..4) == 0);
    // A half of the paths at most: some way is always left.
    let mask = random.u8(..) & random.u8(..);
    Weather {
        loss,
        duplication,
        reordering,
        corruption,
        replay,
        dead_paths: if dead && faults.has(Fault::Paths) {
            mask
        } else {
            0
        },
        firewall: firewall && faults.has(Fault::Firewall),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_schedule_and_every_fault_occurs() {
        let all: FaultSet = "all".parse().unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..200 {
            let job = Job::draw(3, number, Route::Both, true);
            assert_eq!(job, Job::draw(3, number, Route::Both, true));
            for one in job.rounds() {
                let events = round(&job, one, 4, &all);
                assert_eq!(events, round(&job, one, 4, &all));
                for event in events {
                    let name = format!("{:?}", event.what);
                    seen.insert(name[..4].to_owned());
                    if let What::Weather(weather) = event.what {
                        assert!(job.has_key || weather.corruption + weather.replay == 0);
                    }
                }
            }
        }
        let names: Vec<&str> = seen.iter().map(String::as_str).collect();
        let expected = [
            "Away", "Deaf", "Fork", "Kill", "Lazy", "Paus", "Susp", "Weat",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn without_faults_only_fair_weather_comes() {
        let none: FaultSet = "none".parse().unwrap();
        for number in 0..50 {
            let job = Job::draw(3, number, Route::Srd, true);
            for event in round(&job, 2, 4, &none) {
                assert_eq!(event.what, What::Weather(Weather::default()));
            }
        }
    }
}
