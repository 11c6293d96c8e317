// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kinds and flags of cells, and the sizes at which protocols change (docs/shm-layout.md, clause 5).

use weft_contract::Class;
use weft_ring::layout::{PIPE_COUNT, POOL_CHUNK_BYTES, POOL_CHUNKS};
use weft_ring::{CELL_PAYLOAD_BYTES, INLINE_PAYLOAD_BYTES};

/// Whole message inside the cell, and those that follow if need be.
pub const INLINE: u8 = 1;
/// Whole message in the data area.
pub const EAGER: u8 = 2;
/// First piece of a streamed message, in the data area.
pub const STREAM: u8 = 3;
/// A further piece of the streamed message that this lane carries.
pub const PIECE: u8 = 4;
/// A message is offered.
pub const OFFER: u8 = 5;
/// An offer is accepted through a pipe.
pub const ACCEPT: u8 = 6;
/// A send is finished: delivered, or fetched by single copy.
pub const FINISH: u8 = 7;
/// The sender closes; nothing follows in this lane.
pub const BYE: u8 = 8;
/// A message is offered, and its first bytes come along, in this cell and in pieces after it.
pub const BEGIN: u8 = 9;
/// A part of the rest of such a message, which its receiver has asked for.
pub const PART: u8 = 10;

/// What an ACCEPT names in place of a pipe to have the rest of a message in parts: the number after the last pipe.
pub const BY_LANE: u64 = PIPE_COUNT as u64;

/// What an ACCEPT says in place of how to store: both processes copy (docs/shm-layout.md, clause 7a).
pub const SHARED: u64 = 2;

/// Set in the address of an offered message whose whole pages lie in what its sender shares. Specified:
/// clause 11; no address of a program has it.
pub(crate) const SHARED_ADDRESS: u64 = 1 << 63;

/// The message has a tag.
pub const FLAG_TAGGED: u8 = 1;
/// The message carries remote completion data.
pub const FLAG_DATA: u8 = 2;
/// The sender waits for a FINISH when the message is delivered.
pub const FLAG_RECEIPT: u8 = 4;
/// The message is between the endpoints themselves. Not together with [`FLAG_TAGGED`].
pub const FLAG_SERVICE: u8 = 8;

/// Longest message in one cell. Specified by the cell's layout.
pub const CELL_BYTES: usize = CELL_PAYLOAD_BYTES;

/// Longest inline message: in as many cells as it takes. Measured:
/// docs/lab/2026-11-22-runs-of-cells.md.
pub const INLINE_BYTES: usize = INLINE_PAYLOAD_BYTES;

/// Longest eager message, and longest fi_inject. Chosen: an eighth of the data area.
pub const EAGER_BYTES: usize = 8 * 1024;

/// Longest piece of a streamed message. Measured: docs/lab/2026-11-22-chunks.md.
pub const PIECE_BYTES: usize = 16 * 1024;

/// Longest first piece of a streamed message. Measured as [`PIECE_BYTES`]: the receiver begins sooner.
pub const FIRST_PIECE_BYTES: usize = 2 * 1024;

/// Longest streamed message; longer ones are offered. Chosen: what an unexpected message may cost the receiver
/// in memory, and where two more hand-overs no longer matter.
pub const STREAM_BYTES: usize = 64 * 1024;

/// Shortest message that may be offered instead of being streamed if its receiver can copy it out
/// of our heap. Measured: docs/lab/2026-11-22-mapped-copy.md.
pub const MAPPED_BYTES: usize = 16 * 1024;

/// What comes along with a message that begins at once. Chosen: copying it takes longer than to be told to go on.
pub const BEGIN_BYTES: usize = 32 * 1024;

/// Longest message that begins so. Measured: what a lane's chunks hold; longer ones go faster
/// through pipes (docs/lab/2026-11-22-messages-that-begin-unasked.md).
pub(crate) const BEGIN_LIMIT_BYTES: usize = POOL_CHUNKS * POOL_CHUNK_BYTES;

/// Cells of it: its pieces double from [`FIRST_PIECE_BYTES`] to [`PIECE_BYTES`].
pub(crate) const BEGIN_CELLS: usize = 5;

/// Longest message. Specified by the contract: lengths are kept in 64 bits, offers in one word.
pub const MESSAGE_BYTES: u64 = weft_contract::MESSAGE_LIMIT_BYTES;

/// The flags that a message's class and data set.
#[inline(always)]
pub(crate) fn message_flags(class: Class, has_data: bool) -> u8 {
    let side = match class {
        Class::Message => 0,
        Class::Tagged => FLAG_TAGGED,
        Class::Service => FLAG_SERVICE,
    };
    side | if has_data { FLAG_DATA } else { 0 }
}

/// The class that a message's flags name; service wins where both are set.
#[inline(always)]
pub(crate) fn class_of(flags: u8) -> Class {
    if flags & FLAG_SERVICE != 0 {
        Class::Service
    } else if flags & FLAG_TAGGED != 0 {
        Class::Tagged
    } else {
        Class::Message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_the_class_that_they_were_made_for() {
        for class in [Class::Message, Class::Tagged, Class::Service] {
            for has_data in [false, true] {
                let flags = message_flags(class, has_data);
                assert_eq!((class_of(flags), flags & FLAG_DATA != 0), (class, has_data));
            }
        }
    }
}
