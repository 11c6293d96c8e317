// SPDX-License-Identifier: Apache-2.0 OR MIT
//! libfabric's C structures and constants, written in Rust.
//!
//! - *Purpose*: libfabric loads a provider and calls it through C structures and tables of
//!   functions. This crate contains only these: no calls, no link against libfabric.
//! - *Used by*: the provider; `weft soak`, which calls libfabric as an application does.
//! - *Start at*: [`version`] (which members may be read), then [`provider`] and [`info`].
//!
//! libfabric 1.17, 2.4 and 2.6 load the same binary. libfabric's structures only grow at their end,
//! so each one here has the newest known layout (2.6 and its successor). Three rules keep older
//! libraries safe:
//!
//! - A structure that the host or the application fills is read only up to the members that the
//!   *running* library knows (see [`version`]).
//! - A structure that the provider fills for the host is allocated with the newest layout and
//!   zeroed.
//! - A table of functions says in its first member `size` how far it is filled; functions behind
//!   that count as absent.
//!
//! Names follow C: `struct fi_tx_attr` is [`FiTxAttr`](info::FiTxAttr), its members keep their C
//! names, and `FI_TAGGED` keeps its own. Every structure lists its members and their offsets once,
//! in `layout!`; the compiler checks that list, and a test compiles the same list against the
//! system's own headers.
//!
//! Modules, in the order in which a program uses them: [`version`], [`errno`], [`flags`], [`log`],
//! [`provider`], [`info`], [`fid`], [`fabric`], [`domain`], [`av`], [`mr`], [`eq`], [`cq`],
//! [`counter`], [`poll`], [`endpoint`], [`message`], [`tagged`], [`rma`], [`atomic`], [`peer`].

#[macro_use]
mod layout;

pub mod version;

pub mod errno;
pub mod flags;

pub mod log;
pub mod provider;

pub mod info;

pub mod fid;

pub mod fabric;

pub mod domain;

pub mod av;
pub mod mr;

pub mod counter;
pub mod cq;
pub mod eq;
pub mod poll;
pub mod wait;

pub mod endpoint;

pub mod message;
pub mod tagged;

pub mod atomic;
pub mod rma;

pub mod peer;

pub use layout::Layout;

/// An address in an address vector (`fi_addr_t`): what an application names another endpoint by.
pub type FiAddr = u64;

/// No address: on a receive "from anyone", in a completion "not known".
pub const FI_ADDR_UNSPEC: FiAddr = u64::MAX;

/// No address is known, or the one asked for cannot be given. The same value as [`FI_ADDR_UNSPEC`].
pub const FI_ADDR_NOTAVAIL: FiAddr = u64::MAX;
