// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting for the end of a process that is no child (pidfd_open(2), Linux 5.3). Used by the tools,
//! to keep what ranks share for as long as they live.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::check;

/// Readable once the process has ended.
#[derive(Debug)]
pub struct ProcessEnd {
    descriptor: OwnedFd,
}

impl ProcessEnd {
    /// That of the process which has this number now, as our namespace counts. Setup.
    ///
    /// # Errors
    /// The errno of pidfd_open(2): ESRCH where there is none, ENOSYS before Linux 5.3.
    pub fn of(pid: u32) -> io::Result<Self> {
        let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: pidfd_open takes plain numbers.
        let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        // Descriptors are of the size of an int; the call sets close-on-exec by itself.
        let raw = check(raw as libc::c_int)?;
        // SAFETY: the call just returned this descriptor and nobody else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(Self { descriptor })
    }
}

impl AsFd for ProcessEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
#[cfg_attr(miri, allow(unused_imports))]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::process::Command;

    fn has_ended(process: &ProcessEnd, wait_ms: i32) -> bool {
        let mut entry = libc::pollfd {
            fd: process.as_fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry, ours to write.
        unsafe { libc::poll(&mut entry, 1, wait_ms) == 1 }
    }

    #[test]
    #[cfg_attr(miri, ignore = "starts a process")]
    fn the_end_of_a_process_is_told_before_anybody_waits_for_it() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep");
        let end = match ProcessEnd::of(child.id()) {
            Ok(end) => end,
            Err(error) => {
                child.kill().expect("killed");
                child.wait().expect("waited for");
                return eprintln!("skip: pidfd_open: {error}");
            }
        };
        let lived = !has_ended(&end, 0);
        child.kill().expect("killed");
        let ended = has_ended(&end, 60_000);
        child.wait().expect("waited for");
        assert!(lived && ended);
        let none = ProcessEnd::of(i32::MAX as u32).expect_err("no such process");
        assert_eq!(none.raw_os_error(), Some(libc::ESRCH));
    }
}
