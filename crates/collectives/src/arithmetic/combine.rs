// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The loops that combine two buffers, element by element. Named in table.rs, run by arithmetic.rs.

/// An operation on elements of type `T`. Both must be sound for any bytes.
pub trait Combine<T> {
    /// What becomes of two elements; the first one is of the lower rank.
    fn combine(first: T, second: T) -> T;
}

/// `first` becomes `first` combined with `second`, for so many bytes.
pub(crate) type Into = unsafe fn(first: *mut u8, second: *const u8, length_bytes: usize);
/// `target` becomes `first` combined with `second`, for so many bytes.
pub(crate) type Apart =
    unsafe fn(target: *mut u8, first: *const u8, second: *const u8, length_bytes: usize);

/// The two loops of an operation on elements of one type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loops {
    pub(crate) into: Into,
    pub(crate) apart: Apart,
}

/// The loops for this processor.
pub(super) fn of<T: Copy, O: Combine<T>>() -> Loops {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("avx2") {
        return Loops {
            into: with_avx2::into::<T, O>,
            apart: with_avx2::apart::<T, O>,
        };
    }
    Loops {
        into: into::<T, O>,
        apart: apart::<T, O>,
    }
}

/// # Safety
/// `first` must be writable and `second` readable for `length_bytes`, a multiple of `T`'s size; `T`
/// must be sound for any bytes.
#[inline(always)]
unsafe fn into<T: Copy, O: Combine<T>>(first: *mut u8, second: *const u8, length_bytes: usize) {
    let (first, second) = (first.cast::<T>(), second.cast::<T>());
    for index in 0..length_bytes / size_of::<T>() {
        // SAFETY: the caller vouches for both; the index is below their length. Buffers of users
        // need not be aligned.
        unsafe {
            let (a, b) = (
                first.add(index).read_unaligned(),
                second.add(index).read_unaligned(),
            );
            first.add(index).write_unaligned(O::combine(a, b));
        }
    }
}

/// # Safety
/// As [`into`], with `target` to write and the others to read.
#[inline(always)]
unsafe fn apart<T: Copy, O: Combine<T>>(
    target: *mut u8,
    first: *const u8,
    second: *const u8,
    length_bytes: usize,
) {
    let (target, first, second) = (target.cast::<T>(), first.cast::<T>(), second.cast::<T>());
    for index in 0..length_bytes / size_of::<T>() {
        // SAFETY: as above.
        unsafe {
            let (a, b) = (
                first.add(index).read_unaligned(),
                second.add(index).read_unaligned(),
            );
            target.add(index).write_unaligned(O::combine(a, b));
        }
    }
}

/// The same loops, compiled for processors with AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod with_avx2 {
    use super::Combine;

    /// # Safety
    /// As [`super::into`], and the processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn into<T: Copy, O: Combine<T>>(
        first: *mut u8,
        second: *const u8,
        length_bytes: usize,
    ) {
        // SAFETY: the caller's promise is the same.
        unsafe { super::into::<T, O>(first, second, length_bytes) }
    }

    /// # Safety
    /// As [`super::apart`], and the processor must have AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn apart<T: Copy, O: Combine<T>>(
        target: *mut u8,
        first: *const u8,
        second: *const u8,
        length_bytes: usize,
    ) {
        // SAFETY: the caller's promise is the same.
        unsafe { super::apart::<T, O>(target, first, second, length_bytes) }
    }
}
