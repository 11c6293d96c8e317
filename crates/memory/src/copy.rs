// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copy routines by size. Called by the views and user buffers of this crate only.

/// Copies `length_bytes` bytes, tuned for the few-word messages that fill one cell: two overlapping
/// moves instead of a call. Fast path.
///
/// # Safety
/// `source` must be readable and `target` writable for `length_bytes`, and the two must not
/// overlap. Either may be written by another process meanwhile; then the bytes that land are any
/// mix of old and new.
#[inline(always)]
pub unsafe fn copy(source: *const u8, target: *mut u8, length_bytes: usize) {
    // SAFETY: the caller vouches for both ranges; every arm below stays inside `length_bytes`, by
    // overlapping the last move with the one before it. Unaligned reads and writes are used
    // throughout.
    unsafe {
        // Not by one `match`, which asks for the shortest first: eight bytes met four comparisons.
        if length_bytes < 8 {
            if length_bytes >= 4 {
                copy_ends::<u32>(source, target, length_bytes);
            } else if length_bytes > 0 {
                let first = *source;
                let middle = *source.add(length_bytes / 2);
                let last = *source.add(length_bytes - 1);
                *target = first;
                *target.add(length_bytes / 2) = middle;
                *target.add(length_bytes - 1) = last;
            }
            return;
        }
        match length_bytes {
            ..=16 => copy_ends::<u64>(source, target, length_bytes),
            17..=32 => copy_ends::<u128>(source, target, length_bytes),
            33..=64 => copy_ends::<[u128; 2]>(source, target, length_bytes),
            65..LONG_BYTES => core::ptr::copy_nonoverlapping(source, target, length_bytes),
            _ => copy_long(source, target, length_bytes),
        }
    }
}

/// From here on the loop of this file copies instead of the library's `memcpy`. Chosen below the 4
/// KiB from which that one was measured to fall (see [`copy_long`]); at 2 KiB both take the same
/// time where neither falls.
const LONG_BYTES: usize = 2048;

/// [`copy`] of [`LONG_BYTES`] and more.
///
/// The C library copies by `rep movsb` from some KiB on. On AMD's Zen 4 that is 15 times slower
/// (370 us for a MiB instead of 25) when the target lies 1 to 15 bytes behind the source within
/// their pages, and half as fast again at 16, which is where a large block of malloc begins while
/// our chunks begin with a page. Loads and stores by vectors do not care
/// (docs/lab/2026-11-22-where-buffers-begin.md).
///
/// # Safety
/// As [`copy`].
#[inline(never)]
unsafe fn copy_long(source: *const u8, target: *mut u8, length_bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was just found; the caller's promise is the same.
        return unsafe { copy_lines(source, target, length_bytes) };
    }
    // SAFETY: the caller's promise is the same.
    unsafe { core::ptr::copy_nonoverlapping(source, target, length_bytes) }
}

/// Two lines at a time to aligned places, after one line to wherever the target begins, and the
/// rest by the library.
///
/// # Safety
/// As [`copy`], and `length_bytes` is a line or more.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
unsafe fn copy_lines(source: *const u8, target: *mut u8, length_bytes: usize) {
    use core::arch::x86_64::{
        __m256i, _mm256_loadu_si256, _mm256_store_si256, _mm256_storeu_si256,
    };
    // SAFETY: the first line lies inside the ranges; so does each pair of lines below
    // `length_bytes`, and what is left is less than a pair. Loads may be unaligned; stores in the
    // loop are aligned, since `offset` begins at the distance to the next line.
    unsafe {
        let (low, high) = (source.cast::<__m256i>(), source.cast::<__m256i>().add(1));
        let (low, high) = (_mm256_loadu_si256(low), _mm256_loadu_si256(high));
        _mm256_storeu_si256(target.cast(), low);
        _mm256_storeu_si256(target.cast::<__m256i>().add(1), high);
        let mut offset = LINE_BYTES - target as usize % LINE_BYTES;
        while offset + 2 * LINE_BYTES <= length_bytes {
            let from = source.add(offset).cast::<__m256i>();
            let to = target.add(offset).cast::<__m256i>();
            let first = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
            let second = (
                _mm256_loadu_si256(from.add(2)),
                _mm256_loadu_si256(from.add(3)),
            );
            _mm256_store_si256(to, first.0);
            _mm256_store_si256(to.add(1), first.1);
            _mm256_store_si256(to.add(2), second.0);
            _mm256_store_si256(to.add(3), second.1);
            offset += 2 * LINE_BYTES;
        }
        core::ptr::copy_nonoverlapping(
            source.add(offset),
            target.add(offset),
            length_bytes - offset,
        );
    }
}

/// From here on [`copy_for_others`] copies by `rep movsb`. Measured
/// (docs/lab/2026-11-24-collectives-under-four-mpis.md).
const SHARED_BYTES: usize = 2048;

/// Copies like [`copy`], into memory that another processor has read before and will read again:
/// long data by `rep movsb`, which writes whole lines without fetching them from the other
/// processor's cache first. Where [`copy_long`] says that it would be slow, this is [`copy`].
///
/// # Safety
/// As [`copy`].
#[inline]
pub unsafe fn copy_for_others(source: *const u8, target: *mut u8, length_bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let behind_bytes = (target as usize).wrapping_sub(source as usize) % 4096;
        let is_slow = (1..LINE_BYTES).contains(&behind_bytes);
        if length_bytes >= SHARED_BYTES && !is_slow && std::arch::is_x86_feature_detected!("ermsb")
        {
            // SAFETY: the caller's promise is the same; the direction flag is clear on entry to any
            // asm block.
            unsafe {
                core::arch::asm!(
                    "rep movsb",
                    inout("rcx") length_bytes => _,
                    inout("rdi") target => _,
                    inout("rsi") source => _,
                    options(nostack, preserves_flags)
                );
            }
            return;
        }
    }
    // SAFETY: the caller's promise is the same.
    unsafe { copy(source, target, length_bytes) }
}

/// Moves the first and the last `T` of a range; together they cover it when it is one to two `T`
/// long.
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

/// Copies like [`copy`] with non-temporal stores, which leave this processor's cache as it is: for
/// payload that another processor reads next: its loads then need not fetch each line out of our
/// cache. Worth it from a few KiB on; docs/lab/2026-11-22-mapped-copy.md has the figures. All
/// stores are done when it returns, in the sense that a later release store publishes them.
/// `target` should be aligned to 64 bytes; if it is not, this is [`copy`].
///
/// # Safety
/// As [`copy`].
#[inline]
pub unsafe fn copy_non_temporal(source: *const u8, target: *mut u8, length_bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if (target as usize).is_multiple_of(LINE_BYTES) && std::arch::is_x86_feature_detected!("avx2") {
        let lines_bytes = length_bytes / LINE_BYTES * LINE_BYTES;
        // SAFETY: AVX2 was just found, the target is aligned, and both parts stay inside the
        // caller's ranges.
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
    // SAFETY: each line lies inside the ranges; loads may be unaligned, stores are aligned by the
    // contract. The fence is safe, which the oldest Rust that we build with does not know yet.
    unsafe {
        while offset < length_bytes {
            let from = source.add(offset).cast::<__m256i>();
            let to = target.add(offset).cast::<__m256i>();
            let (low, high) = (_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)));
            _mm256_stream_si256(to, low);
            _mm256_stream_si256(to.add(1), high);
            offset += LINE_BYTES;
        }
        _mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::{copy, copy_for_others, copy_non_temporal};

    #[test]
    fn non_temporal_stores_copy_exactly_their_bytes() {
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
            unsafe { copy_non_temporal(source.as_ptr().add(3), target.as_mut_ptr(), length) };
            assert_eq!(target[..length], source[3..3 + length]);
            assert!(
                target[length..].iter().all(|&b| b == 0xEE),
                "above {length} bytes"
            );
        }
    }

    #[test]
    fn long_copies_move_exactly_their_bytes_wherever_they_begin() {
        let source: Vec<u8> = (0..9000u32).map(|i| (i * 7 + i / 256) as u8).collect();
        let mut room = vec![0xEE_u8; 9000];
        let lengths = [
            2047, 2048, 2049, 2111, 2112, 2175, 2176, 2177, 4096, 8191, 8192,
        ];
        // Miri, which takes its time, sees the library's copy at any of them.
        let lengths = &lengths[if cfg!(miri) { 1..2 } else { 0..lengths.len() }];
        for &length in lengths {
            for (from, to) in [(0, 0), (0, 1), (1, 0), (0, 16), (16, 0), (7, 63), (63, 64)] {
                for copies in [copy, copy_for_others] {
                    room.fill(0xEE);
                    // SAFETY: both hold 9000 bytes, offset and length together are fewer, and they
                    // do not overlap.
                    unsafe { copies(source.as_ptr().add(from), room.as_mut_ptr().add(to), length) };
                    assert_eq!(room[to..to + length], source[from..from + length]);
                    let beside = room[..to].iter().chain(&room[to + length..]);
                    assert!(
                        beside.copied().all(|b| b == 0xEE),
                        "beside {length} at {to}"
                    );
                }
            }
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
