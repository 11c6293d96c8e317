// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A mount that dies between any two requests, or between any two writes. From that moment on the
//! store cannot be reached; the folder of staged files is copied in its state then, and another
//! mount takes over. The bucket shows the old file or the new one, complete; what was not published
//! is saved.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Runtime;
use weft_files::staging::recovery::recover;
use weft_files::staging::stage::Stage;
use weft_files::staging::ways::Ways;
use weft_files::{BucketFiles, Making, Mode, Name, Publish, Settings, Writes};
use weft_store::Failure;
use weft_store::memory::{MemoryStore, Operation};

const ROOT: u64 = 1;
const MIB: usize = 1 << 20;
const WRITE: Mode = Mode {
    process: 7,
    ..Mode::WRITES
};

struct Mount {
    runtime: Runtime,
    store: Arc<MemoryStore>,
    stage: Arc<Stage>,
    files: BucketFiles,
}

impl Mount {
    fn new(publish: Publish) -> Self {
        Self::with(Writes::temporary(publish).unwrap())
    }

    fn with(writes: Writes) -> Self {
        let runtime = Runtime::new().unwrap();
        let store = Arc::new(MemoryStore::new());
        let stage = Arc::clone(&writes.stage);
        let settings = Settings {
            prefix: String::new(),
            ttl: Duration::from_secs(60),
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

    fn open(&self, name: &str, mode: Mode) -> Option<u64> {
        let files = &self.files;
        self.runtime.block_on(async {
            match files.lookup(ROOT, name).await {
                Ok(entry) => files.open_files.open(entry.attributes.ino, mode).await.ok(),
                Err(_) => {
                    let new = Name { parent: ROOT, name };
                    let created = files.open_files.create(new, mode, &Making::FILE).await;
                    created.ok().map(|(_, opened)| opened)
                }
            }
            .map(|opened| opened.handle)
        })
    }

    fn write(&self, handle: u64, offset: usize, data: &[u8]) -> bool {
        let data = Bytes::copy_from_slice(data);
        let written = self.files.open_files.write(handle, offset as u64, data);
        self.runtime.block_on(written).is_ok()
    }

    /// As close(2) and what follows it.
    fn close(&self, handle: u64) -> bool {
        let flushed = self.files.open_files.flush(handle, 7);
        // The kernel's release comes later, and its answer goes nowhere.
        self.runtime.block_on(flushed).is_ok()
    }

    /// An upload that no log names yet would stay in the bucket.
    fn await_noted_upload(&self) {
        let is_noted = || {
            let mut entries = std::fs::read_dir(self.stage.folder()).unwrap();
            entries.any(|entry| {
                let path = entry.unwrap().path();
                let is_log = path.extension().is_some_and(|ending| ending == "log");
                let name = b"\"upload\"";
                let has = |bytes: Vec<u8>| bytes.windows(name.len()).any(|one| one == name);
                is_log && has(std::fs::read(path).unwrap())
            })
        };
        let began = Instant::now();
        while !is_noted() {
            assert!(began.elapsed() < Duration::from_secs(100), "it begins");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Kills the mount, as far as its disk and its store can tell, and has the next one look after
    /// what it left. What that told, and what it saved.
    fn take_over(&self) -> (Vec<String>, Vec<Vec<u8>>) {
        self.take_over_of(self.stage.folder())
    }

    /// The same, of a folder that may lack what the mount did last.
    fn take_over_of(&self, folder: &Path) -> (Vec<String>, Vec<Vec<u8>>) {
        static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(|dead| dead.into_inner());
        let next = Arc::new(Stage::temporary(1 << 30).unwrap());
        let parent = next.folder().parent().unwrap().to_owned();
        copy_folder(folder, &parent.join("dead"));
        self.store.faults().clear();
        TOLD.lock().unwrap().clear();
        let ways = Ways::new(
            Arc::clone(&self.store) as _,
            self.runtime.handle().clone(),
            1 << 26,
        );
        let tell: fn(&str) = |line| TOLD.lock().unwrap().push(line.to_owned());
        self.runtime
            .block_on(recover(&ways, &next, "", tell))
            .unwrap();
        assert!(!parent.join("dead").exists(), "{:?}", TOLD.lock().unwrap());
        let told = TOLD.lock().unwrap().clone();
        let saved = std::fs::read_dir(parent.join("saved"));
        let saved = saved.into_iter().flatten();
        let saved = saved.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        (told, saved.collect())
    }
}

fn copy_folder(from: &Path, to: &PathBuf) {
    std::fs::create_dir(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    let one: Vec<u8> = (0..4096)
        .map(|at| (at / 7 + at * seed + seed) as u8)
        .collect();
    let mut all = one.repeat(length.div_ceil(4096));
    all.truncate(length);
    all
}

/// What the file was, what is written to it, and what it is then.
struct Story {
    old: Option<Vec<u8>>,
    writes: Vec<(usize, Vec<u8>)>,
    new: Vec<u8>,
}

fn story(old: Option<Vec<u8>>, writes: Vec<(usize, Vec<u8>)>) -> Story {
    let mut new = old.clone().unwrap_or_default();
    for (offset, data) in &writes {
        new.resize(new.len().max(offset + data.len()), 0);
        new[*offset..offset + data.len()].copy_from_slice(data);
    }
    Story { old, writes, new }
}

fn stories() -> Vec<Story> {
    let stream = (0..20).map(|index| (index * MIB, pattern(MIB, index)));
    let mut rewritten: Vec<(usize, Vec<u8>)> = stream.clone().collect();
    rewritten.push((3, pattern(100, 9)));
    vec![
        story(Some(b"old".to_vec()), vec![(1, b"new and longer".to_vec())]),
        story(None, stream.collect()),
        story(Some(pattern(10, 1)), rewritten),
        story(
            Some(pattern(30 * MIB, 2)),
            vec![(12_345_678, pattern(1000, 3))],
        ),
    ]
}

fn tell_story(mount: &Mount, story: &Story, is_away: Option<(u64, bool)>) -> bool {
    if let Some(old) = &story.old {
        mount.store.plant("f", old.clone());
    }
    let Some(handle) = mount.open("f", WRITE) else {
        return false;
    };
    if let Some((count, is_next_done)) = is_away {
        mount.store.faults().away_after(count, is_next_done);
    }
    let mut is_written = true;
    for (offset, data) in &story.writes {
        is_written &= mount.write(handle, *offset, data);
    }
    is_written && mount.close(handle)
}

#[test]
fn mount_killed_between_any_two_requests_of_publishing_leaves_new_contents_whole() {
    for (index, story) in stories().iter().enumerate() {
        for is_next_done in [false, true] {
            for count in 0..100 {
                let mount = Mount::new(Publish::Close);
                let is_done = tell_story(&mount, story, Some((count, is_next_done)));
                let now = mount.store.content("f").map(|bytes| bytes.to_vec());
                assert!(
                    now == story.old || now.as_ref() == Some(&story.new),
                    "story {index}, {count} requests: half a file"
                );
                assert!(!is_done || now.as_ref() == Some(&story.new));
                if mount.store.open_upload_count() > 0 {
                    mount.await_noted_upload();
                }
                let (told, saved) = mount.take_over();
                let then = mount.store.content("f").map(|bytes| bytes.to_vec());
                assert!(
                    then.as_ref() == Some(&story.new),
                    "story {index}, {count} requests, {is_next_done}: {told:?}"
                );
                assert_eq!(saved.len(), 0);
                assert_eq!(mount.store.open_upload_count(), 0);
                if is_done {
                    break;
                }
                assert!(count < 99, "it never ends");
            }
        }
    }
}

#[test]
fn mount_killed_between_any_two_writes_leaves_the_old_contents_and_saves_the_rest() {
    for story in stories() {
        for steps in 0..story.writes.len() {
            let mount = Mount::new(Publish::Close);
            let so_far = Story {
                writes: story.writes[..=steps].to_vec(),
                new: Vec::new(),
                old: story.old.clone(),
            };
            if let Some(old) = &story.old {
                mount.store.plant("f", old.clone());
            }
            let handle = mount.open("f", WRITE).unwrap();
            for (offset, data) in &so_far.writes {
                assert!(mount.write(handle, *offset, data));
            }
            if story.old.is_none() && so_far.writes.len() > 8 {
                mount.await_noted_upload();
            }
            let wanted = crate::story(story.old.clone(), so_far.writes).new;
            let (told, saved) = mount.take_over();
            assert!(mount.store.content("f").map(|bytes| bytes.to_vec()) == story.old);
            assert!(saved.len() == 1 && saved[0] == wanted, "{told:?}");
            assert!(told[0].contains("had not closed it"), "{told:?}");
            assert_eq!(mount.store.open_upload_count(), 0);
        }
    }
}

#[test]
fn file_that_somebody_else_wrote_since_is_saved_and_not_published() {
    let mount = Mount::new(Publish::Close);
    let story = &stories()[0];
    assert!(!tell_story(&mount, story, Some((0, false))));
    mount.store.plant("f", "theirs");
    let (told, saved) = mount.take_over();
    assert_eq!(mount.store.content("f").unwrap(), "theirs");
    assert_eq!(saved[0][1..], story.new[1..]);
    assert_eq!(saved[0][0], 0, "the old content is nowhere any more");
    assert!(told[0].contains("somebody else wrote it"), "{told:?}");
}

#[test]
fn flipped_bit_in_staged_data_is_never_published() {
    let mount = Mount::new(Publish::Close);
    assert!(!tell_story(&mount, &stories()[0], Some((0, false))));
    let data = mount.stage.folder().join("00000001.data");
    let mut bytes = std::fs::read(&data).unwrap();
    bytes[3] ^= 4;
    std::fs::write(&data, bytes).unwrap();
    let (told, saved) = mount.take_over();
    assert_eq!(mount.store.content("f").unwrap(), "old");
    assert_eq!(saved.len(), 1);
    assert!(told[0].contains("not those that were written"), "{told:?}");
}

#[test]
fn files_closed_behind_a_store_that_is_away_are_published_by_the_next_mount() {
    let mount = Mount::new(Publish::Async);
    mount.store.faults().away_after(1, false);
    for name in ["a", "b"] {
        let handle = mount.open(name, WRITE).unwrap();
        assert!(mount.write(handle, 0, name.as_bytes()));
        let closed = mount.files.open_files.close(handle);
        mount.runtime.block_on(closed).unwrap();
        let entry = mount.runtime.block_on(mount.files.lookup(ROOT, name));
        assert_eq!(
            entry.unwrap().attributes.size_bytes,
            1,
            "this mount shows it"
        );
    }
    assert_eq!(mount.store.keys(), [""; 0]);
    let (told, _) = mount.take_over();
    assert_eq!(mount.store.keys(), ["a", "b"], "{told:?}");
    assert_eq!(mount.store.content("b").unwrap(), "b");
}

#[test]
fn closed_files_are_published_once_the_store_is_back() {
    for publish in [Publish::Async, Publish::Fsync] {
        let mount = Mount::new(publish);
        mount.store.faults().away_after(1, false);
        let handle = mount.open("f", WRITE).unwrap();
        assert!(mount.write(handle, 0, b"content"));
        mount
            .runtime
            .block_on(mount.files.open_files.close(handle))
            .unwrap();
        std::thread::sleep(Duration::from_millis(50));
        mount.store.faults().clear();
        let limit = Duration::from_secs(100);
        mount
            .runtime
            .block_on(mount.files.open_files.settle_all(limit));
        assert_eq!(mount.store.content("f").unwrap(), "content");
        assert_eq!(mount.stage.used_bytes(), 0, "nothing is left on the disk");
        assert_eq!(std::fs::read_dir(mount.stage.folder()).unwrap().count(), 1);
    }
}

#[test]
fn what_was_written_after_an_attempt_that_nobody_heard_of_is_published_by_the_next_mount() {
    for old in [None, Some("old")] {
        let mount = Mount::new(Publish::Close);
        if let Some(old) = old {
            mount.store.plant("f", old);
        }
        let handle = mount.open("f", WRITE).unwrap();
        assert!(mount.write(handle, 0, b"content"));
        {
            let mut faults = mount.store.faults();
            faults.lose_answer(Operation::Put, 0);
            faults.fail(Operation::Head, 0, Failure::Unreachable);
        }
        assert!(!mount.close(handle));
        assert!(mount.write(handle, 7, b" and more"));
        mount.store.faults().away_after(0, false);
        assert!(!mount.close(handle));
        assert_eq!(mount.store.content("f").unwrap(), "content");
        let (told, _) = mount.take_over();
        let found = mount.store.content("f").unwrap();
        assert_eq!(found, "content and more", "{told:?}");
    }
}

#[test]
fn log_that_lost_its_end_does_not_replace_what_was_published_since() {
    let mount = Mount::new(Publish::Close);
    let handle = mount.open("f", WRITE).unwrap();
    assert!(mount.write(handle, 0, b"content"));
    mount.store.faults().fail(Operation::Put, 0, Failure::Busy);
    assert!(!mount.close(handle));
    let before = Stage::temporary(1 << 20).unwrap();
    let before = before.folder().join("before");
    copy_folder(mount.stage.folder(), &before);
    assert!(mount.write(handle, 7, b" and more"));
    assert!(mount.close(handle));
    let (told, saved) = mount.take_over_of(&before);
    assert_eq!(mount.store.content("f").unwrap(), "content and more");
    assert_eq!(saved, [b"content"], "{told:?}");
}

#[test]
fn what_was_written_after_publishing_and_after_a_rename_is_published_by_the_next_mount() {
    for is_renamed in [false, true] {
        for is_published in [false, true] {
            let mount = Mount::new(Publish::Close);
            mount.store.plant("f", "old");
            let handle = mount.open("f", WRITE).unwrap();
            assert!(mount.write(handle, 3, b" and"));
            if is_published {
                assert!(mount.close(handle));
            }
            let [from, to] = ["f", "g"].map(|name| Name { parent: ROOT, name });
            if is_renamed {
                let renamed = mount.files.rename(from, to, true);
                mount.runtime.block_on(renamed).unwrap();
            }
            mount.store.faults().away_after(0, false);
            assert!(mount.write(handle, 7, b" more"));
            assert!(!mount.close(handle));
            let (told, _) = mount.take_over();
            let name = if is_renamed { "g" } else { "f" };
            assert_eq!(mount.store.keys(), [name], "{told:?}");
            assert_eq!(mount.store.content(name).unwrap(), "old and more");
        }
    }
}

#[test]
fn full_stage_refuses_before_data_are_taken_and_streams_go_on() {
    let mount = Mount::with(Writes {
        stage: Arc::new(Stage::temporary(40 << 20).unwrap()),
        publish: Publish::Close,
        sending_bytes: 32 << 20,
        attributes_after: Writes::ATTRIBUTES_AFTER,
        is_shared: false,
    });
    // In order: more than the stage holds.
    let handle = mount.open("stream", WRITE).unwrap();
    let piece = pattern(MIB, 5);
    for index in 0..100 {
        assert!(mount.write(handle, index * MIB, &piece), "{index} MiB");
    }
    // The head may be written again, as formats do that count at the end.
    assert!(mount.write(handle, 10, b"HEAD"));
    assert!(mount.close(handle));
    let whole = mount.store.content("stream").unwrap();
    assert_eq!(whole.len(), 100 * MIB);
    assert!(&whole[10..14] == b"HEAD" && whole[14..MIB] == piece[14..]);
    assert!(whole[MIB..].chunks(MIB).all(|one| one == piece));
    mount
        .runtime
        .block_on(mount.files.open_files.close(handle))
        .unwrap();
    // Here and there: refused when it is full, and what was taken is published.
    let handle = mount.open("random", WRITE).unwrap();
    let mut taken = 0;
    while mount.write(handle, (99 - taken) * MIB, &piece) {
        taken += 1;
    }
    assert!((30..40).contains(&taken), "{taken} MiB were taken");
    assert!(mount.close(handle));
    let whole = mount.store.content("random").unwrap();
    let from = (100 - taken) * MIB;
    assert!(whole[..from].iter().all(|byte| *byte == 0));
    assert!(whole[from..].chunks(MIB).all(|one| one == piece));
}
