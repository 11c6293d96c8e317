// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the payload of described messages moves, and both ends of it.
//!
//! - [`offer`]: what an RTS says; [`fetch`]: one message on its way in; [`fetches`]: all of them,
//!   in turn ([`fetch_list`] counts them, [`lent`] what their senders were lent)
//! - the copies: out of the sender's heap and by single copy ([`fetch`]), through pipes ([`pipes`]
//!   lends them, [`feeds`] fills those of others), by both processes ([`cooperative`], and
//!   [`helps`] for the side that sends)

pub(crate) mod bidirectional;
pub(crate) mod cooperative;
pub(crate) mod feeds;
pub(crate) mod fetch;
mod fetch_list;
pub(crate) mod fetches;
pub(crate) mod helps;
pub(crate) mod laps;
mod lent;
pub(crate) mod methods;
pub(crate) mod offer;
pub(crate) mod pipes;
mod single;
