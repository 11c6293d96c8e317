// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starts operations: sends of every kind, receives, multi-receives, peeks, claims, cancels.
//!
//! Called by the worker. Source: fi_msg(3), fi_tagged(3), fi_cancel in fi_endpoint(3).

use std::ffi::c_void;
use std::ptr;

use weft_fabric_sys::FI_ADDR_UNSPEC;
use weft_fabric_sys::fid::FidEp;
use weft_fabric_sys::flags::*;
use weft_fabric_sys::message::FiMsg;
use weft_fabric_sys::tagged::FiMsgTagged;

use super::in_flight::{Posted, refused};
use super::node::{Node, object};

/// How a message is handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendKind {
    /// fi_send, fi_senddata and their tagged kin.
    Usual,
    /// fi_inject and its kin: no completion.
    Inject,
    /// fi_sendmsg with FI_DELIVERY_COMPLETE.
    Delivered,
}

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// The remote, as the address vector names it.
    pub to: u64,
    /// Its tag; `None` for an untagged message.
    pub tag: Option<u64>,
    /// Data for the receiver's completion.
    pub data: Option<u64>,
    /// How.
    pub kind: SendKind,
}

/// From whom a receive takes messages.
pub type Source = Option<u64>;

/// Which tagged messages a receive or a peek takes.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// From whom.
    pub source: Source,
    /// The tag.
    pub tag: u64,
    /// Bits of it that do not matter.
    pub ignore: u64,
}

impl Node {
    /// Starts a send. The bytes are gone when it is not taken: they are made anew from their
    /// identity.
    pub fn send(&mut self, out: &Outgoing, bytes: Vec<u8>) -> Posted {
        if out.kind == SendKind::Inject {
            return self.inject(out, &bytes);
        }
        let endpoint = self.endpoint;
        self.in_flight.start(bytes, |base, length, context| {
            // SAFETY: the endpoint is open; the buffer is held until the operation ends.
            unsafe { send(endpoint, out, base, length, context) }
        })
    }

    fn inject(&mut self, out: &Outgoing, bytes: &[u8]) -> Posted {
        let (base, length) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the endpoint is open; an injected buffer is read during the call alone.
        let code = unsafe {
            let endpoint = self.endpoint;
            let (tagged, plain) = (&*(*object(endpoint)).tagged, &*(*object(endpoint)).msg);
            match (out.tag, out.data) {
                (Some(tag), Some(data)) => {
                    (tagged.injectdata)(endpoint, base, length, data, out.to, tag)
                }
                (Some(tag), None) => (tagged.inject)(endpoint, base, length, out.to, tag),
                (None, Some(data)) => (plain.injectdata)(endpoint, base, length, data, out.to),
                (None, None) => (plain.inject)(endpoint, base, length, out.to),
            }
        };
        match code {
            0 => Posted::Done,
            code => refused(code),
        }
    }

    /// Posts a receive for tagged messages.
    pub fn receive_tagged(&mut self, wanted: &Wanted, buffer: Vec<u8>) -> Posted {
        let endpoint = self.endpoint;
        self.in_flight.start(buffer, |base, length, context| {
            // SAFETY: the endpoint is open; the buffer is held until the operation ends.
            unsafe {
                ((*(*object(endpoint)).tagged).recv)(
                    endpoint,
                    base,
                    length,
                    ptr::null_mut(),
                    wanted.source.unwrap_or(FI_ADDR_UNSPEC),
                    wanted.tag,
                    wanted.ignore,
                    context,
                )
            }
        })
    }

    /// Posts a receive for untagged messages; one of many messages if `many`.
    pub fn receive_plain(&mut self, source: Source, many: bool, buffer: Vec<u8>) -> Posted {
        let endpoint = self.endpoint;
        self.in_flight.start(buffer, |base, length, context| {
            let part = libc::iovec {
                iov_base: base,
                iov_len: length,
            };
            let message = FiMsg {
                msg_iov: &raw const part,
                desc: ptr::null_mut(),
                iov_count: 1,
                addr: source.unwrap_or(FI_ADDR_UNSPEC),
                context,
                data: 0,
            };
            let flags = FI_COMPLETION | if many { FI_MULTI_RECV } else { 0 };
            // SAFETY: the endpoint is open; the message is read during the call, and the buffer is
            // held until the operation ends.
            unsafe { ((*(*object(endpoint)).msg).recvmsg)(endpoint, &raw const message, flags) }
        })
    }

    /// Asks for a tagged message that is here already, and claims it if there is one.
    pub fn peek(&mut self, wanted: &Wanted, claim: bool) -> Posted {
        let flags = FI_PEEK | if claim { FI_CLAIM } else { 0 };
        let number = self.in_flight.number();
        self.ask(wanted, number, flags, Vec::new())
    }

    /// Receives the message that the peek of this number has claimed; it keeps the number.
    pub fn take_claimed(&mut self, wanted: &Wanted, number: u64, buffer: Vec<u8>) -> Posted {
        self.ask(wanted, number, FI_CLAIM, buffer)
    }

    fn ask(&mut self, wanted: &Wanted, number: u64, flags: u64, buffer: Vec<u8>) -> Posted {
        let endpoint = self.endpoint;
        self.in_flight
            .start_as(number, buffer, |base, length, context| {
                let part = libc::iovec {
                    iov_base: base,
                    iov_len: length,
                };
                let message = FiMsgTagged {
                    msg_iov: &raw const part,
                    desc: ptr::null_mut(),
                    iov_count: 1,
                    addr: wanted.source.unwrap_or(FI_ADDR_UNSPEC),
                    tag: wanted.tag,
                    ignore: wanted.ignore,
                    context,
                    data: 0,
                };
                // SAFETY: the endpoint is open; the message is read during the call, and the buffer
                // is held until the operation ends.
                unsafe {
                    let ops = &*(*object(endpoint)).tagged;
                    (ops.recvmsg)(endpoint, &raw const message, flags | FI_COMPLETION)
                }
            })
    }

    /// Asks that an operation end now; it still has a completion.
    pub fn cancel(&mut self, number: u64) {
        // SAFETY: the endpoint is open; an operation that has ended already is no error for the
        // caller.
        unsafe {
            let cancel = (*(*object(self.endpoint)).ops).cancel;
            cancel(self.endpoint.cast(), number as *mut c_void);
        }
    }
}

/// # Safety
/// The endpoint is open, and the buffer lives until the operation ends.
unsafe fn send(
    endpoint: *mut FidEp,
    out: &Outgoing,
    base: *mut c_void,
    length: usize,
    context: *mut c_void,
) -> isize {
    let bytes = base.cast_const();
    let none = ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe {
        let (tagged, plain) = (&*(*object(endpoint)).tagged, &*(*object(endpoint)).msg);
        match (out.kind, out.tag, out.data) {
            (SendKind::Delivered, ..) => deliver(endpoint, out, base, length, context),
            (_, Some(tag), Some(data)) => {
                (tagged.senddata)(endpoint, bytes, length, none, data, out.to, tag, context)
            }
            (_, Some(tag), None) => {
                (tagged.send)(endpoint, bytes, length, none, out.to, tag, context)
            }
            (_, None, Some(data)) => {
                (plain.senddata)(endpoint, bytes, length, none, data, out.to, context)
            }
            (_, None, None) => (plain.send)(endpoint, bytes, length, none, out.to, context),
        }
    }
}

/// # Safety
/// The endpoint is open, and the buffer lives until the operation ends.
unsafe fn deliver(
    endpoint: *mut FidEp,
    out: &Outgoing,
    base: *mut c_void,
    length: usize,
    context: *mut c_void,
) -> isize {
    let part = libc::iovec {
        iov_base: base,
        iov_len: length,
    };
    let data_flag = out.data.map_or(0, |_| FI_REMOTE_CQ_DATA);
    let flags = FI_DELIVERY_COMPLETE | FI_COMPLETION | data_flag;
    let (desc, data) = (ptr::null_mut(), out.data.unwrap_or(0));
    if let Some(tag) = out.tag {
        let message = FiMsgTagged {
            msg_iov: &raw const part,
            desc,
            iov_count: 1,
            addr: out.to,
            tag,
            ignore: 0,
            context,
            data,
        };
        // SAFETY: the caller's promise; the message is read during the call.
        return unsafe {
            let ops = &*(*object(endpoint)).tagged;
            (ops.sendmsg)(endpoint, &raw const message, flags)
        };
    }
    let message = FiMsg {
        msg_iov: &raw const part,
        desc,
        iov_count: 1,
        addr: out.to,
        context,
        data,
    };
    // SAFETY: the caller's promise; the message is read during the call.
    unsafe { ((*(*object(endpoint)).msg).sendmsg)(endpoint, &raw const message, flags) }
}
