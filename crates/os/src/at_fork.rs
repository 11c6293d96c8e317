// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a child process must part with: fork(2) hands it every descriptor and all memory, and with
//! them names, ports and objects that say that its parent lives. Kept by local_socket, udp_socket
//! and region_file for what they open, and by the provider for its objects. Source:
//! pthread_atfork(3).
//!
//! The C library calls us in the child, before fork() returns there. vfork, posix_spawn, system and
//! popen execute another program at once, and then descriptors close by themselves (O_CLOEXEC). A
//! child that is made by a raw clone(2) hears nothing; what it can do is bounded elsewhere: regions
//! are not mapped there (MADV_DONTFORK), and who looks after a process asks for it by number and
//! start time.

use std::cell::UnsafeCell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Something to be done in every child, with the number that it was registered with.
#[derive(Clone, Copy)]
struct Duty {
    argument: usize,
    work: fn(usize),
}

static DUTIES: Mutex<Vec<Duty>> = Mutex::new(Vec::new());
static REGISTERED: Once = Once::new();

/// The lock while a fork is under way, so that the list is whole in the child.
struct Held(UnsafeCell<Option<MutexGuard<'static, Vec<Duty>>>>);

// SAFETY: used only by the thread that forks, between the handlers before and after the fork, while
// it holds the lock; the C library runs one fork at a time between them.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

fn duties() -> MutexGuard<'static, Vec<Duty>> {
    DUTIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has `work` called with `argument` in every child that this process forks, until [`forget`] is
/// called with the same two. It must not allocate, nor wait for anything: the child has one thread,
/// and what others held at the fork stays held. Setup.
pub fn in_child(argument: usize, work: fn(usize)) {
    REGISTERED.call_once(|| {
        // SAFETY: the handlers are functions of this library; the C library forgets them when it is
        // unloaded.
        unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(release_in_child)) };
    });
    duties().push(Duty { argument, work });
}

/// Takes back what [`in_child`] registered. Setup.
pub fn forget(argument: usize, work: fn(usize)) {
    let mut duties = duties();
    let is_it = |duty: &Duty| duty.argument == argument && std::ptr::fn_addr_eq(duty.work, work);
    if let Some(index) = duties.iter().rposition(is_it) {
        duties.remove(index);
    }
}

extern "C" fn prepare() {
    let guard = duties();
    // SAFETY: under the lock that the guard holds.
    unsafe { *HELD.0.get() = Some(guard) };
}

extern "C" fn in_parent() {
    // SAFETY: this thread holds the lock since `prepare`.
    drop(unsafe { (*HELD.0.get()).take() });
}

extern "C" fn release_in_child() {
    // SAFETY: this thread holds the lock since `prepare`.
    let Some(mut duties) = (unsafe { (*HELD.0.get()).take() }) else {
        return;
    };
    for duty in duties.iter() {
        (duty.work)(duty.argument);
    }
    // None of it is the child's, nor its children's.
    duties.clear();
}

/// A descriptor, or what owns one, that is closed in every child: that it is open says that this
/// process lives.
#[derive(Debug)]
pub struct OwnOnly<T: AsFd = OwnedFd> {
    owner: T,
}

impl<T: AsFd> OwnOnly<T> {
    /// Takes a descriptor over. Setup.
    pub fn new(owner: T) -> Self {
        in_child(owner.as_fd().as_raw_fd() as usize, close_in_child);
        Self { owner }
    }

    /// What owns it.
    pub fn get(&self) -> &T {
        &self.owner
    }
}

impl<T: AsFd> Drop for OwnOnly<T> {
    fn drop(&mut self) {
        forget(self.owner.as_fd().as_raw_fd() as usize, close_in_child);
    }
}

impl<T: AsFd> AsFd for OwnOnly<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.owner.as_fd()
    }
}

impl<T: AsFd> AsRawFd for OwnOnly<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.owner.as_fd().as_raw_fd()
    }
}

fn close_in_child(descriptor: usize) {
    // SAFETY: the child's own number of it; whoever owned it is never dropped in a child, which is
    // bound to leave inherited objects alone.
    unsafe { libc::close(descriptor as libc::c_int) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local_socket::{Bell, Ringer};

    /// Forks a child that does nothing but to wait until its parent has looked.
    fn beside_a_child(look: impl FnOnce()) {
        // SAFETY: the child calls nothing but pause and _exit, which are safe after a fork.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: both calls are safe after a fork, and touch no memory.
            unsafe {
                libc::pause();
                libc::_exit(0)
            };
        }
        assert!(child > 0, "no child");
        look();
        // SAFETY: plain numbers; the child is ours.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no fork(2)")]
    fn a_name_is_gone_with_its_process_though_a_child_lives() {
        let name = format!("weft-test-at-fork-{}", std::process::id());
        let bell = Bell::bind(&name).expect("bind");
        let ringer = Ringer::new().expect("socket");
        beside_a_child(|| {
            assert!(!ringer.is_gone(&name), "it is its parent's");
            drop(bell);
            // The child may not have run yet.
            let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while !ringer.is_gone(&name) {
                assert!(std::time::Instant::now() < end, "the child keeps the name");
            }
        });
        assert!(duties().iter().all(|duty| duty.argument != 0));
    }

    #[test]
    fn a_duty_is_forgotten_once_for_each_time_it_was_registered() {
        fn nothing(_: usize) {}
        let count = || {
            let duties = duties();
            duties
                .iter()
                .filter(|duty| duty.argument == 987_654)
                .count()
        };
        in_child(987_654, nothing);
        in_child(987_654, nothing);
        forget(987_654, nothing);
        assert_eq!(count(), 1);
        forget(987_654, nothing);
        forget(987_654, nothing);
        assert_eq!(count(), 0);
    }
}
