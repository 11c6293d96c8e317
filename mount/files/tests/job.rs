// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of the mounts of a job: four nodes over one store in memory, which ask each other without a
//! network.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Runtime;
use weft_files::{
    BucketFiles, Job, JobStore, Mode, Name, Neighbours, Publish, Reason, Settings, Unreached,
    Writes,
};
use weft_store::memory::{MemoryStore, Operation};

const ROOT: u64 = 1;
const TTL: Duration = Duration::from_secs(3600);
const NODES: usize = 4;
const OBJECT_BYTES: usize = 50_000_000;

/// The nodes of a job; each one's files once all are there.
#[derive(Default)]
struct Hosts {
    files: [OnceLock<Arc<BucketFiles>>; NODES],
    is_dead: [AtomicBool; NODES],
    // How many questions to a node are refused before it has begun.
    refuses: [AtomicUsize; NODES],
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
        let files = self.hosts.files[node].get().ok_or("not there yet")?;
        let less = |left: usize| left.checked_sub(1);
        let refuses = &self.hosts.refuses[node];
        let refused = refuses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let is_dead = || self.hosts.is_dead[node].load(Ordering::Relaxed);
        if refused.is_ok() || is_dead() {
            return Err("nobody listens".into());
        }
        let answer = files.answer(self.own, question).await;
        // It may have died meanwhile.
        if is_dead() {
            return Err("dead".into());
        }
        Ok(answer.concat().into())
    }
}

struct World {
    runtime: Runtime,
    store: Arc<MemoryStore>,
    hosts: Arc<Hosts>,
    body: Vec<u8>,
}

impl World {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let store = Arc::new(MemoryStore::new());
        let body: Vec<u8> = (0..OBJECT_BYTES).map(|at| (at / 777) as u8).collect();
        store.plant("k", body.clone());
        let hosts = Arc::new(Hosts::default());
        for own in 0..NODES {
            let seen = Seen {
                own,
                hosts: Arc::clone(&hosts),
            };
            let job = Arc::new(Job::new(Arc::new(seen), |_| {}));
            let shared = Arc::new(JobStore::new(Arc::clone(&store) as _, job, TTL));
            let settings = Settings {
                prefix: String::new(),
                ttl: TTL,
                cache_bytes: 256 << 20,
                writes: Writes::temporary(Publish::Close).unwrap(),
            };
            let handle = runtime.handle().clone();
            let files = BucketFiles::new(Arc::clone(&shared) as _, handle, settings, |_| {});
            let _ = hosts.files[own].set(Arc::new(files.with_job(shared)));
        }
        Self {
            runtime,
            store,
            hosts,
            body,
        }
    }

    /// Nodes read the object from end to end, all at once, and see what is there.
    fn read(&self, nodes: impl Iterator<Item = usize>) {
        let readers = nodes.map(|node| {
            let files = Arc::clone(self.hosts.files[node].get().unwrap());
            self.runtime.spawn(async move {
                let found = files.lookup(ROOT, "k").await.unwrap();
                let opened = files
                    .open_files
                    .open(found.attributes.ino, Mode::default())
                    .await
                    .unwrap();
                let mut whole = Vec::new();
                while whole.len() < OBJECT_BYTES {
                    let at = whole.len() as u64;
                    let part = files.open_files.read(opened.handle, at, 1 << 20).await;
                    whole.extend_from_slice(&part.unwrap());
                }
                files.open_files.close(opened.handle).await.unwrap();
                whole
            })
        });
        for reader in readers.collect::<Vec<_>>() {
            let whole = self.runtime.block_on(reader).unwrap();
            assert!(whole == self.body, "a node saw other bytes");
        }
    }

    fn gets(&self) -> (u64, u64) {
        let faults = self.store.faults();
        (faults.count(Operation::Get), faults.got_bytes())
    }
}

#[test]
fn four_nodes_fetch_each_byte_once_and_ask_for_it_in_whole_parts() {
    let world = World::new();
    world.read(0..NODES);
    let (requests, bytes) = world.gets();
    assert_eq!(bytes, OBJECT_BYTES as u64);
    // In answers of 1 MiB they would be 48; the first parts of a stream are short.
    assert!(requests <= 40, "{requests} requests");
}

#[test]
fn node_that_begins_later_than_the_others_still_fetches_what_it_owns() {
    let world = World::new();
    for refuses in &world.hosts.refuses {
        refuses.store(5, Ordering::Relaxed);
    }
    world.read(0..NODES);
    let (_, bytes) = world.gets();
    assert_eq!(bytes, OBJECT_BYTES as u64);
}

#[test]
fn node_that_dies_half_way_costs_what_it_owned() {
    let world = World::new();
    let dies = Arc::clone(&world.hosts);
    let store = Arc::clone(&world.store);
    let killer = std::thread::spawn(move || {
        while store.faults().got_bytes() < OBJECT_BYTES as u64 / 3 {
            std::thread::yield_now();
        }
        dies.is_dead[3].store(true, Ordering::Relaxed);
    });
    world.read(0..NODES - 1);
    killer.join().unwrap();
    let (_, bytes) = world.gets();
    // It owned two of the six extents, by their hashes; at most those are fetched again.
    let most = OBJECT_BYTES as u64 + 2 * (8 << 20);
    assert!(bytes <= most, "{bytes} bytes");
}

#[test]
fn questions_for_more_than_an_extent_or_of_another_version_are_refused() {
    let world = World::new();
    let files = world.hosts.files[0].get().unwrap();
    let question = |version: u8, places: [u64; 5]| {
        let mut words = vec![version, 1, 1, 0, 0, 0, b'k', 1, 0, 0, 0, b'e'];
        words.extend(places.into_iter().flat_map(u64::to_le_bytes));
        Bytes::from(words)
    };
    let size = OBJECT_BYTES as u64;
    for (version, places) in [
        (2, [size, 0, 10, 0, 10]),
        (3, [size, 0, 10, 5, 10]),
        (3, [size, 0, 10, 0, 9]),
        (3, [size, 0, 10, 0, u64::MAX]),
        (3, [size, 0, 2 << 20, 0, 2 << 20]),
        (3, [size, 0, 10, 0, 9 << 20]),
    ] {
        let answer = world
            .runtime
            .block_on(files.answer(1, question(version, places)));
        assert_eq!(answer[0][..], [2], "{version} {places:?}");
    }
    assert_eq!(world.gets(), (0, 0), "nothing was fetched for them");
}

#[test]
fn folder_is_renamed_with_what_a_neighbour_wrote_just_now() {
    let world = World::new();
    for node in 0..NODES {
        let deep = format!("old{node}/{}", "d/".repeat(500));
        world.store.plant(&deep, "");
    }
    for node in 0..NODES {
        let rename = |new: &str| {
            let files = world.hosts.files[node].get().unwrap();
            let old = format!("old{node}");
            let [old, new] = [&*old, new].map(|name| Name { parent: ROOT, name });
            let renamed = files.rename(old, new, true);
            world
                .runtime
                .block_on(renamed)
                .map_err(|fault| fault.reason)
        };
        // The folder is listed and not renamed: whoever owns the listing remembers it.
        assert_eq!(rename(&"n".repeat(50)), Err(Reason::NameTooLong));
        world.store.plant(&format!("old{node}/written"), "written");
        assert_eq!(rename(&format!("new{node}")), Ok(()));
        let keys = world.store.keys();
        let is_left = |key: &&String| key.starts_with(&format!("old{node}/"));
        assert_eq!(keys.iter().find(is_left), None);
        assert!(keys.contains(&format!("new{node}/written")));
    }
}
