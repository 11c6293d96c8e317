// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A GSO batch: datagrams of one socket gathered for one system call, equal ones to one target
//! joined (UDP_SEGMENT), heads from the machine, payloads from where they lie. Called by
//! sockets.rs.

use std::io;

use weft_memory::{Gather, GatherSpace};
use weft_os::outbound::{SEGMENT_LIMIT, SEGMENTS_BYTES, SEND_BATCH};
use weft_os::udp_socket::UdpSocket;
use weft_srd::piece::PIECE_HEAD_BYTES;
use weft_srd::{PORT_COUNT, Transmit};

use crate::cutting::{Cutting, Whole};
use crate::sends::Sends;

/// What datagrams are padded with.
static ZEROS: [u8; SEGMENTS_BYTES] = [0; SEGMENTS_BYTES];

/// Which of `count` sockets a datagram leaves through.
#[inline]
pub(crate) fn socket_index(transmit: &Transmit, count: usize) -> usize {
    usize::from(transmit.path.source_port_index()) % count
}

/// What there is to send, in turn.
pub(crate) struct Source<'a> {
    pub(crate) batch: &'a [Transmit],
    /// The same as whole datagrams, or heads whose payloads stay where they lie, where there is a
    /// key; else shorter than the batch.
    pub(crate) ready: &'a [Vec<u8>],
    pub(crate) sends: &'a Sends,
    /// What authentication has added to each.
    pub(crate) seal_bytes: usize,
    /// Whether the sockets let datagrams leave with ECT that have it in their heads.
    pub(crate) ecn: bool,
    /// How long packets are cut, and where the batch begins in what was prepared.
    pub(crate) cutting: &'a Cutting,
    pub(crate) from: usize,
}

impl<'a> Source<'a> {
    /// A packet of the batch as it leaves.
    pub(crate) fn whole(&self, place: usize) -> Whole<'a> {
        let transmit = &self.batch[place];
        let ready = self.ready.get(place).map(|ready| &ready[..]);
        Whole {
            transmit,
            front: ready.unwrap_or(transmit.head.as_bytes()),
            sends: self.sends,
        }
    }
}

/// What one system call sends.
pub(crate) struct GsoBatch<'s, 'a> {
    gather: Gather<'s, 'a>,
    /// How many datagrams of the batch are done when this one of the gathered is.
    ends: [u8; SEND_BATCH],
    taken_count: usize,
}

/// The front of a batch that may leave by one call as far as padding goes: what is padded leaves
/// alone.
pub(crate) fn alone(batch: &[Transmit]) -> &[Transmit] {
    let padded = |transmit: &Transmit| transmit.padding_bytes > 0;
    let first_count = usize::from(padded(&batch[0]));
    let plain_count = batch.iter().position(padded).unwrap_or(batch.len());
    &batch[..first_count.max(plain_count)]
}

/// Whether a datagram still has its payload: one that waited for room may outlive its message.
fn is_open(transmit: &Transmit, sends: &Sends) -> bool {
    transmit
        .payload
        .is_none_or(|payload| sends.is_open(payload.token))
}

/// How many datagrams from the front share a path, a target and a size, so that they may go joined:
/// the last may be shorter.
fn train(batch: &[Transmit], source: &Source<'_>) -> usize {
    let first = &batch[0];
    let size = first.length_bytes() + source.seal_bytes;
    let mut total = size;
    let mut count = 1;
    for next in &batch[1..] {
        let length = next.length_bytes() + source.seal_bytes;
        total += length;
        let padded = first.padding_bytes > 0 || next.padding_bytes > 0 || next.cut_bytes > 0;
        let fits = total <= SEGMENTS_BYTES && count < SEGMENT_LIMIT && length <= size && !padded;
        let same_ways = next.path == first.path && next.to == first.to;
        let alike = same_ways && next.head.is_ect() == first.head.is_ect();
        if !fits || !alike || !is_open(next, source.sends) {
            break;
        }
        count += 1;
        if length < size {
            break;
        }
    }
    count
}

impl<'s, 'a> GsoBatch<'s, 'a> {
    /// Gathers from the front of the batch, as long as the socket is the same and the call has
    /// room. A batch has at most 255 datagrams, and at least one.
    pub(crate) fn gather(space: &'s mut GatherSpace, source: &Source<'a>, joins: bool) -> Self {
        let mut gso_batch = Self {
            gather: space.begin(),
            ends: [0; SEND_BATCH],
            taken_count: 0,
        };
        let (batch, sends) = (source.batch, source.sends);
        let socket = socket_index(&batch[0], PORT_COUNT);
        while let Some(next) = batch.get(gso_batch.taken_count) {
            if socket_index(next, PORT_COUNT) != socket {
                break;
            }
            if !is_open(next, sends) {
                gso_batch.taken_count += 1;
                continue;
            }
            if gso_batch.gather.count() == SEND_BATCH || !gso_batch.gather.has_room() {
                break;
            }
            match next.cut_bytes {
                0 => gso_batch.add(source, joins),
                _ if joins => gso_batch.add_long(source),
                // Its pieces leave one by one.
                _ => break,
            }
        }
        gso_batch
    }

    fn add(&mut self, source: &Source<'a>, joins: bool) {
        let batch = &source.batch[self.taken_count..];
        let ready = source.ready.get(self.taken_count..).unwrap_or(&[]);
        let sends = source.sends;
        let count = if joins { train(batch, source) } else { 1 };
        let size = if count > 1 {
            (batch[0].length_bytes() + source.seal_bytes) as u16
        } else {
            0
        };
        let index = self.gather.count();
        self.gather.begin_datagram(batch[0].to, size);
        if source.ecn && !batch[0].head.is_ect() {
            self.gather.leave_without_ect();
        }
        for (place, transmit) in batch[..count].iter().enumerate() {
            let head = transmit.head.as_bytes();
            let ready = ready.get(place);
            self.gather
                .add_bytes(ready.map_or(head, |ready| &ready[..]));
            if ready.is_some_and(|ready| ready.len() > head.len()) {
                continue;
            }
            if let Some(payload) = transmit.payload {
                let (offset, length) =
                    (payload.offset_bytes as usize, payload.length_bytes as usize);
                sends.gather(payload.token, offset, length, &mut self.gather);
            }
            if transmit.padding_bytes > 0 {
                self.gather
                    .add_bytes(&ZEROS[..usize::from(transmit.padding_bytes)]);
            }
        }
        self.taken_count += count;
        self.ends[index] = self.taken_count as u8;
    }

    /// A long packet, whose pieces go joined.
    fn add_long(&mut self, source: &Source<'a>) {
        let place = self.taken_count;
        let whole = source.whole(place);
        let (count, part_bytes) = whole.cut(source.seal_bytes);
        let index = self.gather.count();
        let size = (PIECE_HEAD_BYTES + part_bytes) as u16;
        self.gather.begin_datagram(whole.transmit.to, size);
        if source.ecn && !whole.transmit.head.is_ect() {
            self.gather.leave_without_ect();
        }
        let heads = source.cutting.heads(source.from + place);
        for (number, head) in heads.iter().take(count).enumerate() {
            self.gather.add_bytes(head);
            whole.gather(number * part_bytes, part_bytes, &mut self.gather);
        }
        self.taken_count += 1;
        self.ends[index] = self.taken_count as u8;
    }

    /// Gathered datagrams, joined ones counted once.
    pub(crate) fn count(&self) -> usize {
        self.gather.count()
    }

    /// Datagrams of the batch that this one stands for, those left out included.
    pub(crate) fn taken_count(&self) -> usize {
        self.taken_count
    }

    /// Datagrams of the batch that are done when `done` of the gathered ones are.
    pub(crate) fn end(&self, done: usize) -> usize {
        done.checked_sub(1)
            .map_or(0, |last| usize::from(self.ends[last]))
    }

    /// Sends those from the `skip`th on; answers how many were taken. `whole`: nobody may take them
    /// apart on the way (srd-protocol 16.2, 16.5).
    pub(crate) fn send_as(
        &self,
        socket: &UdpSocket,
        skip: usize,
        whole: bool,
    ) -> io::Result<usize> {
        if !whole {
            return self.gather.send(socket, skip);
        }
        socket.forbid_fragments()?;
        let sent = self.gather.send(socket, skip);
        socket.allow_fragments()?;
        sent
    }
}
