// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions that interpose stands before, whoever's they are (the C library's, an allocator's
//! that the program is linked to, another preloaded library's), and the system's own, which nobody
//! stands before. Called by interpose and by all that changes mappings. Sources: dlsym(3),
//! syscall(2).

use std::ffi::{CStr, c_int, c_long, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The function of a name behind ours; looked for when it is first called.
#[derive(Debug)]
pub struct Real {
    name: &'static CStr,
    found: AtomicUsize,
    /// The thread that looks for it, since dlsym(3) may free memory meanwhile.
    looking: AtomicUsize,
}

impl Real {
    /// Not looked for yet.
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            found: AtomicUsize::new(0),
            looking: AtomicUsize::new(0),
        }
    }

    /// Its address; `None` if there is none, or while this thread looks for it.
    #[inline]
    pub fn address(&self) -> Option<*mut c_void> {
        match self.found.load(Ordering::Relaxed) {
            0 => self.look(),
            found => Some(found as *mut c_void),
        }
    }

    #[cold]
    fn look(&self) -> Option<*mut c_void> {
        // SAFETY: takes nothing.
        let own = unsafe { libc::pthread_self() } as usize;
        if self.looking.load(Ordering::Relaxed) == own {
            return None;
        }
        self.looking.store(own, Ordering::Relaxed);
        // SAFETY: the name is a constant.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found as usize, Ordering::Relaxed);
        self.looking.store(0, Ordering::Relaxed);
        (!found.is_null()).then_some(found)
    }
}

/// Whether two functions are of one library.
pub fn is_one_library(first: &Real, second: &Real) -> bool {
    let base = |function: &Real| {
        // SAFETY: plain data, for which zero is valid, and ours to write.
        unsafe {
            let mut found: libc::Dl_info = std::mem::zeroed();
            let is_found = libc::dladdr(function.address()?, &mut found) != 0;
            is_found.then_some(found.dli_fbase)
        }
    };
    base(first).is_some() && base(first) == base(second)
}

/// mmap(2), as the system does it: `None` if it refuses.
///
/// # Safety
/// With MAP_FIXED nobody may need what is mapped there.
pub unsafe fn map(
    address: usize,
    length_bytes: usize,
    flags: c_int,
    file: c_int,
    offset_bytes: usize,
) -> Option<usize> {
    const PROTECTION: c_int = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the caller's promise; the arguments are mmap(2)'s.
    let mapped = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            address,
            length_bytes,
            c_long::from(PROTECTION),
            c_long::from(flags),
            c_long::from(file),
            offset_bytes,
        )
    };
    (mapped != -1).then_some(mapped as usize)
}

/// munmap(2), as the system does it.
///
/// # Safety
/// Nobody may need what is mapped there.
pub unsafe fn unmap(address: usize, length_bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_munmap, address, length_bytes) };
}

/// Moves private memory to an address, in the place of what is mapped there; false if refused.
///
/// # Safety
/// Nobody may need what is mapped there, nor `from` any more.
pub unsafe fn move_to(from: usize, length_bytes: usize, to: usize) -> bool {
    let flags = c_long::from(libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
    // SAFETY: the caller's promise.
    let moved = unsafe {
        libc::syscall(
            libc::SYS_mremap,
            from,
            length_bytes,
            length_bytes,
            flags,
            to,
        )
    };
    moved != -1
}

/// madvise(2), as the system does it; false if refused.
///
/// # Safety
/// As the advice asks: some throw away what the memory holds.
pub unsafe fn advise(address: usize, length_bytes: usize, advice: c_int) -> bool {
    let advice = c_long::from(advice);
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_madvise, address, length_bytes, advice) == 0 }
}
