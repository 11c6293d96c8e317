// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the registered regions of a domain are named. Kept by domain, read by mr. Source: fi_mr(3).

use std::ffi::c_int;

use weft_fabric_sys::flags::{FI_MR_BASIC, FI_MR_PROV_KEY, FI_MR_VIRT_ADDR};

/// How the regions of a domain are named, by the registration mode that its application opened it
/// with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionMode {
    /// Keys are ours to choose.
    pub(crate) own_keys: bool,
    /// Remotes name bytes by virtual address, not by their place in the region.
    pub(crate) virtual_addresses: bool,
}

impl RegionMode {
    /// What a mode says.
    pub fn of(mode: c_int) -> Self {
        Self {
            own_keys: mode & (FI_MR_BASIC | FI_MR_PROV_KEY) != 0,
            virtual_addresses: mode & (FI_MR_BASIC | FI_MR_VIRT_ADDR) != 0,
        }
    }
}
