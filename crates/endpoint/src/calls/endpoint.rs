// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls on one endpoint that move data: messages, one-sided operations, and what a shared
//! receive context asks for. fi_msg(3), fi_tagged(3), fi_rma(3), fi_atomic(3), fi_peer(3).

use weft_contract::Route;
use weft_memory::UserBuffer;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::flags;
use crate::ids::FiAddr;
use crate::one_sided::access::{Access, Atomic};
use crate::one_sided::initiator::Initiator;
use crate::receive::shared::SharedReceive;
use crate::receive::unexpected::Unexpected;
use crate::send::backlog::COPY_LIMIT_BYTES;
use crate::send::sending::Posting;
use crate::settings::{DomainSettings, Inject, Receive, Send};
use crate::shared_objects::SharedObjects;

/// One endpoint, for one call.
pub struct EndpointCalls<'a, P> {
    pub(crate) endpoint: &'a mut Endpoint<P>,
    pub(crate) objects: &'a mut SharedObjects,
    pub(crate) settings: &'a DomainSettings,
}

impl<P: Route> EndpointCalls<'_, P> {
    /// Sends a message. The buffer stays ours until the completion, unless the flags have
    /// FI_INJECT. A message for which its route has no room is queued. Fast path for small
    /// messages.
    ///
    /// # Errors
    /// [`Error::Again`] when [`SEND_DEPTH`](crate::SEND_DEPTH) messages to the remote wait, or the
    /// memory that they may take is used up: nothing was sent; make progress and call again.
    /// [`Error::Invalid`] if `to` names no remote, [`Error::BadState`] before the endpoint is
    /// enabled, [`Error::TooLong`] beyond the inject limit under FI_INJECT, and beyond 1 TiB,
    /// [`Error::Transfer`] if the remote is gone or cannot be reached.
    #[inline(always)]
    pub fn send(self, to: FiAddr, send: &Send, payload: &UserBuffer) -> Result<(), Error> {
        let flags = send.flags.unwrap_or(self.endpoint.settings.transmit_flags);
        if flags & (flags::INJECT | flags::FENCE) != 0 {
            let limit_bytes = self.settings.inject_limit_bytes;
            if flags & flags::INJECT != 0 && payload.length_bytes() > limit_bytes {
                return Err(Error::TooLong);
            }
            self.endpoint.core.heed_fence(to, flags)?;
        }
        let posting = Posting {
            class: send.class,
            tag: send.tag,
            cq_data: send.cq_data,
            flags,
            context: send.context,
            silent: false,
        };
        let completions = &mut self.objects.completions;
        if flags & flags::INJECT != 0 && payload.length_bytes() > COPY_LIMIT_BYTES {
            return self.endpoint.inject_long(completions, to, posting, payload);
        }
        self.endpoint.send(completions, to, posting, payload)
    }

    /// Sends a short message. On return the buffer belongs to the user again. If the send succeeds,
    /// the queue gets no entry, but counters count it. Fast path.
    ///
    /// # Errors
    /// As [`Self::send`].
    #[inline(always)]
    pub fn inject(self, to: FiAddr, inject: &Inject, payload: &UserBuffer) -> Result<(), Error> {
        if payload.length_bytes() > self.settings.inject_limit_bytes {
            return Err(Error::TooLong);
        }
        let posting = Posting {
            class: inject.class,
            tag: inject.tag,
            cq_data: inject.cq_data,
            flags: flags::INJECT,
            context: 0,
            silent: true,
        };
        let completions = &mut self.objects.completions;
        if payload.length_bytes() > COPY_LIMIT_BYTES {
            return self.endpoint.inject_long(completions, to, posting, payload);
        }
        self.endpoint.send(completions, to, posting, payload)
    }

    /// Posts a receive, or does what its flags say: FI_MULTI_RECV, FI_PEEK, FI_CLAIM, FI_DISCARD.
    /// The buffer belongs to the endpoint until the completion; peeks and discards take an empty
    /// one. The function `buffer` makes the buffer where it is needed, so that it is written only
    /// there. Fast path.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `source` names no remote, flags contradict each other, or FI_CLAIM
    /// comes without a message claimed under the same context; [`Error::BadState`] before the
    /// endpoint is enabled; [`Error::NotBound`] for a peek without a receive queue to answer on.
    #[inline(always)]
    pub fn receive(
        self,
        receive: &Receive,
        buffer: impl FnOnce() -> UserBuffer,
    ) -> Result<(), Error> {
        self.endpoint.receive(self.objects, receive, buffer)
    }

    /// Cancels the earliest receive posted under `context`, or else the earliest send that waits
    /// for room; an error entry [`Error::Canceled`] follows. Other sends, and receives that were
    /// matched, cannot be canceled. Slow path.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn cancel(self, context: usize) -> Result<(), Error> {
        let completions = &mut self.objects.completions;
        self.endpoint.core.cancel(completions, context)
    }

    /// Makes progress without waiting; returns how many events there were.
    #[inline]
    pub fn progress(self) -> usize {
        self.endpoint.progress(self.objects)
    }

    /// Writes to a remote's registered memory (fi_write and its forms). The payload stays ours
    /// until the completion, unless the access is an inject. Fast path for short payload.
    ///
    /// # Errors
    /// [`Error::Again`] when there is no room now, or FI_FENCE must wait: nothing was sent; make
    /// progress and call again. [`Error::Invalid`] if `to` names no remote or the ranges are not as
    /// long as the payload, [`Error::BadState`] before the endpoint is enabled, [`Error::TooLong`]
    /// beyond the inject limit, [`Error::Transfer`] if the remote is gone or cannot be reached.
    /// What the target refuses is told in the completion.
    pub fn write(self, access: &Access<'_>, payload: &UserBuffer) -> Result<(), Error> {
        let limit_bytes = self.settings.inject_limit_bytes;
        let initiator = self.initiator(access, payload.length_bytes())?;
        initiator.write(payload, limit_bytes)
    }

    /// Reads a remote's registered memory (fi_read and its forms) into `target`.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn read(self, access: &Access<'_>, target: UserBuffer) -> Result<(), Error> {
        let initiator = self.initiator(access, target.length_bytes())?;
        initiator.read(target)
    }

    /// Changes elements of a remote's registered memory (fi_atomic). With `result`, stores their
    /// former values there (fi_fetch_atomic, fi_compare_atomic).
    ///
    /// # Errors
    /// As [`Self::write`]; and [`Error::Unsupported`] if the operation has no meaning for the type
    /// or takes a result or comparands that are not given, [`Error::Invalid`] if buffers differ in
    /// length, [`Error::TooLong`] beyond [`ATOMIC_LIMIT_BYTES`](crate::ATOMIC_LIMIT_BYTES).
    pub fn atomic(
        self,
        access: &Access<'_>,
        atomic: &Atomic<'_>,
        result: Option<UserBuffer>,
    ) -> Result<(), Error> {
        let length_bytes = atomic.check(access, result.as_ref())?;
        let initiator = self.initiator(access, length_bytes)?;
        initiator.atomic(atomic, result)
    }

    /// Completes `receive` with the message that is kept under `number` for the shared receive
    /// context.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn start_kept(self, number: u32, receive: SharedReceive) -> Result<(), Error> {
        let message = take_kept(self.endpoint, number)?;
        let route = self.endpoint.route.as_mut().ok_or(Error::BadState)?;
        let core = &mut self.endpoint.core;
        let completions = &mut self.objects.completions;
        let delivery = &mut core.receiving.delivery;
        delivery.deliver(
            route,
            &core.remotes,
            completions,
            message,
            receive.destination(),
        );
        Ok(())
    }

    /// Drops the message that is kept under `number`.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn discard_kept(self, number: u32) -> Result<(), Error> {
        let message = take_kept(self.endpoint, number)?;
        let route = self.endpoint.route.as_mut().ok_or(Error::BadState)?;
        let delivery = &mut self.endpoint.core.receiving.delivery;
        delivery.drop_message(route, message);
        Ok(())
    }

    /// The sender of the message that is kept under `number`, by the name that it has in the user's
    /// address vector now.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn source_of_kept(self, number: u32) -> Result<FiAddr, Error> {
        let shared = self.endpoint.shared.as_ref().ok_or(Error::NoSuch)?;
        Ok(self.endpoint.core.remotes.name_of(shared.source(number)?))
    }
}

impl<'a, P: Route> EndpointCalls<'a, P> {
    fn initiator(
        self,
        access: &'a Access<'a>,
        length_bytes: usize,
    ) -> Result<Initiator<'a, P>, Error> {
        let completions = &mut self.objects.completions;
        Initiator::new(self.endpoint, completions, access, length_bytes)
    }
}

/// Takes out the message that is kept under `number` for the shared receive context.
fn take_kept<P>(endpoint: &mut Endpoint<P>, number: u32) -> Result<Unexpected, Error> {
    let shared = endpoint.shared.as_mut().ok_or(Error::NoSuch)?;
    shared.take(number)
}
