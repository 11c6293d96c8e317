// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Capabilities over execve(2): a process in a user namespace of its own has all of them, and a
//! program that it starts has none, unless they are passed on. Used by the launcher for
//! `weft-mount`. Source: capabilities(7), "Ambient"; capset(2); linux/capability.h.

use std::io;

use crate::check;

/// _LINUX_CAPABILITY_VERSION_3 (linux/capability.h): two words of 32 capabilities each.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Has programs that this process executes keep capability `number`, which it must have. Setup; in
/// a process with one thread, since each has its own.
///
/// # Errors
/// EPERM where this process does not have it, else the errno of capset(2) or prctl(2).
pub fn pass_on(number: u32) -> io::Result<()> {
    let mut words = [Word::default(); 2];
    let header = Header {
        version: VERSION,
        pid: 0,
    };
    // SAFETY: the kernel reads the header and writes two words, as this version has them.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw const header, words.as_mut_ptr()) };
    check(got as libc::c_int)?;
    let word = words
        .get_mut(number as usize / 32)
        .ok_or(io::ErrorKind::InvalidInput)?;
    word.inheritable |= 1 << (number % 32);
    // SAFETY: the kernel reads the header and two words.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw const header, words.as_ptr()) };
    check(set as libc::c_int)?;
    let (raise, none) = (
        libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong,
        0 as libc::c_ulong,
    );
    let number = libc::c_ulong::from(number);
    // SAFETY: prctl with PR_CAP_AMBIENT takes plain numbers and touches no memory.
    check(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, raise, number, none, none) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::pass_on;

    #[test]
    fn a_number_that_no_capability_has_is_refused() {
        assert!(pass_on(64).is_err());
    }
}
