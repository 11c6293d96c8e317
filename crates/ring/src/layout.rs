// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where everything lies in a region (docs/shm-layout.md, clause 2). Numbers only; used by every
//! file here.

use crate::cell::INLINE_PAYLOAD_BYTES;

/// First word of every region: "WEFTSHM" and a NUL, little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"WEFTSHM\0");

/// Version of everything in docs/shm-layout.md; two processes must agree on it.
pub const LAYOUT_VERSION: u64 = 14;

/// Page size the layout is cut to. Specified: all supported machines have 4 KiB pages or multiples
/// of them.
pub const PAGE_BYTES: usize = 4096;

/// Remotes that one endpoint can receive from by shared memory. Chosen: four times the largest
/// nodes today; costs address space, not memory.
pub const SLOT_COUNT: usize = 1024;

/// Cells in a lane. Chosen: with its control lines they fill one page, so an idle lane costs one
/// page.
#[cfg(not(loom))]
pub const LANE_CELLS: usize = 60;
/// Cells in a lane of a model.
#[cfg(loom)]
pub const LANE_CELLS: usize = 2;

/// Bytes of a lane's control lines, before its cells.
pub const LANE_CONTROL_BYTES: usize = 256;

/// Bytes of a lane's data area that every lane uses. Chosen: several eager messages of the largest
/// size.
pub const LANE_NARROW_BYTES: usize = 64 * 1024;

/// Bytes of a lane's whole data area, which only busy lanes use. Measured: lines that are written
/// again only after this much have left the receiver's own cache for the shared one;
/// docs/lab/2026-11-21-wide-lanes.md.
pub const LANE_DATA_BYTES: usize = 1024 * 1024;

/// Chunks of a lane that change hands with the messages they carry. Chosen: one bit of a word for
/// each.
pub const POOL_CHUNKS: usize = 64;

/// Bytes of such a chunk. Measured: docs/lab/2026-11-22-chunks.md.
pub const POOL_CHUNK_BYTES: usize = 16 * 1024;

/// Bytes of a lane: one page of control and cells, then its data area, then its chunks.
pub const LANE_BYTES: usize = PAGE_BYTES + LANE_DATA_BYTES + POOL_CHUNKS * POOL_CHUNK_BYTES;

/// Pipes that one endpoint lends to senders of large messages at the same time. Chosen: more
/// transfers than cores at once only thrash the cache; the others wait their turn.
pub const PIPE_COUNT: usize = 4;

/// Bytes of one chunk of a pipe. Measured: docs/lab/2026-11-22-chunks.md.
pub const CHUNK_BYTES: usize = 16 * 1024;

/// Chunks in a pipe. Measured: as for [`LANE_DATA_BYTES`].
#[cfg(not(loom))]
pub const PIPE_CHUNKS: usize = 64;
/// Chunks in a pipe of a model.
#[cfg(loom)]
pub const PIPE_CHUNKS: usize = 2;

/// Bytes of the states of a pipe's chunks: a pair of lines for each.
pub const PIPE_STATES_BYTES: usize = PIPE_CHUNKS * 128;

/// Bytes of a pipe: the states, then the chunks.
pub const PIPE_BYTES: usize = PIPE_STATES_BYTES + PIPE_CHUNKS * CHUNK_BYTES;

/// Offset of the slot directory: after the header page.
pub const SLOTS_OFFSET: usize = PAGE_BYTES;
/// Bytes of one slot.
pub const SLOT_BYTES: usize = 64;
/// Registrations that an endpoint can show to remotes. Chosen: more windows than a program has at
/// once; remotes ask for what finds no room.
#[cfg(not(loom))]
pub const REGISTRATION_COUNT: usize = 1024;
/// Registrations in a model.
#[cfg(loom)]
pub const REGISTRATION_COUNT: usize = 1;
/// Bytes of one of them.
pub const REGISTRATION_BYTES: usize = 64;
/// Offset of the registrations: after the slots.
pub const REGISTRATIONS_OFFSET: usize = SLOTS_OFFSET + SLOT_COUNT * SLOT_BYTES;
/// Bytes of the mark in which the remote of a slot says what it is at.
pub const MARK_BYTES: usize = 64;
/// Offset of the marks, one for each slot.
pub const MARKS_OFFSET: usize = REGISTRATIONS_OFFSET + REGISTRATION_COUNT * REGISTRATION_BYTES;
/// Offset of the pipes.
pub const PIPES_OFFSET: usize =
    (MARKS_OFFSET + SLOT_COUNT * MARK_BYTES).next_multiple_of(PAGE_BYTES);
/// Offset of the lanes: after all that every remote maps.
pub const LANES_OFFSET: usize =
    (PIPES_OFFSET + PIPE_COUNT * PIPE_BYTES).next_multiple_of(PAGE_BYTES);
/// Bytes of what every remote maps; of the lanes it maps its own one alone.
pub const SHARED_BYTES: usize = LANES_OFFSET;
/// Bytes of the whole region. Address space: pages are taken on first touch.
pub const REGION_BYTES: usize = LANES_OFFSET + SLOT_COUNT * LANE_BYTES;

/// A number that changes with any of the sizes above, so that a build with other sizes is noticed
/// even if someone forgot to change the version.
pub const LAYOUT_FINGERPRINT: u64 = fingerprint(&[
    SLOT_COUNT,
    LANE_CELLS,
    INLINE_PAYLOAD_BYTES,
    LANE_CONTROL_BYTES,
    LANE_NARROW_BYTES,
    LANE_DATA_BYTES,
    POOL_CHUNKS,
    POOL_CHUNK_BYTES,
    PIPE_COUNT,
    PIPE_CHUNKS,
    CHUNK_BYTES,
    SLOT_BYTES,
    REGISTRATION_COUNT,
    LANES_OFFSET,
    REGION_BYTES,
]);

/// FNV-1a over the numbers.
const fn fingerprint(numbers: &[usize]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < numbers.len() {
        hash = (hash ^ numbers[index] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        index += 1;
    }
    hash
}

/// Offset of the lane of a slot.
pub const fn lane_offset(slot: usize) -> usize {
    LANES_OFFSET + slot * LANE_BYTES
}

/// Offset of a pipe.
pub const fn pipe_offset(pipe: usize) -> usize {
    PIPES_OFFSET + pipe * PIPE_BYTES
}

const _: () = assert!(
    LANES_OFFSET.is_multiple_of(PAGE_BYTES),
    "lanes start on a page, so that idle ones cost none"
);
const _: () = assert!(
    LANE_BYTES.is_multiple_of(PAGE_BYTES),
    "every lane starts on a page"
);
const _: () = assert!(
    PIPES_OFFSET.is_multiple_of(PAGE_BYTES),
    "pipes start on a page"
);
