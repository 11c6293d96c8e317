// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The attribute object of a folder. It keeps what an object store cannot: modes, owners, times,
//! extended attributes, symbolic links and special files. docs/mount-names.md specifies it.
//! [`crate::known_attributes`] holds the contents of one, [`crate::attribute_sync`] reads and
//! writes it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::attributes::Kind;

/// Specified: of the format.
const VERSION: u32 = 1;
/// Specified: the mount's own folder, in its own object.
pub const OWN: &str = ".";
/// Specified: of one object.
pub const MOST_BYTES: u64 = 64 << 20;
/// PATH_MAX of Linux, without the zero byte.
pub const TARGET_BYTES: usize = 4095;
/// Permissions, and the set-user-ID, set-group-ID and sticky bits.
const MODE_BITS: u16 = 0o7777;

/// Nanoseconds since 1970, before it negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(i64);

/// A time that holds for one content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modified {
    /// What utimensat(2) set.
    pub at: Time,
    /// Of the object; empty for what has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub etag: String,
}

/// What is no object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Special {
    /// A symbolic link, to this path.
    Symlink(String),
    /// A named pipe.
    Fifo,
    /// A socket's name.
    Socket,
    /// A device, by its number.
    Character(u32),
    /// The same.
    Block(u32),
}

/// What is said of one name; what is absent is as the mount's options have it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// The name stands for no object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub special: Option<Special>,
    /// Permissions and the three bits above them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u16>,
    /// The owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// The content's time, where it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Modified>,
    /// The same, of reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accessed: Option<Time>,
    /// When any of this was changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Time>,
    /// Extended attributes; values in base64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub xattrs: BTreeMap<String, String>,
}

/// What is said of the names of a folder.
pub type Names = BTreeMap<String, Attribute>;

/// Why an object holds no attributes that can be read, or cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// It is empty, or no JSON of this form.
    NoJson(String),
    /// It has another version.
    Version(u32),
    /// It has more than [`MOST_BYTES`].
    TooLarge(u64),
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        Self::NoJson(error.to_string())
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoJson(why) => f.write_str(why),
            Self::Version(version) => {
                write!(
                    f,
                    "it has version {version}, and this mount knows {VERSION}"
                )
            }
            Self::TooLarge(bytes) => {
                write!(
                    f,
                    "attributes of one folder take {bytes} bytes, and {MOST_BYTES} at most"
                )
            }
        }
    }
}

impl std::error::Error for Unreadable {}

#[derive(Serialize, Deserialize)]
struct Whole {
    version: u32,
    names: BTreeMap<String, Attribute>,
}

#[derive(Deserialize)]
struct Head {
    version: u32,
}

impl Time {
    /// Now.
    pub fn now() -> Self {
        Self::of(SystemTime::now())
    }

    /// The nearest that can be said: years 1677 to 2262.
    pub fn of(time: SystemTime) -> Self {
        let nanoseconds = |length: Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Self(nanoseconds(since)),
            Err(before) => Self(-nanoseconds(before.duration())),
        }
    }

    /// As bytes, the least first.
    pub fn bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// From bytes.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(i64::from_le_bytes(bytes))
    }

    /// As the system has it.
    pub fn system(self) -> SystemTime {
        let length = Duration::from_nanos(self.0.unsigned_abs());
        if self.0 < 0 {
            UNIX_EPOCH - length
        } else {
            UNIX_EPOCH + length
        }
    }
}

impl Special {
    /// What stat(2) shows it as.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Symlink(_) => Kind::Symlink,
            Self::Fifo => Kind::Fifo,
            Self::Socket => Kind::Socket,
            Self::Character(_) => Kind::Character,
            Self::Block(_) => Kind::Block,
        }
    }

    /// The number of a device; else 0.
    pub fn device(&self) -> u32 {
        match self {
            Self::Character(device) | Self::Block(device) => *device,
            _ => 0,
        }
    }

    /// The length that stat(2) shows.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Self::Symlink(target) => target.len() as u64,
            _ => 0,
        }
    }

    fn is_sound(&self) -> bool {
        match self {
            Self::Symlink(target) => {
                (1..=TARGET_BYTES).contains(&target.len()) && !target.contains('\0')
            }
            _ => true,
        }
    }
}

/// What an object says, of what `is_name` knows as names.
///
/// # Errors
/// `NoJson`, `Version`.
pub fn read(body: &[u8], is_name: fn(&str) -> bool) -> Result<Names, Unreadable> {
    let head: Head = serde_json::from_slice(body)?;
    if head.version != VERSION {
        return Err(Unreadable::Version(head.version));
    }
    let whole: Whole = serde_json::from_slice(body)?;
    let mut names = whole.names;
    names.retain(|name, attribute| {
        attribute.mode = attribute.mode.map(|mode| mode & MODE_BITS);
        let is_special = attribute.special.is_some();
        let is_sound = attribute.special.as_ref().is_none_or(Special::is_sound);
        is_sound && (is_name(name) || (name == OWN && !is_special))
    });
    Ok(names)
}

/// The object that says this.
///
/// # Errors
/// `TooLarge`.
pub fn write(names: Names) -> Result<Bytes, Unreadable> {
    let version = VERSION;
    let body = serde_json::to_vec(&Whole { version, names })?;
    if body.len() as u64 > MOST_BYTES {
        return Err(Unreadable::TooLarge(body.len() as u64));
    }
    Ok(body.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_name(name: &str) -> bool {
        !name.contains('/') && !name.starts_with('.')
    }

    #[test]
    fn what_is_written_is_read_and_other_versions_are_refused() {
        let attribute = Attribute {
            special: Some(Special::Symlink("../a".to_owned())),
            mode: Some(0o640),
            modified: Some(Modified {
                at: Time(-5),
                etag: "\"1\"".to_owned(),
            }),
            ..Attribute::default()
        };
        let names = BTreeMap::from([("l".to_owned(), attribute)]);
        let body = write(names.clone()).unwrap();
        let text = r#"{"version":1,"names":{"l":{"special":{"symlink":"../a"},"mode":416,"#;
        assert!(body.starts_with(text.as_bytes()), "{body:?}");
        assert_eq!(read(&body, is_name).unwrap(), names);
        let why = read(br#"{"version":2,"names":[]}"#, is_name).unwrap_err();
        assert_eq!(why, Unreadable::Version(2));
    }

    #[test]
    fn names_that_none_are_and_targets_that_none_are_have_no_attributes() {
        let body = br#"{"version":1,"names":{"a/b":{},"..":{},".":{"mode":65535},
            "l":{"special":{"symlink":""}},"f":{"special":"fifo"}}}"#;
        let names = read(body, is_name).unwrap();
        let found: Vec<&str> = names.keys().map(String::as_str).collect();
        assert_eq!(found, [".", "f"]);
        assert_eq!(names["."].mode, Some(0o7777));
    }

    proptest! {
        #[test]
        fn times_are_kept_to_the_nanosecond(nanoseconds in any::<i64>()) {
            prop_assume!(nanoseconds != i64::MIN);
            prop_assert_eq!(Time::of(Time(nanoseconds).system()), Time(nanoseconds));
        }

        #[test]
        fn noise_is_read_or_refused(noise in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&noise, is_name);
        }
    }
}
