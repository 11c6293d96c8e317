// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Matching: which receive takes which message.
//!
//! - *Purpose*: only this crate keeps the order of messages that MPI and libfabric promise.
//! - *Used by*: only the endpoint's receiving side.
//! - *Start at*: [`Matcher`], its two sides.
//!
//! A message that arrives takes the earliest posted receive that matches it; if there is none, the
//! message is kept as unexpected. A receive that is posted takes the earliest unexpected message
//! that matches it; if there is none, the receive is kept as posted. "Earliest" is over exact and
//! wildcard receives together, and over all sources: these are the rules of MPI (MPI-4.1, section
//! 3.5) and of libfabric's tagged messages (fi_tagged(3)).
//!
//! This crate has no input or output, no clock, no thread and no lock. The endpoint owns one
//! [`Matcher`] and tells it what happened:
//!
//! ```
//! use weft_contract::RemoteId;
//! use weft_matching::{Matcher, Want};
//!
//! let mut matcher: Matcher<&str, &str> = Matcher::new();
//! // A receive is posted: first look for a message that is here already.
//! let want = Want { source: None, tag: 7, ignore: 0 };
//! assert!(matcher.find_unexpected(want).is_none());
//! matcher.post(want, "buffer");
//! // A message arrives: first look for a receive that is here already.
//! let matched = matcher.find_posted(RemoteId(3), 7).map(|posted| posted.take());
//! assert_eq!(matched, Some("buffer"));
//! ```
//!
//! Cost: real programs post thousands of receives, and MPI libraries post every one with some
//! ignored bits. So the time of a match must not depend on how many receives wait. Receives with
//! the same mask (ignored bits, and whether the source is given) match if the remaining bits are
//! equal. So a hash table finds the list of equal ones, oldest first. If several masks are in use,
//! one lookup is made for each.
//!
//! Modules, in the order in which a message passes them:
//! - `matcher`: the two sides
//! - `posted`: receives; `recent`: the latest of them; `hashed`: all others
//! - `unexpected`: messages
//! - below them `want`: masks, keys and hashes; `masks`: the masks in use; `table`: from key to
//!   list; `chain`: the lists; `slab`: storage, order and ids; `sources`: receives counted by
//!   source

#![forbid(unsafe_code)]

mod chain;
mod hashed;
mod masks;
mod matcher;
mod posted;
mod recent;
mod slab;
mod sources;
mod table;
mod unexpected;
mod want;

pub use matcher::{FirstPosted, Matcher, PostedId, PostedMut, UnexpectedId};
pub use want::Want;
