// SPDX-License-Identifier: Apache-2.0 OR MIT
//! System calls: each module wraps one facility of Linux behind safe functions.
//!
//! - *Purpose*: below the provider, only this crate calls libc.
//! - *Used by*: memory, ring, the routes, the endpoint and the provider; `weft doctor` and
//!   `weft run`.
//! - *Start at*: the module of the facility in question; you can read each one alone.
//!
//! - [`map`]: mmap of shared regions.
//! - [`region_file`]: memfd_create and O_TMPFILE, sealed so that nobody can shrink them under us.
//! - [`local_socket`]: abstract unix sockets, named after an endpoint's address: first contact,
//!   credentials, passing of region files (`descriptor_passing`), names that other users have taken
//!   ([`own_listener`]), wake-ups, and whether a process still lives.
//! - [`lease`]: whether anybody has a file open; [`limits`]: what this process may map, and how
//!   long its files may be.
//! - [`system_call`]: what a thread of another process waits for.
//! - [`process`]: opening another process's region through /proc, who may read whose memory;
//!   [`process_id`]: which process it is, and whether it has ended; [`process_end`]: waiting for
//!   that.
//! - [`udp_socket`]: sockets between hosts; [`outbound`], [`datagrams`]: sending and receiving,
//!   many datagrams to a system call; [`error_queue`]: what became of those that were sent.
//! - [`host_probe`]: whether a host lives, independent of its processes.
//! - [`single_copy`]: reading and writing another process's memory (process_vm_readv,
//!   process_vm_writev).
//! - [`mapped_file`]: mapping what another process shares already.
//! - [`capability`]: what a program that is executed may do.
//! - [`heap`]: the heap of a process that others may map.
//! - [`loaded`]: functions of the libraries in this process, by name.
//! - [`clock`], [`cpu`]: time stamps and the processors this process may use.
//! - [`sleep`]: epoll, timerfd, sched_yield, membarrier.
//! - [`interface`]: the addresses of this machine; [`similar_interfaces`]: which ones are used
//!   together; [`route`]: where packets leave.
//! - [`at_fork`]: what a child process must close; [`at_exit`]: what is done when this one exits.
//! - [`proc_text`]: files of /proc, whatever names they hold.
//! - [`fork_mark`]: whether a process is a child after fork; [`thread`]: threads beside the
//!   program's.
//! - [`crash`]: numbered steps at which the crash tests end a process; nothing in other builds.
//!
//! Errors are `std::io::Error` with the errno of the call; callers turn them into their own errors.

pub mod at_exit;
pub mod at_fork;
pub mod capability;
pub mod clock;
pub mod cpu;
pub mod crash;
pub mod datagrams;
mod descriptor_passing;
pub mod error_queue;
pub mod fork_mark;
pub mod heap;
pub mod host_probe;
pub mod interface;
pub mod lease;
pub mod limits;
pub mod loaded;
pub mod local_socket;
pub mod map;
pub mod mapped_file;
pub mod outbound;
pub mod own_listener;
pub mod proc_text;
pub mod process;
pub mod process_end;
pub mod process_id;
mod raw_socket;
pub mod region_file;
pub mod route;
pub mod similar_interfaces;
pub mod single_copy;
pub mod sleep;
mod socket_address;
pub mod system_call;
pub mod thread;
pub mod udp_socket;
#[cfg(test)]
mod udp_socket_tests;

use std::io;

/// Turns a return value of -1 into the current errno.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The same for calls that return a length.
pub(crate) fn check_length(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
