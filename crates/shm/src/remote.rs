// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the transport keeps for one remote process.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weft_contract::{SendOp, TransferError};
use weft_memory::single_copy::ProcessMemory;
use weft_memory::{ForeignHeap, Mapping, Reserved, UserBuffer};
use weft_os::local_socket::Connection;
use weft_os::process_id::ProcessId;
use weft_ring::layout::{
    CHUNK_BYTES, LANE_BYTES, LANE_DATA_BYTES, PAGE_BYTES, PIPE_BYTES, PIPE_CHUNKS,
    POOL_CHUNK_BYTES, POOL_CHUNKS, lane_offset, pipe_offset,
};
use weft_ring::{Full, Identity, Pool, Producer, Region};

use crate::protocol::cell::Control;
use crate::views::Views;

/// Bytes of a pipe's chunks.
pub(crate) const PIPE_LAP_BYTES: usize = PIPE_CHUNKS * CHUNK_BYTES;

/// Bytes of a lane's chunks and data area.
pub(crate) const LANE_LAP_BYTES: usize = LANE_DATA_BYTES + POOL_CHUNKS * POOL_CHUNK_BYTES;

/// How often a remote has gone round memory that is lent to it. The first lap takes its pages from
/// the system, in both processes, which is several times slower and says nothing of the laps to
/// come.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Laps {
    bytes: usize,
}

impl Laps {
    /// So many bytes came through; true if the first lap was over before.
    pub(crate) fn note(&mut self, bytes: usize, lap_bytes: usize) -> bool {
        let was_warm = self.bytes >= lap_bytes;
        self.bytes = self.bytes.saturating_add(bytes);
        was_warm
    }

    /// The pages were made before they were needed.
    pub(crate) fn skip_first(&mut self) {
        self.bytes = usize::MAX;
    }
}

/// How far we are with a remote.
#[derive(Debug)]
pub(crate) enum Link {
    /// Never tried.
    Unknown,
    /// Waiting for the remote to hand us its region; the kernel's word for its process, if it is
    /// visible, and the addresses that the region will take.
    Asking(Connection, Option<ProcessId>, Reserved),
    /// In contact.
    Ready(Box<Attached>),
    /// Given up.
    Failed(TransferError),
    /// Not to be reached through shared memory, though it may live: one of us has no addresses left
    /// for the other's region. What it sends without asking for answers still comes this way.
    Elsewhere {
        /// The owner knows, and sends another way.
        is_told: bool,
    },
}

impl Link {
    fn push(&mut self, control: &Control) -> Result<(), Full> {
        let (head, words) = control.encode();
        match self {
            Self::Ready(attached) => attached.producer.push_words(head, words),
            _ => Err(Full),
        }
    }
}

/// A remote whose region we have.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) producer: Producer,
    /// The chunks of our lane.
    pub(crate) pool: Pool,
    /// All of its region but the lanes.
    pub(crate) region: Region,
    /// Our lane in it.
    pub(crate) lane: Mapping,
    /// Who it belongs to.
    pub(crate) owner: Identity,
    /// Our slot in its region.
    pub(crate) slot: usize,
    /// Its process, in our namespace; 0 if not visible.
    pub(crate) pid: u32,
    /// Whether its memory may be read, once tried.
    pub(crate) single_copy: Option<bool>,
    /// Bytes of long payload sent through our lane; `u64::MAX` once it is wide.
    pub(crate) long_bytes: u64,
    /// The pages that our lane uses when it is wide have been made.
    pub(crate) is_warm: bool,
    /// Its heap, once looked for; None inside if it cannot be mapped.
    pub(crate) heap: Option<Option<ForeignHeap>>,
    /// Payload that had come from it when we last sent a long message, and long messages since that
    /// found no more.
    pub(crate) heard_bytes: u64,
    pub(crate) row: u32,
    /// What we know of its registered memory.
    pub(crate) views: Views,
}

/// A send that waits for room in the lane, wholly or for its rest. Sends behind it wait too: order.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) op: SendOp,
    pub(crate) payload: UserBuffer,
    /// Bytes already in the lane (streamed messages).
    pub(crate) sent_bytes: usize,
    /// The receipt it asks for, if any.
    pub(crate) outgoing: Option<usize>,
    /// It is announced, and the receiver fetches it or its rest; else it is streamed.
    pub(crate) is_offered: bool,
    /// Its receiver can copy it out of our shared memory.
    pub(crate) is_shown: bool,
    /// It is announced as if it lay where its receiver cannot copy it: it begins at once, and its
    /// rest goes through the lane or a pipe.
    pub(crate) is_streamed_on: bool,
}

impl Attached {
    /// Its memory, as single copy reaches it.
    pub(crate) fn memory(&self) -> ProcessMemory {
        ProcessMemory {
            pid: self.pid,
            probe: self.region.probe(),
        }
    }

    /// Has the pages made that our lane uses when it is wide. Slow path: about a millisecond for
    /// each MiB.
    pub(crate) fn warm(&mut self) {
        if std::mem::replace(&mut self.is_warm, true) {
            return;
        }
        warm_lane(&self.lane, self.slot);
    }

    /// Whether our lane goes round its whole data area, and its chunks are in use.
    pub(crate) fn is_wide(&self) -> bool {
        self.long_bytes == u64::MAX
    }
}

/// Has the pages of a wide lane made.
pub(crate) fn warm_lane(mapping: &Mapping, slot: usize) {
    let wide = lane_offset(slot) + PAGE_BYTES;
    mapping.populate(wide, LANE_BYTES - PAGE_BYTES);
}

/// Has the pages made of the pipe that is lent before all others.
pub(crate) fn warm_pipe(region: &Region) {
    region.mapping().populate(pipe_offset(0), PIPE_BYTES);
}

impl Waiting {
    /// Where the message lies in our memory, if in one stretch that is to be copied from there.
    pub(crate) fn address(&self) -> Option<u64> {
        let is_told = self.payload.is_contiguous() && !self.is_streamed_on;
        is_told.then(|| self.payload.address() as u64)
    }
}

/// What is known of a remote before contact, and in the way of it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Attempt {
    /// The process that listened at its address when somebody began to wait for it.
    pub(crate) seen: Option<ProcessId>,
    /// Since when all slots of its region are taken; 0 if they are not.
    pub(crate) full_since_ns: u64,
    /// Another process listens at its address than the one that sends to us: that one is to be lost
    /// first.
    pub(crate) is_replaced: bool,
}

/// One remote.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) address: SocketAddr,
    pub(crate) link: Link,
    /// Why it could not be reached, as the user was told last.
    pub(crate) told: Option<TransferError>,
    /// Answers of ours that wait for room.
    pub(crate) controls: VecDeque<Control>,
    /// Pipes of ours that are lent to it.
    pub(crate) pipes_lent: u32,
    /// The round in which a fetch from it could not begin, so that those after it do not either.
    pub(crate) held_round: u64,
    /// What has come from it through pipes, and in parts.
    pub(crate) piped: Laps,
    pub(crate) parted: Laps,
    /// Sends that wait for room.
    pub(crate) waiting: VecDeque<Waiting>,
    /// The owner wants to know when it dies.
    pub(crate) watched: bool,
    /// How far contact is.
    pub(crate) attempt: Attempt,
    /// The size class of the last long message that we announced to it, since one of its came.
    pub(crate) announced: Option<usize>,
    /// The size class that goes both ways between us, and for how many more messages that is taken
    /// for granted.
    pub(crate) both_ways: Option<(usize, u32)>,
    /// The slot of our region that it sends through.
    pub(crate) inbound: Option<usize>,
}

impl Remote {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            link: Link::Unknown,
            told: None,
            controls: VecDeque::new(),
            pipes_lent: 0,
            held_round: 0,
            piped: Laps::default(),
            parted: Laps::default(),
            waiting: VecDeque::new(),
            watched: false,
            attempt: Attempt::default(),
            announced: None,
            both_ways: None,
            inbound: None,
        }
    }

    /// Whether it takes nothing more from our lane, since it cannot answer. Whoever sends to us
    /// can.
    pub(crate) fn has_refused(&self, own: &Identity) -> bool {
        match &self.link {
            Link::Ready(attached) if self.inbound.is_none() => {
                let slots = attached.region.slots();
                slots.is_refused(attached.slot, own.incarnation)
            }
            _ => false,
        }
    }

    /// Whether something waits to be sent to it.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.controls.is_empty()
    }

    /// Sends an answer as soon as there is room; answers keep their order. True if something was
    /// pushed, so that the caller rings.
    pub(crate) fn push_control(&mut self, control: Control) -> bool {
        if self.controls.is_empty() && self.link.push(&control).is_ok() {
            return true;
        }
        self.controls.push_back(control);
        false
    }

    /// Pushes answers that waited; true if any went.
    pub(crate) fn flush_controls(&mut self) -> bool {
        let mut pushed = false;
        while let Some(control) = self.controls.front() {
            if self.link.push(control).is_err() {
                break;
            }
            self.controls.pop_front();
            pushed = true;
        }
        pushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lap_is_not_warm() {
        let (mut laps, message_bytes) = (Laps::default(), 128 * 1024);
        for _ in 0..PIPE_LAP_BYTES / message_bytes {
            assert!(!laps.note(message_bytes, PIPE_LAP_BYTES));
        }
        assert!(laps.note(message_bytes, PIPE_LAP_BYTES));
    }
}
