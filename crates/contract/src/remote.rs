// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names for the process at the other end. Used by every crate from matching upwards.

/// A remote process as one endpoint knows it: a dense index handed out by the owner at first
/// mention of the remote's address, never reused while the endpoint lives. Two addresses that are
/// equal have one id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct RemoteId(pub u32);

impl RemoteId {
    /// The id as an index into per-remote tables.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
