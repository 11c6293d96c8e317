// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The 64-bit flags: capabilities, operation flags, completion flags, ordering, modes, memory
//! registration.
//!
//! Used by the provider everywhere. Bits 1 and up are shared by all uses, bits 59 and down change
//! meaning with the call. Bits 42 to 48 and 57 changed meaning between libfabric 1.17 and 2.x, so
//! the provider offers none of them by number except `FI_SOURCE`. Source: fabric.h, fi_domain.h,
//! fi_getinfo(3), fi_cq(3).

/// Untagged messages.
pub const FI_MSG: u64 = 1 << 1;
/// Reads and writes of remote memory.
pub const FI_RMA: u64 = 1 << 2;
/// Tagged messages.
pub const FI_TAGGED: u64 = 1 << 3;
/// Atomic operations on remote memory.
pub const FI_ATOMIC: u64 = 1 << 4;
/// Reads of remote memory.
pub const FI_READ: u64 = 1 << 8;
/// Writes of remote memory.
pub const FI_WRITE: u64 = 1 << 9;
/// Receives.
pub const FI_RECV: u64 = 1 << 10;
/// Sends.
pub const FI_SEND: u64 = 1 << 11;
/// The sending side of an endpoint, when binding a queue. The same bit as [`FI_SEND`].
pub const FI_TRANSMIT: u64 = FI_SEND;
/// Memory may be read from elsewhere.
pub const FI_REMOTE_READ: u64 = 1 << 12;
/// Memory may be written from elsewhere.
pub const FI_REMOTE_WRITE: u64 = 1 << 13;

/// One receive buffer takes many messages.
pub const FI_MULTI_RECV: u64 = 1 << 16;
/// The message carries a number for the receiver's completion.
pub const FI_REMOTE_CQ_DATA: u64 = 1 << 17;
/// More operations follow at once.
pub const FI_MORE: u64 = 1 << 18;
/// Look for a message without receiving it.
pub const FI_PEEK: u64 = 1 << 19;
/// The operation starts later, by a trigger.
pub const FI_TRIGGER: u64 = 1 << 20;
/// The operation waits for all earlier ones to the same target.
pub const FI_FENCE: u64 = 1 << 21;
/// Report a completion.
pub const FI_COMPLETION: u64 = 1 << 24;
/// The buffer is free when the call returns.
pub const FI_INJECT: u64 = 1 << 25;
/// Complete when the buffer is free.
pub const FI_INJECT_COMPLETE: u64 = 1 << 26;
/// Complete when the message no longer depends on this process.
pub const FI_TRANSMIT_COMPLETE: u64 = 1 << 27;
/// Complete when the message is in the target's buffer.
pub const FI_DELIVERY_COMPLETE: u64 = 1 << 28;

/// The target of a remote operation hears of it, by counters.
pub const FI_RMA_EVENT: u64 = 1 << 56;
/// To `fi_query_atomic`: operations that fetch.
pub const FI_FETCH_ATOMIC: u64 = 1 << 58;
/// To `fi_query_atomic`: operations that compare.
pub const FI_COMPARE_ATOMIC: u64 = 1 << 59;

/// The application names addresses itself: completions report its number as their source (2.0).
pub const FI_AV_USER_ID: u64 = 1 << 41;
/// Another provider owns what this one reports to (2.0; what the bit meant in 1.17 is not offered).
pub const FI_PEER: u64 = 1 << 43;
/// Endpoints in the same host or process can be reached.
pub const FI_LOCAL_COMM: u64 = 1 << 51;
/// Endpoints elsewhere can be reached.
pub const FI_REMOTE_COMM: u64 = 1 << 52;
/// Report attributes only; the values in hints may be ignored.
pub const FI_PROV_ATTR_ONLY: u64 = 1 << 54;
/// The node is a number, not a name to look up.
pub const FI_NUMERICHOST: u64 = 1 << 55;
/// To `fi_getinfo`: node and service name the local side. As a capability: completions name their
/// source.
pub const FI_SOURCE: u64 = 1 << 57;
/// Receives may be limited to one source.
pub const FI_DIRECTED_RECV: u64 = 1 << 59;

/// Receive the message that an earlier peek claimed.
pub const FI_CLAIM: u64 = 1 << 59;
/// Throw the peeked or claimed message away.
pub const FI_DISCARD: u64 = 1 << 58;
/// On binding a queue: completions only where asked for.
pub const FI_SELECTIVE_COMPLETION: u64 = 1 << 59;
/// On inserting addresses: report one error for each address.
pub const FI_SYNC_ERR: u64 = 1 << 58;
/// On an address vector: shared by processes under a name, or read only.
pub const FI_SYMMETRIC: u64 = 1 << 59;

/// Messages and remote operations are processed at a target in their order, whatever their kinds.
pub const FI_ORDER_STRICT: u64 = 0x1FF;
/// Reads and writes are, among themselves (four bits).
pub const FI_ORDER_RMA: u64 = 0xF << 32;
/// Atomic operations are, among themselves (four bits).
pub const FI_ORDER_ATOMIC: u64 = 0xF << 36;
/// Sends to one target are matched there in their order.
pub const FI_ORDER_SAS: u64 = 1 << 8;
/// Reads after sends are seen in that order.
pub const FI_ORDER_RAS: u64 = 1 << 2;
/// Writes after sends are seen in that order.
pub const FI_ORDER_WAS: u64 = 1 << 5;

/// The application leaves room for the provider in every operation's context (4 words).
pub const FI_CONTEXT: u64 = 1 << 59;
/// As [`FI_CONTEXT`], 8 words.
pub const FI_CONTEXT2: u64 = 1 << 52;

/// Old name for basic registration (all of virtual address, allocated, provider key).
pub const FI_MR_BASIC: i32 = 1 << 0;
/// Old name for scalable registration (no requirement).
pub const FI_MR_SCALABLE: i32 = 1 << 1;
/// Local buffers are registered too.
pub const FI_MR_LOCAL: i32 = 1 << 2;
/// Keys are longer than 64 bits.
pub const FI_MR_RAW: i32 = 1 << 3;
/// Remote addresses are the target's virtual addresses.
pub const FI_MR_VIRT_ADDR: i32 = 1 << 4;
/// Regions are backed by pages when they are registered.
pub const FI_MR_ALLOCATED: i32 = 1 << 5;
/// The provider picks the keys.
pub const FI_MR_PROV_KEY: i32 = 1 << 6;
/// The application tells of changed mappings.
pub const FI_MR_MMU_NOTIFY: i32 = 1 << 7;
/// Counters bound to regions are announced.
pub const FI_MR_RMA_EVENT: i32 = 1 << 8;
/// Regions are bound to endpoints.
pub const FI_MR_ENDPOINT: i32 = 1 << 9;
/// Regions of accelerator memory are registered.
pub const FI_MR_HMEM: i32 = 1 << 10;
/// Regions for collectives are registered.
pub const FI_MR_COLLECTIVE: i32 = 1 << 11;
