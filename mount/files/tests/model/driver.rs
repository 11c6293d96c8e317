// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A mount over a store in memory, which takes the calls of [`crate::world`], as the kernel would
//! make them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Runtime;
use weft_files::{
    BucketFiles, Fault, FolderEntry, Kind, Making, Mode, Name, Publish, Reason, Settings, Times,
    Writes, resize_open,
};
use weft_store::memory::MemoryStore;

use crate::world::{Call, Opens, SLOTS, Seen};

const ROOT: u64 = 1;
const PROCESS: u32 = 7;
/// No time runs out, however slow the machine is; what broke off is tried again at once.
const TIMES: Times = Times {
    patience: Duration::from_secs(60),
    heartbeat: Duration::from_secs(5),
    least_sure: Duration::from_secs(20),
    wait: Duration::from_millis(20),
    pause: Duration::from_millis(2),
};

pub struct Driver {
    runtime: Runtime,
    pub store: Arc<MemoryStore>,
    ttl: Duration,
    files: BucketFiles,
    slots: [Option<u64>; SLOTS],
    /// How often the kernel was told of each node.
    told: HashMap<u64, u64>,
}

fn mount(runtime: &Runtime, store: &Arc<MemoryStore>, ttl: Duration) -> BucketFiles {
    let settings = Settings {
        prefix: String::new(),
        ttl,
        cache_bytes: 64 << 20,
        writes: Writes::temporary(Publish::Close).unwrap(),
    };
    let handle = runtime.handle().clone();
    let files = BucketFiles::new(Arc::clone(store) as _, handle, settings, |_| {});
    files.finish_renames(TIMES);
    files
}

fn reason(fault: Fault) -> Reason {
    fault.reason
}

impl Driver {
    pub fn new(ttl: Duration) -> Self {
        let runtime = Runtime::new().unwrap();
        let store = Arc::new(MemoryStore::new());
        let files = mount(&runtime, &store, ttl);
        Self {
            runtime,
            store,
            ttl,
            files,
            slots: [None; SLOTS],
            told: HashMap::new(),
        }
    }

    pub fn call(&mut self, call: &Call) -> Result<Seen, Reason> {
        match call {
            Call::Create(path, slot) => {
                let (parent, name) = self.place(path)?;
                let new = Name {
                    parent,
                    name: &name,
                };
                let mode = mode(Opens::Writes);
                let created = self.files.open_files.create(new, mode, &Making::FILE);
                let (entry, opened) = self.runtime.block_on(created).map_err(reason)?;
                self.tell(entry.attributes.ino);
                self.slots[*slot] = Some(opened.handle);
            }
            Call::Open(path, slot, opens) => {
                let (ino, _) = self.walk(path)?;
                let opened = self.files.open_files.open(ino, mode(*opens));
                let opened = self.runtime.block_on(opened).map_err(reason)?;
                self.slots[*slot] = Some(opened.handle);
            }
            Call::Resize(path, size) => {
                let (ino, _) = self.walk(path)?;
                let resized = self.files.open_files.resize(ino, *size);
                self.runtime.block_on(resized).map_err(reason)?;
            }
            Call::Look(path) => {
                let (ino, kind) = self.walk(path)?;
                if kind == Kind::Folder {
                    return Ok(Seen::Folder);
                }
                let found = self.runtime.block_on(self.files.attributes(ino));
                return Ok(Seen::File(found.map_err(reason)?.attributes.size_bytes));
            }
            Call::ReadWhole(path) => return self.read_whole(path),
            Call::List(path) => return self.list(path),
            Call::Forget => self.forget(),
            Call::Remount => self.remount(),
            Call::Rename(..) | Call::Unlink(_) | Call::MakeFolder(_) | Call::RemoveFolder(_) => {
                self.change_names(call)?;
            }
            _ => return self.call_open(call),
        }
        Ok(Seen::Done)
    }

    fn call_open(&mut self, call: &Call) -> Result<Seen, Reason> {
        let (files, runtime) = (&self.files.open_files, &self.runtime);
        let handle = |slot: &usize| self.slots[*slot].ok_or(Reason::NotOpen);
        match call {
            Call::Write(slot, offset, data) => {
                let data = Bytes::copy_from_slice(data);
                let written = files.write(handle(slot)?, *offset, data);
                runtime.block_on(written).map_err(reason)?;
            }
            Call::Cut(slot, size) => {
                let cut = resize_open(files, handle(slot)?, *size);
                runtime.block_on(cut).map_err(reason)?;
            }
            Call::Read(slot, offset, size) => {
                let read = files.read(handle(slot)?, *offset, *size);
                let read = runtime.block_on(read).map_err(reason)?;
                return Ok(Seen::Bytes(read.to_vec()));
            }
            Call::Sync(slot) => {
                let synced = files.publish(handle(slot)?);
                runtime.block_on(synced).map_err(reason)?;
            }
            Call::Close(slot) => {
                let handle = handle(slot)?;
                let flushed = runtime.block_on(files.flush(handle, PROCESS));
                // The kernel tells nobody how this ended.
                let _ = runtime.block_on(files.close(handle));
                self.slots[*slot] = None;
                flushed.map_err(reason)?;
            }
            _ => unreachable!("{call:?} is none of an open file"),
        }
        Ok(Seen::Done)
    }

    fn change_names(&mut self, call: &Call) -> Result<(), Reason> {
        match call {
            Call::Rename(old, new, may_replace) => {
                // As the kernel does.
                self.walk(old)?;
                let (old, new) = (self.place(old)?, self.place(new)?);
                let at = |(parent, name): &(u64, String)| (*parent, name.clone());
                let ((old_parent, old), (new_parent, new)) = (at(&old), at(&new));
                let old = Name {
                    parent: old_parent,
                    name: &old,
                };
                let new = Name {
                    parent: new_parent,
                    name: &new,
                };
                let renamed = self.files.rename(old, new, *may_replace);
                self.runtime.block_on(renamed).map_err(reason)
            }
            Call::Unlink(path) | Call::RemoveFolder(path) | Call::MakeFolder(path) => {
                let (parent, name) = self.place(path)?;
                let name = Name {
                    parent,
                    name: &name,
                };
                let (files, runtime) = (&self.files, &self.runtime);
                match call {
                    Call::Unlink(_) => runtime.block_on(files.unlink(name)),
                    Call::RemoveFolder(_) => runtime.block_on(files.remove_folder(name)),
                    _ => {
                        let made = runtime.block_on(files.make_folder(name, &Making::FOLDER));
                        made.map(|entry| self.tell(entry.attributes.ino))
                    }
                }
                .map_err(reason)
            }
            _ => unreachable!("{call:?} changes no names"),
        }
    }

    fn tell(&mut self, ino: u64) {
        *self.told.entry(ino).or_default() += 1;
    }

    fn walk(&mut self, path: &str) -> Result<(u64, Kind), Reason> {
        let mut at = (ROOT, Kind::Folder);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if at.1 != Kind::Folder {
                return Err(Reason::NotFolder);
            }
            let found = self.runtime.block_on(self.files.lookup(at.0, name));
            let attributes = found.map_err(reason)?.attributes;
            self.tell(attributes.ino);
            at = (attributes.ino, attributes.kind);
        }
        Ok(at)
    }

    /// The folder that has a name, and the name.
    fn place(&mut self, path: &str) -> Result<(u64, String), Reason> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        match self.walk(above)? {
            (parent, Kind::Folder) => Ok((parent, name.to_owned())),
            _ => Err(Reason::NotFolder),
        }
    }

    fn read_whole(&mut self, path: &str) -> Result<Seen, Reason> {
        let (ino, _) = self.walk(path)?;
        let (files, runtime) = (&self.files.open_files, &self.runtime);
        let opened = runtime.block_on(files.open(ino, mode(Opens::Reads)));
        let handle = opened.map_err(reason)?.handle;
        let read = runtime.block_on(files.read(handle, 0, 64 << 20));
        let _ = runtime.block_on(files.close(handle));
        Ok(Seen::Bytes(read.map_err(reason)?.to_vec()))
    }

    fn list(&mut self, path: &str) -> Result<Seen, Reason> {
        let (ino, kind) = self.walk(path)?;
        if kind != Kind::Folder {
            return Err(Reason::NotFolder);
        }
        let folders = &self.files.folders;
        let handle = folders.open(ino).map_err(reason)?;
        let mut names = Vec::new();
        let read = loop {
            let next = names.len();
            let take = |_, entry: FolderEntry| {
                names.push((entry.name.to_string(), entry.kind == Kind::Folder));
                true
            };
            match self
                .runtime
                .block_on(folders.read(handle, next, false, take))
            {
                Ok(()) if names.len() > next => {}
                read => break read,
            }
        };
        folders.close(handle);
        read.map_err(reason)?;
        names.sort();
        Ok(Seen::Names(names))
    }

    fn forget(&mut self) {
        if self.slots.iter().flatten().next().is_some() {
            return;
        }
        for (ino, count) in self.told.drain() {
            self.files.forget(ino, count);
        }
    }

    fn remount(&mut self) {
        let limit = Duration::from_secs(100);
        self.runtime.block_on(self.files.settle_all(limit));
        self.told.clear();
        self.files = mount(&self.runtime, &self.store, self.ttl);
    }

    /// Waits until renames that broke off are done.
    pub fn await_renames(&self) {
        let began = Instant::now();
        let is_record = |key: &String| key.starts_with(".weft-renames/");
        while self.store.keys().iter().any(is_record) {
            assert!(began.elapsed() < Duration::from_secs(100), "they end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn mode(opens: Opens) -> Mode {
    Mode {
        writes: opens != Opens::Reads,
        truncates: opens == Opens::Truncates,
        process: PROCESS,
        ..Mode::default()
    }
}
