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

/// Quotes a word for bash, as text also where the word is none: bash reads `$'caf\351'` as the
/// bytes that were meant. Source: bash(1), "QUOTING".
#[must_use]
pub fn quote_as_text(word: &OsStr) -> String {
    quote(word).into_string().unwrap_or_else(|_| {
        let escaped = word.as_bytes().iter().map(|&byte| match byte {
            b'\'' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            other => format!("\\{other:03o}"),
        });
        format!("$'{}'", escaped.collect::<String>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn bash_gives_back_the_bytes_of_every_word(
            words in proptest::collection::vec(proptest::collection::vec(1_u8.., 0..20), 1..20),
        ) {
            let text = words.iter().map(|word| quote_as_text(OsStr::from_bytes(word)));
            let script = format!("printf '%s\\0' {}", text.collect::<Vec<_>>().join(" "));
            let output = Command::new("bash").arg("-c").arg(script).output().unwrap();
            let given_back: Vec<&[u8]> = output.stdout.split(|&byte| byte == 0).collect();
            prop_assert_eq!(&given_back[..given_back.len() - 1], &words[..]);
        }
    }

    #[test]
    fn only_what_is_no_text_is_written_in_escapes() {
        assert_eq!(quote_as_text(OsStr::new("café it's")), r"'café it'\''s'");
        assert_eq!(
            quote_as_text(OsStr::from_bytes(b"a'\\\xe97")),
            r"$'a\'\\\3517'"
        );
    }

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
