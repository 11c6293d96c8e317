// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of files that several nodes of a job write at once: three mounts over one store in memory,
//! which ask each other without a network.

mod anew;
mod failures;
mod moved_folders;
mod names;
mod times;
mod writing;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Runtime;
use weft_files::shared::{answers, shared_names};
use weft_files::{
    BucketFiles, Fault, Job, JobStore, Making, Mode, Name, Neighbours, Publish, Reason, Settings,
    SharedFiles, Unreached, Writes,
};
use weft_store::memory::MemoryStore;

const ROOT: u64 = 1;
const NODES: usize = 3;
/// Unaligned, as ior-hard's.
const PIECE: usize = 47_008;
const WRITE: Mode = Mode::WRITES;

#[derive(Default)]
struct Hosts {
    shared: [OnceLock<Arc<SharedFiles>>; NODES],
    is_dead: [AtomicBool; NODES],
}

struct Seen {
    own: usize,
    hosts: Arc<Hosts>,
}

#[async_trait]
impl Neighbours for Seen {
    fn own(&self) -> usize {
        self.own
    }

    fn node_count(&self) -> usize {
        NODES
    }

    async fn ask(&self, node: usize, question: Bytes) -> Result<Bytes, Unreached> {
        let is_dead = |node: usize| self.hosts.is_dead[node].load(Ordering::Relaxed);
        if is_dead(node) || is_dead(self.own) {
            return Err("dead".into());
        }
        let shared = self.hosts.shared[node].get().ok_or("not there yet")?;
        Ok(answers::answer(shared, self.own, question)
            .await
            .concat()
            .into())
    }
}

struct World {
    runtime: Runtime,
    store: Arc<MemoryStore>,
    hosts: Arc<Hosts>,
}

impl World {
    fn new() -> Self {
        Self::with_limit(1000)
    }

    /// Each node may have so many files open at each owner.
    fn with_limit(open_limit: usize) -> Self {
        Self::with(open_limit, Duration::from_secs(1), true)
    }

    /// The nodes write files together if `is_shared`.
    fn with(open_limit: usize, ttl: Duration, is_shared: bool) -> Self {
        let runtime = Runtime::new().unwrap();
        let store = Arc::new(MemoryStore::new());
        let hosts = Arc::new(Hosts::default());
        for own in 0..NODES {
            let seen = Seen {
                own,
                hosts: Arc::clone(&hosts),
            };
            let job = Arc::new(Job::new(Arc::new(seen), |_| {}));
            let over = Arc::clone(&store) as _;
            let job_store = Arc::new(JobStore::new(over, Arc::clone(&job), ttl));
            let settings = Settings {
                prefix: "p/".to_owned(),
                ttl,
                cache_bytes: 256 << 20,
                writes: Writes {
                    is_shared,
                    ..Writes::temporary(Publish::Close).unwrap()
                },
            };
            let handle = runtime.handle().clone();
            let files = BucketFiles::new(Arc::clone(&job_store) as _, handle, settings, |_| {});
            let files = Arc::new(files.with_job(job_store));
            let shared = SharedFiles::new(files, is_shared.then_some(job), open_limit);
            answers::watch(&shared);
            let _ = hosts.shared[own].set(shared);
        }
        Self {
            runtime,
            store,
            hosts,
        }
    }

    fn node(&self, node: usize) -> Node<'_> {
        Node {
            runtime: &self.runtime,
            shared: self.hosts.shared[node].get().unwrap(),
        }
    }

    /// Which node has a name's draft; the name is removed again.
    fn owner_of(&self, name: &str) -> usize {
        let handle = self.node(0).create(name).unwrap();
        let has = |node: &usize| {
            let files = &self.node(*node).shared.files;
            let found = self.runtime.block_on(files.lookup(ROOT, name));
            found.is_ok()
        };
        let owner = (0..NODES).rev().find(has).unwrap();
        self.node(0).close(handle).unwrap();
        self.node(0).unlink(name).unwrap();
        owner
    }

    /// A name that a node owns.
    fn name_of(&self, owner: usize) -> String {
        let mut names = (0..).map(|number| format!("file{number}"));
        names.find(|name| self.owner_of(name) == owner).unwrap()
    }
}

#[derive(Clone, Copy)]
struct Node<'a> {
    runtime: &'a Runtime,
    shared: &'a Arc<SharedFiles>,
}

impl Node<'_> {
    fn create_as(&self, name: &str, mode: Mode) -> Result<u64, Fault> {
        let new = Name { parent: ROOT, name };
        let created = self.shared.create(new, mode, &Making::FILE);
        Ok(self.runtime.block_on(created)?.1.opened.handle)
    }

    fn create(&self, name: &str) -> Result<u64, Fault> {
        self.create_as(name, WRITE)
    }

    fn ino(&self, name: &str) -> Result<u64, Fault> {
        let found = self
            .runtime
            .block_on(shared_names::lookup(self.shared, ROOT, name))?;
        Ok(found.attributes.ino)
    }

    fn open(&self, name: &str, mode: Mode) -> Result<u64, Fault> {
        let opened = self.shared.open(self.ino(name)?, mode);
        Ok(self.runtime.block_on(opened)?.opened.handle)
    }

    fn write(&self, handle: u64, at: usize, data: &[u8]) -> Result<(), Fault> {
        let data = Bytes::copy_from_slice(data);
        self.runtime
            .block_on(self.shared.write(handle, at as u64, data))
    }

    fn read(&self, handle: u64, at: usize, size: usize) -> Result<Bytes, Fault> {
        let read = self.shared.read(handle, at as u64, size as u64);
        self.runtime.block_on(read)
    }

    fn size(&self, name: &str) -> Result<u64, Fault> {
        let attributes = shared_names::attributes(self.shared, self.ino(name)?);
        Ok(self.runtime.block_on(attributes)?.attributes.size_bytes)
    }

    fn flush(&self, handle: u64) -> Result<(), Fault> {
        self.runtime.block_on(self.shared.flush(handle, 0))
    }

    fn sync(&self, handle: u64) -> Result<(), Fault> {
        self.runtime.block_on(self.shared.publish(handle))
    }

    fn close(&self, handle: u64) -> Result<(), Fault> {
        let flushed = self.flush(handle);
        flushed.and(self.runtime.block_on(self.shared.close(handle)))
    }

    fn unlink(&self, name: &str) -> Result<(), Fault> {
        let old = Name { parent: ROOT, name };
        self.runtime
            .block_on(shared_names::unlink(self.shared, old))
    }

    fn whole(&self, name: &str) -> Vec<u8> {
        let handle = self.open(name, Mode::default()).unwrap();
        let mut whole = Vec::new();
        loop {
            let part = self.read(handle, whole.len(), 1 << 20).unwrap();
            if part.is_empty() {
                break;
            }
            whole.extend_from_slice(&part);
        }
        self.close(handle).unwrap();
        whole
    }
}

fn piece(number: usize) -> Vec<u8> {
    (0..PIECE).map(|at| (at * 7 + number * 13) as u8).collect()
}
