// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether this process has begun a session (MPI 4.1, 11.3). Communicators of sessions may be used
//! after MPI_Finalize, when calls that do not wait go on no more: one rank may begin such a call
//! before its MPI_Finalize and another behind it. No function tells which communicators are a
//! session's, so these calls are left to the MPI on all that agree later. Told by entries, asked by
//! agreement.

use std::ffi::c_int;
use std::sync::OnceLock;

static HAVE_BEGUN: OnceLock<()> = OnceLock::new();

/// MPI_Session_init, which the MPI carries out.
pub fn note_begin() -> Option<c_int> {
    HAVE_BEGUN.get_or_init(|| ());
    None
}

/// Whether there has been one.
pub fn have_begun() -> bool {
    HAVE_BEGUN.get().is_some()
}
