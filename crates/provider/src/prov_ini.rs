// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `fi_prov_ini`: the symbol by which libfabric knows this library, and the structure that it gets.
//!
//! Called once by the host when it has loaded the library. Source: fi_provider(3), fi_prov.h.

use std::cell::UnsafeCell;

use weft_fabric_sys::provider::{FiContext, FiProvider};
use weft_fabric_sys::version::{VERSION_DESCRIBED, fi_version};

use crate::{fabric, host, info, offer, parameters, progress_thread, summary};

/// The provider's version, as libfabric compares versions of providers of one name.
const VERSION: u32 = fi_version(0, 1);

/// The one `struct fi_provider`. The host keeps a pointer to it and writes into its `context`.
struct Registration(UnsafeCell<FiProvider>);

// SAFETY: written by `fi_prov_ini` before the host knows it, and afterwards only by the host.
unsafe impl Sync for Registration {}

static REGISTRATION: Registration = Registration(UnsafeCell::new(FiProvider {
    version: VERSION,
    fi_version: VERSION_DESCRIBED,
    context: FiContext {
        internal: [std::ptr::null_mut(); 4],
    },
    name: offer::NAME.as_ptr(),
    getinfo: info::getinfo,
    fabric: fabric::open,
    cleanup,
}));

/// The structure that the host knows us by.
fn provider() -> *mut FiProvider {
    REGISTRATION.0.get()
}

/// What libfabric calls to learn about this provider.
// SAFETY: the name is the one that libfabric looks for in the libraries it loads, and no other
// library links against it.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut FiProvider {
    // SAFETY: the host calls this once, before it uses the structure. A host skips providers whose
    // fi_version is below what an application asks for, and some ask for the host's own.
    unsafe { (*provider()).fi_version = VERSION_DESCRIBED.max(host::version()) };
    host::introduce(provider());
    parameters::define(provider());
    summary::begin();
    provider()
}

/// Every object belongs to the application until it closes it; but no thread may outlive this
/// library.
unsafe extern "C" fn cleanup() {
    progress_thread::end_all();
    weft_udp::end_heartbeats();
    summary::end();
}
