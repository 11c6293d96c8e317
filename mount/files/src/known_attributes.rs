// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The known contents of a folder's attribute object, and the changes made here that are not
//! written yet. [`crate::nodes`] holds one for each folder, [`crate::attribute_sync`] keeps it up
//! to date.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use weft_store::{ETag, ObjectInfo};

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

/// Of one folder.
#[derive(Debug, Default)]
pub struct KnownAttributes {
    names: HashMap<Box<str>, Attribute>,
    /// The content that was read or written last; none where there is no object.
    object: Option<ETag>,
    /// What the store had when it was asked last, and when.
    seen: Option<(Instant, Option<ObjectInfo>)>,
    /// Names that were changed here since, each with the number of its last change.
    changed: HashMap<Box<str>, u64>,
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
        if self.is_unreadable {
            return;
        }
        let attribute = attribute.filter(|attribute| *attribute != Attribute::default());
        if attribute.is_none() && !self.names.contains_key(name) {
            return;
        }
        match attribute {
            Some(attribute) => self.names.insert(name.into(), attribute),
            None => self.names.remove(name),
        };
        self.change_count += 1;
        self.changed.insert(name.into(), self.change_count);
    }

    /// A request that was sent at `at` showed this object, or that there is none.
    pub fn seen(&mut self, at: Instant, object: Option<ObjectInfo>) {
        if self.seen.as_ref().is_none_or(|(before, _)| *before <= at) {
            self.seen = Some((at, object));
        }
    }

    /// When the store was asked last whether there is an object.
    pub fn seen_at(&self) -> Option<Instant> {
        self.seen.as_ref().map(|(at, _)| *at)
    }

    /// What must be asked before what is known may be believed for `ttl`.
    pub fn need(&self, ttl: Duration) -> Need {
        match &self.seen {
            Some((at, object)) if at.elapsed() <= ttl => match object {
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
        let changed = &self.changed;
        self.names.retain(|name, _| changed.contains_key(name));
    }

    /// The content `etag` says this, or cannot be read; what was changed here stays changed.
    pub fn loaded(&mut self, etag: &ETag, names: Option<BTreeMap<String, Attribute>>) {
        self.object = Some(etag.clone());
        self.is_unreadable = names.is_none();
        if self.is_unreadable {
            self.changed.clear();
        }
        let changed = &self.changed;
        self.names.retain(|name, _| changed.contains_key(name));
        for (name, attribute) in names.unwrap_or_default() {
            if !changed.contains_key(&*name) {
                self.names.insert(name.into(), attribute);
            }
        }
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
            .retain(|_, number| *number > draft.change_count);
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
