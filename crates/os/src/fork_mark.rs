// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether this process is the one that made something, or a child of it after fork(2): a page that
//! the kernel shows empty to children (MADV_WIPEONFORK, madvise(2)). Used by udp, whose keys and
//! sockets a child must leave alone.

use std::io;

use crate::process::own_pid;

/// A mark that children do not see.
#[derive(Debug)]
pub struct ForkMark {
    /// One page, whose first byte is 1 in the process that made it.
    page: *mut u8,
    page_bytes: usize,
    /// Asked instead where the kernel cannot empty pages.
    pid: Option<u32>,
}

// SAFETY: the page belongs to the process, not to a thread, and nobody writes to it after
// construction.
unsafe impl Send for ForkMark {}
// SAFETY: nobody writes to the page after construction, so that all threads may read it.
unsafe impl Sync for ForkMark {}

impl ForkMark {
    /// Marks this process. Setup.
    ///
    /// # Errors
    /// The errno of mmap(2).
    pub fn new() -> io::Result<Self> {
        // SAFETY: no preconditions.
        let page_bytes = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) });
        let page_bytes = page_bytes.unwrap_or(4096);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let page =
            unsafe { libc::mmap(std::ptr::null_mut(), page_bytes, protection, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range is the mapping just made.
        let wiped = unsafe { libc::madvise(page, page_bytes, libc::MADV_WIPEONFORK) } == 0;
        let page = page.cast::<u8>();
        // SAFETY: the page is writable and ours alone.
        unsafe { page.write_volatile(1) };
        Ok(Self {
            page,
            page_bytes,
            pid: (!wiped).then(own_pid),
        })
    }

    /// Whether this is the process that made the mark. Fast path: one load.
    #[inline(always)]
    pub fn is_maker(&self) -> bool {
        // SAFETY: the page is mapped as long as the mark is there, in children too. Volatile, since
        // the kernel changes it.
        let marked = unsafe { self.page.read_volatile() } == 1;
        marked && self.pid.is_none_or(|pid| pid == own_pid())
    }
}

impl Drop for ForkMark {
    fn drop(&mut self) {
        // SAFETY: address and length are those of the mapping made in `new`, unmapped only here.
        unsafe { libc::munmap(self.page.cast(), self.page_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_sees_that_it_is_one_and_its_parent_that_it_is_none() {
        let mark = ForkMark::new().expect("a page");
        assert!(mark.is_maker());
        // SAFETY: the child calls nothing but _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child without running anything of the test's.
            unsafe { libc::_exit(i32::from(mark.is_maker())) };
        }
        let mut status = 0;
        // SAFETY: the status is local, the child ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 0);
        assert!(mark.is_maker());
    }
}
