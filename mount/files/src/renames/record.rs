// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The record of a folder's rename: what is to be moved. docs/mount-names.md specifies it.
//! [`crate::renames`] writes it, [`crate::renames::moving`] carries it out.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use weft_store::{Failure, ObjectInfo, Range};

use crate::fault::{Fault, Reason};
use crate::names;
use crate::staging::ways::Ways;

/// Specified: of the format.
pub const VERSION: u32 = 1;
/// Specified: of one record.
pub const MOST_BYTES: u64 = 64 << 20;

/// An object that moves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Without the folder's prefix; empty for its marker.
    pub key: String,
    /// Of its content.
    pub etag: String,
    /// Of its content.
    pub size_bytes: u64,
    /// Of the object at the new name that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
}

/// An object at the new name that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Without the folder's prefix.
    pub key: String,
    /// Of its content.
    pub etag: String,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    version: u32,
    /// The folder below the mount's prefix; ends in `/`.
    pub from: String,
    /// The same, of its new name.
    pub to: String,
    /// What moves.
    pub objects: Vec<Moved>,
    /// What goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Removed>,
}

#[derive(Deserialize)]
struct Head {
    version: u32,
}

impl Record {
    /// Of folders below the mount's prefix, whose names end in `/`.
    pub fn new(from: String, to: String, objects: Vec<Moved>, removed: Vec<Removed>) -> Self {
        Self {
            version: VERSION,
            from,
            to,
            objects,
            removed,
        }
    }

    /// From the bytes of an object.
    ///
    /// # Errors
    /// `Invalid` for what is no record of this version.
    pub fn read(body: &[u8]) -> Result<Self, Fault> {
        let strange = |why: String| Fault::because(Reason::Invalid, why);
        let no_record = |error: serde_json::Error| strange(format!("it is no record: {error}"));
        let head: Head = serde_json::from_slice(body).map_err(no_record)?;
        if head.version != VERSION {
            let version = head.version;
            return Err(strange(format!(
                "it has version {version}, and this mount knows {VERSION}"
            )));
        }
        let record: Self = serde_json::from_slice(body).map_err(no_record)?;
        let (from, to) = (&record.from, &record.to);
        let is_sound = is_folder(from) && is_folder(to);
        if !is_sound || from.starts_with(&**to) || to.starts_with(&**from) {
            return Err(strange(format!(
                "`{from}` and `{to}` are not two folders beside each other"
            )));
        }
        record.check_objects()?;
        Ok(record)
    }

    /// Fails where contents have no tags, by which objects are told apart, and where more would go
    /// than what an empty folder has.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn check_objects(&self) -> Result<(), Fault> {
        let is_own = |key: &str| key.is_empty() || key == names::ATTRIBUTES;
        let strange = |key: &str, why: &str| {
            let text = format!("of `{}{key}` it {why}", self.to);
            Err(Fault::because(Reason::Invalid, text))
        };
        for object in &self.objects {
            let over = object.over.as_deref();
            if object.etag.is_empty() || over.is_some_and(str::is_empty) {
                return strange(&object.key, "has no entity tag");
            }
            if over.is_some() && !is_own(&object.key) {
                return strange(&object.key, "replaces a file");
            }
        }
        for removed in &self.removed {
            if removed.etag.is_empty() {
                return strange(&removed.key, "has no entity tag");
            }
            if !is_own(&removed.key) {
                return strange(&removed.key, "removes a file");
            }
        }
        Ok(())
    }

    /// The bytes for an object.
    ///
    /// # Errors
    /// `NoSpace` for too many objects.
    pub fn write(&self) -> Result<Bytes, Fault> {
        let body = serde_json::to_vec(self);
        let body = body.map_err(|error| Fault::because(Reason::Broken, error.to_string()))?;
        if body.len() as u64 > MOST_BYTES {
            let text = format!(
                "the list of the objects of `{}` takes {} bytes, and {MOST_BYTES} at most; rename \
                 its folders one by one",
                self.from,
                body.len()
            );
            return Err(Fault::because(Reason::NoSpace, text));
        }
        Ok(body.into())
    }
}

/// The record of this key, whole and sound, if it is still there; nobody is told of it yet.
///
/// # Errors
/// `Invalid` for what is no record; what the store said.
pub async fn find(ways: &Ways, key: &str) -> Result<Option<Record>, Fault> {
    match ways.store.find(key).await? {
        Some(info) => read_found(ways, key, &info).await,
        None => Ok(None),
    }
}

/// The same of a key that was found just now: as `info`.
///
/// # Errors
/// Those of [`find`].
pub async fn read_found(
    ways: &Ways,
    key: &str,
    info: &ObjectInfo,
) -> Result<Option<Record>, Fault> {
    if !(1..=MOST_BYTES).contains(&info.size_bytes) {
        let size = info.size_bytes;
        let text = format!("a record has 1 to {MOST_BYTES} bytes, not {size}");
        return Err(Fault::because(Reason::Invalid, text));
    }
    let range = Range::new(0, info.size_bytes);
    match ways.store.get(key, range, &info.etag).await {
        Ok(body) => Record::read(&body).map(Some),
        Err(error) if error.failure == Failure::Missing => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a key below the folder of records is one's: consoles and people put others there.
pub fn is_id(key: &str) -> bool {
    key.len() == 40 && key.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a text is the prefix of a folder that has a name.
fn is_folder(prefix: &str) -> bool {
    let parts = prefix.strip_suffix('/').map(|path| path.split('/'));
    parts.is_some_and(|mut parts| parts.all(|part| names::check(part).is_ok()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record() -> Record {
        let moved = |key: &str, over: Option<&str>| Moved {
            key: key.to_owned(),
            etag: "\"1\"".to_owned(),
            size_bytes: 3,
            over: over.map(str::to_owned),
        };
        let removed = Removed {
            key: ".weft-attributes".to_owned(),
            etag: "\"7\"".to_owned(),
        };
        let objects = vec![moved("model", None), moved("", Some("\"2\""))];
        Record::new("a/tmp/".into(), "a/best/".into(), objects, vec![removed])
    }

    #[test]
    fn what_is_written_is_read_and_is_as_specified() {
        let body = record().write().unwrap();
        let text = r#"{"version":1,"from":"a/tmp/","to":"a/best/","objects":[{"key":"model",
            "etag":"\"1\"","size_bytes":3},{"key":"","etag":"\"1\"","size_bytes":3,
            "over":"\"2\""}],"removed":[{"key":".weft-attributes","etag":"\"7\""}]}"#;
        let text: String = text.split_whitespace().collect();
        assert_eq!(body, text.as_bytes());
        assert_eq!(Record::read(&body).unwrap(), record());
    }

    #[test]
    fn records_that_would_remove_files_or_cannot_tell_contents_apart_are_refused() {
        let body = record().write().unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        for (old, new) in [
            ("\".weft-attributes\"", "\"file\""),
            ("\"key\":\"\"", "\"key\":\"file\""),
            (r#""etag":"\"1\"""#, r#""etag":"""#),
            (r#""over":"\"2\"""#, r#""over":"""#),
            (r#""etag":"\"7\"""#, r#""etag":"""#),
        ] {
            let changed = text.replace(old, new);
            assert_ne!(changed, text, "{old}");
            assert!(Record::read(changed.as_bytes()).is_err(), "{changed}");
        }
    }

    #[test]
    fn records_of_other_versions_and_of_folders_that_cannot_be_are_refused() {
        let body = record().write().unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        for (old, new) in [
            ("\"version\":1", "\"version\":2"),
            ("a/best/", "a/best"),
            ("a/best/", "/"),
            ("a/best/", ""),
            ("a/best/", "a/../"),
            ("a/best/", "a/tmp/"),
            ("a/best/", "a/tmp/b/"),
            ("a/best/", "a/"),
        ] {
            let changed = text.replace(old, new);
            assert!(Record::read(changed.as_bytes()).is_err(), "{changed}");
        }
    }

    proptest! {
        #[test]
        fn noise_is_refused(noise in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Record::read(&noise).is_err());
        }
    }
}
