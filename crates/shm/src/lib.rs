// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The route to processes on the same host: shared regions, four protocols by size, and care for
//! the dead.
//!
//! - *Purpose*: messages inside a machine, with one copy for long ones.
//! - *Used by*: the provider, which puts it first into the endpoint's list of routes.
//! - *Start at*: [`transport`], then `send/post.rs` (down) and `receive/take.rs` (up).
//!
//! Each endpoint owns one region (crate ring); a sender claims a slot in its receiver's region at
//! first contact and from then on writes messages there by itself. By size a message is
//!
//! - *inline*: header and payload in one cache line of the lane, or in a few that follow one
//!   another,
//! - *eager*: header in a cell, payload in the lane's data area,
//! - *streamed*: the same in several pieces, so that both sides copy at the same time,
//! - *described* (rendezvous): the receiver fetches it when it is matched, by *single copy*
//!   (process_vm_readv), straight out of the sender's heap where that can be mapped, by a
//!   *cooperative copy* of both processes, or by a *pipelined copy* through chunks it lends to the
//!   sender, whichever is permitted and has lately been faster here. Where nothing else is under
//!   way its first bytes come along as early data.
//!
//! The rooms, each of which owns its state. Imports go from the first to the last of them:
//! - [`transport`] alone sees all of them: opening, the face of the route, rounds of progress, the
//!   end of a remote
//! - [`receive`]: cells, and messages until their receives have them
//! - [`copy`]: how the payload of described messages moves
//! - [`send`]: one protocol by size, and what waits
//! - [`direct`]: registered memory that is accessed without its owner's help
//! - [`wait`]: rounds that find nothing, and sleep
//! - [`contact`]: everybody we know, how they are found, whether they live, and their lanes
//! - [`tuner`]: which protocol, copy method or kind of stores is fastest
//! - [`protocol`]: cells; the tables by which a protocol and a copy method are selected
//! - [`statistics`], [`settings`]
//!
//! The formats are specified in docs/shm-layout.md.
#![forbid(unsafe_code)]

mod contact;
mod copy;
mod direct;
pub mod protocol;
mod receive;
mod send;
mod settings;
#[cfg(test)]
mod sink;
mod statistics;
mod transport;
mod tuner;
mod wait;

pub use settings::{OpenError, Settings, SingleCopy};
pub use statistics::{Count, Protocol, Statistics};
pub use transport::Transport;
