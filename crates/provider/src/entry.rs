// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The formats in which a completion queue writes its entries. Used by cq and the tables of calls.
//! Source: fi_cq(3).

use weft_fabric_sys::cq::{FiCqDataEntry, FiCqEntry, FiCqMsgEntry, FiCqTaggedEntry};
use weft_memory::ENTRY_WORDS;

/// An entry format of C.
pub trait Entry: 'static {
    /// Its length in words: it is the beginning of the longest one.
    const WORDS: usize;
}

impl Entry for FiCqEntry {
    const WORDS: usize = size_of::<Self>() / size_of::<u64>();
}

impl Entry for FiCqMsgEntry {
    const WORDS: usize = size_of::<Self>() / size_of::<u64>();
}

impl Entry for FiCqDataEntry {
    const WORDS: usize = size_of::<Self>() / size_of::<u64>();
}

impl Entry for FiCqTaggedEntry {
    const WORDS: usize = size_of::<Self>() / size_of::<u64>();
}

const _: () = assert!(FiCqTaggedEntry::WORDS == ENTRY_WORDS);
