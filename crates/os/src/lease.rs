// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether anybody at all has a file open or mapped, in whatever namespace: who is granted a write
//! lease is the only one. Used by weft-launch before it removes what a job left in /dev/shm.
//! Source: fcntl(2), "Leases"; the kernel counts every reference to the inode, those of mappings
//! too.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// F_SETSIG of asm-generic/fcntl.h, which the libc crate lacks. Specified.
const SET_SIGNAL: libc::c_int = 10;

/// Whether this descriptor, opened for reading, is the only reference to its file. Two system
/// calls; set-up.
///
/// # Errors
/// `PermissionDenied` for a file of another user, `InvalidInput` where the file system has no
/// leases.
pub fn is_unused(file: BorrowedFd<'_>) -> io::Result<bool> {
    let raw = file.as_raw_fd();
    // Who opens the file in between breaks the lease, of which the kernel tells us by a signal: one
    // that does nothing.
    // SAFETY: the command takes an int, and the descriptor is open while it is borrowed.
    crate::check(unsafe { libc::fcntl(raw, SET_SIGNAL, libc::SIGURG) })?;
    // SAFETY: the command takes an int, and the descriptor is open while it is borrowed.
    let granted = crate::check(unsafe { libc::fcntl(raw, libc::F_SETLEASE, libc::F_WRLCK) });
    match granted {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
        Err(error) => return Err(error),
    }
    // It cannot fail for who holds the lease.
    // SAFETY: the command takes an int, and the descriptor is open while it is borrowed.
    unsafe { libc::fcntl(raw, libc::F_SETLEASE, libc::F_UNLCK) };
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn a_file_is_unused_only_while_nobody_else_has_it_open() {
        let path = std::env::temp_dir().join(format!("weft-lease-{}", std::process::id()));
        let maker = File::create(&path).expect("create");
        let unused = || is_unused(File::open(&path).expect("open").as_fd());
        if unused().is_err_and(|error| error.kind() == io::ErrorKind::InvalidInput) {
            eprintln!("skip: the file system of {} has no leases", path.display());
        } else {
            assert!(!unused().expect("asked"));
            drop(maker);
            assert!(unused().expect("asked"));
        }
        std::fs::remove_file(&path).expect("remove");
    }
}
