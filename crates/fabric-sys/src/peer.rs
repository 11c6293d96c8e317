// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Peer API: a provider's objects that report to another provider's, the owner's.
//!
//! Used by the provider's peer and peer_queue modules. The layouts are those of libfabric 2.3 and
//! newer; older ones differ, and must not be met with these (see [`VERSION_PEER`]). Source:
//! fi_peer.h, fi_peer(3).

use crate::FiAddr;
use crate::cq::FiCqErrEntry;
use crate::endpoint::EndpointObject;
use crate::fid::Fid;
use crate::version::fi_version;
use libc::{c_int, c_void, iovec};

/// The oldest library whose Peer API has these layouts.
pub const VERSION_PEER: u32 = fi_version(2, 3);

/// How an owner's completion queue is written to (`struct fi_ops_cq_owner`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsCqOwner {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Context, flags, length, buffer, data, tag, source.
    pub write: unsafe extern "C" fn(
        *mut FidPeerCq,
        *mut c_void,
        u64,
        usize,
        *mut c_void,
        u64,
        u64,
        FiAddr,
    ) -> isize,
    /// An error.
    pub writeerr: unsafe extern "C" fn(*mut FidPeerCq, *const FiCqErrEntry) -> isize,
}

ops_layout! { FiOpsCqOwner = "struct fi_ops_cq_owner": write, writeerr }

/// An owner's completion queue (`struct fid_peer_cq`).
#[repr(C)]
#[derive(Debug)]
pub struct FidPeerCq {
    /// Head of the object.
    pub fid: Fid,
    /// What the owner does.
    pub owner_ops: *const FiOpsCqOwner,
}

layout! { FidPeerCq = "struct fid_peer_cq", 32: fid 0, owner_ops 24 }

/// The context of fi_cq_open with FI_PEER (`struct fi_peer_cq_context`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiPeerCqContext {
    /// Bytes of this structure.
    pub size: usize,
    /// The queue to write to.
    pub cq: *mut FidPeerCq,
}

layout! { FiPeerCqContext = "struct fi_peer_cq_context", 16: size 0, cq 8 }

/// A receive, or a message that waits for one (`struct fi_peer_rx_entry`).
#[repr(C)]
#[derive(Debug)]
pub struct FiPeerRxEntry {
    /// The context it belongs to; not every owner fills it.
    pub srx: *mut FidPeerSrx,
    /// The source.
    pub addr: FiAddr,
    /// Bytes of the message.
    pub msg_size: usize,
    /// The tag.
    pub tag: u64,
    /// The sender's data, if the flags have `FI_REMOTE_CQ_DATA`.
    pub cq_data: u64,
    /// Flags of the call.
    pub flags: u64,
    /// The operation's context.
    pub context: *mut c_void,
    /// Pieces of the buffer.
    pub count: usize,
    /// Memory descriptors.
    pub desc: *mut *mut c_void,
    /// Ours.
    pub peer_context: *mut c_void,
    /// The owner's.
    pub owner_context: *mut c_void,
    /// The buffer.
    pub iov: *mut iovec,
}

layout! { FiPeerRxEntry = "struct fi_peer_rx_entry", 96: srx 0, addr 8, msg_size 16, tag 24,
cq_data 32, flags 40, context 48, count 56, desc 64, peer_context 72, owner_context 80, iov 88 }

/// What a message is matched by (`struct fi_peer_match_attr`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiPeerMatchAttr {
    /// The source.
    pub addr: FiAddr,
    /// Bytes of the message.
    pub msg_size: usize,
    /// The tag.
    pub tag: u64,
}

layout! { FiPeerMatchAttr = "struct fi_peer_match_attr", 24: addr 0, msg_size 8, tag 16 }

/// Finds the receive for a message: 0, or `-FI_ENOENT` and an entry for an unexpected message.
pub type FiPeerGet =
    unsafe extern "C" fn(*mut FidPeerSrx, *mut FiPeerMatchAttr, *mut *mut FiPeerRxEntry) -> c_int;

/// What the owner of a shared receive context does (`struct fi_ops_srx_owner`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsSrxOwner {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Find a receive without a tag.
    pub get_msg: FiPeerGet,
    /// Find a receive with a tag.
    pub get_tag: FiPeerGet,
    /// Keep an unexpected message without a tag.
    pub queue_msg: unsafe extern "C" fn(*mut FiPeerRxEntry) -> c_int,
    /// Keep an unexpected message with a tag.
    pub queue_tag: unsafe extern "C" fn(*mut FiPeerRxEntry) -> c_int,
    /// Ask for the source of every unexpected message whose source was not known.
    pub foreach_unspec_addr:
        unsafe extern "C" fn(*mut FidPeerSrx, unsafe extern "C" fn(*mut FiPeerRxEntry) -> FiAddr),
    /// The peer is done with an entry.
    pub free_entry: unsafe extern "C" fn(*mut FiPeerRxEntry),
}

ops_layout! { FiOpsSrxOwner = "struct fi_ops_srx_owner": get_msg, get_tag, queue_msg, queue_tag,
foreach_unspec_addr, free_entry }

/// What a peer does with messages that it kept (`struct fi_ops_srx_peer`).
#[repr(C)]
#[derive(Debug)]
pub struct FiOpsSrxPeer {
    /// Bytes of this table that are filled.
    pub size: usize,
    /// Receive a message without a tag.
    pub start_msg: unsafe extern "C" fn(*mut FiPeerRxEntry) -> c_int,
    /// Receive a message with a tag.
    pub start_tag: unsafe extern "C" fn(*mut FiPeerRxEntry) -> c_int,
    /// Drop a message without a tag.
    pub discard_msg: unsafe extern "C" fn(*mut FiPeerRxEntry) -> c_int,
    /// Drop a message with a tag.
    pub discard_tag: unsafe extern "C" fn(*mut FiPeerRxEntry) -> c_int,
}

ops_layout! { FiOpsSrxPeer = "struct fi_ops_srx_peer": start_msg, start_tag, discard_msg,
discard_tag }

/// An owner's shared receive context (`struct fid_peer_srx`).
#[repr(C)]
#[derive(Debug)]
pub struct FidPeerSrx {
    /// The owner's own face of it.
    pub ep_fid: EndpointObject,
    /// What the owner does.
    pub owner_ops: *const FiOpsSrxOwner,
    /// What the peer does; the peer fills it.
    pub peer_ops: *const FiOpsSrxPeer,
}

layout! { FidPeerSrx = "struct fid_peer_srx", 96: ep_fid 0, owner_ops 80, peer_ops 88 }

/// The context of fi_srx_context with FI_PEER (`struct fi_peer_srx_context`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FiPeerSrxContext {
    /// Bytes of this structure.
    pub size: usize,
    /// The context to take receives from.
    pub srx: *mut FidPeerSrx,
}

layout! { FiPeerSrxContext = "struct fi_peer_srx_context", 16: size 0, srx 8 }
