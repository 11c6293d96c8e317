// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls of libfabric, object by object: what the provider turns each fi_* call into.
//!
//! Made by [`crate::Domain`] for one call each, from the parts that the call needs.

pub(crate) mod counter;
pub(crate) mod endpoint;
pub(crate) mod open;
pub(crate) mod queue;
pub(crate) mod region;
pub(crate) mod vector;
pub(crate) mod wait;
