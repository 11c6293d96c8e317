// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What this process lends to each remote from which it fetches messages. Kept by fetches.rs.

use weft_contract::RemoteId;

use crate::copy::laps::Laps;

/// What is lent to one remote.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Lent {
    /// Messages of the remote that have a pipe of ours, or share one.
    pub(super) pipes: u32,
    /// The round in which a fetch from the remote could not begin; then later fetches from it do
    /// not begin in that round either.
    pub(super) held_round: u64,
    /// What has come from the remote through pipes.
    pub(super) laps: Laps,
}

/// The same, by remote.
#[derive(Debug, Default)]
pub(super) struct LentByRemote(Vec<Lent>);

impl LentByRemote {
    pub(super) fn to(&mut self, remote: RemoteId) -> &mut Lent {
        let index = remote.index();
        if self.0.len() <= index {
            self.0.resize(index + 1, Lent::default());
        }
        &mut self.0[index]
    }
}
