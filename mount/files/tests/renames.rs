// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of folders that get another name: a mount that dies between any two requests leaves the old
//! folder or the new one, whole, once another mount has been there; and what that does with records
//! as docs/mount-names.md specifies them.

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
    pause: Duration::from_millis(10),
};
/// The same where requests are slow.
const SLOW_TIMES: Times = Times {
    patience: Duration::from_millis(600),
    heartbeat: Duration::from_millis(50),
    least_sure: Duration::from_millis(300),
    pause: Duration::from_millis(100),
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
        let runtime = Runtime::new().unwrap();
        let writes = Writes::temporary(Publish::Close).unwrap();
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
            began.elapsed() < Duration::from_secs(10),
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
    assert_eq!(
        mount.rename("other", "other2"),
        Ok(()),
        "which finishes the first one before"
    );
    assert_eq!(mount.rename("other2", "other"), Ok(()));
    assert_eq!(contents(&store), new);
    assert_eq!(mount.names(), ["b", "other"]);
    // By itself: two seconds later.
    store
        .faults()
        .fail(Operation::Delete, 1, Failure::Unreachable);
    assert_eq!(mount.rename("b", "a"), Err(Reason::Broken));
    wait_for("the rename is not tried again", || !has_records(&store));
    assert_eq!(mount.names(), ["a", "other"]);
}

/// The entity tag of an object, as JSON has it.
fn tag(store: &MemoryStore, key: &str) -> String {
    let runtime = Runtime::new().unwrap();
    let info = runtime.block_on(store.head(key)).unwrap();
    info.etag.as_str().replace('"', "\\\"")
}

#[test]
fn record_as_specified_is_finished_and_what_others_wrote_stays() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    for key in ["moves", "changed", "taken", "copied"] {
        store.plant(&format!("p/a/{key}"), key);
    }
    let objects: Vec<String> = ["moves", "changed", "taken", "copied"]
        .iter()
        .map(|key| {
            let etag = tag(&store, &format!("p/a/{key}"));
            format!(
                r#"{{"key": "{key}", "etag": "{etag}", "size_bytes": {}}}"#,
                key.len()
            )
        })
        .collect();
    store.plant("p/b/taken", "before");
    let record = format!(
        r#"{{"version": 1, "from": "a/", "to": "b/", "objects": [{}]}}"#,
        objects.join(", ")
    );
    store.plant(&format!("p/.weft-renames/{ID}"), record);
    store.plant("p/a/changed", "since");
    store.plant("p/b/copied", "copied");
    let mount = Mount::of(&store);
    mount.files.finish_renames(TIMES);
    wait_for("the record is left", || !has_records(&store));
    let now = contents(&store);
    let now: Vec<(&str, &[u8])> = now.iter().map(|(key, body)| (&**key, &**body)).collect();
    let wanted: [(&str, &[u8]); 5] = [
        ("p/a/changed", b"since"),
        ("p/a/taken", b"taken"),
        ("p/b/copied", b"copied"),
        ("p/b/moves", b"moves"),
        ("p/b/taken", b"before"),
    ];
    assert_eq!(now, wanted);
    let told = told().join("\n");
    assert!(
        told.contains("`p/a/changed` was not moved to `p/b/changed`: somebody"),
        "{told}"
    );
    assert!(
        told.contains("`p/a/taken` was not moved to `p/b/taken`: somebody"),
        "{told}"
    );
}

#[test]
fn object_that_somebody_wrote_at_the_new_name_is_no_copy_if_it_has_another_length() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    store.plant("p/a/x", "a long content");
    let mount = Mount::of(&store);
    let planted = Arc::clone(&store);
    let plant = async move { planted.plant("p/b/x", "short") };
    store.faults().before(Operation::Copy, 0, plant);
    let _ = mount.rename("a", "b");
    assert!(!has_records(&store));
    assert_eq!(store.content("p/a/x").unwrap(), "a long content");
    assert_eq!(store.content("p/b/x").unwrap(), "short");
    let told = told().join("\n");
    assert!(told.contains("`p/a/x` was not moved to `p/b/x`"), "{told}");
}

#[test]
fn mount_that_comes_back_removes_nothing_if_another_one_has_finished_meanwhile() {
    let _one = alone();
    let moments = [
        (Operation::Put, 0),
        (Operation::Head, 0),
        (Operation::List, 0),
        (Operation::List, 1),
        (Operation::Delete, 0),
    ];
    for moment in moments {
        let store = Arc::new(MemoryStore::new());
        store.tag_contents();
        store.plant("p/a/x", "content");
        let mount = Mount::of(&store);
        store
            .faults()
            .fail(Operation::Delete, 0, Failure::Unreachable);
        assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
        // It tries again; meanwhile another mount finishes, and the folder gets its old name back.
        let other = Arc::clone(&store);
        let finish = async move {
            let is_record = |key: &String| key.contains("/.weft-renames/");
            let is_held = other.keys().iter().any(|key| key.ends_with(".holder"));
            if is_held {
                return;
            }
            other
                .keys()
                .iter()
                .filter(|key| is_record(key))
                .for_each(|key| other.uproot(key));
            other.uproot("p/b/x");
            other.plant("p/a/x", "content");
        };
        store.faults().before(moment.0, moment.1, finish);
        wait_for("nobody tries again", || !has_records(&store));
        let left = store.content("p/a/x").or(store.content("p/b/x"));
        assert_eq!(left.as_deref(), Some(&b"content"[..]), "{moment:?}");
        std::thread::sleep(Duration::from_millis(100));
        assert!(!has_records(&store));
    }
}

#[test]
fn copies_that_take_longer_than_others_wait_are_not_taken_over() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    plant(&store, false);
    let new = moved(&contents(&store));
    let (mount, other) = (Mount::of(&store), Mount::of(&store));
    mount.files.finish_renames(SLOW_TIMES);
    let slow = || async { tokio::time::sleep(SLOW_TIMES.patience * 3).await };
    for copy in 0..4 {
        store.faults().before(Operation::Copy, copy, slow());
    }
    // The answer to one heartbeat is lost; the first PUT is the record's.
    store.faults().lose_answer(Operation::Put, 2);
    std::thread::scope(|scope| {
        let renamed = scope.spawn(|| mount.rename("a", "b"));
        wait_for("there is no record", || has_records(&store));
        other.files.finish_renames(SLOW_TIMES);
        assert_eq!(renamed.join().unwrap(), Ok(()));
    });
    assert_eq!(contents(&store), new);
    assert_eq!(store.faults().count(Operation::Copy), 4);
}

#[test]
fn mount_that_may_have_lost_its_hold_drops_the_requests_that_it_waits_for() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    store.plant("p/a/x", "content");
    let mount = Mount::of(&store);
    mount.files.finish_renames(SLOW_TIMES);
    wait_for("nobody looks", || {
        store.faults().count(Operation::List) == 1
    });
    let slow = async { tokio::time::sleep(SLOW_TIMES.patience * 3).await };
    store.faults().before(Operation::Delete, 0, slow);
    // The record is written, and no heartbeat; nor does it come back before the end.
    for put in 1..100 {
        store
            .faults()
            .fail(Operation::Put, put, Failure::Unreachable);
    }
    let began = Instant::now();
    assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
    assert!(
        began.elapsed() < SLOW_TIMES.patience,
        "{:?}",
        began.elapsed()
    );
    assert!(
        store.faults().count(Operation::Delete) == 1,
        "the deletion was not on its way"
    );
    std::thread::sleep(SLOW_TIMES.patience * 4);
    assert!(store.content("p/a/x").is_some());
    store.faults().clear();
    wait_for("nobody tries again", || !has_records(&store));
    assert_eq!(store.keys(), ["p/b/x"]);
}

#[test]
fn store_that_refuses_conditions_of_deletions_loses_nothing_that_somebody_wrote_meanwhile() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    store.plant("p/a/x", "old");
    let mount = Mount::of(&store);
    let writer = Arc::clone(&store);
    let write = async move { writer.plant("p/a/x", "written since") };
    store.faults().before(Operation::Delete, 0, write);
    store
        .faults()
        .fail(Operation::Delete, 0, Failure::Unsupported);
    let _ = mount.rename("a", "b");
    assert_eq!(store.content("p/a/x").unwrap(), "written since");
    assert_eq!(store.content("p/b/x").unwrap(), "old");
}

#[test]
fn folder_with_an_object_in_an_archive_is_not_renamed() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    store.plant("p/a/x", "x");
    store.plant("p/a/y", "y");
    store.archive("p/a/y");
    let mount = Mount::of(&store);
    assert_eq!(mount.rename("a", "b"), Err(Reason::Denied));
    assert_eq!(store.keys(), ["p/a/x", "p/a/y"]);
}

#[test]
fn records_that_are_strange_are_left_alone_and_told_of() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    let key = format!("p/.weft-renames/{ID}");
    store.plant(&key, r#"{"version": 2}"#);
    store.plant("p/.weft-renames/ffff.holder", "of no record");
    store.plant("p/.weft-renames/", "a console's marker");
    store.plant("p/f", "f");
    let mount = Mount::of(&store);
    mount.files.finish_renames(TIMES);
    wait_for("nothing is told", || {
        told()
            .iter()
            .any(|line| line.contains("it has version 2, and this mount knows 1"))
    });
    assert_eq!(store.content(&key).unwrap(), r#"{"version": 2}"#);
    std::thread::sleep(PATIENCE * 2);
    assert_eq!(store.keys(), ["p/.weft-renames/", &key, "p/f"]);
    assert_eq!(mount.names(), ["f"], "records do not show");
}

/// A record that moves `p/a/x` to `p/b/x`.
fn plant_record(store: &MemoryStore) {
    store.plant("p/a/x", "content");
    let etag = tag(store, "p/a/x");
    let object = format!(r#"{{"key": "x", "etag": "{etag}", "size_bytes": 7}}"#);
    let record = format!(r#"{{"version": 1, "from": "a/", "to": "b/", "objects": [{object}]}}"#);
    store.plant(&format!("p/.weft-renames/{ID}"), record);
}

#[test]
fn mount_that_shows_that_it_lives_keeps_its_record() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    plant_record(&store);
    let mount = Mount::of(&store);
    mount.files.finish_renames(Times {
        patience: Duration::from_millis(400),
        ..TIMES
    });
    let holder = format!("p/.weft-renames/{ID}.holder");
    for heartbeat in 0..15 {
        std::thread::sleep(Duration::from_millis(100));
        let body = format!(r#"{{"version": 1, "holder": "{ID}", "heartbeat": {heartbeat}}}"#);
        store.plant(&holder, body);
        assert!(
            store.content("p/a/x").is_some(),
            "after {heartbeat} heartbeats"
        );
    }
    wait_for("the record is left", || !has_records(&store));
    assert_eq!(store.keys(), ["p/b/x"]);
}

#[test]
fn mounts_that_look_at_one_record_at_once_finish_it_once() {
    let _one = alone();
    for _ in 0..10 {
        let store = Arc::new(MemoryStore::new());
        plant_record(&store);
        let mounts = [(); 4].map(|()| Mount::of(&store));
        for mount in &mounts {
            mount.files.finish_renames(TIMES);
        }
        wait_for("the record is left", || !has_records(&store));
        assert_eq!(store.keys(), ["p/b/x"]);
        assert_eq!(store.faults().count(Operation::Copy), 1);
    }
}

#[test]
fn listing_of_the_mounts_own_folder_shows_that_there_are_records() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    store.plant("p/f", "f");
    let mount = Mount::of(&store);
    mount.files.finish_renames(TIMES);
    let lists = || store.faults().count(Operation::List);
    wait_for("nobody looks", || lists() > 0);
    std::thread::sleep(PATIENCE * 2);
    assert_eq!(lists(), 1, "where there is none, one look is enough");
    plant_record(&store);
    std::thread::sleep(PATIENCE * 2);
    assert!(has_records(&store));
    assert_eq!(mount.names(), ["a", "f"]);
    wait_for("the record is left", || !has_records(&store));
    assert_eq!(mount.names(), ["b", "f"]);
}

#[test]
fn folder_that_holds_a_name_or_would_get_too_long_a_key_is_not_renamed() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    let long = format!("p/a/{}", "d/".repeat(500));
    store.plant(&long, "deep");
    store.plant("p/b/f", "f");
    let mount = Mount::of(&store);
    let old = contents(&store);
    assert_eq!(mount.rename("a", "b"), Err(Reason::NotEmpty));
    let name = "n".repeat(50);
    assert_eq!(mount.rename("a", &name), Err(Reason::NameTooLong));
    assert_eq!(contents(&store), old);
    assert_eq!(std::fs::read_dir(mount.stage.folder()).unwrap().count(), 1);
}
