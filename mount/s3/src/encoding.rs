// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys in addresses and in listings: percent-encoding (RFC 3986) of UTF-8. [`crate::bucket`] and
//! [`crate::uploads`] call it.

/// What the header x-amz-copy-source names: `BUCKET/KEY`, all but the unreserved characters and
/// `/` encoded.
pub fn copy_source(bucket: &str, key: &str) -> String {
    let mut source = format!("{bucket}/");
    for byte in key.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                source.push(char::from(byte));
            }
            _ => source.push_str(&format!("%{byte:02X}")),
        }
    }
    source
}

/// A key of a listing of encoding type `url`, in which `+` is a blank. What is wrongly encoded
/// stays as it is.
pub fn decode(text: &str) -> String {
    if !text.contains(['%', '+']) {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        match (first, behind) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => {
                if let (Some(high), Some(low)) = (digit(*high), digit(*low)) {
                    bytes.push(high << 4 | low);
                    rest = after;
                } else {
                    bytes.push(b'%');
                }
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_of_any_letters_becomes_a_header() {
        assert_eq!(copy_source("b", "a b/ü+%"), "b/a%20b/%C3%BC%2B%25");
    }

    #[test]
    fn listed_key_is_decoded_and_what_is_not_encoded_stays() {
        assert_eq!(decode("a%20b+c/%C3%BC"), "a b c/ü");
        assert_eq!(decode("plain"), "plain");
        assert_eq!(decode("100%"), "100%");
        assert_eq!(decode("%zz"), "%zz");
    }
}
