// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copy routines by size. Called by the views and user buffers of this crate only.

/// Copies `length_bytes` bytes, tuned for the few-word messages that fill one cell: two overlapping moves
/// instead of a call. Fast path.
///
/// # Safety
/// `source` must be readable and `target` writable for `length_bytes`, and the two must not overlap. Either
/// may be written by another process meanwhile; then the bytes that land are any mix of old and new.
#[inline(always)]
pub unsafe fn copy(source: *const u8, target: *mut u8, length_bytes: usize) {
    // SAFETY: the caller vouches for both ranges; every arm below stays inside `length_bytes`, by overlapping
    // the last move with the one before it. Unaligned reads and writes are used throughout.
    unsafe {
        match length_bytes {
            0 => {}
            1..=3 => {
                let first = *source;
                let middle = *source.add(length_bytes / 2);
                let last = *source.add(length_bytes - 1);
                *target = first;
                *target.add(length_bytes / 2) = middle;
                *target.add(length_bytes - 1) = last;
            }
            4..=7 => copy_ends::<u32>(source, target, length_bytes),
            8..=16 => copy_ends::<u64>(source, target, length_bytes),
            17..=32 => copy_ends::<u128>(source, target, length_bytes),
            _ => core::ptr::copy_nonoverlapping(source, target, length_bytes),
        }
    }
}

/// Moves the first and the last `T` of a range; together they cover it when it is one to two `T` long.
///
/// # Safety
/// As [`copy`], and `size_of::<T>() <= length_bytes <= 2 * size_of::<T>()`.
#[inline(always)]
unsafe fn copy_ends<T: Copy>(source: *const u8, target: *mut u8, length_bytes: usize) {
    let last = length_bytes - size_of::<T>();
    // SAFETY: both moves lie inside the range by the caller's promise on `length_bytes`.
    unsafe {
        let head = source.cast::<T>().read_unaligned();
        let tail = source.add(last).cast::<T>().read_unaligned();
        target.cast::<T>().write_unaligned(head);
        target.add(last).cast::<T>().write_unaligned(tail);
    }
}

#[cfg(test)]
mod tests {
    use super::copy;

    #[test]
    fn every_length_copies_exactly_its_bytes() {
        let source: Vec<u8> = (0..300u32).map(|i| (i * 7 + 1) as u8).collect();
        for length in 0..=256 {
            for offset in [0, 1, 3, 8] {
                let mut target = vec![0xEE_u8; 300];
                // SAFETY: both vectors hold 300 bytes and offset + length is below that.
                unsafe {
                    copy(
                        source.as_ptr().add(offset),
                        target.as_mut_ptr().add(offset),
                        length,
                    )
                };
                assert_eq!(
                    target[offset..offset + length],
                    source[offset..offset + length]
                );
                assert!(
                    target[..offset].iter().all(|&b| b == 0xEE),
                    "below the range"
                );
                assert!(
                    target[offset + length..].iter().all(|&b| b == 0xEE),
                    "above the range"
                );
            }
        }
    }
}
