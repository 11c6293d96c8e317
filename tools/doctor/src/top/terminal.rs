// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The terminal while `weft top` has it: keys one by one, a screen of its own, and all as before at
//! the end.
//!
//! Called by `top.rs`. Plain escape sequences (ECMA-48, xterm's alternate screen) and termios(3):
//! one full screen of lines that is written anew needs no library for windows.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{self, LocalFlags, SetArg, Termios};
use terminal_size::{Height, Width, terminal_size};

use super::screen::Room;

/// What was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// q, or Ctrl-C.
    Quit,
    /// s.
    Sort,
    /// p or space.
    Pause,
    /// Anything else, or another size of the window.
    Other,
}

/// The screen; leaving gives the terminal back.
#[derive(Debug)]
pub struct Terminal {
    before: Termios,
}

/// How large the terminal is now; 80 by 24 where it does not say.
#[must_use]
pub fn room() -> Room {
    let (Width(width), Height(height)) = terminal_size().unwrap_or((Width(80), Height(24)));
    Room {
        columns: usize::from(width),
        rows: usize::from(height),
    }
}

impl Terminal {
    /// Takes the terminal of standard input and output.
    ///
    /// # Errors
    /// When it is none.
    pub fn open() -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        // Ctrl-C comes as a key, so that the terminal is given back in order.
        raw.local_flags
            .remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG);
        termios::tcsetattr(io::stdin(), SetArg::TCSANOW, &raw)?;
        // The alternate screen, no cursor.
        print!("\x1b[?1049h\x1b[?25l");
        io::stdout().flush()?;
        Ok(Self { before })
    }

    /// Writes the text over the screen, cut to its size.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn show(&mut self, text: &str) -> io::Result<()> {
        let Room { columns, rows } = room();
        let mut screen = String::from("\x1b[H");
        for line in text.lines().take(rows) {
            screen.push_str(&cut(line, columns));
            screen.push_str("\x1b[K\r\n");
        }
        // The last line break would scroll a full screen.
        if text.lines().count() >= rows {
            screen.truncate(screen.len() - 2);
        }
        screen.push_str("\x1b[J");
        let mut out = io::stdout().lock();
        out.write_all(screen.as_bytes())?;
        out.flush()
    }

    /// Waits for a key until `end`; none if there was none.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn wait_key(&mut self, end: Instant) -> io::Result<Option<Key>> {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let stdin = io::stdin();
        let mut entries = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut entries, timeout) {
            // A signal, such as that of a new size.
            Err(nix::errno::Errno::EINTR) => return Ok(Some(Key::Other)),
            Err(error) => return Err(error.into()),
            Ok(0) => return Ok(None),
            Ok(_) => {}
        }
        let mut bytes = [0; 16];
        let count = stdin.lock().read(&mut bytes)?;
        Ok(Some(match bytes[..count].first() {
            None | Some(b'q' | b'Q' | 3 | 4) => Key::Quit,
            Some(b's' | b'S') => Key::Sort,
            Some(b'p' | b'P' | b' ') => Key::Pause,
            Some(_) => Key::Other,
        }))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        print!("\x1b[?25h\x1b[?1049l");
        let _ = io::stdout().flush();
        let _ = termios::tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
    }
}

/// The first `width` columns of a line; escape sequences take none, and one that was begun is
/// ended.
fn cut(line: &str, width: usize) -> String {
    let (mut kept, mut columns, mut in_escape, mut painted) = (String::new(), 0, false, false);
    for letter in line.chars() {
        if in_escape || letter == '\x1b' {
            in_escape = !(in_escape && letter.is_ascii_alphabetic());
            painted = true;
            kept.push(letter);
        } else if columns < width {
            columns += 1;
            kept.push(letter);
        }
    }
    if painted {
        kept.push_str("\x1b[0m");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_by_what_is_seen_of_them() {
        assert_eq!(cut("abcdef", 3), "abc");
        assert_eq!(cut("\x1b[1mabcdef\x1b[0m", 3), "\x1b[1mabc\x1b[0m\x1b[0m");
        assert_eq!(cut("ab", 3), "ab");
    }
}
