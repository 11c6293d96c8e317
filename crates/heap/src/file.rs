// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file behind shared memory: an anonymous one in which each byte lies at the offset of its own
//! address, so that nothing need be looked up, and in which only shared pages take memory. Made
//! when the provider first asks; used by table under its lock. Sources: memfd_create(2),
//! fallocate(2).
//!
//! The descriptor is the program's to close by mistake, and its number then another file's. So it
//! is looked at before each use, and memory is given back without it where that can be.

use std::ffi::{CStr, c_int};

use crate::process;
use crate::real;
use crate::spans::{ADDRESS_LIMIT, Span};

/// Places for the ends of messages, behind all addresses. Specified: clause 11.
pub const PLACES: u64 = 1 << 16;

/// Places of one endpoint. Specified: clause 11.
pub const PLACES_EACH: u64 = 256;

/// Length of the part that they are in.
const EDGES_BYTES: usize = PLACES as usize * 8192;

/// Length of the file. Specified: docs/shm-layout.md, clause 11.
pub const FILE_BYTES: u64 = (ADDRESS_LIMIT + EDGES_BYTES) as u64;

/// The name of the file in /proc.
const FILE_NAME: &CStr = c"weft-heap";

/// The file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct File {
    descriptor: c_int,
    device: u64,
    inode: u64,
}

/// Device and number of the file that a descriptor names.
fn identity(descriptor: c_int) -> Option<(u64, u64)> {
    process::status_of(descriptor).map(|status| (status.st_dev, status.st_ino))
}

impl File {
    /// Makes it, of a length that nobody can change. Setup.
    pub fn make() -> Option<Self> {
        const SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        if process::limit(libc::RLIMIT_FSIZE).is_none_or(|bytes| bytes < FILE_BYTES) {
            // A longer file would be a fatal signal.
            return None;
        }
        // SAFETY: plain calls on a name that is a constant and on the descriptor that the first
        // made.
        unsafe {
            let descriptor = libc::memfd_create(
                FILE_NAME.as_ptr(),
                libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING,
            );
            if descriptor < 0 {
                return None;
            }
            let made = libc::ftruncate(descriptor, FILE_BYTES as libc::off_t) == 0
                && libc::fcntl(descriptor, libc::F_ADD_SEALS, SEALS) == 0;
            match identity(descriptor).filter(|_| made) {
                Some((device, inode)) => Some(Self {
                    descriptor,
                    device,
                    inode,
                }),
                None => {
                    libc::close(descriptor);
                    None
                }
            }
        }
    }

    /// Its descriptor and its number.
    pub fn shown(&self) -> (c_int, u64) {
        (self.descriptor, self.inode)
    }

    /// Its number.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Whether the descriptor is still this file's.
    pub fn is_open(&self) -> bool {
        identity(self.descriptor) == Some((self.device, self.inode))
    }

    /// Closes it, in a child that has no use for it.
    pub fn close(self) {
        if self.is_open() {
            // SAFETY: the descriptor is this file's.
            unsafe { libc::close(self.descriptor) };
        }
    }

    /// Copies pages into it; false if it cannot take them.
    pub fn take(&self, span: Span) -> bool {
        // The limit may have come down since; a write beyond it would be a fatal signal.
        let may = process::limit(libc::RLIMIT_FSIZE).is_some_and(|bytes| bytes >= FILE_BYTES);
        if !may || !self.is_open() {
            return false;
        }
        let mut at = span.start;
        while at < span.end {
            // SAFETY: a system call that reads memory of this process, or answers that it cannot.
            let written = unsafe {
                let from = at as *const libc::c_void;
                libc::pwrite(self.descriptor, from, span.end - at, at as libc::off_t)
            };
            if written <= 0 {
                self.give_back(span);
                return false;
            }
            at += written as usize;
        }
        true
    }

    /// Copies pages out of it to fresh memory at `to`; false if it cannot.
    ///
    /// # Safety
    /// The memory must be the caller's, and as long.
    pub unsafe fn read(&self, span: Span, to: usize) -> bool {
        let mut done = 0;
        while self.is_open() && done < span.bytes() {
            let from = (span.start + done) as libc::off_t;
            let left = span.bytes() - done;
            // SAFETY: the caller's promise.
            let read = unsafe {
                libc::pread(
                    self.descriptor,
                    (to + done) as *mut libc::c_void,
                    left,
                    from,
                )
            };
            if read <= 0 {
                return false;
            }
            done += read as usize;
        }
        done == span.bytes()
    }

    /// Maps pages of it over the same addresses; false if the system refuses.
    ///
    /// # Safety
    /// The file must hold what the memory holds, so that nobody sees a difference.
    pub unsafe fn map_over(&self, span: Span) -> bool {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE | libc::MAP_POPULATE;
        // SAFETY: the caller's promise. The system exchanges both in one step for all threads.
        unsafe { real::map(span.start, span.bytes(), flags, self.descriptor, span.start).is_some() }
    }

    /// Gives the memory of pages back that nobody maps here any more.
    pub fn give_back(&self, span: Span) {
        if !self.is_open() {
            return;
        }
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (start, length) = (span.start as libc::off_t, span.bytes() as libc::off_t);
        // SAFETY: the descriptor is this file's.
        unsafe { libc::fallocate(self.descriptor, mode, start, length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_that_became_another_files_is_not_used() {
        let file = File::make().expect("memfd_create(2)");
        assert!(file.is_open());
        // SAFETY: descriptors of this test's own.
        unsafe {
            let other = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            assert_eq!(libc::dup2(other, file.descriptor), file.descriptor);
            libc::close(other);
        }
        let page = vec![1_u8; 8192];
        let span = Span::inside(page.as_ptr() as usize, 8192).expect("a page");
        assert!(!file.is_open() && !file.take(span));
        file.close();
        assert!(
            identity(file.descriptor).is_some(),
            "it is not ours to close"
        );
    }
}
