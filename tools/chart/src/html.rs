// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Escapes text that comes from outside. All such text passes through here before it enters a page.
//!
//! Called by everything that writes HTML or SVG.

/// Text for between tags and for quoted attributes. Characters that no XML document may hold become
/// U+FFFD.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(character),
            control if control.is_control() => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

/// A name for an `id`: letters and digits in lower case, everything else as one `-`.
pub fn identifier(text: &str) -> String {
    let mut name = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_lowercase());
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_matches('-');
    if name.is_empty() {
        "item".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_can_open_a_tag_or_leave_an_attribute() {
        assert_eq!(
            escaped("<b a=\"'&\u{0}"),
            "&lt;b a=&quot;&#39;&amp;\u{fffd}"
        );
        assert_eq!(identifier("MPI <x> over ofi:shm!"), "mpi-x-over-ofi-shm");
        assert_eq!(identifier("<>"), "item");
    }

    proptest! {
        #[test]
        fn whatever_comes_in_no_mark_up_comes_out(text in any::<String>()) {
            let safe = escaped(&text);
            prop_assert!(!safe.contains(['<', '>', '"', '\'', '\0']));
            let may_stand = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            prop_assert!(identifier(&text).bytes().all(may_stand));
        }
    }
}
