// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the provider asks (docs/shm-layout.md, clause 11): where the file of shared memory is, and,
//! for each long message, whether its pages lie there. Its first question is also what makes a
//! process a rank: from then on its children do not preload this library any more.

use std::ffi::{CStr, CString, c_int};
use std::sync::OnceLock;

use crate::automatic;
use crate::eligible;
use crate::file::{FILE_BYTES, File, PLACES, PLACES_EACH};
use crate::fork;
use crate::limit::{self, LIMIT_VARIABLE};
use crate::offers::Offer;
use crate::process;
use crate::spans::Span;
use crate::table::{Step, TABLE};

/// Messages with fewer bytes of whole pages are not worth two mappings. Chosen.
const LEAST_BYTES: usize = 8 << 10;

/// What the provider is told. Specified: clause 11.
#[repr(C)]
#[derive(Debug)]
pub struct Face {
    /// The descriptor of the file.
    pub descriptor: u64,
    /// Its number.
    pub inode: u64,
    /// Its length in bytes.
    pub length_bytes: u64,
    /// The first of the places for the ends of messages that are the asker's from now on.
    pub first_place: u64,
    /// 1 if the user asks to have memory shared, whether it pays or not; else 0.
    pub is_asked: u64,
    /// Notes that a message of that address and length is offered to a remote that can map the
    /// file, for how many messages it counts, and whether they followed each other closely (1) or
    /// may not have (0). Answers 1 if all of its whole pages are in the file, each at the offset of
    /// its address, and stay there until the program frees them; else 0.
    pub offer: extern "C" fn(u64, u64, u64, u64) -> c_int,
}

/// How much of a wrong value an error shows. Chosen: any number fits.
const SHOWN_BYTES: usize = 40;

/// Tells the user, once, why nothing is shared.
fn say(parts: &[&[u8]]) {
    static SAID: OnceLock<()> = OnceLock::new();
    if SAID.set(()).is_err() {
        return;
    }
    for part in parts {
        // SAFETY: the bytes are readable for their length.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
}

/// Makes the file, if it is to be and is not there yet; answers what the provider is told.
fn open() -> Option<Face> {
    let terms = automatic::terms();
    let asked = process::variable(LIMIT_VARIABLE).map(CStr::to_bytes);
    let limit = limit::limit_bytes(asked, limit::machine_bytes());
    let Ok(most_bytes) = limit else {
        let value = asked.unwrap_or_default();
        say(&[
            b"weft-heap: memory stays private: WEFT_HEAP_LIMIT must be a number of bytes from ",
            b"1048576 (1 MiB) to 274877906944 (256 GiB), not \"",
            &value[..value.len().min(SHOWN_BYTES)],
            b"\"\n",
        ]);
        return None;
    };
    if terms.to_bytes == 0 {
        return None;
    }
    let file = TABLE.with(|state| {
        let closed = state.file.is_some_and(|file| !file.is_open());
        if state.file.is_none() {
            (state.file, state.most_bytes) = (File::make(), most_bytes as usize);
            state.to_bytes = terms.to_bytes;
            state.offers.is_asked = terms.is_asked;
        }
        state.file.filter(|_| !closed)
    });
    let Some(file) = file else {
        say(&[
            b"weft-heap: memory stays private: no anonymous file; ",
            b"see the limits of this job (ulimit -f, ulimit -n)\n",
        ]);
        return None;
    };
    fork::register();
    let (first_place, is_asked) = TABLE.with(|state| {
        let first = state.next_place;
        let is_left = first + PLACES_EACH <= PLACES;
        state.next_place += if is_left { PLACES_EACH } else { 0 };
        is_left.then_some((first, state.offers.is_asked))
    })?;
    let (descriptor, inode) = file.shown();
    Some(Face {
        descriptor: u64::try_from(descriptor).ok()?,
        inode,
        length_bytes: FILE_BYTES,
        first_place,
        is_asked: u64::from(is_asked),
        offer,
    })
}

/// Makes the file now, if the environment says so.
pub fn open_at_load() {
    if automatic::is_at_load() {
        open();
    }
}

extern "C" fn offer(address: u64, length_bytes: u64, messages: u64, are_close: u64) -> c_int {
    let inside = Span::inside(address as usize, length_bytes as usize);
    let span = inside.filter(|span| span.bytes() >= LEAST_BYTES);
    c_int::from(span.is_some_and(|span| is_offered_shared(span, messages, are_close != 0)))
}

/// What is to be done about an offered buffer.
enum Found {
    Shared,
    Private,
    /// It is to be shared now.
    Due(u64),
}

fn is_offered_shared(span: Span, messages: u64, are_close: bool) -> bool {
    let found = TABLE.with(|state| {
        if state.holds(span) {
            state.offers.use_shared(span, messages);
            return Found::Shared;
        }
        let offer = Offer {
            span,
            private_bytes: state.private_bytes(span),
            messages,
            are_close,
        };
        let inode = state.file.map(|file| file.inode());
        match inode.filter(|_| state.may_share(span)) {
            Some(inode) if state.offers.note(offer) => Found::Due(inode),
            _ => Found::Private,
        }
    });
    let Found::Due(inode) = found else {
        return matches!(found, Found::Shared);
    };
    let mut step = if eligible::may_be_shared(span, inode) {
        Step::More
    } else {
        Step::Private
    };
    // Others get the lock between two pieces.
    while step == Step::More {
        step = TABLE.change(|state| state.share_next(span));
    }
    let is_shared = step == Step::Shared;
    TABLE.with(|state| {
        if is_shared {
            state.offers.begin(span);
        } else {
            state.offers.refuse(span);
        }
    });
    is_shared
}

/// Tells the provider what it needs to know; -1 if memory stays private.
///
/// # Safety
/// The place must be writable.
// SAFETY: nobody else has a function of that name.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn weft_heap_v3(face: *mut Face) -> c_int {
    leave_children_alone();
    match open() {
        Some(opened) => {
            // SAFETY: the caller's promise.
            unsafe { face.write(opened) };
            0
        }
        None => -1,
    }
}

/// What `weft run` preloads into a rank, and not into what the rank starts. The others have no part
/// in MPI_Init, in which alone the list can be changed.
const PRELOADED: [&str; 3] = ["/libweft-heap.so", "/libweft-yield.so", "/libweft-mpi.so"];

/// By this variable `weft run` says which libfabric it preloads, too.
const LIBFABRIC: &CStr = c"WEFT_LIBFABRIC";

/// What is left of a list of preloaded libraries without Weft's and without that libfabric.
fn without_ours(list: &[u8], libfabric: Option<&[u8]>) -> Vec<u8> {
    let is_ours = |name: &[u8]| {
        PRELOADED.iter().any(|ours| name.ends_with(ours.as_bytes())) || libfabric == Some(name)
    };
    let is_other = |name: &&[u8]| !name.is_empty() && !is_ours(name);
    let names = list.split(|byte| b" :".contains(byte));
    let others: Vec<&[u8]> = names.filter(is_other).collect();
    others.join(&b':')
}

/// Has this process's children preload what they would without `weft run`.
fn leave_children_alone() {
    const PRELOAD: &CStr = c"LD_PRELOAD";
    let Some(list) = process::variable(PRELOAD).map(CStr::to_bytes) else {
        return;
    };
    let libfabric = process::variable(LIBFABRIC).map(CStr::to_bytes);
    let left = without_ours(list, libfabric);
    if left == list {
        return;
    }
    // SAFETY: names and values are C strings. The provider asks from within MPI_Init, before which
    // programs do not read their variables in other threads.
    unsafe {
        match CString::new(left) {
            Ok(left) if !left.is_empty() => {
                libc::setenv(PRELOAD.as_ptr(), left.as_ptr(), 1);
            }
            _ => {
                libc::unsetenv(PRELOAD.as_ptr());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_preloaded_all_but_our_libraries_is_left() {
        for (list, left) in [
            ("/w/libweft-heap.so", ""),
            ("/a.so:/w/libweft-heap.so", "/a.so"),
            ("/a.so /b.so:/w/libweft-heap.so:/c.so", "/a.so:/b.so:/c.so"),
            (
                "/w/libweft-heap.so:/w/libweft-yield.so:/w/libweft-mpi.so",
                "",
            ),
            ("/a.so", "/a.so"),
            ("", ""),
        ] {
            let found = without_ours(list.as_bytes(), None);
            assert_eq!(found, left.as_bytes(), "{list}");
        }
        let list = b"/f/libfabric.so.1:/w/libweft-heap.so:/g/libfabric.so.1";
        let left = without_ours(list, Some(b"/f/libfabric.so.1"));
        assert_eq!(left, b"/g/libfabric.so.1", "the user's own stays");
        let odd = b"/caf\xe9.so:/caf\xe9/libweft-heap.so";
        assert_eq!(without_ours(odd, None), b"/caf\xe9.so");
    }
}
