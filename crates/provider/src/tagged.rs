// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tagged messages: the nine calls of `struct fi_ops_tagged`.
//!
//! Called by applications; each is one call of post. C's argument lists are longer than five.
//! Source: fi_tagged(3).

use std::ffi::c_void;

use libc::iovec;
use weft_endpoint::{Class, FiAddr, Inject, Receive, Send};
use weft_fabric_sys::FiAddr as RawFiAddr;
use weft_fabric_sys::errno::FI_EINVAL;
use weft_fabric_sys::fid::FidEp;
use weft_fabric_sys::tagged::FiMsgTagged;

use crate::lock::Lock;
use crate::post::{self, Piece, data_if_flagged};

#[inline(always)]
fn sending(tag: u64, context: *mut c_void, cq_data: Option<u64>, flags: Option<u64>) -> Send {
    Send {
        class: Class::Tagged,
        tag,
        cq_data,
        flags,
        context: context as usize,
    }
}

#[inline(always)]
fn receiving(source: RawFiAddr, tag: u64, ignore: u64, context: *mut c_void) -> Receive {
    Receive {
        class: Class::Tagged,
        source: FiAddr(source),
        tag,
        ignore,
        flags: None,
        context: context as usize,
    }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn recv<L: Lock>(
    endpoint: *mut FidEp,
    base: *mut c_void,
    length_bytes: usize,
    _desc: *mut c_void,
    source: RawFiAddr,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    let piece = Piece { base, length_bytes };
    // SAFETY: this table belongs to endpoints of this kind of lock only; the arguments are
    // fi_trecv's.
    unsafe { post::receive::<L>(endpoint, piece, receiving(source, tag, ignore, context)) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn recvv<L: Lock>(
    endpoint: *mut FidEp,
    pieces: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    source: RawFiAddr,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments are fi_trecvv's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe {
        post::receive_pieces::<L>(
            endpoint,
            pieces,
            count,
            receiving(source, tag, ignore, context),
        )
    }
}

pub(crate) unsafe extern "C" fn recvmsg<L: Lock>(
    endpoint: *mut FidEp,
    message: *const FiMsgTagged,
    flags: u64,
) -> isize {
    // SAFETY: null or the application's message.
    let Some(message) = (unsafe { message.as_ref() }) else {
        return -(FI_EINVAL as isize);
    };
    let receive = receiving(message.addr, message.tag, message.ignore, message.context);
    let receive = Receive {
        flags: Some(flags),
        ..receive
    };
    // SAFETY: the arguments are fi_trecvmsg's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post::receive_pieces::<L>(endpoint, message.msg_iov, message.iov_count, receive) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn send<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    length_bytes: usize,
    _desc: *mut c_void,
    to: RawFiAddr,
    tag: u64,
    context: *mut c_void,
) -> isize {
    let piece = Piece { base, length_bytes };
    // SAFETY: the arguments are fi_tsend's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post::send::<L>(endpoint, piece, to, sending(tag, context, None, None)) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn sendv<L: Lock>(
    endpoint: *mut FidEp,
    pieces: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: RawFiAddr,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the arguments are fi_tsendv's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe {
        post::send_pieces::<L>(
            endpoint,
            pieces,
            count,
            to,
            sending(tag, context, None, None),
        )
    }
}

pub(crate) unsafe extern "C" fn sendmsg<L: Lock>(
    endpoint: *mut FidEp,
    message: *const FiMsgTagged,
    flags: u64,
) -> isize {
    // SAFETY: null or the application's message.
    let Some(message) = (unsafe { message.as_ref() }) else {
        return -(FI_EINVAL as isize);
    };
    let data = data_if_flagged(flags, message.data);
    let send = sending(message.tag, message.context, data, Some(flags));
    // SAFETY: the arguments are fi_tsendmsg's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe {
        post::send_pieces::<L>(
            endpoint,
            message.msg_iov,
            message.iov_count,
            message.addr,
            send,
        )
    }
}

pub(crate) unsafe extern "C" fn inject<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    length_bytes: usize,
    to: RawFiAddr,
    tag: u64,
) -> isize {
    let inject = Inject {
        class: Class::Tagged,
        tag,
        cq_data: None,
    };
    // SAFETY: the arguments are fi_tinject's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post::inject::<L>(endpoint, Piece { base, length_bytes }, to, inject) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn senddata<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    length_bytes: usize,
    _desc: *mut c_void,
    data: u64,
    to: RawFiAddr,
    tag: u64,
    context: *mut c_void,
) -> isize {
    let piece = Piece { base, length_bytes };
    // SAFETY: the arguments are fi_tsenddata's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post::send::<L>(endpoint, piece, to, sending(tag, context, Some(data), None)) }
}

// structure: allow arguments because libfabric's callers pass them so
pub(crate) unsafe extern "C" fn injectdata<L: Lock>(
    endpoint: *mut FidEp,
    base: *const c_void,
    length_bytes: usize,
    data: u64,
    to: RawFiAddr,
    tag: u64,
) -> isize {
    let inject = Inject {
        class: Class::Tagged,
        tag,
        cq_data: Some(data),
    };
    // SAFETY: the arguments are fi_tinjectdata's, and the table with this function belongs to
    // objects of this kind of lock.
    unsafe { post::inject::<L>(endpoint, Piece { base, length_bytes }, to, inject) }
}
