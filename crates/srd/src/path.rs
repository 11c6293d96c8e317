// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The 64 paths of a flow: which one a batch takes, and which one a retransmission (srd-protocol
//! 8.5, 10.1). Called by sender and loss. Source: REPS (ring of known-good paths).

use weft_wire::time::{Instant, Nanos};
use weft_wire::{PATH_COUNT, Path, PortAddresses};

use crate::path_health::PathHealth;
use crate::random::Random;

/// Known-good paths kept in order of arrival (srd-protocol 15; specified: REPS).
const RING: usize = 8;
/// Paths remembered for retransmissions (chosen: if one of four ways through the network breaks,
/// some of these still work).
const PROVEN: usize = 8;
/// A path that carried a packet there and its acknowledgement back, and when that packet left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Proof {
    path: Path,
    sent_ns: Instant,
}

/// All paths of one flow.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) health: PathHealth,
    order: [u8; PATH_COUNT],
    cursor: u8,
    /// How many of `order` may be used.
    open_count: u8,
    /// The paths that lead from one host to the other, one bit each (srd-protocol 17.3).
    allowed: u64,
    known_good: KnownGood,
    proven: Proven,
}

/// Paths that answered without a queue, in the order of their answers.
#[derive(Debug, Default)]
struct KnownGood {
    ring: [u8; RING],
    length: u8,
}

impl KnownGood {
    /// Adds a path, if it is not there yet; if there is no room, the oldest path goes.
    fn push(&mut self, path: u8) {
        if self.ring[..usize::from(self.length)].contains(&path) {
            return;
        }
        if usize::from(self.length) == RING {
            self.pop();
        }
        self.ring[usize::from(self.length)] = path;
        self.length += 1;
    }

    /// Takes the oldest one out.
    fn pop(&mut self) -> Option<u8> {
        let path = (self.length > 0).then_some(self.ring[0])?;
        self.ring.copy_within(1.., 0);
        self.length -= 1;
        Some(path)
    }
}

/// The last paths that answered, newest first.
#[derive(Debug, Default)]
struct Proven([Option<Proof>; PROVEN]);

impl Proven {
    fn add(&mut self, path: Path, sent_ns: Instant) {
        let known = |proof: &Option<Proof>| proof.is_some_and(|proof| proof.path == path);
        // Single packets keep to one path, so the newest entry is mostly this one already.
        if !known(&self.0[0]) {
            let place = self.0.iter().position(known).unwrap_or(PROVEN - 1);
            self.0[..=place].rotate_right(1);
        }
        self.0[0] = Some(Proof { path, sent_ns });
    }
}

impl Paths {
    /// Paths in a random order. Only those from our ports at the first address to the remote's
    /// first port are open (srd-protocol 6.1, 17.2).
    pub(crate) fn new(addresses: &PortAddresses, random: &mut Random) -> Self {
        let mut order = [0; PATH_COUNT];
        for (index, path) in order.iter_mut().enumerate() {
            *path = index as u8;
        }
        random.shuffle(&mut order);
        let mut paths = Self {
            health: PathHealth::new(),
            order,
            cursor: 0,
            open_count: PATH_COUNT as u8,
            allowed: u64::MAX,
            known_good: KnownGood::default(),
            proven: Proven::default(),
        };
        let first = |path: &u8| path.is_multiple_of(8) && addresses.number(path / 8) == 0;
        paths.open_count = paths.order.iter().filter(|path| first(path)).count() as u8;
        // Open paths come first, so that they are a prefix of `order`.
        paths.order.sort_by_key(|path| !first(path));
        if !addresses.is_one() {
            paths.allowed = addresses.first_paths(&PortAddresses::ONE);
        }
        paths
    }

    /// The remote's ports are known: opens `count` of the allowed paths. `allowed` has one bit for
    /// each path (srd-protocol 6.2, 17.3).
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

    /// Opens no more than `count` paths, before the remote's ports are known.
    pub(crate) fn limit(&mut self, count: u8) {
        self.open_count = self.open_count.min(count.max(1));
    }

    /// Whether a path may be used and is not suspect, denied, or skipped at this time.
    #[inline]
    pub(crate) fn is_usable(&self, path: Path, now_ns: Instant) -> bool {
        self.may_use(path) && self.health.is_usable(path.number(), now_ns)
    }

    /// The path for the next batch: one that is known to be good, else the quicker one of the next
    /// two in turn; not `avoid`, if there is another one. Since the quicker one is taken, paths
    /// that share a link carry less the longer the link's queue is, however many paths the network
    /// hashes to that link. Fast path.
    pub(crate) fn pick(&mut self, now_ns: Instant, avoid: Option<Path>) -> Path {
        if let Some(path) = self.pick_known_good(now_ns, avoid) {
            return path;
        }
        let chosen = self.next_in_turn(now_ns, avoid).map(|first| {
            let after_first = self.cursor;
            match self.next_in_turn(now_ns, avoid) {
                Some(second) if self.rtt_ns(second) < self.rtt_ns(first) => second,
                _ => {
                    self.cursor = after_first;
                    first
                }
            }
        });
        chosen.unwrap_or_else(|| self.last_resort(avoid))
    }

    /// Any open path, whatever is known of it. A path that drops long datagrams has no queue, and
    /// so looks better than paths that carry them (srd-protocol 16.3).
    pub(crate) fn pick_at_random(&self, random: &mut Random) -> Path {
        from(self.order[random.below(self.open_count.into()) as usize])
    }

    /// The next usable path in the shuffled order.
    fn next_in_turn(&mut self, now_ns: Instant, avoid: Option<Path>) -> Option<Path> {
        for _ in 0..self.open_count {
            let path = from(self.order[usize::from(self.cursor)]);
            self.cursor = (self.cursor + 1) % self.open_count;
            if Some(path) != avoid && self.is_usable(path, now_ns) {
                return Some(path);
            }
        }
        None
    }

    /// A path for the case that none is usable.
    #[cold]
    fn last_resort(&self, avoid: Option<Path>) -> Path {
        let open = (0..self.open_count).map(|step| (self.cursor + step) % self.open_count);
        let mut others = open.map(|place| from(self.order[usize::from(place)]));
        others
            .find(|path| Some(*path) != avoid)
            .unwrap_or(from(self.order[0]))
    }

    fn pick_known_good(&mut self, now_ns: Instant, avoid: Option<Path>) -> Option<Path> {
        while let Some(path) = self.known_good.pop().map(from) {
            if Some(path) != avoid && self.is_usable(path, now_ns) {
                return Some(path);
            }
        }
        None
    }

    /// The path for a retransmission of a packet that left at `sent_ns`: a path that carried a
    /// later packet there and an acknowledgement back, so that the fault that lost the packet does
    /// not lose it again. Each attempt takes another path (srd-protocol 8.5).
    pub(crate) fn pick_again(
        &mut self,
        now_ns: Instant,
        avoid: Path,
        sent_ns: Instant,
        attempt: u32,
    ) -> Path {
        let fits = |proof: &Proof| proof.path != avoid && self.is_usable(proof.path, now_ns);
        let proofs = || self.proven.0.iter().flatten().filter(|proof| fits(proof));
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

    /// The path's own round trip, 0 if unknown.
    #[inline]
    pub(crate) fn rtt_ns(&self, path: Path) -> Nanos {
        self.health.rtt_ns(path.number())
    }

    /// Takes the echo of a packet that left at `sent_ns` on a path: its round trip, and whether its
    /// queueing delay is below the target.
    pub(crate) fn on_echo(
        &mut self,
        path: Path,
        sent_ns: Instant,
        rtt_ns: Nanos,
        below_target: bool,
    ) {
        self.proven.add(path, sent_ns);
        let is_good = self.health.on_round_trip(path, rtt_ns);
        if below_target && is_good {
            self.known_good.push(path.number());
        }
    }

    /// Paths that may be used.
    pub(crate) fn open_count(&self) -> u32 {
        self.open_count.into()
    }

    /// Open paths that are neither suspect nor denied.
    pub(crate) fn good_count(&self) -> u32 {
        let open = self.order[..usize::from(self.open_count)].iter();
        open.filter(|path| self.health.is_good(**path)).count() as u32
    }
}

fn from(number: u8) -> Path {
    Path::from_ports(number / 8, number % 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_health::Health;

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
            assert_eq!(paths.pick(Instant::START, None).target_port_index(), 0);
        }
    }

    #[test]
    fn without_echoes_every_path_takes_its_turn() {
        let mut paths = paths();
        let mut seen = 0;
        for _ in 0..64 {
            seen |= paths.pick(Instant::START, None).bit();
        }
        assert_eq!(seen, u64::MAX);
    }

    /// Half of the paths share a link with a queue: they carry about a fourth.
    #[test]
    fn of_two_paths_in_turn_the_quicker_one_is_taken() {
        let mut paths = paths();
        let slow = |path: Path| path.number().is_multiple_of(2);
        for number in 0..64 {
            let rtt_ns = if slow(from(number)) { 500_000 } else { 100_000 };
            paths.on_echo(from(number), Instant(1), Nanos(rtt_ns), false);
        }
        let picks = (0..640).map(|_| paths.pick(Instant::START, None));
        let slow_count = picks.filter(|path| slow(*path)).count();
        assert!((80..260).contains(&slow_count), "{slow_count} of 640");
    }

    #[test]
    fn a_path_that_answered_fast_is_taken_again_and_a_slow_one_is_not() {
        let mut paths = paths();
        paths.on_echo(from(9), Instant(1), Nanos(1000), true);
        paths.on_echo(from(10), Instant(1), Nanos(1000), false);
        assert_eq!(paths.pick(Instant::START, None), from(9));
        paths.on_echo(from(9), Instant(1), Nanos(1000), true);
        assert_ne!(paths.pick(Instant::START, Some(from(9))), from(9));
    }

    #[test]
    fn a_suspect_path_carries_probes_only_until_something_arrives() {
        let mut paths = paths();
        let bad = from(5);
        assert!(paths.health.suspect(bad, Instant(1_000_000), Nanos(30_000)));
        assert!(!paths.health.suspect(bad, Instant(1_000_000), Nanos(30_000)));
        for _ in 0..200 {
            assert_ne!(paths.pick(Instant(2_000_000), None), bad);
        }
        assert_eq!(
            paths.health.take_probe(Instant(1_000_000), Nanos(30_000)),
            None
        );
        assert_eq!(
            paths.health.take_probe(Instant(1_030_000), Nanos(30_000)),
            Some(bad)
        );
        assert_eq!(
            paths.health.take_probe(Instant(1_030_000), Nanos(30_000)),
            None
        );
        paths.health.on_delivered(bad, Instant(999_999));
        assert_eq!(paths.health.of(bad), Health::Suspect);
        paths.health.on_delivered(bad, Instant(1_030_000));
        assert_eq!(paths.health.of(bad), Health::Good);
    }

    #[test]
    fn a_path_that_never_answers_is_denied_and_asked_rarely() {
        let mut paths = paths();
        paths.health.suspect(from(5), Instant::START, Nanos(30_000));
        let mut probes = 0;
        while paths.health.of(from(5)) != Health::Denied {
            let now_ns = paths.health.next_probe_ns();
            assert!(paths.health.take_probe(now_ns, Nanos(30_000)).is_some());
            probes += 1;
        }
        assert_eq!(probes, 21);
    }

    #[test]
    fn what_is_sent_again_takes_a_path_that_worked_after_it_was_lost() {
        let mut paths = paths();
        for (number, sent_ns) in [(1, 500), (2, 100), (3, 600), (4, 90)] {
            paths.on_echo(from(number), Instant(sent_ns), Nanos(1000), true);
        }
        for attempt in 0..8 {
            let path = paths.pick_again(Instant::START, from(1), Instant(400), attempt);
            assert_eq!(path, from(3), "the only other one that answered later");
        }
        paths.on_echo(from(2), Instant(700), Nanos(1000), true);
        let taken: Vec<Path> = (0..8)
            .map(|_| paths.pick_again(Instant::START, from(1), Instant(400), 0))
            .collect();
        assert!(
            taken.contains(&from(2)) && taken.contains(&from(3)),
            "{taken:?}"
        );
        // Nothing has answered since: at least those that did not long ago, one after the other.
        let taken: Vec<Path> = (0..3)
            .map(|attempt| paths.pick_again(Instant::START, from(9), Instant(900), attempt))
            .collect();
        assert_eq!(taken, [from(2), from(4), from(3)]);
    }

    #[test]
    fn when_every_path_is_suspect_one_is_still_found() {
        let mut paths = paths();
        for number in 0..64 {
            paths.health.suspect(from(number), Instant::START, Nanos(1));
        }
        assert_ne!(paths.pick(Instant::START, Some(from(1))), from(1));
    }
}
