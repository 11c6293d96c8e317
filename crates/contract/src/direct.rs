// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered memory that is accessed without its owner's help (docs/one-sided.md, clause 8): what
//! a route that can do it offers beside messages. Words between the endpoint, which registers and
//! accesses, and such a route, which knows how.

use weft_memory::UserBuffer;
use weft_memory::atomic::Change;

use crate::RemoteId;

/// Memory that remotes may touch under a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Registration {
    /// The key.
    pub key: u64,
    /// What remotes call its first byte.
    pub base: u64,
    /// Its length in bytes.
    pub length_bytes: u64,
    /// Where its first byte lies in the owner's memory.
    pub address: u64,
    /// Remotes may read it.
    pub readable: bool,
    /// Remotes may write it.
    pub writable: bool,
}

/// A range of a remote's registered memory (struct fi_rma_iov in fi_rma(3)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    /// Its first byte, as the registration counts: an offset, or a virtual address.
    pub address: u64,
    /// Its length in bytes.
    pub length_bytes: u64,
    /// The key of the registration.
    pub key: u64,
}

/// What to do to a range, with memory of one's own that is as long.
#[derive(Debug)]
pub enum DirectOp<'a> {
    /// Copy the range here.
    Read(&'a UserBuffer),
    /// Copy this into the range.
    Write(&'a UserBuffer),
    /// Change the range's elements one by one; what they were goes to the slice, as far as that
    /// reaches.
    Atomic(&'a Change<'a>, &'a mut [u8]),
}

impl DirectOp<'_> {
    /// Whether it reads and whether it writes the remote's memory.
    pub fn reads_and_writes(&self) -> (bool, bool) {
        match self {
            Self::Read(_) => (true, false),
            Self::Write(_) => (false, true),
            Self::Atomic(change, before) => (!before.is_empty(), !change.operator.only_reads()),
        }
    }
}

/// What a route can do that reaches memory of remotes without their help.
pub trait DirectAccess {
    /// Lets remotes access memory without our help. It need not succeed: who does not find it asks.
    /// Setup.
    fn publish_registration(&mut self, registration: &Registration);

    /// Takes it back; false if a remote is at it and does not come to an end: ask again. Setup.
    fn withdraw_registration(&mut self, key: u64) -> bool;

    /// Reads or writes registered memory of a remote now; false if that cannot be, and nothing was
    /// done. Fast path.
    fn access_directly(&mut self, remote: RemoteId, range: &Range, op: &mut DirectOp<'_>) -> bool;
}

/// What a route has that cannot do it. There are no values of this type.
#[derive(Clone, Copy, Debug)]
pub enum NoDirectAccess {}

impl DirectAccess for NoDirectAccess {
    fn publish_registration(&mut self, _: &Registration) {
        match *self {}
    }

    fn withdraw_registration(&mut self, _: u64) -> bool {
        match *self {}
    }

    fn access_directly(&mut self, _: RemoteId, _: &Range, _: &mut DirectOp<'_>) -> bool {
        match *self {}
    }
}
