// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Brings arriving messages into their sender's order (FI_ORDER_SAS; srd-protocol 12.2). Called by
//! receive.

use std::collections::VecDeque;

use weft_wire::Message;

use crate::config::MESSAGE_LIMIT;
use crate::reassembly::{Assembly, Misfit};

/// A message that cannot be handed out yet.
#[derive(Debug, Default)]
enum Waiting {
    #[default]
    Missing,
    Partial(Box<Assembly>),
    Whole(Message, Vec<u8>),
    Offer(Message),
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
            Some(Waiting::Partial(assembly)) => assembly.check(message, offset, length),
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

    /// Puts a checked segment to its message.
    pub(crate) fn keep_segment(&mut self, message: Message, offset: u64, piece: &[u8]) {
        let place = self.place(message.id);
        if matches!(place, Waiting::Missing) {
            *place = Waiting::Partial(Box::new(Assembly::new(message)));
        }
        let Waiting::Partial(assembly) = place else {
            return;
        };
        if assembly.insert(offset, piece) {
            if let Waiting::Partial(assembly) = std::mem::take(place) {
                *place = Waiting::Whole(*assembly.message(), assembly.into_payload());
            }
        }
    }

    /// The next message, if its turn has come.
    pub(crate) fn pop(&mut self) -> Option<Ready> {
        let ready = match self.waiting.front_mut()? {
            Waiting::Missing | Waiting::Partial(_) => return None,
            Waiting::Whole(message, payload) => Ready::Whole(*message, std::mem::take(payload)),
            Waiting::Offer(message) => Ready::Offer(*message),
        };
        self.pass();
        Some(ready)
    }

    /// Payload bytes kept, complete or not.
    pub(crate) fn held_bytes(&self) -> u64 {
        let length = |waiting: &Waiting| match waiting {
            Waiting::Missing | Waiting::Offer(_) => 0,
            Waiting::Partial(assembly) => assembly.message().length_bytes,
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
                Waiting::Partial(assembly) => assembly.footprint_bytes() + size_of::<Assembly>(),
                _ => 0,
            })
            .sum();
        self.waiting.capacity() * size_of::<Waiting>() + ranges
    }
}
