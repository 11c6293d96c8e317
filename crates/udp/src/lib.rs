// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The srd route: scalable reliable datagrams over UDP sockets, a transport between hosts.
//!
//! - *Purpose*: sockets, clock and payloads for the machine of weft-srd.
//! - *Used by*: the provider, which puts it behind shm in the endpoint's list of routes.
//! - *Start at*: [`transport`], then `driver`.
//!
//! This crate drives the sans-IO machine of weft-srd: it owns the sockets, the clock and the
//! payloads, and the machine decides what is sent when and where. An endpoint has eight ports
//! whatever the number of its remotes; a pair of ports, ours and theirs, is one path through the
//! network. Everything happens in the caller's calls, but for one thread that sleeps until somebody
//! asks whether this process lives ([`Transport::expect_remotes`]).
//!
//! One message down: [`Transport`]'s `post_send` (driver.rs) -> the machine -> outbox.rs ->
//! [`Ports`], gathered from the user's memory, or from a copy if the buffer has to be free at once
//! (sends.rs). One message up: `progress` (driver.rs) takes every waiting datagram from [`Ports`],
//! hands it to the machine, and what comes of it to the owner: whole messages from the receive
//! buffer, pieces of offered ones straight into their landing. Only when nothing waits are the
//! machine's timers asked: an answer in a socket is no silence.
//!
//! [`Ports`] is a trait: [`SocketPorts`] are the kernel's; tests put a wire within their process in
//! the sockets' place (tests/routes/simulated-wire).
//!
//! What can go wrong and what is made of it: a full socket keeps the datagrams for the next call; a
//! network that is down loses them, and the machine sends again until `dead_after`; a host that
//! says that nobody has a port ends the remote after three such answers; a remote that closes says
//! so.
//!
//! Modules, from the top down:
//! - [`transport`]: the whole; `route`: what an endpoint asks of it; `published`: what `weft top`
//!   reads
//! - `driver`: between owner and machine; `holding`: when a payload is copied; `outbox`: datagrams
//!   that wait to leave; `host_probe`: whether the hosts of silent remotes live
//! - [`sockets`]: the kernel's ports; in it the sockets themselves and who reads them; `gso_batch`:
//!   what one call sends; `polling`, `connected`, `connected_polling`: which socket is looked into,
//!   and how; `authentication`: what leaves and what is let in; `cutting`, `joining`: packets
//!   longer than a datagram; `heartbeats`; `local_addresses`
//! - [`ports`]: what the driver asks of them; `sends`, `arrivals`, `own`, `remotes`: payloads,
//!   landings, messages to ourselves, numbers of remotes; [`settings`], [`statistics`]
#![forbid(unsafe_code)]

mod arrivals;
mod authentication;
mod connected;
mod connected_polling;
mod cutting;
mod driver;
mod gso_batch;
mod heartbeats;
mod holding;
mod host_probe;
mod joining;
mod local_addresses;
mod outbox;
mod own;
mod polling;
pub mod ports;
mod published;
mod remotes;
mod route;
mod sends;
pub mod settings;
pub mod sockets;
pub mod statistics;
pub mod transport;

pub use heartbeats::end_all as end_heartbeats;
pub use joining::{Joined, Joining};
pub use ports::Ports;
pub use sends::Sends;
pub use settings::{OpenError, Settings};
pub use sockets::SocketPorts;
pub use statistics::Statistics;
pub use transport::Transport;
pub use weft_seal as seal;
pub use weft_srd::FURTHER_ADDRESSES;
