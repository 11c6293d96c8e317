// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The 64 paths of a flow: which one a batch takes, how each fares, when to ask after one (srd-protocol 10.1 to 10.3).
//!
//! Called by flow and loss. Sources: REPS (ring of known-good paths), MRC (health in four states).

use weft_wire::{PATH_COUNT, Path, PortAddresses};

use crate::path_state::States;
use crate::random::Random;
use crate::timers::NEVER;

/// Known-good paths kept in order of arrival (srd-protocol 15; specified: REPS).
const RING: usize = 8;
/// Paths remembered for retransmissions (chosen: of so many some work when one way of four breaks).
const PROVEN: usize = 8;
/// Answers in a row that did not come back on a path's own way, after which it is suspect (srd-protocol 10.2).
const STRIKES: u8 = 2;
/// Unanswered probes that make a path denied (srd-protocol 10.2).
const DENY_AFTER: u8 = 20;
/// Longest wait between probes of a suspect path, and the wait for a denied one (srd-protocol 10.2).
const SUSPECT_PROBE_NS: u64 = 1_000_000_000;
const DENIED_PROBE_NS: u64 = 10_000_000_000;
/// The first probe comes no sooner than this (chosen: a round trip of a fast network).
const PROBE_LEAST_NS: u64 = 20_000;

/// How a path fares (srd-protocol 10.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Health {
    Good,
    Skip,
    Suspect,
    Denied,
}

/// A path that carried a packet there and its answer back, and when that packet left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Proof {
    path: Path,
    sent_ns: u64,
}

/// All paths of one flow.
#[derive(Debug)]
pub(crate) struct Paths {
    states: States,
    order: [u8; PATH_COUNT],
    cursor: u8,
    /// How many of `order` may be used.
    open_count: u8,
    /// Those that lead from one host to the other (srd-protocol 17.3).
    allowed: u64,
    ring: [u8; RING],
    ring_length: u8,
    /// The last paths that answered, newest first.
    proven: [Option<Proof>; PROVEN],
    next_probe_ns: u64,
}

impl Paths {
    /// Paths in a random order, of which only those to the remote's first port are open, from ports of ours at the first
    /// address (srd-protocol 6.1, 17.2).
    pub(crate) fn new(addresses: &PortAddresses, random: &mut Random) -> Self {
        let mut order = [0; PATH_COUNT];
        for (index, path) in order.iter_mut().enumerate() {
            *path = index as u8;
        }
        random.shuffle(&mut order);
        let mut paths = Self {
            states: States::new(),
            order,
            cursor: 0,
            open_count: PATH_COUNT as u8,
            allowed: u64::MAX,
            ring: [0; RING],
            ring_length: 0,
            proven: [None; PROVEN],
            next_probe_ns: NEVER,
        };
        let first = |path: &u8| path % 8 == 0 && addresses.number(path / 8) == 0;
        paths.open_count = paths.order.iter().filter(|path| first(path)).count() as u8;
        // Those that are open come first, so that "open" is a prefix.
        paths.order.sort_by_key(|path| !first(path));
        if !addresses.is_one() {
            paths.allowed = addresses.first_paths(&PortAddresses::ONE);
        }
        paths
    }

    /// The remote's ports are known: opens `count` of the allowed paths, which are a set (srd-protocol 6.2, 17.3).
    pub(crate) fn open(&mut self, allowed: u64, count: u8, random: &mut Random) {
        random.shuffle(&mut self.order);
        self.order.sort_by_key(|path| allowed >> path & 1 == 0);
        let most = allowed.count_ones().max(1) as u8;
        self.open_count = count.clamp(1, most);
        self.allowed = allowed;
        self.cursor = 0;
    }

    /// Whether a path leads from one host to the other, as far as is known.
    #[inline]
    pub(crate) fn may_use(&self, path: Path) -> bool {
        self.allowed & path.bit() != 0
    }

    /// Before the remote's ports are known.
    pub(crate) fn limit(&mut self, count: u8) {
        self.open_count = self.open_count.min(count.max(1));
    }

    fn usable(&self, path: u8, now_ns: u64) -> bool {
        let state = &self.states[usize::from(path)];
        if self.allowed >> path & 1 == 0 {
            return false;
        }
        match state.health {
            Health::Good => true,
            Health::Skip => state.until_ns <= now_ns,
            Health::Suspect | Health::Denied => false,
        }
    }

    /// Whether nothing is known against a path.
    #[inline]
    pub(crate) fn is_usable(&self, path: Path, now_ns: u64) -> bool {
        self.usable(path.number(), now_ns)
    }

    /// The path for the next batch, another one than `avoid` where there is one: of the next two in turn the quicker one. Paths
    /// that share a link then carry less the longer its queue, whatever share of the paths hashes to it. Fast path.
    pub(crate) fn pick(&mut self, now_ns: u64, avoid: Option<Path>) -> Path {
        let avoid = avoid.map(Path::number);
        if let Some(path) = self.pick_known_good(now_ns, avoid) {
            return path;
        }
        let chosen = self.next_in_turn(now_ns, avoid).map(|first| {
            let after_first = self.cursor;
            let rtt_ns = |paths: &Self, path: u8| paths.states[usize::from(path)].rtt_ns;
            match self.next_in_turn(now_ns, avoid) {
                Some(second) if rtt_ns(self, second) < rtt_ns(self, first) => second,
                _ => {
                    self.cursor = after_first;
                    first
                }
            }
        });
        from(chosen.unwrap_or_else(|| self.last_resort(avoid)))
    }

    /// The next path in the shuffled order that may be used.
    fn next_in_turn(&mut self, now_ns: u64, avoid: Option<u8>) -> Option<u8> {
        for _ in 0..self.open_count {
            let path = self.order[usize::from(self.cursor)];
            self.cursor = (self.cursor + 1) % self.open_count;
            if Some(path) != avoid && self.usable(path, now_ns) {
                return Some(path);
            }
        }
        None
    }

    /// Where none may be used.
    #[cold]
    fn last_resort(&self, avoid: Option<u8>) -> u8 {
        let open = (0..self.open_count).map(|step| (self.cursor + step) % self.open_count);
        let mut others = open.map(|place| self.order[usize::from(place)]);
        others
            .find(|path| Some(*path) != avoid)
            .unwrap_or(self.order[0])
    }

    fn pick_known_good(&mut self, now_ns: u64, avoid: Option<u8>) -> Option<Path> {
        while self.ring_length > 0 {
            let path = self.ring[0];
            self.ring.copy_within(1.., 0);
            self.ring_length -= 1;
            if Some(path) != avoid && self.usable(path, now_ns) {
                return Some(from(path));
            }
        }
        None
    }

    /// The path for a retransmission of what left at `sent_ns`: one that carried something later than that, there and
    /// back, so that what swallowed the packet does not swallow it again; another one with every attempt
    /// (srd-protocol 8.5).
    pub(crate) fn pick_again(
        &mut self,
        now_ns: u64,
        avoid: Path,
        sent_ns: u64,
        attempt: u32,
    ) -> Path {
        let fits = |proof: &Proof| proof.path != avoid && self.usable(proof.path.number(), now_ns);
        let proofs = || self.proven.iter().flatten().filter(|proof| fits(proof));
        let later = || proofs().filter(|proof| proof.sent_ns > sent_ns);
        let count = later().count();
        let chosen = if count > 0 {
            later().nth((attempt as usize + usize::from(self.cursor)) % count)
        } else {
            proofs().nth(attempt as usize)
        };
        let chosen = chosen.map(|proof| proof.path);
        self.cursor = (self.cursor + 1) % self.open_count;
        chosen.unwrap_or_else(|| self.pick(now_ns, Some(avoid)))
    }

    /// Whether packets sent on this path at this time are overtaken by a later one on it (srd-protocol 8.1).
    #[inline]
    pub(crate) fn overtaken(&self, path: Path, sent_ns: u64) -> bool {
        sent_ns < self.states[path.index()].delivered_ns
    }

    /// The path's own round trip, 0 if unknown.
    #[inline]
    pub(crate) fn rtt_ns(&self, path: Path) -> u64 {
        u64::from(self.states[path.index()].rtt_ns)
    }

    /// A transmission of this path and time has arrived.
    pub(crate) fn on_delivered(&mut self, path: Path, sent_ns: u64) {
        let state = &mut self.states[path.index()];
        state.delivered_ns = state.delivered_ns.max(sent_ns);
        let condemned = matches!(state.health, Health::Suspect | Health::Denied);
        if condemned && sent_ns > state.since_ns {
            state.health = Health::Good;
            state.probe_count = 0;
        }
    }

    /// An echo of what left at `sent_ns`: the path's round trip, and whether its queueing delay is below the target.
    pub(crate) fn on_echo(&mut self, path: Path, sent_ns: u64, rtt_ns: u64, below_target: bool) {
        let known = |proof: &Option<Proof>| proof.is_some_and(|proof| proof.path == path);
        // What goes alone keeps to one path.
        if !known(&self.proven[0]) {
            let place = self.proven.iter().position(known).unwrap_or(PROVEN - 1);
            self.proven[..=place].rotate_right(1);
        }
        self.proven[0] = Some(Proof { path, sent_ns });
        let state = &mut self.states[path.index()];
        state.strike_count = 0;
        let sample = rtt_ns.min(u64::from(u32::MAX)) as u32;
        state.rtt_ns = match state.rtt_ns {
            0 => sample,
            known => known - known / 4 + sample / 4,
        };
        let length = usize::from(self.ring_length);
        let present = self.ring[..length].contains(&path.number());
        if !below_target || present || state.health != Health::Good {
            return;
        }
        if length == RING {
            self.ring.copy_within(1.., 0);
            self.ring_length -= 1;
        }
        self.ring[usize::from(self.ring_length)] = path.number();
        self.ring_length += 1;
    }

    /// A packet of this path arrived, but its answer came back only over another path: once is chance.
    pub(crate) fn strike(&mut self, path: Path, now_ns: u64, srtt_ns: u64) -> bool {
        let state = &mut self.states[path.index()];
        state.strike_count = state.strike_count.saturating_add(1);
        state.strike_count >= STRIKES && self.suspect(path, now_ns, srtt_ns)
    }

    /// Slower than the rest (srd-protocol 10.7), or lossy under load: passed over for one srtt.
    pub(crate) fn skip(&mut self, path: Path, now_ns: u64, srtt_ns: u64) {
        let state = &mut self.states[path.index()];
        if matches!(state.health, Health::Good | Health::Skip) {
            state.health = Health::Skip;
            state.until_ns = now_ns + srtt_ns;
        }
    }

    /// Lossy without load, or silent while others answered. Answers whether that is news.
    pub(crate) fn suspect(&mut self, path: Path, now_ns: u64, srtt_ns: u64) -> bool {
        let state = &mut self.states[path.index()];
        if matches!(state.health, Health::Suspect | Health::Denied) {
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
    pub(crate) fn next_probe_ns(&self) -> u64 {
        self.next_probe_ns
    }

    /// The path to probe now, if one is due; sets its next probe.
    pub(crate) fn take_probe(&mut self, now_ns: u64, srtt_ns: u64) -> Option<Path> {
        if now_ns < self.next_probe_ns {
            return None;
        }
        let mut chosen = None;
        let mut next_ns = NEVER;
        for state in self.states.known_mut() {
            if !matches!(state.health, Health::Suspect | Health::Denied) {
                continue;
            }
            if chosen.is_none() && state.until_ns <= now_ns {
                chosen = Some(from(state.path));
                state.probe_count = state.probe_count.saturating_add(1);
                if state.probe_count > DENY_AFTER {
                    state.health = Health::Denied;
                    state.until_ns = now_ns + DENIED_PROBE_NS;
                } else {
                    let wait_ns = srtt_ns.max(PROBE_LEAST_NS) << state.probe_count;
                    state.until_ns = now_ns + wait_ns.min(SUSPECT_PROBE_NS);
                }
            }
            next_ns = next_ns.min(state.until_ns);
        }
        self.next_probe_ns = next_ns;
        chosen
    }

    /// Paths that may be used.
    pub(crate) fn open_count(&self) -> u32 {
        self.open_count.into()
    }

    /// Open paths that are neither suspect nor denied.
    pub(crate) fn good_count(&self) -> u32 {
        let open = self.order[..usize::from(self.open_count)].iter();
        let good = open.filter(|path| {
            let health = self.states[usize::from(**path)].health;
            matches!(health, Health::Good | Health::Skip)
        });
        good.count() as u32
    }

    /// Bytes outside of this structure.
    pub(crate) fn footprint_bytes(&self) -> usize {
        self.states.footprint_bytes()
    }

    /// Health of a path, for tests and counters.
    #[cfg(test)]
    pub(crate) fn health(&self, path: Path) -> Health {
        self.states[path.index()].health
    }
}

fn from(number: u8) -> Path {
    Path::from_ports(number / 8, number % 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Paths {
        let mut random = Random::new(1);
        let mut paths = Paths::new(&PortAddresses::ONE, &mut random);
        paths.open(u64::MAX, 64, &mut random);
        paths
    }

    #[test]
    fn before_first_contact_only_the_first_port_is_used() {
        let mut paths = Paths::new(&PortAddresses::ONE, &mut Random::new(3));
        for _ in 0..100 {
            assert_eq!(paths.pick(0, None).target_port_index(), 0);
        }
    }

    #[test]
    fn without_echoes_every_path_takes_its_turn() {
        let mut paths = paths();
        let mut seen = 0;
        for _ in 0..64 {
            seen |= paths.pick(0, None).bit();
        }
        assert_eq!(seen, u64::MAX);
    }

    /// Half of the paths share a link with a queue: they carry about a fourth.
    #[test]
    fn of_two_paths_in_turn_the_quicker_one_is_taken() {
        let mut paths = paths();
        let slow = |path: Path| path.number() % 2 == 0;
        for number in 0..64 {
            let rtt_ns = if slow(from(number)) { 500_000 } else { 100_000 };
            paths.on_echo(from(number), 1, rtt_ns, false);
        }
        let picks = (0..640).map(|_| paths.pick(0, None));
        let slow_count = picks.filter(|path| slow(*path)).count();
        assert!((80..260).contains(&slow_count), "{slow_count} of 640");
    }

    #[test]
    fn a_path_that_answered_fast_is_taken_again_and_a_slow_one_is_not() {
        let mut paths = paths();
        paths.on_echo(from(9), 1, 1000, true);
        paths.on_echo(from(10), 1, 1000, false);
        assert_eq!(paths.pick(0, None), from(9));
        paths.on_echo(from(9), 1, 1000, true);
        assert_ne!(paths.pick(0, Some(from(9))), from(9));
    }

    #[test]
    fn a_suspect_path_carries_probes_only_until_something_arrives() {
        let mut paths = paths();
        let bad = from(5);
        assert!(paths.suspect(bad, 1_000_000, 30_000));
        assert!(!paths.suspect(bad, 1_000_000, 30_000));
        for _ in 0..200 {
            assert_ne!(paths.pick(2_000_000, None), bad);
        }
        assert_eq!(paths.take_probe(1_000_000, 30_000), None);
        assert_eq!(paths.take_probe(1_030_000, 30_000), Some(bad));
        assert_eq!(paths.take_probe(1_030_000, 30_000), None);
        paths.on_delivered(bad, 999_999);
        assert_eq!(paths.health(bad), Health::Suspect);
        paths.on_delivered(bad, 1_030_000);
        assert_eq!(paths.health(bad), Health::Good);
    }

    #[test]
    fn a_path_that_never_answers_is_denied_and_asked_rarely() {
        let mut paths = paths();
        paths.suspect(from(5), 0, 30_000);
        let mut probes = 0;
        while paths.health(from(5)) != Health::Denied {
            let now_ns = paths.next_probe_ns();
            assert!(paths.take_probe(now_ns, 30_000).is_some());
            probes += 1;
        }
        assert_eq!(probes, 21);
    }

    #[test]
    fn what_is_sent_again_takes_a_path_that_worked_after_it_was_lost() {
        let mut paths = paths();
        for (number, sent_ns) in [(1, 500), (2, 100), (3, 600), (4, 90)] {
            paths.on_echo(from(number), sent_ns, 1000, true);
        }
        for attempt in 0..8 {
            let path = paths.pick_again(0, from(1), 400, attempt);
            assert_eq!(path, from(3), "the only other one that answered later");
        }
        paths.on_echo(from(2), 700, 1000, true);
        let taken: Vec<Path> = (0..8)
            .map(|_| paths.pick_again(0, from(1), 400, 0))
            .collect();
        assert!(
            taken.contains(&from(2)) && taken.contains(&from(3)),
            "{taken:?}"
        );
        // Nothing has answered since: at least those that did not long ago, one after the other.
        let taken: Vec<Path> = (0..3)
            .map(|attempt| paths.pick_again(0, from(9), 900, attempt))
            .collect();
        assert_eq!(taken, [from(2), from(4), from(3)]);
    }

    #[test]
    fn when_every_path_is_suspect_one_is_still_found() {
        let mut paths = paths();
        for number in 0..64 {
            paths.suspect(from(number), 0, 1);
        }
        assert_ne!(paths.pick(0, Some(from(1))), from(1));
    }
}
