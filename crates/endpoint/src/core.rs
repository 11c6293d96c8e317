// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All of an endpoint that its transport's callbacks change, apart from the transport itself.
//!
//! Changed by send.rs and receive.rs from above, by arrivals.rs from below.

use weft_contract::{Class, Envelope, RemoteId};
use weft_matching::Matcher;
use weft_memory::{Scratch, UserBuffer};

use crate::backlog::Backlog;
use crate::completion::{ReceiveEnd, Reporter};
use crate::multi_buffer::{MultiId, MultiReceives};
use crate::one_sided::OneSided;
use crate::remotes::Remotes;
use crate::slots::Slots;
use crate::statistics::Waiting;
use crate::unexpected::{Claimed, PayloadPool, Unexpected};

/// A posted receive.
pub(crate) struct Posted {
    /// Empty for a multi-receive, which keeps its own.
    pub(crate) buffer: UserBuffer,
    pub(crate) context: usize,
    pub(crate) flags: u64,
    /// Set if it takes many messages.
    pub(crate) multi: Option<MultiId>,
}

impl Posted {
    /// A receive for one message.
    #[inline(always)]
    pub(crate) fn whole(buffer: UserBuffer, context: usize, flags: u64) -> Self {
        Self {
            buffer,
            context,
            flags,
            multi: None,
        }
    }
}

/// A send that its transport has not finished.
pub(crate) struct PendingSend {
    pub(crate) remote: RemoteId,
    pub(crate) class: Class,
    pub(crate) context: usize,
    pub(crate) flags: u64,
    /// No entry if it succeeds (inject).
    pub(crate) silent: bool,
}

/// A matched receive that a transport fills.
pub(crate) struct Filling {
    pub(crate) envelope: Envelope,
    pub(crate) end: ReceiveEnd,
    pub(crate) multi: Option<MultiId>,
}

/// The two receive sides.
pub(crate) struct Matching {
    messages: Matcher<Posted, Unexpected>,
    tagged: Matcher<Posted, Unexpected>,
}

impl Matching {
    /// Fast path.
    #[inline(always)]
    pub(crate) fn of(&mut self, class: Class) -> &mut Matcher<Posted, Unexpected> {
        match class {
            Class::Tagged => &mut self.tagged,
            // Service messages never come here: arrivals.rs takes them before they are matched.
            Class::Message | Class::Service => &mut self.messages,
        }
    }

    /// Whether a waiting receive names `remote`.
    pub(crate) fn names(&self, remote: RemoteId) -> bool {
        self.messages.directed_count(remote) + self.tagged.directed_count(remote) > 0
    }

    /// What waits on both sides.
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting {
            posted_count: self.messages.posted_count() + self.tagged.posted_count(),
            unexpected_count: self.messages.unexpected_count() + self.tagged.unexpected_count(),
        }
    }
}

/// The core of an endpoint.
pub(crate) struct Core {
    pub(crate) remotes: Remotes,
    pub(crate) report: Reporter,
    pub(crate) matching: Matching,
    pub(crate) pending: Slots<PendingSend>,
    pub(crate) fillings: Slots<Filling>,
    pub(crate) multis: MultiReceives,
    pub(crate) claimed: Vec<Claimed>,
    pub(crate) pool: PayloadPool,
    /// Sends that found no room.
    pub(crate) backlog: Backlog,
    /// Where their copies lie while they are posted; taken at the first one.
    pub(crate) scratch: Option<Scratch>,
    /// Rounds of progress have more to do than to ask the transport: there are one-sided
    /// operations, or a backlog.
    pub(crate) has_chores: bool,
    /// Made at the first one-sided operation, ours or a remote's.
    pub(crate) one_sided: Option<Box<OneSided>>,
}

impl Core {
    pub(crate) fn new(report: Reporter) -> Self {
        Self {
            remotes: Remotes::default(),
            report,
            matching: Matching {
                messages: Matcher::new(),
                tagged: Matcher::new(),
            },
            pending: Slots::new(),
            fillings: Slots::new(),
            multis: MultiReceives::new(),
            claimed: Vec::new(),
            pool: PayloadPool::new(),
            backlog: Backlog::default(),
            scratch: None,
            has_chores: false,
            one_sided: None,
        }
    }

    /// Whether an operation to `remote` has not ended yet. Slow path.
    #[cold]
    pub(crate) fn is_under_way(&self, remote: RemoteId) -> bool {
        let one_sided = self.one_sided.as_ref();
        one_sided.is_some_and(|one_sided| one_sided.outstanding(remote) > 0)
            || self.pending.any(|send| send.remote == remote)
            || self.backlog.holds(remote)
    }

    /// The state of one-sided operations, made now if there is none yet.
    pub(crate) fn begin_one_sided(&mut self) -> &mut OneSided {
        self.has_chores = true;
        self.one_sided.get_or_insert_with(OneSided::new)
    }
}
