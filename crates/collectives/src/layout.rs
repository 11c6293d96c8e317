// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where everything lies in a communicator's segment (docs/collectives.md, clause 2). Numbers only;
//! used by segment.rs and by the algorithms, which cut long buffers by them.

/// Version of the layout and of the algorithms: all ranks of a communicator must have the same one.
/// Whoever makes the segment puts the version into its name.
pub const LAYOUT_VERSION: u64 = 10;

/// Most ranks of a communicator on one host. Chosen: twice the largest hosts of today.
pub const RANK_LIMIT: usize = 512;

/// Bytes that the parts of a flag's staging are aligned to. Chosen: the largest element, a complex
/// number of two f64, fits twice, and [`RANK_LIMIT`] parts fit into [`STAGE_BYTES`].
pub const GRAIN_BYTES: usize = 32;

/// Flags of each rank: how many steps a rank may be ahead of the slowest. A power of two. Chosen: a
/// root then looks at the others' progress once in so many broadcasts.
#[cfg(not(loom))]
pub const FLAG_COUNT: usize = 8;
/// Flags of a model: the fewest that the longest look-ahead allows.
#[cfg(loom)]
pub const FLAG_COUNT: usize = 2;

/// Words of a flag beside its mark. Specified by the size of a flag: a pair of cache lines.
pub const FLAG_WORDS: usize = 15;

/// Longest data that travel in the flag itself.
pub const INLINE_BYTES: usize = FLAG_WORDS * 8;

/// Bytes of staging of each flag. Chosen: both ranks' copies of a flag stay in the first cache.
pub const STAGE_BYTES: usize = 16 * 1024;

/// From the staging of one flag to the next one's. Chosen: chunks of [`SHORT_CHUNK_BYTES`] then do
/// not all lie in the same sets of a cache, as they would behind a power of two.
pub const STAGE_STRIDE_BYTES: usize = STAGE_BYTES + SHORT_CHUNK_BYTES;

/// How data that are not much longer are cut, so that ranks copy in and out at the same time.
/// Measured (docs/lab/2026-11-24-collectives-between-hosts.md).
pub const SHORT_CHUNK_BYTES: usize = 2048;

/// The longest data that are cut so short. Chosen: longer ones are mostly read in place.
pub const SHORT_CHUNKS_BYTES: usize = 16 * 1024;

/// Bytes of the control page of a rank.
pub const CONTROL_BYTES: usize = 4096;

/// Offset of the staging of the first rank.
pub const fn stages_offset(ranks: usize) -> usize {
    ranks * CONTROL_BYTES
}

/// Bytes of shared memory that a communicator of `ranks` needs. Address space: pages are taken when
/// they are touched first.
pub const fn segment_bytes(ranks: usize) -> usize {
    ranks * (CONTROL_BYTES + FLAG_COUNT * STAGE_STRIDE_BYTES)
}

const _: () = assert!(FLAG_COUNT.is_power_of_two());
const _: () = assert!(STAGE_BYTES / RANK_LIMIT >= GRAIN_BYTES);
