// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The known contents of a folder's attribute object, and the changes made here that are not
//! written yet. [`crate::nodes`] holds one for each folder, [`crate::attribute_sync`] keeps it up
//! to date.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use weft_store::{ETag, ObjectInfo};

use crate::attribute_merge::{How, merged};
use crate::attribute_object::Attribute;
use crate::names::{Listed, Named};

/// What must be asked of the store before attributes are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Whether there is an object.
    Look,
    /// This content.
    Load(ObjectInfo),
}

/// What was done here to a name's attributes that is not written yet.
#[derive(Debug)]
struct Change {
    /// Of the last change.
    number: u64,
    /// What the store had before the first one.
    base: Attribute,
    how: How,
    /// The name is gone.
    is_gone: bool,
}

/// Of one folder.
#[derive(Debug, Default)]
pub struct KnownAttributes {
    names: HashMap<Box<str>, Attribute>,
    /// The content that was read or written last; none where there is no object.
    object: Option<ETag>,
    /// What the store had when it was asked last, and when.
    seen: Option<(Instant, Option<ObjectInfo>)>,
    /// Names that were changed here since.
    changed: HashMap<Box<str>, Change>,
    change_count: u64,
    /// The object is none of this version: it is left alone, and nothing can be changed.
    pub is_unreadable: bool,
    /// A task will write what was changed.
    pub is_waiting: bool,
}

/// What is to be written.
#[derive(Debug)]
pub struct Draft {
    /// All names.
    pub names: BTreeMap<String, Attribute>,
    /// The content on which that stands.
    pub object: Option<ETag>,
    change_count: u64,
}

impl KnownAttributes {
    /// Of a name.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.names.get(name)
    }

    /// Whether anything was changed that is not written yet.
    pub fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// A name's attributes are these now; none is as the mount's options have it.
    pub fn set(&mut self, name: &str, attribute: Option<Attribute>) {
        self.change(name, attribute.unwrap_or_default());
    }

    /// A name was made: what anybody said of it before is not of this one. The store may have more
    /// of the name than is known here if `may_be_more`.
    pub fn set_new(&mut self, name: &str, attribute: Attribute, may_be_more: bool) {
        if may_be_more && self.has_object() {
            self.names.entry(name.into()).or_default();
        }
        if let Some(change) = self.change(name, attribute) {
            change.how.is_whole = true;
        }
    }

    /// A name is gone, and whatever anybody said of it.
    pub fn remove(&mut self, name: &str) {
        if let Some(change) = self.change(name, Attribute::default()) {
            (change.how.is_whole, change.is_gone) = (true, true);
        }
    }

    /// Another mount writes what there is to be said of a name.
    pub fn leave_to_others(&mut self, name: &str) {
        let Some(change) = self.changed.remove(name) else {
            return;
        };
        if change.base == Attribute::default() {
            self.names.remove(name);
        } else {
            self.names.insert(name.into(), change.base);
        }
    }

    /// Another mount keeps the time of a name's content from now on.
    pub fn leave_time_to_other(&mut self, name: &str) {
        if let Some(attribute) = self.names.get_mut(name) {
            attribute.modified = None;
        }
        if let Some(change) = self.changed.get_mut(name) {
            // What the store has of the name that was there before one made here goes; what the
            // other mount writes differs from that, and stays.
            if !change.how.is_whole {
                change.base.modified = None;
            }
            change.how.sets_time = false;
        }
    }

    /// Another mount made a name, and writes what is to be said of it.
    pub fn forget(&mut self, name: &str) {
        self.names.remove(name);
        self.changed.remove(name);
    }

    fn change(&mut self, name: &str, attribute: Attribute) -> Option<&mut Change> {
        let is_usual = attribute == Attribute::default();
        if self.is_unreadable || (is_usual && !self.names.contains_key(name)) {
            // What went before is the name's beginning now.
            let change = self.changed.get_mut(name).filter(|_| !self.is_unreadable)?;
            change.is_gone = false;
            return Some(change);
        }
        let modified = attribute.modified.clone();
        let before = match is_usual {
            true => self.names.remove(name),
            false => self.names.insert(name.into(), attribute),
        };
        let before = before.unwrap_or_default();
        self.change_count += 1;
        let number = self.change_count;
        let is_other_time = modified != before.modified;
        let new = || Change {
            number,
            base: before,
            how: How::default(),
            is_gone: false,
        };
        let change = self.changed.entry(name.into()).or_insert_with(new);
        (change.number, change.is_gone) = (number, false);
        if is_other_time {
            change.how.sets_time = modified.is_some();
        }
        Some(change)
    }

    /// The store has this of the names, as another mount wrote it. What was changed here is changed
    /// still, as far as it differs.
    fn take(&mut self, mut there: HashMap<Box<str>, Attribute>) {
        for (name, mut change) in std::mem::take(&mut self.changed) {
            let stored = there.remove(&name).unwrap_or_default();
            let here = self.names.remove(&name).unwrap_or_default();
            let both = match change.is_gone {
                true => Attribute::default(),
                false => merged(&change.base, here, &stored, &change.how),
            };
            if both != stored {
                change.base = stored;
                self.changed.insert(name.clone(), change);
            }
            if both != Attribute::default() {
                there.insert(name, both);
            }
        }
        self.names = there;
    }

    /// A request that was sent at `at` showed this object, or that there is none.
    pub fn seen(&mut self, at: Instant, object: Option<ObjectInfo>) {
        if self.seen.as_ref().is_none_or(|(before, _)| *before <= at) {
            self.seen = Some((at, object));
        }
    }

    /// What the store has must be asked anew.
    pub fn unsee(&mut self) {
        self.seen = None;
    }

    /// What must be asked before what is known may be shown, where what the store said at a moment
    /// is believed if `is_believed` says so.
    pub fn need(&self, is_believed: impl Fn(Instant) -> bool) -> Need {
        match &self.seen {
            Some((at, object)) if is_believed(*at) => match object {
                Some(info) if self.object.as_ref() != Some(&info.etag) => Need::Load(info.clone()),
                None if self.object.is_some() => Need::Look,
                _ => Need::Nothing,
            },
            _ => Need::Look,
        }
    }

    /// There is no object: only what was changed here counts.
    pub fn absent(&mut self) {
        self.object = None;
        self.is_unreadable = false;
        self.take(HashMap::new());
    }

    /// The content `etag` says this, or cannot be read; what was changed here stays changed.
    pub fn loaded(&mut self, etag: &ETag, names: Option<BTreeMap<String, Attribute>>) {
        self.object = Some(etag.clone());
        self.is_unreadable = names.is_none();
        if self.is_unreadable {
            self.changed.clear();
        }
        let names = names.unwrap_or_default().into_iter();
        self.take(names.map(|(name, one)| (name.into(), one)).collect());
    }

    /// What is to be written, if anything was changed.
    pub fn draft(&self) -> Option<Draft> {
        let names = self.names.iter();
        self.is_changed().then(|| Draft {
            names: names
                .map(|(name, attribute)| (name.to_string(), attribute.clone()))
                .collect(),
            object: self.object.clone(),
            change_count: self.change_count,
        })
    }

    /// It was written by a request that was sent at `at`: this is the object now.
    pub fn written(&mut self, draft: &Draft, at: Instant, object: Option<ObjectInfo>) {
        self.object = object.as_ref().map(|info| info.etag.clone());
        self.seen = Some((at, object));
        self.changed
            .retain(|_, change| change.number > draft.change_count);
        for (name, change) in &mut self.changed {
            change.base = draft.names.get(&**name).cloned().unwrap_or_default();
        }
    }

    /// Whether the store may have an object.
    pub fn has_object(&self) -> bool {
        let is_seen = |(_, object): &(Instant, Option<ObjectInfo>)| object.is_some();
        self.object.is_some() || self.seen.as_ref().is_none_or(is_seen)
    }

    /// The folder is gone, with its object.
    pub fn clear(&mut self) {
        let is_waiting = self.is_waiting;
        *self = Self::default();
        self.is_waiting = is_waiting;
    }

    /// The names that are no objects.
    pub fn specials(&self) -> impl Iterator<Item = Named> {
        self.names.iter().filter_map(|(name, one)| {
            let special = one.special.clone()?;
            Some((name.clone(), Listed::Special(special)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::attribute_object::{Modified, Time};

    fn with_time(seconds: u64, etag: &str) -> Attribute {
        Attribute {
            modified: Some(Modified {
                at: Time::of(UNIX_EPOCH + Duration::from_secs(seconds)),
                etag: etag.to_owned(),
            }),
            ..Attribute::default()
        }
    }

    /// As tar does over a file that was unpacked before; its owner is another mount.
    #[test]
    fn time_of_a_file_that_was_unlinked_is_none_of_the_one_made_in_its_place() {
        let stored = |attribute: &Attribute| Some([("f".to_owned(), attribute.clone())].into());
        let (old, new) = (with_time(1, "a"), with_time(2, "b"));
        let mut known = KnownAttributes::default();
        known.loaded(&ETag::new("1"), stored(&old));
        known.remove("f");
        known.set_new("f", Attribute::default(), true);
        known.leave_time_to_other("f");
        let with_mode = Attribute {
            mode: Some(0o640),
            ..Attribute::default()
        };
        known.set("f", Some(with_mode.clone()));
        known.loaded(&ETag::new("2"), stored(&old));
        assert_eq!(known.get("f"), Some(&with_mode));
        known.loaded(&ETag::new("3"), stored(&new));
        let both = known.get("f").map(|one| (one.mode, one.modified.clone()));
        assert_eq!(both, Some((Some(0o640), new.modified)));
    }
}
