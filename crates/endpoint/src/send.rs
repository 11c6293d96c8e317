// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending: what an endpoint has posted to its transport, and what waits for room there. fi_msg(3),
//! fi_tagged(3).
//!
//! Called by the endpoint's core; `sending` posts, `backlog` keeps what its route cannot take now.

pub(crate) mod backlog;
pub(crate) mod sending;
