// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Inodes, and what is known of the names in each folder. [`crate::bucket_files`] holds the table
//! behind one lock, which nobody holds while waiting for the store.
//!
//! A fact says what a name stood for, or that it stood for nothing, at one moment. A listing that
//! was read to its end is a fact about all names that it does not have. Facts are believed for the
//! mount's time to live.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant, SystemTime};

use weft_store::{ETag, ObjectInfo};

use crate::attribute_object::{Attribute, OWN, Special};
use crate::attributes::Kind;
use crate::known_attributes::KnownAttributes;
use crate::names::{Listed, Named};

/// The number of the mount's own folder, as FUSE wants it.
pub const ROOT: u64 = 1;

/// What a name stood for.
#[derive(Debug, Clone)]
pub struct Fact {
    /// When the request was sent that showed it.
    pub at: Instant,
    /// `None` where there was nothing.
    pub listed: Option<Listed>,
}

/// What is known of a folder's names.
#[derive(Debug, Default)]
pub struct Folder {
    /// By name.
    facts: HashMap<Box<str>, Fact>,
    /// When the last listing began that was read to its end.
    complete_at: Option<Instant>,
    /// Its first page was not its last: names are asked for one by one.
    pub is_large: bool,
    /// Names of which the store may have nothing: files that were not published yet, folders that
    /// were emptied here.
    pub own: HashMap<Box<str>, Listed>,
    /// Modes, owners, times and so on of the names in it.
    pub attributes: KnownAttributes,
    /// When this mount changed a name in it.
    pub modified: Option<SystemTime>,
}

/// An object that has a node.
#[derive(Debug)]
pub struct File {
    /// Its content as it was last seen.
    pub info: ObjectInfo,
    /// When.
    pub at: Instant,
    /// The content whose pages the kernel may hold.
    pub pages_of: Option<ETag>,
    /// What is known of it is what somebody failed to write.
    pub is_lost: bool,
    /// Its last content was written by this mount.
    pub is_written_here: bool,
    /// Its name is gone; it lives while it is open.
    pub is_gone: bool,
    /// Somebody writes it: what is known here is newer than the store.
    pub is_draft: bool,
    /// Its attributes, once its name is gone.
    pub kept: Attribute,
}

/// File or folder.
#[derive(Debug)]
pub enum Body {
    /// Has names.
    Folder(Folder),
    /// Has bytes.
    File(File),
    /// Has neither.
    Special(Special),
}

/// An inode.
#[derive(Debug)]
pub struct Node {
    /// The folder's number; the root is its own.
    pub parent: u64,
    /// In its folder.
    pub name: Box<str>,
    /// How often the kernel was told of it and did not forget it.
    lookups: u64,
    /// How many nodes have it as their folder.
    children: usize,
    /// What it is.
    pub body: Body,
}

/// All inodes that the kernel knows, and their folders.
#[derive(Debug)]
pub struct Nodes {
    by_number: HashMap<u64, Node>,
    by_name: HashMap<(u64, Box<str>), u64>,
}

impl Folder {
    /// The names that are no objects are those of the attributes.
    pub fn own_specials(&mut self) {
        self.own
            .retain(|_, listed| !matches!(listed, Listed::Special(_)));
        self.own.extend(self.attributes.specials());
    }

    /// What is known of a name, if that is not older than `ttl`: `Some(None)` is that there is
    /// nothing.
    pub fn known(&self, name: &str, ttl: Duration) -> Option<(Option<Listed>, Instant)> {
        if let Some(listed) = self.own.get(name) {
            return Some((Some(listed.clone()), Instant::now()));
        }
        if let Some(fact) = self.facts.get(name) {
            if fact.at.elapsed() < ttl {
                return Some((fact.listed.clone(), fact.at));
            }
        }
        let complete_at = self.complete_at.filter(|at| at.elapsed() < ttl)?;
        Some((None, complete_at))
    }

    /// All names, if a whole listing is not older than `ttl`, and when it was asked for; in no
    /// order.
    pub fn known_whole(&self, ttl: Duration) -> Option<(Vec<Named>, Instant)> {
        let at = self.complete_at.filter(|at| at.elapsed() < ttl)?;
        let facts = self.facts.iter();
        let facts = facts.filter(|(name, _)| !self.own.contains_key(*name));
        let there = facts.filter_map(|(name, fact)| Some((name.clone(), fact.listed.clone()?)));
        Some((there.chain(self.own_names()).collect(), at))
    }

    /// The names of which the store may have nothing.
    pub fn own_names(&self) -> impl Iterator<Item = Named> {
        self.own
            .iter()
            .map(|(name, listed)| (name.clone(), listed.clone()))
    }

    /// The names of folders in it, as far as they are known; in no order.
    pub fn folders(&self) -> impl Iterator<Item = Box<str>> {
        let facts = self.facts.iter();
        let folders = facts.filter(|(_, fact)| matches!(fact.listed, Some(Listed::Folder)));
        folders.map(|(name, _)| name.clone())
    }

    /// Takes a fact, unless a younger one is known. A folder hides an object of its name, however
    /// they come.
    pub fn learn(&mut self, name: &str, fact: Fact) {
        match self.facts.get_mut(name) {
            Some(old) if old.at > fact.at => {}
            Some(old) if old.at == fact.at && matches!(old.listed, Some(Listed::Folder)) => {}
            Some(old) => *old = fact,
            None => {
                self.facts.insert(name.into(), fact);
            }
        }
    }

    /// Drops what is known of a name.
    pub fn forget(&mut self, name: &str) {
        self.facts.remove(name);
        self.complete_at = None;
    }

    /// Whether no fact says that there is something of this name.
    pub fn lacks(&self, name: &str) -> bool {
        let fact = self.facts.get(name);
        fact.is_none_or(|fact| fact.listed.is_none())
    }

    /// A listing that began at `at` was read to its end: what it did not show is gone.
    pub fn complete(&mut self, at: Instant) {
        self.facts.retain(|_, fact| fact.at >= at);
        self.complete_at = Some(at);
    }

    /// Whether something is known that the store does not have.
    fn is_kept(&self) -> bool {
        let has_own = |listed: &Listed| !matches!(listed, Listed::Special(_));
        self.own.values().any(has_own) || self.attributes.is_changed()
    }

    /// Drops facts that nobody believes any more.
    pub fn sweep(&mut self, ttl: Duration) {
        self.facts.retain(|_, fact| fact.at.elapsed() < ttl);
    }
}

impl File {
    /// The store has this content. When this mount wrote it, the mount knows better than the store,
    /// whose times are whole seconds.
    pub fn see(&mut self, info: &ObjectInfo, at: Instant) {
        let is_same = self.is_written_here && self.info.etag == info.etag;
        let modified = if is_same {
            self.info.modified
        } else {
            info.modified
        };
        self.info = ObjectInfo {
            modified,
            ..info.clone()
        };
        self.at = at;
    }
}

impl Node {
    /// File or folder.
    pub fn kind(&self) -> Kind {
        match &self.body {
            Body::Folder(_) => Kind::Folder,
            Body::File(_) => Kind::File,
            Body::Special(special) => special.kind(),
        }
    }
}

impl Nodes {
    /// The root alone.
    pub fn new() -> Self {
        let root = Node {
            parent: ROOT,
            name: Box::from(""),
            lookups: 1,
            children: 0,
            body: Body::Folder(Folder::default()),
        };
        Self {
            by_number: HashMap::from([(ROOT, root)]),
            by_name: HashMap::new(),
        }
    }

    /// A node, if there is one of this number.
    pub fn get(&self, ino: u64) -> Option<&Node> {
        self.by_number.get(&ino)
    }

    /// A node, to be changed.
    pub fn get_mut(&mut self, ino: u64) -> Option<&mut Node> {
        self.by_number.get_mut(&ino)
    }

    /// The number that a name has, if it has a node.
    pub fn find(&self, parent: u64, name: &str) -> Option<u64> {
        self.by_name.get(&(parent, name.into())).copied()
    }

    /// A folder's facts.
    pub fn folder(&mut self, ino: u64) -> Option<&mut Folder> {
        match &mut self.by_number.get_mut(&ino)?.body {
            Body::Folder(folder) => Some(folder),
            Body::File(_) | Body::Special(_) => None,
        }
    }

    /// A file's content.
    pub fn file(&mut self, ino: u64) -> Option<&mut File> {
        match &mut self.by_number.get_mut(&ino)?.body {
            Body::File(file) => Some(file),
            Body::Folder(_) | Body::Special(_) => None,
        }
    }

    /// The folder whose object has a node's attributes, and the name there; none for a file whose
    /// name is gone.
    pub fn attribute_place(&self, ino: u64) -> Option<(u64, Box<str>)> {
        let node = self.by_number.get(&ino)?;
        match &node.body {
            _ if ino == ROOT => Some((ROOT, OWN.into())),
            Body::File(file) if file.is_gone => None,
            _ => Some((node.parent, node.name.clone())),
        }
    }

    /// A node's attributes, where any were set.
    pub fn attribute(&self, ino: u64) -> Option<&Attribute> {
        let node = self.by_number.get(&ino)?;
        let (folder, name) = match &node.body {
            _ if ino == ROOT => (ROOT, OWN),
            Body::File(file) if file.is_gone => return Some(&file.kept),
            _ => (node.parent, &*node.name),
        };
        match &self.by_number.get(&folder)?.body {
            Body::Folder(folder) => folder.attributes.get(name),
            _ => None,
        }
    }

    /// A node's attributes are these now; the folder whose object says so.
    pub fn set_attribute(&mut self, ino: u64, attribute: Attribute) -> Option<u64> {
        let Some((folder, name)) = self.attribute_place(ino) else {
            if let Some(file) = self.file(ino) {
                file.kept = attribute;
            }
            return None;
        };
        self.folder(folder)?.attributes.set(&name, Some(attribute));
        Some(folder)
    }

    /// Folders in which attributes were changed that are not written yet.
    pub fn with_changed_attributes(&self) -> Vec<u64> {
        let changed = |(ino, node): (&u64, &Node)| match &node.body {
            Body::Folder(folder) if folder.attributes.is_changed() => Some(*ino),
            _ => None,
        };
        self.by_number.iter().filter_map(changed).collect()
    }

    /// The key of a file, or the prefix of a folder, which ends in `/` or is empty; below the
    /// mount's own prefix.
    pub fn path(&self, ino: u64) -> Option<String> {
        let mut parts = Vec::new();
        let mut at = ino;
        while at != ROOT {
            let node = self.by_number.get(&at)?;
            parts.push(&*node.name);
            at = node.parent;
        }
        parts.reverse();
        let mut path = parts.join("/");
        if !path.is_empty() && self.get(ino)?.kind() == Kind::Folder {
            path.push('/');
        }
        Some(path)
    }

    /// Whether a node is in a folder, or in a folder of it.
    pub fn is_below(&self, ino: u64, folder: u64) -> bool {
        let mut at = ino;
        while let Some(node) = self.by_number.get(&at).filter(|_| at != ROOT) {
            if node.parent == folder {
                return true;
            }
            at = node.parent;
        }
        false
    }

    /// The number that a name would have: from its path and kind, so that readdir(3) and stat(2)
    /// agree, and that it is the same when the kernel forgets it and asks again.
    pub fn number(&self, parent: u64, name: &str, kind: Kind) -> u64 {
        if let Some(ino) = self.find(parent, name) {
            if self.get(ino).is_some_and(|node| node.kind() == kind) {
                return ino;
            }
        }
        let mut hasher = DefaultHasher::new();
        (parent, name, kind as u8).hash(&mut hasher);
        let mut ino = hasher.finish();
        while ino <= ROOT || self.by_number.contains_key(&ino) {
            ino = ino.wrapping_add(1);
        }
        ino
    }

    /// The node of a name, made where there is none; the kernel is told of it once more.
    pub fn enter(&mut self, parent: u64, name: &str, listed: &Listed, at: Instant) -> u64 {
        let ino = self.number(parent, name, listed.kind());
        if let Some(node) = self.by_number.get_mut(&ino) {
            node.lookups += 1;
            if let (Body::File(file), Listed::File(info)) = (&mut node.body, listed) {
                if file.at <= at && !file.is_draft && !file.is_gone {
                    file.see(info, at);
                }
            }
            if let (Body::Special(old), Listed::Special(new)) = (&mut node.body, listed) {
                old.clone_from(new);
            }
            return ino;
        }
        let body = match listed {
            Listed::Folder => Body::Folder(Folder::default()),
            Listed::Special(special) => Body::Special(special.clone()),
            Listed::File(info) => Body::File(File {
                info: info.clone(),
                at,
                pages_of: None,
                is_lost: false,
                is_written_here: false,
                is_draft: false,
                is_gone: false,
                kept: Attribute::default(),
            }),
        };
        let node = Node {
            parent,
            name: name.into(),
            lookups: 1,
            children: 0,
            body,
        };
        self.by_number.insert(ino, node);
        self.by_name.insert((parent, name.into()), ino);
        if let Some(folder) = self.by_number.get_mut(&parent) {
            folder.children += 1;
        }
        ino
    }

    /// A name stands for nothing now; a node that had it lives on without, until it is forgotten.
    pub fn unname(&mut self, parent: u64, name: &str) {
        self.by_name.remove(&(parent, name.into()));
    }

    /// The node of one name has another one now.
    pub fn rename(&mut self, old: (u64, &str), new: (u64, &str), listed: &Listed) {
        let Some(ino) = self.find(old.0, old.1) else {
            return;
        };
        self.by_name.remove(&(old.0, old.1.into()));
        self.by_name.insert((new.0, new.1.into()), ino);
        let Some(node) = self.by_number.get_mut(&ino) else {
            return;
        };
        (node.parent, node.name) = (new.0, new.1.into());
        match (&mut node.body, listed) {
            (Body::File(file), Listed::File(info)) => {
                file.pages_of =
                    (file.pages_of.as_ref() == Some(&file.info.etag)).then(|| info.etag.clone());
                file.info = info.clone();
                file.at = Instant::now();
            }
            // What was known of its names was known by the old one.
            (Body::Folder(folder), _) => folder.complete_at = None,
            _ => {}
        }
        if let Some(folder) = self.by_number.get_mut(&old.0) {
            folder.children = folder.children.saturating_sub(1);
        }
        if let Some(folder) = self.by_number.get_mut(&new.0) {
            folder.children += 1;
        }
    }

    /// The kernel forgets what it was told `count` times.
    pub fn forget(&mut self, ino: u64, count: u64) {
        if let Some(node) = self.by_number.get_mut(&ino) {
            node.lookups = node.lookups.saturating_sub(count);
        }
        self.drop_unused(ino);
    }

    fn drop_unused(&mut self, mut ino: u64) {
        while ino != ROOT {
            let Some(node) = self.by_number.get(&ino) else {
                return;
            };
            let is_kept = match &node.body {
                Body::Folder(folder) => folder.is_kept(),
                Body::File(file) => file.is_draft,
                Body::Special(_) => false,
            };
            if node.lookups > 0 || node.children > 0 || is_kept {
                return;
            }
            let (parent, name) = (node.parent, node.name.clone());
            self.by_number.remove(&ino);
            if self.find(parent, &name) == Some(ino) {
                self.by_name.remove(&(parent, name));
            }
            if let Some(folder) = self.by_number.get_mut(&parent) {
                folder.children = folder.children.saturating_sub(1);
            }
            ino = parent;
        }
    }
}
