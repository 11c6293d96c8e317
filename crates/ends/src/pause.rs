// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pauses of a launcher's thread, of which it has few: whatever happens to `weft run`, its words
//! must not hold up the job. Called by `calls` and `word`. A signal handler may call it.

use std::cell::Cell;

/// How long a thread pauses in its whole life. Chosen: `weft run` reads at once, unless it was
/// stopped, or the machine is very busy.
const ALL_US: u32 = 1_000_000;

thread_local! {
    // Neither allocates nor registers a destructor.
    static LEFT_US: Cell<u32> = const { Cell::new(ALL_US) };
}

/// Pauses so many microseconds, or until a signal comes; answers whether there was time left for
/// it. Changes errno.
pub fn pause(us: u32) -> bool {
    // While a thread ends its memory may be gone.
    let is_left = LEFT_US.try_with(|kept| {
        let left = kept.get().checked_sub(us);
        kept.set(left.unwrap_or(0));
        left.is_some()
    });
    let is_left = is_left.unwrap_or(false);
    if is_left {
        // SAFETY: a plain number.
        unsafe { libc::usleep(us) };
    }
    is_left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_pauses_for_one_second_in_all() {
        let pauses = |us| std::iter::repeat_with(move || pause(us)).take_while(|is_left| *is_left);
        assert_eq!(pauses(100_000).count(), 10);
        assert!(!pause(1));
        assert!(
            std::thread::spawn(|| pause(1)).join().unwrap(),
            "another thread's"
        );
    }
}
