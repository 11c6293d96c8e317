// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of what a mount shows after another mount renamed a folder: the old name does not remain as
//! an empty folder.

use super::*;
use weft_files::{Change, Given};

/// Unlinks a file in the folder `a`: from then on the mount keeps `a`, whatever the store has.
fn unlink_in_a(mount: &Mount, name: &str) {
    let runtime = &mount.runtime;
    let folder = runtime.block_on(mount.files.lookup(ROOT, "a")).unwrap();
    let parent = folder.attributes.ino;
    let unlinked = mount.files.unlink(Name { parent, name });
    runtime.block_on(unlinked).unwrap();
}

/// A folder `a` whose file `extra` this mount has unlinked.
fn mount_with_a_changed_folder(store: &Arc<MemoryStore>) -> Mount {
    plant(store, false);
    store.plant("p/a/extra", "extra");
    let mount = Mount::of(store);
    unlink_in_a(&mount, "extra");
    mount
}

#[test]
fn old_name_of_a_rename_that_broke_off_is_gone_once_anybody_has_finished_it() {
    let _one = alone();
    for is_finished_elsewhere in [false, true] {
        let store = Arc::new(MemoryStore::new());
        let mount = mount_with_a_changed_folder(&store);
        mount.files.finish_renames(CALM_TIMES);
        store
            .faults()
            .fail(Operation::Copy, 1, Failure::Unreachable);
        // The record is the first PUT; with the next one the mount tries again.
        let (try_again, tries) = tokio::sync::oneshot::channel::<()>();
        store.faults().before(Operation::Put, 1, async {
            let _ = tries.await;
        });
        assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
        assert_eq!(mount.names(), ["a", "b", "other"], "half of it");
        let other = Mount::of(&store);
        if is_finished_elsewhere {
            other.files.finish_renames(TIMES);
            wait_for("nobody finishes it", || !has_records(&store));
        }
        drop(try_again);
        wait_for("nobody finishes it", || !has_records(&store));
        wait_for("the old name stays", || mount.names() == ["b", "other"]);
        assert_eq!(other.names(), ["b", "other"]);
    }
}

#[test]
fn mount_that_finishes_anothers_rename_does_not_show_the_old_name() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    let mount = mount_with_a_changed_folder(&store);
    store.uproot("p/a/");
    store.uproot("p/a/sub/y");
    store.uproot("p/a/sub/.weft-attributes");
    plant_record(&store);
    mount.files.finish_renames(TIMES);
    wait_for("nobody finishes it", || !has_records(&store));
    wait_for("the old name stays", || mount.names() == ["b", "other"]);
}

#[test]
fn mount_that_saw_a_folder_after_it_changed_it_keeps_no_name_that_another_mount_changes() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    let mount = mount_with_a_changed_folder(&store);
    assert_eq!(mount.names(), ["a", "other"]);
    let other = Mount::of(&store);
    assert_eq!(other.rename("a", "b"), Ok(()));
    assert_eq!(mount.names(), ["b", "other"]);
    assert_eq!(mount.rename("b", "c"), Ok(()));
    assert_eq!(other.rename("c", "a"), Ok(()));
    assert_eq!(mount.names(), ["a", "other"]);
}

#[test]
fn folder_that_a_mount_emptied_stays_though_a_listing_showed_it_before() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    store.plant("p/a/x", "x");
    store.plant("p/a/y", "y");
    let mount = Mount::of(&store);
    unlink_in_a(&mount, "x");
    assert_eq!(mount.names(), ["a"]);
    unlink_in_a(&mount, "y");
    assert!(store.keys().is_empty());
    assert_eq!(mount.names(), ["a"]);
    assert_eq!(mount.rename("a", "b"), Ok(()));
    assert_eq!(mount.names(), ["b"]);
    let at = |name| Name { parent: ROOT, name };
    let removed = mount.files.remove_folder(at("b"));
    mount.runtime.block_on(removed).unwrap();
    assert!(mount.names().is_empty());
}

/// Sets the mode of `x` in the folder `a`, and returns its number.
fn change_x(mount: &Mount) -> u64 {
    let find = |parent, name| {
        let found = mount.runtime.block_on(mount.files.lookup(parent, name));
        found.unwrap().attributes.ino
    };
    let change = Change {
        given: Given {
            mode: Some(0o600),
            ..Given::default()
        },
        ..Change::default()
    };
    let x = find(find(ROOT, "a"), "x");
    let changed = mount.files.attribute_calls.change(x, &change);
    mount.runtime.block_on(changed).unwrap();
    x
}

#[test]
fn attributes_set_just_before_another_mount_renames_the_folder_do_not_make_it_again() {
    let _one = alone();
    for has_object in [false, true] {
        let store = Arc::new(MemoryStore::new());
        store.plant("p/a/x", "x");
        if has_object {
            store.plant(
                "p/a/.weft-attributes",
                r#"{"version":1,"names":{"x":{"mode":416}}}"#,
            );
        }
        // By itself it writes them after the test.
        let mount = Mount::that_writes_attributes_after(Duration::from_secs(3600), &store);
        let x = change_x(&mount);
        assert_eq!(Mount::of(&store).rename("a", "b"), Ok(()));
        let written = mount.files.attribute_calls.sync(x);
        let fault = mount.runtime.block_on(written).unwrap_err();
        assert_eq!(fault.reason, Reason::NotFound);
        assert!(fault.to_string().contains("`p/a/` is gone"), "{fault}");
        assert!(is_moved(&store), "{:?}", store.keys());
        assert_eq!(mount.names(), ["b"]);
    }
}

fn is_moved(store: &MemoryStore) -> bool {
    !store.keys().iter().any(|key| key.starts_with("p/a/"))
}

#[test]
fn attributes_set_while_this_mount_renames_the_folder_are_written_at_the_new_name() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    store.plant("p/a/x", "x");
    let mount = Mount::that_writes_attributes_after(Duration::from_millis(1), &store);
    // The kernel looks for what it renames.
    mount
        .runtime
        .block_on(mount.files.lookup(ROOT, "a"))
        .unwrap();
    let (go_on, goes) = tokio::sync::oneshot::channel::<()>();
    let stop = async {
        let _ = goes.await;
    };
    store.faults().before_key(Operation::Copy, "p/b/x", stop);
    std::thread::scope(|scope| {
        let renaming = scope.spawn(|| mount.rename("a", "b"));
        wait_for("no rename began", || has_records(&store));
        change_x(&mount);
        // Time enough to write them where they must not be.
        std::thread::sleep(Duration::from_millis(50));
        drop(go_on);
        assert_eq!(renaming.join().unwrap(), Ok(()));
    });
    wait_for("the attributes are not written", || {
        store.content("p/b/.weft-attributes").is_some() || !is_moved(&store)
    });
    assert_eq!(store.keys(), ["p/b/.weft-attributes", "p/b/x"]);
}
