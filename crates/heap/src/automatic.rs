// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What stays private where nobody asked for sharing (`weft run --heap auto`). Most systems give
//! large pages (THP) to private memory as it comes, and none to shared memory: there the longest
//! buffers stay private. And where a process's address space is limited its remotes' is, too, and
//! nothing is shared; nor where the C library was told to use large pages. Asked by interface when
//! the provider first asks. Source: Documentation/admin-guide/mm/transhuge.rst.

use std::ffi::CStr;

use crate::process;

/// The variable by which `weft run` says that sharing was not asked for: `auto`. Without it memory
/// is shared at its first offer; `patient` waits as `auto` does, and `at-load` makes the file at
/// once, for tests and for the doctor.
const VARIABLE: &CStr = c"WEFT_HEAP";

/// Tells the C library's malloc to use large pages, by a setting with this name in it.
const TUNABLES: &CStr = c"GLIBC_TUNABLES";
const LARGE_PAGES: &[u8] = b"malloc.hugetlb";

const PRIVATE: &CStr = c"/sys/kernel/mm/transparent_hugepage/enabled";
const SHARED: &CStr = c"/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// More than either file holds.
const SETTING_BYTES: usize = 128;

/// Buffers from here on stay private where they have large pages. Chosen: two of the usual size, of
/// which at least one fits at any address.
const LONG_BYTES: usize = 4 << 20;

/// What may be shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Buffers of so many bytes and more stay private; 0 if all do.
    pub to_bytes: usize,
    /// Whether the user asks to have each buffer shared at its first offer.
    pub is_asked: bool,
}

/// Whether the file is to be made when the library is loaded.
pub fn is_at_load() -> bool {
    process::variable(VARIABLE) == Some(c"at-load")
}

/// On this system, for this program. Setup.
pub fn terms() -> Terms {
    let asked = process::variable(VARIABLE);
    let is_auto = asked == Some(c"auto");
    let is_patient = is_auto || asked == Some(c"patient");
    let (mut private, mut shared) = ([0; SETTING_BYTES], [0; SETTING_BYTES]);
    let does_harm = is_auto.then(|| is_address_space_limited() || has_large_pages());
    let texts = (
        process::read(PRIVATE, &mut private),
        process::read(SHARED, &mut shared),
    );
    Terms {
        to_bytes: most_bytes(does_harm, texts.0, texts.1),
        is_asked: !is_patient,
    }
}

/// Whether this process may not have all the address space there is (ulimit -v).
fn is_address_space_limited() -> bool {
    process::limit(libc::RLIMIT_AS).is_some_and(|bytes| bytes != libc::RLIM_INFINITY)
}

/// Whether the C library asks for large pages for what it allocates, which we would not see.
fn has_large_pages() -> bool {
    let says = |text: &[u8]| {
        text.windows(LARGE_PAGES.len())
            .any(|part| part == LARGE_PAGES)
    };
    process::variable(TUNABLES).is_some_and(|text| says(text.to_bytes()))
}

/// From whether sharing would do harm, where it was not asked for, and from what the two files say,
/// of which the word in brackets counts.
fn most_bytes(does_harm: Option<bool>, private: &[u8], shared: &[u8]) -> usize {
    let says = |text: &[u8], word: &[u8]| text.windows(word.len()).any(|part| part == word);
    let is_usual = says(private, b"[always]");
    let is_refused = says(shared, b"[never]") || says(shared, b"[deny]") || shared.is_empty();
    match does_harm {
        Some(true) => 0,
        Some(false) if is_usual && is_refused => LONG_BYTES,
        _ => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_large_pages_keeps_them_unless_sharing_was_asked_for() {
        let always = &b"[always] madvise never\n"[..];
        let madvise = &b"always [madvise] never\n"[..];
        let never = &b"always within_size advise [never] deny force\n"[..];
        let advise = &b"always within_size [advise] never deny force\n"[..];
        for (does_harm, private, shared, to_bytes) in [
            (Some(false), always, never, LONG_BYTES),
            (Some(false), always, &b""[..], LONG_BYTES),
            (None, always, never, usize::MAX),
            (Some(false), madvise, never, usize::MAX),
            (Some(false), always, advise, usize::MAX),
            (Some(false), &b""[..], &b""[..], usize::MAX),
            (Some(true), always, advise, 0),
        ] {
            assert_eq!(most_bytes(does_harm, private, shared), to_bytes);
        }
    }
}
