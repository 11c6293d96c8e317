// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file behind the heap, its mapping and its lock. Made once, when the library is loaded; called by interpose for every allocation of
//! [`FROM_BYTES`] and more, and by fork. Sources: memfd_create(2), madvise(2), fcntl(2) on seals.
//!
//! Until it is made, and where it cannot be, all goes to the C library.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use crate::extents::{Entry, Extent, Extents, PAGE_BYTES};
use crate::limit::{self, LIMIT_VARIABLE};
use crate::process;
use crate::unasked::{self, Terms};

/// Allocations from here on come from the heap. Measured for messages (docs/long-messages.md, "a heap that receivers map"), and one-sided operations
/// reach such memory by load and store; a page at most is wasted in each allocation, a quarter of it here.
pub const FROM_BYTES: usize = 16 << 10;

/// Free pages that keep their memory, so that a program that allocates its buffers again and again does not pay page faults for
/// them. Chosen: as much as the C library keeps by itself.
const KEEP_PAGES: u64 = (32 << 20) / PAGE_BYTES as u64;

/// The heap begins at a multiple of this, and aligns to no more. Chosen: a large page.
const ALIGN_BYTES: usize = 2 << 20;

/// What is said to be worth a place in core files grows by so many bytes at least. Chosen: few calls, and little that is empty in the file.
const DUMP_STEP_BYTES: usize = 16 << 20;

/// The name of the file in /proc.
const FILE_NAME: &CStr = c"weft-heap";

/// The heap of this process.
#[derive(Debug)]
pub struct Arena {
    base: *mut u8,
    length_bytes: usize,
    /// Allocations of so many bytes and more are the C library's.
    to_bytes: usize,
    lock: UnsafeCell<libc::pthread_mutex_t>,
    state: UnsafeCell<State>,
}

/// What the lock guards.
#[derive(Debug)]
pub struct State {
    extents: Extents<'static>,
    /// How far core files go.
    dumped_bytes: usize,
    /// The file; -1 in a child of fork(2), whose memory is its own.
    pub(crate) file: c_int,
}

// SAFETY: the state is reached through the lock only, base and length never change.
unsafe impl Sync for Arena {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Arena {}

static ARENA: OnceLock<Arena> = OnceLock::new();

/// The heap, once it is made. Fast path.
#[inline]
pub fn arena() -> Option<&'static Arena> {
    ARENA.get()
}

/// Makes the heap. Setup; called when the library is loaded, before the program's own code.
///
/// # Errors
/// What to tell the user if it cannot be made; the program then runs without.
pub fn make() -> Result<(), &'static CStr> {
    let terms = unasked::terms();
    if terms.to_bytes == 0 {
        return Ok(());
    }
    let asked = process::variable(LIMIT_VARIABLE).map(CStr::to_bytes);
    let limit = limit::limit_bytes(asked, limit::machine_bytes(), limit::file_bytes())
        .map_err(|_| c"WEFT_HEAP_LIMIT must be a number of bytes from 1048576 (1 MiB) to 274877906944 (256 GiB)")?;
    let mut length_bytes = limit as usize;
    while length_bytes >= limit::LEAST_BYTES as usize {
        if let Some(arena) = Arena::new(length_bytes, terms) {
            let _ = ARENA.set(arena);
            return Ok(());
        }
        // Address space may be limited (ulimit -v): less may do.
        length_bytes = length_bytes / 2 / PAGE_BYTES * PAGE_BYTES;
    }
    Err(c"no anonymous file or no address space for it; see the limits of this job (ulimit -v, ulimit -f, ulimit -n)")
}

fn map(at: *mut u8, length_bytes: usize, flags: c_int, file: c_int) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a mapping at an address of the kernel's choice touches no existing memory; where an address is given, it is
    // inside a mapping that was just made for that.
    let base = unsafe { libc::mmap(at.cast(), length_bytes, protection, flags, file, 0) };
    (base != libc::MAP_FAILED).then_some(base.cast())
}

/// Private memory that is zero and costs nothing until it is used.
fn map_private(length_bytes: usize) -> Option<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map(ptr::null_mut(), length_bytes, flags, -1)
}

fn unmap(base: *mut u8, length_bytes: usize) {
    // SAFETY: callers pass what they mapped, and nobody has its address but they.
    unsafe { libc::munmap(base.cast(), length_bytes) };
}

/// The file mapped at a multiple of [`ALIGN_BYTES`].
fn map_aligned(length_bytes: usize, file: c_int) -> Option<*mut u8> {
    let room = map_private(length_bytes + ALIGN_BYTES)?;
    let skipped = room.align_offset(ALIGN_BYTES);
    let base = room.wrapping_add(skipped);
    unmap(base.wrapping_add(length_bytes), ALIGN_BYTES - skipped);
    if skipped > 0 {
        unmap(room, skipped);
    }
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let mapped = map(base, length_bytes, flags, file);
    if mapped.is_none() {
        unmap(base, length_bytes);
    }
    mapped
}

/// An anonymous file of that length, which nobody can shorten.
fn make_file(length_bytes: usize) -> Option<c_int> {
    const SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: plain calls on a name that is a constant and on the descriptor that the first one made.
    unsafe {
        let file = libc::memfd_create(
            FILE_NAME.as_ptr(),
            libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING,
        );
        if file < 0 {
            return None;
        }
        let made = libc::ftruncate(file, length_bytes as libc::off_t) == 0
            && libc::fcntl(file, libc::F_ADD_SEALS, SEALS) == 0;
        if !made {
            libc::close(file);
            return None;
        }
        Some(file)
    }
}

impl Arena {
    fn new(length_bytes: usize, terms: Terms) -> Option<Self> {
        let pages = length_bytes / PAGE_BYTES;
        let file = make_file(length_bytes)?;
        let table_bytes = pages * size_of::<Entry>();
        let (table, base) = (map_private(table_bytes), map_aligned(length_bytes, file));
        let (Some(table), Some(base)) = (table, base) else {
            table
                .into_iter()
                .for_each(|table| unmap(table, table_bytes));
            base.into_iter().for_each(|base| unmap(base, length_bytes));
            // SAFETY: the descriptor is ours, and nobody uses it.
            unsafe { libc::close(file) };
            return None;
        };
        // SAFETY: the range is the mapping just made; the advice changes no bytes. A child gets a copy of its own (fork.rs), and a core
        // file with all pages of the file, used or not, would fill the disk: `allocate` takes back what is used.
        unsafe {
            if terms.wants_large_pages {
                libc::madvise(base.cast(), length_bytes, libc::MADV_HUGEPAGE);
            }
            libc::madvise(base.cast(), length_bytes, libc::MADV_DONTFORK);
            libc::madvise(base.cast(), length_bytes, libc::MADV_DONTDUMP);
        }
        // SAFETY: fresh zeroed memory for that many entries, for which zero is valid, and nobody else has its address.
        let entries = unsafe { std::slice::from_raw_parts_mut(table.cast::<Entry>(), pages) };
        Some(Self {
            base,
            length_bytes,
            to_bytes: terms.to_bytes,
            lock: UnsafeCell::new(libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP),
            state: UnsafeCell::new(State {
                extents: Extents::new(entries),
                dumped_bytes: 0,
                file,
            }),
        })
    }

    /// Where the heap begins.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// How long it is.
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// Allocations of so many bytes and more are left to the C library.
    #[inline]
    pub fn to_bytes(&self) -> usize {
        self.to_bytes
    }

    /// Whether an address lies in the heap. Fast path.
    #[inline]
    pub fn holds(&self, address: *const c_void) -> bool {
        (address as usize).wrapping_sub(self.base as usize) < self.length_bytes
    }

    /// Keeps other threads out until [`Self::unlock`]. The thread that forks may come in again: other libraries' handlers of
    /// fork(2) allocate, and nothing is half done then.
    pub(crate) fn lock(&self) {
        // SAFETY: the mutex was initialised and does not move.
        unsafe { libc::pthread_mutex_lock(self.lock.get()) };
    }

    /// Lets other threads in again.
    pub(crate) fn unlock(&self) {
        // SAFETY: as in `lock`; this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.lock.get()) };
    }

    /// In a child of fork(2): the lock was taken by a thread that the system knows by another number here.
    pub(crate) fn renew_lock(&self) {
        // SAFETY: the child has one thread, this one, so nobody else looks at the mutex.
        unsafe { *self.lock.get() = libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP };
    }

    /// Does something with the state under the lock.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.lock();
        // SAFETY: the lock keeps other threads out, and `act` never allocates, so this thread has no other reference.
        let result = act(unsafe { &mut *self.state.get() });
        self.unlock();
        result
    }

    fn address(&self, page: u32) -> *mut c_void {
        self.base.wrapping_add(page as usize * PAGE_BYTES).cast()
    }

    /// The page that an address is the first byte of.
    fn page(&self, address: *const c_void) -> Option<u32> {
        let offset = (address as usize).wrapping_sub(self.base as usize);
        let page = u32::try_from(offset / PAGE_BYTES).ok()?;
        (offset % PAGE_BYTES == 0).then_some(page)
    }

    fn pages_of(bytes: usize) -> Option<u32> {
        u32::try_from(bytes.div_ceil(PAGE_BYTES))
            .ok()
            .map(|pages| pages.max(1))
    }

    /// Memory for `bytes` bytes at a multiple of `align_bytes` (a power of two), and whether it is known to be zero; `None` if
    /// the heap is full, or cannot align so.
    pub fn allocate(&self, bytes: usize, align_bytes: usize) -> Option<(*mut c_void, bool)> {
        if align_bytes > ALIGN_BYTES {
            return None;
        }
        let pages = Self::pages_of(bytes)?;
        let align_pages = (align_bytes / PAGE_BYTES) as u32;
        let extent = self.with(|state| {
            let taken = state.extents.allocate(pages, align_pages).or_else(|| {
                self.clean_all(state);
                state.extents.allocate(pages, align_pages)
            })?;
            self.note_reach(state, (taken.first + taken.pages) as usize * PAGE_BYTES);
            Some(taken)
        })?;
        Some((self.address(extent.first), extent.is_clean))
    }

    /// The room of an allocation in bytes; `None` if none begins at that address.
    pub fn usable_bytes(&self, address: *const c_void) -> Option<usize> {
        let page = self.page(address)?;
        let pages = self.with(|state| state.extents.used(page))?;
        Some(pages as usize * PAGE_BYTES)
    }

    /// Gives an allocation back; false if none begins at that address.
    pub fn free(&self, address: *const c_void) -> bool {
        let Some(page) = self.page(address) else {
            return false;
        };
        self.with(|state| {
            let merged = state.extents.free(page);
            if let Some(extent) = merged
                && state.extents.idle_pages() > KEEP_PAGES
            {
                self.clean(state, extent);
            }
            merged.is_some()
        })
    }

    /// Makes an allocation that long where it lies; false if there is no room behind it.
    pub fn resize(&self, address: *const c_void, bytes: usize) -> bool {
        let (Some(page), Some(pages)) = (self.page(address), Self::pages_of(bytes)) else {
            return false;
        };
        self.with(|state| {
            let resized = state.extents.resize(page, pages).is_some();
            if resized {
                self.note_reach(state, (page + pages) as usize * PAGE_BYTES);
            }
            if resized && state.extents.idle_pages() > KEEP_PAGES {
                self.clean_all(state);
            }
            resized
        })
    }

    /// Allocations reach so far: core files are to hold them.
    #[inline]
    fn note_reach(&self, state: &mut State, end_bytes: usize) {
        if end_bytes > state.dumped_bytes {
            self.reach(state, end_bytes);
        }
    }

    #[cold]
    fn reach(&self, state: &mut State, end_bytes: usize) {
        let until_bytes = end_bytes
            .next_multiple_of(DUMP_STEP_BYTES)
            .min(self.length_bytes);
        // SAFETY: the range is the heap's own; the advice changes no bytes.
        unsafe { libc::madvise(self.base.cast(), until_bytes, libc::MADV_DODUMP) };
        state.dumped_bytes = until_bytes;
    }

    /// Gives the memory of a free extent back to the system.
    fn clean(&self, state: &mut State, extent: Extent) {
        let advice = if state.file < 0 {
            libc::MADV_DONTNEED
        } else {
            libc::MADV_REMOVE
        };
        let length_bytes = extent.pages as usize * PAGE_BYTES;
        // SAFETY: the pages belong to no allocation, so nobody needs their bytes.
        let done = unsafe { libc::madvise(self.address(extent.first), length_bytes, advice) };
        if done == 0 {
            state.extents.cleaned(extent);
        }
    }

    fn clean_all(&self, state: &mut State) {
        while let Some(extent) = state.extents.idle() {
            let before = state.extents.idle_pages();
            self.clean(state, extent);
            if state.extents.idle_pages() == before {
                return;
            }
        }
    }
}
