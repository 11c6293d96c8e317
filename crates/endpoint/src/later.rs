// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sends that their route cannot take now: queued, and posted when there may be room. Slow path.
//!
//! Called by send.rs and by one-sided requests when a transport is busy or earlier sends wait, by
//! progress.rs after each round, by endpoint.rs when an endpoint is closed; keeps its queue in
//! backlog.rs.

use std::time::{Duration, Instant};

use weft_contract::{
    Class, CompletionLevel, MESSAGE_LIMIT_BYTES, Peer, PostError, Posted, RemoteId, Route, SendOp,
    SendToken, TransferError,
};
use weft_memory::{Scratch, UserBuffer};

use crate::backlog::{COPY_LIMIT_BYTES, Ending, Payload, Queued};
use crate::completion::{Reporter, Sinks};
use crate::core::{Core, PendingSend};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::flags::{self, level};
use crate::ids::FiAddr;

/// How long a closing endpoint waits for room without finding any, and in all. Chosen: as the srd
/// route does.
const LINGER_SILENT: Duration = Duration::from_millis(200);
const LINGER: Duration = Duration::from_secs(2);

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
    fn level(&self) -> CompletionLevel {
        if self.silent {
            CompletionLevel::Inject
        } else {
            level(self.flags)
        }
    }

    /// Whether it is complete as soon as its payload is copied: nothing was said of when, or that
    /// its buffer counts.
    fn ends_when_copied(&self) -> bool {
        match self.level() {
            CompletionLevel::Inject => true,
            CompletionLevel::Transmit => self.flags & flags::TRANSMIT_COMPLETE == 0,
            CompletionLevel::Delivery => false,
        }
    }
}

impl<P: Route> Endpoint<P> {
    /// Posts a send behind those that wait, or queues it, where the user's name leads straight to
    /// no remote.
    ///
    /// # Errors
    /// As [`Self::send_later`]; [`Error::Invalid`] if `to` names no remote, [`Error::BadState`]
    /// before the endpoint is enabled.
    #[cold]
    #[inline(never)]
    pub(crate) fn send_behind(
        &mut self,
        sinks: &mut Sinks,
        to: FiAddr,
        posting: Posting,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        if self.local.is_none() {
            return Err(Error::BadState);
        }
        let remote = self.core.remotes.named(to).ok_or(Error::Invalid)?;
        self.send_later(sinks, remote, posting, payload)
    }

    /// Queues a send whose route has no room, and posts what it can by now.
    ///
    /// # Errors
    /// [`Error::Again`] when as many wait as may: make progress and call again.
    #[cold]
    #[inline(never)]
    pub(crate) fn send_later(
        &mut self,
        sinks: &mut Sinks,
        remote: RemoteId,
        posting: Posting,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        if payload.length_bytes() as u64 > MESSAGE_LIMIT_BYTES {
            return Err(Error::TooLong);
        }
        let local = self.local.as_mut().ok_or(Error::BadState)?;
        let core = &mut self.core;
        core.send_queued_to(local, sinks, remote);
        let length_bytes = payload.length_bytes();
        let inject = posting.flags & flags::INJECT != 0;
        let ends = posting.ends_when_copied() && length_bytes <= COPY_LIMIT_BYTES;
        let copies = inject || ends;
        let copied_bytes = if copies { length_bytes } else { 0 };
        if !core.backlog.has_room(remote, copied_bytes) {
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
            inject: copies,
        };
        let payload = if copies {
            Payload::copy_of(payload)
        } else {
            Payload::Lent(payload.clone())
        };
        let (context, flags) = (posting.context, posting.flags);
        let ending = if ends {
            Ending::Told
        } else {
            Ending::Entry { context, flags }
        };
        core.report.count_sent(length_bytes);
        match (ends, posting.silent) {
            (false, _) => {}
            (true, true) => core.report.sent_silently(sinks),
            (true, false) => core.report.sent(sinks, op.class, context, flags),
        }
        core.queue(Queued {
            op,
            payload,
            ending,
        });
        core.send_queued_to(local, sinks, remote);
        self.watch(remote);
        Ok(())
    }
}

impl Core {
    /// Queues a send.
    pub(crate) fn queue(&mut self, queued: Queued) {
        let remote = queued.op.remote;
        if !self.backlog.holds(remote) {
            self.remotes.hold(remote);
        }
        self.has_chores = true;
        self.backlog.push(queued);
    }

    /// Posts what waits, for every remote, as far as there is room; answers how many sends went.
    pub(crate) fn send_queued<P: Peer>(&mut self, local: &mut P, sinks: &mut Sinks) -> usize {
        let mut sent_count = 0;
        let mut index = 0;
        while let Some(&remote) = self.backlog.active().get(index) {
            sent_count += self.send_queued_to(local, sinks, remote);
            // A remote without any more has left the list.
            index += usize::from(self.backlog.holds(remote));
        }
        sent_count
    }

    /// The same for one remote.
    fn send_queued_to<P: Peer>(
        &mut self,
        local: &mut P,
        sinks: &mut Sinks,
        remote: RemoteId,
    ) -> usize {
        let mut sent_count = 0;
        while let Some(first) = self.backlog.first(remote) {
            let op = match first.ending {
                Ending::Told => first.op,
                Ending::Entry { .. } => SendOp {
                    token: SendToken(u64::from(self.pending.next())),
                    ..first.op
                },
            };
            let posted = match &first.payload {
                Payload::Lent(buffer) => local.post_send(&op, buffer),
                Payload::Copied(bytes) => {
                    let scratch = self.scratch.get_or_insert_with(Scratch::take);
                    let length = scratch.write(0, bytes);
                    local.post_send(&op, &scratch.payload(length))
                }
            };
            if posted == Err(PostError::Busy) {
                return sent_count;
            }
            let Some(queued) = self.backlog.pop(remote) else {
                return sent_count;
            };
            sent_count += 1;
            self.end_queued(sinks, queued, posted);
        }
        if sent_count > 0 {
            self.remotes.release(remote);
        }
        sent_count
    }

    /// A queued send was posted, or never will be.
    fn end_queued(&mut self, sinks: &mut Sinks, queued: Queued, posted: Result<Posted, PostError>) {
        let Ending::Entry { context, flags } = queued.ending else {
            return;
        };
        let SendOp { remote, class, .. } = queued.op;
        match posted {
            Ok(Posted::Complete) => self.report.sent(sinks, class, context, flags),
            Ok(Posted::Pending) => {
                self.pending.insert(PendingSend {
                    remote,
                    class,
                    context,
                    flags,
                    silent: false,
                });
            }
            Err(PostError::Busy) => {}
            Err(PostError::Failed(why)) => fail(&mut self.report, sinks, &queued, why),
        }
    }

    /// A remote is gone, and with it all that waits for it. What was told to be complete is
    /// dropped, as on its way.
    #[cold]
    pub(crate) fn drop_queued(&mut self, sinks: &mut Sinks, remote: RemoteId, why: TransferError) {
        for queued in self.backlog.clear(remote) {
            fail(&mut self.report, sinks, &queued, why);
        }
        self.remotes.release(remote);
    }

    /// Takes back the earliest queued send of this context; false if there is none. An error entry
    /// follows.
    #[cold]
    pub(crate) fn cancel_queued(&mut self, sinks: &mut Sinks, context: usize) -> bool {
        let Some(queued) = self.backlog.cancel(context) else {
            return false;
        };
        if !self.backlog.holds(queued.op.remote) {
            self.remotes.release(queued.op.remote);
        }
        fail(&mut self.report, sinks, &queued, TransferError::Canceled);
        true
    }
}

/// Tells that a queued send failed, if somebody waits to hear of it.
#[cold]
fn fail(report: &mut Reporter, sinks: &mut Sinks, queued: &Queued, why: TransferError) {
    if let Ending::Entry { context, .. } = queued.ending {
        let error = match why {
            TransferError::Canceled => Error::Canceled,
            why => Error::Transfer(why),
        };
        report.send_failed(sinks, queued.op.class, context, error);
    }
}

impl<P: Route> Endpoint<P> {
    /// Posts what waits before the endpoint is closed, for a short while, since the user was told
    /// that it is sent. Not in a child of fork(2): its parent posts the same. Slow path.
    pub(crate) fn linger(&mut self, sinks: &mut Sinks) {
        let is_ours = self.process == std::process::id();
        let start = Instant::now();
        let mut moved = start;
        while is_ours && self.foreign.is_none() && !self.core.backlog.is_empty() {
            let before = self.core.backlog.count();
            self.make_progress(sinks);
            if self.core.backlog.count() != before {
                moved = Instant::now();
            } else if moved.elapsed() > LINGER_SILENT {
                return;
            } else {
                std::thread::yield_now();
            }
            if start.elapsed() > LINGER {
                return;
            }
        }
    }
}
