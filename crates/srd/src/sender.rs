// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All that decides when packets of a flow leave and on which path; loss.rs feeds it, transmit.rs
//! asks it (RFC 9002, 6 and 7).

use weft_wire::Path;
use weft_wire::time::{Instant, Nanos};

use crate::config::{Config, PATH_BATCH_BYTES};
use crate::congestion_marks::CongestionMarks;
use crate::first_flight::FirstFlight;
use crate::long_packet::LongPacket;
use crate::pacing::{Pace, Pacing};
use crate::path::Paths;
use crate::random::Random;
use crate::repeats::Repeats;
use crate::sent::{Attempt, Fate, Piece, Sent, SentRing};
use crate::timers::RoundTrip;
use crate::tried::Tried;
use crate::window::Window;

/// A window is spread over at least so many paths where packets are small enough (chosen by
/// simulation of permutations).
const BATCHES_PER_WINDOW: u64 = 32;
/// The same where hosts take longer than the network: then fewer calls are worth more than more
/// paths (chosen: a batch in each host's hands, and one on its way to each).
const BATCHES_PER_WINDOW_HOSTS: u64 = 4;
/// With so little in flight a message in segments begins a first flight all the same (chosen: short
/// messages whose acknowledgements are held back).
const LITTLE_BYTES: u64 = 4 << 10;

/// Hosts are slower than the network when they take so many times as long (chosen).
const HOSTS_SLOWER: u64 = 2;
/// A host that is away for longer does something else (chosen; what else was tried:
/// docs/lab/2026-11-27-readers-far-away.md).
pub(crate) const HOSTS_MOST_NS: Nanos = Nanos(100_000);

/// The sending half of a flow.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) ring: SentRing,
    pub(crate) in_flight_bytes: u64,
    /// What the network was tried with.
    pub(crate) tried: Tried,
    /// Of reliable packets, retransmissions included: no honest remote has received more.
    pub(crate) sent_bytes: u64,
    /// Packets sent again, for people to look at.
    pub(crate) again_count: u64,
    pub(crate) window: Window,
    pub(crate) pacing: Pacing,
    pub(crate) round_trip: RoundTrip,
    pub(crate) paths: Paths,
    pub(crate) marks: CongestionMarks,
    pub(crate) first_flight: FirstFlight,
    pub(crate) batch: Batch,
    pub(crate) clocks: Clocks,
    pub(crate) repeats: Repeats,
    /// To be sent at once, whatever the window: tail probe or time-out.
    pub(crate) urgent: Option<u64>,
}

/// The path in use and for how long (srd-protocol 10.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Batch {
    path: Option<Path>,
    /// That of the batch before, once there is none.
    last: Option<Path>,
    pub(crate) left_bytes: u32,
}

impl Batch {
    /// Whether the last packet began or went on with a batch that has not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.path.is_some()
    }
}

/// What loss detection remembers of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// Last acknowledgement, time-out, or first packet after a pause: where tail probe and time-out
    /// count from.
    pub(crate) base_ns: Instant,
    pub(crate) tail_probed: bool,
    /// All that is in flight are receipts, whose answer may take longer (srd-protocol 7.3).
    pub(crate) only_receipts: bool,
    /// The next piece begins a first flight though short messages are in flight.
    is_flight: bool,
    /// When a packet across paths will count as lost.
    pub(crate) loss_ns: Instant,
    /// When the newest packet left that is known to have arrived.
    pub(crate) delivered_ns: Instant,
    pub(crate) last_echo_ns: Instant,
    /// How long the newest echoed packet was away, with what it waited at the remote (RFC 8985:
    /// RACK.rtt), or the oldest one that was acknowledged with it, if that is more (srd-protocol
    /// 8.2).
    pub(crate) away_ns: Nanos,
    /// What a round trip took in the network and in the hosts, smoothed (srd-protocol 10.1). In 32
    /// bits, since remotes are many: longer ones do not count.
    network_ns: u32,
    hosts_ns: u32,
    /// How late a packet taken for lost arrived, and how long to remember that (srd-protocol 8.2).
    pub(crate) lateness_ns: Nanos,
    pub(crate) patient_until_ns: Instant,
}

impl Clocks {
    /// Of a round trip so much was the network's, and so much the hosts': calls, sockets, a process
    /// that does something else.
    pub(crate) fn share_round_trip(&mut self, network_ns: Nanos, hosts_ns: Nanos) {
        let smoothed = |mean: u32, sample_ns: Nanos| {
            let sample = u32::try_from(sample_ns.0).unwrap_or(u32::MAX);
            mean - mean / 8 + sample / 8
        };
        self.network_ns = smoothed(self.network_ns, network_ns);
        self.hosts_ns = smoothed(self.hosts_ns, hosts_ns);
    }

    /// Something leaves, perhaps the first after a pause. Answers whether it begins a first flight:
    /// nothing but receipts, or little, is in flight.
    fn begins_flight(&mut self, pauses: bool, is_receipt: bool, now_ns: Instant) -> bool {
        if pauses {
            self.base_ns = now_ns;
            self.tail_probed = false;
            self.only_receipts = true;
        }
        let begins = self.only_receipts && !is_receipt;
        if begins {
            self.only_receipts = false;
            self.base_ns = now_ns;
        }
        std::mem::take(&mut self.is_flight) || begins
    }

    pub(crate) fn hosts_are_slower(&self) -> bool {
        u64::from(self.hosts_ns) > HOSTS_SLOWER * u64::from(self.network_ns)
    }
}

impl Sender {
    pub(crate) fn new(config: &Config, next: u64, sent_bytes: u64, random: &mut Random) -> Self {
        let mut paths = Paths::new(&config.addresses, random);
        paths.limit(config.path_count);
        Self {
            ring: SentRing::new(next),
            in_flight_bytes: 0,
            tried: Tried::new(next),
            sent_bytes,
            again_count: 0,
            window: Window::new(&config.pace, u64::from(config.datagram_bytes)),
            pacing: Pacing::default(),
            round_trip: RoundTrip::default(),
            paths,
            marks: CongestionMarks::default(),
            first_flight: FirstFlight::new(),
            batch: Batch::default(),
            clocks: Clocks {
                base_ns: Instant::START,
                tail_probed: false,
                only_receipts: false,
                is_flight: false,
                loss_ns: Instant::NEVER,
                delivered_ns: Instant::START,
                last_echo_ns: Instant::START,
                away_ns: Nanos::ZERO,
                network_ns: 0,
                hosts_ns: 0,
                lateness_ns: Nanos::ZERO,
                patient_until_ns: Instant::START,
            },
            repeats: Repeats::default(),
            urgent: None,
        }
    }

    /// Whether the window and the pace let a packet of this size leave.
    pub(crate) fn may_send(&self, bytes: u64, now_ns: Instant) -> bool {
        self.window_is_open(bytes) && self.pacing.due_ns() <= now_ns
    }

    /// One packet may always be in flight.
    pub(crate) fn window_is_open(&self, bytes: u64) -> bool {
        self.in_flight_bytes == 0 || self.in_flight_bytes + bytes <= self.window.cwnd_bytes()
    }

    /// Whether as much as is in flight could be so once more.
    pub(crate) fn window_is_half_empty(&self) -> bool {
        2 * self.in_flight_bytes <= self.window.cwnd_bytes()
    }

    /// The path for a new packet: that of the batch, or a new one.
    /// `answer` is the way back of what was heard last, for who follows.
    pub(crate) fn batch_path(&mut self, bytes: u16, answer: Option<Path>, now_ns: Instant) -> Path {
        match self.batch.path {
            Some(path) if self.batch.left_bytes >= u32::from(bytes) => path,
            _ => {
                let path = self.next_path(answer, now_ns);
                self.batch = Batch {
                    path: Some(path),
                    last: Some(path),
                    left_bytes: self.batch_bytes(bytes),
                };
                path
            }
        }
    }

    /// A message on its own stays on the path that answered last, or answers on that on which the
    /// remote spoke: there the caches of both hosts are warm (srd-protocol 10.1). Once that an
    /// answer was late is chance, so what counts is the path's smoothed round trip.
    fn next_path(&mut self, answer: Option<Path>, now_ns: Instant) -> Path {
        let flies_nothing = self.in_flight_bytes == 0;
        // Behind what is in flight on its path nothing comes out of order.
        let answer = answer.filter(|_| flies_nothing);
        if (flies_nothing || self.clocks.is_flight)
            && let Some(path) = answer.or(self.batch.last)
        {
            let least_ns = Nanos(answer.is_none().into());
            let quick = least_ns..=self.window.calm_rtt_ns();
            if self.paths.is_usable(path, now_ns) && quick.contains(&self.paths.rtt_ns(path)) {
                return path;
            }
        }
        self.paths.pick(now_ns, None)
    }

    /// A small window on few paths would be as lumpy as on one; but what leaves alone, a message of
    /// a few packets, is done sooner on one path that is warm than on several (srd-protocol 10.1).
    fn batch_bytes(&self, packet_bytes: u16) -> u32 {
        let share = self.share_bytes() as u32;
        let first_flight = match self.clocks.is_flight || self.flies_no_message() {
            true => self.first_flight.limit_bytes(),
            false => 0,
        };
        share.max(first_flight).max(packet_bytes.into())
    }

    /// What keeps to one path, if packets are small (srd-protocol 10.1).
    fn share_bytes(&self) -> u64 {
        let count = if self.clocks.hosts_are_slower() {
            BATCHES_PER_WINDOW_HOSTS
        } else {
            BATCHES_PER_WINDOW
        };
        (self.window.cwnd_bytes() / count).min(PATH_BATCH_BYTES.into())
    }

    /// Whether a packet of `next_bytes` behind one of `bytes` would begin a new batch.
    pub(crate) fn batch_ends_after(&self, bytes: u32, next_bytes: u16) -> bool {
        self.batch.left_bytes < bytes + u32::from(next_bytes)
    }

    /// A piece of a longer message is next: if nothing is in flight, or little where it is the
    /// first one, it begins a batch, so that what short messages have left of theirs does not cut
    /// it short.
    pub(crate) fn before_bulk(&mut self, is_beginning: bool) {
        let is_flight = is_beginning && self.in_flight_bytes <= LITTLE_BYTES;
        if is_flight || self.flies_no_message() {
            self.end_batch();
        }
        self.clocks.is_flight = is_flight;
    }

    /// Whether nothing is in flight but receipts.
    pub(crate) fn flies_no_message(&self) -> bool {
        self.in_flight_bytes == 0 || self.clocks.only_receipts
    }

    /// The next packet begins a new batch.
    pub(crate) fn end_batch(&mut self) {
        self.batch.path = None;
    }

    /// A new packet leaves. Answers its sequence.
    pub(crate) fn on_fresh(
        &mut self,
        piece: Piece,
        bytes: u16,
        path: Path,
        now_ns: Instant,
    ) -> u64 {
        let is_receipt = matches!(piece, Piece::Receipt { .. });
        let pauses = self.in_flight_bytes == 0;
        if self.clocks.begins_flight(pauses, is_receipt, now_ns) {
            self.first_flight.begin(path);
        }
        self.on_leaving(self.ring.next(), bytes.into(), path, now_ns);
        self.ring.push(Sent::fresh(piece, bytes, path, now_ns))
    }

    /// The same for a long packet, whose units leave with heads of so many bytes each. Answers its
    /// first sequence.
    pub(crate) fn on_long(
        &mut self,
        long: &LongPacket,
        head_bytes: u16,
        path: Path,
        now_ns: Instant,
    ) -> u64 {
        let first = self.ring.next();
        let pauses = self.in_flight_bytes == 0;
        if self.clocks.begins_flight(pauses, false, now_ns) {
            self.first_flight.begin(path);
        }
        let bytes = long.payload_bytes() + u32::from(long.count) * u32::from(head_bytes);
        self.on_leaving(first + u64::from(long.count) - 1, bytes, path, now_ns);
        for (index, (piece, length)) in long.units().enumerate() {
            let mut sent = Sent::fresh(piece, head_bytes + length, path, now_ns);
            sent.follows = index > 0;
            self.ring.push(sent);
        }
        self.ring.awaited.add(path, now_ns);
        first
    }

    /// A new packet leaves, with this sequence as its last one.
    fn on_leaving(&mut self, last: u64, bytes: u32, path: Path, now_ns: Instant) {
        self.first_flight.on_sent(last, bytes, path);
        self.batch.left_bytes = self.batch.left_bytes.saturating_sub(bytes);
        self.in_flight_bytes += u64::from(bytes);
        self.tried.on_sent(bytes, self.in_flight_bytes);
        self.count(bytes, now_ns);
    }

    fn count(&mut self, bytes: u32, now_ns: Instant) {
        self.sent_bytes += u64::from(bytes);
        let pace = Pace {
            cwnd_bytes: self.window.cwnd_bytes(),
            srtt_ns: self.round_trip.srtt_ns(),
            batch_bytes: self
                .share_bytes()
                .max(self.first_flight.limit_bytes().into()),
        };
        self.pacing.on_sent(now_ns, u64::from(bytes), pace);
    }

    /// A packet leaves again, with a size that may differ by its sections.
    pub(crate) fn on_again(&mut self, sequence: u64, bytes: u16, path: Path, now_ns: Instant) {
        if self.in_flight_bytes == 0 {
            self.clocks.base_ns = now_ns;
        }
        let before = self.ring.decide(sequence, Fate::InFlight);
        let next = self.ring.next();
        let Some(sent) = self.ring.get_mut(sequence) else {
            return;
        };
        sent.attempt = Attempt::AfterLoss;
        if before == Fate::InFlight {
            sent.attempt = Attempt::Repeat;
            self.in_flight_bytes -= u64::from(sent.bytes);
            self.repeats.on_repeated(next);
        }
        self.in_flight_bytes += u64::from(bytes);
        sent.prior_path = sent.path;
        sent.path = path;
        sent.bytes = bytes;
        sent.sent_ns = now_ns;
        sent.follows = false;
        self.again_count += 1;
        self.count(bytes.into(), now_ns);
    }

    /// The most that was in flight in the last round trip: acknowledgements are read in bursts, of
    /// which the first alone still finds all of it in flight.
    pub(crate) fn take_tried_bytes(&mut self) -> u64 {
        let (first, next) = (self.ring.first(), self.ring.next());
        self.tried.take(first, next, self.in_flight_bytes)
    }

    /// When tail probe or time-out are due.
    pub(crate) fn silence_ns(&self, config: &Config, jitter_ns: Nanos) -> Instant {
        if self.in_flight_bytes == 0 {
            return Instant::NEVER;
        }
        let (timing, base_ns) = (&config.timing, self.clocks.base_ns);
        let rto_ns = self.round_trip.rto_ns(timing, jitter_ns);
        if self.clocks.tail_probed || self.clocks.only_receipts {
            return base_ns.saturating_add(rto_ns);
        }
        let tail_ns = self.round_trip.tail_ns(timing, jitter_ns);
        let due_ns = base_ns.saturating_add(rto_ns.min(tail_ns));
        let Some(asked_ns) = self.ring.asked_ns() else {
            return due_ns;
        };
        let asked_tail_ns = self.round_trip.asked_tail_ns(timing, jitter_ns);
        due_ns.min(asked_ns.max(base_ns).saturating_add(asked_tail_ns))
    }

    /// Holds at all times (checked by the simulator and in debug builds).
    pub(crate) fn check(&self) {
        assert_eq!(
            self.in_flight_bytes,
            self.ring.in_flight_bytes(),
            "bytes in flight"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender() -> Sender {
        Sender::new(&Config::default(), 0, 0, &mut Random::new(1))
    }

    #[test]
    fn batches_are_large_where_hosts_take_longer_than_the_network_and_only_there() {
        let mut sender = sender();
        let cwnd_bytes = sender.window.cwnd_bytes();
        assert_eq!(sender.share_bytes(), cwnd_bytes / BATCHES_PER_WINDOW);
        for _ in 0..64 {
            sender.clocks.share_round_trip(Nanos(5_000), Nanos(40_000));
        }
        let share_bytes = cwnd_bytes / BATCHES_PER_WINDOW_HOSTS;
        assert_eq!(sender.share_bytes(), share_bytes);
        for _ in 0..64 {
            sender
                .clocks
                .share_round_trip(Nanos(150_000), Nanos(40_000));
        }
        assert_eq!(sender.share_bytes(), cwnd_bytes / BATCHES_PER_WINDOW);
    }

    #[test]
    fn receipts_alone_are_not_probed_for_and_do_not_keep_a_message_from_beginning_a_flight() {
        let (config, path) = (Config::default(), Path::from_ports(0, 0));
        let mut sender = sender();
        sender.round_trip.sample(Nanos(20_000));
        sender.on_fresh(Piece::Receipt { message_id: 1 }, 120, path, Instant(1_000));
        let rto_ns = sender.round_trip.rto_ns(&config.timing, Nanos::ZERO);
        let silence_ns = sender.silence_ns(&config, Nanos::ZERO);
        assert_eq!(silence_ns, Instant(1_000).saturating_add(rto_ns));
        assert!(sender.flies_no_message());
        sender.on_fresh(Piece::Eager { slot: 0 }, 100, path, Instant(9_000));
        let tail_ns = sender.round_trip.tail_ns(&config.timing, Nanos::ZERO);
        let silence_ns = sender.silence_ns(&config, Nanos::ZERO);
        assert_eq!(silence_ns, Instant(9_000).saturating_add(tail_ns));
        assert!(!sender.flies_no_message());
    }

    /// Acknowledgements are read in bursts: the first of one finds all in flight, the others next
    /// to nothing.
    #[test]
    fn what_the_network_was_tried_with_is_remembered_for_a_round_trip() {
        let mut sender = sender();
        let path = Path::from_ports(0, 0);
        for now_ns in 1..=10 {
            sender.on_fresh(Piece::Eager { slot: 0 }, 1000, path, Instant(now_ns));
        }
        assert_eq!(sender.take_tried_bytes(), 10_000);
        for sequence in 0..10 {
            sender.ring.decide(sequence, Fate::Acknowledged);
            sender.in_flight_bytes -= 1000;
        }
        assert_eq!(sender.take_tried_bytes(), 10_000);
        sender.ring.advance();
        sender.take_tried_bytes();
        assert_eq!(sender.take_tried_bytes(), 0, "a round trip later");
    }
}
