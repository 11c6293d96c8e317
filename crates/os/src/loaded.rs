// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of the libraries in this process, by name: the one that a preloaded library stands
//! before, or one of a library that only its loader sees (a Python extension's). Used by intercept.
//! Sources: dlsym(3), dlopen(3), dl_iterate_phdr(3), dladdr(3).

use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::NonNull;

/// What a name stands for behind the calling library, in the order in which libraries are searched.
/// Setup.
pub fn next_definition(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the name is a C string; dlsym looks through what is loaded.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) })
}

/// What a name stands for in the whole program, if anything does. Setup.
pub fn anywhere(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the name is a C string; dlsym looks through what is loaded.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

/// Asks dladdr1(3) for the entry of the table of symbols. From glibc's dlfcn.h.
const RTLD_DL_SYMENT: c_int = 1;

/// A library in this process, and those that it is linked to. It stays loaded.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    handle: NonNull<c_void>,
}

// SAFETY: the handle is the loader's, which any thread may ask.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Loaded {
    /// The first loaded library that has a definition of `name`, other than the calling one's.
    /// Setup: looks at all libraries. Not while the process ends: exit(3) notes of each library
    /// that it must be prepared again, and dlopen(3) then runs its constructors a second time
    /// (glibc, elf/dl-fini.c).
    pub fn with(name: &CStr) -> Option<Self> {
        let own = file_of(Self::with as *const () as usize);
        paths()
            .iter()
            .filter(|&path| Some(path) != own.as_ref())
            .filter_map(|path| Self::opened(path))
            .find(|library| library.has_itself(name))
    }

    fn opened(path: &CStr) -> Option<Self> {
        // SAFETY: the path is a C string; nothing is loaded that is not there yet.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        NonNull::new(handle).map(|handle| Self { handle })
    }

    /// Whether the definition is its own, and not of a library that it is linked to.
    fn has_itself(&self, name: &CStr) -> bool {
        let found = self
            .function(name)
            .and_then(|found| file_of(found.as_ptr() as usize));
        found.is_some_and(|path| {
            Self::opened(&path).is_some_and(|library| library.handle == self.handle)
        })
    }

    /// What a name stands for in it, or in what it is linked to. Setup.
    pub fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle came from dlopen and is never closed; the name is a C string.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }
}

/// The file that an address was loaded from, as the loader calls it. Setup.
pub fn file_of(address: usize) -> Option<CString> {
    // SAFETY: plain data, for which zero is valid.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr accepts any address and writes only the structure.
    if unsafe { libc::dladdr(address as *const c_void, &mut found) } == 0
        || found.dli_fname.is_null()
    {
        return None;
    }
    // SAFETY: the loader's own C string, of a library that is loaded.
    Some(unsafe { CStr::from_ptr(found.dli_fname) }.to_owned())
}

/// The file that defines the function at this address. None if it is a stub there for a function of
/// another file: a program that takes a function's address has one. Setup.
pub fn definer_of(address: usize) -> Option<CString> {
    // SAFETY: plain data, for which zero is valid.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    let mut symbol: *mut c_void = std::ptr::null_mut();
    // SAFETY: dladdr1 accepts any address and writes only the structure and the pointer.
    let known = unsafe {
        libc::dladdr1(
            address as *const c_void,
            &mut found,
            &mut symbol,
            RTLD_DL_SYMENT,
        )
    };
    if known == 0 || symbol.is_null() {
        return None;
    }
    // SAFETY: the loader's own entry of a table of symbols, of a library that is loaded.
    let is_defined = unsafe { (*symbol.cast::<libc::Elf64_Sym>()).st_shndx } != 0;
    is_defined.then(|| file_of(address)).flatten()
}

/// The files of all loaded libraries.
fn paths() -> Vec<CString> {
    unsafe extern "C" fn note(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        list: *mut c_void,
    ) -> c_int {
        // SAFETY: the list is the caller's, below; the information is valid during this call.
        let (list, name) = unsafe { (&mut *list.cast::<Vec<CString>>(), (*info).dlpi_name) };
        if !name.is_null() {
            // SAFETY: the loader's C string, valid during this call.
            let path = unsafe { CStr::from_ptr(name) };
            if !path.is_empty() {
                list.push(path.to_owned());
            }
        }
        0
    }
    let mut list: Vec<CString> = Vec::new();
    // SAFETY: the function takes what it is given, and the list outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut list).cast()) };
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_in_the_library_that_has_it() {
        let library = Loaded::with(c"malloc_usable_size").expect("the C library is loaded");
        let function = library.function(c"malloc_usable_size").expect("it has it");
        let path = file_of(function.as_ptr() as usize).expect("it came from a file");
        assert!(path.to_string_lossy().contains("libc"), "{path:?}");
        assert!(Loaded::with(c"no_such_function_anywhere").is_none());
        assert!(library.function(c"no_such_function_anywhere").is_none());
    }
}
