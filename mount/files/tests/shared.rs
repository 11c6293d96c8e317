// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of files that several nodes of a job write at once: three mounts over one store in memory,
//! which ask each other without a network.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Runtime;
use weft_files::shared::{answers, shared_names};
use weft_files::{
    BucketFiles, Fault, Job, JobStore, Making, Mode, Name, Neighbours, Publish, Reason, Settings,
    SharedFiles, Unreached, Writes,
};
use weft_store::Failure;
use weft_store::memory::{MemoryStore, Operation};

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
        Ok(answers::answer(shared, question).await.concat().into())
    }
}

struct World {
    runtime: Runtime,
    store: Arc<MemoryStore>,
    hosts: Arc<Hosts>,
}

impl World {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let store = Arc::new(MemoryStore::new());
        let hosts = Arc::new(Hosts::default());
        for own in 0..NODES {
            let seen = Seen {
                own,
                hosts: Arc::clone(&hosts),
            };
            let job = Arc::new(Job::new(Arc::new(seen), |_| {}));
            let ttl = Duration::from_secs(1);
            let over = Arc::clone(&store) as _;
            let job_store = Arc::new(JobStore::new(over, Arc::clone(&job), ttl));
            let settings = Settings {
                prefix: "p/".to_owned(),
                ttl,
                cache_bytes: 256 << 20,
                writes: Writes {
                    is_shared: true,
                    ..Writes::temporary(Publish::Close).unwrap()
                },
            };
            let handle = runtime.handle().clone();
            let files = BucketFiles::new(Arc::clone(&job_store) as _, handle, settings, |_| {});
            let files = Arc::new(files.with_job(job_store));
            let shared = SharedFiles::new(files, Some(job));
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

#[test]
fn pieces_that_three_nodes_write_at_once_are_read_by_all_before_and_after_it_is_published() {
    let world = World::new();
    for turn in 0..4 {
        let name = format!("shared{turn}");
        let handles: Vec<u64> = (0..NODES)
            .map(|node| world.node(node).create(&name).unwrap())
            .collect();
        std::thread::scope(|scope| {
            for (node, handle) in handles.iter().enumerate() {
                let node_here = world.node(node);
                scope.spawn(move || {
                    for number in (node..60).step_by(NODES) {
                        let data = piece(number);
                        node_here.write(*handle, number * PIECE, &data).unwrap();
                    }
                });
            }
        });
        let expected: Vec<u8> = (0..60).flat_map(piece).collect();
        let key = format!("p/{name}");
        assert!(!world.store.keys().contains(&key), "nobody closed it");
        for node in (0..NODES).map(|node| world.node(node)) {
            assert_eq!(node.size(&name).unwrap(), expected.len() as u64);
            assert!(node.whole(&name) == expected, "before it is published");
        }
        for (node, handle) in handles.iter().enumerate() {
            assert!(!world.store.keys().contains(&key), "somebody writes still");
            world.node(node).close(*handle).unwrap();
        }
        assert!(world.store.keys().contains(&key));
        for node in (0..NODES).map(|node| world.node(node)) {
            assert_eq!(node.size(&name).unwrap(), expected.len() as u64);
            assert!(node.whole(&name) == expected, "after it was published");
        }
    }
}

#[test]
fn appends_of_all_nodes_are_whole_and_none_is_lost() {
    let world = World::new();
    let mode = Mode {
        appends: true,
        ..WRITE
    };
    let handles: Vec<u64> = (0..NODES)
        .map(|node| world.node(node).create_as("log", mode).unwrap())
        .collect();
    std::thread::scope(|scope| {
        for (node, handle) in handles.iter().enumerate() {
            let (at, line) = (world.node(node), [node as u8; 1000]);
            scope.spawn(move || (0..50).for_each(|_| at.write(*handle, 0, &line).unwrap()));
        }
    });
    for (node, handle) in handles.iter().enumerate() {
        world.node(node).close(*handle).unwrap();
    }
    let whole = world.node(0).whole("log");
    let mut counts = [0; NODES];
    for line in whole.chunks(1000) {
        assert!(line.iter().all(|byte| *byte == line[0]), "a mixed line");
        counts[usize::from(line[0])] += 1;
    }
    assert_eq!(counts, [50; NODES]);
}

#[test]
fn file_that_one_node_cuts_is_short_for_all_and_is_published_at_fsync() {
    let world = World::new();
    for owner in 0..NODES {
        let name = world.name_of(owner);
        let (one, other) = (world.node(0), world.node(1));
        let first = one.create(&name).unwrap();
        one.write(first, 0, &piece(1)).unwrap();
        let second = other.open(&name, WRITE).unwrap();
        let ino = other.ino(&name).unwrap();
        let cut = other.shared.resize(ino, Some(second), 100);
        other.runtime.block_on(cut).unwrap();
        assert_eq!(one.size(&name).unwrap(), 100);
        one.sync(first).unwrap();
        assert!(world.store.keys().contains(&format!("p/{name}")));
        other.write(second, 100, b"more").unwrap();
        one.close(first).unwrap();
        other.close(second).unwrap();
        let whole = [&piece(1)[..100], b"more"].concat();
        assert!(world.node(2).whole(&name) == whole);
        // It is written anew over what is there.
        let again = Mode {
            truncates: true,
            ..WRITE
        };
        let third = world.node(2).open(&name, again).unwrap();
        world.node(2).write(third, 0, b"new").unwrap();
        world.node(2).close(third).unwrap();
        assert_eq!(one.whole(&name), b"new");
        one.unlink(&name).unwrap();
        // The other node may not have heard of it; who opens it there is told to look again.
        let refused = other.open(&name, WRITE).unwrap_err().reason;
        assert!([Reason::Stale, Reason::NotFound].contains(&refused));
        assert_eq!(other.ino(&name).unwrap_err().reason, Reason::NotFound);
        let handle = other.create(&name).unwrap();
        other.write(handle, 0, b"newest").unwrap();
        other.close(handle).unwrap();
        assert_eq!(one.whole(&name), b"newest");
    }
}

#[test]
fn file_whose_removal_is_refused_is_read_and_written_as_before() {
    let world = World::new();
    let name = world.name_of(1);
    let (one, owner) = (world.node(0), world.node(1));
    let handle = owner.create(&name).unwrap();
    owner.write(handle, 0, b"old").unwrap();
    owner.close(handle).unwrap();
    // Who reads it here would read on after the removal.
    let reader = one.open(&name, Mode::default()).unwrap();
    let (ino, writer) = (one.ino(&name).unwrap(), one.open(&name, WRITE).unwrap());
    let key = format!("p/{name}");
    let mut faults = world.store.faults();
    faults.fail_key(Operation::Delete, &key, Failure::Denied);
    drop(faults);
    assert_eq!(one.unlink(&name).unwrap_err().reason, Reason::Denied);
    assert_eq!(one.read(reader, 0, 9).unwrap(), "old");
    one.write(writer, 0, b"newest").unwrap();
    let seen = shared_names::attributes(one.shared, ino);
    let size_bytes = one.runtime.block_on(seen).unwrap().attributes.size_bytes;
    assert_eq!((size_bytes, one.ino(&name).unwrap()), (6, ino));
    one.close(writer).unwrap();
    one.close(reader).unwrap();
    for node in 0..NODES {
        assert_eq!(world.node(node).size(&name).unwrap(), 6);
        assert_eq!(world.node(node).whole(&name), b"newest");
    }
}

#[test]
fn one_node_alone_makes_a_file_that_must_be_new() {
    let world = World::new();
    let mode = Mode {
        is_new: true,
        ..WRITE
    };
    let made = (0..NODES).map(|node| world.node(node).create_as("lock", mode));
    let made: Vec<_> = made
        .map(|made| made.map_err(|fault| fault.reason))
        .collect();
    let refused = Err(Reason::Exists);
    assert!(made[0].is_ok() && made[1] == refused && made[2] == refused);
}

#[test]
fn owner_that_dies_makes_calls_of_writers_fail_and_never_succeed_in_vain() {
    let world = World::new();
    let name = world.name_of(1);
    let handle = world.node(0).create(&name).unwrap();
    world.node(0).write(handle, 0, &piece(1)).unwrap();
    world.hosts.is_dead[1].store(true, Ordering::Relaxed);
    let reason = |ended: Result<(), Fault>| ended.unwrap_err().reason;
    assert_eq!(reason(world.node(0).write(handle, 0, b"x")), Reason::Broken);
    // Also once it seems to be back.
    world.hosts.is_dead[1].store(false, Ordering::Relaxed);
    assert_eq!(reason(world.node(0).flush(handle)), Reason::Broken);
    assert_eq!(reason(world.node(0).sync(handle)), Reason::Broken);
    assert_eq!(reason(world.node(0).close(handle)), Reason::Broken);
}

#[test]
fn node_that_dies_leaves_what_it_wrote_to_the_others_and_they_publish_it() {
    let world = World::new();
    let name = world.name_of(1);
    let handles = [0, 2].map(|node| world.node(node).create(&name).unwrap());
    world.node(0).write(handles[0], 0, &piece(0)).unwrap();
    world.node(2).write(handles[1], PIECE, &piece(1)).unwrap();
    world.hosts.is_dead[2].store(true, Ordering::Relaxed);
    // The owner finds that out by itself.
    let key = format!("p/{name}");
    world.node(0).flush(handles[0]).unwrap();
    while !world.store.keys().contains(&key) {
        std::thread::sleep(Duration::from_millis(50));
        world.node(0).flush(handles[0]).unwrap();
    }
    world.node(0).close(handles[0]).unwrap();
    assert!(world.node(0).whole(&name) == [piece(0), piece(1)].concat());
    // What it says when it is back is refused.
    world.hosts.is_dead[2].store(false, Ordering::Relaxed);
    let late = world.node(2).write(handles[1], 0, b"late");
    assert_eq!(late.unwrap_err().reason, Reason::Stale);
}

#[test]
fn who_closes_last_hears_that_the_store_refused() {
    let world = World::new();
    let name = world.name_of(1);
    let handles = [0, 2].map(|node| world.node(node).create(&name).unwrap());
    world.node(0).write(handles[0], 0, b"one").unwrap();
    world.store.plant(&format!("p/{name}"), "somebody else's");
    world.node(0).close(handles[0]).unwrap();
    let last = world.node(2).flush(handles[1]).unwrap_err();
    assert_eq!(last.reason, Reason::Stale);
    assert!(world.store.faults().count(Operation::Put) > 0);
}

#[test]
fn owner_that_ends_closes_what_others_have_open_after_its_limit_and_publishes_it() {
    let world = World::new();
    let name = world.name_of(1);
    let handle = world.node(0).create(&name).unwrap();
    world.node(0).write(handle, 0, &piece(1)).unwrap();
    let owner = world.node(1);
    let began = Instant::now();
    let limit = Duration::from_millis(200);
    owner.runtime.block_on(answers::settle(owner.shared, limit));
    assert!(began.elapsed() >= limit, "it gives the others their time");
    assert!(world.store.keys().contains(&format!("p/{name}")));
    assert!(world.node(2).whole(&name) == piece(1));
    let late = world.node(0).write(handle, 0, b"late");
    assert_eq!(late.unwrap_err().reason, Reason::Stale);
}

#[test]
fn open_of_a_node_that_the_job_does_not_have_is_refused() {
    let world = World::new();
    let name = world.name_of(1);
    // docs/job-cache.md, 5.1 and 5.4: opens for writing, and makes the file.
    let ask = |node: u64| {
        let key = format!("p/{name}");
        let mut question = vec![3, 6, 0, 1 | 8];
        question.extend(node.to_le_bytes());
        question.extend((key.len() as u32).to_le_bytes());
        question.extend(key.as_bytes());
        let answer = answers::answer(world.node(1).shared, question.into());
        world.runtime.block_on(answer).concat()
    };
    for node in [NODES as u64, u64::MAX] {
        assert_eq!(ask(node)[..2], [4, 8], "refused: invalid");
    }
    assert_eq!(ask(0)[0], 0, "the result follows");
}
