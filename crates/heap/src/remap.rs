// SPDX-License-Identifier: Apache-2.0 OR MIT
//! mremap(2) of memory that was shared once. To the program it is one mapping; to the system it is
//! several, which differ in nothing but their history, and which it does not resize. So this
//! copies. Called by interpose_maps when the system has refused. Source: mremap(2).

use std::ffi::c_int;

use crate::eligible;
use crate::real;
use crate::spans::Span;

const PRIVATE: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Moves or resizes plain private memory; `None` if it is something else, or cannot be had.
///
/// # Safety
/// As mremap(2); `address` and the lengths are whole pages, and nothing of it is shared.
pub unsafe fn by_hand(
    address: usize,
    bytes: usize,
    wanted_bytes: usize,
    flags: c_int,
    target: usize,
) -> Option<usize> {
    let span = Span::inside(address, bytes).filter(|span| span.bytes() == bytes)?;
    let may_move = flags & libc::MREMAP_MAYMOVE != 0;
    let is_fixed = flags & libc::MREMAP_FIXED != 0;
    if flags & libc::MREMAP_DONTUNMAP != 0 || wanted_bytes == 0 || !eligible::is_private(span) {
        return None;
    }
    if wanted_bytes <= bytes && !is_fixed {
        if wanted_bytes < bytes {
            // SAFETY: the caller gives that part up.
            unsafe { real::unmap(address + wanted_bytes, bytes - wanted_bytes) };
        }
        return Some(address);
    }
    if !may_move {
        let (end, more_bytes) = (address + bytes, wanted_bytes - bytes);
        let flags = PRIVATE | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: nothing is there, or the system refuses.
        let grown = unsafe { real::map(end, more_bytes, flags, -1, 0) };
        return grown.map(|_| address);
    }
    let (place, flags) = if is_fixed {
        (target, PRIVATE | libc::MAP_FIXED)
    } else {
        (0, PRIVATE)
    };
    // SAFETY: fresh memory, or the caller's to replace, gets what the caller has moved.
    unsafe {
        let fresh = real::map(place, wanted_bytes, flags, -1, 0)?;
        let (from, to) = (address as *const u8, fresh as *mut u8);
        std::ptr::copy_nonoverlapping(from, to, bytes.min(wanted_bytes));
        real::unmap(address, bytes);
        Some(fresh)
    }
}
