// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lines for libfabric's own log, shown as FI_LOG_LEVEL and FI_LOG_SUBSYS say.
//!
//! Called by every module on slow paths; calls the host's fi_log. Never called on the fast path.
//! Source: fi_log.h.

use std::ffi::CString;
use std::fmt;

use weft_fabric_sys::log;

use crate::host::{self, host};

/// Part of the provider that speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Subsystem {
    /// Loading, parameters, fi_getinfo.
    Core = log::FI_LOG_CORE,
    /// Fabrics.
    Fabric = log::FI_LOG_FABRIC,
    /// Domains.
    Domain = log::FI_LOG_DOMAIN,
    /// Endpoints.
    Endpoint = log::FI_LOG_EP_CTRL,
    /// Address vectors.
    AddressVector = log::FI_LOG_AV,
    /// Completion queues.
    Queue = log::FI_LOG_CQ,
    /// Registered regions.
    Region = log::FI_LOG_MR,
    /// Counters.
    Counter = log::FI_LOG_CNTR,
}

/// Something is wrong and the caller gets an error for it.
pub fn warn(subsystem: Subsystem, text: fmt::Arguments<'_>) {
    write(log::FI_LOG_WARN, subsystem, text);
}

/// Something was chosen, found or refused.
pub fn info(subsystem: Subsystem, text: fmt::Arguments<'_>) {
    write(log::FI_LOG_INFO, subsystem, text);
}

fn write(level: u32, subsystem: Subsystem, text: fmt::Arguments<'_>) {
    let (Some(enabled), Some(write)) = (host().log_enabled, host().log) else {
        return;
    };
    let provider = host::provider().cast_const();
    if provider.is_null() {
        return;
    }
    // SAFETY: the provider structure lives as long as the program, and the numbers are of the
    // header's enumerations.
    if unsafe { enabled(provider, level, subsystem as u32) } == 0 {
        return;
    }
    // A NUL inside the text would only cut the line short.
    let line = CString::new(format!("{text}\n").replace('\0', " ")).unwrap_or_default();
    // SAFETY: the provider structure lives as long as the program, and the numbers are of the
    // header's enumerations; the format takes exactly one C string, which outlives the call.
    unsafe {
        write(
            provider,
            level,
            subsystem as u32,
            c"weft".as_ptr(),
            0,
            c"%s".as_ptr(),
            line.as_ptr(),
        )
    };
}
