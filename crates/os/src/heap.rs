// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file of a process's shared memory, which others may map (docs/shm-layout.md, clause 11):
//! asking the preloaded `libweft-heap.so` for one's own, and mapping a stretch of another
//! process's. Called by memory. Sources: dlsym(3), proc_pid_fd(5), fcntl(2) on seals.

use std::ffi::{CStr, c_int, c_void};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use crate::map::RawMap;
use crate::region_file::is_length_sealed;

/// Where the part for the ends of messages begins; below, each byte lies at the offset of its own
/// address. Specified: clause 11.
pub const EDGES_AT: u64 = 1 << 47;

/// Bytes of a place for the ends of a message: a page for either. Specified: clause 11.
pub const PLACE_BYTES: u64 = 8192;

/// Places in the file. Specified: clause 11.
pub const PLACES: u64 = 1 << 16;

/// Places of one endpoint. Specified: clause 11.
pub const PLACES_EACH: u64 = 256;

/// Length of the file. Specified: clause 11.
pub const FILE_BYTES: u64 = EDGES_AT + PLACES * PLACE_BYTES;

/// Length of an endpoint's places.
const EDGES_BYTES: usize = (PLACES_EACH * PLACE_BYTES) as usize;

/// The file of a process's shared memory. Of another process's, a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Heap {
    /// Its length in bytes; 0 if there is none.
    pub length_bytes: u64,
    /// Its descriptor, in that process.
    pub descriptor: u64,
    /// Its number.
    pub inode: u64,
    /// The first place of the endpoint that shows it.
    pub first_place: u64,
}

impl Heap {
    /// A file of ours.
    ///
    /// # Errors
    /// The errno of fstat(2).
    pub fn of_file(file: BorrowedFd<'_>) -> io::Result<Self> {
        let descriptor = file.as_raw_fd();
        let status = fs::metadata(format!("/proc/self/fd/{descriptor}"))?;
        Ok(Self {
            length_bytes: status.len(),
            descriptor: descriptor as u64,
            inode: status.ino(),
            first_place: 0,
        })
    }

    /// As a region's header says it: length, descriptor, number and first place.
    pub fn words(&self) -> [u64; 4] {
        [
            self.length_bytes,
            self.descriptor,
            self.inode,
            self.first_place,
        ]
    }

    /// What a region's header says.
    pub fn of_words(words: [u64; 4]) -> Self {
        let [length_bytes, descriptor, inode, first_place] = words;
        Self {
            length_bytes,
            descriptor,
            inode,
            first_place,
        }
    }

    /// Where the places of its endpoint begin in the file.
    fn edges_at(&self) -> io::Result<u64> {
        let is_there = self.first_place <= PLACES - PLACES_EACH;
        let at = || EDGES_AT + self.first_place * PLACE_BYTES;
        is_there.then(at).ok_or(io::ErrorKind::NotFound.into())
    }
}

/// Asks whether all whole pages of a stretch of memory that is offered, given by address and
/// length, lie in the file; for how many messages this one counts, and whether they followed each
/// other closely (1) or may not have (0). Of the preloaded library.
pub type Offer = extern "C" fn(u64, u64, u64, u64) -> c_int;

/// What the preloaded library tells. Specified: clause 11.
#[repr(C)]
#[derive(Clone, Copy)]
struct Face {
    descriptor: u64,
    inode: u64,
    length_bytes: u64,
    first_place: u64,
    is_asked: u64,
    offer: Option<Offer>,
}

/// The function by which the preloaded library tells it. Specified: clause 11.
const ASK: &CStr = c"weft_heap_v3";

/// Where that function is, if `libweft-heap.so` is preloaded.
fn ask() -> Option<*mut c_void> {
    // SAFETY: the name is a constant; dlsym looks through what is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, ASK.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Whether `libweft-heap.so` is preloaded. Setup.
pub fn is_preloaded() -> bool {
    ask().is_some()
}

/// What the preloaded library says of this process.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// The file.
    pub heap: Heap,
    /// Whom to ask of a message.
    pub offer: Offer,
    /// The user asks to have memory shared, whether it pays or not.
    pub is_asked: bool,
}

/// That of this process, if `libweft-heap.so` is preloaded and memory may be shared. Setup.
pub fn own() -> Option<Own> {
    let found = ask()?;
    type Ask = unsafe extern "C" fn(*mut Face) -> c_int;
    // SAFETY: whoever defines that name defines it with this type.
    let ask = unsafe { std::mem::transmute::<*mut c_void, Ask>(found) };
    let mut face = Face {
        descriptor: 0,
        inode: 0,
        length_bytes: 0,
        first_place: 0,
        is_asked: 0,
        offer: None,
    };
    // SAFETY: the place is ours to write.
    let answer = unsafe { ask(&mut face) };
    let heap = Heap {
        length_bytes: face.length_bytes,
        descriptor: face.descriptor,
        inode: face.inode,
        first_place: face.first_place,
    };
    face.offer.filter(|_| answer == 0).map(|offer| Own {
        heap,
        offer,
        is_asked: face.is_asked != 0,
    })
}

/// The file that process `pid` claims to have, opened through its descriptor, which takes the same
/// user and the right to look (PTRACE_MODE_READ). It must be what was claimed: a regular file of
/// ours of that number, as long as it was said, whose length nobody can change any more, so that no
/// read of a mapping is fatal.
fn open(pid: u32, heap: &Heap, is_to_write: bool) -> io::Result<File> {
    let path = format!("/proc/{pid}/fd/{}", heap.descriptor);
    // SAFETY: takes nothing.
    let user = unsafe { libc::geteuid() };
    let fits = |status: &fs::Metadata| {
        status.is_file()
            && (status.ino(), status.uid()) == (heap.inode, user)
            && status.len() >= FILE_BYTES
            && heap.length_bytes >= FILE_BYTES
    };
    // Looked at before it is opened: to open a pipe or a device is not without consequences.
    if !fits(&fs::metadata(&path)?) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = OpenOptions::new()
        .read(true)
        .write(is_to_write)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(&path)?;
    if !fits(&file.metadata()?) || !is_length_sealed(file.as_fd()) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(file)
}

/// Maps a stretch of the file of process `pid` for reading: `offset_bytes` is a multiple of the
/// page size. Slow path.
///
/// # Errors
/// `PermissionDenied` if we may not look; `NotFound` if the file is not what was claimed; the errno
/// of mmap(2).
pub fn map_heap_of(
    pid: u32,
    heap: &Heap,
    offset_bytes: u64,
    length_bytes: usize,
) -> io::Result<RawMap> {
    let file = open(pid, heap, false)?;
    RawMap::read_only(file.as_fd(), offset_bytes as usize, length_bytes)
}

/// Maps the places of an endpoint of ours. Setup.
///
/// # Errors
/// As [`map_heap_of`].
pub fn map_own_edges(heap: &Heap) -> io::Result<RawMap> {
    let file = open(crate::process::own_pid(), heap, true)?;
    RawMap::part(file.as_fd(), heap.edges_at()? as usize, EDGES_BYTES)
}

/// Maps the places of an endpoint of process `pid` for reading. Slow path.
///
/// # Errors
/// As [`map_heap_of`].
pub fn map_edges_of(pid: u32, heap: &Heap) -> io::Result<RawMap> {
    map_heap_of(pid, heap, heap.edges_at()?, EDGES_BYTES)
}

/// Shared memory of ours, and the file it lies in, each byte at the offset of its own address.
///
/// # Errors
/// The errno of memfd_create(2) or mmap(2).
pub fn make(length_bytes: usize) -> io::Result<(std::os::fd::OwnedFd, RawMap)> {
    let file = crate::region_file::create_memfd("weft-heap", FILE_BYTES)?;
    let place = RawMap::read_only(file.as_fd(), 0, length_bytes)?;
    let base = place.base();
    // SAFETY: the range is the mapping just made, in whose place another one comes.
    let mapped = unsafe {
        libc::mmap(
            base.cast(),
            length_bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_FIXED,
            file.as_raw_fd(),
            base as libc::off_t,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok((file, place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::own_pid;
    use crate::region_file::{create_in, create_memfd};

    const LENGTH: usize = 16384;

    #[test]
    fn a_heap_is_mapped_as_it_was_claimed_and_in_no_other_way() {
        let (file, own) = make(LENGTH).expect("a heap");
        let claimed = Heap {
            first_place: PLACES - PLACES_EACH,
            ..Heap::of_file(file.as_fd()).expect("it is open")
        };
        let at = own.base() as u64;
        let map = map_heap_of(own_pid(), &claimed, at, LENGTH).expect("as claimed");
        let edges = map_own_edges(&claimed).expect("ours");
        let ends = map_edges_of(own_pid(), &claimed).expect("as claimed");
        // SAFETY: all mappings live here, and nobody else touches them.
        unsafe {
            *own.base().add(777) = 9;
            assert_eq!(*map.base().add(777), 9);
            *edges.base().add(5) = 8;
            assert_eq!(*ends.base().add(5), 8);
        }
        let shorter = Heap {
            length_bytes: FILE_BYTES - 1,
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
        for wrong in [shorter, another, none] {
            assert!(
                map_heap_of(own_pid(), &wrong, at, LENGTH).is_err(),
                "{wrong:?}"
            );
        }
        assert!(map_heap_of(own_pid(), &claimed, FILE_BYTES, 4096).is_err());
        for first_place in [PLACES - PLACES_EACH + 1, u64::MAX] {
            let beyond = Heap {
                first_place,
                ..claimed
            };
            assert!(map_edges_of(own_pid(), &beyond).is_err());
        }
    }

    #[test]
    fn a_file_that_is_too_short_or_could_become_so_is_no_heap() {
        let short = create_memfd("weft-heap-test", 16384).expect("memfd");
        let claimed = Heap {
            length_bytes: FILE_BYTES,
            ..Heap::of_file(short.as_fd()).expect("it is open")
        };
        assert!(map_heap_of(own_pid(), &claimed, 0, 4096).is_err());
        let Ok(file) = create_in(std::path::Path::new("/dev/shm"), FILE_BYTES) else {
            return;
        };
        let claimed = Heap::of_file(file.as_fd()).expect("it is open");
        assert!(map_heap_of(own_pid(), &claimed, 0, 4096).is_err());
    }
}
