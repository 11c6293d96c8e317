// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receiving: every fi_recv and fi_trecv call comes here, fi_cancel too. fi_msg(3), fi_tagged(3).
//!
//! Called by the provider. A receive takes the earliest unexpected message that it matches, or is
//! posted. Calls multi_receive.rs and peek.rs for the receives that are more than that.

use weft_contract::{Class, Envelope, Landing, LandingToken, Route, TransferError};
use weft_matching::{UnexpectedId, Want};
use weft_memory::{BytesView, UserBuffer};

use crate::completion::{ReceiveEnd, Sinks};
use crate::core::{Core, Filling, Posted};
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::flags;
use crate::ids::{EndpointId, FiAddr};
use crate::multi_buffer::{MultiId, Release};
use crate::settings::Receive;
use crate::unexpected::{Body, Unexpected};

/// Flags that make more of a receive than one buffer for one message.
const SPECIAL: u64 = flags::MULTI_RECV | flags::PEEK | flags::CLAIM | flags::DISCARD;

/// Where a message goes that was unexpected.
pub(crate) struct Target {
    pub(crate) buffer: UserBuffer,
    pub(crate) end: ReceiveEnd,
    pub(crate) multi: Option<MultiId>,
}

impl<P: Route> Domain<P> {
    /// Posts a receive, or does what its flags say: FI_MULTI_RECV, FI_PEEK, FI_CLAIM, FI_DISCARD.
    /// The buffer stays ours until the completion; peeks and discards take an empty one. Fast path.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `source` names no remote, flags contradict each other, or FI_CLAIM
    /// comes without a message claimed under the same context; [`Error::BadState`] before the
    /// endpoint is enabled; [`Error::NotBound`] for a peek without a receive queue to answer on.
    #[inline]
    pub fn receive(
        &mut self,
        endpoint: EndpointId,
        receive: &Receive,
        buffer: UserBuffer,
    ) -> Result<(), Error> {
        self.receive_into(endpoint, receive, || buffer)
    }

    /// The same with a buffer that is made where it is needed, so that it is written only there.
    /// Fast path.
    ///
    /// # Errors
    /// As [`Domain::receive`].
    #[inline(always)]
    pub fn receive_into(
        &mut self,
        endpoint: EndpointId,
        receive: &Receive,
        buffer: impl FnOnce() -> UserBuffer,
    ) -> Result<(), Error> {
        let number = endpoint;
        let endpoint = self.endpoints.get_mut(number.0).ok_or(Error::NoSuch)?;
        let flags = receive.flags.unwrap_or(endpoint.settings.receive_flags);
        if flags & SPECIAL != 0 {
            let receive = *receive;
            return self.receive_specially(number, &receive, flags, buffer());
        }
        let want = endpoint.want(receive)?;
        let context = receive.context;
        let matcher = endpoint.core.matching.of(receive.class);
        if matcher.unexpected_count() > 0
            && let Some(id) = matcher.find_unexpected(want)
        {
            let posted = Posted::whole(buffer(), context, flags);
            endpoint.receive_unexpected(&mut self.sinks, receive.class, id, posted);
        } else {
            endpoint.post(receive.class, want, Posted::whole(buffer(), context, flags));
        }
        Ok(())
    }

    #[cold]
    fn receive_specially(
        &mut self,
        endpoint: EndpointId,
        receive: &Receive,
        flags: u64,
        buffer: UserBuffer,
    ) -> Result<(), Error> {
        const CLAIM_AND_DISCARD: u64 = flags::CLAIM | flags::DISCARD;
        match flags & SPECIAL {
            flags::MULTI_RECV => self.receive_many(endpoint, receive, flags, buffer),
            flags::CLAIM | CLAIM_AND_DISCARD => {
                self.receive_claimed(endpoint, receive, flags, buffer)
            }
            special if special & flags::PEEK != 0 => {
                self.peek(endpoint, receive, special & !flags::PEEK)
            }
            _ => Err(Error::Invalid),
        }
    }

    /// Cancels the earliest receive posted under `context`, or else the earliest send that waits
    /// for room; an error entry [`Error::Canceled`] follows. Other sends, and receives that were
    /// matched, cannot be canceled. Slow path.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn cancel(&mut self, endpoint: EndpointId, context: usize) -> Result<(), Error> {
        let core = &mut self
            .endpoints
            .get_mut(endpoint.0)
            .ok_or(Error::NoSuch)?
            .core;
        for class in [Class::Tagged, Class::Message] {
            if let Some(posted) = core
                .matching
                .of(class)
                .cancel(|posted| posted.context == context)
            {
                core.abandon(&mut self.sinks, class, &posted, Error::Canceled);
                return Ok(());
            }
        }
        if core.cancel_queued(&mut self.sinks, context) {
            return Ok(());
        }
        Err(Error::NoSuch)
    }
}

impl Target {
    /// A receive for one message.
    #[inline]
    pub(crate) fn whole(posted: Posted) -> Self {
        let end = ReceiveEnd::whole(&posted);
        Self {
            buffer: posted.buffer,
            end,
            multi: None,
        }
    }
}

impl ReceiveEnd {
    /// The end of a message that fills a receive of its own. Fast path.
    #[inline(always)]
    pub(crate) fn whole(posted: &Posted) -> Self {
        Self {
            context: posted.context,
            flags: posted.flags,
            capacity_bytes: posted.buffer.length_bytes(),
            address: 0,
            release: false,
        }
    }
}

impl<P: Route> Endpoint<P> {
    /// What a receive asks for, in matching's words. Fast path.
    ///
    /// # Errors
    /// [`Error::BadState`] and [`Error::Invalid`] as for [`Domain::receive`].
    #[inline(always)]
    pub(crate) fn want(&self, receive: &Receive) -> Result<Want, Error> {
        if self.local.is_none() {
            return Err(Error::BadState);
        }
        let source = if receive.source == FiAddr::UNSPEC || !self.settings.directed_receive {
            None
        } else {
            Some(
                self.core
                    .remotes
                    .named(receive.source)
                    .ok_or(Error::Invalid)?,
            )
        };
        Ok(Want {
            source,
            tag: receive.tag,
            ignore: receive.ignore,
        })
    }

    /// Posts a receive that no unexpected message matches; has its source watched, so that it does
    /// not wait for the dead. Fast path.
    #[inline(always)]
    pub(crate) fn post(&mut self, class: Class, want: Want, posted: Posted) {
        if let Some(source) = want.source {
            self.watch(source);
        }
        self.core.matching.of(class).post(want, posted);
    }

    /// Ends a receive with an unexpected message.
    #[inline(never)]
    fn receive_unexpected(
        &mut self,
        sinks: &mut Sinks,
        class: Class,
        id: UnexpectedId,
        posted: Posted,
    ) {
        let core = &mut self.core;
        let matcher = core.matching.of(class);
        let Some(message) = matcher.unexpected_mut(id) else {
            return;
        };
        let (Body::Heap(bytes), None) = (&mut message.body, message.ack) else {
            return self.receive_remaining(sinks, class, id, posted);
        };
        // Used where it lies, as nearly all are.
        let envelope = message.kept.envelope();
        let bytes = std::mem::take(bytes);
        matcher.discard_unexpected(id);
        let length_bytes = bytes.len().min(envelope.length_bytes as usize);
        posted
            .buffer
            .fill(0, BytesView::from_slice(&bytes[..length_bytes]));
        core.pool.release_bytes(bytes);
        let source = core.report.source(&core.remotes, envelope.remote);
        core.report
            .received(sinks, &envelope, source, &ReceiveEnd::whole(&posted));
    }

    /// The same with one that is not here yet, or whose sender waits for an answer.
    #[inline(never)]
    fn receive_remaining(
        &mut self,
        sinks: &mut Sinks,
        class: Class,
        id: UnexpectedId,
        posted: Posted,
    ) {
        if let Some((.., message)) = self.core.matching.of(class).remove_unexpected(id) {
            self.deliver(sinks, message, Target::whole(posted));
        }
    }

    /// Ends an unexpected message in the receive that it was kept for.
    pub(crate) fn deliver(&mut self, sinks: &mut Sinks, message: Unexpected, target: Target) {
        let Unexpected { kept, ack, body } = message;
        let envelope = kept.envelope();
        let Target { buffer, end, multi } = target;
        let Some(local) = &mut self.local else { return };
        let filling = Filling {
            envelope,
            end,
            multi,
        };
        match body {
            Body::Offer(offer) => {
                let token = LandingToken(u64::from(self.core.fillings.insert(filling)));
                local.accept(offer, Landing { token, buffer });
            }
            Body::Void(why) => self.core.finish(sinks, filling, Err(why)),
            body => {
                body.fill(&buffer, 0, envelope.length_bytes);
                self.core.pool.release(body);
                self.core.finish(sinks, filling, Ok(()));
                if let Some(ack) = ack {
                    local.acknowledge(ack);
                }
            }
        }
    }

    /// Drops an unexpected message; its sender sees it as delivered.
    pub(crate) fn drop_message(&mut self, message: Unexpected) {
        let Some(local) = &mut self.local else { return };
        if let Body::Offer(offer) = message.body {
            local.discard(offer);
        } else if let Some(ack) = message.ack {
            local.acknowledge(ack);
        }
        self.core.pool.release(message.body);
    }
}

impl Core {
    /// Ends a matched receive. Fast path.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        sinks: &mut Sinks,
        filling: Filling,
        outcome: Result<(), TransferError>,
    ) {
        let Filling {
            envelope,
            end,
            multi,
        } = filling;
        match multi {
            None => self.report_end(sinks, &envelope, &end, outcome),
            Some(multi) => {
                let release = self.multis.end_part(multi);
                let now = matches!(release, Release::Now);
                self.report_end(
                    sinks,
                    &envelope,
                    &ReceiveEnd {
                        release: now,
                        ..end
                    },
                    outcome,
                );
                if let Release::Failed(error) = release {
                    self.report.receive_failed(
                        sinks,
                        envelope.class,
                        &ReceiveEnd {
                            release: true,
                            ..end
                        },
                        error,
                    );
                }
            }
        }
    }

    #[inline]
    fn report_end(
        &mut self,
        sinks: &mut Sinks,
        envelope: &Envelope,
        end: &ReceiveEnd,
        outcome: Result<(), TransferError>,
    ) {
        let source = self.report.source(&self.remotes, envelope.remote);
        match outcome {
            Ok(()) => self.report.received(sinks, envelope, source, end),
            Err(why) => {
                let entry = self.report.entry(envelope, source, end);
                self.report
                    .receive_broken(sinks, entry, Error::Transfer(why));
            }
        }
    }

    /// Ends a posted receive that was taken back, without a message. Slow path.
    pub(crate) fn abandon(
        &mut self,
        sinks: &mut Sinks,
        class: Class,
        posted: &Posted,
        error: Error,
    ) {
        let end = ReceiveEnd::whole(posted);
        match posted.multi {
            None => self.report.receive_failed(sinks, class, &end, error),
            Some(multi) => {
                if self.multis.fail(multi, error) {
                    self.report.receive_failed(
                        sinks,
                        class,
                        &ReceiveEnd {
                            release: true,
                            ..end
                        },
                        error,
                    );
                }
            }
        }
    }
}
