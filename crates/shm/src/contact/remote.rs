// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the transport keeps for one remote process: how far contact is, and what waits to go there.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weft_contract::{PostError, SendOp, TransferError};
use weft_memory::{Reserved, UserBuffer};
use weft_os::local_socket::Connection;
use weft_os::process_id::ProcessId;
use weft_ring::{Full, Identity};

use crate::contact::attached::Attached;
use crate::protocol::cell::Control;
use crate::protocol::send_protocol::SendProtocol;

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
    /// for the other's region. What it sends without asking for answers still comes here.
    Elsewhere {
        /// The owner knows, and sends by another route.
        is_told: bool,
    },
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
    /// By which protocol it leaves.
    pub(crate) protocol: SendProtocol,
    /// Its receiver can copy it out of our shared memory.
    pub(crate) is_shown: bool,
}

impl Waiting {
    /// Whether it is described, and its receiver fetches it or its rest.
    pub(crate) fn is_described(&self) -> bool {
        use SendProtocol::{EarlyRendezvous, Rendezvous};
        matches!(self.protocol, EarlyRendezvous | Rendezvous)
    }

    /// Where the message lies in our memory, if in one stretch that is to be copied from there.
    pub(crate) fn address(&self) -> Option<u64> {
        // With early data it is to come through the lane or a pipe, if it might be copied.
        let is_hidden = self.is_shown && self.protocol == SendProtocol::EarlyRendezvous;
        let is_told = self.payload.is_contiguous() && !is_hidden;
        is_told.then(|| self.payload.address() as u64)
    }
}

/// What is known of a remote before contact, and what hinders it.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Attempt {
    /// The process that listened at its address when somebody began to wait for it.
    pub(super) seen: Option<ProcessId>,
    /// Since when all slots of its region are taken; 0 if they are not.
    pub(super) full_since_ns: u64,
    /// Another process listens at its address than the one that sends to us: that one is to be lost
    /// first.
    pub(super) is_replaced: bool,
}

/// What is left of a remote that was given up, or turned away.
#[derive(Debug)]
pub(crate) struct Left {
    /// Our place in its region, if we were in contact.
    pub(crate) attached: Option<Box<Attached>>,
    /// Sends that waited for room.
    pub(crate) waiting: VecDeque<Waiting>,
    /// The slot of our region that it sends through; none after this if it was given up.
    pub(crate) slot: Option<usize>,
    /// The owner wanted to know when it dies.
    pub(crate) was_watched: bool,
}

/// One remote.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(super) address: SocketAddr,
    pub(super) link: Link,
    /// How far contact is.
    pub(super) attempt: Attempt,
    /// Why it could not be reached, as the user was told last.
    pub(super) told: Option<TransferError>,
    /// The owner wants to know when it dies.
    pub(super) watched: bool,
    /// The slot of our region that it sends through.
    pub(super) slot: Option<usize>,
    /// Answers of ours that wait for room.
    controls: VecDeque<Control>,
    /// Sends that wait for room.
    waiting: VecDeque<Waiting>,
}

/// How much waits for room in our lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingCounts {
    pub(crate) answers: usize,
    pub(crate) sends: usize,
}

impl WaitingCounts {
    pub(crate) fn all(self) -> usize {
        self.answers + self.sends
    }
}

/// Contact.
impl Remote {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            link: Link::Unknown,
            attempt: Attempt::default(),
            told: None,
            watched: false,
            slot: None,
            controls: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The slot of our region that it sends through.
    #[inline(always)]
    pub(crate) fn slot(&self) -> Option<usize> {
        self.slot
    }

    /// Its region and our lane in it, if we are in contact.
    #[inline(always)]
    pub(crate) fn attached(&self) -> Option<&Attached> {
        match &self.link {
            Link::Ready(attached) => Some(attached),
            _ => None,
        }
    }

    #[inline(always)]
    pub(crate) fn attached_mut(&mut self) -> Option<&mut Attached> {
        match &mut self.link {
            Link::Ready(attached) => Some(attached),
            _ => None,
        }
    }

    /// Why it was given up, if it was.
    pub(crate) fn failed(&self) -> Option<TransferError> {
        match self.link {
            Link::Failed(why) => Some(why),
            _ => None,
        }
    }

    /// Whether sends to it can be taken.
    ///
    /// # Errors
    /// `Failed` if never; `Busy` before contact, and until its owner knows that it is reached
    /// by another route.
    pub(crate) fn takes_sends(&self) -> Result<(), PostError> {
        match &self.link {
            Link::Ready(_) => Ok(()),
            Link::Failed(why) => Err(PostError::Failed(*why)),
            Link::Elsewhere { is_told: true } => Err(PostError::Failed(TransferError::NoMemory)),
            // Whoever is told sends it by another route.
            Link::Unknown | Link::Asking(..) | Link::Elsewhere { is_told: false } => {
                Err(PostError::Busy)
            }
        }
    }

    /// Whether it is not to be reached here, and its owner is still to be told.
    pub(crate) fn is_to_be_turned_away(&self) -> bool {
        matches!(self.link, Link::Elsewhere { is_told: false })
    }

    /// Whether another process listens at its address than the one that sends to us.
    pub(crate) fn is_replaced(&self) -> bool {
        self.attempt.is_replaced
    }

    /// Whether it takes nothing more from our lane, since it cannot answer. Whoever sends to us
    /// can.
    pub(crate) fn has_refused(&self, own: &Identity) -> bool {
        self.slot.is_none()
            && self.attached().is_some_and(|attached| {
                let slots = attached.region().slots();
                slots.is_refused(attached.lane().slot(), own.incarnation)
            })
    }

    /// Whether its owner wants to know when it dies; answers why it was given up, if it was.
    pub(crate) fn watch(&mut self, on: bool) -> Option<TransferError> {
        let failed = self.failed().filter(|_| on);
        if failed.is_none() {
            self.watched = on;
        }
        failed
    }

    /// The user has named its address again: if it was lost, another process may be there now.
    pub(crate) fn name_again(&mut self) {
        if matches!(self.link, Link::Failed(TransferError::RemoteLost)) {
            self.link = Link::Unknown;
        }
    }

    /// Another process may be reached at its address.
    pub(crate) fn forget(&mut self) {
        self.link = Link::Unknown;
    }

    /// It is given up, but its lane stays.
    pub(crate) fn fail(&mut self, why: TransferError) {
        self.link = Link::Failed(why);
        self.watched = false;
    }

    /// It is given up; `None` if it was before.
    pub(crate) fn lose(&mut self, why: TransferError) -> Option<Left> {
        if self.failed().is_some() {
            return None;
        }
        self.attempt = Attempt::default();
        let left = Left::of(self, Link::Failed(why));
        self.slot = None;
        Some(left)
    }

    /// Its owner sends by another route from now on; what it sends may still come.
    pub(crate) fn turn_away(&mut self) -> Left {
        Left::of(self, Link::Elsewhere { is_told: true })
    }
}

impl Left {
    /// Takes it from a remote, whose link is this one from now on.
    fn of(remote: &mut Remote, link: Link) -> Self {
        remote.controls.clear();
        let attached = match std::mem::replace(&mut remote.link, link) {
            Link::Ready(attached) => Some(attached),
            _ => None,
        };
        Self {
            attached,
            waiting: std::mem::take(&mut remote.waiting),
            slot: remote.slot,
            was_watched: std::mem::take(&mut remote.watched),
        }
    }
}

/// What waits to go there.
impl Remote {
    /// How many answers and how many sends wait.
    pub(crate) fn waiting_counts(&self) -> WaitingCounts {
        WaitingCounts {
            answers: self.controls.len(),
            sends: self.waiting.len(),
        }
    }

    /// The sends that wait, the next one first.
    #[inline(always)]
    pub(crate) fn waiting(&mut self) -> &mut VecDeque<Waiting> {
        &mut self.waiting
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

impl Link {
    fn push(&mut self, control: &Control) -> Result<(), Full> {
        let (head, words) = control.encode();
        match self {
            Self::Ready(attached) => attached.lane_mut().producer_mut().push_words(head, words),
            _ => Err(Full),
        }
    }
}

#[cfg(test)]
impl Remote {
    /// As if contact had come so far.
    pub(crate) fn set_link(&mut self, link: Link) {
        self.link = link;
    }
}
