// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is quicker before the MPI starts its threads. Called by `entries.rs`.

use std::ffi::c_int;

use weft_os::sleep::join_barriers;

/// MPI_Init, MPI_Init_thread or MPI_Session_init is called; the MPI carries it out. The provider
/// joins the barriers when its endpoint opens. If the process has several threads by then, as under
/// Open MPI, the kernel first waits until all processors have seen it, some 15 ms (measured); with
/// one thread it needs no wait, and joining again costs nothing (kernel/sched/membarrier.c,
/// membarrier_register_global_expedited). Where the kernel refuses, the provider learns it too.
pub fn prepare() -> Option<c_int> {
    let _refused = !join_barriers();
    None
}
