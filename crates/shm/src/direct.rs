// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered memory that is touched without its owner's help (docs/one-sided.md, clause 8).
//!
//! - [`shown`]: our own, and how it is taken back
//! - [`views`]: what is known of a remote's; [`access`]: reading and writing it

pub(crate) mod access;
pub(crate) mod shown;
pub(crate) mod views;
