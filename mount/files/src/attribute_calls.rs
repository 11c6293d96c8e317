// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls on attributes that an object store cannot keep: chmod, chown, utimensat, symlink,
//! readlink, mknod and those on extended attributes. [`crate::bucket_files`] holds this;
//! [`crate::attribute_sync`] writes the changes.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use weft_store::ETag;

use crate::attribute_object::{Attribute, Modified, Special, Time};
use crate::attribute_sync;
use crate::attributes::{Change, Entry, Kind, Maker, Making};
use crate::changes::Name;
use crate::core::Core;
use crate::fault::{Fault, Reason};
use crate::names::{self, Listed};
use crate::nodes::Body;
use crate::search;

/// XATTR_SIZE_MAX of Linux.
const XATTR_BYTES: usize = 64 << 10;
/// XATTR_LIST_MAX of Linux; specified: values of one name take no more either.
const XATTRS_BYTES: usize = 64 << 10;
/// S_ISUID.
const SET_USER: u16 = 0o4000;
/// S_ISGID.
const SET_GROUP: u16 = 0o2000;
/// S_IXGRP.
const GROUP_RUNS: u16 = 0o010;

/// Whether an extended attribute may, or must, be there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Either.
    Any,
    /// XATTR_CREATE.
    New,
    /// XATTR_REPLACE.
    Old,
}

/// The calls on attributes.
pub struct AttributeCalls {
    core: Arc<Core>,
}

impl AttributeCalls {
    /// Of a mount.
    pub fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The attributes of a node as they are known, no older than the time to live.
    async fn known(&self, ino: u64) -> Result<Attribute, Fault> {
        let place = self.core.nodes().attribute_place(ino);
        if let Some((folder, _)) = place {
            attribute_sync::ensure(&self.core, folder).await?;
            self.must_be_readable(folder)?;
        }
        let nodes = self.core.nodes();
        nodes.get(ino).ok_or(Reason::Stale)?;
        Ok(nodes.attribute(ino).cloned().unwrap_or_default())
    }

    fn must_be_readable(&self, folder: u64) -> Result<(), Fault> {
        let mut nodes = self.core.nodes();
        let known = nodes.folder(folder).map(|known| &known.attributes);
        if known.is_some_and(|known| known.is_unreadable) {
            let text = "the folder's `.weft-attributes` is not of this mount's version";
            return Err(Fault::because(Reason::Broken, text));
        }
        Ok(())
    }

    fn set(&self, ino: u64, mut attribute: Attribute) {
        attribute.changed = Some(Time::now());
        let folder = self.core.nodes().set_attribute(ino, attribute);
        if let Some(folder) = folder {
            attribute_sync::write_soon(&self.core, folder);
        }
    }

    /// Changes mode, owners and times.
    ///
    /// # Errors
    /// `Broken` where the folder's attributes cannot be read; what the store said.
    pub async fn change(&self, ino: u64, change: &Change) -> Result<(), Fault> {
        let mut attribute = self.known(ino).await?;
        let given = change.given;
        let is_folder = {
            let mut nodes = self.core.nodes();
            nodes.folder(ino).is_some()
        };
        attribute.uid = given.uid.or(attribute.uid);
        attribute.gid = given.gid.or(attribute.gid);
        if (given.uid.is_some() || given.gid.is_some()) && !is_folder {
            attribute.mode = attribute.mode.map(without_privileges);
        }
        attribute.mode = given.mode.or(attribute.mode);
        attribute.accessed = change.accessed.map(Time::of).or(attribute.accessed);
        if let Some(at) = change.modified {
            let mut nodes = self.core.nodes();
            let etag = nodes
                .file(ino)
                .map(|file| file.info.etag.as_str().to_owned());
            if let Some(folder) = nodes.folder(ino) {
                folder.modified = None;
            }
            attribute.modified = Some(Modified {
                at: Time::of(at),
                etag: etag.unwrap_or_default(),
            });
        }
        self.set(ino, attribute);
        Ok(())
    }

    /// Content was written, or cut, by somebody without the right to keep set-user-ID bits.
    pub fn drop_privileges(&self, ino: u64) {
        let attribute = self.core.nodes().attribute(ino).cloned();
        let Some(mut attribute) = attribute else {
            return;
        };
        let mode = attribute.mode.map(without_privileges);
        if mode != attribute.mode {
            attribute.mode = mode;
            self.set(ino, attribute);
        }
    }

    /// Makes a symbolic link, a pipe, a socket's name or a device.
    ///
    /// # Errors
    /// `Exists`; `Broken` where the folder's attributes cannot be read.
    pub async fn make_special(
        &self,
        new: Name<'_>,
        special: Special,
        making: &Making,
    ) -> Result<Entry, Fault> {
        names::check(new.name)?;
        if search::find(&self.core, new.parent, new.name)
            .await?
            .is_some()
        {
            return Err(Reason::Exists.into());
        }
        names::check_key(&format!("{}{}", self.core.key(new.parent)?, new.name))?;
        self.must_be_readable(new.parent)?;
        made(&self.core, new, making, Some(special.clone()));
        let (listed, at) = (Listed::Special(special), Instant::now());
        Ok(self.core.enter(new.parent, new.name, &listed, at))
    }

    /// A name is gone, and its attributes with it.
    pub fn gone(&self, old: Name<'_>) {
        if let Some(folder) = self.core.nodes().folder(old.parent) {
            folder.attributes.remove(old.name);
            folder.own_specials();
            folder.modified = Some(SystemTime::now());
        }
        attribute_sync::write_soon(&self.core, old.parent);
    }

    /// A name has another one now; of a file, with the entity tags before and after.
    pub fn moved(&self, old: Name<'_>, new: Name<'_>, etags: Option<(&ETag, &ETag)>) {
        {
            let mut nodes = self.core.nodes();
            let Some(from) = nodes.folder(old.parent) else {
                return;
            };
            let mut attribute = from.attributes.get(old.name).cloned();
            from.attributes.remove(old.name);
            from.own_specials();
            if let Some((attribute, (before, after))) = attribute.as_mut().zip(etags) {
                rebind(attribute, before, after);
            }
            if let Some(to) = nodes.folder(new.parent) {
                to.attributes.set(new.name, attribute);
                to.own_specials();
            }
        }
        for name in [old, new] {
            self.core.touched(name.parent);
            attribute_sync::write_soon(&self.core, name.parent);
        }
    }

    /// Where a symbolic link points.
    ///
    /// # Errors
    /// `Invalid` for what is none.
    pub fn link_target(&self, ino: u64) -> Result<String, Fault> {
        match self.core.nodes().get(ino).map(|node| &node.body) {
            Some(Body::Special(Special::Symlink(target))) => Ok(target.clone()),
            Some(_) => Err(Reason::Invalid.into()),
            None => Err(Reason::Stale.into()),
        }
    }

    /// The value of an extended attribute.
    ///
    /// # Errors
    /// `NoAttribute`.
    pub async fn xattr(&self, ino: u64, name: &str) -> Result<Vec<u8>, Fault> {
        let attribute = self.known(ino).await?;
        let value = attribute.xattrs.get(name).ok_or(Reason::NoAttribute)?;
        STANDARD.decode(value).map_err(|error| {
            let text = format!("the attribute `{name}` is no base64: {error}");
            Fault::because(Reason::Broken, text)
        })
    }

    /// The names of all extended attributes.
    ///
    /// # Errors
    /// What the store said.
    pub async fn xattrs(&self, ino: u64) -> Result<Vec<String>, Fault> {
        Ok(self.known(ino).await?.xattrs.into_keys().collect())
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// `Exists`, `NoAttribute` as `presence` has it; `TooMuch`, `NoSpace` for what does not fit.
    pub async fn set_xattr(
        &self,
        ino: u64,
        name: &str,
        value: &[u8],
        presence: Presence,
    ) -> Result<(), Fault> {
        let mut attribute = self.known(ino).await?;
        if value.len() > XATTR_BYTES {
            return Err(Reason::TooMuch.into());
        }
        match (presence, attribute.xattrs.contains_key(name)) {
            (Presence::New, true) => return Err(Reason::Exists.into()),
            (Presence::Old, false) => return Err(Reason::NoAttribute.into()),
            _ => {}
        }
        attribute
            .xattrs
            .insert(name.to_owned(), STANDARD.encode(value));
        let sizes = attribute.xattrs.iter();
        let sum: usize = sizes
            .map(|(name, value)| name.len() + value.len() / 4 * 3)
            .sum();
        if sum > XATTRS_BYTES + XATTR_BYTES {
            return Err(Reason::NoSpace.into());
        }
        self.set(ino, attribute);
        Ok(())
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `NoAttribute`.
    pub async fn remove_xattr(&self, ino: u64, name: &str) -> Result<(), Fault> {
        let mut attribute = self.known(ino).await?;
        attribute.xattrs.remove(name).ok_or(Reason::NoAttribute)?;
        self.set(ino, attribute);
        Ok(())
    }

    /// Has the store know a node's attributes, at fsync(2).
    ///
    /// # Errors
    /// What the store said.
    pub async fn sync(&self, ino: u64) -> Result<(), Fault> {
        let place = self.core.nodes().attribute_place(ino);
        if let Some((folder, _)) = place {
            attribute_sync::write(&self.core, folder).await?;
        }
        let is_folder = self.core.nodes().folder(ino).is_some();
        if is_folder {
            attribute_sync::write(&self.core, ino).await?;
        }
        Ok(())
    }

    /// Has the store know all attributes, at the end of the mount.
    ///
    /// # Errors
    /// What the store said of the first that it refused.
    pub async fn sync_all(&self) -> Result<(), Fault> {
        let changed = self.core.nodes().with_changed_attributes();
        let mut outcome = Ok(());
        for folder in changed {
            let written = attribute_sync::write(&self.core, folder).await;
            outcome = outcome.and(written);
        }
        outcome
    }
}

/// A name was made: its attributes are what the program asked for, whatever stood there before.
pub fn made(core: &Arc<Core>, new: Name<'_>, making: &Making, special: Option<Special>) {
    let mut given = making.given;
    let mut nodes = core.nodes();
    let above = nodes.attribute(new.parent).cloned().unwrap_or_default();
    if above.mode.is_some_and(|mode| mode & SET_GROUP != 0) {
        given.gid = above.gid;
        if making.kind == Kind::Folder {
            given.mode = Some(given.mode.unwrap_or(making.usual_mode) | SET_GROUP);
        }
    }
    let time = special.is_some().then(Time::now);
    let attribute = Attribute {
        modified: time.map(|at| Modified {
            at,
            etag: String::new(),
        }),
        changed: time,
        special,
        mode: given.mode,
        uid: given.uid,
        gid: given.gid,
        ..Attribute::default()
    };
    if let Some(folder) = nodes.folder(new.parent) {
        match making.maker {
            Maker::Here => folder.attributes.set_new(new.name, attribute, false),
            Maker::HereByOther => folder.attributes.set_new(new.name, attribute, true),
            Maker::Other => folder.attributes.forget(new.name),
        }
        folder.own_specials();
        folder.modified = Some(SystemTime::now());
    }
    drop(nodes);
    attribute_sync::write_soon(core, new.parent);
}

/// A content was written by this mount: the time that was set for it is not its time any more.
pub fn written(core: &Arc<Core>, ino: u64) {
    let mut nodes = core.nodes();
    let attribute = nodes.attribute(ino).filter(|one| one.modified.is_some());
    let Some(mut attribute) = attribute.cloned() else {
        return;
    };
    attribute.modified = None;
    let folder = nodes.set_attribute(ino, attribute);
    drop(nodes);
    if let Some(folder) = folder {
        attribute_sync::write_soon(core, folder);
    }
}

/// The same content has another entity tag now: a time that was set for it stays.
pub fn published(core: &Arc<Core>, ino: u64, before: &ETag, after: &ETag) {
    let mut nodes = core.nodes();
    let attribute = nodes.attribute(ino).filter(|one| one.modified.is_some());
    let Some(mut attribute) = attribute.cloned() else {
        return;
    };
    rebind(&mut attribute, before, after);
    let folder = nodes.set_attribute(ino, attribute);
    drop(nodes);
    if let Some(folder) = folder {
        attribute_sync::write_soon(core, folder);
    }
}

fn rebind(attribute: &mut Attribute, before: &ETag, after: &ETag) {
    if let Some(modified) = &mut attribute.modified
        && *modified.etag == *before.as_str()
    {
        after.as_str().clone_into(&mut modified.etag);
    }
}

/// As Linux does it: set-group-ID without the group's right to run is a lock's mark.
fn without_privileges(mode: u16) -> u16 {
    let mode = mode & !SET_USER;
    match mode & GROUP_RUNS {
        0 => mode,
        _ => mode & !SET_GROUP,
    }
}
