// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A window of messages in flight, then an answer: the exchange that bandwidth and message rate
//! repeat. For both directions at once there is a window without the answer.
//!
//! Called by timing; calls a scope of isend and irecv.

use super::partner::{ANSWER_BYTES, ANSWER_TAG, DATA_TAG, Partner};
use crate::description::Directions;
use crate::options::{Buffers, Settings};
use crate::pattern::{self, Message};
use crate::timing::{Exercise, Resize};
use std::ops::Range;
use weft_mpi::{Buffer, Communicator, Datatype, Requests, Result, Scope};

/// The memory and the shape of one rank's windows.
pub(super) struct Window<'a> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    partner: Partner,
    directions: Directions,
    outgoing: Buffer,
    incoming: Buffer,
    answer: Buffer,
    requests: Requests,
    size_bytes: usize,
}

impl<'a> Window<'a> {
    pub(super) fn new(
        world: &'a Communicator<'a>,
        settings: &'a Settings,
        partner: Partner,
        directions: Directions,
    ) -> Self {
        let length = |used: bool| match used {
            true => slots_of(settings) * settings.max_bytes,
            false => 0,
        };
        let sends = directions == Directions::Both || partner.leads;
        let receives = directions == Directions::Both || !partner.leads;
        Self {
            world,
            settings,
            partner,
            directions,
            outgoing: Buffer::new(length(sends)),
            incoming: Buffer::new(length(receives)),
            answer: Buffer::new(ANSWER_BYTES),
            requests: Requests::new(settings.window * directions.count()),
            size_bytes: 0,
        }
    }

    fn message(&self, iteration: usize, sender: usize, slot: usize) -> Message {
        Message {
            size_bytes: self.size_bytes,
            iteration,
            sender,
            receiver: slot,
        }
    }

    /// Where each message of this window lies.
    #[inline]
    fn layout(&self) -> Layout {
        Layout {
            messages: self.settings.window,
            size_bytes: self.size_bytes,
            kind: self.settings.kind,
            apart: self.settings.buffers == Buffers::Multiple,
        }
    }

    #[inline]
    fn one_way(&mut self) -> Result<()> {
        let other = self.partner.other_as_target();
        let layout = self.layout();
        if self.partner.leads {
            self.requests.scope(self.world, |scope| {
                layout.send_all(scope, &self.outgoing, other)
            })?;
            self.world
                .recv(self.answer.bytes(), Datatype::Char, other, ANSWER_TAG)
        } else {
            self.requests.scope(self.world, |scope| {
                layout.receive_all(scope, &self.incoming, other)
            })?;
            self.world
                .send(self.answer.bytes(), Datatype::Char, other, ANSWER_TAG)
        }
    }

    #[inline]
    fn bidirectional(&mut self) -> Result<()> {
        let other = self.partner.other_as_target();
        let layout = self.layout();
        self.requests.scope(self.world, |scope| {
            layout.receive_all(scope, &self.incoming, other)?;
            layout.send_all(scope, &self.outgoing, other)
        })
    }
}

/// Messages of a window that have bytes of their own.
fn slots_of(settings: &Settings) -> usize {
    match settings.buffers {
        Buffers::Multiple => settings.window,
        Buffers::Single => 1,
    }
}

/// The messages of a window, and where in a buffer each lies.
#[derive(Clone, Copy)]
struct Layout {
    messages: usize,
    size_bytes: usize,
    kind: Datatype,
    /// Each has bytes of its own.
    apart: bool,
}

impl Layout {
    #[inline]
    fn place(self, slot: usize) -> Range<usize> {
        let start = if self.apart {
            slot * self.size_bytes
        } else {
            0
        };
        start..start + self.size_bytes
    }

    #[inline]
    fn send_all<'env>(
        self,
        scope: &mut Scope<'_, 'env>,
        buffer: &'env Buffer,
        to: i32,
    ) -> Result<()> {
        (0..self.messages)
            .try_for_each(|slot| scope.isend(buffer, self.place(slot), self.kind, to, DATA_TAG))
    }

    #[inline]
    fn receive_all<'env>(
        self,
        scope: &mut Scope<'_, 'env>,
        buffer: &'env Buffer,
        from: i32,
    ) -> Result<()> {
        (0..self.messages)
            .try_for_each(|slot| scope.irecv(buffer, self.place(slot), self.kind, from, DATA_TAG))
    }
}

impl Resize for Window<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.size_bytes = size_bytes;
        let used = slots_of(self.settings) * size_bytes;
        for (buffer, letter) in [(&mut self.outgoing, b'a'), (&mut self.incoming, b'b')] {
            let used = used.min(buffer.len());
            buffer.bytes()[..used].fill(letter);
        }
        Ok(())
    }
}

impl Exercise for Window<'_> {
    fn prepare(&mut self, iteration: usize) {
        let Partner { rank, other, .. } = self.partner;
        for slot in 0..slots_of(self.settings) {
            let place = slot * self.size_bytes..(slot + 1) * self.size_bytes;
            let (given, expected) = (
                self.message(iteration, rank, slot),
                self.message(iteration, other, slot),
            );
            if let Some(bytes) = self.outgoing.bytes().get_mut(place.clone()) {
                pattern::fill(bytes, given);
            }
            if let Some(bytes) = self.incoming.bytes().get_mut(place) {
                pattern::spoil(bytes, expected);
            }
        }
    }

    fn settle(&mut self) -> Result<()> {
        let other = self.partner.other_as_target();
        let (nothing, kind) = (&mut self.answer.bytes()[..0], Datatype::Char);
        if self.partner.leads {
            self.world.send(nothing, kind, other, ANSWER_TAG)?;
            self.world.recv(nothing, kind, other, ANSWER_TAG)
        } else {
            self.world.recv(nothing, kind, other, ANSWER_TAG)?;
            self.world.send(nothing, kind, other, ANSWER_TAG)
        }
    }

    #[inline]
    fn exchange(&mut self, _iteration: usize) -> Result<()> {
        match self.directions {
            Directions::One => self.one_way(),
            Directions::Both => self.bidirectional(),
        }
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        if self.incoming.is_empty() {
            return 0;
        }
        let mut wrong = 0;
        for slot in 0..slots_of(self.settings) {
            let expected = self.message(iteration, self.partner.other, slot);
            let place = slot * self.size_bytes..(slot + 1) * self.size_bytes;
            wrong += pattern::mismatches(&self.incoming.bytes()[place], expected);
        }
        wrong
    }
}
