// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Inodes, and what is known of the names in each folder ([`crate::facts`]).
//! [`crate::bucket_files`] holds the table behind one lock, and nobody holds this lock while
//! waiting for the store.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

use weft_store::{ETag, ObjectInfo};

use crate::attribute_object::{Attribute, OWN, Special};
use crate::attributes::Kind;
use crate::facts::Folder;
use crate::names::Listed;
use crate::node_names::{ByNumber, NodeNames};

/// The number of the mount's own folder, as FUSE wants it.
pub const ROOT: u64 = 1;

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
    /// Its owner in the job said what is known of it, which knows times better than the store.
    pub is_told: bool,
    /// The same, and the owner had it open for writing then.
    pub is_draft_there: bool,
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
    Folder(Box<Folder>),
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
    by_number: ByNumber<Node>,
    names: NodeNames,
}

impl File {
    /// The store has this content. When this mount wrote it, the mount knows better than the store,
    /// whose times are whole seconds.
    pub fn see(&mut self, info: &ObjectInfo, at: Instant) {
        let is_known = self.is_written_here || self.is_told;
        let is_same = is_known && self.info.etag == info.etag;
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
        self.is_told &= is_same;
        self.is_draft_there = false;
    }

    /// The same content has another entity tag.
    pub fn retag(&mut self, before: &str, after: &str) {
        if *self.info.etag.as_str() == *before {
            let are_of_it = self.pages_of.as_ref() == Some(&self.info.etag);
            self.info.etag = ETag::new(after);
            self.pages_of = are_of_it.then(|| self.info.etag.clone());
        }
    }

    /// Whether the kernel's pages are of this content; from now on they are.
    pub fn take_pages(&mut self, etag: &ETag) -> bool {
        let keeps = self.is_draft || self.pages_of.as_ref() == Some(etag);
        self.pages_of = Some(etag.clone());
        keeps
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
            body: Body::Folder(Box::default()),
        };
        Self {
            by_number: ByNumber::from_iter([(ROOT, root)]),
            names: NodeNames::default(),
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
        self.names.find(parent, name)
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
        if let Some(ino) = self.find(parent, name)
            && self.get(ino).is_some_and(|node| node.kind() == kind)
        {
            return ino;
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
            if let (Body::File(file), Listed::File(info)) = (&mut node.body, listed)
                && file.at <= at
                && !file.is_draft
                && !file.is_gone
            {
                file.see(info, at);
            }
            if let (Body::Special(old), Listed::Special(new)) = (&mut node.body, listed) {
                old.clone_from(new);
            }
            return ino;
        }
        let body = match listed {
            Listed::Folder => Body::Folder(Box::default()),
            Listed::Special(special) => Body::Special(special.clone()),
            Listed::File(info) => Body::File(File {
                info: info.clone(),
                at,
                pages_of: None,
                is_lost: false,
                is_written_here: false,
                is_told: false,
                is_draft_there: false,
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
        self.names.give(parent, name, ino);
        if let Some(folder) = self.by_number.get_mut(&parent) {
            folder.children += 1;
        }
        ino
    }

    /// A name that was taken from a node is its own again, unless another one has it.
    pub fn name_again(&mut self, ino: u64) {
        if let Some(node) = self.by_number.get(&ino) {
            self.names.give_if_free(node.parent, &node.name, ino);
        }
    }

    /// A name stands for nothing now; a node that had it lives on without, until it is forgotten.
    pub fn unname(&mut self, parent: u64, name: &str) {
        self.names.take(parent, name);
    }

    /// The node of one name has another one now.
    pub fn rename(&mut self, old: (u64, &str), new: (u64, &str), listed: &Listed) {
        let Some(ino) = self.find(old.0, old.1) else {
            return;
        };
        self.unname(old.0, old.1);
        self.names.give(new.0, new.1, ino);
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
            (Body::Folder(folder), _) => folder.forget_whole(),
            _ => {}
        }
        if let Some(folder) = self.by_number.get_mut(&old.0) {
            folder.children = folder.children.saturating_sub(1);
        }
        if let Some(folder) = self.by_number.get_mut(&new.0) {
            folder.children += 1;
        }
    }

    /// A folder got another name, and not by a call on this mount: what is known of its names may
    /// not be so any more. Both are paths as of [`Nodes::path`].
    pub fn moved_elsewhere(&mut self, from: &str, to: &str) {
        for path in [from, to] {
            let Some((parent, name)) = place_of(self, path) else {
                continue;
            };
            let ino = self.find(parent, name);
            let has_own_files = ino.is_some_and(|ino| has_own_files(self, ino));
            if let Some(folder) = ino.and_then(|ino| self.folder(ino)) {
                folder.forget_whole();
            }
            if let Some(folder) = self.folder(parent) {
                folder.forget(name);
                if path == from && !has_own_files {
                    folder.let_go(name);
                }
            }
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
                self.unname(parent, &name);
            }
            if let Some(folder) = self.by_number.get_mut(&parent) {
                folder.children = folder.children.saturating_sub(1);
            }
            ino = parent;
        }
    }
}

/// The number of the node at a path as of [`Nodes::path`], if the kernel knows it.
pub(crate) fn find_path(nodes: &Nodes, path: &str) -> Option<u64> {
    let (parent, name) = place_of(nodes, path)?;
    nodes.find(parent, name)
}

/// The folder that a path's last name is in, if the kernel knows it, and that name.
fn place_of<'a>(nodes: &Nodes, path: &'a str) -> Option<(u64, &'a str)> {
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let name = parts.pop()?;
    let mut parts = parts.into_iter();
    let parent = parts.try_fold(ROOT, |parent, part| nodes.find(parent, part))?;
    Some((parent, name))
}

/// Whether a file in a folder, or in a folder of it, waits to be published.
fn has_own_files(nodes: &Nodes, folder: u64) -> bool {
    nodes.by_number.iter().any(|(ino, node)| match &node.body {
        Body::Folder(facts) if facts.has_own_files() => {
            *ino == folder || nodes.is_below(*ino, folder)
        }
        _ => false,
    })
}
