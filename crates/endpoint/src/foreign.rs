// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receives that somebody else matches: the owner of a shared receive context that libfabric's Peer API brings in.
//!
//! Such an endpoint has another owner of its transport than progress.rs has, so that the others pay nothing. An arriving
//! message is offered to the foreign owner; one that it has no receive for is kept here under a number, until the owner
//! starts or discards it. Set and called by the provider's peer module. fi_peer(3).

use std::fmt;
use std::net::SocketAddr;

use weft_contract::{
    AckToken, Class, Envelope, Landing, LandingToken, OfferId, Owner, RemoteId, SendToken,
    TransferError,
};
use weft_memory::{BytesView, UserBuffer};

use crate::completion::ReceiveEnd;
use crate::core::Filling;
use crate::domain::Domain;
use crate::error::Error;
use crate::ids::{EndpointId, FiAddr};
use crate::progress::Arrivals;
use crate::receive::Target;
use crate::route::LocalRoute;
use crate::slots::Slots;
use crate::unexpected::{Body, Kept, Unexpected};

/// What a foreign owner is told of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForeignMessage {
    /// With or without a tag.
    pub class: Class,
    /// Who sent it, as the user calls it; [`FiAddr::UNSPEC`] if it has no name.
    pub source: FiAddr,
    /// The tag; 0 for [`Class::Message`].
    pub tag: u64,
    /// Length of the whole message.
    pub length_bytes: u64,
    /// The sender's data, if any.
    pub cq_data: Option<u64>,
}

/// A receive of a foreign owner.
#[derive(Debug)]
pub struct ForeignReceive {
    /// Where the message goes.
    pub buffer: UserBuffer,
    /// Comes back in the completion.
    pub context: usize,
    /// Flags of the call.
    pub flags: u64,
}

/// What the owner says to a message.
#[derive(Debug)]
pub enum Found {
    /// It has a receive for it.
    Receive(ForeignReceive),
    /// It has queued the message under the number given.
    Unexpected,
    /// It does not take such messages: dropped.
    Refused,
}

/// The foreign owner.
pub trait ForeignReceives: Send {
    /// Offers a message, which will be kept under `number` if the owner has no receive for it. Fast path; must not
    /// call back into the domain.
    fn offer(&mut self, message: &ForeignMessage, number: u32) -> Found;
}

/// The foreign owner of an endpoint's receives, and what is kept for it.
pub(crate) struct Foreign {
    receives: Box<dyn ForeignReceives>,
    kept: Slots<Unexpected>,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Foreign")
    }
}

impl<P: LocalRoute> Domain<P> {
    /// Has `receives` match the endpoint's messages, before it is enabled. Setup.
    ///
    /// # Errors
    /// [`Error::BadState`] if the endpoint is enabled, [`Error::Busy`] if it has such an owner.
    pub fn set_foreign_receives(
        &mut self,
        endpoint: EndpointId,
        receives: Box<dyn ForeignReceives>,
    ) -> Result<(), Error> {
        let endpoint = self.closed_endpoint(endpoint)?;
        if endpoint.foreign.is_some() {
            return Err(Error::Busy);
        }
        let kept = Slots::new();
        endpoint.foreign = Some(Box::new(Foreign { receives, kept }));
        Ok(())
    }

    /// Receives the message that is kept under `number`.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn start_foreign(
        &mut self,
        endpoint: EndpointId,
        number: u32,
        receive: ForeignReceive,
    ) -> Result<(), Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let message = endpoint.take_kept(number)?;
        let end = end_of(&receive);
        let target = Target {
            buffer: receive.buffer,
            end,
            multi: None,
        };
        endpoint.deliver(&mut self.sinks, message, target);
        Ok(())
    }

    /// Drops the message that is kept under `number`.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn discard_foreign(&mut self, endpoint: EndpointId, number: u32) -> Result<(), Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let message = endpoint.take_kept(number)?;
        endpoint.drop_message(message);
        Ok(())
    }

    /// Who sent the message that is kept under `number`, as the user calls it now.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if there is none.
    pub fn foreign_source(&mut self, endpoint: EndpointId, number: u32) -> Result<FiAddr, Error> {
        let endpoint = self.endpoints.get_mut(endpoint.0).ok_or(Error::NoSuch)?;
        let foreign = endpoint.foreign.as_mut().ok_or(Error::NoSuch)?;
        let message = foreign.kept.get_mut(number).ok_or(Error::NoSuch)?;
        Ok(endpoint.core.remotes.name_of(message.kept.remote))
    }
}

impl<P: LocalRoute> crate::endpoint::Endpoint<P> {
    fn take_kept(&mut self, number: u32) -> Result<Unexpected, Error> {
        let foreign = self.foreign.as_mut().ok_or(Error::NoSuch)?;
        foreign.kept.remove(number).ok_or(Error::NoSuch)
    }
}

fn end_of(receive: &ForeignReceive) -> ReceiveEnd {
    ReceiveEnd {
        context: receive.context,
        flags: receive.flags,
        capacity_bytes: receive.buffer.length_bytes(),
        address: 0,
        release: false,
    }
}

/// The owner of a transport whose endpoint has a foreign owner of its receives.
pub(crate) struct ForeignArrivals<'a> {
    pub(crate) own: Arrivals<'a>,
    pub(crate) foreign: &'a mut Foreign,
}

impl ForeignArrivals<'_> {
    fn offer(&mut self, envelope: &Envelope) -> Found {
        let message = ForeignMessage {
            class: envelope.class,
            source: self.own.core.remotes.name_of(envelope.remote),
            tag: envelope.tag,
            length_bytes: envelope.length_bytes,
            cq_data: envelope.cq_data,
        };
        let number = self.foreign.kept.next();
        self.foreign.receives.offer(&message, number)
    }

    fn keep(&mut self, message: Unexpected) {
        self.own.core.report.counts.unexpected_count += 1;
        self.foreign.kept.insert(message);
    }
}

impl Owner for ForeignArrivals<'_> {
    fn on_message(
        &mut self,
        envelope: &Envelope,
        payload: BytesView<'_>,
        ack: Option<AckToken>,
    ) -> bool {
        if envelope.class == Class::Service {
            return self.own.on_message(envelope, payload, ack);
        }
        match self.offer(envelope) {
            Found::Receive(receive) => {
                receive.buffer.fill(0, payload);
                let core = &mut *self.own.core;
                let source = core.report.source(&core.remotes, envelope.remote);
                let end = end_of(&receive);
                core.report.received(self.own.sinks, envelope, source, &end);
                true
            }
            Found::Unexpected => {
                let body = self.own.core.pool.keep(payload);
                self.keep(Unexpected {
                    kept: Kept::of(envelope),
                    ack,
                    body,
                });
                false
            }
            Found::Refused => true,
        }
    }

    fn on_offer(&mut self, envelope: &Envelope, offer: OfferId) -> Option<Landing> {
        if envelope.class == Class::Service {
            return self.own.on_offer(envelope, offer);
        }
        match self.offer(envelope) {
            Found::Receive(receive) => {
                let filling = Filling {
                    envelope: *envelope,
                    end: end_of(&receive),
                    multi: None,
                };
                let token = self.own.core.fillings.insert(filling);
                Some(Landing {
                    token: LandingToken(u64::from(token)),
                    buffer: receive.buffer,
                })
            }
            Found::Unexpected => {
                self.keep(Unexpected {
                    kept: Kept::of(envelope),
                    ack: None,
                    body: Body::Offer(offer),
                });
                None
            }
            // Taken, and dropped: nothing is under way by this name.
            Found::Refused => Some(Landing {
                token: LandingToken(u64::from(u32::MAX)),
                buffer: UserBuffer::empty(),
            }),
        }
    }

    fn on_landed(&mut self, landing: LandingToken, outcome: Result<(), TransferError>) {
        self.own.on_landed(landing, outcome);
    }

    fn on_sent(&mut self, token: SendToken, outcome: Result<(), TransferError>) {
        self.own.on_sent(token, outcome);
    }

    #[cold]
    fn on_remote_lost(&mut self, remote: RemoteId, why: TransferError) {
        self.foreign.kept.for_each_mut(|message| {
            if message.kept.remote == remote && matches!(message.body, Body::Offer(_)) {
                message.body = Body::Void(why);
            }
        });
        self.own.on_remote_lost(remote, why);
    }

    #[cold]
    fn remote_at(&mut self, address: SocketAddr) -> RemoteId {
        self.own.remote_at(address)
    }
}
