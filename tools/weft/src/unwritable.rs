// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How `weft` ends where what it prints cannot be written: a full disk behind `>`, say. `print!`
//! and `eprint!` panic then, with the words of the library's `print_to` (std, io/stdio.rs); a user
//! reads the reason instead, and the exit code is that of failure.
//!
//! Called by `main.rs` before anything is printed. Where a job is at stake, its code writes with
//! `write!` and answers the error itself, so it does not come here.

use std::any::Any;
use std::io::{self, Write};

/// From here on a failed `print!` ends this process with 1 and a line on stderr. Other panics are
/// as before.
pub(crate) fn arrange() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let Some(words) = unwritten(panic.payload()) else {
            return before(panic);
        };
        // Stderr may be what takes nothing.
        let _ = writeln!(io::stderr(), "weft: {words}; make room where it goes");
        std::process::exit(1);
    }));
}

/// What a panic says if it comes from a `print!` or an `eprint!` that failed.
fn unwritten(payload: &(dyn Any + Send)) -> Option<String> {
    let words = payload.downcast_ref::<String>()?;
    let stream_and_reason = words.strip_prefix("failed printing to ")?;
    let (stream, reason) = stream_and_reason.split_once(": ")?;
    Some(format!("writing to {stream}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_panics_of_print_are_answered() {
        let says = |words: &str| unwritten(&words.to_owned());
        let full = "failed printing to stdout: No space left on device (os error 28)";
        let answer = "writing to stdout: No space left on device (os error 28)";
        assert_eq!(says(full).as_deref(), Some(answer));
        assert_eq!(says("index out of bounds: the len is 0"), None);
        assert_eq!(unwritten(&"failed printing to stdout: x"), None);
        assert_eq!(unwritten(&1), None);
    }
}
