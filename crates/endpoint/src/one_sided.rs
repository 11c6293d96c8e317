// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One-sided operations: reads, writes and atomics of a remote's registered memory. fi_rma(3),
//! fi_atomic(3), fi_mr(3).
//!
//! The remote's endpoint carries them out when it makes progress. They travel as service messages
//! over whatever route leads there (docs/one-sided.md). The initiator posts a request; the target
//! carries it out in place, without a bounce buffer, and answers. Short payload travels with its
//! request or answer. Long payload is a message of its own; it goes straight to its place, by the
//! protocol that the route has for long messages.
//!
//! - `access`: what the user asks for; `initiator` posts it, unless `direct` finds the memory
//!   within reach
//! - `operations`: our operations that have not ended
//! - `service`: receives what comes; `target` carries out what it asks
//! - `send_queues`: what waits to be sent
//! - `region`: the memory that remotes may access
//! - `request`: the format; `token`: the names that transports give back
//! - `state`: everything that one endpoint keeps, made at first use. So endpoints without one-sided
//!   operations only check one pointer in each round of progress.

pub(crate) mod access;
mod direct;
pub(crate) mod initiator;
mod operations;
pub(crate) mod region;
pub(crate) mod request;
mod send_queues;
pub(crate) mod service;
pub(crate) mod state;
mod target;
pub(crate) mod token;
