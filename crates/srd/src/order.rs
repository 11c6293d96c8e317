// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Brings arriving messages into their sender's order (FI_ORDER_SAS; srd-protocol 12.2). Called by
//! receive.

use std::collections::VecDeque;

use weft_wire::{Message, Segment};

use crate::config::MESSAGE_LIMIT;
use crate::reassembly::{Assembly, Coverage, Misfit, Spares};

/// A message that cannot be handed out yet.
#[derive(Debug, Default)]
enum Waiting {
    #[default]
    Missing,
    Partial(Box<Assembly>),
    Whole(Message, Vec<u8>),
    Offer(Message),
    Landing(Box<Landing>),
}

/// A message whose pieces go where they belong as they come.
#[derive(Debug)]
struct Landing {
    token: u64,
    coverage: Coverage,
}

/// What became of a piece.
#[derive(Debug)]
pub(crate) enum Kept {
    Here,
    /// It goes to this landing, and whether it was the last one.
    Lands(u64, bool),
}

/// A message whose turn has come.
#[derive(Debug)]
pub(crate) enum Ready {
    Whole(Message, Vec<u8>),
    Offer(Message),
}

/// Messages that wait for their turn, from the next one in order upwards.
#[derive(Debug)]
pub(crate) struct Order {
    expected: u64,
    waiting: VecDeque<Waiting>,
}

impl Order {
    /// Goes on from `expected`, which is 0 for a new flow.
    pub(crate) fn new(expected: u64) -> Self {
        Self {
            expected,
            waiting: VecDeque::new(),
        }
    }

    /// The id whose turn it is.
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn index(&self, id: u64) -> Option<usize> {
        let ahead = id.checked_sub(self.expected)?;
        (ahead < MESSAGE_LIMIT as u64).then_some(ahead as usize)
    }

    /// Whether nothing of this message has come.
    pub(crate) fn is_new(&self, id: u64) -> bool {
        match self.index(id) {
            Some(index) => matches!(self.waiting.get(index), None | Some(Waiting::Missing)),
            None => false,
        }
    }

    /// Whether a packet that brings a message whole, or offers it, can be taken.
    pub(crate) fn check_whole(&self, message: &Message) -> Result<(), Misfit> {
        if self.is_new(message.id) {
            Ok(())
        } else {
            Err(Misfit::Overlap)
        }
    }

    /// Whether a segment can be taken.
    pub(crate) fn check_segment(
        &self,
        message: &Message,
        offset: u64,
        length: u64,
    ) -> Result<(), Misfit> {
        let index = self.index(message.id).ok_or(Misfit::Overlap)?;
        match self.waiting.get(index) {
            None | Some(Waiting::Missing) => Ok(()),
            Some(Waiting::Partial(assembly)) => assembly.coverage.check(message, offset, length),
            Some(Waiting::Landing(landing)) => landing.coverage.check(message, offset, length),
            Some(Waiting::Whole(..) | Waiting::Offer(_)) => Err(Misfit::Overlap),
        }
    }

    /// The message in order was handed out straight from its packet.
    pub(crate) fn pass(&mut self) {
        self.waiting.pop_front();
        self.expected += 1;
    }

    fn place(&mut self, id: u64) -> &mut Waiting {
        let index = self.index(id).expect("the id was checked");
        if self.waiting.len() <= index {
            self.waiting.resize_with(index + 1, Waiting::default);
        }
        &mut self.waiting[index]
    }

    /// Keeps a checked message for its turn.
    pub(crate) fn keep_whole(&mut self, message: Message, payload: &[u8]) {
        *self.place(message.id) = Waiting::Whole(message, payload.to_vec());
    }

    /// Keeps a checked offer for its turn.
    pub(crate) fn keep_offer(&mut self, message: Message) {
        *self.place(message.id) = Waiting::Offer(message);
    }

    /// The message in order begins: its pieces go to this landing.
    pub(crate) fn land(&mut self, message: Message, token: u64) {
        *self.place(message.id) = Waiting::Landing(Box::new(Landing {
            token,
            coverage: Coverage::new(message),
        }));
    }

    /// The landing of the message in order, if it has one and is not whole. No other has one.
    pub(crate) fn landing(&self) -> Option<u64> {
        match self.waiting.front()? {
            Waiting::Landing(landing) => Some(landing.token),
            _ => None,
        }
    }

    /// Puts a checked segment to its message.
    pub(crate) fn keep_segment(
        &mut self,
        segment: &Segment,
        piece: &[u8],
        spares: &mut Spares,
    ) -> Kept {
        let place = self.place(segment.message.id);
        if let Waiting::Landing(landing) = place {
            let (token, length) = (landing.token, piece.len() as u64);
            let is_whole = landing.coverage.insert(segment.offset_bytes, length);
            if is_whole {
                self.pass();
            }
            return Kept::Lands(token, is_whole);
        }
        if matches!(place, Waiting::Missing) {
            *place = Waiting::Partial(Box::new(Assembly::new(segment.message, spares)));
        }
        let Waiting::Partial(assembly) = place else {
            return Kept::Here;
        };
        if assembly.insert(segment.offset_bytes, piece)
            && let Waiting::Partial(assembly) = std::mem::take(place)
        {
            *place = Waiting::Whole(*assembly.coverage.message(), assembly.into_payload());
        }
        Kept::Here
    }

    /// The next message, if its turn has come.
    pub(crate) fn pop(&mut self) -> Option<Ready> {
        let ready = match self.waiting.front_mut()? {
            Waiting::Missing | Waiting::Partial(_) | Waiting::Landing(_) => return None,
            Waiting::Whole(message, payload) => Ready::Whole(*message, std::mem::take(payload)),
            Waiting::Offer(message) => Ready::Offer(*message),
        };
        self.pass();
        Some(ready)
    }

    /// Payload bytes kept, complete or not.
    pub(crate) fn held_bytes(&self) -> u64 {
        let length = |waiting: &Waiting| match waiting {
            Waiting::Missing | Waiting::Offer(_) | Waiting::Landing(_) => 0,
            Waiting::Partial(assembly) => assembly.coverage.message().length_bytes,
            Waiting::Whole(message, _) => message.length_bytes,
        };
        self.waiting.iter().map(length).sum()
    }

    /// Gives memory back when there is nothing to remember.
    pub(crate) fn trim(&mut self) {
        if self.waiting.is_empty() {
            self.waiting = VecDeque::new();
        }
    }

    /// Memory behind it, without payloads.
    pub(crate) fn footprint_bytes(&self) -> usize {
        let ranges: usize = self
            .waiting
            .iter()
            .map(|waiting| match waiting {
                Waiting::Partial(assembly) => {
                    assembly.coverage.footprint_bytes() + size_of::<Assembly>()
                }
                Waiting::Landing(landing) => {
                    landing.coverage.footprint_bytes() + size_of::<Landing>()
                }
                _ => 0,
            })
            .sum();
        self.waiting.capacity() * size_of::<Waiting>() + ranges
    }
}
