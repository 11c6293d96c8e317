// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls that unmap memory, map other memory over it, or say something about it, before those
//! of the C library: what is shared there is shared no longer, or behaves as private memory would.
//! Called by the whole program, allocators among it; calls table where filter says so. Sources:
//! mmap(2), mremap(2), madvise(2), mlock(2), brk(2).

use std::ffi::{c_int, c_uint, c_void};

use crate::interpose::quietly;
use crate::real::Real;
use crate::remap;
use crate::spans::{PAGE_BYTES, Span};
use crate::table::{FILTER, State, TABLE};

static MMAP: Real = Real::new(c"mmap");
static MUNMAP: Real = Real::new(c"munmap");
static MREMAP: Real = Real::new(c"mremap");
static MADVISE: Real = Real::new(c"madvise");
static MLOCK: Real = Real::new(c"mlock");
static MLOCK2: Real = Real::new(c"mlock2");
static MLOCKALL: Real = Real::new(c"mlockall");
static BRK: Real = Real::new(c"brk");
static SBRK: Real = Real::new(c"sbrk");

/// Calls the function behind ours, or the system while that is looked for.
macro_rules! real {
    ($real:ident as $type:ty, $number:ident, $($argument:expr),*) => {
        match $real.address() {
            // SAFETY: the function has that type; the caller promises what it asks for.
            Some(real) => unsafe {
                std::mem::transmute::<*mut c_void, $type>(real)($($argument),*)
            },
            // SAFETY: the same call by its number; the caller promises what it asks for.
            None => unsafe { libc::syscall(libc::$number, $($argument),*) as _ },
        }
    };
}

/// The pages of a stretch, if some may be shared.
#[inline]
fn shared_pages(address: *mut c_void, bytes: usize) -> Option<Span> {
    let may = FILTER.may_hold(address as usize, bytes);
    Span::around(address as usize, bytes).filter(|_| may)
}

/// Does a call under the table's lock, and, if it succeeded, what follows from it.
fn with_table<R>(call: impl FnOnce() -> (R, bool), then: impl FnOnce(&mut State)) -> R {
    TABLE.lock();
    let (result, is_done) = call();
    if is_done {
        quietly(|| TABLE.change(then));
    }
    TABLE.unlock();
    result
}

type Mmap = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;

/// As mmap(2).
///
/// # Safety
/// As mmap(2) says.
// structure: allow arguments because mmap(2) has six
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    let call = || {
        real!(
            MMAP as Mmap,
            SYS_mmap,
            address,
            bytes,
            protection,
            flags,
            file,
            offset
        )
    };
    let replaces = flags & libc::MAP_FIXED != 0 && flags & libc::MAP_FIXED_NOREPLACE == 0;
    match shared_pages(address, bytes).filter(|_| replaces) {
        None => call(),
        Some(span) => with_table(
            || {
                let mapped: *mut c_void = call();
                (mapped, mapped != libc::MAP_FAILED)
            },
            |state| state.forget(span),
        ),
    }
}

/// As mmap(2), for programs whose offsets are long on all machines.
///
/// # Safety
/// As mmap(2) says.
// structure: allow arguments because mmap(2) has six
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller promises what mmap(2) asks for.
    unsafe { mmap(address, bytes, protection, flags, file, offset) }
}

type Munmap = unsafe extern "C" fn(*mut c_void, usize) -> c_int;

/// As munmap(2).
///
/// # Safety
/// As munmap(2) says.
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, bytes: usize) -> c_int {
    let call = || -> c_int { real!(MUNMAP as Munmap, SYS_munmap, address, bytes) };
    if !FILTER.has_barred() && !FILTER.may_hold(address as usize, bytes) {
        return call();
    }
    with_table(
        || {
            let result = call();
            (result, result == 0)
        },
        |state| {
            if let Some(span) = Span::around(address as usize, bytes) {
                state.forget(span);
                state.unbar(span);
            }
        },
    )
}

type Mremap = unsafe extern "C" fn(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void;

/// As mremap(2).
///
/// # Safety
/// As mremap(2) says.
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    address: *mut c_void,
    bytes: usize,
    wanted_bytes: usize,
    flags: c_int,
    target: *mut c_void,
) -> *mut c_void {
    let call = || {
        real!(
            MREMAP as Mremap,
            SYS_mremap,
            address,
            bytes,
            wanted_bytes,
            flags,
            target
        )
    };
    if !FILTER.was_used() {
        return call();
    }
    let is_fixed = flags & libc::MREMAP_FIXED != 0;
    let from = shared_pages(address, bytes);
    let over = shared_pages(target, wanted_bytes).filter(|_| is_fixed);
    with_table(
        || {
            let is_private = from.is_none_or(|span| TABLE.change(|state| state.make_private(span)));
            if !is_private {
                // SAFETY: errno is this thread's.
                unsafe { *libc::__errno_location() = libc::ENOMEM };
                return (libc::MAP_FAILED, false);
            }
            let moved: *mut c_void = call();
            // SAFETY: errno is this thread's; the promise is the caller's.
            let by_hand = || unsafe {
                let is_refused = *libc::__errno_location() == libc::EFAULT;
                let wanted = wanted_bytes.next_multiple_of(PAGE_BYTES);
                let bytes = bytes.next_multiple_of(PAGE_BYTES);
                is_refused
                    .then(|| {
                        remap::by_hand(address as usize, bytes, wanted, flags, target as usize)
                    })
                    .flatten()
            };
            let moved = match moved {
                libc::MAP_FAILED => by_hand().map_or(moved, |at| at as *mut c_void),
                moved => moved,
            };
            (moved, moved != libc::MAP_FAILED)
        },
        |state| over.into_iter().for_each(|span| state.forget(span)),
    )
}

type Madvise = unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;

/// What an advice asks of memory that is shared, or that may be one day.
enum Meaning {
    /// It is to be zero, now or later.
    Clear,
    /// It is to be zero in children, which shared memory never is.
    Wipe,
    /// Children are to have it.
    Inherit,
    /// It is to be treated in a way that shared memory is not: it stays private.
    Keep,
    /// Nothing that matters.
    Nothing,
}

impl Meaning {
    fn of(advice: c_int) -> Self {
        match advice {
            libc::MADV_DONTNEED | libc::MADV_FREE | MADV_DONTNEED_LOCKED => Self::Clear,
            libc::MADV_WIPEONFORK => Self::Wipe,
            libc::MADV_DOFORK => Self::Inherit,
            libc::MADV_HUGEPAGE
            | libc::MADV_NOHUGEPAGE
            | libc::MADV_DONTFORK
            | libc::MADV_DONTDUMP
            | libc::MADV_MERGEABLE => Self::Keep,
            _ => Self::Nothing,
        }
    }
}

/// As MADV_DONTNEED, for locked pages, too (Linux 5.18).
const MADV_DONTNEED_LOCKED: c_int = 24;

/// As madvise(2).
///
/// # Safety
/// As madvise(2) says.
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    let call =
        |advice: c_int| -> c_int { real!(MADVISE as Madvise, SYS_madvise, address, bytes, advice) };
    let meaning = Meaning::of(advice);
    let all = Span::around(address as usize, bytes);
    if let (Meaning::Keep | Meaning::Wipe, Some(span)) = (&meaning, all) {
        quietly(|| {
            TABLE.change(|state| {
                if matches!(meaning, Meaning::Wipe) {
                    state.make_private(span);
                }
                state.bar(span);
            });
        });
        return call(advice);
    }
    let Some(span) = shared_pages(address, bytes) else {
        return call(advice);
    };
    match meaning {
        // The system frees no shared pages; so what is private among them is thrown away at once.
        Meaning::Clear => with_table(
            || {
                let result = call(libc::MADV_DONTNEED);
                (result, result == 0)
            },
            |state| state.clear(span),
        ),
        Meaning::Inherit => with_table(
            || (call(advice), true),
            |state| state.keep_from_children(span),
        ),
        Meaning::Keep | Meaning::Wipe | Meaning::Nothing => call(advice),
    }
}

/// Memory that the program locks stays private from now on.
fn bar(address: *const c_void, bytes: usize) {
    if let Some(span) = Span::around(address as usize, bytes) {
        quietly(|| TABLE.change(|state| state.bar(span)));
    }
}

type Mlock = unsafe extern "C" fn(*const c_void, usize) -> c_int;

/// As mlock(2).
///
/// # Safety
/// As mlock(2) says.
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock(address: *const c_void, bytes: usize) -> c_int {
    bar(address, bytes);
    real!(MLOCK as Mlock, SYS_mlock, address, bytes)
}

type Mlock2 = unsafe extern "C" fn(*const c_void, usize, c_uint) -> c_int;

/// As mlock2(2).
///
/// # Safety
/// As mlock2(2) says.
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock2(address: *const c_void, bytes: usize, flags: c_uint) -> c_int {
    bar(address, bytes);
    real!(MLOCK2 as Mlock2, SYS_mlock2, address, bytes, flags)
}

type Mlockall = unsafe extern "C" fn(c_int) -> c_int;

/// As mlockall(2).
///
/// # Safety
/// As mlockall(2) says.
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    TABLE.with(State::bar_all);
    real!(MLOCKALL as Mlockall, SYS_mlockall, flags)
}

type Brk = unsafe extern "C" fn(*mut c_void) -> c_int;
type Sbrk = unsafe extern "C" fn(isize) -> *mut c_void;

/// Where the heap that malloc(3) grows ends now.
fn end_of_heap() -> usize {
    // SAFETY: asks, and changes nothing.
    unsafe { libc::syscall(libc::SYS_brk, 0) as usize }
}

/// Forgets what is shared of a heap that has become shorter.
fn forget_behind_heap(end_before: usize) {
    let end = end_of_heap();
    if end < end_before
        && let Some(span) = Span::inside(end, end_before - end)
        && FILTER.may_hold(span.start, span.bytes())
    {
        quietly(|| TABLE.change(|state| state.forget(span)));
    }
}

/// As brk(2).
///
/// # Safety
/// As brk(2) says.
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brk(address: *mut c_void) -> c_int {
    let end_before = end_of_heap();
    let result = match BRK.address() {
        // SAFETY: the function has that type; the promise is the caller's.
        Some(real) => unsafe { std::mem::transmute::<*mut c_void, Brk>(real)(address) },
        None => -1,
    };
    forget_behind_heap(end_before);
    result
}

/// As sbrk(2).
///
/// # Safety
/// As sbrk(2) says.
// SAFETY: the name is the C library's, whose function this one stands before, with its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sbrk(bytes: isize) -> *mut c_void {
    let end_before = end_of_heap();
    let result = match SBRK.address() {
        // SAFETY: the function has that type; the promise is the caller's.
        Some(real) => unsafe { std::mem::transmute::<*mut c_void, Sbrk>(real)(bytes) },
        None => libc::MAP_FAILED,
    };
    if bytes < 0 {
        forget_behind_heap(end_before);
    }
    result
}
