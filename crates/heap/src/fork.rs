// SPDX-License-Identifier: Apache-2.0 OR MIT
//! fork(2): the child gets a copy of the heap of its own, so that neither sees what the other writes. Called by the C library's fork()
//! through pthread_atfork(3); vfork, posix_spawn, system and popen share the parent's memory until they execute and need none of it.
//!
//! The heap's mapping is not inherited (a child that is made by a raw clone(2) finds nothing there, rather than its parent's
//! memory). The child maps private memory in its place and reads into it what the file holds, which is only what was ever used; the
//! parent waits for that, and so does every other thread of it that allocates. Cost: a copy of the heap in use for each fork.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use crate::arena::{Arena, arena};

/// The descriptors by which a parent waits for its child: the end to read, the end to write. -1 while there are none.
struct Wait(std::cell::UnsafeCell<[c_int; 2]>);

// SAFETY: used by the thread that forks, under the heap's lock.
unsafe impl Sync for Wait {}

static WAIT: Wait = Wait(std::cell::UnsafeCell::new([-1; 2]));
static REGISTERED: OnceLock<()> = OnceLock::new();

/// Registers what is to be done at a fork. Setup, once.
pub fn register() {
    REGISTERED.get_or_init(|| {
        // SAFETY: the three functions live as long as the process: a preloaded library is never unloaded.
        unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
    });
}

extern "C" fn prepare() {
    let Some(arena) = arena() else { return };
    arena.lock();
    // SAFETY: under the lock.
    let wait = unsafe { &mut *WAIT.0.get() };
    let is_private = arena.with(|state| state.file < 0);
    // SAFETY: the array is ours to write.
    if is_private || unsafe { libc::pipe2(wait.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        *wait = [-1; 2];
    }
}

extern "C" fn in_parent() {
    let Some(arena) = arena() else { return };
    // SAFETY: under the lock, since `prepare`.
    let [read, write] = std::mem::replace(unsafe { &mut *WAIT.0.get() }, [-1; 2]);
    if read >= 0 {
        let mut byte = 0_u8;
        // The child's end closes when its copy is made, or when it dies.
        // SAFETY: both descriptors are ours; the byte is ours to write.
        unsafe {
            libc::close(write);
            while libc::read(read, (&raw mut byte).cast(), 1) < 0
                && *libc::__errno_location() == libc::EINTR
            {}
            libc::close(read);
        }
    }
    arena.unlock();
}

extern "C" fn in_child() {
    let Some(arena) = arena() else { return };
    arena.renew_lock();
    // SAFETY: the child has one thread.
    let [read, write] = std::mem::replace(unsafe { &mut *WAIT.0.get() }, [-1; 2]);
    arena.with(|state| {
        if state.file < 0 {
            return;
        }
        if read < 0 || copy(arena, state.file).is_none() {
            give_up();
        }
        // SAFETY: the child's own descriptor; its memory is its own from now on.
        unsafe { libc::close(state.file) };
        state.file = -1;
    });
    if read >= 0 {
        // SAFETY: the child's own descriptors.
        unsafe {
            libc::close(read);
            libc::close(write);
        }
    }
}

/// A child without its memory cannot go on.
fn give_up() -> ! {
    const WHY: &str = "weft-heap: a child process could not get its copy of the heap (no descriptor left for fork, or the program closed the heap's; \
                       ulimit -n, or run with --heap private)\n";
    // SAFETY: plain system calls on a constant.
    unsafe {
        libc::write(2, WHY.as_ptr().cast(), WHY.len());
        libc::_exit(127);
    }
}

/// Maps private memory where the heap was and fills it with what the file holds.
fn copy(arena: &Arena, file: c_int) -> Option<()> {
    let length_bytes = arena.length_bytes();
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let base: *mut c_void = arena.base().cast();
    // SAFETY: the parent's mapping is not inherited, so the range is free; if it is not, the call fails.
    let mapped = unsafe {
        libc::mmap(
            base,
            length_bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    if mapped != base {
        return None;
    }
    let mut at: libc::off_t = 0;
    loop {
        // SAFETY: plain calls; the position of the file is nobody else's business. What lies between `at` and `end` is inside the
        // mapping just made, since the file is as long as the heap and sealed.
        unsafe {
            at = libc::lseek(file, at, libc::SEEK_DATA);
            if at < 0 {
                return (*libc::__errno_location() == libc::ENXIO).then_some(());
            }
            let end = libc::lseek(file, at, libc::SEEK_HOLE);
            while at < end {
                let target = base.byte_add(at as usize);
                let read = libc::pread(file, target, (end - at) as usize, at);
                if read <= 0 {
                    return None;
                }
                at += read as libc::off_t;
            }
        }
    }
}
