// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cross Memory Attach: process_vm_readv(2) and process_vm_writev(2). Called by shm for large
//! messages and for accesses of registered memory.

use std::io;

use crate::check_length;

/// Most local pieces one call takes. Chosen: above the provider's iov_limit; the kernel allows
/// 1024.
pub const PIECE_LIMIT: usize = 16;

/// A stretch of this process's memory, by address.
#[derive(Clone, Copy, Debug)]
pub struct LocalPiece {
    /// Address of its first byte.
    pub address: usize,
    /// Its length.
    pub length_bytes: usize,
}

/// Copies from `address` in process `pid` into `pieces`, in order; answers how many bytes were
/// copied, which may be fewer than asked for. One system call.
///
/// The number of a process that has ended may be another one's by now. So the call reads a word
/// before the bytes, at the address `probe.0`, which is `probe.1` in the process that is meant.
///
/// # Safety
/// Every piece must be writable memory of this process that is lent to the caller. (The other
/// process's memory is checked by the kernel.)
///
/// # Errors
/// EPERM when the kernel, Yama or seccomp forbids it, ENOSYS likewise, ESRCH when the process is
/// gone (what is in the pieces then is to be dropped), EFAULT when the word's address is not its.
pub unsafe fn read_from(
    pid: u32,
    probe: (u64, u64),
    address: u64,
    pieces: &[LocalPiece],
) -> io::Result<usize> {
    let mut word = 0u64;
    let mut local = [piece_of(&mut word); PIECE_LIMIT + 1];
    let total = fill_vector(&mut local[1..], pieces);
    let remote = [
        vector_of(probe.0 as usize, size_of::<u64>()),
        vector_of(address as usize, total),
    ];
    // SAFETY: the local vector lists a word of ours and memory the caller lends us; the remote side
    // is the kernel's to check.
    let read_bytes = check_length(unsafe {
        libc::process_vm_readv(
            pid as libc::pid_t,
            local.as_ptr(),
            pieces.len().min(PIECE_LIMIT) as u64 + 1,
            remote.as_ptr(),
            remote.len() as u64,
            0,
        )
    })?;
    match read_bytes.checked_sub(size_of::<u64>()) {
        Some(bytes) if word == probe.1 => Ok(bytes),
        _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// Copies `pieces`, in order, to `address` in process `pid`; answers how many bytes were copied,
/// which may be fewer than asked for. Two system calls: the first one looks at the probe, as
/// [`read_from`] does.
///
/// # Safety
/// Every piece must be readable memory of this process that is lent to the caller. (The other
/// process's memory is checked by the kernel.)
///
/// # Errors
/// As [`read_from`].
pub unsafe fn write_to(
    pid: u32,
    probe: (u64, u64),
    address: u64,
    pieces: &[LocalPiece],
) -> io::Result<usize> {
    // SAFETY: there are no pieces.
    unsafe { read_from(pid, probe, probe.0, &[])? };
    let mut local = [vector_of(0, 0); PIECE_LIMIT];
    let total = fill_vector(&mut local, pieces);
    let remote = vector_of(address as usize, total);
    // SAFETY: the local vector lists memory the caller lends us; the remote side is the kernel's to
    // check.
    check_length(unsafe {
        libc::process_vm_writev(
            pid as libc::pid_t,
            local.as_ptr(),
            pieces.len().min(PIECE_LIMIT) as u64,
            &remote,
            1,
            0,
        )
    })
}

fn vector_of(address: usize, length_bytes: usize) -> libc::iovec {
    libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: length_bytes,
    }
}

fn piece_of(word: &mut u64) -> libc::iovec {
    vector_of((&raw mut *word) as usize, size_of::<u64>())
}

/// Lists the pieces; answers their length.
fn fill_vector(vector: &mut [libc::iovec], pieces: &[LocalPiece]) -> usize {
    let mut total = 0;
    for (slot, piece) in vector.iter_mut().zip(pieces) {
        *slot = vector_of(piece.address, piece.length_bytes);
        total += piece.length_bytes;
    }
    total
}
