// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The types and traits between the endpoint (the owner) and its routes. This crate has no
//! behaviour of its own.
//!
//! - *Purpose*: endpoint and routes know each other only through this crate.
//! - *Used by*: endpoint and matching above it; shm, udp and the routes of tests below it.
//! - *Start at*: [`peer`], the two traits that every message passes.
//!
//! A message is described once, by [`SendOp`] on its way down and by [`Envelope`] on its way up.
//! The owner keeps what all routes share: matching, completion queues, addresses. A transport moves
//! bytes. The two meet in two traits, named as in fi_peer(3):
//!
//! - [`Peer`] is what the owner calls: post a send, accept or discard an offered message, make
//!   progress.
//! - [`Owner`] is what a transport calls back while it makes progress: a message arrived, a send is
//!   done.
//!
//! Three more traits say what else the endpoint needs of a route:
//!
//! - [`Route`]: to open, to know remotes and to notice their death; every route has it.
//! - [`Sleep`]: to wake a thread that waits on a descriptor; a route without one keeps the
//!   defaults.
//! - [`DirectAccess`]: access to memory of remotes without their help; a route that lacks it says
//!   so.
//!
//! A transport never names the endpoint. It gets `&mut impl Owner` in [`Peer::progress`]. So one
//! statically dispatched call matches an arriving message, copies it directly into the user's
//! buffer and completes it on the shared queue, without a bounce buffer.
//!
//! Modules, in the order in which a message passes them: [`send`] (down), [`peer`] (the traits),
//! [`envelope`] (up), [`remote`] (which process the other one is), [`error`] (how a transfer can
//! fail). Others: [`route`] (what else the endpoint asks of a route), [`direct`] (memory that is
//! accessed without a message) and [`returned`] (sends that take another route).
#![forbid(unsafe_code)]

pub mod direct;
pub mod envelope;
pub mod error;
pub mod peer;
pub mod remote;
pub mod returned;
pub mod route;
pub mod send;

pub use direct::{DirectAccess, DirectOp, NoDirectAccess, Range, Registration};
pub use envelope::{Class, Envelope};
pub use error::{PostError, TransferError};
pub use peer::{
    AckToken, Landing, LandingToken, OfferId, Owner, Peer, Posted, ROUTE_ID_BITS, Readiness,
};
pub use remote::RemoteId;
pub use returned::{Returned, TurnedAway};
pub use route::{Closing, Place, Route, RouteError, RouteErrorKind, Sleep};
pub use send::{CompletionLevel, MESSAGE_LIMIT_BYTES, SendOp, SendToken};
