// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of collectives, with threads as ranks.

mod blocks;
mod faults;
mod in_place;
mod lengths;
mod nonblocking;
mod random;
mod threads;
