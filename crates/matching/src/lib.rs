// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Matching: which receive takes which message.
//!
//! - *Purpose*: the order of messages that MPI and libfabric promise is kept here, and nowhere
//!   else.
//! - *Used by*: the endpoint's receiving side, alone.
//! - *Start at*: [`Matcher`], its two sides.
//!
//! A message that arrives takes the earliest posted receive that matches it; if there is none it is
//! kept as unexpected. A receive that is posted takes the earliest unexpected message that
//! satisfies it; if there is none it is kept as posted. "Earliest" runs over exact and wildcard
//! receives together, and over all sources: these are the rules of MPI (MPI-4.1, section 3.5) and
//! of libfabric's tagged messages (fi_tagged(3)).
//!
//! Pure: no input or output, no clock, no thread, no lock. The endpoint owns one [`Matcher`] and
//! says what happened:
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
//! ignored bits, so a match must not depend on how many wait. Receives of one mask (ignored bits,
//! and whether the source is given) match by equality of what the mask leaves over, so a hash table
//! finds the list of equal ones, oldest first; with several masks in use one lookup is made for
//! each.
//!
//! Modules as a message flows: `matcher` the two sides; `posted` receives, `recent` the latest of
//! them, `hashed` all others; `unexpected` messages; below them `want` masks, keys and hashes;
//! `masks` the masks in use; `table` key to list; `chain` the lists; `slab` storage, order and ids;
//! `sources` receives counted by source.

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
