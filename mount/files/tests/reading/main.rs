// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of names and reads, over a store in memory that counts requests. `listings` has the laws of
//! open folders, `ends` those of their last names, `walks` those of ways through a tree.

mod ends;
mod listings;
mod walks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tokio::runtime::Runtime;
use weft_files::{BucketFiles, Kind, Mode, Publish, Reason, Settings, Writes};
use weft_store::memory::{MemoryStore, Operation};
use weft_store::{Failure, Objects};

const ROOT: u64 = 1;
const LONG: Duration = Duration::from_secs(3600);

struct Mount {
    runtime: Runtime,
    store: Arc<MemoryStore>,
    files: BucketFiles,
}

impl Mount {
    fn new(prefix: &str, ttl: Duration) -> Self {
        Self::on(Runtime::new().unwrap(), prefix, ttl)
    }

    fn on(runtime: Runtime, prefix: &str, ttl: Duration) -> Self {
        let store = Arc::new(MemoryStore::new());
        let settings = Settings {
            prefix: prefix.to_owned(),
            ttl,
            cache_bytes: 64 << 20,
            writes: Writes::temporary(Publish::Close).unwrap(),
        };
        let handle = runtime.handle().clone();
        let files = BucketFiles::new(Arc::clone(&store) as _, handle, settings, |_| {});
        Self {
            runtime,
            store,
            files,
        }
    }

    fn walk(&self, path: &str) -> Result<(u64, Kind), Reason> {
        let mut at = (ROOT, Kind::Folder);
        for name in path.split('/') {
            let found = self.runtime.block_on(self.files.lookup(at.0, name));
            let attributes = found.map_err(|fault| fault.reason)?.attributes;
            at = (attributes.ino, attributes.kind);
        }
        Ok(at)
    }

    fn list(&self, ino: u64, with_attributes: bool) -> Vec<String> {
        let handle = self.files.folders.open(ino).unwrap();
        let mut names = Vec::new();
        loop {
            let before = names.len();
            let take = |index, entry: weft_files::FolderEntry| {
                assert_eq!(index, names.len());
                names.push(entry.name.to_string());
                true
            };
            let read = self
                .files
                .folders
                .read(handle, before, with_attributes, take);
            self.runtime.block_on(read).unwrap();
            if names.len() == before {
                break;
            }
        }
        self.files.folders.close(handle);
        names
    }

    fn read(&self, path: &str, offset: u64, size: u64) -> Result<Vec<u8>, Reason> {
        let (ino, _) = self.walk(path)?;
        let opened = self
            .runtime
            .block_on(self.files.open_files.open(ino, Mode::default()));
        let handle = opened.map_err(|fault| fault.reason)?.handle;
        let read = self.files.open_files.read(handle, offset, size);
        let bytes = self.runtime.block_on(read).map_err(|fault| fault.reason);
        self.runtime
            .block_on(self.files.open_files.close(handle))
            .unwrap();
        bytes.map(|bytes| bytes.to_vec())
    }

    fn count(&self, operation: Operation) -> u64 {
        self.store.faults().count(operation)
    }
}

#[test]
fn keys_are_files_and_folders_below_the_prefix() {
    let mount = Mount::new("run/", LONG);
    for key in ["run/a/b/c", "run/a.txt", "run/empty/", "elsewhere/x"] {
        mount.store.plant(key, key.as_bytes().to_vec());
    }
    assert_eq!(mount.list(ROOT, true), ["a", "a.txt", "empty"]);
    assert_eq!(mount.walk("a/b").unwrap().1, Kind::Folder);
    assert_eq!(mount.walk("empty").unwrap().1, Kind::Folder);
    assert_eq!(mount.read("a/b/c", 0, 100).unwrap(), b"run/a/b/c");
    assert_eq!(mount.walk("x"), Err(Reason::NotFound));
    assert_eq!(mount.list(mount.walk("empty").unwrap().0, false), [""; 0]);
}

/// Returns once that is so; fails after a minute, which is longer than any machine takes.
fn await_that(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn next_mount_reads_from_the_disk_what_an_earlier_one_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let (first, mut second) = (Mount::new("", LONG), Mount::new("", LONG));
    let body: Vec<u8> = (0..3_000_000u32).map(|at| (at >> 3) as u8).collect();
    let disk = |source: &str| weft_files::Disk {
        cache: Arc::new(
            weft_cache::DiskCache::open(folder.path(), weft_cache::Limit::Bytes(64 << 20), |_| ())
                .unwrap(),
        ),
        source: source.to_owned(),
    };
    let mut first = first;
    first.files = first.files.with_disk(disk("here"));
    second.files = second.files.with_disk(disk("here"));
    let mut elsewhere = Mount::new("", LONG);
    elsewhere.files = elsewhere.files.with_disk(disk("elsewhere"));
    for mount in [&first, &second, &elsewhere] {
        mount.store.plant("k", body.clone());
    }
    assert_eq!(first.read("k", 0, 4_000_000).unwrap(), body);
    let until = Instant::now() + Duration::from_secs(100);
    let info = first.runtime.block_on(first.store.head("k")).unwrap();
    let name = weft_cache::ContentName::new("here", "k", info.etag.as_str(), 3_000_000);
    while disk("here").cache.whole(&name).is_none() {
        assert!(Instant::now() < until, "it is written after it was read");
    }
    assert_eq!(second.read("k", 0, 4_000_000).unwrap(), body);
    assert_eq!(second.count(Operation::Get), 0);
    assert_eq!(elsewhere.read("k", 0, 4_000_000).unwrap(), body);
    assert!(elsewhere.count(Operation::Get) > 0);
}

#[test]
fn names_that_are_not_there_are_asked_for_once_in_a_small_folder() {
    let mount = Mount::new("", LONG);
    mount.store.plant("lib/numpy/core.py", "x");
    let folder = mount.walk("lib/numpy").unwrap().0;
    let before = mount.count(Operation::List);
    for number in 0..100 {
        let name = format!("m{number}.so");
        let found = mount.runtime.block_on(mount.files.lookup(folder, &name));
        let fault = found.unwrap_err();
        assert_eq!(fault.reason, Reason::NotFound);
    }
    assert_eq!(mount.count(Operation::List) - before, 1);
    assert_eq!(mount.count(Operation::Head), 0);
}

#[test]
fn one_name_of_a_large_folder_is_found_beside_names_that_begin_alike() {
    let mount = Mount::new("", Duration::ZERO);
    for number in 0..1200 {
        mount.store.plant(&format!("d/a-{number:04}"), "x");
    }
    mount.store.plant("d/a/inside", "x");
    mount.store.plant("d/z", "x");
    assert_eq!(mount.walk("d/a").unwrap().1, Kind::Folder);
    assert_eq!(mount.walk("d/z").unwrap().1, Kind::File);
    assert_eq!(mount.walk("d/a-07"), Err(Reason::NotFound));
    assert_eq!(mount.walk("d/b"), Err(Reason::NotFound));
}

#[test]
fn with_no_time_to_live_a_change_is_seen_at_the_next_call() {
    let mount = Mount::new("", Duration::ZERO);
    mount.store.plant("k", "old");
    assert_eq!(mount.read("k", 0, 10).unwrap(), b"old");
    mount.store.plant("k", "newer");
    assert_eq!(mount.read("k", 0, 10).unwrap(), b"newer");
    mount.store.uproot("k");
    assert_eq!(mount.read("k", 0, 10), Err(Reason::NotFound));
    mount.store.plant("k/inside", "x");
    assert_eq!(mount.walk("k").unwrap().1, Kind::Folder);
}

#[test]
fn object_that_was_replaced_while_open_is_stale_and_never_a_mixture() {
    let mount = Mount::new("", LONG);
    mount.store.plant("k", vec![1; 3 << 20]);
    let (ino, _) = mount.walk("k").unwrap();
    let open = || {
        mount
            .runtime
            .block_on(mount.files.open_files.open(ino, Mode::default()))
            .unwrap()
    };
    let (first, second) = (open(), open());
    assert!(!first.keeps_pages && second.keeps_pages);
    let read = |offset| {
        let read = mount.files.open_files.read(first.handle, offset, 4096);
        mount.runtime.block_on(read)
    };
    assert_eq!(read(2 << 20).unwrap(), vec![1; 4096]);
    mount.store.plant("k", vec![2; 3 << 20]);
    assert_eq!(read(2 << 20).unwrap(), vec![1; 4096], "it is in the cache");
    assert_eq!(read(0).unwrap_err().reason, Reason::Stale);
}

#[test]
fn writer_who_opens_what_somebody_else_replaced_has_no_pages_of_before() {
    let mount = Mount::new("", Duration::ZERO);
    let open = |writes: bool| {
        let (ino, _) = mount.walk("k").unwrap();
        let mode = Mode {
            writes,
            ..Mode::default()
        };
        let opened = mount.files.open_files.open(ino, mode);
        mount.runtime.block_on(opened).unwrap().keeps_pages
    };
    mount.store.plant("k", "old");
    assert!(!open(false) && open(false));
    mount.store.plant("k", "new");
    assert!(!open(true), "the pages are of what was replaced");
    assert!(open(true));
}

#[test]
fn faults_of_the_store_are_errors_and_the_next_call_tries_again() {
    let mount = Mount::new("", Duration::ZERO);
    mount.store.plant("k", "content");
    let pairs = [
        (Failure::Denied, Reason::Denied),
        (Failure::Busy, Reason::Broken),
        (Failure::Unreachable, Reason::Broken),
        (Failure::Corrupt, Reason::Broken),
    ];
    for (failure, reason) in pairs {
        mount.store.faults().fail(Operation::Get, 0, failure);
        assert_eq!(mount.read("k", 0, 10), Err(reason));
        // A new content, so that nothing is in the cache.
        mount.store.plant("k", "content");
        assert_eq!(mount.read("k", 0, 10).unwrap(), b"content");
        mount.store.plant("k", "content");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_reads_show_the_object_and_sparse_ones_fetch_little_more(
        reads in prop::collection::vec((0u64..5_000_000, 1u64..300_000), 1..40),
    ) {
        let mount = Mount::new("", LONG);
        let body: Vec<u8> = (0..4_500_000u64).map(|at| (at * 31 / 7) as u8).collect();
        mount.store.plant("k", body.clone());
        let (ino, _) = mount.walk("k").unwrap();
        let opened = mount.files.open_files.open(ino, Mode::default());
        let handle = mount.runtime.block_on(opened).unwrap().handle;
        for (offset, size) in reads {
            let read = mount.files.open_files.read(handle, offset, size);
            let got = mount.runtime.block_on(read).unwrap();
            let from = (offset as usize).min(body.len());
            let to = ((offset + size) as usize).min(body.len());
            prop_assert_eq!(&got[..], &body[from..to]);
        }
    }
}

#[test]
fn reads_here_and_there_fetch_what_they_ask_for_once() {
    let mount = Mount::new("", LONG);
    let block = 128 << 10;
    mount.store.plant("k", vec![3; 400 * block]);
    let (ino, _) = mount.walk("k").unwrap();
    let opened = mount
        .runtime
        .block_on(mount.files.open_files.open(ino, Mode::default()));
    let handle = opened.unwrap().handle;
    // 397 is prime: every 67th block, round and round, never two that follow each other.
    let mut asked = 0;
    for round in 1..=100usize {
        let offset = (round * 67 % 397 * block) as u64;
        let read = mount.files.open_files.read(handle, offset, block as u64);
        assert_eq!(mount.runtime.block_on(read).unwrap().len(), block);
        asked += block as u64;
    }
    assert_eq!(mount.store.faults().got_bytes(), asked);
    assert_eq!(mount.count(Operation::Get), 100);
}
