// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A lane of our region, which a remote sends through.

use weft_contract::{Owner, RemoteId};
use weft_memory::{BytesView, Mapping};
use weft_os::{clock, crash_point};
use weft_ring::{Consumer, Identity, Pool, Way};

use crate::protocol::cell::{self, Cell, Malformed, MatchHeader, needs_answer};
use crate::tuner::stores::{StoreTuner, TIMED_BYTES};

/// Ticks without a message after which a lane is no longer polled, if many are. Chosen.
const QUIET_TICKS: u32 = 8;

/// A lane we receive from.
#[derive(Debug)]
pub(crate) struct Inbound {
    consumer: Consumer,
    /// The chunks of this lane; ours are those that came with messages.
    pool: Pool,
    remote: RemoteId,
    /// Who claimed it.
    claimant: Identity,
    begun: Begun,
    /// Cells since the last tick.
    received: u32,
    /// Ticks without any.
    quiet_ticks: u32,
    /// What it has sent.
    counts: Received,
    /// What its sender was told of bidirectional traffic.
    advice: u64,
    /// How its sender should store long payload.
    stores: StoreTuner,
}

/// What was begun in a lane, and is to go on there.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Begun {
    /// The streamed message that is arriving, if one is.
    stream: Option<usize>,
    /// Messages whose rest is to come as DATA.
    expected: u32,
}

impl Begun {
    /// The rest of one more message was asked for.
    pub(crate) fn expect_data(&mut self) {
        self.expected += 1;
    }

    /// One of them is here.
    pub(crate) fn end_data(&mut self) {
        self.expected = self.expected.saturating_sub(1);
    }
}

/// What one remote has sent, counted without a cost to messages that fill one cell.
#[derive(Clone, Copy, Default, Debug)]
struct Received {
    /// Cells since the last tick that began no message.
    other_cells: u32,
    /// Messages up to the last tick.
    messages: u64,
    /// Bytes, and how many of them were published.
    bytes: u64,
    published_bytes: u64,
}

/// Payload that a cell names, and who sent it.
pub(crate) struct Piece<'a> {
    pub(crate) remote: RemoteId,
    /// None if the cell names what its sender may not write.
    pub(crate) payload: Option<BytesView<'a>>,
    /// The streamed message that is arriving in the same lane, if one is.
    pub(crate) stream: &'a mut Option<usize>,
}

/// What is wrong with a cell.
pub(crate) enum BadCell {
    /// Messages keep their order: none starts inside another.
    Order,
    Malformed(Malformed),
}

/// Messages and bytes of a lane: what came since the last tick, and all there is.
pub(crate) struct Inflow {
    pub(crate) new: [u64; 2],
    pub(crate) all: [u64; 2],
}

/// What becomes of a lane that is polled, at a tick.
pub(crate) enum Polling {
    /// It is polled.
    Polled,
    /// It is to be rung for from now on, and polled for one more tick.
    Marked,
    /// It is polled no longer.
    Over,
}

impl Inbound {
    /// The lane of a slot that somebody claimed.
    pub(crate) fn attach(
        own: &Mapping,
        slot: usize,
        remote: RemoteId,
        claimant: Identity,
    ) -> Option<Self> {
        Some(Self {
            consumer: Consumer::attach(own, slot)?,
            pool: Pool::attach(own, slot)?,
            remote,
            claimant,
            begun: Begun::default(),
            received: 0,
            counts: Received::default(),
            quiet_ticks: 0,
            advice: 0,
            stores: StoreTuner::default(),
        })
    }

    #[inline(always)]
    pub(crate) fn remote(&self) -> RemoteId {
        self.remote
    }

    pub(crate) fn claimant(&self) -> &Identity {
        &self.claimant
    }

    /// The chunks of this lane.
    #[inline(always)]
    pub(super) fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// Whether a cell lies at its front.
    #[inline(always)]
    pub(crate) fn has_message(&self) -> bool {
        self.consumer.has_message()
    }

    /// Counts the cell that lies at its front; false if there is none.
    #[inline(always)]
    pub(crate) fn see(&mut self) -> bool {
        let is_there = self.consumer.has_message();
        if is_there {
            self.received += 1;
            step_seen();
        }
        is_there
    }

    /// Takes inline messages, until `events` has come to `budget` or something else lies at the
    /// front; true if its turn is over. Fast path, in a loop that is kept small.
    #[inline(always)]
    pub(crate) fn take_inline<O: Owner>(
        &mut self,
        events: &mut usize,
        budget: usize,
        owner: &mut O,
    ) -> bool {
        loop {
            let Some(arrival) = self.consumer.peek() else {
                return true;
            };
            let payload = match arrival.inline_payload() {
                Some(payload) if cell::is_inline(arrival.head) => payload,
                _ => return false,
            };
            *events += 1;
            self.received += 1;
            step_seen();
            let length_bytes = arrival.head.length_bytes;
            self.counts.bytes += u64::from(length_bytes);
            let header = MatchHeader::of_inline(&arrival);
            let envelope = header.envelope(self.remote, u64::from(length_bytes));
            owner.on_message(&envelope, payload, None);
            step_handed_over();
            self.consumer.advance_inline(length_bytes);
            if *events >= budget {
                return true;
            }
        }
    }

    /// Takes the cell at its front, which is no inline message: parses it, finds the payload that
    /// it names, times its copy, keeps the chunk that it came in. `take` answers how much payload
    /// it took; `opposite` are the chunks of our lane to its sender.
    #[inline(always)]
    pub(crate) fn take<T>(
        &mut self,
        opposite: Option<&mut Pool>,
        take: impl FnOnce(Cell, &mut Piece<'_>) -> (u32, T),
    ) -> Result<T, BadCell> {
        let taken = self.take_front(opposite, take);
        step_handed_over();
        let data_bytes = taken.as_ref().map_or(0, |taken| taken.0);
        self.consumer.advance(data_bytes);
        taken.map(|(_, taken)| taken)
    }

    /// The same, but for letting it go; answers how much of the data area it took, too.
    #[inline(always)]
    fn take_front<T>(
        &mut self,
        opposite: Option<&mut Pool>,
        take: impl FnOnce(Cell, &mut Piece<'_>) -> (u32, T),
    ) -> Result<(u32, T), BadCell> {
        let Some(arrival) = self.consumer.peek() else {
            return Err(BadCell::Order);
        };
        let cell = Cell::of(&arrival).map_err(BadCell::Malformed)?;
        let begins = cell.begins_message();
        if begins && self.begun.stream.is_some() {
            // An endpoint may close inside a message of its own.
            return Err(BadCell::Order);
        }
        self.counts.other_cells += u32::from(!begins);
        let mut piece = Piece {
            remote: self.remote,
            payload: None,
            stream: &mut self.begun.stream,
        };
        if matches!(cell, Cell::Control(_)) {
            let (_, taken) = take(cell, &mut piece);
            return Ok((0, taken));
        }
        let chunk = arrival.chunk();
        let pool = match chunk.map(|stretch| stretch.way) {
            Some(Way::Opposite) => opposite,
            _ => Some(&mut self.pool),
        };
        piece.payload = match (chunk, &pool) {
            (Some(stretch), Some(pool)) => pool.arrived(stretch),
            (Some(_), None) => None,
            (None, _) => arrival.data_payload(),
        };
        let is_long = arrival.head.length_bytes >= TIMED_BYTES;
        let start = (chunk.is_none() && is_long).then(clock::ticks);
        let (bytes, taken) = take(cell, &mut piece);
        self.counts.bytes += u64::from(bytes);
        if let Some(start) = start.filter(|_| bytes >= TIMED_BYTES) {
            let choice = self.stores.learn(bytes, clock::ticks().wrapping_sub(start));
            if let Some(non_temporal) = choice {
                self.consumer.set_non_temporal(non_temporal);
            }
        }
        Ok(match (chunk, pool) {
            (Some(stretch), Some(pool)) if bytes > 0 => {
                pool.keep(stretch.chunk);
                (0, taken)
            }
            _ => (bytes, taken),
        })
    }

    /// Tells its sender how much room there is; its turn is over.
    #[inline(always)]
    pub(crate) fn settle(&mut self) {
        self.consumer.settle();
    }

    /// Gives it up to whoever claims its slot next.
    pub(super) fn reset(&mut self) {
        self.consumer.reset();
    }

    /// Tells its sender which copy method was chosen for bidirectional traffic.
    pub(crate) fn advise(&mut self, advice: u64) {
        if self.advice != advice {
            self.advice = advice;
            self.consumer.set_advice(advice);
        }
    }

    /// What was begun in it.
    pub(crate) fn begun(&mut self) -> &mut Begun {
        &mut self.begun
    }

    /// So many bytes came from its sender without it.
    pub(crate) fn note_fetched(&mut self, bytes: u64) {
        self.counts.bytes += bytes;
    }

    /// Whether the cell at its front can only be taken by somebody who can answer.
    pub(crate) fn needs_answer(&self) -> bool {
        let front = self.consumer.peek().map(|arrival| arrival.head);
        self.begun.stream.is_none() && front.is_some_and(needs_answer)
    }

    /// Payload that came from its sender so far.
    pub(crate) fn heard_bytes(&self) -> u64 {
        self.counts.bytes
    }

    /// Where something that was begun in it is to go on, looks so many times for the next piece,
    /// which is being copied now.
    #[inline]
    pub(crate) fn await_rest(&self, looks: u32) {
        if self.begun.stream.is_none() && self.begun.expected == 0 {
            return;
        }
        for _ in 0..looks {
            if self.consumer.has_message() {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Has it polled, or rung for.
    pub(crate) fn set_polled(&mut self, is_polled: bool) {
        self.consumer.set_polled(is_polled);
    }

    /// It is polled from now on, having been silent for no time.
    pub(crate) fn start_polling(&mut self) {
        self.quiet_ticks = 0;
        self.set_polled(true);
    }

    /// A tick has passed, `many` lanes being polled: what came since the last one, if anything, and
    /// whether to go on polling it. A lane is first marked, then polled for one tick more, since
    /// its sender may have looked at the mark just before; a tick is far longer than a store needs
    /// to be seen.
    pub(crate) fn tick(&mut self, many: bool) -> (Option<Inflow>, Polling) {
        self.quiet_ticks = if self.received > 0 {
            0
        } else {
            self.quiet_ticks.saturating_add(1)
        };
        let inflow = self.counts.fold(&mut self.received);
        match self.quiet_ticks {
            0 => self.set_polled(true),
            QUIET_TICKS if many => {
                self.set_polled(false);
                return (inflow, Polling::Marked);
            }
            ticks if ticks > QUIET_TICKS && many => {
                self.set_polled(false);
                if ticks > QUIET_TICKS + 1 && !self.consumer.has_message() {
                    return (inflow, Polling::Over);
                }
            }
            _ => {}
        }
        (inflow, Polling::Polled)
    }
}

impl Received {
    /// Folds in the cells that came since the last tick; `None` if nothing did.
    fn fold(&mut self, cells: &mut u32) -> Option<Inflow> {
        if *cells == 0 && self.bytes == self.published_bytes {
            return None;
        }
        let messages = u64::from(cells.saturating_sub(self.other_cells));
        let bytes = self.bytes - self.published_bytes;
        (*cells, self.other_cells) = (0, 0);
        self.published_bytes = self.bytes;
        self.messages += messages;
        Some(Inflow {
            new: [messages, bytes],
            all: [self.messages, self.bytes],
        })
    }
}

#[inline(always)]
fn step_seen() {
    crash_point!(22, "take: a cell is seen, not taken");
}

#[inline(always)]
fn step_handed_over() {
    crash_point!(23, "take: a message is handed over, its cell not let go");
}

#[cfg(test)]
impl Inbound {
    /// What its sender was told of bidirectional traffic.
    pub(crate) fn advice(&self) -> u64 {
        self.advice
    }

    /// As if that were something else, unknown to us.
    pub(crate) fn forge_advice(&mut self, advice: u64) {
        self.consumer.set_advice(advice);
    }

    /// Cells since the last tick.
    pub(crate) fn received(&self) -> u32 {
        self.received
    }
}
