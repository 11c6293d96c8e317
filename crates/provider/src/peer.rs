// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receives that belong to another provider: weft as a peer, for example under lnx, which then
//! matches for several providers at once.
//!
//! The owner passes its shared receive context to fi_srx_context with FI_PEER. From then on the
//! endpoint crate offers each arriving message to [`Imported`], which asks the owner; the owner
//! calls back here to receive or drop a message that was unexpected. Only with libraries whose
//! structures fabric-sys describes. Source: fi_peer(3).

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::slice;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_endpoint::UserBuffer;
use weft_endpoint::{Class, EndpointId, Found, SharedContext, SharedMessage, SharedReceive};
use weft_fabric_sys::endpoint::EndpointObject;
use weft_fabric_sys::errno::{FI_EINVAL, FI_ENOENT, FI_ENOSYS, FI_EOPBADSTATE, FI_SUCCESS};
use weft_fabric_sys::fid::FidDomain;
use weft_fabric_sys::fid::FidEp;
use weft_fabric_sys::fid::{FI_CLASS_SRX_CTX, Fid};
use weft_fabric_sys::flags::{FI_PEER, FI_REMOTE_CQ_DATA};
use weft_fabric_sys::info::FiRxAttr;
use weft_fabric_sys::peer::{
    FiOpsSrxOwner, FiOpsSrxPeer, FiPeerCqContext, FiPeerMatchAttr, FiPeerRxEntry, FiPeerSrxContext,
    FidPeerCq, FidPeerSrx,
};
use weft_fabric_sys::{FI_ADDR_UNSPEC, FiAddr as RawFiAddr};
use weft_os::at_fork;

use crate::domain::Domain;
use crate::lock::Lock;
use crate::object::{Held, hand_out, head, no_bind, no_control, table, take_back};
use crate::{errno, host, offer};

/// The owner's queue in the context of fi_cq_open; null without FI_PEER.
///
/// # Errors
/// `FI_ENOSYS` with a library whose Peer API is another, `FI_EINVAL` for a context that is none.
///
/// # Safety
/// With FI_PEER in `flags`, `context` must be null or what that flag asks for.
pub unsafe fn queue_owner(flags: u64, context: *const c_void) -> Result<*mut FidPeerCq, c_int> {
    if flags & FI_PEER == 0 {
        return Ok(std::ptr::null_mut());
    }
    if !host::knows_peers() {
        return Err(FI_ENOSYS);
    }
    // SAFETY: the contract.
    let context = unsafe { context.cast::<FiPeerCqContext>().as_ref() };
    context
        .filter(|context| context.size >= size_of::<FiPeerCqContext>())
        .map(|context| context.cq)
        .filter(|queue| !queue.is_null())
        .ok_or(FI_EINVAL)
}

/// A shared receive context of another provider, as our own object.
#[repr(C)]
#[derive(Debug)]
pub struct SharedReceives<L> {
    fid: EndpointObject,
    domain: Held<Domain<L>>,
    owner: *mut FidPeerSrx,
}

/// Opens such a context. Contexts of our own are not offered.
///
/// # Safety
/// The arguments must be those of fi_srx_context(3), the domain one of ours with this kind of lock.
pub unsafe extern "C" fn open<L: Lock>(
    domain: *mut FidDomain,
    attr: *mut FiRxAttr,
    receives: *mut *mut FidEp,
    context: *mut c_void,
) -> c_int {
    // SAFETY: null or the application's attributes.
    let flags = unsafe { attr.as_ref() }.map_or(0, |attr| attr.op_flags);
    if flags & FI_PEER == 0 || !host::knows_peers() {
        return -FI_ENOSYS;
    }
    // SAFETY: with FI_PEER the context is this structure (fi_peer(3)).
    let Some(peer) = (unsafe { context.cast::<FiPeerSrxContext>().as_ref() }) else {
        return -FI_EINVAL;
    };
    if receives.is_null() || peer.srx.is_null() || peer.size < size_of::<FiPeerSrxContext>() {
        return -FI_EINVAL;
    }
    // SAFETY: the contract; the peer's part of the owner's structure is ours to fill.
    let domain = unsafe {
        (*peer.srx).peer_ops = peer_ops::<L>();
        Held::new(domain.cast::<Domain<L>>())
    };
    let opened = SharedReceives {
        fid: EndpointObject {
            fid: head(
                FI_CLASS_SRX_CTX,
                context,
                const { &table(close::<L>, no_bind, no_control) },
            ),
            // The owner posts receives on its own face of the context, never here.
            ops: std::ptr::null(),
            cm: std::ptr::null(),
            msg: std::ptr::null(),
            rma: std::ptr::null(),
            tagged: std::ptr::null(),
            atomic: std::ptr::null(),
            collective: std::ptr::null(),
        },
        domain,
        owner: peer.srx,
    };
    // SAFETY: the place is not null and the application's.
    let receives = unsafe { hand_out(opened, receives) };
    at_fork::in_child(receives as usize, disable::<L>);
    FI_SUCCESS
}

/// Has the owner's calls refused, as all calls are in a child process. For a child, before it runs
/// anything else.
fn disable<L: Lock>(receives: usize) {
    static REFUSING: FiOpsSrxPeer = FiOpsSrxPeer {
        size: size_of::<FiOpsSrxPeer>(),
        start_msg: refuse,
        start_tag: refuse,
        discard_msg: refuse,
        discard_tag: refuse,
    };
    // SAFETY: registered by `open` and forgotten by `close`, so that both structures are open; the
    // child has no other thread.
    unsafe { (*(*(receives as *const SharedReceives<L>)).owner).peer_ops = &raw const REFUSING };
}

/// In a child, of an entry of its parent's.
unsafe extern "C" fn refuse(_: *mut FiPeerRxEntry) -> c_int {
    -FI_EOPBADSTATE
}

unsafe extern "C" fn close<L: Lock>(fid: *mut Fid) -> c_int {
    let receives = fid.cast::<SharedReceives<L>>();
    // SAFETY: this table belongs to such contexts only; it came from `hand_out`, and
    // endpoints know the owner's structure only.
    unsafe {
        at_fork::forget(receives as usize, disable::<L>);
        drop(take_back(receives));
    }
    FI_SUCCESS
}

impl<L: Lock> SharedReceives<L> {
    /// The domain it belongs to.
    pub fn domain(&self) -> &Domain<L> {
        &self.domain
    }

    /// The owner, for one endpoint.
    pub fn import(&self, endpoint: EndpointId) -> Imported {
        Imported {
            owner: self.owner,
            domain: (&raw const *self.domain).cast(),
            endpoint,
            kept: Vec::new(),
        }
    }

    /// The owner's structure.
    pub fn owner(&self) -> *mut FidPeerSrx {
        self.owner
    }
}

/// The owner of one endpoint's receives.
#[derive(Debug)]
pub struct Imported {
    owner: *mut FidPeerSrx,
    /// Its kind of lock is known to the functions in the owner's table of peer operations.
    domain: *const c_void,
    endpoint: EndpointId,
    /// By number. Boxed, since the owner keeps pointers.
    #[expect(clippy::vec_box, reason = "the owner keeps pointers")]
    kept: Vec<Box<Kept>>,
}

// SAFETY: the owner's structure outlives the endpoint, and its operations may be called from any
// thread that drives the endpoint (fi_peer(3)); all else is plain data.
unsafe impl Send for Imported {}

/// What an entry of an unexpected message leads to.
#[derive(Debug)]
struct Kept {
    owner: *mut FidPeerSrx,
    domain: *const c_void,
    endpoint: EndpointId,
    number: u32,
}

/// The addresses of all [`Kept`]: an owner shows us entries of other providers too.
static ALL_KEPT: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

fn all_kept() -> MutexGuard<'static, BTreeSet<usize>> {
    ALL_KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Imported {
    fn drop(&mut self) {
        let mut all = all_kept();
        for kept in &self.kept {
            all.remove(&(&raw const **kept as usize));
        }
    }
}

impl Imported {
    fn owner_ops(&self) -> &FiOpsSrxOwner {
        // SAFETY: the owner's structure and its table outlive the endpoint (fi_peer(3)).
        unsafe { &*(*self.owner).owner_ops }
    }

    /// What the owner's entry for the message of a number shall lead to.
    fn kept(&mut self, number: u32) -> *mut c_void {
        while self.kept.len() <= number as usize {
            let kept = Box::new(Kept {
                owner: self.owner,
                domain: self.domain,
                endpoint: self.endpoint,
                number: self.kept.len() as u32,
            });
            all_kept().insert(&raw const *kept as usize);
            self.kept.push(kept);
        }
        (&raw mut *self.kept[number as usize]).cast()
    }
}

/// Copies a receive out of the owner's entry. `None` if its buffer has too many pieces.
///
/// # Safety
/// `entry` must be an owner's entry of a posted receive.
unsafe fn take(entry: *mut FiPeerRxEntry) -> Option<SharedReceive> {
    // SAFETY: the contract: the entry is valid, and so are its pieces, until the completion.
    unsafe {
        let entry = &*entry;
        if entry.count > offer::PIECES {
            return None;
        }
        let pieces = if entry.count == 0 || entry.iov.is_null() {
            &[]
        } else {
            slice::from_raw_parts(entry.iov, entry.count)
        };
        let pieces = pieces
            .iter()
            .map(|piece| (piece.iov_base.cast(), piece.iov_len));
        Some(SharedReceive {
            buffer: UserBuffer::from_pieces(pieces),
            context: entry.context as usize,
            flags: entry.flags,
        })
    }
}

impl SharedContext for Imported {
    fn offer(&mut self, message: &SharedMessage, number: u32) -> Found {
        let mut attr = FiPeerMatchAttr {
            addr: message.source.0,
            msg_size: message.length_bytes as usize,
            tag: message.tag,
        };
        let tagged = message.class == Class::Tagged;
        let mut entry = std::ptr::null_mut();
        let ops = self.owner_ops();
        let get = if tagged { ops.get_tag } else { ops.get_msg };
        // SAFETY: the owner's function, with its own context and structures of ours (fi_peer(3)).
        let code = unsafe { get(self.owner, &mut attr, &mut entry) };
        if entry.is_null() || ![0, -FI_ENOENT].contains(&code) {
            return Found::Refused;
        }
        if code == 0 {
            // SAFETY: the owner has just answered with this receive, which is ours until it is
            // freed.
            unsafe {
                let receive = take(entry);
                (self.owner_ops().free_entry)(entry);
                return receive.map_or(Found::Refused, Found::Receive);
            }
        }
        let kept = self.kept(number);
        let ops = self.owner_ops();
        let queue = if tagged { ops.queue_tag } else { ops.queue_msg };
        // SAFETY: the owner has just answered with this entry, which is ours to fill until it is
        // queued or freed.
        unsafe {
            (*entry).peer_context = kept;
            (*entry).msg_size = attr.msg_size;
            if let Some(data) = message.cq_data {
                (*entry).cq_data = data;
                (*entry).flags |= FI_REMOTE_CQ_DATA;
            }
            if queue(entry) != 0 {
                (ops.free_entry)(entry);
                return Found::Refused;
            }
        }
        Found::Unexpected
    }
}

fn peer_ops<L: Lock>() -> &'static FiOpsSrxPeer {
    const {
        &FiOpsSrxPeer {
            size: size_of::<FiOpsSrxPeer>(),
            start_msg: start::<L>,
            start_tag: start::<L>,
            discard_msg: discard::<L>,
            discard_tag: discard::<L>,
        }
    }
}

/// The owner has a receive for a message that was unexpected.
unsafe extern "C" fn start<L: Lock>(entry: *mut FiPeerRxEntry) -> c_int {
    // SAFETY: the owner passes an entry that we queued, now with a receive in it.
    unsafe {
        let kept = &*(*entry).peer_context.cast::<Kept>();
        let Some(receive) = take(entry) else {
            return -FI_EINVAL;
        };
        let domain = &*kept.domain.cast::<Domain<L>>();
        let free = (*(*kept.owner).owner_ops).free_entry;
        let started = domain.with(|guarded| {
            guarded
                .endpoint(kept.endpoint)?
                .start_kept(kept.number, receive)
        });
        if started.is_ok() {
            free(entry);
        }
        errno::code(started)
    }
}

/// The owner does not want a message; it frees the entry itself.
unsafe extern "C" fn discard<L: Lock>(entry: *mut FiPeerRxEntry) -> c_int {
    // SAFETY: the owner passes an entry that we queued.
    unsafe {
        let kept = &*(*entry).peer_context.cast::<Kept>();
        let domain = &*kept.domain.cast::<Domain<L>>();
        errno::code(
            domain.with(|guarded| guarded.endpoint(kept.endpoint)?.discard_kept(kept.number)),
        )
    }
}

/// Tells an owner the sources of its unexpected messages, after addresses were inserted.
///
/// # Safety
/// `owner` must be the owner of an open endpoint of a domain with this kind of lock.
pub unsafe fn name_sources<L: Lock>(owner: *mut FidPeerSrx) {
    // SAFETY: the contract.
    unsafe { ((*(*owner).owner_ops).foreach_unspec_addr)(owner, source_of::<L>) }
}

/// Who sent an unexpected message. The entry may be another provider's.
unsafe extern "C" fn source_of<L: Lock>(entry: *mut FiPeerRxEntry) -> RawFiAddr {
    // SAFETY: the owner passes an open entry; what it leads to is looked at only if it is one of
    // ours.
    unsafe {
        let kept = (*entry).peer_context.cast::<Kept>();
        if !all_kept().contains(&(kept as usize)) {
            return FI_ADDR_UNSPEC;
        }
        let kept = &*kept;
        let domain = &*kept.domain.cast::<Domain<L>>();
        let source =
            domain.with(|guarded| guarded.endpoint(kept.endpoint)?.source_of_kept(kept.number));
        source.map_or(FI_ADDR_UNSPEC, |source| source.0)
    }
}
