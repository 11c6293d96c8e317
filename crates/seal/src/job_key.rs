// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key that all processes of a job share, and the keys derived from it (srd-protocol 14.5; RFC
//! 5869).
//!
//! Called by trust and by the launcher; calls ring for HKDF-SHA256 and the system's random source.

use std::fmt;

use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of a key (specified, srd-protocol 14.5).
pub const KEY_BYTES: usize = 32;

/// 256 secret bits. `Debug` does not show them; they are erased on drop.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct JobKey {
    bytes: [u8; KEY_BYTES],
}

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobKey(secret)")
    }
}

/// The system gave no random bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRandom;

impl fmt::Display for NoRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the system gave no random bytes (getrandom(2) failed), so no key can be made")
    }
}

impl std::error::Error for NoRandom {}

/// A text is not a key. Tells what is wrong with it, and nothing of what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadKey {
    /// It has this many characters.
    Length(usize),
    /// The character at this place, counted from 1, is no hexadecimal digit.
    Digit(usize),
    /// All digits are the same: somebody has written a placeholder.
    Constant,
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "it has {length} characters")?,
            Self::Digit(place) => write!(f, "its character {place} is not a hexadecimal digit")?,
            Self::Constant => f.write_str("all its digits are the same")?,
        }
        f.write_str(
            "; a job key has 64 random hexadecimal digits, such as `openssl rand -hex 32` prints",
        )
    }
}

impl std::error::Error for BadKey {}

impl JobKey {
    /// A fresh key from the system's random source. Setup.
    ///
    /// # Errors
    /// When there is no such source.
    pub fn generate() -> Result<Self, NoRandom> {
        let mut key = Self {
            bytes: [0; KEY_BYTES],
        };
        let source = SystemRandom::new();
        source.fill(&mut key.bytes).map_err(|_| NoRandom)?;
        Ok(key)
    }

    /// Reads 64 hexadecimal digits; blanks and line ends around them are left out. Setup.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let text = text.trim();
        let length = text.chars().count();
        if length != 2 * KEY_BYTES {
            return Err(BadKey::Length(length));
        }
        let mut key = Self {
            bytes: [0; KEY_BYTES],
        };
        for (index, digit) in text.chars().enumerate() {
            let value = digit.to_digit(16).ok_or(BadKey::Digit(index + 1))?;
            key.bytes[index / 2] = key.bytes[index / 2] << 4 | value as u8;
        }
        let first = text.as_bytes()[0];
        if text.bytes().all(|digit| digit == first) {
            return Err(BadKey::Constant);
        }
        Ok(key)
    }

    /// The key as text, erased on drop: for the environment of the job's processes and nothing
    /// else.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(2 * KEY_BYTES));
        for byte in &self.bytes {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        text
    }

    /// What all other keys are derived from (RFC 5869, extract). Setup.
    pub(crate) fn root(&self) -> Prk {
        Salt::new(HKDF_SHA256, b"weft job key 1").extract(&self.bytes)
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// One derived key (RFC 5869, expand). 0.2 us.
pub(crate) fn derive<const N: usize>(root: &Prk, info: &[&[u8]]) -> Zeroizing<[u8; N]> {
    let mut key = Zeroizing::new([0; N]);
    let made = root
        .expand(info, Length(N))
        .and_then(|output| output.fill(&mut key[..]));
    // HKDF refuses outputs above 8160 bytes alone.
    assert!(made.is_ok(), "a derived key has at most 32 bytes");
    key
}

/// A random number that is not 0: an incarnation (srd-protocol 1).
pub(crate) fn random_incarnation() -> Result<u64, NoRandom> {
    let source = SystemRandom::new();
    loop {
        let mut bytes = [0; 8];
        source.fill(&mut bytes).map_err(|_| NoRandom)?;
        let number = u64::from_le_bytes(bytes);
        if number != 0 {
            return Ok(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_from_its_text_and_two_keys_differ() {
        let key = JobKey::generate().unwrap();
        let text = key.to_text();
        assert_eq!(text.len(), 64);
        let again = JobKey::parse(&format!(" {}\n", text.to_uppercase())).unwrap();
        assert_eq!(again.bytes, key.bytes);
        assert_ne!(JobKey::generate().unwrap().bytes, key.bytes);
    }

    #[test]
    fn a_text_that_is_no_key_is_refused_without_being_repeated() {
        let good = JobKey::generate().unwrap().to_text();
        let cases = [
            (String::new(), BadKey::Length(0)),
            (good[1..].to_owned(), BadKey::Length(63)),
            (format!("{}0", *good), BadKey::Length(65)),
            (format!("0x{}", &good[2..]), BadKey::Digit(2)),
            (good.replace(|_| true, "é"), BadKey::Digit(1)),
            ("0".repeat(64), BadKey::Constant),
        ];
        for (text, expected) in cases {
            let error = JobKey::parse(&text).unwrap_err();
            assert_eq!(error, expected);
            let message = error.to_string();
            assert!(
                message.contains("64 random hexadecimal digits"),
                "{message}"
            );
            assert!(text.len() < 60 || !message.contains(&text[..]), "{message}");
        }
    }

    #[test]
    fn debug_does_not_show_the_key() {
        let key = JobKey::generate().unwrap();
        let text = key.to_text();
        let shown = format!("{key:?}");
        assert_eq!(shown, "JobKey(secret)");
        assert!(!shown.contains(&text[..8]));
    }
}
