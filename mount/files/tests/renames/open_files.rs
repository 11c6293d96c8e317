// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of files that are open in a folder whose rename breaks off half-way: they are read and
//! written on, before and after the rename is finished, by this mount or by another one.

use tokio::sync::oneshot;

use super::*;
use weft_files::Mode;

const WRITE: Mode = Mode {
    writes: true,
    appends: false,
    truncates: false,
    process: 7,
};

/// The number of a file.
fn number(mount: &Mount, path: &str) -> u64 {
    let mut ino = ROOT;
    for name in path.split('/') {
        let found = mount.runtime.block_on(mount.files.lookup(ino, name));
        ino = found.unwrap().attributes.ino;
    }
    ino
}

/// A handle for reading, and one for writing.
fn open(mount: &Mount, path: &str) -> [u64; 2] {
    let ino = number(mount, path);
    [Mode::default(), WRITE].map(|mode| {
        let opened = mount.files.open_files.open(ino, mode);
        mount.runtime.block_on(opened).unwrap().handle
    })
}

fn read(mount: &Mount, handle: u64) -> Result<Bytes, Reason> {
    let read = mount.files.open_files.read(handle, 0, 100);
    mount.runtime.block_on(read).map_err(|fault| fault.reason)
}

fn write(mount: &Mount, handle: u64, data: &'static str) -> Result<(), Reason> {
    let files = &mount.files.open_files;
    let written = async {
        files
            .write(handle, 0, Bytes::from_static(data.as_bytes()))
            .await?;
        files.publish(handle).await
    };
    mount
        .runtime
        .block_on(written)
        .map_err(|fault| fault.reason)
}

/// A rename of `a` to `b` whose `failing` request fails, and which is not tried again before the
/// answer is dropped.
fn break_off(
    store: &MemoryStore,
    mount: &Mount,
    (operation, key): (Operation, &str),
) -> oneshot::Sender<()> {
    mount.files.finish_renames(CALM_TIMES);
    let (try_again, tries) = oneshot::channel::<()>();
    let mut faults = store.faults();
    faults.fail_key(operation, key, Failure::Unreachable);
    // The record is the first PUT; with the next one the mount tries again.
    faults.before(Operation::Put, 1, async {
        let _ = tries.await;
    });
    drop(faults);
    assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
    assert!(has_records(store));
    wait_for("it is not tried again", || {
        store.faults().count(Operation::Put) == 2
    });
    try_again
}

/// Requests after which a rename may break off: nothing is moved, some files are copied, some are
/// moved.
const PLACES: [(Operation, &str); 4] = [
    (Operation::Copy, "p/b/x"),
    (Operation::Copy, "p/b/sub/y"),
    (Operation::Delete, "p/a/sub/y"),
    (Operation::Delete, "p/a/x"),
];

#[test]
fn files_that_are_open_in_a_folder_whose_rename_breaks_off_are_read_and_written_on() {
    let _one = alone();
    for keeps_tags in [false, true] {
        for is_finished_elsewhere in [false, true] {
            for place in PLACES {
                let what = format!("{keeps_tags}, {is_finished_elsewhere}, {place:?}");
                let store = Arc::new(MemoryStore::new());
                store.faults().copies_keep_tags = keeps_tags;
                plant(&store, false);
                store.plant("p/a/r", "read");
                let mount = Mount::of(&store);
                let r_ino = number(&mount, "a/r");
                let opened = mount.files.open_files.open(r_ino, Mode::default());
                let r = mount.runtime.block_on(opened).unwrap().handle;
                let [x, x_to_write] = open(&mount, "a/x");
                let [y, y_to_write] = open(&mount, "a/sub/y");
                let ino = number(&mount, "a/x");
                let try_again = break_off(&store, &mount, place);
                assert_eq!(read(&mount, x).as_deref(), Ok(&b"one"[..]), "{what}");
                assert_eq!(
                    read(&mount, y_to_write).as_deref(),
                    Ok(&b"two"[..]),
                    "{what}"
                );
                let seen = || {
                    let seen = mount.runtime.block_on(mount.files.attributes(r_ino));
                    seen.unwrap().attributes.size_bytes
                };
                assert_eq!(seen(), 4, "{what}");
                if is_finished_elsewhere {
                    let other = Mount::of(&store);
                    other.files.finish_renames(TIMES);
                    wait_for("nobody finishes it", || !has_records(&store));
                    assert_eq!(
                        read(&mount, x_to_write).as_deref(),
                        Ok(&b"one"[..]),
                        "{what}"
                    );
                    assert_eq!(read(&mount, y).as_deref(), Ok(&b"two"[..]), "{what}");
                }
                drop(try_again);
                assert_eq!(write(&mount, x_to_write, "1"), Ok(()), "{what}");
                assert_eq!(write(&mount, y_to_write, "new"), Ok(()), "{what}");
                assert_eq!(read(&mount, x).as_deref(), Ok(&b"1ne"[..]), "{what}");
                assert_eq!(read(&mount, y).as_deref(), Ok(&b"new"[..]), "{what}");
                wait_for("nobody finishes it", || !has_records(&store));
                assert_eq!(
                    store.content("p/b/x").as_deref(),
                    Some(&b"1ne"[..]),
                    "{what}"
                );
                assert_eq!(
                    store.content("p/b/sub/y").as_deref(),
                    Some(&b"new"[..]),
                    "{what}"
                );
                assert!(
                    !store.keys().iter().any(|key| key.starts_with("p/a/")),
                    "{what}"
                );
                assert_eq!(mount.names(), ["b", "other"], "{what}");
                assert_eq!(seen(), 4, "{what}");
                assert_eq!(read(&mount, r).as_deref(), Ok(&b"read"[..]), "{what}");
                // Both names of the file are one.
                assert_eq!(number(&mount, "b/x"), ino, "{what}");
            }
        }
    }
}

#[test]
fn file_is_published_where_it_is_while_its_folders_rename_cannot_be_finished() {
    let _one = alone();
    for place in PLACES {
        let store = Arc::new(MemoryStore::new());
        plant(&store, false);
        let mount = Mount::of(&store);
        let [x, x_to_write] = open(&mount, "a/x");
        let try_again = break_off(&store, &mount, place);
        // It can never be moved.
        let archived = ["p/a/sub/y", "p/a/sub/.weft-attributes"];
        let archived = archived.iter().filter(|key| store.content(key).is_some());
        archived.for_each(|key| store.archive(key));
        drop(try_again);
        assert_eq!(write(&mount, x_to_write, "1"), Ok(()), "{place:?}");
        assert_eq!(read(&mount, x).as_deref(), Ok(&b"1ne"[..]), "{place:?}");
        let found = ["p/a/x", "p/b/x"].map(|key| store.content(key));
        let is_new = |body: &Option<Bytes>| body.as_deref() == Some(&b"1ne"[..]);
        assert!(found.iter().any(is_new), "{place:?}: {found:?}");
    }
}

#[test]
fn file_that_its_folders_rename_leaves_behind_is_read_and_written_at_its_old_name() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    plant(&store, false);
    let mount = Mount::of(&store);
    let [x, x_to_write] = open(&mount, "a/x");
    let other = Arc::clone(&store);
    store
        .faults()
        .before_key(Operation::Copy, "p/b/x", async move {
            other.plant("p/b/x", "of somebody else");
        });
    assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
    assert!(!has_records(&store));
    assert_eq!(read(&mount, x).as_deref(), Ok(&b"one"[..]));
    assert_eq!(write(&mount, x_to_write, "1"), Ok(()));
    assert_eq!(store.content("p/a/x").as_deref(), Some(&b"1ne"[..]));
    assert_eq!(
        store.content("p/b/x").as_deref(),
        Some(&b"of somebody else"[..])
    );
    assert_eq!(store.content("p/b/sub/y").as_deref(), Some(&b"two"[..]));
}

#[test]
fn file_whose_object_is_not_shown_after_its_folders_rename_is_written_on() {
    let _one = alone();
    let store = Arc::new(MemoryStore::new());
    plant(&store, false);
    let mount = Mount::of(&store);
    let [x, x_to_write] = open(&mount, "a/x");
    store
        .faults()
        .fail_key(Operation::Head, "p/b/x", Failure::Busy);
    assert_eq!(mount.rename("a", "b"), Ok(()));
    assert_eq!(read(&mount, x).as_deref(), Ok(&b"one"[..]));
    assert_eq!(write(&mount, x_to_write, "1"), Ok(()));
    assert_eq!(store.content("p/b/x").as_deref(), Some(&b"1ne"[..]));
    assert_eq!(read(&mount, x).as_deref(), Ok(&b"1ne"[..]));
}
