// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Single copy between a user's buffer and another process's memory, in pieces. Called by shm; calls os.

use std::io;

use weft_os::single_copy::{LocalPiece, PIECE_LIMIT, read_from, write_to};

use crate::UserBuffer;

/// Copies up to `length_bytes` bytes from `address` in process `pid` into `target` at `offset_bytes`; answers
/// how many were copied. One system call.
///
/// # Errors
/// EPERM, ENOSYS, ESRCH or EFAULT, as process_vm_readv(2).
pub fn pull(
    pid: u32,
    address: u64,
    target: &UserBuffer,
    offset_bytes: usize,
    length_bytes: usize,
) -> io::Result<usize> {
    let (pieces, count) = pieces_of(target, offset_bytes, length_bytes);
    // SAFETY: the pieces lie inside a user buffer that is ours to write until its completion.
    unsafe { read_from(pid, address, &pieces[..count]) }
}

/// Copies up to `length_bytes` bytes of `source` from `offset_bytes` on to `address` in process `pid`; answers how many
/// were copied. One system call.
///
/// # Errors
/// EPERM, ENOSYS, ESRCH or EFAULT, as process_vm_writev(2).
pub fn push(
    pid: u32,
    address: u64,
    source: &UserBuffer,
    offset_bytes: usize,
    length_bytes: usize,
) -> io::Result<usize> {
    let (pieces, count) = pieces_of(source, offset_bytes, length_bytes);
    // SAFETY: the pieces lie inside a user buffer that is ours to read until its completion.
    unsafe { write_to(pid, address, &pieces[..count]) }
}

/// Whether this process may read the memory of `pid`: reads one word at `address` and compares it.
pub fn can_read(pid: u32, address: u64, expected: u64) -> bool {
    let mut word = 0u64;
    let piece = LocalPiece {
        address: (&raw mut word) as usize,
        length_bytes: size_of::<u64>(),
    };
    // SAFETY: the piece is a local variable that lives through the call.
    let result = unsafe { read_from(pid, address, &[piece]) };
    matches!(result, Ok(8)) && word == expected
}

fn pieces_of(
    buffer: &UserBuffer,
    offset_bytes: usize,
    length_bytes: usize,
) -> ([LocalPiece; PIECE_LIMIT], usize) {
    let mut pieces = [LocalPiece {
        address: 0,
        length_bytes: 0,
    }; PIECE_LIMIT];
    let mut count = 0;
    buffer.for_each_piece(offset_bytes, length_bytes, |address, length_bytes| {
        if count < PIECE_LIMIT {
            pieces[count] = LocalPiece {
                address,
                length_bytes,
            };
            count += 1;
        }
    });
    (pieces, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no process_vm_readv(2)")]
    fn a_scattered_target_is_filled_in_one_call() {
        let source: Vec<u8> = (0..100).collect();
        let mut parts = [vec![0u8; 30], vec![0u8; 70]];
        // SAFETY: the parts outlive the buffer and are not touched meanwhile.
        let target =
            unsafe { UserBuffer::from_pieces(parts.iter_mut().map(|p| (p.as_mut_ptr(), p.len()))) };
        let pid = std::process::id();
        match pull(pid, source.as_ptr() as u64, &target, 0, 100) {
            Ok(count) => {
                assert_eq!(count, 100);
                assert_eq!(parts.concat(), source);
            }
            Err(error) => eprintln!("skip: single copy is not permitted here: {error}"),
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no process_vm_writev(2)")]
    fn a_scattered_source_is_written_in_one_call() {
        let target = [0u8; 100];
        let mut parts = [vec![1u8; 30], vec![2u8; 70]];
        // SAFETY: the parts outlive the buffer and are not touched meanwhile.
        let source =
            unsafe { UserBuffer::from_pieces(parts.iter_mut().map(|p| (p.as_mut_ptr(), p.len()))) };
        let target = std::hint::black_box(Box::new(target));
        match push(std::process::id(), target.as_ptr() as u64, &source, 10, 90) {
            Ok(count) => {
                assert_eq!(count, 90);
                assert_eq!(std::hint::black_box(&target)[..90], parts.concat()[10..]);
            }
            Err(error) => eprintln!("skip: single copy is not permitted here: {error}"),
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no process_vm_readv(2)")]
    fn an_unmapped_address_is_an_error_and_not_a_crash() {
        assert!(!can_read(std::process::id(), 8, 0));
    }
}
