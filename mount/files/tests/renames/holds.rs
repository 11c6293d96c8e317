// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of who finishes a rename: one mount at a time, whatever is slow or lost.

use super::*;

use crate::stalls::unless_stalled;

/// For so long a busy machine may run none of a test's threads: times that a law compares lie
/// further apart. A law that meets a longer stall is tried again.
const STALL: Duration = Duration::from_millis(1500);

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
    unless_stalled(STALL / 2, || {
        let _one = alone();
        let store = Arc::new(MemoryStore::new());
        plant(&store, false);
        let new = moved(&contents(&store));
        let (mount, other) = (Mount::of(&store), Mount::of(&store));
        let times = Times {
            patience: STALL * 2,
            least_sure: STALL,
            ..SLOW_TIMES
        };
        mount.files.finish_renames(times);
        let slow = || async { tokio::time::sleep(STALL * 3).await };
        for copy in 0..4 {
            store.faults().before(Operation::Copy, copy, slow());
        }
        // The answer to one heartbeat is lost; the first PUT is the record's.
        store.faults().lose_answer(Operation::Put, 2);
        std::thread::scope(|scope| {
            let renamed = scope.spawn(|| mount.rename("a", "b"));
            wait_for("there is no record", || has_records(&store));
            other.files.finish_renames(times);
            assert_eq!(renamed.join().unwrap(), Ok(()));
        });
        assert_eq!(contents(&store), new);
        assert_eq!(store.faults().count(Operation::Copy), 4);
    });
}

#[test]
fn mount_that_may_have_lost_its_hold_drops_the_requests_that_it_waits_for() {
    unless_stalled(STALL / 4, || {
        let _one = alone();
        let store = Arc::new(MemoryStore::new());
        store.plant("p/a/x", "content");
        let mount = Mount::of(&store);
        let times = Times {
            patience: SLOW_TIMES.least_sure + STALL,
            ..SLOW_TIMES
        };
        mount.files.finish_renames(times);
        wait_for("nobody looks", || {
            store.faults().count(Operation::List) >= 1
        });
        let slow = async move { tokio::time::sleep(times.patience * 2).await };
        store.faults().before(Operation::Delete, 0, slow);
        // The record is written, and no heartbeat; nor does it come back before the end.
        for put in 1..100 {
            store
                .faults()
                .fail(Operation::Put, put, Failure::Unreachable);
        }
        let began = Instant::now();
        assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
        assert!(began.elapsed() < times.patience, "{:?}", began.elapsed());
        assert!(
            store.faults().count(Operation::Delete) == 1,
            "the deletion was not on its way"
        );
        std::thread::sleep(times.patience * 5 / 2);
        assert!(store.content("p/a/x").is_some());
        store.faults().clear();
        wait_for("nobody tries again", || !has_records(&store));
        assert_eq!(store.keys(), ["p/b/x"]);
    });
}

#[test]
fn mount_that_shows_that_it_lives_keeps_its_record() {
    unless_stalled(STALL / 2, || {
        let _one = alone();
        let store = Arc::new(MemoryStore::new());
        plant_record(&store);
        let mount = Mount::of(&store);
        mount.files.finish_renames(Times {
            patience: STALL * 2,
            ..TIMES
        });
        let holder = format!("p/.weft-renames/{ID}.holder");
        for heartbeat in 0..40 {
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
    });
}

#[test]
fn mounts_that_look_at_one_record_at_once_finish_it_once() {
    unless_stalled(SLOW_TIMES.least_sure / 4, || {
        let _one = alone();
        for _ in 0..4 {
            let store = Arc::new(MemoryStore::new());
            plant_record(&store);
            let mounts = [(); 4].map(|()| Mount::of(&store));
            for mount in &mounts {
                mount.files.finish_renames(SLOW_TIMES);
            }
            wait_for("the record is left", || !has_records(&store));
            assert_eq!(store.keys(), ["p/b/x"]);
            assert_eq!(store.faults().count(Operation::Copy), 1);
        }
    });
}
