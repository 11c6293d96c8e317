// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One endpoint as it was read at one moment. Made by `watch.rs`; two of them become rates in
//! `rates.rs`.

use weft_ring::snapshot::Snapshot;

use super::collectives::Counts;
use super::network::Network;
use super::place::Place;

/// One endpoint as it was read at one moment.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Its process, in this process's namespace; 0 if it is in another.
    pub pid: u32,
    /// Its place in its job.
    pub place: Place,
    /// What it publishes.
    pub snapshot: Snapshot,
    /// What its network route publishes, with rates since the reading before.
    pub network: Option<Network>,
    /// Its process's calls of collectives, if it counts them.
    pub collectives: Option<Counts>,
}
