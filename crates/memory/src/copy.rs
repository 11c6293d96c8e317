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

/// Copies like [`copy`] with stores that go past this processor's cache (non-temporal stores), for payload that
/// another processor reads next: its loads then need not fetch each line out of our cache. Worth it from a few
/// KiB on; docs/fast-path.md has the figures. All stores are done when it returns, in the sense that a later
/// release store publishes them. `target` should be aligned to 64 bytes; if it is not, this is [`copy`].
///
/// # Safety
/// As [`copy`].
#[inline]
pub unsafe fn copy_past_cache(source: *const u8, target: *mut u8, length_bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if target as usize % LINE_BYTES == 0 && std::arch::is_x86_feature_detected!("avx2") {
        let lines_bytes = length_bytes / LINE_BYTES * LINE_BYTES;
        // SAFETY: AVX2 was just found, the target is aligned, and both parts stay inside the caller's ranges.
        unsafe {
            stream_lines(source, target, lines_bytes);
            copy(
                source.add(lines_bytes),
                target.add(lines_bytes),
                length_bytes - lines_bytes,
            );
        }
        return;
    }
    // SAFETY: the caller's promise is the same.
    unsafe { copy(source, target, length_bytes) }
}

/// Bytes of a cache line. Specified by x86-64 processors.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

/// Whole lines by non-temporal stores, then the fence that orders them before a later store.
///
/// # Safety
/// As [`copy`]; `target` aligned to a line, `length_bytes` a multiple of one.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn stream_lines(source: *const u8, target: *mut u8, length_bytes: usize) {
    use core::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    let mut offset = 0;
    while offset < length_bytes {
        // SAFETY: each line lies inside the ranges; loads may be unaligned, stores are aligned by the contract.
        unsafe {
            let from = source.add(offset).cast::<__m256i>();
            let to = target.add(offset).cast::<__m256i>();
            let (low, high) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
            _mm256_stream_si256(to, low);
            _mm256_stream_si256(to.add(1), high);
        }
        offset += LINE_BYTES;
    }
    _mm_sfence();
}

#[cfg(test)]
mod tests {
    use super::{copy, copy_past_cache};

    #[test]
    fn copying_past_the_cache_copies_exactly_its_bytes() {
        let source: Vec<u8> = (0..9000u32).map(|i| (i * 7 + i / 256) as u8).collect();
        let mut room = vec![0xEE_u8; 9000 + 128];
        let aligned = room.as_ptr().align_offset(64);
        for (length, skew) in [
            (0, 0),
            (1, 0),
            (63, 0),
            (64, 0),
            (65, 0),
            (4096, 0),
            (8191, 0),
            (8192, 5),
        ] {
            let target = &mut room[aligned + skew..];
            target.fill(0xEE);
            // SAFETY: source and target hold more than `length` bytes and do not overlap.
            unsafe { copy_past_cache(source.as_ptr().add(3), target.as_mut_ptr(), length) };
            assert_eq!(target[..length], source[3..3 + length]);
            assert!(
                target[length..].iter().all(|&b| b == 0xEE),
                "above {length} bytes"
            );
        }
    }

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
