// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Paths and values of variables in JSON, byte for byte. Linux allows each byte but NUL in them;
//! JSON holds UTF-8 alone. What is UTF-8 becomes a string. Anything else becomes an object with the
//! bytes in hexadecimal digits: `caf\xe9` is `{"hex":"636166e9"}`.
//!
//! Used by `agent_protocol.rs` for its fields, and by the doctor for variables that it hands to
//! other hosts. Sources: path_resolution(7), environ(7); RFC 8259, section 8.1.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize, de};

/// As it stands in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes { hex: String },
}

impl Written {
    fn of(word: &OsStr) -> Self {
        if let Some(text) = word.to_str() {
            return Self::Text(text.to_owned());
        }
        let mut hex = String::new();
        for byte in word.as_bytes() {
            // A string takes whatever is written.
            let _ = write!(hex, "{byte:02x}");
        }
        Self::Bytes { hex }
    }

    fn read<E: de::Error>(self) -> Result<OsString, E> {
        let hex = match self {
            Self::Text(text) => return Ok(text.into()),
            Self::Bytes { hex } => hex,
        };
        let wrong = || E::custom(format!("`{hex}` is not bytes in hexadecimal digits"));
        let digit = |byte: u8| {
            char::from(byte)
                .to_digit(16)
                .and_then(|one| u8::try_from(one).ok())
        };
        let byte = |pair: &[u8]| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(byte).collect();
        bytes.map(OsString::from_vec).ok_or_else(wrong)
    }
}

/// For `#[serde(with = ...)]` on a list of paths.
pub(crate) mod paths {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Written;

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| Written::of(path.as_os_str())))
    }

    pub(crate) fn deserialize<'de, D>(from: D) -> Result<Vec<PathBuf>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let all = Vec::<Written>::deserialize(from)?.into_iter();
        all.map(|one| one.read().map(PathBuf::from)).collect()
    }
}

/// For `#[serde(with = ...)]` on variables with their values.
pub mod variables {
    use std::collections::BTreeMap;
    use std::ffi::OsString;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Written;

    /// Writes them.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn serialize<S: Serializer>(
        variables: &BTreeMap<String, OsString>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(
            variables
                .iter()
                .map(|(name, value)| (name, Written::of(value))),
        )
    }

    /// Reads them.
    ///
    /// # Errors
    /// For anything that [`serialize`] does not write.
    pub fn deserialize<'de, D>(from: D) -> Result<BTreeMap<String, OsString>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let all = BTreeMap::<String, Written>::deserialize(from)?.into_iter();
        all.map(|(name, value)| Ok((name, value.read()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Both {
        #[serde(with = "super::paths")]
        paths: Vec<PathBuf>,
        #[serde(with = "super::variables")]
        variables: BTreeMap<String, OsString>,
    }

    fn any_bytes() -> impl Strategy<Value = OsString> {
        proptest::collection::vec(1_u8.., 0..40).prop_map(OsString::from_vec)
    }

    proptest! {
        #[test]
        fn what_is_read_has_the_bytes_that_were_written(
            paths in proptest::collection::vec(any_bytes(), 0..4),
            values in proptest::collection::btree_map("[A-Z]{1,8}", any_bytes(), 0..4),
        ) {
            let paths = paths.into_iter().map(PathBuf::from).collect();
            let both = Both { paths, variables: values };
            let text = serde_json::to_string(&both).unwrap();
            prop_assert!(!text.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<Both>(&text).unwrap(), both);
        }
    }

    #[test]
    fn text_stays_text_and_other_bytes_become_digits() {
        let odd = OsStr::from_bytes(b"caf\xe9");
        for (word, json) in [
            (OsStr::new("café"), r#""café""#),
            (odd, r#"{"hex":"636166e9"}"#),
        ] {
            assert_eq!(serde_json::to_string(&Written::of(word)).unwrap(), json);
        }
    }

    #[test]
    fn what_is_no_hexadecimal_is_refused() {
        for hex in ["6", "6g", "+1", "é"] {
            let text = format!(r#"{{"paths":[{{"hex":"{hex}"}}],"variables":{{}}}}"#);
            let error = serde_json::from_str::<Both>(&text).unwrap_err().to_string();
            assert!(
                error.contains(hex) && error.contains("hexadecimal"),
                "{error}"
            );
        }
    }
}
