// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether memory is of a kind that may be shared: plain private memory of the program, of which we
//! hear when it goes. What cannot be told apart safely stays private. Asked by interface before
//! memory is shared for the first time, outside of the table's lock. Sources: proc_pid_maps(5),
//! get_robust_list(2), dl_iterate_phdr(3), proc_pid_status(5).
//!
//! Left out are: stacks, which end without a call that we see; static data of libraries, which
//! dlclose(3) unmaps; files and shared memory; and everything while the process has something open
//! by which devices or the kernel may keep physical pages (GPUs, InfiniBand, io_uring,
//! userfaultfd), which would go on with the old pages.

use std::ffi::{c_int, c_void};
use std::fs;

use crate::keepers::Status;
use crate::mappings::{Kind, Mapping, Mappings};
use crate::spans::Span;

/// Whether all of a span is plain, or shared by us already, by what `at` says of the mapping at an
/// address. `stacks` are addresses that lie at the upper ends of threads' stacks, which reach down
/// to where their mapping begins.
fn is_plain(span: Span, stacks: &[usize], at: impl Fn(usize) -> Option<Mapping>) -> bool {
    let mut address = span.start;
    while address < span.end {
        let Some(found) = at(address) else {
            return false;
        };
        let held = found.span;
        let is_stack = |&top: &usize| held.start <= top && top < held.end && address <= top;
        let fits = match found.kind {
            Kind::Plain => !stacks.iter().any(is_stack),
            Kind::Ours => true,
            Kind::Other => false,
        };
        if !fits {
            return false;
        }
        address = held.end;
    }
    true
}

/// Where the C library keeps a thread's list of held locks, which it tells the kernel; 0 as the
/// number is the caller. `None` if the thread has ended, or has none.
fn locks_of(thread: c_int) -> Option<usize> {
    let (mut head, mut length) = (0_usize, 0_usize);
    // SAFETY: both places are ours to write.
    let asked = unsafe { libc::syscall(libc::SYS_get_robust_list, thread, &mut head, &mut length) };
    (asked == 0 && head != 0).then_some(head)
}

/// An address at the upper end of the stack of each thread but the first, of which there are so
/// many: the C library keeps what it knows of a thread there. `None` if some are not known: the
/// system leaves threads out of its list where another one ends meanwhile.
fn stacks(threads: usize) -> Option<Vec<usize>> {
    let mut tops = Vec::new();
    if threads == 1 {
        // This one, whose stack has a name, or which is the first.
        return Some(tops);
    }
    // SAFETY: takes nothing.
    let first = unsafe { libc::getpid() };
    let mut listed = 0;
    for entry in fs::read_dir("/proc/self/task").ok()? {
        let thread: c_int = entry.ok()?.file_name().to_str()?.parse().ok()?;
        listed += 1;
        match locks_of(thread) {
            Some(top) if thread != first => tops.push(top),
            Some(_) => {}
            // One that just ended has none; one that never had any is not the C library's.
            None => {
                if fs::exists(format!("/proc/self/task/{thread}")).unwrap_or(true) {
                    return None;
                }
            }
        }
    }
    (listed >= threads).then_some(tops)
}

/// Whether any of it is static data of a library. The program's own stays as long as the process.
fn is_library_data(span: Span) -> bool {
    struct Search {
        span: Span,
        is_first: bool,
        is_found: bool,
    }

    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _length: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the C library passes what it promises, and what we gave it.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        if std::mem::take(&mut search.is_first) {
            return 0;
        }
        for index in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: there are so many headers.
            let header = unsafe { &*info.dlpi_phdr.add(index) };
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            let part = Span::around(start, header.p_memsz as usize);
            search.is_found |= header.p_type == libc::PT_LOAD
                && part.is_some_and(|part| part.common(&search.span).is_some());
        }
        c_int::from(search.is_found)
    }

    let mut search = Search {
        span,
        is_first: true,
        is_found: false,
    };
    // SAFETY: the function is called before this returns, with the address of what is ours.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.is_found
}

/// Whether all of a span is plain private memory, as far as the system says.
pub fn is_private(span: Span) -> bool {
    Mappings::of_self(span.start)
        .is_ok_and(|mappings| is_plain(span, &[], |address| mappings.at(address, 0)))
}

/// Whether memory may be shared that was not, or only in part. Slow path: asks the system, some
/// tens of microseconds.
pub fn may_be_shared(span: Span, file_inode: u64) -> bool {
    let (Ok(mappings), Some(status)) = (Mappings::of_self(span.start), Status::read()) else {
        return false;
    };
    let at = |address| mappings.at(address, file_inode);
    stacks(status.threads).is_some_and(|stacks| is_plain(span, &stacks, at))
        && !is_library_data(span)
        && !status.has_keepers()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const MAPS: &str = "\
00400000-00402000 rw-p 00001000 08:01 99 /bin/program
00402000-00500000 rw-p 00000000 00:00 0 
00600000-00700000 rw-p 00000000 00:00 0                                  [heap]
7f0000000000-7f0000100000 rw-p 00000000 00:00 0 
7f0000100000-7f0000200000 rw-s 7f0000100000 00:01 77                     /memfd:weft-heap (deleted)
7f0000200000-7f0000300000 rw-p 00000000 00:00 0                          [anon: a name]
7f0000400000-7f0000500000 r--p 00000000 00:00 0 
7f0000500000-7f0000600000 rw-s 00000000 00:01 78                         /memfd:other (deleted)
7f0000600000-7f0000700000 rw-p 00000000 00:00 0                          [anon: stack of 7]
7fff00000000-7fff00100000 rw-p 00000000 00:00 0                          [stack]
";

    #[test]
    fn only_plain_memory_without_a_hole_and_what_is_ours_may_be_shared() {
        let maps = Mappings::Read(MAPS.into());
        let ask = |start, end| is_plain(Span { start, end }, &[], |at| maps.at(at, 77));
        assert!(ask(0x40_2000, 0x50_0000) && ask(0x60_0000, 0x70_0000));
        assert!(ask(0x7f00_0001_0000, 0x7f00_0028_0000), "three in a row");
        for (start, end, why) in [
            (0x40_1000, 0x40_3000, "a file"),
            (0x4f_0000, 0x60_1000, "a hole"),
            (0x7f00_002f_0000, 0x7f00_0030_1000, "an end"),
            (0x7f00_0040_0000, 0x7f00_0040_1000, "may not be written"),
            (0x7f00_0050_0000, 0x7f00_0050_1000, "shared by others"),
            (0x7f00_0060_0000, 0x7f00_0060_1000, "a stack by name"),
            (0x7fff_0000_0000, 0x7fff_0000_1000, "the stack"),
            (0x8000_0000_0000, 0x8000_0000_1000, "nothing"),
        ] {
            assert!(!ask(start, end), "{why}");
        }
    }

    #[test]
    fn below_what_the_c_library_keeps_of_a_thread_lies_its_stack() {
        let stacks = [0x7f00_0008_0000];
        let maps = Mappings::Read(MAPS.into());
        let ask = |start, end| is_plain(Span { start, end }, &stacks, |at| maps.at(at, 77));
        assert!(!ask(0x7f00_0001_0000, 0x7f00_0002_0000));
        assert!(
            ask(0x7f00_0009_0000, 0x7f00_000a_0000),
            "above, in one mapping"
        );
        assert!(ask(0x60_0000, 0x70_0000));
    }

    /// Whether something holds within ten seconds: of a thread of another test that begins just now
    /// nothing is known yet.
    fn soon(holds: impl Fn() -> bool) -> bool {
        let begin = Instant::now();
        while !holds() {
            if begin.elapsed() > Duration::from_secs(10) {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    #[test]
    fn stacks_are_unknown_where_fewer_threads_are_listed_than_there_are() {
        assert_eq!(stacks(usize::MAX), None);
        assert!(soon(|| stacks(2).is_some()));
    }

    #[test]
    fn blocks_of_malloc_may_be_shared_and_this_threads_stack_may_not() {
        let block = vec![1_u8; 1 << 20];
        let span = |address, length| Span::inside(address, length).expect("pages");
        let (address, length) = (block.as_ptr() as usize, block.len());
        assert!(soon(|| may_be_shared(span(address, length), 1)));
        let local = [1_u8; 16384];
        // A test runs in a thread of its own.
        assert!(!may_be_shared(
            span(local.as_ptr() as usize, local.len()),
            1
        ));
        // SAFETY: only the address is used.
        let library = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"stdout".as_ptr()) } as usize;
        let page = Span::around(library, 8).expect("a page");
        assert!(is_library_data(page));
    }
}
