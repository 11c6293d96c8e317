// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sizes at which protocols change; and in [`cell`] what two processes say to each other
//! (docs/shm-layout.md, clause 5).

use weft_ring::layout::{POOL_CHUNK_BYTES, POOL_CHUNKS};
use weft_ring::{CELL_PAYLOAD_BYTES, INLINE_PAYLOAD_BYTES};

pub(crate) mod cell;
pub(crate) mod copy_method;
pub(crate) mod send_protocol;

/// Longest message in one cell. Specified by the cell's layout.
pub const CELL_BYTES: usize = CELL_PAYLOAD_BYTES;

/// Longest inline message: in as many cells as it takes. Measured:
/// docs/lab/2026-11-22-runs-of-cells.md.
pub const INLINE_BYTES: usize = INLINE_PAYLOAD_BYTES;

/// Longest eager message, and longest fi_inject. Chosen: an eighth of the data area.
pub const EAGER_BYTES: usize = 8 * 1024;

/// Longest piece of a streamed message. Measured: docs/lab/2026-11-22-chunks.md.
pub const PIECE_BYTES: usize = 16 * 1024;

/// Longest first piece of a streamed message. Measured as [`PIECE_BYTES`]: the receiver begins
/// sooner.
pub const FIRST_PIECE_BYTES: usize = 2 * 1024;

/// Longest streamed message; longer ones are offered. Chosen: a limit for the memory that an
/// unexpected message may take at the receiver; from this length on two more hand-overs no longer
/// matter.
pub const STREAM_BYTES: usize = 64 * 1024;

/// Shortest message that may be offered instead of being streamed if its receiver can copy it out
/// of our heap. Measured: docs/lab/2026-11-22-mapped-copy.md.
pub const MAPPED_BYTES: usize = 16 * 1024;

/// Early data: the bytes that come along with a message that begins at once. Chosen: to copy them
/// takes longer than the receiver's permission to go on takes to arrive.
pub const EARLY_BYTES: usize = 32 * 1024;

/// Longest message that begins so. Measured: what a lane's chunks hold; longer ones go faster
/// through pipes (docs/lab/2026-11-22-messages-that-begin-unasked.md).
pub(crate) const EARLY_LIMIT_BYTES: usize = POOL_CHUNKS * POOL_CHUNK_BYTES;

/// Cells of it: its pieces double from [`FIRST_PIECE_BYTES`] to [`PIECE_BYTES`].
pub(crate) const EARLY_CELLS: usize = 5;

/// Longest message. Specified by the contract: lengths are kept in 64 bits, offers in one word.
pub const MESSAGE_BYTES: u64 = weft_contract::MESSAGE_LIMIT_BYTES;
