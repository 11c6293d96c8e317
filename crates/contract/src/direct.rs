// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registered memory that remotes of the same host touch without its owner's help (docs/one-sided.md, clause 8). Words
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

/// A stretch of a remote's registered memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// The key of the registration.
    pub key: u64,
    /// Its first byte, as the registration counts.
    pub address: u64,
    /// Its length in bytes.
    pub length_bytes: usize,
}

/// What to do to a stretch, with memory of one's own that is as long.
#[derive(Debug)]
pub enum Touch<'a> {
    /// Copy it here.
    Read(&'a UserBuffer),
    /// Copy this there.
    Write(&'a UserBuffer),
    /// Change its elements one by one; what they were goes to the slice, as far as that reaches.
    Change(&'a Change<'a>, &'a mut [u8]),
}

impl Touch<'_> {
    /// Whether it reads and whether it writes the remote's memory.
    pub fn wish(&self) -> (bool, bool) {
        match self {
            Self::Read(_) => (true, false),
            Self::Write(_) => (false, true),
            Self::Change(change, before) => (!before.is_empty(), !change.operator.only_reads()),
        }
    }
}
