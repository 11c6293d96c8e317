// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receiving: which message ends in which receive, and how. fi_msg(3), fi_tagged(3).
//!
//! Called by the endpoint for what the user asks for, and by `arrivals` for what comes. `receiving`
//! matches, `delivery` fills what was matched; `unexpected` is what waits for its receive, `multi`
//! the buffers for many messages; `peek` looks at messages without receiving them; `shared` is for
//! endpoints whose messages somebody else matches.

pub(crate) mod delivery;
pub(crate) mod multi;
mod peek;
pub(crate) mod receiving;
pub(crate) mod shared;
pub(crate) mod unexpected;
