// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of records: what they move, what stays in place, and what is not a record.

use super::*;

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
fn rename_says_so_if_somebody_else_wrote_a_file_and_loses_nothing_of_it() {
    let _one = alone();
    // Before which request of x, what is written, and what is there then.
    type Case = (Operation, &'static str, &'static str, [&'static str; 2]);
    let cases: [Case; 4] = [
        (Operation::Copy, "p/b/x", "p/a/x", ["p/a/x", "p/b/y"]),
        (Operation::Delete, "p/a/x", "p/a/x", ["p/a/x", "p/b/y"]),
        (Operation::Copy, "p/b/x", "p/b/x", ["p/b/x", "p/b/y"]),
        // This is as if it were written after the rename.
        (Operation::Copy, "p/b/x", "p/a/new", ["p/a/new", "p/b/x"]),
    ];
    for (moment, key, written, keys) in cases {
        let store = Arc::new(MemoryStore::new());
        store.plant("p/a/x", "a long content");
        store.plant("p/a/y", "another");
        let mount = Mount::of(&store);
        let writer = Arc::clone(&store);
        let write = async move { writer.plant(written, "by somebody else") };
        store.faults().before_key(moment, key, write);
        let is_new = written == "p/a/new";
        let answer = if is_new { Ok(()) } else { Err(Reason::Broken) };
        assert_eq!(
            mount.rename("a", "b"),
            answer,
            "{written} before {moment:?}"
        );
        assert!(!has_records(&store));
        assert_eq!(store.content(written).unwrap(), "by somebody else");
        for key in keys {
            assert!(store.content(key).is_some(), "{key}: {:?}", store.keys());
        }
        assert_eq!(store.content("p/b/y").unwrap(), "another");
        let has_old = |key: &String| store.content(key).unwrap() == "a long content";
        let is_gone = !store.keys().iter().any(has_old);
        assert_eq!(is_gone, written == "p/a/x" && moment == Operation::Copy);
        let told = told().join("\n");
        let line = "`p/a/x` was not moved to `p/b/x`: somebody";
        assert_eq!(told.contains(line), !is_new, "{told}");
        self::told().clear();
        assert_eq!(mount.names(), ["a", "b"], "{written} before {moment:?}");
    }
}

#[test]
fn object_of_the_same_length_that_somebody_else_wrote_at_the_new_name_is_not_the_copy() {
    let _one = alone();
    // Before x is copied, and after: then the copy of y is refused, and both folders are looked at
    // again.
    for copies in 0..2 {
        let store = Arc::new(MemoryStore::new());
        store.plant("p/a/x", "a long content");
        store.plant("p/a/y", "another");
        let mount = Mount::of(&store);
        let writer = Arc::clone(&store);
        let write = async move {
            while copies == 1 && writer.content("p/b/x").is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            writer.plant("p/b/x", "somebody else!");
        };
        let copy = ["p/b/x", "p/b/y"][copies];
        store.faults().before_key(Operation::Copy, copy, write);
        if copies == 1 {
            store
                .faults()
                .fail_key(Operation::Copy, copy, Failure::Changed);
        }
        assert_eq!(mount.rename("a", "b"), Err(Reason::Broken), "{copies}");
        assert!(!has_records(&store));
        assert_eq!(store.content("p/a/x").unwrap(), "a long content");
        assert_eq!(store.content("p/b/x").unwrap(), "somebody else!");
        assert_eq!(store.keys(), ["p/a/x", "p/b/x", "p/b/y"]);
        let line = "`p/a/x` was not moved to `p/b/x`: somebody else wrote the new name";
        assert!(told().join("\n").contains(line));
        told().clear();
    }
}

#[test]
fn rename_of_a_folder_that_another_client_has_emptied_says_that_there_is_none() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    store.plant("p/a/x", "content");
    assert_eq!(Mount::of(&store).rename("a", "b"), Ok(()));
    let lists = 0..store.faults().count(Operation::List);
    let lists = lists.map(|list| (Operation::List, list));
    for (operation, skipped) in lists.chain([(Operation::Copy, 0)]) {
        let store = Arc::new(MemoryStore::new());
        store.plant("p/a/x", "content");
        store.plant("p/f", "f");
        let mount = Mount::of(&store);
        let remover = Arc::clone(&store);
        let remove = async move { remover.uproot("p/a/x") };
        store.faults().before(operation, skipped, remove);
        let renamed = mount.rename("a", "b");
        assert_eq!(renamed, Err(Reason::NotFound), "{operation:?} {skipped}");
        assert_eq!(store.keys(), ["p/f"]);
        assert_eq!(mount.names(), ["f"]);
    }
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
    assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
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
