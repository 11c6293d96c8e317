// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The route to processes on the same host: shared regions, four protocols by size, and care for the dead.
//!
//! Each endpoint owns one region (crate ring); a sender claims a slot in its receiver's region at first
//! contact and from then on writes messages there by itself. By size a message is
//!
//! - *inline*: header and payload in one cache line of the lane, or in a few that follow one another,
//! - *eager*: header in a cell, payload in the lane's data area,
//! - *streamed*: the same in several pieces, so that both sides copy at the same time,
//! - *offered* (rendezvous): only described; the receiver fetches it when it is matched, by *single copy*
//!   (process_vm_readv), straight out of the sender's heap where that can be mapped, or by a *pipelined copy* through
//!   chunks it lends to the sender, whichever is permitted and has lately been faster here. Where nothing else is under
//!   way its first bytes come along, and the rest may come as a streamed message does.
//!
//! One message down: [`send`] -> ring's producer. One message up: [`receive`] -> `Owner`. In the order they are met:
//! - [`settings`], [`transport`] (the struct and its `Peer` face), [`own`] (what others see of us),
//!   [`backing`] (the file of a region), [`contact`] (finding a remote's region), [`remote`]
//! - [`send`], [`manner`] (streamed or offered), [`receive`], [`stream`]
//! - long messages: [`rendezvous`], [`fetch`], [`pipelined`], [`parted`], [`shares`], [`heap`],
//!   [`ways`], [`both_ways`] and [`choice`] (which of them), [`stores`] (through the cache or past
//!   it); what choice, manner and stores learn by is the [`tuner`]
//! - [`direct`] and [`views`]: registered memory that is touched without its owner's help
//! - [`housekeeping`] (what is done now and then), [`lives`] (who died), [`loss`] (what ends with
//!   it), [`refusal`] (messages that go another way), [`sleep`], [`statistics`], [`published`]
//!   (what tools see of it), [`protocol`] (kinds of cells, thresholds)
//!
//! The formats are specified in docs/shm-layout.md.
#![forbid(unsafe_code)]

mod backing;
mod both_ways;
#[cfg(test)]
mod both_ways_tests;
mod choice;
mod contact;
mod direct;
mod fetch;
mod heap;
mod housekeeping;
#[cfg(test)]
mod lanes_tests;
mod lives;
mod loss;
#[cfg(test)]
mod loss_tests;
mod manner;
#[cfg(test)]
mod manner_tests;
mod own;
mod parted;
mod pipelined;
pub mod protocol;
mod published;
mod receive;
mod refusal;
#[cfg(test)]
mod refusal_tests;
mod remote;
mod rendezvous;
mod send;
mod settings;
mod shares;
#[cfg(test)]
mod shares_tests;
#[cfg(test)]
mod sink;
mod sleep;
mod statistics;
mod stores;
mod stream;
mod transport;
mod tuner;
mod views;
mod ways;

pub use settings::{OpenError, Settings, SingleCopy};
pub use statistics::{Count, Protocol, Statistics};
pub use transport::Transport;
