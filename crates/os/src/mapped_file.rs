// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file behind a stretch of another process's memory, mapped into this one: how two processes
//! come to share memory that one of them allocated in a shared file and the other never heard of.
//! Called by memory for direct access to registered memory. Sources: proc_pid_maps(5),
//! proc_pid_map_files(5), mremap(2).
//!
//! Only memory that its owner maps shared and writable has such a file: windows that an MPI makes
//! for the ranks of a node, symmetric heaps, an application's own. Three ways lead to the file,
//! tried in order: this process maps it too (then that mapping is doubled), the kernel hands it out
//! by address (needs privileges), the owner still holds a descriptor.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use crate::map::RawMap;
use crate::proc_text;
use crate::process::own_pid;

/// Pages that mappings are cut to. Chosen: asking for whole multiples of the largest base page
/// suits all.
const PAGE_BYTES: u64 = 4096;

/// One line of /proc/PID/maps, as far as it is about a shared, readable and writable file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    start: u64,
    end: u64,
    offset: u64,
    device: u64,
    inode: u64,
}

impl Stretch {
    /// Reads `start-end perms offset major:minor inode path`; `None` for what is private, read-only
    /// or no file.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let rights = words.next()?;
        let offset = hex(words.next()?)?;
        let (major, minor) = words.next()?.split_once(':')?;
        let inode: u64 = words.next()?.parse().ok()?;
        let name = words.next().unwrap_or_default();
        // What is shared when it is offered becomes private again when its process frees it.
        let may_change = name.starts_with("/memfd:weft-heap");
        if !rights.starts_with("rw") || !rights.ends_with('s') || inode == 0 || may_change {
            return None;
        }
        Some(Self {
            start: hex(start)?,
            end: hex(end)?,
            offset,
            device: libc::makedev(hex(major)? as u32, hex(minor)? as u32),
            inode,
        })
    }

    fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// The part of it that covers these addresses in whole pages, if they lie in it.
    fn around(&self, address: u64, length_bytes: u64) -> Option<Self> {
        let end = address.checked_add(length_bytes)?;
        if length_bytes == 0 || address < self.start || end > self.end {
            return None;
        }
        let start = address / PAGE_BYTES * PAGE_BYTES;
        Some(Self {
            start,
            end: end.next_multiple_of(PAGE_BYTES).min(self.end),
            offset: self.offset + (start - self.start),
            ..*self
        })
    }

    /// Where this process would find the bytes of `wanted` if this is a mapping of its own.
    fn address_of(&self, wanted: &Self) -> Option<u64> {
        let length = wanted.end - wanted.start;
        let skipped = wanted.offset.checked_sub(self.offset)?;
        let address = self.start.checked_add(skipped)?;
        (self.is_same_file(wanted) && address.checked_add(length)? <= self.end).then_some(address)
    }
}

fn stretches_of(pid: u32) -> io::Result<Vec<Stretch>> {
    let text = proc_text::read(format!("/proc/{pid}/maps"))?;
    Ok(text.lines().filter_map(Stretch::parse).collect())
}

/// Maps the memory of process `pid` from `address` on into this process, if it lies in one shared
/// file; answers the mapping, which begins at a page, and how many of its bytes come before
/// `address`. Slow path: reads /proc.
///
/// # Errors
/// `NotFound` if the memory is no shared file, or the file cannot be had; `PermissionDenied` if we
/// may not look.
pub fn map_memory_of(pid: u32, address: u64, length_bytes: u64) -> io::Result<(RawMap, usize)> {
    let theirs = stretches_of(pid)?;
    let found = theirs.iter().find_map(|stretch| {
        stretch
            .around(address, length_bytes)
            .map(|part| (stretch, part))
    });
    let (whole, wanted) = found.ok_or(io::ErrorKind::NotFound)?;
    let map = double_own(&wanted)
        .or_else(|_| map_by_address(pid, whole, &wanted))
        .or_else(|_| map_by_descriptor(pid, &wanted))?;
    Ok((map, (address - wanted.start) as usize))
}

/// Doubles a mapping of the same file that this process has, so that it stays when that one goes.
fn double_own(wanted: &Stretch) -> io::Result<RawMap> {
    let own = stretches_of(own_pid())?;
    let address = own
        .iter()
        .find_map(|stretch| stretch.address_of(wanted))
        .ok_or(io::ErrorKind::NotFound)?;
    let length_bytes = (wanted.end - wanted.start) as usize;
    // SAFETY: an old length of 0 leaves the old mapping as it is and makes another of the same
    // shared pages at an address of the kernel's choice (mremap(2)); no memory in use changes.
    let base = unsafe {
        libc::mremap(
            address as *mut libc::c_void,
            0,
            length_bytes,
            libc::MREMAP_MAYMOVE,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let map = RawMap::adopt(base.cast(), length_bytes);
    // Another thread may have unmapped it, and mapped something else there, since we looked.
    let made = stretches_of(own_pid())?;
    let is_it = |stretch: &Stretch| stretch.address_of(wanted) == Some(base as u64);
    if made.iter().any(is_it) {
        Ok(map)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Opens the file by an address of its owner's. For the privileged (CAP_CHECKPOINT_RESTORE).
fn map_by_address(pid: u32, whole: &Stretch, wanted: &Stretch) -> io::Result<RawMap> {
    let path = format!("/proc/{pid}/map_files/{:x}-{:x}", whole.start, whole.end);
    map_file(&open(&path)?, wanted)
}

/// Opens the file through a descriptor that its owner still holds.
fn map_by_descriptor(pid: u32, wanted: &Stretch) -> io::Result<RawMap> {
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        let is_it = fs::metadata(entry.path())
            .is_ok_and(|file| (file.dev(), file.ino()) == (wanted.device, wanted.inode));
        if is_it && let Ok(map) = open(entry.path()).and_then(|file| map_file(&file, wanted)) {
            return Ok(map);
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

fn open(path: impl AsRef<std::path::Path>) -> io::Result<fs::File> {
    fs::OpenOptions::new().read(true).write(true).open(path)
}

fn map_file(file: &fs::File, wanted: &Stretch) -> io::Result<RawMap> {
    let status = file.metadata()?;
    let length_bytes = (wanted.end - wanted.start) as usize;
    // Pages past the end of the file would be fatal to touch; and the file may have been exchanged
    // since we looked.
    if (status.dev(), status.ino()) != (wanted.device, wanted.inode)
        || status.len() < wanted.offset + length_bytes as u64
    {
        return Err(io::ErrorKind::NotFound.into());
    }
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length_bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            wanted.offset as libc::off_t,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(RawMap::adopt(base.cast(), length_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region_file::create_memfd;
    use std::os::fd::AsFd;

    #[test]
    fn only_shared_writable_files_are_stretches() {
        let line = "7f00a000-7f00c000 rw-s 00002000 00:1b 77     /dev/shm/x y (deleted)";
        let found = Stretch::parse(line).expect("shared");
        assert_eq!(
            (found.start, found.end, found.offset),
            (0x7f00_a000, 0x7f00_c000, 0x2000)
        );
        assert_eq!((found.device, found.inode), (libc::makedev(0, 0x1b), 77));
        for other in [
            "7f00a000-7f00c000 rw-p 00002000 00:1b 77 /x",
            "7f00a000-7f00c000 r--s 00002000 00:1b 77 /x",
            "7f00a000-7f00c000 rw-s 00000000 00:00 0",
            "7f00a000-7f00c000 rw-s 7f00a000 00:01 9 /memfd:weft-heap (deleted)",
            "",
            "x-y rw-s 0 0:0 1",
        ] {
            assert_eq!(Stretch::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_stretch_is_cut_to_pages_and_ends_where_it_ends() {
        let whole = Stretch {
            start: 0x10000,
            end: 0x14000,
            offset: 0x3000,
            device: 1,
            inode: 2,
        };
        let part = whole.around(0x11ff0, 0x20).expect("inside");
        assert_eq!(
            (part.start, part.end, part.offset),
            (0x11000, 0x13000, 0x4000)
        );
        assert_eq!(whole.address_of(&part), Some(0x11000));
        for (address, length) in [(0xffff, 1), (0x13fff, 2), (0x10000, 0), (u64::MAX, 2)] {
            assert_eq!(whole.around(address, length), None);
        }
        let longer = Stretch {
            end: 0x15000,
            ..part
        };
        assert_eq!(whole.address_of(&longer), None);
    }

    #[test]
    fn shared_memory_is_found_by_its_address_and_private_memory_is_not() {
        let file = create_memfd("weft-file-of", 16 << 10).expect("memfd");
        let first = RawMap::new(file.as_fd(), 16 << 10).expect("map");
        let address = first.base() as u64 + 5000;
        let (second, skipped) =
            map_memory_of(own_pid(), address, 3000).expect("our own mapping is doubled");
        assert_eq!(skipped, 5000 % 4096);
        // SAFETY: both addresses lie in mappings that live here, which nobody else uses.
        unsafe {
            *first.base().add(5000) = 77;
            assert_eq!(*second.base().add(skipped), 77);
        }
        drop(first);
        // SAFETY: the second mapping lives here still, and nobody else uses it.
        assert_eq!(unsafe { *second.base().add(skipped) }, 77);
        let heap = vec![0_u8; 100_000];
        assert!(map_memory_of(own_pid(), heap.as_ptr() as u64, 100_000).is_err());
        assert!(map_memory_of(own_pid(), u64::MAX - 5, 100).is_err());
    }

    #[test]
    fn a_file_that_only_its_owner_maps_is_found_through_a_descriptor() {
        let file = create_memfd("weft-file-of-descriptor", 8192).expect("memfd");
        let first = RawMap::new(file.as_fd(), 8192).expect("map");
        let start = first.base() as u64;
        let stretch = stretches_of(own_pid()).expect("maps");
        let own = stretch.iter().find(|s| s.start == start).expect("listed");
        let map = map_by_descriptor(own_pid(), own).expect("the descriptor is open");
        // SAFETY: both mappings live here, and nobody else uses them.
        unsafe {
            *first.base() = 9;
            assert_eq!(*map.base(), 9);
        }
    }
}
