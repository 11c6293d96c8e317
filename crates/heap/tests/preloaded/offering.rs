// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the provider does, for tests: asking where the file is, and offering memory.

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

pub const MIB: usize = 1 << 20;
pub const PAGE: usize = 4096;

/// Offers after which any buffer is shared, if it may be.
const MANY: usize = 20_000;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Face {
    pub descriptor: u64,
    pub inode: u64,
    pub length_bytes: u64,
    pub first_place: u64,
    pub is_asked: u64,
    pub offer: Option<extern "C" fn(u64, u64, u64, u64) -> c_int>,
}

static FACE: Mutex<Option<Face>> = Mutex::new(None);

/// What the library tells who asks it now, if it shares memory.
pub fn ask() -> Option<Face> {
    type Ask = unsafe extern "C" fn(*mut Face) -> c_int;
    let mut face = Face {
        descriptor: 0,
        inode: 0,
        length_bytes: 0,
        first_place: 0,
        is_asked: 0,
        offer: None,
    };
    // SAFETY: the name is the library's own, of this type; the place is ours.
    let answer = unsafe {
        let ask = libc::dlsym(libc::RTLD_DEFAULT, c"weft_heap_v3".as_ptr());
        assert!(!ask.is_null(), "not preloaded");
        std::mem::transmute::<*mut c_void, Ask>(ask)(&mut face)
    };
    let told = (answer == 0).then_some(face);
    *FACE.lock().expect("no panic") = told;
    told
}

/// What it told last; asked first if it was not.
pub fn face() -> Face {
    let known = *FACE.lock().expect("no panic");
    known.or_else(ask).expect("a file")
}

/// Offers memory once; whether its whole pages are shared.
pub fn offer(address: *const u8, length: usize) -> bool {
    let offer = face().offer.expect("a function");
    offer(address as u64, length as u64, 1, 0) == 1
}

/// Offers memory until it is shared; false if it never is.
pub fn offer_often(address: *const u8, length: usize) -> bool {
    (0..MANY).any(|_| offer(address, length))
}

/// Offers memory some times, as a program that runs for long does; whether it is shared.
pub fn offer_some(address: *const u8, length: usize) -> bool {
    (0..200).any(|_| offer(address, length))
}

/// The whole pages of a stretch of memory: first address and length.
pub fn whole_pages(address: *const u8, length: usize) -> (usize, usize) {
    let start = (address as usize).next_multiple_of(PAGE);
    let end = (address as usize + length) / PAGE * PAGE;
    (start, end.saturating_sub(start))
}

/// What a receiver would read of the whole pages of a message: the file, at the offset of the
/// address.
pub fn read_shared(address: *const u8, length: usize) -> Vec<u8> {
    let (start, length) = whole_pages(address, length);
    let mut bytes = vec![0; length];
    let descriptor = face().descriptor as c_int;
    // SAFETY: the descriptor is open, and the bytes are ours.
    let read = unsafe {
        libc::pread(
            descriptor,
            bytes.as_mut_ptr().cast(),
            length,
            start as libc::off_t,
        )
    };
    assert_eq!(read, length as isize);
    bytes
}

/// The bytes of memory.
pub fn bytes_at<'a>(address: *const u8, length: usize) -> &'a [u8] {
    // SAFETY: tests pass memory of theirs, which nobody writes meanwhile.
    unsafe { std::slice::from_raw_parts(address, length) }
}

/// Whether what a receiver would read is what the memory holds.
pub fn is_right(address: *const u8, length: usize) -> bool {
    let (start, whole) = whole_pages(address, length);
    read_shared(address, length) == bytes_at(start as *const u8, whole)
}

/// Memory that the file takes, in bytes.
pub fn file_bytes() -> usize {
    let descriptor = face().descriptor as c_int;
    // SAFETY: stat is plain data; the descriptor is open.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        assert_eq!(libc::fstat(descriptor, &mut status), 0);
        status.st_blocks as usize * 512
    }
}

/// A block of malloc, filled with a pattern.
pub fn block(bytes: usize, mark: u8) -> *mut u8 {
    // SAFETY: fresh memory of that length.
    unsafe {
        let address = libc::malloc(bytes).cast::<u8>();
        assert!(!address.is_null());
        fill(address, bytes, mark);
        address
    }
}

/// Memory of mmap(2), filled with a pattern.
pub fn mapped(bytes: usize, mark: u8) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: fresh memory of that length.
    unsafe {
        let address = libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0);
        assert_ne!(address, libc::MAP_FAILED);
        fill(address.cast(), bytes, mark);
        address.cast()
    }
}

/// Bytes after which a pattern begins anew.
const PERIOD: usize = 61 * 256;

/// The byte of a pattern at an index.
pub fn byte(index: usize, mark: u8) -> u8 {
    (index / 61) as u8 ^ mark
}

fn pattern(mark: u8) -> Vec<u8> {
    (0..PERIOD).map(|index| byte(index, mark)).collect()
}

/// Fills memory with a pattern.
///
/// # Safety
/// The memory must be the caller's.
pub unsafe fn fill(address: *mut u8, bytes: usize, mark: u8) {
    let pattern = pattern(mark);
    // SAFETY: the caller's promise.
    let memory = unsafe { std::slice::from_raw_parts_mut(address, bytes) };
    for part in memory.chunks_mut(PERIOD) {
        part.copy_from_slice(&pattern[..part.len()]);
    }
}

/// Whether memory holds a pattern.
pub fn holds(address: *const u8, bytes: usize, mark: u8) -> bool {
    let pattern = pattern(mark);
    let mut parts = bytes_at(address, bytes).chunks(PERIOD);
    parts.all(|part| *part == pattern[..part.len()])
}

/// The first line of a mapping in /proc/self/smaps whose name begins so, for the mapping of an
/// address.
pub fn smaps(address: *const u8, name: &str) -> String {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
    let mut is_it = false;
    for line in text.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        if let Some((from, to)) = first.split_once('-') {
            let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
            is_it = (number(from)..number(to)).contains(&(address as usize));
        } else if is_it && line.starts_with(name) {
            return line.to_owned();
        }
    }
    String::new()
}
