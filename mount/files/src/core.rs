// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state that all calls share: the store, the nodes, the turns of listings. Below
//! [`crate::search`], [`crate::folders`] and [`crate::open_files`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Handle;
use weft_store::Store;

use crate::attribute_object::{Attribute, Modified, Time};
use crate::attributes::{Attributes, Entry};
use crate::facts::{Fact, Shown};
use crate::fault::{Fault, Reason};
use crate::moving_folders::{Moving, MovingFolders};
use crate::names::{self, Listed};
use crate::nodes::{Body, Nodes};
use crate::renames::Renames;
use crate::staging::stage::Stage;
use crate::staging::ways::Ways;
use crate::turns::Turns;

/// How the mount behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What every key of the mount begins with: empty, or ending in `/`.
    pub prefix: String,
    /// How long names and attributes stay valid.
    pub ttl: Duration,
    /// Of fetched bytes.
    pub cache_bytes: u64,
    /// How files are written.
    pub writes: Writes,
}

/// When what was written is in the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Publish {
    /// When close(2) or fsync(2) returns.
    #[default]
    Close,
    /// When fsync(2) returns; soon after close(2).
    Fsync,
    /// Soon after close(2); fsync(2) brings it to the disk of this host.
    Async,
}

/// How files are written.
#[derive(Debug, Clone)]
pub struct Writes {
    /// Where what is written lies until it is published.
    pub stage: Arc<Stage>,
    /// When it is published.
    pub publish: Publish,
    /// Of parts that are being sent, in memory.
    pub sending_bytes: u64,
    /// How long after a change attributes are written, unless the store is slow.
    pub attributes_after: Duration,
    /// Other mounts of the job write the same files, through this one.
    pub is_shared: bool,
}

impl Writes {
    /// Specified: when what was changed is in the store.
    pub const ATTRIBUTES_AFTER: Duration = Duration::from_secs(1);

    /// In a folder for temporary files that is removed at the end, for tests.
    ///
    /// # Errors
    /// What the system said.
    pub fn temporary(publish: Publish) -> std::io::Result<Self> {
        Ok(Self {
            stage: Arc::new(Stage::temporary(4 << 30)?),
            publish,
            sending_bytes: 128 << 20,
            attributes_after: Self::ATTRIBUTES_AFTER,
            is_shared: false,
        })
    }
}

/// What all calls share.
pub struct Core {
    /// How the mount behaves.
    pub settings: Settings,
    /// Where objects lie.
    pub store: Arc<dyn Store>,
    /// Where requests run.
    pub runtime: Handle,
    /// The same for uploads.
    pub ways: Ways,
    /// Where what is written lies until it is published.
    pub stage: Arc<Stage>,
    /// Folders that are getting other names.
    pub renames: Arc<Renames>,
    nodes: Arc<Mutex<Nodes>>,
    /// One listing of a folder at a time.
    pub listing_turns: Turns,
    /// One reading or writing of a folder's attributes at a time.
    pub attribute_turns: Turns,
    /// In which no attributes are written.
    pub moving: MovingFolders,
    /// Files and folders whose objects are getting other keys: nothing is published in them.
    renaming: MovingFolders,
    began: SystemTime,
    tell: fn(&str),
}

impl Core {
    /// Of a mount that begins now.
    pub fn new(store: Arc<dyn Store>, runtime: Handle, settings: Settings, tell: fn(&str)) -> Self {
        let sending_bytes = settings.writes.sending_bytes;
        let ways = Ways::new(Arc::clone(&store), runtime.clone(), sending_bytes);
        let stage = Arc::clone(&settings.writes.stage);
        let prefix = settings.prefix.clone();
        let nodes = Arc::new(Mutex::new(Nodes::new()));
        let views = Arc::clone(&nodes);
        let renames = Renames::new(ways.clone(), prefix, Arc::clone(&stage), views, tell);
        Self {
            ways,
            stage,
            renames: Arc::new(renames),
            settings,
            store,
            runtime,
            nodes,
            listing_turns: Turns::default(),
            attribute_turns: Turns::default(),
            moving: MovingFolders::default(),
            renaming: MovingFolders::default(),
            began: SystemTime::now(),
            tell,
        }
    }

    /// The nodes, for as long as nothing is waited for.
    pub fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a file, or the prefix of a folder.
    pub fn key(&self, ino: u64) -> Result<String, Fault> {
        let path = self.nodes().path(ino).ok_or(Reason::Stale)?;
        Ok(format!("{}{path}", self.settings.prefix))
    }

    /// The objects of a file or folder are getting other keys until what is returned is dropped.
    pub fn begin_rename(&self, ino: u64) -> Moving<'_> {
        self.renaming.begin(ino)
    }

    /// Whether the object of a file is getting another key.
    pub fn is_renaming(&self, ino: u64) -> bool {
        self.renaming.has(|moving| self.is_in(ino, moving))
    }

    /// Waits until the object of a file has its key.
    pub async fn wait_renamed(&self, ino: u64) {
        self.renaming.wait(|moving| self.is_in(ino, moving)).await;
    }

    fn is_in(&self, ino: u64, moving: u64) -> bool {
        ino == moving || self.nodes().is_below(ino, moving)
    }

    /// The node's name is gone; what is known of it stays.
    pub fn gone(&self, ino: u64) {
        let mut nodes = self.nodes();
        let kept = nodes.attribute(ino).cloned().unwrap_or_default();
        if let Some(file) = nodes.file(ino).filter(|file| !file.is_gone) {
            file.is_gone = true;
            file.kept = kept;
        }
        let name = nodes.get(ino).map(|node| (node.parent, node.name.clone()));
        if let Some((parent, name)) = name {
            // Unless another node has the name by now.
            if nodes.find(parent, &name) == Some(ino) {
                nodes.unname(parent, &name);
            }
        }
    }

    /// This mount changed a name in a folder.
    pub fn touched(&self, folder: u64) {
        let mut nodes = self.nodes();
        if let Some(folder) = nodes.folder(folder) {
            folder.modified = Some(SystemTime::now());
        }
    }

    /// Tells a warning, in one line.
    pub fn tell(&self, line: &str) {
        (self.tell)(line);
    }

    /// Tells of keys that have no names.
    pub fn tell_nameless(&self, prefix: &str, count: usize) {
        if count > 0 {
            (self.tell)(&format!(
                "{count} keys below `{prefix}` are no names of files (an empty part, `.`, `..`, or \
                 more than {} bytes); they are left out. Rename them with another client of the \
                 store.",
                names::NAME_BYTES
            ));
        }
    }

    /// Notes what a name stands for since `at`.
    pub fn learn(&self, parent: u64, name: &str, at: Instant, listed: Option<Listed>) {
        if let Some(folder) = self.nodes().folder(parent) {
            folder.learn(name, Fact { at, listed }, Shown::ByCall);
        }
    }

    /// The entry of a name, whose node the kernel is told of once more.
    pub fn enter(&self, parent: u64, name: &str, listed: &Listed, at: Instant) -> Entry {
        let mut nodes = self.nodes();
        let ino = nodes.enter(parent, name, listed, at);
        let entry = self.entry_in(&mut nodes, ino, at);
        entry.expect("it was just entered")
    }

    /// The same of a name for which that was done before, unless another node has it by now.
    pub fn entered(&self, ino: u64, parent: u64, name: &str, at: Instant) -> Option<Entry> {
        let mut nodes = self.nodes();
        let has_name = nodes.find(parent, name) == Some(ino);
        self.entry_in(&mut nodes, ino, at).filter(|_| has_name)
    }

    fn entry_in(&self, nodes: &mut Nodes, ino: u64, at: Instant) -> Option<Entry> {
        let attributes = self.attributes_in(nodes, ino)?;
        let parent = nodes.get(ino)?.parent;
        let folder = nodes.folder(parent);
        let valid = folder.map(|folder| folder.valid(at, self.settings.ttl));
        Some(Entry {
            attributes,
            valid: valid.unwrap_or_default(),
        })
    }

    /// What stat(2) shows of a node, as it is known.
    pub fn attributes_in(&self, nodes: &Nodes, ino: u64) -> Option<Attributes> {
        let node = nodes.get(ino)?;
        let default = Attribute::default();
        let set = nodes.attribute(ino).unwrap_or(&default);
        let set_modified = set.modified.as_ref();
        let changed = set.changed.map(Time::system);
        let (size_bytes, modified, has_name) = match &node.body {
            Body::Folder(folder) => {
                let set = set_modified.map(|set| set.at.system());
                let modified = folder.modified.or(set).unwrap_or(self.began);
                (0, modified, true)
            }
            Body::File(file) => {
                // A time that was set for the content that was there before is not the draft's.
                let is_set =
                    |set: &&Modified| !file.is_draft_there && *set.etag == *file.info.etag.as_str();
                let set = set_modified.filter(is_set);
                let set = set.map(|set| set.at.system());
                let modified = set.unwrap_or(file.info.modified);
                (file.info.size_bytes, modified, !file.is_gone)
            }
            Body::Special(special) => {
                let set = set_modified.map(|set| set.at.system());
                let modified = set.or(changed).unwrap_or(self.began);
                (special.size_bytes(), modified, true)
            }
        };
        let written = match &node.body {
            Body::Folder(folder) => folder.modified,
            Body::File(file) => Some(file.info.modified),
            Body::Special(_) => None,
        };
        Some(Attributes {
            ino,
            kind: node.kind(),
            size_bytes,
            modified,
            accessed: set.accessed.map_or(modified, Time::system),
            changed: changed.max(written).unwrap_or(modified),
            mode: set.mode,
            uid: set.uid,
            gid: set.gid,
            has_name,
            device: match &node.body {
                Body::Special(special) => special.device(),
                _ => 0,
            },
        })
    }
}
