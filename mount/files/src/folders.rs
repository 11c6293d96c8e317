// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open folders: opendir, readdir, readdir with attributes, releasedir.
//! [`crate::bucket_files`] holds them.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Mutex;

use crate::attribute_sync;
use crate::attributes::{Entry, Kind};
use crate::core::Core;
use crate::facts::Fact;
use crate::fault::{Fault, Reason};
use crate::handles::Open;
use crate::listing::Listing;
use crate::names::Named;
use crate::tree_walks::{Walks, Whole};

/// An open folder.
struct OpenFolder {
    ino: u64,
    listing: Mutex<Listing>,
}

/// One name of an open folder.
#[derive(Debug, Clone)]
pub struct FolderEntry {
    /// In the folder.
    pub name: Box<str>,
    /// The number that stat(2) shows.
    pub ino: u64,
    /// File or folder.
    pub kind: Kind,
    /// With attributes, if they were asked for: then the kernel is told of the node.
    pub entry: Option<Entry>,
}

/// The open folders of a mount.
pub struct Folders {
    core: Arc<Core>,
    open: Open<OpenFolder>,
    walks: Walks,
}

impl Folders {
    /// None yet.
    pub fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            open: Open::default(),
            walks: Walks::default(),
        }
    }

    /// Opens a folder; nothing is asked of the store yet.
    ///
    /// # Errors
    /// `NotFolder`.
    pub fn open(&self, ino: u64) -> Result<u64, Fault> {
        let prefix = self.core.key(ino)?;
        let ttl = self.core.settings.ttl;
        let known = {
            let mut nodes = self.core.nodes();
            let folder = nodes.folder(ino).ok_or(Reason::NotFolder)?;
            let known = folder.known_whole(ttl);
            if known.is_none() {
                folder.sweep(ttl);
            }
            known
        };
        let listing = match known {
            Some((names, at)) => Listing::known(prefix, names, at),
            None => Listing::new(prefix),
        };
        Ok(self.open.add(OpenFolder {
            ino,
            listing: Mutex::new(listing),
        }))
    }

    /// The folder of a handle, and the folder that it is in.
    ///
    /// # Errors
    /// `NotOpen`.
    pub fn numbers(&self, handle: u64) -> Result<(u64, u64), Fault> {
        let ino = self.open.get(handle)?.ino;
        let parent = self.core.nodes().get(ino).map_or(ino, |node| node.parent);
        Ok((ino, parent))
    }

    /// Gives the names from `index` on to `take`, until it wants no more or there are none. A page
    /// is waited for only while nothing was given yet.
    ///
    /// # Errors
    /// What the store said, of the first page that is needed.
    pub async fn read(
        &self,
        handle: u64,
        mut index: usize,
        with_attributes: bool,
        mut take: impl FnMut(usize, FolderEntry) -> bool + Send,
    ) -> Result<(), Fault> {
        let open = self.open.get(handle)?;
        let mut listing = open.listing.lock().await;
        if listing.is_behind(index) || (index == 0 && listing.is_stale(self.core.settings.ttl)) {
            *listing = Listing::new(self.core.key(open.ino)?);
        }
        let mut has_given = false;
        loop {
            if let Some(folder) = self.core.nodes().folder(open.ino) {
                folder.read_by(handle, listing.began, self.core.settings.ttl);
            }
            if with_attributes && !has_given && listing.find(index).is_some() {
                attribute_sync::ensure(&self.core, open.ino).await?;
            }
            while let Some((page, at)) = listing.find(index) {
                let given = self.folder_entry(open.ino, &page.names[at], page.at, with_attributes);
                let ino = given.ino;
                if !take(index, given) {
                    if with_attributes {
                        self.core.nodes().forget(ino, 1);
                    }
                    return Ok(());
                }
                has_given = true;
                index += 1;
            }
            if has_given || listing.is_whole() {
                return Ok(());
            }
            self.next_page(open.ino, &mut listing).await?;
        }
    }

    /// The names of a folder that a program comes by on its way through a tree.
    async fn walk(&self, ino: u64) -> Result<Option<Listing>, Fault> {
        let prefix = self.core.key(ino)?;
        let (core, ttl) = (&self.core, self.core.settings.ttl);
        let taken = self
            .walks
            .take(&prefix, &core.store, &core.runtime, ttl)
            .await?;
        let Some(Whole {
            names,
            at,
            attributes,
        }) = taken
        else {
            return Ok(None);
        };
        attribute_sync::note_seen(core, ino, at, attributes);
        attribute_sync::ensure(core, ino).await?;
        let mut nodes = self.core.nodes();
        let Some(folder) = nodes.folder(ino) else {
            return Ok(None);
        };
        for (name, listed) in names {
            let listed = Some(listed);
            folder.learn(&name, Fact { at, listed });
        }
        folder.complete(at);
        let known = folder.known_whole(ttl);
        drop(nodes);
        Ok(known.map(|(names, at)| Listing::known(prefix, names, at)))
    }

    async fn next_page(&self, ino: u64, listing: &mut Listing) -> Result<(), Fault> {
        if listing.is_unread()
            && let Some(known) = self.walk(ino).await?
        {
            *listing = known;
            return Ok(());
        }
        let arrived = listing
            .advance(&self.core.store, &self.core.runtime)
            .await?;
        let prefix = self.core.key(ino)?;
        self.core.tell_nameless(&prefix, arrived.nameless);
        if let Some((at, object)) = arrived.attributes {
            attribute_sync::note_seen(&self.core, ino, at, object);
        }
        if arrived.shows_renames && prefix == self.core.settings.prefix {
            self.core.renames.notice();
        }
        if arrived.is_last {
            // Names that are no objects stand at the end.
            attribute_sync::ensure(&self.core, ino).await?;
        }
        let began = listing.began;
        let Some(page) = listing.last() else {
            return Ok(());
        };
        let mut nodes = self.core.nodes();
        let Some(folder) = nodes.folder(ino) else {
            return Ok(());
        };
        for (name, listed) in &page.names {
            let listed = Some(listed.clone());
            folder.learn(
                name,
                Fact {
                    at: page.at,
                    listed,
                },
            );
        }
        if arrived.is_last {
            folder.complete(began);
            self.walks.note(&prefix, folder.folders());
            let own = folder.own_names().filter(|(name, _)| folder.lacks(name));
            let own = own.collect();
            drop(nodes);
            listing.add_own(own);
        } else {
            folder.is_large = true;
        }
        Ok(())
    }

    fn folder_entry(
        &self,
        parent: u64,
        named: &Named,
        at: Instant,
        with_attributes: bool,
    ) -> FolderEntry {
        let (name, listed) = named;
        let kind = listed.kind();
        let entry = with_attributes.then(|| self.core.enter(parent, name, listed, at));
        let ino = match &entry {
            Some(entry) => entry.attributes.ino,
            None => self.core.nodes().number(parent, name, kind),
        };
        FolderEntry {
            name: name.clone(),
            ino,
            kind,
            entry,
        }
    }

    /// Closes a folder.
    pub fn close(&self, handle: u64) {
        self.open.remove(handle);
    }
}
