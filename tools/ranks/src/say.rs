// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prints lines of a rank on stderr, each in one write(2). `eprintln!` writes a line in several
//! pieces, and the launcher joins the ranks' output as it comes, so lines of two ranks would be
//! mixed.
//!
//! Called by programs that run as one of several ranks. Programs of one process use `eprintln!`.

use std::fmt::Arguments;
use std::io::{self, Write};

/// `eprintln!`, but whole.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => {
        $crate::say::line(&mut std::io::stderr(), format_args!($($words)*))
    };
}

/// Writes one line at once. An output that cannot be written to is no reason to fail.
pub fn line(out: &mut impl Write, words: Arguments<'_>) {
    let whole = format!("{words}\n");
    let _: io::Result<()> = out.write_all(whole.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each call wrote.
    struct Calls(Vec<String>);

    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_written_whole() {
        let mut calls = Calls(Vec::new());
        line(&mut calls, format_args!("[{}] {} words", 1, 20));
        assert_eq!(calls.0, ["[1] 20 words\n"]);
    }
}
