// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which keys are names of files. A key `a/b` is file `b` in folder `a`; a key that ends in `/`
//! marks a folder. These keys have no name and are left out of listings: keys with an empty part
//! (`a//b`), with `.` or `..` as a part, with a zero byte, or with a part of more than 255 bytes.

use weft_store::{ObjectInfo, Page};

use crate::attribute_object::Special;
use crate::attributes::Kind;
use crate::fault::Reason;

/// Chosen: S3's largest page; a store answers it in one go.
pub const PAGE_KEYS: u16 = 1000;

/// NAME_MAX of Linux.
pub const NAME_BYTES: usize = 255;

/// The folder, in the mount's own, of what the mount needs for itself; it is not shown.
pub const HIDDEN: &str = ".weft-unlinked";

/// The folder, in the mount's own, of the records of folders that are getting other names; it is
/// not shown.
pub const RENAMES: &str = ".weft-renames";

/// The name, in each folder, of the object that says what else is known of the folder's names; it
/// is not shown.
pub const ATTRIBUTES: &str = ".weft-attributes";

/// What a listing says of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// A group of keys, or a marker.
    Folder,
    /// An object.
    File(ObjectInfo),
    /// No object: the folder's attributes have it.
    Special(Special),
}

impl Listed {
    /// What stat(2) shows it as.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Folder => Kind::Folder,
            Self::File(_) => Kind::File,
            Self::Special(special) => special.kind(),
        }
    }
}

/// A name with what it stands for.
pub type Named = (Box<str>, Listed);

/// Whether a name can be part of a key.
///
/// # Errors
/// `NameTooLong`, or `Invalid`.
pub fn check(name: &str) -> Result<(), Reason> {
    match name {
        _ if name.len() > NAME_BYTES => Err(Reason::NameTooLong),
        "" | "." | ".." | HIDDEN | RENAMES | ATTRIBUTES => Err(Reason::Invalid),
        _ if name.contains(['/', '\0']) => Err(Reason::Invalid),
        _ => Ok(()),
    }
}

/// Whether a key is one that the mount keeps for itself, so that nobody looks for it by a name.
pub fn is_own_key(key: &str) -> bool {
    key.split('/')
        .any(|part| matches!(part, HIDDEN | RENAMES | ATTRIBUTES))
}

/// S3's longest key.
pub const KEY_BYTES: usize = 1024;

/// Whether a new key is no longer than a store takes.
///
/// # Errors
/// `NameTooLong`.
pub fn check_key(key: &str) -> Result<(), Reason> {
    if key.len() > KEY_BYTES {
        return Err(Reason::NameTooLong);
    }
    Ok(())
}

/// The names of one page of the listing of the folder `prefix`, in the page's order; and how many
/// keys have none. Where an object and a folder have one name, both come, for the reader to choose.
pub fn of_page(page: &Page, prefix: &str) -> (Vec<Named>, usize) {
    let mut names = Vec::with_capacity(page.objects.len() + page.folders.len());
    let mut nameless = 0;
    for (key, info) in &page.objects {
        match key.strip_prefix(prefix) {
            // The folder's own marker, and its attributes.
            Some("" | ATTRIBUTES) => {}
            Some(name) if check(name).is_ok() => {
                names.push((name.into(), Listed::File(info.clone())));
            }
            _ => nameless += 1,
        }
    }
    for folder in &page.folders {
        let name = folder.strip_prefix(prefix);
        match name.and_then(|name| name.strip_suffix('/')) {
            Some(HIDDEN | RENAMES) => {}
            Some(name) if check(name).is_ok() => names.push((name.into(), Listed::Folder)),
            _ => nameless += 1,
        }
    }
    (names, nameless)
}

/// What a page says of the attribute object of its folder: that there is one, that there is none,
/// or nothing, since the page does not reach there.
pub fn attributes_of_page(page: &Page, prefix: &str, is_first: bool) -> Option<Option<ObjectInfo>> {
    let key = format!("{prefix}{ATTRIBUTES}");
    if let Some((_, info)) = page.objects.iter().find(|(found, _)| *found == key) {
        return Some(Some(info.clone()));
    }
    let object = page.objects.last().map(|(key, _)| key);
    let reaches = page.next.is_none() || object.max(page.folders.last()) > Some(&key);
    (is_first && reaches).then_some(None)
}

/// Whether a page of the mount's own folder shows that there are records of renames.
pub fn shows_renames(page: &Page, prefix: &str) -> bool {
    let records = format!("{prefix}{RENAMES}/");
    page.folders.contains(&records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_names_are_counted_and_left_out() {
        let info = ObjectInfo {
            size_bytes: 1,
            etag: weft_store::ETag::new("\"1\""),
            modified: std::time::SystemTime::UNIX_EPOCH,
            is_archived: false,
        };
        let keys = [
            "d/",
            "d/a",
            "d/.",
            "d/..",
            &format!("d/{}", "x".repeat(256)),
        ];
        let page = Page {
            objects: keys.map(|key| (key.to_owned(), info.clone())).to_vec(),
            folders: vec!["d/sub/".to_owned(), "d//".to_owned()],
            next: None,
        };
        let (names, nameless) = of_page(&page, "d/");
        let names: Vec<&str> = names.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["a", "sub"]);
        assert_eq!(nameless, 4);
    }
}
