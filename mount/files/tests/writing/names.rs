// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of names that change: files and folders that are renamed, unlinked and replaced, also while
//! they are open.

use tokio::runtime::Runtime;
use weft_files::{Making, Name, Publish, Reason, Writes};
use weft_store::Failure;
use weft_store::memory::Operation;

use crate::{MIB, Mount, READ, ROOT, WRITE, at, reason};

#[test]
fn names_change_as_calls_say() {
    let mount = Mount::new();
    let rename = |old, new, may| run_rename(&mount, old, new, may);
    let made = mount
        .runtime
        .block_on(mount.files.make_folder(at("d"), &Making::FOLDER));
    let folder = made.unwrap().attributes.ino;
    assert_eq!(mount.store.keys(), ["d/"]);
    let again = mount
        .runtime
        .block_on(mount.files.make_folder(at("d"), &Making::FOLDER));
    assert_eq!(again.unwrap_err().reason, Reason::Exists);
    let inside = Name {
        parent: folder,
        name: "f",
    };
    let created = mount.files.open_files.create(inside, WRITE, &Making::FILE);
    let handle = mount.runtime.block_on(created).unwrap().1.handle;
    mount.close(handle).unwrap();
    assert_eq!(mount.content("d/f").unwrap(), b"");
    let removed = mount.runtime.block_on(mount.files.remove_folder(at("d")));
    assert_eq!(removed.unwrap_err().reason, Reason::NotEmpty);
    assert_eq!(rename("d", "e", true), Ok(()));
    assert_eq!(mount.store.keys(), ["e/", "e/f"]);
    mount.store.plant("g", "g");
    assert_eq!(rename("e", "g", true), Err(Reason::NotFolder));
    assert_eq!(rename("g", "e", true), Err(Reason::IsFolder));
    mount.store.plant("h", "h");
    assert_eq!(rename("g", "h", false), Err(Reason::Exists));
    assert_eq!(rename("g", "h", true), Ok(()));
    assert_eq!(mount.content("h").unwrap(), b"g");
    assert_eq!(rename("nothing", "h", true), Err(Reason::NotFound));
    let unlinked = mount
        .runtime
        .block_on(mount.files.unlink(at("h")))
        .map_err(reason);
    assert_eq!(unlinked, Ok(()));
    let unlinked = mount
        .runtime
        .block_on(mount.files.unlink(at("e")))
        .map_err(reason);
    assert_eq!(unlinked, Err(Reason::IsFolder));
    assert_eq!(mount.names(), ["e"]);
}

fn run_rename(mount: &Mount, old: &str, new: &str, may_replace: bool) -> Result<(), Reason> {
    let renamed = mount.files.rename(at(old), at(new), may_replace);
    mount.runtime.block_on(renamed).map_err(reason)
}

#[test]
fn file_that_is_renamed_while_written_is_written_on() {
    let mount = Mount::new();
    let handle = mount.create("f.tmp");
    mount.write(handle, 0, b"begin").unwrap();
    assert_eq!(run_rename(&mount, "f.tmp", "f", true), Ok(()));
    assert_eq!(mount.store.keys(), [""; 0], "nobody sees half of it");
    mount.write(handle, 5, b" and end").unwrap();
    mount.close(handle).unwrap();
    assert_eq!(mount.content("f").unwrap(), b"begin and end");
    assert_eq!(mount.store.keys(), ["f"]);
}

#[test]
fn rename_that_breaks_off_leaves_the_old_name_or_both() {
    for (operation, keys) in [
        (Operation::Copy, vec!["a"]),
        (Operation::Delete, vec!["a", "b"]),
    ] {
        let mount = Mount::new();
        mount.store.plant("a", "content");
        mount
            .store
            .faults()
            .fail(operation, 0, Failure::Unreachable);
        assert_eq!(run_rename(&mount, "a", "b", true), Err(Reason::Broken));
        assert_eq!(mount.store.keys(), keys);
        assert_eq!(run_rename(&mount, "a", "b", true), Ok(()));
        assert_eq!(mount.store.keys(), ["b"]);
    }
}

#[test]
fn file_that_is_unlinked_while_written_never_appears() {
    let mount = Mount::new();
    let handle = mount.create("f");
    mount.write(handle, 0, b"x").unwrap();
    mount.runtime.block_on(mount.files.unlink(at("f"))).unwrap();
    assert_eq!(mount.read(handle, 0, 10), b"x", "it is still open");
    mount.close(handle).unwrap();
    assert_eq!(mount.store.keys(), [""; 0]);
    assert_eq!(mount.names(), [""; 0]);
}

#[test]
fn reader_of_an_unlinked_file_reads_on_when_its_writer_has_closed_it() {
    for publish in [Publish::Close, Publish::Fsync, Publish::Async] {
        for is_stored in [false, true] {
            let writes = Writes::temporary(publish).unwrap();
            let mount = Mount::with(Runtime::new().unwrap(), writes);
            if is_stored {
                mount.store.plant("d", "old");
            }
            let before = is_stored.then(|| mount.open("d", READ));
            let writer = if is_stored {
                mount.open("d", WRITE)
            } else {
                mount.create("d")
            };
            mount.write(writer, 0, &[7; 45]).unwrap();
            let reader = mount.open("d", READ);
            unlink(&mount, "d");
            mount.shut(writer);
            for reader in [Some(reader), before].into_iter().flatten() {
                let read = mount.read(reader, 0, 50);
                assert_eq!(read, [7; 45], "{publish:?}, stored: {is_stored}");
            }
            mount.shut(reader);
            if let Some(before) = before {
                assert_eq!(mount.read(before, 0, 1), [7]);
                mount.shut(before);
            }
            mount.settle();
            assert_eq!(mount.store.keys(), [""; 0], "it was never published");
            assert_eq!(
                mount.staged("log"),
                0,
                "the last one took its bytes with it"
            );
        }
    }
}

#[test]
fn file_that_was_published_and_unlinked_is_read_by_who_opened_it_before() {
    let mount = Mount::new();
    let writer = mount.create("d");
    mount.write(writer, 0, b"x").unwrap();
    let reader = mount.open("d", READ);
    mount.close(writer).unwrap();
    unlink(&mount, "d");
    assert_eq!(mount.read(reader, 0, 9), b"x");
    mount.shut(reader);
    assert_eq!(mount.store.keys(), [""; 0]);
}

fn inside(mount: &Mount, name: &str) -> u64 {
    let found = mount.runtime.block_on(mount.files.lookup(ROOT, name));
    found.unwrap().attributes.ino
}

fn unlink(mount: &Mount, name: &str) {
    mount
        .runtime
        .block_on(mount.files.unlink(at(name)))
        .unwrap();
}

#[test]
fn unlinked_and_replaced_files_are_read_and_written_on_while_they_are_open() {
    let mount = Mount::new();
    let body: Vec<u8> = (0..20 * MIB).map(|at| (at / 3) as u8).collect();
    mount.store.plant("f", body.clone());
    mount.store.plant("g", body.clone());
    let (reader, writer) = (mount.open("f", READ), mount.open("f", WRITE));
    mount.write(writer, 5, b"CHANGED").unwrap();
    unlink(&mount, "f");
    let replaced = mount.open("g", READ);
    mount.store.plant("h", "new");
    assert_eq!(run_rename(&mount, "h", "g", true), Ok(()));
    assert_eq!(mount.names(), ["g"], "nothing else is shown");
    assert_eq!(mount.read(writer, 3, 10), b"\x01\x01CHANGED\x04");
    let middle = &body[15_000_000..15_000_009];
    assert_eq!(mount.read(reader, 15_000_000, 9), middle);
    assert_eq!(mount.read(replaced, 15_000_000, 9), middle);
    let now = mount.open("g", READ);
    assert_eq!(mount.read(now, 0, 9), b"new");
    for handle in [reader, writer, replaced, now] {
        mount.close(handle).unwrap();
    }
    assert_eq!(mount.store.keys(), ["g"], "the hidden copies are gone");
    assert_eq!(mount.store.faults().count(Operation::Send), 0);
}

#[test]
fn file_that_was_not_published_is_renamed_without_a_copy() {
    let mount = Mount::new();
    mount.store.plant("old", "old");
    let handle = mount.create("f.tmp");
    mount.write(handle, 0, &vec![7; 20 * MIB]).unwrap();
    assert_eq!(run_rename(&mount, "f.tmp", "old", true), Ok(()));
    assert_eq!(mount.names(), ["old"]);
    assert_eq!(mount.content("old").unwrap(), b"old", "until it is closed");
    mount.write(handle, 20 * MIB as u64, b"end").unwrap();
    mount.close(handle).unwrap();
    assert_eq!(mount.content("old").unwrap().len(), 20 * MIB + 3);
    assert_eq!(mount.store.keys(), ["old"]);
    assert_eq!(mount.store.faults().count(Operation::Copy), 0);
    mount.await_no_upload();
}

#[test]
fn renamed_file_and_files_of_a_renamed_folder_are_read_and_written_on() {
    let mount = Mount::new();
    let body = vec![7; 20 * MIB];
    mount.store.plant("d/f", body.clone());
    mount.store.plant("g", body.clone());
    let folder = inside(&mount, "d");
    let file = mount.runtime.block_on(mount.files.lookup(folder, "f"));
    let file = file.unwrap().attributes.ino;
    let open = |mode| {
        let opened = mount.files.open_files.open(file, mode);
        mount.runtime.block_on(opened).unwrap().handle
    };
    let (reader, writer) = (open(READ), open(WRITE));
    let other = mount.open("g", READ);
    mount.write(writer, 3, b"one").unwrap();
    assert_eq!(run_rename(&mount, "d", "e", true), Ok(()));
    assert_eq!(run_rename(&mount, "g", "h", true), Ok(()));
    assert_eq!(mount.read(reader, 15_000_000, 3), [7; 3]);
    assert_eq!(mount.read(other, 15_000_000, 3), [7; 3]);
    mount.write(writer, 6, b"two").unwrap();
    mount.close(writer).unwrap();
    assert_eq!(mount.store.keys(), ["e/f", "h"]);
    assert_eq!(&mount.content("e/f").unwrap()[2..10], b"\x07onetwo\x07");
}

#[test]
fn file_whose_unlink_failed_is_still_written_and_published() {
    for is_stored in [false, true] {
        let mount = Mount::new();
        if is_stored {
            mount.store.plant("f", "old");
        }
        let handle = if is_stored {
            mount.open("f", WRITE)
        } else {
            mount.create("f")
        };
        mount.write(handle, 0, b"new").unwrap();
        // Of the attributes, the names or the object: whatever is asked first after the copy.
        let mut failed = 0;
        for count in 0..8 {
            mount.store.faults().away_after(count, false);
            let unlinked = mount.runtime.block_on(mount.files.unlink(at("f")));
            mount.store.faults().clear();
            if unlinked.is_ok() {
                break;
            }
            failed += 1;
            mount
                .write(handle, 3, format!(" and {count}").as_bytes())
                .unwrap();
            let published = mount.files.open_files.publish(handle);
            mount.runtime.block_on(published).unwrap();
            let written = format!("new and {count}").into_bytes();
            assert_eq!(mount.content("f").unwrap(), written);
            assert_eq!(mount.names(), ["f"]);
            assert_eq!(mount.read(handle, 0, 100), written);
        }
        assert!(failed > 0);
        mount.close(handle).unwrap();
        // Nor is any copy left that a failed unlink made.
        assert_eq!(mount.store.keys(), [""; 0]);
    }
}
