// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times: points in time and spans between them, so that neither is taken for the other, nor for a
//! number of bytes. Both are nanoseconds in a word, and cost what a word costs.
//!
//! Used by srd and its drivers; a header carries the time at which it left.

use std::ops::{Add, AddAssign, Div, Mul, Shl, Sub};

/// A point in time: nanoseconds of a clock that never goes back, and that is its owner's alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(pub u64);

/// A span of time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

impl Instant {
    /// Before everything.
    pub const START: Self = Self(0);
    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// So much later; [`Self::NEVER`] if that is beyond all times.
    #[inline]
    #[must_use]
    pub fn saturating_add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// So much earlier; [`Self::START`] if that is before all times.
    #[inline]
    #[must_use]
    pub fn saturating_sub(self, span: Nanos) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// How long ago `earlier` was; nothing if it is later.
    #[inline]
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// How long ago `earlier` was; `None` if it is later.
    #[inline]
    #[must_use]
    pub fn checked_since(self, earlier: Self) -> Option<Nanos> {
        self.0.checked_sub(earlier.0).map(Nanos)
    }
}

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than anything takes.
    pub const MAX: Self = Self(u64::MAX);

    /// The sum, or the longest span.
    #[inline]
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or nothing.
    #[inline]
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// So many times as long, or the longest span.
    #[inline]
    #[must_use]
    pub fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }

    /// How far two spans are apart.
    #[inline]
    #[must_use]
    pub fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Nanos> for Instant {
    type Output = Self;

    #[inline]
    fn add(self, span: Nanos) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Nanos> for Instant {
    #[inline]
    fn add_assign(&mut self, span: Nanos) {
        self.0 += span.0;
    }
}

impl Sub<Nanos> for Instant {
    type Output = Self;

    #[inline]
    fn sub(self, span: Nanos) -> Self {
        Self(self.0 - span.0)
    }
}

/// How long ago the other one was, which is not later.
impl Sub for Instant {
    type Output = Nanos;

    #[inline]
    fn sub(self, earlier: Self) -> Nanos {
        Nanos(self.0 - earlier.0)
    }
}

impl Add for Nanos {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;

    #[inline]
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl Mul<Nanos> for u64 {
    type Output = Nanos;

    #[inline]
    fn mul(self, span: Nanos) -> Nanos {
        Nanos(self * span.0)
    }
}

impl Div<u64> for Nanos {
    type Output = Self;

    #[inline]
    fn div(self, parts: u64) -> Self {
        Self(self.0 / parts)
    }
}

impl Shl<u32> for Nanos {
    type Output = Self;

    #[inline]
    fn shl(self, doublings: u32) -> Self {
        Self(self.0 << doublings)
    }
}

/// How many times the other span goes into this one.
impl Div for Nanos {
    type Output = u64;

    #[inline]
    fn div(self, other: Self) -> u64 {
        self.0 / other.0
    }
}
