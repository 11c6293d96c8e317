// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sender's side of sequences: what every unacknowledged packet was, so that it can be sent
//! again (srd-protocol 7.1).
//!
//! Called by loss (acknowledged, lost) and transmit (sent).

use std::collections::VecDeque;
use weft_wire::time::Instant;

use weft_wire::refusal::Reason;
use weft_wire::{Acknowledgement, Path};

use crate::awaited::Awaited;
use crate::config::SEQUENCE_LIMIT;
use crate::recent_losses::RecentLosses;

/// What a sequence carries; enough to write the packet once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    Eager { slot: u8 },
    Segment { slot: u8, length: u16, offset: u64 },
    Offer { slot: u8 },
    Data { slot: u8, length: u16, offset: u64 },
    Accept { message_id: u64, landing: u32 },
    Receipt { message_id: u64 },
    Refusal { message_id: u64, reason: Reason },
}

impl Piece {
    /// The message it is of, and how many of its bytes.
    pub(crate) fn message_slot(&self) -> Option<u8> {
        match *self {
            Self::Eager { slot }
            | Self::Segment { slot, .. }
            | Self::Offer { slot }
            | Self::Data { slot, .. } => Some(slot),
            Self::Accept { .. } | Self::Receipt { .. } | Self::Refusal { .. } => None,
        }
    }

    /// Of a stretch of a message, its bytes.
    pub(crate) fn length(&self) -> u16 {
        match *self {
            Self::Segment { length, .. } | Self::Data { length, .. } => length,
            _ => 0,
        }
    }

    /// Whether a message in segments begins with it.
    pub(crate) fn is_beginning(&self) -> bool {
        matches!(self, Self::Segment { offset: 0, .. })
    }

    /// So many bytes of a stretch of a message, from this one on. Other pieces have no parts.
    pub(crate) fn part(&self, from: u16, bytes: u16) -> Self {
        let mut part = *self;
        if let Self::Segment { length, offset, .. } | Self::Data { length, offset, .. } = &mut part
        {
            *length = bytes;
            *offset += u64::from(from);
        }
        part
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    InFlight,
    Lost,
    Acknowledged,
}

/// Why a packet left when it did so last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    First,
    /// It counted as lost.
    AfterLoss,
    /// It did not: a tail probe or a time-out (srd-protocol 8.3, 8.4).
    Repeat,
}

/// One sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) piece: Piece,
    /// Of the last transmission.
    pub(crate) sent_ns: Instant,
    /// Of the datagram.
    pub(crate) bytes: u16,
    pub(crate) path: Path,
    /// Of the transmission before the last one.
    pub(crate) prior_path: Path,
    pub(crate) fate: Fate,
    pub(crate) attempt: Attempt,
    /// It left with the one before it, in one packet (srd-protocol 19.1).
    pub(crate) follows: bool,
    /// It asked for an answer at once while others wait longer for theirs (srd-protocol 9.4).
    pub(crate) hurried: bool,
}

impl Sent {
    /// Whether it left more than once.
    #[inline]
    pub(crate) fn is_again(&self) -> bool {
        self.attempt != Attempt::First
    }

    /// Whether a section answers this transmission.
    pub(crate) fn is_echoed(&self, section: &Acknowledgement) -> bool {
        section.echo_sent_ns == self.sent_ns && section.echo_path == self.path
    }

    /// Leaves now, for the first time.
    pub(crate) fn fresh(piece: Piece, bytes: u16, path: Path, now_ns: Instant) -> Self {
        Self {
            piece,
            sent_ns: now_ns,
            bytes,
            path,
            prior_path: path,
            fate: Fate::InFlight,
            attempt: Attempt::First,
            follows: false,
            hurried: false,
        }
    }
}

// 1024 of them are half of what an active remote may take.
const _: () = assert!(size_of::<Sent>() <= 32, "a sequence takes at most 32 bytes");

/// Sequences from the first unacknowledged one to the newest.
#[derive(Debug)]
pub(crate) struct SentRing {
    first: u64,
    entries: VecDeque<Sent>,
    lost_count: u16,
    acknowledged_count: u16,
    pub(crate) recent_losses: RecentLosses,
    /// No lost sequence lies below.
    lost_hint: u64,
    /// Long packets that have left.
    pub(crate) awaited: Awaited,
}

impl SentRing {
    /// Goes on from `next`, which is 0 for a new flow.
    pub(crate) fn new(next: u64) -> Self {
        Self {
            first: next,
            entries: VecDeque::new(),
            lost_count: 0,
            acknowledged_count: 0,
            recent_losses: RecentLosses::default(),
            lost_hint: next,
            awaited: Awaited::default(),
        }
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The sequence that the next new packet gets.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.room_count() > 0
    }

    /// So many more may be unacknowledged.
    pub(crate) fn room_count(&self) -> u64 {
        SEQUENCE_LIMIT.saturating_sub(self.entries.len() as u64)
    }

    pub(crate) fn push(&mut self, sent: Sent) -> u64 {
        debug_assert!(self.has_room());
        let sequence = self.next();
        self.recent_losses.on_sent();
        self.entries.push_back(sent);
        sequence
    }

    pub(crate) fn get(&self, sequence: u64) -> Option<&Sent> {
        self.entries.get(sequence.checked_sub(self.first)? as usize)
    }

    pub(crate) fn get_mut(&mut self, sequence: u64) -> Option<&mut Sent> {
        self.entries
            .get_mut(sequence.checked_sub(self.first)? as usize)
    }

    /// Sets a packet's fate and answers the one before.
    pub(crate) fn decide(&mut self, sequence: u64, fate: Fate) -> Fate {
        let Some(sent) = self.get_mut(sequence) else {
            return Fate::Acknowledged;
        };
        let before = std::mem::replace(&mut sent.fate, fate);
        self.lost_count += u16::from(fate == Fate::Lost);
        self.lost_count -= u16::from(before == Fate::Lost);
        self.acknowledged_count += u16::from(fate == Fate::Acknowledged);
        self.acknowledged_count -= u16::from(before == Fate::Acknowledged);
        if fate == Fate::Lost {
            self.lost_hint = self.lost_hint.min(sequence);
        }
        before
    }

    /// Whether a packet that left behind this one, in its batch, has arrived: one path carried
    /// both, and at one time, so that their sequences tell their order. Fast path where there are
    /// no gaps.
    #[inline]
    pub(crate) fn is_overtaken_in_batch(&self, sequence: u64) -> bool {
        if self.acknowledged_count == 0 {
            return false;
        }
        let mut from = self.entries.iter().skip((sequence - self.first) as usize);
        let Some(sent) = from.next().filter(|sent| !sent.is_again()) else {
            return false;
        };
        from.take_while(|other| other.sent_ns == sent.sent_ns && other.path == sent.path)
            .any(|other| other.fate == Fate::Acknowledged)
    }

    /// When the newest packet left, or the oldest one, if it asked for an answer at once and has
    /// none. Fast path.
    #[inline]
    pub(crate) fn asked_ns(&self) -> Option<Instant> {
        let asks = |sent: &&Sent| sent.fate == Fate::InFlight && (sent.hurried || sent.is_again());
        let ends = [self.entries.back(), self.entries.front()];
        ends.into_iter()
            .flatten()
            .find(asks)
            .map(|sent| sent.sent_ns)
    }

    /// Forgets acknowledged packets at the front.
    pub(crate) fn advance(&mut self) {
        while self
            .entries
            .front()
            .is_some_and(|sent| sent.fate == Fate::Acknowledged)
        {
            self.entries.pop_front();
            self.acknowledged_count -= 1;
            self.first += 1;
        }
    }

    /// The first sequence that is lost.
    pub(crate) fn first_lost(&mut self) -> Option<u64> {
        if self.lost_count == 0 {
            self.lost_hint = self.next();
            return None;
        }
        let mut sequence = self.lost_hint.max(self.first);
        while self
            .get(sequence)
            .is_some_and(|sent| sent.fate != Fate::Lost)
        {
            sequence += 1;
        }
        self.lost_hint = sequence;
        Some(sequence)
    }

    pub(crate) fn has_lost(&self) -> bool {
        self.lost_count > 0
    }

    /// The oldest and the newest packet in flight.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let at = self
            .entries
            .iter()
            .position(|sent| sent.fate == Fate::InFlight)?;
        Some(self.first + at as u64)
    }

    /// See [`SentRing::oldest`].
    pub(crate) fn newest(&self) -> Option<u64> {
        let at = self
            .entries
            .iter()
            .rposition(|sent| sent.fate == Fate::InFlight)?;
        Some(self.first + at as u64)
    }

    /// Sum over the packets in flight; what the sender's counter must equal.
    pub(crate) fn in_flight_bytes(&self) -> u64 {
        let flying = self
            .entries
            .iter()
            .filter(|sent| sent.fate == Fate::InFlight);
        flying.map(|sent| u64::from(sent.bytes)).sum()
    }

    /// Gives memory back when there is nothing to remember.
    pub(crate) fn trim(&mut self) {
        if self.entries.is_empty() {
            self.awaited = Awaited::default();
            self.entries = VecDeque::new();
        }
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Sent>() + self.awaited.footprint_bytes()
    }
}
