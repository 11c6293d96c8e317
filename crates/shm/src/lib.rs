// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shm route, to processes on the same host: shared regions, four protocols by size, and
//! cleaning up after dead processes.
//!
//! - *Purpose*: messages inside a machine, with one copy for long ones.
//! - *Used by*: the provider, which puts it first into the endpoint's list of routes.
//! - *Start at*: [`transport`], then `send/post.rs` (down) and `receive/take.rs` (up).
//!
//! Each endpoint owns one region (crate ring). A sender claims a slot in its receiver's region at
//! first contact, and then writes messages there by itself. The size of a message decides its
//! protocol:
//!
//! - *inline*: header and payload in one cache line of the lane, or in a few that follow one
//!   another,
//! - *eager*: header in a cell, payload in the lane's data area,
//! - *streamed*: the same in several pieces, so that both sides copy at the same time,
//! - *rendezvous* (described): the sender writes only a description, and the receiver fetches the
//!   payload when the message is matched. It uses the method that is permitted and was recently
//!   fastest: *single copy* (process_vm_readv), a copy out of the sender's mapped heap, a
//!   *cooperative copy* of both processes, or a *pipelined copy* through chunks that the receiver
//!   lends to the sender. If nothing else is under way, the first bytes come with the description
//!   as early data.
//!
//! One message down: [`transport`] -> [`send`] -> a lane of crate ring. One message up:
//! [`transport`] (a round of progress) -> [`receive`] -> the endpoint; or first [`copy`], for the
//! payload of a rendezvous.
//!
//! The modules, each of which owns its state. Each imports only modules below it:
//! - only [`transport`] uses all of them: opening, the calls of the route, rounds of progress, the
//!   end of a remote
//! - [`receive`]: cells, and messages until their receives have them
//! - [`copy`]: how the payload of a rendezvous moves
//! - [`send`]: one protocol by size, and sends that wait
//! - [`direct`]: registered memory that is accessed without its owner's help
//! - [`wait`]: rounds that find nothing, and sleep
//! - [`contact`]: all known remotes, how they are found, whether they live, and their lanes
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
mod statistics;
mod transport;
#[cfg(test)]
mod transports_for_tests;
mod tuner;
mod wait;

pub use settings::{OpenError, Settings, SingleCopy};
pub use statistics::{Count, Protocol, Statistics};
pub use transport::Transport;
