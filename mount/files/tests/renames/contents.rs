// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of comparisons: where nobody heard the answer to a copy, the bytes at both names say what
//! counts as the copy. They are read side by side, and none twice.

use tokio::sync::{Barrier, Semaphore};

use super::*;

const OLD: &str = "content";
/// As many bytes.
const OTHER: &str = "altered";
const STAYS: &str = "`p/a/x` was not moved to `p/b/x`: somebody else wrote the new name";

fn said_that_x_stays() -> bool {
    told().iter().any(|line| line == STAYS)
}

#[test]
fn contents_of_all_copies_whose_answers_were_lost_are_compared_side_by_side() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    let names = ["1", "2", "3", "4", "5", "6", "7", "8"];
    let all = Arc::new(Barrier::new(names.len()));
    for name in names {
        store.plant(&format!("p/a/{name}"), format!("content {name}"));
        let key = format!("p/b/{name}");
        store.faults().lose_answer_key(Operation::Copy, &key);
        // None is answered before all are asked for.
        let all = Arc::clone(&all);
        let meet = async move {
            all.wait().await;
        };
        store.faults().before_key(Operation::Get, &key, meet);
    }
    let mount = Mount::of(&store);
    mount.files.finish_renames(CALM_TIMES);
    assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
    wait_for("they wait for each other", || !has_records(&store));
    assert_eq!(store.keys(), names.map(|name| format!("p/b/{name}")));
    assert_eq!(store.faults().count(Operation::Get), 16);
}

#[test]
fn failure_of_one_comparison_gives_up_no_request_beside_it() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    store.plant("p/a/w", "is copied anew");
    store.plant("p/a/x", "0123456789");
    store.plant("p/a/y", vec![7; 1000]);
    let mount = Mount::of(&store);
    mount.files.finish_renames(CALM_TIMES);
    {
        let mut faults = store.faults();
        faults.fail_key(Operation::Copy, "p/b/w", Failure::Unreachable);
        faults.lose_answer_key(Operation::Copy, "p/b/x");
        faults.lose_answer_key(Operation::Copy, "p/b/y");
    }
    // The record is the first PUT; with the next one the mount tries again.
    let (try_again, tries) = tokio::sync::oneshot::channel::<()>();
    store.faults().before(Operation::Put, 1, async {
        let _ = tries.await;
    });
    assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
    let (begun, failed) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let later = || {
        let (begun, failed) = (Arc::clone(&begun), Arc::clone(&failed));
        async move {
            begun.add_permits(1);
            let _ = failed.acquire().await;
            // Time enough to be given up.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    {
        let mut faults = store.faults();
        faults.before_key(Operation::Copy, "p/b/w", later());
        faults.before_key(Operation::Get, "p/b/y", later());
        faults.fail_key(Operation::Get, "p/b/x", Failure::Busy);
        let (begun, failed) = (Arc::clone(&begun), Arc::clone(&failed));
        let fail = async move {
            let _ = begun.acquire_many(2).await;
            failed.add_permits(2);
        };
        faults.before_key(Operation::Get, "p/b/x", fail);
    }
    drop(try_again);
    wait_for("nobody tries again", || !has_records(&store));
    assert_eq!(store.keys(), ["p/b/w", "p/b/x", "p/b/y"]);
    assert_eq!(store.faults().count(Operation::Copy), 4);
    // y once at each name, x once or twice.
    let got = store.faults().got_bytes();
    assert!((2020..=2030).contains(&got), "{got} bytes were read");
}

#[test]
fn mount_that_takes_a_rename_over_compares_nothing_twice_if_it_must_try_again() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    let (x, y) = ("x".repeat(10), "y".repeat(100_000));
    for folder in ["a", "b"] {
        store.plant(&format!("p/{folder}/x"), x.clone());
        store.plant(&format!("p/{folder}/y"), y.clone());
    }
    let record = record_of(&store, "a/", "b/", &["x", "y"]);
    store.plant(&format!("p/.weft-renames/{ID}"), record);
    store
        .faults()
        .fail_key(Operation::Get, "p/b/x", Failure::Busy);
    let mount = Mount::of(&store);
    let times = Times {
        patience: PATIENCE,
        ..CALM_TIMES
    };
    mount.files.finish_renames(times);
    wait_for("the record is left", || !has_records(&store));
    assert_eq!(store.keys(), ["p/b/x", "p/b/y"]);
    let got = store.faults().got_bytes();
    assert!(got < 3 * y.len() as u64, "{got} bytes were read");
}

#[test]
fn of_a_dead_mounts_rename_an_object_of_the_same_length_is_the_copy_by_its_content_alone() {
    let _one = alone();
    let ways: [fn(&Arc<MemoryStore>, Mount); 2] = [recover_here, recover_elsewhere];
    for (body, is_same) in [(OTHER, false), (OLD, true)] {
        for recover in ways {
            let store = Arc::new(MemoryStore::new());
            store.plant("p/a/x", OLD);
            store.plant("p/a/y", "another");
            let mount = Mount::of(&store);
            // It dies when x is copied, and y not. Both are asked for by then: a request that comes
            // after the death would be the last one that is done.
            let (asked, y_is_asked_for) = tokio::sync::oneshot::channel();
            let going = Arc::clone(&store);
            let go = async move {
                let _ = y_is_asked_for.await;
                going.faults().away_after(0, false);
            };
            let ask = async move {
                let _ = asked.send(());
            };
            {
                let mut faults = store.faults();
                faults.before_key(Operation::Copy, "p/b/x", go);
                faults.lose_answer_key(Operation::Copy, "p/b/x");
                faults.before_key(Operation::Copy, "p/b/y", ask);
                faults.fail_key(Operation::Copy, "p/b/y", Failure::Unreachable);
            }
            assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
            store.plant("p/b/x", body);
            recover(&store, mount);
            assert_eq!(store.content("p/b/x").unwrap(), body);
            assert_eq!(store.content("p/b/y").unwrap(), "another");
            assert_eq!(store.content("p/a/x").is_none(), is_same);
            assert_eq!(store.content("p/a/y"), None);
            assert_eq!(said_that_x_stays(), !is_same, "{:?}", told());
            told().clear();
        }
    }
}

#[test]
fn late_copy_of_a_dead_mount_is_the_copy_though_another_one_was_refused_for_it() {
    let _one = alone();
    for (body, is_same) in [(OTHER, false), (OLD, true)] {
        let store = Arc::new(MemoryStore::new());
        plant_record(&store);
        let late = Arc::clone(&store);
        let come = async move { late.plant("p/b/x", body) };
        store.faults().before_key(Operation::Copy, "p/b/x", come);
        let mount = Mount::of(&store);
        mount.files.finish_renames(TIMES);
        wait_for("the record is left", || !has_records(&store));
        assert_eq!(store.content("p/b/x").unwrap(), body);
        assert_eq!(store.content("p/a/x").is_none(), is_same);
        assert_eq!(said_that_x_stays(), !is_same, "{:?}", told());
        told().clear();
    }
}
