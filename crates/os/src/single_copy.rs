// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cross Memory Attach: process_vm_readv(2) and process_vm_writev(2). Called by shm for large messages and for accesses
//! of registered memory.

use std::io;

use crate::check_length;

/// Most local pieces one call takes. Chosen: above the provider's iov_limit; the kernel allows 1024.
pub const PIECE_LIMIT: usize = 16;

/// A stretch of this process's memory, by address.
#[derive(Clone, Copy, Debug)]
pub struct LocalPiece {
    /// Address of its first byte.
    pub address: usize,
    /// Its length.
    pub length_bytes: usize,
}

/// Copies from `address` in process `pid` into `pieces`, in order; answers how many bytes were copied, which
/// may be fewer than asked for. One system call.
///
/// # Safety
/// Every piece must be writable memory of this process that is lent to the caller. (The other process's memory
/// is checked by the kernel.)
///
/// # Errors
/// EPERM when the kernel, Yama or seccomp forbids it, ENOSYS likewise, ESRCH when the process is gone, EFAULT
/// when the address is not its.
pub unsafe fn read_from(pid: u32, address: u64, pieces: &[LocalPiece]) -> io::Result<usize> {
    let (local, count, total) = local_vector(pieces);
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: total,
    };
    // SAFETY: the local vector lists memory the caller lends us; the remote side is the kernel's to check.
    check_length(unsafe {
        libc::process_vm_readv(
            pid as libc::pid_t,
            local.as_ptr(),
            count as u64,
            &remote,
            1,
            0,
        )
    })
}

/// Copies `pieces`, in order, to `address` in process `pid`; answers how many bytes were copied, which may be fewer than
/// asked for. One system call.
///
/// # Safety
/// Every piece must be readable memory of this process that is lent to the caller. (The other process's memory
/// is checked by the kernel.)
///
/// # Errors
/// As [`read_from`].
pub unsafe fn write_to(pid: u32, address: u64, pieces: &[LocalPiece]) -> io::Result<usize> {
    let (local, count, total) = local_vector(pieces);
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: total,
    };
    // SAFETY: the local vector lists memory the caller lends us; the remote side is the kernel's to check.
    check_length(unsafe {
        libc::process_vm_writev(
            pid as libc::pid_t,
            local.as_ptr(),
            count as u64,
            &remote,
            1,
            0,
        )
    })
}

fn local_vector(pieces: &[LocalPiece]) -> ([libc::iovec; PIECE_LIMIT], usize, usize) {
    let mut local = [libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    }; PIECE_LIMIT];
    let mut total = 0;
    for (slot, piece) in local.iter_mut().zip(pieces) {
        *slot = libc::iovec {
            iov_base: piece.address as *mut libc::c_void,
            iov_len: piece.length_bytes,
        };
        total += piece.length_bytes;
    }
    (local, pieces.len().min(PIECE_LIMIT), total)
}
