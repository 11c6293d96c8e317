// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What this process was given: its variables and its limits. Asked when the provider first asks.
//! Sources: getenv(3), getrlimit(2).

use std::ffi::CStr;

/// The value of a variable. Only when the provider asks: within MPI_Init nobody changes them.
pub(crate) fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: getenv reads the environment, which nobody changes within MPI_Init.
    unsafe {
        let text = libc::getenv(name.as_ptr());
        (!text.is_null()).then(|| CStr::from_ptr(text))
    }
}

/// The present limit of a resource; `None` if the system does not say.
pub(crate) fn limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is ours to write.
    let asked = unsafe { libc::getrlimit(resource, &mut limit) };
    (asked == 0).then_some(limit.rlim_cur)
}
