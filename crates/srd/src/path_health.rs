// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How each path of a flow fares, and when to ask after one (srd-protocol 10.2, 10.3). Called by
//! path and by loss for every packet. Source: MRC (health in four states).
//!
//! A state is kept for those paths alone of which something is known: a remote just met has used
//! few of its 64, and idle ones are many (srd-protocol 15).

use std::ops::{Index, IndexMut};
use weft_wire::time::{Instant, Nanos};

use weft_wire::{PATH_COUNT, Path};

/// Answers in a row that did not come back on a path's own way, after which it is suspect
/// (srd-protocol 10.2).
const STRIKES: u8 = 2;
/// Unanswered probes that make a path denied (srd-protocol 10.2).
const DENY_AFTER: u8 = 20;
/// Longest wait between probes of a suspect path, and the wait for a denied one (srd-protocol
/// 10.2).
const SUSPECT_PROBE_NS: Nanos = Nanos(1_000_000_000);
const DENIED_PROBE_NS: Nanos = Nanos(10_000_000_000);
/// The first probe comes no sooner than this (chosen: a round trip of a fast network).
const PROBE_LEAST_NS: Nanos = Nanos(20_000);

/// How a path fares (srd-protocol 10.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Health {
    Good,
    Skip,
    Suspect,
    Denied,
}

impl Health {
    /// Whether it carries nothing but probes.
    fn is_bad(self) -> bool {
        matches!(self, Self::Suspect | Self::Denied)
    }
}

/// The health of all paths of one flow.
#[derive(Debug)]
pub(crate) struct PathHealth {
    states: States,
    next_probe_ns: Instant,
}

impl PathHealth {
    /// Nothing is known against any path.
    pub(crate) fn new() -> Self {
        Self {
            states: States::new(),
            next_probe_ns: Instant::NEVER,
        }
    }

    /// Whether nothing is known against a path now.
    #[inline]
    pub(crate) fn is_usable(&self, path: u8, now_ns: Instant) -> bool {
        let state = &self.states[usize::from(path)];
        match state.health {
            Health::Good => true,
            Health::Skip => state.until_ns <= now_ns,
            Health::Suspect | Health::Denied => false,
        }
    }

    /// Whether a path is neither suspect nor denied.
    pub(crate) fn is_good(&self, path: u8) -> bool {
        !self.states[usize::from(path)].health.is_bad()
    }

    /// Whether packets sent on this path at this time are overtaken by a later one on it
    /// (srd-protocol 8.1).
    #[inline]
    pub(crate) fn overtaken(&self, path: Path, sent_ns: Instant) -> bool {
        sent_ns < self.states[path.index()].delivered_ns
    }

    /// The path's own round trip, 0 if unknown.
    #[inline]
    pub(crate) fn rtt_ns(&self, path: u8) -> Nanos {
        Nanos(self.states[usize::from(path)].rtt_ns.into())
    }

    /// A transmission of this path and time has arrived.
    pub(crate) fn on_delivered(&mut self, path: Path, sent_ns: Instant) {
        let state = &mut self.states[path.index()];
        state.delivered_ns = state.delivered_ns.max(sent_ns);
        if state.health.is_bad() && sent_ns > state.since_ns {
            state.health = Health::Good;
            state.probe_count = 0;
        }
    }

    /// A path's answer came back on its own way after so long. Answers whether the path is good.
    pub(crate) fn on_round_trip(&mut self, path: Path, rtt_ns: Nanos) -> bool {
        let state = &mut self.states[path.index()];
        state.strike_count = 0;
        let sample = rtt_ns.0.min(u64::from(u32::MAX)) as u32;
        state.rtt_ns = match state.rtt_ns {
            0 => sample,
            known => known - known / 4 + sample / 4,
        };
        state.health == Health::Good
    }

    /// A packet of this path arrived, but its answer came back only over another path: once is
    /// chance. Answers whether the path became suspect.
    pub(crate) fn strike(&mut self, path: Path, now_ns: Instant, srtt_ns: Nanos) -> bool {
        let state = &mut self.states[path.index()];
        state.strike_count = state.strike_count.saturating_add(1);
        state.strike_count >= STRIKES && self.suspect(path, now_ns, srtt_ns)
    }

    /// Slower than the rest (srd-protocol 10.7), or lossy under load: passed over for one srtt.
    pub(crate) fn skip(&mut self, path: Path, now_ns: Instant, srtt_ns: Nanos) {
        let state = &mut self.states[path.index()];
        if !state.health.is_bad() {
            state.health = Health::Skip;
            state.until_ns = now_ns + srtt_ns;
        }
    }

    /// Lossy without load, or silent while others answered. Answers whether that is news.
    pub(crate) fn suspect(&mut self, path: Path, now_ns: Instant, srtt_ns: Nanos) -> bool {
        let state = &mut self.states[path.index()];
        if state.health.is_bad() {
            return false;
        }
        state.health = Health::Suspect;
        state.since_ns = now_ns;
        state.until_ns = now_ns + srtt_ns.max(PROBE_LEAST_NS);
        state.probe_count = 0;
        state.strike_count = 0;
        self.next_probe_ns = self.next_probe_ns.min(state.until_ns);
        true
    }

    /// When a path wants to be asked after.
    #[inline]
    pub(crate) fn next_probe_ns(&self) -> Instant {
        self.next_probe_ns
    }

    /// The path to probe now, if one is due; sets its next probe. Others that are due wait for a
    /// round trip: a remote answers the newest of several probes that it finds together.
    pub(crate) fn take_probe(&mut self, now_ns: Instant, srtt_ns: Nanos) -> Option<Path> {
        if now_ns < self.next_probe_ns {
            return None;
        }
        let wait_ns = srtt_ns.max(PROBE_LEAST_NS);
        let bad = self.states.known.iter_mut();
        let bad = bad.filter(|state| state.health.is_bad());
        let first = bad.min_by_key(|state| state.until_ns);
        let due = first.filter(|state| state.until_ns <= now_ns);
        let chosen = due.and_then(|state| {
            state.plan_probe(now_ns, wait_ns);
            Path::from_number(state.path)
        });
        let bad = self.states.known.iter();
        let bad = bad.filter(|state| state.health.is_bad());
        let next_ns = bad.map(|state| state.until_ns).min();
        let least_ns = chosen.map_or(Instant::START, |_| now_ns + wait_ns);
        self.next_probe_ns = next_ns.unwrap_or(Instant::NEVER).max(least_ns);
        chosen
    }

    /// Bytes outside of this structure.
    pub(crate) fn footprint_bytes(&self) -> usize {
        self.states.known.capacity() * size_of::<State>()
    }

    /// Health of a path, for tests.
    #[cfg(test)]
    pub(crate) fn of(&self, path: Path) -> Health {
        self.states[path.index()].health
    }
}

/// What is known of one path.
#[derive(Clone, Copy, Debug)]
struct State {
    /// When the newest packet left known to have arrived.
    delivered_ns: Instant,
    /// Skip: when it ends. Suspect and denied: when the next probe is due.
    until_ns: Instant,
    /// Suspect and denied: since when.
    since_ns: Instant,
    rtt_ns: u32,
    health: Health,
    probe_count: u8,
    /// Packets in a row whose answer had to be fetched over another path.
    strike_count: u8,
    /// Whose state this is.
    path: u8,
}

impl State {
    /// A probe leaves on this path: the next one waits twice as long, from `wait_ns` on.
    fn plan_probe(&mut self, now_ns: Instant, wait_ns: Nanos) {
        self.probe_count = self.probe_count.saturating_add(1);
        if self.probe_count > DENY_AFTER {
            self.health = Health::Denied;
            self.until_ns = now_ns + DENIED_PROBE_NS;
        } else {
            let wait_ns = wait_ns << u32::from(self.probe_count);
            self.until_ns = now_ns + wait_ns.min(SUSPECT_PROBE_NS);
        }
    }
}

/// Of a path of which nothing is known.
const UNKNOWN: State = State {
    delivered_ns: Instant::START,
    until_ns: Instant::START,
    since_ns: Instant::START,
    rtt_ns: 0,
    health: Health::Good,
    probe_count: 0,
    strike_count: 0,
    path: 0,
};

/// The states of all paths of a flow, by the path's number. Writing to one of which nothing was
/// known allocates, a few times in a flow's life.
#[derive(Debug)]
struct States {
    /// One more than the place of a path in `known`; 0 if it has none.
    places: [u8; PATH_COUNT],
    known: Vec<State>,
}

impl States {
    /// Nothing is known.
    fn new() -> Self {
        Self {
            places: [0; PATH_COUNT],
            known: Vec::new(),
        }
    }

    #[cold]
    fn add(&mut self, path: usize) {
        self.known.push(State {
            path: path as u8,
            ..UNKNOWN
        });
        self.places[path] = self.known.len() as u8;
    }
}

impl Index<usize> for States {
    type Output = State;

    #[inline]
    fn index(&self, path: usize) -> &State {
        match self.places[path] {
            0 => &UNKNOWN,
            place => &self.known[usize::from(place) - 1],
        }
    }
}

impl IndexMut<usize> for States {
    #[inline]
    fn index_mut(&mut self, path: usize) -> &mut State {
        if self.places[path] == 0 {
            self.add(path);
        }
        &mut self.known[usize::from(self.places[path]) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_due_together_are_asked_one_after_the_other() {
        let (mut health, srtt_ns) = (PathHealth::new(), Nanos(30_000));
        let paths = [5, 1, 9].map(|number| Path::from_number(number).unwrap());
        for path in paths {
            health.suspect(path, Instant(1_000), srtt_ns);
        }
        let mut now_ns = Instant(1_000_000_000);
        for path in paths {
            assert_eq!(health.take_probe(now_ns, srtt_ns), Some(path));
            assert_eq!(health.next_probe_ns(), now_ns + srtt_ns);
            assert_eq!(health.take_probe(now_ns, srtt_ns), None);
            now_ns += srtt_ns;
        }
        let first = Some(paths[0]);
        assert_eq!(health.take_probe(now_ns, srtt_ns), first, "once more");
    }

    #[test]
    fn only_what_was_written_takes_room_and_is_read_again() {
        let mut states = States::new();
        for path in [63, 0, 17] {
            assert_eq!(states[path].rtt_ns, 0);
            states[path].rtt_ns = 100 + path as u32;
        }
        states[17].health = Health::Skip;
        assert_eq!([63, 0, 17].map(|path| states[path].rtt_ns), [163, 100, 117]);
        assert_eq!(states[1].health, Health::Good);
        let known: Vec<u8> = states.known.iter().map(|state| state.path).collect();
        assert_eq!(known, [63, 0, 17]);
        assert_eq!(size_of::<State>(), 32);
    }
}
