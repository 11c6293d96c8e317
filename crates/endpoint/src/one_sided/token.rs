// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tokens by which transports name sends and landings of one-sided operations.
//!
//! Made by initiator.rs, send_queues.rs and target.rs; read by service.rs.

/// Set in all tokens that are ours; those of operations end there.
const OURS: u64 = 1 << 63;
/// Set besides for what no operation of ours waits for: answers, and landings at the target.
const NAMELESS: u64 = 1 << 62;
/// Set besides for long results on their way; those of other nameless sends end there.
const RESULT: u64 = 1 << 61;

/// A landing that names nothing: what lands there is dropped.
pub(super) const DROPPED: u64 = OURS | NAMELESS | u32::MAX as u64;

/// Whether a transport's token names something of ours. Fast path.
#[inline(always)]
pub(crate) fn is_ours(token: u64) -> bool {
    token & OURS != 0
}

/// The payload or the result of an operation of ours.
pub(super) fn of_operation(id: u32) -> u64 {
    OURS | u64::from(id)
}

/// The operation that is named, if one is.
pub(super) fn operation(token: u64) -> Option<u32> {
    (token & NAMELESS == 0).then_some(token as u32)
}

/// The payload of a remote's long write, in its landing.
pub(super) fn of_incoming(number: u32) -> u64 {
    OURS | NAMELESS | u64::from(number)
}

/// A long result.
pub(super) fn of_result(number: u32) -> u64 {
    OURS | NAMELESS | RESULT | u64::from(number)
}

/// The long result that is named, if one is.
pub(super) fn result(token: u64) -> Option<u32> {
    (token & RESULT != 0).then_some(token as u32)
}

/// A token of which nobody hears; `count` tells it from the others.
pub(super) fn nameless(count: u64) -> u64 {
    OURS | NAMELESS | (count % RESULT)
}
