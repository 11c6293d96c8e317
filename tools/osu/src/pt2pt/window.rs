// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A window of messages in flight and an answer: what bandwidth and message rate repeat, and, without the answer, both
//! directions at once.
//!
//! Called by timing; calls a scope of isend and irecv.

use super::{ANSWER_TAG, DATA_TAG, Partner};
use crate::options::{Buffers, Settings};
use crate::pattern::{self, Message};
use crate::timing::{Exercise, Resize};
use std::ops::Range;
use weft_mpi::{Buffer, Communicator, Datatype, Requests, Result, Scope};

/// Length of the answer in bytes (specified by OSU).
const ANSWER_BYTES: usize = 4;

/// Which ways the messages of a window go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// From the leading rank, which then waits for an answer.
    One,
    /// Both ways at once, without an answer.
    Both,
}

impl Ways {
    /// In how many directions messages go at once.
    pub(super) fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Both => 2,
        }
    }
}

/// The memory and the shape of one rank's windows.
pub struct Window<'a> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    partner: Partner,
    ways: Ways,
    outgoing: Buffer,
    incoming: Buffer,
    answer: Buffer,
    requests: Requests,
    size_bytes: usize,
}

impl<'a> Window<'a> {
    pub fn new(
        world: &'a Communicator<'a>,
        settings: &'a Settings,
        partner: Partner,
        ways: Ways,
    ) -> Self {
        let slots = if settings.buffers == Buffers::Multiple {
            settings.window
        } else {
            1
        };
        let length = |used: bool| if used { slots * settings.max_bytes } else { 0 };
        let sends = ways == Ways::Both || partner.leads;
        let receives = ways == Ways::Both || !partner.leads;
        Self {
            world,
            settings,
            partner,
            ways,
            outgoing: Buffer::new(length(sends)),
            incoming: Buffer::new(length(receives)),
            answer: Buffer::new(ANSWER_BYTES),
            requests: Requests::new(settings.window * ways.count()),
            size_bytes: 0,
        }
    }

    fn slots(&self) -> usize {
        if self.settings.buffers == Buffers::Multiple {
            self.settings.window
        } else {
            1
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

    #[inline]
    fn one_way(&mut self) -> Result<()> {
        let other = self.partner.other_as_target();
        let part = Part {
            size_bytes: self.size_bytes,
            apart: self.settings.buffers == Buffers::Multiple,
        };
        let (window, kind) = (self.settings.window, self.settings.kind);
        if self.partner.leads {
            self.world.scope(&mut self.requests, |scope| {
                start(scope, window, Send(&self.outgoing, other), (part, kind))
            })?;
            self.world
                .recv(self.answer.bytes(), Datatype::Char, other, ANSWER_TAG)
        } else {
            self.world.scope(&mut self.requests, |scope| {
                start(scope, window, Receive(&self.incoming, other), (part, kind))
            })?;
            self.world
                .send(self.answer.bytes(), Datatype::Char, other, ANSWER_TAG)
        }
    }

    #[inline]
    fn both_ways(&mut self) -> Result<()> {
        let other = self.partner.other_as_target();
        let part = Part {
            size_bytes: self.size_bytes,
            apart: self.settings.buffers == Buffers::Multiple,
        };
        let (window, kind) = (self.settings.window, self.settings.kind);
        self.world.scope(&mut self.requests, |scope| {
            start(scope, window, Receive(&self.incoming, other), (part, kind))?;
            start(scope, window, Send(&self.outgoing, other), (part, kind))
        })
    }
}

/// One way of a window: from or into a buffer, to or from a rank.
enum Way<'env> {
    Send(&'env Buffer, i32),
    Receive(&'env Buffer, i32),
}
use Way::{Receive, Send};

/// Where each slot's message lies.
#[derive(Clone, Copy)]
struct Part {
    size_bytes: usize,
    apart: bool,
}

impl Part {
    #[inline]
    fn of(self, slot: usize) -> Range<usize> {
        let start = if self.apart {
            slot * self.size_bytes
        } else {
            0
        };
        start..start + self.size_bytes
    }
}

#[inline]
fn start<'env>(
    scope: &mut Scope<'_, 'env>,
    window: usize,
    way: Way<'env>,
    of: (Part, Datatype),
) -> Result<()> {
    match way {
        Send(buffer, other) => (0..window)
            .try_for_each(|slot| scope.isend((buffer, of.0.of(slot)), of.1, other, DATA_TAG)),
        Receive(buffer, other) => (0..window)
            .try_for_each(|slot| scope.irecv((buffer, of.0.of(slot)), of.1, other, DATA_TAG)),
    }
}

impl Resize for Window<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.size_bytes = size_bytes;
        let used = self.slots() * size_bytes;
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
        for slot in 0..self.slots() {
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
        match self.ways {
            Ways::One => self.one_way(),
            Ways::Both => self.both_ways(),
        }
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        if self.incoming.is_empty() {
            return 0;
        }
        let mut wrong = 0;
        for slot in 0..self.slots() {
            let expected = self.message(iteration, self.partner.other, slot);
            let place = slot * self.size_bytes..(slot + 1) * self.size_bytes;
            wrong += pattern::mismatches(&self.incoming.bytes()[place], expected);
        }
        wrong
    }
}
