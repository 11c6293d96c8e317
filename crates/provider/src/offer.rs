// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What Weft offers: every attribute of its one `fi_info`, as plain values.
//!
//! hints checks what an application asks for against this; info turns it into C. Source:
//! fi_getinfo(3), fi_endpoint(3), fi_domain(3); the values are those that Open MPI, MPICH and Intel
//! MPI all accept.

use weft_endpoint::{ATOMIC_LIMIT_BYTES, MESSAGE_LIMIT_BYTES, RANGE_LIMIT};
use weft_fabric_sys::flags::*;
use weft_fabric_sys::info::*;
use weft_facts::limit;
use weft_memory::IOV_LIMIT;
use weft_shm::protocol;

// What the crates further down define for themselves is what users are told.
const _: () = assert!(MESSAGE_LIMIT_BYTES == limit::MESSAGE_BYTES);
const _: () = assert!(protocol::EAGER_BYTES == limit::INJECT_BYTES);
const _: () = assert!(protocol::INLINE_BYTES == limit::INLINE_BYTES);
const _: () = assert!(protocol::STREAM_BYTES == limit::STREAM_BYTES);
const _: () = assert!(1 + weft_udp::FURTHER_ADDRESSES == limit::INTERFACES);
const _: () = assert!(IOV_LIMIT == limit::PIECES && RANGE_LIMIT == limit::RANGES);
const _: () = assert!(ATOMIC_LIMIT_BYTES == limit::ATOMIC_BYTES);

/// The name under which the provider, its fabric and its domain are known.
pub const NAME: &std::ffi::CStr = c"weft";

/// The fabric's name for applications that ask for FI_PEER. Only by this name does lnx recognise a
/// provider that reaches this host alone and is to be used first there (specified by its sources).
pub const PEER_FABRIC: &std::ffi::CStr = c"shm";
/// Capabilities for other providers, if this code knows the running library's Peer API. In earlier
/// versions their bits had other meanings.
pub fn peer_caps() -> u64 {
    if crate::host::knows_peers() {
        FI_PEER | FI_AV_USER_ID
    } else {
        0
    }
}

/// Capabilities of the sending side.
pub const TRANSMIT_CAPS: u64 =
    FI_MSG | FI_TAGGED | FI_SEND | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_FENCE;
/// Capabilities of the receiving side.
pub const RECEIVE_CAPS: u64 = FI_MSG
    | FI_TAGGED
    | FI_RECV
    | FI_DIRECTED_RECV
    | FI_MULTI_RECV
    | FI_SOURCE
    | FI_RMA
    | FI_ATOMIC
    | FI_REMOTE_READ
    | FI_REMOTE_WRITE
    | FI_RMA_EVENT;
/// Capabilities of the domain.
pub const DOMAIN_CAPS: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;
/// All capabilities.
pub const CAPS: u64 = TRANSMIT_CAPS | RECEIVE_CAPS | DOMAIN_CAPS;

/// Capabilities that an application gets without asking for them (fi_getinfo(3), secondary
/// capabilities).
pub const SECONDARY_CAPS: u64 =
    FI_MULTI_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_FENCE | FI_RMA_EVENT;
/// Kinds of transfers, each with its directions. An application that names a kind without a
/// direction gets all directions.
pub const DIRECTIONS: [(u64, u64); 2] = [
    (FI_MSG | FI_TAGGED, FI_SEND | FI_RECV),
    (
        FI_RMA | FI_ATOMIC,
        FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
    ),
];

/// Flags that sends without flags may be given as a default.
pub const TRANSMIT_FLAGS: u64 =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
/// Flags that receives without flags may be given as a default.
pub const RECEIVE_FLAGS: u64 = FI_COMPLETION | FI_MULTI_RECV;

/// Orders between two endpoints that an application may ask for: all that exist (docs/one-sided.md,
/// clause 6).
pub const MESSAGE_ORDER: u64 = FI_ORDER_STRICT | FI_ORDER_RMA | FI_ORDER_ATOMIC;
/// The order that is reported to applications which do not ask. Chosen: what MPIs look for. Reads
/// and writes are left out, so that they may take shortcuts.
pub const MESSAGE_ORDER_REPORTED: u64 = FI_ORDER_SAS | FI_ORDER_ATOMIC;
/// Longest payload up to which FI_ORDER_* between one-sided operations holds.
pub const ORDERED_BYTES: usize = limit::ATOMIC_BYTES;

/// The protocol's number. Chosen: libfabric keeps numbers with the highest bit for providers
/// outside its tree.
pub const PROTOCOL: u32 = 0x8000_5745;
/// The protocol's version.
pub const PROTOCOL_VERSION: u32 = 1;

/// Longest message in bytes.
pub const MESSAGE_SIZE_BYTES: usize = limit::MESSAGE_BYTES as usize;
/// All bits of a tag are matched (specified: FI_TAG_GENERIC).
pub const TAG_FORMAT: u64 = 0xAAAA_AAAA_AAAA_AAAA;
/// Bytes of data in a remote completion.
pub const QUEUE_DATA_BYTES: usize = 8;
/// Bytes of a memory key.
pub const KEY_BYTES: usize = 8;
/// Pieces of one buffer, at most.
pub const PIECES: usize = limit::PIECES;
/// Pieces of one buffer that are reported to applications which do not ask for more. Chosen: what
/// most providers report; programs are tried with it, and libfabric's own tests cut buffers wrongly
/// into 5 and 6 pieces.
pub const PIECES_REPORTED: usize = 4;
/// Ranges of remote memory of one operation, at most.
pub const RANGES: usize = limit::RANGES;
/// Operations that may be under way, as reported to applications, which choose their windows by it.
/// This many sends are queued for a remote that accepts none.
pub const DEPTH: usize = limit::SEND_DEPTH;
/// Receives that may be under way, reported to other providers: lnx refuses links that say more
/// (specified by its sources).
pub const PEER_DEPTH: usize = 1024;
/// Queues, endpoints, counters of one domain. Chosen; there is no limit but memory.
pub const OBJECTS: usize = 65536;
/// Registered regions of one domain. Chosen; there is no limit but memory.
pub const REGIONS: usize = 1 << 20;

/// Whether a threading model is known; all known ones are served.
pub fn threading_is_known(threading: u32) -> bool {
    threading <= FI_THREAD_ENDPOINT
}

/// Whether a progress model is served: progress in the application's calls, or by a thread of ours
/// if the application asks for that.
pub fn progress_is_served(progress: u32) -> bool {
    matches!(
        progress,
        FI_PROGRESS_UNSPEC | FI_PROGRESS_AUTO | FI_PROGRESS_MANUAL | FI_PROGRESS_CONTROL_UNIFIED
    )
}

/// Whether a form of address is served.
pub fn address_format_is_served(format: u32) -> bool {
    matches!(
        format,
        FI_FORMAT_UNSPEC | FI_SOCKADDR | FI_SOCKADDR_IN | FI_SOCKADDR_IN6 | FI_SOCKADDR_IP
    )
}
