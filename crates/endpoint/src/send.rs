// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending: every fi_send, fi_tsend and inject call comes here. fi_msg(3), fi_tagged(3).
//!
//! Called by the provider; calls remotes.rs for the remote and its route for the rest.

use weft_contract::{CompletionLevel, PostError, Posted, RemoteId, Route, SendOp, SendToken};
use weft_memory::UserBuffer;

use crate::core::PendingSend;
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::error::{Error, refused};
use crate::flags::{self, level};
use crate::ids::{EndpointId, FiAddr};
use crate::later::Posting;
use crate::settings::{Inject, Send};

impl<P: Route> Endpoint<P> {
    /// The remote that the user calls `to`, and its transport; none if a send cannot go straight
    /// there. Fast path.
    #[inline(always)]
    fn route(&mut self, to: FiAddr) -> Option<(RemoteId, &mut P)> {
        let local = self.local.as_mut()?;
        Some((self.core.remotes.open(to)?, local))
    }

    /// Sends a fenced operation back while earlier ones to the same remote are under way
    /// (FI_FENCE).
    #[cold]
    fn heed_fence(&self, to: FiAddr, flags: u64) -> Result<(), Error> {
        let remote = self.core.remotes.named(to).ok_or(Error::Invalid)?;
        if flags & flags::FENCE != 0 && self.core.is_under_way(remote) {
            return Err(Error::Again);
        }
        Ok(())
    }
}

/// A send for which there was no room, as it is queued.
#[inline(always)]
fn posting(send: &Send, flags: u64) -> Posting {
    Posting {
        class: send.class,
        tag: send.tag,
        cq_data: send.cq_data,
        flags,
        context: send.context,
        silent: false,
    }
}

/// The same of an inject.
#[inline(always)]
fn injected(inject: &Inject) -> Posting {
    Posting {
        class: inject.class,
        tag: inject.tag,
        cq_data: inject.cq_data,
        flags: flags::INJECT,
        context: 0,
        silent: true,
    }
}

impl<P: Route> Domain<P> {
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
    pub fn send(
        &mut self,
        endpoint: EndpointId,
        to: FiAddr,
        send: &Send,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let flags = send.flags.unwrap_or(endpoint.settings.transmit_flags);
        let inject = flags & flags::INJECT != 0;
        if flags & (flags::INJECT | flags::FENCE) != 0 {
            let limit_bytes = self.settings.inject_limit_bytes;
            if inject && payload.length_bytes() > limit_bytes {
                return Err(Error::TooLong);
            }
            endpoint.heed_fence(to, flags)?;
        }
        let token = endpoint.core.pending.next();
        let Some((remote, local)) = endpoint.route(to) else {
            return endpoint.send_behind(&mut self.sinks, to, posting(send, flags), payload);
        };
        let op = SendOp {
            remote,
            class: send.class,
            tag: send.tag,
            cq_data: send.cq_data,
            level: level(flags),
            token: SendToken(u64::from(token)),
            inject,
        };
        let posted = match local.post_send(&op, payload) {
            Ok(posted) => posted,
            Err(PostError::Busy) => {
                return endpoint.send_later(&mut self.sinks, remote, posting(send, flags), payload);
            }
            Err(failed) => return Err(refused(failed)),
        };
        let core = &mut endpoint.core;
        core.report.count_sent(payload.length_bytes());
        match posted {
            Posted::Complete => core
                .report
                .sent(&mut self.sinks, send.class, send.context, flags),
            Posted::Pending => {
                let (class, context) = (send.class, send.context);
                core.pending.insert(PendingSend {
                    remote,
                    class,
                    context,
                    flags,
                    silent: false,
                });
            }
        }
        Ok(())
    }

    /// Sends a short message whose buffer is the user's again on return; no entry is written on the
    /// queue if it succeeds, but counters count. Fast path.
    ///
    /// # Errors
    /// As [`Domain::send`].
    #[inline(always)]
    pub fn inject(
        &mut self,
        endpoint: EndpointId,
        to: FiAddr,
        inject: &Inject,
        payload: &UserBuffer,
    ) -> Result<(), Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        if payload.length_bytes() > self.settings.inject_limit_bytes {
            return Err(Error::TooLong);
        }
        let token = endpoint.core.pending.next();
        let Some((remote, local)) = endpoint.route(to) else {
            return endpoint.send_behind(&mut self.sinks, to, injected(inject), payload);
        };
        let op = SendOp {
            remote,
            class: inject.class,
            tag: inject.tag,
            cq_data: inject.cq_data,
            level: CompletionLevel::Inject,
            token: SendToken(u64::from(token)),
            inject: true,
        };
        let posted = match local.post_send(&op, payload) {
            Ok(posted) => posted,
            Err(PostError::Busy) => {
                return endpoint.send_later(&mut self.sinks, remote, injected(inject), payload);
            }
            Err(failed) => return Err(refused(failed)),
        };
        let core = &mut endpoint.core;
        core.report.count_sent(payload.length_bytes());
        match posted {
            Posted::Complete => core.report.sent_silently(&mut self.sinks),
            Posted::Pending => {
                let class = inject.class;
                core.pending.insert(PendingSend {
                    remote,
                    class,
                    context: 0,
                    flags: 0,
                    silent: true,
                });
            }
        }
        Ok(())
    }
}
