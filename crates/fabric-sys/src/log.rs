// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Levels and subsystems of libfabric's log, and the types of its two log functions.
//!
//! Used by the provider's log module. Source: fi_log.h, fi_provider(3).

use crate::provider::FiProvider;
use libc::{c_char, c_int};

/// Something is wrong.
pub const FI_LOG_WARN: u32 = 0;
/// Entering and leaving of calls.
pub const FI_LOG_TRACE: u32 = 1;
/// What was chosen and found.
pub const FI_LOG_INFO: u32 = 2;
/// Everything else.
pub const FI_LOG_DEBUG: u32 = 3;

/// The provider as a whole.
pub const FI_LOG_CORE: u32 = 0;
/// Fabric objects.
pub const FI_LOG_FABRIC: u32 = 1;
/// Domain objects.
pub const FI_LOG_DOMAIN: u32 = 2;
/// Opening, binding and closing of endpoints.
pub const FI_LOG_EP_CTRL: u32 = 3;
/// Messages.
pub const FI_LOG_EP_DATA: u32 = 4;
/// Address vectors.
pub const FI_LOG_AV: u32 = 5;
/// Completion queues.
pub const FI_LOG_CQ: u32 = 6;
/// Event queues.
pub const FI_LOG_EQ: u32 = 7;
/// Memory registration.
pub const FI_LOG_MR: u32 = 8;
/// Counters.
pub const FI_LOG_CNTR: u32 = 9;

/// `fi_log_enabled(provider, level, subsystem)`: non-zero when a line would be shown.
pub type FiLogEnabled = unsafe extern "C" fn(*const FiProvider, u32, u32) -> c_int;

/// `fi_log(provider, level, subsystem, function, line, format, ...)`.
pub type FiLog =
    unsafe extern "C" fn(*const FiProvider, u32, u32, *const c_char, c_int, *const c_char, ...);
