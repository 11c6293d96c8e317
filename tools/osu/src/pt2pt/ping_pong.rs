// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A message to the partner and one back: what latency and multi_latency repeat.
//!
//! Called by timing; calls send and recv.

use super::partner::{DATA_TAG, Partner};
use crate::options::Settings;
use crate::pattern::{self, Message};
use crate::timing::{Exercise, Resize};
use weft_mpi::{Buffer, Communicator, Datatype, Result};

/// The two buffers of one rank and the size in use.
pub(super) struct PingPong<'a> {
    world: &'a Communicator<'a>,
    kind: Datatype,
    partner: Partner,
    outgoing: Buffer,
    incoming: Buffer,
    size_bytes: usize,
}

impl<'a> PingPong<'a> {
    pub(super) fn new(world: &'a Communicator<'a>, settings: &Settings, partner: Partner) -> Self {
        Self {
            world,
            kind: settings.kind,
            partner,
            outgoing: Buffer::new(settings.max_bytes),
            incoming: Buffer::new(settings.max_bytes),
            size_bytes: 0,
        }
    }

    #[inline]
    fn round_trip(&mut self, size_bytes: usize) -> Result<()> {
        let (kind, other) = (self.kind, self.partner.other_as_target());
        let outgoing = &self.outgoing.bytes()[..size_bytes];
        let incoming = &mut self.incoming.bytes()[..size_bytes];
        if self.partner.leads {
            self.world.send(outgoing, kind, other, DATA_TAG)?;
            self.world.recv(incoming, kind, other, DATA_TAG)
        } else {
            self.world.recv(incoming, kind, other, DATA_TAG)?;
            self.world.send(outgoing, kind, other, DATA_TAG)
        }
    }

    fn message(&self, iteration: usize, sender: usize, receiver: usize) -> Message {
        Message {
            size_bytes: self.size_bytes,
            iteration,
            sender,
            receiver,
        }
    }
}

impl Resize for PingPong<'_> {
    fn resize(&mut self, size_bytes: usize) -> Result<()> {
        self.size_bytes = size_bytes;
        self.outgoing.bytes()[..size_bytes].fill(b'a');
        self.incoming.bytes()[..size_bytes].fill(b'b');
        Ok(())
    }
}

impl Exercise for PingPong<'_> {
    fn prepare(&mut self, iteration: usize) {
        let Partner { rank, other, .. } = self.partner;
        let (given, expected) = (
            self.message(iteration, rank, other),
            self.message(iteration, other, rank),
        );
        pattern::fill(&mut self.outgoing.bytes()[..self.size_bytes], given);
        pattern::spoil(&mut self.incoming.bytes()[..self.size_bytes], expected);
    }

    fn settle(&mut self) -> Result<()> {
        self.round_trip(0)
    }

    #[inline]
    fn exchange(&mut self, _iteration: usize) -> Result<()> {
        self.round_trip(self.size_bytes)
    }

    fn mismatches(&mut self, iteration: usize) -> u64 {
        let expected = self.message(iteration, self.partner.other, self.partner.rank);
        pattern::mismatches(&self.incoming.bytes()[..self.size_bytes], expected)
    }
}
