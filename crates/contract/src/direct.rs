// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered memory that is accessed without its owner's help (docs/one-sided.md, clause 8): words
//! between the endpoint, which registers and accesses, and the local transport, which knows how.

use weft_memory::UserBuffer;
use weft_memory::atomic::Change;

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
