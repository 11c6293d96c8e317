// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of folders' renames. A mount may die between any two requests; after another mount was
//! there, the old folder or the new one exists, complete. The records are those that
//! docs/mount-names.md specifies.

mod contents;
mod holds;
mod overlaps;
mod records;
mod repeats;
#[path = "../../../../tests/stalls.rs"]
mod stalls;
mod views;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Runtime;
use weft_files::staging::recovery::recover;
use weft_files::staging::stage::Stage;
use weft_files::staging::ways::Ways;
use weft_files::{BucketFiles, FolderEntry, Name, Publish, Reason, Settings, Times, Writes};
use weft_store::memory::{MemoryStore, Operation};
use weft_store::{Failure, Objects};

const ROOT: u64 = 1;
/// How long records must be still before another mount finishes them, here.
const PATIENCE: Duration = Duration::from_millis(60);
const TIMES: Times = Times {
    patience: PATIENCE,
    heartbeat: Duration::from_millis(5),
    least_sure: Duration::from_millis(20),
    wait: Duration::from_millis(20),
    pause: Duration::from_millis(10),
};
/// The same where requests are slow.
const SLOW_TIMES: Times = Times {
    patience: Duration::from_millis(600),
    heartbeat: Duration::from_millis(50),
    least_sure: Duration::from_millis(300),
    wait: Duration::from_millis(500),
    pause: Duration::from_millis(100),
};
/// The same where no time runs out, however slow the machine is.
const CALM_TIMES: Times = Times {
    patience: Duration::from_secs(60),
    heartbeat: Duration::from_secs(5),
    least_sure: Duration::from_secs(20),
    wait: TIMES.wait,
    pause: TIMES.pause,
};
const ID: &str = "00000000000000000000000000000000000000aa";

/// What was told, by all mounts of the test that runs: one at a time.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
static ONE: Mutex<()> = Mutex::new(());

struct Mount {
    runtime: Runtime,
    stage: Arc<Stage>,
    files: BucketFiles,
}

impl Mount {
    fn of(store: &Arc<MemoryStore>) -> Self {
        Self::that_writes_attributes_after(Writes::ATTRIBUTES_AFTER, store)
    }

    fn that_writes_attributes_after(after: Duration, store: &Arc<MemoryStore>) -> Self {
        let runtime = Runtime::new().unwrap();
        let writes = Writes {
            attributes_after: after,
            ..Writes::temporary(Publish::Close).unwrap()
        };
        let stage = Arc::clone(&writes.stage);
        let settings = Settings {
            prefix: "p/".to_owned(),
            ttl: Duration::ZERO,
            cache_bytes: 1 << 20,
            writes,
        };
        let handle = runtime.handle().clone();
        let tell: fn(&str) = |line| told().push(line.to_owned());
        let files = BucketFiles::new(Arc::clone(store) as _, handle, settings, tell);
        Self {
            runtime,
            stage,
            files,
        }
    }

    fn rename(&self, old: &str, new: &str) -> Result<(), Reason> {
        let at = |name| Name { parent: ROOT, name };
        let renamed = self.files.rename(at(old), at(new), true);
        self.runtime.block_on(renamed).map_err(|fault| fault.reason)
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

    /// Dies: nothing of it runs any more. What its disk has is copied to beside `next`.
    fn die(self, next: &Stage) {
        let dead = next.folder().parent().unwrap().join("dead");
        copy_folder(self.stage.folder(), &dead);
        self.runtime.shutdown_background();
    }
}

fn told() -> std::sync::MutexGuard<'static, Vec<String>> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

fn alone() -> std::sync::MutexGuard<'static, ()> {
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    told().clear();
    one
}

type Contents = BTreeMap<String, Bytes>;

fn contents(store: &MemoryStore) -> Contents {
    let keys = store.keys().into_iter();
    let named = keys.filter_map(|key| Some((key.clone(), store.content(&key)?)));
    named.collect()
}

/// A folder `a`, whose every part is different, and an empty folder `b` if that is wanted.
fn plant(store: &MemoryStore, has_target: bool) {
    let attributes = r#"{"version":1,"names":{"x":{"mode":384}}}"#;
    store.plant("p/a/", "");
    store.plant("p/a/x", "one");
    store.plant("p/a/sub/y", "two");
    if has_target {
        store.plant("p/b/", "");
        let stale = r#"{"version":1,"names":{"gone":{"mode":384}}}"#;
        store.plant("p/b/.weft-attributes", stale);
    }
    store.plant("p/a/sub/.weft-attributes", attributes);
    store.plant("p/other", "stays");
}

/// The same, once `a` is `b`.
fn moved(old: &Contents) -> Contents {
    let is_replaced = |key: &&String| !key.starts_with("p/b/");
    let kept = old.iter().filter(|(key, _)| is_replaced(key));
    let named = |(key, body): (&String, &Bytes)| {
        let key = match key.strip_prefix("p/a/") {
            Some(rest) => format!("p/b/{rest}"),
            None => key.clone(),
        };
        (key, body.clone())
    };
    kept.map(named).collect()
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < Duration::from_secs(100),
            "{what}: {:?}",
            told()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn has_records(store: &MemoryStore) -> bool {
    store
        .keys()
        .iter()
        .any(|key| key.contains(".weft-renames/"))
}

/// The next mount of the same place on the same host.
fn recover_here(store: &Arc<MemoryStore>, dead: Mount) {
    let next = Arc::new(Stage::temporary(1 << 20).unwrap());
    dead.die(&next);
    store.faults().clear();
    let runtime = Runtime::new().unwrap();
    let ways = Ways::new(Arc::clone(store) as _, runtime.handle().clone(), 1 << 26);
    let tell: fn(&str) = |line| told().push(line.to_owned());
    runtime.block_on(recover(&ways, &next, "", tell)).unwrap();
    let left = next.folder().parent().unwrap().join("dead");
    assert!(!left.exists(), "{:?}", told());
}

/// A mount on another host.
fn recover_elsewhere(store: &Arc<MemoryStore>, dead: Mount) {
    let nowhere = Stage::temporary(1 << 20).unwrap();
    dead.die(&nowhere);
    store.faults().clear();
    let other = Mount::of(store);
    other.files.finish_renames(TIMES);
    wait_for("a record is left", || !has_records(store));
}

/// The entity tag of an object, as JSON has it.
fn tag(store: &MemoryStore, key: &str) -> String {
    let runtime = Runtime::new().unwrap();
    let info = runtime.block_on(store.head(key)).unwrap();
    info.etag.as_str().replace('"', "\\\"")
}

/// The record of a rename that names the objects `keys`, as they are now.
fn record_of(store: &MemoryStore, from: &str, to: &str, keys: &[&str]) -> String {
    let objects: Vec<String> = keys
        .iter()
        .map(|key| {
            let place = format!("p/{from}{key}");
            let (etag, size) = (tag(store, &place), store.content(&place).unwrap().len());
            format!(r#"{{"key": "{key}", "etag": "{etag}", "size_bytes": {size}}}"#)
        })
        .collect();
    let objects = objects.join(", ");
    format!(r#"{{"version": 1, "from": "{from}", "to": "{to}", "objects": [{objects}]}}"#)
}

/// A record that moves `p/a/x` to `p/b/x`.
fn plant_record(store: &MemoryStore) {
    store.plant("p/a/x", "content");
    let record = record_of(store, "a/", "b/", &["x"]);
    store.plant(&format!("p/.weft-renames/{ID}"), record);
}

#[test]
fn mount_killed_between_any_two_requests_of_a_rename_leaves_the_old_folder_or_the_new_one() {
    let _one = alone();
    let ways: [fn(&Arc<MemoryStore>, Mount); 2] = [recover_here, recover_elsewhere];
    let cases = [(false, false), (false, true), (true, false), (true, true)];
    for (way, recover) in ways.into_iter().enumerate() {
        for (has_target, is_next_done) in cases {
            let mut new_count = 0;
            for count in 0..100 {
                let store = Arc::new(MemoryStore::new());
                plant(&store, has_target);
                let old = contents(&store);
                let new = moved(&old);
                let mount = Mount::of(&store);
                store.faults().away_after(count, is_next_done);
                let is_done = mount.rename("a", "b").is_ok();
                let then = contents(&store);
                for key in ["x", "sub/y", "sub/.weft-attributes"] {
                    let old = &old[&format!("p/a/{key}")];
                    let named = |folder| then.get(&format!("p/{folder}/{key}")) == Some(old);
                    assert!(
                        named("a") || named("b"),
                        "{key} has no name after {count} requests"
                    );
                }
                recover(&store, mount);
                let now = contents(&store);
                let place = format!("way {way}, {has_target}, {is_next_done}, {count} requests");
                assert!(now == new || (!is_done && now == old), "{place}: {now:?}");
                new_count += u32::from(now == new);
                if is_done {
                    break;
                }
                assert!(count < 99, "it never ends");
            }
            assert!(
                new_count > 8,
                "{new_count} of the kills came after the record"
            );
        }
    }
}

#[test]
fn rename_that_broke_off_is_finished_by_its_own_mount_once_the_store_is_back() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    plant(&store, false);
    let new = moved(&contents(&store));
    let mount = Mount::of(&store);
    let copies = store.faults().count(Operation::Copy);
    store
        .faults()
        .fail(Operation::Copy, copies + 2, Failure::Unreachable);
    assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
    assert!(has_records(&store));
    store.faults().clear();
    // By itself: two seconds later.
    wait_for("the rename is not tried again", || !has_records(&store));
    assert_eq!(contents(&store), new);
    assert_eq!(mount.names(), ["b", "other"]);
    store
        .faults()
        .fail(Operation::Delete, 1, Failure::Unreachable);
    assert_eq!(mount.rename("b", "a"), Err(Reason::Broken));
    // Another rename of it finishes the first one before.
    assert_eq!(mount.rename("a", "c"), Ok(()));
    assert!(!has_records(&store));
    assert_eq!(mount.names(), ["c", "other"]);
}

#[test]
fn rename_that_the_store_refuses_for_good_keeps_no_other_name_waiting() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    plant(&store, false);
    let mount = Mount::of(&store);
    let archiving = Arc::clone(&store);
    store.faults().before(Operation::Copy, 0, async move {
        archiving.archive("p/a/x");
    });
    assert_eq!(mount.rename("a", "b"), Err(Reason::Denied));
    assert!(has_records(&store));
    assert_eq!(mount.rename("other", "other2"), Ok(()));
    assert_eq!(
        mount.rename("b", "c"),
        Err(Reason::Denied),
        "half of it is in a"
    );
    assert_eq!(mount.rename("a", "c"), Err(Reason::Denied));
    assert!(has_records(&store));
    assert_eq!(store.content("p/a/x").as_deref(), Some(&b"one"[..]));
}
