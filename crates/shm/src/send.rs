// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The side that sends: one protocol by size, one lane for each remote, in order.
//!
//! - [`post`]: inline and eager messages, streams, and what waits for room
//! - [`rendezvous`]: messages that are described, with or without early data
//! - [`sends`]: those that wait for their remote; [`data`]: what a remote asked for through the
//!   lane
//! - [`refusal`]: messages that go by another route

pub(crate) mod data;
pub(crate) mod post;
pub(crate) mod refusal;
pub(crate) mod rendezvous;
pub(crate) mod sends;
