// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Child processes that only sleep, forked from a process that has MPI initialised.
//!
//! Called by programs that test whether an MPI supports a fork; calls fork(2), waitpid(2).

use crate::error::{Error, Result};

/// Children of this process; ended when dropped.
pub struct SleepingChildren(Vec<libc::pid_t>);

impl SleepingChildren {
    /// Forks `count` children, which sleep until they are ended or this process is gone. Setup.
    ///
    /// # Errors
    /// `Argument` when the system refuses a process; those made before are ended.
    pub fn fork(count: usize) -> Result<Self> {
        let mut children = Self(Vec::with_capacity(count));
        for index in 0..count {
            // SAFETY: the child calls nothing but prctl, pause and _exit, which are safe after a
            // fork.
            match unsafe { libc::fork() } {
                -1 => {
                    let limit =
                        format!("the system refused it: {}", std::io::Error::last_os_error());
                    return Err(Error::argument("child process", index + 1, limit));
                }
                0 => sleep_until_ended(),
                child => children.0.push(child),
            }
        }
        Ok(children)
    }
}

fn sleep_until_ended() -> ! {
    // SAFETY: plain system calls without memory; the parent's death ends the child too.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != 1 {
            libc::pause();
        }
        libc::_exit(0)
    }
}

impl Drop for SleepingChildren {
    fn drop(&mut self) {
        for child in &self.0 {
            let mut status = 0;
            // SAFETY: a child of this process that was not waited for; the status is writable.
            unsafe {
                libc::kill(*child, libc::SIGKILL);
                libc::waitpid(*child, &mut status, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_live_until_dropped() {
        let children = SleepingChildren::fork(2).expect("two processes");
        let folders: Vec<_> = children.0.iter().map(|id| format!("/proc/{id}")).collect();
        assert_eq!(folders.len(), 2);
        assert!(
            folders
                .iter()
                .all(|folder| std::fs::exists(folder).expect("readable"))
        );
        drop(children);
        assert!(
            !folders
                .iter()
                .any(|folder| std::fs::exists(folder).expect("readable"))
        );
    }
}
