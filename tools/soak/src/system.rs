// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a soak asks of the kernel that has no safe call: network devices of its own, and fork(2) without exec.
//!
//! `tun` is called by the network, `fork` by the worker.

pub mod fork;
pub mod tun;
