// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open folders: opendir, readdir, readdir with attributes, releasedir.
//! [`crate::bucket_files`] holds them. [`crate::entered_ahead`]: what is prepared for a reader.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Mutex;

use crate::attribute_sync;
use crate::attributes::{Entry, Kind};
use crate::core::Core;
use crate::entered_ahead::EnteredAhead;
use crate::facts::{Fact, Shown, Since};
use crate::fault::{Fault, Reason};
use crate::handles::Open;
use crate::listing::{Arrived, Listing, NamedPage};
use crate::names::Named;
use crate::tree_walks::{Walks, Whole};

/// Chosen: names with attributes in the first answer to the kernel. The kernel asks for attributes
/// at the beginning of each folder, and further on only if the program looked at the names that it
/// got. `find` looks at none: with few here, the kernel and the mount make few inodes in vain.
pub const FIRST_ENTRIES: usize = 64;

/// An open folder.
struct OpenFolder {
    ino: u64,
    reading: Mutex<Reading>,
}

/// Where its reader stands.
struct Reading {
    listing: Listing,
    ahead: EnteredAhead,
    /// Behind the last name that was given.
    given_to: usize,
}

/// What a reader wants of an open folder.
#[derive(Clone, Copy)]
struct WantedNames {
    handle: u64,
    index: usize,
    with_attributes: bool,
}

/// A name of a page, when the page was asked for, and what became of the name since.
#[derive(Clone, Copy)]
struct Seen<'a> {
    named: &'a Named,
    at: Instant,
    since: &'a Since,
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

/// What reads folders.
struct FolderReader {
    core: Arc<Core>,
    walks: Walks,
}

/// The open folders of a mount.
pub struct Folders {
    reader: Arc<FolderReader>,
    open: Open<OpenFolder>,
}

impl Folders {
    /// None yet.
    pub fn new(core: Arc<Core>) -> Self {
        Self {
            reader: Arc::new(FolderReader {
                core,
                walks: Walks::default(),
            }),
            open: Open::default(),
        }
    }

    /// Opens a folder; nothing is asked of the store yet.
    ///
    /// # Errors
    /// `NotFolder`.
    pub fn open(&self, ino: u64) -> Result<u64, Fault> {
        let core = &self.reader.core;
        let prefix = core.key(ino)?;
        let ttl = core.settings.ttl;
        let known = {
            let mut nodes = core.nodes();
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
        let (began, ahead) = (listing.began, EnteredAhead::new(Arc::clone(core)));
        let handle = self.open.add(OpenFolder {
            ino,
            reading: Mutex::new(Reading {
                listing,
                ahead,
                given_to: 0,
            }),
        });
        if let Some(folder) = core.nodes().folder(ino) {
            folder.open_listings.opened(handle, began);
        }
        Ok(handle)
    }

    /// The folder of a handle, and the folder that it is in.
    ///
    /// # Errors
    /// `NotOpen`.
    pub fn numbers(&self, handle: u64) -> Result<(u64, u64), Fault> {
        let ino = self.open.get(handle)?.ino;
        let nodes = self.reader.core.nodes();
        let parent = nodes.get(ino).map_or(ino, |node| node.parent);
        Ok((ino, parent))
    }

    /// Gives the names from `index` on to `take`, until it wants no more or there are none. A page
    /// is waited for only while nothing was given yet. What follows is prepared afterwards.
    ///
    /// # Errors
    /// What the store said, of the first page that is needed.
    pub async fn read(
        &self,
        handle: u64,
        index: usize,
        with_attributes: bool,
        take: impl FnMut(usize, FolderEntry) -> bool + Send,
    ) -> Result<(), Fault> {
        let open = self.open.get(handle)?;
        let wanted = WantedNames {
            handle,
            index,
            with_attributes,
        };
        let next = self.reader.give(&open, &wanted, take).await?;
        if next > index {
            let reader = Arc::clone(&self.reader);
            self.reader.core.runtime.spawn(async move {
                let wanted = WantedNames {
                    index: next,
                    // The program has not looked at any name yet.
                    with_attributes: with_attributes && next > FIRST_ENTRIES,
                    ..wanted
                };
                reader.prepare(&open, &wanted).await;
            });
        }
        Ok(())
    }

    /// Closes a folder.
    pub fn close(&self, handle: u64) {
        let Some(open) = self.open.remove(handle) else {
            return;
        };
        if let Some(folder) = self.reader.core.nodes().folder(open.ino) {
            folder.open_listings.closed(handle);
        }
    }
}

impl FolderReader {
    /// Answers the index behind the last name that was taken.
    async fn give(
        &self,
        open: &OpenFolder,
        wanted: &WantedNames,
        take: impl FnMut(usize, FolderEntry) -> bool + Send,
    ) -> Result<usize, Fault> {
        let (first, ttl) = (wanted.index, self.core.settings.ttl);
        let mut reading = open.reading.lock().await;
        let Reading { listing, ahead, .. } = &mut *reading;
        if listing.is_behind(first) || (first == 0 && listing.is_stale(ttl)) {
            *listing = Listing::new(self.core.key(open.ino)?);
            ahead.clear();
        }
        if !wanted.with_attributes {
            ahead.clear();
        }
        let next = self
            .give_names(open.ino, &mut reading, *wanted, take)
            .await?;
        reading.given_to = next;
        Ok(next)
    }

    async fn give_names(
        &self,
        ino: u64,
        reading: &mut Reading,
        mut wanted: WantedNames,
        mut take: impl FnMut(usize, FolderEntry) -> bool + Send,
    ) -> Result<usize, Fault> {
        let Reading { listing, ahead, .. } = reading;
        let mut index = wanted.index;
        loop {
            match self.has_name(ino, listing, &wanted, index).await {
                Ok(true) => {}
                // Who reads on is told.
                Err(fault) if index == wanted.index => return Err(fault),
                Ok(false) | Err(_) => return Ok(index),
            }
            while let Some((page, at)) = listing.find(index) {
                let since = self.since(ino, page, at);
                let named = Seen {
                    named: &page.names[at],
                    at: page.at,
                    since: &since,
                };
                let given = if wanted.with_attributes {
                    self.entry(ino, named, ahead.take(index))
                } else {
                    self.name(ino, named)
                };
                let Some(given) = given else {
                    if matches!(since, Since::AtEnd) {
                        listing.leave(index);
                    }
                    // The name went meanwhile. Who got none yet waits for the next one.
                    wanted.index += usize::from(index == wanted.index);
                    index += 1;
                    continue;
                };
                let ino = given.ino;
                if !take(index, given) {
                    if wanted.with_attributes {
                        ahead.put_back(index, ino);
                    }
                    return Ok(index);
                }
                listing.given(index);
                index += 1;
            }
        }
    }

    /// Whether there is a name at `index`, with all that it needs. A page is waited for only where
    /// nothing was given yet.
    async fn has_name(
        &self,
        ino: u64,
        listing: &mut Listing,
        wanted: &WantedNames,
        index: usize,
    ) -> Result<bool, Fault> {
        loop {
            if let Some(folder) = self.core.nodes().folder(ino) {
                folder.read_by(wanted.handle, listing.began, self.core.settings.ttl);
            }
            if listing.find(index).is_some() {
                break;
            }
            if listing.has_own() {
                return Ok(false);
            }
            if listing.is_whole() {
                self.complete(ino, listing).await?;
                self.add_own(ino, listing);
            } else if index == wanted.index {
                self.next_page(ino, listing).await?;
            } else {
                return Ok(false);
            }
        }
        if wanted.with_attributes {
            attribute_sync::ensure(&self.core, ino).await?;
        }
        Ok(true)
    }

    /// Reads the next page if it is here, and makes the nodes of the names to come, while the
    /// kernel and the program work on what they got. What fails is done again by who needs it, and
    /// who is told.
    async fn prepare(&self, open: &OpenFolder, wanted: &WantedNames) {
        let mut reading = open.reading.lock().await;
        if reading.given_to != wanted.index {
            // The reader went elsewhere, and wants other pages.
            return;
        }
        let Reading { listing, ahead, .. } = &mut *reading;
        if listing.find(wanted.index).is_none() {
            let advanced = listing.advance_now(&self.core.store, &self.core.runtime);
            let Ok(Some(arrived)) = advanced else { return };
            if self.learn(open.ino, listing, arrived).await.is_err() {
                return;
            }
        }
        if wanted.with_attributes {
            ahead.fill(open.ino, listing, wanted.index);
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
            folder.learn(&name, Fact { at, listed }, Shown::OnPage);
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
        self.learn(ino, listing, arrived).await
    }

    /// Takes what the last page says.
    async fn learn(&self, ino: u64, listing: &mut Listing, arrived: Arrived) -> Result<(), Fault> {
        let prefix = self.core.key(ino)?;
        self.core.tell_nameless(&prefix, arrived.nameless);
        if let Some((at, object)) = arrived.attributes {
            attribute_sync::note_seen(&self.core, ino, at, object);
        }
        if arrived.shows_renames && prefix == self.core.settings.prefix {
            self.core.renames.notice();
        }
        if let (Some(page), Some(folder)) = (listing.last(), self.core.nodes().folder(ino)) {
            for (name, listed) in &page.names {
                let (at, listed) = (page.at, Some(listed.clone()));
                folder.learn(name, Fact { at, listed }, Shown::OnPage);
            }
            folder.is_large |= !arrived.is_last;
        }
        if arrived.is_last {
            self.complete(ino, listing).await?;
        }
        Ok(())
    }

    /// All pages have come. Where this fails it is done again before the listing ends.
    async fn complete(&self, ino: u64, listing: &mut Listing) -> Result<(), Fault> {
        if !listing.is_open() {
            return Ok(());
        }
        let prefix = self.core.key(ino)?;
        // Names that are no objects are among the folder's own.
        attribute_sync::ensure(&self.core, ino).await?;
        self.walks.forget(self.core.settings.ttl, Instant::now());
        let mut nodes = self.core.nodes();
        let mut own = Vec::new();
        if let Some(folder) = nodes.folder(ino) {
            folder.complete(listing.began);
            self.walks.note(&prefix, folder.folders());
            own = folder.unlisted(&HashSet::new());
        }
        listing.complete(own.into_iter().map(|(name, _)| name));
        Ok(())
    }

    /// Names that are no objects stand at the end, as they are when a reader comes there.
    fn add_own(&self, ino: u64, listing: &mut Listing) {
        let mut nodes = self.core.nodes();
        // Under the lock: what goes afterwards is known to be newer.
        let at = Instant::now();
        let folder = nodes.folder(ino);
        let unlisted = folder.map(|folder| folder.unlisted(listing.left()));
        drop(nodes);
        listing.add_own(unlisted.unwrap_or_default(), at);
    }

    /// A name that was listed at some time, and whose node the kernel is told of; the node was
    /// perhaps made `ahead`. Nothing if the name does not stand here any more.
    fn entry(&self, parent: u64, seen: Seen<'_>, ahead: Option<u64>) -> Option<FolderEntry> {
        let ((name, listed), at, since) = (seen.named, seen.at, seen.since);
        let entered = ahead.and_then(|ino| {
            let entered = self.core.entered(ino, parent, name, at);
            let entered = entered.filter(|_| matches!(since, Since::Same));
            if entered.is_none() {
                self.core.nodes().forget(ino, 1);
            }
            entered
        });
        let entry = match (entered, since) {
            (Some(entry), _) => entry,
            (None, Since::Same) => self.core.enter(parent, name, listed, at),
            (None, Since::Other(listed, at)) => self.core.enter(parent, name, listed, *at),
            (None, Since::AtEnd | Since::Went) => return None,
        };
        Some(FolderEntry {
            name: name.clone(),
            ino: entry.attributes.ino,
            kind: entry.attributes.kind,
            entry: Some(entry),
        })
    }

    /// The same without a node.
    fn name(&self, parent: u64, seen: Seen<'_>) -> Option<FolderEntry> {
        let (name, listed) = seen.named;
        let kind = match seen.since {
            Since::Same => listed.kind(),
            Since::Other(listed, _) => listed.kind(),
            Since::AtEnd | Since::Went => return None,
        };
        Some(FolderEntry {
            name: name.clone(),
            ino: self.core.nodes().number(parent, name, kind),
            kind,
            entry: None,
        })
    }

    /// What became of the name at `at` on a page.
    fn since(&self, parent: u64, page: &NamedPage, at: usize) -> Since {
        let (name, listed) = &page.names[at];
        let mut nodes = self.core.nodes();
        let folder = nodes.folder(parent);
        folder.map_or(Since::Same, |folder| {
            folder.since(name, listed, page.at, page.has_own)
        })
    }
}
