// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of objects that are renamed while a program writes them: what it writes and publishes
//! between any two requests of the rename is in the object of the new name.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::thread;

use bytes::Bytes;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use weft_files::{Fault, Mode, Name, Publish, Writes};
use weft_store::Failure;
use weft_store::memory::Operation;

use crate::order::{LIMIT, await_that, pause};
use crate::{MIB, Mount, ROOT, WRITE, at};

const APPEND: Mode = Mode {
    appends: true,
    ..WRITE
};

fn open_in(mount: &Mount, folder: &str, name: &str) -> u64 {
    let files = &mount.files;
    let opened = async {
        let parent = match folder {
            "" => ROOT,
            _ => files.lookup(ROOT, folder).await?.attributes.ino,
        };
        let found = files.lookup(parent, name).await?;
        files.open_files.open(found.attributes.ino, APPEND).await
    };
    mount.runtime.block_on(opened).unwrap().handle
}

/// Writes `data` and publishes while the request waits that `reached` is of. The request goes on
/// when the publishing is done or waits for something.
async fn publish_meanwhile(
    mount: &Mount,
    handle: u64,
    data: &[u8],
    (reached, go): (oneshot::Receiver<()>, oneshot::Sender<()>),
) -> Result<(), Fault> {
    reached.await.unwrap();
    let files = &mount.files.open_files;
    for piece in data.chunks(MIB) {
        files
            .write(handle, 0, Bytes::copy_from_slice(piece))
            .await?;
    }
    let mut published = pin!(files.publish(handle));
    let first = poll_fn(|context| Poll::Ready(published.as_mut().poll(context))).await;
    let _ = go.send(());
    match first {
        Poll::Ready(done) => done,
        Poll::Pending => published.await,
    }
}

/// Renames while a program appends to what is renamed.
fn check(names: [Name<'_>; 2], keys: [&str; 2], sizes: [usize; 2], at: (Operation, &str)) {
    let place = format!("{keys:?}, {sizes:?}, {at:?}");
    let mount = Mount::new();
    let mut wanted = vec![7; sizes[0]];
    mount.store.plant(keys[0], wanted.clone());
    let (folder, name) = keys[0].rsplit_once('/').unwrap_or(("", keys[0]));
    let handle = open_in(&mount, folder, name);
    let more = vec![8; sizes[1]];
    let (reached, is_reached) = oneshot::channel();
    let (go, goes) = oneshot::channel();
    mount.store.faults().before_key(at.0, at.1, async move {
        let _ = reached.send(());
        pause(goes).await;
    });
    let (renamed, published) = thread::scope(|scope| {
        let rename = scope.spawn(|| {
            let renamed = mount.files.rename(names[0], names[1], true);
            mount.runtime.block_on(renamed)
        });
        let published = publish_meanwhile(&mount, handle, &more, (is_reached, go));
        let published = mount.runtime.block_on(published);
        (rename.join().unwrap(), published)
    });
    assert_eq!(renamed, Ok(()), "{place}");
    assert_eq!(published, Ok(()), "{place}");
    wanted.extend_from_slice(&more);
    assert_eq!(mount.store.keys(), [keys[1]], "{place}");
    assert!(mount.content(keys[1]).unwrap() == wanted, "{place}");
    mount.write(handle, 0, b"end").unwrap();
    assert_eq!(mount.close(handle), Ok(()), "{place}");
    wanted.extend_from_slice(b"end");
    assert!(mount.content(keys[1]).unwrap() == wanted, "{place}");
    assert_eq!(mount.store.keys(), [keys[1]], "{place}");
    mount.await_no_upload();
}

const SIZES: [[usize; 2]; 3] = [[100, 100], [20 * MIB, 100], [20 * MIB, 18 * MIB]];

#[test]
fn what_is_appended_while_its_object_is_renamed_is_published_under_the_new_name() {
    for sizes in SIZES {
        for request in [(Operation::Copy, "g"), (Operation::Delete, "f")] {
            check([at("f"), at("g")], ["f", "g"], sizes, request);
        }
    }
}

#[test]
fn what_is_appended_while_its_folder_is_renamed_is_published_under_the_new_name() {
    for sizes in SIZES {
        for request in [
            (Operation::List, "d/"),
            (Operation::Copy, "e/f"),
            (Operation::Delete, "d/f"),
        ] {
            check([at("d"), at("e")], ["d/f", "e/f"], sizes, request);
        }
    }
}

#[test]
fn time_of_a_file_that_is_open_for_writing_stays_when_its_folder_is_renamed() {
    let mount = Mount::new();
    mount.store.plant("d/f", "old");
    let handle = open_in(&mount, "d", "f");
    let folder = mount.files.lookup(ROOT, "d");
    let folder = mount.runtime.block_on(folder).unwrap().attributes.ino;
    let file = mount.files.lookup(folder, "f");
    let ino = mount.runtime.block_on(file).unwrap().attributes.ino;
    let modified = || {
        let attributes = mount.files.attributes(ino);
        let entry = mount.runtime.block_on(attributes).unwrap();
        entry.attributes.modified
    };
    mount.write(handle, 0, b" and new").unwrap();
    let written = modified();
    let renamed = mount.files.rename(at("d"), at("e"), true);
    mount.runtime.block_on(renamed).unwrap();
    assert_eq!(modified(), written);
    assert_eq!(mount.close(handle), Ok(()));
    assert_eq!(mount.content("e/f").unwrap(), b"old and new");
}

#[test]
fn what_waits_to_be_published_is_renamed_with_its_folder() {
    let writes = Writes::temporary(Publish::Async).unwrap();
    let mount = Mount::with(Runtime::new().unwrap(), writes);
    mount.store.plant("d/f", "old");
    let handle = open_in(&mount, "d", "f");
    mount.write(handle, 0, b" and new").unwrap();
    let planned = Failure::Busy;
    mount
        .store
        .faults()
        .fail_key(Operation::Put, "d/f", planned);
    let closed = mount.files.open_files.close(handle);
    mount.runtime.block_on(closed).unwrap();
    await_that("it is published", || {
        mount.store.faults().count(Operation::Put) == 1
    });
    // It waits until it is tried again.
    let renamed = mount.files.rename(at("d"), at("e"), true);
    mount.runtime.block_on(renamed).unwrap();
    let settled = mount.files.open_files.settle_all(LIMIT);
    mount.runtime.block_on(settled);
    assert_eq!(mount.store.keys(), ["e/f"]);
    assert_eq!(mount.content("e/f").unwrap(), b"old and new");
}

/// Writes a file, and has an attempt to publish it fail.
fn fail_to_publish(mount: &Mount, name: &str, data: &[u8], is_done: bool) -> u64 {
    let handle = mount.create(name);
    mount.write(handle, 0, data).unwrap();
    let mut faults = mount.store.faults();
    if is_done {
        faults.lose_answer(Operation::Put, 0);
        faults.fail(Operation::Head, 0, Failure::Unreachable);
    } else {
        faults.fail(Operation::Put, 0, Failure::Busy);
    }
    drop(faults);
    let published = mount.files.open_files.publish(handle);
    mount.runtime.block_on(published).unwrap_err();
    handle
}

#[test]
fn file_gets_the_name_of_one_of_which_nobody_knows_whether_it_was_published() {
    for is_done in [false, true] {
        for is_stored in [false, true] {
            let mount = Mount::new();
            let replaced = fail_to_publish(&mount, "b", b"b", is_done);
            let handle = mount.create("a");
            mount.write(handle, 0, b"content").unwrap();
            if is_stored {
                let published = mount.files.open_files.publish(handle);
                mount.runtime.block_on(published).unwrap();
            }
            let renamed = mount.files.rename(at("a"), at("b"), true);
            mount.runtime.block_on(renamed).unwrap();
            assert_eq!(mount.close(handle), Ok(()), "{is_done}, {is_stored}");
            assert_eq!(mount.close(replaced), Ok(()), "{is_done}, {is_stored}");
            assert_eq!(mount.store.keys(), ["b"], "{is_done}, {is_stored}");
            assert_eq!(mount.content("b").unwrap(), b"content");
            let reader = mount.open("b", crate::READ);
            assert_eq!(mount.read(reader, 0, 100), b"content");
        }
    }
}

#[test]
fn rename_that_fails_leaves_both_files_though_the_copy_is_refused() {
    for old in [None, Some("old")] {
        let mount = Mount::new();
        let replaced = match old {
            None => mount.create("b"),
            Some(old) => {
                mount.store.plant("b", old);
                mount.open("b", WRITE)
            }
        };
        mount.write(replaced, 0, b"not lost").unwrap();
        mount.store.plant("a", "content");
        let mut faults = mount.store.faults();
        faults.fail_key(Operation::Copy, "b", Failure::Denied);
        drop(faults);
        let renamed = mount.files.rename(at("a"), at("b"), true);
        mount.runtime.block_on(renamed).unwrap_err();
        assert_eq!(mount.read(replaced, 0, 100), b"not lost", "{old:?}");
        assert_eq!(mount.close(replaced), Ok(()), "{old:?}");
        assert_eq!(mount.content("a").unwrap(), b"content", "{old:?}");
        assert_eq!(mount.content("b").unwrap(), b"not lost", "{old:?}");
        assert_eq!(mount.store.keys(), ["a", "b"], "{old:?}");
    }
}

#[test]
fn rename_of_a_file_that_cannot_be_published_leaves_both_files() {
    let mount = Mount::new();
    let replaced = mount.create("b");
    mount.write(replaced, 0, b"not lost").unwrap();
    let handle = fail_to_publish(&mount, "a", b"content", false);
    let mut faults = mount.store.faults();
    faults.fail(Operation::Put, 0, Failure::Busy);
    drop(faults);
    let renamed = mount.files.rename(at("a"), at("b"), true);
    mount.runtime.block_on(renamed).unwrap_err();
    assert_eq!(mount.close(replaced), Ok(()));
    assert_eq!(mount.close(handle), Ok(()));
    assert_eq!(mount.content("a").unwrap(), b"content");
    assert_eq!(mount.content("b").unwrap(), b"not lost");
}
