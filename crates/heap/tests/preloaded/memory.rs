// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is shared, what is not, and how it ends. Each runs in a process of its own, preloaded.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::offering::*;

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_again() {
    for bytes in [16 << 10, MIB, 5 * MIB + 77] {
        let address = block(bytes, 3);
        assert!(
            !offer(address, bytes),
            "at its first offer it stays as it is"
        );
        assert!(offer_some(address, bytes), "{bytes}");
        assert!(holds(address, bytes, 3) && is_right(address, bytes));
        // SAFETY: memory of this test's.
        unsafe { fill(address, bytes, 4) };
        assert!(
            offer(address, bytes) && is_right(address, bytes),
            "what is written is shown"
        );
        assert!(
            offer_some(address.wrapping_add(4096), bytes - 4096),
            "a part of it is, too"
        );
    }
    let short = block(8191, 1);
    assert!(!offer_often(short, 8191));
    let mut grown = block(64 << 10, 1);
    for pages in [4, 6, 16, 9] {
        assert!(
            offer_some(grown, pages * 4096) && is_right(grown, pages * 4096),
            "{pages}"
        );
    }
    // SAFETY: a block of this test's.
    unsafe {
        libc::free(grown.cast());
        grown = ptr::null_mut();
        libc::free(grown.cast());
    }
}

static mut ARRAY: [u8; 3 * MIB] = [0; 3 * MIB];

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_kinds() {
    let array = &raw mut ARRAY as *mut u8;
    // SAFETY: nobody else knows the array.
    unsafe { fill(array, 3 * MIB, 9) };
    for address in [array, mapped(3 * MIB, 9), block(3 * MIB, 9)] {
        for (from, length) in [(0, 3 * MIB), (1000, MIB)] {
            let at = address.wrapping_add(from);
            assert!(offer_some(at, length) && is_right(at, length));
        }
        assert!(holds(address, 3 * MIB, 9));
        let end = address.wrapping_add(3 * MIB - 100);
        assert!(!offer(end, 200), "nothing is whole there");
    }
}

fn stays_private(address: *const u8, length: usize) -> bool {
    !offer_often(address, length)
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_not_shared() {
    let local = [1_u8; 64 << 10];
    assert!(
        stays_private(local.as_ptr(), local.len()),
        "a thread's stack"
    );
    let seen = std::thread::spawn(|| {
        let local = [2_u8; 64 << 10];
        stays_private(local.as_ptr(), local.len())
    });
    assert!(seen.join().expect("it ends"), "another thread's");
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let map = |flags: c_int, file: c_int| {
        // SAFETY: fresh memory.
        let address = unsafe { libc::mmap(ptr::null_mut(), MIB, rights, flags, file, 0) };
        assert_ne!(address, libc::MAP_FAILED);
        address.cast::<u8>()
    };
    let shared = map(libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
    assert!(stays_private(shared, MIB), "shared by the program");
    // SAFETY: a file of this program's, opened for this.
    let own = unsafe { libc::open(c"/proc/self/exe".as_ptr(), libc::O_RDONLY) };
    assert!(stays_private(map(libc::MAP_PRIVATE, own), MIB), "a file");
    // SAFETY: only the address is used.
    let library = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"weft_heap_v3".as_ptr()) };
    assert!(stays_private(library.cast(), 64 << 10), "a library");
    let (first, second) = (mapped(MIB, 1), 64 << 10);
    let hole = first.wrapping_add(MIB / 2).cast::<c_void>();
    // SAFETY: memory of this test's.
    unsafe { libc::mprotect(hole, second, libc::PROT_READ) };
    assert!(stays_private(first, MIB), "not all of it may be written");
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_freed() {
    let before = file_bytes();
    for bytes in [64 << 10, MIB, 40 * MIB] {
        let address = block(bytes, 1);
        assert!(offer_some(address, bytes));
        assert!(file_bytes() >= before + bytes - 2 * PAGE);
        // SAFETY: a block of this test's.
        unsafe {
            let grown = libc::realloc(address.cast(), 2 * bytes).cast::<u8>();
            assert!(holds(grown, bytes, 1));
            assert_eq!(file_bytes(), before, "its memory is the system's again");
            assert!(!offer(grown, bytes));
            assert!(offer_often(grown, 2 * bytes) && is_right(grown, 2 * bytes));
            let small = libc::realloc(grown.cast(), bytes / 2).cast::<u8>();
            assert!(holds(small, bytes / 2, 1) && !offer(small, bytes / 2));
            libc::free(small.cast());
        }
        assert_eq!(file_bytes(), before);
    }
    // In a loop, at one address or another: sharing never pays. Of 6000 offers every 46th is due.
    let mut shared = 0;
    for _ in 0..2000 {
        let address = block(MIB, 1);
        shared += u32::from((0..3).any(|_| offer(address, MIB)));
        // SAFETY: a block of this test's.
        unsafe { libc::free(address.cast()) };
    }
    assert!((1..150).contains(&shared), "{shared}");
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_mapped_anew() {
    let before = file_bytes();
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let fixed = flags | libc::MAP_FIXED;
    // SAFETY: all on memory of this test's own.
    unsafe {
        let address = mapped(4 * MIB, 5);
        let at = |offset: usize| address.wrapping_add(offset).cast::<c_void>();
        assert!(offer_some(address, 4 * MIB));
        assert_eq!(libc::mmap(at(MIB), MIB, rights, fixed, -1, 0), at(MIB));
        assert!(bytes_at(at(MIB).cast(), MIB).iter().all(|&byte| byte == 0));
        assert!(holds(address, MIB, 5));
        assert!(!offer(address, 4 * MIB), "one part of it is private now");
        assert!(offer_often(address, 4 * MIB) && is_right(address, 4 * MIB));
        assert_eq!(libc::munmap(at(2 * MIB), 2 * MIB), 0);
        assert_eq!(file_bytes(), before + 2 * MIB);
        let noreplace = flags | libc::MAP_FIXED_NOREPLACE;
        let again = libc::mmap(at(2 * MIB), 2 * MIB, rights, noreplace, -1, 0);
        assert_eq!(again, at(2 * MIB), "it is free");
        fill(again.cast(), 2 * MIB, 6);
        assert!(
            !offer(again.cast(), 2 * MIB),
            "and nobody reads what was there"
        );
        let moved = libc::mremap(address.cast(), 2 * MIB, 6 * MIB, libc::MREMAP_MAYMOVE);
        assert_ne!(moved, libc::MAP_FAILED);
        assert!(
            bytes_at(moved.cast(), MIB)
                .iter()
                .enumerate()
                .all(|(i, &is)| is == byte(i, 5))
        );
        assert_eq!(file_bytes(), before);
        assert_eq!(libc::munmap(moved, 6 * MIB), 0);
        assert_eq!(libc::munmap(at(1), 5), -1, "an error stays one");
    }
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_thrown_away() {
    for advice in [libc::MADV_DONTNEED, libc::MADV_FREE] {
        let address = mapped(3 * MIB, 7);
        assert!(offer_often(address, 3 * MIB));
        let middle = address.wrapping_add(MIB);
        // SAFETY: memory of this test's own.
        unsafe { assert_eq!(libc::madvise(middle.cast(), MIB, advice), 0) };
        assert!(
            bytes_at(middle, MIB).iter().all(|&byte| byte == 0),
            "{advice}"
        );
        assert!(holds(address, MIB, 7));
        assert!(offer_some(address, 3 * MIB) && is_right(address, 3 * MIB));
        // SAFETY: a mapping of this test's own, which nobody looks at any more.
        unsafe { assert_eq!(libc::munmap(address.cast(), 3 * MIB), 0) };
    }
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_advised() {
    let advices = [
        libc::MADV_HUGEPAGE,
        libc::MADV_WIPEONFORK,
        libc::MADV_DONTFORK,
        libc::MADV_DONTDUMP,
    ];
    for advice in advices {
        let address = mapped(MIB, 1);
        // SAFETY: memory of this test's own.
        unsafe { assert_eq!(libc::madvise(address.cast(), MIB, advice), 0, "{advice}") };
        assert!(stays_private(address, MIB), "{advice}");
        let late = mapped(MIB, 2);
        assert!(offer_some(late, MIB));
        // SAFETY: memory of this test's own.
        unsafe {
            assert_eq!(
                libc::madvise(late.cast(), MIB, advice),
                0,
                "{advice}, shared"
            )
        };
        assert!(holds(late, MIB, 2));
    }
    let locked = mapped(64 << 10, 1);
    // SAFETY: memory of this test's own.
    if unsafe { libc::mlock(locked.cast(), 64 << 10) } == 0 {
        assert!(stays_private(locked, 64 << 10), "locked");
    }
    let other = mapped(MIB, 1);
    // SAFETY: takes plain numbers.
    unsafe { libc::mlockall(libc::MCL_FUTURE) };
    assert!(
        stays_private(other, MIB),
        "from mlockall(2) on nothing is shared"
    );
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_large_pages() {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if setting.is_ok_and(|text| text.contains("[never]")) {
        return println!("skip: this system has no large pages");
    }
    let bytes = 64 * MIB;
    // SAFETY: memory of this test's own.
    unsafe {
        let address = libc::malloc(bytes).cast::<u8>();
        let (start, length) = whole_pages(address, bytes);
        assert_eq!(
            libc::madvise(start as *mut c_void, length, libc::MADV_HUGEPAGE),
            0
        );
        fill(address, bytes, 1);
        let line = smaps(address.wrapping_add(bytes / 2), "AnonHugePages");
        let kib: usize = line
            .split_ascii_whitespace()
            .nth(1)
            .map_or(0, |n| n.parse().unwrap());
        assert!(kib >= bytes / 2048, "{line}");
    }
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_pinned() {
    let mut parameters = [0_u8; 120];
    // SAFETY: the parameters are as long as the kernel's structure, and zero, which is valid.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 2, parameters.as_mut_ptr()) };
    if ring < 0 {
        return println!("skip: no io_uring here");
    }
    let address = mapped(MIB, 1);
    assert!(stays_private(address, MIB), "a ring may have it registered");
    // SAFETY: the descriptor is this test's.
    unsafe { libc::close(ring as c_int) };
    let address = mapped(MIB, 1);
    assert!(offer_some(address, MIB));
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_limit() {
    let blocks: Vec<*mut u8> = (0..10).map(|mark| mapped(MIB, mark)).collect();
    let is_shared = |&&address: &&*mut u8| offer_some(address, MIB);
    assert_eq!(blocks.iter().filter(is_shared).count(), 4);
    assert!(file_bytes() <= 4 * MIB);
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_nothing() {
    assert!(ask().is_none());
    // SAFETY: a block of this test's.
    unsafe { libc::free(block(MIB, 1).cast()) };
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_descriptor() {
    let (shared, fresh) = (mapped(2 * MIB, 1), mapped(MIB, 2));
    assert!(offer_some(shared, 2 * MIB));
    let before = face();
    let offer = before.offer.expect("a function");
    let path = std::env::temp_dir().join(format!("weft-heap-test-{}", std::process::id()));
    std::fs::write(&path, vec![0xee; 3 * MIB]).expect("a file");
    // SAFETY: a program may close and use any descriptor.
    unsafe {
        let name = std::ffi::CString::new(path.to_str().expect("plain")).expect("plain");
        let other = libc::open(name.as_ptr(), libc::O_RDWR);
        assert_eq!(
            libc::dup2(other, before.descriptor as c_int),
            before.descriptor as c_int
        );
    }
    assert!(ask().is_none(), "there is nothing to show any more");
    for _ in 0..20_000 {
        assert_eq!(offer(fresh as u64, MIB as u64, 1, 0), 0);
    }
    assert!(holds(shared, 2 * MIB, 1));
    // SAFETY: the child only looks and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let good = holds(shared, 2 * MIB, 1);
        // SAFETY: ends this process.
        unsafe { libc::_exit(if good { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the place is ours.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0, "a child has its memory without the descriptor");
    // SAFETY: memory of this test's own.
    unsafe { assert_eq!(libc::munmap(shared.cast(), 2 * MIB), 0) };
    let written = std::fs::read(&path).expect("the file");
    assert!(
        written.iter().all(|&byte| byte == 0xee),
        "the other file is as it was"
    );
    std::fs::remove_file(&path).expect("removed");
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_places() {
    let first = (0..256).map(|_| ask().expect("a file").first_place);
    assert!(
        first.eq((0..256).map(|index| index * 256)),
        "each endpoint has its own"
    );
    assert!(ask().is_none(), "there are no more");
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_malloc() {
    let names = [
        c"malloc",
        c"calloc",
        c"posix_memalign",
        c"aligned_alloc",
        c"memalign",
        c"malloc_usable_size",
    ];
    // SAFETY: the names are constants; the C library is loaded.
    unsafe {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        let library = libc::dlopen(c"libc.so.6".as_ptr(), flags);
        for name in names {
            let used = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            assert_eq!(used, libc::dlsym(library, name.as_ptr()), "{name:?}");
        }
    }
}

#[test]
#[ignore = "run by a law of the same subject, preloaded"]
fn child_readers() {
    let address = mapped(MIB, 9);
    let (place, stop) = (address as usize, AtomicBool::new(false));
    let is_reading = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert!(
                    holds(place as *const u8, MIB, 9),
                    "another thread sees other bytes"
                );
                is_reading.store(true, Ordering::Relaxed);
            }
        });
        while !is_reading.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        for round in 0..100 {
            let is_shared = offer_often(address, MIB);
            // Half of it becomes private again, and is free for sharing anew, by moving there and
            // back. SAFETY: memory of this test's own; the reader is not in the way of a move in
            // place.
            let half = unsafe { libc::mremap(address.cast(), MIB, MIB, 0) };
            if !is_shared || half.cast() != address {
                stop.store(true, Ordering::Relaxed);
                panic!("round {round}: {is_shared}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
