// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receiver's side of sequences: what has arrived, when to say so, and the section that says it
//! (srd-protocol 7).
//!
//! Called by flow.

use weft_wire::acknowledgement::{ACKNOWLEDGEMENT_BYTES, NO_SEQUENCE};
use weft_wire::marks::Ecn;
use weft_wire::time::{Instant, Nanos};
use weft_wire::{Acknowledgement, BITMAP_WORDS, Header, PATH_COUNT, Packet, Path};

use crate::ack_timer::AckTimer;
use crate::config::{SEQUENCE_LIMIT, Timing};
use crate::marks_heard::MarksHeard;

/// Times of paths are kept in steps of so many bits of nanoseconds: 128 ns, which 32 bits count for
/// nine minutes. What is newer than all before it counts as new whatever they say (chosen).
const STEP_BITS: u32 = 7;

/// What a sequence is to the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    Fresh,
    Duplicate,
    /// Too far ahead (srd-protocol 7.2).
    Beyond,
}

/// Which sequences of a long packet are to be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    /// The first one of them, counted from the packet's own.
    pub(crate) from: u8,
    /// How many they are.
    pub(crate) count: u8,
}

/// What has arrived of one flow.
#[derive(Debug)]
pub(crate) struct Received {
    cumulative: u64,
    /// First sequence above all that arrived.
    end: u64,
    /// Bit `sequence % 1024`, for sequences from `cumulative` to `end`.
    bits: [u64; BITMAP_WORDS],
    received_bytes: u64,
    pub(crate) timer: AckTimer,
    duplicate_count: u8,
    echo: Echo,
    /// A probe that has not been answered yet: it gets an answer of its own (srd-protocol 16.1).
    probe: Option<Box<Echo>>,
    heard: u64,
    heard_before: u64,
    pub(crate) marks: MarksHeard,
    /// Of each path the time of its newest packet, in steps of [`STEP_BITS`] (srd-protocol 14.7);
    /// `None` where all have `newest_step`.
    newest: Option<Box<[u32; PATH_COUNT]>>,
    newest_step: u32,
    /// The path and the sequence of the packet that came last for the first time: a batch leaves at
    /// one time.
    last_path: Path,
    last_sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Echo {
    sent_ns: Instant,
    arrived_ns: Instant,
    sequence: u64,
    path: Path,
}

/// What an acknowledgement says besides what has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) penalty: u8,
    pub(crate) receive_limit: u64,
    pub(crate) credit_limit: u64,
}

impl Received {
    /// Goes on from `cumulative`, which is 0 for a new flow, with a remote that was heard up to its
    /// `newest_ns`.
    pub(crate) fn new(cumulative: u64, received_bytes: u64, newest_ns: Instant) -> Self {
        Self {
            cumulative,
            end: cumulative,
            bits: [0; BITMAP_WORDS],
            received_bytes,
            timer: AckTimer::new(),
            duplicate_count: 0,
            echo: Echo {
                sent_ns: Instant::START,
                arrived_ns: Instant::START,
                sequence: NO_SEQUENCE,
                path: Path::from_ports(0, 0),
            },
            probe: None,
            heard: 0,
            heard_before: 0,
            marks: MarksHeard::default(),
            newest: None,
            newest_step: (newest_ns.0 >> STEP_BITS) as u32,
            last_path: Path::from_ports(0, 0),
            last_sequence: u64::MAX,
        }
    }

    /// Every sequence below has arrived.
    pub(crate) fn cumulative(&self) -> u64 {
        self.cumulative
    }

    /// See [`Acknowledgement::received_bytes`].
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Whether nothing above a gap has arrived, and all is acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.end == self.cumulative && self.timer.due_ns() == Instant::NEVER
    }

    #[inline]
    pub(crate) fn standing(&self, sequence: u64) -> Standing {
        if sequence < self.cumulative {
            Standing::Duplicate
        } else if sequence - self.cumulative >= SEQUENCE_LIMIT {
            Standing::Beyond
        } else if sequence < self.end && self.has(sequence) {
            Standing::Duplicate
        } else {
            Standing::Fresh
        }
    }

    fn has(&self, sequence: u64) -> bool {
        let bit = sequence % SEQUENCE_LIMIT;
        self.bits[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// Of a long packet the first sequences in a row that are fresh, where that is some of them and
    /// not all (srd-protocol 19.2).
    pub(crate) fn wanted_of_long(&self, header: &Header) -> Option<Wanted> {
        if self.standing(header.sequence) == Standing::Beyond {
            return None;
        }
        let is_fresh =
            |index: &u8| self.standing(header.sequence + u64::from(*index)) == Standing::Fresh;
        let indices = 0..=header.further_count;
        let from = indices.clone().find(is_fresh)?;
        let count = indices.skip(from.into()).take_while(is_fresh).count() as u8;
        let is_part = u64::from(count) < header.sequence_count();
        is_part.then_some(Wanted { from, count })
    }

    /// Takes all sequences of a packet, which are fresh. Fast path.
    #[inline]
    pub(crate) fn insert_all(&mut self, header: &Header, packet_bytes: u64) {
        self.insert(header.sequence, packet_bytes);
        for index in 0..u64::from(header.further_count) {
            self.insert(header.sequence + 1 + index, 0);
        }
    }

    /// Takes a fresh sequence.
    pub(crate) fn insert(&mut self, sequence: u64, datagram_bytes: u64) {
        debug_assert_eq!(self.standing(sequence), Standing::Fresh);
        self.received_bytes += datagram_bytes;
        let bit = sequence % SEQUENCE_LIMIT;
        self.bits[(bit / 64) as usize] |= 1 << (bit % 64);
        self.end = self.end.max(sequence + 1);
        while self.cumulative < self.end && self.has(self.cumulative) {
            let bit = self.cumulative % SEQUENCE_LIMIT;
            self.bits[(bit / 64) as usize] &= !(1 << (bit % 64));
            self.cumulative += 1;
        }
    }

    /// Whether a packet comes for the first time, as far as its path tells, which keeps order: else
    /// the network has doubled it, or somebody plays it back (srd-protocol 14.7). Fast path.
    #[inline]
    pub(crate) fn is_first(&mut self, header: &Header, reliable: bool, is_news: bool) -> bool {
        let sequence = if reliable { header.sequence } else { u64::MAX };
        let time = (header.sent_ns.0 >> STEP_BITS) as u32;
        let step = self.newest_step;
        let all = self
            .newest
            .get_or_insert_with(|| Box::new([step; PATH_COUNT]));
        let newest = &mut all[usize::from(header.path.number())];
        let later = time.wrapping_sub(*newest) as i32;
        let follows = later == 0 && self.last_path == header.path && sequence > self.last_sequence;
        let is_first = is_news || later > 0 || follows;
        if is_first {
            *newest = time;
            self.last_path = header.path;
            self.last_sequence = sequence;
        }
        is_first
    }

    /// Gives memory back: nothing is newer than `newest_ns`.
    pub(crate) fn trim(&mut self, newest_ns: Instant) {
        self.newest = None;
        self.marks = MarksHeard::default();
        self.newest_step = (newest_ns.0 >> STEP_BITS) as u32;
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        let newest_bytes = self.newest.as_ref().map_or(0, |all| size_of_val(&**all));
        newest_bytes + self.marks.footprint_bytes()
    }

    /// Something arrived on a path; the answer's echo names the newest packet.
    pub(crate) fn on_heard(&mut self, header: &Header, reliable: bool, now_ns: Instant) {
        self.heard |= header.path.bit();
        self.echo = Echo {
            sent_ns: header.sent_ns,
            arrived_ns: now_ns,
            sequence: if reliable {
                header.sequence
            } else {
                NO_SEQUENCE
            },
            path: header.path,
        };
    }

    /// A probe arrived: the next answer is for it.
    pub(crate) fn on_probe(&mut self, header: &Header, now_ns: Instant) {
        self.heard |= header.path.bit();
        self.probe = Some(Box::new(Echo {
            sent_ns: header.sent_ns,
            arrived_ns: now_ns,
            sequence: NO_SEQUENCE,
            path: header.path,
        }));
        self.timer.want_now();
    }

    /// A packet that arrived before has come again: the sender should know at once.
    pub(crate) fn want_for_duplicate(&mut self, timing: &Timing, now_ns: Instant) {
        self.timer
            .on_asked_again(now_ns, timing.acknowledgement_delay_ns);
        self.duplicate_count = self.duplicate_count.saturating_add(1);
        self.timer.want(true, None, Instant::START, Nanos::ZERO);
    }

    /// The way back of what was heard last.
    pub(crate) fn answer_path(&self) -> Path {
        self.echo.path.reverse()
    }

    /// The path of a packet that only acknowledges (srd-protocol 7.4).
    pub(crate) fn ack_only_path(&self) -> Path {
        self.probe.as_deref().unwrap_or(&self.echo).path.reverse()
    }

    /// What the section would take, in bytes.
    pub(crate) fn section_bytes(&self) -> u64 {
        let above = self.end.saturating_sub(self.cumulative + 1);
        let marks_bytes = self.marks.section_bytes();
        ACKNOWLEDGEMENT_BYTES as u64 + 8 * above.div_ceil(64) + marks_bytes
    }

    /// The section, to be sent now.
    pub(crate) fn take(&mut self, now_ns: Instant, limits: &Limits) -> Acknowledgement {
        let probe = self.probe.take();
        let echo = probe.as_deref().copied().unwrap_or(self.echo);
        let section = Acknowledgement {
            cumulative: self.cumulative,
            received_bytes: self.received_bytes,
            echo_sent_ns: echo.sent_ns,
            echo_sequence: echo.sequence,
            hold_ns: now_ns
                .saturating_since(echo.arrived_ns)
                .0
                .min(u64::from(u32::MAX)) as u32,
            echo_path: echo.path,
            penalty: limits.penalty.min(127),
            duplicate_count: self.duplicate_count,
            paths_heard: self.heard | self.heard_before,
            receive_limit: limits.receive_limit,
            credit_limit: limits.credit_limit,
            bitmap: self.bitmap(),
            marks: self.marks.take(echo.path),
        };
        self.heard_before = self.heard;
        self.heard = 0;
        self.duplicate_count = 0;
        // What has arrived besides the probe is echoed on its own.
        self.timer.on_sent(probe.is_some());
        section
    }

    fn bitmap(&self) -> [u64; BITMAP_WORDS] {
        let mut bitmap = [0; BITMAP_WORDS];
        let above = self.end.saturating_sub(self.cumulative + 1);
        for (word, value) in bitmap
            .iter_mut()
            .enumerate()
            .take(above.div_ceil(64) as usize)
        {
            let from = (self.cumulative + 1 + 64 * word as u64) % SEQUENCE_LIMIT;
            let (index, shift) = ((from / 64) as usize, from % 64);
            *value = self.bits[index] >> shift;
            if shift > 0 {
                *value |= self.bits[(index + 1) % BITMAP_WORDS] << (64 - shift);
            }
        }
        bitmap
    }

    /// The words of `bits` that hold the window's last sequences wrap onto its first; they are
    /// clear by construction.
    #[cfg(test)]
    fn check(&self) {
        let set: u32 = self.bits.iter().map(|word| word.count_ones()).sum();
        let counted = (self.cumulative..self.end)
            .filter(|sequence| self.has(*sequence))
            .count();
        assert_eq!(set as usize, counted);
    }
}

/// A fresh packet, taken by now, wants to be acknowledged. Its sender must soon hear of a gap,
/// which may be a loss, and of a mark: then nothing waits for our own message (srd-protocol 7.3).
#[inline]
pub(crate) fn want_for(
    received: &mut Received,
    packet: &Packet<'_>,
    ecn: Ecn,
    timing: &Timing,
    now_ns: Instant,
) {
    let may_wait = received.end == received.cumulative && ecn != Ecn::Ce;
    received.timer.want_for(packet, may_wait, timing, now_ns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const LIMITS: Limits = Limits {
        penalty: 0,
        receive_limit: 0,
        credit_limit: 0,
    };

    #[test]
    fn what_arrived_in_any_order_is_acknowledged_and_nothing_else() {
        let mut random = Random::new(11);
        let mut received = Received::new(0, 0, Instant::START);
        let mut arrived = std::collections::BTreeSet::new();
        for _ in 0..20_000 {
            let sequence = received.cumulative() + random.below(1100).saturating_sub(40);
            let expected = if arrived.contains(&sequence) {
                Standing::Duplicate
            } else if sequence >= received.cumulative() + 1024 {
                Standing::Beyond
            } else {
                Standing::Fresh
            };
            assert_eq!(received.standing(sequence), expected, "seed 11");
            if expected == Standing::Fresh {
                received.insert(sequence, 1);
                arrived.insert(sequence);
                // Let the front move as it does in life.
                let front = received.cumulative();
                if random.below(2) == 0 {
                    received.insert(front, 1);
                    arrived.insert(front);
                }
            }
        }
        received.check();
        let section = received.take(Instant::START, &LIMITS);
        for sequence in 0..received.cumulative() + 1100 {
            assert_eq!(
                section.covers(sequence),
                arrived.contains(&sequence),
                "{sequence}, seed 11"
            );
        }
        assert_eq!(section.received_bytes, arrived.len() as u64);
    }

    #[test]
    fn of_a_long_packet_the_first_fresh_sequences_in_a_row_are_wanted() {
        let mut received = Received::new(0, 0, Instant::START);
        let header = |sequence, further_count| Header {
            sequence,
            further_count,
            ..Header::unreliable(Path::from_ports(0, 0), 1, 1, Instant::START)
        };
        let part = |from, count| Some(Wanted { from, count });
        assert_eq!(received.wanted_of_long(&header(0, 9)), None, "all of it");
        received.insert(0, 1);
        assert_eq!(received.wanted_of_long(&header(0, 9)), part(1, 9));
        received.insert(5, 1);
        assert_eq!(received.wanted_of_long(&header(0, 9)), part(1, 4));
        assert_eq!(received.wanted_of_long(&header(4, 1)), part(0, 1));
        for sequence in 1..5 {
            received.insert(sequence, 1);
        }
        assert_eq!(received.wanted_of_long(&header(0, 5)), None, "none of it");
        assert_eq!(received.wanted_of_long(&header(1020, 30)), part(0, 10));
        assert_eq!(received.wanted_of_long(&header(1030, 3)), None, "beyond");
    }

    #[test]
    fn a_section_takes_as_many_bytes_as_it_says() {
        let mut received = Received::new(0, 0, Instant::START);
        for sequence in [0, 1, 2, 64, 67, 68, 300] {
            received.insert(sequence, 1);
            let room = received.section_bytes();
            let section = received.take(Instant::START, &LIMITS);
            let bytes = ACKNOWLEDGEMENT_BYTES + 8 * section.word_count();
            assert_eq!(bytes as u64, room, "{sequence}");
        }
    }
}
