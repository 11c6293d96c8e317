// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tables of C functions that objects hand to applications, as a trait: objects are opened
//! below, and the functions of all objects come together above, in entry_points. Declared from the
//! list in calls.

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

macro_rules! declare {
    ($($(#[$about:meta])* $table:ident $([$entry:ident])?: $type:ident { $($calls:tt)* })*) => {
        /// One table of calls for each kind of object. Each kind of lock has such tables; so have
        /// objects that refuse all calls.
        pub trait Tables {
            $($(#[$about])* fn $table$(<$entry: Entry>)?() -> &'static $type;)*
        }
    };
}

every_call!(declare);
