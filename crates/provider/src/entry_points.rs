// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every C function that applications call, put into its table, once for each kind of lock: made
//! from the list in calls. On top of all objects' modules, so that none of them needs to know
//! another one's functions.

use weft_fabric_sys::atomic::FiOpsAtomic;
use weft_fabric_sys::av::FiOpsAv;
use weft_fabric_sys::counter::FiOpsCntr;
use weft_fabric_sys::cq::FiOpsCq;
use weft_fabric_sys::domain::FiOpsDomain;
use weft_fabric_sys::endpoint::{FiOpsCm, FiOpsEp};
use weft_fabric_sys::eq::FiOpsEq;
use weft_fabric_sys::fabric::FiOpsFabric;
use weft_fabric_sys::message::FiOpsMsg;
use weft_fabric_sys::mr::FiOpsMr;
use weft_fabric_sys::poll::FiOpsPoll;
use weft_fabric_sys::rma::FiOpsRma;
use weft_fabric_sys::tagged::FiOpsTagged;
use weft_fabric_sys::wait::FiOpsWait;

use crate::calls::every_call;
use crate::entry::Entry;
use crate::lock::Lock;
use crate::refusal::{NotOffered, Refusal};
use crate::tables::Tables;
use crate::{
    address, atomic, atomic_offer, av, counter, cq, cq_wait, domain, endpoint, eq, errno, message,
    mr, options, peer, peer_queue, poll, rma, tagged, try_wait, wait_set,
};

/// The function for one line of the list; calls names the words.
macro_rules! function {
    (each $($function:ident)::+) => { $($function)::+::<L> };
    (format $($function:ident)::+) => { $($function)::+::<L, E> };
    (one $($function:ident)::+) => { $($function)::+ };
    (always $($function:ident)::+) => { $($function)::+ };
    (none) => { NotOffered::ANSWER };
}

macro_rules! make {
    ($(
        $(#[$about:meta])*
        $table:ident $([$entry:ident])?: $type:ident {
            $($call:ident: $kind:ident $($function:ident)::*,)*
        }
    )*) => {
        impl<L: Lock> Tables for L {
            $(
                #[inline]
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

every_call!(make);
