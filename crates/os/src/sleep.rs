// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Giving the processor away: sched_yield, waiting on descriptors, and the barrier that lets
//! senders skip theirs. Used by shm when a completion queue waits.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::check;

/// Lets another runnable thread have this processor. By number: the function of the C library may
/// be another one in a job (`weft run --yield`), and who calls this has already paused enough.
pub fn yield_now() {
    // SAFETY: sched_yield has no preconditions.
    unsafe { libc::syscall(libc::SYS_sched_yield) };
}

const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

/// Asks to be included in other processes' [`barrier_everywhere`]. False if the kernel cannot
/// (membarrier(2)).
pub fn join_barriers() -> bool {
    membarrier(CMD_REGISTER_GLOBAL_EXPEDITED)
}

/// A full memory barrier on every processor that runs a process which called [`join_barriers`].
/// After it, what those processes stored before is visible here, and what we stored before is
/// visible to their later loads. One system call and an interrupt per busy processor: slow path.
/// False if the kernel cannot.
pub fn barrier_everywhere() -> bool {
    membarrier(CMD_GLOBAL_EXPEDITED)
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier takes plain numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Members that [`WaitSet::readable`] names at once.
const READABLE_LIMIT: usize = 16;

/// A member of a [`WaitSet`] of which there is something to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readable {
    /// By this number it was added.
    pub descriptor: RawFd,
    /// Of a socket: something lies in its error queue, or an error waits for the next call.
    pub has_error: bool,
}

/// Members of a [`WaitSet`] that were readable.
pub struct ReadableMembers {
    events: [libc::epoll_event; READABLE_LIMIT],
    count: usize,
}

impl ReadableMembers {
    /// None of them.
    #[inline]
    pub fn none() -> Self {
        Self {
            events: [libc::epoll_event { events: 0, u64: 0 }; READABLE_LIMIT],
            count: 0,
        }
    }

    /// Each of them.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Readable> {
        self.events[..self.count].iter().map(|event| Readable {
            descriptor: event.u64 as RawFd,
            has_error: event.events & libc::EPOLLERR as u32 != 0,
        })
    }
}

/// A descriptor that becomes readable at a time (timerfd_create(2)).
#[derive(Debug)]
pub struct Timer {
    timer: OwnedFd,
}

impl Timer {
    /// One that is not set.
    ///
    /// # Errors
    /// The errno of timerfd_create(2).
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: no preconditions.
        let raw = check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        Ok(Self {
            // SAFETY: the call just returned this descriptor and nobody else owns it.
            timer: unsafe { OwnedFd::from_raw_fd(raw) },
        })
    }

    /// Readable from `at_ns` of CLOCK_MONOTONIC on; `None`: never. Setting it anew makes it
    /// unreadable until then.
    pub fn set(&self, at_ns: Option<u64>) {
        let at_ns = at_ns.map_or(0, |at_ns| at_ns.max(1));
        let none = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let setting = libc::itimerspec {
            it_interval: none,
            it_value: libc::timespec {
                tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
                tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
            },
        };
        // SAFETY: the setting is local; the descriptor is a timer. It cannot fail with such a
        // setting.
        unsafe {
            libc::timerfd_settime(
                self.timer.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &setting,
                std::ptr::null_mut(),
            )
        };
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// A descriptor that is readable whenever one of its members is (epoll(7)).
#[derive(Debug)]
pub struct WaitSet {
    epoll: OwnedFd,
}

impl WaitSet {
    /// An empty set.
    ///
    /// # Errors
    /// The errno of epoll_create1(2).
    pub fn new() -> io::Result<Self> {
        // SAFETY: no preconditions.
        let raw = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Self {
            // SAFETY: the call just returned this descriptor and nobody else owns it.
            epoll: unsafe { OwnedFd::from_raw_fd(raw) },
        })
    }

    /// Adds a descriptor; the set is readable while it is.
    ///
    /// # Errors
    /// The errno of epoll_ctl(2).
    pub fn add(&self, member: BorrowedFd<'_>) -> io::Result<()> {
        self.add_raw(member.as_raw_fd())
    }

    /// The same for a descriptor known by its number alone; one that is not open is an error.
    ///
    /// # Errors
    /// The errno of epoll_ctl(2).
    pub fn add_raw(&self, member: RawFd) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: member as u64,
        };
        // SAFETY: the set is open and the event is ours; the kernel checks the member.
        check(unsafe {
            libc::epoll_ctl(
                self.epoll.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                member,
                &mut event,
            )
        })?;
        Ok(())
    }

    /// Takes a descriptor out.
    pub fn remove(&self, member: BorrowedFd<'_>) {
        // SAFETY: no memory is handed over; the kernel checks both descriptors.
        unsafe {
            libc::epoll_ctl(
                self.epoll.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                member.as_raw_fd(),
                std::ptr::null_mut(),
            )
        };
    }

    /// Which members are readable now: they go to `found`. One system call.
    pub fn readable(&self, found: &mut ReadableMembers) {
        // SAFETY: the events are the caller's, and their number is given.
        let count = unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                found.events.as_mut_ptr(),
                READABLE_LIMIT as libc::c_int,
                0,
            )
        };
        found.count = usize::try_from(count).unwrap_or(0);
    }

    /// The descriptor to hand to poll(2) or to the user (FI_WAIT_FD).
    pub fn descriptor(&self) -> i32 {
        self.epoll.as_raw_fd()
    }
}

/// Waits until `descriptor` is readable or `timeout_ms` has passed (negative: no limit); true if
/// readable. A signal ends the wait early with false.
pub fn wait_readable(descriptor: i32, timeout_ms: i32) -> bool {
    let mut entry = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, ours to write.
    unsafe { libc::poll(&mut entry, 1, timeout_ms) > 0 }
}
