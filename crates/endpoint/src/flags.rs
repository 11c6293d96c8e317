// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operation and completion flags of libfabric that the endpoint understands, with their
//! numbers.
//!
//! Specified: rdma/fabric.h; meanings in fi_endpoint(3), fi_msg(3), fi_tagged(3), fi_cq(3). The
//! provider passes them through unchanged. Flags not named here are ignored.

use weft_contract::CompletionLevel;

/// The operation is a message without a tag (FI_MSG).
pub const MSG: u64 = 1 << 1;
/// The operation reads or writes remote memory (FI_RMA).
pub const RMA: u64 = 1 << 2;
/// The operation is a tagged message (FI_TAGGED).
pub const TAGGED: u64 = 1 << 3;
/// The operation is a remote atomic (FI_ATOMIC).
pub const ATOMIC: u64 = 1 << 4;
/// The operation reads remote memory; event of a counter (FI_READ).
pub const READ: u64 = 1 << 8;
/// The operation writes remote memory; event of a counter (FI_WRITE).
pub const WRITE: u64 = 1 << 9;
/// The operation is a receive; binding for receives (FI_RECV).
pub const RECV: u64 = 1 << 10;
/// The operation is a send; binding for sends (FI_SEND, FI_TRANSMIT).
pub const SEND: u64 = 1 << 11;
/// Event of a counter: reads by remotes (FI_REMOTE_READ).
pub const REMOTE_READ: u64 = 1 << 12;
/// A remote wrote to our memory; event of a counter (FI_REMOTE_WRITE).
pub const REMOTE_WRITE: u64 = 1 << 13;
/// A receive takes many messages; in a completion: its buffer is released (FI_MULTI_RECV).
pub const MULTI_RECV: u64 = 1 << 16;
/// The completion carries data of the sender (FI_REMOTE_CQ_DATA).
pub const REMOTE_CQ_DATA: u64 = 1 << 17;
/// Look for a message, receive nothing (FI_PEEK).
pub const PEEK: u64 = 1 << 19;
/// Waits for all earlier operations to the same remote (FI_FENCE).
pub const FENCE: u64 = 1 << 21;
/// Asks for an entry in a queue that is bound with FI_SELECTIVE_COMPLETION (FI_COMPLETION).
pub const COMPLETION: u64 = 1 << 24;
/// The buffer is the user's again when the call returns (FI_INJECT).
pub const INJECT: u64 = 1 << 25;
/// Complete when the buffer may be reused (FI_INJECT_COMPLETE).
pub const INJECT_COMPLETE: u64 = 1 << 26;
/// Complete when the message no longer needs the sender (FI_TRANSMIT_COMPLETE).
pub const TRANSMIT_COMPLETE: u64 = 1 << 27;
/// Complete when the message is in its receive buffer (FI_DELIVERY_COMPLETE).
pub const DELIVERY_COMPLETE: u64 = 1 << 28;
/// Complete when the message was matched (FI_MATCH_COMPLETE); treated like FI_DELIVERY_COMPLETE.
pub const MATCH_COMPLETE: u64 = 1 << 31;
/// The message found is dropped (FI_DISCARD).
pub const DISCARD: u64 = 1 << 58;
/// The message found is kept for the receive with the same context (FI_CLAIM).
pub const CLAIM: u64 = 1 << 59;
/// Binding of a queue: entries only for operations that ask for one (FI_SELECTIVE_COMPLETION).
pub const SELECTIVE_COMPLETION: u64 = 1 << 59;

/// When a send with these flags is complete. fi_cq(3) gives each flag its meaning and names none
/// that holds without one.
#[inline(always)]
pub(crate) fn level(flags: u64) -> CompletionLevel {
    if flags & (DELIVERY_COMPLETE | MATCH_COMPLETE) != 0 {
        CompletionLevel::Delivery
    } else if flags & TRANSMIT_COMPLETE != 0 {
        CompletionLevel::Transmit
    } else if flags & INJECT_COMPLETE != 0 {
        CompletionLevel::Inject
    } else {
        CompletionLevel::Unstated
    }
}
