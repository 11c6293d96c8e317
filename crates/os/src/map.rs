// SPDX-License-Identifier: Apache-2.0 OR MIT
//! mmap(2) of shared files. Used by memory's `Mapping`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::check;

/// One mapping; unmapped when dropped.
#[derive(Debug)]
pub struct RawMap {
    base: *mut u8,
    length_bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; this type only hands out its address
// and length.
unsafe impl Send for RawMap {}
// SAFETY: threads that share it read its address and length, and nothing changes those after
// construction.
unsafe impl Sync for RawMap {}

impl RawMap {
    /// Maps the first `length_bytes` of `file`, shared, readable and writable; child processes do
    /// not inherit it. Setup.
    ///
    /// # Errors
    /// The errno of fstat(2) or mmap(2); `UnexpectedEof` if the file is shorter than asked for,
    /// since touching pages past its end would kill the process.
    pub fn new(file: BorrowedFd<'_>, length_bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        Self::map(file, 0, length_bytes, protection)
    }

    /// Maps `length_bytes` from `offset_bytes` (whole pages) on, shared, readable and writable.
    /// Setup.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn part(
        file: BorrowedFd<'_>,
        offset_bytes: usize,
        length_bytes: usize,
    ) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        Self::map(file, offset_bytes, length_bytes, protection)
    }

    fn map(
        file: BorrowedFd<'_>,
        offset_bytes: usize,
        length_bytes: usize,
        protection: libc::c_int,
    ) -> io::Result<Self> {
        let end_bytes = offset_bytes as u64 + length_bytes as u64;
        if file_length_bytes(file)? < end_bytes {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "region file is shorter than its layout says",
            ));
        }
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length_bytes,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset_bytes as libc::off_t,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // A core file is about the program; regions are large and mostly other processes' business.
        // SAFETY: the range is the mapping just made; the advice changes no bytes.
        unsafe { libc::madvise(base, length_bytes, libc::MADV_DONTDUMP) };
        // A child has no business in it, and would keep the memory of the dead. SAFETY: the range
        // is the mapping made above, which nobody else knows yet; the advice changes no bytes.
        unsafe { libc::madvise(base, length_bytes, libc::MADV_DONTFORK) };
        Ok(Self {
            base: base.cast(),
            length_bytes,
        })
    }

    /// Maps `length_bytes` from `offset_bytes` (whole pages) on, shared and for reading only.
    /// Setup.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn read_only(
        file: BorrowedFd<'_>,
        offset_bytes: usize,
        length_bytes: usize,
    ) -> io::Result<Self> {
        Self::map(file, offset_bytes, length_bytes, libc::PROT_READ)
    }

    /// Has the pages of a stretch made at once, where the system can (Linux 5.14); else they are
    /// made when they are touched, as they are where there is no memory. The stretch is cut to what
    /// is mapped. Slow path: microseconds for each page.
    pub fn populate(&self, offset_bytes: usize, length_bytes: usize) {
        let offset_bytes = offset_bytes.min(self.length_bytes);
        let length_bytes = length_bytes.min(self.length_bytes - offset_bytes);
        let start = self.base.wrapping_add(offset_bytes);
        // SAFETY: the stretch lies in the mapping; the advice changes no bytes.
        unsafe { libc::madvise(start.cast(), length_bytes, libc::MADV_POPULATE_WRITE) };
    }

    /// Takes over a mapping that the system just made for us.
    pub(crate) fn adopt(base: *mut u8, length_bytes: usize) -> Self {
        Self { base, length_bytes }
    }

    /// Address of the first byte.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// How many bytes are mapped.
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }
}

impl Drop for RawMap {
    fn drop(&mut self) {
        // SAFETY: base and length are those of a mapping made in `new`, unmapped only here.
        unsafe { libc::munmap(self.base.cast(), self.length_bytes) };
    }
}

fn file_length_bytes(file: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: stat is plain data, for which zero is valid.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open while borrowed and `status` is ours to write.
    check(unsafe { libc::fstat(file.as_raw_fd(), &mut status) })?;
    Ok(status.st_size.max(0) as u64)
}
