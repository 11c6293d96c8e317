// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Everybody we know: how a remote is found, what is kept of it, whether it lives, and the lanes
//! that it sends through.
//!
//! In the order in which a remote meets them:
//! - [`own`]: who we are to others, and our region; [`backing`]: the file behind it
//! - [`reach`]: first contact; [`attached`] and [`outbound`]: a remote whose region we
//!   have, and our lane there; [`remote`] and [`remotes`]: any
//! - [`lane`] and [`lanes`]: what others send through
//! - [`contacts`]: all of these, and the only one that makes contact
//! - [`liveness`]: who died

pub(crate) mod attached;
pub(crate) mod backing;
pub(crate) mod contacts;
pub(crate) mod lane;
pub(crate) mod lanes;
pub(crate) mod liveness;
pub(crate) mod outbound;
pub(crate) mod own;
pub(crate) mod reach;
pub(crate) mod remote;
pub(crate) mod remotes;
