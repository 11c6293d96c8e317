// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much memory may be shared. Asked by interface when the provider first asks. Source:
//! sysconf(3).

use std::ffi::CStr;

/// The variable that names another limit, in bytes.
pub const LIMIT_VARIABLE: &CStr = c"WEFT_HEAP_LIMIT";

/// Least limit, and the step of all: there is no use in less.
pub const LEAST_BYTES: u64 = 1 << 20;

/// Greatest limit. Chosen: more than any process of today sends out of.
const GREATEST_BYTES: u64 = 256 << 30;

/// Why there is no limit to go by.
#[derive(Debug, PartialEq, Eq)]
pub struct BadLimit;

/// The limit in bytes: what the variable says, else a quarter of the machine's memory: a child of
/// fork(2) gets a copy of what is shared.
///
/// # Errors
/// [`BadLimit`] if the variable holds no number of at least 1 MiB and at most 256 GiB.
pub fn limit_bytes(asked: Option<&[u8]>, machine_bytes: u64) -> Result<u64, BadLimit> {
    match asked {
        None | Some([]) => Ok((machine_bytes / 4).clamp(LEAST_BYTES, GREATEST_BYTES)),
        Some(text) => number(text)
            .filter(|bytes| (LEAST_BYTES..=GREATEST_BYTES).contains(bytes))
            .ok_or(BadLimit),
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// The memory of this machine in bytes.
pub fn machine_bytes() -> u64 {
    // SAFETY: sysconf takes a plain number.
    let (pages, page_bytes) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    u64::try_from(pages).unwrap_or(0) * u64::try_from(page_bytes).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_what_was_asked_for_else_a_quarter_of_the_machines_memory() {
        assert_eq!(limit_bytes(None, 20 << 30), Ok(5 << 30));
        assert_eq!(limit_bytes(Some(b""), 20 << 30), Ok(5 << 30));
        assert_eq!(limit_bytes(Some(b" 2097152 "), 5 << 30), Ok(2 << 20));
        assert_eq!(limit_bytes(None, u64::MAX), Ok(GREATEST_BYTES));
        assert_eq!(limit_bytes(None, 4096), Ok(LEAST_BYTES));
    }

    #[test]
    fn a_limit_that_is_none_is_refused() {
        for text in [
            &b"many"[..],
            b"-1",
            b"1048575",
            b"1e9",
            b"999999999999999",
            &[0xff],
        ] {
            assert_eq!(limit_bytes(Some(text), 5 << 30), Err(BadLimit));
        }
    }
}
