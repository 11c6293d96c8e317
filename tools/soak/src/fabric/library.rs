// SPDX-License-Identifier: Apache-2.0 OR MIT
//! libfabric, bound when the program runs: opens libfabric.so.1 and looks up the few functions that
//! are not in tables.
//!
//! Called by node. Source: dlopen(3), fi_getinfo(3), fi_fabric(3). The library is never closed:
//! providers leave handlers behind.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;

use weft_fabric_sys::fid::FidFabric;
use weft_fabric_sys::info::{FiFabricAttr, FiInfo};

use super::Failure;

type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const FiInfo,
    *mut *mut FiInfo,
) -> c_int;
type OpenFabric =
    unsafe extern "C" fn(*mut FiFabricAttr, *mut *mut FidFabric, *mut c_void) -> c_int;

/// The functions of libfabric that programs link to; all others are in tables.
pub struct Library {
    /// `fi_getinfo`
    pub(super) get_info: GetInfo,
    /// `fi_dupinfo`; of null it makes an empty one, as fi_allocinfo does.
    pub(super) duplicate_info: unsafe extern "C" fn(*const FiInfo) -> *mut FiInfo,
    /// `fi_freeinfo`
    pub(super) free_info: unsafe extern "C" fn(*mut FiInfo),
    /// `fi_fabric`
    pub(super) open_fabric: OpenFabric,
    text_of_error: unsafe extern "C" fn(c_int) -> *const c_char,
}

impl Library {
    /// Opens a libfabric: the file named, or the one that the loader finds. Set-up.
    ///
    /// # Errors
    /// The loader's reason, or the name of the function that is missing.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let name = path.map_or(Path::new("libfabric.so.1"), |path| path);
        let failed = |why: String| Failure::NoLibrary {
            path: name.to_owned(),
            why,
        };
        let text = CString::new(name.as_os_str().as_encoded_bytes())
            .map_err(|_| failed("the path holds a zero byte".to_owned()))?;
        // SAFETY: a C string; the constructors of libfabric may run in any program.
        let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            // SAFETY: dlerror gives null or a C string that is valid until the next call in this
            // thread.
            let reason = unsafe { libc::dlerror() };
            // SAFETY: dlerror's C string, which is copied before the next call of this thread; null
            // is ruled out first.
            let reason = (!reason.is_null()).then(|| unsafe { CStr::from_ptr(reason) });
            return Err(failed(reason.map_or_else(String::new, |text| {
                text.to_string_lossy().into_owned()
            })));
        }
        let missing = |name: &CStr| failed(format!("it has no {}", name.to_string_lossy()));
        // SAFETY: the signatures are those of the functions' manual pages, the same since libfabric
        // 1.3.
        unsafe {
            Ok(Self {
                get_info: function(handle, c"fi_getinfo").ok_or_else(|| missing(c"fi_getinfo"))?,
                duplicate_info: function(handle, c"fi_dupinfo")
                    .ok_or_else(|| missing(c"fi_dupinfo"))?,
                free_info: function(handle, c"fi_freeinfo")
                    .ok_or_else(|| missing(c"fi_freeinfo"))?,
                open_fabric: function(handle, c"fi_fabric").ok_or_else(|| missing(c"fi_fabric"))?,
                text_of_error: function(handle, c"fi_strerror")
                    .ok_or_else(|| missing(c"fi_strerror"))?,
            })
        }
    }

    /// What libfabric calls an error number; positive.
    pub fn error_text(&self, error: i32) -> String {
        // SAFETY: fi_strerror answers any number with a C string that is never freed.
        let text = unsafe { (self.text_of_error)(error) };
        if text.is_null() {
            return format!("error {error}");
        }
        // SAFETY: a C string that is never freed; null is ruled out.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }
}

/// # Safety
/// `F` must be a function pointer with the signature of the function of that name.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the handle came from dlopen and is never closed; the name is a C string.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if address.is_null() {
        return None;
    }
    // SAFETY: F is a function pointer of that size (asserted); its signature is the caller's
    // promise.
    Some(unsafe { std::mem::transmute_copy(&address) })
}
