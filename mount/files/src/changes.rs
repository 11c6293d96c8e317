// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls that change names: mkdir, rmdir, unlink, rename. A crash between the two requests of a
//! file's rename leaves both names, never none. [`crate::renames`] renames folders.
//! [`crate::bucket_files`] holds this.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use weft_store::{Condition, ETag, Failure, ListRequest, ObjectInfo};

use crate::attribute_sync;
use crate::attributes::Entry;
use crate::core::Core;
use crate::facts::{Fact, Folder, Shown};
use crate::fault::{Fault, Reason};
use crate::names::{self, ATTRIBUTES, Listed};
use crate::object_copies::{Source, copy_object, delete_same};
use crate::renames::Renamed;
use crate::renames::copies::OtherTag;
use crate::renames::moving::Outcome;
use crate::search;

/// The calls that change names.
pub struct Changes {
    core: Arc<Core>,
}

/// A name in a folder.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    /// The folder's number.
    pub parent: u64,
    /// In it.
    pub name: &'a str,
}

impl Changes {
    /// Of a mount.
    pub fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Makes a folder: an empty object whose key ends in `/`.
    ///
    /// # Errors
    /// `Exists`.
    pub async fn make_folder(&self, new: Name<'_>) -> Result<Entry, Fault> {
        names::check(new.name)?;
        self.must_be_free(new).await?;
        let key = format!("{}{}/", self.core.key(new.parent)?, new.name);
        names::check_key(&key)?;
        let at = Instant::now();
        self.core
            .store
            .put(&key, Bytes::new(), &Condition::Always)
            .await?;
        let listed = Listed::Folder;
        self.core
            .learn(new.parent, new.name, at, Some(listed.clone()));
        Ok(self.core.enter(new.parent, new.name, &listed, at))
    }

    /// Fails where a name stands for something.
    ///
    /// # Errors
    /// `Exists`.
    pub async fn must_be_free(&self, new: Name<'_>) -> Result<(), Fault> {
        match search::find(&self.core, new.parent, new.name).await? {
            Some(_) => Err(Reason::Exists.into()),
            None => Ok(()),
        }
    }

    /// Removes a file's object, if the store has one.
    ///
    /// # Errors
    /// `IsFolder`, `NotFound`.
    pub async fn unlink(&self, old: Name<'_>, is_stored: bool) -> Result<(), Fault> {
        let (listed, _) = search::search(&self.core, old.parent, old.name).await?;
        match listed {
            Listed::Folder => return Err(Reason::IsFolder.into()),
            Listed::Special(_) => {
                self.gone(old);
                return Ok(());
            }
            Listed::File(_) => {}
        }
        let key = format!("{}{}", self.core.key(old.parent)?, old.name);
        if is_stored {
            self.core.store.delete(&key, &Condition::Always).await?;
        }
        self.gone(old);
        Ok(())
    }

    /// Removes a folder that is empty.
    ///
    /// # Errors
    /// `NotEmpty`, `NotFolder`, `NotFound`.
    pub async fn remove_folder(&self, old: Name<'_>) -> Result<(), Fault> {
        let (listed, _) = search::search(&self.core, old.parent, old.name).await?;
        if listed != Listed::Folder {
            return Err(Reason::NotFolder.into());
        }
        let prefix = format!("{}{}/", self.core.key(old.parent)?, old.name);
        self.must_be_empty(old, &prefix).await?;
        let ino = self.core.nodes().find(old.parent, old.name);
        if let Some(ino) = ino {
            attribute_sync::remove(&self.core, ino).await?;
        }
        self.core.store.delete(&prefix, &Condition::Always).await?;
        self.gone(old);
        Ok(())
    }

    async fn must_be_empty(&self, folder: Name<'_>, prefix: &str) -> Result<(), Fault> {
        let ino = self.core.nodes().find(folder.parent, folder.name);
        if let Some(ino) = ino {
            attribute_sync::ensure(&self.core, ino).await?;
            let mut nodes = self.core.nodes();
            let facts = nodes.folder(ino);
            if facts.is_some_and(|facts| !facts.own.is_empty()) {
                return Err(Reason::NotEmpty.into());
            }
        }
        let request = ListRequest {
            prefix: prefix.to_owned(),
            by_folder: false,
            limit: 3,
            ..ListRequest::default()
        };
        let page = self.core.store.list(&request).await?;
        let attributes = format!("{prefix}{ATTRIBUTES}");
        let is_own = |key: &String| key == prefix || *key == attributes;
        if page.objects.iter().any(|(key, _)| !is_own(key)) {
            return Err(Reason::NotEmpty.into());
        }
        Ok(())
    }

    /// A name stands for nothing now. Its folder stays, though the store may have nothing of it.
    pub(crate) fn gone(&self, old: Name<'_>) {
        self.core.learn(old.parent, old.name, Instant::now(), None);
        let mut nodes = self.core.nodes();
        nodes.unname(old.parent, old.name);
        if let Some(folder) = nodes.folder(old.parent) {
            folder.own.remove(old.name);
        }
        let above = nodes
            .get(old.parent)
            .map(|node| (node.parent, node.name.clone()));
        if let Some((above, name)) = above.filter(|_| old.parent != crate::nodes::ROOT)
            && let Some(folder) = nodes.folder(above)
        {
            folder.keep_folder(&name);
        }
    }

    /// Whether a rename may be done; the object that it replaces.
    ///
    /// # Errors
    /// As [`Changes::rename`].
    pub async fn check_rename(
        &self,
        old: Name<'_>,
        new: Name<'_>,
        may_replace: bool,
    ) -> Result<Option<ObjectInfo>, Fault> {
        names::check(new.name)?;
        names::check_key(&format!("{}{}", self.core.key(new.parent)?, new.name))?;
        let (listed, _) = search::search(&self.core, old.parent, old.name).await?;
        let target = search::find(&self.core, new.parent, new.name).await?;
        let target = target.map(|(target, _)| target);
        match (listed, target) {
            (_, Some(_)) if !may_replace => Err(Reason::Exists.into()),
            (Listed::File(_) | Listed::Special(_), Some(Listed::Folder)) => {
                Err(Reason::IsFolder.into())
            }
            (Listed::Folder, Some(Listed::File(_) | Listed::Special(_))) => {
                Err(Reason::NotFolder.into())
            }
            (_, Some(Listed::File(info))) => Ok(Some(info)),
            _ => Ok(None),
        }
    }

    /// A file of which the store has nothing has another name now.
    pub fn renamed_staged(&self, ino: u64, old: Name<'_>, new: Name<'_>) {
        let info = {
            let mut nodes = self.core.nodes();
            nodes.file(ino).map(|file| file.info.clone())
        };
        let Some(listed) = info.map(Listed::File) else {
            return;
        };
        let mut nodes = self.core.nodes();
        nodes.rename((old.parent, old.name), (new.parent, new.name), &listed);
        if let Some(folder) = nodes.folder(new.parent) {
            folder.own.insert(new.name.into(), listed);
        }
        drop(nodes);
        self.gone(old);
    }

    /// Files in a folder that was renamed have other entity tags, and the same content.
    fn retag(&self, folder: Name<'_>, tags: &[OtherTag]) {
        let mut nodes = self.core.nodes();
        let top = nodes.find(folder.parent, folder.name);
        for tag in tags {
            let (path, name) = tag.place();
            let names = path.split_terminator('/');
            let Some(ino) = names.fold(top, |ino, name| nodes.find(ino?, name)) else {
                continue;
            };
            let file = nodes.find(ino, name).and_then(|file| nodes.file(file));
            let info = file.map(|file| {
                file.retag(&tag.before, &tag.after);
                file.info.clone()
            });
            let Some(known) = nodes.folder(ino) else {
                continue;
            };
            match info.map(Listed::File) {
                Some(listed) => {
                    let (at, listed) = (Instant::now(), Some(listed));
                    known.learn(name, Fact { at, listed }, Shown::ByCall);
                }
                None => known.forget(name),
            }
            // The rename wrote what it says of times.
            known.attributes.unsee();
        }
    }

    /// What is known of a name may not be so any more.
    fn forget(&self, name: Name<'_>) {
        if let Some(folder) = self.core.nodes().folder(name.parent) {
            folder.forget(name.name);
        }
    }

    /// Gives a file or a folder another name. What has that name is replaced, if it may be. Of a
    /// folder some files may stay: whether none did.
    ///
    /// # Errors
    /// After [`Changes::check_rename`]: `NotEmpty`; `Exists` where somebody else made it meanwhile;
    /// `Stale` where somebody else wrote the object; `Broken` where a folder's rename broke off.
    pub async fn rename(
        &self,
        old: Name<'_>,
        new: Name<'_>,
        may_replace: bool,
    ) -> Result<bool, Fault> {
        let (listed, _) = search::search(&self.core, old.parent, old.name).await?;
        let target = search::find(&self.core, new.parent, new.name).await?;
        let target = target.map(|(target, _)| target);
        let from = format!("{}{}", self.core.key(old.parent)?, old.name);
        let to = format!("{}{}", self.core.key(new.parent)?, new.name);
        if listed == Listed::Folder && target == Some(Listed::Folder) {
            self.must_be_empty(new, &format!("{to}/")).await?;
        }
        let at = Instant::now();
        let mut is_whole = true;
        let (mut moving, mut other_tags) = (None, Vec::new());
        let moved = match listed {
            Listed::File(info) => {
                let when = if may_replace {
                    Condition::Always
                } else {
                    Condition::IfAbsent
                };
                let source = Source {
                    key: &from,
                    info: &info,
                };
                let copied = move_object(&self.core, source, &to, &when).await?;
                Listed::File(ObjectInfo {
                    etag: copied,
                    ..info
                })
            }
            Listed::Special(special) => {
                if let Some(Listed::File(_)) = target {
                    self.core.store.delete(&to, &Condition::Always).await?;
                    self.core.learn(new.parent, new.name, at, None);
                }
                Listed::Special(special)
            }
            Listed::Folder => {
                let ino = self.core.nodes().find(old.parent, old.name);
                if let Some(ino) = ino {
                    moving = Some(self.core.moving.begin(ino));
                    attribute_sync::write_below(&self.core, ino).await?;
                }
                (is_whole, other_tags) = self.rename_folder(old, &from, new, &to).await?;
                Listed::Folder
            }
        };
        self.core
            .nodes()
            .rename((old.parent, old.name), (new.parent, new.name), &moved);
        self.retag(new, &other_tags);
        drop(moving);
        if is_whole {
            self.gone(old);
        } else {
            self.forget(old);
        }
        if !matches!(moved, Listed::Special(_)) {
            self.core.learn(new.parent, new.name, at, Some(moved));
        }
        Ok(is_whole)
    }

    /// Moves a folder's objects from one key to another; whether all of them, and what has
    /// another entity tag now.
    async fn rename_folder(
        &self,
        old: Name<'_>,
        from: &str,
        new: Name<'_>,
        to: &str,
    ) -> Result<(bool, Vec<OtherTag>), Fault> {
        let below = |key: &str| format!("{}/", &key[self.core.settings.prefix.len()..]);
        let renamed = self.core.renames.run(&below(from), &below(to)).await;
        let is_whole = |renamed: &Renamed| renamed.outcome == Outcome::Whole;
        if !renamed.as_ref().is_ok_and(is_whole) {
            // Some of its files may have both names for a while.
            self.forget(old);
            self.forget(new);
        }
        let renamed = renamed?;
        match renamed.outcome {
            Outcome::Whole => Ok((true, renamed.other_tags)),
            Outcome::Partly => Ok((false, renamed.other_tags)),
            Outcome::Nothing => {
                let mut nodes = self.core.nodes();
                let has_own = |folder: &mut Folder| folder.own.contains_key(old.name);
                if !nodes.folder(old.parent).is_some_and(has_own) {
                    return Err(Reason::NotFound.into());
                }
                // The store has nothing of it, and it is there all the same.
                if let Some(folder) = nodes.folder(new.parent) {
                    folder.keep_folder(new.name);
                }
                Ok((true, Vec::new()))
            }
            Outcome::Elsewhere => {
                let text = format!("another mount goes on with the rename of `{from}`");
                Err(Fault::because(Reason::Broken, text))
            }
        }
    }
}

/// Copies, then removes what was copied.
async fn move_object(
    core: &Core,
    from: Source<'_>,
    to: &str,
    when: &Condition,
) -> Result<ETag, Fault> {
    let copied = copy_object(&core.ways, from, to, when).await;
    let copied = copied.map_err(|error| match (error.failure, when) {
        (Failure::Changed, Condition::IfAbsent) => Fault::from(Reason::Exists),
        _ => error.into(),
    })?;
    if !delete_same(&core.ways, from.key, &from.info.etag).await? {
        return Err(Reason::Stale.into());
    }
    Ok(copied)
}
