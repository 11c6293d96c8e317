// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `latency_persistent`, `bw_persistent` and `bibw_persistent`: the same exchanges as latency, bw
//! and bibw. Their messages are prepared once for a size and then started again and again.
//!
//! Made by pt2pt; the figures are latency's and bandwidth's, the calls weft-mpi's persistent
//! messages.

use super::partner::{ANSWER_BYTES, ANSWER_TAG, DATA_TAG, Partner};
use crate::description::Directions;
use crate::options::{Buffers, Settings};
use crate::pattern::{self, Message};
use crate::timing::{Exercise, Resize};
use weft_mpi::{Buffer, Communicator, Datatype, Direction, Line, Persistent, Result};

/// Which exchange is repeated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One message there and one back.
    RoundTrip,
    /// A window of messages, one way with an answer, or bidirectional.
    Window(Directions),
}

/// One rank's messages, prepared for a size.
pub(super) struct PersistentMessages<'a> {
    world: &'a Communicator<'a>,
    settings: &'a Settings,
    partner: Partner,
    shape: Shape,
    sends: Option<Persistent<'a>>,
    receives: Option<Persistent<'a>>,
    answer: Buffer,
    size_bytes: usize,
}

impl<'a> PersistentMessages<'a> {
    pub(super) fn new(world: &'a Communicator<'a>, settings: &'a Settings, shape: Shape) -> Self {
        let partner = Partner::of_two(world);
        let one_way = shape == Shape::Window(Directions::One);
        let slots = slots(shape, settings);
        let messages = |direction| {
            let line = Line {
                direction,
                kind: settings.kind,
                other: partner.other_as_target(),
                tag: DATA_TAG,
            };
            Persistent::new(world, line, slots * settings.max_bytes)
        };
        Self {
            world,
            settings,
            partner,
            shape,
            sends: (!one_way || partner.leads).then(|| messages(Direction::Send)),
            receives: (!one_way || !partner.leads).then(|| messages(Direction::Receive)),
            answer: Buffer::new(ANSWER_BYTES),
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

    #[inline]
    fn both(&mut self) -> (&mut Persistent<'a>, &mut Persistent<'a>) {
        let missing = "a round trip and a bidirectional window have both";
        (
            self.sends.as_mut().expect(missing),
            self.receives.as_mut().expect(missing),
        )
    }

    #[inline]
    fn round_trip(&mut self) -> Result<()> {
        let leads = self.partner.leads;
        let (sends, receives) = self.both();
        let (first, then) = if leads {
            (sends, receives)
        } else {
            (receives, sends)
        };
        first.start()?;
        first.wait()?;
        then.start()?;
        then.wait()
    }

    #[inline]
    fn bidirectional(&mut self) -> Result<()> {
        let (sends, receives) = self.both();
        receives.start()?;
        sends.start()?;
        sends.wait()?;
        receives.wait()
    }

    #[inline]
    fn one_way(&mut self) -> Result<()> {
        let other = self.partner.other_as_target();
        let answer = self.answer.bytes();
        for messages in [&mut self.sends, &mut self.receives].into_iter().flatten() {
            messages.start()?;
            messages.wait()?;
        }
        match self.partner.leads {
            true => self.world.recv(answer, Datatype::Char, other, ANSWER_TAG),
            false => self.world.send(answer, Datatype::Char, other, ANSWER_TAG),
        }
    }
}

/// Messages of a window that have bytes of their own.
fn slots(shape: Shape, settings: &Settings) -> usize {
    match (shape, settings.buffers) {
        (Shape::Window(_), Buffers::Multiple) => settings.window,
        _ => 1,
    }
}

impl Resize for PersistentMessages<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.size_bytes = size_bytes;
        let slots = slots(self.shape, self.settings);
        let count = match self.shape {
            Shape::RoundTrip => 1,
            Shape::Window(_) => self.settings.window,
        };
        for (messages, letter) in [(&mut self.sends, b'a'), (&mut self.receives, b'b')] {
            let Some(messages) = messages else { continue };
            messages.bytes()[..slots * size_bytes].fill(letter);
            messages.prepare((0..count).map(|message| {
                let start = message % slots * size_bytes;
                start..start + size_bytes
            }))?;
        }
        Ok(())
    }
}

impl Exercise for PersistentMessages<'_> {
    fn prepare(&mut self, iteration: usize) {
        let Partner { rank, other, .. } = self.partner;
        for slot in 0..slots(self.shape, self.settings) {
            let place = slot * self.size_bytes..(slot + 1) * self.size_bytes;
            let given = self.message(iteration, rank, slot);
            let expected = self.message(iteration, other, slot);
            if let Some(sends) = &mut self.sends {
                pattern::fill(&mut sends.bytes()[place.clone()], given);
            }
            if let Some(receives) = &mut self.receives {
                pattern::spoil(&mut receives.bytes()[place], expected);
            }
        }
    }

    fn settle(&mut self) -> Result<()> {
        self.world.barrier()
    }

    #[inline]
    fn exchange(&mut self, _iteration: usize) -> Result<()> {
        match self.shape {
            Shape::RoundTrip => self.round_trip(),
            Shape::Window(Directions::One) => self.one_way(),
            Shape::Window(Directions::Both) => self.bidirectional(),
        }
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        let mut wrong = 0;
        for slot in 0..slots(self.shape, self.settings) {
            let place = slot * self.size_bytes..(slot + 1) * self.size_bytes;
            let expected = self.message(iteration, self.partner.other, slot);
            if let Some(receives) = &mut self.receives {
                wrong += pattern::mismatches(&receives.bytes()[place], expected);
            }
        }
        wrong
    }
}
