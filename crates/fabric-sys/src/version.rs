// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Versions of libfabric's interface: `major << 16 | minor`, as in `FI_VERSION`.
//!
//! Used by the provider to tell what the running library and the application know. Source:
//! fi_version(3), fabric.h.

/// A version number in libfabric's form.
#[must_use]
pub const fn fi_version(major: u32, minor: u32) -> u32 {
    (major << 16) | minor
}

/// The major part of a version number.
#[must_use]
pub const fn fi_major(version: u32) -> u32 {
    version >> 16
}

/// The minor part of a version number.
#[must_use]
pub const fn fi_minor(version: u32) -> u32 {
    version & 0xffff
}

/// The oldest interface version in which `fi_cq_err_entry` ends with `err_data_size`.
pub const VERSION_ERR_DATA_SIZE: u32 = fi_version(1, 5);

/// The oldest interface version in which `fi_cq_err_entry` ends with `src_addr`.
pub const VERSION_ERR_SRC_ADDR: u32 = fi_version(1, 20);

/// The newest interface version whose structures this crate describes (specified by libfabric 2.6).
pub const VERSION_DESCRIBED: u32 = fi_version(2, 6);
