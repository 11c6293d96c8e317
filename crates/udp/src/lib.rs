// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The srd route: scalable reliable datagrams over UDP sockets, a transport between hosts.
//!
//! - *Purpose*: sockets, clock and payloads for the machine of weft-srd.
//! - *Used by*: the provider, which puts it behind shm in the endpoint's list of routes.
//! - *Start at*: [`transport`], then `driver`.
//!
//! This crate drives the sans-IO machine of weft-srd. The crate owns the sockets, the clock and the
//! payloads; the machine decides what is sent, when and where. An endpoint has eight ports, however
//! many remotes it has. A pair of ports, ours and theirs, is one path through the network.
//! Everything happens in the caller's calls, except for one thread that sleeps until a remote asks
//! whether this process lives ([`Transport::expect_remotes`]).
//!
//! One message down: [`Transport`]'s `post_send` (driver.rs) -> the machine -> outbox.rs ->
//! [`Ports`], which gather the payload from the user's memory, or from a copy if the buffer has to
//! be free at once (sends.rs).
//!
//! One message up: `progress` (driver.rs) takes every waiting datagram from [`Ports`] and gives it
//! to the machine. The results go to the owner: whole messages from the receive buffer, pieces of
//! offered messages directly into their landing. The machine's timers are checked only when no
//! datagram waits: an answer in a socket is not silence.
//!
//! [`Ports`] is a trait. [`SocketPorts`] implements it with the kernel's sockets; tests use a
//! simulated network within their process (tests/routes/simulated-wire).
//!
//! What can go wrong:
//!
//! - A socket is full: the datagrams wait for the next call.
//! - The network is down and loses datagrams: the machine sends again until `dead_after`.
//! - A host says that no process has the port: after three such answers the remote has ended.
//! - A remote closes: it says so.
//!
//! Modules, from the top down:
//! - [`transport`]: the whole; `closing`: its end; `route`: what an endpoint asks of it;
//!   `published`: what `weft top` reads
//! - `driver`: between owner and machine; `holding`: when a payload is copied; `outbox`: datagrams
//!   that wait to leave; `host_probe`: whether the hosts of silent remotes live
//! - [`sockets`]: the kernel's ports; in it the sockets themselves and who reads them; `gso_batch`:
//!   what one call sends; `polling`, `connected`, `connected_polling`, `absence`, `last_look`:
//!   which socket is read, and how; `authentication`: tags and seals, out and in; `cutting`,
//!   `joining`: packets longer than a datagram; `heartbeats`; `local_addresses`
//! - [`ports`]: what the driver asks of them; `sends`, `arrivals`, `own`, `remotes`: payloads,
//!   landings, messages to ourselves, numbers of remotes; [`settings`], [`statistics`]
#![forbid(unsafe_code)]

mod absence;
mod arrivals;
mod authentication;
mod closing;
mod connected;
mod connected_polling;
mod cutting;
mod driver;
mod gso_batch;
mod heartbeats;
mod holding;
mod host_probe;
mod joining;
mod last_look;
mod local_addresses;
mod outbox;
mod polling;
pub mod ports;
mod published;
mod remotes;
mod route;
mod self_messages;
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
