// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The C functions that this library puts in place of the C library's: malloc and its family, and the one that the provider
//! asks. Called by the whole program; calls arena, or the C library for what is short or does not fit. Source: malloc(3),
//! posix_memalign(3), "Replacing malloc" in the manual of the GNU C library.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use crate::arena::{self, Arena, FROM_BYTES, arena};
use crate::fork;

// SAFETY: the C library's own functions with its types, under the names by which it exports them beside the ones that are replaced here.
unsafe extern "C" {
    fn __libc_malloc(bytes: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, bytes: usize) -> *mut c_void;
    fn __libc_realloc(address: *mut c_void, bytes: usize) -> *mut c_void;
    fn __libc_free(address: *mut c_void);
    fn __libc_memalign(align_bytes: usize, bytes: usize) -> *mut c_void;
    fn __libc_valloc(bytes: usize) -> *mut c_void;
    fn __libc_pvalloc(bytes: usize) -> *mut c_void;
}

/// Runs when the library is loaded.
#[used]
// SAFETY: the section holds addresses of such functions.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    match arena::make() {
        Ok(()) => fork::register(),
        Err(why) => say(&[
            b"weft-heap: the heap stays private: ",
            why.to_bytes(),
            b"\n",
        ]),
    }
}

fn say(parts: &[&[u8]]) {
    for part in parts {
        // SAFETY: the bytes are readable for their length.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
}

/// An address that is no allocation was freed or resized: the program is wrong, and going on would make it worse.
#[cold]
fn wrong(what: &str) -> ! {
    say(&[
        what.as_bytes(),
        b": the address is inside the shared heap, and no allocation begins there (freed twice?)\n",
    ]);
    // SAFETY: takes nothing.
    unsafe { libc::abort() }
}

/// The heap, if an allocation of that length belongs there.
#[inline]
fn heap_for(bytes: usize) -> Option<&'static Arena> {
    if bytes < FROM_BYTES {
        return None;
    }
    arena().filter(|arena| bytes < arena.to_bytes())
}

/// The heap, if it holds an address.
#[inline]
fn heap_of(address: *const c_void) -> Option<&'static Arena> {
    arena().filter(|arena| arena.holds(address))
}

fn allocate(bytes: usize, align_bytes: usize) -> Option<*mut c_void> {
    let (address, _) = heap_for(bytes)?.allocate(bytes, align_bytes)?;
    Some(address)
}

/// As malloc(3).
///
/// # Safety
/// As malloc(3) says.
// SAFETY: the name is the C library's, whose function this one replaces, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise is the C library's.
    allocate(bytes, 1).unwrap_or_else(|| unsafe { __libc_malloc(bytes) })
}

/// As calloc(3).
///
/// # Safety
/// As malloc(3) says.
// SAFETY: the name is the C library's, whose function this one replaces, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    let whole_bytes = count.checked_mul(bytes).unwrap_or(0);
    let found = heap_for(whole_bytes).and_then(|arena| arena.allocate(whole_bytes, 1));
    let Some((address, is_clean)) = found else {
        // SAFETY: the caller's promise is the C library's, which refuses products that are too large.
        return unsafe { __libc_calloc(count, bytes) };
    };
    if !is_clean {
        // SAFETY: fresh memory of that length.
        unsafe { ptr::write_bytes(address.cast::<u8>(), 0, whole_bytes) };
    }
    address
}

/// As free(3).
///
/// # Safety
/// As malloc(3) says.
// SAFETY: the name is the C library's, whose function this one replaces, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(address: *mut c_void) {
    let Some(arena) = heap_of(address) else {
        // SAFETY: the caller's promise is the C library's.
        return unsafe { __libc_free(address) };
    };
    // SAFETY: errno is this thread's; free leaves it as it is.
    let errno = unsafe { *libc::__errno_location() };
    if !arena.free(address) {
        wrong("free()");
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// As realloc(3).
///
/// # Safety
/// As malloc(3) says.
// SAFETY: the name is the C library's, whose function this one replaces, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(address: *mut c_void, bytes: usize) -> *mut c_void {
    let Some(arena) = heap_of(address) else {
        // SAFETY: the caller's promise.
        return unsafe { grow_into_heap(address, bytes) };
    };
    let Some(before_bytes) = arena.usable_bytes(address) else {
        wrong("realloc()");
    };
    if bytes == 0 {
        arena.free(address);
        return ptr::null_mut();
    }
    if heap_for(bytes).is_some() && arena.resize(address, bytes) {
        return address;
    }
    // SAFETY: both are allocations, of at least as many bytes as are copied, and different ones.
    unsafe {
        let fresh = malloc(bytes);
        if !fresh.is_null() {
            ptr::copy_nonoverlapping(address.cast::<u8>(), fresh.cast(), bytes.min(before_bytes));
            free(address);
        }
        fresh
    }
}

/// Resizes an allocation of the C library's, or none; one that becomes long moves to the heap.
///
/// # Safety
/// As realloc(3).
unsafe fn grow_into_heap(address: *mut c_void, bytes: usize) -> *mut c_void {
    let Some(fresh) = allocate(bytes, 1) else {
        // SAFETY: the caller's promise is the C library's.
        return unsafe { __libc_realloc(address, bytes) };
    };
    if !address.is_null() {
        // SAFETY: both are allocations, of at least as many bytes as are copied, and different ones.
        unsafe {
            let before_bytes = malloc_usable_size(address);
            ptr::copy_nonoverlapping(address.cast::<u8>(), fresh.cast(), bytes.min(before_bytes));
            __libc_free(address);
        }
    }
    fresh
}

/// As memalign(3).
///
/// # Safety
/// As malloc(3) says.
// SAFETY: the name is the C library's, whose function this one replaces, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align_bytes: usize, bytes: usize) -> *mut c_void {
    let aligned = if align_bytes.is_power_of_two() {
        allocate(bytes, align_bytes)
    } else {
        None
    };
    // SAFETY: the caller's promise is the C library's.
    aligned.unwrap_or_else(|| unsafe { __libc_memalign(align_bytes, bytes) })
}

/// As aligned_alloc(3).
///
/// # Safety
/// As malloc(3) says.
// SAFETY: the name is the C library's, whose function this one replaces, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align_bytes: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the same promise.
    unsafe { memalign(align_bytes, bytes) }
}

/// As posix_memalign(3).
///
/// # Safety
/// As malloc(3) says; `place` must be writable.
// SAFETY: the name is the C library's, whose function this one replaces, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    place: *mut *mut c_void,
    align_bytes: usize,
    bytes: usize,
) -> c_int {
    if !align_bytes.is_power_of_two() || align_bytes % size_of::<*mut c_void>() != 0 {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise; errno is this thread's, and stays as it is.
    unsafe {
        let errno = *libc::__errno_location();
        let address = memalign(align_bytes, bytes);
        *libc::__errno_location() = errno;
        if address.is_null() {
            return libc::ENOMEM;
        }
        *place = address;
    }
    0
}

/// As valloc(3).
///
/// # Safety
/// As malloc(3) says.
// SAFETY: the name is the C library's, whose function this one replaces, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise is the C library's. The heap gives whole pages anyway.
    allocate(bytes, 1).unwrap_or_else(|| unsafe { __libc_valloc(bytes) })
}

/// As pvalloc(3).
///
/// # Safety
/// As malloc(3) says.
// SAFETY: the name is the C library's, whose function this one replaces, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    // SAFETY: as `valloc`.
    allocate(bytes, 1).unwrap_or_else(|| unsafe { __libc_pvalloc(bytes) })
}

type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;

/// The C library's own malloc_usable_size, which it exports under no other name.
fn usable_size_of_libc() -> Option<UsableSize> {
    static FOUND: OnceLock<Option<UsableSize>> = OnceLock::new();
    const LIBRARY: &CStr = c"libc.so.6";
    const NAME: &CStr = c"malloc_usable_size";
    *FOUND.get_or_init(|| {
        // SAFETY: the names are constants; the C library is loaded, and is never unloaded; the function has that type.
        unsafe {
            let library = libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            let found = libc::dlsym(library, NAME.as_ptr().cast::<c_char>());
            (!library.is_null() && !found.is_null())
                .then(|| std::mem::transmute::<*mut c_void, UsableSize>(found))
        }
    })
}

/// As malloc_usable_size(3).
///
/// # Safety
/// As malloc(3) says.
// SAFETY: the name is the C library's, whose function this one replaces, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(address: *mut c_void) -> usize {
    match heap_of(address) {
        Some(arena) => arena.usable_bytes(address).unwrap_or(0),
        // SAFETY: the caller's promise is the C library's.
        None => usable_size_of_libc().map_or(0, |size| unsafe { size(address) }),
    }
}

/// Tells the provider where the heap lies (docs/shm-layout.md, clause 11): writes its first byte's address and its length in bytes,
/// and answers the descriptor of its file, or -1 if there is none that others may map.
///
/// # Safety
/// Both places must be writable.
// SAFETY: nobody else has a function of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_heap_v1(base: *mut u64, length_bytes: *mut u64) -> c_int {
    let Some(arena) = arena() else { return -1 };
    // SAFETY: the caller's promise.
    unsafe {
        *base = arena.base() as u64;
        *length_bytes = arena.length_bytes() as u64;
    }
    arena.with(|state| state.file)
}
