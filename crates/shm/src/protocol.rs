// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kinds and flags of cells, and the sizes at which protocols change (docs/shm-layout.md, clause 5).

use weft_contract::Class;
use weft_ring::CELL_PAYLOAD_BYTES;

/// Whole message inside the cell.
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

/// The message has a tag.
pub const FLAG_TAGGED: u8 = 1;
/// The message carries remote completion data.
pub const FLAG_DATA: u8 = 2;
/// The sender waits for a FINISH when the message is delivered.
pub const FLAG_RECEIPT: u8 = 4;

/// Longest inline message. Specified by the cell's layout.
pub const INLINE_BYTES: usize = CELL_PAYLOAD_BYTES;

/// Longest eager message, and longest fi_inject. Chosen: an eighth of the data area.
pub const EAGER_BYTES: usize = 8 * 1024;

/// Longest piece of a streamed message. Measured: docs/fast-path.md, "chunk size".
pub const PIECE_BYTES: usize = 8 * 1024;

/// Longest streamed message; longer ones are offered. Chosen: what an unexpected message may cost the receiver
/// in memory, and where two more hand-overs no longer matter.
pub const STREAM_BYTES: usize = 64 * 1024;

/// Longest message. Specified by the provider: lengths are kept in 64 bits, offers in one word.
pub const MESSAGE_BYTES: u64 = 1 << 40;

/// The flags that a message's class and data set.
#[inline(always)]
pub(crate) fn message_flags(class: Class, has_data: bool) -> u8 {
    let tagged = if class == Class::Tagged {
        FLAG_TAGGED
    } else {
        0
    };
    tagged | if has_data { FLAG_DATA } else { 0 }
}
