// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of files that are written, over a store in memory. `names` has the laws of names that
//! change, `renamed` those of objects that are renamed while they are written, `order` those of
//! files that are written in order, `again` those of files that are not published at once, `memory`
//! those of the memory that writers take.

mod again;
mod memory;
mod names;
mod order;
mod renamed;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use proptest::prelude::*;
use tokio::runtime::Runtime;
use weft_files::staging::stage::Stage;
use weft_files::{
    BucketFiles, Fault, FolderEntry, Making, Mode, Name, Place, Publish, Reason, Settings, Writes,
    copy_range, resize_open,
};
use weft_store::Failure;
use weft_store::memory::{MemoryStore, Operation};

const ROOT: u64 = 1;
const WRITE: Mode = Mode {
    process: 7,
    ..Mode::WRITES
};
const READ: Mode = Mode {
    writes: false,
    ..WRITE
};
const MIB: usize = 1 << 20;

struct Mount {
    runtime: Runtime,
    store: Arc<MemoryStore>,
    stage: Arc<Stage>,
    files: BucketFiles,
}

fn at(name: &str) -> Name<'_> {
    Name { parent: ROOT, name }
}

impl Mount {
    fn new() -> Self {
        let writes = Writes::temporary(Publish::Close).unwrap();
        Self::with(Runtime::new().unwrap(), writes)
    }

    fn with(runtime: Runtime, writes: Writes) -> Self {
        let store = Arc::new(MemoryStore::new());
        let stage = Arc::clone(&writes.stage);
        let settings = Settings {
            prefix: String::new(),
            ttl: Duration::ZERO,
            cache_bytes: 64 << 20,
            writes,
        };
        let handle = runtime.handle().clone();
        let files = BucketFiles::new(Arc::clone(&store) as _, handle, settings, |_| {});
        Self {
            runtime,
            store,
            stage,
            files,
        }
    }

    fn create(&self, name: &str) -> u64 {
        let created = self.files.open_files.create(at(name), WRITE, &Making::FILE);
        self.runtime.block_on(created).unwrap().1.handle
    }

    fn open(&self, name: &str, mode: Mode) -> u64 {
        let found = self.runtime.block_on(self.files.lookup(ROOT, name));
        let ino = found.unwrap().attributes.ino;
        let opened = self.files.open_files.open(ino, mode);
        self.runtime.block_on(opened).unwrap().handle
    }

    fn write(&self, handle: u64, offset: u64, data: &[u8]) -> Result<(), Reason> {
        let data = Bytes::copy_from_slice(data);
        let written = self.files.open_files.write(handle, offset, data);
        self.runtime.block_on(written).map_err(reason)
    }

    fn cut(&self, handle: u64) {
        let cut = resize_open(&self.files.open_files, handle, 0);
        self.runtime.block_on(cut).unwrap();
    }

    fn resize(&self, name: &str, size: u64) {
        let found = self.runtime.block_on(self.files.lookup(ROOT, name));
        let resized = self
            .files
            .open_files
            .resize(found.unwrap().attributes.ino, size);
        self.runtime.block_on(resized).unwrap();
    }

    fn close(&self, handle: u64) -> Result<(), Reason> {
        let published = self.files.open_files.publish(handle);
        let published = self.runtime.block_on(published).map_err(reason);
        let _ = self.runtime.block_on(self.files.open_files.close(handle));
        published
    }

    /// The last descriptor goes.
    fn shut(&self, handle: u64) {
        let closed = self.files.open_files.close(handle);
        self.runtime.block_on(closed).unwrap();
    }

    /// All is closed, and published.
    fn settle(&self) {
        let settled = self.files.open_files.settle_all(Duration::from_secs(100));
        self.runtime.block_on(settled);
    }

    fn read(&self, handle: u64, offset: u64, size: u64) -> Vec<u8> {
        let read = self.files.open_files.read(handle, offset, size);
        self.runtime.block_on(read).unwrap().to_vec()
    }

    fn names(&self) -> Vec<String> {
        let handle = self.files.folders.open(ROOT).unwrap();
        let mut names = Vec::new();
        let take = |_, entry: FolderEntry| {
            names.push(entry.name.to_string());
            true
        };
        let read = self.files.folders.read(handle, 0, false, take);
        self.runtime.block_on(read).unwrap();
        self.files.folders.close(handle);
        names
    }

    /// Uploads that were begun in vain are aborted in the background.
    fn await_no_upload(&self) {
        let began = Instant::now();
        while self.store.open_upload_count() > 0 {
            assert!(began.elapsed() < Duration::from_secs(100), "it is aborted");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// How many staged files have this ending.
    fn staged(&self, ending: &str) -> usize {
        self.staged_paths(ending).len()
    }

    fn staged_paths(&self, ending: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.stage.folder()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|one| one == ending))
            .collect()
    }

    /// Whether a log names an upload.
    fn has_noted_upload(&self) -> bool {
        self.staged_paths("log").iter().any(|path| {
            let log = std::fs::read(path).unwrap();
            log.windows(8).any(|bytes| bytes == b"\"upload\"")
        })
    }

    fn content(&self, key: &str) -> Option<Vec<u8>> {
        self.store.content(key).map(|bytes| bytes.to_vec())
    }
}

fn reason(fault: Fault) -> Reason {
    fault.reason
}

#[test]
fn nobody_else_sees_a_file_before_it_is_closed() {
    let mount = Mount::new();
    let handle = mount.create("f");
    mount.write(handle, 0, b"content").unwrap();
    assert_eq!(mount.store.keys(), [""; 0]);
    assert_eq!(mount.names(), ["f"], "this mount shows it");
    assert_eq!(mount.read(handle, 3, 100), b"tent");
    mount.close(handle).unwrap();
    assert_eq!(mount.content("f").unwrap(), b"content");
    assert_eq!(mount.names(), ["f"]);
}

#[test]
fn large_file_in_order_leaves_in_parts_and_is_read_back_after_it() {
    let mount = Mount::new();
    let body: Vec<u8> = (0..20 * MIB).map(|at| (at / 3) as u8).collect();
    let handle = mount.create("f");
    for (index, piece) in body.chunks(MIB).enumerate() {
        mount.write(handle, (index * MIB) as u64, piece).unwrap();
    }
    assert_eq!(
        mount.read(handle, 5, 10),
        body[5..15],
        "sent, and still here"
    );
    assert_eq!(mount.store.keys(), [""; 0], "and seen by nobody");
    mount.write(handle, body.len() as u64, b"more").unwrap();
    mount.close(handle).unwrap();
    let whole = mount.content("f").unwrap();
    assert_eq!(whole.len(), body.len() + 4);
    assert!(whole[..body.len()] == body[..] && whole.ends_with(b"more"));
    assert_eq!(mount.store.open_upload_count(), 0);
}

#[test]
fn appending_to_a_large_object_moves_only_what_is_new() {
    let mount = Mount::new();
    mount.store.plant("f", vec![7; 30 * MIB]);
    let mode = Mode {
        appends: true,
        ..WRITE
    };
    let handle = mount.open("f", mode);
    mount.write(handle, 0, b"end").unwrap();
    mount.close(handle).unwrap();
    let whole = mount.content("f").unwrap();
    assert_eq!(whole.len(), 30 * MIB + 3);
    assert!(whole.ends_with(b"\x07end"));
    assert_eq!(mount.store.faults().got_bytes(), 0);
}

#[test]
fn write_of_somebody_else_between_open_and_close_is_not_lost_unseen() {
    let mount = Mount::new();
    mount.store.plant("f", "old");
    let handle = mount.open("f", WRITE);
    mount.write(handle, 0, b"mine").unwrap();
    mount.store.plant("f", "theirs");
    assert_eq!(mount.close(handle), Err(Reason::Stale));
    assert_eq!(mount.content("f").unwrap(), b"theirs");
    let handle = mount.create("g");
    mount.store.plant("g", "theirs");
    assert_eq!(mount.close(handle), Err(Reason::Stale));
    assert_eq!(mount.content("g").unwrap(), b"theirs");
}

#[test]
fn fault_while_parts_are_sent_is_told_at_close_and_leaves_nothing() {
    let mount = Mount::new();
    mount.store.plant("f", "old");
    for operation in [Operation::Begin, Operation::Send, Operation::Complete] {
        for again in 0..40 {
            mount
                .store
                .faults()
                .fail(operation, again, Failure::Unreachable);
        }
        let handle = mount.open(
            "f",
            Mode {
                truncates: true,
                ..WRITE
            },
        );
        let mut told = false;
        for index in 0..10 {
            told |= mount
                .write(handle, (index * 2 * MIB) as u64, &vec![1; 2 * MIB])
                .is_err();
        }
        told |= mount.close(handle).is_err();
        assert!(told, "{operation:?}");
        assert_eq!(mount.content("f").unwrap(), b"old", "{operation:?}");
    }
    mount.await_no_upload();
}

#[test]
fn large_object_is_changed_in_place_and_cut() {
    let mount = Mount::new();
    mount.store.plant("f", vec![7; 30 * MIB]);
    let handle = mount.open("f", WRITE);
    mount.write(handle, 12_345_678, b"CHANGED").unwrap();
    let ino = mount.runtime.block_on(mount.files.lookup(ROOT, "f"));
    let ino = ino.unwrap().attributes.ino;
    let resized = mount.files.open_files.resize(ino, 20_000_000);
    mount.runtime.block_on(resized).unwrap();
    mount.close(handle).unwrap();
    let mut wanted = vec![7; 20_000_000];
    wanted[12_345_678..12_345_685].copy_from_slice(b"CHANGED");
    assert!(mount.content("f").unwrap() == wanted);
    mount.store.plant("huge", vec![7; 65 * MIB]);
    let handle = mount.open("huge", WRITE);
    let before = mount.store.faults().got_bytes();
    mount.write(handle, 0, b"x").unwrap();
    mount.close(handle).unwrap();
    let moved = mount.store.faults().got_bytes() - before;
    assert!(
        moved <= 5 << 20,
        "{moved} bytes were fetched: the rest is copied"
    );
    let whole = mount.content("huge").unwrap();
    assert!(whole[0] == b'x' && whole[1..].iter().all(|byte| *byte == 7));
}

#[test]
fn truncated_file_keeps_its_object_until_something_is_written_or_it_is_closed() {
    let mount = Mount::new();
    mount.store.plant("f", "old");
    let mode = Mode {
        truncates: true,
        ..WRITE
    };
    let handle = mount.open("f", mode);
    let flush = || {
        mount
            .runtime
            .block_on(mount.files.open_files.flush(handle, 7))
    };
    flush().unwrap();
    assert_eq!(
        mount.content("f").unwrap(),
        b"old",
        "a copy of it was closed"
    );
    mount.write(handle, 0, b"new").unwrap();
    assert_eq!(mount.content("f").unwrap(), b"old");
    let inherited = mount.files.open_files.flush(handle, 8);
    mount.runtime.block_on(inherited).unwrap();
    assert_eq!(mount.content("f").unwrap(), b"old", "a child closed it");
    flush().unwrap();
    assert_eq!(mount.content("f").unwrap(), b"new");
    mount.close(handle).unwrap();
    let handle = mount.open("f", mode);
    mount.close(handle).unwrap();
    assert_eq!(mount.content("f").unwrap(), b"");
}

#[derive(Debug, Clone)]
enum Step {
    Write(u64, Vec<u8>),
    Resize(u64),
    Read(u64, u64),
    Publish,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let data = prop::collection::vec(any::<u8>(), 1..200);
    prop_oneof![
        4 => (0u64..2000, data).prop_map(|(offset, data)| Step::Write(offset, data)),
        1 => (0u64..2000).prop_map(Step::Resize),
        3 => (0u64..2500, 1u64..500).prop_map(|(offset, size)| Step::Read(offset, size)),
        1 => Just(Step::Publish),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn small_file_behaves_as_bytes_in_memory(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mount = Mount::new();
        let mut model: Vec<u8> = Vec::new();
        let mut handle = mount.create("f");
        for step in steps {
            match step {
                Step::Write(offset, data) => {
                    let end = offset as usize + data.len();
                    model.resize(model.len().max(end), 0);
                    model[offset as usize..end].copy_from_slice(&data);
                    mount.write(handle, offset, &data).unwrap();
                }
                Step::Resize(size) => {
                    model.resize(size as usize, 0);
                    let ino = mount.runtime.block_on(mount.files.lookup(ROOT, "f"));
                    let ino = ino.unwrap().attributes.ino;
                    mount.runtime.block_on(mount.files.open_files.resize(ino, size)).unwrap();
                }
                Step::Read(offset, size) => {
                    let from = model.len().min(offset as usize);
                    let to = model.len().min((offset + size) as usize);
                    prop_assert_eq!(mount.read(handle, offset, size), &model[from..to]);
                }
                Step::Publish => {
                    let published = mount.files.open_files.publish(handle);
                    mount.runtime.block_on(published).unwrap();
                    prop_assert_eq!(mount.content("f").unwrap(), &model[..]);
                }
                Step::Reopen => {
                    mount.close(handle).unwrap();
                    handle = mount.open("f", WRITE);
                }
            }
        }
        mount.close(handle).unwrap();
        prop_assert_eq!(mount.content("f").unwrap(), model);
    }
}

#[test]
fn copy_between_files_moves_no_bytes_through_the_client() {
    let mount = Mount::new();
    let body: Vec<u8> = (0..30 * MIB).map(|at| (at / 3) as u8).collect();
    mount.store.plant("f", body.clone());
    let (from, to) = (mount.open("f", READ), mount.create("g"));
    let place = |handle, offset| Place { handle, offset };
    let copy = |from_at, to_at, most| {
        let files = &mount.files.open_files;
        let copied = copy_range(files, place(from, from_at), place(to, to_at), most);
        mount.runtime.block_on(copied).map_err(reason)
    };
    assert_eq!(copy(0, 0, 1 << 31), Ok(30 << 20));
    assert_eq!(copy(30 << 20, 30 << 20, 1 << 31), Ok(0));
    assert_eq!(copy(0, 0, 100), Err(Reason::Unsupported), "cheaper by hand");
    assert_eq!(mount.read(to, 15_000_000, 9), body[15_000_000..15_000_009]);
    mount.close(to).unwrap();
    assert!(mount.content("g").unwrap() == body);
    assert_eq!(mount.store.faults().count(Operation::Send), 0);
    assert!(mount.store.faults().got_bytes() < 2 << 20);
}
