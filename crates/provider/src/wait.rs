// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What blocking calls wait with: deadlines, a descriptor that other threads can make readable, a
//! polite pause.
//!
//! Used by cq_wait, counter and eq. Source: fi_cq(3) for the meaning of timeouts, eventfd(2).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Longest sleep in one piece, milliseconds. Chosen: the death of a remote must be seen within a
/// second.
pub const LONGEST_SLEEP_MS: i32 = 200;

/// When a blocking call gives up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// From a timeout in milliseconds; a negative one means never.
    pub fn after_ms(timeout_ms: i32) -> Self {
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        Self(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    /// Whether it has come.
    pub fn is_over(&self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }

    /// Milliseconds until then, rounded up, at most `longest_ms`; -1 for never if `longest_ms` is
    /// negative.
    pub fn left_ms(&self, longest_ms: i32) -> i32 {
        let Some(end) = self.0 else { return longest_ms };
        let left = end
            .saturating_duration_since(Instant::now())
            .as_micros()
            .div_ceil(1000);
        let left = i32::try_from(left).unwrap_or(i32::MAX);
        if longest_ms < 0 {
            left
        } else {
            left.min(longest_ms)
        }
    }
}

/// How often a waiting call looks before it starts to give the processor away. Chosen: a few
/// microseconds of looking.
const LOOKS_BEFORE_YIELD_COUNT: u32 = 200;

/// Paces a call that must poll because there is nothing to sleep on.
#[derive(Debug, Default)]
pub struct Pace {
    looks: u32,
}

impl Pace {
    /// Whether enough was looked, so that a sleep is better.
    pub fn is_exhausted(&self) -> bool {
        self.looks >= LOOKS_BEFORE_YIELD_COUNT
    }

    /// Lets a little time pass.
    pub fn pause(&mut self) {
        if self.looks < LOOKS_BEFORE_YIELD_COUNT {
            self.looks += 1;
            std::hint::spin_loop();
        } else {
            weft_os::sleep::yield_now();
        }
    }
}

/// A descriptor that is readable from `raise` until `lower`.
#[derive(Debug)]
pub struct Bell {
    descriptor: OwnedFd,
}

impl Bell {
    /// A bell that does not ring. `None` if the system refuses a descriptor.
    pub fn new() -> Option<Self> {
        // SAFETY: no preconditions.
        let raw = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if raw < 0 {
            return None;
        }
        // SAFETY: the call just returned this descriptor and nobody else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        Some(Self { descriptor })
    }

    /// Makes it readable.
    pub fn raise(&self) {
        let one = 1u64;
        // SAFETY: eight bytes of ours. A full counter rings already, so the result does not matter.
        unsafe {
            libc::write(
                self.descriptor.as_raw_fd(),
                (&raw const one).cast(),
                size_of::<u64>(),
            )
        };
    }

    /// Makes it unreadable; answers whether it was readable.
    pub fn lower(&self) -> bool {
        let mut value = 0u64;
        // SAFETY: eight bytes of ours to write.
        let read = unsafe {
            libc::read(
                self.descriptor.as_raw_fd(),
                (&raw mut value).cast(),
                size_of::<u64>(),
            )
        };
        read == size_of::<u64>() as isize
    }

    /// The descriptor's number.
    pub fn number(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    /// The descriptor, to be added to a set.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_is_readable_only_while_raised() {
        let bell = Bell::new().expect("a descriptor");
        assert!(!weft_os::sleep::wait_readable(bell.number(), 0));
        bell.raise();
        bell.raise();
        assert!(weft_os::sleep::wait_readable(bell.number(), 0));
        assert!(bell.lower());
        assert!(!bell.lower());
        assert!(!weft_os::sleep::wait_readable(bell.number(), 0));
    }

    #[test]
    fn a_negative_timeout_never_ends_and_zero_ends_at_once() {
        assert!(!Deadline::after_ms(-1).is_over());
        assert_eq!(
            (
                Deadline::after_ms(-1).left_ms(-1),
                Deadline::after_ms(-1).left_ms(7)
            ),
            (-1, 7)
        );
        assert!(Deadline::after_ms(0).is_over());
        assert_eq!(Deadline::after_ms(0).left_ms(-1), 0);
        assert!(Deadline::after_ms(60_000).left_ms(-1) > 30_000);
    }
}
