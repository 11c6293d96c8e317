// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fabrics: what domains and event queues are opened from.
//!
//! Called by the host through `fi_provider.fabric`. Source: fi_fabric(3).

use std::ffi::{CStr, c_int, c_void};

use weft_fabric_sys::errno::{FI_EBUSY, FI_EINVAL, FI_ENODATA, FI_SUCCESS};
use weft_fabric_sys::fabric::FabricObject;
use weft_fabric_sys::fid::FidFabric;
use weft_fabric_sys::fid::{FI_CLASS_FABRIC, FiOps, Fid};
use weft_fabric_sys::info::FiFabricAttr;

use crate::lock::Unlocked;
use crate::object::{
    Dependents, OpenList, Parent, hand_out, head, no_bind, no_control, table, take_back,
};
use crate::tables::Tables;
use crate::{host, offer};

/// A fabric.
#[repr(C)]
#[derive(Debug)]
pub struct Fabric {
    fid: FabricObject,
    /// The application's interface version: what its structures look like.
    api_version: u32,
    /// Domains and event queues that are open.
    children: Dependents,
}

static OPEN: OpenList = OpenList::new();

static FID_OPS: FiOps = table(close, no_bind, no_control);

/// Whether hints name a fabric of ours, or none.
pub fn is_open(fabric: *const FidFabric) -> bool {
    fabric.is_null() || OPEN.contains(fabric)
}

impl Fabric {
    /// The application's interface version.
    pub fn api_version(&self) -> u32 {
        self.api_version
    }
}

impl Parent for Fabric {
    fn children(&self) -> &Dependents {
        &self.children
    }
}

/// `fi_fabric` as the host calls it.
///
/// # Safety
/// The arguments must be those of fi_fabric(3).
pub unsafe extern "C" fn open(
    attr: *mut FiFabricAttr,
    fabric: *mut *mut FidFabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: null or the host's attributes; their layout is the same in all versions.
    let Some(attr) = (unsafe { attr.as_ref() }) else {
        return -FI_EINVAL;
    };
    if fabric.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: not null here, and a C string.
    let name = (!attr.name.is_null()).then(|| unsafe { CStr::from_ptr(attr.name) });
    let is_ours = name.is_none_or(|name| [offer::NAME, offer::PEER_FABRIC].contains(&name));
    if !is_ours {
        return -FI_ENODATA;
    }
    let api_version = if attr.api_version != 0 {
        attr.api_version
    } else {
        host::version()
    };
    let fid = FabricObject {
        fid: head(FI_CLASS_FABRIC, context, &FID_OPS),
        ops: Unlocked::fabric(),
        api_version,
    };
    // SAFETY: not null, and the host's to be written.
    OPEN.add(unsafe {
        hand_out(
            Fabric {
                fid,
                api_version,
                children: Dependents::none(),
            },
            fabric,
        )
    });
    FI_SUCCESS
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    let fabric = fid.cast::<Fabric>();
    // SAFETY: this table belongs to fabrics only, and the application closes an object once.
    if unsafe { &*fabric }.children.exist() {
        return -FI_EBUSY;
    }
    OPEN.remove(fabric);
    // SAFETY: it came from `hand_out`, and nothing refers to it any more.
    drop(unsafe { take_back(fabric) });
    FI_SUCCESS
}
