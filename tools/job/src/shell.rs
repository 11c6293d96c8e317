// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Quotes words for a POSIX shell (POSIX.1-2024, Shell Command Language, 2.2).
//!
//! Used by `sbatch` for its scripts, and by the other tools for commands that they show or start.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Quotes a word for a POSIX shell; words of harmless characters stay as they are.
#[must_use]
pub fn quote(word: &OsStr) -> OsString {
    let harmless = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-+=:,./@%".contains(byte);
    if !word.is_empty() && word.as_bytes().iter().all(harmless) {
        return word.to_owned();
    }
    let mut quoted = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            other => quoted.push(other),
        }
    }
    quoted.push(b'\'');
    OsString::from_vec(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_gives_back_every_word_as_it_was() {
        let words = [
            "plain",
            "",
            "two words",
            "it's",
            "$HOME `x` \\ \"q\" * ?",
            "new\nline",
            "--a=b",
            "~",
            "#",
        ];
        let line: Vec<OsString> = words.iter().map(|word| quote(OsStr::new(word))).collect();
        let mut script = OsString::from("printf '%s\\0' ");
        script.push(line.join(OsStr::new(" ")));
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        let mut expected = words.join("\0").into_bytes();
        expected.push(0);
        assert_eq!(output.stdout, expected);
        let odd = OsString::from_vec(vec![0xff, b' ']);
        assert_eq!(quote(&odd).as_bytes(), b"'\xff '");
    }
}
