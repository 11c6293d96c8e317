// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All of an endpoint that its transport's callbacks change, apart from the transport itself, so
//! that both can be borrowed at once: the remotes, and one part for each duty.
//!
//! Changed by endpoint.rs from above, by arrivals.rs from below.

use weft_contract::{Peer, RemoteId, Route, TransferError};

use crate::completion::completions::{BoundQueue, Completions};
use crate::completion::receive::ReceiveReports;
use crate::endpoint::watches::Watches;
use crate::error::Error;
use crate::flags;
use crate::ids::{CounterId, FiAddr, QueueId};
use crate::one_sided::service::Service;
use crate::one_sided::state::OneSided;
use crate::receive::receiving::Receiving;
use crate::remotes::Remotes;
use crate::send::sending::Sending;
use crate::settings::QueueBinding;
use crate::shared_objects::SharedObjects;
use crate::statistics::Counts;

/// The parts.
pub(crate) struct Core {
    pub(crate) remotes: Remotes,
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
    /// Made at the first one-sided operation, ours or a remote's.
    pub(crate) one_sided: Option<Box<OneSided>>,
    /// Rounds of progress have more to do than to ask the transport: there are one-sided
    /// operations, or sends that wait for room.
    pub(super) has_chores: bool,
}

impl Core {
    pub(super) fn new(names_source: bool) -> Self {
        Self {
            remotes: Remotes::default(),
            sending: Sending::new(),
            receiving: Receiving::new(ReceiveReports::new(names_source)),
            one_sided: None,
            has_chores: false,
        }
    }

    /// Ends the watch over remotes for which nothing waits any more.
    #[cold]
    pub(super) fn review<P: Route>(&mut self, watches: &mut Watches, route: &mut P) {
        let Self {
            remotes,
            sending,
            receiving,
            one_sided,
            ..
        } = self;
        watches.review(route, remotes, |remote| {
            let one_sided = one_sided.as_ref();
            receiving.names(remote)
                || sending.holds(remote)
                || one_sided.is_some_and(|one_sided| one_sided.awaits(remote))
        });
    }

    /// Reports on a queue from now on.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the binding names neither direction, [`Error::Busy`] if one of them
    /// has a queue.
    pub(crate) fn bind_queue(
        &mut self,
        queue: QueueId,
        binding: QueueBinding,
    ) -> Result<(), Error> {
        let transmit = &mut self.sending.reports.queue;
        let receive = &mut self.receiving.delivery.reports.queue;
        if !binding.transmit && !binding.receive {
            return Err(Error::Invalid);
        }
        if binding.transmit && transmit.is_bound() || binding.receive && receive.is_bound() {
            return Err(Error::Busy);
        }
        let bound = BoundQueue::new(queue, binding.selective);
        if binding.transmit {
            *transmit = bound;
        }
        if binding.receive {
            *receive = bound;
        }
        Ok(())
    }

    /// Counts events on a counter from now on.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no event in `events`, or one that cannot be counted;
    /// [`Error::Busy`] if one of them has a counter already.
    pub(crate) fn bind_counter(&mut self, counter: CounterId, events: u64) -> Result<(), Error> {
        let transmit = &mut self.sending.reports.counters;
        let receive = &mut self.receiving.delivery.reports.counters;
        if events == 0 || events & !(transmit.events() | receive.events()) != 0 {
            return Err(Error::Invalid);
        }
        if transmit.is_bound(events) || receive.is_bound(events) {
            return Err(Error::Busy);
        }
        transmit.bind(counter, events);
        receive.bind(counter, events);
        Ok(())
    }

    /// What was counted so far.
    pub(crate) fn counts(&self) -> Counts {
        let sent = self.sending.reports.counts;
        let received = self.receiving.delivery.reports.counts;
        Counts {
            sent_count: sent.sent_count,
            sent_bytes: sent.sent_bytes,
            error_count: sent.error_count + received.error_count,
            ..received
        }
    }

    /// Whether an operation to `remote` has not ended yet. Slow path.
    #[cold]
    pub(crate) fn is_under_way(&self, remote: RemoteId) -> bool {
        let one_sided = self.one_sided.as_ref();
        one_sided.is_some_and(|one_sided| one_sided.awaits(remote))
            || self.sending.is_under_way(remote)
    }

    /// Sends a fenced operation back while earlier ones to the same remote are under way
    /// (FI_FENCE).
    ///
    /// # Errors
    /// [`Error::Again`] then; [`Error::Invalid`] if `to` names no remote.
    #[cold]
    pub(crate) fn heed_fence(&self, to: FiAddr, flags: u64) -> Result<(), Error> {
        let remote = self.remotes.named(to).ok_or(Error::Invalid)?;
        if flags & flags::FENCE != 0 && self.is_under_way(remote) {
            return Err(Error::Again);
        }
        Ok(())
    }

    /// The state of one-sided operations, made now if there is none yet.
    #[inline]
    pub(crate) fn begin_one_sided(&mut self) -> &mut OneSided {
        self.has_chores = true;
        self.one_sided.get_or_insert_with(OneSided::new)
    }

    /// What hears a service message.
    pub(super) fn service<'a>(&'a mut self, objects: &'a mut SharedObjects) -> Service<'a> {
        self.has_chores = true;
        Service {
            one_sided: self.one_sided.get_or_insert_with(OneSided::new),
            transmit: &mut self.sending.reports,
            receive: &self.receiving.delivery.reports,
            remotes: &self.remotes,
            completions: &mut objects.completions,
            regions: &objects.regions,
        }
    }

    /// Posts sends that waited for room, and what one-sided operations have gathered; answers how
    /// many went.
    #[inline(never)]
    pub(super) fn do_chores<P: Peer>(
        &mut self,
        route: &mut P,
        completions: &mut Completions,
    ) -> usize {
        let sending = &mut self.sending;
        let mut count = 0;
        // Answers first: who queues sends without end must not keep its remotes from theirs.
        if let Some(one_sided) = &mut self.one_sided
            && one_sided.has_waiting()
        {
            count += one_sided.send_waiting(route, &mut sending.reports, completions);
        }
        if sending.has_queued() {
            count += sending.post_queued(route, &mut self.remotes, completions);
        }
        self.has_chores = self.one_sided.is_some() || sending.has_queued();
        count
    }

    /// A remote is gone: all that waits for it ends.
    #[cold]
    pub(super) fn remote_lost(
        &mut self,
        completions: &mut Completions,
        remote: RemoteId,
        why: TransferError,
    ) {
        let remotes = &mut self.remotes;
        remotes.stop_watching(remote);
        self.sending.remote_lost(remotes, completions, remote, why);
        if let Some(one_sided) = &mut self.one_sided {
            one_sided.remote_lost(&mut self.sending.reports, completions, remote, why);
        }
        self.receiving.remote_lost(completions, remote, why);
    }

    /// Takes back the earliest receive posted under `context`, or else the earliest send that waits
    /// for room.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub(crate) fn cancel(
        &mut self,
        completions: &mut Completions,
        context: usize,
    ) -> Result<(), Error> {
        let Self {
            remotes,
            sending,
            receiving,
            ..
        } = self;
        if receiving.cancel(completions, context) || sending.cancel(remotes, completions, context) {
            return Ok(());
        }
        Err(Error::NoSuch)
    }
}
