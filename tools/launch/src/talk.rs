// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `weft run` says on stderr: `eprintln!`, but one write(2) for a line, and no panic where nobody reads any more, as
//! behind `2>&1 | head -1` or on a terminal that was closed.
//!
//! Called by every module that talks to the user.

use std::fmt::Arguments;
use std::io::{self, Write};

/// `eprintln!`, but whole and never a reason to fail.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::talk::line(&mut std::io::stderr(), format_args!($($words)*))
    };
}
pub(crate) use say;

/// Writes one line at once.
pub(crate) fn line(out: &mut impl Write, words: Arguments<'_>) {
    let whole = format!("{words}\n");
    let _: io::Result<()> = out.write_all(whole.as_bytes());
}
