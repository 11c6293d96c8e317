// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of /proc as text, whatever names they hold. The kernel writes names of processes, files
//! and sockets as bytes, and cuts the name of a process after 15 of them, which may be in the
//! middle of a letter (proc(5), proc_pid_comm(5)). So such a file need not be UTF-8. Read by what
//! asks about processes, their memory and their sockets: here, in `weft run` and in `weft top`.

use std::fs;
use std::io;
use std::path::Path;

/// The whole file; what is not UTF-8 becomes U+FFFD. Slow path: reads /proc.
///
/// # Errors
/// The errno of open(2) or read(2).
pub fn read(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = fs::read(path)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_utf_8_hides_nothing_else() {
        fs::write("/proc/thread-self/comm", b"thirteen lett\xc3").expect("a name");
        let text = read("/proc/thread-self/stat").expect("read");
        let (name, rest) = text.rsplit_once(") ").expect("a name");
        assert!(name.ends_with("(thirteen lett\u{fffd}"), "{text}");
        assert!(rest.starts_with("R "), "{text}");
    }
}
