// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One-sided operations: reads, writes and atomics of a remote's registered memory. fi_rma(3),
//! fi_atomic(3), fi_mr(3).
//!
//! They are carried out by the remote's endpoint when it makes progress, and travel as service
//! messages over whatever route leads there (docs/one-sided.md). The initiator posts a request; the
//! target carries it out in place, without a bounce, and answers. Short payload travels with its
//! request or answer; long payload is a message of its own, which lands where it belongs by
//! whatever protocol the route has for long messages.
//!
//! `access` is what the user asks for; `initiator` posts it, unless `direct` finds the memory
//! within reach; `operations` are ours that wait for their ends; `service` hears what comes, and
//! `target` carries out what it asks; `outbox` is what waits to be sent; `region` the memory that
//! remotes may access; `request` the format, `token` the names that transports give back. `state`
//! is all that one endpoint keeps, made at first use, so that endpoints without one-sided
//! operations pay one look at a pointer for each round of progress.

pub(crate) mod access;
mod direct;
pub(crate) mod initiator;
mod operations;
mod outbox;
pub(crate) mod region;
pub(crate) mod request;
pub(crate) mod service;
pub(crate) mod state;
mod target;
pub(crate) mod token;
