// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Single copy between a user's buffer and another process's memory, in pieces. Called by shm;
//! calls os.

use std::io;

use weft_os::single_copy::{LocalPiece, PIECE_LIMIT, read_from, write_to};

use crate::UserBuffer;

/// The memory of another process, and a word in it that tells that process from a later one that
/// was given its number.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMemory {
    /// Its number, in our namespace.
    pub pid: u32,
    /// Address and value of the word.
    pub probe: (u64, u64),
}

/// Copies up to `length_bytes` bytes from `address` in the memory `of` a process into `target` at
/// `offset_bytes`; answers how many were copied. One system call.
///
/// # Errors
/// EPERM, ENOSYS, ESRCH or EFAULT, as process_vm_readv(2).
pub fn pull(
    of: &ProcessMemory,
    address: u64,
    target: &UserBuffer,
    offset_bytes: usize,
    length_bytes: usize,
) -> io::Result<usize> {
    let (pieces, count) = pieces_of(target, offset_bytes, length_bytes);
    // SAFETY: the pieces lie inside a user buffer that is ours to write until its completion.
    unsafe { read_from(of.pid, of.probe, address, &pieces[..count]) }
}

/// Copies up to `length_bytes` bytes of `source` from `offset_bytes` on to `address` in the memory
/// `of` a process; answers how many were copied. Two system calls.
///
/// # Errors
/// EPERM, ENOSYS, ESRCH or EFAULT, as process_vm_writev(2).
pub fn push(
    of: &ProcessMemory,
    address: u64,
    source: &UserBuffer,
    offset_bytes: usize,
    length_bytes: usize,
) -> io::Result<usize> {
    let (pieces, count) = pieces_of(source, offset_bytes, length_bytes);
    // SAFETY: the pieces lie inside a user buffer that is ours to read until its completion.
    unsafe { write_to(of.pid, of.probe, address, &pieces[..count]) }
}

/// Whether this process may read the memory of `pid`, and a word at `address` in it is as
/// `expected`.
pub fn can_read(pid: u32, address: u64, expected: u64) -> bool {
    // SAFETY: nothing is copied but the probe.
    unsafe { read_from(pid, (address, expected), address, &[]) }.is_ok()
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
        match pull(&own(), source.as_ptr() as u64, &target, 0, 100) {
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
        match push(&own(), target.as_ptr() as u64, &source, 10, 90) {
            Ok(count) => {
                assert_eq!(count, 90);
                assert_eq!(std::hint::black_box(&target)[..90], parts.concat()[10..]);
            }
            Err(error) => eprintln!("skip: single copy is not permitted here: {error}"),
        }
    }

    static PROBE: u64 = 0x5eed;

    fn own() -> ProcessMemory {
        ProcessMemory {
            pid: std::process::id(),
            probe: ((&raw const PROBE) as u64, PROBE),
        }
    }

    /// As when the number of a process that has ended is another one's.
    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no process_vm_readv(2)")]
    fn a_process_whose_word_is_another_one_is_taken_for_gone_and_not_written_to() {
        let meant = own();
        if !can_read(meant.pid, meant.probe.0, meant.probe.1) {
            eprintln!("skip: single copy is not permitted here");
            return;
        }
        let other = ProcessMemory {
            probe: (meant.probe.0, 0xdead),
            ..meant
        };
        let bytes = std::hint::black_box(Box::new([1u8; 64]));
        let mut part = vec![7u8; 64];
        let address = bytes.as_ptr() as u64;
        // SAFETY: the part outlives the buffer and is not touched meanwhile.
        let buffer = unsafe { UserBuffer::from_pieces([(part.as_mut_ptr(), 64)].into_iter()) };
        let gone = Some(3); // ESRCH
        let pulled = pull(&other, address, &buffer, 0, 64);
        assert_eq!(pulled.expect_err("another process").raw_os_error(), gone);
        let pushed = push(&other, address, &buffer, 0, 64);
        assert_eq!(pushed.expect_err("another process").raw_os_error(), gone);
        assert_eq!(std::hint::black_box(&bytes)[..], [1u8; 64]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no process_vm_readv(2)")]
    fn an_unmapped_address_is_an_error_and_not_a_crash() {
        assert!(!can_read(std::process::id(), 8, 0));
    }
}
