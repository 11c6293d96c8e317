// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects in a child process: fork(2) copies them, but what they stand for (regions that others
//! write into, ports, threads) stays the parent's. In a child their tables of functions are
//! exchanged: every call is refused with FI_EOPBADSTATE, and closing one does nothing and answers
//! success.
//!
//! So the calls themselves ask nothing, and cost nothing. Registered by object when an object is
//! handed out; called by os's handler in the child. A child may open objects of its own. Source:
//! fi_errno(3).

use std::ffi::{c_char, c_int};
use std::sync::Once;

use weft_fabric_sys::atomic::FiOpsAtomic;
use weft_fabric_sys::av::{FiOpsAv, FidAv};
use weft_fabric_sys::counter::{FiOpsCntr, FidCntr};
use weft_fabric_sys::cq::{FiCqEntry, FiOpsCq, FidCq};
use weft_fabric_sys::domain::{DomainObject, FiOpsDomain};
use weft_fabric_sys::endpoint::{EndpointObject, FiOpsCm, FiOpsEp};
use weft_fabric_sys::eq::{FiOpsEq, FidEq};
use weft_fabric_sys::errno::{FI_EOPBADSTATE, FI_SUCCESS};
use weft_fabric_sys::fabric::{FabricObject, FiOpsFabric};
use weft_fabric_sys::fid::*;
use weft_fabric_sys::message::FiOpsMsg;
use weft_fabric_sys::mr::FiOpsMr;
use weft_fabric_sys::poll::{FiOpsPoll, FidPoll};
use weft_fabric_sys::rma::FiOpsRma;
use weft_fabric_sys::tagged::FiOpsTagged;
use weft_fabric_sys::wait::{FiOpsWait, FidWait};

use crate::calls::every_call;
use crate::entry::Entry;
use crate::refusal::{Reason, Refusal};
use crate::tables::Tables;
use crate::{address, errno, report};

/// Says why a call is refused, once in a process.
#[cold]
fn explain() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        report::line(&format!(
            "process {} was forked from one that uses this provider, and calls it through an \
             object that it inherited: refused; a child has to open objects of its own, beginning \
             with fi_getinfo, or to execute a program",
            std::process::id()
        ));
    });
}

/// The tables of objects that a child inherited: all calls are refused, but for those that look at
/// no object.
struct InChild;

impl Reason for InChild {
    fn code() -> c_int {
        explain();
        FI_EOPBADSTATE
    }
}

/// The function for one line of the list; calls names the words.
macro_rules! function {
    (always $($function:ident)::+) => { $($function)::+ };
    ($kind:ident $($function:ident)::*) => { InChild::ANSWER };
}

macro_rules! refuse {
    ($(
        $(#[$about:meta])*
        $table:ident $([$entry:ident])?: $type:ident {
            $($call:ident: $kind:ident $($function:ident)::*,)*
        }
    )*) => {
        impl Tables for InChild {
            $(
                fn $table$(<$entry: Entry>)?() -> &'static $type {
                    const {
                        &$type {
                            size: size_of::<$type>(),
                            $($call: function!($kind $($function)::*),)*
                        }
                    }
                }
            )*
        }
    };
}

every_call!(refuse);

static FID: FiOps = FiOps {
    size: size_of::<FiOps>(),
    close,
    bind: InChild::ANSWER,
    control: InChild::ANSWER,
    ops_open: InChild::ANSWER,
    tostr,
    ops_set: InChild::ANSWER,
};

/// What was inherited stays as it is until this process ends.
unsafe extern "C" fn close(_: *mut Fid) -> c_int {
    FI_SUCCESS
}

unsafe extern "C" fn tostr(_: *const Fid, _: *mut c_char, _: usize) -> c_int {
    -FI_EOPBADSTATE
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
                let endpoint = fid.cast::<EndpointObject>();
                (*endpoint).ops = InChild::endpoint();
                (*endpoint).cm = InChild::names();
                (*endpoint).msg = InChild::messages();
                (*endpoint).rma = InChild::remote_memory();
                (*endpoint).tagged = InChild::tagged();
                (*endpoint).atomic = InChild::atomics();
            }
            FI_CLASS_CQ => (*fid.cast::<FidCq>()).ops = InChild::queue::<FiCqEntry>(),
            FI_CLASS_CNTR => (*fid.cast::<FidCntr>()).ops = InChild::counter(),
            FI_CLASS_AV => (*fid.cast::<FidAv>()).ops = InChild::vector(),
            FI_CLASS_DOMAIN => {
                (*fid.cast::<DomainObject>()).ops = InChild::domain();
                (*fid.cast::<DomainObject>()).mr = InChild::regions();
            }
            FI_CLASS_FABRIC => (*fid.cast::<FabricObject>()).ops = InChild::fabric(),
            FI_CLASS_EQ => (*fid.cast::<FidEq>()).ops = InChild::events(),
            FI_CLASS_WAIT => (*fid.cast::<FidWait>()).ops = InChild::wait_set(),
            FI_CLASS_POLL => (*fid.cast::<FidPoll>()).ops = InChild::poll_set(),
            // Regions and shared receive contexts of peers have no table that the application
            // calls.
            _ => {}
        }
    }
}
