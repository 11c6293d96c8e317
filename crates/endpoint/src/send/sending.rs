// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sending side of an endpoint: posts sends, queues those that their route cannot take now, and
//! tells how they end.
//!
//! Called by the endpoint's core; calls the transport, and keeps what waits in backlog.rs.

use slab::Slab;
use weft_contract::{
    Class, CompletionLevel, MESSAGE_LIMIT_BYTES, Peer, PostError, Posted, RemoteId, Route, SendOp,
    SendToken, TransferError,
};
use weft_memory::{Scratch, UserBuffer};

use super::backlog::{Backlog, COPY_LIMIT_BYTES, Payload, Queued};
use crate::completion::completions::Completions;
use crate::completion::transmit::{Ending, TransmitReports};
use crate::error::Error;
use crate::flags::{self, level};
use crate::remotes::Remotes;

/// A send or an inject, as it was asked for.
pub(crate) struct Posting {
    pub(crate) class: Class,
    pub(crate) tag: u64,
    pub(crate) cq_data: Option<u64>,
    /// The flags that count; of fi_inject, [`flags::INJECT`].
    pub(crate) flags: u64,
    pub(crate) context: usize,
    /// No entry is written if it succeeds (fi_inject).
    pub(crate) silent: bool,
}

impl Posting {
    /// When it is complete.
    #[inline(always)]
    fn level(&self) -> CompletionLevel {
        if self.silent {
            CompletionLevel::Inject
        } else {
            level(self.flags)
        }
    }

    /// What the user is told when the send ends.
    #[inline(always)]
    fn ending(&self) -> Ending {
        if self.silent {
            Ending::Silent
        } else {
            Ending::Entry(self.flags)
        }
    }

    /// Whether its buffer is the user's again when the call returns.
    #[inline(always)]
    fn injects(&self) -> bool {
        self.silent || self.flags & flags::INJECT != 0
    }

    /// Whether it is complete as soon as its payload is copied: the user asked for no level, or
    /// only wants the buffer back.
    fn ends_when_copied(&self) -> bool {
        matches!(
            self.level(),
            CompletionLevel::Inject | CompletionLevel::Unstated
        )
    }
}

/// How often in a row the user is asked to call again (-FI_EAGAIN) with a long inject that can
/// leave soon, before the inject is queued. Chosen: about a millisecond of calls of progress.
///
/// Why not queue it at once: a program that injects may compute next, and then nobody posts what is
/// queued. Why not ask for ever: a remote that computes must not hold a sender up for long (MPI-4.1
/// section 3.7).
const PUT_OFF_LIMIT: u32 = 1000;

/// A send that its transport has not finished.
struct PendingSend {
    remote: RemoteId,
    class: Class,
    context: usize,
    ending: Ending,
    /// The copy that the transport reads, if it does not read the user's buffer.
    _copy: Option<Scratch>,
}

/// The sending side.
pub(crate) struct Sending {
    pub(crate) reports: TransmitReports,
    /// By the number in the transport's token.
    pending: Slab<PendingSend>,
    /// Sends that found no room.
    backlog: Backlog,
    /// Memory for the copies of queued sends while they are posted; allocated for the first one.
    scratch: Option<Scratch>,
    /// How often in a row a long inject was put off, and how many sends there were before.
    put_off: (u32, u64),
}

impl Sending {
    pub(crate) fn new() -> Self {
        Self {
            reports: TransmitReports::new(),
            pending: Slab::new(),
            backlog: Backlog::default(),
            scratch: None,
            put_off: (0, 0),
        }
    }

    /// Posts a send to a remote for which none waits. Fast path.
    ///
    /// # Errors
    /// What the transport says; [`PostError::Busy`] if it has no room now.
    #[inline(always)]
    pub(crate) fn post<P: Peer>(
        &mut self,
        route: &mut P,
        completions: &mut Completions,
        remote: RemoteId,
        posting: &Posting,
        payload: &UserBuffer,
    ) -> Result<(), PostError> {
        let op = SendOp {
            remote,
            class: posting.class,
            tag: posting.tag,
            cq_data: posting.cq_data,
            level: posting.level(),
            token: SendToken(self.pending.vacant_key() as u64),
            inject: posting.injects(),
        };
        let posted = route.post_send(&op, payload)?;
        self.reports.count_sent(payload.length_bytes());
        let (class, context, ending) = (posting.class, posting.context, posting.ending());
        match posted {
            Posted::Complete => self.reports.sent(completions, class, context, ending),
            Posted::Pending => {
                self.pending.insert(PendingSend {
                    remote,
                    class,
                    context,
                    ending,
                    _copy: None,
                });
            }
        }
        Ok(())
    }

    /// Whether to ask the user to call again with a long inject that can leave soon; false if that
    /// was asked too often in a row. Slow path.
    pub(crate) fn puts_off(&mut self) -> bool {
        let sent_count = self.reports.counts.sent_count;
        let count = match self.put_off {
            (count, before) if before == sent_count => count + 1,
            _ => 1,
        };
        self.put_off = (count, sent_count);
        count <= PUT_OFF_LIMIT
    }

    /// Queues a send whose route has no room, or to whose remote other sends wait. Slow path.
    ///
    /// # Errors
    /// [`Error::Again`] if the queue is full: make progress and call again. [`Error::TooLong`] if
    /// the message is longer than a message may be.
    pub(crate) fn queue(
        &mut self,
        remotes: &mut Remotes,
        completions: &mut Completions,
        remote: RemoteId,
        posting: &Posting,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        let length_bytes = payload.length_bytes();
        if length_bytes as u64 > MESSAGE_LIMIT_BYTES {
            return Err(Error::TooLong);
        }
        let is_short = length_bytes <= COPY_LIMIT_BYTES;
        let ends = posting.ends_when_copied() && (is_short || posting.injects());
        let copies = posting.injects() || ends;
        if !self.has_room(remote, if copies { length_bytes } else { 0 }) {
            return Err(Error::Again);
        }
        let op = SendOp {
            remote,
            class: posting.class,
            tag: posting.tag,
            cq_data: posting.cq_data,
            level: if ends {
                CompletionLevel::Inject
            } else {
                posting.level()
            },
            token: SendToken::NOBODY,
            // A longer copy is kept until it is sent.
            inject: copies && is_short,
        };
        let payload = if copies {
            Payload::copy_of(payload)
        } else {
            Payload::Lent(payload.clone())
        };
        self.reports.count_sent(length_bytes);
        let (context, mut ending) = (posting.context, posting.ending());
        if ends {
            self.reports.sent(completions, op.class, context, ending);
            ending = Ending::Told;
        }
        let queued = Queued {
            op,
            payload,
            ending,
            context,
        };
        self.push(remotes, queued);
        Ok(())
    }

    /// Whether the queue has room for one more send with a copy of this length.
    pub(crate) fn has_room(&self, remote: RemoteId, copied_bytes: usize) -> bool {
        self.backlog.has_room(remote, copied_bytes)
    }

    /// Queues a send for which the queue was found to have room.
    pub(crate) fn push(&mut self, remotes: &mut Remotes, queued: Queued) {
        let remote = queued.op.remote;
        if !self.backlog.holds(remote) {
            remotes.hold(remote);
        }
        self.backlog.push(queued);
    }

    /// Posts queued sends to every remote as far as there is room; returns how many were posted.
    pub(crate) fn post_queued<P: Peer>(
        &mut self,
        route: &mut P,
        remotes: &mut Remotes,
        completions: &mut Completions,
    ) -> usize {
        let mut sent_count = 0;
        let mut index = 0;
        while let Some(&remote) = self.backlog.active().get(index) {
            sent_count += self.post_queued_to(route, remotes, completions, remote);
            // A remote without any more has left the list.
            index += usize::from(self.backlog.holds(remote));
        }
        sent_count
    }

    /// As [`Self::post_queued`], to one remote.
    pub(crate) fn post_queued_to<P: Peer>(
        &mut self,
        route: &mut P,
        remotes: &mut Remotes,
        completions: &mut Completions,
        remote: RemoteId,
    ) -> usize {
        let mut sent_count = 0;
        while let Some(first) = self.backlog.first(remote) {
            let mut op = first.op;
            if first.ending != Ending::Told || matches!(first.payload, Payload::Kept(..)) {
                op.token = SendToken(self.pending.vacant_key() as u64);
            }
            let posted = match &first.payload {
                Payload::Lent(buffer) => route.post_send(&op, buffer),
                Payload::Kept(copy, length) => route.post_send(&op, &copy.payload(*length)),
                Payload::Copied(bytes) => {
                    let scratch = self.scratch.get_or_insert_with(Scratch::take);
                    let length = scratch.write(0, bytes);
                    route.post_send(&op, &scratch.payload(length))
                }
            };
            if posted == Err(PostError::Busy) {
                return sent_count;
            }
            let Some(queued) = self.backlog.pop(remote) else {
                return sent_count;
            };
            sent_count += 1;
            self.end_queued(completions, queued, posted);
        }
        if sent_count > 0 {
            remotes.release(remote);
        }
        sent_count
    }

    /// A queued send was posted, or never will be.
    fn end_queued(
        &mut self,
        completions: &mut Completions,
        queued: Queued,
        posted: Result<Posted, PostError>,
    ) {
        let (remote, class) = (queued.op.remote, queued.op.class);
        let (context, ending) = (queued.context, queued.ending);
        match posted {
            Ok(Posted::Pending) => {
                let copy = match queued.payload {
                    Payload::Kept(copy, _) => Some(copy),
                    Payload::Copied(_) | Payload::Lent(_) => None,
                };
                // The user was told already that a short copy is complete: nobody waits for it.
                if ending != Ending::Told || copy.is_some() {
                    self.pending.insert(PendingSend {
                        remote,
                        class,
                        context,
                        ending,
                        _copy: copy,
                    });
                }
            }
            Ok(Posted::Complete) => self.reports.sent(completions, class, context, ending),
            Err(PostError::Busy) => {}
            Err(PostError::Failed(why)) => self.fail(completions, &queued, Error::Transfer(why)),
        }
    }

    /// Reports that a queued send failed, if the user was not told that it is complete.
    #[cold]
    fn fail(&mut self, completions: &mut Completions, queued: &Queued, error: Error) {
        if queued.ending != Ending::Told {
            let (class, context) = (queued.op.class, queued.context);
            self.reports.send_failed(completions, class, context, error);
        }
    }

    /// A pending send is complete, or failed.
    #[inline]
    pub(crate) fn sent(
        &mut self,
        completions: &mut Completions,
        token: SendToken,
        outcome: Result<(), TransferError>,
    ) {
        let Some(send) = self.pending.try_remove(token.0 as usize) else {
            return;
        };
        let (class, context) = (send.class, send.context);
        match outcome {
            Ok(()) => self.reports.sent(completions, class, context, send.ending),
            // The user was told that it is sent.
            Err(_) if send.ending == Ending::Told => {}
            Err(why) => {
                let error = Error::Transfer(why);
                self.reports.send_failed(completions, class, context, error);
            }
        }
    }

    /// A remote is lost: all sends queued for it fail. Sends that were reported as complete are
    /// dropped without a word, as if they had been lost on their way.
    #[cold]
    pub(crate) fn remote_lost(
        &mut self,
        remotes: &mut Remotes,
        completions: &mut Completions,
        remote: RemoteId,
        why: TransferError,
    ) {
        for queued in self.backlog.clear(remote) {
            self.fail(completions, &queued, Error::Transfer(why));
        }
        remotes.release(remote);
    }

    /// Takes back the earliest queued send of this context; false if there is none. An error entry
    /// follows.
    #[cold]
    pub(crate) fn cancel(
        &mut self,
        remotes: &mut Remotes,
        completions: &mut Completions,
        context: usize,
    ) -> bool {
        let Some(queued) = self.backlog.cancel(context) else {
            return false;
        };
        let remote = queued.op.remote;
        if !self.backlog.holds(remote) {
            remotes.release(remote);
        }
        self.fail(completions, &queued, Error::Canceled);
        true
    }

    /// Whether a send to `remote` has not ended yet. Slow path.
    #[cold]
    pub(crate) fn is_under_way(&self, remote: RemoteId) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|(_, send)| send.remote == remote) || self.holds(remote)
    }

    /// Whether sends to `remote` wait for room.
    pub(crate) fn holds(&self, remote: RemoteId) -> bool {
        self.backlog.holds(remote)
    }

    /// How many sends wait for room.
    pub(crate) fn queued_count(&self) -> usize {
        self.backlog.count()
    }

    /// Remotes to which sends wait for room of which the user was told that they are complete.
    pub(crate) fn told(&self) -> impl Iterator<Item = RemoteId> {
        let active = self.backlog.active().iter().copied();
        active.filter(|&remote| self.backlog.has_told(remote))
    }

    /// Whether any send waits for room. Fast path.
    #[inline(always)]
    pub(crate) fn has_queued(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Whether the transport's descriptor wakes a sleeper when there is room for a queued send,
    /// whichever remote it goes to.
    pub(crate) fn wakes_for_room<P: Route>(&self, route: &P) -> bool {
        let mut waiting = self.backlog.active().iter();
        waiting.all(|&remote| route.wakes_for_room(remote))
    }
}
