// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The heap of a process that others may map (docs/shm-layout.md, clause 11): asking the preloaded `libweft-heap.so` for one's own, and
//! mapping that of another process. Called by the provider when it opens a domain, and by memory. Sources: dlsym(3), proc_pid_fd(5),
//! fcntl(2) on seals.

use std::ffi::{CStr, c_int, c_void};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use crate::map::RawMap;
use crate::region_file::is_length_sealed;

/// Where a heap lies, as its process sees it. Of another process's, a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Heap {
    /// The address of its first byte.
    pub base: u64,
    /// Its length in bytes.
    pub length_bytes: u64,
    /// The descriptor of its file.
    pub descriptor: u64,
    /// The number of its file.
    pub inode: u64,
}

impl Heap {
    /// How far into the heap a stretch of its process's memory begins, if all of it lies in the heap.
    #[inline]
    pub fn offset_of(&self, address: u64, length_bytes: u64) -> Option<u64> {
        let offset = address.checked_sub(self.base)?;
        let end = offset.checked_add(length_bytes)?;
        (end <= self.length_bytes).then_some(offset)
    }

    /// A heap in a file of ours that is mapped at `base`.
    ///
    /// # Errors
    /// The errno of fstat(2).
    pub fn of_file(file: BorrowedFd<'_>, base: u64, length_bytes: u64) -> io::Result<Self> {
        let descriptor = file.as_raw_fd();
        let status = fs::metadata(format!("/proc/self/fd/{descriptor}"))?;
        Ok(Self {
            base,
            length_bytes,
            descriptor: descriptor as u64,
            inode: status.ino(),
        })
    }
}

type Ask = unsafe extern "C" fn(*mut u64, *mut u64) -> c_int;

/// The function by which the preloaded library tells where its heap lies. Specified: clause 11.
const ASK: &CStr = c"weft_heap_v1";

/// The heap of this process, if `libweft-heap.so` is preloaded and made one. Setup.
pub fn own() -> Option<Heap> {
    // SAFETY: the name is a constant; dlsym looks through what is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, ASK.as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: whoever defines that name defines it with this type.
    let ask = unsafe { std::mem::transmute::<*mut c_void, Ask>(found) };
    let (mut base, mut length_bytes) = (0, 0);
    // SAFETY: both places are ours to write.
    let descriptor = unsafe { ask(&mut base, &mut length_bytes) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the library keeps it open; and it is only looked at.
    let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Heap::of_file(file, base, length_bytes).ok()
}

/// Maps the heap of process `pid` for reading. Its file is opened through the process's descriptor, which takes the same user and the
/// right to look (PTRACE_MODE_READ), and must be what was claimed: a regular file of ours of that number, as long as it was
/// said, whose length nobody can change any more, so that no read of the mapping is fatal. Slow path.
///
/// # Errors
/// `PermissionDenied` if we may not look; `NotFound` if the file is not what was claimed; the errno of mmap(2).
pub fn map_heap_of(pid: u32, heap: &Heap) -> io::Result<RawMap> {
    let length_bytes = usize::try_from(heap.length_bytes).map_err(|_| io::ErrorKind::NotFound)?;
    let path = format!("/proc/{pid}/fd/{}", heap.descriptor);
    // SAFETY: takes nothing.
    let user = unsafe { libc::geteuid() };
    let fits = |status: &fs::Metadata| {
        status.is_file()
            && (status.ino(), status.uid()) == (heap.inode, user)
            && status.len() >= heap.length_bytes
    };
    // Looked at before it is opened: to open a pipe or a device is not without consequences.
    if !fits(&fs::metadata(&path)?) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(&path)?;
    if !fits(&file.metadata()?) || !is_length_sealed(file.as_fd()) {
        return Err(io::ErrorKind::NotFound.into());
    }
    RawMap::read_only(file.as_fd(), length_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::own_pid;
    use crate::region_file::{create_in, create_memfd};
    use std::os::fd::OwnedFd;

    const LENGTH: u64 = 16384;

    fn heap(file: &OwnedFd) -> Heap {
        Heap::of_file(file.as_fd(), 0x10000, LENGTH).expect("it is open")
    }

    #[test]
    fn only_stretches_inside_a_heap_have_an_offset() {
        let heap = Heap {
            base: 0x10000,
            length_bytes: 100,
            ..Heap::default()
        };
        assert_eq!(heap.offset_of(0x10000, 100), Some(0));
        assert_eq!(heap.offset_of(0x10010, 84), Some(16));
        for (address, length) in [(0xffff, 1), (0x10000, 101), (0x10064, 1), (u64::MAX, 2)] {
            assert_eq!(
                heap.offset_of(address, length),
                None,
                "{address:x} {length}"
            );
        }
    }

    #[test]
    fn a_heap_is_mapped_as_it_was_claimed_and_in_no_other_way() {
        let file = create_memfd("weft-heap-test", LENGTH).expect("memfd");
        let own = RawMap::new(file.as_fd(), LENGTH as usize).expect("map");
        let claimed = heap(&file);
        let map = map_heap_of(own_pid(), &claimed).expect("as claimed");
        // SAFETY: both mappings live here, and nobody else touches them.
        unsafe {
            *own.base().add(777) = 9;
            assert_eq!(*map.base().add(777), 9);
        }
        let longer = Heap {
            length_bytes: LENGTH + 1,
            ..claimed
        };
        let another = Heap {
            inode: claimed.inode + 1,
            ..claimed
        };
        let none = Heap {
            descriptor: 999_999,
            ..claimed
        };
        for wrong in [longer, another, none] {
            assert!(map_heap_of(own_pid(), &wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_file_that_could_be_shortened_is_no_heap() {
        let file = create_in(std::path::Path::new("/tmp"), LENGTH).expect("a file");
        assert!(map_heap_of(own_pid(), &heap(&file)).is_err());
    }
}
