// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a heap leaves alone that nobody asked for (`weft run --heap auto`). Most systems give large pages (THP) to private memory as it comes, to
//! shared memory only if it asks for them, or not at all: there the longest allocations stay private. And where a process's address space is limited
//! its remotes' is, too, and there is no such heap. Asked by arena when the library is loaded. Source: Documentation/admin-guide/mm/transhuge.rst.

use std::ffi::CStr;

use crate::process;

/// The variable by which `weft run` says that the heap was not asked for: `auto`.
const VARIABLE: &CStr = c"WEFT_HEAP";

const PRIVATE: &CStr = c"/sys/kernel/mm/transparent_hugepage/enabled";
const SHARED: &CStr = c"/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// Allocations from here on stay private where they have large pages. Chosen: two of the usual size, of which at least one fits at any address.
const LONG_BYTES: usize = 4 << 20;

/// What kind of heap there is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Whether to ask for large pages.
    pub wants_large_pages: bool,
    /// Allocations of so many bytes and more do not belong in the heap; 0 if none do.
    pub to_bytes: usize,
}

/// On this system, for this program. Setup.
pub fn terms() -> Terms {
    let is_auto = process::variable(VARIABLE) == Some(c"auto");
    let (mut private, mut shared) = ([0; 128], [0; 128]);
    let unasked = is_auto.then(is_address_space_limited);
    judge(
        unasked,
        read(PRIVATE, &mut private),
        read(SHARED, &mut shared),
    )
}

/// Whether this process may not have all the address space there is (ulimit -v).
fn is_address_space_limited() -> bool {
    process::limit(libc::RLIMIT_AS).is_some_and(|bytes| bytes != libc::RLIM_INFINITY)
}

/// From whether address space is limited, where the heap was not asked for, and from what the two files say, of which the word in brackets counts.
fn judge(unasked: Option<bool>, private: &[u8], shared: &[u8]) -> Terms {
    let says = |text: &[u8], word: &[u8]| text.windows(word.len()).any(|part| part == word);
    let is_usual = says(private, b"[always]");
    let is_refused = says(shared, b"[never]") || says(shared, b"[deny]") || shared.is_empty();
    Terms {
        wants_large_pages: is_usual && says(shared, b"[advise]"),
        to_bytes: match unasked {
            Some(true) => 0,
            Some(false) if is_usual && is_refused => LONG_BYTES,
            _ => usize::MAX,
        },
    }
}

/// What a short file holds; nothing if it cannot be read. Allocates nothing.
fn read<'a>(name: &CStr, text: &'a mut [u8; 128]) -> &'a [u8] {
    // SAFETY: plain calls on a constant name and on the descriptor that the first one made; the buffer is as long as is said.
    let count = unsafe {
        let file = libc::open(name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return &[];
        }
        let count = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        count
    };
    text.get(..usize::try_from(count).unwrap_or(0))
        .unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_large_pages_keeps_them_unless_the_heap_was_asked_for() {
        let always = &b"[always] madvise never\n"[..];
        let madvise = &b"always [madvise] never\n"[..];
        let never = &b"always within_size advise [never] deny force\n"[..];
        let advise = &b"always within_size [advise] never deny force\n"[..];
        for (unasked, private, shared, wants_large_pages, to_bytes) in [
            (Some(false), always, never, false, LONG_BYTES),
            (Some(false), always, &b""[..], false, LONG_BYTES),
            (None, always, never, false, usize::MAX),
            (Some(false), madvise, never, false, usize::MAX),
            (Some(false), always, advise, true, usize::MAX),
            (Some(false), &b""[..], &b""[..], false, usize::MAX),
            (Some(true), always, advise, true, 0),
        ] {
            let expected = Terms {
                wants_large_pages,
                to_bytes,
            };
            assert_eq!(judge(unasked, private, shared), expected);
        }
    }
}
