// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The limits that users meet. Each is the constant that the code uses, or is compared with it
//! where the program is compiled: endpoint takes them from here; provider and doctor compare those
//! of the crates further down.

use crate::Unit;

/// One limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// What is limited.
    pub name: &'static str,
    /// How many, or how long.
    pub value: u64,
    /// What it counts.
    pub unit: Unit,
    /// What happens beyond it, or why it is so.
    pub meaning: &'static str,
}

/// Longest message. Specified: lengths are kept in 64 bits, offers in one word.
pub const MESSAGE_BYTES: u64 = 1 << 40;
/// Longest message of an inject call, and longest eager message. Chosen: an eighth of a lane's data
/// area.
pub const INJECT_BYTES: usize = 8 * 1024;
/// Longest message of an inject call where FI_WEFT_INJECT_SIZE asks for more than
/// [`INJECT_BYTES`]. Chosen: what leaves for another host in segments, whatever is under way.
pub const LONG_INJECT_BYTES: usize = 64 * 1024;
/// Longest message that goes in cells alone. Measured: docs/lab/2026-11-22-runs-of-cells.md.
pub const INLINE_BYTES: usize = 296;
/// Longest streamed message. Chosen: what an unexpected message may cost the receiver in memory.
pub const STREAM_BYTES: usize = 64 * 1024;
/// Sends to one remote that may wait for room. Chosen: above what any MPI's own transport takes
/// (docs/backlog.md).
pub const SEND_DEPTH: usize = 4096;
/// Memory of all sends of an endpoint that wait. Chosen: the depth that is promised, of the longest
/// copies, to one remote, and nearly as much again to others.
pub const WAITING_BYTES: usize = 64 << 20;
/// Pieces of one buffer. Chosen: twice what most providers take.
pub const PIECES: usize = 8;
/// Ranges of remote memory of one operation. Chosen: as [`PIECES`].
pub const RANGES: usize = 8;
/// Operands of one atomic operation: a request is as long as an inject, and carries its ranges.
pub const ATOMIC_BYTES: usize = INJECT_BYTES - RANGES * 24;
/// Interfaces of a host that are used together. Chosen: no common host has more of one kind.
pub const INTERFACES: usize = 4;
/// Remotes of this host that can send to one endpoint at the same time. Chosen: docs/shm-layout.md.
pub const LOCAL_REMOTES: usize = 1024;
/// Addresses (not memory) that one endpoint takes for its own region. Specified:
/// docs/shm-layout.md, clause 2.
pub const REGION_BYTES: usize = 2_156_105_728;
/// Addresses that it takes besides for each remote of this host: what lies before the lanes of that
/// remote's region, and one lane. Specified: docs/shm-layout.md, clause 2.
pub const REMOTE_BYTES: usize = 6_529_024;

/// All of them.
pub const ALL: [Limit; 13] = [
    Limit {
        name: "message",
        value: MESSAGE_BYTES,
        unit: Unit::Bytes,
        meaning: "longest message (fi_ep_attr.max_msg_size); a longer one is refused with \
                  FI_EMSGSIZE",
    },
    Limit {
        name: "inject",
        value: INJECT_BYTES as u64,
        unit: Unit::Bytes,
        meaning: "longest message of fi_inject and similar calls (fi_tx_attr.inject_size), unless \
                  FI_WEFT_INJECT_SIZE says otherwise",
    },
    Limit {
        name: "inline",
        value: INLINE_BYTES as u64,
        unit: Unit::Bytes,
        meaning: "longest message inside this host that goes together with its header",
    },
    Limit {
        name: "streamed",
        value: STREAM_BYTES as u64,
        unit: Unit::Bytes,
        meaning: "longest message inside this host that is sent without asking the receiver first",
    },
    Limit {
        name: "depth",
        value: SEND_DEPTH as u64,
        unit: Unit::Count,
        meaning: "sends to one remote that may wait for room (fi_tx_attr.size); further ones are \
                  refused with FI_EAGAIN",
    },
    Limit {
        name: "waiting sends",
        value: WAITING_BYTES as u64,
        unit: Unit::Bytes,
        meaning: "memory that all sends of one endpoint together may take while they wait for \
                  room; further ones are refused with FI_EAGAIN",
    },
    Limit {
        name: "pieces",
        value: PIECES as u64,
        unit: Unit::Count,
        meaning: "pieces of memory in one message; fi_tx_attr.iov_limit says 4 unless the \
                  application asks for more",
    },
    Limit {
        name: "ranges",
        value: RANGES as u64,
        unit: Unit::Count,
        meaning: "ranges of remote memory in one operation; fi_tx_attr.rma_iov_limit says 4 unless \
                  the application asks for more",
    },
    Limit {
        name: "atomic operands",
        value: ATOMIC_BYTES as u64,
        unit: Unit::Bytes,
        meaning: "operands of one atomic operation; half of it for operations that also send a \
                  value to compare with",
    },
    Limit {
        name: "interfaces",
        value: INTERFACES as u64,
        unit: Unit::Count,
        meaning: "network interfaces of a host that are used together",
    },
    Limit {
        name: "local remotes",
        value: LOCAL_REMOTES as u64,
        unit: Unit::Count,
        meaning: "remotes of this host that can send to one endpoint at the same time",
    },
    Limit {
        name: "addresses",
        value: REGION_BYTES as u64,
        unit: Unit::Bytes,
        meaning: "about 2 GiB of addresses that an endpoint maps for its own shared memory; \
                  pages cost memory only once they are used, but ulimit -v counts all",
    },
    Limit {
        name: "addresses for a remote",
        value: REMOTE_BYTES as u64,
        unit: Unit::Bytes,
        meaning: "about 6.2 MiB of addresses that an endpoint also maps for each remote of this \
                  host with which it exchanges messages",
    },
];
