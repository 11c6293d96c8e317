// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of names, listings and reads, over a store in memory that counts requests.

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
        let runtime = Runtime::new().unwrap();
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

/// Reads a listing as `ls -l` does: some names, then what each of them is. Says how long the names
/// of one read were looked at, at most.
fn list_slowly(mount: &Mount, pause: Duration) -> (Vec<String>, Duration) {
    let handle = mount.files.folders.open(ROOT).unwrap();
    let (mut names, mut longest) = (Vec::<String>::new(), Duration::ZERO);
    loop {
        let (before, began) = (names.len(), Instant::now());
        let take = |index, entry: weft_files::FolderEntry| {
            if index < before + 500 {
                names.push(entry.name.to_string());
            }
            index < before + 500
        };
        let read = mount.files.folders.read(handle, before, true, take);
        mount.runtime.block_on(read).unwrap();
        if names.len() == before {
            break;
        }
        std::thread::sleep(pause);
        for name in &names[before..] {
            let (ino, _) = mount.walk(name).unwrap();
            let asked = mount.files.attributes(ino);
            mount.runtime.block_on(asked).unwrap();
        }
        longest = longest.max(began.elapsed());
    }
    mount.files.folders.close(handle);
    (names, longest)
}

/// On a machine so busy that one read takes longer than the time to live, names become too old
/// rightly: only then the law tries a longer time.
#[test]
fn names_of_a_listing_are_believed_while_it_is_read_and_a_time_to_live_longer() {
    for ttl in [1, 4, 16].map(Duration::from_secs) {
        let mount = Mount::new("", ttl);
        for number in 0..2500 {
            mount.store.plant(&format!("f{number:05}"), Vec::new());
        }
        let (names, longest) = list_slowly(&mount, ttl * 2 / 5);
        if longest >= ttl {
            continue;
        }
        assert_eq!(names.len(), 2500);
        let asked = |operation| mount.count(operation);
        // Three pages, and a few that were guessed.
        let (lists, heads) = (asked(Operation::List), asked(Operation::Head));
        assert!(lists <= 6 && heads == 0, "{lists} lists, {heads} heads");
        std::thread::sleep(ttl + ttl / 10);
        mount.walk("f00000").unwrap();
        assert!(
            asked(Operation::Head) + asked(Operation::List) > lists,
            "it is old by now"
        );
        return;
    }
    panic!("500 names took more than 16 s");
}

#[test]
fn listing_that_failed_goes_on_at_the_page_that_failed() {
    let mount = Mount::new("", LONG);
    for number in 0..2500 {
        mount.store.plant(&format!("f{number:05}"), Vec::new());
    }
    let fault = Failure::Unreachable;
    mount.store.faults().fail(Operation::List, 1, fault);
    let handle = mount.files.folders.open(ROOT).unwrap();
    let (mut names, mut failures) = (Vec::new(), 0);
    loop {
        let before = names.len();
        let take = |_, entry: weft_files::FolderEntry| {
            names.push(entry.name.to_string());
            true
        };
        let read = mount.files.folders.read(handle, before, false, take);
        match mount.runtime.block_on(read) {
            Ok(()) if names.len() == before => break,
            Ok(()) => {}
            Err(_) => failures += 1,
        }
    }
    // One that failed while it was read ahead is asked for again unseen.
    assert_eq!(names.len(), 2500);
    assert!(failures <= 1, "{failures} failures");
    assert!(names.is_sorted() && names.windows(2).all(|two| two[0] != two[1]));
}

/// A mount with a folder of 900 files of 5 bytes of which a reader got the first ten names, with
/// the nodes of the others made ahead: the folder's handle, and the numbers of all.
fn made_ahead() -> (Mount, u64, Vec<u64>) {
    let mount = Mount::new("", LONG);
    for number in 0..900 {
        mount.store.plant(&format!("f{number:03}"), "12345");
    }
    let (handle, mut numbers) = (mount.files.folders.open(ROOT).unwrap(), Vec::new());
    let take = |_, entry: weft_files::FolderEntry| {
        numbers.push(entry.ino);
        true
    };
    let read = mount.files.folders.read(handle, 0, false, take);
    mount.runtime.block_on(read).unwrap();
    let known = |ino| mount.runtime.block_on(mount.files.attributes(ino)).is_ok();
    assert_eq!(numbers.len(), 900);
    assert!(!known(numbers[9]) && !known(numbers[899]));
    let read = mount
        .files
        .folders
        .read(handle, 0, true, |index, _| index < 10);
    mount.runtime.block_on(read).unwrap();
    await_that(|| known(numbers[899]));
    (mount, handle, numbers)
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
fn names_that_were_made_ahead_show_what_was_changed_since() {
    let (mount, handle, numbers) = made_ahead();
    let mode = Mode {
        writes: true,
        truncates: true,
        ..Mode::default()
    };
    let opened = mount.files.open_files.open(numbers[500], mode);
    let opened = mount.runtime.block_on(opened).unwrap();
    let (parent, name) = (ROOT, "f600");
    let unlinked = mount.files.unlink(weft_files::Name { parent, name });
    mount.runtime.block_on(unlinked).unwrap();
    let mut shown = Vec::new();
    let take = |_, entry: weft_files::FolderEntry| {
        let size = entry.entry.map(|entry| entry.attributes.size_bytes);
        shown.push((entry.ino, size));
        true
    };
    let read = mount.files.folders.read(handle, 10, true, take);
    mount.runtime.block_on(read).unwrap();
    assert_eq!(shown.len(), 890);
    for (at, (ino, size)) in shown.iter().enumerate() {
        let place = at + 10;
        assert_eq!(*ino, numbers[place], "{place}");
        assert_eq!(*size, Some(if place == 500 { 0 } else { 5 }), "{place}");
    }
    let closed = mount.files.open_files.close(opened.handle);
    mount.runtime.block_on(closed).unwrap();
    mount.files.folders.close(handle);
}

#[test]
fn names_that_were_made_ahead_and_not_told_are_forgotten() {
    let (mount, handle, numbers) = made_ahead();
    mount.files.folders.close(handle);
    let known = |ino| mount.runtime.block_on(mount.files.attributes(ino)).is_ok();
    await_that(|| numbers[10..].iter().all(|ino| !known(*ino)));
    assert!(numbers[..10].iter().all(|ino| known(*ino)));
    for ino in &numbers[..10] {
        mount.files.forget(*ino, 1);
        assert!(!known(*ino));
    }
}

#[test]
fn listing_with_attributes_asks_once_for_a_thousand_names_and_for_no_object() {
    let mount = Mount::new("", LONG);
    for number in 0..2500 {
        mount
            .store
            .plant(&format!("d/f{number:05}"), vec![0; number]);
    }
    let folder = mount.walk("d").unwrap().0;
    let before = mount.count(Operation::List);
    let names = mount.list(folder, true);
    assert_eq!(names.len(), 2500);
    for name in &names {
        mount
            .runtime
            .block_on(mount.files.lookup(folder, name))
            .unwrap();
    }
    assert_eq!(mount.list(folder, false).len(), 2500);
    let asked = mount.count(Operation::List) - before;
    assert!((3..=5).contains(&asked), "{asked} listings for three pages");
    assert_eq!(mount.count(Operation::Head), 0);
}

#[test]
fn walk_over_a_tree_lists_it_flat_and_shows_what_listings_show() {
    let mount = Mount::new("p/", LONG);
    for folder in 0..300 {
        for key in ["a", "deep/er/b", "c", "deep-c", "bad//key"] {
            mount.store.plant(&format!("p/t/{folder:03}/{key}"), "x");
        }
        mount.store.plant(&format!("p/t/{folder:03}/empty/"), "");
    }
    let before = mount.count(Operation::List);
    let mut files = Vec::new();
    let mut folders = vec![("t".to_owned(), mount.walk("t").unwrap().0)];
    while let Some((path, ino)) = folders.pop() {
        let names = mount.list(ino, true);
        for name in names.into_iter().rev() {
            let path = format!("{path}/{name}");
            match mount.walk(&path).unwrap() {
                (ino, Kind::Folder) => folders.push((path, ino)),
                _ => files.push(path),
            }
        }
    }
    files.sort();
    let expected = (0..300).flat_map(|folder| {
        ["a", "c", "deep-c", "deep/er/b"].map(|key| format!("t/{folder:03}/{key}"))
    });
    assert!(files.iter().cloned().eq(expected), "{} files", files.len());
    let asked = mount.count(Operation::List) - before;
    assert!(asked <= 8, "{asked} listings of 1,500 keys");
}

/// A mount with 16 folders of 1,000 files in `t`, which was listed: the numbers of the folders.
fn sixteen_folders() -> (Mount, Vec<u64>) {
    let mount = Mount::new("", LONG);
    for number in 0..16_000 {
        let (folder, file) = (number / 1000, number % 1000);
        mount.store.plant(&format!("t/{folder:02}/f{file:03}"), "");
    }
    let names = mount.list(mount.walk("t").unwrap().0, true);
    assert_eq!(names.len(), 16);
    let folders = names.iter().map(|name| mount.walk(&format!("t/{name}")));
    let folders = folders.map(|found| found.unwrap().0).collect();
    (mount, folders)
}

#[test]
fn walk_asks_for_each_page_of_its_folders_once() {
    let (mount, folders) = sixteen_folders();
    for folder in folders {
        assert_eq!(mount.list(folder, true).len(), 1000);
    }
    let asked = mount.count(Operation::List);
    assert!(asked <= 20, "{asked} listings of 18 pages");
}

#[test]
fn reader_of_the_first_folder_alone_pays_for_one_page_more() {
    let (mount, folders) = sixteen_folders();
    let before = mount.count(Operation::List);
    for _ in 0..3 {
        assert_eq!(mount.list(folders[0], true).len(), 1000);
    }
    // Whatever is still under way was counted when it was asked for; let it be asked for.
    await_that(|| mount.count(Operation::List) - before >= 2);
    assert_eq!(mount.count(Operation::List) - before, 2);
}

#[test]
fn page_of_a_walk_that_failed_is_asked_for_again() {
    for skipped in 0..2 {
        let (mount, folders) = sixteen_folders();
        let fault = Failure::Unreachable;
        mount.store.faults().fail(Operation::List, skipped, fault);
        let mut failures = 0;
        for folder in folders {
            let handle = mount.files.folders.open(folder).unwrap();
            let mut count = 0;
            let mut read = || {
                let take = |_, _| {
                    count += 1;
                    true
                };
                let read = mount.files.folders.read(handle, 0, true, take);
                mount.runtime.block_on(read)
            };
            while read().is_err() {
                failures += 1;
            }
            assert_eq!(count, 1000);
            mount.files.folders.close(handle);
        }
        // Which of the two requests failed is the turn of threads.
        assert!(failures <= 1, "{failures} failures");
    }
}

#[test]
fn store_that_lists_from_the_beginning_only_is_listed_page_by_page() {
    let mount = Mount::new("", LONG);
    mount.store.faults().forget_middles();
    for number in 0..7_500 {
        mount.store.plant(&format!("d/f{number:05}"), "");
    }
    for folder in 0..3 {
        mount.store.plant(&format!("t/{folder}/f"), "");
    }
    let names = mount.list(mount.walk("d").unwrap().0, true);
    assert!(
        names
            .iter()
            .cloned()
            .eq((0..7_500).map(|number| format!("f{number:05}")))
    );
    assert_eq!(
        mount.list(mount.walk("t").unwrap().0, true),
        ["0", "1", "2"]
    );
    for folder in 0..3 {
        let ino = mount.walk(&format!("t/{folder}")).unwrap().0;
        assert_eq!(mount.list(ino, true), ["f"]);
    }
}

#[test]
fn folders_that_are_opened_in_no_order_are_listed_by_themselves() {
    let mount = Mount::new("", LONG);
    for folder in 0..20 {
        mount.store.plant(&format!("t/{folder:02}/f"), "x");
    }
    mount.list(mount.walk("t").unwrap().0, true);
    for folder in [7, 3, 19, 0, 1, 12, 2] {
        let ino = mount.walk(&format!("t/{folder:02}")).unwrap().0;
        assert_eq!(mount.list(ino, true), ["f"]);
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
