// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One-sided operations: reads, writes and atomics of a remote's registered memory. fi_rma(3),
//! fi_atomic(3), fi_mr(3).
//!
//! They are carried out by the remote's endpoint when it makes progress, and travel as service
//! messages over whatever route leads there (docs/one-sided.md). The initiator posts a request; the
//! target carries it out in place, without a bounce, and answers. Short payload travels with its
//! request or answer; long payload is a message of its own, which lands where it belongs by
//! whatever protocol the route has for long messages.
//!
//! `initiator` posts, unless `direct` finds the memory within reach; `answer` hears of the ends;
//! `target` serves; `outbox` keeps what found no room, `parcel` sends it; `region` is the memory
//! that remotes may touch, `registration` how it gets there, `closing` takes it back while messages
//! use it; `request` the format. What both sides of one endpoint keep is [`OneSided`], made at
//! first use, so that endpoints without one-sided operations pay one look at a pointer for each
//! round of progress.

use std::collections::HashMap;

use weft_contract::{Range, RemoteId};
use weft_memory::{Element, Operator, Scratch, UserBuffer};

use crate::ids::FiAddr;
use crate::slots::Slots;

mod answer;
mod closing;
mod direct;
mod initiator;
mod outbox;
mod parcel;
mod region;
mod registration;
mod request;
mod target;

use outbox::Outbox;
pub(crate) use region::Regions;
pub use region::{KeyChoice, RegionSettings};
pub use request::RANGE_LIMIT;

/// Operations of one endpoint that wait for the answer of one remote, at most; more are told to
/// come again. Chosen: bounds what the target may have to keep for answers that find no room, to 2
/// MiB for each initiator.
const OUTSTANDING_LIMIT: u32 = 256;

/// Longest request with all that travels in it, and longest answer that is copied when it is made.
/// Specified by what every route takes whole.
pub(crate) const REQUEST_LIMIT_BYTES: usize = crate::settings::DEFAULT_INJECT_LIMIT_BYTES;

/// Most bytes of operands, comparands and results together in one atomic operation. Chosen: a
/// request, less the longest head.
pub const ATOMIC_LIMIT_BYTES: usize = REQUEST_LIMIT_BYTES - request::HEAD_LIMIT_BYTES;

/// What all one-sided operations have in common.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// Whose memory.
    pub to: FiAddr,
    /// Which memory there, at most [`RANGE_LIMIT`] ranges; as long together as the local buffer.
    pub ranges: &'a [Range],
    /// Data for a completion at the target, if any (writes only).
    pub cq_data: Option<u64>,
    /// Flags of the call; `None` for the forms without flags, which take the endpoint's.
    pub flags: Option<u64>,
    /// For the inject forms: no entry is written if it succeeds.
    pub inject: bool,
    /// Comes back in the completion.
    pub context: usize,
}

/// What an atomic operation does; fi_atomic, fi_fetch_atomic and fi_compare_atomic.
#[derive(Clone, Copy, Debug)]
pub struct Atomic<'a> {
    /// The operation.
    pub operator: Operator,
    /// The type of the elements.
    pub element: Element,
    /// One operand for each element; empty for [`Operator::Read`].
    pub operands: &'a UserBuffer,
    /// One comparand for each element; empty unless the operation compares.
    pub comparands: &'a UserBuffer,
}

/// What an operation does to the remote's memory, as completions and counters tell it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccessKind {
    Read,
    Write,
    AtomicFetch,
    AtomicWrite,
}

/// What the user hears when an operation succeeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// An entry, if these flags ask for one.
    Entry(u64),
    /// A step of the counter alone (inject).
    Silent,
    /// Nothing: it was told already.
    Told,
}

/// An operation of ours that waits for its target.
#[derive(Debug)]
struct Operation {
    remote: RemoteId,
    /// When it was posted, as a number that only grows.
    serial: u64,
    kind: AccessKind,
    context: usize,
    ending: Ending,
    /// The payload of a long write, the place for the result of the others.
    buffer: UserBuffer,
    /// What `buffer` is part of, if the payload had to be copied.
    _copy: Option<Scratch>,
    awaits_answer: bool,
    /// The payload of a long write is not sent yet.
    awaits_sent: bool,
    /// The result is on its way into `buffer`.
    lands: bool,
    failed: Option<crate::Error>,
}

/// A long write of a remote, whose payload comes in a message of its own.
#[derive(Debug)]
struct Incoming {
    remote: RemoteId,
    id: u32,
    target: UserBuffer,
    cq_data: Option<u64>,
    keys: request::Keys,
    /// The route has its memory, and may write there.
    lands: bool,
}

/// What a remote's read asked for, too long to be copied: it is sent from where it lies.
#[derive(Debug)]
struct Outgoing {
    id: u32,
    keys: request::Keys,
    /// `None` once its region was closed.
    buffer: Option<UserBuffer>,
    /// The route has it, and may read there.
    is_sent: bool,
}

/// All that one endpoint keeps for one-sided operations.
pub(crate) struct OneSided {
    operations: Slots<Operation>,
    /// Operations that wait for an answer, by remote.
    outstanding: Vec<u32>,
    /// Serial of the last request without an answer that may not be carried out yet, by remote; 0
    /// if there is none.
    unconfirmed: Vec<u64>,
    last_serial: u64,
    incoming: Slots<Incoming>,
    incoming_by_id: HashMap<(RemoteId, u32), u32>,
    outgoing: Slots<Outgoing>,
    outbox: Outbox,
    scratch: Scratch,
    /// Room for operands and results while an atomic operation is carried out.
    workspace: Box<[u8]>,
    /// Messages of ours that nobody waits for, counted for their tokens.
    nameless_count: u64,
}

impl OneSided {
    /// Nothing is under way.
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            operations: Slots::new(),
            outstanding: Vec::new(),
            unconfirmed: Vec::new(),
            last_serial: 0,
            incoming: Slots::new(),
            incoming_by_id: HashMap::new(),
            outgoing: Slots::new(),
            outbox: Outbox::default(),
            scratch: Scratch::take(),
            workspace: vec![0; 2 * REQUEST_LIMIT_BYTES].into(),
            nameless_count: 0,
        })
    }

    /// Operations that wait for an answer of `remote`.
    pub(crate) fn outstanding(&self, remote: RemoteId) -> u32 {
        self.outstanding.get(remote.index()).copied().unwrap_or(0)
    }

    fn count_outstanding(&mut self, remote: RemoteId, change: i32) {
        if self.outstanding.len() <= remote.index() {
            self.outstanding.resize(remote.index() + 1, 0);
        }
        let count = &mut self.outstanding[remote.index()];
        *count = count.saturating_add_signed(change);
    }

    /// Whether something waits to be sent. Fast path.
    #[inline(always)]
    pub(crate) fn has_parcels(&self) -> bool {
        !self.outbox.is_empty()
    }
}

/// Tokens of sends and landings that are ours have the highest bit; those of operations end there.
const OURS: u64 = 1 << 63;
/// Set besides for what no operation of ours waits for: answers, and landings at the target.
const NAMELESS: u64 = 1 << 62;
/// Set besides for long results on their way; those of other nameless sends end there.
const RESULT: u64 = 1 << 61;

/// Whether a transport's token names something of ours. Fast path.
#[inline(always)]
pub(crate) fn is_ours(token: u64) -> bool {
    token & OURS != 0
}
