// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects in a child process: fork(2) copies them, but what they stand for (regions that others
//! write into, ports, threads) stays the parent's. In a child their tables of functions are
//! exchanged: every call is refused with FI_EOPBADSTATE, and closing one does nothing and answers
//! success.
//!
//! So the calls themselves ask nothing, and cost nothing. Registered by object when an object is
//! handed out; called by os's handler in the child. A child may open objects of its own. Source:
//! fi_errno(3).

use std::ffi::{c_char, c_int, c_void};
use std::sync::Once;

use weft_fabric_sys::atomic::FiOpsAtomic;
use weft_fabric_sys::av::{FiOpsAv, FidAv};
use weft_fabric_sys::counter::{FiOpsCntr, FidCntr};
use weft_fabric_sys::cq::{FiOpsCq, FidCq};
use weft_fabric_sys::domain::{FiOpsDomain, FidDomain};
use weft_fabric_sys::endpoint::{FiOpsCm, FiOpsEp, FidEp};
use weft_fabric_sys::eq::{FiOpsEq, FidEq};
use weft_fabric_sys::errno::{FI_EOPBADSTATE, FI_SUCCESS};
use weft_fabric_sys::fabric::{FiOpsFabric, FidFabric};
use weft_fabric_sys::fid::*;
use weft_fabric_sys::message::FiOpsMsg;
use weft_fabric_sys::mr::FiOpsMr;
use weft_fabric_sys::poll::{FiOpsPoll, FidPoll};
use weft_fabric_sys::rma::FiOpsRma;
use weft_fabric_sys::tagged::FiOpsTagged;
use weft_fabric_sys::wait::{FiOpsWait, FidWait};

use crate::{av, cq, report};

/// Says why a call is refused, once in a process.
#[cold]
fn explain() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        report::line(&format!(
            "process {} was forked from one that uses this provider, and calls it through an \
             object that it inherited: refused; a child has to open objects of its own, beginning with \
             fi_getinfo, or to execute a program",
            std::process::id()
        ));
    });
}

/// A function of a table that refuses every call.
trait Refusal: Sized {
    const REFUSED: Self;
}

/// An answer that says no.
trait No {
    fn no() -> Self;
}

impl No for c_int {
    fn no() -> Self {
        -FI_EOPBADSTATE
    }
}

impl No for isize {
    fn no() -> Self {
        -(FI_EOPBADSTATE as isize)
    }
}

/// Counters have no way to say so: they stand at 0.
impl No for u64 {
    fn no() -> Self {
        0
    }
}

/// For functions with these arguments, whatever they answer.
macro_rules! refusal {
    ($refused:ident: $($argument:ident)*) => {
        unsafe extern "C" fn $refused<R: No, $($argument),*>($(_: $argument),*) -> R {
            explain();
            R::no()
        }

        impl<R: No, $($argument),*> Refusal for unsafe extern "C" fn($($argument),*) -> R {
            const REFUSED: Self = $refused::<R, $($argument),*>;
        }
    };
}

refusal! { refused_1: A }
refusal! { refused_2: A B }
refusal! { refused_3: A B C }
refusal! { refused_4: A B C D }
refusal! { refused_5: A B C D E }
refusal! { refused_6: A B C D E F }
refusal! { refused_7: A B C D E F G }
refusal! { refused_8: A B C D E F G H }
refusal! { refused_9: A B C D E F G H I }
refusal! { refused_10: A B C D E F G H I J }
refusal! { refused_11: A B C D E F G H I J K }
refusal! { refused_12: A B C D E F G H I J K L }
refusal! { refused_13: A B C D E F G H I J K L M }
refusal! { refused_14: A B C D E F G H I J K L M N }
refusal! { refused_15: A B C D E F G H I J K L M N O }
refusal! { refused_16: A B C D E F G H I J K L M N O P }

/// A table all of whose functions refuse, but for those that are given.
macro_rules! refusing {
    ($name:ident: $table:ident { $($call:ident),* } $($kept:ident: $keeps:expr),*) => {
        static $name: $table = $table {
            size: size_of::<$table>(),
            $($call: Refusal::REFUSED,)*
            $($kept: $keeps,)*
        };
    };
}

refusing! {
    FID: FiOps {
        bind, control, ops_open, ops_set
    }
    close: close, tostr: tostr
}
refusing! {
    ENDPOINT: FiOpsEp {
        cancel, getopt, setopt, tx_ctx, rx_ctx, rx_size_left, tx_size_left
    }
}
refusing! {
    NAMES: FiOpsCm {
        setname, getname, getpeer, connect, listen, accept, reject, shutdown, join
    }
}
refusing! {
    MESSAGES: FiOpsMsg {
        recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata
    }
}
refusing! {
    TAGGED: FiOpsTagged {
        recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata
    }
}
refusing! {
    REMOTE: FiOpsRma {
        read, readv, readmsg, write, writev, writemsg, inject, writedata, injectdata
    }
}
refusing! {
    ATOMIC: FiOpsAtomic {
        write, writev, writemsg, inject, readwrite, readwritev, readwritemsg, compwrite,
        compwritev, compwritemsg, writevalid, readwritevalid, compwritevalid
    }
}
refusing! {
    QUEUE: FiOpsCq {
        read, readfrom, readerr, sread, sreadfrom, signal
    }
    strerror: cq::strerror
}
refusing! {
    COUNTER: FiOpsCntr {
        read, readerr, add, set, wait, adderr, seterr
    }
}
refusing! {
    VECTOR: FiOpsAv {
        insert, insertsvc, insertsym, remove, lookup, av_set
    }
    straddr: av::print
}
refusing! {
    DOMAIN: FiOpsDomain {
        av_open, cq_open, endpoint, scalable_ep, cntr_open, poll_open, stx_ctx, srx_ctx,
        query_atomic, query_collective, endpoint2
    }
}
refusing! {
    REGIONS: FiOpsMr {
        reg, regv, regattr
    }
}
refusing! {
    FABRIC: FiOpsFabric {
        domain, passive_ep, eq_open, wait_open, trywait, domain2
    }
}
refusing! {
    EVENTS: FiOpsEq {
        read, readerr, write, sread
    }
    strerror: event_error
}
refusing! {
    WAIT_SET: FiOpsWait {
        wait
    }
}
refusing! {
    POLL_SET: FiOpsPoll {
        poll, poll_add, poll_del
    }
}

/// What was inherited stays as it is until this process ends.
unsafe extern "C" fn close(_: *mut Fid) -> c_int {
    FI_SUCCESS
}

unsafe extern "C" fn tostr(_: *const Fid, _: *mut c_char, _: usize) -> c_int {
    -FI_EOPBADSTATE
}

unsafe extern "C" fn event_error(
    _: *mut FidEq,
    number: c_int,
    _: *const c_void,
    buffer: *mut c_char,
    length: usize,
) -> *const c_char {
    // SAFETY: the application's buffer is null or writable for its length (fi_eq(3)).
    unsafe {
        cq::strerror(
            std::ptr::null_mut(),
            number,
            std::ptr::null(),
            buffer,
            length,
        )
    }
}

/// Exchanges the tables of the object at an address. For a child process, before it runs anything
/// else.
pub fn disable(object: usize) {
    let fid = object as *mut Fid;
    // SAFETY: the object is open: object registers it when it is handed out, and forgets it when it
    // is taken back; the child has no other thread, and every object begins with its fid, whose
    // class says what follows.
    unsafe {
        (*fid).ops = &raw const FID;
        match (*fid).fclass {
            FI_CLASS_EP => {
                let endpoint = fid.cast::<FidEp>();
                (*endpoint).ops = &raw const ENDPOINT;
                (*endpoint).cm = &raw const NAMES;
                (*endpoint).msg = &raw const MESSAGES;
                (*endpoint).rma = &raw const REMOTE;
                (*endpoint).tagged = &raw const TAGGED;
                (*endpoint).atomic = &raw const ATOMIC;
            }
            FI_CLASS_CQ => (*fid.cast::<FidCq>()).ops = &raw const QUEUE,
            FI_CLASS_CNTR => (*fid.cast::<FidCntr>()).ops = &raw const COUNTER,
            FI_CLASS_AV => (*fid.cast::<FidAv>()).ops = &raw const VECTOR,
            FI_CLASS_DOMAIN => {
                (*fid.cast::<FidDomain>()).ops = &raw const DOMAIN;
                (*fid.cast::<FidDomain>()).mr = &raw const REGIONS;
            }
            FI_CLASS_FABRIC => (*fid.cast::<FidFabric>()).ops = &raw const FABRIC,
            FI_CLASS_EQ => (*fid.cast::<FidEq>()).ops = &raw const EVENTS,
            FI_CLASS_WAIT => (*fid.cast::<FidWait>()).ops = &raw const WAIT_SET,
            FI_CLASS_POLL => (*fid.cast::<FidPoll>()).ops = &raw const POLL_SET,
            // Regions and shared receive contexts of peers have no table that the application
            // calls.
            _ => {}
        }
    }
}
