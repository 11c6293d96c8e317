// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The libfabric that loaded us: the few functions we call in it, found while the program runs.
//!
//! Called by prov_ini once; log, parameters and prov_ini use what it found. Nothing is imported at
//! link time, since the default versions of libfabric's symbols differ between releases and
//! applications often load it hidden from others: the five functions used here have been the same
//! since libfabric 1.0. Source: libfabric.map, dlopen(3).

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use weft_fabric_sys::log::{FiLog, FiLogEnabled};
use weft_fabric_sys::peer::VERSION_PEER;
use weft_fabric_sys::provider::{FiParamDefine, FiParamGet, FiProvider, FiVersion};

/// What the host offers; a member is `None` if it was not found, for example when libfabric is
/// linked statically and keeps its symbols to itself.
#[derive(Debug)]
pub struct Host {
    /// The running library's version.
    pub version: Option<FiVersion>,
    /// Writes a line to its log.
    pub log: Option<FiLog>,
    /// Tells whether a line would be shown.
    pub log_enabled: Option<FiLogEnabled>,
    /// Announces a parameter.
    pub param_define: Option<FiParamDefine>,
    /// Reads a parameter.
    pub param_get: Option<FiParamGet>,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// The host; looked for on the first call. Setup.
pub fn host() -> &'static Host {
    HOST.get_or_init(find)
}

/// The running library's version, or 1.17 when it cannot be asked: then only what that version
/// knows is read.
pub fn version() -> u32 {
    // SAFETY: fi_version takes no arguments and has no preconditions.
    host().version.map_or(
        weft_fabric_sys::version::fi_version(1, 17),
        |function| unsafe { function() },
    )
}

/// Whether the running library's Peer API is the one we know.
pub fn knows_peers() -> bool {
    version() >= VERSION_PEER
}

/// Where our `struct fi_provider` lies, once the host has asked for it.
static PROVIDER: OnceLock<usize> = OnceLock::new();

/// Notes the structure by which libfabric knows this provider. Called by prov_ini, before anything
/// else. Setup.
pub fn introduce(provider: *mut FiProvider) {
    PROVIDER.get_or_init(|| provider as usize);
}

/// The structure by which libfabric knows this provider; null before [`introduce`].
pub fn provider() -> *mut FiProvider {
    let address = PROVIDER.get().copied();
    address.map_or(std::ptr::null_mut(), |address| address as *mut FiProvider)
}

fn find() -> Host {
    // SAFETY: the name is a C string; RTLD_NOLOAD only finds what is loaded already and runs no
    // code.
    let found = unsafe {
        libc::dlopen(
            c"libfabric.so.1".as_ptr(),
            libc::RTLD_NOLOAD | libc::RTLD_LAZY,
        )
    };
    let library = if found.is_null() {
        libc::RTLD_DEFAULT
    } else {
        found
    };
    // SAFETY: each symbol, where it exists, has the C signature of the member it is stored in
    // (fi_log.h, fi_prov.h).
    unsafe {
        Host {
            version: symbol(library, c"fi_version"),
            log: symbol(library, c"fi_log"),
            log_enabled: symbol(library, c"fi_log_enabled"),
            param_define: symbol(library, c"fi_param_define"),
            param_get: symbol(library, c"fi_param_get"),
        }
    }
}

/// Finds a function by name.
///
/// # Safety
/// `F` must be the type of a C function pointer and the type of the function of that name.
unsafe fn symbol<F: Copy>(library: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the handle came from dlopen or is RTLD_DEFAULT; the name is a C string.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    // SAFETY: F is a function pointer by this function's contract, and the address is not null.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
}
