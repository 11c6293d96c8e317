// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a soak asks of the kernel that has no safe call: network devices of its own, fork(2)
//! without exec, and the priority of a thread.
//!
//! `tun` and `priority` are called by the network, `fork` by the worker.

pub mod fork;
pub mod priority;
pub mod tun;
