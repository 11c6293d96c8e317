// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the user hears of its operations: entries on completion queues, steps of counters.
//! fi_cq(3), fi_cntr(3).
//!
//! Used by all that ends operations: `send`, `receive` and `one_sided`. `queue` and `counter` are
//! the objects, `completions` all of a domain's; `transmit` and `receive` say on which of them an
//! endpoint reports, and what; `alarm` wakes who sleeps on one.

pub(crate) mod alarm;
pub(crate) mod completions;
pub(crate) mod counter;
pub(crate) mod queue;
pub(crate) mod receive;
pub(crate) mod transmit;
