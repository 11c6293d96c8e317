// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The packet formats of scalable reliable datagrams, version 6, as `docs/srd-protocol.md`
//! specifies them.
//!
//! - *Purpose*: untrusted bytes become checked values, once.
//! - *Used by*: srd, for every packet; seal, for where the tag lies; `weft sim`.
//! - *Start at*: [`packet`], then [`header`].
//!
//! In: a datagram is parsed once, with every bound and rule checked, into a [`Packet`]: plain
//! values, and the payload as a slice of the datagram. If it does not parse, the result is a
//! [`Malformed`] that names the field, its value and the rule. No input causes a panic.
//!
//! Out: [`Packet::write`] writes everything but the payload into a [`Head`], a fixed array. The
//! payload stays in the user's buffer until the socket gathers both.
//!
//! No allocation, no clock, no state: a machine that speaks the protocol is `weft-srd`.
//!
//! In the order of a datagram's bytes:
//! - [`bytes`]: reading and writing fixed-width numbers within bounds; [`malformed`]: what was
//!   wrong
//! - [`header`]: the 48 bytes that every packet begins with, [`path`]: what a path is
//! - [`hello`] with [`port_addresses`], [`acknowledgement`], [`marks`]: the optional sections
//! - [`message`]: what three kinds say about a user's message
//! - [`eager`], [`segment`], [`offer`], [`accept`], [`data`], [`receipt`], [`refusal`], [`stale`],
//!   [`greeting`], [`alive`]: one body each
//!   (a packet that only acknowledges has none, a probe zeros)
//! - [`packet`]: all of it together; [`piece`]: a datagram of a packet that is longer; [`time`]:
//!   points in time and spans
#![forbid(unsafe_code)]

pub mod accept;
pub mod acknowledgement;
pub mod alive;
pub mod bytes;
pub mod data;
pub mod eager;
pub mod greeting;
pub mod header;
pub mod hello;
pub mod malformed;
pub mod marks;
pub mod message;
pub mod offer;
pub mod packet;
pub mod path;
pub mod piece;
pub mod port_addresses;
pub mod receipt;
pub mod refusal;
pub mod segment;
pub mod stale;
pub mod time;

pub use accept::Accept;
pub use acknowledgement::{Acknowledgement, BITMAP_WORDS};
pub use alive::Alive;
pub use bytes::Head;
pub use data::Data;
pub use greeting::Greeting;
pub use header::{Header, Kind, VERSION};
pub use hello::Hello;
pub use malformed::Malformed;
pub use message::Message;
pub use packet::{Body, Packet};
pub use path::{PATH_COUNT, PORT_COUNT, Path};
pub use piece::Piece;
pub use port_addresses::PortAddresses;
pub use receipt::Receipt;
pub use refusal::{Reason, Refusal};
pub use segment::Segment;
pub use stale::Stale;
