// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rounds that find nothing: when to look at the clock, when to give the processor away, and how
//! to sleep.

pub(crate) mod node;
pub(crate) mod pace;
pub(crate) mod sleeper;
