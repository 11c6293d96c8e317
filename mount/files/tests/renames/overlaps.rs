// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of renames of overlapping folders: one at a time is carried out, and a caller that cannot
//! wait gets an error.

use super::*;

/// A younger one, of a smaller name.
const OTHER_ID: &str = "0000000000000000000000000000000000000001";

impl Mount {
    /// The folder and the name of a path.
    fn place<'a>(&self, path: &'a str) -> Result<(u64, &'a str), Reason> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut parts = above.split('/').filter(|part| !part.is_empty());
        let enter = |parent, part: &str| {
            let found = self.runtime.block_on(self.files.lookup(parent, part));
            Ok(found.map_err(|fault| fault.reason)?.attributes.ino)
        };
        Ok((parts.try_fold(ROOT, enter)?, name))
    }

    fn rename_path(&self, old: &str, new: &str) -> Result<(), Reason> {
        let at = |(parent, name)| Name { parent, name };
        let (old, new) = (at(self.place(old)?), at(self.place(new)?));
        let renamed = self.files.rename(old, new, true);
        self.runtime.block_on(renamed).map_err(|fault| fault.reason)
    }
}

fn plant_folders(store: &MemoryStore) {
    for key in ["a/b/x", "a/y", "c/z", "q/r"] {
        store.plant(&format!("p/{key}"), key[key.len() - 3..].to_owned());
    }
}

#[test]
fn rename_about_the_folders_of_another_mounts_rename_changes_nothing_and_is_busy() {
    let _one = alone();
    let cases = [
        ("a/b/", "c/d/", "a", "e"),
        ("q/", "a/n/", "a", "e"),
        ("a/", "e/", "a/b", "c/d"),
        ("a/", "e/", "q", "a/n"),
        ("a/", "e/", "a", "f"),
        ("a/", "e/", "c", "e"),
        ("q/", "c/n/", "a", "c/n2"),
    ];
    for (from, to, old, new) in cases {
        let store = Arc::new(MemoryStore::new());
        plant_folders(&store);
        let body = record_of(&store, from, to, &[]);
        let record = format!("p/.weft-renames/{ID}");
        store.plant(&record, body);
        let mount = Mount::of(&store);
        // Takes nothing over, and waits for so long.
        mount.files.finish_renames(CALM_TIMES);
        let before = contents(&store);
        let began = Instant::now();
        let renamed = mount.rename_path(old, new);
        if new == "c/n2" {
            assert_eq!(renamed, Ok(()), "neighbours do not wait");
            continue;
        }
        assert_eq!(renamed, Err(Reason::Busy), "{old} to {new}, {from} to {to}");
        assert!(began.elapsed() >= TIMES.wait);
        assert!(began.elapsed() < Duration::from_secs(50));
        assert_eq!(contents(&store), before);
        assert_eq!(std::fs::read_dir(mount.stage.folder()).unwrap().count(), 1);
        // Once the other one is done, it goes on.
        store.uproot(&record);
        assert_eq!(mount.rename_path(old, new), Ok(()));
    }
}

#[test]
fn rename_waits_for_one_that_ends_soon() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    plant_folders(&store);
    let record = format!("p/.weft-renames/{ID}");
    store.plant(&record, record_of(&store, "a/", "e/", &[]));
    let mount = Mount::of(&store);
    mount.files.finish_renames(Times {
        wait: Duration::from_secs(100),
        ..CALM_TIMES
    });
    std::thread::scope(|scope| {
        let renamed = scope.spawn(|| mount.rename("a", "f"));
        std::thread::sleep(Duration::from_millis(100));
        assert!(store.content("p/a/y").is_some(), "it did not wait");
        store.uproot(&record);
        assert_eq!(renamed.join().unwrap(), Ok(()));
    });
    assert_eq!(mount.names(), ["c", "f", "q"]);
}

#[test]
fn renames_of_the_same_folders_at_once_lose_nothing_and_double_nothing() {
    let _one = alone();
    let moments = [
        (Operation::Put, 1),
        (Operation::List, 12),
        (Operation::Copy, 3),
        (Operation::Delete, 3),
    ];
    let rivals = [("a", "f"), ("a/b", "c/d"), ("c", "a/n"), ("c", "e")];
    let mut busy_count = 0;
    for (old, new) in rivals {
        for (operation, skipped) in moments
            .iter()
            .flat_map(|(operation, count)| (0..*count).map(|skipped| (*operation, skipped)))
        {
            let store = Arc::new(MemoryStore::new());
            plant_folders(&store);
            let bodies = |store: &MemoryStore| {
                let mut bodies: Vec<Bytes> = contents(store).into_values().collect();
                bodies.sort();
                bodies
            };
            let before = bodies(&store);
            let (mount, rival) = (Mount::of(&store), Mount::of(&store));
            for mount in [&mount, &rival] {
                mount.files.finish_renames(CALM_TIMES);
            }
            let (went, goes) = std::sync::mpsc::channel();
            let meet = async move {
                went.send(()).unwrap();
                tokio::time::sleep(TIMES.wait * 3 / 2).await;
            };
            store.faults().before(operation, skipped, meet);
            let place = format!("{old} to {new}, {operation:?} {skipped}");
            let answers = std::thread::scope(|scope| {
                let renamed = scope.spawn(|| mount.rename("a", "e"));
                let _ = goes.recv_timeout(Duration::from_millis(200));
                let answer = rival.rename_path(old, new);
                [renamed.join().unwrap(), answer]
            });
            wait_for("a record is left", || !has_records(&store));
            assert_eq!(bodies(&store), before, "{place}: {answers:?}");
            busy_count += answers
                .iter()
                .filter(|answer| **answer == Err(Reason::Busy))
                .count();
        }
    }
    assert!(busy_count > 0, "they never met");
}

#[test]
fn record_whose_mount_could_not_look_for_others_gives_way() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    plant_folders(&store);
    let mount = Mount::of(&store);
    let other = Arc::clone(&store);
    let body = record_of(&store, "a/b/", "c/d/", &[]);
    let record = format!("p/.weft-renames/{ID}");
    let planted = record.clone();
    let begin = async move { other.plant(&planted, body) };
    store.faults().before(Operation::Put, 0, begin);
    store.faults().lose_answer(Operation::Put, 0);
    let before = contents(&store);
    assert_eq!(mount.rename("a", "e"), Err(Reason::Broken));
    wait_for("it does not give way", || {
        told().iter().any(|line| line.contains("is given up"))
    });
    store.uproot(&record);
    assert_eq!(contents(&store), before);
}

#[test]
fn of_two_records_about_the_same_folders_the_older_one_is_finished_first() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    plant_folders(&store);
    let older = record_of(&store, "a/b/", "c/d/", &["x"]);
    let younger = record_of(&store, "a/", "e/", &["b/x", "y"]);
    store.plant(&format!("p/.weft-renames/{ID}"), older);
    store.plant(&format!("p/.weft-renames/{OTHER_ID}"), younger);
    let mounts = [(); 2].map(|()| Mount::of(&store));
    for mount in &mounts {
        mount.files.finish_renames(TIMES);
    }
    wait_for("a record is left", || !has_records(&store));
    assert_eq!(store.keys(), ["p/c/d/x", "p/c/z", "p/e/y", "p/q/r"]);
}

#[test]
fn next_mount_on_a_host_leaves_what_a_dead_one_began_while_another_rename_is_in_the_way() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    plant_folders(&store);
    let mount = Mount::of(&store);
    // It dies when it has written its record, before it looks for others.
    let going = Arc::clone(&store);
    let go = async move { going.faults().away_after(0, true) };
    store.faults().before(Operation::Put, 0, go);
    assert_eq!(mount.rename("a", "e"), Err(Reason::Broken));
    assert!(has_records(&store));
    let next = Arc::new(Stage::temporary(1 << 20).unwrap());
    mount.die(&next);
    store.faults().clear();
    let body = record_of(&store, "a/b/", "c/d/", &[]);
    let other = format!("p/.weft-renames/{ID}");
    store.plant(&other, body);
    let runtime = Runtime::new().unwrap();
    let ways = Ways::new(Arc::clone(&store) as _, runtime.handle().clone(), 1 << 26);
    let tell: fn(&str) = |line| told().push(line.to_owned());
    let left = next.folder().parent().unwrap().join("dead");
    for is_alone in [false, true] {
        if is_alone {
            store.uproot(&other);
        }
        runtime.block_on(recover(&ways, &next, "", tell)).unwrap();
        assert_eq!(left.exists(), !is_alone, "{:?}", told());
        assert_eq!(store.content("p/e/y").is_some(), is_alone);
    }
    assert_eq!(store.keys(), ["p/c/z", "p/e/b/x", "p/e/y", "p/q/r"]);
}
